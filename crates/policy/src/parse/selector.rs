//! Reads which calls a rule means: `tools`, `where`, `when`, `actor`, and `match` in sequence rules.

use tgp_contract::{Access, Root, TddMode, TddState};

use super::reader::{Fields, Reader};
use crate::arguments::{ArgumentMatcher, ArgumentTest, MAX_SEGMENTS};
use crate::limits::{self, LimitMatcher, LimitRange};
use crate::named::NamedMatcher;
use crate::pattern::{self, ActorPatterns, HostPattern, MatchBias, PathGlobs, ToolPatterns};
use crate::selector::{CommandMatcher, PathMatcher, Selector, StatementMatcher};
use crate::yaml::{Entry, Node, Yaml};

const ACCESSES: &[(&str, Access)] = &[
    ("read", Access::Read),
    ("write", Access::Write),
    ("delete", Access::Delete),
    ("append", Access::Append),
];
const ROOTS: &[(&str, Root)] = &[("tools", Root::Tools), ("project", Root::Project), ("host", Root::Host)];
const MODES: &[&str] = &["strict", "explore", "debug"];
const STATES: &[&str] =
    &["idle", "test_written", "red", "code_allowed", "green", "refactor", "done", "halted"];

/// Whether the texts that an expression is made for mean the same in capitals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnyCase {
    Yes,
    No,
}

fn names<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

fn among<T: Copy>(table: &'static [(&'static str, T)]) -> impl Fn(&str) -> Option<T> {
    move |word| table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

impl Reader<'_> {
    /// The parts of a selector that a rule has in common with the selectors of sequence rules.
    pub(super) fn selector(&mut self, fields: &Fields<'_>, leaning: MatchBias) -> Selector {
        let mut selector = Selector::default();
        if let Some(node) = fields.get("tools") {
            selector.tools = self.tools(node);
        }
        if let Some(node) = fields.get("actor") {
            selector.actors = self.actors(node);
        }
        if let Some(node) = fields.get("when") {
            self.when(node, &mut selector);
        }
        if let Some(node) = fields.get("where") {
            self.conditions(node, &mut selector, leaning);
        }
        selector
    }

    /// A selector of a sequence rule: a tool pattern, a list of them, or a mapping.
    pub(super) fn step(&mut self, node: &Node, what: &str) -> Selector {
        if matches!(node.value, Yaml::Text(_) | Yaml::List(_)) {
            return Selector { tools: self.tools(node), ..Selector::default() };
        }
        let known = ["tool", "tools", "match", "where", "when", "actor"];
        let Some(fields) = self.fields(node, what, &known) else { return Selector::default() };
        let before = self.problems.len();
        let mut selector = self.selector(&fields, MatchBias::Restricting);
        if let Some(node) = fields.get("tool") {
            if fields.get("tools").is_some() {
                self.wrong(node.spot, "`tool` and `tools` are given at once", "keep one of them");
            }
            selector.tools = self.tools(node);
        }
        if let Some(node) = fields.get("match")
            && let Some(text) = self.text(node, "`match`")
        {
            match pattern::regex_of_any_case(text, MatchBias::Restricting) {
                Ok(regex) => selector.text = Some(regex),
                Err(error) => self.bad_pattern(node, text, &error),
            }
        }
        if selector.is_empty() && self.problems.len() == before {
            self.wrong(node.spot, format!("{what} says nothing"), "write `tools: \"*\"` to mean every call");
        }
        selector
    }

    fn tools(&mut self, node: &Node) -> Option<ToolPatterns> {
        let words = self.words(node, "`tools`")?;
        let texts: Vec<&str> = words.iter().map(|(_, text)| *text).collect();
        self.compiled(&words, ToolPatterns::new(&texts))
    }

    fn actors(&mut self, node: &Node) -> Option<ActorPatterns> {
        let words = self.words(node, "`actor`")?;
        let texts: Vec<&str> = words.iter().map(|(_, text)| *text).collect();
        self.compiled(&words, ActorPatterns::new(&texts))
    }

    fn when(&mut self, node: &Node, selector: &mut Selector) {
        let Some(fields) = self.fields(node, "`when`", &["mode", "state"]) else { return };
        if fields.is_empty() {
            self.wrong(fields.spot, "`when` says nothing", "give it `mode` or `state`, or leave it out");
        }
        if let Some(node) = fields.get("mode") {
            selector.modes = self.choices(node, "mode", MODES, TddMode::parse).unwrap_or_default();
        }
        if let Some(node) = fields.get("state") {
            selector.states = self.choices(node, "state", STATES, TddState::parse).unwrap_or_default();
        }
    }

    pub(super) fn mode(&mut self, node: &Node) -> Option<TddMode> {
        self.choice(node, "mode", MODES, TddMode::parse)
    }

    pub(super) fn state(&mut self, node: &Node) -> Option<TddState> {
        self.choice(node, "state", STATES, TddState::parse)
    }

    fn conditions(&mut self, node: &Node, selector: &mut Selector, leaning: MatchBias) {
        let known = ["path", "statement", "host", "command", "limits", "target", "arguments"];
        let Some(fields) = self.fields(node, "`where`", &known) else { return };
        if fields.is_empty() {
            self.wrong(fields.spot, "`where` says nothing", "name what has to hold, or leave it out");
        }
        if let Some(node) = fields.get("path") {
            selector.paths = self.all(node, "`path`", |reader, node| reader.path(node, leaning));
        }
        if let Some(node) = fields.get("statement") {
            selector.statements =
                self.all(node, "`statement`", |reader, node| reader.statement(node, leaning));
        }
        if let Some(node) = fields.get("host") {
            selector.hosts = self.all(node, "`host`", Self::host);
        }
        if let Some(node) = fields.get("command") {
            selector.commands = self.all(node, "`command`", |reader, node| reader.command(node, leaning));
        }
        if let Some(node) = fields.get("limits") {
            selector.limits = self.all(node, "`limits`", Self::limits);
        }
        if let Some(node) = fields.get("target") {
            selector.named = self.all(node, "`target`", Self::named);
        }
        if let Some(node) = fields.get("arguments") {
            let entries = self.entries(node, "`arguments`").unwrap_or_default();
            if entries.is_empty() && matches!(node.value, Yaml::Map(_)) {
                self.wrong(node.spot, "`arguments` says nothing", "name an argument, or leave it out");
            }
            selector.arguments = entries.iter().filter_map(|entry| self.argument(entry, leaning)).collect();
        }
    }

    /// Every alternative of a matcher.
    fn all<T>(&mut self, node: &Node, what: &str, read: impl Fn(&mut Self, &Node) -> Option<T>) -> Vec<T> {
        let nodes = self.one_or_more(node, what).unwrap_or_default();
        nodes.into_iter().filter_map(|node| read(self, node)).collect()
    }

    fn path(&mut self, node: &Node, leaning: MatchBias) -> Option<PathMatcher> {
        let (globs, roots, accesses) = match &node.value {
            Yaml::Text(_) => (self.words(node, "`path`")?, Vec::new(), Vec::new()),
            _ => {
                let fields = self.fields(node, "`path`", &["glob", "root", "access"])?;
                let Some(globs) = fields.get("glob") else {
                    self.wrong(
                        fields.spot,
                        "`path` has no `glob`",
                        "write `glob: \"**\"` to mean every path",
                    );
                    return None;
                };
                let roots =
                    fields.get("root").map(|node| self.choices(node, "root", &names(ROOTS), among(ROOTS)));
                let accesses = fields
                    .get("access")
                    .map(|node| self.choices(node, "access", &names(ACCESSES), among(ACCESSES)));
                let globs = self.words(globs, "`glob`")?;
                // A list that could not be read must not become the list that means everything.
                let (roots, accesses) =
                    (roots.unwrap_or(Some(Vec::new()))?, accesses.unwrap_or(Some(Vec::new()))?);
                (globs, roots, accesses)
            }
        };
        let texts: Vec<&str> = globs.iter().map(|(_, text)| *text).collect();
        let globs = self.compiled(&globs, PathGlobs::new(&texts, leaning))?;
        Some(PathMatcher { globs, roots, accesses })
    }

    fn statement(&mut self, node: &Node, leaning: MatchBias) -> Option<StatementMatcher> {
        let Yaml::Text(word) = &node.value else {
            return self.expression(node, "`statement`", leaning, AnyCase::Yes).map(StatementMatcher::Text);
        };
        if word == "*" {
            return Some(StatementMatcher::Any);
        }
        let fits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !fits {
            let message = format!("`{}` is not a kind of statement", word.escape_debug());
            self.wrong(node.spot, message, "write a verb such as `drop`, `*`, or `{regex: …}` for the text");
            return None;
        }
        Some(StatementMatcher::Kind(word.to_ascii_lowercase()))
    }

    fn host(&mut self, node: &Node) -> Option<HostPattern> {
        let word = self.text(node, "`host`")?;
        HostPattern::new(word).map_err(|error| self.bad_pattern(node, word, &error)).ok()
    }

    fn command(&mut self, node: &Node, leaning: MatchBias) -> Option<CommandMatcher> {
        match &node.value {
            Yaml::Text(text) => Some(CommandMatcher::Exact(text.clone())),
            _ => self.expression(node, "`command`", leaning, AnyCase::No).map(CommandMatcher::Text),
        }
    }

    fn named(&mut self, node: &Node) -> Option<NamedMatcher> {
        let word = self.text(node, "`target`")?;
        NamedMatcher::new(word).map_err(|error| self.bad_pattern(node, word, &error)).ok()
    }

    fn limits(&mut self, node: &Node) -> Option<LimitMatcher> {
        if matches!(&node.value, Yaml::Text(word) if word == "*") {
            return Some(LimitMatcher::Any);
        }
        let fields = self.fields(node, "`limits`", &limits::NAMES)?;
        let mut ranges = Vec::new();
        for name in limits::NAMES {
            let Some(node) = fields.get(name) else { continue };
            let bounds = self.fields(node, "a limit's range", &["min", "max"])?;
            // A range that could not be read must not become the one that means everything.
            let ArgumentTest::Range { min, max } = self.range(&bounds)? else { return None };
            ranges.push(LimitRange { name, min, max });
        }
        if ranges.is_empty() {
            self.wrong(
                fields.spot,
                "`limits` says nothing",
                "write `*`, or a range such as `{cpuMs: {max: 5000}}`",
            );
            return None;
        }
        Some(LimitMatcher::Ranges(ranges))
    }

    fn expression(
        &mut self,
        node: &Node,
        what: &str,
        leaning: MatchBias,
        any_case: AnyCase,
    ) -> Option<regex::Regex> {
        let fields = self.fields(node, what, &["regex"])?;
        let Some(node) = fields.get("regex") else {
            self.wrong(fields.spot, format!("{what} has no `regex`"), "write text, or `{regex: …}`");
            return None;
        };
        let text = self.text(node, "`regex`")?;
        let compiled = match any_case {
            AnyCase::Yes => pattern::regex_of_any_case(text, leaning),
            AnyCase::No => pattern::regex(text, leaning),
        };
        compiled.map_err(|error| self.bad_pattern(node, text, &error)).ok()
    }

    fn argument(&mut self, entry: &Entry, leaning: MatchBias) -> Option<ArgumentMatcher> {
        let test = self.argument_test(&entry.node, leaning)?;
        let matcher = ArgumentMatcher::new(&entry.key, test);
        if matcher.is_none() {
            let message = format!("`{}` is not a path to an argument", entry.key.escape_debug());
            let help =
                format!("write at most {MAX_SEGMENTS} names with a dot between them, such as `files.*.path`");
            self.wrong(entry.spot, message, help);
        }
        matcher
    }

    fn argument_test(&mut self, node: &Node, leaning: MatchBias) -> Option<ArgumentTest> {
        if !matches!(node.value, Yaml::Map(_)) {
            let values = self.one_or_more(node, "an argument")?;
            return Some(ArgumentTest::Equal(values.into_iter().map(Node::to_json).collect()));
        }
        let known = ["equals", "one_of", "regex", "glob", "min", "max"];
        let fields = self.fields(node, "an argument's matcher", &known)?;
        let given: Vec<&str> = known.into_iter().filter(|key| fields.get(key).is_some()).collect();
        match given.as_slice() {
            ["equals"] => Some(ArgumentTest::Equal(vec![fields.get("equals")?.to_json()])),
            ["one_of"] => {
                let node = fields.get("one_of")?;
                self.items(node, "`one_of`")?;
                let values = self.one_or_more(node, "`one_of`")?;
                Some(ArgumentTest::Equal(values.into_iter().map(Node::to_json).collect()))
            }
            ["regex"] => {
                self.expression(node, "an argument's matcher", leaning, AnyCase::No).map(ArgumentTest::Regex)
            }
            ["glob"] => {
                let words = self.words(fields.get("glob")?, "`glob`")?;
                let texts: Vec<&str> = words.iter().map(|(_, text)| *text).collect();
                self.compiled(&words, pattern::text_globs(&texts)).map(ArgumentTest::Glob)
            }
            ["min" | "max"] | ["min", "max"] => self.range(&fields),
            _ => {
                let help = "write one of `equals`, `one_of`, `regex` and `glob`, or `min` and `max`";
                self.wrong(fields.spot, "an argument's matcher says nothing or too much", help);
                None
            }
        }
    }

    fn range(&mut self, fields: &Fields<'_>) -> Option<ArgumentTest> {
        let mut bound = |key: &str| match fields.get(key) {
            None => Some(None),
            Some(node) => self.number(node, key).map(Some),
        };
        let (min, max) = (bound("min")?, bound("max")?);
        if let (Some(low), Some(high)) = (min, max)
            && low > high
        {
            self.wrong(fields.spot, "`min` is above `max`, so nothing fits", "exchange them");
            return None;
        }
        Some(ArgumentTest::Range { min, max })
    }

    pub(super) fn access(&mut self, node: &Node) -> Option<Access> {
        self.choice(node, "access", &names(ACCESSES), among(ACCESSES))
    }

    pub(super) fn root(&mut self, node: &Node) -> Option<Root> {
        self.choice(node, "root", &names(ROOTS), among(ROOTS))
    }
}
