//! A small server of the kit that speaks the chat wire of OpenAI, with any model behind it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tgp_contract::{
    Block, ChatOptions, Code, Message, ModelProvider, ModelTool, Role, StreamEvent, ToolError, ToolName,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Bytes of a request's head.
const MAX_HEAD: u64 = 64 << 10;
/// Bytes of a request's body: a conversation of a case with room to spare.
const MAX_BODY: u64 = 16 << 20;
/// Connections at once.
const MAX_CONNECTIONS: usize = 32;
/// How long one request may take in all.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a port of this machine that ends with its owner.
pub(crate) struct ModelServer {
    base_url: String,
    task: JoinHandle<()>,
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ModelServer {
    pub(crate) async fn start(model: Arc<dyn ModelProvider>) -> Result<Self, ToolError> {
        let failed = |error: std::io::Error| {
            ToolError::new(Code::Internal, format!("no port for a local server: {error}"))
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let base_url = format!("http://{}/v1", listener.local_addr().map_err(failed)?);
        Ok(Self { base_url, task: tokio::spawn(accept(listener, model)) })
    }

    /// The base URL for an adapter.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }
}

async fn accept(listener: TcpListener, model: Arc<dyn ModelProvider>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Connections end with the server, because they are dropped with it.
    let mut connections = JoinSet::new();
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((connection, _)) = listener.accept().await else { return };
        let model = Arc::clone(&model);
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, answer(connection, model.as_ref())).await;
            drop(permit);
        });
    }
}

/// Answers one request and closes.
async fn answer(connection: TcpStream, model: &dyn ModelProvider) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let read = (&mut connection).take(MAX_HEAD).read_until(b'\n', &mut head).await?;
        if read == 0 || head.len() as u64 > MAX_HEAD {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: u64 = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    if length > MAX_BODY {
        return respond(&mut connection, 413, json!({ "error": { "message": "too long" } })).await;
    }
    let mut body = Vec::new();
    (&mut connection).take(length).read_to_end(&mut body).await?;
    if head.starts_with("get ") {
        let models = model.models().await.unwrap_or_default();
        let data: Vec<Value> =
            models.iter().map(|model| json!({ "id": model.name, "object": "model" })).collect();
        return respond(&mut connection, 200, json!({ "object": "list", "data": data })).await;
    }
    let asked = serde_json::from_slice::<Value>(&body).ok().and_then(|body| options(&body));
    let Some(options) = asked else {
        return respond(&mut connection, 400, json!({ "error": { "message": "no chat request" } })).await;
    };
    match model.chat(options).await {
        Err(error) => {
            respond(&mut connection, 500, json!({ "error": { "message": error.to_string() } })).await
        }
        Ok(mut events) => {
            connection
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                .await?;
            let mut calls = 0;
            while let Some(event) = events.next().await {
                for chunk in chunks(event, &mut calls) {
                    connection.write_all(format!("data: {chunk}\n\n").as_bytes()).await?;
                    connection.flush().await?;
                }
            }
            connection.write_all(b"data: [DONE]\n\n").await?;
            connection.shutdown().await
        }
    }
}

async fn respond(connection: &mut BufReader<TcpStream>, status: u16, body: Value) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(format!("{head}{body}").as_bytes()).await?;
    connection.shutdown().await
}

/// One event as chunks of the wire. Arguments come in two pieces, as real models send them.
fn chunks(event: StreamEvent, calls: &mut usize) -> Vec<Value> {
    let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let finish = |reason: &str| json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    match event {
        StreamEvent::Text { value } => vec![delta(json!({ "content": value }))],
        StreamEvent::ToolCall { tool_name, call_id, arguments } => {
            let index = *calls;
            *calls += 1;
            // What is not JSON was written as it is.
            let text = match arguments {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
            let (first, second) = text.split_at(half);
            let piece = |arguments: &str| {
                delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }))
            };
            let opening = json!({ "tool_calls": [{
                "index": index, "id": call_id, "type": "function",
                "function": { "name": tool_name, "arguments": "" },
            }] });
            vec![delta(opening), piece(first), piece(second)]
        }
        StreamEvent::Usage(usage) => vec![json!({ "choices": [], "usage": {
            "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
        } })],
        StreamEvent::Error { error } => vec![json!({ "error": { "message": error.to_string() } })],
        StreamEvent::End { .. } => vec![finish(if *calls > 0 { "tool_calls" } else { "stop" })],
        StreamEvent::ToolResult { .. } | StreamEvent::Opaque { .. } => Vec::new(),
    }
}

/// A request of the wire as one of the contract.
fn options(body: &Value) -> Option<ChatOptions> {
    let mut messages = Vec::new();
    let (mut system, mut turn) = (String::new(), 0);
    for message in body.get("messages")?.as_array()? {
        let text = texts(message.get("content")).concat();
        match message.get("role")?.as_str()? {
            "system" | "developer" => system = text,
            "assistant" => {
                turn += 1;
                let calls =
                    message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let said = (!text.is_empty()).then_some(Block::Text { text });
                let blocks = said.into_iter().chain(calls.iter().filter_map(call)).collect();
                messages.push(Message { role: Role::Assistant, blocks });
            }
            "tool" => {
                let call_id = message.get("tool_call_id")?.as_str()?.to_owned();
                let block = Block::ToolResult { call_id, content: text, is_error: false };
                messages.push(Message { role: Role::User, blocks: vec![block] });
            }
            _ => {
                let blocks =
                    texts(message.get("content")).into_iter().map(|text| Block::Text { text }).collect();
                messages.push(Message { role: Role::User, blocks });
            }
        }
    }
    let tools = body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Some(ChatOptions {
        model: body.get("model")?.as_str()?.to_owned(),
        system,
        messages,
        tools: tools.iter().filter_map(tool).collect(),
        max_output_tokens: None,
        temperature: body.get("temperature").and_then(Value::as_f64),
        turn,
    })
}

/// A text, or the texts of a list of parts.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn call(value: &Value) -> Option<Block> {
    let function = value.get("function")?;
    let text = function.get("arguments")?.as_str()?;
    Some(Block::ToolCall {
        call_id: value.get("id")?.as_str()?.to_owned(),
        tool_name: function.get("name")?.as_str()?.to_owned(),
        arguments: serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    })
}

fn tool(value: &Value) -> Option<ModelTool> {
    let function = value.get("function")?;
    Some(ModelTool {
        name: ToolName::new(function.get("name")?.as_str()?).ok()?,
        description: texts(function.get("description")).concat(),
        input_schema: function.get("parameters").cloned().unwrap_or(Value::Null),
    })
}
