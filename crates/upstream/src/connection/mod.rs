//! A server that is running, or reached over HTTP: what it is asked, and what it may answer.
//!
//! This is the boundary to a program of somebody else. Whatever it sends is counted before it is read, waited for with a
//! limit, and never trusted.

mod answer;
mod flow;
mod http;
mod network;
mod oauth;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ClientConfig, JsonObject, PaginatedRequestParams};
use rmcp::service::{NotificationContext, RunningService, ServiceError, serve_client};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, RoleClient};
use tgp_contract::{Code, ToolError};
use tgp_text::{truncate, visible_json};
use tokio::time::timeout;

use flow::Flow;
pub use oauth::Login;
pub(crate) use oauth::{Account, forget as forget_login};
pub(crate) use stdio::{ServerPlace, StdioProcess};

use crate::UpstreamTool;
use crate::variables::ServerValues;

/// How long a server has to start and to list its tools. A package that is installed by then takes a while.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a call may take. The wall clock of the run that makes it is usually shorter.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Tools of one server, pages of their list, and bytes of one definition.
const MAX_TOOLS: usize = 512;
const MAX_PAGES: usize = 64;
const MAX_TOOL_BYTES: usize = 64 << 10;
const MAX_TOOL_NAME: usize = 128;
/// Characters of a server's own words in a message, and of those that are searched for secrets before they are cut.
const MAX_QUOTED: usize = 500;
const MAX_CLEANED: usize = 16 << 10;

/// The detail of an error that says that a person has to log in.
const LOGIN: &str = "needsLogin";

/// A connection to a server.
pub(crate) struct Connection {
    server: String,
    service: RunningService<RoleClient, Listener>,
    flow: Arc<Flow>,
    /// `None` for a server over HTTP.
    process: Option<StdioProcess>,
    values: ServerValues,
    tools: Vec<UpstreamTool>,
}

/// What the server says of its own accord.
#[derive(Clone, Debug, Default)]
struct Listener {
    tools_changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info.name = "tgp".to_owned();
        config.client_info.version = env!("CARGO_PKG_VERSION").to_owned();
        config
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }
}

impl Connection {
    /// Starts a program and lists its tools.
    ///
    /// # Errors
    /// `EUPSTREAM` with the last lines that it wrote.
    pub(crate) async fn stdio(
        server: &str,
        mut process: StdioProcess,
        values: ServerValues,
    ) -> Result<Self, ToolError> {
        let flow = Arc::new(Flow::default());
        let Some((output, input)) = process.pipes() else {
            return Err(failed(server, "its input and output cannot be used"));
        };
        let pipes = (flow::FlowReader::new(output, Arc::clone(&flow)), input);
        Self::begin(server, pipes, flow, Some(process), values).await
    }

    /// Reaches a server over HTTP and lists its tools.
    ///
    /// # Errors
    /// `EUPSTREAM` when it does not answer as it should, or needs a login.
    pub(crate) async fn http(account: &Account, values: ServerValues) -> Result<Self, ToolError> {
        let flow = Arc::new(Flow::default());
        let transport = http::transport(account, &values, Arc::clone(&flow)).await?;
        Self::begin(account.server(), transport, flow, None, values).await
    }

    async fn begin<T, E, A>(
        server: &str,
        transport: T,
        flow: Arc<Flow>,
        process: Option<StdioProcess>,
        values: ServerValues,
    ) -> Result<Self, ToolError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let begun = async {
            let service = serve_client(Listener::default(), transport)
                .await
                .map_err(|error| ConnectionFailure::from(&error))?;
            let tools = list(&service, &values).await?;
            Ok::<_, ConnectionFailure>((service, tools))
        };
        match within(START_TIMEOUT, &flow, begun).await {
            Ok((service, tools)) => {
                Ok(Self { server: server.to_owned(), service, flow, process, values, tools })
            }
            Err(why) => {
                Err(explain(server, &why.when("it could not be started"), process.as_ref(), &values).await)
            }
        }
    }

    /// The tools as the server has listed them last.
    pub(crate) fn tools(&self) -> &[UpstreamTool] {
        &self.tools
    }

    /// Lists the tools again when the server has said that they changed.
    pub(crate) async fn refresh(&mut self) -> Result<(), ToolError> {
        if !self.service.service().tools_changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        self.flow.begin_call();
        match within(START_TIMEOUT, &self.flow, list(&self.service, &self.values)).await {
            Ok(tools) => {
                self.tools = tools;
                Ok(())
            }
            Err(why) => Err(self.explain(&why).await),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed() || self.flow.why().is_some()
    }

    /// A way to call tools that others can use at the same time.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            server: self.server.clone(),
            peer: self.service.peer().clone(),
            flow: Arc::clone(&self.flow),
            values: self.values.clone(),
            words: self.process.as_ref().map(StdioProcess::last_words),
        }
    }

    async fn explain(&self, why: &ConnectionFailure) -> ToolError {
        explain(&self.server, why, self.process.as_ref(), &self.values).await
    }
}

/// Calls tools of a connection.
pub(crate) struct Caller {
    server: String,
    peer: rmcp::Peer<RoleClient>,
    flow: Arc<Flow>,
    values: ServerValues,
    words: Option<stdio::LastWords>,
}

/// How a call ended.
pub(crate) enum CallEnd {
    Answered(serde_json::Value),
    /// The server says that the call failed.
    Refused(ToolError),
    /// The server did not answer as it should: it is not used any more.
    Broken(ToolError),
}

impl Caller {
    pub(crate) async fn call(&self, tool: &str, arguments: JsonObject) -> CallEnd {
        self.flow.begin_call();
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        let calling = async {
            match self.peer.call_tool_once(params).await {
                Ok(response) => Ok(Ok(response)),
                Err(ServiceError::McpError(error)) => Ok(Err(error)),
                Err(error) => Err(ConnectionFailure::from(&error)),
            }
        };
        let why = match within(CALL_TIMEOUT, &self.flow, calling).await {
            Ok(Ok(response)) => return answer::end_of(&self.server, tool, response, &self.values).await,
            Ok(Err(error)) => {
                let said = quoted(&self.values.clean(&truncate(&error.message, MAX_CLEANED)).await);
                let message = format!("`mcp:{}/{tool}` was refused by the server: {said}", self.server);
                return CallEnd::Refused(ToolError::new(Code::Upstream, message));
            }
            Err(why) => why,
        };
        let words = match &self.words {
            Some(words) => words.text().await,
            None => String::new(),
        };
        let error = told(&self.server, &why, &words, &self.values).await;
        // A server that asks for a login has not done anything.
        CallEnd::Broken(if why.is_login { error } else { error.of_unknown_outcome() })
    }
}

/// Why a server could not be used.
pub(crate) struct ConnectionFailure {
    text: String,
    /// Whether a person has to log in.
    is_login: bool,
}

impl ConnectionFailure {
    fn login(text: &str) -> Self {
        Self { text: text.to_owned(), is_login: true }
    }

    fn when(self, what: &str) -> Self {
        match self.is_login {
            true => self,
            false => Self::from(format!("{what}: {}", self.text)),
        }
    }
}

impl From<String> for ConnectionFailure {
    fn from(text: String) -> Self {
        Self { text, is_login: false }
    }
}

/// Waits for an answer as long as it may take, and as long as the server stays within the limits of its flow.
async fn within<T>(
    limit: Duration,
    flow: &Flow,
    work: impl Future<Output = Result<T, ConnectionFailure>>,
) -> Result<T, ConnectionFailure> {
    let ended = tokio::select! {
        done = timeout(limit, work) => done,
        why = flow.ended() => return Err(ConnectionFailure::from(why.to_owned())),
    };
    match ended {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(why)) => Err(flow.why().map_or(why, |limit| ConnectionFailure::from(limit.to_owned()))),
        Err(_) => Err(ConnectionFailure::from(format!("it did not answer within {} s", limit.as_secs()))),
    }
}

/// All tools of a server, within limits.
async fn list(
    service: &RunningService<RoleClient, Listener>,
    values: &ServerValues,
) -> Result<Vec<UpstreamTool>, ConnectionFailure> {
    let mut tools: Vec<UpstreamTool> = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = service.list_tools(Some(page)).await.map_err(|error| ConnectionFailure::from(&error))?;
        for tool in &listed.tools {
            let tool = UpstreamTool::from(tool);
            check(&tool)?;
            if values.are_in(&tool) {
                return Err(ConnectionFailure::from("the definition of a tool holds a secret".to_owned()));
            }
            // Of two tools with one name, the first is the one that can be called.
            if tools.iter().all(|known| known.name != tool.name) {
                tools.push(tool);
            }
            if tools.len() > MAX_TOOLS {
                return Err(ConnectionFailure::from(format!("it has more than {MAX_TOOLS} tools")));
            }
        }
        cursor = listed.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(ConnectionFailure::from(format!("its list of tools has more than {MAX_PAGES} pages")))
}

fn check(tool: &UpstreamTool) -> Result<(), String> {
    let name = quoted(&tool.name);
    let is_plain = |letter: char| letter.is_ascii_graphic();
    if tool.name.is_empty() || tool.name.len() > MAX_TOOL_NAME || !tool.name.chars().all(is_plain) {
        return Err(format!("a tool has the name {name}, which cannot be used"));
    }
    let bytes = serde_json::to_vec(tool).map_or(usize::MAX, |text| text.len());
    match bytes <= MAX_TOOL_BYTES {
        true => Ok(()),
        false => Err(format!("the definition of {name} has more than {} KiB", MAX_TOOL_BYTES >> 10)),
    }
}

/// Words of a server: quoted, cut, and without letters that deceive.
pub(crate) fn quoted(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("\"{}\"", visible_json(&truncate(&one_line, MAX_QUOTED)))
}

/// The same for the end of a longer text.
fn quoted_end(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let left_out = one_line.chars().count().saturating_sub(MAX_QUOTED);
    let end: String = one_line.chars().skip(left_out).collect();
    let mark = if left_out > 0 { "…" } else { "" };
    format!("\"{mark}{}\"", visible_json(&end))
}

pub(crate) fn failed(server: &str, why: &str) -> ToolError {
    ToolError::new(Code::Upstream, format!("the upstream server `{server}` failed: {why}"))
        .help(format!("`tgp upstream test {server}` starts it and shows what it says"))
}

/// A person has to log in before the server can be used.
fn needs_login(server: &str, why: &str) -> ToolError {
    ToolError::new(Code::Upstream, format!("the upstream server `{server}` cannot be used: {why}"))
        .detail(LOGIN, true)
        .help(format!("a person logs in with `tgp upstream login {server}`"))
}

/// Whether an error says that a person has to log in.
pub(crate) fn is_login_error(error: &ToolError) -> bool {
    error.code == Code::Upstream && error.details.contains_key(LOGIN)
}

async fn explain(
    server: &str,
    why: &ConnectionFailure,
    process: Option<&StdioProcess>,
    values: &ServerValues,
) -> ToolError {
    let words = match process {
        Some(process) => process.last_words().text().await,
        None => String::new(),
    };
    told(server, why, &words, values).await
}

/// A failure with the last words of the server, without the secrets that it was given.
async fn told(server: &str, why: &ConnectionFailure, words: &str, values: &ServerValues) -> ToolError {
    if why.is_login {
        return needs_login(server, &why.text);
    }
    // Before it is cut: a part of a secret is not recognised.
    let why = values.clean(&truncate(&why.text, MAX_CLEANED)).await;
    let why = truncate(&why, MAX_QUOTED);
    match words.trim() {
        "" => failed(server, &why),
        // The last of them say why it ended.
        words => failed(server, &format!("{why}; it wrote {}", quoted_end(&values.clean(words).await))),
    }
}
