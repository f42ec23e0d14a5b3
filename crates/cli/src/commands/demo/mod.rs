//! `tgp demo`: the story of the product on one screen, with no key, no network and no set-up.

mod agent;
mod gates;
mod host;
mod knowledge;
mod memory;
mod query;
mod upstream;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use console::Style;
use serde_json::{Value, json};
use tgp::agent::{StopLevel, StopSignal};
use tgp::contract::{
    Actor, CallContext, CheckReport, Code, Consent, Severity, TddMode, ToolCall, ToolError, ToolResult,
};
use tgp::results::{ExecToolResult, ToolWriteResult};
use tgp::trust::Trust;
use tgp::{BootOptions, Kernel};

use super::{done, result_of};
use crate::conversation::Interrupts;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::text::{hang, wrap};
use crate::{screen, session};
use agent::{PARCEL_TOOL, Person, parcel};
use memory::Places;

const LEAKY: &str = include_str!("tools/leaky.ts");
const FREEZE: &str = include_str!("tools/freeze.ts");

/// Columns before everything below a chapter's title.
const INDENT: usize = 2;

#[derive(Debug, Args)]
pub struct DemoArgs {}

pub async fn run(_arguments: &DemoArgs, printer: &Printer, interrupts: Interrupts) -> Result<(), Failure> {
    let (handle, stop) = StopSignal::new();
    // A signal ends the story at its next step, so that kernels and folder go in order.
    interrupts.during(handle, story(printer, stop)).await
}

async fn story(printer: &Printer, stop: StopSignal) -> Result<(), Failure> {
    check_machine()?;
    let folder = tempfile::Builder::new().prefix("tgp-demo-").tempdir().map_err(|error| {
        ToolError::new(Code::Internal, format!("cannot make a temporary folder: {error}"))
    })?;
    let places = Places::make(folder.path())?;
    tgp::project::initialise(&places.first).map_err(ToolError::from)?;
    let mut demo = Demo { printer, stop, calls: 0, steps: Vec::new() };
    demo.tell(&places).await?;
    if printer.json() {
        printer.document(&done(json!({ "steps": demo.steps })));
    } else {
        printer.line("\nAll of it in a temporary folder that is gone now. `tgp init` starts your own.");
    }
    Ok(())
}

/// Almost every chapter runs a tool, so a machine on which none runs is named before the first one.
fn check_machine() -> Result<(), Failure> {
    let report = tgp::sandbox::probe_jail();
    if report.seccomp {
        return Ok(());
    }
    let message = format!(
        "the demo runs forged tools, and this machine cannot lock their process: {}",
        report.missing.join(" ")
    );
    Err(ToolError::new(Code::Capability, message).help("`tgp doctor` shows what this machine lacks").into())
}

fn cannot_write(error: &std::io::Error) -> Failure {
    ToolError::new(Code::Internal, format!("cannot write to the temporary folder: {error}")).into()
}

/// How a kernel of the demo is held.
#[derive(Clone, Copy)]
enum Rules {
    Strict,
    Free,
}

struct Demo<'a> {
    printer: &'a Printer,
    stop: StopSignal,
    calls: usize,
    steps: Vec<Value>,
}

impl Demo<'_> {
    async fn tell(&mut self, places: &Places) -> Result<(), Failure> {
        let kernel = self.boot(places, Rules::Strict).await?;
        let told = self.forge_by_an_agent(&kernel, &places.folder).await;
        let told = match told {
            Ok(()) => self.find_it_elsewhere(places, &kernel).await,
            failed => failed,
        };
        let told = match told {
            Ok(()) => self.reach_it_from_a_host(places).await,
            failed => failed,
        };
        kernel.shutdown().await;
        told?;
        // What follows is about tools, not about the tests they need.
        let kernel = self.boot(places, Rules::Free).await?;
        let told = self.show_the_fences(&kernel, places).await;
        kernel.shutdown().await;
        told
    }

    async fn boot(&self, places: &Places, rules: Rules) -> Result<Kernel, Failure> {
        self.boot_at(&places.first, places, rules).await
    }

    async fn boot_at(&self, project: &Path, places: &Places, rules: Rules) -> Result<Kernel, Failure> {
        let mode = match rules {
            Rules::Strict => TddMode::Strict,
            Rules::Free => TddMode::Explore,
        };
        let options = BootOptions {
            approver: Arc::new(Person),
            tdd_mode: Some(mode),
            trust: Trust::Everything,
            environment: upstream::environment(&places.folder),
            ..session::boot_options(project.to_owned())
        };
        Ok(Kernel::boot(options).await.map_err(ToolError::from)?)
    }

    async fn show_the_fences(&mut self, kernel: &Kernel, places: &Places) -> Result<(), Failure> {
        self.refuse_a_bad_tool(kernel).await?;
        self.stop_an_endless_loop(kernel).await?;
        self.roll_back(kernel).await?;
        self.keep_secrets(kernel, &places.first).await?;
        self.ask_the_code(kernel, places).await?;
        self.veto_a_plan(kernel, &places.first).await?;
        self.run_a_query(kernel, &places.first).await?;
        self.call_a_server(kernel, places).await?;
        self.verify_the_record(kernel).await
    }

    async fn refuse_a_bad_tool(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        self.chapter("A tool that reaches for the process and hides an address is refused");
        self.write(kernel, "tools/leaky.ts", LEAKY).await?;
        let report = self.check(kernel, "tools/leaky.ts").await?;
        self.expect(!report.valid, "the refusal of tools/leaky.ts")?;
        let look = self.printer.look_out();
        let look = screen::Look { width: look.width.map(|width| width.saturating_sub(INDENT)), ..look };
        for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Error) {
            self.block(&screen::finding(finding, Some(LEAKY), look));
        }
        self.steps.push(json!({ "step": "refuse", "errors": report.errors }));
        Ok(())
    }

    async fn stop_an_endless_loop(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        self.chapter("An endless loop is stopped, and the kernel answers the next call at once");
        self.write(kernel, "tools/freeze.ts", FREEZE).await?;
        let started = Instant::now();
        let result = self
            .call(kernel, "exec_tool", json!({ "path": "tools/freeze.ts", "args": { "value": 1 } }))
            .await;
        let time = started.elapsed();
        let Some(error) = result.error() else {
            return self.expect(false, "the end of the endless loop");
        };
        self.expect(error.code == Code::IsolateTimeout, "the code of the endless loop")?;
        self.say(&format!("after {}: {error}", shown(time)));
        let (next, quick) = self.exec(kernel, PARCEL_TOOL, parcel()).await?;
        self.say(&format!("the next call, the parcel again: {next} after {}", shown(quick)));
        self.steps.push(json!({ "step": "stop", "code": error.code, "afterMs": milliseconds(time), "nextMs": milliseconds(quick) }));
        Ok(())
    }

    async fn call(&mut self, kernel: &Kernel, tool: &str, arguments: Value) -> ToolResult {
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
        kernel.call_with(call, context).await
    }

    async fn write(&mut self, kernel: &Kernel, path: &str, content: &str) -> Result<(), Failure> {
        self.go_on()?;
        let data = self
            .call(kernel, "write_file", json!({ "path": path, "content": content }))
            .await
            .into_result()?;
        let written: ToolWriteResult = result_of(data)?;
        let commit: String = written.commit.unwrap_or_default().chars().take(8).collect();
        let delivered = if written.pushed { " and pushed" } else { "" };
        self.say(&format!("write_file {path}: committed as {commit}{delivered}"));
        Ok(())
    }

    async fn check(&mut self, kernel: &Kernel, path: &str) -> Result<CheckReport, Failure> {
        self.go_on()?;
        let data = self.call(kernel, "check_tool", json!({ "path": path })).await.into_result()?;
        result_of(data)
    }

    async fn exec(
        &mut self,
        kernel: &Kernel,
        path: &str,
        arguments: Value,
    ) -> Result<(Value, Duration), Failure> {
        self.go_on()?;
        let started = Instant::now();
        let data =
            self.call(kernel, "exec_tool", json!({ "path": path, "args": arguments })).await.into_result()?;
        Ok((result_of::<ExecToolResult>(data)?.result, started.elapsed()))
    }

    /// Whether the story continues.
    fn go_on(&self) -> Result<(), Failure> {
        if self.stop.level() == StopLevel::GoOn { Ok(()) } else { Err(Failure::Interrupted) }
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
            self.blank();
            let width = self.printer.look_out().width;
            self.printer.line(&self.printer.paint_out(&Style::new().bold().cyan(), &wrap(title, width)));
        }
    }

    fn blank(&self) {
        if !self.printer.json() {
            self.printer.line("");
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

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
