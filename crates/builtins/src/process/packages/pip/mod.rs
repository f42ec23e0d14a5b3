//! pip: wheels of an index, downloaded in the jail and unpacked by the kernel.

use async_trait::async_trait;
use tgp_contract::{Code, ToolError};
use tgp_jail::LayerChange;
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;

use super::Plan;
use super::managers::{Installation, PackageManager, Run, Site};

pub(super) struct Pip;

#[async_trait]
impl PackageManager for Pip {
    fn name(&self) -> &'static str {
        "pip"
    }

    fn tree_name(&self) -> Option<&'static str> {
        Some(".venv")
    }

    fn check(&self, _plan: &Plan) -> Result<(), ToolError> {
        Err(unsupported())
    }

    fn command(&self, _plan: &Plan) -> String {
        "pip download --only-binary=:all:".to_owned()
    }

    fn require(&self, _plan: &Plan, _files: &ProjectFiles) -> Result<(), ToolError> {
        Err(unsupported())
    }

    async fn prepare(
        &self,
        _plan: &Plan,
        _site: &Site,
        _invocation: Invocation<'_>,
    ) -> Result<Run, ToolError> {
        Err(unsupported())
    }

    fn read(&self, _plan: &Plan, _site: &Site, _found: Vec<LayerChange>) -> Result<Installation, ToolError> {
        Err(unsupported())
    }
}

fn unsupported() -> ToolError {
    ToolError::new(Code::Capability, "packages of Python are not installed")
        .help("ask the user to install them; nothing was changed")
}
