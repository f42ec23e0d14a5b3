//! What the tool runtime depends on.

use std::path::Path;
use std::sync::Arc;

use tgp_tool_runtime::ToolRuntimeOptions;

use super::upstream::OtherPrograms;
use crate::config::Config;

/// A configuration that is being read has no functions of other programs.
pub(crate) fn runtime_options(
    config: &Config,
    project: &Path,
    root: Option<&Path>,
    others: Option<&OtherPrograms>,
) -> ToolRuntimeOptions {
    ToolRuntimeOptions {
        project: project.to_owned(),
        tool_root: root.map(Path::to_owned),
        allowed_imports: config.allowed_imports.clone(),
        foreign: others.map(|others| Arc::new(others.clone()) as _),
        limits: config.sandbox.limits,
        ceiling: config.sandbox.highest_limits(),
        seed: config.sandbox.seed,
        frozen_clock_ms: config.sandbox.clock_ms,
    }
}
