//! What can be asked of every output, whichever verb makes it: fewer levels, no shardings, an older version of StableHLO, and which part of it is written.

use std::borrow::Cow;
use std::str::FromStr;

use indexmap::IndexMap;

use crate::bytecode::{Bytecode, StablehloVersion};
use crate::container::{Exported, Platform, Sharding, ShardingKind};
use crate::downgrade::downgrade;
use crate::error::{Error, Result};
use crate::ir::assembly::Constants;
use crate::ir::text::{TextOptions, write_text};
use crate::passes::{self, Pass};
use crate::pieces::Pieces;
use crate::split::{Output, Report};

/// The pass that takes shardings out.
pub(crate) const STRIP_SDY: &str = "strip-sdy";

/// What an output is to be besides what its verb makes of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OutputOptions {
    /// The vector-Jacobian products are left out, as if the export had been made with `vjp_order=0`.
    pub no_vjp: bool,
    /// Shardings are taken out, so that the export is one for a single device: what the pass `strip-sdy` does, or refuses.
    pub strip_sdy: bool,
    /// The newest version of StableHLO that modules may be in. A newer one is rewritten, or refused if the version has not all that it holds; one that is in
    /// this version or an older one stays, since readers of this version read it.
    pub target_version: Option<StablehloVersion>,
}

impl OutputOptions {
    /// Leaves out the vector-Jacobian products.
    pub fn no_vjp(mut self, no_vjp: bool) -> Self {
        self.no_vjp = no_vjp;
        self
    }

    /// Takes the shardings out.
    pub fn strip_sdy(mut self, strip_sdy: bool) -> Self {
        self.strip_sdy = strip_sdy;
        self
    }

    /// Asks for modules that readers of this version of StableHLO read.
    pub fn target_version(mut self, version: Option<StablehloVersion>) -> Self {
        self.target_version = version;
        self
    }

    /// Asks for no more than what is written: nobody sees the levels of which nothing is.
    pub fn emit(self, emit: Emit) -> Self {
        if emit == Emit::Export { self } else { self.no_vjp(true) }
    }

    /// The pass that does what is asked for in a module.
    pub(crate) fn pass(&self) -> Option<&'static Pass> {
        passes::find(STRIP_SDY).filter(|_| self.strip_sdy)
    }

    /// Says in the container what the pass did.
    pub(crate) fn update(&self, exported: &mut Exported<'_>) {
        if self.strip_sdy {
            drop_shardings(exported);
        }
    }

    /// A module that is done, in the version that is asked for. `None` if it stays as it is.
    pub(crate) fn older<'a>(&self, module: &Bytecode<'a>, level: usize) -> Result<Option<Bytecode<'a>>> {
        let Some(version) = self.target_version else { return Ok(None) };
        downgrade(module, version).map_err(|error| match error.hint() {
            Some(hint) if level > 0 => {
                let hint = format!("{hint}; `--no-vjp` leaves the gradients out");
                error.with_hint(hint)
            }
            _ => error,
        })
    }

    /// The bytes of a module that is done, in the version that is asked for.
    pub(crate) fn write<'a>(&self, module: &Bytecode<'a>, level: usize) -> Result<Pieces<'a>> {
        self.older(module, level)?.as_ref().unwrap_or(module).write()
    }

    /// The export with the levels that are wanted.
    pub(crate) fn levels<'a>(&self, mut exported: Exported<'a>) -> Exported<'a> {
        if self.no_vjp {
            exported.vjp = None;
        }
        exported
    }
}

/// Makes one level of an export one for a single device, where the compiler decides all shardings.
pub(crate) fn drop_shardings(exported: &mut Exported<'_>) {
    let unspecified = Sharding { kind: ShardingKind::Unspecified, hlo_sharding_proto: None, named_sharding: None };
    for shardings in [&mut exported.in_shardings, &mut exported.out_shardings].into_iter().flatten() {
        shardings.fill(unspecified.clone());
    }
    for indexes in [&mut exported.in_shardings_idxs, &mut exported.out_shardings_idxs].into_iter().flatten() {
        indexes.fill(0);
    }
    exported.unique_named_shardings.iter_mut().for_each(Vec::clear);
    exported.unique_abstract_meshes.iter_mut().for_each(Vec::clear);
    // Each version of the schema has its own field, and a reader takes the one that is not 0.
    exported.nr_devices_short = exported.nr_devices_short.min(1);
    exported.nr_devices = exported.nr_devices.min(1);
}

/// What is written of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Emit {
    /// The export, with all its modules.
    #[default]
    Export,
    /// The module of the function itself in MLIR bytecode: a portable artifact.
    Mlirbc,
    /// The module of the function itself in MLIR text.
    Mlir,
}

impl Emit {
    /// All of them, by their names.
    pub const ALL: [(&'static str, Self); 3] = [("export", Self::Export), ("mlirbc", Self::Mlirbc), ("mlir", Self::Mlir)];

    /// The extension of such a file; `None` for an export, which keeps that of its input.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::Export => None,
            Self::Mlirbc => Some("mlirbc"),
            Self::Mlir => Some("mlir"),
        }
    }

    /// The bytes of a file of this kind. Text holds all constants, and no locations.
    ///
    /// # Errors
    /// Those of [`write_text`].
    pub fn of<'o, 'a>(self, output: &'o Output<'a>) -> Result<Cow<'o, Pieces<'a>>> {
        match self {
            Self::Export => Ok(Cow::Borrowed(output.pieces())),
            Self::Mlirbc => Ok(Cow::Borrowed(&output.exported.module)),
            Self::Mlir => {
                let module = output.exported.module.to_vec();
                let options = TextOptions { constants: Constants::All, ..TextOptions::default() };
                let mut text = Vec::new();
                write_text(&Bytecode::read(&module, 0)?, &options, &mut text)?;
                let mut pieces = Pieces::new();
                pieces.extend_copied(&text);
                Ok(Cow::Owned(pieces))
            }
        }
    }

    /// The bytes of a file for each output of a split. The report gets their numbers, which may be less than those of the exports.
    ///
    /// # Errors
    /// Those of [`Emit::of`].
    pub fn of_split<'o, 'a>(self, outputs: &'o IndexMap<Platform, Output<'a>>, report: &mut Report) -> Result<Vec<Cow<'o, Pieces<'a>>>> {
        let contents = outputs.values().map(|output| self.of(output)).collect::<Result<Vec<_>>>()?;
        for (report, contents) in report.outputs.iter_mut().zip(&contents) {
            report.bytes = contents.len();
        }
        Ok(contents)
    }
}

impl FromStr for Emit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, emit)| emit).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| format!("`{name}`"));
            Error::refused(format!("`{text}` cannot be written")).with_hint(format!("there are {}", names.join(", ")))
        })
    }
}
