//! What a session costs before its task: the system prompt and the schemas of all tools, in tokens.

use tgp::contract::ModelTool;

use crate::support::Project;

/// Tokens of the tokenizer `o200k_base`, which most hosted models come close to. The four tools for git are 430 of them.
const MAX_TOKENS: usize = 5_300;
/// What a tool can use, of a project with some packages and folders.
const MAX_PLATFORM_TOKENS: usize = 250;

#[tokio::test]
async fn the_prompt_and_the_schemas_of_all_tools_stay_within_their_budget() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    // Sessions are not offered what is for other programs.
    let is_offered = |name: &str| {
        !["audit_tail", "call_host", "call_upstream", "exec_code", "undo_session"].contains(&name)
    };
    let offered = kernel.definitions().filter(|tool| is_offered(tool.name.as_str()));
    let tools: Vec<ModelTool> = offered.map(ModelTool::from).collect();
    let prompt = kernel.system_prompt().await;
    kernel.shutdown().await;

    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let count = |text: &str| tokenizer.encode_with_special_tokens(text).len();
    let platform = prompt.split("## In a tool").nth(1).unwrap().split("\n## ").next().unwrap();
    let platform = count(platform);
    assert!(platform <= MAX_PLATFORM_TOKENS, "what a tool can use: {platform} tokens");
    let schemas = count(&serde_json::to_string(&tools).unwrap());
    let prompt = count(&prompt);
    println!(
        "prompt {prompt} tokens, of them {platform} about what a tool can use, schemas of {} tools {schemas} tokens",
        tools.len()
    );
    assert!(tools.len() >= 33, "{} tools", tools.len());
    assert!(prompt + schemas <= MAX_TOKENS, "prompt {prompt} + schemas {schemas} tokens > {MAX_TOKENS}");
}
