//! Reading the chain: verify, the newest entries, a session's history. Nothing here writes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use serde::Deserialize;
use serde_json::Value;
use tgp_contract::{Actor, Effect, Execution, FileEffect, GateDecision, Target, ToolError};

use crate::anchor::{Anchor, Head};
use crate::entry::{is_whole, key};
use crate::failure::{ErrorContext, Failure};
use crate::store::{self, ReadMode};
use crate::verify::{self, COLUMNS, StoredRow};

/// Entries that are held in memory at once; to read more, export them.
pub const MAX_TAIL: usize = 1000;
/// A reader waits only where a file is being set up.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How often a read is repeated when the anchor moved during it.
const MAX_LOOKS: usize = 5;

/// Reads an audit without writing to it.
pub struct AuditReader {
    connection: Connection,
    path: PathBuf,
    anchor: Arc<dyn Anchor>,
}

impl fmt::Debug for AuditReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditReader").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a whole verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    pub chain: String,
    pub entries: u64,
    pub head: Head,
    /// The newest entry that the anchor knows. Those after it could be cut off without a trace.
    pub anchored: Option<u64>,
}

/// Which entries are wanted. A field that is `None` admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// A session and those below it: `cli` admits `cli/build` as well.
    pub session: Option<String>,
    /// The tool's own name.
    pub tool: Option<String>,
    /// One of [`crate::VERDICTS`].
    pub verdict: Option<String>,
    /// Milliseconds since the epoch, inclusive.
    pub since_ms: Option<u64>,
    /// Milliseconds since the epoch, exclusive.
    pub until_ms: Option<u64>,
    /// Only entries that follow this one.
    pub after: Option<u64>,
}

/// One entry with its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub sequence: u64,
    pub hash: String,
    pub body: Value,
}

/// A call of a session's past, as rules over sequences see it: redacted, long texts cut.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    pub tool: String,
    pub effect: Option<Effect>,
    pub arguments: Value,
    pub targets: Vec<Target>,
    /// What it changed.
    pub files: Vec<FileEffect>,
    /// How many changed files the entry does not name.
    pub files_omitted: u64,
    /// Who made it; `None` when the entry does not say.
    pub actor: Option<Actor>,
    /// Whether the arguments are as the call had them: not cut, not redacted, not left out.
    pub arguments_whole: bool,
    /// The same of the targets.
    pub targets_whole: bool,
    /// Whether it passed the gates, so that it may have had an effect.
    pub ran: bool,
}

impl AuditReader {
    /// # Errors
    /// `EINTEGRITY` when there is no database although the anchor knows of one, `ENOTFOUND` when there is neither,
    /// `EINTERNAL` when it cannot be read.
    pub fn open(path: impl Into<PathBuf>, anchor: Arc<dyn Anchor>) -> Result<Self, ToolError> {
        Self::open_as(path.into(), anchor, ReadMode::Shared)
    }

    /// The same without a change to any file, for the audit of another user or on a disk that cannot be written.
    ///
    /// # Errors
    /// As [`AuditReader::open`].
    pub fn open_unchanged(path: impl Into<PathBuf>, anchor: Arc<dyn Anchor>) -> Result<Self, ToolError> {
        Self::open_as(path.into(), anchor, ReadMode::Unchanged)
    }

    fn open_as(path: PathBuf, anchor: Arc<dyn Anchor>, mode: ReadMode) -> Result<Self, ToolError> {
        let anchored = verify::load(anchor.as_ref())?;
        if !path.try_exists().doing("cannot look at", &path)? {
            return Err(match anchored {
                Some(anchored) => verify::vanished(&anchored, &path).into(),
                None => ToolError::new(tgp_contract::Code::NotFound, "nothing has been recorded yet")
                    .help("every tool call leaves an entry; make one"),
            });
        }
        let connection = store::open_to_read(&path, mode, LOCK_WAIT)?;
        Ok(Self { connection, path, anchor })
    }

    /// Verifies the whole chain, entry by entry, against itself and the anchor.
    ///
    /// # Errors
    /// `EINTEGRITY` with the first bad entry, or what kept the chain from being read.
    pub fn verify(&self) -> Result<VerifyReport, ToolError> {
        let mut seen = verify::load(self.anchor.as_ref())?;
        let mut looks = 1;
        loop {
            // The anchor first: entries are written before it is moved.
            match self.verify_against(seen.as_ref()) {
                Ok(report) => return Ok(report),
                Err(failure) => {
                    let now = verify::load(self.anchor.as_ref())?;
                    if now == seen || looks >= MAX_LOOKS {
                        return Err(failure.into());
                    }
                    seen = now;
                    looks += 1;
                }
            }
        }
    }

    fn verify_against(&self, anchored: Option<&Head>) -> Result<VerifyReport, Failure> {
        let path = self.path.as_path();
        // One transaction, so that all of it is read as it was at one moment.
        let snapshot = self.connection.unchecked_transaction().doing("cannot read", path)?;
        if store::is_empty(&snapshot).doing("cannot read", path)? {
            return Err(match anchored {
                Some(anchored) => verify::vanished(anchored, path),
                None => Failure::Foreign("the database is empty".to_owned()),
            });
        }
        store::check_schema(&snapshot, path)?;
        let chain = store::chain(&snapshot, path)?;
        let (head, entries) = verify::whole(&snapshot, &chain, anchored, path)?;
        let anchored = anchored.map(|anchored| anchored.sequence);
        Ok(VerifyReport { chain: chain.id, entries, head, anchored })
    }

    /// The newest `count` entries that `filter` admits, oldest first; at most [`MAX_TAIL`].
    ///
    /// # Errors
    /// `EINTEGRITY` when one of them is not what was written, `EINTERNAL` when they cannot be read.
    pub fn tail(&self, filter: &AuditFilter, count: usize) -> Result<Vec<AuditEntry>, ToolError> {
        let mut entries = Vec::new();
        self.visit(filter, Order::NewestFirst, count.min(MAX_TAIL), &mut |stored, body| {
            entries.push(AuditEntry { sequence: stored.sequence, hash: stored.hash.clone(), body });
            Ok(())
        })?;
        entries.reverse();
        Ok(entries)
    }

    /// The newest entry that `filter` admits and `is_wanted`, however long ago it was written.
    ///
    /// # Errors
    /// As [`AuditReader::tail`].
    pub fn newest(
        &self,
        filter: &AuditFilter,
        is_wanted: &dyn Fn(&Value) -> bool,
    ) -> Result<Option<AuditEntry>, ToolError> {
        let mut newest = None;
        self.visit(filter, Order::OldestFirst, usize::MAX, &mut |stored, body| {
            if is_wanted(&body) {
                newest = Some(AuditEntry { sequence: stored.sequence, hash: stored.hash.clone(), body });
            }
            Ok(())
        })?;
        Ok(newest)
    }

    /// The first and the last entry of a session.
    ///
    /// # Errors
    /// `EINTERNAL` when they cannot be read.
    pub fn range(&self, session: &str) -> Result<Option<(u64, u64)>, ToolError> {
        let path: &Path = &self.path;
        store::check_schema(&self.connection, path)?;
        let sql = "SELECT min(sequence), max(sequence) FROM entries WHERE session = ?";
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let found = self.connection.query_row(sql, [key(session)], read).doing("cannot read", path)?;
        let number = |sequence: i64| u64::try_from(sequence).unwrap_or_default();
        Ok(found.0.map(number).zip(found.1.map(number)))
    }

    /// The newest calls of a session, oldest first; at most `limit` and [`MAX_TAIL`].
    ///
    /// # Errors
    /// As [`AuditReader::tail`].
    pub fn history(&self, session: &str, limit: usize) -> Result<Vec<RecordedCall>, ToolError> {
        let filter = AuditFilter { session: Some(session.to_owned()), ..AuditFilter::default() };
        let entries = self.tail(&filter, limit)?;
        Ok(entries.into_iter().filter_map(|entry| past_call(entry.body)).collect())
    }

    /// Shows every call of a session, and of the sessions below it, with the number of its entry: those after entry
    /// `after`, oldest first and one at a time. Returns whether these were all: after `limit` entries it ends.
    ///
    /// # Errors
    /// As [`AuditReader::tail`].
    pub fn each_call(
        &self,
        session: &str,
        since_ms: Option<u64>,
        after: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, RecordedCall),
    ) -> Result<bool, ToolError> {
        let filter = AuditFilter {
            session: Some(session.to_owned()),
            since_ms,
            after: Some(after),
            ..AuditFilter::default()
        };
        let mut seen = 0_usize;
        self.visit(&filter, Order::OldestFirst, limit.saturating_add(1), &mut |stored, body| {
            seen += 1;
            if seen <= limit
                && let Some(call) = past_call(body)
            {
                each(stored.sequence, call);
            }
            Ok(())
        })?;
        Ok(seen <= limit)
    }

    /// Shows every entry, oldest first and one at a time.
    ///
    /// # Errors
    /// As [`AuditReader::tail`].
    pub fn each_entry(&self, each: &mut dyn FnMut(AuditEntry)) -> Result<(), ToolError> {
        self.visit(&AuditFilter::default(), Order::OldestFirst, usize::MAX, &mut |stored, body| {
            each(AuditEntry { sequence: stored.sequence, hash: stored.hash.clone(), body });
            Ok(())
        })?;
        Ok(())
    }

    /// Shows entries one at a time, each verified by itself.
    pub(crate) fn visit(
        &self,
        filter: &AuditFilter,
        order: Order,
        limit: usize,
        visitor: &mut dyn FnMut(&StoredRow, Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let path: &Path = &self.path;
        store::check_schema(&self.connection, path)?;
        let (sql, values) = query(filter, order, limit);
        let mut statement = self.connection.prepare(&sql).doing("cannot read", path)?;
        let mut rows = statement.query(params_from_iter(values)).doing("cannot read", path)?;
        while let Some(row) = rows.next().doing("cannot read", path)? {
            let stored = StoredRow::read(row)?;
            let body = stored.parse()?;
            visitor(&stored, body)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

fn query(filter: &AuditFilter, order: Order, limit: usize) -> (String, Vec<SqlValue>) {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    if let Some(session) = filter.session.as_deref().map(key) {
        // The numbers are found first, so that long bodies are read in their order and never sorted. `0` follows `/`.
        conditions.push(
            "sequence IN (SELECT sequence FROM entries WHERE session = ? OR (session >= ? AND session < ?))",
        );
        let (first, end) = (format!("{session}/"), format!("{session}0"));
        values.extend([session, first, end].map(SqlValue::Text));
    }
    let mut add = |condition: &'static str, value: Option<SqlValue>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    };
    let number = |number: u64| SqlValue::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let name = |name: &str| SqlValue::Text(key(name));
    add("tool = ?", filter.tool.as_deref().map(name));
    add("verdict = ?", filter.verdict.clone().map(SqlValue::Text));
    add("time_ms >= ?", filter.since_ms.map(number));
    add("time_ms < ?", filter.until_ms.map(number));
    add("sequence > ?", filter.after.map(number));
    let condition = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    let direction = match order {
        Order::OldestFirst => "ASC",
        Order::NewestFirst => "DESC",
    };
    values.push(SqlValue::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    let sql =
        format!("SELECT {COLUMNS} FROM entries WHERE {condition} ORDER BY sequence {direction} LIMIT ?");
    (sql, values)
}

fn past_call(mut body: Value) -> Option<RecordedCall> {
    if body.get("kind").and_then(Value::as_str) != Some("call") {
        return None;
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ran = has_started(&body);
    let tool = text("tool");
    let files = body.pointer_mut("/outcome/files").map(Value::take).unwrap_or_default();
    let files_omitted = body.pointer("/outcome/filesOmitted/omitted/count").and_then(Value::as_u64);
    let whole = |name: &str| body.get(name).filter(|part| is_whole(part));
    let (arguments_whole, targets_whole) = (whole("arguments").is_some(), whole("targets").is_some());
    let actor = whole("actor").cloned();
    let mut take = |name: &str| body.get_mut(name).map(Value::take).unwrap_or_default();
    Some(RecordedCall {
        tool,
        effect: serde_json::from_value(take("effect")).unwrap_or_default(),
        arguments: take("arguments"),
        // Targets that were too many for their entry are known by their hash only.
        targets: serde_json::from_value(take("targets")).unwrap_or_default(),
        files: serde_json::from_value(files).unwrap_or_default(),
        files_omitted: files_omitted.unwrap_or_default(),
        actor: actor.and_then(|actor| serde_json::from_value(actor).ok()),
        arguments_whole,
        targets_whole,
        ran,
    })
}

/// Whether the tool of a recorded call began to run.
fn has_started(body: &Value) -> bool {
    match body.get("execution").map(Execution::deserialize) {
        Some(Ok(execution)) => execution.has_started(),
        // An entry that claims what this version does not know counts as one that ran: counting rules stay strict.
        Some(Err(_)) => true,
        None => has_started_v1(body),
    }
}

/// The same for an entry of format 1, which has no `execution`: as its verdicts say.
fn has_started_v1(body: &Value) -> bool {
    let decisions: Vec<&str> = body
        .get("verdicts")
        .and_then(Value::as_array)
        .map(|verdicts| verdicts.iter().filter_map(|verdict| verdict.get("verdict")?.as_str()).collect())
        .unwrap_or_default();
    let has = |decision: GateDecision| decisions.contains(&decision.as_str());
    match body.get("verdict").and_then(Value::as_str) {
        Some("allowed" | "approved") => true,
        // It may have been running when its caller went away.
        Some("cancelled") => {
            !decisions.is_empty()
                && !has(GateDecision::Deny)
                && !has(GateDecision::Refused)
                && (!has(GateDecision::Ask) || has(GateDecision::Approved))
        }
        _ => false,
    }
}
