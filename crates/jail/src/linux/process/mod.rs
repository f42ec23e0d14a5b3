//! Whole processes: started on a layer over their project, watched, bounded, and ended with everything they started.

mod changes;
mod child;
mod control_socket;
mod group;
mod layer;
mod memory_reader;
mod plan;
mod recorder;
mod removal;
mod root;
mod running;
mod socket_memory;
mod status;
mod support;
mod watch;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::loopback::{self, ListenerSender};
use crate::{CommandExit, CommandSpec, JailError, MAX_STDIN_BYTES, NetworkAccess};
use child::{ChildSetup, SOURCES};
pub(crate) use control_socket::ChildControl;
use control_socket::{ControlSocket, Message};
use group::Group;
pub use layer::OverlayLayer;
use memory_reader::{MemoryReader, MemorySources};
use plan::Plan;
pub use removal::remove_tree;
use running::Running;
pub use support::process_support;
use watch::Watch;
pub use watch::exceeds;

/// Where programs are looked for when the order does not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// From the request to end until the last process is gone. It takes milliseconds; more means that one of them hangs in
/// the system and cannot be killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// No process runs longer than this, whatever its order says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Starts a process. When this returns, its program has been executed.
///
/// The caller should call [`JailedProcess::wait`] at once: until then nothing reads what the process writes.
pub fn start(order: &CommandSpec) -> Result<JailedProcess, JailError> {
    launch(order, None)
}

/// The same with a listener on `127.0.0.1:port` in the network of the process, for a proxy of the caller: nothing else can be
/// reached from there. The listener is in blocking mode.
///
/// # Errors
/// As [`start`], and for an order whose network is not [`NetworkAccess::Loopback`].
pub fn start_with_listener(
    order: &CommandSpec,
    port: u16,
) -> Result<(JailedProcess, TcpListener), JailError> {
    if order.network != NetworkAccess::Loopback || port == 0 {
        let problem = "a listener in the jail needs `NetworkAccess::Loopback` and a port other than 0";
        return Err(JailError::Order { problem: problem.to_owned() });
    }
    let (sender, listener) = loopback::listener_pair(port)?;
    let process = launch(order, Some(sender))?;
    Ok((process, listener.receive()?))
}

fn launch(order: &CommandSpec, listener: Option<ListenerSender>) -> Result<JailedProcess, JailError> {
    let support = process_support();
    if !support.complete() {
        return Err(JailError::Lacks { missing: support.missing });
    }
    if order.stdin.len() > MAX_STDIN_BYTES {
        let problem = format!("standard input is longer than {MAX_STDIN_BYTES} bytes; write it to a file");
        return Err(JailError::Order { problem });
    }
    let owner = support::owner();
    let plan = Plan::prepare(order, owner)?;
    let layer = OverlayLayer::create(&plan.scratch, &plan.project, owner)?;
    let (line, child_line) = control_socket::pair().map_err(refused("make the line to the supervisor"))?;
    let group = Group::create(&order.limits);
    let mut departure =
        ChildSetup::prepare(order, plan, owner, layer.folder(), child_line, group.as_ref(), listener)?;
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .env_clear()
        .envs([("PATH", PATH), ("HOME", plan::HOME), ("TMPDIR", "/tmp"), ("LANG", "C.UTF-8")])
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(standard_input(&order.stdin).map_err(refused("prepare standard input"))?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[expect(unsafe_code, reason = "the standard library has no other door between fork and exec")]
    // SAFETY: the closure makes system calls on memory that was allocated before the fork; it neither allocates nor
    // takes a lock, so the state in which other threads were interrupted does not matter.
    unsafe {
        command.pre_exec(move || departure.depart().map_err(|refusal| io::Error::from(refusal.errno)));
    }
    let started = Instant::now();
    let spawned = command.spawn();
    // With it goes our copy of the child's end, so that we notice when the others are gone.
    drop(command);
    let mut child = spawned.map_err(|source| why_not_started(&line, order, source))?;
    let streams = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
    let running = Running::new(child, Arc::new(line), streams);
    // Where one is missing, dropping what runs ends it.
    let Ok(Some(Message::Proc(processes))) = running.line().receive() else {
        return Err(JailError::Unaccounted);
    };
    let receive_source = || match running.line().receive() {
        Ok(Some(Message::Source(source))) => Ok(source),
        _ => Err(JailError::Unaccounted),
    };
    let sources = MemorySources {
        segments: receive_source()?,
        messages: receive_source()?,
        semaphores: receive_source()?,
        sockets: receive_source()?,
        network: order.network,
    };
    let watch = Watch::new(order.limits, layer.upper(), processes, MemoryReader::new(sources), group);
    Ok(JailedProcess {
        running,
        watch,
        layer,
        started,
        deadline: order.deadline,
        output_bytes: order.output_bytes,
    })
}

/// A process that was started. Dropping it ends it with everything it has started, and removes its layer.
// The process comes first: it must have ended when the layer is removed.
#[derive(Debug)]
pub struct JailedProcess {
    running: Running,
    watch: Watch,
    layer: OverlayLayer,
    started: Instant,
    deadline: Duration,
    output_bytes: usize,
}

impl JailedProcess {
    /// Something to end it with, from any thread and at any time.
    #[must_use]
    pub fn killer(&self) -> KillHandle {
        KillHandle(Arc::clone(self.running.line()))
    }

    /// Waits until the whole tree has ended, by itself, at the deadline, by a [`KillHandle`] or because it crossed a limit.
    ///
    /// This blocks its thread; the process's own children cannot hold it up once the program has ended.
    pub fn wait(mut self) -> Result<CommandExit, JailError> {
        let deadline = self.started + self.deadline.min(LONGEST);
        let (exit, stdout, stderr) = self.running.finish(&mut self.watch, deadline, self.output_bytes)?;
        Ok(CommandExit { exit, stdout, stderr, duration: self.started.elapsed(), layer: self.layer })
    }
}

/// Ends a jailed process with everything it has started. Does nothing when it has ended.
#[derive(Clone, Debug)]
pub struct KillHandle(Arc<ControlSocket>);

impl KillHandle {
    /// Requests the end and returns at once; [`JailedProcess::wait`] reports when it is done.
    pub fn kill(&self) {
        self.0.kill();
    }
}

fn refused(step: &'static str) -> impl Fn(io::Error) -> JailError {
    move |source| JailError::Refused { step, source }
}

/// The standard library knows the number of the error; the line knows the step.
fn why_not_started(line: &ControlSocket, order: &CommandSpec, source: io::Error) -> JailError {
    // The first messages may be what is handed over, before a later step failed.
    for _ in 0..SOURCES + 2 {
        if let Ok(Some(Message::Failed { step, errno })) = line.receive() {
            return JailError::Step { step, source: io::Error::from_raw_os_error(errno) };
        }
    }
    JailError::Program { program: order.program.clone(), source }
}

/// A file in memory that cannot be changed: no thread has to feed a pipe while the process runs.
fn standard_input(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let memory = memfd_create(c"stdin", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals =
        SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

/// The supervisor, when it had to be left to itself.
pub(crate) fn abandon(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
