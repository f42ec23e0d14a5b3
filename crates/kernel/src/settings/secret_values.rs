//! Where the values of secrets come from: a variable, a file, or what a program prints.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tgp_contract::{Code, ToolError, background};
use tgp_fetch::{AllowList, FetchClient, FetchLimits, SecretBroker, SecretSource};
use tgp_fs::real_place;
use tgp_net::Secret;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::boot::Environment;
use crate::config::{Config, SecretConfig, SecretOrigin};

/// Longer than any key.
const MAX_BYTES: u64 = 64 << 10;
/// How long a program may take to print a secret, and how long its answer is used.
const PATIENCE: Duration = Duration::from_secs(10);
const LIFETIME: Duration = Duration::from_secs(300);

/// The client of `fetch` with the secrets of the configuration.
pub(crate) fn fetch_client(config: &Config, project: &Path, environment: &Environment) -> Arc<FetchClient> {
    let allow_list = AllowList::parse(&config.allowed_fetch_urls).unwrap_or_default();
    let client = FetchClient::new(allow_list, FetchLimits::default());
    if config.secrets.is_empty() {
        return Arc::new(client);
    }
    // The configuration has checked them.
    let bindings = config.secrets.iter().filter_map(|secret| secret.binding().ok()).collect();
    let origin = |secret: &SecretConfig| (secret.name.clone(), secret.from.clone());
    let values = SecretValues {
        origins: config.secrets.iter().map(origin).collect(),
        project: project.to_owned(),
        environment: Arc::clone(environment),
        printed: Mutex::default(),
    };
    Arc::new(client.with_secrets(SecretBroker::new(bindings, Arc::new(values))))
}

struct SecretValues {
    origins: BTreeMap<String, SecretOrigin>,
    project: PathBuf,
    environment: Environment,
    /// What programs have printed. Held while one runs, so that many requests start it once.
    printed: Mutex<BTreeMap<String, (Instant, Secret)>>,
}

#[async_trait]
impl SecretSource for SecretValues {
    async fn value(&self, name: &str) -> Result<Secret, ToolError> {
        match self.origins.get(name) {
            Some(SecretOrigin::Env(variable)) => {
                let value = (self.environment)(variable).filter(|value| !value.is_empty());
                let missing = || unusable(name, &format!("the variable `{variable}` is not set"));
                value.map(Secret::new).ok_or_else(missing)
            }
            Some(SecretOrigin::File(path)) => {
                let (path, project, name) = (self.path(path), self.project.clone(), name.to_owned());
                background::run(move || {
                    read(&path, &project)
                        .map_err(|why| unusable(&name, &format!("the file `{}` {why}", path.display())))
                })
                .await
            }
            Some(SecretOrigin::Command(words)) => self.printed(name, words).await,
            None => Err(unusable(name, "it is not configured")),
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

    async fn printed(&self, name: &str, words: &[String]) -> Result<Secret, ToolError> {
        let mut printed = self.printed.lock().await;
        if let Some((since, value)) = printed.get(name)
            && since.elapsed() < LIFETIME
        {
            return Ok(value.clone());
        }
        let home = (self.environment)("HOME").map(PathBuf::from).filter(|home| home.is_dir());
        let run = tokio::time::timeout(PATIENCE, run(words, home.as_deref()));
        let program = words.first().map(String::as_str).unwrap_or_default();
        let value = run.await.unwrap_or_else(|_| Err(format!("took longer than {} s", PATIENCE.as_secs())));
        let value = value.map_err(|why| unusable(name, &format!("the command `{program}` {why}")))?;
        printed.insert(name.to_owned(), (Instant::now(), value.clone()));
        Ok(value)
    }
}

/// What a program prints. Dropping the future ends it.
async fn run(words: &[String], directory: Option<&Path>) -> Result<Secret, String> {
    let Some((program, arguments)) = words.split_first() else { return Err("is empty".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true).current_dir(directory.unwrap_or(Path::new("/")));
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let mut text = Vec::new();
    if let Some(output) = child.stdout.take() {
        let read = output.take(MAX_BYTES + 1).read_to_end(&mut text).await;
        read.map_err(|error| format!("cannot be read: {error}"))?;
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("prints more than {} KiB", MAX_BYTES >> 10));
    }
    let status = child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("ends with {status}"));
    }
    trimmed(text).map_err(str::to_owned)
}

/// The value in a file that its owner alone can have written, outside the project, where agents write.
fn read(path: &Path, project: &Path) -> Result<Secret, String> {
    if real_place(path).starts_with(project) {
        return Err("is inside the project, where agents write".to_owned());
    }
    let flags = nix::libc::O_NONBLOCK;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| format!("cannot be read: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(format!("is not a file of at most {} KiB", MAX_BYTES >> 10));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err("can be written by other users".to_owned());
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).map_err(|error| format!("cannot be read: {error}"))?;
    trimmed(text).map_err(str::to_owned)
}

/// The text without the end of its line.
fn trimmed(text: Vec<u8>) -> Result<Secret, &'static str> {
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

    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use tgp_contract::Code;
    use tgp_fetch::SecretSource;
    use tokio::sync::Mutex;

    use super::SecretValues;
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
        let marks = place.path().join("marks");
        let counted = format!("echo x >> {}; echo counted-value", marks.display());
        let cases = [
            ("env", SecretOrigin::Env("SET".to_owned()), Ok("from-a-variable")),
            ("unset", SecretOrigin::Env("UNSET".to_owned()), Err("`UNSET` is not set")),
            ("file", write(&place.path().join("key"), 0o600), Ok("from-a-file")),
            ("home", SecretOrigin::File("~/key".to_owned()), Ok("from-a-file")),
            ("shared", write(&place.path().join("shared"), 0o666), Err("other users")),
            ("inside", write(&project.join("key"), 0o600), Err("inside the project")),
            ("missing", SecretOrigin::File("/none/here".to_owned()), Err("cannot be read")),
            ("device", SecretOrigin::File("/dev/zero".to_owned()), Err("is not a file")),
            ("command", command("printf 'printed-value\\n'; echo noise >&2"), Ok("printed-value")),
            ("counted", command(&counted), Ok("counted-value")),
            ("fails", command("echo half-a-secret; exit 3"), Err("exit status: 3")),
            ("floods", command("yes"), Err("prints more than")),
            ("silent", command("true"), Err("is empty")),
            ("binary", command("printf '\\377\\376'"), Err("not text")),
        ];
        let home = place.path().display().to_string();
        let values = SecretValues {
            origins: cases.iter().map(|(name, from, _)| ((*name).to_owned(), from.clone())).collect(),
            project,
            environment: Arc::new(move |name| match name {
                "SET" => Some("from-a-variable".to_owned()),
                "HOME" => Some(home.clone()),
                _ => None,
            }),
            printed: Mutex::new(BTreeMap::new()),
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
