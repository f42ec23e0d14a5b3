//! TypeScript and JavaScript: what a string is, whatever way it is written.

use tree_sitter::Node;

use super::reader::Reader;

/// Parts of a text that is put together with `+`; a specifier has a few.
const MAX_PARTS: usize = 32;

/// The content of a string literal; escapes are replaced by what they mean.
pub(super) fn text(reader: &Reader<'_>, literal: Node<'_>) -> String {
    let written = reader.whole_text(literal);
    let quote = |letter: &char| matches!(letter, '"' | '\'' | '`');
    let mut letters = written.chars();
    let Some(opening) = letters.next().filter(quote) else { return written };
    let inside = letters.as_str();
    unescaped(inside.strip_suffix(opening).unwrap_or(inside))
}

/// The text that an expression is, where that is known before the code runs.
pub(super) fn constant(reader: &Reader<'_>, expression: Node<'_>) -> Option<String> {
    let mut known = String::new();
    // What is still to be read, the first part last.
    let mut rest = vec![expression];
    let mut parts = 0;
    while let Some(part) = rest.pop() {
        parts += 1;
        if parts > MAX_PARTS {
            return None;
        }
        match part.kind() {
            "string" => known.push_str(&text(reader, part)),
            "template_string" => {
                let mut cursor = part.walk();
                if part.named_children(&mut cursor).any(|child| child.kind() == "template_substitution") {
                    return None;
                }
                known.push_str(&text(reader, part));
            }
            "parenthesized_expression" | "as_expression" | "satisfies_expression" | "non_null_expression" => {
                rest.push(part.named_child(0)?);
            }
            "binary_expression" if reader.field(part, "operator")? == "+" => {
                rest.push(part.child_by_field_name("right")?);
                rest.push(part.child_by_field_name("left")?);
            }
            _ => return None,
        }
    }
    Some(known)
}

/// Reads the escapes of a string. An invalid escape means its letter.
fn unescaped(written: &str) -> String {
    let mut content = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('\\') {
        content.push_str(before);
        let (letter, behind) = escape(after);
        content.extend(letter);
        rest = behind;
    }
    content.push_str(rest);
    content
}

/// What an escape means, and what follows it.
fn escape(after: &str) -> (Option<char>, &str) {
    let mut letters = after.chars();
    let Some(first) = letters.next() else { return (None, "") };
    let behind = letters.as_str();
    let plain = |letter| (Some(letter), behind);
    match first {
        'n' => plain('\n'),
        't' => plain('\t'),
        'r' => plain('\r'),
        'b' => plain('\u{8}'),
        'f' => plain('\u{c}'),
        'v' => plain('\u{b}'),
        // The line continues.
        '\r' => (None, behind.strip_prefix('\n').unwrap_or(behind)),
        '\n' | '\u{2028}' | '\u{2029}' => (None, behind),
        'x' => number(behind, 2, 16).unwrap_or((Some('x'), behind)),
        'u' => match behind.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((digits, behind)) => (u32::from_str_radix(digits, 16).ok().and_then(char::from_u32), behind),
            None => number(behind, 4, 16).unwrap_or((Some('u'), behind)),
        },
        '0'..='7' => {
            // Up to three digits, of which the first of three is at most 3.
            let most = if first <= '3' { 3 } else { 2 };
            let digits = after.chars().take(most).take_while(|letter| letter.is_digit(8)).count();
            number(after, digits, 8).unwrap_or((Some(first), behind))
        }
        letter => plain(letter),
    }
}

fn number(text: &str, digits: usize, radix: u32) -> Option<(Option<char>, &str)> {
    let (number, behind) = text.split_at_checked(digits)?;
    let value = u32::from_str_radix(number, radix).ok()?;
    Some((char::from_u32(value), behind))
}
