//! From the text of a query to its outputs: everything between is real except what is outside a run.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_aql::{QueryPlan, RunReport};
use tgp_contract::Code;

use crate::execute_world::{Fake, options, refuse, reply, said, watch};
use crate::support::{compiled, rendered};

fn plans(text: &str) -> Vec<Arc<QueryPlan>> {
    match compiled(text) {
        Ok(compiled) => compiled.queries,
        Err(problems) => panic!("{}", rendered(&problems)),
    }
}

async fn ran(fake: &Arc<Fake>, text: &str, inputs: Value) -> RunReport {
    let inputs = inputs.as_object().unwrap().clone();
    let plans = plans(text);
    watch(fake, plans.last().unwrap(), tgp_aql::RunOptions { inputs, ..options() }).await.0
}

#[tokio::test(start_paused = true)]
async fn t4_the_smallest_query_compiles_and_executes() {
    let fake = Arc::new(Fake::echo());
    let text = r#"query X { step: agent(model: "t"){prompt:"hi"} final: merge(step) }"#;
    let report = ran(&fake, text, json!({})).await;
    assert_eq!((report.outputs, report.error), (json!({ "final": "done: hi" }), None));
    assert_eq!(fake.tasks.lock().unwrap()[0].model.as_deref(), Some("t"));
}

#[tokio::test(start_paused = true)]
async fn t4_two_delayed_steps_of_a_source_run_at_once() {
    let fake = Arc::new(Fake::new(|_| reply(json!("x")).after(1_000)));
    let text = r#"query Two {
        a: tool(fs_read) { path: "a" }
        b: tool(fs_read) { path: "b" }
        both: merge(a, b)
    }"#;
    let report = ran(&fake, text, json!({})).await;
    assert_eq!((report.outputs, report.duration_ms), (json!({ "both": { "a": "x", "b": "x" } }), 1_000));
    assert_eq!(fake.most_running(), 2);
}

#[test]
fn t4_what_is_wrong_is_told_before_anything_runs() {
    let cases = [
        (r#"query X { a: tool(fs_read) { path: "a", colour: "red" } }"#, "colour"),
        (r#"type T { file: String } query X { a: agent() as T { prompt: "x" } b: merge(a.fil) }"#, "fil"),
        (r#"query X { a: merge(b) b: merge(a) }"#, "a"),
    ];
    for (text, about) in cases {
        let problems = compiled(text).map(|_| ()).expect_err("it is wrong");
        assert_eq!(problems.to_error().code, Code::Validation);
        assert!(rendered(&problems).contains(about), "{}", rendered(&problems));
    }
}

const REVIEW: &str = r#"
type Finding {
  file: String
  severity: "low" | "high"
  note: String?
}

query Judge($file: String, $strict: Bool = false) {
  content: tool(fs_read, retry: 1) as { text: String } { path: $file }
  finding: agent(tools: [fs_read], system: "strict: {{$strict}}") as Finding { prompt: "Judge {{$file}}: {{content.text}}" }
  return { finding: finding, note: finding.note ?? "none" }
}

query Review($files: [String], $limit: Int = 2) budget(calls: 40, parallel: 3) {
  judged: map(file in $files, concurrency: 2) {
    one: query(Judge) { file: file }
    size: exec("tools/math/fib.ts", on_error: skip) { n: length(file) }
    return { note: one.note, high: one.finding.severity == "high", size: size ?? 0 }
  }
  importers: graph("MATCH (f:File) WHERE f.lines > $limit RETURN f.path AS path", commit: "HEAD") { limit: $limit }
  many: when(length($files) > $limit) {
    warned: agent() { prompt: "Too many: {{length($files)}}" }
    return warned
  } else {
    calm: merge(importers)
    return "few: {{length(calm)}}"
  }
  rows: sql("SELECT :n", after: many) { n: $limit }
  all: merge(judged, many, rows: rows.rows)
  return all
}
"#;

fn reviewers() -> Fake {
    let fake = Fake::new(|call| match call.tool.as_str() {
        "fs_read" if call.arguments["path"] == "flaky.ts" && call.id.ends_with("#1") => {
            refuse(Code::Internal)
        }
        "fs_read" => {
            reply(json!({ "text": format!("text of {}", call.arguments["path"].as_str().unwrap()) }))
        }
        "exec_tool" if call.arguments["args"]["n"] == 8 => refuse(Code::Runtime),
        "exec_tool" => reply(json!({ "result": call.arguments["args"]["n"], "logs": [] })),
        "graph_query" => reply(json!({ "results": [{ "path": "x.ts" }], "columns": ["path"] })),
        _ => reply(json!({ "rows": [[2]], "columns": ["n"], "changed": 0, "truncated": false })),
    });
    fake.with_agent(|task, _| {
        Ok(said(match task.prompt.as_str() {
            "Judge a.ts: text of a.ts" => r#"{ "file": "a.ts", "severity": "high", "note": "bad" }"#,
            prompt if prompt.starts_with("Judge") => {
                "```json\n{ \"file\": \"f\", \"severity\": \"low\" }\n```"
            }
            _ => "oh dear",
        }))
    })
}

#[tokio::test(start_paused = true)]
async fn a_query_of_every_kind_of_step_runs_from_its_text() {
    let fake = Arc::new(reviewers());
    let report = ran(&fake, REVIEW, json!({ "files": ["a.ts", "flaky.ts"] })).await;
    assert_eq!(report.error, None);
    assert_eq!(
        report.outputs,
        json!({
            "judged": [{ "note": "bad", "high": true, "size": 4 }, { "note": "none", "high": false, "size": 0 }],
            "many": "few: 1",
            "rows": [[2]],
        })
    );
    let report = ran(&fake, REVIEW, json!({ "files": ["a.ts"], "limit": 0 })).await;
    assert_eq!(report.outputs["many"], "oh dear");
    let wrong = plans(REVIEW);
    let inputs = json!({ "files": ["a.ts", 3] }).as_object().unwrap().clone();
    let (sender, _receiver) = tokio::sync::mpsc::channel(1);
    let options = tgp_aql::RunOptions { inputs, ..options() };
    let ports = crate::execute_world::ports(&fake);
    let error =
        tgp_aql::run(&wrong[1], options, &ports, sender, crate::execute_world::never()).await.unwrap_err();
    assert_eq!((error.code, error.details["field"].as_str()), (Code::Validation, Some("files[1]")));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_was_killed_at_any_line_goes_on_to_the_same_outputs() {
    let files = json!({ "files": ["a.ts", "flaky.ts", "c.ts"] });
    let fake = Arc::new(reviewers());
    let whole = ran(&fake, REVIEW, files.clone()).await;
    let (lines, plan) = (fake.lines(), plans(REVIEW).pop().unwrap());
    assert!(lines.len() > 20);
    for kept in 0..=lines.len() {
        let fake = Arc::new(reviewers());
        // What had begun to take effect was undone with the process.
        *fake.usual_fate.lock().unwrap() = tgp_aql::EarlierOutcome::NotCarriedOut;
        let inputs = files.as_object().unwrap().clone();
        let options = tgp_aql::RunOptions { inputs, history: lines[..kept].to_vec(), ..options() };
        let (report, _) = watch(&fake, &plan, options).await;
        assert_eq!((report.error, report.outputs), (None, whole.outputs.clone()), "after {kept} lines");
    }
}
