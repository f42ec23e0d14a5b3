//! A step with an effect: what is known of it, its attempts, and the lines that are kept of them.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tgp_contract::{BudgetUsage, CapabilityToken, Code, SharedBudget, ToolError};
use tokio::sync::OwnedMutexGuard;

use super::block::{BlockCtx, Fault};
use super::limiter::Permit;
use super::meter::Exhausted;
use super::path::StepInstance;
use super::request::Request;
use super::run::{Run, finished};
use super::scope::{Failure, Stopped};
use super::work::Attempt;
use super::{AttemptScope, JournalLine, RunEvent, ValueSource};
use crate::{Kind, QueryType, Step};

/// The pause before the second attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Keys of cached values that are worked on, before those no longer in use are dropped.
const MAX_IDLE_SINGLE_FLIGHTS: usize = 1_024;

/// What an attempt has come to.
pub(super) struct AttemptResult {
    pub(super) result: Result<Value, AttemptError>,
    /// Whether it may have changed something outside.
    pub(super) has_effect: bool,
}

/// Why an attempt gave no value.
pub(super) struct AttemptError {
    pub(super) error: ToolError,
    pub(super) kind: AttemptErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptErrorKind {
    /// The call failed by itself, and has changed nothing.
    Failed,
    /// There was a value, and it does not fit its type.
    Misfit,
    /// There was a value that cannot be used, of whatever type.
    Unusable,
    /// It took too long and was rolled back.
    TimedOut,
    /// The run, or the part of it, was stopped.
    Cancelled,
    /// It was abandoned, and its effect is unknown.
    Unknown,
}

impl<'p> Run<'p> {
    pub(super) async fn effect(
        &self,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
    ) -> Result<Value, Fault> {
        let earlier = self.history.of(&here.path);
        if let Some(value) = earlier.and_then(|earlier| earlier.value(kept_type(step))) {
            self.count_value(ValueSource::Kept);
            self.tell(done(here, step, ValueSource::Kept, 0, BudgetUsage::default())).await;
            return Ok(value.clone());
        }
        if let Some(error) = earlier.and_then(|earlier| earlier.unusable())
            && !self.may_repeat(&here.path)
        {
            return Err(self.never_begun(step, here, error.clone()).await);
        }
        let began = self.ports.world.now_ms();
        let request = match self.request(level, step, here) {
            Ok(request) => request,
            Err(error) => return Err(self.never_begun(step, here, error).await),
        };
        let key = match step.options.cache {
            true => tokio::select! {
                biased;
                () = level.scope.stopped() => return Err(Fault::Stopped),
                key = self.cache_key(step, &request) => key,
            },
            false => None,
        };
        let single_flight = self.single_flight(level, key.as_deref()).await?;
        if let Some(value) = key.as_deref().and_then(|key| self.cached(key, step)) {
            let line = JournalLine::Done {
                step: here.path.clone(),
                value: value.clone(),
                tokens: 0,
                calls: 0,
                cached: true,
                worked_ms: self.worked_ms(),
            };
            self.keep(&line, &here.path)?;
            self.count_value(ValueSource::Cached);
            self.tell(done(here, step, ValueSource::Cached, 0, BudgetUsage::default())).await;
            return Ok(value);
        }
        let (value, used, has_effect) = self.attempts(level, step, here, &request).await?;
        // The effect and the value are recorded separately, and the next run needs both. A resumed agent may
        // already have had its effect.
        let goes_on = matches!(request, Request::Agent(_)) && earlier.is_some_and(|known| known.attempts > 0);
        if let Some(key) = key.as_deref().filter(|_| !has_effect && !goes_on) {
            self.ports.cache.put(key, &value);
        }
        drop(single_flight);
        self.count_value(ValueSource::Ran);
        let duration = self.ports.world.now_ms().saturating_sub(began);
        self.tell(done(here, step, ValueSource::Ran, duration, used)).await;
        Ok(value)
    }

    /// Attempts until one gives a value, or none can. Answers also with what all have used, and whether one may have
    /// changed something.
    async fn attempts(
        &self,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
        request: &Request,
    ) -> Result<(Value, BudgetUsage, bool), Fault> {
        let earlier = self.history.of(&here.path);
        let mut attempt = earlier.map_or(0, |earlier| earlier.attempts);
        let mut last =
            earlier.and_then(|earlier| earlier.call.clone().map(|call| (call, earlier.has_misfit)));
        let mut pauses = 0;
        let (mut all, mut has_effect) = (BudgetUsage::default(), false);
        loop {
            attempt = attempt.saturating_add(1);
            let limiters = self.places(level, here).await?;
            let call = request.call_id(&here.path, attempt, last.as_ref());
            let token = match self.token(request, here, &call) {
                Ok(token) => token,
                Err(error) => return Err(self.never_begun(step, here, error).await),
            };
            let part = level.meter.part(&here.path);
            self.reserve(level, step, here, request, &part)?;
            let kind = step.kind.name().to_owned();
            self.keep(
                &JournalLine::Begun { step: here.path.clone(), attempt, call: call.clone() },
                &here.path,
            )?;
            self.tell(RunEvent::Begun { step: here.path.clone(), kind: kind.clone(), attempt }).await;
            let one = Attempt { step, here, request, call: &call, number: attempt, token, part: &part };
            let came = self.attempt(level, one).await.map_err(|error| self.unkept(error, &here.path))?;
            has_effect |= came.has_effect;
            let used = part.spent();
            all.tokens = all.tokens.saturating_add(used.tokens);
            all.calls = all.calls.saturating_add(used.calls);
            // Whatever an agent has said, it could not do what it wanted to.
            let exhausted = level.meter.refused(&part);
            let result = match &exhausted {
                Some(Exhausted { error, .. }) => {
                    Err(AttemptError { error: error.clone(), kind: AttemptErrorKind::Failed })
                }
                None => came.result,
            };
            let miss = match result {
                Ok(value) => {
                    let line = JournalLine::Done {
                        step: here.path.clone(),
                        value: value.clone(),
                        tokens: used.tokens,
                        calls: used.calls,
                        cached: false,
                        worked_ms: self.worked_ms(),
                    };
                    self.keep(&line, &here.path)?;
                    return Ok((value, all, has_effect));
                }
                Err(miss) => miss,
            };
            let happened =
                came.has_effect && matches!(miss.kind, AttemptErrorKind::Misfit | AttemptErrorKind::Unusable);
            let error = if happened { unusable(miss.error, &here.path) } else { miss.error };
            let error = finished(error, &here.path, step);
            // Of a call whose end is not known the journal must not say that it has failed.
            if miss.kind != AttemptErrorKind::Unknown {
                let line = JournalLine::Failed {
                    step: here.path.clone(),
                    attempt,
                    error: error.clone(),
                    tokens: used.tokens,
                    calls: used.calls,
                    happened,
                };
                self.keep(&line, &here.path)?;
            }
            let again = pauses < step.options.retry
                && !happened
                && !level.scope.is_stopped()
                && self.can_help(miss.kind, &error, step);
            let failed =
                RunEvent::Failed { step: here.path.clone(), kind, attempt, error: error.clone(), again };
            self.tell(failed).await;
            drop(limiters);
            if let Some(Exhausted { scope, .. }) = exhausted {
                scope.fail(here.failure(step, error));
                return Err(Fault::Stopped);
            }
            if miss.kind == AttemptErrorKind::Cancelled
                || (miss.kind == AttemptErrorKind::Unknown && level.scope.is_stopped())
            {
                return Err(Fault::Stopped);
            }
            if !again {
                let (position, step) = (here.position.clone(), Some(here.path.clone()));
                return Err(Fault::Failed(Failure { position, step, error }));
            }
            last = Some((call, miss.kind == AttemptErrorKind::Misfit));
            tokio::select! {
                biased;
                () = level.scope.stopped() => return Err(Fault::Stopped),
                () = tokio::time::sleep(pause(pauses)) => {}
            }
            pauses += 1;
        }
    }

    /// A place for one attempt, in the order of the query.
    async fn places(&self, level: &BlockCtx<'p>, here: &StepInstance) -> Result<Vec<Permit>, Fault> {
        let all = async {
            let mut places = Vec::with_capacity(level.limiters.len());
            for limiters in &level.limiters {
                places.push(limiters.take(self.priority(here.position.clone())).await);
            }
            places
        };
        let places = tokio::select! {
            biased;
            () = level.scope.stopped() => return Err(Fault::Stopped),
            places = all => places,
        };
        Ok(places)
    }

    /// Counts the call of an attempt. An agent's are counted when it makes them.
    fn reserve(
        &self,
        level: &BlockCtx<'p>,
        step: &Step,
        here: &StepInstance,
        request: &Request,
        part: &SharedBudget,
    ) -> Result<(), Stopped> {
        let reserved = match request {
            Request::Call { .. } => part.take_call(),
            Request::Agent(_) => part.begin_turn(),
        };
        reserved.map_err(|error| {
            let scope = level.meter.refused(part).map_or_else(|| Arc::clone(&self.root), |one| one.scope);
            scope.fail(here.failure(step, error));
            Stopped
        })
    }

    fn token(
        &self,
        request: &Request,
        here: &StepInstance,
        call: &str,
    ) -> Result<Option<CapabilityToken>, ToolError> {
        let (tools, session) = match request {
            Request::Call { tool, .. } => (vec![tool.clone()], self.options.id.clone()),
            Request::Agent(task) => (task.tools.clone(), call.to_owned()),
        };
        self.ports.tokens.attenuated(&AttemptScope { step: here.path.clone(), tools, session })
    }

    /// A step that failed before anything of it has begun.
    async fn never_begun(&self, step: &Step, here: &StepInstance, error: ToolError) -> Fault {
        let kind = step.kind.name().to_owned();
        let attempt = self.history.of(&here.path).map_or(0, |earlier| earlier.attempts).saturating_add(1);
        let failure = here.failure(step, error);
        self.tell(RunEvent::Begun { step: here.path.clone(), kind: kind.clone(), attempt }).await;
        let error = failure.error.clone();
        self.tell(RunEvent::Failed { step: here.path.clone(), kind, attempt, error, again: false }).await;
        Fault::Failed(failure)
    }

    /// Waits for the step that computes the same cached value: both must end with one value, however fast
    /// they are.
    async fn single_flight(
        &self,
        level: &BlockCtx<'p>,
        key: Option<&str>,
    ) -> Result<Option<OwnedMutexGuard<()>>, Fault> {
        let Some(key) = key else { return Ok(None) };
        let single_flight = {
            let mut single_flights = self.single_flights.lock().unwrap_or_else(PoisonError::into_inner);
            match single_flights.get(key).and_then(std::sync::Weak::upgrade) {
                Some(single_flight) => single_flight,
                None => {
                    if single_flights.len() >= MAX_IDLE_SINGLE_FLIGHTS {
                        single_flights.retain(|_, single_flight| single_flight.strong_count() > 0);
                    }
                    let single_flight = Arc::new(tokio::sync::Mutex::new(()));
                    single_flights.insert(key.to_owned(), Arc::downgrade(&single_flight));
                    single_flight
                }
            }
        };
        tokio::select! {
            biased;
            () = level.scope.stopped() => Err(Fault::Stopped),
            guard = single_flight.lock_owned() => Ok(Some(guard)),
        }
    }

    fn cached(&self, key: &str, step: &Step) -> Option<Value> {
        let fits = |value: &Value| {
            super::bounds::check(value).is_ok() && kept_type(step).is_none_or(|ty| ty.check(value).is_ok())
        };
        self.ports.cache.get(key).filter(fits)
    }

    /// Whether another attempt can come to something else.
    fn can_help(&self, kind: AttemptErrorKind, error: &ToolError, step: &Step) -> bool {
        match kind {
            AttemptErrorKind::Cancelled | AttemptErrorKind::Unusable => false,
            AttemptErrorKind::Misfit | AttemptErrorKind::TimedOut => true,
            // What may have happened is not made twice.
            AttemptErrorKind::Unknown => self.only_reads(step),
            AttemptErrorKind::Failed => !matches!(
                error.code,
                Code::Validation
                    | Code::Policy
                    | Code::State
                    | Code::Approval
                    | Code::Halt
                    | Code::Permission
                    | Code::Security
                    | Code::Capability
                    | Code::Config
                    | Code::Budget
                    | Code::Integrity
                    | Code::Pin
                    | Code::NotFound
                    | Code::Compile
            ),
        }
    }
}

/// What a value of an earlier run is checked against.
fn kept_type(step: &Step) -> Option<&QueryType> {
    match (&step.checked, &step.kind) {
        (Some(ty), _) => Some(ty),
        (None, Kind::Agent(_)) => Some(&QueryType::String),
        (None, _) => None,
    }
}

/// A value that cannot be used, of a step that was carried out.
fn unusable(error: ToolError, path: &str) -> ToolError {
    error.help(format!(
        "it was carried out and is not made again: begin a new run that takes its value, or allow it once more with `--again {path}`"
    ))
}

fn done(here: &StepInstance, step: &Step, how: ValueSource, duration_ms: u64, used: BudgetUsage) -> RunEvent {
    let (step, kind) = (here.path.clone(), step.kind.name().to_owned());
    RunEvent::Done { step, kind, how, duration_ms, tokens: used.tokens, calls: used.calls }
}

fn pause(earlier: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(earlier)).min(LONGEST_PAUSE)
}
