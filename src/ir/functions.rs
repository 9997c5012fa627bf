//! Edits of functions and of operations with regions that MLIR's interface has no call for.

use super::{Attribute, Block, Op, OpSpec, Program, Session, Type};
use crate::error::{Error, Result};

/// Whether only the module itself can call the function.
pub fn is_private(function: Op<'_>) -> bool {
    function.attribute("sym_visibility").and_then(|text| text.as_string()) == Some(b"private")
}

/// The block of a function, or of another operation with one region.
pub fn body(operation: Op<'_>) -> Option<Block<'_>> {
    operation.regions().next()?.first_block()
}

/// The inputs and results of a function.
pub fn signature<'s>(function: Op<'s>) -> Result<(Vec<Type<'s>>, Vec<Type<'s>>)> {
    let types = function.attribute("function_type").and_then(|attribute| attribute.as_type()?.as_function());
    types.ok_or_else(|| Error::bug("a function without a function type"))
}

/// The type of a function, which is a function type.
pub fn function_type<'s>(function: Op<'s>) -> Result<Type<'s>> {
    let of = function.attribute("function_type").and_then(|attribute| attribute.as_type()).filter(|of| of.is_function());
    of.ok_or_else(|| Error::bug("a function without a function type"))
}

/// How many inputs and results a function has by its type.
pub fn arity(function: Op<'_>) -> Result<(usize, usize)> {
    let of = function.attribute("function_type").and_then(|attribute| attribute.as_type());
    of.and_then(Type::function_arity).ok_or_else(|| Error::bug("a function without a function type"))
}

/// Drops the arguments of a function at `positions`, which ascend: from its block, its type and its argument attributes. Nothing may use them.
pub fn drop_arguments<'s>(program: &Program<'s, '_>, function: Op<'s>, positions: &[usize]) -> Result<()> {
    let factory = program.session.factory();
    let (inputs, results) = signature(function)?;
    let inputs = without(inputs, positions);
    function.set_attribute("function_type", factory.type_attribute(factory.function_type(&inputs, &results)));
    if positions.is_empty() {
        return Ok(());
    }
    if let Some(dictionaries) = function.attribute("arg_attrs").and_then(Attribute::as_array) {
        let left = without(dictionaries, positions);
        if left.is_empty() {
            function.remove_attribute("arg_attrs");
        } else {
            function.set_attribute("arg_attrs", factory.array(&left));
        }
    }
    let block = body(function).ok_or_else(|| Error::bug("a function without a body"))?;
    positions.iter().rev().for_each(|position| block.erase_argument(*position));
    Ok(())
}

/// Gives a function an argument before all others, with attributes of its own. What calls it is not changed.
pub fn insert_argument<'s>(program: &Program<'s, '_>, function: Op<'s>, of: Type<'s>, attributes: Attribute<'s>) -> Result<()> {
    let factory = program.session.factory();
    let block = body(function).ok_or_else(|| Error::bug("a function without a body"))?;
    let (mut inputs, results) = signature(function)?;
    let mut dictionaries = function.attribute("arg_attrs").and_then(Attribute::as_array).unwrap_or_default();
    dictionaries.resize(inputs.len(), factory.dictionary(&[]));
    dictionaries.insert(0, attributes);
    inputs.insert(0, of);
    function.set_attribute("function_type", factory.type_attribute(factory.function_type(&inputs, &results)));
    function.set_attribute("arg_attrs", factory.array(&dictionaries));
    block.insert_argument(0, of, program.session.unknown_location());
    Ok(())
}

/// Drops the results of a function at `positions`, which ascend: from its terminator, its type and its result attributes. What calls it is not changed.
pub fn drop_results<'s>(program: &Program<'s, '_>, function: Op<'s>, positions: &[usize]) -> Result<()> {
    if positions.is_empty() {
        return Ok(());
    }
    let factory = program.session.factory();
    let (inputs, results) = signature(function)?;
    let results = without(results, positions);
    function.set_attribute("function_type", factory.type_attribute(factory.function_type(&inputs, &results)));
    if let Some(dictionaries) = function.attribute("res_attrs").and_then(Attribute::as_array) {
        let left = without(dictionaries, positions);
        if left.is_empty() {
            function.remove_attribute("res_attrs");
        } else {
            function.set_attribute("res_attrs", factory.array(&left));
        }
    }
    let terminator = body(function).and_then(Block::last).ok_or_else(|| Error::bug("a function without a body"))?;
    terminator.set_operands(&without(terminator.operands().collect(), positions));
    Ok(())
}

/// `items` without those at `positions`.
pub fn without<T>(items: Vec<T>, positions: &[usize]) -> Vec<T> {
    items.into_iter().enumerate().filter(|(position, _)| !positions.contains(position)).map(|(_, item)| item).collect()
}

/// Makes an operation anew without the operands and results at the given positions, moving its regions, and erases the old one.
///
/// Nothing may use the results that go. Attributes stay as they are.
pub fn rebuild_without<'s>(session: &Session<'_>, operation: Op<'s>, operands: &[usize], results: &[usize]) -> Result<Op<'s>> {
    let kept_operands = without(operation.operands().collect(), operands);
    let kept_results = without(operation.results().collect(), results);
    let types: Vec<_> = kept_results.iter().map(|result| result.r#type()).collect();
    let attributes: Vec<_> = operation.attributes().collect();
    let spec = OpSpec {
        name: operation.name().as_bytes(),
        location: operation.location(),
        operands: &kept_operands,
        results: &types,
        attributes: &attributes,
        regions: operation.region_count(),
    };
    let made = spec.create().ok_or_else(|| session.bug("MLIR made no smaller operation"))?;
    made.insert_before(operation);
    for (target, source) in made.regions().zip(operation.regions()) {
        target.take_body(source);
    }
    for (old, new) in kept_results.into_iter().zip(made.results()) {
        old.replace_uses(new);
    }
    operation.erase();
    Ok(made)
}
