//! The tool in the hands of another host: a second project, reached through `tgp mcp`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tgp::contract::{Code, ToolError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::agent::parcel;
use super::memory::Places;
use super::{Demo, shown, upstream};
use crate::exit::Failure;

/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host with a server of its own, which ends with it.
pub(super) struct Host {
    _server: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    requests: u64,
}

fn broken(reason: &str) -> Failure {
    ToolError::new(Code::Internal, format!("the demo did not go as it should: `tgp mcp` {reason}")).into()
}

impl Host {
    pub(super) fn start(project: &Path, home: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| broken(&error.to_string()))?;
        let mut server = Command::new(program)
            .arg("-C")
            .arg(project)
            .args(["mcp", "--yes"])
            .env("TGP_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| broken(&error.to_string()))?;
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(broken("has no streams"));
        };
        Ok(Self { _server: server, input, output: BufReader::new(output).lines(), requests: 0 })
    }

    async fn request(&mut self, method: &str, parameters: Value) -> Result<Value, Failure> {
        self.requests += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": parameters });
        let asked = async {
            self.input.write_all(format!("{request}\n").as_bytes()).await.ok()?;
            self.input.flush().await.ok()?;
            self.output.next_line().await.ok()?
        };
        let line = tokio::time::timeout(PATIENCE, asked).await.ok().flatten();
        let line = line.ok_or_else(|| broken("did not answer"))?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| broken("printed no message"))?;
        answer.get("result").cloned().ok_or_else(|| broken(&format!("answered {answer}")))
    }

    pub(super) async fn initialise(&mut self) -> Result<(), Failure> {
        let client = json!({ "name": "demo host", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", hello).await?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let sent = self.input.write_all(format!("{ready}\n").as_bytes()).await;
        sent.map_err(|_| broken("is gone"))
    }

    /// The result of a tool of the server.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
        serde_json::from_str(text).map_err(|_| broken(&format!("answered {result}")))
    }
}

impl Demo<'_> {
    /// A host that knows nothing but the protocol finds the tool and runs it.
    pub(super) async fn reach_it_from_a_host(&mut self, places: &Places) -> Result<(), Failure> {
        self.chapter("An agent in another program reaches the tool through `tgp mcp`");
        let mut host = Host::start(places.shared_project(), &upstream::home(&places.folder))?;
        host.initialise().await?;
        let listed = host.request("tools/list", json!({})).await?;
        let tools = listed.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        self.say(&format!("it sees {} tools, now and later: {}", names.len(), names.join(", ")));
        let found = host.call("search", json!({ "query": "billable weight of a parcel" })).await?;
        let tool = found.pointer("/tools/0/tool").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.say(&format!("search: {tool}"));
        let code = format!("import weigh from './{tool}';\nreturn [1, 2, 3].map((n) => n * weigh(args));");
        let started = std::time::Instant::now();
        let ran = host.call("run", json!({ "code": code, "args": parcel() })).await?;
        let result = ran.get("result").cloned().unwrap_or_default();
        self.expect(result == json!([14.4, 28.8, 43.2]), "the program of the host")?;
        code.lines().for_each(|line| self.indented(&format!("  {line}")));
        self.say(&format!("run: {result} after {}", shown(started.elapsed())));
        self.steps.push(json!({ "step": "host", "tools": names, "found": tool, "result": result }));
        Ok(())
    }
}
