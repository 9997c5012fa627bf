#![doc = include_str!("strip_sdy.md")]

use rustc_hash::FxHashMap;

use super::{Changes, Options, Pass, tidy_casts};
use crate::bytecode::{AttributeId, Code, Entry, Field, Tables, code, dialect};
use crate::error::{Error, Result};
use crate::ir::{Attribute, Calls, Name, Op, Program, functions, symbol_name};

pub const PASS: Pass = Pass {
    name: "strip-sdy",
    summary: "Take shardings out of a program that means the same on one device",
    doc: include_str!("strip_sdy.md"),
    in_split: false,
    run,
};

/// What the numbers of devices in the module's attributes are called.
const PARTITIONS: &str = "mhlo.num_partitions";
const REPLICAS: &str = "mhlo.num_replicas";
/// The attribute in which shardings went through versions of StableHLO that did not know Shardy.
const FRONTEND: &str = "mhlo.frontend_attributes";

fn run(program: &Program<'_, '_>, options: &Options) -> Result<Changes> {
    let mut operations = Vec::new();
    Program::walk(program.module, |operation| operations.push(operation));
    let stripper = Stripper { program, axes: axes(program, &operations)? };
    stripper.check_devices(&operations)?;
    let mut changes = Changes::default();
    // What is inside goes first, since what is around it may be taken away.
    for operation in operations.into_iter().rev() {
        stripper.strip_attributes(operation, &mut changes)?;
        stripper.strip_operation(operation, &mut changes)?;
    }
    stripper.set_devices(&mut changes)?;
    if changes.is_empty() {
        return Ok(changes);
    }
    changes += (tidy_casts::PASS.run)(program, options)?;
    stripper.erase_meshes(&mut changes)?;
    Ok(changes)
}

/// The size of each mesh axis by its name; the largest, where several meshes have one of that name.
fn axes(program: &Program<'_, '_>, operations: &[Op<'_>]) -> Result<FxHashMap<Vec<u8>, i64>> {
    let mut axes: FxHashMap<Vec<u8>, i64> = FxHashMap::default();
    for mesh in operations.iter().filter_map(|operation| operation.attribute("mesh").filter(|_| operation.is("sdy.mesh"))) {
        let id = program.session.attribute_id(mesh)?;
        let tables = program.session.tables();
        for axis in tables.attribute(id).attributes() {
            if let [Field::String(name), Field::Signed(size)] = &tables.attribute(axis).fields[..] {
                let known = axes.entry(name.0.to_vec()).or_insert(*size);
                *known = (*known).max(*size);
            }
        }
    }
    Ok(axes)
}

struct Stripper<'p, 's, 'a> {
    program: &'p Program<'s, 'a>,
    axes: FxHashMap<Vec<u8>, i64>,
}

impl<'s> Stripper<'_, 's, '_> {
    fn refused(&self, operation: Op<'s>, why: &str) -> Error {
        let error = Error::refused(format!("`{}` at {} {why}", operation.name_str(), self.program.session.place(operation)));
        error.with_hint("on one device the program would compute something else without it")
    }

    fn count(&self, name: &str) -> i64 {
        self.program.module.attribute(name).and_then(Attribute::as_integer).unwrap_or(1)
    }

    /// Refuses programs that talk between devices of which there are several.
    fn check_devices(&self, operations: &[Op<'s>]) -> Result<()> {
        if self.count(REPLICAS) > 1 {
            return Err(Error::refused(format!("the module runs on {} replicas, and not on one device", self.count(REPLICAS))));
        }
        let is_collective = |operation: &&Op<'s>| {
            let name = operation.name_str().strip_prefix("vhlo.").unwrap_or_default();
            matches!(
                name.rsplit_once("_v").map_or(name, |(name, _)| name),
                "all_gather"
                    | "all_reduce"
                    | "all_to_all"
                    | "collective_broadcast"
                    | "collective_permute"
                    | "cross-replica-sum"
                    | "partition_id"
                    | "reduce_scatter"
                    | "replica_id"
            )
        };
        match operations.iter().find(is_collective).filter(|_| self.count(PARTITIONS) > 1) {
            Some(operation) => Err(self.refused(*operation, &format!("depends on the {} devices", self.count(PARTITIONS)))),
            None => Ok(()),
        }
    }

    fn set_devices(&self, changes: &mut Changes) -> Result<()> {
        let session = self.program.session;
        if self.count(PARTITIONS) > 1 {
            let factory = session.factory();
            let i32_type = session.add_type(Entry::new(dialect::BUILTIN, code::builtin::INTEGER_TYPE, [Field::Unsigned(32 << 2)]));
            let one = factory.integer(i32_type, 1).ok_or_else(|| session.bug("MLIR has no `i32`"))?;
            self.program.module.set_attribute(PARTITIONS, one);
            changes.attributes_set += 1;
        }
        Ok(())
    }

    /// Takes attributes of shardings from an operation, and from the arguments and results of a function.
    fn strip_attributes(&self, operation: Op<'s>, changes: &mut Changes) -> Result<()> {
        let factory = self.program.session.factory();
        for (name, value) in operation.attributes().collect::<Vec<_>>() {
            if is_sharding(name) {
                self.check_reduced(operation, value)?;
                operation.remove_attribute(name.as_str());
                changes.shardings_stripped += 1;
            }
        }
        if let Some(left) = operation.attribute(FRONTEND).map(|frontend| self.without_shardings(frontend)).transpose()?.flatten() {
            match left {
                Some(left) => operation.set_attribute(FRONTEND, left),
                None => operation.remove_attribute(FRONTEND),
            }
            changes.shardings_stripped += 1;
        }
        if !operation.is("func.func") {
            return Ok(());
        }
        for side in ["arg_attrs", "res_attrs"] {
            let Some(dictionaries) = operation.attribute(side).and_then(Attribute::as_array) else { continue };
            let mut stripped = Vec::new();
            let mut count = 0;
            for dictionary in dictionaries {
                let items = dictionary.as_dictionary().ok_or_else(|| Error::bug("the attributes of an argument are no dictionary"))?;
                for (_, value) in items.iter().filter(|(name, _)| is_sharding(*name)) {
                    self.check_reduced(operation, *value)?;
                }
                let kept: Vec<_> = items.iter().filter(|(name, _)| !is_sharding(*name)).copied().collect();
                count += items.len() - kept.len();
                stripped.push(if kept.len() == items.len() { dictionary } else { factory.dictionary(&kept) });
            }
            if count > 0 {
                operation.set_attribute(side, factory.array(&stripped));
                changes.shardings_stripped += count;
            }
        }
        Ok(())
    }

    /// Frontend attributes without shardings: `None` if there are none in them, `Some(None)` if nothing is left.
    fn without_shardings(&self, frontend: Attribute<'s>) -> Result<Option<Option<Attribute<'s>>>> {
        let session = self.program.session;
        let id = session.attribute_id(frontend)?;
        let items: Vec<AttributeId> = session.tables().attribute(id).attributes().collect();
        let is_kept = |pair: &&[AttributeId]| {
            let tables = session.tables();
            let key = pair.first().and_then(|key| tables.string(*key));
            !key.is_some_and(|key| key.starts_with(b"xla.sdy."))
        };
        let kept: Vec<_> = items.chunks(2).filter(is_kept).flatten().copied().collect();
        if kept.len() == items.len() {
            return Ok(None);
        }
        if kept.is_empty() {
            return Ok(Some(None));
        }
        let mut fields = vec![Field::Count(kept.len() as u32 / 2)];
        fields.extend(kept.into_iter().map(Field::Attribute));
        let entry = Entry::new(dialect::VHLO, code::vhlo::DICT, fields);
        Ok(Some(Some(session.add_attribute(entry).1)))
    }

    /// Refuses shardings of values that are not summed up yet.
    fn check_reduced(&self, operation: Op<'s>, sharding: Attribute<'s>) -> Result<()> {
        let Ok(id) = self.program.session.attribute_id(sharding) else { return Ok(()) };
        let tables = self.program.session.tables();
        if is_unreduced(&tables, id) { Err(self.refused(operation, "has a value that is not summed up yet")) } else { Ok(()) }
    }

    fn strip_operation(&self, operation: Op<'s>, changes: &mut Changes) -> Result<()> {
        match operation.name_str() {
            "sdy.mesh" | "sdy.return" => {}
            "sdy.sharding_constraint" | "sdy.reshard" | "sdy.propagation_barrier" => {
                if let Some(sharding) = operation.attribute("sharding") {
                    self.check_reduced(operation, sharding)?;
                }
                self.take_operand(operation, changes)?;
            }
            "sdy.sharding_group" => {
                operation.erase();
                changes.operations_removed += 1;
            }
            "sdy.manual_computation" => {
                self.check_manual(operation)?;
                self.inline(operation, changes)?;
            }
            "sdy.named_computation" => self.inline(operation, changes)?,
            name if name.starts_with("sdy.") => return Err(self.refused(operation, "has no meaning on one device that jaxprism knows")),
            name if name.starts_with("vhlo.custom_call_v") => match self.target(operation)?.as_deref() {
                Some(b"Sharding" | b"xla.sdy.FuncResultSharding") => self.take_operand(operation, changes)?,
                Some(target @ (b"SPMDFullToShardShape" | b"SPMDShardToFullShape")) => {
                    let target = String::from_utf8_lossy(target).into_owned();
                    self.take_operand(operation, changes).map_err(|error| error.context(format!("`{target}` is over several devices")))?;
                }
                Some(target) if target.starts_with(b"xla.sdy.") => {
                    return Err(self.refused(operation, "is a manual computation in the form of custom calls"));
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn target(&self, operation: Op<'s>) -> Result<Option<Vec<u8>>> {
        let Some(target) = operation.attribute("call_target_name") else { return Ok(None) };
        let id = self.program.session.attribute_id(target)?;
        Ok(self.program.session.tables().string(id).map(<[u8]>::to_vec))
    }

    /// Lets what uses the result of an operation use its operand.
    fn take_operand(&self, operation: Op<'s>, changes: &mut Changes) -> Result<()> {
        if operation.operand_count() != 1 || operation.result_count() != 1 || operation.operand(0).r#type() != operation.result(0).r#type()
        {
            return Err(self.refused(operation, "changes the shape of its operand"));
        }
        operation.result(0).replace_uses(operation.operand(0));
        operation.erase();
        changes.operations_removed += 1;
        Ok(())
    }

    /// Refuses manual computations over several devices.
    fn check_manual(&self, operation: Op<'s>) -> Result<()> {
        let Some(manual) = operation.attribute("manual_axes") else { return Err(self.refused(operation, "names no axes")) };
        let id = self.program.session.attribute_id(manual)?;
        let tables = self.program.session.tables();
        for axis in tables.attribute(id).attributes() {
            let name = tables.string(axis).unwrap_or_default();
            if self.axes.get(name) != Some(&1) {
                let name = String::from_utf8_lossy(name);
                return Err(self.refused(operation, &format!("computes on the devices of the mesh axis `{name}` by hand")));
            }
        }
        Ok(())
    }

    /// Puts what is inside an operation in its place.
    fn inline(&self, operation: Op<'s>, changes: &mut Changes) -> Result<()> {
        let body = functions::body(operation).ok_or_else(|| self.refused(operation, "has no body"))?;
        let terminator = body.last().filter(|last| last.is("sdy.return")).ok_or_else(|| self.refused(operation, "returns nothing"))?;
        let fits = body.argument_count() == operation.operand_count()
            && terminator.operand_count() == operation.result_count()
            && body.arguments().zip(operation.operands()).all(|(argument, operand)| argument.r#type() == operand.r#type())
            && terminator.operands().zip(operation.results()).all(|(operand, result)| operand.r#type() == result.r#type());
        if !fits {
            return Err(self.refused(operation, "has other shapes inside than outside"));
        }
        body.arguments().zip(operation.operands()).for_each(|(argument, operand)| argument.replace_uses(operand));
        let inside: Vec<_> = body.operations().filter(|inner| *inner != terminator).collect();
        inside.into_iter().for_each(|inner| inner.move_before(operation));
        let values: Vec<_> = terminator.operands().collect();
        operation.results().zip(values).for_each(|(result, value)| result.replace_uses(value));
        operation.erase();
        changes.operations_removed += 2;
        Ok(())
    }

    /// Erases the meshes, which nothing may name any more.
    fn erase_meshes(&self, changes: &mut Changes) -> Result<()> {
        let unreachable = Calls::of(self.program)?.unreachable(self.program);
        for mesh in self.program.body()?.operations().filter(|operation| operation.is("sdy.mesh")).collect::<Vec<_>>() {
            if !unreachable.contains(&mesh) {
                let name = String::from_utf8_lossy(symbol_name(mesh).unwrap_or_default()).into_owned();
                return Err(Error::refused(format!("something that is no sharding names the mesh `{name}`")));
            }
            mesh.erase();
            changes.symbols_removed += 1;
        }
        Ok(())
    }
}

fn is_sharding(name: Name<'_>) -> bool {
    let name = name.as_str();
    name.starts_with("sdy.") || name.starts_with("xla.sdy.") || name == "mhlo.sharding"
}

/// Whether a sharding, or one in a list of them, has axes along which a sum is outstanding.
fn is_unreduced(tables: &Tables<'_>, root: AttributeId) -> bool {
    let mut work = vec![root];
    // Lists of shardings are one deep; what is nested deeper is something else.
    while let Some(id) = work.pop() {
        let entry = tables.attribute(id);
        if entry.dialect != dialect::SDY {
            continue;
        }
        match entry.code {
            Code::Known(code::sdy::SHARDING_UNREDUCED | code::sdy::SHARDING_REDUCTION) => {
                // Its lists are the sharded dimensions, the replicated axes, and those.
                let counts = entry.fields.iter().filter_map(|field| match field {
                    Field::Count(count) => Some(*count),
                    _ => None,
                });
                if counts.into_iter().nth(2).is_some_and(|count| count > 0) {
                    return true;
                }
            }
            Code::Known(code::sdy::SHARDING_PER_VALUE | code::sdy::SHARDING_PER_VALUE_UNREDUCED) => work.extend(entry.attributes()),
            _ => {}
        }
    }
    false
}
