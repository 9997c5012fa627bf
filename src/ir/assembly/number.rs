//! Numbers as text: elements of constants, and the floats of attributes.
//!
//! A float is written in decimal where reading that decimal gives the same bits, and as the hexadecimal of its bits otherwise, which is what MLIR does.

/// How the elements of a tensor are stored and written. Elements are little-endian and take whole bytes, but for booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// One bit each, packed from the lowest; a single one takes a byte, and one for all is 0 or 255.
    Bool,
    /// Two's complement.
    Signed(u32),
    Unsigned(u32),
    /// Bits of the exponent and of the fraction.
    Float(u32, u32),
    /// Floats of which only the bits are written.
    Bits(u32),
}

/// The elements of the builtin types that MLIR writes in `dense<…>`.
const ELEMENTS: [(&str, Element); 28] = [
    ("i1", Element::Bool),
    ("i2", Element::Signed(2)),
    ("i4", Element::Signed(4)),
    ("i8", Element::Signed(8)),
    ("i16", Element::Signed(16)),
    ("i32", Element::Signed(32)),
    ("i64", Element::Signed(64)),
    ("ui2", Element::Unsigned(2)),
    ("ui4", Element::Unsigned(4)),
    ("ui8", Element::Unsigned(8)),
    ("ui16", Element::Unsigned(16)),
    ("ui32", Element::Unsigned(32)),
    ("ui64", Element::Unsigned(64)),
    ("index", Element::Signed(64)),
    ("f16", Element::Float(5, 10)),
    ("bf16", Element::Float(8, 7)),
    ("f32", Element::Float(8, 23)),
    ("f64", Element::Float(11, 52)),
    ("f8E3M4", Element::Bits(8)),
    ("f8E4M3", Element::Bits(8)),
    ("f8E4M3B11FNUZ", Element::Bits(8)),
    ("f8E4M3FN", Element::Bits(8)),
    ("f8E4M3FNUZ", Element::Bits(8)),
    ("f8E5M2", Element::Bits(8)),
    ("f8E5M2FNUZ", Element::Bits(8)),
    ("f8E8M0FNU", Element::Bits(8)),
    ("f4E2M1FN", Element::Bits(4)),
    ("f6E2M3FN", Element::Bits(6)),
];

/// The elements of `array<…>`, each of which takes whole bytes.
pub(super) const ARRAY_ELEMENTS: [(&str, Element); 7] = [
    ("i1", Element::Bool),
    ("i8", Element::Signed(8)),
    ("i16", Element::Signed(16)),
    ("i32", Element::Signed(32)),
    ("i64", Element::Signed(64)),
    ("f32", Element::Float(8, 23)),
    ("f64", Element::Float(11, 52)),
];

impl Element {
    /// The element of a builtin type's name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let known = ELEMENTS.iter().find(|(known, _)| *known == name).map(|(_, element)| *element);
        known.or((name == "f6E3M2FN").then_some(Self::Bits(6)))
    }

    /// Bytes of one element; a boolean alone takes one.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Signed(width) | Self::Unsigned(width) | Self::Bits(width) => width.div_ceil(8) as usize,
            Self::Float(exponent, fraction) => (1 + exponent + fraction).div_ceil(8) as usize,
        }
    }

    /// Writes one element from its bits. `None`: a bit beyond the width is set, so that text would lose it.
    pub(super) fn write(self, bits: u64) -> Option<String> {
        let width = match self {
            Self::Bool => 1,
            Self::Signed(width) | Self::Unsigned(width) | Self::Bits(width) => width,
            Self::Float(exponent, fraction) => 1 + exponent + fraction,
        };
        let unused = 64 - width;
        if bits << unused >> unused != bits {
            return None;
        }
        Some(match self {
            Self::Bool => if bits == 0 { "false" } else { "true" }.to_owned(),
            Self::Signed(_) => (((bits << unused) as i64) >> unused).to_string(),
            Self::Unsigned(_) => bits.to_string(),
            Self::Float(exponent, fraction) => write_float(bits, exponent, fraction),
            Self::Bits(width) => format!("0x{bits:0digits$X}", digits = width.div_ceil(4) as usize),
        })
    }

    /// The bits of one element. `None`: no such number, or not one of this type.
    pub(super) fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Bool => match text {
                "true" | "1" => Some(1),
                "false" | "0" => Some(0),
                _ => None,
            },
            Self::Signed(width) => {
                let number: i128 = text.parse().ok()?;
                let limit = 1i128 << (width - 1);
                // As in MLIR, what has no sign may be written as if it had none.
                (-limit..2 * limit).contains(&number).then(|| number as u64 & (u64::MAX >> (64 - width)))
            }
            Self::Unsigned(width) => text.parse::<u64>().ok().filter(|number| *number <= u64::MAX >> (64 - width)),
            Self::Float(exponent, fraction) => read_float(text, exponent, fraction),
            Self::Bits(width) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().filter(|bits| bits >> width == 0),
        }
    }
}

/// Writes a float from its bits.
pub(super) fn write_float(bits: u64, exponent: u32, fraction: u32) -> String {
    let value = decode(bits, exponent, fraction);
    if value.is_finite() {
        let text = if (exponent, fraction) == (8, 23) { format!("{:?}", value as f32) } else { format!("{value:?}") };
        // MLIR wants a point in every float.
        let text = match text.split_once('e') {
            Some((digits, power)) if !digits.contains('.') => format!("{digits}.0e{power}"),
            _ => text,
        };
        if read_float(&text, exponent, fraction) == Some(bits) {
            return text;
        }
    }
    format!("0x{bits:0digits$X}", digits = (1 + exponent + fraction).div_ceil(4) as usize)
}

/// The bits of a float from its text; the nearest of the type, ties to even.
pub(super) fn read_float(text: &str, exponent: u32, fraction: u32) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().filter(|bits| u128::from(*bits) >> (1 + exponent + fraction) == 0);
    }
    // Rust also reads `inf` and `nan`, which are no literals of MLIR.
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) || text.contains(['i', 'n', 'N']) {
        return None;
    }
    match (exponent, fraction) {
        (11, 52) => text.parse::<f64>().ok().map(f64::to_bits),
        (8, 23) => text.parse::<f32>().ok().map(|value| u64::from(value.to_bits())),
        _ => text.parse::<f64>().ok().map(|value| encode(value, exponent, fraction)),
    }
}

/// The value of a float of an IEEE format no wider than 64 bits.
fn decode(bits: u64, exponent: u32, fraction: u32) -> f64 {
    if (exponent, fraction) == (11, 52) {
        return f64::from_bits(bits);
    }
    let sign = if bits >> (exponent + fraction) & 1 == 1 { -1.0 } else { 1.0 };
    let power = (bits >> fraction & ((1 << exponent) - 1)) as i32;
    let digits = (bits & ((1 << fraction) - 1)) as f64;
    let bias = (1 << (exponent - 1)) - 1;
    let unit = |power: i32| 2f64.powi(power - bias - fraction as i32);
    if power == (1 << exponent) - 1 {
        return if digits == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    if power == 0 { sign * digits * unit(1) } else { sign * (digits + 2f64.powi(fraction as i32)) * unit(power) }
}

/// The bits of the nearest float of a narrow IEEE format.
fn encode(value: f64, exponent: u32, fraction: u32) -> u64 {
    let sign = u64::from(value.is_sign_negative()) << (exponent + fraction);
    let infinity = ((1 << exponent) - 1) << fraction;
    if !value.is_finite() {
        return sign | infinity;
    }
    let bias = (1 << (exponent - 1)) - 1;
    // The power of two of the last digit; below the smallest normal number it stays.
    let power = ((value.abs().to_bits() >> 52) as i32 - 1023).max(1 - bias);
    let digits = (value.abs() / 2f64.powi(power - fraction as i32)).round_ties_even() as u64;
    // Where rounding reaches the next power of two, the carry does what is needed.
    let magnitude = digits + (((power + bias - 1) as u64) << fraction);
    sign | magnitude.min(infinity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_narrow_float_survives_text() {
        for (exponent, fraction) in [(5, 10), (8, 7)] {
            for bits in 0..1u64 << 16 {
                let text = write_float(bits, exponent, fraction);
                assert_eq!(read_float(&text, exponent, fraction), Some(bits), "{text}");
                let is_finite = bits >> fraction & ((1 << exponent) - 1) != (1 << exponent) - 1;
                assert_eq!(!text.starts_with("0x"), is_finite, "{text}");
            }
        }
    }

    #[test]
    fn floats_are_written_as_mlir_reads_them() {
        let f32 = |value: f32| write_float(u64::from(value.to_bits()), 8, 23);
        assert_eq!(f32(1.0), "1.0");
        assert_eq!(f32(-0.0), "-0.0");
        assert_eq!(f32(1e-7), "1.0e-7");
        assert_eq!(f32(f32::INFINITY), "0x7F800000");
        assert_eq!(f32(0.1), "0.1");
        assert_eq!(write_float(0.1f64.to_bits(), 11, 52), "0.1");
        assert_eq!(write_float(0x3C00, 5, 10), "1.0");
        assert_eq!(write_float(0x7E00, 5, 10), "0x7E00");
    }

    #[test]
    fn floats_round_to_nearest_even() {
        // bf16 has 8 bits of precision: 257 lies between 256 and 258, 259 between 258 and 260.
        assert_eq!(read_float("257.0", 8, 7), read_float("256.0", 8, 7));
        assert_eq!(read_float("259.0", 8, 7), read_float("260.0", 8, 7));
        assert_eq!(read_float("65519.0", 5, 10), Some(0x7BFF));
        assert_eq!(read_float("65520.0", 5, 10), Some(0x7C00));
        assert_eq!(read_float("-1.0e999", 5, 10), Some(0xFC00));
        assert_eq!(read_float("inf", 8, 23), None);
    }

    #[test]
    fn integers_keep_to_their_width() {
        assert_eq!(Element::Signed(4).write(0x0E).as_deref(), Some("-2"));
        assert_eq!(Element::Signed(4).write(0xFE), None);
        assert_eq!(Element::Signed(4).read("-2"), Some(0x0E));
        assert_eq!(Element::Signed(4).read("14"), Some(0x0E));
        assert_eq!(Element::Signed(4).read("16"), None);
        assert_eq!((Element::Unsigned(4).write(16), Element::Bits(6).write(64)), (None, None));
        assert_eq!(Element::Unsigned(8).read("256"), None);
        assert_eq!(Element::Unsigned(64).read("18446744073709551615"), Some(u64::MAX));
        assert_eq!(Element::Signed(64).read("-9223372036854775808"), Some(1 << 63));
    }
}
