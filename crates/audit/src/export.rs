//! The chain as lines of JSON, which can be verified again, or as a table for people.

use std::io::Write;

use serde_json::Value;
use tgp_contract::ToolError;

use crate::failure::Failure;
use crate::reader::{AuditFilter, AuditReader, Order};
use crate::verify::StoredRow;

/// How entries are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// One `{"body":…,"hash":…}` a line; the hash is that of the body's very bytes.
    Jsonl,
    /// One flat row an entry, under a row of names.
    Csv,
}

const CSV_COLUMNS: [&str; 18] = [
    "sequence",
    "time",
    "session",
    "call",
    "tool",
    "effect",
    "actor",
    "verdict",
    "rules",
    "ok",
    "error",
    "message",
    "files",
    "rows_changed",
    "exit_code",
    "duration_us",
    "arguments",
    "hash",
];

impl AuditReader {
    /// Writes the entries that `filter` admits, oldest first and one at a time. Gives their number.
    ///
    /// # Errors
    /// `EINTEGRITY` when one of them is not what was written (those before it are out then), `EINTERNAL` when they
    /// cannot be read or written.
    pub fn export(
        &self,
        filter: &AuditFilter,
        format: ExportFormat,
        output: &mut dyn Write,
    ) -> Result<u64, ToolError> {
        match format {
            ExportFormat::Jsonl => self.export_jsonl(filter, output),
            ExportFormat::Csv => self.export_csv(filter, output),
        }
    }

    fn export_jsonl(&self, filter: &AuditFilter, output: &mut dyn Write) -> Result<u64, ToolError> {
        let mut count = 0;
        self.visit(filter, Order::OldestFirst, usize::MAX, &mut |stored, _| {
            count += 1;
            let mut line = b"{\"body\":".to_vec();
            line.extend_from_slice(&stored.body);
            line.extend_from_slice(format!(",\"hash\":\"{}\"}}\n", stored.hash).as_bytes());
            output.write_all(&line).map_err(Failure::Output)
        })?;
        output.flush().map_err(Failure::Output)?;
        Ok(count)
    }

    fn export_csv(&self, filter: &AuditFilter, output: &mut dyn Write) -> Result<u64, ToolError> {
        let mut count = 0;
        let mut table = csv::Writer::from_writer(output);
        let written = |result: csv::Result<()>| result.map_err(|error| Failure::Output(error.into()));
        written(table.write_record(CSV_COLUMNS))?;
        self.visit(filter, Order::OldestFirst, usize::MAX, &mut |stored, body| {
            count += 1;
            written(table.write_record(row(stored, &body)))
        })?;
        table.flush().map_err(Failure::Output)?;
        Ok(count)
    }
}

fn row(stored: &StoredRow, body: &Value) -> [String; 18] {
    let field = |pointer: &str| body.pointer(pointer).unwrap_or(&Value::Null);
    let text = |pointer: &str| safe(&plain(field(pointer)));
    let count = |pointer: &str| plain(field(pointer));
    let rules: Vec<String> = field("/verdicts")
        .as_array()
        .map(|verdicts| {
            let shown = |verdict: &Value| {
                let part = |name: &str| plain(verdict.get(name).unwrap_or(&Value::Null));
                format!("{}:{}:{}", part("gate"), part("verdict"), part("rule"))
            };
            verdicts.iter().map(shown).collect()
        })
        .unwrap_or_default();
    let files: Vec<String> = field("/outcome/files")
        .as_array()
        .map(|files| {
            let shown = |file: &Value| {
                let part = |name: &str| plain(file.get(name).unwrap_or(&Value::Null));
                format!("{}:{}", part("root"), part("path"))
            };
            files.iter().map(shown).collect()
        })
        .unwrap_or_default();
    [
        stored.sequence.to_string(),
        time(field("/time")),
        text("/session"),
        text("/callId"),
        text("/tool"),
        text("/effect"),
        text("/actor/id"),
        text("/verdict"),
        safe(&rules.join("; ")),
        count("/outcome/ok"),
        text("/outcome/errorCode"),
        safe(&plain(body.pointer("/outcome/message").or(body.get("reason")).unwrap_or(&Value::Null))),
        safe(&files.join("; ")),
        count("/outcome/rowsChanged"),
        count("/outcome/exitCode"),
        count("/outcome/durationUs"),
        text("/arguments"),
        stored.hash.clone(),
    ]
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn time(value: &Value) -> String {
    value.as_u64().map_or_else(|| plain(value), tgp_text::rfc3339)
}

/// A spreadsheet takes a cell that begins like this for a formula, and a formula can send data away.
fn safe(text: &str) -> String {
    let begins_formula = text.trim_start_matches([' ', '"', '\'']).starts_with(|letter| {
        matches!(letter, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠' | '|')
    });
    if begins_formula { format!("'{text}") } else { text.to_owned() }
}
