//! How far a call has come, and until when it can be rolled back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tgp_contract::{Approver, BeforeEffectHook, Code, Execution, Recorder, ToolCall, ToolError, ToolResult};
use tokio::sync::Notify;

use super::approval_run::{ApprovalRun, Permanence};
use super::waiting::ApprovalWait;

/// Shared by a call, by the holder that may cancel it, and by the place where it takes effect.
///
/// INVARIANT: of a cancellation and the point of no return one comes first, and the other is refused. So a call that
/// was cancelled has changed nothing that its record should name, on whichever thread its work continues.
#[derive(Default)]
pub(super) struct CallLifecycle {
    state: Mutex<State>,
    cancelled: Notify,
    witness: Option<BeforeEffectHook>,
    /// What keeps its record: nothing takes effect that could not be recorded. A call that outlives its kernel must not keep
    /// the recorder from writing its last records.
    recorder: Option<Weak<dyn Recorder>>,
    wait: Arc<ApprovalWait>,
    /// The run that it is or belongs to.
    run: Arc<ApprovalRun>,
    /// Its number among the calls of its outer call, after the number of that one; empty for an outermost call.
    position: Vec<u32>,
    /// Calls that it has made.
    inner_calls: AtomicU32,
}

impl std::fmt::Debug for CallLifecycle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Course").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    /// A cancellation was requested, in time or not.
    unwanted: bool,
    /// The tool began to run.
    started: bool,
    /// Something was done that no cancellation undoes.
    exposed: bool,
    /// Its answer comes from outside, where it may be another one next time.
    from_outside: bool,
    /// What it is, where a run with grants has made it.
    called: Option<(String, Value)>,
    /// Hashes of what an earlier answer of a person lets it do.
    granted: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing of it has taken effect.
    #[default]
    Open,
    /// It takes effect, or has; it continues to its end.
    Committing,
    /// It will not take effect any more.
    Cancelled,
}

impl CallLifecycle {
    /// The course of an outermost call, and what keeps its record.
    pub(super) fn new(
        witness: Option<BeforeEffectHook>,
        approver: &Arc<dyn Approver>,
        recorder: &Arc<dyn Recorder>,
    ) -> Self {
        let (recorder, run) = (Some(Arc::downgrade(recorder)), Arc::new(ApprovalRun::new(approver)));
        Self { witness, recorder, run, ..Self::default() }
    }

    /// The course of a call that this one makes while it runs. It is a part of its effect, and its approvals are waited
    /// for by both.
    fn inner(&self) -> Self {
        let wait = ApprovalWait::inside(Some(Arc::clone(&self.wait)));
        let (witness, recorder) = (self.witness.clone(), self.recorder.clone());
        let mut position = self.position.clone();
        position.push(self.inner_calls.fetch_add(1, Ordering::Relaxed));
        let run = Arc::clone(&self.run);
        Self { witness, recorder, wait: Arc::new(wait), run, position, ..Self::default() }
    }

    /// The run that it is or belongs to.
    pub(super) fn run(&self) -> &ApprovalRun {
        &self.run
    }

    fn is_outermost(&self) -> bool {
        self.position.is_empty()
    }

    /// The answer that an earlier attempt of the run has got for this call, when it cannot be made again.
    ///
    /// # Errors
    /// See [`ApprovalRun::answered`]; `EAPPROVAL` when the run waits for an answer already.
    pub(super) fn answered(&self, call: &ToolCall) -> Result<Option<ToolResult>, ToolError> {
        if self.is_outermost() {
            return Ok(None);
        }
        self.run.check()?;
        let answer = self.run.answered(&self.position, &call.tool, &call.arguments)?;
        if answer.is_none() && self.run.has_grants() {
            self.state().called = Some((call.tool.clone(), call.arguments.clone()));
        }
        Ok(answer)
    }

    /// An earlier answer of a person to what has this hash lets it continue.
    pub(super) fn grant(&self, hash: &str) {
        self.state().granted.push(hash.to_owned());
    }

    /// Whether it has done something that cannot be rolled back.
    pub(super) fn is_exposed(&self) -> bool {
        self.state().exposed
    }

    /// Its answer comes from outside.
    pub(super) fn reach_outside(&self) {
        self.state().from_outside = true;
    }

    /// Remembers the result of a call inside a run that cannot be rolled back, or could be another one next time.
    pub(super) fn remember(&self, call: &ToolCall, result: &ToolResult) {
        let permanence = match *self.state() {
            State { exposed: true, .. } => Permanence::Sent,
            State { from_outside: true, .. } => Permanence::Asked,
            State { .. } => return,
        };
        let has_asked = result.error().is_some_and(|error| error.code == Code::Approval);
        // A call that waits itself, such as a redirect that a rule asks about, is made after the answer.
        if self.is_outermost() || (permanence == Permanence::Asked && has_asked) {
            return;
        }
        let kept = self.run.journal(&self.position, &call.tool, &call.arguments, result, permanence);
        if let Err(error) = kept {
            tracing::warn!(target: "router", "{error}");
        }
    }

    /// Its result is known: of a call inside a run, what cannot be rolled back is remembered; an outermost call ends its run,
    /// unless a question of it waits, which is its result then.
    pub(super) fn settle(
        &self,
        call: &ToolCall,
        result: Result<Value, ToolError>,
    ) -> Result<Value, ToolError> {
        if !self.is_outermost() {
            let result = ToolResult::from(result);
            self.remember(call, &result);
            return result.into_result();
        }
        self.run.end(result)
    }

    /// The approvals that it waits for.
    pub(super) fn wait(&self) -> &Arc<ApprovalWait> {
        &self.wait
    }

    /// Something is about to happen that cannot be undone.
    pub(super) fn testify(&self) -> Result<(), ToolError> {
        if let Some(recorder) = &self.recorder {
            let ended = || ToolError::new(Code::Internal, "the kernel has ended, so nothing can be recorded");
            recorder.upgrade().ok_or_else(ended)?.check()?;
        }
        self.witness.as_ref().map_or(Ok(()), |witness| witness())
    }

    /// The same for something that comes before the point of no return, and stays whatever becomes of the call.
    pub(super) fn expose(&self) -> Result<(), ToolError> {
        self.run.check()?;
        self.testify()?;
        if let Some((tool, arguments)) = self.state().called.clone() {
            self.run.announce(&self.position, &tool, &arguments)?;
        }
        let granted = std::mem::take(&mut self.state().granted);
        for hash in granted {
            self.run.spend(&hash)?;
        }
        self.state().exposed = true;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rolls the call back, if that is possible. Returns whether it is.
    pub(super) fn cancel(&self) -> bool {
        let mut state = self.state();
        state.unwanted = true;
        if state.stage == Stage::Open {
            state.stage = Stage::Cancelled;
            self.cancelled.notify_one();
        }
        state.stage == Stage::Cancelled
    }

    /// Ends when the call was rolled back. One task at a time may wait for it.
    pub(super) async fn cancelled(&self) {
        while self.state().stage != Stage::Cancelled {
            self.cancelled.notified().await;
        }
    }

    fn commit(&self) -> bool {
        let mut state = self.state();
        if state.stage == Stage::Open {
            state.stage = Stage::Committing;
        }
        state.stage == Stage::Committing
    }

    /// The tool begins to run.
    pub(super) fn start(&self) {
        self.state().started = true;
    }

    /// How far the execution of a call went that ended with this result.
    pub(super) fn execution(&self, result: &ToolResult) -> Execution {
        match (self.state().started, result.error()) {
            (false, _) => Execution::NotStarted,
            (true, None) => Execution::Done,
            (true, Some(error)) if error.is_of_unknown_outcome() => Execution::Unknown,
            (true, Some(error)) if error.is_after_effect() => Execution::Done,
            (true, Some(_)) => Execution::RolledBack,
        }
    }

    /// How far the execution of a call went that did not end by itself: it was cancelled, or its runtime ended.
    fn interrupted(&self) -> Execution {
        let state = self.state();
        match (state.started, state.stage) {
            (false, _) => Execution::NotStarted,
            (true, Stage::Committing) => Execution::Unknown,
            (true, Stage::Open | Stage::Cancelled) if state.exposed => Execution::Unknown,
            (true, Stage::Open | Stage::Cancelled) => Execution::RolledBack,
        }
    }

    /// The call has ended, and is recorded as it did.
    pub(super) fn end(&self) {
        self.commit();
    }

    /// The result of a call that did not end by itself. Only the end of its runtime can interrupt one that
    /// takes effect; what a call has sent before is out of reach of both.
    pub(super) fn broken_off(&self) -> (ToolError, Execution) {
        let execution = self.interrupted();
        if execution != Execution::Unknown {
            return (cancelled(), execution);
        }
        let message = if self.state().stage == Stage::Committing {
            "the kernel ended while the call took effect: what it has changed is not known"
        } else {
            "the call was cancelled after it had sent something: what that has changed is not known"
        };
        let error = ToolError::new(Code::Runtime, message)
            .of_unknown_outcome()
            .help("look at what it would have changed before you make it again");
        (error, execution)
    }

    /// It did not take effect after all, and is tried again: a wish that came too late comes in time now.
    pub(super) fn reopen(&self) {
        let mut state = self.state();
        if state.stage == Stage::Committing {
            state.stage = if state.unwanted { Stage::Cancelled } else { Stage::Open };
            if state.unwanted {
                self.cancelled.notify_one();
            }
        }
    }
}

/// Where a call begins to take effect. Before it a caller that goes away rolls the call back; after it the call is
/// carried out and recorded, even if no caller waits for it.
#[derive(Clone, Debug)]
pub struct PointOfNoReturn(pub(super) Arc<CallLifecycle>);

impl PointOfNoReturn {
    /// To be called right before the effect, by the code that causes it, when nothing can refuse it any more.
    ///
    /// # Errors
    /// When the call was cancelled before, its record could not be kept, its witness failed, or its run waits for an
    /// approval; then it must not take effect.
    pub fn commit(&self) -> Result<(), ToolError> {
        self.pass_unseen()?;
        self.0.testify()?;
        if self.0.is_outermost() { self.0.run.finish() } else { Ok(()) }
    }

    /// The same for a call that turns out to change nothing.
    ///
    /// # Errors
    /// When the call was cancelled before, or its run waits for an approval.
    pub fn pass_unseen(&self) -> Result<(), ToolError> {
        self.0.run.check()?;
        if self.0.commit() { Ok(()) } else { Err(cancelled()) }
    }
}

/// A running call, for the calls that it makes.
#[derive(Clone, Debug)]
pub struct OuterCall(pub(super) Arc<CallLifecycle>);

impl OuterCall {
    /// How long it has waited for approvals, its own and those of calls inside it.
    pub fn waited(&self) -> Duration {
        self.0.wait.total()
    }

    /// The place of the next call that it makes. Places are given in the order in which the calls are wanted, whatever they
    /// wait for afterwards: a run that starts again finds its earlier calls by it.
    #[must_use]
    pub fn next_call(&self) -> InnerCall {
        InnerCall(Arc::new(self.0.inner()))
    }
}

/// The place of a call inside another one.
#[derive(Debug)]
pub struct InnerCall(pub(super) Arc<CallLifecycle>);

/// The error of a call that was rolled back. `details.cancelled` distinguishes it from one that failed by
/// itself.
fn cancelled() -> ToolError {
    ToolError::new(Code::Runtime, "the call was cancelled before it ended").of_cancellation()
}

#[cfg(test)]
#[path = "lifecycle_tests.rs"]
mod tests;
