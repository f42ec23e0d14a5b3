//! The tools of a booted kernel.

use std::path::Path;
use std::sync::Arc;

use tgp::{BootOptions, Kernel};
use tgp_contract::{Code, TddMode, ToolCaller, ToolError};

/// A kernel on one project, for its router.
pub(crate) struct KernelTools {
    kernel: Kernel,
    /// Compiled tools and the layers of commands, which are not needed afterwards.
    _cache: tempfile::TempDir,
}

impl KernelTools {
    /// Makes the project one of this product, and boots a kernel on it.
    pub(crate) async fn boot(project: &Path, tgp: &Path) -> Result<Self, ToolError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            ToolError::new(Code::Config, format!("the kernel cannot {what}: {error}"))
                .help("run `tgp doctor` to see what is missing on this machine")
        };
        tgp::project::initialise(project).map_err(|error| failed("be set up", &error))?;
        let cache = tempfile::tempdir().map_err(|error| failed("keep its cache", &error))?;
        let options = BootOptions {
            worker: Some(tgp.to_owned()),
            cache_directory: Some(cache.path().to_owned()),
            // The suites are about tools, not about whether a test was there first.
            tdd_mode: Some(TddMode::Explore),
            ..BootOptions::new(project)
        };
        let kernel = Kernel::boot(options).await.map_err(|error| failed("boot", &error))?;
        Ok(Self { kernel, _cache: cache })
    }

    pub(crate) fn caller(&self) -> Arc<dyn ToolCaller> {
        self.kernel.tool_caller()
    }

    pub(crate) async fn shutdown(self) {
        self.kernel.shutdown().await;
    }
}

/// Why commands cannot be run by real tools on this machine.
pub(crate) fn no_commands() -> Option<String> {
    if tgp::sandbox::process_support().complete() {
        return None;
    }
    Some("this machine has no namespaces to confine a command with".to_owned())
}
