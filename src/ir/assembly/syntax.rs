//! How attributes and types are spelled that follow their fields. One table for both directions.

use crate::bytecode::{DialectId, Kind, code, dialect, entry_row};

/// One spelling: the fields of the row in the dialect's table, in order, stand where the `$` are.
pub(super) struct Syntax {
    pub(super) dialect: DialectId,
    pub(super) is_type: bool,
    pub(super) code: u8,
    /// Dialect and mnemonic, e.g. `vhlo.array_v1`.
    pub(super) name: &'static str,
    /// What stands between `<` and `>`.
    pub(super) body: &'static str,
}

impl Syntax {
    /// What the fields are.
    pub(super) fn kinds(&self) -> &'static [Kind] {
        entry_row(self.dialect, self.is_type, self.code).map_or(&[], |row| row.fields)
    }
}

const fn attribute(code: u8, name: &'static str, body: &'static str) -> Syntax {
    Syntax { dialect: dialect::VHLO, is_type: false, code, name, body }
}

const fn of_type(code: u8, name: &'static str, body: &'static str) -> Syntax {
    Syntax { dialect: dialect::VHLO, is_type: true, code, name, body }
}

static SYNTAX: [Syntax; 15] = [
    attribute(code::vhlo::ARRAY, "vhlo.array_v1", "[$]"),
    attribute(code::vhlo::DICT, "vhlo.dict_v1", "{$}"),
    attribute(10, "vhlo.output_operand_alias_v1", "outputTupleIndices = [$], operandIndex = $, operandTupleIndices = [$]"),
    attribute(code::vhlo::STRING, "vhlo.string_v1", "$"),
    attribute(code::vhlo::TYPE, "vhlo.type_v1", "$"),
    attribute(18, "vhlo.type_extensions_v1", "bounds = [$]"),
    attribute(20, "vhlo.result_accuracy_v1", "atol = $, rtol = $, ulps = $, mode = $"),
    attribute(21, "vhlo.sub_axis_info_v1", "pre_size = $, size = $"),
    attribute(code::vhlo::REPLICA_GROUP_MESH_AXES, "vhlo.replica_group_mesh_axes_v1", "mesh = $, axes = $"),
    attribute(24, "vhlo.mesh_axis_v1", "name = $, size = $"),
    of_type(code::vhlo::COMPLEX_TYPE, "vhlo.complex_v1", "$"),
    of_type(23, "vhlo.tuple_v1", "$"),
    of_type(25, "vhlo.unranked_tensor_v1", "$"),
    of_type(42, "vhlo.future_v1", "$"),
    Syntax { dialect: dialect::STABLEHLO, is_type: false, code: 13, name: "stablehlo.bounds", body: "$" },
];

pub(super) fn of_code(dialect: DialectId, is_type: bool, code: u8) -> Option<&'static Syntax> {
    SYNTAX.iter().find(|row| row.dialect == dialect && row.is_type == is_type && row.code == code)
}

pub(super) fn of_name(name: &str, is_type: bool) -> Option<&'static Syntax> {
    SYNTAX.iter().find(|row| row.name == name && row.is_type == is_type)
}

/// The values of an enumeration of vhlo.
pub(super) struct Enumeration {
    pub(super) code: u8,
    pub(super) name: &'static str,
    /// The number of the first value.
    pub(super) first: u64,
    pub(super) values: &'static [&'static str],
}

const fn enumeration(code: u8, name: &'static str, first: u64, values: &'static [&'static str]) -> Enumeration {
    Enumeration { code, name, first, values }
}

/// Source: StableHLO's `VhloEnums.td`.
static ENUMERATIONS: [Enumeration; 9] = [
    enumeration(3, "comparison_direction_v1", 0, &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    enumeration(4, "comparison_type_v1", 0, &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", "WEAKORDER"]),
    enumeration(
        5,
        "api_version_v1",
        0,
        &[
            "API_VERSION_UNSPECIFIED",
            "API_VERSION_ORIGINAL",
            "API_VERSION_STATUS_RETURNING",
            "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI",
        ],
    ),
    enumeration(7, "fft_type_v1", 0, &["FFT", "IFFT", "RFFT", "IRFFT"]),
    enumeration(11, "precision_v1", 0, &["DEFAULT", "HIGH", "HIGHEST"]),
    enumeration(12, "rng_algorithm_v1", 0, &["DEFAULT", "THREE_FRY", "PHILOX"]),
    enumeration(13, "rng_distribution_v1", 1, &["UNIFORM", "NORMAL"]),
    enumeration(16, "transpose_v1", 0, &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
    enumeration(19, "result_accuracy_mode_v1", 0, &["DEFAULT", "HIGHEST", "TOLERANCE"]),
];

impl Enumeration {
    pub(super) fn of_code(code: u8) -> Option<&'static Self> {
        ENUMERATIONS.iter().find(|row| row.code == code)
    }

    pub(super) fn of_name(name: &str) -> Option<&'static Self> {
        ENUMERATIONS.iter().find(|row| row.name == name)
    }

    pub(super) fn value(&self, number: u64) -> Option<&'static str> {
        self.values.get(usize::try_from(number.checked_sub(self.first)?).ok()?).copied()
    }

    pub(super) fn number(&self, value: &str) -> Option<u64> {
        self.values.iter().position(|known| *known == value).map(|position| position as u64 + self.first)
    }
}

/// The builtin name of the element of a vhlo tensor, as `dense<…>` and `integer_v1` spell it.
pub(super) const ELEMENT_TYPES: [(u8, &str); 29] = [
    (code::vhlo::BOOL_TYPE, "i1"),
    (2, "bf16"),
    (3, "f16"),
    (4, "f32"),
    (code::vhlo::F64_TYPE, "f64"),
    (6, "f8E4M3FN"),
    (7, "f8E5M2"),
    (code::vhlo::INDEX_TYPE, "index"),
    (code::vhlo::I4_TYPE, "i4"),
    (code::vhlo::I8_TYPE, "i8"),
    (code::vhlo::I16_TYPE, "i16"),
    (code::vhlo::I32_TYPE, "i32"),
    (code::vhlo::I64_TYPE, "i64"),
    (code::vhlo::UI4_TYPE, "ui4"),
    (code::vhlo::UI8_TYPE, "ui8"),
    (code::vhlo::UI16_TYPE, "ui16"),
    (code::vhlo::UI32_TYPE, "ui32"),
    (code::vhlo::UI64_TYPE, "ui64"),
    (27, "f8E4M3FNUZ"),
    (28, "f8E5M2FNUZ"),
    (29, "f8E4M3B11FNUZ"),
    (code::vhlo::I2_TYPE, "i2"),
    (code::vhlo::UI2_TYPE, "ui2"),
    (35, "f8E4M3"),
    (36, "f8E3M4"),
    (37, "f4E2M1FN"),
    (38, "f6E2M3FN"),
    (39, "f6E3M2FN"),
    (40, "f8E8M0FNU"),
];
