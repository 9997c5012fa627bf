//! The compiled part of the Python package: what the Rust library does, on bytes and files, with the interpreter's lock released.
//!
//! Names and defaults of what users call are in the package's Python modules; here every argument is there, and options are strings as on the command
//! line. Data that is more than bytes goes to Python as JSON.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use jaxprism::callbacks::{CallbackOptions, Policies, Policy, Rule, Table};
use jaxprism::files::{Files, Names, quoted};
use jaxprism::pieces::Pieces;
use jaxprism::reader::MAX_EXPORT_BYTES;
use jaxprism::{
    CheckOptions, DiffOptions, Emit, Error, ErrorKind, Exported, Ignore, Locations, MergeInput, MergeOptions, Merged, OptOptions,
    OutputOptions, Platform, RetargetOptions, SizeOptions, SplitOptions, StripOptions, TargetsAllowed, VerifyOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{IntoPyDict, PyBytes};

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{
        callbacks, check, command_line, diff, info, merge, merge_to_file, retarget, size, split, split_to_files, strip, unlower, validate,
        verify,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

pyo3::import_exception!(jaxprism._errors, JaxprismError);

/// An error of the library as a Python exception.
fn raise(error: &Error) -> PyErr {
    let mut message = error.to_string();
    error.causes().for_each(|cause| message.push_str(&format!("\n  {cause}")));
    Python::attach(|py| {
        let details = [
            ("kind", error.kind().name().into_pyobject(py)?.into_any()),
            ("offset", error.offset().into_pyobject(py)?),
            ("hint", error.hint().map(in_python).into_pyobject(py)?),
        ];
        let raised = py.get_type::<JaxprismError>().call((message,), Some(&details.into_py_dict(py)?))?;
        Ok(PyErr::from_value(raised))
    })
    .unwrap_or_else(|error: PyErr| error)
}

/// A hint for the command line, in arguments of the package's functions.
fn in_python(hint: &str) -> String {
    const ARGUMENTS: [(&str, &str); 5] = [
        ("`-p`", "`platforms`"),
        ("`-o`", "`out`"),
        ("`--on-unsupported`", "`on_unsupported`"),
        ("`--no-vjp`", "`no_vjp=True`"),
        ("`--strip-sdy`", "`strip_sdy=True`"),
    ];
    let (mut text, mut rest) = (String::new(), hint);
    while let Some((before, (rule, after))) =
        rest.split_once("`--callback '").and_then(|(before, after)| Some((before, after.split_once("'`")?)))
    {
        let (name, policy) = rule.split_once('=').unwrap_or((rule, ""));
        text.push_str(&format!("{before}`callback={{'{name}': '{policy}'}}`"));
        rest = after;
    }
    text.push_str(rest);
    ARGUMENTS.iter().fold(text, |text, (option, argument)| text.replace(option, argument))
}

/// What a function is given: the bytes themselves, or the name of a file.
#[derive(FromPyObject)]
enum Source {
    Path(PathBuf),
    Bytes(PyBackedBytes),
}

/// What is in it.
enum Bytes {
    Read(Vec<u8>),
    Given(PyBackedBytes),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Given(bytes) => bytes,
        }
    }
}

impl Source {
    /// The name of the file.
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Bytes(_) => None,
        }
    }

    /// Reads a file into memory: a map would end the interpreter if the file became shorter.
    fn read(self) -> Result<Bytes, Error> {
        match self {
            Self::Bytes(bytes) => Ok(Bytes::Given(bytes)),
            Self::Path(path) => {
                let mut bytes = Vec::new();
                // One byte more than an export can have, so that the library refuses it.
                let read = File::open(&path).and_then(|file| file.take(MAX_EXPORT_BYTES + 1).read_to_end(&mut bytes));
                read.map_err(|error| Error::io(format!("cannot read {}", quoted(&path)), &error))?;
                Ok(Bytes::Read(bytes))
            }
        }
    }
}

/// Reads the source and does something with its bytes, without the interpreter's lock.
fn detached<T: Send>(py: Python<'_>, source: Source, work: impl Send + FnOnce(&[u8]) -> Result<T, Error>) -> PyResult<T> {
    py.detach(|| work(&source.read()?)).map_err(|error| raise(&error))
}

fn parse<T: FromStr<Err = Error>>(texts: &[String]) -> Result<Vec<T>, Error> {
    texts.iter().map(|text| text.parse()).collect()
}

/// A `bytes`, filled in place.
fn to_bytes(py: Python<'_>, contents: &Pieces<'_>) -> PyResult<Py<PyBytes>> {
    let length = usize::try_from(contents.len()).map_err(|_| PyValueError::new_err("the output is too large"))?;
    let bytes = PyBytes::new_with(py, length, |buffer| {
        let mut rest = &mut buffer[..];
        contents.write_to(&mut rest).map_err(PyErr::from)
    });
    bytes.map(Bound::unbind)
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::bug(format!("no JSON for it: {error}")))
}

/// The table of what callbacks are lowered to, with a user's additions as JSON.
fn read_table(additions: Option<&str>) -> Result<Table, Error> {
    additions.map_or_else(|| Ok(Table::default()), |json| Table::default().with_user_file(json))
}

/// Runs the command line in this process, which is to end afterwards. Returns the exit status.
#[pyfunction]
fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let status = py.detach(|| jaxprism::cli::main(arguments));
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == status).unwrap_or(u8::MAX)
}

/// Options of a split, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    platforms: Vec<String>,
    callbacks: String,
    rules: Vec<String>,
    on_unsupported: Option<String>,
    table: Option<String>,
    locations: String,
    exports: Vec<(String, Source)>,
    output: OutputDict,
}

/// Options of every output, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OutputDict {
    emit: String,
    no_vjp: bool,
    strip_sdy: bool,
    target_version: Option<String>,
}

impl OutputDict {
    fn read(&self) -> Result<(OutputOptions, Emit), Error> {
        let emit = self.emit.parse::<Emit>()?;
        let version = self.target_version.as_ref().map(|version| version.parse()).transpose()?;
        let options = OutputOptions::default().no_vjp(self.no_vjp).strip_sdy(self.strip_sdy).target_version(version);
        Ok((options.emit(emit), emit))
    }
}

impl Options {
    /// The files that policies call, which no output may replace.
    fn files(&self) -> Vec<PathBuf> {
        self.exports.iter().filter_map(|(_, source)| source.path()).collect()
    }

    /// What the library is asked for. Reads the files that policies call.
    fn read(self) -> Result<(SplitOptions, Emit), Error> {
        let mut policies = Policies::default().rules(parse::<Rule>(&self.rules)?).otherwise(self.callbacks.parse()?);
        if let Some(policy) = &self.on_unsupported {
            policies = policies.on_unsupported(policy.parse::<Policy>()?);
        }
        let table = read_table(self.table.as_deref())?;
        let locations = match &self.locations[..] {
            "stripped" => Locations::Stripped,
            "redacted" => Locations::Redacted,
            _ => Locations::Kept,
        };
        let options = SplitOptions::default().platforms(parse::<Platform>(&self.platforms)?);
        let mut callbacks = CallbackOptions::new(policies, table);
        for (name, source) in self.exports {
            callbacks = callbacks.export(name, &source.read()?[..]);
        }
        let (output, emit) = self.output.read()?;
        Ok((options.locations(locations).callbacks(callbacks).output(output), emit))
    }
}

/// Writes a file, which is replaced if it exists and is no input.
fn write<'p>(contents: &Pieces<'_>, path: &Path, inputs: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
    let mut files = Files::default();
    files.add(path, true, inputs)?;
    files.write_pieces(&[contents], None)?;
    files.commit()
}

/// Outputs by platform, with the report and the manifest as JSON.
type Outputs<T> = (Vec<(String, T)>, String, String);

/// Splits an export; each output is a `bytes`.
#[pyfunction]
fn split(py: Python<'_>, source: Source, options: Options) -> PyResult<Outputs<Py<PyBytes>>> {
    let raise = |error| raise(&error);
    let (options, emit) = py.detach(|| options.read()).map_err(raise)?;
    let bytes = py.detach(|| source.read()).map_err(raise)?;
    let mut split = py.detach(|| jaxprism::split(&bytes, &options)).map_err(raise)?;
    let contents = py.detach(|| emit.of_split(&split.outputs, &mut split.report)).map_err(raise)?;
    let outputs = split.outputs.keys().zip(&contents).map(|(platform, contents)| Ok((platform.to_string(), to_bytes(py, contents)?)));
    Ok((outputs.collect::<PyResult<_>>()?, to_json(&split.report).map_err(raise)?, split.manifest.to_json().map_err(raise)?))
}

/// Splits an export into files, all or none: `out` is a directory, or their name with `{platform}` in it. Files that exist are replaced.
#[pyfunction]
fn split_to_files(py: Python<'_>, source: Source, options: Options, out: PathBuf) -> PyResult<Outputs<PathBuf>> {
    let inputs: Vec<_> = source.path().into_iter().chain(options.files()).collect();
    let input = source.path();
    let (options, emit) = py.detach(|| options.read()).map_err(|error| raise(&error))?;
    detached(py, source, |bytes| {
        let mut split = jaxprism::split(bytes, &options)?;
        let contents = emit.of_split(&split.outputs, &mut split.report)?;
        let names = Names::new(Some(&out), input.as_deref())?.extension(emit.extension());
        let mut files = Files::default();
        let mut written = Vec::new();
        for platform in split.outputs.keys() {
            let path = names.path(platform)?;
            files.add(&path, true, inputs.iter().map(PathBuf::as_path))?;
            written.push((platform.to_string(), path));
        }
        let contents: Vec<_> = contents.iter().map(Deref::deref).collect();
        files.write_pieces(&contents, None)?;
        files.commit()?;
        Ok((written, to_json(&split.report)?, split.manifest.to_json()?))
    })
}

/// Merges exports for one platform each, which are those named, and does something with what is to be written.
fn merged<T>(
    inputs: Vec<(String, Source)>,
    output: &OutputDict,
    work: impl FnOnce(&Pieces<'_>) -> Result<T, Error>,
) -> Result<(T, String), Error> {
    let (output, emit) = output.read()?;
    let mut read = Vec::new();
    for (platform, source) in inputs {
        read.push((platform.parse::<Platform>()?, source.read()?));
    }
    let inputs: Vec<_> = read.iter().map(|(platform, bytes)| MergeInput::new(bytes).platform(platform.clone())).collect();
    let Merged { output, mut report } = jaxprism::merge(&inputs, &MergeOptions::default().output(output))?;
    let contents = emit.of(&output)?;
    report.bytes = contents.len();
    Ok((work(&contents)?, to_json(&report)?))
}

/// Merges exports; the result is bytes, with the report as JSON.
#[pyfunction]
fn merge(py: Python<'_>, inputs: Vec<(String, Source)>, output: OutputDict) -> PyResult<(Py<PyBytes>, String)> {
    let (bytes, report) = py.detach(|| merged(inputs, &output, |contents| Ok(contents.to_vec()))).map_err(|error| raise(&error))?;
    Ok((PyBytes::new(py, &bytes).unbind(), report))
}

/// Merges exports into a file, which is replaced if it exists and is no input. Returns the report as JSON.
#[pyfunction]
fn merge_to_file(py: Python<'_>, inputs: Vec<(String, Source)>, output: OutputDict, out: PathBuf) -> PyResult<String> {
    let paths: Vec<_> = inputs.iter().filter_map(|(_, source)| source.path()).collect();
    let write = |contents: &Pieces<'_>| write(contents, &out, paths.iter().map(AsRef::as_ref));
    py.detach(|| merged(inputs, &output, write)).map(|((), report)| report).map_err(|error| raise(&error))
}

/// Takes the callbacks out of an export.
#[pyfunction]
fn strip(py: Python<'_>, source: Source, rules: Vec<String>, output: OutputDict) -> PyResult<Py<PyBytes>> {
    let raise = |error| raise(&error);
    let policies = Policies::default().otherwise(Policy::Strip).rules(parse::<Rule>(&rules).map_err(raise)?);
    let (output, emit) = output.read().map_err(raise)?;
    let options = StripOptions::default().policies(policies).output(output);
    let bytes = py.detach(|| source.read()).map_err(raise)?;
    let stripped = py.detach(|| jaxprism::strip(&bytes, &options)).map_err(raise)?;
    to_bytes(py, &*py.detach(|| emit.of(&stripped.output)).map_err(raise)?)
}

/// What retargeting is asked for, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RetargetDict {
    platforms: Vec<String>,
    targets_allowed: Vec<String>,
    map_targets: bool,
    output: OutputDict,
}

impl RetargetDict {
    fn read(&self) -> Result<(RetargetOptions, Emit), Error> {
        let options = RetargetOptions::default().platforms(parse::<Platform>(&self.platforms)?).map_targets(self.map_targets);
        let (output, emit) = self.output.read()?;
        Ok((options.targets_allowed(self.targets_allowed.join("\n").parse::<TargetsAllowed>()?).output(output), emit))
    }
}

/// Makes an export for other platforms. With `out` it is written there, and replaces what is there; else it is returned.
#[pyfunction]
fn retarget(py: Python<'_>, source: Source, options: RetargetDict, out: Option<PathBuf>) -> PyResult<Option<Py<PyBytes>>> {
    let raise = |error| raise(&error);
    let input = source.path();
    let (options, emit) = options.read().map_err(raise)?;
    let bytes = py.detach(|| source.read()).map_err(raise)?;
    let made = py.detach(|| jaxprism::retarget(&bytes, &options)?.into_output()).map_err(raise)?;
    let contents = py.detach(|| emit.of(&made)).map_err(raise)?;
    let Some(path) = out else { return to_bytes(py, &contents).map(Some) };
    py.detach(|| write(&contents, &path, input.as_deref())).map_err(raise)?;
    Ok(None)
}

/// Makes placeholders again of lowered callbacks.
#[pyfunction]
fn unlower(py: Python<'_>, source: Source) -> PyResult<Py<PyBytes>> {
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let output = py.detach(|| jaxprism::unlower(&bytes)).map_err(|error| raise(&error))?;
    to_bytes(py, output.pieces())
}

/// Reads an export as far as any rewriting does. What is well-formed and only not known here is for JAX to judge.
#[pyfunction]
fn validate(py: Python<'_>, source: Source) -> PyResult<()> {
    detached(py, source, |bytes| {
        Exported::read(bytes)?;
        match jaxprism::opt(bytes, "", &OptOptions::default()) {
            Err(error) if error.kind() == ErrorKind::Format => Err(error),
            _ => Ok(()),
        }
    })
}

/// Whether an export is another one, for one platform, as JSON.
#[pyfunction]
fn verify(py: Python<'_>, original: Source, split: Source, ignore_locations: bool, table: Option<String>) -> PyResult<String> {
    let original = py.detach(|| original.read()).map_err(|error| raise(&error))?;
    detached(py, split, |split| {
        let options = VerifyOptions::default().ignore_locations(ignore_locations).table(read_table(table.as_deref())?);
        to_json(&jaxprism::verify(&original, split, &options)?)
    })
}

/// How two exports differ, as JSON.
#[pyfunction]
fn diff(py: Python<'_>, a: Source, b: Source, ignore: Vec<String>, max_changes: Option<usize>) -> PyResult<String> {
    let a = py.detach(|| a.read()).map_err(|error| raise(&error))?;
    detached(py, b, |b| {
        let mut options = DiffOptions::default().ignore(parse::<Ignore>(&ignore)?);
        options.max_changes = max_changes;
        to_json(&jaxprism::diff(&a, b, &options)?)
    })
}

/// What an export holds, as JSON.
#[pyfunction]
fn info(py: Python<'_>, source: Source) -> PyResult<String> {
    detached(py, source, |bytes| to_json(&jaxprism::inspect(bytes)?))
}

/// Where the bytes of an export are, as JSON.
#[pyfunction]
fn size(py: Python<'_>, source: Source) -> PyResult<String> {
    detached(py, source, |bytes| to_json(&jaxprism::size(bytes, &SizeOptions::default())?))
}

/// The callbacks of an export, as JSON; `table` is a user's table of targets, as JSON.
#[pyfunction]
fn callbacks(py: Python<'_>, source: Source, table: Option<String>) -> PyResult<String> {
    detached(py, source, |bytes| to_json(&jaxprism::callbacks_of(bytes, &read_table(table.as_deref())?)?))
}

/// What `jaxprism check --no-callbacks` finds, as JSON.
#[pyfunction]
fn check(py: Python<'_>, source: Source, platforms: Vec<String>, targets_allowed: Vec<String>) -> PyResult<String> {
    detached(py, source, |bytes| {
        let mut options = CheckOptions::default();
        options.platforms = parse::<Platform>(&platforms)?;
        options.targets_allowed = targets_allowed.join("\n").parse::<TargetsAllowed>()?;
        to_json(&jaxprism::check(bytes, &options)?)
    })
}
