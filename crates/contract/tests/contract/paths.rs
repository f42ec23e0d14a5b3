//! A relative path cannot name anything outside its root.

use proptest::prelude::*;
use tgp_contract::{Code, RelativePath};

#[test]
fn paths_are_normalised() {
    for (text, expected) in [
        ("", ""),
        (".", ""),
        ("./", ""),
        ("a", "a"),
        ("./a//b/./c/", "a/b/c"),
        ("a/../b", "b"),
        ("a/b/../..", ""),
        ("~", "~"),
        ("a b/ü.ts", "a b/ü.ts"),
        ("...", "..."),
        ("a/..b", "a/..b"),
    ] {
        assert_eq!(RelativePath::new(text).unwrap().as_str(), expected, "{text:?}");
    }
}

#[test]
fn paths_that_leave_or_trick_are_violations() {
    for text in [
        "..",
        "../x",
        "a/../../x",
        "./..",
        "/",
        "/etc/passwd",
        "//x",
        "a\0b",
        "a\nb",
        "a\\..\\b",
        "..\\x",
        "\u{1b}[31m",
    ] {
        assert_eq!(RelativePath::new(text).unwrap_err().code(), Code::Security, "{text:?}");
    }
    assert_eq!(RelativePath::new(&"a".repeat(256)).unwrap_err().code(), Code::Validation);
    assert_eq!(RelativePath::new(&"a/".repeat(3000)).unwrap_err().code(), Code::Validation);
}

#[test]
fn inside_compares_whole_names() {
    let path = |text: &str| RelativePath::new(text).unwrap();
    assert!(path(".tgp/x").is_inside(&path(".tgp")));
    assert!(path(".tgp").is_inside(&path(".tgp")));
    assert!(path("x").is_inside(&RelativePath::root()));
    assert!(!path(".tgp-evil/x").is_inside(&path(".tgp")));
    assert!(!path(".tgp").is_inside(&path(".tgp/x")));
}

proptest! {
    #[test]
    fn normalising_is_idempotent_and_never_leaves(text in "[a-c./\\\\]{0,24}") {
        if let Ok(path) = RelativePath::new(&text) {
            prop_assert_eq!(&RelativePath::new(path.as_str()).unwrap(), &path);
            prop_assert!(path.parts().all(|part| part != ".." && part != "." && !part.is_empty()));
            prop_assert!(!path.as_str().starts_with('/'));
        }
    }

    #[test]
    fn joining_stays_below_or_fails(base in "[a-c/]{0,8}", text in "[a-c./]{0,16}") {
        let Ok(base) = RelativePath::new(base.trim_start_matches('/')) else { return Ok(()) };
        if let Ok(joined) = base.join(&text) {
            prop_assert!(joined.is_inside(&RelativePath::root()));
        }
    }
}
