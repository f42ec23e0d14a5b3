//! Small readings of lines: numbers with words, places, paths, colours.

use std::borrow::Cow;

use tgp_contract::RelativePath;

/// Takes the escape sequences of terminals out.
pub(super) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.strip_prefix('[').map_or(part, |sequence| {
            let end = sequence.find(|letter: char| ('@'..='~').contains(&letter));
            end.and_then(|end| sequence.get(end.saturating_add(1)..)).unwrap_or_default()
        });
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}

/// The number in front of `word` in a list such as `1 failed, 2 passed` or `1 failed | 2 passed`.
pub(super) fn number_of(list: &str, words: &[&str]) -> Option<u64> {
    list.split([',', '|', ';']).find_map(|item| {
        let mut parts = item.split_whitespace();
        let number = parts.next()?.parse().ok()?;
        let word = parts.next()?.trim_matches(|letter: char| !letter.is_alphanumeric());
        words.contains(&word).then_some(number)
    })
}

/// The path of `path:line`, `path:line:column` and `path:line:column:`.
pub(super) fn path_of_place(place: &str) -> &str {
    let mut path = place.trim().trim_end_matches(':');
    for _ in 0..2 {
        match path.rsplit_once(':') {
            Some((rest, number))
                if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) =>
            {
                path = rest;
            }
            _ => break,
        }
    }
    path
}

/// A path of the project: relative already, or absolute below `root`. Packages are not part of it.
pub(super) fn project_path(root: Option<&str>, text: &str) -> Option<RelativePath> {
    let text = text.trim();
    let text = text.strip_prefix("file://").unwrap_or(text);
    if text.starts_with("node:") || text.contains("node_modules/") {
        return None;
    }
    let text = if text.starts_with('/') {
        text.strip_prefix(root?.trim_end_matches('/'))?.strip_prefix('/')?
    } else {
        text
    };
    RelativePath::new(text).ok().filter(|path| !path.is_root())
}

/// The place in the last parentheses of a stack line such as `at name (path:1:2)`, or after `at `.
pub(super) fn path_of_frame(line: &str) -> Option<&str> {
    let frame = line.trim().strip_prefix("at ")?;
    let place = match frame.rsplit_once('(') {
        Some((_, place)) => place.trim_end_matches(')'),
        None => frame,
    };
    let path = path_of_place(place);
    (path.len() < place.len()).then_some(path)
}
