//! Entries → text.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use std::borrow::Cow;
use std::fmt::Write;

use super::number::{ARRAY_ELEMENTS, Element, write_float};
use super::syntax::{self, ELEMENT_TYPES, Enumeration, Syntax};
use crate::bytecode::{AttributeId, Code, Entry, Field, Kind, Tables, TypeId, code, dialect, entry_row};
use crate::error::{Error, Result};

/// How text is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// As it is: the text can be read back.
    #[default]
    Vhlo,
    /// As the StableHLO it stands for, for people. Cannot be read back.
    Stablehlo,
}

/// Which constants are written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constants {
    /// All of them.
    All,
    /// Those of at most so many elements; one value for all elements is one.
    UpTo(usize),
    /// Those of at most so many elements, and of others a hash of their bytes.
    Hashed(usize),
}

/// Another name for a symbol, if it has one.
pub type Rename<'t> = &'t dyn Fn(&[u8]) -> Option<String>;

/// Writes entries of one module.
pub struct Writer<'t, 'a> {
    tables: &'t Tables<'a>,
    form: Form,
    constants: Constants,
    rename: Option<Rename<'t>>,
    /// Entries that may still be written. They can name one another exponentially often, and each can be large.
    left: u64,
}

/// As many bytes of an entry's own count as much as an entry.
const BYTES_OF_AN_ENTRY: u64 = 64;

/// What an entry's own spelling cannot say.
struct Lossy;

type Plain = std::result::Result<(), Lossy>;

/// Elements of a constant that are written as numbers; of more, the bytes are, as MLIR does.
const MOST_NUMBERS: u64 = 100;
/// Brackets around the numbers of a constant; what has more dimensions is written as bytes.
pub(super) const MOST_DIMENSIONS: usize = 64;

impl<'t, 'a> Writer<'t, 'a> {
    /// A writer for a module of so many items: operations, values, operands. It writes no more than real modules need.
    pub fn new(tables: &'t Tables<'a>, form: Form, constants: Constants, items: usize) -> Self {
        // Real modules stay below ten entries for each item of theirs, and name large ones once.
        let bytes = |entry: &Entry<'_>| entry.bytes().map_or(0, |bytes| bytes.0.len() as u64);
        let bytes: u64 = (0..tables.attribute_count()).map(|id| bytes(tables.attribute(AttributeId(id as u32)))).sum();
        let left = 2_000_000 + 200 * items as u64 + 4 * (bytes / BYTES_OF_AN_ENTRY);
        Self { tables, form, constants, rename: None, left }
    }

    /// Lets other names stand for those of symbols.
    pub fn rename_symbols(mut self, rename: Rename<'t>) -> Self {
        self.rename = Some(rename);
        self
    }

    /// Whether text is written to be read by people alone.
    pub fn is_friendly(&self) -> bool {
        self.form == Form::Stablehlo
    }

    /// Writes an attribute. Recurses into its fields, whose depth the reader of the bytecode has checked.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] when the limit is reached: attributes name one another so often that their text has no end.
    pub fn attribute(&mut self, out: &mut String, id: AttributeId) -> Result<()> {
        let entry = self.tables.attribute(id);
        self.spend(entry)?;
        let start = out.len();
        match self.plain_attribute(out, entry)? {
            Ok(()) => Ok(()),
            Err(Lossy) => {
                out.truncate(start);
                out.push('#');
                self.fields(out, entry, false)
            }
        }
    }

    /// Writes a type.
    ///
    /// # Errors
    /// As [`Writer::attribute`].
    pub fn r#type(&mut self, out: &mut String, id: TypeId) -> Result<()> {
        let entry = self.tables.r#type(id);
        self.spend(entry)?;
        let start = out.len();
        match self.plain_type(out, entry)? {
            Ok(()) => Ok(()),
            Err(Lossy) => {
                out.truncate(start);
                out.push('!');
                self.fields(out, entry, true)
            }
        }
    }

    /// Writes an attribute field by field, whatever spelling it has.
    ///
    /// # Errors
    /// As [`Writer::attribute`].
    pub fn attribute_by_fields(&mut self, out: &mut String, id: AttributeId) -> Result<()> {
        let entry = self.tables.attribute(id);
        self.spend(entry)?;
        out.push('#');
        self.fields(out, entry, false)
    }

    /// Writes a type field by field, whatever spelling it has.
    ///
    /// # Errors
    /// As [`Writer::attribute`].
    pub fn type_by_fields(&mut self, out: &mut String, id: TypeId) -> Result<()> {
        let entry = self.tables.r#type(id);
        self.spend(entry)?;
        out.push('!');
        self.fields(out, entry, true)
    }

    /// Takes an entry from the limit, and its bytes should they be many.
    fn spend(&mut self, entry: &Entry<'_>) -> Result<()> {
        let bytes = entry.bytes().map_or(0, |bytes| bytes.0.len() as u64);
        self.left = self
            .left
            .checked_sub(1 + bytes / BYTES_OF_AN_ENTRY)
            .ok_or_else(|| Error::unsupported("the attributes of the module name one another so often that their text would not end"))?;
        Ok(())
    }

    fn plain_attribute(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Result<Plain> {
        let Code::Known(code) = entry.code else { return Ok(Err(Lossy)) };
        if entry.identity != 0 {
            return Ok(Err(Lossy));
        }
        match entry.dialect {
            dialect::BUILTIN => self.builtin_attribute(out, code, &entry.fields),
            dialect::VHLO => self.vhlo_attribute(out, code, entry),
            dialect::SDY => Ok(self.sdy_attribute(out, entry).unwrap_or(Err(Lossy))),
            _ => self.by_syntax(out, entry, false, code),
        }
    }

    fn builtin_attribute(&mut self, out: &mut String, code: u8, fields: &'t [Field<'a>]) -> Result<Plain> {
        use code::builtin as b;
        match (code, fields) {
            (b::STRING, [Field::String(text)]) => quote(out, &text.0),
            (b::UNIT, []) => out.push_str("unit"),
            (b::TYPE, [Field::Type(of)]) => self.r#type(out, *of)?,
            (b::FLAT_SYMBOL_REF, [Field::Attribute(name)]) => return Ok(self.symbol(out, *name)),
            (b::SYMBOL_REF, [Field::Attribute(root), Field::Count(count), nested @ ..]) if *count > 0 => {
                if self.symbol(out, *root).is_err() {
                    return Ok(Err(Lossy));
                }
                for field in nested {
                    let Field::Attribute(id) = field else { return Ok(Err(Lossy)) };
                    let entry = self.tables.attribute(*id);
                    let [Field::Attribute(name)] = entry.fields[..] else { return Ok(Err(Lossy)) };
                    out.push_str("::");
                    if !entry.is(dialect::BUILTIN, b::FLAT_SYMBOL_REF) || self.symbol(out, name).is_err() {
                        return Ok(Err(Lossy));
                    }
                }
            }
            (b::ARRAY, [Field::Count(_), elements @ ..]) => {
                out.push('[');
                self.list(out, elements)?;
                out.push(']');
            }
            (b::DICTIONARY, [Field::Count(_), items @ ..]) => return self.dictionary(out, items),
            (b::DENSE_ARRAY, [Field::Type(of), Field::Unsigned(count), Field::Blob(bytes)]) => {
                return Ok(self.dense_array(out, *of, *count, &bytes.0).ok_or(Lossy));
            }
            (b::INTEGER, [Field::Type(of), Field::Unsigned(bits)]) => return self.integer(out, *of, *bits),
            (b::FLOAT, [Field::Type(of), Field::Unsigned(bits)]) => {
                let entry = self.tables.r#type(*of);
                let mut name = String::new();
                self.r#type(&mut name, *of)?;
                match Element::named(&name) {
                    Some(Element::Float(exponent, fraction)) if matches!(entry.code, Code::Known(_)) => {
                        let _ = write!(out, "{} : {name}", write_float(*bits, exponent, fraction));
                    }
                    _ => return Ok(Err(Lossy)),
                }
            }
            _ => return Ok(Err(Lossy)),
        }
        Ok(Ok(()))
    }

    /// A builtin dictionary, if its keys are in the order in which MLIR keeps them.
    fn dictionary(&mut self, out: &mut String, items: &'t [Field<'a>]) -> Result<Plain> {
        let pair = |pair: &[Field<'_>]| match pair {
            [Field::Attribute(key), Field::Attribute(value)] => Some((self.builtin_string(*key)?, *value)),
            _ => None,
        };
        let Some(pairs) = items.chunks(2).map(pair).collect::<Option<Vec<_>>>() else { return Ok(Err(Lossy)) };
        let are_names = pairs.iter().all(|(key, _)| !key.is_empty() && std::str::from_utf8(key).is_ok());
        if !are_names || !pairs.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Ok(Err(Lossy));
        }
        out.push('{');
        for (position, (key, value)) in pairs.into_iter().enumerate() {
            out.push_str(if position > 0 { ", " } else { "" });
            identifier(out, key);
            out.push_str(" = ");
            self.attribute(out, value)?;
        }
        out.push('}');
        Ok(Ok(()))
    }

    /// `array<i32: 1, 2>`. `None`: too long to be written, or not as MLIR makes it.
    fn dense_array(&self, out: &mut String, of: TypeId, count: u64, bytes: &[u8]) -> Option<()> {
        let of = self.tables.r#type(of);
        let (name, element) = ARRAY_ELEMENTS.into_iter().find(|(name, _)| is_builtin_named(of, name))?;
        let most = match self.constants {
            Constants::All => usize::MAX,
            Constants::UpTo(most) | Constants::Hashed(most) => most,
        };
        if bytes.len() > most.saturating_mul(element.bytes()) || count.checked_mul(element.bytes() as u64) != Some(bytes.len() as u64) {
            return None;
        }
        let _ = write!(out, "array<{name}");
        for (position, chunk) in bytes.chunks(element.bytes()).enumerate() {
            let mut bits = [0; 8];
            bits.get_mut(..chunk.len())?.copy_from_slice(chunk);
            let _ = write!(out, "{} {}", if position > 0 { "," } else { ":" }, element.write(u64::from_le_bytes(bits))?);
        }
        out.push('>');
        Some(())
    }

    fn integer(&mut self, out: &mut String, of: TypeId, bits: u64) -> Result<Plain> {
        let entry = self.tables.r#type(of);
        let mut name = String::new();
        self.r#type(&mut name, of)?;
        let element = match (entry.code, &entry.fields[..]) {
            (Code::Known(code::builtin::INTEGER_TYPE), [Field::Unsigned(packed)]) if entry.dialect == dialect::BUILTIN => {
                let width = (packed >> 2) as u32;
                match packed & 3 {
                    0 if width == 1 => {
                        out.push_str(if bits == 0 { "false" } else { "true" });
                        return Ok(if bits > 1 { Err(Lossy) } else { Ok(()) });
                    }
                    2 if (1..=64).contains(&width) => Element::Unsigned(width),
                    _ if (1..=64).contains(&width) => Element::Signed(width),
                    _ => return Ok(Err(Lossy)),
                }
            }
            (Code::Known(code::builtin::INDEX_TYPE), []) if entry.dialect == dialect::BUILTIN => Element::Signed(64),
            _ => return Ok(Err(Lossy)),
        };
        Ok(number(out, element, bits, &name))
    }

    fn vhlo_attribute(&mut self, out: &mut String, code: u8, entry: &'t Entry<'a>) -> Result<Plain> {
        use code::vhlo as v;
        let is_friendly = self.is_friendly();
        match (code, &entry.fields[..]) {
            (v::BOOL, [Field::Unsigned(value @ (0 | 1))]) => {
                let text = if *value == 1 { "true" } else { "false" };
                let _ = if is_friendly { write!(out, "{text}") } else { write!(out, "#vhlo.bool_v1<{text}>") };
                Ok(Ok(()))
            }
            (v::INTEGER, [Field::Type(of), Field::Unsigned(bits)]) => {
                let Some((name, element)) = self.element(*of) else { return Ok(Err(Lossy)) };
                let mut text = String::new();
                if number(&mut text, element, *bits, name).is_err()
                    || matches!(element, Element::Bool | Element::Float(..) | Element::Bits(_))
                {
                    return Ok(Err(Lossy));
                }
                let _ = if is_friendly { write!(out, "{text}") } else { write!(out, "#vhlo.integer_v1<{text}>") };
                Ok(Ok(()))
            }
            (v::FLOAT, [Field::Type(of), Field::Unsigned(bits)]) => {
                let Some((_, Element::Float(exponent, fraction))) = self.element(*of) else { return Ok(Err(Lossy)) };
                let text = write_float(*bits, exponent, fraction);
                // StableHLO takes hexadecimal digits here for those of an f64, whatever the type.
                if text.starts_with("0x") && !is_friendly {
                    return Ok(Err(Lossy));
                }
                let mut name = String::new();
                self.r#type(&mut name, *of)?;
                let _ = if is_friendly { write!(out, "{text} : {name}") } else { write!(out, "#vhlo.float_v1<{text} : {name}>") };
                Ok(Ok(()))
            }
            (v::TENSOR, [Field::Type(of), data]) => self.tensor(out, *of, data),
            // It names its mesh by a string.
            (v::REPLICA_GROUP_MESH_AXES, [Field::Attribute(mesh), Field::Attribute(axes)]) if self.is_renamed(*mesh) => {
                out.push_str("#vhlo.replica_group_mesh_axes_v1<mesh = ");
                self.symbol_name(out, self.tables.string(*mesh).unwrap_or_default());
                out.push_str(", axes = ");
                self.attribute(out, *axes)?;
                out.push('>');
                Ok(Ok(()))
            }
            (v::STRING, [Field::String(text)]) if is_friendly => {
                quote(out, &text.0);
                Ok(Ok(()))
            }
            (v::ARRAY, [Field::Count(_), elements @ ..]) if is_friendly => {
                out.push('[');
                self.list(out, elements)?;
                out.push(']');
                Ok(Ok(()))
            }
            (v::DICT, [Field::Count(_), items @ ..]) if is_friendly => {
                out.push('{');
                self.pairs(out, items)?;
                out.push('}');
                Ok(Ok(()))
            }
            (v::TYPE, [Field::Type(of)]) if is_friendly => self.r#type(out, *of).map(Ok),
            (code, [Field::Unsigned(number)]) => {
                let found = Enumeration::of_code(code).and_then(|row| Some((row.name, row.value(*number)?)));
                let Some((name, value)) = found else { return self.by_syntax(out, entry, false, code) };
                let _ = if is_friendly { write!(out, "{value}") } else { write!(out, "#vhlo<{name} {value}>") };
                Ok(Ok(()))
            }
            _ => self.by_syntax(out, entry, false, code),
        }
    }

    /// The builtin name of an element type of vhlo, and how its values are stored.
    fn element(&self, id: TypeId) -> Option<(&'static str, Element)> {
        let entry = self.tables.r#type(id);
        let Code::Known(code) = entry.code else { return None };
        let (_, name) = ELEMENT_TYPES.iter().find(|(known, _)| entry.dialect == dialect::VHLO && *known == code)?;
        Some((name, Element::named(name)?))
    }

    /// `tensor_v1`: the elements of a constant.
    fn tensor(&mut self, out: &mut String, of: TypeId, data: &'t Field<'a>) -> Result<Plain> {
        let entry = self.tables.r#type(of);
        if !entry.is(dialect::VHLO, code::vhlo::TENSOR_TYPE) {
            return Ok(Err(Lossy));
        }
        let Some((shape, element)) = self.tables.tensor(of) else { return Ok(Err(Lossy)) };
        let complex = self.tables.r#type(element);
        let is_complex = complex.is(dialect::VHLO, code::vhlo::COMPLEX_TYPE);
        let part = if is_complex { complex.types().next() } else { Some(element) };
        let Some((name, element)) = part.and_then(|part| self.element(part)) else { return Ok(Err(Lossy)) };
        let is_friendly = self.is_friendly();
        out.push_str(if is_friendly { "dense<" } else { "#vhlo.tensor_v1<dense<" });
        if let Field::Blob(bytes) = data {
            let elements = Elements { shape: Cow::Borrowed(&shape[..]), element, is_complex, bytes: &bytes.0 };
            match self.constants {
                Constants::UpTo(limit) if elements.stored() > limit as u64 => out.push_str("elided"),
                Constants::Hashed(limit) if elements.stored() > limit as u64 => {
                    let _ = write!(out, "hash \"{:016x}\"", hash(&bytes.0));
                }
                _ => {
                    if !elements.write(out) {
                        return Ok(Err(Lossy));
                    }
                }
            }
        } else {
            out.push_str("elided");
        }
        out.push_str("> : tensor<");
        dimensions(out, &shape);
        let _ = if is_complex { write!(out, "complex<{name}>>") } else { write!(out, "{name}>") };
        if !is_friendly {
            out.push('>');
        }
        Ok(Ok(()))
    }

    /// The elements of a constant, where they are numbers.
    pub(crate) fn elements(&self, id: AttributeId) -> Option<Elements<'t>> {
        let entry = self.tables.attribute(id);
        let [Field::Type(of), Field::Blob(bytes)] = &entry.fields[..] else { return None };
        let (shape, element) = self.tables.tensor(*of).filter(|_| entry.is(dialect::VHLO, code::vhlo::TENSOR))?;
        let complex = self.tables.r#type(element);
        let is_complex = complex.is(dialect::VHLO, code::vhlo::COMPLEX_TYPE);
        let (_, element) = self.element(if is_complex { complex.types().next()? } else { element })?;
        Some(Elements { shape: shape.into(), element, is_complex, bytes: &bytes.0 })
    }

    /// Shardy's attributes as Shardy spells them. `None`: not as Shardy makes them.
    fn sdy_attribute(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Option<Plain> {
        use code::sdy as s;
        let Code::Known(code) = entry.code else { return None };
        match (code, &entry.fields[..]) {
            (s::MESH, _) => {
                out.push_str("#sdy.mesh");
                self.mesh(out, entry)?;
            }
            (s::MANUAL_AXES, [Field::Count(_), axes @ ..]) => {
                out.push_str("#sdy<manual_axes{");
                for (position, axis) in axes.iter().enumerate() {
                    let Field::Attribute(axis) = axis else { return None };
                    out.push_str(if position > 0 { ", " } else { "" });
                    quote(out, self.builtin_string(*axis)?);
                }
                out.push_str("}>");
            }
            (s::SHARDING | s::SHARDING_UNREDUCED, _) => {
                out.push_str("#sdy.sharding");
                self.sharding(out, entry)?;
            }
            (s::SHARDING_PER_VALUE | s::SHARDING_PER_VALUE_UNREDUCED, [Field::Count(_), shardings @ ..]) => {
                let entries: Vec<_> = entry.attributes().map(|id| self.tables.attribute(id)).collect();
                let is_unreduced = entries.iter().any(|entry| !entry.is(dialect::SDY, s::SHARDING));
                if is_unreduced != (code == s::SHARDING_PER_VALUE_UNREDUCED) || entries.len() != shardings.len() {
                    return None;
                }
                out.push_str("#sdy.sharding_per_value<[");
                for (position, entry) in entries.into_iter().enumerate() {
                    out.push_str(if position > 0 { ", " } else { "" });
                    self.sharding(out, entry)?;
                }
                out.push_str("]>");
            }
            _ => return None,
        }
        Some(Ok(()))
    }

    fn mesh(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Option<()> {
        let (axes, rest) = counted(&entry.fields)?;
        let (ids, []) = counted(rest)? else { return None };
        out.push_str("<[");
        for (position, axis) in axes.iter().enumerate() {
            let Field::Attribute(axis) = axis else { return None };
            let axis = self.tables.attribute(*axis);
            let (true, [Field::String(name), Field::Signed(size)]) = (axis.is(dialect::SDY, code::sdy::MESH_AXIS), &axis.fields[..]) else {
                return None;
            };
            out.push_str(if position > 0 { ", " } else { "" });
            quote(out, &name.0);
            let _ = write!(out, "={size}");
        }
        out.push(']');
        if !ids.is_empty() {
            out.push_str(", device_ids=[");
            signed_list(out, ids)?;
            out.push(']');
        }
        out.push('>');
        Some(())
    }

    fn sharding(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Option<()> {
        let is_unreduced = entry.is(dialect::SDY, code::sdy::SHARDING_UNREDUCED);
        if !is_unreduced && !entry.is(dialect::SDY, code::sdy::SHARDING) {
            return None;
        }
        let [Field::Attribute(mesh), rest @ ..] = &entry.fields[..] else { return None };
        let (dimensions, rest) = counted(rest)?;
        let (replicated, rest) = counted(rest)?;
        let (unreduced, rest) = if is_unreduced { counted(rest)? } else { (&[][..], rest) };
        if !rest.is_empty() || (is_unreduced && unreduced.is_empty()) {
            return None;
        }
        out.push('<');
        let mesh = self.tables.attribute(*mesh);
        match (mesh.dialect, mesh.code, &mesh.fields[..]) {
            (dialect::BUILTIN, Code::Known(code::builtin::FLAT_SYMBOL_REF), [Field::Attribute(name)]) => self.symbol(out, *name).ok()?,
            (dialect::SDY, Code::Known(code::sdy::MESH), _) => {
                out.push_str("mesh");
                self.mesh(out, mesh)?;
            }
            _ => return None,
        }
        out.push_str(", [");
        for (position, dimension) in dimensions.iter().enumerate() {
            let Field::Attribute(id) = dimension else { return None };
            out.push_str(if position > 0 { ", " } else { "" });
            self.dimension_sharding(out, self.tables.attribute(*id))?;
        }
        out.push(']');
        for (name, axes) in [("replicated", replicated), ("unreduced", unreduced)] {
            if !axes.is_empty() {
                let _ = write!(out, ", {name}={{");
                self.axes(out, axes)?;
                out.push('}');
            }
        }
        out.push('>');
        Some(())
    }

    fn dimension_sharding(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Option<()> {
        let (axes, rest) = counted(&entry.fields)?;
        let [Field::Unsigned(is_closed @ (0 | 1)), priority] = rest else { return None };
        if !entry.is(dialect::SDY, code::sdy::DIMENSION_SHARDING) {
            return None;
        }
        out.push('{');
        self.axes(out, axes)?;
        if *is_closed == 0 {
            out.push_str(if axes.is_empty() { "?" } else { ", ?" });
        }
        out.push('}');
        match priority {
            Field::Absent => {}
            Field::Unsigned(priority) => _ = write!(out, "p{priority}"),
            _ => return None,
        }
        Some(())
    }

    fn axes(&mut self, out: &mut String, axes: &'t [Field<'a>]) -> Option<()> {
        use code::sdy as s;
        for (position, axis) in axes.iter().enumerate() {
            let Field::Attribute(axis) = axis else { return None };
            let axis = self.tables.attribute(*axis);
            let (true, [Field::String(name), part]) = (axis.is(dialect::SDY, s::AXIS_REF), &axis.fields[..]) else { return None };
            out.push_str(if position > 0 { ", " } else { "" });
            quote(out, &name.0);
            match part {
                Field::Absent => {}
                Field::Attribute(part) => {
                    let part = self.tables.attribute(*part);
                    let (true, [Field::Signed(before), Field::Signed(size)]) = (part.is(dialect::SDY, s::SUB_AXIS_INFO), &part.fields[..])
                    else {
                        return None;
                    };
                    let _ = write!(out, ":({before}){size}");
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn plain_type(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Result<Plain> {
        let Code::Known(code) = entry.code else { return Ok(Err(Lossy)) };
        match entry.dialect {
            dialect::BUILTIN => self.builtin_type(out, code, entry),
            dialect::VHLO => self.vhlo_type(out, code, entry),
            _ => Ok(Err(Lossy)),
        }
    }

    fn builtin_type(&mut self, out: &mut String, code: u8, entry: &'t Entry<'a>) -> Result<Plain> {
        use code::builtin as b;
        /// MLIR's `IntegerType::kMaxWidth`.
        const MAX_INTEGER_WIDTH: u64 = (1 << 24) - 1;
        match (code, &entry.fields[..]) {
            (b::INTEGER_TYPE, [Field::Unsigned(packed)]) if (1..=MAX_INTEGER_WIDTH).contains(&(packed >> 2)) && packed & 3 < 3 => {
                let sign = ["", "s", "u"][(packed & 3) as usize];
                let _ = write!(out, "{sign}i{}", packed >> 2);
            }
            (b::FUNCTION_TYPE, _) => return self.function_type(out, entry),
            (b::COMPLEX_TYPE, [Field::Type(of)]) if self.is_scalar(*of) => {
                out.push_str("complex<");
                self.r#type(out, *of)?;
                out.push('>');
            }
            (b::TENSOR_TYPE | b::TENSOR_WITH_ENCODING_TYPE, _) => {
                let Some((shape, element)) = entry.types().last().and_then(|of| Some((shape(entry)?, of))) else { return Ok(Err(Lossy)) };
                if !self.is_element(element) {
                    return Ok(Err(Lossy));
                }
                out.push_str("tensor<");
                self.shaped(out, &shape, element, entry.attributes().next())?;
            }
            (b::TUPLE_TYPE, [Field::Count(_), types @ ..]) => {
                out.push_str("tuple<");
                self.list(out, types)?;
                out.push('>');
            }
            (_, []) => match entry_row(dialect::BUILTIN, true, code) {
                Some(row) => out.push_str(row.name),
                None => return Ok(Err(Lossy)),
            },
            _ => return Ok(Err(Lossy)),
        }
        Ok(Ok(()))
    }

    fn is_scalar(&self, id: TypeId) -> bool {
        use code::builtin as b;
        let entry = self.tables.r#type(id);
        let is_float = |code| matches!(code, b::BF16_TYPE..=b::F128_TYPE | b::TF32_TYPE..=b::F8E8M0FNU_TYPE);
        entry.dialect == dialect::BUILTIN && matches!(entry.code, Code::Known(code) if code == b::INTEGER_TYPE || is_float(code))
    }

    /// Whether MLIR takes a type for the element of a tensor.
    fn is_element(&self, id: TypeId) -> bool {
        use code::builtin as b;
        let entry = self.tables.r#type(id);
        let is_other = entry.dialect != dialect::BUILTIN || matches!(entry.code, Code::Known(b::INDEX_TYPE | b::COMPLEX_TYPE));
        self.is_scalar(id) || is_other
    }

    fn vhlo_type(&mut self, out: &mut String, code: u8, entry: &'t Entry<'a>) -> Result<Plain> {
        use code::vhlo as v;
        let is_friendly = self.is_friendly();
        match (code, &entry.fields[..]) {
            (v::TENSOR_TYPE | v::TENSOR_WITH_ENCODING_TYPE, _) => {
                let Some((shape, element)) = shape(entry).zip(entry.types().last()) else { return Ok(Err(Lossy)) };
                out.push_str(if is_friendly { "tensor<" } else { "!vhlo.tensor_v1<" });
                self.shaped(out, &shape, element, entry.attributes().next())?;
            }
            (v::BUFFER_TYPE, _) => {
                let Some((shape, element)) = shape(entry).zip(entry.types().last()) else { return Ok(Err(Lossy)) };
                out.push_str("!vhlo.buffer_v1<");
                self.shaped(out, &shape, element, None)?;
            }
            (v::FUNCTION_TYPE, _) if is_friendly => return self.function_type(out, entry),
            (v::FUNCTION_TYPE, _) => {
                out.push_str("!vhlo.func_v1<");
                let written = self.function_type(out, entry)?;
                out.push('>');
                return Ok(written);
            }
            (v::COMPLEX_TYPE, [Field::Type(of)]) if is_friendly => {
                out.push_str("complex<");
                self.r#type(out, *of)?;
                out.push('>');
            }
            (v::TUPLE_TYPE, [Field::Count(_), types @ ..]) if is_friendly => {
                out.push_str("tuple<");
                self.list(out, types)?;
                out.push('>');
            }
            (_, []) => {
                let element = ELEMENT_TYPES.iter().find(|(known, _)| *known == code);
                let row = entry_row(dialect::VHLO, true, code);
                let _ = match (element, row) {
                    (Some((_, name)), _) if is_friendly => write!(out, "{name}"),
                    (_, Some(row)) if is_friendly => write!(out, "!stablehlo.{}", row.name.trim_end_matches("_v1")),
                    (_, Some(row)) => write!(out, "!vhlo.{}", row.name),
                    _ => return Ok(Err(Lossy)),
                };
            }
            _ => return self.by_syntax(out, entry, true, code),
        }
        Ok(Ok(()))
    }

    /// What stands in a shaped type's `<…>`, with its end.
    fn shaped(&mut self, out: &mut String, shape: &[i64], element: TypeId, encoding: Option<AttributeId>) -> Result<()> {
        dimensions(out, shape);
        self.r#type(out, element)?;
        if let Some(encoding) = encoding {
            out.push_str(", ");
            // MLIR's parser takes no `array<…>` here.
            if self.tables.attribute(encoding).is(dialect::BUILTIN, code::builtin::DENSE_ARRAY) {
                self.attribute_by_fields(out, encoding)?;
            } else {
                self.attribute(out, encoding)?;
            }
        }
        out.push('>');
        Ok(())
    }

    fn function_type(&mut self, out: &mut String, entry: &'t Entry<'a>) -> Result<Plain> {
        let Some((inputs, rest)) = counted(&entry.fields) else { return Ok(Err(Lossy)) };
        let Some((results, [])) = counted(rest) else { return Ok(Err(Lossy)) };
        out.push('(');
        self.list(out, inputs)?;
        out.push_str(") -> (");
        self.list(out, results)?;
        out.push(')');
        Ok(Ok(()))
    }

    /// What follows its fields.
    fn by_syntax(&mut self, out: &mut String, entry: &'t Entry<'a>, is_type: bool, code: u8) -> Result<Plain> {
        let Some(Syntax { name, body, .. }) = syntax::of_code(entry.dialect, is_type, code) else { return Ok(Err(Lossy)) };
        let Some(row) = entry_row(entry.dialect, is_type, code) else { return Ok(Err(Lossy)) };
        let mut fields = &entry.fields[..];
        let _ = write!(out, "{}{name}<", if is_type { '!' } else { '#' });
        let mut kinds = row.fields.iter();
        for (position, piece) in body.split('$').enumerate() {
            if position > 0 {
                let Some(rest) = kinds.next().map(|kind| self.field(out, *kind, fields)).transpose()?.flatten() else {
                    return Ok(Err(Lossy));
                };
                fields = rest;
            }
            out.push_str(piece);
        }
        out.push('>');
        Ok(if fields.is_empty() { Ok(()) } else { Err(Lossy) })
    }

    /// Writes what one kind of field holds, and returns the fields behind it.
    fn field(&mut self, out: &mut String, kind: Kind, fields: &'t [Field<'a>]) -> Result<Option<&'t [Field<'a>]>> {
        Ok(match (kind, fields) {
            (Kind::Attributes | Kind::Types, _) => {
                let Some((list, rest)) = counted(fields) else { return Ok(None) };
                self.list(out, list)?;
                Some(rest)
            }
            (Kind::AttributePairs, [Field::Count(count), rest @ ..]) => {
                let Some((items, rest)) = rest.split_at_checked(2 * *count as usize) else { return Ok(None) };
                self.pairs(out, items)?;
                Some(rest)
            }
            (Kind::SignedList, _) => {
                let Some((numbers, rest)) = counted(fields) else { return Ok(None) };
                signed_list(out, numbers).map(|()| rest)
            }
            (Kind::Attribute, [Field::Attribute(id), rest @ ..]) => self.attribute(out, *id).map(|()| Some(rest))?,
            (Kind::Type, [Field::Type(id), rest @ ..]) => self.r#type(out, *id).map(|()| Some(rest))?,
            (Kind::Signed, [Field::Signed(number), rest @ ..]) => {
                let _ = write!(out, "{number}");
                Some(rest)
            }
            (Kind::String, [Field::String(text), rest @ ..]) => {
                quote(out, &text.0);
                Some(rest)
            }
            (Kind::Double, [Field::Unsigned(bits), rest @ ..]) => {
                let text = write_float(*bits, 11, 52);
                out.push_str(&text);
                (!text.starts_with("0x")).then_some(rest)
            }
            _ => None,
        })
    }

    fn list(&mut self, out: &mut String, fields: &'t [Field<'a>]) -> Result<()> {
        for (position, field) in fields.iter().enumerate() {
            out.push_str(if position > 0 { ", " } else { "" });
            match field {
                Field::Attribute(id) => self.attribute(out, *id)?,
                Field::Type(id) => self.r#type(out, *id)?,
                _ => return Err(Error::bug("a list of something else than attributes or types")),
            }
        }
        Ok(())
    }

    fn pairs(&mut self, out: &mut String, items: &'t [Field<'a>]) -> Result<()> {
        for (position, pair) in items.chunks(2).enumerate() {
            out.push_str(if position > 0 { ", " } else { "" });
            if let [Field::Attribute(key), Field::Attribute(value)] = pair {
                self.attribute(out, *key)?;
                out.push_str(" = ");
                self.attribute(out, *value)?;
            }
        }
        Ok(())
    }

    /// An entry field by field, without the `#` or `!` before it.
    fn fields(&mut self, out: &mut String, entry: &'t Entry<'a>, is_type: bool) -> Result<()> {
        out.push_str("jaxprism.entry<");
        identifier(out, self.tables.dialect(entry.dialect));
        let _ = match entry.code {
            Code::Known(code) => match entry_row(entry.dialect, is_type, code) {
                Some(row) => write!(out, ".{}", row.name),
                None => return Err(Error::bug(format!("no row for the code {code}"))),
            },
            Code::Text => write!(out, " text"),
            Code::Opaque => write!(out, " opaque"),
        };
        if entry.identity != 0 {
            let _ = write!(out, " identity {}", entry.identity);
        }
        for field in &entry.fields {
            out.push_str(", ");
            let _ = match field {
                Field::Attribute(id) => {
                    out.push_str("attribute ");
                    self.attribute(out, *id)?;
                    continue;
                }
                Field::Type(id) => {
                    out.push_str("type ");
                    self.r#type(out, *id)?;
                    continue;
                }
                Field::Unsigned(number) => write!(out, "unsigned {number}"),
                Field::Signed(number) => write!(out, "signed {number}"),
                Field::Count(number) => write!(out, "count {number}"),
                Field::Absent => write!(out, "absent"),
                Field::String(text) => {
                    out.push_str("string ");
                    quote(out, &text.0);
                    continue;
                }
                Field::Blob(bytes) => match self.constants {
                    Constants::UpTo(limit) if bytes.0.len() > limit.max(8) => write!(out, "blob elided"),
                    Constants::Hashed(limit) if bytes.0.len() > limit.max(8) => write!(out, "blob hash \"{:016x}\"", hash(&bytes.0)),
                    _ => {
                        out.push_str("blob ");
                        hexadecimal(out, &bytes.0);
                        continue;
                    }
                },
            };
        }
        out.push('>');
        Ok(())
    }

    fn builtin_string(&self, id: AttributeId) -> Option<&'t [u8]> {
        let entry = self.tables.attribute(id);
        if entry.is(dialect::BUILTIN, code::builtin::STRING) { entry.bytes().map(|bytes| &bytes.0[..]) } else { None }
    }

    /// Whether a string is the name of a symbol that has another one here.
    fn is_renamed(&self, name: AttributeId) -> bool {
        self.rename.is_some_and(|rename| self.tables.string(name).is_some_and(|name| rename(name).is_some()))
    }

    /// `@name` of a builtin string.
    fn symbol(&self, out: &mut String, name: AttributeId) -> Plain {
        let name = self.builtin_string(name).filter(|name| !name.is_empty()).ok_or(Lossy)?;
        self.symbol_name(out, name);
        Ok(())
    }

    /// `@name`.
    pub fn symbol_name(&self, out: &mut String, name: &[u8]) {
        out.push('@');
        match self.rename.and_then(|rename| rename(name)) {
            Some(other) => identifier(out, other.as_bytes()),
            None => identifier(out, name),
        }
    }
}

/// The elements of a constant.
pub(crate) struct Elements<'e> {
    shape: Cow<'e, [i64]>,
    element: Element,
    is_complex: bool,
    bytes: &'e [u8],
}

impl Elements<'_> {
    /// Where two constants of one type differ: at how many elements, and at which position first, with both elements there. `None`: they are not stored as
    /// their type says.
    pub(crate) fn difference(&self, other: &Self) -> Option<(u64, Vec<u64>, String, String)> {
        let count = self.count();
        let (mut differing, mut first) = (0, None);
        // Of two values that stand for all elements, one comparison says it all.
        let compared = if self.is_splat() && other.is_splat() { count.min(1) } else { count };
        for index in 0..compared {
            if self.bits(index)? != other.bits(index)? {
                differing += 1;
                first = first.or(Some(index));
            }
        }
        let first = first?;
        let mut texts = [String::new(), String::new()];
        for (text, elements) in texts.iter_mut().zip([self, other]) {
            elements.one(text, if elements.is_splat() { 0 } else { usize::try_from(first).ok()? })?;
        }
        let [one, another] = texts;
        Some((if compared < count { count } else { differing }, self.position(first), one, another))
    }

    /// Whether one element stands for all.
    fn is_splat(&self) -> bool {
        self.bytes.len() == self.size() && (self.element != Element::Bool || self.count() <= 1 || matches!(self.bytes, [0 | 255]))
    }

    /// An element as it is stored.
    fn bits(&self, index: u64) -> Option<&[u8]> {
        let index = if self.is_splat() { 0 } else { usize::try_from(index).ok()? };
        if self.element == Element::Bool {
            const BITS: [&[u8]; 2] = [&[0], &[1]];
            return BITS.get(usize::from(self.bytes.get(index / 8)? >> (index % 8) & 1)).copied();
        }
        self.bytes.get(index.checked_mul(self.size())?..(index + 1).checked_mul(self.size())?)
    }

    /// The index in each dimension of an element.
    fn position(&self, mut index: u64) -> Vec<u64> {
        let mut position: Vec<u64> = Vec::new();
        for dimension in self.shape.iter().rev() {
            let size = u64::try_from(*dimension).unwrap_or(0).max(1);
            position.push(index % size);
            index /= size;
        }
        position.reverse();
        position
    }

    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().map(|dimension| u64::try_from(*dimension).unwrap_or(0)).product()
    }

    /// Bytes of one element.
    fn size(&self) -> usize {
        self.element.bytes() * if self.is_complex { 2 } else { 1 }
    }

    /// How many elements are stored: one, if one stands for all.
    fn stored(&self) -> u64 {
        if self.bytes.len() == self.size() && self.count() > 0 { self.count().min(1) } else { self.count() }
    }

    /// Writes what stands in `dense<…>`: numbers where they say it all, else the bytes. `false`: even these would be read as others.
    fn write(&self, out: &mut String) -> bool {
        let count = self.count();
        if count == 0 {
            return self.bytes.is_empty();
        }
        let start = out.len();
        if self.element == Element::Bool {
            match (count, self.bytes) {
                (1, [0]) | (2.., [0]) => out.push_str("false"),
                (1, [1]) | (2.., [255]) => out.push_str("true"),
                _ => return self.packed(out, count),
            }
            return true;
        }
        let is_splat = self.bytes.len() == self.size();
        let stored = if is_splat { 1 } else { count };
        let is_uniform = !is_splat && self.bytes.chunks(self.size()).all(|chunk| *chunk == self.bytes[..self.size()]);
        if stored <= MOST_NUMBERS && self.shape.len() <= MOST_DIMENSIONS && !is_uniform {
            let written = if is_splat { self.one(out, 0) } else { self.nested(out, &self.shape, &mut 0) };
            if written.is_some() {
                return true;
            }
            out.truncate(start);
        }
        hexadecimal(out, self.bytes);
        true
    }

    /// Booleans, a bit each.
    fn packed(&self, out: &mut String, count: u64) -> bool {
        let is_packed = self.bytes.len() as u64 == count.div_ceil(8) && count > 1 && !(self.bytes.len() == 1 && self.bytes[0] == 255);
        // All alike would be read as one for all.
        let bit = |index: u64| self.bytes[index as usize / 8] >> (index % 8) & 1;
        let is_clean = is_packed && (count.is_multiple_of(8) || self.bytes[self.bytes.len() - 1] >> (count % 8) == 0);
        if !is_clean || count > MOST_NUMBERS || self.shape.len() > MOST_DIMENSIONS || (1..count).all(|index| bit(index) == bit(0)) {
            hexadecimal(out, self.bytes);
            return true;
        }
        self.nested(out, &self.shape, &mut 0).is_some()
    }

    fn nested(&self, out: &mut String, shape: &[i64], next: &mut usize) -> Option<()> {
        let [dimension, inner @ ..] = shape else {
            self.one(out, *next)?;
            *next += 1;
            return Some(());
        };
        out.push('[');
        for position in 0..*dimension {
            out.push_str(if position > 0 { ", " } else { "" });
            self.nested(out, inner, next)?;
        }
        out.push(']');
        Some(())
    }

    fn one(&self, out: &mut String, index: usize) -> Option<()> {
        if self.element == Element::Bool {
            out.push_str(if self.bytes[index / 8] >> (index % 8) & 1 == 1 { "true" } else { "false" });
            return Some(());
        }
        let size = self.element.bytes();
        let part = |index: usize| {
            let bytes = self.bytes.get(index * size..(index + 1) * size)?;
            let mut bits = [0; 8];
            bits.get_mut(..size)?.copy_from_slice(bytes);
            self.element.write(u64::from_le_bytes(bits))
        };
        if self.is_complex {
            let _ = write!(out, "({}, {})", part(2 * index)?, part(2 * index + 1)?);
        } else {
            out.push_str(&part(index)?);
        }
        Some(())
    }
}

/// Whether a builtin type is the one of a name: a signless integer type, or one without fields.
fn is_builtin_named(entry: &Entry<'_>, name: &str) -> bool {
    let (dialect::BUILTIN, Code::Known(code)) = (entry.dialect, entry.code) else { return false };
    match (code, &entry.fields[..]) {
        (code::builtin::INTEGER_TYPE, [Field::Unsigned(packed)]) => {
            name.strip_prefix('i').and_then(|width| width.parse::<u64>().ok()).is_some_and(|width| width << 2 == *packed)
        }
        (_, []) => entry_row(dialect::BUILTIN, true, code).is_some_and(|row| row.name == name),
        _ => false,
    }
}

/// An integer with its type.
fn number(out: &mut String, element: Element, bits: u64, name: &str) -> Plain {
    match element.write(bits) {
        Some(text) if element.read(&text) == Some(bits) => {
            let _ = write!(out, "{text} : {name}");
            Ok(())
        }
        _ => Err(Lossy),
    }
}

/// The dimensions of a shaped type, builtin or vhlo. `None` also if one of them has no spelling.
fn shape(entry: &Entry<'_>) -> Option<Vec<i64>> {
    let skip = entry.fields.iter().position(|field| matches!(field, Field::Count(_)))?;
    let (numbers, _) = counted(&entry.fields[skip..])?;
    let number = |field: &Field<'_>| match field {
        Field::Signed(number) => Some(*number).filter(|number| *number >= 0 || *number == i64::MIN),
        _ => None,
    };
    numbers.iter().map(number).collect()
}

fn dimensions(out: &mut String, shape: &[i64]) {
    for dimension in shape {
        let _ = if *dimension == i64::MIN { write!(out, "?x") } else { write!(out, "{dimension}x") };
    }
}

/// A counted list at the start of some fields, and the fields behind it.
fn counted<'f, 'a>(fields: &'f [Field<'a>]) -> Option<(&'f [Field<'a>], &'f [Field<'a>])> {
    let [Field::Count(count), rest @ ..] = fields else { return None };
    rest.split_at_checked(*count as usize)
}

/// Signed numbers; the smallest stands for one that is not known.
fn signed_list(out: &mut String, fields: &[Field<'_>]) -> Option<()> {
    for (position, field) in fields.iter().enumerate() {
        let Field::Signed(number) = field else { return None };
        out.push_str(if position > 0 { ", " } else { "" });
        let _ = if *number == i64::MIN { write!(out, "?") } else { write!(out, "{number}") };
    }
    Some(())
}

/// A name: as it is where MLIR reads that, else quoted.
pub(crate) fn identifier(out: &mut String, name: &[u8]) {
    let is_plain = match name {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'_') && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte))
        }
        [] => false,
    };
    // `i32` and its like are types.
    let is_integer_type = name.first() == Some(&b'i') && name.get(1).is_some_and(u8::is_ascii_digit);
    match std::str::from_utf8(name) {
        Ok(text) if is_plain && !is_integer_type => out.push_str(text),
        _ => quote(out, name),
    }
}

/// A string literal; what is not printable ASCII as two hexadecimal digits.
pub(crate) fn quote(out: &mut String, text: &[u8]) {
    out.push('"');
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7F.. => _ = write!(out, "\\{byte:02X}"),
            _ => out.push(char::from(*byte)),
        }
    }
    out.push('"');
}

fn hexadecimal(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(2 * bytes.len() + 4);
    out.push_str("\"0x");
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push('"');
}

/// A hash that is the same in every version and on every machine: FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}
