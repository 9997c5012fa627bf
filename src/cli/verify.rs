//! `jaxprism verify`: whether exports are one export for one platform each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::verify::{Difference, DifferenceKind};
use crate::visible::visible;
use crate::{Verification, VerifyOptions};
use clap::Args;
use serde::Serialize;

use super::callback_options::table;
use super::io::{self, Input, is_dash};
use super::refuse_arguments;
use super::table::{counted, number};

const EXAMPLES: &str = "\
Examples:
  jaxprism verify model.cpu.jax_exported model.cuda.jax_exported --against model.jax_exported
  jaxprism verify model.cuda.jax_exported --against model.jax_exported --ignore-locations
  jaxprism split model.jax_exported -p tpu -o - | jaxprism verify - --against model.jax_exported
  jaxprism verify model.cuda.jax_exported --against model.jax_exported --json | jq '.splits[].differences[].what'

Callbacks that were lowered are compared as the placeholders that they were. Splits that were to do something else with callbacks differ.
The JSON is described in docs/json.md. The exit status is 1 as well if something differs or cannot be proved.";

/// Prove that exports for one platform are what another export is on that platform
///
/// Compares containers field by field, and walks both modules side by side at every level: operations that count, attributes, types, constants, locations, order.
/// What the platform decides is worked out anew; nothing of `split` is used. Whatever differs is listed, and whatever cannot be proved.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The exports for one platform each; `-` is standard input
    #[arg(value_name = "SPLIT", required = true)]
    splits: Vec<PathBuf>,

    /// The export that they were split from; `-` is standard input
    #[arg(long, value_name = "ORIGINAL")]
    against: PathBuf,

    /// Do not compare source locations: they were stripped or redacted
    #[arg(long)]
    ignore_locations: bool,

    /// Callbacks were lowered with the platforms and targets of this file as well; see docs/callbacks.md
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON.
#[derive(Serialize)]
struct Json<'r> {
    verified: bool,
    original: Option<String>,
    splits: Vec<JsonSplit<'r>>,
}

#[derive(Serialize)]
struct JsonSplit<'r> {
    path: Option<String>,
    #[serde(flatten)]
    verification: &'r Verification,
}

impl Opts {
    /// Reads, compares, prints.
    pub fn run(&self) -> Result<ExitCode> {
        if self.splits.iter().chain([&self.against]).filter(|path| is_dash(path)).count() > 1 {
            refuse_arguments("standard input holds one export, and `-` is named more than once");
        }
        let original = Input::read(Some(&self.against))?;
        let options = VerifyOptions::default().ignore_locations(self.ignore_locations).table(table(self.table.as_deref())?);
        let mut found = Vec::new();
        for path in &self.splits {
            let split = if is_dash(path) { Input::read(Some(path))? } else { Input::open(path)? };
            let failed = |error: Error| error.context(format!("cannot compare {} with {}", split.name(), original.name()));
            let verification = split.judge(crate::verify(&original, &split, &options).map_err(failed))?;
            found.push((split.path().map(Path::to_owned), split.name(), verification));
        }
        let verified = found.iter().all(|(_, _, verification)| verification.verified);
        if self.json {
            let shown = |path: &Path| path.display().to_string();
            let splits = found.iter().map(|(path, _, verification)| JsonSplit { path: path.as_deref().map(shown), verification });
            io::print_json(&Json { verified, original: original.path().map(shown), splits: splits.collect() })?;
        } else {
            let texts = found.iter().map(|(_, name, verification)| text(verification, name, &original.name()));
            io::print(&texts.collect::<String>())?;
        }
        Ok(ExitCode::from(u8::from(!verified)))
    }
}

fn text(verification: &Verification, split: &str, original: &str) -> String {
    let platform = verification.platform.as_deref().map_or_else(String::new, |platform| format!(" on {}", visible(platform)));
    if verification.verified {
        let Verification { operations, functions, levels, .. } = *verification;
        let counts = format!("{}, {}, {}", counted(operations, "operation"), counted(functions, "function"), counted(levels, "level"));
        return format!("{split} is {original}{platform}: {counts}\n");
    }
    let mut text = format!("{split} is not proved to be {original}{platform}: ");
    let count = verification.differences.len();
    text.push_str(&if verification.is_cut {
        format!("more than {} differences\n", number(count as u64))
    } else {
        format!("{}\n", counted(count, "difference"))
    });
    for difference in &verification.differences {
        text.push_str(&difference_text(difference));
    }
    text
}

/// Where and what on one line, and on the lines below it what the two sides have.
fn difference_text(difference: &Difference) -> String {
    let mut place: Vec<String> = Vec::new();
    if difference.level > 0 {
        place.push(format!("level {}", difference.level));
    }
    place.extend(difference.function.as_ref().map(|function| format!("@{function}")));
    place.extend(difference.operation.clone());
    place.extend(difference.place.clone());
    let what = match difference.kind {
        DifferenceKind::Container => format!("field `{}`", difference.what),
        _ => difference.what.clone(),
    };
    place.push(what);
    let mut text = format!("  {}\n", visible(&place.join("  ")));
    for (side, value) in [("ORIGINAL", &difference.original), ("SPLIT   ", &difference.split)] {
        if let Some(value) = value {
            text.push_str(&format!("    {side}  {}\n", visible(value)));
        }
    }
    text
}
