//! New violations of a change, and who would notice it.

use std::sync::atomic::Ordering;

use serde_json::json;
use tgp_contract::{Change, Code, Visibility};

use crate::world::{World, path};

fn write(file: &str, content: &str) -> Change {
    Change::Write { path: path(file), content: content.as_bytes().into() }
}

fn remove(file: &str) -> Change {
    Change::Remove { path: path(file) }
}

fn rule(name: &str, query: &str, rest: &str) -> String {
    format!("  - name: {name}\n    query: {query}\n    message: m\n    {rest}\n")
}

#[tokio::test]
async fn only_what_a_change_breaks_anew_counts() {
    let world = World::new(&[("src/a.ts", "import src/web.ts\n"), ("src/b.ts", ""), ("src/web.ts", "")]);
    let query = "MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path = $web RETURN a.path AS importer";
    world.rules(&format!(
        "version: 1\ninvariants:\n{}",
        rule("no-web", query, "expect: none\n    params: { web: src/web.ts }")
    ));
    let judge = |changes: Vec<Change>| {
        let guardian = world.guardian.clone();
        async move { guardian.judge_changes(&changes, &Visibility::everything()).await.unwrap().violations }
    };
    assert_eq!(judge(vec![write("src/a.ts", "import src/web.ts\nfn more\n")]).await, vec![]);
    assert_eq!(judge(vec![]).await, vec![]);
    let violations =
        judge(vec![write("src/b.ts", "import src/web.ts\n"), write("src/c.ts", "import src/web.ts\n")]).await;
    let [violation] = violations.as_slice() else { panic!("{violations:?}") };
    assert_eq!((violation.invariant.as_str(), violation.total), ("no-web", 2));
    assert_eq!(violation.rows, vec![json!({ "importer": "src/b.ts" }), json!({ "importer": "src/c.ts" })]);
    // One question to the graph for each invariant and one for the unread files, before and after.
    world.graph.asked.store(0, Ordering::SeqCst);
    judge(vec![write("src/b.ts", "")]).await;
    assert_eq!(world.graph.asked.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn queries_know_the_paths_of_the_change() {
    let world = World::new(&[("src/a.ts", ""), ("src/b.ts", "")]);
    let all = ["changed", "added", "deleted"]
        .map(|name| rule(name, &format!("UNWIND ${name} AS path WITH path RETURN path"), "expect: none"));
    world.rules(&format!("version: 1\ninvariants:\n{}", all.concat()));
    let changes = [write("src/a.ts", "x"), write("src/new.ts", ""), remove("src/b.ts"), remove("src/new.ts")];
    let found = world.guardian.judge_changes(&changes, &Visibility::everything()).await.unwrap().violations;
    let found: Vec<_> = found.iter().map(|one| json!([one.invariant, one.rows])).collect();
    assert_eq!(
        found,
        [
            json!(["changed", [{ "path": "src/a.ts" }]]),
            json!(["deleted", [{ "path": "src/b.ts" }, { "path": "src/new.ts" }]])
        ]
    );
}

#[tokio::test]
async fn what_was_there_at_a_revision_is_kept() {
    let world = World::new(&[("src/api.ts", "fn one\nfn young\n")]);
    let query = "MATCH (f:File)-[:DEFINES]->(s:Symbol) WHERE f.path = 'src/api.ts' RETURN s.name AS name";
    world.rules(&format!("version: 1\ninvariants:\n{}", rule("api", query, "expect: kept\n    since: v1")));
    let change = [write("src/api.ts", "fn other\n")];
    assert_eq!(
        world.guardian.judge_changes(&change, &Visibility::everything()).await.unwrap_err().code,
        Code::NotFound
    );
    let old = [("src/api.ts".to_owned(), "fn one\nfn gone\n".to_owned())].into();
    world.graph.commits.lock().unwrap().insert("v1".to_owned(), old);
    let found = world.guardian.judge_changes(&change, &Visibility::everything()).await.unwrap().violations;
    // `gone` is gone already, and `young` is younger than v1.
    assert_eq!((found.len(), &found[0].rows), (1, &vec![json!({ "name": "one" })]));
    assert_eq!(found[0].expected, "every row that was there at v1");
    let halt = world.guardian.bullet_wound_check(&[]).await.unwrap_err();
    assert_eq!((halt.code, &halt.details["rows"]), (Code::Halt, &json!([{ "name": "gone" }])));
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_no_proof() {
    let world = World::new(&[("src/a.ts", ""), ("src/b.ts", ""), ("src/c.ts", "")]);
    let query = "MATCH (f:File) RETURN f.path AS path";
    world.rules(&format!("version: 1\ninvariants:\n{}", rule("all", query, "expect: none")));
    world.graph.cap.store(2, Ordering::SeqCst);
    let error =
        world.guardian.judge_changes(&[write("src/d.ts", "")], &Visibility::everything()).await.unwrap_err();
    assert_eq!((error.code, &error.details["invariant"]), (Code::Budget, &json!("all")));
}

#[tokio::test]
async fn the_blast_radius_has_importers_callers_and_tests_that_reach() {
    let mut files = vec![
        ("src/a.ts".to_owned(), "fn a\n".to_owned()),
        ("src/b.ts".to_owned(), "import src/a.ts\nfn b\ncall src/a.ts#a\n".to_owned()),
        ("src/c.ts".to_owned(), "import src/b.ts\ncall src/a.ts#a\n".to_owned()),
        ("tests/c.ts".to_owned(), "import src/c.ts\n".to_owned()),
        ("tests/far.ts".to_owned(), "import tests/c.ts\nimport src/lonely.ts\n".to_owned()),
        ("src/lonely.ts".to_owned(), String::new()),
    ];
    files.extend((0..60).map(|at| (format!("src/many/{at:02}.ts"), "import src/b.ts\n".to_owned())));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let world = World::new(&files);
    let radius =
        world.guardian.blast_radius(&["src/a.ts".to_owned()], &Visibility::everything()).await.unwrap();
    assert_eq!(
        serde_json::to_value(&radius).unwrap(),
        json!({
            "importers": { "first": ["src/b.ts"], "total": 1 },
            "callers": { "first": [
                { "path": "src/b.ts", "symbol": "b", "calls": "a (src/a.ts)" },
                { "path": "src/c.ts", "calls": "a (src/a.ts)" },
            ], "total": 2 },
            "tests": { "first": ["tests/c.ts", "tests/far.ts"], "total": 2 },
        })
    );
    let radius = world
        .guardian
        .blast_radius(&["src/b.ts".to_owned(), "src/c.ts".to_owned()], &Visibility::everything())
        .await
        .unwrap();
    assert_eq!((radius.importers.first.len(), radius.importers.total), (50, 61));
    assert!(
        world
            .guardian
            .blast_radius(&["src/none.ts".to_owned()], &Visibility::everything())
            .await
            .unwrap()
            .is_empty()
    );
    let own =
        world.guardian.blast_radius(&["tests/far.ts".to_owned()], &Visibility::everything()).await.unwrap();
    assert_eq!(own.tests.first, ["tests/far.ts"]);
    assert_eq!(
        world.guardian.blast_radius(&["../x".to_owned()], &Visibility::everything()).await.unwrap_err().code,
        Code::Security
    );
    let many = vec!["src/a.ts".to_owned(); 1_001];
    assert_eq!(
        world.guardian.blast_radius(&many, &Visibility::everything()).await.unwrap_err().code,
        Code::Validation
    );
}

#[tokio::test]
async fn an_old_violation_does_not_stand_in_the_way_of_its_own_repair() {
    let lines = "MATCH (f:File)-[:DEFINES]->(s:Symbol) WHERE s.name STARTS WITH 'bad' RETURN f.path AS path, s.line AS line";
    let numbers =
        "MATCH (f:File)-[:DEFINES]->(s:Symbol) WHERE s.name STARTS WITH 'bad' RETURN s.line AS line";
    let counted = "MATCH (s:Symbol) WHERE s.name STARTS WITH 'bad' RETURN count(*) AS bad";
    // Query, the new text of a file with two violations on lines 1 and 2, and whether that is not worse.
    let cases = [
        (lines, "fn good\nfn bad1\nfn good2\nfn bad2\n", true),
        (lines, "fn good\nfn good2\nfn bad2\n", true),
        (lines, "fn bad1\nfn good\nfn bad2\nfn bad3\n", false),
        (numbers, "fn good\nfn good2\nfn bad1\nfn bad2\n", true),
        (numbers, "fn bad1\nfn bad2\nfn bad3\n", false),
        (counted, "fn bad1\n", true),
        (counted, "fn bad1\nfn bad3\n", true),
        (counted, "fn bad1\nfn bad2\nfn bad3\n", false),
    ];
    for (query, text, is_fine) in cases {
        let world = World::new(&[("src/a.ts", "fn bad1\nfn bad2\n"), ("src/b.ts", "")]);
        world.rules(&format!("version: 1\ninvariants:\n{}", rule("no-bad", query, "expect: none")));
        let found = world
            .guardian
            .judge_changes(&[write("src/a.ts", text)], &Visibility::everything())
            .await
            .unwrap()
            .violations;
        assert_eq!(found.is_empty(), is_fine, "{query}: {text:?}: {found:?}");
    }
    // Repaired here and broken there is broken; so is one more of the same texts, and the row that is named is new.
    let world = World::new(&[("src/a.ts", "fn bad1\nfn bad2\n"), ("src/b.ts", "")]);
    world.rules(&format!("version: 1\ninvariants:\n{}", rule("no-bad", lines, "expect: none")));
    let changes = [write("src/a.ts", ""), write("src/b.ts", "fn bad1\n")];
    let found = world.guardian.judge_changes(&changes, &Visibility::everything()).await.unwrap().violations;
    assert_eq!(found[0].rows, vec![json!({ "path": "src/b.ts", "line": 1 })]);
    let found = world
        .guardian
        .judge_changes(&[write("src/a.ts", "fn bad1\nfn bad2\nfn bad3\n")], &Visibility::everything())
        .await
        .unwrap()
        .violations;
    assert_eq!(found[0].rows, vec![json!({ "path": "src/a.ts", "line": 3 })]);
    // What is kept is kept on another line, too.
    world.rules(&format!("version: 1\ninvariants:\n{}", rule("kept", lines, "expect: kept")));
    let found = world
        .guardian
        .judge_changes(&[write("src/a.ts", "\nfn bad1\n\nfn bad2\n")], &Visibility::everything())
        .await
        .unwrap()
        .violations;
    assert_eq!(found, vec![]);
    assert_eq!(
        world
            .guardian
            .judge_changes(&[write("src/a.ts", "fn bad2\n")], &Visibility::everything())
            .await
            .unwrap()
            .violations[0]
            .total,
        1
    );
}
