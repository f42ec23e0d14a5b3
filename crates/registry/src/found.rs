//! What a search answers.

use serde::{Deserialize, Serialize};
use tgp_contract::RelativePath;

use crate::calibration::{REUSE, REVIEW};

/// What to do with a tool that was found.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReuseVerdict {
    /// Nothing does it: write it.
    Forge,
    /// Perhaps one of these does it: read their signatures.
    Review,
    /// The first one does it.
    Reuse,
}

impl ReuseVerdict {
    #[must_use]
    pub fn of(score: f32) -> Self {
        match score {
            REUSE.. => Self::Reuse,
            REVIEW.. => Self::Review,
            _ => Self::Forge,
        }
    }
}

/// One tool that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    pub path: RelativePath,
    /// The probability that it does what was asked.
    pub score: f32,
    pub description: String,
    pub signature: String,
    /// Where the score comes from, for people and models.
    pub why: String,
    pub verdict: ReuseVerdict,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// Best first.
    pub results: Vec<Hit>,
    /// That of the best.
    pub verdict: ReuseVerdict,
    /// Tools that could be compared by words only, because their vectors are not there yet.
    pub pending: usize,
    /// Why the search was not as good as it could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}
