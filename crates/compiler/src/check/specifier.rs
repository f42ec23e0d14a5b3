//! Which module a specifier names, and whether a tool may have it.

use crate::builtin::{CORE, STANDARD, TEST, foreign_name, is_test_file};
use crate::names::{is_listed, is_node_module};

/// Why a specifier is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `fs`, `node:fs`, `fs/promises`.
    NodeModule,
    /// `@tgp/core`, which is for `tgp.config.ts`.
    Core,
    /// `@tgp/test`, which is for test files.
    Test,
    /// A package the configuration does not list.
    NotListed,
    /// A relative path that climbs above the tool root.
    LeavesRoot,
    /// `/etc/passwd`.
    Absolute,
    /// `https://…`, `file:…`, `data:…`.
    Url,
    /// Empty, or with characters no module name has.
    Malformed,
}

/// Judges a specifier in a module with the given id. A match is by segments: `zod` allows `zod/v4`, never `zod-evil`.
pub(super) fn refusal(specifier: &str, importer: &str, allowed: &[String]) -> Option<Refusal> {
    if specifier.is_empty() || specifier.contains(['\\', '\0', '?', '#', '%']) {
        return Some(Refusal::Malformed);
    }
    if is_relative(specifier) {
        let directory = importer.rsplit_once('/').map_or("", |(directory, _)| directory);
        return leaves_root(directory.split('/').chain(specifier.split('/'))).then_some(Refusal::LeavesRoot);
    }
    if let Some(path) = specifier.strip_prefix("/lib/") {
        return leaves_root(path.split('/')).then_some(Refusal::LeavesRoot);
    }
    if specifier == STANDARD.0 {
        return None;
    }
    if specifier == CORE.0 {
        return Some(Refusal::Core);
    }
    if specifier == TEST.0 {
        return (!is_test_file(importer)).then_some(Refusal::Test);
    }
    if specifier.starts_with('/') {
        return Some(Refusal::Absolute);
    }
    if specifier.starts_with("node:") {
        return Some(Refusal::NodeModule);
    }
    // Whether there is such a module, the module graph says.
    if let Some(name) = foreign_name(specifier) {
        return (name.is_empty() || name.contains(['/', ':'])).then_some(Refusal::Malformed);
    }
    if specifier.contains(':') {
        return Some(Refusal::Url);
    }
    if specifier.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Some(Refusal::Malformed);
    }
    if allowed.iter().any(|entry| is_listed(specifier, entry)) {
        return None;
    }
    Some(if is_node_module(specifier) { Refusal::NodeModule } else { Refusal::NotListed })
}

fn is_relative(specifier: &str) -> bool {
    matches!(specifier, "." | "..") || specifier.starts_with("./") || specifier.starts_with("../")
}

fn leaves_root<'a>(segments: impl Iterator<Item = &'a str>) -> bool {
    let mut depth = 0_usize;
    for segment in segments {
        match segment {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}
