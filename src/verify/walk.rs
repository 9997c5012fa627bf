//! What a module does on one platform: its functions are walked with the numbers that the platform decides, and what is left is written down in a row.
//!
//! The rules are those of StableHLO, not those of the passes: a `case` on a known index is the branch of that index, a `select` on a known predicate is what
//! it selects, what a loop starts with and hands on unchanged is what it started with, a call returns what its function returns. Only what derives from
//! the platform is carried out. A module that knows no platform index is walked by the same rules, and nothing is carried out.
//!
//! Nothing recurses: functions that wait for others, and regions inside regions, stand on stacks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::integer::{Known, Origin};
use super::module::{Kind, Module, Unproved, values};
use crate::bytecode::{Block, Operation, ValueId, dialect};

/// One step of what is left of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// An operation without regions.
    Plain,
    /// An operation with regions begins.
    Open,
    /// Its next region begins, with this block.
    Region(Option<u32>),
    /// The terminator of a region or of the function.
    End,
    /// An operation with regions ends.
    Close,
}

/// A step and the operation that it is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) step: Step,
    pub(super) operation: u32,
    /// Of [`Step::Open`] and [`Step::Close`], where the other one stands. Of [`Step::End`], the operation around it.
    pub(super) partner: u32,
}

/// Operands and results that the platform decides, so that an operation with regions need not carry them.
#[derive(Debug, Clone, Default)]
pub(super) struct Dropped {
    pub(super) operands: Vec<usize>,
    pub(super) results: Vec<usize>,
}

/// What is left of a function that is called with certain numbers.
#[derive(Debug, Default)]
pub(super) struct Residual {
    pub(super) function: u32,
    /// The steps, in order; branches that are taken stand in place of their `case`.
    pub(super) items: Vec<Item>,
    /// The values that are one number.
    pub(super) known: FxHashMap<ValueId, Known>,
    /// The values that are another one: results of what was carried out, casts, what loops hand on unchanged.
    same_as: FxHashMap<ValueId, ValueId>,
    /// What operations do not carry any more, and calls do not hand over.
    pub(super) dropped: FxHashMap<u32, Dropped>,
    /// What each call calls.
    pub(super) callees: FxHashMap<u32, usize>,
    /// The arguments that are known.
    pub(super) arguments: Vec<Option<i128>>,
    returns: Vec<Option<Known>>,
    carries_out: CarriesOut,
}

/// Which numbers are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CarriesOut {
    /// Those that the platform decides; what the user wrote stays.
    #[default]
    Platform,
    /// All that are known, so that a choice which is left, although its outcome is certain, is the same as none.
    Everything,
}

impl Residual {
    /// The value that a value is.
    pub(super) fn root(&self, value: ValueId) -> ValueId {
        self.same_as.get(&value).copied().unwrap_or(value)
    }

    pub(super) fn known(&self, value: ValueId) -> Option<Known> {
        self.known.get(&value).copied()
    }

    /// The positions of the arguments that are known.
    pub(super) fn dropped_arguments(&self) -> Vec<usize> {
        (0..self.arguments.len()).filter(|&position| self.arguments.get(position).is_some_and(Option::is_some)).collect()
    }

    /// What an operation does not carry any more.
    pub(super) fn dropped(&self, operation: u32) -> Dropped {
        self.dropped.get(&operation).cloned().unwrap_or_default()
    }

    /// A number that the passes see as well: that of the platform, or a constant.
    fn plain(&self, value: ValueId) -> Option<Known> {
        self.known(value).filter(|known| known.origin != Origin::Computed || self.carries_out == CarriesOut::Everything)
    }

    fn decided(&self, value: ValueId) -> Option<i128> {
        let is_decided = |known: &Known| known.origin == Origin::Platform || self.carries_out == CarriesOut::Everything;
        self.known(value).filter(is_decided).map(|known| known.number)
    }

    fn set(&mut self, value: ValueId, known: Option<Known>, same_as: Option<ValueId>) {
        match known {
            Some(known) => _ = self.known.insert(value, known),
            None => _ = self.known.remove(&value),
        }
        match same_as {
            Some(other) => _ = self.same_as.insert(value, other),
            None => _ = self.same_as.remove(&value),
        }
    }

    /// Lets a value be another one that the platform chose. A number that the platform chose is decided by it.
    fn choose(&mut self, value: ValueId, chosen: ValueId) {
        let known = self.known(chosen).map(|known| match known.origin {
            Origin::Computed => known,
            _ => Known { origin: Origin::Platform, ..known },
        });
        self.set(value, known, Some(self.root(chosen)));
    }
}

/// What a stretch of operations is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Function,
    /// The branch that is taken.
    Branch(u32),
    /// A region by its number, of an operation that began at this item.
    Region {
        operation: u32,
        number: usize,
        open: u32,
    },
}

/// A stretch of operations under way.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    next: u32,
    end: u32,
    role: Role,
}

/// A loop, with what it may turn out to hand on unchanged.
#[derive(Debug)]
struct Loop {
    operation: u32,
    unchanged: Vec<(usize, i128)>,
    rounds: usize,
}

/// How often one loop is walked again. JAX's loops carry a handful of values that the platform decides.
const MOST_ROUNDS: usize = 64;

/// A function under way.
#[derive(Debug)]
struct Frame {
    number: usize,
    residual: Residual,
    cursors: Vec<Cursor>,
    loops: Vec<Loop>,
}

/// A function and the arguments that are known.
type Key = (u32, Vec<Option<i128>>);

/// Walks the functions of one module, each once for each set of known arguments.
pub(super) struct Walker<'m, 'b, 'a> {
    pub(super) module: &'m Module<'b, 'a>,
    numbers: FxHashMap<Key, usize>,
    /// What was walked; nothing yet for what is under way.
    residuals: Vec<Option<Residual>>,
    steps_left: u64,
    carries_out: CarriesOut,
    /// The functions that something names other than as a callee, so that not all that they are called with is known.
    named_otherwise: FxHashSet<&'b [u8]>,
}

impl<'m, 'b, 'a> Walker<'m, 'b, 'a> {
    pub(super) fn new(module: &'m Module<'b, 'a>, carries_out: CarriesOut) -> Self {
        // Real modules are walked a few times over: once for each platform index that a nested export is called with.
        let steps_left = 1_000_000 + 100 * module.bytecode.tree.operations.len() as u64;
        let named_otherwise = module.named_otherwise.clone();
        Self { module, numbers: FxHashMap::default(), residuals: Vec::new(), steps_left, carries_out, named_otherwise }
    }

    /// Forgets what was walked if it names fewer functions, other than as callees, than was feared. Returns whether it does: all must be walked again.
    pub(super) fn forget(&mut self) -> Result<bool, Unproved> {
        if self.named_otherwise.is_empty() {
            return Ok(false);
        }
        let (mut named, mut seen) = (FxHashSet::default(), 0);
        // Functions that are named name others in turn.
        while seen < self.residuals.len() {
            let new = self.residuals.get(seen..).unwrap_or_default().iter().flatten();
            let is_start = |item: &&Item| matches!(item.step, Step::Plain | Step::Open);
            let positions = new.flat_map(|residual| {
                let operations = residual.items.iter().filter(is_start).map(|item| item.operation);
                operations.chain([residual.function])
            });
            let more: Vec<&[u8]> = positions.flat_map(|position| self.module.named_by(self.module.operation(position))).collect();
            seen = self.residuals.len();
            for name in more {
                if let Some(function) = self.module.functions.get(name).copied().filter(|_| named.insert(name)) {
                    self.walk_any(function)?;
                }
            }
        }
        let before = self.named_otherwise.len();
        self.named_otherwise.retain(|name| named.contains(name));
        if self.named_otherwise.len() == before {
            return Ok(false);
        }
        self.numbers.clear();
        self.residuals.clear();
        Ok(true)
    }

    /// Whether only calls can reach a function, so that what it takes can change together with them.
    fn is_specialized(&self, function: u32) -> bool {
        let name = self.module.symbol(self.module.operation(function));
        self.module.is_private(function) && name.is_some_and(|name| !self.named_otherwise.contains(name))
    }

    /// What was walked.
    pub(super) fn residual(&self, number: usize) -> Result<&Residual, Unproved> {
        self.residuals.get(number).and_then(Option::as_ref).ok_or_else(|| "a function was not walked to its end".to_owned())
    }

    /// Walks a function that nothing is known of what it is called with.
    pub(super) fn walk_any(&mut self, function: u32) -> Result<usize, Unproved> {
        let count = self.body(function)?.arguments.len as usize;
        self.walk(function, vec![None; count])
    }

    /// Walks a function with these arguments, and first all those that it calls.
    pub(super) fn walk(&mut self, function: u32, arguments: Vec<Option<i128>>) -> Result<usize, Unproved> {
        let key = (function, arguments);
        if let Some(&known) = self.numbers.get(&key) {
            return Ok(known);
        }
        let first = self.begin(key)?;
        let number = first.number;
        let mut frames = vec![first];
        while let Some(frame) = frames.last_mut() {
            if let Some(callee) = self.step(frame)? {
                let callee = self.begin(callee)?;
                frames.push(callee);
            } else if frame.cursors.is_empty()
                && let Some(done) = frames.pop()
                && let Some(place) = self.residuals.get_mut(done.number)
            {
                *place = Some(done.residual);
            }
        }
        Ok(number)
    }

    fn body(&self, function: u32) -> Result<&'b Block, Unproved> {
        let operation = self.module.operation(function);
        self.module
            .only_block(operation)
            .ok_or_else(|| format!("function `{}` has no body of one block", self.module.function_name(function)))
    }

    fn begin(&mut self, key: Key) -> Result<Frame, Unproved> {
        let (function, arguments) = &key;
        let body = self.body(*function)?;
        if body.arguments.len as usize != arguments.len() {
            return Err(format!("function `{}` is called with another number of arguments", self.module.function_name(*function)));
        }
        let mut residual =
            Residual { function: *function, arguments: arguments.clone(), carries_out: self.carries_out, ..Residual::default() };
        for (argument, number) in values(body.arguments).zip(arguments) {
            residual.set(argument, number.map(|number| Known { number, origin: Origin::Platform }), None);
        }
        let number = self.residuals.len();
        self.residuals.push(None);
        let cursors = vec![Cursor { next: body.first, end: body.end, role: Role::Function }];
        self.numbers.insert(key, number);
        Ok(Frame { number, residual, cursors, loops: Vec::new() })
    }

    /// Takes one step in a function. Returns the function that must be walked first, and then takes none.
    fn step(&mut self, frame: &mut Frame) -> Result<Option<Key>, Unproved> {
        let Some(cursor) = frame.cursors.last().copied() else { return Ok(None) };
        self.steps_left =
            self.steps_left.checked_sub(1).ok_or("functions are called with too many different platform values, or loops nest too deep")?;
        if cursor.next >= cursor.end {
            return Err("a block has no terminator".to_owned());
        }
        let operation = self.module.operation(cursor.next);
        if operation.successors.len > 0 {
            return Err(self.unproved(cursor.next, "jumps between blocks"));
        }
        if operation.end >= cursor.end {
            self.end(frame, cursor)?;
            return Ok(None);
        }
        if let Some(last) = frame.cursors.last_mut() {
            last.next = operation.end;
        }
        let waits_for = self.operation(frame, cursor.next)?;
        if waits_for.is_some()
            && let Some(last) = frame.cursors.last_mut()
        {
            last.next = cursor.next;
        }
        Ok(waits_for)
    }

    fn unproved(&self, position: u32, what: &str) -> Unproved {
        format!("`{}` {what}", self.module.name(self.module.operation(position)))
    }

    /// An operation that is no terminator.
    fn operation(&mut self, frame: &mut Frame, position: u32) -> Result<Option<Key>, Unproved> {
        let module = self.module;
        let operation = module.operation(position);
        let (operands, residual) = (module.operands(operation), &mut frame.residual);
        match (module.kind(operation), operands) {
            (Kind::Cast, &[operand]) if operation.results.len == 1 => {
                let known = residual.known(operand);
                let root = residual.root(operand);
                values(operation.results).for_each(|result| residual.set(result, known, Some(root)));
                return Ok(None);
            }
            (kind @ (Kind::Case | Kind::If), &[index]) => {
                if let Some(number) = residual.decided(index) {
                    self.take_branch(frame, position, kind, number)?;
                    return Ok(None);
                }
            }
            (Kind::Select, &[predicate, on_true, on_false]) if operation.results.len == 1 => {
                let chosen = residual.decided(predicate).map(|number| if number == 0 { on_false } else { on_true });
                let result = ValueId(operation.results.start);
                if let Some(chosen) = chosen.filter(|chosen| module.type_of(*chosen) == module.type_of(result)) {
                    residual.choose(result, chosen);
                    return Ok(None);
                }
            }
            (Kind::Call, _) => {
                if let Some(waits_for) = self.call(frame, position)? {
                    return Ok(Some(waits_for));
                }
            }
            (Kind::Function, _) => return Err(self.unproved(position, "stands in a function")),
            _ => self.compute(&mut frame.residual, operation),
        }
        if operation.regions.len == 0 {
            frame.residual.items.push(Item { step: Step::Plain, operation: position, partner: 0 });
            return Ok(None);
        }
        if module.kind(operation) != Kind::Call {
            values(operation.results).for_each(|result| frame.residual.set(result, None, None));
        }
        let open = frame.residual.items.len() as u32;
        frame.residual.items.push(Item { step: Step::Open, operation: position, partner: 0 });
        match module.kind(operation) {
            Kind::While => {
                let start = operands.iter().enumerate();
                let unchanged = start.filter_map(|(place, operand)| Some((place, frame.residual.decided(*operand)?))).collect();
                frame.loops.push(Loop { operation: position, unchanged, rounds: 0 });
            }
            Kind::Manual => self.open_manual(frame, position)?,
            _ => {}
        }
        self.region(frame, position, 0, open)?;
        Ok(None)
    }

    /// What an operation without regions results in.
    fn compute(&self, residual: &mut Residual, operation: &Operation) {
        let (module, operands) = (self.module, self.module.operands(operation));
        let kind = module.kind(operation);
        let moved = |known: Known| if known.origin == Origin::Constant { Known { origin: Origin::Computed, ..known } } else { known };
        if kind == Kind::Barrier {
            for (result, operand) in values(operation.results).zip(operands) {
                let known = residual.known(*operand).map(moved);
                residual.set(result, known, None);
            }
            return;
        }
        values(operation.results).for_each(|result| residual.set(result, None, None));
        if operation.results.len != 1 {
            return;
        }
        let result = ValueId(operation.results.start);
        let Some(of) = module.integer(result) else { return };
        let known = match (kind, operands) {
            (Kind::Constant, []) => self.constant(operation, result).map(|number| Known { number, origin: Origin::Constant }),
            (Kind::Move, [operand, ..]) => residual.known(*operand),
            (Kind::CustomCall, [operand]) if self.is_sharding(operation) => residual.known(*operand).map(moved),
            (Kind::Other, _) => {
                let known: Option<Vec<Known>> = operands.iter().map(|operand| residual.known(*operand)).collect();
                known.filter(|known| !known.is_empty()).and_then(|known| {
                    let name = module.short_name(operation);
                    let numbers: Vec<i128> = known.iter().map(|known| known.number).collect();
                    let number = of.compute(module.bytecode, operation, name, &numbers)?;
                    let is = |origin| known.iter().any(|known| known.origin == origin);
                    let origin = match () {
                        () if is(Origin::Computed) => Origin::Computed,
                        () if is(Origin::Platform) => Origin::Platform,
                        () if name == "convert" => Origin::Constant,
                        () => Origin::Computed,
                    };
                    Some(Known { number, origin })
                })
            }
            _ => None,
        };
        residual.set(result, known, None);
    }

    fn constant(&self, operation: &Operation, result: ValueId) -> Option<i128> {
        let entry = self.module.bytecode.tables.attribute(self.module.inherent(operation, "value")?);
        let bytes = entry.bytes().filter(|_| entry.is(dialect::VHLO, crate::bytecode::code::vhlo::TENSOR))?;
        self.module.integer(result)?.splat(&bytes.0)
    }

    /// Whether a custom call says where a value lives and leaves it as it is: how JAX before 0.7 wrote shardings.
    fn is_sharding(&self, operation: &Operation) -> bool {
        let target = self.module.text(operation, "call_target_name");
        matches!(target, Some(b"Sharding" | b"SPMDFullToShardShape" | b"SPMDShardToFullShape"))
    }

    /// Puts the branch of an index in place of a `case` or an `if`.
    fn take_branch(&self, frame: &mut Frame, position: u32, kind: Kind, number: i128) -> Result<(), Unproved> {
        let tree = &self.module.bytecode.tree;
        let regions = tree.regions_of(self.module.operation(position));
        let last = regions.len().checked_sub(1).ok_or_else(|| self.unproved(position, "has no branches"))?;
        let branch = match kind {
            Kind::If => usize::from(number == 0),
            // An index outside the branches selects the last one.
            _ => usize::try_from(number).map_or(last, |number| number.min(last)),
        };
        let block = regions.get(branch).and_then(|region| match tree.blocks_of(region) {
            [block] if block.arguments.len == 0 => Some(block),
            _ => None,
        });
        let block = block.ok_or_else(|| self.unproved(position, "has a branch that is not one block without arguments"))?;
        frame.cursors.push(Cursor { next: block.first, end: block.end, role: Role::Branch(position) });
        Ok(())
    }

    /// A call: what is known of what it hands over decides what it calls.
    fn call(&mut self, frame: &mut Frame, position: u32) -> Result<Option<Key>, Unproved> {
        let module = self.module;
        let operation = module.operation(position);
        let callee = module.callee(operation).ok_or_else(|| self.unproved(position, "calls a function that is not there"))?;
        let is_specialized = self.is_specialized(callee);
        let is_scalar = |operand| module.integer(operand).is_some_and(super::integer::Integer::is_scalar);
        let operands = module.operands(operation).iter();
        let arguments: Vec<_> =
            operands.map(|operand| frame.residual.decided(*operand).filter(|_| is_specialized && is_scalar(*operand))).collect();
        let key = (callee, arguments);
        let Some(&number) = self.numbers.get(&key) else { return Ok(Some(key)) };
        let Some(Some(called)) = self.residuals.get(number) else {
            return Err(format!("function `{}` calls itself, directly or through others", module.function_name(callee)));
        };
        if called.returns.len() != operation.results.len as usize {
            return Err(self.unproved(position, "has other results than its function"));
        }
        for (result, known) in values(operation.results).zip(&called.returns) {
            // A constant that a function returns is none to those who call it.
            let known =
                known.map(|known| if known.origin == Origin::Constant { Known { origin: Origin::Computed, ..known } } else { known });
            frame.residual.set(result, known, None);
        }
        frame.residual.callees.insert(position, number);
        frame.residual.dropped.insert(position, Dropped { operands: called.dropped_arguments(), results: Vec::new() });
        Ok(None)
    }

    /// Begins a region of an operation, or ends the operation after its last one.
    fn region(&mut self, frame: &mut Frame, position: u32, mut number: usize, open: u32) -> Result<(), Unproved> {
        let module = self.module;
        let tree = &module.bytecode.tree;
        let operation = module.operation(position);
        let regions = tree.regions_of(operation);
        while let Some(region) = regions.get(number) {
            match tree.blocks_of(region) {
                [] => frame.residual.items.push(Item { step: Step::Region(None), operation: position, partner: 0 }),
                [block] => {
                    self.enter(frame, operation, position, block)?;
                    frame.residual.items.push(Item { step: Step::Region(Some(region.blocks.start)), operation: position, partner: 0 });
                    frame.cursors.push(Cursor {
                        next: block.first,
                        end: block.end,
                        role: Role::Region { operation: position, number, open },
                    });
                    return Ok(());
                }
                _ => return Err(self.unproved(position, "has a region of several blocks")),
            }
            number += 1;
        }
        let close = frame.residual.items.len() as u32;
        frame.residual.items.push(Item { step: Step::Close, operation: position, partner: open });
        if let Some(item) = frame.residual.items.get_mut(open as usize) {
            item.partner = close;
        }
        Ok(())
    }

    /// What is known of the arguments of a region.
    fn enter(&mut self, frame: &mut Frame, operation: &Operation, position: u32, block: &Block) -> Result<(), Unproved> {
        self.steps_left = self.steps_left.saturating_sub(u64::from(block.arguments.len));
        values(block.arguments).for_each(|argument| frame.residual.set(argument, None, None));
        let arguments: Vec<ValueId> = values(block.arguments).collect();
        let operands = self.module.operands(operation);
        match self.module.kind(operation) {
            Kind::While | Kind::Manual if arguments.len() != operands.len() => {
                return Err(self.unproved(position, "has a region that does not take its operands"));
            }
            Kind::While => {
                let unchanged = frame.loops.last().filter(|current| current.operation == position).map(|current| current.unchanged.clone());
                for (place, number) in unchanged.unwrap_or_default() {
                    if let (Some(argument), Some(operand)) = (arguments.get(place), operands.get(place)) {
                        let root = frame.residual.root(*operand);
                        frame.residual.set(*argument, Some(Known { number, origin: Origin::Platform }), Some(root));
                    }
                }
            }
            Kind::Manual => {
                for place in frame.residual.dropped(position).operands {
                    if let (Some(argument), Some(operand)) = (arguments.get(place), operands.get(place)) {
                        let known = frame.residual.known(*operand);
                        frame.residual.set(*argument, known, None);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A manual computation need not take what the platform decides.
    fn open_manual(&self, frame: &mut Frame, position: u32) -> Result<(), Unproved> {
        let operation = self.module.operation(position);
        let block = self.module.only_block(operation).ok_or_else(|| self.unproved(position, "has no body of one block"))?;
        let taken = values(block.arguments).zip(self.module.operands(operation)).enumerate();
        let is_decided = |(_, (argument, operand)): &(usize, (ValueId, &ValueId))| {
            let has_constants = self.module.integer(*argument).is_some_and(super::integer::Integer::has_constants);
            has_constants && frame.residual.decided(**operand).is_some()
        };
        let operands = taken.filter(is_decided).map(|(place, _)| place).collect();
        frame.residual.dropped.insert(position, Dropped { operands, results: Vec::new() });
        Ok(())
    }

    /// The terminator of a stretch.
    fn end(&mut self, frame: &mut Frame, cursor: Cursor) -> Result<(), Unproved> {
        let module = self.module;
        let terminator = module.operation(cursor.next);
        if module.kind(terminator) != Kind::Return {
            return Err(self.unproved(cursor.next, "ends a block"));
        }
        let operands = module.operands(terminator);
        frame.cursors.pop();
        match cursor.role {
            Role::Function => {
                frame.residual.returns = operands.iter().map(|operand| frame.residual.known(*operand)).collect();
                let function = frame.residual.function;
                frame.residual.items.push(Item { step: Step::End, operation: cursor.next, partner: function });
            }
            Role::Branch(case) => {
                let results = module.operation(case).results;
                if operands.len() != results.len as usize {
                    return Err(self.unproved(case, "has a branch that does not return its results"));
                }
                for (result, operand) in values(results).zip(operands) {
                    if module.type_of(result) != module.type_of(*operand) {
                        return Err(self.unproved(case, "has a branch that returns another type"));
                    }
                    frame.residual.choose(result, *operand);
                }
            }
            Role::Region { operation: position, number, open } => {
                let operation = module.operation(position);
                frame.residual.items.push(Item { step: Step::End, operation: cursor.next, partner: position });
                let is_body = module.kind(operation) == Kind::While && number == 1;
                if is_body && !self.end_loop(frame, position, operands)? {
                    // Some of what was taken to be unchanged is not: once more, without it.
                    frame.residual.items.truncate(open as usize + 1);
                    return self.region(frame, position, 0, open);
                }
                if module.kind(operation) == Kind::Manual {
                    self.end_manual(frame, position, operands);
                }
                return self.region(frame, position, number + 1, open);
            }
        }
        Ok(())
    }

    /// Whether a loop hands on unchanged what it was taken to. If so, that is what it results in.
    fn end_loop(&self, frame: &mut Frame, position: u32, handed_on: &[ValueId]) -> Result<bool, Unproved> {
        let operation = self.module.operation(position);
        let (operands, results) = (self.module.operands(operation), values(operation.results));
        if handed_on.len() != operands.len() || results.len() != operands.len() {
            return Err(self.unproved(position, "has a body that does not return what it carries"));
        }
        let body =
            self.module.bytecode.tree.regions_of(operation).last().and_then(|region| self.module.bytecode.tree.blocks_of(region).first());
        let body = body.ok_or_else(|| self.unproved(position, "has no body"))?;
        let residual = &mut frame.residual;
        let Some(current) = frame.loops.last_mut().filter(|current| current.operation == position) else { return Ok(true) };
        let before = current.unchanged.len();
        let is_unchanged = |value: ValueId, number: i128| residual.plain(value).is_some_and(|known| known.number == number);
        let changed =
            current.unchanged.iter().filter(|(place, number)| !handed_on.get(*place).is_some_and(|value| is_unchanged(*value, *number)));
        let mut gone: Vec<usize> = changed.map(|(place, _)| *place).collect();
        if !gone.is_empty() {
            // What such a value is handed on to changes as well, one round later: all of that at once.
            let arguments: Vec<ValueId> = values(body.arguments).collect();
            let mut handed_to: FxHashMap<ValueId, Vec<usize>> = FxHashMap::default();
            for (place, value) in handed_on.iter().enumerate() {
                handed_to.entry(*value).or_default().push(place);
            }
            let mut changed = FxHashSet::default();
            while let Some(place) = gone.pop() {
                if changed.insert(place) {
                    gone.extend(arguments.get(place).and_then(|argument| handed_to.remove(argument)).unwrap_or_default());
                }
            }
            current.unchanged.retain(|(place, _)| !changed.contains(place));
            current.rounds += 1;
            if current.rounds > MOST_ROUNDS {
                current.unchanged.clear();
            }
        }
        if current.unchanged.len() < before {
            return Ok(false);
        }
        let results: Vec<ValueId> = results.collect();
        for (place, number) in &current.unchanged {
            if let (Some(result), Some(operand)) = (results.get(*place), operands.get(*place)) {
                residual.set(*result, Some(Known { number: *number, origin: Origin::Platform }), Some(residual.root(*operand)));
            }
        }
        let places: Vec<usize> = current.unchanged.iter().map(|(place, _)| *place).collect();
        residual.dropped.insert(position, Dropped { operands: places.clone(), results: places });
        frame.loops.pop();
        Ok(true)
    }

    /// What the platform decides of what a manual computation returns.
    fn end_manual(&self, frame: &mut Frame, position: u32, returned: &[ValueId]) {
        let residual = &mut frame.residual;
        let mut places = Vec::new();
        for (place, (result, value)) in values(self.module.operation(position).results).zip(returned).enumerate() {
            let has_constants = self.module.integer(result).is_some_and(super::integer::Integer::has_constants);
            if let Some(number) = residual.decided(*value).filter(|_| has_constants) {
                residual.set(result, Some(Known { number, origin: Origin::Platform }), None);
                places.push(place);
            }
        }
        residual.dropped.entry(position).or_default().results = places;
    }
}
