//! `exec_sql` through the router, against the driver alone on the same kind of file.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::Connection;
use serde_json::{Value, json};
use tgp::Kernel;

use crate::project::Project;
use crate::report::{Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const WARM_UP: usize = 20;
const TABLE: &str = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO items (name) VALUES (?)";
const SELECT: &str = "SELECT id, name FROM items WHERE id = ?";

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (runs, warm_up) = (settings.runs, settings.or_smoke(WARM_UP, 1));
    let project = Project::new()?;
    let kernel = project.boot().await?;
    call(&kernel, TABLE, json!([])).await?;
    let bare = Connection::open(project.beside("bare.sqlite"))?;
    bare.pragma_update(None, "journal_mode", "WAL")?;
    bare.execute_batch(TABLE)?;
    let (mut inserts, mut selects) = (Pair::default(), Pair::default());
    for run in 0..warm_up + runs {
        let name = format!("item {run}");
        let id = i64::try_from(run / 2 + 1)?;
        let inserted = (call(&kernel, INSERT, json!([name])).await?, insert(&bare, &name)?);
        let selected = (call(&kernel, SELECT, json!([id])).await?, select(&bare, id)?);
        if run >= warm_up {
            inserts.push(inserted);
            selects.push(selected);
        }
    }
    kernel.shutdown().await;
    for (what, pair) in [("select", selects), ("insert", inserts)] {
        let (ours, theirs): (Samples, Samples) = (pair.0.into_iter().collect(), pair.1.into_iter().collect());
        let row = Row::new(&format!("exec_sql, {what} of one row, p50"), Unit::Milliseconds);
        section.row(row.ours(ours.median()).peer("rusqlite alone", theirs.median()));
        let row = Row::new(&format!("overhead of a call, {what}"), Unit::Milliseconds);
        section.row(row.ours(ours.median() - theirs.median()));
        let group = format!("{what} of one row");
        section.contender(&group, Side::Ours, "exec_sql", &ours);
        section.contender(&group, Side::Peer, "rusqlite alone", &theirs);
    }
    section.note(format!(
        "{runs} calls of each kind, in turn, each in a transaction of its own, WAL on both sides"
    ));
    Ok(())
}

#[derive(Default)]
struct Pair(Vec<Duration>, Vec<Duration>);

impl Pair {
    fn push(&mut self, (ours, theirs): (Duration, Duration)) {
        self.0.push(ours);
        self.1.push(theirs);
    }
}

async fn call(kernel: &Kernel, sql: &str, params: Value) -> Result<Duration> {
    let arguments = json!({ "sql": sql, "params": params });
    let started = Instant::now();
    let result = kernel.call("exec_sql", arguments).await;
    let time = started.elapsed();
    result.into_result().context("exec_sql failed")?;
    Ok(time)
}

fn insert(bare: &Connection, name: &str) -> Result<Duration> {
    let started = Instant::now();
    bare.execute_batch("BEGIN IMMEDIATE")?;
    bare.prepare_cached(INSERT)?.execute([name])?;
    bare.execute_batch("COMMIT")?;
    Ok(started.elapsed())
}

fn select(bare: &Connection, id: i64) -> Result<Duration> {
    let started = Instant::now();
    bare.execute_batch("BEGIN IMMEDIATE")?;
    let _row: (i64, String) =
        bare.prepare_cached(SELECT)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    bare.execute_batch("COMMIT")?;
    Ok(started.elapsed())
}
