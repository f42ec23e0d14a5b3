//! A kernel that lives through the attacks of a family, to see what it keeps of them.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use crate::baseline::{Finding, Marks, left_behind};
use crate::case::Case;
use crate::entry::Client;
use crate::process;
use crate::project::Project;

/// How long a server may take until its socket is there.
const START: Duration = Duration::from_secs(60);

/// How long what an attack leaves may take to go away.
const SETTLE: Duration = Duration::from_secs(30);

/// How long one call may take that is made for the sake of what it leaves.
const CALL: Duration = Duration::from_secs(90);

/// The living kernel's configuration: everything is tried, and what never ends is ended soon.
const CONFIG: &str = "\
tdd: { mode: 'explore' },
jail: { memoryMb: 128 },
db: { statementTimeoutMs: 1000 },
graph: { timeoutMs: 1000 },";

/// A `tgp serve` on a project.
pub struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    /// Starts it and waits for its socket.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(project: &Project, approve: bool) -> Result<Self> {
        let socket = project.root().join("s");
        let said = project.aside("server.log");
        let mut command = project.command();
        command.arg("serve").arg("--socket").arg(&socket);
        if approve {
            command.arg("--yes");
        }
        let log = std::fs::File::create(&said)?;
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0).spawn()?;
        let mut server = Self { child, socket };
        let started = Instant::now();
        while !server.socket.exists() {
            let ended = server.child.try_wait()?.is_some();
            if ended || started.elapsed() > START {
                process::interrupt(&mut server.child)?;
                let said = std::fs::read_to_string(&said).unwrap_or_default();
                bail!("`tgp serve` did not come up:\n{said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it holds after a first harmless call, when no client is connected.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn marks_when_warm(&self, token: &str) -> Result<Marks> {
        // The answer may be a refusal: the token may be for other tools.
        Client::with_token(&self.socket, token, CALL)?.call("fs_list", &json!({ "path": "." }), false)?;
        let mut marks = Marks::of(self.pid());
        // Until the connection is really closed.
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(10));
            let now = Marks::of(self.pid());
            marks.descriptors = marks.descriptors.min(now.descriptors);
        }
        Ok(marks)
    }

    /// What it holds more than before, once it had time to let go.
    #[must_use]
    pub fn compare(&self, before: &Marks, room: &Marks) -> Vec<Finding> {
        let started = Instant::now();
        loop {
            let findings = Marks::of(self.pid()).beyond(before, room);
            if findings.is_empty() || started.elapsed() > SETTLE {
                return findings;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it as Ctrl-C does; false when it had to be killed.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn stop(mut self) -> Result<bool> {
        process::interrupt(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped in order is gone already; after a failure nothing else ends it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One kernel that lives through all families of a run.
pub struct Endurance {
    project: Project,
    server: Server,
    token: String,
}

impl Endurance {
    /// Starts the kernel on its own project, with an approver that says yes to everything.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(project: Project) -> Result<Self> {
        project.configure(CONFIG)?;
        project.prepare(&["trust", "--yes"])?;
        let token = project.prepare(&["token", "mint", "--all"])?.trim().to_owned();
        let server = Server::start(&project, true)?;
        Ok(Self { project, server, token })
    }

    /// The kernel's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Makes all calls of a family at this kernel, twice, and says what the second time has left.
    ///
    /// What comes of a call is not judged here, since the project is not that of its case; but each must be answered,
    /// and none may break the kernel.
    #[must_use]
    pub fn family(&self, cases: &[&Case]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let outcome = self.twice(cases, &mut findings);
        findings.extend(outcome.err().map(|error| Finding(format!("the living kernel: {error:#}"))));
        findings
    }

    fn twice(&self, cases: &[&Case], findings: &mut Vec<Finding>) -> Result<()> {
        round(&self.server, &self.token, cases, findings);
        let before = self.server.marks_when_warm(&self.token)?;
        let files = left_behind(self.project.root());
        round(&self.server, &self.token, cases, findings);
        self.server.marks_when_warm(&self.token)?;
        findings.extend(self.server.compare(&before, &Marks::ROOM_OF_A_REPETITION));
        for name in left_behind(self.project.root()).into_iter().filter(|name| !files.contains(name)) {
            findings.push(Finding(format!("a file is left by the living kernel: {name}")));
        }
        Ok(())
    }

    /// Ends the kernel as Ctrl-C does.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn stop(self) -> Result<Option<Finding>> {
        let ended = self.server.stop()?;
        Ok((!ended).then(|| Finding::new("the living kernel did not end when it was interrupted")))
    }
}

fn round(server: &Server, token: &str, cases: &[&Case], findings: &mut Vec<Finding>) {
    for case in cases {
        for (number, step) in case.file.steps.iter().enumerate() {
            let Some((tool, arguments)) = step.as_call() else { continue };
            let answer = Client::with_token(server.socket(), token, CALL)
                .and_then(|mut client| client.call(tool, &arguments, step.dry_run));
            let problem = match answer {
                Err(error) => format!("{error:#}"),
                Ok(answer) if answer.pointer("/error/code") == Some(&json!("EINTERNAL")) => {
                    answer.to_string()
                }
                Ok(_) => continue,
            };
            findings.push(Finding(format!("{} step {}: {problem}", case.path(), number + 1)));
        }
    }
}
