//! What a verified token lets through.

use tgp_contract::{Actor, ClientId, Effect, Root, ToolError, canonical};

use super::chain::{self, Chain, Secret};
use super::{Caveats, TokenFault};
use crate::PolicyRequest;
use crate::pattern::{MatchBias, PathCandidate, PathGlobs, PatternErrors, ToolPatterns};

/// More patterns than one caveat needs.
const MAX_PATTERNS: usize = 64;
/// Letters of a family and of a token in records: 48 bits each.
const SHORT_ID: usize = 12;
/// Names and notes are short.
const MAX_WORD_BYTES: usize = 256;

/// One block of caveats, compiled. Each block is judged alone, so that a later one can never lift an earlier one.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    tools: Option<ToolPatterns>,
    inner: Option<ToolPatterns>,
    paths: Option<Vec<(Option<Root>, PathGlobs)>>,
    expires_ms: Option<u64>,
    calls: Option<u64>,
    session: Option<String>,
    run: Option<String>,
}

impl Scope {
    /// The problem is a sentence for the one who wrote the caveats.
    pub(super) fn new(caveats: &Caveats) -> Result<Self, String> {
        for (name, list) in [("tools", &caveats.tools), ("inner", &caveats.inner), ("paths", &caveats.paths)]
        {
            if list.as_ref().is_some_and(|list| list.len() > MAX_PATTERNS) {
                return Err(format!("`{name}` has more than {MAX_PATTERNS} patterns"));
            }
        }
        let words = [
            ("session", &caveats.session),
            ("run", &caveats.run),
            ("note", &caveats.note),
            ("salt", &caveats.salt),
        ];
        for (name, word) in words {
            if word.as_ref().is_some_and(|word| word.len() > MAX_WORD_BYTES) {
                return Err(format!("`{name}` is longer than {MAX_WORD_BYTES} bytes"));
            }
        }
        let patterns = |name: &str, list: &Option<Vec<String>>| {
            let compile = |words: &Vec<String>| {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                ToolPatterns::new(&words).map_err(|errors| wrong(name, &errors))
            };
            list.as_ref().map(compile).transpose()
        };
        let paths = caveats
            .paths
            .as_ref()
            .map(|words| words.iter().map(|word| path_pattern(word)).collect::<Result<Vec<_>, String>>());
        Ok(Self {
            tools: patterns("tools", &caveats.tools)?,
            inner: patterns("inner", &caveats.inner)?,
            paths: paths.transpose()?,
            expires_ms: caveats.expires_ms,
            calls: caveats.calls,
            session: caveats.session.clone(),
            run: caveats.run.clone(),
        })
    }

    fn check(&self, question: &PolicyRequest<'_>, now_ms: u64) -> Result<(), TokenFault> {
        if self.expires_ms.is_some_and(|end| now_ms >= end) {
            return Err(TokenFault::Expired);
        }
        let is_other = |session: &String| !is_session(session, question.session);
        let is_foreign = |run: &String| !is_of_run(run, question.session);
        if self.session.as_ref().is_some_and(is_other) || self.run.as_ref().is_some_and(is_foreign) {
            return Err(TokenFault::Outside("it was made for another session".to_owned()));
        }
        let by_a_tool = matches!(question.actor, Actor::Tool(_));
        let as_inner = || by_a_tool && self.inner.as_ref().is_some_and(|inner| inner.matches(question));
        if self.tools.as_ref().is_some_and(|tools| !tools.matches(question) && !as_inner()) {
            return Err(TokenFault::Outside(format!("`{}` is not among its tools", question.tool)));
        }
        self.paths.as_ref().map_or(Ok(()), |paths| self.check_paths(paths, question))
    }

    /// Every file has to be covered. What is not a file cannot be checked by a path, and what a run does inside is not
    /// known before it; both are let through only for a tool that this very block spells out.
    fn check_paths(
        &self,
        paths: &[(Option<Root>, PathGlobs)],
        question: &PolicyRequest<'_>,
    ) -> Result<(), TokenFault> {
        let mut only_files = !question.targets.is_empty();
        for target in question.targets {
            let Some((root, path, _)) = target.file() else {
                only_files = false;
                continue;
            };
            let candidate = PathCandidate::new(path);
            let covers = |(wanted, globs): &(Option<Root>, PathGlobs)| {
                let right_root = wanted.map_or(root != Root::Host, |wanted| wanted == root);
                right_root && globs.matches(&candidate, MatchBias::Permitting)
            };
            if !paths.iter().any(covers) {
                return Err(TokenFault::Outside(format!("`{path}` is not among its paths")));
            }
        }
        let runs = matches!(question.effect, Effect::Execute | Effect::Network);
        let spelt_out = self.tools.as_ref().is_some_and(|tools| tools.spells_out(question));
        if (only_files && !runs) || spelt_out {
            return Ok(());
        }
        let tool = question.tool;
        Err(TokenFault::Outside(format!(
            "it is limited to paths, and what `{tool}` touches is not only files"
        )))
    }
}

/// Whether a session is the one of a caveat. That of a client is by the name the client has chosen: it keeps programs
/// of one token family apart, and is nothing that an agent's session could be reached by.
fn is_session(wanted: &str, session: &str) -> bool {
    match ClientId::parse(session) {
        Some(client) => client.display == Some(wanted),
        None => session == wanted,
    }
}

/// Whether a session is that of a run, or of one of the agents that work for it.
fn is_of_run(run: &str, session: &str) -> bool {
    session.strip_prefix(run).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn path_pattern(word: &str) -> Result<(Option<Root>, PathGlobs), String> {
    let (root, glob) = match word.split_once(':') {
        Some(("tools", glob)) => (Some(Root::Tools), glob),
        Some(("project", glob)) => (Some(Root::Project), glob),
        Some(("host", glob)) => (Some(Root::Host), glob),
        _ => (None, word),
    };
    PathGlobs::new(&[glob], MatchBias::Permitting)
        .map(|globs| (root, globs))
        .map_err(|errors| wrong("paths", &errors))
}

fn wrong(name: &str, errors: &PatternErrors) -> String {
    errors.first().map_or_else(String::new, |(_, error)| format!("a pattern of `{name}` {error}"))
}

/// A counter of calls that the token has to pay from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) key: String,
    pub(super) limit: u64,
    /// When the counter is no longer needed.
    pub(super) expires_ms: Option<u64>,
}

/// A token that was verified.
#[derive(Clone, Debug)]
pub struct Grant {
    id: String,
    family: String,
    scopes: Vec<Scope>,
    counters: Vec<Counter>,
}

impl Grant {
    pub(super) fn new(chain: &Chain, signatures: &[Secret], scopes: Vec<Scope>) -> Result<Self, TokenFault> {
        let family = canonical::hex(chain.id());
        let last = signatures.last().ok_or(TokenFault::Malformed("it has no caveat block"))?;
        let name = chain::name_of(last, "id")?;
        let mut counters = Vec::new();
        let mut ends: Option<u64> = None;
        for (scope, signature) in scopes.iter().zip(signatures) {
            ends = ends.into_iter().chain(scope.expires_ms).min();
            if let Some(limit) = scope.calls {
                counters.push(Counter { key: chain::name_of(signature, "calls")?, limit, expires_ms: ends });
            }
        }
        let short = |text: &str| text.chars().take(SHORT_ID).collect::<String>();
        Ok(Self { id: format!("{}-{}", short(&family), short(&name)), family, scopes, counters })
    }

    /// Names this very token in records, and gives nothing away. Tokens derived from one another begin alike.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Names all tokens that were derived from one, up to the token that the kernel has made. A holder cannot leave it:
    /// it is signed with the kernel's key, and ends when that first token ends.
    #[must_use]
    pub fn family_id(&self) -> &str {
        self.family.get(..SHORT_ID).unwrap_or(&self.family)
    }

    /// The session that the token is made for, where a caveat names one.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.scopes.iter().find_map(|scope| scope.session.as_deref())
    }

    /// Whether the kernel has made this token for exactly this session of an agent, or for the run it works for. Only
    /// the first generation counts: every holder can add a caveat that names a session.
    #[must_use]
    pub fn speaks_for(&self, session: &str) -> bool {
        let first = self.scopes.first();
        ClientId::parse(session).is_none()
            && first.is_some_and(|scope| {
                scope.session.as_deref() == Some(session)
                    || scope.run.as_ref().is_some_and(|run| is_of_run(run, session))
            })
    }

    /// Whether every caveat but the number of calls lets this call through.
    ///
    /// # Errors
    /// `EPOLICY` with the caveat that does not hold.
    pub fn check(&self, question: &PolicyRequest<'_>, now_ms: u64) -> Result<(), ToolError> {
        self.scopes.iter().try_for_each(|scope| scope.check(question, now_ms)).map_err(ToolError::from)
    }

    /// Whether a caveat limits the files that a call may touch.
    #[must_use]
    pub fn limits_paths(&self) -> bool {
        self.scopes.iter().any(|scope| scope.paths.is_some())
    }

    /// When the token ends, in milliseconds since the epoch.
    #[must_use]
    pub fn expires_ms(&self) -> Option<u64> {
        self.scopes.iter().filter_map(|scope| scope.expires_ms).min()
    }

    /// Whether a caveat counts calls, so that [`TokenLedger::spend`](super::TokenLedger::spend) has something to do.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !self.counters.is_empty()
    }

    pub(super) fn family(&self) -> &str {
        &self.family
    }

    pub(super) fn counters(&self) -> &[Counter] {
        &self.counters
    }
}
