//! Conversations with the remote: every one is a `git` process on its own scratch repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use git2::Oid;

use crate::anchor::RepositoryAnchor;
use crate::command::{CommandError, Finished, Invocation, run, words};
use crate::environment::{SSH_MESSAGES, environment};
use crate::explain::{Circumstances, RETRY_LATER, explain, needs_ssh_settings};
use crate::failure::blocking;
use crate::offline::Offline;
use crate::remote::{Endpoint, SshHost, Transport};
use crate::scratch::ScratchRepo;
use crate::secret::Sieve;
use crate::ssh_settings::SshSettings;
use crate::{GitEnv, GitFetchLimits, GitTimeouts};

/// A sentence for a person; servers send essays.
const MAX_WHY_CHARS: usize = 300;
/// A cause with the commands that remove it, which name the host several times.
const MAX_EXPLAINED_CHARS: usize = 1200;
/// What ssh writes about one connection.
const MAX_SSH_MESSAGES: u64 = 64 << 10;
/// `ssh -G` reads a few files.
const SSH_SETTINGS_TIME: Duration = Duration::from_secs(5);

/// The remote and the means to reach it.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) endpoint: Endpoint,
    pub(crate) sieve: Sieve,
    pub(crate) surroundings: GitEnv,
    pub(crate) timeouts: GitTimeouts,
    pub(crate) limits: GitFetchLimits,
    pub(crate) git: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) offline: Offline,
    pub(crate) anchors: RepositoryAnchor,
    /// The remote takes pushes only without the anchor.
    pub(crate) refuses_anchors: Arc<AtomicBool>,
    /// The remote has an anchor of this machine's chain that this machine does not know.
    pub(crate) is_disputed: Arc<AtomicBool>,
}

/// Why the remote could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Unreachable {
    /// One clean sentence.
    pub(crate) why: String,
    pub(crate) missing: Missing,
}

impl Unreachable {
    pub(crate) fn remote(why: impl Into<String>) -> Self {
        Self { why: why.into(), missing: Missing::Remote }
    }
}

/// What is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The remote, or the way to it.
    Remote,
    /// The program `git`.
    Git,
    /// Room here: what the remote has exceeds a limit.
    Room,
}

impl Network {
    /// Where the remote's branches are; a branch that it does not have is `None`.
    pub(crate) async fn ask(
        &self,
        branches: &[&str],
        limit: Duration,
    ) -> Result<Vec<Option<Oid>>, Unreachable> {
        let answer = self.list(branches, limit).await;
        self.remember(answer.as_ref().err().map(|unreachable| unreachable.why.as_str()));
        answer
    }

    async fn list(&self, branches: &[&str], limit: Duration) -> Result<Vec<Option<Oid>>, Unreachable> {
        let names: Vec<String> = branches.iter().map(|branch| format!("refs/heads/{branch}")).collect();
        self.references(&names, limit).await
    }

    /// The same for references of any kind, by their whole names.
    pub(crate) async fn references(
        &self,
        names: &[String],
        limit: Duration,
    ) -> Result<Vec<Option<Oid>>, Unreachable> {
        let scratch = self.scratch(Vec::new()).await?;
        let mut arguments = words(&["ls-remote", "--quiet", "--", &self.endpoint.url]);
        arguments.extend(names.iter().map(OsString::from));
        let answer = self.git(&scratch, arguments, limit).await?;
        if !answer.is_success {
            return Err(Unreachable::remote(self.why(&answer.stderr).await));
        }
        let find = |name: &String| {
            let line =
                answer.stdout.lines().filter_map(|line| line.split_once('\t')).find(|(_, own)| own == name);
            line.and_then(|(id, _)| Oid::from_str(id).ok())
        };
        Ok(names.iter().map(find).collect())
    }

    /// Why there is no use in talking to the remote right now.
    pub(crate) fn recently_unreachable(&self) -> Option<String> {
        self.offline.recent(&self.endpoint.url).map(|why| self.shown_up_to(&why, MAX_EXPLAINED_CHARS))
    }

    pub(crate) fn remember(&self, why: Option<&str>) {
        match why {
            Some(why) => self.offline.note(&self.endpoint.url, why),
            None => self.offline.clear(),
        }
    }

    pub(crate) async fn scratch(&self, haves: Vec<Oid>) -> Result<ScratchRepo, Unreachable> {
        let (state, git) = (self.state.clone(), self.git.clone());
        let made = blocking(move || ScratchRepo::set_up(&state, &git, &haves)).await;
        made.map_err(|error| {
            let next = error.help_of().map(|help| format!("; {help}")).unwrap_or_default();
            Unreachable::remote(self.shown(&format!("{}{next}", error.message)))
        })
    }

    pub(crate) async fn git(
        &self,
        scratch: &ScratchRepo,
        arguments: Vec<OsString>,
        limit: Duration,
    ) -> Result<Finished, Unreachable> {
        let mut all = words(&[
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "credential.helper=",
            "-c",
            "protocol.ext.allow=never",
        ]);
        all.extend(arguments);
        let environment = environment(
            &self.endpoint,
            &self.surroundings,
            &scratch.path,
            scratch.object_directory(&self.git),
        );
        let invocation = Invocation {
            program: "git",
            arguments: all,
            environment,
            directory: scratch.path.clone(),
            limit,
            most: self.limits,
        };
        let messages = scratch.path.join(SSH_MESSAGES);
        // What is left there is of an earlier conversation.
        let _ = std::fs::remove_file(&messages);
        let ran = run(invocation).await.map(|finished| match self.endpoint.transport {
            Transport::Ssh => with_ssh_messages(finished, &messages),
            _ => finished,
        });
        ran.map_err(|error: CommandError| {
            let (missing, next) = match &error {
                CommandError::Start(_) => {
                    (Missing::Git, "; install git, so that it is found on the PATH".to_owned())
                }
                CommandError::TimedOut(_) => {
                    (Missing::Remote, format!(" from {}. {RETRY_LATER}", self.endpoint.host_and_port()))
                }
                CommandError::TooMuch => (Missing::Remote, "; check `git.url`".to_owned()),
                CommandError::Io(_) => (Missing::Remote, "; run `tgp sync` again".to_owned()),
            };
            let why = self.shown_up_to(&format!("{error}{next}"), MAX_EXPLAINED_CHARS);
            Unreachable { why, missing }
        })
    }

    /// Why git failed, from what it wrote.
    pub(crate) async fn why(&self, stderr: &str) -> String {
        let ssh = match needs_ssh_settings(stderr, &self.endpoint) {
            true => self.ssh_settings().await.unwrap_or_default(),
            false => SshSettings::default(),
        };
        let certificates = self.surroundings.certificates.as_deref();
        let known = Circumstances { endpoint: &self.endpoint, certificates, ssh };
        self.shown_up_to(&explain(stderr, &known), MAX_EXPLAINED_CHARS)
    }

    /// Asks ssh for its settings of the remote's host, without a connection.
    async fn ssh_settings(&self) -> Option<SshSettings> {
        let host = self.endpoint.ssh_host();
        if host.argument == SshHost::PLACEHOLDER {
            return None;
        }
        let mut arguments = words(&["-G", "-T"]);
        if let Some(port) = host.port {
            arguments.extend(words(&["-p", &port.to_string()]));
        }
        arguments.extend(words(&["--", &host.argument]));
        let invocation = Invocation {
            program: "ssh",
            arguments,
            environment: environment(&self.endpoint, &self.surroundings, &self.state, self.state.clone()),
            directory: self.state.clone(),
            limit: SSH_SETTINGS_TIME,
            most: self.limits,
        };
        let printed = run(invocation).await.ok()?;
        printed.is_success.then(|| SshSettings::parse(&printed.stdout))
    }

    pub(crate) fn shown(&self, text: &str) -> String {
        self.shown_up_to(text, MAX_WHY_CHARS)
    }

    fn shown_up_to(&self, text: &str, most: usize) -> String {
        let clean: String = self
            .sieve
            .clean(text)
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        let mut short: String = clean.trim().chars().take(most).collect();
        if short.len() < clean.trim().len() {
            short.push('…');
        }
        short
    }
}

/// Puts the messages of ssh before those on standard error, and marks there what git itself did not write.
fn with_ssh_messages(finished: Finished, messages: &Path) -> Finished {
    let own = tgp_fs::read_plain(messages, MAX_SSH_MESSAGES).unwrap_or_default();
    let mut stderr = String::from_utf8_lossy(&own).into_owned();
    for line in finished.stderr.lines() {
        let is_of_git = ["fatal: ", "error: ", "warning: ", "hint: ", "remote: "]
            .iter()
            .any(|word| line.starts_with(word));
        stderr.push_str(if is_of_git { "\n" } else { "\nremote: " });
        stderr.push_str(line);
    }
    Finished { stderr, ..finished }
}
