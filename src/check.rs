//! Whether a file runs wherever its platform does: without Python callbacks, without what is bound to a process, and with custom calls that JAX
//! guarantees to be stable.

use std::str::FromStr;

use serde::Serialize;
use wildmatch::WildMatch;

use crate::bytecode::{Bytecode, MAGIC};
use crate::callbacks::{CallbackOptions, Policies, Policy, Table, TargetClass, process_binding};
use crate::container::{Exported, Platform};
use crate::error::{Error, Result};
use crate::inspect::{Site, Texts, sites_of_level};
use crate::source::read_module;
use crate::split::{SplitOptions, split};

/// What [`check`] is asked for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Look at what these platforms run, each on its own; at everything in the file if empty.
    pub platforms: Vec<Platform>,
    /// Custom calls that are not stable and all the same allowed.
    pub targets_allowed: TargetsAllowed,
}

impl CheckOptions {
    /// Looks at what these platforms run.
    pub fn platforms(mut self, platforms: impl IntoIterator<Item = Platform>) -> Self {
        self.platforms = platforms.into_iter().collect();
        self
    }

    /// Allows custom calls that are not stable.
    pub fn targets_allowed(mut self, targets: TargetsAllowed) -> Self {
        self.targets_allowed = targets;
        self
    }
}

/// Targets of custom calls that are allowed though JAX does not guarantee that newer versions run them.
///
/// Read from text with one target per line, `*` for any characters and `?` for one of them. Empty lines and lines that begin with `#` mean
/// nothing, nor does what follows a blank and `#`. Python callbacks, and what is bound to a process, cannot be allowed.
#[derive(Debug, Clone, Default)]
pub struct TargetsAllowed(Vec<WildMatch>);

impl TargetsAllowed {
    /// Whether a target is allowed.
    pub fn matches(&self, target: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(target))
    }
}

impl FromStr for TargetsAllowed {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut patterns = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let comment = line.match_indices('#').map(|(at, _)| line.split_at(at).0).find(|before| {
                let last = before.chars().next_back();
                last.is_none_or(char::is_whitespace)
            });
            let pattern = comment.unwrap_or(line).trim();
            let reason = match TargetClass::of(pattern) {
                TargetClass::Placeholder => Some("it is a placeholder for a Python callback"),
                _ => process_binding(pattern),
            };
            if let Some(reason) = reason {
                return Err(Error::refused(format!("line {}: `{pattern}` cannot be allowed: {reason}", number + 1)));
            }
            if !pattern.is_empty() {
                patterns.push(WildMatch::new(pattern));
            }
        }
        Ok(Self(patterns))
    }
}

/// What [`check`] found.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Whether there is nothing to complain about.
    pub passed: bool,
    /// The platforms that were looked at, each on its own; none where everything in the file was.
    pub platforms: Vec<String>,
    /// What there is to complain about: by platform, by level, and in textual order, `main` first.
    pub sites: Vec<Site>,
}

/// Looks for Python callbacks, placeholders or lowered, for operations that are bound to the process that wrote them, and for custom calls that JAX
/// does not guarantee to be stable, in an export or in a module alone in MLIR bytecode.
///
/// With platforms, the export is split for each of them, and the outputs are looked at.
///
/// # Errors
/// - [`ErrorKind::Format`](crate::ErrorKind::Format): the input is malformed, or neither of the two.
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): the input is newer, or larger, than this version handles.
/// - [`ErrorKind::Refused`](crate::ErrorKind::Refused): a platform that the export does not have, or that it cannot be split for.
pub fn check(input: &[u8], options: &CheckOptions) -> Result<Check> {
    let mut texts = Texts::new();
    let mut sites = Vec::new();
    let mut platforms = Vec::new();
    if options.platforms.is_empty() {
        sites = sites_of(input, options, &mut texts)?;
    } else if input.starts_with(MAGIC) {
        return Err(
            Error::refused("a module alone does not say which platforms it is for").with_hint("without platforms, all of it is checked")
        );
    } else {
        let kept = CallbackOptions::new(Policies::default().otherwise(Policy::Keep), Table::default());
        let chosen = SplitOptions::default().platforms(options.platforms.iter().cloned()).callbacks(kept);
        for (platform, output) in split(input, &chosen)?.outputs {
            let found = sites_of(&output.to_vec(), options, &mut texts)?;
            sites.extend(found.into_iter().map(|site| Site { platform: Some(platform.to_string()), ..site }));
            platforms.push(platform.to_string());
        }
    }
    Ok(Check { passed: sites.is_empty(), platforms, sites })
}

fn sites_of(input: &[u8], options: &CheckOptions, texts: &mut Texts) -> Result<Vec<Site>> {
    let is_allowed = |target: &str| options.targets_allowed.matches(target);
    if input.starts_with(MAGIC) {
        return sites_of_level(0, None, &Bytecode::read(input, 0)?, &is_allowed, texts);
    }
    let exported = Exported::read(input)?;
    let mut sites = Vec::new();
    for (level, exported) in exported.levels().enumerate() {
        sites.extend(sites_of_level(level, Some(exported), &read_module(exported, level, input)?, &is_allowed, texts)?);
    }
    Ok(sites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_targets_has_globs_and_comments() {
        let allowed: TargetsAllowed = "# ours\n\n  my_kernel   # the fast one\nvendor.*\n__a#b\r\n".parse().unwrap();
        for (target, is_allowed) in [
            ("my_kernel", true),
            ("vendor.gemm", true),
            ("__a#b", true),
            ("my_kernel2", false),
            ("", false),
            ("# ours", false),
            ("ours", false),
        ] {
            assert_eq!(allowed.matches(target), is_allowed, "{target}");
        }
        assert!(!TargetsAllowed::default().matches("anything"));
    }

    #[test]
    fn python_callbacks_cannot_be_allowed_by_name() {
        for target in ["jaxprism_callback", "xla_ffi_python_cpu_callback", "xla_ffi_python_*", "CustomSPMDPartitioning"] {
            let error = format!("fine\n{target}").parse::<TargetsAllowed>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("line 2: `{target}` cannot be allowed: it ")), "{error}");
        }
    }
}
