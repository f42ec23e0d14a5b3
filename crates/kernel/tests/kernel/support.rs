//! A project in a temporary directory with a kernel on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::audit::{Decision, RecordedDecision, record_decision};
use tgp::contract::{CallRecord, Recorder, TddMode, ToolError, ToolResult};
use tgp::trust::Trust;
use tgp::{BootError, BootOptions, Kernel};

/// The worker program of this build.
pub const WORKER: &str = env!("CARGO_BIN_EXE_tgp-worker");

/// Set in a copy of this binary that runs one test alone, see [`alone`].
const ALONE: &str = "TGP_TEST_ALONE";

/// An initialised project without a configuration file.
pub struct Project {
    directory: TempDir,
}

impl Project {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tgp-test-").tempdir().unwrap();
        let project = Self { directory };
        tgp::project::initialise(project.path()).unwrap();
        std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
        project
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file of the project, making its parents.
    pub fn put(&self, name: &str, content: &str) -> &Self {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Writes a file below `.tgp/tools`.
    pub fn tool(&self, name: &str, content: &str) -> &Self {
        self.put(&format!(".tgp/tools/{name}"), content)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.file(name)).ok()
    }

    pub fn options(&self) -> BootOptions {
        BootOptions {
            worker: Some(PathBuf::from(WORKER)),
            // Most tests are about other things than tests for tools.
            tdd_mode: Some(TddMode::Explore),
            // A test writes its configuration itself; those about trust say otherwise.
            trust: Trust::Everything,
            ..BootOptions::new(self.path())
        }
    }

    pub async fn boot(&self) -> Result<Kernel, BootError> {
        Kernel::boot(self.options()).await
    }

    /// A kernel with this configuration, which names `sandbox` limits only where the test is about them.
    pub async fn kernel(&self, config: Value) -> Kernel {
        self.put("tgp.config.json", &roomy(config).to_string());
        self.boot().await.unwrap()
    }
}

/// CPU and wall-clock time that a loaded machine cannot use up, unless the configuration says otherwise.
fn roomy(mut config: Value) -> Value {
    let sandbox = config.as_object_mut().unwrap().entry("sandbox").or_insert_with(|| json!({}));
    let sandbox = sandbox.as_object_mut().unwrap();
    sandbox.entry("cpuMs").or_insert_with(|| json!(5_000));
    sandbox.entry("wallMs").or_insert_with(|| json!(30_000));
    config
}

/// The proof that a decision is in an audit, outside of every project.
pub fn recorded() -> RecordedDecision {
    let record = async {
        let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let place = home.path().display().to_string();
        let environment = Arc::new(move |name: &str| (name == "TGP_HOME").then(|| place.clone()));
        let options = BootOptions { environment, ..BootOptions::new(folder.path()) };
        record_decision(&options, Decision::new("test", json!({}))).await.unwrap()
    };
    std::thread::scope(|scope| {
        let recording = scope.spawn(|| tokio::runtime::Runtime::new().unwrap().block_on(record));
        recording.join().unwrap()
    })
}

/// Runs one source as a tool and gives what `exec_tool` answered.
pub async fn run(kernel: &Kernel, project: &Project, source: &str, args: Value) -> ToolResult {
    project.tool("under_test.ts", source);
    exec(kernel, "tools/under_test.ts", args).await
}

pub async fn exec(kernel: &Kernel, path: &str, args: Value) -> ToolResult {
    kernel.call("exec_tool", json!({ "path": path, "args": args })).await
}

/// The `result` of a run that must succeed.
#[track_caller]
pub fn result(answer: &ToolResult) -> Value {
    data(answer)["result"].clone()
}

#[track_caller]
pub fn data(answer: &ToolResult) -> &Value {
    match answer {
        ToolResult::Done(data) => data,
        ToolResult::Failed(error) => panic!("the call failed: {error}, {:?}", error.details),
    }
}

#[track_caller]
pub fn error(answer: &ToolResult) -> &ToolError {
    match answer {
        ToolResult::Done(data) => panic!("the call succeeded: {data}"),
        ToolResult::Failed(error) => error,
    }
}

/// The code and message of a failed call.
#[track_caller]
pub fn code(answer: &ToolResult) -> &'static str {
    error(answer).code.as_str()
}

/// `file:line:column` of a failed call.
#[track_caller]
pub fn place(answer: &ToolResult) -> String {
    let error = error(answer);
    error
        .place_of()
        .map_or_else(|| panic!("no place in {error}: {:?}", error.details), |place| place.to_string())
}

/// Levels and texts of the logs, in order.
pub fn logs(value: &Value) -> Vec<(String, String)> {
    let lines = value["logs"].as_array().unwrap();
    lines
        .iter()
        .map(|line| (line["level"].as_str().unwrap().to_owned(), line["text"].as_str().unwrap().to_owned()))
        .collect()
}

/// A recorder that keeps nothing.
pub struct Forgetful;

#[async_trait::async_trait]
impl Recorder for Forgetful {
    async fn record(&self, _record: CallRecord) -> Result<(), ToolError> {
        Ok(())
    }

    fn record_cancelled(&self, _record: CallRecord) {}
}

/// A recorder that keeps everything.
#[derive(Default)]
pub struct Records(Mutex<Vec<CallRecord>>);

impl Records {
    pub fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[async_trait::async_trait]
impl Recorder for Records {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        self.0.lock().unwrap().push(record);
        Ok(())
    }

    fn record_cancelled(&self, record: CallRecord) {
        self.0.lock().unwrap().push(record);
    }
}

type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// An environment for configuration files.
pub fn environment(pairs: &'static [(&'static str, &'static str)]) -> Environment {
    Arc::new(move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

/// True in a process that runs nothing but the test `name`; elsewhere it starts that process and waits for it. For
/// tests that examine this process's own children and memory, which other tests would change.
pub fn alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some_and(|alone| alone == name) {
        return true;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ALONE, name)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&status.stdout);
    assert!(told.contains("1 passed") || !status.status.success(), "there is no test `{name}`");
    assert!(
        status.status.success(),
        "`{name}` failed alone:\n{told}\n{}",
        String::from_utf8_lossy(&status.stderr)
    );
    false
}
