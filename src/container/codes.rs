//! The enumerations of the container. A code that we do not know is carried unchanged and printed as a number: JAX lets programs register dtypes
//! of their own (`register_dtype_kind`), and nothing that is split here depends on what such a code means.

use std::fmt;

/// Declares an enumeration with, for each variant, its code in the file and its name in words.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A code that this version does not know.
            Other(i8),
        }

        impl $name {
            /// The meaning of a code.
            pub fn from_code(code: i8) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// The code in the file.
            pub fn code(self) -> i8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.pad($text),)*
                    Self::Other(code) => f.pad(&format!("#{code}")),
                }
            }
        }
    };
}

codes! {
    /// What a node of a [`PyTree`](super::PyTree) is.
    PyTreeKind {
        /// One array.
        Leaf = 0 "leaf",
        /// `None`: a node without children.
        None = 1 "none",
        /// A tuple.
        Tuple = 2 "tuple",
        /// A list.
        List = 3 "list",
        /// A dict with string keys.
        Dict = 4 "dict",
        /// A type that the program registered by name, named tuples included. Since schema 3.
        Custom = 5 "custom",
    }
}

codes! {
    /// What an [`Aval`](super::Aval) describes.
    AvalKind {
        /// An array of a dtype and a shape; the only kind that JAX writes.
        ShapedArray = 0 "array",
        /// A token that orders side effects.
        Token = 1 "token",
    }
}

codes! {
    /// The element type of an array, printed under its name in JAX. `F8E4M3` to `F4E2M1Fn` joined without a schema version of their own.
    DType {
        /// `bool`.
        Bool = 0 "bool",
        /// `int8`.
        I8 = 1 "int8",
        /// `int16`.
        I16 = 2 "int16",
        /// `int32`.
        I32 = 3 "int32",
        /// `int64`.
        I64 = 4 "int64",
        /// `uint8`.
        U8 = 5 "uint8",
        /// `uint16`.
        U16 = 6 "uint16",
        /// `uint32`.
        U32 = 7 "uint32",
        /// `uint64`.
        U64 = 8 "uint64",
        /// `float16`.
        F16 = 9 "float16",
        /// `float32`.
        F32 = 10 "float32",
        /// `float64`.
        F64 = 11 "float64",
        /// `complex64`: two `float32`.
        C64 = 12 "complex64",
        /// `complex128`: two `float64`.
        C128 = 13 "complex128",
        /// `bfloat16`.
        Bf16 = 14 "bfloat16",
        /// `int4`.
        I4 = 15 "int4",
        /// `uint4`.
        U4 = 16 "uint4",
        /// `float8_e4m3b11fnuz`.
        F8E4M3B11Fnuz = 17 "float8_e4m3b11fnuz",
        /// `float8_e4m3fn`.
        F8E4M3Fn = 18 "float8_e4m3fn",
        /// `float8_e4m3fnuz`.
        F8E4M3Fnuz = 19 "float8_e4m3fnuz",
        /// `float8_e5m2`.
        F8E5M2 = 20 "float8_e5m2",
        /// `float8_e5m2fnuz`.
        F8E5M2Fnuz = 21 "float8_e5m2fnuz",
        /// `float0`: the tangent type of integers, without data. Since schema 2.
        F0 = 22 "float0",
        /// `float8_e4m3`.
        F8E4M3 = 23 "float8_e4m3",
        /// `float8_e3m4`.
        F8E3M4 = 24 "float8_e3m4",
        /// `float8_e8m0fnu`.
        F8E8M0Fnu = 25 "float8_e8m0fnu",
        /// `float4_e2m1fn`.
        F4E2M1Fn = 26 "float4_e2m1fn",
        /// `key<fry>`: a random key of Threefry. Since schema 4.
        KeyFry = 27 "key<fry>",
        /// `key<rbg>`: a random key of XLA's generator. Since schema 4.
        KeyRbg = 28 "key<rbg>",
        /// `key<unsafe_rbg>`: the same with cheaper splitting. Since schema 4.
        KeyUnsafeRbg = 29 "key<unsafe_rbg>",
    }
}

codes! {
    /// Where an array lives. Since schema 5.
    MemorySpace {
        /// Not stated, as in every older file; JAX reads it as `Device`.
        Missing = 0 "missing",
        /// The accelerator's own memory.
        Device = 1 "device",
        /// The host's memory.
        Host = 2 "host",
        /// Anywhere.
        Any = 3 "any",
    }
}

codes! {
    /// How programs see a mesh axis. Since schema 6.
    AxisType {
        /// Not stated; JAX never writes it.
        Missing = 0 "missing",
        /// The compiler decides how arrays are cut along it.
        Auto = 1 "auto",
        /// The types of arrays say how they are cut along it.
        Explicit = 2 "explicit",
        /// The program sees one shard at a time.
        Manual = 3 "manual",
    }
}

codes! {
    /// Which field of a [`Sharding`](super::Sharding) counts. Files from schema 9 on leave it at `Unspecified`.
    ShardingKind {
        /// The compiler decides, unless `named_sharding` is there.
        Unspecified = 0 "unspecified",
        /// `hlo_sharding_proto` counts.
        Hlo = 1 "HLO",
        /// `named_sharding` counts. Since schema 6.
        Named = 2 "named",
    }
}

codes! {
    /// What a [`DisabledCheck`](super::DisabledCheck) turns off.
    DisabledCheckKind {
        /// Whether the export was made for the platform that runs it.
        Platform = 0 "platform",
        /// Whether a custom call's target is one that JAX keeps stable.
        CustomCall = 1 "custom call",
        /// Whether arguments fit symbolic shapes. Only files of 2023 have it.
        ShapeAssertions = 2 "shape assertions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_known_or_not() {
        for code in i8::MIN..=i8::MAX {
            assert_eq!(DType::from_code(code).code(), code);
            assert_eq!(PyTreeKind::from_code(code).code(), code);
            assert_eq!(MemorySpace::from_code(code).code(), code);
        }
        assert_eq!((DType::from_code(26), DType::from_code(30)), (DType::F4E2M1Fn, DType::Other(30)));
        assert_eq!((DType::KeyFry.to_string(), DType::Other(30).to_string()), ("key<fry>".into(), "#30".into()));
    }
}
