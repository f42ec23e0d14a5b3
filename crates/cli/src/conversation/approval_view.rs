//! What a person is shown before they agree: exactly what will happen, with nothing hidden and nothing cut in silence.

use serde_json::{Map, Value};
use tgp::contract::{Access, Root, Target};

use super::layout::{Line, MIN_COLUMNS, broken, difference, heading, laid_out, quoted};
use super::pattern::is_by_default;
use super::{ApprovalQuestion, TextStyle};
use crate::text::{count, short_line, single_line, visible};

/// Rows of a reason, a target or another fact that are shown beside the question; the rest is behind `m`.
const MAX_FACT_ROWS: usize = 4;
/// Targets that are named beside the question; the rest is behind `m`.
const MAX_TARGETS: usize = 6;
/// Users of what would change that are named beside the question; the rest is behind `m`.
const MAX_USERS: usize = 4;
/// Columns of the names of facts.
const LABEL: usize = 9;
/// Columns of the asker's name: it is part of our own text, so it must not fill whole rows.
const MAX_ACTOR: usize = 60;
/// Characters of a value that fits on one row; a longer one is indented JSON.
const MAX_COMPACT: usize = 60;
/// What binds a preview to the files it was made of, and says nothing to a person.
const BOUND: [&str; 2] = ["found", "dry_run"];

/// Arguments that hold what is written, in part.
const NEW_TEXTS: [&str; 2] = ["replace", "edits"];

/// Tools that run programs, and what else is agreed to with them.
const RUNS: [&str; 3] = ["exec_code", "exec_tool", "test_tool"];
const COVERED: &str = "what it calls meanwhile: the database, listed addresses, upstream servers, secrets; rules ask for themselves";
/// Kinds of statements whose effect is not counted in rows.
const UNCOUNTED: [&str; 4] = ["alter", "create", "drop", "truncate"];

/// A question ready to be shown.
#[derive(Clone, Debug, Default)]
pub struct ApprovalView {
    title: String,
    body: Vec<Line>,
    facts: Vec<(&'static str, String)>,
    /// What else can be shown.
    more: Vec<Line>,
}

impl ApprovalView {
    pub fn new(asked: &ApprovalQuestion) -> Self {
        let who = short_line(&asked.actor, MAX_ACTOR, "...");
        let tool = single_line(&asked.tool);
        let is_statement = asked.targets.iter().any(|target| matches!(target, Target::Statement { .. }));
        let mut sheet = Self::default();
        let what = match asked.tool.as_str() {
            "git_commit" => sheet.commit(asked, &tool),
            _ if sheet.differences(asked) => format!("call `{tool}`, which changes files:"),
            _ if asked.command().is_some() => sheet.command(asked, &tool),
            _ if is_statement => sheet.statement(asked, &tool),
            "fetch" => sheet.request(asked, &tool),
            "exec_tool" => sheet.program(asked, &tool),
            "exec_code" => sheet.code(asked, &tool),
            _ => sheet.anything(asked, &tool),
        };
        sheet.title = format!("`{who}` wants to {what}");
        if asked.dry_run {
            sheet.facts.push(("as", "a dry run: what it changes is shown and undone".to_owned()));
        }
        sheet.touches(asked);
        if RUNS.contains(&asked.tool.as_str()) {
            sheet.facts.push(("covers", COVERED.to_owned()));
        }
        sheet.reach(asked);
        sheet.reasons(asked);
        sheet
    }

    /// Differences of files, where a preview has them.
    fn differences(&mut self, asked: &ApprovalQuestion) -> bool {
        let Some(preview) = &asked.preview else { return false };
        let parts: Vec<&Value> = match preview.get("changes").and_then(Value::as_array) {
            Some(changes) => changes.iter().collect(),
            None => vec![preview],
        };
        let is_change =
            |part: &&Value| ["diff", "removed", "change"].iter().any(|name| part.get(*name).is_some());
        if parts.is_empty() || !parts.iter().all(is_change) {
            return false;
        }
        // What a run has changed is asked when it has ended; what ran is above it.
        let program = match asked.tool.as_str() {
            "exec_tool" => asked.text("path"),
            "exec_code" => asked.text("code"),
            _ => None,
        };
        let line = asked.text("command").filter(|_| asked.tool == "shell_exec");
        let packages = (asked.tool == "package_install").then(|| pretty(&asked.arguments));
        let ran = asked.command().or(program).or(line).or(packages.as_deref());
        if let Some(ran) = ran {
            self.head("It has run, and nothing of it counts yet:");
            self.quote(ran);
            self.head("What it would change:");
        }
        let mut cut = Vec::new();
        for part in parts {
            match part.get("diff").and_then(Value::as_str) {
                Some(diff) if !diff.is_empty() => self.body.extend(difference(diff)),
                _ => self.head(&change_words(part)),
            }
            if let Some(executable) = part.get("executable").and_then(Value::as_bool) {
                self.head(&mode_words(part, executable));
            }
            if part.get("diffTruncated").and_then(Value::as_bool) == Some(true) {
                cut.push(part);
            }
        }
        if !cut.is_empty() {
            // What has run has made its changes from no argument.
            let arguments = Some(&asked.arguments).filter(|_| ran.is_none());
            self.facts.push(("cut", cut_words(&cut, arguments)));
        }
        self.more.push(heading("The arguments".to_owned()));
        self.more.extend(quoted(&pretty(&asked.arguments)));
        true
    }

    /// A commit: its branch, its message and its differences.
    fn commit(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        self.head("The message:");
        self.quote(asked.text("message").unwrap_or_default().trim_end());
        let shown = |name: &str| asked.previewed(name).and_then(Value::as_str).map(single_line);
        if self.differences(asked) {
            let is_new = asked.previewed("createsBranch").and_then(Value::as_bool) == Some(true);
            let new = if is_new { " (new)" } else { "" };
            self.facts.push(("branch", format!("{}{new}", shown("branch").unwrap_or_default())));
            self.facts.extend(shown("author").map(|author| ("author", author)));
            let notes = asked.previewed("notes").and_then(Value::as_array).into_iter().flatten();
            self.facts.extend(notes.filter_map(Value::as_str).map(|note| ("note", single_line(note))));
        } else {
            self.other_arguments(asked, &["message"]);
        }
        format!("commit files with `{tool}`:")
    }

    fn command(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        self.quote(asked.command().unwrap_or_default());
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
        self.leftover_preview(asked, &["command"]);
        format!("run a command with `{tool}`:")
    }

    fn statement(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        for target in &asked.targets {
            if let Target::Statement { sql, .. } = target {
                self.quote(sql);
            }
        }
        self.other_arguments(asked, &["sql"]);
        let tried = |name: &str| asked.previewed(name).and_then(Value::as_u64);
        let is_uncounted = |target: &Target| match target {
            Target::Statement { kinds, .. } => kinds.iter().any(|kind| UNCOUNTED.contains(&kind.as_str())),
            _ => false,
        };
        let counts = !asked.targets.iter().any(is_uncounted);
        if let Some(changed) = tried("changed").filter(|changed| counts || *changed > 0) {
            self.facts.push((
                "changes",
                format!(
                    "{} in a trial run that was undone",
                    count(usize::try_from(changed).unwrap_or(usize::MAX), "row")
                ),
            ));
        }
        if let Some(answered) = tried("rows").filter(|rows| *rows > 0) {
            self.facts.push(("answers", count(usize::try_from(answered).unwrap_or(usize::MAX), "row")));
        }
        self.leftover_preview(asked, &["changed", "rows", "columns"]);
        format!("run SQL with `{tool}`:")
    }

    fn request(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        let method = asked.text("method").unwrap_or("GET");
        self.quote(&format!("{method} {}", asked.text("url").unwrap_or_default()));
        self.other_arguments(asked, &["method", "url"]);
        self.leftover_preview(asked, &[]);
        format!("send a request with `{tool}`:")
    }

    fn program(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        let path = asked.text("path").unwrap_or_default();
        self.quote(path);
        self.other_arguments(asked, &["path"]);
        if let Some(hash) = asked.source_hash() {
            self.facts.push(("source", format!("sha256 {}", single_line(hash))));
        }
        if let Some(source) = asked.previewed("source").and_then(Value::as_str) {
            self.more.push(heading(format!("The source of {}", single_line(path))));
            self.more.extend(quoted(source.trim_end()));
        }
        if asked.previewed("sourceTruncated").is_some() {
            self.facts.push(("cut", "the source is longer than what m shows; read the file".to_owned()));
        }
        self.leftover_preview(asked, &["sha256", "source", "path", "sourceTruncated"]);
        format!("run a forged tool with `{tool}`:")
    }

    fn code(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        self.quote(asked.text("code").unwrap_or_default().trim_end());
        self.other_arguments(asked, &["code"]);
        // The preview repeats the program, under the name that its hash gives it.
        self.leftover_preview(asked, &["sha256", "source", "path"]);
        format!("run a program with `{tool}`:")
    }

    fn anything(&mut self, asked: &ApprovalQuestion, tool: &str) -> String {
        self.quote(&pretty(&asked.arguments));
        self.leftover_preview(asked, &[]);
        format!("call `{tool}` with")
    }

    fn head(&mut self, text: &str) {
        self.body.push(heading(text.to_owned()));
    }

    fn quote(&mut self, text: &str) {
        self.body.extend(quoted(text));
    }

    /// Arguments that have no line above; none is left out. Each name is part of our own text, so that no text above
    /// can pass for an argument.
    fn other_arguments(&mut self, asked: &ApprovalQuestion, shown: &[&str]) {
        let Some(fields) = asked.arguments.as_object() else { return self.quote(&pretty(&asked.arguments)) };
        for (name, value) in fields.iter().filter(|(name, _)| !shown.contains(&name.as_str())) {
            self.head(&format!("{}:", single_line(name)));
            match value {
                Value::String(text) => self.quote(text),
                other => self.quote(&compact(other)),
            }
        }
    }

    /// A preview that says more than we have words for is shown as it is.
    fn leftover_preview(&mut self, asked: &ApprovalQuestion, shown: &[&str]) {
        let left = match &asked.preview {
            Some(Value::Object(fields)) => {
                let is_left = |name: &str| !shown.contains(&name) && !BOUND.contains(&name);
                let left = fields.iter().filter(|(name, _)| is_left(name));
                Value::Object(left.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
            }
            Some(other) => other.clone(),
            None => Value::Null,
        };
        if !left.is_null() && left != Value::Object(Map::new()) {
            self.head("What is known of it beforehand:");
            self.quote(&pretty(&left));
        }
    }

    fn touches(&mut self, asked: &ApprovalQuestion) {
        let words: Vec<String> = asked.targets.iter().filter_map(target_words).collect();
        for text in words.iter().take(MAX_TARGETS) {
            self.facts.push(("touches", text.clone()));
        }
        if words.len() > MAX_TARGETS {
            self.facts.push(("touches", format!("and {} more; m shows them", words.len() - MAX_TARGETS)));
            self.more.push(heading("Everything it touches".to_owned()));
            self.more.extend(words.iter().flat_map(|text| quoted(text)));
        }
    }

    /// Who uses what is about to change, as the graph knows it.
    fn reach(&mut self, asked: &ApprovalQuestion) {
        let Some(reach) = &asked.reach else { return };
        for (fact, name, thing) in [
            ("used by", "importers", "file"),
            ("called by", "callers", "place"),
            ("tested by", "tests", "test"),
        ] {
            let Some(listing) = reach.get(name) else { continue };
            let named: Vec<String> = listing
                .get("first")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(user_words)
                .collect();
            let total = listing.get("total").and_then(Value::as_u64).unwrap_or_default();
            let total = usize::try_from(total).unwrap_or(usize::MAX);
            if named.is_empty() {
                continue;
            }
            let shown = named.iter().take(MAX_USERS).cloned().collect::<Vec<_>>().join(", ");
            if total <= MAX_USERS {
                self.facts.push((fact, shown));
                continue;
            }
            self.facts.push((fact, format!("{}: {shown}, ...; m shows more", count(total, thing))));
            self.more.push(heading(format!("It is {fact}")));
            self.more.extend(named.iter().flat_map(|text| quoted(text)));
        }
    }

    fn reasons(&mut self, asked: &ApprovalQuestion) {
        for reason in &asked.reasons {
            self.facts.push(("because", visible(&reason.reason)));
        }
        if let Some(why) = &asked.no_preview {
            self.facts.push(("because", visible(&format!("there is no preview: {why}"))));
        }
        if !is_by_default(asked) && !asked.reasons.is_empty() {
            self.facts.push(("", "so it is asked each time".to_owned()));
        }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// What will happen, row by row; none is wider than the terminal.
    pub fn body_rows(&self, manner: TextStyle) -> Vec<String> {
        laid_out(&self.body, manner)
    }

    /// What else can be shown, row by row.
    pub fn more_rows(&self, manner: TextStyle) -> Vec<String> {
        let width = fact_width(manner);
        let long = self.facts.iter().filter(|(_, text)| broken(text, width).len() > MAX_FACT_ROWS);
        let long: Vec<Line> = long
            .flat_map(|(label, text)| {
                std::iter::once(heading(format!("{label}, in full"))).chain(quoted(text))
            })
            .collect();
        [laid_out(&long, manner), laid_out(&self.more, manner)].concat()
    }

    /// Where, why and with what: a few rows.
    pub fn fact_rows(&self, manner: TextStyle) -> Vec<String> {
        let width = fact_width(manner);
        let mut said = "";
        let mut shown = Vec::new();
        for (label, text) in &self.facts {
            // A name that repeats is said once.
            let name = if *label == said { "" } else { label };
            said = label;
            let all = broken(text, width);
            for (number, row) in all.iter().take(MAX_FACT_ROWS).enumerate() {
                let name = if number == 0 { name } else { "" };
                shown.push(format!("  {name:LABEL$} {row}").trim_end().to_owned());
            }
            if all.len() > MAX_FACT_ROWS {
                let left = count(all.len() - MAX_FACT_ROWS, "more row");
                let left = broken(&format!("{} {left}; m shows them", manner.charset.dots()), width);
                shown.extend(left.iter().map(|row| format!("  {:LABEL$} {row}", "")));
            }
        }
        shown
    }
}

/// Columns of a fact beside its name.
fn fact_width(manner: TextStyle) -> usize {
    manner.columns.saturating_sub(LABEL + 3).max(MIN_COLUMNS)
}

/// How much of differences is not shown, and where the rest can be seen: in the arguments, or nowhere.
fn cut_words(cut: &[&Value], arguments: Option<&Value>) -> String {
    let diffs: Vec<&str> = cut.iter().filter_map(|part| part.get("diff").and_then(Value::as_str)).collect();
    let missing = diffs.iter().fold(0_usize, |sum, diff| sum.saturating_add(missing_lines(diff)));
    // A file that comes or goes is one change; of several, those that are not in the text are not counted.
    let is_whole = |diff: &&str| diff.lines().take(2).any(|line| line.ends_with(" /dev/null"));
    let about = if diffs.len() == cut.len() && diffs.iter().all(is_whole) { "" } else { "at least " };
    let (words, them) = match missing {
        0 => ("not every difference is shown in full".to_owned(), "the rest"),
        1 => (format!("{about}1 line of the difference is not shown"), "it"),
        _ => (format!("{about}{missing} lines of the difference are not shown"), "they"),
    };
    let text = |name: &str| arguments.and_then(|fields| fields.get(name)).is_some();
    if text("content") {
        format!("{words}; m shows the arguments, with the whole new text")
    } else if NEW_TEXTS.iter().any(|name| text(name)) {
        format!("{words}; m shows the arguments, with what is new")
    } else {
        let look = if arguments.is_some() { "; read the file itself before you agree" } else { "" };
        format!("{words}, and {them} cannot be{look}")
    }
}

/// Lines that the last part of a difference announces and does not have.
fn missing_lines(diff: &str) -> usize {
    let lines = diff.lines();
    let Some(head) = lines.clone().rev().find(|line| line.starts_with("@@ ")) else { return 0 };
    let announced = |mark: char| {
        let range = head.split(' ').find_map(|word| word.strip_prefix(mark)).unwrap_or_default();
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse::<usize>().ok()).unwrap_or_default()
    };
    let shown = |mark: char| {
        let hunk = lines.clone().rev().take_while(|line| !line.starts_with("@@ "));
        hunk.filter(|line| line.starts_with([mark, ' '])).count()
    };
    ['-', '+'].map(|mark| announced(mark).saturating_sub(shown(mark))).iter().sum()
}

/// What happens to a file whose difference is not shown.
fn change_words(part: &Value) -> String {
    let word = |name: &str| part.get(name).and_then(Value::as_str);
    let is = |name: &str| part.get(name).and_then(Value::as_bool) == Some(true);
    let path = single_line(word("path").unwrap_or_default());
    match word("change") {
        Some(change) if word("diff").is_none() => {
            format!("`{path}` is {}; its difference is not shown", single_line(change))
        }
        Some("created") => format!("`{path}` is created, and empty"),
        Some("deleted") => format!("`{path}` is deleted, and was empty"),
        _ if is("removed") => format!("`{path}` is deleted"),
        _ if is("created") => format!("`{path}` is created, and empty"),
        _ => format!("`{path}` stays as it is"),
    }
}

/// That a file can be executed from now on, or not any more.
fn mode_words(part: &Value, executable: bool) -> String {
    let path = single_line(part.get("path").and_then(Value::as_str).unwrap_or_default());
    let can = if executable { "can be executed" } else { "cannot be executed any more" };
    format!("`{path}` {can}")
}

fn compact(value: &Value) -> String {
    let short = value.to_string();
    if short.chars().nth(MAX_COMPACT).is_none() { short } else { pretty(value) }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

/// A file, or a symbol with its file.
fn user_words(user: &Value) -> String {
    let text = |name: &str| user.get(name).and_then(Value::as_str).map(single_line);
    match (user.as_str(), text("symbol"), text("path")) {
        (Some(path), ..) => single_line(path),
        (None, Some(symbol), Some(path)) => format!("{symbol} ({path})"),
        (None, _, path) => path.unwrap_or_default(),
    }
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
                Access::Append => "append to",
            };
            let name = if path.is_root() { "." } else { path.as_str() };
            Some(format!("{done} {} ({})", single_line(name), root(*place)))
        }
        Target::Host { host } => Some(format!("the host {}", single_line(host))),
        Target::Network => Some("the whole network".to_owned()),
        Target::Statement { kinds, .. } => {
            Some(format!("the database ({})", single_line(&kinds.join(", ").to_uppercase())))
        }
        Target::UpstreamTool { server, tool } => {
            Some(format!("the tool {} of the server {}", single_line(tool), single_line(server)))
        }
        Target::Secret { name } => Some(format!("the secret {}", single_line(name))),
        Target::HostTool { name } => Some(format!("the host tool {}", single_line(name))),
        Target::Branch { name } => Some(format!("the branch {}", single_line(name))),
        Target::Limits(asked) => Some(format!("more than the usual limits: {asked}")),
        Target::Command { .. } => None,
    }
}
