//! `jaxprism explain`: what a message means and what to do about it, or the documentation of a pass.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::explain::{Answer, Entry, entries, explain};
use crate::passes::PASSES;
use clap::Args;

use super::table::Table;
use super::{io, refuse_arguments, suggested};

/// Most bytes of standard input that are read.
const MOST: u64 = 1 << 24;

const EXAMPLES: &str = "\
Examples:
  jaxprism explain 'Execution supplied 1 arguments but compiled program expected 2'
  jaxprism explain host_callbacks      a part of the message is enough
  python export.py 2>&1 | jaxprism explain -
  jaxprism explain refused             a kind of error
  jaxprism explain fold-cases          a pass
  jaxprism explain                     everything there is";

/// Explain a message of JAX, XLA or jaxprism, or a pass
///
/// Says what the message means, why it comes, and what to do about it. Case, numbers, names and punctuation need not be right. Without an argument it lists all
/// messages and passes that it knows; they are in docs/messages.md as well.
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// The message or a part of it, or the name of a pass; `-` is standard input
    #[arg(value_name = "MESSAGE|PASS", value_parser = suggested::pass(suggested::text), hide_possible_values = true)]
    what: Vec<String>,
}

impl Opts {
    /// Finds and prints.
    pub fn run(&self) -> Result<ExitCode> {
        let asked = match &self.what[..] {
            [] => {
                io::print(&list(&entries()))?;
                return Ok(ExitCode::SUCCESS);
            }
            [dash] if dash == "-" => read()?,
            words => words.join(" "),
        };
        let text = match explain(&asked) {
            Answer::Found(entry, also) => format!("{}{}", section(&entry), others("It holds these messages as well:", &also)),
            Answer::Several(entries) => others("It is a part of these messages:", &entries),
            Answer::Unknown(nearest) => {
                let near = others("The nearest messages and passes are", &nearest);
                refuse_arguments(&format!("nothing is known about it\n{near}\n`jaxprism explain` lists all there is"));
            }
        };
        io::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read() -> Result<String> {
    if std::io::stdin().is_terminal() {
        refuse_arguments("no message: standard input is a terminal");
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MOST).read_to_end(&mut bytes).map_err(|error| Error::io("cannot read standard input", &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages and what there is to say; a pass's document as it is.
fn section(entry: &Entry) -> String {
    if entry.is_pass {
        return entry.text.to_owned();
    }
    let messages: String = entry.messages.iter().map(|message| format!("{message}\n")).collect();
    format!("{messages}\n{}\n", entry.text)
}

fn others(head: &str, entries: &[Entry]) -> String {
    let lines: String = entries.iter().flat_map(|entry| &entry.messages).map(|message| format!("  {message}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{head}\n{lines}") }
}

fn list(entries: &[Entry]) -> String {
    let messages = others("Messages", &entries.iter().filter(|entry| !entry.is_pass).cloned().collect::<Vec<_>>());
    let mut passes = Table::new(2, &[]);
    PASSES.iter().for_each(|pass| passes.row([pass.name.to_owned(), pass.summary.to_owned()]));
    format!("{}\nPasses\n{}", messages.trim_start(), passes.text())
}
