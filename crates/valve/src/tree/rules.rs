//! Which files are ignored.

use std::collections::BTreeMap;

use tgp_contract::{CHRONICLE_DIRECTORY, CHRONICLE_SUFFIX, ChronicleLayout, RelativePath, is_torn_name};
use tgp_fs::{IgnoreRules, OutsideRules, RULE_FILES, is_in_kernel_directory};

/// Where the texts of rules are kept that are not in the project: those of directories above it, and git's own.
const OUTSIDE: &str = ".git/outside";
const EXCLUDE_NAME: &str = "exclude";

/// Folders that belong to git and to the chronicle, wherever they are. The kernel's own is at the top of the project alone.
const OWN_FOLDERS: [&str; 2] = [".git", CHRONICLE_DIRECTORY];

/// Whether a path is ignored whatever the rules say, and whatever it is.
pub(crate) fn is_always_ignored(path: &RelativePath) -> bool {
    is_in_kernel_directory(path.as_str()) || path.parts().any(|name| OWN_FOLDERS.contains(&name))
}

/// Whether a file of this name, outside of those folders, is a chronicle, or a torn line that was set aside. A folder
/// never is. In the tree no name makes a file a chronicle; those that an earlier version left are recognised by their
/// content.
pub(crate) fn is_chronicle_name(name: &str, layout: ChronicleLayout) -> bool {
    is_torn_name(name) || layout == ChronicleLayout::Beside && name.ends_with(CHRONICLE_SUFFIX)
}

/// Whether a name in a directory that is not ignored itself belongs to git, to the kernel or to the chronicle.
pub(super) fn is_own_name(
    directory: &RelativePath,
    name: &str,
    is_directory: bool,
    layout: ChronicleLayout,
) -> bool {
    OWN_FOLDERS.contains(&name)
        || (directory.is_root() && is_in_kernel_directory(name))
        || (!is_directory && is_chronicle_name(name, layout))
}

/// The rules of the scanned directories (see `tgp-fs`), and their texts, which show at the next scan whether they are
/// still the same.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Which names are those of chronicles.
    layout: ChronicleLayout,
    rules: IgnoreRules,
    /// The text of every rule file, by its path. Those outside of the project have names below [`OUTSIDE`].
    pub(crate) texts: BTreeMap<RelativePath, String>,
}

impl Rules {
    pub(crate) fn new(layout: ChronicleLayout) -> Self {
        Self { layout, ..Self::default() }
    }

    pub(crate) fn from_texts(texts: BTreeMap<RelativePath, String>, layout: ChronicleLayout) -> Self {
        let mut rules = Self::new(layout);
        let outside: Vec<OutsideRules> =
            texts.iter().filter_map(|(path, text)| from_outside(path, text)).collect();
        rules.add_outside(&outside);
        for (path, text) in texts {
            rules.add(path, text);
        }
        rules
    }

    /// Takes in the rules from outside of the project, all at once.
    pub(crate) fn add_outside(&mut self, outside: &[OutsideRules]) {
        self.rules = std::mem::take(&mut self.rules).with_outside(outside);
        for file in outside {
            if let Some(path) = name_of(file) {
                self.texts.insert(path, String::from_utf8_lossy(&file.text).into_owned());
            }
        }
    }

    /// Whether the rules from outside of the project are those of `stored`.
    pub(crate) fn has_same_outside(&self, stored: &BTreeMap<RelativePath, String>) -> bool {
        let outside = |texts: &BTreeMap<RelativePath, String>| -> Vec<(RelativePath, String)> {
            let outside = texts.iter().filter(|(path, _)| path.as_str().starts_with(OUTSIDE));
            outside.map(|(path, text)| (path.clone(), text.clone())).collect()
        };
        outside(&self.texts) == outside(stored)
    }

    pub(crate) fn add(&mut self, path: RelativePath, text: String) {
        if !path.as_str().starts_with(OUTSIDE) {
            self.rules.set(&path, text.as_bytes());
        }
        self.texts.insert(path, text);
    }

    /// Whether one name is ignored, of which the directory is not.
    pub(crate) fn ignores(&self, path: &RelativePath, is_directory: bool) -> bool {
        path.name().is_some_and(|name| is_own_name(&path.parent(), name, is_directory, self.layout))
            || self.rules.ignores(path, is_directory)
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

/// The name under which a text from outside is kept: no file of a project has one below `.git`.
fn name_of(file: &OutsideRules) -> Option<RelativePath> {
    let name = file.name.unwrap_or(EXCLUDE_NAME);
    let prefix = if file.prefix.is_empty() { String::new() } else { format!("{}/", file.prefix) };
    RelativePath::new(&format!("{OUTSIDE}/{prefix}{name}")).ok()
}

fn from_outside(path: &RelativePath, text: &str) -> Option<OutsideRules> {
    let rest = path.as_str().strip_prefix(OUTSIDE)?.strip_prefix('/')?;
    let (prefix, name) = rest.rsplit_once('/').unwrap_or(("", rest));
    let name = RULE_FILES.iter().find(|known| **known == name).copied();
    Some(OutsideRules { prefix: prefix.to_owned(), name, text: text.as_bytes().to_vec() })
}
