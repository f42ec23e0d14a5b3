//! What the tokens of agents and query steps say about tools.

use tgp_policy::Caveats;

/// The tool that runs forged ones.
pub(crate) const EXEC_TOOL: &str = "exec_tool";
/// What a forged tool can call in addition to other forged tools.
pub const BRIDGE_TOOLS: [&str; 4] = ["call_host", "call_upstream", "exec_sql", "fetch"];

/// Caveats that allow these tools, and to forged ones what they call for their part.
pub(crate) fn only_tools(tools: Vec<String>) -> Caveats {
    let runs_tools = tools.iter().any(|tool| tool == EXEC_TOOL);
    Caveats {
        tools: Some(tools),
        inner: runs_tools.then(|| BRIDGE_TOOLS.map(str::to_owned).to_vec()),
        ..Caveats::default()
    }
}
