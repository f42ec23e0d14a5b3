//! What the tokens of those who work for somebody say about tools.

/// The tool that runs forged ones.
pub(crate) const EXEC_TOOL: &str = "exec_tool";
/// What a forged tool can call, besides other forged tools.
const BRIDGE: [&str; 2] = ["exec_sql", "fetch"];
/// No tool is called so: a list of it alone allows none.
const NONE: &str = "none";

/// The caveat that allows these tools, and what the forged ones among them call for their part.
pub(crate) fn tools_caveat(mut tools: Vec<String>) -> Vec<String> {
    if tools.iter().any(|tool| tool == EXEC_TOOL) {
        tools.extend(BRIDGE.map(str::to_owned));
    }
    if tools.is_empty() {
        tools.push(NONE.to_owned());
    }
    tools.sort();
    tools.dedup();
    tools
}
