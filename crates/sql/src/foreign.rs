//! Statements for a database that another program is connected to: read here, run there.

use serde_json::Value;
use tgp_contract::{SqlAccess, SqlClass, SqlParams, ToolError};
use tgp_text::LineCol;

use crate::failure::{at, esql};
use crate::text::{
    Attributes, Dialect, Kind, Script, Token, classify, count, doubt_call, missing_name, not_given,
    superfluous,
};
use crate::values::Parameter;
use crate::{mysql, postgres};

/// One statement with place holders that every driver of its dialect takes, and their values in order.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignStatement {
    pub sql: String,
    /// As they were given: bytes are `{"$base64": …}`.
    pub parameters: Vec<Value>,
    /// The database commits with it, or may: what the transaction has done before stays whatever happens then.
    pub seals: bool,
}

/// How the place holders of a statement are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaceholderStyle {
    /// `$1` for PostgreSQL, else `?`.
    #[default]
    Native,
    /// `%s`; every other `%` is doubled.
    Format,
}

/// What a statement does, as far as its text says.
///
/// # Errors
/// `ESQL` for a dialect that is not known.
pub fn classify_foreign(sql: &str, dialect: &str) -> Result<SqlClass, ToolError> {
    let known = known(dialect)?;
    let found = classify(sql, known);
    // There is no catalogue to ask here. A column of a value that is a row is rare, and then strictly read.
    let attributes = if known == Dialect::Postgres { Attributes::read(sql) } else { Attributes::default() };
    let is_doubtful = attributes.is_unclear || !attributes.of_values.is_empty();
    Ok(if is_doubtful { doubt_call(found) } else { found })
}

fn known(dialect: &str) -> Result<Dialect, ToolError> {
    match dialect {
        "sqlite" => Ok(Dialect::Sqlite),
        "postgresql" => Ok(Dialect::Postgres),
        "mysql" => Ok(Dialect::MySql),
        _ => {
            Err(esql(format!("the dialect `{dialect}` is not known"))
                .help("name sqlite, postgresql or mysql"))
        }
    }
}

/// Reads a text that must be one statement, and puts its parameters in order.
///
/// # Errors
/// `ESQL` for a text that is not one statement, and for parameters that do not fit it.
pub fn prepare_foreign(
    sql: &str,
    params: &SqlParams,
    dialect: &str,
    style: PlaceholderStyle,
) -> Result<ForeignStatement, ToolError> {
    let dialect = known(dialect)?;
    let script = Script::read(sql, dialect)?;
    let seals = admit(&script, dialect)?;
    let mut writer =
        Writer { sql, dialect, style, text: String::with_capacity(sql.len()), end: 0, values: Vec::new() };
    match params {
        SqlParams::Named(given) => {
            let mut names: Vec<&str> = Vec::new();
            for token in &script.tokens {
                let Some(name) = token.text.get(1..).filter(|_| token.kind == Kind::Named) else {
                    writer.copy(token);
                    continue;
                };
                let value = given.get(name);
                let value = value.ok_or_else(|| at(not_given(name, given), LineCol::of(sql, token.start)))?;
                Parameter::read(value, &format!("`:{name}`"))?;
                writer.put(token, value);
                names.push(name);
            }
            if let Some(name) = given.keys().find(|name| !names.contains(&name.as_str())) {
                return Err(superfluous(name));
            }
        }
        SqlParams::Positional(given) => in_order(&script, given, &mut writer)?,
        SqlParams::None => in_order(&script, &[], &mut writer)?,
    }
    Ok(writer.finish(seals))
}

/// Words that begin a statement about transactions or about the connection.
const SQLITE_CONTROL: [&str; 9] =
    ["ATTACH", "BEGIN", "COMMIT", "DETACH", "END", "RELEASE", "ROLLBACK", "SAVEPOINT", "VACUUM"];
/// What PRAGMA may ask for: it sets nothing with these.
const SQLITE_QUESTIONS: [&str; 7] = [
    "FOREIGN_KEY_LIST",
    "INDEX_INFO",
    "INDEX_LIST",
    "INDEX_XINFO",
    "TABLE_INFO",
    "TABLE_LIST",
    "TABLE_XINFO",
];

/// Refuses what would end the transaction around it or change the connection: the other program runs it as it is. Says whether
/// the database commits with it.
fn admit(script: &Script<'_>, dialect: Dialect) -> Result<bool, ToolError> {
    match dialect {
        Dialect::MySql => {
            let effect = mysql::rules::check(script, SqlAccess::ReadWrite)?;
            Ok(matches!(effect, mysql::rules::Effect::Definition | mysql::rules::Effect::Call))
        }
        Dialect::Postgres => postgres::rules::check(script).map(|()| false),
        Dialect::Sqlite => {
            let verb = script.verb();
            if SQLITE_CONTROL.contains(&verb.as_str()) {
                return Err(esql(format!(
                    "{verb} is not allowed: transactions are opened and closed by the kernel"
                ))
                .help("return to commit, throw to roll back"));
            }
            if verb == "PRAGMA" && !SQLITE_QUESTIONS.contains(&script.second().as_str()) {
                return Err(esql("this PRAGMA changes the connection, or is not known")
                    .help("ask with SELECT, such as SELECT * FROM pragma_table_info('users')"));
            }
            Ok(false)
        }
    }
}

fn in_order(script: &Script<'_>, given: &[Value], writer: &mut Writer<'_>) -> Result<(), ToolError> {
    for (index, value) in given.iter().enumerate() {
        Parameter::read(value, &format!("{}", index + 1))?;
    }
    let has_dollars = script.tokens.iter().any(|token| token.kind == Kind::Dollar);
    // `?` is an operator of PostgreSQL where it is no place holder.
    let questions = writer.dialect != Dialect::Postgres || (!has_dollars && !given.is_empty());
    let (mut next, mut wanted) = (0, 0);
    for token in &script.tokens {
        let place = match token.kind {
            Kind::Dollar if writer.dialect != Dialect::MySql => number(token),
            Kind::Question if questions && token.text.len() > 1 => number(token),
            Kind::Question if questions => {
                next += 1;
                Some(next)
            }
            Kind::Named if given.is_empty() => {
                let name = token.text.get(1..).unwrap_or_default();
                return Err(at(missing_name(name), LineCol::of(script.sql, token.start)));
            }
            _ => {
                writer.copy(token);
                continue;
            }
        };
        let place = place.unwrap_or(usize::MAX);
        wanted = wanted.max(place);
        if let Some(value) = place.checked_sub(1).and_then(|index| given.get(index)) {
            writer.put(token, value);
        }
    }
    count(wanted, given.len())
}

/// The number of a place holder such as `$1` or `?1`.
fn number(token: &Token<'_>) -> Option<usize> {
    token.text.get(1..).and_then(|digits| digits.parse().ok())
}

struct Writer<'a> {
    sql: &'a str,
    dialect: Dialect,
    style: PlaceholderStyle,
    text: String,
    /// The end of what is written of `sql`.
    end: usize,
    values: Vec<Value>,
}

impl Writer<'_> {
    /// What is between two tokens. Of comments only the lines stay where a driver reads the text once more: it would take
    /// something in them for a place holder.
    fn gap(&mut self, token: &Token<'_>) {
        let between = self.sql.get(self.end..token.start).unwrap_or_default();
        if self.dialect != Dialect::MySql && self.style == PlaceholderStyle::Native {
            self.text.push_str(between);
        } else if !between.is_empty() {
            self.text.push(' ');
            self.text.extend(between.chars().filter(|character| *character == '\n'));
        }
        self.end = token.end();
    }

    fn copy(&mut self, token: &Token<'_>) {
        self.gap(token);
        match self.style {
            PlaceholderStyle::Native => self.text.push_str(token.text),
            PlaceholderStyle::Format => self.text.push_str(&token.text.replace('%', "%%")),
        }
    }

    fn put(&mut self, token: &Token<'_>, value: &Value) {
        self.gap(token);
        self.values.push(value.clone());
        match (self.style, self.dialect) {
            (PlaceholderStyle::Format, _) => self.text.push_str("%s"),
            (PlaceholderStyle::Native, Dialect::Postgres) => {
                self.text.push_str(&format!("${}", self.values.len()));
            }
            (PlaceholderStyle::Native, Dialect::Sqlite | Dialect::MySql) => self.text.push('?'),
        }
    }

    /// What comes after the last token is a comment or a semicolon.
    fn finish(self, seals: bool) -> ForeignStatement {
        ForeignStatement { sql: self.text, parameters: self.values, seals }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use tgp_contract::{Code, UNKNOWN_KIND};

    use super::*;

    /// SQLite reads all up to the bracket as one variable, so that the quote in it begins no string.
    #[test]
    fn bug_a_variable_of_tcl_hid_a_statement_from_the_rules() {
        for variable in [
            "@a(?')",
            "@a(')",
            "$a(')",
            ":a(')",
            "#a(')",
            "$a::b(')",
            "@a::b::c(')",
            ":::a(')",
            "$::a(')",
            ":1(')",
        ] {
            let sql = format!("WITH t AS (SELECT {variable}) DELETE FROM users -- ')) SELECT 1");
            let class = classify_foreign(&sql, "sqlite").unwrap();
            assert!(!class.reads && class.kinds.iter().any(|kind| kind == UNKNOWN_KIND), "{sql}: {class:?}");
            let parameters = SqlParams::Positional(vec![json!(1)]);
            let refused = prepare_foreign(&sql, &parameters, "sqlite", PlaceholderStyle::Native);
            assert_eq!(refused.unwrap_err().code, Code::Sql, "{sql}");
        }
    }

    #[test]
    fn parameters_come_in_the_order_of_their_place_holders() {
        let list = |values: Value| SqlParams::Positional(values.as_array().cloned().unwrap_or_default());
        let named =
            SqlParams::Named(Map::from_iter([("a".to_owned(), json!(1)), ("b".to_owned(), json!("x"))]));
        let cases = [
            ("sqlite", "SELECT ?, ?", list(json!([1, 2])), "SELECT ?, ?", json!([1, 2])),
            ("sqlite", "SELECT ?2, ?1, ?2", list(json!([1, 2])), "SELECT ?, ?, ?", json!([2, 1, 2])),
            ("sqlite", "SELECT $1 -- ?\n", list(json!([1])), "SELECT ?", json!([1])),
            ("sqlite", "SELECT :a, ':b', :b, :a", named.clone(), "SELECT ?, ':b', ?, ?", json!([1, "x", 1])),
            ("postgresql", "SELECT ?, '?'", list(json!([1])), "SELECT $1, '?'", json!([1])),
            ("postgresql", "SELECT $2, $1", list(json!([1, 2])), "SELECT $1, $2", json!([2, 1])),
            ("postgresql", "SELECT :a, :b::text", named, "SELECT $1, $2::text", json!([1, "x"])),
            ("postgresql", "SELECT j ? 'k'", SqlParams::None, "SELECT j ? 'k'", json!([])),
            ("mysql", "SELECT -- it's\n ?;", list(json!([1])), "SELECT \n?", json!([1])),
        ];
        for (dialect, sql, params, text, values) in cases {
            let prepared = prepare_foreign(sql, &params, dialect, PlaceholderStyle::Native).unwrap();
            assert_eq!(
                (prepared.sql.as_str(), json!(prepared.parameters)),
                (text, values),
                "{dialect}: {sql}"
            );
        }
    }

    #[test]
    fn drivers_with_percent_signs_get_them() {
        let cases = [
            ("sqlite", "SELECT ?2 % ?1 -- %s\n, '%s'", "SELECT %s %% %s \n, '%%s'"),
            ("postgresql", "SELECT $2 % $1, '100%'", "SELECT %s %% %s, '100%%'"),
        ];
        for (dialect, sql, expected) in cases {
            let params = SqlParams::Positional(vec![json!(1), json!(2)]);
            let prepared = prepare_foreign(sql, &params, dialect, PlaceholderStyle::Format).unwrap();
            assert_eq!((prepared.sql.as_str(), prepared.parameters), (expected, vec![json!(2), json!(1)]));
        }
    }

    #[test]
    fn what_is_not_one_statement_with_its_values_is_refused() {
        let list = |count: usize| SqlParams::Positional(vec![json!(1); count]);
        let cases = [
            ("sqlite", "SELECT 1; SELECT 2", list(0), "statement"),
            ("sqlite", "SELECT ?", list(0), "1 needed, 0 given"),
            ("sqlite", "SELECT 1", list(1), "0 needed, 1 given"),
            ("mysql", "SELECT /*! 1 */", list(0), "comments"),
            ("postgresql", "SELECT :a", list(0), "`:a`"),
            ("postgresql", "SELECT $9", list(1), "9 needed, 1 given"),
            ("oracle", "SELECT 1", list(0), "oracle"),
        ];
        for (dialect, sql, params, expected) in cases {
            let error = prepare_foreign(sql, &params, dialect, PlaceholderStyle::Native).unwrap_err();
            assert!(error.message.contains(expected), "{dialect}: {sql}: {error}");
        }
    }
}
