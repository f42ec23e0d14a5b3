//! The difference between what is known and what is there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tgp_contract::RelativePath;

use crate::change::{Change, FileChangeKind};
use crate::failure::Failure;
use crate::journal::Known;
use crate::personas::Personas;
use crate::tree::{ContentError, Hashing, Rules, ScanObstacle, Seen, Stamp};

/// A change, and what of its content some personas were looking for.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) change: Change,
    /// By the later of the file's times: copying, unpacking or moving a file may set back its modification time.
    changed_ns: i64,
    /// The pattern that was found, by the number of the persona.
    pub(crate) patterns: BTreeMap<usize, String>,
}

/// All that is to be written down.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// In the order in which it is reported: what is gone, then the rest by its time.
    pub(crate) found: Vec<Found>,
    pub(crate) remembered: Vec<(RelativePath, Known)>,
    pub(crate) forgotten: Vec<RelativePath>,
    /// What is gone and may come under another name yet. It is as it was until the next scan.
    pub(crate) doubtful: Vec<UncertainDeletion>,
    /// What is ignored from now on, with the content that was last reported.
    pub(crate) hidden: Vec<(RelativePath, String)>,
    pub(crate) blind: Vec<ScanObstacle>,
}

/// Files that may be renamed rather than deleted; if more are removed at once, they were not renamed one by one, and
/// the rest is reported as deleted at once.
const MAX_DOUBTFUL: usize = 10_000;

/// A file that is gone, and may not be deleted.
#[derive(Debug)]
pub(crate) struct UncertainDeletion {
    pub(crate) path: RelativePath,
    /// The name under which it was there a moment ago.
    pub(crate) met: Option<RelativePath>,
}

/// Which files that are gone count as deleted.
#[derive(Clone, Debug)]
pub(crate) enum Deletions {
    /// All: everything was scanned.
    Certain,
    /// These only, since a part of the tree does not show what came to the rest of it.
    Only(BTreeSet<RelativePath>),
}

/// What a file is compared by.
pub(crate) struct Comparison<'a, 't> {
    pub(crate) hashing: &'a mut Hashing<'t>,
    pub(crate) personas: &'a Personas,
    /// The rules of the last scan, where they were others: what they hid, and has not changed since, is not new.
    pub(crate) old_rules: Option<&'a Rules>,
    pub(crate) last_look_ns: i64,
    /// The very first scan, which only remembers.
    pub(crate) is_silent: bool,
    pub(crate) deletions: &'a Deletions,
}

struct Created {
    path: RelativePath,
    known: Known,
    patterns: BTreeMap<usize, String>,
}

impl Comparison<'_, '_> {
    pub(crate) fn run(
        self,
        mut known: HashMap<RelativePath, Known>,
        seen: Seen,
    ) -> Result<Difference, Failure> {
        let mut difference = Difference { blind: seen.blind, ..Difference::default() };
        let mut created = Vec::new();
        let mut escaped = HashMap::new();
        for (path, stamp) in seen.files {
            let before = known.remove(&path);
            if before.as_ref().is_some_and(|before| before.is_settled && before.stamp == stamp) {
                continue;
            }
            let content = match self.hashing.read(&path) {
                Ok(content) => content,
                Err(ContentError::Vanished) => {
                    escaped.insert((stamp.device, stamp.inode), (path.clone(), stamp));
                    known.extend(before.map(|before| (path, before)));
                    continue;
                }
                Err(ContentError::Unreadable(error)) => {
                    difference.blind.push(ScanObstacle::Unreadable(path, error));
                    continue;
                }
                Err(ContentError::Stopped) => return Err(Failure::Stopped),
            };
            let now = Known { stamp: content.stamp, sha256: content.sha256, is_settled: content.is_settled };
            match before {
                Some(before) if before.sha256 == now.sha256 => difference.remembered.push((path, now)),
                Some(before) => {
                    let patterns = self.patterns();
                    let change = Change {
                        kind: FileChangeKind::Changed,
                        path: path.clone(),
                        from: None,
                        before: Some(before.sha256),
                        after: Some(now.sha256.clone()),
                    };
                    difference.found.push(Found { change, changed_ns: changed_ns(&now), patterns });
                    difference.remembered.push((path, now));
                }
                None if self.is_silent || self.was_hidden(&path, &now) => {
                    difference.remembered.push((path, now));
                }
                None => created.push(Created { path, known: now, patterns: self.patterns() }),
            }
        }
        let gone = gone(known, &seen.rules, &mut difference);
        let doubts = Doubts { deletions: self.deletions, escaped };
        pair(gone, created, &doubts, &mut difference);
        difference.found.sort_by(|one, other| order(one).cmp(&order(other)));
        Ok(difference)
    }

    /// Whether a file that was not known has been there at the last scan, where it was ignored.
    fn was_hidden(&self, path: &RelativePath, now: &Known) -> bool {
        now.stamp.ctime_ns < self.last_look_ns && self.old_rules.is_some_and(|rules| rules.ignores_file(path))
    }

    /// What the personas find in the file that was read last.
    fn patterns(&self) -> BTreeMap<usize, String> {
        let Some(text) = self.hashing.head() else { return BTreeMap::new() };
        let found = self
            .personas
            .iter()
            .enumerate()
            .filter_map(|(number, persona)| Some((number, persona.pattern_of(text)?.to_owned())));
        found.collect()
    }
}

fn order(found: &Found) -> (bool, i64, &RelativePath) {
    match found.change.kind {
        FileChangeKind::Deleted => (false, 0, &found.change.path),
        _ => (true, found.changed_ns, &found.change.path),
    }
}

fn changed_ns(known: &Known) -> i64 {
    known.stamp.mtime_ns.max(known.stamp.ctime_ns)
}

/// What was known and is not there any more. What cannot be seen is not gone, and what is ignored now does not count.
fn gone(
    missing: HashMap<RelativePath, Known>,
    rules: &Rules,
    difference: &mut Difference,
) -> Vec<(RelativePath, Known)> {
    let hidden: HashSet<RelativePath> = difference
        .blind
        .iter()
        .filter_map(|blind| match blind {
            ScanObstacle::Unreadable(path, _) => Some(path.clone()),
            ScanObstacle::Unspeakable(..) | ScanObstacle::Rules(..) => None,
        })
        .collect();
    let is_hidden = |path: &RelativePath| {
        let mut at = path.clone();
        while !hidden.is_empty() {
            if hidden.contains(&at) {
                return true;
            }
            if at.is_root() {
                break;
            }
            at = at.parent();
        }
        false
    };
    let mut gone = Vec::new();
    for (path, known) in missing {
        if is_hidden(&path) {
            continue;
        }
        if rules.ignores_file(&path) {
            difference.forgotten.push(path.clone());
            difference.hidden.push((path, known.sha256));
        } else {
            gone.push((path, known));
        }
    }
    gone.sort_by(|(one, _), (other, _)| one.cmp(other));
    gone
}

/// Why a file that is gone may not be deleted.
struct Doubts<'a> {
    deletions: &'a Deletions,
    /// Files that were there a moment ago, and had another name by the time they were read; by device and inode.
    escaped: HashMap<(u64, u64), (RelativePath, Stamp)>,
}

impl Doubts<'_> {
    fn about(&self, path: &RelativePath, known: &Known) -> Option<UncertainDeletion> {
        let Deletions::Only(certain) = self.deletions else { return None };
        let met = self.escaped.get(&(known.stamp.device, known.stamp.inode));
        let met = met.filter(|(_, stamp)| stamp.is_same_inode(&known.stamp)).map(|(path, _)| path.clone());
        (met.is_some() || !certain.contains(path)).then(|| UncertainDeletion { path: path.clone(), met })
    }
}

/// Which new file is which old one.
struct RenameMatcher {
    old_of: HashMap<usize, usize>,
    is_used: Vec<bool>,
}

impl RenameMatcher {
    /// Joins two, unless one of them has found another already.
    fn join(&mut self, new: usize, old: usize) {
        if self.old_of.contains_key(&new) || self.is_used(old) {
            return;
        }
        if let Some(slot) = self.is_used.get_mut(old) {
            *slot = true;
            self.old_of.insert(new, old);
        }
    }

    fn is_used(&self, old: usize) -> bool {
        self.is_used.get(old).copied().unwrap_or(true)
    }
}

/// Finds out which files that are gone are the new ones under another name.
fn pair(
    gone: Vec<(RelativePath, Known)>,
    created: Vec<Created>,
    doubts: &Doubts<'_>,
    difference: &mut Difference,
) {
    let mut by_inode: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    let mut by_hash: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, (_, known)) in gone.iter().enumerate() {
        by_inode.entry((known.stamp.device, known.stamp.inode)).or_default().push(number);
        by_hash.entry(&known.sha256).or_default().push(number);
    }
    let mut pairs = RenameMatcher { old_of: HashMap::new(), is_used: vec![false; gone.len()] };
    // The same inode with the same content, then the same inode with another one.
    for is_same_content in [true, false] {
        for (new, file) in created.iter().enumerate().filter(|(_, file)| file.known.stamp.inode != 0) {
            if pairs.old_of.contains_key(&new) {
                continue;
            }
            let key = (file.known.stamp.device, file.known.stamp.inode);
            for old in by_inode.get(&key).into_iter().flatten() {
                let fits = gone.get(*old).is_some_and(|(_, known)| {
                    let is_alike = known.sha256 == file.known.sha256;
                    // The number alone would not do: it is given to the next new file.
                    let is_same = known.stamp.is_same_inode(&file.known.stamp)
                        || (is_alike && known.stamp.born_ns.is_none());
                    is_same && (is_alike || !is_same_content)
                });
                if fits {
                    pairs.join(new, *old);
                }
            }
        }
    }
    // A content that is gone at one place and new at one other. Empty files are all alike, and say nothing.
    let mut new_by_hash: HashMap<&str, Vec<usize>> = HashMap::new();
    for (new, file) in created.iter().enumerate().filter(|(new, _)| !pairs.old_of.contains_key(new)) {
        if file.known.stamp.size > 0 {
            new_by_hash.entry(&file.known.sha256).or_default().push(new);
        }
    }
    for (hash, new) in &new_by_hash {
        let olds = by_hash.get(hash).into_iter().flatten().copied();
        let olds: Vec<usize> = olds.filter(|old| !pairs.is_used(*old)).collect();
        if let ([new], [old]) = (new.as_slice(), olds.as_slice()) {
            pairs.join(*new, *old);
        }
    }
    for (new, file) in created.into_iter().enumerate() {
        let from = pairs.old_of.get(&new).and_then(|old| gone.get(*old));
        let change = Change {
            kind: if from.is_some() { FileChangeKind::Renamed } else { FileChangeKind::Created },
            path: file.path.clone(),
            from: from.map(|(path, _)| path.clone()),
            before: from.map(|(_, known)| known.sha256.clone()),
            after: Some(file.known.sha256.clone()),
        };
        difference.found.push(Found { change, changed_ns: changed_ns(&file.known), patterns: file.patterns });
        difference.remembered.push((file.path, file.known));
    }
    for (number, (path, known)) in gone.into_iter().enumerate() {
        let is_deleted = !pairs.is_used(number);
        if is_deleted
            && difference.doubtful.len() < MAX_DOUBTFUL
            && let Some(doubtful) = doubts.about(&path, &known)
        {
            difference.doubtful.push(doubtful);
            continue;
        }
        difference.forgotten.push(path.clone());
        if is_deleted {
            let change = Change {
                kind: FileChangeKind::Deleted,
                path,
                from: None,
                before: Some(known.sha256),
                after: None,
            };
            difference.found.push(Found { change, changed_ns: 0, patterns: BTreeMap::new() });
        }
    }
}
