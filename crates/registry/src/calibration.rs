//! From evidence to a probability: the coefficients. `tgp-bench` fits them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::features::Features;

/// From here on: "this tool does it".
pub const REUSE: f32 = 0.85;
/// From here on: review it.
pub const REVIEW: f32 = 0.30;
/// The best score of what may not say `reuse`.
pub(crate) const BELOW_REUSE: f32 = 0.84;

/// The name of the coefficients without any embedder.
pub(crate) const LEXICAL: &str = "lexical";

/// Fitted with `cargo run --release -p tgp-bench --bin calibrate`.
const FITTED_MINILM: Coefficients = Coefficients {
    intercept: -3.562,
    similarity: 4.335,
    lead: 13.336,
    contradictions: -4.290,
    weakest: 2.720,
};
/// Fitted with `cargo run --release -p tgp-bench --bin calibrate -- --lexical`.
const FITTED_LEXICAL: Coefficients = Coefficients {
    intercept: -2.660,
    similarity: 3.178,
    lead: 5.384,
    contradictions: -3.928,
    weakest: 3.384,
};

/// A logistic function of [`Features`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    pub intercept: f64,
    pub similarity: f64,
    pub lead: f64,
    pub contradictions: f64,
    pub weakest: f64,
}

impl Coefficients {
    /// The probability that the tool does what was asked.
    #[must_use]
    pub fn probability(&self, features: &Features) -> f32 {
        let values = [self.similarity, self.lead, self.contradictions, self.weakest];
        let sum: f64 = values.iter().zip(features.values()).map(|(weight, value)| weight * value).sum();
        #[expect(clippy::cast_possible_truncation, reason = "a probability needs few digits")]
        let probability = logistic(sum + self.intercept) as f32;
        probability
    }

    /// The probability, held below [`REUSE`] where the evidence does not carry that claim.
    #[must_use]
    pub fn score(&self, features: &Features) -> f32 {
        let probability = self.probability(features);
        if features.carries_reuse() { probability } else { probability.min(BELOW_REUSE) }
    }
}

/// Coefficients by the fingerprint of the embedder they were fitted for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Calibration(BTreeMap<String, Coefficients>);

impl Default for Calibration {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Calibration {
    /// The embedded model's, and those of a search by words alone.
    #[must_use]
    pub fn builtin() -> Self {
        Self(BTreeMap::from([
            (crate::EMBEDDED_FINGERPRINT.to_owned(), FITTED_MINILM),
            (LEXICAL.to_owned(), FITTED_LEXICAL),
        ]))
    }

    /// Adds the coefficients that were fitted for an embedder.
    #[must_use]
    pub fn with(mut self, fingerprint: impl Into<String>, coefficients: Coefficients) -> Self {
        self.0.insert(fingerprint.into(), coefficients);
        self
    }

    /// The coefficients of an embedder, when they were fitted.
    #[must_use]
    pub fn get(&self, fingerprint: &str) -> Option<&Coefficients> {
        self.0.get(fingerprint)
    }

    /// Those to rank with when none were fitted.
    pub(crate) fn fallback(&self) -> &Coefficients {
        &FITTED_MINILM
    }

    pub(crate) fn lexical(&self) -> &Coefficients {
        self.get(LEXICAL).unwrap_or(&FITTED_LEXICAL)
    }
}

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}
