//! Both transports against real servers: Apache behind TLS with a token, and sshd with a key. `cargo xtask test` starts
//! them (see xtask/src/git_servers.rs); without them these tests say that they were skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tgp_contract::ToolError;
use tgp_git::{HydrateOutcome, Remote, Secret, ToolRepo, ToolRepoOptions};

use crate::support::{arrived, forge, git, options, read, refactor, show, time_goes_by};

/// How long a server may take until a line is in its log.
const LOG_PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    url: String,
    folder: PathBuf,
    /// Of this test.
    temporary: TempDir,
    name: String,
}

impl Server {
    /// With a new empty repository for one test.
    fn new(kind: &str, test: &str) -> Option<Self> {
        let variable = format!("TGP_TEST_GIT_{kind}_URL");
        let (Ok(url), Ok(folder)) =
            (std::env::var(&variable), std::env::var(format!("TGP_TEST_GIT_{kind}_FOLDER")))
        else {
            println!("skipped: {test} ({variable} is not set)");
            return None;
        };
        let name = format!("{test}-{}.git", std::process::id());
        let server = Self { url, folder: folder.into(), temporary: TempDir::new().unwrap(), name };
        // The web server is another user.
        git(
            &server.folder.join("repositories"),
            &["init", "--quiet", "--bare", "--initial-branch=main", "--shared=0666", &server.name],
        );
        Some(server)
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("repositories").join(&self.name)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// A kernel's options, and nothing in them that proves who it is.
    fn options(&self, kernel: &str) -> ToolRepoOptions {
        let mut options = options(&self.at(kernel).join(".tgp"), None);
        options.remote = Some(Remote::Url(format!("{}/{}", self.url, self.name)));
        options
    }

    async fn error(&self, options: ToolRepoOptions) -> ToolError {
        let memory = ToolRepo::open(options).await.unwrap();
        let error = memory.hydrate().await.unwrap_err();
        // What cannot be fetched cannot be pushed either, for the same reason, and nothing is lost.
        time_goes_by(&self.at("agent/.tgp"));
        let persisted = memory.persist(forge("tools/a.ts", "a")).await.unwrap();
        assert!(!persisted.pushed);
        let why = persisted.why.unwrap();
        assert!(error.message.contains(&why), "{} / {why}", error.message);
        error
    }
}

/// Clones, writes, pushes, and takes in what another kernel pushed in between.
async fn exchange(server: &Server, one: ToolRepoOptions, two: ToolRepoOptions) {
    let (root, other) = (one.root.clone(), two.root.clone());
    let one = ToolRepo::open(one).await.unwrap();
    assert_eq!(one.hydrate().await.unwrap().outcome, HydrateOutcome::Local);
    arrived(one.persist(forge("tools/a.ts", "a")).await);
    let two = ToolRepo::open(two).await.unwrap();
    assert!(matches!(two.hydrate().await.unwrap().outcome, HydrateOutcome::Cloned { .. }));
    assert_eq!(read(&other, "tools/a.ts").as_deref(), Some("a"));
    arrived(two.persist(forge("tools/b.ts", "b")).await);
    // The foreign commit has to be fetched before this one can be pushed.
    arrived(one.persist(refactor("tools/a.ts", "aa")).await);
    assert_eq!(read(&root, "tools/b.ts").as_deref(), Some("b"));
    assert_eq!(two.sync().await.unwrap().pulled, 1);
    assert_eq!(read(&other, "tools/a.ts").as_deref(), Some("aa"));
    assert_eq!(show(&server.repository(), "main", "tools/a.ts").as_deref(), Some("aa"));
    assert_eq!(show(&server.repository(), "main", "tools/b.ts").as_deref(), Some("b"));
}

fn https(test: &str) -> Option<Server> {
    Server::new("HTTPS", test)
}

fn token(server: &Server) -> String {
    fs::read_to_string(server.folder.join("token")).unwrap()
}

fn with_token(server: &Server, kernel: &str) -> ToolRepoOptions {
    let mut options = server.options(kernel);
    options.surroundings.certificates = Some(server.folder.join("certificate.pem"));
    options.token = Some(Secret::new(token(server)));
    options
}

/// Waits until the server's log says that `user` was let in to this repository.
fn assert_let_in(server: &Server, user: &str) {
    let until = Instant::now() + LOG_PATIENCE;
    let beginning = format!("{user} GET /git/{}/info/refs", server.name);
    loop {
        let log = fs::read_to_string(server.folder.join("access.txt")).unwrap_or_default();
        if log.lines().any(|line| line.starts_with(&beginning) && line.ends_with(" 200")) {
            return;
        }
        assert!(Instant::now() < until, "{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn https_with_a_token_clones_pushes_and_fetches() {
    let Some(server) = https("exchange") else { return };
    exchange(&server, with_token(&server, "one"), with_token(&server, "two")).await;
    assert_let_in(&server, "git");
}

#[tokio::test]
async fn bug_the_user_of_an_https_url_arrives_at_the_server() {
    let Some(server) = https("name") else { return };
    let mut options = with_token(&server, "agent");
    let url = server.url.replacen("https://", "https://name@", 1);
    options.remote = Some(Remote::Url(format!("{url}/{}", server.name)));
    let memory = ToolRepo::open(options).await.unwrap();
    memory.hydrate().await.unwrap();
    arrived(memory.persist(forge("tools/a.ts", "a")).await);
    assert_let_in(&server, "name");
}

#[tokio::test]
async fn https_with_a_wrong_token_says_so_and_never_shows_it() {
    let Some(server) = https("wrong") else { return };
    let mut options = with_token(&server, "agent");
    options.token = Some(Secret::new("wr0ng-t0ken"));
    let error = server.error(options).await;
    assert!(error.message.contains("refused the user name or the token"), "{error:?}");
    assert!(!format!("{error:?}").contains("wr0ng-t0ken"), "{error:?}");
}

#[tokio::test]
async fn https_without_a_token_says_that_one_is_wanted() {
    let Some(server) = https("none") else { return };
    let mut options = with_token(&server, "agent");
    options.token = None;
    let error = server.error(options).await;
    assert!(
        error.message.contains("`git.auth.token`") && error.message.contains("none is configured"),
        "{error:?}"
    );
}

#[tokio::test]
async fn https_with_a_certificate_that_nobody_signed_sends_no_token() {
    let Some(server) = https("certificate") else { return };
    let mut options = with_token(&server, "agent");
    options.surroundings.certificates = None;
    let error = server.error(options).await;
    assert!(error.message.contains("certificate") && error.message.contains("`SSL_CERT_FILE`"), "{error:?}");
    let log = fs::read_to_string(server.folder.join("access.txt")).unwrap_or_default();
    assert!(!log.contains(&server.name), "{log}");
}

fn ssh(test: &str) -> Option<Server> {
    let server = Server::new("SSH", test)?;
    // ssh looks for its files in the home of the user, whatever the environment says; here it gets others.
    let bin = server.at("bin");
    fs::create_dir_all(&bin).unwrap();
    let real = Command::new("sh").args(["-c", "command -v ssh"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let config = server.at("ssh_config");
    let script = format!("#!/bin/sh\nexec '{}' -F '{}' \"$@\"\n", real.trim(), config.display());
    fs::write(bin.join("ssh"), script).unwrap();
    fs::set_permissions(bin.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(known_hosts(&server), "").unwrap();
    use_key(&server, &server.folder.join("client_key"));
    Some(server)
}

fn use_key(server: &Server, key: &Path) {
    let config = format!(
        "IdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\n",
        key.display(),
        known_hosts(server).display()
    );
    fs::write(server.at("ssh_config"), config).unwrap();
}

fn known_hosts(server: &Server) -> PathBuf {
    server.at("known_hosts")
}

/// The server as `known_hosts` names it.
fn known_as(server: &Server) -> String {
    let authority = server.url.split('/').nth(2).unwrap();
    let (host, port) = authority.split_once('@').unwrap().1.split_once(':').unwrap();
    format!("[{host}]:{port}")
}

/// Lets the file of known hosts have this public key for the server.
fn trust(server: &Server, public_key: &Path) {
    let key = fs::read_to_string(public_key).unwrap();
    fs::write(known_hosts(server), format!("{} {key}", known_as(server))).unwrap();
}

fn new_key(server: &Server, name: &str) -> PathBuf {
    let key = server.at(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    key
}

fn with_ssh(server: &Server, kernel: &str) -> ToolRepoOptions {
    let mut options = server.options(kernel);
    let mut path = server.at("bin").into_os_string();
    path.push(":");
    path.push(&options.surroundings.path);
    options.surroundings.path = path;
    options
}

/// Does what the message says. It names the file of known hosts that ssh is configured with, which is the test's own.
fn follow_advice(server: &Server, message: &str, beginning: &str) {
    let command = message.split('`').find(|part| part.starts_with(beginning)).unwrap();
    assert!(command.contains(&known_hosts(server).display().to_string()), "{command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(shell.status().unwrap().success(), "{command}");
}

#[tokio::test]
async fn ssh_with_a_key_clones_pushes_and_fetches() {
    let Some(server) = ssh("exchange") else { return };
    trust(&server, &server.folder.join("host_key.pub"));
    exchange(&server, with_ssh(&server, "one"), with_ssh(&server, "two")).await;
}

#[tokio::test]
async fn bug_an_unknown_ssh_host_key_is_the_cause_that_is_told() {
    let Some(server) = ssh("unknown") else { return };
    let error = server.error(with_ssh(&server, "agent")).await;
    assert!(error.message.contains("the ssh host key of `127.0.0.1`"), "{error:?}");
    assert!(error.message.contains("is not known on this machine"), "{error:?}");
    assert!(error.message.ends_with("known_hosts`"), "it is told to its end: {error:?}");
    follow_advice(&server, &error.message, "ssh-keyscan -H");
    time_goes_by(&server.at("agent/.tgp"));
    let memory = ToolRepo::open(with_ssh(&server, "agent")).await.unwrap();
    assert_eq!(memory.sync().await.unwrap().pushed, 1);
}

#[tokio::test]
async fn bug_a_changed_ssh_host_key_is_told_as_a_possible_attack() {
    let Some(server) = ssh("changed") else { return };
    let other = new_key(&server, "other");
    trust(&server, &other.with_extension("pub"));
    let error = server.error(with_ssh(&server, "agent")).await;
    assert!(error.message.contains("has changed") && error.message.contains("attack"), "{error:?}");
    follow_advice(&server, &error.message, "ssh-keygen -R");
    follow_advice(&server, &error.message, "ssh-keyscan -H");
    time_goes_by(&server.at("agent/.tgp"));
    let memory = ToolRepo::open(with_ssh(&server, "agent")).await.unwrap();
    assert_eq!(memory.sync().await.unwrap().pushed, 1);
}

#[tokio::test]
async fn ssh_with_a_key_that_is_refused_says_so() {
    let Some(server) = ssh("refused") else { return };
    trust(&server, &server.folder.join("host_key.pub"));
    use_key(&server, &new_key(&server, "other"));
    let error = server.error(with_ssh(&server, "agent")).await;
    assert!(error.message.contains("Permission denied (publickey)"), "{error:?}");
    assert!(error.message.contains("register the public key"), "{error:?}");
}
