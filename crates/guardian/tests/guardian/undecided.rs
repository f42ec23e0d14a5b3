//! Invariants about files that could not be read completely: they neither hold nor are they broken.

use serde_json::{Value, json};
use tgp_contract::{Change, Code, Decision, Severity, Visibility};
use tgp_guardian::{Assertion, Invariants, Judgement, ReconcileEdit, UnreadReason};

use crate::world::{World, path, plan};

const NO_WEB: &str = "
  - name: no-web
    query: MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path = 'src/web.ts' RETURN a.path AS importer
    expect: none
    message: Nothing imports the web.
";
const UNREAD: &str = "import src/web.ts\nbroken\n";
const IMPORTS: &str = "import src/web.ts\n";

fn world(files: &[(&str, &str)], rules: &str) -> World {
    let world = World::new(&[("src/web.ts", "fn page\n"), ("src/a.ts", "")]);
    for (file, content) in files {
        world.files.write(&path(file), content.as_bytes()).unwrap();
        world.graph.now.lock().unwrap().insert((*file).to_owned(), (*content).to_owned());
    }
    world.rules(&format!("version: 1\n{rules}"));
    world
}

fn write(file: &str, content: &str) -> Change {
    Change::Write { path: path(file), content: content.as_bytes().into() }
}

async fn judge(world: &World, file: &str, content: &str) -> Judgement {
    world.guardian.judge_changes(&[write(file, content)], &Visibility::everything()).await.unwrap()
}

/// `passes`, `undecided` or `broken`, and how many invariants stay undecided.
fn outcome(judgement: &Judgement) -> (&'static str, usize) {
    let word = match judgement.violations.as_slice() {
        [] => "passes",
        [violation, ..] if violation.undecided => "undecided",
        _ => "broken",
    };
    (word, judgement.undecided.len())
}

#[tokio::test]
async fn bug_a_file_that_cannot_be_read_leaves_an_invariant_undecided() {
    // Files before, the file and content that are written, the verdict of an assertion before, of the write, and how
    // many invariants are undecided before and after it.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a str, &'a str, usize);
    let cases: [Case<'_>; 10] = [
        (&[], "src/b.ts", "fn one\n", "holds", "passes", 0),
        (&[], "src/b.ts", "broken\n", "holds", "undecided", 0),
        (&[], "src/a.ts", "fn one\nbroken\n", "holds", "undecided", 0),
        (&[], "src/b.ts", IMPORTS, "holds", "broken", 0),
        // What is there is known to be wrong, whatever else the file hides.
        (&[], "src/b.ts", UNREAD, "holds", "broken", 0),
        (&[("src/u.ts", "broken\n")], "src/u.ts", "fn one\nbroken\n", "undecided", "passes", 1),
        (&[("src/u.ts", "broken\n")], "src/u.ts", "fn one\n", "undecided", "passes", 0),
        (&[("src/u.ts", "broken\n")], "src/u.ts", IMPORTS, "undecided", "broken", 0),
        (&[("src/u.ts", "broken\n")], "src/b.ts", "fn one\n", "undecided", "passes", 1),
        // One unread file does not make room for another one.
        (&[("src/u.ts", "broken\n")], "src/b.ts", "broken\n", "undecided", "undecided", 0),
    ];
    for (files, file, content, asserted, written, still) in cases {
        let case = format!("{files:?}, {file}: {content:?}");
        let world = world(files, &format!("invariants:{NO_WEB}"));
        let check = world.guardian.bullet_wound_check(&[]).await.unwrap();
        let verdict = if check.is_undecided() { "undecided" } else { "holds" };
        assert_eq!((verdict, check.defined), (asserted, 1), "{case}");
        assert!(world.guardian.halted().await.unwrap().is_none(), "{case}");
        let judgement = judge(&world, file, content).await;
        assert_eq!(outcome(&judgement), (written, still), "{case}");
        let steps = json!([{ "type": "WRITE_FILE", "filePath": file, "content": content }]);
        let review = world.guardian.review_plan(&plan(steps), &Visibility::everything()).await.unwrap();
        assert_eq!(review.is_approved(), written == "passes", "{case}: {review:?}");
        assert_eq!(review.undecided.len(), still, "{case}: {review:?}");
        match &review.decision {
            Decision::Approve { justification } => {
                assert_eq!(justification.contains("(1 undecided)"), still == 1, "{justification}");
            }
            Decision::Deny { reason } => {
                assert_eq!(reason.contains("leaves undecided `no-web`"), written == "undecided", "{reason}");
            }
        }
    }
}

#[tokio::test]
async fn bug_an_undecided_invariant_names_its_files_and_is_not_a_halt() {
    let world = world(&[("src/u.ts", "broken\n")], &format!("invariants:{NO_WEB}"));
    let check = world.guardian.bullet_wound_check(&[]).await.unwrap();
    let [undecided] = check.undecided.as_slice() else { panic!("{check:?}") };
    assert_eq!(undecided.files[0].path, "src/u.ts");
    assert_eq!(undecided.files[0].reason, UnreadReason::Syntax);
    assert!(undecided.sentence().contains("src/u.ts (it has a syntax error)"), "{}", undecided.sentence());
    // A change that is refused names the file that it makes unreadable, and not the others.
    let judgement = judge(&world, "src/b.ts", "broken\n").await;
    let violation = serde_json::to_value(&judgement.violations[0]).unwrap();
    assert_eq!(violation["unread"], json!([{ "path": "src/b.ts", "reason": "syntax" }]));
    assert_eq!(violation["undecided"], Value::Bool(true));
}

#[tokio::test]
async fn bug_a_halt_is_not_lifted_by_an_answer_that_is_undecided() {
    let world = world(&[("src/b.ts", IMPORTS)], &format!("invariants:{NO_WEB}"));
    assert_eq!(world.guardian.bullet_wound_check(&[]).await.unwrap_err().code, Code::Halt);
    // The import is gone from the graph, and the file cannot be read.
    world.graph.now.lock().unwrap().insert("src/b.ts".to_owned(), "broken\n".to_owned());
    let check = world.guardian.bullet_wound_check(&[]).await.unwrap();
    assert!(check.is_undecided());
    assert!(world.guardian.halted().await.unwrap().is_some());
    let edit = ReconcileEdit {
        file_path: "src/a.ts".to_owned(),
        diff_ref: "worktree".to_owned(),
        invariant: None,
        reason: None,
    };
    let reconciled = world.guardian.reconcile(&edit).await.unwrap();
    assert!(!reconciled.lifted && reconciled.still_broken.is_some(), "{reconciled:?}");
    world.graph.now.lock().unwrap().insert("src/b.ts".to_owned(), "fn fine\n".to_owned());
    assert!(!world.guardian.bullet_wound_check(&[]).await.unwrap().is_undecided());
    assert!(world.guardian.halted().await.unwrap().is_none());
}

#[tokio::test]
async fn expected_rows_that_an_unread_file_may_hold_are_undecided() {
    let rules = "invariants:
  - name: price
    query: \"MATCH (s:Symbol) WHERE s.name = 'price' RETURN s.path AS path\"
    expect: rows
    message: Others use price.
  - name: kept
    query: \"MATCH (s:Symbol) RETURN s.name AS name\"
    expect: kept
    message: Others use these.
";
    let world = world(&[("src/p.ts", "fn price\n")], rules);
    // The rows may be in the file that cannot be read any more.
    let judgement = judge(&world, "src/p.ts", "broken\n").await;
    assert!(judgement.violations.iter().all(|violation| violation.undecided), "{judgement:?}");
    assert_eq!(judgement.violations.len(), 2);
    // A file that was unread before is not an excuse.
    world.graph.now.lock().unwrap().insert("vendor/x.ts".to_owned(), "broken\n".to_owned());
    let judgement = judge(&world, "src/p.ts", "fn other\n").await;
    assert_eq!(outcome(&judgement).0, "broken");
    assert_eq!(judgement.violations.len(), 2);
    // Undecided before, and without the row once everything can be read.
    world.graph.now.lock().unwrap().insert("src/p.ts".to_owned(), "broken\n".to_owned());
    world.graph.now.lock().unwrap().remove("vendor/x.ts");
    let judgement = judge(&world, "src/p.ts", "fn other\n").await;
    assert_eq!(judgement.violations.iter().map(|one| one.invariant.as_str()).collect::<Vec<_>>(), ["price"]);
    let asserted = [Assertion::new("MATCH (s:Symbol) WHERE s.name = 'price' RETURN s.path AS path", true)];
    assert_eq!(world.guardian.bullet_wound_check(&asserted).await.unwrap().undecided.len(), 3);
}

#[tokio::test]
async fn files_that_are_known_to_be_unreadable_count_for_nothing() {
    let rules = format!("unread:\n  ignore: ['vendor/**', 'src/gen/*.ts']\ninvariants:{NO_WEB}");
    let world = world(&[("vendor/deep/x.ts", "broken\n"), ("src/gen/y.ts", "broken\n")], &rules);
    assert!(!world.guardian.bullet_wound_check(&[]).await.unwrap().is_undecided());
    assert_eq!(outcome(&judge(&world, "vendor/new.ts", "broken\n").await), ("passes", 0));
    assert_eq!(outcome(&judge(&world, "src/gen/deep/new.ts", "broken\n").await), ("undecided", 0));
    // What such a file is known to import still counts.
    assert_eq!(outcome(&judge(&world, "vendor/new.ts", UNREAD).await).0, "broken");
    let bad = [
        ("unread: {ignore: ['']}", "not a glob"),
        ("unread: {ignore: ['[']}", "not a glob"),
        ("unread: {ignroe: []}", "ignroe"),
        ("unread: {}", "ignore"),
        ("unread: {ignore: vendor}", "a list is expected"),
    ];
    for (text, said) in bad {
        let error = Invariants::parse("i.yml", &format!("version: 1\n{text}\n")).unwrap_err();
        assert_eq!(error.code, Code::Config, "{text}");
        assert!(error.message.contains(said), "{text}: {}", error.message);
    }
    let many: Vec<String> = (0..101).map(|number| format!("'{number}'")).collect();
    let text = format!("version: 1\nunread: {{ignore: [{}]}}\n", many.join(", "));
    assert!(Invariants::parse("i.yml", &text).unwrap_err().message.contains("101 patterns"));
}

#[tokio::test]
async fn a_warning_that_is_undecided_refuses_nothing() {
    let rules = format!("invariants:{NO_WEB}    severity: warning\n");
    let world = world(&[], &rules);
    let judgement = judge(&world, "src/b.ts", "broken\n").await;
    assert_eq!(judgement.violations[0].severity, Severity::Warning);
    assert!(!world.guardian.bullet_wound_check(&[]).await.unwrap().is_undecided());
}

#[test]
fn only_queries_about_paths_are_independent_of_contents() {
    let cases = [
        ("MATCH (f:File) WHERE f.path ENDS WITH '.exe' RETURN f.path", false),
        ("MATCH (f:File {unparsed: true}) RETURN f.path", false),
        ("MATCH (f:File) WHERE f.broken RETURN f.path, f.bytes", false),
        ("UNWIND $changed + $deleted AS path WITH path WHERE path = 'LICENSE' RETURN path", false),
        ("MATCH (f:File)-[:CHANGED_IN]->(c:Commit) RETURN f.path, c.sha", false),
        ("MATCH (n:File)-[:WAS_RENAMED_FROM]->(o:File) RETURN n.path, o.path", false),
        ("MATCH (t:Tool) RETURN t.name AS name UNION MATCH (f:File) RETURN f.name AS name", false),
        ("MATCH (a:File)-[:IMPORTS]->(b:File) RETURN a.path", true),
        ("MATCH (a:File)-[:IMPORTS|CHANGED_IN]->(b) RETURN a.path", true),
        ("MATCH (a:File)-[r]->(b:File) RETURN a.path", true),
        ("MATCH (a:File)-->(b:File) RETURN a.path", true),
        ("MATCH (n) RETURN n.path", true),
        ("MATCH (n:!File) RETURN n.path", true),
        ("MATCH (s:Symbol) RETURN s.path", true),
        ("MATCH (p:Package) RETURN p.name", true),
        ("MATCH (f:File) WHERE f.lines > 300 RETURN f.path", true),
        ("MATCH (f:File {lines: 3}) RETURN f.path", true),
        ("MATCH (f:File) WHERE f['li' + 'nes'] > 3 RETURN f.path", true),
        ("MATCH (f:File) WHERE EXISTS { (f)-[:DEFINES]->() } RETURN f.path", true),
        ("MATCH (f:File) WHERE (f)-[:IMPORTS]->() RETURN f.path", true),
        ("MATCH (f:File) RETURN size([(f)-[:DEFINES]->(s) | s.name])", true),
        ("this is not a query", true),
    ];
    for (query, depends) in cases {
        assert_eq!(tgp_graph::depends_on_contents(query), depends, "{query}");
    }
}
