//! What may be written when: one table for each mode.

use serde::Serialize;
use tgp_contract::{RelativePath, Root, TddMode, TddState};

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// A file that was not there.
    Create,
    Modify,
    Delete,
}

/// One file that a command or a forged tool wants to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub root: Root,
    pub path: RelativePath,
    pub kind: WriteKind,
}

/// What may be done to code files of a scope now. Test and exempt files are always free, unless work is halted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Permissions {
    pub create: bool,
    pub modify: bool,
    pub delete: bool,
}

/// Whether the files that a state rests on are still those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    Stale,
}

/// Why a write to a code file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Halted,
    /// Nothing has failed yet.
    NoFailingTest,
    /// A test was written, and no run has seen it.
    TestNotRun,
    /// The test that failed is not the one that is there now.
    FailureIsStale,
    /// The files that passed are not those that are there now.
    PassIsStale,
    /// While green existing code may be changed, and nothing may be added.
    NewWhileGreen,
    /// The work was declared finished.
    Finished,
}

/// Whether code may be changed so. `freshness` is asked only where the answer rests on a run.
pub(crate) fn judge_code(
    mode: TddMode,
    state: TddState,
    kind: WriteKind,
    freshness: &mut dyn FnMut() -> Freshness,
) -> Result<&'static str, Reason> {
    if state == TddState::Halted {
        return Err(Reason::Halted);
    }
    match (mode, kind) {
        (TddMode::Explore, _) => Ok("explore"),
        (TddMode::Debug, WriteKind::Modify | WriteKind::Delete) => Ok("debug"),
        (TddMode::Strict, WriteKind::Delete) => match state {
            TddState::TestWritten => Err(Reason::TestNotRun),
            TddState::Done => Err(Reason::Finished),
            // Removing dead code needs no failing test, so it rests on no run either.
            _ => Ok("delete-code"),
        },
        (TddMode::Strict | TddMode::Debug, _) => match (state, kind) {
            (TddState::Red | TddState::CodeAllowed, _) => match freshness() {
                Freshness::Fresh => Ok("failing-test"),
                Freshness::Stale => Err(Reason::FailureIsStale),
            },
            (TddState::Green | TddState::Refactor, WriteKind::Create) => Err(Reason::NewWhileGreen),
            (TddState::Green | TddState::Refactor, _) => match freshness() {
                Freshness::Fresh => Ok("refactor"),
                Freshness::Stale => Err(Reason::PassIsStale),
            },
            (TddState::TestWritten, _) => Err(Reason::TestNotRun),
            (TddState::Done, _) => Err(Reason::Finished),
            (TddState::Idle | TddState::Halted, _) => Err(Reason::NoFailingTest),
        },
    }
}
