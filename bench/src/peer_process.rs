//! A Node or Deno process that holds the peers which live in it, driven run by run so that contenders can alternate.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::peers::{CODE_MODE, Installed, QUICKJS_EMSCRIPTEN, node};
use crate::project::{ARGUMENTS, JAVASCRIPT};
use crate::report::Section;
use crate::settings::BenchSettings;

const SCRIPT: &str = include_str!("../fixtures/peer.cjs");

/// A contender of the script: what its protocol calls it, and how a report names it.
#[derive(Clone, Debug)]
pub struct Contender {
    pub key: &'static str,
    pub name: String,
}

/// Ends with its standard input, so that it cannot outlive the measurement.
pub struct PeerProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    contenders: Vec<Contender>,
    _folder: TempDir,
}

impl PeerProcess {
    /// One process of Node and one of Deno with every peer that can be had; the others are named in the section.
    pub fn start_all(section: &mut Section, settings: &BenchSettings) -> Result<Vec<Self>> {
        let mut started = Vec::new();
        match node() {
            Ok(node) => started.push(Self::start_node(section, settings, &node)?),
            Err(missing) => section.skipped("isolated-vm and the other peers in node", &missing.0),
        }
        match settings.peers.deno()? {
            Ok(deno) => {
                let mut command = Command::new(&deno.path);
                command.args(["run", "--quiet", "--no-prompt", "--allow-all", "--unstable-worker-options"]);
                let name = format!("{}, new Worker without permissions", deno.name);
                let contenders = vec![Contender { key: "deno-worker", name }];
                started.push(Self::start(command, &Map::new(), contenders)?);
            }
            Err(missing) => section.skipped("deno", &missing.0),
        }
        Ok(started)
    }

    fn start_node(section: &mut Section, settings: &BenchSettings, node: &Installed) -> Result<Self> {
        let (mut packages, mut contenders) = (Map::new(), Vec::new());
        let mut add = |key: &'static str, name: String| contenders.push(Contender { key, name });
        match settings.peers.isolated_vm(node)? {
            Ok(installed) => {
                add("isolated-vm", format!("{} on {}", installed.name, node.name));
                add("isolated-vm-snapshot", "isolated-vm, isolate from a snapshot".to_owned());
                packages.insert("isolatedVm".to_owned(), path_of(&installed));
            }
            Err(missing) => section.skipped("isolated-vm", &missing.0),
        }
        add("node-vm", "node:vm, new context".to_owned());
        add("worker-threads", "worker_threads, new Worker".to_owned());
        for (package, option, key, what) in [
            (QUICKJS_EMSCRIPTEN, "quickjs", "quickjs", "new runtime"),
            (CODE_MODE, "codeMode", "code-mode", "runCodeMode"),
        ] {
            match settings.peers.npm_package(package)? {
                Ok(installed) => {
                    add(key, format!("{package}, {what}"));
                    packages.insert(option.to_owned(), path_of(&installed));
                }
                Err(missing) => section.skipped(package, &missing.0),
            }
        }
        let mut command = Command::new(&node.path);
        // What isolated-vm asks for since Node 20.
        command.args(["--no-warnings", "--no-node-snapshot"]);
        Self::start(command, &packages, contenders)
    }

    /// Node with nothing but isolated-vm in it.
    pub fn start_isolated_vm(node: &Installed, isolated_vm: &Installed) -> Result<Self> {
        let packages = Map::from_iter([("isolatedVm".to_owned(), path_of(isolated_vm))]);
        let mut command = Command::new(&node.path);
        command.arg("--no-node-snapshot");
        Self::start(command, &packages, Vec::new())
    }

    fn start(
        mut command: Command,
        packages: &Map<String, Value>,
        contenders: Vec<Contender>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let script = folder.path().join("peer.cjs");
        fs::write(&script, SCRIPT)?;
        let mut child = command
            .arg(script)
            .arg(Value::Object(packages.clone()).to_string())
            .args([JAVASCRIPT, ARGUMENTS])
            .env("DENO_DIR", folder.path().join("deno"))
            .env("DENO_NO_UPDATE_CHECK", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the peers cannot be started")?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("the peers have no output")?);
        let mut peer = Self { child, requests, answers, contenders, _folder: folder };
        peer.answer().context("the peers did not get ready")?;
        Ok(peer)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn contenders(&self) -> &[Contender] {
        &self.contenders
    }

    /// Milliseconds of each of `count` runs in a row.
    pub fn run(&mut self, contender: &str, count: usize) -> Result<Vec<f64>> {
        self.ask(&format!("run {contender} {count}"))
    }

    /// Runs per second with several in flight.
    pub fn rate(&mut self, contender: &str, count: usize, callers: usize) -> Result<f64> {
        let answer = self.ask(&format!("rate {contender} {count} {callers}"))?;
        answer.first().copied().context("the peers did not answer with a rate")
    }

    /// Keeps isolates of isolated-vm ready.
    pub fn hold(&mut self, count: usize) -> Result<()> {
        self.ask(&format!("hold {count}")).map(drop)
    }

    fn ask(&mut self, request: &str) -> Result<Vec<f64>> {
        let requests = self.requests.as_mut().context("the peers have ended")?;
        writeln!(requests, "{request}").context("the peers have ended")?;
        self.answer().with_context(|| format!("`{request}` failed in the process of the peers"))
    }

    fn answer(&mut self) -> Result<Vec<f64>> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            bail!("it ended; its message is above");
        }
        serde_json::from_str(&line).context("it did not answer with a list of numbers")
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.requests = None;
        // It is the one started above; it may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn path_of(installed: &Installed) -> Value {
    Value::from(installed.path.to_string_lossy())
}
