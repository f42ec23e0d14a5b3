//! An explanation as a picture: mermaid for pages, dot for Graphviz.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::text::shown;
use super::{PlannedStep, QueryExplanation};

/// A step and those inside of it, by their numbers.
struct Node {
    number: usize,
    inside: Vec<Node>,
}

impl QueryExplanation {
    /// As a diagram of mermaid; what is inside of a step is drawn inside of it.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for node in self.nodes() {
            self.mermaid_node(&node, 1, &mut text);
        }
        for (from, to) in self.arrows() {
            let _ = writeln!(text, "  s{from} --> s{to}");
        }
        text
    }

    fn mermaid_node(&self, node: &Node, level: usize, text: &mut String) {
        let Some(step) = self.steps.get(node.number) else { return };
        let blanks = "  ".repeat(level);
        let label: Vec<String> = words(step).iter().map(|line| mermaid_escaped(line)).collect();
        let label = label.join("<br/>");
        if node.inside.is_empty() {
            let _ = writeln!(text, "{blanks}s{}[\"{label}\"]", node.number);
            return;
        }
        let _ = writeln!(text, "{blanks}subgraph s{}[\"{label}\"]", node.number);
        for inner in &node.inside {
            self.mermaid_node(inner, level + 1, text);
        }
        let _ = writeln!(text, "{blanks}end");
    }

    /// As a graph for Graphviz; what is inside of a step hangs on it by a dashed line.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut text = format!("digraph \"{}\" {{\n", dot_escaped(&self.query));
        text.push_str("  rankdir=TB;\n  node [shape=box];\n");
        for (number, step) in self.steps.iter().enumerate() {
            let label: Vec<String> = words(step).iter().map(|line| dot_escaped(line)).collect();
            let _ = writeln!(text, "  s{number} [label=\"{}\"];", label.join("\\n"));
        }
        for (from, to) in self.arrows() {
            let _ = writeln!(text, "  s{from} -> s{to};");
        }
        for (number, around) in self.around().into_iter().enumerate() {
            if let Some(around) = around {
                let _ = writeln!(text, "  s{around} -> s{number} [style=dashed, arrowhead=none];");
            }
        }
        text.push_str("}\n");
        text
    }

    /// The step that each one is inside of. Those inside follow it in the list.
    fn around(&self) -> Vec<Option<usize>> {
        let mut open: Vec<usize> = Vec::new();
        let mut around = Vec::with_capacity(self.steps.len());
        for (number, step) in self.steps.iter().enumerate() {
            while let Some(last) = open.last().and_then(|last| self.steps.get(*last)) {
                let rest = step.step.strip_prefix(last.step.as_str());
                if rest.is_some_and(|rest| rest.starts_with(['.', '['])) {
                    break;
                }
                open.pop();
            }
            around.push(open.last().copied());
            open.push(number);
        }
        around
    }

    fn nodes(&self) -> Vec<Node> {
        let around = self.around();
        let mut inside: HashMap<Option<usize>, Vec<Node>> = HashMap::new();
        // From the last to the first, so that what is inside of a step is whole before the step is.
        for (number, around) in around.into_iter().enumerate().rev() {
            let mut own = inside.remove(&Some(number)).unwrap_or_default();
            own.reverse();
            inside.entry(around).or_default().push(Node { number, inside: own });
        }
        let mut top = inside.remove(&None).unwrap_or_default();
        top.reverse();
        top
    }

    /// From what is needed to what needs it.
    fn arrows(&self) -> Vec<(usize, usize)> {
        let numbers: HashMap<&str, usize> =
            self.steps.iter().enumerate().map(|(number, step)| (step.step.as_str(), number)).collect();
        let mut arrows = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            arrows.extend(step.needs.iter().filter_map(|need| Some((*numbers.get(need.as_str())?, number))));
        }
        arrows
    }
}

/// The lines of a label.
fn words(step: &PlannedStep) -> Vec<String> {
    let mut lines = vec![step.step.clone(), format!("{}: {}", step.kind, step.what)];
    if step.calls.most != Some(0) {
        lines.push(format!("calls: {}", shown(step.calls)));
    }
    if step.tokens.most != Some(0) {
        lines.push(format!("tokens: {}", shown(step.tokens)));
    }
    for call in &step.planned {
        for gate in &call.gates {
            lines.push(format!("{}: {}", gate.gate, gate.verdict));
        }
    }
    lines.dedup();
    lines
}

/// Everything that could end a label, or mean something in one, is written as its number.
fn mermaid_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '#' | '&' | '<' | '>' | '`' | ';' | '\\' | '[' | ']' | '{' | '}' | '(' | ')' | '|' => {
                let _ = write!(escaped, "#{};", u32::from(letter));
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn dot_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
