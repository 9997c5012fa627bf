//! Threads with a deep stack: MLIR, our verifier and the text of modules recurse over regions and attributes, whose depth the readers bound.

#![allow(clippy::indexing_slicing, reason = "positions are those of a list that was made here, or were just looked for in it")]

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};

/// Stack of the threads that look into modules.
const STACK_BYTES: usize = 16 << 20;

/// Runs some work on a deep stack.
///
/// # Errors
/// Those of the work; [`crate::ErrorKind::Io`] if the system gives no thread; [`crate::ErrorKind::Bug`] if the work panics.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let worker = worker.map_err(|error: io::Error| Error::io("cannot start a thread", &error))?;
        worker.join().map_err(|_| Error::bug("a thread panicked"))?
    })
}

/// How many threads can run at a time.
pub fn processors() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Maps `work` over `items`, as many at a time as there are processors, and returns the results in order.
pub(crate) fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Result<Vec<R>> {
    in_threads(processors(), items, work)
}

/// Maps `work` over `items`, so many at a time at most, and returns the results in order.
pub(crate) fn in_threads<T: Send, R: Send>(threads: NonZeroUsize, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Result<Vec<R>> {
    let threads = threads.get().min(items.len());
    let slots: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let queue: Mutex<VecDeque<(usize, T)>> = Mutex::new(items.into_iter().enumerate().collect());
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| -> Result<()> {
        let run = || {
            while let Some((position, item)) = take() {
                let result = work(item);
                *slots[position].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        let spawn = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        let workers = (0..threads).map(spawn).collect::<io::Result<Vec<_>>>();
        let workers = workers.map_err(|error| Error::io("cannot start a thread", &error))?;
        for worker in workers {
            worker.join().map_err(|_| Error::bug("a thread panicked"))?;
        }
        Ok(())
    })?;
    let results = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.collect::<Option<_>>().ok_or_else(|| Error::bug("an item without a result"))
}
