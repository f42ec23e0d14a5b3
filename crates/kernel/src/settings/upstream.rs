//! The upstream servers of the user, as this kernel uses them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tgp_compiler::{ForeignModules, UPSTREAM_SCHEME};
use tgp_contract::{Code, ToolError};
use tgp_fetch::{SecretBinding, SecretSource};
use tgp_net::Secret;
use tgp_upstream::{HOST_SPECIFIER, HostModules, UpstreamOptions, UpstreamStore, Upstreams, ValueProvider};
use url::Url;

use super::secret_values::{SecretValues, secret_values, writable_places};
use crate::boot::Environment;
use crate::config::Config;
use crate::user_state;

/// The directory of definitions and pins below the user's configuration, and of homes below the user's state.
const DIRECTORY: &str = "upstream";

/// Pins of the tool repository, in the folder that agents do not write.
const SHARED_PINS: &str = "policy/upstream.json";

/// The servers of the user. Nothing is read or started before one is used.
pub(crate) fn upstreams(config: &Config, project: &Path, environment: &Environment) -> Arc<Upstreams> {
    let directories = user_state::config_directory(environment).zip(user_state::directory(environment));
    // Without a home the paths are relative, and a store at a relative path is empty.
    let (store, homes) = directories.unwrap_or_default();
    let root = project.join(&config.root_dir);
    Arc::new(Upstreams::new(UpstreamOptions {
        store: UpstreamStore::new(store.join(DIRECTORY)),
        homes: homes.join(DIRECTORY),
        writable: writable_places(config, project),
        values: Arc::new(Values {
            secrets: secret_values(config, project, environment),
            bindings: config
                .secrets
                .iter()
                .filter_map(|secret| Some((secret.name.clone(), secret.binding().ok()?)))
                .collect(),
            environment: Arc::clone(environment),
        }),
        shared_pins: root.is_dir().then(|| root.join(SHARED_PINS)),
    }))
}

struct Values {
    secrets: Option<Arc<SecretValues>>,
    bindings: BTreeMap<String, SecretBinding>,
    environment: Environment,
}

#[async_trait]
impl ValueProvider for Values {
    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    async fn secret(&self, name: &str) -> Result<Secret, ToolError> {
        match &self.secrets {
            Some(secrets) => secrets.value(name).await,
            None => Err(ToolError::new(Code::Config, format!("the secret `{name}` is not configured")).help(
                "name it in `secrets` of the configuration of the project, and confirm it with `tgp trust`",
            )),
        }
    }

    async fn header_secret(&self, name: &str, header: &str, url: &Url) -> Result<Secret, ToolError> {
        let value = self.secret(name).await?;
        let Some(binding) = self.bindings.get(name) else {
            return Err(ToolError::new(Code::Config, format!("the secret `{name}` is not configured")));
        };
        binding.header_value(header, url, &value).map_err(|why| {
            let message =
                format!("the secret `{name}` cannot be the header `{}`: {why}", header.escape_debug());
            ToolError::new(Code::Security, message)
                .help("change `hosts`, `methods`, `paths` and `as` of the secret in the configuration")
        })
    }
}

/// Whose functions tools can import: those of the user's servers, and those of the embedding program where it offers some.
#[derive(Clone, Debug)]
pub(crate) struct OtherPrograms {
    pub(crate) upstream: Arc<Upstreams>,
    pub(crate) host: Option<Arc<HostModules>>,
}

impl ForeignModules for OtherPrograms {
    fn source(&self, specifier: &str) -> Result<String, ToolError> {
        match (specifier.strip_prefix(UPSTREAM_SCHEME), specifier.strip_prefix(HOST_SPECIFIER), &self.host) {
            (Some(server), _, _) => Ok(self.upstream.module(server)?.code()),
            (None, Some(module), Some(host)) => host.code(module),
            (None, _, _) => Err(ToolError::new(Code::NotFound, "no program offers functions to this kernel")
                .help("run the tool from the program that offers them; docs/protocol.md shows how")),
        }
    }

    fn pin(&self, server: &str, tool: &str) -> Option<String> {
        self.upstream.find(server, tool).ok().map(|(_, tool)| tool.hash())
    }
}
