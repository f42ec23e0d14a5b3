//! The gates of the router: the state of the work, what the rules say, and what a token leaves of it.

mod extension;
mod file_tools;
mod histories;
mod policy;
mod predicates;
mod rule_files;
mod rules;
mod state;
mod token;

pub use histories::{PastCalls, PastRange};
pub use policy::{ListedRule, PolicyGate, RuleListing, RuleSource, TddView};
pub use predicates::{Predicate, PredicateCompiler};
pub use rule_files::{NamedRuleFiles, RuleFileCheck, UnreadReason, UnreadRuleFile};
pub use rules::{ForeignRules, RuleFiles, RuleTrust};
pub use state::StateGate;
pub use token::{TokenAuthority, TokenGate};
