//! Who names whom: functions, meshes, and the symbols that operations and attributes refer to.

use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Attribute, Op, Program, symbol_name};
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
        let mut references = References::default();
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
        References::default().of(program, program.module, &mut named);
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

/// The name of the function that a call or a composite names.
pub fn callee_of(program: &Program<'_, '_>, operation: Op<'_>) -> Option<Vec<u8>> {
    match operation.name_str() {
        "func.call" => operation.attribute("callee")?.as_flat_symbol().map(<[u8]>::to_vec),
        "vhlo.composite_v1" | "vhlo.composite_v2" => {
            let id = program.session.attribute_id(operation.attribute("decomposition")?).ok()?;
            program.session.tables().string(id).map(<[u8]>::to_vec)
        }
        _ => None,
    }
}

/// Finds the symbols that operations name other than as a callee; what an entry names is found once.
#[derive(Default)]
struct References {
    known: FxHashMap<AttributeId, Vec<Vec<u8>>>,
}

impl References {
    fn of(&mut self, program: &Program<'_, '_>, operation: Op<'_>, named: &mut FxHashSet<Vec<u8>>) {
        for (name, value) in operation.attributes() {
            match name.as_str() {
                "sym_name" | "callee" | "function_type" => {}
                "arg_attrs" | "res_attrs" => self.of_dictionaries(program, value, named),
                // Strings that name functions, and nothing else does as a string.
                "called_computations" => {
                    let Ok(id) = program.session.attribute_id(value) else { continue };
                    let tables = program.session.tables();
                    for element in tables.array(id).into_iter().flatten() {
                        named.extend(tables.string(element).map(<[u8]>::to_vec));
                    }
                    self.of_entry(&tables, id, named);
                }
                _ => {
                    if let Ok(id) = program.session.attribute_id(value) {
                        self.of_entry(&program.session.tables(), id, named);
                    }
                }
            }
        }
    }

    fn of_dictionaries(&mut self, program: &Program<'_, '_>, array: Attribute<'_>, named: &mut FxHashSet<Vec<u8>>) {
        for dictionary in array.as_array().into_iter().flatten() {
            for (_, value) in dictionary.as_dictionary().into_iter().flatten() {
                if let Ok(id) = program.session.attribute_id(value) {
                    self.of_entry(&program.session.tables(), id, named);
                }
            }
        }
    }

    fn of_entry(&mut self, tables: &Tables<'_>, id: AttributeId, named: &mut FxHashSet<Vec<u8>>) {
        let found = self.known.entry(id).or_insert_with(|| symbols_in(tables, id));
        named.extend(found.iter().cloned());
    }
}

/// The symbols that an entry names, anywhere inside it.
fn symbols_in(tables: &Tables<'_>, root: AttributeId) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let entry = tables.attribute(id);
        use code::builtin as b;
        match (entry.dialect, entry.code, &entry.fields[..]) {
            (dialect::BUILTIN, Code::Known(b::FLAT_SYMBOL_REF | b::SYMBOL_REF), [Field::Attribute(name), ..]) => {
                found.extend(tables.string(*name).map(<[u8]>::to_vec));
            }
            (_, Code::Text, [Field::String(text)]) => found.extend(symbols_in_text(&text.0)),
            // `replica_group_mesh_axes_v1` names its mesh by a string.
            (dialect::VHLO, Code::Known(REPLICA_GROUP_MESH_AXES), [Field::Attribute(mesh), ..]) => {
                found.extend(tables.string(*mesh).map(<[u8]>::to_vec));
                work.push(*mesh);
            }
            _ => {}
        }
        work.extend(entry.attributes());
    }
    found
}

/// `vhlo.replica_group_mesh_axes_v1`.
const REPLICA_GROUP_MESH_AXES: u8 = 23;

/// Words after an `@` in assembly text, plain or quoted.
fn symbols_in_text(text: &[u8]) -> Vec<Vec<u8>> {
    let parts = text.split(|byte| *byte == b'@').skip(1);
    let word = |part: &[u8]| match part.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|byte| *byte == b'"').next().unwrap_or_default().to_vec(),
        None => part.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte)).copied().collect(),
    };
    parts.map(word).collect()
}
