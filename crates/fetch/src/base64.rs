//! Base64 (RFC 4648 section 4, padded) for bodies that are not text.
//!
//! It is thirty lines, and the only bytes it sees are capped bodies, so it does not earn a dependency.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0_u8; 4];
        for (place, byte) in bits.iter_mut().skip(1).zip(group) {
            *place = *byte;
        }
        let bits = u32::from_be_bytes(bits);
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) & 0x3f;
            let letter = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
            text.push(if position <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Strict: groups of four, padding only at the end, no blanks, no stray bits. `None` for anything else.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (number, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && number + 1 < groups.len()) {
            return None;
        }
        let mut bits = 0_u32;
        for byte in group.iter().take(4 - padding) {
            bits = (bits << 6) | value(*byte)?;
        }
        bits <<= 6 * padding;
        let [_, decoded @ ..] = bits.to_be_bytes();
        let (kept, dropped) = decoded.split_at_checked(3 - padding)?;
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn value(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn rfc_4648_vectors() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn every_byte_survives() {
        let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        for length in 0..bytes.len() {
            assert_eq!(decode(&encode(&bytes[..length])).as_deref(), Some(&bytes[..length]));
        }
    }

    #[test]
    fn sloppy_text_is_refused() {
        for text in
            ["Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zm-_", "Zé=="]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
