//! `meta.json`, search by meaning and a calibrated score.
#![forbid(unsafe_code)]
