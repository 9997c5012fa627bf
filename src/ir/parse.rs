//! Text → bytecode: MLIR's own parser reads the operations, [`super::assembly`] the attributes and types that MLIR does not know.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

mod scan;

use super::entries::OWN_DIALECT;
use super::raw::{self, LocationKind};
use super::{Attribute, Op, Program, Session, Type, assembly, export, text};
use crate::bytecode::{AttributeId, Bytecode, Entry, Field, NEWEST_VERSION, OpTree, TypeId, UseOrder, ValueId, code, dialect};
use crate::error::{Error, Result};
use crate::reader::MAX_REGION_DEPTH;

/// Reads a module from MLIR text, as [`text::write_text`] writes it. Functions are `func.func`; attributes and types are those of vhlo, sdy and builtin.
/// Operations without a location get their place in the text, under the name `file`.
///
/// What was elided from the text is missing: passes run, but [`Bytecode::write`] refuses.
///
/// # Errors
/// - [`crate::ErrorKind::Format`]: not MLIR, or not a module of vhlo; with line and column.
/// - [`crate::ErrorKind::Unsupported`]: brackets nest too deep.
pub fn parse(source: &str, file: &str) -> Result<Bytecode<'static>> {
    scan::scan(source)?;
    let mut empty = Bytecode::empty();
    let mut session = Session::new(&empty);
    let module = raw::parse(session.context(), source).ok_or_else(|| not_mlir(&session))?;
    // The module is freed with this, after everything below looked at it.
    let _owner = module.into_module().ok_or_else(|| Error::format("the text holds no module"))?;
    if let Some(producer) = module.attribute(text::PRODUCER_ATTRIBUTE) {
        let producer = producer.as_string().filter(|producer| !producer.contains(&0));
        let producer = producer.ok_or_else(|| Error::format(format!("`{}` is no string without zero bytes", text::PRODUCER_ATTRIBUTE)))?;
        empty.producer = producer.to_vec().into();
        module.remove_attribute(text::PRODUCER_ATTRIBUTE);
    }
    if let Some(version) = module.attribute(text::VERSION_ATTRIBUTE) {
        let version = version.as_integer().and_then(|version| u64::try_from(version).ok()).filter(|version| *version <= NEWEST_VERSION);
        let none = || Error::unsupported(format!("`{}` is no number from 0 to {NEWEST_VERSION}", text::VERSION_ATTRIBUTE));
        empty.version = version.ok_or_else(none)?;
        module.remove_attribute(text::VERSION_ATTRIBUTE);
    }
    let use_orders = module.attribute(text::USE_ORDERS_ATTRIBUTE).map(use_orders).transpose()?;
    module.remove_attribute(text::USE_ORDERS_ATTRIBUTE);
    session.describe(&empty, file);
    let program = Program { module, session: &session };
    check_operations(&program)?;
    program.functions()?.into_iter().try_for_each(|function| expand_markers(&session, function))?;
    // The order of uses is what JAX's writer would leave.
    session.note_change();
    let mut bytecode = export(&program, &empty)?;
    check(&bytecode)?;
    if let Some(orders) = use_orders {
        check_use_orders(&bytecode.tree, &orders)?;
        bytecode.tree.use_orders = orders;
    }
    bytecode.is_from_text = true;
    Ok(bytecode)
}

/// Checks what the reader of bytecode checks: operations, and how deep regions and entries nest.
fn check(bytecode: &Bytecode<'_>) -> Result<()> {
    let mut open: Vec<u32> = Vec::new();
    for (position, operation) in bytecode.tree.operations.iter().enumerate() {
        while open.pop_if(|end| *end as usize <= position).is_some() {}
        if operation.regions.len > 0 {
            open.push(operation.end);
        }
        let place = || super::place(&bytecode.tables, operation.location);
        if open.len() > MAX_REGION_DEPTH {
            return Err(Error::unsupported(format!("regions nest deeper than {MAX_REGION_DEPTH}, at {}", place())));
        }
        bytecode.check_operation(operation).map_err(|error| Error::format(format!("{error}, at {}", place())))?;
    }
    bytecode.tables.check_depth()
}

/// Gives the arguments or results of a function the empty dictionaries that a marker stands for. Where some are not empty, it stands for nothing.
fn expand_markers(session: &Session<'_>, function: Op<'_>) -> Result<()> {
    let factory = session.factory();
    let types = function.attribute("function_type").and_then(|of| of.as_type()?.function_arity());
    let (inputs, results) = types.unwrap_or_default();
    for (marker, name, count) in [(text::EMPTY_ARGUMENTS, "arg_attrs", inputs), (text::EMPTY_RESULTS, "res_attrs", results)] {
        if function.attribute(marker).is_some() {
            if function.attribute(name).is_some() {
                let place = session.place(function);
                let error = Error::format(format!("a function has both `{marker}` and attributes of its own for them, at {place}"));
                return Err(error.with_hint("the mark stands for empty ones: remove one or the other"));
            }
            function.remove_attribute(marker);
            function.set_attribute(name, factory.array(&vec![factory.dictionary(&[]); count]));
        }
    }
    Ok(())
}

fn use_orders(attribute: Attribute<'_>) -> Result<Vec<UseOrder>> {
    let number = |attribute: Attribute<'_>| attribute.as_integer().and_then(|number| u32::try_from(number).ok());
    let order = |attribute: Attribute<'_>| {
        let numbers: Vec<u32> = attribute.as_array()?.into_iter().map(number).collect::<Option<_>>()?;
        let (value, order) = numbers.split_first()?;
        Some(UseOrder { value: ValueId(*value), order: order.to_vec() })
    };
    let orders = attribute.as_array().and_then(|orders| orders.into_iter().map(order).collect::<Option<Vec<_>>>());
    orders.ok_or_else(|| Error::format(format!("`{}` is no list of lists of numbers", text::USE_ORDERS_ATTRIBUTE)))
}

/// Checks that each order is a permutation of the uses of its value, and that the values ascend.
fn check_use_orders(tree: &OpTree, orders: &[UseOrder]) -> Result<()> {
    let mut uses = vec![0usize; tree.value_types.len()];
    tree.operands.iter().for_each(|value| uses[value.index()] += 1);
    let is_permutation = |order: &UseOrder| {
        let mut sorted = order.order.clone();
        sorted.sort_unstable();
        uses.get(order.value.index()) == Some(&sorted.len())
            && sorted.iter().enumerate().all(|(position, number)| position == *number as usize)
    };
    if orders.iter().all(is_permutation) && orders.is_sorted_by(|a, b| a.value < b.value) {
        return Ok(());
    }
    let name = text::USE_ORDERS_ATTRIBUTE;
    Err(Error::format(format!("`{name}` does not fit the uses of the module's values")).with_hint("remove it; it has no meaning"))
}

/// What MLIR said of text that it could not read.
fn not_mlir(session: &Session<'_>) -> Error {
    let said = session.take_located_diagnostics();
    let lines = said.iter().map(|diagnostic| match diagnostic.position {
        Some((line, column)) => format!("{} (line {line}, column {column})", diagnostic.message),
        None => diagnostic.message.clone(),
    });
    Error::format(lines.collect::<Vec<_>>().join("; ")).context("MLIR cannot read the text")
}

/// Checks what bytecode gives by its form: names of operations, and attributes that must be there.
fn check_operations(program: &Program<'_, '_>) -> Result<()> {
    let mut found: Result<()> = Ok(());
    Program::walk(program.module, |operation| {
        if found.is_ok() {
            found = check_operation(program, operation);
        }
    });
    found
}

fn check_operation(program: &Program<'_, '_>, operation: Op<'_>) -> Result<()> {
    let name = operation.name_str();
    let refuse = |what: String| {
        let place = program.session.place(operation);
        Error::format(format!("{what}, at {place}"))
    };
    if operation.successor_count() > 0 {
        return Err(refuse(format!("operation `{name}` branches between blocks")));
    }
    check_entries(program, operation).map_err(|error| error.context(refuse(format!("cannot read operation `{name}`")).to_string()))?;
    if matches!(name, "func.func" | "func.call" | "func.return") {
        return Ok(());
    }
    let hint = "functions are `func.func`, `call` and `return`, other operations those of vhlo and sdy, as in `\"vhlo.add_v1\"`";
    let is_own = name.starts_with("jaxprism.");
    let is_known = is_own || matches!(name.split_once('.'), Some(("vhlo" | "sdy" | "builtin", _)));
    if !is_known || name == "vhlo.func_v1" {
        return Err(refuse(format!("operation `{name}` does not stand in a portable artifact")).with_hint(hint));
    }
    if is_own {
        let is_sound = passes_can_use(program, operation);
        let shape = "`\"jaxprism.platform_value\"() {value = 1 : i64} : () -> …`, with a tensor of integers as its result";
        return if is_sound { Ok(()) } else { Err(refuse(format!("operation `{name}` is not {shape}"))) };
    }
    let id = program.session.op_name_id(operation.name())?;
    let row = program.session.tables().op_row(id);
    let Some(row) = row else { return Err(refuse(format!("operation `{name}` is not known"))) };
    for property in row.properties {
        let wanted = property.trim_end_matches('?');
        // MLIR's tools write `<{…}>`, which MLIR keeps apart in operations that it does not know.
        let inherent = operation.inherent_attribute(wanted).filter(|_| !name.starts_with("builtin."));
        match (inherent, operation.discardable_attribute(wanted)) {
            (Some(_), Some(_)) => return Err(refuse(format!("operation `{name}` has two attributes `{wanted}`"))),
            (Some(value), None) => operation.set_discardable_attribute(wanted, value),
            (None, None) if wanted == *property => return Err(refuse(format!("operation `{name}` has no attribute `{wanted}`"))),
            (None, _) => {}
        }
    }
    Ok(())
}

/// Whether an operation that only passes see is as they make it: a value that the platform decides, perhaps beside the operation that computes it.
fn passes_can_use(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    let has_value = operation.attribute("value").and_then(Attribute::as_integer).is_some();
    let is_integer = |value: super::Value<'_>| super::constants::integer(program.session, value.r#type()).is_some();
    let is_alike = operation.result_count() == 1 && operation.operands().all(|operand| operand.r#type() == operation.result(0).r#type());
    operation.is("jaxprism.platform_value")
        && has_value
        && operation.operand_count() <= 1
        && is_alike
        && operation.results().all(is_integer)
}

/// Looks at every attribute and type of an operation, so that what cannot be read is told with the operation.
fn check_entries(program: &Program<'_, '_>, operation: Op<'_>) -> Result<()> {
    let session = program.session;
    for (name, value) in operation.attributes() {
        session.attribute_id(value).map_err(|error| error.context(format!("attribute `{}`", name.as_str())))?;
    }
    let arguments = operation.regions().flat_map(|region| region.blocks()).flat_map(|block| block.arguments());
    operation.results().chain(arguments).try_for_each(|value| session.type_id(value.r#type()).map(drop))
}

impl<'a> Session<'a> {
    /// The entry of an attribute that MLIR's parser made. Those of all that it holds are there.
    pub(super) fn read_attribute(&self, attribute: Attribute<'_>) -> Result<AttributeId> {
        use code::builtin as b;
        if let Some(text) = attribute.as_string() {
            return Ok(self.add_string(text));
        }
        let builtin = |code, fields: Vec<Field<'a>>| self.intern(Entry::new(dialect::BUILTIN, code, fields));
        if let Some((dialect, body)) = attribute.as_opaque() {
            let text = opaque('#', dialect, body);
            return assembly::read_attribute(&mut self.tables_mut(), &text).map_err(|error| error.context(cannot_read("attribute", &text)));
        }
        if let Some(elements) = attribute.as_array() {
            let mut fields = vec![Field::Count(elements.len() as u32)];
            for element in elements {
                fields.push(Field::Attribute(self.attribute_id(element)?));
            }
            return Ok(builtin(b::ARRAY, fields));
        }
        if let Some(items) = attribute.as_dictionary() {
            let mut fields = vec![Field::Count(items.len() as u32)];
            for (name, value) in items {
                fields.push(Field::Attribute(self.add_string(name.as_bytes())));
                fields.push(Field::Attribute(self.attribute_id(value)?));
            }
            return Ok(builtin(b::DICTIONARY, fields));
        }
        if let Some(of) = attribute.as_type() {
            return Ok(builtin(b::TYPE, vec![Field::Type(self.type_id(of)?)]));
        }
        if let Some(kind) = attribute.as_location_kind() {
            return self.read_location(kind);
        }
        let text = attribute.is_leaf().then(|| attribute.leaf_text());
        match text {
            Some(text) => assembly::read_attribute(&mut self.tables_mut(), &text),
            None => Err(Error::format("an attribute is of a kind that portable artifacts do not hold in text")
                .with_hint("constants of vhlo are `#vhlo.tensor_v1<dense<…> : tensor<…>>`")),
        }
    }

    fn read_location(&self, kind: LocationKind<'_>) -> Result<AttributeId> {
        use code::builtin as b;
        let builtin = |code, fields: Vec<Field<'a>>| Ok(self.intern(Entry::new(dialect::BUILTIN, code, fields)));
        let number = |number: u32| Field::Unsigned(u64::from(number));
        match kind {
            LocationKind::Unknown => builtin(b::LOC_UNKNOWN, vec![]),
            LocationKind::File(file, [line, column, end_line, end_column]) => {
                let file = if file == text::NAMELESS { self.add_string(self.file.as_bytes()) } else { self.add_string(file) };
                let file = Field::Attribute(file);
                if (line, column) == (end_line, end_column) {
                    return builtin(b::LOC_FILE, vec![file, number(line), number(column)]);
                }
                if line == end_line {
                    return builtin(b::LOC_FILE_RANGE, vec![file, Field::Count(3), number(line), number(column), number(end_column)]);
                }
                builtin(b::LOC_FILE_RANGE, vec![file, Field::Count(4), number(line), number(column), number(end_line), number(end_column)])
            }
            LocationKind::Name(name, child) => {
                let fields = vec![Field::Attribute(self.add_string(name)), Field::Attribute(self.attribute_id(child)?)];
                builtin(b::LOC_NAME, fields)
            }
            LocationKind::CallSite(callee, caller) => {
                builtin(b::LOC_CALLSITE, vec![Field::Attribute(self.attribute_id(callee)?), Field::Attribute(self.attribute_id(caller)?)])
            }
            LocationKind::Fused(parts, metadata) => {
                let is_own = |metadata: &Attribute<'_>| metadata.as_opaque().is_some_and(|(dialect, _)| dialect == OWN_DIALECT.as_bytes());
                if let ([unknown], Some(entry)) = (&parts[..], metadata.filter(is_own))
                    && matches!(unknown.as_location_kind(), Some(LocationKind::Unknown))
                {
                    // It stands for a location which MLIR would make another of.
                    return self.attribute_id(entry);
                }
                let mut fields = vec![Field::Count(parts.len() as u32)];
                for part in parts {
                    fields.push(Field::Attribute(self.attribute_id(part)?));
                }
                match metadata {
                    Some(metadata) => {
                        fields.push(Field::Attribute(self.attribute_id(metadata)?));
                        builtin(b::LOC_FUSED_METADATA, fields)
                    }
                    None => builtin(b::LOC_FUSED, fields),
                }
            }
        }
    }

    /// The entry of a type that MLIR's parser made. Those of all that it holds are there.
    pub(super) fn read_type(&self, of: Type<'_>) -> Result<TypeId> {
        use code::builtin as b;
        let builtin = |code, fields: Vec<Field<'a>>| Ok(self.tables_mut().intern_type(Entry::new(dialect::BUILTIN, code, fields)));
        let list = |types: Vec<Type<'_>>| -> Result<Vec<Field<'a>>> {
            let mut fields = vec![Field::Count(types.len() as u32)];
            for of in types {
                fields.push(Field::Type(self.type_id(of)?));
            }
            Ok(fields)
        };
        if let Some((dialect, body)) = of.as_opaque() {
            let text = opaque('!', dialect, body);
            return assembly::read_type(&mut self.tables_mut(), &text).map_err(|error| error.context(cannot_read("type", &text)));
        }
        if let Some((inputs, results)) = of.as_function() {
            let mut fields = list(inputs)?;
            fields.append(&mut list(results)?);
            return builtin(b::FUNCTION_TYPE, fields);
        }
        if let Some(types) = of.as_tuple() {
            return builtin(b::TUPLE_TYPE, list(types)?);
        }
        if let Some((shape, element, encoding)) = of.as_tensor() {
            let mut fields = match encoding {
                Some(encoding) => vec![Field::Attribute(self.attribute_id(encoding)?)],
                None => vec![],
            };
            let code = if fields.is_empty() { b::TENSOR_TYPE } else { b::TENSOR_WITH_ENCODING_TYPE };
            fields.push(Field::Count(shape.len() as u32));
            fields.extend(shape.into_iter().map(Field::Signed));
            fields.push(Field::Type(self.type_id(element)?));
            return builtin(code, fields);
        }
        if of.is_leaf() {
            return assembly::read_type(&mut self.tables_mut(), &of.leaf_text());
        }
        Err(Error::format("a type is of a kind that portable artifacts do not hold in text"))
    }
}

/// An attribute or type of a dialect that MLIR does not know, as it stood in the text.
fn opaque(sigil: char, dialect: &[u8], body: &[u8]) -> String {
    let (dialect, body) = (String::from_utf8_lossy(dialect), String::from_utf8_lossy(body));
    let word = body.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte)).count();
    let is_dotted = word == body.len() || (body[word..].starts_with('<') && body.ends_with('>'));
    if is_dotted && word > 0 { format!("{sigil}{dialect}.{body}") } else { format!("{sigil}{dialect}<{body}>") }
}

fn cannot_read(what: &str, text: &str) -> String {
    let start: String = text.chars().take(60).collect();
    let rest = if start.len() < text.len() { "…" } else { "" };
    format!("cannot read the {what} `{start}{rest}`")
}
