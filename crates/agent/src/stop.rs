//! The wish to stop, from a person at the terminal to the loop.

use tokio::sync::watch;

/// How soon the loop should stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    #[default]
    GoOn,
    /// When the call that runs has ended; a model that is talking is cut off.
    AfterCall,
    /// At once: the call that runs is cancelled.
    Now,
}

/// The end that says it.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<StopLevel>);

/// The receiver of a stop request.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<StopLevel>);

impl StopSignal {
    #[must_use]
    pub fn new() -> (StopHandle, Self) {
        let (sender, receiver) = watch::channel(StopLevel::GoOn);
        (StopHandle(sender), Self(receiver))
    }

    /// The strongest level that was requested so far.
    #[must_use]
    pub fn level(&self) -> StopLevel {
        *self.0.borrow()
    }

    /// Completes when at least `level` was requested; never when its handle is gone.
    pub async fn reached(&mut self, level: StopLevel) {
        if self.0.wait_for(|requested| *requested >= level).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl StopHandle {
    /// Asks the loop to stop. A weaker level after a stronger one changes nothing.
    pub fn request(&self, level: StopLevel) {
        self.0.send_if_modified(|requested| {
            let stronger = level > *requested;
            *requested = (*requested).max(level);
            stronger
        });
    }
}
