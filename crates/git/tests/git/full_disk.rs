//! A disk that is full. libgit2 reports success for objects that it could not write.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use tgp_git::{RepositoryAnchor, ToolRepo};

use crate::support::{git, options, path};

/// A small file system in memory.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// None where this user may not mount one.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self { folder });
        }
        println!("skipped: no small file system can be mounted here");
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fills it but for `pages`.
    fn fill(&self, pages: u64) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path("fill")).unwrap();
        while file.write(&[0; 4096]).is_ok_and(|count| count > 0) {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(pages * 4096)).unwrap();
    }

    fn free(&self) {
        let _ = fs::remove_file(self.path("fill"));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
    }
}

fn repository(root: &Path) {
    fs::create_dir_all(root.join(".state")).unwrap();
    git2::Repository::init(root).unwrap();
}

#[test]
fn bug_an_anchor_pointed_to_a_commit_that_a_full_disk_did_not_take() {
    let Some(disk) = SmallDisk::mount() else { return };
    let root = disk.path("tools");
    repository(&root);
    let anchor = RepositoryAnchor::at(&root, SystemTime::now);
    anchor.store("abc", "first").unwrap();
    let mut refused = 0;
    for round in 0..60_u64 {
        let before = anchor.load().unwrap();
        // From full to nearly full: the object may not fit, or only the reference.
        disk.fill(round % 4);
        let text = format!("round {round}");
        let stored = anchor.store("abc", &text);
        let loaded = anchor.load().unwrap_or_else(|error| panic!("round {round}, {stored:?}: {error}"));
        let expected = if stored.is_ok() { Some(text) } else { before };
        assert_eq!(loaded, expected, "round {round}");
        refused += u32::from(stored.is_err());
        disk.free();
    }
    assert!(refused > 0, "the disk was never full");
    anchor.store("abc", "last").unwrap();
    assert_eq!(anchor.load().unwrap().as_deref(), Some("last"));
}

#[tokio::test]
async fn bug_an_edit_that_was_committed_on_a_nearly_full_disk_was_reported_as_failed() {
    let Some(disk) = SmallDisk::mount() else { return };
    let root = disk.path("agent");
    let memory = ToolRepo::open(options(&root, None)).await.unwrap();
    let file = path("tools/a.ts");
    let content = |round: u64| format!("{round} {}", "a line of a tool\n".repeat(700)).into_bytes();
    memory.edit(&file, Box::new(move |_| Ok(content(1_000)))).await.unwrap();
    let mut committed = content(1_000);
    let (mut refused, mut unfollowed) = (0, 0);
    for round in 0..80_u64 {
        disk.fill(round % 16);
        let edited = memory.edit(&file, Box::new(move |_| Ok(content(round)))).await;
        disk.free();
        match &edited {
            Ok(_) => committed = content(round),
            Err(error) if error.is_after_effect() => {
                committed = content(round);
                unfollowed += 1;
            }
            Err(_) => refused += 1,
        }
        let stored = git(&root, &["show", "main:tools/a.ts"]);
        assert!(stored.as_bytes() == committed, "round {round}: {:?}", edited.err());
        // The next writer finishes what could not be finished.
        memory.sync().await.unwrap();
        assert_eq!(git(&root, &["show", "main:tools/a.ts"]).as_bytes(), committed, "round {round}, later");
        assert!(fs::read(root.join("tools/a.ts")).unwrap() == committed, "round {round}: {:?}", edited.err());
    }
    assert!(refused > 0, "the disk was never full");
    assert!(unfollowed > 0, "the disk was never full after a commit");
}
