//! What is said of a halt to a caller that may not see everything.

use serde::Deserialize;
use serde_json::Value;
use tgp_contract::{Code, ToolError, Visibility};

use crate::Guardian;
use crate::claims::AGREEMENT;

/// What the error of a halt is about, of its details. An error passes the router between the gate that made it and the one who
/// may not read all of it, and only its details do so with it.
#[derive(Debug, Deserialize)]
struct HaltDetails {
    invariant: String,
    file: Option<String>,
}

impl HaltDetails {
    /// None for details that no halt has: then nothing is known of what they show.
    fn of(error: &ToolError) -> Option<Self> {
        Self::deserialize(Value::Object(error.details.clone())).ok()
    }
}

impl Guardian {
    /// The error of a halt as the caller may read it. A halt is in force whatever it is about; what it says of hidden
    /// files is left out, and so is every number of rows that may count them.
    pub async fn concealed_halt(&self, error: ToolError, visible: &Visibility) -> ToolError {
        if visible.is_everything() {
            return error;
        }
        let halt = HaltDetails::of(&error);
        if let Some(halt) = &halt
            && self.may_be_shown(halt, visible).await
        {
            return error;
        }
        let invariant = halt.map(|halt| halt.invariant).unwrap_or_default();
        let message = format!(
            "work is halted: `{invariant}` does not hold; what breaks it may be in files that are hidden from this call"
        );
        ToolError::new(Code::Halt, message)
            .detail("invariant", invariant)
            .help("ask a person to run `tgp guardian assert`, which names it")
    }

    async fn may_be_shown(&self, halt: &HaltDetails, visible: &Visibility) -> bool {
        let Some(file) = &halt.file else { return self.hides_nothing(visible).await };
        // That chronicle and graph disagree is about its one file alone; everything else is about any number of rows.
        visible.shows_named(file) && (halt.invariant == AGREEMENT || self.hides_nothing(visible).await)
    }

    async fn hides_nothing(&self, visible: &Visibility) -> bool {
        // Where this is unknown, something counts as hidden.
        !self.parts.graph.hides(visible).await.unwrap_or(true)
    }
}
