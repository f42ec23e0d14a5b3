//! Which key goes to which server, what the user has set up for all projects, and answers that have to be asked for again.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::agent::{events, summary};
use crate::project::{Project, Ran};

const KEY: &str = "sk-gateway-0123456789-abcdef";

/// What a server was asked: the head of the request, and its body.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A server that gives these answers in turn, and the last one from then on.
fn model_server(answers: Vec<String>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut answers = VecDeque::from(answers);
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
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
            seen.lock().unwrap().push((head, String::from_utf8(body).unwrap()));
            let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            let _ = connection.write_all(answer.unwrap().as_bytes());
        }
    });
    (base, asked)
}

fn status(status: u16, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn stream(events: &[Value]) -> String {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}")
}

fn hello() -> String {
    stream(&[
        json!({ "choices": [{ "delta": { "content": "hello" }, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": 7000, "completion_tokens": 10, "prompt_tokens_details": { "cached_tokens": 6000 } } }),
    ]) + "data: [DONE]\n\n"
}

fn models() -> String {
    status(200, "", &json!({ "data": [{ "id": "m-1" }] }))
}

fn refused() -> String {
    status(401, "", &json!({ "error": { "message": "who are you" } }))
}

fn run(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = project.command(arguments);
    command.envs(variables.iter().copied());
    command.output().unwrap().into()
}

/// The configuration of the user, as `Project` places it.
fn settings(project: &Project, text: &str) {
    let directory = project.path("home/state/config");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), text).unwrap();
    fs::set_permissions(directory.join("config.toml"), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn bug_a_key_can_be_sent_to_a_gateway_from_the_command_line() {
    let (base, asked) = model_server(vec![models()]);
    let project = Project::initialised();
    let keys = [("GATEWAY_KEY", KEY), ("OPENAI_API_KEY", "sk-openai-0123456789")];
    for (arguments, is_sent) in [
        (vec!["models", "--provider", &base], false),
        (vec!["models", "--provider", &base, "--key-variable", "GATEWAY_KEY"], true),
        (vec!["models", "--provider", "openai", "--base-url", &base], false),
        (vec!["models", "--provider", "openai", "--base-url", &base, "--key-variable", "GATEWAY_KEY"], true),
    ] {
        let ran = run(&project, &arguments, &keys).expect_code(0);
        assert_eq!(ran.stdout, "m-1\n", "{arguments:?}");
        let (head, _) = asked.lock().unwrap().pop().unwrap();
        assert_eq!(head.contains(KEY), is_sent, "{arguments:?}: {head}");
        assert!(!head.contains("sk-openai"), "{arguments:?}: {head}");
    }
    let missing =
        run(&project, &["models", "--provider", &base, "--key-variable", "NO_SUCH"], &keys).expect_code(2);
    assert!(missing.stderr.contains("NO_SUCH is not set"), "{}", missing.stderr);
}

#[test]
fn a_key_in_the_place_of_its_variable_is_refused_and_never_shown() {
    let project = Project::initialised();
    for json in [false, true] {
        for key in [KEY, "gsk_0123456789", "$OPENAI_API_KEY", "with blank"] {
            let mut arguments = vec!["models", "--provider", "http://127.0.0.1:9/v1", "--key-variable", key];
            arguments.extend(json.then_some("--json"));
            let ran = run(&project, &arguments, &[]).expect_code(2);
            let shown = format!("{}{}", ran.stdout, ran.stderr);
            assert!(shown.contains("ECONFIG") && shown.contains("--key-variable NAME"), "{shown}");
            assert!(!shown.contains(key), "{shown}");
        }
    }
}

#[test]
fn bug_the_help_of_a_refused_key_is_true() {
    let (base, _) = model_server(vec![refused()]);
    let project = Project::initialised();
    project.write("tgp.config.json", &json!({ "llm": { "keyVariable": "OPENAI_API_KEY" } }).to_string());
    project.trust();
    let keys = [("OPENAI_API_KEY", "sk-openai-0123456789"), ("GATEWAY_KEY", KEY)];
    let none = run(&project, &["models", "--provider", &base], &keys).expect_code(1);
    assert!(
        none.stderr.contains("no key was sent") && none.stderr.contains("--key-variable"),
        "{}",
        none.stderr
    );
    assert!(!none.stderr.contains("OPENAI_API_KEY"), "{}", none.stderr);
    let sent = run(&project, &["models", "--provider", &base, "--key-variable", "GATEWAY_KEY"], &keys)
        .expect_code(1);
    assert!(sent.stderr.contains("`GATEWAY_KEY` was not accepted"), "{}", sent.stderr);
}

/// The key of the command line is a secret like those of the configuration, wherever a call repeats it.
#[test]
fn a_key_of_the_command_line_is_redacted_in_the_records() {
    let repeats =
        stream(&[json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "c1", "function": {
        "name": "fs_read", "arguments": json!({ "path": format!("notes-{KEY}.md") }).to_string(),
    } }] }, "finish_reason": "tool_calls" }] })])
            + "data: [DONE]\n\n";
    let (base, asked) = model_server(vec![repeats, hello()]);
    let project = Project::initialised();
    let arguments =
        ["run", "say hello", "--provider", &base, "--model", "m", "--key-variable", "GATEWAY_KEY", "--json"];
    let ran = run(&project, &arguments, &[("GATEWAY_KEY", KEY)]).expect_code(0);
    assert_eq!(summary(&events(&ran.stdout))["ending"]["kind"], "done");
    assert!(asked.lock().unwrap().iter().all(|(head, _)| head.contains(KEY)));
    let records = project.run(&["audit", "tail", "--json"]).expect_code(0);
    assert!(records.stdout.contains("fs_read") && !records.stdout.contains(KEY), "{}", records.stdout);
}

#[test]
fn the_command_line_comes_before_the_project_and_that_before_the_user() {
    let (of_user, by_user) = model_server(vec![hello()]);
    let (of_project, by_project) = model_server(vec![hello()]);
    let (typed, by_line) = model_server(vec![hello()]);
    let project = Project::initialised();
    let keys = [("USER_KEY", KEY), ("OPENAI_API_KEY", "sk-openai-0123456789")];
    let ask = |more: &[&str]| {
        let arguments = [&["run", "say hello"], more].concat();
        run(&project, &arguments, &keys).expect_code(0);
        let taken = |asked: &Asked| std::mem::take(&mut *asked.lock().unwrap());
        [taken(&by_user), taken(&by_project), taken(&by_line)]
    };
    let model = |(_, body): &(String, String)| -> Value {
        serde_json::from_str::<Value>(body).unwrap()["model"].clone()
    };

    settings(
        &project,
        &format!("provider = '{of_user}'\nmodel = 'mine'\n[keys]\n'{of_user}' = 'USER_KEY'\n"),
    );
    let [user, _, _] = ask(&[]);
    assert!(user[0].0.contains(KEY), "{}", user[0].0);
    assert_eq!(model(&user[0]), "mine");
    // What the user has said of one provider is not meant for another.
    let [_, _, line] = ask(&["--provider", &typed, "--model", "m"]);
    assert!(!line[0].0.contains("sk-"), "{}", line[0].0);

    let config = json!({ "llm": { "provider": of_project, "model": "ours" } });
    project.write("tgp.config.ts", &format!("export default {config};\n"));
    project.trust();
    let [user, ours, _] = ask(&[]);
    assert_eq!((user.len(), model(&ours[0])), (0, json!("ours")));
    assert!(!ours[0].0.contains("sk-"), "{}", ours[0].0);
    // A key that the user has for the address of the project is sent there.
    settings(&project, &format!("provider = '{of_user}'\n[keys]\n'{of_project}' = 'USER_KEY'\n"));
    let [_, ours, _] = ask(&[]);
    assert!(ours[0].0.contains(KEY), "{}", ours[0].0);
    // And so when the session is resumed.
    let [_, ours, _] = ask(&["--resume", "last"]);
    assert!(ours[0].0.contains(KEY), "{}", ours[0].0);
}

#[test]
fn settings_of_the_user_that_cannot_be_trusted_stop_the_command() {
    let project = Project::initialised();
    settings(&project, "modle = 'x'");
    let ran = project.run(&["list"]).expect_code(2);
    assert!(
        ran.stderr.contains("did you mean `model`?") && ran.stderr.contains("config.toml"),
        "{}",
        ran.stderr
    );
    settings(&project, "model = 'x'");
    let file = project.path("home/state/config/config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let ran = project.run(&["list"]);
    assert!(
        ran.code != Some(0) && ran.stderr.contains("ESECURITY") && ran.stderr.contains("chmod 600"),
        "{}",
        ran.stderr
    );
    // Inside the project an agent could write it.
    let mut command = project.command(&["list"]);
    let inside = project.file(".mine");
    fs::create_dir_all(inside.join("config")).unwrap();
    fs::write(inside.join("config/config.toml"), "model = 'x'").unwrap();
    let ran = Ran::from(command.env("TGP_HOME", &inside).output().unwrap());
    assert!(ran.code != Some(0) && ran.stderr.contains("inside the project"), "{}", ran.stderr);
}

#[test]
fn permissions_of_the_user_hold_where_the_command_line_says_nothing() {
    let project = Project::initialised();
    let turns = json!([
        [{ "type": "tool_call", "toolName": "fs_write", "callId": "1", "arguments": { "path": "a.md", "content": "a" } }],
        [{ "type": "text", "value": "done" }]
    ]);
    project.write("model.json", &turns.to_string());
    for (text, flag, is_written) in [
        ("", None, false),
        ("permissions = 'ask'", None, false),
        ("permissions = 'yes'", None, true),
        ("permissions = 'yes'", Some("--ask"), false),
        ("permissions = 'ask'", Some("--yes"), true),
    ] {
        settings(&project, text);
        let mut arguments = vec!["run", "write a note", "--provider", "script:model.json"];
        arguments.extend(flag);
        project.run(&arguments).expect_code(0);
        assert_eq!(fs::remove_file(project.file("a.md")).is_ok(), is_written, "{text} {flag:?}");
    }
}

#[test]
fn the_doctor_names_provider_key_model_and_tests() {
    let project = Project::initialised();
    let rows = |variables: &[(&str, &str)]| -> Vec<(String, String, String)> {
        let ran = run(&project, &["doctor", "--json"], variables);
        let document = ran.document();
        let checks = document["data"]["checks"].as_array().unwrap().clone();
        let word = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let is_asked =
            |row: &&Value| ["provider", "key", "model", "tests"].contains(&row["name"].as_str().unwrap());
        checks
            .iter()
            .filter(is_asked)
            .map(|row| (word(row, "name"), word(row, "health"), word(row, "text")))
            .collect()
    };
    let found = rows(&[]);
    assert_eq!(
        found.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(),
        ["provider", "key", "model", "tests"]
    );
    assert!(found.iter().all(|row| row.1 == "weak"), "{found:?}");
    assert!(found[0].2.contains("--provider") && found[3].2.contains("tdd.command"), "{found:?}");
    settings(&project, "provider = 'anthropic'\nmodel = 'm-1'\n[keys]\nanthropic = 'MY_KEY'\n");
    project.write("package.json", &json!({ "scripts": { "test": "node --test" } }).to_string());
    let found = rows(&[]);
    assert_eq!((found[0].2.as_str(), found[2].2.as_str()), ("anthropic", "m-1"));
    assert!(found[1].1 == "weak" && found[1].2.contains("export MY_KEY"), "{found:?}");
    assert_eq!(found[3].1, "good", "{found:?}");
    let found = rows(&[("MY_KEY", KEY)]);
    assert_eq!(found[1], ("key".to_owned(), "good".to_owned(), "MY_KEY is set".to_owned()));
}

#[test]
fn bug_an_answer_that_breaks_off_is_asked_for_again() {
    let cut = stream(&[json!({ "choices": [{ "delta": { "content": "I would" } }] })]);
    let no_options = status(400, "", &json!({ "error": { "message": "stream_options is not supported" } }));
    let busy = status(429, "retry-after-ms: 1\r\n", &json!({ "error": { "message": "slow down" } }));
    let (base, asked) = model_server(vec![no_options, busy, cut, hello()]);
    let project = Project::initialised();
    let prices = json!({ "input": 10, "output": 100, "cachedInput": 1 });
    project.write("tgp.config.json", &json!({ "llm": { "prices": prices } }).to_string());
    let arguments = ["run", "say hello", "--provider", &base, "--model", "m", "--json"];
    let ran = project.run(&arguments).expect_code(0);
    let events = events(&ran.stdout);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["session", "step", "notice", "text", "discarded", "step", "text", "usage", "end"],
        "{}",
        ran.stdout
    );
    assert!(events[4]["message"].as_str().unwrap().contains("discarded"), "{}", events[4]);
    assert_eq!((&events[4]["step"], &events[5]["step"]), (&json!(1), &json!(1)));
    let ended = summary(&events);
    assert_eq!((&ended["ending"]["kind"], &ended["answer"]), (&json!("done"), &json!("hello")));
    assert!(ended["usage"]["cachedInputTokens"].as_u64() == Some(6000), "{ended}");
    assert_eq!(asked.lock().unwrap().len(), 4);
    project.run(&["replay", "last"]).expect_code(0);
}

#[test]
fn bug_a_wrong_start_leaves_no_session_in_the_list() {
    let (base, _) = model_server(vec![refused(), hello()]);
    let project = Project::initialised();
    let arguments = ["run", "say hello", "--provider", &base, "--model", "m"];
    project.run(&arguments).expect_code(1);
    let listed = |project: &Project| {
        project.run(&["sessions", "list", "--json"]).document()["data"]["sessions"].clone()
    };
    assert_eq!(listed(&project), json!([]));
    // It can be resumed as it says, and is a session like any other then.
    project.run(&["run", "--resume", "last"]).expect_code(0);
    assert_eq!(listed(&project).as_array().unwrap().len(), 1);
}
