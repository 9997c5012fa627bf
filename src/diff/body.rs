//! Two modules side by side: what stands around their functions, which functions there are, and the operations of those that both have.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::collections::{HashMap, VecDeque};

use super::align::common;
use super::classes::{Classes, Renamed, classes};
use super::matching::Matching;
use super::module::{Mesh, Module, values};
use super::shapes::{Interner, Shapes, is_constant};
use super::{Change, ChangeKind, Detail, Found, How, Side, shown, text};
use crate::bytecode::{AttributeId, Block, Bytecode, Field, Operation, Region, ResourceData, Span, TypeId, ValueId};
use crate::ir::text::{Lines, Spelling};
use crate::ir::{UNKNOWN_PLACE, place};

/// Names that a change of order shows.
const MOST_NAMES: usize = 12;
/// Operations that are taken for one another though they have nothing in common but their results.
const MOST_REPLACED: usize = 8;

/// Lists what differs between two modules.
pub(super) fn compare<'a>(a: &Bytecode<'a>, b: &Bytecode<'a>, level: usize, found: &mut Found) {
    let modules = (Module::new(a), Module::new(b));
    let mut numbers = classes(a, b, &Renamed::new());
    let meshes = match_meshes((&modules.0.meshes, &modules.1.meshes), &numbers);
    let mesh_names = meshes.iter().map(|(ours, theirs)| (modules.0.meshes[*ours].name, modules.1.meshes[*theirs].name));
    let renamed: Renamed<'_> = mesh_names.filter(|(ours, theirs)| ours != theirs).collect();
    if !renamed.is_empty() {
        numbers = classes(a, b, &renamed);
    }
    let [ours, theirs] = &numbers;
    let mut interner = Interner::default();
    let mut shapes = (Shapes::new(&modules.0, ours, &mut interner), Shapes::new(&modules.1, theirs, &mut interner));
    let functions = [shapes.0.functions(&modules.0, ours, &mut interner), shapes.1.functions(&modules.1, theirs, &mut interner)];
    let matching = Matching::new([&modules.0, &modules.1], [&functions[0], &functions[1]]);
    let matched = |of: &[Option<usize>]| of.iter().map(|pair| pair.map(|pair| pair as u32)).collect::<Vec<_>>();
    shapes.0.finish(&modules.0, ours, &mut interner, &matched(&matching.of_a));
    shapes.1.finish(&modules.1, theirs, &mut interner, &matched(&matching.of_b));
    let mut spellings = (Spelling::new(), Spelling::new());
    let mut comparison = Comparison {
        a: Half { module: &modules.0, classes: ours, shapes: &shapes.0, lines: spellings.0.lines(a) },
        b: Half { module: &modules.1, classes: theirs, shapes: &shapes.1, lines: spellings.1.lines(b) },
        matching,
        bound: vec![None; a.tree.value_types.len()],
        locations: Locations::default(),
        level,
        found,
    };
    comparison.encoding();
    comparison.module();
    comparison.meshes(&meshes);
    comparison.order();
    comparison.others();
    comparison.functions(&functions);
}

/// Pairs of meshes: by name, and what is left by what they are.
fn match_meshes((a, b): (&[Mesh<'_>], &[Mesh<'_>]), [ours, theirs]: &[Classes; 2]) -> Vec<(usize, usize)> {
    let mut by_name: HashMap<_, _> = b.iter().enumerate().rev().map(|(number, mesh)| (mesh.name, number)).collect();
    let mut pairs: Vec<_> = a.iter().enumerate().filter_map(|(number, mesh)| Some((number, by_name.remove(mesh.name)?))).collect();
    let mut is_taken = (vec![false; a.len()], vec![false; b.len()]);
    for (ours, theirs) in &pairs {
        (is_taken.0[*ours], is_taken.1[*theirs]) = (true, true);
    }
    let mut free: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, mesh) in b.iter().enumerate().rev().filter(|(number, _)| !is_taken.1[*number]) {
        mesh.value.into_iter().for_each(|value| free.entry(theirs.attribute(value)).or_default().push(number));
    }
    for (number, mesh) in a.iter().enumerate().filter(|(number, _)| !is_taken.0[*number]) {
        let other = mesh.value.and_then(|value| free.get_mut(&ours.attribute(value))?.pop());
        pairs.extend(other.map(|other| (number, other)));
    }
    pairs.sort_unstable();
    pairs
}

/// One of the two modules.
struct Half<'c, 'b, 'a> {
    module: &'c Module<'b, 'a>,
    classes: &'c Classes,
    shapes: &'c Shapes,
    lines: Lines<'b, 'a>,
}

impl<'b> Half<'_, 'b, '_> {
    fn class_of(&self, value: ValueId) -> u32 {
        self.classes.r#type(self.type_of(value))
    }

    fn type_of(&self, value: ValueId) -> TypeId {
        self.module.bytecode.tree.value_types[value.index()]
    }

    fn regions(&self, operation: &Operation) -> &'b [Region] {
        self.module.bytecode.tree.regions_of(operation)
    }

    fn blocks(&self, region: &Region) -> &'b [Block] {
        self.module.bytecode.tree.blocks_of(region)
    }

    fn positions(&self, block: &Block) -> Vec<u32> {
        self.module.bytecode.tree.operations_in(block).map(|(position, _)| position).collect()
    }

    /// The first block of an operation's first region.
    fn entry(&self, operation: &Operation) -> Option<&'b Block> {
        self.blocks(self.regions(operation).first()?).first()
    }

    fn attributes(&self, operation: &Operation) -> Vec<(&'b [u8], AttributeId)> {
        let mut attributes = self.module.bytecode.attributes_of(operation);
        attributes.sort();
        attributes
    }

    fn function_name(&self, function: usize) -> String {
        text(self.module.functions[function].name)
    }

    fn place(&self, location: AttributeId) -> Option<String> {
        Some(place(&self.module.bytecode.tables, location)).filter(|place| place != UNKNOWN_PLACE)
    }

    /// An operation as changes show it.
    fn side(&mut self, position: u32, function: Option<usize>) -> Side {
        let operation = self.module.operation(position);
        let mut side = Side::new(self.lines.operation(position));
        let inside = operation.end - position - 1;
        if inside > 0 {
            side.text.push_str(&format!(" ({inside} inside)"));
        }
        side.function = function.map(|function| self.function_name(function));
        side.place = self.place(operation.location);
        side
    }

    /// A value by its name and what it comes from.
    fn value(&mut self, value: ValueId) -> String {
        let name = self.lines.value(value);
        match self.shapes.origin(value) {
            Some(origin) => format!("{name} of {}", short_name(&self.module.bytecode.op_name(self.module.operation(origin)))),
            None => name,
        }
    }
}

/// The name of an operation as StableHLO calls it.
fn short_name(name: &str) -> String {
    let Some(name) = name.strip_prefix("vhlo.") else { return name.to_owned() };
    let base = name.rsplit_once("_v").filter(|(_, version)| version.bytes().all(|digit| digit.is_ascii_digit()));
    match base.map_or(name, |(base, _)| base) {
        "call" => "func.call".to_owned(),
        name => format!("stablehlo.{name}"),
    }
}

/// What became of an operation, or of two.
#[derive(Clone, Copy)]
enum Event {
    Pair(u32, u32),
    Moved(u32, u32),
    Removed(u32),
    Added(u32),
}

/// Locations that differ.
#[derive(Default)]
struct Locations {
    count: usize,
    first: Option<(AttributeId, AttributeId)>,
}

struct Comparison<'c, 'b, 'a> {
    a: Half<'c, 'b, 'a>,
    b: Half<'c, 'b, 'a>,
    matching: Matching,
    /// What each value of the first module is in the second one.
    bound: Vec<Option<ValueId>>,
    /// Those of the function at hand.
    locations: Locations,
    level: usize,
    found: &'c mut Found,
}

impl Comparison<'_, '_, '_> {
    /// What says how a module is written, and what stands beside it.
    fn encoding(&mut self) {
        let (a, b) = (self.a.module.bytecode, self.b.module.bytecode);
        let mut version = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                self.found.fact(ChangeKind::Version, self.level, what, Some(ours), Some(theirs));
            }
        };
        version("producer", text(&a.producer), text(&b.producer));
        version("bytecode version", a.version.to_string(), b.version.to_string());
        let (ours, theirs) = (resources(a), resources(b));
        if ours != theirs {
            let count = |resources: &[Resource]| Some(format!("{} of them", resources.len()));
            self.found.fact(ChangeKind::Module, self.level, "resources", count(&ours), count(&theirs));
        }
    }

    /// What the module says of itself.
    fn module(&mut self) {
        let (Some(ours), Some(theirs)) = (self.a.module.top(), self.b.module.top()) else { return };
        for (name, left, right) in joined(&self.a.attributes(ours), &self.b.attributes(theirs)) {
            if self.is_same(left, right) {
                continue;
            }
            let is_name = name == b"sym_name";
            let (kind, what) = if is_name {
                (ChangeKind::Name, "name of the module".to_owned())
            } else {
                (ChangeKind::Module, format!("attribute `{}`", text(name)))
            };
            let (left, right) = self.attribute_texts(left, right);
            self.found.fact(kind, self.level, what, left, right);
        }
        self.location(ours.location, theirs.location);
        self.report_locations("of the module", None);
    }

    fn meshes(&mut self, pairs: &[(usize, usize)]) {
        let (ours, theirs) = (&self.a.module.meshes, &self.b.module.meshes);
        let mut is_matched = (vec![false; ours.len()], vec![false; theirs.len()]);
        for &(one, other) in pairs {
            (is_matched.0[one], is_matched.1[other]) = (true, true);
            let (left, right) = (&ours[one], &theirs[other]);
            if left.name != right.name {
                self.renamed(ChangeKind::Name, "mesh", (left.name, right.name));
            }
            if !self.is_same(left.value, right.value) {
                let texts = self.attribute_texts(left.value, right.value);
                self.found.fact(ChangeKind::Module, self.level, format!("mesh @{}", text(left.name)), texts.0, texts.1);
            }
            self.location(self.a.module.operation(left.position).location, self.b.module.operation(right.position).location);
        }
        for (mesh, _) in ours.iter().zip(is_matched.0).filter(|(_, is_matched)| !is_matched) {
            let value = mesh.value.map_or_else(String::new, |value| self.a.lines.attribute(value));
            self.found.fact(ChangeKind::Module, self.level, format!("mesh @{}", text(mesh.name)), Some(value), None);
        }
        for (mesh, _) in theirs.iter().zip(is_matched.1).filter(|(_, is_matched)| !is_matched) {
            let value = mesh.value.map_or_else(String::new, |value| self.b.lines.attribute(value));
            self.found.fact(ChangeKind::Module, self.level, format!("mesh @{}", text(mesh.name)), None, Some(value));
        }
        self.report_locations("of meshes", None);
    }

    fn renamed(&mut self, kind: ChangeKind, what: &str, (ours, theirs): (&[u8], &[u8])) {
        let level = self.level;
        self.found.add(kind, 1, || {
            let side = |name: &[u8]| Some(Side::new(format!("@{}", text(name))));
            Change { kind, how: How::Renamed, level, what: what.to_owned(), a: side(ours), b: side(theirs), details: Vec::new() }
        });
    }

    /// Whether the functions that both have stand in the same order.
    fn order(&mut self) {
        let mut pairs = self.matching.pairs.clone();
        pairs.sort_unstable();
        let theirs: Vec<_> = pairs.iter().map(|(_, theirs)| *theirs).collect();
        let Some(first) = theirs.windows(2).position(|pair| pair[0] > pair[1]) else { return };
        let mut sorted = theirs.clone();
        sorted.sort_unstable();
        let level = self.level;
        let names = |names: &mut dyn Iterator<Item = String>| {
            Some(Side::new(names.skip(first).take(MOST_NAMES).map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ")))
        };
        let a = names(&mut pairs.iter().map(|(ours, _)| self.a.function_name(*ours)));
        let b = names(&mut sorted.iter().map(|theirs| self.b.function_name(*theirs)));
        let what = "order of functions".to_owned();
        self.found.add(ChangeKind::Name, 1, || Change { kind: ChangeKind::Name, how: How::Moved, level, what, a, b, details: Vec::new() });
    }

    /// Operations at the top that are neither functions nor meshes.
    fn others(&mut self) {
        let events = self.events(vec![(self.a.module.others.clone(), self.b.module.others.clone())]);
        self.changes(&events, None);
        self.report_locations("of the module", None);
    }

    fn functions(&mut self, numbers: &[Vec<u32>; 2]) {
        let mut order: Vec<usize> = (0..self.matching.pairs.len()).collect();
        order.sort_by_key(|pair| self.matching.pairs[*pair].0);
        let mut order = VecDeque::from(order);
        let mut known = order.len();
        while let Some(pair) = order.pop_front() {
            let (ours, theirs) = self.matching.pairs[pair];
            self.function((ours, theirs), numbers[0][ours] == numbers[1][theirs]);
            // Calls may have led to further ones.
            order.extend(known..self.matching.pairs.len());
            known = self.matching.pairs.len();
        }
        for function in (0..self.a.module.functions.len()).filter(|function| self.matching.of_a[*function].is_none()).collect::<Vec<_>>() {
            self.lone_function(function, How::Removed);
        }
        for function in (0..self.b.module.functions.len()).filter(|function| self.matching.of_b[*function].is_none()).collect::<Vec<_>>() {
            self.lone_function(function, How::Added);
        }
    }

    fn lone_function(&mut self, number: usize, how: How) {
        let half = if how == How::Removed { &self.a } else { &self.b };
        let function = &half.module.functions[number];
        let operation = half.module.operation(function.position);
        let name = format!("@{}", text(function.name));
        let inside = operation.end - function.position - 1;
        let side = Side { place: half.place(operation.location), ..Side::new(format!("{name} ({inside} inside)")) };
        let (a, b) = if how == How::Removed { (Some(side), None) } else { (None, Some(side)) };
        let level = self.level;
        self.found.add(ChangeKind::Function, 1, || Change {
            kind: ChangeKind::Function,
            how,
            level,
            what: name,
            a,
            b,
            details: Vec::new(),
        });
    }

    /// Compares two functions; those that do the same can differ in names and places only.
    fn function(&mut self, pair: (usize, usize), is_same: bool) {
        let functions = (&self.a.module.functions[pair.0], &self.b.module.functions[pair.1]);
        let kind = if functions.0.is_private && functions.1.is_private { ChangeKind::Name } else { ChangeKind::Function };
        if functions.0.name != functions.1.name {
            self.renamed(kind, "function", (functions.0.name, functions.1.name));
        }
        let (first, second) = (functions.0.position, functions.1.position);
        let (ours, theirs) = (self.a.module.operation(first), self.b.module.operation(second));
        if is_same {
            let inside = (first..ours.end).zip(second..theirs.end);
            inside.for_each(|(ours, theirs)| self.locations_of(ours, theirs));
        } else {
            self.signature(pair, (ours, theirs));
            self.locations_of(first, second);
            let events = self.inside(ours, theirs);
            self.changes(&events, Some(pair));
        }
        self.report_locations(&format!("in @{}", text(functions.0.name)), Some(pair));
    }

    /// Compares what functions say of themselves.
    fn signature(&mut self, pair: (usize, usize), (ours, theirs): (&Operation, &Operation)) {
        let mut details = Vec::new();
        let blocks = [self.a.entry(ours), self.b.entry(theirs)];
        if let [Some(left), Some(right)] = blocks {
            let arguments = self.values(left.arguments, right.arguments);
            for (left, right) in &arguments {
                if let (Some(left), Some(right)) = (left, right) {
                    self.bound[left.1.index()] = Some(right.1);
                }
                self.value_details(&mut details, "argument", *left, *right);
            }
            let attributes = (dictionaries(self.a.module, ours, "arg_attrs"), dictionaries(self.b.module, theirs, "arg_attrs"));
            for (left, right) in arguments {
                if let (Some((left, _)), Some((right, _))) = (left, right) {
                    let what = format!("argument {left}");
                    self.dictionary_details(&mut details, &what, (attributes.0.get(left), attributes.1.get(right)));
                }
            }
        }
        let types = |half: &Half<'_, '_, '_>, operation: &Operation| {
            let of = half.module.bytecode.inherent(operation, "function_type").map(|id| half.module.bytecode.tables.attribute(id));
            let of = of.and_then(|of| of.types().next()).map(|of| half.module.bytecode.tables.r#type(of));
            let [Field::Count(inputs), rest @ ..] = of.map_or(&[][..], |of| &of.fields[..]) else { return Vec::new() };
            rest.iter()
                .skip(*inputs as usize)
                .filter_map(|field| if let Field::Type(id) = field { Some(*id) } else { None })
                .collect::<Vec<_>>()
        };
        let (left, right) = (types(&self.a, ours), types(&self.b, theirs));
        let results = [left.len(), right.len()];
        let attributes = (dictionaries(self.a.module, ours, "res_attrs"), dictionaries(self.b.module, theirs, "res_attrs"));
        for number in 0..left.len().max(right.len()) {
            let (one, other) = (left.get(number).copied(), right.get(number).copied());
            if one.map(|id| self.a.classes.r#type(id)) != other.map(|id| self.b.classes.r#type(id)) {
                let texts = (one.map(|id| self.a.lines.r#type(id)), other.map(|id| self.b.lines.r#type(id)));
                details.push(detail(format!("type of result {number}"), texts.0, texts.1));
            }
            let what = format!("result {number}");
            self.dictionary_details(&mut details, &what, (attributes.0.get(number), attributes.1.get(number)));
        }
        for (name, left, right) in joined(&self.a.attributes(ours), &self.b.attributes(theirs)) {
            // Types and attributes of arguments and results were compared one by one.
            let counts =
                if name == b"arg_attrs" { blocks.map(|block| block.map_or(0, |block| block.arguments.len as usize)) } else { results };
            let is_looked_at = match name {
                b"sym_name" => true,
                b"function_type" => !details.is_empty(),
                b"arg_attrs" | b"res_attrs" => {
                    are_dictionaries(self.a.module, left, counts[0]) && are_dictionaries(self.b.module, right, counts[1])
                }
                _ => false,
            };
            if !is_looked_at && !self.is_same(left, right) {
                let texts = self.attribute_texts(left, right);
                details.push(detail(format!("attribute `{}`", text(name)), texts.0, texts.1));
            }
        }
        if details.is_empty() {
            return;
        }
        let side = |half: &Half<'_, '_, '_>, function: usize, operation: &Operation| {
            let name = half.function_name(function);
            Some(Side { place: half.place(operation.location), ..Side::new(format!("@{name}")) })
        };
        let (a, b) = (side(&self.a, pair.0, ours), side(&self.b, pair.1, theirs));
        let (level, what) = (self.level, format!("@{}", self.a.function_name(pair.0)));
        self.found.add(ChangeKind::Function, 1, || Change { kind: ChangeKind::Function, how: How::Changed, level, what, a, b, details });
    }

    /// Pairs of values by their numbers: one by one where there are as many, else by their types.
    #[expect(clippy::type_complexity, reason = "a number and a value, on each side")]
    fn values(&self, ours: Span, theirs: Span) -> Vec<(Option<(usize, ValueId)>, Option<(usize, ValueId)>)> {
        let (left, right) = (values(ours).enumerate(), values(theirs).enumerate());
        if ours.len == theirs.len {
            return left.zip(right).map(|(left, right)| (Some(left), Some(right))).collect();
        }
        let classes = |half: &Half<'_, '_, '_>, span| values(span).map(|value| half.class_of(value)).collect::<Vec<_>>();
        let matched = common(&classes(&self.a, ours), &classes(&self.b, theirs));
        let mut pairs: Vec<_> = matched.iter().map(|(one, other)| (Some(*one), Some(*other))).collect();
        pairs.extend(apart(ours.len as usize, theirs.len as usize, matched));
        let (left, right): (Vec<_>, Vec<_>) = (left.collect(), right.collect());
        let pair = |(one, other): (Option<usize>, Option<usize>)| (one.map(|one| left[one]), other.map(|other| right[other]));
        pairs.into_iter().map(pair).collect()
    }

    /// The type of an argument or a result, where it is another one or there is none.
    fn value_details(&mut self, details: &mut Vec<Detail>, what: &str, left: Option<(usize, ValueId)>, right: Option<(usize, ValueId)>) {
        if left.map(|value| self.a.class_of(value.1)) == right.map(|value| self.b.class_of(value.1)) {
            return;
        }
        let number = left.or(right).map_or(0, |value| value.0);
        let what = if left.is_some() && right.is_some() { format!("type of {what} {number}") } else { format!("{what} {number}") };
        let left = left.map(|value| self.a.lines.r#type(self.a.type_of(value.1)));
        let right = right.map(|value| self.b.lines.r#type(self.b.type_of(value.1)));
        details.push(detail(what, left, right));
    }

    /// The attributes of an argument or a result.
    fn dictionary_details(&mut self, details: &mut Vec<Detail>, what: &str, (ours, theirs): (Option<&AttributeId>, Option<&AttributeId>)) {
        let (left, right) = (items(self.a.module, ours), items(self.b.module, theirs));
        for (name, left, right) in joined(&left, &right) {
            if !self.is_same(left, right) {
                let texts = self.attribute_texts(left, right);
                details.push(detail(format!("attribute `{}` of {what}", text(name)), texts.0, texts.1));
            }
        }
    }

    /// What became of the operations in two lists each, and inside them.
    fn events(&self, lists: Vec<(Vec<u32>, Vec<u32>)>) -> Vec<Event> {
        let mut events = Vec::new();
        lists.iter().for_each(|(ours, theirs)| self.align(ours, theirs, 0, &mut events));
        moved(&mut events, self)
    }

    fn inside(&self, ours: &Operation, theirs: &Operation) -> Vec<Event> {
        self.events(self.lists(ours, theirs))
    }

    /// The operations of each block of two operations.
    fn lists(&self, ours: &Operation, theirs: &Operation) -> Vec<(Vec<u32>, Vec<u32>)> {
        let (left, right) = (self.a.regions(ours), self.b.regions(theirs));
        let mut lists = Vec::new();
        for region in 0..left.len().max(right.len()) {
            let left = left.get(region).map_or(&[][..], |region| self.a.blocks(region));
            let right = right.get(region).map_or(&[][..], |region| self.b.blocks(region));
            for block in 0..left.len().max(right.len()) {
                let left = left.get(block).map_or_else(Vec::new, |block| self.a.positions(block));
                let right = right.get(block).map_or_else(Vec::new, |block| self.b.positions(block));
                lists.push((left, right));
            }
        }
        lists
    }

    /// Puts two lists of operations side by side: first those that are the same with what computes their operands, then what lies between them, by ever less.
    fn align(&self, ours: &[u32], theirs: &[u32], pass: usize, events: &mut Vec<Event>) {
        let numbers = match pass {
            0 => (&self.a.shapes.deep, &self.b.shapes.deep),
            1 => (&self.a.shapes.own, &self.b.shapes.own),
            2 => (&self.a.shapes.names, &self.b.shapes.names),
            _ => (&self.a.shapes.results, &self.b.shapes.results),
        };
        let number = |numbers: &[u32], list: &[u32]| list.iter().map(|position| numbers[*position as usize]).collect::<Vec<_>>();
        let (left, right) = (number(numbers.0, ours), number(numbers.1, theirs));
        let is_last = pass == 3;
        let matched = match () {
            () if ours.is_empty() || theirs.is_empty() => Vec::new(),
            // What has nothing in common but its results is taken for the same where it stands alone.
            () if is_last && (left != right || left.len() > MOST_REPLACED) => Vec::new(),
            () => common(&left, &right),
        };
        let (mut one, mut other) = (0, 0);
        for (left, right) in matched.into_iter().chain([(ours.len(), theirs.len())]) {
            let (before, beside) = (&ours[one..left], &theirs[other..right]);
            if is_last || before.is_empty() || beside.is_empty() {
                events.extend(before.iter().map(|position| Event::Removed(*position)));
                events.extend(beside.iter().map(|position| Event::Added(*position)));
            } else {
                self.align(before, beside, pass + 1, events);
            }
            if let (Some(left), Some(right)) = (ours.get(left), theirs.get(right)) {
                self.pair(*left, *right, events);
            }
            (one, other) = (left + 1, right + 1);
        }
    }

    /// Takes two operations for the same, and looks inside them. Recurses into regions, whose depth the readers bound.
    fn pair(&self, ours: u32, theirs: u32, events: &mut Vec<Event>) {
        events.push(Event::Pair(ours, theirs));
        let (left, right) = (self.a.module.operation(ours), self.b.module.operation(theirs));
        if self.a.shapes.deep[ours as usize] == self.b.shapes.deep[theirs as usize] {
            events.extend((ours + 1..left.end).zip(theirs + 1..right.end).map(|(ours, theirs)| Event::Pair(ours, theirs)));
        } else {
            self.lists(left, right).iter().for_each(|(ours, theirs)| self.align(ours, theirs, 0, events));
        }
    }

    /// Lists what became of operations.
    fn changes(&mut self, events: &[Event], function: Option<(usize, usize)>) {
        for event in events {
            if let Event::Pair(ours, theirs) | Event::Moved(ours, theirs) = *event {
                self.bind(ours, theirs);
            }
        }
        let kind = ChangeKind::Operation;
        for event in events {
            let (how, ours, theirs) = match *event {
                Event::Pair(ours, theirs) => (How::Changed, Some(ours), Some(theirs)),
                Event::Moved(ours, theirs) => (How::Moved, Some(ours), Some(theirs)),
                Event::Removed(ours) => (How::Removed, Some(ours), None),
                Event::Added(theirs) => (How::Added, None, Some(theirs)),
            };
            let mut details = Vec::new();
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                details = self.details(ours, theirs);
                self.locations_of(ours, theirs);
                if details.is_empty() && how == How::Changed {
                    continue;
                }
            }
            let Self { a, b, level, found, .. } = self;
            let level = *level;
            found.add(kind, 1, || {
                let half = if ours.is_some() { &a } else { &b };
                let what =
                    ours.or(theirs).map_or_else(String::new, |position| half.module.bytecode.op_name(half.module.operation(position)));
                let ours = ours.map(|position| a.side(position, function.map(|function| function.0)));
                let theirs = theirs.map(|position| b.side(position, function.map(|function| function.1)));
                Change { kind, how, level, what, a: ours, b: theirs, details }
            });
        }
    }

    fn bind(&mut self, ours: u32, theirs: u32) {
        let (left, right) = (self.a.module.operation(ours), self.b.module.operation(theirs));
        self.bind_values(left.results, right.results);
        for (left, right) in self.a.regions(left).iter().zip(self.b.regions(right)) {
            for (left, right) in self.a.blocks(left).iter().zip(self.b.blocks(right)) {
                self.bind_values(left.arguments, right.arguments);
            }
        }
    }

    fn bind_values(&mut self, ours: Span, theirs: Span) {
        for (left, right) in self.values(ours, theirs) {
            if let (Some(left), Some(right)) = (left, right) {
                self.bound[left.1.index()] = Some(right.1);
            }
        }
    }

    /// What differs in a pair of operations.
    fn details(&mut self, ours: u32, theirs: u32) -> Vec<Detail> {
        let mut details = Vec::new();
        let (left, right) = (self.a.module.operation(ours), self.b.module.operation(theirs));
        let is_alike = self.a.shapes.own[ours as usize] == self.b.shapes.own[theirs as usize];
        if !is_alike {
            let names = (self.a.module.bytecode.op_name(left), self.b.module.bytecode.op_name(right));
            if names.0 != names.1 {
                details.push(detail("operation", Some(names.0), Some(names.1)));
            }
            self.attribute_details(&mut details, left, right);
        }
        if self.a.shapes.names_functions(ours) || self.b.shapes.names_functions(theirs) {
            self.callees(&mut details, left, right);
        }
        self.operands(&mut details, left, right);
        if !is_alike {
            for (left, right) in self.values(left.results, right.results) {
                self.value_details(&mut details, "result", left, right);
            }
            let successors = |half: &Half<'_, '_, '_>, operation: &Operation| {
                half.module.bytecode.tree.successors[operation.successors.range()]
                    .iter()
                    .map(|block| format!("^bb{block}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (one, other) = (successors(&self.a, left), successors(&self.b, right));
            if one != other {
                details.push(detail("successors", Some(one), Some(other)));
            }
            if left.regions.len != right.regions.len {
                details.push(detail("regions", Some(left.regions.len.to_string()), Some(right.regions.len.to_string())));
            }
        }
        let names_functions = self.a.shapes.names_functions(ours);
        if let (false, true, false, Some(one), Some(other)) =
            (is_alike, details.is_empty(), names_functions, left.attributes, right.attributes)
            && !self.is_same(Some(one), Some(other))
        {
            // Dictionaries with something in them that has no name.
            let texts = self.attribute_texts(Some(one), Some(other));
            details.push(detail("attributes", texts.0, texts.1));
        }
        for (number, (left, right)) in self.a.regions(left).iter().zip(self.b.regions(right)).enumerate() {
            let (left, right) = (self.a.blocks(left), self.b.blocks(right));
            if left.len() != right.len() {
                details.push(detail(format!("blocks of region {number}"), Some(left.len().to_string()), Some(right.len().to_string())));
            }
            for (left, right) in left.iter().zip(right) {
                for (left, right) in self.values(left.arguments, right.arguments) {
                    self.value_details(&mut details, &format!("argument of region {number},"), left, right);
                }
            }
        }
        details
    }

    fn attribute_details(&mut self, details: &mut Vec<Detail>, ours: &Operation, theirs: &Operation) {
        let modules = (self.a.module, self.b.module);
        for (name, left, right) in joined(&self.a.attributes(ours), &self.b.attributes(theirs)) {
            // Callees are compared as functions.
            let is_callee = |module: &Module<'_, '_>, id: Option<AttributeId>| id.is_some_and(|id| module.is_naming(name, id));
            if self.is_same(left, right) || (is_callee(modules.0, left) && is_callee(modules.1, right)) {
                continue;
            }
            let what = format!("attribute `{}`", text(name));
            let difference = left.zip(right).and_then(|(left, right)| self.constants(left, right));
            details.push(match difference {
                Some((how_many, left, right)) => detail(format!("{what}, {how_many}"), Some(left), Some(right)),
                None => {
                    let texts = self.attribute_texts(left, right);
                    detail(what, texts.0, texts.1)
                }
            });
        }
    }

    /// Where two constants of one type differ, if they are too large to be shown.
    fn constants(&self, left: AttributeId, right: AttributeId) -> Option<(String, String, String)> {
        let types =
            (self.a.module.bytecode.tables.attribute(left).types().next()?, self.b.module.bytecode.tables.attribute(right).types().next()?);
        if self.a.classes.r#type(types.0) != self.b.classes.r#type(types.1) {
            return None;
        }
        let (left, right) = (self.a.lines.elements(left)?, self.b.lines.elements(right)?);
        if left.count() <= crate::ir::text::FEW as u64 {
            return None;
        }
        let (differing, first, one, other) = left.difference(&right)?;
        Some((format!("{differing} of {} elements, first {first:?}", left.count()), one, other))
    }

    /// Functions that operations name must be matched; where neither is, they are from here on.
    fn callees(&mut self, details: &mut Vec<Detail>, ours: &Operation, theirs: &Operation) {
        let (left, right) = (self.a.module.named(ours), self.b.module.named(theirs));
        for number in 0..left.len().max(right.len()) {
            let (one, other) = (left.get(number).copied(), right.get(number).copied());
            let functions = (one.and_then(|name| self.a.module.function(name)), other.and_then(|name| self.b.module.function(name)));
            let is_same = match functions {
                (Some(one), Some(other)) => {
                    self.matching.add(one, other);
                    self.matching.of_a[one] == self.matching.of_b[other]
                }
                (None, None) => one == other,
                _ => false,
            };
            if !is_same {
                let name = |name: Option<&[u8]>| name.map(|name| format!("@{}", text(name)));
                details.push(detail("function", name(one), name(other)));
            }
        }
    }

    fn operands(&mut self, details: &mut Vec<Detail>, ours: &Operation, theirs: &Operation) {
        let (left, right) = (self.a.module.operands(ours), self.b.module.operands(theirs));
        if left.len() != right.len() {
            let bound: Vec<u32> = left.iter().map(|operand| self.bound[operand.index()].map_or(u32::MAX, |other| other.0)).collect();
            let others: Vec<u32> = right.iter().map(|operand| operand.0).collect();
            for (number, other) in apart(left.len(), right.len(), common(&bound, &others)) {
                let texts = (number.map(|number| self.a.value(left[number])), other.map(|number| self.b.value(right[number])));
                details.push(detail(format!("operand {}", number.or(other).unwrap_or(0)), texts.0, texts.1));
            }
            return;
        }
        for (number, (left, right)) in left.iter().zip(right).enumerate() {
            if !self.is_same_value(*left, *right) {
                let texts = (self.a.value(*left), self.b.value(*right));
                details.push(detail(format!("operand {number}"), Some(texts.0), Some(texts.1)));
            }
        }
    }

    /// Whether two values are the same: bound to one another, or equal constants.
    fn is_same_value(&self, left: ValueId, right: ValueId) -> bool {
        if self.bound[left.index()] == Some(right) {
            return true;
        }
        let (Some(one), Some(other)) = (self.a.shapes.origin(left), self.b.shapes.origin(right)) else { return false };
        self.a.shapes.own[one as usize] == self.b.shapes.own[other as usize]
            && self.a.shapes.number(left) == self.b.shapes.number(right)
            && is_constant(self.a.module, self.a.module.operation(one))
    }

    fn is_same(&self, left: Option<AttributeId>, right: Option<AttributeId>) -> bool {
        left.map(|id| self.a.classes.attribute(id)) == right.map(|id| self.b.classes.attribute(id))
    }

    fn attribute_texts(&mut self, left: Option<AttributeId>, right: Option<AttributeId>) -> (Option<String>, Option<String>) {
        (left.map(|id| self.a.lines.attribute(id)), right.map(|id| self.b.lines.attribute(id)))
    }

    /// Compares the places of two operations and of the arguments of their blocks.
    fn locations_of(&mut self, ours: u32, theirs: u32) {
        let (left, right) = (self.a.module.operation(ours), self.b.module.operation(theirs));
        self.location(left.location, right.location);
        for (left, right) in self.a.regions(left).iter().zip(self.b.regions(right)) {
            for (left, right) in self.a.blocks(left).iter().zip(self.b.blocks(right)) {
                for number in 0..left.arguments.len.min(right.arguments.len) {
                    let location = |half: &Half<'_, '_, '_>, block: &Block| {
                        half.module.bytecode.tree.argument_locations[(block.locations + number) as usize]
                    };
                    self.location(location(&self.a, left), location(&self.b, right));
                }
            }
        }
    }

    fn location(&mut self, ours: AttributeId, theirs: AttributeId) {
        if self.a.classes.attribute(ours) != self.b.classes.attribute(theirs) {
            self.locations.count += 1;
            self.locations.first.get_or_insert((ours, theirs));
        }
    }

    /// Lists the locations that were found to differ, with the first of them.
    fn report_locations(&mut self, what: &str, function: Option<(usize, usize)>) {
        let Locations { count, first } = std::mem::take(&mut self.locations);
        let Some((left, right)) = first else { return };
        let Self { a, b, level, found, .. } = self;
        found.add(ChangeKind::Location, count, || {
            let side = |half: &Half<'_, '_, '_>, location, function: Option<usize>| {
                let place = half.place(location);
                let function = function.map(|function| half.function_name(function));
                Some(Side { function, place: place.clone(), ..Side::new(place.unwrap_or_else(|| UNKNOWN_PLACE.to_owned())) })
            };
            // Through other calls, under other names.
            let way = if a.place(left) == b.place(right) { " that leads to the same place in another way" } else { "" };
            let (a, b) = (side(a, left, function.map(|pair| pair.0)), side(b, right, function.map(|pair| pair.1)));
            let what = match (count, way) {
                (1, way) => format!("1 location {what}{way}"),
                (count, "") => format!("{count} locations {what}"),
                (count, way) => format!("{count} locations {what}, the first of them one{way}"),
            };
            Change { kind: ChangeKind::Location, how: How::Changed, level: *level, what, a, b, details: Vec::new() }
        });
    }
}

/// What is on one side alone of two lists, of which some pairs are known.
fn apart(ours: usize, theirs: usize, matched: Vec<(usize, usize)>) -> Vec<(Option<usize>, Option<usize>)> {
    let (mut left, mut right) = (vec![true; ours], vec![true; theirs]);
    for (one, other) in matched {
        (left[one], right[other]) = (false, false);
    }
    let alone = |list: Vec<bool>| list.into_iter().enumerate().filter(|(_, is_alone)| *is_alone).map(|(number, _)| number);
    alone(left).map(|number| (Some(number), None)).chain(alone(right).map(|number| (None, Some(number)))).collect()
}

/// Takes an operation that is gone for one that is new, where both are the same with what computes their operands.
fn moved(events: &mut [Event], comparison: &Comparison<'_, '_, '_>) -> Vec<Event> {
    let mut gone: HashMap<u32, VecDeque<(usize, u32)>> = HashMap::new();
    for (place, event) in events.iter().enumerate() {
        if let Event::Removed(ours) = *event {
            gone.entry(comparison.a.shapes.deep[ours as usize]).or_default().push_back((place, ours));
        }
    }
    let mut is_moved = vec![false; events.len()];
    let mut inside: HashMap<usize, Vec<Event>> = HashMap::new();
    for (place, event) in events.iter_mut().enumerate() {
        let Event::Added(theirs) = *event else { continue };
        let Some((was, ours)) = gone.get_mut(&comparison.b.shapes.deep[theirs as usize]).and_then(VecDeque::pop_front) else { continue };
        is_moved[was] = true;
        *event = Event::Moved(ours, theirs);
        let ends = (comparison.a.module.operation(ours).end, comparison.b.module.operation(theirs).end);
        inside.insert(place, (ours + 1..ends.0).zip(theirs + 1..ends.1).map(|(ours, theirs)| Event::Pair(ours, theirs)).collect());
    }
    let kept = events.iter().enumerate().filter(|(place, _)| !is_moved[*place]);
    kept.flat_map(|(place, event)| std::iter::once(*event).chain(inside.remove(&place).unwrap_or_default())).collect()
}

fn detail(what: impl Into<String>, a: Option<String>, b: Option<String>) -> Detail {
    Detail { what: what.into(), a: a.map(shown), b: b.map(shown) }
}

/// The dictionaries of arguments or of results.
fn dictionaries(module: &Module<'_, '_>, operation: &Operation, array: &str) -> Vec<AttributeId> {
    let elements = module.bytecode.inherent(operation, array).and_then(|id| module.bytecode.tables.array(id));
    elements.into_iter().flatten().collect()
}

/// Whether an attribute is an array with a dictionary for each of so many arguments or results. One without elements says the same as empty ones.
fn are_dictionaries(module: &Module<'_, '_>, id: Option<AttributeId>, count: usize) -> bool {
    let tables = &module.bytecode.tables;
    let Some(id) = id else { return true };
    let elements = tables.array(id).map(|elements| elements.map(|id| tables.dictionary(id).is_some()).collect::<Vec<_>>());
    elements
        .is_some_and(|elements| (elements.is_empty() || elements.len() == count) && elements.into_iter().all(|is_dictionary| is_dictionary))
}

/// The items of a dictionary by name.
fn items<'b>(module: &Module<'b, '_>, dictionary: Option<&AttributeId>) -> Vec<(&'b [u8], AttributeId)> {
    let mut items: Vec<_> = dictionary.and_then(|id| module.bytecode.tables.dictionary(*id)).into_iter().flatten().collect();
    items.sort();
    items
}

/// The items of two sorted lists by name.
fn joined<'b>(
    left: &[(&'b [u8], AttributeId)],
    right: &[(&'b [u8], AttributeId)],
) -> Vec<(&'b [u8], Option<AttributeId>, Option<AttributeId>)> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let next = || {
        let name = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => one.0.min(other.0),
            (one, other) => one.or(other)?.0,
        };
        let of = |item: Option<&(&'b [u8], AttributeId)>| item.map(|item| item.1);
        Some((name, of(left.next_if(|item| item.0 == name)), of(right.next_if(|item| item.0 == name))))
    };
    std::iter::from_fn(next).collect()
}

/// A resource: its group, key, kind and data.
type Resource<'r> = (&'r [u8], &'r [u8], u8, Option<(u64, &'r [u8])>);

fn resources<'r>(bytecode: &'r Bytecode<'_>) -> Vec<Resource<'r>> {
    fn data<'r>(data: &'r ResourceData<'_>) -> (u64, &'r [u8]) {
        match data {
            ResourceData::Blob { alignment, bytes } => (*alignment, bytes),
            ResourceData::Bool(byte) => (0, std::slice::from_ref(byte)),
            ResourceData::String(text) => (0, text),
        }
    }
    let own = bytecode.resources.dialect.iter().map(|(id, group)| (bytecode.tables.dialect(*id), group));
    let groups = bytecode.resources.external.iter().map(|(key, group)| (*key, group)).chain(own);
    groups.flat_map(|(group, items)| items.iter().map(move |item| (group, item.key, item.kind, item.data.as_ref().map(data)))).collect()
}
