//! Watches the workspace and turns what changed into events of the chronicle, by personas.
#![forbid(unsafe_code)]
