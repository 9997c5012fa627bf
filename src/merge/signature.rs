//! Whether two exports have one signature, and where not: the first difference, by the path that Python would take to it.

use std::fmt::Write;

use rustc_hash::FxHashSet;

use crate::container::{AbstractMesh, Aval, Exported, MemorySpace, NamedSharding, PyTree, PyTreeKind, ResolvedSharding};

/// One place in which two exports differ.
pub(super) struct Difference {
    /// The path, or what it is in.
    pub place: String,
    pub first: String,
    pub second: String,
    pub kind: Kind,
}

/// What differs, where there is something to do about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    CallingConvention,
    /// One of the two has none.
    Sharding,
    Other,
}

impl Difference {
    fn of(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }
}

/// The first difference of what callers of two exports see, at one level.
pub(super) fn difference(first: &Exported<'_>, second: &Exported<'_>) -> Option<Difference> {
    in_trees(first, second)
        .or_else(|| in_avals(&first.input_paths(), &first.input_avals(), &second.input_avals()))
        .or_else(|| in_avals(&first.output_paths(), &first.output_avals(), &second.output_avals()))
        .or_else(|| in_shardings(first, second))
        .or_else(|| unequal("the number of devices", first.device_count(), second.device_count()))
        .or_else(|| {
            let versions = (first.calling_convention_version, second.calling_convention_version);
            unequal("the calling convention version", versions.0, versions.1).map(|found| found.of(Kind::CallingConvention))
        })
        .or_else(|| {
            let list =
                |exported: &Exported<'_>| effects(exported.ordered_effects.iter().flatten().map(|effect| effect.type_name.as_deref()));
            unequal("ordered effects", list(first), list(second))
        })
}

fn unequal<T: PartialEq + ToString>(place: &str, first: T, second: T) -> Option<Difference> {
    (first != second).then(|| Difference {
        place: place.to_owned(),
        first: first.to_string(),
        second: second.to_string(),
        kind: Kind::Other,
    })
}

fn effects<'e>(names: impl Iterator<Item = Option<&'e str>>) -> String {
    let names: Vec<_> = names.map(|name| name.unwrap_or("one without a name")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Compares the trees of arguments and results, node by node.
fn in_trees(first: &Exported<'_>, second: &Exported<'_>) -> Option<Difference> {
    let roots = |exported: &Exported<'_>| match exported.in_tree.children() {
        [_, _] if exported.in_tree.kind == PyTreeKind::Tuple => Some(()),
        _ => None,
    };
    let mut work = vec![("result".to_owned(), &first.out_tree, &second.out_tree)];
    match (roots(first), roots(second), first.in_tree.children(), second.in_tree.children()) {
        (Some(()), Some(()), [args, kwargs], [other_args, other_kwargs]) => {
            work.push(("kwargs".to_owned(), kwargs, other_kwargs));
            work.push(("args".to_owned(), args, other_args));
        }
        _ => work.push(("inputs".to_owned(), &first.in_tree, &second.in_tree)),
    }
    while let Some((path, one, other)) = work.pop() {
        let (shown_one, shown_other) = (shown(one), shown(other));
        if shown_one != shown_other {
            return Some(Difference { place: path, first: shown_one, second: shown_other, kind: Kind::Other });
        }
        if one.custom_auxdata != other.custom_auxdata || one.children_names != other.children_names {
            let (first, second) = (shown_one, format!("{shown_other} with other static data"));
            return Some(Difference { place: path, first, second, kind: Kind::Other });
        }
        let children = one.steps().into_iter().zip(other.children());
        work.extend(children.rev().map(|((step, child), other)| (format!("{path}{step}"), child, other)));
    }
    None
}

/// A node without what is below its children.
fn shown(node: &PyTree<'_>) -> String {
    let mut text = node.kind.to_string();
    if let Some(name) = &node.custom_name {
        let _ = write!(text, " {name}");
    }
    match (node.kind, &node.children_names) {
        (PyTreeKind::Leaf | PyTreeKind::None, _) => {}
        (PyTreeKind::Dict, Some(names)) => {
            let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
            let _ = write!(text, " of {}", if names.is_empty() { "nothing".to_owned() } else { names.join(", ") });
        }
        _ => {
            let _ = write!(text, " of {}", node.children().len());
        }
    }
    text
}

fn in_avals(paths: &[String], first: &[&Aval<'_>], second: &[&Aval<'_>]) -> Option<Difference> {
    if first.len() != second.len() {
        return unequal("the number of arrays", first.len(), second.len());
    }
    let is_same = |one: &Aval<'_>, other: &Aval<'_>| {
        // JAX reads a memory space that is missing as the device's.
        let space = |aval: &Aval<'_>| if aval.memory_space == MemorySpace::Missing { MemorySpace::Device } else { aval.memory_space };
        let shape = |aval: &Aval<'_>| aval.shape.iter().flatten().map(ToString::to_string).collect::<Vec<_>>();
        (one.kind, one.dtype, space(one), shape(one)) == (other.kind, other.dtype, space(other), shape(other))
    };
    let place = first.iter().zip(second).position(|(one, other)| !is_same(one, other))?;
    let path = paths.get(place).cloned().unwrap_or_else(|| format!("array {place}"));
    Some(Difference { place: path, first: first.get(place)?.to_string(), second: second.get(place)?.to_string(), kind: Kind::Other })
}

/// Compares the shardings of results, and of arguments that both modules take: JAX lists none for others.
fn in_shardings(first: &Exported<'_>, second: &Exported<'_>) -> Option<Difference> {
    let kept = |exported: &Exported<'_>| exported.module_kept_var_idx.iter().flatten().map(|kept| usize::from(*kept)).collect();
    let kept: [FxHashSet<usize>; 2] = [kept(first), kept(second)];
    let inputs = first.input_shardings().into_iter().zip(second.input_shardings()).zip(first.input_paths()).enumerate();
    let inputs = inputs.filter(|(number, _)| kept.iter().all(|kept| kept.contains(number))).map(|(_, found)| found);
    let outputs = first.output_shardings().into_iter().zip(second.output_shardings()).zip(first.output_paths());
    for ((one, other), path) in inputs.collect::<Vec<_>>().into_iter().chain(outputs.collect::<Vec<_>>()) {
        if !is_same_sharding(first, &one, second, &other) {
            let lacks_one = [&one, &other].contains(&&ResolvedSharding::Unspecified);
            let kind = if lacks_one { Kind::Sharding } else { Kind::Other };
            return Some(Difference { place: path, first: shown_sharding(first, &one), second: shown_sharding(second, &other), kind });
        }
    }
    None
}

fn is_same_sharding(first: &Exported<'_>, one: &ResolvedSharding<'_, '_>, second: &Exported<'_>, other: &ResolvedSharding<'_, '_>) -> bool {
    match (one, other) {
        (ResolvedSharding::Unspecified, ResolvedSharding::Unspecified) => true,
        (ResolvedSharding::Hlo(one), ResolvedSharding::Hlo(other)) => one == other,
        (ResolvedSharding::Named(one), ResolvedSharding::Named(other)) => {
            one.spec == other.spec && one.memory_kind == other.memory_kind && is_same_mesh(first.mesh_of(one), second.mesh_of(other))
        }
        _ => false,
    }
}

/// Whether two meshes are the same but for the kind of device, which may be another one on each platform.
fn is_same_mesh(one: Option<&AbstractMesh<'_>>, other: Option<&AbstractMesh<'_>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            (&one.axis_sizes, &one.axis_names, &one.axis_types) == (&other.axis_sizes, &other.axis_names, &other.axis_types)
        }
        _ => false,
    }
}

fn shown_sharding(exported: &Exported<'_>, sharding: &ResolvedSharding<'_, '_>) -> String {
    match sharding {
        ResolvedSharding::Unspecified => "no sharding".to_owned(),
        ResolvedSharding::Hlo(bytes) => format!("an HLO sharding of {} bytes", bytes.len()),
        ResolvedSharding::Named(named) => shown_named(exported, named),
    }
}

fn shown_named(exported: &Exported<'_>, named: &NamedSharding<'_>) -> String {
    let mut text = named.spec.as_ref().map_or_else(|| "P()".to_owned(), ToString::to_string);
    if let Some(mesh) = exported.mesh_of(named) {
        let _ = write!(text, " on {mesh}");
    }
    if let Some(kind) = &named.memory_kind {
        let _ = write!(text, " in {kind}");
    }
    text
}
