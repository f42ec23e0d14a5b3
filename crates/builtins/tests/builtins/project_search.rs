//! `search_grep` and `search_glob`: what is found, how it is shown, and where it ends.

use serde_json::{Value, json};
use tgp_contract::{Access, Code, RelativePath, Root, Target};

use crate::project_support::BlockingPool;

/// The matches as `path:line:column:text`.
async fn grep(desk: &BlockingPool, arguments: Value) -> Vec<String> {
    let answer = desk.done("search_grep", arguments).await;
    let rows = answer["matches"].as_array().unwrap().iter();
    rows.map(|row| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        format!("{}:{}:{}:{}", text("path"), row["line"], row["column"], text("text"))
    })
    .collect()
}

#[tokio::test]
async fn patterns_find_what_they_say() {
    let desk = BlockingPool::new();
    desk.put("a.txt", "Foo bar\nfoo(bar)\n\n日本 foo\n");
    desk.put("crlf.txt", "foo\r\nbaz\r\n");
    desk.put("sub/b.rs", "fn foo() {\n    bar();\n}");
    desk.put("sub/bad.txt", b"\xff\xfe-foo\n");
    desk.put("bin", b"foo\0foo");
    desk.put("late-bin", [b"foo\n".repeat(20_000), b"\0".to_vec()].concat());
    desk.put(".gitignore", "ignored*\n");
    desk.put("ignored.txt", "foo");
    let cases: &[(Value, &[&str])] = &[
        (
            json!({ "pattern": "foo" }),
            &[
                "a.txt:2:1:foo(bar)",
                "a.txt:4:4:日本 foo",
                "crlf.txt:1:1:foo",
                "sub/b.rs:1:4:fn foo() {",
                "sub/bad.txt:1:4:\u{fffd}\u{fffd}-foo",
            ],
        ),
        (
            json!({ "pattern": "foo$" }),
            &["a.txt:4:4:日本 foo", "crlf.txt:1:1:foo", "sub/bad.txt:1:4:\u{fffd}\u{fffd}-foo"],
        ),
        (
            json!({ "pattern": "^FOO", "ignore_case": true, "path": "a.txt" }),
            &["a.txt:1:1:Foo bar", "a.txt:2:1:foo(bar)"],
        ),
        (json!({ "pattern": "foo(", "literal": true }), &["a.txt:2:1:foo(bar)", "sub/b.rs:1:4:fn foo() {"]),
        (json!({ "pattern": "foo", "glob": "*.rs" }), &["sub/b.rs:1:4:fn foo() {"]),
        (
            json!({ "pattern": "foo", "glob": "sub/*" }),
            &["sub/b.rs:1:4:fn foo() {", "sub/bad.txt:1:4:\u{fffd}\u{fffd}-foo"],
        ),
        (json!({ "pattern": "foo", "path": "sub", "glob": "b.*" }), &["sub/b.rs:1:4:fn foo() {"]),
        (json!({ "pattern": "\\p{Han}+" }), &["a.txt:4:1:日本 foo"]),
        (
            json!({ "pattern": "foo\\(\\) \\{\\s+bar", "multiline": true }),
            &["sub/b.rs:1:4:fn foo() {\n    bar();"],
        ),
        // A file that is named is searched, ignored or not.
        (json!({ "pattern": "foo", "path": "ignored.txt" }), &["ignored.txt:1:1:foo"]),
        (json!({ "pattern": "nowhere" }), &[]),
    ];
    for (arguments, expected) in cases {
        assert_eq!(grep(&desk, arguments.clone()).await, *expected, "{arguments}");
    }
    let answer = desk.done("search_grep", json!({ "pattern": "foo" })).await;
    assert_eq!((answer["files"].clone(), answer["skipped"]["binary"].clone()), (json!(4), json!(2)));
    for arguments in [
        json!({ "pattern": "(" }),
        json!({ "pattern": "a\\nb" }),
        json!({ "pattern": "(a{1000}){1000}" }),
        json!({ "pattern": "foo", "glob": "{a" }),
        json!({ "pattern": "" }),
    ] {
        assert_eq!(desk.refused("search_grep", arguments.clone()).await, Code::Validation, "{arguments}");
    }
    assert_eq!(desk.refused("Grep", json!({ "pattern": "x", "path": "none" })).await, Code::NotFound);
    let target =
        Target::File { root: Root::Project, path: RelativePath::new("sub").unwrap(), access: Access::Read };
    desk.done("search_grep", json!({ "pattern": "x", "path": "./sub/" })).await;
    assert_eq!(desk.last_record().targets, [target]);
}

#[tokio::test]
async fn context_and_long_lines_are_shown_around_the_match() {
    let desk = BlockingPool::new();
    desk.put("lines", "1\n2\nhit\nhit\n5\n6");
    let answer = desk.done("search_grep", json!({ "pattern": "hit", "context": 2 })).await;
    let around =
        |row: usize| (answer["matches"][row]["before"].clone(), answer["matches"][row]["after"].clone());
    assert_eq!(around(0), (json!(["1", "2"]), json!(["hit", "5"])));
    assert_eq!(around(1), (json!(["2", "hit"]), json!(["5", "6"])));
    desk.put("lines", format!("{}needle{}\n", "ä".repeat(500_000), "ö".repeat(500_000)));
    let answer = desk.done("search_grep", json!({ "pattern": "needle" })).await;
    let text = answer["matches"][0]["text"].as_str().unwrap();
    assert!(text.contains("äneedleö") && text.starts_with("…ä") && text.ends_with("ö…"), "{text}");
    assert!(text.len() < 1_100, "{}", text.len());
    assert_eq!(answer["matches"][0]["column"], 500_001);
}

#[tokio::test]
async fn pages_of_matches_are_the_matches() {
    let desk = BlockingPool::new();
    for file in 0..30 {
        desk.put(&format!("{file:02}/x.txt"), "match\nother\n".repeat(10));
    }
    let all = grep(&desk, json!({ "pattern": "match", "limit": 2_000 })).await;
    assert_eq!(all.len(), 300);
    assert!(all.is_sorted_by_key(|row| row.split(':').next().unwrap().to_owned()));
    let (mut paged, mut offset) = (Vec::new(), 0);
    loop {
        let arguments = json!({ "pattern": "match", "limit": 70, "offset": offset });
        paged.extend(grep(&desk, arguments.clone()).await);
        let answer = desk.done("search_grep", arguments).await;
        assert_eq!(answer["complete"], true);
        match answer["nextOffset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(paged, all);
    // Few matches with much text fill a page as well.
    desk.put("wide", format!("{}\n", "wide ".repeat(180)).repeat(1_000));
    let answer = desk.done("search_grep", json!({ "pattern": "wide", "limit": 2_000 })).await;
    assert!(answer["matches"].to_string().len() < 400 * 1024);
    assert_eq!(answer["truncated"], true);
    let next = answer["nextOffset"].as_u64().unwrap();
    let rest = desk.done("search_grep", json!({ "pattern": "wide", "limit": 2_000, "offset": next })).await;
    assert!(rest["matches"][0]["line"].as_u64() == Some(next + 1), "{rest}");
}

#[tokio::test]
async fn globs_find_sorted_files() {
    let desk = BlockingPool::new();
    for name in ["src/a.rs", "src/deep/b.rs", "src-x/c.rs", "d.ts", "e.tsx", ".github/w.yml", "target/t.rs"] {
        desk.put(name, "");
    }
    desk.put(".gitignore", "target\n");
    let cases: &[(Value, &[&str])] = &[
        (json!({ "pattern": "*.rs" }), &["src-x/c.rs", "src/a.rs", "src/deep/b.rs"]),
        (json!({ "pattern": "src/*.rs" }), &["src/a.rs"]),
        (json!({ "pattern": "src/**/*.rs" }), &["src/a.rs", "src/deep/b.rs"]),
        (json!({ "pattern": "./src/**" }), &["src/a.rs", "src/deep/b.rs"]),
        (json!({ "pattern": "*.{ts,tsx}" }), &["d.ts", "e.tsx"]),
        (json!({ "pattern": "**/*.yml" }), &[".github/w.yml"]),
        (json!({ "pattern": "deep/*", "path": "src" }), &["src/deep/b.rs"]),
        (json!({ "pattern": "*.rs", "offset": 1, "limit": 1 }), &["src/a.rs"]),
        (json!({ "pattern": "none" }), &[]),
    ];
    for (arguments, expected) in cases {
        let answer = desk.done("Glob", arguments.clone()).await;
        assert_eq!(answer["paths"], json!(expected), "{arguments}");
    }
    let page = desk.done("search_glob", json!({ "pattern": "*.rs", "limit": 1 })).await;
    assert_eq!((page["total"].clone(), page["nextOffset"].clone()), (json!(3), json!(1)));
    assert_eq!(desk.refused("search_glob", json!({ "pattern": "[" })).await, Code::Validation);
}
