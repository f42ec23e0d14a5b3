//! The rules through their public face: golden files, tables, properties and hostile input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod builtin;
mod golden;
mod hostile;
mod judging;
mod ledger;
mod manual;
mod model;
mod normal_forms;
mod properties;
mod runs_later;
mod sequences;
mod support;
mod tokens;
