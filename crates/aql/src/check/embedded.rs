//! Just enough of Cypher and SQL to find their parameters and to distinguish a read from a change.

use std::ops::Range;

/// A parameter and its position in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: String,
    pub range: Range<usize>,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// Passes everything up to and with `end`; false when it is not there.
    fn pass(&mut self, end: &str) -> bool {
        match self.rest().find(end) {
            Some(at) => {
                self.at += at + end.len();
                true
            }
            None => {
                self.at = self.text.len();
                false
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length =
            rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn step(&mut self) {
        self.at += self.peek().map_or(1, char::len_utf8);
    }

    /// Passes a quoted stretch whose first quote was taken; a quote is escaped by a backslash.
    fn quoted(&mut self, quote: char) -> bool {
        while let Some(letter) = self.peek() {
            self.step();
            if letter == quote {
                return true;
            }
            if letter == '\\' {
                self.step();
            }
        }
        false
    }
}

/// The parameters of a Cypher query; `None` when they are uncertain.
pub(super) fn cypher_parameters(text: &str) -> Option<Vec<Parameter>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut found = Vec::new();
    while let Some(letter) = scanner.peek() {
        let start = scanner.at;
        if scanner.eat("//") {
            scanner.pass("\n");
        } else if scanner.eat("/*") {
            scanner.pass("*/").then_some(())?;
        } else if letter == '\'' || letter == '"' {
            scanner.step();
            scanner.quoted(letter).then_some(())?;
        } else if scanner.eat("`") {
            scanner.pass("`").then_some(())?;
        } else if scanner.eat("$") {
            if scanner.peek() == Some('`') {
                return None;
            }
            let name = scanner.word().to_owned();
            if name.is_empty() {
                return None;
            }
            found.push(Parameter { name, range: start..scanner.at });
        } else if letter.is_alphanumeric() || letter == '_' {
            scanner.word();
        } else {
            scanner.step();
        }
    }
    Some(found)
}

/// What was seen of a statement.
#[derive(Debug, Default)]
struct Seen {
    parameters: Vec<Parameter>,
    /// Words outside of strings and comments, in small letters.
    words: Vec<String>,
    /// Whether anything follows a `;`.
    several: bool,
}

/// Looks through SQL whose dialect is not known; `None` where dialects see different things.
fn sql(text: &str) -> Option<Seen> {
    let mut scanner = Scanner { text, at: 0 };
    let mut seen = Seen::default();
    let mut ended = false;
    while let Some(letter) = scanner.peek() {
        let start = scanner.at;
        if letter.is_whitespace() {
            scanner.step();
            continue;
        }
        if scanner.eat("--") {
            // MySQL wants a blank behind it, others do not.
            if scanner.peek().is_some_and(|next| !next.is_whitespace()) {
                return None;
            }
            scanner.pass("\n");
            continue;
        }
        if scanner.eat("/*") {
            let body_start = scanner.at;
            scanner.pass("*/").then_some(())?;
            let body = text.get(body_start..scanner.at).unwrap_or_default();
            // Some of them are code for MySQL, and nested ones end elsewhere in PostgreSQL.
            if body.starts_with(['!', '+', 'M']) || body.contains("/*") {
                return None;
            }
            continue;
        }
        seen.several |= ended;
        match letter {
            '\'' | '"' | '`' => {
                scanner.step();
                let from = scanner.at;
                scanner.pass(&letter.to_string()).then_some(())?;
                // A backslash escapes in one dialect and does not in another.
                if text.get(from..scanner.at).unwrap_or_default().contains('\\') {
                    return None;
                }
            }
            '#' | '[' | '\\' => return None,
            '$' => {
                scanner.step();
                if !scanner.peek().is_some_and(|next| next.is_ascii_digit()) {
                    return None;
                }
            }
            ';' => {
                scanner.step();
                ended = true;
            }
            ':' => {
                scanner.step();
                if scanner.eat(":") || scanner.eat("=") {
                    continue;
                }
                let begins = scanner.peek().is_some_and(|next| next.is_alphabetic() || next == '_');
                if begins {
                    let name = scanner.word().to_owned();
                    seen.parameters.push(Parameter { name, range: start..scanner.at });
                }
            }
            letter if letter.is_alphanumeric() || letter == '_' => {
                let word = scanner.word().to_lowercase();
                seen.words.push(word);
            }
            _ => scanner.step(),
        }
    }
    Some(seen)
}

/// The parameters of a statement; `None` when they are uncertain.
pub(super) fn sql_parameters(text: &str) -> Option<Vec<Parameter>> {
    sql(text).map(|seen| seen.parameters)
}

/// Words that change something, wherever they occur in a statement.
const CHANGING: [&str; 10] =
    ["insert", "update", "delete", "merge", "replace", "into", "call", "do", "nextval", "setval"];

/// Whether a statement surely only reads.
pub(crate) fn is_select(text: &str) -> bool {
    let Some(seen) = sql(text) else { return false };
    let begins = seen.words.first().is_some_and(|word| matches!(word.as_str(), "select" | "with" | "values"));
    // `replace` is also a function of texts; as one it is refused, which costs a cache and nothing else.
    begins && !seen.several && !seen.words.iter().any(|word| CHANGING.contains(&word.as_str()))
}
