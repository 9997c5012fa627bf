//! Which platforms have what a custom call calls.
//!
//! Facts, kept as data in `target_platforms.json`:
//!
//! | key | what it says | source |
//! | --- | --- | --- |
//! | `neutral` | means the same on every platform, and why | JAX's list of stable targets, `jax/_src/export/_export.py`; StableHLO's refinement of dynamic shapes |
//! | `platforms` | the platforms for which JAX writes it | what JAX's lowering rules are registered for, `jax/_src/lax/` |
//! | `composites` | the platforms for which JAX writes a composite of that name | JAX's `ScanOp` and `ragged_dot`, `jax/_src/lax/` |
//! | `prefixes` | the same, for all targets that begin like this | JAX's rules for its linear algebra, `jax/_src/lax/linalg.py`; `JAX_GPU_PREFIX` in `jaxlib/gpu/` |
//! | `cuda_to_rocm` | two names of one handler | `jaxlib/gpu/{solver,prng,linalg,sparse}.cc`: one source, compiled for each, with the same operands, results and attributes |
//!
//! `composites` are operations with a body of their own that XLA replaces by its own, by their names: those that JAX writes for some platforms only. XLA's CPU
//! compiler of JAX 0.12 ends the process over a `chlo.scan`.
//!
//! Targets that are compiled kernels, hold the layout of one vendor's library, or exist for one vendor alone (`gesvdp`, `gesdd`, `csrlsvqr`, `geev`, `dnn_rnn`,
//! the hybrid and sparse ones) have no pair. What stands nowhere is unknown.

#![allow(clippy::expect_used, reason = "the file is part of the program")]

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::container::Platform;

/// Which platforms have a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetPlatforms {
    /// All of them, and why.
    All(&'static str),
    /// These.
    Only(&'static [String]),
    /// It is not known.
    Unknown,
}

impl TargetPlatforms {
    /// The platforms of a target.
    pub fn of(target: &str) -> Self {
        let facts = &*FACTS;
        let prefixed = || facts.prefixes.iter().find(|(prefix, _)| target.starts_with(prefix.as_str())).map(|(_, platforms)| platforms);
        match (facts.neutral.get(target), facts.platforms.get(target).or_else(prefixed)) {
            (Some(reason), _) => Self::All(reason),
            (None, Some(platforms)) => Self::Only(platforms),
            (None, None) => Self::Unknown,
        }
    }

    /// The platforms of a composite. What is not known stands for its body.
    pub fn of_composite(name: &str) -> Self {
        FACTS.composites.get(name).map_or(Self::All("it stands for its body"), |platforms| Self::Only(platforms))
    }

    /// Whether a platform is known to have it.
    pub fn has(self, platform: &Platform) -> bool {
        match self {
            Self::All(_) => true,
            Self::Only(platforms) => platforms.iter().any(|known| known == platform.as_str()),
            Self::Unknown => false,
        }
    }
}

/// The other name of a target's handler, on a platform: `hipsolver_potrf_ffi` for `cusolver_potrf_ffi` on `rocm`, and back on `cuda`.
pub fn counterpart(target: &str, platform: &Platform) -> Option<&'static str> {
    let pairs = &FACTS.cuda_to_rocm;
    match platform {
        platform if *platform == Platform::ROCM => pairs.get(target).map(String::as_str),
        platform if *platform == Platform::CUDA => pairs.iter().find(|(_, rocm)| *rocm == target).map(|(cuda, _)| cuda.as_str()),
        _ => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    neutral: IndexMap<String, String>,
    platforms: IndexMap<String, Vec<String>>,
    composites: IndexMap<String, Vec<String>>,
    prefixes: IndexMap<String, Vec<String>>,
    cuda_to_rocm: IndexMap<String, String>,
}

static FACTS: LazyLock<Facts> =
    LazyLock::new(|| serde_json::from_str(include_str!("target_platforms.json")).expect("`target_platforms.json` is part of the program"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_of_targets_are_known() {
        for (target, cpu, cuda, rocm, tpu) in [
            ("Sharding", true, true, true, true),
            ("jaxprism_callback", true, true, true, true),
            ("lapack_sgetrf_ffi", true, false, false, false),
            ("cusolver_getrf_ffi", false, true, false, false),
            ("hip_threefry2x32_ffi", false, false, true, false),
            ("AllocateBuffer", false, true, true, true),
            ("ApproxTopK", true, true, true, true),
            ("Qr", false, false, false, true),
            ("my_kernel", false, false, false, false),
            ("", false, false, false, false),
        ] {
            let platforms = TargetPlatforms::of(target);
            let known = [Platform::CPU, Platform::CUDA, Platform::ROCM, Platform::TPU].map(|platform| platforms.has(&platform));
            assert_eq!(known, [cpu, cuda, rocm, tpu], "{target}");
        }
    }

    #[test]
    fn composites_stand_for_their_bodies_unless_xla_has_its_own() {
        let scan = TargetPlatforms::of_composite("chlo.scan");
        assert!(scan.has(&Platform::CUDA) && !scan.has(&Platform::CPU));
        assert!(TargetPlatforms::of_composite("my.norm").has(&Platform::CPU));
    }

    #[test]
    fn pairs_lead_from_one_platform_to_the_other() {
        for (cuda, rocm) in &FACTS.cuda_to_rocm {
            assert_eq!((counterpart(cuda, &Platform::ROCM), counterpart(rocm, &Platform::CUDA)), (Some(&rocm[..]), Some(&cuda[..])));
            assert_eq!(rocm.strip_prefix("hip"), cuda.strip_prefix("cu"));
            assert!(TargetPlatforms::of(cuda).has(&Platform::CUDA) && TargetPlatforms::of(rocm).has(&Platform::ROCM));
            assert_eq!((counterpart(cuda, &Platform::CPU), counterpart(cuda, &Platform::CUDA)), (None, None));
        }
        assert_eq!(counterpart("cusolver_gesvdp_ffi", &Platform::ROCM), None);
    }
}
