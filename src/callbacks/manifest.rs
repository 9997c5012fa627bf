//! The manifest: what a host must know to bind the callbacks of the outputs, without reading any MLIR.
//!
//! It is written as JSON, or in bincode for hosts in Rust: version 2, standard configuration, the fields in the order in which they stand
//! here. Both begin with `format` and `version`. In JSON, fields may be added within one version; in bincode, nothing changes within one.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Alias, Kind};
use crate::error::{Error, Result};

/// What the field `format` says.
const FORMAT: &str = "jaxprism callbacks";

/// The version of the manifest's format.
const VERSION: u32 = 1;

/// Largest manifest we read or write, in bytes; also the most that one length in it can make us allocate.
const MAX_BYTES: usize = 64 << 20;

/// What became of the callbacks of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// What this is.
    pub format: String,
    /// The version of its format.
    pub version: u32,
    /// The platforms of the input, in its order.
    pub platforms: Vec<String>,
    /// The outputs, in the same order.
    pub outputs: Vec<ManifestOutput>,
}

/// An output, for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ManifestOutput {
    /// Its platform.
    pub platform: String,
    /// The function itself, then its vector-Jacobian product, that one's, and so on.
    pub levels: Vec<ManifestLevel>,
}

/// One function of an output with its module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ManifestLevel {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: u32,
    /// The callbacks of its module, by number.
    pub slots: Vec<ManifestSlot>,
}

/// A callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ManifestSlot {
    /// Its number in the module.
    pub slot: u32,
    /// Which of JAX's functions made it.
    pub kind: Kind,
    /// The name to bind it by.
    pub name: String,
    /// The policy that was applied, as on the command line.
    pub policy: String,
    /// The target of its custom calls; none where there are none left.
    pub target: Option<String>,
    /// The index that its custom calls hold, if they hold one.
    pub index: Option<u64>,
    /// Whether its calls are ordered by a token, the first operand and result.
    pub ordered: bool,
    /// Whether it runs once for every shard.
    pub partitioned: bool,
    /// The types of its operands, without tokens: `float32[b,4]`.
    pub operands: Vec<String>,
    /// The types of its results, without tokens.
    pub results: Vec<String>,
    /// Results in the memory of operands, each as `[operand, result]`.
    pub aliases: Vec<Alias>,
    /// Where it is called, in textual order.
    pub calls: Vec<ManifestCall>,
}

/// A call of a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ManifestCall {
    /// The function of the module that it is in.
    pub function: String,
    /// The line of Python that made it, as far as the file says: `train.py:41:8`.
    pub location: Option<String>,
}

impl Manifest {
    /// A manifest of these outputs of an export for these platforms.
    pub fn new(platforms: Vec<String>, outputs: Vec<ManifestOutput>) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, platforms, outputs }
    }

    /// The manifest as JSON, with a line feed at the end.
    pub fn to_json(&self) -> Result<String> {
        let mut json =
            serde_json::to_string_pretty(self).map_err(|error| Error::bug(format!("the manifest cannot be written: {error}")))?;
        json.push('\n');
        Ok(json)
    }

    /// Reads a manifest from JSON.
    ///
    /// # Errors
    /// - [`ErrorKind::Format`](crate::ErrorKind::Format): it is not a manifest, or malformed.
    /// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): it is newer, or larger, than this version handles.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        check_size(json.len())?;
        let head: Head = parse_json(json)?;
        head.check()?;
        parse_json(json)
    }

    /// The manifest in bincode.
    pub fn to_bincode(&self) -> Result<Vec<u8>> {
        let bytes =
            bincode::serde::encode_to_vec(self, CONFIG).map_err(|error| Error::bug(format!("the manifest cannot be written: {error}")))?;
        check_size(bytes.len())?;
        Ok(bytes)
    }

    /// Reads a manifest from bincode.
    ///
    /// # Errors
    /// As those of [`Manifest::from_json`].
    pub fn from_bincode(bytes: &[u8]) -> Result<Self> {
        check_size(bytes.len())?;
        // The two fields stand alone in front of the others, as they do in the whole.
        let (head, _) = parse_bincode::<Head>(bytes)?;
        head.check()?;
        match parse_bincode(bytes)? {
            (manifest, length) if length == bytes.len() => Ok(manifest),
            (_, length) => Err(Error::format("a manifest of callbacks ends, and the file goes on").at(length as u64)),
        }
    }
}

/// The fields that say whether the others can be read.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl Head {
    fn check(&self) -> Result<()> {
        if self.format != FORMAT {
            return Err(not_a_manifest(format_args!("its `format` is not `{FORMAT}`")));
        }
        if self.version != VERSION {
            return Err(Error::unsupported(format!(
                "version {} of the manifest of callbacks; this jaxprism reads version {VERSION}",
                self.version
            ))
            .with_hint("use the jaxprism that wrote it, or a newer one"));
        }
        Ok(())
    }
}

/// The standard configuration, with a limit.
const CONFIG: bincode::config::Configuration<bincode::config::LittleEndian, bincode::config::Varint, bincode::config::Limit<MAX_BYTES>> =
    bincode::config::standard().with_limit::<MAX_BYTES>();

fn parse_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(not_a_manifest)
}

fn parse_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize)> {
    bincode::serde::decode_from_slice(bytes, CONFIG).map_err(not_a_manifest)
}

fn not_a_manifest(why: impl fmt::Display) -> Error {
    Error::format(format!("not a manifest of callbacks: {why}"))
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::unsupported(format!("a manifest of callbacks of {bytes} bytes; at most {MAX_BYTES} are supported")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn manifest() -> Manifest {
        let call = |location: Option<&str>| ManifestCall { function: "main".to_owned(), location: location.map(str::to_owned) };
        let slot = ManifestSlot {
            slot: 0,
            kind: Kind::Buffer,
            name: "fill".to_owned(),
            policy: "lower".to_owned(),
            target: Some("xla_buffer_python_cpu_callback".to_owned()),
            index: Some(u64::MAX),
            ordered: false,
            partitioned: false,
            operands: vec!["float32[b,4]".to_owned()],
            results: vec!["float32[b,4]".to_owned()],
            aliases: vec![Alias { operand: 0, result: 0 }],
            calls: vec![call(Some("träin.py:41:8")), call(None)],
        };
        let stripped = ManifestSlot { slot: 1, kind: Kind::Debug, target: None, index: None, calls: Vec::new(), ..slot.clone() };
        let levels = vec![ManifestLevel { level: 0, slots: vec![slot, stripped] }, ManifestLevel { level: 1, slots: Vec::new() }];
        let outputs = vec![ManifestOutput { platform: "cpu".to_owned(), levels }];
        Manifest::new(vec!["cpu".to_owned(), "tpu".to_owned()], outputs)
    }

    #[test]
    fn a_manifest_survives_both_forms() {
        let manifest = manifest();
        let json = manifest.to_json().unwrap();
        assert_eq!(Manifest::from_json(json.as_bytes()).unwrap(), manifest);
        assert!(json.starts_with("{\n  \"format\": \"jaxprism callbacks\",\n  \"version\": 1,") && json.ends_with("}\n"));
        assert!(json.contains("\"kind\": \"buffer\""));
        let bytes = manifest.to_bincode().unwrap();
        assert_eq!(Manifest::from_bincode(&bytes).unwrap(), manifest);
        assert_eq!(bytes[..20], *b"\x12jaxprism callbacks\x01");
        assert!(bytes.len() < json.len());
    }

    #[test]
    fn json_may_have_further_fields() {
        let manifest = manifest();
        let json = manifest.to_json().unwrap().replacen('{', "{\"new\": [],", 1);
        assert_eq!(Manifest::from_json(json.as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn another_format_or_version_is_said_to_be_that() {
        for (version, platforms) in [(2, "1"), (0, "[]")] {
            let json = format!(r#"{{"format": "jaxprism callbacks", "version": {version}, "platforms": {platforms}}}"#);
            let error = Manifest::from_json(json.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.to_string(), format!("version {version} of the manifest of callbacks; this jaxprism reads version 1"));
        }
        let mut newer = manifest().to_bincode().unwrap();
        newer[19] = 2;
        assert_eq!(Manifest::from_bincode(&newer[..20]).unwrap_err().kind(), ErrorKind::Unsupported);
        let other = Manifest::from_json(br#"{"format": "other", "version": 1}"#).unwrap_err();
        assert_eq!(other.to_string(), "not a manifest of callbacks: its `format` is not `jaxprism callbacks`");
    }

    #[test]
    fn garbage_is_refused() {
        let (json, bytes) = (manifest().to_json().unwrap(), manifest().to_bincode().unwrap());
        // Without the line feed, the JSON is still whole.
        for length in 0..json.len() - 1 {
            assert_eq!(Manifest::from_json(&json.as_bytes()[..length]).unwrap_err().kind(), ErrorKind::Format);
        }
        for length in 0..bytes.len() {
            assert_eq!(Manifest::from_bincode(&bytes[..length]).unwrap_err().kind(), ErrorKind::Format);
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                // It may still be a manifest, of another name or number.
                _ = Manifest::from_bincode(&changed);
            }
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(Manifest::from_bincode(&longer).unwrap_err().offset(), Some(bytes.len() as u64));
        for input in [&b""[..], b"\xff\xff", b"{}", json.as_bytes(), &[0xfd; 64]] {
            Manifest::from_bincode(input).unwrap_err();
        }
        for input in [&b""[..], b"\xff\xff", b"{}", b"null", &bytes, "[".repeat(100_000).as_bytes()] {
            Manifest::from_json(input).unwrap_err();
        }
    }

    #[test]
    fn a_count_in_the_file_does_not_decide_what_is_allocated() {
        let head = b"\x12jaxprism callbacks\x01".to_vec();
        for count in [u64::from(u32::MAX), u64::MAX, MAX_BYTES as u64 + 1] {
            // The number of platforms, and the length of the first one's name.
            for before in [&[][..], &[1]] {
                let input = [&head, before, &[0xfd], &count.to_le_bytes()[..]].concat();
                assert_eq!(Manifest::from_bincode(&input).unwrap_err().kind(), ErrorKind::Format);
            }
        }
        let large = vec![b' '; MAX_BYTES + 1];
        assert_eq!(Manifest::from_json(&large).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Manifest::from_bincode(&large).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
