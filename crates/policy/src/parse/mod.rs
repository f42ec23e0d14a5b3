//! Turns policy files into rules, and reports everything that is wrong with them.

mod example;
mod reader;
mod selector;

use std::collections::HashMap;

use tgp_contract::SourceLocation;
use tgp_text::LineCol;

use self::reader::{Fields, Reader};
use crate::pattern::MatchBias;
use crate::problem::Problems;
use crate::rule::{Automaton, Head, Rule, Sequence};
use crate::yaml::Node;
use crate::{PolicyError, PolicySource, RuleEffect, SourceTrust, ToolCatalogue};

/// More text than a person maintains as one file of rules.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// More files than a person keeps in one folder of rules; with the size of one it bounds what is read at all.
const MAX_FILES: usize = 64;
/// Judging checks every rule, so their number bounds what a call costs.
const MAX_RULES: usize = 1000;
/// Steps of one automaton; a longer chain is a program, not a rule.
const MAX_STEPS: usize = 8;
/// An id is in every record of a call it decided.
const MAX_ID_BYTES: usize = 64;
/// A reason is a sentence or two, not a page.
const MAX_REASON_BYTES: usize = 500;

const RULE_FIELDS: &[&str] =
    &["id", "effect", "tools", "where", "when", "actor", "reason", "match", "not_match"];
const SEQUENCE_FIELDS: &[&str] =
    &["id", "after", "deny", "ask", "at_most", "of", "effect", "reason", "match", "not_match"];

/// The rules of all files, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) rules: Vec<Rule>,
    pub(crate) sequences: Vec<Sequence>,
    /// `allow` rules of files that may only tighten.
    pub(crate) without_effect: Vec<Rule>,
}

impl Parsed {
    /// A rule that would loosen what its file may only tighten is kept apart from those that decide, so that no other
    /// place has to ask where a rule comes from.
    fn add(&mut self, rule: Rule, trust: SourceTrust) {
        match (rule.head.effect, trust) {
            (RuleEffect::Allow, SourceTrust::TightenOnly) => self.without_effect.push(rule),
            _ => self.rules.push(rule),
        }
    }

    fn count(&self) -> usize {
        self.rules.len().saturating_add(self.sequences.len()).saturating_add(self.without_effect.len())
    }
}

/// Reads every file.
pub(crate) fn parse(
    sources: &[PolicySource],
    catalogue: Option<&dyn ToolCatalogue>,
) -> Result<Parsed, PolicyError> {
    let mut parsed = Parsed::default();
    let mut problems = Problems::default();
    let mut ids = HashMap::new();
    for (index, source) in sources.iter().enumerate() {
        let mut reader = Reader { file: &source.file, problems: &mut problems };
        if index >= MAX_FILES {
            reader.wrong(
                LineCol::START,
                format!("there are {} policy files, at most {MAX_FILES}", sources.len()),
                "join some",
            );
            break;
        }
        if source.text.len() > MAX_FILE_BYTES {
            let message = format!("the file has {} bytes, at most {MAX_FILE_BYTES}", source.text.len());
            reader.wrong(LineCol::START, message, "split it into several files");
            continue;
        }
        match Node::read(&source.text) {
            Ok(node) => reader.document(&node, source.trust, &mut parsed, &mut ids, catalogue),
            Err(error) => reader.wrong(error.location, error.message, &error.help),
        }
    }
    problems.into_result()?;
    parsed.rules.sort_by(|one, other| one.head.id.cmp(&other.head.id));
    parsed.sequences.sort_by(|one, other| one.head.id.cmp(&other.head.id));
    parsed.without_effect.sort_by(|one, other| one.head.id.cmp(&other.head.id));
    Ok(parsed)
}

/// Where each id was first given.
type Ids = HashMap<String, SourceLocation>;

impl Reader<'_> {
    fn document(
        &mut self,
        node: &Node,
        trust: SourceTrust,
        parsed: &mut Parsed,
        ids: &mut Ids,
        catalogue: Option<&dyn ToolCatalogue>,
    ) {
        let Some(fields) = self.fields(node, "a policy file", &["version", "rules", "sequences"]) else {
            return;
        };
        match fields.get("version") {
            None => self.wrong(fields.spot, "the file has no `version`", "begin it with `version: 1`"),
            Some(version) => {
                if self.count(version, "`version`").is_some_and(|version| version != 1) {
                    self.wrong(version.spot, "only version 1 is known", "write `version: 1`");
                }
            }
        }
        for (key, is_rule) in [("rules", true), ("sequences", false)] {
            let Some(list) = fields.get(key) else { continue };
            for node in self.items(list, &format!("`{key}`")).unwrap_or_default() {
                if parsed.count() >= MAX_RULES {
                    self.wrong(node.spot, format!("there are more than {MAX_RULES} rules"), "join some");
                    return;
                }
                if is_rule {
                    if let Some(rule) = self.rule(node, ids, catalogue) {
                        parsed.add(rule, trust);
                    }
                } else {
                    parsed.sequences.extend(self.sequence(node, ids, catalogue));
                }
            }
        }
    }

    fn rule(&mut self, node: &Node, ids: &mut Ids, catalogue: Option<&dyn ToolCatalogue>) -> Option<Rule> {
        let before = self.problems.len();
        let fields = self.fields(node, "a rule", RULE_FIELDS)?;
        let effect = match fields.get("effect") {
            Some(node) => self.choice(node, "effect", &["allow", "ask", "deny"], RuleEffect::parse),
            None => {
                self.wrong(node.spot, "the rule has no `effect`", "write `effect: deny`, `ask` or `allow`");
                None
            }
        };
        let head = self.head(&fields, ids, effect);
        let leaning = match effect {
            Some(RuleEffect::Allow) => MatchBias::Permitting,
            _ => MatchBias::Restricting,
        };
        let selector = self.selector(&fields, leaning);
        if selector.is_empty() && self.problems.len() == before {
            self.wrong(
                node.spot,
                "the rule says of no call what it means",
                "write `tools: \"*\"` to mean every call",
            );
        }
        let mut rule = Rule { head: head?, selector };
        // Examples are judged by a rule that is right in itself, so that one fault is not reported twice.
        if self.problems.len() == before {
            rule.head.examples = self.rule_examples(&fields, &rule, catalogue);
        }
        Some(rule)
    }

    fn sequence(
        &mut self,
        node: &Node,
        ids: &mut Ids,
        catalogue: Option<&dyn ToolCatalogue>,
    ) -> Option<Sequence> {
        let before = self.problems.len();
        let fields = self.fields(node, "a sequence rule", SEQUENCE_FIELDS)?;
        let (effect, automaton) = match (fields.get("after"), fields.get("at_most")) {
            (Some(after), None) => self.after(&fields, after),
            (None, Some(limit)) => self.at_most(&fields, limit),
            _ => {
                let help = "write `after` with `deny` or `ask`, or `at_most` with `of`";
                self.wrong(node.spot, "a sequence rule has either `after` or `at_most`", help);
                (None, None)
            }
        };
        let head = self.head(&fields, ids, effect);
        let mut sequence = Sequence { head: head?, automaton: automaton? };
        if self.problems.len() == before {
            sequence.head.examples = self.sequence_examples(&fields, &sequence, catalogue);
        }
        Some(sequence)
    }

    fn after(&mut self, fields: &Fields<'_>, after: &Node) -> (Option<RuleEffect>, Option<Automaton>) {
        self.foreign(fields, &["of", "effect"], "`after`");
        let steps = self.one_or_more(after, "`after`").unwrap_or_default();
        if steps.len() > MAX_STEPS {
            self.wrong(
                after.spot,
                format!("`after` has {} steps, at most {MAX_STEPS}", steps.len()),
                "leave some out",
            );
            return (None, None);
        }
        let steps = steps.into_iter().map(|node| self.step(node, "a step of `after`")).collect();
        let (effect, judged) = match (fields.get("deny"), fields.get("ask")) {
            (Some(node), None) => (RuleEffect::Deny, self.step(node, "`deny`")),
            (None, Some(node)) => (RuleEffect::Ask, self.step(node, "`ask`")),
            _ => {
                self.wrong(
                    fields.spot,
                    "`after` needs either `deny` or `ask`",
                    "name the tools, such as `deny: fetch`",
                );
                return (None, None);
            }
        };
        (Some(effect), Some(Automaton::After { steps, judged }))
    }

    fn at_most(&mut self, fields: &Fields<'_>, limit: &Node) -> (Option<RuleEffect>, Option<Automaton>) {
        self.foreign(fields, &["deny", "ask"], "`at_most`");
        let limit = self.count(limit, "`at_most`");
        let effect = match fields.get("effect") {
            None => Some(RuleEffect::Deny),
            Some(node) => self.choice(node, "effect of a sequence rule", &["ask", "deny"], |word| {
                RuleEffect::parse(word).filter(|effect| *effect != RuleEffect::Allow)
            }),
        };
        let Some(of) = fields.get("of") else {
            self.wrong(fields.spot, "`at_most` needs `of`", "say which calls are counted: `of: {tools: …}`");
            return (effect, None);
        };
        let of = self.step(of, "`of`");
        (effect, limit.map(|limit| Automaton::AtMost { limit, of }))
    }

    fn foreign(&mut self, fields: &Fields<'_>, keys: &[&str], with: &str) {
        for key in keys {
            if let Some(node) = fields.get(key) {
                self.wrong(node.spot, format!("`{key}` does not go with {with}"), "leave it out");
            }
        }
    }

    fn head(&mut self, fields: &Fields<'_>, ids: &mut Ids, effect: Option<RuleEffect>) -> Option<Head> {
        let id = self.id(fields, ids);
        let reason = match fields.get("reason") {
            None => Some(String::new()),
            Some(node) => self.text(node, "`reason`").and_then(|text| {
                let fits = !text.trim().is_empty()
                    && text.len() <= MAX_REASON_BYTES
                    && !text.chars().any(|letter| letter.is_control() && letter != '\n');
                if !fits {
                    let help = format!("write a sentence of at most {MAX_REASON_BYTES} bytes");
                    self.wrong(node.spot, "the reason is empty, too long or not printable", help);
                }
                fits.then(|| text.split_whitespace().collect::<Vec<_>>().join(" "))
            }),
        };
        let place = self.place(fields.spot);
        let (id, effect, mut reason) = (id?, effect?, reason?);
        if reason.is_empty() {
            reason = format!("rule `{id}` gives no reason");
        }
        Some(Head { id, effect, reason, place, examples: (0, 0) })
    }

    fn id(&mut self, fields: &Fields<'_>, ids: &mut Ids) -> Option<String> {
        let Some(node) = fields.get("id") else {
            self.wrong(fields.spot, "the rule has no `id`", "give it a name such as `no-migrations`");
            return None;
        };
        let id = self.text(node, "`id`")?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(plain) {
            let help = if id.contains('/') {
                "names with `/` are those of built-in rules, defaults and extensions"
            } else {
                "use small letters, digits and `-`, at most 64 of them"
            };
            self.wrong(node.spot, format!("`{}` is not an id", id.escape_debug()), help);
            return None;
        }
        if let Some(first) = ids.get(id) {
            let message = format!("the id `{id}` is taken by {first}");
            self.wrong(node.spot, message, "give every rule of all files a name of its own");
            return None;
        }
        ids.insert(id.to_owned(), self.place(node.spot));
        Some(id.to_owned())
    }
}
