//! The symbols of a module, in an order in which whatever a symbol names comes before it.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bytecode::{AttributeId, Bytecode, Operation, dialect};
use crate::error::{Error, Result};
use crate::ir::own_symbols;

/// A function, a mesh, or whatever else stands at the top of a module under a name.
pub(super) struct Symbol<'m> {
    pub name: &'m [u8],
    /// Its position among the operations.
    pub position: usize,
    pub is_function: bool,
}

pub(super) struct Symbols<'m> {
    /// In textual order.
    pub all: Vec<Symbol<'m>>,
    /// Their numbers.
    pub callees_first: Vec<usize>,
}

impl<'m> Symbols<'m> {
    /// Finds the symbols of a module and what each names.
    pub(super) fn of(module: &'m Bytecode<'_>) -> Result<Self> {
        let tree = &module.tree;
        let top = tree.operations.first().ok_or_else(|| Error::format("the file holds no module"))?;
        let blocks = tree.regions_of(top).first().map_or(&[][..], |region| tree.blocks_of(region));
        let [body] = blocks else { return Err(Error::format("the module has no body")) };
        let mut all = Vec::new();
        let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
        for (position, operation) in tree.operations_in(body) {
            let name = module.inherent(operation, "sym_name").and_then(|id| module.tables.string(id));
            let name = name.ok_or_else(|| {
                Error::unsupported(format!("the module cannot be linked: a `{}` at its top has no name", module.op_name(operation)))
            })?;
            if numbers.insert(name, all.len()).is_some() {
                return Err(Error::format(format!("two symbols are named `{}`", String::from_utf8_lossy(name))));
            }
            let is_function = is_function(module, operation);
            all.push(Symbol { name, position: position as usize, is_function });
        }
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(all.len(), all.len());
        all.iter().for_each(|_| _ = graph.add_node(()));
        let references = References::new(module);
        for (number, symbol) in all.iter().enumerate() {
            let mut named: Vec<usize> = references.of(symbol).iter().filter_map(|name| numbers.get(&name[..]).copied()).collect();
            named.sort_unstable();
            named.into_iter().for_each(|named| _ = graph.add_edge(NodeIndex::new(number), NodeIndex::new(named), ()));
        }
        let order = petgraph::algo::toposort(&graph, None).map_err(|cycle| {
            let name = all.get(cycle.node_id().index()).map_or(&[][..], |symbol| symbol.name);
            Error::format(format!("function `{}` calls itself, directly or through others", String::from_utf8_lossy(name)))
        })?;
        Ok(Self { all, callees_first: order.into_iter().rev().map(NodeIndex::index).collect() })
    }
}

fn is_function(module: &Bytecode<'_>, operation: &Operation) -> bool {
    let name = module.tables.op_name(operation.name);
    name.dialect == dialect::VHLO && name.name.starts_with(b"func_v")
}

/// Who names whom.
struct References<'m, 'a> {
    module: &'m Bytecode<'a>,
    /// The symbols that each entry itself names.
    own: FxHashMap<AttributeId, Vec<Vec<u8>>>,
}

impl<'m, 'a> References<'m, 'a> {
    fn new(module: &'m Bytecode<'a>) -> Self {
        let ids = (0..module.tables.attribute_count()).map(|id| AttributeId(id as u32));
        let own = ids.map(|id| (id, own_symbols(&module.tables, id))).filter(|(_, own)| !own.is_empty()).collect();
        Self { module, own }
    }

    /// The names that stand anywhere in a symbol but in its locations.
    fn of(&self, symbol: &Symbol<'_>) -> FxHashSet<Vec<u8>> {
        let (tree, tables) = (&self.module.tree, &self.module.tables);
        let (mut named, mut seen, mut arrays) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        let mut work = Vec::new();
        for operation in &tree.operations[symbol.position..tree.operations[symbol.position].end as usize] {
            for attribute in ["callee", "decomposition"] {
                let name = self.module.inherent(operation, attribute).and_then(|id| tables.string(id));
                named.extend(name.map(<[u8]>::to_vec));
            }
            let called = self.module.inherent(operation, "called_computations").filter(|id| arrays.insert(*id));
            let called = called.and_then(|id| tables.array(id));
            named.extend(called.into_iter().flatten().filter_map(|id| tables.string(id)).map(<[u8]>::to_vec));
            if self.own.is_empty() {
                continue;
            }
            work.extend(operation.attributes);
            work.extend(operation.properties.iter().flat_map(|span| &tree.properties[span.range()]).flatten());
            while let Some(id) = work.pop() {
                if seen.insert(id) {
                    named.extend(self.own.get(&id).into_iter().flatten().cloned());
                    work.extend(tables.attribute(id).attributes());
                }
            }
        }
        named
    }
}
