//! The functions of `@tgp/std` in a worker, against a package for Node that does the same.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tgp::Kernel;

use crate::peers::node;
use crate::project::Project;
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const PEER: &str = "papaparse@5.5.3";
/// Rows of the table; the budget is for a thousand of them.
const ROWS: usize = 10_000;
const SMOKE_ROWS: usize = 100;
const BUDGET_MS: f64 = 3.0;
const TOOL: &str = "tools/bench/standard.ts";

/// Each function is called once in each run, on data that the tool has made itself.
const SOURCE: &str = "import * as std from '@tgp/std';
interface Order { id: string; customer: string; amount: number }
/** Times functions of the standard library. */
export default (args: { csv: string; rows: number }): Record<string, number> => {
  const orders: Order[] = Array.from({ length: args.rows }, (_, index) => ({
    id: `o${index}`, customer: `c${(index * 7919) % 997}`, amount: (index * 31) % 1009,
  }));
  const time = (work: () => unknown): number => {
    const started = performance.now();
    work();
    return performance.now() - started;
  };
  return {
    parseCsv: time(() => std.parseCsv(args.csv)),
    toCsv: time(() => std.toCsv(orders as unknown as Record<string, unknown>[])),
    sortBy: time(() => std.sortBy(orders, (order) => order.amount)),
    groupBy: time(() => std.groupBy(orders, (order) => order.customer)),
    countBy: time(() => std.countBy(orders, (order) => order.customer)),
    uniq: time(() => std.uniq(orders, (order) => order.customer)),
  };
};
";

/// The same parser calls in Node, as many as there are runs.
const SCRIPT: &str = "const [, package_, runs, csv] = process.argv;
const { parse } = require(package_);
const text = require('fs').readFileSync(csv, 'utf8');
const times = [];
for (let run = 0; run < Number(runs); run++) {
  const started = performance.now();
  if (parse(text, { header: true, skipEmptyLines: true }).data.length === 0) throw new Error('no rows');
  times.push(performance.now() - started);
}
console.log(JSON.stringify(times));
";

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (runs, rows) = (settings.runs.min(50), settings.or_smoke(ROWS, SMOKE_ROWS));
    for (what, text) in [("plain", table(rows, false)), ("every row with quotes", table(rows, true))] {
        let project = Project::new()?;
        project.write(TOOL, SOURCE)?;
        project
            .write("../tgp.config.json", r#"{"sandbox":{"cpuMs":10000,"wallMs":60000,"memoryMb":256}}"#)?;
        let _ = std::fs::remove_file(project.directory().join("tgp.config.ts"));
        let kernel = project.boot().await?;
        let mut ours = Vec::new();
        for _ in 0..runs {
            ours.push(run(&kernel, &text, rows).await?);
        }
        kernel.shutdown().await;
        let samples = |name: &str| -> Samples {
            let times = ours.iter().filter_map(|times| times.get(name).and_then(Value::as_f64));
            per_thousand(rows, times)
        };
        let group = format!("parseCsv, {what}, per 1,000 rows");
        section.contender(&group, Side::Ours, "@tgp/std in a worker", &samples("parseCsv"));
        let row = Row::new(&group, Unit::Milliseconds);
        let row = row.ours(samples("parseCsv").median()).budget(Budget::Below(BUDGET_MS));
        let row = match peer(&project, &text, settings)? {
            Ok(times) => {
                let theirs = per_thousand(rows, times.into_iter());
                section.contender(&group, Side::Peer, PEER, &theirs);
                row.peer(PEER, theirs.median())
            }
            Err(reason) => {
                section.skipped(PEER, &reason);
                row
            }
        };
        section.row(row);
        if what == "plain" {
            for name in ["toCsv", "sortBy", "groupBy", "countBy", "uniq"] {
                let row = Row::new(&format!("{name}, per 1,000 items"), Unit::Milliseconds);
                section.row(row.ours(samples(name).median()));
            }
        }
    }
    section.note(format!(
        "medians of {runs} runs on {rows} rows of six columns, timed inside the worker and inside Node"
    ));
    Ok(())
}

/// What each time is for a thousand rows.
fn per_thousand(rows: usize, times: impl Iterator<Item = f64>) -> Samples {
    times.map(|time| time / (rows as f64 / 1000.0)).collect()
}

async fn run(kernel: &Kernel, text: &str, rows: usize) -> Result<Value> {
    let arguments = json!({ "path": TOOL, "args": { "csv": text, "rows": rows } });
    let data = kernel.call("exec_tool", arguments).await.into_result().context("exec_tool failed")?;
    Ok(data.get("result").cloned().unwrap_or_default())
}

fn peer(
    project: &Project,
    text: &str,
    settings: &BenchSettings,
) -> Result<std::result::Result<Vec<f64>, String>> {
    let node = match node() {
        Ok(node) => node,
        Err(missing) => return Ok(Err(missing.to_string())),
    };
    let package = match settings.peers.npm_package(PEER)? {
        Ok(package) => package,
        Err(missing) => return Ok(Err(missing.to_string())),
    };
    let csv = project.beside("table.csv");
    std::fs::write(&csv, text)?;
    let output = Command::new(&node.path)
        .args(["-e", SCRIPT])
        .arg(&package.path)
        .arg(settings.runs.min(50).to_string())
        .arg(&csv)
        .output()
        .context("node cannot be started")?;
    if !output.status.success() {
        bail!("papaparse failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Ok(serde_json::from_slice(&output.stdout).context("node did not answer with a list of numbers")?))
}

/// A table as an export of a shop has it.
fn table(rows: usize, quoted: bool) -> String {
    let mut text = String::from("id,name,city,amount,currency,note\n");
    for row in 0..rows {
        let note = if quoted { format!("\"said \"\"{row}\"\", twice\"") } else { format!("note {row}") };
        text.push_str(&format!(
            "{row},Customer {row},Berlin,{}.{:02},EUR,{note}\n",
            row * 7 % 1000,
            row % 100
        ));
    }
    text
}
