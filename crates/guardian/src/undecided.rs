//! Files that could not be read completely, and the invariants whose answers could depend on one of them.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{GraphQuery, GraphRows, LeftOutReason, Severity, ToolError, Visibility};

use crate::messages::{count, thousands};
use crate::questions::{Asked, whole};
use crate::{Invariant, Invariants};

/// Files that a sentence names.
const MAX_NAMED: usize = 3;
/// Patterns of files that are known to be unreadable.
const MAX_PATTERNS: usize = 100;
const HIDDEN: &str = "files that are hidden from this call cannot be read completely";
/// Names the question in errors.
const LABEL: &str = "files that cannot be read completely";
const QUERY: &str = "MATCH (f:File) WHERE f.broken = true \
                     RETURN f.path AS path, f.language AS language, f.unparsed AS unparsed";
/// In these languages an import means a file by its path. In others, and in manifests, where the imports of a file lead
/// can depend on the content of any file.
const LANGUAGES_BY_PATH: [&str; 6] = ["typescript", "javascript", "vue", "svelte", "python", "go"];

/// Why a file was not read completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadReason {
    /// It has a syntax error.
    Syntax,
    /// It is too large, too deep or too slow to be read to its end.
    Limit,
    /// Its name is not UTF-8.
    Name,
    /// The system does not let it be opened.
    Permission,
}

impl UnreadReason {
    fn sentence(self) -> &'static str {
        match self {
            Self::Syntax => "it has a syntax error",
            Self::Limit => "it is too large, too deep or too slow to be read to its end",
            Self::Name => "its name is not UTF-8",
            Self::Permission => "it cannot be opened",
        }
    }
}

/// A file that was not read completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct UnreadFile {
    /// Its path; a byte of its name that is not UTF-8 is U+FFFD.
    pub path: String,
    pub reason: UnreadReason,
}

impl UnreadFile {
    /// `src/a.ts (it has a syntax error)`
    fn named(&self) -> String {
        format!("{} ({})", self.path.escape_debug(), self.reason.sentence())
    }

    /// `src/a.ts cannot be read completely: it has a syntax error`
    pub(super) fn sentence(&self) -> String {
        format!("{} cannot be read completely: {}", self.path.escape_debug(), self.reason.sentence())
    }
}

/// An invariant whose answer could depend on files that were not read completely. It neither holds nor is it broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct UndecidedInvariant {
    pub invariant: String,
    pub severity: Severity,
    /// The files that may be named.
    pub files: Vec<UnreadFile>,
    /// Files beyond them.
    pub more: u64,
    /// Whether there are files that are hidden from the caller. Their number is not said.
    pub hidden: bool,
}

impl UndecidedInvariant {
    /// The verdict in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("`{}` is undecided: {}", self.invariant, self.cause())
    }

    /// `2 files cannot be read completely: src/a.ts (it has a syntax error), src/b.ts (it cannot be opened)`
    #[must_use]
    pub fn cause(&self) -> String {
        match (self.hidden, self.files.is_empty() && self.more == 0) {
            (false, _) => list_files(&self.files, self.more),
            (true, true) => HIDDEN.to_owned(),
            (true, false) => format!("{}; {HIDDEN}", list_files(&self.files, self.more)),
        }
    }

    /// Names only the files that a caller is shown.
    pub(super) fn conceal_unless(&mut self, seen: &[Self]) {
        let seen = seen.iter().find(|seen| seen.invariant == self.invariant);
        let all = self.files.len();
        self.files = seen.map(|seen| seen.files.clone()).unwrap_or_default();
        self.hidden = self.files.len() < all;
    }

    /// The next step of the person who keeps the rules.
    pub const HELP: &'static str = "correct the files, or name those that are known to be unreadable in \
                                    `.sage/invariants.yml`: `unread: {ignore: ['vendor/**']}`";
}

/// The first of some files with their reasons, and how many there are.
pub(super) fn list_files(files: &[UnreadFile], more: u64) -> String {
    let total = files.len().saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
    let mut shown: Vec<String> = files.iter().take(MAX_NAMED).map(UnreadFile::named).collect();
    if let Some(left) = total.checked_sub(shown.len()).filter(|left| *left > 0) {
        shown.push(format!("and {} more", thousands(left)));
    }
    format!("{} cannot be read completely: {}", count(total, "file"), shown.join(", "))
}

/// The files whose content an invariant's answer can depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dependence {
    /// Only which files there are.
    Paths,
    /// What any file contains.
    Contents,
    /// What the files below these prefixes import.
    ImportsBelow(Vec<String>),
    /// The length of files with this prefix.
    LengthBelow(String),
}

impl Dependence {
    pub(super) fn of_query(query: &str) -> Self {
        if tgp_graph::depends_on_contents(query) { Self::Contents } else { Self::Paths }
    }

    /// Whether the answer could be another one if the file were read completely. Doubtful files count.
    fn is_about(&self, file: &Unread) -> bool {
        let path = file.shown.path.as_str();
        match (self, file.shown.reason) {
            // A file without a node has another name than the one that is shown, and content that is not known.
            (Self::Paths, reason) => matches!(reason, UnreadReason::Name | UnreadReason::Permission),
            (Self::Contents, _) => true,
            (Self::ImportsBelow(folders), reason) => {
                let is_by_path = match &file.language {
                    Some(language) => LANGUAGES_BY_PATH.contains(&language.as_str()),
                    None => matches!(reason, UnreadReason::Name | UnreadReason::Permission),
                };
                !is_by_path || folders.iter().any(|folder| are_nested(path, folder))
            }
            (Self::LengthBelow(_), UnreadReason::Syntax) => false,
            (Self::LengthBelow(folder), _) => are_nested(path, folder),
        }
    }
}

/// Whether a path is below a folder (`src/`), or is a directory that the folder is in: of a directory that cannot be read
/// everything below it is unknown.
fn are_nested(path: &str, folder: &str) -> bool {
    path.starts_with(folder) || path.is_empty() || folder.starts_with(&format!("{path}/"))
}

/// The patterns of files that a person knows to be unreadable: they make no invariant undecided.
#[derive(Clone, Debug, Default)]
pub(super) struct IgnoredFiles {
    patterns: Vec<String>,
    globs: GlobSet,
}

impl PartialEq for IgnoredFiles {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl IgnoredFiles {
    /// Reads the patterns, or returns what is wrong and the next step.
    pub(super) fn parse(patterns: Vec<String>) -> Result<Self, (String, &'static str)> {
        if patterns.len() > MAX_PATTERNS {
            let message = format!("`ignore` has {} patterns, at most {MAX_PATTERNS}", patterns.len());
            return Err((message, "name folders, such as 'vendor/**'"));
        }
        let mut globs = GlobSetBuilder::new();
        for pattern in &patterns {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            match glob {
                Ok(glob) if !pattern.trim().is_empty() => globs.add(glob),
                _ => {
                    let message = format!("`{}` is not a glob of paths", pattern.escape_debug());
                    return Err((message, "write patterns such as 'vendor/**' or 'src/generated/*.ts'"));
                }
            };
        }
        let globs = globs.build().map_err(|error| (error.to_string(), "write fewer or simpler patterns"))?;
        Ok(Self { patterns, globs })
    }

    fn has(&self, path: &str) -> bool {
        self.globs.is_match(path)
    }
}

/// The question for the files that were not read completely. It is asked with the invariants, of the same files.
pub(super) fn question(visible: &Visibility) -> Asked {
    Asked::new(LABEL, GraphQuery::new(QUERY)).seen_by(visible)
}

struct Unread {
    shown: UnreadFile,
    language: Option<String>,
}

/// The files of one moment that were not read completely.
#[derive(Default)]
pub(super) struct UnreadFiles {
    files: Vec<Unread>,
    /// Files without a node that are only counted.
    more: u64,
}

impl UnreadFiles {
    /// Reads the answer to [`question`].
    ///
    /// # Errors
    /// `EBUDGET` for an answer that was cut off: an unread file that is not known would count as read.
    pub(super) fn of(
        answer: &GraphRows,
        invariants: &Invariants,
        visible: &Visibility,
    ) -> Result<Self, ToolError> {
        whole(answer, LABEL)?;
        let mut files = Vec::new();
        for row in &answer.rows {
            let text = |at: usize| row.get(at).and_then(Value::as_str).map(str::to_owned);
            let is_limit = row.get(2).and_then(Value::as_bool) == Some(true);
            let reason = if is_limit { UnreadReason::Limit } else { UnreadReason::Syntax };
            let shown = UnreadFile { path: text(0).unwrap_or_default(), reason };
            files.push(Unread { shown, language: text(1) });
        }
        let left_out = &answer.standing.left_out;
        for file in &left_out.first {
            let reason = match file.reason {
                LeftOutReason::Name => UnreadReason::Name,
                LeftOutReason::Permission => UnreadReason::Permission,
            };
            files.push(Unread { shown: UnreadFile { path: file.path.clone(), reason }, language: None });
        }
        let more = left_out.count.saturating_sub(left_out.first.len() as u64);
        files.retain(|file| !invariants.unread.has(&file.shown.path));
        files.retain(|file| visible.is_everything() || visible.shows_named(&file.shown.path));
        files.sort_by(|one, other| one.shown.cmp(&other.shown));
        Ok(Self { files, more })
    }

    /// The verdict of an invariant that nothing breaks, where it cannot be that it holds.
    pub(super) fn undecided(&self, invariant: &Invariant) -> Option<UndecidedInvariant> {
        let about = self.files.iter().filter(|file| invariant.dependence.is_about(file));
        let files: Vec<UnreadFile> = about.map(|file| file.shown.clone()).collect();
        (!files.is_empty() || self.more > 0).then(|| UndecidedInvariant {
            invariant: invariant.name.clone(),
            severity: invariant.severity,
            files,
            more: self.more,
            hidden: false,
        })
    }

    /// The files that an invariant depends on and that were read completely `before`.
    pub(super) fn new_since(&self, before: &Self, invariant: &Invariant) -> Vec<UnreadFile> {
        let is_new = |file: &&Unread| !before.files.iter().any(|old| old.shown.path == file.shown.path);
        let about = self.files.iter().filter(|file| invariant.dependence.is_about(file)).filter(is_new);
        about.map(|file| file.shown.clone()).collect()
    }
}
