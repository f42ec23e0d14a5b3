//! A directory that is swapped for a link, over and over, while it is used.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use tgp_contract::{FileSystem, FsError, RelativePath};

use crate::support::{SECRET, World, leftovers, path, write};

const TRIES: usize = 3000;
const SWAPS: usize = 1000;

/// Runs `attempt` at least [`TRIES`] times while `dir` is by turns a real directory and a link to outside.
fn while_swapping(world: &World, attempt: impl Fn(usize) + Sync) {
    let (dir, parked) = (world.root().join("dir"), world.root().join("parked"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(SECRET), "public").unwrap();
    symlink(world.outside(), &parked).unwrap();
    let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // In one step, so that there is no moment without either, in which a write would rightly
                // create its own directory.
                renameat2(AT_FDCWD, &dir, AT_FDCWD, &parked, RenameFlags::RENAME_EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        // The attempts end the swapping also when one of them fails.
        let stop = StopOnDrop(&done);
        let mut tries = 0;
        while (tries < TRIES || swaps.load(Ordering::Relaxed) < SWAPS) && !swapper.is_finished() {
            attempt(tries);
            tries += 1;
        }
        drop(stop);
    });
    world.assert_outside_untouched();
    assert_eq!(leftovers(&world.root()), Vec::<std::path::PathBuf>::new());
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[track_caller]
fn assert_expected(error: &FsError) {
    let expected = matches!(error, FsError::Security { .. } | FsError::NotFound(_));
    assert!(expected, "{error:?}");
}

#[test]
fn writes_never_follow_a_directory_swapped_for_a_link() {
    let world = World::new();
    while_swapping(&world, |index| {
        if let Err(error) = world.fs.apply(&[write("dir/secret.txt", index.to_string())]) {
            assert_expected(&error);
        }
    });
}

#[test]
fn batches_never_follow_a_directory_swapped_for_a_link() {
    let world = World::new();
    world.fs.write(&path("beside"), b"0").unwrap();
    while_swapping(&world, |index| {
        // A new directory below `dir` is the longest way: it is made after everything was staged.
        let batch = [
            write("beside", index.to_string()),
            write("dir/secret.txt", index.to_string()),
            write(&format!("dir/n{}/file", index % 50), "x"),
        ];
        let before = world.fs.read(&path("beside")).unwrap();
        if let Err(error) = world.fs.apply(&batch) {
            assert_expected(&error);
            assert_eq!(world.fs.read(&path("beside")).unwrap(), before);
        }
    });
}

#[test]
fn reads_and_listings_never_follow_a_directory_swapped_for_a_link() {
    let world = World::new();
    while_swapping(&world, |_| {
        match world.fs.read(&path("dir/secret.txt")) {
            Ok(content) => assert_eq!(content, b"public"),
            Err(error) => assert_expected(&error),
        }
        match world.fs.list(&RelativePath::root()) {
            Ok(entries) => assert!(entries.iter().all(|entry| entry.path.parts().count() <= 2)),
            Err(error) => assert_expected(&error),
        }
        if let Err(error) = world.fs.remove(&path("dir/absent")) {
            assert_expected(&error);
        }
    });
}

#[test]
fn a_file_swapped_for_a_link_is_never_read_or_written_through() {
    let world = World::new();
    let (file, secret) = (world.root().join("file"), world.outside().join(SECRET));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::remove_file(&file);
                let _ = symlink(&secret, &file);
            }
        });
        let _stop = StopOnDrop(&done);
        for index in 0..TRIES {
            let batch = [write("file", "mine"), write("other", "x")];
            if let Err(error) = world.fs.apply(&batch[..1 + index % 2]) {
                assert_expected(&error);
            }
            match world.fs.read(&path("file")) {
                Ok(content) => assert_eq!(content, b"mine"),
                Err(error) => assert_expected(&error),
            }
        }
    });
    world.assert_outside_untouched();
}

#[test]
fn a_read_never_follows_a_file_that_becomes_a_link_after_the_first_look() {
    let world = World::new();
    let (file, parked) = (world.root().join("file"), world.root().join("parked"));
    fs::write(&file, "public").unwrap();
    symlink(world.outside().join(SECRET), &parked).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &file, AT_FDCWD, &parked, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        let _stop = StopOnDrop(&done);
        for _ in 0..20 * TRIES {
            match world.fs.read(&path("file")) {
                Ok(content) => assert_eq!(content, b"public"),
                Err(error) => assert_expected(&error),
            }
        }
    });
}
