//! The part of Cypher that `relay/fixtures/graph-questions/README.md` describes: one `MATCH` of a chain, conditions that
//! all hold, and properties that are returned.

use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

/// Bytes of a question.
const MAX_QUESTION: usize = 4_096;

/// A node of a chain, such as `(f:File {path: $path})`.
#[derive(Debug, Default)]
pub(crate) struct NodePattern {
    pub(crate) variable: Option<String>,
    pub(crate) label: Option<String>,
}

/// A relationship of a chain, such as `-[:IMPORTS*]->`.
#[derive(Debug)]
pub(crate) struct LinkPattern {
    pub(crate) kind: String,
    /// One step or more, instead of one.
    pub(crate) is_repeated: bool,
    /// Whether it leads from the node on the right to the one on the left.
    pub(crate) is_reversed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equals,
    In,
    StartsWith,
    EndsWith,
    Contains,
}

/// What a property of a node is compared with.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) node: usize,
    pub(crate) property: String,
    pub(crate) comparison: Comparison,
    /// One text, but for [`Comparison::In`].
    pub(crate) values: Vec<String>,
}

/// A column of the answer.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) node: usize,
    pub(crate) property: String,
    pub(crate) name: String,
}

/// A question that was understood, with its parameters in their places.
#[derive(Debug)]
pub(crate) struct ChainQuery {
    pub(crate) nodes: Vec<NodePattern>,
    /// One fewer than nodes.
    pub(crate) links: Vec<LinkPattern>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) is_distinct: bool,
    pub(crate) columns: Vec<Column>,
}

impl ChainQuery {
    /// # Errors
    /// `EVALIDATION` for anything else than the part of Cypher that is understood here.
    pub(crate) fn parse(text: &str, params: &Map<String, Value>) -> Result<Self, ToolError> {
        if text.len() > MAX_QUESTION {
            return Err(refuse(&format!("the question has more than {MAX_QUESTION} bytes")));
        }
        let mut parser = Parser { tokens: tokens(text)?, at: 0, params };
        parser.question()
    }
}

fn refuse(what: &str) -> ToolError {
    ToolError::new(Code::Validation, format!("this graph knows only a part of Cypher: {what}"))
        .help("see relay/fixtures/graph-questions/README.md for what it understands")
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `$name`.
    Parameter(String),
    Text(String),
    Sign(char),
}

fn tokens(text: &str) -> Result<Vec<Token>, ToolError> {
    let mut tokens = Vec::new();
    let mut letters = text.chars().peekable();
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        if is_of_word(letter) || letter == '$' {
            let mut word = if letter == '$' { String::new() } else { letter.to_string() };
            while let Some(next) = letters.next_if(|next| is_of_word(*next)) {
                word.push(next);
            }
            tokens.push(if letter == '$' { Token::Parameter(word) } else { Token::Word(word) });
        } else if letter == '\'' || letter == '"' {
            let mut value = String::new();
            loop {
                match letters.next() {
                    Some(end) if end == letter => break,
                    Some('\\') | None => return Err(refuse("a text with `\\` or without its end")),
                    Some(other) => value.push(other),
                }
            }
            tokens.push(Token::Text(value));
        } else {
            tokens.push(Token::Sign(letter));
        }
    }
    Ok(tokens)
}

struct Parser<'p> {
    tokens: Vec<Token>,
    at: usize,
    params: &'p Map<String, Value>,
}

impl Parser<'_> {
    fn question(&mut self) -> Result<ChainQuery, ToolError> {
        self.keyword("MATCH")?;
        let mut conditions = Vec::new();
        let mut nodes = vec![self.node(0, &mut conditions)?];
        let mut links = Vec::new();
        while let Some(link) = self.link()? {
            links.push(link);
            nodes.push(self.node(nodes.len(), &mut conditions)?);
        }
        if self.take_keyword("WHERE") {
            loop {
                conditions.push(self.condition(&nodes)?);
                if !self.take_keyword("AND") {
                    break;
                }
            }
        }
        self.keyword("RETURN")?;
        let is_distinct = self.take_keyword("DISTINCT");
        let mut columns = Vec::new();
        loop {
            let (node, property) = self.property(&nodes)?;
            self.keyword("AS")?;
            columns.push(Column { node, property, name: self.word()? });
            if !self.take_sign(',') {
                break;
            }
        }
        match self.tokens.get(self.at) {
            None => Ok(ChainQuery { nodes, links, conditions, is_distinct, columns }),
            Some(token) => Err(refuse(&format!("{token:?} after the columns"))),
        }
    }

    /// `(f:File {path: $path})`; what is in the braces becomes conditions.
    fn node(&mut self, number: usize, conditions: &mut Vec<Condition>) -> Result<NodePattern, ToolError> {
        self.sign('(')?;
        let mut node = NodePattern { variable: self.take_word(), label: None };
        if self.take_sign(':') {
            node.label = Some(self.word()?);
        }
        if self.take_sign('{') {
            loop {
                let property = self.word()?;
                self.sign(':')?;
                let values = vec![self.text()?];
                conditions.push(Condition { node: number, property, comparison: Comparison::Equals, values });
                if !self.take_sign(',') {
                    break;
                }
            }
            self.sign('}')?;
        }
        self.sign(')')?;
        Ok(node)
    }

    /// `-[:IMPORTS]->`, `-[:IMPORTS*]->` and `<-[:IMPORTS]-`.
    fn link(&mut self) -> Result<Option<LinkPattern>, ToolError> {
        let is_reversed = self.take_sign('<');
        if !self.take_sign('-') {
            return if is_reversed { Err(refuse("`<` without `-`")) } else { Ok(None) };
        }
        self.sign('[')?;
        self.sign(':')?;
        let kind = self.word()?;
        let is_repeated = self.take_sign('*');
        self.sign(']')?;
        self.sign('-')?;
        if !is_reversed {
            self.sign('>')?;
        }
        Ok(Some(LinkPattern { kind, is_repeated, is_reversed }))
    }

    fn condition(&mut self, nodes: &[NodePattern]) -> Result<Condition, ToolError> {
        let (node, property) = self.property(nodes)?;
        let comparison = if self.take_sign('=') {
            Comparison::Equals
        } else if self.take_keyword("IN") {
            Comparison::In
        } else if self.take_keyword("CONTAINS") {
            Comparison::Contains
        } else if self.take_keyword("STARTS") {
            self.keyword("WITH")?;
            Comparison::StartsWith
        } else {
            self.keyword("ENDS")?;
            self.keyword("WITH")?;
            Comparison::EndsWith
        };
        let values = if comparison == Comparison::In { self.list()? } else { vec![self.text()?] };
        Ok(Condition { node, property, comparison, values })
    }

    /// `f.path`: the number of the node in the chain, and the name of the property.
    fn property(&mut self, nodes: &[NodePattern]) -> Result<(usize, String), ToolError> {
        let variable = self.word()?;
        self.sign('.')?;
        let node = nodes.iter().position(|node| node.variable.as_ref() == Some(&variable));
        let node = node.ok_or_else(|| refuse(&format!("`{variable}` is no variable of the chain")))?;
        Ok((node, self.word()?))
    }

    fn text(&mut self) -> Result<String, ToolError> {
        match self.next() {
            Some(Token::Text(text)) => Ok(text),
            Some(Token::Parameter(name)) => match self.params.get(&name) {
                Some(Value::String(text)) => Ok(text.clone()),
                _ => Err(refuse(&format!("the parameter `${name}` is not a text"))),
            },
            other => Err(refuse(&format!("{other:?} where a text was expected"))),
        }
    }

    fn list(&mut self) -> Result<Vec<String>, ToolError> {
        if self.take_sign('[') {
            let mut texts = vec![self.text()?];
            while self.take_sign(',') {
                texts.push(self.text()?);
            }
            self.sign(']')?;
            return Ok(texts);
        }
        let Some(Token::Parameter(name)) = self.next() else {
            return Err(refuse("`IN` without a list"));
        };
        let items = self.params.get(&name).and_then(Value::as_array);
        let texts = items.and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| refuse(&format!("the parameter `${name}` is not a list of texts")))
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn take_sign(&mut self, wanted: char) -> bool {
        let is_there = self.tokens.get(self.at) == Some(&Token::Sign(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn sign(&mut self, wanted: char) -> Result<(), ToolError> {
        if self.take_sign(wanted) {
            return Ok(());
        }
        Err(refuse(&format!("{:?} where `{wanted}` was expected", self.tokens.get(self.at))))
    }

    fn take_word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.tokens.get(self.at) else { return None };
        self.at += 1;
        Some(word.clone())
    }

    fn word(&mut self) -> Result<String, ToolError> {
        self.take_word()
            .ok_or_else(|| refuse(&format!("{:?} where a name was expected", self.tokens.get(self.at))))
    }

    fn take_keyword(&mut self, wanted: &str) -> bool {
        let is_there =
            matches!(self.tokens.get(self.at), Some(Token::Word(word)) if word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn keyword(&mut self, wanted: &str) -> Result<(), ToolError> {
        if self.take_keyword(wanted) {
            return Ok(());
        }
        Err(refuse(&format!("{:?} where `{wanted}` was expected", self.tokens.get(self.at))))
    }
}
