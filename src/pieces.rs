//! Output as pieces: owned bytes and slices borrowed from the input, so that a gigabyte of constants is never held twice.

use std::io::{self, Write};

/// Blobs of at least this many bytes are borrowed; below it a copy is cheaper than one more piece.
const BORROW_FROM: usize = 1_024;

/// One stretch of the output.
#[derive(Debug, Clone)]
pub enum Piece<'a> {
    /// Bytes made for this output.
    Owned(Vec<u8>),
    /// Bytes of the input.
    Borrowed(&'a [u8]),
}

impl Piece<'_> {
    /// The bytes, wherever they live.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Borrowed(bytes) => bytes,
        }
    }
}

/// A sequence of bytes in pieces. Grows at its end; its length is always known.
#[derive(Debug, Clone, Default)]
pub struct Pieces<'a> {
    pieces: Vec<Piece<'a>>,
    /// The last bytes, which more may follow.
    tail: Vec<u8>,
    /// How many bytes stand before the tail.
    before_tail: u64,
}

impl<'a> Pieces<'a> {
    /// No bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of `bytes`, borrowed whatever their length.
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Self { pieces: vec![Piece::Borrowed(bytes)], tail: Vec::new(), before_tail: bytes.len() as u64 }
    }

    /// The bytes, if they are one slice of the input.
    pub fn as_borrowed(&self) -> Option<&'a [u8]> {
        match self.pieces[..] {
            _ if !self.tail.is_empty() => None,
            [] => Some(&[]),
            [Piece::Borrowed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.before_tail + self.tail.len() as u64
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let tail = Some(&self.tail[..]).filter(|tail| !tail.is_empty());
        self.pieces.iter().map(Piece::as_bytes).chain(tail)
    }

    /// Appends one byte.
    pub fn push(&mut self, byte: u8) {
        self.tail.push(byte);
    }

    /// Appends a copy of `bytes`.
    pub fn extend_copied(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends `bytes`, borrowed where that pays.
    pub fn extend_borrowed(&mut self, bytes: &'a [u8]) {
        if bytes.len() < BORROW_FROM {
            return self.extend_copied(bytes);
        }
        self.push_piece(Piece::Borrowed(bytes));
    }

    /// Appends all of `other`.
    pub fn append(&mut self, other: Pieces<'a>) {
        for piece in other.pieces {
            match piece {
                Piece::Owned(bytes) if bytes.len() < BORROW_FROM => self.extend_copied(&bytes),
                Piece::Borrowed(bytes) if bytes.len() < BORROW_FROM => self.extend_copied(bytes),
                large => self.push_piece(large),
            }
        }
        if self.tail.is_empty() && other.tail.len() >= BORROW_FROM {
            self.tail = other.tail;
        } else {
            self.extend_copied(&other.tail);
        }
    }

    fn push_piece(&mut self, piece: Piece<'a>) {
        let length = piece.as_bytes().len() as u64;
        if !self.tail.is_empty() {
            self.before_tail += self.tail.len() as u64;
            self.pieces.push(Piece::Owned(std::mem::take(&mut self.tail)));
        }
        self.before_tail += length;
        self.pieces.push(piece);
    }

    /// Writes every byte.
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        self.iter().try_for_each(|bytes| writer.write_all(bytes))
    }

    /// All bytes in one vector: a copy of everything, constants included.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() as usize);
        self.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }
}

/// Equal bytes are equal, however they are cut into pieces.
impl PartialEq for Pieces<'_> {
    fn eq(&self, other: &Self) -> bool {
        let mut others = other.iter();
        let mut theirs: &[u8] = &[];
        self.len() == other.len()
            && self.iter().all(|mut mine| {
                while !mine.is_empty() {
                    if theirs.is_empty() {
                        let Some(next) = others.next() else { return false };
                        theirs = next;
                        continue;
                    }
                    let length = mine.len().min(theirs.len());
                    let (my_start, my_rest) = mine.split_at(length);
                    let (their_start, their_rest) = theirs.split_at(length);
                    if my_start != their_start {
                        return false;
                    }
                    (mine, theirs) = (my_rest, their_rest);
                }
                true
            })
    }
}

impl Eq for Pieces<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_were_appended_and_large_ones_stay_borrowed() {
        let large = vec![7; BORROW_FROM];
        let mut inner = Pieces::new();
        inner.push(2);
        inner.extend_borrowed(&large);
        inner.push(3);
        let mut pieces = Pieces::new();
        pieces.extend_copied(&[0, 1]);
        pieces.append(inner);
        let expected = [&[0, 1, 2][..], &large, &[3]].concat();
        assert_eq!((pieces.to_vec(), pieces.len()), (expected.clone(), expected.len() as u64));
        assert!(pieces.pieces.iter().any(|piece| matches!(piece, Piece::Borrowed(bytes) if std::ptr::eq(*bytes, &large[..]))));
        let mut written = Vec::new();
        pieces.write_to(&mut written).unwrap();
        assert_eq!(written, expected);
    }

    #[test]
    fn equal_bytes_are_equal_however_they_are_cut() {
        let bytes = [1; 3 * BORROW_FROM];
        let mut cut = Pieces::borrowed(&bytes[..BORROW_FROM + 1]);
        cut.extend_copied(&bytes[..2 * BORROW_FROM - 1]);
        assert_eq!(Pieces::borrowed(&bytes), cut);
        assert_eq!(cut, Pieces::borrowed(&bytes));
        cut.push(1);
        assert_ne!(Pieces::borrowed(&bytes), cut);
        let mut other = Pieces::borrowed(&bytes[1..]);
        other.push(2);
        assert_ne!(Pieces::borrowed(&bytes), other);
    }
}
