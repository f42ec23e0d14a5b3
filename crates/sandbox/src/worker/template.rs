//! The template: a locked process with a warm engine that has never run a tool. Each worker is a copy of it.
//!
//! A copy shares what the template had at its birth, page by page until one of them writes, and nothing afterwards: it gets
//! its own connection, becomes a child of the kernel and not of the template, and locks itself further before it reads
//! anything that comes from a tool.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, recvmsg};
use nix::unistd::Pid;
use tgp_jail::{ChildLock, JailError, ResourceLimits};

use super::engine::Engine;
use super::{Serving, leave};
use crate::os::{self, Heap};
use crate::protocol::{FORK_REQUEST, FromWorker, StartFailure, fork_answer};

/// Where the template has the kernel's connection, and where each copy gets its own.
const CONNECTION: RawFd = 0;

/// What a template prepares for its workers before it locks itself.
pub(super) struct Birth {
    lock: ChildLock,
    heap: Option<Heap>,
}

impl Birth {
    pub(super) fn prepare(limits: &ResourceLimits) -> Result<Self, JailError> {
        Ok(Self { lock: ChildLock::prepare(limits)?, heap: os::prepare_template() })
    }
}

/// Forks a worker whenever the kernel sends a connection for one, until it closes the template's own.
pub(super) fn serve(serving: &Serving, mut birth: Birth, kernel: Pid) -> Option<()> {
    serving.host.send(&FromWorker::Warm).ok()?;
    // What is garbage now would be garbage in every copy, and looking for it there would touch all of the heap.
    serving.engine.collect_garbage();
    loop {
        let connection = receive_connection()?;
        match os::clone_beside() {
            Ok(None) => {
                let _ = serve_copy(serving, connection, &mut birth, kernel);
                leave();
            }
            Ok(Some(child)) => answer(serving, child.as_raw())?,
            Err(errno) => answer(serving, -(errno as i32))?,
        }
    }
}

fn answer(serving: &Serving, number: i32) -> Option<()> {
    use std::io::Write;
    serving.host.connection.borrow_mut().write_all(&fork_answer(number)).ok()
}

/// The connection of the next worker. `None` when the kernel has closed ours, or sent anything else.
fn receive_connection() -> Option<OwnedFd> {
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let mut byte = [0_u8; 1];
    let mut buffers = [std::io::IoSliceMut::new(&mut byte)];
    let received = loop {
        match recvmsg::<()>(CONNECTION, &mut buffers, Some(&mut space), os::CLOSE_ON_EXEC) {
            Err(Errno::EINTR) => {}
            outcome => break outcome.ok()?,
        }
    };
    let descriptor = received.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    })?;
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    (received.bytes == 1 && byte == [FORK_REQUEST]).then_some(descriptor)
}

fn serve_copy(serving: &Serving, connection: OwnedFd, birth: &mut Birth, kernel: Pid) -> Option<()> {
    // The number stays that of the connection that `Host` owns; the template's own is closed by the same call.
    os::replace(CONNECTION, &connection)?;
    drop(connection);
    if let Err(failure) = lock_copy(birth, kernel) {
        // From here on the connection is the copy's own, and the copy has run nothing.
        serving.host.send(&FromWorker::StartFailed(failure)).ok()?;
        return None;
    }
    serving.host.send(&FromWorker::Warm).ok()?;
    serving.serve_run()
}

fn lock_copy(birth: &mut Birth, kernel: Pid) -> Result<(), StartFailure> {
    // A copy does not inherit this.
    os::die_with_parent().ok_or_else(|| StartFailure::last_error("ask to end with its parent"))?;
    // The kernel may have died before that call, and then nothing would end this process.
    if nix::unistd::getppid() != kernel {
        return Err(StartFailure::new("find the kernel", "its parent is another process"));
    }
    birth.lock.apply()?;
    if let Some(heap) = &birth.heap {
        heap.own();
    }
    Ok(())
}
