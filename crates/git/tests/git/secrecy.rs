//! The token: where it goes, and where it never goes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tgp_git::{Provider, Remote, Secret, Strategy, ToolRepo, ToolRepoOptions};

use crate::api::{Mood, Server};
use crate::support::{World, forge, options, time_goes_by};

const TOKEN: &str = "ghp_SuperSecretToken0123456789";

/// A git that writes down what it was given, complains with all of it, and fails.
fn talkative_git(world: &World, secret: &str) -> std::ffi::OsString {
    let bin = world.at("bin");
    fs::create_dir_all(&bin).unwrap();
    let dump = world.at("dump").display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{dump}.arguments'\n/usr/bin/env -0 >> '{dump}.environment'\n\
         echo \"fatal: unable to access 'https://me:{secret}@host.invalid/': $GIT_CONFIG_VALUE_1 {secret}\" >&2\nexit 128\n"
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    bin.into_os_string()
}

fn holds(folder: &Path, needle: &str) -> Option<String> {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if let Some(found) = holds(&path, needle) {
                return Some(found);
            }
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(needle) {
            return Some(path.display().to_string());
        }
    }
    None
}

async fn dumped(
    world: &World,
    secret: &str,
    mut options: ToolRepoOptions,
) -> (String, Vec<(String, String)>) {
    options.surroundings.path = talkative_git(world, secret);
    options.surroundings.home = Some("/home/somebody".into());
    options.surroundings.ssh_auth_sock = Some("/run/agent.sock".into());
    let root = options.root.clone();
    let shown = format!("{options:?}");
    let memory = ToolRepo::open(options).await.unwrap();
    let error = memory.hydrate().await.unwrap_err();
    let persisted = memory.persist(forge("tools/a.ts", "a")).await.unwrap();
    let hydrated = memory.hydrate().await.unwrap();
    let synced = memory.sync().await.unwrap();
    let status = memory.status().await.unwrap();
    assert!(!persisted.pushed && persisted.why.is_some() && synced.why.is_some());
    let said =
        format!("{shown} {error:?} {error} {persisted:?} {hydrated:?} {synced:?} {status:?} {memory:?}");
    for secret in [secret, "eC1hY2Nlc3MtdG9rZW46", "bWU6aHVudGVyMjI="] {
        assert!(!said.contains(secret), "{secret} in {said}");
        assert_eq!(holds(&root, secret), None, "{secret} is on the disk");
    }
    let arguments = fs::read_to_string(world.at("dump.arguments")).unwrap();
    let environment = fs::read(world.at("dump.environment")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let pairs = environment.split('\0').filter_map(|pair| pair.split_once('='));
    (arguments, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Every name that git may see. `PWD` and similar names come from the script's own shell.
const ALLOWED: &[&str] = &[
    "PATH",
    "LC_ALL",
    "HOME",
    "GIT_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_TERMINAL_PROMPT",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_OPTIONAL_LOCKS",
    "GIT_ALLOW_PROTOCOL",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_CONFIG_KEY_1",
    "GIT_CONFIG_VALUE_1",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
];
const ALLOWED_FOR_SSH: &[&str] = &["SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"];

#[tokio::test]
async fn a_token_travels_in_one_header_of_the_environment_only() {
    let world = World::new();
    let mut options = options(&world.root("agent"), None);
    options.token = Some(Secret::new(TOKEN));
    options.strategy = Strategy::Direct;
    options.remote = Some(Remote::Hosted {
        provider: Provider::GitHub,
        repo: "owner/tools".to_owned(),
        api_base_url: Some("https://host.invalid/api/v3".to_owned()),
        clone_url: None,
    });
    let (arguments, environment) = dumped(&world, TOKEN, options).await;
    assert!(!arguments.contains(TOKEN));
    assert!(arguments.lines().any(|line| line == "https://host.invalid/owner/tools.git"), "{arguments}");
    let mut was_sent = false;
    for (name, value) in &environment {
        assert!(ALLOWED.contains(&name.as_str()), "{name} is not for git");
        was_sent |=
            name == "GIT_CONFIG_VALUE_1" && value.starts_with("Authorization: Basic eC1hY2Nlc3MtdG9rZW46");
        if name == "GIT_CONFIG_KEY_1" {
            assert_eq!(value, "http.https://host.invalid/.extraHeader", "to that host only");
        }
        if name == "HOME" {
            assert!(value.starts_with(world.root("agent").to_str().unwrap()), "not the real home: {value}");
        }
        assert!(name != "GIT_ALLOW_PROTOCOL" || value == "https");
    }
    assert!(was_sent, "{environment:?}");
}

#[tokio::test]
async fn a_password_in_the_url_is_split_off_it() {
    let world = World::new();
    let mut options = options(&world.root("agent"), None);
    options.remote = Some(Remote::Url("https://me:hunter22@host.invalid/x.git".to_owned()));
    let (arguments, environment) = dumped(&world, "hunter22", options).await;
    assert!(!arguments.contains("hunter22") && !arguments.contains("me:"));
    assert!(arguments.lines().any(|line| line == "https://host.invalid/x.git"));
    assert!(environment.iter().any(|(_, value)| value == "Authorization: Basic bWU6aHVudGVyMjI="));
}

#[tokio::test]
async fn ssh_sees_the_home_and_the_agent_and_asks_nothing() {
    let world = World::new();
    let mut options = options(&world.root("agent"), None);
    options.token = Some(Secret::new(TOKEN));
    options.remote = Some(Remote::Url("git@host.invalid:owner/tools.git".to_owned()));
    let (arguments, environment) = dumped(&world, TOKEN, options).await;
    assert!(!arguments.contains(TOKEN));
    for (name, value) in &environment {
        let name = name.as_str();
        assert!(ALLOWED.contains(&name) || ALLOWED_FOR_SSH.contains(&name), "{name} is not for git");
        assert!(!value.contains(TOKEN), "ssh needs no token");
        assert!(name != "HOME" || value == "/home/somebody");
        assert!(name != "GIT_SSH_COMMAND" || value.contains("BatchMode=yes"));
        assert!(name != "GIT_ALLOW_PROTOCOL" || value == "ssh");
    }
}

#[tokio::test]
async fn a_git_that_hangs_is_killed_with_all_its_children() {
    let world = World::with(&[("tools/a.ts", "a")]);
    let memory = world.kernel("agent").await;
    drop(memory);
    let bin = world.at("bin");
    fs::create_dir_all(&bin).unwrap();
    let pids = world.at("pids");
    let script = format!("#!/bin/sh\nsleep 600 &\necho $! $$ >> '{}'\nwait\n", pids.display());
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = world.options("agent");
    let mut path = bin.into_os_string();
    path.push(":/usr/bin:/bin");
    options.surroundings.path = path;
    options.timeouts.boot_ask = std::time::Duration::from_millis(500);
    let memory = ToolRepo::open(options.clone()).await.unwrap();
    let hydrated = memory.hydrate().await.unwrap();
    assert!(format!("{hydrated:?}").contains("no answer within"), "{hydrated:?}");
    // A call that is dropped takes its git with it too.
    options.timeouts.boot_ask = std::time::Duration::from_secs(600);
    time_goes_by(&world.root("agent"));
    let memory = ToolRepo::open(options).await.unwrap();
    let started = pids.clone();
    let count = |text: std::io::Result<String>| text.unwrap_or_default().lines().count();
    let before = count(fs::read_to_string(&pids));
    let watch = async {
        while count(fs::read_to_string(&started)) == before {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = memory.hydrate() => panic!("it hangs"),
        () = watch => {}
    }
    let is_gone = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    let text = fs::read_to_string(&pids).unwrap();
    for pid in text.split_whitespace() {
        let mut looks = 0;
        while !is_gone(pid) {
            looks += 1;
            assert!(looks < 1000, "{pid} lives on");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn the_real_git_sends_the_header_to_its_host_and_follows_nobody_elsewhere() {
    let world = World::new();
    let (host, elsewhere) = (Server::start(Provider::GitHub).await, Server::start(Provider::GitHub).await);
    let mut options = options(&world.root("agent"), None);
    options.token = Some(Secret::new(TOKEN));
    options.remote = Some(Remote::Url(format!("{}/owner/tools.git", host.address)));
    let memory = ToolRepo::open(options).await.unwrap();
    let moved = format!("{}/owner/tools.git/info/refs?service=git-upload-pack", elsewhere.address);
    for (mood, cause, next) in [
        (Mood::Fail(401, serde_json::json!({})), "refused the user name or the token", "`git.auth.token`"),
        (Mood::Fail(403, serde_json::json!({})), "(HTTP 403)", "give that permission at the server"),
        (Mood::Fail(404, serde_json::json!({})), "there is no repository at", "check `git.url`"),
        (Mood::Redirect(moved), "has moved", "set `git.url` to the new address"),
    ] {
        host.set(mood.clone());
        let error = memory.hydrate().await.unwrap_err();
        assert!(error.message.contains(cause) && error.message.contains(next), "{error:?}");
        assert!(!format!("{error:?}").contains(TOKEN), "{error:?}");
        let calls = host.calls();
        assert_eq!(calls[0].path, "/owner/tools.git/info/refs", "{mood:?}: {error}");
        // git:ghp_SuperSecretToken0123456789
        assert_eq!(
            calls[0].header("authorization"),
            Some("Basic Z2l0OmdocF9TdXBlclNlY3JldFRva2VuMDEyMzQ1Njc4OQ==")
        );
    }
    assert_eq!(elsewhere.calls().len(), 0, "nobody else is told");
}
