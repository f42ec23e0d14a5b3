//! The questions: may this call run, may this file be written, what may a jail let through.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tgp_contract::{Access, Actor, RelativePath, Root, Target, TddState, ToolError, Verdict};

use crate::machine::Machine;
use crate::refusal::{self, RefusalSubject};
use crate::rules::{Freshness, Reason, judge_code};
use crate::{FileKind, Permissions, Scope, Tdd, Write, WriteKind};

/// The disk as it is now. An answer may come from a cache that compares time, size and inode.
pub trait FileHasher {
    /// SHA-256 of the file's bytes in lower-case hexadecimal digits; `None` when there is no such file.
    fn hash(&self, root: Root, path: &RelativePath) -> Option<String>;

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
}

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
                Some(Write { root, path: path.clone(), kind })
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
        let request = WriteRequest { actor: &actor, tool, targets: std::slice::from_ref(target) };
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
        let known = Cell::new(None);
        let may = |kind| {
            judge_code(self.mode, machine.state, kind, &mut || {
                self.remembered(&known, &machine, scope, current)
            })
            .is_ok()
        };
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
            if !machines.contains_key(&scope) {
                let machine =
                    self.store.machine(&scope).map_err(|error| ("store", ToolError::from(error)))?;
                machines.insert(scope.clone(), (machine, Cell::new(None)));
            }
            let Some((machine, known)) = machines.get(&scope) else { continue };
            let answer = judge_code(self.mode, machine.state, write.kind, &mut || {
                self.remembered(known, machine, &scope, current)
            });
            rule = match answer {
                Ok(rule) => rule,
                Err(reason) => {
                    let changed = match reason {
                        Reason::FailureIsStale | Reason::PassIsStale => {
                            self.changed_files(machine, &scope, current)
                        }
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

    fn remembered(
        &self,
        known: &Cell<Option<Freshness>>,
        machine: &Machine,
        scope: &Scope,
        current: &dyn FileHasher,
    ) -> Freshness {
        known.get().unwrap_or_else(|| {
            let answer = self.freshness(machine, scope, current);
            known.set(Some(answer));
            answer
        })
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
        Reason::Finished => "finished",
    }
}
