//! Actions that are carried out: each at most once, those of one persona one after the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tgp_contract::{Cancellation, Code, FileEffect, Root, ToolError};
use tgp_text::truncate;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use crate::decide::{MAX_CHAIN, tell_outcome};
use crate::engine::{Core, blocking};
use crate::failure::Failure;
use crate::journal::{Which, Work};
use crate::outlet::EventSink;
use crate::tree::{ContentError, Hashing};
use crate::{Action, ActionFailure, ActionReport, ActionState, Actions, Trigger, ValveEvent};

/// Personas whose actions are carried out at once. Each may be an agent or a worker process.
const MAX_RUNNING: usize = 4;
/// Characters of a summary or message in an event.
const MAX_TOLD: usize = 2_000;
/// Files of one report that are remembered as its work.
const MAX_FILES: usize = 10_000;
/// How long an action may take to end after it was asked to. After that it counts as interrupted.
const END_WAIT: Duration = Duration::from_secs(10);

/// The detail of an error, and the field of an outcome, that says how long an action was allowed to take.
const TIMEOUT: &str = "timeoutMs";

type Ended = Result<ActionReport, ActionFailure>;
/// The end of a task, or how it broke off.
pub(crate) type Joined = Result<(Id, Ended), JoinError>;

/// Begins actions and waits for them.
pub(crate) struct Runner {
    tasks: JoinSet<Ended>,
    running: HashMap<Id, Trigger>,
    stop: watch::Sender<bool>,
}

/// What is decided about an action that waited.
enum Verdict {
    /// With the number of actions before it, of which some may not have been known when its trigger was found, and with
    /// the time that it may take.
    Begin(u32, Action, Duration),
    Suppress(&'static str),
}

impl Runner {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), running: HashMap::new(), stop: watch::Sender::new(false) }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The numbers of the actions that are carried out now.
    pub(crate) fn suspects(&self) -> Vec<u64> {
        self.running.values().map(|trigger| trigger.sequence).collect()
    }

    /// An action that was running when the process ended is not started again; its result is reported as
    /// unknown.
    pub(crate) async fn recover(core: &Arc<Core>, outlet: &mut EventSink) -> Result<(), Failure> {
        let works = blocking(core, |core| core.transact(|ledger| ledger.works(Which::Begun))).await?;
        for work in works {
            interrupt(core, outlet, work.trigger).await?;
        }
        Ok(())
    }

    /// Begins what can be begun now.
    pub(crate) async fn start(&mut self, core: &Arc<Core>, outlet: &mut EventSink) -> Result<(), Failure> {
        loop {
            if self.running.len() >= MAX_RUNNING {
                return Ok(());
            }
            let works = blocking(core, |core| core.transact(|ledger| ledger.works(Which::Next))).await?;
            let Some(work) = works.into_iter().find(|work| self.may_begin(work)) else { return Ok(()) };
            let Work { trigger, suspects } = work;
            let (asked, mut trigger) =
                blocking(core, move |core| Ok((judge(core, &trigger, &suspects)?, trigger))).await?;
            let (action, timeout) = match asked {
                Verdict::Begin(depth, action, timeout) => {
                    trigger.depth = depth;
                    (action, timeout)
                }
                Verdict::Suppress(reason) => {
                    outlet.send(done(&trigger, Err(None), Some(reason))).await;
                    continue;
                }
            };
            outlet.send(ValveEvent::from(&trigger)).await;
            let (actions, stop) = (Arc::clone(&core.actions), self.stop.subscribe());
            let given = trigger.clone();
            let bounded = async move { act(&*actions, &action, &given, timeout, stop).await };
            let handle = self.tasks.spawn(bounded);
            self.running.insert(handle.id(), trigger);
        }
    }

    /// An action waits for its persona, and for those that may have caused it: only their reports show
    /// whether they did.
    fn may_begin(&self, work: &Work) -> bool {
        !self.running.values().any(|running| {
            running.persona == work.trigger.persona || work.suspects.contains(&running.sequence)
        })
    }

    /// Waits for the end of one action; forever when there is none.
    pub(crate) async fn ended(&mut self) -> Joined {
        match self.tasks.join_next_with_id().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    /// Writes down how one ended.
    pub(crate) async fn finish(
        &mut self,
        core: &Arc<Core>,
        outlet: &mut EventSink,
        ended: Joined,
    ) -> Result<(), Failure> {
        let (id, ended) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let failed = ToolError::new(Code::Internal, format!("the action broke off: {error}"))
                    .help("report this with the persona's action");
                (error.id(), Err(failed.into()))
            }
        };
        let Some(trigger) = self.running.remove(&id) else { return Ok(()) };
        let told = done(&trigger, ended.as_ref().map_err(|failure| Some(failure.error.as_ref())), None);
        blocking(core, move |core| write_down(core, &trigger, &ended)).await?;
        outlet.send(told).await;
        Ok(())
    }

    /// Asks all to end, and waits for them for a while.
    pub(crate) async fn end(mut self, core: &Arc<Core>, outlet: &mut EventSink) -> Result<(), Failure> {
        self.stop.send_replace(true);
        let limit = tokio::time::Instant::now() + END_WAIT;
        while !self.is_idle() {
            match tokio::time::timeout_at(limit, self.ended()).await {
                Ok(ended) => self.finish(core, outlet, ended).await?,
                Err(_) => break,
            }
        }
        self.tasks.abort_all();
        for (_, trigger) in self.running.drain() {
            interrupt(core, outlet, trigger).await?;
        }
        Ok(())
    }
}

/// Carries out one action. When its time is over it is asked to end, and when it does not, it is dropped.
async fn act(
    actions: &dyn Actions,
    action: &Action,
    trigger: &Trigger,
    timeout: Duration,
    mut stop: watch::Receiver<bool>,
) -> Ended {
    let is_late = AtomicBool::new(false);
    let cancelled: Cancellation<'_> = Box::pin(async {
        tokio::select! {
            _ = stop.wait_for(|is_wanted| *is_wanted) => {}
            () = tokio::time::sleep(timeout) => is_late.store(true, Ordering::Relaxed),
        }
    });
    // For its ending it has no longer than for all of it.
    let limit = timeout.saturating_add(timeout.min(END_WAIT));
    let ended = tokio::time::timeout(limit, actions.act(action, trigger, cancelled)).await;
    let files = match ended {
        Ok(Err(failure)) if is_late.load(Ordering::Relaxed) => failure.files,
        Ok(ended) => return ended,
        Err(_) => Vec::new(),
    };
    let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let error = ToolError::new(Code::Runtime, format!("the action took longer than {milliseconds} ms"))
        .help("give the persona a longer `timeout`, at most `24h`, or less to do")
        .detail(TIMEOUT, milliseconds);
    Err(ActionFailure { files, timeout_ms: Some(milliseconds), ..error.into() })
}

/// Decides whether an action is still to be begun, and writes the decision down.
fn judge(core: &Core, trigger: &Trigger, suspects: &[u64]) -> Result<Verdict, Failure> {
    let now_ms = core.now_ms();
    // The file of personas may have changed while it waited, and decides.
    let personas = core.personas();
    let persona = personas.iter().find(|persona| persona.name == trigger.persona);
    let is_over = !suspects.is_empty() && left_behind(core, trigger).is_some();
    core.transact(|ledger| {
        let made = match ledger.made(&trigger.file_path, trigger.after.as_deref())? {
            Some(made) => Some(made),
            // An action that writes a file twice reports what it left. The first is its own too, when it is over by now.
            None if is_over => ledger.made_by(&trigger.file_path, suspects)?,
            None => None,
        };
        let depth = made.as_ref().map_or(0, |made| made.depth.saturating_add(1)).max(trigger.depth);
        let is_own = made.as_ref().is_some_and(|made| made.persona == trigger.persona);
        let reason = match persona.filter(|persona| persona.action != Action::Record) {
            None => "gone",
            Some(_) if is_own => "own",
            Some(_) if made.is_some() && depth >= MAX_CHAIN => "chain",
            Some(_) if !ledger.keeps_pace(trigger, now_ms)? => "pace",
            Some(persona) => {
                ledger.begin_work(trigger.sequence)?;
                return Ok(Verdict::Begin(depth, persona.action.clone(), persona.timeout));
            }
        };
        ledger.end_work(trigger.sequence, ActionState::Suppressed, Some(reason))?;
        let outcome = Map::from_iter([
            ("ok".to_owned(), Value::from(false)),
            ("suppressed".to_owned(), Value::from(reason)),
        ]);
        tell_outcome(ledger, trigger, outcome, now_ms)?;
        Ok(Verdict::Suppress(reason))
    })
}

fn write_down(core: &Core, trigger: &Trigger, ended: &Ended) -> Result<(), Failure> {
    let now_ms = core.now_ms();
    let own = if ended.is_err() { left_behind(core, trigger) } else { None };
    core.transact(|ledger| {
        let mut outcome = Map::new();
        outcome.insert("ok".to_owned(), ended.is_ok().into());
        let files = files_of(ended);
        for effect in files.iter().filter(|effect| effect.root == Root::Project).take(MAX_FILES) {
            ledger.put_made(&effect.path, effect.after.as_deref(), trigger)?;
        }
        if let Some(content) = &own {
            ledger.put_made(&trigger.file_path, content.as_deref(), trigger)?;
        }
        ledger.forget_old_made()?;
        match ended {
            Ok(report) => {
                ledger.end_work(trigger.sequence, ActionState::Done, None)?;
                outcome.insert("message".to_owned(), truncate(&report.summary, MAX_TOLD).into_owned().into());
            }
            Err(ActionFailure { error, timeout_ms, .. }) => {
                let message = truncate(&error.message, MAX_TOLD).into_owned();
                ledger.end_work(trigger.sequence, ActionState::Failed, Some(&message))?;
                outcome.insert("code".to_owned(), error.code.as_str().into());
                outcome.insert("message".to_owned(), message.into());
                outcome.extend(timeout_ms.map(|milliseconds| (TIMEOUT.to_owned(), milliseconds.into())));
            }
        }
        tell_outcome(ledger, trigger, outcome, now_ms)
    })
}

/// The files that an action has changed, also where it has failed after that.
fn files_of(ended: &Ended) -> &[FileEffect] {
    match ended {
        Ok(report) => &report.files,
        Err(failure) => &failure.files,
    }
}

/// What is in the file of a trigger now, where that is another content. An action that has failed or was interrupted did
/// not say that it has changed this file, and would be woken by it forever.
fn left_behind(core: &Core, trigger: &Trigger) -> Option<Option<String>> {
    let never = AtomicBool::new(false);
    let content = match Hashing::new(&core.tree, &never, false).read(&trigger.file_path) {
        Ok(content) => Some(content.sha256),
        Err(ContentError::Vanished) => None,
        Err(ContentError::Unreadable(_) | ContentError::Stopped) => return None,
    };
    (content != trigger.after).then_some(content)
}

async fn interrupt(core: &Arc<Core>, outlet: &mut EventSink, trigger: Trigger) -> Result<(), Failure> {
    let error = ToolError::new(Code::Internal, "the valve ended while the action was carried out").help(
        "look at what it has done, and repeat it by hand where that is right; it is not repeated by itself",
    );
    let told = done(&trigger, Err(Some(&error)), None);
    let message = error.message;
    blocking(core, move |core| {
        let now_ms = core.now_ms();
        let own = left_behind(core, &trigger);
        core.transact(|ledger| {
            if let Some(content) = &own {
                ledger.put_made(&trigger.file_path, content.as_deref(), &trigger)?;
            }
            ledger.end_work(trigger.sequence, ActionState::Interrupted, Some(&message))?;
            let outcome = Map::from_iter([
                ("ok".to_owned(), Value::from(false)),
                ("code".to_owned(), Value::from(Code::Internal.as_str())),
                ("message".to_owned(), Value::from(message.as_str())),
                ("interrupted".to_owned(), Value::from(true)),
            ]);
            tell_outcome(ledger, &trigger, outcome, now_ms)
        })
    })
    .await?;
    outlet.send(told).await;
    Ok(())
}

fn done(
    trigger: &Trigger,
    ended: Result<&ActionReport, Option<&ToolError>>,
    suppressed: Option<&str>,
) -> ValveEvent {
    let report = ended.ok().cloned().unwrap_or_default();
    ValveEvent::ActionDone {
        persona: trigger.persona.clone(),
        file_path: trigger.file_path.clone(),
        trigger: trigger.event_id.clone(),
        ok: ended.is_ok(),
        summary: truncate(&report.summary, MAX_TOLD).into_owned(),
        files: report.files,
        error: ended.err().flatten().cloned(),
        suppressed: suppressed.map(str::to_owned),
    }
}
