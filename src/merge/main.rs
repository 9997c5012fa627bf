//! The function `main` of a module for several platforms: by the platform index it calls what was `main` for that platform alone.
//!
//! As JAX has it, its arguments are the platform index, then the tokens of ordered effects, then every array that a platform takes; dimensions are
//! computed from the arrays, in each branch.

use std::collections::BTreeSet;

use super::Branch;
use crate::bytecode::{AttributeId, Entry, Field, code, dialect};
use crate::error::{Error, Result};
use crate::ir::{Attribute, Op, OpSpec, Program, Type, Value, functions, symbol_name};
use crate::link::Attributes;
use crate::passes::placeholders::is_token;

/// Attributes by which an argument gives its memory away. They hold for all platforms or for none.
const DONATION: [&str; 2] = ["jax.buffer_donor", "tf.aliasing_output"];
/// The path of a result, which is nothing but a name.
const RESULT_INFO: &str = "jax.result_info";

/// How an argument or a result lies in memory.
const LAYOUT_MODE: &str = "mhlo.layout_mode";

/// The paths of what `main` takes and returns.
pub(super) struct Paths {
    pub inputs: Vec<String>,
    pub results: Vec<String>,
    pub tokens: usize,
}

/// One value that `main` takes or returns.
struct Port<'s> {
    of: Type<'s>,
    location: Attribute<'s>,
    attributes: Attributes,
}

/// Makes `main`. Returns the numbers of the arguments of the export that it takes, and the paths of those that keep their memory on all platforms, because
/// not all may have it.
pub(super) fn build(program: &Program<'_, '_>, branches: &[Branch], paths: &Paths) -> Result<(Vec<u16>, Vec<String>)> {
    let found = program.functions()?;
    let mut mains = Vec::with_capacity(branches.len());
    for branch in branches {
        let function = found.iter().copied().find(|function| symbol_name(*function) == Some(&branch.linked.main));
        let function = function.ok_or_else(|| Error::bug("a function that was linked is not there"))?;
        mains.push(Main::new(program, branch, function, paths)?);
    }
    let [first, ..] = &mains[..] else { return Err(Error::bug("no branches")) };
    let kept: BTreeSet<u16> = branches.iter().flat_map(|branch| &branch.kept).copied().collect();
    let kept: Vec<u16> = kept.into_iter().collect();
    let mut inputs = vec![index(program)];
    let mut undonated = Vec::new();
    for token in 0..paths.tokens {
        let ports: Vec<_> = mains.iter().map(|main| (main.branch, main.input(token))).collect();
        inputs.push(joined(program, &ports, branches.len(), &format!("token {token}"))?.0);
    }
    for number in &kept {
        let path = paths.inputs.get(usize::from(*number)).cloned().unwrap_or_default();
        let takers = mains.iter().filter_map(|main| Some((main.branch, main.input(paths.tokens + main.place_of(*number)?))));
        let (port, is_undonated) = joined(program, &takers.collect::<Vec<_>>(), branches.len(), &path)?;
        inputs.push(port);
        undonated.extend(is_undonated.then_some(path));
    }
    let mut results = Vec::new();
    for place in 0..first.outputs.len() {
        let path = match place.checked_sub(paths.tokens) {
            Some(place) => paths.results.get(place).cloned().unwrap_or_default(),
            None => format!("token {place}"),
        };
        let ports: Vec<_> = mains.iter().map(|main| (main.branch, main.output(place))).collect();
        results.push(joined(program, &ports, branches.len(), &path)?.0);
    }
    make(program, &mains, &kept, paths.tokens, &inputs, &results)?;
    Ok((kept, undonated))
}

/// What was `main` on one platform.
struct Main<'s, 'b> {
    branch: &'b Branch,
    function: Op<'s>,
    inputs: Vec<Type<'s>>,
    outputs: Vec<Type<'s>>,
    locations: Vec<Attribute<'s>>,
}

impl<'s, 'b> Main<'s, 'b> {
    /// Checks that a function takes and returns what its export says.
    fn new(program: &Program<'s, '_>, branch: &'b Branch, function: Op<'s>, paths: &Paths) -> Result<Self> {
        let (inputs, outputs) = functions::signature(function)?;
        let body = functions::body(function).ok_or_else(|| Error::bug("a function without a body"))?;
        let tokens = |types: &[Type<'s>]| types.iter().take_while(|of| is_token(program.session, **of)).count();
        let counts = (tokens(&inputs), inputs.len(), tokens(&outputs), outputs.len());
        let (arrays, results) = (branch.kept.len(), paths.results.len());
        if counts != (paths.tokens, paths.tokens + arrays, paths.tokens, paths.tokens + results) {
            let message = format!(
                "`main` for `{}` takes {} values and returns {}, but the export says {arrays} arrays, {results} results and {} tokens",
                branch.platform,
                inputs.len(),
                outputs.len(),
                paths.tokens
            );
            return Err(Error::format(message));
        }
        Ok(Self { branch, function, inputs, outputs, locations: body.arguments().map(Value::location).collect() })
    }

    /// The place of an argument of the export among the arrays that it takes.
    fn place_of(&self, number: u16) -> Option<usize> {
        self.branch.kept.binary_search(&number).ok()
    }

    fn input(&self, place: usize) -> Option<Port<'s>> {
        let attributes = self.branch.linked.arguments.get(place).cloned().unwrap_or_default();
        Some(Port { of: *self.inputs.get(place)?, location: *self.locations.get(place)?, attributes })
    }

    fn output(&self, place: usize) -> Option<Port<'s>> {
        let attributes = self.branch.linked.results.get(place).cloned().unwrap_or_default();
        Some(Port { of: *self.outputs.get(place)?, location: self.function.location(), attributes })
    }
}

/// What stands for a value of all platforms that have it, and whether its memory is given away on some of `count` platforms only.
fn joined<'s>(program: &Program<'s, '_>, ports: &[(&Branch, Option<Port<'s>>)], count: usize, path: &str) -> Result<(Port<'s>, bool)> {
    let is_donation = |name: &[u8]| DONATION.iter().any(|donation| donation.as_bytes() == name);
    // JAX once spelled out that a layout is the default one, and no longer does.
    let is_default = |(name, value): &(Vec<u8>, AttributeId)| {
        name == LAYOUT_MODE.as_bytes() && program.session.tables().string(*value) == Some(b"default")
    };
    let counts = |item: &&(Vec<u8>, AttributeId)| !is_donation(&item.0) && item.0 != RESULT_INFO.as_bytes() && !is_default(item);
    let [(first, Some(port)), rest @ ..] = ports else { return Err(Error::bug("a value that no platform has")) };
    let mut donates = ports.len() == count;
    for (branch, other) in rest {
        let other = other.as_ref().ok_or_else(|| Error::bug("a value that a platform does not have"))?;
        let differ = |what: &str| Error::refused(format!("{path}: {what} on {} than on {}", branch.platform, first.platform));
        if port.of != other.of {
            return Err(differ("another type in the module"));
        }
        let only = |one: &Attributes, other: &Attributes| one.iter().filter(counts).find(|item| !other.contains(item)).cloned();
        if let Some((name, _)) = only(&port.attributes, &other.attributes).or_else(|| only(&other.attributes, &port.attributes)) {
            return Err(differ(&format!("another `{}` in the module", String::from_utf8_lossy(&name))));
        }
        let donation = |attributes: &Attributes| attributes.iter().filter(|item| is_donation(&item.0)).cloned().collect::<BTreeSet<_>>();
        donates &= donation(&port.attributes) == donation(&other.attributes);
    }
    let gives = |attributes: &Attributes| attributes.iter().any(|(name, _)| is_donation(name));
    let is_undonated = !donates && ports.iter().flat_map(|(_, port)| port).any(|port| gives(&port.attributes));
    let attributes = port.attributes.iter().filter(|item| donates || !is_donation(&item.0)).cloned().collect();
    Ok((Port { of: port.of, location: port.location, attributes }, is_undonated))
}

/// The platform index.
fn index<'s>(program: &Program<'s, '_>) -> Port<'s> {
    let session = program.session;
    let number = session.add_type(Entry::new(dialect::VHLO, code::vhlo::I32_TYPE, []));
    // It was just made.
    let fields = session.type_id(number).map(|id| [Field::Count(0), Field::Type(id)]);
    let of = fields.map_or(number, |fields| session.add_type(Entry::new(dialect::VHLO, code::vhlo::TENSOR_TYPE, fields)));
    let name = session.add_vhlo_string(b"_platform_index");
    Port { of, location: session.unknown_location(), attributes: vec![(b"jax.global_constant".to_vec(), name)] }
}

/// Makes the function, before all others.
fn make<'s>(
    program: &Program<'s, '_>,
    mains: &[Main<'s, '_>],
    kept: &[u16],
    tokens: usize,
    inputs: &[Port<'s>],
    results: &[Port<'s>],
) -> Result<()> {
    let (session, factory) = (program.session, program.session.factory());
    let Some(first) = mains.first().map(|main| main.function) else { return Err(Error::bug("no branches")) };
    let types = |ports: &[Port<'s>]| ports.iter().map(|port| port.of).collect::<Vec<_>>();
    let (input_types, result_types) = (types(inputs), types(results));
    let dictionaries = |ports: &[Port<'s>]| {
        let dictionaries: Vec<_> = ports.iter().map(|port| dictionary(program, &port.attributes)).collect();
        factory.array(&dictionaries)
    };
    let function_type = factory.type_attribute(factory.function_type(&input_types, &result_types));
    let mut attributes = vec![
        (factory.name(b"sym_name"), factory.string(b"main")),
        (factory.name(b"sym_visibility"), factory.string(b"public")),
        (factory.name(b"function_type"), function_type),
        (factory.name(b"arg_attrs"), dictionaries(inputs)),
    ];
    if !results.is_empty() {
        attributes.push((factory.name(b"res_attrs"), dictionaries(results)));
    }
    let spec = OpSpec { name: b"func.func", location: first.location(), operands: &[], results: &[], attributes: &attributes, regions: 1 };
    let create = |spec: &OpSpec<'s, '_>| spec.create().ok_or_else(|| session.bug("MLIR made no operation of `main`"));
    let main = create(&spec)?;
    let locations: Vec<_> = inputs.iter().map(|port| port.location).collect();
    let body = main.region(0).append_block(&input_types, &locations);
    let arguments: Vec<_> = body.arguments().collect();
    let [index, arguments @ ..] = &arguments[..] else { return Err(Error::bug("`main` takes no platform index")) };
    let call = |main: &Main<'s, '_>| {
        let arrays = kept.iter().enumerate().filter(|(_, number)| main.place_of(**number).is_some()).map(|(place, _)| tokens + place);
        let operands: Option<Vec<_>> = (0..tokens).chain(arrays).map(|place| arguments.get(place).copied()).collect();
        let operands = operands.ok_or_else(|| Error::bug("`main` does not take what it passes on"))?;
        create(&OpSpec {
            name: b"func.call",
            location: first.location(),
            operands: &operands,
            results: &result_types,
            attributes: &[(factory.name(b"callee"), factory.flat_symbol(&main.branch.linked.main))],
            regions: 0,
        })
    };
    let end = |name: &[u8], by: Op<'s>| {
        let operands: Vec<_> = by.results().collect();
        create(&OpSpec { name, location: first.location(), operands: &operands, results: &[], attributes: &[], regions: 0 })
    };
    // One function may be called with other arguments on each platform.
    let is_same = |main: &Main<'_, '_>| {
        let same = |first: &Main<'_, '_>| first.branch.linked.main == main.branch.linked.main && first.branch.kept == main.branch.kept;
        mains.first().is_some_and(same)
    };
    let made = match mains {
        // There is nothing to choose.
        [only, rest @ ..] if rest.iter().all(is_same) => call(only)?,
        _ => {
            let case = create(&OpSpec {
                name: b"vhlo.case_v1",
                location: first.location(),
                operands: &[*index],
                results: &result_types,
                attributes: &[],
                regions: mains.len(),
            })?;
            for (region, main) in case.regions().zip(mains) {
                let block = region.append_block(&[], &[]);
                let made = call(main)?;
                block.append(made);
                block.append(end(b"vhlo.return_v1", made)?);
            }
            case
        }
    };
    body.append(made);
    body.append(end(b"func.return", made)?);
    main.insert_before(program.functions()?.into_iter().next().unwrap_or(first));
    Ok(())
}

/// The attributes of an argument or a result.
fn dictionary<'s>(program: &Program<'s, '_>, attributes: &Attributes) -> Attribute<'s> {
    let session = program.session;
    let mut fields = vec![Field::Count(attributes.len() as u32)];
    for (name, value) in attributes {
        fields.extend([Field::Attribute(session.add_vhlo_string(name)), Field::Attribute(*value)]);
    }
    let (id, _) = session.add_attribute(Entry::new(dialect::VHLO, code::vhlo::DICT, fields));
    session.argument_dictionary(id)
}
