//! The loop of an agent: it asks a model, makes the calls it wants through the gates, and gives it the results, until
//! the model is done or a bound is reached.
//!
//! Everything the loop learns from outside (the model, the tools, the clock, the state of the work) comes through a
//! port and is written to the transcript, so that a transcript can be gone on with after a crash, and played again.
#![forbid(unsafe_code)]

mod event;
mod options;
mod ports;
mod stop;
mod summary;
mod transcript;

pub use event::AgentEvent;
pub use options::{AgentOptions, Budgets, Prices};
pub use ports::{Clock, Fate, Journal, Ports, Recovery, Safety, Standing};
pub use stop::{StopHandle, StopSignal, StopWish};
pub use summary::{AuditRange, Ending, Summary, TestCount, TouchedFile};
pub use transcript::{Line, LineKind, TurnEnding};
