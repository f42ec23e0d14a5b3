//! Path prefixes on segment borders, and the tricks by which a path lies about where it leads.
//!
//! What is compared here is what is sent, but a server may decode more than we do: `/v1/..%2fadmin` is one odd file
//! below `/v1` for us and `/admin` for a server that decodes before it splits. So a path that *could* be read as
//! climbing is refused wherever the list restricts paths.

/// Segments in the form in which they are compared: `/v1/` and `/v1` are both `["v1"]`, `/` is empty.
pub(super) fn segments(path: &str) -> Vec<String> {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() { Vec::new() } else { inner.split('/').map(normalise).collect() }
}

/// Whether `path` is `prefix` itself or lies below it.
pub(super) fn is_below(prefix: &[String], path: &str) -> bool {
    let path = segments(path);
    path.len() >= prefix.len() && prefix.iter().zip(&path).all(|(left, right)| left == right)
}

/// Whether some server could read this path as one that climbs or that ends early.
pub(super) fn is_disguised(path: &str) -> bool {
    if has_broken_escape(path.as_bytes()) {
        return true;
    }
    // Decoded until nothing is left to decode: a gateway and the application behind it may each decode once.
    let mut decoded = path.as_bytes().to_vec();
    loop {
        let next = decode(&decoded, |_| true);
        if next.len() == decoded.len() {
            break;
        }
        decoded = next;
    }
    // Overlong encodings such as `%c0%ae` for a dot are not UTF-8.
    let Ok(decoded) = String::from_utf8(decoded) else { return true };
    let plain: String = decoded.chars().map(look_alike).collect::<Vec<_>>().concat();
    plain.chars().any(char::is_control)
        || plain.split('/').any(|segment| {
            // Servlet containers cut path parameters off before they resolve dots: `/v1/..;x/admin`.
            let name = segment.split(';').next().unwrap_or(segment).trim();
            !name.is_empty() && name.chars().all(|letter| letter == '.')
        })
}

/// Letters that servers on some platforms fold into dots and slashes.
fn look_alike(letter: char) -> String {
    match letter {
        '\u{2024}' | '\u{fe52}' | '\u{ff0e}' => ".".to_owned(),
        '\u{2025}' => "..".to_owned(),
        '\\' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff0f}' | '\u{ff3c}' => "/".to_owned(),
        other => other.to_string(),
    }
}

/// RFC 3986 section 6.2.2: escapes of letters that need none are decoded, all other escapes are upper case.
fn normalise(segment: &str) -> String {
    let decoded = decode(segment.as_bytes(), |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
    });
    let mut upper = String::with_capacity(decoded.len());
    let mut hex_digits = 0;
    for letter in String::from_utf8_lossy(&decoded).chars() {
        if letter == '%' {
            hex_digits = 2;
            upper.push(letter);
        } else if hex_digits > 0 {
            hex_digits -= 1;
            upper.push(letter.to_ascii_uppercase());
        } else {
            upper.push(letter);
        }
    }
    upper
}

/// Decodes, in one pass, the escapes of bytes that `wanted` accepts.
fn decode(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(byte) = escape(rest).filter(|byte| wanted(*byte)) {
            decoded.push(byte);
            rest = rest.get(3..).unwrap_or_default();
        } else {
            decoded.push(*first);
            rest = tail;
        }
    }
    decoded
}

/// The byte that the escape at the start of `bytes` encodes.
fn escape(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Catches `%u002e`, which one well-known server decodes, and other escapes that are none.
fn has_broken_escape(bytes: &[u8]) -> bool {
    (0..bytes.len())
        .filter_map(|start| bytes.get(start..))
        .any(|rest| rest.first() == Some(&b'%') && escape(rest).is_none())
}

#[cfg(test)]
mod tests {
    use super::{is_below, is_disguised, segments};

    #[test]
    fn borders_are_segments() {
        let prefix = segments("/v1/");
        for inside in ["/v1", "/v1/", "/v1/x", "/v1//x", "/%76%31/x", "/v1/x;y"] {
            assert!(is_below(&prefix, inside), "{inside}");
        }
        for outside in ["/", "/v10", "/v1x/", "/V1", "//v1/x", "/v1%2fx", "/x/v1", "/v1;x/y", "/v%31%2f", ""]
        {
            assert!(!is_below(&prefix, outside), "{outside}");
        }
        assert!(is_below(&segments("/a%2fb"), "/a%2Fb/c"));
        assert!(is_below(&[], "/anything"));
    }

    #[test]
    fn disguises_are_seen() {
        for path in [
            "/v1/..%2fadmin",
            "/v1/..%2Fadmin",
            "/v1%2f..%2fadmin",
            "/v1/..%5cadmin",
            "/v1/%252e%252e/admin",
            "/v1/%25252e%25252e/admin",
            "/v1/..%252fadmin",
            "/v1/..;/admin",
            "/v1/..;a=b/admin",
            "/v1/.;/admin",
            "/v1/..%3b/admin",
            "/v1/..%20/admin",
            "/v1/..%00/admin",
            "/v1/x%00.json",
            "/v1/x%0d%0ay",
            "/v1/x%250a",
            "/v1/.../admin",
            "/v1/%c0%ae%c0%ae/admin",
            "/v1/%u002e%u002e/admin",
            "/v1/%",
            "/v1/%2",
            "/v1/%EF%BC%8E%EF%BC%8E/admin",
            "/v1/%E2%80%A5/admin",
            "/v1/..%E2%88%95admin",
        ] {
            assert!(is_disguised(path), "{path}");
        }
    }

    #[test]
    fn honest_paths_are_left_alone() {
        for path in [
            "/",
            "/v1/users",
            "/v1/file.tar.gz",
            "/v1/.well-known/x",
            "/v1/..hidden",
            "/v1/a..b",
            "/v1/group%2Fproject",
            "/v1/100%25",
            "/v1/a%20b",
            "/v1/%E4%BD%A0",
            "/v1//x",
            "/v1/x;v=1.0",
            "/v1/~user/(a)/b,c",
        ] {
            assert!(!is_disguised(path), "{path}");
        }
    }
}
