//! Chosen passes over a file of any kind: what `jaxprism opt` does.

use std::cell::RefCell;

use crate::bytecode::Bytecode;
use crate::callbacks::CallbackOptions;
use crate::container::{Exported, Platform};
use crate::emit::{OutputOptions, STRIP_SDY, drop_shardings};
use crate::error::{Error, Result};
use crate::ir::export;
use crate::ir::text::{TextOptions, check_complete, write_text};
use crate::passes::{Options, Pass, PassRun};
use crate::pieces::Pieces;
use crate::source::{Source, in_level};
use crate::split::{Output, callbacks, rewrite_observed};
use crate::threads::in_parallel;

/// The pass that needs to know a platform.
const RESOLVE: &str = "resolve-platform";

/// What [`opt`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OptOptions {
    /// The passes to run, in order. None: the module goes into MLIR and back.
    pub passes: Vec<&'static Pass>,
    /// The platform to resolve.
    pub platform: Option<Platform>,
    /// The platforms that a module alone is for. An export says so itself.
    pub platforms: Vec<Platform>,
    /// What becomes of callbacks, in the passes that treat them.
    pub callbacks: CallbackOptions,
    /// The one module to work on; all of an export if `None`.
    pub level: Option<usize>,
    /// What the output is to be besides.
    pub output: OutputOptions,
    /// After which passes to keep the module's text.
    pub print_after: PrintAfter,
    /// How that text is written.
    pub text: TextOptions,
}

/// After which passes text is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PrintAfter {
    /// After none.
    #[default]
    Never,
    /// After the passes of these names.
    Passes(Vec<String>),
    /// After each.
    All,
}

/// What passes made of a file.
#[derive(Debug)]
pub struct Opt<'a> {
    /// The modules, by level.
    pub modules: Vec<OptModule<'a>>,
    exported: Option<Exported<'a>>,
    is_resolved: bool,
}

/// One module after its passes.
#[derive(Debug)]
pub struct OptModule<'a> {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// The module.
    pub bytecode: Bytecode<'a>,
    /// What each pass did.
    pub runs: Vec<PassRun>,
    /// The module's text after the passes that were asked for, with their names.
    pub texts: Vec<(&'static str, Vec<u8>)>,
}

/// Runs passes over the modules of a file.
///
/// # Errors
/// - Those of [`Source::read`] and of the passes.
/// - [`crate::ErrorKind::Refused`]: a platform that the file does not have, or none to resolve.
pub fn opt<'a>(input: &'a [u8], file: &str, options: &OptOptions) -> Result<Opt<'a>> {
    let source = match Source::read(input, file)? {
        Source::Export(exported) => Source::Export(Box::new(options.output.levels(*exported))),
        module => module,
    };
    let levels: Vec<usize> = match options.level {
        Some(level) => vec![level],
        None => (0..source.level_count()).collect(),
    };
    let modules = in_parallel(levels, |level| {
        let module = optimize(&source, level, input, options);
        module.map_err(|error| if level == 0 { error } else { error.context(in_level(level, "cannot run the passes over the module")) })
    })?;
    let modules = modules.into_iter().collect::<Result<_>>()?;
    let exported = match source {
        Source::Export(exported) => Some(updated(*exported, options)),
        Source::Module(_) => None,
    };
    Ok(Opt { modules, exported, is_resolved: resolves(options) })
}

/// Makes placeholders again of the callbacks that were lowered, at every level: the inverse of lowering. What comes out loads in stock JAX.
///
/// # Errors
/// - [`crate::ErrorKind::Format`], [`crate::ErrorKind::Unsupported`]: as for [`split`](crate::split()).
pub fn unlower(input: &[u8]) -> Result<Output<'_>> {
    let passes = crate::passes::find("unlower-callbacks").into_iter().collect();
    opt(input, "", &OptOptions { passes, ..OptOptions::default() })?.to_export()
}

/// The container with the platform that was resolved.
fn updated<'a>(mut exported: Exported<'a>, options: &OptOptions) -> Exported<'a> {
    if let Some(platform) = options.platform.as_ref().filter(|_| resolves(options)) {
        // The levels differ in nothing here, so there is nothing that fails.
        let _ = exported.for_each_level_mut(|_, exported| {
            exported.platforms = vec![platform.clone()];
            Ok(())
        });
    }
    exported
}

fn resolves(options: &OptOptions) -> bool {
    options.passes.iter().any(|pass| pass.name == RESOLVE)
}

fn optimize<'a>(source: &Source<'a>, level: usize, input: &'a [u8], options: &OptOptions) -> Result<OptModule<'a>> {
    let module = source.module(level, input)?;
    let platforms = match source {
        Source::Export(exported) => exported.levels().nth(level).map_or(&[][..], |exported| &exported.platforms),
        Source::Module(_) => &options.platforms,
    };
    let mut pass_options = if resolves(options) { Options::for_platform(platform_index(platforms, options)?) } else { Options::default() };
    pass_options.callbacks = options.callbacks.clone();
    pass_options.platforms = platforms.to_vec();
    pass_options.platform = options.platform.clone().or_else(|| match platforms {
        [only] => Some(only.clone()),
        _ => None,
    });
    let texts = RefCell::new(Vec::new());
    let like = Bytecode { version: module.version, producer: module.producer.clone().into_owned().into(), ..Bytecode::empty() };
    let observe = |pass: &'static Pass, program: &crate::ir::Program<'_, '_>| {
        let is_asked_for = match &options.print_after {
            PrintAfter::Never => false,
            PrintAfter::Passes(names) => names.iter().any(|name| name == pass.name),
            PrintAfter::All => true,
        };
        if is_asked_for {
            let mut text = Vec::new();
            let mut snapshot = export(program, &like)?;
            // Passes that went before changed what they are orders of.
            snapshot.tree.use_orders.clear();
            write_text(&snapshot, &options.text, &mut text)?;
            texts.borrow_mut().push((pass.name, text));
        }
        Ok(())
    };
    let (bytecode, runs) = rewrite_observed(&module, &options.passes, &pass_options, Some(&observe))?;
    let bytecode = options.output.older(&bytecode, level)?.unwrap_or(bytecode);
    Ok(OptModule { level, bytecode, runs, texts: texts.into_inner() })
}

/// The number of the platform to resolve.
fn platform_index(platforms: &[Platform], options: &OptOptions) -> Result<i64> {
    let list = platforms.iter().map(|platform| format!("`{platform}`")).collect::<Vec<_>>().join(", ");
    if platforms.len() < 2 {
        let what = if platforms.is_empty() { "the module's platforms are not known".to_owned() } else { format!("it is for {list} alone") };
        let error = Error::refused(format!("`{RESOLVE}` has no platform index to resolve: {what}"));
        return Err(error.with_hint("a module for several platforms outside an export needs `--platforms`, in the order of their numbers"));
    }
    let Some(platform) = &options.platform else {
        return Err(Error::refused(format!("`{RESOLVE}` needs a platform")).with_hint(format!("choose one of {list} with `--platform`")));
    };
    match platforms.iter().position(|known| known == platform) {
        Some(index) => Ok(index as i64),
        None => Err(Error::refused(format!("the module is not for the platform `{platform}`")).with_hint(format!("it is for {list}"))),
    }
}

impl<'a> OptModule<'a> {
    /// The module as bytecode.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`]: it holds what only passes see, or constants that were elided.
    pub fn write(&self) -> Result<Pieces<'a>> {
        check_complete(&self.bytecode)?;
        self.bytecode.write()
    }
}

impl<'a> Opt<'a> {
    /// The only module.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Refused`] if there are several.
    pub fn module(&self) -> Result<&OptModule<'a>> {
        match &self.modules[..] {
            [module] => Ok(module),
            many => {
                let error = Error::refused(format!("the export has {} modules, and what is to be written holds one", many.len()));
                Err(error.with_hint("choose one with `--level`"))
            }
        }
    }

    /// The export with its new modules.
    ///
    /// # Errors
    /// - [`crate::ErrorKind::Refused`]: the input was no export, not all levels were worked on, or a module cannot be written: it holds what only passes
    ///   see, or constants that were elided.
    pub fn to_export(self) -> Result<Output<'a>> {
        let Some(mut exported) = self.exported else {
            return Err(Error::refused("a module alone does not become an export").with_hint("write it as `.mlirbc` or `.mlir`"));
        };
        if self.modules.len() != exported.levels().count() {
            return Err(Error::refused("an export needs all its modules, and `--level` chose one"));
        }
        let is_stripped = self.modules.iter().flat_map(|module| &module.runs).any(|run| run.name == STRIP_SDY);
        if self.modules.iter().flat_map(|module| &module.runs).any(|run| run.changes.tokens_dropped > 0) {
            let error = Error::refused("`drop-tokens` changed what the module takes, and the export would say otherwise");
            return Err(
                error.with_hint("`jaxprism strip` and `jaxprism split` take tokens and effects away together; or write the module alone")
            );
        }
        let holds_lowered = self.modules.iter().any(|module| callbacks::holds_lowered(&module.bytecode));
        callbacks::guard(&mut exported, holds_lowered)?;
        let mut modules = self.modules.into_iter();
        exported.for_each_level_mut(|_, exported| {
            let module = modules.next().ok_or_else(|| Error::bug("a level without a module"))?;
            if self.is_resolved {
                exported.uses_global_constants &= module.bytecode.is_polymorphic();
            }
            if is_stripped {
                drop_shardings(exported);
            }
            exported.module = module.write()?;
            Ok(())
        })?;
        Output::new(exported)
    }
}
