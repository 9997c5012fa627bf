//! Single operations as they stand in the text of the whole module, with the same names for values.

#![allow(clippy::indexing_slicing, reason = "positions are those of the module at hand")]

use std::io::{Sink, sink};

use rustc_hash::FxHashSet;

use super::super::assembly::{Constants, Form, Writer};
use super::canonical::Names;
use super::locations::Locations;
use super::{Name, Numbers, Place, Printer, TextOptions, list};
use crate::bytecode::{AttributeId, Bytecode, Operation, TypeId, ValueId};
use crate::ir::assembly::Elements;

/// Elements of a constant that are written out.
pub(crate) const FEW: usize = 16;

/// How lines are written: as `jaxprism print --stablehlo` writes them.
pub(crate) struct Spelling {
    options: TextOptions,
    names: Names,
    out: Sink,
}

impl Spelling {
    pub(crate) fn new() -> Self {
        let options = TextOptions { form: Form::Stablehlo, constants: Constants::Hashed(FEW), ..TextOptions::default() };
        Self { options, names: Names::default(), out: sink() }
    }

    /// The lines of a module. Names all its values.
    pub(crate) fn lines<'p, 'a>(&'p mut self, bytecode: &'p Bytecode<'a>) -> Lines<'p, 'a> {
        let items = bytecode.tree.operations.len() + bytecode.tree.value_types.len() + bytecode.tree.operands.len();
        let mut printer = Printer {
            bytecode,
            options: &self.options,
            writer: Writer::new(&bytecode.tables, self.options.form, self.options.constants, items),
            names: &self.names,
            values: vec![Name::Unknown; bytecode.tree.value_types.len()],
            locations: Locations::default(),
            numbers: Numbers::default(),
            is_shallow: true,
            text: String::new(),
            out: &mut self.out,
        };
        let mut returns = FxHashSet::default();
        bytecode.tree.top().for_each(|(_, operation)| printer.name_inside(operation, &mut returns));
        Lines { printer, returns }
    }
}

/// The lines of a module.
pub(crate) struct Lines<'p, 'a> {
    printer: Printer<'p, 'a>,
    /// The terminators of functions, which are written in another way than others.
    returns: FxHashSet<u32>,
}

impl<'p> Lines<'p, '_> {
    /// The operation at a position, without what stands inside it.
    pub(crate) fn operation(&mut self, position: u32) -> String {
        let bytecode = self.printer.bytecode;
        let operation = &bytecode.tree.operations[position as usize];
        let name = bytecode.op_name(operation);
        if matches!(&name[..], "vhlo.func_v1" | "builtin.module") {
            return name;
        }
        let place = Place { indent: 0, is_in_function: self.returns.contains(&position), is_in_one_region: false };
        self.printer.text.clear();
        let written = self.printer.operation(operation, place);
        if written.is_ok() { self.printer.text.trim_end().to_owned() } else { "…".to_owned() }
    }

    /// A value by its name.
    pub(crate) fn value(&mut self, value: ValueId) -> String {
        self.printer.text.clear();
        self.printer.value(value);
        self.printer.text.clone()
    }

    pub(crate) fn attribute(&mut self, id: AttributeId) -> String {
        let mut text = String::new();
        let written = self.printer.writer.attribute(&mut text, id);
        if written.is_ok() { list(&text).to_owned() } else { "…".to_owned() }
    }

    pub(crate) fn r#type(&mut self, id: TypeId) -> String {
        let mut text = String::new();
        let written = self.printer.writer.r#type(&mut text, id);
        if written.is_ok() { text } else { "…".to_owned() }
    }

    /// The elements of a constant, where they are numbers.
    pub(crate) fn elements(&self, id: AttributeId) -> Option<Elements<'p>> {
        self.printer.writer.elements(id)
    }
}

impl<'p> Printer<'p, '_> {
    /// Names the values inside an operation as writing it would. Recurses into its regions, whose depth the reader of the bytecode has checked.
    fn name_inside(&mut self, operation: &'p Operation, returns: &mut FxHashSet<u32>) {
        let tree = &self.bytecode.tree;
        let is_function = self.bytecode.op_name(operation) == "vhlo.func_v1";
        let outer = self.numbers;
        for region in tree.regions_of(operation) {
            self.numbers = if is_function { Numbers::default() } else { outer };
            for block in tree.blocks_of(region) {
                block.arguments.range().for_each(|value| self.argument(ValueId(value as u32)));
                for (position, inner) in tree.operations_in(block) {
                    self.results(inner);
                    self.text.clear();
                    self.name_inside(inner, returns);
                    if is_function && position + 1 == block.end {
                        returns.insert(position);
                    }
                }
            }
        }
        self.numbers = outer;
    }
}
