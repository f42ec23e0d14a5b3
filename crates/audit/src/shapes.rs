//! What secrets look like in a text.
//!
//! Every shape is searched for on its own, and each begins with a literal and cannot be broken off by a match of
//! itself: so one pass over a text is linear in its length, whoever wrote it. A single alternation of all shapes would
//! not be, because one shape's long failure would be repeated after every short match of another.

use regex::{Regex, RegexBuilder};

/// A pattern and what stands in the place of its match.
pub(crate) type Shape = (&'static str, &'static str);

pub(crate) const SHAPES: &[Shape] = &[
    // A block without its end is cut off, and still a key.
    (
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:.*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|.*)",
        "[redacted]",
    ),
    (r"(?-u)\bgh[pousr]_[A-Za-z0-9]{16,}", "[redacted]"),
    (r"(?-u)\bgithub_pat_[A-Za-z0-9_]{16,}", "[redacted]"),
    (r"(?-u)\bglpat-[A-Za-z0-9_-]{16,}", "[redacted]"),
    (r"(?-u)\bsk-[A-Za-z0-9_-]{16,}", "[redacted]"),
    (r"(?-u)\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}", "[redacted]"),
    (r"(?-u)\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "[redacted]"),
    (r"(?-u)\bAIza[A-Za-z0-9_-]{35}", "[redacted]"),
    (r"(?-u)\bxox[abeoprs]-[A-Za-z0-9-]{8,}", "[redacted]"),
    (r"(?-u)\bnpm_[A-Za-z0-9]{20,}", "[redacted]"),
    (r"(?-u)\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "[redacted]"),
    (r"(?i-u)\bbearer[ \t]{1,8}[A-Za-z0-9._~+/=-]{6,}", "Bearer [redacted]"),
    (
        r#"(?i)\bauthorization["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?:[a-z-]{2,20}[ \t]{1,8})?[^\s"']+"#,
        "authorization: [redacted]",
    ),
    // The password in `scheme://user:password@host`, up to the last `@` before the path.
    (r#"://([^\s/:@"'<>]*):[^\s/"'<>]+@"#, "://${1}:[redacted]@"),
];

/// Argument names whose values are secrets, as they are compared: lower case, letters and digits only.
pub(crate) const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "privatekey",
    "accesskey",
    "secretkey",
    "credential",
    "credentials",
    "sessionkey",
    "signingkey",
];

/// The pattern of assignments such as `PGPASSWORD=x`, `"api-key": "x"` or `PASSWORD 'x'` for the given names.
pub(crate) fn assignments(names: &[String]) -> String {
    // Between the letters of a name people write nothing, `-` or `_`; where, is not known here.
    let spelled = |name: &String| {
        let letters: Vec<String> =
            name.chars().map(|letter| regex::escape(letter.encode_utf8(&mut [0; 4]))).collect();
        letters.join("[-_]?")
    };
    let names: Vec<String> = names.iter().map(spelled).collect();
    format!(
        r#"(?i)((?:{})["']?(?:[ \t]{{0,4}}[:=][ \t]{{0,4}}["']?|[ \t]{{1,4}}["']))([^\s"'&;,)}}]+)"#,
        names.join("|")
    )
}

/// Enough for all shapes with the longest list of values; a pattern beyond it is refused and not half used.
const MAX_PATTERN_BYTES: usize = 64 << 20;

pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build()
}
