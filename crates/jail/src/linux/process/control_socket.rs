//! The line between the kernel and the supervisor of a jailed process: a pair of sockets that keeps messages apart.
//!
//! Down goes one message at most, which means "end"; so does the end of the line itself. Up come the step that failed
//! before the program was executed, the jail's `/proc` and what its memory is read from, and how the program ended once its whole
//! tree has.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use super::super::{Refusal, descriptor_message};

/// A step's name and a number are far shorter.
const MESSAGE_BYTES: usize = 256;

const FAILED: u8 = b'F';
const PROC: u8 = b'P';
const SOURCE: u8 = b'M';
const EXITED: u8 = b'E';
const SIGNALLED: u8 = b'S';

/// The kernel's end. It can be used from any thread.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    socket: OwnedFd,
    killed: AtomicBool,
}

/// The end that the child, its supervisor and the first process of its namespace hold. System calls only.
#[derive(Debug)]
pub(crate) struct ChildControl(OwnedFd);

/// What comes up the line.
#[derive(Debug)]
pub(crate) enum Message {
    /// A step before the program's start failed.
    Failed { step: String, errno: i32 },
    /// The directory of the jail's processes.
    Proc(OwnedFd),
    /// One of the descriptors that the memory of the jail is read from.
    Source(OwnedFd),
    /// The program exited with this code, and its tree has ended.
    Exited(i32),
    /// The program was ended by this signal, and its tree has ended.
    Signalled(i32),
    /// The other end is closed.
    Closed,
}

pub(crate) fn pair() -> io::Result<(ControlSocket, ChildControl)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    Ok((ControlSocket { socket: ours, killed: AtomicBool::new(false) }, ChildControl(theirs)))
}

impl ControlSocket {
    /// Ends the tree, if it has not ended by itself.
    pub(crate) fn end(&self) {
        // An error means that the other end is closed, or that the message was sent already and is in the queue.
        let _ = send(self.socket.as_raw_fd(), b"end", MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT);
    }

    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.end();
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next message; nothing when there is none yet.
    pub(crate) fn receive(&self) -> io::Result<Option<Message>> {
        let mut bytes = [0_u8; MESSAGE_BYTES];
        let (length, descriptor) = match descriptor_message::receive(self.socket.as_fd(), &mut bytes) {
            Ok(received) => received,
            // If the other side ended before it read our message, this is reported first, and once; what it sent
            // itself is still in the queue.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let message = bytes.get(..length).unwrap_or_default();
        let Some((kind, rest)) = message.split_first() else { return Ok(Some(Message::Closed)) };
        let number = rest.first_chunk().map(|word| i32::from_le_bytes(*word)).unwrap_or_default();
        match (*kind, descriptor) {
            (FAILED, _) => {
                let step = String::from_utf8_lossy(rest.get(4..).unwrap_or_default()).into_owned();
                Ok(Some(Message::Failed { step, errno: number }))
            }
            (PROC, Some(directory)) => Ok(Some(Message::Proc(directory))),
            (SOURCE, Some(source)) => Ok(Some(Message::Source(source))),
            (EXITED, _) => Ok(Some(Message::Exited(number))),
            (SIGNALLED, _) => Ok(Some(Message::Signalled(number))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl ChildControl {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// For the first process of the namespace: waits on, or learns that it is time to end.
    pub(crate) fn says_end(&self) -> bool {
        !matches!(
            recv(self.0.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT),
            Err(Errno::EAGAIN | Errno::EINTR)
        )
    }

    pub(crate) fn tell_failure(&self, refusal: Refusal) {
        self.tell(FAILED, refusal.errno as i32, refusal.step.as_bytes());
    }

    pub(crate) fn tell_exit(&self, code: i32) {
        self.tell(EXITED, code, b"");
    }

    pub(crate) fn tell_signal(&self, signal: i32) {
        self.tell(SIGNALLED, signal, b"");
    }

    fn tell(&self, kind: u8, number: i32, text: &[u8]) {
        let head = std::iter::once(kind).chain(number.to_le_bytes());
        let mut bytes = [0_u8; MESSAGE_BYTES];
        let mut length = 0;
        for (place, byte) in bytes.iter_mut().zip(head.chain(text.iter().copied())) {
            *place = byte;
            length += 1;
        }
        // An error means that the kernel is gone, and then there is no receiver.
        let _ = send(self.0.as_raw_fd(), bytes.get(..length).unwrap_or_default(), MsgFlags::MSG_NOSIGNAL);
    }

    /// Hands the jail's `/proc` to the kernel.
    pub(crate) fn hand_over_processes(&self, directory: &OwnedFd) -> Result<(), Refusal> {
        self.hand(PROC, directory)
    }

    /// Hands one of the descriptors that the memory of the jail is read from to the kernel.
    pub(crate) fn hand_over_source(&self, source: &OwnedFd) -> Result<(), Refusal> {
        self.hand(SOURCE, source)
    }

    fn hand(&self, kind: u8, descriptor: &OwnedFd) -> Result<(), Refusal> {
        descriptor_message::send(self.0.as_fd(), kind, descriptor.as_fd())
            .map_err(Refusal::of("hand the jail's /proc to the kernel"))
    }
}
