//! What becomes of callbacks: the options of every verb that treats them.

use std::path::{Path, PathBuf};

use crate::callbacks::{CallbackOptions, Policies, Policy, Rule, Table};
use crate::error::{Error, Result};
use crate::files::quoted;
use crate::visible::visible_lines;
use clap::Args;

use super::io::{self, Input, is_dash};
use super::{refuse_arguments, suggested};

#[derive(Debug, Args)]
#[command(next_help_heading = "Callbacks")]
pub struct CallbackOpts {
    /// The policy of the callbacks of that name; may be repeated. NAME may hold `*` and `?`. Policies: `lower`, `keep`, `strip`, `stub:zeros`, `stub:nan`,
    /// `stub:operand:K`, `stub:alias`, `host`, `unpartition`, `ffi:TARGET`, `call:EXPORT`, `refuse`
    #[arg(long = "callback", value_name = "[PLATFORM:]NAME=POLICY", value_parser = parse::<Rule>)]
    rules: Vec<Rule>,

    /// The policy of all other callbacks [default: lower]
    #[arg(long, value_name = "POLICY", value_parser = suggested::policy(), hide_possible_values = true)]
    callbacks: Option<Policy>,

    /// The policy of callbacks without a rule that the platform cannot run [default: that of `--callbacks`; `lower` then refuses]
    #[arg(long, value_name = "POLICY", value_parser = suggested::policy(), hide_possible_values = true)]
    on_unsupported: Option<Policy>,

    /// Add the platforms and targets of this file to the table of what callbacks are lowered to; see docs/callbacks.md
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

/// Reads a value of the library from an argument, hint included.
pub fn parse<T: std::str::FromStr<Err = Error>>(text: &str) -> std::result::Result<T, String> {
    text.parse().map_err(|error: Error| {
        let causes: String = error.causes().map(|cause| format!(": {cause}")).collect();
        let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        visible_lines(&format!("{error}{causes}{hint}"))
    })
}

impl CallbackOpts {
    /// Which policy each callback gets.
    pub fn policies(&self) -> Policies {
        let mut policies = Policies::default().rules(self.rules.iter().cloned());
        if let Some(policy) = &self.callbacks {
            policies = policies.otherwise(policy.clone());
        }
        if let Some(policy) = &self.on_unsupported {
            policies = policies.on_unsupported(policy.clone());
        }
        policies
    }

    /// What the library is asked for, with the exports that policies call.
    pub fn options(&self) -> Result<CallbackOptions> {
        let policies = self.policies();
        let mut options = CallbackOptions::new(policies.clone(), table(self.table.as_deref())?);
        for name in policies.called() {
            if is_dash(Path::new(name)) {
                refuse_arguments("the export that a policy calls is a file, and `-` is standard input");
            }
            options = options.export(name, &Input::open(Path::new(name))?[..]);
        }
        Ok(options)
    }
}

/// The built-in table, with what a user's file adds.
pub fn table(path: Option<&Path>) -> Result<Table> {
    let Some(path) = path else { return Ok(Table::default()) };
    let failed = |error: Error| error.context(format!("cannot read {}", quoted(path)));
    Table::default().with_user_file(&io::read_text(path)?).map_err(failed)
}
