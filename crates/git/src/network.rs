//! Conversations with the remote.
//!
//! Git runs on a *bench*: a bare repository of its own, made for one call, that borrows only the objects. So neither
//! the configuration, the hooks nor the references of the real repository take part, whatever they say, and a killed
//! git leaves its lock files where nobody looks.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use git2::Oid;
use tgp_contract::ToolError;

use crate::anchor::{Anchored, RepositoryAnchor};
use crate::anchor_push::refspec;
use crate::command::{CommandError, Finished, Invocation, run};
use crate::failure::{At, blocking};
use crate::offline::Offline;
use crate::received::{exceeded, remove_unfinished, unfinished_packs};
use crate::remote::{Endpoint, Transport};
use crate::repair::BENCH_PREFIX;
use crate::secret::Sieve;
use crate::{FetchLimits, Surroundings, Timeouts};

/// The file in a folder of objects that names another one to look in.
pub(crate) const BORROWED: &str = "info/alternates";
/// A sentence for a person; servers send essays.
const MAX_WHY_CHARS: usize = 300;
const BENCH_CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n\
    \tbigFileThreshold = 8m\n\tdeltaBaseCacheLimit = 32m\n[credential]\n\thelper =\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
    [transfer]\n\tcredentialsInUrl = die\n[submodule]\n\trecurse = false\n\
    [pack]\n\tthreads = 2\n";

/// The remote and the means to reach it.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) endpoint: Endpoint,
    pub(crate) sieve: Sieve,
    pub(crate) surroundings: Surroundings,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: FetchLimits,
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

/// What came with a fetch.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// One for each branch that was asked for.
    pub(crate) tips: Vec<Oid>,
    /// The new list of commits whose parents are not here, when it changed.
    pub(crate) shallow: Option<Vec<u8>>,
}

/// How much history a fetch brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The newest commit only.
    Newest,
    /// All that is missing.
    Missing,
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Done,
    /// The remote's branch is not where it was.
    Moved,
    /// Another process writes the remote's branch, or was killed while it did.
    Locked(String),
    /// The remote does not want it, and will not in a minute.
    Refused(String),
    Unreachable(String),
}

/// Whether a push may replace what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    Never,
    /// Only exactly this commit.
    Only(Oid),
}

static ISSUED: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Bench {
    path: PathBuf,
}

impl Bench {
    /// `haves` are commits whose history need not be sent.
    fn set_up(state: &Path, git: &Path, haves: &[Oid]) -> Result<Self, ToolError> {
        let number = ISSUED.fetch_add(1, Ordering::Relaxed);
        let path = state.join(format!("{BENCH_PREFIX}{}-{number}", std::process::id()));
        let bench = Self { path };
        let path = &bench.path;
        let _ = fs::remove_dir_all(path);
        let write = |name: &str, text: &str| fs::write(path.join(name), text).at("cannot write", path);
        fs::create_dir_all(path.join("refs/have")).at("cannot make", path)?;
        fs::create_dir_all(path.join("home")).at("cannot make", path)?;
        write("HEAD", "ref: refs/heads/none\n")?;
        write("config", BENCH_CONFIG)?;
        for (number, have) in haves.iter().enumerate() {
            write(&format!("refs/have/{number}"), &format!("{have}\n"))?;
        }
        if let Some(shallow) = shallow(git) {
            fs::write(path.join("shallow"), shallow).at("cannot write", path)?;
        }
        Ok(bench)
    }
}

impl Bench {
    /// Objects of the bench's own, for a push that takes the anchor along.
    pub(crate) fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    /// Where git finds and puts objects: in the repository, unless the bench has some and borrows the others.
    fn object_directory(&self, git: &Path) -> PathBuf {
        let own = self.objects();
        if own.join(BORROWED).is_file() { own } else { git.join("objects") }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn shallow(git: &Path) -> Option<Vec<u8>> {
    fs::read(git.join("shallow")).ok().filter(|text| !text.is_empty())
}

impl Network {
    /// Where the remote's branches stand; a branch that it does not have is `None`.
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
        let bench = self.bench(Vec::new()).await?;
        let mut arguments = words(&["ls-remote", "--quiet", "--", &self.endpoint.url]);
        arguments.extend(names.iter().map(OsString::from));
        let answer = self.git(&bench, arguments, limit).await?;
        if !answer.is_success {
            return Err(Unreachable::remote(self.why(&answer.stderr)));
        }
        let find = |name: &String| {
            let line =
                answer.stdout.lines().filter_map(|line| line.split_once('\t')).find(|(_, own)| own == name);
            line.and_then(|(id, _)| Oid::from_str(id).ok())
        };
        Ok(names.iter().map(find).collect())
    }

    /// Brings the branches' objects here. References are for the caller to move.
    pub(crate) async fn fetch(
        &self,
        branches: &[&str],
        haves: &[Oid],
        depth: Depth,
    ) -> Result<Fetched, Unreachable> {
        let fetched = self.receive(branches, haves, depth).await;
        // A remote that sends too much was reached.
        let away = fetched.as_ref().err().filter(|unreachable| unreachable.missing != Missing::Room);
        self.remember(away.map(|unreachable| unreachable.why.as_str()));
        fetched
    }

    async fn receive(&self, branches: &[&str], haves: &[Oid], depth: Depth) -> Result<Fetched, Unreachable> {
        let bench = self.bench(haves.to_vec()).await?;
        let mut arguments = words(&[
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--update-shallow",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
        ]);
        if depth == Depth::Newest {
            arguments.push("--depth=1".into());
        }
        arguments.extend(words(&["--", &self.endpoint.url]));
        for (number, branch) in branches.iter().enumerate() {
            arguments.push(format!("+refs/heads/{branch}:refs/incoming/{number}").into());
        }
        let before = unfinished_packs(&self.git);
        let answer = self.git(&bench, arguments, self.timeouts.transfer).await;
        let is_success = matches!(&answer, Ok(answer) if answer.is_success);
        let mut received = 0;
        if !is_success {
            let (git, root) = (self.git.clone(), self.state.clone());
            let removed = blocking(move || Ok(remove_unfinished(&git, &root, &before))).await;
            received = removed.unwrap_or_default();
        }
        let answer = answer?;
        if !is_success {
            return Err(match exceeded(&answer.stderr, received, self.limits) {
                Some(why) => Unreachable { why, missing: Missing::Room },
                None => Unreachable::remote(self.why(&answer.stderr)),
            });
        }
        let tip = |number: usize| {
            let text = fs::read_to_string(bench.path.join(format!("refs/incoming/{number}"))).ok()?;
            Oid::from_str(text.trim()).ok()
        };
        let tips = (0..branches.len()).map(tip).collect::<Option<Vec<Oid>>>();
        let tips = tips.ok_or_else(|| Unreachable::remote("git fetched nothing although it said so"))?;
        let own = shallow(&bench.path);
        Ok(Fetched { tips, shallow: if own == shallow(&self.git) { None } else { own } })
    }

    /// Sets the remote's branch to `commit`.
    pub(crate) async fn push(&self, commit: Oid, branch: &str, replace: Replace) -> Pushed {
        let pushed = self.send(commit, branch, replace).await;
        // A refusal is an answer too.
        self.remember(match &pushed {
            Pushed::Unreachable(why) => Some(why),
            Pushed::Done | Pushed::Moved | Pushed::Locked(_) | Pushed::Refused(_) => None,
        });
        pushed
    }

    /// Why there is no use in talking to the remote right now.
    pub(crate) fn recently_unreachable(&self) -> Option<String> {
        self.offline.recent().map(|why| self.shown(&why))
    }

    fn remember(&self, why: Option<&str>) {
        match why {
            Some(why) => self.offline.note(why),
            None => self.offline.clear(),
        }
    }

    async fn send(&self, commit: Oid, branch: &str, replace: Replace) -> Pushed {
        let bench = match self.bench(Vec::new()).await {
            Ok(bench) => bench,
            Err(unreachable) => return Pushed::Unreachable(unreachable.why),
        };
        let mut options =
            words(&["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"]);
        if let Replace::Only(old) = replace {
            options.push(format!("--force-with-lease=refs/heads/{branch}:{old}").into());
        }
        let target = format!("refs/heads/{branch}");
        let what = words(&["--", &self.endpoint.url, &format!("{commit}:{target}")]);
        if !self.refuses_anchors.load(Ordering::Relaxed)
            && let Some(anchored) = self.anchor_for(&bench).await
            && let Some(lease) = self.announce(&anchored).await
        {
            let own = [lease.option(&anchored)];
            let with_anchor = [&*options, &own, &what, &[refspec(&anchored)]].concat();
            let pushed = self.push_words(&bench, with_anchor, &target, Some(&anchored)).await;
            if !matches!(pushed, Pushed::Refused(_)) {
                return pushed;
            }
            // A hook may refuse everything for the sake of one reference that it does not know.
            let pushed = self.push_words(&bench, [options, what].concat(), &target, None).await;
            self.refuses_anchors.store(pushed == Pushed::Done, Ordering::Relaxed);
            return pushed;
        }
        self.push_words(&bench, [options, what].concat(), &target, None).await
    }

    async fn push_words(
        &self,
        bench: &Bench,
        arguments: Vec<OsString>,
        target: &str,
        anchored: Option<&Anchored>,
    ) -> Pushed {
        match self.git(bench, arguments, self.timeouts.transfer).await {
            Err(unreachable) => Pushed::Unreachable(unreachable.why),
            Ok(answer) => {
                if let Some(anchored) = anchored {
                    self.heard(bench, &answer, anchored).await;
                }
                // Git calls it a failure when one of two references was refused; only the branch matters here.
                if answer.is_success || has_taken(&answer, target) {
                    Pushed::Done
                } else {
                    self.judge(&answer, target)
                }
            }
        }
    }

    fn judge(&self, answer: &Finished, target: &str) -> Pushed {
        let Some(line) = lines_of(answer, target).find(|line| line.starts_with('!')) else {
            return Pushed::Unreachable(self.why(&answer.stderr));
        };
        let summary = line.rsplit('\t').next().unwrap_or_default();
        if let Some(lock) = answer.stderr.lines().find(|line| is_about_a_lock(line)) {
            let lock = lock.trim_start_matches("remote:").trim().trim_start_matches("error:").trim();
            let why = format!("the remote is locked by another process, or by one that was killed: {lock}");
            return Pushed::Locked(self.shown(&why));
        }
        // What two pushes say to each other that arrive at once: the loser has to look again.
        let races = [
            "fetch first",
            "non-fast-forward",
            "stale info",
            "cannot lock ref",
            "failed to update ref",
            "reference already exists",
            "incorrect old value",
            "remote ref updated since checkout",
            "needs force",
        ];
        if races.iter().any(|race| summary.contains(race) || answer.stderr.contains(&format!("({race})"))) {
            return Pushed::Moved;
        }
        let reason = summary.trim_start_matches("[remote rejected]").trim_start_matches("[rejected]").trim();
        let reason = reason.trim_start_matches('(').trim_end_matches(')');
        let said: Vec<&str> = answer
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("remote:").map(str::trim))
            .filter(|line| !line.is_empty())
            .collect();
        let why = match said.last() {
            Some(said) => format!("the remote refused the push: {reason}: {said}"),
            None => format!("the remote refused the push: {reason}"),
        };
        Pushed::Refused(self.shown(&why))
    }

    pub(crate) async fn bench(&self, haves: Vec<Oid>) -> Result<Bench, Unreachable> {
        let (state, git) = (self.state.clone(), self.git.clone());
        let made = blocking(move || Bench::set_up(&state, &git, &haves)).await;
        made.map_err(|error| Unreachable::remote(self.shown(&error.message)))
    }

    pub(crate) async fn git(
        &self,
        bench: &Bench,
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
        let environment = self.environment(bench);
        let invocation = Invocation {
            arguments: all,
            environment,
            directory: bench.path.clone(),
            limit,
            most: self.limits,
        };
        run(invocation).await.map_err(|error: CommandError| {
            let missing = match &error {
                CommandError::Start(_) => Missing::Git,
                CommandError::TimedOut(_) | CommandError::TooMuch | CommandError::Io(_) => Missing::Remote,
            };
            Unreachable { why: self.shown(&error.to_string()), missing }
        })
    }

    fn environment(&self, bench: &Bench) -> Vec<(String, OsString)> {
        let given = &self.surroundings;
        let mut all: Vec<(&str, OsString)> = vec![
            ("PATH", given.path.clone()),
            ("LC_ALL", "C".into()),
            ("GIT_DIR", bench.path.clone().into()),
            ("GIT_OBJECT_DIRECTORY", bench.object_directory(&self.git).into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_ASKPASS", "true".into()),
            ("SSH_ASKPASS", "true".into()),
            ("GIT_OPTIONAL_LOCKS", "0".into()),
            ("GIT_ALLOW_PROTOCOL", self.endpoint.transport.protocol().into()),
        ];
        let mut home = bench.path.join("home").into_os_string();
        match self.endpoint.transport {
            Transport::Ssh => {
                if let Some(real) = &given.home {
                    home = real.clone().into();
                }
                if let Some(socket) = &given.ssh_auth_sock {
                    all.push(("SSH_AUTH_SOCK", socket.clone()));
                }
                let ssh = "ssh -oBatchMode=yes -oConnectTimeout=15 -oStrictHostKeyChecking=yes \
                           -oClearAllForwardings=yes";
                all.push(("GIT_SSH_COMMAND", ssh.into()));
                all.push(("GIT_SSH_VARIANT", "ssh".into()));
            }
            Transport::Http | Transport::Https => {
                let mut settings = vec![("http.followRedirects".to_owned(), "initial".to_owned())];
                if let Some((scope, header)) = &self.endpoint.authorization {
                    // A redirect could name another host, and the header must not go there.
                    settings = vec![
                        ("http.followRedirects".to_owned(), "false".to_owned()),
                        (format!("http.{scope}.extraHeader"), header.expose().to_owned()),
                    ];
                }
                if let Some(proxy) = &given.proxy {
                    all.push(("https_proxy", proxy.into()));
                    all.push(("http_proxy", proxy.into()));
                }
                if let Some(certificates) = &given.certificates {
                    all.push(("GIT_SSL_CAINFO", certificates.into()));
                }
                let mut all: Vec<(String, OsString)> =
                    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                all.push(("HOME".to_owned(), home));
                all.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string().into()));
                for (number, (key, value)) in settings.into_iter().enumerate() {
                    all.push((format!("GIT_CONFIG_KEY_{number}"), key.into()));
                    all.push((format!("GIT_CONFIG_VALUE_{number}"), value.into()));
                }
                return all;
            }
            Transport::Git | Transport::File => {}
        }
        all.push(("HOME", home));
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The one line of git's complaint that says what is wrong.
    fn why(&self, stderr: &str) -> String {
        let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
        // ssh speaks before git does, and knows more.
        let ssh = lines
            .iter()
            .find(|line| line.starts_with("ssh: ") || line.contains("Permission denied"))
            .copied();
        let line =
            ssh.or_else(|| said("fatal:")).or_else(|| said("error:")).or_else(|| lines.last().copied());
        self.shown(line.unwrap_or("git failed without a word"))
    }

    pub(crate) fn shown(&self, text: &str) -> String {
        let clean: String = self
            .sieve
            .clean(text)
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        let mut short: String = clean.trim().chars().take(MAX_WHY_CHARS).collect();
        if short.len() < clean.trim().len() {
            short.push('…');
        }
        short
    }
}

/// Whether git says that a lock file of the remote is in the way.
fn is_about_a_lock(line: &str) -> bool {
    line.contains("Unable to create") && line.contains(".lock'") && line.contains("File exists")
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// What a push says of one reference.
pub(crate) fn lines_of<'a>(answer: &'a Finished, target: &'a str) -> impl Iterator<Item = &'a str> {
    answer.stdout.lines().filter(move |line| {
        let names = line.split('\t').nth(1).unwrap_or_default();
        names.split_once(':').is_some_and(|(_, to)| to == target)
    })
}

pub(crate) fn has_taken(answer: &Finished, target: &str) -> bool {
    lines_of(answer, target).any(|line| line.starts_with([' ', '+', '*', '=']))
}
