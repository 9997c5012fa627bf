//! Maps of input files, and what happens where such a file becomes shorter while it is read. The unsafe code of the program, beside one line in `errors`.
//!
//! A map is the file itself: what another program does to the file meanwhile is seen through it. Changed bytes make malformed input at worst. But bytes
//! that are gone raise SIGBUS, which ends a program. Here it puts zeros in their place and remembers it; whoever read them then fails, or is found out
//! by [`Map::is_shorter`], which must be asked before anything is made of what was read. Libraries must not handle signals, so this is the program's.

#![allow(unsafe_code, reason = "maps and signals have no safe form")]

use std::fs::File;
use std::ops::Deref;

use memmap2::Mmap;

/// A file's bytes.
pub struct Map {
    bytes: Mmap,
    /// The number that the handler knows them by.
    range: usize,
}

impl Map {
    /// A map of a file that is not empty, where its system has maps and the handler has room for one more.
    pub fn new(file: &File) -> Option<Self> {
        // SAFETY: the map is private and only read. What safe code cannot know is that nobody else changes the file meanwhile: then we read a mixture of
        // both, which every reader of ours takes as malformed input at worst, or zeros that the handler of faults put there. We never write to the file
        // ourselves: outputs replace names, never contents.
        let bytes = unsafe { Mmap::map(file) }.ok()?;
        let range = faults::watch(&bytes)?;
        Some(Self { bytes, range })
    }

    /// Whether bytes of the file were gone when they were read.
    pub fn is_shorter(&self) -> bool {
        faults::happened(self.range)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        faults::forget(self.range);
    }
}

#[cfg(unix)]
mod faults {
    use std::mem::{MaybeUninit, zeroed};
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, PROT_READ, SA_ONSTACK, SA_SIGINFO, SIGBUS, c_int, c_void, siginfo_t};

    /// What is watched. A range without an end watches nothing, and one without a start is free.
    static RANGES: [Range; 64] = [const { Range::new() }; 64];
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    /// Who handled the signal before: Rust's own, which tells overflows of the stack.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    struct Range {
        start: AtomicUsize,
        end: AtomicUsize,
        happened: AtomicBool,
    }

    impl Range {
        const fn new() -> Self {
            Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), happened: AtomicBool::new(false) }
        }

        /// The range, unless it is in use.
        fn take(&self, start: usize, end: usize) -> bool {
            let is_free = self.start.compare_exchange(0, start, SeqCst, SeqCst).is_ok();
            if is_free {
                self.happened.store(false, SeqCst);
                self.end.store(end, SeqCst);
            }
            is_free
        }
    }

    /// Handles faults in this range from now on, and returns its number. `None` if that is not possible.
    pub fn watch(bytes: &[u8]) -> Option<usize> {
        // SAFETY: asks a number of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|page| *page > 0)?;
        PAGE.store(page, SeqCst);
        if BEFORE.get().is_none() && !install() {
            return None;
        }
        let addresses = bytes.as_ptr_range();
        let (start, end) = (addresses.start as usize, (addresses.end as usize).next_multiple_of(page));
        RANGES.iter().position(|range| range.take(start, end))
    }

    pub fn forget(range: usize) {
        if let Some(range) = RANGES.get(range) {
            range.end.store(0, SeqCst);
            range.start.store(0, SeqCst);
        }
    }

    pub fn happened(range: usize) -> bool {
        RANGES.get(range).is_some_and(|range| range.happened.load(SeqCst))
    }

    /// Handles the signal from now on. Of several threads that get here at a time one does it.
    fn install() -> bool {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if BEFORE.get().is_some() {
            return true;
        }
        let mut before = MaybeUninit::uninit();
        // SAFETY: all of `sigaction` may be zero. The handler has the type that SA_SIGINFO asks for, and does nothing but atomics and calls of the system.
        // `before` is written if the call succeeds, and is what the system had until then.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            if libc::sigaction(SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
                return false;
            }
            let _ = BEFORE.set(before.assume_init());
            libc::sigaction(SIGBUS, &raw const action, ptr::null_mut()) == 0
        }
    }

    /// Puts zeros where the rest of the file was. What is none of ours goes to whoever handled it before, as it happens again.
    extern "C" fn on_fault(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: the system calls this with the information that goes with the signal.
        let address = unsafe { (*info).si_addr() } as usize;
        let page = PAGE.load(SeqCst);
        let is_inside = |range: &&Range| (range.start.load(SeqCst)..range.end.load(SeqCst)).contains(&address);
        if let Some(range) = RANGES.iter().find(is_inside) {
            let (place, end) = (address & !(page - 1), range.end.load(SeqCst));
            // SAFETY: the pages from the fault to the map's end are the map's own, which nobody writes to, and behind the file's end like the first of
            // them. The new ones go with the map: it unmaps its range, whatever is there.
            let zeros = unsafe { libc::mmap(place as *mut c_void, end - place, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) };
            if zeros != MAP_FAILED {
                range.happened.store(true, SeqCst);
                return;
            }
        }
        // SAFETY: `before` came from the system, or is what it does without a handler.
        unsafe {
            match BEFORE.get() {
                Some(before) => drop(libc::sigaction(SIGBUS, before, ptr::null_mut())),
                None => drop(libc::signal(SIGBUS, libc::SIG_DFL)),
            }
        }
    }
}

/// Elsewhere the system keeps a mapped file from becoming shorter.
#[cfg(not(unix))]
mod faults {
    pub fn watch(_: &[u8]) -> Option<usize> {
        Some(0)
    }

    pub fn forget(_: usize) {}

    pub fn happened(_: usize) -> bool {
        false
    }
}
