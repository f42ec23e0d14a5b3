//! `search` and `exec_tool` with more and more tools in the repository.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tgp::Kernel;

use super::{CurveBuilder, Sizes};
use crate::exec::PAUSE;
use crate::project::{Project, run_small_tool};
use crate::report::{Section, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;
use crate::trades::TradeTool;

const SIZES: Sizes = Sizes { smoke: &[10, 20], usual: &[10, 100, 1_000], long: &[10, 100, 1_000, 10_000] };
/// Calls of each kind at each size.
const CALLS: usize = 50;
/// Calls that do not count.
const WARM_UP: usize = 3;

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let calls = settings.or_smoke(CALLS, 2);
    let mut curve = CurveBuilder::new("search and exec_tool over tools", "tools", Unit::Milliseconds);
    for &size in SIZES.chosen(settings.scale) {
        let project = Project::new()?;
        // The small tool is one of them.
        for number in 1..size {
            let tool = TradeTool::scattered(number);
            project.write(&tool.path(), &tool.source(1))?;
        }
        let kernel = project.boot().await?;
        let started = Instant::now();
        search(&kernel, 0).await?;
        let indexed = started.elapsed().as_secs_f64();
        curve.point("search", size, &searches(&kernel, calls).await?);
        curve.point("exec_tool, warm pool", size, &runs(&kernel, calls).await?);
        kernel.shutdown().await;
        section.note(format!(
            "{size} tools: the first search, which reads and embeds them, took {indexed:.1} s"
        ));
    }
    curve.finish(section);
    Ok(())
}

async fn searches(kernel: &Kernel, calls: usize) -> Result<Samples> {
    let mut times = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let started = Instant::now();
        // Another question each time, so that its embedding is not cached.
        search(kernel, number).await?;
        if number >= WARM_UP {
            times.push(started.elapsed());
        }
    }
    Ok(times.into_iter().collect())
}

async fn search(kernel: &Kernel, number: usize) -> Result<()> {
    let query = format!("{} number {number}", TradeTool::scattered(number).description());
    kernel.call("search", json!({ "query": query })).await.into_result().context("search failed")?;
    Ok(())
}

async fn runs(kernel: &Kernel, calls: usize) -> Result<Samples> {
    let mut times = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let run = run_small_tool(kernel).await?;
        if number >= WARM_UP {
            times.push(run.time);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times.into_iter().collect())
}
