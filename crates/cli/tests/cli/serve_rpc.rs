//! The protocol of the SDKs on the socket of `tgp serve`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::Served;

/// A client that speaks JSON-RPC.
struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(served: &Served) -> Self {
        let stream = UnixStream::connect(served.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(BufReader::new(stream))
    }

    fn initialized(served: &Served, token: &str) -> Self {
        let mut client = Self::connect(served);
        let answer = client.initialize(&json!({ "token": token }));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        client
    }

    fn initialize(&mut self, extra: &Value) -> Value {
        let mut params = json!({ "protocolVersion": 1, "client": { "name": "a test", "version": "1" } });
        for (key, value) in extra.as_object().unwrap() {
            params[key] = value.clone();
        }
        self.ask("initialize", &params)
    }

    fn line(&mut self, line: &[u8]) {
        // A client that was refused may be cut off while it still sends.
        let _ = self.0.get_mut().write_all(line).and_then(|()| self.0.get_mut().write_all(b"\n"));
    }

    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        self.line(request.to_string().as_bytes());
        self.receive().expect("an answer")
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "tool": tool, "arguments": arguments }))["result"].clone()
    }
}

#[test]
fn a_client_with_a_token_lists_calls_and_ends() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&[]);
    let mut client = Client::initialized(&served, &token);
    let listed = client.ask("tools/list", &Value::Null);
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 20, "{listed}");
    let fib = json!({ "path": "tools/math/fib.ts", "args": { "n": 10 } });
    assert_eq!(client.call("exec_tool", &fib)["data"]["result"], 55);
    // What no token covers is for the program that starts the kernel.
    assert_eq!(client.ask("session/run", &json!({ "task": "look" }))["error"]["code"], -32601);
    assert_eq!(client.ask("prompt/get", &Value::Null)["error"]["code"], -32601);
    assert_eq!(client.ask("initialize", &json!({}))["error"]["code"], -32600);
    assert_eq!(client.ask("shutdown", &Value::Null)["result"], json!({}));
    assert!(client.receive().is_none());
    // The kernel stays, and so do clients that speak frames.
    let mut next = Client::initialized(&served, &token);
    assert_eq!(next.call("exec_tool", &fib)["data"]["result"], 55);
    drop(next);
    let project = served.stop();
    let audit = project.run(&["audit", "tail", "--json"]).expect_code(0).stdout;
    assert!(audit.contains("a test"), "{audit}");
}

#[test]
fn a_token_says_what_a_client_may_do() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&["--tools", "fs_read"]);
    let mut client = Client::initialized(&served, &token);
    assert_eq!(client.call("fs_read", &json!({ "path": "tgp.config.ts" }))["ok"], true);
    let denied = client.call("exec_tool", &json!({ "path": "tools/math/fib.ts", "args": { "n": 1 } }));
    assert_eq!(denied["error"]["code"], "EPOLICY", "{denied}");
    served.stop();
}

#[test]
fn who_shows_no_token_gets_nothing() {
    let served = Served::start(&[]);
    let token = served.token(&[]);
    for (params, expected) in [
        (json!({}), "needs a token"),
        (json!({ "token": "nonsense" }), "token"),
        (json!({ "token": token, "host": {} }), "`host` is for the program"),
        (json!({ "token": token, "protocolVersion": 9 }), "version 1"),
        (json!({ "token": token, "more": 1 }), "more"),
    ] {
        let mut client = Client::connect(&served);
        let answer = client.initialize(&params);
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{params}: {answer}");
        assert!(client.receive().is_none(), "{params}");
    }
    for line in [
        "{".to_owned(),
        "{}".to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        format!("{{{}", " ".repeat(40 << 10)),
    ] {
        let mut client = Client::connect(&served);
        client.line(line.as_bytes());
        let answer = client.receive().unwrap_or_else(|| panic!("{line:.40}: no answer"));
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        assert!(client.receive().is_none());
    }
    served.stop();
}

#[test]
fn what_a_client_sends_too_much_of_is_refused() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&[]);
    let mut client = Client::initialized(&served, &token);
    // The values of an answer are counted as well.
    let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#, "0,".repeat(200_000));
    client.line(many.as_bytes());
    assert_eq!(client.receive().unwrap()["error"]["code"], -32600);
    // A long line within the limits is served.
    let text = "x".repeat(1 << 20);
    let written = client.call("fs_write", &json!({ "path": "long.txt", "content": text }));
    assert_eq!(written["ok"], true, "{written}");
    // More requests than may be under way are refused by name.
    let slow = json!({ "code": "await new Promise((done) => setTimeout(done, 1500)); return 1;" });
    for id in 0..40 {
        let params = json!({ "tool": "exec_code", "arguments": slow });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.line(request.to_string().as_bytes());
    }
    let answers: Vec<Value> = (0..40).map(|_| client.receive().expect("an answer")).collect();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    let done = answers.iter().filter(|answer| answer["result"]["data"]["result"] == 1).count();
    assert!(refused > 0 && done > 0 && refused + done == 40, "{refused} {done}");
    // A line that no message has ends the connection, and not the kernel.
    client.line("x".repeat(17 << 20).as_bytes());
    assert_eq!(client.receive().unwrap()["error"]["code"], -32700);
    let mut next = Client::initialized(&served, &token);
    assert_eq!(next.call("fs_exists", &json!({ "path": "long.txt" }))["ok"], true);
    served.stop();
}

#[test]
fn a_cancelled_call_of_the_socket_is_answered() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&[]);
    let mut client = Client::initialized(&served, &token);
    let code = "await new Promise((done) => setTimeout(done, 60_000)); return 1;";
    let params =
        json!({ "tool": "exec_code", "arguments": { "code": code, "limits": { "wallMs": 60_000 } } });
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    client.line(request.to_string().as_bytes());
    client.line(br#"{"jsonrpc":"2.0","method":"cancel","params":{"id":7}}"#);
    let answer = client.receive().unwrap();
    assert_eq!((&answer["id"], &answer["result"]["ok"]), (&json!(7), &json!(false)), "{answer}");
    served.stop();
}

/// A refusal repeated all that it was about, was counted nowhere, and was not sent at all when it became too long.
#[test]
fn bug_a_refusal_repeated_what_it_refused() {
    let served = Served::start(&["--yes"]);
    let token = served.token(&[]);
    let mut client = Client::initialized(&served, &token);
    let long = "A".repeat(9 << 20);
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":2,"error":"{long}"}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"tool":"fs_list","{long}":1}}}}"#
        ),
    ] {
        client.line(line.as_bytes());
        let refusal = client.receive().unwrap().to_string();
        assert!(refusal.contains("error") && refusal.len() < 2_000, "{} bytes", refusal.len());
    }
    served.stop();
}

#[test]
fn bug_a_json_rpc_client_too_many_was_turned_away_with_a_frame() {
    let served = Served::start(&["--yes", "--connections", "1"]);
    let token = served.token(&[]);
    let _first = Client::initialized(&served, &token);
    let mut second = Client::connect(&served);
    let answer = second.initialize(&json!({ "token": token }));
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert_eq!(answer["error"]["data"]["code"], "EPERMISSION", "{answer}");
    assert_eq!(answer["error"]["message"], "too many clients are connected", "{answer}");
    assert!(second.receive().is_none(), "the connection ends");
    served.stop();
}
