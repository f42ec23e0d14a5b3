//! A call that is under way, and the record it leaves whatever becomes of it.

use std::sync::Arc;
use std::time::Instant;

use tgp_contract::{
    CallContext, CallRecord, Effect, Execution, FileEffect, Gate, GateVerdict, Recorder, Target, ToolCall,
    ToolResult,
};

use super::lifecycle::CallLifecycle;

/// What happened on the way, for the record.
#[derive(Default)]
pub(super) struct CallTrace {
    pub(super) tool: Option<(String, Effect)>,
    pub(super) targets: Vec<Target>,
    pub(super) verdicts: Vec<GateVerdict>,
    pub(super) files: Vec<FileEffect>,
    pub(super) rows_changed: Option<u64>,
    pub(super) exit_code: Option<i32>,
}

/// A call between its entry and its record. When it is dropped in between, the caller has gone away, or the whole runtime: that is recorded.
pub(super) struct InFlightCall<'a> {
    pub(super) serial: u64,
    pub(super) call: ToolCall,
    pub(super) context: CallContext,
    pub(super) trace: CallTrace,
    gates: &'a [Arc<dyn Gate>],
    recorder: &'a dyn Recorder,
    lifecycle: &'a CallLifecycle,
    started: Instant,
    started_ms: u64,
    closed: bool,
}

impl<'a> InFlightCall<'a> {
    pub(super) fn new(
        serial: u64,
        call: ToolCall,
        context: CallContext,
        gates: &'a [Arc<dyn Gate>],
        recorder: &'a dyn Recorder,
        lifecycle: &'a CallLifecycle,
    ) -> Self {
        let trace = CallTrace::default();
        Self {
            serial,
            call,
            context,
            trace,
            gates,
            recorder,
            lifecycle,
            started: Instant::now(),
            started_ms: tgp_text::now_ms(),
            closed: false,
        }
    }

    /// Keeps and returns the record of a call that was rolled back.
    pub(super) fn cancel(mut self) -> CallRecord {
        self.closed = true;
        self.record_cancelled()
    }

    fn record_cancelled(&mut self) -> CallRecord {
        let (error, execution) = self.lifecycle.broken_off();
        let record = CallRecord { cancelled: true, ..self.record(ToolResult::Failed(error), execution) };
        self.recorder.record_cancelled(record.clone());
        record
    }

    /// The record of a call that ended with `result`.
    pub(super) fn close(mut self, result: ToolResult) -> CallRecord {
        self.closed = true;
        let execution = self.lifecycle.execution(&result);
        self.record(result, execution)
    }

    fn record(&mut self, result: ToolResult, execution: Execution) -> CallRecord {
        let trace = std::mem::take(&mut self.trace);
        let asked = !trace.verdicts.is_empty();
        // How long a person has thought about it is not what the call took.
        let duration = self.started.elapsed().saturating_sub(self.lifecycle.wait().total());
        let record = CallRecord {
            serial: self.serial,
            effect: trace.tool.as_ref().map(|(_, effect)| *effect),
            tool: trace.tool.map(|(name, _)| name),
            call: self.call.clone(),
            context: self.context.clone(),
            targets: trace.targets,
            verdicts: trace.verdicts,
            files: trace.files,
            rows_changed: trace.rows_changed,
            exit_code: trace.exit_code,
            execution,
            cancelled: false,
            result,
            started_ms: self.started_ms,
            duration_us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
        };
        if asked {
            self.gates.iter().for_each(|gate| gate.on_finished(&record));
        }
        record
    }
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.record_cancelled();
        }
    }
}
