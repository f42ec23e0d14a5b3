//! Listings against what the system's own tools see.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use nix::sys::stat::Mode;
use tgp_contract::{Entry, EntryKind, FileSystem, RelativePath};

use crate::support::{World, listed, path, remove, write};

#[test]
fn a_listing_matches_find_in_names_kinds_and_sizes() {
    let world = World::new();
    for index in 0..200_usize {
        let file = path(&format!("d{}/e{}/f{index}.txt", index % 7, index % 3));
        world.fs.write(&file, &vec![b'x'; index]).unwrap();
    }
    fs::create_dir_all(world.root().join("empty/still empty")).unwrap();
    fs::create_dir_all(world.root().join(".git/objects")).unwrap();
    fs::write(world.root().join(".git/HEAD"), "ref").unwrap();
    fs::write(world.root().join("ünïcode 🦀"), "crab").unwrap();
    symlink("/", world.root().join("d1/link")).unwrap();
    nix::unistd::mkfifo(&world.root().join("d2/pipe"), Mode::S_IRWXU).unwrap();

    let output = Command::new("find")
        .args([".", "-mindepth", "1", "-printf", "%P\t%y\t%s\n"])
        .current_dir(world.root())
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut expected: Vec<Entry> = text
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let (kind, size) = match fields[1] {
                "f" => (EntryKind::File, fields[2].parse().unwrap()),
                "d" => (EntryKind::Directory, 0),
                _ => (EntryKind::Other, 0),
            };
            Entry { path: path(fields[0]), kind, size }
        })
        .collect();
    expected.sort();
    assert_eq!(world.fs.list(&RelativePath::root()).unwrap(), expected);
    for entry in &expected {
        assert_eq!(world.fs.entry(&entry.path).unwrap().as_ref(), Some(entry));
    }
}

#[test]
fn a_listing_of_a_directory_holds_only_what_is_below_it() {
    let world = World::new();
    world.fs.apply(&[write("a/b", ""), write("a-b/c", ""), write("a.b", ""), write("ab", "")]).unwrap();
    let entries = world.fs.list(&path("a")).unwrap();
    assert_eq!(entries, [Entry { path: path("a/b"), kind: EntryKind::File, size: 0 }]);
    assert_eq!(listed(&world.fs), ["a", "a-b", "a-b/c", "a.b", "a/b", "ab"]);
    world.fs.apply(&[remove("a/b")]).unwrap();
    assert_eq!(world.fs.list(&path("a")).unwrap(), []);
}
