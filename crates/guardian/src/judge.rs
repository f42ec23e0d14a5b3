//! Which invariants a change would break that are not broken already, and which are broken now.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tgp_contract::{Change, EntryKind, GraphRows, Severity, ToolError, Visibility, canonical};

use crate::messages::{count, thousands};
use crate::questions::{Asked, Row, question, rows, whole};
use crate::undecided::{self, UndecidedInvariant, UnreadFile, UnreadFiles};
use crate::{Expect, Guardian, Invariant, Invariants};

/// What is said of a violation of which nothing may be seen.
const CONCEALED: &str = "something in files that are hidden from this call";

/// Rows that are shown of one violation: enough to see what kind they are.
pub(super) const MAX_ROWS_SHOWN: usize = 10;

/// What a change would do to the invariants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The invariants that it would newly break or leave undecided.
    pub violations: Vec<Violation>,
    /// The invariants that are undecided before and after it.
    pub undecided: Vec<UndecidedInvariant>,
}

/// An invariant that a change would break, or that could not be decided any more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    pub invariant: String,
    pub severity: Severity,
    pub message: String,
    pub expected: String,
    pub actual: String,
    /// The rows that are wrong, or missing with [`Expect::Kept`]; the first few of them, by column.
    pub rows: Vec<Value>,
    /// How many there are.
    pub total: usize,
    /// Whether the change leaves it undecided instead of breaking it.
    pub undecided: bool,
    /// The files that could be read completely before the change.
    pub unread: Vec<UnreadFile>,
}

/// An invariant that does not hold, with every row that says so.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) invariant: Invariant,
    pub(super) rows: Vec<Row>,
    /// Whether there are more rows, which the graph has not given.
    pub(super) cut: bool,
    /// Whether all that breaks it is hidden from the caller: then there are no rows, and no number of them.
    pub(super) concealed: bool,
    /// Whether it is not known to be broken, and could be: files that its answer depends on could be read completely before.
    pub(super) undecided: bool,
    pub(super) unread: Vec<UnreadFile>,
}

/// What is known of invariants now.
#[derive(Default)]
pub(super) struct InvariantAnswers {
    pub(super) broken: Vec<Broken>,
    /// Undecided; a broken one is among them where more than its known rows could break it.
    pub(super) undecided: Vec<UndecidedInvariant>,
}

/// What a change does to invariants.
#[derive(Default)]
pub(super) struct ChangeAnswers {
    /// Newly broken or newly undecided.
    pub(super) broken: Vec<Broken>,
    /// Undecided before and after.
    pub(super) undecided: Vec<UndecidedInvariant>,
}

impl Broken {
    pub(super) fn of_rows(invariant: Invariant, rows: Vec<Row>) -> Self {
        Self { invariant, rows, cut: false, concealed: false, undecided: false, unread: Vec::new() }
    }

    fn of_unread(invariant: Invariant, unread: Vec<UnreadFile>) -> Self {
        Self { undecided: true, unread, ..Self::of_rows(invariant, Vec::new()) }
    }

    pub(super) fn expected(&self) -> String {
        if self.undecided {
            return "files that can be read completely".to_owned();
        }
        match (self.invariant.expect, &self.invariant.since) {
            (Expect::None, _) => "no rows".to_owned(),
            (Expect::Rows, _) => "rows".to_owned(),
            (Expect::Kept, None) => "every row that was there before".to_owned(),
            (Expect::Kept, Some(since)) => format!("every row that was there at {since}"),
        }
    }

    pub(super) fn actual(&self) -> String {
        if self.concealed {
            return CONCEALED.to_owned();
        }
        if self.undecided {
            return undecided::list_files(&self.unread, 0);
        }
        match (self.invariant.expect, self.rows.len()) {
            (Expect::Rows, _) => "no rows".to_owned(),
            (Expect::None, rows) if self.cut => format!("more than {}", count(rows, "row")),
            (Expect::None, rows) => count(rows, "row"),
            (Expect::Kept, 1) => "1 row is missing".to_owned(),
            (Expect::Kept, rows) => format!("{} rows are missing", thousands(rows)),
        }
    }

    /// The sentence about one row of it.
    pub(super) fn about_row(&self, row: &Row) -> String {
        let verb = if self.invariant.expect == Expect::Kept { "missing" } else { "found" };
        format!("expected {}, {verb} {}", self.expected(), row.value)
    }

    pub(super) fn shown(&self) -> Vec<Value> {
        self.rows.iter().take(MAX_ROWS_SHOWN).map(|row| row.value.clone()).collect()
    }

    /// What an acceptance of this covers: each row, or that there is none.
    pub(super) fn fingerprints(&self) -> BTreeSet<String> {
        match self.invariant.expect {
            Expect::Rows => BTreeSet::from([nothing()]),
            Expect::None | Expect::Kept => self.rows.iter().map(|row| row.fingerprint.clone()).collect(),
        }
    }

    /// Whether it is only undecided, by contents that the changes give: their author knows them, hidden or not.
    fn is_about_contents_of(&self, changes: &[Change]) -> bool {
        let is_given = |file: &UnreadFile| {
            changes.iter().any(|change| change.content().is_some() && change.path().as_str() == file.path)
        };
        self.undecided && self.unread.iter().all(is_given)
    }

    /// The same for a caller to whom only `seen` is visibly broken.
    fn concealed_unless(self, seen: &[Self]) -> Self {
        match seen.iter().find(|seen| seen.invariant.name == self.invariant.name) {
            Some(seen) => seen.clone(),
            None => Self { rows: Vec::new(), cut: false, concealed: true, unread: Vec::new(), ..self },
        }
    }

    /// The part of it that is not accepted, if any.
    pub(super) fn unless_accepted(mut self, accepted: &BTreeSet<String>) -> Option<Self> {
        if self.invariant.expect == Expect::Rows {
            return (!accepted.contains(&nothing())).then_some(self);
        }
        if !self.cut {
            self.rows.retain(|row| !accepted.contains(&row.fingerprint));
        }
        (!self.rows.is_empty()).then_some(self)
    }
}

/// The fingerprint of an answer without rows.
fn nothing() -> String {
    canonical::hash_exact(json!("no rows"))
}

impl From<&Broken> for Violation {
    fn from(broken: &Broken) -> Self {
        Self {
            invariant: broken.invariant.name.clone(),
            severity: broken.invariant.severity,
            message: broken.invariant.message.clone(),
            expected: broken.expected(),
            actual: broken.actual(),
            rows: broken.shown(),
            total: broken.rows.len(),
            undecided: broken.undecided,
            unread: broken.unread.clone(),
        }
    }
}

/// Where the answers about one invariant are among all of them.
struct Places {
    /// With the paths of the change as parameters.
    with: usize,
    /// Without them, where that makes a difference.
    without: usize,
}

impl Guardian {
    /// What `changes` would do to the invariants. What is broken already does not count again.
    ///
    /// # Errors
    /// When the invariants cannot be read, or the graph cannot answer.
    pub async fn judge_changes(
        &self,
        changes: &[Change],
        visible: &Visibility,
    ) -> Result<Judgement, ToolError> {
        if changes.is_empty() {
            return Ok(Judgement::default());
        }
        let ChangeAnswers { broken, undecided } =
            self.newly_broken_seen_by(changes, &self.invariants()?, visible).await?;
        Ok(Judgement { violations: broken.iter().map(Violation::from).collect(), undecided })
    }

    /// What the changes break, judged by everything. Rows are those that would be there without what is hidden from
    /// the caller; where there are none, it is only said that it is broken.
    pub(super) async fn newly_broken_seen_by(
        &self,
        changes: &[Change],
        invariants: &Invariants,
        visible: &Visibility,
    ) -> Result<ChangeAnswers, ToolError> {
        let mut answers = self.newly_broken(changes, invariants, &Visibility::everything()).await?;
        let is_clear = answers.broken.is_empty() && answers.undecided.is_empty();
        if is_clear || visible.is_everything() || !self.parts.graph.hides(visible).await? {
            return Ok(answers);
        }
        // An invariant that cannot be asked so has nothing to show.
        let seen = self.newly_broken(changes, invariants, visible).await.unwrap_or_default();
        answers.broken = answers
            .broken
            .into_iter()
            .map(|broken| match broken.is_about_contents_of(changes) {
                true => broken,
                false => broken.concealed_unless(&seen.broken),
            })
            .collect();
        for undecided in &mut answers.undecided {
            undecided.conceal_unless(&seen.undecided);
        }
        Ok(answers)
    }

    async fn newly_broken(
        &self,
        changes: &[Change],
        invariants: &Invariants,
        visible: &Visibility,
    ) -> Result<ChangeAnswers, ToolError> {
        if invariants.is_empty() {
            return Ok(ChangeAnswers::default());
        }
        let paths = self.change_parameters(changes);
        let mut asked = self.unread_question(visible);
        let marks_unread = !asked.is_empty();
        let mut places = Vec::with_capacity(invariants.len());
        for invariant in invariants.iter() {
            let with = asked.len();
            asked.push(Asked::of(invariant, question(invariant, &paths)).seen_by(visible));
            let mut without = with;
            // Before the change nothing is changed. What must be kept is compared with the same question.
            if invariant.expect != Expect::Kept && invariant.asks_about_change() {
                without = asked.len();
                asked.push(Asked::of(invariant, question(invariant, &no_change())).seen_by(visible));
            }
            places.push(Places { with, without });
        }
        let answers = self.ask_both(changes, &asked).await?;
        let unread = |answer: &GraphRows| UnreadFiles::of(answer, invariants, visible);
        let (unread_before, unread_after) = match answers.first() {
            Some((before, after)) if marks_unread => (unread(before)?, unread(after)?),
            Some(_) => Default::default(),
            None => return Ok(ChangeAnswers::default()),
        };
        let mut found = ChangeAnswers::default();
        for (invariant, place) in invariants.iter().zip(places) {
            let (Some((before, _)), Some((_, after))) = (answers.get(place.without), answers.get(place.with))
            else {
                continue;
            };
            let undecided = unread_after.undecided(invariant);
            let new = unread_after.new_since(&unread_before, invariant);
            let mut rows = None;
            match invariant.expect {
                Expect::Rows => {
                    let was_undecided = unread_before.undecided(invariant).is_some();
                    let had_rows = !before.rows.is_empty() || (was_undecided && undecided.is_none());
                    if after.rows.is_empty() && had_rows {
                        rows = Some(Vec::new());
                    }
                }
                Expect::None => {
                    let more =
                        beyond(&whole_rows(after, &invariant.name)?, &whole_rows(before, &invariant.name)?);
                    rows = Some(more).filter(|rows| !rows.is_empty());
                }
                Expect::Kept => {
                    let mut missing =
                        beyond(&whole_rows(before, &invariant.name)?, &whole_rows(after, &invariant.name)?);
                    if invariant.since.is_some() {
                        let base = self.rows_since(invariant, &paths, visible).await?;
                        let base: BTreeSet<String> = base.values().map(|row| words(&row.value)).collect();
                        missing.retain(|row| base.contains(&words(&row.value)));
                    }
                    rows = Some(missing).filter(|rows| !rows.is_empty());
                }
            }
            // Rows that are missing may be in a file that the change makes unreadable; rows that are there are known.
            let is_known = invariant.expect == Expect::None || new.is_empty();
            match rows.filter(|_| is_known) {
                Some(rows) => found.broken.push(Broken::of_rows(invariant.clone(), rows)),
                None if !new.is_empty() => found.broken.push(Broken::of_unread(invariant.clone(), new)),
                None => found.undecided.extend(undecided),
            }
        }
        Ok(found)
    }

    /// The question for the files that were not read completely, of a graph that marks them.
    fn unread_question(&self, visible: &Visibility) -> Vec<Asked> {
        let marks = self.parts.graph.marks_unread_files();
        marks.then(|| undecided::question(visible)).into_iter().collect()
    }

    /// What is known of these invariants now, in their order.
    pub(super) async fn broken_now(
        &self,
        invariants: &[Invariant],
        known: &Invariants,
    ) -> Result<InvariantAnswers, ToolError> {
        if invariants.is_empty() {
            return Ok(InvariantAnswers::default());
        }
        let everything = Visibility::everything();
        let mut asked = self.unread_question(&everything);
        let marks_unread = !asked.is_empty();
        asked.extend(
            invariants.iter().map(|invariant| Asked::of(invariant, question(invariant, &no_change()))),
        );
        let mut answers = self.ask(&asked).await?.into_iter();
        let unread = match marks_unread.then(|| answers.next()).flatten() {
            Some(answer) => UnreadFiles::of(&answer, known, &everything)?,
            None => UnreadFiles::default(),
        };
        let mut found = InvariantAnswers::default();
        for (invariant, now) in invariants.iter().zip(answers) {
            let undecided = unread.undecided(invariant);
            let rows: Option<Vec<Row>> = match invariant.expect {
                Expect::Rows => now.rows.is_empty().then(Vec::new),
                // It is broken however many rows are missing from the answer.
                Expect::None => {
                    Some(rows(&now).into_values().collect()).filter(|rows: &Vec<Row>| !rows.is_empty())
                }
                // Without a change there is no before, unless the invariant names one.
                Expect::Kept if invariant.since.is_none() => None,
                Expect::Kept => {
                    let base = self.rows_since(invariant, &no_change(), &everything).await?;
                    let missing = beyond(&base, &whole_rows(&now, &invariant.name)?);
                    Some(missing).filter(|rows| !rows.is_empty())
                }
            };
            // Rows that are missing may be in a file that was not read.
            let is_known = invariant.expect == Expect::None || undecided.is_none();
            if let Some(rows) = rows.filter(|_| is_known) {
                let cut = invariant.expect == Expect::None && now.truncated;
                found.broken.push(Broken { cut, ..Broken::of_rows(invariant.clone(), rows) });
            }
            found.undecided.extend(undecided);
        }
        Ok(found)
    }

    async fn rows_since(
        &self,
        invariant: &Invariant,
        paths: &Map<String, Value>,
        visible: &Visibility,
    ) -> Result<BTreeMap<String, Row>, ToolError> {
        let since = invariant.since.clone().unwrap_or_default();
        let asked = Asked::of(invariant, question(invariant, paths).at(since)).seen_by(visible);
        let answer = self.parts.graph.query(asked.question.clone()).await;
        let answer = answer.map_err(|error| asked.named_in(error))?;
        whole_rows(&answer, &invariant.name)
    }

    /// The paths of a change, as every query gets them.
    fn change_parameters(&self, changes: &[Change]) -> Map<String, Value> {
        let (mut changed, mut added, mut deleted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for change in changes {
            let path = change.path();
            // The last change of a file is the one that counts.
            for set in [&mut changed, &mut added, &mut deleted] {
                set.remove(path.as_str());
            }
            let is_there =
                matches!(self.parts.files.entry(path), Ok(Some(entry)) if entry.kind == EntryKind::File);
            match change {
                Change::Write { .. } if is_there => changed.insert(path.as_str()),
                Change::Write { .. } => added.insert(path.as_str()),
                Change::Remove { .. } => deleted.insert(path.as_str()),
            };
        }
        parameters([json!(changed), json!(added), json!(deleted)])
    }
}

fn parameters(lists: [Value; 3]) -> Map<String, Value> {
    crate::invariants::OWN_PARAMETERS.iter().map(|name| (*name).to_owned()).zip(lists).collect()
}

pub(super) fn no_change() -> Map<String, Value> {
    parameters([json!([]), json!([]), json!([])])
}

fn whole_rows(answer: &GraphRows, name: &str) -> Result<BTreeMap<String, Row>, ToolError> {
    whole(answer, name)?;
    Ok(rows(answer))
}

/// The rows of one answer that go beyond the other.
///
/// Rows are distinguished by their texts, because a number in them (a line, a size, a count) changes with every edit of
/// the file that they name: by all values, a violation that moved down a line would be a new one, and prevent its own
/// repair. So a row goes beyond where there are more rows of the same texts than before; rows without any text are
/// compared by their count. The one exception is an answer that is a single number, such as `RETURN count(*)`: there a
/// larger number goes beyond, and a smaller one does not.
fn beyond(one: &BTreeMap<String, Row>, other: &BTreeMap<String, Row>) -> Vec<Row> {
    if let (Some(now), Some(before)) = (single_number(one), single_number(other)) {
        return if now > before { one.values().cloned().collect() } else { Vec::new() };
    }
    let mut room: BTreeMap<String, usize> = BTreeMap::new();
    for row in other.values() {
        *room.entry(words(&row.value)).or_default() += 1;
    }
    // What is the same in every value takes its place first, so that what is named is what is new.
    let (same, changed): (Vec<_>, Vec<_>) = one.iter().partition(|(text, _)| other.contains_key(*text));
    let mut found = Vec::new();
    for (_, row) in same.into_iter().chain(changed) {
        match room.get_mut(&words(&row.value)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => found.push(row.clone()),
        }
    }
    found
}

/// The texts of a row, each at its place.
fn words(row: &Value) -> String {
    fn kept(value: &Value) -> Value {
        match value {
            Value::String(_) => value.clone(),
            Value::Array(items) => Value::Array(items.iter().map(kept).collect()),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, item)| (name.clone(), kept(item))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Value::Null,
        }
    }
    kept(row).to_string()
}

/// The number that an answer consists of.
fn single_number(rows: &BTreeMap<String, Row>) -> Option<f64> {
    let mut rows = rows.values();
    let (Some(row), None) = (rows.next(), rows.next()) else { return None };
    let mut values = row.value.as_object()?.values();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    value.as_f64()
}
