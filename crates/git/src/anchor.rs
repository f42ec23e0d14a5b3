//! A few words that are kept in the repository beside the tools, and pushed with them: the newest hash of the audit.
//!
//! They are the message of a commit without parents and without files behind `refs/tgp/audit/head`. A commit and not a
//! blob, because a tool may have any content, and removing the previous anchor must never remove another file's
//! content. The reference is replaced by a rename and needs neither git's lock nor our own, so it never waits for a
//! writer.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::{Odb, Oid, Repository, Signature, Time};
use tgp_contract::{Code, ToolError};

use crate::failure::{At, Doing};
use crate::fsync::{check_written, sync_beside};
use crate::local::open_repository_at;
use crate::rebase::empty_tree;
use crate::worktree::TEMPORARY_PREFIX;
use tgp_fs::{jittered, read_plain};

const REFERENCE: &str = "refs/tgp/audit/head";
/// Where the remote keeps the words of each machine's chain.
const REMOTE_PREFIX: &str = "refs/tgp/audit/";
/// How the message of an anchor begins; without it a commit is not ours to remove.
const MARK: &str = "tgp anchor ";
/// A name is a random id, and the words are one line.
const MAX_NAME_BYTES: usize = 64;
const MAX_CONTENT_BYTES: usize = 4 << 10;
/// Another process may sweep up what it takes for a dead writer's, or move the anchor while it is read.
const MAX_ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

static ISSUED: AtomicU64 = AtomicU64::new(0);

/// The anchor of one repository: a few words behind a reference that no branch leads to. Pushes take them along under the
/// name they were stored with, so machines that share a remote do not overwrite each other's. It waits for no lock and
/// takes about a millisecond; call it from a thread that may wait.
#[derive(Clone, Debug)]
pub struct RepositoryAnchor {
    root: PathBuf,
    clock: fn() -> SystemTime,
}

/// An anchor that is there.
pub(crate) struct Anchored {
    pub(crate) commit: Oid,
    name: String,
    content: String,
}

impl Anchored {
    /// Where the remote keeps it.
    pub(crate) fn remote_reference(&self) -> String {
        format!("{REMOTE_PREFIX}{}", self.name)
    }
}

impl RepositoryAnchor {
    /// That of a tool root; `clock` dates it.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, clock: fn() -> SystemTime) -> Self {
        Self { root: root.into(), clock }
    }

    fn state(&self) -> PathBuf {
        self.root.join(crate::branch_names::STATE)
    }

    /// Replaces the anchor and removes the former one, so that not every call leaves an object behind.
    ///
    /// # Errors
    /// `EGIT` when the repository cannot be used or written, `EVALIDATION` for a name that is not of lower-case letters
    /// and digits, or for more than 4 KiB.
    pub fn store(&self, name: &str, content: &str) -> Result<(), ToolError> {
        self.store_after(name, content, &mut || Ok(()))
    }

    /// The same, once `settle` has made what the anchor speaks of outlive a power failure. The disk does that together with
    /// what the anchor itself needs.
    ///
    /// # Errors
    /// As [`RepositoryAnchor::store`], and those of `settle`; the former anchor stays then.
    pub fn store_after(
        &self,
        name: &str,
        content: &str,
        settle: &mut dyn FnMut() -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        check(name, content)?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.replace(name, content, settle) {
                Err(_) if attempt < MAX_ATTEMPTS => std::thread::sleep(jittered(PAUSE)),
                outcome => return outcome,
            }
        }
    }

    fn replace(
        &self,
        name: &str,
        content: &str,
        settle: &mut dyn FnMut() -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        // A repository that was opened by its objects alone takes new ones and keeps none.
        let repo = open_repository_at(&self.root).doing("cannot open the tool repository")?;
        let former = self.target()?;
        let now = (self.clock)().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let time = Time::new(i64::try_from(now).unwrap_or(i64::MAX), 0);
        let signature =
            Signature::new("tgp", "audit@localhost", &time).doing("cannot write the anchor of the audit")?;
        let tree = empty_tree(&repo)?;
        let message = format!("{MARK}{name}\n\n{content}\n");
        let commit = repo
            .commit(None, &signature, &signature, &message, &tree, &[])
            .doing("cannot write the anchor of the audit")?;
        if former == Some(commit) {
            return Ok(());
        }
        check_written(&repo, commit)?;
        check_written(&repo, tree.id())?;
        // A reference to an object that a power failure has emptied would look like a user's work.
        let mut fresh = vec![self.loose(commit)];
        if former.is_none() {
            fresh.push(self.loose(tree.id()));
        }
        sync_beside(&fresh, settle)?;
        self.point_to(commit)?;
        if let Some(former) = former {
            self.remove_own(&repo, former);
        }
        Ok(())
    }

    /// Where an object lies that is in no pack. A repository that was opened by its objects alone does not know its path.
    fn loose(&self, id: Oid) -> PathBuf {
        let text = id.to_string();
        let (folder, name) = text.split_at_checked(2).unwrap_or_default();
        self.root.join(".git/objects").join(folder).join(name)
    }

    /// Removes an anchor that was replaced, and nothing that is not one. One that git has packed stays.
    fn remove_own(&self, repo: &Repository, former: Oid) {
        if read(repo, former).is_some() {
            let _ = fs::remove_file(self.loose(former));
        }
    }

    /// Removes the anchor, also one that cannot be read.
    ///
    /// # Errors
    /// `EGIT` when it cannot be removed.
    pub fn clear(&self) -> Result<(), ToolError> {
        let target = self.root.join(".git").join(REFERENCE);
        match fs::remove_file(&target) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.at("cannot remove the anchor of the audit", &target),
        }
    }

    /// Moves the reference by a rename: a reader sees the old or the new one.
    fn point_to(&self, commit: Oid) -> Result<(), ToolError> {
        const DOING: &str = "cannot write the anchor of the audit";
        let number = ISSUED.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TEMPORARY_PREFIX}anchor-{}-{number}", std::process::id());
        let fresh = self.state().join(name);
        let target = self.root.join(".git").join(REFERENCE);
        let folder = target.parent().unwrap_or(&target);
        fs::create_dir_all(folder).at(DOING, folder)?;
        let written = fs::write(&fresh, format!("{commit}\n")).and_then(|()| fs::rename(&fresh, &target));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written.at(DOING, &target)
    }

    /// The words that were stored last; `None` when none ever were.
    ///
    /// # Errors
    /// `EINTEGRITY` when there is something else in their place, `EGIT` when the repository cannot be read.
    pub fn load(&self) -> Result<Option<String>, ToolError> {
        Ok(self.current()?.map(|anchored| anchored.content))
    }

    /// The anchor as it is. The former one vanishes when it is replaced, so a commit that is gone is looked for again.
    pub(crate) fn current(&self) -> Result<Option<Anchored>, ToolError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let Some(commit) = self.target()? else {
                // Whether that means that none was ever stored, only a repository can tell that can be read.
                self.open()?;
                return Ok(None);
            };
            // Its objects are enough nearly always, and opened in a fraction of the time.
            let found = match self.open_objects().ok().and_then(|repo| read(&repo, commit)) {
                None => read(&self.open()?, commit),
                found => found,
            };
            if let Some(anchored) = found {
                return Ok(Some(anchored));
            }
            if attempt >= MAX_ATTEMPTS {
                let message = format!("the anchor of the audit leads to {commit}, which is not an anchor");
                return Err(ToolError::new(Code::Integrity, message)
                    .help("`tgp audit restart --reason TEXT` begins a new chain and anchor"));
            }
            std::thread::sleep(jittered(PAUSE));
        }
    }

    /// The repository, or only its objects, to be read, where it is damaged otherwise: a broken configuration must neither
    /// hide the anchor nor keep tools from running.
    fn open(&self) -> Result<Repository, ToolError> {
        open_repository_at(&self.root)
            .or_else(|error| self.open_objects().map_err(|_| error))
            .doing("cannot open the tool repository")
    }

    fn open_objects(&self) -> Result<Repository, git2::Error> {
        let objects = self.root.join(".git/objects");
        if !objects.is_dir() {
            return Err(git2::Error::from_str("there are no objects"));
        }
        let odb = Odb::new()?;
        odb.add_disk_alternate(objects.to_str().unwrap_or_default())?;
        Repository::from_odb(odb)
    }

    /// Where the reference leads. It is our own file; only packing references moves it elsewhere.
    fn target(&self) -> Result<Option<Oid>, ToolError> {
        const DOING: &str = "cannot read the anchor of the audit";
        let file = self.root.join(".git").join(REFERENCE);
        // The library would wait for a pipe.
        if file.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            let message = format!("`{}` is not a plain file", file.display());
            return Err(ToolError::new(Code::Security, message)
                .help("git makes no such file: a person looks where it comes from, and removes it"));
        }
        if let Some(text) = read_plain(&file, MAX_CONTENT_BYTES as u64) {
            return Oid::from_str(String::from_utf8_lossy(&text).trim()).map(Some).map_err(|_| {
                ToolError::new(Code::Integrity, "the anchor of the audit leads to nothing that can be read")
                    .help("`tgp audit restart --reason TEXT` begins a new chain and anchor")
            });
        }
        // A repository that cannot be opened has no readable packed references.
        let Ok(repo) = open_repository_at(&self.root) else { return Ok(None) };
        match repo.refname_to_id(REFERENCE) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error).doing(DOING),
        }
    }

    /// The anchor for a push, with its object copied to `objects`: the one in the repository may be replaced before
    /// git gets to it. A push is never kept up by an anchor that cannot be read.
    pub(crate) fn for_push(&self, objects: &Path) -> Option<Anchored> {
        let anchored = self.current().ok().flatten()?;
        let repo = self.open().ok()?;
        let own = self.loose(anchored.commit);
        let (folder, name) = (own.parent()?.file_name()?, own.file_name()?);
        fs::create_dir_all(objects.join(folder)).ok()?;
        match fs::copy(&own, objects.join(folder).join(name)) {
            // It is in a pack, which is never removed.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                repo.find_commit(anchored.commit).is_ok().then_some(anchored)
            }
            Err(_) => None,
            Ok(_) => Some(anchored),
        }
    }
}

fn check(name: &str, content: &str) -> Result<(), ToolError> {
    let is_plain = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_short = content.len() <= MAX_CONTENT_BYTES && !content.contains('\0');
    if is_plain && name != "head" && is_short {
        return Ok(());
    }
    Err(ToolError::new(Code::Validation, "this is not an anchor of an audit").help(format!(
        "its name is of lower-case letters and digits, its text has at most {MAX_CONTENT_BYTES} bytes"
    )))
}

/// The anchor behind `commit`, if it is one of ours.
fn read(repo: &Repository, commit: Oid) -> Option<Anchored> {
    let found = repo.find_commit(commit).ok()?;
    let message = found.message().ok()?;
    let (name, content) = message.strip_prefix(MARK)?.split_once("\n\n")?;
    let content = content.strip_suffix('\n')?;
    let is_ours = found.parent_count() == 0 && check(name, content).is_ok();
    is_ours.then(|| Anchored { commit, name: name.to_owned(), content: content.to_owned() })
}
