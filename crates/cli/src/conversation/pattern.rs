//! What `always` agrees to: narrow enough to be read before it is answered, and never wider than it reads.

use std::fmt;

use serde_json::{Map, Value};
use tgp::contract::{
    Access, ApprovalOrigin, ApprovalReason, Effect, LimitRequest, RelativePath, Root, Target,
};

use super::{ApprovalQuestion, Offer};
use crate::text::{is_unseen, single_line};

/// An argument that changes how long a command may take, and nothing of what it does.
const PATIENCE_ARGUMENTS: [&str; 1] = ["timeout_ms"];
/// Schemes that a request can have, with the port that each means where an address names none.
const SCHEMES: [(&str, u16); 2] = [("https", 443), ("http", 80)];
/// What should be known before a command is agreed to for a whole session.
const COMMAND_CAUTION: &str = "      \
      The command line stays the same, but it may read files that change,
      such as scripts and manifests, and do something else then.
";
/// Longest command or statement that names itself in a pattern; a longer one is right above the question.
const MAX_NAMED: usize = 60;

/// Calls that are agreed to for the rest of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    session: String,
    actor: String,
    tool: String,
    scope: Scope,
}

#[derive(Clone, Debug, PartialEq)]
enum Scope {
    /// Files that are in exactly this directory.
    Directory { root: Root, directory: RelativePath, access: Access },
    /// This command with everything that decides what it does, as far as it is known beforehand.
    Command { command: String, arguments: Value, preview: Option<Value> },
    /// A forged tool as long as its source and all that it imports are the same.
    Source { path: String, sha256: String, found: Value, limits: Option<LimitRequest> },
    /// A statement with any parameters.
    Statement { sql: String },
    /// A method on a host, as one scheme and port reach it.
    Host { method: String, scheme: &'static str, host: String, port: u16 },
    /// Tests as long as their sources are the same.
    Tests { path: Option<String>, preview: Value },
    /// Exactly these arguments, and the effect that was shown with them.
    Exactly { arguments: Value, preview: Option<Value> },
}

impl Pattern {
    /// The pattern that a question offers; none when a person's rule asks for it.
    pub fn of(asked: &ApprovalQuestion) -> Option<Self> {
        is_by_default(asked).then(|| Self {
            session: asked.session.clone(),
            actor: asked.actor.clone(),
            tool: asked.tool.clone(),
            scope: scope(asked),
        })
    }

    /// Whether a call is one of those that were agreed to.
    pub fn covers(&self, asked: &ApprovalQuestion) -> bool {
        Self::of(asked).is_some_and(|pattern| pattern == *self)
    }

    /// As it is offered, with what should be known before it is agreed to.
    pub fn offer(&self) -> Offer {
        let caution = matches!(self.scope, Scope::Command { .. }).then_some(COMMAND_CAUTION);
        Offer::Always { pattern: self.to_string(), caution }
    }
}

/// True when only built-in defaults ask, and what would happen could be shown.
pub fn is_by_default(asked: &ApprovalQuestion) -> bool {
    let is_default = |reason: &ApprovalReason| matches!(reason.origin, ApprovalOrigin::Default(_));
    asked.no_preview.is_none() && !asked.reasons.is_empty() && asked.reasons.iter().all(is_default)
}

fn scope(asked: &ApprovalQuestion) -> Scope {
    let narrow = match asked.targets.as_slice() {
        [Target::Statement { sql, .. }] => Some(Scope::Statement { sql: sql.clone() }),
        [Target::Host { host }] => address(asked, host),
        _ if asked.tool == "exec_tool" => source(asked),
        _ if asked.tool == "test_tool" => tests(asked),
        targets if asked.effect == Effect::Write => directory(targets),
        _ => command(asked),
    };
    narrow.unwrap_or_else(|| Scope::Exactly {
        arguments: asked.arguments.clone(),
        preview: asked.preview.clone(),
    })
}

/// Where a request goes. An address that is not written plainly is none: a reader must see the same host as the one
/// that is asked.
fn address(asked: &ApprovalQuestion, host: &str) -> Option<Scope> {
    let method = asked.text("method").unwrap_or("GET").to_ascii_uppercase();
    let url = asked.text("url")?;
    SCHEMES.iter().find_map(|(scheme, usual_port)| {
        let before = format!("{scheme}://{host}");
        let is_same = url.get(..before.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(&before));
        let rest = url.get(before.len()..).filter(|_| is_same)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let port = match rest.get(..end)? {
            "" => *usual_port,
            // A sign or a blank is not a port; nor is an empty one worth a guess.
            port => port.strip_prefix(':').filter(|port| is_number(port))?.parse().ok()?,
        };
        Some(Scope::Host { method: method.clone(), scheme, host: host.to_owned(), port })
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The tests that would run. Without the hashes of their sources it is unknown which they are.
fn tests(asked: &ApprovalQuestion) -> Option<Scope> {
    asked.previewed("found")?;
    Some(Scope::Tests { path: asked.text("path").map(str::to_owned), preview: asked.preview.clone()? })
}

/// The one directory that all files are in, when nothing else is touched and all are touched alike.
fn directory(targets: &[Target]) -> Option<Scope> {
    let place = |target: &Target| {
        let (root, path, access) = target.file()?;
        // The root is not in a directory.
        (!path.is_root()).then(|| (root, path.parent(), access))
    };
    let (first, rest) = targets.split_first()?;
    let (root, directory, access) = place(first)?;
    let same =
        |target: &Target| place(target).is_some_and(|other| other == (root, directory.clone(), access));
    rest.iter().all(same).then_some(Scope::Directory { root, directory, access })
}

fn source(asked: &ApprovalQuestion) -> Option<Scope> {
    let sha256 = asked.source_hash()?.to_owned();
    let path = asked.arguments.get("path")?.as_str()?.to_owned();
    let found = asked.previewed("found").cloned().unwrap_or_default();
    let limits = asked.targets.iter().find_map(|target| match target {
        Target::Limits(limits) => Some(*limits),
        _ => None,
    });
    Some(Scope::Source { path, sha256, found, limits })
}

fn command(asked: &ApprovalQuestion) -> Option<Scope> {
    let command = asked.command()?.to_owned();
    let fields = asked.arguments.as_object()?;
    let decides = |name: &String| !PATIENCE_ARGUMENTS.contains(&name.as_str());
    let kept: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| decides(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Some(Scope::Command { command, arguments: Value::Object(kept), preview: asked.preview.clone() })
}

/// The pattern as it is read before it is agreed to, on one line and with nothing hidden.
impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = single_line(&self.tool);
        match &self.scope {
            Scope::Directory { root, directory, access } => {
                let done = if *access == Access::Read { " (read)" } else { "" };
                write!(formatter, "{tool} on files directly in {}{done}", folder(*root, directory))
            }
            Scope::Command { command, arguments, .. } => {
                let place = arguments.get("cwd").and_then(Value::as_str).filter(|place| !place.is_empty());
                let command = named(command, "exactly this command line");
                write!(formatter, "{tool} {command} in {}", single_line(place.unwrap_or(".")))?;
                if arguments.get("network").and_then(Value::as_bool) == Some(true) {
                    formatter.write_str(" with the network")?;
                }
                Ok(())
            }
            Scope::Source { path, sha256, limits, .. } => {
                let short: String = sha256.chars().take(12).collect();
                let (path, short) = (single_line(path), single_line(&short));
                write!(formatter, "{tool} {path} as it is now (sha256 {short}), with any arguments")?;
                match limits {
                    Some(limits) => write!(formatter, " and {limits}"),
                    None => Ok(()),
                }
            }
            Scope::Statement { sql } => {
                write!(formatter, "{tool} {}, with any parameters", named(sql, "exactly this statement"))
            }
            Scope::Host { method, scheme, host, port } => {
                let (method, host) = (single_line(method), single_line(host));
                write!(formatter, "{tool} {method} to any address of {scheme}://{host}:{port}")
            }
            Scope::Tests { path, .. } => {
                let path = single_line(path.as_deref().unwrap_or("of all tools"));
                write!(formatter, "{tool} {path}, as long as the tests are as they are now")
            }
            Scope::Exactly { preview: None, .. } => write!(formatter, "{tool} with exactly these arguments"),
            Scope::Exactly { .. } => {
                write!(formatter, "{tool} with exactly these arguments and what is shown of it")
            }
        }
    }
}

/// A text that has just been shown, by itself when it is short.
fn named(text: &str, words: &str) -> String {
    let is_short = text.chars().nth(MAX_NAMED).is_none() && !text.contains(is_unseen);
    if is_short { format!("`{}`", single_line(text)) } else { words.to_owned() }
}

/// A folder in words: a star could be read as everything.
fn folder(root: Root, directory: &RelativePath) -> String {
    let name = format!("`{}/`", single_line(directory.as_str()));
    match (root, directory.is_root()) {
        (Root::Project, true) => "the project's top folder".to_owned(),
        (Root::Project, false) => name,
        (Root::Tools, true) => "the tool repository's top folder".to_owned(),
        (Root::Tools, false) => format!("{name} of the tool repository"),
        (Root::Host, true) => "the top folder outside of the project".to_owned(),
        (Root::Host, false) => format!("{name} outside of the project"),
    }
}
