//! Section 1 of the unit test plan, case by case, on a real disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tgp_contract::{Code, FileSystem, FsError, RelativePath};

use crate::support::{World, assert_security, path};

#[test]
fn unit_plan_1_write_creates_nested_directories() {
    let world = World::new();
    world.fs.write(&path("deep/nested/file.txt"), b"content").unwrap();
    assert!(world.root().join("deep").is_dir());
    assert!(world.root().join("deep/nested").is_dir());
    assert_eq!(fs::read(world.root().join("deep/nested/file.txt")).unwrap(), b"content");
}

#[test]
fn unit_plan_1_read_returns_the_exact_bytes() {
    let world = World::new();
    let file = path("deep/nested/file.txt");
    let every_byte: Vec<u8> = (0..=255).chain([b'\r', b'\n', 0]).collect();
    for content in [&every_byte[..], b"", b"no newline", b"\xef\xbb\xbfmark\r\n"] {
        world.fs.write(&file, content).unwrap();
        assert_eq!(world.fs.read(&file).unwrap(), content);
    }
}

#[test]
fn unit_plan_1_list_matches_ls_r() {
    let world = World::new();
    for file in ["deep/nested/file.txt", "deep/a.txt", "deep/.hidden", "deep/a/b/c", "deep/a-b/c", "top"] {
        world.fs.write(&path(file), file.as_bytes()).unwrap();
    }
    let output = Command::new("ls")
        .args(["-R", "-A", "-1", "deep"])
        .current_dir(world.root())
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let mut expected = Vec::new();
    let mut directory = "";
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_suffix(':') {
            Some(head) => directory = head,
            None => expected.push(path(&format!("{directory}/{line}"))),
        }
    }
    expected.sort();
    let listed: Vec<RelativePath> =
        world.fs.list(&path("deep")).unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(listed, expected);
    assert_eq!(listed.len(), 9);
}

#[test]
fn unit_plan_1_write_outside_is_a_security_violation() {
    let world = World::new();
    let attempts = [
        "../outside.txt",
        "a/../../outside.txt",
        "../root/../outside.txt",
        "/tmp/outside.txt",
        "..",
        "a\\..\\b",
    ];
    for attempt in attempts {
        let result = RelativePath::new(attempt)
            .map_err(FsError::from)
            .and_then(|outside| world.fs.write(&outside, b"out"));
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::Security, "{attempt}: {error}");
        assert_eq!(tgp_contract::ToolError::from(error).code.to_string(), "ESECURITY");
    }
    assert!(world.snapshot().is_empty());
    world.assert_outside_untouched();
}

#[test]
fn unit_plan_1_read_through_a_symlink_is_a_security_violation() {
    let world = World::new();
    symlink("/etc/passwd", world.root().join("passwd")).unwrap();
    assert_security(world.fs.read(&path("passwd")));
    assert_security(world.fs.read_text(&path("passwd")));
}
