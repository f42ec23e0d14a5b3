//! A kernel that starts with nothing but a remote of 1,000 tools, against a plain clone; and what so many tools add to a
//! write and a search.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tgp::Kernel;

use crate::persist::git;
use crate::project::{Project, boot, shipped_binary};
use crate::report::{Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;
use crate::trades::TradeTool;

const TOOLS: usize = 1_000;
/// What the same is measured with for comparison.
const FEW_TOOLS: usize = 10;
/// Each round makes and removes thousands of files.
const ROUNDS: usize = 7;
/// The first writes start processes and fill caches.
const WARM_UP: usize = 2;

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (rounds, tools) = settings.or_smoke((ROUNDS, TOOLS), (1, 20));
    let project = Project::new()?;
    let remote = project.beside("remote.git");
    fill(&project.beside("source"), &remote, tools)?;
    let url = format!("file://{}", remote.display());
    let (mut first, mut again, mut clones, mut fetches) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let folder = project.beside(&format!("agent{round}"));
        fs::create_dir(&folder)?;
        configure(&folder, &url)?;
        first.push(start(&project, &folder).await?);
        again.push(start(&project, &folder).await?);
        let clone = project.beside(&format!("clone{round}"));
        let name = clone.display().to_string();
        let started = Instant::now();
        git(&project.beside("source"), &["clone", "--quiet", "--depth=1", "--single-branch", &url, &name])?;
        clones.push(started.elapsed());
        let started = Instant::now();
        git(&clone, &["fetch", "--quiet", "origin", "main"])?;
        fetches.push(started.elapsed());
        fs::remove_dir_all(&folder)?;
        fs::remove_dir_all(&clone)?;
    }
    let samples = |times: Vec<Duration>| times.into_iter().collect::<Samples>();
    let (first, again) = (samples(first), samples(again));
    let (clones, fetches) = (samples(clones), samples(fetches));
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(
        row("boot of a kernel with an empty root, p50")
            .ours(first.median())
            .peer("git clone --depth=1", clones.median()),
    );
    section.row(
        row("boot when nothing has moved, p50").ours(again.median()).peer("git fetch", fetches.median()),
    );
    section.contender("first start from a remote", Side::Ours, "boot of a kernel", &first);
    section.contender("first start from a remote", Side::Peer, "git clone --depth=1", &clones);
    section.contender("start when nothing has moved", Side::Ours, "boot of a kernel", &again);
    section.contender("start when nothing has moved", Side::Peer, "git fetch", &fetches);
    section.note(format!(
        "{tools} tools, {rounds} rounds; a boot includes the sandbox and its first warm worker"
    ));
    grown(&project, section, rounds, tools).await
}

/// One write and one search with a remote, with many tools and with few, in turns.
async fn grown(project: &Project, section: &mut Section, rounds: usize, tools: usize) -> Result<()> {
    let (many, few) = (agent(project, "many", tools).await?, agent(project, "few", FEW_TOOLS).await?);
    let (mut with_many, mut with_few) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + rounds {
        let times = (write_and_search(&many, round).await?, write_and_search(&few, round).await?);
        if round >= WARM_UP {
            with_many.push(times.0);
            with_few.push(times.1);
        }
    }
    many.shutdown().await;
    few.shutdown().await;
    let samples = |times: Vec<Duration>| times.into_iter().collect::<Samples>();
    section.row(
        Row::new(
            &format!("write_file of a new tool with a push, then a search, {tools} tools, p50"),
            Unit::Milliseconds,
        )
        .ours(samples(with_many).median())
        .peer("ours with 10 tools", samples(with_few).median()),
    );
    Ok(())
}

/// A kernel that knows all tools of its own remote.
async fn agent(project: &Project, name: &str, count: usize) -> Result<Kernel> {
    let (remote, folder) = (project.beside(&format!("{name}.git")), project.beside(&format!("{name}-agent")));
    fill(&project.beside(&format!("{name}-source")), &remote, count)?;
    fs::create_dir(&folder)?;
    let url = format!("file://{}", remote.display());
    configure(&folder, &url)?;
    let kernel = boot(&folder, &project.beside("cache"), Some(shipped_binary()?)).await?;
    search(&kernel).await?;
    Ok(kernel)
}

/// Some tools are close for the search, which must not keep them from being written.
fn configure(folder: &Path, url: &str) -> Result<()> {
    let config = json!({ "git": { "url": url }, "registry": { "onDuplicate": "warn" } });
    Ok(fs::write(folder.join("tgp.config.json"), config.to_string())?)
}

async fn write_and_search(kernel: &Kernel, round: usize) -> Result<Duration> {
    let tool = TradeTool::scattered(TOOLS + round);
    let call = json!({ "path": tool.path(), "content": tool.source(1) });
    let started = Instant::now();
    kernel.call("write_file", call).await.into_result().context("write_file failed")?;
    search(kernel).await?;
    Ok(started.elapsed())
}

async fn search(kernel: &Kernel) -> Result<()> {
    let call = json!({ "query": "repairs of the organ in a church" });
    kernel.call("search", call).await.into_result().context("search failed")?;
    Ok(())
}

async fn start(project: &Project, folder: &Path) -> Result<Duration> {
    let started = Instant::now();
    let kernel = boot(folder, &project.beside("cache"), Some(shipped_binary()?)).await?;
    let time = started.elapsed();
    kernel.shutdown().await;
    Ok(time)
}

/// A bare repository with the tools in one commit.
fn fill(source_folder: &Path, remote: &Path, count: usize) -> Result<()> {
    for number in 0..count {
        let tool = TradeTool::scattered(number);
        let file = source_folder.join(tool.path());
        fs::create_dir_all(file.parent().context("a tool is in a folder")?)?;
        fs::write(file, tool.source(1))?;
    }
    git(source_folder, &["init", "--quiet", "--initial-branch=main"])?;
    git(source_folder, &["add", "."])?;
    git(source_folder, &["commit", "--quiet", "--message", "The tools"])?;
    git(source_folder, &["clone", "--quiet", "--bare", ".", &remote.display().to_string()])
}
