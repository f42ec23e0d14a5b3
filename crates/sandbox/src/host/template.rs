//! The template of a pool: the process that its workers are forked from.

use std::io::{IoSlice, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::sys::socket::{ControlMessage, sendmsg};
use nix::unistd::Pid;

use super::SandboxError;
use super::pool::{Modules, WarmWorker};
use super::process::{Reach, WorkerProcess, connection_pair, errno};
use crate::os;
use crate::protocol::{
    FORK_ANSWER_BYTES, FORK_REQUEST, FromWorker, ModuleCode, ToWorker, WarmUp, forked, read_blocking,
    write_blocking,
};

/// A locked process with a warm engine. It never runs a tool or a package.
#[derive(Debug)]
pub(super) struct Template {
    process: WorkerProcess,
    pub(super) modules: Modules,
}

impl Template {
    /// Makes a template of a process that was started as one.
    pub(super) fn warm(
        mut process: WorkerProcess,
        modules: Modules,
        reach: &Reach,
    ) -> Result<Self, SandboxError> {
        warm_up(&mut process, &modules, reach)?;
        Ok(Self { process, modules })
    }

    /// A new worker, a child of this process. An error means that the template is of no more use.
    pub(super) fn fork(&mut self, reach: &Reach) -> Result<WarmWorker, SandboxError> {
        let (ours, theirs) = connection_pair()?;
        let answer = {
            let _held = reach.hold(self.process.pid());
            self.ask(&theirs)?
        };
        // Were it open here too, the end of the worker would not be noticed.
        drop(theirs);
        let pid = forked(answer).map_err(SandboxError::Spawn)?;
        let process = WorkerProcess::forked(Pid::from_raw(pid), ours, self.process.lock.clone(), reach)?;
        WarmWorker::new(process, Arc::clone(&self.modules))
    }

    fn ask(&mut self, connection: &OwnedFd) -> Result<[u8; FORK_ANSWER_BYTES], SandboxError> {
        let descriptors = [connection.as_raw_fd()];
        let control = [ControlMessage::ScmRights(&descriptors)];
        let request = [FORK_REQUEST];
        let template = &mut self.process.connection;
        sendmsg::<()>(template.as_raw_fd(), &[IoSlice::new(&request)], &control, os::NO_SIGNAL, None)
            .map_err(errno)?;
        let mut answer = [0; FORK_ANSWER_BYTES];
        template
            .read_exact(&mut answer)
            .map_err(|error| SandboxError::NotReady(format!("the template has gone: {error}")))?;
        Ok(answer)
    }
}

/// Loads some modules into a process that has locked itself.
pub(super) fn warm_up(
    process: &mut WorkerProcess,
    modules: &Modules,
    reach: &Reach,
) -> Result<(), SandboxError> {
    let warm_up = WarmUp { modules: modules.values().map(|module| ModuleCode::clone(module)).collect() };
    let not_ready = |error: crate::protocol::FrameError| SandboxError::NotReady(error.to_string());
    let _held = reach.hold(process.pid());
    write_blocking(&mut process.connection, &ToWorker::WarmUp(warm_up)).map_err(not_ready)?;
    match read_blocking(&mut process.connection).map_err(not_ready)? {
        FromWorker::Warm => Ok(()),
        _ => Err(SandboxError::NotReady("it answered its warm-up with something else".to_owned())),
    }
}
