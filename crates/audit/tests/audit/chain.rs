//! What an entry holds, and how entries are found again.

use serde_json::{Value, json};
use tgp_audit::{AuditFilter, AuditReader, ExportFormat, VERDICTS};
use tgp_contract::{
    Actor, CallRecord, Code, Effect, Execution, Recorder, RelativePath, Stage, Target, canonical,
};

use crate::support::{Place, bodies, failed, record, runtime, verdict, with_arguments};

#[test]
fn an_entry_joins_request_verdicts_and_outcome() {
    let mut call = record("call-7");
    call.verdicts.push(verdict(Stage::Policy, "policy", "ask", "ask-writes"));
    call.verdicts.push(verdict(Stage::Approval, "approval", "approved", "somebody"));
    call.rows_changed = Some(3);
    call.exit_code = Some(-1);
    let place = Place::with(vec![call]);
    let export = place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap();
    let mut body = bodies(&export).remove(0);
    let head = place.head();
    assert_eq!(head.sequence, 1);
    let expected = json!({
        "version": 2, "chain": head.chain, "sequence": 1, "previous": "0".repeat(64), "kind": "call",
        "time": 1_800_000_000_000_u64, "session": "session-1", "callId": "call-7", "tool": "fs_write",
        "alias": "fs.write", "effect": "write", "actor": {"kind": "agent", "id": "agent-1"},
        "consent": "ask", "depth": 0, "dryRun": false, "verdict": "approved", "execution": "done",
        "arguments": {"path": "src/a.ts", "content": "export const a = 1;"},
        "targets": [{"kind": "command", "command": "ls"}],
        "verdicts": [
            {"stage": "policy", "gate": "policy", "verdict": "allow", "rule": "default-read"},
            {"stage": "policy", "gate": "policy", "verdict": "ask", "rule": "ask-writes"},
            {"stage": "approval", "gate": "approval", "verdict": "approved", "rule": "somebody"},
        ],
        "outcome": {
            "ok": true, "errorCode": null, "message": null, "rowsChanged": 3, "exitCode": -1, "durationUs": 1234,
            "files": [{"root": "project", "path": "src/a.ts", "before": null, "after": "ab".repeat(32)}],
        },
    });
    assert_eq!(body, expected);
    // Any program can verify an export with a JSON parser and a hash function.
    let line = String::from_utf8(export).unwrap();
    let text = line.strip_prefix("{\"body\":").unwrap();
    let text = text.strip_suffix(&format!(",\"hash\":\"{}\"}}\n", head.hash)).unwrap();
    assert_eq!(canonical::sha256_hex(text.as_bytes()), head.hash);
    assert_eq!(canonical::to_string(&body.take()).unwrap(), text);
}

#[test]
fn the_verdict_is_one_word() {
    let place = Place::new();
    let audit = place.open().unwrap();
    let with = |words: &[&str]| {
        let mut call = record("v");
        call.verdicts = words.iter().map(|word| verdict(Stage::Policy, "p", word, "r")).collect();
        call
    };
    runtime().block_on(async {
        audit.record(with(&["allow", "allow"])).await.unwrap();
        audit.record(with(&["ask", "approved"])).await.unwrap();
        audit.record(failed(with(&["allow", "deny"]), Code::Policy, "no")).await.unwrap();
        audit.record(failed(with(&["ask", "refused"]), Code::Approval, "no")).await.unwrap();
        audit.record(failed(with(&[]), Code::Validation, "no")).await.unwrap();
        audit.record_cancelled(failed(with(&["allow"]), Code::Runtime, "gone"));
        // A tool that fails was allowed to.
        audit.record(failed(with(&["allow"]), Code::Runtime, "boom")).await.unwrap();
        audit.record(with(&[])).await.unwrap();
        audit.close().await.unwrap();
        assert_eq!(audit.record(record("late")).await.unwrap_err().code, Code::Internal);
        assert_eq!(audit.flush().await.unwrap_err().code, Code::Internal);
    });
    let found: Vec<String> = bodies(&place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap())
        .iter()
        .map(|body| body["verdict"].as_str().unwrap().to_owned())
        .collect();
    let expected = "allowed approved denied refused invalid cancelled allowed allowed";
    assert_eq!(found.join(" "), expected);
    assert!(found.iter().all(|word| VERDICTS.contains(&word.as_str())));
    let ran: Vec<bool> =
        place.reader().history("session-1", 100).unwrap().iter().map(|call| call.ran).collect();
    assert_eq!(ran, [true, true, false, false, false, true, true, true]);
}

#[test]
fn entries_are_found_by_session_tool_verdict_and_time() {
    let mut records = Vec::new();
    for number in 0..60_u64 {
        let mut call = record(&format!("{number}"));
        call.context.session = format!("session-{}", number % 3);
        call.tool = Some(if number % 2 == 0 { "fs_read" } else { "shell_exec" }.to_owned());
        call.started_ms = 1000 + number;
        if number % 5 == 0 {
            call.verdicts = vec![verdict(Stage::State, "tdd", "deny", "red-first")];
            call = failed(call, Code::State, "not now");
        }
        records.push(call);
    }
    let place = Place::with(records);
    let reader = place.reader();
    let text = |text: &str| Some(text.to_owned());
    let table: [(AuditFilter, &dyn Fn(u64) -> bool); 6] = [
        (AuditFilter::default(), &|_| true),
        (AuditFilter { session: text("session-1"), ..AuditFilter::default() }, &|number| number % 3 == 1),
        (AuditFilter { tool: text("fs_read"), ..AuditFilter::default() }, &|number| number % 2 == 0),
        (AuditFilter { verdict: text("denied"), ..AuditFilter::default() }, &|number| number % 5 == 0),
        (AuditFilter { since_ms: Some(1010), until_ms: Some(1020), ..AuditFilter::default() }, &|number| {
            (10..20).contains(&number)
        }),
        (
            AuditFilter {
                session: text("session-0"),
                tool: text("shell_exec"),
                verdict: text("allowed"),
                since_ms: Some(1005),
                until_ms: None,
                after: None,
            },
            &|number| number % 3 == 0 && number % 2 == 1 && number % 5 != 0 && number >= 5,
        ),
    ];
    for (filter, admits) in table {
        let expected: Vec<u64> = (0..60).filter(|number| admits(*number)).collect();
        let numbers = |bodies: Vec<Value>| -> Vec<u64> {
            bodies.iter().map(|body| body["callId"].as_str().unwrap().parse().unwrap()).collect()
        };
        let exported = bodies(&place.export(&filter, ExportFormat::Jsonl).unwrap());
        assert_eq!(numbers(exported), expected, "{filter:?}");
        let tail = reader.tail(&filter, 4).unwrap();
        assert_eq!(
            numbers(tail.into_iter().map(|entry| entry.body).collect()),
            expected[expected.len() - 4..],
            "{filter:?}"
        );
    }
}

/// A session's hash was not found any more once a thousand others had ended.
#[test]
fn an_entry_is_found_however_many_came_after_it() {
    let records = (0..1_100).map(|number| record(&format!("{}", number % 1_099))).collect();
    let place = Place::with(records);
    let reader = place.reader();
    let newest = |id: &str| {
        let found = reader.newest(&AuditFilter::default(), &|body| body["callId"] == id).unwrap();
        found.map(|entry| entry.sequence)
    };
    assert_eq!([newest("5"), newest("0"), newest("none")], [Some(6), Some(1_100), None]);
}

#[test]
fn a_table_for_people_holds_no_formula() {
    let mut call = with_arguments(json!("=HYPERLINK(\"http://evil\",\"x\")"));
    call.context.session = "+1+1".to_owned();
    call.context.actor = Actor::Person("@SUM(A1)".to_owned());
    call.exit_code = Some(-1);
    let call = failed(call, Code::Runtime, "-2+3\nsecond, \"line\"");
    let place = Place::with(vec![call]);
    let table = place.export(&AuditFilter::default(), ExportFormat::Csv).unwrap();
    let mut reader = csv::Reader::from_reader(table.as_slice());
    let names = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| row.get(names.iter().position(|own| own == name).unwrap()).unwrap();
    assert_eq!(cell("arguments"), "'=HYPERLINK(\"http://evil\",\"x\")");
    assert_eq!(cell("session"), "'+1+1");
    assert_eq!(cell("actor"), "'@SUM(A1)");
    assert_eq!(cell("message"), "'-2+3\nsecond, \"line\"");
    assert_eq!(cell("exit_code"), "-1", "a number of ours is not a formula");
    assert_eq!(cell("time"), "2027-01-15T08:00:00Z");
    assert_eq!(cell("files"), "project:src/a.ts");
    assert_eq!(cell("rules"), "policy:allow:default-read");
    assert_eq!(cell("hash"), place.head().hash);
}

#[test]
fn whatever_a_record_holds_something_of_it_is_kept() {
    let mut deep = json!("bottom");
    for _ in 0..2000 {
        deep = Value::Array(vec![deep]);
    }
    let mut many_files = record("many files");
    let file = many_files.files[0].clone();
    many_files.files = (0..3000)
        .map(|number| {
            let path = RelativePath::new(&format!("src/{}/{number}.ts", "d".repeat(200))).unwrap();
            tgp_contract::FileEffect { path, ..file.clone() }
        })
        .collect();
    let mut huge_words = record(&"i".repeat(1 << 20));
    huge_words.call.tool = "t".repeat(1 << 20);
    huge_words.tool = None;
    huge_words.context.session = "s".repeat(1 << 20);
    huge_words.context.actor = Actor::Agent("a".repeat(1 << 20));
    huge_words.verdicts =
        (0..5000).map(|_| verdict(Stage::Policy, "g", "allow", &"r".repeat(5000))).collect();
    huge_words.targets = (0..5000).map(|_| Target::Host { host: "h".repeat(300) }).collect();
    let mut odd_numbers = with_arguments(json!({
        "big": u64::MAX, "negative": i64::MIN, "safe": 9_007_199_254_740_991_u64, "next": 9_007_199_254_740_992_u64,
        "tiny": 5e-324, "huge": 1e308, "zero": -0.0, "half": 0.5,
    }));
    odd_numbers.started_ms = u64::MAX;
    odd_numbers.duration_us = u64::MAX;
    odd_numbers.rows_changed = Some(u64::MAX);
    let place = Place::with(vec![
        with_arguments(deep),
        with_arguments(json!({"content": "é".repeat(100_000), "note": "short"})),
        with_arguments(json!((0..100_000).collect::<Vec<u32>>())),
        many_files,
        huge_words,
        odd_numbers,
        with_arguments(json!({"\u{0}\u{1f600}\u{2028}": "\u{0}\\\"\u{7f}\u{2029}"})),
    ]);
    place.assert_intact(7);
    let export = place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap();
    assert!(export.split(|byte| *byte == b'\n').all(|line| line.len() < (64 << 10) + 200));
    let bodies = bodies(&export);
    let cut = bodies[1]["arguments"]["content"].as_str().unwrap();
    let hash = canonical::sha256_hex("é".repeat(100_000).as_bytes());
    assert_eq!(cut, format!("{}… [cut: 200000 bytes, sha256 {hash}]", "é".repeat(1024)));
    assert_eq!(bodies[1]["arguments"]["note"], "short");
    let numbers = canonical::to_string(&json!((0..100_000).collect::<Vec<u32>>())).unwrap();
    assert_eq!(
        bodies[2]["arguments"],
        json!({"omitted": {"bytes": numbers.len(), "count": 100_000,
               "sha256": canonical::sha256_hex(numbers.as_bytes())}})
    );
    assert!(bodies[3]["outcome"]["files"].as_array().unwrap().len() <= 200);
    assert!(bodies[3]["outcome"]["filesOmitted"]["omitted"]["sha256"].is_string());
    assert_eq!(bodies[3]["outcome"]["ok"], true);
    assert_eq!(bodies[4]["verdict"], "allowed");
    assert_eq!(bodies[5]["arguments"]["big"], "18446744073709551615");
    assert_eq!(bodies[5]["arguments"]["negative"], "-9223372036854775808");
    assert_eq!(bodies[5]["arguments"]["safe"], 9_007_199_254_740_991_u64);
    assert_eq!(bodies[5]["arguments"]["next"], "9007199254740992");
    assert_eq!(bodies[5]["outcome"]["rowsChanged"], "18446744073709551615");
    // The session was cut for its entry, and is found under the name that its caller knows.
    assert_eq!(place.reader().history(&"s".repeat(1 << 20), 10).unwrap().len(), 1);
    assert_eq!(
        place
            .export(&AuditFilter::default(), ExportFormat::Csv)
            .unwrap()
            .iter()
            .filter(|b| **b == b'\n')
            .count(),
        8
    );
}

#[test]
fn a_sessions_history_is_told_in_order() {
    let mut sql = record("sql");
    sql.tool = Some("exec_sql".to_owned());
    sql.effect = Some(Effect::Execute);
    let targets = vec![Target::Statement {
        sql: "SELECT * FROM users".to_owned(),
        kinds: vec!["select".to_owned()],
        reads: false,
    }];
    sql.targets = targets.clone();
    let mut other = record("other");
    other.context.session = "session-2".to_owned();
    let unknown = failed(
        CallRecord { tool: None, effect: None, verdicts: Vec::new(), ..record("unknown") },
        Code::NotFound,
        "there is no tool",
    );
    let place = Place::with(vec![record("first"), sql, other, unknown]);
    let reader: AuditReader = place.reader();
    let history = reader.history("session-1", 10).unwrap();
    let tools: Vec<&str> = history.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["fs_write", "exec_sql", "fs.write"]);
    assert_eq!(history[1].targets, targets);
    assert_eq!(history[1].effect, Some(Effect::Execute));
    assert_eq!(history[0].arguments["path"], "src/a.ts");
    assert_eq!((history[2].effect, history[2].ran), (None, false));
    assert_eq!(reader.history("session-1", 1).unwrap()[0].tool, "fs.write", "the newest are kept");
    assert_eq!(reader.history("session-3", 10).unwrap(), []);
}

#[test]
fn a_session_is_found_with_those_below_it() {
    let of = |session: &str, id: &str| {
        let mut record = record(id);
        record.context.session = session.to_owned();
        record
    };
    let sessions = ["token/a", "token/a/x", "token/ab", "token/a0", "token/a/y/z", "cli", "clip", "cli/b"];
    let place = Place::with(sessions.iter().map(|session| of(session, session)).collect());
    let reader = place.reader();
    let seen = |session: &str, since_ms: Option<u64>, limit: usize| {
        let mut count = 0;
        let complete = reader.each_call(session, since_ms, 0, limit, &mut |_, _| count += 1).unwrap();
        (count, complete)
    };
    assert_eq!(seen("token/a", None, 10), (3, true));
    assert_eq!(seen("cli", None, 10), (2, true));
    assert_eq!(seen("token/a", None, 3), (3, true));
    assert_eq!(
        seen("token/a", None, 2),
        (2, false),
        "what is beyond the limit is not passed over in silence"
    );
    assert_eq!(seen("token/a", Some(u64::MAX), 10), (0, true));
    assert_eq!(reader.history("token/a", 10).unwrap().len(), 3);
    let mut numbers = Vec::new();
    reader.each_call("token/a", None, 1, 10, &mut |number, _| numbers.push(number)).unwrap();
    assert_eq!(numbers, [2, 5]);
}

#[test]
fn a_process_knows_which_entries_are_its_own() {
    let place = Place::new();
    runtime().block_on(async {
        let (one, two) = (place.open().unwrap(), place.open().unwrap());
        for (audit, id) in [(&one, "1"), (&two, "2"), (&two, "3"), (&one, "4")] {
            audit.record(record(id)).await.unwrap();
            audit.settle().await.unwrap();
        }
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|number| one.is_own(number)),
            [false, true, false, false, true, false]
        );
        assert_eq!([1, 2, 3, 4].map(|number| two.is_own(number)), [false, true, true, false]);
    });
}

#[test]
fn a_past_call_says_what_its_entry_does_not_hold() {
    let place = Place::with(vec![
        with_arguments(json!({ "sql": "SELECT 1" })),
        with_arguments(json!({ "sql": format!("SELECT 1 /*{}*/ FROM users", "x".repeat(5000)) })),
        with_arguments(json!({ "password": "hunter2", "sql": "SELECT 1" })),
        with_arguments(json!({ "many": vec!["x".repeat(4000); 30] })),
    ]);
    let mut whole = Vec::new();
    place
        .reader()
        .each_call("session-1", None, 0, 10, &mut |_, call| {
            assert!(call.actor.is_some());
            whole.push(call.arguments_whole);
        })
        .unwrap();
    assert_eq!(whole, [true, false, false, false]);
}

/// How far each call went has its own field, whatever the gates decided; and calls are counted by it.
#[test]
fn an_entry_says_how_far_the_execution_went() {
    let all = [Execution::NotStarted, Execution::RolledBack, Execution::Done, Execution::Unknown];
    let with = |execution: Execution| CallRecord { execution, ..record(execution.as_str()) };
    let place = Place::with(all.into_iter().map(with).collect());
    let export = place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap();
    let found: Vec<Value> = bodies(&export).iter().map(|body| body["execution"].clone()).collect();
    assert_eq!(found, ["not_started", "rolled_back", "done", "unknown"]);
    let ran: Vec<bool> =
        place.reader().history("session-1", 10).unwrap().iter().map(|call| call.ran).collect();
    assert_eq!(ran, [false, true, true, true]);
}
