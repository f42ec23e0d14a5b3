//! Changes that wait.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tgp_contract::{Change, CommitVote, Entry, FileSystem, FsError, RelativePath};
use tgp_fs::{DiskFs, MemoryFs, OverlayFs};

use crate::support::{World, assert_security, listed, path, remove, write};

fn base() -> Arc<MemoryFs> {
    let base = Arc::new(MemoryFs::new());
    base.apply(&[write("keep", "kept"), write("edit", "old"), write("drop", "doomed"), write("d/f", "f")])
        .unwrap();
    base
}

#[test]
fn reads_fall_through_and_writes_stay() {
    let base = base();
    let overlay = OverlayFs::new(base.clone());
    overlay.apply(&[write("edit", "new"), remove("drop"), write("n/e/w", "made")]).unwrap();
    assert_eq!(overlay.read(&path("keep")).unwrap(), b"kept");
    assert_eq!(overlay.read(&path("edit")).unwrap(), b"new");
    assert_eq!(overlay.read(&path("n/e/w")).unwrap(), b"made");
    assert!(matches!(overlay.read(&path("drop")), Err(FsError::NotFound(_))));
    assert_eq!(overlay.entry(&path("drop")).unwrap(), None);
    assert_eq!(overlay.entry(&path("edit")).unwrap().unwrap().size, 3);
    assert_eq!(listed(&overlay), ["d", "d/f", "edit", "keep", "n", "n/e", "n/e/w"]);
    assert_eq!(overlay.list(&path("n")).unwrap().len(), 2);
    assert_eq!(listed(&*base), ["d", "d/f", "drop", "edit", "keep"]);
    assert_eq!(base.read(&path("edit")).unwrap(), b"old");
}

#[test]
fn a_commit_brings_everything_in_one_batch() {
    let base = base();
    let overlay = OverlayFs::new(base.clone());
    overlay.write(&path("edit"), b"new").unwrap();
    overlay.remove(&path("drop")).unwrap();
    overlay.write(&path("a/b"), b"made").unwrap();
    assert_eq!(overlay.changes(), [remove("drop"), write("a/b", "made"), write("edit", "new")]);
    overlay.commit().unwrap();
    assert_eq!(overlay.changes(), []);
    assert_eq!(listed(&*base), ["a", "a/b", "d", "d/f", "edit", "keep"]);
    assert_eq!(base.read(&path("edit")).unwrap(), b"new");
    overlay.commit().unwrap();
}

#[test]
fn dropped_or_discarded_changes_leave_no_trace() {
    let base = base();
    let before = listed(&*base);
    let overlay = OverlayFs::new(base.clone());
    overlay.apply(&[write("x", "x"), remove("drop"), write("edit", "new")]).unwrap();
    overlay.discard();
    assert_eq!(listed(&overlay), before);
    overlay.apply(&[write("x", "x"), remove("drop"), write("edit", "new")]).unwrap();
    drop(overlay);
    assert_eq!(listed(&*base), before);
    assert_eq!(base.read(&path("edit")).unwrap(), b"old");
}

#[test]
fn a_file_that_was_written_and_removed_again_is_no_change() {
    let overlay = OverlayFs::new(base());
    overlay.write(&path("scratch"), b"x").unwrap();
    overlay.remove(&path("scratch")).unwrap();
    overlay.remove(&path("never/was")).unwrap();
    assert_eq!(overlay.changes(), []);
    overlay.remove(&path("drop")).unwrap();
    overlay.write(&path("drop"), b"back").unwrap();
    assert_eq!(overlay.changes(), [write("drop", "back")]);
}

#[test]
fn conflicts_are_found_when_writing() {
    let overlay = OverlayFs::new(base());
    assert!(matches!(overlay.write(&path("keep/below"), b""), Err(FsError::NotDirectory(_))));
    assert!(matches!(overlay.write(&path("d"), b""), Err(FsError::IsDirectory(_))));
    assert!(matches!(overlay.remove(&path("d")), Err(FsError::IsDirectory(_))));
    assert!(matches!(overlay.apply(&[write("ok", ""), write("d", "")]), Err(FsError::IsDirectory(_))));
    assert_eq!(overlay.changes(), []);
}

#[test]
fn a_file_may_make_way_for_a_directory() {
    let base = base();
    let overlay = OverlayFs::new(base.clone());
    overlay.remove(&path("drop")).unwrap();
    overlay.write(&path("drop/now/a"), b"directory").unwrap();
    assert!(matches!(overlay.read(&path("drop")), Err(FsError::IsDirectory(_))));
    assert_eq!(overlay.changes(), [remove("drop"), write("drop/now/a", "directory")]);
    overlay.commit().unwrap();
    assert_eq!(base.read(&path("drop/now/a")).unwrap(), b"directory");
}

#[test]
fn overlays_nest() {
    let base = base();
    let run = Arc::new(OverlayFs::new(base.clone()));
    run.write(&path("outer"), b"1").unwrap();
    let step = OverlayFs::new(run.clone());
    step.apply(&[write("inner", "2"), remove("outer"), remove("drop")]).unwrap();
    assert_eq!(listed(&step), ["d", "d/f", "edit", "inner", "keep"]);
    assert_eq!(listed(&*run), ["d", "d/f", "drop", "edit", "keep", "outer"]);
    step.commit().unwrap();
    assert_eq!(listed(&*run), ["d", "d/f", "edit", "inner", "keep"]);
    assert_eq!(run.changes(), [remove("drop"), write("inner", "2")]);
    assert_eq!(listed(&*base), ["d", "d/f", "drop", "edit", "keep"]);
    run.commit().unwrap();
    assert_eq!(listed(&*base), ["d", "d/f", "edit", "inner", "keep"]);
}

#[test]
fn a_commit_the_base_refuses_changes_nothing_and_can_be_tried_again() {
    let base = base();
    let overlay = OverlayFs::new(base.clone());
    overlay.apply(&[write("new", "n"), write("edit", "e")]).unwrap();
    base.write(&path("new/in/the/way"), b"x").unwrap();
    assert!(matches!(overlay.commit(), Err(FsError::IsDirectory(_))));
    assert_eq!(base.read(&path("edit")).unwrap(), b"old");
    assert_eq!(overlay.changes().len(), 2);
    overlay.discard();
    overlay.commit().unwrap();
}

#[test]
fn the_jail_of_the_base_holds_through_an_overlay() {
    let world = World::new();
    symlink(world.outside(), world.root().join("link")).unwrap();
    let overlay = OverlayFs::new(Arc::new(DiskFs::open(&world.root()).unwrap()));
    for at in ["link", "link/secret.txt", "link/new/file"] {
        assert_security(overlay.read(&path(at)));
        assert_security(overlay.write(&path(at), b"evil"));
        assert_security(overlay.remove(&path(at)));
    }
    assert_security(overlay.list(&path("link")));
    // A link that appears after the write was accepted is found by the commit.
    overlay.apply(&[write("fine", ""), write("later/file", "evil")]).unwrap();
    symlink(world.outside(), world.root().join("later")).unwrap();
    assert_security(overlay.commit());
    assert_eq!(listed(&world.fs), ["later", "link"]);
    world.assert_outside_untouched();
}

#[test]
fn many_threads_write_one_overlay() {
    let overlay = OverlayFs::new(Arc::new(MemoryFs::new()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let overlay = &overlay;
            scope.spawn(move || {
                for index in 0..50 {
                    overlay.write(&path(&format!("t{thread}/{index}")), b"x").unwrap();
                }
            });
        }
    });
    let changes = overlay.changes();
    assert_eq!(changes.len(), 200);
    assert!(changes.iter().all(|change| matches!(change, Change::Write { .. })));
}

#[test]
fn a_commit_that_the_last_word_refuses_leaves_the_base_as_it_was() {
    let world = World::new();
    let disk: Arc<dyn FileSystem> = Arc::new(DiskFs::open(&world.root()).unwrap());
    for base in [base() as Arc<dyn FileSystem>, disk] {
        base.apply(&[write("edit", "old"), write("drop", "doomed")]).unwrap();
        let before = listed(base.as_ref());
        let batches: [&[Change]; 3] = [
            &[write("edit", "new")],
            &[write("new/deep/file", "n")],
            &[write("edit", "new"), remove("drop"), write("a/b", "made")],
        ];
        for changes in batches {
            let overlay = OverlayFs::new(Arc::clone(&base));
            overlay.apply(changes).unwrap();
            let mut seen = None;
            let mut refuse = || {
                seen = Some(());
                false
            };
            assert!(!overlay.commit_if(Some(&mut refuse)).unwrap());
            assert!(seen.is_some());
            assert_eq!(listed(base.as_ref()), before, "{changes:?}");
            assert_eq!(base.read(&path("edit")).unwrap(), b"old");
            assert_eq!(overlay.changes().len(), changes.len(), "what was refused still waits");
        }
        let overlay = OverlayFs::new(Arc::clone(&base));
        overlay.apply(&[write("edit", "new"), remove("drop")]).unwrap();
        assert!(overlay.commit_if(Some(&mut || true)).unwrap());
        assert_eq!(base.read(&path("edit")).unwrap(), b"new");
        assert!(matches!(base.read(&path("drop")), Err(FsError::NotFound(_))));
    }
}

/// A thread that reads a file while a database decides may be the one that brings the database's answer.
#[test]
fn files_can_be_read_while_the_last_word_is_said() {
    let world = World::new();
    let disk: Arc<dyn FileSystem> = Arc::new(DiskFs::open(&world.root()).unwrap());
    disk.apply(&[write("edit", "old"), write("other", "other")]).unwrap();
    let outer = Arc::new(OverlayFs::new(Arc::clone(&disk)));
    outer.write(&path("outer"), b"outer").unwrap();
    for (base, stands) in
        [(outer.clone() as Arc<dyn FileSystem>, true), (outer.clone(), false), (disk, false)]
    {
        let overlay = OverlayFs::new(Arc::clone(&base));
        overlay.apply(&[write("edit", "new"), write("made", "made")]).unwrap();
        let before = listed(base.as_ref());
        let mut looks = || {
            for files in [&overlay as &dyn FileSystem, base.as_ref()] {
                assert_eq!(files.read(&path("other")).unwrap(), b"other");
                assert_eq!(files.read(&path("edit")).unwrap(), b"new");
                assert!(files.entry(&path("made")).unwrap().is_some());
            }
            stands
        };
        assert_eq!(overlay.commit_if(Some(&mut looks)).unwrap(), stands);
        assert_eq!(overlay.changes().is_empty(), stands);
        if !stands {
            assert_eq!(listed(base.as_ref()), before);
        }
    }
    assert_eq!(outer.read(&path("edit")).unwrap(), b"new");
    assert_eq!(outer.changes().len(), 3, "{:?}", outer.changes());
}

#[test]
fn what_is_written_while_the_last_word_is_said_is_no_part_of_the_commit() {
    let base = base();
    let outer = OverlayFs::new(base.clone());
    let inner = OverlayFs::new(Arc::new(OverlayFs::new(base.clone())));
    for overlay in [&outer, &inner] {
        overlay.apply(&[write("edit", "new"), write("made", "made")]).unwrap();
    }
    let mut writes = || {
        inner.apply(&[write("edit", "newer"), write("late", "late")]).unwrap();
        true
    };
    assert!(inner.commit_if(Some(&mut writes)).unwrap());
    let left: Vec<String> = inner.changes().iter().map(|change| change.path().to_string()).collect();
    assert_eq!(left, ["edit", "late"]);
    assert_eq!(inner.read(&path("edit")).unwrap(), b"newer");
    assert_eq!(inner.read(&path("made")).unwrap(), b"made");
}

/// Files in which another process makes `out` right after it was looked for the first time.
struct Contested {
    files: MemoryFs,
    is_made: AtomicBool,
}

impl FileSystem for Contested {
    fn read(&self, path: &RelativePath) -> Result<Vec<u8>, FsError> {
        self.files.read(path)
    }

    fn entry(&self, path: &RelativePath) -> Result<Option<Entry>, FsError> {
        let found = self.files.entry(path)?;
        if path.as_str() == "out" && !self.is_made.swap(true, Ordering::Relaxed) {
            self.files.apply(&[write("out/other", "theirs")])?;
        }
        Ok(found)
    }

    fn list(&self, directory: &RelativePath) -> Result<Vec<Entry>, FsError> {
        self.files.list(directory)
    }

    fn apply_if(&self, changes: &[Change], last_word: Option<CommitVote<'_>>) -> Result<bool, FsError> {
        self.files.apply_if(changes, last_word)
    }
}

#[test]
fn bug_a_directory_that_another_process_made_meanwhile_was_taken_for_a_file() {
    let base = Arc::new(Contested { files: MemoryFs::new(), is_made: AtomicBool::new(false) });
    let overlay = OverlayFs::new(base.clone());
    overlay.apply(&[write("out/own", "ours")]).unwrap();
    overlay.commit().unwrap();
    assert_eq!(listed(&base.files), ["out", "out/other", "out/own"]);
}
