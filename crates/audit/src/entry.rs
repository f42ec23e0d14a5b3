//! From a record to the bytes that are hashed and stored.

use serde_json::{Map, Value, json};
use tgp_contract::canonical::MAX_SAFE_INTEGER;
use tgp_contract::{CallRecord, FileEffect, GateVerdict, ToolResult, canonical};

use crate::anchor::Head;
use crate::redact::Redaction;
use crate::restart::Restarter;

/// The format of an entry. A reader that meets another number does not understand the fields, but can still verify.
///
/// | version | since |
/// | --- | --- |
/// | 1 | 0.1.0 |
/// | 2 | `execution`; targets `upstream_tool`, `secret` and `host_tool` |
const VERSION: u64 = 2;
/// The hash before the first entry.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Beyond this a text is a document, and its beginning with a hash says enough.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// The start of the note where a text was cut.
const CUT: &str = "… [cut: ";
/// The field that replaces a value that was left out.
const OMITTED: &str = "omitted";
/// How much of such a text is kept.
const KEPT_TEXT_BYTES: usize = 2 << 10;
/// Names and ids are words.
const MAX_WORD_BYTES: usize = 256;
/// What an entry may take; parts of a larger one are replaced by their hashes, the arguments first.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// Room for the fields that bind an entry to its place in the chain.
const PLACE_BYTES: usize = 512;
/// Gates are a handful.
const MAX_VERDICTS: usize = 64;
/// Files that an entry names one by one; the others are counted and hashed together.
const MAX_FILES: usize = 200;

/// The words that an entry's verdict can be.
///
/// | verdict | the call |
/// | --- | --- |
/// | `allowed` | passed all gates without a question |
/// | `approved` | passed all gates, and a person agreed to it |
/// | `denied` | a gate denied it |
/// | `refused` | nobody agreed to it |
/// | `invalid` | failed before any gate: an unknown tool or arguments that do not fit |
/// | `cancelled` | was dropped by its caller before it ended |
/// | `restarted` | is none: a person began a new chain |
pub const VERDICTS: [&str; 7] =
    ["allowed", "approved", "denied", "refused", "invalid", "cancelled", "restarted"];

/// What an entry can be found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) time_ms: u64,
    pub(crate) session: String,
    pub(crate) tool: String,
    pub(crate) verdict: String,
}

/// An entry that has no place in the chain yet.
#[derive(Debug)]
pub(crate) struct UnchainedEntry {
    pub(crate) columns: Columns,
    fields: Map<String, Value>,
}

/// An entry with its place.
#[derive(Debug)]
pub(crate) struct ChainedEntry {
    pub(crate) body: String,
    pub(crate) hash: String,
}

impl UnchainedEntry {
    pub(crate) fn call(record: CallRecord, redaction: &Redaction) -> Self {
        let verdict = record.verdict().as_str();
        let asked = word(&redaction.text(&record.call.tool));
        let tool = record.tool.as_deref().map_or_else(|| asked.clone(), word);
        let columns = Columns {
            time_ms: record.started_ms.min(MAX_SAFE_INTEGER),
            session: key(&record.context.session),
            tool,
            verdict: verdict.to_owned(),
        };
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        put("kind", json!("call"));
        put("callId", json!(word(&redaction.text(&record.call.id))));
        if asked != columns.tool {
            put("alias", json!(asked));
        }
        put("effect", json!(record.effect));
        put("actor", redaction.value(json!(record.context.actor)));
        put("consent", json!(record.context.consent));
        put("depth", json!(record.context.depth));
        put("dryRun", json!(record.context.dry_run));
        put("arguments", redaction.value(record.call.arguments));
        put("targets", redaction.value(json!(record.targets)));
        put("verdicts", verdicts(&record.verdicts, redaction));
        put("execution", json!(record.execution));
        let (is_ok, code, message) = match &record.result {
            ToolResult::Done(_) => (true, None, None),
            ToolResult::Failed(error) => {
                (false, Some(error.code.as_str()), Some(redaction.text(&error.message)))
            }
        };
        let (files, omitted) = files(&record.files, redaction);
        let mut outcome = json!({
            "ok": is_ok,
            "errorCode": code,
            "message": message,
            "files": files,
            "rowsChanged": record.rows_changed,
            "exitCode": record.exit_code,
            "durationUs": record.duration_us,
        });
        if let (Some(omitted), Some(outcome)) = (omitted, outcome.as_object_mut()) {
            outcome.insert("filesOmitted".to_owned(), omitted);
        }
        put("outcome", outcome);
        Self { columns, fields }.fitted()
    }

    /// The first entry of a chain that follows another.
    pub(crate) fn restart(
        time_ms: u64,
        restarter: &Restarter<'_>,
        reason: &str,
        previous: Value,
        redaction: &Redaction,
    ) -> Self {
        let columns = Columns {
            time_ms: time_ms.min(MAX_SAFE_INTEGER),
            session: String::new(),
            tool: "audit_restart".to_owned(),
            verdict: "restarted".to_owned(),
        };
        let mut fields = Map::new();
        fields.insert("kind".to_owned(), json!("restart"));
        fields.insert("actor".to_owned(), redaction.value(json!(restarter.actor)));
        fields.insert("user".to_owned(), redaction.value(restarter.user.clone()));
        fields.insert("reason".to_owned(), json!(redaction.text(reason)));
        fields.insert("previousChain".to_owned(), redaction.value(previous));
        Self { columns, fields }.fitted()
    }

    /// Makes every part canonical and the whole small enough. Whatever a record holds, something of it is kept.
    fn fitted(mut self) -> Self {
        for (_, value) in &mut self.fields {
            shorten(value);
        }
        // Canonical JSON writes `1e20` in 21 digits, but nothing grows more than that.
        let quick = serde_json::to_string(&self.fields).map_or(usize::MAX, |text| text.len());
        if quick <= MAX_ENTRY_BYTES / 8 {
            return self;
        }
        let too_large = |fields: &Map<String, Value>| {
            canonical::to_string(&Value::Object(fields.clone()))
                .map_or(usize::MAX, |text| text.len() + PLACE_BYTES)
                > MAX_ENTRY_BYTES
        };
        for part in ["arguments", "targets", "verdicts", "outcome", "previousChain", "actor"] {
            if !too_large(&self.fields) {
                break;
            }
            let Some(value) = self.fields.get_mut(part) else { continue };
            match (part, value.as_object_mut()) {
                // The files take the room; how the call ended is one line.
                ("outcome", Some(outcome)) => {
                    let files = outcome.remove("files").unwrap_or_default();
                    outcome.insert("files".to_owned(), json!([]));
                    outcome.insert("filesOmitted".to_owned(), digest(&files));
                }
                _ => *value = digest(value),
            }
        }
        self
    }

    /// The entry as the one after `before`. Its bytes are final: they are what is hashed and stored.
    pub(crate) fn placed(&self, before: &Head) -> Result<ChainedEntry, canonical::CanonicalError> {
        let mut place = Map::new();
        let mut put = |key: &str, value: Value| place.insert(key.to_owned(), value);
        put("version", json!(VERSION));
        put("chain", json!(before.chain));
        put("sequence", json!(before.sequence + 1));
        put("previous", json!(before.hash));
        put("time", json!(self.columns.time_ms));
        put("session", json!(self.columns.session));
        put("tool", json!(self.columns.tool));
        put("verdict", json!(self.columns.verdict));
        // The place wins over a field of the same name.
        let fields = self.fields.iter().filter(|(name, _)| !place.contains_key(*name)).chain(&place);
        // A call whose details have no canonical form still has happened.
        let body = canonical::object_to_string(fields.map(|(name, value)| (name.as_str(), value)))
            .or_else(|_| canonical::to_string(&Value::Object(place.clone())))?;
        let hash = canonical::sha256_hex(body.as_bytes());
        Ok(ChainedEntry { body, hash })
    }
}

/// The name of a session or tool as entries hold it. Queries have to ask for the same.
pub(crate) fn key(name: &str) -> String {
    word(name)
}

fn verdicts(verdicts: &[GateVerdict], redaction: &Redaction) -> Value {
    let shown = |verdict: &GateVerdict| {
        json!({
            "stage": verdict.stage,
            "gate": word(&verdict.gate),
            "verdict": verdict.verdict,
            "rule": redaction.text(&verdict.rule),
        })
    };
    Value::Array(verdicts.iter().take(MAX_VERDICTS).map(shown).collect())
}

fn files(files: &[FileEffect], redaction: &Redaction) -> (Value, Option<Value>) {
    let shown = |file: &FileEffect| {
        let mut shown = json!({
            "root": file.root,
            "path": redaction.text(file.path.as_str()),
            "before": file.before,
            "after": file.after,
        });
        if let Some(fields) = shown.as_object_mut() {
            if let Some(executable) = file.executable {
                fields.insert("executable".to_owned(), json!(executable));
            }
            if let Some(event) = &file.event {
                fields.insert("event".to_owned(), json!(event));
            }
        }
        shown
    };
    let kept = Value::Array(files.iter().take(MAX_FILES).map(shown).collect());
    let rest: Vec<Value> = files.iter().skip(MAX_FILES).map(shown).collect();
    let omitted = (!rest.is_empty()).then(|| digest(&Value::Array(rest)));
    (kept, omitted)
}

/// What replaces a value that is too large, or that has no canonical form.
fn digest(value: &Value) -> Value {
    let text = canonical::to_string(value).unwrap_or_else(|_| value.to_string());
    let count = value.as_array().map(Vec::len);
    json!({ OMITTED: { "bytes": text.len(), "count": count, "sha256": canonical::sha256_hex(text.as_bytes()) } })
}

/// Whether nothing of a value was cut, redacted or left out. A caller who writes the marks itself is believed: what is
/// missing is taken for the worst.
#[must_use]
pub fn is_whole(value: &Value) -> bool {
    let is_mark = |text: &str| text.contains(CUT) || Redaction::is_mark(text);
    match value {
        Value::String(text) => !is_mark(text),
        Value::Array(items) => items.iter().all(is_whole),
        Value::Object(fields) => {
            !fields.contains_key(OMITTED)
                && fields.iter().all(|(name, value)| !is_mark(name) && is_whole(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Cuts texts, and writes integers that canonical JSON would round as texts. The value is not a deeper than redaction
/// left it.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if text.len() > MAX_TEXT_BYTES {
                *text = cut(text, KEPT_TEXT_BYTES);
            }
        }
        Value::Number(number) if !number.is_f64() => {
            let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64()).unwrap_or(u64::MAX);
            if size > MAX_SAFE_INTEGER {
                *value = Value::String(number.to_string());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Number(_) | Value::Null | Value::Bool(_) => {}
    }
}

/// A short text as it is, a long one by its beginning, length and hash.
fn word(text: &str) -> String {
    if text.len() > MAX_WORD_BYTES { cut(text, MAX_WORD_BYTES / 2) } else { text.to_owned() }
}

fn cut(text: &str, kept: usize) -> String {
    let head = tgp_text::head(text, kept);
    format!("{head}{CUT}{} bytes, sha256 {}]", text.len(), canonical::sha256_hex(text.as_bytes()))
}
