//! Where the events of a valve go.

use std::time::Duration;

use tgp_contract::{Code, ToolError};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

use crate::ValveEvent;
use crate::report::ScanReport;

/// Events that the report of one pass lists; all of them are counted.
const MAX_LISTED: usize = 10_000;

/// How long a listener with a full channel is waited for, once.
const LISTENER_WAIT: Duration = Duration::from_secs(2);

/// A listener of a running watch, or the report of one pass.
pub(crate) enum EventSink {
    Listener {
        sender: mpsc::Sender<ValveEvent>,
        /// Events that it did not take since the last one that it took.
        missed: u64,
    },
    Report(Box<ScanReport>),
}

impl EventSink {
    /// A listener that is slow is waited for a little, then it misses some: what is shown never holds up what is recorded.
    pub(crate) async fn send(&mut self, event: ValveEvent) {
        match self {
            Self::Listener { sender, missed } => {
                if *missed > 0 {
                    let message = format!("{missed} events were not shown, because the reader was too slow");
                    let error = ToolError::new(Code::Budget, message)
                        .help("recorded events are in the chronicle; read the output faster");
                    if sender.try_send(ValveEvent::Problem { error }).is_err() {
                        *missed += 1;
                        return;
                    }
                    *missed = 0;
                }
                if let Err(SendTimeoutError::Timeout(_)) = sender.send_timeout(event, LISTENER_WAIT).await {
                    *missed = 1;
                }
            }
            Self::Report(report) => {
                match &event {
                    ValveEvent::Triggered { .. } => report.triggered += 1,
                    ValveEvent::Skipped { .. } => report.skipped += 1,
                    ValveEvent::ActionDone { ok: true, .. } => report.actions_done += 1,
                    ValveEvent::ActionDone { ok: false, .. } => report.actions_failed += 1,
                    _ => {}
                }
                if report.events.len() < MAX_LISTED {
                    report.events.push(event);
                } else {
                    report.left_out += 1;
                }
            }
        }
    }
}
