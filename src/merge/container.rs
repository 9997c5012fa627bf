//! The container of an export for several platforms.

use crate::callbacks::GUARD_EFFECT;
use crate::container::{AbstractMesh, DisabledCheck, Effect, Exported, NamedSharding, Platform, ResolvedSharding, Sharding, ShardingKind};
use crate::error::{Error, Result};
use crate::pieces::Pieces;

/// Puts one level of several exports of one signature together. `kept` are the arguments that the new module takes.
///
/// The fields of the signature are those of the export with the newest schema, which can say what all others say.
pub(super) fn joined<'a>(exports: &[&Exported<'a>], platforms: &[Platform], kept: Vec<u16>, module: Pieces<'a>) -> Result<Exported<'a>> {
    let newest = exports.iter().copied().reduce(|newest, other| {
        let is_newer = other.serialization_version > newest.serialization_version;
        if is_newer { other } else { newest }
    });
    let (Some(newest), Some(first)) = (newest, exports.first()) else { return Err(Error::bug("no exports")) };
    let mut joined = Exported { vjp: None, module, platforms: platforms.to_vec(), ..newest.clone() };
    joined.function_name = first.function_name.clone();
    joined.unordered_effects = union(exports.iter().map(|exported| &exported.unordered_effects), is_no_guard);
    joined.disabled_checks = union(exports.iter().map(|exported| &exported.disabled_checks), |_: &DisabledCheck<'_>| true);
    joined.uses_global_constants = true;
    adopt_shardings(&mut joined, newest, exports, &kept)?;
    drop_devices(&mut joined, exports);
    joined.module_kept_var_idx = Some(kept);
    Ok(joined)
}

/// Callbacks were lowered where an export lists the guard; here they are placeholders again.
fn is_no_guard(effect: &Effect<'_>) -> bool {
    effect.type_name.as_deref() != Some(GUARD_EFFECT)
}

/// All items of some lists, each once, in the order in which they come; absent where all lists are.
fn union<'e, T: Clone + PartialEq + 'e>(lists: impl Iterator<Item = &'e Option<Vec<T>>>, is_wanted: impl Fn(&T) -> bool) -> Option<Vec<T>> {
    let mut all: Option<Vec<T>> = None;
    for list in lists.flatten() {
        let all = all.get_or_insert_default();
        for item in list.iter().filter(|item| is_wanted(item)) {
            if !all.contains(item) {
                all.push(item.clone());
            }
        }
    }
    all
}

/// JAX lists no sharding for an argument that a module does not take, so it comes from an export whose module takes it.
fn adopt_shardings<'a>(joined: &mut Exported<'a>, newest: &Exported<'a>, exports: &[&Exported<'a>], kept: &[u16]) -> Result<()> {
    let takes = |exported: &Exported<'_>, number: u16| {
        exported.module_kept_var_idx.as_ref().is_some_and(|kept| kept.binary_search(&number).is_ok())
    };
    let shardings: Vec<_> = exports.iter().map(|exported| (*exported, exported.input_shardings())).collect();
    for number in kept.iter().copied().filter(|number| !takes(newest, *number)) {
        let place = usize::from(number);
        let taker = shardings.iter().find(|(exported, _)| takes(exported, number));
        let sharding = taker.and_then(|(exported, shardings)| Some((exported, shardings.get(place)?)));
        if let Some((from, sharding)) = sharding.filter(|(_, sharding)| **sharding != ResolvedSharding::Unspecified) {
            set_sharding(joined, place, from, sharding)?;
        }
    }
    Ok(())
}

fn set_sharding<'a>(joined: &mut Exported<'a>, place: usize, from: &Exported<'a>, sharding: &ResolvedSharding<'_, 'a>) -> Result<()> {
    let impossible = || Error::refused("an argument that some platforms do not take has a sharding that the newest file has no place for");
    let has_indices = joined.in_shardings_idxs.as_ref().is_some_and(|indices| !indices.is_empty());
    if !has_indices {
        let slot = joined.in_shardings.as_mut().and_then(|shardings| shardings.get_mut(place)).ok_or_else(impossible)?;
        *slot = match sharding {
            ResolvedSharding::Unspecified => return Ok(()),
            ResolvedSharding::Hlo(bytes) => {
                Sharding { kind: ShardingKind::Hlo, hlo_sharding_proto: Some(bytes.to_vec().into()), named_sharding: None }
            }
            ResolvedSharding::Named(named) => {
                let spelled_out = NamedSharding { mesh: from.mesh_of(named).cloned(), ..(*named).clone() };
                Sharding { kind: ShardingKind::Named, hlo_sharding_proto: None, named_sharding: Some(spelled_out) }
            }
        };
        return Ok(());
    }
    let ResolvedSharding::Named(named) = sharding else { return Err(impossible()) };
    let mesh = from.mesh_of(named).ok_or_else(impossible)?;
    let mesh = position(joined.unique_abstract_meshes.get_or_insert_default(), mesh.clone());
    let named = NamedSharding { mesh: None, abstract_mesh_idx: mesh, ..(*named).clone() };
    let index = position(joined.unique_named_shardings.get_or_insert_default(), named) + 1;
    *joined.in_shardings_idxs.as_mut().and_then(|indices| indices.get_mut(place)).ok_or_else(impossible)? = index;
    Ok(())
}

/// The place of an item, at the end of the list where there is none.
fn position<T: PartialEq>(list: &mut Vec<T>, item: T) -> u32 {
    let found = list.iter().position(|known| *known == item);
    let place = found.unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    });
    place as u32
}

/// Meshes are of one kind of device, or of none in particular.
fn drop_devices(joined: &mut Exported<'_>, exports: &[&Exported<'_>]) {
    let mut all = exports.iter().map(|exported| {
        let mut devices: Vec<_> = meshes(exported).filter_map(|mesh| mesh.abstract_device.as_ref()).collect();
        devices.dedup();
        devices
    });
    if all.next().is_none_or(|first| all.all(|devices| devices == first)) {
        return;
    }
    let spelled_out =
        joined.in_shardings.iter_mut().chain(&mut joined.out_shardings).flatten().filter_map(|sharding| sharding.named_sharding.as_mut());
    let named = spelled_out.chain(joined.unique_named_shardings.iter_mut().flatten()).filter_map(|named| named.mesh.as_mut());
    named.chain(joined.unique_abstract_meshes.iter_mut().flatten()).for_each(|mesh| mesh.abstract_device = None);
}

fn meshes<'e, 'a>(exported: &'e Exported<'a>) -> impl Iterator<Item = &'e AbstractMesh<'a>> {
    let spelled_out =
        exported.in_shardings.iter().chain(&exported.out_shardings).flatten().filter_map(|sharding| sharding.named_sharding.as_ref());
    let named = spelled_out.chain(exported.unique_named_shardings.iter().flatten()).filter_map(|named| named.mesh.as_ref());
    named.chain(exported.unique_abstract_meshes.iter().flatten())
}
