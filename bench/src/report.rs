//! What was measured, as a table or as JSON.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::samples::{Samples, Spread};

/// Everything that one run of the program measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub machine: Machine,
    pub sections: Vec<Section>,
}

/// What one measurement gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub command: String,
    pub rows: Vec<Row>,
    /// The contenders with the spread of their runs.
    #[serde(default)]
    pub contenders: Vec<Contender>,
    /// How values grow with a size.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// How to read the rows.
    pub notes: Vec<String>,
    /// What could not be measured and why.
    #[serde(default)]
    pub skipped: Vec<String>,
}

/// Whose number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Ours,
    Peer,
}

/// A contender in a group of contenders that do the same job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// The job, which is the heading in a chart.
    pub group: String,
    pub name: String,
    pub side: Side,
    pub unit: Unit,
    pub spread: Spread,
}

/// A chart of values over a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    pub title: String,
    /// What the size counts.
    pub size: String,
    pub unit: Unit,
    pub lines: Vec<CurveLine>,
}

/// One line of a [`Curve`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurveLine {
    pub name: String,
    pub points: Vec<CurvePoint>,
}

/// A size and what was measured there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    pub size: usize,
    pub spread: Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Milliseconds,
    Kilobytes,
    Megabytes,
    RunsPerSecond,
}

impl Unit {
    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Milliseconds => format!("{value:.3} ms"),
            Self::Kilobytes => format!("{value:.1} KB"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::RunsPerSecond => format!("{value:.0} runs/s"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Holds,
    Misses,
}

/// What a row must reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Our value stays below this.
    Below(f64),
    /// We are at least this many times better than the peer.
    TimesBetter(f64),
    /// We are better than the peer, by however little.
    Better,
}

/// What a row is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    pub name: String,
    pub value: f64,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub what: String,
    pub unit: Unit,
    pub ours: Option<f64>,
    pub peer: Option<Peer>,
    /// How many times better we are.
    pub ratio: Option<f64>,
    pub budget: Option<Budget>,
    pub verdict: Option<Verdict>,
}

impl Row {
    pub fn new(what: &str, unit: Unit) -> Self {
        Self { what: what.to_owned(), unit, ours: None, peer: None, ratio: None, budget: None, verdict: None }
    }

    pub fn ours(mut self, value: f64) -> Self {
        self.ours = Some(value);
        self.judged()
    }

    pub fn peer(mut self, name: &str, value: f64) -> Self {
        self.peer = Some(Peer { name: name.to_owned(), value });
        self.judged()
    }

    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self.judged()
    }

    fn judged(mut self) -> Self {
        self.ratio = match (self.ours, &self.peer, self.unit) {
            (Some(ours), Some(peer), Unit::RunsPerSecond) => Some(ours / peer.value),
            (Some(ours), Some(peer), _) => Some(peer.value / ours),
            _ => None,
        };
        let holds = match self.budget {
            Some(Budget::Below(limit)) => self.ours.map(|ours| ours < limit),
            Some(Budget::TimesBetter(times)) => self.ratio.map(|ratio| ratio >= times),
            Some(Budget::Better) => self.ratio.map(|ratio| ratio > 1.0),
            None => None,
        };
        self.verdict = holds.map(|holds| if holds { Verdict::Holds } else { Verdict::Misses });
        self
    }

    /// What, ours, peer, ratio, budget and verdict, as text.
    pub fn cells(&self) -> [String; 6] {
        let value = |value: f64| self.unit.show(value);
        let budget = match self.budget {
            Some(Budget::Below(limit)) => {
                format!("< {}", value(limit).replace(".000", "").replace(".500", ".5"))
            }
            Some(Budget::TimesBetter(times)) => format!(">= {times}x"),
            Some(Budget::Better) => "> 1x".to_owned(),
            None => String::new(),
        };
        let verdict = match self.verdict {
            Some(Verdict::Holds) => "holds",
            Some(Verdict::Misses) => "misses",
            None => "",
        };
        [
            self.what.clone(),
            self.ours.map(value).unwrap_or_default(),
            self.peer.as_ref().map(|peer| format!("{} {}", value(peer.value), peer.name)).unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            budget,
            verdict.to_owned(),
        ]
    }
}

impl Section {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: format!("cargo xtask bench {name}"),
            rows: Vec::new(),
            contenders: Vec::new(),
            curves: Vec::new(),
            notes: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a contender to the chart of a job.
    pub fn contender(&mut self, group: &str, side: Side, name: &str, samples: &Samples) {
        self.contenders.push(Contender {
            group: group.to_owned(),
            name: name.to_owned(),
            side,
            unit: Unit::Milliseconds,
            spread: samples.spread(),
        });
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// One line for something that could not be measured here.
    pub fn skipped(&mut self, what: &str, reason: &str) {
        self.skipped.push(format!("skipped: {what} ({reason})"));
    }
}

impl Report {
    pub fn new(machine: Machine) -> Self {
        Self { machine, sections: Vec::new() }
    }

    pub fn misses(&self) -> bool {
        self.sections.iter().flat_map(|section| &section.rows).any(|row| row.verdict == Some(Verdict::Misses))
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.machine)?;
        self.sections.iter().try_for_each(|section| write!(formatter, "\n\n{section}"))
    }
}

impl Display for Section {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.name, self.command)?;
        let heading = ["what", "ours", "peer", "ratio", "budget", "verdict"].map(str::to_owned);
        let lines: Vec<_> = std::iter::once(heading).chain(self.rows.iter().map(Row::cells)).collect();
        let mut widths = [0; 6];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        for line in &lines {
            let cells = widths.iter().zip(line).map(|(width, cell)| format!("{cell:width$}"));
            write!(formatter, "\n  {}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        let notes = self.notes.iter().chain(&self.skipped);
        notes.into_iter().try_for_each(|note| write!(formatter, "\n  {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Report, Row, Section, Unit};

    #[test]
    fn a_budget_is_judged_on_the_value_or_on_the_ratio() {
        let mut section = Section::new("exec");
        section.row(Row::new("median", Unit::Milliseconds).ours(0.4).budget(Budget::Below(0.5)));
        let row = Row::new("ratio", Unit::Milliseconds).ours(0.5).peer("other 1.0", 2.0);
        section.row(row.budget(Budget::TimesBetter(5.0)));
        section.row(Row::new("throughput", Unit::RunsPerSecond).ours(300.0).peer("other 1.0", 100.0));
        let mut report = Report::new(crate::machine::describe());
        assert_eq!(
            section.to_string(),
            "exec (cargo xtask bench exec)\n  \
             what        ours        peer                  ratio  budget    verdict\n  \
             median      0.400 ms                                 < 0.5 ms  holds\n  \
             ratio       0.500 ms    2.000 ms other 1.0    4.00x  >= 5x     misses\n  \
             throughput  300 runs/s  100 runs/s other 1.0  3.00x"
        );
        report.sections.push(section);
        assert!(report.misses());
    }
}
