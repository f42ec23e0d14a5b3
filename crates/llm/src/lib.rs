//! Providers of models: thin adapters from one request to a stream of events, and a scripted model.
//!
//! What goes over the wire is in `wire` (one module an API, pure functions on values); how it goes is in `provider`
//! (attempts, time-outs) and `turn` (bytes to events). Nothing here reads the environment, logs or prints.
#![forbid(unsafe_code)]

mod advice;
mod client;
mod endpoint;
#[cfg(test)]
mod endpoint_tests;
mod failure;
mod lessons;
mod limits;
mod options;
mod provider;
mod retry;
mod script;
mod transport;
mod turn;
mod wire;

pub use options::{HttpOptions, Jitter, OnRetry, ProviderTimeouts, Retries, RetryNotice, Wire};
#[doc(hidden)]
pub use provider::answer_events;
pub use provider::provider;
pub use script::Script;
