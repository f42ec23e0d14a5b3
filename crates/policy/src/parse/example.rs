//! Reads the examples of rules, and checks that each rule takes them as it says.

use serde_json::Value;
use tgp_contract::{Access, Actor, Effect, LimitRequest, RelativePath, Root, Target, TddMode, TddState};

use super::reader::{Fields, Reader};
use crate::history::{AutomatonState, replayed};
use crate::named;
use crate::pattern;
use crate::rule::{Rule, Sequence};
use crate::selector::{Prepared, Test};
use crate::yaml::{Node, Yaml};
use crate::{PastCall, PolicyTool, ToolCatalogue};

/// Enough to show what a rule means; more belongs in a separate test.
const MAX_EXAMPLES: usize = 64;
/// A sequence of calls that a person still reads as an example.
const MAX_CALLS: usize = 64;
/// More than any real call has.
const MAX_TARGETS: usize = 64;

impl Reader<'_> {
    /// How many examples match, and how many do not, all as they should.
    pub(super) fn rule_examples(
        &mut self,
        fields: &Fields<'_>,
        rule: &Rule,
        catalogue: Option<&dyn ToolCatalogue>,
    ) -> (usize, usize) {
        self.both(fields, |reader, node, wanted| {
            let Some(call) = reader.call(node, catalogue) else { return };
            let question = call.as_question();
            let test = rule.selector.test(&Prepared::new(&question), rule.leaning());
            reader.compare(
                node,
                wanted,
                match test {
                    Test::Match { .. } => Ok(()),
                    Test::Miss(miss) => Err(rule.selector.say(&miss, &question)),
                    Test::Opaque => Err("a value is too long or too large to be matched".to_owned()),
                },
            );
        })
    }

    pub(super) fn sequence_examples(
        &mut self,
        fields: &Fields<'_>,
        sequence: &Sequence,
        catalogue: Option<&dyn ToolCatalogue>,
    ) -> (usize, usize) {
        self.both(fields, |reader, node, wanted| {
            let nodes = reader.items(node, "an example of a sequence rule").unwrap_or_default();
            if nodes.len() > MAX_CALLS || (nodes.is_empty() && matches!(node.value, Yaml::List(_))) {
                let message = format!("an example of a sequence rule has 1 to {MAX_CALLS} calls");
                reader.wrong(node.spot, message, "list the calls; the last one is judged");
                return;
            }
            let calls: Vec<PastCall> = nodes.iter().filter_map(|node| reader.call(node, catalogue)).collect();
            let Some((last, past)) = calls.split_last().filter(|_| calls.len() == nodes.len()) else {
                return;
            };
            let track: AutomatonState = replayed(&sequence.automaton, past);
            let question = last.as_question();
            let found = track.speaks(&sequence.automaton, &Prepared::new(&question));
            reader.compare(
                node,
                wanted,
                found.map(|_| ()).map_err(|quiet| quiet.say(&sequence.automaton, &question)),
            );
        })
    }

    /// Goes through `match` and `not_match`.
    fn both(
        &mut self,
        fields: &Fields<'_>,
        check: impl Fn(&mut Self, &Node, ExampleExpectation),
    ) -> (usize, usize) {
        let mut counts = [0, 0];
        for ((key, wanted), count) in
            [("match", ExampleExpectation::Match), ("not_match", ExampleExpectation::NoMatch)]
                .into_iter()
                .zip(&mut counts)
        {
            let Some(node) = fields.get(key) else { continue };
            let items = self.items(node, &format!("`{key}`")).unwrap_or_default();
            if items.len() > MAX_EXAMPLES {
                let message = format!("`{key}` has {} examples, at most {MAX_EXAMPLES}", items.len());
                self.wrong(node.spot, message, "keep those that show something");
                continue;
            }
            for item in items {
                check(self, item, wanted);
            }
            *count = items.len();
        }
        let [matching, others] = counts;
        (matching, others)
    }

    fn compare(&mut self, node: &Node, wanted: ExampleExpectation, found: Result<(), String>) {
        match (wanted, found) {
            (ExampleExpectation::Match, Ok(())) | (ExampleExpectation::NoMatch, Err(_)) => {}
            (ExampleExpectation::Match, Err(why)) => {
                let message = format!("the rule does not match this example: {why}");
                self.wrong(node.spot, message, "correct the rule or the example");
            }
            (ExampleExpectation::NoMatch, Ok(())) => {
                let help = "correct the rule or move the example to `match`";
                self.wrong(node.spot, "the rule matches this example of `not_match`", help);
            }
        }
    }

    /// A call as examples write it.
    fn call(&mut self, node: &Node, catalogue: Option<&dyn ToolCatalogue>) -> Option<PastCall> {
        let before = self.problems.len();
        let known_fields = ["tool", "arguments", "targets", "effect", "actor", "mode", "state"];
        let fields = self.fields(node, "an example", &known_fields)?;
        let Some(tool) = fields.get("tool") else {
            self.wrong(node.spot, "the example has no `tool`", "name the tool that is called");
            return None;
        };
        let tool = self.text(tool, "`tool`")?;
        let arguments = match fields.get("arguments") {
            None => Some(Value::Object(serde_json::Map::new())),
            Some(node) => self.entries(node, "`arguments`").map(|_| node.to_json()),
        };
        let targets = fields.get("targets").map(|node| self.targets(node));
        let effect = fields.get("effect").map(|node| {
            self.choice(node, "effect", &["read", "write", "execute", "network"], pattern::parse_effect)
        });
        let actor = fields.get("actor").map(|node| self.actor(node));
        let mode = fields.get("mode").map(|node| self.mode(node));
        let state = fields.get("state").map(|node| self.state(node));
        let arguments = arguments.filter(|_| self.problems.len() == before)?;
        let known = match catalogue.map(|catalogue| catalogue.look_up(tool, &arguments)) {
            Some(None) if targets.is_none() => {
                let message =
                    format!("there is no tool `{}`, or its arguments do not fit", tool.escape_debug());
                self.wrong(node.spot, message, "correct the example, or give it `targets` and `effect`");
                return None;
            }
            known => known.flatten(),
        };
        let (name, aliases, known_effect, known_targets) = match known {
            Some(PolicyTool { name, aliases, effect, targets }) => (name, aliases, Some(effect), targets),
            None => (tool.to_owned(), Vec::new(), None, Vec::new()),
        };
        let mut call = PastCall {
            tool: name,
            aliases,
            effect: Effect::Read,
            arguments,
            targets: targets.unwrap_or(known_targets),
            actor: actor.flatten().unwrap_or_else(|| Actor::Agent("example".to_owned())),
            session: "example".to_owned(),
            mode: mode.flatten().unwrap_or(TddMode::Strict),
            state: state.flatten().unwrap_or(TddState::Idle),
        };
        call.effect =
            effect.flatten().or(known_effect).unwrap_or_else(|| call.as_question().strongest_effect());
        Some(call)
    }

    fn actor(&mut self, node: &Node) -> Option<Actor> {
        let text = self.text(node, "`actor`")?;
        let actor = match text.split_once(':') {
            Some(("person", id)) => Some(Actor::Person(id.to_owned())),
            Some(("agent", id)) => Some(Actor::Agent(id.to_owned())),
            Some(("tool", path)) => RelativePath::new(path).ok().map(Actor::Tool),
            _ => None,
        };
        if actor.is_none() {
            let message = format!("`{}` is not an actor", text.escape_debug());
            self.wrong(node.spot, message, "write `person:…`, `agent:…` or `tool:…`");
        }
        actor
    }

    fn targets(&mut self, node: &Node) -> Vec<Target> {
        let items = self.items(node, "`targets`").unwrap_or_default();
        if items.len() > MAX_TARGETS {
            let message = format!("`targets` has {} items, at most {MAX_TARGETS}", items.len());
            self.wrong(node.spot, message, "keep those that show something");
            return Vec::new();
        }
        items.iter().filter_map(|item| self.target(item)).collect()
    }

    fn target(&mut self, node: &Node) -> Option<Target> {
        let known =
            ["file", "access", "root", "sql", "kinds", "host", "network", "command", "limits", "target"];
        let fields = self.fields(node, "a target", &known)?;
        let given: Vec<&str> = known.into_iter().filter(|key| fields.get(key).is_some()).collect();
        match given.as_slice() {
            ["file", "access"] | ["file", "access", "root"] => self.file(&fields),
            ["sql"] | ["sql", "kinds"] => self.statement_target(&fields),
            ["host"] => {
                let host = self.text(fields.get("host")?, "`host`")?;
                Some(Target::Host { host: host.to_lowercase() })
            }
            ["network"] => match &fields.get("network")?.value {
                Yaml::Bool(true) => Some(Target::Network),
                _ => {
                    self.wrong(node.spot, "`network` is `true` or is left out", "write `{network: true}`");
                    None
                }
            },
            ["command"] => {
                let command = self.text(fields.get("command")?, "`command`")?;
                Some(Target::Command { command: command.to_owned() })
            }
            ["limits"] => self.limits_target(fields.get("limits")?),
            ["target"] => {
                let node = fields.get("target")?;
                let text = self.text(node, "`target`")?;
                let found = named::target_of(text);
                if found.is_none() {
                    let message = format!("`{}` names no target", text.escape_debug());
                    self.wrong(
                        node.spot,
                        message,
                        "write `secret:NAME`, `mcp:SERVER/TOOL`, `host:NAME` or `branch:NAME`",
                    );
                }
                found
            }
            _ => {
                let help = "write `{file, access}` with `root` where needed, `{sql, kinds}`, `{host}`, \
                            `{network: true}`, `{command}`, `{limits}` or `{target}`";
                self.wrong(node.spot, "the target is none that is known", help);
                None
            }
        }
    }

    fn file(&mut self, fields: &Fields<'_>) -> Option<Target> {
        let node = fields.get("file")?;
        let text = self.text(node, "`file`")?;
        let path = RelativePath::new(text)
            .map_err(|error| self.wrong(node.spot, error.to_string(), "name a path below the root"))
            .ok();
        let access: Option<Access> = self.access(fields.get("access")?);
        let root = match fields.get("root") {
            Some(node) => self.root(node),
            None => Some(Root::Project),
        };
        Some(Target::File { root: root?, path: path?, access: access? })
    }

    fn limits_target(&mut self, node: &Node) -> Option<Target> {
        let asked: Option<LimitRequest> = serde_json::from_value(node.to_json()).ok();
        match asked.filter(|asked| !asked.is_empty()) {
            Some(asked) => Some(Target::Limits(asked)),
            None => {
                let help = "write whole numbers, such as `{limits: {cpuMs: 5000, memoryMb: 256}}`";
                self.wrong(node.spot, "`limits` of a target names no limits", help);
                None
            }
        }
    }

    /// Without `kinds`, the first word of the text is taken for its kind.
    fn statement_target(&mut self, fields: &Fields<'_>) -> Option<Target> {
        let sql = self.text(fields.get("sql")?, "`sql`")?;
        let kinds = match fields.get("kinds") {
            Some(node) => {
                self.words(node, "`kinds`")?.into_iter().map(|(_, kind)| kind.to_lowercase()).collect()
            }
            None => sql.split_whitespace().next().map(str::to_lowercase).into_iter().collect(),
        };
        Some(Target::Statement { sql: sql.to_owned(), kinds, reads: false })
    }
}

/// What an example says of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExampleExpectation {
    Match,
    NoMatch,
}
