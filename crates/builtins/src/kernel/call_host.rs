//! `call_host`: one function of the embedding program. What a tool imports from `host:MODULE` comes through here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{Code, Effect, ExecutionPath, Target, ToolError};
use tgp_router::{Invocation, LazySchema, Tool, ToolOutcome, ToolSpec};
use tgp_upstream::HostModules;

/// As much as a host takes for an answer.
const LIMIT: Duration = Duration::from_secs(30);
const MAX_NAME_CHARS: usize = 128;

/// The functions, and the schemas of their arguments by module and name.
pub(super) struct CallHost {
    modules: Option<Arc<HostModules>>,
    schemas: BTreeMap<(String, String), LazySchema>,
}

impl CallHost {
    /// # Errors
    /// `EVALIDATION` when a schema is none.
    pub(super) fn new(modules: Option<&Arc<HostModules>>) -> Result<Self, ToolError> {
        let mut schemas = BTreeMap::new();
        for function in modules.iter().flat_map(|modules| modules.functions()) {
            let schema = LazySchema::default();
            if let Err(reason) = schema.compile(&function.input_schema) {
                let name = named(&function.module, &function.name);
                let message = format!("the schema of the arguments of `{name}` cannot be used: {reason}");
                return Err(ToolError::new(Code::Validation, message));
            }
            schemas.insert((function.module.clone(), function.name.clone()), schema);
        }
        Ok(Self { modules: modules.cloned(), schemas })
    }

    fn modules(&self) -> Result<&HostModules, ToolError> {
        self.modules.as_deref().ok_or_else(no_host)
    }
}

/// Nothing stands behind `host:`.
fn no_host() -> ToolError {
    ToolError::new(Code::NotFound, "no program offers functions to this kernel")
        .help("run the tool from the program that offers them; docs/protocol.md shows how")
}

/// The failure of a function, with its name and where to look.
fn explained(error: ToolError, shown: &str) -> ToolError {
    let message = match error.message.contains(shown) {
        true => error.message.clone(),
        false => format!("`{shown}` failed: {}", error.message),
    };
    let error = error.with_message(message).detail("host", shown);
    if error.help_of().is_some() {
        return error;
    }
    error.help(format!(
        "the application defines `{shown}`: look at that function and at the application's log"
    ))
}

fn named(module: &str, name: &str) -> String {
    format!("host:{module}/{name}")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallHostArgs {
    /// The module's name, as in `host:NAME`.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    module: String,
    /// The function.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// What a function of the embedding program returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    pub result: Value,
}

#[async_trait]
impl Tool for CallHost {
    type Args = CallHostArgs;
    type Output = HostResult;

    const INFO: ToolSpec = ToolSpec {
        name: "call_host",
        aliases: &[],
        description: "Call one function of the program that the kernel is part of.",
        effect: Effect::Execute,
        path: ExecutionPath::Fast,
        // It refuses, with the reason.
        dry_run: true,
    };

    /// As the host has declared it. What it does not know is refused when the call runs.
    fn effect_of(&self, arguments: &Value) -> Effect {
        let text = |field: &str| arguments.get(field).and_then(Value::as_str).unwrap_or_default();
        let found = self.modules().and_then(|modules| modules.find(text("module"), text("name")));
        found.map_or(Self::INFO.effect, |function| function.effect)
    }

    fn targets(&self, args: &CallHostArgs) -> Result<Vec<Target>, ToolError> {
        Ok(vec![Target::HostTool { name: format!("{}/{}", args.module, args.name) }])
    }

    async fn run(
        &self,
        args: CallHostArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<HostResult>, ToolError> {
        let CallHostArgs { module, name, arguments } = args;
        let modules = self.modules()?;
        let function = modules.find(&module, &name)?;
        let shown = named(&module, &name);
        if let Some(schema) = self.schemas.get(&(module.clone(), name.clone())) {
            let value = Value::Object(arguments.clone());
            schema.check_value(&shown, &function.input_schema, &value, "`host.d.ts` declares it")?;
        }
        if invocation.context.dry_run {
            let message = format!("a dry run changes nothing, so it does not call `{shown}`");
            return Err(ToolError::new(Code::Permission, message).help("run it without --dry-run"));
        }
        invocation.testify()?;
        invocation.reach_outside();
        let called = tokio::time::timeout(LIMIT, modules.call(&module, &name, arguments)).await;
        let result = called.unwrap_or_else(|_| {
            let message = format!("`{shown}` did not answer within {} s", LIMIT.as_secs());
            Err(ToolError::new(Code::Runtime, message))
        });
        let result = result.map_err(|error| {
            let error = explained(error, &shown);
            // What a function did before it failed is not undone, and not known.
            if function.effect == Effect::Read { error } else { error.of_unknown_outcome() }
        })?;
        Ok(HostResult { result }.into())
    }
}
