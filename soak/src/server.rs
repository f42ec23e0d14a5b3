//! The `tgp serve` of a project, which is started again whenever it has ended.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::Signal;
use tgp_hostile::entry::Client;
use tgp_hostile::process::wait;

use crate::load::Soak;
use crate::program::find_panics;
use crate::report::lock;
use crate::site::Site;

/// How long a server may take until it lets a client in.
const START: Duration = Duration::from_secs(60);

/// How long a server that was asked to end may take for it.
const END: Duration = Duration::from_secs(30);

/// A client waits no longer than this for one answer.
pub const ANSWER: Duration = Duration::from_secs(90);

/// See the module's documentation.
#[derive(Debug)]
pub struct Server {
    child: Mutex<Option<Child>>,
    socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// A server that does not run yet.
    #[must_use]
    pub fn new(socket: PathBuf, log: PathBuf) -> Self {
        Self { child: Mutex::new(None), socket, log }
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A connection that was let in.
    ///
    /// # Errors
    /// When there is no server, or it does not let the client in.
    pub fn connect(&self, site: &Site) -> Result<Client> {
        Client::with_token(&self.socket, site.token(), ANSWER)
    }

    /// Starts it and waits until a client is let in; false when it ended before.
    ///
    /// # Errors
    /// When it cannot be started, or hangs.
    pub fn start(&self, soak: &Soak, site: &Site) -> Result<bool> {
        let mut command = site.tgp(&["serve", "--yes", "--socket"]);
        command.arg(&self.socket);
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let child = command.spawn()?;
        let id = child.id();
        soak.programs.started(&child, "tgp serve");
        *lock(&self.child) = Some(child);
        let started = Instant::now();
        while self.connect(site).is_err() {
            if self.has_ended(soak)? {
                return Ok(false);
            }
            if started.elapsed() > START {
                soak.programs.signal(id, Signal::SIGKILL);
                bail!("`tgp serve` did not let a client in within {} seconds", START.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        soak.report.count("starts of tgp serve");
        Ok(true)
    }

    /// Whether it has ended; then it is forgotten.
    fn has_ended(&self, soak: &Soak) -> Result<bool> {
        let mut child = lock(&self.child);
        let Some(running) = child.as_mut() else { return Ok(true) };
        let Some(status) = running.try_wait()? else { return Ok(false) };
        soak.programs.ended(&soak.report, running.id(), Some(status));
        *child = None;
        Ok(true)
    }

    /// Starts it again and again while the load continues.
    pub fn supervise(&self, soak: &Soak, site: &Site) {
        let mut is_up = false;
        while !soak.is_over() {
            let id = lock(&self.child).as_ref().map(Child::id);
            match self.has_ended(soak) {
                Ok(false) => {}
                Ok(true) => {
                    let by_itself = id.is_some_and(|id| !soak.programs.was_signalled(id));
                    if is_up && by_itself {
                        soak.report.find(format!("{}: `tgp serve` ended by itself", site.database.name()));
                    }
                    is_up = self.start(soak, site).unwrap_or_else(|error| {
                        soak.report.find(format!("{}: {error:#}", site.database.name()));
                        false
                    });
                    if !is_up {
                        soak.report
                            .count("starts of tgp serve that failed, killed or without room on the disk");
                    }
                }
                Err(error) => soak.report.find(format!("`tgp serve` cannot be waited for: {error:#}")),
            }
            soak.sleep(Duration::from_millis(50));
        }
    }

    /// Ends it in order and checks how it ended.
    pub fn stop(&self, soak: &Soak, site: &Site, signal: Signal, code: i32) {
        let Some(mut child) = lock(&self.child).take() else { return };
        let id = child.id();
        let was_signalled = soak.programs.was_signalled(id);
        soak.programs.signal(id, signal);
        let name = site.database.name();
        match wait(&mut child, END) {
            Ok(Some(status)) if was_signalled || status.code() == Some(code) => {}
            Ok(Some(status)) => {
                soak.report.find(format!("{name}: `tgp serve` ended with {status} after {signal}"));
            }
            Ok(None) => {
                soak.report.find(format!("{name}: `tgp serve` did not end after {signal}"));
                let _ = child.kill();
                let _ = child.wait();
            }
            Err(error) => soak.report.find(format!("{name}: `tgp serve` cannot be waited for: {error:#}")),
        }
        soak.programs.ended(&soak.report, id, None);
        if !was_signalled && self.socket.exists() {
            soak.report.find(format!("{name}: the socket is left after {signal}"));
        }
    }

    /// Looks for panics in what all its starts have printed.
    pub fn read_log(&self, soak: &Soak) {
        let log = std::fs::read(&self.log).unwrap_or_default();
        find_panics(&soak.report, "tgp serve", &String::from_utf8_lossy(&log));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped in order is gone already; after a failure nothing else ends it.
        if let Some(mut child) = lock(&self.child).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
