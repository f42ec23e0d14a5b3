//! One piece of text for another, literally.

use tgp_contract::{Code, RelativePath, ToolError};

use super::MAX_HOST_FILE_BYTES;

/// The most lines that an ambiguous search names; more would not help to choose.
const MAX_LINES_NAMED: usize = 100;

/// The search text and its replacement. Both are literal.
#[derive(Clone, Debug)]
pub struct Replacement {
    pub search: String,
    pub replace: String,
    /// Every occurrence, and not the only one.
    pub all: bool,
}

/// The text after one replacement, and how many places changed.
pub fn patch(
    path: &RelativePath,
    text: &str,
    replacement: &Replacement,
) -> Result<(String, usize), ToolError> {
    let Replacement { search, replace, all } = replacement;
    if *all {
        let count = text.matches(search.as_str()).count();
        if count == 0 {
            return Err(absent(path, text, search));
        }
        let size = (text.len() - count * search.len()) as u64 + count as u64 * replace.len() as u64;
        if size > MAX_HOST_FILE_BYTES {
            let message =
                format!("`{path}` would have {size} bytes, more than the {MAX_HOST_FILE_BYTES} allowed");
            return Err(ToolError::new(Code::Validation, message).help("replace fewer places, or with less"));
        }
        return Ok((text.replace(search.as_str(), replace), count));
    }
    let mut places = occurrences(text, search);
    let Some(start) = places.next() else { return Err(absent(path, text, search)) };
    let others: Vec<usize> = places.by_ref().take(MAX_LINES_NAMED - 1).collect();
    if others.is_empty() {
        let (before, rest) = text.split_at(start);
        let after = rest.get(search.len()..).unwrap_or_default();
        return Ok(([before, replace.as_str(), after].concat(), 1));
    }
    let count = 1 + others.len() + places.count();
    let lines: Vec<usize> = std::iter::once(start)
        .chain(others)
        .map(|start| text.get(..start).unwrap_or_default().matches('\n').count() + 1)
        .collect();
    let message = format!("the search text is ambiguous in `{path}`: {count} matches");
    Err(ToolError::new(Code::Validation, message)
        .detail("matches", count)
        .detail("lines", lines)
        .help("add the lines around the one you mean, so that the text occurs once"))
}

fn absent(path: &RelativePath, text: &str, search: &str) -> ToolError {
    let message = format!("the search text does not occur in `{path}` (0 matches)");
    let other_ends = search.contains('\n')
        && text.contains("\r\n")
        && !search.contains("\r\n")
        && text.contains(&search.replace('\n', "\r\n"));
    let help = if other_ends {
        "the lines of this file end with \\r\\n; write the search text so"
    } else {
        "read the file again and copy the text exactly, with its white space"
    };
    ToolError::new(Code::Validation, message).detail("matches", 0).help(help)
}

/// Where `search` begins, overlapping occurrences included: two readings of one place are ambiguous too.
fn occurrences<'t>(text: &'t str, search: &'t str) -> impl Iterator<Item = usize> + 't {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(search)?;
        from = start + text.get(start..)?.chars().next().map_or(1, char::len_utf8);
        Some(start)
    })
}
