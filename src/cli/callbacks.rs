//! `jaxprism callbacks`: the Python callbacks of an export, for people or as JSON.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::callbacks::Alias;
use crate::error::{Error, Result};
use crate::inspect::{BoundCall, CallbackCall, CallbackLevel, CallbackReport, CallbackSlot, PlatformLowering};
use crate::visible::visible;
use clap::Args;
use indexmap::IndexMap;

use super::callback_options::table as callback_table;
use super::io::{self, Input};
use super::table::{Table, counted, number};

const EXAMPLES: &str = "\
Examples:
  jaxprism callbacks model.jax_exported
  jaxprism callbacks model.jax_exported --json | jq -r '.levels[].slots[].name'
  jaxprism callbacks model.jax_exported --table ours.json        with targets of your own

The JSON is described in docs/json.md.";

/// Lines that a list shows before it says how many more there are.
const SHOWN: usize = 12;

/// Show the Python callbacks of an export, and what each platform has for them
///
/// Lists placeholders, callbacks that jaxprism lowered, and what works in no process but the one that wrote the file: callbacks that JAX lowered, and
/// others that hold an address. Long lists are cut; the JSON is complete.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Add these platforms and targets to the ones that JAX has
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

impl Opts {
    /// Reads, looks, prints.
    pub fn run(&self) -> Result<ExitCode> {
        let table = callback_table(self.table.as_deref())?;
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot read {}", input.name()));
        let report = crate::callbacks_of(&input, &table).map_err(failed)?;
        if self.json {
            io::print_json(&report)?;
        } else {
            io::print(&text(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(report: &CallbackReport) -> String {
    report.levels.iter().map(level).collect::<Vec<_>>().join("\n")
}

fn level(level: &CallbackLevel) -> String {
    let mut text = match (level.level, &level.function_name) {
        (0, Some(name)) => format!("function {}: ", visible(name)),
        (0, None) => String::new(),
        (number, name) => format!("gradient level {number}, {}: ", visible(name.as_deref().unwrap_or("?"))),
    };
    let calls = level.slots.iter().map(|slot| slot.calls.len()).sum();
    text.push_str(&match level.slots.len() {
        0 => "no Python callbacks to bind".to_owned(),
        slots => format!("{} in {}", counted(slots, "Python callback"), counted(calls, "call")),
    });
    text.push_str(if level.guarded { ", guarded\n" } else { "\n" });
    slots(&mut text, &level.slots);
    lowerings(&mut text, &level.slots);
    bound(&mut text, &level.bound);
    text
}

fn slots(text: &mut String, slots: &[CallbackSlot]) {
    let mut table = Table::new(2, &[0]);
    if !slots.is_empty() {
        table.row(["slot", "kind", "name", "operands and results", "", "called at"].map(str::to_owned));
    }
    for slot in slots.iter().take(SHOWN) {
        let name = match &slot.format {
            Some(format) => format!("{} {format:?}", slot.name),
            None => slot.name.clone(),
        };
        let types = format!("({}) -> ({})", slot.operands.join(", "), slot.results.join(", "));
        table.row([slot.slot.to_string(), slot.kind.to_string(), name, types, traits(slot), places(&slot.calls)]);
    }
    text.push_str(&table.text());
    more(text, slots.len());
}

fn more(text: &mut String, count: usize) {
    if count > SHOWN {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  … and {} more", number((count - SHOWN) as u64));
    }
}

/// What sets a callback apart from a plain one.
fn traits(slot: &CallbackSlot) -> String {
    let any = |has: fn(&CallbackCall) -> bool| slot.calls.iter().any(has);
    let mut traits = Vec::new();
    let mut say = |holds: bool, text: &str| traits.extend(holds.then(|| text.to_owned()));
    say(slot.ordered, "ordered");
    say(slot.partitioned, "partitioned");
    say(any(|call| call.has_side_effect) && !slot.ordered, "side effect");
    say(slot.was.is_some(), "was a buffer callback");
    say(!slot.stable, "unstable name");
    traits.extend(slot.vmap_method.as_ref().map(|method| format!("vmap {method}")));
    let aliases = slot.calls.iter().find(|call| !call.aliases.is_empty()).map(|call| &call.aliases);
    traits.extend(aliases.into_iter().flatten().map(|Alias { operand, result }| format!("result {result} in operand {operand}")));
    let lowered = slot.calls.iter().find_map(|call| Some((call.target.as_ref()?, call.index)));
    traits.extend(lowered.map(|(target, index)| match index {
        Some(index) => format!("lowered to {target} #{index}"),
        None => format!("lowered to {target}"),
    }));
    traits.join(", ")
}

/// Where a callback is called first, and how many calls there are beside that.
fn places(calls: &[CallbackCall]) -> String {
    let place = calls.first().map_or_else(String::new, |call| place(call.place.as_deref(), &call.function));
    match calls.len() {
        0 | 1 => place,
        count => format!("{place}, and {} more", number((count - 1) as u64)),
    }
}

fn place(place: Option<&str>, function: &str) -> String {
    place.map_or_else(|| format!("in @{function}"), |place| format!("{place} in @{function}"))
}

/// What callbacks become on each platform. Platforms where they become the same share their lines.
fn lowerings(text: &mut String, slots: &[CallbackSlot]) {
    let mut platforms: IndexMap<&str, IndexMap<String, Vec<usize>>> = IndexMap::new();
    for (slot, lowering) in slots.iter().flat_map(|slot| slot.lowerings.iter().map(move |lowering| (slot.slot, lowering))) {
        platforms.entry(&lowering.platform).or_default().entry(becomes(lowering)).or_default().push(slot);
    }
    let mut alike: IndexMap<Vec<(String, Vec<usize>)>, Vec<&str>> = IndexMap::new();
    for (platform, outcomes) in platforms {
        alike.entry(outcomes.into_iter().collect()).or_default().push(platform);
    }
    if alike.is_empty() {
        return;
    }
    let mut table = Table::new(2, &[]);
    table.row(["platform", "slots", "lowered to"].map(str::to_owned));
    for (outcomes, platforms) in alike {
        let mut platforms = platforms.join(", ");
        for (outcome, slots) in outcomes {
            let slots = slots.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            table.row([std::mem::take(&mut platforms), slots, outcome]);
        }
    }
    text.push('\n');
    text.push_str(&table.text());
}

fn becomes(lowering: &PlatformLowering) -> String {
    match (&lowering.target, &lowering.impossible) {
        (Some(target), _) => target.clone(),
        (None, Some(why)) => format!("impossible: {why}"),
        (None, None) => "host transfers, as JAX loads the file".to_owned(),
    }
}

fn bound(text: &mut String, bound: &[BoundCall]) {
    if bound.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n  bound to the process that wrote the file: {}", counted(bound.len(), "operation"));
    let mut table = Table::new(2, &[]);
    for call in bound.iter().take(SHOWN) {
        let index = call.index.map_or_else(String::new, |index| format!("#{index}"));
        table.row([call.target.clone(), index, place(call.place.as_deref(), &call.function), call.reason.clone()]);
    }
    text.push_str(&table.text());
    more(text, bound.len());
}
