//! `meta.json`, search by meaning and a calibrated score.
// `model::kernel` alone allows it: it calls functions compiled for AVX2.
#![deny(unsafe_code)]

mod calibration;
mod direction;
mod document;
mod embed;
mod explain;
mod features;
mod found;
mod index;
mod lexicon;
mod library;
#[cfg(feature = "embedded-model")]
mod model;
mod numbers;
mod rank;
mod search;
mod spelling;
mod vectors;
mod words;

pub use calibration::{Calibration, Coefficients, REUSE, REVIEW};
#[cfg(feature = "embedded-model")]
pub use embed::MiniLm;
pub use embed::{Embedder, MAX_DIMENSIONS, OpenAiCompatible};
pub use features::Features;
pub use found::{Hit, ReuseVerdict, SearchOutcome};
pub use index::{Index, IndexError, is_tool};
pub use search::{MAX_LIMIT, Searcher, Shown, Updated};

/// Names the vectors of the embedded model. Changes with every change of the asset or of the forward pass: vectors of
/// different makers do not compare. A test ties it to the asset's checksum.
pub const EMBEDDED_FINGERPRINT: &str = "minilm-l6-v2-int8-2";

/// The embedder of this build: the embedded model where there is one.
#[must_use]
pub fn embedded() -> Option<std::sync::Arc<dyn Embedder>> {
    #[cfg(feature = "embedded-model")]
    return Some(std::sync::Arc::new(MiniLm::new()));
    #[cfg(not(feature = "embedded-model"))]
    return None;
}
