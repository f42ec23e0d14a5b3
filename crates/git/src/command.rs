//! The `git` process (and `ssh` for its settings): nothing in but what is named here, bounded output, and no survivor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::process::Resource;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::{GitFetchLimits, os};

/// `ls-remote` and `push` answer in lines for a handful of references.
const MAX_STDOUT_BYTES: usize = 1 << 20;
/// The last words of an error matter; a server can send megabytes of others.
const KEPT_STDERR_BYTES: usize = 16 << 10;
const CHUNK_BYTES: usize = 8 << 10;

/// One call of git or ssh. Its environment can hold a token, so it has no way to be shown.
pub(crate) struct Invocation {
    /// `git` or `ssh`, which is found on the `PATH` of the environment.
    pub(crate) program: &'static str,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) limit: Duration,
    /// What the process and those that it starts may take.
    pub(crate) most: GitFetchLimits,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("git is not installed or cannot be started ({0})")]
    Start(std::io::Error),
    #[error("git gave no answer within {} seconds", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("git answered with more than {MAX_STDOUT_BYTES} bytes")]
    TooMuch,
    #[error("git could not be read ({0})")]
    Io(std::io::Error),
}

/// Kills the whole group when dropped, so that neither a time-out nor a cancelled call leaves an ssh or a
/// remote-https behind.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

pub(crate) async fn run(invocation: Invocation) -> Result<Finished, CommandError> {
    let mut command = Command::new(invocation.program);
    command
        .args(&invocation.arguments)
        .env_clear()
        .envs(invocation.environment)
        .current_dir(&invocation.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(CommandError::Start)?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let mut group = Group(leader);
    // Its own children inherit the limits; it starts them only when it has got an answer from the remote.
    for (resource, most) in
        [(Resource::Fsize, invocation.most.received_bytes), (Resource::Data, invocation.most.memory_bytes)]
    {
        os::limit(leader, resource, most).map_err(CommandError::Start)?;
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (stdout, stderr) = tokio::join!(bounded(stdout), tail(stderr));
        let (stdout, stderr) = (stdout?, stderr?);
        let status = child.wait().await.map_err(CommandError::Io)?;
        Ok(Finished { is_success: status.success(), stdout, stderr })
    };
    let finished = tokio::time::timeout(invocation.limit, work)
        .await
        .unwrap_or(Err(CommandError::TimedOut(invocation.limit)));
    if finished.is_ok() {
        // The leader is gone and its number may belong to another process by now.
        group.0 = None;
    }
    finished
}

async fn bounded(pipe: Option<impl AsyncRead + Unpin>) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(MAX_STDOUT_BYTES as u64 + 1);
        pipe.read_to_end(&mut bytes).await.map_err(CommandError::Io)?;
    }
    if bytes.len() > MAX_STDOUT_BYTES {
        return Err(CommandError::TooMuch);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn tail(pipe: Option<impl AsyncRead + Unpin>) -> Result<String, CommandError> {
    let mut kept: Vec<u8> = Vec::new();
    if let Some(mut pipe) = pipe {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = pipe.read(&mut chunk).await.map_err(CommandError::Io)?;
            if count == 0 {
                break;
            }
            kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
            if kept.len() > 2 * KEPT_STDERR_BYTES {
                kept.drain(..kept.len() - KEPT_STDERR_BYTES);
            }
        }
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Plain words as arguments.
pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
