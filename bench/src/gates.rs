//! What the gates and the audit add to a call, and what the jail adds to a command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp_builtins::project_tools;
use tgp_contract::{Actor, CallContext, CallRecord, Consent, Recorder, ToolCall, ToolError, ToolResult};
use tgp_router::files::ToolDirectories;
use tgp_router::{DenyAll, Router, Workspace};

use crate::project::Project;
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const WARM_UP: usize = 50;

/// A few rules, as a project has them.
const RULES: &str = "version: 1\nrules:\n  - {id: no-migrations, effect: deny, tools: ['fs_*'], where: {path: 'migrations/**'}, reason: people write them}\n  - {id: no-drop, effect: deny, where: {statement: [drop, truncate]}, reason: never}\n  - {id: ask-force, effect: ask, where: {command: {regex: 'push.*--force'}}, reason: think twice}\n";

/// What one call or command took, in turn with its peers.
#[derive(Default)]
struct Times {
    batched: Vec<Duration>,
    each: Vec<Duration>,
    bare: Vec<Duration>,
}

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    calls(section, settings.runs, settings.or_smoke(WARM_UP, 1)).await?;
    commands(section, settings.processes).await
}

async fn calls(section: &mut Section, runs: usize, warm_up: usize) -> Result<()> {
    let (batched, each) = (Project::new()?, Project::new()?);
    std::fs::write(batched.directory().join("tgp.policy.yaml"), RULES)?;
    std::fs::write(each.directory().join("tgp.policy.yaml"), RULES)?;
    let config = "export default { audit: { durability: 'call' } };";
    std::fs::write(each.directory().join("tgp.config.ts"), config)?;
    let (kernel, durable) = (batched.boot().await?, each.boot().await?);
    let bare = bare_router(&batched.directory())?;
    let mut times = Times::default();
    for run in 0..warm_up + runs {
        let measured = (of_kernel(&kernel).await?, of_kernel(&durable).await?, of_router(&bare).await?);
        if run >= warm_up {
            times.batched.push(measured.0);
            times.each.push(measured.1);
            times.bare.push(measured.2);
        }
    }
    kernel.shutdown().await;
    durable.shutdown().await;
    let samples = |times: Vec<Duration>| times.into_iter().collect::<Samples>();
    let (batched, each, bare) = (samples(times.batched), samples(times.each), samples(times.bare));
    let group = "fs_exists, one call";
    section.contender(group, Side::Ours, "all gates, audit batched", &batched);
    section.contender(group, Side::Ours, "all gates, audit with durability: 'call'", &each);
    section.contender(group, Side::Peer, "no gates, no audit", &bare);
    let (batched, each, bare) = (batched.median(), each.median(), bare.median());
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(
        row("fs_exists through all gates, audit batched, p50").ours(batched).peer("no gates, no audit", bare),
    );
    section.row(row("gates and audit around a call, p50").ours(batched - bare).budget(Budget::Below(0.1)));
    section.row(row("the same with durability: 'call', p50").ours(each - bare));
    section.note(format!(
        "{runs} calls of each kind in turn; three rules in a file; the roadmap's target was 50 ms"
    ));
    Ok(())
}

async fn of_kernel(kernel: &Kernel) -> Result<Duration> {
    let started = Instant::now();
    let result = kernel.call("fs_exists", json!({ "path": "README.md" })).await;
    let time = started.elapsed();
    result.into_result().context("fs_exists failed")?;
    Ok(time)
}

async fn of_router(router: &Arc<Router>) -> Result<Duration> {
    let call = ToolCall {
        id: "bench".to_owned(),
        tool: "fs_exists".to_owned(),
        arguments: json!({ "path": "README.md" }),
    };
    let context = CallContext {
        actor: Actor::Agent("bench".to_owned()),
        session: "bench".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    };
    let started = Instant::now();
    let result = router.call(call, context).await;
    let time = started.elapsed();
    result.into_result().context("fs_exists failed")?;
    Ok(time)
}

/// The same tools with nothing around them.
fn bare_router(project: &Path) -> Result<Arc<Router>> {
    let workspace = Workspace::open(project, &project.join(".tgp"), ToolDirectories::default(), &[])?;
    let router =
        Router::new(project_tools()?, Vec::new(), Arc::new(DenyAll), Arc::new(Forgetful), workspace)?;
    Ok(Arc::new(router))
}

struct Forgetful;

#[async_trait]
impl Recorder for Forgetful {
    async fn record(&self, _record: CallRecord) -> Result<(), ToolError> {
        Ok(())
    }

    fn record_cancelled(&self, _record: CallRecord) {}
}

async fn commands(section: &mut Section, processes: usize) -> Result<()> {
    let support = tgp::sandbox::process_support();
    if !support.complete() {
        section.skipped("commands in the jail", &support.missing.join(" "));
        return Ok(());
    }
    let project = Project::new()?;
    let kernel = project.boot().await?;
    let bubblewrap = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok();
    let (mut jailed, mut wrapped, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..processes + 3 {
        let started = Instant::now();
        let result = kernel.call("shell_exec", json!({ "command": "true" })).await;
        let time = started.elapsed();
        succeeded(result)?;
        let bare = timed(Command::new("sh").args(["-c", "true"]))?;
        let wrap = if bubblewrap { Some(timed(&mut wrapped_command(&project.directory()))?) } else { None };
        if run >= 3 {
            jailed.push(time);
            plain.push(bare);
            wrapped.extend(wrap);
        }
    }
    kernel.shutdown().await;
    let samples = |times: Vec<Duration>| times.into_iter().collect::<Samples>();
    let (jailed, plain, wrapped) = (samples(jailed), samples(plain), samples(wrapped));
    let group = "a command that does nothing";
    section.contender(group, Side::Ours, "shell_exec, jailed", &jailed);
    section.contender(group, Side::Peer, "sh -c true, no jail", &plain);
    let ours = jailed.median();
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(
        row("shell_exec of `true`, from call to result, p50")
            .ours(ours)
            .peer("sh -c true, no jail", plain.median())
            .budget(Budget::Below(15.0)),
    );
    if bubblewrap {
        section.row(row("the same").ours(ours).peer("bwrap, all namespaces", wrapped.median()));
        section.contender(group, Side::Peer, "bwrap, all namespaces", &wrapped);
    } else {
        section.skipped("bubblewrap", "not installed; it is Debian's package bubblewrap");
    }
    section.note(format!(
        "{processes} commands of each kind in turn; the roadmap's target for a sandbox was 200 to 300 ms"
    ));
    Ok(())
}

fn succeeded(result: ToolResult) -> Result<()> {
    let data = result.into_result().context("shell_exec failed")?;
    anyhow::ensure!(data.get("exitCode").and_then(Value::as_i64) == Some(0), "{data}");
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    let status = command.stdout(Stdio::null()).status()?;
    anyhow::ensure!(status.success(), "{command:?} failed");
    Ok(started.elapsed())
}

fn wrapped_command(project: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args([
        "--ro-bind",
        "/",
        "/",
        "--tmpfs",
        "/tmp",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--unshare-all",
    ]);
    command.arg("--bind").arg(project).arg(project).args(["--die-with-parent", "sh", "-c", "true"]);
    command
}
