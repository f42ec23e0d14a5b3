//! The fakes against the suites, and what the kit says of itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use tgp_contract::{
    Actor, Block, CallContext, ChatOptions, Code, Consent, FileSystem, Message, ModelProvider, RelativePath,
    Role, StreamEvent, ToolCall, ToolCaller,
};
use tgp_relay::{Against, Externals, Kit, KitOptions, SuiteOutcome};

use tgp_fs::MemoryFs;
use tgp_relay_fakes::{FakeModel, FakeTools, ScriptedModel};

use crate::support::{PATIENCE, place, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fake_keeps_the_contract() {
    let report = run(Externals::default(), &[], PATIENCE).await;
    let failed: Vec<_> = report.rows.iter().filter(|row| row.result != SuiteOutcome::Passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(report.is_green());
    let suites: BTreeSet<&str> = report.rows.iter().map(|row| row.suite.as_str()).collect();
    assert_eq!(suites, ["fixtures", "t1", "t2", "t3", "t4", "t6"].into());
    // No part took a role that it was not asked to take.
    assert!(report.rows.iter().all(|row| row.external.is_empty() && !row.fake.is_empty()));
}

#[test]
fn the_matrix_has_every_case_and_every_combination() {
    let cases: Vec<&str> = Kit::list().iter().map(|listed| listed.case).collect();
    assert_eq!(cases.len(), cases.iter().collect::<BTreeSet<_>>().len(), "a case has two places");
    let counts = |suite: &str| cases.iter().filter(|case| case.starts_with(suite)).count();
    assert_eq!(
        ["t1.", "t2.", "t3.", "t4.", "t5.", "t6.", "fixtures."].map(counts),
        [6, 6, 5, 5, 4, 6, 4],
        "{cases:?}"
    );
    let rows = |suites: &[&str], externals: Externals, against: Against| {
        let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
        Kit::new(KitOptions { suites, externals, against, ..KitOptions::new("tgp") }).map(|kit| kit.rows())
    };
    let none = Externals::default;
    // Tools, models and runners of agents: 2 times 3 times 2.
    for (suite, expected) in [
        ("t1.loop", 6),
        ("t2.rename-chain", 2),
        ("t3.veto", 12),
        ("t4.parallel", 12),
        ("t5.streamed-line", 2),
    ] {
        assert_eq!(rows(&[suite], none(), Against::Everything).unwrap(), expected, "{suite}");
    }
    assert_eq!(rows(&["t6"], none(), Against::Everything).unwrap(), 36);
    // A program takes its role alone, and suites without that role are left out.
    let chronicle = || Externals { chronicle: Some("true".to_owned()), ..Externals::default() };
    assert_eq!(rows(&[], chronicle(), Against::Fakes).unwrap(), 5 + 6 + 4);
    assert_eq!(rows(&["t3"], chronicle(), Against::Everything).unwrap(), 5 * 4);
    let error = rows(&["t2"], chronicle(), Against::Everything).unwrap_err();
    assert!(error.message.contains("no row"), "{error}");
    let error = rows(&["t9"], none(), Against::Everything).unwrap_err();
    assert!(error.help_of().unwrap().contains("t1, t2, t3, t4, t5, t6, fixtures"), "{error:?}");
}

/// The fixtures are part of the program, because it is run where no repository is; so none may be forgotten.
#[test]
fn every_fixture_is_in_the_program() {
    let source = std::fs::read_to_string(place("src/suites/fixtures.rs")).unwrap();
    let mut count = 0;
    for folder in ["canonical-json", "chronicle-events"] {
        for entry in std::fs::read_dir(place("fixtures").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // What has no canonical form cannot be said to a chronicle; the contract's own tests read that file.
            if folder == "canonical-json" && name == "refused.json" {
                continue;
            }
            assert!(source.contains(&format!("fixtures/{folder}/{name}\"")), "{folder}/{name} is forgotten");
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} fixtures were found");
}

fn request(text: &str) -> ChatOptions {
    ChatOptions {
        model: "test-1".to_owned(),
        system: String::new(),
        messages: vec![Message { role: Role::User, blocks: vec![Block::Text { text: text.to_owned() }] }],
        tools: Vec::new(),
        max_output_tokens: None,
        temperature: None,
        turn: 0,
    }
}

#[tokio::test]
async fn a_fake_model_plays_its_turns_and_then_what_it_is_told() {
    let said = |text: &str| StreamEvent::Text { value: text.to_owned() };
    let end = StreamEvent::End { reason: None };
    let model = FakeModel::with_turns([vec![said("first")], vec![said("second"), end.clone()]]);
    let task = ScriptedModel::task(&[vec![said("told")]]);
    for (text, expected) in [("a", "first"), ("b", "second"), ("c", "ok:c"), (&task, "told")] {
        let events: Vec<StreamEvent> = model.chat(request(text)).await.unwrap().collect().await;
        assert_eq!(events, [said(expected), end.clone()], "{text}");
    }
    let wrong = request(r#"{"relay": [[{"type": "song"}]]}"#);
    assert_eq!(model.chat(wrong).await.err().unwrap().code, Code::Validation);
}

#[tokio::test]
async fn fake_tools_count_what_they_execute_and_nothing_else() {
    let files = Arc::new(MemoryFs::new());
    let tools = FakeTools::new(files.clone()).unwrap();
    // Tool, arguments, whether it is tried only, the code of its failure, and how many have been executed by then.
    for (tool, arguments, dry_run, code, executed) in [
        ("Write", json!({ "path": "a.md" }), false, Some(Code::Validation), 0),
        ("Fly", json!({}), false, Some(Code::NotFound), 0),
        ("Write", json!({ "path": "a.md", "content": "one\none\n" }), true, None, 0),
        ("Write", json!({ "path": "a.md", "content": "one\none\n" }), false, None, 1),
        ("Edit", json!({ "path": "a.md", "search": "one", "replace": "1" }), false, Some(Code::Conflict), 2),
        ("Edit", json!({ "path": "a.md", "search": "two", "replace": "2" }), false, Some(Code::NotFound), 3),
        ("Edit", json!({ "path": "a.md", "search": "one", "replace": "1", "all": true }), false, None, 4),
        ("Bash", json!({ "command": "sed -i s/1/2/ a.md" }), true, None, 4),
        ("Bash", json!({ "command": "sed -i s/1/2/ a.md" }), false, None, 5),
        ("Bash", json!({ "command": "echo hello > b.md" }), false, None, 6),
        ("Bash", json!({ "command": "launch rockets" }), false, None, 7),
        (
            "fs_delete",
            json!({ "path": "b.md", "expected_sha256": "0".repeat(64) }),
            false,
            Some(Code::Conflict),
            8,
        ),
        ("Read", json!({ "path": "../outside" }), false, Some(Code::Security), 9),
    ] {
        let call = ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments: arguments.clone() };
        let context = CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "s".to_owned(),
            consent: Consent::Given,
            dry_run,
            depth: 0,
            token: None,
        };
        let record = tools.call(call, context, Box::pin(std::future::pending())).await;
        assert_eq!(record.result.error().map(|error| error.code), code, "{tool} {arguments}: {record:?}");
        assert_eq!(tools.executed(), executed, "{tool} {arguments}");
    }
    let text = |name: &str| files.read_text(&RelativePath::new(name).unwrap()).unwrap();
    assert_eq!((text("a.md").as_str(), text("b.md").as_str()), ("2\n2\n", "hello\n"));
}
