//! One statement: what it begins with, and what it does in the end.

use tgp_contract::ToolError;
use tgp_text::LineCol;

use super::kinds::ROUTINES;
use super::lexer::{Dialect, Kind, Token, tokens};
use crate::failure::{at, esql, several_statements};

/// A statement that a person or a model wrote fits here; data belongs into parameters.
pub(crate) const MAX_SQL_BYTES: usize = 1024 * 1024;

/// What may follow a `WITH` list, and what a statement's answer is about.
pub(super) const MAIN_VERBS: [&str; 8] =
    ["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "VALUES", "TABLE"];

/// The tokens of one statement, without comments and without the semicolon at its end.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    pub sql: &'a str,
    pub tokens: Vec<Token<'a>>,
}

impl<'a> Script<'a> {
    /// Reads a text that must be exactly one statement.
    pub fn read(sql: &'a str, dialect: Dialect) -> Result<Self, ToolError> {
        if sql.len() > MAX_SQL_BYTES {
            return Err(esql(format!(
                "the statement has {} bytes; at most {MAX_SQL_BYTES} are allowed",
                sql.len()
            ))
            .help("pass data as parameters"));
        }
        if sql.contains('\0') {
            return Err(esql("the statement contains a zero byte"));
        }
        let mut tokens = tokens(sql, dialect);
        if let Some(token) = tokens.iter().find(|token| token.kind == Kind::Unterminated) {
            let error = esql("a string, a quoted name or a comment does not end");
            return Err(at(error, LineCol::of(sql, token.start)));
        }
        if let Some(token) = tokens.iter().find(|token| token.kind == Kind::HiddenCode) {
            let error = esql("comments that the server executes are not allowed")
                .help("write the code without `/*! */`");
            return Err(at(error, LineCol::of(sql, token.start)));
        }
        if let Some(token) = tokens.iter().find(|token| token.kind == Kind::Ambiguous) {
            let error = esql("the server could read this place of the statement in two ways")
                .help("put a blank before a string, behind a parameter and between two minus signs; write a long string as one");
            return Err(at(error, LineCol::of(sql, token.start)));
        }
        tokens.retain(|token| token.kind != Kind::Comment);
        while tokens.last().is_some_and(|token| token.kind == Kind::Semicolon) {
            tokens.pop();
        }
        let script = Self { sql, tokens };
        if script.tokens.is_empty() {
            return Err(esql("there is no statement in the text"));
        }
        // The servers refuse several statements too; saying it here is clearer, and costs them nothing.
        let inner = script.tokens.iter().find(|token| token.kind == Kind::Semicolon);
        match inner {
            Some(semicolon) if !script.defines_routine() => {
                Err(at(several_statements(), LineCol::of(sql, semicolon.start)))
            }
            _ => Ok(script),
        }
    }

    /// The word the statement begins with, in capitals. Parentheses before it do not count.
    pub fn verb(&self) -> String {
        let first = self.tokens.iter().find(|token| token.text != "(");
        first
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text.to_ascii_uppercase())
            .unwrap_or_default()
    }

    /// The word that comes after the verb, in capitals; empty when it is not a word.
    pub fn second(&self) -> String {
        let second = self.tokens.get(1).filter(|token| token.kind == Kind::Word);
        second.map(|token| token.text.to_ascii_uppercase()).unwrap_or_default()
    }

    /// What the statement does: the verb, or the one after a list of `WITH` queries.
    pub fn main_verb(&self) -> String {
        let verb = self.verb();
        if verb != "WITH" {
            return verb;
        }
        let mut depth = 0_usize;
        for token in &self.tokens {
            match token.text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ if depth == 0 && token.kind == Kind::Word => {
                    if let Some(verb) = MAIN_VERBS.iter().find(|verb| token.is(verb)) {
                        return (*verb).to_owned();
                    }
                }
                _ => {}
            }
        }
        verb
    }

    /// True when the rows it counts were inserted, updated or deleted.
    pub fn counts_changes(&self) -> bool {
        matches!(self.main_verb().as_str(), "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE")
    }

    pub fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.is(word))
    }

    /// True when `first` is directly before `second`.
    pub fn has_pair(&self, first: &str, second: &str) -> bool {
        self.tokens.windows(2).any(|pair| match pair {
            [one, two] => one.is(first) && two.is(second),
            _ => false,
        })
    }

    fn defines_routine(&self) -> bool {
        self.verb() == "CREATE"
            && self
                .tokens
                .iter()
                .take_while(|token| token.kind != Kind::Semicolon)
                .any(|token| ROUTINES.iter().any(|routine| token.is(routine)))
    }
}
