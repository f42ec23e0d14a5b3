//! What the tool runtime depends on.

use std::path::Path;
use std::sync::Arc;

use tgp_compiler::UpstreamModules;
use tgp_tool_runtime::ToolRuntimeOptions;
use tgp_upstream::Upstreams;

use super::upstream::ServerModules;
use crate::config::Config;

/// A configuration that is being read has no upstream servers.
pub(crate) fn runtime_options(
    config: &Config,
    project: &Path,
    root: &Path,
    upstream: Option<&Arc<Upstreams>>,
) -> ToolRuntimeOptions {
    let modules = |upstream: &Arc<Upstreams>| -> Arc<dyn UpstreamModules> {
        Arc::new(ServerModules(Arc::clone(upstream)))
    };
    ToolRuntimeOptions {
        project: project.to_owned(),
        tool_root: root.to_owned(),
        allowed_imports: config.allowed_imports.clone(),
        upstream: upstream.map(modules),
        limits: config.sandbox.limits,
        ceiling: config.sandbox.highest_limits(),
        seed: config.sandbox.seed,
        frozen_clock_ms: config.sandbox.clock_ms,
    }
}
