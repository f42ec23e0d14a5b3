//! One invariant, asked on its own: what it finds, how long that takes, how the graph answers it, and whether it is about
//! anything.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};
use tgp_contract::{Code, GraphQuery, Severity, ToolError, Visibility};

use crate::halt::unaccepted;
use crate::invariants::{OWN_PARAMETERS, Probe};
use crate::judge::no_change;
use crate::questions::{Asked, question, rows};
use crate::undecided::UndecidedInvariant;
use crate::{Expect, Guardian, Invariant};

/// What a trial of an invariant has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvariantTrial {
    pub invariant: String,
    pub severity: Severity,
    pub expect: Expect,
    pub verdict: InvariantVerdict,
    /// Whether it holds now, or what breaks it was accepted.
    pub holds: bool,
    /// The files that keep it undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<UndecidedInvariant>,
    /// Rows of its query, by column; the first few of them.
    pub rows: Vec<Value>,
    pub total: usize,
    /// Whether there are more rows than the graph gives.
    pub truncated: bool,
    /// How long the query took.
    pub milliseconds: u64,
    /// Its own limit of time; the graph's where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The query that was asked, which a rule without a query has too.
    pub query: String,
    /// The steps of the query, as EXPLAIN gives them; empty where the graph does not give them.
    pub plan: Vec<Value>,
    /// Parts of it that nothing in the graph matches.
    pub idle: Vec<String>,
}

/// What is known of an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvariantVerdict {
    Holds,
    Broken,
    /// Its answer could depend on a file that was not read completely.
    Undecided,
}

/// An invariant of which a part matches nothing, so that it may hold whatever happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdlePattern {
    pub invariant: String,
    /// The node with its conditions, or the folder or file of a rule without a query.
    pub pattern: String,
}

impl IdlePattern {
    /// The warning, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("`{}`: nothing in the graph matches {}", self.invariant, self.pattern)
    }
}

/// Rows of a trial that are shown.
const MAX_ROWS_SHOWN: usize = 20;

impl Guardian {
    /// Asks one invariant about the files as they are. Nothing is written down, and nothing is halted.
    ///
    /// # Errors
    /// `ENOTFOUND` for a name that no invariant has, and when the graph cannot answer.
    pub async fn try_invariant(&self, name: &str) -> Result<InvariantTrial, ToolError> {
        let invariants = self.invariants()?;
        let Some(invariant) = invariants.named(name) else {
            let error = ToolError::new(Code::NotFound, format!("there is no invariant `{name}`"));
            let names: Vec<&str> = invariants.iter().map(|one| one.name.as_str()).collect();
            return Err(match tgp_text::nearest(name, names.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None if names.is_empty() => error.help("write one in `.sage/invariants.yml`"),
                None => error.help(format!("there are: {}", names.join(", "))),
            });
        };
        // Reads what has changed in the files, which is not the time of the invariant.
        let idle = self.idle_patterns(std::slice::from_ref(invariant)).await?;
        let asked = [Asked::of(invariant, question(invariant, &no_change()))];
        let begin = Instant::now();
        let answers = self.ask(&asked).await?;
        let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answer = answers.into_iter().next().unwrap_or_default();
        let memory = self.remember_seen_by(&Visibility::everything()).await?;
        let mut known = self.broken_now(std::slice::from_ref(invariant), &invariants).await?;
        let is_broken = known.broken.into_iter().any(|broken| unaccepted(broken, &memory).is_some());
        let undecided = known.undecided.pop().filter(|_| !is_broken);
        let verdict = match (is_broken, &undecided) {
            (true, _) => InvariantVerdict::Broken,
            (false, Some(_)) => InvariantVerdict::Undecided,
            (false, None) => InvariantVerdict::Holds,
        };
        let found = rows(&answer);
        Ok(InvariantTrial {
            invariant: invariant.name.clone(),
            severity: invariant.severity,
            expect: invariant.expect,
            verdict,
            holds: verdict == InvariantVerdict::Holds,
            undecided,
            total: found.len(),
            rows: found.into_values().take(MAX_ROWS_SHOWN).map(|row| row.value).collect(),
            truncated: answer.truncated,
            milliseconds,
            timeout_ms: invariant.timeout_ms,
            query: invariant.query.trim().to_owned(),
            plan: self.plan_of(invariant).await,
            idle: idle.into_iter().map(|idle| idle.pattern).collect(),
        })
    }

    /// The parts of invariants that nothing matches: a mistyped folder, a name that is gone. An invariant that needs rows is
    /// broken then, and needs no warning.
    ///
    /// # Errors
    /// When the invariants cannot be read, or the graph cannot answer.
    pub async fn idle_invariants(&self) -> Result<Vec<IdlePattern>, ToolError> {
        let invariants: Vec<Invariant> = self.invariants()?.iter().cloned().collect();
        self.idle_patterns(&invariants).await
    }

    async fn idle_patterns(&self, invariants: &[Invariant]) -> Result<Vec<IdlePattern>, ToolError> {
        let mut asked = Vec::new();
        let mut patterns = Vec::new();
        for invariant in invariants.iter().filter(|invariant| invariant.expect != Expect::Rows) {
            for Probe { shown, query } in probes(invariant) {
                let question =
                    GraphQuery { query, params: invariant.params.clone(), ..GraphQuery::default() };
                asked.push(Asked::new(&invariant.name, question));
                patterns.push(IdlePattern { invariant: invariant.name.clone(), pattern: shown });
            }
        }
        let answers = self.ask(&asked).await?;
        let idle = patterns.into_iter().zip(answers).filter(|(_, answer)| answer.rows.is_empty());
        Ok(idle.map(|(pattern, _)| pattern).collect())
    }

    /// The steps of an invariant's query. A graph that cannot explain has none.
    async fn plan_of(&self, invariant: &Invariant) -> Vec<Value> {
        let query = format!("EXPLAIN {}", invariant.query);
        let question = GraphQuery { query, params: Map::new(), ..GraphQuery::default() };
        let Ok(answers) = self.ask(&[Asked::new(&invariant.name, question)]).await else {
            return Vec::new();
        };
        let step = |row: &Vec<Value>, columns: &[String]| {
            Value::Object(columns.iter().cloned().zip(row.iter().cloned()).collect())
        };
        let plans =
            answers.iter().flat_map(|answer| answer.rows.iter().map(|row| step(row, &answer.columns)));
        plans.collect()
    }
}

/// What an invariant is about. A query that cannot be read is refused where it is asked, and not here.
fn probes(invariant: &Invariant) -> Vec<Probe> {
    if let Some(probes) = &invariant.probes {
        return probes.clone();
    }
    let found = tgp_graph::pattern_probes(&invariant.query, &OWN_PARAMETERS).unwrap_or_default();
    found.into_iter().map(|probe| Probe { shown: probe.shown, query: probe.query }).collect()
}
