//! Clients: who they are to rules and records, whatever they say about themselves.

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::agent::{ModelChoice, SessionRequest, StopSignal};
use tgp::contract::{Actor, CallContext, CapabilityToken, ClientEntry, Consent, ToolResult};
use tgp::gates::{Caveats, attenuate_token};
use tgp::project::ClientClaim;
use tokio::sync::mpsc;

use crate::router::{call, context};
use crate::support::{Project, code};

fn claim(token: Option<&CapabilityToken>, actor: Option<&str>, session: Option<&str>) -> ClientClaim {
    ClientClaim {
        token: token.cloned(),
        actor: actor.map(str::to_owned),
        session: session.map(str::to_owned),
    }
}

fn client(
    kernel: &Kernel,
    entry: ClientEntry,
    token: Option<&CapabilityToken>,
    session: Option<&str>,
) -> CallContext {
    kernel.client_context(entry, claim(token, Some("a"), session), Consent::Given).unwrap()
}

async fn token(kernel: &Kernel, tools: &[&str]) -> CapabilityToken {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    kernel.mint_token(&Caveats { tools: Some(tools), ..Caveats::default() }).await.unwrap()
}

/// A session of an agent that has read a file; its id.
async fn agent_session(kernel: &Kernel, project: &Project) -> String {
    project.put("secret.md", "canary-of-the-session");
    let turns = json!([
        [{ "type": "tool_call", "toolName": "fs_read", "callId": "c", "arguments": { "path": "secret.md" } }],
        [{ "type": "text", "value": "done" }]
    ]);
    project.put("model.json", &turns.to_string());
    let request = SessionRequest {
        model: ModelChoice { provider: Some("script:model.json".to_owned()), ..ModelChoice::default() },
        consent: Consent::Given,
        ..SessionRequest::new("read")
    };
    let (sender, mut events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let drained = async { while events.recv().await.is_some() {} };
    tokio::join!(kernel.run_session(request, sender, stop), drained).0.unwrap().session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_gives_no_client_the_results_of_another_session() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let session = agent_session(&kernel, &project).await;
    let wide = kernel.mint_token(&Caveats::default()).await.unwrap();
    let caveats = Caveats { session: Some(session.clone()), ..Caveats::default() };
    let attenuated = attenuate_token(&wide, &caveats).unwrap();
    let recall = async |context: CallContext| -> ToolResult {
        kernel.call_with(call("recall", json!({ "id": "r1.1" })), context).await
    };
    // The caller's word for its session, with no token, a wide one, and one that it has narrowed to the session itself.
    for token in [None, Some(wide.clone()), Some(attenuated.clone())] {
        let forged = CallContext { session: session.clone(), token, ..context(Consent::Given) };
        let answer = recall(forged).await;
        assert_eq!(code(&answer), "EPERMISSION", "{answer:?}");
        assert!(!format!("{answer:?}").contains("canary"));
    }
    // A client cannot even name it, nor anything that looks like it, however it came.
    let strange = format!("{session}-2");
    for entry in [ClientEntry::Socket, ClientEntry::Command] {
        for name in [session.as_str(), "20261115-220915-dfc9", strange.as_str()] {
            for token in [None, Some(&wide)] {
                let refused = kernel.client_context(entry, claim(token, None, Some(name)), Consent::Given);
                assert_eq!(refused.unwrap_err().code.as_str(), "EPERMISSION", "{entry:?} {name}");
            }
        }
        // A token that is made for the session names it, and is not a client's.
        let refused = kernel.client_context(entry, claim(Some(&attenuated), None, None), Consent::Given);
        assert_eq!(refused.unwrap_err().code.as_str(), "EPERMISSION");
        let own = client(&kernel, entry, Some(&wide), Some("mine"));
        assert_eq!(code(&recall(own).await), "EPERMISSION");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_named_by_its_token_and_not_by_its_word() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let wide = token(&kernel, &["*"]).await;
    let family = kernel.check_token(&wide).unwrap().family_id().to_owned();
    let narrower =
        attenuate_token(&wide, &Caveats { note: Some("n".to_owned()), ..Caveats::default() }).unwrap();
    for token in [&wide, &narrower] {
        for (entry, kind) in [(ClientEntry::Socket, "socket"), (ClientEntry::Command, "token")] {
            let named = client(&kernel, entry, Some(token), Some("agent"));
            assert_eq!(named.actor, Actor::Agent(format!("{kind}/{family}/a")));
            assert_eq!(named.session, format!("token/{family}/agent"));
        }
    }
    let local = client(&kernel, ClientEntry::Command, None, None);
    assert_eq!((local.actor, local.session.as_str()), (Actor::Agent("cli/a".to_owned()), "cli"));
    for bad in ["", "a\nb", "a\u{1b}[2J", &"x".repeat(201)] {
        for (actor, session) in [(Some(bad), None), (None, Some(bad))] {
            let refused =
                kernel.client_context(ClientEntry::Command, claim(None, actor, session), Consent::Ask);
            assert_eq!(refused.unwrap_err().code.as_str(), "EVALIDATION", "{bad:?}");
        }
    }
    kernel.shutdown().await;
}

const SEQUENCES: &str = "version: 1\nrules:\n  - {id: all, effect: allow, tools: '*'}\nsequences:\n  - {id: few, at_most: 2, of: {tools: [fs_exists]}, reason: enough}\n  - {id: no-leak, after: {tool: exec_sql, match: users}, deny: fetch}\n";

async fn exists(kernel: &Kernel, context: CallContext) -> bool {
    let answer = kernel.call_with(call("fs_exists", json!({ "path": "x" })), context).await;
    assert!(answer.is_ok() || code(&answer) == "EPOLICY", "{answer:?}");
    answer.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_a_new_name_nor_an_attenuated_token_gives_a_new_past() {
    let project = Project::new();
    project.put("tgp.policy.yaml", SEQUENCES);
    let kernel = project.boot().await.unwrap();
    let wide = token(&kernel, &["*"]).await;
    let socket =
        |token: &CapabilityToken, name: &str| client(&kernel, ClientEntry::Socket, Some(token), Some(name));
    assert!(exists(&kernel, socket(&wide, "one")).await);
    assert!(exists(&kernel, socket(&wide, "two")).await);
    for name in ["one", "two", "fresh1", "fresh2"] {
        assert!(!exists(&kernel, socket(&wide, name)).await, "`{name}` has a past of its own");
    }
    let mut narrower = wide.clone();
    for note in 0..3 {
        let caveats = Caveats { note: Some(format!("n{note}")), ..Caveats::default() };
        narrower = attenuate_token(&narrower, &caveats).unwrap();
        assert!(
            !exists(&kernel, socket(&narrower, "fresh")).await,
            "an attenuated token has a past of its own"
        );
        let command = client(&kernel, ClientEntry::Command, Some(&narrower), None);
        assert!(!exists(&kernel, command).await, "the command line gives the token a new past");
    }
    // Another family is another client.
    let other = token(&kernel, &["*"]).await;
    assert!(exists(&kernel, socket(&other, "one")).await);
    kernel.shutdown().await;
    // A restart forgets nothing of it.
    let kernel = project.boot().await.unwrap();
    let again = client(&kernel, ClientEntry::Socket, Some(&narrower), Some("after-restart"));
    assert!(!exists(&kernel, again).await, "a restart forgot the family's past");
    let other = client(&kernel, ClientEntry::Command, Some(&other), None);
    assert!(exists(&kernel, other.clone()).await && !exists(&kernel, other).await);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_the_command_line_share_one_past_across_processes() {
    let project = Project::new();
    project.put("tgp.policy.yaml", SEQUENCES);
    for (name, expected) in [(None, true), (Some("x"), true), (Some("y"), false), (None, false)] {
        let kernel = project.boot().await.unwrap();
        let context = client(&kernel, ClientEntry::Command, None, name);
        assert_eq!(exists(&kernel, context).await, expected, "{name:?}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kernels_that_run_at_the_same_time_count_together() {
    let project = Project::new();
    project.put("tgp.policy.yaml", SEQUENCES);
    let (one, two) = (project.boot().await.unwrap(), project.boot().await.unwrap());
    let shared = token(&one, &["*"]).await;
    let by = |kernel: &Kernel| client(kernel, ClientEntry::Socket, Some(&shared), None);
    // Both have read the past of the family before the other has made its call.
    assert!(exists(&one, by(&one)).await && exists(&two, by(&two)).await);
    assert!(!exists(&one, by(&one)).await, "the first does not know of the second's call");
    assert!(!exists(&two, by(&two)).await);
    // Own calls are counted once.
    let other = token(&one, &["*"]).await;
    let by = |kernel: &Kernel| client(kernel, ClientEntry::Socket, Some(&other), None);
    assert!(exists(&one, by(&one)).await && exists(&one, by(&one)).await && !exists(&one, by(&one)).await);
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_too_long_for_the_record_is_not_forgotten_by_a_restart() {
    let project = Project::new();
    project.put("tgp.policy.yaml", SEQUENCES);
    let fetch = |url: &str| call("fetch", json!({ "url": url }));
    let kernel = project.boot().await.unwrap();
    let context = client(&kernel, ClientEntry::Command, None, None);
    // The audit keeps the beginning of a long text, and the table is at its end.
    let sql = format!("SELECT 1 /*{}*/ AS users", " ".repeat(8_000));
    let ran = kernel.call_with(call("exec_sql", json!({ "sql": sql })), context).await;
    assert!(ran.is_ok(), "{ran:?}");
    kernel.shutdown().await;
    let kernel = project.boot().await.unwrap();
    let context = client(&kernel, ClientEntry::Command, None, Some("other"));
    let answer = kernel.call_with(fetch("http://127.0.0.1:9/"), context).await;
    assert_eq!(code(&answer), "EPOLICY", "{answer:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_argument_is_not_repeated_whole_in_the_error() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let long = "x".repeat(1 << 20);
    let many = vec![json!({}); 10_000];
    for (tool, arguments) in [
        ("fs_read", json!({ "path": many.clone() })),
        ("fs_read", json!({ "path": 1, "more": long.clone() })),
        ("fs_read", json!({ long.clone(): 1 })),
        ("fs_read", json!({ "path": long.clone() })),
        ("fs_write", json!({ "path": "a", "content": many })),
        ("recall", json!({ "id": long.clone() })),
        ("exec_tool", json!({ "path": long.clone() })),
        (long.as_str(), Value::Null),
    ] {
        let answer = kernel.call_with(call(tool, arguments), context(Consent::Given)).await;
        let bytes = serde_json::to_vec(&answer).unwrap().len();
        assert!(!answer.is_ok() && bytes < 32 << 10, "{} bytes: {:.200}", bytes, format!("{answer:?}"));
    }
    kernel.shutdown().await;
}
