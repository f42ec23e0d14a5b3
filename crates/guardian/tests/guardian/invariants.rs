//! What is in `.sage/invariants.yml`, and how it is refused.

use tgp_contract::{Code, Severity};
use tgp_guardian::{Expect, Invariants, MAX_INVARIANTS};

const RULE: &str = "version: 1\ninvariants:\n  - name: a\n    query: MATCH (f:File) RETURN f.path AS path\n    expect: none\n    message: No.\n";

#[test]
fn a_whole_file_is_read_with_its_defaults() {
    let text = r"
version: 1
invariants:
  - name: domain-knows-no-web
    query: |
      MATCH (a:File)-[:IMPORTS]->(b:File)
      RETURN a.path AS importer
    expect: none
    severity: warning
    message: The domain does not know the web.
    params: { layers: [src/domain/, src/web/], depth: 2 }
  - name: public/api
    query: MATCH (s:Symbol) RETURN s.name AS name
    expect: kept
    since: v1
    message: The public API stays.
";
    let invariants = Invariants::parse("i.yml", text).unwrap();
    let all: Vec<_> = invariants.iter().collect();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].expect, all[0].severity), (Expect::None, Severity::Warning));
    assert_eq!(all[0].params["layers"][1], "src/web/");
    assert!(all[0].query.ends_with("importer\n"));
    assert_eq!((all[1].expect, all[1].severity), (Expect::Kept, Severity::Error));
    assert_eq!(all[1].since.as_deref(), Some("v1"));
    assert_eq!(invariants.named("public/api"), Some(all[1]));
    for empty in ["", "\n# nothing yet\n", "version: 1\n", "version: 1\ninvariants: []\n"] {
        assert!(Invariants::parse("i.yml", empty).unwrap().is_empty(), "{empty:?}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_the_next_step() {
    let with = |from: &str, to: &str| RULE.replace(from, to);
    let long = format!("query: '{}'", "x".repeat(20_000));
    let many = format!(
        "version: 1\ninvariants:\n{}",
        (0..=MAX_INVARIANTS)
            .map(|at| format!("  - {{ name: n{at}, query: q, expect: none, message: m }}\n"))
            .collect::<String>()
    );
    let cases: Vec<(String, u32, u32, &str, &str)> = vec![
        (with("expect: none", "expct: none"), 5, 5, "there is no field `expct`", "did you mean `expect`?"),
        (
            with("invariants:", "invariant:"),
            2,
            1,
            "there is no field `invariant`",
            "did you mean `invariants`?",
        ),
        (with("expect: none", "expect: nothing"), 5, 13, "`nothing` is not one of", "none, rows, kept"),
        (with("expect: none", "expect: row"), 5, 13, "`row` is not one of", "did you mean `rows`?"),
        (with("    message: No.\n", ""), 3, 11, "`message` is missing", "add `message:`"),
        (with("version: 1", "version: 2"), 1, 10, "version 2 is not known", "version: 1"),
        (with("version: 1\n", ""), 1, 1, "`version` is missing", "begin the file with `version: 1`"),
        (with("name: a", "name: a b"), 3, 11, "`a b` is not a name", "use letters"),
        (with("name: a", "name: ''"), 3, 11, "`name` is empty", "say what"),
        (
            with("query: MATCH (f:File) RETURN f.path AS path", &long),
            4,
            12,
            "`query` has 20000 bytes",
            "shorter",
        ),
        (format!("{RULE}    since: v1\n"), 7, 12, "`since` has a meaning only with", "expect: kept"),
        (format!("{RULE}    params: {{ changed: [] }}\n"), 7, 13, "`changed` is given by", "another name"),
        (format!("{RULE}    name: b\n"), 7, 5, "`name` is given twice", "keep one"),
        (
            format!("{RULE}{}", RULE.replace("version: 1\ninvariants:\n", "")),
            7,
            11,
            "`a` is the name of the invariant at line 3",
            "a name of its own",
        ),
        (many, 1, 1, "there are 201 invariants", "several rules"),
        (with("message: No.", "message: &x No."), 6, 17, "anchors", "write the value out"),
        (with("message: No.", "message: [No"), 6, 14, "one text is expected", "a single value"),
        (format!("{RULE}#{}", "x".repeat(1 << 20)), 1, 1, "more than the", "fewer"),
    ];
    for (text, line, column, message, help) in cases {
        let shown: String = text.chars().take(300).collect();
        let error = Invariants::parse(".sage/invariants.yml", &text).expect_err(&shown);
        assert_eq!(error.code, Code::Config);
        let place = error.place_of().unwrap();
        assert_eq!((place.line, place.column), (line, column), "{error}\n{shown}");
        assert!(error.message.starts_with(&format!(".sage/invariants.yml:{line}:{column}: ")), "{error}");
        assert!(error.message.contains(message), "{error}");
        assert!(error.help_of().unwrap().contains(help), "{error:?}");
        assert!(!error.message.chars().any(char::is_control), "{error}");
    }
}

#[test]
fn hostile_files_are_refused_and_nothing_panics() {
    let deep = format!("version: 1\ninvariants: {}", "[".repeat(5_000));
    let wide = format!("version: 1\ninvariants: [{}]", "[],".repeat(100_000));
    for text in [
        deep.as_str(),
        wide.as_str(),
        "\u{0}",
        "- - - -",
        "version: !!binary x",
        "? [a]\n: b",
        "version: .nan",
    ] {
        assert_eq!(Invariants::parse("i.yml", text).unwrap_err().code, Code::Config, "{}", text.len());
    }
}
