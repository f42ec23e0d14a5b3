//! Which files are nobody's business.

use std::collections::{BTreeMap, HashMap};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tgp_contract::{CHRONICLE_DIRECTORY, CHRONICLE_SUFFIX, ChronicleLayout, RelativePath, is_torn_name};

use super::EXCLUDE;

/// The files that hold rules, the stronger one first.
pub(crate) const RULE_FILES: [&str; 2] = [".ignore", ".gitignore"];

/// Folders that belong to git, to the kernel and to the chronicle.
const OWN_FOLDERS: [&str; 3] = [".git", ".tgp", CHRONICLE_DIRECTORY];

/// Whether a path is ignored whatever the rules say, and whatever it is.
pub(crate) fn is_always_ignored(path: &RelativePath) -> bool {
    path.parts().any(|name| OWN_FOLDERS.contains(&name))
}

/// Whether a file of this name, outside of those folders, is a chronicle, or a torn line that was set aside. A folder
/// never is. In the tree no name makes a file a chronicle; those that an earlier version left are told by their content.
pub(crate) fn is_chronicle_name(name: &str, layout: ChronicleLayout) -> bool {
    is_torn_name(name) || layout == ChronicleLayout::Beside && name.ends_with(CHRONICLE_SUFFIX)
}

pub(super) fn is_own_name(name: &str, is_directory: bool, layout: ChronicleLayout) -> bool {
    OWN_FOLDERS.contains(&name) || (!is_directory && is_chronicle_name(name, layout))
}

/// The rules of the directories that were looked at, as git and ripgrep understand them: the nearest directory has the
/// word, `.ignore` before `.gitignore`, and what is below an ignored directory cannot be had back.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Which names are those of chronicles.
    layout: ChronicleLayout,
    matchers: HashMap<RelativePath, Gitignore>,
    /// The text of every rule file, by its path.
    pub(crate) texts: BTreeMap<RelativePath, String>,
}

impl Rules {
    pub(crate) fn new(layout: ChronicleLayout) -> Self {
        Self { layout, ..Self::default() }
    }

    pub(crate) fn from_texts(texts: BTreeMap<RelativePath, String>, layout: ChronicleLayout) -> Self {
        let mut rules = Self::new(layout);
        for (path, text) in texts {
            rules.add(path, text);
        }
        rules
    }

    pub(crate) fn add(&mut self, path: RelativePath, text: String) {
        // Paths are given relative to the file's own directory, so that the matcher need not know where it is.
        let mut builder = GitignoreBuilder::new(".");
        // Git passes over a byte-order mark.
        for line in text.trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern means nothing, as it does to git.
            let _ = builder.add_line(None, line);
        }
        if let Ok(matcher) = builder.build()
            && !matcher.is_empty()
        {
            self.matchers.insert(path.clone(), matcher);
        }
        self.texts.insert(path, text);
    }

    /// Whether one name is ignored, of which the directory is not.
    pub(crate) fn ignores(&self, path: &RelativePath, is_directory: bool) -> bool {
        if path.name().is_some_and(|name| is_own_name(name, is_directory, self.layout)) {
            return true;
        }
        for file in RULE_FILES {
            let mut directory = path.parent();
            loop {
                let verdict = directory
                    .join(file)
                    .ok()
                    .and_then(|file| self.judge(&file, &directory, path, is_directory));
                if let Some(is_ignored) = verdict {
                    return is_ignored;
                }
                if directory.is_root() {
                    break;
                }
                directory = directory.parent();
            }
        }
        RelativePath::new(EXCLUDE)
            .ok()
            .and_then(|file| self.judge(&file, &RelativePath::root(), path, is_directory))
            .unwrap_or(false)
    }

    fn judge(
        &self,
        file: &RelativePath,
        directory: &RelativePath,
        path: &RelativePath,
        is_directory: bool,
    ) -> Option<bool> {
        let matcher = self.matchers.get(file)?;
        let below = match directory.as_str() {
            "" => path.as_str(),
            directory => path.as_str().strip_prefix(directory)?.trim_start_matches('/'),
        };
        match matcher.matched(below, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }

    /// Whether a file or one of the directories it is in is ignored.
    pub(crate) fn ignores_file(&self, path: &RelativePath) -> bool {
        let mut directory = path.parent();
        while !directory.is_root() {
            if self.ignores(&directory, true) {
                return true;
            }
            directory = directory.parent();
        }
        self.ignores(path, false)
    }
}
