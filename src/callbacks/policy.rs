//! What is to become of a callback.

use std::fmt;
use std::str::FromStr;

use super::{TargetClass, process_binding};
use crate::error::{Error, Result};

/// What is to become of a callback. Spelled as in the table of [`Policy::SPELLINGS`], in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// `lower`: the call that JAX itself would have emitted for the platform.
    Lower,
    /// `keep`: it stays a placeholder, to be bound when the file is loaded.
    Keep,
    /// `strip`: it goes. Its results must not be used.
    Strip,
    /// `stub:WITH`: its results are replaced, and its side effect is gone.
    Stub(StubWith),
    /// `host`: a buffer callback becomes a pure or io callback of the same name.
    Host,
    /// `unpartition`: a partitioned callback becomes a plain one, which is lowered.
    Unpartition,
    /// `ffi:TARGET`: a custom call of the user's own target.
    Ffi(String),
    /// `call:EXPORT`: its results are those of another export's function; [`CallbackOptions::exports`](super::CallbackOptions::exports) has it.
    Call(String),
    /// `refuse`: an error that names each call.
    Refuse,
}

/// What results are replaced with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StubWith {
    /// `zeros`.
    Zeros,
    /// `nan`, for floating point and complex numbers.
    Nan,
    /// `operand:K`: the operand of that number, from 0, not counting tokens. It must have the same type.
    Operand(usize),
    /// `alias`: the operand that the result is an alias of.
    Alias,
}

impl Policy {
    /// All spellings.
    pub const SPELLINGS: [&str; 12] = [
        "lower",
        "keep",
        "strip",
        "stub:zeros",
        "stub:nan",
        "stub:operand:K",
        "stub:alias",
        "host",
        "unpartition",
        "ffi:TARGET",
        "call:EXPORT",
        "refuse",
    ];
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("lower", None) => Ok(Self::Lower),
            ("keep", None) => Ok(Self::Keep),
            ("strip", None) => Ok(Self::Strip),
            ("host", None) => Ok(Self::Host),
            ("unpartition", None) => Ok(Self::Unpartition),
            ("refuse", None) => Ok(Self::Refuse),
            ("stub", Some(with)) => with.parse().map(Self::Stub),
            ("ffi", Some(target)) if !target.is_empty() => ffi(target),
            ("call", Some(export)) if !export.is_empty() && !export.contains(char::is_control) => Ok(Self::Call(export.to_owned())),
            _ => Err(unknown(text)),
        }
    }
}

impl FromStr for StubWith {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.strip_prefix("operand:")) {
            ("zeros", _) => Ok(Self::Zeros),
            ("nan", _) => Ok(Self::Nan),
            ("alias", _) => Ok(Self::Alias),
            // `parse` takes a sign too.
            (_, Some(digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map(Self::Operand).map_err(|_| unknown(&format!("stub:{text}")))
            }
            _ => Err(unknown(&format!("stub:{text}"))),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lower => f.write_str("lower"),
            Self::Keep => f.write_str("keep"),
            Self::Strip => f.write_str("strip"),
            Self::Stub(with) => write!(f, "stub:{with}"),
            Self::Host => f.write_str("host"),
            Self::Unpartition => f.write_str("unpartition"),
            Self::Ffi(target) => write!(f, "ffi:{target}"),
            Self::Call(export) => write!(f, "call:{export}"),
            Self::Refuse => f.write_str("refuse"),
        }
    }
}

impl fmt::Display for StubWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => f.write_str("zeros"),
            Self::Nan => f.write_str("nan"),
            Self::Operand(number) => write!(f, "operand:{number}"),
            Self::Alias => f.write_str("alias"),
        }
    }
}

/// A target of JAX's own would run whatever callback has that number in the process, without the guard.
fn ffi(target: &str) -> Result<Policy> {
    if target.contains(char::is_control) || target.trim() != target {
        return Err(unknown(&format!("ffi:{}", target.escape_debug())));
    }
    match (TargetClass::of(target), process_binding(target)) {
        (TargetClass::Placeholder, _) => {
            Err(Error::refused(format!("`{target}` is the target of placeholders")).with_hint("policy `keep` leaves it"))
        }
        (_, Some(reason)) => Err(Error::refused(format!("`{target}` cannot be a target of yours: {reason}"))
            .with_hint("policy `lower` makes calls of Python callbacks")),
        _ => Ok(Policy::Ffi(target.to_owned())),
    }
}

fn unknown(text: &str) -> Error {
    let policies: Vec<_> = Policy::SPELLINGS.iter().map(|spelling| format!("`{spelling}`")).collect();
    Error::refused(format!("`{text}` is not a policy for callbacks")).with_hint(format!("policies are {}", policies.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_and_written() {
        for spelling in Policy::SPELLINGS {
            let text = spelling.replace(":K", ":1").replace("TARGET", "my::target").replace("EXPORT", "out/a=b:c.jax_exported");
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("stub:operand:12".parse::<Policy>().unwrap(), Policy::Stub(StubWith::Operand(12)));
    }

    #[test]
    fn what_is_no_policy_is_answered_with_the_list() {
        for text in [
            "",
            "Lower",
            "stirp",
            "lower:",
            "strip:x",
            "stub",
            "stub:",
            "stub:one",
            "stub:operand",
            "stub:operand:",
            "stub:operand:-1",
            "stub:operand:+1",
            "stub:operand:99999999999999999999",
            "call",
            "call:",
            "call:a\nb",
            "ffi",
            "ffi:",
            "ffi:a\nb",
            " keep",
        ] {
            let error = text.parse::<Policy>().unwrap_err();
            assert!(error.hint().unwrap().contains("`stub:operand:K`"), "{text}");
            assert!(error.to_string().ends_with("is not a policy for callbacks"), "{error}");
        }
    }

    #[test]
    fn python_targets_are_no_targets_of_the_user() {
        for target in ["jaxprism_callback", "xla_ffi_python_cpu_callback", "xla_python_gpu_callback", "CustomSPMDPartitioning"] {
            format!("ffi:{target}").parse::<Policy>().unwrap_err().hint().unwrap();
        }
    }
}
