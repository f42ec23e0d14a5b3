//! Reads a source into a tree.

use oxc::allocator::Allocator;
use oxc::parser::{ParseOptions, Parser, ParserReturn};
use oxc::span::SourceType;

/// Parses a source. Where only a loop or a declaration awaits at the top (`for await`, `await using`), the parser takes
/// the source for a script without `await`, so that such a source is read once more as a module.
pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    source_type: SourceType,
    options: ParseOptions,
) -> ParserReturn<'a> {
    let is_clean = |parsed: &ParserReturn<'_>| !parsed.panicked && parsed.diagnostics.is_empty();
    let parsed = Parser::new(allocator, source, source_type).with_options(options).parse();
    if is_clean(&parsed) || !source_type.is_unambiguous() || !source.contains("await") {
        return parsed;
    }
    let as_module =
        Parser::new(allocator, source, source_type.with_module(true)).with_options(options).parse();
    if is_clean(&as_module) { as_module } else { parsed }
}
