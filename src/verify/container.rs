//! Containers side by side: every field but the module, which is compared for itself, and what the platform changes.

use std::fmt::Debug;

use super::same::shown;
use super::{Difference, DifferenceKind, platforms_text};
use crate::bytecode::{Bytecode, ResourceData};
use crate::callbacks::GUARD_EFFECT;
use crate::container::{Effect, Exported, Platform, PyTree};

/// What a split must say otherwise than its original.
pub(super) struct Expected<'e> {
    /// Its one platform.
    pub(super) platform: Option<&'e Platform>,
    /// Not known where it is for several platforms, and so no split.
    pub(super) uses_global_constants: Option<bool>,
    /// Whether callbacks were lowered, so that stock JAX must be kept from loading it.
    pub(super) has_lowered: bool,
}

/// What differs at one level.
pub(super) fn differences(original: &Exported<'_>, split: &Exported<'_>, level: usize, expected: &Expected<'_>) -> Vec<Difference> {
    let mut fields = Fields { level, found: Vec::new() };
    let is_platform = |platform: &Platform| original.platforms.contains(platform) && split.platforms == std::slice::from_ref(platform);
    if !expected.platform.is_some_and(is_platform) {
        let one_of = if original.platforms.len() > 1 { "one of " } else { "" };
        let all = if split.platforms.len() > 1 { "all of " } else { "" };
        let (ours, theirs) = (platforms_text(&original.platforms), platforms_text(&split.platforms));
        fields.report("platforms", format!("{one_of}{ours}"), format!("{all}{theirs}"));
    }
    // Every field is named, so that one that is new is not forgotten.
    let Exported {
        serialization_version,
        function_name,
        in_tree,
        in_avals,
        out_tree,
        out_avals,
        nr_devices_short,
        in_shardings,
        out_shardings,
        platforms: _,
        ordered_effects,
        unordered_effects,
        disabled_checks,
        module: _,
        calling_convention_version,
        module_kept_var_idx,
        uses_global_constants: _,
        vjp: _,
        nr_devices,
        unique_avals,
        unique_abstract_meshes,
        unique_named_shardings,
        in_avals_idxs,
        out_avals_idxs,
        in_shardings_idxs,
        out_shardings_idxs,
        jax_version,
    } = original;
    fields.one("serialization_version", serialization_version, &split.serialization_version);
    fields.one("function_name", function_name, &split.function_name);
    fields.tree("in_tree", in_tree, &split.in_tree);
    fields.list("in_avals", in_avals, &split.in_avals);
    fields.tree("out_tree", out_tree, &split.out_tree);
    fields.list("out_avals", out_avals, &split.out_avals);
    fields.one("nr_devices_short", nr_devices_short, &split.nr_devices_short);
    fields.list("in_shardings", in_shardings, &split.in_shardings);
    fields.list("out_shardings", out_shardings, &split.out_shardings);
    // No effects are none, however the file says so.
    fields.list("ordered_effects", &own(ordered_effects), &own(&split.ordered_effects));
    fields.list("unordered_effects", &own(unordered_effects), &own(&split.unordered_effects));
    let is_guarded = split.unordered_effects.iter().flatten().any(is_guard);
    fields.one("unordered_effects has the guard of lowered callbacks", &expected.has_lowered, &is_guarded);
    fields.list("disabled_checks", disabled_checks, &split.disabled_checks);
    fields.one("calling_convention_version", calling_convention_version, &split.calling_convention_version);
    fields.list("module_kept_var_idx", module_kept_var_idx, &split.module_kept_var_idx);
    if let Some(expected) = expected.uses_global_constants {
        fields.one("uses_global_constants", &expected, &split.uses_global_constants);
    }
    fields.one("nr_devices", nr_devices, &split.nr_devices);
    fields.list("unique_avals", unique_avals, &split.unique_avals);
    fields.list("unique_abstract_meshes", unique_abstract_meshes, &split.unique_abstract_meshes);
    fields.list("unique_named_shardings", unique_named_shardings, &split.unique_named_shardings);
    fields.list("in_avals_idxs", in_avals_idxs, &split.in_avals_idxs);
    fields.list("out_avals_idxs", out_avals_idxs, &split.out_avals_idxs);
    fields.list("in_shardings_idxs", in_shardings_idxs, &split.in_shardings_idxs);
    fields.list("out_shardings_idxs", out_shardings_idxs, &split.out_shardings_idxs);
    fields.optional("jax_version", jax_version.as_ref(), split.jax_version.as_ref());
    fields.found
}

fn is_guard(effect: &Effect<'_>) -> bool {
    effect.type_name.as_deref() == Some(GUARD_EFFECT)
}

/// The effects but for the guard.
fn own<'e, 'a>(effects: &'e Option<Vec<Effect<'a>>>) -> Option<Vec<&'e Effect<'a>>> {
    Some(effects.iter().flatten().filter(|effect| !is_guard(effect)).collect())
}

/// What modules are encoded in, and what stands beside them.
pub(super) fn encodings(original: &Bytecode<'_>, split: &Bytecode<'_>, level: usize, found: &mut Vec<Difference>) {
    let mut fields = Fields { level, found: Vec::new() };
    fields.one("bytecode version of the module", &original.version, &split.version);
    let text = |producer: &[u8]| String::from_utf8_lossy(producer).into_owned();
    fields.one("producer of the module", &text(&original.producer), &text(&split.producer));
    let resources = |bytecode: &Bytecode<'_>| {
        let data = |data: &ResourceData<'_>| match data {
            ResourceData::Blob { alignment, bytes } => (*alignment, bytes.to_vec()),
            ResourceData::Bool(byte) => (0, vec![*byte]),
            ResourceData::String(text) => (0, text.to_vec()),
        };
        let own = bytecode.resources.dialect.iter().map(|(id, group)| (bytecode.tables.dialect(*id).to_vec(), group));
        let external = bytecode.resources.external.iter().map(|(key, group)| (key.to_vec(), group));
        let groups = external.chain(own);
        let items = groups.flat_map(|(group, items)| {
            items.iter().map(move |item| (group.clone(), item.key.to_vec(), item.kind, item.data.as_ref().map(data)))
        });
        items.collect::<Vec<_>>()
    };
    if (original.has_resources() || split.has_resources()) && resources(original) != resources(split) {
        fields.report("resources of the module", "other ones", "other ones");
    }
    fields.found.iter_mut().for_each(|difference| difference.kind = DifferenceKind::Module);
    found.append(&mut fields.found);
}

/// Fields of one level.
struct Fields {
    level: usize,
    found: Vec<Difference>,
}

impl Fields {
    fn report(&mut self, field: &str, original: impl Into<String>, split: impl Into<String>) {
        self.found.push(Difference {
            original: Some(shown(original.into())),
            split: Some(shown(split.into())),
            ..Difference::new(DifferenceKind::Container, self.level, field)
        });
    }

    fn one<T: PartialEq + Debug>(&mut self, field: &str, original: &T, split: &T) {
        if original != split {
            self.report(field, format!("{original:?}"), format!("{split:?}"));
        }
    }

    /// A list, item by item where both have as many.
    fn list<T: PartialEq + Debug>(&mut self, field: &str, original: &Option<Vec<T>>, split: &Option<Vec<T>>) {
        match (original, split) {
            (Some(ours), Some(theirs)) if ours.len() == theirs.len() => {
                for (place, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                    self.one(&format!("{field}[{place}]"), ours, theirs);
                }
            }
            (ours, theirs) => self.optional(field, ours.as_ref(), theirs.as_ref()),
        }
    }

    fn optional<T: PartialEq + Debug>(&mut self, field: &str, original: Option<&T>, split: Option<&T>) {
        let text = |value: Option<&T>| value.map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"));
        if original != split {
            self.report(field, text(original), text(split));
        }
    }

    /// A tree, node by node where both have the same shape.
    fn tree(&mut self, field: &str, original: &PyTree<'_>, split: &PyTree<'_>) {
        let mut work = vec![(field.to_owned(), original, split)];
        while let Some((path, ours, theirs)) = work.pop() {
            self.one(&format!("kind of {path}"), &ours.kind, &theirs.kind);
            self.list(&format!("names of {path}"), &ours.children_names, &theirs.children_names);
            self.optional(&format!("custom_name of {path}"), ours.custom_name.as_ref(), theirs.custom_name.as_ref());
            self.optional(&format!("custom_auxdata of {path}"), ours.custom_auxdata.as_ref(), theirs.custom_auxdata.as_ref());
            let counts = (ours.children.as_ref().map(Vec::len), theirs.children.as_ref().map(Vec::len));
            self.optional(&format!("number of children of {path}"), counts.0.as_ref(), counts.1.as_ref());
            if counts.0 == counts.1 {
                let children = ours.children().iter().zip(theirs.children()).enumerate();
                work.extend(children.rev().map(|(place, (ours, theirs))| (format!("{path}[{place}]"), ours, theirs)));
            }
        }
    }
}
