//! The upstream servers of the user, for the person who manages them.

use std::sync::Arc;

pub use tgp_upstream::{
    HttpServer, Pin, PinChange, ServerDefinition, StdioServer, UpstreamModule, UpstreamStore, UpstreamTool,
    Upstreams, ValueSource, check_server_name,
};

use crate::boot::{BootContext, BootError, BootOptions};
use crate::config::Config;
use crate::settings;

/// The servers of the user, with the secrets of the project where there is one. Nothing is started.
///
/// # Errors
/// When the project's configuration cannot be used.
pub async fn open(options: &BootOptions) -> Result<Arc<Upstreams>, BootError> {
    let environment = &options.environment;
    match BootContext::find(options).await {
        Ok(ground) => Ok(settings::upstreams(&ground.config, &ground.project, environment)),
        Err(BootError::NotInitialised(_)) => {
            Ok(settings::upstreams(&Config::default(), &options.directory, environment))
        }
        Err(error) => Err(error),
    }
}
