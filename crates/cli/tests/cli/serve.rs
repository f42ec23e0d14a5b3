//! `tgp serve`: what programs get from the socket, and what hostile ones cannot do to it.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::processes::send;
use crate::project::Project;

/// A served project. Its socket has a short path, since the system allows no long ones.
pub(crate) struct Served {
    project: Project,
    child: Child,
    folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn start(extra: &[&str]) -> Self {
        let project = Project::with_fixtures();
        let folder = tempfile::TempDir::new_in("/tmp").unwrap();
        let socket = folder.path().join("s");
        let arguments = [&["serve", "--socket", socket.to_str().unwrap()], extra].concat();
        let child = project.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let served = Self { project, child, folder };
        let start = Instant::now();
        while !served.socket().exists() {
            assert!(start.elapsed() < Duration::from_secs(30), "the socket did not appear");
            std::thread::sleep(Duration::from_millis(10));
        }
        served
    }

    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("s")
    }

    pub(crate) fn token(&self, arguments: &[&str]) -> String {
        let scope: &[&str] = if arguments.is_empty() { &["--all"] } else { arguments };
        let ran = self.project.run(&[&["token", "mint"], scope].concat()).expect_code(0);
        ran.stdout.trim().to_owned()
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client(stream)
    }

    fn client(&self, token: &str) -> Client {
        let mut client = self.connect();
        client.send(&json!({ "token": token, "actor": "a test" }));
        let welcome = client.receive().unwrap();
        assert!(welcome.get("session").is_some(), "{welcome}");
        client
    }

    /// Ends the server as Ctrl-C does.
    pub(crate) fn stop(mut self) -> Project {
        send(self.child.id(), libc::SIGINT);
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        assert!(!self.socket().exists(), "the socket stays behind");
        self.project
    }
}

struct Client(UnixStream);

impl Client {
    fn send(&mut self, value: &Value) {
        self.raw(value.to_string().as_bytes());
    }

    fn raw(&mut self, frame: &[u8]) {
        self.0.write_all(&u32::try_from(frame.len()).unwrap().to_be_bytes()).unwrap();
        self.0.write_all(frame).unwrap();
    }

    fn receive(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut frame).ok()?;
        Some(serde_json::from_slice(&frame).unwrap())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send(&json!({ "method": "call", "id": "1", "tool": tool, "arguments": arguments }));
        self.receive().unwrap()["result"].clone()
    }
}

/// Megabytes that a process holds.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn code(result: &Value) -> &str {
    result["error"]["code"].as_str().unwrap_or("none")
}

#[test]
fn a_program_calls_tools_within_its_token() {
    let served = Served::start(&["--yes"]);
    let mode = std::fs::metadata(served.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only this user may connect");
    let token = served.token(&["--tools", "exec_tool,read_file", "--calls", "3"]);
    let mut client = served.client(&token);
    client.send(&json!({ "method": "tools", "id": "t" }));
    let tools = client.receive().unwrap();
    assert!(tools["tools"].as_array().unwrap().len() > 10 && tools["id"] == "t");
    let ran = client.call("exec_tool", &json!({ "path": "tools/math/fib.ts", "args": { "n": 10 } }));
    assert_eq!(ran["data"]["result"], 55, "{ran}");
    let outside = client.call("log", &json!({}));
    assert_eq!(code(&outside), "EPOLICY", "{outside}");
    // Calls that do not run do not count; the third that does is the last.
    for _ in 0..2 {
        assert_eq!(client.call("read_file", &json!({ "path": "tools/math/fib.ts" }))["ok"], true);
    }
    let used_up = client.call("read_file", &json!({ "path": "tools/math/fib.ts" }));
    assert_eq!(code(&used_up), "EPOLICY", "{used_up}");
    // Another connection with the same token has no calls left either.
    let mut second = served.client(&token);
    assert_eq!(code(&second.call("read_file", &json!({ "path": "tools/math/fib.ts" }))), "EPOLICY");
    let project = served.stop();
    let audit = project.run(&["audit", "verify"]).expect_code(0);
    assert!(audit.stdout.contains("intact"), "{audit:?}");
}

#[test]
fn nobody_to_ask_means_no_effect() {
    let served = Served::start(&[]);
    let token = served.token(&[]);
    let mut client = served.client(&token);
    let refused = client.call("fs_write", &json!({ "path": "docs/a.md", "content": "x" }));
    assert_eq!(code(&refused), "EAPPROVAL", "{refused}");
    assert!(!served.project.file("docs/a.md").exists());
    served.stop();
}

#[test]
fn without_a_good_token_nobody_gets_in() {
    let served = Served::start(&["--yes"]);
    let good = served.token(&["--tools", "read_file"]);
    let mut forged = good.clone();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    for hello in [
        json!({ "token": "" }),
        json!({ "token": "tgp1.AAAA" }),
        json!({ "token": forged }),
        json!({ "actor": "x" }),
        json!({ "token": good, "more": 1 }),
        json!({ "token": good, "actor": "x".repeat(1000) }),
    ] {
        let mut client = served.connect();
        client.send(&hello);
        let answer = client.receive().unwrap();
        assert!(matches!(code(&answer), "EPOLICY" | "EVALIDATION"), "{hello} {answer}");
        assert!(client.receive().is_none(), "the connection stays open after {hello}");
    }
    served.stop();
}

#[test]
fn hostile_clients_do_not_hurt_it() {
    let served = Served::start(&["--yes", "--connections", "8"]);
    let token = served.token(&[]);
    // Half-open, garbage, a frame that is only claimed, one that is too large, a slow one: all at once.
    let half_open: Vec<Client> = (0..3).map(|_| served.connect()).collect();
    let mut garbage = served.client(&token);
    garbage.raw(b"\xff\xfe not json");
    assert_eq!(code(&garbage.receive().unwrap()), "EVALIDATION");
    assert_eq!(garbage.call("read_file", &json!({ "path": "tools/math/fib.ts" }))["ok"], true, "it goes on");
    let mut oversized = served.client(&token);
    oversized.0.write_all(&u32::MAX.to_be_bytes()).unwrap();
    assert_eq!(code(&oversized.receive().unwrap()), "EVALIDATION");
    assert!(oversized.receive().is_none());
    let mut claimed = served.client(&token);
    claimed.0.write_all(&(16_u32 << 20).to_be_bytes()).unwrap();
    claimed.0.write_all(b"{").unwrap();
    // More than it takes: the next ones get an error, or are just closed.
    let mut turned_away = 0;
    let crowd: Vec<Client> = (0..12).map(|_| served.connect()).collect();
    for mut client in crowd {
        client.0.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        if let Some(answer) = client.receive() {
            assert_eq!(code(&answer), "EPERMISSION");
            turned_away += 1;
        }
    }
    assert!(turned_away > 0, "nobody was turned away");
    drop((half_open, claimed));
    // Closed places come free again.
    let start = Instant::now();
    loop {
        let mut client = served.connect();
        client.send(&json!({ "token": token }));
        if client.receive().is_some_and(|answer| answer.get("session").is_some()) {
            let ran = client.call("exec_tool", &json!({ "path": "tools/math/fib.ts", "args": { "n": 10 } }));
            assert_eq!(ran["data"]["result"], 55, "{ran}");
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no place came free");
    }
    served.stop();
}

#[test]
fn a_socket_that_is_in_use_is_not_taken() {
    let served = Served::start(&[]);
    let path = served.socket();
    let second = served.project.run(&["serve", "--socket", path.to_str().unwrap()]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("ECONFLICT"), "{second:?}");
    served.client(&served.token(&[]));
    let plain = served.folder.path().join("plain");
    std::fs::write(&plain, "mine").unwrap();
    let refused = served.project.run(&["serve", "--socket", plain.to_str().unwrap()]);
    assert!(refused.code == Some(1) && std::fs::read_to_string(&plain).unwrap() == "mine", "{refused:?}");
    // What a killed server left behind is replaced.
    let Served { project, mut child, folder } = served;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(path.exists());
    let mut next = project
        .command(&["serve", "--socket", path.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while UnixStream::connect(&path).is_err() {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    send(next.id(), libc::SIGTERM);
    next.wait().unwrap();
    drop(folder);
}

/// A call whose only argument is a list of so many empty objects, in about three bytes each.
fn wide(values: usize) -> Vec<u8> {
    let list = vec!["{}"; values].join(",");
    format!(r#"{{"method":"call","id":"w","tool":"fs_read","arguments":{{"path":[{list}]}}}}"#).into_bytes()
}

#[test]
fn a_narrow_client_cannot_make_the_kernel_hold_gigabytes() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&["--tools", "fs_exists"]);
    let process = served.child.id();
    served.client(&token).call("fs_exists", &json!({ "path": "a" }));
    let before = resident(process);
    let watched = std::sync::atomic::AtomicBool::new(true);
    let peak = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0;
            while watched.load(std::sync::atomic::Ordering::Relaxed) {
                peak = peak.max(resident(process));
                std::thread::sleep(Duration::from_millis(5));
            }
            peak
        });
        // Eight frames of 14 MiB that hold five million values each: refused before one is made.
        let huge = wide(14 << 20 >> 2);
        let mut client = served.client(&token);
        for _ in 0..8 {
            client.raw(&huge);
            let answer = client.receive().unwrap();
            assert_eq!(code(&answer), "EVALIDATION", "{answer}");
        }
        // As many values as are taken, in as many calls as are taken, on several connections of one token.
        let most = wide(90_000);
        let mut clients: Vec<Client> = (0..6).map(|_| served.client(&token)).collect();
        for client in &mut clients {
            (0..4).for_each(|_| client.raw(&most));
        }
        for client in &mut clients {
            for _ in 0..4 {
                let answer = client.receive().unwrap();
                let bytes = answer.to_string().len();
                assert!(bytes < 16 << 10, "an answer of {bytes} bytes repeats the argument");
                let result = if answer["result"].is_null() { &answer } else { &answer["result"] };
                assert!(matches!(code(result), "EVALIDATION" | "EBUDGET"), "{answer}");
            }
        }
        // Frames that are all text, from many connections at once.
        let text = json!({ "method": "call", "id": "t", "tool": "fs_exists", "arguments": { "path": "x".repeat(15 << 20) } });
        let text = text.to_string();
        std::thread::scope(|crowd| {
            for _ in 0..12 {
                crowd.spawn(|| {
                    let mut client = served.client(&token);
                    for _ in 0..3 {
                        client.raw(text.as_bytes());
                        let answer = client.receive().unwrap();
                        assert!(answer.to_string().len() < 16 << 10);
                    }
                });
            }
        });
        // An id comes back, so it is short.
        let mut client = served.client(&token);
        client.send(&json!({ "method": "tools", "id": "i".repeat(1 << 20) }));
        let answer = client.receive().unwrap();
        assert!(code(&answer) == "EVALIDATION" && answer.to_string().len() < 1 << 10, "{answer:.200}");
        // Deep nesting is refused as well.
        client.raw(&[b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat());
        assert_eq!(code(&client.receive().unwrap()), "EVALIDATION");
        assert!(client.call("fs_exists", &json!({ "path": "a" }))["ok"].as_bool().unwrap(), "it goes on");
        watched.store(false, std::sync::atomic::Ordering::Relaxed);
        watch.join().unwrap()
    });
    std::thread::sleep(Duration::from_secs(2));
    let after = resident(process);
    println!("resident: {before} MB before, {peak} MB at most, {after} MB after");
    assert!(peak < before + 400, "{before} MB grew to {peak} MB");
    assert!(after < before + 150, "{after} MB are held after all clients have gone, {before} MB before");
    served.stop();
}

#[test]
fn the_first_frame_is_small_until_a_token_is_shown() {
    let served = Served::start(&["--yes"]);
    let mut client = served.connect();
    client.0.write_all(&(1_u32 << 20).to_be_bytes()).unwrap();
    assert_eq!(code(&client.receive().unwrap()), "EVALIDATION");
    assert!(client.receive().is_none());
    served.stop();
}

#[test]
fn bug_a_client_that_is_refused_while_it_sends_still_gets_the_answer() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&[]);
    let greeted = served.client(&token);
    for mut client in [served.connect(), greeted] {
        client.0.write_all(&u32::MAX.to_be_bytes()).unwrap();
        // The server has refused the length by the time the bytes come.
        std::thread::sleep(Duration::from_millis(100));
        client.0.write_all(&[b'x'; 4096]).unwrap();
        assert_eq!(code(&client.receive().unwrap()), "EVALIDATION");
        assert!(client.receive().is_none());
    }
    served.stop();
}

const SEQUENCES: &str = "version: 1\nsequences:\n  - {id: few, at_most: 2, of: {tools: [fs_exists]}}\n";

#[test]
fn a_client_gets_no_new_past_by_a_new_name_or_an_attenuated_token() {
    let served = Served::start(&["--yes"]);
    served.project.write("tgp.policy.yaml", SEQUENCES);
    let token = served.token(&[]);
    let exists = |token: &str, hello: Value| {
        let mut client = served.connect();
        let mut hello = hello;
        hello["token"] = json!(token);
        client.send(&hello);
        let welcome = client.receive().unwrap();
        let session = welcome["session"].as_str().unwrap_or_else(|| panic!("{welcome}")).to_owned();
        (session, client.call("fs_exists", &json!({ "path": "a" })))
    };
    let (session, first) = exists(&token, json!({ "session": "one", "actor": "agent" }));
    assert!(session.starts_with("token/") && session.ends_with("/one"), "{session}");
    assert_eq!(first["ok"], true);
    assert_eq!(exists(&token, json!({ "session": "two" })).1["ok"], true);
    for name in ["fresh1", "fresh2", "one"] {
        let (_, third) = exists(&token, json!({ "session": name, "actor": name }));
        assert_eq!(code(&third), "EPOLICY", "{name}: {third}");
    }
    let ran = served.project.run(&["token", "attenuate", &token, "--note", "n0"]).expect_code(0);
    let narrower = ran.stdout.trim().to_owned();
    assert_eq!(code(&exists(&narrower, json!({})).1), "EPOLICY");
    // The same token on the command line has the same past.
    let call = ["call", "fs_exists", r#"{"path": "a"}"#, "--session", "fresh", "--token", &narrower];
    served.project.run(&call).expect_code(3);
    let tail =
        served.project.run(&["audit", "tail", "--session", session.trim_end_matches("/one"), "--json"]);
    assert!(tail.expect_code(0).stdout.contains("/agent"), "the claimed actor is behind the identity");
    served.stop();
}

#[test]
fn a_client_cannot_name_the_session_of_an_agent() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&["--tools", "recall,effect:read"]);
    for name in ["20261115-220915-dfc9", "20260101-000000-a3eb-2"] {
        let mut client = served.connect();
        client.send(&json!({ "token": token, "session": name }));
        assert_eq!(code(&client.receive().unwrap()), "EPERMISSION");
        assert!(client.receive().is_none());
        let ran = served.project.run(&["call", "recall", r#"{"id": "r1.1"}"#, "--session", name]);
        assert!(ran.stdout.contains("EPERMISSION"), "{ran:?}");
    }
    let mut client = served.client(&token);
    assert_eq!(code(&client.call("recall", &json!({ "id": "r1.1" }))), "EPERMISSION");
    served.stop();
}

#[test]
fn bug_a_refused_frame_lost_its_id() {
    let served = Served::start(&["--yes"]);
    let mut client = served.client(&served.token(&[]));
    for (frame, id) in [
        (json!({ "method": "cal", "id": "7" }), json!("7")),
        (json!({ "method": "call", "id": "8" }), json!("8")),
        (json!({ "method": "call", "id": 9, "tool": "fs_list" }), Value::Null),
        (json!([]), Value::Null),
    ] {
        client.send(&frame);
        let answer = client.receive().unwrap();
        assert_eq!((code(&answer), &answer["id"]), ("EVALIDATION", &id), "{frame} {answer}");
        assert!(!answer.to_string().contains("struct "), "{answer}");
    }
    // A tool that needs no arguments gets none.
    client.send(&json!({ "method": "call", "id": "10", "tool": "fs_list" }));
    assert_eq!(client.receive().unwrap()["result"]["ok"], true);
    served.stop();
}

#[test]
fn bug_a_socket_was_made_at_a_path_that_no_client_can_name() {
    let project = Project::initialised();
    let refused = project.run(&["serve", "--socket", &"a".repeat(120)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("ECONFIG") && refused.stderr.contains("107"), "{refused:?}");
}
