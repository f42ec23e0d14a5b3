//! What no call may touch, whatever the files say. The jail and the workspace file system use the same table.

use std::borrow::Cow;
use std::sync::LazyLock;

use tgp_contract::{
    Access, CHRONICLE_DIRECTORY, ChronicleLayout, PathProbe, RelativePath, Root, chronicled,
    ends_as_chronicle,
};
use tgp_fs::{KERNEL_DIRECTORY, is_kernel_private};
use tgp_text::{RulePurpose, fold_name, rule_file};

use crate::PolicySettings;

/// Why a path is out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// `builtin/git`, `builtin/state`, `builtin/policy`, `builtin/config`, `builtin/credentials`, `builtin/chronicle` or
    /// `builtin/roots`.
    pub rule: &'static str,
    pub reason: &'static str,
    /// True when reading is denied too.
    pub reads: bool,
}

impl Protection {
    /// Whether it applies to this access.
    #[must_use]
    pub fn forbids(&self, access: Access) -> bool {
        self.reads || !(access == Access::Read || access == Access::Append && self.rule == CHRONICLE.rule)
    }
}

impl Protection {
    /// Whether it can depend on what is in the file.
    pub(crate) fn is_by_content(&self) -> bool {
        self.rule == CHRONICLE.rule
    }
}

const ROOTS: Protection = Protection {
    rule: "builtin/roots",
    reason: "the path is outside the project and outside the directories that `fs.allowedDirs` and `fs.readDirs` name",
    reads: true,
};
const READ_ONLY: Protection = Protection {
    rule: "builtin/roots",
    reason: "the path is in a directory of `fs.readDirs` outside the project, which is only read",
    reads: false,
};
const GIT: Protection = Protection {
    rule: "builtin/git",
    reason: "the inside of a git repository is changed by git alone",
    reads: true,
};
const STATE: Protection = Protection {
    rule: "builtin/state",
    reason: "the kernel's own state, with the audit and the default database, belongs to the kernel alone",
    reads: true,
};
const TOOL_ROOT: Protection = Protection {
    rule: "builtin/state",
    reason: "the tool repository is not replaced or removed as a whole",
    reads: false,
};
const POLICY: Protection =
    Protection { rule: "builtin/policy", reason: "policy files are changed by people", reads: false };
const CONFIG: Protection =
    Protection { rule: "builtin/config", reason: "the configuration is changed by people", reads: false };
pub(crate) const CHRONICLE: Protection = Protection {
    rule: "builtin/chronicle",
    reason: "chronicles only grow, by events, and the invariants beside them are changed by people",
    reads: false,
};
const CREDENTIALS: Protection = Protection {
    rule: "builtin/credentials",
    reason: "files that usually hold secrets are neither read nor written",
    reads: true,
};

/// One protection for each rule, in the order in which they are asked.
pub(crate) const ALL: [Protection; 7] = [ROOTS, GIT, STATE, CREDENTIALS, POLICY, CONFIG, CHRONICLE];

/// Names of files that hold secrets.
const SECRET_NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".npmrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".dockercfg",
    ".git-credentials",
    ".vault-token",
    "credentials.json",
    "credentials.tfrc.json",
];
/// Files that look like `.env.…` and are made to be shared.
const SHARED_ENVIRONMENTS: &[&str] = &[".env.example", ".env.sample", ".env.template"];
const SECRET_BEGINNINGS: &[&str] = &[".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
const SECRET_ENDINGS: &[&str] = &[".pem", ".key", ".kdbx", ".p12", ".pfx", ".jks", ".keystore", ".ppk"];
/// Directories that hold secrets, themselves and everything in them.
const SECRET_DIRECTORIES: &[&str] = &[".aws", ".ssh", ".gnupg"];
/// Files known by the directory they are in.
const SECRET_PAIRS: &[(&str, &str)] = &[
    (".docker", "config.json"),
    (".kube", "config"),
    (".cargo", "credentials"),
    (".cargo", "credentials.toml"),
    (".config", "gcloud"),
    (".config", "gh"),
    (".gem", "credentials"),
];

/// The path with every name folded, when that is another text.
pub(crate) fn fold_path(path: &RelativePath) -> Option<String> {
    let folded = path.parts().map(fold_name).collect::<Vec<_>>().join("/");
    (folded != path.as_str()).then_some(folded)
}

/// The table of one installation.
#[derive(Clone, Debug)]
pub struct Protections {
    tool_roots: Vec<(Root, Vec<String>)>,
    host_directories: Vec<RelativePath>,
    read_only_directories: Vec<RelativePath>,
    files: Vec<(Root, Vec<String>)>,
    git_directories: Vec<(Root, Vec<String>)>,
    git_probe: Option<PathProbe>,
    layout: ChronicleLayout,
    /// Distinguishes chronicles that are not where the layout has them from other files of such a name. Without it none
    /// is recognised.
    probe: Option<PathProbe>,
}

impl Protections {
    #[must_use]
    pub fn new(settings: &PolicySettings) -> Self {
        let folded = |path: &RelativePath| path.parts().map(|part| fold_name(part).into_owned()).collect();
        let table =
            |list: &[(Root, RelativePath)]| list.iter().map(|(root, path)| (*root, folded(path))).collect();
        Self {
            tool_roots: table(&settings.tool_roots),
            host_directories: settings.allowed_host_directories.clone(),
            read_only_directories: settings.read_only_host_directories.clone(),
            files: table(&settings.protected_files),
            git_directories: table(&settings.git_directories),
            git_probe: settings.git_probe.clone(),
            layout: settings.layout,
            probe: settings.probe.clone(),
        }
    }

    /// What protects `path`, if anything does: the one that also forbids reading comes first. Names are compared as
    /// the most forgiving file system would.
    #[must_use]
    pub fn of(&self, root: Root, path: &RelativePath) -> Option<Protection> {
        let (writable, readable) = match root {
            Root::Host => {
                (path.nearest_depth(&self.host_directories), path.nearest_depth(&self.read_only_directories))
            }
            Root::Project | Root::Tools => (None, None),
        };
        if root == Root::Host && writable.max(readable).is_none() {
            return Some(ROOTS);
        }
        let is_read_only = root == Root::Host && readable >= writable;
        let parts: Vec<Cow<'_, str>> = path.parts().map(fold_name).collect();
        self.by_name(root, &parts)
            .or_else(|| {
                // What follows a colon names a stream of the file on some file systems, and is a part of its name on others.
                let without_streams =
                    |part: &str| fold_name(part.split(':').next().unwrap_or_default()).into_owned();
                let has_streams = parts.iter().any(|part| part.contains(':'));
                let cut = || parts.iter().map(|part| Cow::Owned(without_streams(part))).collect::<Vec<_>>();
                has_streams.then(|| self.by_name(root, &cut())).flatten()
            })
            // A chronicle describes its file, so what keeps the one from being read keeps the other, whatever is in
            // it.
            .or_else(|| {
                let file = chronicled(path)?;
                let parts: Vec<Cow<'_, str>> = file.parts().map(fold_name).collect();
                self.by_name(root, &parts).filter(|protection| protection.reads)
            })
            .or_else(|| self.git_probe.as_ref().is_some_and(|probe| probe.matches(root, path)).then_some(GIT))
            .or_else(|| self.is_old_chronicle(root, path).then_some(CHRONICLE))
            .or_else(|| is_read_only.then_some(READ_ONLY))
    }

    /// The purpose of the rule file that a path of the project or of its tool repository looks like.
    fn near_rule_file(&self, root: Root, parts: &[Cow<'_, str>]) -> Option<RulePurpose> {
        let is_chronicle = parts.first().is_some_and(|first| first == CHRONICLE_DIRECTORY);
        match root {
            Root::Tools => rule_file_purpose(true, parts),
            Root::Project if is_chronicle => None,
            Root::Project | Root::Host => {
                let below = self.tool_roots.iter().find_map(|(at, prefix)| {
                    (*at == root && starts_with(parts, prefix)).then(|| parts.get(prefix.len()..)).flatten()
                });
                match below {
                    Some(below) => rule_file_purpose(true, below),
                    None => (root == Root::Project).then(|| rule_file_purpose(false, parts)).flatten(),
                }
            }
        }
    }

    /// Whether a file is a chronicle that is not where the layout has it: it has such a name, and its content says so.
    fn is_old_chronicle(&self, root: Root, path: &RelativePath) -> bool {
        let has_name = path.parts().any(|part| ends_as_chronicle(&fold_name(part)));
        has_name && self.probe.as_ref().is_none_or(|probe| probe.matches(root, path))
    }

    fn by_name(&self, root: Root, parts: &[Cow<'_, str>]) -> Option<Protection> {
        let in_tools = |is_meant: fn(&str) -> bool| {
            let below = |parts: &[Cow<'_, str>]| parts.first().is_some_and(|first| is_meant(first));
            (root == Root::Tools && below(parts))
                || self.tool_roots.iter().any(|(at, prefix)| {
                    *at == root && starts_with(parts, prefix) && below(parts.get(prefix.len()..).unwrap_or_default())
                })
                // Another project's tool repository, or ours by a way the settings do not know.
                || pairs(parts).any(|(first, second)| first == ".tgp" && is_meant(second))
        };
        let named = |test: fn(&str) -> bool| parts.iter().any(|part| test(part));
        // Replacing a directory replaces what is in it.
        let is_tool_root = |(at, tools): &(Root, Vec<String>)| {
            *at == root && !parts.is_empty() && parts.len() == tools.len() && starts_with(parts, tools)
        };
        let is_in = |table: &[(Root, Vec<String>)]| {
            table.iter().any(|(at, place)| *at == root && starts_with(parts, place))
        };
        if named(|name| name == ".git") || is_in(&self.git_directories) {
            Some(GIT)
        } else if in_tools(is_kernel_private) {
            Some(STATE)
        } else if is_credential(parts) {
            Some(CREDENTIALS)
        } else if self.tool_roots.iter().any(is_tool_root) {
            Some(TOOL_ROOT)
        } else if in_tools(|name| name == "policy")
            || named(|name| matches!(name, "tgp.policy.yaml" | "tgp.policy.yml"))
            || is_in(&self.files)
        {
            Some(POLICY)
        } else if named(|name| name.starts_with("tgp.config.")) {
            Some(CONFIG)
        } else if let Some(purpose) = self.near_rule_file(root, parts) {
            Some(if purpose == RulePurpose::Config { CONFIG } else { POLICY })
        } else if self.layout.reserves_parts(parts.iter().map(AsRef::as_ref)) {
            Some(CHRONICLE)
        } else {
            None
        }
    }
}

/// The purpose of the rule file that a path looks like. Names of the directory of chronicles are reserved as a whole.
fn rule_file_purpose(in_tools: bool, parts: &[Cow<'_, str>]) -> Option<RulePurpose> {
    let tools = in_tools.then_some(KERNEL_DIRECTORY);
    // What is below such a name is the same, so two names decide.
    let names: Vec<&str> = tools.into_iter().chain(parts.iter().take(2).map(AsRef::as_ref)).collect();
    rule_file(&names).map(|file| file.purpose)
}

fn starts_with(parts: &[Cow<'_, str>], prefix: &[String]) -> bool {
    parts.len() >= prefix.len() && parts.iter().zip(prefix).all(|(part, name)| part == name)
}

fn pairs<'a>(parts: &'a [Cow<'_, str>]) -> impl Iterator<Item = (&'a str, &'a str)> {
    parts.iter().zip(parts.iter().skip(1)).map(|(first, second)| (first.as_ref(), second.as_ref()))
}

fn is_credential(parts: &[Cow<'_, str>]) -> bool {
    let secret = |name: &str| {
        SECRET_NAMES.contains(&name)
            || SECRET_DIRECTORIES.contains(&name)
            || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
            || (SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
                && !SHARED_ENVIRONMENTS.contains(&name))
    };
    parts.iter().any(|part| secret(part)) || pairs(parts).any(|pair| SECRET_PAIRS.contains(&pair))
}

/// What protects `path` in an installation with the usual settings.
#[must_use]
pub fn protected(root: Root, path: &RelativePath) -> Option<Protection> {
    static USUAL: LazyLock<Protections> = LazyLock::new(|| Protections::new(&PolicySettings::default()));
    USUAL.of(root, path)
}
