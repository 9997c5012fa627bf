//! `jaxprism diff`: how two exports differ as programs.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::diff::{Change, ChangeKind, Counts, How, Part, Side};
use crate::error::{Error, Result};
use crate::visible::visible;
use crate::{Diff, DiffOptions, Ignore};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use super::io::{self, Input, is_dash};
use super::refuse_arguments;
use super::table::number;

/// Changes that are shown unless the user says otherwise; the JSON has all.
const SHOWN: usize = 100;

/// Longest text of an operation.
const MAX_WIDTH: usize = 110;

const EXAMPLES: &str = "\
Examples:
  jaxprism diff old.jax_exported new.jax_exported
  jaxprism diff old.jax_exported new.jax_exported --ignore locations,names,versions
  jaxprism diff -q golden.jax_exported new.jax_exported --ignore locations || echo changed
  jaxprism split model.jax_exported -p cpu -o - | jaxprism diff cpu.jax_exported -
  jaxprism diff old.jax_exported new.jax_exported --json | jq '.changes[].b.place'

What differs in bytes alone, and not as a program, is equal. The JSON is described in docs/json.md.
The exit status is 1 as well if something differs. Nothing is on standard error then; where an input is at fault, a message is.";

/// Show how two exports differ as programs
///
/// Compares signatures argument by argument, and modules function by function: functions are matched by name, or by what they do, and their operations put
/// side by side. Says what was added, removed, moved and changed, with the place in the source on both sides. Reads modules alone as well.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The first export, or a module in MLIR bytecode or text; `-` is standard input
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The second one; `-` is standard input
    #[arg(value_name = "B")]
    b: PathBuf,

    /// What may differ: `locations` in the source; `names` of private functions, of meshes and of the module, and the order of functions; `versions` of JAX,
    /// StableHLO, schema and bytecode
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = ignore())]
    ignore: Vec<Ignore>,

    /// Changes to show; all of them in JSON, else 100 without this
    #[arg(long, value_name = "N")]
    max: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print nothing: the exit status says it
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

fn ignore() -> impl TypedValueParser<Value = Ignore> {
    PossibleValuesParser::new(Ignore::ALL.map(|(name, _)| name)).try_map(|name| name.parse())
}

/// The JSON: what the library found, and which files.
#[derive(Serialize)]
struct Json<'d> {
    paths: [Option<String>; 2],
    #[serde(flatten)]
    diff: &'d Diff,
}

impl Opts {
    /// Reads, compares, prints.
    pub fn run(&self) -> Result<ExitCode> {
        if is_dash(&self.a) && is_dash(&self.b) {
            refuse_arguments("standard input holds one export, and `-` is named twice");
        }
        let (a, b) = (Input::read(Some(&self.a))?, Input::read(Some(&self.b))?);
        let mut options = DiffOptions::default().ignore(self.ignore.iter().copied());
        if let Some(most) = if self.json { self.max } else { Some(self.max.unwrap_or(SHOWN)) } {
            options = options.max_changes(if self.quiet { 0 } else { most });
        }
        let failed = |error: Error| error.context(format!("cannot compare {} with {}", a.name(), b.name()));
        let diff = crate::diff(&a, &b, &options).map_err(failed)?;
        if self.json {
            let path = |input: &Input| input.path().map(|path| path.display().to_string());
            io::print_json(&Json { paths: [path(&a), path(&b)], diff: &diff })?;
        } else if !self.quiet {
            io::print(&text(&diff, &a.name(), &b.name()))?;
        }
        Ok(ExitCode::from(u8::from(!diff.equal)))
    }
}

fn text(diff: &Diff, a: &str, b: &str) -> String {
    if diff.identical {
        return format!("{a} and {b} are identical: {} bytes\n", number(diff.a.bytes));
    }
    let mut text = match (diff.equal, diff.ignored.total()) {
        (true, 0) => format!("{a} and {b} are the same program, in other bytes\n"),
        (true, _) => format!("{a} and {b} are the same program but for what is ignored: {}\n", counts(&diff.ignored)),
        (false, 0) => format!("{a} and {b} differ: {}\n", counts(&diff.counts)),
        (false, _) => format!("{a} and {b} differ: {}; ignored: {}\n", counts(&diff.counts), counts(&diff.ignored)),
    };
    let mut group = None;
    for change in &diff.changes {
        let next = headline(change);
        if group.as_ref() != Some(&next) {
            text.push_str(&format!("\n{}\n", visible(&next)));
            group = Some(next);
        }
        text.push_str(&change_text(change));
    }
    if diff.is_cut {
        text.push_str("\n… and more, which `--max N` shows\n");
    }
    text.push_str(&parts(diff));
    text
}

fn counts(counts: &Counts) -> String {
    let items = [
        (counts.signature, "change of the signature", "changes of the signature"),
        (counts.module, "change of the module", "changes of the module"),
        (counts.functions, "function", "functions"),
        (counts.operations, "operation", "operations"),
        (counts.names, "name", "names"),
        (counts.locations, "location", "locations"),
        (counts.versions, "version", "versions"),
    ];
    let item = |(count, one, more): (usize, &str, &str)| {
        (count > 0).then(|| format!("{} {}", number(count as u64), if count == 1 { one } else { more }))
    };
    items.into_iter().filter_map(item).collect::<Vec<_>>().join(", ")
}

/// What changes are listed under.
fn headline(change: &Change) -> String {
    let function = |side: &Option<Side>| side.as_ref().and_then(|side| side.function.clone());
    let group = match change.kind {
        ChangeKind::Signature => "signature".to_owned(),
        ChangeKind::Version => "versions".to_owned(),
        ChangeKind::Module => "module".to_owned(),
        ChangeKind::Function => "functions".to_owned(),
        ChangeKind::Name => "names".to_owned(),
        ChangeKind::Location => "locations".to_owned(),
        ChangeKind::Operation => match (function(&change.a), function(&change.b)) {
            (Some(a), Some(b)) if a != b => format!("@{a} → @{b}"),
            (Some(name), _) | (None, Some(name)) => format!("@{name}"),
            (None, None) => "module".to_owned(),
        },
    };
    if change.level == 0 { group } else { format!("level {}: {group}", change.level) }
}

fn change_text(change: &Change) -> String {
    let sign = match change.how {
        How::Added => "+",
        How::Removed => "-",
        _ => "~",
    };
    let mut lines = Vec::new();
    match (change.kind, &change.a, &change.b) {
        (ChangeKind::Operation, Some(a), Some(b)) => {
            let moved = if change.how == How::Moved { "moved " } else { "" };
            lines.push(format!("  {sign} {moved}{}", placed(a)));
            lines.extend(Some(placed(b)).filter(|line| *line != placed(a)).map(|line| format!("    {line}")));
        }
        (ChangeKind::Operation, a, b) => lines.extend(a.iter().chain(b).map(|side| format!("  {sign} {}", placed(side)))),
        (ChangeKind::Function, Some(a), Some(b)) if a.text == b.text => lines.push(format!("  {sign} {}", placed(a))),
        (ChangeKind::Function, Some(side), None) | (ChangeKind::Function, None, Some(side)) => {
            lines.push(format!("  {sign} {}", placed(side)))
        }
        (_, Some(a), Some(b)) if a.text == b.text => lines.push(format!("  {sign} {}: {}", change.what, a.text)),
        (_, Some(a), Some(b)) => lines.push(format!("  {sign} {}: {} → {}", change.what, a.text, b.text)),
        (_, a, b) => lines.extend(a.iter().chain(b).map(|side| format!("  {sign} {}: {}", change.what, side.text))),
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    lines.extend(change.details.iter().map(|detail| format!("      {}: {} → {}", detail.what, value(&detail.a), value(&detail.b))));
    lines.iter().map(|line| visible(line) + "\n").collect()
}

/// The place of an operation and its start; the JSON has more of it.
fn placed(side: &Side) -> String {
    let text = match side.text.char_indices().nth(MAX_WIDTH) {
        Some((end, _)) => format!("{}…", side.text.get(..end).unwrap_or_default()),
        None => side.text.clone(),
    };
    side.place.as_ref().map_or_else(|| text.clone(), |place| format!("{place}  {text}"))
}

/// The sizes of both files, and of the parts that are not the same.
fn parts(diff: &Diff) -> String {
    let part = |part: &Part| {
        let name = match part.level {
            Some(level) if level > 0 => format!("{} of level {level}", part.name),
            _ => part.name.to_owned(),
        };
        match part.b.cmp(&part.a) {
            std::cmp::Ordering::Equal => format!("{name} ±0"),
            std::cmp::Ordering::Greater => format!("{name} +{}", number(part.b - part.a)),
            std::cmp::Ordering::Less => format!("{name} -{}", number(part.a - part.b)),
        }
    };
    let parts = diff.parts.iter().map(part).collect::<Vec<_>>().join(", ");
    let changed = if parts.is_empty() { parts } else { format!(": {parts}") };
    format!("\nbytes: {} → {}{changed}\n", number(diff.a.bytes), number(diff.b.bytes))
}
