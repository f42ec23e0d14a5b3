//! Caps on source before it is parsed.
//!
//! The parser and everything after it recurse on the tree, so hostile nesting would exhaust the stack and abort the
//! process. A scan of the bytes finds it first; source that is made to fool it ends in a worker that dies alone.

use oxc::span::Span;
use tgp_contract::Finding;
use tgp_text::{DeepNesting, NestingCaps, find_deep_nesting};

use crate::places::LineTable;
use crate::{MAX_SOURCE_BYTES, SourceRole};

/// Larger files of packages are refused.
pub(crate) const MAX_LIBRARY_BYTES: usize = 4 * 1024 * 1024;

fn caps(role: SourceRole) -> NestingCaps {
    match role {
        SourceRole::Tool | SourceRole::Config => NestingCaps { nesting: 200, chain: 4_000, angles: 1_000 },
        SourceRole::Library => NestingCaps { nesting: 400, chain: 40_000, angles: 20_000 },
    }
}

/// Refuses source that is too large or nested too deeply.
pub(crate) fn refuse_runaway(source: &str, role: SourceRole, table: &LineTable<'_>) -> Option<Finding> {
    let limit = if role == SourceRole::Library { MAX_LIBRARY_BYTES } else { MAX_SOURCE_BYTES };
    if source.len() > limit {
        return Some(table.refusal(
            Span::new(0, 0),
            format!("the source has {} bytes, more than the {limit} allowed", source.len()),
            "larger sources are refused before they are parsed",
            "split it into several modules, and read data from a file instead of writing it into the source"
                .to_owned(),
        ));
    }
    let caps = caps(role);
    let (offset, message, fix) = match find_deep_nesting(source, &caps)? {
        DeepNesting::Nesting(offset) => (
            offset,
            format!("brackets are nested more than {} deep", caps.nesting),
            "move the inner parts into functions or variables of their own",
        ),
        DeepNesting::Chain(offset) => (
            offset,
            format!("an expression goes on for more than {} tokens", caps.chain),
            "split it into several statements, or build it from an array in a loop",
        ),
    };
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    let reason = "deeper nesting exhausts the compiler's stack";
    Some(table.refusal(Span::new(offset, offset), message, reason, fix.to_owned()))
}
