//! What every crate needs when it reads texts and writes messages about them: locations, suggestions, truncation,
//! invisible characters, time, strict YAML, and which file names are those of rules.
//!
//! A function belongs here when two crates need it and it knows nothing of their domains. Nothing here does I/O, except
//! [`now_ms`], which reads the clock of the system.
#![forbid(unsafe_code)]

mod fold;
mod location;
mod nesting;
mod rule_files;
mod suggest;
mod time;
mod truncate;
mod visible;
pub mod yaml;

pub use fold::{compatible, composed, fold_name};
pub use location::{LineCol, LineEnds, LineIndex};
pub use nesting::{DeepNesting, NestingCaps, find_deep_nesting, max_depth};
pub use rule_files::{RuleFile, RulePurpose, looks_like_rule, rule_file};
pub use suggest::{did_you_mean, edit_distance, nearest, nearest_names};
pub use time::{now_ms, parse_rfc3339_ms, parse_rfc3339_ns, rfc3339, rfc3339_seconds};
pub use truncate::{head, one_line, tail, truncate, truncate_bytes};
pub use visible::{is_unseen, visible_json};
