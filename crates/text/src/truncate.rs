//! Texts cut to a length, always between two characters.

use std::borrow::Cow;

const ELLIPSIS: &str = "…";

/// The beginning of a text, at most `max_bytes` long.
pub fn head(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}

/// The end of a text, at most `max_bytes` long.
pub fn tail(text: &str, max_bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..).unwrap_or_default()
}

/// A text of at most `max_chars` characters: the text itself, or its beginning and `…`. White space before the `…` is
/// left out.
pub fn truncate(text: &str, max_chars: usize) -> Cow<'_, str> {
    let mut chars = text.char_indices();
    let Some(before_last) = max_chars.checked_sub(1) else { return Cow::Borrowed("") };
    match (chars.nth(before_last), chars.next()) {
        (Some((end, _)), Some(_)) => {
            Cow::Owned([text.get(..end).unwrap_or_default().trim_end(), ELLIPSIS].concat())
        }
        _ => Cow::Borrowed(text),
    }
}

/// A text of at most `max_bytes` bytes: the text itself, or its beginning and `…`.
pub fn truncate_bytes(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    match max_bytes.checked_sub(ELLIPSIS.len()) {
        Some(room) => Cow::Owned([head(text, room), ELLIPSIS].concat()),
        None => Cow::Borrowed(head(text, max_bytes)),
    }
}

/// A text on one line of at most `max_chars` characters: white space and control characters become single spaces, and
/// what is longer ends with `…`. It reads no more of the text than it needs.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    let is_gap = |letter: char| letter.is_whitespace() || letter.is_control();
    for word in text.split(is_gap).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
            chars += 1;
        }
        for letter in word.chars() {
            line.push(letter);
            chars += 1;
            if chars > max_chars {
                return truncate(&line, max_chars).into_owned();
            }
        }
    }
    line
}
