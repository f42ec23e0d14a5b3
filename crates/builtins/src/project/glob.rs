//! Globs for paths, as people write them.

use globset::{GlobBuilder, GlobMatcher};
use tgp_contract::{Code, RelativePath, ToolError};

/// A longer pattern is a list of files, which need not be sought.
pub(super) const MAX_GLOB_CHARACTERS: usize = 1_024;

/// One compiled glob.
pub(super) struct Glob {
    matcher: GlobMatcher,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        // A name alone is meant at any depth.
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build().map_err(|error| {
            ToolError::new(Code::Validation, format!("invalid glob `{pattern}`: {}", error.kind()))
                .detail("field", "/pattern")
                .help("write `*` for a part of a name, `**` for directories, `{a,b}` for alternatives")
        })?;
        Ok(Self { matcher: glob.compile_matcher() })
    }

    /// Whether `path`, seen from `start`, has the shape.
    pub(super) fn fits(&self, start: &RelativePath, path: &RelativePath) -> bool {
        let skip = if start.is_root() { 0 } else { start.as_str().len() + 1 };
        path.as_str().get(skip..).is_some_and(|below| self.matcher.is_match(below))
    }
}
