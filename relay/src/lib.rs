//! The conformance kit: suites that are written once against the contracts and run for every combination of parts.
#![forbid(unsafe_code)]
