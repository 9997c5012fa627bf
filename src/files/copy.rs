//! Pieces into a file. What is borrowed from the input goes from file to file, where the system can: nobody reads it.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::pieces::Pieces;

/// From this many bytes on, asking the system costs less than copying.
const COPY_FROM: usize = 1 << 16;

/// A file and its bytes, mapped: slices of these can be copied from that.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file.
    pub file: &'a File,
    /// All of its bytes.
    pub bytes: &'a [u8],
}

impl Origin<'_> {
    /// Where in the file a slice stands, if it is one of these bytes.
    fn offset(&self, slice: &[u8]) -> Option<u64> {
        let offset = slice.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr())?;
        (offset.checked_add(slice.len())? <= self.bytes.len()).then_some(offset as u64)
    }
}

/// Writes all pieces to the end of a file.
pub fn write(pieces: &Pieces<'_>, into: &File, origin: Option<Origin<'_>>) -> io::Result<()> {
    let mut writer = BufWriter::new(into);
    for piece in pieces.iter() {
        let place = origin.filter(|_| piece.len() >= COPY_FROM).and_then(|origin| Some((origin.file, origin.offset(piece)?)));
        let copied = match place {
            Some((from, offset)) => {
                writer.flush()?;
                copy(from, offset, into, piece.len())
            }
            None => 0,
        };
        writer.write_all(piece.get(copied..).unwrap_or_default())?;
    }
    writer.flush()
}

/// Copies from a file to the end of another one. Returns how many bytes the system has copied; why it stopped, a write of the rest will tell.
#[cfg(target_os = "linux")]
fn copy(from: &File, mut offset: u64, into: &File, length: usize) -> usize {
    let mut copied = 0;
    while copied < length {
        match rustix::fs::copy_file_range(from, Some(&mut offset), into, None, length - copied) {
            Ok(0) | Err(_) => break,
            Ok(count) => copied += count,
        }
    }
    copied
}

#[cfg(not(target_os = "linux"))]
fn copy(_: &File, _: u64, _: &File, _: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn slices_of_the_input_and_bytes_of_our_own_stand_in_order() {
        let mut from = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..3 * COPY_FROM).map(|index| (index % 251) as u8).collect();
        from.write_all(&bytes).unwrap();
        let mut pieces = Pieces::new();
        pieces.extend_copied(b"head");
        pieces.extend_borrowed(&bytes[100..COPY_FROM + 200]);
        pieces.extend_copied(b"between");
        pieces.extend_borrowed(&bytes[COPY_FROM..]);
        pieces.extend_borrowed(&bytes[..2_000]);
        let elsewhere = bytes.clone();
        pieces.extend_borrowed(&elsewhere);
        let file = std::fs::File::open(from.path()).unwrap();
        for origin in [None, Some(Origin { file: &file, bytes: &bytes })] {
            let mut into = tempfile::tempfile().unwrap();
            write(&pieces, &into, origin).unwrap();
            let mut written = Vec::new();
            io::Seek::rewind(&mut into).unwrap();
            into.read_to_end(&mut written).unwrap();
            assert!(written == pieces.to_vec());
        }
    }

    #[test]
    fn what_a_file_has_lost_is_written_from_memory() {
        let mut from = tempfile::NamedTempFile::new().unwrap();
        let bytes = vec![7; 2 * COPY_FROM];
        from.write_all(&bytes[..COPY_FROM + 1]).unwrap();
        let mut pieces = Pieces::new();
        pieces.extend_borrowed(&bytes);
        let file = std::fs::File::open(from.path()).unwrap();
        let into = tempfile::NamedTempFile::new().unwrap();
        write(&pieces, into.as_file(), Some(Origin { file: &file, bytes: &bytes })).unwrap();
        assert!(std::fs::read(into.path()).unwrap() == bytes);
    }
}
