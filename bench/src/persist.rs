//! `write_file` with its commit, without a remote, against `git add` and `git commit`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tgp::Kernel;

use crate::project::Project;
use crate::report::{Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;
use crate::trades::TradeTool;

/// Tools that are there already, so that the index is not empty.
const TOOLS: usize = 100;
const WARM_UP: usize = 5;

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let rounds = settings.processes;
    let (tools, warm_up) = settings.or_smoke((TOOLS, WARM_UP), (5, 0));
    let project = Project::new()?;
    // Some of them are close for the search, which must not keep them from being written.
    let config = "export default { registry: { onDuplicate: 'warn' } };";
    fs::write(project.directory().join("tgp.config.ts"), config)?;
    let kernel = project.boot().await?;
    for number in 0..tools {
        write(&kernel, TradeTool::scattered(number), 1).await?;
    }
    let peer = project.beside("peer");
    fs::create_dir(&peer)?;
    git(&peer, &["init", "--quiet"])?;
    let (mut changed, mut new, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..warm_up + rounds {
        let times = (
            write(&kernel, TradeTool::scattered(0), round + 2).await?,
            write(&kernel, TradeTool::scattered(tools + round), 1).await?,
            commit(&peer, round)?,
        );
        if round >= warm_up {
            changed.push(times.0);
            new.push(times.1);
            theirs.push(times.2);
        }
    }
    kernel.shutdown().await;
    let (changed, new, theirs): (Samples, Samples, Samples) =
        (changed.into_iter().collect(), new.into_iter().collect(), theirs.into_iter().collect());
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(
        row("write_file of a tool that is there, p50")
            .ours(changed.median())
            .peer("git add, git commit", theirs.median()),
    );
    section.row(
        row("write_file of a new tool, with the search for similar ones, p50")
            .ours(new.median())
            .peer("git add, git commit", theirs.median()),
    );
    section.contender("write with its commit", Side::Ours, "write_file, changed tool", &changed);
    section.contender("write with its commit", Side::Ours, "write_file, new tool", &new);
    section.contender("write with its commit", Side::Peer, "git add, git commit", &theirs);
    section.note(format!("{rounds} rounds, {tools} tools to begin with; ours: {}", changed.tail()));
    Ok(())
}

async fn write(kernel: &Kernel, tool: TradeTool, version: usize) -> Result<Duration> {
    let call = json!({ "path": tool.path(), "content": tool.source(version) });
    let started = Instant::now();
    let result = kernel.call("write_file", call).await;
    let time = started.elapsed();
    result.into_result().with_context(|| format!("write_file of {} failed", tool.path()))?;
    Ok(time)
}

fn commit(folder: &Path, round: usize) -> Result<Duration> {
    let name = format!("tool{round}.ts");
    let source = TradeTool::scattered(round).source(1);
    let started = Instant::now();
    fs::write(folder.join(&name), source)?;
    git(folder, &["add", "--", &name])?;
    git(folder, &["commit", "--quiet", "--message", &format!("Forge: {name}")])?;
    Ok(started.elapsed())
}

/// Git as a peer: with no configuration of the user, and a name to sign with.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new("git")
        .args(["-c", "user.name=peer", "-c", "user.email=peer@example.com", "-c", "gc.auto=0"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("git cannot be run")?;
    if !status.success() {
        bail!("git {arguments:?} failed");
    }
    Ok(())
}
