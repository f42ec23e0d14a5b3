//! Which paths are no part of the repository: git's ignore files, as they are or as a proposal would have them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::language::{file_name, join, parent};
use super::repository::Repo;

/// The name of git's ignore files.
pub(crate) const IGNORE_FILE: &str = ".gitignore";

/// A larger ignore file is not read: then more is looked at, never less.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// What a directory of build results holds, and how that file begins.
const CACHE_TAG: (&str, &[u8]) = ("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55");

/// The ignore rules of a project.
pub(crate) struct Ignores<'p> {
    project: &'p Path,
    /// The directory of the topmost ignore file.
    top: PathBuf,
    /// Where the project is below `top`.
    prefix: String,
    /// Whether git is asked at all.
    has_git: bool,
    /// The repository's own rules outside the tree, then somebody's for all repositories.
    excludes: Vec<Gitignore>,
    /// Rules by their directory, as seen from `top`.
    held: RefCell<HashMap<String, Option<Rc<Gitignore>>>>,
    /// Ignore files that a proposal writes, as seen from the project.
    written: HashMap<String, Vec<u8>>,
    /// Files and directories that it removes.
    removed: Vec<String>,
}

impl<'p> Ignores<'p> {
    pub(crate) fn new(project: &'p Path, repo: Option<&Repo>) -> Self {
        let root = repo.and_then(Repo::root).map(Path::to_owned);
        let prefix = repo.map_or("", Repo::prefix).to_owned();
        let own = repo.and_then(|repo| read(&repo.exclude_file()));
        let shared = repo.and_then(Repo::shared_exclude_file).and_then(|file| read_through_links(&file));
        let excludes = own.iter().chain(&shared).map(|text| rules(text)).collect();
        Self {
            project,
            top: root.unwrap_or_else(|| project.to_owned()),
            prefix,
            has_git: repo.is_some(),
            excludes,
            held: RefCell::default(),
            written: HashMap::new(),
            removed: Vec::new(),
        }
    }

    /// From now on as if this were in the file, where it is an ignore file. Answers whether it is one.
    pub(crate) fn write(&mut self, path: &str, content: &[u8]) -> bool {
        let matters = file_name(path) == IGNORE_FILE;
        if matters {
            self.written.insert(path.to_owned(), content.to_owned());
            self.held.borrow_mut().clear();
        }
        matters
    }

    /// From now on as if the file or directory were not there.
    pub(crate) fn remove(&mut self, path: &str) {
        self.written.retain(|file, _| !is_at_or_below(file, path));
        self.removed.push(path.to_owned());
        self.held.borrow_mut().clear();
    }

    /// Whether a file is left out. `is_tracked` says whether a directory has a file that is tracked; whether the file
    /// itself is one has to be asked before.
    pub(crate) fn leaves_out(&self, path: &str, is_tracked: &dyn Fn(&str) -> bool) -> bool {
        let directories = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        for directory in directories {
            if self.leaves_out_directory(directory, is_tracked) {
                return true;
            }
        }
        self.leaves_out_file(path)
    }

    /// Whether a file is left out whose directory is not.
    pub(crate) fn leaves_out_file(&self, path: &str) -> bool {
        file_name(path) == ".git" || self.is_ignored(path, false)
    }

    /// Whether a directory is left out whose parent is not.
    pub(crate) fn leaves_out_directory(&self, path: &str, is_tracked: &dyn Fn(&str) -> bool) -> bool {
        match file_name(path) {
            ".git" => return true,
            // The kernel's own, at the top of the project alone.
            ".tgp" if path == ".tgp" => return true,
            "node_modules" if !is_tracked(path) => return true,
            "target" if has_cache_tag(&self.project.join(path)) && !is_tracked(path) => return true,
            // A submodule, or a repository that happens to be there: git commits nothing of either.
            _ if self.has_git && self.project.join(path).join(".git").symlink_metadata().is_ok() => {
                return true;
            }
            _ => {}
        }
        self.is_ignored(path, true)
    }

    /// What the ignore files say of a path whose parent is not ignored: the one that is nearest to it decides.
    fn is_ignored(&self, path: &str, is_directory: bool) -> bool {
        let path = join_paths(&self.prefix, path);
        let mut directory = parent(&path);
        loop {
            if let Some(rules) = self.rules(directory) {
                let inside = path.get(directory.len()..).unwrap_or_default().trim_start_matches('/');
                match rules.matched(inside, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            if directory.is_empty() {
                break;
            }
            directory = parent(directory);
        }
        for rules in &self.excludes {
            match rules.matched(&path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    fn rules(&self, directory: &str) -> Option<Rc<Gitignore>> {
        if let Some(held) = self.held.borrow().get(directory) {
            return held.clone();
        }
        let found = self.text(&join(directory, IGNORE_FILE)).map(|text| Rc::new(rules(&text)));
        self.held.borrow_mut().insert(directory.to_owned(), found.clone());
        found
    }

    /// What an ignore file holds; its path is seen from `top`.
    fn text(&self, file: &str) -> Option<Vec<u8>> {
        let inside = if self.prefix.is_empty() {
            Some(file)
        } else {
            file.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('/'))
        };
        if let Some(inside) = inside {
            if let Some(written) = self.written.get(inside) {
                return Some(written.clone());
            }
            if self.removed.iter().any(|path| is_at_or_below(inside, path)) {
                return None;
            }
        }
        read(&self.top.join(file))
    }
}

fn join_paths(prefix: &str, path: &str) -> String {
    if prefix.is_empty() { path.to_owned() } else { join(prefix, path) }
}

/// Whether `file` is `path`, or in it.
pub(crate) fn is_at_or_below(file: &str, path: &str) -> bool {
    file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A file of rules outside the tree, which may well be a link to where somebody keeps such files.
fn read_through_links(file: &Path) -> Option<Vec<u8>> {
    read(&file.canonicalize().ok()?)
}

/// A file of rules. Git follows no link to one.
fn read(file: &Path) -> Option<Vec<u8>> {
    let metadata = file.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_IGNORE_BYTES {
        return None;
    }
    std::fs::read(file).ok()
}

/// A line that is no pattern says nothing, as in git.
fn rules(text: &[u8]) -> Gitignore {
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn has_cache_tag(directory: &Path) -> bool {
    let (name, signature) = CACHE_TAG;
    let mut begin = vec![0; signature.len()];
    let file = std::fs::File::open(directory.join(name));
    file.is_ok_and(|mut file| file.read_exact(&mut begin).is_ok()) && begin == signature
}
