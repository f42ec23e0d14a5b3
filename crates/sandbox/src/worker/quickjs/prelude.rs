//! The prelude: what a tool finds on its global object, written in JavaScript.
//!
//! The core runs in every worker before its run. What costs something to make is in parts below `prelude/lazy`, each
//! with bytecode of its own that is read when a tool first names one of its globals. The build script makes the bytecode,
//! so that no start has to: its bytes stay in the program's file, and workers share them.

// `PARTS`: the names of the parts and their bytecode.
include!(concat!(env!("OUT_DIR"), "/prelude.rs"));

/// The bytecode of a part.
pub(super) fn part(name: &str) -> Option<&'static [u8]> {
    PARTS.iter().find_map(|(known, bytecode)| (*known == name).then_some(*bytecode))
}
