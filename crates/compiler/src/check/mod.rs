//! The rules a tool must keep: security, imports and the eight standards.

use serde::{Deserialize, Serialize};
use tgp_contract::Finding;

use crate::Unit;

/// What a check depends on besides the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOptions {
    /// Package names tools may import; `zod` also allows `zod/v4`.
    pub allowed_imports: Vec<String>,
}

/// Checks one tool. Syntax errors come back as findings of the rule `syntax`.
#[must_use]
pub fn check(unit: &Unit, options: &CheckOptions) -> Vec<Finding> {
    let _ = (unit, options);
    Vec::new()
}
