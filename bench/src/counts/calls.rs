//! The calls that are counted, in a process of their own with marks around them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tgp::Kernel;

use super::{EXEC_TOOL, FS_READ};
use crate::project::{Project, run_small_tool};

/// The first argument of a process that makes calls. How many, and after how many that do not count, follows.
pub const CALLS_ARGUMENT: &str = "__counted-calls";
/// A folder that is never there: looking at a file in it shows in a trace.
pub const MARK_FOLDER: &str = "/tgp-count-mark";
/// A rule, as a project has it.
const RULES: &str = "version: 1\nrules:\n  - {id: no-migrations, effect: deny, tools: ['fs_*'], where: {path: 'migrations/**'}, reason: people write them}\n";
const READ: &str = "notes.txt";

/// How many calls are made.
#[derive(Clone, Copy, Debug)]
pub struct CallPlan {
    /// Calls before the first mark.
    pub warm_up: usize,
    /// Calls between the marks.
    pub counted: usize,
    /// After each call, so that what it has begun in other threads and processes is done.
    pub pause: Duration,
}

impl CallPlan {
    /// The command line of a process that makes these calls of one kind, without its program.
    pub fn arguments(&self, what: &str) -> Vec<OsString> {
        let numbers = [self.warm_up, self.counted, self.pause.as_millis() as usize];
        let words = [CALLS_ARGUMENT.to_owned(), what.to_owned()];
        words.into_iter().chain(numbers.map(|number| number.to_string())).map(OsString::from).collect()
    }
}

/// Makes the calls that the arguments of this process name.
pub fn make(arguments: &[String]) -> Result<()> {
    let [what, warm_up, counted, pause] = arguments else { bail!("four words say what to call") };
    let plan = CallPlan {
        warm_up: warm_up.parse()?,
        counted: counted.parse()?,
        pause: Duration::from_millis(pause.parse()?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let project = Project::new()?;
        std::fs::write(project.directory().join("tgp.policy.yaml"), RULES)?;
        std::fs::write(project.directory().join(READ), "a line\n".repeat(100))?;
        let kernel = project.boot().await?;
        // One of each: what happens once is not counted.
        for _ in 0..plan.warm_up {
            call(&kernel, what, plan.pause).await?;
        }
        mark_of_count("begin");
        for _ in 0..plan.counted {
            call(&kernel, what, plan.pause).await?;
        }
        mark_of_count("end");
        kernel.shutdown().await;
        Ok(())
    })
}

async fn call(kernel: &Kernel, what: &str, pause: Duration) -> Result<()> {
    match what {
        EXEC_TOOL => run_small_tool(kernel).await.map(drop)?,
        FS_READ => {
            let result = kernel.call("fs_read", json!({ "path": READ })).await;
            result.into_result().context("fs_read failed")?;
        }
        other => bail!("nothing is counted under the name `{other}`"),
    }
    // On this thread and blocking: a timer of the runtime would be counted.
    std::thread::sleep(pause);
    Ok(())
}

/// Leaves a mark in a trace: of system calls by the file it looks at, of instructions by its own name.
#[inline(never)]
fn mark_of_count(name: &str) {
    let _ = PathBuf::from(MARK_FOLDER).join(name).symlink_metadata();
}
