//! The entry points: ways in which an agent reaches the router, each driven as an agent would use it.

mod aql;
mod cli;
mod literal;
mod persona;
mod script;
mod session;
mod socket;
mod tool;
mod wire;

use std::fmt;

use anyhow::Result;
use serde::Deserialize;

pub use wire::Client;

use crate::baseline::Finding;
use crate::case::{Act, CaseFile, Step};
use crate::outcome::Outcome;
use crate::project::Project;

/// A way to make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// `tgp call`, a process per step.
    Cli,
    /// A client with a token at `tgp serve`.
    Socket,
    /// `tgp run` with a scripted model.
    Session,
    /// A forged tool that calls `tgp.*`.
    Tool,
    /// A query with a step per call.
    Aql,
    /// The agent of a valve persona.
    Persona,
}

impl Entry {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Cli, Self::Socket, Self::Session, Self::Tool, Self::Aql, Self::Persona];

    /// As case files and the command line write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Socket => "socket",
            Self::Session => "session",
            Self::Tool => "tool",
            Self::Aql => "aql",
            Self::Persona => "persona",
        }
    }

    /// The entry point with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.name() == name)
    }

    /// Why a step cannot be made through this entry point; nothing when it can.
    #[must_use]
    pub fn cannot_express(self, case: &CaseFile, step: &Step) -> Option<String> {
        match step.act()? {
            Act::Script { .. } if self != Self::Cli => Some("a `script` runs through `cli` only".to_owned()),
            Act::Hello(_) | Act::Frame(_) if self != Self::Socket => {
                Some("`hello` and `frame` are for `socket` only".to_owned())
            }
            Act::Call { .. } if step.dry_run && !matches!(self, Self::Cli | Self::Socket) => {
                Some("only `cli` and `socket` ask for a preview (`dry_run`)".to_owned())
            }
            Act::Call { tool, .. } if self == Self::Tool && !tool::FUNCTIONS.contains(&tool) => {
                Some(format!("a forged tool has no `tgp.{tool}`; it has {}", tool::FUNCTIONS.join(", ")))
            }
            Act::Call { .. } if self == Self::Persona && case.files.contains_key(persona::FILE) => {
                Some(format!("the case lays a {} of its own", persona::FILE))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What an entry point has to say of a whole attack.
pub struct Made {
    /// One per step, in order.
    pub outcomes: Vec<Outcome>,
    /// What the kernel that served the attack kept of it, where one served all of it.
    pub findings: Vec<Finding>,
}

/// Makes all steps of a case through an entry point.
///
/// # Errors
/// When the attack could not be made at all, which is a failure of the case.
pub fn attack(entry: Entry, project: &Project, case: &CaseFile) -> Result<Made> {
    let outcomes = match entry {
        Entry::Cli => case.steps.iter().map(|step| cli::step(project, case, step)).collect::<Result<_>>()?,
        Entry::Socket => return socket::steps(project, case),
        Entry::Session => by_approval(case, |steps| session::calls(project, case, steps))?,
        Entry::Tool => {
            case.steps.iter().map(|step| tool::step(project, case, step)).collect::<Result<_>>()?
        }
        Entry::Aql => by_approval(case, |steps| aql::calls(project, case, steps))?,
        Entry::Persona => by_approval(case, |steps| persona::calls(project, case, steps))?,
    };
    Ok(Made { outcomes, findings: Vec::new() })
}

/// Steps that follow one another with the same approver are made by one session, query or persona.
fn by_approval(
    case: &CaseFile,
    mut make: impl FnMut(&[Step]) -> Result<Vec<Outcome>>,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for steps in case.steps.chunk_by(|one, next| one.approve == next.approve) {
        outcomes.extend(make(steps)?);
    }
    Ok(outcomes)
}
