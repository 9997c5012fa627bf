//! Operations and functions of two modules under common numbers.
//!
//! An operation's *own* number stands for its name, attributes and types; its *deep* one also for what computes its operands, and for everything inside it.
//! A function's number stands for all that it does, with the functions that it calls: two have the same number if they are the same but for names.

#![allow(clippy::indexing_slicing, reason = "ids and spans are those of the tree and tables at hand, for each of which there is a number")]

use std::collections::HashMap;

use super::classes::Classes;
use super::module::{Module, values};
use crate::bytecode::{AttributeId, OpNameId, Operation, ValueId};

/// Stands between the parts of a list of numbers; no part of it itself.
const END: u32 = u32::MAX;
/// Stands for a function that is not matched, or that calls itself.
const ANY: u32 = u32::MAX - 1;

/// The operation that is a function.
const FUNCTION: &str = "vhlo.func_v1";

/// Lists of numbers, and names, under common numbers.
#[derive(Default)]
pub(super) struct Interner {
    lists: HashMap<Box<[u32]>, u32>,
    names: HashMap<Vec<u8>, u32>,
}

impl Interner {
    fn list(&mut self, list: &[u32]) -> u32 {
        if let Some(number) = self.lists.get(list) {
            return *number;
        }
        let number = self.lists.len() as u32;
        self.lists.insert(list.into(), number);
        number
    }

    /// A function that is not in the module.
    fn unknown(&mut self, name: &[u8]) -> u32 {
        let name = self.name(name);
        self.list(&[END, END, name])
    }

    fn name(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.insert(name.to_vec(), number);
        number
    }
}

/// The numbers of one module's operations.
pub(super) struct Shapes {
    /// Of names alone.
    pub(super) names: Vec<u32>,
    /// Of the types of results.
    pub(super) results: Vec<u32>,
    /// Own numbers, whatever functions are named.
    base: Vec<u32>,
    /// Own numbers.
    pub(super) own: Vec<u32>,
    pub(super) deep: Vec<u32>,
    /// Operations that name functions.
    naming: Vec<u32>,
    /// Numbers of dictionaries.
    dictionaries: HashMap<(AttributeId, bool), (u32, bool)>,
    /// Where each value comes from: the operation and the number of the result, or the number of the argument.
    origins: Vec<(Option<u32>, u32)>,
}

impl Shapes {
    pub(super) fn new(module: &Module<'_, '_>, classes: &Classes, interner: &mut Interner) -> Self {
        let tree = &module.bytecode.tree;
        let count = tree.operations.len();
        let mut shapes = Self {
            names: Vec::with_capacity(count),
            results: Vec::with_capacity(count),
            base: Vec::with_capacity(count),
            own: Vec::new(),
            deep: Vec::new(),
            naming: Vec::new(),
            dictionaries: HashMap::new(),
            origins: vec![(None, 0); tree.value_types.len()],
        };
        for block in &tree.blocks {
            values(block.arguments).enumerate().for_each(|(number, value)| shapes.origins[value.index()] = (None, number as u32));
        }
        let class = |value: &ValueId| classes.r#type(tree.value_types[value.index()]);
        let tables = &module.bytecode.tables;
        let op_names = (0..tables.op_name_count() as u32).map(|id| interner.name(tables.op_name_text(OpNameId(id)).as_bytes()));
        let op_names: Vec<u32> = op_names.collect();
        let mut list = Vec::new();
        for (position, operation) in tree.operations.iter().enumerate() {
            let name = op_names[operation.name.index()];
            values(operation.results).enumerate().for_each(|(number, value)| {
                shapes.origins[value.index()] = (Some(position as u32), number as u32);
            });
            list.clear();
            let (attributes, names_functions) = shapes.attributes(module, operation, classes, interner);
            list.push(attributes);
            list.push(END);
            list.extend(module.operands(operation).iter().map(class));
            list.push(END);
            let results: Vec<u32> = values(operation.results).map(|value| class(&value)).collect();
            list.extend(&results);
            list.extend([END, name, operation.regions.len]);
            list.extend(&tree.successors[operation.successors.range()]);
            shapes.names.push(name);
            shapes.base.push(interner.list(&list));
            // Without results, the name says what may stand for it.
            list.clear();
            list.extend(if results.is_empty() { vec![END, name] } else { results });
            shapes.results.push(interner.list(&list));
            if names_functions {
                shapes.naming.push(position as u32);
            }
        }
        shapes
    }

    /// A number for the attributes of an operation, whatever functions they name, and whether they name any. Dictionaries can be large and are shared: each
    /// is looked at once.
    fn attributes(&mut self, module: &Module<'_, '_>, operation: &Operation, classes: &Classes, interner: &mut Interner) -> (u32, bool) {
        let is_function = module.bytecode.op_name(operation) == FUNCTION;
        let number = |interner: &mut Interner, attributes: &mut Vec<(&[u8], AttributeId)>| {
            attributes.sort();
            let (mut list, mut names_functions) = (Vec::new(), false);
            // Functions are told apart by what they do, not by their names.
            for (key, value) in attributes.iter().filter(|(key, _)| !is_function || *key != b"sym_name") {
                let is_naming = module.is_naming(key, *value);
                names_functions |= is_naming;
                list.extend([interner.name(key), if is_naming { ANY } else { classes.attribute(*value) }]);
            }
            (interner.list(&list), names_functions)
        };
        let dictionary = operation.attributes.map(|id| {
            *self.dictionaries.entry((id, is_function)).or_insert_with(|| {
                let mut items = module.bytecode.tables.dictionary(id).into_iter().flatten().collect::<Vec<_>>();
                let found = number(interner, &mut items);
                // What has no name in it counts as well.
                let is_whole = 2 * items.len() + 1 == module.bytecode.tables.attribute(id).fields.len();
                if is_whole { found } else { (interner.list(&[END, END, classes.attribute(id)]), found.1) }
            })
        });
        let bare = Operation { attributes: None, ..operation.clone() };
        let inherent = operation.properties.map(|_| number(interner, &mut module.bytecode.attributes_of(&bare)));
        match (inherent, dictionary) {
            (Some(one), Some(other)) => (interner.list(&[END, one.0, other.0]), one.1 || other.1),
            (one, other) => one.or(other).unwrap_or_else(|| (interner.list(&[]), false)),
        }
    }

    /// What each function does.
    pub(super) fn functions(&self, module: &Module<'_, '_>, classes: &Classes, interner: &mut Interner) -> Vec<u32> {
        let mut found: Vec<Option<u32>> = vec![None; module.functions.len()];
        let mut is_open = vec![false; module.functions.len()];
        for root in 0..module.functions.len() {
            // What is called comes first; a stack says what waits for it.
            let mut work = vec![root];
            while let Some(&function) = work.last() {
                if found[function].is_some() {
                    work.pop();
                } else if std::mem::replace(&mut is_open[function], true) {
                    found[function] = Some(self.function(module, classes, interner, function, &found));
                    work.pop();
                } else {
                    let called = self.naming_in(module, function).flat_map(|position| module.named(module.operation(position)));
                    work.extend(
                        called.filter_map(|name| module.function(name)).filter(|callee| found[*callee].is_none() && !is_open[*callee]),
                    );
                }
            }
        }
        found.into_iter().flatten().collect()
    }

    fn naming_in(&self, module: &Module<'_, '_>, function: usize) -> impl Iterator<Item = u32> {
        let position = module.functions[function].position;
        let end = module.operation(position).end;
        let first = self.naming.partition_point(|naming| *naming < position);
        self.naming[first..].iter().copied().take_while(move |naming| *naming < end)
    }

    fn function(&self, module: &Module<'_, '_>, classes: &Classes, interner: &mut Interner, function: usize, found: &[Option<u32>]) -> u32 {
        let tree = &module.bytecode.tree;
        let position = module.functions[function].position;
        let operation = module.operation(position);
        let mut list = vec![self.base[position as usize], END];
        // Values are numbered anew, so that it does not matter what stands before the function.
        let mut numbers: HashMap<ValueId, u32> = HashMap::new();
        let number = |numbers: &mut HashMap<ValueId, u32>, value: ValueId| {
            let next = numbers.len() as u32;
            *numbers.entry(value).or_insert(next)
        };
        let mut naming = self.naming_in(module, function).peekable();
        for inner in position..operation.end {
            let operation = module.operation(inner);
            if inner > position {
                list.push(self.base[inner as usize]);
                list.extend(module.operands(operation).iter().map(|operand| number(&mut numbers, *operand)));
                list.push(END);
                list.extend(values(operation.results).map(|result| number(&mut numbers, result)));
            }
            if naming.next_if_eq(&inner).is_some() {
                for name in module.named(operation) {
                    let called = match module.function(name) {
                        Some(callee) => found[callee],
                        None => Some(interner.unknown(name)),
                    };
                    // Of functions that call themselves nothing is said: no other list has as many before it.
                    list.push(called.unwrap_or(interner.lists.len() as u32));
                    list.extend(if called.is_some() { &[][..] } else { &[ANY] });
                }
            }
            for region in tree.regions_of(operation) {
                list.extend([END, region.blocks.len]);
                for block in tree.blocks_of(region) {
                    // With how many operations stand in it, the list says where each block ends.
                    list.extend([END, block.end - block.first]);
                    for argument in values(block.arguments) {
                        list.extend([number(&mut numbers, argument), classes.r#type(tree.value_types[argument.index()])]);
                    }
                }
            }
            list.push(END);
        }
        interner.list(&list)
    }

    /// Numbers the operations, now that it is known which functions are the same: `matched` says it of each function by a number.
    pub(super) fn finish(&mut self, module: &Module<'_, '_>, classes: &Classes, interner: &mut Interner, matched: &[Option<u32>]) {
        let tree = &module.bytecode.tree;
        self.own = self.base.clone();
        for &position in &self.naming {
            let mut list = vec![END, self.base[position as usize]];
            for name in module.named(module.operation(position)) {
                list.push(match module.function(name) {
                    Some(function) => interner.list(&[END, matched[function].unwrap_or(ANY)]),
                    None => interner.unknown(name),
                });
            }
            self.own[position as usize] = interner.list(&list);
        }
        self.deep = vec![END; tree.operations.len()];
        for position in (0..tree.operations.len()).rev() {
            let operation = &tree.operations[position];
            let mut list = vec![self.own[position]];
            for operand in module.operands(operation) {
                let (origin, number) = self.origins[operand.index()];
                list.extend([origin.map_or(END, |origin| self.own[origin as usize]), number]);
            }
            for block in tree.regions_of(operation).iter().flat_map(|region| tree.blocks_of(region)) {
                list.push(END);
                list.extend(values(block.arguments).map(|argument| classes.r#type(tree.value_types[argument.index()])));
                list.push(END);
                list.extend(tree.operations_in(block).map(|(inner, _)| self.deep[inner as usize]));
            }
            self.deep[position] = interner.list(&list);
        }
    }

    /// Whether an operation names functions.
    pub(super) fn names_functions(&self, position: u32) -> bool {
        self.naming.binary_search(&position).is_ok()
    }

    /// The operation that a value is a result of.
    pub(super) fn origin(&self, value: ValueId) -> Option<u32> {
        self.origins[value.index()].0
    }

    /// Where a value comes from, whatever computes it: the number of the result or of the argument.
    pub(super) fn number(&self, value: ValueId) -> u32 {
        self.origins[value.index()].1
    }
}

/// Whether an operation is a constant, which does not depend on where it stands.
pub(super) fn is_constant(module: &Module<'_, '_>, operation: &Operation) -> bool {
    module.bytecode.op_name(operation).starts_with("vhlo.constant_v")
}
