//! What binds a module to the platforms that it was exported for: what it calls that others do not have, transfers to the host, and branches that the
//! platform decides.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::cases::{self, PlatformCase};
use super::module::text;
use super::sites::{self, Texts};
use super::view::{Kind, View};
use crate::bytecode::{Bytecode, Operation, Region, Span, ValueId};
use crate::callbacks::{LOWERED_ATTRIBUTE, TargetPlatforms, process_binding};
use crate::container::Platform;
use crate::error::Result;

/// What a binding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BindingKind {
    /// A custom call.
    CustomCall,
    /// A composite that XLA replaces by something of its own.
    Composite,
    /// A `send` or `recv`.
    HostTransfer,
    /// A branch that the platform decides.
    PlatformCase,
    /// Something else that is computed from the number of the platform.
    PlatformIndex,
}

/// Something that binds a module to platforms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Binding {
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// What it is.
    pub kind: BindingKind,
    /// The target of a custom call; the name of a composite; `send` or `recv`.
    pub target: Option<String>,
    /// The function of the module that it is in.
    pub function: Option<String>,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
    /// The platforms that are known to have the target; `None` where that is not known, and where there is none.
    pub platforms: Option<Vec<String>>,
    /// Why it binds.
    pub reason: String,
}

impl Binding {
    /// What it is and why it binds, without its place.
    pub fn what(&self) -> String {
        let what = match (self.kind, &self.target) {
            (BindingKind::CustomCall, Some(target)) => format!("custom call `{target}`"),
            (BindingKind::Composite, Some(name)) => format!("composite `{name}`"),
            (_, Some(target)) => format!("`{target}`"),
            (BindingKind::PlatformCase, None) => "case on the platform index".to_owned(),
            (_, None) => "platform index".to_owned(),
        };
        format!("{what}: {}", self.reason)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what())
    }
}

/// What is asked of a module.
#[derive(Clone, Copy)]
pub(crate) struct Question<'q> {
    /// The platforms that are to be added.
    pub added: &'q [Platform],
    /// Custom calls that bind to nothing, by their targets.
    pub is_allowed: &'q dyn Fn(&str) -> bool,
}

/// Finds the operations of a level that call what an added platform is not known to have, in textual order, `main` first.
pub(crate) fn of_level(level: usize, bytecode: &Bytecode<'_>, question: Question<'_>, texts: &mut Texts) -> Result<Vec<Binding>> {
    let view = View::new(bytecode);
    let mut bindings = Vec::new();
    for call in calls(&view, question) {
        bindings.push(Binding {
            level,
            kind: call.kind,
            target: Some(texts.take(call.target)?),
            function: Some(texts.take(view.function_name(call.position))?),
            place: texts.take_some(view.place(view.operation(call.position)))?,
            platforms: call.platforms.map(<[String]>::to_vec),
            reason: texts.take(call.reason)?,
        });
    }
    Ok(bindings)
}

/// Finds the branches of a level that part its platforms, in textual order; for what else may part them, where there is none, one binding without a place.
pub(crate) fn cases_of_level(level: usize, bytecode: &Bytecode<'_>, platforms: &[Platform], texts: &mut Texts) -> Result<Vec<Binding>> {
    let view = View::new(bytecode);
    let names: Vec<_> = platforms.iter().map(ToString::to_string).collect();
    let mut bindings = Vec::new();
    let nowhere = Binding {
        level,
        kind: BindingKind::PlatformIndex,
        target: None,
        function: None,
        place: None,
        platforms: None,
        reason: "what the module does depends on the number of the platform".to_owned(),
    };
    for (position, case) in cases::find(&view, &names).0 {
        if !case.index_table && parts(&view, position, &case) {
            bindings.push(Binding {
                kind: BindingKind::PlatformCase,
                reason: texts.take(branches(&case))?,
                function: Some(texts.take(case.function)?),
                place: texts.take_some(case.place)?,
                ..nowhere.clone()
            });
        }
    }
    if bindings.is_empty() {
        bindings.push(nowhere);
    }
    Ok(bindings)
}

/// An operation that binds.
struct Call<'b> {
    position: u32,
    kind: BindingKind,
    target: String,
    platforms: Option<&'b [String]>,
    reason: String,
}

fn calls(view: &View<'_, '_>, question: Question<'_>) -> Vec<Call<'static>> {
    if question.added.is_empty() {
        return Vec::new();
    }
    let call = |position, kind, target: String| {
        let (reason, platforms) = reason(view, position, kind, &target, question)?;
        Some(Call { position, kind, target, platforms, reason })
    };
    let custom_calls = view.custom_calls.iter().filter_map(|&(position, target)| call(position, BindingKind::CustomCall, text(target)));
    let composites = view.positions(Kind::Call).filter_map(|position| {
        let name = view.symbol(view.operation(position), "name")?;
        call(position, BindingKind::Composite, text(name))
    });
    let transfers = view.positions(Kind::Transfer).filter_map(|position| {
        let is_send = view.bytecode.op_name(view.operation(position)).contains(".send");
        call(position, BindingKind::HostTransfer, if is_send { "send" } else { "recv" }.to_owned())
    });
    let mut calls: Vec<_> = custom_calls.chain(composites).chain(transfers).collect();
    let main = view.main().map_or(0..0, |main| main..view.operation(main).end);
    calls.sort_by_key(|call| (!main.contains(&call.position), call.position));
    calls
}

/// Why an operation binds, and to which platforms as far as that is known; `None` if it does not.
fn reason(
    view: &View<'_, '_>,
    position: u32,
    kind: BindingKind,
    target: &str,
    question: Question<'_>,
) -> Option<(String, Option<&'static [String]>)> {
    let platforms = match kind {
        BindingKind::CustomCall => TargetPlatforms::of(target),
        BindingKind::Composite => TargetPlatforms::of_composite(target),
        _ => {
            let is_of_callback = sites::transfer(view, position).is_some();
            let what = if is_of_callback { "of a Python callback, in the process that wrote it" } else { "that not every platform has" };
            return Some((format!("it is a transfer to the host {what}"), None));
        }
    };
    if let Some(reason) = process_binding(target) {
        return Some((reason.to_owned(), None));
    }
    let missing: Vec<_> = question.added.iter().filter(|platform| !platforms.has(platform)).collect();
    if missing.is_empty() || (question.is_allowed)(target) {
        return None;
    }
    let missing = quoted(missing);
    Some(match platforms {
        TargetPlatforms::Only(known) => (format!("it is for {}, not for {missing}", quoted(known)), Some(known)),
        _ if view.discardable(view.operation(position), LOWERED_ATTRIBUTE).is_some() => {
            ("it is a Python callback that was lowered for a platform".to_owned(), None)
        }
        _ => (format!("it is not known whether {missing} has it"), None),
    })
}

/// Whether platforms that take different branches do different things there.
fn parts(view: &View<'_, '_>, position: u32, case: &PlatformCase) -> bool {
    let regions = view.bytecode.tree.regions_of(view.operation(position));
    let mut taken = regions.iter().zip(&case.branches).filter(|(_, branch)| !branch.platforms.is_empty()).map(|(region, _)| region);
    let first = taken.next();
    first.is_some_and(|first| taken.any(|other| !are_same(view, first, other)))
}

/// Whether two regions hold the same operations on the same values, wherever they come from.
fn are_same(view: &View<'_, '_>, left: &Region, right: &Region) -> bool {
    let tree = &view.bytecode.tree;
    let (Some(left), Some(right)) = (view.entry(left), view.entry(right)) else { return false };
    // Where a value of the left one is on the right.
    let mut values: HashMap<ValueId, ValueId> = HashMap::new();
    let mut define = |left: Span, right: Span| {
        let ids = |span: Span| span.range().map(|value| ValueId(value as u32));
        values.extend(ids(left).zip(ids(right)));
        left.len == right.len
    };
    let (lefts, rights) = (left.first..left.end, right.first..right.end);
    if lefts.len() != rights.len() || !define(left.arguments, right.arguments) {
        return false;
    }
    for (left, right) in lefts.clone().zip(rights.clone()) {
        let (left, right) = (view.operation(left), view.operation(right));
        if !define(left.results, right.results) {
            return false;
        }
        for (left, right) in tree.regions_of(left).iter().zip(tree.regions_of(right)) {
            for (left, right) in tree.blocks_of(left).iter().zip(tree.blocks_of(right)) {
                if !define(left.arguments, right.arguments) {
                    return false;
                }
            }
        }
    }
    let is_same = |left: u32, right: u32| {
        let (first, second) = (view.operation(left), view.operation(right));
        let operands = |operation| tree.operands_of(operation).iter();
        let types = |operation: &Operation| tree.value_types.get(operation.results.range());
        let properties = |operation: &Operation| operation.properties.map(|span| tree.properties.get(span.range()));
        let blocks = |operation| tree.regions_of(operation).iter().map(|region| region.blocks.len).collect::<Vec<_>>();
        first.name == second.name
            && first.attributes == second.attributes
            && properties(first) == properties(second)
            && types(first) == types(second)
            && first.end - left == second.end - right
            && blocks(first) == blocks(second)
            && operands(first).len() == operands(second).len()
            && operands(first).zip(operands(second)).all(|(left, right)| values.get(left).unwrap_or(left) == right)
    };
    lefts.zip(rights).all(|(left, right)| is_same(left, right))
}

/// Which platforms part ways: one branch for `cpu`, another for `cuda`, `tpu`.
fn branches(case: &PlatformCase) -> String {
    let taken = case.branches.iter().filter(|branch| !branch.platforms.is_empty());
    let groups: Vec<_> = taken.map(|branch| quoted(&branch.platforms)).collect();
    format!("it has one branch for {}", groups.join(", another for "))
}

fn quoted(names: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
