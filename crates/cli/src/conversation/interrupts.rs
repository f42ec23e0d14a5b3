//! Signals: an ordinary command ends with the first, a session is asked to stop, then stopped, then left.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tgp::{StopHandle, StopWish};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use crate::exit::{Failure, exit_code};

/// What the signals of a session have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    #[default]
    Nothing,
    /// Ctrl-C once.
    AfterCall,
    /// Ctrl-C twice.
    Now,
    /// SIGTERM: whoever sends it does not sit at the terminal.
    Terminated,
    /// SIGHUP: the terminal is gone, and whoever sat at it.
    HungUp,
}

impl Heard {
    /// What comes after Ctrl-C; nothing when there is no more patience.
    fn interrupted(self) -> Option<Self> {
        match self {
            Self::Nothing => Some(Self::AfterCall),
            Self::AfterCall => Some(Self::Now),
            Self::Now | Self::Terminated | Self::HungUp => None,
        }
    }

    fn wish(self) -> StopWish {
        match self {
            Self::Nothing => StopWish::GoOn,
            Self::AfterCall => StopWish::AfterCall,
            Self::Now | Self::Terminated | Self::HungUp => StopWish::Now,
        }
    }

    /// What the person is told, while a call runs or while none does.
    pub fn words(self, has_call: bool) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::AfterCall if has_call => Some("stopping after this call; Ctrl-C again stops now"),
            Self::AfterCall => Some("stopping; Ctrl-C again stops now"),
            Self::Now => Some("stopping now; Ctrl-C again ends at once"),
            Self::Terminated => Some("asked to end by SIGTERM: stopping now"),
            Self::HungUp => Some("asked to end by SIGHUP: stopping now"),
        }
    }
}

/// The signals of this process; every clone means the same ones.
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    /// True while a session takes them.
    heeded: Arc<AtomicBool>,
    heard: Arc<watch::Sender<Heard>>,
}

impl Interrupts {
    /// Completes when the process is asked to end and no session takes the signals: the command's future is dropped
    /// then, and with it its kernel, every worker and every temporary file.
    pub async fn unheeded(&self) {
        // Without handlers the default actions stand: the process ends, and its workers with it.
        let Ok(mut signals) = Signals::new() else { return std::future::pending().await };
        loop {
            signals.next().await;
            if !self.heeded.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// What a session has heard so far, and what it will hear.
    pub fn heard(&self) -> watch::Receiver<Heard> {
        self.heard.subscribe()
    }

    /// While the session runs signals are wishes: Ctrl-C stops it after the current call, a second one now, a third
    /// ends the process at once; SIGTERM and SIGHUP stop it now.
    ///
    /// They are caught by a thread of their own, so that the third ends the process even when everything else hangs.
    /// Where there can be no such thread, a signal ends the session as it ends any command.
    pub async fn during<F: Future>(&self, stop: StopHandle, session: F) -> F::Output {
        let heeding = self.heed(stop).await;
        let output = session.await;
        drop(heeding);
        output
    }

    async fn heed(&self, stop: StopHandle) -> Option<Heeding> {
        let (stay, gone) = oneshot::channel();
        let (ready, begun) = oneshot::channel();
        let heard = Arc::clone(&self.heard);
        let listener = std::thread::Builder::new().name("tgp-signals".to_owned());
        let listener = listener.spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() {
                runtime.block_on(listen(&stop, &heard, gone, ready));
            }
        });
        listener.ok()?;
        // The thread says so when it listens, and drops its end when it cannot.
        begun.await.ok()?;
        self.heeded.store(true, Ordering::Release);
        Some(Heeding { heeded: Arc::clone(&self.heeded), _stay: stay })
    }
}

/// A session that takes the signals until this is dropped.
#[derive(Debug)]
struct Heeding {
    heeded: Arc<AtomicBool>,
    /// Its end tells the thread to go.
    _stay: oneshot::Sender<()>,
}

impl Drop for Heeding {
    fn drop(&mut self) {
        self.heeded.store(false, Ordering::Release);
    }
}

/// Turns signals into wishes until the session has gone.
async fn listen(
    stop: &StopHandle,
    say: &watch::Sender<Heard>,
    mut gone: oneshot::Receiver<()>,
    ready: oneshot::Sender<()>,
) {
    let Ok(mut signals) = Signals::new() else { return };
    if ready.send(()).is_err() {
        return;
    }
    let mut heard = Heard::Nothing;
    loop {
        let signal = tokio::select! {
            // A signal that comes after the session is no longer its own.
            biased;
            _ = &mut gone => return,
            signal = signals.next() => signal,
        };
        heard = match (signal, heard.interrupted()) {
            (Asked::Terminate, _) => Heard::Terminated,
            (Asked::HangUp, _) => Heard::HungUp,
            (Asked::Interrupt, Some(next)) => next,
            (Asked::Interrupt, None) => leave(),
        };
        // Whoever hears the wish can read what it came from.
        say.send_replace(heard);
        stop.wish(heard.wish());
    }
}

#[expect(clippy::exit, reason = "the third Ctrl-C ends the process even when its runtime hangs")]
fn leave() -> ! {
    std::process::exit(i32::from(exit_code(&Failure::Interrupted)))
}

/// Which signal it was.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Interrupt,
    Terminate,
    HangUp,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where whoever started this process wants it to outlive its terminal, as `nohup` does.
    hang_up: Option<Signal>,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let hang_up = if is_hang_up_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
        })
    }

    async fn next(&mut self) -> Asked {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Asked::Terminate,
            _ = hang_up => Asked::HangUp,
            _ = self.interrupt.recv() => Asked::Interrupt,
        }
    }
}

/// Whether SIGHUP was ignored when this process was started. Where nobody can tell, it was not.
fn is_hang_up_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // SIGHUP is the first signal.
    mask & 1 == 1
}
