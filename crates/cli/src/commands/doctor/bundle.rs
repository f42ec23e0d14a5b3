//! `tgp doctor --bundle`: an archive for a bug report, without contents.
//!
//! What calls were made and how they ended is in it; their arguments, the files they read or wrote, transcripts and
//! sources are not. Every text passes the redaction of the audit, and whoever sends the archive can read it first.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use tgp::audit::{AuditFilter, Redaction};
use tgp::contract::{Code, ToolError};
use time::OffsetDateTime;

use crate::arguments::Global;
use crate::logging::is_log_line;
use crate::session;

/// Entries of the audit that are in a bundle.
const MAX_ENTRIES: usize = 500;
/// Bytes of the end of a log.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Bytes of the beginning of a log by which it is known.
const MAX_HEAD_BYTES: u64 = 64 << 10;
/// Bytes of a whole log: those of four processes that have filled theirs.
const MAX_LOG_BYTES: u64 = 1 << 30;
/// What an entry of the audit keeps in a bundle.
const ENTRY_FIELDS: [&str; 9] =
    ["v", "kind", "time", "tool", "effect", "verdict", "execution", "verdicts", "depth"];
/// No message: it may repeat what an argument said.
const OUTCOME_FIELDS: [&str; 4] = ["ok", "errorCode", "durationUs", "exitCode"];

const ABOUT: &str = "A bundle for a bug report of tgp, made by `tgp doctor --bundle`.

doctor.json         what `tgp doctor` says of this machine and project
system.txt          version, operating system, processors, memory
audit.jsonl         the newest calls: which tool, what the gates said, how it ended; no arguments, files or messages
log.txt             the end of a log, if one was named with `--with-log`; it may name files and tables

The configuration is not in it. What looks like a secret is replaced by [redacted]. Read it through before you send it.
";

/// What the archive is made of.
pub struct Bundle<'a> {
    pub global: &'a Global,
    pub redaction: &'a Redaction,
    /// What the doctor found.
    pub checks: &'a [Value],
    pub log: Option<&'a Path>,
}

impl Bundle<'_> {
    /// Writes the archive, which must not be there yet, and answers the names of what is in it.
    ///
    /// # Errors
    /// `ECONFLICT` when there is such a file, and what the system says.
    pub async fn write(&self, path: &Path) -> Result<Vec<&'static str>, ToolError> {
        let mut parts = vec![
            ("README.txt", ABOUT.to_owned()),
            ("doctor.json", format!("{:#}\n", json!({ "checks": self.checks }))),
            ("system.txt", system()),
        ];
        parts.extend(self.audit().await.map(|text| ("audit.jsonl", text)));
        if let Some(log) = self.log {
            parts.push(("log.txt", tail(log)?));
        }
        let failed = |error: std::io::Error| match error.kind() {
            _ if path.is_dir() => {
                ToolError::new(Code::Validation, format!("`{}` is a directory", path.display()))
                    .help("name a file in it, such as `report.tar.gz`")
            }
            std::io::ErrorKind::NotFound => {
                ToolError::new(Code::NotFound, format!("`{}` cannot be written: {error}", path.display()))
                    .help("name a file in a directory that exists")
            }
            std::io::ErrorKind::AlreadyExists => {
                ToolError::new(Code::Conflict, format!("`{}` is there already", path.display()))
                    .help("name another file, or remove it")
            }
            _ => ToolError::new(Code::Internal, format!("`{}` cannot be written: {error}", path.display()))
                .help("name a file in a directory that you can write to"),
        };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let names = parts.iter().map(|(name, _)| *name).collect();
        let archived = archive(
            file,
            parts.into_iter().map(|(name, text)| (name, self.redaction.text(&text).into_owned())),
        );
        if let Err(error) = archived {
            // An incomplete archive must not be sent.
            let _ = std::fs::remove_file(path);
            return Err(failed(error));
        }
        Ok(names)
    }

    async fn audit(&self) -> Option<String> {
        let reader = session::records(self.global).await.ok()?;
        let entries = reader.tail(&AuditFilter::default(), MAX_ENTRIES).ok()?;
        let lines =
            entries.into_iter().map(|entry| format!("{}\n", without_contents(entry.sequence, &entry.body)));
        Some(lines.collect())
    }
}

fn without_contents(sequence: u64, body: &Value) -> Value {
    let kept = |fields: &[&str], from: &Value| -> Map<String, Value> {
        let field = |name: &&str| Some(((*name).to_owned(), from.get(*name)?.clone()));
        fields.iter().filter_map(field).collect()
    };
    let mut entry = kept(&ENTRY_FIELDS, body);
    // An entry without an effect names a tool that does not exist: the name is the caller's text.
    if body.get("effect").is_none_or(Value::is_null) {
        entry.insert("tool".to_owned(), json!("(unknown)"));
    }
    entry.insert("sequence".to_owned(), json!(sequence));
    if let Some(outcome) = body.get("outcome") {
        entry.insert("outcome".to_owned(), Value::Object(kept(&OUTCOME_FIELDS, outcome)));
    }
    Value::Object(entry)
}

fn archive(file: File, parts: impl Iterator<Item = (&'static str, String)>) -> std::io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, text) in parts {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).unwrap_or_default());
        archive.append_data(&mut header, format!("tgp-bundle/{name}"), text.as_bytes())?;
    }
    let mut file = archive.into_inner()?.finish()?;
    file.flush()?;
    file.sync_all()
}

/// The end of a log of this program. Nothing else is taken: whoever sends a bundle has not read every file that a mistyped name
/// could bring in.
fn tail(path: &Path) -> Result<String, ToolError> {
    let shown = path.display();
    let refused = |reason: &str| {
        ToolError::new(Code::Validation, format!("`{shown}` is not put into the bundle: {reason}"))
            .detail("reason", reason)
            .help("name the file that `--log` wrote")
    };
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidInput => refused("it is not a plain file"),
        _ if error.raw_os_error() == Some(nix::libc::ELOOP) => refused("it is a link"),
        ErrorKind::NotFound => ToolError::new(Code::NotFound, format!("there is no log `{shown}`"))
            .help("name the file that `--log` wrote"),
        _ => refused(&format!("it cannot be read: {error}")),
    };
    let file = tgp::files::open_plain(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > MAX_LOG_BYTES {
        return Err(refused(&format!(
            "it has {length} bytes, and a log has at most {MAX_LOG_BYTES}; write a new one"
        )));
    }
    let read = |from: u64, most: u64| -> Result<Vec<u8>, ToolError> {
        let mut file = &file;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    };
    let head = read(0, MAX_HEAD_BYTES)?;
    let mut bytes = read(length.saturating_sub(MAX_FILE_BYTES), MAX_FILE_BYTES)?;
    if length > MAX_FILE_BYTES {
        // The rest of a line may be the rest of a secret.
        let whole = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..whole);
    }
    // The process that wrote the last line may have been killed before its end.
    let whole = |bytes: &[u8]| -> Result<String, ToolError> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8(bytes.get(..end).unwrap_or_default().to_vec());
        text.map_err(|_| refused("it is not a log of tgp: it is not UTF-8"))
    };
    let (head, text) = (whole(&head)?, whole(&bytes)?);
    if head.is_empty() || text.is_empty() {
        return Err(refused("it is not a log of tgp: it has no line of one"));
    }
    // What is sent is looked at as a whole: a log may have been added to a file of something else, and the other way round.
    if !head.lines().chain(text.lines()).all(is_log_line) {
        return Err(refused("it is not a log of tgp: it has other lines in it"));
    }
    Ok(text)
}

fn system() -> String {
    let first = |file: &str, key: &str| -> Option<String> {
        let text = std::fs::read_to_string(file).ok()?;
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .map(|rest| rest.trim_matches([' ', '"', ':']).to_owned())
    };
    let unknown = || "unknown".to_owned();
    format!(
        "tgp {}\n{} {}\n{}\nkernel {}\n{} processors, memory {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        first("/etc/os-release", "PRETTY_NAME=").unwrap_or_else(unknown),
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        first("/proc/meminfo", "MemTotal").unwrap_or_else(unknown),
    )
}

/// A name that no other bundle has.
pub fn default_name() -> PathBuf {
    let now = OffsetDateTime::now_utc();
    let (year, month, day) = now.to_calendar_date();
    let (hour, minute, second) = now.to_hms();
    let now = format!("{year}{:02}{day:02}-{hour:02}{minute:02}{second:02}", u8::from(month));
    PathBuf::from(format!("tgp-bundle-{now}.tar.gz"))
}
