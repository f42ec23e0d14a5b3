//! Where the values of secrets come from: a variable, a file, or what a program prints.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tgp_contract::{Code, ToolError, background};
use tgp_fetch::{AllowList, FetchClient, FetchLimits, SecretBroker, SecretSource};
use tgp_fs::real_place;
use tgp_net::Secret;
use tokio::sync::Mutex;

use super::secret_command::SecretCommand;
use crate::boot::Environment;
use crate::config::{Config, SecretConfig, SecretOrigin};

/// Longer than any key.
pub(super) const MAX_BYTES: u64 = 64 << 10;
/// How long a failure is remembered, so that many requests do not start a program that fails many times.
const FAILURE_LIFETIME: Duration = Duration::from_secs(5);
/// How long what a program has printed is used.
const LIFETIME: Duration = Duration::from_secs(300);

/// The client of `fetch` with the secrets of the configuration.
pub(crate) fn fetch_client(config: &Config, project: &Path, environment: &Environment) -> Arc<FetchClient> {
    let allow_list = AllowList::parse(&config.allowed_fetch_urls).unwrap_or_default();
    let client = FetchClient::new(allow_list, FetchLimits::default());
    // The configuration has checked them.
    let bindings = config.secrets.iter().filter_map(|secret| secret.binding().ok()).collect();
    match secret_values(config, project, environment) {
        Some(values) => Arc::new(client.with_secrets(SecretBroker::new(bindings, values))),
        None => Arc::new(client),
    }
}

/// Where agents and tools write.
pub(super) fn writable_places(config: &Config, project: &Path) -> Vec<PathBuf> {
    let directories = config.fs.allowed_dirs.iter().map(|directory| real_place(&project.join(directory)));
    let root = real_place(&project.join(&config.root_dir));
    [project.to_owned(), root].into_iter().chain(directories).collect()
}

/// The values of the configuration's secrets; `None` when it has none.
pub(super) fn secret_values(
    config: &Config,
    project: &Path,
    environment: &Environment,
) -> Option<Arc<SecretValues>> {
    let entry = |secret: &SecretConfig| {
        (secret.name.clone(), SecretEntry { from: secret.from.clone(), printed: Mutex::default() })
    };
    let values = || SecretValues {
        entries: config.secrets.iter().map(entry).collect(),
        writable: writable_places(config, project),
        environment: Arc::clone(environment),
    };
    (!config.secrets.is_empty()).then(|| Arc::new(values()))
}

pub(super) struct SecretValues {
    entries: BTreeMap<String, SecretEntry>,
    /// Where agents and tools write: nothing there says what a secret is.
    writable: Vec<PathBuf>,
    environment: Environment,
}

struct SecretEntry {
    from: SecretOrigin,
    /// What its program has printed, or why it did not. Held while it runs, so that many requests start it once.
    printed: Mutex<Option<(Instant, Result<Secret, String>)>>,
}

#[async_trait]
impl SecretSource for SecretValues {
    async fn value(&self, name: &str) -> Result<Secret, ToolError> {
        let Some(entry) = self.entries.get(name) else { return Err(unusable(name, "it is not configured")) };
        match &entry.from {
            SecretOrigin::Env(variable) => {
                let value = (self.environment)(variable).filter(|value| !value.is_empty());
                let missing = || unusable(name, &format!("the variable `{variable}` is not set"));
                value.map(Secret::new).ok_or_else(missing)
            }
            SecretOrigin::File(path) => {
                let (path, writable, name) = (self.path(path), self.writable.clone(), name.to_owned());
                background::run(move || {
                    read(&path, &writable)
                        .map_err(|why| unusable(&name, &format!("the file `{}` {why}", path.display())))
                })
                .await
            }
            SecretOrigin::Command(words) => self.printed(name, words, &entry.printed).await,
        }
    }
}

impl SecretValues {
    fn path(&self, written: &str) -> PathBuf {
        match (written.strip_prefix("~/"), (self.environment)("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => PathBuf::from(written),
        }
    }

    async fn printed(
        &self,
        name: &str,
        words: &[String],
        printed: &Mutex<Option<(Instant, Result<Secret, String>)>>,
    ) -> Result<Secret, ToolError> {
        let mut printed = printed.lock().await;
        let is_fresh = |since: &Instant, value: &Result<Secret, String>| {
            since.elapsed() < if value.is_ok() { LIFETIME } else { FAILURE_LIFETIME }
        };
        let value = match printed.as_ref().filter(|(since, value)| is_fresh(since, value)) {
            Some((_, value)) => value.clone(),
            None => {
                let order = SecretCommand::new(words, &self.writable, &self.environment);
                let value = match order {
                    Ok(order) => order.run().await,
                    Err(why) => Err(why),
                };
                *printed = Some((Instant::now(), value.clone()));
                value
            }
        };
        let program = words.first().map(String::as_str).unwrap_or_default();
        value.map_err(|why| unusable(name, &format!("the command `{program}` {why}")))
    }
}

/// The value in a file of this user, outside of where agents write.
fn read(path: &Path, writable: &[PathBuf]) -> Result<Secret, String> {
    const INSIDE: &str = "is where agents and tools write";
    let is_inside = |path: &Path| writable.iter().any(|place| path.starts_with(place));
    // A link there may be changed there, wherever it leads.
    if is_inside(path) {
        return Err(INSIDE.to_owned());
    }
    let flags = nix::libc::O_NONBLOCK;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| format!("cannot be read: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if is_inside(&real_place(path)) || metadata.nlink() > 1 {
        return Err(INSIDE.to_owned());
    }
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(format!("is not a file of at most {} KiB", MAX_BYTES >> 10));
    }
    let owners = [nix::unistd::geteuid().as_raw(), 0];
    if metadata.mode() & 0o022 != 0 || !owners.contains(&metadata.uid()) {
        return Err("can be written by other users".to_owned());
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| format!("cannot be read: {error}"))?;
    trimmed(text).map_err(str::to_owned)
}

/// The text without the end of its line.
pub(super) fn trimmed(text: Vec<u8>) -> Result<Secret, &'static str> {
    let text = String::from_utf8(text).map_err(|_| "holds what is not text")?;
    let value = text.trim_end_matches(['\n', '\r']);
    if value.is_empty() { Err("is empty") } else { Ok(Secret::new(value)) }
}

fn unusable(name: &str, why: &str) -> ToolError {
    ToolError::new(Code::Config, format!("the secret `{name}` has no value: {why}"))
        .help("nothing was sent; correct it, or the entry of `secrets` in the configuration")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use tgp_contract::Code;
    use tgp_fetch::SecretSource;
    use tokio::sync::Mutex;

    use super::{SecretEntry, SecretValues};
    use crate::config::SecretOrigin;

    #[tokio::test]
    async fn values_come_from_variables_files_and_programs_and_errors_hold_none() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        let write = |path: &std::path::Path, mode: u32| {
            std::fs::write(path, "from-a-file\n").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            SecretOrigin::File(path.display().to_string())
        };
        let command = |script: &str| SecretOrigin::Command(["sh", "-c", script].map(str::to_owned).to_vec());
        let link = |target: &std::path::Path, link: &std::path::Path| {
            std::os::unix::fs::symlink(target, link).unwrap();
            SecretOrigin::File(link.display().to_string())
        };
        let hard_link = |target: &std::path::Path, link: &std::path::Path| {
            std::fs::hard_link(target, link).unwrap();
            SecretOrigin::File(link.display().to_string())
        };
        // An agent has put a program where PATH leads.
        std::fs::create_dir(project.join("bin")).unwrap();
        std::fs::write(project.join("bin/planted"), "#!/bin/sh\necho planted-value\n").unwrap();
        std::fs::set_permissions(project.join("bin/planted"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        let planted = project.join("bin").display().to_string();
        let marks = place.path().join("marks");
        let counted = format!("echo x >> {}; echo counted-value", marks.display());
        let cases = [
            ("env", SecretOrigin::Env("SET".to_owned()), Ok("from-a-variable")),
            ("unset", SecretOrigin::Env("UNSET".to_owned()), Err("`UNSET` is not set")),
            ("file", write(&place.path().join("key"), 0o600), Ok("from-a-file")),
            ("home", SecretOrigin::File("~/key".to_owned()), Ok("from-a-file")),
            ("shared", write(&place.path().join("shared"), 0o666), Err("other users")),
            ("inside", write(&project.join("key"), 0o600), Err("where agents and tools write")),
            (
                "linked",
                link(&project.join("key"), &place.path().join("link")),
                Err("where agents and tools write"),
            ),
            ("link-inside", link(&place.path().join("key"), &project.join("link")), Err("where agents")),
            ("hard", hard_link(&project.join("key"), &place.path().join("hard")), Err("where agents")),
            ("missing", SecretOrigin::File("/none/here".to_owned()), Err("cannot be read")),
            ("device", SecretOrigin::File("/dev/zero".to_owned()), Err("is not a file")),
            ("command", command("printf 'printed-value\\n'; echo noise >&2"), Ok("printed-value")),
            ("counted", command(&counted), Ok("counted-value")),
            ("fails", command("echo half-a-secret; exit 3"), Err("exit status: 3")),
            ("floods", command("yes"), Err("prints more than")),
            ("silent", command("true"), Err("is empty")),
            ("binary", command("printf '\\377\\376'"), Err("not text")),
            ("child", command("sleep 300 & echo value-of-leader"), Ok("value-of-leader")),
            ("script", command(&format!("{}/bin/id", project.display())), Err("names a place where agents")),
            ("relative", SecretOrigin::Command(vec!["./id".to_owned()]), Err("has to be absolute")),
            ("planted", SecretOrigin::Command(vec!["planted".to_owned()]), Err("is not in PATH")),
            (
                "path",
                SecretOrigin::Command(["printenv", "PATH"].map(str::to_owned).to_vec()),
                Ok("/usr/bin:/bin"),
            ),
        ];
        let home = place.path().display().to_string();
        let entry = |from: &SecretOrigin| SecretEntry { from: from.clone(), printed: Mutex::default() };
        let values = SecretValues {
            entries: cases.iter().map(|(name, from, _)| ((*name).to_owned(), entry(from))).collect(),
            writable: vec![project],
            environment: Arc::new(move |name| match name {
                "SET" => Some("from-a-variable".to_owned()),
                "HOME" => Some(home.clone()),
                "PATH" => Some(format!("{planted}:/usr/bin:/bin")),
                _ => None,
            }),
        };
        for (name, _, expected) in &cases {
            match (values.value(name).await, expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value.expose(), *expected, "{name}"),
                (Err(error), Err(words)) => {
                    assert_eq!(error.code, Code::Config, "{name}");
                    assert!(error.message.contains(words), "{name}: {}", error.message);
                    assert!(!error.message.contains("half-a-secret"), "{}", error.message);
                }
                (value, _) => panic!("{name}: {value:?}"),
            }
        }
        // A program is started once for many requests.
        for _ in 0..3 {
            values.value("counted").await.unwrap();
        }
        assert_eq!(std::fs::read_to_string(marks).unwrap(), "x\n");
    }
}
