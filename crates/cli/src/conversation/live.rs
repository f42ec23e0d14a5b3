//! The last lines of a terminal, which are erased before anything else is written.

use super::Output;

/// Lines that stay below everything else for a while.
///
/// INVARIANT: while they are shown, the cursor is at the beginning of the first. A terminal that is made narrower
/// breaks them into more rows below the cursor, and clearing from there takes all of them back.
#[derive(Debug, Default)]
pub struct Live {
    drawn: Vec<String>,
}

/// To the first column, and everything from there to the end of the screen away.
const ERASE: &str = "\r\u{1b}[J";

impl Live {
    /// Shows these lines instead of the ones before. Each must be narrower than the terminal.
    pub fn draw(&mut self, board: &impl Output, lines: Vec<String>) {
        if lines == self.drawn {
            return;
        }
        let mut text = self.taken_back().to_owned();
        text.push_str(&lines.join("\n"));
        text.push('\r');
        if lines.len() > 1 {
            text.push_str(&format!("\u{1b}[{}A", lines.len() - 1));
        }
        board.write(&text);
        self.drawn = lines;
    }

    /// What has to be written before anything else.
    pub fn taken_back(&mut self) -> &'static str {
        if std::mem::take(&mut self.drawn).is_empty() { "" } else { ERASE }
    }
}
