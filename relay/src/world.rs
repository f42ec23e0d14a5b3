//! What a case works with: a folder, and one part for each role that the row gives away.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tgp_contract::{
    AgentRunner, Chronicle, ChronicleLayout, Code, Graph, ModelProvider, StreamEvent, ToolCaller, ToolError,
};
use tgp_relay_fakes::{FakeChronicle, FakeModel, FakeRunner, MemoryGraph};

use crate::conversation::LoopRunner;
use crate::fault::{Expecting, Fault};
use crate::matrix::{BESIDE, Choice, Provider, Role};
use crate::protocol::{
    PartKind, Peer, PeerOptions, connect_chronicle, connect_graph, connect_model, connect_tools,
};
use crate::real::{self, HttpModels, KernelTools, ModelServer, ModelSource, OneModel, ScriptedModels};
use crate::substitutes::{RunnerGround, Substitutes};
use crate::valves::{FakeValves, RealValves, ValveGround, ValvePart};
use crate::workspace::Workspace;

/// How the command line under test reaches its model.
pub(crate) enum CliModel {
    /// By a script in the project.
    Script,
    /// Over the wire, at a server of the kit.
    Http(ModelServer),
}

/// What is the same for every world of a run.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    /// The program `tgp`.
    pub(crate) tgp: PathBuf,
    pub(crate) substitutes: Substitutes,
    /// For one answer of a program from outside.
    pub(crate) patience: Duration,
}

/// One row's parts on one folder.
pub(crate) struct World {
    pub(crate) workspace: Workspace,
    pub(crate) ground: Fixture,
    /// Why the tools of this world can run no command.
    pub(crate) no_commands: Option<String>,
    tools: Option<Arc<dyn ToolCaller>>,
    models: Option<Box<dyn ModelSource>>,
    chronicle: Option<Arc<dyn Chronicle>>,
    /// Who makes it, for a case that starts it again.
    chronicle_maker: Option<Provider>,
    chronicle_peer: Option<Arc<Peer>>,
    /// Where the files of its chronicle are.
    layout: ChronicleLayout,
    graph: Option<Arc<dyn Graph>>,
    valve: Option<Arc<dyn ValvePart>>,
    agents: Option<Provider>,
    cli_model: Option<CliModel>,
    kernel: Option<KernelTools>,
    peers: Mutex<Vec<Arc<Peer>>>,
}

impl World {
    /// Makes the folder and every part.
    pub(crate) async fn new(ground: Fixture, choices: &[Choice]) -> Result<Self, Fault> {
        let mut world = Self {
            workspace: Workspace::new().await?,
            ground,
            no_commands: None,
            tools: None,
            models: None,
            chronicle: None,
            chronicle_maker: None,
            chronicle_peer: None,
            layout: ChronicleLayout::default(),
            graph: None,
            valve: None,
            agents: None,
            cli_model: None,
            kernel: None,
            peers: Mutex::default(),
        };
        for choice in choices {
            if let Err(error) = world.take(choice).await {
                world.close().await;
                let expected = format!("{} that can be started", choice.label());
                return Err(error).expecting(&expected);
            }
        }
        Ok(world)
    }

    async fn take(&mut self, choice: &Choice) -> Result<(), ToolError> {
        let project = self.workspace.project().to_owned();
        match choice.role {
            Role::Tools => self.tools = Some(self.make_tools(&choice.maker, &project).await?),
            Role::Llm => self.models = Some(self.make_models(&choice.maker, &project).await?),
            Role::CliLlm => self.cli_model = Some(self.make_cli_model(&choice.maker, &project).await?),
            Role::Agents => self.agents = Some(choice.maker.clone()),
            Role::Chronicle => {
                if choice.maker == Provider::Real(BESIDE) {
                    self.layout = ChronicleLayout::Beside;
                }
                let (chronicle, peer) = self.make_chronicle(&choice.maker).await?;
                (self.chronicle, self.chronicle_peer) = (Some(chronicle), peer);
                self.chronicle_maker = Some(choice.maker.clone());
            }
            Role::Graph => {
                self.graph = Some(match &choice.maker {
                    Provider::Real(_) => {
                        real::graph_store(&project, &self.workspace.beside("graph.sqlite")).await?
                    }
                    Provider::Fake(_) => Arc::new(MemoryGraph::new(project)),
                    Provider::External(command) => {
                        connect_graph(&self.peer(PartKind::Graph, command, &project).await?)
                    }
                    Provider::Substitute => substitute(&self.ground.substitutes.graph)?(&project)?,
                });
            }
            Role::Valve => {
                let chronicle = self
                    .chronicle
                    .clone()
                    .ok_or_else(|| ToolError::new(Code::Internal, "a valve needs a chronicle before it"))?;
                let memory = self.workspace.beside("valve");
                self.valve = Some(match &choice.maker {
                    Provider::Real(_) => Arc::new(RealValves::new(project, &memory, chronicle, self.layout)?),
                    Provider::Substitute => substitute(&self.ground.substitutes.valve)?(ValveGround {
                        project,
                        memory,
                        chronicle,
                    })?,
                    _ => Arc::new(FakeValves::new(ValveGround { project, memory, chronicle })),
                });
            }
        }
        Ok(())
    }

    /// A chronicle on the project, and the program that it is.
    async fn make_chronicle(
        &self,
        maker: &Provider,
    ) -> Result<(Arc<dyn Chronicle>, Option<Arc<Peer>>), ToolError> {
        let project = self.workspace.project();
        Ok(match maker {
            Provider::Real(_) => (real::file_chronicle(project, self.layout)?, None),
            Provider::Fake(_) => (Arc::new(FakeChronicle::new(project)), None),
            Provider::External(command) => {
                let peer = self.peer(PartKind::Chronicle, command, project).await?;
                (connect_chronicle(&peer), Some(peer))
            }
            Provider::Substitute => (substitute(&self.ground.substitutes.chronicle)?(project)?, None),
        })
    }

    async fn make_tools(
        &mut self,
        maker: &Provider,
        project: &Path,
    ) -> Result<Arc<dyn ToolCaller>, ToolError> {
        match maker {
            Provider::Real(_) => {
                let kernel = KernelTools::boot(project, &self.ground.tgp).await?;
                self.no_commands = real::no_commands();
                let tools = kernel.caller();
                self.kernel = Some(kernel);
                Ok(tools)
            }
            Provider::Fake(_) => real::fake_tools(project),
            Provider::External(command) => {
                connect_tools(&self.peer(PartKind::Tools, command, project).await?).await
            }
            Provider::Substitute => substitute(&self.ground.substitutes.tools)?(project),
        }
    }

    async fn make_models(
        &mut self,
        maker: &Provider,
        project: &Path,
    ) -> Result<Box<dyn ModelSource>, ToolError> {
        Ok(match maker {
            Provider::Real("http") => {
                Box::new(HttpModels::new(ModelServer::start(Arc::new(FakeModel::new())).await?))
            }
            Provider::Real(_) => Box::new(ScriptedModels),
            Provider::Fake(_) => Box::new(OneModel(Arc::new(FakeModel::new()))),
            Provider::External(command) => {
                let peer = self.peer(PartKind::Llm, command, project).await?;
                Box::new(OneModel(connect_model(&peer)))
            }
            Provider::Substitute => Box::new(OneModel(substitute(&self.ground.substitutes.llm)?(project)?)),
        })
    }

    async fn make_cli_model(&mut self, maker: &Provider, project: &Path) -> Result<CliModel, ToolError> {
        Ok(match maker {
            Provider::Real(_) => CliModel::Script,
            Provider::Fake(_) => CliModel::Http(ModelServer::start(Arc::new(FakeModel::new())).await?),
            Provider::External(command) => {
                let peer = self.peer(PartKind::Llm, command, project).await?;
                CliModel::Http(ModelServer::start(connect_model(&peer)).await?)
            }
            Provider::Substitute => return Err(missing("the model of the command line")),
        })
    }

    async fn peer(&self, part: PartKind, command: &str, project: &Path) -> Result<Arc<Peer>, ToolError> {
        let options = PeerOptions {
            command: command.to_owned(),
            part,
            directory: project.to_owned(),
            patience: self.ground.patience,
        };
        let peer = Arc::new(Peer::start(options).await?);
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&peer));
        Ok(peer)
    }

    pub(crate) fn tools(&self) -> Result<Arc<dyn ToolCaller>, Fault> {
        given(self.tools.clone(), "tools")
    }

    /// A model that takes these turns.
    pub(crate) async fn model(&self, turns: &[Vec<StreamEvent>]) -> Result<Arc<dyn ModelProvider>, Fault> {
        given(self.models.as_ref(), "llm")?.model(turns).await.expecting("a model for these turns")
    }

    pub(crate) fn chronicle(&self) -> Result<Arc<dyn Chronicle>, Fault> {
        given(self.chronicle.clone(), "chronicle")
    }

    /// The chronicle after its end and another start: a program is ended and started again, and everything else is made
    /// once more for the same project.
    pub(crate) async fn restarted_chronicle(&self) -> Result<Arc<dyn Chronicle>, Fault> {
        if let Some(peer) = &self.chronicle_peer {
            peer.close().await;
        }
        let maker = given(self.chronicle_maker.as_ref(), "chronicle")?;
        let (chronicle, _) = self.make_chronicle(maker).await.expecting("a chronicle that starts again")?;
        Ok(chronicle)
    }

    pub(crate) fn graph(&self) -> Result<Arc<dyn Graph>, Fault> {
        given(self.graph.clone(), "graph")
    }

    pub(crate) fn valve(&self) -> Result<&dyn ValvePart, Fault> {
        given(self.valve.as_deref(), "valve")
    }

    /// Agents that ask this model and call the world's tools.
    pub(crate) fn agents(&self, model: Arc<dyn ModelProvider>) -> Result<Arc<dyn AgentRunner>, Fault> {
        let tools = self.tools()?;
        Ok(match given(self.agents.as_ref(), "agents")? {
            Provider::Real(_) => Arc::new(LoopRunner { model, tools }),
            Provider::Substitute => {
                let make = substitute(&self.ground.substitutes.agents).expecting("a substitute")?;
                make(RunnerGround { model, tools }).expecting("agents that can be made")?
            }
            _ => Arc::new(FakeRunner::new(model, tools)),
        })
    }

    pub(crate) fn cli_model(&self) -> Result<&CliModel, Fault> {
        given(self.cli_model.as_ref(), "llm")
    }

    /// Ends every program and kernel, and waits until they are gone.
    pub(crate) async fn close(self) {
        let Self { kernel, peers, tools, models, .. } = self;
        drop((tools, models));
        if let Some(kernel) = kernel {
            kernel.shutdown().await;
        }
        for peer in peers.into_inner().unwrap_or_else(PoisonError::into_inner) {
            peer.close().await;
        }
    }
}

fn given<T>(part: Option<T>, role: &str) -> Result<T, Fault> {
    part.ok_or_else(|| {
        Fault::new(format!("a part for {role}"), "a row without one, which is a bug of the kit")
    })
}

/// A substitute that a row was planned with.
fn substitute<T>(make: &Option<T>) -> Result<&T, ToolError> {
    make.as_ref().ok_or_else(|| missing("a substitute"))
}

fn missing(what: &str) -> ToolError {
    ToolError::new(Code::Internal, format!("{what} is missing, which is a bug of the kit"))
}
