//! The second half of the story: what is forged outlives the process, and what fails leaves no trace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tgp::contract::{Code, Recorder, TddMode, ToolError};
use tgp::{BootOptions, Kernel};

use super::{Demo, shown};
use crate::exit::Failure;
use crate::session;

const ORDER: &str = include_str!("tools/order.ts");

/// What somebody asks who has never seen the tool.
const QUESTION: &str = "number at a given position of the Fibonacci sequence";

/// Commits of the remote that the demo shows.
const SHOWN_COMMITS: &str = "--max-count=4";

/// The folders of the demo.
pub(super) struct Places {
    pub(super) first: PathBuf,
    second: PathBuf,
    /// A bare repository; none where git is not installed.
    pub(super) remote: Option<PathBuf>,
}

impl Places {
    /// Two project folders, and a remote that both know.
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        let places =
            Self { first: folder.join("first"), second: folder.join("second"), remote: bare_remote(folder) };
        for project in [&places.first, &places.second] {
            std::fs::create_dir(project).map_err(|error| cannot_write(&error))?;
            if places.remote.is_some() {
                std::fs::write(project.join("tgp.config.ts"), CONFIG)
                    .map_err(|error| cannot_write(&error))?;
            }
        }
        Ok(places)
    }
}

const REMOTE: &str = "remote.git";
const CONFIG: &str = "export default { git: { url: '../remote.git', auth: { user: 'demo agent' } } };\n";

fn cannot_write(error: &std::io::Error) -> Failure {
    ToolError::new(Code::Internal, format!("cannot write to the temporary folder: {error}")).into()
}

/// Git with nothing of the user's own: no configuration, no hooks, no templates.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn bare_remote(folder: &Path) -> Option<PathBuf> {
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", "--template=", "--", REMOTE])?;
    Some(folder.join(REMOTE))
}

impl Demo<'_> {
    /// A second kernel knows nothing but the remote.
    pub(super) async fn find_it_elsewhere(
        &mut self,
        places: &Places,
        records: &Arc<dyn Recorder>,
    ) -> Result<(), Failure> {
        self.chapter(
            "Another agent, elsewhere, asks in its own words and finds the tool instead of writing it again",
        );
        let Some(remote) = &places.remote else {
            self.say("left out: git is not installed here");
            self.steps.push(json!({ "step": "find", "skipped": "git is not installed" }));
            return Ok(());
        };
        let log = git(remote, &["log", SHOWN_COMMITS, "--format=%h %an: %s"]).unwrap_or_default();
        self.expect(log.contains("Forge: tools/math/fib.ts"), "the pushed commits")?;
        self.say("the remote's git log:");
        log.lines().for_each(|line| self.indented(&format!("  {line}")));
        let started = Instant::now();
        let options = BootOptions {
            recorder: Some(Arc::clone(records)),
            tdd_mode: Some(TddMode::Explore),
            ..session::boot_options(places.second.clone())
        };
        let second = Kernel::boot(options).await.map_err(ToolError::from)?;
        self.say(&format!("a second kernel has hydrated from it after {}", shown(started.elapsed())));
        let found = self.ask(&second).await;
        second.shutdown().await;
        found
    }

    async fn ask(&mut self, second: &Kernel) -> Result<(), Failure> {
        let data = second.call("search", json!({ "query": QUESTION })).await.into_result()?;
        let best = data.pointer("/results/0").cloned().unwrap_or_default();
        let text = |name: &str| best.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.say(&format!("search \"{QUESTION}\""));
        self.say(&format!(
            "{} (score {:.2}, verdict {}; {})",
            text("path"),
            best.get("score").and_then(Value::as_f64).unwrap_or_default(),
            text("verdict"),
            text("why"),
        ));
        self.expect(text("path") == "tools/math/fib.ts", "the tool that was found")?;
        let call = json!({ "path": text("path"), "args": { "n": 30 } });
        let result = second.call("exec_tool", call).await.into_result()?.get("result").cloned();
        self.expect(result == Some(json!(832_040)), "fib(30) of the second kernel")?;
        self.say("exec_tool {\"n\":30}: 832040");
        self.steps.push(json!({ "step": "find", "query": QUESTION, "best": best }));
        Ok(())
    }

    /// Rows of a run that fails are gone.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.chapter("A tool inserts a row and then throws: the row is gone");
        self.sql("CREATE TABLE orders (item TEXT NOT NULL, price INTEGER NOT NULL)").await?;
        self.write("tools/shop/order.ts", ORDER).await?;
        self.source(ORDER);
        let call = json!({ "path": "tools/shop/order.ts", "args": { "item": "air", "price": 0 } });
        let result = self.call("exec_tool", call).await;
        let Some(error) = result.error() else { return self.expect(false, "the tool that throws") };
        self.say(&format!("exec_tool {{\"item\":\"air\",\"price\":0}}: {error}"));
        let after_failure = self.count_orders().await?;
        self.expect(after_failure == json!(0), "the row count after the failure")?;
        self.say(&format!("rows in orders: {after_failure}"));
        self.exec("tools/shop/order.ts", json!({ "item": "bread", "price": 3 })).await?;
        let after_success = self.count_orders().await?;
        self.expect(after_success == json!(1), "the row count after the success")?;
        self.say(&format!("with a price of 3 it returns, and is committed; rows in orders: {after_success}"));
        self.steps.push(json!({
            "step": "rollback",
            "code": error.code,
            "rowsAfterFailure": after_failure,
            "rowsAfterSuccess": after_success,
        }));
        Ok(())
    }

    async fn count_orders(&mut self) -> Result<Value, Failure> {
        let data = self.sql("SELECT count(*) AS n FROM orders").await?;
        Ok(data.pointer("/rows/0/n").cloned().unwrap_or_default())
    }

    async fn sql(&mut self, sql: &str) -> Result<Value, Failure> {
        Ok(self.call("exec_sql", json!({ "sql": sql })).await.into_result()?)
    }
}
