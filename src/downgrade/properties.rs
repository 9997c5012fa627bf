//! Inherent attributes where bytecode before version 5 has them: in the dictionaries of operations, beside the discardable ones.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::bytecode::{AttributeId, Bytecode, OpRow, code, dialect};
use crate::error::{Error, Result};

/// Most items of all dictionaries that are made. In a crafted file, many operations can share a large one, which then no two share.
const MAX_ITEMS: usize = 4 << 20;

/// Moves the properties of all operations into their dictionaries.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] if these become too large.
pub(super) fn move_into_dictionaries(bytecode: &mut Bytecode<'_>) -> Result<()> {
    let mut made = FxHashMap::default();
    let mut items_left = MAX_ITEMS;
    for position in 0..bytecode.tree.operations.len() {
        let operation = &bytecode.tree.operations[position];
        let (Some(span), Some(row)) = (operation.properties, bytecode.tables.op_row(operation.name)) else { continue };
        let key = (operation.name, operation.attributes, bytecode.tree.properties[span.range()].to_vec());
        let dictionary = match made.get(&key) {
            Some(dictionary) => *dictionary,
            None => {
                let items = items(bytecode, row, operation.attributes, &key.2);
                let left = items_left.checked_sub(items.len());
                items_left =
                    left.ok_or_else(|| Error::unsupported(format!("its attributes take more than {MAX_ITEMS} items without properties")))?;
                let dictionary = (!items.is_empty()).then(|| bytecode.tables.intern_dictionary(items));
                made.insert(key, dictionary);
                dictionary
            }
        };
        let operation = &mut bytecode.tree.operations[position];
        (operation.properties, operation.attributes) = (None, dictionary);
    }
    Ok(())
}

/// The names and values of an operation's attributes.
fn items(
    bytecode: &mut Bytecode<'_>,
    row: &OpRow,
    discardable: Option<AttributeId>,
    properties: &[Option<AttributeId>],
) -> Vec<(AttributeId, AttributeId)> {
    let mut items: Vec<(AttributeId, AttributeId)> = Vec::new();
    if let Some(entry) =
        discardable.map(|id| bytecode.tables.attribute(id)).filter(|entry| entry.is(dialect::BUILTIN, code::builtin::DICTIONARY))
    {
        let parts: Vec<AttributeId> = entry.attributes().collect();
        items.extend(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])));
    }
    for (name, value) in row.properties.iter().zip(properties) {
        let Some(value) = value else { continue };
        items.push((bytecode.tables.intern_string(Cow::Borrowed(name.trim_end_matches('?').as_bytes())), *value));
    }
    items
}
