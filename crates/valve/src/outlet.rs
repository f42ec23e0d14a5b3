//! Where the events of a valve go.

use tokio::sync::mpsc;

use crate::ValveEvent;
use crate::report::ScanReport;

/// Events that the report of one pass lists; all of them are counted.
const MAX_LISTED: usize = 10_000;

/// A listener of a running watch, or the report of one pass.
pub(crate) enum Outlet {
    Listener(mpsc::Sender<ValveEvent>),
    Report(Box<ScanReport>),
}

impl Outlet {
    /// A listener that is slow is waited for; one that has gone is not missed.
    pub(crate) async fn send(&mut self, event: ValveEvent) {
        match self {
            Self::Listener(listener) => {
                let _ = listener.send(event).await;
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
