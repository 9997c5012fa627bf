//! What the container says about a function.

use serde::Serialize;

use super::hlo_sharding;
use crate::container::{Aval, DisabledCheck, DisabledCheckKind, Effect, Exported, ResolvedSharding};

/// A function as its callers see it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Signature {
    /// The name of the Python function.
    pub function_name: String,
    /// The version of JAX that wrote the file, recorded since schema 12.
    pub jax_version: Option<String>,
    /// The version of the container's schema.
    pub schema_version: u16,
    /// How the module wants to be called, by JAX's numbering.
    pub calling_convention_version: u16,
    /// The platforms the module serves, in the order of its platform index.
    pub platforms: Vec<String>,
    /// How many devices the function was lowered for.
    pub nr_devices: u32,
    /// Whether the module takes a platform index or dimension variables, or says so.
    pub uses_global_constants: bool,
    /// The flattened arguments.
    pub arguments: Vec<Array>,
    /// The flattened results.
    pub results: Vec<Array>,
    /// The meshes that the shardings name.
    pub meshes: Vec<String>,
    /// The effects whose order counts, by their Python classes.
    pub ordered_effects: Vec<String>,
    /// The effects whose order does not count.
    pub unordered_effects: Vec<String>,
    /// The safety checks that the user turned off: `platform`, or `custom call` with its target.
    pub disabled_checks: Vec<String>,
}

/// One argument or result.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Array {
    /// How Python reaches it: `args[0]['w']`, `result[1]`.
    pub path: String,
    /// As JAX prints it: `float32[4,b]`.
    pub text: String,
    /// The element type.
    pub dtype: String,
    /// One number, or expression over dimension variables, per dimension.
    pub shape: Vec<String>,
    /// How it is cut over devices; `None` where the compiler decides.
    pub sharding: Option<String>,
    /// The mesh of a sharding by names.
    pub mesh: Option<String>,
    /// Whether the module takes it. Arguments that the function does not use are dropped.
    pub kept: bool,
}

impl Signature {
    pub(super) fn of(exported: &Exported<'_>) -> Self {
        let kept = exported.module_kept_var_idx.as_deref();
        let is_kept = |position: usize| kept.is_none_or(|kept| kept.iter().any(|&index| usize::from(index) == position));
        let mut arguments = arrays(exported, exported.input_paths(), &exported.input_avals(), &exported.input_shardings());
        for (position, argument) in arguments.iter_mut().enumerate() {
            argument.kept = is_kept(position);
        }
        let results = arrays(exported, exported.output_paths(), &exported.output_avals(), &exported.output_shardings());
        let mut meshes: Vec<String> = exported.unique_abstract_meshes.iter().flatten().map(ToString::to_string).collect();
        let named = arguments.iter().chain(&results).filter_map(|array| array.mesh.clone());
        meshes.extend(named.filter(|mesh| !mesh.is_empty()));
        let mut seen = std::collections::HashSet::new();
        meshes.retain(|mesh| seen.insert(mesh.clone()));
        Self {
            function_name: exported.function_name.clone().into_owned(),
            jax_version: exported.jax_version.as_deref().map(str::to_owned),
            schema_version: exported.serialization_version,
            calling_convention_version: exported.calling_convention_version,
            platforms: exported.platforms.iter().map(ToString::to_string).collect(),
            nr_devices: exported.device_count(),
            uses_global_constants: exported.uses_global_constants,
            arguments,
            results,
            meshes,
            ordered_effects: effects(exported.ordered_effects.as_deref()),
            unordered_effects: effects(exported.unordered_effects.as_deref()),
            disabled_checks: exported.disabled_checks.iter().flatten().map(disabled_check).collect(),
        }
    }
}

/// Trees, avals and shardings are lists of their own in the file, and nothing there makes them equally long: avals count, the others may lack.
fn arrays(exported: &Exported<'_>, paths: Vec<String>, avals: &[&Aval<'_>], shardings: &[ResolvedSharding<'_, '_>]) -> Vec<Array> {
    let mut paths = paths.into_iter();
    let mut shardings = shardings.iter();
    let array = |aval: &&Aval<'_>| {
        let (sharding, mesh) = shardings.next().map_or((None, None), |sharding| sharding_text(exported, sharding));
        Array {
            path: paths.next().unwrap_or_else(|| "?".to_owned()),
            text: aval.to_string(),
            dtype: aval.dtype.to_string(),
            shape: aval.shape.iter().flatten().map(|dimension| dimension.clone().into_owned()).collect(),
            sharding,
            mesh,
            kept: true,
        }
    };
    avals.iter().map(array).collect()
}

pub(crate) fn sharding_text(exported: &Exported<'_>, sharding: &ResolvedSharding<'_, '_>) -> (Option<String>, Option<String>) {
    match sharding {
        ResolvedSharding::Unspecified => (None, None),
        ResolvedSharding::Hlo(proto) => (Some(hlo_sharding::text(proto)), None),
        ResolvedSharding::Named(named) => {
            let spec = named.spec.as_ref().map_or_else(|| "P()".to_owned(), ToString::to_string);
            let memory = named.memory_kind.as_deref().map_or_else(String::new, |kind| format!(" in {kind}"));
            (Some(spec + &memory), exported.mesh_of(named).map(ToString::to_string))
        }
    }
}

fn effects(effects: Option<&[Effect<'_>]>) -> Vec<String> {
    let name = |effect: &Effect<'_>| effect.type_name.as_deref().unwrap_or("?").to_owned();
    effects.unwrap_or_default().iter().map(name).collect()
}

pub(crate) fn disabled_check(check: &DisabledCheck<'_>) -> String {
    match (check.kind, &check.custom_call_target) {
        (DisabledCheckKind::CustomCall, Some(target)) => format!("custom call `{target}`"),
        (kind, _) => kind.to_string(),
    }
}
