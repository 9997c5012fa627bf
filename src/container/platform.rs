//! The name of a platform, as exports and the command line spell it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A platform that an export was lowered for, under JAX's canonical name: `cpu`, `cuda`, `rocm`, `tpu`, or a name that a PJRT plugin registered.
///
/// Any name found in a file is accepted; only names that a user types are checked, by [`FromStr`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform(Cow<'static, str>);

impl Platform {
    /// The host's processor.
    pub const CPU: Self = Self(Cow::Borrowed("cpu"));
    /// NVIDIA's GPUs.
    pub const CUDA: Self = Self(Cow::Borrowed("cuda"));
    /// AMD's GPUs.
    pub const ROCM: Self = Self(Cow::Borrowed("rocm"));
    /// Google's TPUs.
    pub const TPU: Self = Self(Cow::Borrowed("tpu"));

    /// The platform of that name, whatever it is.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Platform {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Platform {
    type Err = Error;

    /// Refuses what cannot be a platform of an export. `gpu` is JAX's alias for whichever GPU is there, and never stands in a file.
    fn from_str(name: &str) -> Result<Self, Error> {
        if name == "gpu" {
            return Err(Error::refused("`gpu` is not the name of a platform in an export").with_hint("use `cuda` or `rocm`"));
        }
        if name.is_empty()
            || name.contains(|character: char| character.is_whitespace() || character.is_control() || ",:=/\\".contains(character))
        {
            return Err(Error::refused(format!("`{}` is not the name of a platform", name.escape_debug()))
                .with_hint("platforms are `cpu`, `cuda`, `rocm`, `tpu`, or what a PJRT plugin registered"));
        }
        Ok(Self(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_names_are_checked() {
        assert_eq!("cuda".parse::<Platform>().unwrap(), Platform::CUDA);
        assert_eq!("my_plugin-2".parse::<Platform>().unwrap().to_string(), "my_plugin-2");
        assert_eq!("gpu".parse::<Platform>().unwrap_err().hint(), Some("use `cuda` or `rocm`"));
        for name in ["", "cpu,tpu", "a b", "../x", "cuda\n"] {
            name.parse::<Platform>().unwrap_err();
        }
    }
}
