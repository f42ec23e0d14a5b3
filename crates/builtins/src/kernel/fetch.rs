//! `fetch`: one request to a listed URL. What a tool asks for by `tgp.fetch` comes through here too.

use std::sync::Arc;

use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Code, Effect, ExecutionPath, Target, ToolError};
use tgp_fetch::{FetchArgs, FetchClient, FetchRequest, FetchResponse, Hop, HopJudge};

use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

pub(super) struct Fetch(pub(super) Arc<FetchClient>);

#[async_trait]
impl Tool for Fetch {
    type Args = FetchArgs;
    type Output = FetchResponse;

    const INFO: ToolSpec = ToolSpec {
        name: "fetch",
        aliases: &[],
        description: "Send one HTTP request to a URL that `allowedFetchUrls` permits.",
        effect: Effect::Network,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FetchArgs) -> Result<Vec<Target>, ToolError> {
        // A text that is not a URL has no host, and is refused by the client.
        let host = url::Url::parse(&args.url).ok().and_then(|url| host_of(&url));
        let secret = args.secret.clone().map(|name| Target::Secret { name });
        Ok(host.into_iter().chain(secret).collect())
    }

    async fn run(
        &self,
        args: FetchArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FetchResponse>, ToolError> {
        let request = FetchRequest::try_from(args)?;
        if invocation.context.dry_run && !request.is_safe() {
            let message = format!("a dry run changes nothing, so it sends no {} request", request.method);
            return Err(ToolError::new(Code::Permission, message).help("run it without dry_run"));
        }
        if !request.is_safe() {
            invocation.testify()?;
        }
        invocation.reach_outside();
        let host = url::Url::parse(&request.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let started = Instant::now();
        let answer = self.0.fetch_judged(request, &Redirected { invocation }).await;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &answer {
            Ok(response) => tracing::debug!(target: "fetch", host, status = response.status, ms, "answered"),
            Err(error) => tracing::debug!(target: "fetch", host, ms, "{}", error.message),
        }
        Ok(answer?.into())
    }
}

fn host_of(url: &url::Url) -> Option<Target> {
    url.host_str().map(|host| Target::Host { host: host.to_lowercase() })
}

/// Whether the approval of a place includes the next one: the same origin, or the same host with encryption.
fn is_same_place(hop: Hop<'_>) -> bool {
    let port = |url: &url::Url| url.port_or_known_default();
    let is_upgrade = hop.from.host() == hop.url.host()
        && (hop.from.scheme(), port(hop.from)) == ("http", Some(80))
        && (hop.url.scheme(), port(hop.url)) == ("https", Some(443));
    hop.from.origin() == hop.url.origin() || is_upgrade
}

/// Takes every stop of a redirect past the gates, as the call that would lead there.
struct Redirected<'a> {
    invocation: Invocation<'a>,
}

#[async_trait]
impl HopJudge for Redirected<'_> {
    async fn judge(&self, hop: Hop<'_>) -> Result<(), ToolError> {
        let mut call = self.invocation.call.clone();
        if let Some(arguments) = call.arguments.as_object_mut() {
            arguments.insert("url".to_owned(), hop.url.as_str().into());
            arguments.insert("method".to_owned(), hop.method().into());
            let headers: Vec<Value> = hop.headers().map(|(name, value)| json!([name, value])).collect();
            if headers.is_empty() {
                arguments.remove("headers");
            } else {
                arguments.insert("headers".to_owned(), headers.into());
            }
            if !hop.has_body() {
                arguments.remove("body");
                arguments.remove("bodyEncoding");
            }
            if !hop.has_secret() {
                arguments.remove("secret");
            }
        }
        let secret = call.arguments.get("secret").and_then(Value::as_str);
        let secret = secret.map(|name| Target::Secret { name: name.to_owned() });
        let targets: Vec<Target> = host_of(hop.url).into_iter().chain(secret).collect();
        let router = self.invocation.router;
        let judged = router.judge_further(self.invocation, &call, &targets, is_same_place(hop)).await;
        judged.map_err(|error| {
            let from = hop.from.host_str().unwrap_or_default().to_owned();
            error
                .detail("redirectedFrom", from)
                .detail("redirectedTo", hop.url.host_str().unwrap_or_default())
        })
    }
}
