//! Modules built by hand, for programs that no compiler makes.

use std::collections::HashMap;

use jaxprism::bytecode::{
    AttributeId, Block, Bytecode, Bytes, DialectId, Entry, Field, Operation, Region, Span, TypeId, ValueId, code, dialect,
};

/// An operation of a module that is built by hand. Values are named by any numbers.
#[derive(Clone, Default)]
pub struct Op {
    pub name: String,
    pub operands: Vec<u32>,
    pub results: Vec<(u32, TypeId)>,
    pub properties: Vec<Option<AttributeId>>,
    pub attributes: Option<AttributeId>,
    pub regions: Vec<Body>,
}

/// A region of one block.
#[derive(Clone, Default)]
pub struct Body {
    pub arguments: Vec<(u32, TypeId)>,
    pub operations: Vec<Op>,
}

/// Builds modules by hand: the tables of one, to start from, and a new tree.
pub struct Builder<'a> {
    pub bytecode: Bytecode<'a>,
    location: AttributeId,
}

impl<'a> Builder<'a> {
    pub fn new(like: &Bytecode<'a>) -> Self {
        let mut bytecode = like.clone();
        bytecode.tree = Default::default();
        let location = bytecode.tables.unknown_location();
        Self { bytecode, location }
    }

    /// Gives everything this location.
    pub fn locate(&mut self, location: AttributeId) {
        self.location = location;
    }

    /// A builtin attribute.
    pub fn builtin(&mut self, code: u8, fields: Vec<Field<'a>>) -> AttributeId {
        self.bytecode.tables.intern_attribute(Entry::new(dialect::BUILTIN, code, fields))
    }

    /// A builtin string.
    pub fn name(&mut self, text: &str) -> AttributeId {
        self.builtin(code::builtin::STRING, vec![Field::String(Bytes(text.as_bytes().to_vec().into()))])
    }

    pub fn attribute(&mut self, code: u8, fields: Vec<Field<'a>>) -> AttributeId {
        self.bytecode.tables.intern_attribute(Entry::new(dialect::VHLO, code, fields))
    }

    pub fn r#type(&mut self, code: u8, fields: Vec<Field<'a>>) -> TypeId {
        self.bytecode.tables.intern_type(Entry::new(dialect::VHLO, code, fields))
    }

    pub fn string(&mut self, text: &str) -> AttributeId {
        self.attribute(code::vhlo::STRING, vec![Field::String(Bytes(text.as_bytes().to_vec().into()))])
    }

    /// The type of an integer of 32 bits.
    pub fn i32(&mut self) -> TypeId {
        let element = self.r#type(code::vhlo::I32_TYPE, vec![]);
        self.r#type(code::vhlo::TENSOR_TYPE, vec![Field::Count(0), Field::Type(element)])
    }

    pub fn f32(&mut self) -> TypeId {
        let element = self.r#type(4, vec![]);
        self.r#type(code::vhlo::TENSOR_TYPE, vec![Field::Count(0), Field::Type(element)])
    }

    pub fn op(&mut self, name: &str, operands: &[u32], results: &[(u32, TypeId)]) -> Op {
        Op { name: name.to_owned(), operands: operands.to_vec(), results: results.to_vec(), ..Op::default() }
    }

    pub fn constant(&mut self, value: i32, result: u32) -> Op {
        let of = self.i32();
        let bytes = Bytes(value.to_le_bytes().to_vec().into());
        let value = self.attribute(code::vhlo::TENSOR, vec![Field::Type(of), Field::Blob(bytes)]);
        Op { properties: vec![Some(value)], ..self.op("constant_v1", &[], &[(result, of)]) }
    }

    pub fn call(&mut self, callee: &str, operands: &[u32], results: &[(u32, TypeId)]) -> Op {
        let callee = self.string(callee);
        Op { properties: vec![Some(callee)], ..self.op("call_v1", operands, results) }
    }

    pub fn function(&mut self, name: &str, arguments: &[(u32, TypeId)], results: &[TypeId], operations: Vec<Op>) -> Op {
        let list = |types: &mut dyn Iterator<Item = TypeId>| {
            let types: Vec<_> = types.map(Field::Type).collect();
            std::iter::once(Field::Count(types.len() as u32)).chain(types).collect::<Vec<Field<'a>>>()
        };
        let mut fields = list(&mut arguments.iter().map(|(_, of)| *of));
        fields.extend(list(&mut results.iter().copied()));
        let of = self.r#type(code::vhlo::FUNCTION_TYPE, fields);
        let of = self.attribute(code::vhlo::TYPE, vec![Field::Type(of)]);
        let none = self.attribute(code::vhlo::ARRAY, vec![Field::Count(0)]);
        let visibility = self.string(if name == "main" { "public" } else { "private" });
        let name = self.string(name);
        Op {
            properties: [none, of, none, name, visibility].map(Some).to_vec(),
            regions: vec![Body { arguments: arguments.to_vec(), operations }],
            ..self.op("func_v1", &[], &[])
        }
    }

    /// The module of these functions, encoded.
    pub fn module(mut self, operations: Vec<Op>) -> Vec<u8> {
        let module = Op {
            name: "module".to_owned(),
            properties: vec![None, None],
            regions: vec![Body { arguments: vec![], operations }],
            ..Op::default()
        };
        self.place(&module, dialect::BUILTIN, 0, &mut HashMap::new());
        self.bytecode.write().unwrap().to_vec()
    }

    fn place(&mut self, op: &Op, dialect: DialectId, results: usize, values: &mut HashMap<u32, ValueId>) {
        let name = self.bytecode.tables.intern_op_name(dialect, op.name.clone().into_bytes().into(), true);
        let tree = &mut self.bytecode.tree;
        let properties = Span::new(tree.properties.len(), op.properties.len());
        tree.properties.extend(&op.properties);
        let operands = Span::new(tree.operands.len(), op.operands.len());
        tree.operands.extend(op.operands.iter().map(|value| values[value]));
        let regions = Span::new(tree.regions.len(), op.regions.len());
        let position = tree.operations.len();
        tree.regions.resize(regions.range().end, Region { owner: position as u32, ..Region::default() });
        let successors = Span::new(tree.successors.len(), 0);
        tree.operations.push(Operation {
            name,
            location: self.location,
            attributes: op.attributes,
            properties: (properties.len > 0).then_some(properties),
            results: Span::new(results, op.results.len()),
            operands,
            successors,
            regions,
            end: position as u32 + 1,
        });
        for (region, body) in regions.range().zip(&op.regions) {
            self.place_body(region, body, values);
        }
        self.bytecode.tree.operations[position].end = self.bytecode.tree.operations.len() as u32;
    }

    fn place_body(&mut self, region: usize, body: &Body, values: &mut HashMap<u32, ValueId>) {
        let tree = &mut self.bytecode.tree;
        let first_value = tree.value_types.len();
        let all = body.arguments.iter().chain(body.operations.iter().flat_map(|op| &op.results));
        for (name, of) in all {
            values.insert(*name, ValueId(tree.value_types.len() as u32));
            tree.value_types.push(*of);
        }
        let block = tree.blocks.len();
        tree.regions[region].blocks = Span::new(block, 1);
        tree.regions[region].values = Span::new(first_value, tree.value_types.len() - first_value);
        let locations = tree.argument_locations.len() as u32;
        tree.argument_locations.resize(locations as usize + body.arguments.len(), self.location);
        let first = tree.operations.len() as u32;
        tree.blocks.push(Block { arguments: Span::new(first_value, body.arguments.len()), locations, first, end: first });
        let mut results = first_value + body.arguments.len();
        for op in &body.operations {
            self.place(op, dialect::VHLO, results, values);
            results += op.results.len();
        }
        self.bytecode.tree.blocks[block].end = self.bytecode.tree.operations.len() as u32;
    }
}
