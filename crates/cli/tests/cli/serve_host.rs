//! What the program around a kernel does for it: functions that forged tools import, and files that it keeps.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::project::Project;
use crate::serve_stdio::{Host, nothing};

const WELCOME: &str = "import { send } from 'host:mail';\n\
    /** Welcomes a person. */\n\
    export default async function welcome(args: { to: string }): Promise<unknown> { return send({ to: args.to }); }\n";

fn mail(effect: Option<&str>) -> Value {
    let mut function = json!({
        "module": "mail",
        "name": "send",
        "description": "Sends a mail.",
        "inputSchema": {
            "type": "object",
            "properties": { "to": { "type": "string" } },
            "required": ["to"],
            "additionalProperties": false,
        },
        "outputSchema": { "type": "object", "properties": { "id": { "type": "number" } }, "required": ["id"] },
    });
    if let Some(effect) = effect {
        function["effect"] = json!(effect);
    }
    function
}

/// A project whose tools can be written without a test.
fn exploring() -> Project {
    let project = Project::with_fixtures();
    project.explore();
    project.trust();
    project
}

fn with_mail(host: &Value) -> (Project, Host) {
    let project = exploring();
    let host = Host::booted(&project, host);
    (project, host)
}

fn write(host: &mut Host, path: &str, content: &str) {
    let written = host.call("write_file", &json!({ "path": path, "content": content }), &mut nothing);
    assert_eq!(written["ok"], true, "{written}");
}

fn welcome(to: &Value) -> Value {
    json!({ "path": "tools/welcome.ts", "args": { "to": to } })
}

#[test]
fn a_forged_tool_calls_a_function_of_the_host() {
    let (project, mut host) = with_mail(&json!({ "tools": [mail(Some("network"))] }));
    write(&mut host, "tools/welcome.ts", WELCOME);
    let mut asked = Vec::new();
    let sent = host.call("exec_tool", &welcome(&json!("ann")), &mut |method, params| {
        asked.push((method.to_owned(), params.clone()));
        json!({ "result": { "result": { "id": 7 } } })
    });
    assert_eq!(sent["data"]["result"], json!({ "id": 7 }), "{sent}");
    let expected = json!({ "module": "mail", "name": "send", "arguments": { "to": "ann" } });
    assert_eq!(asked, [("host/call".to_owned(), expected)]);
    // What the function says is what the tool fails with.
    let failed = host.call(
        "exec_tool",
        &welcome(&json!("eve")),
        &mut |_, _| json!({ "error": { "code": 1, "message": "eve gets no mail" } }),
    );
    assert!(failed["error"]["message"].as_str().unwrap().contains("eve gets no mail"), "{failed}");
    host.end();
    let types = project.read(".tgp/host.d.ts");
    assert!(types.contains("/** Sends a mail. Effect: network. */"), "{types}");
    assert!(
        types.contains("export function send(args: { to: string }): Promise<{ id: number }>;"),
        "{types}"
    );
    let audit = project.run(&["audit", "tail", "--json"]).expect_code(0).stdout;
    for expected in ["\"host_tool\"", "mail/send", "call_host", "\"network\""] {
        assert!(audit.contains(expected), "{expected}: {audit}");
    }
    // Without the program the module is missing, and the message says so.
    let alone = project.run(&["exec", "tools/welcome.ts", "--args", "{\"to\":\"ann\"}"]).expect_code(1);
    assert!(alone.stderr.contains("no program offers functions to this kernel"), "{}", alone.stderr);
    assert!(project.run(&["sync"]).expect_code(0).stdout.find("host.d.ts").is_none());
}

#[test]
fn functions_of_the_host_are_judged_like_everything_else() {
    let (project, mut host) = with_mail(&json!({ "tools": [mail(None)] }));
    write(&mut host, "tools/welcome.ts", WELCOME);
    // Arguments that do not fit never reach the host.
    let code = "import { send } from 'host:mail';\nreturn send({ to: 5 });";
    let wrong = host.call("exec_code", &json!({ "code": code }), &mut nothing);
    assert_eq!(wrong["error"]["code"], "EVALIDATION", "{wrong}");
    assert!(wrong.to_string().contains("host:mail/send"), "{wrong}");
    // A dry run calls nothing.
    let dry = host.ask(
        "tools/call",
        &json!({ "tool": "exec_tool", "arguments": welcome(&json!("ann")), "dryRun": true }),
        &mut nothing,
    );
    assert!(dry.to_string().contains("a dry run changes nothing"), "{dry}");
    for (module, name) in [("mail", "sent"), ("post", "send")] {
        let code = format!("import {{ {name} }} from 'host:{module}';\nreturn {name}({{}});");
        let missing = host.call("exec_code", &json!({ "code": code }), &mut nothing);
        assert_eq!(missing["ok"], false, "{missing}");
        let direct = json!({ "module": module, "name": name });
        let missing = host.call("call_host", &direct, &mut nothing);
        assert_eq!(missing["error"]["code"], "ENOTFOUND", "{missing}");
    }
    host.end();
    project.write(
        ".tgp/policy/no-mail.yaml",
        "version: 1\nrules:\n  - id: no-mail\n    effect: deny\n    where: {target: 'host:mail/*'}\n    reason: no mail today\n",
    );
    let mut host = Host::booted(&project, &json!({ "tools": [mail(Some("read"))] }));
    let denied = host.call("exec_tool", &welcome(&json!("ann")), &mut nothing);
    assert_eq!(denied["error"]["code"], "EPOLICY", "{denied}");
    assert!(denied.to_string().contains("no mail today"), "{denied}");
    host.end();
}

#[test]
fn functions_that_cannot_be_modules_are_refused_before_the_boot() {
    let project = Project::with_fixtures();
    let function = |module: &str, name: &str| json!({ "module": module, "name": name });
    let many: Vec<Value> = (0..300).map(|number| function("many", &format!("f{number}"))).collect();
    let mut broken = function("mail", "send");
    broken["inputSchema"] = json!({ "type": "strnig" });
    for (tools, expected) in [
        (vec![function("Mail", "send")], "`Mail`"),
        (vec![function("mail", "send-it")], "`send-it`"),
        (vec![function("mail", "delete")], "`delete`"),
        (vec![function("mail", "send"), function("mail", "send")], "twice"),
        (many, "at most 256"),
        (vec![broken], "cannot be used"),
    ] {
        let mut host = Host::start(&project);
        let client = json!({ "name": "shop", "version": "1" });
        let params = json!({ "protocolVersion": 1, "client": client, "host": { "tools": tools } });
        let answer = host.ask("initialize", &params, &mut nothing);
        assert_eq!(answer["error"]["data"]["code"], "EVALIDATION", "{answer}");
        assert!(answer.to_string().contains(expected), "{expected}: {answer}");
        host.end();
    }
}

/// Files as a host keeps them.
#[derive(Default)]
struct Kept(BTreeMap<String, String>);

impl Kept {
    fn serve(&mut self, method: &str, params: &Value) -> Value {
        match method {
            "host/files/list" => {
                let entry = |(path, text): (&String, &String)| json!({ "path": path, "directory": false, "size": text.len() });
                json!({ "result": { "entries": self.0.iter().map(entry).collect::<Vec<_>>() } })
            }
            "host/files/read" => {
                let text = self.0.get(params["path"].as_str().unwrap());
                json!({ "result": { "content": text.map(|text| STANDARD.encode(text)) } })
            }
            "host/files/apply" => {
                for change in params["changes"].as_array().unwrap() {
                    let path = change["path"].as_str().unwrap().to_owned();
                    match change["content"].as_str() {
                        Some(text) => {
                            let bytes = STANDARD.decode(text).unwrap();
                            self.0.insert(path, String::from_utf8(bytes).unwrap());
                        }
                        None => {
                            self.0.remove(&path);
                        }
                    }
                }
                json!({ "result": {} })
            }
            other => panic!("{other}"),
        }
    }

    fn boot(&mut self, project: &Project) -> Host {
        let mut host = Host::start(project);
        let client = json!({ "name": "shop", "version": "1" });
        let params = json!({ "protocolVersion": 1, "client": client, "host": { "files": true } });
        let answer = host.ask("initialize", &params, &mut |method, params| self.serve(method, params));
        assert!(answer.get("result").is_some(), "{answer}");
        host
    }
}

const DOUBLE: &str = "/** Doubles a number. */\nexport default function double(args: { n: number }): number { return args.n * 2; }\n";

#[test]
fn the_host_keeps_the_files_of_the_tools() {
    let project = exploring();
    let mut kept = Kept::default();
    let mut host = kept.boot(&project);
    let double = json!({ "path": "tools/double.ts", "args": { "n": 4 } });
    let write = json!({ "path": "tools/double.ts", "content": DOUBLE });
    let written = host.call("write_file", &write, &mut |method, params| kept.serve(method, params));
    assert_eq!((&written["ok"], &written["data"]["created"]), (&json!(true), &json!(true)), "{written}");
    assert_eq!(kept.0.get("tools/double.ts").map(String::as_str), Some(DOUBLE));
    assert_eq!(host.call("exec_tool", &double, &mut nothing)["data"]["result"], 8);
    let found = host.call("search", &json!({ "query": "double a number" }), &mut nothing);
    assert!(found.to_string().contains("tools/double.ts"), "{found}");
    let patch = json!({ "path": "tools/double.ts", "search": "* 2", "replace": "* 3" });
    let patched = host.call("patch_file", &patch, &mut |method, params| kept.serve(method, params));
    assert_eq!(patched["ok"], true, "{patched}");
    assert_eq!(host.call("exec_tool", &double, &mut nothing)["data"]["result"], 12);
    // A host that refuses a write has not written, and the kernel has the old file.
    let refused = host.call(
        "patch_file",
        &json!({ "path": "tools/double.ts", "search": "* 3", "replace": "* 4" }),
        &mut |_, _| json!({ "error": { "code": 1, "message": "the disk is full" } }),
    );
    assert!(refused.to_string().contains("the disk is full"), "{refused}");
    assert_eq!(host.call("exec_tool", &double, &mut nothing)["data"]["result"], 12);
    // Neither the tools of the project nor those that need a disk are there.
    let other = json!({ "path": "tools/math/fib.ts", "args": { "n": 3 } });
    assert_eq!(host.call("exec_tool", &other, &mut nothing)["error"]["code"], "ENOTFOUND");
    for (tool, arguments) in [
        ("sync", json!({})),
        ("log", json!({})),
        ("shell_exec", json!({ "command": "true" })),
        ("test_run", json!({})),
        ("git_status", json!({})),
        ("git_log", json!({})),
        ("package_install", json!({})),
        ("graph_query", json!({ "query": "MATCH (f:File) RETURN f" })),
    ] {
        let answer = host.call(tool, &arguments, &mut nothing);
        assert_eq!(answer["error"]["code"], "ECAPABILITY", "{tool}: {answer}");
    }
    host.end();
    let mut again = kept.boot(&project);
    assert_eq!(again.call("exec_tool", &double, &mut nothing)["data"]["result"], 12);
    again.end();
    assert!(!project.file(".tgp/tools/double.ts").exists());
}

#[test]
fn files_that_no_repository_can_hold_are_refused() {
    let project = Project::with_fixtures();
    for (path, content) in [("../out.ts", "aGk="), ("/etc/passwd", "aGk="), ("tools/a.ts", "not base64 !")] {
        let mut host = Host::start(&project);
        let client = json!({ "name": "shop", "version": "1" });
        let params = json!({ "protocolVersion": 1, "client": client, "host": { "files": true } });
        let answer = host.ask("initialize", &params, &mut |method, _| match method {
            "host/files/list" => {
                json!({ "result": { "entries": [{ "path": path, "directory": false, "size": 2 }] } })
            }
            _ => json!({ "result": { "content": content } }),
        });
        assert_eq!(answer["error"]["data"]["code"], "EVALIDATION", "{path}: {answer}");
        host.end();
    }
}

/// Both sides count their requests from one, so a refusal with the number of the kernel's request was taken for the answer to a
/// request of the host, and the one that was meant waited for 30 s.
#[test]
fn bug_an_unreadable_answer_failed_another_request_of_the_host() {
    let (_project, mut host) = with_mail(&json!({ "tools": [mail(None)] }));
    write(&mut host, "tools/welcome.ts", WELCOME);
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"result":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"result":1e400}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
    ] {
        let params = json!({ "tool": "exec_tool", "arguments": welcome(&json!("ann")) });
        host.send(&json!({ "jsonrpc": "2.0", "id": "run", "method": "tools/call", "params": params }));
        let question = host.receive().unwrap();
        assert_eq!(question["method"], "host/call", "{question}");
        host.line(answer.replace("ID", &question["id"].to_string()).as_bytes());
        // The refusal of the line and the end of the run come in any order.
        let mut both = [host.receive().unwrap(), host.receive().unwrap()];
        both.sort_by_key(|message| !message["id"].is_null());
        let [refusal, failed] = both;
        assert!(refusal["id"].is_null() && refusal["error"]["code"].is_i64(), "{answer}: {refusal}");
        assert_eq!(failed["id"], "run", "{answer}: {failed}");
        assert!(failed.to_string().contains("cannot be read"), "{answer}: {failed}");
    }
    host.end();
}

/// A tool and its record hold several copies of what a function gives: a few such answers took gigabytes.
#[test]
fn bug_answers_of_host_functions_took_the_memory_of_the_kernel() {
    let (_project, mut host) = with_mail(&json!({ "tools": [mail(Some("network"))] }));
    write(&mut host, "tools/welcome.ts", WELCOME);
    let many = vec![json!({ "a": 1 }); 50_000];
    let failed =
        host.call("exec_tool", &welcome(&json!("ann")), &mut |_, _| json!({ "result": { "result": many } }));
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("it has more than 100000 values"), "{failed}");
    host.end();
}

#[test]
fn bug_an_error_of_a_host_function_did_not_name_it() {
    let (_project, mut host) = with_mail(&json!({ "tools": [mail(Some("network"))] }));
    write(&mut host, "tools/welcome.ts", WELCOME);
    let failed = host.call(
        "exec_tool",
        &welcome(&json!("eve")),
        &mut |_, _| json!({ "error": { "code": 1, "message": "eve gets no mail" } }),
    );
    assert_eq!(failed["error"]["message"], "`host:mail/send` failed: eve gets no mail", "{failed}");
    let help = failed["error"]["details"]["help"].as_str().unwrap_or_default();
    assert!(help.contains("the application defines `host:mail/send`"), "{failed}");
    // A next step of the application's own is kept.
    let data = json!({ "code": "EPERMISSION", "message": "not to eve", "details": { "help": "ask Ann" } });
    let call = json!({ "module": "mail", "name": "send", "arguments": { "to": "eve" } });
    let refused = host.call(
        "call_host",
        &call,
        &mut |_, _| json!({ "error": { "code": 1, "message": "not to eve", "data": data } }),
    );
    assert_eq!(refused["error"]["code"], "EPERMISSION", "{refused}");
    assert_eq!(refused["error"]["details"]["help"], "ask Ann", "{refused}");
    host.end();
}

#[test]
fn bug_the_audit_said_that_a_function_that_failed_was_rolled_back() {
    let (project, mut host) = with_mail(&json!({ "tools": [mail(Some("write"))] }));
    let call = json!({ "module": "mail", "name": "send", "arguments": { "to": "ann" } });
    let failed =
        host.call("call_host", &call, &mut |_, _| json!({ "error": { "code": 1, "message": "too late" } }));
    assert_eq!(failed["error"]["details"]["outcome"], "unknown", "{failed}");
    host.end();
    let audit = project.run(&["audit", "tail", "--json"]).expect_code(0).stdout;
    assert!(audit.contains("unknown") && !audit.contains("rolled_back"), "{audit}");
}

#[test]
fn bug_a_write_made_the_files_of_a_host_too_many_to_boot_with() {
    let project = exploring();
    let mut kept = Kept::default();
    for number in 0..20_000 {
        kept.0.insert(format!("data/{number}.txt"), "x".to_owned());
    }
    let mut host = kept.boot(&project);
    let write = json!({ "path": "tools/double.ts", "content": DOUBLE });
    let refused = host.call("write_file", &write, &mut |method, params| kept.serve(method, params));
    assert_eq!(refused["error"]["code"], "EBUDGET", "{refused}");
    host.end();
    kept.boot(&project).end();
}

#[test]
fn the_files_of_a_host_come_with_what_describes_the_kernel() {
    let project = exploring();
    let mut kept = Kept::default();
    let mut host = Host::start(&project);
    let client = json!({ "name": "shop", "version": "1" });
    let offered = json!({ "files": true, "tools": [mail(None)] });
    let params = json!({ "protocolVersion": 1, "client": client, "host": offered });
    host.ask("initialize", &params, &mut |method, params| kept.serve(method, params));
    for (file, expected) in [("tgp.d.ts", "exec_sql"), ("host.d.ts", "declare module 'host:mail'")] {
        let read = host.call("read_file", &json!({ "path": file }), &mut nothing);
        assert!(read.to_string().contains(expected), "{file}: {read}");
    }
    for file in ["host.d.ts", "HOST.D.TS", "tgp.d.ts"] {
        let write = json!({ "path": file, "content": "declare module 'host:mail' {}" });
        assert_eq!(host.call("write_file", &write, &mut nothing)["ok"], false, "{file}");
    }
    host.end();
    assert!(kept.0.is_empty(), "{:?}", kept.0.keys());
}
