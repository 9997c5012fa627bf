//! `jaxprism info`: what an export holds, for people or as JSON.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::inspect::{Array, FileFormat, Inspection, Level, Module, PlatformCase, Signature};
use crate::visible::visible;
use clap::Args;
use indexmap::IndexMap;

use super::io::{self, Input};
use super::table::{Table, counted, number};

const EXAMPLES: &str = "\
Examples:
  jaxprism info model.jax_exported
  jaxprism info model.jax_exported --json | jq '.levels[0].signature.platforms'
  jaxprism info module.mlirbc                      a StableHLO portable artifact alone

The JSON is described in docs/json.md.";

/// Lines that a list shows before it says how many more there are.
const SHOWN: usize = 12;

/// Show what an export holds: platforms, arguments, versions, and what each platform runs
///
/// Reads modules alone as well, and modules that `split` refuses because it does not know everything in them. Long lists are cut; the JSON is complete.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Opts {
    /// Reads, looks, prints.
    pub fn run(&self) -> Result<ExitCode> {
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot read {}", input.name()));
        let inspection = crate::inspect(&input).map_err(failed)?;
        if self.json {
            io::print_json(&inspection)?;
        } else {
            io::print(&text(&inspection))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(inspection: &Inspection) -> String {
    let mut text = String::new();
    for level in &inspection.levels {
        if level.level == 0 {
            text.push_str(&facts(inspection, level));
            level.signature.iter().for_each(|signature| text.push_str(&arrays(signature)));
        } else {
            let name = level.signature.as_ref().map_or("?", |signature| &signature.function_name);
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "\ngradient level {}: {}", level.level, visible(name));
            level.signature.iter().for_each(|signature| {
                let (arguments, results) = (signature.arguments.len(), signature.results.len());
                let _ = writeln!(text, "  {}, {}", counted(arguments, "argument"), counted(results, "result"));
            });
        }
        text.push_str(&module(&level.module, level.signature.as_ref().map_or(&[], |signature| &signature.platforms)));
    }
    text
}

fn facts(inspection: &Inspection, level: &Level) -> String {
    let module = &level.module;
    let mut table = Table::new(0, &[]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("file", format!("{}, {} bytes", format_name(inspection.format), number(inspection.bytes)));
    if let Some(signature) = &level.signature {
        row("function", signature.function_name.clone());
        row("platforms", list(&signature.platforms));
        row("devices", signature.nr_devices.to_string());
        row("JAX version", signature.jax_version.clone().unwrap_or_else(|| "not recorded".to_owned()));
        row("schema version", signature.schema_version.to_string());
        row("calling convention", signature.calling_convention_version.to_string());
    }
    row("StableHLO version", module.stablehlo_version.clone().unwrap_or_else(|| format!("unknown, written by {}", module.producer)));
    row("bytecode version", module.bytecode_version.to_string());
    if let Some(signature) = &level.signature {
        row("global constants", if signature.uses_global_constants { "used" } else { "not used" }.to_owned());
        row("ordered effects", list(&signature.ordered_effects));
        row("other effects", list(&signature.unordered_effects));
        row("disabled checks", list(&signature.disabled_checks));
        row("meshes", list(&signature.meshes));
        row("gradient levels", list_count(inspection.levels.len().saturating_sub(1)));
    }
    table.text()
}

fn format_name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Export => "JAX export",
        _ => "module in MLIR bytecode",
    }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn list_count(count: usize) -> String {
    if count == 0 { "none".to_owned() } else { count.to_string() }
}

fn arrays(signature: &Signature) -> String {
    let mut text = String::new();
    for (what, arrays) in [("arguments", &signature.arguments), ("results", &signature.results)] {
        let mut table = Table::new(2, &[]);
        let row = |array: &Array| {
            let sharding = array.sharding.clone().unwrap_or_default();
            let dropped = if array.kept { "" } else { "not used by the module" };
            [array.path.clone(), array.text.clone(), sharding, dropped.to_owned()]
        };
        arrays.iter().take(SHOWN).for_each(|array| table.row(row(array)));
        section(&mut text, &format!("{what}: {}", number(arrays.len() as u64)), table, arrays.len());
    }
    text
}

/// A headline, the rows of which there are `count`, and how many of them are not shown.
fn section(text: &mut String, headline: &str, table: Table, count: usize) {
    let _ = write!(text, "\n{}\n{}", visible(headline), table.text());
    if count > SHOWN {
        let _ = writeln!(text, "  … and {} more", number((count - SHOWN) as u64));
    }
}

fn module(module: &Module, platforms: &[String]) -> String {
    let mut text = format!(
        "\nmodule: {} in {}, {} bytes\n",
        counted(module.operations, "operation"),
        counted(module.functions.len(), "function"),
        number(module.bytes)
    );
    if let Some(why) = &module.unreadable {
        let _ = writeln!(text, "  cannot be split: {}", visible(why));
    }
    let _ = writeln!(text, "  {} of {} are locations", number(module.locations as u64), counted(module.attributes, "attribute"));
    for mesh in module.meshes.iter().take(SHOWN) {
        let axes = mesh.axes.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  mesh {} ({})", visible(&mesh.name), visible(&axes));
    }
    functions(&mut text, module);
    if !module.custom_calls.is_empty() {
        let mut table = Table::new(2, &[1]);
        let shown = module.custom_calls.iter().take(SHOWN);
        shown.for_each(|(target, count)| table.row([target.clone(), number(*count as u64)]));
        section(&mut text, "custom calls", table, module.custom_calls.len());
    }
    constants(&mut text, module);
    platform_cases(&mut text, module, platforms);
    text
}

fn functions(text: &mut String, module: &Module) {
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.operations));
    let mut table = Table::new(2, &[1, 2]);
    if !functions.is_empty() {
        table.row(["function", "operations", "bytes of constants"].map(str::to_owned));
    }
    for function in functions.iter().take(SHOWN) {
        table.row([format!("@{}", function.name), number(function.operations as u64), number(function.constant_bytes)]);
    }
    text.push_str(&table.text());
    if functions.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", number((functions.len() - SHOWN) as u64));
    }
}

fn constants(text: &mut String, module: &Module) {
    let constants = &module.constants;
    if constants.operations == 0 {
        return;
    }
    let headline = format!(
        "constants: {}, {} distinct, {} bytes",
        number(constants.operations as u64),
        number(constants.distinct as u64),
        number(constants.bytes)
    );
    let mut table = Table::new(2, &[0]);
    let largest: Vec<_> = constants.largest.iter().take(3).collect();
    for constant in &largest {
        table.row([
            number(constant.bytes),
            constant.r#type.clone(),
            format!("in @{}", constant.function),
            constant.place.clone().unwrap_or_default(),
        ]);
    }
    section(text, &headline, table, 0);
    if constants.distinct > largest.len() {
        let _ = writeln!(text, "  … and {} smaller", number((constants.distinct - largest.len()) as u64));
    }
}

fn platform_cases(text: &mut String, module: &Module, platforms: &[String]) {
    let (tables, cases): (Vec<_>, Vec<&PlatformCase>) = module.platform_cases.iter().partition(|case| case.index_table);
    if module.platform_cases.is_empty() {
        if !module.platform_cases_complete {
            text.push_str("\nwhat the platform decides: too much to follow\n");
        }
        return;
    }
    let mut headline = format!("what the platform decides: {}", counted(cases.len(), "branch point"));
    if !tables.is_empty() {
        headline.push_str(&format!(", and {} that only pick a number", number(tables.len() as u64)));
    }
    if !module.platform_cases_complete {
        headline.push_str(", and perhaps more");
    }
    let _ = writeln!(text, "\n{headline}");
    for case in cases.iter().take(SHOWN) {
        let place = case.place.as_ref().map_or_else(String::new, |place| format!("{} ", visible(place)));
        let _ = writeln!(text, "  {place}in @{}", visible(&case.function));
        text.push_str(&branches(case, platforms));
    }
    if cases.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", number((cases.len() - SHOWN) as u64));
    }
}

/// What each platform runs; those that run equally much share a line. `order` is the export's.
fn branches(case: &PlatformCase, order: &[String]) -> String {
    let taken = case.branches.iter().flat_map(|branch| branch.platforms.iter().map(move |platform| (platform, branch)));
    let mut taken: Vec<_> = taken.collect();
    taken.sort_by_key(|(platform, _)| order.iter().position(|name| name == *platform));
    let mut lines: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for (platform, branch) in taken {
        let holds = (counted(branch.operations, "operation"), calls(&branch.custom_calls));
        lines.entry(holds).or_default().push(platform);
    }
    let mut table = Table::new(4, &[1]);
    lines.into_iter().for_each(|((operations, calls), platforms)| table.row([platforms.join(", "), operations, calls]));
    table.text()
}

fn calls(targets: &IndexMap<String, usize>) -> String {
    let call = |(target, count): (&String, &usize)| if *count == 1 { target.clone() } else { format!("{target} ×{count}") };
    targets.iter().map(call).collect::<Vec<_>>().join(", ")
}
