//! Where chronicles are. Every crate that has to distinguish a chronicle from another file asks here.
//!
//! A chronicle has a *name*, which rules, tools and the relay use: `src/a.ts.sage` for the story of `src/a.ts`,
//! `.sage/project.sage` for that of the project. Where its file is depends on the layout, see [`ChronicleLayout`].

use std::borrow::Cow;

use crate::chronicle_line::{MAX_CHRONICLE_LINE_BYTES, decode_line};
use crate::path::PathError;
use crate::{RelativePath, Root};

/// How the name of every chronicle ends, behind the name of the file that it is about.
pub const CHRONICLE_SUFFIX: &str = ".sage";
/// The directory of the project's own chronicles, the invariants and the personas.
pub const CHRONICLE_DIRECTORY: &str = ".sage";
/// The directory in [`CHRONICLE_DIRECTORY`] that holds the chronicles of single files.
const TREE: &str = "files";
/// The chronicle of whatever does not have its own.
pub const PROJECT_CHRONICLE: &str = ".sage/project.sage";
/// Added in the tree to a directory whose name ends as a chronicle's does, so that a directory `a.ts.sage` and the
/// chronicle of `a.ts` never need the same name.
const DIRECTORY_MARK: &str = ".d";
/// What is in the name of a torn line that was set aside.
const TORN_MARK: &str = ".sage.torn-";

/// Where the files of chronicles are. The chronicles of the project, `.sage/*.sage`, are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChronicleLayout {
    /// The chronicle of `src/a.ts` is `.sage/files/src/a.ts.sage`, and no file outside of `.sage` is one.
    #[default]
    Tree,
    /// The chronicle of `src/a.ts` is `src/a.ts.sage`, and every file with such a name is one.
    Beside,
}

impl ChronicleLayout {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Tree => Self::Beside,
            Self::Beside => Self::Tree,
        }
    }

    /// The file of the chronicle with this name.
    ///
    /// # Errors
    /// When no file can have such a long name.
    pub fn file_of(self, name: &RelativePath) -> Result<RelativePath, PathError> {
        if self == Self::Beside || is_in_chronicle_directory(name) {
            return Ok(name.clone());
        }
        let mut path = format!("{CHRONICLE_DIRECTORY}/{TREE}");
        let mut parts = name.parts().peekable();
        while let Some(part) = parts.next() {
            path.push('/');
            path.push_str(part);
            if parts.peek().is_some() && needs_mark(part) {
                path.push_str(DIRECTORY_MARK);
            }
        }
        RelativePath::new(&path)
    }

    /// The name of the chronicle that has this file; `None` for a file that is none by its path.
    #[must_use]
    pub fn name_of(self, file: &RelativePath) -> Option<RelativePath> {
        if !has_chronicle_name(file) {
            return None;
        }
        match tree_name(file) {
            Some(name) if self == Self::Tree => name,
            Some(_) => None,
            None if self == Self::Beside || is_in_chronicle_directory(file) => Some(file.clone()),
            None => None,
        }
    }

    /// Whether the kernel alone writes what is at `path`, by the path alone: what is in a directory `.sage`, and beside
    /// the sources whatever is named as a chronicle. Names are compared without case.
    #[must_use]
    pub fn reserves(self, path: &RelativePath) -> bool {
        self.reserves_parts(path.parts())
    }

    /// The same for the names of a path.
    pub fn reserves_parts<'p>(self, parts: impl Iterator<Item = &'p str>) -> bool {
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let is_reserved = part.eq_ignore_ascii_case(CHRONICLE_DIRECTORY)
                || self == Self::Beside && (ends_as_chronicle(part) || is_last && is_torn_name(part));
            if is_reserved {
                return true;
            }
        }
        false
    }
}

/// Whether a name of one file or directory ends as a chronicle's does, without case.
#[must_use]
pub fn ends_as_chronicle(part: &str) -> bool {
    stem(part).is_some()
}

/// `a.ts` for `a.ts.sage`, and an empty text for `.sage`.
fn stem(part: &str) -> Option<&str> {
    let (stem, end) = part.split_at_checked(part.len().checked_sub(CHRONICLE_SUFFIX.len())?)?;
    end.eq_ignore_ascii_case(CHRONICLE_SUFFIX).then_some(stem)
}

/// Whether a file is named as a chronicle is. It may still be another one, such as a source of SageMath.
#[must_use]
pub fn has_chronicle_name(path: &RelativePath) -> bool {
    path.name().and_then(stem).is_some_and(|stem| !stem.is_empty())
}

/// Whether a name is that of a torn line that was set aside.
#[must_use]
pub fn is_torn_name(name: &str) -> bool {
    let digits = name.rsplit_once(TORN_MARK).map(|(_, digits)| digits);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a directory name gets the mark in the tree: those that end as a chronicle, and those that would look like
/// one of them with its mark.
fn needs_mark(part: &str) -> bool {
    let mut bare = part;
    while let Some(shorter) = bare.strip_suffix(DIRECTORY_MARK) {
        bare = shorter;
    }
    ends_as_chronicle(bare)
}

/// The directory of the project's own chronicles, itself or something in it.
fn is_in_chronicle_directory(path: &RelativePath) -> bool {
    path.parts().next().is_some_and(|part| part.eq_ignore_ascii_case(CHRONICLE_DIRECTORY))
}

/// Whether a path is the directory of the tree or below it.
#[must_use]
pub fn is_in_chronicle_tree(path: &RelativePath) -> bool {
    let mut parts = path.parts();
    is_in_chronicle_directory(path) && parts.nth(1).is_some_and(|part| part.eq_ignore_ascii_case(TREE))
}

/// For a path below the tree the name of the chronicle whose file it is, if it is one's.
fn tree_name(file: &RelativePath) -> Option<Option<RelativePath>> {
    if !is_in_chronicle_tree(file) {
        return None;
    }
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    let mut parts = file.parts().skip(2).peekable();
    while let Some(part) = parts.next() {
        let is_directory = parts.peek().is_some();
        names.push(match part.strip_suffix(DIRECTORY_MARK) {
            Some(bare) if is_directory && needs_mark(part) => bare.into(),
            _ if is_directory && ends_as_chronicle(part) => return Some(None),
            _ => part.into(),
        });
    }
    let name = RelativePath::new(&names.join("/")).ok();
    Some(name.filter(|name| !name.is_root() && !is_in_chronicle_directory(name)))
}

/// The name of the chronicle of one file.
///
/// # Errors
/// When the name of the file leaves no room for the ending.
pub fn chronicle_of(file: &RelativePath) -> Result<RelativePath, PathError> {
    RelativePath::new(&format!("{file}{CHRONICLE_SUFFIX}"))
}

/// Whether a path is the tree of chronicles or a directory in it. Such directories are there because files of the project
/// are, or were: their names reveal them.
#[must_use]
pub fn is_chronicle_tree_directory(path: &RelativePath) -> bool {
    is_in_chronicle_tree(path) && !has_chronicle_name(path)
}

/// The file that a chronicle is about, given its name or its file in either layout, and the directory of the project that a
/// directory in the tree of chronicles mirrors; `None` for every other path, and for the chronicles of the project,
/// which are about no single file.
#[must_use]
pub fn chronicled(path: &RelativePath) -> Option<RelativePath> {
    if is_chronicle_tree_directory(path) {
        let bare =
            |part: &str| part.strip_suffix(DIRECTORY_MARK).filter(|_| needs_mark(part)).map(str::to_owned);
        let parts: Vec<String> =
            path.parts().skip(2).map(|part| bare(part).unwrap_or_else(|| part.to_owned())).collect();
        return RelativePath::new(&parts.join("/")).ok().filter(|directory| !directory.is_root());
    }
    let name = match tree_name(path) {
        Some(name) => name?,
        None => path.clone(),
    };
    if name.parts().any(|part| part.eq_ignore_ascii_case(CHRONICLE_DIRECTORY)) || !has_chronicle_name(&name) {
        return None;
    }
    let end = name.as_str().len().checked_sub(CHRONICLE_SUFFIX.len())?;
    RelativePath::new(name.as_str().get(..end)?).ok()
}

/// Whether a file with this content, or this beginning of it, is a chronicle: its first line is an event with its own
/// id. Bytes beyond [`MAX_CHRONICLE_LINE_BYTES`] are not read.
#[must_use]
pub fn is_chronicle_content(content: &[u8]) -> bool {
    let beginning = content.get(..MAX_CHRONICLE_LINE_BYTES).unwrap_or(content);
    // Not by looking for the end of a line first: almost no other file begins so.
    if beginning.first() != Some(&b'{') {
        return false;
    }
    let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    decode_line(line).is_ok()
}

/// Reports what a path is by what is there, such as whether a file is a chronicle. It returns `true` in doubt, and
/// `false` where there is nothing.
#[derive(Clone)]
pub struct PathProbe(std::sync::Arc<Probe>);

type Probe = dyn Fn(Root, &RelativePath) -> bool + Send + Sync;

impl PathProbe {
    pub fn new(probe: impl Fn(Root, &RelativePath) -> bool + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(probe))
    }

    #[must_use]
    pub fn matches(&self, root: Root, path: &RelativePath) -> bool {
        (self.0)(root, path)
    }
}

impl PartialEq for PathProbe {
    /// Whether both are the same probe; two that answer alike are still two.
    fn eq(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PathProbe {}

impl std::fmt::Debug for PathProbe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PathProbe")
    }
}
