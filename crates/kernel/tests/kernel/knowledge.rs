//! Suite T3 on the real parts: the Guardian with the real graph, chronicle, router and sandbox.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Actor, CallContext, Consent, Decision, Plan};
use tgp::guardian::{Assertion, PlanOutcome};

use crate::support::{Project, code, data, error, exec};

const INVARIANTS: &str = "version: 1
invariants:
  - name: nothing-forbidden
    query: |
      MATCH (f:File) WHERE f.name STARTS WITH 'forbidden' RETURN f.path
    expect: none
    severity: error
    message: Nobody makes such a file.
  - name: app-exports-total
    query: |
      MATCH (s:Symbol {name: 'total', exported: true}) RETURN s.path
    expect: kept
    severity: error
    message: Others use total().
";

/// A project without git: the graph knows its files all the same.
fn shop() -> Project {
    let project = Project::new();
    project.put("src/price.ts", "export const price = (items: number): number => items * 3;\n").put(
        "src/app.ts",
        "import { price } from './price';\nexport const total = (): number => price(2);\n",
    );
    project
}

fn plan(steps: &Value) -> Plan {
    serde_json::from_value(json!({ "id": "p", "steps": steps })).unwrap()
}

fn agreed() -> CallContext {
    CallContext {
        actor: Actor::Agent("test".to_owned()),
        session: "test".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

async fn write(kernel: &Kernel, path: &str, content: &str) -> tgp::contract::ToolResult {
    kernel.call("fs_write", json!({ "path": path, "content": content })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_a_plan_that_violates_the_graph_is_denied_and_names_who_imports_it() {
    let project = shop();
    let kernel = project.boot().await.unwrap();
    let delete = plan(&json!([{ "type": "DELETE_FILE", "filePath": "src/price.ts" }]));
    let review = kernel.review_plan(&delete, &agreed()).await.unwrap();
    let Decision::Deny { reason } = &review.decision else { panic!("{review:?}") };
    assert!(reason.contains("exists in graph"), "{reason}");
    assert!(format!("{review:?}").contains("imported by src/app.ts"), "{review:?}");
    // Nothing else is planned, so the same plan with its importer changed is fine.
    let both = plan(&json!([
        { "type": "WRITE_FILE", "filePath": "src/app.ts", "content": "export const total = (): number => 6;\n" },
        { "type": "DELETE_FILE", "filePath": "src/price.ts", "acknowledged": true },
    ]));
    let report = kernel.carry_out(&both, agreed()).await.unwrap();
    assert_eq!(report.outcome, PlanOutcome::Completed, "{report:?}");
    assert!(!project.file("src/price.ts").exists());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_a_broken_assertion_halts_every_tool_that_does_more_than_read() {
    let project = shop();
    let kernel = project.boot().await.unwrap();
    let query = "MATCH (f:File {name: 'critical.ts'}) RETURN f";
    let broken = kernel.assert_invariants(&[Assertion::new(query, true)]).await.unwrap_err();
    assert_eq!(broken.code.as_str(), "EHALT");
    assert_eq!(broken.details["invariant"], json!(query), "{broken:?}");
    assert_eq!((&broken.details["expected"], &broken.details["actual"]), (&json!("rows"), &json!("no rows")));
    project.tool("one.ts", "export default () => 1;");
    for answer in [
        write(&kernel, "docs/a.md", "a").await,
        exec(&kernel, "tools/one.ts", json!({})).await,
        kernel.call("shell_exec", json!({ "command": "true" })).await,
        kernel.call("exec_sql", json!({ "sql": "CREATE TABLE t (a)" })).await,
    ] {
        assert_eq!(code(&answer), "EHALT", "{answer:?}");
    }
    assert!(kernel.call("fs_read", json!({ "path": "src/app.ts" })).await.is_ok());
    assert!(!project.file("docs/a.md").exists());
    // Another process finds it halted as well, and what holds again lifts it.
    let second = project.boot().await.unwrap();
    assert_eq!(code(&write(&second, "docs/a.md", "a").await), "EHALT");
    second.shutdown().await;
    project.put("src/critical.ts", "export const critical = 1;\n");
    kernel.assert_invariants(&[Assertion::new(query, true)]).await.unwrap();
    assert!(write(&kernel, "docs/a.md", "a").await.is_ok());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_halt_of_another_process_holds_from_the_next_call_on() {
    let project = shop();
    let (first, second) = (project.boot().await.unwrap(), project.boot().await.unwrap());
    let query = "MATCH (f:File {name: 'critical.ts'}) RETURN f";
    let asserted = [Assertion::new(query, true)];
    // It has read that nothing is halted, and still checks the file.
    assert!(write(&first, "docs/a.md", "a").await.is_ok());
    for round in 0..3 {
        assert_eq!(second.assert_invariants(&asserted).await.unwrap_err().code.as_str(), "EHALT");
        // The second call may answer from what the first has read.
        for _ in 0..2 {
            assert_eq!(code(&write(&first, "docs/b.md", "b").await), "EHALT", "round {round}");
        }
        project.put("src/critical.ts", "export const critical = 1;\n");
        second.assert_invariants(&asserted).await.unwrap();
        assert!(write(&first, "docs/a.md", "again").await.is_ok(), "round {round}");
        std::fs::remove_file(project.file("src/critical.ts")).unwrap();
    }
    // A chronicle that was not changed for two seconds is known by its metadata.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    assert!(write(&first, "docs/a.md", "third").await.is_ok());
    assert!(write(&first, "docs/a.md", "fourth").await.is_ok());
    assert_eq!(second.assert_invariants(&asserted).await.unwrap_err().code.as_str(), "EHALT");
    assert_eq!(code(&write(&first, "docs/b.md", "b").await), "EHALT");
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_stretch_a_reconciliation_is_one_event_however_often_it_is_applied() {
    let project = shop();
    let kernel = Arc::new(project.boot().await.unwrap());
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let kernel = Arc::clone(&kernel);
            tokio::spawn(async move {
                let call = json!({ "path": "src/app.ts", "diff_ref": "abc123" });
                kernel.call("reconcile", call).await
            })
        })
        .collect();
    let mut appended = 0;
    for task in tasks {
        let answer = task.await.unwrap();
        appended += usize::from(data(&answer)["appended"] == json!(true));
    }
    assert_eq!(appended, 1);
    let events = project.text(".sage/files/src/app.ts.sage").unwrap();
    assert_eq!(events.matches("\"RECONCILIATION\"").count(), 1, "{events}");
    assert!(events.contains("\"diffRef\":\"abc123\""), "{events}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariants_are_held_on_the_proposed_tree_by_whatever_door_a_file_comes() {
    let project = shop();
    project.put(".sage/invariants.yml", INVARIANTS);
    let kernel = project.kernel(json!({})).await;
    data(&kernel.call("exec_sql", json!({ "sql": "CREATE TABLE t (a TEXT)" })).await);
    project.tool(
        "bad.ts",
        "export default async () => { await tgp.exec_sql(\"INSERT INTO t VALUES ('x')\"); await tgp.write_file('tmp/forbidden.txt', 'x'); };",
    );
    let edit = json!({ "path": "src/app.ts", "search": "export const total", "replace": "const total" });
    for (door, answer) in [
        ("fs_write", write(&kernel, "docs/forbidden.md", "x").await),
        ("exec_tool", exec(&kernel, "tools/bad.ts", json!({})).await),
        ("shell_exec", kernel.call("shell_exec", json!({ "command": "touch forbidden" })).await),
        ("fs_edit", kernel.call("fs_edit", edit).await),
        ("fs_delete", kernel.call("fs_delete", json!({ "path": "src/app.ts" })).await),
    ] {
        assert_eq!(code(&answer), "EPOLICY", "{door}: {answer:?}");
        assert!(error(&answer).details.contains_key("invariant"), "{door}: {answer:?}");
    }
    let rows = kernel.call("exec_sql", json!({ "sql": "SELECT count(*) AS n FROM t" })).await;
    assert_eq!(data(&rows)["rows"][0]["n"], json!(0), "the run's rows are gone with its files");
    for path in ["docs/forbidden.md", "tmp/forbidden.txt", "forbidden"] {
        assert!(!project.file(path).exists(), "{path}");
    }
    // What was broken before does not prevent other work.
    project.put("old/forbidden.md", "old");
    assert!(write(&kernel, "docs/fine.md", "fine").await.is_ok());
    assert!(kernel.call("fs_delete", json!({ "path": "old/forbidden.md" })).await.is_ok());
    // Rules that cannot be read let nothing through.
    project.put(".sage/invariants.yml", "version: 1\ninvariants: [{ name: x }]\n");
    assert_eq!(code(&write(&kernel, "docs/fine.md", "finer").await), "ECONFIG");
    kernel.shutdown().await;
}

/// Ordinary work: edits by people do not halt the kernel, unless the project wants that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_people_delete_and_restore_halt_a_write_only_where_that_is_wished() {
    for (config, expected) in
        [(json!({}), None), (json!({ "guardian": { "touchedFiles": "halt" } }), Some("EHALT"))]
    {
        let project = shop();
        let kernel = project.kernel(config).await;
        data(&write(&kernel, "src/new.md", "one").await);
        std::fs::remove_file(project.file("src/new.md")).unwrap();
        let answer = write(&kernel, "src/new.md", "two").await;
        assert_eq!(answer.error().map(|error| error.code.as_str()), expected, "{answer:?}");
        // A requested check reports it in both cases.
        if expected.is_none() {
            std::fs::remove_file(project.file("src/new.md")).unwrap();
        }
        assert_eq!(kernel.assert_invariants(&[]).await.unwrap_err().code.as_str(), "EHALT");
        data(&kernel.call("reconcile", json!({ "path": "src/new.md" })).await);
        data(&write(&kernel, "src/new.md", "three").await);
        kernel.shutdown().await;
    }
}

/// Wherever the invariants are, they are changed by people; and what is not a file is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariants_elsewhere_are_out_of_reach_and_a_pipe_in_their_place_is_refused() {
    let project = shop();
    project.put("rules/what-holds.yml", INVARIANTS);
    let kernel = project.kernel(json!({ "guardian": { "invariants": "rules/what-holds.yml" } })).await;
    assert_eq!(
        code(&write(&kernel, "rules/what-holds.yml", "version: 1\ninvariants: []\n").await),
        "EPOLICY"
    );
    assert_eq!(code(&write(&kernel, "docs/forbidden.md", "x").await), "EPOLICY");
    std::fs::remove_file(project.file("rules/what-holds.yml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(project.file("rules/what-holds.yml")).status();
    assert!(made.unwrap().success());
    assert_eq!(code(&write(&kernel, "docs/fine.md", "x").await), "ECONFIG");
    kernel.shutdown().await;
}
