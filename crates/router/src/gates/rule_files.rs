//! Rule files that nothing reads: names that are nearly right, and a second file of one purpose.
//!
//! Such a file is a gate that somebody believes to be there. As long as it is, no call has an effect.

use std::ffi::OsString;
use std::fmt::{Display, Formatter};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tgp_contract::{CHRONICLE_DIRECTORY, Code, ToolError};
use tgp_fs::{KERNEL_DIRECTORY, Stamp};
use tgp_text::{RuleFile, RulePurpose, fold_name, rule_file};

/// Below the tool root: rules in YAML, and extension rules in TypeScript.
pub(super) const DIRECTORY: &str = "policy";

/// Files of rules, and directories of them; more than that is not written by people.
pub(super) const MAX_FILES: usize = 256;

/// A file that looks like a rule file and is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadRuleFile {
    /// Relative to the project where it is in it.
    pub file: String,
    pub purpose: RulePurpose,
    pub reason: UnreadReason,
}

/// Why a rule file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// Its name only looks like the right one.
    Name,
    /// This file has the same purpose, and is read.
    Second(String),
    /// It is outside the project, and no person has confirmed it.
    Outside,
}

impl Display for UnreadRuleFile {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let (file, noun) = (self.file.escape_debug(), self.purpose.noun());
        match &self.reason {
            UnreadReason::Name => write!(formatter, "`{file}` looks like {noun} and is not read"),
            UnreadReason::Second(read) => {
                write!(formatter, "`{file}` is not read, because `{read}` is {noun} already")
            }
            UnreadReason::Outside => {
                write!(formatter, "`{file}` is {noun} outside the project, which no person has confirmed")
            }
        }
    }
}

impl UnreadRuleFile {
    /// The error of every call with an effect, as long as the file is there.
    #[must_use]
    pub fn error(&self) -> ToolError {
        let file = self.file.escape_debug();
        let usual = self.purpose.paths().first().unwrap_or(&"");
        let help = match (&self.reason, self.purpose) {
            (UnreadReason::Outside, _) => "run `tgp trust`, or put the file into the project".to_owned(),
            (UnreadReason::Second(read), _) => {
                format!("move what it holds into `{read}`, and remove it or rename it to `{file}.bak`")
            }
            (UnreadReason::Name, RulePurpose::Policy) => format!(
                "rename it to `{usual}` or to a .yaml file in `{KERNEL_DIRECTORY}/{DIRECTORY}`; to keep it without \
                 effect, rename it to `{file}.bak`"
            ),
            (UnreadReason::Name, _) => {
                format!("rename it to `{usual}`; to keep it without effect, rename it to `{file}.bak`")
            }
        };
        let message = format!("{self}: no call has an effect before that is resolved");
        ToolError::new(Code::Config, message).detail("file", self.file.clone()).help(help)
    }
}

/// The files of a directory of rules, at any depth. It is listed again when it has changed.
#[derive(Debug)]
pub(super) struct RuleDirectory {
    root: PathBuf,
    listed: Mutex<Option<Listing>>,
}

#[derive(Clone, Debug)]
struct Listing {
    directories: Vec<(PathBuf, Stamp)>,
    files: Arc<[PathBuf]>,
}

impl RuleDirectory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, listed: Mutex::default() }
    }

    /// Everything in it that is not a directory.
    ///
    /// # Errors
    /// The directory that cannot be listed.
    pub(super) fn files(&self) -> Result<Arc<[PathBuf]>, PathBuf> {
        let now = SystemTime::now();
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*listed
            && known.directories.iter().all(|(path, stamp)| stamp_of(path).as_ref() == Some(stamp))
        {
            return Ok(Arc::clone(&known.files));
        }
        *listed = None;
        let Some(found) = list(&self.root)? else { return Ok([].into()) };
        let files = Arc::clone(&found.files);
        *listed = found.directories.iter().all(|(_, stamp)| stamp.is_settled(now)).then_some(found);
        Ok(files)
    }
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|found| Stamp::of(&found))
}

/// Lists a directory and those in it. A link to a directory is a file here, which cannot be read. `None` where there is
/// nothing.
fn list(root: &Path) -> Result<Option<Listing>, PathBuf> {
    match root.symlink_metadata() {
        // Most projects have none.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(root.to_owned()),
        Ok(_) => {}
    }
    let (mut directories, mut files) = (Vec::new(), Vec::new());
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let failed = || directory.clone();
        // Before it is listed, so that a change meanwhile shows.
        directories.push((directory.clone(), stamp_of(&directory).ok_or_else(failed)?));
        for entry in std::fs::read_dir(&directory).map_err(|_| failed())? {
            let entry = entry.map_err(|_| failed())?;
            let is_directory = entry.file_type().map_err(|_| failed())?.is_dir();
            if is_directory { open.push(entry.path()) } else { files.push(entry.path()) }
        }
        if open.len() + directories.len() > MAX_FILES {
            return Err(root.to_owned());
        }
    }
    files.sort();
    Ok(Some(Listing { directories, files: files.into() }))
}

/// What is read because the configuration or the embedding program names it.
#[derive(Clone, Debug, Default)]
pub struct NamedRuleFiles {
    /// Paths of such files, whatever they are called.
    pub files: Vec<PathBuf>,
    /// Whether the configuration was named, so that it was not looked for.
    pub has_config: bool,
    /// The file of invariants, where it is not the usual one.
    pub invariants: Option<String>,
    /// Those outside the project that no person has confirmed.
    pub unconfirmed: Vec<(PathBuf, RulePurpose)>,
}

/// Looks for rule files that nothing reads.
#[derive(Debug)]
pub struct RuleFileCheck {
    project: PathBuf,
    tool_root: PathBuf,
    named: NamedRuleFiles,
    rules: RuleDirectory,
    known: Mutex<Option<Known>>,
}

#[derive(Clone, Debug)]
struct Known {
    directories: Vec<(PathBuf, Option<Stamp>)>,
    unread: Vec<UnreadRuleFile>,
}

impl RuleFileCheck {
    #[must_use]
    pub fn new(project: PathBuf, tool_root: PathBuf, named: NamedRuleFiles) -> Self {
        let rules = RuleDirectory::new(tool_root.join(DIRECTORY));
        Self { project, tool_root, named, rules, known: Mutex::default() }
    }

    /// Returns all of them, by name.
    ///
    /// # Errors
    /// `ECONFIG` when a directory that may hold one cannot be listed.
    pub fn unread(&self) -> Result<Vec<UnreadRuleFile>, ToolError> {
        let rules = self.rules.files().map_err(|path| unlisted(&path))?;
        let near = rules.iter().filter_map(|path| {
            let below = path.strip_prefix(&self.tool_root).unwrap_or(path);
            let below: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let parts: Vec<&str> =
                std::iter::once(KERNEL_DIRECTORY).chain(below.iter().map(String::as_str)).collect();
            let file = self.classify(path, &parts)?;
            (!file.is_read).then(|| self.found(path, file.purpose, UnreadReason::Name))
        });
        let mut unread: Vec<UnreadRuleFile> = near.collect();
        let outside = self.named.unconfirmed.iter();
        unread.extend(outside.map(|(path, purpose)| self.found(path, *purpose, UnreadReason::Outside)));
        unread.extend(self.beside()?);
        unread.sort_by(|one, other| one.file.cmp(&other.file));
        unread.dedup();
        Ok(unread)
    }

    /// Whether a file is outside the project, and not confirmed.
    pub(super) fn is_unconfirmed(&self, path: &Path) -> bool {
        self.named.unconfirmed.iter().any(|(unconfirmed, _)| unconfirmed == path)
    }

    /// Refuses everything while there is one for this purpose.
    ///
    /// # Errors
    /// `ECONFIG` with its name.
    pub fn check(&self, purpose: RulePurpose) -> Result<(), ToolError> {
        let unread = self.unread()?;
        unread.iter().find(|file| file.purpose == purpose).map_or(Ok(()), |file| Err(file.error()))
    }

    /// Refuses everything while there is one at all.
    ///
    /// # Errors
    /// `ECONFIG` with the name of the first.
    pub fn check_all(&self) -> Result<(), ToolError> {
        self.unread()?.first().map_or(Ok(()), |file| Err(file.error()))
    }

    /// Those in the project's own directory, in the one of chronicles and beside the tools.
    fn beside(&self) -> Result<Vec<UnreadRuleFile>, ToolError> {
        let now = SystemTime::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known
            && known.directories.iter().all(|(path, stamp)| stamp_of(path) == *stamp)
        {
            return Ok(known.unread.clone());
        }
        *known = None;
        let mut found = Known { directories: Vec::new(), unread: Vec::new() };
        let mut read: Vec<(RulePurpose, PathBuf)> = Vec::new();
        let mut open: Vec<(PathBuf, Vec<String>)> = vec![
            (self.project.clone(), Vec::new()),
            (self.tool_root.clone(), vec![KERNEL_DIRECTORY.to_owned()]),
        ];
        while let Some((directory, place)) = open.pop() {
            // Before it is listed, so that a change meanwhile shows.
            found.directories.push((directory.clone(), stamp_of(&directory)));
            for name in names(&directory)? {
                let path = directory.join(&name);
                let parts: Vec<String> =
                    place.iter().cloned().chain([name.to_string_lossy().into_owned()]).collect();
                let parts_of: Vec<&str> = parts.iter().map(String::as_str).collect();
                let file = self.classify(&path, &parts_of);
                if is_searched(&parts_of) && path.is_dir() {
                    open.push((path, parts));
                } else if let Some(file) = file.filter(|_| !place.is_empty() || !path.is_dir()) {
                    // In the project's own directory `tgp.config` may be a directory of the project.
                    match file.is_read {
                        true => read.push((file.purpose, path)),
                        false => found.unread.push(self.found(&path, file.purpose, UnreadReason::Name)),
                    }
                }
            }
        }
        for purpose in RulePurpose::ALL {
            found.unread.extend(self.second_files(purpose, &read));
        }
        let is_settled = |stamp: &Option<Stamp>| stamp.as_ref().is_none_or(|stamp| stamp.is_settled(now));
        let unread = found.unread.clone();
        *known = found.directories.iter().all(|(_, stamp)| is_settled(stamp)).then_some(found);
        Ok(unread)
    }

    /// The files of one purpose behind the one that is read.
    fn second_files(&self, purpose: RulePurpose, read: &[(RulePurpose, PathBuf)]) -> Vec<UnreadRuleFile> {
        let mut paths: Vec<&PathBuf> =
            read.iter().filter(|(found, _)| *found == purpose).map(|(_, path)| path).collect();
        let rank = |path: &PathBuf| purpose.paths().iter().position(|name| self.project.join(name) == *path);
        paths.sort_by_key(|path| rank(path));
        let first = match (purpose, &self.named.invariants) {
            (RulePurpose::Invariants, Some(named)) => Some(named.clone()),
            _ => (!paths.is_empty()).then(|| self.name(paths.remove(0))),
        };
        let second = first.into_iter().flat_map(|first| paths.iter().map(move |path| (*path, first.clone())));
        second.map(|(path, first)| self.found(path, purpose, UnreadReason::Second(first))).collect()
    }

    /// What a path is by its names, unless it is read because it was named.
    fn classify(&self, path: &Path, parts: &[&str]) -> Option<RuleFile> {
        let is_named = self.named.files.iter().any(|named| named == path);
        let is_chosen = |file: &RuleFile| file.purpose == RulePurpose::Config && self.named.has_config;
        rule_file(parts).filter(|file| !is_named && !is_chosen(file))
    }

    fn found(&self, path: &Path, purpose: RulePurpose, reason: UnreadReason) -> UnreadRuleFile {
        UnreadRuleFile { file: self.name(path), purpose, reason }
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.project).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Whether a directory is looked into, besides the project's own, the tool repository and its rules: the one of chronicles,
/// and those that differ from ours by their case.
fn is_searched(parts: &[&str]) -> bool {
    match parts {
        [name] => {
            let folded = fold_name(name);
            folded == CHRONICLE_DIRECTORY || folded == KERNEL_DIRECTORY && *name != KERNEL_DIRECTORY
        }
        [above, name] => {
            *above != KERNEL_DIRECTORY && fold_name(above) == KERNEL_DIRECTORY && fold_name(name) == DIRECTORY
        }
        _ => false,
    }
}

/// The names in a directory; none where there is no directory.
fn names(directory: &Path) -> Result<Vec<OsString>, ToolError> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(_) => Err(unlisted(directory)),
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()).map_err(|_| unlisted(directory)))
            .collect(),
    }
}

fn unlisted(directory: &Path) -> ToolError {
    let message = format!("`{}` may hold rules and cannot be listed", directory.display());
    ToolError::new(Code::Config, message)
        .help("make the directory readable for this user, with fewer entries")
}
