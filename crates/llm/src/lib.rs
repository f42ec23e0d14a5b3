//! Providers of models: thin adapters from one request to a stream of events, and a scripted model.
#![forbid(unsafe_code)]
