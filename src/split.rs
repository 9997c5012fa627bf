//! The road itself: container → bytecode → MLIR → passes → MLIR → bytecode → container, once for each platform.

pub(crate) mod callbacks;
mod functions;

use std::borrow::Cow;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use crate::bytecode::Bytecode;
use crate::callbacks::{CallbackOptions, Manifest, ManifestLevel, ManifestOutput, Policies, Policy, Table};
use crate::container::{Effect, Exported, Platform};
use crate::emit::OutputOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Program, Session, export, import, verify};
use crate::passes::{self, Changes, Observer, Options, Pass, PassRun, run_pipeline};
use crate::pieces::Pieces;
use crate::source::{in_level, read_module};
use crate::threads::{in_parallel, in_threads, processors};

pub use callbacks::CallbackReport;
use callbacks::Plan;

/// What [`split`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SplitOptions {
    /// The platforms to write; all of the export if empty.
    pub platforms: Vec<Platform>,
    /// What becomes of source locations.
    pub locations: Locations,
    /// What becomes of callbacks: by default they are lowered for the platform.
    pub callbacks: CallbackOptions,
    /// How many platforms are worked on at a time at most; as many as there are processors if `None`.
    pub threads: Option<NonZeroUsize>,
    /// What the outputs are to be besides.
    pub output: OutputOptions,
}

/// What [`strip`] is asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StripOptions {
    /// What becomes of callbacks: by default they are stripped.
    pub policies: Policies,
    /// What the output is to be besides.
    pub output: OutputOptions,
}

impl Default for StripOptions {
    fn default() -> Self {
        Self { policies: Policies::default().otherwise(Policy::Strip), output: OutputOptions::default() }
    }
}

impl StripOptions {
    /// Asks for this to become of callbacks.
    pub fn policies(mut self, policies: Policies) -> Self {
        self.policies = policies;
        self
    }

    /// Asks for this of the output.
    pub fn output(mut self, output: OutputOptions) -> Self {
        self.output = output;
        self
    }
}

/// What becomes of the places in the user's files that a module remembers for messages and profiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Locations {
    /// They stay.
    #[default]
    Kept,
    /// File names lose their directories; lines and scopes stay.
    Redacted,
    /// All of them go.
    Stripped,
}

impl Locations {
    /// The pass that does it.
    fn pass(self) -> Option<&'static Pass> {
        match self {
            Self::Kept => None,
            Self::Redacted => passes::find("redact-paths"),
            Self::Stripped => passes::find("strip-locations"),
        }
    }
}

impl SplitOptions {
    /// Asks for these platforms alone.
    pub fn platforms(mut self, platforms: impl IntoIterator<Item = Platform>) -> Self {
        self.platforms = platforms.into_iter().collect();
        self
    }

    /// Asks for this to become of callbacks.
    pub fn callbacks(mut self, callbacks: CallbackOptions) -> Self {
        self.callbacks = callbacks;
        self
    }

    /// Asks for this to become of source locations, at every level, in exports for one platform too.
    pub fn locations(mut self, locations: Locations) -> Self {
        self.locations = locations;
        self
    }

    /// Asks for so many platforms at a time at most, for callers that split several exports at once.
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The platforms that an export is split for, in its own order.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`]: the export lacks one of [`SplitOptions::platforms`].
    pub fn platforms_of(&self, exported: &Exported<'_>) -> Result<Vec<Platform>> {
        choose_platforms(exported, self)
    }
    /// Asks for this of each output.
    pub fn output(mut self, output: OutputOptions) -> Self {
        self.output = output;
        self
    }
}

/// The exports that one export was split into.
#[derive(Debug)]
pub struct Split<'a> {
    /// One export for each platform, in the order of the input's platforms.
    pub outputs: IndexMap<Platform, Output<'a>>,
    /// What was done.
    pub report: Report,
    /// The callbacks of the outputs, for hosts that bind them.
    pub manifest: Manifest,
}

/// An export without its callbacks.
#[derive(Debug)]
pub struct Stripped<'a> {
    /// The export.
    pub output: Output<'a>,
    /// What was done: in the function itself, then in its vector-Jacobian products.
    pub levels: Vec<LevelReport>,
}

/// An export for one platform, in pieces of which the large ones are slices of the input.
#[derive(Debug)]
pub struct Output<'a> {
    /// The export.
    pub exported: Exported<'a>,
    bytes: Pieces<'a>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(exported: Exported<'a>) -> Result<Self> {
        let bytes = exported.write()?;
        Ok(Self { exported, bytes })
    }

    /// The bytes of the file.
    pub fn pieces(&self) -> &Pieces<'a> {
        &self.bytes
    }

    /// How many bytes the file has.
    pub fn len(&self) -> u64 {
        self.bytes.len()
    }

    /// Whether the file has no bytes. It always has some.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        self.bytes.write_to(writer)
    }

    /// The file in one vector: a copy of everything, constants included.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }
}

/// What was done, for people and for tools.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Bytes of the input.
    pub input_bytes: u64,
    /// The platforms of the input.
    pub platforms: Vec<String>,
    /// One for each output, in order.
    pub outputs: Vec<OutputReport>,
}

/// What was done for one platform.
#[derive(Debug, Clone, Serialize)]
pub struct OutputReport {
    /// The platform.
    pub platform: String,
    /// Bytes of the output.
    pub bytes: u64,
    /// What the levels saved together.
    pub location_bytes_saved: Option<i64>,
    /// The function itself, then its vector-Jacobian products.
    pub levels: Vec<LevelReport>,
}

/// What was done in one module.
#[derive(Debug, Clone, Serialize)]
pub struct LevelReport {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// Operations in the input's module.
    pub operations_before: usize,
    /// Operations in the output's module.
    pub operations: usize,
    /// Functions in the output's module.
    pub functions: usize,
    /// By how much what became of the locations made the module smaller; negative where it made it larger. `None` where they were to stay.
    pub location_bytes_saved: Option<i64>,
    /// What became of its callbacks.
    pub callbacks: Vec<CallbackReport>,
    /// What the passes changed.
    pub changes: Changes,
}

/// What is done at the moment, of what [`split`] is asked for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Step<'s> {
    /// The platform; `None` while the input is read for all of them.
    pub platform: Option<&'s Platform>,
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// What is done: the name of a pass that is done, or what comes before and after the passes.
    pub what: &'static str,
}

/// Is told the steps of a split as they begin, from several threads.
pub type Watcher<'w> = &'w (dyn Fn(&Step<'_>) + Sync);

/// Splits an export for several platforms into one export for each.
///
/// `input` is what `jax.export.Exported.serialize()` wrote. Each output is an ordinary export for a single platform, which
/// `jax.export.deserialize` loads; its vector-Jacobian products are split as well. Large constants of the outputs are slices of `input`. An export for
/// one platform comes out as it is, but for its locations where [`SplitOptions::locations`] asks for that.
///
/// # Errors
/// - [`ErrorKind::Format`]: the input is malformed, or no export at all.
/// - [`ErrorKind::Unsupported`]: the input is newer, or nested deeper, than this version handles.
/// - [`ErrorKind::Refused`]: a platform that the export does not have, or a platform index that goes where it cannot
///   be followed.
///
/// # Examples
/// ```no_run
/// let bytes = std::fs::read("model.jax_exported")?;
/// let split = jaxprism::split(&bytes, &jaxprism::SplitOptions::default())?;
/// for (platform, output) in &split.outputs {
///     output.write_to(std::fs::File::create(format!("model.{platform}.jax_exported"))?)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split<'a>(input: &'a [u8], options: &SplitOptions) -> Result<Split<'a>> {
    split_watched(input, options, &|_| {})
}

/// As [`split`], with somebody who is told how far it is.
///
/// # Errors
/// Those of [`split`].
pub fn split_watched<'a>(input: &'a [u8], options: &SplitOptions, watcher: Watcher<'_>) -> Result<Split<'a>> {
    let exported = options.output.levels(Exported::read(input)?);
    let chosen = choose_platforms(&exported, options)?;
    let read = |(level, exported)| {
        watcher(&Step { platform: None, level, what: "reading" });
        Level::read(level, exported, input)
    };
    let levels: Vec<_> = exported.levels().enumerate().map(read).collect::<Result<_>>()?;
    check_rules(&levels, &exported.platforms, &options.callbacks, true)?;
    let outputs = in_threads(options.threads.unwrap_or_else(processors), chosen, |platform| {
        let (platforms, locations, callbacks, output) = (&exported.platforms, options.locations, &options.callbacks, &options.output);
        let output =
            rewrite_one(&exported, &levels, &Target { platform: Some(&platform), platforms, locations, callbacks, output, watcher });
        (platform.clone(), output.map_err(|error| error.context(format!("cannot split for `{platform}`"))))
    })?;
    let mut report = Report {
        input_bytes: input.len() as u64,
        platforms: exported.platforms.iter().map(ToString::to_string).collect(),
        outputs: Vec::new(),
    };
    let (mut split, mut manifest) = (IndexMap::new(), Vec::new());
    for (platform, output) in outputs {
        let (output, levels, callbacks) = output?;
        manifest.push(ManifestOutput { platform: platform.to_string(), levels: callbacks });
        let location_bytes_saved = levels.iter().map(|level| level.location_bytes_saved).sum();
        report.outputs.push(OutputReport { platform: platform.to_string(), bytes: output.len(), location_bytes_saved, levels });
        split.insert(platform, output);
    }
    let manifest = Manifest::new(report.platforms.clone(), manifest);
    Ok(Split { outputs: split, report, manifest })
}

/// Takes the callbacks out of an export, for all its platforms at once: by default every callback is stripped. Rules may stub or keep some.
///
/// # Errors
/// - [`ErrorKind::Format`], [`ErrorKind::Unsupported`]: as for [`split`].
/// - [`ErrorKind::Refused`]: a callback whose results are used is to be stripped, a policy that needs a platform, or a rule that matches nothing.
pub fn strip<'a>(input: &'a [u8], options: &StripOptions) -> Result<Stripped<'a>> {
    let exported = options.output.levels(Exported::read(input)?);
    let policies = &options.policies;
    let levels: Vec<_> =
        exported.levels().enumerate().map(|(level, exported)| Level::read(level, exported, input)).collect::<Result<_>>()?;
    let callbacks = CallbackOptions::new(policies.clone(), Table::default());
    callbacks::check_for_strip(policies)?;
    check_rules(&levels, &exported.platforms, &callbacks, false)?;
    let (platforms, output) = (&exported.platforms, &options.output);
    let target = Target { platform: None, platforms, locations: Locations::Kept, callbacks: &callbacks, output, watcher: &|_| {} };
    // On a thread of its own, whose stack is deep enough.
    let rewritten = in_parallel(vec![()], |()| rewrite_one(&exported, &levels, &target))?.pop();
    let (output, levels, _) = rewritten.ok_or_else(|| Error::bug("nothing was rewritten"))??;
    Ok(Stripped { output, levels })
}

/// Refuses rules for callbacks that no callback matches.
fn check_rules(levels: &[Level<'_>], platforms: &[Platform], callbacks: &CallbackOptions, has_platform: bool) -> Result<()> {
    if callbacks.policies.rules.is_empty() {
        return Ok(());
    }
    let names = levels.iter().map(|level| callbacks::names(&level.bytecode, has_platform)).collect::<Result<Vec<_>>>()?.concat();
    let checked = callbacks.policies.chooser(platforms, &callbacks.table).check_rules(names.iter().map(String::as_str));
    let are_lowered = names.is_empty() && levels.iter().any(|level| callbacks::holds_lowered(&level.bytecode));
    checked.map_err(|error| {
        if are_lowered {
            error.with_hint("its callbacks are lowered already; `opt --pass unlower-callbacks` makes placeholders of them")
        } else {
            error
        }
    })
}

/// The platforms that were asked for, in the export's order.
fn choose_platforms(exported: &Exported<'_>, options: &SplitOptions) -> Result<Vec<Platform>> {
    let available = &exported.platforms;
    if available.is_empty() {
        return Err(Error::format("the export has no platforms"));
    }
    if let Some(unknown) = options.platforms.iter().find(|platform| !available.contains(platform)) {
        let list = available.iter().map(|platform| format!("`{platform}`")).collect::<Vec<_>>().join(", ");
        return Err(Error::refused(format!("the export has no platform `{unknown}`")).with_hint(format!("it has {list}")));
    }
    let is_chosen = |platform: &&Platform| options.platforms.is_empty() || options.platforms.contains(platform);
    // JAX lets a platform be named twice, and then takes the first.
    let chosen: IndexSet<Platform> = available.iter().filter(is_chosen).cloned().collect();
    Ok(chosen.into_iter().collect())
}

/// One module of the input, decoded once for all platforms.
struct Level<'a> {
    level: usize,
    platforms: Vec<Platform>,
    uses_global_constants: bool,
    bytes: &'a [u8],
    bytecode: Bytecode<'a>,
}

impl<'a> Level<'a> {
    fn read(level: usize, exported: &Exported<'a>, input: &'a [u8]) -> Result<Self> {
        let bytes = exported.module.as_borrowed().ok_or_else(|| Error::bug("a module that was read is one slice"))?;
        let bytecode = read_module(exported, level, input)?;
        bytecode.check_loadable().map_err(|error| error.context(in_level(level, "nobody can load the module")))?;
        let (platforms, uses_global_constants) = (exported.platforms.clone(), exported.uses_global_constants);
        Ok(Self { level, platforms, uses_global_constants, bytes, bytecode })
    }
}

/// What one output is to be.
struct Target<'o> {
    /// The platform; `None` to leave platforms as they are.
    platform: Option<&'o Platform>,
    /// The platforms of the input.
    platforms: &'o [Platform],
    locations: Locations,
    callbacks: &'o CallbackOptions,
    output: &'o OutputOptions,
    watcher: Watcher<'o>,
}

impl Target<'_> {
    fn tell(&self, level: usize, what: &'static str) {
        (self.watcher)(&Step { platform: self.platform, level, what });
    }
}

/// Rewrites every level and puts the export together.
fn rewrite_one<'a>(
    exported: &Exported<'a>,
    levels: &[Level<'a>],
    target: &Target<'_>,
) -> Result<(Output<'a>, Vec<LevelReport>, Vec<ManifestLevel>)> {
    let (mut reports, mut manifest, mut modules) = (Vec::new(), Vec::new(), Vec::new());
    for (level, exported) in levels.iter().zip(exported.levels()) {
        let context =
            |what: &'static str| move |error: Error| if level.level == 0 { error } else { error.context(in_level(level.level, what)) };
        let mut module = rewrite_level(level, exported, target).map_err(context("cannot rewrite the module"))?;
        let location_bytes_saved = target.locations.pass().map(|pass| module.rewrite_locations(pass)).transpose();
        let location_bytes_saved = location_bytes_saved.map_err(context("cannot rewrite the locations"))?;
        if let Some(pass) = target.output.pass() {
            module.run(pass).map_err(context("cannot rewrite the module"))?;
        }
        if let Some(older) = target.output.older(&module.bytecode, level.level).map_err(context("cannot rewrite the module"))? {
            module.bytes = older.write()?;
            module.bytecode = Cow::Owned(older);
        }
        reports.push(LevelReport {
            level: level.level,
            operations_before: level.bytecode.tree.operations.len(),
            operations: module.bytecode.tree.operations.len(),
            functions: module.bytecode.functions().count(),
            location_bytes_saved,
            callbacks: module.plan.report(),
            changes: module.changes,
        });
        modules.push(module);
    }
    let is_rewritten = modules.iter().any(|module| !module.plan.is_empty());
    let holds_lowered = is_rewritten && modules.iter().any(|module| callbacks::holds_lowered(&module.bytecode));
    let are_gone = is_rewritten && !modules.iter().any(|module| callbacks::are_left(&module.bytecode));
    let mut output = exported.clone();
    let mut modules = modules.into_iter();
    output.for_each_level_mut(|number, exported| {
        let module = modules.next().ok_or_else(|| Error::bug("a level without a module"))?;
        if let Some(platform) = target.platform {
            exported.platforms = vec![platform.clone()];
        }
        exported.uses_global_constants = module.uses_global_constants;
        if !module.plan.is_empty() {
            module.plan.update(exported);
        }
        // The exporter turns the check off at every level, whether it has callbacks or not.
        if are_gone || (!module.plan.is_empty() && !callbacks::are_left(&module.bytecode)) {
            callbacks::drop_check(exported);
        }
        target.output.update(exported);
        exported.module = module.bytes;
        manifest.push(module.plan.manifest(number));
        Ok(())
    })?;
    if is_rewritten {
        callbacks::guard(&mut output, holds_lowered)?;
    }
    Ok((Output::new(output)?, reports, manifest))
}

/// One module of an output.
struct Rewritten<'l, 'a> {
    bytecode: Cow<'l, Bytecode<'a>>,
    bytes: Pieces<'a>,
    /// Whether it still needs global constants: dimension variables, once the platform index is gone.
    uses_global_constants: bool,
    changes: Changes,
    plan: Plan,
}

/// Resolves the platform in one module, and then does what its callbacks need.
fn rewrite_level<'l, 'a>(level: &'l Level<'a>, exported: &Exported<'a>, target: &Target<'_>) -> Result<Rewritten<'l, 'a>> {
    let mut options = Options { callbacks: target.callbacks.clone(), platforms: target.platforms.to_vec(), ..Options::default() };
    let mut resolves = false;
    if let Some(platform) = target.platform {
        let index = level.platforms.iter().position(|known| known == platform);
        let index = index.ok_or_else(|| Error::format(format!("this level has no platform `{platform}`, the function itself has")))?;
        resolves = level.platforms.len() > 1;
        options.platform_index = Some(index as i64);
        options.platform = Some(platform.clone());
    }
    let unlowers = callbacks::unlowers(&level.bytecode, target.platform.is_some());
    let has_callbacks = unlowers || callbacks::has_placeholders(&level.bytecode);
    if !resolves && !has_callbacks {
        return Ok(Rewritten {
            bytecode: Cow::Borrowed(&level.bytecode),
            bytes: Pieces::borrowed(level.bytes),
            uses_global_constants: level.uses_global_constants,
            changes: Changes::default(),
            plan: Plan::default(),
        });
    }
    let ordered = exported.ordered_effects.as_deref().unwrap_or_default();
    target.tell(level.level, "to MLIR");
    let observer: Observer<'_> = &|pass, _| {
        target.tell(level.level, pass.name);
        Ok(())
    };
    let calls_functions = has_callbacks && !target.callbacks.policies.called().is_empty();
    let (bytecode, changes, mut plan) = if calls_functions {
        // What is called is linked in bytecode, once it is known which callbacks are left.
        let (resolved, mut changes) = in_mlir(&level.bytecode, Some(observer), |_, run| resolve(run, &options, (resolves, unlowers)))?;
        let with = functions::link(resolved, &options, exported)?;
        options.functions = with.functions;
        let (bytecode, (treated, mut plan)) =
            in_mlir(&with.bytecode, Some(observer), |program, run| treat(program, run, &mut options, ordered))?;
        plan.add_checks(with.disabled_checks);
        changes += treated;
        (bytecode, changes, plan)
    } else {
        let (bytecode, (changes, plan)) = in_mlir(&level.bytecode, Some(observer), |program, run| {
            let mut changes = resolve(run, &options, (resolves, unlowers))?;
            let (treated, plan) = if has_callbacks { treat(program, run, &mut options, ordered)? } else { Default::default() };
            changes += treated;
            Ok((changes, plan))
        })?;
        (bytecode, changes, plan)
    };
    target.tell(level.level, "writing");
    plan.look_up(&bytecode)?;
    // A function that is called may be polymorphic where its caller is not.
    let uses_global_constants = if resolves || calls_functions {
        (level.uses_global_constants || calls_functions) && bytecode.is_polymorphic()
    } else {
        level.uses_global_constants
    };
    Ok(Rewritten { bytes: bytecode.write()?, bytecode: Cow::Owned(bytecode), uses_global_constants, changes, plan })
}

/// Runs the passes that resolve the platform, and those that make placeholders of all callbacks, where they are to run.
fn resolve(run: Run<'_>, options: &Options, (resolves, unlowers): (bool, bool)) -> Result<Changes> {
    let mut changes = Changes::default();
    if resolves {
        run(&passes::split_pipeline(), options)?.into_iter().for_each(|run| changes += run.changes);
    }
    if let Some(unlower) = passes::find("unlower-callbacks").filter(|_| unlowers) {
        run(&[unlower], options)?;
    }
    Ok(changes)
}

/// Chooses for the callbacks of a module, and runs the passes that this takes.
fn treat(program: &Program<'_, '_>, run: Run<'_>, options: &mut Options, ordered: &[Effect<'_>]) -> Result<(Changes, Plan)> {
    let plan = callbacks::plan(program, options, ordered)?;
    options.dropped_tokens = Some(plan.dropped_tokens.clone());
    let mut changes = Changes::default();
    run(&plan.passes, options)?.into_iter().for_each(|run| changes += run.changes);
    Ok((changes, plan))
}

impl Rewritten<'_, '_> {
    /// Runs a pass over the locations. Returns how many bytes that saves, beside the same module in the same encoding.
    fn rewrite_locations(&mut self, pass: &'static Pass) -> Result<i64> {
        let before = self.bytecode.write()?.len();
        Ok(if self.run(pass)? { before as i64 - self.bytes.len() as i64 } else { 0 })
    }

    /// Runs a pass. Returns whether it changed anything.
    fn run(&mut self, pass: &'static Pass) -> Result<bool> {
        let (bytecode, changes) = rewrite(&self.bytecode, &[pass], &Options::default())?;
        if changes.is_empty() {
            return Ok(false);
        }
        self.bytes = bytecode.write()?;
        self.bytecode = Cow::Owned(bytecode);
        self.changes += changes;
        Ok(true)
    }
}

/// Takes a module through MLIR and some passes.
pub fn rewrite<'a>(bytecode: &Bytecode<'a>, passes: &[&'static Pass], options: &Options) -> Result<(Bytecode<'a>, Changes)> {
    let (bytecode, runs) = rewrite_observed(bytecode, passes, options, None)?;
    let mut changes = Changes::default();
    runs.into_iter().for_each(|run| changes += run.changes);
    Ok((bytecode, changes))
}

/// As [`rewrite`], with somebody who looks at the program after each pass; returns what each pass did.
pub(crate) fn rewrite_observed<'a>(
    bytecode: &Bytecode<'a>,
    passes: &[&'static Pass],
    options: &Options,
    observer: Option<Observer<'_>>,
) -> Result<(Bytecode<'a>, Vec<PassRun>)> {
    in_mlir(bytecode, observer, |_, run| run(passes, options))
}

/// Runs passes over the module in MLIR, as often as it is called.
pub(crate) type Run<'r> = &'r mut dyn FnMut(&[&'static Pass], &Options) -> Result<Vec<PassRun>>;

/// Takes a module into MLIR, lets `work` look at it and run passes, and takes it out again.
pub(crate) fn in_mlir<'a, T>(
    bytecode: &Bytecode<'a>,
    observer: Option<Observer<'_>>,
    work: impl FnOnce(&Program<'_, 'a>, Run<'_>) -> Result<T>,
) -> Result<(Bytecode<'a>, T)> {
    let session = Session::new(bytecode);
    let program = import(&session, bytecode)?;
    verify(&program)?;
    let mut module = program.module.into_module().ok_or_else(|| Error::bug("the module is none to MLIR"))?;
    let mut run = |passes: &[&'static Pass], options: &Options| {
        run_pipeline(&session, &mut module, passes, options, observer).map_err(|error| blame(bytecode, error))
    };
    let value = work(&program, &mut run)?;
    Ok((export(&program, bytecode)?, value))
}

/// A failure of ours is the input's fault after all if MLIR's verifier refuses the module as it was read. That is looked at only now: it takes as long as
/// a pass.
fn blame(bytecode: &Bytecode<'_>, error: Error) -> Error {
    if error.kind() != ErrorKind::Bug {
        return error;
    }
    let session = Session::new(bytecode);
    let is_sound = import(&session, bytecode).is_ok_and(|program| program.module.verify());
    if is_sound { error } else { Error::format(format!("MLIR refuses the module: {}", session.take_diagnostics().join("; "))) }
}
