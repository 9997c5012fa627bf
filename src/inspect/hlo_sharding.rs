//! Shardings of exports up to schema 8, in a few words. They are serialized `xla.OpSharding` messages; HLO's own spelling is used.
//!
//! Source: `xla/xla_data.proto`. Only what tells shardings apart at a glance is read: the kind, the grid, and where its devices come from.

use crate::reader::Reader;

/// HLO's spelling, such as `{devices=[2,1]<=[2]}`; `HLO sharding` if the message says something that is not read here.
pub(super) fn text(proto: &[u8]) -> String {
    Message::read(proto).and_then(|message| message.text()).unwrap_or_else(|| "HLO sharding".to_owned())
}

#[derive(Default)]
struct Message {
    kind: u64,
    grid: Vec<u64>,
    devices: Vec<u64>,
    iota: Vec<u64>,
    permutation: Vec<u64>,
    is_last_dimension_replicated: bool,
}

impl Message {
    fn read(proto: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(proto, 0);
        let mut message = Self::default();
        while !reader.is_empty() {
            let key = number(&mut reader)?;
            let mut numbers = match key & 7 {
                0 => vec![number(&mut reader)?],
                2 => {
                    let length = number(&mut reader)?;
                    packed(reader.bytes(length, "a field").ok()?)?
                }
                _ => return None,
            };
            match key >> 3 {
                1 => message.kind = *numbers.first()?,
                3 => message.grid.append(&mut numbers),
                4 => message.devices.append(&mut numbers),
                6 => message.is_last_dimension_replicated = numbers.first() != Some(&0),
                9 => message.iota.append(&mut numbers),
                10 => message.permutation.append(&mut numbers),
                _ => return None,
            }
        }
        Some(message)
    }

    fn text(&self) -> Option<String> {
        Some(match self.kind {
            0 => "{replicated}".to_owned(),
            1 => format!("{{maximal device={}}}", list(&self.devices)),
            3 => {
                let source = if self.iota.is_empty() { list(&self.devices) } else { format!("<=[{}]", list(&self.iota)) };
                let is_turned = !self.permutation.is_sorted();
                let turned = if is_turned { format!("T({})", list(&self.permutation)) } else { String::new() };
                let last = if self.is_last_dimension_replicated { " last_tile_dim_replicate" } else { "" };
                format!("{{devices=[{}]{source}{turned}{last}}}", list(&self.grid))
            }
            4 => "{manual}".to_owned(),
            _ => return None,
        })
    }
}

/// A protocol buffer's varint, which is not MLIR's.
fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = reader.byte("a number").ok()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn packed(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut reader = Reader::new(bytes, 0);
    let mut numbers = Vec::new();
    while !reader.is_empty() {
        numbers.push(number(&mut reader)?);
    }
    Some(numbers)
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shardings_are_spelled_as_in_hlo() {
        assert_eq!(text(b""), "{replicated}");
        assert_eq!(text(&[8, 3, 26, 2, 2, 1, 34, 2, 0, 1]), "{devices=[2,1]0,1}");
        assert_eq!(text(&[8, 3, 26, 3, 2, 1, 2, 48, 1, 74, 1, 4, 82, 1, 0]), "{devices=[2,1,2]<=[4] last_tile_dim_replicate}");
        assert_eq!(text(&[8, 3, 26, 2, 2, 2, 74, 2, 2, 2, 82, 2, 1, 0]), "{devices=[2,2]<=[2,2]T(1,0)}");
        for unread in [&[8][..], &[8, 2], &[8, 3, 13, 0, 0, 0, 0], &[0xff; 12]] {
            assert_eq!(text(unread), "HLO sharding");
        }
    }
}
