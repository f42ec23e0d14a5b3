//! What happens along the path of a call, for finding faults: `TGP_LOG` and `--log`.
//!
//! Nothing is logged unless the user asks. Lines go to standard error or to a file, never to standard output, and
//! secrets are taken out of them as they are taken out of the audit. A log that cannot be written any more is reported
//! once; no command fails for it.

use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::{Map, Value};
use tgp::audit::Redaction;
use tgp::contract::{Code, ToolError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::text::is_unseen;

/// The variable that says what is logged.
pub const VARIABLE: &str = "TGP_LOG";
/// The parts that log, by the names that the variable knows.
const PARTS: [&str; 10] =
    ["kernel", "router", "gates", "audit", "worker", "jail", "sql", "git", "fetch", "provider"];
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Bytes that one process writes to a log. An unattended log must not fill the disk.
const MAX_LOG_BYTES: u64 = 256 << 20;
/// Bytes of one line, and of an event before secrets are taken out of it. A larger event is left out as a whole: what is cut
/// before may be the end of a secret, without which it is not known.
const MAX_LINE_BYTES: usize = 16 << 10;
const MAX_EVENT_BYTES: usize = 1 << 20;
/// What every event is inside of, so that it is known which call it belongs to.
const CALL: &str = "call";
const FULL: &str = "the log has reached its limit; nothing more is written";
/// The end of a line that was cut.
const CUT: char = '…';
const LEFT_OUT: &str = "an event that is too long was left out";
/// The name of standard error where a file is expected.
const STANDARD_ERROR: &str = "-";

/// The log of this process.
#[derive(Clone, Default)]
pub struct Log {
    sink: Option<Arc<Sink>>,
    redaction: SharedRedaction,
}

/// What takes secrets out of a text; nothing as long as no configuration is read.
type SharedRedaction = Arc<RwLock<Option<Arc<Redaction>>>>;

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Log").field("is_on", &self.sink.is_some()).finish()
    }
}

impl Log {
    /// Begins to log as `wanted` says; to `file`, or to standard error, which `-` means as well. With a file alone everything
    /// but traces is logged.
    ///
    /// # Errors
    /// `EVALIDATION` for levels or parts that there are not, and what the system says about the file.
    pub fn start(wanted: Option<&str>, file: Option<&Path>) -> Result<Self, ToolError> {
        let wanted = match (wanted.map(str::trim).filter(|wanted| !wanted.is_empty()), file) {
            (Some(wanted), _) => wanted,
            (None, Some(_)) => "debug",
            (None, None) => return Ok(Self::default()),
        };
        let targets = targets(wanted)?;
        let file = file.filter(|path| path.as_os_str() != STANDARD_ERROR);
        let to = match file {
            None => To::Stderr,
            Some(path) => To::File(open(path)?, path.to_owned()),
        };
        let is_json = file.is_some_and(|path| {
            path.extension()
                .is_some_and(|extension| ["json", "jsonl", "ndjson"].iter().any(|known| extension == *known))
        });
        Ok(Self::begin(to, is_json, targets))
    }

    /// Begins to log from this level on to a program that drives this one. A log that was begun already stays.
    ///
    /// # Errors
    /// `EVALIDATION` for a level that there is not.
    pub fn start_for_program(&self, level: &str, take: LineTaker) -> Result<Self, ToolError> {
        if self.sink.is_some() {
            return Ok(self.clone());
        }
        Ok(Self::begin(To::Taker(take), true, targets(level)?))
    }

    fn begin(to: To, is_json: bool, targets: Targets) -> Self {
        let redaction = SharedRedaction::default();
        let sink = Arc::new(Sink {
            to: Mutex::new((to, MAX_LOG_BYTES)),
            redaction: Arc::clone(&redaction),
            is_json,
        });
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Lines(Arc::clone(&sink)));
        let layer: Box<dyn Layer<Registry> + Send + Sync> = if is_json {
            lines.json().flatten_event(true).with_span_list(true).with_current_span(false).boxed()
        } else {
            lines.boxed()
        };
        // A program that embeds this one may have a subscriber already; then that one is used.
        let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
        Self { sink: Some(sink), redaction }
    }

    /// From now on the secrets of a configuration are taken out as well.
    pub fn learn_secrets(&self, redaction: Arc<Redaction>) {
        *self.redaction.write().unwrap_or_else(PoisonError::into_inner) = Some(redaction);
    }

    /// What takes the secrets out of a text that are known so far.
    ///
    /// # Errors
    /// `EINTERNAL` when the usual patterns cannot be made.
    pub fn redaction(&self) -> Result<Arc<Redaction>, ToolError> {
        known(&self.redaction)
    }
}

fn known(redaction: &SharedRedaction) -> Result<Arc<Redaction>, ToolError> {
    if let Some(known) = redaction.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        return Ok(Arc::clone(known));
    }
    let usual = Arc::new(Redaction::new(&[], &[])?);
    Ok(Arc::clone(redaction.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(usual)))
}

/// `debug`, `router=debug,sql=trace`, or both. Only the parts of this program log: libraries write what they send.
fn targets(wanted: &str) -> Result<Targets, ToolError> {
    let mut targets = Targets::new().with_default(LevelFilter::OFF).with_target(CALL, LevelFilter::INFO);
    for item in wanted.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (part, level) = match item.split_once('=') {
            Some((part, level)) => (Some(part.trim()), level.trim()),
            None if PARTS.contains(&item) => (Some(item), "debug"),
            None => (None, item),
        };
        let level = level.to_ascii_lowercase();
        let level: LevelFilter =
            LEVELS.contains(&level.as_str()).then(|| level.parse().ok()).flatten().ok_or_else(|| {
                let parts = if part.is_none() {
                    format!("; the parts are: {}", PARTS.join(", "))
                } else {
                    String::new()
                };
                unknown(item, &format!("the levels are: {}{parts}", LEVELS.join(", ")))
            })?;
        match part {
            Some(part) if PARTS.contains(&part) => targets = targets.with_target(part, level),
            Some(part) => return Err(unknown(part, &format!("the parts are: {}", PARTS.join(", ")))),
            None => targets = PARTS.iter().fold(targets, |targets, part| targets.with_target(*part, level)),
        }
    }
    Ok(targets)
}

fn unknown(item: &str, known: &str) -> ToolError {
    ToolError::new(Code::Validation, format!("`{VARIABLE}` does not know `{item}`"))
        .help(format!("{known}; write `{VARIABLE}=debug` or `{VARIABLE}=router=debug,sql=trace`"))
}

/// A log may hold what a model has read, so it is for its owner alone.
fn open(path: &Path) -> Result<File, ToolError> {
    // A pipe without a reader is an error, and nothing to wait for.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path);
    let private = opened.and_then(|file| {
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    });
    private.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::PermissionDenied => Code::Permission,
            _ => Code::Validation,
        };
        ToolError::new(code, format!("the log `{}` cannot be written: {error}", path.display()))
            .help("name a file in a directory that exists and that you can write to")
    })
}

/// Takes the lines of a log, as JSON objects.
pub type LineTaker = Box<dyn Fn(&Map<String, Value>) + Send + Sync>;

enum To {
    Stderr,
    Taker(LineTaker),
    File(File, PathBuf),
}

/// Where lines go.
struct Sink {
    /// And how many bytes more.
    to: Mutex<(To, u64)>,
    redaction: SharedRedaction,
    is_json: bool,
}

impl Sink {
    /// An event as one line without secrets. Those of JSON are taken out of its values: in its text they are escaped.
    fn clean(&self, event: &[u8]) -> String {
        let Ok(redaction) = known(&self.redaction) else { return left_out(self.is_json) };
        let text = String::from_utf8_lossy(event);
        let text = text.trim_end_matches('\n');
        if event.len() > MAX_EVENT_BYTES {
            return left_out(self.is_json);
        }
        if !self.is_json {
            return one_line(&redaction.text(text));
        }
        let Ok(value) = serde_json::from_str(text) else { return left_out(true) };
        let clean = redaction.value(value).to_string();
        if clean.len() > MAX_LINE_BYTES {
            return left_out(true);
        }
        let mut line = String::with_capacity(clean.len() + 1);
        for character in clean.chars() {
            if is_unseen(character) {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    line.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                line.push(character);
            }
        }
        line.push('\n');
        line
    }

    /// Writes one line. A call does not fail because its log cannot be written.
    fn write(&self, line: &[u8]) {
        let line = self.clean(line);
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let (to, left) = &mut *to;
        if *left == 0 {
            return;
        }
        let is_last = line.len() as u64 >= *left;
        *left = if is_last { 0 } else { left.saturating_sub(line.len() as u64) };
        let line = if is_last { notice(FULL, self.is_json) } else { line };
        match to {
            // There is no other place to report it to.
            To::Stderr => {
                let _ = io::stderr().write_all(line.as_bytes());
            }
            To::Taker(take) => {
                if let Ok(fields) = serde_json::from_str(&line) {
                    take(&fields);
                }
            }
            To::File(file, path) => {
                if let Err(error) = file.write_all(line.as_bytes()) {
                    // Half a line may be written, and what follows would look like the rest of it.
                    *left = 0;
                    let path = one_line(&path.display().to_string());
                    let said = format!(
                        "warning: the log `{}` cannot be written any more: {error}; what follows is not logged\n",
                        path.trim_end()
                    );
                    let _ = io::stderr().write_all(said.as_bytes());
                }
            }
        }
    }
}

/// A line of the log itself, about no event.
fn notice(said: &str, is_json: bool) -> String {
    if is_json { format!("{{\"message\":\"{said}\"}}\n") } else { format!("{said}\n") }
}

fn left_out(is_json: bool) -> String {
    notice(LEFT_OUT, is_json)
}

/// Whether a log of this program has such a line, in either format.
pub fn is_log_line(line: &str) -> bool {
    let is_level = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
    let is_time = |time: &str| tgp_text::parse_rfc3339_ns(time).is_some();
    if [FULL, LEFT_OUT].contains(&line) {
        return true;
    }
    if line.starts_with('{') {
        let Ok(Value::Object(event)) = serde_json::from_str(line) else { return false };
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        return match (text("timestamp"), text("level"), text("target")) {
            (Some(time), Some(level), Some(target)) => {
                is_time(time) && is_level(level) && PARTS.contains(&target)
            }
            _ => event.len() == 1 && text("message").is_some_and(|said| [FULL, LEFT_OUT].contains(&said)),
        };
    }
    let Some((time, rest)) = line.split_once(' ') else { return false };
    let Some((level, event)) = rest.trim_start().split_once(' ') else { return false };
    // The part is behind the spans, in which any text can be.
    let is_part = |part: &str| {
        let mut places = event.match_indices(part);
        places.any(|(at, _)| {
            let before = event.get(..at).unwrap_or_default();
            let after = event.get(at + part.len()..).unwrap_or_default();
            after.starts_with(": ") && (before.is_empty() || before.ends_with(": "))
        })
    };
    // Of a line that was cut the part may be missing.
    let is_cut = line.len() >= MAX_LINE_BYTES && line.ends_with(CUT);
    is_time(time) && is_level(level) && (is_cut || PARTS.iter().any(|part| is_part(part)))
}

/// Text from outside must not look like a line of the log, nor move the cursor of a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if line.len() >= MAX_LINE_BYTES {
            line.push(CUT);
            break;
        }
        if is_unseen(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

/// Makes a writer for each event.
struct Lines(Arc<Sink>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { sink: &self.0, bytes: Vec::new() }
    }
}

/// One event, which is written as a whole.
struct Line<'a> {
    sink: &'a Sink,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // One byte more says that it is too long.
        let room = (MAX_EVENT_BYTES + 1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.sink.write(&self.bytes);
        }
    }
}
