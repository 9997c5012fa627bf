//! Handles on MLIR's objects, and the few calls that melior has no safe form of. The only unsafe code of the core.
//!
//! A handle is a pointer that MLIR owns, valid while the session lives and the object is not erased. What the rest of the crate keeps to:
//! it never uses a handle after [`Op::erase`] of that operation or of one around it, and it erases an operation only when nothing uses its results.

#![allow(unsafe_code, reason = "MLIR's C interface; what each call needs is said beside it")]

mod text;

use std::ffi::c_char;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use melior::Context;
use mlir_sys::*;

pub use text::{LocationKind, Node, parse, position};

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name<'s> {
            raw: $raw,
            session: PhantomData<&'s ()>,
        }

        impl<'s> $name<'s> {
            fn new(raw: $raw) -> Self {
                Self { raw, session: PhantomData }
            }

            #[allow(dead_code, reason = "not every kind of object can be missing")]
            fn some(raw: $raw) -> Option<Self> {
                if raw.ptr.is_null() { None } else { Some(Self::new(raw)) }
            }

            /// The same handle for a map that lives in the session itself, and so no longer than what the handle points to.
            #[allow(dead_code, reason = "not every kind of object is kept in a map")]
            pub(super) fn lasting(self) -> $name<'static> {
                $name::new(self.raw)
            }
        }

        impl PartialEq for $name<'_> {
            fn eq(&self, other: &Self) -> bool {
                std::ptr::eq(self.raw.ptr, other.raw.ptr)
            }
        }

        impl Eq for $name<'_> {}

        impl Hash for $name<'_> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_usize(self.raw.ptr as usize);
            }
        }

        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({:p})"), self.raw.ptr)
            }
        }
    };
}

handle!(
    /// An attribute. Attributes with one meaning have one pointer.
    Attribute,
    MlirAttribute
);
handle!(
    /// A type. Types with one meaning have one pointer.
    Type,
    MlirType
);
handle!(
    /// A name of an operation or an attribute, uniqued.
    Name,
    MlirIdentifier
);
handle!(
    /// An operation.
    Op,
    MlirOperation
);
handle!(
    /// A block.
    Block,
    MlirBlock
);
handle!(
    /// A region.
    Region,
    MlirRegion
);
handle!(
    /// A value.
    Value,
    MlirValue
);

/// What defines a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Definition<'s> {
    /// An operation, and which of its results.
    Result(Op<'s>, usize),
    /// A block, and which of its arguments.
    Argument(Block<'s>, usize),
}

fn string_ref(text: &[u8]) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast::<c_char>(), length: text.len() }
}

/// # Safety
///
/// The string must be valid for the lifetime that the caller chooses.
unsafe fn bytes_of<'s>(text: MlirStringRef) -> &'s [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: MLIR hands out pointers to `length` bytes.
    unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) }
}

// SAFETY, for every call below: handles are made from MLIR's own pointers alone and used only while these are valid (see the head of this file);
// strings and slices passed in are copied by MLIR before the call returns.

/// Makes attributes, types, names and locations in one context.
#[derive(Debug, Clone, Copy)]
pub struct Factory<'s> {
    context: MlirContext,
    session: PhantomData<&'s ()>,
}

impl<'s> Factory<'s> {
    /// The factory of a context.
    pub fn new(context: &'s Context) -> Self {
        Self { context: context.to_raw(), session: PhantomData }
    }

    /// The same factory for a map that lives in the session itself.
    pub(super) fn lasting(self) -> Factory<'static> {
        Factory { context: self.context, session: PhantomData }
    }

    /// The uniqued form of a name.
    pub fn name(self, text: &[u8]) -> Name<'s> {
        Name::new(unsafe { mlirIdentifierGet(self.context, string_ref(text)) })
    }

    /// An attribute that MLIR does not look into.
    pub fn opaque_attribute(self, dialect: &str, data: &str) -> Attribute<'s> {
        let none = unsafe { mlirNoneTypeGet(self.context) };
        let data_ref = string_ref(data.as_bytes());
        Attribute::new(unsafe {
            mlirOpaqueAttrGet(self.context, string_ref(dialect.as_bytes()), data_ref.length as isize, data_ref.data, none)
        })
    }

    /// A type that MLIR does not look into.
    pub fn opaque_type(self, dialect: &str, data: &str) -> Type<'s> {
        Type::new(unsafe { mlirOpaqueTypeGet(self.context, string_ref(dialect.as_bytes()), string_ref(data.as_bytes())) })
    }

    /// A string.
    pub fn string(self, text: &[u8]) -> Attribute<'s> {
        Attribute::new(unsafe { mlirStringAttrGet(self.context, string_ref(text)) })
    }

    /// A reference to a symbol at the top.
    pub fn flat_symbol(self, name: &[u8]) -> Attribute<'s> {
        Attribute::new(unsafe { mlirFlatSymbolRefAttrGet(self.context, string_ref(name)) })
    }

    /// A reference to a symbol inside others. `None` if one of `nested` is no flat reference.
    pub fn symbol(self, root: &[u8], nested: &[Attribute<'s>]) -> Option<Attribute<'s>> {
        let are_flat = nested.iter().all(|attribute| attribute.as_flat_symbol().is_some());
        let nested: Vec<_> = nested.iter().map(|attribute| attribute.raw).collect();
        let make = || unsafe { mlirSymbolRefAttrGet(self.context, string_ref(root), nested.len() as isize, nested.as_ptr()) };
        are_flat.then(|| Attribute::new(make()))
    }

    /// An array.
    pub fn array(self, elements: &[Attribute<'s>]) -> Attribute<'s> {
        let elements: Vec<_> = elements.iter().map(|attribute| attribute.raw).collect();
        Attribute::new(unsafe { mlirArrayAttrGet(self.context, elements.len() as isize, elements.as_ptr()) })
    }

    /// A dictionary. MLIR sorts it by name.
    pub fn dictionary(self, items: &[(Name<'s>, Attribute<'s>)]) -> Attribute<'s> {
        let items = named(items);
        Attribute::new(unsafe { mlirDictionaryAttrGet(self.context, items.len() as isize, items.as_ptr()) })
    }

    /// The unit attribute.
    pub fn unit(self) -> Attribute<'s> {
        Attribute::new(unsafe { mlirUnitAttrGet(self.context) })
    }

    /// A type as an attribute.
    pub fn type_attribute(self, of: Type<'s>) -> Attribute<'s> {
        Attribute::new(unsafe { mlirTypeAttrGet(of.raw) })
    }

    /// An integer of the given type. `None` if that is neither an integer type of at most 64 bits nor `index`: MLIR takes any type for one, and its width
    /// from whatever stands there.
    pub fn integer(self, of: Type<'s>, value: i64) -> Option<Attribute<'s>> {
        unsafe {
            let fits = mlirTypeIsAIndex(of.raw) || mlirTypeIsAInteger(of.raw) && mlirIntegerTypeGetWidth(of.raw) <= 64;
            fits.then(|| Attribute::new(mlirIntegerAttrGet(of.raw, value)))
        }
    }

    /// A signless (0), signed (1) or unsigned (2) integer type.
    pub fn integer_type(self, width: u32, signedness: u64) -> Type<'s> {
        Type::new(unsafe {
            match signedness {
                1 => mlirIntegerTypeSignedGet(self.context, width),
                2 => mlirIntegerTypeUnsignedGet(self.context, width),
                _ => mlirIntegerTypeGet(self.context, width),
            }
        })
    }

    /// The index type.
    pub fn index_type(self) -> Type<'s> {
        Type::new(unsafe { mlirIndexTypeGet(self.context) })
    }

    /// `f32` and its old siblings, by their mnemonics.
    pub fn float_type(self, mnemonic: &str) -> Option<Type<'s>> {
        let raw = unsafe {
            match mnemonic {
                "bf16" => mlirBF16TypeGet(self.context),
                "f16" => mlirF16TypeGet(self.context),
                "f32" => mlirF32TypeGet(self.context),
                "f64" => mlirF64TypeGet(self.context),
                _ => return None,
            }
        };
        Some(Type::new(raw))
    }

    /// A function type.
    pub fn function_type(self, inputs: &[Type<'s>], results: &[Type<'s>]) -> Type<'s> {
        let inputs: Vec<_> = inputs.iter().map(|input| input.raw).collect();
        let results: Vec<_> = results.iter().map(|result| result.raw).collect();
        Type::new(unsafe {
            mlirFunctionTypeGet(self.context, inputs.len() as isize, inputs.as_ptr(), results.len() as isize, results.as_ptr())
        })
    }

    /// A ranked tensor type without an encoding. `None` if MLIR does not take the element type.
    pub fn tensor_type(self, shape: &[i64], element: Type<'s>) -> Option<Type<'s>> {
        unsafe {
            let location = mlirLocationUnknownGet(self.context);
            let encoding = mlirAttributeGetNull();
            Type::some(mlirRankedTensorTypeGetChecked(location, shape.len() as isize, shape.as_ptr(), element.raw, encoding))
        }
    }

    /// The unknown location.
    pub fn unknown_location(self) -> Attribute<'s> {
        location_attribute(unsafe { mlirLocationUnknownGet(self.context) })
    }

    /// A range of a file: start line and column, end line and column.
    pub fn file_location(self, file: &[u8], range: [u32; 4]) -> Attribute<'s> {
        let [line, column, end_line, end_column] = range;
        location_attribute(unsafe { mlirLocationFileLineColRangeGet(self.context, string_ref(file), line, column, end_line, end_column) })
    }

    /// A name around a location.
    pub fn name_location(self, name: &[u8], child: Attribute<'s>) -> Attribute<'s> {
        location_attribute(unsafe { mlirLocationNameGet(self.context, string_ref(name), child.as_location()) })
    }

    /// A location inlined into another.
    pub fn call_site_location(self, callee: Attribute<'s>, caller: Attribute<'s>) -> Attribute<'s> {
        location_attribute(unsafe { mlirLocationCallSiteGet(callee.as_location(), caller.as_location()) })
    }

    /// An unknown location that carries an attribute.
    pub fn carrying_location(self, metadata: Attribute<'s>) -> Attribute<'s> {
        let unknown = unsafe { mlirLocationUnknownGet(self.context) };
        location_attribute(unsafe { mlirLocationFusedGet(self.context, 1, &raw const unknown, metadata.raw) })
    }
}

fn named(items: &[(Name<'_>, Attribute<'_>)]) -> Vec<MlirNamedAttribute> {
    items.iter().map(|(name, attribute)| unsafe { mlirNamedAttributeGet(name.raw, attribute.raw) }).collect()
}

fn location_attribute<'s>(location: MlirLocation) -> Attribute<'s> {
    Attribute::new(unsafe { mlirLocationGetAttribute(location) })
}

impl<'s> Attribute<'s> {
    /// This attribute, which is a location, as one. Locations are kept as attributes everywhere else.
    fn as_location(self) -> MlirLocation {
        unsafe { mlirLocationFromAttribute(self.raw) }
    }

    /// The text of a string attribute.
    pub fn as_string(self) -> Option<&'s [u8]> {
        unsafe { mlirAttributeIsAString(self.raw).then(|| bytes_of(mlirStringAttrGetValue(self.raw))) }
    }

    /// The name in a flat symbol reference.
    pub fn as_flat_symbol(self) -> Option<&'s [u8]> {
        unsafe { mlirAttributeIsAFlatSymbolRef(self.raw).then(|| bytes_of(mlirFlatSymbolRefAttrGetValue(self.raw))) }
    }

    /// The type in a type attribute.
    pub fn as_type(self) -> Option<Type<'s>> {
        unsafe { mlirAttributeIsAType(self.raw).then(|| Type::new(mlirTypeAttrGetValue(self.raw))) }
    }

    /// The value of a signless integer attribute.
    pub fn as_integer(self) -> Option<i64> {
        unsafe { mlirAttributeIsAInteger(self.raw).then(|| mlirIntegerAttrGetValueInt(self.raw)) }
    }

    /// The elements of an array attribute.
    pub fn as_array(self) -> Option<Vec<Attribute<'s>>> {
        unsafe {
            mlirAttributeIsAArray(self.raw).then(|| {
                let count = mlirArrayAttrGetNumElements(self.raw);
                (0..count).map(|index| Attribute::new(mlirArrayAttrGetElement(self.raw, index))).collect()
            })
        }
    }

    /// The items of a dictionary attribute.
    pub fn as_dictionary(self) -> Option<Vec<(Name<'s>, Attribute<'s>)>> {
        unsafe {
            mlirAttributeIsADictionary(self.raw).then(|| {
                let count = mlirDictionaryAttrGetNumElements(self.raw);
                (0..count)
                    .map(|index| {
                        let item = mlirDictionaryAttrGetElement(self.raw, index);
                        (Name::new(item.name), Attribute::new(item.attribute))
                    })
                    .collect()
            })
        }
    }
}

impl<'s> Type<'s> {
    /// How many inputs and results a function type has.
    pub fn function_arity(self) -> Option<(usize, usize)> {
        unsafe {
            mlirTypeIsAFunction(self.raw)
                .then(|| (mlirFunctionTypeGetNumInputs(self.raw) as usize, mlirFunctionTypeGetNumResults(self.raw) as usize))
        }
    }

    /// The inputs and results of a function type.
    pub fn as_function(self) -> Option<(Vec<Type<'s>>, Vec<Type<'s>>)> {
        self.is_function().then(|| (self.function_inputs().collect(), self.function_results().collect()))
    }

    /// Whether this is a function type.
    pub fn is_function(self) -> bool {
        unsafe { mlirTypeIsAFunction(self.raw) }
    }

    /// What a function type takes; nothing for other types.
    pub fn function_inputs(self) -> impl Iterator<Item = Type<'s>> {
        let count = if self.is_function() { unsafe { mlirFunctionTypeGetNumInputs(self.raw) } } else { 0 };
        (0..count).map(move |index| Type::new(unsafe { mlirFunctionTypeGetInput(self.raw, index) }))
    }

    /// What a function type returns; nothing for other types.
    pub fn function_results(self) -> impl Iterator<Item = Type<'s>> {
        let count = if self.is_function() { unsafe { mlirFunctionTypeGetNumResults(self.raw) } } else { 0 };
        (0..count).map(move |index| Type::new(unsafe { mlirFunctionTypeGetResult(self.raw, index) }))
    }
}

impl<'s> Name<'s> {
    /// The name.
    pub fn as_bytes(self) -> &'s [u8] {
        unsafe { bytes_of(mlirIdentifierStr(self.raw)) }
    }

    /// The name of an operation or attribute, all of which are UTF-8 in MLIR's own and our use.
    pub fn as_str(self) -> &'s str {
        std::str::from_utf8(self.as_bytes()).unwrap_or("<not UTF-8>")
    }
}

/// What an operation is made of.
#[derive(Debug, Clone)]
pub struct OpSpec<'s, 'p> {
    /// The name.
    pub name: &'p [u8],
    /// The location.
    pub location: Attribute<'s>,
    /// The operands.
    pub operands: &'p [Value<'s>],
    /// The types of the results.
    pub results: &'p [Type<'s>],
    /// All attributes.
    pub attributes: &'p [(Name<'s>, Attribute<'s>)],
    /// How many regions, all empty at first.
    pub regions: usize,
}

impl<'s> OpSpec<'s, '_> {
    /// Makes the operation, outside any block. `None` if MLIR refuses, with a diagnostic.
    pub fn create(&self) -> Option<Op<'s>> {
        unsafe {
            let mut state = mlirOperationStateGet(string_ref(self.name), self.location.as_location());
            if !self.operands.is_empty() {
                // A handle is its raw object and nothing else, so a slice of handles is one of raw objects.
                mlirOperationStateAddOperands(&raw mut state, self.operands.len() as isize, self.operands.as_ptr().cast());
            }
            if !self.results.is_empty() {
                mlirOperationStateAddResults(&raw mut state, self.results.len() as isize, self.results.as_ptr().cast());
            }
            // Few operations have more, and a vector for each would be allocated and freed.
            for chunk in self.attributes.chunks(8) {
                let mut some: [MlirNamedAttribute; 8] = std::mem::zeroed();
                for (into, (name, attribute)) in some.iter_mut().zip(chunk) {
                    *into = mlirNamedAttributeGet(name.raw, attribute.raw);
                }
                mlirOperationStateAddAttributes(&raw mut state, chunk.len() as isize, some.as_ptr());
            }
            if self.regions > 0 {
                let regions: Vec<_> = (0..self.regions).map(|_| mlirRegionCreate()).collect();
                mlirOperationStateAddOwnedRegions(&raw mut state, regions.len() as isize, regions.as_ptr());
            }
            Op::some(mlirOperationCreate(&raw mut state))
        }
    }
}

impl<'s> Op<'s> {
    /// The handle of an operation that melior holds.
    pub fn from_melior(operation: melior::ir::OperationRef<'_, '_>) -> Self {
        Self::new(operation.to_raw())
    }

    /// A module from this operation, which must be a `builtin.module` outside any block. The module owns it.
    pub fn into_module<'c>(self) -> Option<melior::ir::Module<'c>> {
        unsafe { melior::ir::Module::from_option_raw(mlirModuleFromOperation(self.raw)) }
    }

    /// The name with its dialect.
    pub fn name(self) -> Name<'s> {
        Name::new(unsafe { mlirOperationGetName(self.raw) })
    }

    /// The name with its dialect.
    pub fn name_str(self) -> &'s str {
        self.name().as_str()
    }

    /// Whether the operation has that name.
    pub fn is(self, name: &str) -> bool {
        self.name().as_bytes() == name.as_bytes()
    }

    /// The location.
    pub fn location(self) -> Attribute<'s> {
        location_attribute(unsafe { mlirOperationGetLocation(self.raw) })
    }

    /// Gives the operation another location.
    pub fn set_location(self, location: Attribute<'s>) {
        unsafe { mlirOperationSetLocation(self.raw, location.as_location()) }
    }

    /// How many operands there are.
    pub fn operand_count(self) -> usize {
        unsafe { mlirOperationGetNumOperands(self.raw) as usize }
    }

    /// One operand. The index must be below [`Op::operand_count`].
    pub fn operand(self, index: usize) -> Value<'s> {
        debug_assert!(index < self.operand_count());
        Value::new(unsafe { mlirOperationGetOperand(self.raw, index as isize) })
    }

    /// The operands.
    pub fn operands(self) -> impl DoubleEndedIterator<Item = Value<'s>> + ExactSizeIterator {
        (0..self.operand_count()).map(move |index| self.operand(index))
    }

    /// Replaces one operand.
    pub fn set_operand(self, index: usize, value: Value<'s>) {
        debug_assert!(index < self.operand_count());
        unsafe { mlirOperationSetOperand(self.raw, index as isize, value.raw) }
    }

    /// Replaces all operands.
    pub fn set_operands(self, values: &[Value<'s>]) {
        unsafe { mlirOperationSetOperands(self.raw, values.len() as isize, values.as_ptr().cast()) }
    }

    /// How many results there are.
    pub fn result_count(self) -> usize {
        unsafe { mlirOperationGetNumResults(self.raw) as usize }
    }

    /// One result. The index must be below [`Op::result_count`].
    pub fn result(self, index: usize) -> Value<'s> {
        debug_assert!(index < self.result_count());
        Value::new(unsafe { mlirOperationGetResult(self.raw, index as isize) })
    }

    /// The results.
    pub fn results(self) -> impl DoubleEndedIterator<Item = Value<'s>> + ExactSizeIterator {
        (0..self.result_count()).map(move |index| self.result(index))
    }

    /// How many successors there are.
    pub fn successor_count(self) -> usize {
        unsafe { mlirOperationGetNumSuccessors(self.raw) as usize }
    }

    /// How many regions there are.
    pub fn region_count(self) -> usize {
        unsafe { mlirOperationGetNumRegions(self.raw) as usize }
    }

    /// One region. The index must be below [`Op::region_count`].
    pub fn region(self, index: usize) -> Region<'s> {
        debug_assert!(index < self.region_count());
        Region::new(unsafe { mlirOperationGetRegion(self.raw, index as isize) })
    }

    /// The regions.
    pub fn regions(self) -> impl DoubleEndedIterator<Item = Region<'s>> + ExactSizeIterator {
        (0..self.region_count()).map(move |index| self.region(index))
    }

    /// An attribute by name.
    pub fn attribute(self, name: &str) -> Option<Attribute<'s>> {
        Attribute::some(unsafe { mlirOperationGetAttributeByName(self.raw, string_ref(name.as_bytes())) })
    }

    /// All attributes.
    pub fn attributes(self) -> impl Iterator<Item = (Name<'s>, Attribute<'s>)> {
        let count = unsafe { mlirOperationGetNumAttributes(self.raw) };
        (0..count).map(move |index| {
            let item = unsafe { mlirOperationGetAttribute(self.raw, index) };
            (Name::new(item.name), Attribute::new(item.attribute))
        })
    }

    /// Sets an attribute.
    pub fn set_attribute(self, name: &str, attribute: Attribute<'s>) {
        unsafe { mlirOperationSetAttributeByName(self.raw, string_ref(name.as_bytes()), attribute.raw) }
    }

    /// An attribute among the properties, which MLIR keeps apart.
    pub fn inherent_attribute(self, name: &str) -> Option<Attribute<'s>> {
        Attribute::some(unsafe { mlirOperationGetInherentAttributeByName(self.raw, string_ref(name.as_bytes())) })
    }

    /// An attribute outside the properties.
    pub fn discardable_attribute(self, name: &str) -> Option<Attribute<'s>> {
        Attribute::some(unsafe { mlirOperationGetDiscardableAttributeByName(self.raw, string_ref(name.as_bytes())) })
    }

    /// Sets an attribute outside the properties.
    pub fn set_discardable_attribute(self, name: &str, attribute: Attribute<'s>) {
        unsafe { mlirOperationSetDiscardableAttributeByName(self.raw, string_ref(name.as_bytes()), attribute.raw) }
    }

    /// Removes an attribute, if it is there.
    pub fn remove_attribute(self, name: &str) {
        unsafe { mlirOperationRemoveAttributeByName(self.raw, string_ref(name.as_bytes())) };
    }

    /// The block around the operation.
    pub fn block(self) -> Option<Block<'s>> {
        Block::some(unsafe { mlirOperationGetBlock(self.raw) })
    }

    /// The operation around the operation.
    pub fn parent(self) -> Option<Op<'s>> {
        Op::some(unsafe { mlirOperationGetParentOperation(self.raw) })
    }

    /// The next operation in the block.
    pub fn next(self) -> Option<Op<'s>> {
        Op::some(unsafe { mlirOperationGetNextInBlock(self.raw) })
    }

    /// Whether the operation stands before `other`, which is in the same block.
    pub fn is_before(self, other: Op<'s>) -> bool {
        unsafe { mlirOperationIsBeforeInBlock(self.raw, other.raw) }
    }

    /// Puts this operation, which is in no block, before `other`.
    pub fn insert_before(self, other: Op<'s>) {
        if let Some(block) = other.block() {
            unsafe { mlirBlockInsertOwnedOperationBefore(block.raw, other.raw, self.raw) }
        }
    }

    /// Puts this operation, which is in no block, after `other`.
    pub fn insert_after(self, other: Op<'s>) {
        if let Some(block) = other.block() {
            unsafe { mlirBlockInsertOwnedOperationAfter(block.raw, other.raw, self.raw) }
        }
    }

    /// Moves this operation before `other`.
    pub fn move_before(self, other: Op<'s>) {
        unsafe { mlirOperationMoveBefore(self.raw, other.raw) }
    }

    /// Whether MLIR's verifier accepts the operation and everything inside it. If not, it emits a diagnostic.
    pub fn verify(self) -> bool {
        unsafe { mlirOperationVerify(self.raw) }
    }

    /// A copy with everything inside, in no block.
    pub fn duplicate(self) -> Op<'s> {
        Op::new(unsafe { mlirOperationClone(self.raw) })
    }

    /// Erases the operation and everything inside it. Nothing may use its results.
    pub fn erase(self) {
        debug_assert!(self.results().all(|result| !result.has_uses()));
        unsafe { mlirOperationDestroy(self.raw) }
    }
}

impl<'s> Region<'s> {
    /// The blocks.
    pub fn blocks(self) -> impl Iterator<Item = Block<'s>> {
        let first = Block::some(unsafe { mlirRegionGetFirstBlock(self.raw) });
        std::iter::successors(first, |block| Block::some(unsafe { mlirBlockGetNextInRegion(block.raw) }))
    }

    /// The first block.
    pub fn first_block(self) -> Option<Block<'s>> {
        self.blocks().next()
    }

    /// Appends a block with arguments of the given types and locations.
    pub fn append_block(self, types: &[Type<'s>], locations: &[Attribute<'s>]) -> Block<'s> {
        let locations: Vec<_> = locations.iter().map(|location| location.as_location()).collect();
        unsafe {
            let block = mlirBlockCreate(types.len() as isize, types.as_ptr().cast(), locations.as_ptr());
            mlirRegionAppendOwnedBlock(self.raw, block);
            Block::new(block)
        }
    }

    /// Moves the blocks of `source` here; those that were here are dropped.
    pub fn take_body(self, source: Region<'s>) {
        unsafe { mlirRegionTakeBody(self.raw, source.raw) }
    }
}

impl<'s> Block<'s> {
    /// How many arguments there are.
    pub fn argument_count(self) -> usize {
        unsafe { mlirBlockGetNumArguments(self.raw) as usize }
    }

    /// One argument. The index must be below [`Block::argument_count`].
    pub fn argument(self, index: usize) -> Value<'s> {
        debug_assert!(index < self.argument_count());
        Value::new(unsafe { mlirBlockGetArgument(self.raw, index as isize) })
    }

    /// The arguments.
    pub fn arguments(self) -> impl DoubleEndedIterator<Item = Value<'s>> + ExactSizeIterator {
        (0..self.argument_count()).map(move |index| self.argument(index))
    }

    /// Removes an argument that nothing uses.
    pub fn erase_argument(self, index: usize) {
        debug_assert!(!self.argument(index).has_uses());
        unsafe { mlirBlockEraseArgument(self.raw, index as u32) }
    }

    /// Adds an argument before that of this index, which is at most [`Block::argument_count`].
    pub fn insert_argument(self, index: usize, of: Type<'s>, location: Attribute<'s>) -> Value<'s> {
        debug_assert!(index <= self.argument_count());
        Value::new(unsafe { mlirBlockInsertArgument(self.raw, index as isize, of.raw, location.as_location()) })
    }

    /// The operations.
    pub fn operations(self) -> impl Iterator<Item = Op<'s>> {
        std::iter::successors(self.first(), |operation| operation.next())
    }

    /// The first operation.
    pub fn first(self) -> Option<Op<'s>> {
        Op::some(unsafe { mlirBlockGetFirstOperation(self.raw) })
    }

    /// The last operation. MLIR knows the terminator only of operations that it knows, so this walks.
    pub fn last(self) -> Option<Op<'s>> {
        Op::some(unsafe { mlirBlockGetTerminator(self.raw) }).or_else(|| self.operations().last())
    }

    /// Puts an operation that is in no block at the end.
    pub fn append(self, operation: Op<'s>) {
        unsafe { mlirBlockAppendOwnedOperation(self.raw, operation.raw) }
    }

    /// The operation around the block.
    pub fn parent(self) -> Option<Op<'s>> {
        Op::some(unsafe { mlirBlockGetParentOperation(self.raw) })
    }
}

impl<'s> Value<'s> {
    /// The type.
    pub fn r#type(self) -> Type<'s> {
        Type::new(unsafe { mlirValueGetType(self.raw) })
    }

    /// The location.
    pub fn location(self) -> Attribute<'s> {
        location_attribute(unsafe { mlirValueGetLocation(self.raw) })
    }

    /// Gives the argument of a block another location. A result has that of its operation.
    pub fn set_argument_location(self, location: Attribute<'s>) {
        unsafe {
            if mlirValueIsABlockArgument(self.raw) {
                mlirBlockArgumentSetLocation(self.raw, location.as_location());
            }
        }
    }

    /// What defines the value.
    pub fn definition(self) -> Definition<'s> {
        unsafe {
            if mlirValueIsAOpResult(self.raw) {
                let index = mlirOpResultGetResultNumber(self.raw) as usize;
                Definition::Result(Op::new(mlirOpResultGetOwner(self.raw)), index)
            } else {
                let index = mlirBlockArgumentGetArgNumber(self.raw) as usize;
                Definition::Argument(Block::new(mlirBlockArgumentGetOwner(self.raw)), index)
            }
        }
    }

    /// The operation that defines the value, if it is a result.
    pub fn defining_op(self) -> Option<Op<'s>> {
        match self.definition() {
            Definition::Result(operation, _) => Some(operation),
            Definition::Argument(..) => None,
        }
    }

    /// Whether anything uses the value.
    pub fn has_uses(self) -> bool {
        unsafe { !mlirOpOperandIsNull(mlirValueGetFirstUse(self.raw)) }
    }

    /// The uses: operation and operand index, the last made first.
    pub fn uses(self) -> impl Iterator<Item = (Op<'s>, usize)> {
        let mut next = unsafe { mlirValueGetFirstUse(self.raw) };
        std::iter::from_fn(move || unsafe {
            if mlirOpOperandIsNull(next) {
                return None;
            }
            let found = (Op::new(mlirOpOperandGetOwner(next)), mlirOpOperandGetOperandNumber(next) as usize);
            next = mlirOpOperandGetNextUse(next);
            Some(found)
        })
    }

    /// Lets everything that uses this value use `other`.
    pub fn replace_uses(self, other: Value<'s>) {
        unsafe { mlirValueReplaceAllUsesOfWith(self.raw, other.raw) }
    }

    /// Lets everything but one operation that uses this value use `other`.
    pub fn replace_uses_except(self, other: Value<'s>, except: Op<'s>) {
        let mut except = except.raw;
        unsafe { mlirValueReplaceAllUsesExcept(self.raw, other.raw, 1, &raw mut except) }
    }
}
