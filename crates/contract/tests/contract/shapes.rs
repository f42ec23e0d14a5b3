//! Every type that crosses a wire reads and writes exactly what its golden file says.

use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, CallContext, CallRecord, CheckReport, ChronicleEvent, Code, Consent, Decision, Effect,
    Entry, EntryKind, Execution, FileEffect, Finding, GateDecision, GateVerdict, LimitRequest, Plan,
    RelativePath, Root, Severity, SourceLocation, Stage, StopReason, StreamEvent, Target, ToolCall,
    ToolDefinition, ToolError, ToolResult, TypeCheck, Usage,
};

/// Writes `value`, compares it with the golden file, and reads the file back to the same value.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, value: &T) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contract/golden").join(format!("{name}.json"));
    let written = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(written, golden, "the wire shape of {name} changed");
    assert_eq!(&serde_json::from_str::<T>(&golden).unwrap(), value, "{name} does not read back");
}

fn place(line: u32, column: u32) -> SourceLocation {
    SourceLocation { file: "tools/a.ts".to_owned(), line, column }
}

fn context() -> CallContext {
    CallContext {
        actor: Actor::Tool(RelativePath::new("tools/outer.ts").unwrap()),
        session: "s1".to_owned(),
        consent: Consent::Ask,
        dry_run: false,
        depth: 1,
        token: None,
    }
}

fn call() -> ToolCall {
    ToolCall { id: "c1".to_owned(), tool: "read_file".to_owned(), arguments: json!({ "path": "tools/a.ts" }) }
}

fn error() -> ToolError {
    ToolError::new(Code::Runtime, "TypeError: x is not a function").place(&place(3, 7)).help("patch the tool")
}

#[test]
fn tool_definition_keeps_its_shape() {
    let definition: ToolDefinition = serde_json::from_value(json!({
        "name": "read_file",
        "aliases": ["fs.read", "Read"],
        "description": "Read a file.",
        "input_schema": { "type": "object" },
        "effect": "read",
        "path": "fast",
        "dry_run": true
    }))
    .unwrap();
    check("tool_definition", &definition);
}

#[test]
fn calls_and_results_keep_their_shape() {
    check("tool_call", &call());
    check("tool_result_done", &ToolResult::Done(json!({ "b": 1, "a": [2] })));
    check("tool_result_failed", &ToolResult::Failed(error()));
    check("call_context", &context());
    for (name, actor) in
        [("person", Actor::Person("ada".to_owned())), ("agent", Actor::Agent("gpt".to_owned()))]
    {
        check(&format!("actor_{name}"), &actor);
    }
}

#[test]
fn a_result_is_either_done_or_failed() {
    for wrong in [
        json!({ "ok": true, "error": error() }),
        json!({ "ok": false, "data": 1 }),
        json!({ "ok": false }),
        json!({ "data": 1 }),
        json!({ "ok": true, "data": 1, "extra": 2 }),
    ] {
        assert!(serde_json::from_value::<ToolResult>(wrong.clone()).is_err(), "{wrong} was accepted");
    }
}

#[test]
fn records_keep_their_shape() {
    let record = CallRecord {
        serial: 0,
        call: call(),
        tool: Some("read_file".to_owned()),
        effect: Some(Effect::Read),
        context: context(),
        verdicts: vec![GateVerdict {
            stage: Stage::Policy,
            gate: "effect".to_owned(),
            verdict: GateDecision::Allow,
            rule: "default-read".to_owned(),
        }],
        targets: vec![
            Target::File {
                root: Root::Tools,
                path: RelativePath::new("tools/a.ts").unwrap(),
                access: Access::Write,
            },
            Target::Host { host: "example.com".to_owned() },
            Target::Network,
            Target::Statement {
                sql: "DROP TABLE a".to_owned(),
                kinds: vec!["drop".to_owned()],
                reads: false,
            },
            Target::Command { command: "ls".to_owned() },
            Target::UpstreamTool { server: "tickets".to_owned(), tool: "create".to_owned() },
            Target::Secret { name: "API_KEY".to_owned() },
            Target::HostTool { name: "notify".to_owned() },
            Target::Limits(LimitRequest { cpu_ms: Some(5_000), ..LimitRequest::default() }),
        ],
        files: vec![FileEffect {
            root: Root::Tools,
            path: RelativePath::new("tools/a.ts").unwrap(),
            before: None,
            after: Some("00".to_owned()),
            diff: None,
            executable: None,
            event: None,
        }],
        rows_changed: Some(2),
        exit_code: Some(0),
        execution: Execution::Done,
        cancelled: false,
        result: ToolResult::Done(Value::Null),
        started_ms: 1_700_000_000_000,
        duration_us: 42,
    };
    check("call_record", &record);
}

#[test]
fn stream_events_keep_their_shape() {
    let events = vec![
        StreamEvent::Text { value: "hi".to_owned() },
        StreamEvent::ToolCall {
            tool_name: "Echo".to_owned(),
            call_id: "1".to_owned(),
            arguments: json!({ "text": "hi" }),
        },
        StreamEvent::ToolResult { call_id: "1".to_owned(), result: json!({ "ok": true, "data": 1 }) },
        StreamEvent::Usage(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() }),
        StreamEvent::Error { error: error() },
        StreamEvent::End { reason: None },
        StreamEvent::End { reason: Some(StopReason::Length) },
        StreamEvent::Opaque { provider: "anthropic".to_owned(), value: json!({ "signature": "x" }) },
    ];
    check("stream_events", &events);
}

#[test]
fn chronicle_events_and_plans_keep_their_shape() {
    let event: ChronicleEvent = serde_json::from_value(json!({
        "type": "RECONCILIATION",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "actor": { "agent": "guardian", "id": "reconciler" },
        "filePath": "src/a.ts",
        "diffRef": "abc123"
    }))
    .unwrap();
    check("chronicle_event", &event);
    let plan: Plan = serde_json::from_value(json!({
        "id": "plan-1",
        "steps": [{ "type": "DELETE_FILE", "filePath": "src/a.ts", "why": "unused" }]
    }))
    .unwrap();
    check("plan", &plan);
    check("decision_approve", &Decision::Approve { justification: "fine".to_owned() });
    check("decision_deny", &Decision::Deny { reason: "it is used".to_owned() });
}

#[test]
fn event_id_is_the_hash_of_the_event_without_it() {
    let mut event: ChronicleEvent = serde_json::from_value(json!({
        "type": "T", "timestamp": "t", "actor": { "agent": "a", "id": "i" }, "n": 1
    }))
    .unwrap();
    let id = event.compute_id().unwrap();
    // printf '%s' '{"actor":{"agent":"a","id":"i"},"n":1,"timestamp":"t","type":"T"}' | sha256sum
    assert_eq!(
        id,
        tgp_contract::canonical::sha256_hex(
            br#"{"actor":{"agent":"a","id":"i"},"n":1,"timestamp":"t","type":"T"}"#
        )
    );
    event.event_id = Some(id.clone());
    assert_eq!(event.compute_id().unwrap(), id, "the id is not part of what it names");
}

#[test]
fn check_reports_and_listings_keep_their_shape() {
    let finding = |severity, line| Finding {
        place: place(line, 1),
        end: place(line, 4),
        rule: "no-any".to_owned(),
        severity,
        message: "Type 'any' is forbidden".to_owned(),
        reason: "it hides mistakes".to_owned(),
        fix: "write the type".to_owned(),
    };
    let report = CheckReport::new(
        vec![finding(Severity::Warning, 9), finding(Severity::Error, 2), finding(Severity::Error, 2)],
        TypeCheck::Skipped,
    );
    assert!(!report.valid);
    assert_eq!(report.errors.len(), 1, "equal findings count once");
    check("check_report", &report);
    check("entry", &Entry { path: RelativePath::new("tools/a.ts").unwrap(), kind: EntryKind::File, size: 7 });
}
