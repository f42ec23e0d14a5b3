//! `tgp serve --stdio`: the protocol of the SDKs, as docs/protocol.md describes it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::project::Project;

/// A host that has started a kernel.
pub(crate) struct Host {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Host {
    pub(crate) fn start(project: &Project) -> Self {
        let mut command = project.command(&["serve", "--stdio"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// A host whose kernel has booted with these parameters.
    pub(crate) fn booted(project: &Project, host: &Value) -> Self {
        let mut started = Self::start(project);
        let client = json!({ "name": "shop", "version": "1" });
        let answer = started.ask(
            "initialize",
            &json!({ "protocolVersion": 1, "client": client, "host": host }),
            &mut |method, _| panic!("{method}"),
        );
        assert_eq!(answer["result"]["session"], "host/shop", "{answer}");
        started
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(message.to_string().as_bytes());
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Sends a request and gives its answer; `serve` answers what the kernel asks meanwhile.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        params: &Value,
        serve: &mut dyn FnMut(&str, &Value) -> Value,
    ) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        loop {
            let message = self.receive().expect("an answer");
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(id)) => {
                    let mut answer = serve(method, &message["params"]);
                    answer["jsonrpc"] = json!("2.0");
                    answer["id"] = id.clone();
                    self.send(&answer);
                }
                (Some(method), None) => {
                    serve(method, &message["params"]);
                }
                (None, _) => return message,
            }
        }
    }

    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        serve: &mut dyn FnMut(&str, &Value) -> Value,
    ) -> Value {
        let answer = self.ask("tools/call", &json!({ "tool": tool, "arguments": arguments }), serve);
        answer["result"].clone()
    }

    pub(crate) fn end(mut self) {
        let answer = self.ask("shutdown", &Value::Null, &mut |_, _| json!({ "result": {} }));
        assert_eq!(answer["result"], json!({}));
        assert!(self.receive().is_none(), "it says nothing more");
        assert!(self.child.wait().unwrap().success());
    }
}

pub(crate) fn nothing(method: &str, params: &Value) -> Value {
    panic!("the kernel asks for {method}: {params}")
}

fn fib(n: u32) -> Value {
    json!({ "path": "tools/math/fib.ts", "args": { "n": n } })
}

#[test]
fn a_host_boots_lists_calls_and_ends() {
    let project = Project::with_fixtures();
    let mut host = Host::booted(&project, &json!({}));
    let listed = host.ask("tools/list", &Value::Null, &mut nothing);
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let exec = tools.iter().find(|tool| tool["name"] == "exec_tool").unwrap();
    assert_eq!(
        (exec["effect"].as_str(), exec["inputSchema"]["type"].as_str()),
        (Some("execute"), Some("object"))
    );
    assert_eq!(host.call("exec_tool", &fib(10), &mut nothing)["data"]["result"], 55);
    let failed = host.call("exec_tool", &json!({ "path": "tools/none.ts" }), &mut nothing);
    assert_eq!((failed["ok"].as_bool(), failed["error"]["code"].as_str()), (Some(false), Some("ENOTFOUND")));
    let prompt = host.ask("prompt/get", &Value::Null, &mut nothing);
    assert!(prompt["result"]["prompt"].as_str().unwrap().contains("The project is `here`"), "{prompt}");
    host.end();
    let audit = project.run(&["audit", "tail", "--json"]).expect_code(0).stdout;
    assert!(audit.contains("host/shop"), "{audit}");
}

#[test]
fn what_is_no_message_is_answered_and_the_connection_continues() {
    let project = Project::with_fixtures();
    let mut host = Host::start(&project);
    let cases: [(&str, i64); 8] = [
        ("garbage", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32002),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/none"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":9,"client":{"name":"a","version":"1"}}}"#,
            -32000,
        ),
    ];
    for (line, code) in cases {
        host.line(line.as_bytes());
        let answer = host.receive().unwrap();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    // An answer to nothing is dropped.
    host.line(br#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    host.line(deep.as_bytes());
    assert_eq!(host.receive().unwrap()["error"]["code"], -32600);
    host.end();
}

#[test]
fn a_line_that_is_too_long_ends_the_process() {
    let project = Project::with_fixtures();
    let mut host = Host::start(&project);
    host.line(&vec![b'x'; 17 << 20]);
    assert_eq!(host.receive().unwrap()["error"]["code"], -32700);
    assert!(host.receive().is_none());
    assert_eq!(host.child.wait().unwrap().code(), Some(2));
}

#[test]
fn the_end_of_the_host_ends_the_kernel_and_cancels_its_calls() {
    let project = Project::with_fixtures();
    project.write(
        ".tgp/tools/forever.ts",
        "/** Never ends. */\nexport default () => new Promise(() => setInterval(() => 0, 5));\n",
    );
    let mut host = Host::booted(&project, &json!({}));
    host.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "tool": "exec_tool", "arguments": { "path": "tools/forever.ts" } } }));
    // A call is under way once another one has been served after it.
    assert_eq!(host.call("exec_tool", &fib(5), &mut nothing)["data"]["result"], 5);
    drop(host.input.take());
    assert!(host.child.wait().unwrap().success());
    let audit = project.run(&["audit", "tail", "--json"]).expect_code(0).stdout;
    assert!(audit.contains("cancelled"), "{audit}");
}

#[test]
fn a_cancelled_call_is_answered() {
    let project = Project::with_fixtures();
    project.write(
        ".tgp/tools/forever.ts",
        "/** Never ends. */\nexport default () => new Promise(() => setInterval(() => 0, 5));\n",
    );
    let mut host = Host::booted(&project, &json!({}));
    host.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "tool": "exec_tool", "arguments": { "path": "tools/forever.ts" } } }));
    assert_eq!(host.call("exec_tool", &fib(5), &mut nothing)["data"]["result"], 5);
    host.send(&json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": 5 } }));
    let answer = host.receive().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["error"]["details"]["cancelled"]),
        (&json!(5), &json!(true)),
        "{answer}"
    );
    host.end();
}

#[test]
fn the_host_is_asked_for_approval_and_its_answer_holds() {
    let project = Project::with_fixtures();
    let mut host = Host::booted(&project, &json!({ "consent": "effects", "approves": true }));
    let write = |text: &str| json!({ "path": "notes.md", "content": text });
    let mut asked = Vec::new();
    let agreed = host.call("fs_write", &write("yes"), &mut |method, params| {
        asked.push((method.to_owned(), params["tool"].clone(), params["effect"].clone()));
        json!({ "result": { "approved": true, "by": "ann" } })
    });
    assert_eq!(agreed["ok"], true, "{agreed}");
    assert_eq!(asked, [("host/approve".to_owned(), json!("fs_write"), json!("write"))]);
    let refused = host.call(
        "fs_write",
        &write("no"),
        &mut |_, _| json!({ "result": { "approved": false, "reason": "not today" } }),
    );
    assert_eq!(refused["error"]["code"], "EAPPROVAL", "{refused}");
    assert!(refused.to_string().contains("not today"), "{refused}");
    // A host that fails has agreed to nothing.
    let failed = host.call(
        "fs_write",
        &write("no"),
        &mut |_, _| json!({ "error": { "code": 1, "message": "broken" } }),
    );
    assert_eq!(failed["error"]["code"], "EAPPROVAL", "{failed}");
    // Whatever it adds to its error.
    for data in [json!("text"), json!({ "code": "ENOSUCHCODE", "message": "x" }), json!([1]), Value::Null] {
        let failed = host.call(
            "fs_write",
            &write("no"),
            &mut |_, _| json!({ "error": { "code": 1, "message": "broken", "data": data } }),
        );
        assert_eq!(failed["error"]["code"], "EAPPROVAL", "{failed}");
    }
    assert_eq!(project.read("notes.md"), "yes");
    host.end();
}

#[test]
fn the_host_executes_sql_in_transactions_of_the_run() {
    let project = Project::with_fixtures();
    project.write(
        ".tgp/tools/pay.ts",
        "/** Pays. */\nexport default async (args: { fails?: boolean }): Promise<unknown> => {\n  \
         await tgp.exec_sql('INSERT INTO paid VALUES (:amount)', { amount: 5 });\n  \
         if (args.fails) throw new Error('no');\n  \
         return await tgp.exec_sql('SELECT count(*) AS n FROM paid');\n};\n",
    );
    let sql = json!({ "dialect": "sqlite", "transactions": true, "readOnly": true, "savepoints": true });
    let mut host = Host::booted(&project, &json!({ "sql": sql }));
    let mut run = |arguments: Value| {
        let mut seen = Vec::new();
        let result = host.call("exec_tool", &arguments, &mut |method, params| {
            seen.push(match method {
                "host/sql/execute" => format!("{} {}", params["sql"].as_str().unwrap(), params["parameters"]),
                "host/sql/end" => format!("end {}", params["commit"]),
                "host/sql/savepoint" => return json!({ "result": {} }),
                other => format!("{other} {}", params["readOnly"]),
            });
            json!({ "result": if method == "host/sql/execute" {
                json!({ "columns": ["n"], "rows": [{ "n": 1 }], "changed": 1 })
            } else {
                json!({})
            } })
        });
        (result, seen)
    };
    let (done, seen) = run(json!({ "path": "tools/pay.ts", "args": {} }));
    assert_eq!(done["data"]["result"], json!([{ "n": 1 }]), "{done}");
    assert_eq!(
        seen,
        [
            "host/sql/begin false",
            "INSERT INTO paid VALUES (?) [5]",
            "SELECT count(*) AS n FROM paid []",
            "end true"
        ]
    );
    let (failed, seen) = run(json!({ "path": "tools/pay.ts", "args": { "fails": true } }));
    assert_eq!(failed["ok"], false, "{failed}");
    assert_eq!(seen, ["host/sql/begin false", "INSERT INTO paid VALUES (?) [5]", "end false"]);
    host.end();
}

#[test]
fn a_host_without_read_only_transactions_makes_every_statement_a_write() {
    let project = Project::with_fixtures();
    let sql = json!({ "dialect": "sqlite", "transactions": false });
    let mut host = Host::booted(&project, &json!({ "sql": sql, "consent": "effects", "approves": true }));
    let mut asked = 0;
    let done = host.call("exec_sql", &json!({ "sql": "SELECT 1 AS n" }), &mut |method, _| {
        asked += i32::from(method == "host/approve");
        match method {
            "host/approve" => json!({ "result": { "approved": true } }),
            "host/sql/execute" => json!({ "result": { "columns": ["n"], "rows": [{ "n": 1 }] } }),
            other => panic!("{other}"),
        }
    });
    assert_eq!((done["data"]["rows"][0]["n"].as_i64(), asked), (Some(1), 1), "{done}");
    host.end();
}

/// A rollback of the host's database may be none, so nothing of a write is tried before it is agreed to.
#[test]
fn no_write_reaches_the_database_of_a_host_before_it_is_approved() {
    let project = Project::with_fixtures();
    for transactions in [false, true] {
        let sql = json!({ "dialect": "sqlite", "transactions": transactions, "readOnly": true });
        let mut host = Host::booted(&project, &json!({ "sql": sql, "consent": "effects", "approves": true }));
        let write = json!({ "sql": "DELETE FROM orders" });
        let refused = host.call("exec_sql", &write, &mut |method, _| match method {
            "host/approve" => json!({ "result": { "approved": false } }),
            other => panic!("{other} before the approval"),
        });
        assert_eq!(refused["error"]["code"], "EAPPROVAL", "{refused}");
        // A dry run asks, too; without transactions it could not undo the statement.
        let params = json!({ "tool": "exec_sql", "arguments": write, "dryRun": true });
        let mut seen = Vec::new();
        let dry = host.ask("tools/call", &params, &mut |method, params| {
            seen.push(format!("{method} {}", params["commit"]));
            json!({ "result": if method == "host/approve" { json!({ "approved": true }) } else { json!({}) } })
        });
        let outcome = &dry["result"]["error"]["code"];
        if transactions {
            assert_eq!(
                (outcome, seen.last().map(String::as_str)),
                (&Value::Null, Some("host/sql/end false")),
                "{dry}"
            );
        } else {
            assert_eq!(
                (outcome, seen.as_slice()),
                (&json!("EPERMISSION"), ["host/approve null".to_owned()].as_slice())
            );
        }
        host.end();
    }
}

#[test]
fn the_host_takes_the_log() {
    let project = Project::with_fixtures();
    let mut host = Host::start(&project);
    let mut lines = Vec::new();
    let client = json!({ "name": "shop", "version": "1" });
    host.ask(
        "initialize",
        &json!({ "protocolVersion": 1, "client": client, "host": { "log": "debug" } }),
        &mut |method, params| {
            assert_eq!(method, "log");
            lines.push(params.clone());
            Value::Null
        },
    );
    assert!(lines.iter().any(|line| line["target"] == "kernel" && line["level"] == "debug"), "{lines:?}");
    host.end_with_log();
}

impl Host {
    fn end_with_log(mut self) {
        drop(self.input.take());
        while self.receive().is_some() {}
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_session_streams_its_events() {
    let project = Project::with_fixtures();
    let turns = json!([[{ "type": "text", "value": "All done." }]]);
    project.write("turns.json", &turns.to_string());
    let mut host = Host::booted(&project, &json!({}));
    let mut kinds = Vec::new();
    let task = json!({ "task": "say something", "provider": "script:turns.json" });
    let answer = host.ask("session/run", &task, &mut |method, params| {
        assert_eq!((method, &params["request"]), ("session/event", &json!("session/run")));
        kinds.push(params["event"]["type"].as_str().unwrap().to_owned());
        Value::Null
    });
    assert_eq!(kinds.first().map(String::as_str), Some("session"), "{answer} {kinds:?}");
    assert_eq!(answer["result"]["summary"]["answer"], "All done.", "{answer}");
    host.end();
}

/// A host that makes a call agrees to it; a model that makes one has agreed to nothing.
#[test]
fn bug_the_effects_of_a_session_were_not_asked_for() {
    let project = Project::with_fixtures();
    let write = |path: &str| json!({ "type": "tool_call", "toolName": "fs_write", "callId": "1", "arguments": { "path": path, "content": "hi" } });
    let done = json!([{ "type": "text", "value": "Done." }]);
    for (consent, file, is_asked) in
        [(None, "a.md", true), (Some("effects"), "b.md", true), (Some("rules"), "c.md", false)]
    {
        project.write("turns.json", &json!([[write(file)], done]).to_string());
        let mut host = Host::booted(&project, &json!({ "approves": true }));
        let mut task = json!({ "task": "write", "provider": "script:turns.json" });
        if let Some(consent) = consent {
            task["consent"] = json!(consent);
        }
        let mut asked = Vec::new();
        host.ask("session/run", &task, &mut |method, params| {
            if method == "host/approve" {
                asked.push(params["tool"].clone());
            }
            json!({ "result": { "approved": true } })
        });
        assert_eq!(asked, if is_asked { vec![json!("fs_write")] } else { vec![] }, "{consent:?}");
        assert_eq!(project.read(file), "hi");
        host.end();
    }
}

/// The host runs a statement as it is, so one about transactions would have ended that of the run.
#[test]
fn bug_a_tool_could_commit_the_transaction_of_a_host() {
    let project = Project::with_fixtures();
    for (dialect, refused) in [
        (
            "sqlite",
            &["COMMIT", "end", "BEGIN", "SAVEPOINT a", "ATTACH 'x.db' AS x", "PRAGMA writable_schema = 1"][..],
        ),
        (
            "postgresql",
            &["COMMIT", "ROLLBACK", "PREPARE TRANSACTION 'a'", "SET ROLE root", "COPY a TO PROGRAM 'id'"],
        ),
        (
            "mysql",
            &[
                "COMMIT",
                "START TRANSACTION",
                "SET autocommit = 1",
                "LOAD DATA INFILE 'a' INTO TABLE b",
                "XA START 'a'",
            ],
        ),
    ] {
        let sql = json!({ "dialect": dialect, "transactions": true, "readOnly": true, "savepoints": true });
        let mut host = Host::booted(&project, &json!({ "sql": sql }));
        for statement in refused {
            let mut executed = Vec::new();
            let answer = host.call("exec_sql", &json!({ "sql": statement }), &mut |method, params| {
                executed.push((method.to_owned(), params["sql"].clone()));
                json!({ "result": {} })
            });
            assert_eq!(answer["error"]["code"], "ESQL", "{dialect} {statement}: {answer}");
            assert!(
                !executed.iter().any(|(method, _)| method == "host/sql/execute"),
                "{statement}: {executed:?}"
            );
        }
        host.end();
    }
}

/// MySQL commits at a definition: what a run does could not be undone any more, so it is a call of its own.
#[test]
fn bug_a_definition_sealed_what_a_run_had_written() {
    let project = Project::with_fixtures();
    let sql = json!({ "dialect": "mysql", "transactions": true, "readOnly": true, "savepoints": true });
    let mut host = Host::booted(&project, &json!({ "sql": sql }));
    let call = |host: &mut Host, tool: &str, arguments: &Value| {
        let mut made = Vec::new();
        let answer = host.call(tool, arguments, &mut |method, params| {
            let word = match method {
                "host/sql/begin" => "begin".to_owned(),
                "host/sql/execute" => params["sql"].as_str().unwrap().split(' ').next().unwrap().to_owned(),
                "host/sql/end" => if params["commit"] == true { "commit" } else { "rollback" }.to_owned(),
                _ => return json!({ "result": {} }),
            };
            made.push(word);
            json!({ "result": {} })
        });
        (answer, made.join(" "))
    };
    let insert = "await tgp.exec_sql('INSERT INTO a VALUES (1)');";
    let create = "await tgp.exec_sql('CREATE TABLE b (c INT)');";
    for (code, expected) in [
        (format!("{insert} {create} return 1;"), "begin INSERT rollback"),
        (format!("{create} return 1;"), ""),
    ] {
        let (answer, made) = call(&mut host, "exec_code", &json!({ "code": code }));
        assert!(answer.to_string().contains("would seal"), "{answer}");
        assert_eq!(made, expected, "{code}");
    }
    let (answer, made) = call(&mut host, "exec_sql", &json!({ "sql": "CREATE TABLE b (c INT)" }));
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(made, "begin CREATE commit");
    host.end();
}

/// Without a transaction around it, a statement may be in place although its answer cannot be read.
#[test]
fn bug_a_statement_without_an_answer_counted_as_undone() {
    let project = Project::with_fixtures();
    let sql = json!({ "dialect": "sqlite", "transactions": false });
    let mut host = Host::booted(&project, &json!({ "sql": sql }));
    let insert = json!({ "sql": "INSERT INTO a VALUES (1)" });
    let answer = host.call("exec_sql", &insert, &mut |_, _| json!({ "result": "nonsense" }));
    assert_eq!(answer["error"]["details"]["outcome"], "unknown", "{answer}");
    let answer =
        host.call("exec_sql", &insert, &mut |_, _| json!({ "error": { "code": 1, "message": "refused" } }));
    assert_eq!(answer["error"]["details"].get("outcome"), None, "{answer}");
    host.end();
}

/// A host that has begun a transaction when its call is cancelled would keep it, and the locks of it.
#[test]
fn bug_a_transaction_stayed_open_when_its_call_was_cancelled_while_it_began() {
    let project = Project::with_fixtures();
    let sql = json!({ "dialect": "sqlite", "transactions": true, "readOnly": true, "savepoints": true });
    let mut host = Host::booted(&project, &json!({ "sql": sql }));
    let call = json!({ "tool": "exec_sql", "arguments": { "sql": "INSERT INTO a VALUES (1)" } });
    host.send(&json!({ "jsonrpc": "2.0", "id": "first", "method": "tools/call", "params": call }));
    let begin = loop {
        let message = host.receive().expect("the beginning of a transaction");
        if message["method"] == "host/sql/begin" {
            break message;
        }
        let id = message.get("id").expect("a question before it");
        host.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "approved": true } }));
    };
    host.send(&json!({ "jsonrpc": "2.0", "method": "cancel", "params": { "id": "first" } }));
    let (mut is_cancelled, mut end) = (false, None);
    while !is_cancelled || end.is_none() {
        let message = host.receive().expect("an answer and the end of the transaction");
        is_cancelled |= message["id"] == "first" && message["result"]["ok"] == false;
        if message["method"] == "host/sql/end" {
            end = Some(message);
        }
    }
    let end = end.unwrap();
    assert_eq!(end["params"]["transaction"], begin["params"]["transaction"]);
    assert_eq!(end["params"]["commit"], false);
    // The host was faster than the cancellation.
    host.send(&json!({ "jsonrpc": "2.0", "id": begin["id"], "result": {} }));
    host.send(&json!({ "jsonrpc": "2.0", "id": end["id"], "result": {} }));
    host.end();
}
