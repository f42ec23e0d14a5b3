//! All or nothing, also when the system runs out of something in the middle.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use tgp_contract::{Change, FileSystem, FsError};

use crate::support::{World, in_child, leftovers, listed, path, remove, write};

#[test]
fn a_concurrent_reader_never_sees_a_torn_file() {
    let world = World::new();
    let contents = [vec![b'a'; 300_000], vec![b'b'; 170_000]];
    world.fs.write(&path("file"), &contents[0]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) || reads < 50 {
                // Once as another process would read it, and once through the jail.
                let raw = fs::read(world.root().join("file")).unwrap();
                let jailed = world.fs.read(&path("file")).unwrap();
                assert!(contents.contains(&raw) && contents.contains(&jailed));
                reads += 1;
            }
        });
        for round in 0..200 {
            let content = contents[round % 2].clone();
            let mut batch = vec![Change::Write { path: path("file"), content: content.into() }];
            // Alone, a file is renamed over the old one; in company, it is exchanged with it.
            batch.extend((round % 4 > 1).then(|| write("other", "x")));
            world.fs.apply(&batch).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(leftovers(&world.root()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_batch_with_a_conflict_changes_nothing() {
    let world = World::new();
    world.fs.apply(&[write("edit", "old"), write("drop", "x"), write("d/f", "")]).unwrap();
    let before = world.snapshot();
    for last in [write("d", ""), write("edit/below", ""), remove("d"), write("new/dir", "")] {
        let batch = [write("edit", "new"), remove("drop"), write("new/dir/file", ""), last];
        assert!(world.fs.apply(&batch).is_err());
        assert_eq!(world.snapshot(), before);
    }
}

#[test]
fn changes_of_a_batch_build_on_each_other() {
    let world = World::new();
    world.fs.write(&path("file"), b"old").unwrap();
    world.fs.apply(&[]).unwrap();
    world.fs.apply(&[remove("file"), write("file/now/a", "dir"), write("x", "1"), write("x", "2")]).unwrap();
    assert_eq!(listed(&world.fs), ["file", "file/now", "file/now/a", "x"]);
    assert_eq!(world.fs.read(&path("x")).unwrap(), b"2");
    world
        .fs
        .apply(&[write("y", "1"), remove("y"), remove("x"), write("x", "3"), write("e/f", ""), remove("e/f")])
        .unwrap();
    assert_eq!(listed(&world.fs), ["e", "file", "file/now", "file/now/a", "x"]);
    assert_eq!(world.fs.read(&path("x")).unwrap(), b"3");
    assert_eq!(leftovers(&world.root()), Vec::<std::path::PathBuf>::new());
}

/// Leaves room for a few more open files only.
fn starve_of_handles() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 40, hard).unwrap();
}

#[track_caller]
fn assert_rolled_back(world: &World, batch: &[Change], starve: impl FnOnce()) {
    let before = world.snapshot();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    starve();
    let error = world.fs.apply(batch).unwrap_err();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    assert!(matches!(error, FsError::Io { .. }), "{error}");
    // The snapshot has inode numbers: the old files themselves are back, not copies of them.
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_failure_while_files_take_their_places_is_rolled_back() {
    in_child("atomic::a_failure_while_files_take_their_places_is_rolled_back", || {
        let world = World::new();
        world
            .fs
            .apply(&[write("a/1", "old"), write("a/2", "old"), write("b", "file"), write("z", "old")])
            .unwrap();
        let mut batch = vec![write("a/1", "new"), write("a/2", "new"), write("a/3", "made")];
        batch.extend([remove("b"), write("b/now/dir", "made"), remove("z")]);
        // Each new directory costs a handle, and they are made while the files before them are in place already.
        batch.extend((0..100).map(|index| write(&format!("n/{index:03}/file"), "made")));
        assert_rolled_back(&world, &batch, starve_of_handles);
        world.fs.apply(&batch).unwrap();
        assert_eq!(world.fs.read(&path("n/099/file")).unwrap(), b"made");
        assert_eq!(world.fs.read(&path("b/now/dir")).unwrap(), b"made");
    });
}

#[test]
fn a_failure_while_files_are_removed_is_rolled_back() {
    in_child("atomic::a_failure_while_files_are_removed_is_rolled_back", || {
        let world = World::new();
        let files: Vec<String> = (0..100).map(|index| format!("d/{index:03}/file")).collect();
        let made: Vec<Change> = files.iter().map(|file| write(file, "old")).collect();
        world.fs.apply(&made).unwrap();
        let mut batch = vec![write("new", "made")];
        batch.extend(files.iter().map(|file| remove(file)));
        assert_rolled_back(&world, &batch, starve_of_handles);
        world.fs.apply(&batch).unwrap();
        assert_eq!(listed(&world.fs).iter().filter(|path| path.ends_with("file")).count(), 0);
    });
}

#[test]
fn a_full_disk_while_staging_leaves_nothing() {
    in_child("atomic::a_full_disk_while_staging_leaves_nothing", || {
        let world = World::new();
        world.fs.write(&path("a"), b"old").unwrap();
        let before = world.snapshot();
        // A limit on file size simulates the full disk. Its signal would end the process, so it is masked.
        let mut masked = SigSet::empty();
        masked.add(Signal::SIGXFSZ);
        masked.thread_block().unwrap();
        let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, 100_000, hard).unwrap();
        let error = world.fs.apply(&[write("a", "new"), write("n/b", vec![0; 200_000])]).unwrap_err();
        assert!(matches!(error, FsError::Io { .. }), "{error}");
        assert_eq!(world.snapshot(), before);
    });
}
