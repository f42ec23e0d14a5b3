//! What a change would look like: a unified diff that is the same every time.

use std::fmt::Write;
use std::ops::Range;

use similar::DiffTag;
use tgp_contract::canonical;

use super::line_diff::operations;

/// Bytes on both sides up to which a list of all lines is made. Such a list can be sixteen times as large as the text, so
/// longer texts are compared without one: what is the same at both ends stays, and the rest is one change.
const MAX_LISTED_BYTES: usize = 2 << 20;
/// Bytes of a diff that are shown.
const MAX_DIFF_BYTES: usize = 256 * 1024;
const CONTEXT_LINES: usize = 3;

/// A change as text.
pub struct Difference {
    pub text: String,
    /// False when the text is only the beginning.
    pub complete: bool,
}

/// The difference between two contents of a file; `None` means no file. What is not text is described by its size and
/// its hash, and what is text on the other side is shown line by line all the same.
pub fn difference(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Difference {
    difference_with_mode(path, before, after, None)
}

/// The same, with the right to execute the file where it is another afterwards.
pub fn difference_with_mode(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    executable: Option<bool>,
) -> Difference {
    let is_new = before.is_none();
    let name = |side: &str, content: Option<&[u8]>| match content {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let (from, to) = (name("a", before), name("b", after));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after && executable.is_none() {
        return capped(String::new());
    }
    let mut text = format!("--- {from}\n+++ {to}\n");
    if let Some(executable) = executable {
        write_mode(&mut text, is_new, executable);
    }
    if before == after {
        return capped(text);
    }
    let mut shown = |name: &str, content| {
        std::str::from_utf8(content).unwrap_or_else(|_| {
            let (bytes, hash) = (content.len(), canonical::sha256_hex(content));
            let _ = writeln!(text, "Binary file {name}: {bytes} bytes, SHA-256 {hash}");
            ""
        })
    };
    let (old, new) = (shown(&from, before), shown(&to, after));
    if old.len() + new.len() > MAX_LISTED_BYTES {
        write_one_hunk(&mut text, old, new);
    } else {
        let [old, new] = [old, new].map(|content| content.split_inclusive('\n').collect::<Vec<&str>>());
        write_hunks(&mut text, &old, &new);
    }
    capped(text)
}

/// The difference between two texts of a file for a person, and whether all of it is shown.
#[must_use]
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> (String, bool) {
    let Difference { text, complete } = difference(path, before.map(str::as_bytes), after.map(str::as_bytes));
    (text, complete)
}

/// The right to execute, as git writes it.
fn write_mode(text: &mut String, is_new: bool, executable: bool) {
    let [old, new] = if executable { ["100644", "100755"] } else { ["100755", "100644"] };
    let _ = match is_new {
        true => writeln!(text, "new file mode {new}"),
        false => writeln!(text, "old mode {old}\nnew mode {new}"),
    };
}

/// All that differs as one change, without a list of lines.
fn write_one_hunk(text: &mut String, old: &str, new: &str) {
    let (head, tail) = common_ends(old, new);
    let before = old.get(..head).unwrap_or_default();
    let after = old.get(old.len() - tail..).unwrap_or_default();
    let removed = old.get(head..old.len() - tail).unwrap_or_default();
    let added = new.get(head..new.len() - tail).unwrap_or_default();
    let (shown_before, shown_after) = (last_lines(before), first_lines(after));
    let start = count_lines(before) - count_lines(shown_before);
    let around = count_lines(shown_before) + count_lines(shown_after);
    let [old_range, new_range] = [removed, added].map(|side| start..start + around + count_lines(side));
    let _ = writeln!(text, "@@ -{} +{} @@", place(&old_range), place(&new_range));
    for (mark, lines) in [(' ', shown_before), ('-', removed), ('+', added), (' ', shown_after)] {
        write_lines(text, mark, lines.split_inclusive('\n'));
    }
}

/// How many bytes are the same at the beginning and at the end, in whole lines.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let head = if same == old.len() && same == new.len() {
        same
    } else {
        old.as_bytes()
            .get(..same)
            .unwrap_or_default()
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
    };
    let [old, new] = [old, new].map(|text| text.as_bytes().get(head..).unwrap_or_default());
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let end = old.get(old.len() - same..).unwrap_or_default();
    // Before the first line feed the line may begin otherwise on the other side.
    let tail = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| same - at - 1);
    (head, tail)
}

/// The last lines of a text, as many as are shown around a change.
fn last_lines(text: &str) -> &str {
    let ends = text.rmatch_indices('\n').map(|(at, _)| at + 1);
    let start = ends.skip(1).nth(CONTEXT_LINES - 1).unwrap_or(0);
    text.get(start..).unwrap_or_default()
}

/// The first lines of a text, as many as are shown around a change.
fn first_lines(text: &str) -> &str {
    let end = text.match_indices('\n').nth(CONTEXT_LINES - 1).map_or(text.len(), |(at, _)| at + 1);
    text.get(..end).unwrap_or_default()
}

fn count_lines(text: &str) -> usize {
    let ends = text.bytes().filter(|byte| *byte == b'\n').count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

fn capped(mut text: String) -> Difference {
    if text.len() <= MAX_DIFF_BYTES {
        return Difference { text, complete: true };
    }
    text.truncate(tgp_text::head(&text, MAX_DIFF_BYTES).len());
    if let Some(end) = text.rfind('\n') {
        text.truncate(end + 1);
    }
    Difference { text, complete: false }
}

/// A line ends with `\n` and with nothing else: taking a carriage return for an end would show one line and count
/// two.
fn write_hunks(text: &mut String, old: &[&str], new: &[&str]) {
    for hunk in similar::group_diff_ops(operations(old, new), CONTEXT_LINES) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        let _ = writeln!(text, "@@ -{} +{} @@", place(&old_range), place(&new_range));
        for operation in hunk {
            let (removed, added) = (operation.old_range(), operation.new_range());
            if operation.tag() == DiffTag::Equal {
                write_lines(text, ' ', old.get(removed).unwrap_or_default().iter().copied());
                continue;
            }
            write_lines(text, '-', old.get(removed).unwrap_or_default().iter().copied());
            write_lines(text, '+', new.get(added).unwrap_or_default().iter().copied());
        }
    }
}

/// An empty side names the line before it, and one line needs no count.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines<'l>(text: &mut String, mark: char, lines: impl Iterator<Item = &'l str>) {
    for line in lines {
        if text.len() > MAX_DIFF_BYTES {
            return;
        }
        text.push(mark);
        // Of one endless line no more is copied than could be shown.
        text.push_str(tgp_text::head(line, MAX_DIFF_BYTES + 1));
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
