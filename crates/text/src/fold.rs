//! Names as the most forgiving file system compares them.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, is_nfc, is_nfkc};

/// Code points that some file systems leave out when they compare names.
const IGNORED: &[char] = &[
    '\u{00ad}', '\u{034f}', '\u{061c}', '\u{180e}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}',
    '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2060}', '\u{2061}',
    '\u{2062}', '\u{2063}', '\u{2064}', '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}',
    '\u{206f}', '\u{fe0f}', '\u{feff}',
];

/// Returns a text in which letters are composed (NFC): `é` is one character, and not `e` with an accent behind it.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Returns a text with letters for all that is compatible with them (NFKC), as Python compares identifiers: `ｗ` is `w`.
#[must_use]
pub fn compatible(text: &str) -> Cow<'_, str> {
    if is_nfkc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) }
}

/// Returns the name as the most forgiving file system reads it: composed, without case, without invisible code points and
/// without trailing dots and spaces.
#[must_use]
pub fn fold_name(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase() && byte != b'~';
    if name.bytes().all(plain) && !name.ends_with(['.', ' ']) {
        return Cow::Borrowed(name);
    }
    let mut folded = String::with_capacity(name.len());
    for letter in composed(name).chars() {
        match letter {
            'ſ' => folded.push('s'),
            'ß' | 'ẞ' => folded.push_str("ss"),
            'ﬀ' => folded.push_str("ff"),
            'ﬁ' => folded.push_str("fi"),
            'ﬂ' => folded.push_str("fl"),
            'ﬃ' => folded.push_str("ffi"),
            'ﬄ' => folded.push_str("ffl"),
            'ﬅ' | 'ﬆ' => folded.push_str("st"),
            other if IGNORED.contains(&other) => {}
            other => folded.extend(other.to_lowercase()),
        }
    }
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    // What was left out may have stood between a letter and its accent.
    if !is_nfc(&folded) {
        folded = folded.nfc().collect();
    }
    // The short name that one family of file systems gives to `.git`.
    if folded == "git~1" { Cow::Borrowed(".git") } else { Cow::Owned(folded) }
}
