//! What a module holds, by counting.

#![allow(
    clippy::indexing_slicing,
    reason = "ids and spans are those of the tree and tables at hand, which were checked when they were made"
)]

use std::collections::HashSet;

use indexmap::IndexMap;
use serde::Serialize;

use super::cases::{self, PlatformCase};
use super::types;
use super::view::{Kind, View};
use crate::bytecode::{AttributeId, Bytecode, Code, Field, OpNameId, code, dialect};

/// How many of the largest constants are listed.
const LARGEST_CONSTANTS: usize = 10;

/// A module.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Module {
    /// Its size in the file.
    pub bytes: u64,
    /// Its name.
    pub name: Option<String>,
    /// Who wrote it, as it says itself: `StableHLO_v1.18.0`.
    pub producer: String,
    /// The version of StableHLO that wrote it, if the producer is StableHLO.
    pub stablehlo_version: Option<String>,
    /// The version of MLIR's bytecode format.
    pub bytecode_version: u64,
    /// Why the module can be looked at, but not split: the first thing in it that jaxprism does not know.
    pub unreadable: Option<String>,
    /// All operations, the module, functions and terminators included.
    pub operations: usize,
    /// Distinct attributes, locations included.
    pub attributes: usize,
    /// Distinct locations among the attributes.
    pub locations: usize,
    /// The meshes that shardings inside the module name.
    pub meshes: Vec<Mesh>,
    /// Its functions in textual order.
    pub functions: Vec<Function>,
    /// How many operations there are of each name, most frequent first.
    pub operation_names: IndexMap<String, usize>,
    /// How many custom calls there are of each target, most frequent first.
    pub custom_calls: IndexMap<String, usize>,
    /// Its constants.
    pub constants: Constants,
    /// The branches that the platform decides.
    pub platform_cases: Vec<PlatformCase>,
    /// Whether `platform_cases` says everything; looking stops where it would take too long.
    pub platform_cases_complete: bool,
}

/// A mesh.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Mesh {
    /// Its name in the module.
    pub name: String,
    /// Its axes and their sizes.
    pub axes: IndexMap<String, i64>,
}

/// A function.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Function {
    /// Its name in the module.
    pub name: String,
    /// Whether it can be called from outside of the module.
    pub public: bool,
    /// The operations inside it, its return included.
    pub operations: usize,
    /// The calls of other functions inside it.
    pub calls: usize,
    /// The bytes of distinct constants inside it.
    pub constant_bytes: u64,
}

/// Constants.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Constants {
    /// Constant operations.
    pub operations: usize,
    /// Distinct values among them. Equal ones are stored once.
    pub distinct: usize,
    /// The bytes of the distinct values.
    pub bytes: u64,
    /// The largest distinct values, largest first; at most ten.
    pub largest: Vec<Constant>,
}

/// A constant.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Constant {
    /// Its type, as element type and shape.
    pub r#type: String,
    /// The bytes of its value, which is a single element where all are equal.
    pub bytes: u64,
    /// The function that uses it first.
    pub function: String,
    /// The place in the user's files where it is used first, where one is known.
    pub place: Option<String>,
}

impl Module {
    pub(super) fn of(bytecode: &Bytecode<'_>, bytes: u64, platforms: &[String]) -> Self {
        let view = View::new(bytecode);
        let producer = String::from_utf8_lossy(&bytecode.producer).into_owned();
        let module = bytecode.tree.operations.first();
        let (platform_cases, platform_cases_complete) = cases::find(&view, platforms);
        Self {
            bytes,
            name: module.and_then(|module| view.symbol(module, "sym_name")).map(text),
            stablehlo_version: producer.strip_prefix("StableHLO_v").map(str::to_owned),
            producer,
            bytecode_version: bytecode.version,
            unreadable: bytecode.unreadable.clone(),
            operations: bytecode.tree.operations.len(),
            attributes: bytecode.tables.attribute_count(),
            locations: (0..bytecode.tables.attribute_count() as u32).filter(|&id| is_location(bytecode, AttributeId(id))).count(),
            meshes: view.positions(Kind::Mesh).map(|position| mesh(&view, position)).collect(),
            functions: view.functions.iter().map(|&position| function(&view, position)).collect(),
            operation_names: operation_names(bytecode),
            custom_calls: count(view.custom_calls.iter().map(|(_, target)| text(target))),
            constants: constants(&view),
            platform_cases: platform_cases.into_iter().map(|(_, case)| case).collect(),
            platform_cases_complete,
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How often each name occurs, most frequent first; equally frequent ones in the order in which they occur.
pub(super) fn count(names: impl Iterator<Item = String>) -> IndexMap<String, usize> {
    let mut counts = IndexMap::new();
    names.for_each(|name| *counts.entry(name).or_insert(0) += 1);
    counts.sort_by(|_, a, _, b| b.cmp(a));
    counts
}

fn operation_names(bytecode: &Bytecode<'_>) -> IndexMap<String, usize> {
    let mut counts = vec![0; bytecode.tables.op_name_count()];
    bytecode.tree.operations.iter().map(|operation| operation.name.index()).for_each(|index| counts[index] += 1);
    let named = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
    let mut counts: IndexMap<_, _> = named.map(|(index, count)| (bytecode.tables.op_name_text(OpNameId(index as u32)), count)).collect();
    counts.sort_by(|a, m, b, n| n.cmp(m).then_with(|| a.cmp(b)));
    counts
}

pub(crate) fn is_location(bytecode: &Bytecode<'_>, id: AttributeId) -> bool {
    use code::builtin as b;
    let entry = bytecode.tables.attribute(id);
    let is_code = |code| matches!(code, b::LOC_CALLSITE..=b::LOC_UNKNOWN | b::LOC_FILE_RANGE);
    entry.dialect == dialect::BUILTIN && matches!(entry.code, Code::Known(code) if is_code(code))
}

fn mesh(view: &View<'_, '_>, position: u32) -> Mesh {
    let operation = view.operation(position);
    let tables = &view.bytecode.tables;
    let axes = view.bytecode.inherent(operation, "mesh").into_iter().flat_map(|mesh| tables.attribute(mesh).attributes());
    let axis = |id| match &tables.attribute(id).fields[..] {
        [Field::String(name), Field::Signed(size)] => Some((text(&name.0), *size)),
        _ => None,
    };
    Mesh { name: view.symbol(operation, "sym_name").map_or_else(|| "?".to_owned(), text), axes: axes.filter_map(axis).collect() }
}

fn function(view: &View<'_, '_>, position: u32) -> Function {
    let operation = view.operation(position);
    let inside = position + 1..operation.end;
    let constants = inside.clone().filter(|&at| view.kind(view.operation(at)) == Kind::Constant);
    let values: HashSet<_> = constants.filter_map(|at| view.bytecode.inherent(view.operation(at), "value")).collect();
    Function {
        name: view.function_name(position),
        public: view.is_public(operation),
        operations: inside.len(),
        calls: inside.filter(|&at| view.kind(view.operation(at)) == Kind::Call).count(),
        constant_bytes: values.into_iter().map(|value| value_bytes(view.bytecode, value)).sum(),
    }
}

fn value_bytes(bytecode: &Bytecode<'_>, value: AttributeId) -> u64 {
    bytecode.tables.attribute(value).bytes().map_or(0, |bytes| bytes.0.len() as u64)
}

fn constants(view: &View<'_, '_>) -> Constants {
    let mut first_uses = IndexMap::new();
    let mut operations = 0;
    for position in view.positions(Kind::Constant) {
        operations += 1;
        if let Some(value) = view.bytecode.inherent(view.operation(position), "value") {
            first_uses.entry(value).or_insert(position);
        }
    }
    let mut sizes: Vec<_> = first_uses.iter().map(|(value, position)| (value_bytes(view.bytecode, *value), *position)).collect();
    let (distinct, bytes) = (sizes.len(), sizes.iter().map(|(size, _)| size).sum());
    sizes.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    sizes.truncate(LARGEST_CONSTANTS);
    let constant = |(bytes, position): (u64, u32)| {
        let operation = view.operation(position);
        let result = view.bytecode.tree.value_types.get(operation.results.start as usize);
        Constant {
            r#type: result.map_or_else(|| "?".to_owned(), |&id| types::text(view.bytecode, id)),
            bytes,
            function: view.function_name(position),
            place: view.place(operation),
        }
    };
    Constants { operations, distinct, bytes, largest: sizes.into_iter().map(constant).collect() }
}
