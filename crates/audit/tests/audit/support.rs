//! A place for an audit, records to put in, and a plain SQLite to tamper with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp_audit::{
    Anchor, Audit, AuditFilter, AuditOptions, AuditReader, ExportFormat, FileAnchor, Head, VerifyReport,
};
use tgp_contract::{
    Actor, CallContext, CallRecord, Code, Consent, Effect, Execution, FileEffect, GateVerdict, Recorder,
    RelativePath, Root, Stage, Target, ToolCall, ToolError, ToolResult,
};

pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// With the given records in a chain that is closed.
    pub fn with(records: Vec<CallRecord>) -> Self {
        let place = Self::new();
        let audit = place.open().unwrap();
        runtime().block_on(async {
            for record in records {
                audit.record(record).await.unwrap();
            }
            audit.close().await.unwrap();
        });
        place
    }

    /// With as many plain entries.
    pub fn filled(count: usize) -> Self {
        Self::with((0..count).map(|number| record(&format!("call {number}"))).collect())
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("audit.db")
    }

    pub fn anchor_path(&self) -> PathBuf {
        self.folder.path().join("anchor")
    }

    pub fn anchor(&self) -> Arc<dyn Anchor> {
        Arc::new(FileAnchor::new(self.anchor_path()))
    }

    pub fn options(&self) -> AuditOptions {
        options(&self.path())
    }

    pub fn open(&self) -> Result<Audit, ToolError> {
        Audit::open(self.options(), self.anchor())
    }

    pub fn reader(&self) -> AuditReader {
        AuditReader::open(self.path(), self.anchor()).unwrap()
    }

    /// The whole chain is read, as `tgp audit verify` does it.
    pub fn verify(&self) -> Result<VerifyReport, ToolError> {
        AuditReader::open(self.path(), self.anchor())?.verify()
    }

    pub fn head(&self) -> Head {
        self.anchor().load().unwrap().unwrap()
    }

    pub fn export(&self, filter: &AuditFilter, format: ExportFormat) -> Result<Vec<u8>, ToolError> {
        let mut output = Vec::new();
        AuditReader::open(self.path(), self.anchor())?.export(filter, format, &mut output)?;
        Ok(output)
    }

    /// An attacker with plain SQLite and the right to write the file.
    pub fn tamper(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    /// Brings everything from the log into the one file.
    pub fn settle(&self) {
        let connection = self.tamper();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }

    #[track_caller]
    pub fn assert_intact(&self, entries: u64) {
        let report = self.verify().unwrap();
        assert_eq!((report.entries, report.head.sequence), (entries, entries));
    }
}

pub fn options(path: &Path) -> AuditOptions {
    AuditOptions { lock_wait: Duration::from_secs(20), ..AuditOptions::new(path) }
}

/// A small call that was allowed and done.
pub fn record(id: &str) -> CallRecord {
    CallRecord {
        serial: 0,
        call: ToolCall {
            id: id.to_owned(),
            tool: "fs.write".to_owned(),
            arguments: json!({"path": "src/a.ts", "content": "export const a = 1;"}),
        },
        tool: Some("fs_write".to_owned()),
        effect: Some(Effect::Write),
        context: CallContext {
            actor: Actor::Agent("agent-1".to_owned()),
            session: "session-1".to_owned(),
            consent: Consent::Ask,
            dry_run: false,
            depth: 0,
            token: None,
        },
        targets: vec![Target::Command { command: "ls".to_owned() }],
        verdicts: vec![verdict(Stage::Policy, "policy", "allow", "default-read")],
        files: vec![FileEffect {
            root: Root::Project,
            path: RelativePath::new("src/a.ts").unwrap(),
            before: None,
            after: Some("ab".repeat(32)),
            diff: None,
            executable: None,
            event: None,
        }],
        rows_changed: None,
        exit_code: None,
        execution: Execution::Done,
        cancelled: false,
        result: ToolResult::Done(json!({"bytes": 19})),
        started_ms: 1_800_000_000_000,
        duration_us: 1234,
    }
}

pub fn verdict(stage: Stage, gate: &str, verdict: &str, rule: &str) -> GateVerdict {
    GateVerdict {
        stage,
        gate: gate.to_owned(),
        verdict: serde_json::from_value(verdict.into()).unwrap(),
        rule: rule.to_owned(),
    }
}

pub fn failed(record: CallRecord, code: Code, message: &str) -> CallRecord {
    let before_the_run = matches!(code, Code::Policy | Code::Approval | Code::Validation | Code::NotFound);
    let execution = if before_the_run { Execution::NotStarted } else { Execution::RolledBack };
    CallRecord { execution, result: ToolResult::Failed(ToolError::new(code, message)), ..record }
}

pub fn with_arguments(arguments: Value) -> CallRecord {
    let mut record = record("with arguments");
    record.call.arguments = arguments;
    record
}

/// The bodies of an export.
pub fn bodies(export: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(export).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].take()).collect()
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// This test binary again, for one test of it.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null());
    command
}

#[track_caller]
pub fn assert_broken(result: Result<impl std::fmt::Debug, ToolError>, sequence: u64) {
    let error = result.unwrap_err();
    assert_eq!(error.code, Code::Integrity, "{error}");
    assert_eq!(error.details.get("sequence"), Some(&json!(sequence)), "{error}");
    assert!(error.help_of().unwrap().contains("tgp audit restart --reason"), "{error:?}");
}
