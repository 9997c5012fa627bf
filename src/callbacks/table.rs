//! The table: what a callback is lowered to on a platform.
//!
//! It is data, `table.json`, and a user's file in the same format adds to it:
//!
//! ```json
//! {
//!   "v": 1,
//!   "platforms": {
//!     "my_gpu": { "like": "cuda", "buffer": "my_buffer_callback", "command_buffer": null },
//!     "my_npu": { "callback": "my_python_callback" }
//!   }
//! }
//! ```
//!
//! | key of a platform | the target of |
//! | --- | --- |
//! | `callback` | pure, io, debug and print callbacks |
//! | `partitioned` | those of them that run once for every shard, and have no results |
//! | `buffer` | buffer callbacks |
//! | `command_buffer` | buffer callbacks that can be recorded into a command buffer; where it is missing, `buffer` |
//! | `host_transfer` | instead of `callback`, `true`: what `send` and `recv` do there, which only JAX can emit, as it loads the file |
//!
//! A platform that is there already keeps what its new row does not name. `like` starts from the row of another platform, which is there
//! already or further up in the file. `null` removes a target. What has no target is impossible.
//!
//! A target is a typed FFI handler that takes the number of the callback in `mhlo.backend_config = {index = N : ui64}`, as JAX's own do.

#![allow(clippy::expect_used, reason = "the file is part of the program")]

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};

use super::{Kind, PLACEHOLDER_TARGET, Slot};
use crate::container::Platform;
use crate::error::{Error, Result};

/// The version of the table's format.
const VERSION: u32 = 1;

/// What `lower` does with a callback on a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lowering {
    /// A custom call of that target.
    Target(String),
    /// The placeholder stays: the loader lowers it to host transfers, with JAX's own rule.
    HostTransfer,
    /// It cannot be done, and why: ``buffer callbacks have no target on `tpu` ``.
    Impossible(String),
}

impl Lowering {
    /// Whether it cannot be done.
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::Impossible(_))
    }
}

/// What callbacks are lowered to on each platform. The default is what JAX does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    rows: IndexMap<String, Row>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Row {
    callback: Cell,
    partitioned: Cell,
    buffer: Cell,
    command_buffer: Cell,
    host_transfer: bool,
}

type Cell = Option<String>;

impl Table {
    /// The table with what a user's file says, in the [format](self) that the built-in one has.
    pub fn with_user_file(mut self, json: &str) -> Result<Self> {
        self.merge(json)?;
        Ok(self)
    }

    /// What becomes of a callback on a platform.
    pub fn lowering(&self, slot: &Slot, platform: &Platform) -> Lowering {
        let meta = slot.meta();
        if meta.partitioned && !meta.results.is_empty() {
            return Lowering::Impossible("partitioned callbacks with results have no target on any platform".to_owned());
        }
        let Some(row) = self.rows.get(platform.as_str()) else {
            return Lowering::Impossible(format!("callbacks have no target on `{platform}`, which the table does not have"));
        };
        let (cell, what) = match slot.kind() {
            Kind::Buffer if meta.cmd_buffer => (row.command_buffer.as_ref().or(row.buffer.as_ref()), "buffer"),
            Kind::Buffer => (row.buffer.as_ref(), "buffer"),
            _ if meta.partitioned => (row.partitioned.as_ref(), "partitioned"),
            _ if row.host_transfer => return Lowering::HostTransfer,
            kind => (row.callback.as_ref(), kind.as_str()),
        };
        match cell {
            Some(target) => Lowering::Target(target.clone()),
            None => Lowering::Impossible(format!("{what} callbacks have no target on `{platform}`")),
        }
    }

    /// Whether the table has that platform.
    pub fn has_platform(&self, platform: &str) -> bool {
        self.rows.contains_key(platform)
    }

    /// The platforms of the table.
    pub fn platforms(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    /// Whether `lower` can have written that target.
    pub fn has_target(&self, target: &str) -> bool {
        self.targets().any(|known| known == target)
    }

    /// The targets of the table; some stand in several rows.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.rows.values().flat_map(Row::cells).flatten().map(String::as_str)
    }

    fn merge(&mut self, json: &str) -> Result<()> {
        let file: File = serde_json::from_str(json).map_err(|error| Error::format(format!("not a table of callbacks: {error}")))?;
        if file.v != VERSION {
            return Err(Error::unsupported(format!("version {} of the table of callbacks; this jaxprism reads version {VERSION}", file.v)));
        }
        for (name, patch) in file.platforms {
            let row = self.patched(&name, patch).map_err(|error| error.context(format!("bad row `{name}` in the table of callbacks")))?;
            self.rows.insert(name, row);
        }
        Ok(())
    }

    fn patched(&self, name: &str, patch: Patch) -> Result<Row> {
        name.parse::<Platform>()?;
        let row = |name: &str| self.rows.get(name).cloned();
        let mut row = match &patch.like {
            Some(like) => row(like).ok_or_else(|| {
                let known: Vec<_> = self.platforms().map(|name| format!("`{name}`")).collect();
                Error::format(format!("`like` names `{like}`, which is not in the table"))
                    .with_hint(format!("further up, there are {}", known.join(", ")))
            })?,
            None => row(name).unwrap_or_default(),
        };
        match (&patch.callback, patch.host_transfer) {
            (Some(Some(_)), Some(true)) => return Err(Error::format("either `callback` or `host_transfer`, not both")),
            (Some(Some(_)), _) => row.host_transfer = false,
            (_, Some(true)) => (row.host_transfer, row.callback) = (true, None),
            (_, Some(false)) => row.host_transfer = false,
            (_, None) => {}
        }
        for (key, cell, new) in [
            ("callback", &mut row.callback, patch.callback),
            ("partitioned", &mut row.partitioned, patch.partitioned),
            ("buffer", &mut row.buffer, patch.buffer),
            ("command_buffer", &mut row.command_buffer, patch.command_buffer),
        ] {
            if let Some(new) = new {
                let bad = |target: &String| target.is_empty() || target == PLACEHOLDER_TARGET || target.contains(char::is_control);
                if let Some(target) = new.as_ref().filter(|target| bad(target)) {
                    return Err(Error::format(format!("`{key}`: `{target}` cannot be a target")));
                }
                *cell = new;
            }
        }
        Ok(row)
    }
}

impl Default for Table {
    fn default() -> Self {
        static BUILT_IN: LazyLock<Table> = LazyLock::new(|| {
            let empty = Table { rows: IndexMap::new() };
            empty.with_user_file(include_str!("table.json")).expect("`table.json` is part of the program")
        });
        BUILT_IN.clone()
    }
}

impl Row {
    fn cells(&self) -> [&Cell; 4] {
        [&self.callback, &self.partitioned, &self.buffer, &self.command_buffer]
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    v: u32,
    platforms: IndexMap<String, Patch>,
}

/// A row as it stands in a file: a key that is not there changes nothing, `null` removes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a row of targets, such as `{\"like\": \"cuda\"}`")]
struct Patch {
    like: Option<String>,
    #[serde(default, deserialize_with = "given")]
    callback: Option<Cell>,
    #[serde(default, deserialize_with = "given")]
    partitioned: Option<Cell>,
    #[serde(default, deserialize_with = "given")]
    buffer: Option<Cell>,
    #[serde(default, deserialize_with = "given")]
    command_buffer: Option<Cell>,
    host_transfer: Option<bool>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cell>, D::Error> {
    Cell::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::slot::slot;
    use super::*;
    use crate::error::ErrorKind;

    const RESULTS: &str = r#""results":[["float32",[]]],"#;

    fn lowered(table: &Table, slot: &Slot, platform: &'static str) -> String {
        match table.lowering(slot, &Platform::new(platform)) {
            Lowering::Target(target) => target,
            Lowering::HostTransfer => "transfer".to_owned(),
            Lowering::Impossible(why) => format!("no: {why}"),
        }
    }

    #[test]
    fn jax_lowers_callbacks_like_this() {
        let table = Table::default();
        for kind in [Kind::Pure, Kind::Io, Kind::Debug, Kind::Print] {
            let plain = slot(kind, "f", "");
            assert_eq!(lowered(&table, &plain, "cpu"), "xla_ffi_python_cpu_callback");
            assert_eq!(lowered(&table, &plain, "tpu"), "transfer");
            assert_eq!(lowered(&table, &plain, "METAL"), "no: callbacks have no target on `METAL`, which the table does not have");
            let partitioned = slot(kind, "f", r#""partitioned":true,"#);
            assert_eq!(lowered(&table, &partitioned, "cpu"), "xla_ffi_partitioned_python_cpu_callback");
            assert_eq!(lowered(&table, &partitioned, "tpu"), "no: partitioned callbacks have no target on `tpu`");
            for gpu in ["cuda", "rocm", "oneapi"] {
                assert_eq!(lowered(&table, &plain, gpu), "xla_ffi_python_gpu_callback");
                assert_eq!(lowered(&table, &partitioned, gpu), "xla_ffi_partitioned_python_gpu_callback");
            }
            let with_results = slot(kind, "f", &format!(r#""partitioned":true,{RESULTS}"#));
            for platform in ["cpu", "cuda", "tpu", "METAL"] {
                assert!(lowered(&table, &with_results, platform).starts_with("no: partitioned callbacks with results"));
            }
        }
        let buffer = slot(Kind::Buffer, "f", RESULTS);
        let recorded = slot(Kind::Buffer, "f", r#""cmd_buffer":true,"#);
        assert_eq!(lowered(&table, &buffer, "cpu"), "xla_buffer_python_cpu_callback");
        assert_eq!(lowered(&table, &recorded, "cpu"), "xla_buffer_python_cpu_callback");
        for gpu in ["cuda", "rocm", "oneapi"] {
            assert_eq!(lowered(&table, &buffer, gpu), "xla_buffer_python_gpu_callback");
            assert_eq!(lowered(&table, &recorded, gpu), "xla_buffer_python_gpu_callback_cmd_buffer");
        }
        assert_eq!(lowered(&table, &buffer, "tpu"), "no: buffer callbacks have no target on `tpu`");
    }

    #[test]
    fn targets_are_found_again() {
        let table = Table::default();
        assert!(table.has_target("xla_ffi_python_cpu_callback") && table.has_target("xla_buffer_python_gpu_callback_cmd_buffer"));
        assert!(!table.has_target("xla_python_cpu_callback") && !table.has_target(PLACEHOLDER_TARGET));
        assert_eq!(table.platforms().collect::<Vec<_>>(), ["cpu", "cuda", "rocm", "oneapi", "tpu"]);
        assert!(table.has_platform("tpu") && !table.has_platform("gpu"));
    }

    #[test]
    fn a_file_adds_platforms_and_targets() {
        let json = r#"{"v": 1, "platforms": {
            "my_gpu": {"like": "cuda", "buffer": "mine", "command_buffer": null},
            "my_gpu2": {"like": "my_gpu", "partitioned": null},
            "cpu": {"callback": "other"},
            "tpu": {"callback": "tpu_callback"},
            "my_npu": {"host_transfer": true}
        }}"#;
        let table = Table::default().with_user_file(json).unwrap();
        let (plain, partitioned) = (slot(Kind::Io, "f", ""), slot(Kind::Debug, "f", r#""partitioned":true,"#));
        let recorded = slot(Kind::Buffer, "f", r#""cmd_buffer":true,"#);
        assert_eq!(lowered(&table, &recorded, "my_gpu2"), "mine");
        assert_eq!(lowered(&table, &plain, "my_gpu2"), "xla_ffi_python_gpu_callback");
        assert_eq!(lowered(&table, &partitioned, "my_gpu2"), "no: partitioned callbacks have no target on `my_gpu2`");
        assert_eq!((lowered(&table, &plain, "cpu"), lowered(&table, &plain, "tpu")), ("other".to_owned(), "tpu_callback".to_owned()));
        assert_eq!(lowered(&table, &partitioned, "cpu"), "xla_ffi_partitioned_python_cpu_callback");
        assert_eq!(lowered(&table, &plain, "my_npu"), "transfer");
        assert_eq!(lowered(&table, &recorded, "my_npu"), "no: buffer callbacks have no target on `my_npu`");
        assert!(table.has_target("tpu_callback"));
        let no_callback = Table::default().with_user_file(r#"{"v": 1, "platforms": {"cpu": {"callback": null}}}"#).unwrap();
        assert_eq!(lowered(&no_callback, &plain, "cpu"), "no: io callbacks have no target on `cpu`");
    }

    #[test]
    fn bad_files_are_refused_with_their_place() {
        for (json, what) in [
            ("", "not a table of callbacks: EOF while parsing a value at line 1 column 0"),
            ("{\"v\": 1,\n\"platform\": {}}", "unknown field `platform`, expected `v` or `platforms` at line 2 column 10"),
            (r#"{"v": 1, "platforms": {"x": {"calback": "y"}}}"#, "unknown field `calback`"),
            (r#"{"v": 1, "platforms": {"x": {"callback": 1}}}"#, "invalid type"),
            (r#"{"v": 2, "platforms": {}}"#, "version 2 of the table of callbacks; this jaxprism reads version 1"),
            (r#"{"v": 1, "platforms": {"gpu": {}}}"#, "bad row `gpu` in the table of callbacks: `gpu` is not the name of a platform"),
            (r#"{"v": 1, "platforms": {"x": {"like": "y"}, "y": {}}}"#, "bad row `x` in the table of callbacks: `like` names `y`"),
            (r#"{"v": 1, "platforms": {"x": {"like": "x"}}}"#, "`like` names `x`"),
            (r#"{"v": 1, "platforms": {"x": {"buffer": ""}}}"#, "`buffer`: `` cannot be a target"),
            (r#"{"v": 1, "platforms": {"x": {"callback": "jaxprism_callback"}}}"#, "cannot be a target"),
            (r#"{"v": 1, "platforms": {"x": {"callback": "y", "host_transfer": true}}}"#, "not both"),
        ] {
            let error = format!("{:?}", Table::default().with_user_file(json).unwrap_err());
            assert!(error.contains(what), "{error}");
        }
        let error = Table::default().with_user_file(r#"{"v": 2, "platforms": {}}"#).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
