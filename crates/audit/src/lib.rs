//! The tamper-evident record of every call: one entry a call, each bound to the one before by its hash.
#![forbid(unsafe_code)]
