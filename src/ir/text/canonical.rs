//! Names for symbols that do not depend on what they are called: by the order in which they are first named, from the public functions on.

use rustc_hash::FxHashMap;

use crate::bytecode::{AttributeId, Bytecode, Code, Field, Operation, code, dialect};

/// Other names of symbols, and the order of the symbols. Empty where names stay.
#[derive(Default)]
pub(super) struct Names {
    names: FxHashMap<Vec<u8>, String>,
    order: Vec<u32>,
}

impl Names {
    /// Canonical names for all symbols but public functions.
    pub(super) fn canonical(bytecode: &Bytecode<'_>) -> Self {
        let tree = &bytecode.tree;
        let blocks = tree.top().flat_map(|(_, top)| tree.regions_of(top)).flat_map(|region| tree.blocks_of(region));
        let symbols: Vec<(u32, &Operation)> = blocks.flat_map(|block| tree.operations_in(block)).collect();
        let name_of = |operation: &Operation| bytecode.tables.string(bytecode.inherent(operation, "sym_name")?).map(<[u8]>::to_vec);
        let by_name: FxHashMap<_, _> = symbols.iter().filter_map(|(at, operation)| Some((name_of(operation)?, *at))).collect();
        let is_public = |operation: &Operation| {
            let visibility = bytecode.inherent(operation, "sym_visibility").and_then(|id| bytecode.tables.string(id));
            bytecode.op_name(operation) != "sdy.mesh" && visibility != Some(b"private")
        };
        let mut found = Self::default();
        let mut seen = vec![false; tree.operations.len()];
        let roots = symbols.iter().filter(|(_, operation)| is_public(operation)).chain(&symbols);
        for (root, _) in roots {
            // Depth first, in textual order: what is named first comes first.
            let mut work = vec![*root];
            while let Some(at) = work.pop() {
                if std::mem::replace(&mut seen[at as usize], true) {
                    continue;
                }
                let operation = &tree.operations[at as usize];
                found.order.push(at);
                if let Some(name) = name_of(operation).filter(|_| !is_public(operation)) {
                    let what = if bytecode.op_name(operation) == "sdy.mesh" { "mesh" } else { "function" };
                    let number = found.names.len();
                    found.names.insert(name, format!("{what}_{number}"));
                }
                let inside = tree.operations[at as usize..operation.end as usize].iter();
                let mut named: Vec<_> =
                    inside.flat_map(|inner| symbols_of(bytecode, inner)).filter_map(|name| by_name.get(&name)).copied().collect();
                named.reverse();
                work.append(&mut named);
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

    /// The text of an attribute that names functions by strings.
    pub(super) fn in_attribute(&self, bytecode: &Bytecode<'_>, name: &[u8], value: AttributeId) -> Option<String> {
        if self.names.is_empty() || !NAMING.contains(&name) {
            return None;
        }
        let names: Vec<_> = strings(bytecode, value).map(|name| self.of(name)).collect::<Option<_>>()?;
        match bytecode.tables.string(value) {
            Some(_) => names.first().map(|name| format!("@{name}")),
            None => Some(format!("[{}]", names.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", "))),
        }
    }
}

/// Attributes whose strings name functions.
const NAMING: [&[u8]; 4] = [b"callee", b"decomposition", b"called_computations", b"sym_name"];

fn strings<'b>(bytecode: &'b Bytecode<'_>, value: AttributeId) -> impl Iterator<Item = &'b [u8]> {
    let own = bytecode.tables.string(value).into_iter();
    let elements = bytecode.tables.array(value).into_iter().flatten().filter_map(|id| bytecode.tables.string(id));
    own.chain(elements)
}

/// The symbols that an operation names, in the order of its attributes.
fn symbols_of(bytecode: &Bytecode<'_>, operation: &Operation) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let values = operation.properties.map(|span| &bytecode.tree.properties[span.range()]).into_iter().flatten().filter_map(|value| *value);
    let named = bytecode.tables.op_row(operation.name).map_or(&[][..], |row| row.properties).iter();
    let properties: Vec<_> = operation.properties.map_or(Vec::new(), |span| bytecode.tree.properties[span.range()].to_vec());
    for (name, value) in named.zip(properties) {
        if let Some(value) = value.filter(|_| NAMING[..3].contains(&name.trim_end_matches('?').as_bytes())) {
            found.extend(strings(bytecode, value).map(<[u8]>::to_vec));
        }
    }
    let mut seen = vec![];
    let mut work: Vec<AttributeId> = values.chain(operation.attributes).collect();
    work.reverse();
    while let Some(id) = work.pop() {
        // An operation names few attributes; a large one names no symbols.
        if seen.len() > 1_000 || seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let entry = bytecode.tables.attribute(id);
        if let (dialect::BUILTIN, Code::Known(code::builtin::FLAT_SYMBOL_REF), [Field::Attribute(name)]) =
            (entry.dialect, entry.code, &entry.fields[..])
        {
            found.extend(bytecode.tables.string(*name).map(<[u8]>::to_vec));
        }
        work.extend(entry.attributes().collect::<Vec<_>>().into_iter().rev());
    }
    found
}
