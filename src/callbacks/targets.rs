//! What the target of a custom call says about it: ours, JAX's, stable, or tied to the process that wrote the file.
//!
//! The names are facts, kept as data in `targets.json`. Those that JAX guarantees to be stable are the ones it lists in 0.12; retired ones
//! are those it listed in some version from 0.4.38 on, and lists no more.

#![allow(clippy::expect_used, reason = "the file is part of the program")]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::PLACEHOLDER_TARGET;

/// The attribute of a `send` or `recv`, inside `mhlo.frontend_attributes`, that says who is on the other side.
const HOST_TRANSFER_HANDLER: &str = "_xla_host_transfer_handler_name";

/// The other side that runs Python callbacks on TPUs.
const PYTHON_HANDLER: &str = "pjrt_rendezvous";

/// What a custom call is, by its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TargetClass {
    /// A callback that is not lowered yet.
    Placeholder,
    /// A Python callback that JAX lowered, or we did.
    LoweredCallback,
    /// Something else that works in no process but the one that wrote it.
    ProcessBound,
    /// JAX guarantees that its newer versions run it.
    Stable,
    /// JAX guaranteed it once; newer versions may not run it.
    Retired,
    /// Anything else: the user's own, or one that JAX guarantees nothing about.
    Unknown,
}

impl TargetClass {
    /// The class of a target.
    pub fn of(target: &str) -> Self {
        let targets = &*TARGETS;
        if target == PLACEHOLDER_TARGET {
            Self::Placeholder
        } else if targets.lowered_reason(target).is_some() {
            Self::LoweredCallback
        } else if targets.process_bound.contains_key(target) {
            Self::ProcessBound
        } else if targets.stable.contains(target) {
            Self::Stable
        } else if targets.retired.contains(target) {
            Self::Retired
        } else {
            Self::Unknown
        }
    }
}

/// What ties a target to the process that wrote it: `it holds …`. None for targets that are not tied to it.
pub fn process_binding(target: &str) -> Option<&'static str> {
    let targets = &*TARGETS;
    targets.lowered_reason(target).or_else(|| targets.process_bound.get(target).map(String::as_str))
}

/// Whether a host transfer with these `mhlo.frontend_attributes` belongs to a Python callback that JAX lowered for a TPU.
pub fn is_callback_transfer<'a>(frontend_attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    frontend_attributes.into_iter().any(|item| item == (HOST_TRANSFER_HANDLER, PYTHON_HANDLER))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    lowered_prefixes: IndexMap<String, String>,
    process_bound: IndexMap<String, String>,
    stable: BTreeSet<String>,
    retired: BTreeSet<String>,
}

impl Targets {
    fn lowered_reason(&self, target: &str) -> Option<&str> {
        self.lowered_prefixes.iter().find(|(prefix, _)| target.starts_with(prefix.as_str())).map(|(_, reason)| reason.as_str())
    }
}

static TARGETS: LazyLock<Targets> =
    LazyLock::new(|| serde_json::from_str(include_str!("targets.json")).expect("`targets.json` is part of the program"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callbacks::Table;

    #[test]
    fn targets_are_recognised() {
        use TargetClass::{LoweredCallback, Placeholder, ProcessBound, Retired, Stable, Unknown};
        for (target, class) in [
            ("jaxprism_callback", Placeholder),
            ("xla_ffi_python_cpu_callback", LoweredCallback),
            ("xla_ffi_python_newdevice_callback", LoweredCallback),
            ("xla_ffi_partitioned_python_gpu_callback", LoweredCallback),
            ("xla_buffer_python_gpu_callback_cmd_buffer", LoweredCallback),
            ("xla_python_cpu_callback", LoweredCallback),
            ("xla_python_gpu_callback", LoweredCallback),
            ("CustomSPMDPartitioning", ProcessBound),
            ("InspectSharding", ProcessBound),
            ("lapack_sgesdd_ffi", Stable),
            ("tpu_custom_call", Stable),
            ("cu_threefry2x32", Retired),
            ("my_kernel", Unknown),
            ("", Unknown),
            ("jaxprism_callback2", Unknown),
        ] {
            assert_eq!(TargetClass::of(target), class, "{target}");
            let bound = matches!(class, LoweredCallback | ProcessBound);
            assert_eq!(process_binding(target).is_some_and(|reason| reason.starts_with("it holds")), bound, "{target}");
        }
    }

    #[test]
    fn every_target_of_the_table_is_a_lowered_callback() {
        let mut targets = Table::default().targets().map(str::to_owned).collect::<Vec<_>>();
        targets.dedup();
        assert!(targets.len() >= 7);
        assert!(targets.iter().all(|target| TargetClass::of(target) == TargetClass::LoweredCallback));
    }

    #[test]
    fn transfers_of_python_callbacks_are_told_from_others() {
        assert!(is_callback_transfer([("_xla_host_transfer_rendezvous", "2"), ("_xla_host_transfer_handler_name", "pjrt_rendezvous")]));
        assert!(!is_callback_transfer([("_xla_host_transfer_handler_name", "tf_rendezvous")]));
        assert!(!is_callback_transfer([]));
    }
}
