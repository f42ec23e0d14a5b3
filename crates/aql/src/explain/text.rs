//! An explanation for people: a table, wave by wave.

use std::fmt::Write as _;

use super::{Estimate, Explanation, PlannedStep};

impl Explanation {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let waves = self.steps.iter().map(|step| step.stage).max().unwrap_or(0);
        let steps = counted(self.steps.len(), "step");
        let mut text = format!("query {}: {steps} in {}\n", self.query, counted(waves, "wave"));
        let _ = writeln!(
            text,
            "estimated: {} calls, {} tokens (tokens are guessed from the lengths of prompts)",
            shown(self.calls),
            shown(self.tokens)
        );
        let gates = self.steps.iter().any(|step| step.planned.iter().any(|call| !call.gates.is_empty()));
        let mut head = vec!["STEP", "KIND", "WHAT", "WAITS FOR", "TIMES", "CALLS", "TOKENS"];
        if gates {
            head.push("GATES");
        }
        let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
        for step in &self.steps {
            rows.push((step.stage, row(step, gates)));
        }
        let mut widths: Vec<usize> = head.iter().map(|word| word.chars().count()).collect();
        for (_, row) in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
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

fn row(step: &PlannedStep, gates: bool) -> Vec<String> {
    let prefix = step.step.len() - step.step.rsplit('.').next().unwrap_or_default().len();
    // Needs are steps of the same block, so their last word says enough.
    let needs: Vec<&str> = step.needs.iter().map(|need| need.get(prefix..).unwrap_or(need)).collect();
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let mut row = vec![
        step.step.clone(),
        step.kind.clone(),
        dash(step.what.clone()),
        dash(needs.join(", ")),
        shown(step.repeats),
        shown(step.calls),
        shown(step.tokens),
    ];
    if gates {
        let mut said: Vec<String> = Vec::new();
        for call in &step.planned {
            for gate in &call.gates {
                let rule = if gate.rule.is_empty() { String::new() } else { format!(" ({})", gate.rule) };
                let one = format!("{} {}: {}{rule}", call.tool, gate.gate, gate.verdict);
                if !said.contains(&one) {
                    said.push(one);
                }
            }
        }
        row.push(dash(said.join("; ")));
    }
    row
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::from("  ");
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(cell);
        let blanks = width.saturating_sub(cell.chars().count()) + 2;
        line.extend(std::iter::repeat_n(' ', blanks));
    }
    line.trim_end().to_owned()
}

fn counted(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// `3`, `1 to 4`, `2 or more`.
pub(super) fn shown(estimate: Estimate) -> String {
    let number = |value: u64| {
        let digits = value.to_string();
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    };
    match estimate.most {
        Some(most) if most == estimate.least => number(most),
        Some(most) => format!("{} to {}", number(estimate.least), number(most)),
        None => format!("{} or more", number(estimate.least)),
    }
}
