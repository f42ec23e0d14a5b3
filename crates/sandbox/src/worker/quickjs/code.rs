//! A module's bytecode with the JavaScript it was made from, in one piece of memory.

use crate::protocol::EmitRequest;

/// Bytes of the source's length, at the end.
const LENGTH_BYTES: usize = 4;

/// Bytecode, and behind it the source: an error can then name the expression that failed. A library goes without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) struct CodeWithSource {
    pub(super) bytecode: &'static [u8],
    pub(super) source: &'static str,
}

impl CodeWithSource {
    /// The bytes as they are cached and sent: bytecode, source, length of the source.
    pub(in crate::worker) fn write(mut bytecode: Vec<u8>, request: &EmitRequest) -> Vec<u8> {
        let source = if request.keep_debug_info { request.code.as_str() } else { "" };
        let length = u32::try_from(source.len()).unwrap_or(0);
        if length > 0 {
            bytecode.extend_from_slice(source.as_bytes());
        }
        bytecode.extend_from_slice(&length.to_le_bytes());
        bytecode
    }

    /// What [`Self::write`] wrote; without a source where the bytes are something else.
    pub(super) fn read(bytes: &'static [u8]) -> Self {
        let split = || {
            let (rest, length) = bytes.split_at_checked(bytes.len().checked_sub(LENGTH_BYTES)?)?;
            let length = u32::from_le_bytes(length.try_into().ok()?);
            let (bytecode, source) = rest.split_at_checked(rest.len().checked_sub(length as usize)?)?;
            Some(Self { bytecode, source: std::str::from_utf8(source).ok()? })
        };
        split().unwrap_or(Self { bytecode: bytes, source: "" })
    }
}
