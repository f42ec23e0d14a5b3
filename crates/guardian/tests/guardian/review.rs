//! Plans against graph, chronicle and invariants.

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_contract::{Code, Decision, Severity, ToolError, Visibility};
use tgp_guardian::{Review, StepFinding};

use crate::world::{World, path, plan};

const LAYERS: &str = "
version: 1
invariants:
  - name: domain-knows-no-web
    query: |
      MATCH (a:File)-[:IMPORTS]->(b:File)
      WHERE a.path STARTS WITH 'src/domain/' AND b.path STARTS WITH 'src/web/'
      RETURN a.path AS importer, b.path AS imported
    expect: none
    message: The domain does not know the web.
  - name: protected
    query: |
      UNWIND $changed AS path WITH path WHERE path STARTS WITH 'legal/' RETURN path
    expect: none
    message: A person changes these.
  - name: no-new-legacy
    query: UNWIND $added AS path WITH path WHERE path STARTS WITH 'legacy/' RETURN path
    expect: none
    severity: warning
    message: Nothing new goes there.
  - name: has-an-entry
    query: MATCH (f:File) WHERE f.path = 'src/main.ts' RETURN f.path AS path
    expect: rows
    message: The program has an entry.
  - name: api
    query: MATCH (f:File)-[:DEFINES]->(s:Symbol) WHERE f.path = 'src/api.ts' RETURN s.name AS name
    expect: kept
    message: The API stays.
";

fn project() -> World {
    World::new(&[
        ("src/a.ts", "import src/b.ts\nfn a\n"),
        ("src/b.ts", "fn b\nfn twice\nfn twice\n"),
        ("src/c.ts", "import src/b.ts\n"),
        ("src/alone.ts", "import src/alone.ts\nfn alone\n"),
        ("src/main.ts", "import src/a.ts\n"),
        ("src/api.ts", "fn one\nfn two\n"),
        ("src/domain/order.ts", "fn order\n"),
        ("src/domain/old.ts", "import src/web/page.ts\n"),
        ("src/web/page.ts", "fn page\n"),
        ("legal/terms.md", "terms\n"),
    ])
}

async fn review(world: &World, steps: Value) -> Review {
    world.guardian.review_plan(&plan(steps), &Visibility::everything()).await.unwrap()
}

fn reason(review: &Review) -> String {
    match &review.decision {
        Decision::Deny { reason } => reason.clone(),
        Decision::Approve { justification } => panic!("approved: {justification}"),
    }
}

#[tokio::test]
async fn t3_a_plan_that_deletes_what_the_graph_knows_is_denied() {
    let world = World::new(&[]);
    world.graph.now.lock().unwrap().insert("src/important.ts".to_owned(), String::new());
    let steps = json!([{ "type": "DELETE_FILE", "filePath": "src/important.ts" }]);
    let denied = review(&world, steps).await;
    assert_eq!(serde_json::to_value(&denied.decision).unwrap()["type"], "deny");
    assert!(reason(&denied).contains("src/important.ts exists in graph"), "{denied:?}");
    assert_eq!((denied.findings.len(), denied.findings[0].step), (1, Some(1)));
}

#[tokio::test]
async fn every_rule_names_step_fact_and_reason() {
    let cases: Vec<(Value, usize, &str)> = vec![
        (
            json!([{ "type": "DELETE_FILE", "filePath": "src/b.ts" }]),
            1,
            "src/b.ts exists in graph, imported by src/a.ts, src/c.ts",
        ),
        (
            json!([{ "type": "DELETE_FILE", "filePath": "src/b.ts", "acknowledged": true }]),
            1,
            "exists in graph, imported by src/a.ts, src/c.ts",
        ),
        (
            json!([
                { "type": "EDIT_FILE", "filePath": "src/a.ts", "oldText": "import src/b.ts\n", "newText": "" },
                { "type": "DELETE_FILE", "filePath": "src/b.ts", "acknowledged": true },
            ]),
            2,
            "exists in graph, imported by src/c.ts",
        ),
        (
            json!([{ "type": "CALL_TOOL", "tool": "fs.delete", "arguments": { "path": "src/b.ts" } }]),
            1,
            "exists in graph, imported by",
        ),
        (
            json!([{ "type": "DELETE_FILE", "filePath": "src/alone.ts" }]),
            1,
            "may say `\"acknowledged\": true`",
        ),
        (json!([{ "type": "DELETE_FILE", "filePath": "src/none.ts" }]), 1, "cannot be deleted"),
        (
            json!([{ "type": "RENAME_FILE", "filePath": "src/b.ts", "to": "src/d.ts" }]),
            1,
            "exists in graph, imported by src/a.ts, src/c.ts: the plan renames it to src/d.ts",
        ),
        (
            json!([{ "type": "RENAME_FILE", "filePath": "src/b.ts", "to": "src/a.ts" }]),
            1,
            "`src/a.ts` exists already: it cannot be created again",
        ),
        (
            json!([{ "type": "RENAME_FILE", "filePath": "src/b.ts", "to": "./src/b.ts" }]),
            1,
            "renamed to itself",
        ),
        (
            json!([{ "type": "EDIT_FILE", "filePath": "src/new.ts", "oldText": "a", "newText": "b" }]),
            1,
            "is not in graph, and no earlier step makes it",
        ),
        (
            json!([{ "type": "EDIT_FILE", "filePath": "src/a.ts", "oldText": "nowhere", "newText": "b" }]),
            1,
            "does not occur",
        ),
        (
            json!([{ "type": "EDIT_FILE", "filePath": "src/b.ts", "search": "twice", "replace": "b" }]),
            1,
            "occurs more than once",
        ),
        (
            json!([
                { "type": "DELETE_FILE", "filePath": "src/alone.ts", "acknowledged": true },
                { "type": "EDIT_FILE", "filePath": "src/alone.ts", "oldText": "fn", "newText": "b" },
            ]),
            2,
            "step 1 removes `src/alone.ts`",
        ),
        (
            json!([{ "type": "CREATE_FILE", "filePath": "src/a.ts", "content": "" }]),
            1,
            "`src/a.ts` exists already",
        ),
        (
            json!([
                { "type": "WRITE_FILE", "filePath": "src/x.ts", "content": "" },
                { "type": "CREATE_FILE", "filePath": "src/x.ts", "content": "" },
            ]),
            2,
            "an earlier step makes `src/x.ts` already",
        ),
        (json!([{ "type": "CREATE_FILE", "filePath": "src/x.ts" }]), 1, "`content` is missing"),
        (json!([{ "type": "CREATE_FILE", "content": "" }]), 1, "`filePath` is missing"),
        (json!([{ "type": "CREATE_FILE", "filePath": "../x", "content": "" }]), 1, "leaves its root"),
        (json!([{ "type": "CREATE_FILE", "filePath": "/etc/x", "content": "" }]), 1, "is absolute"),
        (json!([{ "type": "WRITE_FILE", "filePath": "src", "content": "" }]), 1, "it is a directory"),
        (
            json!([{ "type": "WRITE_FILE", "filePath": "src/a.ts/x", "content": "" }]),
            1,
            "is a file, not a directory",
        ),
        (
            json!([{ "type": "WRITE_FILE", "filePath": ".sage/invariants.yml", "content": "" }]),
            1,
            "no plan changes",
        ),
        (json!([{ "type": "DELETE_FILE", "filePath": ".sage/files/src/a.ts.sage" }]), 1, "no plan changes"),
        (json!([{ "type": "DELETE", "filePath": "src/a.ts" }]), 1, "`DELETE` is not a type of step"),
        (json!([{ "type": "CREATE_FIEL", "filePath": "src/a.ts" }]), 1, "did you mean CREATE_FILE?"),
        (json!([{ "type": "RUN_COMMAND" }]), 1, "`command` is missing"),
        (json!([{ "type": "CALL_TOOL", "tool": "x", "arguments": 1 }]), 1, "`arguments` is not an object"),
        (
            json!([{ "type": "DELETE_FILE", "filePath": "a", "acknowledged": "yes" }]),
            1,
            "neither true nor false",
        ),
        (
            json!([{ "type": "EDIT_FILE", "filePath": "src/domain/order.ts", "oldText": "fn order", "newText": "import src/web/page.ts" }]),
            1,
            "breaks `domain-knows-no-web`: The domain does not know the web.",
        ),
        (
            json!([
                { "type": "WRITE_FILE", "filePath": "src/free.ts", "content": "" },
                { "type": "WRITE_FILE", "filePath": "legal/terms.md", "content": "mine\n" },
            ]),
            2,
            "breaks `protected`",
        ),
        (
            json!([{ "type": "EDIT_FILE", "filePath": "src/api.ts", "oldText": "fn two\n", "newText": "" }]),
            0,
            "expected every row that was there before, missing {\"name\":\"two\"}: breaks `api`: The API stays.",
        ),
    ];
    for (steps, step, text) in cases {
        let world = project();
        world.rules(LAYERS);
        let denied = review(&world, steps.clone()).await;
        let whole = |finding: &StepFinding| format!("{}: {}", finding.fact, finding.reason);
        let finding = denied.findings.iter().find(|finding| whole(finding).contains(text));
        let finding = finding.unwrap_or_else(|| panic!("{steps}: {denied:?}"));
        assert_eq!(finding.step, (step > 0).then_some(step), "{steps}: {denied:?}");
        assert_eq!(finding.severity, Severity::Error);
        assert!(!finding.fact.is_empty());
        assert!(reason(&denied).contains(&whole(finding)), "{denied:?}");
        // The two say different things.
        assert!(
            !finding.reason.contains(&finding.fact) && !finding.fact.contains(&finding.reason),
            "{denied:?}"
        );
    }
}

#[tokio::test]
async fn a_plan_that_nothing_stands_against_is_approved() {
    let cases = [
        json!([]),
        json!([{ "type": "RUN_COMMAND", "command": "make" }, { "type": "RUN_TESTS" }]),
        json!([{ "type": "DELETE_FILE", "filePath": "src/alone.ts", "acknowledged": true }]),
        // Everybody who imports it is changed or deleted, before or after.
        json!([
            { "type": "DELETE_FILE", "filePath": "src/b.ts", "acknowledged": true },
            { "type": "EDIT_FILE", "filePath": "src/a.ts", "oldText": "import src/b.ts\n", "newText": "" },
            { "type": "DELETE_FILE", "filePath": "src/c.ts", "acknowledged": true },
        ]),
        json!([
            { "type": "RENAME_FILE", "filePath": "src/b.ts", "to": "src/d.ts" },
            { "type": "EDIT_FILE", "filePath": "src/a.ts", "search": "b.ts", "replace": "d.ts" },
            { "type": "WRITE_FILE", "filePath": "src/c.ts", "content": "import src/d.ts\n" },
        ]),
        // In the end it is there again.
        json!([
            { "type": "DELETE_FILE", "filePath": "src/b.ts", "acknowledged": true },
            { "type": "CREATE_FILE", "filePath": "src/b.ts", "content": "fn better\n" },
        ]),
        // A file of the plan itself can be edited and thrown away.
        json!([
            { "type": "CREATE_FILE", "filePath": "src/x.ts", "content": "fn x\n" },
            { "type": "EDIT_FILE", "filePath": "src/x.ts", "edits": [
                { "search": "fn x", "replace": "fn y" }, { "oldText": "fn y", "newText": "fn z" }] },
            { "type": "RENAME_FILE", "filePath": "src/x.ts", "to": "src/y.ts" },
            { "type": "DELETE_FILE", "filePath": "src/y.ts" },
        ]),
        // What is broken already is not this plan's fault.
        json!([{ "type": "EDIT_FILE", "filePath": "src/domain/old.ts", "oldText": "import", "newText": "fn old\nimport" }]),
        // Made and reverted: in sum nothing of the API is lost.
        json!([
            { "type": "EDIT_FILE", "filePath": "src/api.ts", "oldText": "fn two\n", "newText": "" },
            { "type": "EDIT_FILE", "filePath": "src/api.ts", "oldText": "fn one\n", "newText": "fn one\nfn two\n" },
        ]),
    ];
    for steps in cases {
        let world = project();
        world.rules(LAYERS);
        let approved = review(&world, steps.clone()).await;
        assert!(approved.is_approved(), "{steps}: {approved:?}");
        assert_eq!(approved.findings, Vec::<StepFinding>::new());
    }
}

#[tokio::test]
async fn a_warning_is_told_and_denies_nothing() {
    let world = project();
    world.rules(LAYERS);
    let steps = json!([{ "type": "CREATE_FILE", "filePath": "legacy/x.ts", "content": "" }]);
    let review = review(&world, steps).await;
    assert!(review.is_approved());
    let [finding] = review.findings.as_slice() else { panic!("{review:?}") };
    assert_eq!((finding.step, finding.severity), (Some(1), Severity::Warning));
    assert_eq!(finding.file.as_deref(), Some("legacy/x.ts"));
}

#[tokio::test]
async fn an_invariant_on_rows_is_broken_by_the_plan_that_empties_it() {
    let world = project();
    world.rules(LAYERS);
    let steps = json!([{ "type": "DELETE_FILE", "filePath": "src/main.ts", "acknowledged": true }]);
    let denied = review(&world, steps).await;
    assert!(
        reason(&denied).contains("plan: expected rows, found no rows: breaks `has-an-entry`"),
        "{denied:?}"
    );
}

#[tokio::test]
async fn a_plan_on_a_file_whose_chronicle_is_not_true_is_denied() {
    let world = project();
    world.event("src/a.ts.sage", "FILE_DELETED", None, json!({})).await;
    world.event(".sage/project.sage", "FILE_CREATED", Some("src/ghost.ts"), json!({})).await;
    for (file, text) in [
        (
            "src/a.ts",
            "the chronicle says that src/a.ts was deleted (FILE_DELETED of 2026-01-01T00:00:00Z), but it is there",
        ),
        (
            "src/ghost.ts",
            "the chronicle says that src/ghost.ts was created (FILE_CREATED of 2026-01-01T00:00:01Z), but there is no such file",
        ),
    ] {
        let denied = review(
            &world,
            json!([
                { "type": "RUN_TESTS" },
                { "type": "WRITE_FILE", "filePath": file, "content": "" },
            ]),
        );
        let denied = denied.await;
        assert!(
            denied.findings.iter().any(|finding| finding.step == Some(2) && finding.fact.contains(text)),
            "{denied:?}"
        );
        assert!(!denied.is_approved());
    }
    // Other files are not affected.
    assert!(
        review(&world, json!([{ "type": "WRITE_FILE", "filePath": "src/c.ts", "content": "" }]))
            .await
            .is_approved()
    );
}

#[tokio::test]
async fn a_graph_that_fails_and_a_plan_without_end_are_no_approval() {
    let world = project();
    let steps: Vec<Value> = (0..201).map(|_| json!({ "type": "RUN_TESTS" })).collect();
    assert!(reason(&review(&world, json!(steps)).await).contains("at most 200 steps"));
    *world.graph.failure.lock().unwrap() = Some(ToolError::new(Code::Git, "no repository"));
    let plan = plan(json!([{ "type": "WRITE_FILE", "filePath": "src/c.ts", "content": "" }]));
    assert_eq!(
        world.guardian.review_plan(&plan, &Visibility::everything()).await.unwrap_err().code,
        Code::Git
    );
}

#[tokio::test]
async fn an_invariant_that_cannot_be_asked_is_named() {
    let world = project();
    world.rules(&format!(
        "{LAYERS}  - name: misspelt\n    query: MATCH (f:File) WHERE g.path = 'x' RETURN f.path AS path\n    expect: none\n    message: m\n"
    ));
    let plan = plan(json!([{ "type": "WRITE_FILE", "filePath": "src/c.ts", "content": "" }]));
    let error = world.guardian.review_plan(&plan, &Visibility::everything()).await.unwrap_err();
    assert_eq!(error.code, Code::Validation);
    assert_eq!(error.details["invariant"], "misspelt");
    assert!(error.message.contains("`misspelt` cannot be asked: `g` is not defined"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The graph may give its rows in any order, and the work tree is never touched.
    #[test]
    fn the_order_of_facts_does_not_change_a_review(
        turn in 1_usize..97,
        kinds in proptest::collection::vec((0_usize..5, 0_usize..6, 0_usize..6), 1..8),
    ) {
        let files = ["src/a.ts", "src/b.ts", "src/c.ts", "src/domain/order.ts", "src/web/page.ts", "src/new.ts"];
        let steps: Vec<Value> = kinds.iter().map(|(kind, one, other)| {
            let (file, other) = (files[*one], files[*other]);
            match kind {
                0 => json!({ "type": "DELETE_FILE", "filePath": file, "acknowledged": one != &0 }),
                1 => json!({ "type": "RENAME_FILE", "filePath": file, "to": other }),
                2 => json!({ "type": "WRITE_FILE", "filePath": file, "content": format!("import {other}\n") }),
                3 => json!({ "type": "CREATE_FILE", "filePath": file, "content": "import src/web/page.ts\n" }),
                _ => json!({ "type": "EDIT_FILE", "filePath": file, "oldText": "import", "newText": "fn x\nimport" }),
            }
        }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = project();
            world.rules(LAYERS);
            world.event("src/c.ts.sage", "FILE_DELETED", None, json!({})).await;
            let before = world.files.list(&path("")).unwrap();
            let first = review(&world, json!(steps)).await;
            world.graph.order.store(turn, Ordering::SeqCst);
            world.clock.fetch_add(1_000, Ordering::SeqCst);
            let second = review(&world, json!(steps)).await;
            assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&second).unwrap());
            assert_eq!(world.files.list(&path("")).unwrap(), before);
            assert_eq!(first.is_approved(), first.findings.iter().all(|one| one.severity == Severity::Warning));
        });
    }
}

#[tokio::test]
async fn importers_that_were_cut_off_never_approve() {
    let world = project();
    world.graph.cap.store(1, Ordering::SeqCst);
    // Two files import it, and the graph names one of them.
    let steps = json!([{ "type": "DELETE_FILE", "filePath": "src/b.ts", "acknowledged": true }]);
    let error = world.guardian.review_plan(&plan(steps), &Visibility::everything()).await.unwrap_err();
    assert_eq!(error.code, Code::Budget);
    assert!(error.message.contains("`importers` has more than 1 row,"), "{error}");
    assert!(error.help_of().unwrap().contains("fewer files"), "{error:?}");
}

#[tokio::test]
async fn a_field_of_a_step_that_nobody_reads_is_refused() {
    let world = project();
    for (step, text) in [
        (
            json!({ "type": "WRITE_FILE", "filePath": "src/x.ts", "contents": "" }),
            "`contents` is not a field of a step of this type; did you mean `content`?",
        ),
        (json!({ "type": "WRITE_FILE", "path": "src/x.ts", "content": "" }), "did you mean `filePath`?"),
        (json!({ "type": "RUN_COMMAND", "cmd": "make" }), "did you mean `command`?"),
        (json!({ "type": "RUN_COMMAND", "command": "make", "why": "x" }), "the known ones are command, cwd"),
        (
            json!({ "type": "DELETE_FILE", "filePath": "src/alone.ts", "acknowleged": true }),
            "did you mean `acknowledged`?",
        ),
        (
            json!({ "type": "EDIT_FILE", "filePath": "src/a.ts", "old_string": "a", "new_string": "b" }),
            "Text`?",
        ),
        (
            json!({ "type": "EDIT_FILE", "filePath": "src/a.ts", "edits": [{ "oldText": "a", "newTxt": "b" }] }),
            "`newTxt` is not a field of an edit; did you mean `newText`?",
        ),
    ] {
        let denied = review(&world, json!([step])).await;
        assert!(denied.findings[0].fact.contains(text), "{denied:?}");
    }
}

#[tokio::test]
async fn numbers_of_one_are_said_as_one() {
    let world = project();
    world.rules(LAYERS.split("  - name: protected").next().unwrap());
    world.event("src/a.ts.sage", "NOTE", None, json!({})).await;
    let approved = review(&world, json!([{ "type": "RUN_TESTS" }])).await;
    let Decision::Approve { justification } = approved.decision else { panic!("{approved:?}") };
    assert_eq!(justification, "1 step; checked against graph, 1 chronicle and 1 invariant: no objections");
}

#[tokio::test]
async fn an_error_in_a_query_is_at_its_line_of_the_file() {
    let rule = |query: &str| {
        format!(
            "version: 1\ninvariants:\n  - name: misspelt\n    message: m\n    expect: none\n    query: {query}\n"
        )
    };
    for (query, line, column) in [
        ("|\n      MATCH (f:File)\n      WHERE g.path = 'x' RETURN f.path AS path", 8, 13),
        ("MATCH (f:File) WHERE g.path = 'x' RETURN f.path AS path", 6, 33),
        ("'MATCH (f:File) WHERE g.path = ''x'' RETURN f.path AS path'", 6, 34),
        (">\n      MATCH (f:File)\n      WHERE g.path = 'x' RETURN f.path AS path", 7, 7),
        ("|-\n\n      MATCH (f:File)\n      WHERE g.path = 'x' RETURN f.path AS path", 9, 13),
        ("\"MATCH (f:File) WHERE g.path = 'x' RETURN f.path AS path\"", 6, 12),
    ] {
        let world = project();
        world.rules(&rule(query));
        let error = world.guardian.bullet_wound_check(&[]).await.unwrap_err();
        assert_eq!((error.code, &error.details["invariant"]), (Code::Validation, &json!("misspelt")));
        let place = error.place_of().unwrap();
        assert_eq!(
            (place.file.as_str(), place.line, place.column),
            (".sage/invariants.yml", line, column),
            "{query}"
        );
        let begin =
            format!(".sage/invariants.yml:{line}:{column}: `misspelt` cannot be asked: `g` is not defined");
        assert!(error.message.starts_with(&begin), "{error}");
    }
}
