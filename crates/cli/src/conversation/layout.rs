//! Lines of a question as rows of a terminal: none is wider, and none of what others say can pass for our own words.

use console::Style;

use super::TextStyle;
use crate::text::{rows, visible, wrap};

/// Columns left of what others say: two blanks, the bar, one blank.
const GUTTER: usize = 4;
/// A text is never squeezed below this, whatever the terminal says of its width.
pub const MIN_COLUMNS: usize = 8;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStyle {
    /// Our own words.
    Heading,
    /// What others say.
    Quoted,
    Added,
    Removed,
    Place,
}

#[derive(Clone, Debug)]
pub struct Line {
    tone: LineStyle,
    text: String,
}

/// Our own words; what they name must be visible already.
pub fn heading(text: String) -> Line {
    Line { tone: LineStyle::Heading, text }
}

/// What others say, exactly, line by line.
pub fn quoted(text: &str) -> Vec<Line> {
    let line = |text: &str| Line { tone: LineStyle::Quoted, text: text.to_owned() };
    visible(text).split('\n').map(line).collect()
}

/// A unified difference.
pub fn difference(diff: &str) -> Vec<Line> {
    let tone = |line: &str| match line.chars().next() {
        _ if line.starts_with("--- ") || line.starts_with("+++ ") => LineStyle::Place,
        Some('+') => LineStyle::Added,
        Some('-') => LineStyle::Removed,
        Some('@') => LineStyle::Place,
        _ => LineStyle::Quoted,
    };
    visible(diff).lines().map(|line| Line { tone: tone(line), text: line.to_owned() }).collect()
}

/// Lines as rows. Each row of what others say is behind a bar, however wide its line is.
pub fn laid_out(lines: &[Line], manner: TextStyle) -> Vec<String> {
    let width = manner.columns.saturating_sub(GUTTER).max(MIN_COLUMNS);
    let mut shown = Vec::new();
    for line in lines {
        let style = match line.tone {
            LineStyle::Heading => {
                shown.extend(broken(&line.text, width).iter().map(|row| format!("  {row}")));
                continue;
            }
            LineStyle::Quoted => Style::new(),
            LineStyle::Added => Style::new().green(),
            LineStyle::Removed => Style::new().red(),
            LineStyle::Place => Style::new().cyan(),
        };
        let bar = manner.paint(&Style::new().dim(), manner.charset.bar());
        for row in rows(&detabbed(&line.text), width) {
            shown.push(format!("  {bar} {}", manner.paint(&style, &row)).trim_end().to_owned());
        }
    }
    shown
}

/// A text broken between words, and within those that are too long.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    wrap(&detabbed(text), Some(width)).split('\n').flat_map(|line| rows(line, width)).collect()
}

/// The columns of a tab depend on its position; rows are counted, so it gets a fixed width.
fn detabbed(line: &str) -> String {
    line.replace('\t', "    ")
}
