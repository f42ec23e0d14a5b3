//! `check_tool` on a tool of 100 lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tgp::Kernel;

use crate::cold::{Contender, alternate, deno_environment, tgp};
use crate::project::Project;
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const BUDGET_MS: f64 = 5.0;
const TYPED_BUDGET_MS: f64 = 60.0;
const WARM_UP: usize = 10;
const CHECKED: &str = "tools/shop/orders.ts";
/// One line less than what is measured: the last line is another one for every check.
const SOURCE: &str = include_str!("../fixtures/orders.ts");
/// Names a folder with TypeScript 7 in its `node_modules`; `cargo xtask` sets it.
const NODE_MODULES_VARIABLE: &str = "TGP_TEST_NODE_MODULES";

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let (runs, warm_up) = (settings.runs, settings.or_smoke(WARM_UP, 1));
    let project = Project::new()?;
    let kernel = project.boot().await?;
    let plain = times(&project, &kernel, (warm_up, runs), "skipped").await?;
    kernel.shutdown().await;
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    section.row(row("check_tool, 100 lines, p50").ours(plain.median()).budget(Budget::Below(BUDGET_MS)));
    section.row(row("check_tool, 100 lines, p95").ours(plain.percentile(95)));
    section.contender("check_tool, 100 lines", Side::Ours, "without types", &plain);
    match types_project()? {
        Ok(project) => {
            let kernel = project.boot().await?;
            let typed = times(&project, &kernel, (warm_up, settings.processes), "checked").await?;
            kernel.shutdown().await;
            section.row(
                row("check_tool, 100 lines, with TypeScript 7, p50")
                    .ours(typed.median())
                    .budget(Budget::Below(TYPED_BUDGET_MS)),
            );
            section.contender("check_tool, 100 lines", Side::Ours, "with TypeScript 7", &typed);
        }
        Err(reason) => section.skipped("check_tool with types", &reason),
    }
    as_processes(section, &project, settings)?;
    section.note(format!("{runs} checks, each of a source the kernel has not seen before"));
    Ok(())
}

/// Checks that do not count, and checks that do.
async fn times(
    project: &Project,
    kernel: &Kernel,
    (warm_up, runs): (usize, usize),
    types: &str,
) -> Result<Samples> {
    let mut times: Vec<Duration> = Vec::with_capacity(runs);
    for run in 0..warm_up + runs {
        project.write(CHECKED, &format!("{SOURCE}// {run}\n"))?;
        let started = Instant::now();
        let result = kernel.call("check_tool", json!({ "path": CHECKED })).await;
        let time = started.elapsed();
        let data = result.into_result().context("check_tool failed")?;
        if data.get("valid") != Some(&json!(true)) || data.get("types").and_then(Value::as_str) != Some(types)
        {
            bail!("the measured tool must be valid and its types {types}, but the check says {data}");
        }
        if run >= warm_up {
            times.push(time);
        }
    }
    Ok(times.into_iter().collect())
}

/// A project with TypeScript 7, or why there is none.
fn types_project() -> Result<std::result::Result<Project, String>> {
    let Some(folder) = std::env::var_os(NODE_MODULES_VARIABLE).map(PathBuf::from) else {
        return Ok(Err(format!("{NODE_MODULES_VARIABLE} is not set")));
    };
    if tgp::sandbox::native_type_checker(Path::new(&folder)).is_none() {
        return Ok(Err(format!("there is no TypeScript 7 in {}", folder.display())));
    }
    let project = Project::new()?;
    symlink(folder.join("node_modules"), project.directory().join("node_modules"))?;
    Ok(Ok(project))
}

/// The same as a command, against the linter a user would start instead.
fn as_processes(section: &mut Section, project: &Project, settings: &BenchSettings) -> Result<()> {
    let deno = match settings.peers.deno()? {
        Ok(deno) => deno,
        Err(missing) => {
            section.skipped("deno lint", &missing.0);
            return Ok(());
        }
    };
    let file = project.beside("orders.ts");
    fs::write(&file, SOURCE)?;
    let ours = tgp("tgp check", &project.directory(), &["check", CHECKED], project.beside("cache"))?;
    let theirs = Contender {
        name: format!("{} lint", deno.name),
        program: deno.path,
        arguments: vec!["lint".into(), file.into()],
        environment: deno_environment(project.beside("deno")),
        forget: None,
        expected: None,
    };
    let samples = alternate(&[ours, theirs], settings)?;
    if let [ours, theirs] = samples.as_slice() {
        let name = format!("{} lint", deno.name);
        let row = Row::new("tgp check as a process, 100 lines", Unit::Milliseconds);
        section.row(row.ours(ours.median()).peer(&name, theirs.median()).budget(Budget::Better));
        section.contender("check as a process, 100 lines", Side::Ours, "tgp check", ours);
        section.contender("check as a process, 100 lines", Side::Peer, &name, theirs);
    }
    Ok(())
}
