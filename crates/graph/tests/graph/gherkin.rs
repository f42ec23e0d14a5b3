//! A reader for the part of Gherkin that the TCK uses: scenarios, outlines, tables, and texts between triple quotes.

/// One scenario, with the values of an outline put in.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Default)]
pub struct Step {
    pub text: String,
    pub doc: Option<String>,
    pub table: Vec<Vec<String>>,
}

#[derive(Default)]
struct Outline {
    name: String,
    steps: Vec<Step>,
    examples: Vec<Vec<String>>,
    in_examples: bool,
}

/// All scenarios of a feature.
pub fn scenarios(feature: &str) -> Vec<Scenario> {
    let mut found = Vec::new();
    let mut background: Vec<Step> = Vec::new();
    let mut current: Option<Outline> = None;
    let mut in_background = false;
    let mut lines = feature.lines();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || text.starts_with('@') || text.starts_with("Feature:") {
            continue;
        }
        if text.starts_with("Background:") {
            in_background = true;
        } else if let Some(name) =
            text.strip_prefix("Scenario Outline:").or_else(|| text.strip_prefix("Scenario:"))
        {
            in_background = false;
            found.extend(current.take().into_iter().flat_map(expand));
            current = Some(Outline {
                name: name.trim().to_owned(),
                steps: background.clone(),
                ..Outline::default()
            });
        } else if text.starts_with("Examples:") {
            if let Some(outline) = &mut current {
                outline.in_examples = true;
            }
        } else if text.starts_with('|') {
            let cells = cells(text);
            match &mut current {
                Some(outline) if outline.in_examples => outline.examples.push(cells),
                Some(outline) => outline.steps.last_mut().unwrap().table.push(cells),
                None => background.last_mut().unwrap().table.push(cells),
            }
        } else if text.starts_with("\"\"\"") {
            let indent = line.len() - line.trim_start().len();
            let mut doc = Vec::new();
            for line in lines.by_ref() {
                if line.trim() == "\"\"\"" {
                    break;
                }
                doc.push(line.get(indent..).unwrap_or_else(|| line.trim_start()));
            }
            let steps = current.as_mut().map_or(&mut background, |outline| &mut outline.steps);
            steps.last_mut().unwrap().doc = Some(doc.join("\n"));
        } else {
            let words = text.split_once(' ').map_or("", |(_, rest)| rest).to_owned();
            let step = Step { text: words, ..Step::default() };
            if in_background {
                background.push(step);
            } else if let Some(outline) = &mut current {
                outline.steps.push(step);
            }
        }
    }
    found.extend(current.take().into_iter().flat_map(expand));
    found
}

/// The cells of a row. A bar or a backslash inside a cell is written with a backslash.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut letters = line.trim_start_matches('|').chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if matches!(letters.peek(), Some('|' | '\\')) => {
                let escaped = letters.next().unwrap();
                cells.last_mut().unwrap().push(escaped);
            }
            '|' => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells.pop();
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn expand(outline: Outline) -> Vec<Scenario> {
    let Some((header, rows)) = outline.examples.split_first() else {
        return vec![Scenario { name: outline.name, steps: outline.steps }];
    };
    rows.iter()
        .enumerate()
        .map(|(at, row)| {
            let fill = |text: &str| {
                header
                    .iter()
                    .zip(row)
                    .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
            };
            let steps = outline.steps.iter().map(|step| Step {
                text: fill(&step.text),
                doc: step.doc.as_deref().map(fill),
                table: step.table.iter().map(|row| row.iter().map(|cell| fill(cell)).collect()).collect(),
            });
            Scenario { name: format!("{} (example {})", outline.name, at + 1), steps: steps.collect() }
        })
        .collect()
}
