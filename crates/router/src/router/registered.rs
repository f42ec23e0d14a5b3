//! A tool as the router holds it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use tgp_contract::ToolDefinition;

use super::schema::LazySchema;
use super::tool::DynTool;

/// A tool, and the schema of its arguments.
pub(super) struct Registered {
    pub(super) tool: Arc<dyn DynTool>,
    pub(super) schema: LazySchema,
}

impl Registered {
    /// The tool as a call with these arguments uses it.
    pub(super) fn definition_of(&self, arguments: &Value) -> Cow<'_, ToolDefinition> {
        let definition = self.tool.definition();
        let effect = self.tool.effect_of(arguments);
        if effect == definition.effect {
            return Cow::Borrowed(definition);
        }
        // The effect is that of something else, which nothing here can try.
        Cow::Owned(ToolDefinition { effect, dry_run: false, ..definition.clone() })
    }
}
