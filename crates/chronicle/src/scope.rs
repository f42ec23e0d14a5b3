//! Which names chronicles may have.

use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};
use tgp_contract::{RelativePath, has_chronicle_name, is_in_chronicle_tree};

use crate::failure::Failure;

/// More globs than a person writes; each one costs every path a match.
const MAX_GLOBS: usize = 64;
/// Git's own files belong to git.
const GIT: &str = ".git";
/// The characters that make a name a pattern.
const SPECIAL: [char; 6] = ['*', '?', '[', '{', '\\', '!'];

/// The scope guard.
#[derive(Debug)]
pub(crate) struct Scope {
    patterns: Vec<Pattern>,
    text: String,
    /// The deepest directories that hold all that the globs can match.
    pub(crate) bases: Vec<RelativePath>,
}

impl Scope {
    pub(crate) fn new(globs: &[String]) -> Result<Self, Failure> {
        if globs.len() > MAX_GLOBS {
            return Err(Failure::Scope(format!("{} globs, at most {MAX_GLOBS}", globs.len())));
        }
        let patterns = globs.iter().map(|glob| Pattern::new(glob)).collect::<Result<Vec<_>, _>>()?;
        let bases: Vec<RelativePath> = patterns.iter().map(|pattern| pattern.base.clone()).collect();
        // A base inside another is walked with it.
        let outer: Vec<RelativePath> = bases
            .iter()
            .filter(|base| !bases.iter().any(|other| other != *base && base.is_inside(other)))
            .cloned()
            .collect();
        let mut bases = outer;
        bases.sort();
        bases.dedup();
        let text = globs.iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(", ");
        Ok(Self { patterns, text, bases })
    }

    /// Whether a chronicle may have this name.
    pub(crate) fn allows(&self, path: &RelativePath) -> bool {
        // What is in the tree is the file of a chronicle with another name, whatever the globs say.
        let can_be_named = has_chronicle_name(path) && !is_in_chronicle_tree(path);
        can_be_named && !path.parts().any(is_git) && self.patterns.iter().any(|pattern| pattern.matches(path))
    }

    pub(crate) fn check(&self, path: &RelativePath) -> Result<(), Failure> {
        if self.allows(path) {
            return Ok(());
        }
        Err(Failure::OutOfScope { path: path.clone(), scope: self.text.clone() })
    }
}

/// One glob.
#[derive(Debug)]
struct Pattern {
    glob: Glob,
    base: RelativePath,
    /// How names end that match, when the glob means just that: those right below its base with this end.
    end: Option<String>,
    /// Compiled when a name below its base is asked about: most commands ask about none.
    compiled: OnceLock<GlobMatcher>,
}

impl Pattern {
    fn new(text: &str) -> Result<Self, Failure> {
        let built = GlobBuilder::new(text).literal_separator(true).build();
        let glob = built.map_err(|error| Failure::Scope(error.to_string()))?;
        let base = base(text)?;
        let end = text.strip_prefix(base.as_str()).and_then(|rest| rest.strip_prefix("/*"));
        let end = end.filter(|end| !end.contains(SPECIAL) && !end.contains('/')).map(str::to_owned);
        Ok(Self { glob, base, end, compiled: OnceLock::new() })
    }

    fn matches(&self, path: &RelativePath) -> bool {
        match &self.end {
            Some(end) => {
                path.parent() == self.base && path.name().is_some_and(|name| name.ends_with(end.as_str()))
            }
            None => {
                path.is_inside(&self.base)
                    && self.compiled.get_or_init(|| self.glob.compile_matcher()).is_match(path.as_str())
            }
        }
    }
}

/// Whether `name` is git's directory, on a file system that does not distinguish case too.
pub(crate) fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

fn base(glob: &str) -> Result<RelativePath, Failure> {
    let wrong = |what: &str| Failure::Scope(format!("`{glob}` {what}"));
    if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
        return Err(wrong("leaves the project"));
    }
    let directory = glob.rsplit_once('/').map_or("", |(directory, _)| directory);
    let plain: Vec<&str> = directory.split('/').take_while(|part| !part.contains(SPECIAL)).collect();
    RelativePath::new(&plain.join("/")).map_err(|error| Failure::Scope(error.to_string()))
}
