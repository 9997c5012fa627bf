//! What can be asked of every output, whichever verb makes it: fewer levels, and which part of it is written.

use std::borrow::Cow;

use crate::bytecode::Bytecode;
use crate::container::Exported;
use crate::error::Result;
use crate::ir::assembly::Constants;
use crate::ir::text::{TextOptions, write_text};
use crate::pieces::Pieces;
use crate::split::Output;

/// What an output is to be besides what its verb makes of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OutputOptions {
    /// The vector-Jacobian products are left out, as if the export had been made with `vjp_order=0`.
    pub no_vjp: bool,
}

impl OutputOptions {
    /// Leaves out the vector-Jacobian products.
    pub fn no_vjp(mut self, no_vjp: bool) -> Self {
        self.no_vjp = no_vjp;
        self
    }

    /// The export with the levels that are wanted.
    pub(crate) fn levels<'a>(&self, mut exported: Exported<'a>) -> Exported<'a> {
        if self.no_vjp {
            exported.vjp = None;
        }
        exported
    }
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
}
