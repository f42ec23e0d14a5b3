//! `exec_tool` on a warm pool, end to end in the kernel, against a new isolate for each run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tgp::Kernel;

use crate::node::NodePeer;
use crate::peers;
use crate::project::{Project, Run, run_small_tool};
use crate::report::{Budget, Row, Section, Unit};
use crate::samples::Samples;

const MEDIAN_BUDGET_MS: f64 = 0.5;
const TIMES_FASTER: f64 = 5.0;
/// Runs of each contender that do not count.
const WARM_UP: usize = 30;
/// Between two runs: time to start the next worker, because the promise is about a warm pool.
const PAUSE: Duration = Duration::from_millis(20);
/// Callers that ask at the same time.
const CALLERS: usize = 4;

/// A peer in the Node process: what the protocol calls it, and what the report does.
struct Contender {
    key: &'static str,
    name: String,
    alternating: Vec<f64>,
    hot: Samples,
}

pub async fn measure(section: &mut Section, runs: usize) -> Result<()> {
    let (mut node, mut contenders) = start_peers(section)?;
    let project = Project::new()?;
    let kernel = Arc::new(project.boot().await?);
    for _ in 0..WARM_UP {
        run_small_tool(&kernel).await?;
        tokio::time::sleep(PAUSE).await;
    }
    // Contenders take turns, so that whatever else the machine does meets all of them.
    let mut ours: Vec<Run> = Vec::with_capacity(runs);
    for _ in 0..runs {
        ours.push(run_small_tool(&kernel).await?);
        tokio::time::sleep(PAUSE).await;
        for contender in &mut contenders {
            let node = node.as_mut().context("no node for its contenders")?;
            contender.alternating.extend(node.run(contender.key, 1)?);
            tokio::time::sleep(PAUSE).await;
        }
    }
    for contender in &mut contenders {
        let node = node.as_mut().context("no node for its contenders")?;
        contender.hot = node.run(contender.key, runs)?.into_iter().collect();
    }
    let one_caller = throughput(&kernel, runs, 1).await?;
    let several_callers = throughput(&kernel, runs, CALLERS).await?;
    if let Some(kernel) = Arc::into_inner(kernel) {
        kernel.shutdown().await;
    }
    latency_rows(section, &ours, &contenders);
    throughput_rows(section, [one_caller, several_callers], &contenders);
    section.note(format!(
        "{runs} runs each, contenders alternate, {} ms apart; each of ours is a jailed process and a heap of its own",
        PAUSE.as_millis()
    ));
    Ok(())
}

fn start_peers(section: &mut Section) -> Result<(Option<NodePeer>, Vec<Contender>)> {
    let node = match peers::node() {
        Ok(node) => node,
        Err(missing) => {
            section.skipped("isolated-vm and the peers inside node", &missing.0);
            return Ok((None, Vec::new()));
        }
    };
    let mut names = Vec::new();
    let isolated_vm = match peers::isolated_vm(&node)? {
        Ok(installed) => {
            names.push(("isolated-vm", format!("{} on {}", installed.name, node.name)));
            names.push(("isolated-vm-snapshot", "isolated-vm, isolate from a snapshot".to_owned()));
            Some(installed)
        }
        Err(missing) => {
            section.skipped("isolated-vm", &missing.0);
            None
        }
    };
    names.push(("node-vm", "node:vm, new context".to_owned()));
    names.push(("worker-threads", "worker_threads, new Worker".to_owned()));
    let mut process = NodePeer::start(&node, isolated_vm.as_ref())?;
    let mut contenders = Vec::new();
    for (key, name) in names {
        process.run(key, WARM_UP)?;
        contenders.push(Contender { key, name, alternating: Vec::new(), hot: Samples::default() });
    }
    Ok((Some(process), contenders))
}

/// Runs a second without pauses: the pool is drained and every run waits for a process to start.
async fn throughput(kernel: &Arc<Kernel>, runs: usize, callers: usize) -> Result<f64> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let kernel = Arc::clone(kernel);
            tokio::spawn(async move {
                for _ in 0..runs.div_ceil(callers) {
                    run_small_tool(&kernel).await?;
                }
                Ok::<_, anyhow::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.context("a caller panicked")??;
    }
    Ok((runs.div_ceil(callers) * callers) as f64 / started.elapsed().as_secs_f64())
}

fn latency_rows(section: &mut Section, ours: &[Run], contenders: &[Contender]) {
    let times: Samples = ours.iter().map(|run| run.time).collect();
    let inside: Samples = ours.iter().map(|run| run.in_worker).collect();
    let around: Samples = ours.iter().map(|run| run.time.as_secs_f64() * 1000.0 - run.in_worker).collect();
    let median = times.median();
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(row("exec_tool, warm pool, p50").ours(median).budget(Budget::Below(MEDIAN_BUDGET_MS)));
    section.row(row("exec_tool, warm pool, p95").ours(times.percentile(95)));
    section.row(row("exec_tool, warm pool, p99").ours(times.percentile(99)));
    section.row(row("  of p50: request to worker until its answer").ours(inside.median()));
    section.row(row("  of p50: router, gates, forge, pool, record").ours(around.median()));
    for contender in contenders {
        let peer: Samples = contender.alternating.iter().copied().collect();
        let row = row("p50 against").ours(median).peer(&contender.name, peer.median());
        section.row(match contender.key {
            "isolated-vm" => row.budget(Budget::TimesBetter(TIMES_FASTER)),
            _ => row,
        });
        if contender.key.starts_with("isolated-vm") {
            let name = format!("{}, hot loop", contender.name);
            section.row(
                Row::new("p50 against", Unit::Milliseconds).ours(median).peer(&name, contender.hot.median()),
            );
        }
    }
    for contender in contenders {
        let peer: Samples = contender.alternating.iter().copied().collect();
        section.note(format!("{}: {}", contender.name, peer.tail()));
    }
}

fn throughput_rows(section: &mut Section, ours: [f64; 2], contenders: &[Contender]) {
    let [one_caller, several_callers] = ours;
    let row = |what: &str, ours: f64| {
        let row = Row::new(what, Unit::RunsPerSecond).ours(ours);
        match contenders.iter().find(|contender| contender.key == "isolated-vm") {
            // One thread in a hot loop: its runs a second are what is left of its mean time.
            Some(peer) => row.peer(&peer.name, 1000.0 / peer.hot.mean()),
            None => row,
        }
    };
    section.row(row("throughput without pauses, 1 caller", one_caller));
    section.row(row(&format!("throughput without pauses, {CALLERS} callers"), several_callers));
}
