//! What a change would look like: a unified diff that is the same every time.

use std::fmt::Write;

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

/// The difference between two contents of a file; nothing stands for no file.
pub(crate) fn difference(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Difference {
    let name = |side: &str, content: Option<&[u8]>| match content {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let (from, to) = (name("a", before), name("b", after));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let text = match (std::str::from_utf8(before), std::str::from_utf8(after)) {
        _ if before == after => String::new(),
        (Ok(old), Ok(new)) => text_difference(old, new, &from, &to),
        _ => format!("Binary files {from} and {to} differ\n"),
    };
    capped(text)
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

fn text_difference(old: &str, new: &str, from: &str, to: &str) -> String {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let same_head = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
    let rest = old_lines.len().min(new_lines.len()) - same_head;
    let same_tail =
        old_lines.iter().rev().zip(new_lines.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let compared = old_lines.len() + new_lines.len() - 2 * (same_head + same_tail);
    if compared <= MAX_COMPARED_LINES {
        return similar::TextDiff::from_lines(old, new)
            .unified_diff()
            .context_radius(CONTEXT_LINES)
            .header(from, to)
            .to_string();
    }
    one_hunk([&old_lines, &new_lines], same_head, same_tail, from, to)
}

/// Everything between the common ends as one change.
fn one_hunk(sides: [&[&str]; 2], same_head: usize, same_tail: usize, from: &str, to: &str) -> String {
    let first = same_head.saturating_sub(CONTEXT_LINES);
    let shown_tail = same_tail.min(CONTEXT_LINES);
    let [old, new] = sides.map(|lines| lines.len() - same_tail);
    let range = |end: usize| {
        let lines = end + shown_tail - first;
        // An empty side names the line before it.
        format!("{},{lines}", if lines == 0 { first } else { first + 1 })
    };
    let mut text = format!("--- {from}\n+++ {to}\n@@ -{} +{} @@\n", range(old), range(new));
    let [old_lines, new_lines] = sides;
    let mut lines = |mark: char, lines: &[&str]| {
        for line in lines {
            if text.len() > MAX_DIFF_BYTES {
                return;
            }
            let _ = write!(text, "{mark}{line}");
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    lines(' ', old_lines.get(first..same_head).unwrap_or_default());
    lines('-', old_lines.get(same_head..old).unwrap_or_default());
    lines('+', new_lines.get(same_head..new).unwrap_or_default());
    lines(' ', old_lines.get(old..old + shown_tail).unwrap_or_default());
    text
}
