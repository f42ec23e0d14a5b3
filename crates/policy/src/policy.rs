//! All rules together, and how they decide.

use serde_json::{Value, json};
use tgp_contract::{
    Access, ChronicleLayout, Effect, PathProbe, RUNS_LATER, RelativePath, Root, SourceLocation, Target,
    canonical, has_chronicle_name,
};

use crate::explain::{
    FIELDS_RUN_LATER, OPAQUE, PolicyExplanation, RUNS_LATER_REASON, RuleFinding, RuleReport, UNCONFIRMED,
    UNNAMED_LIMITS, UNNAMED_SECRET,
};
use crate::history::{HistoryReservation, SequenceMatch, SessionHistory};
use crate::limits;
use crate::named;
use crate::parse::{self, Parsed};
use crate::protect::{self, Protection, Protections};
use crate::rule::{Head, Rule, Sequence};
use crate::runs_later::{always_runs_later, may_run_later};
use crate::selector::{Prepared, Selector, Test};
use crate::{PolicyDecision, PolicyError, PolicyRequest, RuleEffect};

/// A policy file: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySource {
    pub file: String,
    pub text: String,
    pub trust: SourceTrust,
}

/// What the rules of a file may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTrust {
    /// Everything: a person wrote this exact text, or confirmed it.
    Full,
    /// Only tighten: `ask`, `deny` and sequence rules count, `allow` rules have no effect.
    TightenOnly,
}

/// What the built-in rules have to know of this installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Where the tool repository is seen from the other roots; by default it is `.tgp` of the project.
    pub tool_roots: Vec<(Root, RelativePath)>,
    /// Directories below [`Root::Host`] that calls may touch; everything else there is denied.
    pub allowed_host_directories: Vec<RelativePath>,
    /// Directories below [`Root::Host`] that calls may read and not change. Of two directories that hold a path the inner
    /// one decides, and one in both lists is only read.
    pub read_only_host_directories: Vec<RelativePath>,
    /// Policy files with other names than the usual ones.
    pub protected_files: Vec<(Root, RelativePath)>,
    /// Where git keeps its own files, when that is not in a directory named `.git`.
    pub git_directories: Vec<(Root, RelativePath)>,
    /// Recognises the directory of another git repository, whatever its name. Without it none is known.
    pub git_probe: Option<PathProbe>,
    /// Statements that only read are not asked for where no rule says so.
    pub free_reads: bool,
    /// Where chronicles are.
    pub layout: ChronicleLayout,
    /// Distinguishes a chronicle from another file with such a name. Without it the name decides.
    pub probe: Option<PathProbe>,
}

impl Default for PolicySettings {
    fn default() -> Self {
        let usual = RelativePath::new(".tgp").ok();
        Self {
            tool_roots: usual.map(|path| (Root::Project, path)).into_iter().collect(),
            allowed_host_directories: Vec::new(),
            read_only_host_directories: Vec::new(),
            protected_files: Vec::new(),
            git_directories: Vec::new(),
            git_probe: None,
            free_reads: false,
            layout: ChronicleLayout::default(),
            probe: None,
        }
    }
}

/// What is known of a tool, so that a rule's example need not repeat it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyTool {
    pub name: String,
    pub aliases: Vec<String>,
    pub effect: Effect,
    /// What a call with the example's arguments would touch.
    pub targets: Vec<Target>,
}

/// Knows the tools. Examples of rules ask it for what they leave out.
pub trait ToolCatalogue {
    /// The tool with this name or alias, and what `arguments` would touch; `None` when there is no such tool or the
    /// arguments do not fit it.
    fn look_up(&self, tool: &str, arguments: &Value) -> Option<PolicyTool>;
}

/// A decision, and what was reserved for the call in its session's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub decision: PolicyDecision,
    /// To be given back with [`SessionHistory::settle`]; a denied call has none.
    pub ticket: Option<HistoryReservation>,
}

/// One rule of a file, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSummary<'a> {
    pub id: &'a str,
    pub effect: RuleEffect,
    pub reason: &'a str,
    pub place: &'a SourceLocation,
    pub is_sequence: bool,
    /// False for an `allow` rule of a file that may only tighten.
    pub has_effect: bool,
    /// Examples that it matches, checked when it was loaded.
    pub matching: usize,
    /// Examples that it does not match, checked when it was loaded.
    pub not_matching: usize,
}

/// All rules, ready to judge. It does not change; other rules are another policy.
#[derive(Debug)]
pub struct Policy {
    fingerprint: String,
    protections: Protections,
    free_reads: bool,
    /// By id, so that the answer does not depend on the order of files.
    rules: Vec<Rule>,
    sequences: Vec<Sequence>,
    /// `allow` rules of files that may only tighten: they are listed and explained, and never decide.
    without_effect: Vec<Rule>,
}

/// Why a rule matches that would not have to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DoubtKind {
    None,
    /// The subject of the rule cannot be read.
    Opaque,
    /// The rule is about a kind of statement, and that of this one is not known.
    UnknownKind,
}

/// A statement with a mistake matches every rule about kinds: without this, only the rule would be blamed.
fn reason_for_unknown_kind(reason: &str) -> String {
    let why = "the database cannot compile this statement, so its kind is not known and every rule about a kind applies";
    if reason.is_empty() { why.to_owned() } else { format!("{reason} ({why})") }
}

impl Policy {
    /// Reads the rules of all files and adds those that are built in.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load(sources: &[PolicySource], settings: &PolicySettings) -> Result<Self, PolicyError> {
        Ok(Self::new(sources, settings, parse::parse(sources, None)?))
    }

    /// As [`Policy::load`], with a catalogue that completes the examples of rules.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load_with(
        sources: &[PolicySource],
        settings: &PolicySettings,
        catalogue: &dyn ToolCatalogue,
    ) -> Result<Self, PolicyError> {
        Ok(Self::new(sources, settings, parse::parse(sources, Some(catalogue))?))
    }

    fn new(sources: &[PolicySource], settings: &PolicySettings, parsed: Parsed) -> Self {
        let mut files: Vec<(&str, &str)> =
            sources.iter().map(|source| (source.file.as_str(), source.text.as_str())).collect();
        files.sort_unstable();
        Self {
            fingerprint: canonical::hash_exact(json!(files)),
            protections: Protections::new(settings),
            free_reads: settings.free_reads,
            rules: parsed.rules,
            sequences: parsed.sequences,
            without_effect: parsed.without_effect,
        }
    }

    /// Decides, and reserves what sequence rules count. Settle the ticket when the call has ended.
    #[must_use]
    pub fn judge(&self, question: &PolicyRequest<'_>, history: &mut SessionHistory) -> Judgement {
        let call = Prepared::new(question);
        let decision = self.decide(&call, history);
        if decision.effect == RuleEffect::Deny {
            return Judgement { decision, ticket: None };
        }
        if history.is_full() {
            let reason = "too many calls of this session are under way";
            return Judgement {
                decision: PolicyDecision::new(RuleEffect::Deny, "builtin/calls", reason),
                ticket: None,
            };
        }
        let ticket = history.reserve(self, &call);
        Judgement { decision, ticket: Some(ticket) }
    }

    /// Decides without reserving anything.
    #[must_use]
    pub fn preview(&self, question: &PolicyRequest<'_>, history: &SessionHistory) -> PolicyDecision {
        self.decide(&Prepared::new(question), history)
    }

    /// The decision, and of every other rule why it did not decide.
    #[must_use]
    pub fn explain(&self, question: &PolicyRequest<'_>, history: &SessionHistory) -> PolicyExplanation {
        let call = Prepared::new(question);
        let mut decision = self.decide(&call, history);
        let mut rules = Vec::new();
        let broken = self.protection(question);
        for protection in protect::ALL {
            rules.push(match broken {
                Some(found) if found.rule == protection.rule => {
                    report(found.rule, RuleEffect::Deny, true, found.reason, None)
                }
                _ => report(
                    protection.rule,
                    RuleEffect::Deny,
                    false,
                    "the call touches nothing that it protects",
                    None,
                ),
            });
        }
        for rule in &self.rules {
            let (matched, why) = match rule.selector.test(&call, rule.leaning()) {
                Test::Match { .. } => (true, rule.head.reason.clone()),
                Test::Miss(miss) => (false, rule.selector.say(&miss, question)),
                Test::Opaque => (rule.leaning().restricts(), OPAQUE.to_owned()),
            };
            rules.push(report(&rule.head.id, rule.head.effect, matched, &why, Some(&rule.head.place)));
        }
        for Rule { head, .. } in &self.without_effect {
            rules.push(report(&head.id, head.effect, false, UNCONFIRMED, Some(&head.place)));
        }
        for (sequence, track) in self.sequences.iter().zip(history.tracks()) {
            let (matched, why) = match track.speaks(&sequence.automaton, &call) {
                Ok(SequenceMatch::Matched) => (true, sequence.head.reason.clone()),
                Ok(SequenceMatch::Opaque) => (true, OPAQUE.to_owned()),
                Err(quiet) => (false, quiet.say(&sequence.automaton, question)),
            };
            rules.push(report(
                &sequence.head.id,
                sequence.head.effect,
                matched,
                &why,
                Some(&sequence.head.place),
            ));
        }
        let default = self.default_decision(question);
        rules.push(RuleReport {
            is_default: true,
            ..report(&default.rule, default.effect, true, &default.reason, None)
        });
        for (asked, why) in [
            (limits::default_decision(question), UNNAMED_LIMITS),
            (named::default_decision(question), UNNAMED_SECRET),
        ] {
            let Some(asked) = asked else { continue };
            rules.push(RuleReport { is_default: true, ..report(&asked.rule, asked.effect, true, why, None) });
        }
        if let Some((found, counts)) = self.unnamed_runs_later(question) {
            let why = if counts { RUNS_LATER_REASON } else { FIELDS_RUN_LATER };
            rules.push(RuleReport { is_default: true, ..report(RUNS_LATER, found.effect, true, why, None) });
            let gives_way = decision.effect == RuleEffect::Allow || decision.is_default;
            if counts && gives_way {
                decision = found;
            }
        }
        PolicyExplanation::new(decision, rules)
    }

    /// The strictest rule that matches; of equals the built-in one, then the one with the first id, then a sequence
    /// rule. Only when none matches, the default.
    fn decide(&self, call: &Prepared<'_>, history: &SessionHistory) -> PolicyDecision {
        let protection = self.protection(call.question);
        // Whether a file is a chronicle is decided by its content, and a rule may hide that: its own denial comes
        // first.
        if let Some(protection) = protection {
            let decision = PolicyDecision::new(RuleEffect::Deny, protection.rule, protection.reason);
            if !protection.is_by_content() || !history.belongs_to(self) {
                return decision;
            }
            return self
                .strictest(call, history, |_| true)
                .filter(|rule| rule.effect == RuleEffect::Deny)
                .unwrap_or(decision);
        }
        if !history.belongs_to(self) {
            let reason = "the session's history belongs to other rules";
            return PolicyDecision::new(RuleEffect::Deny, "builtin/history", reason);
        }
        let found = self.strictest(call, history, |_| true);
        let denied = found.as_ref().is_some_and(|decision| decision.effect == RuleEffect::Deny);
        if !denied && self.hides_chronicle(call.question, history) {
            let protection = protect::CHRONICLE;
            return PolicyDecision::new(RuleEffect::Deny, protection.rule, protection.reason);
        }
        if let Some(found) = found.as_ref().filter(|found| found.effect != RuleEffect::Allow) {
            return found.clone();
        }
        // An `allow` that does not name limits did not mean more than the usual ones, and one that names no target did not
        // mean a secret.
        let limits = limits::default_decision(call.question).map(|asked| {
            self.strictest(call, history, |selector| !selector.limits.is_empty()).unwrap_or(asked)
        });
        let secret = named::default_decision(call.question).map(|asked| {
            self.strictest(call, history, |selector| !selector.named.is_empty()).unwrap_or(asked)
        });
        let special = limits
            .into_iter()
            .chain(secret)
            .reduce(|one, other| if other.effect > one.effect { other } else { one });
        special.or(found).unwrap_or_else(|| self.default_decision(call.question))
    }

    /// Whether a call changes what is named like a chronicle and may not be read by its caller. Then nothing may depend on
    /// whether it is one.
    fn hides_chronicle(&self, question: &PolicyRequest<'_>, history: &SessionHistory) -> bool {
        let replaces = |access: Access| matches!(access, Access::Write | Access::Delete);
        let changed = question.targets.iter().filter_map(Target::file);
        let mut named = changed.filter(|(_, path, access)| replaces(*access) && has_chronicle_name(path));
        named.any(|(root, path, _)| {
            let targets = [Target::File { root, path: path.clone(), access: Access::Read }];
            let (tool, aliases) = ("fs_read", ["fs.read".to_owned(), "Read".to_owned()]);
            let read = PolicyRequest {
                tool,
                aliases: &aliases,
                effect: Effect::Read,
                targets: &targets,
                ..*question
            };
            let found = self.strictest(&Prepared::new(&read), history, |_| true);
            found.is_some_and(|decision| decision.effect > RuleEffect::Allow)
        })
    }

    /// The strictest of the rules with a `path` that asks about or denies a call; nothing where none does. For a file that a
    /// running call turns out to touch: other rules have judged the call itself.
    #[must_use]
    pub fn restriction_by_path(
        &self,
        question: &PolicyRequest<'_>,
        history: &SessionHistory,
    ) -> Option<PolicyDecision> {
        let by_path = |selector: &Selector| !selector.paths.is_empty();
        let found = self.strictest(&Prepared::new(question), history, by_path);
        found.filter(|decision| decision.effect > RuleEffect::Allow)
    }

    /// What the strictest of the wanted rules says. The history belongs to these rules.
    fn strictest(
        &self,
        call: &Prepared<'_>,
        history: &SessionHistory,
        wanted: impl Fn(&Selector) -> bool,
    ) -> Option<PolicyDecision> {
        let mut strictest: Option<(RuleEffect, &Head, DoubtKind)> = None;
        let rules = self.rules.iter().filter(|rule| wanted(&rule.selector)).filter_map(|rule| {
            match rule.selector.test(call, rule.leaning()) {
                Test::Match { .. }
                    if rule.leaning().restricts() && rule.selector.matches_by_unknown_kind(call) =>
                {
                    Some((rule.head.effect, &rule.head, DoubtKind::UnknownKind))
                }
                Test::Match { .. } => Some((rule.head.effect, &rule.head, DoubtKind::None)),
                // What cannot be read is not allowed by this rule, and is denied by one that would restrict it.
                Test::Opaque => {
                    rule.leaning().restricts().then_some((RuleEffect::Deny, &rule.head, DoubtKind::Opaque))
                }
                Test::Miss(_) => None,
            }
        });
        let sequences = self.sequences.iter().zip(history.tracks());
        let sequences = sequences.filter(|(sequence, _)| wanted(sequence.automaton.judged())).filter_map(
            |(sequence, track)| match track.speaks(&sequence.automaton, call) {
                Ok(SequenceMatch::Matched) => Some((sequence.head.effect, &sequence.head, DoubtKind::None)),
                Ok(SequenceMatch::Opaque) => Some((RuleEffect::Deny, &sequence.head, DoubtKind::Opaque)),
                Err(_) => None,
            },
        );
        for (effect, head, doubt) in rules.chain(sequences) {
            if doubt == DoubtKind::Opaque {
                return Some(from_head(effect, head, OPAQUE));
            }
            if strictest.is_none_or(|(found, ..)| effect > found) {
                strictest = Some((effect, head, doubt));
            }
            if effect == RuleEffect::Deny {
                break;
            }
        }
        strictest.map(|(effect, head, doubt)| match doubt {
            DoubtKind::UnknownKind => from_head(effect, head, &reason_for_unknown_kind(&head.reason)),
            DoubtKind::None | DoubtKind::Opaque => from_head(effect, head, &head.reason),
        })
    }

    /// What holds for files that run later, which are the targets of the question: a person has to see the change, unless
    /// a rule that allows it names the file.
    #[must_use]
    pub fn judge_runs_later(&self, question: &PolicyRequest<'_>) -> PolicyDecision {
        let call = Prepared::new(question);
        let mut allowing = self.rules.iter().filter(|rule| rule.head.effect == RuleEffect::Allow);
        match allowing.find(|rule| rule.selector.names_what_runs_later(&call)) {
            Some(rule) => from_head(RuleEffect::Allow, &rule.head, &rule.head.reason),
            None => PolicyDecision::by_default(RuleEffect::Ask, RUNS_LATER, RUNS_LATER_REASON),
        }
    }

    /// What is said of a call that changes files which may run later and that no rule names, and whether it counts
    /// whatever the contents are.
    fn unnamed_runs_later(&self, question: &PolicyRequest<'_>) -> Option<(PolicyDecision, bool)> {
        let changes = |access| matches!(access, Access::Write | Access::Delete);
        let later: Vec<Target> = question
            .targets
            .iter()
            .filter(|target| {
                target.file().is_some_and(|(_, path, access)| changes(access) && may_run_later(path))
            })
            .cloned()
            .collect();
        let counts = later.iter().filter_map(Target::file).any(|(_, path, _)| always_runs_later(path));
        let found = self.judge_runs_later(&PolicyRequest { targets: &later, ..*question });
        (!later.is_empty() && found.effect == RuleEffect::Ask).then_some((found, counts))
    }

    /// The first protection, in their own order, that applies to any of the files.
    fn protection(&self, question: &PolicyRequest<'_>) -> Option<Protection> {
        let rank = |found: &Protection| protect::ALL.iter().position(|one| one.rule == found.rule);
        question
            .targets
            .iter()
            .filter_map(Target::file)
            .filter_map(|(root, path, access)| {
                self.protections.of(root, path).filter(|protection| protection.forbids(access))
            })
            .min_by_key(rank)
    }

    /// Whether a rule of a file may ask about or deny a call on files below a directory. `call` is such a call on the
    /// directory itself. In doubt one may; a sequence rule may whatever has happened so far.
    #[must_use]
    pub fn may_restrict_below(&self, call: &PolicyRequest<'_>, root: Root, directory: &RelativePath) -> bool {
        self.restricting().any(|selector| selector.may_mean_below(call, root, directory))
    }

    /// The same for rules with a `path` alone, as [`Policy::restriction_by_path`] asks them.
    #[must_use]
    pub fn may_restrict_by_path_below(
        &self,
        call: &PolicyRequest<'_>,
        root: Root,
        directory: &RelativePath,
    ) -> bool {
        let mut by_path = self.restricting().filter(|selector| !selector.paths.is_empty());
        by_path.any(|selector| selector.may_mean_below(call, root, directory))
    }

    /// The calls that a rule may ask about or deny.
    fn restricting(&self) -> impl Iterator<Item = &Selector> {
        let of_rules = self.rules.iter().filter(|rule| rule.leaning().restricts()).map(|rule| &rule.selector);
        of_rules.chain(self.sequences.iter().map(|sequence| sequence.automaton.judged()))
    }

    /// Names these rules: the same text in the same files has the same fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The table of built-in protections with this installation's settings.
    #[must_use]
    pub fn protections(&self) -> &Protections {
        &self.protections
    }

    /// Whether a decision may depend on the state of test-driven work. Where none does, the state need not be asked for.
    #[must_use]
    pub fn depends_on_state(&self) -> bool {
        !self.sequences.is_empty() || self.rules.iter().any(|rule| !rule.selector.states.is_empty())
    }

    /// The rules of files, sequence rules last.
    pub fn rules(&self) -> impl Iterator<Item = RuleSummary<'_>> {
        let rules = self.rules.iter().map(|rule| (&rule.head, false, true));
        let without_effect = self.without_effect.iter().map(|rule| (&rule.head, false, false));
        let sequences = self.sequences.iter().map(|sequence| (&sequence.head, true, true));
        rules.chain(without_effect).chain(sequences).map(|(head, is_sequence, has_effect)| RuleSummary {
            id: &head.id,
            effect: head.effect,
            reason: &head.reason,
            place: &head.place,
            is_sequence,
            has_effect,
            matching: head.examples.0,
            not_matching: head.examples.1,
        })
    }

    /// Every selector of every rule that counts, with the rule's head.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = (&Head, &Selector)> {
        let of_rules = self.rules.iter().map(|rule| (&rule.head, &rule.selector));
        let of_sequences = self.sequences.iter().flat_map(|sequence| {
            sequence.automaton.selectors().map(move |selector| (&sequence.head, selector))
        });
        of_rules.chain(of_sequences)
    }

    /// What holds when no rule matches.
    fn default_decision(&self, question: &PolicyRequest<'_>) -> PolicyDecision {
        if self.free_reads && question.only_queries() {
            let reason = "statements that only read are allowed by `db.freeReads`";
            return PolicyDecision::by_default(RuleEffect::Allow, "default/free-reads", reason);
        }
        default_by_effect(question)
    }

    pub(crate) fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }
}

fn from_head(effect: RuleEffect, head: &Head, reason: &str) -> PolicyDecision {
    PolicyDecision {
        source: Some(head.place.clone()),
        ..PolicyDecision::new(effect, head.id.as_str(), reason)
    }
}

fn report(
    rule: &str,
    effect: RuleEffect,
    matched: bool,
    why: &str,
    source: Option<&SourceLocation>,
) -> RuleReport {
    let finding = if matched { RuleFinding::Matched } else { RuleFinding::Idle };
    RuleReport {
        rule: rule.to_owned(),
        effect,
        finding,
        why: why.to_owned(),
        source: source.cloned(),
        is_default: false,
    }
}

fn default_by_effect(question: &PolicyRequest<'_>) -> PolicyDecision {
    let (effect, rule, reason) = match question.strongest_effect() {
        Effect::Read => (RuleEffect::Allow, "default/read", "reads are allowed unless a rule says otherwise"),
        Effect::Write => (RuleEffect::Ask, "default/write", "writes are asked for unless a rule allows them"),
        Effect::Execute => {
            (RuleEffect::Ask, "default/execute", "running something is asked for unless a rule allows it")
        }
        Effect::Network => {
            (RuleEffect::Ask, "default/network", "the network is asked for unless a rule allows it")
        }
    };
    PolicyDecision::by_default(effect, rule, reason)
}
