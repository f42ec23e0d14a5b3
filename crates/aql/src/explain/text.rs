//! An explanation for people: a table, wave by wave.

use std::fmt::Write as _;

use tgp_text::truncate;

use super::{Estimate, PlannedStep, QueryExplanation};

/// Columns of a line, where the names of the steps leave room: what fits a terminal beside something else.
const WIDTH: usize = 100;

/// What a column of words is not made narrower than.
const NARROW: usize = 12;

/// Blanks between columns, and before the first.
const GAP: usize = 2;

/// Columns that are shortened, the wider one first.
const WORDS: [&str; 2] = ["WHAT", "WAITS FOR"];

impl QueryExplanation {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let waves = self.steps.iter().map(|step| step.stage).max().unwrap_or(0);
        let steps = counted(self.steps.len(), "step");
        let mut text = format!("query {}: {steps} in {}\n", self.query, counted(waves, "wave"));
        let columns = Columns {
            tokens: self.steps.iter().any(|step| step.kind == "agent"),
            gates: self.steps.iter().any(|step| step.planned.iter().any(|call| !call.gates.is_empty())),
        };
        let word = if self.calls == Estimate::exactly(1) { "call" } else { "calls" };
        let _ = write!(text, "estimated: {} {word}", shown(self.calls));
        if columns.tokens {
            let tokens = shown(self.tokens);
            let _ = write!(text, ", {tokens} tokens (guessed from the lengths of prompts)");
        }
        text.push('\n');
        let head = columns.head();
        let rows: Vec<(usize, Vec<String>)> =
            self.steps.iter().map(|step| (step.stage, columns.row(step))).collect();
        let widths = widths(&head, &rows);
        let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
        let _ = writeln!(text, "\n{}", line(&head, &widths));
        for wave in 1..=waves {
            let mut first = true;
            for (_, row) in rows.iter().filter(|(stage, _)| *stage == wave) {
                if std::mem::take(&mut first) {
                    let _ = writeln!(text, "wave {wave}");
                }
                let _ = writeln!(text, "{}", line(row, &widths));
            }
        }
        text
    }
}

/// The columns that are shown only where they are not empty.
struct Columns {
    tokens: bool,
    gates: bool,
}

impl Columns {
    fn head(&self) -> Vec<&'static str> {
        let mut head = vec!["STEP", "KIND", "WHAT", "WAITS FOR", "TIMES", "CALLS"];
        if self.tokens {
            head.push("TOKENS");
        }
        if self.gates {
            head.push("GATES");
        }
        head
    }

    fn row(&self, step: &PlannedStep) -> Vec<String> {
        let prefix = step.step.len() - step.step.rsplit('.').next().unwrap_or_default().len();
        // Needs are steps of the same block, so the last part of their name is enough.
        let needs: Vec<&str> = step.needs.iter().map(|need| need.get(prefix..).unwrap_or(need)).collect();
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let mut row = vec![
            step.step.clone(),
            step.kind.clone(),
            dash(step.what.clone()),
            dash(needs.join(", ")),
            brief(step.repeats),
            brief(step.calls),
        ];
        if self.tokens {
            row.push(brief(step.tokens));
        }
        if self.gates {
            row.push(dash(gates(step)));
        }
        row
    }
}

/// What the gates would say. Tools are named where it differs.
fn gates(step: &PlannedStep) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for call in &step.planned {
        for gate in &call.gates {
            let rule = if gate.rule.is_empty() { &gate.gate } else { &gate.rule };
            let one = format!("{} ({rule})", gate.verdict);
            match said.iter_mut().find(|(other, _)| *other == one) {
                Some((_, tools)) => tools.push(&call.tool),
                None => said.push((one, vec![&call.tool])),
            }
        }
    }
    if step.planned.len() < 2 || matches!(said.as_slice(), [(_, tools)] if tools.len() == step.planned.len())
    {
        return said.into_iter().map(|(one, _)| one).collect::<Vec<_>>().join("; ");
    }
    said.into_iter().map(|(one, tools)| format!("{}: {one}", tools.join(", "))).collect::<Vec<_>>().join("; ")
}

/// How wide each column is, so that a line fits where it can.
fn widths(head: &[&str], rows: &[(usize, Vec<String>)]) -> Vec<usize> {
    let mut widths: Vec<usize> = head.iter().map(|word| word.chars().count()).collect();
    for (_, row) in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let all = widths.iter().map(|width| width + GAP).sum::<usize>();
    for _ in WIDTH..all {
        let words =
            widths.iter_mut().zip(head).filter(|(width, head)| **width > NARROW && WORDS.contains(head));
        let Some((widest, _)) = words.max_by_key(|(width, _)| **width) else { break };
        *widest -= 1;
    }
    widths
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = " ".repeat(GAP);
    for (cell, width) in cells.iter().zip(widths) {
        let shown = truncate(cell, *width);
        line.push_str(&shown);
        let blanks = width.saturating_sub(shown.chars().count()) + GAP;
        line.extend(std::iter::repeat_n(' ', blanks));
    }
    line.trim_end().to_owned()
}

fn counted(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// `3`, `1 to 4`, `2 or more`.
pub(super) fn shown(estimate: Estimate) -> String {
    match estimate.most {
        Some(most) if most == estimate.least => grouped(most),
        Some(most) => format!("{} to {}", grouped(estimate.least), grouped(most)),
        None => format!("{} or more", grouped(estimate.least)),
    }
}

/// `3`, `1-4`, `2+`: for a column.
fn brief(estimate: Estimate) -> String {
    match estimate.most {
        Some(most) if most == estimate.least => grouped(most),
        Some(most) => format!("{}-{}", grouped(estimate.least), grouped(most)),
        None => format!("{}+", grouped(estimate.least)),
    }
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
