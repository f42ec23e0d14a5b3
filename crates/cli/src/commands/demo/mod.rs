//! `tgp demo`: the story of the product on one screen, with no key, no network and no set-up.

mod gates;
mod memory;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use console::Style;
use serde_json::{Value, json};
use tgp::contract::{
    Actor, CallContext, CheckReport, Code, Consent, Recorder, TddMode, ToolCall, ToolError, ToolResult,
};
use tgp::{BootOptions, Kernel, RecentCalls};

use super::done;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::text::{hang, wrap};
use crate::{screen, session};
use memory::Places;

const FIBONACCI: &str = include_str!("tools/fib.ts");
const LEAKY: &str = include_str!("tools/leaky.ts");
const FREEZE: &str = include_str!("tools/freeze.ts");
const SUMS: &str = include_str!("tools/sums.ts");

/// Runs of the timing step.
const TIMED_RUNS: usize = 100;
/// Columns before everything below a chapter's title.
const INDENT: usize = 2;
/// Records the demo shows at most.
const TRAIL_LENGTH: usize = 400;

#[derive(Debug, Args)]
pub struct DemoArgs {}

pub async fn run(_arguments: &DemoArgs, printer: &Printer) -> Result<(), Failure> {
    let folder = tempfile::Builder::new().prefix("tgp-demo-").tempdir().map_err(|error| {
        ToolError::new(Code::Internal, format!("cannot make a temporary folder: {error}"))
    })?;
    let places = Places::make(folder.path())?;
    tgp::initialise(&places.first).map_err(ToolError::from)?;
    let records = Arc::new(RecentCalls::new(TRAIL_LENGTH));
    let started = Instant::now();
    let options = BootOptions {
        recorder: Some(Arc::clone(&records) as _),
        // The first chapters are about tools; the one about tests has a kernel of its own.
        tdd_mode: Some(TddMode::Explore),
        ..session::boot_options(places.first.clone())
    };
    let kernel = Kernel::boot(options).await.map_err(ToolError::from)?;
    let mut demo = Demo { kernel: &kernel, printer, calls: 0, steps: Vec::new() };
    demo.say(&format!("A fresh project is up after {}.", shown(started.elapsed())));
    let recorder = Arc::clone(&records) as Arc<dyn Recorder>;
    let told = demo.tell(&places, &recorder).await;
    let steps = std::mem::take(&mut demo.steps);
    if told.is_ok() {
        trail(&records, printer);
        if !printer.json() {
            printer.line("\nAll of it in a temporary folder that is gone now. `tgp init` starts your own.");
        }
    }
    kernel.shutdown().await;
    told?;
    if printer.json() {
        printer.document(&done(json!({ "steps": steps })));
    }
    Ok(())
}

struct Demo<'a> {
    kernel: &'a Kernel,
    printer: &'a Printer,
    calls: usize,
    steps: Vec<Value>,
}

impl Demo<'_> {
    async fn tell(&mut self, places: &Places, recorder: &Arc<dyn Recorder>) -> Result<(), Failure> {
        self.forge_a_good_tool().await?;
        self.refuse_a_bad_tool().await?;
        self.stop_an_endless_loop().await?;
        self.compose_tools().await?;
        self.find_it_elsewhere(places, recorder).await?;
        self.roll_back().await?;
        self.hold_to_the_rules().await
    }

    async fn forge_a_good_tool(&mut self) -> Result<(), Failure> {
        self.chapter("An agent forges a tool, the kernel checks it and runs it in a locked worker");
        self.write("tools/math/fib.ts", FIBONACCI).await?;
        self.source(FIBONACCI);
        let report = self.check("tools/math/fib.ts").await?;
        self.expect(report.valid, "the check of tools/math/fib.ts")?;
        self.say("check_tool: valid");
        let (result, _) = self.exec("tools/math/fib.ts", json!({ "n": 10 })).await?;
        self.expect(result == json!(55), "fib(10)")?;
        self.say(&format!("exec_tool {{\"n\":10}}: {result}"));
        let mut times = Vec::with_capacity(TIMED_RUNS);
        for _ in 0..TIMED_RUNS {
            let (_, time) = self.exec("tools/math/fib.ts", json!({ "n": 10 })).await?;
            times.push(time);
            // The pool refills behind the run; asking at once would measure the start of a process.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        self.say(&format!(
            "{TIMED_RUNS} more runs, each in a process and a heap of its own: median {} through all gates",
            shown(median)
        ));
        self.steps.push(json!({ "step": "forge", "result": result, "medianMs": milliseconds(median) }));
        Ok(())
    }

    async fn refuse_a_bad_tool(&mut self) -> Result<(), Failure> {
        self.chapter("A tool that reaches for the process and hides an address is refused");
        self.write("tools/leaky.ts", LEAKY).await?;
        let report = self.check("tools/leaky.ts").await?;
        self.expect(!report.valid, "the refusal of tools/leaky.ts")?;
        let look = self.printer.look_out();
        let look = screen::Look { width: look.width.map(|width| width.saturating_sub(INDENT)), ..look };
        for finding in
            report.findings.iter().filter(|finding| finding.severity == tgp::contract::Severity::Error)
        {
            self.block(&screen::finding(finding, Some(LEAKY), look));
        }
        self.steps.push(json!({ "step": "refuse", "errors": report.errors }));
        Ok(())
    }

    async fn stop_an_endless_loop(&mut self) -> Result<(), Failure> {
        self.chapter("An endless loop is stopped, and the kernel answers the next call at once");
        self.write("tools/freeze.ts", FREEZE).await?;
        let started = Instant::now();
        let result = self.call("exec_tool", json!({ "path": "tools/freeze.ts", "args": {} })).await;
        let time = started.elapsed();
        let Some(error) = result.error() else {
            return self.expect(false, "the end of the endless loop");
        };
        self.expect(error.code == Code::IsolateTimeout, "the code of the endless loop")?;
        self.say(&format!("after {}: {error}", shown(time)));
        let (result, next) = self.exec("tools/math/fib.ts", json!({ "n": 20 })).await?;
        self.say(&format!("next call, fib(20): {result} after {}", shown(next)));
        self.steps.push(json!({ "step": "stop", "code": error.code, "afterMs": milliseconds(time), "nextMs": milliseconds(next) }));
        Ok(())
    }

    async fn compose_tools(&mut self) -> Result<(), Failure> {
        self.chapter("One tool imports another, and its file is kept because the run succeeds");
        self.write("tools/math/sums.ts", SUMS).await?;
        self.source(SUMS);
        let report = self.check("tools/math/sums.ts").await?;
        self.expect(report.valid, "the check of tools/math/sums.ts")?;
        let (result, time) =
            self.exec("tools/math/sums.ts", json!({ "upTo": 10, "file": "tmp/sums.csv" })).await?;
        self.say(&format!("exec_tool: {result} after {}", shown(time)));
        let written = std::fs::read_to_string(self.kernel.project().join("tmp/sums.csv")).unwrap_or_default();
        self.expect(written.contains("10,55"), "the committed file")?;
        self.say(&format!("tmp/sums.csv now has {} lines", written.lines().count()));
        self.steps.push(json!({ "step": "compose", "result": result }));
        Ok(())
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> ToolResult {
        self.calls += 1;
        let call = ToolCall { id: format!("demo-{}", self.calls), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Agent("demo".to_owned()),
            session: "demo".to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        self.kernel.call_with(call, context).await
    }

    async fn write(&mut self, path: &str, content: &str) -> Result<(), Failure> {
        let data =
            self.call("write_file", json!({ "path": path, "content": content })).await.into_result()?;
        let commit: String =
            data.get("commit").and_then(Value::as_str).unwrap_or_default().chars().take(8).collect();
        let pushed = data.get("pushed").and_then(Value::as_bool).unwrap_or_default();
        let delivered = if pushed { " and pushed" } else { "" };
        self.say(&format!("write_file {path}: committed as {commit}{delivered}"));
        Ok(())
    }

    async fn check(&mut self, path: &str) -> Result<CheckReport, Failure> {
        let data = self.call("check_tool", json!({ "path": path })).await.into_result()?;
        serde_json::from_value(data).map_err(|error| ToolError::new(Code::Internal, error.to_string()).into())
    }

    async fn exec(&mut self, path: &str, arguments: Value) -> Result<(Value, Duration), Failure> {
        let started = Instant::now();
        let data = self.call("exec_tool", json!({ "path": path, "args": arguments })).await.into_result()?;
        Ok((data.get("result").cloned().unwrap_or_default(), started.elapsed()))
    }

    /// The demo is a test of itself: a step that comes out differently is a failure, not a story.
    fn expect(&self, holds: bool, what: &str) -> Result<(), Failure> {
        if holds {
            return Ok(());
        }
        Err(ToolError::new(Code::Internal, format!("the demo did not go as it should: {what}")).into())
    }

    fn chapter(&self, title: &str) {
        if !self.printer.json() {
            self.printer.line("");
            self.printer.line(&self.printer.paint_out(&Style::new().bold().cyan(), title));
        }
    }

    fn say(&self, text: &str) {
        if !self.printer.json() {
            let width = self.printer.look_out().width.map(|width| width.saturating_sub(INDENT));
            self.indented(&hang(&wrap(text, width), INDENT));
        }
    }

    fn indented(&self, line: &str) {
        if !self.printer.json() {
            self.printer.line(format!("{:INDENT$}{line}", "").trim_end());
        }
    }

    fn source(&self, text: &str) {
        let bar = self.printer.paint_out(&Style::new().dim(), "|");
        for line in text.lines() {
            self.indented(&format!("{bar} {line}"));
        }
    }

    fn block(&self, text: &str) {
        for line in text.trim_end().lines() {
            self.indented(line);
        }
    }
}

/// The records the calls left, the repeated runs folded into one line.
fn trail(records: &RecentCalls, printer: &Printer) {
    if printer.json() {
        return;
    }
    printer.line("");
    printer.line(
        &printer.paint_out(&Style::new().bold().cyan(), "Every call passed the router and left a record"),
    );
    let mut lines: Vec<(String, usize)> = Vec::new();
    for record in records.all() {
        let path = record.call.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let outcome = record.result.error().map_or("ok", |error| error.code.as_str());
        let verdicts: Vec<String> =
            record.verdicts.iter().map(|verdict| format!("{}={}", verdict.gate, verdict.verdict)).collect();
        let line = format!("{:<10} {path:<20} {:<28} {outcome}", record.call.tool, verdicts.join(" "));
        match lines.last_mut() {
            Some((last, count)) if *last == line => *count += 1,
            _ => lines.push((line, 1)),
        }
    }
    for (line, count) in lines {
        let times = if count > 1 { format!("  x{count}") } else { String::new() };
        printer.line(&format!("  {line}{times}"));
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
