#![doc = include_str!("call_callbacks.md")]

use rustc_hash::FxHashMap;

use super::drop_polymorphism::declare_polymorphism;
use super::manual::Manual;
use super::placeholders::{Placeholder, fate, placeholders};
use super::{CalledFunction, Changes, Options, Pass};
use crate::callbacks::{Array, Dimensions, Policy};
use crate::error::{Error, Result};
use crate::ir::{Op, OpSpec, Program, Type, Value, functions, insert_call, symbol_name};

pub const PASS: Pass = Pass {
    name: "call-callbacks",
    summary: "Call a function of another export instead of the callbacks whose policy is `call`",
    doc: include_str!("call_callbacks.md"),
    in_split: false,
    run,
};

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let (mut changes, mut has_dynamic) = (Changes::default(), false);
    let by_symbol: FxHashMap<&[u8], Op<'_>> =
        program.functions()?.into_iter().filter_map(|function| Some((symbol_name(function)?, function))).collect();
    // Only functions for several devices must not be called there.
    let is_sharded = options.functions.iter().any(|called| called.devices > 1);
    let manual = is_sharded.then(|| Manual::of(program)).transpose()?;
    let mut calls: FxHashMap<&str, usize> = FxHashMap::default();
    for placeholder in placeholders(program)? {
        let Policy::Call(name) = fate(options, &placeholder.slot).policy else { continue };
        let refuse = |error: Error| error.context(format!("cannot call `{name}` for {}", placeholder.described(program)));
        let called = options.functions.iter().find(|called| called.name == *name).ok_or_else(|| {
            refuse(Error::refused("no function was linked into the module").with_hint("`jaxprism split` links the functions that it calls"))
        })?;
        let number = calls.entry(name).or_default();
        let symbol = if let [only] = &called.symbols[..] { Some(only) } else { called.symbols.get(*number) };
        *number += 1;
        let symbol = symbol.ok_or_else(|| Error::bug("a function was linked for fewer calls than there are"))?;
        let function = by_symbol.get(&symbol[..]).ok_or_else(|| Error::bug("a function that was linked is not there"))?;
        let is_in_shard = manual.as_ref().is_some_and(|manual| manual.holds(placeholder.operation, &placeholder.function));
        if called.devices > 1 && is_in_shard {
            let error = Error::refused(format!("it runs once for every shard, and the function is for {} devices", called.devices));
            return Err(refuse(error.with_hint("export the function for one device, for the shapes that a shard has")));
        }
        let values = call(program, &placeholder, called, *function).map_err(refuse)?;
        placeholder.replace(&values);
        changes.callbacks_called += 1;
        has_dynamic |= called.is_dynamic;
    }
    // Whoever loads the module is to refine the shapes of the functions.
    if has_dynamic && declare_polymorphism(program)? {
        changes.attributes_set += 1;
    }
    Ok(changes)
}

/// Calls the function before the operation. Returns what stands for each result of the operation.
fn call<'s>(program: &Program<'s, '_>, placeholder: &Placeholder<'s>, called: &CalledFunction, function: Op<'s>) -> Result<Vec<Value<'s>>> {
    placeholder.check(program)?;
    called.check(&placeholder.slot.meta().args, &placeholder.slot.meta().results)?;
    let arguments = placeholder.arguments();
    let operands: Option<Vec<_>> = called.kept.iter().map(|number| arguments.get(usize::from(*number)).copied()).collect();
    let operands = operands.ok_or_else(|| Error::bug("a function takes an argument that its export does not have"))?;
    let results = placeholder.results();
    let (inputs, outputs) = functions::signature(function)?;
    if operands.len() != inputs.len() || results.len() != outputs.len() {
        return Err(Error::format("its `main` takes or returns other values than its export says"));
    }
    let mut converted = Vec::with_capacity(operands.len());
    for ((operand, of), number) in operands.into_iter().zip(inputs).zip(&called.kept) {
        converted.push(convert(program, placeholder, operand, of)?.ok_or_else(|| other_type(&format!("operand {number}")))?);
    }
    let made = insert_call(program, placeholder.operation, function, &converted, &outputs)?;
    let mut values: Vec<_> = placeholder.operation.operands().take(placeholder.tokens()).collect();
    for (number, (result, (_, replaced))) in made.results().zip(results).enumerate() {
        let value = convert(program, placeholder, result, replaced.r#type())?;
        values.push(value.ok_or_else(|| other_type(&format!("result {number}")))?);
    }
    Ok(values)
}

/// What the exports say may still be laid out in another way by the modules.
fn other_type(what: &str) -> Error {
    Error::refused(format!("{what} has another type in the module than it has in the function"))
}

/// The value as one of another type, if that type differs only in which dimensions are known. JAX calls functions of symbolic dimensions alike.
fn convert<'s>(program: &Program<'s, '_>, placeholder: &Placeholder<'s>, value: Value<'s>, of: Type<'s>) -> Result<Option<Value<'s>>> {
    if value.r#type() == of {
        return Ok(Some(value));
    }
    let session = program.session;
    let [own, other] = [session.type_id(value.r#type())?, session.type_id(of)?];
    let tensors = session.tables().tensor(own).zip(session.tables().tensor(other));
    let differ_in_dynamic_dimensions = tensors.is_some_and(|((own, own_element), (other, other_element))| {
        let is_same = |(own, other): (&i64, &i64)| own == other || *own == i64::MIN || *other == i64::MIN;
        own_element == other_element && own.len() == other.len() && own.iter().zip(&other).all(is_same)
    });
    if !differ_in_dynamic_dimensions {
        return Ok(None);
    }
    let location = placeholder.operation.location();
    let spec = OpSpec { name: b"vhlo.convert_v1", location, operands: &[value], results: &[of], attributes: &[], regions: 0 };
    let made = spec.create().ok_or_else(|| session.bug("MLIR made no conversion"))?;
    made.insert_before(placeholder.operation);
    Ok(Some(made.result(0)))
}

impl CalledFunction {
    /// Refuses operands and results of a callback that are not those of the function: the first one that differs.
    fn check(&self, operands: &[Array], results: &[Array]) -> Result<()> {
        let dimensions = Dimensions::solve(self.inputs.iter().map(|(_, own)| own).zip(operands));
        for (what, verb, own, others) in [("operand", "takes", &self.inputs, operands), ("result", "returns", &self.results, results)] {
            if own.len() != others.len() {
                let count = |count: usize| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
                return Err(Error::refused(format!("the callback has {}, the function {verb} {}", count(others.len()), own.len())));
            }
            let differs = |((_, own), other): (&(String, Array), &Array)| !dimensions.are_same(own, other);
            if let Some(place) = own.iter().zip(others).position(differs) {
                let Some(((path, own), other)) = own.get(place).zip(others.get(place)) else { continue };
                let error = Error::refused(format!("{what} {place} is {other}, and the function {verb} {own} (`{path}`)"));
                let same_but_dimensions = own.dtype == other.dtype && own.shape.len() == other.shape.len();
                return Err(if same_but_dimensions { error.with_hint(HINT) } else { error });
            }
        }
        Ok(())
    }
}

const HINT: &str = "export the function for the shapes that the callback has, or for symbolic dimensions that can be solved for them";

#[cfg(test)]
mod tests {
    use super::*;

    fn array(text: &str) -> Array {
        let (dtype, shape) = text.strip_suffix(']').and_then(|text| text.split_once('[')).unwrap();
        let shape = if shape.is_empty() { Vec::new() } else { shape.split(';').map(str::to_owned).collect() };
        Array { dtype: dtype.to_owned(), shape }
    }

    fn check(inputs: &[&str], results: &[&str], operands: &[&str], replaced: &[&str]) -> std::result::Result<(), String> {
        let own = |texts: &[&str]| texts.iter().enumerate().map(|(number, text)| (format!("args[{number}]"), array(text))).collect();
        let function = CalledFunction {
            name: "f".to_owned(),
            symbols: Vec::new(),
            is_dynamic: false,
            devices: 1,
            kept: Vec::new(),
            inputs: own(inputs),
            results: own(results),
        };
        let others = |texts: &[&str]| texts.iter().map(|text| array(text)).collect::<Vec<_>>();
        function.check(&others(operands), &others(replaced)).map_err(|error| error.to_string())
    }

    #[test]
    fn dimensions_are_those_of_the_callback_by_any_name() {
        check(&["float32[4]", "int32[]"], &["float32[2;4]"], &["float32[4]", "int32[]"], &["float32[2;4]"]).unwrap();
        check(&["float32[n;m]"], &["float32[2*n;floordiv(m, 2)]"], &["float32[b;n]"], &["float32[2*b;floordiv(n, 2)]"]).unwrap();
        check(&["float32[n]"], &["float32[n]"], &["float32[2*b]"], &["float32[2*b]"]).unwrap();
        check(&["float32[n]", "float32[2*n]"], &["float32[max(n, 4)]"], &["float32[3]", "float32[6]"], &["float32[4]"]).unwrap();
    }

    #[test]
    fn the_first_difference_is_named() {
        let differs = |inputs: &[&str], results: &[&str], operands: &[&str], replaced: &[&str]| {
            check(inputs, results, operands, replaced).unwrap_err()
        };
        assert_eq!(differs(&["f[4]"], &[], &[], &[]), "the callback has 0 operands, the function takes 1");
        assert_eq!(differs(&[], &[], &[], &["f[4]"]), "the callback has 1 result, the function returns 0");
        assert_eq!(
            differs(&["f[4]", "f[5]"], &["f[4]"], &["f[4]", "f[4]"], &["g[4]"]),
            "operand 1 is f[4], and the function takes f[5] (`args[1]`)"
        );
        assert_eq!(differs(&["f[4]"], &["f[4]"], &["f[4]"], &["g[4]"]), "result 0 is g[4], and the function returns f[4] (`args[0]`)");
        assert_eq!(differs(&["f[4]"], &[], &["f[4;1]"], &[]), "operand 0 is f[4,1], and the function takes f[4] (`args[0]`)");
        assert_eq!(differs(&["f[n]"], &["f[2*n]"], &["f[4]"], &["f[9]"]), "result 0 is f[9], and the function returns f[2*n] (`args[0]`)");
        assert_eq!(differs(&["f[4]"], &[], &["f[b]"], &[]), "operand 0 is f[b], and the function takes f[4] (`args[0]`)");
        assert_eq!(differs(&["f[n;n]"], &[], &["f[b;c]"], &[]), "operand 0 is f[b,c], and the function takes f[n,n] (`args[0]`)");
        assert_eq!(differs(&["f[n]"], &["f[n]"], &["f[b]"], &["f[c]"]), "result 0 is f[c], and the function returns f[n] (`args[0]`)");
        // Two variables for one dimension are one that the function knows less of.
        check(&["f[n;m]"], &["f[n]"], &["f[b;b]"], &["f[b]"]).unwrap();
    }
}
