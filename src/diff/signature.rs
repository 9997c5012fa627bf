//! Containers side by side: what they say of the function, whatever fields they say it in.

use std::collections::HashMap;

use super::{ChangeKind, File, Found};
use crate::container::{Effect, Exported, MAX_SHOWN_KEY, PyTree, PyTreeKind, ResolvedSharding};
use crate::inspect::{FileFormat, disabled_check, sharding_text};

/// What the files are, and how many levels they have.
pub(super) fn formats(a: &File<'_>, b: &File<'_>, found: &mut Found) {
    let name = |file: &File<'_>| Some(if file.format() == FileFormat::Export { "an export" } else { "a module alone" }.to_owned());
    if a.format() != b.format() {
        found.fact(ChangeKind::Signature, 0, "format", name(a), name(b));
    }
    let levels = |file: &File<'_>| Some((file.levels.len() - 1).to_string());
    if a.levels.len() != b.levels.len() {
        found.fact(ChangeKind::Signature, 0, "gradient levels", levels(a), levels(b));
    }
}

/// Lists what differs between two levels.
pub(super) fn compare(a: &Exported<'_>, b: &Exported<'_>, level: usize, found: &mut Found) {
    let mut fields = Fields { level, found };
    let absent = || "not recorded".to_owned();
    let jax = |exported: &Exported<'_>| exported.jax_version.as_deref().map_or_else(absent, str::to_owned);
    fields.one(ChangeKind::Version, "JAX", jax(a), jax(b));
    fields.one(ChangeKind::Version, "schema", a.serialization_version.to_string(), b.serialization_version.to_string());
    let mut one = |what: &str, a: String, b: String| fields.one(ChangeKind::Signature, what, a, b);
    one("calling convention", a.calling_convention_version.to_string(), b.calling_convention_version.to_string());
    one("function", a.function_name.to_string(), b.function_name.to_string());
    one("platforms", list(a.platforms.iter().map(ToString::to_string)), list(b.platforms.iter().map(ToString::to_string)));
    one("devices", a.device_count().to_string(), b.device_count().to_string());
    one("global constants", used(a.uses_global_constants), used(b.uses_global_constants));
    one("ordered effects", effects(a.ordered_effects.as_deref()), effects(b.ordered_effects.as_deref()));
    one("other effects", effects(a.unordered_effects.as_deref()), effects(b.unordered_effects.as_deref()));
    let checks = |exported: &Exported<'_>| list(exported.disabled_checks.iter().flatten().map(disabled_check));
    one("disabled checks", checks(a), checks(b));
    fields.arrays("arguments", &arguments(a), &arguments(b));
    fields.arrays("results", &results(a), &results(b));
    let roots = |exported: &Exported<'_>| exported.in_tree.children().len() == 2 && exported.in_tree.kind == PyTreeKind::Tuple;
    match (a.in_tree.children(), b.in_tree.children()) {
        ([args, kwargs], [other_args, other_kwargs]) if roots(a) && roots(b) => {
            fields.tree("args", args, other_args);
            fields.tree("kwargs", kwargs, other_kwargs);
        }
        _ => fields.tree("inputs", &a.in_tree, &b.in_tree),
    }
    fields.tree("result", &a.out_tree, &b.out_tree);
}

/// What a path shows of a key.
fn step(key: &str) -> String {
    key.chars().take(MAX_SHOWN_KEY).collect()
}

/// The end of a long key.
fn end(key: &str) -> String {
    format!("…{}", key.chars().skip(MAX_SHOWN_KEY).collect::<String>())
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items = items.collect::<Vec<_>>().join(", ");
    if items.is_empty() { "none".to_owned() } else { items }
}

fn used(is_used: bool) -> String {
    if is_used { "used" } else { "not used" }.to_owned()
}

fn effects(effects: Option<&[Effect<'_>]>) -> String {
    list(effects.unwrap_or_default().iter().map(|effect| effect.type_name.as_deref().unwrap_or("?").to_owned()))
}

/// An argument or a result.
struct Array {
    path: String,
    aval: String,
    sharding: String,
    /// What of the sharding no text of it says.
    details: String,
    kept: bool,
}

fn arguments(exported: &Exported<'_>) -> Vec<Array> {
    let kept = exported.module_kept_var_idx.as_deref();
    let mut is_kept = vec![kept.is_none(); exported.input_avals().len()];
    for index in kept.unwrap_or_default() {
        is_kept.get_mut(usize::from(*index)).into_iter().for_each(|kept| *kept = true);
    }
    let avals = exported.input_avals().into_iter().map(ToString::to_string).collect();
    let mut arrays = arrays(exported, exported.input_paths(), avals, &exported.input_shardings());
    arrays.iter_mut().zip(is_kept).for_each(|(array, kept)| array.kept = kept);
    arrays
}

fn results(exported: &Exported<'_>) -> Vec<Array> {
    let avals = exported.output_avals().into_iter().map(ToString::to_string).collect();
    arrays(exported, exported.output_paths(), avals, &exported.output_shardings())
}

/// Trees, avals and shardings are lists of their own in the file, and nothing there makes them equally long.
fn arrays(exported: &Exported<'_>, paths: Vec<String>, avals: Vec<String>, shardings: &[ResolvedSharding<'_, '_>]) -> Vec<Array> {
    let count = paths.len().max(avals.len()).max(shardings.len());
    let (mut paths, mut avals, mut shardings) = (paths.into_iter(), avals.into_iter(), shardings.iter());
    let unknown = || "?".to_owned();
    let array = |_| {
        let (sharding, details) = shardings.next().map_or_else(|| (unknown(), String::new()), |sharding| describe(exported, sharding));
        let (path, aval) = (paths.next().unwrap_or_else(unknown), avals.next().unwrap_or_else(unknown));
        Array { path, aval, sharding, details, kept: true }
    };
    (0..count).map(array).collect()
}

fn describe(exported: &Exported<'_>, sharding: &ResolvedSharding<'_, '_>) -> (String, String) {
    let (text, mesh) = sharding_text(exported, sharding);
    let text = text.unwrap_or_else(|| "unspecified".to_owned());
    match sharding {
        ResolvedSharding::Named(named) => {
            let mesh = mesh.map_or_else(String::new, |mesh| format!(" on {mesh}"));
            (text + &mesh, format!("{:?}", exported.mesh_of(named)))
        }
        ResolvedSharding::Hlo(proto) => (text, format!("{proto:?}")),
        ResolvedSharding::Unspecified => (text, String::new()),
    }
}

struct Fields<'f> {
    level: usize,
    found: &'f mut Found,
}

impl Fields<'_> {
    fn one(&mut self, kind: ChangeKind, what: &str, a: String, b: String) {
        if a != b {
            self.found.fact(kind, self.level, what, Some(a), Some(b));
        }
    }

    /// Compares arguments or results by their paths.
    fn arrays(&mut self, what: &str, a: &[Array], b: &[Array]) {
        let mut others: HashMap<&str, Vec<usize>> = HashMap::new();
        b.iter().enumerate().rev().for_each(|(number, array)| others.entry(&array.path).or_default().push(number));
        let mut order = Vec::new();
        for ours in a {
            let Some(number) = others.get_mut(&*ours.path).and_then(Vec::pop) else {
                self.found.fact(ChangeKind::Signature, self.level, &*ours.path, Some(ours.aval.clone()), None);
                continue;
            };
            order.push(number);
            let Some(theirs) = b.get(number) else { continue };
            self.one(ChangeKind::Signature, &ours.path, ours.aval.clone(), theirs.aval.clone());
            let sharding = format!("sharding of {}", ours.path);
            let (one, other) =
                if ours.sharding == theirs.sharding { (&ours.details, &theirs.details) } else { (&ours.sharding, &theirs.sharding) };
            self.one(ChangeKind::Signature, &sharding, one.clone(), other.clone());
            let kept = |array: &Array| if array.kept { "taken by the module" } else { "not used by the module" }.to_owned();
            self.one(ChangeKind::Signature, &format!("use of {}", ours.path), kept(ours), kept(theirs));
        }
        let mut left: Vec<usize> = others.into_values().flatten().collect();
        left.sort_unstable();
        for array in left.into_iter().filter_map(|number| b.get(number)) {
            self.found.fact(ChangeKind::Signature, self.level, &*array.path, None, Some(array.aval.clone()));
        }
        if !order.is_sorted() {
            let paths = |numbers: &[usize]| list(numbers.iter().filter_map(|number| b.get(*number)).map(|array| array.path.clone()));
            let ours = paths(&order);
            order.sort_unstable();
            self.one(ChangeKind::Signature, &format!("order of {what}"), ours, paths(&order));
        }
    }

    /// Compares what trees are made of. Leaves are compared as arrays.
    fn tree(&mut self, root: &str, a: &PyTree<'_>, b: &PyTree<'_>) {
        let nodes = b.nodes(root);
        let mut others: HashMap<&str, Vec<usize>> = HashMap::new();
        nodes.iter().enumerate().rev().for_each(|(number, (path, _))| others.entry(path).or_default().push(number));
        for (path, ours) in a.nodes(root) {
            match others.get_mut(&*path).and_then(Vec::pop).and_then(|number| nodes.get(number)) {
                Some((_, theirs)) => self.node(&path, ours, theirs),
                None => self.lone(&path, ours, true),
            }
        }
        let mut left: Vec<usize> = others.into_values().flatten().collect();
        left.sort_unstable();
        left.into_iter().filter_map(|number| nodes.get(number)).for_each(|(path, theirs)| self.lone(path, theirs, false));
    }

    fn node(&mut self, path: &str, ours: &PyTree<'_>, theirs: &PyTree<'_>) {
        let kind = |node: &PyTree<'_>| match &node.custom_name {
            Some(name) => format!("{} {name}", node.kind),
            None => node.kind.to_string(),
        };
        self.one(ChangeKind::Signature, &format!("kind of {path}"), kind(ours), kind(theirs));
        // Paths show the start of a long key only.
        let keys = |node: &PyTree<'_>| node.children_names.iter().flatten().map(ToString::to_string).collect::<Vec<_>>();
        let (one, other) = (keys(ours), keys(theirs));
        if let Some((one, other)) = one.iter().zip(&other).find(|(one, other)| one != other && step(one) == step(other)) {
            self.found.fact(ChangeKind::Signature, self.level, format!("key of {path}"), Some(end(one)), Some(end(other)));
        }
        let data =
            |node: &PyTree<'_>| node.custom_auxdata.as_deref().map_or_else(|| "none".to_owned(), |data| format!("{:?}", super::text(data)));
        if ours.custom_auxdata != theirs.custom_auxdata {
            self.found.fact(ChangeKind::Signature, self.level, format!("data of {path}"), Some(data(ours)), Some(data(theirs)));
        }
    }

    /// A node that only one side has; where something is below it, that is what is missing.
    fn lone(&mut self, path: &str, node: &PyTree<'_>, is_ours: bool) {
        if node.kind == PyTreeKind::Leaf || !node.children().is_empty() {
            return;
        }
        let kind = Some(node.kind.to_string());
        let (a, b) = if is_ours { (kind, None) } else { (None, kind) };
        self.found.fact(ChangeKind::Signature, self.level, path, a, b);
    }
}
