//! Python callbacks: what placeholders say, where they can be lowered to, and what is to become of them. There is no MLIR in here.
//!
//! The Python exporter lowers every callback to a custom call of [`PLACEHOLDER_TARGET`], shaped like the one that JAX itself would emit.
//! Its `mhlo.backend_config` says which callback it stands for: the [`Slot`]. Several calls may share one. From there, for each platform:
//!
//! **[`Slot`] → [`Table`] → [`Policies`] → [`Manifest`]**
//!
//! The table says what JAX would call on that platform, if it could; the policies, what the user wants; the manifest, what was done.
//! [`TargetClass`] tells custom calls apart that are in a file already.

mod dimensions;
mod manifest;
mod meta;
mod policy;
mod rules;
mod slot;
pub mod table;
mod target_platforms;
mod targets;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use dimensions::Dimensions;
pub use manifest::{Manifest, ManifestCall, ManifestLevel, ManifestOutput, ManifestSlot};
pub use meta::{Alias, Array, LogRecord, Meta, Tree};
pub use policy::{Policy, StubWith};
pub use rules::{Choice, Chooser, Policies, Rule};
pub use slot::{ConfigValue, Kind, Slot, SlotKey, Slots};
pub use table::{Lowering, Table};
pub use target_platforms::{TargetPlatforms, counterpart};
pub use targets::{TargetClass, is_callback_transfer, process_binding};

/// What is to become of the callbacks of an export.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallbackOptions {
    /// Which policy each gets.
    pub policies: Policies,
    /// What callbacks are lowered to.
    pub table: Table,
    /// The exports that policies `call:EXPORT` name.
    pub exports: BTreeMap<String, Arc<[u8]>>,
}

impl CallbackOptions {
    /// Chooses by these policies, and lowers by this table.
    pub fn new(policies: Policies, table: Table) -> Self {
        Self { policies, table, exports: BTreeMap::new() }
    }

    /// Lets the policy `call:NAME` mean this export.
    pub fn export(mut self, name: impl Into<String>, export: impl Into<Arc<[u8]>>) -> Self {
        self.exports.insert(name.into(), export.into());
        self
    }
}

/// The version of the placeholder's schema: of the item `v`, and of the same field in the metadata.
pub const SCHEMA_VERSION: i64 = 1;

/// The target of a callback that was not lowered yet. XLA's error names it when nobody bound the callback.
pub const PLACEHOLDER_TARGET: &str = "jaxprism_callback";

/// The discardable attribute that keeps what a lowered callback was.
pub const LOWERED_ATTRIBUTE: &str = "jaxprism.callback";

/// The effect that makes stock JAX refuse a file with lowered Python callbacks, which would crash it. Nothing may ever register it with
/// JAX.
pub const GUARD_EFFECT: &str = "<class 'jaxprism.UnboundCallbacks'>";
