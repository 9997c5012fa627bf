#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]
#![doc = include_str!("fold_cases.md")]

mod arithmetic;
mod carried;
mod local;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::{FxHashMap, FxHashSet};

use super::platform_value::{decided, is_platform_value, is_sharding_call, make, unmarked};
use super::prune::is_removable;
use super::{Changes, Options, Pass};
use crate::error::{Error, Result};
use crate::ir::{Calls, Op, Program, callee_of, constants, functions, is_call, retarget, symbol_name};

pub const PASS: Pass = Pass {
    name: "fold-cases",
    summary: "Carry out everything that the platform decides",
    doc: include_str!("fold_cases.md"),
    in_split: true,
    run,
};

/// The operations that call a function, by its name.
type Sites<'s> = FxHashMap<Vec<u8>, Vec<Op<'s>>>;

fn run(program: &Program<'_, '_>, _options: &Options) -> Result<Changes> {
    let mut folding =
        Folding { program, markers: Markers::default(), changes: Changes::default(), loop_looks: FxHashMap::default(), budget: None };
    for function in program.functions()? {
        let body = functions::body(function);
        let leading = body.into_iter().flat_map(|body| body.operations()).take_while(|operation| is_platform_value(*operation));
        folding.markers.pending.extend(leading);
    }
    for round in 0.. {
        if round == MOST_ROUNDS {
            return Err(Error::unsupported(format!(
                "what the platform decides goes back and forth between functions more than {MOST_ROUNDS} times"
            )));
        }
        let calls = folding.functions()?;
        let mut again = calls.may_know_more && round == 0;
        again |= folding.mark_results(&calls)?;
        again |= folding.look_at_loops_again()?;
        if !again {
            break;
        }
    }
    folding.unmark_all()?;
    Ok(folding.changes)
}

/// How often all functions are gone through. JAX's exports take one round, two where a function returns what the platform decides.
const MOST_ROUNDS: usize = 32;

/// How many operations copies of functions may have together: JAX's own nested exports need few, and a small file could ask for any number.
fn copy_budget(program: &Program<'_, '_>) -> usize {
    let mut operations = 0;
    Program::walk(program.module, |_| operations += 1);
    200_000 + 4 * operations
}

/// The markers of platform values in the program. Sets, since a branch that goes takes its markers with it.
#[derive(Default)]
struct Markers<'s> {
    /// Those whose uses are still to be looked at.
    pending: IndexSet<Op<'s>>,
    /// Those whose uses stay: of calls, whose function's turn is yet to come, and those that nothing can be done about.
    aside: IndexSet<Op<'s>>,
    /// Calls that went with a branch since the calls were last collected.
    erased_calls: FxHashSet<Op<'s>>,
}

impl<'s> Markers<'s> {
    /// Erases an operation with everything inside it, markers too.
    fn erase(&mut self, operation: Op<'s>) {
        Program::walk(operation, |inner| {
            if is_platform_value(inner) {
                self.pending.swap_remove(&inner);
                self.aside.swap_remove(&inner);
            } else if is_call(inner.name_str()) {
                self.erased_calls.insert(inner);
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
    /// How often each loop was looked at in this round.
    loop_looks: FxHashMap<Op<'s>, usize>,
    /// How many operations copies of functions may still take, once there is one.
    budget: Option<usize>,
}

/// The calls of one round.
struct RoundCalls<'s> {
    /// The functions that something reachable calls, callers first.
    functions: Vec<Op<'s>>,
    /// Who calls them.
    sites: Sites<'s>,
    /// Whether something that names functions otherwise may have gone, so that another round knows more of them.
    may_know_more: bool,
}

impl<'s> Folding<'_, 's, '_> {
    /// Folds in every function that something reachable calls, callers first, so that all calls of a function are known when its turn comes. The
    /// others go: they may call functions whose arguments went.
    fn functions(&mut self) -> Result<RoundCalls<'s>> {
        let calls = Calls::of(self.program)?;
        let mut names = Names { taken: calls.symbols.keys().map(|name| name.to_vec()).collect(), next: FxHashMap::default() };
        let (mut sites, mut live) = (Sites::default(), Vec::new());
        let mut named_otherwise = false;
        let cases_before = self.changes.cases_resolved;
        self.loop_looks.clear();
        for function in calls.callers_first()? {
            let name = symbol_name(function).unwrap_or_default().to_vec();
            named_otherwise |= calls.is_named_otherwise(&name);
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
            live.extend_from_slice(&instances);
            for instance in instances {
                Program::walk(instance, |operation| {
                    if let Some(callee) = callee_of(self.program, operation) {
                        sites.entry(callee).or_default().push(operation);
                    }
                });
            }
        }
        let may_know_more = named_otherwise && self.changes.cases_resolved > cases_before;
        Ok(RoundCalls { functions: live, sites, may_know_more })
    }

    /// Lets a function and its calls go without the arguments that the platform decides. Returns the function and the copies it took.
    fn specialize(&mut self, function: Op<'s>, sites: &[Op<'s>], names: &mut Names) -> Result<Vec<Op<'s>>> {
        let program = self.program;
        let mut groups: IndexMap<Vec<Option<i64>>, Vec<Op<'s>>> = IndexMap::new();
        for site in sites {
            let known = site.operands().map(|operand| decided(operand).filter(|_| is_scalar(program, operand))).collect();
            groups.entry(known).or_default().push(*site);
        }
        // Copies come from the function as it was, so they are made before any of them changes.
        let mut instances = vec![function];
        if groups.len() > 1 {
            self.charge(function, groups.len() - 1)?;
        }
        for _ in 1..groups.len() {
            let copy = function.duplicate();
            let name = names.fresh(symbol_name(function).unwrap_or_default());
            copy.set_attribute("sym_name", program.session.factory().string(&name));
            copy.insert_after(instances[instances.len() - 1]);
            // Markers that an earlier round set aside were copied as well.
            Program::walk(copy, |operation| {
                if is_platform_value(operation) {
                    self.markers.pending.insert(operation);
                }
            });
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

    /// Takes the operations of some copies of a function from the budget.
    fn charge(&mut self, function: Op<'s>, copies: usize) -> Result<()> {
        let mut operations = 0usize;
        Program::walk(function, |_| operations += 1);
        let budget = self.budget.unwrap_or_else(|| copy_budget(self.program));
        let left = budget.checked_sub(operations.saturating_mul(copies));
        self.budget = Some(left.ok_or_else(|| {
            let name = String::from_utf8_lossy(symbol_name(function).unwrap_or_default()).into_owned();
            let message = format!("function `{name}` of {operations} operations is called with {} different platform values", copies + 1);
            Error::unsupported(format!("{message}, and copies for all of them are more than this version makes"))
        })?);
        Ok(())
    }

    /// Replaces the arguments that are known by markers and drops them. Returns their positions.
    fn fix_arguments(&mut self, function: Op<'s>, known: &[Option<i64>]) -> Result<Vec<usize>> {
        let body = functions::body(function);
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

    /// Marks the results of calls whose function returns a value that the platform decides, callees first. Returns whether there were new ones.
    fn mark_results(&mut self, calls: &RoundCalls<'s>) -> Result<bool> {
        let mut is_new = false;
        self.markers.erased_calls.clear();
        for function in calls.functions.iter().rev() {
            let Some(sites) = symbol_name(*function).and_then(|name| calls.sites.get(name)) else { continue };
            let body = functions::body(*function);
            let Some(terminator) = body.and_then(|body| body.last()) else { continue };
            let returned: Vec<_> = terminator.operands().map(decided).collect();
            for site in sites {
                for (position, value) in returned.iter().enumerate() {
                    let Some(value) = value.filter(|_| !self.markers.erased_calls.contains(site)) else { continue };
                    let result = site.result(position);
                    if result.uses().any(|(user, _)| !is_platform_value(user)) {
                        self.mark(result, value)?;
                        is_new = true;
                    }
                }
            }
            self.fold()?;
        }
        Ok(is_new)
    }

    /// Looks again at what loops carry, now that more of their bodies is known. Returns whether something came of it.
    fn look_at_loops_again(&mut self) -> Result<bool> {
        let is_carried = |marker: &Op<'s>| marker.result(0).uses().any(|(user, _)| user.is("vhlo.while_v1"));
        let carried: Vec<_> = self.markers.aside.iter().copied().filter(is_carried).collect();
        let before = self.changes;
        for marker in carried {
            self.markers.aside.swap_remove(&marker);
            self.markers.pending.insert(marker);
        }
        self.loop_looks.clear();
        self.fold()?;
        Ok(self.changes != before)
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

/// The names of symbols.
struct Names {
    taken: FxHashSet<Vec<u8>>,
    /// Where to go on looking for a free number, by name.
    next: FxHashMap<Vec<u8>, u64>,
}

impl Names {
    /// A name that no symbol has: the old one with a free number.
    fn fresh(&mut self, name: &[u8]) -> Vec<u8> {
        let number = self.next.entry(name.to_vec()).or_default();
        loop {
            let candidate = [name, format!("_{number}").as_bytes()].concat();
            *number += 1;
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// Refuses uses of which it cannot be told what becomes of the platform index in them.
fn check_uses(program: &Program<'_, '_>, marker: Op<'_>) -> Result<()> {
    for (user, _) in marker.result(0).uses() {
        let name = user.name_str();
        let is_opaque = name.starts_with("vhlo.custom_call")
            || !["vhlo.", "func.", "sdy.", "builtin.", "jaxprism."].iter().any(|own| name.starts_with(own));
        let is_dead = user.results().all(|result| !result.has_uses()) && is_removable(program, user);
        if is_opaque && !is_dead && !is_sharding_call(program, user) {
            let message = format!("the platform index goes into `{name}` at {}", program.session.place(user));
            return Err(Error::refused(message).with_hint("what that operation does with it is not known here, so it cannot be split"));
        }
    }
    Ok(())
}
