//! Where commands run: from an order to an end, bounded in number, and ended with their caller.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::{ChronicleLayout, Code, FileFilter, RelativePath, Root, ToolError, background};
use tgp_fetch::proxy_environment;
use tgp_jail::{CacheMount, CommandExit, CommandSpec, JailError, KillHandle, NetworkAccess, Template};
use tokio::sync::Semaphore;

use super::{ProcessOptions, protected_paths};
use tgp_router::Invocation;

/// Commands at a time. Each may use as much memory as its template gives it; those beyond wait.
const PARALLEL: usize = 4;

/// Variables that keep tools from trying a network that is not there: each would wait for names to be resolved and try
/// again, and the command would end at its deadline without an error that says why.
const OFFLINE: [(&str, &str); 9] = [
    ("npm_config_offline", "true"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("YARN_ENABLE_NETWORK", "0"),
    ("PIP_NO_INDEX", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("UV_OFFLINE", "1"),
    ("CARGO_NET_OFFLINE", "true"),
    ("GOPROXY", "off"),
    ("GOTOOLCHAIN", "local"),
];

/// Starts commands for one project.
pub(super) struct CommandRunner {
    pub(super) options: ProcessOptions,
    places: Arc<Semaphore>,
}

/// What a call wants to run.
pub(super) struct CommandRequest {
    pub(super) template: Template,
    /// For `sh -c`.
    pub(super) command: String,
    pub(super) directory: RelativePath,
    pub(super) network: Network,
    pub(super) stdin: Vec<u8>,
    pub(super) deadline_ms: Option<u64>,
    /// Build output that may be written straight to the project, see [`CommandRunner::free_output`].
    pub(super) direct: Vec<PathBuf>,
    pub(super) environment: Vec<(String, String)>,
    /// What outlives the command, see `test_cache`.
    pub(super) cache: Option<CacheMount>,
    /// What the gates let the call see and touch.
    pub(super) filter: Option<FileFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    OfTemplate,
    Granted,
    /// A proxy of the kernel on this port, and nothing else.
    Proxy(u16),
}

impl CommandRunner {
    pub(super) fn new(options: ProcessOptions) -> Self {
        Self { options, places: Arc::new(Semaphore::new(PARALLEL)) }
    }

    /// Runs a command to its end. Dropping the future ends every process of it.
    pub(super) async fn run(self: &Arc<Self>, wanted: CommandRequest) -> Result<CommandExit, ToolError> {
        let closed = |_| ToolError::new(Code::Internal, "this kernel starts no commands any more");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let yard = Arc::clone(self);
        let start = move || tgp_jail::start(&yard.order(wanted)?).map_err(|error| refused(&error));
        let started = std::time::Instant::now();
        let process = background::run(start).await?;
        let _guard = KillOnDrop(process.killer());
        let finished = background::run_bounded(move || {
            let _place = place;
            process.wait().map_err(|error| refused(&error))
        })
        .await;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &finished {
            Ok(finished) => tracing::debug!(target: "jail", ms, "command ended: {:?}", finished.exit),
            Err(error) => tracing::warn!(target: "jail", ms, "{}", error.message),
        }
        finished
    }

    /// The same for a command whose network is a proxy. `serve` is given the listener of the proxy, and what it returns ends the
    /// command.
    pub(super) async fn run_served<F>(
        self: &Arc<Self>,
        wanted: CommandRequest,
        port: u16,
        serve: impl FnOnce(TcpListener) -> F,
    ) -> Result<CommandExit, ToolError>
    where
        F: Future<Output = ToolError>,
    {
        let closed = |_| ToolError::new(Code::Internal, "this kernel starts no commands any more");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let runner = Arc::clone(self);
        let start = move || {
            let order = runner.order(wanted)?;
            tgp_jail::start_with_listener(&order, port).map_err(|error| refused(&error))
        };
        let (process, listener) = background::run(start).await?;
        let guard = KillOnDrop(process.killer());
        let finished = background::run_bounded(move || {
            let _place = place;
            process.wait().map_err(|error| refused(&error))
        });
        tokio::pin!(finished);
        tokio::select! {
            finished = &mut finished => finished,
            error = serve(listener) => {
                drop(guard);
                // The call has ended when no process of it is left.
                let _ = finished.await;
                Err(error)
            }
        }
    }

    /// Directories for build output that a command may write straight to, `made` ones and those of the configuration. A
    /// directory in which a gate may have something against a file is not among them: there the command writes to its
    /// layer, and every file is judged.
    pub(super) async fn free_output(&self, invocation: Invocation<'_>, made: &[String]) -> Vec<PathBuf> {
        let mut free = Vec::new();
        for (path, make) in made
            .iter()
            .map(|name| (PathBuf::from(name), true))
            .chain(self.options.direct.iter().map(|path| (path.clone(), false)))
        {
            let Some(directory) = path.to_str().and_then(|text| RelativePath::new(text).ok()) else {
                continue;
            };
            // Nothing that holds chronicles is written unjudged.
            let holds_chronicles = directory.is_root() || ChronicleLayout::Tree.reserves(&directory);
            if holds_chronicles
                || invocation.router.may_restrict_below(invocation, Root::Project, &directory).await
            {
                continue;
            }
            if make {
                // In a layer it would be thrown away with every run, and the next one would build everything again.
                let _ = std::fs::create_dir(self.options.project.join(&path));
            }
            if is_plain(&self.options.project, &path) {
                free.push(path);
            }
        }
        free.sort();
        free.dedup();
        free
    }

    fn order(&self, wanted: CommandRequest) -> Result<CommandSpec, ToolError> {
        let options = &self.options;
        std::fs::create_dir_all(&options.scratch).map_err(|error| {
            ToolError::new(Code::Internal, format!("no place for the command's layer: {error}"))
                .help("set TGP_CACHE_DIR to a directory that can be written, outside the project")
        })?;
        let protected = protected_paths::find(options, wanted.filter.as_ref())?;
        let mut order = wanted.template.order("/bin/sh", &options.project, &options.scratch);
        order.arguments = vec!["-c".into(), wanted.command.into()];
        order.directory = PathBuf::from(wanted.directory.as_str());
        order.environment.clone_from(&options.environment);
        // An installation may have made it since the kernel started.
        let has_home = options.environment.iter().any(|(name, _)| name == "CARGO_HOME");
        if let Some(home) = options.cargo_home.as_ref().filter(|home| !has_home && home.is_dir()) {
            order.environment.push(("CARGO_HOME".to_owned(), home.display().to_string()));
        }
        order.environment.extend(wanted.environment);
        order.hidden = protected.hidden;
        order.read_only = protected.read_only;
        order.direct = wanted.direct;
        order.readable.clone_from(&options.readable);
        order.secrets.clone_from(&options.secrets);
        order.cache = wanted.cache;
        match wanted.network {
            Network::Granted => order.network = NetworkAccess::Unrestricted,
            Network::Proxy(port) => {
                order.network = NetworkAccess::Loopback;
                let proxy = proxy_environment(port).map(|(name, value)| (name.to_owned(), value));
                order.environment.splice(0..0, proxy);
            }
            Network::OfTemplate => {
                let offline = OFFLINE.map(|(name, value)| (name.to_owned(), value.to_owned()));
                order.environment.splice(0..0, offline);
            }
        }
        order.stdin = wanted.stdin;
        let caps = options.caps;
        let limits = &mut order.limits;
        limits.memory_bytes = caps.memory_bytes.unwrap_or(limits.memory_bytes);
        limits.processes = caps.processes.unwrap_or(limits.processes);
        limits.file_bytes = caps.file_bytes.unwrap_or(limits.file_bytes);
        limits.layer_bytes = caps.layer_bytes.unwrap_or(limits.layer_bytes);
        order.output_bytes = caps.output_bytes.unwrap_or(order.output_bytes);
        let longest = caps.deadline.unwrap_or(order.deadline);
        // A caller may have less time than the configuration gives, never more.
        order.deadline =
            wanted.deadline_ms.map_or(longest, |ms| longest.min(std::time::Duration::from_millis(ms)));
        Ok(order)
    }
}

/// What a tool prints of itself when it needs the network to install or download something, and how `package_install` names its
/// manager.
const NEEDS_NETWORK: [(&str, &str, Option<&str>); 8] = [
    ("code ENOTCACHED", "npm or npx wants a package that is not installed", Some("npm")),
    ("ERR_PNPM_NO_OFFLINE_", "pnpm wants a package that is not installed", None),
    ("No matching distribution found for", "pip wants a package that is not installed", Some("pip")),
    ("network was disabled", "uv wants a package that is not installed", None),
    ("but --offline was specified", "cargo wants a crate that was not downloaded", Some("cargo")),
    ("because --offline was specified", "cargo wants a crate that was not downloaded", Some("cargo")),
    (
        "you may want to run without the --offline flag",
        "cargo wants a crate that was not downloaded",
        Some("cargo"),
    ),
    ("module lookup disabled by GOPROXY=off", "go wants a module that was not downloaded", None),
];

/// What a command without network lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingPackage {
    pub(super) what: &'static str,
    manager: Option<&'static str>,
}

impl MissingPackage {
    /// What a command without network that failed lacks, by what it printed.
    pub(super) fn of(exit_code: Option<i32>, stdout: &str, stderr: &str) -> Option<Self> {
        if exit_code.is_none_or(|code| code == 0) {
            return None;
        }
        let printed = |text: &str| stderr.contains(text) || stdout.contains(text);
        let found = NEEDS_NETWORK.iter().find(|(text, ..)| printed(text));
        found.map(|(_, what, manager)| Self { what, manager: *manager })
    }

    /// How it comes to be there.
    pub(super) fn advice(self) -> String {
        match self.manager {
            Some(manager) => {
                format!(
                    "install it with `package_install` (`manager`: `{manager}`), or ask the user to install it"
                )
            }
            None => "ask the user to install it".to_owned(),
        }
    }
}

/// A directory on the way to which nothing is a link.
fn is_plain(project: &Path, path: &Path) -> bool {
    let mut whole = project.to_owned();
    path.components().all(|part| {
        whole.push(part);
        std::fs::symlink_metadata(&whole).is_ok_and(|metadata| metadata.is_dir())
    })
}

/// Ends a command whose caller has gone away; one that has ended is not touched.
struct KillOnDrop(KillHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Whether the system has the call and does not allow it to this process, or does not have it.
fn is_forbidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported)
}

fn refused(error: &JailError) -> ToolError {
    match error {
        JailError::Lacks { .. } => ToolError::new(Code::Capability, error.to_string())
            .help("commands run in a whole jail or not at all; `tgp doctor` says what this machine lacks"),
        JailError::Program { .. } => ToolError::new(Code::Capability, error.to_string())
            .help("commands need `/bin/sh`; install a shell"),
        JailError::Refused { source, .. } | JailError::Step { source, .. } if is_forbidden(source) => {
            ToolError::new(Code::Capability, format!("the jail cannot be built: {error}"))
                .help("commands run in a whole jail or not at all; `tgp doctor` says what this machine lacks")
        }
        _ => ToolError::new(Code::Internal, format!("the jail cannot be built: {error}"))
            .help("`tgp doctor` says what this machine lacks"),
    }
}
