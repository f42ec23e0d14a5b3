//! One Node process that holds the peers which live in Node, driven run by run so that contenders can alternate.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::peers::Installed;
use crate::project::{ARGUMENTS, JAVASCRIPT};

const SCRIPT: &str = include_str!("../fixtures/peer.cjs");

/// Ends with its standard input, so that it cannot outlive the measurement.
pub struct NodePeer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl NodePeer {
    pub fn start(node: &Installed, isolated_vm: Option<&Installed>) -> Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let script = folder.path().join("peer.cjs");
        fs::write(&script, SCRIPT)?;
        let mut command = Command::new(&node.path);
        let mut child = command
            // What isolated-vm asks for since Node 20.
            .arg("--no-node-snapshot")
            .arg(script)
            .arg(isolated_vm.map(|package| package.path.clone()).unwrap_or_default())
            .args([JAVASCRIPT, ARGUMENTS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("node cannot be started")?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("node has no output")?);
        let mut peer = Self { child, requests, answers, _folder: folder };
        peer.answer().context("node did not get ready")?;
        Ok(peer)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Milliseconds of each of `count` runs in a row.
    pub fn run(&mut self, contender: &str, count: usize) -> Result<Vec<f64>> {
        let requests = self.requests.as_mut().context("node is gone")?;
        writeln!(requests, "{contender} {count}").context("node is gone")?;
        self.answer().with_context(|| format!("`{contender}` failed in node"))
    }

    fn answer(&mut self) -> Result<Vec<f64>> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            bail!("node ended; its message is above");
        }
        serde_json::from_str(&line).context("node did not answer with a list of numbers")
    }
}

impl Drop for NodePeer {
    fn drop(&mut self) {
        self.requests = None;
        // It is the one started above; it may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
