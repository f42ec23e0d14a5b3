//! The shared vocabulary, pinned: wire shapes by golden files, canonical JSON by the published vectors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod allowance;
mod background;
mod canonical_json;
mod clients;
mod codes;
mod model_schema;
mod paths;
mod shapes;
