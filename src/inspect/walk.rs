//! Follows the platform index through a module.
//!
//! From `main`'s first argument it goes through calls, branches, loops that hand it on unchanged, conversions, and the comparisons of older JAX.
//! Nested exports have indices of their own, which their callers compute from ours. This only looks: what cannot be followed is not listed, while
//! [`split`](crate::split()) refuses it.

use std::collections::HashMap;

use super::values::{Value, branch, fold, splat};
use super::view::{Kind, View};
use crate::bytecode::{Block, Field, Operation, ValueId};

/// Most platforms that are followed; a set of them is a number of as many bits.
pub(super) const MAX_PLATFORMS: usize = 64;
/// Visits per operation, over all sets of arguments its function is called with. JAX's exports need fewer than ten.
const MAX_VISITS: usize = 64;

/// What is known of an operation that the platform decides.
pub(super) struct Decided {
    /// The platforms that take each branch.
    pub taken: Vec<u64>,
    /// Whether all its results are numbers that follow from the platform.
    pub is_number: bool,
}

/// What a function was called with: the function, the platforms that get there, its arguments.
type Call = (u32, u64, Vec<Option<Value>>);

/// A function being walked with one set of arguments. Frames stand on a stack of ours, since calls may be nested as deep as the input likes.
struct Frame {
    call: Call,
    next: u32,
    end: u32,
    known: HashMap<ValueId, Value>,
    /// Branches ahead or around, innermost and next one last: from where to where, and the platforms that get there.
    scopes: Vec<(u32, u32, u64)>,
    /// Operations whose results are known once everything inside them was walked, innermost last.
    open: Vec<u32>,
}

pub(super) struct Walk<'v, 'b, 'a> {
    view: &'v View<'b, 'a>,
    platforms: usize,
    stack: Vec<Frame>,
    /// What calls return; `None` while they are being walked.
    returned: HashMap<Call, Option<Vec<Option<Value>>>>,
    /// What was found, by the position of the operation.
    pub found: HashMap<u32, Decided>,
}

impl<'v, 'b, 'a> Walk<'v, 'b, 'a> {
    pub fn new(view: &'v View<'b, 'a>, platforms: usize) -> Self {
        Self { view, platforms, stack: Vec::new(), returned: HashMap::new(), found: HashMap::new() }
    }

    /// Walks `main` and what it calls. Returns whether the walk came to its end.
    pub fn run(&mut self, main: u32) -> bool {
        let mut visits = self.view.bytecode.tree.operations.len().saturating_mul(MAX_VISITS);
        let everywhere = u64::MAX >> (MAX_PLATFORMS - self.platforms);
        self.enter((main, everywhere, vec![Some(Value::index(self.platforms))]));
        while let Some(mut frame) = self.stack.pop() {
            let called = loop {
                self.close(&mut frame);
                if frame.next >= frame.end {
                    break None;
                }
                let Some(left) = visits.checked_sub(1) else { return false };
                visits = left;
                if let Some(call) = self.step(&mut frame) {
                    break Some(call);
                }
            };
            match called {
                Some(call) => {
                    self.stack.push(frame);
                    self.enter(call);
                }
                None => self.leave(frame),
            }
        }
        true
    }

    fn enter(&mut self, call: Call) {
        let operation = self.view.operation(call.0);
        let body = self.view.bytecode.tree.regions_of(operation).first().and_then(|region| self.view.entry(region));
        let arguments = body.map_or(0..0, |block| block.arguments.range());
        let known = arguments.zip(&call.2).filter_map(|(value, argument)| Some((ValueId(value as u32), argument.clone()?))).collect();
        self.returned.insert(call.clone(), None);
        self.stack.push(Frame { next: call.0 + 1, end: operation.end, call, known, scopes: Vec::new(), open: Vec::new() });
    }

    fn leave(&mut self, frame: Frame) {
        let body = self.view.bytecode.tree.regions_of(self.view.operation(frame.call.0)).first();
        let values = body.and_then(|region| self.view.entry(region)).map_or(&[][..], |block| self.view.yielded(block));
        let results: Vec<_> = values.iter().map(|value| frame.known.get(value).cloned()).collect();
        if let Some(caller) = self.stack.last_mut() {
            let operation = self.view.operation(caller.next - 1);
            set_results(&mut caller.known, operation, results.iter().cloned());
        }
        self.returned.insert(frame.call, Some(results));
    }

    /// Ends what ends at the frame's position.
    fn close(&mut self, frame: &mut Frame) {
        while let Some(&position) = frame.open.last() {
            let operation = self.view.operation(position);
            if operation.end > frame.next {
                break;
            }
            frame.open.pop();
            let results = self.results(frame, operation);
            if let Some(decided) = self.found.get_mut(&position) {
                decided.is_number &= !results.is_empty() && results.iter().all(Option::is_some);
            }
            set_results(&mut frame.known, operation, results.into_iter());
        }
        while frame.scopes.last().is_some_and(|scope| scope.1 <= frame.next) {
            frame.scopes.pop();
        }
    }

    /// Takes one operation; returns the call to walk first, if it is one.
    fn step(&mut self, frame: &mut Frame) -> Option<Call> {
        let position = frame.next;
        let reach = match frame.scopes.last() {
            Some(&(start, end, 0)) if start <= position => {
                frame.next = end;
                return None;
            }
            Some(&(start, _, reach)) if start <= position => reach,
            _ => frame.scopes.iter().rev().find(|scope| scope.0 <= position).map_or(frame.call.1, |scope| scope.2),
        };
        frame.next += 1;
        let operation = self.view.operation(position);
        let tree = &self.view.bytecode.tree;
        let operands = tree.operands_of(operation);
        let result = ValueId(operation.results.start);
        match self.view.kind(operation) {
            Kind::Constant => {
                let value = self.view.bytecode.inherent(operation, "value").and_then(|value| splat(self.view.bytecode, value));
                frame.known.extend(value.map(|value| (result, Value::constant(value, self.platforms))));
            }
            Kind::Forward => {
                let values: Vec<_> = operands.iter().map(|value| frame.known.get(value).cloned()).collect();
                set_results(&mut frame.known, operation, values.into_iter());
            }
            kind @ (Kind::Compare | Kind::Select | Kind::Clamp | Kind::Maximum | Kind::Minimum) => {
                let values: Vec<_> = operands.iter().map(|value| frame.known.get(value)).collect();
                let folded = fold(kind, self.direction(operation), &values, self.platforms);
                frame.known.extend(folded.map(|value| (result, value)));
            }
            Kind::Case | Kind::If => self.open_branches(frame, position, reach),
            Kind::While => self.open_loop(frame, position),
            Kind::Manual => {
                let body = tree.regions_of(operation).first().and_then(|region| self.view.entry(region));
                let arguments = body.map_or(0..0, |block| block.arguments.range());
                for (argument, operand) in arguments.zip(operands) {
                    frame.known.extend(frame.known.get(operand).cloned().map(|value| (ValueId(argument as u32), value)));
                }
            }
            Kind::Call => return self.call(frame, position, operands, reach),
            _ => {}
        }
        None
    }

    fn direction(&self, operation: &Operation) -> Option<u64> {
        let direction = self.view.bytecode.inherent(operation, "comparison_direction")?;
        match self.view.bytecode.tables.attribute(direction).fields[..] {
            [Field::Unsigned(direction)] => Some(direction),
            _ => None,
        }
    }

    /// A call with a known argument that the platform decides is walked; in others there is nothing to find.
    fn call(&mut self, frame: &mut Frame, position: u32, operands: &[ValueId], reach: u64) -> Option<Call> {
        let callee = self.view.callee(position)?;
        let arguments: Vec<_> = operands.iter().map(|value| frame.known.get(value).map(|value| restricted(value, reach))).collect();
        if !arguments.iter().flatten().any(|value| value.is_decided) {
            return None;
        }
        let call = (callee, reach, arguments);
        match self.returned.get(&call) {
            None => Some(call),
            // It calls itself: nothing is known of what it returns.
            Some(None) => None,
            Some(Some(results)) => {
                set_results(&mut frame.known, self.view.operation(position), results.iter().cloned());
                None
            }
        }
    }

    fn open_branches(&mut self, frame: &mut Frame, position: u32, reach: u64) {
        let operation = self.view.operation(position);
        let tree = &self.view.bytecode.tree;
        let regions = tree.regions_of(operation);
        frame.open.push(position);
        let Some(index) = tree.operands_of(operation).first().and_then(|index| frame.known.get(index)).filter(|index| index.is_decided)
        else {
            return;
        };
        let kind = self.view.kind(operation);
        let mut taken = vec![0u64; regions.len()];
        for platform in (0..self.platforms).filter(|platform| reach >> platform & 1 == 1) {
            // Where the index is not known, any branch may be taken.
            let chosen = index.on(platform).map(|index| branch(kind, index, taken.len()));
            taken
                .iter_mut()
                .enumerate()
                .filter(|(number, _)| chosen.is_none_or(|chosen| chosen == *number))
                .for_each(|(_, set)| *set |= 1 << platform);
        }
        let blocks = regions.iter().zip(&taken).rev().filter_map(|(region, set)| Some((self.view.entry(region)?, *set)));
        frame.scopes.extend(blocks.map(|(block, set)| (block.first, block.end, set)));
        let found = self.found.entry(position).or_insert_with(|| Decided { taken: vec![0; taken.len()], is_number: true });
        found.taken.iter_mut().zip(&taken).for_each(|(all, set)| *all |= set);
    }

    /// JAX hands what a loop does not change from its argument to its result, position by position.
    fn open_loop(&self, frame: &mut Frame, position: u32) {
        let operation = self.view.operation(position);
        let tree = &self.view.bytecode.tree;
        let blocks: Vec<_> = tree.regions_of(operation).iter().filter_map(|region| self.view.entry(region)).collect();
        let [_, body] = blocks[..] else { return };
        let mut results = Vec::new();
        for (number, (operand, handed)) in tree.operands_of(operation).iter().zip(self.view.yielded(body)).enumerate() {
            let argument = |block: &Block| ValueId(block.arguments.start + number as u32);
            let value = frame.known.get(operand).filter(|_| *handed == argument(body)).cloned();
            if let Some(value) = &value {
                frame.known.extend(blocks.iter().map(|block| (argument(block), value.clone())));
            }
            results.push(value);
        }
        set_results(&mut frame.known, operation, results.into_iter());
    }

    /// What a `case` or `if` results in: on each platform, what the branch taken there yields.
    fn results(&self, frame: &Frame, operation: &Operation) -> Vec<Option<Value>> {
        let tree = &self.view.bytecode.tree;
        let Some(index) = tree.operands_of(operation).first().and_then(|index| frame.known.get(index)) else { return Vec::new() };
        let kind = self.view.kind(operation);
        let yields: Vec<_> = tree
            .regions_of(operation)
            .iter()
            .map(|region| self.view.entry(region).map_or(&[][..], |block| self.view.yielded(block)))
            .collect();
        let result = |number: usize| {
            let mut is_decided = index.is_decided;
            let on = |platform| {
                let branch = branch(kind, index.on(platform)?, yields.len());
                let value = frame.known.get(yields.get(branch)?.get(number)?)?;
                is_decided |= value.is_decided;
                value.on(platform)
            };
            let by_platform: Box<[_]> = (0..self.platforms).map(on).collect();
            by_platform.iter().any(Option::is_some).then_some(Value { is_decided, by_platform })
        };
        (0..operation.results.len as usize).map(result).collect()
    }
}

fn set_results(known: &mut HashMap<ValueId, Value>, operation: &Operation, values: impl Iterator<Item = Option<Value>>) {
    let results = operation.results.range().map(|value| ValueId(value as u32));
    known.extend(results.zip(values).filter_map(|(result, value)| Some((result, value?))));
}

/// A value on the platforms that get somewhere, so that calls which differ on others only are one.
fn restricted(value: &Value, reach: u64) -> Value {
    let on = |(platform, number): (usize, &Option<i64>)| number.filter(|_| reach >> platform & 1 == 1);
    Value { is_decided: value.is_decided, by_platform: value.by_platform.iter().enumerate().map(on).collect() }
}
