//! Graphs with one fault each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Change, Code, Graph, GraphQuery, GraphRows, IngestSummary, ToolError};
use tgp_relay::Substitutes;
use tgp_relay_fakes::{MemoryGraph, Question};

use super::{Line, Mutant, corpus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ForgetsTheCommit,
    AnswersAboutUnknown,
    CountsTwice,
    NeverForgets,
    NoRenames,
    OneRename,
    RenamesAtAnyTime,
    NoImports,
    NoSymbols,
    FixedTexts,
    StartsAnywhere,
    OneStep,
    OneDirection,
    SelfPairs,
    Doubles,
    OwnColumns,
    SwapsColumns,
    WorkTreeIsHead,
    SymbolsOfLatest,
    CountsAgain,
    NamesTheCommitItself,
    NoAncestors,
    IgnoresChanges,
    MakesChanges,
    IgnoresRemovals,
    IgnoresNewFiles,
    SwapsAnswers,
    ReversesAnswers,
    AnswersOnce,
    ProposesOnHead,
    RemembersProposals,
}

const TABLE: &[Line<Fault>] = &[
    (
        Fault::ForgetsTheCommit,
        "forgets-the-commit",
        "a question is about its commit",
        &["t2.files-at-commit", "t2.add-then-remove", "t2.composed-questions"],
    ),
    (
        Fault::AnswersAboutUnknown,
        "answers-about-unknown",
        "a commit that was not ingested is ENOTFOUND",
        &["t2.files-at-commit"],
    ),
    (Fault::CountsTwice, "counts-twice", "no row comes twice", &["t2.idempotent-ingest"]),
    (
        Fault::NeverForgets,
        "never-forgets",
        "no answer knows what was so in another commit",
        &["t2.add-then-remove"],
    ),
    (Fault::NoRenames, "no-renames", "a rename leads to the earlier path", &["t2.rename-chain"]),
    (Fault::OneRename, "one-rename", "renames form a chain", &["t2.rename-chain"]),
    (
        Fault::RenamesAtAnyTime,
        "renames-at-any-time",
        "a rename is not known before it happened",
        &["t2.rename-chain"],
    ),
    (
        Fault::NoImports,
        "no-imports",
        "imports by relative paths are known",
        &["t3.plan-denied", "t2.propose", "t2.composed-questions"],
    ),
    (
        Fault::NoSymbols,
        "no-symbols",
        "exported functions and constants are known",
        &["t2.composed-questions", "t2.propose"],
    ),
    (Fault::FixedTexts, "fixed-texts", "questions are composed at run time", &["t2.composed-questions"]),
    (
        Fault::StartsAnywhere,
        "starts-anywhere",
        "STARTS WITH is about the beginning",
        &["t2.composed-questions"],
    ),
    (Fault::OneStep, "one-step", "`*` is one step or more", &["t2.composed-questions"]),
    (Fault::OneDirection, "one-direction", "`<-` leads the other way", &["t2.composed-questions"]),
    (Fault::SelfPairs, "self-pairs", "a relationship is used once", &["t2.composed-questions"]),
    (Fault::Doubles, "doubles", "DISTINCT rows are distinct", &["t2.composed-questions"]),
    (
        Fault::OwnColumns,
        "own-columns",
        "columns have the names that were asked for",
        &["t2.composed-questions"],
    ),
    (
        Fault::SwapsColumns,
        "swaps-columns",
        "columns are in the order of the question",
        &["t2.composed-questions", "t2.rename-chain"],
    ),
    (
        Fault::WorkTreeIsHead,
        "work-tree-is-head",
        "WORKTREE is the files as they are",
        &["t2.composed-questions"],
    ),
    (
        Fault::SymbolsOfLatest,
        "symbols-of-latest",
        "symbols are those of the commit",
        &["t2.composed-questions"],
    ),
    (Fault::CountsAgain, "counts-again", "a known commit is not read again", &["t2.idempotent-ingest"]),
    (
        Fault::NamesTheCommitItself,
        "names-the-commit-itself",
        "an ingest names the commit in full",
        &["t2.files-at-commit"],
    ),
    (
        Fault::NoAncestors,
        "no-ancestors",
        "an ingest makes ancestors known",
        &["t2.files-at-commit", "t2.add-then-remove"],
    ),
    (Fault::IgnoresChanges, "ignores-changes", "a proposal is answered with its changes", &["t2.propose"]),
    (Fault::MakesChanges, "makes-changes", "a proposal changes nothing", &["t2.propose"]),
    (Fault::IgnoresRemovals, "ignores-removals", "a removed file is gone in a proposal", &["t2.propose"]),
    (Fault::IgnoresNewFiles, "ignores-new-files", "a new file is there in a proposal", &["t2.propose"]),
    (Fault::SwapsAnswers, "swaps-answers", "the answer without the changes comes first", &["t2.propose"]),
    (
        Fault::ReversesAnswers,
        "reverses-answers",
        "answers are in the order of the questions",
        &["t2.propose"],
    ),
    (Fault::AnswersOnce, "answers-once", "each question of a proposal is answered", &["t2.propose"]),
    (Fault::ProposesOnHead, "proposes-on-head", "a proposal is about the files as they are", &["t2.propose"]),
    (
        Fault::RemembersProposals,
        "remembers-proposals",
        "a proposal leaves nothing for the next",
        &["t2.propose"],
    ),
];

fn part(fault: Fault) -> Substitutes {
    let make = move |project: &Path| -> Result<Arc<dyn Graph>, ToolError> {
        Ok(Arc::new(FaultyGraph {
            fault,
            project: project.to_owned(),
            inner: MemoryGraph::new(project),
            ingested: Mutex::default(),
            answers: Mutex::default(),
            proposed: Mutex::default(),
        }))
    };
    Substitutes { graph: Some(Arc::new(make)), ..Substitutes::default() }
}

pub(super) fn sound() -> Substitutes {
    part(Fault::None)
}

pub(super) fn mutants() -> Vec<Mutant> {
    corpus("graph", TABLE, part)
}

struct FaultyGraph {
    fault: Fault,
    project: PathBuf,
    inner: MemoryGraph,
    ingested: Mutex<Vec<String>>,
    answers: Mutex<BTreeMap<String, BTreeSet<String>>>,
    proposed: Mutex<Vec<Change>>,
}

impl FaultyGraph {
    /// What the fault makes of a question.
    fn asked(&self, mut question: GraphQuery) -> GraphQuery {
        let text = question.query.clone();
        let is_draft = question.commit.as_deref() == Some("WORKTREE");
        match self.fault {
            Fault::ForgetsTheCommit if !is_draft => question.commit = None,
            Fault::RenamesAtAnyTime if text.contains("WAS_RENAMED_FROM") => question.commit = None,
            Fault::SymbolsOfLatest if text.contains("Symbol") => question.commit = None,
            Fault::WorkTreeIsHead if is_draft => question.commit = Some("HEAD".to_owned()),
            Fault::OneRename => question.query = text.replace("WAS_RENAMED_FROM*", "WAS_RENAMED_FROM"),
            Fault::StartsAnywhere => question.query = text.replace("STARTS WITH", "CONTAINS"),
            Fault::OneStep => question.query = text.replace("IMPORTS*", "IMPORTS"),
            Fault::OneDirection => question.query = text.replace("<-[:IMPORTS]-", "-[:IMPORTS]->"),
            Fault::Doubles => question.query = text.replace("DISTINCT", ""),
            _ => {}
        }
        question
    }

    /// What the fault makes of an answer.
    fn answered(&self, question: &GraphQuery, mut answer: GraphRows) -> GraphRows {
        let text = question.query.as_str();
        match self.fault {
            Fault::CountsTwice => {
                let times = self.ingested.lock().unwrap().len();
                answer.rows = std::iter::repeat_n(answer.rows, times).flatten().collect();
            }
            Fault::NeverForgets => {
                let key = format!("{text} {:?}", question.params);
                let mut answers = self.answers.lock().unwrap();
                let known = answers.entry(key).or_default();
                known.extend(answer.rows.iter().map(|row| json!(row).to_string()));
                answer.rows = known.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
            }
            Fault::NoRenames if text.contains("WAS_RENAMED_FROM") => answer.rows.clear(),
            Fault::NoImports if text.contains("IMPORTS") => answer.rows.clear(),
            Fault::NoSymbols if text.contains("Symbol") => answer.rows.clear(),
            Fault::SelfPairs if text.contains("<-") && answer.columns.len() == 2 => {
                let own: Vec<Vec<Value>> =
                    answer.rows.iter().map(|row| vec![row[0].clone(), row[0].clone()]).collect();
                answer.rows.extend(own.into_iter().take(1));
            }
            Fault::OwnColumns => answer.columns = vec!["path".to_owned(); answer.columns.len()],
            Fault::SwapsColumns => answer.rows.iter_mut().for_each(|row| row.reverse()),
            _ => {}
        }
        answer
    }
}

#[async_trait]
impl Graph for FaultyGraph {
    fn marks_unread_files(&self) -> bool {
        self.inner.marks_unread_files()
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        let mut ingested = self.inner.ingest(commit).await?;
        self.ingested.lock().unwrap().push(ingested.commit.clone());
        match self.fault {
            Fault::CountsAgain => ingested.commits = ingested.commits.max(1),
            Fault::NamesTheCommitItself => ingested.commit = "HEAD".to_owned(),
            _ => {}
        }
        Ok(ingested)
    }

    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        let is_known =
            |commit: &String| commit == "WORKTREE" || self.ingested.lock().unwrap().contains(commit);
        if self.fault == Fault::NoAncestors && !question.commit.as_ref().is_none_or(is_known) {
            return Err(ToolError::new(Code::NotFound, "it was not ingested by its own name"));
        }
        let is_fixed = Question::ALL.iter().any(|fixed| fixed.text() == question.query);
        if self.fault == Fault::FixedTexts && !is_fixed {
            return Err(ToolError::new(Code::Validation, "it is none of the questions that it knows"));
        }
        match self.inner.query(self.asked(question.clone())).await {
            Err(error) if self.fault == Fault::AnswersAboutUnknown && error.code == Code::NotFound => {
                Ok(GraphRows::default())
            }
            answer => Ok(self.answered(&question, answer?)),
        }
    }

    async fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        let is_there = |change: &Change| self.project.join(change.path().as_str()).exists();
        let mut changes = changes.to_vec();
        match self.fault {
            Fault::IgnoresChanges => changes.clear(),
            Fault::IgnoresRemovals => changes.retain(|change| change.content().is_some()),
            Fault::IgnoresNewFiles => changes.retain(is_there),
            _ => {}
        }
        let mut answers = self.inner.propose(&changes, questions).await?;
        match self.fault {
            Fault::MakesChanges => {
                for change in &changes {
                    let place = self.project.join(change.path().as_str());
                    let _ = match change.content() {
                        Some(content) => std::fs::write(place, content),
                        None => std::fs::remove_file(place),
                    };
                }
            }
            Fault::SwapsAnswers => answers = answers.into_iter().map(|(now, then)| (then, now)).collect(),
            Fault::ReversesAnswers => answers.reverse(),
            Fault::AnswersOnce => {
                let first = answers[0].clone();
                answers.fill(first);
            }
            Fault::ProposesOnHead => {
                for (question, (now, _)) in questions.iter().zip(&mut answers) {
                    *now = self.inner.query(question.clone().at("HEAD")).await?;
                }
            }
            Fault::RemembersProposals => {
                let earlier = std::mem::replace(&mut *self.proposed.lock().unwrap(), changes);
                let before = self.inner.propose(&earlier, questions).await?;
                for ((now, _), (_, then)) in answers.iter_mut().zip(before) {
                    *now = then;
                }
            }
            _ => {}
        }
        let both = |(question, (now, then)): (&GraphQuery, (GraphRows, GraphRows))| {
            (self.answered(question, now), self.answered(question, then))
        };
        Ok(questions.iter().zip(answers).map(both).collect())
    }
}
