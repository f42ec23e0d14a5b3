//! From git objects and files to facts.

pub(crate) mod advance;
pub(crate) mod blobs;
pub(crate) mod boundary;
pub(crate) mod commits;
pub(crate) mod history;
pub(crate) mod ignores;
pub(crate) mod language;
pub(crate) mod link;
mod manifest;
mod parse;
pub(crate) mod repository;
pub(crate) mod state;
mod weight;
pub(crate) mod worktree;
