//! Steps that are made of others: `map`, `when`, `query`, and `merge`, which is made of values alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

use super::block::{BlockCtx, Fault};
use super::bounds::{self, MAX_ITEMS, MAX_PARALLEL, MAX_VALUE_BYTES};
use super::evaluate::{evaluate, merge, truth};
use super::frame::{Frame, Inputs, Item, element_of};
use super::limiter::Limiter;
use super::meter::Meter;
use super::path::{Prefix, StepInstance};
use super::run::{Run, out_of_time};
use super::scope::Stopped;
use super::{RunEvent, ValueSource};
use crate::types::found;
use crate::{Expression, Kind, OnError, PlanBlock, QueryPlan, Step};

impl<'p> Run<'p> {
    /// A step that is made of others, or of values alone.
    pub(super) async fn composed(
        self: &Arc<Self>,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
    ) -> Result<Value, Fault> {
        if let Some(value) = self.history.of(&here.path).and_then(|earlier| earlier.value(None)) {
            self.tell(here.done(step, ValueSource::Kept, 0)).await;
            return Ok(value.clone());
        }
        let began = self.ports.world.now_ms();
        let kind = step.kind.name().to_owned();
        self.tell(RunEvent::Begun { step: here.path.clone(), kind: kind.clone(), attempt: 1 }).await;
        let value = match self.bounded(level, step, here).await {
            Ok(value) => value,
            Err(Fault::Stopped) => return Err(Fault::Stopped),
            Err(Fault::Failed(failure)) => {
                let error = failure.error.clone();
                let failed =
                    RunEvent::Failed { step: here.path.clone(), kind, attempt: 1, error, again: false };
                self.tell(failed).await;
                return Err(Fault::Failed(failure));
            }
        };
        let duration = self.ports.world.now_ms().saturating_sub(began);
        self.tell(here.done(step, ValueSource::Ran, duration)).await;
        Ok(value)
    }

    /// What is inside has its own scope where something may end it alone: its `timeout`, its `on_error`, its budget.
    async fn bounded(
        self: &Arc<Self>,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
    ) -> Result<Value, Fault> {
        let options = &step.options;
        let own_time = match &step.kind {
            Kind::Query { query, .. } => query.budget.time.map(|time| (query.name.as_str(), time)),
            _ => None,
        };
        let has_budget =
            matches!(&step.kind, Kind::Query { query, .. } if query.budget != crate::Budget::default());
        if options.timeout.is_none() && options.on_error == OnError::Fail && !has_budget {
            return self.inner(level, step, here).await;
        }
        let level = BlockCtx { scope: level.scope.inner(), ..level.clone() };
        let watch = async {
            let error = tokio::select! {
                biased;
                error = after(options.timeout, |time| timed_out(&here.path, time)) => error,
                error = after(own_time.map(|(_, time)| time), |time| out_of_time(own_time.map_or("", |(name, _)| name), time)) => error,
            };
            level.scope.fail_first(here.failure(step, error));
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            biased;
            outcome = self.inner(&level, step, here) => outcome,
            () = watch => Err(Fault::Stopped),
        };
        match (outcome, level.scope.failure()) {
            (Err(Fault::Stopped), Some(failure)) => Err(Fault::Failed(failure)),
            (outcome, _) => outcome,
        }
    }

    async fn inner(
        self: &Arc<Self>,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
    ) -> Result<Value, Fault> {
        let failed = |error: ToolError| Fault::Failed(here.failure(step, error));
        let value = match &step.kind {
            Kind::Merge { how, parts } => merge(*how, parts, &level.frame).map_err(failed)?,
            Kind::Map { list, concurrency, body } => {
                let items = items(list, &level.frame).map_err(failed)?;
                let ty = element_of(&level.frame.type_of(list));
                let item = |index, value| {
                    let item = Some(Item { value, ty: ty.clone() });
                    let frame = Frame::of_block(body, &level.frame, item);
                    BlockCtx { frame, prefix: here.item(index), ..level.clone() }
                };
                let most = (*concurrency).clamp(1, level.parallel);
                self.items(level, items, most, &item).await?.map_err(failed)?
            }
            Kind::When { condition, then, otherwise } => {
                let (block, prefix) = match (truth(condition, &level.frame).map_err(failed)?, otherwise) {
                    (true, _) => (Some(then), here.then()),
                    (false, otherwise) => (otherwise.as_ref(), here.otherwise()),
                };
                match block {
                    None => Value::Null,
                    Some(block) => self.inner_block(level.inside(block, prefix)).await?,
                }
            }
            Kind::Query { query, inputs } => {
                let level = self.nested(level, query, inputs, here).map_err(failed)?;
                self.inner_block(level).await?
            }
            _ => {
                return Err(failed(ToolError::new(
                    Code::Internal,
                    "a step with an effect came the wrong way",
                )));
            }
        };
        let Some(ty) = &step.checked else { return Ok(value) };
        ty.admit(value).map_err(|mismatch| {
            let error = ToolError::new(Code::Validation, format!("the value of `{}`: {mismatch}", here.path));
            failed(error.help("change what the step gives, or its type after `as`"))
        })
    }

    /// The blocks of a `map`, so many at once. The outer result is a stop, the inner one what is wrong with the list of
    /// their values.
    async fn items(
        self: &Arc<Self>,
        level: &BlockCtx<'p>,
        items: Vec<Value>,
        most: usize,
        start: &(dyn Fn(usize, Value) -> BlockCtx<'p> + Sync),
    ) -> Result<Result<Value, ToolError>, Stopped> {
        let count = items.len();
        let mut waiting: Vec<(usize, Value)> = items.into_iter().enumerate().collect();
        if self.options.shuffle.is_some() {
            let position = |index: usize| vec![u32::try_from(index).unwrap_or(u32::MAX)];
            waiting.sort_by_cached_key(|(index, _)| self.priority(position(*index)));
        }
        let mut waiting = waiting.into_iter();
        let mut values: Vec<Option<Value>> = vec![None; count];
        let (mut running, mut done, mut bytes) = (FuturesUnordered::new(), 0, 0);
        loop {
            // When their values are too many already, those that run come to their end and no other begins.
            while running.len() < most && bytes <= MAX_VALUE_BYTES && !level.scope.is_stopped() {
                // The first item of a map needs no room, so that no map waits for another one.
                let room = match running.is_empty() {
                    true => None,
                    false => match self.live_items.try_acquire() {
                        Ok(room) => Some(room),
                        Err(_) => break,
                    },
                };
                let Some((index, value)) = waiting.next() else { break };
                let block = self.inner_block(start(index, value));
                running.push(async move {
                    let outcome = block.await;
                    drop(room);
                    (index, outcome)
                });
            }
            match running.next().await {
                None => break,
                Some((_, Err(Stopped))) => {}
                Some((index, Ok(value))) => {
                    done += 1;
                    bytes += bounds::measure(&value).unwrap_or(MAX_VALUE_BYTES);
                    if let Some(slot) = values.get_mut(index) {
                        *slot = Some(value);
                    }
                }
            }
        }
        if bytes > MAX_VALUE_BYTES {
            return Ok(Err(bounds::too_large(bytes)));
        }
        if done < count {
            return Err(Stopped);
        }
        let list = Value::Array(values.into_iter().flatten().collect());
        Ok(bounds::check(&list).map(|_| list))
    }

    fn nested(
        &self,
        level: &BlockCtx<'p>,
        query: &'p Arc<QueryPlan>,
        given: &'p [(String, Expression)],
        here: &StepInstance,
    ) -> Result<BlockCtx<'p>, ToolError> {
        let mut values = Map::new();
        for (name, expression) in given {
            values.insert(name.clone(), evaluate(expression, &level.frame)?);
        }
        let inputs = Inputs::new(query, values)?;
        let budget = &query.budget;
        let meter = match (budget.calls, budget.tokens) {
            (None, None) => Arc::clone(&level.meter),
            _ => {
                let used = self.history.used_inside(&here.path);
                Meter::new(&query.name, budget, used, &level.scope, Some(Arc::clone(&level.meter)))
            }
        };
        let (mut limiters, mut parallel) = (level.limiters.clone(), level.parallel);
        if let Some(own) = budget.parallel {
            let own = own.clamp(1, MAX_PARALLEL);
            // Its own permit first: a step that holds one of the run's must be able to continue.
            limiters.insert(0, Limiter::new(own));
            parallel = parallel.min(own);
        }
        let (frame, prefix) = (Frame::of_query(&query.body, inputs), here.query());
        Ok(BlockCtx { frame, prefix, scope: Arc::clone(&level.scope), meter, limiters, parallel })
    }
}

impl<'p> BlockCtx<'p> {
    fn inside(&self, block: &'p PlanBlock, prefix: Prefix) -> Self {
        Self { frame: Frame::of_block(block, &self.frame, None), prefix, ..self.clone() }
    }
}

impl StepInstance {
    fn done(&self, step: &Step, how: ValueSource, duration_ms: u64) -> RunEvent {
        let (step, kind) = (self.path.clone(), step.kind.name().to_owned());
        RunEvent::Done { step, kind, how, duration_ms, tokens: 0, calls: 0 }
    }
}

fn items(list: &Expression, frame: &Frame<'_>) -> Result<Vec<Value>, ToolError> {
    match evaluate(list, frame)? {
        Value::Array(items) if items.len() <= MAX_ITEMS => Ok(items),
        Value::Array(items) => {
            let message = format!("a `map` takes at most {MAX_ITEMS} items, and these are {}", items.len());
            Err(ToolError::new(Code::Validation, message)
                .place(&list.place)
                .help("have the step before answer with fewer, or divide the work into several runs"))
        }
        other => {
            let message = format!("a `map` needs a list, found {}", found(&other));
            Err(ToolError::new(Code::Validation, message)
                .place(&list.place)
                .detail("found", found(&other))
                .help("say with `as` what the step before answers with"))
        }
    }
}

pub(super) fn timed_out(path: &str, time: Duration) -> ToolError {
    ToolError::new(Code::Runtime, format!("step `{path}` had not ended after {time:?}, and was cancelled"))
        .detail("timeoutMs", u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        .help("give it a longer `timeout`, or let it do less")
}

/// An error when the time is over, and nothing ever where there is none.
async fn after(time: Option<Duration>, error: impl FnOnce(Duration) -> ToolError) -> ToolError {
    match time {
        Some(time) => {
            tokio::time::sleep(time).await;
            error(time)
        }
        None => std::future::pending().await,
    }
}
