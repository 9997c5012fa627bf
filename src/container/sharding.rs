//! How arrays are cut over devices.

use std::borrow::Cow;
use std::fmt;

use super::codes::{AxisType, ShardingKind};

/// The sharding of one flattened input or output, as files before schema 10 hold it. Newer files repeat it for older readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding<'a> {
    /// Which of the fields counts.
    pub kind: ShardingKind,
    /// A serialized `xla.OpSharding`. No longer written since schema 9.
    pub hlo_sharding_proto: Option<Cow<'a, [u8]>>,
    /// The sharding by names of mesh axes. Since schema 6.
    pub named_sharding: Option<NamedSharding<'a>>,
}

/// A mesh and how the dimensions of an array are cut along its axes. Since schema 6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSharding<'a> {
    /// The mesh, spelled out. From schema 10 on, JAX reads `abstract_mesh_idx` instead where the export has `unique_abstract_meshes`.
    pub mesh: Option<AbstractMesh<'a>>,
    /// Which dimension goes along which axes.
    pub spec: Option<PartitionSpec<'a>>,
    /// Which memory of the devices holds the array, such as `pinned_host`.
    pub memory_kind: Option<Cow<'a, str>>,
    /// The mesh among [`Exported::unique_abstract_meshes`](super::Exported::unique_abstract_meshes). Since schema 10.
    pub abstract_mesh_idx: u32,
}

/// A grid of devices with named axes, without the devices. Since schema 6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbstractMesh<'a> {
    /// Devices along each axis.
    pub axis_sizes: Option<Vec<u32>>,
    /// The name of each axis.
    pub axis_names: Option<Vec<Cow<'a, str>>>,
    /// How programs see each axis.
    pub axis_types: Option<Vec<AxisType>>,
    /// What kind of device the grid is made of. Since schema 8.
    pub abstract_device: Option<AbstractDevice<'a>>,
}

/// A kind of device. Since schema 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbstractDevice<'a> {
    /// The kind, as its runtime names it: `TPU v5 lite`, `NVIDIA H100 80GB HBM3`.
    pub device_kind: Option<Cow<'a, str>>,
    /// Cores of one device, where it has several.
    pub num_cores: Option<u32>,
    /// The device's platform. Since schema 11; for older files JAX guesses it from the kind.
    pub platform: Option<Cow<'a, str>>,
}

/// Which mesh axes each dimension of an array is cut along. Since schema 6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec<'a> {
    /// One entry per dimension.
    pub partitions: Option<Vec<PartitionSpecOneAxis<'a>>>,
    /// Axes over which the array counts as already summed up.
    pub reduced: Option<Vec<Cow<'a, str>>>,
    /// Axes over which a sum is still outstanding.
    pub unreduced: Option<Vec<Cow<'a, str>>>,
}

/// The mesh axes that one dimension is cut along; none if it is whole everywhere. Since schema 6.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpecOneAxis<'a> {
    /// Names of mesh axes, major first.
    pub axes: Option<Vec<Cow<'a, str>>>,
}

/// A sharding as the export's consumers understand it, wherever the file keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedSharding<'e, 'a> {
    /// The compiler decides.
    Unspecified,
    /// A serialized `xla.OpSharding`, in files up to schema 8.
    Hlo(&'e [u8]),
    /// By names of mesh axes.
    Named(&'e NamedSharding<'a>),
}

impl<'a> Sharding<'a> {
    /// What the fields together mean; a named sharding wins, as in JAX.
    pub fn resolve(&self) -> ResolvedSharding<'_, 'a> {
        match (&self.named_sharding, self.kind, &self.hlo_sharding_proto) {
            (Some(named), _, _) => ResolvedSharding::Named(named),
            (None, ShardingKind::Hlo, Some(proto)) => ResolvedSharding::Hlo(proto),
            _ => ResolvedSharding::Unspecified,
        }
    }
}

impl fmt::Display for PartitionSpec<'_> {
    /// As JAX prints it: `P('x', None, ('y', 'z'))`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimension = |partition: &PartitionSpecOneAxis| match partition.axes.as_deref().unwrap_or_default() {
            [] => "None".to_owned(),
            [axis] => format!("'{axis}'"),
            axes => format!("({})", list(axes)),
        };
        let mut parts: Vec<_> = self.partitions.iter().flatten().map(dimension).collect();
        for (word, axes) in [("unreduced", &self.unreduced), ("reduced", &self.reduced)] {
            match axes.as_deref() {
                None | Some([]) => {}
                Some(axes) => parts.push(format!("{word}={{{}}}", list(axes))),
            }
        }
        write!(f, "P({})", parts.join(", "))
    }
}

impl fmt::Display for AbstractMesh<'_> {
    /// `('x': 2, 'y': 4)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.axis_names.iter().flatten().zip(self.axis_sizes.iter().flatten());
        write!(f, "({})", axes.map(|(name, size)| format!("'{name}': {size}")).collect::<Vec<_>>().join(", "))
    }
}

fn list(names: &[Cow<str>]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_and_meshes_print_as_in_jax() {
        let dimension = |axes: &[&'static str]| PartitionSpecOneAxis { axes: Some(axes.iter().map(|&axis| axis.into()).collect()) };
        let spec = PartitionSpec {
            partitions: Some(vec![dimension(&["x"]), dimension(&[]), dimension(&["y", "z"])]),
            reduced: None,
            unreduced: Some(vec!["u".into()]),
        };
        assert_eq!(spec.to_string(), "P('x', None, ('y', 'z'), unreduced={'u'})");
        let mesh = AbstractMesh {
            axis_sizes: Some(vec![2, 4]),
            axis_names: Some(vec!["x".into(), "y".into()]),
            axis_types: None,
            abstract_device: None,
        };
        assert_eq!(mesh.to_string(), "('x': 2, 'y': 4)");
    }

    #[test]
    fn a_named_sharding_wins_over_the_kind() {
        let mut sharding = Sharding { kind: ShardingKind::Hlo, hlo_sharding_proto: Some(vec![1].into()), named_sharding: None };
        assert_eq!(sharding.resolve(), ResolvedSharding::Hlo(&[1]));
        let named = NamedSharding { mesh: None, spec: None, memory_kind: None, abstract_mesh_idx: 0 };
        sharding.named_sharding = Some(named.clone());
        assert_eq!(sharding.resolve(), ResolvedSharding::Named(&named));
    }
}
