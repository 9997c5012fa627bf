//! `jaxprism opt`: chosen passes over a module or an export.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::{Files, Names, quoted};
use crate::ir::text::write_text;
use crate::opt::{Opt, OptOptions, PrintAfter};
use crate::passes::{self, PASSES, Pass, PassRun};
use crate::threads::on_deep_stack;
use crate::{Emit, Output, Platform};
use clap::Args;

use super::callback_options::{CallbackOpts, parse};
use super::emit::OutputOpts;
use super::io::{self, Input, is_dash};
use super::place::refuse_platform;
use super::table::Table;
use super::text::TextOpts;
use super::{refuse_arguments, suggested};

const EXAMPLES: &str = "\
Examples:
  jaxprism opt model.jax_exported                           into MLIR and back, as text
  jaxprism opt model.jax_exported --pass strip-locations -o small.jax_exported
  jaxprism opt model.jax_exported --platform cuda --pass resolve-platform --pass fold-cases --print-ir-after all
  jaxprism opt case.mlir --platforms cpu,cuda --pass resolve-platform=cuda --pass fold-cases
  jaxprism opt case.mlir -o case.mlirbc                     text to bytecode
  jaxprism opt --list-passes";

/// Run chosen passes over an export or a module
///
/// Reads exports, modules in MLIR bytecode and modules in MLIR text, as `jaxprism print` writes them. Without a pass the module goes into MLIR and back.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode or text; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Run this pass; may be repeated. `resolve-platform=PLATFORM` also says which platform
    #[arg(long = "pass", value_name = "NAME[=OPTION]", value_parser = suggested::pass(request), hide_possible_values = true)]
    passes: Vec<Request>,

    /// The platform to resolve
    #[arg(long, value_name = "PLATFORM", value_parser = suggested::platform(), hide_possible_values = true)]
    platform: Option<Platform>,

    /// The platforms that a module outside an export is for, in the order of their numbers
    #[arg(long, value_name = "PLATFORM,…", value_delimiter = ',', value_parser = suggested::platform(), hide_possible_values = true)]
    platforms: Vec<Platform>,

    /// Work on this module of an export alone: 0 is the function's own, 1 that of its vector-Jacobian product, and so on
    #[arg(long, value_name = "N")]
    level: Option<usize>,

    /// Where to write: an export, `.mlirbc` or `.mlir` by its extension. `{stem}` stands for the input's name without its extension. `-` is standard output, which is also the default, for text
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to write, whatever the extension
    #[arg(long, value_name = "KIND")]
    emit: Option<Emit>,

    #[command(flatten)]
    output_options: OutputOpts,

    /// Replace a file that exists; never the input
    #[arg(long)]
    force: bool,

    /// Print the module to standard error after this pass, or after each; may be repeated
    #[arg(long, value_name = "PASS|all", value_parser = suggested::pass(suggested::text), hide_possible_values = true)]
    print_ir_after: Vec<String>,

    /// Print to standard error how long each pass took, and what it changed
    #[arg(long)]
    timing: bool,

    /// List the passes
    #[arg(long, exclusive = true)]
    list_passes: bool,

    #[command(flatten)]
    callbacks: CallbackOpts,

    #[command(flatten)]
    text: TextOpts,
}

/// A pass, and the option given with it.
#[derive(Debug, Clone)]
struct Request {
    pass: &'static Pass,
    platform: Option<Platform>,
}

/// The pass of a name on the command line.
fn pass(name: &str) -> std::result::Result<&'static Pass, String> {
    let names = || PASSES.iter().map(|pass| format!("`{}`", pass.name)).collect::<Vec<_>>().join(", ");
    passes::find(name).ok_or_else(|| format!("there is no such pass; there are {}", names()))
}

fn request(text: &str) -> std::result::Result<Request, String> {
    let (name, option) = text.split_once('=').map_or((text, None), |(name, option)| (name, Some(option)));
    let pass = pass(name)?;
    let platform = match option {
        None => None,
        Some(option) if pass.name == "resolve-platform" => Some(parse(option)?),
        Some(_) => return Err(format!("`{name}` takes no option")),
    };
    Ok(Request { pass, platform })
}

impl Opts {
    /// Reads, runs, writes.
    pub fn run(&self) -> Result<ExitCode> {
        if self.list_passes {
            io::print(&list())?;
            return Ok(ExitCode::SUCCESS);
        }
        self.output.iter().for_each(|path| refuse_platform(path));
        let options = self.options()?;
        let emit = self.emit();
        if emit != Emit::Mlir && self.is_to_stdout() && std::io::stdout().is_terminal() {
            refuse_arguments("the output is binary and would garble the terminal; redirect standard output, or name a file");
        }
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot optimize {}", input.name()));
        on_deep_stack(|| {
            let opt = crate::opt(&input, &input.file_name(), &options).map_err(failed)?;
            self.tell(&opt);
            match emit {
                Emit::Mlir => {
                    let module = opt.module().map_err(failed)?;
                    self.write(&input, |out| write_text(&module.bytecode, &self.text.whole(), out).map_err(failed))
                }
                Emit::Mlirbc => {
                    let bytes = opt.module().and_then(|module| module.write()).map_err(failed)?;
                    self.write(&input, |out| written(bytes.write_to(out)))
                }
                Emit::Export => {
                    let output: Output<'_> = opt.to_export().map_err(failed)?;
                    self.write(&input, |out| written(output.write_to(out)))
                }
            }
        })
    }

    fn options(&self) -> Result<OptOptions> {
        let passes = self.passes.iter().map(|request| request.pass).collect();
        let mut options = OptOptions { passes, ..OptOptions::default() };
        let mut chosen: Vec<&Platform> = self.passes.iter().filter_map(|request| request.platform.as_ref()).chain(&self.platform).collect();
        chosen.dedup();
        if chosen.len() > 1 {
            refuse_arguments("different platforms are to be resolved");
        }
        options.platform = chosen.first().map(|platform| (*platform).clone());
        options.platforms.clone_from(&self.platforms);
        // Text holds one module.
        options.level = self.level.or((self.emit() != Emit::Export).then_some(0));
        let unknown = self.print_ir_after.iter().find(|name| *name != "all" && passes::find(name).is_none());
        if let Some(message) = unknown.and_then(|name| pass(name).err().map(|message| format!("`{name}`: {message}"))) {
            refuse_arguments(&message);
        }
        options.print_after = match &self.print_ir_after[..] {
            [] => PrintAfter::Never,
            names if names.iter().any(|name| name == "all") => PrintAfter::All,
            names => PrintAfter::Passes(names.to_vec()),
        };
        options.text = self.text.options();
        // After a pass the whole module is of interest.
        options.text.function = None;
        options.callbacks = self.callbacks.options()?;
        options.output = self.output_options.options();
        Ok(options)
    }

    fn emit(&self) -> Emit {
        let extension = self.output.as_deref().filter(|path| !is_dash(path)).map(|path| path.extension().unwrap_or_default());
        self.emit.unwrap_or(match extension {
            None => Emit::Mlir,
            Some(extension) if extension == "mlir" => Emit::Mlir,
            Some(extension) if extension == "mlirbc" => Emit::Mlirbc,
            Some(_) => Emit::Export,
        })
    }

    fn is_to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(is_dash)
    }

    /// Tells what was asked for beside the result.
    fn tell(&self, opt: &Opt<'_>) {
        let mut stderr = std::io::stderr().lock();
        for module in &opt.modules {
            for (name, text) in &module.texts {
                // Where standard error is closed, nobody wants to know.
                let _ = writeln!(stderr, "// -----// after {name}, level {} //----- //", module.level);
                let _ = stderr.write_all(text);
            }
            if self.timing {
                let _ = write!(stderr, "{}", timing(module.level, &module.runs));
            }
        }
    }

    fn write(&self, input: &Input, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<ExitCode> {
        let Some(path) = self.output.as_deref().filter(|path| !is_dash(path)) else {
            let is_whole = io::write_stdout_or(write)?;
            // Whoever reads text has seen enough; of a binary a part is nothing.
            return Ok(if is_whole || self.emit() == Emit::Mlir { ExitCode::SUCCESS } else { ExitCode::from(2) });
        };
        let path = &Names::new(None, input.path())?.beside(path);
        let mut files = Files::default();
        files.add(path, self.force, Some(input.source()))?;
        let mut failure = None;
        files.write(0, |file| {
            failure = write(file).err();
            Ok(())
        })?;
        if let Some(error) = failure {
            return Err(error.context(format!("cannot write {}", quoted(path))));
        }
        io::check_input()?;
        files.commit()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn written(result: std::io::Result<()>) -> Result<()> {
    result.map_err(|error| Error::io("cannot write the output", &error))
}

fn list() -> String {
    let mut table = Table::new(0, &[]);
    for pass in &PASSES {
        let when = if pass.in_split { "always" } else { "" };
        table.row([pass.name.to_owned(), when.to_owned(), pass.summary.to_owned()]);
    }
    format!("{}\n`split` runs those marked `always`, in this order. `jaxprism explain PASS` says more.\n", table.text())
}

fn timing(level: usize, runs: &[PassRun]) -> String {
    let mut table = Table::new(0, &[1]);
    for run in runs {
        let changes = serde_json::to_value(run.changes).unwrap_or_default();
        let counts = changes.as_object().into_iter().flatten().filter(|(_, count)| count.as_u64() != Some(0));
        let counts = counts.map(|(name, count)| format!("{}: {count}", name.replace('_', " "))).collect::<Vec<_>>();
        table.row([run.name.to_owned(), format!("{:.3} ms", run.time.as_secs_f64() * 1e3), counts.join(", ")]);
    }
    format!("level {level}:\n{}", table.text())
}
