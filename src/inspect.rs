//! What a file holds, without rewriting anything: the signature from the container, counts from the modules, and where the platform decides.
//!
//! Everything here is plain data that serializes; `docs/json.md` describes the JSON. Modules that [`split`](crate::split()) must refuse, because
//! they hold something unknown, can still be looked at.

mod bindings;
mod branches;
mod callbacks;
mod cases;
mod config;
mod hlo_sharding;
mod module;
mod signature;
mod sites;
mod types;
mod values;
mod view;
mod walk;

use serde::Serialize;

pub use bindings::{Binding, BindingKind};
pub(crate) use bindings::{Question, cases_of_level, of_level as bindings_of_level};
pub use callbacks::{BoundCall, CallbackCall, CallbackLevel, CallbackReport, CallbackSlot, PlatformLowering, callbacks_of};
pub use cases::{PlatformBranch, PlatformCase};
pub(crate) use module::is_location;
pub use module::{Constant, Constants, Function, Mesh, Module};
pub use signature::{Array, Signature};
pub(crate) use signature::{disabled_check, sharding_text};
pub use sites::{Site, SiteKind};
pub(crate) use sites::{Texts, of_level as sites_of_level};
pub(crate) use types::text as type_text;
pub(crate) use view::targets_of;
pub(crate) use view::{Kind, View};

use crate::bytecode::{Bytecode, MAGIC};
use crate::container::Exported;
use crate::error::Result;
use crate::source::read_module;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileFormat {
    /// A JAX export.
    Export,
    /// A module alone, in MLIR bytecode.
    Bytecode,
}

/// What a file holds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// What the file is.
    pub format: FileFormat,
    /// Its size.
    pub bytes: u64,
    /// The function itself, then its vector-Jacobian product, that one's, and so on. One for a module alone.
    pub levels: Vec<Level>,
}

/// One function of the file with its module.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// What the container says about it. A module alone has none.
    pub signature: Option<Signature>,
    /// What its module holds.
    pub module: Module,
}

/// Looks at an export, or at a module alone in MLIR bytecode.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): the input is malformed, or neither of the two.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): the input is newer, or nested deeper, than this version handles.
pub fn inspect(input: &[u8]) -> Result<Inspection> {
    let bytes = input.len() as u64;
    if input.starts_with(MAGIC) {
        let module = Module::of(&Bytecode::read(input, 0)?, bytes, &[]);
        return Ok(Inspection { format: FileFormat::Bytecode, bytes, levels: vec![Level { level: 0, signature: None, module }] });
    }
    let exported = Exported::read(input)?;
    let levels = exported.levels().enumerate().map(|(number, level)| read_level(number, level, input));
    Ok(Inspection { format: FileFormat::Export, bytes, levels: levels.collect::<Result<_>>()? })
}

fn read_level(level: usize, exported: &Exported<'_>, input: &[u8]) -> Result<Level> {
    let bytecode = read_module(exported, level, input)?;
    let platforms: Vec<_> = exported.platforms.iter().map(ToString::to_string).collect();
    let module = Module::of(&bytecode, exported.module.len(), &platforms);
    Ok(Level { level, signature: Some(Signature::of(exported)), module })
}
