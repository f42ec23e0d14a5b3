//! `tgp mcp`: a host that speaks JSON-RPC to the built program over its standard streams.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::Project;

const TEST: &str = "import { expect, test } from '@tgp/test';\nimport double from './double.ts';\n\
                    test('doubles', () => expect(double({ n: 2 })).toBe(4));\n";
const SOURCE: &str = "/** Twice a number. */\nexport default function double(args: { n: number }): number {\n  \
                      return args.n * 2;\n}\n";

/// A host with a server of its own.
pub struct McpHost {
    pub project: Project,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl McpHost {
    pub fn start(project: Project, arguments: &[&str]) -> Self {
        let mut host = Self::silent(project, arguments);
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a test", "version": "1" },
        });
        let answer = host.request("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tgp", "{answer}");
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    /// Before any message.
    pub fn silent(project: Project, arguments: &[&str]) -> Self {
        let mut command = project.command(&[&["mcp"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { project, child, input, output, next: 1 }
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message. Every line that the program prints is one.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    pub fn begin(&mut self, method: &str, parameters: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        id
    }

    pub fn request(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.begin(method, parameters);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Calls a tool: whether it failed, and its text. A slow machine answers with a handle first.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let mut answer = self.call_once(tool, arguments);
        while let Some(run) = handle(&answer.1) {
            answer = self.call_once("wait", &json!({ "run": run }));
        }
        answer
    }

    fn call_once(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (result["isError"] == true, text.to_owned())
    }

    /// The result of a call that works.
    pub fn done(&mut self, tool: &str, arguments: &Value) -> Value {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "{tool} {arguments}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// The error of a call that does not.
    pub fn error(&mut self, tool: &str, arguments: &Value) -> Value {
        let (failed, text) = self.call(tool, arguments);
        assert!(failed, "{tool} {arguments}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Closes the server's input, and waits for its end.
    pub fn close(mut self) -> (Project, Option<i32>) {
        drop(self.input.take());
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (self.project, status.code());
            }
            assert!(start.elapsed() < Duration::from_secs(20), "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The handle of a run that goes on.
fn handle(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value["state"] == "running").then(|| value["run"].as_str().unwrap().to_owned())
}

#[test]
fn a_host_forges_a_tool_and_runs_it_by_its_name() {
    let mut host = McpHost::start(Project::initialised(), &["--yes"]);
    let listed = host.request("tools/list", &json!({}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["search", "describe", "run", "forge", "wait", "approval", "graph"]);

    let forge = json!({ "name": "math/double", "test": TEST, "source": SOURCE });
    let forged = host.done("forge", &forge);
    assert_eq!(forged["tool"], "math/double", "{forged}");
    assert_eq!(forged["red"]["failed"], 1);
    assert_eq!(forged["green"], json!({ "passed": 1, "failed": 0 }));

    for name in ["math/double", "tools/math/double.ts", "double"] {
        let ran = host.done("run", &json!({ "tool": name, "args": { "n": 21 } }));
        assert_eq!(ran["result"], 42, "{name}: {ran}");
    }
    let found = host.done("search", &json!({ "query": "twice a number" }));
    assert_eq!(found["tools"][0]["tool"], "math/double", "{found}");
    let described = host.done("describe", &json!({ "tools": ["math/double", "exec_sql"], "source": true }));
    assert_eq!(described["tools"][0]["signature"], "(args: { n: number }) => number", "{described}");
    assert_eq!(described["tools"][0]["source"], SOURCE);
    assert_eq!(described["tools"][1]["tool"], "exec_sql");

    let spaced = host.error("forge", &json!({ "name": "math/double it", "test": TEST, "source": SOURCE }));
    assert_eq!(spaced["code"], "EVALIDATION", "{spaced}");
    let test = TEST.replace("./double.ts", "./twice.ts").replace("double", "twice");
    let source = SOURCE.replace("double", "twice");
    let twin = host.error("forge", &json!({ "name": "math/twice", "test": test, "source": source }));
    assert_eq!(twin["code"], "EPOLICY", "{twin}");
    let help = twin["details"]["help"].as_str().unwrap();
    assert!(
        help.contains("`run`") && help.contains("override_similar: [\"tools/math/double.ts\"]"),
        "{help}"
    );
    // A test that shows nothing new is no reason for a new source.
    let again = host.error("forge", &forge);
    assert_eq!(again["code"], "ESTATE", "{again}");
    assert_eq!(again["details"]["step"], "red");

    let (project, code) = host.close();
    assert_eq!(code, Some(0));
    let log = project.run(&["audit", "tail", "-n", "50"]).expect_code(0);
    assert!(log.stdout.contains("exec_tool") && log.stdout.contains("token_mint"), "{}", log.stdout);
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn bug_a_test_that_cannot_run_trapped_forge() {
    let mut host = McpHost::start(Project::initialised(), &["--yes"]);
    for (broken, words) in [
        (TEST.replace("toBe(4));", "toBe(4);"), "expected"),
        ("x\n".to_owned(), "x is not defined"),
        ("export const y = 1;\n".to_owned(), "has no tests"),
    ] {
        let error = host.error("forge", &json!({ "name": "math/double", "test": broken, "source": SOURCE }));
        assert_eq!((&error["code"], &error["details"]["step"]), (&json!("ESTATE"), &json!("red")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert!(!host.project.file(".tgp/tools/math/double.ts").exists(), "the source was stored");
    }
    // A wrong test is corrected over a source that is right.
    let wrong = TEST.replace("toBe(4)", "toBe(5)");
    let error = host.error("forge", &json!({ "name": "math/double", "test": wrong, "source": SOURCE }));
    assert_eq!(error["details"]["step"], "green", "{error}");
    let forged = host.done("forge", &json!({ "name": "math/double", "test": TEST, "source": SOURCE }));
    assert_eq!(forged["green"], json!({ "passed": 1, "failed": 0 }), "{forged}");
    for name in ["../double", "/double", "math/../../double", "math//double", ".hidden"] {
        let error = host.error("forge", &json!({ "name": name, "test": TEST, "source": SOURCE }));
        assert_eq!(error["code"], "EVALIDATION", "{name}: {error}");
    }
    let error = host.error("run", &json!({ "tool": "exec_sq", "args": {} }));
    assert!(error["details"]["help"].as_str().unwrap().contains("did you mean `exec_sql`"), "{error}");
    host.close();
}

#[test]
fn a_program_runs_without_being_stored() {
    let mut host = McpHost::start(Project::with_fixtures(), &["--yes"]);
    let ran = host.done("run", &json!({ "code": "return args.a + 1;", "args": { "a": 41 } }));
    assert_eq!(ran["result"], 42, "{ran}");
    let code = "const rows = await tgp.exec_sql('SELECT 6 * 7 AS n');\nconsole.log('asked');\nreturn rows;";
    let ran = host.done("run", &json!({ "code": code }));
    assert!(ran["result"].to_string().contains("42"), "{ran}");
    assert_eq!(ran["logs"][0]["text"], "asked");
    // What it writes in a dry run is undone.
    let code = "await tgp.exec_sql('CREATE TABLE t (n INTEGER)'); return 1;";
    let ran = host.done("run", &json!({ "code": code, "dry_run": true }));
    assert_eq!(ran["dry_run"], true);
    let error = host.error("run", &json!({ "tool": "exec_sql", "args": { "sql": "SELECT * FROM t" } }));
    assert_eq!(error["code"], "ESQL", "{error}");
    // The error of a program names its line.
    let error = host.error("run", &json!({ "code": "const a = 1;\nthrow new Error('no');" }));
    assert_eq!(error["details"]["place"]["line"], 2, "{error}");
    let (project, _) = host.close();
    assert!(!project.run(&["list"]).expect_code(0).stdout.contains("code-"), "the program was stored");
}

#[test]
fn what_a_host_may_not_do_is_refused_with_the_next_step() {
    let mut host = McpHost::start(Project::with_fixtures(), &[]);
    // Everything but a read needs a person.
    let error = host.error("run", &json!({ "code": "return 1;" }));
    assert_eq!(error["code"], "EAPPROVAL", "{error}");
    let id = error["details"]["needs_approval"]["id"].as_str().unwrap_or_else(|| panic!("{error}"));
    assert!(error["details"]["help"].as_str().unwrap().contains(&format!("tgp approve {id}")), "{error}");
    let status = host.done("approval", &json!({}));
    assert_eq!(
        (&status["approvals"][0]["id"], &status["approvals"][0]["state"]),
        (&json!(id), &json!("pending"))
    );
    assert_eq!(host.error("approval", &json!({ "id": "x" }))["code"], "ENOTFOUND");
    // Files and commands are off, by the token of the connection.
    for (tool, args, option) in [
        ("fs_read", json!({ "path": "tgp.config.ts" }), "--files"),
        ("shell_exec", json!({ "command": "id" }), "--shell"),
    ] {
        let error = host.error("run", &json!({ "tool": tool, "args": args }));
        assert_eq!(error["code"], "EPOLICY", "{error}");
        assert!(error["details"]["help"].as_str().unwrap().contains(option), "{error}");
    }
    // Arguments that do not fit.
    assert_eq!(host.error("run", &json!({ "tool": "a", "code": "b" }))["code"], "EVALIDATION");
    assert_eq!(host.error("search", &json!({ "words": "x" }))["code"], "EVALIDATION");
    assert_eq!(host.error("describe", &json!({ "tools": ["nothing/here"] }))["code"], "ENOTFOUND");
    let unknown = host.request("tools/call", &json!({ "name": "serach", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("did you mean `search`"), "{unknown}");
    let (_, code) = host.close();
    assert_eq!(code, Some(0));

    let mut host = McpHost::start(Project::with_fixtures(), &["--files"]);
    let text = host.done("run", &json!({ "tool": "fs_read", "args": { "path": "tgp.config.ts" } }));
    assert!(text.to_string().contains("export default"), "{text}");
    // New code needs a test that was seen to fail, which this server cannot run.
    let write = json!({ "path": "src/new.ts", "content": "export const a = 1;\n" });
    let error = host.error("run", &json!({ "tool": "fs_write", "args": write }));
    assert_eq!(error["code"], "ESTATE", "{error}");
    assert!(error["details"]["help"].as_str().unwrap().contains("--files --shell"), "{error}");
    host.close();
}

#[test]
fn messages_that_are_none_do_not_end_the_connection() {
    let mut host = McpHost::start(Project::initialised(), &[]);
    host.send(&json!({ "jsonrpc": "2.0", "id": 900, "method": 7 }));
    assert!(host.receive()["error"]["code"].is_number());
    let deep = "[".repeat(200) + &"]".repeat(200);
    writeln!(host.input.as_mut().unwrap(), r#"{{"jsonrpc":"2.0","id":901,"method":"ping","params":{deep}}}"#)
        .unwrap();
    let refused = host.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(901), &json!(-32600)), "{refused}");
    let large = "x".repeat(5 << 20);
    host.send(&json!({ "jsonrpc": "2.0", "id": 902, "method": "ping", "params": { "x": large } }));
    assert!(host.receive()["error"]["message"].as_str().unwrap().contains("bytes"));
    assert!(host.request("ping", &json!({}))["result"].is_object());
    host.close();
}

#[test]
fn an_endless_run_is_cancelled_and_a_long_answer_is_read_in_parts() {
    let mut host = McpHost::start(Project::initialised(), &["--yes"]);
    let endless = json!({ "code": "while (true) { await new Promise((done) => setTimeout(done, 5)); }" });
    let id = host.begin("tools/call", &json!({ "name": "run", "arguments": endless }));
    std::thread::sleep(Duration::from_millis(500));
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    host.send(&cancelled);
    let start = Instant::now();
    assert!(host.request("ping", &json!({}))["result"].is_object());
    // Its call is recorded as cancelled, long before its own limit.
    loop {
        let read = host.request("resources/read", &json!({ "uri": "tgp://audit" }));
        let text =
            read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}")).to_owned();
        if text.contains("\"cancelled\"") {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = host.request(
        "tools/call",
        &json!({ "name": "run", "arguments": { "code": "return 'y'.repeat(60000);" } }),
    );
    let content = answer["result"]["content"].as_array().unwrap().clone();
    assert_eq!(content[2]["type"], "resource_link", "{}", content[1]);
    let note = content[1]["text"].as_str().unwrap();
    let cursor = note.split("\"cursor\": \"").nth(1).unwrap().split('"').next().unwrap();
    let (failed, next) = host.call("wait", &json!({ "cursor": cursor }));
    assert!(!failed && next.contains("yyyy"));
    let whole = host.request("resources/read", &json!({ "uri": content[2]["uri"] }));
    assert!(whole["result"]["contents"][0]["text"].as_str().unwrap().len() > 60_000);
    host.close();
}

#[test]
fn a_long_run_is_answered_with_a_handle_and_reports_its_progress() {
    let mut host = McpHost::start(Project::initialised(), &["--yes", "--patience", "6"]);
    let slow = json!({ "code": "await new Promise((done) => setTimeout(done, 8000)); return 'late';" });
    let call = json!({ "name": "run", "arguments": slow, "_meta": { "progressToken": "p1" } });
    let id = host.begin("tools/call", &call);
    let progress = host.receive();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], "p1");
    let answer = host.receive();
    assert_eq!(answer["id"], id, "{answer}");
    let run = handle(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let done = host.done("wait", &json!({ "run": run }));
    assert_eq!(done["result"], "late", "{done}");
    assert_eq!(host.error("wait", &json!({ "run": run }))["code"], "ENOTFOUND");
    // Another one is cancelled by its handle.
    let id = host.begin("tools/call", &json!({ "name": "run", "arguments": slow }));
    let answer = host.receive();
    assert_eq!(answer["id"], id, "{answer}");
    let run = handle(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(host.done("wait", &json!({ "run": run, "cancel": true }))["state"], "cancelled");
    host.close();
}

#[test]
fn a_hundred_calls_at_once_are_answered_each() {
    let mut host = McpHost::start(Project::with_fixtures(), &["--yes"]);
    let ids: Vec<u64> = (0..100)
        .map(|n| {
            let arguments = json!({ "code": "return args.n * 2;", "args": { "n": n } });
            host.begin("tools/call", &json!({ "name": "run", "arguments": arguments }))
        })
        .collect();
    let mut texts = std::collections::BTreeMap::new();
    while texts.len() < ids.len() {
        let message = host.receive();
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
        texts.insert(message["id"].as_u64().unwrap(), text.to_owned());
    }
    let mut answers = std::collections::BTreeMap::new();
    for (id, mut text) in texts {
        while let Some(run) = handle(&text) {
            text = host.call_once("wait", &json!({ "run": run })).1;
        }
        let value: Value = serde_json::from_str(&text).unwrap();
        answers.insert(id, value["result"].clone());
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(answers[id], json!(n * 2));
    }
    host.close();
}

#[test]
fn a_host_that_disappears_leaves_nothing_behind() {
    let mut host = McpHost::start(Project::initialised(), &["--yes"]);
    let endless = json!({ "code": "while (true) { await new Promise((done) => setTimeout(done, 5)); }" });
    host.begin("tools/call", &json!({ "name": "run", "arguments": endless }));
    std::thread::sleep(Duration::from_millis(300));
    let (project, code) = host.close();
    assert_eq!(code, Some(0));
    project.assert_clean();
    let log = project.run(&["audit", "tail"]).expect_code(0);
    assert!(log.stdout.contains("exec_code"), "{}", log.stdout);
}

#[test]
fn the_other_modes_have_their_own_tools() {
    let names = |host: &mut McpHost| -> Vec<String> {
        let listed = host.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut host = McpHost::start(Project::initialised(), &["--mode", "search", "--yes"]);
    assert_eq!(names(&mut host), ["search", "describe", "invoke", "wait", "approval"]);
    let ran = host.done("invoke", &json!({ "tool": "exec_sql", "args": { "sql": "SELECT 1 AS n" } }));
    assert_eq!(ran["rows"][0]["n"], 1, "{ran}");
    let unknown = host.request("tools/call", &json!({ "name": "math_fib", "arguments": {} }));
    let unknown = unknown["error"]["message"].as_str().unwrap().to_owned();
    assert!(unknown.contains("`invoke`") && !unknown.contains("`run`"), "{unknown}");
    host.close();
    // What a model is told names the tools of the mode, and no others.
    for (mode, named, missing) in [
        (&["--mode", "code"][..], "`run`", "`invoke`"),
        (&["--mode", "search"], "`invoke`", "`run`"),
        (&["--mode", "direct", "--only", "exec_sql"], "own name", "`run`"),
    ] {
        let mut host = McpHost::silent(Project::initialised(), mode);
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
        });
        let told = host.request("initialize", &hello)["result"]["instructions"].as_str().unwrap().to_owned();
        assert!(told.contains(named) && !told.contains(missing), "{mode:?}: {told}");
    }

    let project = Project::initialised();
    project.run_with_input(&["write", "tools/math/double.ts"], SOURCE).expect_code(0);
    let only = "math/double,exec_sql,not/there/yet";
    let mut host = McpHost::start(project, &["--mode", "direct", "--only", only, "--yes"]);
    assert_eq!(names(&mut host), ["wait", "approval", "exec_sql", "math_double"]);
    let ran = host.done("math_double", &json!({ "n": 4 }));
    assert_eq!(ran["result"], 8, "{ran}");
    assert_eq!(host.error("math_double", &json!({ "n": "four" }))["code"], "EVALIDATION");
    host.close();

    let project = Project::initialised();
    let ran = project.run_with_input(&["mcp", "--mode", "direct", "--only", "exec_sqk"], "").expect_code(2);
    assert!(ran.stderr.contains("did you mean `exec_sql`"), "{}", ran.stderr);
}

#[test]
fn resources_and_prompts_are_router_calls() {
    let mut host = McpHost::start(Project::with_fixtures(), &[]);
    let listed = host.request("resources/list", &json!({}));
    assert!(listed.to_string().contains("tgp://audit"), "{listed}");
    let missing = host.request("resources/read", &json!({ "uri": "tgp://source/tools/none.ts" }));
    assert!(missing["error"]["data"]["code"] == "ENOTFOUND", "{missing}");
    let outside = host.request("resources/read", &json!({ "uri": "tgp://source/../tgp.config.ts" }));
    assert!(outside.get("error").is_some(), "{outside}");
    let prompts = host.request("prompts/list", &json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "forge_tool");
    let asked = json!({ "name": "forge_tool", "arguments": { "task": "sort names" } });
    let prompt = host.request("prompts/get", &asked);
    assert!(prompt.to_string().contains("sort names"), "{prompt}");
    let audit = host.request("resources/read", &json!({ "uri": "tgp://audit" }));
    let text = audit["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"search\"") && text.contains("\"read_file\""), "{text}");
    host.close();
}
