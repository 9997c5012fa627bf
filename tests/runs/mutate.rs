//! Hundreds of thousands of damaged inputs through every verb, in processes of their own: none may panic, end the process, take more than five seconds or
//! take memory out of proportion. `make mutate` runs it; CONTRIBUTING.md says when.
//!
//! `mutate [COUNT] [--first SEED] [--jobs N] [--keep DIR] [--accepted DIR]`. What went wrong is kept in the first folder, with the seed in its name; some
//! of what was accepted and written goes into the second, for other readers to look at.

#![allow(unsafe_code, reason = "an allocator that counts")]

#[path = "../common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write, sink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::hostile::mutation;
use common::{Sample, on_a_large_stack, samples};
use jaxprism::bytecode::Bytecode;
use jaxprism::callbacks::Table;
use jaxprism::ir::text::{TextOptions, write_text};
use jaxprism::size::to_html;
use jaxprism::{
    CheckOptions, Error, ErrorKind, Exported, Platform, RetargetOptions, SizeOptions, Source, SplitOptions, StripOptions, callbacks_of,
    check, inspect, retarget, size, split, strip,
};

const COUNT: u64 = 200_000;
/// Inputs of one process.
const BATCH: u64 = 500;
const TOO_LONG: Duration = Duration::from_secs(5);
/// Outputs of accepted inputs that are kept.
const ACCEPTED: u64 = 500;
/// The system's own counts of memory are those of the whole process, with what its libraries do once.
const MEMORY: u64 = 64 << 20;
const MEMORY_PER_BYTE: u64 = 8;

/// Counts what Rust code has, and the most that it had.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: everything is the system's; only numbers are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        took(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Verb = fn(&[u8]) -> Result<(), Error>;

const VERBS: [(&str, Verb); 8] = [
    ("info", |bytes| inspect(bytes).map(drop)),
    ("size", |bytes| to_html(&size(bytes, &SizeOptions::default())?, "input").map(drop)),
    ("callbacks", |bytes| callbacks_of(bytes, &Table::default()).map(drop)),
    ("print", |bytes| {
        on_a_large_stack(|| {
            let source = Source::read(bytes, "input")?;
            (0..source.level_count()).try_for_each(|level| write_text(&source.module(level, bytes)?, &TextOptions::default(), &mut sink()))
        })
    }),
    ("split", |bytes| {
        let split = split(bytes, &SplitOptions::default())?;
        split.outputs.values().for_each(|output| read_back(&output.to_vec()));
        Ok(())
    }),
    ("strip", |bytes| {
        let stripped = strip(bytes, &StripOptions::default())?;
        read_back(&stripped.output.to_vec());
        Ok(())
    }),
    ("retarget", |bytes| {
        let platforms = [Platform::TPU, Platform::new("metal")];
        let retargeted = retarget(bytes, &RetargetOptions::default().platforms(platforms))?;
        retargeted.output.iter().for_each(|output| read_back(&output.to_vec()));
        Ok(())
    }),
    ("check", |bytes| check(bytes, &CheckOptions::default()).map(drop)),
];

/// What was written must be readable.
fn read_back(written: &[u8]) {
    let exported = Exported::read(written).unwrap_or_else(|error| panic!("cannot read what was written: {error:?}"));
    for level in exported.levels() {
        let read = Bytecode::read(level.module.as_borrowed().unwrap(), 0);
        read.unwrap_or_else(|error| panic!("cannot read a module that was written: {error:?}"));
    }
}

/// Resident memory of this process in bytes: now, and the most there was since the last look. Nothing where the system does not tell.
fn resident() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let find =
        |name: &str| Some(1024 * status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse::<u64>().ok()?);
    let found = (find("VmRSS:")?, find("VmHWM:")?);
    fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(found)
}

/// Runs a verb over an input, and says what it came to in a line: outcome, microseconds, bytes that Rust took, bytes that the process took.
fn run(verb: Verb, bytes: &[u8]) -> String {
    let before = resident();
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| verb(bytes)));
    let micros = start.elapsed().as_micros();
    let rust = PEAK.load(Relaxed).saturating_sub(live) as u64;
    let process = before.zip(resident()).map_or(0, |((before, _), (_, most))| most.saturating_sub(before));
    let limit = MEMORY + MEMORY_PER_BYTE * bytes.len() as u64;
    let outcome = match result {
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            format!("FAILED panic: {}", said.unwrap_or_default())
        }
        Ok(Err(error)) if matches!(error.kind(), ErrorKind::Bug | ErrorKind::Io) => format!("FAILED {error:?}"),
        Ok(_) if rust > limit || process > limit => {
            format!("FAILED memory: Rust took {rust} bytes and the process {process}, the limit is {limit}")
        }
        Ok(Err(error)) => format!("{:?}", error.kind()),
        Ok(Ok(())) => "done".to_owned(),
    };
    format!("{micros} {rust} {process} {}", outcome.replace('\n', " "))
}

/// The work of one process: a line when an input begins, and one for each verb.
fn work(first: u64, count: u64) {
    let samples = samples();
    std::panic::set_hook(Box::new(|_| {}));
    let mut stdout = std::io::stdout().lock();
    let mut tell = |line: String| writeln!(stdout, "{line}").and_then(|()| stdout.flush()).unwrap_or_else(|_| std::process::exit(1));
    for seed in first..first + count {
        let (_, bytes) = mutation(&samples, seed);
        for (name, verb) in VERBS {
            tell(format!("> {seed} {} {name}", bytes.len()));
            tell(format!("< {}", run(verb, &bytes)));
        }
    }
}

#[derive(Default)]
struct Summary {
    outcomes: BTreeMap<(&'static str, String), u64>,
    /// Time, memory of Rust and of the process: the most, with the input.
    most: [(u64, String); 3],
    failures: Vec<String>,
    accepted: u64,
    inputs: u64,
}

struct Options {
    first: u64,
    keep: PathBuf,
    accepted: Option<PathBuf>,
}

/// Has one process work on its inputs, and another on the rest if it ends early. Returns how far it came.
fn batch(first: u64, count: u64, options: &Options, samples: &[Sample], summary: &Mutex<Summary>) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--work", &first.to_string(), &count.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (lines, stderr) = read(&mut child);
    let (mut now, mut since) = (None, (Instant::now(), Duration::ZERO));
    let ended = loop {
        match lines.recv_timeout(if now.is_some() { TOO_LONG } else { 12 * TOO_LONG }) {
            Ok(line) if line.starts_with("> ") => {
                now = Some(line);
                since = (Instant::now(), processor_time(&child).unwrap_or_default());
            }
            Ok(line) => {
                let Some(begun) = &now else { continue };
                heard(begun, line.trim_start_matches("< "), options, samples, &mut summary.lock().unwrap());
            }
            // On a machine that is busy with something else it waits more than it works.
            Err(mpsc::RecvTimeoutError::Timeout)
                if since.0.elapsed() < 12 * TOO_LONG && processor_time(&child).is_some_and(|time| time < since.1 + TOO_LONG) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                break Some(format!("took more than {TOO_LONG:?}"));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
    };
    let status = child.wait().unwrap();
    let said = stderr.join().unwrap();
    if status.success() {
        return first + count;
    }
    let begun = now.unwrap_or_else(|| panic!("a process ended before its first input: {status}\n{said}"));
    let what =
        ended.unwrap_or_else(|| format!("ended the process: {status}; {}", said.lines().rev().take(3).collect::<Vec<_>>().join("; ")));
    heard(&begun, &format!("0 0 0 FAILED {what}"), options, samples, &mut summary.lock().unwrap());
    parse(&begun).0 + 1
}

/// How long the processors worked for a process, where the system says it in hundredths of seconds.
fn processor_time(child: &Child) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // What stands before may have spaces in it: the program's name, in brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis(10 * ticks.sum::<Option<u64>>()?))
}

fn read(child: &mut Child) -> (mpsc::Receiver<String>, thread::JoinHandle<String>) {
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut stderr = child.stderr.take().unwrap();
    let stderr = thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    (lines, stderr)
}

/// The seed, the length and the verb of a line.
fn parse(begun: &str) -> (u64, u64, &str) {
    let mut parts = begun.trim_start_matches("> ").split(' ');
    let mut number = || parts.next().unwrap().parse().unwrap();
    let (seed, length) = (number(), number());
    (seed, length, parts.next().unwrap())
}

fn heard(begun: &str, line: &str, options: &Options, samples: &[Sample], summary: &mut Summary) {
    let (seed, length, verb) = parse(begun);
    let verb = VERBS.iter().find(|(name, _)| *name == verb).unwrap().0;
    let mut parts = line.splitn(4, ' ');
    let numbers: [u64; 3] = std::array::from_fn(|_| parts.next().unwrap().parse().unwrap());
    let outcome = parts.next().unwrap();
    for (most, number) in summary.most.iter_mut().zip(numbers) {
        if number > most.0 {
            *most = (number, format!("{verb} of input {seed}, {length} bytes"));
        }
    }
    summary.inputs += u64::from(verb == VERBS[0].0);
    let kind = if outcome.starts_with("FAILED") { "FAILED" } else { outcome };
    *summary.outcomes.entry((verb, kind.to_owned())).or_default() += 1;
    if kind == "FAILED" {
        let (name, bytes) = mutation(samples, seed);
        let path = options.keep.join(format!("{seed}.{verb}"));
        fs::create_dir_all(&options.keep).and_then(|()| fs::write(&path, bytes)).unwrap();
        let failure = format!("{verb}: {name}: {}\n  the input is in {}", outcome.trim_start_matches("FAILED "), path.display());
        eprintln!("{failure}");
        summary.failures.push(failure);
    }
    if let (Some(folder), "split", "done") = (&options.accepted, verb, outcome)
        && summary.accepted < ACCEPTED
    {
        summary.accepted += keep_accepted(folder, seed, samples);
    }
}

/// Writes the first output of an accepted input, unless the input is nothing new, or the output is: exports for one platform come out as they are.
fn keep_accepted(folder: &Path, seed: u64, samples: &[Sample]) -> u64 {
    let (_, bytes) = mutation(samples, seed);
    if samples.iter().any(|sample| sample.bytes == bytes) {
        return 0;
    }
    let split = split(&bytes, &SplitOptions::default()).unwrap();
    if split.report.platforms.len() < 2 {
        return 0;
    }
    let Some(output) = split.outputs.values().next() else { return 0 };
    let path = folder.join(format!("{seed}.jax_exported"));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, output.to_vec())).unwrap();
    1
}

fn tell(summary: &Summary, took: Duration) -> String {
    let mut text = format!("{} inputs in {:.0} s\n", summary.inputs, took.as_secs_f64());
    for ((verb, outcome), count) in &summary.outcomes {
        let _ = writeln!(text, "  {verb:<10} {outcome:<12} {count:>9}");
    }
    let [time, rust, process] = &summary.most;
    let _ = writeln!(text, "slowest: {:.3} s, {}", time.0 as f64 / 1e6, time.1);
    let _ = writeln!(text, "most memory of Rust: {:.1} MB, {}", rust.0 as f64 / 1e6, rust.1);
    let _ = writeln!(text, "most memory of the process: {:.1} MB, {}", process.0 as f64 / 1e6, process.1);
    let _ = writeln!(text, "{} failures", summary.failures.len());
    text
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [work_, first, count] = &arguments[..]
        && work_ == "--work"
    {
        work(first.parse().unwrap(), count.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let of = |name: &str| arguments.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone());
    let number = |name: &str| of(name).map(|number| number.parse::<u64>().unwrap());
    let count = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let jobs = number("--jobs").map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize);
    let keep = of("--keep").map_or_else(|| std::env::temp_dir().join("jaxprism-mutate"), PathBuf::from);
    let options = Options { first: number("--first").unwrap_or(0), keep, accepted: of("--accepted").map(PathBuf::from) };
    let (samples, summary, next) = (samples(), Mutex::new(Summary::default()), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let batch_ = next.fetch_add(BATCH, Relaxed);
                    if batch_ >= count {
                        return;
                    }
                    let (mut first, end) = (options.first + batch_, options.first + (batch_ + BATCH).min(count));
                    while first < end {
                        first = batch(first, end - first, &options, &samples, &summary);
                    }
                    if (batch_ / BATCH).is_multiple_of(20) {
                        eprintln!("{batch_} of {count}, {:.0} s", start.elapsed().as_secs_f64());
                    }
                }
            });
        }
    });
    let summary = summary.into_inner().unwrap();
    print!("{}", tell(&summary, start.elapsed()));
    ExitCode::from(u8::from(!summary.failures.is_empty()))
}
