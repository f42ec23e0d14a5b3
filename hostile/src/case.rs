//! The format of a case file. Whatever a file says that is not described here is refused.

use std::collections::BTreeMap;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::entry::Entry;
use crate::expected::Expected;
use crate::load;
use crate::needs::Need;

/// What stands for the port of a case's own server.
const PORT: &str = "{port}";

/// Below the ports that the system gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 18_400..28_400;

/// One attack, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// One sentence: what is tried, and why it must not work.
    pub about: String,
    /// The number in the security review that found it.
    #[serde(default)]
    pub review: Option<String>,
    /// The case runs once through each of these.
    pub entries: Vec<Entry>,
    /// What the machine must have; without it the case is counted as skipped.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Fields of the object in `tgp.config.ts`.
    #[serde(default)]
    pub config: Option<String>,
    /// Files that the person has laid in the project.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Bash that the person runs in the project before the attack.
    #[serde(default)]
    pub setup: Option<String>,
    /// Arguments of `tgp token mint` for the client of the socket; without them its token covers everything.
    #[serde(default)]
    pub token: Option<String>,
    /// Too slow for the bounded part: it runs with `cargo xtask hostile` only.
    #[serde(default)]
    pub long: bool,
    /// Seconds that one step may take.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// The attack.
    pub steps: Vec<Step>,
    /// What must hold when the steps are done.
    #[serde(default)]
    pub after: After,
}

/// One step of an attack. Exactly one of `call`, `script`, `hello` and `frame` says what it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The tool that is called.
    #[serde(default)]
    pub call: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// Whether an approver says yes to everything.
    #[serde(default)]
    pub approve: bool,
    /// Whether only a preview is asked for.
    #[serde(default)]
    pub dry_run: bool,
    /// What may come of a call, a hello or a frame.
    #[serde(default)]
    pub expect: Option<Expected>,
    /// Bash that the attacker runs in the project.
    #[serde(default)]
    pub script: Option<String>,
    /// The exit code of the script; 0 unless it is said.
    #[serde(default)]
    pub exit: Option<i32>,
    /// The first frame of a new connection to the socket; `$TOKEN` in it becomes the client's token.
    #[serde(default)]
    pub hello: Option<Map<String, Value>>,
    /// A frame that is sent as it is.
    #[serde(default)]
    pub frame: Option<Frame>,
    /// Texts that the outcome must contain.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Texts that the outcome must not contain.
    #[serde(default)]
    pub lacks: Vec<String>,
}

/// Bytes on the socket.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The frame's text; it may be anything.
    pub text: String,
    /// The text is sent so many times, one after the other.
    #[serde(default)]
    pub repeat: Option<usize>,
    /// What precedes and follows the repeated text.
    #[serde(default)]
    pub around: Option<(String, String)>,
    /// The length that is claimed, where it is not that of the text.
    #[serde(default)]
    pub length: Option<u32>,
}

/// What must hold after the attack.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Texts that no outcome of the whole case may contain.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// Files with the bytes that they had after the setup; absent ones stay absent.
    #[serde(default)]
    pub unchanged: Vec<String>,
    /// Paths that must not exist.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Files with exactly this text.
    #[serde(default)]
    pub present: BTreeMap<String, String>,
    /// Bash that the person runs; exit 0 means that it held.
    #[serde(default)]
    pub script: Option<String>,
}

/// A case with its place.
#[derive(Clone, Debug)]
pub struct Case {
    pub family: String,
    pub name: String,
    /// The file as it was read.
    pub text: String,
    pub file: CaseFile,
}

impl Case {
    /// The file's path below the workspace, as a failure names it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("hostile/cases/{}/{}.yaml", self.family, self.name)
    }

    /// The case as one run takes it: where it has a server of its own, `{port}` becomes a port that no other run uses.
    ///
    /// # Errors
    /// When every port is taken.
    pub fn for_one_run(&self) -> Result<CaseFile> {
        if !self.text.contains(PORT) {
            return Ok(self.file.clone());
        }
        load::parse(&self.text.replace(PORT, &free_port()?.to_string()))
    }
}

/// A port that no earlier run of this process had, and that nothing else uses.
fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in PORTS {
        let port = PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port from {} to {} is free", PORTS.start, PORTS.end - 1)
}

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    Call { tool: &'a str, arguments: Option<&'a Map<String, Value>> },
    Script { text: &'a str, exit: i32 },
    Hello(&'a Map<String, Value>),
    Frame(&'a Frame),
}

impl Step {
    /// What this step does; nothing when it says no or several things, which the loader refuses.
    #[must_use]
    pub fn act(&self) -> Option<Act<'_>> {
        match (&self.call, &self.script, &self.hello, &self.frame) {
            (Some(tool), None, None, None) => Some(Act::Call { tool, arguments: self.arguments.as_ref() }),
            (None, Some(text), None, None) => Some(Act::Script { text, exit: self.exit.unwrap_or(0) }),
            (None, None, Some(fields), None) => Some(Act::Hello(fields)),
            (None, None, None, Some(frame)) => Some(Act::Frame(frame)),
            _ => None,
        }
    }

    /// The tool and its arguments, where the step is a call.
    #[must_use]
    pub fn as_call(&self) -> Option<(&str, Value)> {
        let tool = self.call.as_deref()?;
        Some((tool, Value::Object(self.arguments.clone().unwrap_or_default())))
    }
}
