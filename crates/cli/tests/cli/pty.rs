//! A terminal with a simulated user.
#![expect(unsafe_code, reason = "a pseudo terminal is made by calls of the operating system")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A program at a terminal of 80 columns.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<String>, Condvar)>,
}

impl Terminal {
    pub fn start(mut command: Command) -> Self {
        let (ours, theirs) = open();
        let output = || Stdio::from(theirs.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stdin(output()).stdout(output()).stderr(output());
        // SAFETY: both calls are safe between fork and exec; standard input is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The command holds copies of the terminal's other end, and reading would not end while they are open.
        drop(command);
        drop(theirs);
        let screen = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let mut reader = File::from(ours.try_clone().unwrap());
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                shown.0.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
                shown.1.notify_all();
            }
        });
        Self { child, keyboard: File::from(ours), screen }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn screen(&self) -> String {
        self.screen.0.lock().unwrap().replace("\r\n", "\n")
    }

    /// Waits until a text has appeared.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(|screen| screen.contains(text));
    }

    /// Waits until the screen is as it should be.
    pub fn wait_until(&self, is_there: impl Fn(&str) -> bool) {
        let (screen, changed) = &*self.screen;
        let locked = screen.lock().unwrap();
        let (locked, timeout) =
            changed.wait_timeout_while(locked, PATIENCE, |screen| !is_there(screen)).unwrap();
        assert!(!timeout.timed_out(), "it never appeared in\n{locked}");
    }

    pub fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end: exit code and screen.
    pub fn finish(mut self) -> (Option<i32>, String) {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What was written last may still be on its way to the reader.
                std::thread::sleep(Duration::from_millis(50));
                return (status.code(), self.screen());
            }
            if Instant::now() > patience {
                self.child.kill().unwrap();
                panic!("it does not end:\n{}", self.screen());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn open() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 40, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers outlive the call, and the size is only read.
    let made =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just made both, and nothing else owns them.
    let ends = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    close_on_exec(&ends.0);
    close_on_exec(&ends.1);
    ends
}

/// Programs that other tests start meanwhile must not keep the terminal open.
fn close_on_exec(end: &OwnedFd) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open, and the call changes one flag of it.
    let set = unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    assert_eq!(set, 0);
}
