//! The questions: may this call run, may this file be written, what may a jail let through.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use tgp_contract::{Access, Actor, RelativePath, Root, Target, TddState, ToolError, Verdict};

use crate::machine::Machine;
use crate::origin::Origins;
use crate::refusal::{self, RefusalSubject};
use crate::rules::{Evidence, Freshness, Origin, Reason, judge_code};
use crate::{Contents, FileKind, Permissions, Scope, Tdd, Write, WriteKind};

/// The disk as it is now. An answer may come from a cache that compares time, size and inode.
pub trait FileHasher {
    /// SHA-256 of the file's bytes in lower-case hexadecimal digits; `None` when there is no such file.
    fn hash(&self, root: Root, path: &RelativePath) -> Option<String>;

    /// The file's bytes; `None` when there is no such file, or its bytes are not to be had. Then nothing is known of them.
    fn read(&self, _root: Root, _path: &RelativePath) -> Option<Vec<u8>> {
        None
    }

    /// Whether a refusal may name the file.
    fn shows(&self, _root: Root, _path: &RelativePath) -> bool {
        true
    }
}

impl<F: Fn(Root, &RelativePath) -> Option<String>> FileHasher for F {
    fn hash(&self, root: Root, path: &RelativePath) -> Option<String> {
        self(root, path)
    }
}

/// A call that wants to be allowed.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    pub actor: &'a Actor,
    pub tool: &'a str,
    pub targets: &'a [Target],
    /// Whether the files as the call would leave them are judged before it takes effect, by [`Tdd::judge_writes`].
    pub is_judged_later: bool,
}

/// The tools that run forged ones. What those write below `fs.allowedDirs`, which a person has chosen, is their output.
const RUNS_TOOLS: [&str; 2] = ["exec_tool", "exec_code"];

/// The rule of a call that changes no file.
const NO_WRITE: &str = "no-write";

impl Tdd {
    /// Judges a call by what it would touch. A store that cannot be read denies.
    #[must_use]
    pub fn judge(&self, request: WriteRequest<'_>, current: &dyn FileHasher) -> Verdict {
        let files: Vec<(Root, &RelativePath, Access)> =
            request.targets.iter().filter_map(Target::file).collect();
        let writes: Vec<Write> = files
            .iter()
            .filter_map(|&(root, path, access)| {
                let kind = match access {
                    Access::Read | Access::Append => return None,
                    Access::Delete => WriteKind::Delete,
                    Access::Write => kind_of_write(root, path, current),
                };
                let is_judged_later = request.is_judged_later && root == Root::Project;
                let after = if is_judged_later { Contents::JudgedLater } else { Contents::Unknown };
                Some(Write { root, path: path.clone(), kind, after })
            })
            .collect();
        let touched = files.iter().map(|&(root, path, _)| (root, path));
        verdict(
            self.not_halted(request.tool, touched)
                .and_then(|()| self.allow_writes(request.actor, request.tool, &writes, current)),
        )
    }

    /// The verdict on a call that only reads, when it is known without waiting for the store or the disk. Everything else
    /// is for [`Tdd::judge`].
    #[must_use]
    pub fn judge_at_once(&self, request: WriteRequest<'_>) -> Option<Verdict> {
        let mut scopes = vec![Scope::Project];
        for (root, path, access) in request.targets.iter().filter_map(Target::file) {
            if matches!(access, Access::Write | Access::Delete) {
                return None;
            }
            scopes.extend(self.classifier.tool_scope(root, path));
        }
        if self.store.states_at_once(&scopes)?.contains(&TddState::Halted) {
            return None;
        }
        Some(verdict(Ok(NO_WRITE)))
    }

    /// Judges the files that a command or a forged tool wants to change.
    #[must_use]
    pub fn judge_writes(
        &self,
        actor: &Actor,
        tool: &str,
        writes: &[Write],
        current: &dyn FileHasher,
    ) -> Verdict {
        let touched = writes.iter().map(|write| (write.root, &write.path));
        verdict(self.not_halted(tool, touched).and_then(|()| self.allow_writes(actor, tool, writes, current)))
    }

    /// Whether an agent may call `tool` on `target` now.
    ///
    /// # Errors
    /// `ESTATE` with the state, the mode, the file, the reason and the next step.
    pub fn is_tool_allowed(
        &self,
        tool: &str,
        target: &Target,
        current: &dyn FileHasher,
    ) -> Result<(), ToolError> {
        let actor = Actor::Agent(String::new());
        let targets = std::slice::from_ref(target);
        let request = WriteRequest { actor: &actor, tool, targets, is_judged_later: false };
        match self.judge(request, current) {
            Verdict::Deny { error, .. } => Err(error),
            Verdict::Allow { .. } | Verdict::Ask(_) => Ok(()),
        }
    }

    /// What may be done to code files of a scope now, for a jail that has to know before the first write.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn permissions(
        &self,
        actor: &Actor,
        scope: &Scope,
        current: &dyn FileHasher,
    ) -> Result<Permissions, ToolError> {
        let machine = self.store.machine(scope)?;
        if machine.state == TddState::Halted || self.state(&Scope::Project)? == TddState::Halted {
            return Ok(Permissions::default());
        }
        if matches!(actor, Actor::Person(_)) {
            return Ok(Permissions { create: true, modify: true, delete: true });
        }
        let mut evidence =
            ScopeEvidence { tdd: self, machine: &machine, scope, current, known: Cell::new(None) };
        let mut may = |kind| judge_code(self.mode, machine.state, kind, &mut evidence).is_ok();
        Ok(Permissions {
            create: may(WriteKind::Create),
            modify: may(WriteKind::Modify),
            delete: may(WriteKind::Delete),
        })
    }

    /// A halted project refuses everything, a halted tool whatever touches its files.
    fn not_halted<'a>(
        &self,
        tool: &str,
        touched: impl Iterator<Item = (Root, &'a RelativePath)>,
    ) -> Result<(), (&'static str, ToolError)> {
        let refuse_when_halted = |scope: &Scope| match self.state(scope) {
            Ok(TddState::Halted) => Err(("halted", refusal::halted(tool, self.mode, scope))),
            Ok(_) => Ok(()),
            Err(error) => Err(("store", error)),
        };
        refuse_when_halted(&Scope::Project)?;
        for (root, path) in touched {
            if let Some(scope) = self.classifier.tool_scope(root, path) {
                refuse_when_halted(&scope)?;
            }
        }
        Ok(())
    }

    fn allow_writes(
        &self,
        actor: &Actor,
        tool: &str,
        writes: &[Write],
        current: &dyn FileHasher,
    ) -> Result<&'static str, (&'static str, ToolError)> {
        if writes.is_empty() {
            return Ok(NO_WRITE);
        }
        if matches!(actor, Actor::Person(_)) {
            return Ok("person");
        }
        // Hashing is the dear part, so it is done once for each scope, and only where an answer rests on it.
        let mut machines: BTreeMap<Scope, (Arc<Machine>, Cell<Option<Freshness>>)> = BTreeMap::new();
        let call = CallWrites { tdd: self, writes, current, origins: OnceCell::new() };
        let mut rule = "exempt";
        for write in writes {
            let file = self.classify(write.root, &write.path);
            let scope = match (file.kind, file.scope) {
                (FileKind::Code, Some(scope)) => scope,
                (FileKind::Test, _) => {
                    rule = if rule == "exempt" { "test" } else { rule };
                    continue;
                }
                _ => continue,
            };
            if scope == Scope::Project && RUNS_TOOLS.contains(&tool) {
                rule = "tool-output";
                continue;
            }
            if !machines.contains_key(&scope) {
                let machine =
                    self.store.machine(&scope).map_err(|error| ("store", ToolError::from(error)))?;
                machines.insert(scope.clone(), (machine, Cell::new(None)));
            }
            let Some((machine, known)) = machines.get(&scope) else { continue };
            let scoped = ScopeEvidence { tdd: self, machine, scope: &scope, current, known: known.clone() };
            let mut evidence = WriteEvidence { scoped, write, call: &call };
            let answer = judge_code(self.mode, machine.state, write.kind, &mut evidence);
            known.set(evidence.scoped.known.get());
            rule = match answer {
                Ok(rule) => rule,
                Err(reason) => {
                    let changed = match reason {
                        Reason::FailureIsStale | Reason::PassIsStale => {
                            self.changed_files(machine, &scope, current)
                        }
                        Reason::TestWithRepair => vec![call.test_of(&scope).cloned()],
                        _ => Vec::new(),
                    };
                    let error =
                        self.refusal(reason, tool, machine.state, &scope, &file.path, write.kind, &changed);
                    return Err((rule_of(reason), error));
                }
            };
        }
        Ok(rule)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one sentence, each known in another place")]
    fn refusal(
        &self,
        reason: Reason,
        tool: &str,
        state: TddState,
        scope: &Scope,
        path: &RelativePath,
        kind: WriteKind,
        changed: &[Option<RelativePath>],
    ) -> ToolError {
        let test = self.classifier.suggest_test(scope, path);
        let counts_as_code = self.classifier.why_code(scope, path);
        let counts_as_code = counts_as_code.as_deref();
        refusal::refuse(
            reason,
            RefusalSubject {
                tool,
                mode: self.mode,
                state,
                scope,
                path,
                kind,
                test: &test,
                counts_as_code,
                changed,
            },
        )
    }
}

/// All files that one call changes.
struct CallWrites<'a> {
    tdd: &'a Tdd,
    writes: &'a [Write],
    current: &'a dyn FileHasher,
    origins: OnceCell<Origins<'a>>,
}

impl CallWrites<'_> {
    /// The first test of a scope that the call changes.
    fn test_of(&self, scope: &Scope) -> Option<&RelativePath> {
        let is_test = |write: &&Write| {
            let file = self.tdd.classify(write.root, &write.path);
            file.kind == FileKind::Test && file.scope.as_ref() == Some(scope)
        };
        self.writes.iter().find(is_test).map(|write| &write.path)
    }

    fn origin(&self, write: &Write, machine: &Machine) -> Origin {
        let is_code = |write: &Write| {
            let file = self.tdd.classify(write.root, &write.path);
            file.kind == FileKind::Code && file.scope == Some(Scope::Project)
        };
        let origins =
            self.origins.get_or_init(|| Origins::of_call(self.writes, &is_code, &machine.seen, self.current));
        origins.of_file(write, &machine.seen, self.current)
    }
}

/// What is known of a scope, whichever file is asked about.
struct ScopeEvidence<'a> {
    tdd: &'a Tdd,
    machine: &'a Machine,
    scope: &'a Scope,
    current: &'a dyn FileHasher,
    known: Cell<Option<Freshness>>,
}

impl Evidence for ScopeEvidence<'_> {
    fn freshness(&mut self) -> Freshness {
        self.known.get().unwrap_or_else(|| {
            let answer = self.tdd.freshness(self.machine, self.scope, self.current);
            self.known.set(Some(answer));
            answer
        })
    }

    fn origin(&mut self) -> Origin {
        Origin::New
    }

    fn repairs_with_test(&mut self) -> bool {
        false
    }
}

/// What is known of one file of a call.
struct WriteEvidence<'e, 'a> {
    scoped: ScopeEvidence<'e>,
    write: &'e Write,
    call: &'e CallWrites<'a>,
}

impl Evidence for WriteEvidence<'_, '_> {
    fn freshness(&mut self) -> Freshness {
        self.scoped.freshness()
    }

    fn origin(&mut self) -> Origin {
        self.call.origin(self.write, self.scoped.machine)
    }

    fn repairs_with_test(&mut self) -> bool {
        self.scoped.machine.is_repairing() && self.call.test_of(self.scoped.scope).is_some()
    }
}

fn kind_of_write(root: Root, path: &RelativePath, current: &dyn FileHasher) -> WriteKind {
    if current.hash(root, path).is_some() { WriteKind::Modify } else { WriteKind::Create }
}

fn verdict(answer: Result<&'static str, (&'static str, ToolError)>) -> Verdict {
    match answer {
        Ok(rule) => Verdict::Allow { rule: format!("tdd/{rule}") },
        Err((rule, error)) => Verdict::Deny { rule: format!("tdd/{rule}"), error },
    }
}

/// The rule that refuses, as the record names it.
fn rule_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Halted => "halted",
        Reason::NoFailingTest => "no-failing-test",
        Reason::TestNotRun => "test-not-run",
        Reason::FailureIsStale => "stale-failure",
        Reason::PassIsStale => "stale-pass",
        Reason::NewWhileGreen => "new-while-green",
        Reason::NewWhileRefactoring => "new-while-refactoring",
        Reason::TestWithRepair => "test-with-repair",
        Reason::Finished => "finished",
    }
}
