//! Blocking work on tokio's blocking pool: the one place that starts it, bounds it and reports its panics.

use std::any::Any;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use crate::{Code, ToolError};

/// Pieces of blocking work at a time in this process; more wait for their turn. Each takes a thread and may hold a whole
/// file in memory. The pool itself has 512 threads, so work that has its own bound always finds one.
const MAX_PARALLEL: usize = 64;

static PARALLEL: Semaphore = Semaphore::const_new(MAX_PARALLEL);

/// Runs work that blocks for a short while: it reads a file, hashes it, waits for an embedded database.
///
/// The work must not wait for other background work, since that may wait behind it.
///
/// # Errors
/// The error of the work; `EINTERNAL` with the cause when it panicked.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let permit = PARALLEL.acquire().await.map_err(|_| runtime_ended())?;
    run_bounded(move || {
        // Work whose caller has gone away still takes its thread.
        let _permit = permit;
        work()
    })
    .await
}

/// The same for work that may take long or wait for others, and whose number the caller has bounded.
///
/// # Errors
/// As [`run`].
pub async fn run_bounded<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error)))
}

/// Runs short blocking work in a function that is not asynchronous. On a multi-threaded runtime the other tasks of this
/// thread continue elsewhere meanwhile.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// The error for a background task that did not end by itself.
#[must_use]
pub fn failed(error: JoinError) -> ToolError {
    match error.try_into_panic() {
        Ok(payload) => ToolError::new(
            Code::Internal,
            format!("internal error: background task panicked: {}", cause(payload.as_ref())),
        )
        .help("this is a fault of tgp; report it with the message"),
        Err(_) => runtime_ended(),
    }
}

fn runtime_ended() -> ToolError {
    ToolError::new(Code::Internal, "the kernel ended before its background task")
        .help("make the call again when a kernel runs")
}

/// The message of a panic, where it has one.
fn cause(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
