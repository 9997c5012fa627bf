//! The container: the `.jax_exported` file that `jax.export.Exported.serialize()` writes, as a typed value.
//!
//! A file is one flatbuffer without a file identifier. Its root describes a function (names, signature, shardings, platforms) and holds the
//! function's module as bytes, which this room never looks into. The root may hold the export of the function's vector-Jacobian product, that one
//! the next, and so on: the *levels* of the export.
//!
//! What holds here: a field that the input lacks stays absent in the output; nothing of the module is copied; what [`Exported::read`] cannot
//! represent it refuses, so reading and writing loses nothing that another reader could see.
//!
//! # Schema versions
//!
//! Every version so far only added to the one before, so one reader serves all. Source: the history in `jax/_src/export/serialization.py`.
//!
//! | Version | Date | Change |
//! |---|---|---|
//! | 1 | 2023-11 | first version |
//! | 2 | 2023-12-16 | dtype `float0` |
//! | 3 | 2024-10-16 | named tuples and custom pytree nodes |
//! | 4 | 2025-04-07 | dtypes of random keys |
//! | 5 | 2025-11-23 | `memory_space` of avals; `nr_devices` with 32 bits |
//! | 6 | 2026-01-15 | named shardings with their meshes, beside HLO shardings |
//! | 7 | 2026 | withdrawn |
//! | 8 | 2026-03-12 | `abstract_device` of meshes |
//! | 9 | 2026-03-17 | HLO shardings are no longer written |
//! | 10 | 2026-04-04 | each aval, mesh and named sharding once, others by index |
//! | 11 | 2026-05-15 | `platform` of abstract devices |
//! | 12 | 2026-07-29 | `jax_version` |
//!
//! The number in a file is no proof of what the file uses: JAX 0.4.30 to 0.8.1 wrote 2 and 0.8.3 to 0.10.2 wrote 3, and only since July 2026 does
//! it write the real one. So besides a newer number, a field behind the last one that we know is refused as well: a rewrite would drop it.

mod aval;
mod codes;
mod platform;
mod read;
mod refuse;
#[rustfmt::skip]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, dead_code, unsafe_code, unused_imports, unsafe_op_in_unsafe_fn, mismatched_lifetime_syntaxes)]
mod schema;
mod sharding;
#[cfg(test)]
mod testing;
mod tree;
mod write;

use std::borrow::Cow;

pub use aval::Aval;
pub use codes::{AvalKind, AxisType, DType, DisabledCheckKind, MemorySpace, PyTreeKind, ShardingKind};
pub use platform::Platform;
pub(crate) use refuse::check_start;
pub use sharding::{AbstractDevice, AbstractMesh, NamedSharding, PartitionSpec, PartitionSpecOneAxis, ResolvedSharding, Sharding};
pub(crate) use tree::MAX_SHOWN_KEY;
pub use tree::PyTree;

use crate::error::{Error, Result};
use crate::pieces::Pieces;

/// The newest schema version that we read and write: that of JAX 0.12.
pub const MAX_SCHEMA_VERSION: u16 = 12;
/// Most levels of one export. JAX has a user ask for each, and every level is several times as large as the one before.
pub const MAX_LEVELS: usize = 16;
/// Deepest nesting of a pytree. With [`MAX_LEVELS`] it bounds the verifier's recursion: measured, both together fit into a thread of 2 MB, in a debug
/// build too.
pub const MAX_TREE_DEPTH: usize = 100;

/// An export, with every field of JAX's schema under the schema's name. `Option` tells a field that is absent from one that is empty; scalars have
/// no absence that a reader could see.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported<'a> {
    /// The schema version that the writer put down; see the history above for what it is worth.
    pub serialization_version: u16,
    /// The name of the exported Python function.
    pub function_name: Cow<'a, str>,
    /// The structure of the inputs: a tuple of `args` and `kwargs`.
    pub in_tree: PyTree<'a>,
    /// The flattened inputs. From schema 10 on, JAX reads `in_avals_idxs` where they are there.
    pub in_avals: Option<Vec<Aval<'a>>>,
    /// The structure of the result.
    pub out_tree: PyTree<'a>,
    /// The flattened results. From schema 10 on, JAX reads `out_avals_idxs` where they are there.
    pub out_avals: Option<Vec<Aval<'a>>>,
    /// The number of devices the function was lowered for, up to schema 4.
    pub nr_devices_short: i16,
    /// The shardings of the flattened inputs. From schema 10 on, JAX reads `in_shardings_idxs` where they are there.
    pub in_shardings: Option<Vec<Sharding<'a>>>,
    /// The shardings of the flattened results. From schema 10 on, JAX reads `out_shardings_idxs` where they are there.
    pub out_shardings: Option<Vec<Sharding<'a>>>,
    /// The platforms the module serves, in the order of the module's platform index.
    pub platforms: Vec<Platform>,
    /// The effects whose order counts. For each, the module takes and returns a token.
    pub ordered_effects: Option<Vec<Effect<'a>>>,
    /// The effects whose order does not count.
    pub unordered_effects: Option<Vec<Effect<'a>>>,
    /// The safety checks that the user turned off.
    pub disabled_checks: Option<Vec<DisabledCheck<'a>>>,
    /// The module: a StableHLO portable artifact. In the schema this is `mlir_module_serialized`.
    pub module: Pieces<'a>,
    /// How the module wants to be called (platform index, dimension variables, tokens), by JAX's numbering.
    pub calling_convention_version: u16,
    /// Which of the flattened inputs the module takes; the others were found to be unused.
    pub module_kept_var_idx: Option<Vec<u16>>,
    /// Whether the module takes a platform index or dimension variables, or declares them.
    pub uses_global_constants: bool,
    /// The export of the vector-Jacobian product, where the user asked for it.
    pub vjp: Option<Box<Exported<'a>>>,
    /// The number of devices the function was lowered for, since schema 5.
    pub nr_devices: u32,
    /// Every distinct aval once. Since schema 10.
    pub unique_avals: Option<Vec<Aval<'a>>>,
    /// Every distinct mesh once. Since schema 10.
    pub unique_abstract_meshes: Option<Vec<AbstractMesh<'a>>>,
    /// Every distinct named sharding once. Since schema 10.
    pub unique_named_shardings: Option<Vec<NamedSharding<'a>>>,
    /// For each flattened input, its aval among `unique_avals`. Since schema 10.
    pub in_avals_idxs: Option<Vec<u32>>,
    /// For each flattened result, its aval among `unique_avals`. Since schema 10.
    pub out_avals_idxs: Option<Vec<u32>>,
    /// For each flattened input, one more than its sharding among `unique_named_shardings`, or 0 if the compiler decides. Since schema 10.
    pub in_shardings_idxs: Option<Vec<u32>>,
    /// For each flattened result, the same. Since schema 10.
    pub out_shardings_idxs: Option<Vec<u32>>,
    /// The version of JAX that wrote the file. Since schema 12.
    pub jax_version: Option<Cow<'a, str>>,
}

/// A side effect of the function, named by its Python class: `<class 'jax._src.callback.IOCallbackEffect'>`, say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect<'a> {
    /// The `str` of the class.
    pub type_name: Option<Cow<'a, str>>,
}

/// A safety check that JAX would make on loading, but that the user turned off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledCheck<'a> {
    /// Which check.
    pub kind: DisabledCheckKind,
    /// The target that is exempt, of [`DisabledCheckKind::CustomCall`].
    pub custom_call_target: Option<Cow<'a, str>>,
}

impl<'a> Exported<'a> {
    /// The export itself, its vector-Jacobian product, that one's, and so on.
    pub fn levels(&self) -> impl Iterator<Item = &Exported<'a>> {
        std::iter::successors(Some(self), |level| level.vjp.as_deref())
    }

    /// Runs `change` on every level, outermost first, with the level's number; stops at the first error.
    pub fn for_each_level_mut(&mut self, mut change: impl FnMut(usize, &mut Exported<'a>) -> Result<()>) -> Result<()> {
        let mut next = Some(self);
        let mut number = 0;
        while let Some(level) = next {
            change(number, level)?;
            number += 1;
            next = level.vjp.as_deref_mut();
        }
        Ok(())
    }

    /// The number of devices the function was lowered for, whichever field has it.
    pub fn device_count(&self) -> u32 {
        if self.nr_devices == 0 { u32::try_from(self.nr_devices_short).unwrap_or(0) } else { self.nr_devices }
    }

    /// The aval of each flattened input, wherever the file keeps it.
    pub fn input_avals(&self) -> Vec<&Aval<'a>> {
        self.avals(&self.in_avals_idxs, &self.in_avals)
    }

    /// The aval of each flattened result, wherever the file keeps it.
    pub fn output_avals(&self) -> Vec<&Aval<'a>> {
        self.avals(&self.out_avals_idxs, &self.out_avals)
    }

    /// The sharding of each flattened input, wherever the file keeps it.
    pub fn input_shardings(&self) -> Vec<ResolvedSharding<'_, 'a>> {
        self.shardings(&self.in_shardings_idxs, &self.in_shardings)
    }

    /// The sharding of each flattened result, wherever the file keeps it.
    pub fn output_shardings(&self) -> Vec<ResolvedSharding<'_, 'a>> {
        self.shardings(&self.out_shardings_idxs, &self.out_shardings)
    }

    /// The mesh of a named sharding of this level, wherever the file keeps it.
    pub fn mesh_of<'e>(&'e self, sharding: &'e NamedSharding<'a>) -> Option<&'e AbstractMesh<'a>> {
        match self.unique_abstract_meshes.as_deref() {
            None | Some([]) => sharding.mesh.as_ref(),
            Some(meshes) => meshes.get(sharding.abstract_mesh_idx as usize),
        }
    }

    /// The path of each flattened input: `args[0]['w']`, `kwargs['scale']`.
    pub fn input_paths(&self) -> Vec<String> {
        match self.in_tree.children() {
            [args, kwargs] if self.in_tree.kind == PyTreeKind::Tuple => [args.leaf_paths("args"), kwargs.leaf_paths("kwargs")].concat(),
            _ => self.in_tree.leaf_paths("inputs"),
        }
    }

    /// The path of each flattened result: `result['loss']`.
    pub fn output_paths(&self) -> Vec<String> {
        self.out_tree.leaf_paths("result")
    }

    /// JAX's rule: indexes win where there are any.
    fn avals<'e>(&'e self, indexes: &'e Option<Vec<u32>>, spelled_out: &'e Option<Vec<Aval<'a>>>) -> Vec<&'e Aval<'a>> {
        let unique = self.unique_avals.as_deref().unwrap_or_default();
        match indexes.as_deref() {
            None | Some([]) => spelled_out.iter().flatten().collect(),
            Some(indexes) => indexes.iter().filter_map(|&index| unique.get(index as usize)).collect(),
        }
    }

    fn shardings<'e>(&'e self, indexes: &'e Option<Vec<u32>>, spelled_out: &'e Option<Vec<Sharding<'a>>>) -> Vec<ResolvedSharding<'e, 'a>> {
        let unique = self.unique_named_shardings.as_deref().unwrap_or_default();
        let resolve = |&index: &u32| match (index as usize).checked_sub(1) {
            None => Some(ResolvedSharding::Unspecified),
            Some(index) => unique.get(index).map(ResolvedSharding::Named),
        };
        match indexes.as_deref() {
            None | Some([]) => spelled_out.iter().flatten().map(Sharding::resolve).collect(),
            Some(indexes) => indexes.iter().filter_map(resolve).collect(),
        }
    }

    /// Checks what one level must obey in a file, on the way in and on the way out: a version we know, and indexes that lead somewhere.
    fn check(&self) -> Result<()> {
        check_version(self.serialization_version)?;
        let count = |length: Option<usize>| length.unwrap_or(0);
        let (avals, meshes) = (count(self.unique_avals.as_ref().map(Vec::len)), count(self.unique_abstract_meshes.as_ref().map(Vec::len)));
        let shardings = count(self.unique_named_shardings.as_ref().map(Vec::len));
        for (field, indexes, length) in [
            ("in_avals_idxs", &self.in_avals_idxs, avals),
            ("out_avals_idxs", &self.out_avals_idxs, avals),
            ("in_shardings_idxs", &self.in_shardings_idxs, shardings + 1),
            ("out_shardings_idxs", &self.out_shardings_idxs, shardings + 1),
        ] {
            if let Some(index) = indexes.iter().flatten().find(|&&index| index as usize >= length) {
                return Err(Error::format(format!("`{field}` has {index}, but must stay below {length}")));
            }
        }
        let spelled_out =
            self.in_shardings.iter().chain(&self.out_shardings).flatten().filter_map(|sharding| sharding.named_sharding.as_ref());
        let dangling = |sharding: &&NamedSharding| meshes > 0 && sharding.abstract_mesh_idx as usize >= meshes;
        match self.unique_named_shardings.iter().flatten().chain(spelled_out).find(dangling) {
            Some(sharding) => Err(Error::format(format!("a sharding is on mesh {}, but there are {meshes}", sharding.abstract_mesh_idx))),
            None => Ok(()),
        }
    }
}

fn check_version(version: u16) -> Result<()> {
    match version {
        0 => Err(Error::format("the schema version is 0, but JAX counts from 1").with_hint(refuse::WHAT_AN_EXPORT_IS)),
        1..=MAX_SCHEMA_VERSION => Ok(()),
        newer => {
            let message = format!("the export has schema version {newer}, but this jaxprism knows versions up to {MAX_SCHEMA_VERSION}");
            Err(Error::unsupported(message).with_hint("use a newer jaxprism, or export with an older JAX"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{full, minimal};
    use super::*;

    #[test]
    fn the_signature_is_found_wherever_the_file_keeps_it() {
        let mut exported = full(b"");
        let texts = |avals: Vec<&Aval>| avals.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(exported.input_paths(), ["args[0]['w'].x", "kwargs['scale']"]);
        assert_eq!(exported.output_paths(), ["result"]);
        assert_eq!(texts(exported.input_avals()), ["float8_e8m0fnu<host>[4,b]", "key<fry><host>[4,b]"]);
        let [ResolvedSharding::Unspecified, ResolvedSharding::Named(named)] = exported.input_shardings()[..] else { panic!() };
        assert_eq!(exported.mesh_of(named).unwrap().to_string(), "('x': 2, 'y': 4)");
        assert_eq!(exported.device_count(), 1 << 20);

        (exported.in_avals_idxs, exported.in_shardings_idxs) = (Some(vec![]), None);
        (exported.nr_devices, exported.in_tree) = (0, testing::leaf());
        assert_eq!(texts(exported.input_avals()), ["float32<host>[4,b]", "#99<host>[4,b]"]);
        assert_eq!(exported.input_shardings(), [ResolvedSharding::Hlo(&[8, 3]); 2]);
        assert_eq!((exported.device_count(), exported.input_paths()), (1, vec!["inputs".to_owned()]));
        assert!(minimal(b"").input_avals().is_empty());
    }

    #[test]
    fn levels_are_visited_outermost_first() {
        let mut exported = Exported { vjp: Some(Box::new(Exported { vjp: Some(Box::new(minimal(b""))), ..minimal(b"") })), ..minimal(b"") };
        exported
            .for_each_level_mut(|number, level| {
                level.function_name = format!("f{number}").into();
                Ok(())
            })
            .unwrap();
        assert_eq!(exported.levels().map(|level| &*level.function_name).collect::<Vec<_>>(), ["f0", "f1", "f2"]);
        exported.for_each_level_mut(|_, _| Err(Error::refused("no"))).unwrap_err();
    }
}
