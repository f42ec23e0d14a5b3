//! Signals: an ordinary command ends with the first, a session is asked to stop, then stopped, then left. A process that
//! was asked to end is gone five seconds later, or at the next signal, whatever hangs.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tgp::agent::{StopHandle, StopLevel};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit;

/// What the signals of a session have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptState {
    #[default]
    Nothing,
    /// Ctrl-C once.
    AfterCall,
    /// Ctrl-C twice.
    Now,
    /// SIGTERM: its sender is not the user at the terminal.
    Terminated,
    /// SIGHUP: the terminal is gone, and the user with it.
    HungUp,
}

impl InterruptState {
    /// What comes after Ctrl-C; nothing after the last step.
    fn interrupted(self) -> Option<Self> {
        match self {
            Self::Nothing => Some(Self::AfterCall),
            Self::AfterCall => Some(Self::Now),
            Self::Now | Self::Terminated | Self::HungUp => None,
        }
    }

    fn stop_level(self) -> StopLevel {
        match self {
            Self::Nothing => StopLevel::GoOn,
            Self::AfterCall => StopLevel::AfterCall,
            Self::Now | Self::Terminated | Self::HungUp => StopLevel::Now,
        }
    }

    /// The message for the user, while a call runs or while none does.
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

/// How long a session may take to stop after SIGTERM or SIGHUP; then it is dropped as any command is.
const SESSION_GRACE: Duration = Duration::from_millis(1500);
/// Since the signal: calls that take effect are waited for until then. What is not done is recorded as unknown.
const CALL_GRACE: Duration = Duration::from_millis(2500);
/// Since the signal: then the process ends, whatever hangs.
const HARD_LIMIT: Duration = Duration::from_secs(5);

/// The signals of this process; every clone means the same ones.
#[derive(Clone, Debug, Default)]
pub struct Interrupts(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The session that takes the signals now.
    session: Mutex<Option<StopHandle>>,
    heard: watch::Sender<InterruptState>,
    /// The signal that ends the process, and when it came.
    ended: watch::Sender<Option<(EndSignal, Instant)>>,
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Option<StopHandle>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interrupts {
    /// Catches the signals of this process from now on, in its own thread, so that the last one ends the process even
    /// when every other thread hangs. Where there can be no such thread the default actions apply: the process ends,
    /// and its workers with it.
    #[must_use]
    pub fn listen() -> Self {
        let interrupts = Self::default();
        let shared = Arc::clone(&interrupts.0);
        let (ready, begun) = std::sync::mpsc::sync_channel(1);
        let listener = std::thread::Builder::new().name("tgp-signals".to_owned());
        let listener = listener.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(listen(&shared, &ready));
            }
        });
        if listener.is_ok() {
            // The thread says so when it listens, and drops its end when it cannot.
            let _ = begun.recv();
        }
        interrupts
    }

    /// Completes when the command has to end: its future is dropped then, and with it its calls. A session that takes the
    /// signals has a moment to stop by itself.
    pub async fn ended(&self) {
        let mut ended = self.0.ended.subscribe();
        if ended.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
        if self.0.session().is_some() {
            tokio::time::sleep(SESSION_GRACE).await;
        }
    }

    /// How long what the command has begun may still be waited for.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        let since = self.0.ended.borrow().map(|(_, since)| since.elapsed());
        CALL_GRACE.saturating_sub(since.unwrap_or_default())
    }

    /// Whether a signal has stopped anything, a session or the command.
    #[must_use]
    pub fn was_signalled(&self) -> bool {
        self.0.ended.borrow().is_some() || *self.0.heard.borrow() != InterruptState::Nothing
    }

    /// Whether the process was asked to end by SIGTERM.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        matches!(*self.0.ended.borrow(), Some((EndSignal::Terminate, _)))
    }

    /// The name of the signal that stopped the command or its session.
    #[must_use]
    pub fn signal(&self) -> Option<&'static str> {
        let ended = self.0.ended.borrow().map(|(asked, _)| asked);
        match (ended, *self.0.heard.borrow()) {
            (Some(EndSignal::Interrupt), _) | (None, InterruptState::AfterCall | InterruptState::Now) => {
                Some("SIGINT")
            }
            (Some(EndSignal::Terminate), _) | (None, InterruptState::Terminated) => Some("SIGTERM"),
            (Some(EndSignal::HangUp), _) | (None, InterruptState::HungUp) => Some("SIGHUP"),
            (None, InterruptState::Nothing) => None,
        }
    }

    /// The stop requests of a session so far, and those to come.
    pub fn heard(&self) -> watch::Receiver<InterruptState> {
        self.0.heard.subscribe()
    }

    /// While the session runs signals are stop requests: Ctrl-C stops it after the current call, a second one now,
    /// a third ends the process at once; SIGTERM and SIGHUP stop it now, and a second one of them ends the process
    /// at once.
    pub async fn during<F: Future>(&self, stop: StopHandle, session: F) -> F::Output {
        *self.0.session() = Some(stop);
        let handling = SessionGuard(Arc::clone(&self.0));
        let output = session.await;
        drop(handling);
        output
    }
}

/// A session that takes the signals until this is dropped.
#[derive(Debug)]
struct SessionGuard(Arc<Shared>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        *self.0.session() = None;
    }
}

/// Turns signals into stop requests and exits, until the process ends.
async fn listen(shared: &Shared, ready: &std::sync::mpsc::SyncSender<()>) {
    let Ok(mut signals) = Signals::new() else { return };
    if ready.send(()).is_err() {
        return;
    }
    let mut heard = InterruptState::Nothing;
    let mut ending: Option<(EndSignal, Instant)> = None;
    loop {
        let asked = match ending {
            None => signals.next().await,
            Some((first, since)) => {
                let left = HARD_LIMIT.saturating_sub(since.elapsed());
                match tokio::time::timeout(left, signals.next()).await {
                    // It was asked to end before.
                    Ok(asked) => leave(asked),
                    Err(_) => leave(first),
                }
            }
        };
        let session = shared.session();
        let ends = match (session.as_ref(), asked) {
            (None, _) | (Some(_), EndSignal::Terminate | EndSignal::HangUp) => true,
            (Some(_), EndSignal::Interrupt) => false,
        };
        heard = match (asked, heard.interrupted()) {
            (EndSignal::Terminate, _) => InterruptState::Terminated,
            (EndSignal::HangUp, _) => InterruptState::HungUp,
            (EndSignal::Interrupt, _) if ends => heard,
            (EndSignal::Interrupt, Some(next)) => next,
            (EndSignal::Interrupt, None) => leave(asked),
        };
        // A receiver of the stop request can read its cause.
        shared.heard.send_replace(heard);
        if let Some(stop) = session.as_ref() {
            stop.request(heard.stop_level());
        }
        drop(session);
        if ends {
            ending = Some((asked, Instant::now()));
            shared.ended.send_replace(ending);
        }
    }
}

#[expect(clippy::exit, reason = "the last signal ends the process even when its runtime hangs")]
fn leave(asked: EndSignal) -> ! {
    std::process::exit(i32::from(match asked {
        EndSignal::Terminate => exit::TERMINATED,
        EndSignal::Interrupt | EndSignal::HangUp => exit::INTERRUPTED,
    }))
}

/// Which signal it was.
#[derive(Clone, Copy, Debug)]
enum EndSignal {
    Interrupt,
    Terminate,
    HangUp,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where the parent process wants this one to outlive its terminal, as `nohup` does.
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

    async fn next(&mut self) -> EndSignal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = hang_up => EndSignal::HangUp,
            _ = self.interrupt.recv() => EndSignal::Interrupt,
        }
    }
}

/// Whether SIGHUP was ignored when this process was started. Where this is unknown, it was not.
fn is_hang_up_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // SIGHUP is the first signal.
    mask & 1 == 1
}
