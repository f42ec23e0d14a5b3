//! A session as its transcript describes it: every line moves it on, whether the line was just written or is read
//! again.

use std::collections::VecDeque;

use serde_json::Value;
use tgp_contract::{
    CallVerdict, ChatOptions, Code, Execution, FileEffect, ModelTool, StopReason, StreamEvent, TddMode,
    TddState, ToolDefinition, ToolError, ToolResult, Usage,
};

use crate::call_stats::{CallStats, FinishedCall};
use crate::context::{Context, ContextFit};
use crate::conversation::{Conversation, Exchange, Note, Reply};
use crate::meter::{BudgetCheckpoint, Meter};
use crate::render::{self, Answer};
use crate::request::{RequestFingerprint, digest};
use crate::routing::{self, Failures, MAX_FAILURES, RecoverableBy};
use crate::transcript::VERSION;
use crate::turn::{self, MAX_CALLS, PendingCall};
use crate::{AgentLimits, Budgets, Ending, Summary, TranscriptLine, TranscriptLineKind, TurnEnding};

/// What is kept of the model's last words for the summary.
const MAX_LAST_WORDS: usize = 64 << 10;
/// An empty turn is answered once; a model that says nothing twice has nothing to say.
const MAX_EMPTY_TURNS: u32 = 2;
/// Turns in a row that are cut before they have made a call: what did not fit three times does not fit.
pub(crate) const MAX_CUT_TURNS: u32 = 3;
const CUT: &str = "[your answer was cut off at its limit; go on where it stopped, in smaller pieces]";
const CUT_AFTER_CALLS: &str =
    "[your answer was cut off at its limit after these calls; what was to follow them was not heard]";
const NUDGE: &str =
    "[you said nothing and made no call; go on with the task, or say in a few words that it is done]";

/// How the model's last turn ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    Done,
    /// It said nothing, twice.
    Silent,
    /// It did not want to answer.
    Refused,
    /// Its answers reached their limit, again and again.
    Cut,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    Ask,
    Calls,
    Over(Completion),
}

/// What the first line says, and nothing changes.
#[derive(Clone, Debug)]
pub(crate) struct SessionHead {
    pub(crate) id: String,
    pub(crate) actor: String,
    pub(crate) task: String,
    pub(crate) mode: TddMode,
    pub(crate) tools: Vec<ToolDefinition>,
    system: String,
    model_tools: Vec<ModelTool>,
    system_hash: String,
    tools_hash: String,
}

/// The state of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) head: SessionHead,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) budgets: Budgets,
    pub(crate) limits: AgentLimits,
    pub(crate) state: TddState,
    pub(crate) meter: Meter,
    pub(crate) calls: VecDeque<PendingCall>,
    /// How this run has to end because of a result.
    pub(crate) due: Option<Ending>,
    /// Whether the last line says how a run ended.
    pub(crate) stopped: bool,
    sequence: u64,
    conversation: Conversation,
    context: Context,
    failures: Failures,
    tally: CallStats,
    over: Option<Completion>,
    empty_turns: u32,
    cut_turns: u32,
    /// Turns in a row that broke off and are asked for again.
    discarded_turns: u32,
    calls_of_turn: usize,
    last_words: String,
}

/// One result line.
struct ResultLine<'a> {
    id: &'a str,
    result: &'a ToolResult,
    verdict: CallVerdict,
    execution: Option<Execution>,
    recorded: Option<CallVerdict>,
    files: &'a [FileEffect],
    files_omitted: u64,
    unapplied: bool,
    state: TddState,
}

impl Session {
    /// The session that a first line begins.
    ///
    /// # Errors
    /// `EINTEGRITY` when it is not a first line, or one of another version.
    pub(crate) fn open(line: &TranscriptLine) -> Result<Self, ToolError> {
        let TranscriptLineKind::Session {
            version: VERSION,
            prompt_version: _,
            id,
            actor,
            task,
            provider,
            model,
            system,
            tools,
            mode,
            state,
            budgets,
            limits,
        } = &line.kind
        else {
            return Err(misfit(line, &format!("a transcript of version {VERSION} begins with a session")));
        };
        if line.sequence != 0 {
            return Err(misfit(line, "the first line has the number 0"));
        }
        let model_tools: Vec<ModelTool> = tools.iter().map(ModelTool::from).collect();
        let fixed_bytes = system.len() + serde_json::to_string(&model_tools).map_or(0, |text| text.len());
        let mut meter = Meter::default();
        meter.begin(line.at_ms);
        Ok(Self {
            provider: provider.clone(),
            model: model.clone(),
            budgets: *budgets,
            limits: *limits,
            state: *state,
            meter,
            calls: VecDeque::new(),
            due: None,
            stopped: false,
            sequence: 1,
            conversation: Conversation::new(task.clone(), Context::past_bytes(limits.context_tokens)),
            context: Context::new(limits.context_tokens, limits.max_output_tokens, fixed_bytes),
            failures: Failures::default(),
            tally: CallStats::default(),
            over: None,
            empty_turns: 0,
            cut_turns: 0,
            discarded_turns: 0,
            calls_of_turn: 0,
            last_words: String::new(),
            head: SessionHead {
                id: id.clone(),
                actor: actor.clone(),
                task: task.clone(),
                mode: *mode,
                tools: tools.clone(),
                system: system.clone(),
                system_hash: digest(system),
                tools_hash: digest(&model_tools),
                model_tools,
            },
        })
    }

    /// Moves on by one line.
    ///
    /// # Errors
    /// `EINTEGRITY` when the line cannot follow what precedes it.
    pub(crate) fn apply(&mut self, line: &TranscriptLine) -> Result<(), ToolError> {
        if line.sequence != self.sequence {
            return Err(misfit(line, &format!("number {} was to come", self.sequence)));
        }
        match &line.kind {
            TranscriptLineKind::Session { .. } => return Err(misfit(line, "a session begins only once")),
            TranscriptLineKind::Turn { step, events, ending, .. } => {
                if self.next() != NextAction::Ask || *step != self.step() {
                    return Err(misfit(line, "no such turn was to come"));
                }
                self.turn(events, ending);
            }
            TranscriptLineKind::Call { id, .. } => {
                let wanted = self.calls.iter_mut().find(|wanted| !wanted.begun);
                let Some(wanted) = wanted.filter(|wanted| wanted.id == *id) else {
                    return Err(misfit(line, "no such call was to come"));
                };
                wanted.begun = true;
            }
            TranscriptLineKind::Result {
                id,
                result,
                verdict,
                execution,
                recorded,
                files,
                files_omitted,
                unapplied,
                state,
                ..
            } => {
                let Some(wanted) = self.calls.pop_front_if(|wanted| wanted.begun && wanted.id == *id) else {
                    return Err(misfit(line, "no such result was to come"));
                };
                let came = ResultLine {
                    id,
                    result,
                    verdict: *verdict,
                    execution: *execution,
                    recorded: *recorded,
                    files,
                    files_omitted: *files_omitted,
                    unapplied: *unapplied,
                    state: *state,
                };
                self.result(&wanted, &came);
            }
            TranscriptLineKind::Resumed {
                prompt_version: _,
                provider,
                model,
                budgets,
                limits,
                state,
                message,
            } => {
                (self.provider, self.model) = (provider.clone(), model.clone());
                (self.budgets, self.state) = (*budgets, *state);
                self.meter.begin(line.at_ms);
                self.go_on(*limits, message.as_ref());
            }
            TranscriptLineKind::Stop { .. } => {}
        }
        self.stopped = matches!(line.kind, TranscriptLineKind::Stop { .. });
        self.sequence += 1;
        self.meter.reach(line.at_ms);
        Ok(())
    }

    /// Another run begins, with what the user has corrected and perhaps has to say.
    fn go_on(&mut self, limits: AgentLimits, message: Option<&String>) {
        self.limits = limits;
        self.context.resize(limits.context_tokens, limits.max_output_tokens);
        self.conversation.resize(Context::past_bytes(limits.context_tokens));
        // Resuming a session that was stuck gives it another chance.
        (self.failures, self.due, self.discarded_turns) = (Failures::default(), None, 0);
        if message.is_some() || (self.stopped && !self.has_ended()) {
            (self.over, self.empty_turns, self.cut_turns) = (None, 0, 0);
        }
        if let Some(message) = message {
            self.conversation.note(Note::User(message.clone()));
        }
    }

    /// Whether there is nothing to do until the user says something. A model that was silent or cut off can simply
    /// be asked again, when whatever was wrong has been fixed.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.next(), NextAction::Over(Completion::Done | Completion::Refused))
    }

    fn turn(&mut self, events: &[StreamEvent], ending: &TurnEnding) {
        // What was asked had been made to fit; a transcript that is read again has to be the same here.
        self.context.fit(&mut self.conversation);
        let reported = turn::usage(events);
        let is_silent = events.is_empty() && *ending != TurnEnding::Complete;
        let estimated = || self.context.estimated_usage(turn::heard_bytes(events));
        let used = reported.unwrap_or_else(|| if is_silent { Usage::default() } else { estimated() });
        self.meter.add(used);
        self.meter.is_estimated |= reported.is_none() && !is_silent;
        self.context.learn(reported.map_or(0, |usage| usage.input_tokens));
        self.discarded_turns = match ending {
            TurnEnding::Discarded { .. } => self.discarded_turns.saturating_add(1),
            _ => 0,
        };
        if *ending != TurnEnding::Complete {
            return;
        }
        let step = self.step();
        let taken = turn::take(step, events, &self.head.tools, |id| self.conversation.has_call_id(id));
        self.meter.steps += 1;
        self.calls_of_turn = taken.calls.len();
        let is_empty = taken.calls.is_empty() && taken.text.trim().is_empty();
        if !taken.text.trim().is_empty() {
            tgp_text::head(taken.text.trim(), MAX_LAST_WORDS).clone_into(&mut self.last_words);
        }
        // A provider does not accept a thought without text or a call.
        self.conversation.push(Exchange::new(step, if is_empty { Vec::new() } else { taken.said }));
        if taken.left_out > 0 {
            let (left, all) = (taken.left_out, taken.left_out + MAX_CALLS);
            let words = format!(
                "[one turn makes at most {MAX_CALLS} calls; the last {left} of your {all} were not made]"
            );
            self.conversation.note(Note::Loop(words));
        }
        let is_length = taken.reason == Some(StopReason::Length);
        let is_fruitless = is_length && taken.calls.iter().all(|wanted| wanted.is_cut);
        self.cut_turns = if is_fruitless { self.cut_turns + 1 } else { 0 };
        if taken.calls.is_empty() {
            self.conclude(is_empty, taken.reason);
        } else {
            self.empty_turns = 0;
            // A call that was cut says so in its result.
            if is_length && taken.calls.last().is_some_and(|last| !last.is_cut) {
                self.conversation.note(Note::Loop(CUT_AFTER_CALLS.to_owned()));
            }
            self.calls.extend(taken.calls);
        }
        if self.cut_turns >= MAX_CUT_TURNS {
            self.over = Some(Completion::Cut);
        }
    }

    /// What a turn without calls means.
    fn conclude(&mut self, is_empty: bool, reason: Option<StopReason>) {
        self.empty_turns = if is_empty { self.empty_turns + 1 } else { 0 };
        match reason {
            Some(StopReason::Length) => self.conversation.note(Note::Loop(CUT.to_owned())),
            Some(StopReason::Refusal) => self.over = Some(Completion::Refused),
            None if !is_empty => self.over = Some(Completion::Done),
            None if self.empty_turns >= MAX_EMPTY_TURNS => self.over = Some(Completion::Silent),
            None => self.conversation.note(Note::Loop(NUDGE.to_owned())),
        }
    }

    fn result(&mut self, wanted: &PendingCall, came: &ResultLine<'_>) {
        let own = turn::definition(&self.head.tools, &wanted.tool);
        let tool = own.map_or(wanted.tool.as_str(), |tool| tool.name.as_str());
        let error = came.result.error();
        // A call that was broken off has not failed, and one of an earlier run is not this run's doing.
        let is_own = !matches!(came.verdict, CallVerdict::Cancelled | CallVerdict::Recovered);
        let failures = if is_own { self.failures.note(tool, &wanted.arguments, error) } else { 0 };
        let answer = Answer {
            id: came.id,
            tool,
            arguments: &wanted.arguments,
            is_cut: wanted.is_cut,
            result: came.result,
            verdict: came.verdict,
            unapplied: came.was_rolled_back(),
            before: self.state,
            after: came.state,
            failures,
            room: self.context.result_bytes(self.calls_of_turn),
        };
        let line = render::call_line(self.meter.steps, came.id, tool, &wanted.arguments, error);
        self.conversation.reply(Reply {
            id: came.id.to_owned(),
            call_id: wanted.call_id.clone(),
            content: answer.text(),
            is_error: error.is_some(),
            line,
        });
        self.tally.add(&FinishedCall {
            id: came.id,
            tool,
            arguments: &wanted.arguments,
            result: came.result,
            verdict: came.recorded_verdict(),
            is_unknown: !wanted.is_read() && came.is_of_unknown_outcome(),
            files: came.files,
            files_omitted: came.files_omitted,
        });
        if let Some(error) = error.filter(|_| is_own) {
            let due = match RecoverableBy::of(error, came.state) {
                RecoverableBy::Model if failures < MAX_FAILURES => None,
                RecoverableBy::Model => {
                    let how =
                        format!("go on with `tgp run --resume {} \"what to do instead\"`", self.head.id);
                    Some(Ending::Stuck { error: routing::stuck(tool, came.id, error).help(how) })
                }
                RecoverableBy::User | RecoverableBy::Nobody => {
                    Some(RecoverableBy::ending(error.clone(), &self.head.id))
                }
            };
            // Of several, the one that cannot be fixed is the one to report.
            let outranked = !matches!(self.due, Some(Ending::Broken { .. }));
            if due.is_some() && (self.due.is_none() || outranked) {
                self.due = due;
            }
        }
        self.state = came.state;
    }

    pub(crate) fn next(&self) -> NextAction {
        match self.over {
            _ if !self.calls.is_empty() => NextAction::Calls,
            Some(over) => NextAction::Over(over),
            None => NextAction::Ask,
        }
    }

    /// The number of the next turn.
    pub(crate) fn step(&self) -> u64 {
        self.meter.steps + 1
    }

    /// How often in a row the next turn was asked for and broke off.
    pub(crate) fn discarded_turns(&self) -> u32 {
        self.discarded_turns
    }

    /// The number of the next line.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The bound that is reached, if one is.
    pub(crate) fn reached(&self, moment: BudgetCheckpoint) -> Option<ToolError> {
        self.meter.reached(&self.budgets, self.limits.prices, moment, &self.head.id)
    }

    /// Makes what is asked fit into the context.
    pub(crate) fn fit(&mut self) -> ContextFit {
        self.context.fit(&mut self.conversation)
    }

    /// What the model is asked next.
    pub(crate) fn request(&self) -> ChatOptions {
        let aside = self.meter.last_steps(&self.budgets);
        ChatOptions {
            model: self.model.clone(),
            system: self.head.system.clone(),
            messages: self.conversation.messages(aside.as_deref()),
            tools: self.head.model_tools.clone(),
            max_output_tokens: self.output_tokens(),
            temperature: self.limits.temperature,
            turn: self.meter.steps,
        }
    }

    /// The hash of it.
    pub(crate) fn request_hash(&self) -> String {
        let aside = self.meter.last_steps(&self.budgets);
        let outline = RequestFingerprint {
            model: &self.model,
            max_output_tokens: self.output_tokens(),
            temperature: self.limits.temperature,
            turn: self.meter.steps,
            system: &self.head.system_hash,
            tools: &self.head.tools_hash,
            messages: self.conversation.hashes(aside.as_deref()),
        };
        outline.hash()
    }

    fn output_tokens(&self) -> Option<u64> {
        let AgentLimits { prices, max_output_tokens, .. } = self.limits;
        self.meter.output_tokens(&self.budgets, prices, max_output_tokens)
    }

    /// The bounds that a session which is done has passed.
    pub(crate) fn overrun(&self) -> Option<String> {
        self.meter.overrun(&self.budgets, self.limits.prices)
    }

    /// What the session has come to, when it ends at this time.
    pub(crate) fn summary(&self, ending: Ending, at_ms: u64) -> Summary {
        let mut meter = self.meter.clone();
        meter.reach(at_ms);
        let begun = self.calls.iter().filter(|wanted| wanted.begun && !wanted.is_read());
        let begun = begun.map(|wanted| render::call_words(&wanted.id, &wanted.tool, &wanted.arguments));
        Summary {
            session: self.head.id.clone(),
            ending,
            answer: self.last_words.clone(),
            steps: meter.steps,
            calls: self.tally.calls,
            refused: self.tally.refused,
            failed: self.tally.failed,
            unknown: self.tally.unknown(begun),
            usage: meter.usage,
            usage_estimated: meter.is_estimated,
            cost: meter.cost(self.limits.prices),
            duration_ms: meter.elapsed_ms(),
            files: self.tally.files(),
            files_omitted: self.tally.files_omitted,
            forged: self.tally.forged(),
            reused: self.tally.reused(),
            tests: self.tally.tests,
            audit: None,
        }
    }

    /// Whether arguments of this kind can only be refused. A text where an object is wanted is what a model wrote
    /// instead of JSON.
    pub(crate) fn takes_objects(&self, tool: &str) -> bool {
        turn::definition(&self.head.tools, tool)
            .is_none_or(|tool| tool.input_schema.get("type").and_then(Value::as_str) == Some("object"))
    }
}

impl ResultLine<'_> {
    /// Whether the call ran, and a gate then refused what it wanted to change.
    fn was_rolled_back(&self) -> bool {
        self.verdict.is_refusal() && self.execution.map_or(self.unapplied, |at| at == Execution::RolledBack)
    }

    /// Whether it cannot be known what the call has done.
    fn is_of_unknown_outcome(&self) -> bool {
        self.execution.map_or_else(|| self.says_unknown(), |execution| execution == Execution::Unknown)
    }

    /// The verdict of the audit for a call that was recovered from it, otherwise its own.
    fn recorded_verdict(&self) -> CallVerdict {
        self.recorded.or_else(|| self.says_recorded()).unwrap_or(self.verdict)
    }

    /// The same in a line of 0.1.0, which has it in the details of an error that the loop has made.
    fn says_unknown(&self) -> bool {
        let is_made = matches!(self.verdict, CallVerdict::Cancelled | CallVerdict::Recovered);
        let fate = self.result.error().and_then(|error| error.details.get("fate")?.as_str());
        is_made && fate == Some("unknown")
    }

    fn says_recorded(&self) -> Option<CallVerdict> {
        let error = self.result.error().filter(|_| self.verdict == CallVerdict::Recovered)?;
        serde_json::from_value(error.details.get("recovered")?.get("verdict")?.clone()).ok()
    }
}

fn misfit(line: &TranscriptLine, why: &str) -> ToolError {
    ToolError::new(Code::Integrity, format!("line {} of the transcript does not fit: {why}", line.sequence))
        .detail("line", line.sequence)
        .help("the transcript was changed, or is not of this program; the audit still has every call")
}
