//! A program on the other side: started, asked, watched, and ended together with the kit.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::PROTOCOL;
use super::lines;
use super::message::{Hello, Introduced, PartKind, Reply, Request};

/// Replies of one request that wait to be read. When they are so many, the program is not read any more until the
/// reader has taken one: a slow reader slows the program down.
const WAITING_REPLIES: usize = 16;
/// Lines that wait to be written.
const WAITING_LINES: usize = 16;
/// Requests that are not answered yet.
const MAX_PENDING: usize = 256;
/// The end of what a program says on standard error that is kept for a fault.
const MAX_STDERR: usize = 1 << 10;
/// How long a program that has closed its output, or was asked to end, has to do so.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// How a program is started.
#[derive(Clone, Debug)]
pub(crate) struct PeerOptions {
    /// For `sh -c`.
    pub(crate) command: String,
    pub(crate) part: PartKind,
    /// The project that the part is for.
    pub(crate) directory: PathBuf,
    /// For one answer, and for the next event of a stream.
    pub(crate) patience: Duration,
}

/// A running program.
pub(crate) struct Peer {
    options: PeerOptions,
    shared: Arc<Shared>,
    /// Gone when the program's input is closed.
    outgoing: Mutex<Option<mpsc::Sender<String>>>,
    next: AtomicU64,
    group: Option<Pid>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    stderr: Mutex<VecDeque<u8>>,
    stop: Notify,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<u64, mpsc::Sender<Reply>>,
    /// Why nothing can be asked any more.
    ended: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all waiting requests. The first reason is the one that counts.
    fn end(&self, reason: String) {
        let mut state = self.state();
        state.ended.get_or_insert(reason);
        state.pending.clear();
    }
}

impl Peer {
    /// Starts a program and says hello to it.
    ///
    /// # Errors
    /// When it cannot be started, or does not answer as the protocol wants it.
    pub(crate) async fn start(options: PeerOptions) -> Result<Self, ToolError> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&options.command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group, so that whatever the command starts ends with it.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            ToolError::new(Code::Config, format!("`{}` cannot be started: {error}", options.command))
                .help("give a command line that sh understands")
        })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ToolError::new(Code::Internal, "a program was started without its pipes"));
        };
        let shared =
            Arc::new(Shared { state: Mutex::default(), stderr: Mutex::default(), stop: Notify::new() });
        let (outgoing, lines) = mpsc::channel(WAITING_LINES);
        tokio::spawn(write(input, lines, Arc::clone(&shared)));
        let listening = tokio::spawn(listen(errors, Arc::clone(&shared)));
        let supervisor = tokio::spawn(supervise(child, output, listening, group, Arc::clone(&shared)));
        let supervisor = Mutex::new(Some(supervisor));
        let outgoing = Mutex::new(Some(outgoing));
        let peer = Self { options, shared, outgoing, next: AtomicU64::new(1), group, supervisor };
        let hello = Hello {
            protocol: PROTOCOL,
            part: peer.options.part,
            directory: peer.options.directory.display().to_string(),
        };
        let answer = peer.request("hello", json!(hello)).await?;
        serde_json::from_value::<Introduced>(answer)
            .map_err(|error| peer.wrong("hello", &format!("no name and version ({error})")))?;
        Ok(peer)
    }

    /// Asks, and waits for the one answer.
    ///
    /// # Errors
    /// What the program answered, or why there is no answer.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, ToolError> {
        let (_, mut replies) = self.begin(method, params).await?;
        match self.next(method, &mut replies).await? {
            Reply::Result(value) => Ok(value),
            Reply::Error(error) => Err(error),
            Reply::Event(_) => Err(self.wrong(method, "an event, where one result was expected")),
        }
    }

    /// Asks, and leaves the answers to the caller.
    pub(super) async fn begin(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(u64, mpsc::Receiver<Reply>), ToolError> {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let (sender, replies) = mpsc::channel(WAITING_REPLIES);
        {
            let mut state = self.shared.state();
            if let Some(reason) = &state.ended {
                let reason = reason.clone();
                drop(state);
                return Err(self.gone(method, &reason));
            }
            if state.pending.len() >= MAX_PENDING {
                drop(state);
                return Err(self.wrong(method, "more requests than one program is given"));
            }
            state.pending.insert(id, sender);
        }
        self.send(Request { id: Some(id), method: method.to_owned(), params }).await?;
        Ok((id, replies))
    }

    /// Reports that the answer to a request is no longer wanted. A program may continue all the same.
    pub(super) fn cancel(&self, request: u64) {
        let params = json!({ "request": request });
        let line = json!(Request { id: None, method: "cancel".to_owned(), params }).to_string();
        // It is only a courtesy, so a full queue is not waited for.
        let _ = self.outgoing().map(|outgoing| outgoing.try_send(format!("{line}\n")));
    }

    /// The next reply to a request.
    pub(super) async fn next(
        &self,
        method: &str,
        replies: &mut mpsc::Receiver<Reply>,
    ) -> Result<Reply, ToolError> {
        match tokio::time::timeout(self.options.patience, replies.recv()).await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.lost(method).await),
            Err(_) => Err(self.silent(method)),
        }
    }

    /// Something that the protocol does not allow.
    pub(super) fn wrong(&self, method: &str, what: &str) -> ToolError {
        self.fault(&format!("answered `{method}` with {what}"))
    }

    async fn send(&self, request: Request) -> Result<(), ToolError> {
        let line = format!("{}\n", json!(request));
        if line.len() > super::MAX_LINE {
            let message =
                format!("`{}` would be a line of more than {} bytes", request.method, super::MAX_LINE);
            return Err(ToolError::new(Code::Validation, message).help("send less at once"));
        }
        let Some(outgoing) = self.outgoing() else { return Err(self.lost(&request.method).await) };
        match tokio::time::timeout(self.options.patience, outgoing.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.lost(&request.method).await),
            Err(_) => Err(self.silent(&request.method)),
        }
    }

    fn silent(&self, method: &str) -> ToolError {
        let patience = self.options.patience.as_secs_f64();
        self.shared.end(format!("was silent for {patience} s after `{method}`"));
        self.shared.stop.notify_one();
        self.fault(&format!("was silent for {patience} s after `{method}`"))
    }

    /// Why the program does not answer. Its end may be noticed a little before its reason is.
    async fn lost(&self, method: &str) -> ToolError {
        for _ in 0..20 {
            if self.shared.state().ended.is_some() {
                break;
            }
            tokio::time::sleep(END_PATIENCE / 20).await;
        }
        let reason = self.shared.state().ended.clone();
        self.gone(method, reason.as_deref().unwrap_or("is gone"))
    }

    fn gone(&self, method: &str, reason: &str) -> ToolError {
        self.fault(&format!("{reason}, so `{method}` has no answer"))
    }

    fn fault(&self, what: &str) -> ToolError {
        let PeerOptions { command, part, .. } = &self.options;
        let mut message = format!("the program `{command}` for {} {what}", part.as_str());
        let stderr = self.stderr();
        if !stderr.is_empty() {
            message = format!("{message}; it said on standard error: {stderr}");
        }
        ToolError::new(Code::Runtime, message)
            .detail("command", command.as_str())
            .help("compare what it writes with the protocol in relay/README.md")
    }

    fn stderr(&self) -> String {
        let kept = self.shared.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    fn outgoing(&self) -> Option<mpsc::Sender<String>> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the program's input, and ends it when it does not end by itself.
    pub(crate) async fn close(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut supervisor) = supervisor
            && tokio::time::timeout(END_PATIENCE, &mut supervisor).await.is_err()
        {
            self.shared.stop.notify_one();
            // The supervisor kills now, and has bounds for everything else.
            let _ = supervisor.await;
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let is_running = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        self.shared.stop.notify_one();
        // The supervisor reaps the program; where there is no runtime any more, it must still not continue alone.
        if is_running && self.shared.state().ended.is_none() {
            kill(self.group);
        }
    }
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        let _ = killpg(group, Signal::SIGKILL);
    }
}

/// Writes lines until all senders are gone.
async fn write(mut input: ChildStdin, mut lines: mpsc::Receiver<String>, shared: Arc<Shared>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() || shared.state().ended.is_some() {
            return;
        }
    }
}

/// Keeps the end of what the program says beside the protocol.
async fn listen(mut errors: ChildStderr, shared: Arc<Shared>) {
    let mut buffer = [0; 1024];
    while let Ok(length @ 1..) = errors.read(&mut buffer).await {
        let mut kept = shared.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.get(..length).unwrap_or_default());
        let excess = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..excess);
    }
}

/// Reads replies until the program or the kit has enough, and makes sure that the program is gone afterwards.
async fn supervise(
    mut child: Child,
    output: ChildStdout,
    listening: JoinHandle<()>,
    group: Option<Pid>,
    shared: Arc<Shared>,
) {
    let mut output = BufReader::new(output);
    let reading = tokio::select! {
        reason = read(&mut output, &shared) => Some(reason),
        () = shared.stop.notified() => None,
    };
    drop(output);
    // Only a program that has closed its output is waited for; who breaks the protocol or is not wanted ends at once.
    let status = match reading {
        Some(None) => tokio::time::timeout(END_PATIENCE, child.wait()).await.ok().and_then(Result::ok),
        _ => None,
    };
    kill(group);
    let _ = child.wait().await;
    // What it said last on standard error belongs to the reason; its child processes may keep the pipe open.
    let _ = tokio::time::timeout(END_PATIENCE, listening).await;
    shared.end(match reading {
        Some(Some(reason)) => reason,
        Some(None) => ending(status),
        None => "was asked to end".to_owned(),
    });
}

fn ending(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("has ended ({status})"),
        None => "has closed its output".to_owned(),
    }
}

/// Gives replies to their waiters. Returns why reading ended; none at the end of the output.
async fn read(output: &mut BufReader<ChildStdout>, shared: &Shared) -> Option<String> {
    loop {
        let line = match lines::next(output).await {
            Ok(Some(line)) => line,
            Ok(None) => return None,
            Err(error) => return Some(format!("wrote {error}")),
        };
        let (id, reply) = match Reply::parse(&line) {
            Ok(parsed) => parsed,
            Err(problem) => return Some(format!("wrote {problem}: `{}`", lines::shown(&line))),
        };
        let sender = {
            let mut state = shared.state();
            if reply.is_last() { state.pending.remove(&id) } else { state.pending.get(&id).cloned() }
        };
        let Some(sender) = sender else {
            let shown = lines::shown(&line);
            return Some(format!(
                "answered request {id}, which was not asked or was answered before: `{shown}`"
            ));
        };
        // A waiter that is gone needs no answer.
        let _ = sender.send(reply).await;
    }
}
