//! Which paths are not part of the code: by the ignore files, as they are or as a proposal would have them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use tgp_contract::RelativePath;
use tgp_fs::{
    IgnoreRules, MAX_RULE_BYTES, RULE_FILES, RepositoryAccess, is_in_kernel_directory, outside_rules,
    read_plain,
};

use super::language::{file_name, join, parent};
use super::repository::Repo;

/// What of a project is not part of the code: what is ignored (see `tgp-fs`), and what git does not commit or a package
/// manager has put there.
pub(crate) struct Ignores<'p> {
    project: &'p Path,
    /// Whether git is asked at all.
    has_git: bool,
    rules: RefCell<IgnoreRules>,
    /// Directories whose rules were read.
    read: RefCell<HashSet<String>>,
    /// Ignore files that a proposal writes.
    written: HashMap<String, Vec<u8>>,
    /// Files and directories that it removes.
    removed: Vec<String>,
}

impl<'p> Ignores<'p> {
    pub(crate) fn new(project: &'p Path, access: &RepositoryAccess, repo: Option<&Repo>) -> Self {
        Self {
            project,
            has_git: repo.is_some(),
            rules: RefCell::new(IgnoreRules::default().with_outside(&outside_rules(project, access))),
            read: RefCell::default(),
            written: HashMap::new(),
            removed: Vec::new(),
        }
    }

    /// From now on as if this were in the file, where it is an ignore file. Returns whether it is one.
    pub(crate) fn write(&mut self, path: &str, content: &[u8]) -> bool {
        let matters = is_rule_file(path);
        if matters {
            self.written.insert(path.to_owned(), content.to_owned());
            self.forget();
        }
        matters
    }

    /// From now on as if the file or directory were not there.
    pub(crate) fn remove(&mut self, path: &str) {
        self.written.retain(|file, _| !is_at_or_below(file, path));
        self.removed.push(path.to_owned());
        self.forget();
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
            _ if is_in_kernel_directory(path) => return true,
            "node_modules" if !is_tracked(path) => return true,
            // A submodule, or a repository that happens to be there: git commits nothing of either.
            _ if self.has_git && self.project.join(path).join(".git").symlink_metadata().is_ok() => {
                return true;
            }
            _ => {}
        }
        self.is_ignored(path, true)
    }

    /// What the rules say of a path whose parent is not ignored.
    fn is_ignored(&self, path: &str, is_directory: bool) -> bool {
        let mut directory = parent(path);
        while self.read.borrow_mut().insert(directory.to_owned()) {
            for name in RULE_FILES {
                let file = join_paths(directory, name);
                if let (Some(text), Ok(file)) = (self.text(&file), RelativePath::new(&file)) {
                    self.rules.borrow_mut().set(&file, &text);
                }
            }
            directory = parent(directory);
        }
        self.rules.borrow().ignores_name(path, is_directory)
    }

    fn forget(&self) {
        self.read.borrow_mut().clear();
        self.rules.borrow_mut().clear();
    }

    /// What an ignore file holds.
    fn text(&self, file: &str) -> Option<Vec<u8>> {
        if let Some(written) = self.written.get(file) {
            // As it will be on the disk: a larger file has no rules there.
            return (written.len() as u64 <= MAX_RULE_BYTES).then(|| written.clone());
        }
        if self.removed.iter().any(|path| is_at_or_below(file, path)) {
            return None;
        }
        read_plain(&self.project.join(file), MAX_RULE_BYTES)
    }
}

fn join_paths(prefix: &str, path: &str) -> String {
    if prefix.is_empty() { path.to_owned() } else { join(prefix, path) }
}

/// Whether a file holds rules.
pub(crate) fn is_rule_file(path: &str) -> bool {
    RULE_FILES.contains(&file_name(path))
}

/// Whether `file` is `path`, or in it.
pub(crate) fn is_at_or_below(file: &str, path: &str) -> bool {
    file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
