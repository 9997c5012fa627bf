//! Arrays as the signature describes them.

use std::borrow::Cow;
use std::fmt;

use super::codes::{AvalKind, DType, MemorySpace};

/// The abstract value of one flattened input or output: what is known about an array before it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aval<'a> {
    /// What is described; JAX writes arrays only.
    pub kind: AvalKind,
    /// One expression per dimension: a number, or an expression over dimension variables such as `2*b` or `b + 1`.
    pub shape: Option<Vec<Cow<'a, str>>>,
    /// The element type.
    pub dtype: DType,
    /// Where the array lives. Since schema 5.
    pub memory_space: MemorySpace,
}

impl fmt::Display for Aval<'_> {
    /// As JAX prints it: `float32[4,b]`, with the memory space only where it is not the device's: `float32<host>[4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != AvalKind::ShapedArray {
            return self.kind.fmt(f);
        }
        write!(f, "{}", self.dtype)?;
        if !matches!(self.memory_space, MemorySpace::Missing | MemorySpace::Device) {
            write!(f, "<{}>", self.memory_space)?;
        }
        write!(f, "[{}]", self.shape.as_deref().unwrap_or_default().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avals_print_as_in_jax() {
        let mut aval = Aval {
            kind: AvalKind::ShapedArray,
            shape: Some(vec!["4".into(), "2*b".into()]),
            dtype: DType::F32,
            memory_space: MemorySpace::Device,
        };
        assert_eq!(aval.to_string(), "float32[4,2*b]");
        aval.memory_space = MemorySpace::Host;
        aval.shape = None;
        assert_eq!(aval.to_string(), "float32<host>[]");
        aval.kind = AvalKind::Token;
        assert_eq!(aval.to_string(), "token");
    }
}
