//! Versions of StableHLO: which one an artifact is in, and which bytecode goes with it.
//!
//! Source: StableHLO's `Version.cpp`, and `VhloDialect.td` for what came with which.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What the producer of a portable artifact begins with, before the version.
const PRODUCER: &str = "StableHLO_v";

/// A version of StableHLO, such as `1.9.0`. Operations, attributes and types come with a minor version; a patch brings none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StablehloVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

impl StablehloVersion {
    /// The oldest that StableHLO writes.
    pub const OLDEST: Self = Self::new(0, 9, 0);
    /// The newest that we know.
    pub const NEWEST: Self = Self::new(1, 22, 0);
    /// The first in which other dialects may stand beside `vhlo`.
    pub(crate) const MIXED: Self = Self::new(1, 11, 0);
    /// The first whose readers all know locations that are ranges.
    pub(crate) const RANGES: Self = Self::new(1, 9, 0);

    pub(crate) const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// The version that a producer names, e.g. `StableHLO_v1.18.0`. `None` for other producers.
    pub fn of_producer(producer: &[u8]) -> Option<Self> {
        numbers(std::str::from_utf8(producer).ok()?.strip_prefix(PRODUCER)?)
    }

    /// The producer of artifacts in this version.
    pub fn producer(self) -> String {
        format!("{PRODUCER}{self}")
    }

    /// The version of MLIR bytecode that artifacts in this version are written in.
    pub fn bytecode(self) -> u64 {
        match (self.major, self.minor) {
            (0, ..10) => 0,
            (0, 10..12) => 1,
            (0, 12..14) => 3,
            (0, 14) => 4,
            _ => 6,
        }
    }
}

impl fmt::Display for StablehloVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for StablehloVersion {
    type Err = Error;

    /// Reads a version that can be written.
    fn from_str(text: &str) -> Result<Self> {
        let hint = || format!("it is one of {} to {}, such as `1.9.0`", Self::OLDEST, Self::NEWEST);
        let version = numbers(text).ok_or_else(|| Error::refused(format!("`{text}` is no version of StableHLO")).with_hint(hint()))?;
        if version < Self::OLDEST {
            return Err(Error::refused(format!("StableHLO does not write version {version}")).with_hint(hint()));
        }
        if version > Self::NEWEST {
            return Err(Error::refused(format!("StableHLO {version} is newer than what jaxprism knows")).with_hint(hint()));
        }
        Ok(version)
    }
}

/// The three numbers of a version.
fn numbers(text: &str) -> Option<StablehloVersion> {
    let mut parts = text.split('.').map(|part| part.parse::<u16>().ok().filter(|number| number.to_string() == part));
    let version = StablehloVersion { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers_in_order() {
        let version = |text: &str| text.parse::<StablehloVersion>().map_err(|error| error.to_string());
        assert!(version("1.9.0").unwrap() < version("1.10.0").unwrap() && version("0.20.0").unwrap() < version("1.0.0").unwrap());
        assert_eq!(version("1.13.7").unwrap().to_string(), "1.13.7");
        for text in ["", "1", "1.9", "1.9.0.0", "v1.9.0", "1.9.x", "1.+9.0", "1..0", " 1.9.0", "1.9.99999"] {
            assert_eq!(version(text).unwrap_err(), format!("`{text}` is no version of StableHLO"));
        }
        assert_eq!(version("0.8.9").unwrap_err(), "StableHLO does not write version 0.8.9");
        assert_eq!(version("1.22.1").unwrap_err(), "StableHLO 1.22.1 is newer than what jaxprism knows");
        assert_eq!(version(&StablehloVersion::OLDEST.to_string()), Ok(StablehloVersion::OLDEST));
        assert_eq!(version(&StablehloVersion::NEWEST.to_string()), Ok(StablehloVersion::NEWEST));
    }

    #[test]
    fn producers_name_versions() {
        let version: StablehloVersion = "1.18.0".parse().unwrap();
        assert_eq!(StablehloVersion::of_producer(version.producer().as_bytes()), Some(version));
        // Newer ones are versions too.
        assert!(StablehloVersion::of_producer(b"StableHLO_v2.0.0").unwrap() > StablehloVersion::NEWEST);
        assert_eq!(StablehloVersion::of_producer(b"MLIR22.0.0"), None);
    }
}
