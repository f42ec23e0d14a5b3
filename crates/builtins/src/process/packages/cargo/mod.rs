//! cargo: crates of the default index, fetched in the jail and copied to the user's registry by the kernel.

use async_trait::async_trait;
use tgp_contract::{Code, ToolError};
use tgp_jail::LayerChange;
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;

use super::Plan;
use super::managers::{Installation, PackageManager, Run, Site};

pub(super) struct Cargo;

/// What is put into the user's registry.
pub(super) struct RegistryUpdate {
    bytes: u64,
}

impl RegistryUpdate {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn put(self) -> std::io::Result<()> {
        Ok(())
    }
}

#[async_trait]
impl PackageManager for Cargo {
    fn name(&self) -> &'static str {
        "cargo"
    }

    fn tree_name(&self) -> Option<&'static str> {
        None
    }

    fn check(&self, _plan: &Plan) -> Result<(), ToolError> {
        Err(unsupported())
    }

    fn command(&self, _plan: &Plan) -> String {
        "cargo fetch".to_owned()
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
    ToolError::new(Code::Capability, "packages of cargo are not installed")
        .help("ask the user to install them; nothing was changed")
}
