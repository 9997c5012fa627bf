//! How modules are shown as text: the options of every verb that does.

use crate::ir::assembly::{Constants, Form};
use crate::ir::text::TextOptions;
use clap::Args;

/// Which constants are written out.
#[derive(Debug, Clone, Copy)]
enum Shown {
    All,
    UpTo(usize),
}

/// Elements of a constant that are shown unless the user says otherwise.
const FEW: usize = 16;

#[derive(Debug, Args)]
#[command(next_help_heading = "Text")]
pub struct TextOpts {
    /// Constants to write out: `all`, `none`, or those of at most N elements; others are elided, or hashed in canonical text. Without this 16, but all in
    /// what `opt` writes
    #[arg(long, value_name = "all|none|N", value_parser = shown)]
    constants: Option<Shown>,

    /// Write locations
    #[arg(long)]
    locations: bool,

    /// Write this function alone
    #[arg(long, value_name = "NAME")]
    function: Option<String>,

    /// Write the StableHLO that the module stands for. Easier to read, cannot be read back
    #[arg(long)]
    stablehlo: bool,

    /// Write text for comparing: without locations, with hashes for large constants, and with names of private functions and meshes that depend on
    /// their order alone
    #[arg(long, conflicts_with_all = ["locations", "function"])]
    canonical: bool,
}

fn shown(text: &str) -> Result<Shown, String> {
    match text {
        "all" => Ok(Shown::All),
        "none" => Ok(Shown::UpTo(0)),
        _ => text.parse().map(Shown::UpTo).map_err(|_| "`all`, `none` or a number of elements".to_owned()),
    }
}

impl TextOpts {
    /// What the library is asked for, for text that is looked at.
    pub fn options(&self) -> TextOptions {
        self.with(Constants::UpTo(FEW))
    }

    /// What the library is asked for, for text that is read back.
    pub fn whole(&self) -> TextOptions {
        self.with(Constants::All)
    }

    fn with(&self, default: Constants) -> TextOptions {
        TextOptions {
            form: if self.stablehlo { Form::Stablehlo } else { Form::Vhlo },
            constants: match (self.constants, self.canonical) {
                (Some(Shown::All), _) => Constants::All,
                (Some(Shown::UpTo(0)), _) => Constants::UpTo(0),
                (Some(Shown::UpTo(most)), true) => Constants::Hashed(most),
                (Some(Shown::UpTo(most)), false) => Constants::UpTo(most),
                (None, true) => Constants::Hashed(FEW),
                (None, false) => default,
            },
            locations: self.locations,
            canonical: self.canonical,
            function: self.function.clone(),
        }
    }
}
