//! Blocks: their steps run when what they need is there, and blocks inside steps are run the same way.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

use super::bounds::{self, MAX_ITEMS, MAX_PARALLEL, MAX_VALUE_BYTES};
use super::evaluate::{evaluate, merge, truth};
use super::frame::{Frame, Inputs, Item, element_of};
use super::meter::Meter;
use super::path::{Here, Prefix, kind_name};
use super::run::{Run, finished, out_of_time};
use super::scope::{Failure, Position, Scope, Stopped};
use super::slots::{Rank, Slots};
use super::{How, Line, RunEvent};
use crate::types::found;
use crate::{Block, Expression, Kind, OnError, Plan, Step};

/// A block on its way, and everything that holds for its steps.
#[derive(Clone)]
pub(super) struct Level<'p> {
    pub(super) frame: Arc<Frame<'p>>,
    pub(super) prefix: Prefix,
    pub(super) scope: Arc<Scope>,
    pub(super) meter: Arc<Meter>,
    /// A step with an effect needs a place in each: that of the run, and those of queries with a bound of their own.
    pub(super) slots: Vec<Arc<Slots>>,
    /// The smallest number of places among them; more items at once would only wait.
    pub(super) parallel: usize,
}

/// Why a step has no value.
pub(super) enum Fault {
    /// It failed, or something in it did; its `on_error` can help.
    Failed(Failure),
    /// Its scope was stopped, and knows why.
    Stopped,
}

impl From<Stopped> for Fault {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

pub(super) type Boxed<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

impl<'p> Run<'p> {
    /// Runs the steps of a block, and answers with its value.
    pub(super) fn block<'r>(&'r self, level: Level<'p>) -> Boxed<'r, Result<Value, Stopped>>
    where
        'p: 'r,
    {
        Box::pin(async move {
            let block = level.frame.block;
            let mut waits: Vec<usize> = block.steps.iter().map(|step| step.needs.len()).collect();
            let mut ready: Vec<usize> =
                (0..block.steps.len()).filter(|index| waits.get(*index) == Some(&0)).collect();
            let mut running = FuturesUnordered::new();
            let mut done = 0;
            loop {
                ready.sort_by_cached_key(|index| self.rank(level.prefix.step(*index, "").position));
                for index in ready.drain(..) {
                    if let Some(step) = block.steps.get(index).filter(|_| !level.scope.is_stopped()) {
                        running.push(self.step(level.clone(), index, step));
                    }
                }
                match running.next().await {
                    None => break,
                    Some(Err(Stopped)) => {}
                    Some(Ok(index)) => {
                        done += 1;
                        for (other, step) in block.steps.iter().enumerate() {
                            if step.needs.binary_search(&index).is_ok()
                                && let Some(left) = waits.get_mut(other)
                            {
                                *left -= 1;
                                if *left == 0 {
                                    ready.push(other);
                                }
                            }
                        }
                    }
                }
            }
            drop(running);
            if done < block.steps.len() {
                return Err(Stopped);
            }
            evaluate(&block.value, &level.frame).map_err(|error| {
                let step = level.prefix.owner().map(str::to_owned);
                let error = match &step {
                    Some(path) => error.detail("step", path.clone()),
                    None => error,
                };
                level.scope.fail(Failure { position: level.prefix.end(), step, error });
                Stopped
            })
        })
    }

    /// Who comes first when there is not room for all.
    pub(super) fn rank(&self, position: Position) -> Rank {
        let drawn = self.options.shuffle.map_or(0, |seed| {
            let mut hasher = DefaultHasher::new();
            (seed, &position).hash(&mut hasher);
            hasher.finish()
        });
        (drawn, position)
    }

    /// Runs one step of any kind. Its value is in the frame when this answers with its number.
    fn step<'r>(&'r self, level: Level<'p>, index: usize, step: &'p Step) -> Boxed<'r, Result<usize, Stopped>>
    where
        'p: 'r,
    {
        Box::pin(async move {
            let here = level.prefix.step(index, &step.name);
            if let Err(error) = self.count_step() {
                let error = finished(error, &here.path, step);
                self.root.fail(Failure { position: here.position, step: Some(here.path), error });
                return Err(Stopped);
            }
            let value = match self.value_of(&level, step, &here).await {
                Ok(value) => value,
                Err(Fault::Stopped) => return Err(Stopped),
                Err(Fault::Failed(failure)) => self.excused(&level, step, &here, failure).await?,
            };
            level.frame.set(index, value);
            Ok(index)
        })
    }

    async fn value_of(&self, level: &Level<'p>, step: &'p Step, here: &Here) -> Result<Value, Fault> {
        match &step.kind {
            Kind::Agent(_)
            | Kind::Tool { .. }
            | Kind::Exec { .. }
            | Kind::Graph { .. }
            | Kind::Sql { .. } => self.effect(level, step, here).await,
            Kind::Merge { .. } | Kind::Map { .. } | Kind::When { .. } | Kind::Query { .. } => {
                self.composed(level, step, here).await
            }
        }
    }

    /// `on_error`: a value in the place of one that could not be had.
    async fn excused(
        &self,
        level: &Level<'p>,
        step: &'p Step,
        here: &Here,
        failure: Failure,
    ) -> Result<Value, Stopped> {
        let value = match &step.options.on_error {
            OnError::Fail => Err(failure),
            OnError::Skip => Ok((Value::Null, failure.error)),
            OnError::Default(expression) => match evaluate(expression, &level.frame) {
                Ok(value) => Ok((value, failure.error)),
                Err(error) => Err(here.failure(step, error)),
            },
        };
        let (value, error) = value.map_err(|failure| {
            level.scope.fail(failure);
            Stopped
        })?;
        let line = Line::Excused { step: here.path.clone(), value: value.clone(), error: error.clone() };
        self.keep(&line, &here.path)?;
        let kind = kind_name(&step.kind).to_owned();
        self.tell(RunEvent::Excused { step: here.path.clone(), kind, error }).await;
        Ok(value)
    }

    /// A step that is made of others, or of values alone.
    async fn composed(&self, level: &Level<'p>, step: &'p Step, here: &Here) -> Result<Value, Fault> {
        if let Some(value) = self.past.of(&here.path).and_then(|earlier| earlier.value(None)) {
            self.tell(here.done(step, How::Kept, 0)).await;
            return Ok(value.clone());
        }
        let began = self.ports.world.now_ms();
        let kind = kind_name(&step.kind).to_owned();
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
        self.tell(here.done(step, How::Ran, duration)).await;
        Ok(value)
    }

    /// What is inside has a scope of its own where something may end it alone: its `timeout`, its `on_error`, its budget.
    async fn bounded(&self, level: &Level<'p>, step: &'p Step, here: &Here) -> Result<Value, Fault> {
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
        let level = Level { scope: level.scope.inner(), ..level.clone() };
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

    async fn inner(&self, level: &Level<'p>, step: &'p Step, here: &Here) -> Result<Value, Fault> {
        let failed = |error: ToolError| Fault::Failed(here.failure(step, error));
        let value = match &step.kind {
            Kind::Merge { how, parts } => merge(*how, parts, &level.frame).map_err(failed)?,
            Kind::Map { list, concurrency, body } => {
                let items = items(list, &level.frame).map_err(failed)?;
                let ty = element_of(&level.frame.type_of(list));
                let item = |index, value| {
                    let item = Some(Item { value, ty: ty.clone() });
                    let frame = Frame::of_block(body, &level.frame, item);
                    Level { frame, prefix: here.item(index), ..level.clone() }
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
                    Some(block) => self.block(level.into_block(block, prefix)).await?,
                }
            }
            Kind::Query { query, inputs } => {
                let level = self.nested(level, query, inputs, here).map_err(failed)?;
                self.block(level).await?
            }
            _ => {
                return Err(failed(ToolError::new(
                    Code::Internal,
                    "a step with an effect came the wrong way",
                )));
            }
        };
        if let Some(Err(mismatch)) = step.checked.as_ref().map(|ty| ty.check(&value)) {
            let error = ToolError::new(Code::Validation, format!("the value of `{}`: {mismatch}", here.path));
            return Err(failed(error.help("change what the step gives, or its type after `as`")));
        }
        Ok(value)
    }

    /// The blocks of a `map`, so many at once. The outer result is a stop, the inner one what is wrong with the list of
    /// their values.
    async fn items(
        &self,
        level: &Level<'p>,
        items: Vec<Value>,
        most: usize,
        start: &(dyn Fn(usize, Value) -> Level<'p> + Sync),
    ) -> Result<Result<Value, ToolError>, Stopped> {
        let count = items.len();
        let mut waiting: Vec<(usize, Value)> = items.into_iter().enumerate().collect();
        if self.options.shuffle.is_some() {
            let position = |index: usize| vec![u32::try_from(index).unwrap_or(u32::MAX)];
            waiting.sort_by_cached_key(|(index, _)| self.rank(position(*index)));
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
                let block = self.block(start(index, value));
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
        level: &Level<'p>,
        query: &'p Arc<Plan>,
        given: &'p [(String, Expression)],
        here: &Here,
    ) -> Result<Level<'p>, ToolError> {
        let mut values = Map::new();
        for (name, expression) in given {
            values.insert(name.clone(), evaluate(expression, &level.frame)?);
        }
        let inputs = Inputs::new(query, values)?;
        let budget = &query.budget;
        let meter = match (budget.calls, budget.tokens) {
            (None, None) => Arc::clone(&level.meter),
            _ => {
                let used = self.past.used_inside(&here.path);
                Meter::new(&query.name, budget, used, &level.scope, Some(Arc::clone(&level.meter)))
            }
        };
        let (mut slots, mut parallel) = (level.slots.clone(), level.parallel);
        if let Some(own) = budget.parallel {
            let own = own.clamp(1, MAX_PARALLEL);
            // Its own place first: whoever holds one of the run's must be able to go on.
            slots.insert(0, Slots::new(own));
            parallel = parallel.min(own);
        }
        let (frame, prefix) = (Frame::of_query(&query.body, inputs), here.query());
        Ok(Level { frame, prefix, scope: Arc::clone(&level.scope), meter, slots, parallel })
    }
}

impl<'p> Level<'p> {
    fn into_block(&self, block: &'p Block, prefix: Prefix) -> Self {
        Self { frame: Frame::of_block(block, &self.frame, None), prefix, ..self.clone() }
    }
}

impl Here {
    pub(super) fn failure(&self, step: &Step, error: ToolError) -> Failure {
        let error = finished(error, &self.path, step);
        Failure { position: self.position.clone(), step: Some(self.path.clone()), error }
    }

    fn done(&self, step: &Step, how: How, duration_ms: u64) -> RunEvent {
        let (step, kind) = (self.path.clone(), kind_name(&step.kind).to_owned());
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
