//! Messages that carry a descriptor from one process to another (`SCM_RIGHTS`), over a pair of sockets that keeps
//! messages apart. System calls only, so that both sides work between fork and exec.
#![expect(unsafe_code, reason = "messages with descriptors must be written and read without allocating")]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

/// Sends one byte, which says what the descriptor is, and a copy of the descriptor.
pub(crate) fn send(socket: BorrowedFd<'_>, kind: u8, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut kind = [kind];
    let mut control = ControlMessage { descriptor: descriptor.as_raw_fd(), ..ControlMessage::default() };
    let mut part = libc::iovec { iov_base: kind.as_mut_ptr().cast(), iov_len: kind.len() };
    let header = control.header(&mut part);
    // SAFETY: the header points to buffers that outlive the call, with their lengths.
    Errno::result(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) })
        .map(drop)
}

/// The length of the next message, and the descriptor that came with it. It never waits: no message is `EAGAIN`, and a
/// length of zero is the end of the line.
pub(crate) fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Option<OwnedFd>), Errno> {
    let mut control = ControlMessage::default();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut header = control.header(&mut part);
    // SAFETY: the header points to buffers that outlive the call, with their lengths.
    let length = Errno::result(unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC)
    })?;
    // The C libraries do not agree on its type.
    let carries = header.msg_controllen >= size_of::<libc::cmsghdr>() as _;
    let descriptor = if carries { control.take_descriptor() } else { None };
    Ok((length.unsigned_abs(), descriptor))
}

/// Room for one descriptor in a message, laid out as the kernel wants it on 64-bit processors.
#[repr(C)]
struct ControlMessage {
    header: libc::cmsghdr,
    descriptor: libc::c_int,
    padding: libc::c_int,
}

impl Default for ControlMessage {
    fn default() -> Self {
        // SAFETY: an all-zero value is a valid one for this plain C structure.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<libc::c_int>()) as _;
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        Self { header, descriptor: -1, padding: 0 }
    }
}

impl ControlMessage {
    fn header(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: an all-zero value is a valid one for this plain C structure.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut *self).cast();
        header.msg_controllen = size_of::<Self>() as _;
        header
    }

    /// What was received, when it is a descriptor.
    fn take_descriptor(&mut self) -> Option<OwnedFd> {
        let descriptor = std::mem::replace(&mut self.descriptor, -1);
        let is_one = self.header.cmsg_level == libc::SOL_SOCKET && self.header.cmsg_type == libc::SCM_RIGHTS;
        // SAFETY: the kernel has just made it for this process, and it is taken once.
        (is_one && descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}
