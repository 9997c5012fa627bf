//! The words for what is no export: what the verifier found, and what a file of another kind looks like.

use flatbuffers::{ErrorTraceDetail, InvalidFlatbuffer};

use super::read::MAX_TABLE_DEPTH;
use crate::error::{Error, Result};

pub(super) const WHAT_AN_EXPORT_IS: &str =
    "an export is what `jax.export.export(f)(…).serialize()` returns, written to a file in binary mode";
/// Steps that the path to a place deep inside shows at either end.
const MAX_SHOWN_STEPS: usize = 6;
/// Bytes looked at to tell text from binary.
const LOOKED_AT: usize = 512;
const BARE_MODULE: &str =
    "a module alone lacks the platforms and the signature that an export has; write what `jax.export.export(f)(…).serialize()` returns";

/// Refuses what no export starts with.
///
/// # Errors
/// [`crate::ErrorKind::Format`].
pub fn check_start(start: &[u8]) -> Result<()> {
    if let Some(error) = looks_like(start) {
        return Err(error);
    }
    // The place of the root table, behind itself and in words of four bytes.
    match start.first_chunk() {
        Some(root) if matches!(u32::from_le_bytes(*root), 0..4 | 0x8000_0000..) => {
            Err(Error::format("not a JAX export: it does not say where its root table is").at(0).with_hint(WHAT_AN_EXPORT_IS))
        }
        _ => Ok(()),
    }
}

/// The error for a file that is plainly something else; `None` if it could be a damaged export.
pub(super) fn looks_like(bytes: &[u8]) -> Option<Error> {
    let (what, hint) = match bytes {
        [] => ("it is empty", WHAT_AN_EXPORT_IS),
        [b'M', b'L', 0xef, b'R', ..] => ("it looks like MLIR bytecode", BARE_MODULE),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => ("it looks like a zip archive", "unpack it first"),
        [0x1f, 0x8b, ..] => ("it looks like gzip", "decompress it first"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("it looks like zstd", "decompress it first"),
        [0x7f, b'E', b'L', b'F', ..] => ("it looks like an executable", WHAT_AN_EXPORT_IS),
        [0x80, 4 | 5, 0x95, ..] => ("it looks like a Python pickle", WHAT_AN_EXPORT_IS),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => ("it looks like a NumPy array", WHAT_AN_EXPORT_IS),
        _ if is_proto_with_name(bytes) => ("it looks like an HLO protocol buffer", BARE_MODULE),
        _ => match text(bytes)?.trim_start() {
            text if text.starts_with("HloModule") => ("it looks like HLO text", BARE_MODULE),
            text if text.starts_with("module") || text.starts_with("#loc") || text.contains("func.func") => {
                ("it looks like MLIR text", BARE_MODULE)
            }
            _ => ("it looks like text", WHAT_AN_EXPORT_IS),
        },
    };
    Some(Error::format(format!("not a JAX export: {what}")).with_hint(hint))
}

/// Whether a protocol buffer starts here whose first field is a short name, as in `HloModuleProto`.
fn is_proto_with_name(bytes: &[u8]) -> bool {
    match bytes {
        [0x0a, length @ 1..=0x7f, rest @ ..] => {
            rest.get(..usize::from(*length)).is_some_and(|name| name.iter().all(|byte| byte.is_ascii_graphic()))
        }
        _ => false,
    }
}

/// The beginning of the file, if it is text.
fn text(bytes: &[u8]) -> Option<&str> {
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A character may be cut where we stopped looking.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    let is_text = |character: char| !character.is_control() || matches!(character, '\n' | '\r' | '\t');
    text.chars().all(is_text).then_some(text)
}

/// What the verifier found, as an error of ours.
pub(super) fn invalid(error: InvalidFlatbuffer, length: usize) -> Error {
    use InvalidFlatbuffer::{
        ApparentSizeTooLarge, DepthLimitReached, InconsistentUnion, MissingNullTerminator, MissingRequiredField, RangeOutOfBounds,
        SignedOffsetOutOfBounds, TooManyTables, Unaligned, Utf8Error,
    };
    let error = match error {
        MissingRequiredField { required, error_trace } => Error::format(format!("{} has no `{required}`", path(error_trace.as_ref()))),
        InconsistentUnion { error_trace, .. } => Error::format(format!("{} is inconsistent", path(error_trace.as_ref()))),
        Utf8Error { range, error_trace, error } => {
            Error::format(format!("{} is not UTF-8", path(error_trace.as_ref()))).at((range.start + error.valid_up_to()) as u64)
        }
        MissingNullTerminator { range, error_trace } => {
            Error::format(format!("{} has no end", path(error_trace.as_ref()))).at(range.end as u64)
        }
        Unaligned { position, error_trace, .. } => {
            Error::format(format!("{} is not aligned", path(error_trace.as_ref()))).at(position as u64)
        }
        RangeOutOfBounds { range, error_trace } => {
            let message = format!("{} reaches up to byte {}, but the file has {length}", path(error_trace.as_ref()), range.end);
            Error::format(message).at(range.start.min(length) as u64)
        }
        SignedOffsetOutOfBounds { position, error_trace, .. } => {
            Error::format(format!("{} has its list of fields outside of the file", path(error_trace.as_ref()))).at(position as u64)
        }
        TooManyTables | ApparentSizeTooLarge => {
            Error::format(format!("parts overlap: they add up to far more than the file's {length} bytes"))
        }
        // This could well be an export.
        DepthLimitReached => return Error::unsupported(format!("tables nested deeper than {MAX_TABLE_DEPTH} levels")),
    };
    error.context("not a JAX export, or a damaged one").with_hint(WHAT_AN_EXPORT_IS)
}

/// Where the verifier stood: `vjp.in_avals[2].shape`.
fn path(trace: &[ErrorTraceDetail]) -> String {
    let mut path = String::new();
    for (depth, step) in trace.iter().rev().enumerate() {
        match step {
            _ if (MAX_SHOWN_STEPS..trace.len().saturating_sub(MAX_SHOWN_STEPS)).contains(&depth) => {
                if depth == MAX_SHOWN_STEPS {
                    path.push('…');
                }
            }
            ErrorTraceDetail::VectorElement { index, .. } => path.push_str(&format!("[{index}]")),
            ErrorTraceDetail::TableField { field_name: name, .. } | ErrorTraceDetail::UnionVariant { variant: name, .. } => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(name);
            }
        }
    }
    if path.is_empty() { "the root table".to_owned() } else { format!("`{path}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Exported;

    #[test]
    fn files_of_other_kinds_are_called_by_their_name() {
        let long = "é".repeat(LOOKED_AT);
        for (bytes, what) in [
            (&b""[..], "it is empty"),
            (b"ML\xefR\x0dStableHLO_v1.0.0\0", "it looks like MLIR bytecode"),
            (b"PK\x03\x04rest of the archive", "it looks like a zip archive"),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\0", "it looks like gzip"),
            (b"\x80\x05\x95\0\0\0\0\0\0\0\0", "it looks like a Python pickle"),
            (b"\x0a\x05jit_f\x12\x04main", "it looks like an HLO protocol buffer"),
            (b"HloModule jit_f, entry_computation_layout=", "it looks like HLO text"),
            (b"module @jit_f attributes {mhlo.num_partitions = 1", "it looks like MLIR text"),
            (b"# Notes\n\nabout exports", "it looks like text"),
            (&long.as_bytes()[..LOOKED_AT + 1], "it looks like text"),
        ] {
            let error = Exported::read(bytes).unwrap_err();
            assert_eq!(error.to_string(), format!("not a JAX export: {what}"));
            assert!(error.hint().is_some());
        }
        assert!(looks_like(b"\x20\0\0\0\0\0\x1e\0").is_none());
    }

    #[test]
    fn a_trace_into_the_depth_is_shortened() {
        let element = |index| ErrorTraceDetail::VectorElement { index, position: 0 };
        let trace: Vec<_> = (0..20).rev().map(element).collect();
        assert_eq!(path(&trace), "`[0][1][2][3][4][5]…[14][15][16][17][18][19]`");
        assert_eq!(path(&[]), "the root table");
    }
}
