//! Bytes to [`Exported`]. The whole flatbuffer is verified first (bounds, alignment, UTF-8, nesting, and that its parts do not overlap); after
//! that, reading cannot go wrong, and what is left to refuse is what we could not write back.

use std::borrow::Cow;

use flatbuffers::{Follow, ForwardsUOffset, InvalidFlatbuffer, Table, Vector, VerifierOptions};

use super::refuse::{WHAT_AN_EXPORT_IS, invalid, looks_like};
use super::{
    AbstractDevice, AbstractMesh, Aval, AvalKind, AxisType, DType, DisabledCheck, DisabledCheckKind, Effect, Exported, MAX_LEVELS,
    MAX_SCHEMA_VERSION, MAX_TREE_DEPTH, MemorySpace, NamedSharding, PartitionSpec, PartitionSpecOneAxis, Platform, PyTree, PyTreeKind,
    Sharding, ShardingKind, check_version, schema,
};
use crate::error::{Error, Result};
use crate::pieces::Pieces;
use crate::reader::MAX_EXPORT_BYTES;

/// Deepest nesting of tables: the innermost level's pytree, or its shardings.
pub(super) const MAX_TABLE_DEPTH: usize = MAX_LEVELS + MAX_TREE_DEPTH + 4;
/// Writers share field tables, but no data. The verifier counts up to this many bytes for each byte of such a file; one that needs more
/// names the same part over and over, to make us work for what it does not have.
const VERIFIED_BYTES_PER_BYTE: usize = 16;

impl<'a> Exported<'a> {
    /// Reads an export. Strings and the module stay slices of `bytes`. Safe on any input: malformed, too deep, or not an export at all.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() as u64 > MAX_EXPORT_BYTES {
            let message = format!("the input has {} bytes, but an export has at most {MAX_EXPORT_BYTES}", bytes.len());
            return Err(Error::unsupported(message).with_hint(WHAT_AN_EXPORT_IS));
        }
        let root = verified(bytes).map_err(|error| looks_like(bytes).unwrap_or_else(|| invalid(error, bytes.len())))?;
        let tables: Vec<_> = std::iter::successors(Some(root), |table| table.vjp()).take(MAX_LEVELS + 1).collect();
        if tables.len() > MAX_LEVELS {
            return Err(
                Error::unsupported(format!("more than {MAX_LEVELS} levels of vector-Jacobian products")).with_hint(WHAT_AN_EXPORT_IS)
            );
        }
        // Versions first: they say more than an unknown field does.
        for table in &tables {
            check_version(table.serialization_version()).map_err(|error| error.at(table._tab.loc() as u64))?;
        }
        let mut inner = None;
        for (number, table) in tables.iter().enumerate().rev() {
            let read = level(table, inner.map(Box::new));
            inner = Some(if number == 0 { read } else { read.map_err(|error| error.context(format!("in level {number} of the export"))) }?);
        }
        inner.ok_or_else(|| Error::bug("an export without a level"))
    }
}

/// The root table, after everything below it was verified.
pub(super) fn verified(bytes: &[u8]) -> Result<schema::Exported<'_>, InvalidFlatbuffer> {
    let options = VerifierOptions {
        max_depth: MAX_TABLE_DEPTH,
        max_tables: bytes.len() / 4,
        max_apparent_size: bytes.len().saturating_mul(VERIFIED_BYTES_PER_BYTE).saturating_add(4_096),
        // No reader of JAX's looks at it.
        ignore_missing_null_terminator: true,
    };
    schema::root_as_exported_with_opts(&options, bytes)
}

fn level<'a>(table: &schema::Exported<'a>, vjp: Option<Box<Exported<'a>>>) -> Result<Exported<'a>> {
    let exported = Exported {
        serialization_version: table.serialization_version(),
        function_name: table.function_name().into(),
        in_tree: tree(table.in_tree(), 1)?,
        in_avals: each(table.in_avals(), aval)?,
        out_tree: tree(table.out_tree(), 1)?,
        out_avals: each(table.out_avals(), aval)?,
        nr_devices_short: table.nr_devices_short(),
        in_shardings: each(table.in_shardings(), sharding)?,
        out_shardings: each(table.out_shardings(), sharding)?,
        platforms: table.platforms().iter().map(|name| Platform::new(name.to_owned())).collect(),
        ordered_effects: each(table.ordered_effects(), effect)?,
        unordered_effects: each(table.unordered_effects(), effect)?,
        disabled_checks: each(table.disabled_checks(), disabled_check)?,
        module: Pieces::borrowed(table.mlir_module_serialized().bytes()),
        calling_convention_version: table.calling_convention_version(),
        module_kept_var_idx: table.module_kept_var_idx().map(|vector| vector.iter().collect()),
        uses_global_constants: table.uses_global_constants(),
        vjp,
        nr_devices: table.nr_devices(),
        unique_avals: each(table.unique_avals(), aval)?,
        unique_abstract_meshes: each(table.unique_abstract_meshes(), mesh)?,
        unique_named_shardings: each(table.unique_named_shardings(), named_sharding)?,
        in_avals_idxs: table.in_avals_idxs().map(|vector| vector.iter().collect()),
        out_avals_idxs: table.out_avals_idxs().map(|vector| vector.iter().collect()),
        in_shardings_idxs: table.in_shardings_idxs().map(|vector| vector.iter().collect()),
        out_shardings_idxs: table.out_shardings_idxs().map(|vector| vector.iter().collect()),
        jax_version: table.jax_version().map(Cow::Borrowed),
    };
    exported.check().map_err(|error| error.at(table._tab.loc() as u64))?;
    only_known_fields(table._tab, "Exported", schema::Exported::VT_JAX_VERSION)?;
    Ok(exported)
}

fn tree(table: schema::PyTreeDef<'_>, depth: usize) -> Result<PyTree<'_>> {
    only_known_fields(table._tab, "PyTreeDef", schema::PyTreeDef::VT_CUSTOM_AUXDATA)?;
    if depth > MAX_TREE_DEPTH {
        return Err(Error::unsupported(format!("a pytree nested deeper than {MAX_TREE_DEPTH} levels")).at(table._tab.loc() as u64));
    }
    let tree = PyTree {
        kind: PyTreeKind::from_code(table.kind()),
        children: each(table.children(), |child| tree(child, depth + 1))?,
        children_names: strings(table.children_names()),
        custom_name: table.custom_name().map(Cow::Borrowed),
        custom_auxdata: table.custom_auxdata().map(|vector| Cow::Borrowed(vector.bytes())),
    };
    tree.check_names().map_err(|error| error.at(table._tab.loc() as u64))?;
    Ok(tree)
}

fn aval(table: schema::AbstractValue<'_>) -> Result<Aval<'_>> {
    only_known_fields(table._tab, "AbstractValue", schema::AbstractValue::VT_MEMORY_SPACE)?;
    Ok(Aval {
        kind: AvalKind::from_code(table.kind()),
        shape: strings(table.shape()),
        dtype: DType::from_code(table.dtype()),
        memory_space: MemorySpace::from_code(table.memory_space()),
    })
}

fn sharding(table: schema::Sharding<'_>) -> Result<Sharding<'_>> {
    only_known_fields(table._tab, "Sharding", schema::Sharding::VT_NAMED_SHARDING)?;
    Ok(Sharding {
        kind: ShardingKind::from_code(table.kind()),
        hlo_sharding_proto: table.hlo_sharding_proto().map(|vector| Cow::Borrowed(vector.bytes())),
        named_sharding: table.named_sharding().map(named_sharding).transpose()?,
    })
}

fn named_sharding(table: schema::NamedSharding<'_>) -> Result<NamedSharding<'_>> {
    only_known_fields(table._tab, "NamedSharding", schema::NamedSharding::VT_ABSTRACT_MESH_IDX)?;
    Ok(NamedSharding {
        mesh: table.mesh().map(mesh).transpose()?,
        spec: table.spec().map(spec).transpose()?,
        memory_kind: table.memory_kind().map(Cow::Borrowed),
        abstract_mesh_idx: table.abstract_mesh_idx(),
    })
}

fn mesh(table: schema::AbstractMesh<'_>) -> Result<AbstractMesh<'_>> {
    only_known_fields(table._tab, "AbstractMesh", schema::AbstractMesh::VT_ABSTRACT_DEVICE)?;
    Ok(AbstractMesh {
        axis_sizes: table.axis_sizes().map(|vector| vector.iter().collect()),
        axis_names: strings(table.axis_names()),
        axis_types: table.axis_types().map(|vector| vector.iter().map(AxisType::from_code).collect()),
        abstract_device: table.abstract_device().map(device).transpose()?,
    })
}

fn device(table: schema::AbstractDevice<'_>) -> Result<AbstractDevice<'_>> {
    only_known_fields(table._tab, "AbstractDevice", schema::AbstractDevice::VT_PLATFORM)?;
    Ok(AbstractDevice {
        device_kind: table.device_kind().map(Cow::Borrowed),
        num_cores: table.num_cores(),
        platform: table.platform().map(Cow::Borrowed),
    })
}

fn spec(table: schema::PartitionSpec<'_>) -> Result<PartitionSpec<'_>> {
    only_known_fields(table._tab, "PartitionSpec", schema::PartitionSpec::VT_UNREDUCED)?;
    Ok(PartitionSpec {
        partitions: each(table.partitions(), dimension)?,
        reduced: strings(table.reduced()),
        unreduced: strings(table.unreduced()),
    })
}

fn dimension(table: schema::PartitionSpecOneAxis<'_>) -> Result<PartitionSpecOneAxis<'_>> {
    only_known_fields(table._tab, "PartitionSpecOneAxis", schema::PartitionSpecOneAxis::VT_AXES)?;
    Ok(PartitionSpecOneAxis { axes: strings(table.axes()) })
}

fn effect(table: schema::Effect<'_>) -> Result<Effect<'_>> {
    only_known_fields(table._tab, "Effect", schema::Effect::VT_TYPE_NAME)?;
    Ok(Effect { type_name: table.type_name().map(Cow::Borrowed) })
}

fn disabled_check(table: schema::DisabledSafetyCheck<'_>) -> Result<DisabledCheck<'_>> {
    only_known_fields(table._tab, "DisabledSafetyCheck", schema::DisabledSafetyCheck::VT_CUSTOM_CALL_TARGET)?;
    Ok(DisabledCheck {
        kind: DisabledCheckKind::from_code(table.kind()),
        custom_call_target: table.custom_call_target().map(Cow::Borrowed),
    })
}

type Tables<'a, T> = Option<Vector<'a, ForwardsUOffset<T>>>;

fn each<'a, T: Follow<'a> + 'a, U>(tables: Tables<'a, T>, read: impl Fn(T::Inner) -> Result<U>) -> Result<Option<Vec<U>>> {
    tables.map(|tables| tables.iter().map(read).collect()).transpose()
}

fn strings<'a>(vector: Tables<'a, &'a str>) -> Option<Vec<Cow<'a, str>>> {
    vector.map(|vector| vector.iter().map(Cow::Borrowed).collect())
}

/// Refuses a table with a field behind `last`, the position in the table's directory of the last field that we know.
fn only_known_fields(table: Table<'_>, name: &str, last: u16) -> Result<()> {
    let directory = table.vtable();
    let end = u16::try_from(directory.num_bytes()).unwrap_or(u16::MAX);
    match (last + 2..end).step_by(2).find(|&position| directory.get(position) != 0) {
        None => Ok(()),
        Some(position) => {
            let message =
                format!("table `{name}` has a field {}, which schema version {MAX_SCHEMA_VERSION} does not have", (position - 4) / 2);
            Err(Error::unsupported(message).at(table.loc() as u64).with_hint("use a newer jaxprism, or export with an older JAX"))
        }
    }
}

#[cfg(test)]
mod tests {
    use flatbuffers::FlatBufferBuilder;

    use super::super::testing::{full, minimal, tree_of_depth};
    use super::*;

    /// A minimal export from the builder itself, for what our writer refuses: the given input tree, and a last field `extra` if it is not 0.
    fn raw(
        tree: impl FnOnce(&mut FlatBufferBuilder<'static>) -> flatbuffers::WIPOffset<schema::PyTreeDef<'static>>,
        extra: u16,
    ) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let tree = tree(&mut builder);
        let name = builder.create_string("f");
        let platforms = builder.create_vector(&[name]);
        let module = builder.create_vector::<u8>(&[]);
        let table = builder.start_table();
        builder.push_slot::<u16>(schema::Exported::VT_SERIALIZATION_VERSION, 12, 0);
        builder.push_slot_always(schema::Exported::VT_FUNCTION_NAME, name);
        builder.push_slot_always(schema::Exported::VT_IN_TREE, tree);
        builder.push_slot_always(schema::Exported::VT_OUT_TREE, tree);
        builder.push_slot_always(schema::Exported::VT_PLATFORMS, platforms);
        builder.push_slot_always(schema::Exported::VT_MLIR_MODULE_SERIALIZED, module);
        builder.push_slot::<u16>(schema::Exported::VT_JAX_VERSION + 2, extra, 0);
        let root = builder.end_table(table);
        builder.finish_minimal(root);
        builder.finished_data().to_vec()
    }

    fn raw_leaf<'b>(builder: &mut FlatBufferBuilder<'b>) -> flatbuffers::WIPOffset<schema::PyTreeDef<'b>> {
        schema::PyTreeDef::create(builder, &Default::default())
    }

    fn raw_tuples<'b>(builder: &mut FlatBufferBuilder<'b>, depth: usize, width: usize) -> flatbuffers::WIPOffset<schema::PyTreeDef<'b>> {
        (1..depth).fold(raw_leaf(builder), |child, _| {
            let children = Some(builder.create_vector(&vec![child; width]));
            schema::PyTreeDef::create(builder, &schema::PyTreeDefArgs { kind: 2, children, ..Default::default() })
        })
    }

    fn raw_chain(levels: usize) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let name = builder.create_string("f");
        let root = (0..levels).fold(None, |vjp, _| {
            let tree = Some(raw_leaf(&mut builder));
            let (platforms, module) = (Some(builder.create_vector(&[name])), Some(builder.create_vector::<u8>(&[])));
            let args = schema::ExportedArgs {
                serialization_version: 12,
                function_name: Some(name),
                in_tree: tree,
                out_tree: tree,
                platforms,
                mlir_module_serialized: module,
                vjp,
                ..Default::default()
            };
            Some(schema::Exported::create(&mut builder, &args))
        });
        builder.finish_minimal(root.unwrap());
        builder.finished_data().to_vec()
    }

    fn refusal(bytes: &[u8]) -> String {
        let error = Exported::read(bytes).unwrap_err();
        error.causes().last().unwrap_or(&error).to_string()
    }

    #[test]
    fn a_newer_schema_is_refused_by_its_number_or_by_a_field_we_do_not_know() {
        let mut bytes = minimal(b"").write().unwrap().to_vec();
        let table = verified(&bytes).unwrap()._tab;
        let place = table.loc() + usize::from(table.vtable().get(schema::Exported::VT_SERIALIZATION_VERSION));
        bytes[place] = 13;
        let expected = "the export has schema version 13, but this jaxprism knows versions up to 12";
        assert_eq!(refusal(&bytes), format!("{expected} (at offset {:#x})", verified(&bytes).unwrap()._tab.loc()));
        bytes[place] = 0;
        assert!(refusal(&bytes).starts_with("the schema version is 0, but JAX counts from 1"));

        Exported::read(&raw(raw_leaf, 0)).unwrap();
        let message = refusal(&raw(raw_leaf, 1));
        assert!(message.starts_with("table `Exported` has a field 27, which schema version 12 does not have (at offset 0x"), "{message}");
    }

    #[test]
    fn nesting_is_refused_beyond_the_limits_and_works_up_to_them() {
        assert!(
            refusal(&raw(|builder| raw_tuples(builder, MAX_TREE_DEPTH + 1, 1), 0)).starts_with("a pytree nested deeper than 100 levels")
        );
        assert!(refusal(&raw(|builder| raw_tuples(builder, 10_000, 1), 0)).starts_with("tables nested deeper than 120 levels"));
        assert!(refusal(&raw_chain(MAX_LEVELS + 1)).starts_with("more than 16 levels of vector-Jacobian products"));
        assert!(refusal(&raw_chain(10_000)).starts_with("tables nested deeper than 120 levels"));
        let deepest = Exported { in_tree: tree_of_depth(MAX_TREE_DEPTH), ..minimal(b"m") };
        let exported = (1..MAX_LEVELS).fold(deepest, |vjp, _| Exported { vjp: Some(Box::new(vjp)), ..minimal(b"m") });
        let bytes = exported.write().unwrap().to_vec();
        assert_eq!(Exported::read(&bytes).unwrap(), exported);
        let too_many = Exported { vjp: Some(Box::new(exported)), ..minimal(b"m") };
        assert_eq!(too_many.write().unwrap_err().to_string(), "more than 16 levels of vector-Jacobian products");
    }

    #[test]
    fn parts_that_overlap_cannot_blow_up() {
        for (depth, width) in [(40, 2), (3, 10_000)] {
            let message = refusal(&raw(|builder| raw_tuples(builder, depth, width), 0));
            assert!(message.starts_with("parts overlap: they add up to far more than the file's "), "{message}");
        }
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let mut bytes = full(b"module").write().unwrap().to_vec();
        let scale = bytes.windows(5).position(|window| window == b"scale").unwrap();
        bytes[scale + 1] = 0xff;
        assert_eq!(refusal(&bytes), format!("`in_tree.children[1].children_names[0]` is not UTF-8 (at offset {:#x})", scale + 1));
        bytes[scale - 4..scale].copy_from_slice(&0x1000_0000_u32.to_le_bytes());
        let expected = format!("reaches up to byte {}, but the file has {} (at offset {scale:#x})", 0x1000_0000 + scale, bytes.len());
        assert_eq!(refusal(&bytes), format!("`in_tree.children[1].children_names[0]` {expected}"));
    }

    #[test]
    fn a_truncated_export_is_an_error_at_every_length() {
        let bytes = full(b"module").write().unwrap().to_vec();
        for length in 0..bytes.len() {
            let error = Exported::read(&bytes[..length]).unwrap_err();
            assert!(error.to_string().starts_with("not a JAX export") && error.hint().is_some(), "{length}: {error:?}");
        }
    }

    #[test]
    fn an_input_larger_than_any_export_is_refused_with_both_numbers() {
        // Zeroed pages that nobody touches cost nothing.
        let bytes = vec![0; MAX_EXPORT_BYTES as usize + 1];
        assert_eq!(refusal(&bytes), "the input has 2147483649 bytes, but an export has at most 2147483648");
    }
}
