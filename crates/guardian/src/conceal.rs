//! What is said of a halt to somebody who may not see everything.

use serde_json::Value;
use tgp_contract::{Code, ToolError, Visibility};

use crate::Guardian;
use crate::claims::AGREEMENT;

impl Guardian {
    /// The error of a halt as the caller may read it. A halt is in force whatever it is about; what it says of hidden
    /// files is left out, and so is every number of rows that may count them.
    pub async fn concealed_halt(&self, error: ToolError, visible: &Visibility) -> ToolError {
        if visible.is_everything() {
            return error;
        }
        let text = |name: &str| error.details.get(name).and_then(Value::as_str);
        let file = text("file");
        let shown = file.is_none_or(|file| visible.shows_named(file));
        // That chronicle and graph disagree is about its one file alone; everything else is about any number of rows.
        let is_about_one = text("invariant") == Some(AGREEMENT) && file.is_some();
        let hides = async || self.parts.graph.hides(visible).await.unwrap_or(true);
        if shown && (is_about_one || !hides().await) {
            return error;
        }
        let invariant = text("invariant").unwrap_or_default();
        let message = format!(
            "work is halted: `{invariant}` does not hold; what breaks it may be in files that are hidden from this call"
        );
        ToolError::new(Code::Halt, message)
            .detail("invariant", invariant)
            .help("ask a person to run `tgp guardian assert`, which names it")
    }
}
