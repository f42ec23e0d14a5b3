//! The loop: ask, make the calls, answer, until something ends it. Every step is a line before it counts.

use std::time::Duration;

use tgp_contract::{Code, ToolError};

use crate::context::ContextFit;
use crate::io::{AgentIo, CallOutcome, CallRequest, LoopError, TurnOutput};
use crate::meter::BudgetCheckpoint;
use crate::routing::RecoverableBy;
use crate::session::{Completion, MAX_CUT_TURNS, NextAction, Session};
use crate::turn::{self, MAX_CALLS, PendingCall};
use crate::{
    AgentEvent, Ending, LineDurability, ResumeOptions, Summary, TranscriptLine, TranscriptLineKind,
    TurnEnding,
};

/// Reads of one turn that run at once: enough to hide their waiting, too few to crowd out everything else.
const MAX_PARALLEL_READS: usize = 8;

/// One run of the loop.
pub(crate) struct Engine<W> {
    world: W,
    session: Session,
}

impl<W: AgentIo> Engine<W> {
    /// Writes the first line of a session. `first` is that line but for the state, which is read now.
    pub(crate) async fn begin(mut world: W, mut first: TranscriptLineKind) -> Result<Self, LoopError> {
        if let TranscriptLineKind::Session { state, .. } = &mut first {
            *state = world.state()?;
        }
        let line = TranscriptLine { sequence: 0, at_ms: world.now_ms()?, kind: first };
        let session = Session::open(&line)?;
        world.append(&line, LineDurability::Written)?;
        let mut engine = Self { world, session };
        engine.introduce(false).await;
        Ok(engine)
    }

    /// Writes the line that resumes a session.
    pub(crate) async fn go_on(
        world: W,
        session: Session,
        provider: String,
        options: ResumeOptions,
    ) -> Result<Self, LoopError> {
        let mut engine = Self { world, session };
        let state = engine.world.state()?;
        let model = options.model.unwrap_or_else(|| engine.session.model.clone());
        let ResumeOptions { budgets, limits, message, .. } = options;
        let prompt_version = engine.world.prompt_version();
        let line =
            TranscriptLineKind::Resumed { prompt_version, provider, model, budgets, limits, state, message };
        engine.append(line, LineDurability::Written)?;
        engine.introduce(true).await;
        Ok(engine)
    }

    async fn introduce(&mut self, resumed: bool) {
        let session = &self.session;
        let event = AgentEvent::Session {
            id: session.head.id.clone(),
            task: session.head.task.clone(),
            provider: session.provider.clone(),
            model: session.model.clone(),
            mode: session.head.mode,
            state: session.state,
            resumed,
        };
        self.world.tell(event).await;
    }

    /// Continues until something ends it. Each round takes a step, makes a call or is the last, so the bound on
    /// steps bounds the rounds.
    pub(crate) async fn drive(mut self) -> Result<(Summary, W), LoopError> {
        loop {
            let next = self.session.next();
            let ending = match next {
                NextAction::Over(over) => Some(self.over(over)),
                _ if self.world.stop_wished() => Some(Ending::Interrupted),
                NextAction::Calls => match self.session.reached(BudgetCheckpoint::BeforeCalls) {
                    Some(error) => Some(Ending::Budget { error }),
                    None => self.calls().await?,
                },
                NextAction::Ask => match self.session.reached(BudgetCheckpoint::BeforeTurn) {
                    Some(error) => Some(Ending::Budget { error }),
                    None => self.ask().await?,
                },
            };
            if let Some(ending) = ending {
                return Ok((self.finish(ending).await?, self.world));
            }
        }
    }

    /// The model has nothing more to do.
    fn over(&self, over: Completion) -> Ending {
        let id = &self.session.head.id;
        let (code, message, help) = match over {
            Completion::Done => return Ending::Done,
            Completion::Silent => (
                Code::Provider,
                "the model said nothing twice".to_owned(),
                format!("take another model, or say more: `tgp run --resume {id} \"…\"`"),
            ),
            Completion::Refused => (
                Code::Provider,
                "the model, or a filter before it, did not want to answer".to_owned(),
                format!("put it differently: `tgp run --resume {id} \"…\"`"),
            ),
            Completion::Cut => {
                let limit = self.session.limits.max_output_tokens;
                let now = limit.map_or_else(|| "not set".to_owned(), |limit| limit.to_string());
                (
                    Code::Config,
                    format!(
                        "the model's answer was cut off at its output limit {MAX_CUT_TURNS} times in a row, before it had made a call"
                    ),
                    format!("raise llm.maxOutputTokens ({now}), then go on with `tgp run --resume {id}`"),
                )
            }
        };
        Ending::NeedsUser { error: ToolError::new(code, message).help(help) }
    }

    async fn ask(&mut self) -> Result<Option<Ending>, LoopError> {
        let fitted = self.session.fit();
        if fitted.shortened > 0 || fitted.summarised > 0 {
            self.notice(shortening(fitted)).await;
        }
        if !fitted.fits {
            return Ok(Some(Ending::Budget { error: self.too_large(fitted) }));
        }
        let step = self.session.step();
        let tokens = self.session.meter.tokens();
        self.world.tell(AgentEvent::Step { step, tokens }).await;
        let request = self.session.request_hash();
        let patience = self.session.meter.left_ms(&self.session.budgets).map(Duration::from_millis);
        let TurnOutput { events, ending } = self.world.turn(&self.session, patience).await?;
        let (usage, left_out) = (turn::usage(&events), turn::left_out(&events));
        self.append(
            TranscriptLineKind::Turn { step, request, events, ending: ending.clone() },
            LineDurability::Written,
        )?;
        if let Some(usage) = usage {
            self.world.tell(AgentEvent::Usage(usage)).await;
        }
        if left_out > 0 && ending == TurnEnding::Complete {
            let message = format!(
                "the model wanted {} calls at once; the last {left_out} were not made, and the model was informed",
                left_out + MAX_CALLS
            );
            self.notice(message).await;
        }
        Ok(match ending {
            TurnEnding::Complete | TurnEnding::Discarded { .. } => None,
            TurnEnding::Interrupted => Some(Ending::Interrupted),
            TurnEnding::Failed { error } => Some(RecoverableBy::ending(error, &self.session.head.id)),
            TurnEnding::OutOfTime => {
                let (meter, id) = (&self.session.meter, &self.session.head.id);
                let error = meter.out_of_time(&self.session.budgets, id);
                error.map(|error| Ending::Budget { error })
            }
        })
    }

    /// Makes the next calls: consecutive reads at once, everything else alone.
    async fn calls(&mut self) -> Result<Option<Ending>, LoopError> {
        let Some(first) = self.session.calls.front() else { return Ok(None) };
        if first.begun && !first.is_read() {
            return self.recover(first.clone()).await;
        }
        let group: Vec<PendingCall> = if first.is_read() {
            let reads = self.session.calls.iter().take_while(|wanted| wanted.is_read());
            reads.take(MAX_PARALLEL_READS).cloned().collect()
        } else {
            vec![first.clone()]
        };
        for wanted in &group {
            if !wanted.begun {
                self.begin_call(wanted)?;
            }
        }
        for wanted in &group {
            self.announce(wanted).await;
        }
        let refused =
            |wanted: &PendingCall| wanted.arguments.is_string() && !self.session.takes_objects(&wanted.tool);
        let order = |wanted: &PendingCall| CallRequest { refused: refused(wanted), wanted: wanted.clone() };
        let orders: Vec<CallRequest> = group.iter().map(order).collect();
        self.world.make(orders);
        for wanted in &group {
            let settled = self.world.settle().await?;
            self.settle(wanted, settled).await?;
        }
        Ok(self.session.due.take())
    }

    /// A call that may have changed something is never made twice: its record says what came of it, or the result is
    /// unknown.
    async fn recover(&mut self, wanted: PendingCall) -> Result<Option<Ending>, LoopError> {
        self.announce(&wanted).await;
        let session = self.session.head.id.clone();
        match self.world.recover(&session, &wanted.id).await? {
            Ok(settled) => {
                self.settle(&wanted, settled).await?;
                Ok(None)
            }
            Err(error) => Ok(Some(RecoverableBy::ending(error, &session))),
        }
    }

    fn begin_call(&mut self, wanted: &PendingCall) -> Result<(), LoopError> {
        let safety = if wanted.is_read() { LineDurability::Written } else { LineDurability::Synced };
        let step = self.session.meter.steps;
        let PendingCall { id, call_id, tool, arguments, effect, .. } = wanted.clone();
        self.append(TranscriptLineKind::Call { step, id, call_id, tool, arguments, effect }, safety)
    }

    async fn announce(&mut self, wanted: &PendingCall) {
        let PendingCall { id, call_id, tool: tool_name, arguments, .. } = wanted.clone();
        let step = self.session.meter.steps;
        self.world.tell(AgentEvent::ToolCall { step, id, tool_name, call_id, arguments }).await;
    }

    async fn settle(&mut self, wanted: &PendingCall, settled: CallOutcome) -> Result<(), LoopError> {
        let CallOutcome {
            result,
            verdict,
            execution,
            recorded,
            duration_us,
            files,
            files_omitted,
            unapplied,
        } = settled;
        let state = self.world.state()?;
        let line = TranscriptLineKind::Result {
            id: wanted.id.clone(),
            result: result.clone(),
            verdict,
            execution,
            recorded,
            duration_us,
            files: files.clone(),
            files_omitted,
            unapplied,
            state,
        };
        self.append(line, LineDurability::Written)?;
        let event = AgentEvent::ToolResult {
            step: self.session.meter.steps,
            id: wanted.id.clone(),
            tool_name: wanted.tool.clone(),
            call_id: wanted.call_id.clone(),
            result,
            verdict,
            duration_ms: Duration::from_micros(duration_us).as_secs_f64() * 1000.0,
            files,
            state,
        };
        self.world.tell(event).await;
        Ok(())
    }

    async fn finish(&mut self, ending: Ending) -> Result<Summary, LoopError> {
        let error = match &ending {
            Ending::Budget { error }
            | Ending::Stuck { error }
            | Ending::NeedsUser { error }
            | Ending::Broken { error } => Some(error.clone()),
            Ending::Done | Ending::Interrupted => None,
        };
        if let Some(message) = self.session.overrun().filter(|_| ending == Ending::Done) {
            self.notice(message).await;
        }
        if let Some(error) = error {
            self.world.tell(AgentEvent::Error { error }).await;
        }
        let at_ms = self.now_ms()?;
        let summary = self.session.summary(ending, at_ms);
        self.append_at(
            at_ms,
            TranscriptLineKind::Stop { summary: Box::new(summary.clone()) },
            LineDurability::Written,
        )?;
        Ok(summary)
    }

    async fn notice(&mut self, message: String) {
        self.world.tell(AgentEvent::Notice { message }).await;
    }

    /// Time does not run backwards in a transcript, whatever the clock does.
    fn now_ms(&mut self) -> Result<u64, LoopError> {
        Ok(self.world.now_ms()?.max(self.session.meter.last_ms()))
    }

    fn append(&mut self, kind: TranscriptLineKind, safety: LineDurability) -> Result<(), LoopError> {
        let at_ms = self.now_ms()?;
        self.append_at(at_ms, kind, safety)
    }

    fn append_at(
        &mut self,
        at_ms: u64,
        kind: TranscriptLineKind,
        safety: LineDurability,
    ) -> Result<(), LoopError> {
        let line = TranscriptLine { sequence: self.session.sequence(), at_ms, kind };
        self.world.append(&line, safety)?;
        Ok(self.session.apply(&line)?)
    }

    fn too_large(&self, fitted: ContextFit) -> ToolError {
        let ContextFit { tokens, limit, .. } = fitted;
        let message = format!(
            "the task, the tools and the last turns take about {tokens} tokens, and the model can be asked with {limit}"
        );
        ToolError::new(Code::Budget, message)
            .detail("bound", "context")
            .detail("used", tokens)
            .detail("limit", limit)
            .help(format!(
                "set llm.contextTokens to what the model can read, or take a model that reads more, then go on with `tgp run --resume {}`",
                self.session.head.id
            ))
    }
}

fn shortening(fitted: ContextFit) -> String {
    let ContextFit { shortened, summarised, tokens, .. } = fitted;
    format!(
        "the context was getting full: {shortened} old results and arguments were shortened and {summarised} old turns summarised; about {tokens} tokens are left in it"
    )
}
