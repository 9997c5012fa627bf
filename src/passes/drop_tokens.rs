#![doc = include_str!("drop_tokens.md")]

use rustc_hash::FxHashMap;

use super::placeholders::is_token;
use super::{Changes, Options, Pass};
use crate::error::{Error, Result};
use crate::ir::functions::{self, body, rebuild_without, without};
use crate::ir::{Block, Calls, Definition, Op, Program, Value, callee_of, is_call, symbol_name};

pub const PASS: Pass =
    Pass { name: "drop-tokens", summary: "Take away tokens that order nothing", doc: include_str!("drop_tokens.md"), in_split: false, run };

/// What JAX calls the function that does the work where `main` has tokens or symbolic dimensions.
const WRAPPED: &[u8] = b"_wrapped_jax_export_main";

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let calls = Calls::of(program)?;
    let mut dropping = Dropping { program, sites: FxHashMap::default(), dropped: 0, lost_tokens: false };
    Program::walk(program.module, |operation| {
        if is_call(operation.name_str()) {
            dropping.sites.entry(callee_of(program, operation).unwrap_or_default()).or_default().push(operation);
        }
    });
    // Callees first: what a call only passes on is known when its caller's turn comes.
    for function in calls.callers_first()?.into_iter().rev() {
        dropping.simplify(function)?;
        let name = symbol_name(function).unwrap_or_default().to_vec();
        let is_own = functions::is_private(function) && !calls.is_named_otherwise(&name);
        if is_own {
            dropping.drop_from_function(function, &name)?;
        } else if name == b"main" {
            dropping.drop_from_main(function, options)?;
        }
    }
    let symbols_removed = usize::from(dropping.lost_tokens && unwrap_main(program, &calls)?);
    Ok(Changes { tokens_dropped: dropping.dropped, symbols_removed, ..Changes::default() })
}

/// The pass under way.
struct Dropping<'p, 's, 'a> {
    program: &'p Program<'s, 'a>,
    /// The calls of each function, by its name.
    sites: FxHashMap<Vec<u8>, Vec<Op<'s>>>,
    dropped: usize,
    /// Whether `main` had tokens, and has none any more.
    lost_tokens: bool,
}

impl<'s> Dropping<'_, 's, '_> {
    /// Drops tokens that loops and branches only pass on, the innermost first.
    fn simplify(&mut self, function: Op<'s>) -> Result<()> {
        let mut operations = Vec::new();
        Program::walk(function, |operation| {
            if matches!(operation.name_str(), "vhlo.while_v1" | "vhlo.case_v1" | "vhlo.if_v1") {
                operations.push(operation);
            }
        });
        for operation in operations.into_iter().rev() {
            if operation.is("vhlo.while_v1") { self.drop_from_loop(operation)? } else { self.drop_from_branches(operation)? }
        }
        Ok(())
    }

    fn is_token(&self, value: Value<'s>) -> bool {
        is_token(self.program.session, value.r#type())
    }

    fn drop_from_loop(&mut self, operation: Op<'s>) -> Result<()> {
        let blocks: Vec<_> = operation.regions().filter_map(|region| region.first_block()).collect();
        let [condition, body] = blocks[..] else { return Ok(()) };
        let Some(terminator) = body.last().filter(|last| last.operand_count() == operation.operand_count()) else { return Ok(()) };
        let carried = operation.result_count().min(body.argument_count()).min(condition.argument_count());
        let is_passed_on = |position: &usize| {
            let is_returned = terminator.operand(*position) == body.argument(*position);
            is_returned && self.is_token(operation.operand(*position))
        };
        let positions: Vec<usize> = (0..carried).filter(is_passed_on).collect();
        for position in &positions {
            let token = operation.operand(*position);
            operation.result(*position).replace_uses(token);
            condition.argument(*position).replace_uses(token);
            body.argument(*position).replace_uses(token);
        }
        if positions.is_empty() {
            return Ok(());
        }
        terminator.set_operands(&without(terminator.operands().collect(), &positions));
        for block in [condition, body] {
            positions.iter().rev().for_each(|position| block.erase_argument(*position));
        }
        rebuild_without(self.program.session, operation, &positions, &positions)?;
        self.dropped += positions.len();
        Ok(())
    }

    fn drop_from_branches(&mut self, operation: Op<'s>) -> Result<()> {
        let blocks: Vec<Block<'s>> = operation.regions().filter_map(|region| region.first_block()).collect();
        let terminators: Vec<Op<'s>> = blocks.iter().filter_map(|block| block.last()).collect();
        if terminators.len() != operation.region_count() || terminators.iter().any(|last| last.operand_count() != operation.result_count())
        {
            return Ok(());
        }
        let passed_on = |position: usize| {
            let mut returned = terminators.iter().map(|terminator| terminator.operand(position));
            let first = returned.next().filter(|first| self.is_token(*first) && !is_inside(*first, operation))?;
            returned.all(|other| other == first).then_some((position, first))
        };
        let passed_on: Vec<(usize, Value<'s>)> = (0..operation.result_count()).filter_map(passed_on).collect();
        if passed_on.is_empty() {
            return Ok(());
        }
        let positions: Vec<usize> = passed_on.iter().map(|(position, _)| *position).collect();
        passed_on.iter().for_each(|(position, token)| operation.result(*position).replace_uses(*token));
        for terminator in terminators {
            terminator.set_operands(&without(terminator.operands().collect(), &positions));
        }
        rebuild_without(self.program.session, operation, &[], &positions)?;
        self.dropped += positions.len();
        Ok(())
    }

    /// The arguments that are tokens and that the function only returns, each with the result.
    fn passed_on(&self, function: Op<'s>) -> Vec<(usize, usize)> {
        let Some((block, terminator)) = body(function).and_then(|block| Some((block, block.last()?))) else { return Vec::new() };
        let argument = |value: Value<'s>| match value.definition() {
            Definition::Argument(owner, argument) if owner == block && self.is_token(value) => Some(argument),
            _ => None,
        };
        terminator.operands().enumerate().filter_map(|(result, value)| Some((argument(value)?, result))).collect()
    }

    fn drop_from_function(&mut self, function: Op<'s>, name: &[u8]) -> Result<()> {
        let passed_on = self.passed_on(function);
        let Some(block) = body(function).filter(|_| !passed_on.is_empty()) else { return Ok(()) };
        let results: Vec<usize> = passed_on.iter().map(|(_, result)| *result).collect();
        functions::drop_results(self.program, function, &results)?;
        let mut unused: Vec<usize> = passed_on.iter().map(|(argument, _)| *argument).collect();
        unused.sort_unstable();
        unused.dedup();
        unused.retain(|argument| !block.argument(*argument).has_uses());
        functions::drop_arguments(self.program, function, &unused)?;
        for site in self.sites.get_mut(name).into_iter().flatten() {
            for (argument, result) in &passed_on {
                site.result(*result).replace_uses(site.operand(*argument));
            }
            *site = rebuild_without(self.program.session, *site, &unused, &results)?;
        }
        self.dropped += results.len();
        Ok(())
    }

    fn drop_from_main(&mut self, main: Op<'s>, options: &Options) -> Result<()> {
        let Some(block) = body(main) else { return Ok(()) };
        let passed_on = self.passed_on(main);
        let tokens = block.arguments().enumerate().filter(|(_, argument)| self.is_token(*argument)).map(|(position, _)| position);
        let is_only_passed_on = |argument: usize| {
            let returned = passed_on.iter().filter(|(passed, _)| *passed == argument).count();
            returned == 1 && block.argument(argument).uses().count() == 1
        };
        let mut chosen = Vec::new();
        for (number, argument) in tokens.enumerate() {
            let is_wanted = options.dropped_tokens.as_ref().map(|dropped| dropped.contains(&number));
            match (is_wanted, is_only_passed_on(argument)) {
                (Some(true) | None, true) => chosen.push(argument),
                (Some(true), false) => {
                    let user = block.argument(argument).uses().map(|(user, _)| user).find(|user| !user.is("func.return"));
                    let user = user.map_or_else(String::new, |user| {
                        format!(": `{}` at {} uses it", user.name_str(), self.program.session.place(user))
                    });
                    let message = format!("token {number} of `main` orders callbacks that are all to go, and something else{user}");
                    return Err(Error::refused(message).with_hint("policy `keep` leaves the callbacks and their order"));
                }
                _ => {}
            }
        }
        let mut results: Vec<usize> =
            passed_on.iter().filter(|(argument, _)| chosen.contains(argument)).map(|(_, result)| *result).collect();
        results.sort_unstable();
        functions::drop_results(self.program, main, &results)?;
        functions::drop_arguments(self.program, main, &chosen)?;
        self.dropped += chosen.len();
        self.lost_tokens = !chosen.is_empty() && !block.arguments().any(|argument| self.is_token(argument));
        Ok(())
    }
}

/// Gives `main` the body of the function that it only hands its arguments to. JAX writes that function for tokens and for symbolic dimensions, and
/// for the latter `main` does more than that.
fn unwrap_main(program: &Program<'_, '_>, calls: &Calls<'_>) -> Result<bool> {
    let main = program.main()?;
    let Some(block) = body(main) else { return Ok(false) };
    let operations: Vec<_> = block.operations().collect();
    let [call, terminator] = operations[..] else { return Ok(false) };
    let hands_on = call.is("func.call") && call.operands().eq(block.arguments()) && terminator.operands().eq(call.results());
    let named = |name: Vec<u8>| (name == WRAPPED && !calls.is_named_otherwise(&name)).then(|| calls.symbols.get(&name[..])).flatten();
    let Some(wrapped) = callee_of(program, call).filter(|_| hands_on).and_then(named).map(|node| calls.graph[*node]) else {
        return Ok(false);
    };
    // It may be called from elsewhere, in a file that JAX did not write.
    let mut callers = 0;
    Program::walk(program.module, |operation| callers += usize::from(callee_of(program, operation).as_deref() == Some(WRAPPED)));
    let (Some(target), Some(source)) = (main.regions().next(), wrapped.regions().next()) else { return Ok(false) };
    if callers != 1 || !functions::is_private(wrapped) {
        return Ok(false);
    }
    target.take_body(source);
    wrapped.erase();
    Ok(true)
}

/// Whether a value is defined inside an operation.
fn is_inside(value: Value<'_>, operation: Op<'_>) -> bool {
    let around = match value.definition() {
        Definition::Result(definer, _) => definer.parent(),
        Definition::Argument(block, _) => block.parent(),
    };
    std::iter::successors(around, |around| around.parent()).any(|around| around == operation)
}
