//! Bytecode → module.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::entries::function_types;
use super::{Attribute, Block, Name, Op, OpSpec, Program, Session, Type, Value};
use crate::bytecode::{AttributeId, Bytecode, Field, Operation, Span, code, dialect};
use crate::error::{Error, Result};

/// Makes a program of a module. Whatever MLIR owns of it lives as long as the session.
///
/// Refuses what no pass could treat rightly: encodings and operations of vhlo that are not known, control flow between blocks, one name both inherent and discardable.
pub fn import<'s, 'a>(session: &'s Session<'a>, bytecode: &Bytecode<'a>) -> Result<Program<'s, 'a>> {
    if let Some(what) = &bytecode.unreadable {
        return Err(Error::unsupported(format!("the module cannot be rewritten: it holds {what}")));
    }
    let tree = &bytecode.tree;
    let mut importer = Importer {
        session,
        bytecode,
        values: vec![None; tree.value_types.len()],
        operands: Vec::new(),
        results: Vec::new(),
        attributes: Vec::new(),
        function_types: FxHashMap::default(),
        kinds: vec![None; bytecode.tables.op_name_count()],
    };
    let mut blocks: Vec<(Block<'s>, u32, u32)> = Vec::new();
    let top = tree.operations.first().ok_or_else(|| Error::format("the file holds no module"))?;
    if bytecode.op_name(top) != "builtin.module" {
        return Err(Error::format(format!("the file holds a `{}`, not a module", bytecode.op_name(top))));
    }
    let module = importer.operation(top, None)?;
    importer.open_blocks(top, module, &mut blocks)?;
    while let Some((block, next, end)) = blocks.last_mut() {
        if next == end {
            blocks.pop();
            continue;
        }
        let operation = &tree.operations[*next as usize];
        *next = operation.end;
        let block = *block;
        let made = importer.operation(operation, block.parent())?;
        block.append(made);
        importer.open_blocks(operation, made, &mut blocks)?;
    }
    for order in &tree.use_orders {
        if let Some(value) = importer.values[order.value.index()] {
            session.know_use_order(value, order.order.clone());
        }
    }
    Ok(Program { module, session })
}

struct Importer<'s, 'b, 'a> {
    session: &'s Session<'a>,
    bytecode: &'b Bytecode<'a>,
    values: Vec<Option<Value<'s>>>,
    /// The operands, the types of the results and the attributes of one operation, kept for the next.
    operands: Vec<Value<'s>>,
    results: Vec<Type<'s>>,
    attributes: Attributes<'s>,
    /// Types of functions; many functions may share one long type.
    function_types: FxHashMap<AttributeId, Type<'s>>,
    /// What becomes of operations, by the table's names.
    kinds: Vec<Option<Rc<Kind<'s>>>>,
}

/// What becomes of the operations of one name.
struct Kind<'s> {
    op: OpKind,
    /// The names of the inherent attributes, in the order of the properties.
    properties: Vec<Name<'s>>,
}

/// What an operation is in MLIR.
enum OpKind {
    Function,
    Call,
    Return,
    Other(String),
}

/// Whether one of the operations around a place has exactly one region and is neither a function nor the module. MLIR takes an operation that it does not
/// know for a possible symbol table if it has one region, and then finds no callee of a `func.call` from inside.
pub(super) fn is_in_one_region(parent: Option<Op<'_>>) -> bool {
    let around = std::iter::successors(parent, |operation| operation.parent());
    let mut inside = around.take_while(|operation| !operation.is("func.func"));
    inside.any(|operation| operation.region_count() == 1)
}

type Attributes<'s> = Vec<(Name<'s>, Attribute<'s>)>;

impl<'s, 'a> Importer<'s, '_, 'a> {
    fn operation(&mut self, operation: &Operation, parent: Option<Op<'s>>) -> Result<Op<'s>> {
        let (session, tree) = (self.session, &self.bytecode.tree);
        if operation.successors.len > 0 {
            return Err(self.refuse(operation, "branches between blocks"));
        }
        let kind = self.kind(operation)?;
        let mut operands = std::mem::take(&mut self.operands);
        self.operands_of(operation, &mut operands)?;
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        results.extend(operation.results.range().map(|value| session.r#type(tree.value_types[value])));
        let name = match &kind.op {
            OpKind::Function => "func.func",
            OpKind::Call if !is_in_one_region(parent) => "func.call",
            OpKind::Call => "vhlo.call_v1",
            OpKind::Return if parent.is_some_and(|parent| parent.is("func.func")) => "func.return",
            OpKind::Return => "vhlo.return_v1",
            OpKind::Other(name) => name,
        };
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        match name {
            "func.func" => self.function_attributes(operation, &kind, &mut attributes)?,
            "func.call" => self.call_attributes(operation, &kind, &mut attributes)?,
            _ => self.attributes(operation, &kind, &[], &mut attributes)?,
        }
        let spec = OpSpec {
            name: name.as_bytes(),
            location: session.location(operation.location),
            operands: &operands,
            results: &results,
            attributes: &attributes,
            regions: operation.regions.len as usize,
        };
        let made = spec.create().ok_or_else(|| session.bug(&format!("MLIR made no `{name}`")))?;
        if let OpKind::Other(_) = kind.op {
            session.know_op_name(made.name(), operation.name);
        }
        (self.operands, self.results, self.attributes) = (operands, results, attributes);
        for (value, result) in operation.results.range().zip(made.results()) {
            self.values[value] = Some(result);
        }
        Ok(made)
    }

    fn kind(&mut self, operation: &Operation) -> Result<Rc<Kind<'s>>> {
        if let Some(kind) = &self.kinds[operation.name.index()] {
            return Ok(Rc::clone(kind));
        }
        let factory = self.session.factory();
        let row = self.bytecode.tables.op_row(operation.name);
        let names = row.map_or(&[][..], |row| row.properties).iter().map(|name| factory.name(name.trim_end_matches('?').as_bytes()));
        let kind = Rc::new(Kind { op: self.op_kind(operation)?, properties: names.collect() });
        self.kinds[operation.name.index()] = Some(Rc::clone(&kind));
        Ok(kind)
    }

    fn op_kind(&self, operation: &Operation) -> Result<OpKind> {
        let tables = &self.bytecode.tables;
        let text = tables.op_name_text(operation.name);
        match &text[..] {
            "vhlo.func_v1" => return Ok(OpKind::Function),
            "vhlo.call_v1" => return Ok(OpKind::Call),
            "vhlo.return_v1" => return Ok(OpKind::Return),
            _ => {}
        }
        let dialect = tables.op_name(operation.name).dialect;
        let is_known = tables.op_row(operation.name).is_some();
        if !is_known && matches!(dialect, dialect::VHLO | dialect::BUILTIN) {
            let error = Error::unsupported(format!("operation `{text}` is not known, at {}", super::place(tables, operation.location)));
            return Err(error.with_hint("the file may come from a newer StableHLO"));
        }
        let is_own = text.starts_with("jaxprism.") && !self.bytecode.is_from_text;
        if text.starts_with("func.") || is_own {
            let message = format!("operation `{text}` has no place in a portable artifact");
            return Err(Error::format(message).with_hint("serialize the module as a portable artifact"));
        }
        Ok(OpKind::Other(text))
    }

    fn operands_of(&self, operation: &Operation, operands: &mut Vec<Value<'s>>) -> Result<()> {
        operands.clear();
        for value in self.bytecode.tree.operands_of(operation) {
            let value = self.values[value.index()].ok_or_else(|| self.refuse(operation, "an operand that is defined after it"))?;
            operands.push(value);
        }
        Ok(())
    }

    /// Adds all attributes but the inherent ones named in `except`.
    fn attributes(&self, operation: &Operation, kind: &Kind<'s>, except: &[&str], attributes: &mut Attributes<'s>) -> Result<()> {
        let tables = &self.bytecode.tables;
        if let Some(span) = operation.properties {
            for (name, value) in kind.properties.iter().zip(&self.bytecode.tree.properties[span.range()]) {
                let is_own = !except.is_empty() && except.contains(&name.as_str());
                if let Some(id) = value.filter(|_| !is_own) {
                    attributes.push((*name, self.session.attribute(id)));
                }
            }
        }
        let inherent = attributes.len();
        let Some(dictionary) = operation.attributes else { return Ok(()) };
        let items: Vec<_> =
            tables.dictionary(dictionary).ok_or_else(|| self.refuse(operation, "attributes that are no dictionary"))?.collect();
        for (name, value) in items {
            if except.iter().any(|except| except.as_bytes() == name) {
                continue;
            }
            let name = self.session.factory().name(name);
            if attributes[..inherent].iter().any(|(known, _)| *known == name) {
                return Err(self.refuse(operation, &format!("`{}` both inherent and discardable", name.as_str())));
            }
            attributes.push((name, self.session.attribute(value)));
        }
        Ok(())
    }

    /// `func_v1` → `func.func`.
    fn function_attributes(&mut self, operation: &Operation, kind: &Kind<'s>, attributes: &mut Attributes<'s>) -> Result<()> {
        const INHERENT: [&str; 5] = ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];
        let factory = self.session.factory();
        self.attributes(operation, kind, &INHERENT, attributes)?;
        let mut set = |name: &str, value| attributes.push((factory.name(name.as_bytes()), value));
        set("sym_name", factory.string(self.string(operation, "sym_name")?));
        match self.string(operation, "sym_visibility")? {
            b"" => {}
            text @ (b"public" | b"private" | b"nested") => set("sym_visibility", factory.string(text)),
            _ => return Err(self.refuse(operation, "an unknown visibility")),
        }
        set("function_type", factory.type_attribute(self.function_type(operation)?));
        for name in ["arg_attrs", "res_attrs"] {
            let id = self.inherent(operation, name)?;
            let elements = self.bytecode.tables.array(id).ok_or_else(|| self.refuse(operation, &format!("`{name}` that is no array")))?;
            let mut dictionaries = Vec::new();
            for element in elements {
                if self.bytecode.tables.dictionary(element).is_none() {
                    return Err(self.refuse(operation, &format!("an element of `{name}` that is no dictionary")));
                }
                dictionaries.push(self.session.argument_dictionary(element));
            }
            if !dictionaries.is_empty() {
                set(name, factory.array(&dictionaries));
            }
        }
        Ok(())
    }

    fn function_type(&mut self, operation: &Operation) -> Result<Type<'s>> {
        let tables = &self.bytecode.tables;
        let id = self.inherent(operation, "function_type")?;
        if let Some(known) = self.function_types.get(&id) {
            return Ok(*known);
        }
        let attribute = tables.attribute(id);
        let types = match &attribute.fields[..] {
            [Field::Type(id)] if attribute.is(dialect::VHLO, code::vhlo::TYPE) => Some(tables.r#type(*id)),
            _ => None,
        };
        let types = types.filter(|entry| entry.is(dialect::VHLO, code::vhlo::FUNCTION_TYPE)).and_then(function_types);
        let (inputs, results) = types.ok_or_else(|| self.refuse(operation, "a type that is no function type"))?;
        let inputs: Vec<_> = inputs.into_iter().map(|id| self.session.r#type(id)).collect();
        let results: Vec<_> = results.into_iter().map(|id| self.session.r#type(id)).collect();
        let made = self.session.factory().function_type(&inputs, &results);
        self.function_types.insert(id, made);
        Ok(made)
    }

    /// `call_v1` → `func.call`.
    fn call_attributes(&self, operation: &Operation, kind: &Kind<'s>, attributes: &mut Attributes<'s>) -> Result<()> {
        let factory = self.session.factory();
        self.attributes(operation, kind, &["callee"], attributes)?;
        attributes.push((factory.name(b"callee"), factory.flat_symbol(self.string(operation, "callee")?)));
        Ok(())
    }

    fn inherent(&self, operation: &Operation, name: &str) -> Result<AttributeId> {
        self.bytecode.inherent(operation, name).ok_or_else(|| self.refuse(operation, &format!("no attribute `{name}`")))
    }

    fn string(&self, operation: &Operation, name: &str) -> Result<&[u8]> {
        let id = self.inherent(operation, name)?;
        self.bytecode.tables.string(id).ok_or_else(|| self.refuse(operation, &format!("`{name}` that is no string")))
    }

    fn open_blocks(&mut self, operation: &Operation, made: Op<'s>, blocks: &mut Vec<(Block<'s>, u32, u32)>) -> Result<()> {
        let tree = &self.bytecode.tree;
        let start = blocks.len();
        for (region, into) in tree.regions_of(operation).iter().zip(made.regions()) {
            for block in tree.blocks_of(region) {
                let types = self.types(block.arguments);
                let locations: Vec<_> = (0..block.arguments.len)
                    .map(|argument| self.session.location(tree.argument_locations[(block.locations + argument) as usize]))
                    .collect();
                let target = into.append_block(&types, &locations);
                for (value, argument) in block.arguments.range().zip(target.arguments()) {
                    self.values[value] = Some(argument);
                }
                blocks.push((target, block.first, block.end));
            }
        }
        blocks[start..].reverse();
        Ok(())
    }

    fn types(&self, values: Span) -> Vec<Type<'s>> {
        values.range().map(|value| self.session.r#type(self.bytecode.tree.value_types[value])).collect()
    }

    fn refuse(&self, operation: &Operation, what: &str) -> Error {
        let place = super::place(&self.bytecode.tables, operation.location);
        Error::format(format!("`{}` at {place} has {what}", self.bytecode.op_name(operation)))
    }
}
