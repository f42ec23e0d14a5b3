//! A halt: an invariant does not hold, so all work stops until a person has checked it.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{ChronicleEvent, Code, EventActor, RelativePath, Severity, ToolError, canonical};

use crate::claims::{AGREEMENT, Contradiction, Memory, Scope};
use crate::guardian::own_chronicle;
use crate::judge::{Broken, InvariantAnswers};
use crate::undecided::{Dependence, UndecidedInvariant};
use crate::{Expect, GUARDIAN_CHRONICLE, Guardian, Invariant, Invariants, MAX_INVARIANTS};

const HALT: &str = "HALT";
const HALT_LIFTED: &str = "HALT_LIFTED";

/// Events of the Guardian's own chronicle that are read: all there are, or the open halts would be unknown. The
/// chronicle bounds the bytes, and a read that is refused denies.
const MAX_OWN_EVENTS: usize = 1_000_000;

/// Files that the message of a halt names.
const MAX_NAMED: usize = 3;

/// Something that a caller wants to hold now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Assertion {
    pub cypher: String,
    /// Whether there must be rows, or none.
    pub expect_rows: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

impl Assertion {
    #[must_use]
    pub fn new(cypher: impl Into<String>, expect_rows: bool) -> Self {
        Self { cypher: cypher.into(), expect_rows, params: Map::new() }
    }

    /// The same as an invariant, whose name is its query.
    fn as_invariant(&self) -> Invariant {
        Invariant {
            name: self.cypher.clone(),
            query: self.cypher.clone(),
            expect: if self.expect_rows { Expect::Rows } else { Expect::None },
            severity: Severity::Error,
            message: String::new(),
            params: self.params.clone(),
            since: None,
            timeout_ms: None,
            probes: None,
            dependence: Dependence::of_query(&self.cypher),
            place: None,
        }
    }
}

/// What a check of everything that must hold has found, where nothing is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InvariantCheck {
    /// Invariants and assertions that were checked; warnings count.
    pub defined: usize,
    /// Those that neither hold nor are broken.
    pub undecided: Vec<UndecidedInvariant>,
}

impl InvariantCheck {
    /// Whether the check could not decide about something.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }
}

/// What a check has found, with the first thing that is broken.
pub(super) struct FirstBreak {
    pub(super) broken: Option<BrokenInvariant>,
    pub(super) check: InvariantCheck,
}

impl From<Option<BrokenInvariant>> for FirstBreak {
    fn from(broken: Option<BrokenInvariant>) -> Self {
        Self { broken, check: InvariantCheck::default() }
    }
}

/// A halt that is not lifted yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Halt {
    /// The HALT event in the Guardian's chronicle.
    pub event_id: String,
    pub timestamp: String,
    pub invariant: String,
    pub expected: String,
    pub actual: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What was broken, in a sentence; halts of older versions have none.
    #[serde(skip)]
    said: String,
    /// Distinguishes one break of an invariant from another.
    #[serde(skip)]
    evidence: String,
    /// The assertion that was broken, where it is not in a file.
    #[serde(skip)]
    pub(super) assertion: Option<Assertion>,
}

impl Halt {
    fn of(event: &ChronicleEvent) -> Self {
        let text = |name: &str| event.fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let assertion = event.fields.get("assertion").cloned();
        Self {
            event_id: event.event_id.clone().unwrap_or_default(),
            timestamp: event.timestamp.clone(),
            invariant: text("invariant"),
            expected: text("expected"),
            actual: text("actual"),
            file: event.file_path.clone(),
            said: text("said"),
            evidence: text("evidence"),
            assertion: assertion.and_then(|value| serde_json::from_value(value).ok()),
        }
    }

    /// What a call is refused with while it is in force.
    #[must_use]
    pub fn error(&self) -> ToolError {
        let said = if self.said.is_empty() {
            format!("`{}` does not hold: expected {}, found {}", self.invariant, self.expected, self.actual)
        } else {
            self.said.clone()
        };
        let message = format!("work is halted since {}: {said}", self.timestamp);
        halted(message, &self.invariant, &self.expected, &self.actual, self.file.as_deref())
    }
}

/// Something that does not hold.
#[derive(Clone, Debug)]
pub(super) struct BrokenInvariant {
    pub(super) invariant: String,
    pub(super) expected: String,
    pub(super) actual: String,
    pub(super) file: Option<String>,
    /// The same in a sentence.
    said: String,
    evidence: String,
    rows: Vec<Value>,
    assertion: Option<Assertion>,
}

impl BrokenInvariant {
    fn of_invariant(broken: &Broken, assertion: Option<Assertion>) -> Self {
        let mut files: Vec<String> = Vec::new();
        for row in &broken.rows {
            let fields = row.value.as_object().into_iter().flat_map(Map::values);
            if let Some(file) = fields.filter_map(path_of).next().filter(|file| !files.contains(file)) {
                files.push(file);
            }
        }
        let (name, expected, actual) = (&broken.invariant.name, broken.expected(), broken.actual());
        let mut said = format!("`{name}` does not hold: expected {expected}, found {actual}");
        if !files.is_empty() {
            said = format!("{said} ({})", named(&files));
        }
        if !broken.invariant.message.is_empty() {
            said = format!("{said}. {}", broken.invariant.message);
        }
        // Which rows of too many are there says nothing.
        let evidence = if broken.cut { json!("cut") } else { json!(broken.fingerprints()) };
        Self {
            invariant: name.clone(),
            expected,
            actual,
            file: files.into_iter().next(),
            said,
            evidence: canonical::hash_exact(evidence),
            rows: broken.shown(),
            assertion,
        }
    }

    pub(super) fn of_contradiction(contradiction: &Contradiction) -> Self {
        Self {
            invariant: AGREEMENT.to_owned(),
            expected: contradiction.expected(),
            actual: contradiction.actual(),
            file: Some(contradiction.path.as_str().to_owned()),
            said: contradiction.sentence(),
            evidence: canonical::hash_exact(json!([
                contradiction.path.as_str(),
                contradiction.claim.event_id
            ])),
            rows: Vec::new(),
            assertion: None,
        }
    }

    pub(super) fn error(&self) -> ToolError {
        let error =
            halted(self.said.clone(), &self.invariant, &self.expected, &self.actual, self.file.as_deref());
        if self.rows.is_empty() { error } else { error.detail("rows", self.rows.clone()) }
    }
}

/// The first files of a message, and how many more there are.
fn named(files: &[String]) -> String {
    let shown: Vec<&str> = files.iter().take(MAX_NAMED).map(String::as_str).collect();
    match files.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The path in a value of a row: the text itself, or the property of a node.
fn path_of(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value.get("path").and_then(Value::as_str))?;
    let is_path = (text.contains('/') || text.contains('.')) && !text.contains(char::is_whitespace);
    (is_path && RelativePath::new(text).is_ok()).then(|| text.to_owned())
}

/// The error of every halt, with what a program and a person need.
fn halted(message: String, invariant: &str, expected: &str, actual: &str, file: Option<&str>) -> ToolError {
    let error = ToolError::new(Code::Halt, message)
        .detail("invariant", invariant)
        .detail("expected", expected)
        .detail("actual", actual);
    let named = file.map_or_else(|| "FILE".to_owned(), shell_word);
    let help = if invariant == AGREEMENT {
        format!(
            "bring the file back to what the chronicle says and run `tgp guardian assert`, or accept what is there with \
             `tgp guardian reconcile {named}`"
        )
    } else {
        format!(
            "repair it and run `tgp guardian assert`, or accept it as it is with \
             `tgp guardian reconcile {named} --invariant {}`",
            shell_word(invariant)
        )
    };
    let error = error.help(help);
    match file {
        Some(file) => error.detail("file", file),
        None => error,
    }
}

/// A word that a shell takes literally.
fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

impl Guardian {
    /// Checks the assertions, the file's invariants and that chronicle and graph agree. What passes lifts a halt; what is
    /// undecided neither halts nor lifts.
    ///
    /// # Errors
    /// `EHALT` with `invariant`, `expected` and `actual` for the first that is broken, and an event in the Guardian's
    /// chronicle. Other codes when it could not be found out.
    pub async fn bullet_wound_check(&self, assertions: &[Assertion]) -> Result<InvariantCheck, ToolError> {
        let open = self.open_halts().await?;
        let FirstBreak { broken, check } = self.first_break(assertions, &open).await?;
        match broken {
            Some(broken) => {
                let error = broken.error();
                Err(match self.record_halt(&broken).await {
                    Ok(()) => error,
                    // That it could not be written down makes it no better.
                    Err(unwritten) => error.detail("unrecorded", unwritten.message),
                })
            }
            None => self.lift(&decided(open, &check)).await.map(|_| check),
        }
    }

    /// The newest halt that is in force.
    ///
    /// # Errors
    /// When the Guardian's chronicle cannot be read.
    pub async fn halted(&self) -> Result<Option<Halt>, ToolError> {
        let revision = self.parts.chronicle.revision(&own_chronicle()?);
        let known = || self.known_halt.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((seen, halt)), Some(revision)) = (&*known(), &revision)
            && seen == revision
        {
            return Ok(halt.clone());
        }
        let halt = self.open_halts().await?.pop();
        // What was appended since has another revision, and is read then.
        *known() = revision.map(|revision| (revision, halt.clone()));
        Ok(halt)
    }

    /// Every halt that is not lifted, oldest first.
    pub(super) async fn open_halts(&self) -> Result<Vec<Halt>, ToolError> {
        let events = self.own_events().await?;
        let lifted: BTreeSet<&str> = events
            .iter()
            .filter(|event| event.kind == HALT_LIFTED)
            .filter_map(|event| event.fields.get("halt").and_then(Value::as_str))
            .collect();
        let halts = events.iter().filter(|event| event.kind == HALT).map(Halt::of);
        Ok(halts.filter(|halt| !lifted.contains(halt.event_id.as_str())).collect())
    }

    /// The Guardian's own events, all of them.
    pub(super) async fn own_events(&self) -> Result<Vec<ChronicleEvent>, ToolError> {
        let events = self.parts.chronicle.tail(&own_chronicle()?, MAX_OWN_EVENTS).await?;
        if events.len() < MAX_OWN_EVENTS {
            return Ok(events);
        }
        let message = format!("`{GUARDIAN_CHRONICLE}` has too many events to tell whether work is halted");
        Err(ToolError::new(Code::Budget, message)
            .help("look at what has grown it with `tgp chronicle verify`, and set it aside by hand"))
    }

    /// What a check would halt with; nothing is written down.
    pub(crate) async fn wound(&self) -> Result<Option<ToolError>, ToolError> {
        let open = self.open_halts().await?;
        Ok(self.first_break(&[], &open).await?.broken.map(|broken| broken.error()))
    }

    /// The first thing that does not hold, always in the same order: what the caller asserts, what the open halts were
    /// about, the invariants of the file, the files of which chronicle and graph disagree.
    pub(super) async fn first_break(
        &self,
        assertions: &[Assertion],
        open: &[Halt],
    ) -> Result<FirstBreak, ToolError> {
        if assertions.len() > MAX_INVARIANTS {
            let message = format!("there are {} assertions, at most {MAX_INVARIANTS}", assertions.len());
            return Err(ToolError::new(Code::Validation, message).help("check them in several calls"));
        }
        let memory = self.remember(Scope::All).await?;
        // A check that does not repeat the assertion which halted the work must not lift the halt.
        let mut all: Vec<&Assertion> = assertions.iter().collect();
        for halting in open.iter().filter_map(|halt| halt.assertion.as_ref()) {
            if !all.contains(&halting) {
                all.push(halting);
            }
        }
        let assertions = all;
        let known = self.invariants()?;
        let answers = self.broken_assertions(&assertions, &known).await?;
        let mut check =
            InvariantCheck { defined: assertions.len() + known.len(), undecided: answers.undecided };
        for broken in answers.broken {
            let assertion = assertions.iter().find(|one| one.as_invariant() == broken.invariant);
            let assertion = assertion.map(|one| (*one).clone());
            if let Some(broken) = unaccepted(broken, &memory) {
                return Ok(Some(BrokenInvariant::of_invariant(&broken, assertion)).into());
            }
        }
        let strict: Vec<Invariant> =
            known.iter().filter(|invariant| invariant.severity == Severity::Error).cloned().collect();
        let answers = self.broken_now(&strict, &known).await?;
        for broken in answers.broken {
            if let Some(broken) = unaccepted(broken, &memory) {
                return Ok(Some(BrokenInvariant::of_invariant(&broken, None)).into());
            }
        }
        check.undecided.extend(answers.undecided);
        let broken =
            self.contradictions(&memory.claims).await?.first().map(BrokenInvariant::of_contradiction);
        Ok(FirstBreak { broken, check })
    }

    /// The assertions that do not hold, and those that are undecided, in order.
    pub(super) async fn broken_assertions(
        &self,
        assertions: &[&Assertion],
        known: &Invariants,
    ) -> Result<InvariantAnswers, ToolError> {
        let asserted: Vec<Invariant> = assertions.iter().map(|one| one.as_invariant()).collect();
        self.broken_now(&asserted, known).await
    }

    /// Writes down a halt, unless the same one is in force.
    async fn record_halt(&self, broken: &BrokenInvariant) -> Result<(), ToolError> {
        let _writing = self.writing.lock().await;
        let is_same = |halt: &Halt| halt.invariant == broken.invariant && halt.evidence == broken.evidence;
        if self.open_halts().await?.iter().any(is_same) {
            return Ok(());
        }
        let mut fields = Map::new();
        fields.insert("invariant".to_owned(), json!(broken.invariant));
        fields.insert("expected".to_owned(), json!(broken.expected));
        fields.insert("actual".to_owned(), json!(broken.actual));
        fields.insert("said".to_owned(), json!(broken.said));
        fields.insert("evidence".to_owned(), json!(broken.evidence));
        if let Some(assertion) = &broken.assertion {
            fields.insert("assertion".to_owned(), json!(assertion));
        }
        let event = self.event(HALT, "bullet-wound-check", broken.file.clone(), fields);
        self.parts.chronicle.append(&own_chronicle()?, event).await.map(|_| ())
    }

    /// Lifts the halts that were checked, unless they are already lifted, and returns whether there was one. A halt
    /// that came after the check stays.
    pub(super) async fn lift(&self, checked: &[Halt]) -> Result<bool, ToolError> {
        if checked.is_empty() {
            return Ok(false);
        }
        let _writing = self.writing.lock().await;
        let mut lifted = false;
        for halt in self.open_halts().await? {
            if !checked.iter().any(|one| one.event_id == halt.event_id) {
                continue;
            }
            let mut fields = Map::new();
            fields.insert("halt".to_owned(), json!(halt.event_id));
            fields.insert("invariant".to_owned(), json!(halt.invariant));
            let event = self.event(HALT_LIFTED, "bullet-wound-check", halt.file, fields);
            self.parts.chronicle.append(&own_chronicle()?, event).await?;
            lifted = true;
        }
        Ok(lifted)
    }

    pub(super) fn event(
        &self,
        kind: &str,
        id: &str,
        file: Option<String>,
        fields: Map<String, Value>,
    ) -> ChronicleEvent {
        ChronicleEvent {
            event_id: None,
            kind: kind.to_owned(),
            timestamp: self.now(),
            actor: EventActor { agent: "guardian".to_owned(), id: id.to_owned() },
            file_path: file,
            fields,
        }
    }
}

/// The halts that a check without a break has decided about.
pub(super) fn decided(open: Vec<Halt>, check: &InvariantCheck) -> Vec<Halt> {
    let is_decided =
        |halt: &Halt| !check.undecided.iter().any(|undecided| undecided.invariant == halt.invariant);
    open.into_iter().filter(is_decided).collect()
}

/// The part of a break that is not accepted.
pub(super) fn unaccepted(broken: Broken, memory: &Memory) -> Option<Broken> {
    match memory.accepted.get(&broken.invariant.name) {
        Some(accepted) => broken.unless_accepted(accepted),
        None => Some(broken),
    }
}
