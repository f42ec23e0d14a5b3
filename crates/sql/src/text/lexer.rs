//! A lexer for the parts of SQL that can hide other parts: strings, names, comments, parameters.

use std::iter::Peekable;
use std::str::CharIndices;

/// U+FEFF, which editors put before a text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
    MySql,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a bare name.
    Word,
    Number,
    /// A string of any sort.
    Text,
    /// A quoted name.
    Name,
    /// `?`
    Question,
    /// `$1`
    Dollar,
    /// `:name`
    Named,
    /// `@name` or `@@name`
    Variable,
    Semicolon,
    Symbol,
    Comment,
    /// A comment that MySQL executes.
    HiddenCode,
    /// A string, a name or a comment that never ends.
    Unterminated,
    /// What the versions of a server, or a server and its driver, read differently.
    Ambiguous,
}

/// A token and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub start: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

/// Splits `sql` into tokens, comments included. Only blanks are left out.
pub(crate) fn tokens(sql: &str, dialect: Dialect) -> Vec<Token<'_>> {
    let mut lexer = Lexer { sql, dialect, rest: sql.char_indices().peekable() };
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // The last one that is not a comment.
    let mut last: Option<Token<'_>> = None;
    while let Some((start, first)) = lexer.rest.next() {
        if is_blank(first, dialect) {
            continue;
        }
        let kind = lexer.token(start, first);
        let text = sql.get(start..lexer.position()).unwrap_or_default();
        let mut token = Token { kind, text, start };
        if dialect == Dialect::Postgres
            && kind == Kind::Text
            && last.is_some_and(|last| unclear(&last, &token))
        {
            token.kind = Kind::Ambiguous;
        }
        if token.kind != Kind::Comment {
            last = Some(token);
        }
        tokens.push(token);
    }
    tokens
}

/// What a database skips between two tokens. No database takes other blanks of Unicode for blanks: there they are parts
/// of names. SQLite takes a byte order mark for one.
fn is_blank(character: char, dialect: Dialect) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}')
        || (character == BYTE_ORDER_MARK && dialect == Dialect::Sqlite)
}

/// Whether PostgreSQL may read a string in another way than its own text says, because of what is before it.
fn unclear(before: &Token<'_>, string: &Token<'_>) -> bool {
    let escapes = |token: &Token<'_>| token.text.starts_with(['e', 'E']);
    // A string after another one continues it, with the escapes of the first.
    let continues = before.kind == Kind::Text && escapes(before) && string.text.starts_with('\'');
    // In `1E'…'` the letter belongs to the number or to the string, which depends on the version.
    let adjoins = matches!(before.kind, Kind::Number | Kind::Dollar) && before.end() == string.start;
    continues || (adjoins && escapes(string))
}

struct Lexer<'a> {
    sql: &'a str,
    dialect: Dialect,
    rest: Peekable<CharIndices<'a>>,
}

impl Lexer<'_> {
    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.sql.len(), |(position, _)| *position)
    }

    fn next_is(&mut self, test: impl Fn(char) -> bool) -> bool {
        self.rest.peek().is_some_and(|(_, character)| test(*character))
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.next_is(|character| character == wanted);
        if found {
            self.rest.next();
        }
        found
    }

    fn eat_while(&mut self, test: impl Fn(char) -> bool) {
        while self.next_is(&test) {
            self.rest.next();
        }
    }

    /// True when the text continues with `wanted`; consumes nothing.
    fn ahead(&mut self, wanted: &str) -> bool {
        let position = self.position();
        self.sql.get(position..).is_some_and(|rest| rest.starts_with(wanted))
    }

    fn token(&mut self, start: usize, first: char) -> Kind {
        use Dialect::{MySql, Postgres, Sqlite};
        match (first, self.dialect) {
            ('\'', MySql) => self.quoted('\'', Escapes::Backslash, Kind::Text),
            ('\'', _) => self.quoted('\'', Escapes::Doubled, Kind::Text),
            ('"', MySql) => self.quoted('"', Escapes::Backslash, Kind::Text),
            ('"', _) => self.quoted('"', Escapes::Doubled, Kind::Name),
            ('`', MySql | Sqlite) => self.quoted('`', Escapes::Doubled, Kind::Name),
            ('[', Sqlite) => self.bracketed(),
            ('-', _) if self.dash_comment() => self.line_comment(),
            ('-', MySql) if self.unclear_dashes() => Kind::Ambiguous,
            ('#', MySql) => self.line_comment(),
            ('/', _) if self.eat('*') => self.block_comment(),
            ('$', Postgres) if !self.next_is(|character| character.is_ascii_digit()) => {
                self.dollar_quoted(start)
            }
            ('$', Postgres) => {
                self.eat_while(|character| character.is_ascii_digit());
                Kind::Dollar
            }
            ('$', Sqlite) => self.sqlite_variable(Kind::Dollar),
            ('@', Sqlite) => self.sqlite_variable(Kind::Variable),
            // SQLite reads it as the beginning of a variable, and takes it nowhere else.
            ('#', Sqlite) if self.next_is(|next| word_part(next) || next == ':') => Kind::Ambiguous,
            ('?', _) => {
                if self.dialect == Sqlite {
                    self.eat_while(|character| character.is_ascii_digit());
                }
                Kind::Question
            }
            // `:::name(…)` is a variable there, and nothing else begins like this.
            (':', Sqlite) if self.eat(':') => Kind::Ambiguous,
            (':', _) if self.eat(':') || self.eat('=') => Kind::Symbol,
            (':', Sqlite) if self.next_is(word_part) => self.sqlite_variable(Kind::Named),
            (':', _) if self.next_is(word_start) => {
                self.eat_while(name_part);
                Kind::Named
            }
            ('@', MySql) => {
                self.eat('@');
                self.eat_while(|character| word_part(character) || character == '.');
                Kind::Variable
            }
            (';', _) => Kind::Semicolon,
            _ if first.is_ascii_digit() && self.dialect == Postgres => self.number(),
            _ if first.is_ascii_digit() => {
                self.eat_while(|character| word_part(character) || character == '.');
                Kind::Number
            }
            ('e' | 'E', Postgres) if self.eat('\'') => self.quoted('\'', Escapes::Backslash, Kind::Text),
            _ if word_start(first) => {
                self.eat_while(word_part);
                Kind::Word
            }
            _ => Kind::Symbol,
        }
    }

    /// A variable as Tcl has them, `$ns::name(index)`: all up to the bracket that closes is one token for SQLite, also what
    /// looks like the beginning of a string.
    fn sqlite_variable(&mut self, kind: Kind) -> Kind {
        self.eat_while(word_part);
        if self.next_is(|character| matches!(character, '(' | ':')) { Kind::Ambiguous } else { kind }
    }

    /// A number of PostgreSQL. A word or a string can follow it without a blank.
    fn number(&mut self) -> Kind {
        let digits = |character: char| character.is_ascii_digit() || character == '_' || character == '.';
        self.eat_while(digits);
        let mut after = self.rest.clone();
        let exponent = after.next().is_some_and(|(_, letter)| matches!(letter, 'e' | 'E'));
        let mut power = after.clone();
        let signed = power.next().is_some_and(|(_, sign)| matches!(sign, '+' | '-'));
        let mut power = if signed { power } else { after };
        if exponent && power.next().is_some_and(|(_, digit)| digit.is_ascii_digit()) {
            self.rest = power;
            self.eat_while(digits);
        }
        Kind::Number
    }

    /// The opening quote is taken. A doubled quote stays inside in every dialect.
    fn quoted(&mut self, quote: char, escapes: Escapes, kind: Kind) -> Kind {
        while let Some((_, character)) = self.rest.next() {
            if character == '\\' && escapes == Escapes::Backslash {
                self.rest.next();
            } else if character == quote && !self.eat(quote) {
                return kind;
            }
        }
        Kind::Unterminated
    }

    fn bracketed(&mut self) -> Kind {
        self.eat_while(|character| character != ']');
        if self.eat(']') { Kind::Name } else { Kind::Unterminated }
    }

    /// MySQL wants a blank after the dashes, so that `1--1` is a sum.
    fn dash_comment(&mut self) -> bool {
        let mut after = self.rest.clone();
        after.next().is_some_and(|(_, second)| second == '-')
            && (self.dialect != Dialect::MySql
                || after.next().is_none_or(|(_, third)| third == ' ' || third.is_ascii_control()))
    }

    /// Two dashes that are not a comment in MySQL, and become one when a blank is written behind them, as it has to be
    /// for the driver in some places.
    fn unclear_dashes(&mut self) -> bool {
        let mut after = self.rest.clone();
        let plain = |third: char| third.is_ascii_alphanumeric() || matches!(third, '_' | '(' | '.');
        after.next().is_some_and(|(_, second)| second == '-')
            && !after.next().is_some_and(|(_, third)| plain(third))
    }

    fn line_comment(&mut self) -> Kind {
        // A lone carriage return ends a comment in PostgreSQL only.
        let postgres = self.dialect == Dialect::Postgres;
        self.eat_while(|character| character != '\n' && !(postgres && character == '\r'));
        Kind::Comment
    }

    /// `/*` is taken. PostgreSQL's comments nest; SQLite's may be left open.
    fn block_comment(&mut self) -> Kind {
        let hidden = self.dialect == Dialect::MySql && (self.ahead("!") || self.ahead("M!"));
        let mut depth = 1_usize;
        while let Some((_, character)) = self.rest.next() {
            if character == '*' && self.eat('/') {
                depth -= 1;
            } else if character == '/' && self.dialect == Dialect::Postgres && self.eat('*') {
                depth += 1;
            }
            if depth == 0 {
                return if hidden { Kind::HiddenCode } else { Kind::Comment };
            }
        }
        if self.dialect == Dialect::Sqlite { Kind::Comment } else { Kind::Unterminated }
    }

    /// `$` is taken: `$tag$ … $tag$`, or a lone dollar.
    fn dollar_quoted(&mut self, start: usize) -> Kind {
        let opening = self.sql.get(start..).unwrap_or_default();
        let Some(length) = opening.char_indices().skip(1).find(|(_, character)| *character == '$') else {
            return Kind::Symbol;
        };
        let Some(tag) = opening.get(..=length.0) else { return Kind::Symbol };
        let label = tag.trim_matches('$');
        if !label.chars().all(name_part) || label.starts_with(|first: char| first.is_ascii_digit()) {
            return Kind::Symbol;
        }
        let end = opening.get(tag.len()..).and_then(|body| body.find(tag));
        let stop = end.map_or(self.sql.len(), |end| start + tag.len() + end + tag.len());
        while self.position() < stop {
            self.rest.next();
        }
        if end.is_some() { Kind::Text } else { Kind::Unterminated }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Doubled,
    Backslash,
}

fn word_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

fn word_part(character: char) -> bool {
    name_part(character) || character == '$'
}

/// Parameter names and dollar tags have no dollar in them.
fn name_part(character: char) -> bool {
    word_start(character) || character.is_ascii_digit()
}
