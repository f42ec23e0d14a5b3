//! What a case works with: a folder, and one part for each role that the row gives away.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{
    AgentRunner, Chronicle, ChronicleLayout, Graph, ModelProvider, StreamEvent, ToolCaller, ToolError,
};
use tgp_relay_fakes::{FakeModel, FakeRunner, MemoryChronicle, MemoryGraph};

use crate::conversation::LoopRunner;
use crate::fault::{Expecting, Fault};
use crate::matrix::{BESIDE, Choice, Provider, Role};
use crate::protocol::{
    PartKind, Peer, PeerOptions, connect_chronicle, connect_graph, connect_model, connect_tools,
};
use crate::real::{self, HttpModels, KernelTools, ModelServer, ModelSource, OneModel, ScriptedModels};
use crate::valves::{FakeValves, RealValves, ValveSource};
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
    /// Where the files of its chronicle are.
    layout: ChronicleLayout,
    graph: Option<Arc<dyn Graph>>,
    valve: Option<Box<dyn ValveSource>>,
    agents: Option<Provider>,
    cli_model: Option<CliModel>,
    kernel: Option<KernelTools>,
    peers: Vec<Arc<Peer>>,
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
            layout: ChronicleLayout::default(),
            graph: None,
            valve: None,
            agents: None,
            cli_model: None,
            kernel: None,
            peers: Vec::new(),
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
                self.chronicle = Some(match &choice.maker {
                    Provider::Real(word) => {
                        if *word == BESIDE {
                            self.layout = ChronicleLayout::Beside;
                        }
                        real::file_chronicle(&project, self.layout)?
                    }
                    Provider::Fake(_) => Arc::new(MemoryChronicle::new()),
                    Provider::External(command) => {
                        connect_chronicle(&self.peer(PartKind::Chronicle, command, &project).await?)
                    }
                });
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
                });
            }
            Role::Valve => {
                let chronicle = self.chronicle.clone().ok_or_else(|| {
                    ToolError::new(tgp_contract::Code::Internal, "a valve needs a chronicle before it")
                })?;
                let memory = self.workspace.beside("valve");
                self.valve = Some(match &choice.maker {
                    Provider::Real(_) => Box::new(RealValves::new(project, &memory, chronicle, self.layout)?),
                    _ => Box::new(FakeValves::new(project, &memory, chronicle)),
                });
            }
        }
        Ok(())
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
        })
    }

    async fn peer(&mut self, part: PartKind, command: &str, project: &Path) -> Result<Arc<Peer>, ToolError> {
        let options = PeerOptions {
            command: command.to_owned(),
            part,
            directory: project.to_owned(),
            patience: self.ground.patience,
        };
        let peer = Arc::new(Peer::start(options).await?);
        self.peers.push(Arc::clone(&peer));
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

    pub(crate) fn graph(&self) -> Result<Arc<dyn Graph>, Fault> {
        given(self.graph.clone(), "graph")
    }

    pub(crate) fn valve(&self) -> Result<&dyn ValveSource, Fault> {
        given(self.valve.as_deref(), "valve")
    }

    /// Agents that ask this model and call the world's tools.
    pub(crate) fn agents(&self, model: Arc<dyn ModelProvider>) -> Result<Arc<dyn AgentRunner>, Fault> {
        let tools = self.tools()?;
        Ok(match given(self.agents.as_ref(), "agents")? {
            Provider::Real(_) => Arc::new(LoopRunner { model, tools }),
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
        for peer in peers {
            peer.close().await;
        }
    }
}

fn given<T>(part: Option<T>, role: &str) -> Result<T, Fault> {
    part.ok_or_else(|| {
        Fault::new(format!("a part for {role}"), "a row without one, which is a bug of the kit")
    })
}
