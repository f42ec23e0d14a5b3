//! `exec_tool` on a warm pool, end to end in the kernel, against a new isolate for each run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tgp::Kernel;

use crate::peer_process::{Contender, PeerProcess};
use crate::project::{Project, Run, run_small_tool};
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const MEDIAN_BUDGET_MS: f64 = 0.3;
const TIMES_FASTER: f64 = 8.0;
const TIMES_THROUGHPUT: f64 = 2.0;
/// Runs of each contender that do not count.
const WARM_UP: usize = 30;
/// Between two runs: time to start the next worker, because the promise is about a warm pool.
pub const PAUSE: Duration = Duration::from_millis(20);
/// Callers that ask at the same time.
const CALLERS: usize = 4;
/// The peer that the budgets are held against.
const JUDGED: &str = "isolated-vm";

const WARM_GROUP: &str = "exec_tool on a warm pool, one run";
const HOT_GROUP: &str = "hot loop, one caller, one run";

/// What a peer took.
struct PeerTimes {
    contender: Contender,
    alternating: Vec<f64>,
    hot: Samples,
}

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let runs = settings.runs;
    let warm_up = settings.or_smoke(WARM_UP, 1);
    let mut processes = PeerProcess::start_all(section, settings)?;
    let mut peers = Vec::new();
    for process in &mut processes {
        let mut times = Vec::new();
        for contender in process.contenders().to_vec() {
            process.run(contender.key, warm_up)?;
            times.push(PeerTimes { contender, alternating: Vec::new(), hot: Samples::default() });
        }
        peers.push((process, times));
    }
    let project = Project::new()?;
    let kernel = Arc::new(project.boot().await?);
    for _ in 0..warm_up {
        run_small_tool(&kernel).await?;
        tokio::time::sleep(PAUSE).await;
    }
    // Contenders take turns, so that whatever else the machine does meets all of them.
    let mut ours: Vec<Run> = Vec::with_capacity(runs);
    for _ in 0..runs {
        ours.push(run_small_tool(&kernel).await?);
        tokio::time::sleep(PAUSE).await;
        for (process, times) in &mut peers {
            for peer in times {
                peer.alternating.extend(process.run(peer.contender.key, 1)?);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    for (process, times) in &mut peers {
        for peer in times {
            peer.hot = process.run(peer.contender.key, runs)?.into_iter().collect();
        }
    }
    let hot = hot_loop(&kernel, runs, 1).await?;
    let several_callers = hot_loop(&kernel, runs, CALLERS).await?;
    if let Some(kernel) = Arc::into_inner(kernel) {
        kernel.shutdown().await;
    }
    let peers: Vec<PeerTimes> = peers.into_iter().flat_map(|(_, times)| times).collect();
    latency_rows(section, &ours, &peers);
    throughput_rows(section, &hot, &several_callers, &peers);
    section.note(format!(
        "{runs} runs each, contenders alternate, {} ms apart; each of ours is a jailed process and a heap of its own",
        PAUSE.as_millis()
    ));
    Ok(())
}

/// What a hot loop gave: runs per second, and the time of each run.
struct HotLoop {
    rate: f64,
    times: Samples,
}

/// Runs without pauses: the pool is drained and every run waits for a worker to start.
async fn hot_loop(kernel: &Arc<Kernel>, runs: usize, callers: usize) -> Result<HotLoop> {
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let kernel = Arc::clone(kernel);
            tokio::spawn(async move {
                let mut times = Vec::new();
                for _ in 0..runs.div_ceil(callers) {
                    times.push(run_small_tool(&kernel).await?.time);
                }
                Ok::<_, anyhow::Error>(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.context("a caller panicked")??);
    }
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    Ok(HotLoop { rate, times: times.into_iter().collect() })
}

fn latency_rows(section: &mut Section, ours: &[Run], peers: &[PeerTimes]) {
    let times: Samples = ours.iter().map(|run| run.time).collect();
    let inside: Samples = ours.iter().map(|run| run.in_worker).collect();
    let around: Samples = ours.iter().map(|run| run.time.as_secs_f64() * 1000.0 - run.in_worker).collect();
    let median = times.median();
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(row("exec_tool, warm pool, p50").ours(median).budget(Budget::Below(MEDIAN_BUDGET_MS)));
    section.row(row("exec_tool, warm pool, p95").ours(times.percentile(95)));
    section.row(row("exec_tool, warm pool, p99").ours(times.percentile(99)));
    section.row(row("  of p50: request to worker until its answer").ours(inside.median()));
    section.row(row("  of p50: router, gates, runtime, pool, record").ours(around.median()));
    section.contender(WARM_GROUP, Side::Ours, "tgp, own process", &times);
    for peer in peers {
        let samples: Samples = peer.alternating.iter().copied().collect();
        let row = row("p50 against").ours(median).peer(&peer.contender.name, samples.median());
        section.row(match peer.contender.key {
            JUDGED => row.budget(Budget::TimesBetter(TIMES_FASTER)),
            _ => row,
        });
        section.contender(WARM_GROUP, Side::Peer, &peer.contender.name, &samples);
        section.note(format!("{}: {}", peer.contender.name, samples.tail()));
    }
}

fn throughput_rows(section: &mut Section, one: &HotLoop, several: &HotLoop, peers: &[PeerTimes]) {
    let row = |what: &str, ours: f64| Row::new(what, Unit::RunsPerSecond).ours(ours);
    section.contender(HOT_GROUP, Side::Ours, "tgp, own process", &one.times);
    if peers.is_empty() {
        section.row(row("hot loop, 1 caller", one.rate));
    }
    for peer in peers {
        // One run after the other: the runs per second are what is left of the mean time.
        let row = row("hot loop, 1 caller", one.rate).peer(&peer.contender.name, 1000.0 / peer.hot.mean());
        section.row(match peer.contender.key {
            JUDGED => row.budget(Budget::TimesBetter(TIMES_THROUGHPUT)),
            _ => row,
        });
        section.contender(HOT_GROUP, Side::Peer, &peer.contender.name, &peer.hot);
    }
    let what = format!("hot loop, {CALLERS} callers in one kernel");
    section.row(row(&what, several.rate).peer("with 1 caller", one.rate));
}
