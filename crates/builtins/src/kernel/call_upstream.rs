//! `call_upstream`: one tool of an upstream server. What a tool imports from `mcp:SERVER` comes through here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Root, Target, ToolError, background};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec, Workspace};
use tgp_upstream::{ServerDefinition, Upstreams};

/// More than any schema names; the arguments of all calls have their own limit.
const MAX_NAME_CHARS: usize = 128;

pub(super) struct CallUpstream(pub(super) Arc<Upstreams>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallUpstreamArgs {
    /// The server's name, as in `mcp:NAME`.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    server: String,
    /// The tool, by the name that the server gives it.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The hash of the definition that the caller has seen.
    #[serde(default)]
    pin: Option<String>,
}

/// What a tool of an upstream server returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamResult {
    /// Its structured result, else its text, else the parts of its answer.
    pub result: Value,
    /// The hash of the definition of the tool.
    pub pin: String,
}

#[async_trait]
impl Tool for CallUpstream {
    type Args = CallUpstreamArgs;
    type Output = UpstreamResult;

    const INFO: ToolSpec = ToolSpec {
        name: "call_upstream",
        aliases: &[],
        description: "Call one tool of an upstream MCP server.",
        effect: Effect::Network,
        path: ExecutionPath::Fast,
        // It refuses, with the reason.
        dry_run: true,
    };

    fn targets(&self, args: &CallUpstreamArgs) -> Result<Vec<Target>, ToolError> {
        Ok(vec![Target::UpstreamTool { server: args.server.clone(), tool: args.tool.clone() }])
    }

    async fn targets_in(
        &self,
        args: &CallUpstreamArgs,
        workspace: &Workspace,
    ) -> Result<Vec<Target>, ToolError> {
        let mut targets = self.targets(args)?;
        let (upstreams, server, tool) = (Arc::clone(&self.0), args.server.clone(), args.tool.clone());
        let found = background::run(move || upstreams.find(&server, &tool)).await;
        // What is not there is refused when the call runs.
        if let Ok((definition, _)) = found {
            targets.extend(reached(&definition, workspace.project_place()));
        }
        Ok(targets)
    }

    async fn run(
        &self,
        args: CallUpstreamArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<UpstreamResult>, ToolError> {
        let CallUpstreamArgs { server, tool, arguments, pin: seen } = args;
        let (upstreams, found) = (Arc::clone(&self.0), (server.clone(), tool.clone()));
        let (_, pinned) = background::run(move || upstreams.find(&found.0, &found.1)).await?;
        let pin = pinned.hash();
        if seen.is_some_and(|seen| seen != pin) {
            let message = format!("`mcp:{server}/{tool}` was pinned anew after the caller was made");
            return Err(ToolError::new(Code::Pin, message).help("nothing was called; repeat the call"));
        }
        if invocation.context.dry_run {
            let message =
                "a dry run changes nothing, so it calls no upstream server; run it without --dry-run";
            return Err(ToolError::new(Code::Permission, message));
        }
        invocation.testify()?;
        invocation.reach_outside();
        let result = self.0.call(&server, &tool, arguments).await?;
        Ok(UpstreamResult { result, pin }.into())
    }
}

/// What the server can reach by its definition: hosts, secrets, and files of the project.
fn reached(definition: &ServerDefinition, project: &Path) -> Vec<Target> {
    let host = |host: String| match host.starts_with("*.") {
        // It can be any of them, also one that a rule forbids.
        true => Target::Network,
        false => Target::Host { host },
    };
    let mut targets: Vec<Target> = definition.hosts().into_iter().map(host).collect();
    targets.extend(definition.secrets().map(|name| Target::Secret { name: name.to_owned() }));
    if let ServerDefinition::Stdio(server) = definition {
        let of = |paths: &[PathBuf], access: Access| -> Vec<Target> {
            // A folder around the project holds all of it.
            let inside = |path: &'_ PathBuf| match path.strip_prefix(project) {
                Ok(inside) => inside.to_str().map(str::to_owned),
                Err(_) => project.starts_with(path).then(String::new),
            };
            let below = paths.iter().filter_map(inside);
            let paths = below.filter_map(|path| RelativePath::new(&path).ok());
            paths.map(|path| Target::File { root: Root::Project, path, access }).collect()
        };
        targets.extend(of(&server.read, Access::Read));
        targets.extend(of(&server.write, Access::Write));
    }
    targets
}
