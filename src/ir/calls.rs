//! Who names whom: functions, meshes, and the symbols that operations and attributes refer to.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::import::is_in_one_region;
use super::{Attribute, Op, OpSpec, Program, Type, Value, symbol_name};
use crate::bytecode::{AttributeId, Code, Field, Tables, code, dialect};
use crate::error::{Error, Result};

/// The module's symbols and which names which.
pub struct Calls<'s> {
    /// An edge from each symbol to each it names.
    pub graph: DiGraph<Op<'s>, ()>,
    /// The node of each symbol.
    pub symbols: IndexMap<&'s [u8], NodeIndex>,
    /// Symbols that something names which is neither a call nor a composite.
    named_otherwise: FxHashSet<Vec<u8>>,
}

impl<'s> Calls<'s> {
    /// Collects the symbols of a program and their references. Fails on two symbols with one name.
    pub fn of(program: &Program<'s, '_>) -> Result<Self> {
        let mut calls = Self { graph: DiGraph::new(), symbols: IndexMap::new(), named_otherwise: FxHashSet::default() };
        for operation in program.body()?.operations() {
            let Some(name) = symbol_name(operation) else { continue };
            let node = calls.graph.add_node(operation);
            if calls.symbols.insert(name, node).is_some() {
                return Err(Error::format(format!("two symbols are named `{}`", String::from_utf8_lossy(name))));
            }
        }
        let references = References::new(program);
        for node in calls.graph.node_indices() {
            let (mut named, mut otherwise) = (FxHashSet::default(), FxHashSet::default());
            Program::walk(calls.graph[node], |operation| {
                references.of(program, operation, &mut otherwise);
                named.extend(callee_of(program, operation));
            });
            named.extend(otherwise.iter().cloned());
            calls.named_otherwise.extend(otherwise);
            let mut targets: Vec<_> = named.iter().filter_map(|name| calls.symbols.get(&name[..]).copied()).collect();
            targets.sort_unstable();
            targets.into_iter().for_each(|target| {
                calls.graph.add_edge(node, target, ());
            });
        }
        Ok(calls)
    }

    /// Whether something names the symbol that is neither a call nor a composite, so that not all its uses are known.
    pub fn is_named_otherwise(&self, name: &[u8]) -> bool {
        self.named_otherwise.contains(name)
    }

    /// The functions, callers before callees. Fails where functions call one another in a circle, which StableHLO forbids.
    pub fn callers_first(&self) -> Result<Vec<Op<'s>>> {
        let order = petgraph::algo::toposort(&self.graph, None).map_err(|cycle| {
            let name = symbol_name(self.graph[cycle.node_id()]).unwrap_or_default();
            Error::format(format!("function `{}` calls itself, directly or through others", String::from_utf8_lossy(name)))
        })?;
        let operations = order.into_iter().map(|node| self.graph[node]);
        Ok(operations.filter(|operation| operation.is("func.func")).collect())
    }

    /// The symbols that nothing reaches from a public function or from the module itself.
    pub fn unreachable(&self, program: &Program<'s, '_>) -> Vec<Op<'s>> {
        let mut named = FxHashSet::default();
        References::new(program).of(program, program.module, &mut named);
        let mut seen = vec![false; self.graph.node_count()];
        let is_root = |operation: Op<'s>| {
            let visibility = operation.attribute("sym_visibility").and_then(|text| text.as_string());
            let is_private = operation.is("sdy.mesh") || visibility == Some(b"private");
            !is_private || symbol_name(operation).is_some_and(|name| named.contains(name))
        };
        let mut work: Vec<_> = self.graph.node_indices().filter(|node| is_root(self.graph[*node])).collect();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut seen[node.index()], true) {
                work.extend(self.graph.neighbors(node));
            }
        }
        self.graph.node_indices().filter(|node| !seen[node.index()]).map(|node| self.graph[node]).collect()
    }
}

/// Whether operations of that name call a function by its name: calls and composites.
pub fn is_call(name: &str) -> bool {
    matches!(name, "func.call" | "vhlo.call_v1" | "vhlo.composite_v1" | "vhlo.composite_v2")
}

/// The name of the function that a call or a composite names.
pub fn callee_of(program: &Program<'_, '_>, operation: Op<'_>) -> Option<Vec<u8>> {
    match operation.name().as_bytes() {
        b"func.call" => operation.attribute("callee")?.as_flat_symbol().map(<[u8]>::to_vec),
        b"vhlo.call_v1" => named_by_string(program, operation, "callee"),
        b"vhlo.composite_v1" | b"vhlo.composite_v2" => named_by_string(program, operation, "decomposition"),
        _ => None,
    }
}

fn named_by_string(program: &Program<'_, '_>, operation: Op<'_>, attribute: &str) -> Option<Vec<u8>> {
    let id = program.session.attribute_id(operation.attribute(attribute)?).ok()?;
    program.session.tables().string(id).map(<[u8]>::to_vec)
}

/// Makes a call of a function before an operation, at its location.
pub fn insert_call<'s>(
    program: &Program<'s, '_>,
    before: Op<'s>,
    function: Op<'s>,
    operands: &[Value<'s>],
    results: &[Type<'s>],
) -> Result<Op<'s>> {
    let (session, factory) = (program.session, program.session.factory());
    let callee = symbol_name(function).unwrap_or_default();
    let (name, callee) = match is_in_one_region(before.parent()) {
        true => (&b"vhlo.call_v1"[..], session.attribute(session.add_vhlo_string(callee))),
        false => (&b"func.call"[..], factory.flat_symbol(callee)),
    };
    let attributes = [(factory.name(b"callee"), callee)];
    let spec = OpSpec { name, location: before.location(), operands, results, attributes: &attributes, regions: 0 };
    let made = spec.create().ok_or_else(|| session.bug("MLIR made no call"))?;
    made.insert_before(before);
    Ok(made)
}

/// Lets a call, or a composite, name another function.
pub fn retarget(program: &Program<'_, '_>, operation: Op<'_>, function: Op<'_>) {
    let session = program.session;
    let name = symbol_name(function).unwrap_or_default();
    let string = || session.attribute(session.add_vhlo_string(name));
    match operation.name_str() {
        "func.call" => operation.set_attribute("callee", session.factory().flat_symbol(name)),
        "vhlo.call_v1" => operation.set_attribute("callee", string()),
        _ => operation.set_attribute("decomposition", string()),
    }
}

/// Finds the symbols that operations name other than as a callee.
pub(super) struct References {
    /// What each entry names that names anything. Few modules have any but those with shardings, and then no attribute need be looked at.
    naming: FxHashMap<AttributeId, Vec<Vec<u8>>>,
}

impl References {
    pub(super) fn new(program: &Program<'_, '_>) -> Self {
        let tables = program.session.tables();
        let ids = (0..tables.attribute_count()).map(|id| AttributeId(id as u32));
        let own: FxHashMap<_, _> = ids.clone().map(|id| (id, own_symbols(&tables, id))).filter(|(_, own)| !own.is_empty()).collect();
        if own.is_empty() {
            return Self { naming: own };
        }
        let naming = ids.map(|id| (id, symbols_in(&tables, id, &own))).filter(|(_, found)| !found.is_empty());
        Self { naming: naming.collect() }
    }

    /// Adds the symbols that an operation names.
    pub(super) fn of(&self, program: &Program<'_, '_>, operation: Op<'_>, named: &mut FxHashSet<Vec<u8>>) {
        if operation.name().as_bytes().starts_with(b"vhlo.custom_call") {
            called_computations(program, operation, named);
        }
        if self.naming.is_empty() {
            return;
        }
        for (name, value) in operation.attributes() {
            match name.as_str() {
                "sym_name" | "callee" | "function_type" => {}
                "arg_attrs" | "res_attrs" => {
                    let dictionaries = value.as_array().into_iter().flatten().filter_map(Attribute::as_dictionary);
                    dictionaries.flatten().for_each(|(_, value)| self.of_attribute(program, value, named));
                }
                _ => self.of_attribute(program, value, named),
            }
        }
    }

    fn of_attribute(&self, program: &Program<'_, '_>, attribute: Attribute<'_>, named: &mut FxHashSet<Vec<u8>>) {
        let found = program.session.attribute_id(attribute).ok().and_then(|id| self.naming.get(&id));
        named.extend(found.into_iter().flatten().cloned());
    }
}

/// Adds the functions that a custom call names, by strings.
fn called_computations(program: &Program<'_, '_>, operation: Op<'_>, named: &mut FxHashSet<Vec<u8>>) {
    let attribute = operation.attribute("called_computations");
    let Some(Ok(id)) = attribute.map(|attribute| program.session.attribute_id(attribute)) else { return };
    let tables = program.session.tables();
    let elements = tables.array(id).into_iter().flatten();
    named.extend(elements.filter_map(|element| tables.string(element).map(<[u8]>::to_vec)));
}

/// The symbols that an entry itself names, without those in its fields.
pub(crate) fn own_symbols(tables: &Tables<'_>, id: AttributeId) -> Vec<Vec<u8>> {
    use code::builtin as b;
    let entry = tables.attribute(id);
    match (entry.dialect, entry.code, &entry.fields[..]) {
        (dialect::BUILTIN, Code::Known(b::FLAT_SYMBOL_REF | b::SYMBOL_REF), [Field::Attribute(name), ..]) => {
            tables.string(*name).map(<[u8]>::to_vec).into_iter().collect()
        }
        // It names its mesh by a string, or by a symbol reference inside it.
        (dialect::VHLO, Code::Known(code::vhlo::REPLICA_GROUP_MESH_AXES), [Field::Attribute(mesh), ..]) => {
            tables.string(*mesh).map(<[u8]>::to_vec).into_iter().collect()
        }
        (_, Code::Text, [Field::String(text)]) => symbols_in_text(&text.0),
        _ => Vec::new(),
    }
}

/// The symbols that an entry names, anywhere inside it.
fn symbols_in(tables: &Tables<'_>, root: AttributeId, own: &FxHashMap<AttributeId, Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if seen.insert(id) {
            found.extend(own.get(&id).into_iter().flatten().cloned());
            work.extend(tables.attribute(id).attributes());
        }
    }
    found
}

/// Words after an `@` in assembly text, plain or quoted.
fn symbols_in_text(text: &[u8]) -> Vec<Vec<u8>> {
    let parts = text.split(|byte| *byte == b'@').skip(1);
    let word = |part: &[u8]| match part.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| *byte == b'"').next().unwrap_or_default().to_vec(),
        None => part.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte)).copied().collect(),
    };
    parts.map(word).collect()
}
