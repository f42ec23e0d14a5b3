//! Which files of a project are ignored: one answer for every caller.
//!
//! Rules come from `.ignore` and `.gitignore` files, from the top of the git repository down to the file, and from git's
//! `info/exclude`. The nearest file decides; any `.ignore` file beats any `.gitignore` file, and both beat `info/exclude`.
//! What is below an ignored directory is ignored. A user's global rules do not count: two people on one project get the
//! same answer. Whether git tracks a file that a rule names makes no difference either.
//!
//! Listing, graph and valve go by the rules as they are in the work tree ([`IgnoreRules`], [`outside_rules`]). The chronicle
//! asks [`ignored`], which hides a file only where the rules of the last commit ignore it too: a rule that an agent has just
//! written must not keep the agent's own changes out of the chronicle.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use tgp_contract::RelativePath;

use crate::committed::HeadTree;
use crate::plain::read_plain;
use crate::repository::{CheckedRepository, RepositoryAccess};

/// The files that hold rules, the stronger kind first.
pub const RULE_FILES: [&str; 2] = [".ignore", ".gitignore"];
/// Bytes of a file of rules. The rules of a larger one do not count: people write no such file, and it would cost every
/// path a match.
pub const MAX_RULE_BYTES: u64 = 256 << 10;
/// The rules that one question of the chronicle reads altogether. An agent can write any number of files of rules; where
/// there are more, nothing is left out.
const MAX_ALL_RULE_BYTES: usize = 1 << 20;
/// Where git keeps rules that are in no commit, below its directory.
const EXCLUDE: &str = "info/exclude";

type Rules = [Option<Gitignore>; RULE_FILES.len()];

/// The rules of one project.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules {
    /// By the directory of their file.
    inside: HashMap<String, Rules>,
    /// Those above the project, the nearest first, with the project's path as seen from there.
    above: Vec<(String, Rules)>,
    exclude: Option<(String, Gitignore)>,
}

/// A file with rules for a project that is not in the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideRules {
    /// The project's path, as seen from the directory whose files the rules are about.
    pub prefix: String,
    /// The name of the file, one of [`RULE_FILES`]; nothing for git's `info/exclude`.
    pub name: Option<&'static str>,
    pub text: Vec<u8>,
}

impl IgnoreRules {
    /// Takes in a file of rules. A path that is none changes nothing. Returns whether it is one.
    pub fn set(&mut self, file: &RelativePath, text: &[u8]) -> bool {
        let Some(kind) = kind_of(file) else { return false };
        let rules = parse(text);
        let directory = file.parent();
        if !rules.is_empty() {
            let held = self.inside.entry(directory.as_str().to_owned()).or_default();
            if let Some(place) = held.get_mut(kind) {
                *place = Some(rules);
            }
        } else {
            self.unset(file);
        }
        true
    }

    /// Forgets the rules of a file.
    pub fn unset(&mut self, file: &RelativePath) {
        let Some(kind) = kind_of(file) else { return };
        let directory = file.parent();
        if let Some(held) = self.inside.get_mut(directory.as_str()) {
            if let Some(place) = held.get_mut(kind) {
                *place = None;
            }
            if held.iter().all(Option::is_none) {
                self.inside.remove(directory.as_str());
            }
        }
    }

    /// Forgets the rules of all files.
    pub fn clear(&mut self) {
        self.inside.clear();
    }

    /// Takes in rules from outside of the project.
    #[must_use]
    pub fn with_outside(mut self, outside: &[OutsideRules]) -> Self {
        for file in outside {
            let rules = parse(&file.text);
            let kind = RULE_FILES.iter().position(|name| file.name == Some(*name));
            let Some(kind) = kind else {
                self.exclude = Some((file.prefix.clone(), rules));
                continue;
            };
            let known = self.above.iter().position(|(prefix, _)| *prefix == file.prefix);
            let at = known.unwrap_or_else(|| {
                self.above.push((file.prefix.clone(), Rules::default()));
                self.above.len() - 1
            });
            if let Some(place) = self.above.get_mut(at).and_then(|(_, held)| held.get_mut(kind)) {
                *place = Some(rules);
            }
        }
        // The nearest is the one from which the project's path is shortest.
        self.above.sort_by_key(|(prefix, _)| prefix.len());
        self
    }

    /// Whether a path is ignored whose directory is not.
    #[must_use]
    pub fn ignores(&self, path: &RelativePath, is_directory: bool) -> bool {
        self.ignores_name(path.as_str(), is_directory)
    }

    /// The same for the text of a path.
    #[must_use]
    pub fn ignores_name(&self, path: &str, is_directory: bool) -> bool {
        for kind in 0..RULE_FILES.len() {
            let mut directory = parent(path);
            loop {
                if let Some(rules) = self.inside.get(directory).and_then(|held| held.get(kind)?.as_ref()) {
                    let below = path.get(directory.len()..).unwrap_or_default().trim_start_matches('/');
                    if let Some(verdict) = verdict(rules, below, is_directory) {
                        return verdict;
                    }
                }
                if directory.is_empty() {
                    break;
                }
                directory = parent(directory);
            }
            for (prefix, held) in &self.above {
                if let Some(rules) = held.get(kind).and_then(Option::as_ref)
                    && let Some(verdict) = verdict(rules, &join(prefix, path), is_directory)
                {
                    return verdict;
                }
            }
        }
        let exclude = self.exclude.as_ref();
        exclude.and_then(|(prefix, rules)| verdict(rules, &join(prefix, path), is_directory)).unwrap_or(false)
    }

    /// Whether a file, or one of the directories it is in, is ignored.
    #[must_use]
    pub fn ignores_file(&self, path: &RelativePath) -> bool {
        let path = path.as_str();
        let mut directories = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        directories.any(|directory| self.ignores_name(directory, true)) || self.ignores_name(path, false)
    }
}

/// The rules for files of `project` that are not in it: of the directories above, up to the top of the git repository,
/// and git's own. Links to such files are not followed, as git does not follow them. A repository that `access` does not let
/// be used has none.
#[must_use]
pub fn outside_rules(project: &Path, access: &RepositoryAccess) -> Vec<OutsideRules> {
    let Some(place) = GitPlace::of(project, access) else { return Vec::new() };
    place.outside(&|file| read_plain(file, MAX_RULE_BYTES))
}

/// Which of `paths` the chronicle leaves out: those that are ignored both by the rules that are on the disk now and by those
/// of the last commit. `read` gives the content of a file of the project as it is now.
///
/// So a change of the rules that is not committed yet can only bring files in. Git's `info/exclude`, which no agent can
/// write, counts as it is. Where there is no commit there are no committed rules, and where there is no repository
/// nothing is left out. Nor is anything where there are more rules than a person writes.
#[must_use]
pub fn ignored(
    project: &Path,
    access: &RepositoryAccess,
    paths: &[RelativePath],
    read: &dyn Fn(&RelativePath) -> Option<Vec<u8>>,
) -> Vec<bool> {
    let Some(place) = GitPlace::of(project, access) else { return vec![false; paths.len()] };
    let nothing = || vec![false; paths.len()];
    let outside = place.outside(&|file| read_plain(file, MAX_RULE_BYTES));
    let Some(mut ignored) = ignored_by(&outside, paths, read) else { return nothing() };
    if ignored.contains(&true) {
        let head = place.head(access);
        let committed = |path: &str| head.as_ref()?.read(path, MAX_RULE_BYTES);
        let outside = place.outside(&|file| committed(file.strip_prefix(place.git.top()).ok()?.to_str()?));
        let prefix = place.seen_from(place.git.top()).unwrap_or_default();
        let was = ignored_by(&outside, paths, &|file| committed(&join(&prefix, file.as_str())));
        let Some(was) = was else { return nothing() };
        ignored.iter_mut().zip(was).for_each(|(is, was)| *is &= was);
    }
    ignored
}

/// The file of the project as the last commit has it, of at most `most` bytes. None where there is no repository, no commit,
/// or no such plain file in it.
#[must_use]
pub fn committed_file(
    project: &Path,
    access: &RepositoryAccess,
    path: &RelativePath,
    most: u64,
) -> Option<Vec<u8>> {
    let place = GitPlace::of(project, access)?;
    let prefix = place.seen_from(place.git.top())?;
    place.head(access)?.read(&join(&prefix, path.as_str()), most)
}

/// Which of `paths` are ignored by the rules from outside and by those that `read` finds. None where there are more rules
/// than [`MAX_ALL_RULE_BYTES`].
fn ignored_by(
    outside: &[OutsideRules],
    paths: &[RelativePath],
    read: &dyn Fn(&RelativePath) -> Option<Vec<u8>>,
) -> Option<Vec<bool>> {
    let mut left = MAX_ALL_RULE_BYTES;
    let mut rules = IgnoreRules::default().with_outside(outside);
    let mut known = HashSet::new();
    for path in paths {
        let mut directory = path.parent();
        while known.insert(directory.clone()) {
            for name in RULE_FILES {
                if let Some((file, text)) =
                    directory.join(name).ok().and_then(|file| Some((file.clone(), read(&file)?)))
                    && text.len() as u64 <= MAX_RULE_BYTES
                {
                    left = left.checked_sub(text.len())?;
                    rules.set(&file, &text);
                }
            }
            directory = directory.parent();
        }
    }
    Some(paths.iter().map(|path| rules.ignores_file(path)).collect())
}

/// Where a project is in its repository.
struct GitPlace {
    project: PathBuf,
    git: CheckedRepository,
}

impl GitPlace {
    /// None when the project is in no repository that may be used.
    fn of(project: &Path, access: &RepositoryAccess) -> Option<Self> {
        let project = project.canonicalize().ok()?;
        let git = access.locate(&project).ok()??;
        Some(Self { project, git })
    }

    /// The last commit, if the repository is still the one that was checked.
    fn head(&self, access: &RepositoryAccess) -> Option<HeadTree> {
        let (checked, git) = access.open(&self.project).ok()??;
        (checked == self.git).then(|| HeadTree::of(git))?
    }

    /// The project's path, as seen from a directory above it.
    fn seen_from(&self, directory: &Path) -> Option<String> {
        Some(self.project.strip_prefix(directory).ok()?.to_str()?.to_owned())
    }

    /// The rules from outside of the project, those of the directories above as `read` finds them.
    fn outside(&self, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> Vec<OutsideRules> {
        let mut found = Vec::new();
        let above =
            self.project.ancestors().skip(1).take_while(|directory| directory.starts_with(self.git.top()));
        for directory in above {
            let Some(prefix) = self.seen_from(directory) else { continue };
            for name in RULE_FILES {
                let text = read(&directory.join(name));
                found.extend(text.map(|text| OutsideRules {
                    prefix: prefix.clone(),
                    name: Some(name),
                    text,
                }));
            }
        }
        let text = read_plain(&self.git.shared().join(EXCLUDE), MAX_RULE_BYTES);
        let exclude = text.zip(self.seen_from(self.git.top()));
        found.extend(exclude.map(|(text, prefix)| OutsideRules { prefix, name: None, text }));
        found
    }
}

fn kind_of(file: &RelativePath) -> Option<usize> {
    RULE_FILES.iter().position(|name| file.name() == Some(name))
}

/// A line that is not a pattern says nothing, and a byte-order mark is passed over, as in git.
fn parse(text: &[u8]) -> Gitignore {
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        let _ = builder.add_line(None, &literal_braces(line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// To git braces are letters like others, and a line ends with a zero byte. The matcher would read `{a,b}` as a choice.
fn literal_braces(line: &str) -> String {
    let line = line.split('\0').next().unwrap_or_default();
    let mut escaped = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                escaped.push(character);
                escaped.extend(characters.next());
            }
            '{' | '}' => {
                escaped.push('[');
                escaped.push(character);
                escaped.push(']');
            }
            // A class of characters, in which braces are letters already. The first one in it never ends it.
            '[' => {
                escaped.push(character);
                if let Some(sign) = characters.next_if(|next| matches!(next, '!' | '^')) {
                    escaped.push(sign);
                }
                escaped.extend(characters.next());
                for inside in characters.by_ref() {
                    escaped.push(inside);
                    if inside == ']' {
                        break;
                    }
                }
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn verdict(rules: &Gitignore, path: &str, is_directory: bool) -> Option<bool> {
    match rules.matched(path, is_directory) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

fn join(prefix: &str, path: &str) -> String {
    if prefix.is_empty() { path.to_owned() } else { format!("{prefix}/{path}") }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
