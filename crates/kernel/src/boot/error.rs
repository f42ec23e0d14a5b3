//! Why a kernel did not come up.

use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tgp_router::RouterError;
use tgp_router::files::WorkspaceError;
use tgp_sandbox::SandboxError;
use tgp_tool_runtime::ToolRuntimeError;

use crate::config::ConfigError;

/// Why a kernel did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("there is no tool repository at `{0}`")]
    NotInitialised(PathBuf),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Forge(#[from] ToolRuntimeError),
    #[error(transparent)]
    Router(#[from] RouterError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("cannot use `{path}` as project: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
}

/// The project around the directory whose tool repository would be `root`.
fn project_above(root: &Path) -> Option<&Path> {
    let mut directories = root.ancestors().skip(2);
    directories.find(|directory| directory.join(".tgp").join("tools").is_dir())
}

impl From<SandboxError> for BootError {
    fn from(error: SandboxError) -> Self {
        Self::Forge(error.into())
    }
}

impl From<BootError> for ToolError {
    fn from(error: BootError) -> Self {
        match error {
            BootError::Config(error) => error.into(),
            BootError::NotInitialised(ref root) if root.ends_with(".tgp") => {
                let help = match project_above(root) {
                    Some(project) => {
                        let project = project.display();
                        format!("the project is `{project}`: run the command there, or with `-C {project}`")
                    }
                    None => "run `tgp init` here".to_owned(),
                };
                ToolError::new(Code::Config, error.to_string()).help(help)
            }
            BootError::NotInitialised(_) => ToolError::new(Code::Config, error.to_string())
                .help("make that directory, or correct `rootDir` in the configuration"),
            BootError::Workspace(_) => ToolError::new(Code::Config, error.to_string())
                .help("correct `rootDir` or `fs` in the configuration"),
            BootError::Directory { .. } => {
                ToolError::new(Code::Config, error.to_string()).help("name a directory that exists")
            }
            BootError::Forge(error) => error.into(),
            BootError::Router(_) => ToolError::new(Code::Internal, error.to_string()),
            BootError::Tool(error) => error,
        }
    }
}
