//! The upstream servers of the user, for the person who manages them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tgp_contract::canonical;

pub use tgp_upstream::{
    HttpServer, Pin, PinChange, ServerDefinition, StdioServer, UpstreamModule, UpstreamStore, UpstreamTool,
    Upstreams, ValueSource, check_server_name,
};

use crate::boot::{BootContext, BootError, BootOptions};
use crate::config::Config;
use crate::records::Decision;
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

/// Returns the decision to add a server: what it may reach, the names of what it gets, and the hash of its tools. Values and
/// arguments stay out of the audit: they may hold keys.
#[must_use]
pub fn add_decision(name: &str, definition: &ServerDefinition, pin: &Pin) -> Decision {
    let mut content = reach(definition);
    content.insert("name".to_owned(), json!(name));
    content.insert("pin".to_owned(), json!(pin_hash(pin)));
    Decision::new("upstream_add", Value::Object(content))
}

/// Returns the decision to accept what a server has changed.
#[must_use]
pub fn pin_decision(name: &str, before: &Pin, now: &Pin) -> Decision {
    let content = json!({ "name": name, "before": pin_hash(before), "pin": pin_hash(now) });
    Decision::new("upstream_pin", content)
}

/// Returns the decision to log in to a server.
#[must_use]
pub fn login_decision(name: &str, definition: &ServerDefinition) -> Decision {
    let mut content = reach(definition);
    content.insert("name".to_owned(), json!(name));
    Decision::new("upstream_login", Value::Object(content))
}

fn reach(definition: &ServerDefinition) -> Map<String, Value> {
    let reach = match definition {
        ServerDefinition::Stdio(server) => json!({
            "program": server.command.first(),
            "variables": server.env.keys().collect::<Vec<_>>(),
            "read": server.read,
            "write": server.write,
            "hosts": server.hosts,
        }),
        ServerDefinition::Http(server) => json!({
            "origin": url::Url::parse(&server.url).map(|url| url.origin().ascii_serialization()).ok(),
            "headers": server.headers.keys().collect::<Vec<_>>(),
        }),
    };
    if let Value::Object(fields) = reach { fields } else { Map::new() }
}

fn pin_hash(pin: &Pin) -> Option<String> {
    serde_json::to_value(pin).ok().and_then(|pin| canonical::hash(&pin).ok())
}
