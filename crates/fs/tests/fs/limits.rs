//! Every bound is an error that says which bound it was.

use std::fs;
use std::sync::Arc;

use tgp_contract::{Code, FileSystem, FsError, RelativePath};
use tgp_fs::{DiskFs, DiskOptions, FileLimits, MemoryFs, OverlayFs};

use crate::support::{World, listed, path, remove, write};

const SMALL: FileLimits = FileLimits { file_bytes: 10, total_bytes: 25, entries: 5, depth: 4 };

fn each_small(check: impl Fn(&dyn FileSystem)) {
    let world = World::new();
    let disk =
        DiskFs::open_with(&world.root(), DiskOptions { limits: SMALL, ..DiskOptions::default() }).unwrap();
    check(&disk);
    check(&MemoryFs::with_limits(SMALL));
    check(&OverlayFs::with_limits(Arc::new(MemoryFs::new()), SMALL));
}

#[test]
fn a_file_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    each_small(|fs| {
        fs.write(&path("f"), &[b'x'; 10]).unwrap();
        let error = fs.write(&path("f"), &[b'y'; 11]).unwrap_err();
        assert!(matches!(error, FsError::TooLarge { size: 11, limit: 10, .. }), "{error}");
        assert_eq!(fs.read(&path("f")).unwrap(), [b'x'; 10]);
    });
}

#[test]
fn a_large_file_on_disk_is_not_read() {
    let world = World::new();
    let disk =
        DiskFs::open_with(&world.root(), DiskOptions { limits: SMALL, ..DiskOptions::default() }).unwrap();
    fs::write(world.root().join("large"), [0; 11]).unwrap();
    assert!(matches!(disk.read(&path("large")), Err(FsError::TooLarge { size: 11, limit: 10, .. })));
    // A file whose size is announced as nothing is still bounded.
    let proc = DiskOptions { limits: SMALL, ..DiskOptions::default() };
    let proc = DiskFs::open_with(std::path::Path::new("/proc/self"), proc).unwrap();
    assert!(matches!(proc.read(&path("status")), Err(FsError::TooLarge { limit: 10, .. })));
}

#[test]
fn a_batch_over_the_total_is_refused_as_a_whole() {
    each_small(|fs| {
        let batch = [write("a", [0; 10]), write("b", [0; 10]), write("c", [0; 10])];
        let error = fs.apply(&batch).unwrap_err();
        assert!(matches!(error, FsError::TooLarge { size: 10, limit: 5, .. }), "{error}");
        assert!(listed(fs).is_empty());
        // The same path twice counts once.
        fs.apply(&[write("a", [0; 10]), write("a", [1; 10]), write("b", [0; 10])]).unwrap();
    });
}

#[test]
fn what_is_held_in_memory_is_bounded_and_given_back() {
    let overlay = OverlayFs::with_limits(Arc::new(MemoryFs::new()), SMALL);
    let memory = MemoryFs::with_limits(SMALL);
    for fs in [&overlay as &dyn FileSystem, &memory] {
        fs.write(&path("a"), &[0; 10]).unwrap();
        fs.write(&path("b"), &[0; 10]).unwrap();
        assert!(matches!(fs.write(&path("c"), &[0; 10]), Err(FsError::TooLarge { limit: 5, .. })));
        fs.write(&path("a"), &[1; 10]).unwrap();
        fs.apply(&[remove("a"), write("c", [0; 10])]).unwrap();
        assert!(fs.write(&path("d"), &[0; 6]).is_err());
        fs.write(&path("d"), &[0; 5]).unwrap();
    }
    overlay.commit().unwrap();
    overlay.write(&path("e"), &[0; 10]).unwrap();
}

#[test]
fn a_listing_over_the_limit_is_an_error_and_not_a_cut() {
    each_small(|fs| {
        for index in 0..5 {
            fs.write(&path(&format!("f{index}")), b"").unwrap();
        }
        assert_eq!(listed(fs).len(), 5);
        fs.write(&path("f5"), b"").unwrap();
        let error = fs.list(&RelativePath::root()).unwrap_err();
        assert!(error.to_string().contains("more than 5 entries"), "{error}");
        assert_eq!(error.code(), Code::Validation);
    });
}

#[test]
fn depth_is_bounded_for_writing_and_listing() {
    each_small(|fs| {
        fs.write(&path("1/2/3/4"), b"").unwrap();
        let error = fs.write(&path("1/2/3/deep/5"), b"").unwrap_err();
        assert!(error.to_string().contains("deeper than 4"), "{error}");
        assert_eq!(error.code(), Code::Validation);
        assert_eq!(listed(fs).len(), 4);
    });
    let world = World::new();
    fs::create_dir_all(world.root().join(["d"; 65].join("/"))).unwrap();
    let error = world.fs.list(&RelativePath::root()).unwrap_err();
    assert!(error.to_string().contains("deeper than 64"), "{error}");
}
