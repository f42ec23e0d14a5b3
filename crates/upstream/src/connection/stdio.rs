//! A server as a process in the jail.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{Code, ToolError, background};
use tgp_fetch::proxy_environment;
use tgp_fs::append_log::{at, private_directory};
use tgp_fs::{real_place, search_path};
use tgp_jail::{
    FileAccess, JailError, JailListener, NetworkAccess, PathAccess, PathRule, Profile, ResourceLimits,
    jailed_command, jailed_command_with_listener,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::failed;
use super::network::{PROXY_PORT, ServerNetwork};
use crate::definition::StdioServer;
use crate::variables::ServerValues;

/// Bytes of what a server writes to its standard error that are kept: the last ones say why it ended.
const KEPT_BYTES: usize = 4 << 10;
/// How long the last words of a server that has ended may be on their way.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// What a server and its children may use.
const MAX_PROCESSES: u64 = 512;
const MAX_DATA_BYTES: u64 = 4 << 30;
const MAX_FILE_BYTES: u64 = 1 << 30;
const MAX_OPEN_FILES: u64 = 1024;

/// What keeps a server from other processes and from the network.
const NEEDED_NAMESPACES: [&str; 3] = ["mount", "network", "pid"];

/// Where a server lives, and where programs are looked for.
#[derive(Clone, Debug)]
pub(crate) struct ServerPlace {
    /// Its home, its working directory and its place for temporary files. It keeps what it writes there.
    pub(crate) home: PathBuf,
    /// `PATH` of the user.
    pub(crate) path: Option<String>,
    /// Where agents write: no program is found there.
    pub(crate) writable: Vec<PathBuf>,
}

/// The last lines that a server has written to its standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords(Arc<Mutex<KeptWords>>);

#[derive(Debug, Default)]
struct KeptWords {
    bytes: VecDeque<u8>,
    /// Whether something before them is gone: then the first word may be a part of one, which hides what it was.
    is_cut: bool,
}

impl LastWords {
    pub(crate) async fn text(&self) -> String {
        // A server that ended a moment ago may have said why in the same moment.
        tokio::time::sleep(LAST_WORDS).await;
        let mut kept = self.0.lock().await;
        let is_cut = kept.is_cut;
        let text = String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned();
        match text.find(char::is_whitespace).filter(|_| is_cut) {
            Some(end) => text.get(end..).unwrap_or_default().to_owned(),
            None if is_cut => String::new(),
            None => text,
        }
    }

    /// A remark of the kernel among them.
    pub(super) async fn add(&self, remark: &str) {
        self.keep(format!("[{remark}]\n").as_bytes()).await;
    }

    async fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().await;
        kept.bytes.extend(bytes);
        let excess = kept.bytes.len().saturating_sub(KEPT_BYTES);
        kept.is_cut |= excess > 0;
        kept.bytes.drain(..excess);
    }

    async fn listen(self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            self.keep(buffer.get(..read).unwrap_or_default()).await;
        }
    }
}

/// A running server. It ends, with everything that it has started, when this is dropped, and when the kernel ends.
pub(crate) struct StdioProcess {
    child: Child,
    words: LastWords,
    /// Serves the hosts that the definition lists. Its tunnels end with it.
    _network: Option<ServerNetwork>,
}

impl StdioProcess {
    /// # Errors
    /// `EUPSTREAM` when the program is not found or does not start, `ESECURITY` where the jail cannot hold it.
    pub(crate) async fn start(
        server: &str,
        definition: &StdioServer,
        place: &ServerPlace,
        values: &ServerValues,
    ) -> Result<Self, ToolError> {
        let hosts = definition.hosts.clone();
        let (name, definition, place) = (server.to_owned(), definition.clone(), place.clone());
        let variables: Vec<(String, String)> =
            values.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let jailed = background::run(move || jailed(&name, &definition, &place, variables)).await?;
        let (command, listener) = jailed;
        let mut command = Command::from(command);
        let mut child =
            command.kill_on_drop(true).spawn().map_err(|error| failed(server, &error.to_string()))?;
        let words = LastWords::default();
        let network = match listener {
            None => None,
            Some(listener) => Some(ServerNetwork::serve(server, listener, &hosts, &words)?),
        };
        if let Some(stream) = child.stderr.take() {
            tokio::spawn(words.clone().listen(stream));
        }
        Ok(Self { child, words, _network: network })
    }

    pub(crate) fn pipes(&mut self) -> Option<(ChildStdout, ChildStdin)> {
        self.child.stdout.take().zip(self.child.stdin.take())
    }

    pub(crate) fn last_words(&self) -> LastWords {
        self.words.clone()
    }
}

/// The command with everything that it may see: the system's programs, its home, and what the definition lists.
fn jailed(
    server: &str,
    definition: &StdioServer,
    place: &ServerPlace,
    variables: Vec<(String, String)>,
) -> Result<(std::process::Command, Option<JailListener>), ToolError> {
    check_machine()?;
    let Some((program, arguments)) = definition.command.split_first() else {
        return Err(failed(server, "its definition names no command"));
    };
    private_directory().recursive(true).create(&place.home).map_err(at(&place.home))?;
    check_paths(definition).map_err(|why| failed(server, &why))?;
    let profile = profile(definition, place);
    let has_network = profile.network != NetworkAccess::None;
    let is_writable =
        |path: &Path| place.writable.iter().any(|writable| real_place(path).starts_with(writable));
    let search = place.path.clone().unwrap_or_default();
    let entries = search_path(search.as_ref(), is_writable);
    let program = find_program(program, &entries, &profile).map_err(|why| failed(server, &why))?;
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .current_dir(&place.home)
        .env_clear()
        .env("HOME", &place.home)
        .env("TMPDIR", &place.home)
        .env("PATH", std::env::join_paths(&entries).unwrap_or_default())
        .env("LANG", "C.UTF-8")
        .envs(proxy_environment(PROXY_PORT).into_iter().filter(|_| has_network))
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let jailed = if has_network {
        jailed_command_with_listener(&profile, command, PROXY_PORT)
            .map(|(command, line)| (command, Some(line)))
    } else {
        jailed_command(&profile, command).map(|command| (command, None))
    };
    jailed.map_err(|error| match error {
        JailError::Path { path, .. } => {
            failed(server, &format!("`{}`, which its definition lists, cannot be opened", path.display()))
        }
        other => failed(server, &other.to_string()),
    })
}

/// The paths of a definition are those that a person has seen: none of them leads elsewhere by now, and none can be made to
/// by the server itself.
fn check_paths(definition: &StdioServer) -> Result<(), String> {
    for path in definition.read.iter().chain(&definition.write) {
        let is_same = path.canonicalize().is_ok_and(|place| place == *path);
        if !is_same {
            return Err(format!(
                "`{}`, which its definition lists, is not there or leads elsewhere",
                path.display()
            ));
        }
        if let Some(outer) = definition.write.iter().find(|outer| *outer != path && path.starts_with(outer)) {
            return Err(format!(
                "its definition lists `{}` inside of `{}`, which it changes; list one of them",
                path.display(),
                outer.display()
            ));
        }
    }
    Ok(())
}

/// What the server may use.
fn profile(definition: &StdioServer, place: &ServerPlace) -> Profile {
    let mut profile = Profile::process(&place.home);
    profile.limits = ResourceLimits {
        processes: Some(MAX_PROCESSES),
        data: Some(MAX_DATA_BYTES),
        file_size: Some(MAX_FILE_BYTES),
        open_files: Some(MAX_OPEN_FILES),
        ..ResourceLimits::default()
    };
    if !definition.hosts.is_empty() {
        profile.network = NetworkAccess::Loopback;
    }
    for path in &definition.read {
        profile = profile.allow(path, PathAccess::ReadExecute);
    }
    for path in &definition.write {
        profile = profile.allow(path, PathAccess::ReadWrite);
    }
    profile
}

/// The first program of this name that the server may run. Others are passed over, as a search inside the jail would do.
fn find_program(name: &str, entries: &[PathBuf], profile: &Profile) -> Result<PathBuf, String> {
    let candidates: Vec<PathBuf> = match name.contains('/') {
        true => vec![PathBuf::from(name)],
        false => entries.iter().map(|entry| entry.join(name)).filter(|path| path.is_file()).collect(),
    };
    let may_run = |path: &PathBuf| {
        let FileAccess::Paths(rules) = &profile.files else { return true };
        let place = real_place(path);
        let covers =
            |rule: &PathRule| rule.access != PathAccess::Read && place.starts_with(real_place(&rule.path));
        rules.iter().any(covers)
    };
    if let Some(found) = candidates.iter().find(|path| may_run(path)) {
        return Ok(found.clone());
    }
    Err(match candidates.first() {
        None => format!("the program `{name}` is not in PATH, apart from where agents write"),
        Some(path) => format!(
            "the program `{}` is outside what it may read; list its folder with `--read`",
            real_place(path).display()
        ),
    })
}

/// A server is a program of somebody else: it runs only where it can be held.
fn check_machine() -> Result<(), ToolError> {
    let lock = tgp_jail::probe();
    let has = |name: &str| lock.namespaces.iter().any(|entered| entered == name);
    if lock.seccomp && lock.landlock_abi.is_some() && NEEDED_NAMESPACES.into_iter().all(has) {
        return Ok(());
    }
    let missing = lock.missing.first().map(String::as_str).unwrap_or_default();
    let message = format!("an upstream server cannot be started on this machine. {missing}");
    Err(ToolError::new(Code::Capability, message).help("`tgp doctor` shows what this machine lacks"))
}
