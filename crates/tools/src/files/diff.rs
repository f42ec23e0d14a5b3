//! What a change would look like: a unified diff that is the same every time.

use std::fmt::Write;
use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag};
use tgp_contract::canonical;

/// Lines on both sides, besides what they have in common at their ends, that are still compared one by one. The time
/// for that grows with their product, so beyond it all old lines go and all new ones come.
const MAX_COMPARED_LINES: usize = 5_000;
/// Bytes of a diff that are shown.
const MAX_DIFF_BYTES: usize = 256 * 1024;
const CONTEXT_LINES: usize = 3;

/// A change as text.
pub(crate) struct Difference {
    pub(crate) text: String,
    /// False when the text is only the beginning.
    pub(crate) complete: bool,
}

/// The difference between two contents of a file; nothing stands for no file. What is no text is told by its size and
/// its hash, and what is text on the other side is shown line by line all the same.
pub(crate) fn difference(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Difference {
    let name = |side: &str, content: Option<&[u8]>| match content {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let (from, to) = (name("a", before), name("b", after));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after {
        return capped(String::new());
    }
    let mut text = format!("--- {from}\n+++ {to}\n");
    let mut shown = |name: &str, content| {
        let lines = std::str::from_utf8(content).map(|content| content.split_inclusive('\n').collect());
        lines.unwrap_or_else(|_| {
            let (bytes, hash) = (content.len(), canonical::sha256_hex(content));
            let _ = writeln!(text, "Binary file {name}: {bytes} bytes, SHA-256 {hash}");
            Vec::new()
        })
    };
    let (old, new): (Vec<&str>, Vec<&str>) = (shown(&from, before), shown(&to, after));
    write_hunks(&mut text, &old, &new);
    capped(text)
}

/// The difference between two texts of a file for a person, and whether all of it is shown.
#[must_use]
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> (String, bool) {
    let Difference { text, complete } = difference(path, before.map(str::as_bytes), after.map(str::as_bytes));
    (text, complete)
}

fn capped(mut text: String) -> Difference {
    if text.len() <= MAX_DIFF_BYTES {
        return Difference { text, complete: true };
    }
    text.truncate(text.floor_char_boundary(MAX_DIFF_BYTES));
    if let Some(end) = text.rfind('\n') {
        text.truncate(end + 1);
    }
    Difference { text, complete: false }
}

/// A line ends with `\n` and with nothing else: whoever takes a carriage return for an end would show one line and
/// count two.
fn write_hunks(text: &mut String, old: &[&str], new: &[&str]) {
    for hunk in similar::group_diff_ops(operations(old, new), CONTEXT_LINES) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        let _ = writeln!(text, "@@ -{} +{} @@", place(&old_range), place(&new_range));
        for operation in hunk {
            let (removed, added) = (operation.old_range(), operation.new_range());
            if operation.tag() == DiffTag::Equal {
                write_lines(text, ' ', old.get(removed).unwrap_or_default());
                continue;
            }
            write_lines(text, '-', old.get(removed).unwrap_or_default());
            write_lines(text, '+', new.get(added).unwrap_or_default());
        }
    }
}

fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same_head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same_head;
    let same_tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let compared = old.len() + new.len() - 2 * (same_head + same_tail);
    if compared <= MAX_COMPARED_LINES {
        return similar::capture_diff_slices(Algorithm::Myers, old, new);
    }
    let [old_len, new_len] = [old, new].map(|lines| lines.len() - same_tail - same_head);
    let (old_index, new_index) = (same_head + old_len, same_head + new_len);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: same_head },
        DiffOp::Replace { old_index: same_head, old_len, new_index: same_head, new_len },
        DiffOp::Equal { old_index, new_index, len: same_tail },
    ]
}

/// An empty side names the line before it, and one line needs no count.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        if text.len() > MAX_DIFF_BYTES {
            return;
        }
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}
