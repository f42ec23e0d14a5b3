//! Test-driven work as a state machine that believes recorded runs and file hashes, and nothing else.
#![forbid(unsafe_code)]
