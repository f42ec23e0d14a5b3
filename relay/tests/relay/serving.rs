//! The other direction: parts of this product behind the protocol.

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp_relay::{MAX_LINE, Origin, PartKind, RelayServeOptions, serve};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

type Served = JoinHandle<Result<(), tgp_contract::ToolError>>;

/// A client of a part.
struct Asker {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    served: Served,
    folder: TempDir,
}

impl Asker {
    fn new(part: PartKind, origin: Origin) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 10);
        let served = tokio::spawn(async move {
            let (input, output) = tokio::io::split(theirs);
            serve(&RelayServeOptions { part, origin, tgp: "/nowhere/tgp".into() }, input, output).await
        });
        let (input, output) = tokio::io::split(ours);
        Self { lines: BufReader::new(input).lines(), output, served, folder: tempfile::tempdir().unwrap() }
    }

    async fn write(&mut self, text: &str) {
        self.output.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.write(&json!({ "id": id, "method": method, "params": params }).to_string()).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn hello(&mut self, part: &str) -> Value {
        let directory = self.folder.path().to_owned();
        self.ask(1, "hello", json!({ "protocol": 1, "part": part, "directory": directory })).await
    }

    /// Closes the input and waits for the end.
    async fn end(mut self) -> Result<(), tgp_contract::ToolError> {
        self.output.shutdown().await.unwrap();
        self.served.await.unwrap()
    }
}

fn event(number: u64) -> Value {
    json!({
        "type": "NOTE", "timestamp": "2026-01-01T00:00:00Z", "actor": { "agent": "a", "id": "1" },
        "filePath": "src/a.ts", "number": number,
    })
}

#[tokio::test]
async fn a_chronicle_is_served_line_by_line() {
    for origin in [Origin::Real, Origin::Fake] {
        let mut asker = Asker::new(PartKind::Chronicle, origin);
        let early = asker.ask(7, "files", json!({})).await;
        assert_eq!(early["error"]["code"], "EVALIDATION", "{early}");
        let hello = asker.hello("chronicle").await;
        assert_eq!(hello["result"]["name"], "tgp chronicle", "{hello}");
        let first = asker.ask(2, "append", json!({ "file": "src/a.ts.sage", "event": event(1) })).await;
        assert_eq!(first["result"]["appended"], true, "{first}");
        let again = asker.ask(3, "append", json!({ "file": "src/a.ts.sage", "event": event(1) })).await;
        let known = json!({ "eventId": first["result"]["eventId"], "appended": false });
        assert_eq!(again["result"], known, "{again}");
        let outside = asker.ask(4, "append", json!({ "file": "a.sage", "event": event(1) })).await;
        assert_eq!(outside["error"]["code"], "EPERMISSION", "{outside}");
        let tail = asker.ask(5, "tail", json!({ "file": "src/a.ts.sage", "most": 5 })).await;
        assert_eq!(tail["result"][0]["number"], 1, "{tail}");
        assert_eq!(asker.ask(6, "files", json!({})).await["result"], json!(["src/a.ts.sage"]));
        for (method, params, code) in [
            ("append", json!({ "file": "src/a.ts.sage" }), "EVALIDATION"),
            ("append", json!({ "file": "../a.sage", "event": event(1) }), "EVALIDATION"),
            ("chat", json!({}), "ENOTFOUND"),
        ] {
            let refused = asker.ask(8, method, params).await;
            assert_eq!(refused["error"]["code"], code, "{refused}");
        }
        // A notification wants no answer.
        asker.write(r#"{"method":"cancel","params":{"request":8}}"#).await;
        assert_eq!(asker.ask(9, "files", json!({})).await["result"], json!(["src/a.ts.sage"]));
        asker.end().await.unwrap();
    }
}

#[tokio::test]
async fn hello_is_checked() {
    for (params, told) in [
        (json!({ "protocol": 2, "part": "chronicle", "directory": "/" }), "protocol 2"),
        (json!({ "protocol": 1, "part": "graph", "directory": "/" }), "serves chronicle, not graph"),
        (json!({ "protocol": 1, "part": "kitchen", "directory": "/" }), "do not fit"),
        (json!({ "protocol": 1 }), "do not fit"),
    ] {
        let mut asker = Asker::new(PartKind::Chronicle, Origin::Fake);
        let refused = asker.ask(1, "hello", params).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains(told), "{refused}");
        // It can be said again, rightly.
        assert!(asker.hello("chronicle").await["result"].is_object());
        asker.end().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_request_ends_the_service() {
    for garbage in ["no JSON", "[]", "{\"id\":\"one\",\"method\":\"hello\"}", "{\"id\":1}"] {
        let mut asker = Asker::new(PartKind::Llm, Origin::Fake);
        asker.write(garbage).await;
        let refused = asker.read().await;
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&Value::Null, &json!("EVALIDATION")),
            "{garbage}"
        );
        assert!(asker.served.await.unwrap().is_err(), "{garbage}");
    }
    let mut asker = Asker::new(PartKind::Llm, Origin::Fake);
    let flood = "x".repeat(MAX_LINE + 1);
    let (written, refused) = tokio::join!(asker.output.write_all(flood.as_bytes()), asker.lines.next_line());
    let _ = written;
    assert!(refused.unwrap().unwrap().contains("more than"), "a line without an end is read for ever");
    assert!(asker.served.await.unwrap().is_err());
}

#[tokio::test]
async fn a_model_is_served_event_by_event_to_a_slow_reader() {
    let mut asker = Asker::new(PartKind::Llm, Origin::Fake);
    asker.hello("llm").await;
    let turn: Vec<Value> =
        (0..500).map(|number| json!({ "type": "text", "value": format!("{number} ") })).collect();
    let text = json!({ "relay": [turn] }).to_string();
    let options = json!({
        "model": "test-1", "system": "", "tools": [], "turn": 0,
        "messages": [{ "role": "user", "blocks": [{ "type": "text", "text": text }] }],
    });
    asker.write(&json!({ "id": 2, "method": "chat", "params": options }).to_string()).await;
    // More than the pipe holds was asked for, so a writer has had to wait.
    for number in 0..500 {
        tokio::task::yield_now().await;
        let line = asker.read().await;
        assert_eq!(line, json!({ "id": 2, "event": { "type": "text", "value": format!("{number} ") } }));
    }
    assert_eq!(asker.read().await["event"]["type"], "end");
    assert_eq!(asker.ask(3, "models", json!({})).await["result"], json!([{ "name": "test-1" }]));
    asker.end().await.unwrap();
}

#[tokio::test]
async fn tools_are_served_with_their_definitions() {
    let mut asker = Asker::new(PartKind::Tools, Origin::Fake);
    asker.hello("tools").await;
    let definitions = asker.ask(2, "definitions", json!({})).await;
    let names: Vec<&str> =
        definitions["result"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Echo", "exec_tool", "fs_delete", "fs_edit", "fs_read", "fs_write", "shell_exec"]);
    let context = json!({
        "actor": { "kind": "agent", "id": "a" }, "session": "s", "consent": "given", "dry_run": true, "depth": 0,
    });
    let call = |tool: &str, arguments: Value| json!({ "call": { "id": "1", "tool": tool, "arguments": arguments }, "context": context });
    let preview = asker.ask(3, "call", call("Write", json!({ "path": "a.md", "content": "a\n" }))).await;
    assert!(preview["result"]["result"]["data"]["diff"].as_str().unwrap().contains("+a"), "{preview}");
    assert!(!asker.folder.path().join("a.md").exists());
    let refused = asker.ask(4, "call", call("Write", json!({ "path": "a.md" }))).await;
    assert_eq!(refused["result"]["result"]["error"]["code"], "EVALIDATION", "{refused}");
    asker.end().await.unwrap();
}
