//! Whole processes, from start to exit: `tgp exec` against `node` and `deno run` on the same tool.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::peers::node;
use crate::project::{ARGUMENTS, JAVASCRIPT, Project, RESULT, TOOL, TYPESCRIPT, shipped_binary};
use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

/// Rounds that do not count: they fill the caches of the operating system and of the contenders.
const WARM_UP: usize = 3;

/// A command line that is started again and again.
pub struct Contender {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
    /// Removed before every start, outside the measured time.
    pub forget: Option<PathBuf>,
    /// What it must print; anything goes when there is none.
    pub expected: Option<String>,
}

impl Contender {
    fn time(&self) -> Result<Duration> {
        if let Some(folder) = &self.forget
            && folder.exists()
        {
            fs::remove_dir_all(folder)?;
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        let started = Instant::now();
        let output = command.output().with_context(|| format!("{} cannot be started", self.name))?;
        let time = started.elapsed();
        if let Some(expected) = &self.expected {
            let printed = String::from_utf8_lossy(&output.stdout);
            if printed.trim() != expected {
                let complaint = String::from_utf8_lossy(&output.stderr);
                bail!("{} printed `{}` instead of {expected}: {complaint}", self.name, printed.trim());
            }
        }
        Ok(time)
    }
}

/// Starts the contenders in turns, so that whatever else the machine does meets all of them.
pub fn alternate(contenders: &[Contender], settings: &BenchSettings) -> Result<Vec<Samples>> {
    let (rounds, warm_up) = (settings.processes, settings.or_smoke(WARM_UP, 0));
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..warm_up + rounds {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let time = contender.time()?;
            if round >= warm_up {
                times.push(time);
            }
        }
    }
    Ok(times.into_iter().map(Samples::from_iter).collect())
}

pub fn tgp(name: &str, directory: &Path, arguments: &[&str], cache: PathBuf) -> Result<Contender> {
    let mut all = vec![OsString::from("-C"), directory.into()];
    all.extend(arguments.iter().map(OsString::from));
    Ok(Contender {
        name: name.to_owned(),
        program: shipped_binary()?,
        arguments: all,
        environment: vec![
            ("TGP_CACHE_DIR", cache.into()),
            ("TGP_HOME", directory.with_file_name("home").into()),
        ],
        forget: None,
        expected: None,
    })
}

pub fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let project = Project::new()?;
    let directory = project.directory();
    let expected = Some(RESULT.to_string());
    let exec = ["exec", TOOL, "--args", ARGUMENTS];
    let warm = tgp("tgp exec", &directory, &exec, project.beside("cache"))?;
    let empty = project.beside("empty-cache");
    let without_cache = tgp("tgp exec, empty cache", &directory, &exec, empty.clone())?;
    let mut contenders = vec![
        Contender { expected: expected.clone(), ..warm },
        Contender { expected: expected.clone(), forget: Some(empty), ..without_cache },
    ];
    match node() {
        Ok(node) => {
            let script = project.beside("fib.mjs");
            let print = "console.log(fib(JSON.parse(process.argv[2])));";
            fs::write(&script, format!("{JAVASCRIPT}\n{print}\n"))?;
            contenders.push(Contender {
                name: format!("{}, fib.mjs", node.name),
                program: node.path,
                arguments: vec![script.into(), ARGUMENTS.into()],
                environment: Vec::new(),
                forget: None,
                expected: expected.clone(),
            });
        }
        Err(missing) => section.skipped("node", &missing.0),
    }
    match settings.peers.deno()? {
        Ok(deno) => {
            let script = project.beside("fib.ts");
            let print = "console.log(fib(JSON.parse(Deno.args[0])));";
            fs::write(&script, format!("{TYPESCRIPT}\n{print}\n"))?;
            let run = |name: String, cache: PathBuf, forget: Option<PathBuf>| Contender {
                name,
                program: deno.path.clone(),
                arguments: vec!["run".into(), script.clone().into(), ARGUMENTS.into()],
                environment: deno_environment(cache),
                forget,
                expected: expected.clone(),
            };
            let empty = project.beside("deno-empty-cache");
            contenders.push(run(format!("{} run fib.ts", deno.name), project.beside("deno"), None));
            contenders.push(run(format!("{} run, empty cache", deno.name), empty.clone(), Some(empty)));
        }
        Err(missing) => section.skipped("deno", &missing.0),
    }
    let samples = alternate(&contenders, settings)?;
    let measured: Vec<_> = contenders.iter().zip(&samples).collect();
    let (ours, peers) = measured.split_at_checked(2).context("no contender was measured")?;
    for (contender, times) in ours {
        let row = || Row::new(&contender.name, Unit::Milliseconds).ours(times.median());
        // An empty cache meets an empty cache; node has none.
        let fair = |peer: &Contender| {
            peer.forget.is_some() == contender.forget.is_some() || peer.environment.is_empty()
        };
        let rivals: Vec<_> = peers.iter().filter(|(peer, _)| fair(peer)).collect();
        if rivals.is_empty() {
            section.row(row());
        }
        for (peer, peer_times) in rivals {
            section.row(row().peer(&peer.name, peer_times.median()).budget(Budget::Better));
        }
    }
    for (number, (contender, times)) in measured.iter().enumerate() {
        let side = if number < ours.len() { Side::Ours } else { Side::Peer };
        section.contender("one process, from start to exit", side, &contender.name, times);
        section.note(format!("{}: fastest {:.3}, {}", contender.name, times.fastest(), times.tail()));
    }
    section.note(format!(
        "median of {} processes each, contenders alternate, files in the system's cache",
        settings.processes
    ));
    Ok(())
}

/// A separate cache, and no request to the network whether there is a newer version.
pub fn deno_environment(cache: PathBuf) -> Vec<(&'static str, OsString)> {
    vec![("DENO_DIR", cache.into()), ("DENO_NO_UPDATE_CHECK", "1".into())]
}
