//! Blocks: their steps run when what they need is there, and blocks inside steps are run the same way.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tgp_contract::ToolError;
use tokio::sync::oneshot;

use super::evaluate::evaluate;
use super::frame::Frame;
use super::limiter::{Limiter, Priority};
use super::meter::Meter;
use super::path::{Prefix, StepInstance};
use super::run::{Run, finished};
use super::scope::{Failure, Position, RunScope, Stopped};
use super::task_queue::Boxed;
use super::{JournalLine, RunEvent};
use crate::{Kind, OnError, Step};

/// A block on its way, and everything that holds for its steps.
#[derive(Clone)]
pub(super) struct BlockCtx<'p> {
    pub(super) frame: Arc<Frame<'p>>,
    pub(super) prefix: Prefix,
    pub(super) scope: Arc<RunScope>,
    pub(super) meter: Arc<Meter>,
    /// A step with an effect needs a permit from each: that of the run, and those of queries with their own bound.
    pub(super) limiters: Vec<Arc<Limiter>>,
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

impl<'p> Run<'p> {
    /// Runs a block inside another one. It is polled by the run itself, so that no stack grows with the nesting.
    pub(super) async fn inner_block(self: &Arc<Self>, level: BlockCtx<'p>) -> Result<Value, Stopped> {
        let (sender, receiver) = oneshot::channel();
        let run = Arc::clone(self);
        self.tasks.push(Box::pin(async move {
            let _ = sender.send(run.block(level).await);
        }));
        // It is dropped without an answer only when the whole run is.
        receiver.await.unwrap_or(Err(Stopped))
    }

    /// Runs the steps of a block, and answers with its value.
    pub(super) fn block<'r>(self: &'r Arc<Self>, level: BlockCtx<'p>) -> Boxed<'r, Result<Value, Stopped>>
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
                ready.sort_by_cached_key(|index| self.priority(level.prefix.step(*index, "").position));
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
    pub(super) fn priority(&self, position: Position) -> Priority {
        let drawn = self.options.shuffle.map_or(0, |seed| {
            let mut hasher = DefaultHasher::new();
            (seed, &position).hash(&mut hasher);
            hasher.finish()
        });
        (drawn, position)
    }

    /// Runs one step of any kind. Its value is in the frame when this answers with its number.
    fn step<'r>(
        self: &'r Arc<Self>,
        level: BlockCtx<'p>,
        index: usize,
        step: &'p Step,
    ) -> Boxed<'r, Result<usize, Stopped>>
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

    async fn value_of(
        self: &Arc<Self>,
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
    ) -> Result<Value, Fault> {
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
        level: &BlockCtx<'p>,
        step: &'p Step,
        here: &StepInstance,
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
        let line =
            JournalLine::Excused { step: here.path.clone(), value: value.clone(), error: error.clone() };
        self.keep(&line, &here.path)?;
        let kind = step.kind.name().to_owned();
        self.tell(RunEvent::Excused { step: here.path.clone(), kind, error }).await;
        Ok(value)
    }
}

impl StepInstance {
    pub(super) fn failure(&self, step: &Step, error: ToolError) -> Failure {
        let error = finished(error, &self.path, step);
        Failure { position: self.position.clone(), step: Some(self.path.clone()), error }
    }
}
