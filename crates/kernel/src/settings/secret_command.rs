//! A program of the user that prints a secret. It runs outside every sandbox, so nothing that an agent can write decides what
//! it is or does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tgp_fs::{real_place, search_path};
use tgp_net::Secret;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};

use super::secret_values::{MAX_BYTES, trimmed};
use crate::boot::Environment;

/// How long it may take: less than the wall clock of a run, so that its own error is told.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what it has printed may be on its way when it has ended.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// What is run, found where no agent writes.
pub(super) struct SecretCommand {
    program: PathBuf,
    arguments: Vec<String>,
    path: OsString,
    directory: PathBuf,
}

impl SecretCommand {
    /// # Errors
    /// Why it must not be run, as a sentence after its name.
    pub(super) fn new(
        words: &[String],
        writable: &[PathBuf],
        environment: &Environment,
    ) -> Result<Self, String> {
        let Some((program, arguments)) = words.split_first() else { return Err("is empty".to_owned()) };
        let is_writable = |path: &Path| writable.iter().any(|place| real_place(path).starts_with(place));
        let search = environment("PATH").unwrap_or_default();
        let kept = search_path(search.as_ref(), is_writable);
        let found = match program.contains('/') {
            true if !program.starts_with('/') => return Err("has to be absolute, or a name".to_owned()),
            true => PathBuf::from(program),
            false => {
                let found = kept.iter().map(|entry| entry.join(program)).find(|path| path.is_file());
                found.ok_or("is not in PATH, apart from where agents and tools write")?
            }
        };
        let home = environment("HOME").map(PathBuf::from).filter(|home| home.is_dir());
        let directory = home.unwrap_or_else(|| PathBuf::from("/"));
        let names_it = |word: &String| {
            let named = directory.join(word);
            (named.exists() && is_writable(&named))
                || writable.iter().any(|place| place.to_str().is_some_and(|place| word.contains(place)))
        };
        if is_writable(&found) || arguments.iter().any(names_it) {
            return Err("names a place where agents and tools write".to_owned());
        }
        let path = std::env::join_paths(kept).unwrap_or_default();
        Ok(Self { program: found, arguments: arguments.to_vec(), path, directory })
    }

    /// What it prints. When this ends, however it ends, so does everything that the program has started.
    ///
    /// # Errors
    /// Why it gives no value, as a sentence after its name.
    pub(super) async fn run(&self) -> Result<Secret, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env("PATH", &self.path).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.kill_on_drop(true).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let _group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
        let Some(output) = child.stdout.take() else { return Err("cannot be read".to_owned()) };
        let ended = tokio::time::timeout(PATIENCE, read(&mut child, output)).await;
        let late = |_| Err(format!("took longer than {} s", PATIENCE.as_secs()));
        let (text, status) = ended.unwrap_or_else(late)?;
        if !status.success() {
            return Err(format!("ends with {status}"));
        }
        trimmed(text).map_err(str::to_owned)
    }
}

/// A group of processes that ends with this value.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

/// What a program prints until it ends; what it has started may keep its output open.
async fn read(child: &mut Child, mut output: ChildStdout) -> Result<(Vec<u8>, ExitStatus), String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    let mut status = None;
    loop {
        let part = match status {
            None => tokio::select! {
                read = output.read(&mut buffer) => read.map_err(failed)?,
                ended = child.wait() => {
                    status = Some(ended.map_err(failed)?);
                    continue;
                }
            },
            Some(_) => match tokio::time::timeout(LAST_WORDS, output.read(&mut buffer)).await {
                Ok(read) => read.map_err(failed)?,
                Err(_) => 0,
            },
        };
        text.extend_from_slice(buffer.get(..part).unwrap_or_default());
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("prints more than {} KiB", MAX_BYTES >> 10));
        }
        if part == 0 {
            let status = match status {
                Some(status) => status,
                None => child.wait().await.map_err(failed)?,
            };
            return Ok((text, status));
        }
    }
}
