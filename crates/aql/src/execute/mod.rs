//! From a plan to outputs: steps run when what they need is there, as many at once as the budget allows.

mod block;
mod bounds;
mod compare;
mod composed;
mod effect;
mod effect_marker;
mod evaluate;
mod event;
mod frame;
mod journal_index;
mod limiter;
mod meter;
mod path;
mod ports;
mod request;
mod run;
mod scope;
mod task_queue;
mod work;

pub use event::{RunEvent, RunReport, ValueSource};
pub use ports::{
    AttemptScope, Cache, EarlierOutcome, JournalLine, QueryHost, QueryJournal, QueryPorts, TokenUsage,
};
pub use run::run;

use serde_json::{Map, Value};
use tgp_contract::{Actor, Consent};

/// The parameters of one run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Names the run; the session of its calls, and how the sessions of its agents begin.
    pub id: String,
    /// Who the run works for. An agent's name is followed by that of the query and the step, in calls and sessions.
    pub actor: Actor,
    pub consent: Consent,
    pub inputs: Map<String, Value>,
    /// Lines of the journal of the run that is resumed; empty for a new one.
    pub history: Vec<JournalLine>,
    /// Steps that may be repeated although their result is unknown.
    pub again: Vec<String>,
    /// Takes the steps that are ready in an order drawn from this number instead of that of the query.
    pub shuffle: Option<u64>,
}
