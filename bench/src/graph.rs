//! The code graph on a real package's sources: ingest, a one-file commit, queries, memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};
use tgp_graph::{GraphOptions, GraphStore};

use crate::machine::peak_megabytes;
use crate::peers::Installed;
use crate::persist::git;
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

/// A package of thousands of small modules that import each other.
const PACKAGE: &str = "date-fns@4.4.0";
const FILES: usize = 3_000;
/// Commits of one file each.
const COMMITS: usize = 15;
/// Questions of each kind.
const QUESTIONS: usize = 200;

const POINT: &str = "MATCH (f:File {path: $path}) RETURN f.language, f.lines";
const IMPORTERS: &str = "MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path";
const HOPS: &str = "MATCH (f:File {path: $path})-[:IMPORTS*1..3]->(g:File) RETURN DISTINCT g.path";

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let project = folder.path().join("project");
    let package = if settings.is_smoke() {
        Installed { path: generated(&folder.path().join("package"))?, name: "generated".to_owned() }
    } else {
        match settings.peers.npm_package(PACKAGE)? {
            Ok(package) => package,
            Err(missing) => {
                section.skipped(PACKAGE, &missing.0);
                return Ok(());
            }
        }
    };
    let files = fill(&package.path, &project)?;
    let store = GraphStore::open(GraphOptions::new(folder.path().join("graph.sqlite"), &project)).await?;
    let before = peak_megabytes()?;
    let started = Instant::now();
    let ingested = store.ingest("HEAD").await?;
    let whole = started.elapsed().as_secs_f64() * 1000.0;
    let after = peak_megabytes()?;
    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    let mut first = row(&format!("ingest of {files} files")).ours(whole).budget(Budget::Below(10_000.0));
    match ctags(&project) {
        Ok(time) => first = first.peer("ctags -R", time),
        Err(missing) => section.skipped("ctags", &missing),
    }
    section.row(first);
    section.row(
        Row::new("memory that the ingest has added", Unit::Megabytes)
            .ours((after - before).max(0.0))
            .budget(Budget::Below(500.0)),
    );
    let (edits, same) = commits(&store, &project).await?;
    section.row(row("ingest of a one-file commit, p50").ours(edits.median()).budget(Budget::Below(100.0)));
    section.row(row("ingest of a commit that is there already, p50").ours(same.median()));
    section.row(row("proposed change judged by one query, p50").ours(proposals(&store).await?.median()));
    let grep = grep(&project)?;
    let point = ask(&store, POINT, "add.js").await?;
    let importers = ask(&store, IMPORTERS, "constructFrom.js").await?;
    let hops = ask(&store, HOPS, "add.js").await?;
    section.row(row("point query, p50").ours(point.median()).budget(Budget::Below(1.0)));
    section.row(row("who imports a file, p50").ours(importers.median()).peer("git grep -l", grep.median()));
    section.row(row("three hops, p50").ours(hops.median()).budget(Budget::Below(10.0)));
    section.contender("query", Side::Ours, "point query", &point);
    section.contender("query", Side::Ours, "three hops", &hops);
    section.contender("who imports a file", Side::Ours, "query", &importers);
    section.contender("who imports a file", Side::Peer, "git grep -l", &grep);
    section.note(format!(
        "{}, {files} files, {} parsed; {COMMITS} commits, {QUESTIONS} questions of each kind; one-file commit {}",
        package.name,
        ingested.parsed,
        edits.tail()
    ));
    Ok(())
}

/// A small package that has what the queries ask for.
fn generated(package: &Path) -> Result<PathBuf> {
    fs::create_dir_all(package)?;
    for name in ["sub", "constructFrom", "addDays", "toDate"] {
        fs::write(package.join(format!("{name}.js")), format!("export function {name}() {{ return 1; }}\n"))?;
    }
    let imports =
        "import { constructFrom } from './constructFrom.js';\nimport { addDays } from './addDays.js';\n";
    fs::write(
        package.join("add.js"),
        format!("{imports}export function add() {{ return addDays(constructFrom); }}\n"),
    )?;
    Ok(package.to_owned())
}

/// A repository with the package's sources.
fn fill(package: &Path, project: &Path) -> Result<usize> {
    fs::create_dir_all(project)?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut open = vec![package.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "js" || ending == "ts") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    // JavaScript first: declarations alone would have nothing to call.
    files.sort_by_key(|file| file.extension().is_some_and(|ending| ending == "ts"));
    files.truncate(FILES);
    for file in &files {
        let place = project.join(file.strip_prefix(package)?);
        fs::create_dir_all(place.parent().context("a file without a folder")?)?;
        fs::copy(file, place)?;
    }
    git(project, &["init", "--quiet"])?;
    git(project, &["add", "--all"])?;
    git(project, &["commit", "--quiet", "-m", "sources"])?;
    Ok(files.len())
}

/// One-file commits, each ingested twice.
async fn commits(store: &GraphStore, project: &Path) -> Result<(Samples, Samples)> {
    let (mut edits, mut same) = (Vec::new(), Vec::new());
    for number in 0..COMMITS {
        let file = project.join("add.js");
        let text = fs::read_to_string(&file)?;
        fs::write(&file, format!("{text}\nexport function added{number}() {{ return add; }}\n"))?;
        git(project, &["commit", "--quiet", "--all", "-m", "one file"])?;
        for times in [&mut edits, &mut same] {
            let started = Instant::now();
            store.ingest("HEAD").await?;
            times.push(started.elapsed());
        }
    }
    Ok((edits.into_iter().collect(), same.into_iter().collect()))
}

/// What the Guardian does before a write.
async fn proposals(store: &GraphStore) -> Result<Samples> {
    let mut times = Vec::new();
    for number in 0..COMMITS {
        let path = RelativePath::new("add.js")?;
        let content = format!("import './sub.js'; export const n = {number};\n").into_bytes();
        let question = GraphQuery::new(IMPORTERS).param("path", "sub.js");
        let started = Instant::now();
        let answers = store.propose(&[Change::Write { path, content: content.into() }], &[question]).await?;
        times.push(started.elapsed());
        if answers.first().is_none_or(|(before, after)| after.rows.len() <= before.rows.len()) {
            bail!("the proposed import was not seen");
        }
    }
    Ok(times.into_iter().collect())
}

async fn ask(store: &GraphStore, query: &str, path: &str) -> Result<Samples> {
    let mut times = Vec::new();
    for _ in 0..QUESTIONS {
        let started = Instant::now();
        let answer = store.query(GraphQuery::new(query).param("path", path)).await?;
        times.push(started.elapsed());
        if answer.rows.is_empty() {
            bail!("`{query}` found nothing");
        }
    }
    Ok(times.into_iter().collect())
}

fn grep(project: &Path) -> Result<Samples> {
    let mut times = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        let ran =
            Command::new("git").args(["grep", "-l", "constructFrom.js"]).current_dir(project).output()?;
        times.push(started.elapsed());
        if !ran.status.success() {
            bail!("git grep found nothing");
        }
    }
    Ok(times.into_iter().collect())
}

/// Milliseconds of a whole run of ctags, which finds symbols and nothing else.
fn ctags(project: &Path) -> Result<f64, String> {
    let started = Instant::now();
    let ran = Command::new("ctags")
        .args(["-R", "-f", "-", "."])
        .current_dir(project)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    match ran {
        Ok(status) if status.success() => Ok(started.elapsed().as_secs_f64() * 1000.0),
        Ok(status) => Err(format!("ctags ended with {status}")),
        Err(_) => Err("ctags is not installed (apt-get install universal-ctags)".to_owned()),
    }
}
