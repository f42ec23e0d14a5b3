//! TypeScript and JavaScript, in modules, scripts and the elements of components.
//!
//! The parser recurses on what is nested and cannot be stopped, so a scan of the bytes refuses what would exhaust its stack
//! first; a file that is refused counts as one that was not read.

mod comments;
mod define;
mod loads;
mod modules;
mod values;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use oxc::allocator::Allocator;
use oxc::ast_visit::Visit;
use oxc::parser::{ParseOptions, Parser, ParserReturn};
use oxc::span::SourceType;
use tgp_text::{NestingCaps, find_deep_nesting, max_depth};

use super::{Import, Language, MAX_PARSE_TIME, Parse};
use walk::Walker;

/// How often a file is read again without a statement that the parser cannot read.
const MAX_REPAIRS: usize = 16;

/// As deep as packages may nest for the compiler, but for what would take the parser long.
const CAPS: NestingCaps = NestingCaps { nesting: 400, chain: 40_000, angles: 1_000 };

/// The most levels that the tree of a file may have, by a count that nothing hides from. Files with more of what can open a
/// level are bundles; the stack of who reads them has room for each.
const MAX_LEVELS: usize = 160_000;

/// So many levels are read in a moment, however they nest: the time of some grows with their square.
const QUICK_LEVELS: usize = 4_000;

/// What one level of a tree takes of the stack, in the parser and in the walk.
const LEVEL_BYTES: usize = 2 << 10;

/// The stack that a thread needs to read a file.
pub(crate) const STACK_BYTES: usize = QUICK_LEVELS * LEVEL_BYTES;

/// Threads that still read a file whose time is over. The parser cannot be stopped, so it is left to its end.
static LATE: AtomicUsize = AtomicUsize::new(0);

/// So many of them leave room for other work.
const MAX_LATE: usize = 2;

pub(super) fn read(language: Language, content: &[u8], parse: &mut Parse) {
    let text = String::from_utf8_lossy(content);
    // The scan can be fooled; what it lets pass has to fit into the stack and to end all the same.
    let levels = max_depth(&text);
    if levels > MAX_LEVELS || find_deep_nesting(&text, &CAPS).is_some() {
        (parse.broken, parse.unparsed) = (true, true);
    } else if levels <= QUICK_LEVELS {
        read_text(language, &text, parse);
    } else {
        *parse = read_in_time(language, text.into_owned(), parse.clone()).unwrap_or_else(|| Parse {
            broken: true,
            unparsed: true,
            ..std::mem::take(parse)
        });
    }
}

/// Returns what was read on a thread of its own; none when that takes too long, or fails.
fn read_in_time(language: Language, text: String, mut parse: Parse) -> Option<Parse> {
    if LATE.load(Ordering::Relaxed) >= MAX_LATE {
        return None;
    }
    let (done, result) = sync_channel(1);
    let late = Arc::new(LateRead::default());
    let watched = Arc::clone(&late);
    let read = move || {
        read_text(language, &text, &mut parse);
        // The one who waited may be gone.
        let _ = done.send(parse);
        drop(watched);
    };
    std::thread::Builder::new().stack_size(MAX_LEVELS * LEVEL_BYTES).spawn(read).ok()?;
    let parsed = result.recv_timeout(MAX_PARSE_TIME);
    if matches!(parsed, Err(RecvTimeoutError::Timeout)) {
        late.count();
    }
    parsed.ok()
}

/// Counts a read in [`LATE`] from the end of its time to that of its thread.
#[derive(Default)]
struct LateRead(AtomicUsize);

impl LateRead {
    fn count(&self) {
        self.0.store(1, Ordering::Relaxed);
        LATE.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for LateRead {
    fn drop(&mut self) {
        LATE.fetch_sub(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn read_text(language: Language, text: &str, parse: &mut Parse) {
    let allocator = Allocator::default();
    let mut parsed = parse_text(&allocator, text, language);
    let mut text = text;
    // What is before and behind a statement that cannot be read is read all the same.
    for _ in 0..MAX_REPAIRS {
        if !parsed.panicked {
            break;
        }
        parse.broken = true;
        let Some(repaired) = without_error(text, &parsed) else { break };
        text = allocator.alloc_str(&repaired);
        parsed = parse_text(&allocator, text, language);
    }
    parse.broken |= !parsed.diagnostics.is_empty();
    parse.unparsed |= parsed.panicked;
    let mut walker = Walker::new(text, language, &parsed.program);
    walker.read_comments(&parsed.program, language);
    walker.visit_program(&parsed.program);
    let mut reader = walker.reader;
    if parsed.diagnostics.is_empty() && differs_by_goal(text) {
        for import in imports_of_both(&allocator, text, language) {
            let is_same = |known: &Import| known.kind == import.kind && known.specifier == import.specifier;
            if !reader.out.imports.iter().any(is_same) {
                reader.out.imports.push(import);
            }
        }
    }
    reader.out.imports.sort_by_key(|import| import.line);
    reader.finish(parse, language);
}

fn parse_once<'a>(allocator: &'a Allocator, text: &'a str, source_type: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        preserve_parens: false,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    Parser::new(allocator, text, source_type).with_options(options).parse()
}

/// Whether a text may be one thing as a module and another one as a script: `<!--` and `-->` are comments of scripts alone,
/// and behind `await`, which is a name in scripts, `/` and `<` begin something in modules.
fn differs_by_goal(text: &str) -> bool {
    let mut waits = text.match_indices("await").filter_map(|(at, word)| text.get(at + word.len()..));
    text.contains("<!--")
        || text.contains("-->")
        || waits.any(|rest| rest.trim_start().starts_with(['/', '<']))
}

/// What a text imports as a module and as a script, where it can be both.
fn imports_of_both(allocator: &Allocator, text: &str, language: Language) -> Vec<Import> {
    let text = allocator.alloc_str(text);
    let source_type = source_type(language);
    let mut imports = Vec::new();
    for source_type in [source_type.with_module(true), source_type.with_script(true)] {
        let parsed = parse_once(allocator, text, source_type);
        if parsed.diagnostics.is_empty() {
            let mut walker = Walker::new(text, language, &parsed.program);
            walker.read_comments(&parsed.program, language);
            walker.visit_program(&parsed.program);
            imports.append(&mut walker.reader.out.imports);
        }
    }
    imports
}

fn source_type(language: Language) -> SourceType {
    match language {
        Language::TypeScript => SourceType::ts(),
        Language::Tsx => SourceType::tsx(),
        _ => SourceType::jsx(),
    }
}

/// Reads a file as a module. Where that fails it is read as a script, which may use some words as names, and as a
/// declaration, which may leave out values; what has the fewest errors is taken.
fn parse_text<'a>(allocator: &'a Allocator, text: &'a str, language: Language) -> ParserReturn<'a> {
    let module = source_type(language);
    let errors = |parsed: &ParserReturn<'_>| (parsed.panicked, parsed.diagnostics.len());
    let mut best = parse_once(allocator, text, module.with_module(true));
    let declaration = (language == Language::TypeScript).then(SourceType::d_ts);
    for source_type in [Some(module.with_script(true)), declaration].into_iter().flatten() {
        if errors(&best) == (false, 0) {
            break;
        }
        let other = parse_once(allocator, text, source_type);
        if errors(&other) < errors(&best) {
            best = other;
        }
    }
    best
}

/// Returns the text with blanks for the statement in which the parser gave up: from the line at whose beginning it seems
/// to begin to the next such line. None where there is nothing left to leave out.
fn without_error(text: &str, parsed: &ParserReturn<'_>) -> Option<String> {
    let labels = parsed.diagnostics.iter().flat_map(|diagnostic| diagnostic.labels.iter());
    let error = labels.map(|label| label.offset() as usize).max().unwrap_or(0).min(text.len());
    let is_start =
        |line: &str| line.starts_with(|first: char| !first.is_whitespace() && !"}])".contains(first));
    let (mut from, mut until) = (0, text.len());
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_start(line) {
            if at <= error {
                from = at;
            } else {
                until = at;
                break;
            }
        }
        at += line.len();
    }
    let bad = text.get(from..until)?;
    if bad.trim().is_empty() {
        return None;
    }
    // Each line and each column of the rest stays.
    let blank: String = bad.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
    Some([text.get(..from)?, &blank, text.get(until..)?].concat())
}
