//! Watches the workspace and turns what changed into events of the chronicle, by personas.
//!
//! Files are the truth, and the system's notifications are only hints where to look. A journal knows the content hash
//! of every file; comparing it with the disk says what has changed, after a second as well as after a week without a
//! running valve. A change, its number and its finished event are kept in one transaction, and the events then go to
//! the chronicle one after the other. So a change is reported once, whenever the process is killed.
#![forbid(unsafe_code)]

mod action;
mod action_runner;
mod change;
mod decide;
mod engine;
mod event;
mod failure;
mod fs_event_queue;
mod journal;
mod lock;
mod mutex;
mod options;
mod outlet;
mod pending_deletions;
mod personas;
mod publish;
mod reconcile;
mod report;
mod tree;
mod valve;
mod watch;
mod watches;

pub use action::{Action, ActionFailure, ActionReport, Actions, AgentAction, Trigger};
pub use change::FileChangeKind;
pub use event::{ACTION_EVENT, PROJECT_CHRONICLE, TRIGGER_EVENT, TriggerCause, TriggerType, ValveEvent};
pub use options::{ScanRequest, ValveClock, ValveOptions};
pub use personas::{Persona, Personas};
pub use report::{ActionState, PersonaStatus, ScanReport, Skip, UnfinishedAction, ValveStatus, Watcher};
pub use valve::{Rescanner, Valve};
