//! The system prompt of this kernel, made of what it has.

use std::fs;

use tgp_agent::{ForgedTool, PromptFacts};
use tgp_contract::{TddState, ToolDefinition};
use tgp_registry::Index;

use crate::Kernel;

/// Tools that a prompt names; the others are found by searching.
const MAX_NAMED: usize = 40;
/// The index of a library of many thousand tools.
const MAX_INDEX_BYTES: u64 = 64 << 20;

impl Kernel {
    /// What a model is told before a task: the protocol, the standards, where test-driven work stands, the tools.
    #[must_use]
    pub fn system_prompt(&self) -> String {
        let tools: Vec<ToolDefinition> = self.definitions().cloned().collect();
        let (forged, total) = self.forged();
        let tdd = self.state().tdd();
        tgp_agent::system_prompt(&PromptFacts {
            tools: &tools,
            mode: tdd.mode(),
            state: tdd.state(&tgp_tdd::Scope::Project).unwrap_or(TddState::Halted),
            forged: &forged,
            forged_total: total,
        })
    }

    /// What the library holds; a damaged index is mended by the next write, and hides nothing from a search.
    fn forged(&self) -> (Vec<ForgedTool>, usize) {
        let path = self.root().join("meta.json");
        let small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_INDEX_BYTES);
        let bytes = if small { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let index = Index::parse(&bytes).unwrap_or_default();
        let total = index.tools().len();
        let tools = index.tools().take(MAX_NAMED).map(|tool| ForgedTool {
            path: tool.path.to_string(),
            description: tool.description.clone(),
            signature: tool.signature.clone(),
        });
        (tools.collect(), total)
    }
}
