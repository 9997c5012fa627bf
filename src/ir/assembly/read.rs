//! Text → entries.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use super::super::entries::OWN_DIALECT;
use super::number::{ARRAY_ELEMENTS, Element, read_float};
use super::syntax::{self, ELEMENT_TYPES, Enumeration, Syntax};
use super::write::MOST_DIMENSIONS;
use crate::bytecode::{AttributeId, Bytes, Code, DialectId, Entry, Field, Kind, Tables, TypeId, code, dialect, find_entry_row};
use crate::error::{Error, Result};
use crate::reader::MAX_ATTRIBUTE_DEPTH;

/// The entry of an attribute's text, added to the tables if it is not there.
///
/// # Errors
/// [`crate::ErrorKind::Format`] naming the character at which the text is no attribute that has an entry.
pub fn read_attribute(tables: &mut Tables<'_>, text: &str) -> Result<AttributeId> {
    Reader::whole(tables, text, Reader::attribute)
}

/// The entry of a type's text, added to the tables if it is not there.
///
/// # Errors
/// As [`read_attribute`].
pub fn read_type(tables: &mut Tables<'_>, text: &str) -> Result<TypeId> {
    Reader::whole(tables, text, Reader::r#type)
}

struct Reader<'t, 'x, 'a> {
    tables: &'t mut Tables<'a>,
    text: &'x str,
    at: usize,
    depth: usize,
}

impl<'t, 'x, 'a> Reader<'t, 'x, 'a> {
    fn whole<T>(tables: &'t mut Tables<'a>, text: &'x str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut reader = Self { tables, text, at: 0, depth: 0 };
        let found = read(&mut reader)?;
        reader.skip_space();
        if reader.at < text.len() { Err(reader.expected("nothing more")) } else { Ok(found) }
    }

    fn attribute(&mut self) -> Result<AttributeId> {
        self.deeper(|this| this.attribute_here())
    }

    fn r#type(&mut self) -> Result<TypeId> {
        self.deeper(|this| this.type_here())
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_ATTRIBUTE_DEPTH {
            return Err(Error::unsupported(format!("attributes nest deeper than {MAX_ATTRIBUTE_DEPTH}")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn attribute_here(&mut self) -> Result<AttributeId> {
        use code::builtin as b;
        match self.peek() {
            Some(b'#') => {
                self.at += 1;
                let entry = self.of_dialect(false)?;
                self.check(&entry, false)?;
                Ok(self.tables.intern_attribute(entry))
            }
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.builtin(b::STRING, [Field::String(text)]))
            }
            Some(b'@') => {
                let root = self.symbol()?;
                let mut nested = Vec::new();
                while self.takes("::") {
                    let name = self.symbol()?;
                    nested.push(Field::Attribute(self.builtin(b::FLAT_SYMBOL_REF, [Field::Attribute(name)])));
                }
                if nested.is_empty() {
                    return Ok(self.builtin(b::FLAT_SYMBOL_REF, [Field::Attribute(root)]));
                }
                let mut fields = vec![Field::Attribute(root), Field::Count(nested.len() as u32)];
                fields.append(&mut nested);
                Ok(self.builtin(b::SYMBOL_REF, fields))
            }
            Some(b'[') => {
                self.at += 1;
                let fields = self.list(Kind::Attributes, "]")?;
                self.expect("]")?;
                Ok(self.builtin(b::ARRAY, fields))
            }
            Some(b'{') => self.dictionary(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.takes_word("unit") => Ok(self.builtin(b::UNIT, [])),
            _ if self.takes_word("true") => self.boolean(1),
            _ if self.takes_word("false") => self.boolean(0),
            _ if self.takes_word("array") => self.dense_array(),
            _ => {
                let of = self.r#type()?;
                Ok(self.builtin(b::TYPE, [Field::Type(of)]))
            }
        }
    }

    fn builtin(&mut self, code: u8, fields: impl Into<Box<[Field<'a>]>>) -> AttributeId {
        self.tables.intern_attribute(Entry::new(dialect::BUILTIN, code, fields))
    }

    fn builtin_type(&mut self, code: u8, fields: impl Into<Box<[Field<'a>]>>) -> TypeId {
        self.tables.intern_type(Entry::new(dialect::BUILTIN, code, fields))
    }

    /// `<i32: 1, 2>`.
    fn dense_array(&mut self) -> Result<AttributeId> {
        self.expect("<")?;
        let name = self.word()?;
        let row = ARRAY_ELEMENTS.iter().find(|(known, _)| *known == name);
        let (_, element) = row.ok_or_else(|| self.error(format!("`{name}` is no type of the elements of an array")))?;
        let mut bytes = Vec::new();
        if self.takes(":") {
            loop {
                let bits = self.element(*element)?;
                bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]);
                if !self.takes(",") {
                    break;
                }
            }
        }
        self.expect(">")?;
        let count = (bytes.len() / element.bytes()) as u64;
        let of = self.builtin_named(name).ok_or_else(|| Error::bug("an element of an array without a type"))?;
        Ok(self.builtin(code::builtin::DENSE_ARRAY, [Field::Type(of), Field::Unsigned(count), Field::Blob(Bytes(bytes.into()))]))
    }

    fn boolean(&mut self, value: u64) -> Result<AttributeId> {
        let of = self.builtin_type(code::builtin::INTEGER_TYPE, [Field::Unsigned(1 << 2)]);
        Ok(self.builtin(code::builtin::INTEGER, [Field::Type(of), Field::Unsigned(value)]))
    }

    /// The name after an `@`, as a builtin string.
    fn symbol(&mut self) -> Result<AttributeId> {
        self.expect("@")?;
        let name = self.name()?;
        Ok(self.builtin(code::builtin::STRING, [Field::String(name)]))
    }

    fn dictionary(&mut self) -> Result<AttributeId> {
        self.expect("{")?;
        let mut items = Vec::new();
        while !self.peeks(b'}') {
            let key = self.name()?;
            let value = if self.takes("=") { self.attribute()? } else { self.builtin(code::builtin::UNIT, []) };
            items.push((key.0, value));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("}")?;
        items.sort();
        if let Some(pair) = items.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(self.error(format!("a dictionary has the key `{}` twice", String::from_utf8_lossy(&pair[0].0))));
        }
        let mut fields = vec![Field::Count(items.len() as u32)];
        for (key, value) in items {
            let key = self.builtin(code::builtin::STRING, [Field::String(Bytes(key))]);
            fields.extend([Field::Attribute(key), Field::Attribute(value)]);
        }
        Ok(self.builtin(code::builtin::DICTIONARY, fields))
    }

    /// A builtin integer or float with its type.
    fn number(&mut self) -> Result<AttributeId> {
        let number = self.number_text()?;
        let is_float = number.contains('.') && !number.starts_with("0x");
        let start = self.at;
        let default = if is_float { "f64" } else { "i64" };
        let name = if self.takes(":") { self.word()? } else { default };
        let Some(element) = integer_element(name).or_else(|| Element::named(name)) else {
            self.at = start;
            return Err(self.expected("an integer or float type"));
        };
        let of = self.builtin_named(name).ok_or_else(|| self.error(format!("`{name}` is no type of a number")))?;
        let is_float = matches!(element, Element::Float(..) | Element::Bits(_));
        let code = if is_float { code::builtin::FLOAT } else { code::builtin::INTEGER };
        let bits = element.read(number).ok_or_else(|| self.error(format!("`{number}` is no `{name}`")))?;
        let entry = Entry::new(dialect::BUILTIN, code, [Field::Type(of), Field::Unsigned(bits)]);
        self.check(&entry, false)?;
        Ok(self.tables.intern_attribute(entry))
    }

    /// The builtin type of a single word.
    fn builtin_named(&mut self, name: &str) -> Option<TypeId> {
        use code::builtin as b;
        if let Some((sign, width)) = integer_name(name) {
            return Some(self.builtin_type(b::INTEGER_TYPE, [Field::Unsigned(u64::from(width) << 2 | sign)]));
        }
        let (code, row) = find_entry_row(dialect::BUILTIN, true, name)?;
        row.fields.is_empty().then(|| self.builtin_type(code, []))
    }

    /// What follows `#` or `!`: `dialect.name<…>` or `dialect<name …>`.
    fn of_dialect(&mut self, is_type: bool) -> Result<Entry<'a>> {
        let start = self.at;
        let name = self.word()?;
        if name.split_once('.') == Some((OWN_DIALECT, "entry")) {
            return self.fields(is_type);
        }
        if !name.contains('.') {
            self.expect("<")?;
            let value = self.word()?;
            let entry = match (name, value) {
                ("sdy", "manual_axes") if !is_type => self.manual_axes()?,
                ("vhlo", _) if !is_type => self.enumeration(value)?,
                _ => return Err(self.unknown(start, &format!("{name}.{value}"))),
            };
            self.expect(">")?;
            return Ok(entry);
        }
        match name {
            "sdy.mesh" if !is_type => return self.mesh(),
            "sdy.sharding" if !is_type => return self.sharding(),
            "sdy.sharding_per_value" if !is_type => return self.sharding_per_value(),
            "vhlo.bool_v1" if !is_type => {
                self.expect("<")?;
                let value = u64::from(self.takes_word("true"));
                if value == 0 && !self.takes_word("false") {
                    return Err(self.expected("`true` or `false`"));
                }
                self.expect(">")?;
                return Ok(vhlo(code::vhlo::BOOL, [Field::Unsigned(value)]));
            }
            "vhlo.integer_v1" if !is_type => return self.vhlo_integer(),
            "vhlo.float_v1" if !is_type => return self.vhlo_float(),
            "vhlo.tensor_v1" if !is_type => return self.tensor(),
            "vhlo.tensor_v1" => {
                let (fields, has_encoding) = self.shaped()?;
                let code = if has_encoding { code::vhlo::TENSOR_WITH_ENCODING_TYPE } else { code::vhlo::TENSOR_TYPE };
                return Ok(vhlo(code, fields));
            }
            "vhlo.buffer_v1" if is_type => {
                let (fields, _) = self.shaped()?;
                return Ok(vhlo(code::vhlo::BUFFER_TYPE, fields));
            }
            "vhlo.func_v1" if is_type => {
                self.expect("<")?;
                let fields = self.function_type()?;
                self.expect(">")?;
                return Ok(vhlo(code::vhlo::FUNCTION_TYPE, fields));
            }
            _ => {}
        }
        if let Some(syntax) = syntax::of_name(name, is_type) {
            return self.by_syntax(syntax);
        }
        let known = name.strip_prefix("vhlo.").and_then(|name| find_entry_row(dialect::VHLO, is_type, name));
        match known {
            Some((code, row)) if row.fields.is_empty() => Ok(vhlo(code, [])),
            _ => Err(self.unknown(start, name)),
        }
    }

    fn check(&self, entry: &Entry<'_>, is_type: bool) -> Result<()> {
        self.tables.check(entry, is_type).map_err(|error| self.error(error.to_string()))
    }

    fn unknown(&mut self, start: usize, name: &str) -> Error {
        self.at = start;
        self.error(format!("`{name}` has no entry in a portable artifact"))
            .with_hint("attributes and types are those of vhlo, sdy and builtin; `jaxprism print` shows how they are written")
    }

    fn enumeration(&mut self, name: &str) -> Result<Entry<'a>> {
        let row = Enumeration::of_name(name).ok_or_else(|| self.error(format!("`#vhlo<{name} …>` is not known")))?;
        let value = self.word()?;
        let number = row.number(value).ok_or_else(|| self.error(format!("`{name}` is one of {}, not `{value}`", row.values.join(", "))))?;
        Ok(vhlo(row.code, [Field::Unsigned(number)]))
    }

    fn vhlo_integer(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        let number = if self.takes_word("true") {
            "1"
        } else if self.takes_word("false") {
            "0"
        } else {
            self.number_text()?
        };
        let name = if self.takes(":") { self.word()? } else { "i64" };
        let element = integer_element(name).ok_or_else(|| self.error(format!("`{name}` is no integer type")))?;
        let bits = element.read(number).ok_or_else(|| self.error(format!("`{number}` is no `{name}`")))?;
        let of = self.vhlo_element(name)?;
        self.expect(">")?;
        Ok(vhlo(code::vhlo::INTEGER, [Field::Type(of), Field::Unsigned(bits)]))
    }

    fn vhlo_float(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        let number = self.number_text()?;
        self.expect(":")?;
        let of = self.r#type()?;
        let entry = self.tables.r#type(of);
        let name = ELEMENT_TYPES.iter().find(|(code, _)| entry.is(dialect::VHLO, *code)).map_or("", |(_, name)| name);
        let Some(Element::Float(exponent, fraction)) = Element::named(name) else {
            return Err(self.error("the type of this float has none in decimal".to_owned()));
        };
        let bits = read_float(number, exponent, fraction).filter(|_| !number.starts_with("0x"));
        let bits = bits.ok_or_else(|| self.error(format!("`{number}` is no `{name}` in decimal")))?;
        self.expect(">")?;
        Ok(vhlo(code::vhlo::FLOAT, [Field::Type(of), Field::Unsigned(bits)]))
    }

    /// The element type of vhlo for a builtin name.
    fn vhlo_element(&mut self, name: &str) -> Result<TypeId> {
        let row = ELEMENT_TYPES.iter().find(|(_, known)| *known == name);
        let (code, _) = row.ok_or_else(|| self.error(format!("vhlo has no `{name}`")))?;
        Ok(self.tables.intern_type(vhlo(*code, [])))
    }

    /// `tensor_v1`: `<dense<…> : tensor<…>>`.
    fn tensor(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        if !self.takes_word("dense") {
            return Err(self.expected("`dense`"));
        }
        self.expect("<")?;
        let start = self.at;
        // The type comes after the elements, which mean nothing without it.
        let data = self.skip_elements()?;
        self.expect(">")?;
        self.expect(":")?;
        if !self.takes_word("tensor") {
            return Err(self.expected("`tensor`"));
        }
        self.expect("<")?;
        let shape = self.dimensions()?;
        let is_complex = self.takes_word("complex");
        if is_complex {
            self.expect("<")?;
        }
        let name = self.word()?;
        if is_complex {
            self.expect(">")?;
        }
        self.expect(">")?;
        self.expect(">")?;
        let element = Element::named(name).ok_or_else(|| self.error(format!("`{name}` is no type of elements")))?;
        let mut of = self.vhlo_element(name)?;
        if is_complex {
            of = self.tables.intern_type(vhlo(code::vhlo::COMPLEX_TYPE, [Field::Type(of)]));
        }
        let of = self.tables.intern_type(vhlo(code::vhlo::TENSOR_TYPE, shaped_fields(None, &shape, of)));
        if data.trim() == "elided" {
            return Ok(vhlo(code::vhlo::TENSOR, [Field::Type(of), Field::Absent]));
        }
        let end = std::mem::replace(&mut self.at, start);
        let bytes = self.elements(&shape, element, is_complex, start + data.len())?;
        self.at = end;
        Ok(vhlo(code::vhlo::TENSOR, [Field::Type(of), Field::Blob(Bytes(bytes.into()))]))
    }

    /// The text up to the `>` that ends the elements.
    fn skip_elements(&mut self) -> Result<&'x str> {
        let start = self.at;
        let mut is_string = false;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' => is_string = !is_string,
                b'>' if !is_string => return Ok(&self.text[start..self.at]),
                _ => {}
            }
            self.at += 1;
        }
        Err(self.expected("`>`"))
    }

    /// The bytes of elements, up to `end`.
    fn elements(&mut self, shape: &[i64], element: Element, is_complex: bool, end: usize) -> Result<Vec<u8>> {
        let at_end = |this: &mut Self| {
            this.skip_space();
            if this.at == end { Ok(()) } else { Err(this.expected("`>`")) }
        };
        if self.peeks(b'"') {
            let bytes = self.hexadecimal()?;
            return at_end(self).map(|()| bytes);
        }
        if self.at >= end {
            return Ok(Vec::new());
        }
        if self.takes_word("hash") {
            let error = self.error("a constant of which only the hash is there".to_owned());
            return Err(error.with_hint("canonical text is for comparing; print the module with `--constants all`"));
        }
        let mut numbers = Vec::new();
        let dimensions = self.nested(element, is_complex, &mut numbers, 0)?;
        at_end(self)?;
        if !dimensions.is_empty() && dimensions != shape {
            return Err(self.error(format!("the elements make a shape {dimensions:?}, the type says {shape:?}")));
        }
        let count = shape.iter().map(|dimension| u64::try_from(*dimension).unwrap_or(0)).fold(1u64, u64::saturating_mul);
        let parts = if is_complex { 2 } else { 1 };
        // As MLIR does it: elements that are all alike are one for all.
        if numbers.chunks(parts).all(|one| *one == numbers[..parts]) {
            numbers.truncate(parts);
        }
        if element == Element::Bool {
            return Ok(match &numbers[..] {
                [one] if count > 1 => vec![if *one == 1 { 255 } else { 0 }],
                [one] => vec![*one as u8],
                many => many.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | *bit as u8)).collect(),
            });
        }
        Ok(numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(element.bytes())).collect())
    }

    /// Numbers in as many brackets as there are dimensions. Returns the dimensions.
    fn nested(&mut self, element: Element, is_complex: bool, numbers: &mut Vec<u64>, depth: usize) -> Result<Vec<i64>> {
        if depth > MOST_DIMENSIONS {
            return Err(self.error(format!("elements nest deeper than {MOST_DIMENSIONS}")));
        }
        if self.takes("[") {
            let mut inner: Option<Vec<i64>> = None;
            let mut count = 0;
            while !self.peeks(b']') {
                let dimensions = self.nested(element, is_complex, numbers, depth + 1)?;
                if inner.as_ref().is_some_and(|inner| *inner != dimensions) {
                    return Err(self.error("rows of elements differ in length".to_owned()));
                }
                inner = Some(dimensions);
                count += 1;
                if !self.takes(",") {
                    break;
                }
            }
            self.expect("]")?;
            let mut dimensions = inner.unwrap_or_default();
            dimensions.insert(0, count);
            return Ok(dimensions);
        }
        let in_brackets = is_complex && self.takes("(");
        numbers.push(self.element(element)?);
        if is_complex {
            if !in_brackets {
                return Err(self.expected("`(`"));
            }
            self.expect(",")?;
            numbers.push(self.element(element)?);
            self.expect(")")?;
        }
        Ok(Vec::new())
    }

    fn element(&mut self, element: Element) -> Result<u64> {
        let text = match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number_text()?,
            _ => self.word()?,
        };
        element.read(text).ok_or_else(|| self.error(format!("`{text}` is no element of this type")))
    }

    fn manual_axes(&mut self) -> Result<Entry<'a>> {
        self.expect("{")?;
        let mut fields = vec![Field::Count(0)];
        while self.peeks(b'"') {
            let text = self.string()?;
            fields.push(Field::Attribute(self.builtin(code::builtin::STRING, [Field::String(text)])));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("}")?;
        fields[0] = Field::Count(fields.len() as u32 - 1);
        Ok(sdy(code::sdy::MANUAL_AXES, fields))
    }

    fn mesh(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        self.expect("[")?;
        let mut fields = vec![Field::Count(0)];
        while self.peeks(b'"') {
            let name = self.string()?;
            self.expect("=")?;
            let size = self.signed()?;
            let axis = sdy(code::sdy::MESH_AXIS, [Field::String(name), Field::Signed(size)]);
            fields.push(Field::Attribute(self.tables.intern_attribute(axis)));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("]")?;
        fields[0] = Field::Count(fields.len() as u32 - 1);
        let mut ids = vec![Field::Count(0)];
        if self.takes(",") {
            for piece in ["device_ids", "=", "["] {
                self.expect(piece)?;
            }
            ids = self.list(Kind::SignedList, "]")?;
            self.expect("]")?;
        }
        fields.append(&mut ids);
        self.expect(">")?;
        Ok(sdy(code::sdy::MESH, fields))
    }

    fn sharding(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        let mesh = if self.takes_word("mesh") {
            let mesh = self.mesh()?;
            self.tables.intern_attribute(mesh)
        } else {
            let name = self.symbol()?;
            self.builtin(code::builtin::FLAT_SYMBOL_REF, [Field::Attribute(name)])
        };
        self.expect(",")?;
        self.expect("[")?;
        let mut dimensions = vec![Field::Count(0)];
        while self.peeks(b'{') {
            let dimension = self.dimension_sharding()?;
            dimensions.push(Field::Attribute(self.tables.intern_attribute(dimension)));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("]")?;
        dimensions[0] = Field::Count(dimensions.len() as u32 - 1);
        let (mut replicated, mut unreduced) = (vec![Field::Count(0)], Vec::new());
        while self.takes(",") {
            let is_unreduced = self.takes_word("unreduced");
            if !is_unreduced && !self.takes_word("replicated") {
                return Err(self.expected("`replicated` or `unreduced`"));
            }
            self.expect("=")?;
            self.expect("{")?;
            let axes = self.axes()?;
            self.expect("}")?;
            if is_unreduced { unreduced = axes } else { replicated = axes }
        }
        self.expect(">")?;
        let code = if unreduced.is_empty() { code::sdy::SHARDING } else { code::sdy::SHARDING_UNREDUCED };
        let mut fields = vec![Field::Attribute(mesh)];
        fields.extend(dimensions.into_iter().chain(replicated).chain(unreduced));
        Ok(sdy(code, fields))
    }

    fn dimension_sharding(&mut self) -> Result<Entry<'a>> {
        self.expect("{")?;
        let mut fields = self.axes()?;
        let is_open = self.takes("?");
        self.expect("}")?;
        fields.push(Field::Unsigned(u64::from(!is_open)));
        let priority = if self.peeks(b'p') {
            let word = self.word()?;
            let priority = word[1..].parse().map_err(|_| self.error(format!("`{word}` is no priority")))?;
            Field::Unsigned(priority)
        } else {
            Field::Absent
        };
        fields.push(priority);
        Ok(sdy(code::sdy::DIMENSION_SHARDING, fields))
    }

    /// Axes with their count; a comma behind them is taken if a `?` follows.
    fn axes(&mut self) -> Result<Vec<Field<'a>>> {
        let mut fields = vec![Field::Count(0)];
        while self.peeks(b'"') {
            let name = self.string()?;
            let mut part = Field::Absent;
            if self.takes(":") {
                self.expect("(")?;
                let before = self.signed()?;
                self.expect(")")?;
                let size = self.signed()?;
                let info = sdy(code::sdy::SUB_AXIS_INFO, [Field::Signed(before), Field::Signed(size)]);
                part = Field::Attribute(self.tables.intern_attribute(info));
            }
            let axis = sdy(code::sdy::AXIS_REF, [Field::String(name), part]);
            fields.push(Field::Attribute(self.tables.intern_attribute(axis)));
            if !self.takes(",") {
                break;
            }
        }
        fields[0] = Field::Count(fields.len() as u32 - 1);
        Ok(fields)
    }

    fn sharding_per_value(&mut self) -> Result<Entry<'a>> {
        self.expect("<")?;
        self.expect("[")?;
        let mut fields = vec![Field::Count(0)];
        let mut code = code::sdy::SHARDING_PER_VALUE;
        while self.peeks(b'<') {
            let sharding = self.sharding()?;
            if !sharding.is(dialect::SDY, code::sdy::SHARDING) {
                code = code::sdy::SHARDING_PER_VALUE_UNREDUCED;
            }
            fields.push(Field::Attribute(self.tables.intern_attribute(sharding)));
            if !self.takes(",") {
                break;
            }
        }
        self.expect("]")?;
        self.expect(">")?;
        fields[0] = Field::Count(fields.len() as u32 - 1);
        Ok(sdy(code, fields))
    }

    /// What follows its fields.
    fn by_syntax(&mut self, syntax: &'static Syntax) -> Result<Entry<'a>> {
        self.expect("<")?;
        let mut fields = Vec::new();
        let mut kinds = syntax.kinds().iter();
        let mut pieces = syntax.body.split('$').peekable();
        while let Some(piece) = pieces.next() {
            for word in piece.split_whitespace() {
                self.expect(word)?;
            }
            if let (Some(next), Some(kind)) = (pieces.peek(), kinds.next()) {
                let end = next.trim().chars().next().map_or(">".to_owned(), String::from);
                fields.extend(self.list(*kind, &end)?);
            }
        }
        self.expect(">")?;
        Ok(Entry::new(syntax.dialect, syntax.code, fields))
    }

    /// What one kind of field holds; a list ends before `end`.
    fn list(&mut self, kind: Kind, end: &str) -> Result<Vec<Field<'a>>> {
        match kind {
            Kind::Attribute => return Ok(vec![Field::Attribute(self.attribute()?)]),
            Kind::Type => return Ok(vec![Field::Type(self.r#type()?)]),
            Kind::Signed => return Ok(vec![Field::Signed(self.signed()?)]),
            Kind::String => return Ok(vec![Field::String(self.string()?)]),
            Kind::Double => {
                let text = self.number_text()?;
                let bits = read_float(text, 11, 52).ok_or_else(|| self.error(format!("`{text}` is no float")))?;
                return Ok(vec![Field::Unsigned(bits)]);
            }
            _ => {}
        }
        let (mut fields, mut count) = (vec![Field::Count(0)], 0);
        self.skip_space();
        while !self.text[self.at..].starts_with(end) {
            match kind {
                Kind::Attributes => fields.push(Field::Attribute(self.attribute()?)),
                Kind::Types => fields.push(Field::Type(self.r#type()?)),
                Kind::AttributePairs => {
                    fields.push(Field::Attribute(self.attribute()?));
                    self.expect("=")?;
                    fields.push(Field::Attribute(self.attribute()?));
                }
                Kind::SignedList => {
                    let number = if self.takes("?") { i64::MIN } else { self.signed()? };
                    fields.push(Field::Signed(number));
                }
                _ => return Err(Error::bug("a spelling of a kind that has none")),
            }
            count += 1;
            if !self.takes(",") {
                break;
            }
            self.skip_space();
        }
        fields[0] = Field::Count(count);
        Ok(fields)
    }

    fn type_here(&mut self) -> Result<TypeId> {
        use code::builtin as b;
        match self.peek() {
            Some(b'!') => {
                self.at += 1;
                let entry = self.of_dialect(true)?;
                self.check(&entry, true)?;
                return Ok(self.tables.intern_type(entry));
            }
            Some(b'(') => {
                let fields = self.function_type()?;
                return Ok(self.builtin_type(b::FUNCTION_TYPE, fields));
            }
            _ => {}
        }
        let start = self.at;
        let name = self.word().map_err(|_| self.expected("an attribute or a type"))?;
        match name {
            "tensor" => {
                let (fields, has_encoding) = self.shaped()?;
                let code = if has_encoding { b::TENSOR_WITH_ENCODING_TYPE } else { b::TENSOR_TYPE };
                Ok(self.builtin_type(code, fields))
            }
            "complex" => {
                self.expect("<")?;
                let of = self.r#type()?;
                self.expect(">")?;
                Ok(self.builtin_type(b::COMPLEX_TYPE, [Field::Type(of)]))
            }
            "tuple" => {
                self.expect("<")?;
                let fields = self.list(Kind::Types, ">")?;
                self.expect(">")?;
                Ok(self.builtin_type(b::TUPLE_TYPE, fields))
            }
            _ => match self.builtin_named(name) {
                Some(of) => Ok(of),
                None => Err(self.unknown(start, name)),
            },
        }
    }

    fn function_type(&mut self) -> Result<Vec<Field<'a>>> {
        self.expect("(")?;
        let mut fields = self.list(Kind::Types, ")")?;
        self.expect(")")?;
        self.expect("->")?;
        if self.takes("(") {
            fields.append(&mut self.list(Kind::Types, ")")?);
            self.expect(")")?;
        } else {
            let result = self.r#type()?;
            fields.extend([Field::Count(1), Field::Type(result)]);
        }
        Ok(fields)
    }

    /// `<4x?xELEMENT, ENCODING>`: the fields, and whether there is an encoding.
    fn shaped(&mut self) -> Result<(Vec<Field<'a>>, bool)> {
        self.expect("<")?;
        let shape = self.dimensions()?;
        let element = self.r#type()?;
        let encoding = if self.takes(",") { Some(self.attribute()?) } else { None };
        self.expect(">")?;
        Ok((shaped_fields(encoding, &shape, element), encoding.is_some()))
    }

    /// Dimensions, each with an `x` behind it.
    fn dimensions(&mut self) -> Result<Vec<i64>> {
        let mut shape = Vec::new();
        self.skip_space();
        loop {
            let rest = &self.text[self.at..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if rest.starts_with("?x") {
                shape.push(i64::MIN);
                self.at += 2;
            } else if digits > 0 && rest[digits..].starts_with('x') {
                let dimension =
                    rest[..digits].parse().map_err(|_| self.error(format!("the dimension {} is too large", &rest[..digits])))?;
                shape.push(dimension);
                self.at += digits + 1;
            } else {
                return Ok(shape);
            }
        }
    }

    /// `<dialect.name, field, …>`.
    fn fields(&mut self, is_type: bool) -> Result<Entry<'a>> {
        self.expect("<")?;
        let start = self.at;
        let (dialect, code) = self.entry_name(is_type, start)?;
        let identity = if self.takes_word("identity") { self.unsigned()? as u32 } else { 0 };
        let mut fields = Vec::new();
        while self.takes(",") {
            let kind = self.word()?;
            fields.push(match kind {
                "attribute" => Field::Attribute(self.attribute()?),
                "type" => Field::Type(self.r#type()?),
                "unsigned" => Field::Unsigned(self.unsigned()?),
                "signed" => Field::Signed(self.signed()?),
                "count" => Field::Count(self.unsigned()?.try_into().map_err(|_| self.error("a count is too large".to_owned()))?),
                "absent" => Field::Absent,
                "string" => Field::String(self.string()?),
                "blob" if self.takes_word("elided") => Field::Absent,
                "blob" => Field::Blob(Bytes(self.hexadecimal()?.into())),
                _ => return Err(self.error(format!("`{kind}` is no kind of field"))),
            });
        }
        self.expect(">")?;
        let mut entry = Entry::new(dialect, 0, fields);
        (entry.code, entry.identity) = (code, identity);
        Ok(entry)
    }

    fn entry_name(&mut self, is_type: bool, start: usize) -> Result<(DialectId, Code)> {
        let is_quoted = self.peeks(b'"');
        let name = if is_quoted { self.name()?.0 } else { self.word()?.as_bytes().to_vec().into() };
        if self.takes_word("text") {
            return Ok((self.tables.add_dialect(&name), Code::Text));
        }
        if self.takes_word("opaque") {
            return Ok((self.tables.add_dialect(&name), Code::Opaque));
        }
        let text = String::from_utf8_lossy(&name).into_owned();
        let found = text.split_once('.').and_then(|(dialect, name)| {
            let dialect = self.tables.find_dialect(dialect.as_bytes())?;
            let (code, _) = find_entry_row(dialect, is_type, name)?;
            Some((dialect, Code::Known(code)))
        });
        found.ok_or_else(|| self.unknown(start, &text))
    }

    fn hexadecimal(&mut self) -> Result<Vec<u8>> {
        let text = self.string()?.0;
        let digits = text.strip_prefix(b"0x").filter(|digits| digits.len().is_multiple_of(2));
        let digits = digits.ok_or_else(|| self.expected("hexadecimal digits, two for each byte, after `0x`"))?;
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let bytes = digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
        bytes.collect::<Option<_>>().ok_or_else(|| self.expected("hexadecimal digits"))
    }

    fn name(&mut self) -> Result<Bytes<'a>> {
        if self.peeks(b'"') { self.string() } else { Ok(Bytes(self.word()?.as_bytes().to_vec().into())) }
    }

    /// A string literal, with MLIR's escapes.
    fn string(&mut self) -> Result<Bytes<'a>> {
        self.expect("\"")?;
        let bytes = self.text.as_bytes();
        let mut text = Vec::new();
        loop {
            let rest = &bytes[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
            text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            let (byte, taken) = match &rest[plain..] {
                [] => return Err(self.expected("the end of a string")),
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(Bytes(text.into()));
                }
                [_, b'n', ..] => (b'\n', 2),
                [_, b't', ..] => (b'\t', 2),
                [_, quoted @ (b'"' | b'\\'), ..] => (*quoted, 2),
                [_, high, low, ..] => {
                    let digit = |digit: &u8| char::from(*digit).to_digit(16);
                    let byte = digit(high).zip(digit(low)).map(|(high, low)| (high << 4 | low) as u8);
                    (byte.ok_or_else(|| self.expected("two hexadecimal digits"))?, 3)
                }
                _ => return Err(self.expected("an escape")),
            };
            text.push(byte);
            self.at += taken;
        }
    }

    fn signed(&mut self) -> Result<i64> {
        let text = self.number_text()?;
        text.parse().map_err(|_| self.error(format!("`{text}` is no 64-bit integer")))
    }

    fn unsigned(&mut self) -> Result<u64> {
        let text = self.number_text()?;
        text.parse().map_err(|_| self.error(format!("`{text}` is no unsigned 64-bit integer")))
    }

    /// A number as it stands.
    fn number_text(&mut self) -> Result<&'x str> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let mut previous = b' ';
        let mut belongs = |byte: &u8| {
            let is_sign = matches!(byte, b'+' | b'-') && (previous == b' ' || previous.eq_ignore_ascii_case(&b'e'));
            previous = *byte;
            is_sign || byte.is_ascii_alphanumeric() || *byte == b'.'
        };
        let length = rest.as_bytes().iter().take_while(|byte| belongs(byte)).count();
        if length == 0 {
            return Err(self.expected("a number"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// A word: letters, digits, `_`, `$` and `.`.
    fn word(&mut self) -> Result<&'x str> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte)).count();
        if length == 0 {
            return Err(self.expected("a word"));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let start = self.at;
        let is_there = self.word().is_ok_and(|found| found == word);
        if !is_there {
            self.at = start;
        }
        is_there
    }

    fn takes(&mut self, punctuation: &str) -> bool {
        self.skip_space();
        let is_there = self.text[self.at..].starts_with(punctuation);
        if is_there {
            self.at += punctuation.len();
        }
        is_there
    }

    fn expect(&mut self, punctuation: &str) -> Result<()> {
        if self.takes(punctuation) { Ok(()) } else { Err(self.expected(&format!("`{punctuation}`"))) }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn peeks(&mut self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    fn skip_space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn expected(&self, what: &str) -> Error {
        let rest: String = self.text.get(self.at..).unwrap_or_default().chars().take(20).collect();
        let rest = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        self.error(format!("expected {what}, not {rest}"))
    }

    fn error(&self, message: String) -> Error {
        let before: String = self.text.get(..self.at).unwrap_or_default().chars().rev().take(30).collect();
        let before: String = before.chars().rev().collect();
        if before.is_empty() { Error::format(message) } else { Error::format(format!("{message}, after `{before}`")) }
    }
}

fn vhlo<'a>(code: u8, fields: impl Into<Box<[Field<'a>]>>) -> Entry<'a> {
    Entry::new(dialect::VHLO, code, fields)
}

fn sdy<'a>(code: u8, fields: impl Into<Box<[Field<'a>]>>) -> Entry<'a> {
    Entry::new(dialect::SDY, code, fields)
}

fn shaped_fields<'a>(encoding: Option<AttributeId>, shape: &[i64], element: TypeId) -> Vec<Field<'a>> {
    let mut fields: Vec<_> = encoding.map(Field::Attribute).into_iter().collect();
    fields.push(Field::Count(shape.len() as u32));
    fields.extend(shape.iter().map(|dimension| Field::Signed(*dimension)));
    fields.push(Field::Type(element));
    fields
}

/// An integer type's name: its signedness, as the bytecode numbers it, and its width.
fn integer_name(name: &str) -> Option<(u64, u32)> {
    let (sign, digits) = match name.as_bytes() {
        [b'i', ..] => (0, &name[1..]),
        [b's', b'i', ..] => (1, &name[2..]),
        [b'u', b'i', ..] => (2, &name[2..]),
        _ => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|width| is_number && *width < 1 << 24).map(|width| (sign, width))
}

/// How values of an integer type are read.
fn integer_element(name: &str) -> Option<Element> {
    match integer_name(name) {
        Some((2, width @ 1..=64)) => Some(Element::Unsigned(width)),
        Some((_, width @ 1..=64)) => Some(Element::Signed(width)),
        _ if name == "index" => Some(Element::Signed(64)),
        _ => None,
    }
}
