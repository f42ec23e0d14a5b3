//! What a repository says must hold: named questions to the graph, and what their answers must be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use tgp_contract::{Code, Severity, SourceLocation, ToolError};
use tgp_text::LineCol;
use tgp_text::yaml::{self, YamlError, YamlErrorKind, YamlLimits, location};

use crate::templates::{Ownership, Size, Template};
use crate::undecided::{Dependence, IgnoredFiles};

/// The version of the file that this build reads.
const VERSION: u64 = 1;
/// Each costs a query before every write; a repository with more needs its own tool.
pub const MAX_INVARIANTS: usize = 200;
/// A file of the most invariants, each with a long query, is smaller.
const MAX_FILE_BYTES: usize = 1 << 20;
/// A query that a person wrote fits; the graph has its own bound.
const MAX_QUERY_BYTES: usize = 16 * 1024;
/// What fits into a line of an error.
const MAX_NAME_BYTES: usize = 100;
const MAX_MESSAGE_BYTES: usize = 1_000;
/// A name of a revision; git's own are shorter.
const MAX_REVISION_BYTES: usize = 256;
/// How long an invariant may take, in milliseconds; the graph's own limit may be lower.
const TIMES: std::ops::RangeInclusive<u64> = 1..=600_000;
/// Parameters are flat or nearly so. A file of the largest size holds fewer values unless it is made of brackets.
const LIMITS: YamlLimits = YamlLimits { depth: 16, nodes: 50_000 };

/// The parameters that every query gets, whatever the file says.
pub(super) const OWN_PARAMETERS: [&str; 3] = ["changed", "added", "deleted"];

/// What the answer to an invariant's query must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// No row: each one is a fault.
    None,
    /// At least one row.
    Rows,
    /// Every row that was there before is there after.
    Kept,
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Invariant {
    pub name: String,
    pub query: String,
    pub expect: Expect,
    pub severity: Severity,
    /// The reason, for the author of a change that breaks it.
    pub message: String,
    pub params: Map<String, Value>,
    /// With [`Expect::Kept`]: the revision whose rows must still be there.
    pub since: Option<String>,
    /// How long its query may take, in milliseconds; the graph's own limit where there is none.
    pub timeout_ms: Option<u64>,
    /// What has to be there so that the rule says anything, where it was written without a query.
    pub(super) probes: Option<Vec<Probe>>,
    /// The files whose content its answer can depend on.
    pub(super) dependence: Dependence,
    /// Where the query is in the file; none for an assertion that is not in a file.
    pub(super) place: Option<QueryPlace>,
}

/// A question whether there is something that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// What is looked for.
    pub(super) shown: String,
    /// It has a row where that is there.
    pub(super) query: String,
}

/// Where a query begins in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryPlace {
    file: String,
    line: u32,
    column: u32,
    /// Whether each line of the query is a line of the file, from this column on.
    is_block: bool,
    /// Whether the first line of the query is in the file unchanged.
    is_plain: bool,
}

impl QueryPlace {
    fn new(file: &str, text: &str, location: LineCol) -> Self {
        let LineCol { line, column } = location;
        let place = Self { file: file.to_owned(), line, column, is_block: false, is_plain: false };
        let above = usize::try_from(line - 1).unwrap_or(usize::MAX);
        // The text of a block begins below the line that opens it, after empty lines that are part of the query.
        let opening = text.lines().take(above).enumerate().filter(|(_, line)| !line.trim().is_empty()).last();
        let opens = opening.and_then(|(at, line)| Some((at, line.trim_start().split_once("query:")?.1)));
        let opens = opens.map(|(at, rest)| (at, rest.trim_start().chars().next()));
        match opens {
            Some((at, Some('|'))) => {
                // The parser's column is where the block is moved in to.
                let LineCol { line, .. } = LineCol::from_parser(at as u64 + 2, 1);
                return Self { line, is_block: true, is_plain: true, ..place };
            }
            // How folded lines were joined is not known any more.
            Some((_, Some('>'))) => return place,
            Some(_) | None => {}
        }
        let before = usize::try_from(column - 1).unwrap_or(usize::MAX);
        match text.lines().nth(above).and_then(|line| line.chars().nth(before)) {
            // Nor are escapes.
            Some('"') | None => place,
            Some('\'') => Self { column: column.saturating_add(1), is_plain: true, ..place },
            Some(_) => Self { is_plain: true, ..place },
        }
    }

    /// The place in the file of a place in the query; its beginning where that is unknown.
    pub(super) fn of(&self, inner: Option<&SourceLocation>) -> SourceLocation {
        let (line, column) = match inner {
            Some(inner) if self.is_block || (self.is_plain && inner.line == 1) => (
                self.line.saturating_add(inner.line.saturating_sub(1)),
                self.column.saturating_add(inner.column.saturating_sub(1)),
            ),
            Some(_) | None => (self.line, self.column),
        };
        SourceLocation { file: self.file.clone(), line, column }
    }
}

impl Invariant {
    /// Whether the query asks about the change itself.
    pub(super) fn asks_about_change(&self) -> bool {
        OWN_PARAMETERS.iter().any(|name| self.query.contains(&format!("${name}")))
    }
}

/// All that must hold in a repository, in the order of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invariants {
    all: Vec<Invariant>,
    /// Files that are known to be unreadable.
    pub(super) unread: IgnoredFiles,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u64>,
    /// For every invariant that has none of its own.
    #[serde(default, rename = "timeoutMs")]
    timeout_ms: Option<Spanned<u64>>,
    #[serde(default)]
    unread: Option<UnreadEntry>,
    #[serde(default)]
    invariants: Vec<Entry>,
}

/// What is known of files that cannot be read completely.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnreadEntry {
    /// Files that make no invariant undecided.
    ignore: Spanned<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Spanned<String>,
    #[serde(default)]
    query: Option<Spanned<String>>,
    #[serde(default)]
    layers: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    cycles: Option<Spanned<String>>,
    #[serde(default, rename = "publicApi")]
    public_api: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    ownership: Option<Spanned<Ownership>>,
    #[serde(default)]
    size: Option<Spanned<Size>>,
    #[serde(default)]
    expect: Option<Spanned<Expect>>,
    #[serde(default = "error")]
    severity: Severity,
    #[serde(default)]
    message: Option<Spanned<String>>,
    #[serde(default)]
    params: Option<Spanned<Map<String, Value>>>,
    #[serde(default)]
    since: Option<Spanned<String>>,
    #[serde(default, rename = "timeoutMs")]
    timeout_ms: Option<Spanned<u64>>,
}

fn error() -> Severity {
    Severity::Error
}

impl Invariants {
    /// Reads `.sage/invariants.yml`. An empty file has none.
    ///
    /// # Errors
    /// `ECONFIG` with the place of the first problem.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, ToolError> {
        let fault = |location: LineCol, message: String| Fault { file: file_name, location, message };
        if text.len() > MAX_FILE_BYTES {
            let message =
                format!("the file has {} bytes, more than the {MAX_FILE_BYTES} allowed", text.len());
            return Err(fault(LineCol::START, message).help("keep fewer and shorter invariants"));
        }
        if yaml::is_empty(text) {
            return Ok(Self::default());
        }
        let file: File = yaml::read(text, LIMITS).map_err(|error| unreadable(file_name, error))?;
        if file.version.value != VERSION {
            let message = format!("version {} is not known", file.version.value);
            return Err(fault(location(&file.version), message).help(format!("write `version: {VERSION}`")));
        }
        if file.invariants.len() > MAX_INVARIANTS {
            let message = format!("there are {} invariants, at most {MAX_INVARIANTS}", file.invariants.len());
            return Err(fault(LineCol::START, message).help("put several rules into one query"));
        }
        let usual = time(file_name, file.timeout_ms.as_ref())?;
        let mut all: Vec<Invariant> = Vec::with_capacity(file.invariants.len());
        let mut names = BTreeMap::new();
        for entry in file.invariants {
            let place = location(&entry.name);
            let mut invariant = entry.check(file_name, text)?;
            invariant.timeout_ms = invariant.timeout_ms.or(usual);
            if let Some(first) = names.insert(invariant.name.clone(), place.line) {
                let message =
                    format!("`{}` is the name of the invariant at line {first} already", invariant.name);
                return Err(fault(place, message).help("give each invariant a name of its own"));
            }
            all.push(invariant);
        }
        let unread = match file.unread {
            None => IgnoredFiles::default(),
            Some(UnreadEntry { ignore }) => {
                let at = location(&ignore);
                IgnoredFiles::parse(ignore.value)
                    .map_err(|(message, help)| fault(at, format!("`unread`: {message}")).help(help))?
            }
        };
        Ok(Self { all, unread })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Invariant> {
        self.all.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Invariant> {
        self.all.iter().find(|invariant| invariant.name == name)
    }
}

/// A limit of time within its bounds.
fn time(file: &str, written: Option<&Spanned<u64>>) -> Result<Option<u64>, ToolError> {
    match written {
        Some(time) if !TIMES.contains(&time.value) => {
            let message = format!("`timeoutMs` is {}", time.value);
            let help = format!("write milliseconds from {} to {}", TIMES.start(), TIMES.end());
            Err(Fault { file, location: location(time), message }.help(help))
        }
        written => Ok(written.map(|time| time.value)),
    }
}

/// Refuses a text that is empty or too long.
fn bounded(file: &str, field: &str, text: &Spanned<String>, most: usize) -> Result<(), ToolError> {
    let fault = |message: String| Fault { file, location: location(text), message };
    if text.value.trim().is_empty() {
        return Err(fault(format!("`{field}` is empty")).help("say what it is"));
    }
    if text.value.len() > most {
        let message = format!("`{field}` has {} bytes, more than {most}", text.value.len());
        return Err(fault(message).help("make it shorter"));
    }
    Ok(())
}

impl Entry {
    fn check(mut self, file: &str, source: &str) -> Result<Invariant, ToolError> {
        let fault = |location: LineCol, message: String| Fault { file, location, message };
        bounded(file, "name", &self.name, MAX_NAME_BYTES)?;
        if let Some(message) = &self.message {
            bounded(file, "message", message, MAX_MESSAGE_BYTES)?;
        }
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
        if !self.name.value.chars().all(fits) {
            let message = format!("`{}` is not a name of an invariant", self.name.value.escape_debug());
            return Err(fault(location(&self.name), message)
                .help("use letters, digits, `-`, `_`, `.` and `/`, such as `domain-knows-no-web`"));
        }
        let timeout_ms = time(file, self.timeout_ms.as_ref())?;
        let templates = self.templates();
        let invariant = match (self.query.take(), templates.as_slice()) {
            (Some(query), []) => self.of_query(file, source, query)?,
            (None, [(at, template)]) => self.of_template(file, *at, template.clone())?,
            (None, []) => {
                return Err(fault(location(&self.name), format!("`{}` has no rule", self.name.value)).help(
                    "write a `query`, or one of `layers`, `cycles`, `publicApi`, `ownership` and `size`",
                ));
            }
            (_, [.., (at, _)]) => {
                return Err(fault(*at, format!("`{}` has more than one rule", self.name.value))
                    .help("make an invariant of each"));
            }
        };
        Ok(Invariant { timeout_ms, ..invariant })
    }

    /// The rules that need no query, with their places.
    fn templates(&mut self) -> Vec<(LineCol, Template)> {
        let mut found = Vec::new();
        if let Some(layers) = self.layers.take() {
            found.push((location(&layers), Template::Layers(layers.value)));
        }
        if let Some(folder) = self.cycles.take() {
            found.push((location(&folder), Template::Cycles(folder.value)));
        }
        if let Some(files) = self.public_api.take() {
            found.push((location(&files), Template::PublicApi(files.value)));
        }
        if let Some(ownership) = self.ownership.take() {
            found.push((location(&ownership), Template::Ownership(ownership.value)));
        }
        if let Some(size) = self.size.take() {
            found.push((location(&size), Template::Size(size.value)));
        }
        found
    }

    fn of_query(self, file: &str, source: &str, query: Spanned<String>) -> Result<Invariant, ToolError> {
        let fault = |location: LineCol, message: String| Fault { file, location, message };
        bounded(file, "query", &query, MAX_QUERY_BYTES)?;
        let missing =
            |field: &str, help: &str| fault(location(&self.name), format!("`{field}` is missing")).help(help);
        let Some(expect) = self.expect else {
            return Err(missing("expect", "add `expect:` with none, rows or kept"));
        };
        let Some(message) = &self.message else {
            return Err(missing(
                "message",
                "add `message:` with the reason, for those whose change is refused",
            ));
        };
        if let Some(since) = &self.since {
            bounded(file, "since", since, MAX_REVISION_BYTES)?;
            if expect.value != Expect::Kept {
                return Err(fault(
                    location(since),
                    "`since` has a meaning only with `expect: kept`".to_owned(),
                )
                .help("write `expect: kept`, or leave `since` out"));
            }
        }
        if let Some(params) = &self.params
            && let Some(taken) = OWN_PARAMETERS.iter().find(|name| params.value.contains_key(**name))
        {
            return Err(fault(location(params), format!("`{taken}` is given by the Guardian itself"))
                .help("use another name for your parameter"));
        }
        Ok(Invariant {
            place: Some(QueryPlace::new(file, source, location(&query))),
            message: message.value.trim().to_owned(),
            name: self.name.value,
            dependence: Dependence::of_query(&query.value),
            query: query.value,
            expect: expect.value,
            severity: self.severity,
            params: self.params.map(|params| params.value).unwrap_or_default(),
            since: self.since.map(|since| since.value),
            timeout_ms: None,
            probes: None,
        })
    }

    fn of_template(self, file: &str, at: LineCol, template: Template) -> Result<Invariant, ToolError> {
        let fault = |location: LineCol, message: String| Fault { file, location, message };
        let takes_since = matches!(template, Template::PublicApi(_));
        let foreign = [
            ("expect", self.expect.as_ref().map(location)),
            ("params", self.params.as_ref().map(location)),
            ("since", self.since.as_ref().map(location).filter(|_| !takes_since)),
        ];
        for (field, written) in foreign {
            if let Some(written) = written {
                let message = format!("`{field}` has no meaning in a rule without a query");
                return Err(fault(written, message).help("leave it out, or write the rule as a query"));
            }
        }
        if let Some(since) = &self.since {
            bounded(file, "since", since, MAX_REVISION_BYTES)?;
        }
        let rule = template.rule().map_err(|(message, help)| fault(at, message).help(help))?;
        let LineCol { line, column } = at;
        let place = QueryPlace { file: file.to_owned(), line, column, is_block: false, is_plain: false };
        Ok(Invariant {
            name: self.name.value,
            query: rule.query,
            expect: rule.expect,
            severity: self.severity,
            message: self.message.map_or(rule.message, |message| message.value.trim().to_owned()),
            params: rule.params,
            since: self.since.map(|since| since.value),
            timeout_ms: None,
            probes: Some(rule.probes),
            dependence: rule.dependence,
            place: Some(place),
        })
    }
}

/// A problem at a place, which still lacks the next step.
struct Fault<'a> {
    file: &'a str,
    location: LineCol,
    message: String,
}

impl Fault<'_> {
    fn help(self, help: impl Into<String>) -> ToolError {
        let place = self.location.in_file(self.file);
        ToolError::new(Code::Config, format!("{place}: {}", self.message)).place(&place).help(help)
    }
}

/// What the parser says of a file, with what helps people who write queries.
fn unreadable(file: &str, error: YamlError) -> ToolError {
    let YamlError { location, kind, message, help } = error;
    let fault = Fault { file, location, message };
    match kind {
        YamlErrorKind::Malformed => {
            fault.help(format!("{help}; write a query that holds a colon as a block, `query: |`"))
        }
        YamlErrorKind::MissingField("version") => {
            fault.help(format!("begin the file with `version: {VERSION}`"))
        }
        _ => fault.help(help),
    }
}
