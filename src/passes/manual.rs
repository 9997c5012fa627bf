//! What runs once for every shard: manual computations and whatever they call.

use rustc_hash::{FxHashMap, FxHashSet};

use super::placeholders::target;
use crate::error::Result;
use crate::ir::{Op, Program, callee_of, is_call, symbol_name};

/// The parts of a program that run once for every shard.
pub(super) struct Manual {
    functions: FxHashSet<Vec<u8>>,
    /// GSPMD marks the values that go in and out, and no region: then it may be anything.
    everything: bool,
}

impl Manual {
    pub fn of(program: &Program<'_, '_>) -> Result<Self> {
        let (mut manual, mut work) = (Self { functions: FxHashSet::default(), everything: false }, Vec::new());
        let mut callees: FxHashMap<Vec<u8>, Vec<Vec<u8>>> = FxHashMap::default();
        for function in program.functions()? {
            let name = symbol_name(function).unwrap_or_default();
            Program::walk(function, |operation| {
                manual.everything |= is_gspmd(program, operation);
                if let Some(callee) = callee_of(program, operation).filter(|_| is_call(operation.name_str())) {
                    if is_inside(operation) {
                        work.push(callee.clone());
                    }
                    callees.entry(name.to_vec()).or_default().push(callee);
                }
            });
        }
        while let Some(name) = work.pop() {
            work.extend(callees.remove(&name).unwrap_or_default());
            manual.functions.insert(name);
        }
        Ok(manual)
    }

    /// Whether an operation of the function of that name is one of them.
    pub fn holds(&self, operation: Op<'_>, function: &str) -> bool {
        self.everything || self.functions.contains(function.as_bytes()) || is_inside(operation)
    }
}

fn is_inside(operation: Op<'_>) -> bool {
    std::iter::successors(operation.parent(), |operation| operation.parent()).any(|around| around.is("sdy.manual_computation"))
}

/// Whether it is where GSPMD goes over to shards.
fn is_gspmd(program: &Program<'_, '_>, operation: Op<'_>) -> bool {
    let is_custom_call = operation.name().as_bytes().starts_with(b"vhlo.custom_call_v");
    is_custom_call && target(program, operation).as_deref() == Some(b"SPMDFullToShardShape")
}
