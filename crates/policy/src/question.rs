//! A call as the rules see it.

use serde_json::Value;
use tgp_contract::{Access, Actor, Effect, Target, TddMode, TddState};

/// Everything a rule may read.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRequest<'a> {
    /// The tool's own name, as it is registered.
    pub tool: &'a str,
    /// Its other names; a rule that names one of them means this tool too, whichever name the caller used.
    pub aliases: &'a [String],
    pub effect: Effect,
    pub arguments: &'a Value,
    pub targets: &'a [Target],
    pub actor: &'a Actor,
    pub session: &'a str,
    pub mode: TddMode,
    pub state: TddState,
}

impl PolicyRequest<'_> {
    /// The tool's effect, or a stronger one that its targets give away: a tool that calls itself a reader and names a
    /// file to write, or a statement that may write, is a writer.
    pub(crate) fn strongest_effect(&self) -> Effect {
        let of_target = |target: &Target| match target {
            Target::File { access: Access::Read, .. } | Target::Statement { reads: true, .. } => Effect::Read,
            Target::File { .. } | Target::Statement { .. } | Target::Branch { .. } => Effect::Write,
            // A tool of the embedding program does what its definition says, which is the effect of the call.
            Target::HostTool { .. } => self.effect,
            // Limits bound what runs.
            Target::Limits(_) => Effect::Execute,
            Target::Command { .. } => Effect::Execute,
            Target::Host { .. } | Target::Network => Effect::Network,
            // An upstream server is another program that may do anything, and a secret is used to reach something.
            Target::UpstreamTool { .. } | Target::Secret { .. } => Effect::Network,
        };
        self.targets.iter().map(of_target).fold(self.effect, Ord::max)
    }

    /// Whether all it does is to run statements that only read.
    pub(crate) fn only_queries(&self) -> bool {
        let reads = |target: &Target| matches!(target, Target::Statement { reads: true, .. });
        self.effect <= Effect::Write && !self.targets.is_empty() && self.targets.iter().all(reads)
    }
}
