//! What an operation of one name may hold since when.
//!
//! Source: `validateConstraint` in StableHLO's `VhloOps.cpp`.

use super::obstacles::What;
use crate::bytecode::{Bytecode, Field, Operation, StablehloVersion, TypeId, code, dialect};

/// What an operation holds that its name alone does not promise, with the version since which it may.
pub(super) fn need(bytecode: &Bytecode<'_>, operation: &Operation) -> Option<What> {
    let tables = &bytecode.tables;
    let is = |id: Option<_>, code: u8| id.is_some_and(|id| tables.attribute(id).is(dialect::VHLO, code));
    let (has, since) = match &tables.op_name(operation.name).name[..] {
        b"all_reduce_v1" | b"reduce_v1" | b"reduce_scatter_v1" | b"reduce_window_v1" | b"scatter_v1" | b"select_and_scatter_v1"
            if promotes(bytecode, operation) =>
        {
            ("results of another type than its operands", StablehloVersion::new(0, 17, 0))
        }
        b"custom_call_v1" if takes_futures(bytecode, operation) => ("futures", StablehloVersion::new(1, 17, 0)),
        b"custom_call_v1" if is(bytecode.inherent(operation, "backend_config"), code::vhlo::DICT) => {
            ("a dictionary in `backend_config`", StablehloVersion::new(1, 3, 0))
        }
        b"custom_call_v1" if is_typed_ffi(bytecode, operation) => ("`api_version` TYPED_FFI", StablehloVersion::new(1, 3, 0)),
        _ => return None,
    };
    Some(What::operation_with(operation.name, has, since))
}

/// Whether a result has other elements than the operand of its number.
fn promotes(bytecode: &Bytecode<'_>, operation: &Operation) -> bool {
    let (tables, tree) = (&bytecode.tables, &bytecode.tree);
    let element = |id: &TypeId| tables.r#type(*id).types().last();
    let results = tree.value_types.get(operation.results.range()).unwrap_or_default();
    let operands = tree.operands_of(operation).iter().map(|value| tree.value_types.get(value.index()).and_then(element));
    operands.zip(results).any(|(operand, result)| operand != element(result))
}

fn takes_futures(bytecode: &Bytecode<'_>, operation: &Operation) -> bool {
    let tree = &bytecode.tree;
    let mut types = tree.operands_of(operation).iter().filter_map(|value| tree.value_types.get(value.index()));
    types.any(|id| bytecode.tables.r#type(*id).is(dialect::VHLO, code::vhlo::FUTURE_TYPE))
}

fn is_typed_ffi(bytecode: &Bytecode<'_>, operation: &Operation) -> bool {
    const TYPED_FFI: u64 = 4;
    let api = bytecode.inherent(operation, "api_version").map(|id| bytecode.tables.attribute(id));
    api.is_some_and(|api| api.is(dialect::VHLO, code::vhlo::API_VERSION) && api.fields[..] == [Field::Unsigned(TYPED_FFI)])
}
