//! Splits a JAX export for several platforms into one export per platform.
//!
//! One road, in one direction: [`container`] → [`bytecode`] → [`ir`] → [`passes`] → [`ir`] → [`bytecode`] → [`container`]. [`split`](split()) walks it.

// No input ends the process. A module that indexes by ids, which its reader or writer made and checked, says so at its top.
#![cfg_attr(
    not(test),
    deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::todo, clippy::unreachable, clippy::unwrap_used)
)]

pub mod bytecode;
pub mod callbacks;
pub mod check;
pub mod cli;
pub mod container;
pub mod diff;
mod downgrade;
pub mod emit;
pub mod error;
pub mod explain;
pub mod files;
pub mod inspect;
pub mod ir;
pub mod link;
pub mod merge;
pub mod opt;
pub mod passes;
pub mod pieces;
pub mod reader;
pub mod retarget;
pub mod size;
pub mod source;
pub mod split;
pub mod threads;
pub mod verify;
mod visible;

pub use bytecode::StablehloVersion;
pub use check::{Check, CheckOptions, TargetsAllowed, check};
pub use container::{Exported, Platform};
pub use diff::{Diff, DiffOptions, Ignore, diff};
pub use emit::{Emit, OutputOptions};
pub use error::{Error, ErrorKind};
pub use inspect::{Binding, BindingKind, CallbackReport, Inspection, callbacks_of, inspect};
pub use merge::{MergeInput, MergeOptions, MergeReport, Merged, MergedLevel, merge};
pub use opt::{Opt, OptOptions, opt, unlower};
pub use retarget::{Retarget, RetargetOptions, retarget};
pub use size::{Size, SizeOptions, size};
pub use source::Source;
pub use split::{Locations, Output, Report, Split, SplitOptions, StripOptions, Stripped, split, strip};
pub use verify::{Verification, VerifyOptions, verify};
