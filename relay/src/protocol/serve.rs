//! The other side of the protocol: a part of this product, served to any program that speaks it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tgp_contract::{
    ChatOptions, Chronicle, ChronicleEvent, ChronicleLayout, Code, Graph, GraphQuery, ModelProvider,
    RelativePath, ToolCaller, ToolError,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::lines;
use super::message::{CallParams, Called, Hello, Introduced, PartKind, Request, WireChange};
use super::{MAX_LINE, PROTOCOL};
use crate::real;

/// Requests that are worked on at the same time; further ones are not read before one of them is answered.
const MAX_REQUESTS: usize = 64;
/// Lines that wait to be written: few, so that a slow reader slows every sender down.
const WAITING_LINES: usize = 4;
/// How long requests that are being answered may continue after the input has ended.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Whose part is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    #[default]
    Real,
    Fake,
}

/// What is served.
#[derive(Clone, Debug)]
pub struct RelayServeOptions {
    pub part: PartKind,
    pub origin: Origin,
    /// The program `tgp`, which serves as worker of real tools.
    pub tgp: PathBuf,
}

/// What a part needs until the end.
enum Held {
    Nothing,
    Kernel(real::KernelTools),
    /// Where the graph is kept: not in the project, whose files it describes.
    Folder(TempDir),
}

/// A part that answers.
enum Served {
    Llm(Arc<dyn ModelProvider>),
    Tools(Arc<dyn ToolCaller>),
    Chronicle(Arc<dyn Chronicle>),
    Graph(Arc<dyn Graph>),
}

/// Serves one part until the input ends. The part is made when hello says for which directory.
///
/// # Errors
/// When the other side does not keep to the protocol, or the part cannot be made.
pub async fn serve<R, W>(options: &RelayServeOptions, input: R, output: W) -> Result<(), ToolError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING_LINES);
    let writer = tokio::spawn(write(output, receiver));
    let served = answer_all(options, BufReader::new(input), sender).await;
    // The writer ends when all senders are gone.
    let written = writer.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    served?;
    written.map_err(|error| {
        ToolError::new(Code::Runtime, format!("the answers cannot be written: {error}"))
            .help("keep reading until the program ends")
    })
}

async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut lines: mpsc::Receiver<Value>,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(format!("{line}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

async fn answer_all<R: AsyncRead + Unpin + Send>(
    options: &RelayServeOptions,
    mut input: BufReader<R>,
    sender: mpsc::Sender<Value>,
) -> Result<(), ToolError> {
    let mut part: Option<(Arc<Served>, Held)> = None;
    let room = Arc::new(Semaphore::new(MAX_REQUESTS));
    let mut working = JoinSet::new();
    let ended = loop {
        let line = match lines::next(&mut input).await {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(refuse(&sender, error.to_string()).await),
        };
        let request: Request = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => {
                let problem = format!("no request ({error}): `{}`", lines::shown(&line));
                break Err(refuse(&sender, problem).await);
            }
        };
        // A notification: the sender does not wait, and what is being done here is soon done.
        let Some(id) = request.id else { continue };
        match &part {
            None => match introduce(options, &request).await {
                Ok(made) => {
                    part = Some(made);
                    let name = format!("tgp {}", options.part.as_str());
                    let version = env!("CARGO_PKG_VERSION").to_owned();
                    say(&sender, id, Ok(json!(Introduced { name, version }))).await;
                }
                Err(error) => say(&sender, id, Err(error)).await,
            },
            Some((served, _)) => {
                let (served, sender) = (Arc::clone(served), sender.clone());
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { break Ok(()) };
                while working.try_join_next().is_some() {}
                working.spawn(async move {
                    answer(&served, id, request, &sender).await;
                    drop(permit);
                });
            }
        }
    };
    drop(sender);
    let all = async { while working.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_PATIENCE, all).await;
    working.shutdown().await;
    match part.map(|(_, held)| held) {
        Some(Held::Kernel(kernel)) => kernel.shutdown().await,
        Some(Held::Folder(folder)) => drop(folder),
        Some(Held::Nothing) | None => {}
    }
    ended
}

/// Says what is wrong with the input, after which nothing more can be understood.
async fn refuse(sender: &mpsc::Sender<Value>, problem: String) -> ToolError {
    let error = ToolError::new(Code::Validation, format!("the input holds {problem}"))
        .help("write one JSON object a line, with `id`, `method` and `params`");
    let _ = sender.send(json!({ "id": null, "error": error })).await;
    error
}

async fn say(sender: &mpsc::Sender<Value>, id: u64, answer: Result<Value, ToolError>) {
    let line = match answer {
        Ok(result) => json!({ "id": id, "result": result }),
        Err(error) => json!({ "id": id, "error": error }),
    };
    let line = if line.to_string().len() < MAX_LINE {
        line
    } else {
        let error = ToolError::new(Code::Budget, format!("the answer has more than {MAX_LINE} bytes"))
            .help("ask for less");
        json!({ "id": id, "error": error })
    };
    let _ = sender.send(line).await;
}

async fn introduce(options: &RelayServeOptions, request: &Request) -> Result<(Arc<Served>, Held), ToolError> {
    if request.method != "hello" {
        let message = format!("`{}` came before `hello`", request.method);
        return Err(ToolError::new(Code::Validation, message).help("say hello first"));
    }
    let hello: Hello = read(&request.params)?;
    if hello.protocol != PROTOCOL {
        let message = format!("protocol {} is not spoken here, but {PROTOCOL}", hello.protocol);
        return Err(ToolError::new(Code::Validation, message).help("use the same version on both sides"));
    }
    if hello.part != options.part {
        let (meant, is) = (hello.part.as_str(), options.part.as_str());
        let message = format!("this program serves {is}, not {meant}");
        return Err(ToolError::new(Code::Validation, message).help("start the program for that part"));
    }
    make(options, Path::new(&hello.directory)).await
}

async fn make(options: &RelayServeOptions, directory: &Path) -> Result<(Arc<Served>, Held), ToolError> {
    let is_real = options.origin == Origin::Real;
    let served = match options.part {
        // A real model is a remote service; without a key only the scripted model is available.
        PartKind::Llm => Served::Llm(Arc::new(tgp_relay_fakes::FakeModel::new())),
        PartKind::Tools if is_real => {
            let kernel = real::KernelTools::boot(directory, &options.tgp).await?;
            return Ok((Arc::new(Served::Tools(kernel.caller())), Held::Kernel(kernel)));
        }
        PartKind::Tools => Served::Tools(real::fake_tools(directory)?),
        PartKind::Chronicle if is_real => {
            Served::Chronicle(real::file_chronicle(directory, ChronicleLayout::default())?)
        }
        PartKind::Chronicle => Served::Chronicle(Arc::new(tgp_relay_fakes::FakeChronicle::new(directory))),
        PartKind::Graph if is_real => {
            let folder = tempfile::tempdir().map_err(|error| {
                ToolError::new(Code::Internal, format!("no temporary directory for the graph: {error}"))
            })?;
            let graph = real::graph_store(directory, &folder.path().join("graph.sqlite")).await?;
            return Ok((Arc::new(Served::Graph(graph)), Held::Folder(folder)));
        }
        PartKind::Graph => Served::Graph(Arc::new(tgp_relay_fakes::MemoryGraph::new(directory))),
    };
    Ok((Arc::new(served), Held::Nothing))
}

fn read<T: DeserializeOwned>(params: &Value) -> Result<T, ToolError> {
    serde_json::from_value(params.clone()).map_err(|error| {
        ToolError::new(Code::Validation, format!("the params do not fit: {error}"))
            .help("compare them with the protocol in relay/README.md")
    })
}

fn unknown(method: &str) -> ToolError {
    ToolError::new(Code::NotFound, format!("this part has no method `{method}`"))
        .help("see the methods of each part in relay/README.md")
}

async fn answer(served: &Served, id: u64, request: Request, sender: &mpsc::Sender<Value>) {
    if let (Served::Llm(model), "chat") = (served, request.method.as_str()) {
        return stream(model.as_ref(), id, &request.params, sender).await;
    }
    let answered = match served {
        Served::Llm(model) => answer_llm(model.as_ref(), &request).await,
        Served::Tools(tools) => answer_tools(tools.as_ref(), &request).await,
        Served::Chronicle(chronicle) => answer_chronicle(chronicle.as_ref(), &request).await,
        Served::Graph(graph) => answer_graph(graph.as_ref(), &request).await,
    };
    say(sender, id, answered).await;
}

/// Says the events of a turn, each as its own line.
async fn stream(model: &dyn ModelProvider, id: u64, params: &Value, sender: &mpsc::Sender<Value>) {
    let asked = async { model.chat(read::<ChatOptions>(params)?).await };
    match asked.await {
        Err(error) => say(sender, id, Err(error)).await,
        Ok(mut events) => {
            while let Some(event) = events.next().await {
                if sender.send(json!({ "id": id, "event": event })).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn answer_llm(model: &dyn ModelProvider, request: &Request) -> Result<Value, ToolError> {
    match request.method.as_str() {
        "models" => Ok(json!(model.models().await?)),
        other => Err(unknown(other)),
    }
}

async fn answer_tools(tools: &dyn ToolCaller, request: &Request) -> Result<Value, ToolError> {
    match request.method.as_str() {
        "definitions" => Ok(json!(tools.definitions())),
        "call" => {
            let CallParams { call, context } = read(&request.params)?;
            let record = tools.call(call, context, Box::pin(std::future::pending())).await;
            let called = Called { result: record.result, files: record.files, exit_code: record.exit_code };
            Ok(json!(called))
        }
        other => Err(unknown(other)),
    }
}

async fn answer_chronicle(chronicle: &dyn Chronicle, request: &Request) -> Result<Value, ToolError> {
    #[derive(Deserialize)]
    struct Append {
        file: RelativePath,
        event: ChronicleEvent,
    }
    #[derive(Deserialize)]
    struct Tail {
        file: RelativePath,
        most: usize,
    }
    match request.method.as_str() {
        "append" => {
            let Append { file, event } = read(&request.params)?;
            Ok(json!(chronicle.append(&file, event).await?))
        }
        "tail" => {
            let Tail { file, most } = read(&request.params)?;
            Ok(json!(chronicle.tail(&file, most).await?))
        }
        "files" => Ok(json!(chronicle.files().await?)),
        other => Err(unknown(other)),
    }
}

async fn answer_graph(graph: &dyn Graph, request: &Request) -> Result<Value, ToolError> {
    #[derive(Deserialize)]
    struct Ingest {
        commit: String,
    }
    #[derive(Deserialize)]
    struct Propose {
        changes: Vec<WireChange>,
        questions: Vec<GraphQuery>,
    }
    match request.method.as_str() {
        "ingest" => Ok(json!(graph.ingest(&read::<Ingest>(&request.params)?.commit).await?)),
        "query" => Ok(json!(graph.query(read(&request.params)?).await?)),
        "propose" => {
            let Propose { changes, questions } = read(&request.params)?;
            let changes: Vec<_> = changes.into_iter().map(Into::into).collect();
            Ok(json!(graph.propose(&changes, &questions).await?))
        }
        other => Err(unknown(other)),
    }
}
