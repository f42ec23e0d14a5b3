//! Append-only NDJSON events beside the files they are about.
#![forbid(unsafe_code)]
