//! `jaxprism size`: where the bytes of an export are, as text, JSON or a page.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::{Files, Names};
use crate::inspect::FileFormat;
use crate::size::{AttributeKind, Constant, Function, Level, List, LocationFile, Size, SizeOptions, Text, to_html};
use clap::Args;

use super::io::{self, Input, is_dash};
use super::place::refuse_platform;
use super::table::{Table, counted, number};

const EXAMPLES: &str = "\
Examples:
  jaxprism size model.jax_exported
  jaxprism size model.jax_exported --top 30
  jaxprism size model.jax_exported --html size.html      a treemap, to be opened in a browser
  jaxprism size model.jax_exported --json | jq '.levels[0].sections'
  jaxprism size module.mlirbc                            a StableHLO portable artifact alone

The JSON is described in docs/json.md.";

/// Lines that a list shows unless the user says otherwise.
const SHOWN: usize = 8;

/// Show where the bytes of an export are: sections, constants, functions, locations, attributes, strings
///
/// All sizes are those of the encoded file; the container and the sections of all modules add up to it. A constant, attribute or string is stored once, however
/// often it is used. A function's own bytes are its operations and all that it alone uses; what it retains is what would go if it went: functions that are called
/// only by way of it, and what only these use, are included.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The export, or a module in MLIR bytecode; `-` or nothing is standard input
    #[arg(value_name = "IN")]
    input: Option<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "html")]
    json: bool,

    /// Write a page with a treemap instead; `-` is standard output. `{stem}` stands for the input's name without its extension
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// The longest that a list may be. Without this 8, and 10,000 in JSON and pages
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Replace a page that exists; never the input
    #[arg(long, requires = "html")]
    force: bool,
}

impl Opts {
    /// Reads, measures, prints.
    pub fn run(&self) -> Result<ExitCode> {
        self.html.iter().for_each(|path| refuse_platform(path));
        let input = Input::read(self.input.as_deref())?;
        let failed = |error: Error| error.context(format!("cannot measure {}", input.name()));
        let is_text = !self.json && self.html.is_none();
        let default = if is_text { SHOWN } else { SizeOptions::default().longest_list };
        let options = SizeOptions::default().longest_list(self.top.unwrap_or(default));
        let size = crate::size(&input, &options).map_err(failed)?;
        match &self.html {
            Some(path) => write_page(&size, path, self.force, &input)?,
            None if self.json => io::print_json(&size)?,
            None => io::print(&text(&size))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_page(size: &Size, path: &Path, force: bool, input: &Input) -> Result<()> {
    // Not its folder, which is nobody's business.
    let name = input.path().and_then(Path::file_name).map_or("standard input".into(), |name| name.to_string_lossy());
    let page = to_html(size, &name)?;
    if is_dash(path) {
        return io::print(&page);
    }
    let mut files = Files::default();
    files.add(&Names::new(None, input.path())?.beside(path), force, Some(input.source()))?;
    files.write(0, |into| into.write_all(page.as_bytes()))?;
    io::check_input()?;
    files.commit()
}

fn text(size: &Size) -> String {
    let format = match size.format {
        FileFormat::Export => "JAX export",
        _ => "module in MLIR bytecode",
    };
    let mut text = format!("{format}, {} bytes\n", number(size.bytes));
    let mut table = Table::new(2, &[0, 1]);
    let mut row = |bytes: u64, name: String, about: String| table.row([units(bytes), percent(bytes, size.bytes), name, about]);
    if size.format == FileFormat::Export {
        row(size.container, "container".to_owned(), "names, types, trees and shardings of arguments and results".to_owned());
        for level in &size.levels {
            let (name, about) = level_name(level);
            row(level.bytes, name, about);
        }
        text.push_str(&table.text());
    }
    for level in &size.levels {
        let (name, _) = level_name(level);
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "\n{name}: {}", units(level.bytes));
        of_level(&mut text, level, size.bytes);
    }
    text
}

fn level_name(level: &Level) -> (String, String) {
    let function = level.function_name.clone().unwrap_or_default();
    match level.level {
        0 => ("module".to_owned(), function),
        number => (format!("module of gradient level {number}"), function),
    }
}

fn of_level(text: &mut String, level: &Level, all: u64) {
    let mut table = Table::new(2, &[0, 1]);
    let mut sections = level.sections.each();
    sections.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let sections = sections.iter().filter(|(_, bytes)| *bytes > 0);
    sections.for_each(|(name, bytes)| table.row([units(*bytes), percent(*bytes, all), (*name).to_owned()]));
    text.push_str(&table.text());
    functions(text, &level.functions, all);
    section(text, "constants", &level.constants, all, |constant: &Constant| {
        let place = constant.place.clone().unwrap_or_default();
        (constant.bytes, [constant.r#type.clone(), format!("in @{}", constant.function), place, remarks(constant)])
    });
    section(text, "locations by file", &level.locations, all, |file: &LocationFile| {
        let name = file.file.as_deref().unwrap_or("without a file");
        (file.bytes, [name.to_owned(), counted(file.count, "attribute"), of_strings(file.string_bytes), String::new()])
    });
    section(text, "attributes and types", &level.attributes, all, |kind: &AttributeKind| {
        (kind.bytes, [kind.kind.clone(), number(kind.count as u64), of_strings(kind.string_bytes), String::new()])
    });
    section(text, "strings", &level.strings.each, all, |string: &Text| {
        (string.bytes, [format!("of {}", string.used_by), string.text.clone(), String::new(), String::new()])
    });
}

fn remarks(constant: &Constant) -> String {
    let uses = match (constant.uses, constant.functions) {
        (1, _) => None,
        (uses, 1) => Some(format!("stored once, used {} times", number(uses as u64))),
        (uses, functions) => Some(format!("stored once, used {} times in {}", number(uses as u64), counted(functions, "function"))),
    };
    let splat = constant.splat.then(|| "one element for all".to_owned());
    [splat, uses].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn of_strings(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!("{} of it strings", units(bytes)) }
}

fn functions(text: &mut String, functions: &List<Function>, all: u64) {
    if functions.count == 0 {
        return;
    }
    let mut table = Table::new(2, &[0, 1, 2, 4]);
    table.row(["retained", "", "own", "function", "operations", ""].map(str::to_owned));
    for function in &functions.largest {
        let retained = function.retained.map_or_else(|| "?".to_owned(), units);
        let share = percent(function.retained.unwrap_or(function.bytes), all);
        let place = function.place.clone().unwrap_or_default();
        let operations = number(function.operations as u64);
        table.row([retained, share, units(function.bytes), format!("@{}", function.name), operations, place]);
    }
    let _ = write!(text, "\n{}\n{}", counted(functions.count, "function"), table.text());
    more(text, functions);
}

/// A list with its headline: bytes and cells of each item.
fn section<T>(text: &mut String, what: &str, list: &List<T>, all: u64, item: impl Fn(&T) -> (u64, [String; 4])) {
    if list.count == 0 {
        return;
    }
    let mut table = Table::new(2, &[0, 1]);
    for one in &list.largest {
        let (bytes, [name, a, b, c]) = item(one);
        table.row([units(bytes), percent(bytes, all), name, a, b, c]);
    }
    let _ = write!(text, "\n{what}: {}, {}\n{}", number(list.count as u64), units(list.bytes), table.text());
    more(text, list);
}

fn more<T>(text: &mut String, list: &List<T>) {
    if list.count > list.largest.len() {
        let _ = writeln!(text, "  … and {} smaller", number((list.count - list.largest.len()) as u64));
    }
}

fn percent(bytes: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * bytes as f64 / all.max(1) as f64)
}

/// Bytes in the unit that makes them short.
fn units(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = UNITS.iter();
    let mut name = unit.next();
    // What would be shown as 1024.0 is 1.0 of the next.
    while value >= 1_023.95 && unit.len() > 0 {
        value /= 1_024.0;
        name = unit.next();
    }
    format!("{value:.1} {}", name.unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown = [0, 1_023, 1_024, 1_048_524, 1_048_525, 5 << 30].map(units);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "1.0 MiB", "5.0 GiB"]);
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3 %".to_owned(), "0.0 %".to_owned()));
    }
}
