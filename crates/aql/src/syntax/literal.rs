//! From the raw letters of a text to what it says: escapes, and the indentation of long texts.

use super::text::{Span, Text};
use super::token::{Piece, Token, Unescaped};
use crate::problem::Findings;

/// A stretch of a text as it was written.
pub(crate) enum Part {
    Raw(Span),
    Hole { tokens: Vec<Token>, span: Span },
}

pub(crate) fn cook(source: &Text, parts: Vec<Part>, long: bool, findings: &mut Findings) -> Vec<Piece> {
    let layout = if long { Dedent::of(source, &parts) } else { Dedent::default() };
    let mut pieces = Vec::new();
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.into_iter().enumerate() {
        match part {
            Part::Hole { tokens, span } => pieces.push(Piece::Hole { tokens, span }),
            Part::Raw(mut span) => {
                if at == 0 && long {
                    span.start = layout.start.max(span.start);
                }
                if at == last && long {
                    span.end = layout.end.min(span.end);
                }
                let begins_line = at == 0 && layout.first_line;
                let ends = at == last;
                let cooked =
                    Unescape { source, layout: &layout, ends, findings, cooked: Unescaped::default() }.run(
                        span,
                        long,
                        begins_line,
                    );
                if !cooked.text.is_empty() {
                    pieces.push(Piece::Text(cooked));
                }
            }
        }
    }
    pieces
}

/// What a long text loses.
#[derive(Default)]
pub(crate) struct Dedent {
    /// The indentation that all its lines have.
    pub indentation: String,
    /// Where its first line begins.
    pub start: usize,
    /// Where its last line ends.
    pub end: usize,
    /// Whether the first line is below the quotes, so that it has an indentation.
    pub first_line: bool,
}

impl Dedent {
    pub fn of(source: &Text, parts: &[Part]) -> Self {
        let mut layout = Dedent { end: usize::MAX, ..Dedent::default() };
        if let Some(Part::Raw(span)) = parts.first() {
            let raw = source.slice(*span);
            let line = raw.find('\n').map(|at| (at, raw.get(..at).unwrap_or_default()));
            if let Some((at, line)) = line
                && is_blank(line)
            {
                layout.start = span.start + at + 1;
                layout.first_line = true;
            }
        }
        if let Some(Part::Raw(span)) = parts.last() {
            let raw = source.slice(*span);
            if let Some(at) = raw.rfind('\n')
                && is_blank(raw.get(at + 1..).unwrap_or_default())
            {
                let before = raw.get(..at).unwrap_or_default();
                layout.end = span.start + before.trim_end_matches('\r').len();
            }
        }
        let mut common: Option<String> = None;
        for (at, part) in parts.iter().enumerate() {
            let Part::Raw(span) = part else { continue };
            let followed = at + 1 < parts.len();
            for indentation in indentations(source.slice(*span), followed) {
                common = Some(match common {
                    None => indentation.to_owned(),
                    Some(known) => shared(&known, indentation),
                });
            }
        }
        layout.indentation = common.unwrap_or_default();
        layout
    }
}

/// Whether a line says nothing.
pub(crate) fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// The blanks at the beginning of every line in `raw` that is not blank. The first stretch is not a line's beginning.
fn indentations(raw: &str, followed: bool) -> impl Iterator<Item = &str> {
    let lines = raw.split('\n').skip(1);
    let count = raw.matches('\n').count();
    lines.enumerate().filter_map(move |(at, line)| {
        let words = line.trim_start_matches([' ', '\t']);
        // Blanks up to a hole are an indentation, since the hole is something.
        let before_hole = followed && at + 1 == count;
        let blank = is_blank(words) && !before_hole;
        (!blank).then(|| line.get(..line.len() - words.len()).unwrap_or_default())
    })
}

fn shared(one: &str, other: &str) -> String {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).map(|(letter, _)| letter).collect()
}

struct Unescape<'a> {
    source: &'a Text,
    layout: &'a Dedent,
    /// Whether the text ends here, and no hole follows.
    ends: bool,
    findings: &'a mut Findings,
    cooked: Unescaped,
}

impl Unescape<'_> {
    fn run(mut self, span: Span, long: bool, mut begins_line: bool) -> Unescaped {
        let mut at = span.start;
        self.mark(at);
        while at < span.end {
            let rest = self.source.slice(Span::new(at, span.end));
            if begins_line {
                begins_line = false;
                at += self.skipped(rest);
                self.mark(at);
                continue;
            }
            let Some(letter) = rest.chars().next() else { break };
            match letter {
                '\\' => {
                    at = self.escape(at, span.end);
                    self.mark(at);
                }
                // However many there are, they are the end of a line.
                '\r' if rest.trim_start_matches('\r').starts_with('\n') => {
                    at += 1;
                    self.mark(at);
                }
                '\n' => {
                    self.cooked.text.push('\n');
                    at += 1;
                    begins_line = long;
                }
                letter => {
                    self.cooked.text.push(letter);
                    at += letter.len_utf8();
                }
            }
        }
        self.cooked
    }

    /// From here on, the text is as at `at`.
    fn mark(&mut self, at: usize) {
        let cooked = self.cooked.text.len();
        if self.cooked.origins.last().is_some_and(|(last, _)| *last == cooked) {
            self.cooked.origins.pop();
        }
        self.cooked.origins.push((cooked, at));
    }

    /// How much of the beginning of a line is not part of the text: all of it where there is nothing but blanks, since
    /// trailing blanks are invisible.
    fn skipped(&self, line: &str) -> usize {
        let first = line.split('\n').next().unwrap_or_default();
        let whole = line.len() > first.len() || self.ends;
        if whole && is_blank(first) {
            return first.len();
        }
        if first.starts_with(&self.layout.indentation) { self.layout.indentation.len() } else { 0 }
    }

    /// Takes an escape, and returns where the text continues.
    fn escape(&mut self, at: usize, end: usize) -> usize {
        let rest = self.source.slice(Span::new(at + 1, end));
        let Some(letter) = rest.chars().next() else {
            return self.wrong(at, end);
        };
        let plain = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '"' | '\\' | '{' => letter,
            'u' => {
                let digits =
                    rest.strip_prefix("u{").and_then(|rest| rest.split_once('}')).map(|(digits, _)| digits);
                let found = digits
                    .filter(|digits| (1..=6).contains(&digits.len()))
                    .and_then(|digits| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
                let Some((found, digits)) = found.zip(digits) else {
                    return self.wrong(at, end);
                };
                self.cooked.text.push(found);
                return at + 1 + "u{}".len() + digits.len();
            }
            _ => return self.wrong(at, end),
        };
        self.cooked.text.push(plain);
        at + 1 + letter.len_utf8()
    }

    fn wrong(&mut self, at: usize, end: usize) -> usize {
        let letter = self.source.slice(Span::new(at + 1, end)).chars().next();
        let width = letter.filter(|letter| *letter != '\n').map_or(0, char::len_utf8);
        let span = Span::new(at, at + 1 + width);
        let written = self.source.slice(span).escape_debug().collect::<String>().replace("\\\\", "\\");
        self.findings.add(
            self.source
                .problem(span, "wrong-escape", format!("`{written}` is not an escape"))
                .help("there are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\`, `\\{` and `\\u{1F600}`"),
        );
        span.end
    }
}
