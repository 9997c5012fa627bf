//! The metadata of a callback: JSON that the Python exporter wrote, and that the loader reads again.
//!
//! The text itself is what identifies a slot, so it is kept byte for byte; [`Meta`] is a view of it. Fields that this version does not know
//! stay in the text and mean nothing here: a field that changes what others mean comes with a new version. Where a policy changes the
//! metadata, it changes single fields, and all others keep their text.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Kind, SCHEMA_VERSION};
use crate::container::{Aval, AvalKind, MemorySpace};
use crate::error::{Error, Result};

/// Longest metadata we accept. What exporters write is mostly below 1 kB. JSON nests at most 128 deep, which is `serde_json`'s own limit.
const MAX_BYTES: usize = 1 << 20;

/// What the exporter says about a callback.
///
/// Aliases, shardings, layouts and whether there are side effects are attributes of the operation, and not repeated here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Meta {
    /// The version of the schema.
    pub v: i64,
    /// Which of JAX's functions made it.
    pub kind: Kind,
    /// The name to bind it by.
    pub name: String,
    /// Whether the name is the same in every run. Those of lambdas and local functions need not be.
    #[serde(default = "yes")]
    pub stable: bool,
    /// The Python function, as `module:qualname`.
    #[serde(default, rename = "fn")]
    pub function: Option<String>,
    /// Whether its calls are ordered by a token.
    #[serde(default)]
    pub ordered: bool,
    /// How many tokens come first among operands and results: 1 if it is ordered, else none.
    #[serde(default)]
    pub tokens: u32,
    /// Whether it runs once for every shard.
    #[serde(default)]
    pub partitioned: bool,
    /// Whether a buffer callback can be recorded into a GPU's command buffer.
    #[serde(default)]
    pub cmd_buffer: bool,
    /// How `vmap` treats it, in JAX's words.
    #[serde(default)]
    pub vmap_method: Option<String>,
    /// How the operands make up `(args, kwargs)`; none where the function takes them flat.
    #[serde(default)]
    pub in_tree: Tree,
    /// How the results of a buffer callback are arranged. Those of others are flat.
    #[serde(default)]
    pub out_tree: Tree,
    /// The operands, without tokens.
    pub args: Vec<Array>,
    /// The results, without tokens.
    pub results: Vec<Array>,
    /// Arguments of debug callbacks that are no arrays, by position.
    #[serde(default)]
    pub static_args: BTreeMap<u32, Value>,
    /// What a print prints.
    #[serde(default)]
    pub fmt: Option<String>,
    /// Whether `fmt` has placeholders for arguments.
    #[serde(default)]
    pub placeholders: bool,
    /// NumPy's options for printing, in order.
    #[serde(default)]
    pub np_printoptions: Vec<(String, Value)>,
    /// What JAX's logger was told, where a print goes to it.
    #[serde(default)]
    pub log: Option<LogRecord>,
    /// What it was before the policy `host`: a buffer callback.
    #[serde(default, rename = "as")]
    pub was: Option<Kind>,
    /// The aliases that a buffer callback had before the policy `host`.
    #[serde(default)]
    pub aliases: Vec<Alias>,
}

/// A result in the memory of an operand. In JSON, `[operand, result]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Alias {
    /// The number of the operand, without tokens.
    pub operand: u32,
    /// The number of the result, without tokens.
    pub result: u32,
}

impl From<(u32, u32)> for Alias {
    fn from((operand, result): (u32, u32)) -> Self {
        Self { operand, result }
    }
}

impl From<Alias> for (u32, u32) {
    fn from(Alias { operand, result }: Alias) -> Self {
        (operand, result)
    }
}

/// What `jax.debug.log` puts into the records it writes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct LogRecord {
    /// The level, in Python's numbers.
    pub level: i64,
    /// The Python file that logs.
    pub path: String,
    /// The line in it.
    pub line: u64,
}

/// The type of an operand or result, as it was traced. In JSON, `["float32", ["b", "4"]]`; displayed as JAX does, `float32[b,4]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "(String, Vec<String>)")]
pub struct Array {
    /// The element type in JAX's words.
    pub dtype: String,
    /// The dimensions: numbers, variables, or expressions over them.
    pub shape: Vec<String>,
}

impl From<(String, Vec<String>)> for Array {
    fn from((dtype, shape): (String, Vec<String>)) -> Self {
        Self { dtype, shape }
    }
}

impl From<&Aval<'_>> for Array {
    /// The type of an argument or a result of a function. What is not in the device's memory has another one.
    fn from(aval: &Aval<'_>) -> Self {
        let dtype = match (aval.kind, aval.memory_space) {
            (AvalKind::ShapedArray, MemorySpace::Missing | MemorySpace::Device) => aval.dtype.to_string(),
            (AvalKind::ShapedArray, space) => format!("{}<{space}>", aval.dtype),
            (kind, _) => kind.to_string(),
        };
        Self { dtype, shape: aval.shape.iter().flatten().map(ToString::to_string).collect() }
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.dtype, self.shape.join(","))
    }
}

/// A pytree of arrays.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Tree {
    /// Nothing: `null`.
    #[default]
    None,
    /// An array: `"*"`.
    Leaf,
    /// `{"t": […]}`.
    Tuple(Vec<Tree>),
    /// `{"l": […]}`.
    List(Vec<Tree>),
    /// `{"d": […], "k": […]}`: children, and their keys.
    Dict(Vec<Tree>, Vec<Value>),
    /// `{"c": […], "n": name, "a": hex}`: a type that is registered with `jax.export`.
    Custom {
        /// The children.
        children: Vec<Tree>,
        /// The name the type is registered under.
        name: String,
        /// Its auxiliary data, serialized, in hexadecimal.
        data: String,
    },
}

impl Meta {
    /// Reads metadata and checks that it makes sense in itself.
    pub(super) fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            v: i64,
        }
        if text.len() > MAX_BYTES {
            return Err(Error::unsupported(format!("the metadata has {} bytes; at most {MAX_BYTES} are read", text.len())));
        }
        check_version(from_json::<Version>(text)?.v)?;
        let meta: Self = from_json(text)?;
        meta.check()?;
        Ok(meta)
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::format(format!("the metadata contradicts itself: {what}")));
        if self.tokens != u32::from(self.ordered) {
            return wrong("`tokens` is 1 where `ordered` is true, else 0");
        }
        if self.ordered && matches!(self.kind, Kind::Pure | Kind::Buffer) {
            return wrong("pure and buffer callbacks are never `ordered`");
        }
        if self.partitioned && self.kind == Kind::Buffer {
            return wrong("a buffer callback is never `partitioned`");
        }
        if self.kind == Kind::Print && self.fmt.is_none() {
            return wrong("a print has a `fmt`");
        }
        if self.was.is_some_and(|was| was != Kind::Buffer || !matches!(self.kind, Kind::Pure | Kind::Io)) {
            return wrong("only a pure or io callback can stand in, `as` a buffer callback");
        }
        let (operands, results) = (self.args.len(), self.results.len());
        if self.aliases.iter().any(|alias| alias.operand as usize >= operands || alias.result as usize >= results) {
            return wrong("`aliases` names an operand or a result that is not there");
        }
        Ok(())
    }
}

/// Refuses any version but ours.
pub(super) fn check_version(version: i64) -> Result<()> {
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    Err(Error::unsupported(format!("version {version} of the callback schema; this jaxprism reads version {SCHEMA_VERSION}"))
        .with_hint("use the jaxprism that exported it, or a newer one"))
}

/// The metadata with these fields set to this JSON. All others keep their text; keys are sorted, as the exporter sorts them.
pub(super) fn with_fields(text: &str, fields: &[(&str, String)]) -> Result<String> {
    let mut all: BTreeMap<String, Box<RawValue>> = from_json(text)?;
    for (key, value) in fields {
        let value = RawValue::from_string(value.clone()).map_err(|error| Error::bug(format!("`{key}` is no JSON: {error}")))?;
        all.insert((*key).to_owned(), value);
    }
    serde_json::to_string(&all).map_err(|error| Error::bug(format!("metadata cannot be written: {error}")))
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::format(format!("the metadata is not what jaxprism writes: {error}")))
}

fn yes() -> bool {
    true
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pytree: `\"*\"`, `null`, or an object with `t`, `l`, `d` and `k`, or `c`, `n` and `a`")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::None)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Tree, E> {
        if text == "*" { Ok(Tree::Leaf) } else { Err(E::invalid_value(de::Unexpected::Str(text), &self)) }
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Tree, M::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Node {
            t: Option<Vec<Tree>>,
            l: Option<Vec<Tree>>,
            d: Option<Vec<Tree>>,
            k: Option<Vec<Value>>,
            c: Option<Vec<Tree>>,
            n: Option<String>,
            a: Option<String>,
        }
        match Node::deserialize(MapAccessDeserializer::new(map))? {
            Node { t: Some(children), l: None, d: None, k: None, c: None, n: None, a: None } => Ok(Tree::Tuple(children)),
            Node { t: None, l: Some(children), d: None, k: None, c: None, n: None, a: None } => Ok(Tree::List(children)),
            Node { t: None, l: None, d: Some(children), k: Some(keys), c: None, n: None, a: None } if children.len() == keys.len() => {
                Ok(Tree::Dict(children, keys))
            }
            Node { t: None, l: None, d: None, k: None, c: Some(children), n: Some(name), a: Some(data) } => {
                Ok(Tree::Custom { children, name, data })
            }
            _ => Err(de::Error::invalid_value(de::Unexpected::Map, &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// What the Python exporter wrote for a print, a debug, a pure, an io and a buffer callback, and for a log.
    const SAMPLES: &str = include_str!("samples.jsonl");

    const FULL: &str = concat!(
        r#"{"args":[["float32",["b","4"]],["key<fry>",[]]],"cmd_buffer":true,"fn":"pkg.mod:Model.step","#,
        r#""in_tree":{"t":[{"t":["*",{"d":["*"],"k":["w"]}]},{"d":[],"k":[]}]},"kind":"buffer","name":"fill","new_field":1e400,"#,
        r#""ordered":false,"out_tree":{"l":[{"c":["*"],"n":"Point","a":"00ff"},null]},"partitioned":false,"#,
        r#""results":[["float32",["2*b","4"]]],"stable":true,"tokens":0,"v":1,"vmap_method":null}"#,
    );

    fn message(text: &str) -> String {
        Meta::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_field_is_read() {
        let text = FULL.replace("1e400", "[1]");
        let meta = Meta::parse(&text).unwrap();
        assert_eq!((meta.kind, meta.name.as_str(), meta.cmd_buffer), (Kind::Buffer, "fill", true));
        assert_eq!(meta.args.iter().map(ToString::to_string).collect::<Vec<_>>(), ["float32[b,4]", "key<fry>[]"]);
        let custom = Tree::Custom { children: vec![Tree::Leaf], name: "Point".into(), data: "00ff".into() };
        assert_eq!(meta.out_tree, Tree::List(vec![custom, Tree::None]));
    }

    #[test]
    fn what_the_exporter_writes_is_read() {
        let metas: Vec<_> = SAMPLES.lines().map(|line| Meta::parse(line).unwrap()).collect();
        let [print, debug, pure, io, buffer, log] = metas.as_slice() else { panic!("{} lines", metas.len()) };
        let kinds = [print, debug, pure, io, buffer, log].map(|meta| meta.kind);
        assert_eq!(kinds, [Kind::Print, Kind::Debug, Kind::Pure, Kind::Io, Kind::Buffer, Kind::Print]);
        assert_eq!((print.fmt.as_deref(), print.ordered, print.tokens, print.placeholders), (Some("x={x} {s}"), true, 1, true));
        assert_eq!(print.static_args[&0], "st");
        assert_eq!(print.np_printoptions[0], ("edgeitems".to_owned(), Value::from(3)));
        assert_eq!((debug.stable, &debug.static_args[&1]), (false, &Value::from("é")));
        assert_eq!(pure.vmap_method.as_deref(), Some("sequential"));
        assert_eq!((io.name.as_str(), io.function.as_deref(), io.stable), ("__main__.log", Some("__main__:log"), true));
        assert_eq!((buffer.cmd_buffer, &buffer.out_tree), (true, &Tree::List(vec![Tree::Leaf])));
        assert_eq!(log.log, Some(LogRecord { level: 20, path: "train.py".to_owned(), line: 18 }));
    }

    #[test]
    fn changed_metadata_looks_as_if_the_exporter_had_written_it() {
        for line in SAMPLES.lines() {
            assert_eq!(with_fields(line, &[]).unwrap(), line);
        }
    }

    #[test]
    fn fields_that_are_not_changed_keep_their_text() {
        let text = r#"{"v" : 1, "z": [0.10, 1e400, "\u00e9"], "kind": "buffer"}"#;
        let changed = with_fields(text, &[("kind", r#""pure""#.to_owned()), ("as", r#""buffer""#.to_owned())]).unwrap();
        assert_eq!(changed, r#"{"as":"buffer","kind":"pure","v":1,"z":[0.10, 1e400, "\u00e9"]}"#);
    }

    #[test]
    fn another_version_is_told_from_malformed_metadata() {
        let newer = Meta::parse(r#"{"v":2,"kind":{"new":"form"}}"#).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::Unsupported);
        assert_eq!(newer.to_string(), "version 2 of the callback schema; this jaxprism reads version 1");
        assert!(message(r#"{"kind":"io"}"#).contains("missing field `v`"));
    }

    #[test]
    fn malformed_metadata_is_refused() {
        for text in ["", "null", "[]", "{", "{}", r#"{"v":1}"#, r#"{"v":1,"v":1}"#, r#"{"v":"1"}"#, &FULL[..FULL.len() - 1]] {
            assert_eq!(Meta::parse(text).unwrap_err().kind(), ErrorKind::Format, "{text}");
        }
        let valid = FULL.replace("1e400", "1");
        for (from, to, what) in [
            (r#""kind":"buffer""#, r#""kind":"bufer""#, "unknown variant"),
            (r#""tokens":0"#, r#""tokens":1"#, "`tokens` is 1 where"),
            (r#""tokens":0"#, r#""tokens":-1"#, "invalid value"),
            (r#""partitioned":false"#, r#""partitioned":true"#, "never `partitioned`"),
            (r#""ordered":false"#, r#""ordered":true,"tokens":1"#, "duplicate field"),
            (r#""k":["w"]"#, r#""k":[]"#, "a pytree"),
            (r#""l":["#, r#""x":["#, "unknown field `x`"),
            (r#""stable":true"#, r#""stable":true,"as":"buffer""#, "can stand in"),
            (r#""stable":true"#, r#""aliases":[[9,0]]"#, "that is not there"),
            (r#"["b","4"]"#, r#"["b",4]"#, "invalid type"),
        ] {
            assert!(valid.contains(from), "{from}");
            assert!(message(&valid.replace(from, to)).contains(what), "{from} → {to}: {}", message(&valid.replace(from, to)));
        }
    }

    #[test]
    fn deep_and_large_metadata_overflows_nothing() {
        let unknown = FULL.replace("1e400", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert_eq!(Meta::parse(&unknown).unwrap().name, "fill", "what is not looked at may be as deep as it likes");
        let deep_tree = r#"{"t":["#.repeat(100_000);
        Meta::parse(&format!(r#"{{"v":1,"in_tree":{deep_tree}"#)).unwrap_err();
        let large = format!(r#"{{"v":1,"name":"{}"}}"#, "x".repeat(MAX_BYTES));
        assert_eq!(Meta::parse(&large).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
