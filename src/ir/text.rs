//! A module as MLIR text.
//!
//! Text is written from the tables and the tree, without MLIR: it shows exactly what the file holds, operations and encodings that are not known
//! included, and nothing an input names can make it grow without bound. [`super::parse`] reads it back.
//!
//! Functions are `func.func`, as in the program that passes see; every other operation is written in MLIR's generic form.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

mod canonical;
mod lines;
mod locations;

use std::fmt::Write as _;
use std::io::Write;

use super::assembly::{Constants, Form, Writer, identifier, quote};
use super::entries::ARGUMENT_ENTRY;
use crate::bytecode::{
    AttributeId, Block, Bytecode, Entry, Field, NEWEST_PRODUCER, NEWEST_VERSION, Operation, TypeId, UseOrder, ValueId, code, dialect,
};
use crate::error::{Error, Result};
use canonical::Names;
pub(crate) use lines::{FEW, Lines, Spelling};
use locations::Locations;
pub(super) use locations::NAMELESS;

/// The name of the module's attribute that holds the producer, where it is not the newest.
pub(super) const PRODUCER_ATTRIBUTE: &str = "jaxprism.producer";
/// The name of the module's attribute that holds another bytecode version.
pub(super) const VERSION_ATTRIBUTE: &str = "jaxprism.bytecode_version";

/// The name of the module's attribute that holds the order of uses in memory, which means nothing but is part of the bytecode: for each value its number
/// and a permutation of its uses.
pub(super) const USE_ORDERS_ATTRIBUTE: &str = "jaxprism.use_orders";
/// The names of a function's attributes that say that each argument, or each result, has an empty dictionary, where MLIR would see none.
pub(super) const EMPTY_ARGUMENTS: &str = "jaxprism.empty_arg_attrs";
pub(super) const EMPTY_RESULTS: &str = "jaxprism.empty_res_attrs";

/// What is written, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TextOptions {
    /// The spelling.
    pub form: Form,
    /// Which constants are written out.
    pub constants: Constants,
    /// Whether locations are written.
    pub locations: bool,
    /// Whether symbols that the outside does not see get names of their own, in the order in which they are first named, so that renaming them changes
    /// nothing; functions then stand in that order too.
    pub canonical: bool,
    /// The one function to write, by its name.
    pub function: Option<String>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { form: Form::Vhlo, constants: Constants::UpTo(16), locations: false, canonical: false, function: None }
    }
}

impl TextOptions {
    /// Everything, so that the text can be read back to the same bytecode.
    pub fn exact() -> Self {
        Self { constants: Constants::All, locations: true, ..Self::default() }
    }
}

/// Writes a module as text.
///
/// # Errors
/// - [`crate::ErrorKind::Refused`]: the module has no function of that name.
/// - [`crate::ErrorKind::Unsupported`]: attributes name one another so often that their text would not end.
/// - [`crate::ErrorKind::Io`]: those of `out`.
pub fn write_text(bytecode: &Bytecode<'_>, options: &TextOptions, out: &mut dyn Write) -> Result<()> {
    let items = bytecode.tree.operations.len() + bytecode.tree.value_types.len() + bytecode.tree.operands.len();
    let names = if options.canonical { Names::canonical(bytecode) } else { Names::default() };
    let rename = |name: &[u8]| names.of(name);
    let writer = Writer::new(&bytecode.tables, options.form, options.constants, items).rename_symbols(&rename);
    let mut printer = Printer {
        bytecode,
        options,
        writer,
        names: &names,
        values: vec![Name::Unknown; bytecode.tree.value_types.len()],
        locations: Locations::default(),
        numbers: Numbers::default(),
        is_shallow: false,
        text: String::new(),
        out,
    };
    printer.module()
}

/// Checks that a module can be written as bytecode: that no constant in it was elided from text, and that no operation is one which only passes see.
///
/// # Errors
/// [`crate::ErrorKind::Refused`], naming the operation.
pub fn check_complete(bytecode: &Bytecode<'_>) -> Result<()> {
    let tables = &bytecode.tables;
    // What an entry holds stands before it.
    let mut is_elided = vec![false; tables.attribute_count()];
    for index in 0..is_elided.len() {
        let entry = tables.attribute(AttributeId(index as u32));
        let is_itself = entry.is(dialect::VHLO, code::vhlo::TENSOR) && entry.fields.last() == Some(&Field::Absent);
        is_elided[index] = is_itself || entry.attributes().any(|id| is_elided[id.index()]);
    }
    let own = tables.find_dialect(super::OWN_DIALECT.as_bytes());
    for operation in &bytecode.tree.operations {
        let refuse = |what: &str| {
            let place = super::place(tables, operation.location);
            Error::refused(format!("{what} `{}` at {place}", bytecode.op_name(operation)))
        };
        if own == Some(tables.op_name(operation.name).dialect) {
            let hint = "run the passes that follow as well, or write text";
            return Err(refuse("only passes see the operation").with_hint(hint));
        }
        let properties = operation.properties.map_or(&[][..], |span| &bytecode.tree.properties[span.range()]);
        if properties.iter().copied().flatten().chain(operation.attributes).any(|id| is_elided[id.index()]) {
            let hint = "print the module with `--constants all`, or keep to text";
            return Err(refuse("the constant is elided of the operation").with_hint(hint));
        }
    }
    Ok(())
}

/// What a value is called.
#[derive(Clone, Copy)]
enum Name {
    Unknown,
    Argument(u32),
    Result(u32),
    /// One of several results.
    Part(u32, u32),
    /// Used before its definition.
    Early,
    /// The same, by the number of the first result beside it.
    EarlyPart(u32, u32),
}

/// The numbers of the next names.
#[derive(Clone, Copy, Default)]
struct Numbers {
    result: u32,
    argument: u32,
}

struct Printer<'p, 'a> {
    bytecode: &'p Bytecode<'a>,
    options: &'p TextOptions,
    writer: Writer<'p, 'a>,
    names: &'p Names,
    values: Vec<Name>,
    locations: Locations,
    numbers: Numbers,
    /// What stands in regions is left out.
    is_shallow: bool,
    text: String,
    out: &'p mut dyn Write,
}

/// Where an operation stands, as far as its spelling depends on it.
#[derive(Clone, Copy)]
struct Place {
    indent: usize,
    /// Directly in a function.
    is_in_function: bool,
    /// In an operation with one region that is no function: MLIR would look there for the callees of calls.
    is_in_one_region: bool,
}

/// The types and attributes of a function that MLIR's own form can say.
struct Function<'p> {
    name: &'p [u8],
    visibility: &'p [u8],
    inputs: Vec<TypeId>,
    results: Vec<TypeId>,
    arguments: Vec<AttributeId>,
    result_attributes: Vec<AttributeId>,
    entry: Option<&'p Block>,
}

impl<'p, 'a> Printer<'p, 'a> {
    fn module(&mut self) -> Result<()> {
        let tree = &self.bytecode.tree;
        let top = tree.operations.first().ok_or_else(|| Error::format("the file holds no module"))?;
        let place = Place { indent: 0, is_in_function: false, is_in_one_region: false };
        if self.options.form == Form::Stablehlo {
            self.text.push_str("// For reading: the StableHLO that this module stands for. This text cannot be read back.\n");
        }
        if let Some(what) = &self.bytecode.unreadable {
            let _ = writeln!(self.text, "// Not all of the module can be read: it holds {what}");
        }
        if let Some(name) = &self.options.function {
            let function = self.function_named(name)?;
            self.operation(function, place)?;
        } else {
            self.operation(top, place)?;
        }
        for line in self.locations.definitions() {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.flush(0)
    }

    fn function_named(&self, name: &str) -> Result<&'p Operation> {
        let bytecode = self.bytecode;
        let name_of = |operation: &Operation| bytecode.tables.string(bytecode.inherent(operation, "sym_name")?);
        let found = bytecode.functions().find(|operation| name_of(operation) == Some(name.as_bytes()));
        found.ok_or_else(|| {
            let names: Vec<_> = bytecode.functions().filter_map(name_of).collect();
            let shown = names.iter().take(10).map(|name| format!("`{}`", String::from_utf8_lossy(name))).collect::<Vec<_>>().join(", ");
            let hint = match names.len() {
                0 => "it has no functions".to_owned(),
                1..=10 => format!("it has {shown}"),
                count => format!("it has {shown} and {} more", count - 10),
            };
            Error::refused(format!("the module has no function `{name}`")).with_hint(hint)
        })
    }

    /// Writes an operation with everything inside it. Recurses into its regions, whose depth the reader of the bytecode has checked.
    fn operation(&mut self, operation: &'p Operation, place: Place) -> Result<()> {
        self.flush(1 << 16)?;
        self.indent(place.indent);
        let name = self.bytecode.op_name(operation);
        match &name[..] {
            "builtin.module" if place.indent == 0 => return self.builtin_module(operation, place),
            "vhlo.func_v1" => {
                // What a name stands for ends with its function.
                let outer = std::mem::take(&mut self.numbers);
                match self.function_of(operation) {
                    Some(function) => self.function(operation, &function, place)?,
                    None => self.generic_function(operation, place)?,
                }
                self.numbers = outer;
                return Ok(());
            }
            _ => {}
        }
        self.results(operation);
        match &name[..] {
            "vhlo.call_v1" if !place.is_in_one_region && self.callee(operation).is_some() => {
                self.text.push_str("func.call ");
                let callee = self.callee(operation).unwrap_or_default();
                self.writer.symbol_name(&mut self.text, callee);
                self.operand_list(operation);
                self.attributes(operation, &["callee"], vec![], " ")?;
                self.signature(operation)?;
            }
            "vhlo.return_v1" if place.is_in_function => {
                self.text.push_str("func.return");
                if operation.operands.len > 0 {
                    self.text.push(' ');
                    self.operands(operation);
                }
                self.attributes(operation, &[], vec![], " ")?;
                if operation.operands.len > 0 {
                    self.text.push_str(" : ");
                    self.types_of(self.bytecode.tree.operands_of(operation))?;
                }
            }
            _ if self.writer.is_friendly() => self.friendly(operation, &name, place)?,
            _ => {
                quote(&mut self.text, name.as_bytes());
                self.operand_list(operation);
                self.successors(operation);
                self.regions(operation, place)?;
                self.attributes(operation, &[], vec![], " ")?;
                self.signature(operation)?;
            }
        }
        self.location(operation.location)?;
        self.text.push('\n');
        Ok(())
    }

    fn builtin_module(&mut self, operation: &'p Operation, place: Place) -> Result<()> {
        self.text.push_str("module");
        let name = self.bytecode.inherent(operation, "sym_name").filter(|_| !self.options.canonical);
        let name = name.map(|id| self.bytecode.tables.attribute(id)).filter(|entry| entry.is(dialect::BUILTIN, code::builtin::STRING));
        let name = name.and_then(Entry::bytes).map(|name| &name.0[..]).filter(|name| !name.is_empty());
        if let Some(name) = name {
            self.text.push_str(" @");
            identifier(&mut self.text, name);
        }
        let except: &[&str] = if name.is_some() || self.options.canonical { &["sym_name"] } else { &[] };
        let markers = self.module_markers();
        self.attributes(operation, except, markers, " attributes ")?;
        self.text.push_str(" {\n");
        let tree = &self.bytecode.tree;
        let blocks = tree.regions_of(operation).iter().flat_map(|region| tree.blocks_of(region));
        let place = Place { indent: place.indent + 1, ..place };
        if self.options.canonical {
            for position in self.names.order() {
                self.operation(&tree.operations[*position as usize], place)?;
            }
        } else {
            for (_, inner) in blocks.flat_map(|block| tree.operations_in(block)) {
                self.operation(inner, place)?;
            }
        }
        self.text.push('}');
        self.location(operation.location)?;
        self.text.push('\n');
        Ok(())
    }

    /// What text cannot say of a module by its form: the version and the producer of its bytecode, and the order of uses.
    fn module_markers(&self) -> Vec<String> {
        let mut markers = Vec::new();
        if self.options.canonical || self.writer.is_friendly() {
            return markers;
        }
        if *self.bytecode.producer != *NEWEST_PRODUCER {
            let mut marker = format!("{PRODUCER_ATTRIBUTE} = ");
            quote(&mut marker, &self.bytecode.producer);
            markers.push(marker);
        }
        if self.bytecode.version != NEWEST_VERSION {
            markers.push(format!("{VERSION_ATTRIBUTE} = {} : i64", self.bytecode.version));
        }
        let orders = &self.bytecode.tree.use_orders;
        if self.options.locations && !orders.is_empty() {
            let orders = orders.iter().map(|UseOrder { value, order }| {
                let numbers = std::iter::once(value.0).chain(order.iter().copied());
                format!("[{}]", numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", "))
            });
            markers.push(format!("{USE_ORDERS_ATTRIBUTE} = [{}]", orders.collect::<Vec<_>>().join(", ")));
        }
        markers
    }

    /// A function as `func.func` writes it, if that says everything.
    fn function_of(&self, operation: &'p Operation) -> Option<Function<'p>> {
        let (bytecode, tables, tree) = (self.bytecode, &self.bytecode.tables, &self.bytecode.tree);
        let string = |name| tables.string(bytecode.inherent(operation, name)?);
        let of = tables.attribute(bytecode.inherent(operation, "function_type")?);
        let of = tables.r#type(of.types().next().filter(|_| of.is(dialect::VHLO, code::vhlo::TYPE))?);
        let (inputs, results) = super::entries::function_types(of).filter(|_| of.is(dialect::VHLO, code::vhlo::FUNCTION_TYPE))?;
        let array = |name| Some(tables.array(bytecode.inherent(operation, name)?)?.collect::<Vec<_>>());
        let (arguments, result_attributes) = (array("arg_attrs")?, array("res_attrs")?);
        let is_said = |list: &[AttributeId], count: usize| list.is_empty() || list.len() == count;
        let [region] = tree.regions_of(operation) else { return None };
        let entry = tree.blocks_of(region).first();
        let declared = entry.map(|block| &tree.value_types[block.arguments.range()]);
        let visibility = string("sym_visibility")?;
        let is_sound = is_said(&arguments, inputs.len())
            && is_said(&result_attributes, results.len())
            && declared.is_none_or(|declared| *declared == inputs[..])
            && matches!(visibility, b"" | b"public" | b"private" | b"nested");
        let name = string("sym_name").filter(|name| is_sound && !name.is_empty())?;
        Some(Function { name, visibility, inputs, results, arguments, result_attributes, entry })
    }

    fn function(&mut self, operation: &'p Operation, function: &Function<'p>, place: Place) -> Result<()> {
        const OWN: [&str; 5] = ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];
        let tree = &self.bytecode.tree;
        self.text.push_str("func.func ");
        if !function.visibility.is_empty() {
            self.text.push_str(&String::from_utf8_lossy(function.visibility));
            self.text.push(' ');
        }
        self.writer.symbol_name(&mut self.text, function.name);
        self.text.push('(');
        for (position, of) in function.inputs.iter().enumerate() {
            self.text.push_str(if position > 0 { ", " } else { "" });
            if let Some(block) = function.entry {
                self.argument(ValueId(block.arguments.start + position as u32));
                self.text.push_str(": ");
            }
            self.writer.r#type(&mut self.text, *of)?;
            self.argument_attributes(function.arguments.get(position))?;
            if let Some(block) = function.entry {
                self.location(tree.argument_locations[block.locations as usize + position])?;
            }
        }
        self.text.push(')');
        if !function.results.is_empty() {
            self.text.push_str(" -> (");
            for (position, of) in function.results.iter().enumerate() {
                self.text.push_str(if position > 0 { ", " } else { "" });
                self.writer.r#type(&mut self.text, *of)?;
                self.argument_attributes(function.result_attributes.get(position))?;
            }
            self.text.push(')');
        }
        let markers = [(EMPTY_ARGUMENTS, &function.arguments), (EMPTY_RESULTS, &function.result_attributes)];
        let markers = markers.into_iter().filter(|(_, list)| self.are_empty(list)).map(|(name, _)| format!("{name} = unit"));
        self.attributes(operation, &OWN, markers.collect(), " attributes ")?;
        if function.entry.is_some() {
            self.text.push_str(" {\n");
            let inner = Place { indent: place.indent + 1, is_in_function: true, is_in_one_region: false };
            for (number, block) in tree.regions_of(operation).iter().flat_map(|region| tree.blocks_of(region)).enumerate() {
                self.block(block, number, inner, number == 0)?;
            }
            self.indent(place.indent);
            self.text.push('}');
        }
        self.location(operation.location)?;
        self.text.push('\n');
        Ok(())
    }

    /// Whether a list of attributes of arguments has elements, all empty. MLIR would take them for none.
    fn are_empty(&self, list: &[AttributeId]) -> bool {
        let is_empty = |id: &AttributeId| self.bytecode.tables.attribute(*id).fields[..] == [Field::Count(0)];
        !list.is_empty() && list.iter().all(is_empty) && !self.writer.is_friendly() && !self.options.canonical
    }

    /// A function in MLIR's generic form.
    fn generic_function(&mut self, operation: &'p Operation, place: Place) -> Result<()> {
        let (bytecode, tables) = (self.bytecode, &self.bytecode.tables);
        self.text.push_str("\"func.func\"()");
        self.regions(operation, place)?;
        self.text.push_str(" {");
        let mut separator = "";
        for name in ["arg_attrs", "res_attrs"] {
            let elements: Vec<_> = bytecode.inherent(operation, name).and_then(|id| tables.array(id)).into_iter().flatten().collect();
            if elements.is_empty() {
                continue;
            }
            let _ = write!(self.text, "{separator}{name} = [");
            for (position, element) in elements.iter().enumerate() {
                self.text.push_str(if position > 0 { ", " } else { "" });
                if !self.argument_attributes(Some(element))? {
                    self.text.push_str("{}");
                }
            }
            self.text.push(']');
            separator = ", ";
        }
        let of = bytecode.inherent(operation, "function_type").map(|id| tables.attribute(id));
        if let Some((inputs, results)) = of.and_then(|of| super::entries::function_types(tables.r#type(of.types().next()?))) {
            let _ = write!(self.text, "{separator}function_type = (");
            self.types(&inputs)?;
            self.text.push_str(") -> (");
            self.types(&results)?;
            self.text.push(')');
            separator = ", ";
        }
        for name in ["sym_name", "sym_visibility"] {
            let text = bytecode.inherent(operation, name).and_then(|id| tables.string(id)).unwrap_or_default();
            if name == "sym_name" || !text.is_empty() {
                let _ = write!(self.text, "{separator}{name} = ");
                quote(&mut self.text, text);
                separator = ", ";
            }
        }
        for (name, value) in self.items(operation) {
            if !matches!(name, b"arg_attrs" | b"res_attrs" | b"function_type" | b"sym_name" | b"sym_visibility") {
                self.text.push_str(", ");
                identifier(&mut self.text, name);
                self.text.push_str(" = ");
                self.writer.attribute(&mut self.text, value)?;
            }
        }
        self.text.push_str("} : () -> ()");
        self.location(operation.location)?;
        self.text.push('\n');
        Ok(())
    }

    /// The attributes of a function's argument or result. `false`: it has none, and nothing was written.
    fn argument_attributes(&mut self, id: Option<&AttributeId>) -> Result<bool> {
        let tables = &self.bytecode.tables;
        let Some(id) = id.filter(|id| tables.attribute(**id).fields[..] != [Field::Count(0)]) else { return Ok(false) };
        self.text.push_str(if self.text.ends_with(['[', ' ']) { "{" } else { " {" });
        let items: Vec<_> = tables.dictionary(*id).into_iter().flatten().collect();
        let is_whole = 2 * items.len() + 1 == tables.attribute(*id).fields.len();
        let are_names = items.iter().all(|(name, _)| name.contains(&b'.') && std::str::from_utf8(name).is_ok());
        let are_vhlo = tables.attribute(*id).attributes().step_by(2).all(|key| tables.attribute(key).dialect == dialect::VHLO);
        if is_whole && are_names && are_vhlo && items.is_sorted_by(|(a, _), (b, _)| a < b) {
            for (position, (name, value)) in items.into_iter().enumerate() {
                self.text.push_str(if position > 0 { ", " } else { "" });
                identifier(&mut self.text, name);
                self.text.push_str(" = ");
                self.writer.attribute(&mut self.text, value)?;
            }
        } else {
            let _ = write!(self.text, "{ARGUMENT_ENTRY} = ");
            self.writer.attribute(&mut self.text, *id)?;
        }
        self.text.push('}');
        Ok(true)
    }

    /// An operation as StableHLO's own printer writes the most common ones.
    fn friendly(&mut self, operation: &'p Operation, name: &str, place: Place) -> Result<()> {
        let name = name.strip_prefix("vhlo.").map_or_else(
            || name.to_owned(),
            |name| {
                let base = name.rsplit_once("_v").filter(|(_, version)| version.bytes().all(|digit| digit.is_ascii_digit()));
                format!("stablehlo.{}", base.map_or(name, |(base, _)| base))
            },
        );
        self.text.push_str(&name);
        let value = self.bytecode.inherent(operation, "value").filter(|_| name == "stablehlo.constant");
        if let Some(value) = value {
            self.text.push(' ');
            return self.writer.attribute(&mut self.text, value);
        }
        if operation.operands.len > 0 {
            self.text.push(' ');
            self.operands(operation);
        }
        self.attributes(operation, &[], vec![], " ")?;
        self.regions(operation, place)?;
        let tree = &self.bytecode.tree;
        let types: Vec<_> = tree.operands_of(operation).iter().map(|value| tree.value_types[value.index()]).collect();
        let results = &tree.value_types[operation.results.range()];
        match types.first().or(results.first()) {
            Some(only) if types.iter().chain(results).all(|of| of == only) && results.len() <= 1 => {
                self.text.push_str(" : ");
                self.writer.r#type(&mut self.text, *only)
            }
            Some(_) => self.signature(operation),
            None => Ok(()),
        }
    }

    fn regions(&mut self, operation: &'p Operation, place: Place) -> Result<()> {
        let tree = &self.bytecode.tree;
        let regions = tree.regions_of(operation);
        if regions.is_empty() {
            return Ok(());
        }
        if self.is_shallow {
            self.text.push_str(" ({…})");
            return Ok(());
        }
        let is_function = self.bytecode.op_name(operation) == "vhlo.func_v1";
        let is_in_one_region = !is_function && (place.is_in_one_region || regions.len() == 1);
        let inner = Place { indent: place.indent + 1, is_in_function: is_function, is_in_one_region };
        self.text.push_str(" (");
        let outer = self.numbers;
        for (position, region) in regions.iter().enumerate() {
            self.text.push_str(if position > 0 { ", {\n" } else { "{\n" });
            // Names end with their region, so that what changes in one renames nothing behind it.
            self.numbers = outer;
            for (number, block) in tree.blocks_of(region).iter().enumerate() {
                // Nothing in the braces would be no block at all.
                let is_bare = number == 0 && block.arguments.len == 0 && block.first < block.end;
                self.block(block, number, inner, is_bare)?;
            }
            self.indent(place.indent);
            self.text.push('}');
        }
        self.numbers = outer;
        self.text.push(')');
        Ok(())
    }

    fn block(&mut self, block: &'p Block, number: usize, place: Place, is_bare: bool) -> Result<()> {
        let tree = &self.bytecode.tree;
        if !is_bare {
            self.indent(place.indent - 1);
            let _ = write!(self.text, "^bb{number}");
            if block.arguments.len > 0 {
                self.text.push('(');
                for (position, value) in block.arguments.range().enumerate() {
                    self.text.push_str(if position > 0 { ", " } else { "" });
                    self.argument(ValueId(value as u32));
                    self.text.push_str(": ");
                    self.writer.r#type(&mut self.text, tree.value_types[value])?;
                    self.location(tree.argument_locations[block.locations as usize + position])?;
                }
                self.text.push(')');
            }
            self.text.push_str(":\n");
        }
        for (_, inner) in tree.operations_in(block) {
            self.operation(inner, place)?;
        }
        Ok(())
    }

    /// Names an argument of a block, and writes the name.
    fn argument(&mut self, value: ValueId) {
        if let name @ Name::Unknown = &mut self.values[value.index()] {
            *name = Name::Argument(self.numbers.argument);
            self.numbers.argument += 1;
        }
        self.value(value);
    }

    /// Names the results of an operation, and writes `%name = `.
    fn results(&mut self, operation: &Operation) {
        let count = operation.results.len;
        if count == 0 {
            return;
        }
        let first = operation.results.start;
        if matches!(self.values[first as usize], Name::Unknown) {
            let number = self.numbers.result;
            self.numbers.result += 1;
            for (part, value) in operation.results.range().enumerate() {
                self.values[value] = if count == 1 { Name::Result(number) } else { Name::Part(number, part as u32) };
            }
        }
        let _ = match self.values[first as usize] {
            Name::Result(number) => write!(self.text, "%{number} = "),
            Name::Part(number, _) => write!(self.text, "%{number}:{count} = "),
            Name::EarlyPart(number, _) => write!(self.text, "%early{number}:{count} = "),
            _ => write!(self.text, "%early{first} = "),
        };
    }

    fn value(&mut self, value: ValueId) {
        if let Name::Unknown = self.values[value.index()] {
            self.name_early(value);
        }
        let _ = match self.values[value.index()] {
            Name::Argument(number) => write!(self.text, "%arg{number}"),
            Name::Result(number) => write!(self.text, "%{number}"),
            Name::Part(number, part) => write!(self.text, "%{number}#{part}"),
            Name::EarlyPart(number, part) => write!(self.text, "%early{number}#{part}"),
            Name::Early | Name::Unknown => write!(self.text, "%early{}", value.0),
        };
    }

    /// Names a value that is used before its definition, as MLIR allows inside operations that it does not know, and those defined with it.
    fn name_early(&mut self, value: ValueId) {
        let results = self.bytecode.tree.operations.iter().map(|operation| operation.results.range());
        match results.filter(|results| results.len() > 1).find(|results| results.contains(&value.index())) {
            Some(results) => {
                let first = results.start as u32;
                results.enumerate().for_each(|(part, value)| self.values[value] = Name::EarlyPart(first, part as u32));
            }
            None => self.values[value.index()] = Name::Early,
        }
    }

    fn operands(&mut self, operation: &Operation) {
        for (position, value) in self.bytecode.tree.operands_of(operation).iter().enumerate() {
            self.text.push_str(if position > 0 { ", " } else { "" });
            self.value(*value);
        }
    }

    fn operand_list(&mut self, operation: &Operation) {
        self.text.push('(');
        self.operands(operation);
        self.text.push(')');
    }

    fn successors(&mut self, operation: &Operation) {
        for (position, block) in self.bytecode.tree.successors[operation.successors.range()].iter().enumerate() {
            let _ = write!(self.text, "{}^bb{block}", if position > 0 { ", " } else { "[" });
        }
        self.text.push_str(if operation.successors.len > 0 { "]" } else { "" });
    }

    /// ` : (operands) -> results`.
    fn signature(&mut self, operation: &Operation) -> Result<()> {
        let tree = &self.bytecode.tree;
        self.text.push_str(" : (");
        self.types_of(tree.operands_of(operation))?;
        self.text.push_str(") -> ");
        let results = &tree.value_types[operation.results.range()];
        let is_function = |of: &TypeId| self.bytecode.tables.r#type(*of).is(dialect::BUILTIN, code::builtin::FUNCTION_TYPE);
        let is_bare = matches!(results, [of] if !is_function(of));
        self.text.push_str(if is_bare { "" } else { "(" });
        self.types(results)?;
        self.text.push_str(if is_bare { "" } else { ")" });
        Ok(())
    }

    fn types_of(&mut self, values: &[ValueId]) -> Result<()> {
        let types: Vec<_> = values.iter().map(|value| self.bytecode.tree.value_types[value.index()]).collect();
        self.types(&types)
    }

    fn types(&mut self, types: &[TypeId]) -> Result<()> {
        for (position, of) in types.iter().enumerate() {
            self.text.push_str(if position > 0 { ", " } else { "" });
            self.writer.r#type(&mut self.text, *of)?;
        }
        Ok(())
    }

    /// The name of the function that a call names.
    fn callee(&self, operation: &Operation) -> Option<&'p [u8]> {
        let bytecode = self.bytecode;
        bytecode.tables.string(bytecode.inherent(operation, "callee")?).filter(|name| !name.is_empty())
    }

    /// All attributes of an operation by name, sorted.
    fn items(&self, operation: &Operation) -> Vec<(&'p [u8], AttributeId)> {
        let mut items = self.bytecode.attributes_of(operation);
        items.sort();
        items
    }

    /// The attributes but those in `except`, and then `further` ones, after `before`; nothing if there are none.
    fn attributes(&mut self, operation: &'p Operation, except: &[&str], further: Vec<String>, before: &str) -> Result<()> {
        let mut separator = format!("{before}{{");
        for (name, value) in self.items(operation) {
            if except.iter().any(|except| except.as_bytes() == name) {
                continue;
            }
            let mut text = String::new();
            match self.names.in_attribute(self.bytecode, name, value, self.writer.is_friendly()) {
                Some(names) => text = names,
                None => self.writer.attribute(&mut text, value)?,
            }
            if self.writer.is_friendly() && is_default(&text) {
                continue;
            }
            self.text.push_str(&separator);
            separator = ", ".to_owned();
            identifier(&mut self.text, name);
            self.text.push_str(" = ");
            self.text.push_str(if self.writer.is_friendly() { list(&text) } else { &text });
        }
        for item in further {
            self.text.push_str(&separator);
            self.text.push_str(&item);
            separator = ", ".to_owned();
        }
        if separator == ", " {
            self.text.push('}');
        }
        Ok(())
    }

    fn location(&mut self, id: AttributeId) -> Result<()> {
        if !self.options.locations {
            return Ok(());
        }
        let reference = self.locations.reference(&mut self.writer, &self.bytecode.tables, id)?;
        let _ = write!(self.text, " loc({reference})");
        Ok(())
    }

    fn indent(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n("  ", depth));
    }

    /// Writes the text so far, once there is more than `most` of it.
    fn flush(&mut self, most: usize) -> Result<()> {
        if self.text.len() > most {
            self.out.write_all(self.text.as_bytes()).map_err(|error| Error::io("cannot write the text", &error))?;
            self.text.clear();
        }
        Ok(())
    }
}

/// Whether an attribute of StableHLO, as text for people, says only that there is none.
fn is_default(text: &str) -> bool {
    text == "!stablehlo.none" || text == "#vhlo.result_accuracy_v1<atol = 0.0, rtol = 0.0, ulps = 0, mode = DEFAULT>"
}

/// A list of numbers for people: the brackets of `dense<[1, 2]> : tensor<2xi64>`.
fn list(text: &str) -> &str {
    let elements = text.strip_prefix("dense<").and_then(|rest| rest.split_once("> : tensor<"));
    match elements {
        Some((elements, of))
            if elements.starts_with('[') && !elements.starts_with("[[") && of.ends_with("xi64>") && of.matches('x').count() == 1 =>
        {
            elements
        }
        _ => text,
    }
}
