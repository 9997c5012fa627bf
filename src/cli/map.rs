//! Maps of input files, and what happens where such a file becomes shorter while it is read. The unsafe code of the program, beside one line in `errors`.
//!
//! A map is the file itself: what another program does to the file meanwhile is seen through it. Changed bytes make malformed input at worst. But bytes
//! that are gone raise SIGBUS, which ends a program. Here it puts zeros in their place and remembers it; whoever read them then fails, or is found out
//! by [`is_shorter`], which must be asked before anything is made of what was read. Libraries must not handle signals, so this is the program's.

#![allow(unsafe_code, reason = "maps and signals have no safe form")]

use std::fs::File;
use std::ops::Deref;

use memmap2::Mmap;

/// A file's bytes. There is one at a time: the handler knows one range.
pub struct Map(Mmap);

impl Map {
    /// A map of a file that is not empty, where its system has maps.
    pub fn new(file: &File) -> Option<Self> {
        // SAFETY: the map is private and only read. What safe code cannot know is that nobody else changes the file meanwhile: then we read a mixture of
        // both, which every reader of ours takes as malformed input at worst, or zeros that the handler of faults put there. We never write to the file
        // ourselves: outputs replace names, never contents.
        let map = unsafe { Mmap::map(file) }.ok()?;
        faults::watch(&map).then_some(Self(map))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        faults::forget();
    }
}

/// Whether bytes of a mapped file were gone when they were read.
pub fn is_shorter() -> bool {
    faults::happened()
}

#[cfg(unix)]
mod faults {
    use std::mem::{MaybeUninit, zeroed};
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, PROT_READ, SA_ONSTACK, SA_SIGINFO, SIGBUS, c_int, c_void, siginfo_t};

    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    static HAPPENED: AtomicBool = AtomicBool::new(false);
    /// Who handled the signal before: Rust's own, which tells overflows of the stack.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Handles faults in this range from now on. `false` if that is not possible.
    pub fn watch(bytes: &[u8]) -> bool {
        // SAFETY: asks a number of the system.
        let Ok(page @ 1..) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return false };
        PAGE.store(page, SeqCst);
        let range = bytes.as_ptr_range();
        START.store(range.start as usize, SeqCst);
        END.store((range.end as usize).next_multiple_of(page), SeqCst);
        BEFORE.get().is_some() || install()
    }

    pub fn forget() {
        END.store(0, SeqCst);
    }

    pub fn happened() -> bool {
        HAPPENED.load(SeqCst)
    }

    fn install() -> bool {
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
        let (start, end, page) = (START.load(SeqCst), END.load(SeqCst), PAGE.load(SeqCst));
        if (start..end).contains(&address) {
            let place = address & !(page - 1);
            // SAFETY: the pages from the fault to the map's end are the map's own, which nobody writes to, and behind the file's end like the first of
            // them. The new ones go with the map: it unmaps its range, whatever is there.
            let zeros = unsafe { libc::mmap(place as *mut c_void, end - place, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) };
            if zeros != MAP_FAILED {
                HAPPENED.store(true, SeqCst);
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
    pub fn watch(_: &[u8]) -> bool {
        true
    }

    pub fn forget() {}

    pub fn happened() -> bool {
        false
    }
}
