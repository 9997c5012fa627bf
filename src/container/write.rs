//! [`Exported`] to bytes. The modules are by far the largest part, so they never pass through the flatbuffer builder: it gets an empty vector for
//! each, and the real ones follow behind its output, with the offsets in the tables pointed at them. Where a vector stands means nothing to a reader.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use std::borrow::Cow;

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Push, Vector, WIPOffset};

use super::{
    AbstractMesh, Aval, DisabledCheck, Effect, Exported, MAX_LEVELS, MAX_TREE_DEPTH, NamedSharding, PartitionSpec, PartitionSpecOneAxis,
    PyTree, Sharding, read::verified, schema,
};
use crate::error::{Error, Result};
use crate::pieces::Pieces;
use crate::reader::MAX_EXPORT_BYTES;

/// Room kept free in the builder, so that no single table can overflow it: the builder would panic.
const HEADROOM: usize = 1 << 16;

impl<'a> Exported<'a> {
    /// Writes the export. The same value always gives the same bytes; borrowed pieces of the module stay borrowed.
    pub fn write(&self) -> Result<Pieces<'a>> {
        let levels: Vec<_> = self.levels().take(MAX_LEVELS + 1).collect();
        if levels.len() > MAX_LEVELS {
            return Err(Error::unsupported(format!("more than {MAX_LEVELS} levels of vector-Jacobian products")));
        }
        let mut writer = Writer { builder: FlatBufferBuilder::new() };
        let mut vjp = None;
        for level in levels.iter().rev() {
            level.check()?;
            vjp = Some(writer.level(level, vjp)?);
        }
        let Some(root) = vjp else { return Err(Error::bug("an export without a level")) };
        writer.builder.finish(root, None);
        append_modules(writer.builder.finished_data().to_vec(), &levels)
    }
}

/// Puts the modules behind `head` and points its tables at them.
fn append_modules<'a>(mut head: Vec<u8>, levels: &[&Exported<'a>]) -> Result<Pieces<'a>> {
    let root = verified(&head).map_err(|error| Error::bug(format!("the written flatbuffer is invalid: {error}")))?;
    let fields: Vec<usize> = std::iter::successors(Some(root), |table| table.vjp())
        .map(|table| table._tab.loc() + usize::from(table._tab.vtable().get(schema::Exported::VT_MLIR_MODULE_SERIALIZED)))
        .collect();
    let mut end = head.len() as u64;
    let mut lengths = Vec::with_capacity(levels.len());
    for (&field, level) in fields.iter().zip(levels) {
        let start = end.next_multiple_of(4);
        let length = level.module.len();
        end = start.saturating_add(4).saturating_add(length);
        if end > MAX_EXPORT_BYTES {
            let rest: u64 = levels.iter().skip(lengths.len() + 1).map(|level| level.module.len()).sum();
            return Err(too_large(end.saturating_add(rest)));
        }
        // Both fit: `end` is at most 2^31.
        let offset = (start - field as u64) as u32;
        let Some(slot) = head.get_mut(field..field + 4) else { return Err(Error::bug("a table without a place for its module")) };
        slot.copy_from_slice(&offset.to_le_bytes());
        lengths.push(length as u32);
    }
    let mut pieces = Pieces::new();
    pieces.extend_copied(&head);
    for (length, level) in lengths.into_iter().zip(levels) {
        let padding = (pieces.len().next_multiple_of(4) - pieces.len()) as usize;
        pieces.extend_copied(&[0; 4][..padding]);
        pieces.extend_copied(&length.to_le_bytes());
        pieces.append(level.module.clone());
    }
    Ok(pieces)
}

fn too_large(length: u64) -> Error {
    Error::unsupported(format!("the output would have {length} bytes or more, but an export has at most {MAX_EXPORT_BYTES}"))
        .with_hint("make large constants arguments of the exported function")
}

type Offset<T> = WIPOffset<T>;
type Strings<'b> = WIPOffset<Vector<'b, ForwardsUOffset<&'b str>>>;
type Tables<'b, T> = WIPOffset<Vector<'b, ForwardsUOffset<T>>>;

/// The builder, with a check before everything that could outgrow it. One function per table, in the order of the schema.
struct Writer<'b> {
    builder: FlatBufferBuilder<'b>,
}

impl<'b> Writer<'b> {
    fn tree(&mut self, tree: &PyTree, depth: usize) -> Result<Offset<schema::PyTreeDef<'b>>> {
        if depth > MAX_TREE_DEPTH {
            return Err(Error::unsupported(format!("a pytree nested deeper than {MAX_TREE_DEPTH} levels")));
        }
        tree.check_names()?;
        let args = schema::PyTreeDefArgs {
            kind: tree.kind.code(),
            children: self.each(&tree.children, |writer, child| writer.tree(child, depth + 1))?,
            children_names: self.strings(&tree.children_names)?,
            custom_name: self.string(&tree.custom_name)?,
            custom_auxdata: self.bytes(&tree.custom_auxdata)?,
        };
        self.room(HEADROOM)?;
        Ok(schema::PyTreeDef::create(&mut self.builder, &args))
    }

    fn mesh(&mut self, mesh: &AbstractMesh) -> Result<Offset<schema::AbstractMesh<'b>>> {
        let abstract_device = match &mesh.abstract_device {
            None => None,
            Some(device) => {
                let args = schema::AbstractDeviceArgs {
                    device_kind: self.string(&device.device_kind)?,
                    num_cores: device.num_cores,
                    platform: self.string(&device.platform)?,
                };
                Some(schema::AbstractDevice::create(&mut self.builder, &args))
            }
        };
        let axis_types: Option<Vec<i8>> = mesh.axis_types.as_ref().map(|types| types.iter().map(|axis| axis.code()).collect());
        let args = schema::AbstractMeshArgs {
            axis_sizes: self.numbers(&mesh.axis_sizes)?,
            axis_names: self.strings(&mesh.axis_names)?,
            axis_types: self.numbers(&axis_types)?,
            abstract_device,
        };
        Ok(schema::AbstractMesh::create(&mut self.builder, &args))
    }

    fn dimension(&mut self, dimension: &PartitionSpecOneAxis) -> Result<Offset<schema::PartitionSpecOneAxis<'b>>> {
        let args = schema::PartitionSpecOneAxisArgs { axes: self.strings(&dimension.axes)? };
        Ok(schema::PartitionSpecOneAxis::create(&mut self.builder, &args))
    }

    fn spec(&mut self, spec: &PartitionSpec) -> Result<Offset<schema::PartitionSpec<'b>>> {
        let args = schema::PartitionSpecArgs {
            partitions: self.each(&spec.partitions, Self::dimension)?,
            reduced: self.strings(&spec.reduced)?,
            unreduced: self.strings(&spec.unreduced)?,
        };
        Ok(schema::PartitionSpec::create(&mut self.builder, &args))
    }

    fn named_sharding(&mut self, sharding: &NamedSharding) -> Result<Offset<schema::NamedSharding<'b>>> {
        let args = schema::NamedShardingArgs {
            mesh: sharding.mesh.as_ref().map(|mesh| self.mesh(mesh)).transpose()?,
            spec: sharding.spec.as_ref().map(|spec| self.spec(spec)).transpose()?,
            memory_kind: self.string(&sharding.memory_kind)?,
            abstract_mesh_idx: sharding.abstract_mesh_idx,
        };
        Ok(schema::NamedSharding::create(&mut self.builder, &args))
    }

    fn aval(&mut self, aval: &Aval) -> Result<Offset<schema::AbstractValue<'b>>> {
        let args = schema::AbstractValueArgs {
            kind: aval.kind.code(),
            shape: self.strings(&aval.shape)?,
            dtype: aval.dtype.code(),
            memory_space: aval.memory_space.code(),
        };
        Ok(schema::AbstractValue::create(&mut self.builder, &args))
    }

    fn sharding(&mut self, sharding: &Sharding) -> Result<Offset<schema::Sharding<'b>>> {
        let args = schema::ShardingArgs {
            kind: sharding.kind.code(),
            hlo_sharding_proto: self.bytes(&sharding.hlo_sharding_proto)?,
            named_sharding: sharding.named_sharding.as_ref().map(|named| self.named_sharding(named)).transpose()?,
        };
        Ok(schema::Sharding::create(&mut self.builder, &args))
    }

    fn effect(&mut self, effect: &Effect) -> Result<Offset<schema::Effect<'b>>> {
        let args = schema::EffectArgs { type_name: self.string(&effect.type_name)? };
        Ok(schema::Effect::create(&mut self.builder, &args))
    }

    fn disabled_check(&mut self, check: &DisabledCheck) -> Result<Offset<schema::DisabledSafetyCheck<'b>>> {
        let args = schema::DisabledSafetyCheckArgs { kind: check.kind.code(), custom_call_target: self.string(&check.custom_call_target)? };
        Ok(schema::DisabledSafetyCheck::create(&mut self.builder, &args))
    }

    fn level(&mut self, level: &Exported, vjp: Option<Offset<schema::Exported<'b>>>) -> Result<Offset<schema::Exported<'b>>> {
        let platforms = level.platforms.iter().map(|platform| Cow::Borrowed(platform.as_str())).collect();
        let args = schema::ExportedArgs {
            serialization_version: level.serialization_version,
            function_name: self.string(&Some(Cow::Borrowed(&level.function_name)))?,
            in_tree: Some(self.tree(&level.in_tree, 1)?),
            in_avals: self.each(&level.in_avals, Self::aval)?,
            out_tree: Some(self.tree(&level.out_tree, 1)?),
            out_avals: self.each(&level.out_avals, Self::aval)?,
            nr_devices_short: level.nr_devices_short,
            in_shardings: self.each(&level.in_shardings, Self::sharding)?,
            out_shardings: self.each(&level.out_shardings, Self::sharding)?,
            platforms: self.strings(&Some(platforms))?,
            ordered_effects: self.each(&level.ordered_effects, Self::effect)?,
            unordered_effects: self.each(&level.unordered_effects, Self::effect)?,
            disabled_checks: self.each(&level.disabled_checks, Self::disabled_check)?,
            mlir_module_serialized: self.bytes(&Some(Cow::Borrowed(&[])))?,
            calling_convention_version: level.calling_convention_version,
            module_kept_var_idx: self.numbers(&level.module_kept_var_idx)?,
            uses_global_constants: level.uses_global_constants,
            vjp,
            nr_devices: level.nr_devices,
            unique_avals: self.each(&level.unique_avals, Self::aval)?,
            unique_abstract_meshes: self.each(&level.unique_abstract_meshes, Self::mesh)?,
            unique_named_shardings: self.each(&level.unique_named_shardings, Self::named_sharding)?,
            in_avals_idxs: self.numbers(&level.in_avals_idxs)?,
            out_avals_idxs: self.numbers(&level.out_avals_idxs)?,
            in_shardings_idxs: self.numbers(&level.in_shardings_idxs)?,
            out_shardings_idxs: self.numbers(&level.out_shardings_idxs)?,
            jax_version: self.string(&level.jax_version)?,
        };
        Ok(schema::Exported::create(&mut self.builder, &args))
    }

    fn room(&self, more: usize) -> Result<()> {
        let length = self.builder.unfinished_data().len().saturating_add(more).saturating_add(HEADROOM) as u64;
        if length > MAX_EXPORT_BYTES { Err(too_large(length)) } else { Ok(()) }
    }

    fn string(&mut self, string: &Option<Cow<str>>) -> Result<Option<Offset<&'b str>>> {
        let Some(string) = string else { return Ok(None) };
        self.room(string.len())?;
        Ok(Some(self.builder.create_string(string)))
    }

    fn bytes(&mut self, bytes: &Option<Cow<[u8]>>) -> Result<Option<Offset<Vector<'b, u8>>>> {
        let Some(bytes) = bytes else { return Ok(None) };
        self.room(bytes.len())?;
        Ok(Some(self.builder.create_vector(bytes)))
    }

    fn numbers<T: Push + Copy>(&mut self, numbers: &Option<Vec<T>>) -> Result<Option<Offset<Vector<'b, T::Output>>>>
    where
        T::Output: 'b,
    {
        let Some(numbers) = numbers else { return Ok(None) };
        self.room(size_of_val(numbers.as_slice()))?;
        Ok(Some(self.builder.create_vector(numbers)))
    }

    fn strings(&mut self, strings: &Option<Vec<Cow<str>>>) -> Result<Option<Strings<'b>>> {
        let Some(strings) = strings else { return Ok(None) };
        let mut offsets = Vec::with_capacity(strings.len());
        for string in strings {
            self.room(string.len())?;
            offsets.push(self.builder.create_string(string));
        }
        self.room(4 * offsets.len())?;
        Ok(Some(self.builder.create_vector(&offsets)))
    }

    fn each<T, U>(
        &mut self,
        items: &Option<Vec<T>>,
        mut write: impl FnMut(&mut Self, &T) -> Result<Offset<U>>,
    ) -> Result<Option<Tables<'b, U>>> {
        let Some(items) = items else { return Ok(None) };
        let offsets = items.iter().map(|item| write(self, item)).collect::<Result<Vec<_>>>()?;
        self.room(4 * offsets.len())?;
        Ok(Some(self.builder.create_vector(&offsets)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, leaf, minimal, tree_of_depth};
    use super::super::{MAX_SCHEMA_VERSION, PyTreeKind};
    use super::*;

    #[test]
    fn everything_comes_back_and_what_is_absent_stays_absent() {
        for exported in [minimal(b""), minimal(b"module"), full(b"module")] {
            let bytes = exported.write().unwrap().to_vec();
            assert_eq!(Exported::read(&bytes).unwrap(), exported);
            assert_eq!(exported.write().unwrap().to_vec(), bytes, "the same value gives the same bytes");
        }
        let empty = Exported { in_avals: Some(vec![]), in_avals_idxs: Some(vec![]), jax_version: Some("".into()), ..minimal(b"") };
        let bytes = empty.write().unwrap().to_vec();
        assert_eq!(Exported::read(&bytes).unwrap(), empty);
        assert_ne!(empty, minimal(b""));
    }

    #[test]
    fn every_level_gets_its_own_module() {
        let modules: [&[u8]; 4] = [b"", b"a", b"bb", b"ccccc"];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
            let chain = order.iter().fold(None, |vjp, &index| Some(Box::new(Exported { vjp, ..full(modules[index]) })));
            let bytes = chain.as_ref().unwrap().write().unwrap().to_vec();
            let read = Exported::read(&bytes).unwrap();
            assert_eq!(Some(&read), chain.as_deref());
            assert!(read.levels().map(|level| level.module.to_vec()).eq(order.iter().rev().map(|&index| modules[index].to_vec())));
        }
    }

    #[test]
    fn a_large_module_is_not_copied_and_stands_aligned_behind_its_length() {
        let module = vec![7; 100_000];
        let pieces = minimal(&module).write().unwrap();
        let mut end = 0;
        let place = pieces.iter().find_map(|piece| {
            end += piece.len();
            std::ptr::eq(piece, &module[..]).then(|| end - piece.len())
        });
        let bytes = pieces.to_vec();
        let place = place.unwrap();
        assert_eq!((place % 4, &bytes[place - 4..place]), (0, &100_000_u32.to_le_bytes()[..]));
    }

    #[test]
    fn an_output_larger_than_any_export_is_refused_with_both_numbers() {
        let block = vec![0; 1 << 20];
        let mut module = Pieces::new();
        (0..2_048).for_each(|_| module.extend_borrowed(&block));
        let error = Exported { module, ..minimal(b"") }.write().unwrap_err();
        let numbers: Vec<u64> = error.to_string().split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[0] > MAX_EXPORT_BYTES && numbers[1] == MAX_EXPORT_BYTES, "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let keyless = PyTree::new(PyTreeKind::Dict, vec![leaf()]);
        for (exported, message) in [
            (Exported { serialization_version: MAX_SCHEMA_VERSION + 1, ..minimal(b"") }, "the export has schema version 13, but"),
            (Exported { out_tree: keyless, ..minimal(b"") }, "a dict with 1 children, but 0 keys"),
            (Exported { in_tree: tree_of_depth(MAX_TREE_DEPTH + 1), ..minimal(b"") }, "a pytree nested deeper than 100 levels"),
            (Exported { in_avals_idxs: Some(vec![2]), ..full(b"") }, "`in_avals_idxs` has 2, but must stay below 2"),
            (Exported { out_shardings_idxs: Some(vec![2]), ..full(b"") }, "`out_shardings_idxs` has 2, but must stay below 2"),
            (
                Exported { unique_abstract_meshes: full(b"").unique_abstract_meshes.map(|meshes| meshes[..1].to_vec()), ..full(b"") },
                "a sharding is on mesh 1, but there are 1",
            ),
        ] {
            let error = exported.write().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn exports_of_jax_come_back() {
        let Some(folder) = std::env::var_os("JAXPRISM_SAMPLES") else {
            eprintln!("skipped: JAXPRISM_SAMPLES names no folder with `.jax_exported` files");
            return;
        };
        let (mut pending, mut count) = (vec![std::path::PathBuf::from(folder)], 0);
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "jax_exported") {
                let input = std::fs::read(&path).unwrap();
                let exported = Exported::read(&input).unwrap();
                let output = exported.write().unwrap().to_vec();
                assert_eq!(Exported::read(&output).unwrap(), exported, "{}", path.display());
                count += 1;
            }
        }
        assert!(count > 0, "no `.jax_exported` files there");
    }
}
