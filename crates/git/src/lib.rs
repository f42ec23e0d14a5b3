//! The tool repository: hydrate, persist, rebase, pull requests; and the repository of the project, for its own tools.
//!
//! Objects, trees and the rebase are local work (git2); only the network goes through a `git` process, which sees
//! nothing of this machine's configuration and nothing of the repository's own. Two locks guard a repository: the
//! writer's, held for milliseconds around every change, and the lane's, held around a conversation with the remote.
#![forbid(unsafe_code)]

mod anchor;
mod anchor_note;
mod anchor_push;
mod bounds;
mod branch_names;
mod checkout;
mod command;
mod edit;
mod entry;
mod environment;
mod explain;
mod failure;
mod fetch;
mod fsync;
mod history;
mod hydrate;
mod inner;
mod journal;
mod kept;
mod local;
mod lock;
mod memory;
mod network;
mod offline;
mod options;
mod os;
mod persist;
mod project;
mod provider;
mod pull_request;
mod push;
mod push_report;
mod rebase;
mod received;
mod remote;
mod remote_push;
mod repair;
mod report;
mod scratch;
mod secret;
mod ssh_settings;
mod sync;
mod uncommitted;
mod worktree;

pub use anchor::RepositoryAnchor;
pub use edit::ToolEdit;
pub use memory::ToolRepo;
pub use options::{
    Author, ChangeSet, CommitKind, GeneratedFile, GitEnv, GitFetchLimits, GitTimeouts, PersistFile,
    RepositorySnapshot, SnapshotFile, Strategy, ToolRepoOptions,
};
pub use project::{
    CommitPlan, CommitRequest, Committed, DeltaKind, FileDelta, FileVersion, HeadPosition, LogPage,
    LogRequest, LoggedCommit, ObjectId, PlannedFile, ProjectRepo, StatusScan, VersionContent, VersionPair,
    VersionSource, WorkFiles,
};
pub use remote::{Provider, Remote};
pub use report::{
    Conflict, Edited, History, HydrateOutcome, Hydrated, Persisted, RepositoryStatus, RequestLink, Synced,
    Version,
};
pub use secret::Secret;

/// The version of libgit2.
#[must_use]
pub fn library_version() -> String {
    let (major, minor, patch) = git2::Version::get().libgit2_version();
    format!("{major}.{minor}.{patch}")
}
