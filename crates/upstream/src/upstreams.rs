//! The servers of a kernel: started when they are first called, kept while they are used, and restarted with growing
//! pauses when they fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tgp_audit::RecordedDecision;
use tgp_contract::{Code, ToolError, background};
use tgp_fs::real_place;
use tgp_text::nearest_names;
use tokio::sync::{Mutex, Semaphore};

use crate::connection::{
    Account, CallEnd, Caller, Connection, Login, ServerPlace, StdioProcess, failed, forget_login,
    is_login_error,
};
use crate::module::UpstreamModule;
use crate::shared_pins;
use crate::variables::{ServerValues, ValueProvider};
use crate::{Pin, ServerDefinition, UpstreamStore, UpstreamTool, check_server_name};

/// Calls of one server at a time; the others wait for their turn.
const PARALLEL_CALLS: usize = 8;
/// The pause after a first failure, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often the home of a server is removed until it is gone.
const REMOVAL_ATTEMPTS: usize = 10;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);
/// A server that is not called for so long is ended.
const IDLE_LIFE: Duration = Duration::from_secs(300);

/// What the servers of a kernel need.
pub struct UpstreamOptions {
    pub store: UpstreamStore,
    /// Below it each server has its home.
    pub homes: PathBuf,
    /// Where agents and tools write: programs are not looked for there.
    pub writable: Vec<PathBuf>,
    pub values: Arc<dyn ValueProvider>,
    /// A file of the tool repository that names definitions; others of the same servers are not called.
    pub shared_pins: Option<PathBuf>,
}

/// The servers of a kernel.
pub struct Upstreams {
    options: UpstreamOptions,
    servers: std::sync::Mutex<BTreeMap<String, Arc<Server>>>,
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Upstreams").field("store", &self.options.store).finish_non_exhaustive()
    }
}

/// One server, whether it runs or not.
struct Server {
    state: Mutex<ServerState>,
    calls: Semaphore,
}

#[derive(Default)]
struct ServerState {
    running: Option<Running>,
    /// Failures since the last call that was answered, and when it may be started again.
    failures: u32,
    not_before: Option<Instant>,
    why: String,
}

struct Running {
    connection: Connection,
    /// What it was started from: another definition needs another process.
    definition: ServerDefinition,
    used: Instant,
}

impl Upstreams {
    #[must_use]
    pub fn new(options: UpstreamOptions) -> Self {
        Self { options, servers: std::sync::Mutex::default() }
    }

    #[must_use]
    pub fn store(&self) -> &UpstreamStore {
        &self.options.store
    }

    /// What a tool gets that imports `mcp:NAME`: the tools that a person has seen. Nothing is started for it.
    ///
    /// # Errors
    /// `ENOTFOUND` for a server that was not added; when its files cannot be used.
    pub fn module(&self, server: &str) -> Result<UpstreamModule, ToolError> {
        self.check_place()?;
        let store = &self.options.store;
        let pin = match (store.definition(server)?, store.pin(server)?) {
            (Some(_), Some(pin)) => pin,
            (Some(_), None) => return Err(unpinned(server)),
            (None, _) => return Err(self.unknown(server)),
        };
        Ok(UpstreamModule::new(server, pin))
    }

    /// Names the definitions of a server, as its user has seen them, in the tool repository.
    ///
    /// # Errors
    /// `ECONFIG` outside of a project; when the file cannot be written.
    pub fn share_pin(&self, server: &str, pin: &Pin) -> Result<(), ToolError> {
        match &self.options.shared_pins {
            Some(shared) => shared_pins::keep(shared, server, pin),
            None => Err(ToolError::new(Code::Config, "this folder has no tool repository")
                .help("run it in a project, or make this folder one with `tgp init`")),
        }
    }

    /// The definition and the pinned tool of a call. Nothing is started for it.
    ///
    /// # Errors
    /// As [`Self::module`]; `ENOTFOUND` for a tool that the server does not have.
    pub fn find(&self, server: &str, tool: &str) -> Result<(ServerDefinition, UpstreamTool), ToolError> {
        self.check_place()?;
        let Some(definition) = self.options.store.definition(server)? else {
            return Err(self.unknown(server));
        };
        let Some(pin) = self.options.store.pin(server)? else { return Err(unpinned(server)) };
        match pin.tool(tool) {
            Some(found) => {
                if let Some(shared) = &self.options.shared_pins {
                    shared_pins::check(shared, server, tool, &found.hash())?;
                }
                Ok((definition, found.clone()))
            }
            None => Err(no_tool(server, tool, &pin)),
        }
    }

    /// Calls a tool that is as it was pinned.
    ///
    /// # Errors
    /// `EPIN` when the server describes it differently now, `EUPSTREAM` when the server fails or says that the call did.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        let known = self.server(server);
        // It is never closed.
        let _turn = known.calls.acquire().await;
        let caller = self.caller(&known, server, tool).await?;
        let ended = caller.call(tool, arguments).await;
        let mut state = known.state.lock().await;
        match ended {
            CallEnd::Answered(value) => {
                state.answered();
                Ok(value)
            }
            CallEnd::Refused(error) => {
                state.answered();
                // What the server did before it failed is not undone, and not known.
                Err(error.of_unknown_outcome())
            }
            CallEnd::Broken(error) => {
                state.failed(&error);
                Err(error)
            }
        }
    }

    /// Starts a server for a person who looks at it, and lists what it offers now.
    ///
    /// # Errors
    /// `EUPSTREAM` when it does not start.
    pub async fn inspect(
        &self,
        server: &str,
        definition: &ServerDefinition,
    ) -> Result<Vec<UpstreamTool>, ToolError> {
        definition.check()?;
        self.check_place()?;
        // What a server that is not added has left behind must not meet the one that is.
        let home = match self.options.store.definition(server)? {
            Some(known) if known == *definition => self.home(server),
            _ => self.options.homes.join(format!(".new-{}-{server}", std::process::id())),
        };
        let connection = self.connect(server, definition, &home).await;
        let tools = connection.map(|connection| connection.tools().to_vec());
        if home != self.home(server) {
            remove_home(home).await;
        }
        tools
    }

    /// Keeps a server that its user has looked at, once the decision is in the audit. It begins with an empty home.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn keep(
        &self,
        server: &str,
        definition: &ServerDefinition,
        pin: &Pin,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        self.check_place()?;
        remove_home(self.home(server)).await;
        self.options.store.keep(server, definition, pin, decision)
    }

    /// Forgets a server with its login and its home; false when there was none.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub async fn remove(&self, server: &str) -> Result<bool, ToolError> {
        let has_login = self.forget_login(server)?;
        let found = self.options.store.remove(server)?;
        remove_home(self.home(server)).await;
        Ok(found || has_login)
    }

    fn home(&self, server: &str) -> PathBuf {
        self.options.homes.join(server)
    }

    /// What is kept where agents write was not decided by a person.
    fn check_place(&self) -> Result<(), ToolError> {
        let is_below = |place: &PathBuf| {
            let place = real_place(place);
            self.options.writable.iter().any(|writable| place.starts_with(real_place(writable)))
        };
        let store = self.options.store.directory().to_owned();
        match [&store, &self.options.homes].into_iter().find(|place| is_below(place)) {
            None => Ok(()),
            Some(place) => {
                let message = format!(
                    "upstream servers are kept in `{}`, which is inside the project, where agents write",
                    place.display()
                );
                Err(ToolError::new(Code::Security, message)
                    .help("set TGP_HOME to a directory outside the project"))
            }
        }
    }

    /// A way to call a tool of a running server whose pin holds.
    async fn caller(&self, known: &Arc<Server>, server: &str, tool: &str) -> Result<Caller, ToolError> {
        let mut state = known.state.lock().await;
        let found = {
            let (store, server, tool) = (self.options.store.clone(), server.to_owned(), tool.to_owned());
            background::run(move || {
                let definition = store.definition(&server)?;
                let pin = store.pin(&server)?;
                Ok((definition, pin, tool))
            })
            .await?
        };
        let (Some(definition), Some(pin), tool) = found else { return Err(self.unknown(server)) };
        let Some(pinned) = pin.tool(&tool) else { return Err(no_tool(server, &tool, &pin)) };
        let is_usable =
            |running: &Running| running.definition == definition && !running.connection.is_closed();
        if !state.running.as_ref().is_some_and(is_usable) {
            state.running = None;
            state.may_start(server)?;
            match self.connect(server, &definition, &self.home(server)).await {
                Ok(connection) => {
                    state.running = Some(Running { connection, definition, used: Instant::now() });
                    tokio::spawn(end_when_idle(Arc::downgrade(known)));
                }
                Err(error) => {
                    state.failed(&error);
                    return Err(error);
                }
            }
        }
        let Some(running) = &mut state.running else { return Err(failed(server, "it is not running")) };
        running.used = Instant::now();
        if let Err(error) = running.connection.refresh().await {
            state.failed(&error);
            return Err(error);
        }
        let tools = running.connection.tools();
        match tools.iter().find(|now| now.name == pinned.name) {
            Some(now) if now.hash() == pinned.hash() => Ok(running.connection.caller()),
            Some(_) => Err(changed(server, &tool, "describes it differently now")),
            None => Err(changed(server, &tool, "does not offer it any more")),
        }
    }

    async fn connect(
        &self,
        server: &str,
        definition: &ServerDefinition,
        home: &Path,
    ) -> Result<Connection, ToolError> {
        match definition {
            ServerDefinition::Stdio(stdio) => {
                let values =
                    ServerValues::gather(server, &stdio.env, None, self.options.values.as_ref()).await?;
                let place = ServerPlace {
                    home: home.to_owned(),
                    path: self.options.values.variable("PATH"),
                    writable: self.options.writable.clone(),
                };
                let process = StdioProcess::start(server, stdio, &place, &values).await?;
                Connection::stdio(server, process, values).await
            }
            ServerDefinition::Http(http) => {
                let account = Account::new(server, &http.url, self.login_file(server))?;
                let (url, provider) = (account.url(), self.options.values.as_ref());
                let values = ServerValues::gather(server, &http.headers, Some(url), provider).await?;
                Connection::http(&account, values).await
            }
        }
    }

    /// Begins the login of a person to a server over HTTP, once the decision is in the audit. The person is redirected to
    /// `redirect_uri` in the end.
    ///
    /// # Errors
    /// `EVALIDATION` for a server that has no login; `EUPSTREAM` when it cannot begin.
    pub async fn login(
        &self,
        server: &str,
        definition: &ServerDefinition,
        redirect_uri: &str,
        decision: RecordedDecision,
    ) -> Result<Login, ToolError> {
        decision.take_effect();
        check_server_name(server)?;
        definition.check()?;
        let without = |why: &str| {
            Err(ToolError::new(
                Code::Validation,
                format!("the upstream server `{server}` has no login: {why}"),
            ))
        };
        match definition {
            ServerDefinition::Stdio(_) => without("it is a program of this machine"),
            ServerDefinition::Http(http)
                if http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) =>
            {
                without("its definition has an Authorization header")
            }
            ServerDefinition::Http(http) => {
                Account::new(server, &http.url, self.login_file(server))?.log_in(redirect_uri).await
            }
        }
    }

    /// Removes what a login has left; false when there was none.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn forget_login(&self, server: &str) -> Result<bool, ToolError> {
        check_server_name(server)?;
        forget_login(&self.login_file(server))
    }

    /// Whether an error of a server says that a person has to log in.
    #[must_use]
    pub fn needs_login(error: &ToolError) -> bool {
        is_login_error(error)
    }

    /// Beside the homes, where no server can read it.
    fn login_file(&self, server: &str) -> PathBuf {
        self.options.homes.join(format!("{server}.oauth.json"))
    }

    fn server(&self, name: &str) -> Arc<Server> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Server { state: Mutex::default(), calls: Semaphore::new(PARALLEL_CALLS) });
        Arc::clone(servers.entry(name.to_owned()).or_insert_with(new))
    }

    fn unknown(&self, server: &str) -> ToolError {
        let names = self.options.store.names().unwrap_or_default();
        let near = nearest_names(server, names.iter().map(String::as_str), 1);
        let help = match (near.first(), names.is_empty()) {
            (Some(near), _) => format!("did you mean `mcp:{near}`?"),
            (None, true) => format!("a person adds it with `tgp upstream add {server} -- COMMAND`"),
            (None, false) => format!("the servers of this user are {}", names.join(", ")),
        };
        ToolError::new(Code::NotFound, format!("the upstream server `{server}` is not known")).help(help)
    }
}

impl ServerState {
    fn answered(&mut self) {
        self.failures = 0;
        self.not_before = None;
        if let Some(running) = &mut self.running {
            running.used = Instant::now();
        }
    }

    /// The server is ended; it is started again after a pause that doubles with each failure.
    fn failed(&mut self, error: &ToolError) {
        self.running = None;
        if is_login_error(error) {
            // It works, and will do as soon as a person has logged in.
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Instant::now().checked_add(pause);
        self.why.clone_from(&error.message);
    }

    fn may_start(&self, server: &str) -> Result<(), ToolError> {
        let left = self.not_before.map(|until| until.saturating_duration_since(Instant::now()));
        let Some(left) = left.filter(|left| !left.is_zero()) else { return Ok(()) };
        let message = format!(
            "the upstream server `{server}` is not started again for {} ms, after {} failure{}",
            left.as_millis(),
            self.failures,
            if self.failures == 1 { "" } else { "s" }
        );
        Err(ToolError::new(Code::Upstream, message)
            .detail("lastFailure", self.why.as_str())
            .help(format!("wait; `tgp upstream test {server}` starts it and shows what it says")))
    }
}

/// Ends a server that is not used any more. A task of its own, since the next call may never come.
async fn end_when_idle(server: std::sync::Weak<Server>) {
    loop {
        tokio::time::sleep(IDLE_LIFE / 4).await;
        let Some(server) = server.upgrade() else { return };
        let mut state = server.state.lock().await;
        match &state.running {
            Some(running) if running.used.elapsed() < IDLE_LIFE && !running.connection.is_closed() => {}
            Some(_) if server.calls.available_permits() < PARALLEL_CALLS => {}
            _ => {
                state.running = None;
                return;
            }
        }
    }
}

/// What a server has written goes with it; links are removed and not followed.
async fn remove_home(home: PathBuf) {
    if !home.is_absolute() {
        return;
    }
    // Its processes may be about to end.
    for _ in 0..REMOVAL_ATTEMPTS {
        let place = home.clone();
        let removed = background::run(move || Ok(std::fs::remove_dir_all(place))).await;
        match removed {
            Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::debug!(target: "upstream", home = %home.display(), %error, "the home of a server stays");
                tokio::time::sleep(REMOVAL_PAUSE).await;
            }
            _ => return,
        }
    }
}

fn unpinned(server: &str) -> ToolError {
    ToolError::new(Code::Pin, format!("the tools of `{server}` have not been seen by a person"))
        .help(format!("a person looks at them with `tgp upstream pin {server}`"))
}

fn changed(server: &str, tool: &str, how: &str) -> ToolError {
    let message = format!(
        "`mcp:{server}/{tool}` was not called: the server {how}; a person looks at it with `tgp upstream pin {server}`"
    );
    ToolError::new(Code::Pin, message).detail("server", server)
}

fn no_tool(server: &str, tool: &str, pin: &Pin) -> ToolError {
    let names: Vec<&str> = pin.tools().map(|tool| tool.name.as_str()).collect();
    let near = nearest_names(tool, names.iter().copied(), 1);
    let help = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`tgp upstream show {server}` lists its tools"),
    };
    ToolError::new(
        Code::NotFound,
        format!("the upstream server `{server}` has no tool `{}`", tool.escape_debug()),
    )
    .help(help)
}
