//! Tools by their types: from the arguments and the result of a [`Tool`] follow its schemas and its validation.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tgp_contract::{Code, Effect, ExecutionPath, Target, ToolDefinition, ToolError, ToolName};

use super::derived_schema::{arguments_schema, result_schema};
use super::preview::Preview;
use super::tool::{DynTool, Invocation, ToolOutcome};
use crate::Workspace;

/// What a tool declares in addition to its arguments and its result.
#[derive(Clone, Copy, Debug)]
pub struct ToolSpec {
    /// The name that a model calls it by.
    pub name: &'static str,
    /// Other names callers may use, such as `fs.read` or `Read`.
    pub aliases: &'static [&'static str],
    /// What it does and returns, for a model.
    pub description: &'static str,
    /// What it can do to the world.
    pub effect: Effect,
    /// Where it runs.
    pub path: ExecutionPath,
    /// Whether it can return an exact preview and change nothing.
    pub dry_run: bool,
}

/// A tool with the types of its arguments and its result.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Their schema is derived from this type, and a call whose arguments do not fit it never gets here.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The result, as every caller gets it.
    type Output: Serialize + JsonSchema + Send;

    /// What the tool says of itself.
    const INFO: ToolSpec;

    /// What a call with these arguments can do to the world, where that depends on what it names. The gates, the question to a
    /// person and the record have this effect. Nothing of such a call is tried.
    fn effect_of(&self, _arguments: &Value) -> Effect {
        Self::INFO.effect
    }

    /// What a call with these arguments is about to touch. The gates decide by it, so whatever an argument names has to
    /// be in it.
    ///
    /// # Errors
    /// When an argument names what cannot be touched at all, such as a path that leaves its root.
    fn targets(&self, args: &Self::Args) -> Result<Vec<Target>, ToolError>;

    /// The same with all that can be found out about the call before it runs. It may name more than [`Tool::targets`],
    /// and nothing less.
    ///
    /// # Errors
    /// As [`Tool::targets`].
    async fn targets_in(&self, args: &Self::Args, _workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        self.targets(args)
    }

    /// What else a call is about to touch, found by reading what its arguments name: the sources that a tool imports.
    /// Nothing runs, and nothing of it reaches the caller, since the gates have not judged it yet. What cannot be found
    /// is left out; the call itself then fails.
    async fn found_targets(&self, _args: &Self::Args, _invocation: Invocation<'_>) -> Vec<Target> {
        Vec::new()
    }

    /// What a person who is asked about a call is shown of its effect. The invocation is that of a dry run. Nothing is
    /// changed by it, and nothing runs that the call would run: a write is tried without effect where the tool can do
    /// that, and everything else reports what it knows without running.
    ///
    /// # Errors
    /// As the call itself would fail.
    async fn preview(&self, args: Self::Args, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        if Self::INFO.effect == Effect::Write && Self::INFO.dry_run {
            return self.run(args, invocation).await?.into_json().map(Preview::from);
        }
        Ok(Preview::default())
    }

    /// Carries the call out. The future may be dropped at any wait before the effect; a tool whose effect cannot be
    /// dropped in its middle passes the invocation's [point of no return](Invocation::point_of_no_return) first.
    ///
    /// # Errors
    /// What went wrong, with a code.
    async fn run(
        &self,
        args: Self::Args,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<Self::Output>, ToolError>;
}

/// Makes a tool one that the router can call, with the schemas of its types.
///
/// # Errors
/// When its name does not fit [`ToolName`].
pub fn typed<T: Tool>(tool: T) -> Result<Arc<dyn DynTool>, ToolError> {
    let ToolSpec { name, aliases, description, effect, path, dry_run } = T::INFO;
    let name = ToolName::new(name).map_err(|error| ToolError::new(Code::Internal, error.to_string()))?;
    let definition = ToolDefinition {
        name,
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        description: description.to_owned(),
        input_schema: arguments_schema::<T::Args>(),
        effect,
        path,
        dry_run,
    };
    Ok(Arc::new(Typed { tool, definition }))
}

/// A tool behind the types of the router.
struct Typed<T> {
    tool: T,
    definition: ToolDefinition,
}

/// The arguments as the tool's own type.
fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| {
        ToolError::new(Code::Validation, format!("the arguments do not fit: {error}"))
            .help("`tgp tools --format json` shows the schema of every tool")
    })
}

#[async_trait]
impl<T: Tool> DynTool for Typed<T> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn has_derived_schema(&self) -> bool {
        true
    }

    fn output_schema(&self) -> Option<Value> {
        Some(result_schema::<T::Output>())
    }

    fn effect_of(&self, arguments: &Value) -> Effect {
        self.tool.effect_of(arguments)
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        self.tool.targets(&parse(arguments)?)
    }

    async fn targets_in(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        self.tool.targets_in(&parse(arguments)?, workspace).await
    }

    async fn found_targets(&self, invocation: Invocation<'_>) -> Vec<Target> {
        match parse(&invocation.call.arguments) {
            Ok(args) => self.tool.found_targets(&args, invocation).await,
            // It is refused before any gate is asked.
            Err(_) => Vec::new(),
        }
    }

    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        self.tool.preview(parse(&invocation.call.arguments)?, invocation).await
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        self.tool.run(parse(&invocation.call.arguments)?, invocation).await?.into_json()
    }
}
