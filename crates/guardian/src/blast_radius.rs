//! Who would notice a change: importers, callers, and the tests that reach it.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::{Code, GraphQuery, GraphRows, RelativePath, ToolError, Visibility};

use crate::Guardian;
use crate::questions::Asked;

/// Files whose radius is asked for at once.
const MAX_PATHS: usize = 1_000;
/// Entries of a list that are named; the total says how many there are.
const MAX_LISTED: usize = 50;

const IMPORTERS: &str = "MATCH (b:File)<-[:IMPORTS]-(a:File) \
    WHERE b.path IN $paths AND NOT a.path IN $paths RETURN DISTINCT a.path AS importer";
const CALLERS: &str = "MATCH (f:File)-[:DEFINES]->(s:Symbol)<-[:CALLS]-(c) \
    WHERE f.path IN $paths AND NOT c.path IN $paths \
    RETURN DISTINCT c.path AS path, c.qualifiedName AS caller, s.path AS owner, s.qualifiedName AS callee";
/// Four steps from a test to what it tests: beyond that nearly everything reaches everything.
const TESTS: &str = "MATCH (b:File)<-[:IMPORTS*1..4]-(t:File) \
    WHERE b.path IN $paths AND t.test = true RETURN DISTINCT t.path AS test";
const OWN_TESTS: &str =
    "MATCH (t:File) WHERE t.path IN $paths AND t.test = true RETURN DISTINCT t.path AS test";

/// The first of a list, and how long it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TruncatedList<T> {
    pub first: Vec<T>,
    pub total: usize,
    /// Whether there are even more than `total`, because the graph has cut its answer off.
    #[serde(skip_serializing_if = "is_false")]
    pub more: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A place that calls something of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Caller {
    pub path: String,
    /// The calling symbol; none for code at the top of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The symbol that is called, with its file.
    pub calls: String,
}

/// Who uses some files, as far as the graph shows. Calls are found with best effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlastRadius {
    pub importers: TruncatedList<String>,
    pub callers: TruncatedList<Caller>,
    pub tests: TruncatedList<String>,
}

impl BlastRadius {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.importers.total == 0 && self.callers.total == 0 && self.tests.total == 0
    }
}

impl Guardian {
    /// Who uses the files at `paths`, other than themselves, as far as it may be seen.
    ///
    /// # Errors
    /// A violation of the jail for a path outside the project, `EVALIDATION` for too many, and what the graph says.
    pub async fn blast_radius(
        &self,
        paths: &[String],
        visible: &Visibility,
    ) -> Result<BlastRadius, ToolError> {
        if paths.len() > MAX_PATHS {
            let message = format!("the radius of {} files was asked for, at most {MAX_PATHS}", paths.len());
            return Err(ToolError::new(Code::Validation, message).help("ask for fewer files"));
        }
        let paths: BTreeSet<String> = paths
            .iter()
            .map(|path| Ok(RelativePath::new(path)?.as_str().to_owned()))
            .collect::<Result<_, ToolError>>()?;
        let asked: Vec<Asked> =
            [("importers", IMPORTERS), ("callers", CALLERS), ("tests", TESTS), ("tests", OWN_TESTS)]
                .map(|(label, query)| {
                    Asked::new(label, GraphQuery::new(query).param("paths", json!(paths)).seen_by(visible))
                })
                .into();
        let answers = self.ask(&asked).await?;
        let [importers, callers, tests, own_tests] = answers.as_slice() else {
            return Err(ToolError::new(Code::Internal, "the graph has not answered every question"));
        };
        Ok(BlastRadius {
            importers: listing([importers], first_text),
            callers: listing([callers], caller),
            tests: listing([tests, own_tests], first_text),
        })
    }
}

fn listing<'a, T: Ord>(
    answers: impl IntoIterator<Item = &'a GraphRows>,
    read: impl Fn(&[Value]) -> Option<T>,
) -> TruncatedList<T> {
    let (mut all, mut more) = (BTreeSet::new(), false);
    for answer in answers {
        more |= answer.truncated;
        all.extend(answer.rows.iter().filter_map(|row| read(row)));
    }
    let total = all.len();
    TruncatedList { first: all.into_iter().take(MAX_LISTED).collect(), total, more }
}

fn first_text(row: &[Value]) -> Option<String> {
    row.first().and_then(Value::as_str).map(str::to_owned)
}

fn caller(row: &[Value]) -> Option<Caller> {
    let [path, symbol, owner, callee] = row else { return None };
    Some(Caller {
        path: path.as_str()?.to_owned(),
        symbol: symbol.as_str().map(str::to_owned),
        calls: format!("{} ({})", callee.as_str()?, owner.as_str()?),
    })
}
