//! The parts of this product, each made for one project.

mod kernel;
mod models;
mod server;

use std::path::Path;
use std::sync::Arc;

use tgp_chronicle::{ChronicleOptions, FileChronicle};
use tgp_contract::{Chronicle, ChronicleLayout, Code, Graph, ToolCaller, ToolError};
use tgp_fs::DiskFs;
use tgp_graph::{GraphOptions, GraphStore};
use tgp_relay_fakes::FakeTools;

pub(crate) use kernel::{KernelTools, no_commands};
pub(crate) use models::{HttpModels, ModelSource, OneModel, ScriptedModels};
pub(crate) use server::ModelServer;

/// The chronicle of files.
pub(crate) fn file_chronicle(
    project: &Path,
    layout: ChronicleLayout,
) -> Result<Arc<dyn Chronicle>, ToolError> {
    let options = ChronicleOptions { layout, ..ChronicleOptions::new(project) };
    Ok(Arc::new(FileChronicle::open(&options)?))
}

/// The graph in SQLite; `file` is where it is kept.
pub(crate) async fn graph_store(project: &Path, file: &Path) -> Result<Arc<dyn Graph>, ToolError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| ToolError::new(Code::Internal, format!("no folder for the graph: {error}")))?;
    }
    Ok(Arc::new(GraphStore::open(GraphOptions::new(file, project)).await?))
}

/// The files of a project on disk.
pub(crate) fn disk(project: &Path) -> Result<Arc<DiskFs>, ToolError> {
    let disk = DiskFs::open(project)
        .map_err(|error| ToolError::new(Code::Internal, format!("the project cannot be opened: {error}")))?;
    Ok(Arc::new(disk))
}

/// Fake tools on the files of a project.
pub(crate) fn fake_tools(project: &Path) -> Result<Arc<dyn ToolCaller>, ToolError> {
    Ok(Arc::new(FakeTools::new(disk(project)?)?))
}
