//! Two modules side by side: every step that counts in the one has its counterpart in the other, in the same order.
//!
//! Functions are compared in pairs, as calls lead to them, each pair once. Within a pair, values of the two sides are bound to one another as the steps that
//! define them are met; operands correspond if they are bound, or if both are one and the same number.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alive::{alive, without};
use super::module::{Kind, Module, Unproved, callee_attribute, values};
use super::same::{Same, attribute_text, type_text};
use super::walk::{CarriesOut, Dropped, Item, Residual, Step, Walker};
use super::{Difference, DifferenceKind};
use crate::bytecode::{AttributeId, Block, Code, Entry, Field, Operation, TypeId, ValueId, code, dialect};
use crate::ir::{UNKNOWN_PLACE, place};

/// One of the two modules while a pair is looked at.
#[derive(Clone, Copy)]
struct Side<'s, 'b, 'a> {
    module: &'s Module<'b, 'a>,
    residual: &'s Residual,
}

/// Two functions that must do the same: numbers of what the walkers walked.
type Pair = (usize, usize);

/// The comparison of two modules.
pub(super) struct Pairs<'m, 'b, 'a> {
    pub(super) original: Walker<'m, 'b, 'a>,
    pub(super) split: Walker<'m, 'b, 'a>,
    pub(super) same: Same<'b, 'a>,
    pub(super) ignore_locations: bool,
    pub(super) level: usize,
    pub(super) differences: Vec<Difference>,
    /// Operations of the split that have their counterpart.
    pub(super) operations: usize,
    /// Functions of the split that have their counterpart.
    pub(super) functions: FxHashSet<u32>,
    seen: FxHashSet<Pair>,
    queue: VecDeque<Pair>,
}

/// What differs in a pair of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What<'b> {
    Name,
    Attribute(&'b [u8], Option<AttributeId>, Option<AttributeId>),
    OperandCount,
    Operand(usize, ValueId, ValueId),
    ResultCount,
    ResultType(usize, TypeId, TypeId),
    Location,
}

/// Functions that something names, to be compared as pairs.
#[derive(Default)]
struct Requests<'b> {
    pairs: Vec<Pair>,
    names: Vec<&'b [u8]>,
}

impl<'m, 'b: 'm, 'a> Pairs<'m, 'b, 'a> {
    pub(super) fn new(
        original: &'m Module<'b, 'a>,
        split: &'m Module<'b, 'a>,
        level: usize,
        ignore_locations: bool,
        split_carries_out: CarriesOut,
    ) -> Self {
        Self {
            original: Walker::new(original, CarriesOut::Platform),
            split: Walker::new(split, split_carries_out),
            same: Same::new(original.bytecode, split.bytecode),
            ignore_locations,
            level,
            differences: Vec::new(),
            operations: 0,
            functions: FxHashSet::default(),
            seen: FxHashSet::default(),
            queue: VecDeque::new(),
        }
    }

    /// Compares two functions, when their turn comes.
    pub(super) fn add(&mut self, pair: Pair) {
        if self.seen.insert(pair) {
            self.queue.push_back(pair);
        }
    }

    /// Compares functions of one name that anybody may call with anything.
    pub(super) fn add_named(&mut self, name: &[u8]) -> Result<(), Unproved> {
        let functions = (self.original.module.functions.get(name).copied(), self.split.module.functions.get(name).copied());
        match functions {
            (Some(original), Some(split)) => {
                let pair = (self.original.walk_any(original)?, self.split.walk_any(split)?);
                self.add(pair);
            }
            (Some(_), None) => self.report_function(name, "it is missing in SPLIT"),
            _ => self.report_function(name, "it is not in ORIGINAL"),
        }
        Ok(())
    }

    fn report_function(&mut self, name: &[u8], what: &str) {
        let function = Some(String::from_utf8_lossy(name).into_owned());
        self.differences.push(Difference { function, ..Difference::new(DifferenceKind::Function, self.level, what) });
    }

    /// Compares all pairs, and those that calls lead to.
    pub(super) fn run(&mut self) -> Result<(), Unproved> {
        while let Some((original, split)) = self.queue.pop_front() {
            let original = Side { module: self.original.module, residual: self.original.residual(original)? };
            let split = Side { module: self.split.module, residual: self.split.residual(split)? };
            let mut body = Body {
                original,
                split,
                same: &mut self.same,
                ignore_locations: self.ignore_locations,
                level: self.level,
                bound: FxHashMap::default(),
                requests: Requests::default(),
                differences: &mut self.differences,
                operations: &mut self.operations,
            };
            let before = body.differences.len();
            body.function();
            let requests = body.requests;
            if self.differences.len() == before {
                self.functions.insert(split.residual.function);
            }
            requests.pairs.into_iter().for_each(|pair| self.add(pair));
            for name in requests.names {
                self.add_named(name)?;
            }
        }
        Ok(())
    }

    /// Compares operations at the top that are no functions: meshes, and what else there may be.
    pub(super) fn top_level(&mut self) {
        let (original, split) = (self.original.module, self.split.module);
        let mut theirs: FxHashMap<&[u8], u32> = FxHashMap::default();
        for &position in &split.top {
            let operation = split.operation(position);
            match split.kind(operation) {
                Kind::Mesh => _ = theirs.insert(split.symbol(operation).unwrap_or_default(), position),
                Kind::Function | Kind::Return => {}
                _ => {
                    let what = format!("cannot be proved: `{}` stands in the module of SPLIT", split.name(operation));
                    self.differences.push(Difference::new(DifferenceKind::Unproved, self.level, what));
                }
            }
        }
        for &position in &original.top {
            let operation = original.operation(position);
            match original.kind(operation) {
                Kind::Function => {}
                Kind::Mesh => {
                    let name = original.symbol(operation).unwrap_or_default();
                    if let Some(other) = theirs.remove(name) {
                        self.mesh(name, operation, split.operation(other));
                    }
                }
                _ => {
                    let what = format!("cannot be proved: `{}` stands in the module of ORIGINAL", original.name(operation));
                    self.differences.push(Difference::new(DifferenceKind::Unproved, self.level, what));
                }
            }
        }
        let extra: Vec<_> = theirs.into_keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        for name in extra {
            let what = format!("mesh `{name}` of SPLIT is not in ORIGINAL");
            self.differences.push(Difference::new(DifferenceKind::Module, self.level, what));
        }
        let missing = self.missing_meshes();
        self.differences.extend(missing);
    }

    fn mesh(&mut self, name: &[u8], original: &Operation, split: &Operation) {
        let (ours, theirs) = (self.original.module, self.split.module);
        let (left, right) = (ours.inherent(original, "mesh"), theirs.inherent(split, "mesh"));
        let is_same = match (left, right) {
            (Some(left), Some(right)) => self.same.attributes(left, right),
            _ => false,
        };
        let is_here = self.ignore_locations || self.same.attributes(original.location, split.location);
        if !is_same || !is_here {
            let (what, left, right) =
                if is_same { ("location of mesh", Some(original.location), Some(split.location)) } else { ("mesh", left, right) };
            self.differences.push(Difference {
                original: left.map(|id| attribute_text(ours.bytecode, id)),
                split: right.map(|id| attribute_text(theirs.bytecode, id)),
                ..Difference::new(DifferenceKind::Module, self.level, format!("{what} `{}`", String::from_utf8_lossy(name)))
            });
        }
    }

    /// Meshes of the original that the split names, and does not have.
    fn missing_meshes(&self) -> Vec<Difference> {
        let (original, split) = (self.original.module, self.split.module);
        let meshes = |module: &Module<'b, 'a>| -> FxHashSet<&'b [u8]> {
            let operations = module.top.iter().map(|&position| module.operation(position));
            operations.filter(|operation| module.kind(operation) == Kind::Mesh).filter_map(|operation| module.symbol(operation)).collect()
        };
        let (ours, theirs) = (meshes(original), meshes(split));
        let tables = &split.bytecode.tables;
        let mut missing: Vec<_> = ours.difference(&theirs).copied().collect();
        missing.sort_unstable();
        let names: FxHashSet<&[u8]> =
            (0..tables.attribute_count() as u32).flat_map(|id| named_symbol(tables.attribute(AttributeId(id)), tables)).collect();
        missing.retain(|name| names.contains(name));
        let report = |name: &[u8]| {
            let what = format!("mesh `{}` is missing in SPLIT, which names it", String::from_utf8_lossy(name));
            Difference::new(DifferenceKind::Module, self.level, what)
        };
        missing.into_iter().map(report).collect()
    }

    /// Compares the attributes of the modules themselves. `is_polymorphic` is what the split must say of itself where it says so.
    pub(super) fn module_attributes(&mut self, is_polymorphic: Option<bool>) {
        const POLYMORPHISM: &[u8] = b"jax.uses_shape_polymorphism";
        let (ours, theirs) = (self.original.module, self.split.module);
        let (Some((_, original)), Some((_, split))) = (ours.bytecode.tree.top().next(), theirs.bytecode.tree.top().next()) else { return };
        let (left, right) = (ours.attributes(original), theirs.attributes(split));
        let is_true = |module: &Module<'b, 'a>, id: AttributeId| {
            let entry = module.bytecode.tables.attribute(id);
            entry.is(dialect::BUILTIN, code::builtin::INTEGER) && !matches!(entry.fields[..], [_, Field::Unsigned(0)])
        };
        for (name, left, right) in joined(&left, &right) {
            let is_same = match (left, right) {
                (Some(left), Some(right)) if name == POLYMORPHISM => {
                    let expected = is_true(ours, left) && is_polymorphic.unwrap_or(true);
                    is_true(theirs, right) == expected
                }
                (Some(left), Some(right)) => self.same.attributes(left, right),
                _ => false,
            };
            if !is_same {
                self.differences.push(Difference {
                    original: left.map(|id| attribute_text(ours.bytecode, id)),
                    split: right.map(|id| attribute_text(theirs.bytecode, id)),
                    ..Difference::new(
                        DifferenceKind::Module,
                        self.level,
                        format!("attribute `{}` of the module", String::from_utf8_lossy(name)),
                    )
                });
            }
        }
        if !self.ignore_locations && !self.same.attributes(original.location, split.location) {
            self.differences.push(Difference {
                original: Some(attribute_text(ours.bytecode, original.location)),
                split: Some(attribute_text(theirs.bytecode, split.location)),
                ..Difference::new(DifferenceKind::Module, self.level, "location of the module")
            });
        }
    }
}

/// The symbols that an entry names itself.
fn named_symbol<'t>(entry: &'t Entry<'_>, tables: &'t crate::bytecode::Tables<'_>) -> Option<&'t [u8]> {
    use code::builtin as b;
    match (entry.dialect, entry.code, &entry.fields[..]) {
        (dialect::BUILTIN, Code::Known(b::FLAT_SYMBOL_REF | b::SYMBOL_REF), [Field::Attribute(name), ..])
        | (dialect::VHLO, Code::Known(code::vhlo::REPLICA_GROUP_MESH_AXES), [Field::Attribute(name), ..]) => tables.string(*name),
        _ => None,
    }
}

/// The items of two lists by name, in the order of the first one.
fn joined<'b>(
    left: &[(&'b [u8], AttributeId)],
    right: &[(&'b [u8], AttributeId)],
) -> Vec<(&'b [u8], Option<AttributeId>, Option<AttributeId>)> {
    if left.iter().map(|item| item.0).eq(right.iter().map(|item| item.0)) {
        return left.iter().zip(right).map(|(left, right)| (left.0, Some(left.1), Some(right.1))).collect();
    }
    let find = |list: &[(&'b [u8], AttributeId)], name: &[u8]| list.iter().find(|item| item.0 == name).map(|item| item.1);
    let ours = left.iter().map(|(name, id)| (*name, Some(*id), find(right, name)));
    let theirs = right.iter().filter(|(name, _)| find(left, name).is_none()).map(|(name, id)| (*name, None, Some(*id)));
    ours.chain(theirs).collect()
}

/// The comparison of one pair of functions.
struct Body<'p, 's, 'b, 'a> {
    original: Side<'s, 'b, 'a>,
    split: Side<'s, 'b, 'a>,
    same: &'p mut Same<'b, 'a>,
    ignore_locations: bool,
    level: usize,
    /// What each value of the original is in the split.
    bound: FxHashMap<ValueId, ValueId>,
    requests: Requests<'b>,
    differences: &'p mut Vec<Difference>,
    operations: &'p mut usize,
}

impl<'b, 'a> Body<'_, '_, 'b, 'a> {
    fn function(&mut self) {
        let (original, split) = (self.original, self.split);
        let (ours, theirs) = (original.module.operation(original.residual.function), split.module.operation(split.residual.function));
        let dropped = (original.residual.dropped_arguments(), split.residual.dropped_arguments());
        let dropped = (&dropped.0[..], &dropped.1[..]);
        self.signature(ours, theirs, dropped);
        let (Some(our_block), Some(their_block)) = (original.module.only_block(ours), split.module.only_block(theirs)) else { return };
        if !self.arguments(ours, (our_block, their_block), dropped) {
            return;
        }
        self.steps(&alive(original.module, original.residual), &alive(split.module, split.residual));
    }

    /// Compares what functions say of themselves.
    fn signature(&mut self, ours: &Operation, theirs: &Operation, dropped: (&[usize], &[usize])) {
        let (original, split) = (self.original.module, self.split.module);
        for (name, left, right) in joined(&original.attributes(ours), &split.attributes(theirs)) {
            match name {
                b"sym_name" | b"function_type" | b"arg_attrs" | b"res_attrs" => {}
                _ => {
                    let is_same = matches!((left, right), (Some(left), Some(right)) if self.same.attributes(left, right));
                    if !is_same {
                        let what = format!("attribute `{}` of the function", String::from_utf8_lossy(name));
                        self.report_attributes(ours, what, left, right);
                    }
                }
            }
        }
        let (Some(our_types), Some(their_types)) = (function_types(original, ours), function_types(split, theirs)) else {
            return self.report(ours, "cannot be proved: the type of the function is none", None, None);
        };
        let ([inputs, results], [their_inputs, their_results]) = (&our_types, &their_types);
        let counts = [(inputs.len(), their_inputs.len()), (results.len(), their_results.len())];
        self.function_type(ours, our_types, their_types, dropped);
        let lists = [("arg_attrs", "argument", dropped), ("res_attrs", "result", (&[][..], &[][..]))];
        for ((name, what, dropped), counts) in lists.into_iter().zip(counts) {
            let list = |module: &Module<'b, 'a>, operation: &Operation| -> Vec<AttributeId> {
                let array = module.inherent(operation, name).and_then(|id| module.bytecode.tables.array(id));
                array.into_iter().flatten().collect()
            };
            if !is_list_of_dictionaries(original, ours, name, counts.0) || !is_list_of_dictionaries(split, theirs, name, counts.1) {
                self.report(
                    ours,
                    format!("cannot be proved: `{name}` of the function is no list with a dictionary for each {what}"),
                    None,
                    None,
                );
                continue;
            }
            let left = kept(&list(original, ours), dropped.0);
            let right = kept(&list(split, theirs), dropped.1);
            for place in 0..left.len().max(right.len()) {
                let (left, right) = (left.get(place).copied(), right.get(place).copied());
                let is_empty = |module: &Module<'b, 'a>, id: Option<AttributeId>| {
                    id.is_none_or(|id| module.bytecode.tables.dictionary(id).is_some_and(|mut items| items.next().is_none()))
                };
                let is_same = match (left, right) {
                    (Some(left), Some(right)) => self.same.attributes(left, right),
                    _ => is_empty(original, left) && is_empty(split, right),
                };
                self.requests.names.extend(left.map(|id| original.functions_in(id)).into_iter().flatten());
                if !is_same {
                    self.report_attributes(ours, format!("attributes of {what} {place} of the function"), left, right);
                }
            }
        }
        self.locations(ours, "location of the function", ours.location, theirs.location);
    }

    fn function_type(
        &mut self,
        ours: &Operation,
        [inputs, results]: [Vec<TypeId>; 2],
        [their_inputs, their_results]: [Vec<TypeId>; 2],
        dropped: (&[usize], &[usize]),
    ) {
        let (original, split) = (self.original.module, self.split.module);
        let inputs = (kept(&inputs, dropped.0), kept(&their_inputs, dropped.1));
        for (what, left, right) in [("argument", inputs.0, inputs.1), ("result", results, their_results)] {
            if left.len() != right.len() {
                let (left, right) = (left.len().to_string(), right.len().to_string());
                self.report(ours, format!("number of {what}s of the function"), Some(left), Some(right));
                continue;
            }
            for (place, (left, right)) in left.into_iter().zip(right).enumerate() {
                if !self.same.types(left, right) {
                    let (left, right) = (type_text(original.bytecode, left), type_text(split.bytecode, right));
                    self.report(ours, format!("type of {what} {place} of the function"), Some(left), Some(right));
                }
            }
        }
    }

    /// Binds the arguments of two blocks. Returns whether there are as many.
    fn arguments(&mut self, around: &Operation, (ours, theirs): (&Block, &Block), dropped: (&[usize], &[usize])) -> bool {
        let (original, split) = (self.original.module, self.split.module);
        let places = |block: &Block, dropped: &[usize]| kept(&(0..block.arguments.len as usize).collect::<Vec<_>>(), dropped);
        let (left, right) = (places(ours, dropped.0), places(theirs, dropped.1));
        if left.len() != right.len() {
            let (left, right) = (left.len().to_string(), right.len().to_string());
            self.report(around, "number of arguments of the block", Some(left), Some(right));
            return false;
        }
        for (place, number) in left.into_iter().zip(right) {
            let (left, right) = (ValueId(ours.arguments.start + place as u32), ValueId(theirs.arguments.start + number as u32));
            let (our_type, their_type) = (original.type_of(left), split.type_of(right));
            if !self.same.types(our_type, their_type) {
                let (left, right) = (type_text(original.bytecode, our_type), type_text(split.bytecode, their_type));
                self.report(around, format!("type of argument {number} of the block"), Some(left), Some(right));
            }
            let location = |module: &Module<'b, 'a>, block: &Block, place: usize| {
                module.bytecode.tree.argument_locations.get(block.locations as usize + place).copied()
            };
            if let (Some(left), Some(right)) = (location(original, ours, place), location(split, theirs, number)) {
                self.locations(around, &format!("location of argument {number} of the block"), left, right);
            }
            self.bound.insert(left, right);
        }
        true
    }

    /// Compares the steps that count.
    fn steps(&mut self, ours: &[Item], theirs: &[Item]) {
        let (mut left, mut right) = (0, 0);
        loop {
            let (a, b) = match (ours.get(left), theirs.get(right)) {
                (None, None) => return,
                (Some(a), Some(b)) => (a, b),
                // Both end with the terminator of the function, so nothing is left on one side alone.
                (Some(a), None) => return self.report_step(a, "it is missing in SPLIT"),
                (None, Some(b)) => return self.report_extra(b),
            };
            let differences = self.compare(a, b);
            match differences {
                Some(differences) if differences.is_empty() => {
                    if !self.accept(a, b, &differences) {
                        return;
                    }
                    (left, right) = (left + 1, right + 1);
                }
                // What is one number is compared where it is used: the split may have it as a constant.
                _ if is_constant(self.split, b) => right += 1,
                _ if is_number(self.original, a) => left += 1,
                Some(differences) if !differences.contains(&What::Name) => {
                    if !self.accept(a, b, &differences) {
                        return;
                    }
                    (left, right) = (left + 1, right + 1);
                }
                _ => return self.report_order((a, ours.get(left + 1)), (b, theirs.get(right + 1))),
            }
        }
    }

    /// What differs in two steps. `None` if they are of different kinds.
    fn compare(&mut self, a: &Item, b: &Item) -> Option<Vec<What<'b>>> {
        let (original, split) = (self.original, self.split);
        let (ours, theirs) = (original.module.operation(a.operation), split.module.operation(b.operation));
        match (a.step, b.step) {
            (Step::Plain, Step::Plain) | (Step::Open, Step::Open) | (Step::End, Step::End) => {
                let dropped = (self.dropped(original, a), self.dropped(split, b));
                Some(self.operations(ours, theirs, (&dropped.0, &dropped.1)))
            }
            (Step::Region(ours), Step::Region(theirs)) => (ours.is_some() == theirs.is_some()).then(Vec::new),
            (Step::Close, Step::Close) => Some(Vec::new()),
            _ => None,
        }
    }

    /// What the operation of a step need not have. A terminator need not have what results of the operation around it are gone.
    fn dropped(&self, side: Side<'_, 'b, 'a>, item: &Item) -> Dropped {
        if item.step != Step::End {
            return side.residual.dropped(item.operation);
        }
        let is_condition = side.module.operation(item.operation).end != side.module.operation(item.partner).end;
        let operands = if is_condition { Vec::new() } else { side.residual.dropped(item.partner).results };
        Dropped { operands, results: Vec::new() }
    }

    fn operations(&mut self, ours: &Operation, theirs: &Operation, dropped: (&Dropped, &Dropped)) -> Vec<What<'b>> {
        let (original, split) = (self.original, self.split);
        let (our_name, their_name) =
            (original.module.bytecode.tables.op_name(ours.name), split.module.bytecode.tables.op_name(theirs.name));
        if our_name.name != their_name.name || self.same.dialect(our_name.dialect) != Some(their_name.dialect) {
            return vec![What::Name];
        }
        let mut differences = Vec::new();
        let kind = original.module.kind(ours);
        for (name, left, right) in joined(&original.module.attributes(ours), &split.module.attributes(theirs)) {
            if kind == Kind::Call && name == callee_attribute(original.module.short_name(ours)).as_bytes() {
                continue;
            }
            let is_same = match (kind, name, left, right) {
                (Kind::Manual, b"in_shardings", Some(left), Some(right)) => {
                    self.shardings((left, &dropped.0.operands), (right, &dropped.1.operands))
                }
                (Kind::Manual, b"out_shardings", Some(left), Some(right)) => {
                    self.shardings((left, &dropped.0.results), (right, &dropped.1.results))
                }
                (_, _, Some(left), Some(right)) => self.same.attributes(left, right),
                _ => false,
            };
            if !is_same {
                differences.push(What::Attribute(name, left, right));
            }
        }
        let left: Vec<ValueId> = without(original.module.operands(ours), &dropped.0.operands).collect();
        let right: Vec<ValueId> = without(split.module.operands(theirs), &dropped.1.operands).collect();
        if left.len() != right.len() {
            differences.push(What::OperandCount);
        }
        for (place, (left, right)) in left.into_iter().zip(right).enumerate() {
            if !self.corresponds(left, right) {
                differences.push(What::Operand(place, left, right));
            }
        }
        let left = kept(&values(ours.results).collect::<Vec<_>>(), &dropped.0.results);
        let right = kept(&values(theirs.results).collect::<Vec<_>>(), &dropped.1.results);
        if left.len() != right.len() {
            differences.push(What::ResultCount);
        }
        for (place, (left, right)) in left.into_iter().zip(right).enumerate() {
            let (left, right) = (original.module.type_of(left), split.module.type_of(right));
            if !self.same.types(left, right) {
                differences.push(What::ResultType(place, left, right));
            }
        }
        if !self.ignore_locations && !self.same.attributes(ours.location, theirs.location) {
            differences.push(What::Location);
        }
        differences
    }

    /// Whether the shardings of the values of a manual computation are the same, but for values that are gone.
    fn shardings(&mut self, left: (AttributeId, &[usize]), right: (AttributeId, &[usize])) -> bool {
        let list = |module: &Module<'b, 'a>, (id, dropped): (AttributeId, &[usize])| {
            let entry = module.bytecode.tables.attribute(id);
            (entry.dialect == dialect::SDY).then(|| (entry.code, kept(&entry.attributes().collect::<Vec<_>>(), dropped)))
        };
        match (list(self.original.module, left), list(self.split.module, right)) {
            (Some((code, left)), Some((their_code, right))) if code == their_code && left.len() == right.len() => {
                left.into_iter().zip(right).all(|(left, right)| self.same.attributes(left, right))
            }
            _ => false,
        }
    }

    fn corresponds(&mut self, left: ValueId, right: ValueId) -> bool {
        let (original, split) = (self.original, self.split);
        if !self.same.types(original.module.type_of(left), split.module.type_of(right)) {
            return false;
        }
        let roots = (original.residual.root(left), split.residual.root(right));
        let bound = self.bound.get(&roots.0);
        if bound == Some(&roots.1) {
            return true;
        }
        let numbers = (original.residual.known(left), split.residual.known(right));
        let is_same = matches!(numbers, (Some(left), Some(right)) if left.number == right.number);
        // One constant is as good as another that says the same; which of several is bound to which is chance.
        is_same && (bound.is_none() || original.module.is_constant(roots.0) && split.module.is_constant(roots.1))
    }

    /// Takes two steps for one another, with what differs in them. Returns whether to go on.
    fn accept(&mut self, a: &Item, b: &Item, differences: &[What<'b>]) -> bool {
        let (original, split) = (self.original, self.split);
        let (ours, theirs) = (original.module.operation(a.operation), split.module.operation(b.operation));
        for what in differences {
            self.report_what(a, b, what);
        }
        match (a.step, b.step) {
            (Step::Plain | Step::Open, _) => {
                *self.operations += usize::from(differences.is_empty());
                let dropped = (original.residual.dropped(a.operation).results, split.residual.dropped(b.operation).results);
                let left = kept(&values(ours.results).collect::<Vec<_>>(), &dropped.0);
                let right = kept(&values(theirs.results).collect::<Vec<_>>(), &dropped.1);
                self.bound.extend(left.into_iter().zip(right));
                self.request(a, b, ours, theirs);
            }
            (Step::Region(Some(left)), Step::Region(Some(right))) => {
                let block = |side: Side<'_, 'b, 'a>, number: u32| side.module.bytecode.tree.blocks.get(number as usize).copied();
                let dropped = (original.residual.dropped(a.operation).operands, split.residual.dropped(b.operation).operands);
                if let (Some(left), Some(right)) = (block(original, left), block(split, right)) {
                    return self.arguments(ours, (&left, &right), (&dropped.0, &dropped.1));
                }
            }
            _ => {}
        }
        true
    }

    /// The functions that an operation names must be the same as well.
    fn request(&mut self, a: &Item, b: &Item, ours: &Operation, theirs: &Operation) {
        let (original, split) = (self.original, self.split);
        if let (Some(left), Some(right)) = (original.residual.callees.get(&a.operation), split.residual.callees.get(&b.operation)) {
            self.requests.pairs.push((*left, *right));
        }
        self.requests.names.extend(original.module.named_by(ours));
        self.requests.names.extend(split.module.named_by(theirs));
    }

    fn locations(&mut self, at: &Operation, what: &str, left: AttributeId, right: AttributeId) {
        if !self.ignore_locations && !self.same.attributes(left, right) {
            self.report_attributes(at, what.to_owned(), Some(left), Some(right));
        }
    }

    // ---- saying what differs

    fn report(&mut self, at: &Operation, what: impl Into<String>, original: Option<String>, split: Option<String>) {
        let module = self.original.module;
        let what = what.into();
        let kind = if what.starts_with("cannot be proved") { DifferenceKind::Unproved } else { DifferenceKind::Operation };
        let is_function = module.kind(at) == Kind::Function;
        let found = Some(place(&module.bytecode.tables, at.location)).filter(|place| place != UNKNOWN_PLACE);
        self.differences.push(Difference {
            function: Some(module.function_name(self.original.residual.function)),
            operation: (!is_function).then(|| module.name(at)),
            place: found,
            original,
            split,
            ..Difference::new(
                if is_function && kind == DifferenceKind::Operation { DifferenceKind::Function } else { kind },
                self.level,
                what,
            )
        });
    }

    fn report_attributes(&mut self, at: &Operation, what: String, left: Option<AttributeId>, right: Option<AttributeId>) {
        let left = left.map(|id| attribute_text(self.original.module.bytecode, id));
        let right = right.map(|id| attribute_text(self.split.module.bytecode, id));
        self.report(at, what, left, right);
    }

    fn report_what(&mut self, a: &Item, b: &Item, what: &What<'b>) {
        let (original, split) = (self.original, self.split);
        let (ours, theirs) = (original.module.operation(a.operation), split.module.operation(b.operation));
        let counts = |left: usize, right: usize| (Some(left.to_string()), Some(right.to_string()));
        let (text, (left, right)) = match what {
            What::Name => ("name".to_owned(), (Some(original.module.name(ours)), Some(split.module.name(theirs)))),
            What::Attribute(name, left, right) => {
                let left = left.map(|id| attribute_text(original.module.bytecode, id));
                let right = right.map(|id| attribute_text(split.module.bytecode, id));
                (format!("attribute `{}`", String::from_utf8_lossy(name)), (left, right))
            }
            What::OperandCount => {
                let dropped = (self.dropped(original, a).operands.len(), self.dropped(split, b).operands.len());
                ("number of operands".to_owned(), counts(ours.operands.len as usize - dropped.0, theirs.operands.len as usize - dropped.1))
            }
            What::Operand(place, left, right) => {
                let texts = (Some(self.value_text(*left)), Some(describe(split, *right)));
                (format!("operand {place}"), texts)
            }
            What::ResultCount => {
                let dropped = (self.dropped(original, a).results.len(), self.dropped(split, b).results.len());
                ("number of results".to_owned(), counts(ours.results.len as usize - dropped.0, theirs.results.len as usize - dropped.1))
            }
            What::ResultType(place, left, right) => {
                let texts = (type_text(original.module.bytecode, *left), type_text(split.module.bytecode, *right));
                (format!("type of result {place}"), (Some(texts.0), Some(texts.1)))
            }
            What::Location => {
                let texts =
                    (attribute_text(original.module.bytecode, ours.location), attribute_text(split.module.bytecode, theirs.location));
                ("location".to_owned(), (Some(texts.0), Some(texts.1)))
            }
        };
        self.report(ours, text, left, right);
    }

    /// A value of the original, and what it is in the split if that is something else than it looks.
    fn value_text(&self, value: ValueId) -> String {
        let text = describe(self.original, value);
        let root = self.original.residual.root(value);
        if self.bound.contains_key(&root) || self.original.residual.known(value).is_some() {
            return text;
        }
        format!("{text}, which SPLIT does not have")
    }

    fn report_step(&mut self, item: &Item, what: &str) {
        self.report(self.original.module.operation(item.operation), what, None, None);
    }

    fn report_extra(&mut self, item: &Item) {
        let text = step_text(self.split, item);
        let at = self.original.module.operation(self.original.residual.function);
        self.report(at, "SPLIT has one operation more", None, Some(text));
    }

    /// Two steps that are not the same at all.
    fn report_order(&mut self, (a, after): (&Item, Option<&Item>), (b, their_after): (&Item, Option<&Item>)) {
        let name = |side: Side<'_, 'b, 'a>, item: &Item| (item.step, side.module.name(side.module.operation(item.operation)));
        let ours = self.original.module.operation(a.operation);
        let (left, right) = (step_text(self.original, a), step_text(self.split, b));
        let is_missing = after.is_some_and(|after| name(self.original, after) == name(self.split, b));
        let is_extra = their_after.is_some_and(|after| name(self.split, after) == name(self.original, a));
        match (is_missing, is_extra) {
            (true, true) => self.report(ours, "order of operations", Some(left), Some(right)),
            (true, false) => self.report(ours, "it is missing in SPLIT", Some(left), Some(right)),
            (false, true) => self.report(ours, "SPLIT has another operation before it", Some(left), Some(right)),
            (false, false) => self.report(ours, "SPLIT has another operation in its place", Some(left), Some(right)),
        }
    }
}

/// Whether a step does nothing but compute values that are one number each.
fn is_number(side: Side<'_, '_, '_>, item: &Item) -> bool {
    let operation = side.module.operation(item.operation);
    item.step == Step::Plain
        && operation.results.len > 0
        && side.module.is_pure(operation)
        && values(operation.results).all(|result| side.residual.known(result).is_some())
}

/// Whether a step is nothing but a number, of the type that it says.
fn is_constant(side: Side<'_, '_, '_>, item: &Item) -> bool {
    let operation = side.module.operation(item.operation);
    let of = side.module.inherent(operation, "value").and_then(|id| side.module.bytecode.tables.attribute(id).types().next());
    side.module.kind(operation) == Kind::Constant
        && is_number(side, item)
        && values(operation.results).all(|result| of == Some(side.module.type_of(result)))
}

/// What a function takes and returns.
fn function_types(module: &Module<'_, '_>, function: &Operation) -> Option<[Vec<TypeId>; 2]> {
    let tables = &module.bytecode.tables;
    let of = tables.attribute(module.inherent(function, "function_type")?).types().next()?;
    let mut lists: Vec<Vec<TypeId>> = Vec::new();
    for field in &tables.r#type(of).fields {
        match field {
            Field::Count(_) => lists.push(Vec::new()),
            Field::Type(id) => lists.last_mut()?.push(*id),
            _ => return None,
        }
    }
    lists.try_into().ok()
}

/// Whether an attribute of a function, if it has it, is a list of dictionaries: none, or as many as it is said to have.
fn is_list_of_dictionaries(module: &Module<'_, '_>, function: &Operation, name: &str, count: usize) -> bool {
    let tables = &module.bytecode.tables;
    module.inherent(function, name).is_none_or(|id| {
        let items: Option<Vec<_>> = tables.array(id).map(Iterator::collect);
        items.is_some_and(|items| [0, count].contains(&items.len()) && items.iter().all(|id| tables.dictionary(*id).is_some()))
    })
}

/// The items but for those at some positions, which ascend.
fn kept<T: Copy>(items: &[T], dropped: &[usize]) -> Vec<T> {
    let kept = items.iter().enumerate().filter(|(place, _)| dropped.binary_search(place).is_err());
    kept.map(|(_, item)| *item).collect()
}

fn step_text(side: Side<'_, '_, '_>, item: &Item) -> String {
    let operation = side.module.operation(item.operation);
    let name = side.module.name(operation);
    let what = match item.step {
        Step::Plain | Step::Open => name,
        Step::Region(_) => format!("a region of {name}"),
        Step::End => format!("the end of the block, {name}"),
        Step::Close => format!("the end of {name}"),
    };
    match place(&side.module.bytecode.tables, operation.location) {
        place if place == UNKNOWN_PLACE => what,
        place => format!("{what} at {place}"),
    }
}

/// A value as messages show it.
fn describe(side: Side<'_, '_, '_>, value: ValueId) -> String {
    let of = type_text(side.module.bytecode, side.module.type_of(value));
    let tree = &side.module.bytecode.tree;
    if let Some(known) = side.residual.known(value) {
        return format!("the number {} : {of}", known.number);
    }
    let root = side.residual.root(value);
    let holds = |span: crate::bytecode::Span| span.range().contains(&root.index());
    if let Some(operation) = tree.operations.iter().find(|operation| holds(operation.results)) {
        let name = side.module.name(operation);
        let number = root.index() - operation.results.start as usize;
        let number = if operation.results.len > 1 { format!("result {number} of ") } else { String::new() };
        return match place(&side.module.bytecode.tables, operation.location) {
            place if place == UNKNOWN_PLACE => format!("{number}{name} : {of}"),
            place => format!("{number}{name} at {place} : {of}"),
        };
    }
    match tree.blocks.iter().find(|block| holds(block.arguments)) {
        Some(block) => format!("argument {} : {of}", root.index() - block.arguments.start as usize),
        None => of,
    }
}
