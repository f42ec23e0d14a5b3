//! When the workers that run tools are started.

use tgp_tool_runtime::ToolRuntime;

/// When the workers that run tools are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStart {
    /// While the kernel boots, so that the first run need not wait. A machine on which none can be started boots all the
    /// same: the run reports why.
    AtBoot,
    /// With the first run: for a program that may run no tool.
    AtFirstRun,
}

impl WorkerStart {
    /// What needs no worker works without one: a run tries again, and its caller gets the error.
    pub(crate) async fn apply(self, forge: &ToolRuntime) {
        if self == Self::AtBoot
            && let Err(error) = forge.warm_up().await
        {
            tracing::warn!(target: "worker", "{error}");
        }
    }
}
