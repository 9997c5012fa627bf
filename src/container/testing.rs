//! Exports built by hand, for the tests of this room.

use super::*;

/// A leaf.
pub(super) fn leaf() -> PyTree<'static> {
    PyTree::new(PyTreeKind::Leaf, vec![])
}

/// A leaf inside as many tuples as make the tree `depth` deep.
pub(super) fn tree_of_depth(depth: usize) -> PyTree<'static> {
    (1..depth).fold(leaf(), |tree, _| PyTree::new(PyTreeKind::Tuple, vec![tree]))
}

/// Only what an export must have.
pub(super) fn minimal(module: &[u8]) -> Exported<'_> {
    Exported {
        serialization_version: 1,
        function_name: "f".into(),
        in_tree: leaf(),
        in_avals: None,
        out_tree: leaf(),
        out_avals: None,
        nr_devices_short: 1,
        in_shardings: None,
        out_shardings: None,
        platforms: vec![Platform::CPU, Platform::CUDA],
        ordered_effects: None,
        unordered_effects: None,
        disabled_checks: None,
        module: Pieces::borrowed(module),
        calling_convention_version: 9,
        module_kept_var_idx: None,
        uses_global_constants: false,
        vjp: None,
        nr_devices: 0,
        unique_avals: None,
        unique_abstract_meshes: None,
        unique_named_shardings: None,
        in_avals_idxs: None,
        out_avals_idxs: None,
        in_shardings_idxs: None,
        out_shardings_idxs: None,
        jax_version: None,
    }
}

/// Every field, with something in it that is not its default.
pub(super) fn full(module: &[u8]) -> Exported<'_> {
    let aval =
        |dtype| Aval { kind: AvalKind::ShapedArray, shape: Some(vec!["4".into(), "b".into()]), dtype, memory_space: MemorySpace::Host };
    let device = AbstractDevice { device_kind: Some("TPU v5 lite".into()), num_cores: Some(0), platform: Some("tpu".into()) };
    let mesh = AbstractMesh {
        axis_sizes: Some(vec![2, 4]),
        axis_names: Some(vec!["x".into(), "y".into()]),
        axis_types: Some(vec![AxisType::Auto, AxisType::Other(-3)]),
        abstract_device: Some(device),
    };
    let dimensions = [Some(vec!["x".into(), "y".into()]), Some(vec![]), None].map(|axes| PartitionSpecOneAxis { axes });
    let spec = PartitionSpec { partitions: Some(dimensions.into()), reduced: Some(vec!["r".into()]), unreduced: Some(vec![]) };
    let named = NamedSharding { mesh: Some(mesh.clone()), spec: Some(spec), memory_kind: Some("pinned_host".into()), abstract_mesh_idx: 1 };
    let hlo = Sharding { kind: ShardingKind::Hlo, hlo_sharding_proto: Some(vec![8, 3].into()), named_sharding: None };
    let custom = PyTree {
        custom_name: Some("Point".into()),
        custom_auxdata: Some(br#"["x"]"#.into()),
        ..PyTree::new(PyTreeKind::Custom, vec![leaf()])
    };
    let args = PyTree::new(PyTreeKind::Tuple, vec![PyTree::dict(vec![("w".into(), custom)]), PyTree::new(PyTreeKind::Other(6), vec![])]);
    let kwargs = PyTree::dict(vec![("scale".into(), leaf())]);
    Exported {
        serialization_version: MAX_SCHEMA_VERSION,
        in_tree: PyTree::new(PyTreeKind::Tuple, vec![args, kwargs]),
        in_avals: Some(vec![aval(DType::F32), aval(DType::Other(99))]),
        out_avals: Some(vec![]),
        in_shardings: Some(vec![hlo.clone(), hlo]),
        out_shardings: Some(vec![Sharding {
            kind: ShardingKind::Unspecified,
            hlo_sharding_proto: None,
            named_sharding: Some(named.clone()),
        }]),
        ordered_effects: Some(vec![Effect { type_name: Some("<class 'E'>".into()) }, Effect { type_name: None }]),
        unordered_effects: Some(vec![]),
        disabled_checks: Some(vec![DisabledCheck { kind: DisabledCheckKind::CustomCall, custom_call_target: Some("t".into()) }]),
        module_kept_var_idx: Some(vec![0, 65_535]),
        uses_global_constants: true,
        nr_devices: 1 << 20,
        unique_avals: Some(vec![aval(DType::KeyFry), aval(DType::F8E8M0Fnu)]),
        unique_abstract_meshes: Some(vec![mesh.clone(), mesh]),
        unique_named_shardings: Some(vec![named]),
        in_avals_idxs: Some(vec![1, 0]),
        out_avals_idxs: Some(vec![0]),
        in_shardings_idxs: Some(vec![0, 1]),
        out_shardings_idxs: Some(vec![1]),
        jax_version: Some("0.12.0".into()),
        ..minimal(module)
    }
}
