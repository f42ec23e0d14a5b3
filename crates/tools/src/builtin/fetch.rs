//! `fetch`: one request to a listed URL. What a tool asks for by `tgp.fetch` comes through here too.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Code, Effect, ExecutionPath, Target, ToolDefinition, ToolError};
use tgp_sandbox::{FetchClient, FetchRequest};

use super::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct Fetch {
    definition: ToolDefinition,
    client: Arc<FetchClient>,
}

/// Methods that ask and change nothing, as far as a client can know.
const SAFE_METHODS: [&str; 2] = ["GET", "HEAD"];

impl Fetch {
    pub(super) fn new(client: Arc<FetchClient>) -> Result<Self, ToolError> {
        let text = json!({ "type": "string" });
        let definition = Definition {
            name: "fetch",
            aliases: &[],
            description: "Send one HTTP request to a URL that allowedFetchUrls lists. Answers {status, headers, body, …}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "url": { "type": "string", "minLength": 1, "description": "An absolute http or https URL." },
                    "method": { "type": "string", "description": "GET when it is left out." },
                    "headers": {
                        "description": "Names and values, as an object or as pairs.",
                        "anyOf": [
                            { "type": "object", "additionalProperties": text },
                            { "type": "array", "items": { "type": "array", "items": text, "minItems": 2, "maxItems": 2 } }
                        ]
                    },
                    "body": { "type": "string" },
                    "bodyEncoding": { "enum": ["utf8", "base64"] },
                    "redirect": { "enum": ["follow", "manual", "error"] }
                },
                "required": ["url"],
                "additionalProperties": false
            }),
            effect: Effect::Network,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, client })
    }
}

#[async_trait]
impl Tool for Fetch {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let url = arguments.get("url").and_then(Value::as_str).unwrap_or_default();
        // A text that is no URL has no host, and is refused by the client.
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_lowercase));
        Ok(host.into_iter().map(|host| Target::Host { host }).collect())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let request = FetchRequest::from_json(invocation.call.arguments.clone())?;
        if invocation.context.dry_run && !SAFE_METHODS.contains(&request.method.as_str()) {
            let message = format!("a dry run changes nothing, so it sends no {} request", request.method);
            return Err(ToolError::new(Code::Permission, message).help("run it without dry_run"));
        }
        if !SAFE_METHODS.contains(&request.method.as_str()) {
            invocation.testify()?;
        }
        let response = self.client.fetch(request).await?;
        let data = serde_json::to_value(response)
            .map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
        Ok(data.into())
    }
}
