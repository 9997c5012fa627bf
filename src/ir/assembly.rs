//! Attributes and types as text, and back.
//!
//! What MLIR, StableHLO and Shardy have a spelling for is spelled as they do, so their tools read our text: `"x"`, `5 : i64`,
//! `#vhlo.string_v1<"x">`, `!vhlo.tensor_v1<4x!vhlo.f32_v1>`, `#sdy.sharding<@mesh, [{"x"}]>`. Whatever such a spelling would lose is written field by
//! field, after the table of its dialect:
//!
//! ```mlir
//! #jaxprism.entry<vhlo.float_v1, type !vhlo.f8E5M2_v1, unsigned 60>
//! ```
//!
//! So the text of an entry is its own, and reading it gives the entry back. Locations occur here only as entries; those of operations are written by
//! [`super::text`].

mod number;
mod read;
mod syntax;
mod write;

pub use read::{read_attribute, read_type};
pub(crate) use write::Elements;
pub use write::{Constants, Form, Rename, Writer};
pub(super) use write::{identifier, quote};
