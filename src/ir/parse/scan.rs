//! One look over MLIR text before MLIR's parser reads it, for what that parser takes without complaint and must not get: brackets and aliases so deep
//! that it would run out of stack, aliases that stand for endless text, and properties that it would lose.
//!
//! The tokens are those of MLIR's lexer. What stands in the `<…>` of an attribute or type of a dialect is no MLIR to it, and not to us: such a body has
//! strings and brackets in it, but no comments.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use rustc_hash::FxHashMap;

use crate::bytecode::op_row_named;
use crate::error::{Error, Result};
use crate::reader::MAX_ATTRIBUTE_DEPTH;

/// Brackets of all kinds within one another, over which MLIR's parser recurses. Half of what attributes may nest, since one bracket makes at most two
/// entries.
const MAX_BRACKETS: usize = MAX_ATTRIBUTE_DEPTH / 2 - 8;
/// Digits of a number. MLIR's time grows with their square.
const MAX_DIGITS: usize = 4_096;
/// How much text one alias may stand for, in aliases: MLIR writes all of it in a diagnostic.
const MAX_ALIAS_WEIGHT: u64 = 10_000;
/// How much text all uses of aliases together may stand for.
const MAX_TOTAL_WEIGHT: u64 = 10_000_000;

/// Properties of the operations that MLIR's parser knows, besides those of the tables.
const FUNCTION_PROPERTIES: [(&str, &[&str]); 3] = [
    ("func.func", &["arg_attrs", "function_type", "no_inline", "res_attrs", "sym_name", "sym_visibility"]),
    ("func.call", &["arg_attrs", "callee", "no_inline", "res_attrs"]),
    ("func.return", &[]),
];

/// Refuses what MLIR's parser must not get.
///
/// # Errors
/// - [`crate::ErrorKind::Format`]: a zero byte, affine maps, attributes of the dialects that MLIR knows, properties that an operation does not have.
/// - [`crate::ErrorKind::Unsupported`]: brackets, aliases or numbers beyond the limits.
pub(super) fn scan(text: &str) -> Result<()> {
    Scanner { text, at: 0, start: 0, depth: 0, aliases: FxHashMap::default(), defined: None, total: 0, properties: None }.scan()
}

/// A token, as far as anything here depends on it.
#[derive(Clone, Copy, PartialEq)]
enum Token<'x> {
    End,
    Open(u8),
    Close(u8),
    /// `=`, `:`, `::`, `->`, `,`: something follows that belongs to what came before.
    Joint(u8),
    String(&'x str),
    /// A bare name or a number.
    Word(&'x str),
    /// `#name` or `!name`, without a body.
    Alias(&'x str),
    /// `#name<…>` and the like, or `@name`, `%name`, `^name`.
    Other,
}

/// What an alias stands for.
#[derive(Clone, Copy, Default)]
struct Alias {
    /// Brackets and aliases within one another.
    depth: usize,
    /// Itself and all that it names.
    weight: u64,
    is_location: bool,
}

/// The property dictionary of an operation.
struct Properties<'x> {
    operation: &'x str,
    /// The depth of its keys.
    depth: usize,
}

struct Scanner<'x> {
    text: &'x str,
    at: usize,
    /// Where the token began.
    start: usize,
    depth: usize,
    aliases: FxHashMap<&'x str, Alias>,
    /// The alias whose definition is under way.
    defined: Option<(&'x str, Alias)>,
    total: u64,
    properties: Option<Properties<'x>>,
}

impl<'x> Scanner<'x> {
    fn scan(mut self) -> Result<()> {
        let (mut before, mut name) = (Token::End, "");
        loop {
            let token = self.token()?;
            if self.defined.is_some() && self.depth == 0 && starts_something(token) && !matches!(before, Token::Joint(_)) {
                self.define();
            }
            match token {
                Token::End => return Ok(()),
                Token::Open(b'<') if matches!(before, Token::Close(b')' | b']')) => {
                    self.deeper()?;
                    self.properties = Some(Properties { operation: name, depth: self.depth + 1 });
                    if self.peek()? != Token::Open(b'{') {
                        return Err(self.refuse("properties that are no dictionary"));
                    }
                }
                Token::Open(_) => self.deeper()?,
                Token::Close(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.properties = self.properties.take().filter(|properties| self.depth + 1 >= properties.depth);
                }
                Token::String(text) | Token::Word(text) if matches!(before, Token::Open(b'{') | Token::Joint(b',')) => {
                    self.property(text)?;
                    name = if let Token::String(_) = token { text } else { name };
                }
                Token::String(text) => name = text,
                Token::Word("affine_map" | "affine_set") => return Err(self.refuse("affine maps have no place in a portable artifact")),
                Token::Alias(alias) => self.alias(alias)?,
                _ => {}
            }
            if matches!(token, Token::Word("loc")) && self.depth == 0 && before == Token::Joint(b'=') {
                self.defined = self.defined.map(|(name, alias)| (name, Alias { is_location: true, ..alias }));
            }
            before = token;
        }
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_BRACKETS {
            return Err(self.too_much(format!("brackets nest deeper than {MAX_BRACKETS}")));
        }
        Ok(())
    }

    /// The end of a definition.
    fn define(&mut self) {
        if let Some((name, alias)) = self.defined.take() {
            self.aliases.insert(name, alias);
        }
    }

    /// The definition of an alias, or its use.
    fn alias(&mut self, name: &'x str) -> Result<()> {
        if self.depth == 0 && self.peek()? == Token::Joint(b'=') {
            self.define();
            self.defined = Some((name, Alias { depth: 0, weight: 1, is_location: false }));
            return Ok(());
        }
        // Uses of locations may stand before their definition, but not in another definition.
        let Some(used) = self.aliases.get(name).copied() else { return Ok(()) };
        // The bracket of `loc(…)` makes no location of its own.
        let is_location = self.defined.is_some_and(|(_, alias)| alias.is_location);
        let depth = used.depth + (self.depth - usize::from(is_location && self.depth > 0)).max(1);
        if depth > 2 * MAX_BRACKETS {
            return Err(self.too_much(format!("aliases nest deeper than {}", 2 * MAX_BRACKETS)));
        }
        // MLIR writes no locations in diagnostics.
        let weight = if used.is_location { 1 } else { used.weight };
        if let Some((_, alias)) = &mut self.defined {
            alias.depth = alias.depth.max(depth);
            alias.weight += weight;
        }
        self.total += weight;
        if weight > MAX_ALIAS_WEIGHT || self.total > MAX_TOTAL_WEIGHT {
            return Err(self.too_much("aliases name one another so often that their text would not end".to_owned()));
        }
        Ok(())
    }

    /// A key of some dictionary: if it is one of properties, the operation must have it. MLIR would lose it.
    fn property(&self, name: &str) -> Result<()> {
        let Some(Properties { operation, .. }) = self.properties.as_ref().filter(|properties| properties.depth == self.depth) else {
            return Ok(());
        };
        let of_function = FUNCTION_PROPERTIES.iter().find(|(known, _)| known == operation);
        let is_known = match of_function {
            Some((_, properties)) => properties.contains(&name),
            None => op_row_named(operation).is_some_and(|row| row.properties.iter().any(|known| known.trim_end_matches('?') == name)),
        };
        if is_known { Ok(()) } else { Err(self.refuse(&format!("`{name}` is no property of `{operation}`"))) }
    }

    /// The next token, which stays.
    fn peek(&mut self) -> Result<Token<'x>> {
        let (at, depth) = (self.at, self.depth);
        let token = self.token();
        (self.at, self.depth) = (at, depth);
        token
    }

    fn token(&mut self) -> Result<Token<'x>> {
        let bytes = self.text.as_bytes();
        loop {
            let space = bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += space;
            if !self.text[self.at..].starts_with("//") {
                break;
            }
            self.at += bytes[self.at..].iter().take_while(|byte| **byte != b'\n').count();
        }
        self.start = self.at;
        let Some(byte) = bytes.get(self.at) else { return Ok(Token::End) };
        self.at += 1;
        Ok(match byte {
            0 => return Err(self.refuse("a zero byte")),
            b'(' | b'[' | b'{' | b'<' => Token::Open(*byte),
            b')' | b']' | b'}' | b'>' => Token::Close(*byte),
            b'-' if bytes.get(self.at) == Some(&b'>') => {
                self.at += 1;
                Token::Joint(b'-')
            }
            b'=' | b':' | b',' => Token::Joint(*byte),
            b'"' => Token::String(self.string()?),
            b'#' | b'!' => {
                let name = self.word(b"$._-");
                if bytes.get(self.at) != Some(&b'<') || name.is_empty() {
                    return Ok(if name.contains('.') { Token::Other } else { Token::Alias(&self.text[self.start..self.at]) });
                }
                if matches!(name.split('.').next(), Some("builtin" | "func")) {
                    return Err(self.refuse(&format!("`{name}` has no place in a portable artifact")));
                }
                self.body()?;
                Token::Other
            }
            b'@' if bytes.get(self.at) == Some(&b'"') => {
                self.at += 1;
                self.string()?;
                Token::Other
            }
            b'@' | b'%' | b'^' => {
                self.word(b"$._-");
                Token::Other
            }
            _ if byte.is_ascii_alphanumeric() || *byte == b'_' => {
                self.at = self.start;
                let word = self.word(b"$._");
                if byte.is_ascii_digit() && word.len() > MAX_DIGITS {
                    return Err(self.too_much(format!("a number of more than {MAX_DIGITS} digits")));
                }
                Token::Word(word)
            }
            _ => {
                // The whole character, should it be of several bytes.
                while !self.text.is_char_boundary(self.at) {
                    self.at += 1;
                }
                Token::Other
            }
        })
    }

    /// Letters, digits and some more.
    fn word(&mut self, more: &[u8]) -> &'x str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || more.contains(byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// The rest of a string literal, without the quotes.
    fn string(&mut self) -> Result<&'x str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        loop {
            match bytes.get(self.at) {
                // The byte behind a backslash, or the first of two digits, ends nothing.
                Some(b'\\') if self.text.is_char_boundary(self.at + 2) => self.at += 2,
                Some(b'"') => break,
                None | Some(b'\n' | b'\\') => return Err(self.refuse("a string without an end")),
                Some(0) => return Err(self.refuse("a zero byte")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(&self.text[start..self.at - 1])
    }

    /// The `<…>` of an attribute or type of a dialect.
    fn body(&mut self) -> Result<()> {
        let outer = self.depth;
        loop {
            let Some(byte) = self.text.as_bytes().get(self.at) else { return Err(self.refuse("a `<` without an end")) };
            self.at += 1;
            match byte {
                b'<' | b'[' | b'(' | b'{' => self.deeper()?,
                b'>' | b']' | b')' | b'}' => self.depth = self.depth.saturating_sub(1).max(outer),
                b'-' if self.text.as_bytes().get(self.at) == Some(&b'>') => self.at += 1,
                b'"' => _ = self.string()?,
                _ => {}
            }
            if self.depth == outer {
                return Ok(());
            }
        }
    }

    fn refuse(&self, what: &str) -> Error {
        Error::format(format!("{what}, on line {}", self.line()))
    }

    fn too_much(&self, what: String) -> Error {
        Error::unsupported(format!("{what}, on line {}", self.line()))
    }

    fn line(&self) -> usize {
        1 + self.text.as_bytes()[..self.at].iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Whether a token at the top begins something new, unless it belongs to what stands before it.
fn starts_something(token: Token<'_>) -> bool {
    matches!(token, Token::End | Token::String(_) | Token::Word(_) | Token::Alias(_) | Token::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> String {
        scan(text).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn brackets_are_counted_where_mlir_counts_them() {
        let deep = "[".repeat(MAX_BRACKETS + 1);
        let expected = format!("brackets nest deeper than {MAX_BRACKETS}, on line 1");
        // Comments end nowhere in the body of an attribute, and a quote behind a backslash begins a string there.
        for before in ["", "#foo<//>, ", r#"#foo<\"">, "#, r#""\\""#, r#""\"""#, "#foo<->>", "!a.b<'>"] {
            assert_eq!(says(&format!("{before}{deep}")), expected, "{before}");
        }
        for before in ["// ", "\"", "\"\\\"", "@\""] {
            assert!(!says(&format!("{before}{deep}")).contains("deeper"), "{before}");
        }
        assert_eq!(says(&"<>[](){}->".repeat(MAX_BRACKETS)), "");
        assert_eq!(says(&format!("#a<{}", "<".repeat(MAX_BRACKETS))), expected);
    }

    #[test]
    fn aliases_are_followed() {
        let chain = |count: usize| (0..count).map(|at| format!("#a{} = [#a{at}]\n", at + 1)).collect::<String>();
        assert_eq!(says(&format!("#a0 = 1\n{}", chain(2 * MAX_BRACKETS))), "");
        assert!(says(&format!("#a0 = 1\n{}", chain(2 * MAX_BRACKETS + 1))).starts_with("aliases nest deeper than"));
        let double = |count: usize| (0..count).map(|at| format!("#a{} = [#a{at}, #a{at}]\n", at + 1)).collect::<String>();
        assert_eq!(says(&format!("#a0 = 1\n{}", double(12))), "");
        assert!(says(&format!("#a0 = 1\n{}", double(20))).contains("their text would not end"));
        let locations = (0..200).map(|at| format!("#l{} = loc(callsite(#l{at} at #l{at}))\n", at + 1)).collect::<String>();
        assert_eq!(says(&format!("#l0 = loc(\"f\":1:2)\n{locations}")), "");
        // What stands behind a definition does not belong to it.
        assert_eq!(says(&format!("#a0 = 1 : i32\nmodule {{ {} }}", "[#a0] ".repeat(3 * MAX_BRACKETS))), "");
    }

    #[test]
    fn properties_must_be_those_of_their_operation() {
        assert_eq!(says(r#""vhlo.constant_v1"() <{value = 1, "value" = [{x = 1}]}> {x = 1}"#), "");
        assert_eq!(says(r#""func.func"() <{sym_name = "f"}> ({ "vhlo.x"() {y = 1} })"#), "");
        assert_eq!(says(r#""vhlo.constant_v1"() <{value = 1, x}>"#), "`x` is no property of `vhlo.constant_v1`, on line 1");
        assert_eq!(says(r#""vhlo.add_v1"() [^a] <{"x" = 1}>"#), "`x` is no property of `vhlo.add_v1`, on line 1");
        assert_eq!(says("\n\"vhlo.add_v1\"() <5>"), "properties that are no dictionary, on line 2");
    }

    #[test]
    fn what_has_no_place_is_refused() {
        assert!(says("affine_map<(d0) -> (d0)>").starts_with("affine maps"));
        assert!(says(&"7".repeat(MAX_DIGITS + 1)).starts_with("a number of"));
        assert!(says("#builtin.x<1>").starts_with("`builtin.x` has no place"));
        assert!(says("a\0").starts_with("a zero byte"));
        assert_eq!(says("\u{fe0f}é #é \"é\\é"), "a string without an end, on line 1");
    }
}
