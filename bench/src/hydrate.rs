//! A kernel that starts with nothing but a remote of 1,000 tools, against a plain clone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::persist::{git, source};
use crate::project::{Project, boot, shipped_binary};
use crate::report::{Row, Section, Unit};
use crate::samples::Samples;

const TOOLS: usize = 1_000;

pub async fn measure(section: &mut Section, rounds: usize) -> Result<()> {
    let project = Project::new()?;
    let remote = project.beside("remote.git");
    fill(&project.beside("source"), &remote)?;
    let url = format!("file://{}", remote.display());
    let (mut first, mut again, mut clones, mut fetches) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let folder = project.beside(&format!("agent{round}"));
        fs::create_dir(&folder)?;
        fs::write(folder.join("tgp.config.json"), json!({ "git": { "url": url } }).to_string())?;
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
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(
        row("boot of a kernel with an empty root, p50")
            .ours(first.median())
            .peer("git clone --depth=1", samples(clones).median()),
    );
    section.row(
        row("boot when nothing has moved, p50")
            .ours(again.median())
            .peer("git fetch", samples(fetches).median()),
    );
    section.note(format!("{TOOLS} tools, {rounds} rounds; a boot includes the sandbox and its warm workers"));
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
fn fill(source_folder: &Path, remote: &Path) -> Result<()> {
    for number in 0..TOOLS {
        let folder = source_folder.join(format!("tools/group{}", number % 20));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("tool{number}.ts")), source(number))?;
    }
    git(source_folder, &["init", "--quiet", "--initial-branch=main"])?;
    git(source_folder, &["add", "."])?;
    git(source_folder, &["commit", "--quiet", "--message", "A thousand tools"])?;
    git(source_folder, &["clone", "--quiet", "--bare", ".", &remote.display().to_string()])
}
