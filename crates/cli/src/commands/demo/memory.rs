//! The second half of the story: what is forged outlives the process, and what fails leaves no trace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tgp::contract::ToolError;
use tgp::results::SqlResult;
use tgp::trust::Trust;
use tgp::{BootOptions, Kernel};

use super::super::result_of;
use super::agent::Person;
use super::{Demo, cannot_write, shown};
use crate::exit::Failure;
use crate::session;

const ORDER: &str = include_str!("tools/order.ts");

/// Commits of the remote that the demo shows.
const SHOWN_COMMITS: &str = "--max-count=4";

/// The folders of the demo.
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) first: PathBuf,
    second: PathBuf,
    /// A bare repository; none where git is not installed.
    remote: Option<PathBuf>,
}

impl Places {
    /// Two project folders, and a remote that both know.
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        let places = Self {
            folder: folder.to_owned(),
            first: folder.join("first"),
            second: folder.join("second"),
            remote: bare_remote(folder),
        };
        for project in [&places.first, &places.second] {
            std::fs::create_dir(project).map_err(|error| cannot_write(&error))?;
            if places.remote.is_some() {
                std::fs::write(project.join("tgp.config.ts"), CONFIG)
                    .map_err(|error| cannot_write(&error))?;
            }
        }
        Ok(places)
    }

    /// A project that has the tool of the first one: through the remote, or itself.
    pub(super) fn shared_project(&self) -> &Path {
        if self.remote.is_some() { &self.second } else { &self.first }
    }
}

const REMOTE: &str = "remote.git";
const CONFIG: &str = "export default { git: { url: '../remote.git', auth: { user: 'demo agent' } } };\n";

/// Git with nothing of the user's own: no configuration, no hooks, no templates.
pub(super) fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // No variable of the user's chooses another repository, index or store of objects.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    let output = command
        .args(arguments)
        .current_dir(folder)
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
    /// A second kernel knows nothing but the remote; without git it is the first one again.
    pub(super) async fn find_it_elsewhere(&mut self, places: &Places, first: &Kernel) -> Result<(), Failure> {
        self.chapter("Another agent, on another machine, has a task of the same kind");
        let Some(remote) = &places.remote else {
            self.say("(git is not installed here, so it is the same machine)");
            return self.reuse_by_another(first, &places.folder).await;
        };
        let log = git(remote, &["log", SHOWN_COMMITS, "--format=%h %an: %s"]).unwrap_or_default();
        self.expect(log.contains("Forge: tools/shipping/billable_weight.ts"), "the pushed commits")?;
        self.say("what the first one has left in git:");
        log.lines().for_each(|line| self.indented(&format!("  {line}")));
        let started = Instant::now();
        let options = BootOptions {
            approver: Arc::new(Person),
            trust: Trust::Everything,
            ..session::boot_options(places.second.clone())
        };
        let second = Kernel::boot(options).await.map_err(ToolError::from)?;
        self.say(&format!("a fresh machine has fetched it after {}", shown(started.elapsed())));
        self.blank();
        let reused = self.reuse_by_another(&second, &places.folder).await;
        second.shutdown().await;
        reused
    }

    /// Rows of a run that fails are gone.
    pub(super) async fn roll_back(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        self.chapter("A tool inserts a row and then throws: the row is gone");
        self.sql(kernel, "CREATE TABLE orders (item TEXT NOT NULL, price INTEGER NOT NULL)").await?;
        self.write(kernel, "tools/shop/order.ts", ORDER).await?;
        self.source(ORDER);
        let call = json!({ "path": "tools/shop/order.ts", "args": { "item": "air", "price": 0 } });
        let result = self.call(kernel, "exec_tool", call).await;
        let Some(error) = result.error() else { return self.expect(false, "the tool that throws") };
        self.say(&format!("exec_tool {{\"item\":\"air\",\"price\":0}}: {error}"));
        let after_failure = self.count_orders(kernel).await?;
        self.expect(after_failure == json!(0), "the row count after the failure")?;
        self.say(&format!("rows in orders: {after_failure}"));
        self.exec(kernel, "tools/shop/order.ts", json!({ "item": "bread", "price": 3 })).await?;
        let after_success = self.count_orders(kernel).await?;
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

    async fn count_orders(&mut self, kernel: &Kernel) -> Result<Value, Failure> {
        let data = self.sql(kernel, "SELECT count(*) AS n FROM orders").await?;
        let first = result_of::<SqlResult>(data)?.rows.into_iter().next();
        Ok(first.and_then(|row| row.get("n").cloned()).unwrap_or_default())
    }

    async fn sql(&mut self, kernel: &Kernel, sql: &str) -> Result<Value, Failure> {
        self.go_on()?;
        Ok(self.call(kernel, "exec_sql", json!({ "sql": sql })).await.into_result()?)
    }
}
