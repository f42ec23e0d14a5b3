//! The tree in memory.

use std::sync::Arc;

use tgp_contract::{EntryKind, FileSystem, FsError, RelativePath};
use tgp_fs::MemoryFs;

use crate::support::{listed, path, remove, write};

#[test]
fn parents_are_implied_and_stay() {
    let fs = MemoryFs::new();
    fs.write(&path("deep/nested/file.txt"), b"\0\xff").unwrap();
    assert_eq!(listed(&fs), ["deep", "deep/nested", "deep/nested/file.txt"]);
    assert_eq!(fs.read(&path("deep/nested/file.txt")).unwrap(), b"\0\xff");
    assert_eq!(fs.entry(&path("deep")).unwrap().unwrap().kind, EntryKind::Directory);
    fs.remove(&path("deep/nested/file.txt")).unwrap();
    assert_eq!(listed(&fs), ["deep", "deep/nested"]);
}

#[test]
fn conflicts_are_errors_and_leave_nothing() {
    let fs = MemoryFs::new();
    fs.write(&path("file"), b"x").unwrap();
    assert!(matches!(fs.write(&path("file/below"), b""), Err(FsError::NotDirectory(_))));
    assert!(matches!(fs.apply(&[write("a/b", ""), write("a", "")]), Err(FsError::IsDirectory(_))));
    assert!(matches!(fs.apply(&[write("a", ""), write("a/b", "")]), Err(FsError::NotDirectory(_))));
    assert_eq!(listed(&fs), ["file"]);
    fs.apply(&[remove("file"), write("file/below", "now it is a directory")]).unwrap();
    assert_eq!(listed(&fs), ["file", "file/below"]);
}

#[test]
fn threads_share_it_and_see_whole_batches() {
    let fs = Arc::new(MemoryFs::new());
    fs.apply(&[write("a", "0"), write("b", "0")]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let fs = Arc::clone(&fs);
            scope.spawn(move || {
                for round in 0..200 {
                    let content = format!("{thread} {round}").repeat(round);
                    fs.apply(&[write("a", &content), write("b", &content)]).unwrap();
                    let entries = fs.list(&RelativePath::root()).unwrap();
                    assert_eq!(entries[0].size, entries[1].size);
                }
            });
        }
    });
}
