//! Where a conversation is shown, and how it may look there.

use std::io::{self, IsTerminal, Write};

use console::{Style, Term};

use crate::printer::Printer;
use crate::theme::has_colours;

/// Columns of a line where no terminal says how many there are: wide enough for most lines, and a log stays readable.
const PLAIN_COLUMNS: usize = 120;
/// A terminal that says nothing of its size is taken for the oldest one.
const USUAL_COLUMNS: usize = 80;
const USUAL_ROWS: usize = 24;

/// Something that words are written to.
pub trait Output {
    /// Writes at once: nothing stays in a buffer.
    fn write(&self, text: &str);

    /// How it looks now; a terminal may have been resized since it was last asked.
    fn manner(&self) -> TextStyle;
}

/// How text may look on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    pub terminal: bool,
    /// True where the cursor can be moved, so that what is written can be erased.
    pub movable: bool,
    pub colour: bool,
    pub columns: usize,
    pub rows: usize,
    pub charset: Charset,
}

impl TextStyle {
    /// The text in a style, where there are colours.
    pub fn paint(&self, style: &Style, text: &str) -> String {
        style.clone().force_styling(self.colour).apply_to(text).to_string()
    }
}

/// The characters that a board can show of our own text. What others say is never changed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Unicode,
    Ascii,
}

impl Charset {
    /// By the locale and the kind of terminal.
    fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let is_unicode = locale.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.contains("utf-8") || name.contains("utf8")
        });
        if is_unicode && !is_dumb(variable) { Self::Unicode } else { Self::Ascii }
    }

    fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Before a call that did what it should.
    pub fn good(self) -> &'static str {
        self.pick("✓", "+")
    }

    /// Before a call that did not.
    pub fn bad(self) -> &'static str {
        self.pick("✗", "x")
    }

    /// Before a call that runs, and where something was left out.
    pub fn dots(self) -> &'static str {
        self.pick("…", "...")
    }

    /// Between things of equal weight.
    pub fn dot(self) -> &'static str {
        self.pick("·", "-")
    }

    /// Before each row of what others say, so that none of it can pass for our own words.
    pub fn bar(self) -> &'static str {
        self.pick("│", "|")
    }
}

fn is_dumb(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("TERM").is_some_and(|name| name == "dumb")
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What does not change while a board is used.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    terminal: bool,
    movable: bool,
    colour: bool,
    charset: Charset,
}

impl Fixed {
    fn new(terminal: bool) -> Self {
        let dumb = is_dumb(environment);
        Self {
            terminal,
            movable: terminal && !dumb,
            colour: terminal && has_colours(),
            charset: Charset::of_environment(environment),
        }
    }

    fn manner(&self, term: &Term) -> TextStyle {
        let (rows, columns) = match term.size_checked() {
            Some((rows, columns)) if self.terminal && columns > 0 => {
                (usize::from(rows), usize::from(columns))
            }
            _ if self.terminal => (USUAL_ROWS, USUAL_COLUMNS),
            _ => (USUAL_ROWS, PLAIN_COLUMNS),
        };
        let Self { terminal, movable, colour, charset } = *self;
        TextStyle { terminal, movable, colour, columns, rows, charset }
    }
}

/// Standard output, by way of the printer, which remembers what was lost.
#[derive(Debug)]
pub struct StandardOutput<'a> {
    printer: &'a Printer,
    fixed: Fixed,
    term: Term,
}

impl<'a> StandardOutput<'a> {
    pub fn new(printer: &'a Printer) -> Self {
        Self { printer, fixed: Fixed::new(io::stdout().is_terminal()), term: Term::stdout() }
    }
}

impl Output for StandardOutput<'_> {
    fn write(&self, text: &str) {
        self.printer.piece(text);
    }

    fn manner(&self) -> TextStyle {
        self.fixed.manner(&self.term)
    }
}

/// Standard error.
#[derive(Debug)]
pub struct StandardError {
    fixed: Fixed,
    term: Term,
}

impl StandardError {
    pub fn new() -> Self {
        Self { fixed: Fixed::new(io::stderr().is_terminal()), term: Term::stderr() }
    }
}

impl Output for StandardError {
    fn write(&self, text: &str) {
        // If standard error is closed, there is nowhere to report it.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn manner(&self) -> TextStyle {
        self.fixed.manner(&self.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_beyond_ascii_need_a_locale_that_has_them() {
        for (variables, expected) in [
            (&[][..], Charset::Ascii),
            (&[("LANG", "C")], Charset::Ascii),
            (&[("LANG", "en_GB.UTF-8")], Charset::Unicode),
            (&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "POSIX")], Charset::Ascii),
            (&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "")], Charset::Unicode),
            (&[("LANG", "de_DE"), ("LC_CTYPE", "C.utf8")], Charset::Unicode),
            (&[("LANG", "en_GB.UTF-8"), ("TERM", "dumb")], Charset::Ascii),
            (&[("LANG", "en_GB.UTF-8"), ("TERM", "xterm")], Charset::Unicode),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Charset::of_environment(variable), expected, "{variables:?}");
        }
    }
}
