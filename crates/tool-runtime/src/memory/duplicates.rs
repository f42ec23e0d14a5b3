//! Reuse or forge: what becomes of a new tool whose job another one does.

use serde_json::{Value, json};
use tgp_contract::{Actor, Code, RelativePath, ToolError};
use tgp_registry::Hit;

use super::SimilarTool;

/// What happens to a new tool whose job an old one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicatePolicy {
    /// An agent has to name every one of them, and so has read them; a person is informed.
    #[default]
    Confirm,
    /// It is written, and they are reported.
    Warn,
    /// It is not written.
    Refuse,
}

impl DuplicatePolicy {
    /// Whether a new tool may be written beside `similar` ones, some of which its writer overrides.
    pub(super) fn admit(
        self,
        path: &RelativePath,
        similar: &[Hit],
        actor: &Actor,
        overridden: &[RelativePath],
    ) -> Result<(), ToolError> {
        if similar.is_empty() {
            return Ok(());
        }
        let help = match (self, actor) {
            (Self::Warn, _) | (Self::Confirm, Actor::Person(_)) => return Ok(()),
            (Self::Confirm, Actor::Agent(_) | Actor::Tool(_)) => {
                if similar.iter().all(|hit| overridden.contains(&hit.path)) {
                    return Ok(());
                }
                let all: Vec<&str> = similar.iter().map(|hit| hit.path.as_str()).collect();
                format!(
                    "use that tool with exec_tool, or patch it; when none of them does the job, write again with \
                     `override_similar: {}`",
                    json!(all)
                )
            }
            (Self::Refuse, _) => {
                "use that tool, or patch it; registry.onDuplicate: 'warn' allows another".to_owned()
            }
        };
        let names: Vec<String> = similar.iter().map(|hit| format!("`{}`", hit.path)).collect();
        let does = if similar.len() == 1 { "does" } else { "do" };
        let similar: Value = similar.iter().map(described).collect();
        Err(ToolError::new(
            Code::Policy,
            format!("`{path}` was not written: {} {does} that already", names.join(", ")),
        )
        .detail("similar", similar)
        .help(help))
    }
}

/// A tool with all that is needed to call it instead.
fn described(hit: &Hit) -> Value {
    json!({
        "path": hit.path,
        "score": shown_score(hit.score),
        "description": hit.description,
        "why": hit.why,
        "signature": hit.signature,
    })
}

/// A tool that may do the same, beside one that was written.
pub(super) fn similar_tool(hit: &Hit) -> SimilarTool {
    SimilarTool { path: hit.path.clone(), score: shown_score(hit.score), why: hit.why.clone() }
}

/// Four digits: more would be noise.
pub fn shown_score(score: f32) -> f64 {
    (f64::from(score) * 10_000.0).round() / 10_000.0
}
