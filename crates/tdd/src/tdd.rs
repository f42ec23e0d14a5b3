//! The interface: facts are reported, states are read and set. The questions of a gate are in `judge`.

use serde::Serialize;
use tgp_contract::{Actor, FileEffect, RelativePath, Root, TddMode, TddState, ToolError};

use crate::classify::Classifier;
use crate::machine::{Hashes, Machine, RunFiles, RunSummary};
use crate::refusal;
use crate::rules::Freshness;
use crate::schema::StoreError;
use crate::{
    Classified, FileHasher, FileKind, Permissions, RecordedRun, Scope, SourceSnapshot, Store, TddOptions,
    TestOutcome, TestRun, Transition,
};

/// The state of a scope, for people and programs to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeStatus {
    pub scope: Scope,
    pub mode: TddMode,
    pub state: TddState,
    /// Whether outside changes have made the run stale that the state rests on.
    pub stale: bool,
    /// What an agent may do to code now.
    pub code: Permissions,
    /// The tests whose failure admits code.
    pub failing_tests: Vec<RelativePath>,
    pub last_run: Option<RecordedRun>,
}

/// Test-driven work of one project and its tools.
#[derive(Debug)]
pub struct Tdd {
    pub(crate) store: Store,
    pub(crate) mode: TddMode,
    pub(crate) classifier: Classifier,
}

impl Tdd {
    /// # Errors
    /// `ECONFIG` when a pattern is wrong.
    pub fn open(store: Store, options: &TddOptions) -> Result<Self, ToolError> {
        Ok(Self { store, mode: options.mode, classifier: Classifier::new(options)? })
    }

    #[must_use]
    pub fn mode(&self) -> TddMode {
        self.mode
    }

    /// Changes the mode of this process; it is not stored.
    pub fn set_mode(&mut self, mode: TddMode) {
        self.mode = mode;
    }

    /// What a file is, and whose work it is part of.
    #[must_use]
    pub fn classify(&self, root: Root, path: &RelativePath) -> Classified {
        self.classifier.classify(root, path)
    }

    /// Whether it is known which tests were there before any work was done.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_begun(&self, scope: &Scope) -> Result<bool, ToolError> {
        Ok(self.store.machine(scope)?.baseline_is_complete)
    }

    /// Says which tests are there before any work is done, so that one which appears later is known to be new. Does
    /// nothing when a whole suite is known already.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin(&self, scope: &Scope, snapshot: &SourceSnapshot) -> Result<(), ToolError> {
        if self.store.machine(scope)?.baseline_is_complete {
            return Ok(());
        }
        let files = self.sort_out(scope, snapshot);
        self.store.transact(|work| {
            work.machine(scope)?.begin(&files.tests);
            Ok(())
        })?;
        Ok(())
    }

    /// Notes files that a call has changed, all in one transaction.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn note_changes(&self, changes: &[FileEffect]) -> Result<(), ToolError> {
        let facts: Vec<(Scope, Classified, &FileEffect)> = changes
            .iter()
            .filter(|change| change.before != change.after)
            .filter_map(|change| {
                let classified = self.classify(change.root, &change.path);
                classified.scope.clone().map(|scope| (scope, classified, change))
            })
            .collect();
        if facts.is_empty() {
            return Ok(());
        }
        self.store.transact(|work| {
            for (scope, file, change) in &facts {
                let (before, after) = (change.before.as_deref(), change.after.as_deref());
                work.machine(scope)?.change(file.kind, &file.path, before, after);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Notes a run of tests, and says what it meant.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn note_run(&self, run: &TestRun) -> Result<Transition, ToolError> {
        let files = self.sort_out(&run.scope, &run.before);
        let outcome = match run.outcome() {
            // Only exempt files were hashed, so the run is tied to nothing.
            TestOutcome::Passed | TestOutcome::Failed if files.tests.is_empty() && files.code.is_empty() => {
                TestOutcome::Inconclusive
            }
            outcome => outcome,
        };
        let fingerprint = run.before.fingerprint().map_err(StoreError::from)?;
        let noted = self.store.transact(|work| {
            let machine = work.machine(&run.scope)?;
            let state_before = machine.state;
            let reason = machine.run(&RunSummary {
                outcome,
                selection: run.selection,
                failing_files: run.failing_files.as_deref(),
                files,
            });
            let state_after = machine.state;
            work.record(&RecordedRun {
                id: 0,
                scope: run.scope.clone(),
                command: run.command.clone(),
                selection: run.selection,
                exit_code: run.exit_code,
                passed: run.passed,
                failed: run.failed,
                outcome,
                state_before,
                state_after,
                fingerprint,
                started_ms: run.started_ms,
                duration_ms: run.duration_ms,
            })?;
            let why = refusal::explain(reason, state_after).to_owned();
            Ok(Transition { outcome, state_before, state_after, why })
        })?;
        Ok(noted)
    }

    /// # Errors
    /// When the store cannot be read.
    pub fn state(&self, scope: &Scope) -> Result<TddState, ToolError> {
        Ok(self.store.machine(scope)?.state)
    }

    /// Everything about a scope that a person may want to see.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn standing(&self, scope: &Scope, current: &dyn FileHasher) -> Result<ScopeStatus, ToolError> {
        let machine = self.store.machine(scope)?;
        Ok(ScopeStatus {
            scope: scope.clone(),
            mode: self.mode,
            state: machine.state,
            stale: self.freshness(&machine, scope, current) == Freshness::Stale,
            code: self.permissions(&Actor::Agent(String::new()), scope, current)?,
            failing_tests: machine.red.keys().cloned().collect(),
            last_run: self.last_run(scope)?,
        })
    }

    /// Every scope that anything is known of, the one that was touched last first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn scopes(&self) -> Result<Vec<(Scope, TddState)>, ToolError> {
        Ok(self.store.scopes()?)
    }

    /// # Errors
    /// When the store cannot be read.
    pub fn last_run(&self, scope: &Scope) -> Result<Option<RecordedRun>, ToolError> {
        Ok(self.runs(scope, 1)?.pop())
    }

    /// The last runs of a scope, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self, scope: &Scope, most: usize) -> Result<Vec<RecordedRun>, ToolError> {
        Ok(self.store.runs(scope, most)?)
    }

    /// Declares the work done, which only work that is green on the files as they are can be.
    ///
    /// # Errors
    /// `ESTATE` otherwise.
    pub fn finish(&self, scope: &Scope, current: &dyn FileHasher) -> Result<(), ToolError> {
        // The disk is read before the transaction, which others wait for; what was read must then still be the machine.
        let seen = self.store.machine(scope)?;
        let fresh = self.freshness(&seen, scope, current);
        let changed = refusal::named(&self.changed_files(&seen, scope, current));
        let refused = self.store.transact(|work| {
            let machine = work.machine(scope)?;
            let why = match machine.state {
                TddState::Done => return Ok(None),
                TddState::Green if *machine != *seen => "another process has just changed it".to_owned(),
                TddState::Green if fresh == Freshness::Stale => {
                    refusal::changed_since_pass(changed.as_deref())
                }
                TddState::Green => {
                    machine.state = TddState::Done;
                    return Ok(None);
                }
                _ => "only work that is green can be done".to_owned(),
            };
            Ok(Some((machine.state, why)))
        })?;
        refused.map_or(Ok(()), |(from, why)| {
            let help =
                format!("{}, and declare it done when all tests pass", refusal::how_a_person_runs(scope));
            Err(refusal::claimed(scope, from, TddState::Done, &why, help))
        })
    }

    /// Sets a state by a person's word: `idle` (which also lifts a halt), `halted`, and `done` where [`Tdd::finish`] agrees.
    /// The others follow from runs and cannot be claimed.
    ///
    /// # Errors
    /// `ESTATE` when the state cannot be set so.
    pub fn set(&self, scope: &Scope, state: TddState, current: &dyn FileHasher) -> Result<(), ToolError> {
        match state {
            TddState::Idle | TddState::Halted => {
                self.store.transact(|work| {
                    work.machine(scope)?.reset(state);
                    Ok(())
                })?;
                Ok(())
            }
            TddState::Done => self.finish(scope, current),
            TddState::TestWritten
            | TddState::Red
            | TddState::CodeAllowed
            | TddState::Green
            | TddState::Refactor => {
                let from = self.state(scope)?;
                let help = format!(
                    "set `idle`, `halted` or `done`; to come to {}, write a test and {}",
                    state.as_str(),
                    refusal::how_a_person_runs(scope)
                );
                let why = "it follows from recorded runs and cannot be claimed";
                Err(refusal::claimed(scope, from, state, why, help))
            }
        }
    }

    pub(crate) fn freshness(&self, machine: &Machine, scope: &Scope, current: &dyn FileHasher) -> Freshness {
        let counts = |path: &RelativePath| self.counts(scope, path);
        machine.freshness(&counts, &|path| current.hash(scope.root(), path))
    }

    /// The files that made a result stale, in the order of their names; `None` for one that the caller may not see.
    pub(crate) fn changed_files(
        &self,
        machine: &Machine,
        scope: &Scope,
        current: &dyn FileHasher,
    ) -> Vec<Option<RelativePath>> {
        let counts = |path: &RelativePath| self.counts(scope, path);
        let hash = |path: &RelativePath| current.hash(scope.root(), path);
        let changed = machine.changed_files(&counts, &hash);
        changed.map(|path| current.shows(scope.root(), path).then(|| path.clone())).collect()
    }

    /// Exempt files and the kernel's own never make a result stale, also where they were neither when it was noted.
    fn counts(&self, scope: &Scope, path: &RelativePath) -> bool {
        self.classify(scope.root(), path).kind != FileKind::Exempt
    }

    /// The files of a snapshot that belong to the scope's work, by kind. A tool's run may rest on other tools; to
    /// this scope they are code.
    fn sort_out(&self, scope: &Scope, snapshot: &SourceSnapshot) -> RunFiles {
        let mut files = RunFiles::default();
        for (path, hash) in snapshot.iter() {
            let file = self.classify(scope.root(), path);
            let part: &mut Hashes = match (file.kind, &file.scope, scope) {
                (FileKind::Exempt, _, _) => continue,
                (_, Some(Scope::Tool(_)), Scope::Project) => continue,
                (FileKind::Test, owner, _) if owner.as_ref() == Some(scope) => &mut files.tests,
                _ => &mut files.code,
            };
            part.insert(file.path, hash.to_owned());
        }
        files
    }
}
