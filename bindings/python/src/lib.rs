//! The compiled part of the Python package: what the Rust library does, on bytes and files, with the interpreter's lock released.
//!
//! Names and defaults of what users call are in the package's Python modules; here every argument is there, and options are strings as on the command
//! line. Data that is more than bytes goes to Python as JSON.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jaxprism::callbacks::{CallbackOptions, Policies, Policy, Rule, Table};
use jaxprism::{CheckOptions, Error, ErrorKind, Locations, Output, Platform, SplitOptions, TargetsAllowed};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

create_exception!(
    jaxprism,
    JaxprismError,
    PyValueError,
    "What jaxprism refuses or cannot do. `kind` is `format`, `unsupported`, `refused`, `io` or `bug`; `offset` the place in the file in bytes, and `hint` \
     what can be done, where they are known."
);

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{JaxprismError, Options, callbacks, check, info, split, split_to_files, strip, unlower};
}

/// An error of the library as a Python exception.
fn raise(error: &Error) -> PyErr {
    let mut message = error.to_string();
    error.causes().for_each(|cause| message.push_str(&format!("\n  {cause}")));
    if let Some(hint) = error.hint() {
        message.push_str(&format!("\nhint: {hint}"));
    }
    Python::attach(|py| {
        let raised = JaxprismError::new_err(message);
        let kind = match error.kind() {
            ErrorKind::Format => "format",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Refused => "refused",
            ErrorKind::Io => "io",
            _ => "bug",
        };
        let value = raised.value(py);
        let set = value
            .setattr("kind", kind)
            .and_then(|()| value.setattr("offset", error.offset()))
            .and_then(|()| value.setattr("hint", error.hint()));
        set.err().unwrap_or(raised)
    })
}

/// What a function is given: the bytes themselves, or the name of a file.
#[derive(FromPyObject)]
enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Source {
    fn read(self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Path(path) => std::fs::read(&path).map_err(|error| Error::io(format!("cannot read `{}`", path.display()), &error)),
        }
    }
}

fn parse<T: FromStr<Err = Error>>(texts: &[String]) -> Result<Vec<T>, Error> {
    texts.iter().map(|text| text.parse()).collect()
}

fn to_bytes(py: Python<'_>, output: &Output<'_>) -> PyResult<Py<PyBytes>> {
    let length = usize::try_from(output.len()).map_err(|_| PyValueError::new_err("the output is too large"))?;
    let bytes = PyBytes::new_with(py, length, |buffer| {
        let mut rest = &mut buffer[..];
        output.write_to(&mut rest).map_err(PyErr::from)
    });
    bytes.map(Bound::unbind)
}

/// Options of a split.
#[pyclass(frozen, module = "jaxprism._native")]
struct Options {
    platforms: Vec<String>,
    callbacks: String,
    rules: Vec<String>,
    on_unsupported: Option<String>,
    table: Option<String>,
    locations: String,
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (*, platforms, callbacks, rules, on_unsupported, table, locations))]
    fn new(
        platforms: Vec<String>,
        callbacks: String,
        rules: Vec<String>,
        on_unsupported: Option<String>,
        table: Option<String>,
        locations: String,
    ) -> Self {
        Self { platforms, callbacks, rules, on_unsupported, table, locations }
    }
}

impl Options {
    fn read(&self) -> Result<SplitOptions, Error> {
        let mut policies = Policies::default().rules(parse::<Rule>(&self.rules)?).otherwise(self.callbacks.parse()?);
        if let Some(policy) = &self.on_unsupported {
            policies = policies.on_unsupported(policy.parse::<Policy>()?);
        }
        let table = match &self.table {
            Some(json) => Table::default().with_user_file(json)?,
            None => Table::default(),
        };
        let locations = match &self.locations[..] {
            "stripped" => Locations::Stripped,
            "redacted" => Locations::Redacted,
            _ => Locations::Kept,
        };
        let options = SplitOptions::default().platforms(parse::<Platform>(&self.platforms)?);
        Ok(options.locations(locations).callbacks(CallbackOptions::new(policies, table)))
    }
}

/// The exports by platform, with the report and the manifest as JSON.
type Outputs = (Vec<(String, Py<PyBytes>)>, String, String);

/// Splits an export; each output is a `bytes`.
#[pyfunction]
fn split(py: Python<'_>, source: Source, options: &Options) -> PyResult<Outputs> {
    let options = options.read().map_err(|error| raise(&error))?;
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let split = py.detach(|| jaxprism::split(&bytes, &options)).map_err(|error| raise(&error))?;
    let outputs = split.outputs.iter().map(|(platform, output)| Ok((platform.to_string(), to_bytes(py, output)?)));
    let outputs = outputs.collect::<PyResult<_>>()?;
    Ok((outputs, to_json(&split.report)?, split.manifest.to_json().map_err(|error| raise(&error))?))
}

/// Splits an export into files: `template` is their name, with `{platform}` in it.
#[pyfunction]
fn split_to_files(
    py: Python<'_>,
    source: Source,
    options: &Options,
    template: String,
) -> PyResult<(Vec<(String, PathBuf)>, String, String)> {
    let options = options.read().map_err(|error| raise(&error))?;
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let split = py.detach(|| jaxprism::split(&bytes, &options)).map_err(|error| raise(&error))?;
    let outputs =
        || split.outputs.iter().map(|(platform, output)| (PathBuf::from(template.replace("{platform}", platform.as_str())), output));
    py.detach(|| write_all(outputs())).map_err(|error| raise(&error))?;
    let written = split.outputs.keys().map(ToString::to_string).zip(outputs().map(|(path, _)| path)).collect();
    Ok((written, to_json(&split.report)?, split.manifest.to_json().map_err(|error| raise(&error))?))
}

/// Writes files under temporary names, and gives them their own once all are complete: all or none.
fn write_all<'o, 'a: 'o>(outputs: impl Iterator<Item = (PathBuf, &'o Output<'a>)>) -> Result<(), Error> {
    let mut pending = Vec::new();
    for (path, output) in outputs {
        let failed = |error: std::io::Error| Error::io(format!("cannot write `{}`", path.display()), &error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".jaxprism-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(failed)?;
        let mut writer = BufWriter::new(file.as_file());
        output.write_to(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
        drop(writer);
        pending.push((file, path));
    }
    for (file, path) in pending {
        file.persist(&path).map_err(|error| Error::io(format!("cannot write `{}`", path.display()), &error.error))?;
    }
    Ok(())
}

/// Takes the callbacks out of an export. Returns it with the report as JSON.
#[pyfunction]
fn strip(py: Python<'_>, source: Source, rules: Vec<String>) -> PyResult<(Py<PyBytes>, String)> {
    let rules = parse::<Rule>(&rules).map_err(|error| raise(&error))?;
    let policies = Policies::default().otherwise(Policy::Strip).rules(rules);
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let stripped = py.detach(|| jaxprism::strip(&bytes, &policies)).map_err(|error| raise(&error))?;
    Ok((to_bytes(py, &stripped.output)?, to_json(&stripped.levels)?))
}

/// Makes placeholders again of lowered callbacks.
#[pyfunction]
fn unlower(py: Python<'_>, source: Source) -> PyResult<Py<PyBytes>> {
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let output = py.detach(|| jaxprism::unlower(&bytes)).map_err(|error| raise(&error))?;
    to_bytes(py, &output)
}

/// What an export holds, as JSON.
#[pyfunction]
fn info(py: Python<'_>, source: Source) -> PyResult<String> {
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let inspection = py.detach(|| jaxprism::inspect(&bytes)).map_err(|error| raise(&error))?;
    to_json(&inspection)
}

/// The callbacks of an export, as JSON; `table` is a user's table of targets, as JSON.
#[pyfunction]
fn callbacks(py: Python<'_>, source: Source, table: Option<String>) -> PyResult<String> {
    let table = table.map_or(Ok(Table::default()), |json| Table::default().with_user_file(&json)).map_err(|error| raise(&error))?;
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let callbacks = py.detach(|| jaxprism::callbacks_of(&bytes, &table)).map_err(|error| raise(&error))?;
    to_json(&callbacks)
}

/// What `jaxprism check --no-callbacks` finds, as JSON.
#[pyfunction]
fn check(py: Python<'_>, source: Source, platforms: Vec<String>, targets_allowed: String) -> PyResult<String> {
    let mut options = CheckOptions::default();
    options.platforms = parse::<Platform>(&platforms).map_err(|error| raise(&error))?;
    options.targets_allowed = targets_allowed.parse::<TargetsAllowed>().map_err(|error| raise(&error))?;
    let bytes = py.detach(|| source.read()).map_err(|error| raise(&error))?;
    let check = py.detach(|| jaxprism::check(&bytes, &options)).map_err(|error| raise(&error))?;
    to_json(&check)
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}
