//! The passes, and the pipeline that runs them in melior's pass manager.

mod adapter;
mod call_callbacks;
mod drop_polymorphism;
mod drop_tokens;
mod fold_cases;
mod locations;
mod lower_callbacks;
mod manual;
pub mod placeholders;
mod platform_value;
mod prune;
mod redact_paths;
mod resolve_platform;
mod strip_callbacks;
mod strip_locations;
mod strip_sdy;
mod stub_callbacks;
mod tidy_casts;
mod unlower_callbacks;

use std::ops::AddAssign;
use std::time::Duration;

use serde::Serialize;

pub use adapter::{Observer, run_pipeline};
pub(crate) use drop_polymorphism::{POLYMORPHISM, declare_polymorphism};

use crate::callbacks::{Array, CallbackOptions};
use crate::container::Platform;
use crate::error::Result;
use crate::ir::Program;

/// A pass: a row and a function.
#[derive(Debug)]
pub struct Pass {
    /// Its name, as on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// All about it, as Markdown with the headings *What it does*, *Before, after*, *Leaves alone* and *Refuses*.
    pub doc: &'static str,
    /// Whether `split` runs it over every module for several platforms. It runs others only when it is asked to.
    pub in_split: bool,
    /// Does it.
    pub run: fn(&Program<'_, '_>, &Options) -> Result<Changes>,
}

/// All passes: those that `split` always runs, in that order, and then the others.
pub static PASSES: [Pass; 14] = [
    resolve_platform::PASS,
    fold_cases::PASS,
    tidy_casts::PASS,
    prune::PASS,
    drop_polymorphism::PASS,
    strip_callbacks::PASS,
    stub_callbacks::PASS,
    call_callbacks::PASS,
    drop_tokens::PASS,
    lower_callbacks::PASS,
    unlower_callbacks::PASS,
    redact_paths::PASS,
    strip_locations::PASS,
    strip_sdy::PASS,
];

/// The passes that `split` runs over every module for several platforms, in order.
pub fn split_pipeline() -> Vec<&'static Pass> {
    PASSES.iter().filter(|pass| pass.in_split).collect()
}

/// The pass of that name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|pass| pass.name == name)
}

/// What passes are told.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The number of the platform to resolve, among those of the export.
    pub platform_index: Option<i64>,
    /// The platform that callbacks are for.
    pub platform: Option<Platform>,
    /// The platforms of the export, which rules for callbacks may name.
    pub platforms: Vec<Platform>,
    /// What is to become of callbacks.
    pub callbacks: CallbackOptions,
    /// Which tokens of `main` are to go, by their numbers; all that order nothing if `None`.
    pub dropped_tokens: Option<Vec<usize>>,
    /// The functions that were linked into the module to be called instead of callbacks.
    pub functions: Vec<CalledFunction>,
}

/// A function of another export that is called instead of callbacks.
#[derive(Debug, Clone)]
pub struct CalledFunction {
    /// What the policy calls the export.
    pub name: String,
    /// Its symbol in the module; one for each call where dimensions are known only at run time.
    pub symbols: Vec<Vec<u8>>,
    /// Whether it has dimensions that are known only at run time.
    pub is_dynamic: bool,
    /// How many devices it is for.
    pub devices: u32,
    /// The numbers of the arguments of the export that the function takes.
    pub kept: Vec<u16>,
    /// The arguments of the export: the path and the type of each.
    pub inputs: Vec<(String, Array)>,
    /// The results of the export, alike.
    pub results: Vec<(String, Array)>,
}

impl Options {
    /// Options to resolve the platform of that number.
    pub fn for_platform(index: i64) -> Self {
        Self { platform_index: Some(index), ..Self::default() }
    }
}

/// What a pass changed, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// `case` operations that were replaced by one of their branches.
    pub cases_resolved: usize,
    /// Other operations on the platform index that were replaced by what they result in.
    pub operations_folded: usize,
    /// Arguments and loop-carried values that the platform decides, and that went.
    pub arguments_dropped: usize,
    /// Copies of functions that are called with different platform indices.
    pub functions_cloned: usize,
    /// Symbols that nothing reaches any more: functions and meshes.
    pub symbols_removed: usize,
    /// Operations that became dead.
    pub operations_removed: usize,
    /// Conversion casts that went, moved, or got another location.
    pub casts_tidied: usize,
    /// Attributes of the module that were set anew.
    pub attributes_set: usize,
    /// Locations of operations and of arguments of blocks that became unknown.
    pub locations_stripped: usize,
    /// Calls of callbacks that were lowered for the platform.
    pub callbacks_lowered: usize,
    /// Calls of callbacks that became host callbacks, or that run once for all shards now.
    pub callbacks_adapted: usize,
    /// Calls of callbacks that got a target of the user's own.
    pub callbacks_retargeted: usize,
    /// Calls of callbacks that were erased.
    pub callbacks_stripped: usize,
    /// Calls of callbacks whose results were replaced, used or not.
    pub callbacks_stubbed: usize,
    /// Those of them whose results are used, so that the program computes something else.
    pub results_stubbed: usize,
    /// Calls of callbacks that became calls of a function.
    pub callbacks_called: usize,
    /// Calls of lowered callbacks that became placeholders again.
    pub callbacks_unlowered: usize,
    /// Tokens that functions, loops and branches passed on for nothing.
    pub tokens_dropped: usize,
    /// File names, and names with file names in them, that lost directories; one that stands in many places counts once.
    pub paths_redacted: usize,
    /// Attributes with shardings that went.
    pub shardings_stripped: usize,
}

impl Changes {
    /// Whether more changed than attributes of the module and locations.
    pub fn touch_operations(&self) -> bool {
        Self { attributes_set: 0, ..*self }.touch_uses()
    }

    /// Whether more changed than locations, and than the attributes of callbacks: values are used elsewhere, or in another order.
    pub fn touch_uses(&self) -> bool {
        let (locations_stripped, paths_redacted) = (0, 0);
        let (callbacks_lowered, callbacks_adapted, callbacks_retargeted, callbacks_unlowered) = (0, 0, 0, 0);
        Self {
            locations_stripped,
            paths_redacted,
            callbacks_lowered,
            callbacks_adapted,
            callbacks_retargeted,
            callbacks_unlowered,
            ..*self
        } != Self::default()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.cases_resolved += other.cases_resolved;
        self.operations_folded += other.operations_folded;
        self.arguments_dropped += other.arguments_dropped;
        self.functions_cloned += other.functions_cloned;
        self.symbols_removed += other.symbols_removed;
        self.operations_removed += other.operations_removed;
        self.casts_tidied += other.casts_tidied;
        self.attributes_set += other.attributes_set;
        self.callbacks_lowered += other.callbacks_lowered;
        self.callbacks_adapted += other.callbacks_adapted;
        self.callbacks_retargeted += other.callbacks_retargeted;
        self.callbacks_stripped += other.callbacks_stripped;
        self.callbacks_stubbed += other.callbacks_stubbed;
        self.results_stubbed += other.results_stubbed;
        self.callbacks_called += other.callbacks_called;
        self.callbacks_unlowered += other.callbacks_unlowered;
        self.tokens_dropped += other.tokens_dropped;
        self.locations_stripped += other.locations_stripped;
        self.paths_redacted += other.paths_redacted;
        self.shardings_stripped += other.shardings_stripped;
    }
}

/// What became of one pass in a pipeline.
#[derive(Debug, Clone)]
pub struct PassRun {
    /// The pass.
    pub name: &'static str,
    /// What it changed.
    pub changes: Changes,
    /// How long it took, our verifier included.
    pub time: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_has_the_four_headings_in_order() {
        for pass in &PASSES {
            let headings: Vec<_> = pass.doc.lines().filter_map(|line| line.strip_prefix("# ")).collect();
            assert_eq!(headings, ["What it does", "Before, after", "Leaves alone", "Refuses"], "{}", pass.name);
            assert!(pass.doc.starts_with(&format!("`{}`\n", pass.name)), "{}", pass.name);
        }
    }

    #[test]
    fn a_pass_is_found_by_its_name() {
        for pass in &PASSES {
            assert!(find(pass.name).is_some_and(|found| std::ptr::eq(found, pass)), "{}", pass.name);
        }
        assert!(find("no-such-pass").is_none());
    }
}
