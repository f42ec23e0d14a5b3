//! Targets that have a name of their own: secrets, tools of upstream servers, tools of the embedding program, and branches
//! of the project's repository. How a rule matches them, and what holds where no rule names a secret.

use globset::GlobMatcher;
use tgp_contract::Target;

use crate::pattern::{PatternError, named_glob};
use crate::{PolicyDecision, PolicyRequest, RuleEffect};

/// The rule that asks where no rule names the secret.
pub(crate) const DEFAULT_RULE: &str = "default/secret";

/// The kinds of names, as rules write them.
const KINDS: [&str; 4] = ["secret:", "mcp:", "host:", "branch:"];

/// One alternative of `target`: `secret:GITHUB`, `mcp:linear/*`, `host:send_mail`, `branch:agent/*`.
#[derive(Clone, Debug)]
pub(crate) struct NamedMatcher(GlobMatcher);

impl NamedMatcher {
    pub(crate) fn new(text: &str) -> Result<Self, PatternError> {
        if text != "*" && !KINDS.iter().any(|kind| text.starts_with(kind)) {
            return Err(PatternError::Named);
        }
        named_glob(text).map(Self)
    }

    pub(crate) fn fits(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// The name of a target as rules write it; `None` for one that has none.
pub(crate) fn name_of(target: &Target) -> Option<String> {
    match target {
        Target::Secret { name } => Some(format!("secret:{name}")),
        Target::UpstreamTool { server, tool } => Some(format!("mcp:{server}/{tool}")),
        Target::HostTool { name } => Some(format!("host:{name}")),
        Target::Branch { name } => Some(format!("branch:{name}")),
        Target::File { .. }
        | Target::Host { .. }
        | Target::Network
        | Target::Statement { .. }
        | Target::Command { .. }
        | Target::Limits(_) => None,
    }
}

/// The target with this name, as examples write it.
pub(crate) fn target_of(name: &str) -> Option<Target> {
    let (kind, name) = name.split_once(':')?;
    match kind {
        _ if name.is_empty() => None,
        "secret" => Some(Target::Secret { name: name.to_owned() }),
        "host" => Some(Target::HostTool { name: name.to_owned() }),
        "branch" => Some(Target::Branch { name: name.to_owned() }),
        "mcp" => {
            let (server, tool) = name.split_once('/')?;
            Some(Target::UpstreamTool { server: server.to_owned(), tool: tool.to_owned() })
        }
        _ => None,
    }
}

/// What holds for a call that uses a secret, unless a rule that allows it names targets.
pub(crate) fn default_decision(question: &PolicyRequest<'_>) -> Option<PolicyDecision> {
    let name = question.targets.iter().find_map(|target| match target {
        Target::Secret { name } => Some(name),
        _ => None,
    })?;
    let reason = format!("the call uses the secret `{}`", name.escape_debug());
    Some(PolicyDecision::by_default(RuleEffect::Ask, DEFAULT_RULE, &reason))
}
