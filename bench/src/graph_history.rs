//! Histories of real sizes: the newest commit of a project, what each older commit costs, and a change that is judged.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, OpenFlags};
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};
use tgp_graph::{GraphOptions, GraphStore};

use crate::peers::{Installed, SearchOutcome};
use crate::persist::git;
use crate::report::{Budget, Row, Section, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

/// Generated commits on top of the sources.
const COMMITS: usize = 300;
const SMOKE_COMMITS: usize = 5;
/// Changes that are judged.
const PROPOSALS: usize = 15;
/// Files with one of these endings are changed.
const CODE: [&str; 4] = ["py", "js", "ts", "rs"];

const DJANGO: &str = "Django==5.2.19";
const DATE_FNS: &str = "date-fns@4.4.0";
const RIPGREP: &str = "ripgrep@14.1.1";

/// A project and what its newest commit may take.
struct Size {
    name: &'static str,
    head: f64,
}

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    if settings.is_smoke() {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let sources = folder.path().join("sources");
        fs::create_dir_all(&sources)?;
        for number in 0..4 {
            let text = format!("import {{ f }} from './m{}';\nexport const n = f;\n", number + 1);
            fs::write(sources.join(format!("m{number}.ts")), text.repeat(12))?;
        }
        let package = Installed { path: sources, name: "generated".to_owned() };
        return one(section, &Size { name: "generated", head: 10_000.0 }, package, SMOKE_COMMITS).await;
    }
    let peers = settings.peers;
    let sizes: [(Size, SearchOutcome); 3] = [
        (Size { name: DJANGO, head: 6_000.0 }, peers.pypi_sources(DJANGO)?),
        (Size { name: DATE_FNS, head: 6_000.0 }, peers.npm_package(DATE_FNS)?),
        (Size { name: RIPGREP, head: 6_000.0 }, peers.crate_sources(RIPGREP)?),
    ];
    for (size, found) in sizes {
        match found {
            Ok(package) => one(section, &size, package, COMMITS).await?,
            Err(missing) => section.skipped(size.name, &missing.0),
        }
    }
    Ok(())
}

async fn one(section: &mut Section, size: &Size, package: Installed, commits: usize) -> Result<()> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let project = folder.path().join("project");
    let (files, changed) = repository(&package.path, &project, commits)?;
    let file = folder.path().join("graph.sqlite");
    // The commit below the generated ones adds every file. Real commits do not do that.
    let options = GraphOptions { history: commits, ..GraphOptions::new(&file, &project) };
    let store = GraphStore::open(options).await?;
    let started = Instant::now();
    store.ingest_alone("HEAD").await?;
    let head = milliseconds(started);
    let before = used(&file)?;
    let started = Instant::now();
    let read = store.ingest("HEAD").await?.commits.max(1);
    let each = milliseconds(started) / read as f64;
    let grown = used(&file)?.saturating_sub(before);
    let judged = proposals(&store, &project, &changed).await?;
    let row = |what: &str| Row::new(&format!("{}: {what}", size.name), Unit::Milliseconds);
    section.row(row("newest commit").ours(head).budget(Budget::Below(size.head)));
    section.row(row("each older commit").ours(each).budget(Budget::Below(10.0)));
    let stored = Row::new(&format!("{}: store of each older commit", size.name), Unit::Kilobytes)
        .ours(grown as f64 / 1024.0 / read as f64);
    section.row(stored.budget(Budget::Below(15.0)));
    section.row(row("a proposed change of one file, p50").ours(judged.median()).budget(Budget::Below(100.0)));
    section.note(format!("{}: {files} files, {commits} generated commits", package.name));
    Ok(())
}

/// Bytes of the pages that hold something, those among them that are still in the log.
fn used(file: &Path) -> Result<u64> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(u64::try_from((number("page_count")? - number("freelist_count")?) * number("page_size")?)?)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// A small generator of numbers, the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % count.max(1)
    }
}

/// A repository with the sources and generated commits on top: each changes a few lines of one to three files. Returns
/// how many files there are, and one that was changed.
fn repository(sources: &Path, project: &Path, commits: usize) -> Result<(usize, String)> {
    fs::create_dir_all(project)?;
    git(project, &["init", "--quiet", "--initial-branch=main"])?;
    let mut files: Vec<(String, Vec<String>)> = Vec::new();
    let mut open: Vec<PathBuf> = vec![sources.to_owned()];
    let mut count = 0;
    let mut import = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(project)
        .stdin(Stdio::piped())
        .spawn()
        .context("git cannot be run")?;
    let mut stream = import.stdin.take().context("git takes nothing")?;
    begin(&mut stream, 0)?;
    while let Some(directory) = open.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        entries.sort();
        for path in entries {
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(sources)?.to_string_lossy().into_owned();
            if name.contains([' ', '"', '\n']) {
                continue;
            }
            let bytes = fs::read(&path)?;
            put(&mut stream, &name, &bytes)?;
            count += 1;
            let is_code = path.extension().is_some_and(|ending| CODE.iter().any(|code| ending == *code));
            if let Some(text) =
                String::from_utf8(bytes).ok().filter(|text| is_code && text.lines().count() > 20)
            {
                files.push((name, text.lines().map(str::to_owned).collect()));
            }
        }
    }
    if files.is_empty() {
        bail!("{} has no code", sources.display());
    }
    let mut random = Random(7);
    let mut changed = String::new();
    for number in 1..=commits {
        begin(&mut stream, number)?;
        for _ in 0..=random.below(3) {
            let place = random.below(files.len());
            let Some((name, lines)) = files.get_mut(place) else { continue };
            let mark = if name.ends_with(".py") { "#" } else { "//" };
            // Lines at the end leave all others where they are, lines above move what follows.
            let at = if random.below(2) == 0 { lines.len() } else { random.below(lines.len()) };
            let indent: String = lines
                .get(at)
                .map(|line| line.chars().take_while(|c| c.is_whitespace()).collect())
                .unwrap_or_default();
            lines.insert(at, format!("{indent}{mark} note {number}"));
            put(&mut stream, name, (lines.join("\n") + "\n").as_bytes())?;
            changed.clone_from(name);
        }
    }
    drop(stream);
    if !import.wait()?.success() {
        bail!("git fast-import failed");
    }
    git(project, &["reset", "--quiet", "--hard", "main"])?;
    Ok((count, changed))
}

fn begin(stream: &mut impl Write, number: usize) -> Result<()> {
    let message = format!("commit {number}");
    let time = 1_700_000_000 + number * 60;
    write!(stream, "commit refs/heads/main\ncommitter Ada <ada@example.com> {time} +0000\n")?;
    write!(stream, "data {}\n{message}\n", message.len())?;
    Ok(())
}

fn put(stream: &mut impl Write, name: &str, content: &[u8]) -> Result<()> {
    write!(stream, "M 100644 inline {name}\ndata {}\n", content.len())?;
    stream.write_all(content)?;
    stream.write_all(b"\n")?;
    Ok(())
}

/// What the Guardian does before a write, without its invariants.
async fn proposals(store: &GraphStore, project: &Path, file: &str) -> Result<Samples> {
    let text = fs::read_to_string(project.join(file))?;
    let mut times = Vec::new();
    for number in 0..PROPOSALS {
        let content = format!("{text}\n\n{}\n", " ".repeat(number)).into_bytes();
        let change = Change::Write { path: RelativePath::new(file)?, content: content.into() };
        let question = GraphQuery::new("MATCH (f:File {path: $path}) RETURN f.bytes").param("path", file);
        let started = Instant::now();
        let answers = store.propose(&[change], &[question]).await?;
        times.push(started.elapsed());
        if answers.first().is_none_or(|(before, after)| before.rows == after.rows) {
            bail!("the proposed change was not seen");
        }
    }
    Ok(times.into_iter().collect())
}
