//! Names for what the engine leaves nameless: `args.items.map is not a function` for its `not a function`.
//!
//! The engine knows where a call failed, not what was called. Its position is that of the last name it read before the
//! call: the name of the function, or a name among the arguments. The expression is found in the source from there.

use super::modules;

/// Sources beyond this are not searched; a tool's own are far smaller.
const MAX_SOURCE_BYTES: usize = 512 * 1024;
/// The longest expression that is shown.
const MAX_SHOWN_CHARS: usize = 80;
/// Words before a parenthesis that is not a call's.
const NOT_CALLEES: [&str; 9] =
    ["if", "for", "while", "switch", "catch", "function", "return", "typeof", "await"];

/// The message of an engine error, with the expression that it is about where that can be found.
pub(super) fn name_expression(name: &str, message: &str, stack: &str) -> String {
    let subject = match (name, message) {
        ("TypeError", "not a function" | "not a constructor") => callee(stack),
        ("TypeError", "value is not iterable") => {
            iterated(stack).map(|text| format!("{text} is not iterable"))
        }
        _ => None,
    };
    subject.unwrap_or_else(|| message.to_owned())
}

/// The first frame of a stack when it is in a module whose source is here: the tokens, and the one it names.
fn failed_at(stack: &str) -> Option<(Tokens<'static>, usize)> {
    let frame = stack.lines().next()?.trim();
    let place = frame.rsplit_once(" (").map_or(frame, |(_, place)| place.trim_end_matches(')'));
    let (place, column) = place.trim_start_matches("at ").rsplit_once(':')?;
    let (id, line) = place.rsplit_once(':')?;
    let source = modules::source_of(id);
    if source.is_empty() || source.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let text = source.split('\n').nth(line.checked_sub(1)?)?;
    let line_start = text.as_ptr() as usize - source.as_ptr() as usize;
    let in_line = text.char_indices().nth(column.checked_sub(1)?).map_or(text.len(), |(at, _)| at);
    let tokens = Tokens::of(source);
    let at = tokens.list.iter().position(|token| token.start == line_start + in_line)?;
    Some((tokens, at))
}

fn iterated(stack: &str) -> Option<String> {
    let (tokens, mut at) = failed_at(stack)?;
    // The compiler puts a helper around some lists: `__spread(rows, "push", list)`.
    if tokens.text(at).starts_with("__spread") && tokens.text(at + 1) == "(" {
        at += 6;
    }
    let end = tokens.chain_end(at);
    (tokens.text(end + 1) != "(").then(|| tokens.shown(tokens.chain_start(at), end))
}

fn callee(stack: &str) -> Option<String> {
    let (tokens, at) = failed_at(stack)?;
    let end = tokens.chain_end(at);
    let inner = matches!(tokens.text(end + 1), "(" | "`").then(|| (tokens.chain_start(at), end));
    if let Some((start, end)) = inner
        && tokens.text(start.wrapping_sub(1)) == "new"
    {
        return Some(format!("{} is not a constructor", tokens.shown(start, end)));
    }
    let outer = tokens.enclosing_call(at);
    match (inner, outer) {
        // What is passed to a call may itself be the call that failed, or the last name before the one that did.
        (Some(inner), Some(outer)) if tokens.is_last_name(end + 1, outer.1 + 1) => Some(format!(
            "not a function: {} or {}",
            tokens.shown(inner.0, inner.1),
            tokens.shown(outer.0, outer.1)
        )),
        (Some((start, end)), _) | (None, Some((start, end))) => {
            Some(format!("{} is not a function", tokens.shown(start, end)))
        }
        (None, None) => None,
    }
}

#[derive(Clone, Copy)]
struct Token {
    start: usize,
    end: usize,
    is_word: bool,
}

/// The tokens of a source: words, literals and punctuation, without blanks and comments.
struct Tokens<'a> {
    source: &'a str,
    list: Vec<Token>,
}

impl<'a> Tokens<'a> {
    fn of(source: &'a str) -> Self {
        let bytes = source.as_bytes();
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let is_word =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80;
        let mut list: Vec<Token> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            match byte(at) {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at += 1;
                    continue;
                }
                b'/' if byte(at + 1) == b'/' => {
                    at =
                        source.get(at..).and_then(|rest| rest.find('\n')).map_or(bytes.len(), |end| at + end);
                    continue;
                }
                b'/' if byte(at + 1) == b'*' => {
                    let end = source.get(at + 2..).and_then(|rest| rest.find("*/"));
                    at = end.map_or(bytes.len(), |end| at + end + 4);
                    continue;
                }
                quote @ (b'"' | b'\'') => {
                    at += 1;
                    // A quote in a template or a pattern ends with its line.
                    while at < bytes.len() && byte(at) != quote && byte(at) != b'\n' {
                        at += if byte(at) == b'\\' { 2 } else { 1 };
                    }
                    at += 1;
                }
                first if is_word(first) => {
                    while at < bytes.len() && is_word(byte(at)) {
                        at += 1;
                    }
                }
                b'?' if byte(at + 1) == b'.' => at += 2,
                b'=' if byte(at + 1) == b'>' => at += 2,
                _ => at += 1,
            }
            list.push(Token { start, end: at.min(bytes.len()), is_word: is_word(byte(start)) });
        }
        Self { source, list }
    }

    fn text(&self, at: usize) -> &'a str {
        self.list.get(at).and_then(|token| self.source.get(token.start..token.end)).unwrap_or("")
    }

    fn is_word(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|token| token.is_word)
    }

    /// The bracket that closes or opens the one at `at`, looking in one direction.
    fn partner(&self, at: usize, forward: bool) -> Option<usize> {
        let mut depth = 0_usize;
        let mut at = at;
        loop {
            match self.text(at) {
                "(" | "[" | "{" if forward => depth += 1,
                ")" | "]" | "}" if !forward => depth += 1,
                "(" | "[" | "{" | ")" | "]" | "}" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                "" => return None,
                _ => {}
            }
            at = if forward { at + 1 } else { at.checked_sub(1)? };
        }
    }

    /// The last token of the chain of members that goes on at `at`: `a.b?.c['d']`.
    fn chain_end(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            match self.text(end + 1) {
                "." | "?." if self.is_word(end + 2) => end += 2,
                "[" => match self.partner(end + 1, true) {
                    Some(close) => end = close,
                    None => return end,
                },
                _ => return end,
            }
        }
    }

    /// The first token of the chain that `at` belongs to.
    fn chain_start(&self, at: usize) -> usize {
        let mut start = at;
        loop {
            let Some(before) = start.checked_sub(1) else { return start };
            let found = match self.text(before) {
                "." | "?." => self.operand_start(before),
                "(" | "[" => None,
                _ if matches!(self.text(start), "(" | "[") => self.operand_start(start),
                _ => None,
            };
            match found {
                Some(first) => start = first,
                None => return start,
            }
        }
    }

    /// The first token of the operand that ends before `at`.
    fn operand_start(&self, at: usize) -> Option<usize> {
        let mut at = at;
        loop {
            let last = at.checked_sub(1)?;
            if !matches!(self.text(last), ")" | "]") {
                return self.is_word(last).then_some(last);
            }
            let open = self.partner(last, false)?;
            if !self.is_operand_end(open.checked_sub(1)?) {
                return Some(open);
            }
            at = open;
        }
    }

    /// Whether something that can be called or indexed ends at `at`.
    fn is_operand_end(&self, at: usize) -> bool {
        matches!(self.text(at), ")" | "]") || (self.is_word(at) && !NOT_CALLEES.contains(&self.text(at)))
    }

    /// What the call is called on whose arguments `at` is among, within the same function.
    fn enclosing_call(&self, at: usize) -> Option<(usize, usize)> {
        let mut at = at.checked_sub(1)?;
        loop {
            match self.text(at) {
                ")" | "]" | "}" => at = self.partner(at, false)?,
                "(" => {
                    let end = at.checked_sub(1)?;
                    if self.is_operand_end(end) {
                        let start = self.operand_start(at)?;
                        return Some((self.chain_start(start), end));
                    }
                }
                // The body of another function, or another statement.
                "{" if matches!(self.text(at.checked_sub(1)?), ")" | "=>") => return None,
                "=>" | ";" | "" => return None,
                _ => {}
            }
            at = at.checked_sub(1)?;
        }
    }

    /// Whether no name is read between `from` and the end of the call whose parenthesis opens at `open`.
    fn is_last_name(&self, from: usize, open: usize) -> bool {
        let (Some(after), Some(close)) = (self.partner(from, true), self.partner(open, true)) else {
            return true;
        };
        let has_function = (after..close).any(|at| matches!(self.text(at), "=>" | "function"));
        has_function || !(after..close).any(|at| self.is_word(at))
    }

    fn shown(&self, start: usize, end: usize) -> String {
        let span = self.list.get(start).zip(self.list.get(end));
        let text = span.and_then(|(first, last)| self.source.get(first.start..last.end)).unwrap_or("");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".");
        let count = text.chars().count();
        if count <= MAX_SHOWN_CHARS {
            return text;
        }
        format!("…{}", text.chars().skip(count - MAX_SHOWN_CHARS).collect::<String>())
    }
}
