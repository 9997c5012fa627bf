//! `fold-cases`
//!
//! # What it does
//! Follows the values that the platform decides, from the marker that `resolve-platform` put in place of the index, and carries out what follows:
//! a `case` (or `if`) on such a value is replaced by its one branch, integer operations on them are computed, loops no longer carry them, functions no
//! longer take them. A function that is called with different ones is copied, once for each distinct set. An index outside the branches selects the
//! last one, as StableHLO says.
//!
//! # Before, after
//! ```mlir
//! %1 = "vhlo.case_v1"(%index) ({ return %a }, { return %b })      // %index is marked, and 1
//! %2 = func.call @f(%index, %1)
//!
//! %2 = func.call @f(%b)
//! ```
//!
//! # Leaves alone
//! A `case` on anything else, be it a constant: the user wrote it. Functions that nothing calls any more go at once, with the calls in them.
//!
//! # Refuses
//! Functions that call one another in a circle; a platform value that goes into a custom call or into an operation that is not known, where it cannot
//! be told what becomes of it.

mod arithmetic;
mod carried;
mod local;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxHashMap, FxHashSet};

use super::platform_value::{decided, is_platform_value, make, unmarked};
use super::{Changes, Options, Pass};
use crate::error::{Error, Result};
use crate::ir::{Calls, Op, Program, callee_of, constants, functions, retarget, symbol_name};

pub const PASS: Pass = Pass { name: "fold-cases", summary: "Carry out everything that the platform decides", run };

/// The operations that call a function, by its name.
type Sites<'s> = FxHashMap<Vec<u8>, Vec<Op<'s>>>;

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let mut folding = Folding { program, markers: Markers::default(), changes: Changes::default() };
    for function in program.functions()? {
        let body = function.regions().next().and_then(|region| region.first_block());
        let leading = body.into_iter().flat_map(|body| body.operations()).take_while(|operation| is_platform_value(*operation));
        folding.markers.pending.extend(leading);
    }
    loop {
        let sites = folding.functions()?;
        if !folding.mark_results(&sites)? {
            break;
        }
    }
    folding.unmark_all()?;
    Ok(folding.changes)
}

/// The markers of platform values in the program. Sets, since a branch that goes takes its markers with it.
#[derive(Default)]
struct Markers<'s> {
    /// Those whose uses are still to be looked at.
    pending: IndexSet<Op<'s>>,
    /// Those whose uses stay: of calls, whose function's turn is yet to come, and those that nothing can be done about.
    aside: IndexSet<Op<'s>>,
}

impl<'s> Markers<'s> {
    /// Erases an operation with everything inside it, markers too.
    fn erase(&mut self, operation: Op<'s>) {
        Program::walk(operation, |inner| {
            if is_platform_value(inner) {
                self.pending.swap_remove(&inner);
                self.aside.swap_remove(&inner);
            }
        });
        operation.erase();
    }
}

/// The pass under way.
struct Folding<'p, 's, 'a> {
    program: &'p Program<'s, 'a>,
    markers: Markers<'s>,
    changes: Changes,
}

impl<'s> Folding<'_, 's, '_> {
    /// Folds in every function that something reachable calls, callers first, so that all calls of a function are known when its turn comes. The
    /// others go: they may call functions whose arguments went.
    fn functions(&mut self) -> Result<Sites<'s>> {
        let calls = Calls::of(self.program)?;
        let mut names: FxHashSet<Vec<u8>> = calls.symbols.keys().map(|name| name.to_vec()).collect();
        let mut sites = Sites::default();
        for function in calls.callers_first()? {
            let name = symbol_name(function).unwrap_or_default().to_vec();
            let instances = if functions::is_private(function) && !calls.is_named_otherwise(&name) {
                match sites.get(&name).cloned() {
                    Some(own) => self.specialize(function, &own, &mut names)?,
                    None => {
                        self.changes.symbols_removed += 1;
                        self.markers.erase(function);
                        continue;
                    }
                }
            } else {
                vec![function]
            };
            self.fold()?;
            for instance in instances {
                Program::walk(instance, |operation| {
                    if let Some(callee) = callee_of(self.program, operation) {
                        sites.entry(callee).or_default().push(operation);
                    }
                });
            }
        }
        Ok(sites)
    }

    /// Lets a function and its calls go without the arguments that the platform decides. Returns the function and the copies it took.
    fn specialize(&mut self, function: Op<'s>, sites: &[Op<'s>], names: &mut FxHashSet<Vec<u8>>) -> Result<Vec<Op<'s>>> {
        let program = self.program;
        let mut groups: IndexMap<Vec<Option<i64>>, Vec<Op<'s>>> = IndexMap::new();
        for site in sites {
            let known = site.operands().map(|operand| decided(operand).filter(|_| is_scalar(program, operand))).collect();
            groups.entry(known).or_default().push(*site);
        }
        // Copies come from the function as it was, so they are made before any of them changes.
        let mut instances = vec![function];
        for _ in 1..groups.len() {
            let copy = function.duplicate();
            let name = fresh_name(symbol_name(function).unwrap_or_default(), names);
            copy.set_attribute("sym_name", program.session.factory().string(&name));
            copy.insert_after(instances[instances.len() - 1]);
            instances.push(copy);
        }
        self.changes.functions_cloned += instances.len() - 1;
        for (instance, (known, sites)) in instances.iter().zip(&groups) {
            let dropped = self.fix_arguments(*instance, known)?;
            self.changes.arguments_dropped += dropped.len();
            for site in sites {
                if !dropped.is_empty() {
                    site.set_operands(&functions::without(site.operands().collect(), &dropped));
                }
                if *instance != function {
                    retarget(program, *site, *instance);
                }
            }
        }
        Ok(instances)
    }

    /// Replaces the arguments that are known by markers and drops them. Returns their positions.
    fn fix_arguments(&mut self, function: Op<'s>, known: &[Option<i64>]) -> Result<Vec<usize>> {
        let body = function.regions().next().and_then(|region| region.first_block());
        let body = body.ok_or_else(|| Error::bug("a function without a body"))?;
        let first = body.first().ok_or_else(|| Error::bug("a function with an empty body"))?;
        let mut dropped = Vec::new();
        for (position, value) in known.iter().enumerate() {
            let Some(value) = value else { continue };
            let argument = body.argument(position);
            let marker = make(self.program, argument.r#type(), *value, None, first)?;
            argument.replace_uses(marker.result(0));
            self.markers.pending.insert(marker);
            dropped.push(position);
        }
        if !dropped.is_empty() {
            functions::drop_arguments(self.program, function, &dropped)?;
        }
        Ok(dropped)
    }

    /// Marks the results of calls whose function returns a value that the platform decides. Returns whether there were new ones.
    fn mark_results(&mut self, sites: &Sites<'s>) -> Result<bool> {
        let mut is_new = false;
        for function in self.program.functions()? {
            let Some(sites) = symbol_name(function).and_then(|name| sites.get(name)) else { continue };
            let body = function.regions().next().and_then(|region| region.first_block());
            let Some(terminator) = body.and_then(|body| body.last()) else { continue };
            for (position, value) in terminator.operands().enumerate() {
                let Some(value) = decided(value) else { continue };
                for site in sites {
                    let result = site.result(position);
                    if result.uses().any(|(user, _)| !is_platform_value(user)) {
                        self.mark(result, value)?;
                        is_new = true;
                    }
                }
            }
        }
        Ok(is_new)
    }

    /// Takes the markers away: what still uses one uses the value beside it, or a constant.
    fn unmark_all(&mut self) -> Result<()> {
        for marker in std::mem::take(&mut self.markers.aside) {
            let result = marker.result(0);
            if result.has_uses() {
                check_uses(self.program, marker)?;
                result.replace_uses(unmarked(self.program, marker)?);
            }
            marker.erase();
        }
        Ok(())
    }
}

fn is_scalar(program: &Program<'_, '_>, value: crate::ir::Value<'_>) -> bool {
    constants::integer(program.session, value.r#type()).is_some_and(|of| of.count == Some(1))
}

/// A name that no symbol has: the old one with the first free number.
fn fresh_name(name: &[u8], names: &mut FxHashSet<Vec<u8>>) -> Vec<u8> {
    let candidates = (0..).map(|number: u64| [name, format!("_{number}").as_bytes()].concat());
    let fresh = candidates.into_iter().find(|candidate| !names.contains(candidate)).unwrap_or_default();
    names.insert(fresh.clone());
    fresh
}

/// Refuses uses of which it cannot be told what becomes of the platform index in them.
fn check_uses(program: &Program<'_, '_>, marker: Op<'_>) -> Result<()> {
    for (user, _) in marker.result(0).uses() {
        let name = user.name_str();
        let is_opaque = name.starts_with("vhlo.custom_call")
            || !["vhlo.", "func.", "sdy.", "builtin.", "jaxprism."].iter().any(|own| name.starts_with(own));
        if is_opaque {
            let message = format!("the platform index goes into `{name}` at {}", program.session.place(user));
            return Err(Error::refused(message).with_hint("what that operation does with it is not known here, so it cannot be split"));
        }
    }
    Ok(())
}
