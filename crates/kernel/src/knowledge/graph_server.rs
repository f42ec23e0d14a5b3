//! The server of `graph.url`, in builds that can speak to one.

use std::sync::Arc;

use tgp_contract::{Code, Graph, ToolError};
use tgp_graph::GraphOptions;

use crate::config::Config;

/// Refuses `graph.url` in a build that cannot speak to a server.
///
/// # Errors
/// `ECONFIG` without the feature `graph-bolt`.
pub(crate) fn check_build() -> Result<(), ToolError> {
    if cfg!(feature = "graph-bolt") { Ok(()) } else { Err(unsupported()) }
}

fn unsupported() -> ToolError {
    let message = "`graph.url` names a graph server, and this tgp was built without support for one";
    ToolError::new(Code::Config, message).detail("field", "graph.url").help(
        "build it with `cargo build --release -p tgp-cli --features graph-bolt`, or remove `graph.url` to use the \
         embedded store",
    )
}

/// A server that holds the graph.
#[cfg(feature = "graph-bolt")]
pub(crate) struct GraphServer(tgp_graph_bolt::BoltOptions);

#[cfg(feature = "graph-bolt")]
impl GraphServer {
    /// Reads `graph.url`. The server is not spoken to before it is needed.
    pub(super) fn new(url: &str, config: &Config) -> Result<Self, ToolError> {
        let mut options = tgp_graph_bolt::BoltOptions::parse(url)?;
        options.max_rows = config.graph.max_rows;
        options.time = config.graph.timeout;
        Ok(Self(options))
    }

    pub(super) async fn open(&self, store: GraphOptions) -> Result<Arc<dyn Graph>, ToolError> {
        Ok(Arc::new(tgp_graph_bolt::BoltGraph::open(store, self.0.clone()).await?))
    }
}

/// A build without the feature `graph-bolt` has no such value.
#[cfg(not(feature = "graph-bolt"))]
pub(crate) enum GraphServer {}

#[cfg(not(feature = "graph-bolt"))]
impl GraphServer {
    pub(super) fn new(_url: &str, _config: &Config) -> Result<Self, ToolError> {
        Err(unsupported())
    }

    #[expect(clippy::unused_async, reason = "the other build opens a server here")]
    pub(super) async fn open(&self, _store: GraphOptions) -> Result<Arc<dyn Graph>, ToolError> {
        match *self {}
    }
}
