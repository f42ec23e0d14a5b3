//! The audit with more and more entries: append, open, tail, verify.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tgp_audit::{Anchor, Audit, AuditFilter, AuditOptions, AuditReader, FileAnchor};
use tgp_contract::{
    Actor, CallContext, CallRecord, Consent, Effect, Execution, Recorder, ToolCall, ToolResult,
};

use super::{CurveBuilder, Sizes};
use crate::report::{Section, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const SIZES: Sizes = Sizes {
    smoke: &[1, 50],
    usual: &[1, 1_000, 10_000, 100_000],
    long: &[1, 1_000, 10_000, 100_000, 1_000_000],
};
/// Appends and tails that are timed at each size.
const CALLS: usize = 100;
/// Timed opens and verifications of the whole chain.
const ROUNDS: usize = 3;
/// Entries of a tail, as many as `tgp audit tail` shows.
const TAIL: usize = 20;

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (calls, rounds) = settings.or_smoke((CALLS, ROUNDS), (2, 1));
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let path = folder.path().join("audit.sqlite");
    let anchor: Arc<dyn Anchor> = Arc::new(FileAnchor::new(folder.path().join("anchor")));
    let mut curve = CurveBuilder::new("audit over entries", "entries", Unit::Milliseconds);
    let mut entries = 0;
    for &size in SIZES.chosen(settings.scale) {
        let open = || Audit::open(AuditOptions::new(&path), Arc::clone(&anchor));
        let audit = open()?;
        // What was appended at the size before counts, too.
        for number in entries..size {
            audit.record(record(number)).await?;
        }
        audit.close().await?;
        entries = entries.max(size);
        let mut opens = Vec::new();
        for _ in 0..rounds {
            let started = Instant::now();
            let audit = open()?;
            opens.push(started.elapsed());
            audit.close().await?;
        }
        curve.point("open", size, &opens.into_iter().collect());
        let reader = AuditReader::open(&path, Arc::clone(&anchor))?;
        let tails = timed(calls, || Ok(reader.tail(&AuditFilter::default(), TAIL).map(drop)?))?;
        curve.point(&format!("tail of {TAIL}"), size, &tails);
        let verified = timed(rounds, || {
            let report = reader.verify()?;
            ensure!(report.entries == entries as u64, "{} entries instead of {entries}", report.entries);
            Ok(())
        })?;
        curve.point("verify the whole chain", size, &verified);
        drop(reader);
        let audit = open()?;
        let mut appends = Vec::with_capacity(calls);
        for number in 0..calls {
            let started = Instant::now();
            audit.record(record(entries + number)).await?;
            audit.settle().await?;
            appends.push(started.elapsed());
        }
        audit.close().await?;
        entries += calls;
        curve.point("append, until it is in the database", size, &appends.into_iter().collect());
    }
    curve.finish(section);
    Ok(())
}

fn timed(count: usize, mut work: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut times: Vec<Duration> = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(times.into_iter().collect())
}

/// A small call that was allowed and done.
fn record(number: usize) -> CallRecord {
    CallRecord {
        serial: 0,
        call: ToolCall {
            id: format!("call-{number}"),
            tool: "fs_read".to_owned(),
            arguments: json!({ "path": format!("src/file{number}.ts") }),
        },
        tool: Some("fs_read".to_owned()),
        effect: Some(Effect::Read),
        context: CallContext {
            actor: Actor::Agent("bench".to_owned()),
            session: format!("session-{}", number / 1_000),
            consent: Consent::Ask,
            dry_run: false,
            depth: 0,
            token: None,
        },
        targets: Vec::new(),
        verdicts: Vec::new(),
        files: Vec::new(),
        rows_changed: None,
        exit_code: None,
        execution: Execution::Done,
        cancelled: false,
        result: ToolResult::Done(json!({ "text": "export const a = 1;", "lines": 1 })),
        started_ms: 1_800_000_000_000 + number as u64,
        duration_us: 120,
    }
}
