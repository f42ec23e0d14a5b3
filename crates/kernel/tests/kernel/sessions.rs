//! Sessions as an embedding program has them: models over the wire, keys, order, memory of what was shortened.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tgp::agent::{
    AgentEvent, Bounds, Ending, ModelChoice, Replayed, ResumeRequest, SessionRequest, SessionState,
    StopSignal, Summary, TranscriptIntegrity,
};
use tgp::contract::{CallContext, Consent, TddMode};
use tgp::{BootOptions, Kernel};
use tokio::sync::mpsc;

use crate::router::{call, context};
use crate::support::{Project, code, data, environment};

fn say(text: &str) -> Value {
    json!({ "type": "text", "value": text })
}

fn wants(tool: &str, arguments: impl Into<Value>) -> Value {
    let arguments: Value = arguments.into();
    json!({ "type": "tool_call", "toolName": tool, "callId": "c", "arguments": arguments })
}

fn scripted(project: &Project, turns: impl Into<Value>) -> SessionRequest {
    project.put("model.json", &turns.into().to_string());
    let provider = Some("script:model.json".to_owned());
    SessionRequest {
        model: ModelChoice { provider, ..ModelChoice::default() },
        consent: Consent::Given,
        ..SessionRequest::new("do something useful")
    }
}

/// Runs a session and gives everything it said.
async fn run(kernel: &Kernel, request: SessionRequest) -> (Summary, Vec<AgentEvent>) {
    let (sender, mut events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let told = async {
        let mut all = Vec::new();
        while let Some(event) = events.recv().await {
            all.push(event);
        }
        all
    };
    let (summary, told) = tokio::join!(kernel.run_session(request, sender, stop), told);
    (summary.unwrap(), told)
}

async fn resume(kernel: &Kernel, request: ResumeRequest) -> Result<Summary, tgp::contract::ToolError> {
    let (sender, mut events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let drained = async { while events.recv().await.is_some() {} };
    tokio::join!(kernel.resume_session(request, sender, stop), drained).0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_the_order_survives_the_slowest_consumer() {
    let project = Project::new();
    project.put("notes.md", "old");
    let kernel = project.boot().await.unwrap();
    let mut turns = Vec::new();
    for number in 0..20 {
        turns.push(json!([
            say(&format!("turn {number}")),
            wants("fs_read", json!({ "path": "notes.md" })),
            wants("fs_write", json!({ "path": "notes.md", "content": number.to_string() })),
            wants("fs_read", json!({ "path": "notes.md" })),
        ]));
    }
    turns.push(json!([say("the end")]));
    let request = scripted(&project, Value::from(turns));
    let (sender, mut events) = mpsc::channel(1);
    let (_handle, stop) = StopSignal::new();
    let slow = async {
        let mut kinds = Vec::new();
        while let Some(event) = events.recv().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
            kinds.push(match event {
                AgentEvent::Text { value } => value,
                AgentEvent::ToolCall { id, .. } => format!("call {id}"),
                AgentEvent::ToolResult { id, result, .. } => {
                    let read =
                        result.data().and_then(|data| data.get("content")).cloned().unwrap_or_default();
                    format!("result {id} {read}")
                }
                AgentEvent::End { .. } => "end".to_owned(),
                _ => continue,
            });
        }
        kinds
    };
    let (summary, kinds) = tokio::join!(kernel.run_session(request, sender, stop), slow);
    let mut expected = Vec::new();
    for number in 0..20 {
        let step = number + 1;
        let before = if number == 0 { "old".to_owned() } else { (number - 1).to_string() };
        expected.push(format!("turn {number}"));
        // A read after a write of the same turn sees it.
        let results = [format!("\"{before}\""), "null".to_owned(), format!("\"{number}\"")];
        for (index, result) in (1..).zip(results) {
            expected.push(format!("call r{step}.{index}"));
            expected.push(format!("result r{step}.{index} {result}"));
        }
    }
    expected.extend(["the end".to_owned(), "end".to_owned()]);
    assert_eq!(kinds, expected);
    assert_eq!(summary.unwrap().ending, Ending::Done);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_a_dry_run_of_a_mutator_previews_the_same_twice_and_changes_nothing() {
    let project = Project::new();
    project.put("notes.md", "one\ntwo\n");
    let kernel = project.boot().await.unwrap();
    let mut cases = vec![
        ("Write", json!({ "path": "notes.md", "content": "one\n2\n" }), "+2"),
        ("Edit", json!({ "path": "notes.md", "search": "two", "replace": "2" }), "+2"),
    ];
    if tgp::sandbox::process_support().complete() {
        cases.push(("Bash", json!({ "command": "sed -i s/two/2/ notes.md" }), "+2"));
    }
    for (tool, arguments, shown) in cases {
        let dry = || CallContext { dry_run: true, ..context(Consent::Given) };
        let mut previews = Vec::new();
        for _ in 0..2 {
            let mut preview = data(&kernel.call_with(call(tool, arguments.clone()), dry()).await).clone();
            preview.as_object_mut().unwrap().remove("durationMs");
            previews.push(preview);
        }
        assert_eq!(previews[0], previews[1], "{tool}");
        assert!(previews[0].to_string().contains(shown), "{tool}: {}", previews[0]);
        assert_eq!(project.text("notes.md").as_deref(), Some("one\ntwo\n"), "{tool}");
    }
    kernel.shutdown().await;
}

/// A server that answers each request with one turn of text, and reports the headers it was sent.
fn model_server() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, heads) = channel();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "hello" }, "finish_reason": "stop" }] });
            let answer = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            let _ = connection.write_all(
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len()).as_bytes(),
            );
            if sender.send(head).is_err() {
                return;
            }
        }
    });
    (base, heads)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_goes_to_its_own_provider_and_stands_nowhere() {
    const KEY: &str = "sk-a-key-that-must-not-be-seen-0123456789";
    let (base, heads) = model_server();
    const KEYS: &[(&str, &str)] = &[("OPENAI_API_KEY", KEY), ("GATEWAY_KEY", KEY)];
    for (config, choice, expected) in [
        (json!({}), Some(base.clone()), false),
        (json!({ "provider": "openai-chat", "baseUrl": base, "model": "m" }), None, false),
        (
            json!({ "provider": "openai-chat", "baseUrl": base, "model": "m", "keyVariable": "GATEWAY_KEY" }),
            None,
            true,
        ),
        (json!({ "provider": base, "model": "m", "keyVariable": "GATEWAY_KEY" }), None, true),
        // What is configured for one server is not meant for another.
        (
            json!({ "provider": "anthropic", "model": "m", "keyVariable": "GATEWAY_KEY" }),
            Some(base.clone()),
            false,
        ),
    ] {
        let project = Project::new();
        project.put("tgp.config.json", &json!({ "llm": config }).to_string());
        let options = BootOptions { environment: environment(KEYS), ..project.options() };
        let kernel = Kernel::boot(options).await.unwrap();
        let model = ModelChoice {
            provider: choice.clone(),
            model: choice.map(|_| "m".to_owned()),
            ..ModelChoice::default()
        };
        let (summary, _) = run(&kernel, SessionRequest { model, ..SessionRequest::new("say hello") }).await;
        assert_eq!((&summary.ending, summary.answer.as_str()), (&Ending::Done, "hello"), "{config}");
        let head = heads.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(head.contains(KEY), expected, "{config}: {head}");
        kernel.shutdown().await;
        let found =
            std::process::Command::new("grep").args(["-rl", KEY]).arg(project.path()).output().unwrap();
        assert!(found.stdout.is_empty(), "{config}: {}", String::from_utf8_lossy(&found.stdout));
    }
}

/// A key is sent only when its value is kept out of the records, which a kernel learns when it starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variable_that_the_kernel_was_not_told_of_is_not_sent() {
    const KEYS: &[(&str, &str)] = &[("GATEWAY_KEY", "sk-a-key-0123456789")];
    let (base, heads) = model_server();
    let project = Project::new();
    for (key_variables, is_sent) in [(vec![], false), (vec!["GATEWAY_KEY".to_owned()], true)] {
        let options = BootOptions {
            environment: environment(KEYS),
            key_variables: key_variables.clone(),
            ..project.options()
        };
        let kernel = Kernel::boot(options).await.unwrap();
        let model = ModelChoice {
            provider: Some(base.clone()),
            model: Some("m".to_owned()),
            key_variable: Some("GATEWAY_KEY".to_owned()),
            ..ModelChoice::default()
        };
        let (sender, _events) = mpsc::channel(16);
        let (_handle, stop) = StopSignal::new();
        let ended = kernel
            .run_session(SessionRequest { model, ..SessionRequest::new("say hello") }, sender, stop)
            .await;
        match ended {
            Ok(_) => {
                let head = heads.recv_timeout(Duration::from_secs(10)).unwrap();
                assert!(is_sent && head.contains(KEYS[0].1), "{head}");
            }
            Err(error) => assert!(!is_sent && error.code.as_str() == "ECONFIG", "{error}"),
        }
        kernel.shutdown().await;
    }
    let options = BootOptions { key_variables: vec!["sk-a-key".to_owned()], ..project.options() };
    let error = tgp::contract::ToolError::from(Kernel::boot(options).await.unwrap_err());
    assert!(error.code.as_str() == "ECONFIG" && !format!("{error:?}").contains("sk-a-key"), "{error:?}");
}

/// `--resume --provider other` meant the server of the first provider once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_does_not_follow_a_session_to_the_server_of_another_provider() {
    const KEYS: &[(&str, &str)] = &[("MINE", "sk-ant-a-key-0123456789")];
    let (base, heads) = model_server();
    let project = Project::new();
    let config = json!({ "llm": { "provider": "anthropic", "keyVariable": "MINE", "timeouts": { "connectSeconds": 1, "totalSeconds": 1 }, "attempts": 1 } });
    project.put("tgp.config.json", &config.to_string());
    let kernel =
        Kernel::boot(BootOptions { environment: environment(KEYS), ..project.options() }).await.unwrap();
    let model = ModelChoice {
        provider: Some("openai-chat".to_owned()),
        model: Some("gpt".to_owned()),
        base_url: Some(base),
        ..ModelChoice::default()
    };
    let (summary, _) = run(&kernel, SessionRequest { model, ..SessionRequest::new("say hello") }).await;
    assert_eq!(summary.ending, Ending::Done);
    assert!(!heads.recv_timeout(Duration::from_secs(10)).unwrap().contains("sk-ant"));
    let model = ModelChoice {
        provider: Some("anthropic".to_owned()),
        model: Some("m".to_owned()),
        ..ModelChoice::default()
    };
    let again = ResumeRequest { model, message: Some("again".to_owned()), ..ResumeRequest::new("last") };
    // There is no server at the provider's own address here.
    let ended = resume(&kernel, again).await.unwrap();
    assert!(matches!(ended.ending, Ending::NeedsUser { .. }), "{ended:?}");
    assert!(heads.try_recv().is_err(), "the first server was asked once more");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shortened_is_read_again_by_its_id() {
    let project = Project::new();
    let long: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    project.put("long.md", &long);
    let kernel = project.boot().await.unwrap();
    let request = scripted(
        &project,
        json!([
            [wants("fs_read", json!({ "path": "long.md" }))],
            [wants("recall", json!({ "id": "r1.1", "offset": 1_000 }))],
            [say("done")]
        ]),
    );
    let (summary, events) = run(&kernel, request).await;
    assert_eq!(summary.ending, Ending::Done);
    let results: Vec<&Value> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolResult { result, .. } => Some(data(result)),
            _ => None,
        })
        .collect();
    let whole = json!({ "ok": true, "data": results[0] }).to_string();
    let page = results[1];
    assert_eq!(page["totalBytes"], whole.len());
    let text = page["text"].as_str().unwrap();
    assert_eq!(&whole[1_000..1_000 + text.len()], text);
    assert_eq!(page["nextOffset"], 1_000 + text.len());
    // Another session has no business with it.
    let other = kernel.call("recall", json!({ "id": "r1.1" })).await;
    assert_eq!(code(&other), "EPERMISSION");
    for name in ["../x", "", "a/b", ".", summary.session.as_str()] {
        let foreign = CallContext { session: name.to_owned(), ..context(Consent::Given) };
        assert_eq!(
            code(&kernel.call_with(call("recall", json!({ "id": "r1.1" })), foreign).await),
            "EPERMISSION"
        );
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_kept_listed_resumed_and_played_again() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let turns = json!([[wants("fs_write", json!({ "path": "a.md", "content": "a" }))], [say("done")]]);
    let request = SessionRequest {
        bounds: Bounds { max_steps: Some(1), ..Bounds::default() },
        ..scripted(&project, turns)
    };
    let (summary, _) = run(&kernel, request).await;
    assert!(matches!(summary.ending, Ending::Budget { .. }), "{summary:?}");
    let range = summary.audit.expect("its calls are in the audit");
    assert!(range.first <= range.last);
    let sessions = kernel.sessions();
    let id = sessions.find("last").unwrap();
    assert_eq!(id, summary.session);
    assert_eq!(sessions.find(&id[..12]).unwrap(), id);
    // The thread that wrote the transcript lets go of it a moment after the run.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut listed = sessions.list(10).unwrap();
    while matches!(&listed[..], [one] if matches!(one.state, SessionState::Running))
        && std::time::Instant::now() < patience
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        listed = sessions.list(10).unwrap();
    }
    assert!(matches!(&listed[..], [one] if one.id == id && matches!(one.state, SessionState::Ended(_))));
    // A bound that is reached stays reached until it is raised.
    let again = resume(&kernel, ResumeRequest::new("last")).await.unwrap();
    assert!(matches!(again.ending, Ending::Budget { .. }), "{again:?}");
    let more = ResumeRequest {
        bounds: Bounds { max_steps: Some(5), ..Bounds::default() },
        ..ResumeRequest::new(&id)
    };
    let ended = resume(&kernel, more).await.unwrap();
    assert_eq!((&ended.ending, ended.steps, ended.calls), (&Ending::Done, 2, 1));
    assert_eq!(resume(&kernel, ResumeRequest::new(&id)).await.unwrap_err().code.as_str(), "EVALIDATION");
    let replay = sessions.replay(&id).await.unwrap();
    assert!(matches!(replay.played, Replayed::Same { .. }));
    assert_eq!(replay.sealed, TranscriptIntegrity::Same { lines_after: 0 });
    // For its owner alone.
    use std::os::unix::fs::PermissionsExt;
    let folder = project.file(".tgp/.state/sessions").join(&id);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("transcript.ndjson"))), (0o700, 0o600));
    // Only the kernel reads it.
    let path = format!(".tgp/.state/sessions/{id}/transcript.ndjson");
    assert_eq!(code(&kernel.call("fs_read", json!({ "path": path })).await), "EPOLICY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_do_not_work_on_one_session() {
    let project = Project::new();
    let (first, second) = (project.boot().await.unwrap(), project.boot().await.unwrap());
    let turns = json!([{ "delayMs": 300, "events": [say("slowly"), say("slowly")] }]);
    let request = scripted(&project, turns);
    let (sender, mut events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let meanwhile = async {
        while !matches!(events.recv().await, Some(AgentEvent::Text { .. })) {}
        let refused = resume(&second, ResumeRequest::new("last")).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "ECONFLICT", "{refused}");
        let listed = second.sessions().list(1).unwrap();
        assert_eq!(listed[0].state, SessionState::Running);
        while events.recv().await.is_some() {}
    };
    let (summary, ()) = tokio::join!(first.run_session(request, sender, stop), meanwhile);
    assert_eq!(summary.unwrap().ending, Ending::Done);
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_begin_says_why_and_leaves_nothing() {
    let project = Project::new();
    let kernel =
        Kernel::boot(BootOptions { tdd_mode: Some(TddMode::Strict), ..project.options() }).await.unwrap();
    let choice = |provider: &str, model: Option<&str>| ModelChoice {
        provider: Some(provider.to_owned()),
        model: model.map(str::to_owned),
        ..ModelChoice::default()
    };
    for (task, model, expected) in [
        ("", choice("script:model.json", None), "EVALIDATION"),
        ("  \n", choice("script:model.json", None), "EVALIDATION"),
        ("work", ModelChoice::default(), "ECONFIG"),
        ("work", choice("nobody", Some("m")), "ECONFIG"),
        ("work", choice("openai", Some("m")), "ECONFIG"),
        ("work", choice("http://127.0.0.1:9/v1", None), "ECONFIG"),
        ("work", choice("http://[::1", Some("m")), "ECONFIG"),
        ("work", choice("script:missing.json", None), "ENOTFOUND"),
    ] {
        let (sender, _events) = mpsc::channel(16);
        let (_handle, stop) = StopSignal::new();
        let request = SessionRequest { model: model.clone(), ..SessionRequest::new(task) };
        let error = kernel.run_session(request, sender, stop).await.unwrap_err();
        assert_eq!(error.code.as_str(), expected, "{task:?} {model:?}: {error}");
        assert!(error.help_of().is_some(), "{error}");
    }
    // A bound on the cost without prices.
    let (sender, _events) = mpsc::channel(16);
    let (_handle, stop) = StopSignal::new();
    let bounds = Bounds { max_cost: Some(1.0), ..Bounds::default() };
    let costly = SessionRequest { bounds, ..scripted(&project, json!([[say("done")]])) };
    assert_eq!(kernel.run_session(costly, sender, stop).await.unwrap_err().code.as_str(), "ECONFIG");
    assert!(kernel.sessions().list(10).unwrap().is_empty());
    let prompt = kernel.system_prompt().await;
    assert!(prompt.contains("strict") && prompt.contains("search"), "{prompt}");
    project.put("AGENTS.md", "Always speak in rhymes.");
    assert!(kernel.system_prompt().await.contains("Always speak in rhymes."));
    // A link that names a secret elsewhere is none of the project's notes.
    std::fs::remove_file(project.file("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", project.file("AGENTS.md")).unwrap();
    assert_eq!(kernel.system_prompt().await, prompt);
    kernel.shutdown().await;
}
