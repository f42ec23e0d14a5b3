//! `fs_write`, `fs_edit` and `fs_delete`: all or nothing, foretold exactly, and recorded with hashes.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{Access, Code, FileEffect, RelativePath, Root, Target, canonical};

use crate::project_support::BlockingPool;

fn hash(text: &str) -> String {
    canonical::sha256_hex(text.as_bytes())
}

fn effect(path: &str, before: Option<&str>, after: Option<&str>, diff: &str) -> FileEffect {
    let path = RelativePath::new(path).unwrap();
    let effect = FileEffect::new(Root::Project, path, before.map(hash), after.map(hash));
    FileEffect { diff: Some(hash(diff)), ..effect }
}

#[tokio::test]
async fn a_dry_run_foretells_the_run_and_changes_nothing() {
    let long: String = (0..8_000).map(|line| format!("{line}\n")).collect();
    let shifted: String = (0..8_000).map(|line| format!("{}\n", line * 2 + 1)).collect();
    let cases = [
        ("fs_write", json!({ "path": "new/deep/file", "content": "a\nb" }), None, Some("a\nb")),
        ("Write", json!({ "path": "old", "content": "one\nTWO\n" }), Some("one\ntwo\n"), Some("one\nTWO\n")),
        (
            "fs_write",
            json!({ "path": "old", "content": shifted }),
            Some(long.as_str()),
            Some(shifted.as_str()),
        ),
        ("fs_write", json!({ "path": "old", "content": "same" }), Some("same"), Some("same")),
        (
            "fs_edit",
            json!({ "path": "old", "search": "x", "replace": "$& $1 \\n" }),
            Some("a x b\r\n"),
            Some("a $& $1 \\n b\r\n"),
        ),
        (
            "Edit",
            json!({ "path": "old", "edits": [
                { "search": "a", "replace": "b" }, { "search": "b", "replace": "c", "all": true }
            ] }),
            Some("a b b"),
            Some("c c c"),
        ),
        ("fs_delete", json!({ "path": "old" }), Some("gone"), None),
    ];
    for (tool, arguments, before, after) in cases {
        let desk = BlockingPool::new();
        let path = arguments["path"].as_str().unwrap();
        if let Some(before) = before {
            desk.put(path, before);
        }
        let first = desk.preview(tool, arguments.clone()).await.into_result().unwrap();
        assert_eq!(desk.preview(tool, arguments.clone()).await.into_result().unwrap(), first, "{tool}");
        assert_eq!(desk.text(path).as_deref(), before, "{tool}: a dry run changes nothing");
        assert!(!desk.file("new").exists());
        assert_eq!(desk.last_record().files, []);
        let real = desk.done(tool, arguments.clone()).await;
        assert_eq!(desk.text(path).as_deref(), after, "{tool}");
        let record = desk.last_record();
        // The record names the very difference that the dry run has shown.
        let shown = first["diff"].as_str().unwrap();
        assert_eq!(record.files, [effect(path, before, after, shown)], "{tool}");
        let access = if tool == "fs_delete" { Access::Delete } else { Access::Write };
        let target = Target::File { root: Root::Project, path: RelativePath::new(path).unwrap(), access };
        assert_eq!(record.targets, [target], "{tool}");
        // The preview says all that the run says, and the difference that it makes.
        let mut foretold = first.clone();
        let fields = foretold.as_object_mut().unwrap();
        let diff = fields.remove("diff").unwrap();
        assert_eq!(fields.remove("dry_run"), Some(json!(true)));
        assert_eq!(foretold, real, "{tool}");
        assert_eq!(applied(before.unwrap_or_default(), diff.as_str().unwrap()), after.unwrap_or_default());
    }
}

/// The text after a unified diff, by a reader of diffs that knows nothing of the writer.
fn applied(before: &str, diff: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut text, mut at, mut mark) = (String::new(), 0, None);
    for line in diff.split_inclusive('\n').filter(|line| !line.starts_with("---") && !line.starts_with("+++"))
    {
        let mut characters = line.chars();
        match characters.next() {
            Some('@') => {
                let range = line.split('-').nth(1).unwrap().split([',', ' ']).next().unwrap();
                let start = range.parse::<usize>().unwrap();
                let empty = line.contains(&format!("-{start},0 "));
                let start = if empty { start } else { start - 1 };
                text.extend(old[at..start].iter().copied());
                at = start;
            }
            Some('-') => {
                assert_eq!(old[at].trim_end_matches('\n'), characters.as_str().trim_end_matches('\n'));
                at += 1;
            }
            Some('+') => text.push_str(characters.as_str()),
            Some(' ') => {
                assert_eq!(old[at].trim_end_matches('\n'), characters.as_str().trim_end_matches('\n'));
                text.push_str(characters.as_str());
                at += 1;
            }
            // The line before has no end.
            Some('\\') => {
                if mark != Some('-') {
                    assert_eq!(text.pop(), Some('\n'));
                }
            }
            other => panic!("{other:?} begins a line of a diff: {line}"),
        }
        mark = line.chars().next();
    }
    text.extend(old[at..].iter().copied());
    text
}

/// The lines that the heads of all hunks announce, and those that follow them: of the old text, and of the new one.
fn counts(diff: &str) -> [(usize, usize); 2] {
    let mut counts = [(0, 0); 2];
    for line in diff.split_inclusive('\n').skip(2) {
        match line.chars().next() {
            Some('@') => {
                for (side, mark) in counts.iter_mut().zip(['-', '+']) {
                    let range = line.split(mark).nth(1).unwrap().split(' ').next().unwrap();
                    side.0 += range.split_once(',').map_or(1, |(_, count)| count.parse().unwrap());
                }
            }
            Some('-') => counts[0].1 += 1,
            Some('+') => counts[1].1 += 1,
            Some(' ') => counts.iter_mut().for_each(|side| side.1 += 1),
            Some('\\') => {}
            other => panic!("{other:?} begins a line of a diff: {line}"),
        }
    }
    counts
}

#[tokio::test]
async fn a_diff_with_bare_carriage_returns_is_exact() {
    let desk = BlockingPool::new();
    let many: String = (0..6_000).map(|line| format!("{line}\r")).collect();
    for (before, after) in [
        (Some("a\nb\nc\n"), "a\nb\rHIDDEN\nc\n"),
        (Some("a\rb\rc"), "a\rb\rd"),
        (Some("a\r\nb\r\n"), "a\nb\n"),
        (Some("a\n"), "a\r"),
        (Some("a\r"), "a\r\n"),
        (None, "\r"),
        (None, "a\rb"),
        (Some("\r\r\n\n\r"), "\n\r\n\r\r"),
        (Some("a\u{2028}b\u{b}c\u{85}d\n"), "a\u{2028}b\u{b}x\u{85}d\n"),
        (Some("x\n"), many.as_str()),
    ] {
        match before {
            Some(text) => desk.put("a.txt", text),
            None => std::fs::remove_file(desk.file("a.txt")).unwrap_or_default(),
        }
        let shown = desk.preview("fs_write", json!({ "path": "a.txt", "content": after })).await;
        let diff = shown.data().unwrap()["diff"].as_str().unwrap();
        for (announced, there) in counts(diff) {
            assert_eq!(announced, there, "{before:?} to {after:?}: {diff:?}");
        }
        assert_eq!(applied(before.unwrap_or_default(), diff), after, "{diff:?}");
    }
}

#[tokio::test]
async fn a_binary_file_that_becomes_text_is_shown_and_so_is_a_text_that_goes() {
    let desk = BlockingPool::new();
    let old: &[u8] = b"\xff\x00old";
    desk.put("a.bin", old);
    let shown = desk.preview("fs_write", json!({ "path": "a.bin", "content": "one\ntwo" })).await;
    let diff = shown.data().unwrap()["diff"].as_str().unwrap().to_owned();
    let note = format!("Binary file a/a.bin: {} bytes, SHA-256 {}\n", old.len(), canonical::sha256_hex(old));
    let expected = format!(
        "--- a/a.bin\n+++ b/a.bin\n{note}@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    );
    assert_eq!(diff, expected);
    let shown = desk.preview("fs_delete", json!({ "path": "a.bin" })).await;
    let diff = shown.data().unwrap()["diff"].as_str().unwrap().to_owned();
    assert_eq!(diff, format!("--- a/a.bin\n+++ /dev/null\n{note}"));
}

#[tokio::test]
async fn an_edit_that_does_not_fit_changes_nothing() {
    let desk = BlockingPool::new();
    let text = "one two two\r\nthree\r\n";
    desk.put("file", text);
    desk.put("binary", b"\xff\0");
    for (arguments, code, says) in [
        (json!({ "path": "file", "search": "two", "replace": "" }), Code::Validation, "2 matches"),
        (json!({ "path": "file", "search": "four", "replace": "" }), Code::Validation, "0 matches"),
        (
            json!({ "path": "file", "search": "four", "replace": "", "all": true }),
            Code::Validation,
            "0 matches",
        ),
        (json!({ "path": "file", "search": "two\nthree", "replace": "" }), Code::Validation, "0 matches"),
        (
            json!({ "path": "file", "edits": [
                { "search": "one", "replace": "1" }, { "search": "one", "replace": "2" }
            ] }),
            Code::Validation,
            "0 matches",
        ),
        (json!({ "path": "file", "search": "", "replace": "x" }), Code::Validation, "search"),
        (json!({ "path": "file", "edits": [] }), Code::Validation, "edits"),
        (json!({ "path": "file" }), Code::Validation, "fit"),
        (
            json!({ "path": "file", "search": "one", "replace": "1", "edits": [{ "search": "one", "replace": "2" }] }),
            Code::Validation,
            "fit",
        ),
        (json!({ "path": "none", "search": "one", "replace": "1" }), Code::NotFound, "none"),
        (json!({ "path": "binary", "search": "one", "replace": "1" }), Code::Validation, "UTF-8"),
        (
            json!({ "path": "file", "search": "one", "replace": "1", "expected_sha256": hash("other") }),
            Code::Conflict,
            "changed",
        ),
    ] {
        let result = desk.call("fs_edit", arguments.clone()).await;
        let error = result.error().unwrap_or_else(|| panic!("{arguments}"));
        assert_eq!(error.code, code, "{arguments}");
        assert!(error.message.contains(says), "{arguments}: {}", error.message);
        assert_eq!(desk.text("file").as_deref(), Some(text), "{arguments}");
    }
    let crlf = desk.call("fs_edit", json!({ "path": "file", "search": "two\nthree", "replace": "" })).await;
    assert!(crlf.error().unwrap().help_of().unwrap().contains("\\r\\n"));
    let lines = desk.call("fs_edit", json!({ "path": "file", "search": "two", "replace": "" })).await;
    assert_eq!(lines.error().unwrap().details["lines"], json!([1, 1]));
}

#[tokio::test]
async fn a_write_is_held_against_what_its_writer_has_seen() {
    let desk = BlockingPool::new();
    desk.put("file", "one");
    let write = |hash: String| json!({ "path": "file", "content": "two", "expected_sha256": hash });
    assert_eq!(desk.refused("fs_write", write(hash("zero"))).await, Code::Conflict);
    assert_eq!(desk.text("file").as_deref(), Some("one"));
    let read = desk.done("fs_read", json!({ "path": "file" })).await;
    desk.done("fs_write", write(read["sha256"].as_str().unwrap().to_owned())).await;
    assert_eq!(desk.text("file").as_deref(), Some("two"));
    let gone = json!({ "path": "none", "content": "", "expected_sha256": hash("") });
    assert_eq!(desk.refused("fs_write", gone).await, Code::Conflict);
    assert_eq!(desk.refused("fs_write", write("short".to_owned())).await, Code::Validation);
}

#[tokio::test]
async fn a_script_stays_executable_and_only_empty_directories_go() {
    let desk = BlockingPool::new();
    desk.put("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(desk.file("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    desk.done("fs_write", json!({ "path": "run.sh", "content": "#!/bin/sh\ntrue\n" })).await;
    assert_eq!(std::fs::metadata(desk.file("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    desk.put("full/file", "");
    desk.put("secrets/.env", "");
    std::fs::create_dir(desk.file("empty")).unwrap();
    for path in ["full", "secrets"] {
        assert_eq!(desk.refused("fs_delete", json!({ "path": path })).await, Code::Validation, "{path}");
        assert!(desk.file(path).is_dir());
    }
    desk.preview("fs_delete", json!({ "path": "empty" })).await.into_result().unwrap();
    assert!(desk.file("empty").is_dir());
    let done = desk.done("fs_delete", json!({ "path": "empty" })).await;
    assert_eq!(done, json!({ "path": "empty", "kind": "directory" }));
    assert!(!desk.file("empty").exists());
    assert_eq!(desk.refused("fs_delete", json!({ "path": "empty" })).await, Code::NotFound);
    assert_eq!(desk.refused("fs_delete", json!({ "path": "." })).await, Code::Validation);
    assert_eq!(desk.refused("fs_write", json!({ "path": "full", "content": "" })).await, Code::Validation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_at_once_lose_nothing() {
    const EDITS: usize = 40;
    let desk = Arc::new(BlockingPool::new());
    let lines: String = (0..EDITS).map(|line| format!("<{line}>\n")).collect();
    desk.put("file", lines);
    let edits: Vec<_> = (0..EDITS)
        .map(|line| {
            let desk = Arc::clone(&desk);
            tokio::spawn(async move {
                let arguments =
                    json!({ "path": "file", "search": format!("<{line}>"), "replace": format!("[{line}]") });
                desk.done("fs_edit", arguments).await
            })
        })
        .collect();
    for edit in edits {
        let answer: Value = edit.await.unwrap();
        assert_eq!(answer["replacements"], 1);
    }
    let expected: String = (0..EDITS).map(|line| format!("[{line}]\n")).collect();
    assert_eq!(desk.text("file"), Some(expected));
    // Of two writers that have seen the same, one wins.
    let seen = json!({ "path": "race", "content": "a", "expected_sha256": hash("start") });
    desk.put("race", "start");
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (desk, seen) = (Arc::clone(&desk), seen.clone());
            tokio::spawn(async move { desk.call("fs_write", seen).await.is_ok() })
        })
        .collect();
    let mut winners = 0;
    for writer in writers {
        winners += usize::from(writer.await.unwrap());
    }
    assert_eq!(winners, 1);
}
