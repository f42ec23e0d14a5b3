//! Parts in this process that take a role, such as one with a fault that the suites should find.

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use tgp_contract::{AgentRunner, Chronicle, Graph, ModelProvider, ToolCaller, ToolError};

use crate::matrix::Role;
use crate::valves::{ValveGround, ValvePart};

/// Makes a part from what it is given. A part that is restarted is made once more.
pub type MakePart<G, P> = Arc<dyn Fn(G) -> Result<Arc<P>, ToolError> + Send + Sync>;

/// Makes a part for a project.
pub type MakeForProject<P> = Arc<dyn Fn(&Path) -> Result<Arc<P>, ToolError> + Send + Sync>;

/// What an agent runner of another implementation works with.
#[derive(Clone)]
pub struct RunnerGround {
    pub model: Arc<dyn ModelProvider>,
    pub tools: Arc<dyn ToolCaller>,
}

/// Parts in this process, each instead of all others of its role.
#[derive(Clone, Default)]
pub struct Substitutes {
    /// A model that follows the rules for puppets in `relay/README.md`.
    pub llm: Option<MakeForProject<dyn ModelProvider>>,
    pub tools: Option<MakeForProject<dyn ToolCaller>>,
    pub chronicle: Option<MakeForProject<dyn Chronicle>>,
    pub graph: Option<MakeForProject<dyn Graph>>,
    pub valve: Option<MakePart<ValveGround, dyn ValvePart>>,
    pub agents: Option<MakePart<RunnerGround, dyn AgentRunner>>,
}

impl Substitutes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        Role::ALL.iter().all(|role| !self.has(*role))
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        match role {
            Role::Llm => self.llm.is_some(),
            // The command line is another process, and reaches no part of this one.
            Role::CliLlm => false,
            Role::Tools => self.tools.is_some(),
            Role::Chronicle => self.chronicle.is_some(),
            Role::Graph => self.graph.is_some(),
            Role::Valve => self.valve.is_some(),
            Role::Agents => self.agents.is_some(),
        }
    }
}

impl Debug for Substitutes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Role::ALL.iter().filter(|role| self.has(**role)).map(|role| role.name());
        formatter.debug_set().entries(named).finish()
    }
}
