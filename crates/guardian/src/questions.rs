//! What the Guardian asks the graph, and how it reads the answers: always about the files as they are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tgp_contract::{Change, Code, GraphQuery, GraphRows, RelativePath, ToolError, Visibility, canonical};

use crate::invariants::QueryPlace;
use crate::messages::count;
use crate::{Guardian, Invariant};

/// The details of an error that have the number of the question it is about, and the time that a query had.
const QUESTION: &str = "question";
const LIMIT_MS: &str = "limitMs";

/// Paths in one question: a list that the graph still looks up one by one at once.
const PATHS_A_QUESTION: usize = 1_000;

/// A question, and whose it is.
pub(super) struct Asked {
    /// Named in the error when the graph cannot answer; an invariant's name.
    pub(super) label: String,
    pub(super) question: GraphQuery,
    /// Where the query is, when it is in a file.
    place: Option<QueryPlace>,
    /// Lines that precede the query of the file in the question.
    lines_before: u32,
    /// Whether it is an invariant's, which has a limit of time of its own.
    is_invariant: bool,
}

impl Asked {
    pub(super) fn new(label: &str, question: GraphQuery) -> Self {
        Self { label: label.to_owned(), question, place: None, lines_before: 0, is_invariant: false }
    }

    /// The question of an invariant.
    pub(super) fn of(invariant: &Invariant, question: GraphQuery) -> Self {
        Self {
            label: invariant.name.clone(),
            question,
            place: invariant.place.clone(),
            lines_before: u32::from(invariant.timeout_ms.is_some()),
            is_invariant: invariant.place.is_some(),
        }
    }

    /// The error with the name of the question, at its place in the file.
    pub(super) fn named_in(&self, error: ToolError) -> ToolError {
        let mut message = format!("`{}` cannot be asked: {}", self.label, error.message);
        let inner = error.place_of().map(|mut inner| {
            inner.line = inner.line.saturating_sub(self.lines_before).max(1);
            inner
        });
        let place = self.place.as_ref().map(|place| place.of(inner.as_ref()));
        if let Some(place) = &place {
            message = format!("{place}: {message}");
        }
        let is_late = self.is_invariant && error.details.contains_key(LIMIT_MS);
        let mut error = error.with_message(message).detail("invariant", self.label.as_str());
        if is_late {
            error = error.help(format!(
                "run `tgp guardian test {}` to see its plan; the limit is its `timeoutMs` in the file of invariants, and at \
                 most `graph.timeoutMs` of the configuration",
                self.label
            ));
        }
        match place {
            Some(place) => error.place(&place),
            None => error,
        }
    }

    /// The same for a caller who may not see everything.
    pub(super) fn seen_by(self, visible: &Visibility) -> Self {
        Self { question: self.question.seen_by(visible), ..self }
    }

    fn about(label: &str, query: &str, paths: &[String]) -> Self {
        Self::new(label, GraphQuery::new(query).param("paths", paths))
    }
}

/// The question of an invariant about a change. Its own limit of time is an option before the query.
pub(super) fn question(invariant: &Invariant, paths: &Map<String, Value>) -> GraphQuery {
    let mut params = invariant.params.clone();
    params.extend(paths.clone());
    let query = match invariant.timeout_ms {
        Some(limit) => format!("CYPHER timeoutMs={limit}\n{}", invariant.query),
        None => invariant.query.clone(),
    };
    GraphQuery { query, params, ..GraphQuery::default() }
}

/// A row by the names of its columns, with the hash that distinguishes it from others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) value: Value,
    pub(super) fingerprint: String,
}

/// The rows of an answer, each once, in an order that does not depend on the graph's.
pub(super) fn rows(answer: &GraphRows) -> BTreeMap<String, Row> {
    let row = |values: &Vec<Value>| {
        let fields: Map<String, Value> = answer.columns.iter().cloned().zip(values.iter().cloned()).collect();
        let value = Value::Object(fields);
        Row { fingerprint: canonical::hash_exact(value.clone()), value }
    };
    // By their text, so that a list of files is sorted by name.
    answer.rows.iter().map(row).map(|row| (row.value.to_string(), row)).collect()
}

/// Refuses an answer that the graph has cut off, where what is missing would matter.
pub(super) fn whole(answer: &GraphRows, label: &str) -> Result<(), ToolError> {
    if !answer.truncated {
        return Ok(());
    }
    let most = count(answer.rows.len(), "row");
    let message = format!("the answer to `{label}` has more than {most}, and the graph gives no more");
    Err(ToolError::new(Code::Budget, message)
        .detail("invariant", label)
        .help("narrow the query, so that it finds fewer rows"))
}

fn texts(answer: &GraphRows) -> impl Iterator<Item = Vec<&str>> {
    answer.rows.iter().map(|row| row.iter().filter_map(Value::as_str).collect())
}

impl Guardian {
    /// Asks about the files as they are, and as they would be with `changes`.
    pub(super) async fn ask_both(
        &self,
        changes: &[Change],
        asked: &[Asked],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let questions: Vec<GraphQuery> = asked.iter().map(|asked| asked.question.clone()).collect();
        let answers = match self.parts.graph.propose(changes, &questions).await {
            Ok(answers) => answers,
            Err(error) => return Err(self.whose(changes, asked, error).await),
        };
        if answers.len() == asked.len() {
            return Ok(answers);
        }
        let message = format!("the graph gave {} answers to {} questions", answers.len(), asked.len());
        Err(ToolError::new(Code::Internal, message))
    }

    /// Asks about the files as they are.
    pub(super) async fn ask(&self, asked: &[Asked]) -> Result<Vec<GraphRows>, ToolError> {
        Ok(self.ask_both(&[], asked).await?.into_iter().map(|(now, _)| now).collect())
    }

    /// Adds to an error which of the questions it is about.
    async fn whose(&self, changes: &[Change], asked: &[Asked], error: ToolError) -> ToolError {
        let at = error.details.get(QUESTION).and_then(Value::as_u64);
        if let Some(asked) = at.and_then(|at| asked.get(usize::try_from(at).ok()?)) {
            return asked.named_in(error);
        }
        if error.code != Code::Validation {
            return error;
        }
        for asked in asked {
            let question = std::slice::from_ref(&asked.question);
            if let Err(error) = self.parts.graph.propose(changes, question).await {
                return asked.named_in(error);
            }
        }
        error
    }

    /// Which of the paths are files in the graph.
    pub(super) async fn known(&self, paths: &BTreeSet<RelativePath>) -> Result<BTreeSet<String>, ToolError> {
        const QUERY: &str = "MATCH (f:File) WHERE f.path IN $paths RETURN f.path AS path";
        let mut known = BTreeSet::new();
        for answer in self.ask(&pieces("files in the graph", QUERY, paths)).await? {
            whole(&answer, "files in the graph")?;
            known.extend(texts(&answer).filter_map(|row| row.first().map(|path| (*path).to_owned())));
        }
        Ok(known)
    }

    /// Who imports each of the paths, with `changes` made, as far as it may be seen.
    pub(super) async fn importers(
        &self,
        changes: &[Change],
        paths: &BTreeSet<RelativePath>,
        visible: &Visibility,
    ) -> Result<BTreeMap<String, BTreeSet<String>>, ToolError> {
        const QUERY: &str = "MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path IN $paths \
                             RETURN DISTINCT b.path AS imported, a.path AS importer";
        let mut importers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let asked: Vec<Asked> =
            pieces("importers", QUERY, paths).into_iter().map(|asked| asked.seen_by(visible)).collect();
        for (_, answer) in self.ask_both(changes, &asked).await? {
            // An importer that is not named here would import what no longer exists.
            whole(&answer, "importers").map_err(|error| {
                error.help("remove fewer files in one plan, or change those that import them first")
            })?;
            for row in texts(&answer) {
                if let [imported, importer] = row.as_slice()
                    && imported != importer
                {
                    importers.entry((*imported).to_owned()).or_default().insert((*importer).to_owned());
                }
            }
        }
        Ok(importers)
    }
}

fn pieces(label: &str, query: &str, paths: &BTreeSet<RelativePath>) -> Vec<Asked> {
    let paths: Vec<String> = paths.iter().map(|path| path.as_str().to_owned()).collect();
    paths.chunks(PATHS_A_QUESTION).map(|piece| Asked::about(label, query, piece)).collect()
}
