//! The files that a pattern means (`import.meta.glob`).

use globset::{GlobBuilder, GlobMatcher};

use super::Link;
use super::imports::{Module, Resolved};
use crate::ingest::language::{normalise, parent};
use crate::ingest::parse::{Import, ImportKind};

/// Files that one pattern means; of more than these it is only known when the code runs.
const MAX_FILES: usize = 2000;

/// A pattern that a file imports.
pub(crate) struct Pattern {
    /// The directory that all it means is below.
    pub(crate) directory: String,
    wanted: GlobMatcher,
    without: Vec<GlobMatcher>,
}

impl Pattern {
    /// `None` for another import, and for a pattern that is not a path: an alias, or one that leads out of the project.
    pub(crate) fn of(file: &str, import: &Import) -> Option<Self> {
        if import.kind != ImportKind::Pattern {
            return None;
        }
        let wanted = path(file, &import.specifier)?;
        let fixed = wanted.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '!', '(', '\\']));
        let fixed: Vec<&str> = fixed.collect();
        // The last part is a file, whether it has a star or not.
        let directories = fixed.len().min(wanted.matches('/').count());
        let directory = fixed.get(..directories)?.join("/");
        let without = import.names.iter().map(|name| {
            let pattern = name.there.trim_start_matches('!');
            matcher(&path(file, pattern).unwrap_or_else(|| pattern.to_owned()))
        });
        Some(Self { directory, wanted: matcher(&wanted)?, without: without.collect::<Option<_>>()? })
    }

    pub(crate) fn means(&self, path: &str) -> bool {
        self.wanted.is_match(path) && !self.without.iter().any(|without| without.is_match(path))
    }
}

/// A pattern as one of paths of the project.
fn path(file: &str, pattern: &str) -> Option<String> {
    match pattern.strip_prefix('/') {
        // Bundlers take it for a path from the root.
        Some(rest) => normalise("", rest),
        None if pattern.starts_with("./") || pattern.starts_with("../") => normalise(parent(file), pattern),
        None => None,
    }
}

fn matcher(pattern: &str) -> Option<GlobMatcher> {
    Some(GlobBuilder::new(pattern).literal_separator(true).build().ok()?.compile_matcher())
}

pub(super) fn resolve(link: &Link<'_>, file: &str, import: &Import) -> Resolved {
    let Some(pattern) = Pattern::of(file, import) else { return Resolved::nothing(None) };
    let mut files = link.below(&pattern.directory);
    files.retain(|path| path != file && pattern.means(path));
    if files.is_empty() || files.len() > MAX_FILES {
        return Resolved::nothing(None);
    }
    Resolved { module: Module { files, inner: String::new() }, ..Resolved::default() }
}
