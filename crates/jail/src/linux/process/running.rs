//! From the start of a process to the end of its tree: both streams are read while it runs, limits and the clock are
//! checked, and the end is the supervisor's report that no process is left.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::control_socket::{ControlSocket, Message};
use super::recorder::HeadTailBuffer;
use super::watch::{PERIOD, Watch};
use super::{PATIENCE, abandon};
use crate::{Captured, Exit, JailError};

/// Read at once from a stream: as much as a pipe holds.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces read from one stream before the others have their turn.
const PIECES: usize = 16;

/// The supervisor of a process that was started, and what comes from it. Dropping it ends the tree.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    line: Arc<ControlSocket>,
    streams: (Option<OwnedFd>, Option<OwnedFd>),
    ended: bool,
}

impl Running {
    pub(crate) fn new(
        child: Child,
        line: Arc<ControlSocket>,
        streams: (Option<OwnedFd>, Option<OwnedFd>),
    ) -> Self {
        Self { child, line, streams, ended: false }
    }

    pub(crate) fn line(&self) -> &Arc<ControlSocket> {
        &self.line
    }

    /// Reads, watches and waits until the tree has ended.
    pub(crate) fn finish(
        &mut self,
        watch: &mut Watch,
        deadline: Instant,
        output_bytes: usize,
    ) -> Result<(Exit, Captured, Captured), JailError> {
        let streams = std::mem::take(&mut self.streams);
        let mut stdout = Stream::open(streams.0, output_bytes)?;
        let mut stderr = Stream::open(streams.1, output_bytes)?;
        let mut ending: Option<(Exit, Instant)> = None;
        let mut next_look = Instant::now() + PERIOD;
        let status = loop {
            let now = Instant::now();
            if ending.is_none() {
                let cause = if self.line.was_killed() {
                    Some(Exit::Killed)
                } else if now >= deadline {
                    Some(Exit::Deadline)
                } else if now >= next_look {
                    let crossed = watch.look();
                    next_look = Instant::now() + watch.pause();
                    crossed
                } else {
                    None
                };
                if let Some(cause) = cause {
                    self.line.end();
                    ending = Some((cause, now + PATIENCE));
                }
            }
            if ending.is_some_and(|(_, patience)| now >= patience) {
                return Err(JailError::Unaccounted);
            }
            self.sleep(&stdout, &stderr, now, next_look.min(deadline))?;
            stdout.read()?;
            stderr.read()?;
            match self.line.receive().map_err(failed)? {
                Some(message @ (Message::Exited(_) | Message::Signalled(_))) => break message,
                Some(Message::Closed) => return Err(JailError::Unaccounted),
                Some(Message::Failed { .. } | Message::Proc(_) | Message::Source(_)) | None => {}
            }
        };
        self.child.wait().map_err(failed)?;
        self.ended = true;
        // No writer is left, so what is in the pipes is all.
        stdout.drain()?;
        stderr.drain()?;
        let exit = match (status, ending) {
            (Message::Signalled(libc::SIGKILL), Some((cause, _))) => cause,
            (Message::Signalled(libc::SIGKILL), None) if self.line.was_killed() => Exit::Killed,
            (Message::Signalled(signal), _) => Exit::Signal(signal),
            (Message::Exited(code), _) => Exit::Code(code),
            _ => return Err(JailError::Unaccounted),
        };
        let exit = match exit {
            // The kernel was faster than the watch.
            Exit::Signal(libc::SIGKILL) if watch.group_was_full() => Exit::MemoryFull,
            Exit::Code(_) | Exit::Signal(_) if watch.layer_is_full() => Exit::LayerFull,
            exit => exit,
        };
        Ok((exit, stdout.recorder.finish(), stderr.recorder.finish()))
    }

    /// Sleeps until something can be read, or until this moment.
    fn sleep(&self, stdout: &Stream, stderr: &Stream, now: Instant, until: Instant) -> Result<(), JailError> {
        // At most one period, so that a kill request is noticed soon even if its message was lost.
        let pause = until.saturating_duration_since(now).min(PERIOD).max(Duration::from_millis(1));
        let timeout = PollTimeout::try_from(pause).unwrap_or(PollTimeout::ZERO);
        let mut watched = vec![PollFd::new(self.line.as_fd(), PollFlags::POLLIN)];
        for stream in [stdout, stderr] {
            watched.extend(stream.pipe.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)));
        }
        match poll(&mut watched, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.line.end();
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            let mut watched = [PollFd::new(self.line.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut watched, PollTimeout::from(100_u8));
            match self.line.receive() {
                // The supervisor's word comes just before its end.
                Ok(Some(Message::Exited(_) | Message::Signalled(_))) => {
                    let _ = self.child.wait();
                    return;
                }
                Ok(Some(Message::Closed)) | Err(_) => break,
                Ok(Some(Message::Failed { .. } | Message::Proc(_) | Message::Source(_)) | None) => {}
            }
        }
        abandon(&mut self.child);
    }
}

/// One stream of the process; no pipe when it has ended.
#[derive(Debug)]
struct Stream {
    pipe: Option<File>,
    recorder: HeadTailBuffer,
    piece: Vec<u8>,
}

impl Stream {
    fn open(pipe: Option<OwnedFd>, output_bytes: usize) -> Result<Self, JailError> {
        if let Some(pipe) = &pipe {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| failed(errno.into()))?;
        }
        Ok(Self {
            pipe: pipe.map(File::from),
            recorder: HeadTailBuffer::new(output_bytes),
            piece: vec![0; PIECE_BYTES],
        })
    }

    /// Reads what is there, but no more than its turn. Reports whether there may be more.
    fn read(&mut self) -> Result<bool, JailError> {
        for _ in 0..PIECES {
            let Some(pipe) = &mut self.pipe else { return Ok(false) };
            match pipe.read(&mut self.piece) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.recorder.push(self.piece.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(true)
    }

    fn drain(&mut self) -> Result<(), JailError> {
        while self.read()? {}
        Ok(())
    }
}

fn failed(source: io::Error) -> JailError {
    JailError::Refused { step: "follow the process", source }
}
