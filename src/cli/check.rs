//! `jaxprism check`: whether a file runs wherever its platform does.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::quoted;
use crate::inspect::{Site, SiteKind};
use crate::{Check, CheckOptions, Platform, TargetsAllowed};
use clap::Args;

use super::io::{self, Input};
use super::refuse_arguments;
use super::table::{Table, counted};

const EXAMPLES: &str = "\
Examples:
  jaxprism check model.jax_exported --no-callbacks
  jaxprism check model.jax_exported --no-callbacks -p cpu -p cuda     what these platforms run
  jaxprism check model.jax_exported --no-callbacks --targets-allowed ours.txt
  jaxprism check model.jax_exported --no-callbacks --json | jq '.sites[].target'

A list of targets has one on each line: `my_kernel`, or `vendor.*` for all that begin like this; `#` begins a comment.
The JSON is described in docs/json.md. The exit status is 1 as well if something was found.";

/// Check that an export runs without the process that wrote it
///
/// Looks for Python callbacks, placeholders or lowered, for other operations that hold something of the process that wrote them, and for custom calls that
/// JAX does not guarantee to be stable. Says what is left and where it comes from.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Fail if a Python callback, a call that is bound to a process, or an unstable custom call is left
    #[arg(long)]
    no_callbacks: bool,

    /// Custom calls that are allowed though JAX does not guarantee that they are stable
    #[arg(long, value_name = "FILE")]
    targets_allowed: Option<PathBuf>,

    /// Look only at what this platform runs, not at everything in the file; may be repeated, or list several with commas
    #[arg(short, long = "platform", value_name = "PLATFORM", value_delimiter = ',', value_parser = super::suggested::platform(), hide_possible_values = true)]
    platforms: Vec<Platform>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Opts {
    /// Reads, looks, prints.
    pub fn run(&self) -> Result<ExitCode> {
        if !self.no_callbacks {
            refuse_arguments("there is nothing to check: say what, `--no-callbacks`");
        }
        let mut options = CheckOptions::default().platforms(self.platforms.iter().cloned());
        if let Some(path) = &self.targets_allowed {
            let parsed = io::read_text(path)?.parse::<TargetsAllowed>();
            options = options.targets_allowed(parsed.map_err(|error| error.context(format!("cannot read {}", quoted(path))))?);
        }
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot check {}", input.name()));
        let check = crate::check(&input, &options).map_err(failed)?;
        if self.json {
            io::print_json(&check)?;
        } else {
            io::print(&text(&check, &input.name()))?;
        }
        Ok(ExitCode::from(u8::from(!check.passed)))
    }
}

fn text(check: &Check, name: &str) -> String {
    let on = if check.platforms.is_empty() { String::new() } else { format!(" on {}", check.platforms.join(", ")) };
    if check.passed {
        return format!("{name} has no Python callbacks{on}, and no custom calls but stable and allowed ones\n");
    }
    let mut table = Table::new(2, &[]);
    for site in &check.sites {
        let level = if site.level == 0 { String::new() } else { format!("level {}", site.level) };
        let function = site.function.as_ref().map_or_else(String::new, |function| format!("@{function}"));
        let place = site.place.clone().unwrap_or_default();
        table.row([place, function, level, site.platform.clone().unwrap_or_default(), what(site)]);
    }
    format!("{name} has {}{on} that should not be there\n{}", counted(check.sites.len(), "site"), table.text())
}

fn what(site: &Site) -> String {
    let Site { target, reason, .. } = site;
    let callback = match (&site.callback_kind, &site.callback) {
        (Some(kind), Some(name)) => Some(format!("{kind} callback `{name}`")),
        _ => None,
    };
    match (site.kind, callback) {
        (SiteKind::Placeholder, Some(callback)) => format!("{callback}: {reason}"),
        (SiteKind::LoweredCallback, Some(callback)) => format!("{callback} as `{target}`: {reason}"),
        (SiteKind::GuardEffect, _) => format!("effect `{target}`: {reason}"),
        _ => format!("`{target}`: {reason}"),
    }
}
