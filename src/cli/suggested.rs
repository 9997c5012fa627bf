//! Arguments of which a shell can propose values, but which take others too.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

use crate::Platform;
use crate::callbacks::Policy;
use crate::passes::PASSES;

use super::callback_options::parse;

/// A function that reads an argument, and what can be proposed.
#[derive(Clone)]
pub struct Suggested<T> {
    read: fn(&str) -> Result<T, String>,
    values: fn() -> Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Suggested<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&self.read, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter().map(PossibleValue::new)))
    }
}

/// A platform: those of JAX, or what a plugin registered.
pub fn platform() -> Suggested<Platform> {
    Suggested { read: parse, values: || vec!["cpu", "cuda", "rocm", "tpu"] }
}

/// A policy for callbacks.
pub fn policy() -> Suggested<Policy> {
    Suggested { read: parse, values: || Policy::SPELLINGS.to_vec() }
}

/// Something that begins with the name of a pass, or may be one.
pub fn pass<T>(read: fn(&str) -> Result<T, String>) -> Suggested<T> {
    Suggested { read, values: || PASSES.iter().map(|pass| pass.name).collect() }
}

/// Any text.
pub fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}
