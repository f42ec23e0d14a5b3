//! The loop of an agent: it asks a model, makes the calls it wants through the gates, and gives it the results, until
//! the model is done or a bound is reached.
//!
//! Everything the loop learns from outside (the model, the tools, the clock, the state of the work) comes through a
//! port and is written to the transcript, so that a transcript can be resumed after a crash, and played again.
#![forbid(unsafe_code)]

mod blocks;
mod bounds;
mod call_stats;
mod context;
mod conversation;
mod engine;
mod event;
mod evicted_turns;
mod io;
mod live;
mod meter;
mod options;
mod ports;
mod prompt;
mod render;
mod replay;
mod request;
mod routing;
mod run;
mod session;
mod stop;
mod summary;
mod transcript;
mod turn;

pub use event::AgentEvent;
pub use options::{AgentLimits, AgentOptions, Budgets, Prices, ResumeOptions};
pub use ports::{
    AgentClock, AgentPorts, LineDurability, RecoveredOutcome, Recovery, TddStateSource, TranscriptJournal,
};
pub use prompt::{ForgedTool, PromptFacts, ToolPlatform, static_prompt, step_prompt, system_prompt};
pub use replay::{Replayed, replay};
pub use run::{resume, run};
pub use stop::{StopHandle, StopLevel, StopSignal};
pub use summary::{AuditRange, Ending, Summary, TestCount, TouchedFile};
pub use transcript::{TranscriptLine, TranscriptLineKind, TurnEnding};
