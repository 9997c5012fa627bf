//! `jaxprism man`: the help texts as manual pages.

use std::io::{self as stdio, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::files::Files;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::{Cli, io, refuse_arguments};

const EXAMPLES: &str = "\
Examples:
  jaxprism man -o ~/.local/share/man/man1      jaxprism.1, jaxprism-split.1, …
  jaxprism man split | man -l -                a page without installing it";

/// Write manual pages
#[derive(Debug, Args)]
#[command(after_help = super::after_help(EXAMPLES))]
pub struct Opts {
    /// Print the page of this verb; without one, that of jaxprism itself
    #[arg(value_name = "VERB", conflicts_with = "output")]
    verb: Option<String>,

    /// Write all pages into this directory, which is made if missing
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Replace pages that exist
    #[arg(long, requires = "output")]
    force: bool,
}

impl Opts {
    /// Writes.
    pub fn run(&self) -> Result<ExitCode> {
        let failed = |error: stdio::Error| Error::bug(format!("no manual page: {error}"));
        let mut command = Cli::command();
        command.build();
        let verbs = || command.get_subcommands().filter(|verb| !verb.is_hide_set());
        if self.output.as_deref().is_some_and(io::is_dash) {
            refuse_arguments("all pages go into a directory; without `-o` one is printed");
        }
        let Some(directory) = &self.output else {
            let wanted = match &self.verb {
                None => Some(&command),
                Some(name) => verbs().find(|verb| verb.get_name() == name),
            };
            let Some(wanted) = wanted else {
                let names: Vec<_> = verbs().map(|verb| format!("`{}`", verb.get_name())).collect();
                refuse_arguments(&format!("there is no such verb; there are {}", names.join(", ")));
            };
            let page = page(wanted).map_err(failed)?;
            io::write_stdout(|stdout| stdout.write_all(&page))?;
            return Ok(ExitCode::SUCCESS);
        };
        let mut files = Files::default();
        for command in [&command].into_iter().chain(verbs()) {
            let name = command.get_display_name().unwrap_or(command.get_name());
            files.add(&directory.join(format!("{name}.1")), self.force, None)?;
            let page = page(command).map_err(failed)?;
            files.write(files.len() - 1, |file| file.write_all(&page))?;
        }
        files.commit()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A page: what clap knows, and the parts of the text after the help, which keep their lines.
fn page(command: &Command) -> stdio::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone().after_help(""));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    for part in after.split("\n\n") {
        match part.split_once(":\n").filter(|(title, _)| ["Examples", "Exit status"].contains(title)) {
            Some((title, lines)) => writeln!(page, ".SH {}\n.nf\n{}\n.fi", escaped(&title.to_uppercase()), escaped(lines))?,
            None => writeln!(page, ".SH NOTES\n{}", escaped(part))?,
        }
    }
    Ok(page)
}

/// Text of which no line is a request, and no character a command.
fn escaped(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\`").replace('\'', "\\(aq");
        if line.starts_with('.') { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}
