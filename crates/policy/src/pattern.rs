//! Patterns of rules and tokens, compiled when they are loaded: tools, actors, paths, hosts and texts.

use std::net::Ipv6Addr;

use globset::{Candidate, Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexBuilder};
use tgp_contract::{Actor, ClientId, Effect, RelativePath};
use tgp_text::composed;

use crate::PolicyRequest;
use crate::below::may_match_below;
use crate::protect::fold_path;

/// Longer than any path a pattern could be written for, and short enough to be compiled at once.
const MAX_PATTERN_BYTES: usize = 1024;
/// What one compiled expression may take; a Unicode word class is about a tenth of it.
const MAX_REGEX_BYTES: usize = 256 * 1024;
/// Longer texts are not matched at all. The engine is linear in them, and a gate has to be quick.
pub(crate) const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Which way a doubt is to be decided: a rule that forbids matches in doubt, a rule that allows does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchBias {
    /// `ask`, `deny` and sequence rules.
    Restricting,
    /// `allow` rules and tokens.
    Permitting,
}

impl MatchBias {
    pub(crate) fn restricts(self) -> bool {
        self == Self::Restricting
    }
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    #[error("is not a glob: {0}")]
    Glob(String),
    #[error("is not a regular expression: {0}")]
    Regex(String),
    #[error("cannot match any path: {0}")]
    NoPath(&'static str),
    #[error("is not a host: {0}")]
    Host(&'static str),
    #[error("is not an effect; there are `read`, `write`, `execute` and `network`")]
    Effect,
    #[error(
        "names no target; write `secret:NAME`, `mcp:SERVER/TOOL`, `host:NAME`, `branch:NAME`, or `*` for all of them"
    )]
    Named,
    #[error("is not an actor; write `person:…`, `agent:…` or `tool:…`, or `*` for everybody")]
    Actor,
}

/// Every pattern of a list that cannot be used, by its index.
pub(crate) type PatternErrors = Vec<(usize, PatternError)>;

/// What each word compiles to, or all that are wrong.
fn each<T>(
    words: &[&str],
    compile: impl Fn(&str) -> Result<T, PatternError>,
) -> Result<Vec<T>, PatternErrors> {
    let (mut compiled, mut wrong) = (Vec::new(), Vec::new());
    for (index, word) in words.iter().enumerate() {
        match compile(word) {
            Ok(value) => compiled.push(value),
            Err(error) => wrong.push((index, error)),
        }
    }
    if wrong.is_empty() { Ok(compiled) } else { Err(wrong) }
}

fn check_length(text: &str) -> Result<(), PatternError> {
    match text.len() {
        0 => Err(PatternError::Empty),
        length if length > MAX_PATTERN_BYTES => Err(PatternError::TooLong),
        _ => Ok(()),
    }
}

/// What the two ways of reading a `*` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wildcard {
    /// Any text.
    Anything,
    /// Any text within one name of a path.
    OneName,
}

fn glob(text: &str, star: Wildcard, ignore_case: bool) -> Result<Glob, PatternError> {
    check_length(text)?;
    GlobBuilder::new(text)
        .literal_separator(star == Wildcard::OneName)
        .case_insensitive(ignore_case)
        .backslash_escape(true)
        .build()
        .map_err(|error| PatternError::Glob(error.kind().to_string()))
}

/// A glob for names that are not paths: `*` is any text.
pub(crate) fn named_glob(text: &str) -> Result<GlobMatcher, PatternError> {
    glob(text, Wildcard::Anything, false).map(|glob| glob.compile_matcher())
}

fn set(globs: Vec<Glob>) -> Result<GlobSet, PatternErrors> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    builder.build().map_err(|error| vec![(0, PatternError::Glob(error.kind().to_string()))])
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

pub(crate) fn parse_effect(word: &str) -> Option<Effect> {
    [Effect::Read, Effect::Write, Effect::Execute, Effect::Network]
        .into_iter()
        .find(|one| one.as_str() == word)
}

enum ToolPattern {
    Name(String),
    Glob(Glob),
    Effect(Effect),
}

/// Tools by name, glob or effect; one of them has to fit.
#[derive(Clone, Debug)]
pub(crate) struct ToolPatterns {
    words: Vec<String>,
    names: Vec<String>,
    globs: GlobSet,
    effects: Vec<Effect>,
}

impl ToolPatterns {
    pub(crate) fn new(words: &[&str]) -> Result<Self, PatternErrors> {
        let parsed = each(words, |word| match word.strip_prefix("effect:") {
            Some(effect) => parse_effect(effect).map(ToolPattern::Effect).ok_or(PatternError::Effect),
            None if has_wildcard(word) => glob(word, Wildcard::Anything, false).map(ToolPattern::Glob),
            None => check_length(word).map(|()| ToolPattern::Name(word.to_owned())),
        })?;
        let (mut names, mut globs, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        for pattern in parsed {
            match pattern {
                ToolPattern::Effect(effect) => effects.push(effect),
                ToolPattern::Glob(glob) => globs.push(glob),
                ToolPattern::Name(name) => names.push(name),
            }
        }
        let globs = set(globs)?;
        Ok(Self { words: words.iter().map(|word| (*word).to_owned()).collect(), names, globs, effects })
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    pub(crate) fn matches(&self, question: &PolicyRequest<'_>) -> bool {
        self.effects.contains(&question.effect)
            || self.matches_name(question.tool)
            || question.aliases.iter().any(|alias| self.matches_name(alias))
    }

    pub(crate) fn matches_name(&self, name: &str) -> bool {
        self.names.iter().any(|one| one == name) || (!self.globs.is_empty() && self.globs.is_match(name))
    }

    /// Whether the tool is written out, and not only covered by a glob or an effect.
    pub(crate) fn spells_out(&self, question: &PolicyRequest<'_>) -> bool {
        let spelt = |name: &str| self.names.iter().any(|one| one == name);
        spelt(question.tool) || question.aliases.iter().any(|alias| spelt(alias))
    }

    /// Patterns for names that fit none of these; effects always mean something.
    pub(crate) fn idle<'a>(&'a self, known: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.words.iter().map(String::as_str).filter(move |word| {
            !word.starts_with("effect:")
                && !glob(word, Wildcard::Anything, false)
                    .is_ok_and(|glob| known.iter().any(|name| glob.compile_matcher().is_match(name)))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActorKind {
    Anybody,
    Person,
    Agent,
    Tool,
}

/// Who makes a call, by kind and id; one of them has to fit.
#[derive(Clone, Debug)]
pub(crate) struct ActorPatterns {
    words: Vec<String>,
    patterns: Vec<(ActorKind, GlobMatcher)>,
}

impl ActorPatterns {
    pub(crate) fn new(words: &[&str]) -> Result<Self, PatternErrors> {
        let patterns = each(words, |word| {
            let (kind, id) = match word.split_once(':') {
                None if word == "*" => (ActorKind::Anybody, "*"),
                Some(("person", id)) => (ActorKind::Person, id),
                Some(("agent", id)) => (ActorKind::Agent, id),
                Some(("tool", id)) => (ActorKind::Tool, id),
                _ => return Err(PatternError::Actor),
            };
            Ok((kind, glob(id, Wildcard::Anything, false)?.compile_matcher()))
        })?;
        Ok(Self { words: words.iter().map(|word| (*word).to_owned()).collect(), patterns })
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// A client is known by its identity. The name it has chosen for itself fits a rule that restricts as well, alone
    /// or behind the identity; it never makes an `allow` rule fit.
    pub(crate) fn matches(&self, actor: &Actor, leaning: MatchBias) -> bool {
        let (kind, id) = match actor {
            Actor::Person(id) => (ActorKind::Person, id.as_str()),
            Actor::Agent(id) => (ActorKind::Agent, id.as_str()),
            Actor::Tool(path) => (ActorKind::Tool, path.as_str()),
        };
        let client = ClientId::parse(id).filter(|_| kind == ActorKind::Agent);
        let fits = |glob: &GlobMatcher| match client {
            None => glob.is_match(id),
            Some(client) => {
                let by_name =
                    || glob.is_match(id) || client.display.is_some_and(|display| glob.is_match(display));
                glob.is_match(client.identity) || (leaning.restricts() && by_name())
            }
        };
        self.patterns.iter().any(|(wanted, glob)| match wanted {
            ActorKind::Anybody => true,
            _ => *wanted == kind && fits(glob),
        })
    }
}

/// A path that is matched against many globs.
pub(crate) struct PathCandidate<'a> {
    plain: Candidate<'a>,
    folded: Option<String>,
}

impl<'a> PathCandidate<'a> {
    pub(crate) fn new(path: &'a RelativePath) -> Self {
        Self { plain: Candidate::new(path.as_str()), folded: fold_path(path) }
    }
}

/// Globs for normalised paths; one of them has to fit.
#[derive(Clone, Debug)]
pub(crate) struct PathGlobs {
    set: GlobSet,
    /// As they are written. In a rule that permits, each of them is one glob of the set, in this order.
    words: Vec<String>,
}

impl PathGlobs {
    /// Where the rule restricts, neither case nor how an accent is written counts, and `x/**` means `x` too: a caller that
    /// may not touch what is in a directory may not remove it either.
    pub(crate) fn new(words: &[&str], leaning: MatchBias) -> Result<Self, PatternErrors> {
        let globs = each(words, |word| {
            check_path_glob(word)?;
            let mut globs = vec![glob(word, Wildcard::OneName, false)?];
            if leaning.restricts() {
                // Globs ignore the case of ASCII letters only; the others are brought to one case on both sides. The
                // exact glob stays: without case, `[!a]` means less than it says.
                let normal = composed(word);
                let lower = composed(&normal.to_lowercase()).into_owned();
                let directory = lower.strip_suffix("/**").filter(|directory| !directory.is_empty());
                let normal = Some(normal.as_ref()).filter(|normal| *normal != word);
                let lower = Some(lower.as_str()).filter(|lower| *lower != word);
                let others = [Some(word), normal, lower, directory].into_iter().flatten();
                globs.extend(others.filter_map(|text| glob(text, Wildcard::OneName, true).ok()));
            }
            Ok(globs)
        })?;
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(Self { set: set(globs.into_iter().flatten().collect())?, words })
    }

    pub(crate) fn matches(&self, path: &PathCandidate<'_>, leaning: MatchBias) -> bool {
        self.set.is_match_candidate(&path.plain)
            || (leaning.restricts() && path.folded.as_ref().is_some_and(|folded| self.set.is_match(folded)))
    }

    /// The globs of a rule that permits which fit the path, as they are written.
    pub(crate) fn fitting<'s>(&'s self, path: &PathCandidate<'_>) -> impl Iterator<Item = &'s str> {
        let fitting = self.set.matches_candidate(&path.plain);
        fitting.into_iter().filter_map(|index| self.words.get(index)).map(String::as_str)
    }

    /// Whether one of them may match a path below a directory.
    pub(crate) fn may_match_below(&self, directory: &RelativePath) -> bool {
        let folded = fold_path(directory);
        self.words.iter().any(|word| {
            let below = |directory: &str| may_match_below(word, directory);
            below(directory.as_str()) || folded.as_deref().is_some_and(below)
        })
    }
}

fn check_path_glob(text: &str) -> Result<(), PatternError> {
    check_length(text)?;
    if text.starts_with('/') {
        return Err(PatternError::NoPath("paths are relative to a root, so none begins with `/`"));
    }
    if text.ends_with('/') {
        return Err(PatternError::NoPath("no path ends with `/`; write `/**` for everything inside"));
    }
    if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(PatternError::NoPath("paths are normal, so none has an empty part, `.` or `..`"));
    }
    Ok(())
}

/// Globs over a text that is not a path. A `*` goes up to the next `/`, a `**` beyond it.
pub(crate) fn text_globs(words: &[&str]) -> Result<GlobSet, PatternErrors> {
    set(each(words, |word| glob(word, Wildcard::OneName, false))?)
}

/// Hosts: a name, `*.name` for every name below it at any depth, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    Any,
    Below(String),
    Exact(String),
}

impl HostPattern {
    pub(crate) fn new(word: &str) -> Result<Self, PatternError> {
        check_length(word)?;
        let (below, name) = match word.strip_prefix("*.") {
            Some(name) => (true, name),
            None if word == "*" => return Ok(Self::Any),
            None => (false, word),
        };
        let name = normal_host(name);
        if name.contains('*') {
            return Err(PatternError::Host("use `*` alone, or `*.` before a name"));
        }
        if !name.is_ascii() {
            return Err(PatternError::Host("write it in its ASCII form, with `xn--`"));
        }
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || !(name.bytes().all(letter) || name.parse::<Ipv6Addr>().is_ok()) {
            return Err(PatternError::Host("write the name alone, without scheme, port and path"));
        }
        Ok(if below { Self::Below(name) } else { Self::Exact(name) })
    }

    pub(crate) fn matches(&self, host: &str) -> bool {
        let host = normal_host(host);
        match self {
            Self::Any => true,
            Self::Exact(name) => *name == host,
            Self::Below(name) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
        }
    }
}

/// Lower case, without the dot that ends a full name; an address in its shortest form.
fn normal_host(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    inner.parse::<Ipv6Addr>().map_or_else(|_| host.to_lowercase(), |address| address.to_string())
}

/// An expression about SQL, hosts or arguments in which the case of letters means nothing to their reader: matched
/// without regard to case where the rule restricts. As it is written it fits too, since `[^a]` means less without case.
pub(crate) fn regex_of_any_case(text: &str, leaning: MatchBias) -> Result<Regex, PatternError> {
    let exact = regex(text, leaning)?;
    if !leaning.restricts() {
        return Ok(exact);
    }
    let build = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(2 * MAX_REGEX_BYTES)
            .multi_line(true)
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| PatternError::Regex(last_line(&error)))
    };
    // An expression that ends in a comment swallows the bracket behind it, and is sought without regard to case alone.
    build(&format!("(?:{text})|(?i:{text})")).or_else(|_| build(&format!("(?i){text}")))
}

/// A regular expression. Where the rule restricts, it is sought anywhere, also across lines; where it permits, it has
/// to match the whole text.
pub(crate) fn regex(text: &str, leaning: MatchBias) -> Result<Regex, PatternError> {
    check_length(text)?;
    // A text such as `a)|(?:b` would break out of the wrapping, so it has to be an expression alone first.
    let build = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(MAX_REGEX_BYTES)
            .multi_line(leaning.restricts())
            .dot_matches_new_line(leaning.restricts())
            .build()
            .map_err(|error| PatternError::Regex(last_line(&error)))
    };
    let alone = build(text)?;
    if leaning.restricts() { Ok(alone) } else { build(&format!(r"\A(?:{text})\z")) }
}

/// The part of an error that says what is wrong; the rest draws the pattern over several lines.
fn last_line(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            format!("it needs more than {MAX_REGEX_BYTES} bytes when compiled")
        }
        other => {
            let text = other.to_string();
            let line = text.lines().last().unwrap_or_default().trim();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}
