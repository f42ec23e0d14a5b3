//! Parameters: found in the text, matched with what was given, and written the way the server wants them.

use serde_json::Value;
use tgp_contract::{SqlParams, ToolError};
use tgp_text::LineCol;

use super::lexer::{Dialect, Kind, Token};
use super::statement::Script;
use crate::failure::{at, esql};
use crate::values::Parameter;

/// A statement ready for the server.
#[derive(Debug)]
pub(crate) struct Bound {
    pub sql: String,
    pub values: Vec<Parameter>,
    /// Where each piece of `sql` came from: (offset in `sql`, offset in the caller's text), ascending.
    origins: Vec<(usize, usize)>,
}

impl Bound {
    /// The offset in the caller's text of an offset in `sql`.
    pub fn origin(&self, offset: usize) -> usize {
        let before = self.origins.iter().rev().find(|(rewritten, _)| *rewritten <= offset);
        before.map_or(offset, |(rewritten, original)| original + (offset - rewritten))
    }
}

/// Writes `script` with the parameters of its dialect (`$1` or `?`), and gives their values in order.
///
/// PostgreSQL takes `$1`, or `?` when no `$1` occurs and the parameters are a list (`?` is also a jsonb operator there,
/// so with named or numbered parameters it is left alone). MySQL takes `?`. Both take `:name` with an object.
pub(crate) fn bind(script: &Script<'_>, dialect: Dialect, params: &SqlParams) -> Result<Bound, ToolError> {
    match params {
        SqlParams::Named(given) => {
            let mut names: Vec<&str> = Vec::new();
            let mut writer = Writer::new(script.sql, dialect);
            let mut values = Vec::new();
            for token in &script.tokens {
                let Some(name) = named(token) else {
                    if numbered(token, dialect) {
                        return Err(mixed(script, token));
                    }
                    writer.copy(token);
                    continue;
                };
                let known = names.iter().position(|known| *known == name);
                if known.is_none() || dialect == Dialect::MySql {
                    let value = given
                        .get(name)
                        .ok_or_else(|| at(not_given(name, given), LineCol::of(script.sql, token.start)))?;
                    values.push(Parameter::read(value, &format!("`:{name}`"))?);
                    names.push(name);
                }
                writer.parameter(token, known.map_or(names.len(), |known| known + 1));
            }
            if let Some(name) = given.keys().find(|name| !names.contains(&name.as_str())) {
                return Err(superfluous(name));
            }
            Ok(writer.finish(values))
        }
        SqlParams::Positional(given) => positional(script, dialect, given),
        SqlParams::None => positional(script, dialect, &[]),
    }
}

fn positional(script: &Script<'_>, dialect: Dialect, given: &[Value]) -> Result<Bound, ToolError> {
    let has_dollars = script.tokens.iter().any(|token| token.kind == Kind::Dollar);
    let questions = dialect == Dialect::MySql || (!has_dollars && !given.is_empty());
    let mut writer = Writer::new(script.sql, dialect);
    let mut wanted = 0;
    for token in &script.tokens {
        match token.kind {
            Kind::Question if questions => {
                wanted += 1;
                writer.parameter(token, wanted);
            }
            Kind::Dollar if dialect == Dialect::Postgres => {
                let number = token.text.get(1..).and_then(|digits| digits.parse().ok());
                wanted = wanted.max(number.unwrap_or(usize::MAX));
                writer.copy(token);
            }
            Kind::Named if given.is_empty() || dialect == Dialect::MySql => {
                return Err(missing(script, token, named(token).unwrap_or_default()));
            }
            _ => writer.copy(token),
        }
    }
    count(wanted, given.len())?;
    let values =
        given.iter().enumerate().map(|(index, value)| Parameter::read(value, &format!("{}", index + 1)));
    Ok(writer.finish(values.collect::<Result<_, _>>()?))
}

pub(crate) fn count(wanted: usize, given: usize) -> Result<(), ToolError> {
    if wanted == given {
        return Ok(());
    }
    Err(esql(format!("the number of values does not match: {wanted} needed, {given} given"))
        .detail("field", "params")
        .help("give one value for each parameter of the statement"))
}

pub(crate) fn superfluous(name: &str) -> ToolError {
    if let Some(plain) = name.strip_prefix([':', '@', '$']) {
        return marked(name, plain);
    }
    esql(format!("the parameter `{name}` was given, but the statement has no `:{name}`"))
        .detail("field", format!("params.{name}"))
        .help(format!("write `:{name}` where the value belongs, or leave the parameter out"))
}

/// A name that was given with the sign that it has in the statement.
fn marked(name: &str, plain: &str) -> ToolError {
    esql(format!("the parameter `{name}` was given with the sign that it has only in the statement"))
        .detail("field", format!("params.{name}"))
        .help(format!("leave the sign out: {{\"{plain}\": …}} for `:{plain}`"))
}

fn missing(script: &Script<'_>, token: &Token<'_>, name: &str) -> ToolError {
    let error = missing_name(name);
    at(error, LineCol::of(script.sql, token.start))
}

/// A parameter of the statement that is not among those `given`.
pub(crate) fn not_given(name: &str, given: &serde_json::Map<String, Value>) -> ToolError {
    let is_meant = |key: &&String| key.strip_prefix([':', '@', '$']) == Some(name);
    given.keys().find(is_meant).map_or_else(|| missing_name(name), |key| marked(key, name))
}

pub(crate) fn missing_name(name: &str) -> ToolError {
    esql(format!("the statement has `:{name}`, but no parameter of that name was given"))
        .detail("field", format!("params.{name}"))
        .help(format!("give the parameters as an object: {{\"{name}\": …}}"))
}

fn mixed(script: &Script<'_>, token: &Token<'_>) -> ToolError {
    let error = esql(format!("`{}` is a positional parameter, and named values were given", token.text))
        .help("write :name, or give the values as a list");
    at(error, LineCol::of(script.sql, token.start))
}

fn named<'a>(token: &Token<'a>) -> Option<&'a str> {
    if token.kind == Kind::Named { token.text.get(1..) } else { None }
}

fn numbered(token: &Token<'_>, dialect: Dialect) -> bool {
    token.kind == Kind::Dollar || (token.kind == Kind::Question && dialect == Dialect::MySql)
}

/// Writes the tokens again with the server's parameters.
///
/// For MySQL what was between them is reduced to a blank and line ends: its driver reads the text once more for its own
/// names and misreads some comments. Lines stay, because the server answers with line numbers.
struct Writer<'a> {
    source: &'a str,
    dialect: Dialect,
    sql: String,
    origins: Vec<(usize, usize)>,
    read: usize,
}

impl<'a> Writer<'a> {
    fn new(source: &'a str, dialect: Dialect) -> Self {
        Self { source, dialect, sql: String::with_capacity(source.len()), origins: Vec::new(), read: 0 }
    }

    fn gap(&mut self, token: &Token<'_>) {
        let between = self.source.get(self.read..token.start).unwrap_or_default();
        if self.dialect != Dialect::MySql {
            self.sql.push_str(between);
        } else if !between.is_empty() {
            self.sql.push(' ');
            self.sql.extend(between.chars().filter(|character| *character == '\n'));
        } else if self.sql.ends_with(['/', '-', ':']) && token.text.starts_with(['\'', '"', '`']) {
            // The driver takes the character after these for the rest of a comment mark.
            self.sql.push(' ');
        }
        self.origins.push((self.sql.len(), token.start));
        self.read = token.end();
    }

    fn copy(&mut self, token: &Token<'_>) {
        self.gap(token);
        self.sql.push_str(token.text);
    }

    fn parameter(&mut self, token: &Token<'_>, number: usize) {
        self.gap(token);
        match self.dialect {
            Dialect::Postgres => self.sql.push_str(&format!("${number}")),
            Dialect::MySql | Dialect::Sqlite => self.sql.push('?'),
        }
    }

    fn finish(self, values: Vec<Parameter>) -> Bound {
        Bound { sql: self.sql, values, origins: self.origins }
    }
}
