//! Runs that outlast their request: each has a handle, and their number is bounded.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tgp_contract::{Code, ToolError, ToolResult, canonical};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;

use crate::answer::Answer;

/// Runs of a connection at a time, and as many questions beside them; more of them wait.
const MAX_RUNNING: usize = 16;
/// Runs that run or wait.
const MAX_UNFINISHED: usize = 256;
/// Finished runs whose results were not fetched yet.
const MAX_FINISHED: usize = 64;
/// Bytes of the results of finished runs.
const MAX_FINISHED_BYTES: usize = 64 << 20;
/// How long the result of a finished run is kept.
const LIFETIME: Duration = Duration::from_secs(600);
/// Bytes of randomness in an id.
const ID_BYTES: usize = 6;

/// An id that no other connection can guess.
pub(crate) fn new_id(prefix: &str) -> String {
    let mut bytes = [0_u8; ID_BYTES];
    // Ids are looked up within one connection, so an id that can be guessed reveals nothing.
    let _ = getrandom::fill(&mut bytes);
    format!("{prefix}{}", canonical::hex(&bytes))
}

struct Run {
    task: AbortHandle,
    finished: watch::Receiver<Option<Answer>>,
    since: Instant,
    kept: Arc<AtomicUsize>,
}

impl Run {
    fn is_finished(&self) -> bool {
        self.finished.borrow().is_some()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(answer) = self.finished.borrow().as_ref() {
            self.kept.fetch_sub(answer.bytes(), Ordering::Relaxed);
        }
    }
}

/// What takes a place while it runs. A question does not wait for programs that use up their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKind {
    Program,
    Question,
}

/// The runs of one connection. They are cancelled when it ends.
pub(crate) struct RunTable {
    runs: Mutex<BTreeMap<String, Run>>,
    programs: Arc<Semaphore>,
    questions: Arc<Semaphore>,
    /// Bytes of results that were not fetched yet.
    kept: Arc<AtomicUsize>,
}

impl Default for RunTable {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(MAX_RUNNING));
        Self { runs: Mutex::default(), programs: places(), questions: places(), kept: Arc::default() }
    }
}

/// How far a run has come.
pub(crate) enum Progress {
    Finished(Answer),
    /// It goes on under its handle.
    Running,
}

impl RunTable {
    /// Starts a run in the background and answers its handle.
    ///
    /// # Errors
    /// `EBUDGET` when too many runs are under way.
    pub(crate) fn start(
        &self,
        kind: RunKind,
        work: impl Future<Output = ToolResult> + Send + 'static,
    ) -> Result<String, ToolError> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut runs);
        if runs.values().filter(|run| !run.is_finished()).count() >= MAX_UNFINISHED {
            let message = format!("{MAX_UNFINISHED} runs of this connection are under way");
            return Err(ToolError::new(Code::Budget, message).help("wait for one of them, or cancel it"));
        }
        let (sender, finished) = watch::channel(None);
        let places = match kind {
            RunKind::Program => &self.programs,
            RunKind::Question => &self.questions,
        };
        let (places, kept) = (Arc::clone(places), Arc::clone(&self.kept));
        let task = tokio::spawn(async move {
            // Closed only with the connection, whose tasks are aborted anyway.
            let Ok(_place) = places.acquire().await else { return };
            let mut answer = Answer::new(work.await);
            if kept.load(Ordering::Relaxed).saturating_add(answer.bytes()) > MAX_FINISHED_BYTES {
                answer = Answer::new(ToolResult::Failed(not_kept()));
            }
            kept.fetch_add(answer.bytes(), Ordering::Relaxed);
            let _ = sender.send(Some(answer));
        });
        let id = new_id("r");
        let kept = Arc::clone(&self.kept);
        let run = Run { task: task.abort_handle(), finished, since: Instant::now(), kept };
        runs.insert(id.clone(), run);
        Ok(id)
    }

    /// Waits for a run up to `patience`. The result of a finished run is given once.
    ///
    /// # Errors
    /// `ENOTFOUND` for a run that is none of this connection; `ERUNTIME` for one that was cancelled.
    pub(crate) async fn wait(&self, id: &str, patience: Duration) -> Result<Progress, ToolError> {
        let mut finished = {
            let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.get(id).map(|run| run.finished.clone()).ok_or_else(|| unknown(id))?
        };
        let waited = tokio::time::timeout(patience, finished.wait_for(Option::is_some)).await;
        let answer = match waited {
            Err(_) => return Ok(Progress::Running),
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) => None,
        };
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        answer.map(Progress::Finished).ok_or_else(|| {
            ToolError::new(Code::Runtime, format!("the run `{id}` was cancelled"))
                .of_cancellation()
                .help("the resource `tgp://audit` shows how its calls ended")
        })
    }

    /// Cancels a run: its calls are rolled back where they have not taken effect, and recorded.
    ///
    /// # Errors
    /// `ENOTFOUND` for a run that is none of this connection.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), ToolError> {
        let run = self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        run.map(|run| run.task.abort()).ok_or_else(|| unknown(id))
    }

    /// Cancels every run: the host is gone.
    pub(crate) fn cancel_all(&self) {
        let runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        runs.values().for_each(|run| run.task.abort());
    }
}

impl Drop for RunTable {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

fn not_kept() -> ToolError {
    ToolError::new(
        Code::Budget,
        "the run has ended, and its result was not kept: too many results wait to be fetched",
    )
    .after_effect()
    .help("fetch results with `wait`; the resource `tgp://audit` shows how the run ended")
}

fn unknown(id: &str) -> ToolError {
    let id = tgp_text::head(id, 32);
    ToolError::new(Code::NotFound, format!("this connection has no run `{id}`")).help(
        "a result is given once, and kept for ten minutes; the resource `tgp://audit` shows how a run ended",
    )
}

/// Makes room: results that were not fetched in time go, and the oldest of too many.
fn forget_old(runs: &mut BTreeMap<String, Run>) {
    runs.retain(|_, run| !run.is_finished() || run.since.elapsed() < LIFETIME);
    while runs.values().filter(|run| run.is_finished()).count() > MAX_FINISHED {
        let finished = runs.iter().filter(|(_, run)| run.is_finished());
        let Some(oldest) = finished.min_by_key(|(_, run)| run.since).map(|(id, _)| id.clone()) else {
            return;
        };
        runs.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tgp_contract::{Code, ToolResult};

    use super::{MAX_UNFINISHED, Progress, RunKind, RunTable};

    const NOW: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_run_is_fetched_by_its_handle_once() {
        let runs = RunTable::default();
        let id = runs.start(RunKind::Program, async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            ToolResult::Done(json!(1))
        });
        let id = id.unwrap();
        assert!(matches!(runs.wait(&id, NOW).await, Ok(Progress::Running)));
        assert!(matches!(runs.wait(&id, Duration::from_secs(5)).await, Ok(Progress::Finished(_))));
        assert_eq!(runs.wait(&id, NOW).await.err().unwrap().code, Code::NotFound);
    }

    #[tokio::test]
    async fn runs_are_cancelled_and_their_number_is_bounded() {
        let runs = RunTable::default();
        let endless = || std::future::pending::<ToolResult>();
        let asked = runs.start(RunKind::Question, async { ToolResult::Done(json!(1)) }).unwrap();
        let ids: Vec<String> =
            (1..MAX_UNFINISHED).map(|_| runs.start(RunKind::Program, endless()).unwrap()).collect();
        assert_eq!(runs.start(RunKind::Program, endless()).unwrap_err().code, Code::Budget);
        // A question is answered beside them.
        assert!(matches!(runs.wait(&asked, Duration::from_secs(5)).await, Ok(Progress::Finished(_))));
        runs.start(RunKind::Program, endless()).unwrap();
        runs.cancel(&ids[0]).unwrap();
        assert_eq!(runs.cancel(&ids[0]).unwrap_err().code, Code::NotFound);
        runs.start(RunKind::Program, endless()).unwrap();
        runs.cancel_all();
        assert_eq!(runs.cancel(&ids[1]).unwrap_err().code, Code::NotFound);
    }
}
