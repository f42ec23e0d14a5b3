//! Matches of a pattern in the text of one file.

use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use tgp_contract::{Code, ToolError};

/// Bytes that a compiled pattern may take; a repeated repetition takes any amount.
const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that the automaton of a search may grow to before it is thrown away and rebuilt.
const MAX_AUTOMATON_BYTES: usize = 8 * 1024 * 1024;
/// Parentheses inside each other in a pattern.
const MAX_NESTING: u32 = 100;
/// Bytes between two checks of the clock.
const STEP_BYTES: usize = 64 * 1024;
/// Bytes of one line that are shown, and how many of them precede the match.
const MAX_SHOWN_BYTES: usize = 1_000;
const SHOWN_BEFORE_BYTES: usize = 200;
const CUT: &str = "…";

/// What is sought, and how.
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) ignore_case: bool,
    pub(super) literal: bool,
    pub(super) multiline: bool,
    pub(super) context: usize,
}

/// A compiled pattern.
pub(super) struct Grep {
    matcher: RegexMatcher,
    searcher: Searcher,
    context: usize,
}

/// One line that matches, or several where a match goes over more than one.
pub(super) struct Hit {
    pub(super) line: u64,
    /// Where the match begins, in characters counted from 1.
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

/// Why a search of a file ended early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The receiver of the hits wants no more.
    Enough,
    /// The time is up.
    Due,
}

impl Grep {
    pub(super) fn new(pattern: &Pattern) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(pattern.ignore_case)
            .fixed_strings(pattern.literal)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_AUTOMATON_BYTES)
            .nest_limit(MAX_NESTING);
        if pattern.multiline {
            builder.line_terminator(None);
        } else {
            builder.crlf(true);
        }
        let matcher = builder.build(&pattern.text).map_err(|error| refused(&error))?;
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(if pattern.multiline {
                LineTerminator::byte(b'\n')
            } else {
                LineTerminator::crlf()
            })
            .multi_line(pattern.multiline)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .build();
        Ok(Self { matcher, searcher, context: pattern.context })
    }

    /// Gives every hit in `content` to `take`, which says whether it wants more.
    pub(super) fn search(
        &mut self,
        content: &[u8],
        is_due: &dyn Fn() -> bool,
        take: &mut dyn FnMut(Hit) -> bool,
    ) -> Result<(), StopReason> {
        let paced = DeadlineReader { rest: content, is_due };
        let mut hits = Hits { content, matcher: &self.matcher, context: self.context, take, enough: false };
        let searched = self.searcher.search_reader(&self.matcher, paced, &mut hits);
        match searched {
            _ if hits.enough => Err(StopReason::Enough),
            Ok(()) => Ok(()),
            Err(_) => Err(StopReason::Due),
        }
    }
}

fn refused(error: &grep_regex::Error) -> ToolError {
    let help = match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => {
            "a match of one line has no line break; set `multiline` to true"
        }
        _ => "write a regular expression of Rust's regex syntax, or set `literal` to true",
    };
    ToolError::new(Code::Validation, format!("the pattern cannot be searched for: {error}"))
        .detail("field", "/pattern")
        .help(help)
}

/// A reader that ends with an error when the time is up, so that no file holds a search for long.
struct DeadlineReader<'a> {
    rest: &'a [u8],
    is_due: &'a dyn Fn() -> bool,
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_due)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let step = buffer.len().min(STEP_BYTES);
        let Some(buffer) = buffer.get_mut(..step) else { return Ok(0) };
        self.rest.read(buffer)
    }
}

struct Hits<'a> {
    content: &'a [u8],
    matcher: &'a RegexMatcher,
    context: usize,
    take: &'a mut dyn FnMut(Hit) -> bool,
    enough: bool,
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let lines = found.bytes();
        let at = self.matcher.find(lines).ok().flatten().map_or(0, |place| place.start());
        // A match that goes over several lines may begin in a later one of them than the first.
        let head = lines.get(..at).unwrap_or_default();
        let line_start = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let column_text = head.get(line_start..).unwrap_or_default();
        let start = usize::try_from(found.absolute_byte_offset()).unwrap_or(usize::MAX);
        let (before, rest) = self.content.split_at_checked(start).unwrap_or_default();
        let after = rest.get(lines.len()..).unwrap_or_default();
        let skipped = head.iter().filter(|byte| **byte == b'\n').count() as u64;
        let hit = Hit {
            line: found.line_number().unwrap_or(1) + skipped,
            column: String::from_utf8_lossy(column_text).chars().count() + 1,
            text: shown(lines.get(line_start..).unwrap_or_default(), at - line_start),
            before: last_lines(before, self.context),
            after: after
                .split_inclusive(|byte| *byte == b'\n')
                .take(self.context)
                .map(|line| shown(line, 0))
                .collect(),
        };
        self.enough = !(self.take)(hit);
        Ok(!self.enough)
    }
}

fn last_lines(text: &[u8], count: usize) -> Vec<String> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() || count == 0 {
        return Vec::new();
    }
    let mut lines: Vec<String> =
        text.rsplit(|byte| *byte == b'\n').take(count).map(|line| shown(line, 0)).collect();
    lines.reverse();
    lines
}

/// A line without its end, cut around byte `at` when it is long.
fn shown(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_SHOWN_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let inside = |byte: &u8| *byte & 0xc0 == 0x80;
    let mut from = at.saturating_sub(SHOWN_BEFORE_BYTES).min(line.len() - MAX_SHOWN_BYTES);
    let mut to = from + MAX_SHOWN_BYTES;
    // Characters of UTF-8 are not cut in two.
    while line.get(from).is_some_and(inside) {
        from += 1;
    }
    while to > from && line.get(to).is_some_and(inside) {
        to -= 1;
    }
    let text = String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    let (head, tail) = (if from > 0 { CUT } else { "" }, if to < line.len() { CUT } else { "" });
    [head, &text, tail].concat()
}
