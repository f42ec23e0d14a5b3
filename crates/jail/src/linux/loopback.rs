//! The loopback of a new network namespace, and a listener on it that a process outside serves.
#![expect(unsafe_code, reason = "what is done here has no wrapper in the parts of nix that we use")]

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, listen, socket, socketpair};

use super::{Refusal, descriptor_message};
use crate::JailError;

/// What the one message of the child carries.
const LISTENER: u8 = b'L';

/// The step that names a listener which did not arrive.
const RECEIVE: &str = "receive the listener of the jail";

/// The caller's end of the line over which the listener of a jailed command arrives.
#[derive(Debug)]
pub struct JailListener(OwnedFd);

impl JailListener {
    /// The listener on `127.0.0.1` in the network of the jail. What connects to it is the program and what it has started.
    ///
    /// Call it once, after `spawn` has returned without an error: the listener was sent before the program was
    /// executed. It never waits. The listener is in blocking mode; tokio wants `set_nonblocking` first.
    ///
    /// # Errors
    /// When no command was spawned, or its spawn failed.
    pub fn receive(self) -> Result<TcpListener, JailError> {
        let refused = |source| JailError::Refused { step: RECEIVE, source };
        let mut newest = None;
        // A spawn that failed late has left a listener too, and only the last one has a program.
        loop {
            let mut kind = [0];
            match descriptor_message::receive(self.0.as_fd(), &mut kind) {
                Ok((1, Some(descriptor))) if kind == [LISTENER] => newest = Some(descriptor),
                // The other end is closed: the command was dropped.
                Ok((0, _)) | Err(Errno::EAGAIN) => break,
                Ok(_) => return Err(refused(io::ErrorKind::InvalidData.into())),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(refused(errno.into())),
            }
        }
        let never_sent = || refused(io::Error::new(io::ErrorKind::NotFound, "the command is not running"));
        newest.map(TcpListener::from).ok_or_else(never_sent)
    }
}

/// The child's end: the listener that it opens and sends.
#[derive(Debug)]
pub(crate) struct ListenerSender {
    socket: OwnedFd,
    port: u16,
}

/// Both ends of the line.
pub(crate) fn listener_pair(port: u16) -> Result<(ListenerSender, JailListener), JailError> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(Refusal::of("make the line for the listener"))?;
    Ok((ListenerSender { socket: theirs, port }, JailListener(ours)))
}

impl ListenerSender {
    /// For a child that has just entered its own network. Its copy of the listener is closed here, and that of the
    /// line by the exec.
    pub(crate) fn open_and_send(&self) -> Result<(), Refusal> {
        switch_on()?;
        let listener = open_listener(self.port).map_err(Refusal::of("listen on the loopback of the jail"))?;
        descriptor_message::send(self.socket.as_fd(), LISTENER, listener.as_fd())
            .map_err(Refusal::of("send the listener of the jail"))
    }
}

fn open_listener(port: u16) -> Result<OwnedFd, Errno> {
    let listener = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: an all-zero value is a valid one for this plain C structure.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
    // A few bytes, whatever the C library's type for their number is.
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the kernel reads a structure that is ours, with its length.
    Errno::result(unsafe { libc::bind(listener.as_raw_fd(), (&raw const address).cast(), length) })?;
    listen(&listener, Backlog::MAXALLOWABLE)?;
    Ok(listener)
}

/// A new network has a loopback that is down.
pub(crate) fn switch_on() -> Result<(), Refusal> {
    set_up_flag().map_err(Refusal::of("switch the loopback on"))
}

fn set_up_flag() -> Result<(), Errno> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: an all-zero value is a valid one for this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *letter as libc::c_char;
    }
    // SAFETY: the kernel reads the name and writes the flags of a structure that is ours.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) })?;
    // SAFETY: the call before has written this field of the union.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    // SAFETY: as above; the kernel only reads.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) })
        .map(drop)
}
