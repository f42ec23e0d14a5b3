//! Comments as documentation: which one belongs to what, and what it says.

use std::collections::BTreeMap;

use oxc::ast::ast::{Comment, Program, Statement};
use oxc::span::{GetSpan, Span};

/// A comment with more tags than this was not written to be read.
const MAX_TAGS: usize = 64;

/// The longest description of one property.
pub(super) const MAX_PROPERTY_TEXT: usize = 300;

/// How much of one comment is read. A type may be expanded often, and its comments with it.
const MAX_COMMENT_BYTES: usize = 16 * 1024;

/// Comments that speak to programs, by how they begin.
const MACHINE_WORDS: [&str; 12] = [
    "@ts-",
    "eslint",
    "prettier-",
    "biome-",
    "oxlint",
    "tslint",
    "deno-",
    "istanbul",
    "c8 ignore",
    "v8 ignore",
    "SPDX-",
    "<reference",
];

/// Tags whose text says what the thing is, when nothing stands before the tags.
const TEXT_TAGS: [&str; 7] =
    ["description", "desc", "summary", "fileoverview", "file", "overview", "remarks"];

/// One doc comment, taken apart.
#[derive(Debug, Default)]
pub(super) struct Doc {
    /// The text before the first tag, on one line.
    pub(super) text: String,
    pub(super) tags: Vec<Tag>,
}

/// `@name {kind} text`.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: String,
    /// The type in braces, as it is written.
    pub(super) kind: Option<String>,
    pub(super) text: String,
}

/// `@param {kind} [path.to.name=default] - text`.
#[derive(Debug)]
pub(super) struct ParameterTag {
    pub(super) path: Vec<String>,
    pub(super) kind: Option<String>,
    pub(super) is_optional: bool,
    pub(super) default: Option<String>,
    pub(super) text: String,
}

/// The comments of one source.
pub(super) struct Docs<'a> {
    source: &'a str,
    /// Doc comments by the place they are attached to, in their order.
    attached: BTreeMap<u32, Vec<Span>>,
    /// The first doc comment above the code.
    head: Option<Span>,
    /// The first comments of the file of another kind, up to an empty line.
    opening: Vec<Span>,
}

impl<'a> Docs<'a> {
    pub(super) fn new(program: &Program<'a>) -> Self {
        let source = program.source_text;
        let mut docs = Self { source, attached: BTreeMap::new(), head: None, opening: Vec::new() };
        let end = program.span.end;
        let directive = program.directives.first().map_or(end, |directive| directive.span.start);
        let first = program.body.first().map_or(end, |statement| statement.span().start).min(directive);
        // Imports say nothing of the file, so its description may stand on either side of them.
        let is_import = |statement: &&Statement<'_>| matches!(statement, Statement::ImportDeclaration(_));
        let code = program.body.iter().find(|statement| !is_import(statement));
        let code = code.map_or(end, |statement| statement.span().start).min(directive);
        for comment in &program.comments {
            if is_doc(text_of(source, comment.span)) {
                docs.attached.entry(comment.attached_to).or_default().push(comment.span);
                if comment.span.end <= code && docs.head.is_none() {
                    docs.head = Some(comment.span);
                }
            } else if comment.span.end <= first {
                docs.add_opening(comment);
            }
        }
        docs
    }

    fn add_opening(&mut self, comment: &Comment) {
        let words = comment_text(text_of(self.source, comment.span));
        if MACHINE_WORDS.iter().any(|word| words.starts_with(word)) || comment.is_legal() {
            return;
        }
        if let Some(last) = self.opening.last() {
            let between = text_of(self.source, Span::new(last.end, comment.span.start));
            let lines = between.matches('\n').count().max(between.matches('\r').count());
            if lines > 1 || !between.trim().is_empty() {
                return;
            }
        }
        self.opening.push(comment.span);
    }

    /// The doc comment nearest above the thing that begins at `start`.
    pub(super) fn of(&self, start: u32) -> Option<Doc> {
        let span = self.attached.get(&start)?.last()?;
        Some(Doc::parse(text_of(self.source, *span)))
    }

    /// The doc comment at the head of the file.
    pub(super) fn head(&self) -> Option<Doc> {
        self.head.map(|span| Doc::parse(text_of(self.source, span)))
    }

    /// The ordinary comments that open the file, without the lines that only name it.
    pub(super) fn opening(&self, file: &str) -> String {
        let mut text = String::new();
        for span in &self.opening {
            let words = comment_text(text_of(self.source, *span));
            if !words.ends_with(file) || words.contains(char::is_whitespace) {
                text.push_str(&words);
                text.push('\n');
            }
        }
        text
    }

    /// `name: type; // text`: the comment behind the thing that ends at `end`, on its line.
    pub(super) fn behind(&self, end: u32) -> Option<String> {
        // Only a comment is read to the end of its line, else a long line would be read for each of its members.
        let rest = self.source.get(end as usize..)?.trim_start_matches([';', ',', ' ', '\t']);
        let text = rest.strip_prefix("//")?.split(['\n', '\r']).next()?;
        Some(one_line(text.trim_start_matches('/'), MAX_PROPERTY_TEXT)).filter(|text| !text.is_empty())
    }

    /// Every doc comment, in source order.
    pub(super) fn all(&self) -> impl Iterator<Item = Doc> {
        self.attached.values().flatten().map(|span| Doc::parse(text_of(self.source, *span)))
    }
}

fn text_of(source: &str, span: Span) -> &str {
    source.get(span.start as usize..span.end as usize).unwrap_or_default()
}

fn is_doc(comment: &str) -> bool {
    comment.starts_with("/**") && comment.len() > "/**/".len()
}

/// A comment's words, line by line, without slashes and stars.
fn comment_text(comment: &str) -> String {
    let comment = tgp_text::head(comment, MAX_COMMENT_BYTES);
    let inner = match comment.strip_prefix("/*") {
        Some(block) => block.strip_suffix("*/").unwrap_or(block),
        None => comment.trim_start_matches('/'),
    };
    let mut text = String::new();
    for line in inner.split(['\n', '\r', '\u{2028}', '\u{2029}']) {
        let line = line.trim().trim_start_matches('*').trim();
        if !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

impl Doc {
    fn parse(comment: &str) -> Self {
        let mut doc = Self::default();
        let mut body = String::new();
        let mut is_fenced = false;
        let mut tag: Option<String> = None;
        for line in comment_text(comment).lines() {
            is_fenced ^= line.starts_with("```");
            let starts_tag = !is_fenced
                && line
                    .strip_prefix('@')
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
            if starts_tag {
                doc.close(tag.take(), &body);
                body.clear();
                let rest = line.trim_start_matches('@');
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let (name, rest) = rest.split_at_checked(length).unwrap_or((rest, ""));
                tag = Some(name.to_owned());
                body.push_str(rest.trim_start());
            } else {
                body.push_str(line);
            }
            body.push('\n');
        }
        doc.close(tag, &body);
        doc
    }

    fn close(&mut self, tag: Option<String>, body: &str) {
        let Some(name) = tag else {
            body.clone_into(&mut self.text);
            return;
        };
        if self.tags.len() >= MAX_TAGS {
            return;
        }
        let (kind, rest) = braced(body.trim());
        self.tags.push(Tag { name, kind, text: rest.trim().to_owned() });
    }

    /// What the comment says in words, on one line.
    pub(super) fn words(&self, limit: usize) -> String {
        let text = one_line(&self.text, limit);
        if !text.is_empty() {
            return text;
        }
        let tag = self.tags.iter().find(|tag| TEXT_TAGS.contains(&tag.name.as_str()));
        tag.map(|tag| one_line(&tag.text, limit)).unwrap_or_default()
    }

    /// The same for one property.
    pub(super) fn property_words(&self) -> String {
        self.words(MAX_PROPERTY_TEXT)
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = ParameterTag> {
        let names = ["param", "arg", "argument"];
        self.tags.iter().filter(move |tag| names.contains(&tag.name.as_str())).filter_map(ParameterTag::parse)
    }

    pub(super) fn returns(&self) -> Option<&Tag> {
        self.tags.iter().find(|tag| matches!(tag.name.as_str(), "returns" | "return"))
    }
}

impl ParameterTag {
    /// Reads the name of a `@param` or `@property`.
    pub(super) fn parse(tag: &Tag) -> Option<Self> {
        let text = tag.text.as_str();
        let (name, default, is_optional, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let end = closing(inner, '[', ']')?;
                let (name, rest) = (inner.get(..end)?, inner.get(end + 1..)?);
                let (name, default) = match name.split_once('=') {
                    Some((name, default)) => (name, Some(default.trim().to_owned())),
                    None => (name, None),
                };
                (name.trim(), default, true, rest)
            }
            None => {
                let end = text.find(char::is_whitespace).unwrap_or(text.len());
                let (name, rest) = text.split_at_checked(end)?;
                (name, None, false, rest)
            }
        };
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
        };
        let path: Vec<String> = name
            .trim_end_matches(':')
            .split('.')
            .map(|part| part.trim_end_matches("[]").to_owned())
            .collect();
        if !path.iter().all(|part| is_name(part)) {
            return None;
        }
        let is_optional = is_optional || tag.kind.as_deref().is_some_and(|kind| kind.ends_with('='));
        let rest = rest.trim_start().trim_start_matches(['-', '–', '—', ':']);
        Some(Self {
            path,
            kind: tag.kind.clone(),
            is_optional,
            default,
            text: one_line(rest, MAX_PROPERTY_TEXT),
        })
    }
}

/// `{type} rest` taken apart; braces nest in types.
fn braced(body: &str) -> (Option<String>, &str) {
    let Some(inner) = body.strip_prefix('{').filter(|inner| !inner.starts_with('@')) else {
        return (None, body);
    };
    match closing(inner, '{', '}') {
        Some(end) => {
            let kind = inner.get(..end).unwrap_or_default().trim().to_owned();
            (Some(kind).filter(|kind| !kind.is_empty()), inner.get(end + 1..).unwrap_or_default())
        }
        None => (None, body),
    }
}

/// Where the bracket closes that was opened before `text`.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        }
    }
    None
}

/// Text on one line without inline tags, at most `limit` characters long.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    tgp_text::one_line(&without_inline_tags(text), limit)
}

/// `{@link name}` becomes `name`, and `{@link name|text}` becomes `text`.
fn without_inline_tags(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, tagged)) = rest.split_once("{@") {
        plain.push_str(before);
        let Some((inner, after)) = tagged.split_once('}') else {
            rest = tagged;
            continue;
        };
        let (tag, subject) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
        let subject = subject.trim();
        let shown = if tag.starts_with("link") {
            let label = subject.split_once('|').or_else(|| subject.split_once(char::is_whitespace));
            label.map(|(_, label)| label.trim()).filter(|label| !label.is_empty()).unwrap_or(subject)
        } else {
            subject
        };
        plain.push_str(shown);
        rest = after;
    }
    plain.push_str(rest);
    plain
}
