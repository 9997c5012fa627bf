//! Looking into what MLIR's parser made of text.

use std::ffi::CString;

use melior::Context;
use mlir_sys::*;

use super::{Attribute, Op, Type, bytes_of, location_attribute};

/// What a location is.
pub enum LocationKind<'s> {
    /// A range of a file: start line and column, end line and column.
    File(&'s [u8], [u32; 4]),
    /// A name around a location.
    Name(&'s [u8], Attribute<'s>),
    /// A location inlined into another.
    CallSite(Attribute<'s>, Attribute<'s>),
    /// Several at once, with metadata or without.
    Fused(Vec<Attribute<'s>>, Option<Attribute<'s>>),
    /// None of these: unknown.
    Unknown,
}

/// An attribute or a type.
#[derive(Clone, Copy)]
pub enum Node<'s> {
    /// An attribute, which may be a location.
    Attribute(Attribute<'s>),
    /// A type.
    Type(Type<'s>),
}

impl<'s> Node<'s> {
    /// What it holds.
    pub fn inside(self) -> Vec<Self> {
        let attributes = |attributes: Vec<Attribute<'s>>| attributes.into_iter().map(Self::Attribute).collect();
        match self {
            Self::Attribute(attribute) => {
                if let Some(elements) = attribute.as_array() {
                    return attributes(elements);
                }
                if let Some(items) = attribute.as_dictionary() {
                    return items.into_iter().map(|(_, value)| Self::Attribute(value)).collect();
                }
                match attribute.as_location_kind() {
                    Some(LocationKind::Name(_, child)) => attributes(vec![child]),
                    Some(LocationKind::CallSite(callee, caller)) => attributes(vec![callee, caller]),
                    Some(LocationKind::Fused(parts, metadata)) => attributes(parts.into_iter().chain(metadata).collect()),
                    _ => attribute.as_type().map(Self::Type).into_iter().collect(),
                }
            }
            Self::Type(of) => {
                if let Some((inputs, results)) = of.as_function() {
                    return inputs.into_iter().chain(results).map(Self::Type).collect();
                }
                if let Some((_, element, encoding)) = of.as_tensor() {
                    return encoding.map(Self::Attribute).into_iter().chain([Self::Type(element)]).collect();
                }
                of.as_tuple().unwrap_or_default().into_iter().map(Self::Type).collect()
            }
        }
    }
}

/// The module in some text; what is wrong with it goes to the context's diagnostics.
pub fn parse(context: &Context, text: &str) -> Option<Op<'static>> {
    // MLIR reads on to a zero byte.
    let text = CString::new(text).ok()?;
    let source = MlirStringRef { data: text.as_ptr(), length: text.as_bytes().len() };
    let module = unsafe { mlirModuleCreateParse(context.to_raw(), source) };
    if module.ptr.is_null() { None } else { Some(Op::new(unsafe { mlirModuleGetOperation(module) })) }
}

/// Line and column of a location in a file.
pub fn position(location: melior::ir::Location<'_>) -> Option<(u32, u32)> {
    let location = location.to_raw();
    unsafe {
        mlirLocationIsAFileLineColRange(location).then(|| {
            (mlirLocationFileLineColRangeGetStartLine(location) as u32, mlirLocationFileLineColRangeGetStartColumn(location) as u32)
        })
    }
}

impl<'s> Attribute<'s> {
    /// The dialect of an attribute that MLIR does not know, and its text. `None` also if it has a type behind it, as in `#d.x<…> : i32`.
    pub fn as_opaque(self) -> Option<(&'s [u8], &'s [u8])> {
        unsafe {
            (mlirAttributeIsAOpaque(self.raw) && mlirTypeIsANone(mlirAttributeGetType(self.raw)))
                .then(|| (bytes_of(mlirOpaqueAttrGetDialectNamespace(self.raw)), bytes_of(mlirOpaqueAttrGetData(self.raw))))
        }
    }

    /// The kind of a location.
    pub fn as_location_kind(self) -> Option<LocationKind<'s>> {
        if !unsafe { mlirAttributeIsALocation(self.raw) } {
            return None;
        }
        let location = self.as_location();
        unsafe {
            if mlirLocationIsAFileLineColRange(location) {
                let file = bytes_of(mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location)));
                let range = [
                    mlirLocationFileLineColRangeGetStartLine(location) as u32,
                    mlirLocationFileLineColRangeGetStartColumn(location) as u32,
                    mlirLocationFileLineColRangeGetEndLine(location) as u32,
                    mlirLocationFileLineColRangeGetEndColumn(location) as u32,
                ];
                return Some(LocationKind::File(file, range));
            }
            if mlirLocationIsAName(location) {
                let name = bytes_of(mlirIdentifierStr(mlirLocationNameGetName(location)));
                return Some(LocationKind::Name(name, location_attribute(mlirLocationNameGetChildLoc(location))));
            }
            if mlirLocationIsACallSite(location) {
                let callee = location_attribute(mlirLocationCallSiteGetCallee(location));
                return Some(LocationKind::CallSite(callee, location_attribute(mlirLocationCallSiteGetCaller(location))));
            }
            if mlirLocationIsAFused(location) {
                let count = mlirLocationFusedGetNumLocations(location) as usize;
                let empty = mlirLocationUnknownGet(mlirLocationGetContext(location));
                let mut parts = vec![empty; count];
                if count > 0 {
                    mlirLocationFusedGetLocations(location, parts.as_mut_ptr());
                }
                let metadata = Attribute::some(mlirLocationFusedGetMetadata(location));
                return Some(LocationKind::Fused(parts.into_iter().map(location_attribute).collect(), metadata));
            }
        }
        Some(LocationKind::Unknown)
    }

    /// The attribute as MLIR prints it. Only for those that hold no others.
    pub fn leaf_text(self) -> String {
        unsafe { melior::ir::Attribute::from_raw(self.raw) }.to_string()
    }

    /// Whether an attribute is one that holds no others: a number, numbers, a unit or a symbol reference.
    pub fn is_leaf(self) -> bool {
        unsafe {
            mlirAttributeIsAInteger(self.raw)
                || mlirAttributeIsAFloat(self.raw)
                || mlirAttributeIsAUnit(self.raw)
                || mlirAttributeIsADenseBoolArray(self.raw)
                || mlirAttributeIsADenseI8Array(self.raw)
                || mlirAttributeIsADenseI16Array(self.raw)
                || mlirAttributeIsADenseI32Array(self.raw)
                || mlirAttributeIsADenseI64Array(self.raw)
                || mlirAttributeIsADenseF32Array(self.raw)
                || mlirAttributeIsADenseF64Array(self.raw)
                || mlirAttributeIsASymbolRef(self.raw)
        }
    }
}

impl<'s> Type<'s> {
    /// The dialect of a type that MLIR does not know, and its text.
    pub fn as_opaque(self) -> Option<(&'s [u8], &'s [u8])> {
        unsafe {
            mlirTypeIsAOpaque(self.raw)
                .then(|| (bytes_of(mlirOpaqueTypeGetDialectNamespace(self.raw)), bytes_of(mlirOpaqueTypeGetData(self.raw))))
        }
    }

    /// The types in a tuple type.
    pub fn as_tuple(self) -> Option<Vec<Type<'s>>> {
        unsafe {
            mlirTypeIsATuple(self.raw).then(|| {
                let count = mlirTupleTypeGetNumTypes(self.raw);
                (0..count).map(|index| Type::new(mlirTupleTypeGetType(self.raw, index))).collect()
            })
        }
    }

    /// The shape, the element type and the encoding of a ranked tensor type.
    pub fn as_tensor(self) -> Option<(Vec<i64>, Type<'s>, Option<Attribute<'s>>)> {
        unsafe {
            mlirTypeIsARankedTensor(self.raw).then(|| {
                let rank = mlirShapedTypeGetRank(self.raw);
                let dimension = |index| {
                    if mlirShapedTypeIsDynamicDim(self.raw, index) { i64::MIN } else { mlirShapedTypeGetDimSize(self.raw, index) }
                };
                let encoding = Attribute::some(mlirRankedTensorTypeGetEncoding(self.raw));
                ((0..rank as isize).map(dimension).collect(), Type::new(mlirShapedTypeGetElementType(self.raw)), encoding)
            })
        }
    }

    /// The type as MLIR prints it. Only for those that hold no others.
    pub fn leaf_text(self) -> String {
        unsafe { melior::ir::Type::from_raw(self.raw) }.to_string()
    }

    /// Whether a type holds no others, but perhaps a number.
    pub fn is_leaf(self) -> bool {
        unsafe {
            mlirTypeIsAInteger(self.raw)
                || mlirTypeIsAIndex(self.raw)
                || mlirTypeIsAFloat(self.raw)
                || mlirTypeIsANone(self.raw)
                || mlirTypeIsAComplex(self.raw)
        }
    }
}
