//! Other platforms for an export whose modules do the same on all of them: what `jaxprism retarget` does.
//!
//! A module is neutral if the new platforms have all that it calls, and if it does the same for each platform that it is for: resolved for each of them it is
//! the same module, byte for byte, but for places in the user's files.

mod passes;

use std::borrow::Cow;
use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde::Serialize;

use crate::bytecode::{AttributeId, Bytecode};
use crate::callbacks::counterpart;
use crate::check::TargetsAllowed;
use crate::container::{Exported, Platform};
use crate::emit::OutputOptions;
use crate::error::{Error, Result};
use crate::inspect::{Binding, BindingKind, Question, Texts, bindings_of_level, cases_of_level};
use crate::passes::{Options, find, split_pipeline};
use crate::pieces::Pieces;
use crate::source::{in_level, read_module};
use crate::split::{Output, rewrite};
use crate::threads::in_parallel;

/// What [`retarget`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RetargetOptions {
    /// The platforms that the output is to be for, in the order of their numbers.
    pub platforms: Vec<Platform>,
    /// Custom calls that the new platforms have, though jaxprism does not know it.
    pub targets_allowed: TargetsAllowed,
    /// Custom calls of `cuda` become those of `rocm` where these are the same in all but name, and the other way round.
    pub map_targets: bool,
    /// What the output is to be besides.
    pub output: OutputOptions,
}

impl RetargetOptions {
    /// Asks for these platforms.
    pub fn platforms(mut self, platforms: impl IntoIterator<Item = Platform>) -> Self {
        self.platforms = platforms.into_iter().collect();
        self
    }

    /// Takes these custom calls for ones that the new platforms have.
    pub fn targets_allowed(mut self, targets: TargetsAllowed) -> Self {
        self.targets_allowed = targets;
        self
    }

    /// Asks for the other GPU platform's names of custom calls.
    pub fn map_targets(mut self, map_targets: bool) -> Self {
        self.map_targets = map_targets;
        self
    }

    /// Asks for this of the output.
    pub fn output(mut self, output: OutputOptions) -> Self {
        self.output = output;
        self
    }
}

/// An export for other platforms, or what is in the way.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Retarget<'a> {
    /// The platforms of the input.
    pub from: Vec<String>,
    /// The platforms that were asked for.
    pub platforms: Vec<String>,
    /// What binds the input to its platforms: by level, custom calls before branches, and in textual order, `main` first.
    pub bindings: Vec<Binding>,
    /// Targets of custom calls that were renamed, with their new names.
    pub targets_mapped: IndexMap<String, String>,
    /// The export; `None` if anything binds.
    #[serde(skip)]
    pub output: Option<Output<'a>>,
}

impl<'a> Retarget<'a> {
    /// The export.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if anything binds, with the first few things that do.
    pub fn into_output(self) -> Result<Output<'a>> {
        const SHOWN: usize = 10;
        let hint = self.hint();
        self.output.ok_or_else(|| {
            let mut message = format!("the export is bound to {}", self.from.join(", "));
            self.bindings.iter().take(SHOWN).for_each(|binding| message.push_str(&format!("\n  {binding}")));
            if self.bindings.len() > SHOWN {
                message.push_str(&format!("\n  and {} more", self.bindings.len() - SHOWN));
            }
            let error = Error::refused(message);
            if let Some(hint) = hint { error.with_hint(hint) } else { error }
        })
    }

    /// What may help against what binds.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let is_branch = |binding: &Binding| matches!(binding.kind, BindingKind::PlatformCase | BindingKind::PlatformIndex);
        let is_for_several = self.from.len() > 1 && self.bindings.iter().any(is_branch);
        is_for_several.then_some("`split` with `-p` takes the branches of one platform, and what it writes can be retargeted")
    }
}

/// Makes an export for other platforms of one that does the same on every platform.
///
/// What cannot be shown to be neutral is not rewritten: then [`Retarget::bindings`] says what is in the way, and there is no output.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format), [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): as for [`split`](crate::split()).
/// - [`ErrorKind::Refused`](crate::ErrorKind::Refused): no platforms were asked for, or one of them twice; or a module cannot be followed.
pub fn retarget<'a>(input: &'a [u8], options: &RetargetOptions) -> Result<Retarget<'a>> {
    check_platforms(&options.platforms)?;
    let mut exported = options.output.levels(Exported::read(input)?);
    let names = |platforms: &[Platform]| platforms.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut retarget = Retarget {
        from: names(&exported.platforms),
        platforms: names(&options.platforms),
        bindings: Vec::new(),
        targets_mapped: IndexMap::new(),
        output: None,
    };
    let numbered: Vec<_> = exported.levels().enumerate().collect();
    // On threads of their own, whose stacks are deep enough.
    let levels = in_parallel(numbered, |(number, exported)| {
        level(number, exported, input, options).map_err(|error| error.context(in_level(number, "cannot follow the module")))
    })?;
    let mut modules = Vec::new();
    for level in levels {
        let level = level?;
        retarget.bindings.extend(level.bindings);
        retarget.targets_mapped.extend(level.mapped);
        modules.extend(level.module);
    }
    if !retarget.bindings.is_empty() {
        return Ok(retarget);
    }
    let mut modules = modules.into_iter();
    exported.for_each_level_mut(|_, exported| {
        let module = modules.next().ok_or_else(|| Error::bug("a level without a module"))?;
        exported.platforms.clone_from(&options.platforms);
        exported.uses_global_constants = module.uses_global_constants;
        options.output.update(exported);
        exported.module = module.bytes;
        Ok(())
    })?;
    retarget.output = Some(Output::new(exported)?);
    Ok(retarget)
}

/// Refuses none at all, and one that is named twice.
pub(crate) fn check_platforms(platforms: &[Platform]) -> Result<()> {
    if platforms.is_empty() {
        return Err(Error::refused("there is no platform to retarget to"));
    }
    let mut seen = BTreeSet::new();
    match platforms.iter().find(|platform| !seen.insert(*platform)) {
        Some(twice) => Err(Error::refused(format!("the platform `{twice}` is named twice"))),
        None => Ok(()),
    }
}

/// What one level becomes, or what is in the way.
struct Level<'a> {
    bindings: Vec<Binding>,
    mapped: IndexMap<String, String>,
    module: Option<Module<'a>>,
}

struct Module<'a> {
    bytes: Pieces<'a>,
    uses_global_constants: bool,
}

fn level<'a>(number: usize, exported: &Exported<'a>, input: &'a [u8], options: &RetargetOptions) -> Result<Level<'a>> {
    let bytecode = read_module(exported, number, input)?;
    bytecode.check_loadable()?;
    let (from, to) = (&exported.platforms[..], &options.platforms[..]);
    let added: Vec<_> = to.iter().filter(|platform| !from.contains(platform)).cloned().collect();
    let mapped = if options.map_targets { mapped(&bytecode, to) } else { IndexMap::new() };
    let is_allowed = |target: &str| mapped.contains_key(target) || options.targets_allowed.matches(target);
    let question = Question { added: &added, is_allowed: &is_allowed };
    let mut texts = Texts::new();
    let mut bindings = bindings_of_level(number, &bytecode, question, &mut texts)?;
    if from.len() == 1 && !added.is_empty() && chooses_platform(&bytecode) {
        bindings.push(Binding {
            level: number,
            kind: BindingKind::PlatformIndex,
            target: None,
            function: None,
            place: None,
            platforms: None,
            reason: "it calls an export for several platforms, which was told this one".to_owned(),
        });
    }
    if from == to && options.output.pass().is_none() {
        let module =
            Module { bytes: unchanged(&bytecode, exported, options, number)?, uses_global_constants: exported.uses_global_constants };
        return Ok(Level { bindings, mapped: IndexMap::new(), module: Some(module) });
    }
    let neutral = neutral(&bytecode, from)?;
    if neutral.is_none() {
        bindings.extend(cases_of_level(number, &bytecode, from, &mut texts)?);
    }
    let module = match neutral.filter(|_| bindings.is_empty()) {
        Some(module) => Some(rewrite_level(module, exported, &mapped, options, number)?),
        None => None,
    };
    Ok(Level { bindings, mapped, module })
}

/// Whether a module for one platform has a function that takes a platform index: a nested export, of which JAX names the argument so.
fn chooses_platform(bytecode: &Bytecode<'_>) -> bool {
    let tables = &bytecode.tables;
    (0..tables.attribute_count() as u32).any(|id| tables.string(AttributeId(id)) == Some(b"_platform_index"))
}

/// The targets of a module that have another name on the one platform that is wanted.
fn mapped(bytecode: &Bytecode<'_>, platforms: &[Platform]) -> IndexMap<String, String> {
    let [platform] = platforms else { return IndexMap::new() };
    let pair = |target: &str| Some((target.to_owned(), counterpart(target, platform)?.to_owned()));
    crate::inspect::targets_of(bytecode).filter_map(|target| pair(std::str::from_utf8(target).ok()?)).collect()
}

/// The module without its platform index; `None` where that is not the same module for each platform. Only places in the user's files may differ.
fn neutral<'b, 'a>(bytecode: &'b Bytecode<'a>, platforms: &[Platform]) -> Result<Option<Cow<'b, Bytecode<'a>>>> {
    if platforms.len() < 2 {
        return Ok(Some(Cow::Borrowed(bytecode)));
    }
    let without_locations: Vec<_> = find("strip-locations").into_iter().collect();
    let mut first = None;
    for index in 0..platforms.len() {
        let (resolved, _) = rewrite(bytecode, &split_pipeline(), &Options::for_platform(index as i64))?;
        let bytes = rewrite(&resolved, &without_locations, &Options::default())?.0.write()?;
        match &first {
            None => first = Some((bytes, resolved)),
            Some((same, _)) if *same == bytes => {}
            Some(_) => return Ok(None),
        }
    }
    Ok(first.map(|(_, resolved)| Cow::Owned(resolved)))
}

/// A module that had its platform index taken, with other targets, without shardings where that is asked for, and with an index again where there are
/// several platforms.
fn rewrite_level<'a>(
    module: Cow<'_, Bytecode<'a>>,
    exported: &Exported<'a>,
    mapped: &IndexMap<String, String>,
    options: &RetargetOptions,
    number: usize,
) -> Result<Module<'a>> {
    let (had_index, has_index) = (exported.platforms.len() > 1, options.platforms.len() > 1);
    let mut work = Vec::new();
    work.extend((!mapped.is_empty()).then_some(&passes::MAP_TARGETS));
    work.extend(options.output.pass());
    work.extend(has_index.then_some(&passes::ADD_PLATFORM_INDEX));
    let uses_global_constants = has_index || (exported.uses_global_constants && (!had_index || module.is_polymorphic()));
    let platform = options.platforms.first().cloned();
    let bytes = match (&work[..], had_index) {
        ([], false) => unchanged(&module, exported, options, number)?,
        ([], true) => options.output.write(&module, number)?,
        (work, _) => options.output.write(&rewrite(&module, work, &Options { platform, ..Options::default() })?.0, number)?,
    };
    Ok(Module { bytes, uses_global_constants })
}

/// The bytes of a module that no pass changed: those of the input, unless an older version is asked for.
fn unchanged<'a>(module: &Bytecode<'a>, exported: &Exported<'a>, options: &RetargetOptions, number: usize) -> Result<Pieces<'a>> {
    options.output.older(module, number)?.map_or_else(|| Ok(exported.module.clone()), |older| older.write())
}
