//! Names behind a dot, which PostgreSQL takes for functions of what is before the dot where nothing has such a column:
//! `SELECT row.name` calls `name(row)`. The text does not tell which it is; the catalogue of the server does.

use super::calls::doubtful_calls;
use super::lexer::{Dialect, Kind, Token, tokens};

/// Names in a text of PostgreSQL that may be calls without parentheses, as the server stores them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Behind another name: a function of them takes the row of a table.
    pub of_rows: Vec<String>,
    /// Behind a parenthesis, an element or a parameter: a function of them takes a value of any type.
    pub of_values: Vec<String>,
    /// Before a parenthesis, where the text does not tell that the function only computes.
    pub called: Vec<String>,
    /// A name is written in a way that is not read here.
    pub is_unclear: bool,
}

impl Attributes {
    pub fn read(sql: &str) -> Self {
        let mut tokens = tokens(sql, Dialect::Postgres);
        tokens.retain(|token| token.kind != Kind::Comment);
        let mut found = Self::default();
        for name in doubtful_calls(&tokens, Dialect::Postgres) {
            let before = sql.as_bytes().get(..name.start).unwrap_or_default();
            found.is_unclear |= matches!(before.last_chunk(), Some([b'u' | b'U', b'&']));
            found.called.extend(stored(&name));
        }
        for (place, dot) in tokens.iter().enumerate().filter(|(_, token)| token.text == ".") {
            let Some(name) = tokens.get(place + 1) else { continue };
            let next = tokens.get(place + 2);
            found.is_unclear |= is_coded(name, next);
            // With a parenthesis it is a call like any other.
            if next.is_some_and(|next| next.text == "(") {
                continue;
            }
            let Some(name) = stored(name) else { continue };
            let before = place.checked_sub(1).and_then(|before| tokens.get(before));
            let is_row = before.is_some_and(|before| matches!(before.kind, Kind::Word | Kind::Name));
            // `5.e` is a number with a name behind it.
            let is_number =
                before.is_some_and(|before| before.kind == Kind::Number && before.end() == dot.start);
            if is_row {
                found.of_rows.push(name);
            } else if !is_number {
                found.of_values.push(name);
            }
        }
        found
    }

    /// Whether the text alone tells which functions it calls.
    pub fn is_empty(&self) -> bool {
        self.of_rows.is_empty() && self.of_values.is_empty() && !self.is_unclear
    }
}

/// Whether a name is written in numbers: `U&"\0061"`.
fn is_coded(name: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    let prefixed = name.is("U") && next.is_some_and(|next| next.text.starts_with('&'));
    prefixed || (name.kind == Kind::Name && !name.text.starts_with('"'))
}

/// The name as the server stores it: in lower case, or as it is between its quotes.
fn stored(name: &Token<'_>) -> Option<String> {
    match name.kind {
        Kind::Word => Some(name.text.to_ascii_lowercase()),
        Kind::Name => {
            let inner = name.text.strip_prefix('"')?.strip_suffix('"')?;
            Some(inner.replace("\"\"", "\""))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Attributes;

    #[test]
    fn what_may_be_a_call_without_parentheses() {
        let table: &[(&str, &[&str], &[&str], bool)] = &[
            ("SELECT 1", &[], &[], false),
            ("SELECT 'a.b', 1.5, 2.e FROM t -- a.b", &[], &[], false),
            ("SELECT m.Evil FROM mark m", &["evil"], &[], false),
            ("SELECT s.m . /* x */ \"Ev\"\"il\" FROM s.m", &["m", "Ev\"il", "m"], &[], false),
            ("SELECT (m.t).f, (1)::int, a[1].g, $1.h FROM m", &["t"], &["f", "g", "h"], false),
            ("SELECT s.f(1), m.*", &[], &[], false),
            ("SELECT m.U&\"ev\\0069l\" FROM m", &[], &[], true),
        ];
        for (sql, of_rows, of_values, is_unclear) in table {
            let found = Attributes::read(sql);
            assert_eq!(found.of_values, *of_values, "{sql}");
            assert_eq!(found.is_unclear, *is_unclear, "{sql}: {found:?}");
            assert!(found.is_unclear || found.of_rows == *of_rows, "{sql}: {found:?}");
            assert_eq!(found.is_empty(), of_rows.is_empty() && of_values.is_empty() && !is_unclear, "{sql}");
        }
    }
}
