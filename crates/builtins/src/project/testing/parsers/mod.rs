//! One reader for each family of test runners; each is linear in its output and believes only what it knows.

pub(super) mod cargo;
pub(super) mod go;
pub(super) mod javascript;
pub(super) mod python;
