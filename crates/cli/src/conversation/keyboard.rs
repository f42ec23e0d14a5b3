//! Answers that the user types.

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::sys::termios::{FlushArg, tcflush};
use tokio::io::unix::AsyncFd;

/// Bytes of an answer; a terminal keeps no longer lines either.
const MAX_ANSWER: usize = 4096;
/// Names of the terminal that standard input is. The second helps where the first belongs to another user.
const TERMINALS: [&str; 2] = ["/dev/stdin", "/dev/tty"];

/// Something that answers are typed on.
pub trait Keyboard: Send {
    /// The next line; nothing at the end of the input.
    fn line(&mut self) -> impl Future<Output = io::Result<Option<String>>> + Send;

    /// Drops what was typed and not read: it answers nothing that is shown later.
    ///
    /// # Errors
    /// When there is no keyboard.
    fn forget(&mut self) -> io::Result<()>;
}

/// The keyboard of this terminal. It is opened again, so that waiting for it does not block other readers of
/// standard input.
#[derive(Debug, Default)]
pub struct TerminalKeyboard {
    file: Option<AsyncFd<File>>,
    buffer: Vec<u8>,
}

impl TerminalKeyboard {
    #[expect(
        deprecated,
        reason = "its successor wants an unsafe promise that `File` keeps anyway: one descriptor for life"
    )]
    fn open(&mut self) -> io::Result<&mut AsyncFd<File>> {
        if self.file.is_none() {
            self.file = Some(AsyncFd::new(terminal()?)?);
        }
        self.file.as_mut().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

fn terminal() -> io::Result<File> {
    // The name of the controlling terminal must not change which one that is.
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let mut last = ErrorKind::NotFound.into();
    for name in TERMINALS {
        match OpenOptions::new().read(true).custom_flags(flags).open(name) {
            Ok(file) => return Ok(file),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Keyboard for TerminalKeyboard {
    async fn line(&mut self) -> io::Result<Option<String>> {
        let mut piece = [0; 512];
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if self.buffer.len() > MAX_ANSWER {
                return Err(io::Error::new(ErrorKind::InvalidData, "the answer is too long"));
            }
            let file = self.open()?;
            let mut ready = file.readable_mut().await?;
            match ready.try_io(|file| file.get_mut().read(&mut piece)) {
                Ok(Ok(0)) => return Ok(None),
                Ok(Ok(length)) => self.buffer.extend(piece.iter().take(length)),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                // It was not readable after all.
                Err(_) => {}
            }
        }
    }

    fn forget(&mut self) -> io::Result<()> {
        self.buffer.clear();
        tcflush(self.open()?.get_ref(), FlushArg::TCIFLUSH)?;
        Ok(())
    }
}
