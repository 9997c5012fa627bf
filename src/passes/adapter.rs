//! Rows of [`super::PASSES`] as external passes of MLIR.
//!
//! A Rust pass can tell MLIR only that it failed, and a panic inside one would abort the process. So the adapter catches panics and keeps what the
//! pass returned in a slot, which [`run_pipeline`] reads.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Instant;

use melior::ir::r#type::TypeId;
use melior::ir::{Module, OperationRef};
use melior::pass::{ExternalPass, PassManager, create_external};

use super::{Options, Pass, PassRun};
use crate::error::{Error, Result};
use crate::ir::{Op, Program, Session, verify};

type Slot = Rc<RefCell<Vec<Result<PassRun>>>>;

/// Looks at the program after a pass.
pub type Observer<'o> = &'o dyn Fn(&'static Pass, &Program<'_, '_>) -> Result<()>;

/// Runs passes over a module in melior's pass manager, and checks what they made of it with our verifier and with MLIR's: once at the end, in debug builds
/// after each pass.
///
/// The module must be the one that was imported into `session`. Returns what each pass did; stops at the first that fails.
pub fn run_pipeline(
    session: &Session<'_>,
    module: &mut Module<'_>,
    passes: &[&'static Pass],
    options: &Options,
    observer: Option<Observer<'_>>,
) -> Result<Vec<PassRun>> {
    let slot = Slot::default();
    let manager = PassManager::new(session.context());
    // A look over the module costs as much as a pass.
    manager.enable_verifier(cfg!(debug_assertions));
    for pass in passes {
        let slot = Rc::clone(&slot);
        let run = move |operation: OperationRef<'_, '_>, external: ExternalPass<'_>| {
            let program = Program { module: Op::from_melior(operation), session };
            let outcome = run_pass(pass, &program, options);
            let outcome = outcome.and_then(|run| observer.map_or(Ok(()), |observe| observe(pass, &program)).map(|()| run));
            if outcome.is_err() {
                external.signal_failure();
            }
            slot.borrow_mut().push(outcome);
        };
        manager.add_pass(create_external(run, TypeId::create(*pass), pass.name, pass.name, pass.summary, "builtin.module", &[]));
    }
    let success = manager.run(module).is_ok();
    let outcomes = std::mem::take(&mut *slot.borrow_mut());
    let runs = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
    if !success {
        return Err(session.bug("MLIR's verifier refuses what a pass made"));
    }
    let program = Program { module: Op::from_melior(module.as_operation()), session };
    if !cfg!(debug_assertions) && runs.iter().any(|run| run.changes.touch_operations()) {
        verify(&program).map_err(|error| Error::bug(error.to_string()).context("the passes broke the module"))?;
    }
    let is_changed = runs.iter().any(|run| !run.changes.is_empty());
    if is_changed && !program.module.verify() {
        return Err(session.bug("MLIR's verifier refuses what the passes made"));
    }
    // Uses are where they were when only locations changed.
    if runs.iter().any(|run| run.changes.touch_uses()) {
        session.note_change();
    }
    Ok(runs)
}

fn run_pass(pass: &'static Pass, program: &Program<'_, '_>, options: &Options) -> Result<PassRun> {
    let start = Instant::now();
    let context = |error: Error| error.context(format!("pass `{}` failed", pass.name));
    let changes = catch_unwind(AssertUnwindSafe(|| (pass.run)(program, options)))
        .unwrap_or_else(|_| Err(Error::bug("the pass panicked")))
        .map_err(context)?;
    if cfg!(debug_assertions) && changes.touch_operations() {
        verify(program).map_err(|error| Error::bug(error.to_string())).map_err(context)?;
    }
    Ok(PassRun { name: pass.name, changes, time: start.elapsed() })
}
