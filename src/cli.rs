//! The command line: what there is to type, who runs it, and what the exit status says. A verb is a file.

mod callback_options;
mod callbacks;
mod check;
mod completions;
mod diff;
mod emit;
mod errors;
mod explain;
mod info;
mod io;
mod man;
mod many;
mod map;
mod merge;
mod opt;
mod place;
mod print;
mod progress;
mod retarget;
mod size;
mod split;
mod strip;
mod suggested;
mod table;
mod text;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::error::Result;
use crate::visible::{visible, visible_lines};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

const EXIT_STATUS: &str = "\
Exit status:
  0  done
  1  the input is at fault: malformed, newer than this version, or not fit for what was asked;
     or an output is in the way
  2  wrong arguments, a file that cannot be read or written, or a failure of jaxprism's own";

const EXAMPLES: &str = "\
Examples:
  jaxprism split model.jax_exported               write model.cpu.jax_exported and so on beside it
  jaxprism split model.jax_exported -p cuda -o out/
  jaxprism merge model.*.jax_exported -o model.jax_exported
  jaxprism info model.jax_exported                platforms, arguments, what each platform runs
  jaxprism callbacks model.jax_exported           Python callbacks, and what each platform has for them
  jaxprism check model.jax_exported --no-callbacks
  jaxprism verify model.cuda.jax_exported --against model.jax_exported
  jaxprism diff old.jax_exported new.jax_exported
  jaxprism retarget model.jax_exported --platforms rocm -o model.rocm.jax_exported
  jaxprism print model.jax_exported               the module as MLIR text
  jaxprism size model.jax_exported                where its bytes are
  jaxprism opt model.jax_exported --pass strip-locations -o small.jax_exported";

/// Split multi-platform JAX exports into one export per platform
///
/// Takes what `jax.export.export(f, platforms=(…))(…).serialize()` returned, written to a file. Needs neither Python nor JAX.
#[derive(Debug, Parser)]
#[command(name = "jaxprism", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, after_help = after_help(EXAMPLES))]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Split(split::Opts),
    Merge(merge::Opts),
    Strip(strip::Opts),
    Retarget(retarget::Opts),
    Info(info::Opts),
    Callbacks(callbacks::Opts),
    Check(check::Opts),
    Verify(verify::Opts),
    Diff(diff::Opts),
    Print(print::Opts),
    Size(size::Opts),
    Opt(opt::Opts),
    Explain(explain::Opts),
    Completions(completions::Opts),
    Man(man::Opts),
}

/// Examples and exit status, for the end of a help text.
fn after_help(examples: &str) -> String {
    format!("{examples}\n\n{EXIT_STATUS}")
}

/// Runs what the arguments ask for; the first is the name of the program. Nothing that goes wrong leaves it except as words on standard error and an exit status.
///
/// It is for a process of its own: it decides what a panic says and which signals count, and may end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    errors::guard(|| {
        let cli = match Cli::try_parse_from(arguments) {
            Ok(cli) => cli,
            Err(mut error) => {
                print(&mut error);
                return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
            }
        };
        match cli.run().and_then(|status| io::check_input().map(|()| status)) {
            Ok(status) => status,
            Err(error) => errors::report(&error),
        }
    })
}

impl Cli {
    fn run(&self) -> Result<ExitCode> {
        match &self.verb {
            Verb::Split(opts) => opts.run(),
            Verb::Merge(opts) => opts.run(),
            Verb::Strip(opts) => opts.run(),
            Verb::Retarget(opts) => opts.run(),
            Verb::Info(opts) => opts.run(),
            Verb::Callbacks(opts) => opts.run(),
            Verb::Check(opts) => opts.run(),
            Verb::Verify(opts) => opts.run(),
            Verb::Diff(opts) => opts.run(),
            Verb::Print(opts) => opts.run(),
            Verb::Size(opts) => opts.run(),
            Verb::Opt(opts) => opts.run(),
            Verb::Explain(opts) => opts.run(),
            Verb::Completions(opts) => opts.run(),
            Verb::Man(opts) => opts.run(),
        }
    }
}

/// Leaves as clap does for arguments that do not fit together.
fn refuse_arguments(message: &str) -> ! {
    let mut error = Cli::command().error(clap::error::ErrorKind::ArgumentConflict, visible_lines(message));
    print(&mut error);
    std::process::exit(error.exit_code())
}

/// Prints what clap has to say: help, or what is wrong with the arguments, which may be names of files.
fn print(error: &mut clap::Error) {
    let shown = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(given) => Some((kind, ContextValue::String(visible(given)))),
        _ => None,
    };
    for (kind, value) in error.context().filter_map(shown).collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    // Help goes to standard output, which may be closed already; there is nobody left to tell.
    let _ = error.print();
}
