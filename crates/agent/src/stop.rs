//! The wish to stop, from a person at the terminal to the loop.

use tokio::sync::watch;

/// How soon the loop should stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopWish {
    #[default]
    GoOn,
    /// When the call that runs has ended; a model that is talking is cut off.
    AfterCall,
    /// At once: the call that runs is cancelled.
    Now,
}

/// The end that says it.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<StopWish>);

/// The end that hears it.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<StopWish>);

impl StopSignal {
    #[must_use]
    pub fn new() -> (StopHandle, Self) {
        let (sender, receiver) = watch::channel(StopWish::GoOn);
        (StopHandle(sender), Self(receiver))
    }

    /// The strongest wish so far.
    #[must_use]
    pub fn wish(&self) -> StopWish {
        *self.0.borrow()
    }

    /// Completes when the wish is at least `wish`; never when whoever could say it has gone.
    pub async fn wished(&mut self, wish: StopWish) {
        if self.0.wait_for(|said| *said >= wish).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl StopHandle {
    /// A weaker wish after a stronger one changes nothing.
    pub fn wish(&self, wish: StopWish) {
        self.0.send_if_modified(|said| {
            let stronger = wish > *said;
            *said = (*said).max(wish);
            stronger
        });
    }
}
