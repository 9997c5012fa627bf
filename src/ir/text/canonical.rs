//! Names for symbols that do not depend on what they are called: by the order in which they are first named, from the public functions on.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::assembly::quote;
use super::super::calls::own_symbols;
use crate::bytecode::{AttributeId, Bytecode, Operation, dialect};

/// Attributes whose strings name functions.
const NAMING: [&[u8]; 3] = [b"callee", b"called_computations", b"decomposition"];
/// The name of a mesh, which is a string as well.
const OWN_NAME: &[u8] = b"sym_name";

/// Other names of symbols, and the order of the symbols. Empty where names stay.
#[derive(Default)]
pub(super) struct Names {
    names: FxHashMap<Vec<u8>, String>,
    order: Vec<u32>,
}

impl Names {
    /// Canonical names for all symbols but public functions.
    ///
    /// Public functions come first, by name; behind each what it names, in the order in which it does, and what that names. What nothing names comes
    /// last, in the order of the module.
    pub(super) fn canonical(bytecode: &Bytecode<'_>) -> Self {
        let tree = &bytecode.tree;
        let blocks = tree.top().flat_map(|(_, top)| tree.regions_of(top)).flat_map(|region| tree.blocks_of(region));
        let symbols: Vec<(u32, &Operation)> = blocks.flat_map(|block| tree.operations_in(block)).collect();
        let name_of = |operation: &Operation| bytecode.tables.string(bytecode.inherent(operation, "sym_name")?);
        let by_name: FxHashMap<_, _> = symbols.iter().filter_map(|(at, operation)| Some((name_of(operation)?, *at))).collect();
        let is_mesh = |operation: &Operation| bytecode.op_name(operation) == "sdy.mesh";
        let is_public = |operation: &Operation| {
            let visibility = bytecode.inherent(operation, "sym_visibility").and_then(|id| bytecode.tables.string(id));
            !is_mesh(operation) && visibility != Some(b"private")
        };
        let mut roots: Vec<_> = symbols.iter().filter(|(_, operation)| is_public(operation)).collect();
        roots.sort_by_key(|(_, operation)| name_of(operation));
        let kept: FxHashSet<_> = roots.iter().filter_map(|(_, operation)| name_of(operation)).collect();
        let mut found = Self::default();
        let (mut functions, mut meshes) = (0, 0);
        let mut seen = vec![false; tree.operations.len()];
        let mut searched = vec![false; bytecode.tables.attribute_count()];
        for (root, _) in roots.into_iter().chain(&symbols) {
            // Depth first, in textual order: what is named first comes first.
            let mut work = vec![*root];
            while let Some(at) = work.pop() {
                if std::mem::replace(&mut seen[at as usize], true) {
                    continue;
                }
                let operation = &tree.operations[at as usize];
                found.order.push(at);
                if let Some(name) = name_of(operation).filter(|_| !is_public(operation)) {
                    let (what, number) = if is_mesh(operation) { ("mesh", &mut meshes) } else { ("function", &mut functions) };
                    let free = (*number..).map(|number| (number, format!("{what}_{number}")));
                    let taken = free.clone().find(|(_, name)| !kept.contains(name.as_bytes()));
                    if let Some((last, free)) = taken {
                        *number = last + 1;
                        found.names.insert(name.to_vec(), free);
                    }
                }
                let start = work.len();
                for inner in &tree.operations[at as usize..operation.end as usize] {
                    symbols_of(bytecode, inner, &mut searched, |name| work.extend(by_name.get(name)));
                }
                work[start..].reverse();
            }
        }
        found
    }

    /// What stands for a name, if it is another one.
    pub(super) fn of(&self, name: &[u8]) -> Option<String> {
        self.names.get(name).cloned()
    }

    /// The positions of the symbols, in order.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The text of an attribute whose strings name symbols, if one of these has another name. Text for people needs no dialect's name.
    pub(super) fn in_attribute(&self, bytecode: &Bytecode<'_>, name: &[u8], value: AttributeId, is_friendly: bool) -> Option<String> {
        if self.names.is_empty() || !(NAMING.contains(&name) || name == OWN_NAME) {
            return None;
        }
        let names: Vec<_> = strings(bytecode, value).map(|name| (name, self.of(name))).collect();
        names.iter().any(|(_, other)| other.is_some()).then(|| {
            let is_builtin = is_friendly || bytecode.tables.attribute(value).dialect == dialect::BUILTIN;
            let string = |(name, other): (&[u8], Option<String>)| {
                let mut text = String::new();
                quote(&mut text, other.as_deref().map_or(name, str::as_bytes));
                if is_builtin { text } else { format!("#vhlo.string_v1<{text}>") }
            };
            let names = names.into_iter().map(string).collect::<Vec<_>>().join(", ");
            match bytecode.tables.string(value) {
                Some(_) => names,
                None if is_builtin => format!("[{names}]"),
                None => format!("#vhlo.array_v1<[{names}]>"),
            }
        })
    }
}

fn strings<'b>(bytecode: &'b Bytecode<'_>, value: AttributeId) -> impl Iterator<Item = &'b [u8]> {
    let own = bytecode.tables.string(value).into_iter();
    let elements = bytecode.tables.array(value).into_iter().flatten().filter_map(|id| bytecode.tables.string(id));
    own.chain(elements)
}

/// Finds the symbols that an operation names, in the order of its attributes. Attributes that were `searched` before have nothing new in them.
fn symbols_of(bytecode: &Bytecode<'_>, operation: &Operation, searched: &mut [bool], mut found: impl FnMut(&[u8])) {
    for name in NAMING {
        let value = std::str::from_utf8(name).ok().and_then(|name| bytecode.inherent(operation, name));
        value.into_iter().flat_map(|value| strings(bytecode, value)).for_each(&mut found);
    }
    let properties = operation.properties.map_or(&[][..], |span| &bytecode.tree.properties[span.range()]);
    let mut work: Vec<AttributeId> = properties.iter().copied().flatten().chain(operation.attributes).collect();
    work.reverse();
    while let Some(id) = work.pop() {
        if std::mem::replace(&mut searched[id.index()], true) {
            continue;
        }
        own_symbols(&bytecode.tables, id).iter().for_each(|name| found(name));
        let start = work.len();
        work.extend(bytecode.tables.attribute(id).attributes());
        work[start..].reverse();
    }
}
