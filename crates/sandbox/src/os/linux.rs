//! Linux.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, setsockopt, sockopt};
use nix::time::ClockId;
use nix::unistd::Pid;

use super::Peeked;

/// A descriptor that is received is closed in programs that this process starts.
pub(crate) const CLOSE_ON_EXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;

/// To send to a connection that is closed is an error and not a signal.
pub(crate) const NO_SIGNAL: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// Whether workers can be started. What the running system lacks of the lock is in a worker's own report.
pub(crate) fn check_support() -> Result<(), &'static str> {
    Ok(())
}

/// The file of this process's program, also after another was put in its place.
pub(crate) fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The clock of the CPU time that a process has used. Valid until it is reaped.
pub(crate) fn cpu_clock(process: Pid) -> Option<ClockId> {
    nix::time::clock_getcpuclockid(process).ok()
}

/// Whether the system attaches the writer to what is read from a connection.
pub(crate) fn report_sender(connection: &UnixStream, is_reported: bool) -> Result<(), Errno> {
    setsockopt(connection, sockopt::PassCred, &is_reported)
}

/// Waits for the first byte, leaves it there, and gives who wrote it.
pub(crate) fn peek_sender(connection: &UnixStream) -> Result<Peeked, Errno> {
    let mut space = nix::cmsg_space!(nix::libc::ucred);
    let mut probe = [0_u8; 1];
    let mut buffers = [io::IoSliceMut::new(&mut probe)];
    let received = loop {
        let received =
            recvmsg::<()>(connection.as_raw_fd(), &mut buffers, Some(&mut space), MsgFlags::MSG_PEEK);
        match received {
            // A wait with a time limit ends with every signal, and the end of each worker sends one.
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    let sender = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmCredentials(credentials) => Some(Pid::from_raw(credentials.pid())),
        _ => None,
    });
    Ok(Peeked { bytes: received.bytes, sender })
}

/// Whether the parent of this process has made a connection.
pub(crate) fn is_from_parent(connection: &UnixStream) -> bool {
    getsockopt(connection, sockopt::PeerCredentials).is_ok_and(|peer| {
        peer.pid() == nix::unistd::getppid().as_raw() && peer.uid() == nix::unistd::getuid().as_raw()
    })
}

/// Closes every descriptor from `first` on, of a process that has opened none itself.
pub(crate) fn close_all_from(first: RawFd) -> Option<()> {
    let start = libc::c_uint::try_from(first).ok()?;
    // SAFETY: the call takes numbers only, and nothing in this process has opened a descriptor yet.
    if unsafe { libc::syscall(libc::SYS_close_range, start, libc::c_uint::MAX, 0) } == 0 {
        return Some(());
    }
    // Kernels before 5.9 do not know the call.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    for descriptor in first..libc::c_int::try_from(most.min(1 << 20)).ok()? {
        // SAFETY: as above; closing what is not open does nothing.
        unsafe { libc::close(descriptor) };
    }
    Some(())
}

/// Ends this process when its parent ends.
pub(crate) fn die_with_parent() -> Option<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).ok()
}

/// A copy of this process beside it: its parent is the kernel, which can wait for it and whose death it dies. `None` in
/// the copy.
pub(crate) fn clone_beside() -> Result<Option<Pid>, Errno> {
    const FLAGS: libc::c_int = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: as with fork, the copy has its own memory and stack. This process has one thread, so no lock of the C library
    // or of the allocator is held by a thread that the copy lacks.
    let result = unsafe { libc::syscall(libc::SYS_clone, FLAGS, 0, 0, 0, 0) };
    let number = Errno::result(result)?;
    Ok((number != 0).then(|| Pid::from_raw(number as i32)))
}

/// Puts a descriptor in the place of the number `place`, whose owner keeps it.
pub(crate) fn replace(place: RawFd, descriptor: &OwnedFd) -> Option<()> {
    // SAFETY: the number stays open, and its owner only sees another connection behind it.
    Errno::result(unsafe { libc::dup3(descriptor.as_raw_fd(), place, libc::O_CLOEXEC) }).ok()?;
    Some(())
}

/// How much memory there is behind a pointer.
///
/// # Safety
///
/// The pointer comes from `malloc` and is still allocated.
pub(crate) unsafe fn usable_size(pointer: *mut u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

/// Fills a part of `bytes` from its start, and gives its length.
pub(crate) fn random_bytes(bytes: &mut [u8]) -> Option<usize> {
    // SAFETY: the pointer and length describe the slice.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    usize::try_from(got).ok()
}
