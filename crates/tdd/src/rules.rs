//! What may be written when: one table for each mode.

use std::sync::Arc;

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

/// One file that a call wants to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub root: Root,
    pub path: RelativePath,
    pub kind: WriteKind,
    /// The file as the call would leave it.
    pub after: Contents,
}

/// What is known of a file as a call would leave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    #[default]
    Unknown,
    /// It is judged again before the call takes effect, with the bytes.
    JudgedLater,
    Known(Arc<[u8]>),
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
    /// While green existing code may be changed and moved; this file is neither.
    NewWhileGreen,
    /// While green one file may be moved or split off; code was changed since.
    NewWhileRefactoring,
    /// An old test fails, and the call changes code and tests together.
    TestWithRepair,
    /// The work was declared finished.
    Finished,
}

/// Where the lines of a new file come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is a file of the last green run under another name.
    Moved,
    /// Nearly all of its lines are in files of the last green run.
    KnownLines,
    /// That is judged later, when its bytes are known.
    JudgedLater,
    New,
}

/// What an answer may rest on. Each part is looked up only where it decides.
pub(crate) trait Evidence {
    fn freshness(&mut self) -> Freshness;
    /// Where a file comes from that the call creates.
    fn origin(&mut self) -> Origin;
    /// Whether code is changed for an old test in the same call as a test.
    fn repairs_with_test(&mut self) -> bool;
}

/// Whether code may be changed so.
pub(crate) fn judge_code(
    mode: TddMode,
    state: TddState,
    kind: WriteKind,
    evidence: &mut dyn Evidence,
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
            (TddState::Red | TddState::CodeAllowed, _) => match evidence.freshness() {
                Freshness::Fresh => Ok("failing-test"),
                Freshness::Stale => Err(Reason::FailureIsStale),
            },
            (TddState::Refactor, WriteKind::Create) => Err(Reason::NewWhileRefactoring),
            (TddState::Green, WriteKind::Create) => match evidence.origin() {
                Origin::New => Err(Reason::NewWhileGreen),
                _ if evidence.freshness() == Freshness::Stale => Err(Reason::PassIsStale),
                Origin::Moved => Ok("moved"),
                Origin::KnownLines => Ok("known-lines"),
                Origin::JudgedLater => Ok("judged-later"),
            },
            (TddState::Refactor, _) if evidence.repairs_with_test() => Err(Reason::TestWithRepair),
            (TddState::Green | TddState::Refactor, _) => match evidence.freshness() {
                Freshness::Fresh => Ok("refactor"),
                Freshness::Stale => Err(Reason::PassIsStale),
            },
            (TddState::TestWritten, _) => Err(Reason::TestNotRun),
            (TddState::Done, _) => Err(Reason::Finished),
            (TddState::Idle | TddState::Halted, _) => Err(Reason::NoFailingTest),
        },
    }
}
