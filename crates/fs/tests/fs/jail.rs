//! Ways out of the root that must not work, and odd things in it that must do no harm.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::stat::Mode;
use tgp_contract::{Code, EntryKind, FileSystem, FsError, PathError, RelativePath};
use tgp_fs::{DiskFs, DiskOptions, HardLinks};

use crate::support::{SECRET, World, assert_security, listed, path, remove, write};

/// Every operation on `at` is refused, and the disk is as before.
#[track_caller]
fn assert_closed(world: &World, at: &str) {
    let before = world.snapshot();
    assert_security(world.fs.read(&path(at)));
    assert_security(world.fs.write(&path(at), b"evil"));
    assert_security(world.fs.remove(&path(at)));
    assert_security(world.fs.apply(&[write("good.txt", "good"), write(at, "evil")]));
    assert_eq!(world.snapshot(), before);
    world.assert_outside_untouched();
}

#[test]
fn a_link_to_a_file_is_never_followed() {
    let world = World::new();
    symlink(world.outside().join(SECRET), world.root().join("link")).unwrap();
    assert_closed(&world, "link");
    assert_closed(&world, "link/below");
    assert_eq!(world.fs.entry(&path("link")).unwrap().unwrap().kind, EntryKind::Other);
    assert_security(world.fs.list(&path("link")));
}

#[test]
fn a_link_to_a_directory_is_never_followed() {
    let world = World::new();
    fs::create_dir(world.root().join("sub")).unwrap();
    for target in [world.outside(), world.root().join("sub"), ".".into(), "..".into(), "/".into()] {
        let link = world.root().join("link");
        symlink(&target, &link).unwrap();
        for at in ["link", "link/secret.txt", "link/new.txt", "link/deep/new.txt"] {
            assert_closed(&world, at);
        }
        assert_security(world.fs.list(&path("link")));
        assert_security(world.fs.list(&path("link/sub")));
        assert_security(world.fs.entry(&path("link/secret.txt")));
        // The link is shown, what it points to is not.
        assert_eq!(listed(&world.fs), ["link", "sub"]);
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn a_dangling_link_is_refused_and_its_target_is_not_made() {
    let world = World::new();
    symlink(world.outside().join("absent.txt"), world.root().join("dangling")).unwrap();
    symlink("nowhere", world.root().join("inside")).unwrap();
    symlink("loop", world.root().join("loop")).unwrap();
    for at in ["dangling", "dangling/x", "inside", "inside/x", "loop", "loop/x"] {
        assert_closed(&world, at);
    }
}

#[test]
fn a_hard_link_to_outside_is_not_read_and_never_written_through() {
    let world = World::new();
    let outside = world.outside().join(SECRET);
    let inside = world.root().join("linked.txt");
    fs::hard_link(&outside, &inside).unwrap();
    assert_security(world.fs.read(&path("linked.txt")));

    let inode = fs::metadata(&outside).unwrap().ino();
    assert_eq!(fs::metadata(&inside).unwrap().ino(), inode);
    world.fs.write(&path("linked.txt"), b"mine").unwrap();
    assert_ne!(fs::metadata(&inside).unwrap().ino(), inode);
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
    assert_eq!(world.fs.read(&path("linked.txt")).unwrap(), b"mine");
    world.assert_outside_untouched();
}

#[test]
fn a_hard_link_in_a_batch_is_replaced_or_removed_without_touching_outside() {
    let world = World::new();
    let outside = world.outside().join(SECRET);
    for name in ["one", "two"] {
        fs::hard_link(&outside, world.root().join(name)).unwrap();
    }
    world.fs.apply(&[write("one", "mine"), remove("two")]).unwrap();
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
    assert_eq!(world.fs.read(&path("one")).unwrap(), b"mine");
    assert_eq!(listed(&world.fs), ["one"]);
    world.assert_outside_untouched();
}

#[test]
fn hard_links_are_read_where_the_program_allows_it() {
    let world = World::new();
    world.fs.write(&path("a"), b"store").unwrap();
    fs::hard_link(world.root().join("a"), world.root().join("b")).unwrap();
    assert_security(world.fs.read(&path("a")));
    let options = DiskOptions { hard_links: HardLinks::Read, ..DiskOptions::default() };
    let trusting = DiskFs::open_with(&world.root(), options).unwrap();
    assert_eq!(trusting.read(&path("b")).unwrap(), b"store");
}

#[test]
fn magic_links_of_proc_lead_nowhere() {
    for attempt in ["/proc/self/root/../etc/passwd", "/proc/self/cwd", "../../proc/self/root/etc"] {
        let error = FsError::from(RelativePath::new(attempt).unwrap_err());
        assert_eq!(error.code(), Code::Security, "{attempt}");
    }
    let proc = DiskFs::open(Path::new("/proc/self")).unwrap();
    for attempt in
        ["root/etc/passwd", "root/../etc/passwd/../passwd", "cwd/Cargo.toml", "exe", "fd/0", "root"]
    {
        let attempt = path(attempt);
        // `..` is resolved as text before any file is opened, so some attempts name a missing file below.
        match proc.read(&attempt).unwrap_err() {
            FsError::NotFound(_) => assert!(!attempt.as_str().starts_with("root")),
            error => assert_eq!(error.code(), Code::Security, "{attempt}: {error}"),
        }
    }
    let world = World::new();
    symlink("/proc/self/root", world.root().join("magic")).unwrap();
    assert_closed(&world, "magic/etc/passwd");
    assert_closed(&world, "magic");
}

#[test]
fn names_that_no_file_can_have_are_refused_before_the_disk() {
    for (text, code) in [
        ("a\0b", Code::Security),
        ("nul\0/../../x", Code::Security),
        ("line\nbreak", Code::Security),
        ("back\\slash", Code::Security),
        (&"n".repeat(256), Code::Validation),
        (&"long/".repeat(1000), Code::Validation),
    ] {
        assert_eq!(FsError::from(RelativePath::new(text).unwrap_err()).code(), code, "{text:?}");
    }
    assert!(matches!(RelativePath::new(&"n".repeat(256)), Err(PathError::TooLong(256))));
}

#[test]
fn the_longest_names_and_paths_work() {
    let world = World::new();
    let longest = path(&"n".repeat(255));
    world.fs.write(&longest, b"long").unwrap();
    assert_eq!(world.fs.read(&longest).unwrap(), b"long");

    // With the root before it, this path is longer than the operating system takes in one call.
    let deep = path(&vec!["d".repeat(240); 16].join("/"));
    world.fs.write(&deep, b"deep").unwrap();
    assert_eq!(world.fs.read(&deep).unwrap(), b"deep");
    assert_eq!(world.fs.list(&RelativePath::root()).unwrap().len(), 17);
}

#[test]
fn case_is_never_folded() {
    let world = World::new();
    world.fs.write(&path("Tools/a.ts"), b"upper").unwrap();
    world.fs.write(&path("tools/a.ts"), b"lower").unwrap();
    // These two look alike but are different characters: one composed letter, and a letter with an accent.
    world.fs.write(&path("caf\u{e9}"), b"composed").unwrap();
    world.fs.write(&path("cafe\u{301}"), b"decomposed").unwrap();
    assert_eq!(world.fs.read(&path("Tools/a.ts")).unwrap(), b"upper");
    assert_eq!(world.fs.read(&path("tools/a.ts")).unwrap(), b"lower");
    assert!(matches!(world.fs.read(&path("TOOLS/a.ts")), Err(FsError::NotFound(_))));
    assert_eq!(listed(&world.fs).len(), 6);
    world.fs.remove(&path("TOOLS/A.TS")).unwrap();
    assert_eq!(listed(&world.fs).len(), 6);
}

#[test]
fn special_files_are_refused_and_do_not_block() {
    let world = World::new();
    nix::unistd::mkfifo(&world.root().join("fifo"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(world.root().join("socket")).unwrap();
    for at in ["fifo", "socket", "fifo/below"] {
        assert_closed(&world, at);
    }
    assert_security(world.fs.list(&path("fifo")));
    let kinds: Vec<EntryKind> =
        world.fs.list(&RelativePath::root()).unwrap().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Other, EntryKind::Other]);

    let devices = DiskFs::open(Path::new("/dev")).unwrap();
    assert_security(devices.read(&path("null")));
    assert_security(devices.read(&path("zero")));
    assert_security(devices.write(&path("null"), b"x"));
}

#[test]
fn text_that_is_not_utf8_is_a_clear_error() {
    let world = World::new();
    world.fs.write(&path("latin"), b"caf\xe9 au lait").unwrap();
    match world.fs.read_text(&path("latin")).unwrap_err() {
        FsError::NotText { path, offset } => assert_eq!((path.as_str(), offset), ("latin", 3)),
        error => panic!("{error}"),
    }
    assert_eq!(world.fs.read(&path("latin")).unwrap(), b"caf\xe9 au lait");
    world.fs.write(&path("greek"), "αβγ".as_bytes()).unwrap();
    assert_eq!(world.fs.read_text(&path("greek")).unwrap(), "αβγ");
}

#[test]
fn names_a_path_cannot_hold_are_shown_and_cannot_be_opened() {
    let world = World::new();
    for name in [&b"bad\xff"[..], b"new\nline", b"back\\slash"] {
        fs::write(world.root().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let entries = world.fs.list(&RelativePath::root()).unwrap();
    let shown: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(shown, ["back\u{fffd}slash", "bad\u{fffd}", "new\u{fffd}line"]);
    assert!(entries.iter().all(|entry| entry.kind == EntryKind::Other));
    assert!(matches!(world.fs.read(&entries[0].path), Err(FsError::NotFound(_))));
}

#[test]
fn names_of_temporary_files_are_reserved() {
    let world = World::new();
    for at in [".tgp-tmp-1-2", "a/.tgp-tmp-x", ".tgp-tmp-d/file"] {
        assert_closed(&world, at);
        assert_security(world.fs.entry(&path(at)));
        assert_security(world.fs.list(&path(at)));
    }
    world.fs.write(&path(".tgp/x"), b"a name that only begins alike").unwrap();
}

#[test]
fn files_and_directories_are_told_apart() {
    let world = World::new();
    let root = RelativePath::root();
    world.fs.write(&path("d/f"), b"x").unwrap();
    assert!(matches!(world.fs.read(&path("d")), Err(FsError::IsDirectory(at)) if at == path("d")));
    assert!(matches!(world.fs.read(&root), Err(FsError::IsDirectory(_))));
    assert!(matches!(world.fs.write(&path("d"), b""), Err(FsError::IsDirectory(_))));
    assert!(matches!(world.fs.write(&root, b""), Err(FsError::IsDirectory(_))));
    assert!(matches!(world.fs.remove(&path("d")), Err(FsError::IsDirectory(_))));
    assert!(matches!(world.fs.remove(&root), Err(FsError::IsDirectory(_))));
    assert!(matches!(world.fs.read(&path("d/f/x")), Err(FsError::NotDirectory(at)) if at == path("d/f")));
    assert!(
        matches!(world.fs.write(&path("d/f/x/y"), b""), Err(FsError::NotDirectory(at)) if at == path("d/f"))
    );
    assert!(matches!(world.fs.list(&path("d/f")), Err(FsError::NotDirectory(_))));
    assert!(matches!(world.fs.read(&path("no/such")), Err(FsError::NotFound(at)) if at == path("no/such")));
    assert!(matches!(world.fs.list(&path("no")), Err(FsError::NotFound(_))));
    assert_eq!(world.fs.entry(&path("d/f/x")).unwrap(), None);
    assert_eq!(world.fs.entry(&path("no/such")).unwrap(), None);
    assert_eq!(world.fs.entry(&path("d/f")).unwrap().unwrap().size, 1);
    assert_eq!(world.fs.entry(&root).unwrap().unwrap().kind, EntryKind::Directory);
    world.fs.remove(&path("no/such")).unwrap();
    world.fs.remove(&path("d/f/x")).unwrap();
    world.fs.remove(&path("d/f")).unwrap();
    assert_eq!(listed(&world.fs), ["d"]);
}

#[test]
fn a_replaced_file_keeps_its_mode_but_no_special_bits() {
    let world = World::new();
    let file = world.root().join("run.sh");
    world.fs.write(&path("run.sh"), b"1").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o133, 0, "new files are plain");
    for (before, after) in [(0o755, 0o755), (0o600, 0o600), (0o4755, 0o755), (0o666, 0o666)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
        world.fs.write(&path("run.sh"), b"2").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, after);
        fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
        world.fs.apply(&[write("run.sh", "3"), write("other", "")]).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, after);
    }
}

#[test]
fn a_root_that_is_no_directory_says_so() {
    let world = World::new();
    world.fs.write(&path("file"), b"").unwrap();
    let error = DiskFs::open(&world.root().join("file")).unwrap_err();
    assert_eq!(error.code(), Code::Validation);
    let error = DiskFs::open(&world.root().join("absent")).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.to_string().contains("absent` as a root directory"), "{error}");
}

#[test]
fn the_root_is_the_directory_that_was_opened_even_when_it_is_renamed() {
    let world = World::new();
    let moved = world.outside().join("moved");
    fs::rename(world.root(), &moved).unwrap();
    symlink(world.outside(), world.root()).unwrap();
    world.fs.write(&path("file"), b"x").unwrap();
    assert_eq!(fs::read(moved.join("file")).unwrap(), b"x");
    assert!(!world.outside().join("file").exists());
}
