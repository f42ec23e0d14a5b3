//! Which calls a rule means, and why it does not mean the others.

use std::cell::OnceCell;
use std::fmt;

use regex::Regex;
use tgp_contract::{Access, RelativePath, Root, Target, TddMode, TddState, UNKNOWN_KIND, canonical};

use crate::arguments::ArgumentMatcher;
use crate::limits::LimitMatcher;
use crate::named::{self, NamedMatcher};
use crate::pattern::{
    ActorPatterns, HostPattern, MAX_TEXT_BYTES, MatchBias, PathCandidate, PathGlobs, ToolPatterns,
};
use crate::{PolicyRequest, runs_later};

/// A question with what several rules want to know of it.
pub(crate) struct Prepared<'a> {
    pub(crate) question: &'a PolicyRequest<'a>,
    files: Vec<File<'a>>,
    /// The canonical text of the arguments; `None` when it is too long or there is none.
    text: OnceCell<Option<String>>,
}

struct File<'a> {
    root: Root,
    access: Access,
    path: PathCandidate<'a>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(question: &'a PolicyRequest<'a>) -> Self {
        let files = question.targets.iter().filter_map(Target::file);
        let files =
            files.map(|(root, path, access)| File { root, access, path: PathCandidate::new(path) }).collect();
        Self { question, files, text: OnceCell::new() }
    }

    fn text(&self) -> Option<&str> {
        let make =
            || canonical::to_string(self.question.arguments).ok().filter(|text| text.len() <= MAX_TEXT_BYTES);
        self.text.get_or_init(make).as_deref()
    }
}

/// How a selector takes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// It means the call; `weight` says how many of its targets.
    Match { weight: u64 },
    /// It does not.
    Miss(MismatchKind),
    /// It cannot be said: a text is too long, or a number has no exact text.
    Opaque,
}

/// The first thing that did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MismatchKind {
    Tool,
    Actor,
    Mode,
    State,
    NoTarget(TargetKind),
    Target(TargetKind),
    Argument(usize),
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    File,
    Statement,
    Host,
    Command,
    Limits,
    Named,
}

impl TargetKind {
    fn plural(self) -> &'static str {
        match self {
            Self::File => "files",
            Self::Statement => "statements",
            Self::Host => "hosts",
            Self::Command => "commands",
            Self::Limits => "limits above the usual ones",
            Self::Named => "secrets, upstream tools, host tools or branches",
        }
    }
}

/// One alternative of `path`.
#[derive(Clone, Debug)]
pub(crate) struct PathMatcher {
    pub(crate) globs: PathGlobs,
    /// Empty for every root.
    pub(crate) roots: Vec<Root>,
    /// Empty for every access.
    pub(crate) accesses: Vec<Access>,
}

impl PathMatcher {
    fn matches(&self, file: &File<'_>, leaning: MatchBias) -> bool {
        (self.roots.is_empty() || self.roots.contains(&file.root))
            && (self.accesses.is_empty() || self.accesses.contains(&file.access))
            && self.globs.matches(&file.path, leaning)
    }

    /// Whether one of its globs fits a file that runs later and spells out the name by which the file is known.
    fn names(&self, file: &File<'_>, path: &RelativePath) -> bool {
        self.matches(file, MatchBias::Permitting)
            && self.globs.fitting(&file.path).any(|glob| runs_later::names(glob, path))
    }
}

/// One alternative of `statement`.
#[derive(Clone, Debug)]
pub(crate) enum StatementMatcher {
    Any,
    Kind(String),
    Text(Regex),
}

/// One alternative of `command`.
#[derive(Clone, Debug)]
pub(crate) enum CommandMatcher {
    Exact(String),
    Text(Regex),
}

/// Which calls are meant. Everything that is given has to fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) tools: Option<ToolPatterns>,
    pub(crate) actors: Option<ActorPatterns>,
    pub(crate) modes: Vec<TddMode>,
    pub(crate) states: Vec<TddState>,
    pub(crate) paths: Vec<PathMatcher>,
    pub(crate) statements: Vec<StatementMatcher>,
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) commands: Vec<CommandMatcher>,
    pub(crate) limits: Vec<LimitMatcher>,
    pub(crate) named: Vec<NamedMatcher>,
    pub(crate) arguments: Vec<ArgumentMatcher>,
    /// Sought in the canonical text of the arguments.
    pub(crate) text: Option<Regex>,
}

impl Selector {
    /// Whether it says nothing at all, and so would mean every call.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_none()
            && self.actors.is_none()
            && self.modes.is_empty()
            && self.states.is_empty()
            && self.paths.is_empty()
            && self.statements.is_empty()
            && self.hosts.is_empty()
            && self.commands.is_empty()
            && self.limits.is_empty()
            && self.named.is_empty()
            && self.arguments.is_empty()
            && self.text.is_none()
    }

    pub(crate) fn test(&self, call: &Prepared<'_>, leaning: MatchBias) -> Test {
        match self.test_all(call, leaning) {
            Ok(weight) => Test::Match { weight },
            Err(Stop::Miss(miss)) => Test::Miss(miss),
            Err(Stop::Opaque) => Test::Opaque,
        }
    }

    /// Whether it means the call and names every file of it, all of which run later: a glob such as `**` fits them all, and
    /// its author did not think of these. Whether a file runs later is the caller's knowledge: what a manager of packages
    /// installs from is such a file by the call, and not by its name.
    pub(crate) fn names_what_runs_later(&self, call: &Prepared<'_>) -> bool {
        let mut later = call.question.targets.iter().filter_map(Target::file).zip(&call.files).peekable();
        later.peek().is_some()
            && matches!(self.test(call, MatchBias::Permitting), Test::Match { .. })
            && later.all(|((_, path, _), file)| self.paths.iter().any(|matcher| matcher.names(file, path)))
    }

    /// Whether a call on files below a directory may be meant, whatever their names. `call` is such a call on the directory
    /// itself: what it says of tool, caller and state holds for all of them. In doubt it may.
    pub(crate) fn may_mean_below(
        &self,
        call: &PolicyRequest<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        let accesses: Vec<Access> =
            call.targets.iter().filter_map(Target::file).map(|(.., access)| access).collect();
        let file = |path: &PathMatcher| {
            (path.roots.is_empty() || path.roots.contains(&root))
                && (path.accesses.is_empty() || path.accesses.iter().any(|access| accesses.contains(access)))
                && path.globs.may_match_below(directory)
        };
        // A call on files has no statement, host, command, limits or named target.
        let only_files = self.statements.is_empty()
            && self.hosts.is_empty()
            && self.commands.is_empty()
            && self.limits.is_empty()
            && self.named.is_empty();
        only_files
            && self.tools.as_ref().is_none_or(|tools| tools.matches(call))
            && (self.modes.is_empty() || self.modes.contains(&call.mode))
            && (self.states.is_empty() || self.states.contains(&call.state))
            && self.actors.as_ref().is_none_or(|actors| actors.matches(call.actor, MatchBias::Restricting))
            && (self.paths.is_empty() || self.paths.iter().any(file))
    }

    /// The cheap tests come first; most rules are about other tools.
    fn test_all(&self, call: &Prepared<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let question = call.question;
        let fits = |fits: bool, miss: MismatchKind| if fits { Ok(()) } else { Err(Stop::Miss(miss)) };
        fits(self.tools.as_ref().is_none_or(|tools| tools.matches(question)), MismatchKind::Tool)?;
        fits(self.modes.is_empty() || self.modes.contains(&question.mode), MismatchKind::Mode)?;
        fits(self.states.is_empty() || self.states.contains(&question.state), MismatchKind::State)?;
        let by_actor = |actors: &ActorPatterns| actors.matches(question.actor, leaning);
        fits(self.actors.as_ref().is_none_or(by_actor), MismatchKind::Actor)?;

        let mut weight = 1;
        if !self.paths.is_empty() {
            let mut tally = Tally::new(TargetKind::File);
            for file in &call.files {
                tally.note(self.paths.iter().any(|path| path.matches(file, leaning)));
            }
            weight = tally.close(leaning)?.max(weight);
        }
        if !self.statements.is_empty() {
            weight = self.test_statements(question, leaning)?.max(weight);
        }
        if !self.hosts.is_empty() {
            weight = self.test_hosts(question, leaning)?.max(weight);
        }
        if !self.commands.is_empty() {
            weight = self.test_commands(question, leaning)?.max(weight);
        }
        if !self.limits.is_empty() {
            weight = self.test_limits(question, leaning)?.max(weight);
        }
        if !self.named.is_empty() {
            weight = self.test_named(question, leaning)?.max(weight);
        }
        for (index, matcher) in self.arguments.iter().enumerate() {
            match matcher.test(question.arguments, leaning) {
                Some(true) => {}
                Some(false) => return Err(Stop::Miss(MismatchKind::Argument(index))),
                None => return Err(Stop::Opaque),
            }
        }
        if let Some(regex) = &self.text {
            fits(regex.is_match(call.text().ok_or(Stop::Opaque)?), MismatchKind::Text)?;
        }
        Ok(weight)
    }

    /// The kinds of statements that it names.
    pub(crate) fn statement_kinds(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter_map(|matcher| match matcher {
            StatementMatcher::Kind(kind) => Some(kind.as_str()),
            StatementMatcher::Any | StatementMatcher::Text(_) => None,
        })
    }

    /// The commands that it gives as their exact texts.
    pub(crate) fn exact_commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().filter_map(|matcher| match matcher {
            CommandMatcher::Exact(text) => Some(text.as_str()),
            CommandMatcher::Text(_) => None,
        })
    }

    /// Whether it names kinds of statements, and matches a call because that of its statement is not known.
    pub(crate) fn matches_by_unknown_kind(&self, call: &Prepared<'_>) -> bool {
        let is_named = |kind: &String| self.statement_kinds().any(|name| name.eq_ignore_ascii_case(kind));
        let mut kinds = call.question.targets.iter().filter_map(|target| match target {
            Target::Statement { kinds, .. } => Some(kinds),
            _ => None,
        });
        let is_kind = |matcher: &StatementMatcher| matches!(matcher, StatementMatcher::Kind(_));
        !self.statements.is_empty()
            && self.statements.iter().all(is_kind)
            && kinds.any(|kinds| is_unknown_kind(kinds) && !kinds.iter().any(is_named))
    }

    fn test_statements(&self, question: &PolicyRequest<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let named = |kind: &String| {
            let same = |matcher: &StatementMatcher| matches!(matcher, StatementMatcher::Kind(name) if name.eq_ignore_ascii_case(kind));
            self.statements.iter().any(same)
        };
        let by_kind = self.statements.iter().any(|matcher| matches!(matcher, StatementMatcher::Kind(_)));
        let mut tally = Tally::new(TargetKind::Statement);
        for target in question.targets {
            let Target::Statement { sql, kinds, .. } = target else { continue };
            // A statement whose kind is not known may be of every kind.
            let unknown = is_unknown_kind(kinds);
            let mut hit = match leaning {
                MatchBias::Restricting => (by_kind && unknown) || kinds.iter().any(named),
                MatchBias::Permitting => !unknown && kinds.iter().all(named),
            };
            for matcher in &self.statements {
                match matcher {
                    StatementMatcher::Any => hit = true,
                    StatementMatcher::Text(regex) if !hit => hit = regex.is_match(short(sql)?),
                    StatementMatcher::Text(_) | StatementMatcher::Kind(_) => {}
                }
            }
            tally.note(hit);
        }
        tally.close(leaning)
    }

    fn test_hosts(&self, question: &PolicyRequest<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let mut tally = Tally::new(TargetKind::Host);
        for target in question.targets {
            match target {
                Target::Host { host } => tally.note(self.hosts.iter().any(|pattern| pattern.matches(host))),
                // It can reach any host, so it can reach the one that is forbidden, and others than the one allowed.
                Target::Network => tally.note(leaning.restricts()),
                Target::File { .. }
                | Target::Statement { .. }
                | Target::Command { .. }
                | Target::UpstreamTool { .. }
                | Target::Secret { .. }
                | Target::HostTool { .. }
                | Target::Branch { .. }
                | Target::Limits(_) => {}
            }
        }
        tally.close(leaning)
    }

    fn test_commands(&self, question: &PolicyRequest<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let mut tally = Tally::new(TargetKind::Command);
        for target in question.targets {
            let Target::Command { command } = target else { continue };
            let mut hit = false;
            for matcher in &self.commands {
                hit |= match matcher {
                    CommandMatcher::Exact(text) => text == command,
                    CommandMatcher::Text(regex) => regex.is_match(short(command)?),
                };
            }
            tally.note(hit);
        }
        tally.close(leaning)
    }

    fn test_limits(&self, question: &PolicyRequest<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let mut tally = Tally::new(TargetKind::Limits);
        for target in question.targets {
            let Target::Limits(asked) = target else { continue };
            tally.note(self.limits.iter().any(|matcher| matcher.fits(asked, leaning)));
        }
        tally.close(leaning)
    }

    fn test_named(&self, question: &PolicyRequest<'_>, leaning: MatchBias) -> Result<u64, Stop> {
        let mut tally = Tally::new(TargetKind::Named);
        for name in question.targets.iter().filter_map(named::name_of) {
            tally.note(self.named.iter().any(|matcher| matcher.fits(&name)));
        }
        tally.close(leaning)
    }

    /// Why it missed, for people.
    pub(crate) fn say(&self, miss: &MismatchKind, question: &PolicyRequest<'_>) -> String {
        let list = |words: &[String]| {
            words.iter().map(|word| format!("`{}`", word.escape_debug())).collect::<Vec<_>>().join(", ")
        };
        let words =
            |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        match miss {
            MismatchKind::Tool => {
                let wanted = self.tools.as_ref().map(|tools| list(tools.words())).unwrap_or_default();
                let tool = question.tool.escape_debug();
                format!("`{tool}` ({}) is not among {wanted}", question.effect.as_str())
            }
            MismatchKind::Actor => {
                let wanted = self.actors.as_ref().map(|actors| list(actors.words())).unwrap_or_default();
                format!("the caller is not among {wanted}")
            }
            MismatchKind::Mode => {
                let wanted = self.modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>();
                format!("the mode is `{}`, not {}", question.mode.as_str(), words(&wanted))
            }
            MismatchKind::State => {
                let wanted = self.states.iter().map(|state| state.as_str()).collect::<Vec<_>>();
                format!("the state is `{}`, not {}", question.state.as_str(), words(&wanted))
            }
            MismatchKind::NoTarget(kind) => format!("the call has no {}", kind.plural()),
            MismatchKind::Target(kind) => format!("its {} are others", kind.plural()),
            MismatchKind::Argument(index) => {
                let name = self.arguments.get(*index).map(ToString::to_string).unwrap_or_default();
                format!("argument `{name}` is another or is not given")
            }
            MismatchKind::Text => "its arguments hold no such text".to_owned(),
        }
    }
}

/// Why a test ended early.
enum Stop {
    Miss(MismatchKind),
    Opaque,
}

fn short(text: &str) -> Result<&str, Stop> {
    if text.len() <= MAX_TEXT_BYTES { Ok(text) } else { Err(Stop::Opaque) }
}

/// Counts targets of one kind. A restricting rule needs one that fits, a permitting one needs all.
struct Tally {
    kind: TargetKind,
    seen: u64,
    hits: u64,
}

impl Tally {
    fn new(kind: TargetKind) -> Self {
        Self { kind, seen: 0, hits: 0 }
    }

    fn note(&mut self, hit: bool) {
        self.seen = self.seen.saturating_add(1);
        self.hits = self.hits.saturating_add(u64::from(hit));
    }

    fn close(self, leaning: MatchBias) -> Result<u64, Stop> {
        if self.seen == 0 {
            return Err(Stop::Miss(MismatchKind::NoTarget(self.kind)));
        }
        let fits = match leaning {
            MatchBias::Restricting => self.hits > 0,
            MatchBias::Permitting => self.hits == self.seen,
        };
        if fits { Ok(self.hits) } else { Err(Stop::Miss(MismatchKind::Target(self.kind))) }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.plural())
    }
}

/// Whether it is not known what a statement does.
fn is_unknown_kind(kinds: &[String]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| kind.eq_ignore_ascii_case(UNKNOWN_KIND))
}
