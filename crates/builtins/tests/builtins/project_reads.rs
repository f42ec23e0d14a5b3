//! `fs_read`, `fs_list` and `fs_exists`: pages, caps and kinds.

use serde_json::{Value, json};
use tgp_contract::{Code, canonical};

use crate::project_support::BlockingPool;

/// Reads a file to its end, page by page.
async fn read_all(desk: &BlockingPool, path: &str, limit: usize) -> (String, usize) {
    let (mut text, mut pages, mut offset) = (String::new(), 0, 1);
    loop {
        let page = desk.done("fs_read", json!({ "path": path, "offset": offset, "limit": limit })).await;
        text.push_str(page["content"].as_str().unwrap());
        pages += 1;
        assert_eq!(page["firstLine"], offset);
        match page["nextOffset"].as_u64() {
            Some(next) => {
                assert_eq!(page["truncated"], true);
                assert_eq!(next, offset + page["lines"].as_u64().unwrap());
                offset = next;
            }
            None => return (text, pages),
        }
    }
}

#[tokio::test]
async fn pages_put_together_are_the_file() {
    let desk = BlockingPool::new();
    let long = format!("{}\n", "x".repeat(100_000));
    for (name, content, limit) in [
        ("empty", String::new(), 10),
        ("one", "no newline".to_owned(), 10),
        ("crlf", "a\r\nb\r\n\r\nc".to_owned(), 2),
        ("lone-cr", "a\rb\n".to_owned(), 1),
        ("unicode", "\u{feff}äöü\n日本語\n👩‍👩‍👧\u{2028}x\n".repeat(50), 7),
        ("exact", "1\n2\n3\n4\n".to_owned(), 4),
        ("long-lines", long.repeat(7), 2_000),
    ] {
        desk.put(name, &content);
        let (text, pages) = read_all(&desk, name, limit).await;
        assert_eq!(text, content, "{name}");
        let whole = desk.done("fs_read", json!({ "path": name })).await;
        assert_eq!(whole["bytes"], content.len(), "{name}");
        assert_eq!(whole["totalLines"], content.split_inclusive('\n').count(), "{name}");
        assert_eq!(whole["sha256"], canonical::sha256_hex(content.as_bytes()), "{name}");
        assert!(whole["content"].as_str().unwrap().len() <= 256 * 1024, "{name}");
        let expected = if name == "long-lines" { 4 } else { content.lines().count().div_ceil(limit).max(1) };
        if name != "lone-cr" {
            assert_eq!(pages, expected, "{name}");
        }
    }
    let beyond = desk.refused("fs_read", json!({ "path": "exact", "offset": 5 })).await;
    assert_eq!(beyond, Code::Validation);
}

#[tokio::test]
async fn large_files_are_paged_and_a_huge_line_is_cut_and_said() {
    let desk = BlockingPool::new();
    desk.put("many", "line\n".repeat(5_000_000));
    let page = desk.done("fs_read", json!({ "path": "many", "offset": 4_999_990 })).await;
    assert_eq!((page["lines"].clone(), page["totalLines"].clone()), (json!(11), json!(5_000_000)));
    assert_eq!(desk.done("fs_read", json!({ "path": "many" })).await["lines"], 2_000);
    // Three bytes a character: the cut falls between characters.
    desk.put("huge", format!("{}\nsecond\n", "€".repeat(200_000)));
    let page = desk.done("fs_read", json!({ "path": "huge" })).await;
    assert_eq!(page["cut"], json!({ "line": 1, "bytes": 600_001 }));
    assert_eq!((page["truncated"].clone(), page["nextOffset"].clone()), (json!(true), json!(2)));
    assert!(page["content"].as_str().unwrap().chars().all(|character| character == '€'));
    let next = desk.done("fs_read", json!({ "path": "huge", "offset": 2 })).await;
    assert_eq!(next["content"], "second\n");
    std::fs::File::create(desk.file("sparse")).unwrap().set_len(65 << 20).unwrap();
    assert_eq!(desk.refused("fs_read", json!({ "path": "sparse" })).await, Code::Validation);
}

#[tokio::test]
async fn what_is_no_text_is_named() {
    let desk = BlockingPool::new();
    for (name, content, kind) in [
        ("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), "a PNG image"),
        ("program", b"\x7fELF\x02\x01\x01\0\0", "an ELF binary"),
        ("blob", b"abc\0def", "binary data"),
        ("latin", b"gr\xfc\xdfe\n", "data in another encoding than UTF-8"),
        ("wide", b"\xff\xfea\0b\0", "UTF-16 text"),
    ] {
        desk.put(name, content);
        let result = desk.call("fs_read", json!({ "path": name })).await;
        let error = result.error().unwrap();
        assert_eq!(error.code, Code::Validation, "{name}");
        assert_eq!((&error.details["kind"], &error.details["bytes"]), (&json!(kind), &json!(content.len())));
    }
    assert_eq!(desk.refused("fs_read", json!({ "path": "none" })).await, Code::NotFound);
    assert_eq!(desk.refused("fs_read", json!({ "path": "." })).await, Code::Validation);
}

fn paths(answer: &Value) -> Vec<String> {
    let rows = answer["entries"].as_array().unwrap();
    rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn listings_are_sorted_paged_and_respect_ignore_files() {
    let desk = BlockingPool::new();
    for name in
        ["a-b/x", "a/y", "a/z.log", "a/keep.log", "a.txt", ".hidden", "target/debug/app", "b/target/odd"]
    {
        desk.put(name, "12345");
    }
    desk.put(".gitignore", "*.log\n/target/\n!keep.log\n[bad\n");
    desk.put("a/.gitignore", "y\n");
    desk.put("a/.ignore", "!y\n");
    let top = desk.done("fs_list", json!({})).await;
    assert_eq!(paths(&top), [".gitignore", ".hidden", "a", "a-b", "a.txt", "b"]);
    assert_eq!(top["entries"][1], json!({ "path": ".hidden", "kind": "file", "size": 5 }));
    assert_eq!(top["entries"][2], json!({ "path": "a", "kind": "directory", "size": 0 }));
    let all = desk.done("fs_list", json!({ "depth": 9 })).await;
    let expected = [
        ".gitignore",
        ".hidden",
        "a",
        "a-b",
        "a-b/x",
        "a.txt",
        "a/.gitignore",
        "a/.ignore",
        "a/keep.log",
        "a/y",
        "b",
        "b/target",
        "b/target/odd",
    ];
    assert_eq!(paths(&all), expected);
    let (mut paged, mut offset) = (Vec::new(), 0);
    loop {
        let page = desk.done("fs_list", json!({ "depth": 9, "limit": 5, "offset": offset })).await;
        assert_eq!(page["total"], expected.len());
        paged.extend(paths(&page));
        match page["nextOffset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(paged, expected);
    let ignored = desk.done("fs_list", json!({ "path": "a", "ignored": true })).await;
    assert_eq!(paths(&ignored), ["a/.gitignore", "a/.ignore", "a/keep.log", "a/y", "a/z.log"]);
    // A caller that names an ignored directory wants to see it.
    assert_eq!(paths(&desk.done("fs_list", json!({ "path": "target" })).await), ["target/debug"]);
    assert_eq!(desk.refused("fs_list", json!({ "path": "none" })).await, Code::NotFound);
    assert_eq!(desk.refused("fs_list", json!({ "path": "a.txt" })).await, Code::Validation);
}

#[tokio::test]
async fn existence_is_told_with_the_kind() {
    let desk = BlockingPool::new();
    desk.put("a/b", "");
    std::os::unix::fs::symlink("b", desk.file("a/link")).unwrap();
    for (path, kind) in [
        ("a", json!("directory")),
        ("a/b", json!("file")),
        ("a/link", json!("other")),
        ("a/none", Value::Null),
        ("a/b/below", Value::Null),
        ("none/none", Value::Null),
    ] {
        let answer = desk.done("fs.exists", json!({ "path": path })).await;
        assert_eq!(answer, json!({ "exists": !kind.is_null(), "kind": kind }), "{path}");
    }
}
