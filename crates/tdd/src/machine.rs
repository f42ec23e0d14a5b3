//! The machine itself: facts in, state out. It knows no clock, no disk and no opinion.

use std::collections::BTreeMap;

use tgp_contract::{RelativePath, TddState, chronicled};

use crate::rules::Freshness;
use crate::{FileKind, Selection, TestOutcome};

/// The most files that a machine follows: twice a whole snapshot. What is beyond admits nothing.
const MAX_FOLLOWED: usize = 100_000;

/// Paths with the hash of their bytes.
pub(crate) type Hashes = BTreeMap<RelativePath, String>;

/// Paths with the hash of their bytes, or `None` for a file that is not there.
pub(crate) type FileHashes = BTreeMap<RelativePath, Option<String>>;

/// What code has been written for since the last green run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    /// For nothing yet.
    Fresh,
    /// Code was changed while green.
    Refactoring,
    /// An old test has failed, and old code is changed for it.
    Repairing,
    /// A new or changed test has failed.
    Opened,
}

/// Everything one scope remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub state: TddState,
    pub cycle: Cycle,
    /// The tests as the work began, or as they last passed. A test that differs is new or changed.
    pub baseline: FileHashes,
    /// Whether `baseline` names every test there was, so that an unnamed one is new.
    pub baseline_is_complete: bool,
    /// The tests whose failure admits code, as they were in that run.
    pub red: Hashes,
    /// The files of the last run that is built upon while green, with all changes noted since.
    pub seen: FileHashes,
}

/// Whether a test has failed that is neither new nor changed. Where no failing file is known, any of them may have.
fn old_test_fails(run: &RunSummary<'_>, changed: &Hashes) -> bool {
    match run.failing_files {
        // Some languages have tests inside their code.
        Some(files) if !files.is_empty() => files.iter().any(|file| {
            let is_of_run = run.files.tests.contains_key(file) || run.files.code.contains_key(file);
            is_of_run && !changed.contains_key(file)
        }),
        _ => changed.is_empty(),
    }
}

/// Whether a change of a file can make a result stale.
pub(crate) type Counts<'a> = dyn Fn(&RelativePath) -> bool + 'a;
/// The hash of a file as it is now; nothing when there is none.
pub(crate) type Hasher<'a> = dyn Fn(&RelativePath) -> Option<String> + 'a;

/// The files of a run, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFiles {
    pub tests: Hashes,
    pub code: Hashes,
}

impl RunFiles {
    fn known(&self) -> FileHashes {
        let mut all = known(&self.code);
        all.append(&mut known(&self.tests));
        all
    }
}

pub(crate) fn known(hashes: &Hashes) -> FileHashes {
    hashes.iter().map(|(path, hash)| (path.clone(), Some(hash.clone()))).collect()
}

/// A run, as far as the machine cares.
#[derive(Clone, Debug)]
pub(crate) struct RunSummary<'a> {
    pub outcome: TestOutcome,
    pub selection: Selection,
    pub failing_files: Option<&'a [RelativePath]>,
    pub files: RunFiles,
}

/// Why a run led to the state that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunReason {
    Halted,
    Stale,
    Inconclusive,
    /// Some tests were asked for, and none is known to have failed.
    PartIsUnknown,
    OnlyAPart,
    AllPass,
    NewTestFails,
    /// Code was written for a failing test, and something still fails.
    StillFails,
    /// Code was changed while green, and something fails.
    RefactoringBroke,
    /// A test fails that is neither new nor changed.
    OldTestFails,
    /// New or changed tests are there, and it is unknown which one failed.
    NewTestUnknown,
    /// What fails is no file of the run.
    NothingKnown,
}

impl Machine {
    pub fn new() -> Self {
        Self {
            state: TddState::Idle,
            cycle: Cycle::Fresh,
            baseline: FileHashes::new(),
            baseline_is_complete: false,
            red: Hashes::new(),
            seen: FileHashes::new(),
        }
    }

    /// The tests that are there as the work begins are old ones. Says nothing of those whose history is known already.
    pub fn begin(&mut self, tests: &Hashes) {
        if !self.baseline_is_complete {
            for (path, hash) in tests {
                self.baseline.entry(path.clone()).or_insert_with(|| Some(hash.clone()));
            }
            self.baseline_is_complete = true;
        }
    }

    /// A file was written or deleted.
    pub fn change(&mut self, kind: FileKind, path: &RelativePath, before: Option<&str>, after: Option<&str>) {
        if before == after || kind == FileKind::Exempt {
            return;
        }
        self.follow(path, before, after);
        if kind == FileKind::Test {
            if !self.baseline_is_complete && self.baseline.len() < MAX_FOLLOWED {
                self.baseline.entry(path.clone()).or_insert_with(|| before.map(str::to_owned));
            }
            self.red.clear();
        }
        self.state = match (kind, self.state) {
            (_, TddState::Halted) => TddState::Halted,
            // A test that is gone cannot fail, so nothing begins with it.
            (FileKind::Test, state @ (TddState::Idle | TddState::Done)) if after.is_none() => state,
            (FileKind::Test, _) => TddState::TestWritten,
            (_, TddState::Red) => TddState::CodeAllowed,
            (_, TddState::Green) => {
                self.cycle = Cycle::Refactoring;
                TddState::Refactor
            }
            (_, TddState::Done) => TddState::Idle,
            (_, state) => state,
        };
    }

    /// Keeps `seen` in step with a noted change. Where the file was not as it was seen last, something else has
    /// changed it, and the difference must stay visible.
    fn follow(&mut self, path: &RelativePath, before: Option<&str>, after: Option<&str>) {
        let may_follow = match self.seen.get(path) {
            Some(known) => known.as_deref() == before,
            None => !self.seen.is_empty() && self.seen.len() < MAX_FOLLOWED,
        };
        if may_follow {
            self.seen.insert(path.clone(), after.map(str::to_owned));
        }
    }

    /// A run was recorded.
    pub fn run(&mut self, run: &RunSummary<'_>) -> RunReason {
        if self.state == TddState::Halted {
            return RunReason::Halted;
        }
        match (run.outcome, run.selection) {
            (TestOutcome::Stale, _) => RunReason::Stale,
            (TestOutcome::Inconclusive, Selection::Part) => RunReason::PartIsUnknown,
            (TestOutcome::Inconclusive, Selection::Whole) => RunReason::Inconclusive,
            (TestOutcome::Passed, Selection::Part) => RunReason::OnlyAPart,
            (TestOutcome::Passed, Selection::Whole) => self.pass(&run.files),
            (TestOutcome::Failed, _) => self.fail(run),
        }
    }

    fn pass(&mut self, files: &RunFiles) -> RunReason {
        self.state = TddState::Green;
        self.cycle = Cycle::Fresh;
        self.baseline = known(&files.tests);
        self.baseline_is_complete = true;
        self.red.clear();
        self.seen = files.known();
        RunReason::AllPass
    }

    fn fail(&mut self, run: &RunSummary<'_>) -> RunReason {
        let changed = self.changed(&run.files.tests);
        let failing: Hashes = match run.failing_files {
            None => changed.clone(),
            Some(files) => files
                .iter()
                .filter_map(|path| changed.get(path).map(|hash| (path.clone(), hash.clone())))
                .collect(),
        };
        if !failing.is_empty() {
            return self.admit(failing, RunReason::NewTestFails);
        }
        if self.cycle == Cycle::Opened && !changed.is_empty() {
            if run.selection == Selection::Whole {
                // The new test passes by now and an old one fails: the code that broke it must be mendable.
                return self.admit(changed, RunReason::StillFails);
            }
            // The new test may not have run at all, so its earlier result is kept.
            if matches!(self.state, TddState::Red | TddState::CodeAllowed) {
                return RunReason::StillFails;
            }
        }
        let changed_old_code = matches!(self.cycle, Cycle::Refactoring | Cycle::Repairing);
        let was_refactoring = self.state == TddState::TestWritten && changed_old_code;
        if was_refactoring || matches!(self.state, TddState::Green | TddState::Refactor) {
            let was_repairing = self.cycle == Cycle::Repairing;
            // From here on it is a repair, whatever has broken the tests.
            let reason = self.repair(run);
            return if was_repairing { reason } else { RunReason::RefactoringBroke };
        }
        // While code is written for a new test, that test has to be seen first.
        let is_under_way = self.cycle == Cycle::Opened && !changed.is_empty();
        if !is_under_way && old_test_fails(run, &changed) {
            return self.repair(run);
        }
        if changed.is_empty() || self.state == TddState::Done {
            self.state = TddState::Idle;
            self.cycle = Cycle::Fresh;
            self.red.clear();
        }
        if changed.is_empty() { RunReason::NothingKnown } else { RunReason::NewTestUnknown }
    }

    /// Old code may be changed until the old test passes.
    fn repair(&mut self, run: &RunSummary<'_>) -> RunReason {
        self.state = TddState::Refactor;
        self.cycle = Cycle::Repairing;
        self.red.clear();
        self.seen = run.files.known();
        RunReason::OldTestFails
    }

    /// Whether code is changed for an old test that fails: then the tests stay as they are.
    pub fn is_repairing(&self) -> bool {
        self.state == TddState::Refactor && self.cycle == Cycle::Repairing
    }

    fn admit(&mut self, red: Hashes, reason: RunReason) -> RunReason {
        if self.state != TddState::CodeAllowed {
            self.state = TddState::Red;
        }
        self.cycle = Cycle::Opened;
        self.red = red;
        self.seen.clear();
        reason
    }

    /// The tests that are not as they were at the baseline.
    pub fn changed(&self, tests: &Hashes) -> Hashes {
        tests
            .iter()
            .filter(|(path, hash)| match self.baseline.get(*path) {
                Some(old) => old.as_ref() != Some(*hash),
                None => self.baseline_is_complete,
            })
            .map(|(path, hash)| (path.clone(), hash.clone()))
            .collect()
    }

    /// Whether what the state rests on is still there, as `current` sees it.
    pub fn freshness(&self, counts: &Counts<'_>, current: &Hasher<'_>) -> Freshness {
        let has_no_test = matches!(self.state, TddState::Red | TddState::CodeAllowed) && self.red.is_empty();
        let is_stale = has_no_test || self.changed_files(counts, current).next().is_some();
        if is_stale { Freshness::Stale } else { Freshness::Fresh }
    }

    /// The files that the state rests on and that are not as they were, in the order of their names. `counts` leaves out
    /// files that no result rests on any more.
    pub fn changed_files<'a>(
        &'a self,
        counts: &'a Counts<'a>,
        current: &'a Hasher<'a>,
    ) -> Box<dyn Iterator<Item = &'a RelativePath> + 'a> {
        match self.state {
            TddState::Red | TddState::CodeAllowed => {
                let changed =
                    self.red.iter().filter(move |(path, hash)| current(path).as_ref() != Some(*hash));
                Box::new(changed.map(|(path, _)| path))
            }
            TddState::Green | TddState::Refactor => {
                let changed = self.seen.iter().filter(move |(path, hash)| {
                    counts(path) && current(path) != **hash && !self.was_chronicle(path, current)
                });
                Box::new(changed.map(|(path, _)| path))
            }
            TddState::Idle | TddState::TestWritten | TddState::Done | TddState::Halted => {
                Box::new(std::iter::empty())
            }
        }
    }

    /// Whether a file that is gone was the chronicle of another one of the run. Earlier versions counted those beside the
    /// sources as code, and a migration removes them.
    fn was_chronicle(&self, path: &RelativePath, current: &Hasher<'_>) -> bool {
        chronicled(path).is_some_and(|file| self.seen.contains_key(&file)) && current(path).is_none()
    }

    /// A person stops everything, or clears the table. What is known of the tests stays.
    pub fn reset(&mut self, state: TddState) {
        self.state = state;
        self.cycle = Cycle::Fresh;
        self.red.clear();
        self.seen.clear();
    }
}
