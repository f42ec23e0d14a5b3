//! What a person is shown before they agree: exactly what will happen, with nothing hidden and nothing cut in silence.

use console::Style;
use serde_json::{Map, Value};
use tgp::contract::{Access, Actor, ApprovalRequest, Effect, Root, Target};

use super::Manner;
use super::pattern::is_by_default;
use crate::text::{count, rows, short_line, single_line, visible};

/// Rows of a reason, a target or another fact that are shown beside the question; the rest is behind `m`.
const MAX_FACT_ROWS: usize = 4;
/// Targets that are named beside the question; the rest is behind `m`.
const MAX_TARGETS: usize = 6;
/// Columns left of what others say: two blanks, the bar, one blank.
const GUTTER: usize = 4;
/// A body is never squeezed below this, whatever the terminal says of its width.
const MIN_COLUMNS: usize = 20;
/// Columns of the names of facts.
const LABEL: usize = 9;

/// A question as its asker sees it, kept until it is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub session: String,
    pub actor: String,
    pub tool: String,
    pub effect: Effect,
    pub arguments: Value,
    pub targets: Vec<Target>,
    pub reasons: Vec<String>,
    pub preview: Option<Value>,
}

impl Asked {
    pub fn new(request: &ApprovalRequest<'_>) -> Self {
        let actor = match &request.context.actor {
            Actor::Person(id) | Actor::Agent(id) => id.clone(),
            Actor::Tool(path) => path.to_string(),
        };
        Self {
            session: request.context.session.clone(),
            actor,
            tool: request.definition.name.to_string(),
            effect: request.definition.effect,
            arguments: request.call.arguments.clone(),
            targets: request.targets.to_vec(),
            reasons: request.reasons.clone(),
            preview: request.preview.clone(),
        }
    }

    /// The SHA-256 of the forged tool that would run.
    pub fn source_hash(&self) -> Option<&str> {
        self.preview.as_ref()?.get("sha256")?.as_str()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    fn previewed(&self, name: &str) -> Option<&Value> {
        self.preview.as_ref().and_then(|preview| preview.get(name)).filter(|value| !value.is_null())
    }
}

/// How a line of a sheet looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    /// Our own words.
    Heading,
    /// What others say.
    Plain,
    Added,
    Removed,
    Place,
}

#[derive(Clone, Debug)]
struct Line {
    tone: Tone,
    text: String,
}

/// A question ready to be shown.
#[derive(Clone, Debug)]
pub struct Sheet {
    title: String,
    body: Vec<Line>,
    facts: Vec<(&'static str, String)>,
    /// What can be looked at besides.
    more: Vec<Line>,
}

impl Sheet {
    pub fn new(asked: &Asked) -> Self {
        let who = format!("`{}` wants to", single_line(&asked.actor));
        let tool = single_line(&asked.tool);
        let is_command = asked.targets.iter().any(|target| matches!(target, Target::Command { .. }));
        let is_statement = asked.targets.iter().any(|target| matches!(target, Target::Statement { .. }));
        let mut sheet = Self { title: String::new(), body: Vec::new(), facts: Vec::new(), more: Vec::new() };
        let what = match asked.tool.as_str() {
            _ if sheet.differences(asked) => format!("call `{tool}`, which changes files:"),
            _ if is_command => sheet.command(asked, &tool),
            _ if is_statement => sheet.statement(asked, &tool),
            "fetch" => sheet.request(asked, &tool),
            "exec_tool" => sheet.program(asked, &tool),
            _ => sheet.anything(asked, &tool),
        };
        sheet.title = format!("{who} {what}");
        sheet.touches(asked);
        sheet.reasons(asked);
        sheet
    }

    /// Differences of files, where a preview has them.
    fn differences(&mut self, asked: &Asked) -> bool {
        let Some(preview) = &asked.preview else { return false };
        let changes = preview.get("changes").and_then(Value::as_array);
        let parts: Vec<&Value> = match changes {
            Some(changes) => changes.iter().collect(),
            None => vec![preview],
        };
        let is_shown =
            |part: &&Value| part.get("diff").is_some_and(Value::is_string) || part.get("removed").is_some();
        if parts.is_empty() || !parts.iter().all(is_shown) {
            return false;
        }
        let mut is_cut = false;
        for part in parts {
            let diff = part.get("diff").and_then(Value::as_str).unwrap_or_default();
            let name = part.get("path").and_then(Value::as_str).unwrap_or_default();
            match diff {
                "" if part.get("removed").is_some() => {
                    self.head(format!("`{}` is deleted", single_line(name)))
                }
                "" => self.head(format!("`{}` stays as it is", single_line(name))),
                diff => self.body.extend(diff_lines(diff)),
            }
            let says = |name: &str| part.get(name).and_then(Value::as_bool) == Some(true);
            is_cut |= says("diffTruncated") || says("truncated");
        }
        is_cut |= preview.get("truncated").and_then(Value::as_bool) == Some(true);
        if is_cut {
            self.facts.push(("cut", "the difference goes on; m shows the whole arguments".to_owned()));
        }
        self.arguments_below(asked);
        true
    }

    fn command(&mut self, asked: &Asked, tool: &str) -> String {
        for target in &asked.targets {
            if let Target::Command { command } = target {
                self.quote(command);
            }
        }
        let place = asked.text("cwd").filter(|place| !place.is_empty() && *place != ".");
        let place =
            place.map_or_else(|| "the project".to_owned(), |place| format!("`{}`", single_line(place)));
        self.facts.push(("in", place));
        let network = match asked.targets.contains(&Target::Network) {
            true => "all of it: any host can be reached",
            false => "not asked for",
        };
        self.facts.push(("network", network.to_owned()));
        if let Some(template) = asked.text("template") {
            self.facts.push(("template", single_line(template)));
        }
        self.other_arguments(asked, &["command", "cwd", "network", "template"]);
        self.leftover_preview(asked, &[]);
        format!("run a command with `{tool}`:")
    }

    fn statement(&mut self, asked: &Asked, tool: &str) -> String {
        for target in &asked.targets {
            if let Target::Statement { sql, .. } = target {
                self.quote(sql);
            }
        }
        self.other_arguments(asked, &["sql"]);
        if let Some(changed) = asked.previewed("changed") {
            self.facts.push((
                "changes",
                format!("{} row(s), as a try has shown", single_line(&changed.to_string())),
            ));
        }
        if let Some(answer) =
            asked.previewed("rows").filter(|rows| rows.as_array().is_some_and(|rows| !rows.is_empty()))
        {
            self.more_json("The rows that a try has answered", answer);
        }
        self.leftover_preview(asked, &["changed", "rows", "columns", "truncated", "dry_run"]);
        format!("run SQL with `{tool}`:")
    }

    fn request(&mut self, asked: &Asked, tool: &str) -> String {
        let method = asked.text("method").unwrap_or("GET");
        self.quote(&format!("{method} {}", asked.text("url").unwrap_or_default()));
        self.other_arguments(asked, &["method", "url"]);
        self.leftover_preview(asked, &[]);
        format!("send a request with `{tool}`:")
    }

    fn program(&mut self, asked: &Asked, tool: &str) -> String {
        let path = asked.text("path").unwrap_or_default();
        let arguments = asked.arguments.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        self.quote(&format!("{path} with {}", pretty(&arguments)));
        self.other_arguments(asked, &["path", "args"]);
        if let Some(hash) = asked.source_hash() {
            self.facts.push(("source", format!("sha256 {}", single_line(hash))));
        }
        if let Some(source) = asked.previewed("source").and_then(Value::as_str) {
            self.more.push(heading(format!("The source of {}", single_line(path))));
            self.more.extend(visible(source).lines().map(plain));
        }
        self.leftover_preview(asked, &["sha256", "source", "path"]);
        format!("run a forged tool with `{tool}`:")
    }

    fn anything(&mut self, asked: &Asked, tool: &str) -> String {
        self.quote(&pretty(&asked.arguments));
        self.leftover_preview(asked, &[]);
        format!("call `{tool}` with")
    }

    fn head(&mut self, text: String) {
        self.body.push(heading(text));
    }

    /// What others say, exactly.
    fn quote(&mut self, text: &str) {
        let text = visible(text);
        // A last line end shows as nothing at all, and what follows it is no line.
        self.body.extend(text.split('\n').map(plain));
    }

    /// Arguments that have no words of their own above; none is left out.
    fn other_arguments(&mut self, asked: &Asked, shown: &[&str]) {
        let Some(fields) = asked.arguments.as_object() else { return };
        for (name, value) in fields.iter().filter(|(name, _)| !shown.contains(&name.as_str())) {
            match value {
                Value::String(text) if text.contains('\n') => {
                    self.head(format!("{}:", single_line(name)));
                    self.quote(text);
                }
                other => self.quote(&format!("{}: {}", single_line(name), pretty(other))),
            }
        }
    }

    /// Where the difference stands above, the arguments themselves are for those who ask.
    fn arguments_below(&mut self, asked: &Asked) {
        self.more_json("The arguments", &asked.arguments);
    }

    fn more_json(&mut self, title: &str, value: &Value) {
        self.more.push(heading(title.to_owned()));
        self.more.extend(visible(&pretty(value)).split('\n').map(plain));
    }

    /// A preview says more than we have words for: then it is shown as it is.
    fn leftover_preview(&mut self, asked: &Asked, shown: &[&str]) {
        let left = match &asked.preview {
            Some(Value::Object(fields)) => {
                let left: Map<String, Value> = fields
                    .iter()
                    .filter(|(name, _)| !shown.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                if left.is_empty() { Value::Null } else { Value::Object(left) }
            }
            Some(other) => other.clone(),
            None => Value::Null,
        };
        if !left.is_null() {
            self.head("What is known of it beforehand:".to_owned());
            self.quote(&pretty(&left));
        }
    }

    fn touches(&mut self, asked: &Asked) {
        let words: Vec<String> = asked.targets.iter().filter_map(target_words).collect();
        for text in words.iter().take(MAX_TARGETS) {
            self.facts.push(("touches", text.clone()));
        }
        if words.len() > MAX_TARGETS {
            self.facts.push(("touches", format!("and {} more; m shows them", words.len() - MAX_TARGETS)));
            self.more.push(heading("Everything it touches".to_owned()));
            self.more.extend(words.iter().map(|text| plain(text)));
        }
    }

    fn reasons(&mut self, asked: &Asked) {
        for reason in &asked.reasons {
            self.facts.push(("because", visible(reason)));
        }
        if !is_by_default(asked) && !asked.reasons.is_empty() {
            self.facts.push(("", "somebody made a rule that asks each time".to_owned()));
        }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// What will happen, row by row; none is wider than the terminal.
    pub fn body_rows(&self, manner: Manner) -> Vec<String> {
        shown(&self.body, manner)
    }

    /// What can be looked at besides, row by row.
    pub fn more_rows(&self, manner: Manner) -> Vec<String> {
        shown(&self.more, manner)
    }

    /// Where, why and with what: a few rows.
    pub fn fact_rows(&self, manner: Manner) -> Vec<String> {
        let width = manner.columns.saturating_sub(LABEL + 3).max(MIN_COLUMNS);
        let mut said = "";
        let mut shown = Vec::new();
        for (label, text) in &self.facts {
            // A name that repeats is said once.
            let name = if *label == said { "" } else { label };
            said = label;
            let all: Vec<String> = text.split('\n').flat_map(|line| rows(&detabbed(line), width)).collect();
            let is_cut = all.len() > MAX_FACT_ROWS;
            for (number, row) in all.iter().take(MAX_FACT_ROWS).enumerate() {
                let name = if number == 0 { name } else { "" };
                shown.push(format!("  {name:LABEL$} {row}").trim_end().to_owned());
            }
            if is_cut {
                let left = count(all.len() - MAX_FACT_ROWS, "more row");
                shown.push(format!("  {:LABEL$} {} {left}; m shows them", "", manner.charset.dots()));
            }
        }
        shown
    }

    /// Facts that were too long to stand beside the question, in full.
    pub fn long_fact_rows(&self, manner: Manner) -> Vec<String> {
        let width = manner.columns.saturating_sub(LABEL + 3).max(MIN_COLUMNS);
        let is_long =
            |text: &str| text.split('\n').map(|line| rows(line, width).len()).sum::<usize>() > MAX_FACT_ROWS;
        let lines = self.facts.iter().filter(|(_, text)| is_long(text)).flat_map(|(label, text)| {
            std::iter::once(heading(format!("{label}, in full"))).chain(text.split('\n').map(plain))
        });
        shown(&lines.collect::<Vec<_>>(), manner)
    }
}

fn heading(text: String) -> Line {
    Line { tone: Tone::Heading, text }
}

fn plain(text: &str) -> Line {
    Line { tone: Tone::Plain, text: text.to_owned() }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// The columns of a tab differ by where it stands; rows are counted, so it has some of its own.
fn detabbed(line: &str) -> String {
    line.replace('\t', "    ")
}

fn diff_lines(diff: &str) -> Vec<Line> {
    let tone = |line: &str| match line.chars().next() {
        _ if line.starts_with("--- ") || line.starts_with("+++ ") => Tone::Place,
        Some('+') => Tone::Added,
        Some('-') => Tone::Removed,
        Some('@') => Tone::Place,
        _ => Tone::Plain,
    };
    visible(diff).lines().map(|line| Line { tone: tone(line), text: line.to_owned() }).collect()
}

/// Lines as rows, each behind a bar: however wide a line is, no part of it can pass for our own words.
fn shown(lines: &[Line], manner: Manner) -> Vec<String> {
    let width = manner.columns.saturating_sub(GUTTER).max(MIN_COLUMNS);
    let mut shown = Vec::new();
    for line in lines {
        let style = match line.tone {
            Tone::Heading => {
                shown.push(format!("  {}", short_line(&line.text, width, manner.charset.dots())));
                continue;
            }
            Tone::Plain => Style::new(),
            Tone::Added => Style::new().green(),
            Tone::Removed => Style::new().red(),
            Tone::Place => Style::new().cyan(),
        };
        let bar = manner.paint(&Style::new().dim(), manner.charset.bar());
        for row in rows(&detabbed(&line.text), width) {
            shown.push(format!("  {bar} {}", manner.paint(&style, &row)).trim_end().to_owned());
        }
    }
    shown
}

/// What a target is, where the body does not say it already.
fn target_words(target: &Target) -> Option<String> {
    let root = |root: Root| match root {
        Root::Tools => "tool repository",
        Root::Project => "project",
        Root::Host => "outside of the project",
    };
    match target {
        Target::File { root: place, path, access } => {
            let done = match access {
                Access::Read => "read",
                Access::Write => "write",
                Access::Delete => "delete",
            };
            let name = if path.is_root() { "." } else { path.as_str() };
            Some(format!("{done} {} ({})", single_line(name), root(*place)))
        }
        Target::Host { host } => Some(format!("the host {}", single_line(host))),
        Target::Network => Some("the whole network".to_owned()),
        Target::Statement { kinds, .. } => {
            Some(format!("the database ({})", single_line(&kinds.join(", ").to_uppercase())))
        }
        Target::Command { .. } => None,
    }
}
