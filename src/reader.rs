//! The one byte cursor. Everything read from a file goes through it, so bounds, limits and offsets live in one place.

use crate::error::{Error, Result};

/// Deepest nesting of regions we accept. JAX's exports stay below 10; MLIR's printer overflows a 2 MB stack near 2,000.
pub const MAX_REGION_DEPTH: usize = 512;
/// Longest chain of attributes and locations that name one another. JAX's exports stay below 100.
pub const MAX_ATTRIBUTE_DEPTH: usize = 4_096;
/// Largest file JAX can make or load: flatbuffers address it with signed 32-bit offsets.
pub const MAX_EXPORT_BYTES: u64 = 1 << 31;

/// A cursor over a slice of the user's file that knows where in the file it stands.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`, which begin at offset `base` of the user's file.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, position: 0, base }
    }

    /// Where the next byte stands in the user's file.
    pub fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// A format error at the current offset.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::format(message).at(self.offset())
    }

    /// Reads one byte.
    pub fn byte(&mut self, what: &str) -> Result<u8> {
        match self.bytes.get(self.position) {
            Some(&byte) => {
                self.position += 1;
                Ok(byte)
            }
            None => Err(self.error(format!("the data ends where {what} should be"))),
        }
    }

    /// Reads `length` bytes without copying them.
    pub fn bytes(&mut self, length: u64, what: &str) -> Result<&'a [u8]> {
        let found = usize::try_from(length).ok().and_then(|length| self.rest().get(..length));
        let found = found.ok_or_else(|| self.error(format!("{what} of {length} bytes, but {} bytes are left", self.remaining())))?;
        self.position += found.len();
        Ok(found)
    }

    /// Reads a NUL-terminated string, without its NUL.
    pub fn c_string(&mut self, what: &str) -> Result<&'a [u8]> {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| byte == 0);
        let text = end.and_then(|end| rest.get(..end)).ok_or_else(|| self.error(format!("{what} has no end")))?;
        self.position += text.len() + 1;
        Ok(text)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Splits off a cursor over the next `length` bytes.
    pub fn split(&mut self, length: u64, what: &str) -> Result<Reader<'a>> {
        let base = self.offset();
        Ok(Reader::new(self.bytes(length, what)?, base))
    }

    /// Reads a variable-width integer: the trailing zero bits of the first byte count the bytes that follow.
    pub fn varint(&mut self, what: &str) -> Result<u64> {
        let first = self.byte(what)?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        let extra = first.trailing_zeros();
        let rest = self.bytes(u64::from(extra), what)?;
        let high = rest.iter().rev().fold(0, |high, byte| high << 8 | u64::from(*byte));
        Ok(if extra == 8 { high } else { (high << (7 - extra)) | u64::from(first) >> (extra + 1) })
    }

    /// Reads a zigzag-encoded signed integer.
    pub fn signed_varint(&mut self, what: &str) -> Result<i64> {
        let value = self.varint(what)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads an integer whose lowest bit is a flag.
    pub fn varint_with_flag(&mut self, what: &str) -> Result<(u64, bool)> {
        let value = self.varint(what)?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// Reads an element count. `what` names the elements in the error. Fails if the remaining bytes cannot hold that many of at least one byte.
    pub fn count(&mut self, what: &str) -> Result<usize> {
        let start = self.offset();
        let count = self.varint(what)?;
        self.check_count(count, what, start)
    }

    /// Checks a count that was read at `start` against the bytes that are left.
    pub fn check_count(&self, count: u64, what: &str, start: u64) -> Result<usize> {
        if count > self.remaining() as u64 {
            return Err(Error::format(format!("{count} {what}, but {} bytes are left", self.remaining())).at(start));
        }
        Ok(count as usize)
    }

    /// Reads an index into a table of `length` entries.
    pub fn index(&mut self, length: usize, what: &str) -> Result<u32> {
        let start = self.offset();
        let index = self.varint(what)?;
        check_index(index, length, what, start)
    }

    /// Fails unless everything was read.
    pub fn finish(&self, what: &str) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(self.error(format!("{} bytes too many in {what}", self.remaining()))) }
    }
}

/// Checks an index that was read at `start` against the length of its table.
pub fn check_index(index: u64, length: usize, what: &str, start: u64) -> Result<u32> {
    if index >= length as u64 || index > u64::from(u32::MAX) {
        return Err(Error::format(format!("{what} {index}, but there are {length}")).at(start));
    }
    Ok(index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> u64 {
        let mut reader = Reader::new(bytes, 0);
        let value = reader.varint("a number").unwrap();
        reader.finish("the number").unwrap();
        value
    }

    #[test]
    fn varints_of_every_width() {
        for (bytes, value) in [
            (&[0x01][..], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 128),
            (&[0xfe, 0xff], 16_383),
            (&[0x04, 0x00, 0x02], 16_384),
            (&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], (1 << 56) - 1),
            (&[0x00, 0, 0, 0, 0, 0, 0, 0, 1], 1 << 56),
            (&[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
        ] {
            assert_eq!(varint(bytes), value, "{bytes:x?}");
        }
    }

    #[test]
    fn signed_varints() {
        for (bytes, value) in [(&[0x03][..], -1), (&[0x05], 1), (&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], i64::MIN)] {
            assert_eq!(Reader::new(bytes, 0).signed_varint("a number").unwrap(), value);
        }
    }

    #[test]
    fn every_refusal_names_its_offset_in_the_file() {
        let bytes = [0xff, 0x02];
        let reader = || Reader::new(&bytes, 0x100);
        assert_eq!(reader().count("operations").unwrap_err().to_string(), "127 operations, but 1 bytes are left (at offset 0x100)");
        assert_eq!(reader().index(3, "string").unwrap_err().to_string(), "string 127, but there are 3 (at offset 0x100)");
        assert_eq!(reader().bytes(3, "a blob").unwrap_err().to_string(), "a blob of 3 bytes, but 2 bytes are left (at offset 0x100)");
        assert_eq!(reader().c_string("the producer").unwrap_err().to_string(), "the producer has no end (at offset 0x100)");
        assert_eq!(reader().finish("the module").unwrap_err().to_string(), "2 bytes too many in the module (at offset 0x100)");
        let mut short = Reader::new(&bytes[1..], 0x101);
        assert_eq!(short.varint("a size").unwrap_err().to_string(), "a size of 1 bytes, but 0 bytes are left (at offset 0x102)");
    }
}
