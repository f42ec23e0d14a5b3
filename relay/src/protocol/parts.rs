//! The traits of the contract, with a program behind them.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tgp_contract::{
    AppendResult, CallContext, CallRecord, Cancellation, Change, ChatOptions, Chronicle, ChronicleEvent,
    Code, EventStream, Execution, Graph, GraphQuery, GraphRows, IngestSummary, ModelInfo, ModelProvider,
    RelativePath, StreamEvent, ToolCall, ToolCaller, ToolDefinition, ToolError, ToolResult,
};
use tokio::sync::mpsc;

use super::message::{CallParams, Called, Reply, WireChange};
use super::peer::Peer;

/// Asks, and reads the answer as what it should be.
async fn ask<T: DeserializeOwned>(peer: &Peer, method: &str, params: Value) -> Result<T, ToolError> {
    let answer = peer.request(method, params).await?;
    serde_json::from_value(answer)
        .map_err(|error| peer.wrong(method, &format!("something else than the contract says ({error})")))
}

/// A program as a model.
pub(crate) fn connect_model(peer: &Arc<Peer>) -> Arc<dyn ModelProvider> {
    Arc::new(ExternalModel { peer: Arc::clone(peer) })
}

struct ExternalModel {
    peer: Arc<Peer>,
}

/// A stream that is being read. Dropping it notifies the program.
struct Listening {
    peer: Arc<Peer>,
    request: u64,
    replies: mpsc::Receiver<Reply>,
    first: Option<Reply>,
    is_over: bool,
}

impl Listening {
    async fn next(&mut self) -> Option<StreamEvent> {
        if self.is_over {
            return None;
        }
        let reply = match self.first.take() {
            Some(reply) => Ok(reply),
            None => self.peer.next("chat", &mut self.replies).await,
        };
        let event = match reply {
            Ok(Reply::Event(event)) => serde_json::from_value(event)
                .map_err(|error| self.peer.wrong("chat", &format!("no stream event ({error})"))),
            Ok(Reply::Error(error)) | Err(error) => Err(error),
            Ok(Reply::Result(_)) => {
                Err(self.peer.wrong("chat", "a result, where events with an end were expected"))
            }
        };
        let event = event.unwrap_or_else(|error| StreamEvent::Error { error });
        self.is_over = matches!(event, StreamEvent::End { .. } | StreamEvent::Error { .. });
        Some(event)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if !self.is_over {
            self.peer.cancel(self.request);
        }
    }
}

#[async_trait]
impl ModelProvider for ExternalModel {
    fn name(&self) -> &str {
        "external"
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        let (request, mut replies) = self.peer.begin("chat", json!(options)).await?;
        let first = match self.peer.next("chat", &mut replies).await? {
            Reply::Error(error) => return Err(error),
            first => Some(first),
        };
        let peer = Arc::clone(&self.peer);
        let listening = Listening { peer, request, replies, first, is_over: false };
        let events = futures_util::stream::unfold(listening, async |mut listening| {
            listening.next().await.map(|event| (event, listening))
        });
        Ok(Box::pin(events))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        ask(&self.peer, "models", json!({})).await
    }
}

/// A program as tools. The definitions are asked for once.
///
/// # Errors
/// When the program does not report them.
pub(crate) async fn connect_tools(peer: &Arc<Peer>) -> Result<Arc<dyn ToolCaller>, ToolError> {
    let definitions = ask(peer, "definitions", json!({})).await?;
    Ok(Arc::new(ExternalTools { peer: Arc::clone(peer), definitions }))
}

struct ExternalTools {
    peer: Arc<Peer>,
    definitions: Vec<ToolDefinition>,
}

#[async_trait]
impl ToolCaller for ExternalTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.definitions.clone()
    }

    async fn call(
        &self,
        call: ToolCall,
        context: CallContext,
        mut cancelled: Cancellation<'_>,
    ) -> CallRecord {
        let params = CallParams { call: call.clone(), context: context.clone() };
        let asked = ask::<Called>(&self.peer, "call", json!(params));
        let called = tokio::select! {
            called = asked => called,
            () = &mut cancelled => Err(ToolError::new(Code::Runtime, "the call was cancelled")
                .of_cancellation()
                .help("nobody knows whether the program has made it")),
        };
        let called = called.unwrap_or_else(|error| Called {
            result: ToolResult::Failed(error),
            files: Vec::new(),
            exit_code: None,
        });
        let definition = self.definitions.iter().find(|definition| {
            definition.name.as_str() == call.tool || definition.aliases.contains(&call.tool)
        });
        let cancelled = called.result.error().is_some_and(ToolError::is_of_cancellation);
        let record = CallRecord::ended(call, context, called.result);
        CallRecord {
            tool: definition.map(|definition| definition.name.to_string()),
            effect: definition.map(|definition| definition.effect),
            files: called.files,
            exit_code: called.exit_code,
            execution: if cancelled { Execution::Unknown } else { record.execution },
            cancelled,
            ..record
        }
    }
}

/// A program as a chronicle.
pub(crate) fn connect_chronicle(peer: &Arc<Peer>) -> Arc<dyn Chronicle> {
    Arc::new(ExternalChronicle { peer: Arc::clone(peer) })
}

struct ExternalChronicle {
    peer: Arc<Peer>,
}

#[async_trait]
impl Chronicle for ExternalChronicle {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        ask(&self.peer, "append", json!({ "file": file, "event": event })).await
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        ask(&self.peer, "tail", json!({ "file": file, "most": most })).await
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        ask(&self.peer, "files", json!({})).await
    }
}

/// A program as a graph.
pub(crate) fn connect_graph(peer: &Arc<Peer>) -> Arc<dyn Graph> {
    Arc::new(ExternalGraph { peer: Arc::clone(peer) })
}

struct ExternalGraph {
    peer: Arc<Peer>,
}

#[async_trait]
impl Graph for ExternalGraph {
    fn marks_unread_files(&self) -> bool {
        // The questions of `relay/fixtures/graph-questions` know no such property.
        false
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        ask(&self.peer, "ingest", json!({ "commit": commit })).await
    }

    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        ask(&self.peer, "query", json!(question)).await
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        let changes = changes.iter().map(WireChange::of).collect::<Result<Vec<_>, _>>()?;
        ask(&self.peer, "propose", json!({ "changes": changes, "questions": questions })).await
    }
}
