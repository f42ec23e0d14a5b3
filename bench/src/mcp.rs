//! What `tgp mcp` adds: to a cold start, and to a call.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::project::{ARGUMENTS, Project, RESULT, TOOL, run_small_tool};
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const WARM_UP: usize = 20;
/// Between two calls, so that the pool of workers is as warm for one side as for the other.
const PAUSE: Duration = Duration::from_millis(20);
/// What a cold start and a call may take in addition, in milliseconds.
const COLD_BUDGET: f64 = 15.0;
const CALL_BUDGET: f64 = 1.0;

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    cold_starts(section, settings)?;
    calls(section, settings).await
}

/// A host with a server; the server is ended with it.
struct Host {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(project: &Project) -> Result<Self> {
        let mut process = project
            .command(&["mcp", "--yes"])?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("`tgp mcp` cannot be started")?;
        let input = process.stdin.take().context("no standard input")?;
        let output = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut host = Self { process, input, output };
        host.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
            }),
        )?;
        writeln!(host.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(host)
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters });
        writeln!(self.input, "{request}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn run(&mut self) -> Result<()> {
        let arguments: Value = serde_json::from_str(ARGUMENTS)?;
        let call = json!({ "name": "run", "arguments": { "tool": TOOL, "args": arguments } });
        let answer = self.request("tools/call", &call)?;
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
        let data: Value = serde_json::from_str(text).unwrap_or_default();
        if data.get("result") != Some(&json!(RESULT)) {
            bail!("`tgp mcp` answered {answer}");
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// From the start of the process to the first result, beside `tgp exec`, which boots the same kernel.
fn cold_starts(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let project = Project::new()?;
    let (mut served, mut executed) = (Vec::new(), Vec::new());
    let warm_up = settings.or_smoke(3, 0);
    for round in 0..warm_up + settings.processes {
        let started = Instant::now();
        let mut host = Host::start(&project)?;
        host.run()?;
        let with_mcp = started.elapsed();
        drop(host);
        let started = Instant::now();
        let output = project.command(&["exec", TOOL, "--args", ARGUMENTS])?.output()?;
        let without = started.elapsed();
        if !output.status.success() {
            bail!("`tgp exec` failed");
        }
        if round >= warm_up {
            served.push(with_mcp);
            executed.push(without);
        }
    }
    let (served, executed) = (Samples::from_iter(served), Samples::from_iter(executed));
    let group = "from the start to the first result";
    section.contender(group, Side::Ours, "tgp mcp", &served);
    section.contender(group, Side::Peer, "tgp exec, to its exit", &executed);
    let (served, executed) = (served.median(), executed.median());
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(row("tgp mcp, from the start to the first result").ours(served).peer("tgp exec", executed));
    section.row(row("added to a cold start, p50").ours(served - executed).budget(Budget::Below(COLD_BUDGET)));
    Ok(())
}

/// `run` of a forged tool over standard streams, beside `exec_tool` in a kernel in this process.
async fn calls(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (here, there) = (Project::new()?, Project::new()?);
    let kernel = here.boot().await?;
    let mut host = Host::start(&there)?;
    let (mut served, mut direct) = (Vec::new(), Vec::new());
    let warm_up = settings.or_smoke(WARM_UP, 1);
    for round in 0..warm_up + settings.runs {
        std::thread::sleep(PAUSE);
        let started = Instant::now();
        host.run()?;
        let with_mcp = started.elapsed();
        std::thread::sleep(PAUSE);
        let started = Instant::now();
        run_small_tool(&kernel).await?;
        let without = started.elapsed();
        if round >= warm_up {
            served.push(with_mcp);
            direct.push(without);
        }
    }
    kernel.shutdown().await;
    let (served, direct) = (Samples::from_iter(served), Samples::from_iter(direct));
    let group = "one run of a small tool";
    section.contender(group, Side::Ours, "run through tgp mcp", &served);
    section.contender(group, Side::Peer, "exec_tool in this process", &direct);
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    let (served, direct) = (served.median(), direct.median());
    section.row(row("run through tgp mcp, p50").ours(served).peer("exec_tool in this process", direct));
    section.row(row("added to a call, p50").ours(served - direct).budget(Budget::Below(CALL_BUDGET)));
    section.note(format!("{} calls of each in turn, with pauses of {} ms", settings.runs, PAUSE.as_millis()));
    Ok(())
}
