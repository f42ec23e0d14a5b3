//! What a case says when a part does not do what the contract promises.

use std::fmt::{self, Debug};

use serde::{Deserialize, Serialize};
use tgp_contract::ToolError;

/// Characters of one side of a fault: enough to see the difference, and no more than a screen.
const MAX_SHOWN: usize = 2_000;

/// Whether a case has found something or could not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A part did something else than it promises.
    Broken,
    /// The case cannot be tried on this machine.
    Unable,
}

/// What was expected and what came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub kind: FaultKind,
    /// A sentence about what the contract promises.
    pub expected: String,
    /// What happened instead; for a case that cannot be tried, the reason.
    pub came: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Broken => write!(formatter, "expected {}; came {}", self.expected, self.came),
            FaultKind::Unable => write!(formatter, "cannot be tried here: {}", self.came),
        }
    }
}

impl Fault {
    #[must_use]
    pub fn new(expected: impl Into<String>, came: impl Into<String>) -> Self {
        Self { kind: FaultKind::Broken, expected: cut(expected.into()), came: cut(came.into()) }
    }

    /// The case cannot be tried here, and this is why.
    #[must_use]
    pub fn unable(reason: impl Into<String>) -> Self {
        Self { kind: FaultKind::Unable, expected: String::new(), came: cut(reason.into()) }
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Fails unless something holds.
pub(crate) fn holds(is_so: bool, expected: impl Into<String>, came: impl Debug) -> Result<(), Fault> {
    if is_so { Ok(()) } else { Err(Fault::new(expected, format!("{came:?}"))) }
}

/// Fails unless two values are the same.
pub(crate) fn same<T: Debug + PartialEq + ?Sized>(what: &str, came: &T, expected: &T) -> Result<(), Fault> {
    if came == expected {
        return Ok(());
    }
    Err(Fault::new(format!("{what} to be {expected:?}"), format!("{came:?}")))
}

/// Says what an answer was expected to, where it was an error.
pub(crate) trait Expecting<T> {
    /// # Errors
    /// A fault with the error.
    fn expecting(self, what: &str) -> Result<T, Fault>;
}

impl<T> Expecting<T> for Result<T, ToolError> {
    fn expecting(self, what: &str) -> Result<T, Fault> {
        self.map_err(|error| {
            let details = serde_json::to_string(&error.details).unwrap_or_default();
            Fault::new(what, format!("{error} {details}"))
        })
    }
}

impl<T> Expecting<T> for std::io::Result<T> {
    fn expecting(self, what: &str) -> Result<T, Fault> {
        self.map_err(|error| Fault::new(what, error.to_string()))
    }
}
