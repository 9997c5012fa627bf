//! The module inside MLIR: one [`Session`] holds the context and what every entry became; a [`Program`] is the module in it.
//!
//! The rules a program obeys:
//! - Functions are `func.func`, `func.call` and `func.return`; every other operation keeps its name, and MLIR does not know it. So does a call inside an
//!   operation with one region, from where MLIR would not find its callee.
//! - Attributes and types that MLIR or a pass looks at are real; all others are handles that name their entry. Every entry has a pointer of its own, so
//!   what was not touched leaves as it came.
//! - Names in an operation's property list are inherent attributes, all others discardable.
//! - A value is defined before it is used, each block ends in its terminator, and no symbol dangles: [`verify`] checks it after every pass.

pub mod assembly;
mod calls;
pub mod constants;
mod entries;
mod export;
pub mod functions;
mod import;
mod parse;
mod place;
pub mod raw;
pub mod text;
mod verify;

use std::cell::{Ref, RefCell};
use std::fmt::Write;
use std::rc::Rc;

use melior::Context;
use melior::dialect::{DialectHandle, DialectRegistry};

pub(crate) use calls::own_symbols;
pub use calls::{Calls, callee_of, insert_call, is_call, retarget};
pub use place::{UNKNOWN as UNKNOWN_PLACE, place};
pub use raw::{Attribute, Block, Definition, Name, Op, OpSpec, Region, Type, Value};
pub use verify::verify;

use crate::bytecode::{Bytecode, Tables};
use crate::error::{Error, Result};
use entries::{Entries, OWN_DIALECT};

/// A melior context and the maps between it and the tables of one module.
pub struct Session<'a> {
    context: Context,
    entries: RefCell<Entries<'a>>,
    diagnostics: Rc<RefCell<Vec<Diagnostic>>>,
    version: u64,
    /// Whether the writer of the module reverses the uses of block arguments.
    reverses_argument_uses: bool,
    /// What a place in the text of the module is called.
    file: String,
}

impl<'a> Session<'a> {
    /// A context for the entries of `bytecode`.
    pub fn new(bytecode: &Bytecode<'a>) -> Self {
        let registry = DialectRegistry::new();
        DialectHandle::func().insert_dialect(&registry);
        // Threads of MLIR's own would outnumber the cores: sessions already run side by side.
        let context = Context::new_with_registry(&registry, false);
        context.load_all_available_dialects();
        context.set_allow_unregistered_dialects(true);
        let diagnostics = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&diagnostics);
        context.attach_diagnostic_handler(move |diagnostic| {
            // MLIR quotes what it complains of, which need not be UTF-8; then what was printed so far must do. A panic here would abort the process.
            let mut text = String::new();
            let is_whole = write!(text, "{diagnostic}").is_ok();
            let message = if is_whole { text } else { format!("{text}…") };
            sink.borrow_mut().push(Diagnostic { message, position: raw::position(diagnostic.location()) });
            true
        });
        Self {
            context,
            entries: RefCell::new(Entries::new(bytecode.tables.clone())),
            diagnostics,
            version: bytecode.version,
            reverses_argument_uses: reverses_argument_uses(bytecode),
            file: String::new(),
        }
    }

    /// Takes version and producer from `bytecode`; places in the module's text are in `file`.
    fn describe(&mut self, bytecode: &Bytecode<'a>, file: &str) {
        self.version = bytecode.version;
        self.reverses_argument_uses = reverses_argument_uses(bytecode);
        file.clone_into(&mut self.file);
    }

    /// The melior context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The tables of the module, with what passes added.
    pub fn tables(&self) -> Ref<'_, Tables<'a>> {
        Ref::map(self.entries.borrow(), |entries| entries.tables())
    }

    /// Makes attributes and types in the context.
    pub fn factory(&self) -> raw::Factory<'_> {
        raw::Factory::new(&self.context)
    }

    /// What MLIR said since the last call.
    pub fn take_diagnostics(&self) -> Vec<String> {
        self.take_located_diagnostics().into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    /// What MLIR said since the last call, and of which line and column of a file.
    fn take_located_diagnostics(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.diagnostics.borrow_mut())
    }

    /// An error of ours, with what MLIR said.
    pub(crate) fn bug(&self, message: &str) -> Error {
        let said = self.take_diagnostics();
        let error = Error::bug(message);
        if said.is_empty() { error } else { Error::bug(said.join("; ")).context(message) }
    }
}

fn reverses_argument_uses(bytecode: &Bytecode<'_>) -> bool {
    bytecode.producer.starts_with(b"StableHLO_v1.8.")
}

/// What MLIR said.
struct Diagnostic {
    message: String,
    position: Option<(u32, u32)>,
}

/// A module in a session: what passes work on.
#[derive(Clone, Copy)]
pub struct Program<'s, 'a> {
    /// The `builtin.module`.
    pub module: Op<'s>,
    /// The session it lives in.
    pub session: &'s Session<'a>,
}

impl<'s, 'a> Program<'s, 'a> {
    /// The block of the module's functions.
    pub fn body(&self) -> Result<Block<'s>> {
        self.module.regions().next().and_then(Region::first_block).ok_or_else(|| Error::format("the module has no body"))
    }

    /// The functions, in order.
    pub fn functions(&self) -> Result<Vec<Op<'s>>> {
        Ok(self.body()?.operations().filter(|operation| operation.is("func.func")).collect())
    }

    /// The public function `main`.
    pub fn main(&self) -> Result<Op<'s>> {
        let main = self.functions()?.into_iter().find(|function| symbol_name(*function) == Some(b"main"));
        main.ok_or_else(|| Error::refused("the module has no function `main`"))
    }

    /// Calls `visit` with every operation below `root`, and with `root` itself, in textual order.
    pub fn walk(root: Op<'s>, mut visit: impl FnMut(Op<'s>)) {
        let mut stack = vec![root];
        let mut inner = Vec::new();
        while let Some(operation) = stack.pop() {
            visit(operation);
            for region in operation.regions() {
                for block in region.blocks() {
                    inner.extend(block.operations());
                }
            }
            stack.extend(inner.drain(..).rev());
        }
    }
}

/// The name of a symbol: a function or a mesh.
pub fn symbol_name(operation: Op<'_>) -> Option<&[u8]> {
    operation.attribute("sym_name")?.as_string()
}

/// Turns a module into bytecode again.
pub use export::export;
/// Makes a program of bytecode.
pub use import::import;
/// Reads a module from text.
pub use parse::parse;
