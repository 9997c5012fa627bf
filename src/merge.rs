//! Exports for one platform each become one export for all of them: what JAX writes where it can export a function for several platforms at once.
//!
//! Each module keeps its code. The new `main` chooses by the platform index what was `main` before; functions and meshes that are equal stand once, and so
//! do constants. [`split`](crate::split()) is the inverse, up to names.

mod container;
mod main;
mod signature;

use indexmap::IndexSet;
use serde::Serialize;

use crate::bytecode::Bytecode;
use crate::container::{Exported, Platform};
use crate::emit::OutputOptions;
use crate::error::{Error, Result};
use crate::ir::verify;
use crate::link::{Linked, Linker};
use crate::passes::{self, Options, POLYMORPHISM, declare_polymorphism};
use crate::source::{in_level, read_module};
use crate::split::{Output, callbacks, in_mlir, rewrite};
use crate::threads::on_deep_stack;
use main::Paths;
use signature::{Difference, Kind};

/// What to do about gradients of arguments of which one export uses more than another.
const UNUSED: &str = "the gradient of an argument that a platform does not use has no sharding there: use it on every platform, or leave out the gradients \
                      (`--no-vjp`) or the shardings (`--strip-sdy`)";

/// One export that is to be merged.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MergeInput<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// The platform that it must be for; whichever it is for if `None`.
    pub platform: Option<Platform>,
}

impl<'a> MergeInput<'a> {
    /// An export for whichever platform it is for.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, platform: None }
    }

    /// Refuses an export for another platform.
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }
}

/// What [`merge`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MergeOptions {
    /// What the output is to be besides. Where shardings are to be taken out, they need not agree.
    pub output: OutputOptions,
}

impl MergeOptions {
    /// Asks for this of the output.
    pub fn output(mut self, output: OutputOptions) -> Self {
        self.output = output;
        self
    }
}

/// An export for several platforms.
#[derive(Debug)]
pub struct Merged<'a> {
    /// The export.
    pub output: Output<'a>,
    /// What was done.
    pub report: MergeReport,
}

/// What was done, for people and for tools.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MergeReport {
    /// The platforms, in order.
    pub platforms: Vec<String>,
    /// Bytes of the inputs, in order.
    pub input_bytes: Vec<u64>,
    /// Bytes of the output.
    pub bytes: u64,
    /// The function itself, then its vector-Jacobian products.
    pub levels: Vec<MergedLevel>,
}

/// What was done at one level.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MergedLevel {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// Operations in the module.
    pub operations: usize,
    /// Functions in the module.
    pub functions: usize,
    /// How many functions of the later exports are those of an earlier one.
    pub functions_shared: usize,
    /// The paths of arguments whose memory was given away on some platforms, and now is on none.
    pub undonated: Vec<String>,
    /// Whether lowered callbacks became placeholders again.
    pub unlowered: bool,
}

/// One platform of a module.
struct Branch {
    platform: Platform,
    linked: Linked,
    /// The arguments of the export that its module takes.
    kept: Vec<u16>,
}

/// Merges exports for one platform each, of one function, into one for all these platforms, in the order of `inputs`.
///
/// Signatures must agree: trees, shapes and types, shardings, ordered effects, devices, gradient levels. Unordered effects and safety checks that are turned
/// off are those of all; so are the arguments that the module takes. An argument gives its memory away only if it does so on every platform. Large constants
/// of the output are slices of the inputs. Callbacks that were lowered become placeholders again: their numbers are those of one platform.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): an input is malformed, or no export at all.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): an input is newer than this version handles, or holds what cannot be linked.
/// - [`ErrorKind::Refused`](crate::ErrorKind::Refused): fewer than two inputs, two for one platform, one for several platforms or for another one than is asked for, or signatures
///   that differ; the error names the first difference.
///
/// # Examples
/// ```no_run
/// let (cpu, cuda) = (std::fs::read("cpu.jax_exported")?, std::fs::read("cuda.jax_exported")?);
/// let inputs = [jaxprism::MergeInput::new(&cpu), jaxprism::MergeInput::new(&cuda)];
/// let merged = jaxprism::merge(&inputs, &jaxprism::MergeOptions::default())?;
/// merged.output.write_to(std::fs::File::create("model.jax_exported")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge<'a>(inputs: &[MergeInput<'a>], options: &MergeOptions) -> Result<Merged<'a>> {
    if inputs.len() < 2 {
        return Err(Error::refused("merging takes two exports or more"));
    }
    on_deep_stack(|| merge_all(inputs, &options.output))
}

fn merge_all<'a>(inputs: &[MergeInput<'a>], options: &OutputOptions) -> Result<Merged<'a>> {
    let mut exports = Vec::with_capacity(inputs.len());
    let mut platforms = IndexSet::new();
    for (number, input) in inputs.iter().enumerate() {
        let exported = read(input, options).map_err(|error| match &input.platform {
            Some(platform) => error.context(format!("cannot take the export for `{platform}`")),
            None => error.context(format!("cannot take export {}", number + 1)),
        })?;
        exports.push(exported);
    }
    for platform in exports.iter().flat_map(|exported| &exported.platforms) {
        if !platforms.insert(platform.clone()) {
            return Err(Error::refused(format!("two exports are for `{platform}`")));
        }
    }
    let platforms: Vec<Platform> = platforms.into_iter().collect();
    check_signatures(&exports, &platforms)?;
    let count = exports.iter().map(|exported| exported.levels().count()).min().unwrap_or_default();
    let (mut levels, mut joined) = (Vec::new(), Vec::new());
    for level in 0..count {
        let at_level: Vec<&Exported<'a>> = exports.iter().filter_map(|exported| exported.levels().nth(level)).collect();
        let merged = merge_level(level, &at_level, inputs, &platforms, options);
        let (exported, report) =
            merged.map_err(|error| if level == 0 { error } else { error.context(in_level(level, "cannot merge the modules")) })?;
        joined.push(exported);
        levels.push(report);
    }
    let whole = joined.into_iter().rev().fold(None, |vjp, exported| Some(Exported { vjp: vjp.map(Box::new), ..exported }));
    let output = Output::new(whole.ok_or_else(|| Error::bug("an export without a level"))?)?;
    let report = MergeReport {
        platforms: platforms.iter().map(ToString::to_string).collect(),
        input_bytes: inputs.iter().map(|input| input.bytes.len() as u64).collect(),
        bytes: output.len(),
        levels,
    };
    Ok(Merged { output, report })
}

/// Reads an export for one platform. What is asked of the output is done in every input: then they agree in it.
fn read<'a>(input: &MergeInput<'a>, options: &OutputOptions) -> Result<Exported<'a>> {
    let mut exported = options.levels(Exported::read(input.bytes)?);
    exported.for_each_level_mut(|_, exported| {
        options.update(exported);
        Ok(())
    })?;
    let list = |platforms: &[Platform]| platforms.iter().map(|platform| format!("`{platform}`")).collect::<Vec<_>>().join(", ");
    let [platform] = &exported.platforms[..] else {
        let error = Error::refused(format!("it is for {} platforms: {}", exported.platforms.len(), list(&exported.platforms)));
        return Err(error.with_hint("`jaxprism split` makes one export for each of them"));
    };
    if let Some(wanted) = input.platform.as_ref().filter(|wanted| *wanted != platform) {
        let error = Error::refused(format!("it is for `{platform}`, not for `{wanted}`"));
        return Err(error.with_hint("merging keeps the code of each export on its own platform"));
    }
    if let Some(level) = exported.levels().find(|level| level.platforms != exported.platforms) {
        let (one, other) = (list(&exported.platforms), list(&level.platforms));
        return Err(Error::format(format!("its levels are for different platforms: {one} and {other}")));
    }
    Ok(exported)
}

/// Compares all exports with the first one.
fn check_signatures(exports: &[Exported<'_>], platforms: &[Platform]) -> Result<()> {
    let Some((first, rest)) = exports.iter().zip(platforms).collect::<Vec<_>>().split_first().map(|(first, rest)| (*first, rest.to_vec()))
    else {
        return Ok(());
    };
    let differ = |level: usize, error: Error| error.context(in_level(level, "the exports are not of one signature"));
    for (exported, platform) in rest {
        for (level, (one, other)) in first.0.levels().zip(exported.levels()).enumerate() {
            if let Some(found) = signature::difference(one, other) {
                let is_used = first.0.module_kept_var_idx == exported.module_kept_var_idx;
                let hint = match found.kind {
                    Kind::CallingConvention => Some("export all of them with the same `jax_export_calling_convention_version`"),
                    // JAX lists no sharding for the cotangent of an argument that is not used.
                    Kind::Sharding if level > 0 && !is_used => Some(UNUSED),
                    _ => None,
                };
                let Difference { place, first: one, second: other, .. } = found;
                let error = Error::refused(format!("{place}: {one} on {}, {other} on {platform}", first.1));
                return Err(differ(level, if let Some(hint) = hint { error.with_hint(hint) } else { error }));
            }
        }
        let counts = (first.0.levels().count() - 1, exported.levels().count() - 1);
        if counts.0 != counts.1 {
            let error = Error::refused(format!("gradient levels: {} on {}, {} on {platform}", counts.0, first.1, counts.1));
            return Err(differ(0, error.with_hint("export all of them with the same `vjp_order`")));
        }
    }
    Ok(())
}

/// Merges the modules and the containers of one level.
fn merge_level<'a>(
    level: usize,
    exports: &[&Exported<'a>],
    inputs: &[MergeInput<'a>],
    platforms: &[Platform],
    options: &OutputOptions,
) -> Result<(Exported<'a>, MergedLevel)> {
    let mut linker = Linker::new();
    let (mut branches, mut unlowered) = (Vec::new(), false);
    for ((exported, input), platform) in exports.iter().zip(inputs).zip(platforms) {
        let context = |error: Error| error.context(format!("cannot merge the module for `{platform}`"));
        let module = read_level(exported, level, input.bytes, options).map_err(context)?;
        unlowered |= module.1;
        let name = format!("main_{}", platform.as_str().replace(|character: char| !character.is_ascii_alphanumeric(), "_"));
        let linked = linker.link(&module.0, &name).map_err(context)?;
        let kept = kept(exported).map_err(context)?;
        branches.push(Branch { platform: platform.clone(), linked, kept });
    }
    let Some((first, newest)) = exports.first().zip(branches.first()) else { return Err(Error::bug("no exports")) };
    check_attributes(&branches)?;
    let linked = linker.finish(&newest.linked.attributes)?;
    let tokens = first.ordered_effects.as_ref().map_or(0, Vec::len);
    let paths = Paths { inputs: first.input_paths(), results: first.output_paths(), tokens };
    let (module, (kept, undonated)) = in_mlir(&linked, None, |program, _| {
        let made = main::build(program, &branches, &paths)?;
        declare_polymorphism(program)?;
        program.session.note_change();
        verify(program).map_err(|error| Error::bug(error.to_string()))?;
        if !program.module.verify() {
            return Err(Error::format(format!("MLIR refuses the module: {}", program.session.take_diagnostics().join("; "))));
        }
        Ok(made)
    })?;
    let report = MergedLevel {
        level,
        operations: module.tree.operations.len(),
        functions: module.functions().count(),
        functions_shared: branches.iter().map(|branch| branch.linked.shared).sum(),
        undonated,
        unlowered,
    };
    Ok((container::joined(exports, platforms, kept, options.write(&module, level)?)?, report))
}

/// The module of a level, with placeholders for all callbacks and what is asked of the output, and whether some callbacks were lowered.
fn read_level<'a>(exported: &Exported<'a>, level: usize, input: &'a [u8], options: &OutputOptions) -> Result<(Bytecode<'a>, bool)> {
    let module = read_module(exported, level, input)?;
    module.check_loadable().map_err(|error| error.context("nobody can load the module"))?;
    let unlower = passes::find("unlower-callbacks").filter(|_| callbacks::holds_lowered(&module));
    let work: Vec<_> = unlower.into_iter().chain(options.pass()).collect();
    let module = if work.is_empty() { module } else { rewrite(&module, &work, &Options::default())?.0 };
    Ok((module, unlower.is_some()))
}

/// The arguments that a module takes, in ascending order.
pub(crate) fn kept(exported: &Exported<'_>) -> Result<Vec<u16>> {
    let kept = exported.module_kept_var_idx.clone().unwrap_or_default();
    let count = exported.input_avals().len();
    let ascends = kept.is_sorted_by(|one, next| one < next);
    if !ascends || kept.last().is_some_and(|last| usize::from(*last) >= count) {
        return Err(Error::format(format!("`module_kept_var_idx` does not ascend below {count}")));
    }
    Ok(kept)
}

/// Refuses modules that say different things of themselves.
fn check_attributes(branches: &[Branch]) -> Result<()> {
    let Some((first, rest)) = branches.split_first() else { return Ok(()) };
    for branch in rest {
        let (one, other) = (&first.linked.attributes, &branch.linked.attributes);
        let counts = |item: &&(Vec<u8>, _)| item.0 != POLYMORPHISM.as_bytes();
        let only = one
            .iter()
            .filter(counts)
            .find(|item| !other.contains(item))
            .or_else(|| other.iter().filter(counts).find(|item| !one.contains(item)));
        if let Some((name, _)) = only {
            let (name, platforms) = (String::from_utf8_lossy(name), (&first.platform, &branch.platform));
            return Err(Error::refused(format!(
                "the modules for `{}` and `{}` do not agree in their attribute `{name}`",
                platforms.0, platforms.1
            )));
        }
    }
    Ok(())
}
