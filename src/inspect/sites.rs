//! The operations of a module that call something outside of it and may not find it there: Python callbacks, and custom calls that are not stable.

use serde::Serialize;

use super::view::{Kind, View};
use super::{config, module};
use crate::bytecode::{AttributeId, Bytecode};
use crate::callbacks::{self, GUARD_EFFECT, LOWERED_ATTRIBUTE, TargetClass, is_callback_transfer, process_binding};
use crate::container::Exported;
use crate::error::{Error, Result};

/// Most text that is made of one file, in bytes. In a crafted file, many calls can share a long name.
const MAX_TEXT: usize = 64 << 20;

/// What a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SiteKind {
    /// A Python callback that is not lowered yet.
    Placeholder,
    /// A Python callback that was lowered to a custom call, by JAX or by jaxprism.
    LoweredCallback,
    /// A `send` or `recv` of a Python callback that JAX lowered for a TPU.
    HostTransfer,
    /// Something else that works in no process but the one that wrote it.
    ProcessBound,
    /// A custom call that JAX guaranteed to be stable once; newer versions may not run it.
    Retired,
    /// A custom call that JAX guarantees nothing about.
    Unknown,
    /// The effect that says that the file holds lowered Python callbacks.
    GuardEffect,
}

/// Something that calls out of a file and may not find there what it calls.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Site {
    /// The platform it is left on, where single platforms were looked at.
    pub platform: Option<String>,
    /// 0 for the function itself, 1 for its vector-Jacobian product, and so on.
    pub level: usize,
    /// What it is.
    pub kind: SiteKind,
    /// The target of a custom call; `send` or `recv`; or the name of an effect.
    pub target: String,
    /// Which of JAX's functions made the callback, where that can be read.
    pub callback_kind: Option<callbacks::Kind>,
    /// The name of the callback, where that can be read.
    pub callback: Option<String>,
    /// The function of the module that it is in.
    pub function: Option<String>,
    /// The place in the user's files, where one is known.
    pub place: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// A site in a module, before it is described.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'b> {
    /// Where it stands.
    pub position: u32,
    pub kind: SiteKind,
    /// The target of a custom call, else the name of the operation.
    pub target: &'b [u8],
    /// The configuration of the callback that it is, or was.
    pub config: Option<AttributeId>,
}

/// Finds them in textual order, those of `main` first.
pub(super) fn find<'b>(view: &View<'b, '_>) -> Vec<Found<'b>> {
    let calls = view.custom_calls.iter().filter_map(|&(position, target)| custom_call(view, position, target));
    let transfers = view.positions(Kind::Transfer).filter_map(|position| transfer(view, position));
    let mut found: Vec<_> = calls.chain(transfers).collect();
    let main = view.main().map_or(0..0, |main| main..view.operation(main).end);
    found.sort_by_key(|found| (!main.contains(&found.position), found.position));
    found
}

/// What is wrong with an operation.
pub(super) fn reason(kind: SiteKind, target: &str) -> &'static str {
    match kind {
        SiteKind::HostTransfer => "it holds the number of a channel to a Python callback in the process that wrote it",
        SiteKind::Placeholder => "it is a placeholder for a Python callback",
        SiteKind::Retired => "JAX guaranteed once that newer versions run it, and does so no more",
        SiteKind::Unknown => "JAX does not guarantee that newer versions run it",
        _ => process_binding(target).unwrap_or("it holds the number of a Python callback"),
    }
}

/// Whether an export lists the effect that makes JAX refuse lowered callbacks that nobody bound.
pub(crate) fn is_guarded(exported: &Exported<'_>) -> bool {
    let effects = [&exported.ordered_effects, &exported.unordered_effects];
    effects.into_iter().flatten().flatten().any(|effect| effect.type_name.as_deref() == Some(GUARD_EFFECT))
}

/// The sites of a level: those of its module that are not allowed, and the effect that guards them.
pub(crate) fn of_level(
    level: usize,
    exported: Option<&Exported<'_>>,
    bytecode: &Bytecode<'_>,
    is_allowed: &dyn Fn(&str) -> bool,
    texts: &mut Texts,
) -> Result<Vec<Site>> {
    let view = View::new(bytecode);
    let mut sites = Vec::new();
    for found in find(&view) {
        let target = module::text(found.target);
        if !(matches!(found.kind, SiteKind::Retired | SiteKind::Unknown) && is_allowed(&target)) {
            sites.push(describe(level, &view, &found, target, texts)?);
        }
    }
    if exported.is_some_and(is_guarded) {
        sites.push(Site {
            platform: None,
            level,
            kind: SiteKind::GuardEffect,
            target: GUARD_EFFECT.to_owned(),
            callback_kind: None,
            callback: None,
            function: None,
            place: None,
            reason: "it says that the file holds lowered Python callbacks".to_owned(),
        });
    }
    Ok(sites)
}

fn describe(level: usize, view: &View<'_, '_>, found: &Found<'_>, target: String, texts: &mut Texts) -> Result<Site> {
    let operation = view.operation(found.position);
    // Whatever is wrong with a callback, it is left.
    let key = found.config.and_then(|config| config::slot_key(&view.bytecode.tables, Some(config)).ok());
    Ok(Site {
        platform: None,
        level,
        kind: found.kind,
        reason: texts.take(reason(found.kind, &target).to_owned())?,
        target: texts.take(target)?,
        callback_kind: key.as_ref().map(|key| key.kind),
        callback: texts.take_some(key.map(|key| key.name))?,
        function: Some(texts.take(view.function_name(found.position))?),
        place: texts.take_some(view.place(operation))?,
    })
}

fn custom_call<'b>(view: &View<'b, '_>, position: u32, target: &'b [u8]) -> Option<Found<'b>> {
    let operation = view.operation(position);
    let lowered = view.discardable(operation, LOWERED_ATTRIBUTE);
    let class = std::str::from_utf8(target).map_or(TargetClass::Unknown, TargetClass::of);
    let (kind, config) = match class {
        TargetClass::Placeholder => (SiteKind::Placeholder, view.discardable(operation, "mhlo.backend_config")),
        _ if lowered.is_some() => (SiteKind::LoweredCallback, lowered),
        TargetClass::LoweredCallback => (SiteKind::LoweredCallback, None),
        TargetClass::ProcessBound => (SiteKind::ProcessBound, None),
        TargetClass::Stable => return None,
        TargetClass::Retired => (SiteKind::Retired, None),
        TargetClass::Unknown => (SiteKind::Unknown, None),
    };
    Some(Found { position, kind, target, config })
}

/// A `send` or `recv` of a Python callback that JAX lowered for a TPU.
pub(super) fn transfer<'b>(view: &View<'b, '_>, position: u32) -> Option<Found<'b>> {
    let operation = view.operation(position);
    let tables = &view.bytecode.tables;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let attributes = tables.dictionary(view.discardable(operation, "mhlo.frontend_attributes")?)?;
    let attributes = attributes.filter_map(|(key, value)| Some((text(key)?, text(tables.string(value)?)?)));
    let name: &[u8] = if tables.op_name(operation.name).name.starts_with(b"send") { b"send" } else { b"recv" };
    let found = Found { position, kind: SiteKind::HostTransfer, target: name, config: None };
    is_callback_transfer(attributes).then_some(found)
}

/// Text that is made of a file, as long as there is not too much of it.
pub(crate) struct Texts {
    left: usize,
}

impl Texts {
    pub fn new() -> Self {
        Self { left: MAX_TEXT }
    }

    /// Counts a text.
    pub fn take(&mut self, text: String) -> Result<String> {
        let left = self.left.checked_sub(text.len());
        self.left = left.ok_or_else(|| Error::unsupported(format!("its callbacks take more than {MAX_TEXT} bytes to describe")))?;
        Ok(text)
    }

    /// Counts a text, where there is one.
    pub fn take_some(&mut self, text: Option<String>) -> Result<Option<String>> {
        text.map(|text| self.take(text)).transpose()
    }
}
