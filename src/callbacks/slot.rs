//! A slot: the callback that a placeholder stands for.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use super::SCHEMA_VERSION;
use super::meta::{self, Alias, Meta};
use crate::error::{Error, Result};

use ConfigValue::{Integer, Other, Text};

/// Longest name we accept, in bytes.
const MAX_NAME: usize = 4096;

/// Which of JAX's functions made a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `jax.pure_callback`.
    Pure,
    /// `jax.experimental.io_callback`.
    Io,
    /// `jax.experimental.buffer_callback`.
    Buffer,
    /// `jax.debug.callback`.
    Debug,
    /// `jax.debug.print`.
    Print,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Pure, Self::Io, Self::Buffer, Self::Debug, Self::Print];

    /// Its name, as in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Io => "io",
            Self::Buffer => "buffer",
            Self::Debug => "debug",
            Self::Print => "print",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| Error::format(format!("`{text}` is no kind of callback: `pure`, `io`, `buffer`, `debug` or `print`")))
    }
}

/// A value in the placeholder's `mhlo.backend_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigValue<'a> {
    /// A signless 64-bit integer.
    Integer(i64),
    /// A string.
    Text(&'a str),
    /// Anything else, strings that are not UTF-8 included.
    Other,
}

/// What tells slots apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotKey {
    /// Which of JAX's functions made it.
    pub kind: Kind,
    /// The name to bind it by.
    pub name: String,
    /// The metadata, byte for byte as in the file.
    pub meta: String,
}

impl SlotKey {
    /// Reads the items of a placeholder's `mhlo.backend_config`: `v`, `kind`, `name` and `meta`, in any order, and no others.
    pub fn read(config: &[(&str, ConfigValue<'_>)]) -> Result<Self> {
        let name = config.iter().find_map(|item| if let ("name", Text(name)) = *item { Some(name) } else { None });
        Self::read_items(config).map_err(|error| match name {
            Some(name) => error.context(format!("cannot read callback `{name}`")),
            None => error.context("cannot read a callback"),
        })
    }

    fn read_items(config: &[(&str, ConfigValue<'_>)]) -> Result<Self> {
        match item(config, "v")? {
            Integer(version) => meta::check_version(version)?,
            _ => return Err(Error::format("`v` is not a 64-bit integer")),
        }
        if let Some((key, _)) = config.iter().find(|(key, _)| !matches!(*key, "v" | "kind" | "name" | "meta")) {
            return Err(Error::format(format!("`mhlo.backend_config` has an unknown item `{key}`")));
        }
        let (kind, name, meta) = (text(config, "kind")?.parse()?, text(config, "name")?.to_owned(), text(config, "meta")?.to_owned());
        match name.len() {
            0 => Err(Error::format("its name is empty")),
            length if length > MAX_NAME => Err(Error::unsupported(format!("its name has {length} bytes; at most {MAX_NAME} are read"))),
            _ => Ok(Self { kind, name, meta }),
        }
    }

    /// The items to write, sorted by key, as MLIR sorts dictionaries.
    pub fn items(&self) -> [(&'static str, ConfigValue<'_>); 4] {
        [("kind", Text(self.kind.as_str())), ("meta", Text(&self.meta)), ("name", Text(&self.name)), ("v", Integer(SCHEMA_VERSION))]
    }
}

fn item<'a>(config: &[(&str, ConfigValue<'a>)], key: &str) -> Result<ConfigValue<'a>> {
    let mut found = config.iter().filter(|(name, _)| *name == key).map(|(_, value)| *value);
    match (found.next(), found.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Error::format(format!("`mhlo.backend_config` has no `{key}`"))),
        (Some(_), Some(_)) => Err(Error::format(format!("`mhlo.backend_config` has `{key}` twice"))),
    }
}

fn text<'a>(config: &[(&str, ConfigValue<'a>)], key: &str) -> Result<&'a str> {
    match item(config, key)? {
        Text(text) => Ok(text),
        Integer(_) | Other => Err(Error::format(format!("`{key}` is not a string"))),
    }
}

/// A callback: one kind, name and metadata. Slots are equal if their keys are.
#[derive(Debug, Clone)]
pub struct Slot {
    key: SlotKey,
    meta: Meta,
}

impl Slot {
    /// Reads the items of a placeholder's `mhlo.backend_config`, metadata included.
    pub fn read(config: &[(&str, ConfigValue<'_>)]) -> Result<Self> {
        Self::new(SlotKey::read(config)?)
    }

    /// Reads the metadata of a key.
    pub fn new(key: SlotKey) -> Result<Self> {
        let meta = Meta::parse(&key.meta).and_then(|meta| {
            if (meta.kind, &meta.name) == (key.kind, &key.name) {
                return Ok(meta);
            }
            let (kind, name) = (meta.kind, meta.name);
            Err(Error::format(format!("its metadata is that of a {kind} callback `{name}`, it itself is a {} callback", key.kind)))
        });
        match meta {
            Ok(meta) => Ok(Self { key, meta }),
            Err(error) => Err(error.context(format!("cannot read callback `{}`", key.name))),
        }
    }

    /// What tells it from other slots, and what is written.
    pub fn key(&self) -> &SlotKey {
        &self.key
    }

    /// Which of JAX's functions made it.
    pub fn kind(&self) -> Kind {
        self.key.kind
    }

    /// The name to bind it by.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// What the metadata says.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The policy `host`: a buffer callback as a pure one or, with side effects, as an io one. `aliases` are those of the operation.
    pub fn to_host(&self, has_side_effect: bool, aliases: &[Alias]) -> Result<Self> {
        if self.kind() != Kind::Buffer {
            return Err(Error::refused(format!("{self} runs on the host already: policy `host` is for buffer callbacks")));
        }
        let kind = if has_side_effect { Kind::Io } else { Kind::Pure };
        let aliases: Vec<_> = aliases.iter().map(|alias| format!("[{},{}]", alias.operand, alias.result)).collect();
        let quoted = |text: &str| format!("\"{text}\"");
        let fields =
            [("kind", quoted(kind.as_str())), ("as", quoted(Kind::Buffer.as_str())), ("aliases", format!("[{}]", aliases.join(",")))];
        Self::new(SlotKey { kind, name: self.key.name.clone(), meta: meta::with_fields(&self.key.meta, &fields)? })
    }

    /// The policy `unpartition`: a partitioned callback as a plain one.
    pub fn to_unpartitioned(&self) -> Result<Self> {
        if !self.meta.partitioned {
            return Err(Error::refused(format!("{self} is not partitioned: policy `unpartition` is for callbacks that are")));
        }
        if !self.meta.results.is_empty() {
            return Err(Error::refused(format!("{self} is partitioned and has results, which no platform supports"))
                .with_hint("policy `stub` replaces the results"));
        }
        let meta = meta::with_fields(&self.key.meta, &[("partitioned", "false".to_owned())])?;
        Self::new(SlotKey { meta, ..self.key.clone() })
    }
}

impl fmt::Display for Slot {
    /// ``io callback `log` ``, as errors call it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} callback `{}`", self.kind(), self.name())
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Slot {}

impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Borrow<SlotKey> for Slot {
    fn borrow(&self) -> &SlotKey {
        &self.key
    }
}

/// The slots of one module, numbered from 0 as they are added: by first appearance in textual pre-order, `main` first.
#[derive(Debug, Clone, Default)]
pub struct Slots(IndexSet<Slot>);

impl Slots {
    /// The number of the slot with that key, whose metadata is read if it is new.
    pub fn add(&mut self, key: SlotKey) -> Result<usize> {
        match self.0.get_index_of(&key) {
            Some(number) => Ok(number),
            None => Ok(self.0.insert_full(Slot::new(key)?).0),
        }
    }

    /// The slot of that number.
    pub fn get(&self, number: usize) -> Option<&Slot> {
        self.0.get_index(number)
    }

    /// The slots in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Slot> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A slot for tests, of that kind and with further fields of metadata.
#[cfg(test)]
pub(super) fn slot(kind: Kind, name: &str, fields: &str) -> Slot {
    let results = if fields.contains("\"results\"") { "" } else { r#""results":[],"# };
    let meta = format!(r#"{{{fields}"args":[["float32",["4"]]],"fmt":"",{results}"kind":"{kind}","name":"{name}","v":1}}"#);
    Slot::new(SlotKey { kind, name: name.to_owned(), meta }).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const META: &str = r#"{"args": [], "kind": "io", "name": "log", "results": [], "v": 1}"#;

    fn error(config: &[(&str, ConfigValue<'_>)]) -> String {
        format!("{:?}", Slot::read(config).unwrap_err())
    }

    #[test]
    fn a_slot_is_written_as_it_was_read() {
        let config = [("v", Integer(1)), ("kind", Text("io")), ("name", Text("log")), ("meta", Text(META))];
        let slot = Slot::read(&config).unwrap();
        assert_eq!((slot.kind(), slot.name(), slot.to_string().as_str()), (Kind::Io, "log", "io callback `log`"));
        assert_eq!(slot.key().meta, META, "byte for byte");
        assert_eq!(Slot::read(&slot.key().items()).unwrap(), slot);
        assert!(slot.key().items().is_sorted_by_key(|(key, _)| *key));
    }

    #[test]
    fn slots_are_numbered_by_first_appearance() {
        let mut slots = Slots::default();
        let key = |name: &str| slot(Kind::Io, name, "").key().clone();
        assert_eq!(["b", "a", "b", "c", "a"].map(|name| slots.add(key(name)).unwrap()), [0, 1, 0, 2, 1]);
        assert_eq!(slots.iter().map(Slot::name).collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!((slots.len(), slots.get(1).map(Slot::name), slots.get(3)), (3, Some("a"), None));
        let other_meta = slot(Kind::Io, "b", r#""stable":false,"#);
        assert_eq!(slots.add(other_meta.key().clone()).unwrap(), 3, "same name, other metadata");
    }

    #[test]
    fn errors_name_the_slot_and_the_item() {
        let full = [("v", Integer(1)), ("kind", Text("io")), ("name", Text("log")), ("meta", Text(META))];
        let with = |index: usize, value| {
            let mut config = full;
            config[index].1 = value;
            error(&config)
        };
        assert_eq!(
            with(1, Text("i/o")),
            "Format: cannot read callback `log`: `i/o` is no kind of callback: `pure`, `io`, `buffer`, `debug` or `print`"
        );
        assert_eq!(with(1, Other), "Format: cannot read callback `log`: `kind` is not a string");
        assert_eq!(with(0, Text("1")), "Format: cannot read callback `log`: `v` is not a 64-bit integer");
        assert!(with(0, Integer(2)).starts_with("Unsupported: cannot read callback `log`: version 2 of the callback schema"));
        assert_eq!(with(2, Text("")), "Format: cannot read callback ``: its name is empty");
        assert!(with(2, Text("other")).contains("its metadata is that of a io callback `log`"));
        assert!(with(3, Text("{")).starts_with("Format: cannot read callback `log`: the metadata is not what jaxprism writes: EOF"));
        assert_eq!(error(&full[..3]), "Format: cannot read callback `log`: `mhlo.backend_config` has no `meta`");
        assert_eq!(error(&[]), "Format: cannot read a callback: `mhlo.backend_config` has no `v`");
        let twice: Vec<_> = full.into_iter().chain([("meta", Text(META))]).collect();
        assert!(error(&twice).ends_with("has `meta` twice"));
        let extra: Vec<_> = full.into_iter().chain([("index", Other)]).collect();
        assert!(error(&extra).ends_with("has an unknown item `index`"));
        let long = "x".repeat(MAX_NAME + 1);
        assert_eq!(Slot::read(&[full[0], full[1], ("name", Text(&long)), full[3]]).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_buffer_callback_becomes_one_of_the_host() {
        let results = r#""results":[["float32",["4"]]],"out_tree":"*","#;
        let buffer = slot(Kind::Buffer, "fill", results);
        let host = buffer.to_host(false, &[Alias { operand: 0, result: 0 }]).unwrap();
        assert_eq!((host.kind(), host.name(), host.meta().was), (Kind::Pure, "fill", Some(Kind::Buffer)));
        assert_eq!((host.meta().aliases.len(), &host.meta().out_tree), (1, &buffer.meta().out_tree));
        assert_eq!(buffer.to_host(true, &[]).unwrap().kind(), Kind::Io);
        assert_eq!(host.to_host(false, &[]).unwrap_err().kind(), ErrorKind::Refused);
    }

    #[test]
    fn a_partitioned_callback_without_results_becomes_a_plain_one() {
        let plain = slot(Kind::Debug, "see", r#""partitioned":true,"#).to_unpartitioned().unwrap();
        assert!(!plain.meta().partitioned);
        plain.to_unpartitioned().unwrap_err();
        let results = slot(Kind::Io, "see", r#""partitioned":true,"results":[["float32",[]]],"#);
        assert!(results.to_unpartitioned().unwrap_err().hint().is_some());
    }
}
