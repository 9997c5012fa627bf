//! Our own verifier: what MLIR does not check inside operations that it does not know.
//!
//! MLIR accepts a use before its definition in their regions, code after a terminator, captures where the dialect forbids them, any types, and callees
//! that are strings and name nothing. Each of these is checked here, with the place of the operation.

use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::References;
use super::{Block, Definition, Op, Program, Value, callee_of, functions, is_call, symbol_name};
use crate::bytecode::OpRow;
use crate::error::{Error, Result};

/// Checks the rules of [`crate::ir`].
///
/// # Errors
/// The first rule that is broken, as a format error: a module that was read may break them as well as one that a pass made.
pub fn verify(program: &Program<'_, '_>) -> Result<()> {
    let mut symbols = FxHashMap::default();
    for operation in program.body()?.operations() {
        let Some(name) = symbol_name(operation) else { continue };
        if symbols.insert(name, operation).is_some() {
            return Err(Error::format(format!("two symbols are named `{}`", String::from_utf8_lossy(name))));
        }
    }
    let mut verifier = Verifier { program, symbols, facts: FxHashMap::default(), references: References::new(program) };
    let mut stack: Vec<Op<'_>> = vec![program.module];
    let mut inner = Vec::new();
    while let Some(operation) = stack.pop() {
        verifier.operation(operation)?;
        for block in operation.regions().flat_map(|region| region.blocks()) {
            inner.extend(block.operations());
        }
        stack.extend(inner.drain(..).rev());
    }
    Ok(())
}

struct Verifier<'p, 's, 'a> {
    program: &'p Program<'s, 'a>,
    symbols: FxHashMap<&'s [u8], Op<'s>>,
    facts: FxHashMap<super::Name<'s>, Facts>,
    references: References,
}

/// What the name of an operation says about it.
#[derive(Clone, Copy)]
struct Facts {
    rule: Rule,
    regions: Option<u8>,
}

/// The rule of its own that an operation obeys.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Module,
    Function,
    Terminator,
    Call,
    Branches,
    Loop,
    Computation,
    None,
}

impl<'s> Verifier<'_, 's, '_> {
    fn facts(&mut self, name: super::Name<'s>) -> Facts {
        *self.facts.entry(name).or_insert_with(|| {
            let rule = match name.as_str() {
                "builtin.module" => Rule::Module,
                "func.func" => Rule::Function,
                name if is_terminator(name) => Rule::Terminator,
                name if is_call(name) => Rule::Call,
                "vhlo.case_v1" | "vhlo.if_v1" => Rule::Branches,
                "vhlo.while_v1" => Rule::Loop,
                "sdy.manual_computation" | "sdy.named_computation" => Rule::Computation,
                _ => Rule::None,
            };
            let id = self.program.session.op_name_id(name).ok();
            let row = id.and_then(|id| self.program.session.tables().op_row(id));
            Facts { rule, regions: row.map(|row| row.regions).filter(|regions| *regions != OpRow::VARIADIC) }
        })
    }

    fn operation(&mut self, operation: Op<'s>) -> Result<()> {
        for operand in operation.operands() {
            self.dominance(operation, operand)?;
        }
        let facts = self.facts(operation.name());
        if facts.rule == Rule::Terminator && operation.next().is_some() {
            return Err(self.broken(operation, "stands before the end of its block"));
        }
        let mut named = FxHashSet::default();
        self.references.of(self.program, operation, &mut named);
        if let Some(unknown) = named.into_iter().find(|name| !self.symbols.contains_key(&name[..])) {
            return Err(self.broken(operation, &format!("names `{}`, which is no symbol", String::from_utf8_lossy(&unknown))));
        }
        self.regions(operation, facts)?;
        match facts.rule {
            Rule::Function => self.function(operation),
            Rule::Call => self.call(operation),
            Rule::Branches => self.branches(operation),
            Rule::Loop => self.r#loop(operation),
            Rule::Computation => self.computation(operation),
            Rule::Module | Rule::Terminator | Rule::None => Ok(()),
        }
    }

    /// A value is visible where its block is around the use, it stands before, and no isolated operation lies between.
    fn dominance(&self, user: Op<'s>, value: Value<'s>) -> Result<()> {
        let (block, definition) = match value.definition() {
            Definition::Argument(block, _) => (Some(block), None),
            Definition::Result(operation, _) => (operation.block(), Some(operation)),
        };
        let mut place = user;
        while place.block() != block {
            match place.parent() {
                Some(parent) if !is_isolated(parent) => place = parent,
                _ => return Err(self.broken(user, "uses a value from where it cannot be seen")),
            }
        }
        match definition {
            Some(definition) if definition == place || !definition.is_before(place) => {
                Err(self.broken(user, "uses a value before its definition"))
            }
            _ => Ok(()),
        }
    }

    /// Regions are as many as the operation has, of one block each, which ends in a terminator.
    fn regions(&self, operation: Op<'s>, facts: Facts) -> Result<()> {
        let count = operation.region_count();
        if let Some(regions) = facts.regions.filter(|regions| usize::from(*regions) != count) {
            return Err(self.broken(operation, &format!("has regions: {count} instead of {regions}")));
        }
        if facts.rule == Rule::Module {
            return Ok(());
        }
        for region in operation.regions() {
            let mut blocks = region.blocks();
            let (first, second) = (blocks.next(), blocks.next());
            let ends = first.and_then(Block::last).is_some_and(|last| is_terminator(last.name_str()));
            if second.is_some() || !ends {
                return Err(self.broken(operation, "has a region that is not one block with a terminator"));
            }
        }
        Ok(())
    }

    /// A function has one region, whose block takes and returns what the type says, and as many attributes of arguments and results, or none.
    fn function(&self, operation: Op<'s>) -> Result<()> {
        if operation.region_count() != 1 {
            return Err(self.broken(operation, "has no body"));
        }
        let (inputs, results) = functions::arity(operation)?;
        let body = operation.region(0).first_block().filter(|body| body.argument_count() == inputs);
        let body = body.ok_or_else(|| self.broken(operation, "has a body that does not take its arguments"))?;
        for (name, count) in [("arg_attrs", inputs), ("res_attrs", results)] {
            let given = operation.attribute(name).map_or(count, |array| array.as_array().map_or(0, |array| array.len()));
            if given != count {
                return Err(self.broken(operation, &format!("has `{name}` for {given} of {count} values")));
            }
        }
        if returned(body).count() != results {
            return Err(self.broken(operation, "has a body that does not return its results"));
        }
        if !fits(operation, body.arguments(), returned(body))? {
            return Err(self.broken(operation, "has a body of other types than its own"));
        }
        Ok(())
    }

    /// Callees exist and take and return what the call says.
    fn call(&self, operation: Op<'s>) -> Result<()> {
        let callee = callee_of(self.program, operation).ok_or_else(|| self.broken(operation, "has no callee"))?;
        // Its arguments are those of the export, which nothing inside has.
        if callee == b"main" {
            return Err(self.broken(operation, "calls `main`, which is for the caller of the module"));
        }
        let function = self.symbols.get(&callee[..]).filter(|symbol| symbol.is("func.func"));
        let missing = || self.broken(operation, &format!("calls `{}`, which is no function", String::from_utf8_lossy(&callee)));
        let function = *function.ok_or_else(missing)?;
        // Counts first: many calls may share one long type.
        if functions::arity(function)? != (operation.operand_count(), operation.result_count()) {
            return Err(self.broken(operation, &format!("does not fit the type of `{}`", String::from_utf8_lossy(&callee))));
        }
        if !fits(function, operation.operands(), operation.results())? {
            return Err(self.broken(operation, &format!("does not fit the type of `{}`", String::from_utf8_lossy(&callee))));
        }
        Ok(())
    }

    fn branches(&self, operation: Op<'s>) -> Result<()> {
        if operation.operand_count() != 1 || operation.region_count() == 0 {
            return Err(self.broken(operation, "has no index or no branches"));
        }
        for block in operation.regions().filter_map(|region| region.first_block()) {
            if block.argument_count() > 0 || !are_alike(returned(block), operation.results()) {
                return Err(self.broken(operation, "has a branch that does not return its results"));
            }
        }
        Ok(())
    }

    fn r#loop(&self, operation: Op<'s>) -> Result<()> {
        let carried = || operation.operands();
        let blocks: Vec<_> = operation.regions().filter_map(|region| region.first_block()).collect();
        let takes_carried = blocks.iter().all(|block| are_alike(block.arguments(), carried()));
        let [condition, body] = blocks[..] else { return Err(self.broken(operation, "has no condition or no body")) };
        let gives_carried = are_alike(operation.results(), carried()) && are_alike(returned(body), carried());
        if !takes_carried || !gives_carried || returned(condition).count() != 1 {
            return Err(self.broken(operation, "does not carry the same types everywhere"));
        }
        Ok(())
    }

    fn computation(&self, operation: Op<'s>) -> Result<()> {
        let body = operation.region(0).first_block().ok_or_else(|| self.broken(operation, "has no body"))?;
        if body.argument_count() != operation.operand_count() || returned(body).count() != operation.result_count() {
            return Err(self.broken(operation, "has a body that does not take its operands or return its results"));
        }
        Ok(())
    }

    fn broken(&self, operation: Op<'_>, what: &str) -> Error {
        Error::format(format!("`{}` at {} {what}", operation.name_str(), self.program.session.place(operation)))
    }
}

fn is_terminator(name: &str) -> bool {
    matches!(name, "vhlo.return_v1" | "func.return" | "sdy.return")
}

/// Operations whose regions may not use values from outside.
fn is_isolated(operation: Op<'_>) -> bool {
    matches!(operation.name_str(), "builtin.module" | "func.func" | "sdy.manual_computation" | "sdy.named_computation")
}

/// Whether values have the same types.
fn are_alike<'s>(some: impl Iterator<Item = Value<'s>>, others: impl Iterator<Item = Value<'s>>) -> bool {
    some.map(Value::r#type).eq(others.map(Value::r#type))
}

/// Whether values have the types that a function takes and returns.
fn fits<'s>(function: Op<'s>, inputs: impl Iterator<Item = Value<'s>>, results: impl Iterator<Item = Value<'s>>) -> Result<bool> {
    let of = functions::function_type(function)?;
    Ok(of.function_inputs().eq(inputs.map(Value::r#type)) && of.function_results().eq(results.map(Value::r#type)))
}

/// What a block returns.
fn returned<'s>(block: Block<'s>) -> impl Iterator<Item = Value<'s>> {
    block.last().into_iter().flat_map(Op::operands)
}
