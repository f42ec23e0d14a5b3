//! A small model of rules and calls, and the plainest possible reading of what they mean. The policy has to agree.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use tgp_contract::{Access, Actor, Effect, Root, Target, TddMode, TddState};
use tgp_policy::{PastCall, Policy, PolicySettings, PolicySource, RuleEffect, SessionHistory, SourceTrust};

use crate::support::{file, source};

pub const EFFECTS: [Effect; 4] = [Effect::Read, Effect::Write, Effect::Execute, Effect::Network];

#[derive(Clone, Debug, PartialEq)]
pub enum ToolWord {
    Name(u8),
    Effect(Effect),
    Every,
}

/// A rule over a tiny world: three tools, two agents, three directories, small numbers.
#[derive(Clone, Debug)]
pub struct ModelRule {
    pub effect: RuleEffect,
    pub tools: Vec<ToolWord>,
    pub agent: Option<u8>,
    pub state: Option<TddState>,
    pub directory: Option<(u8, Option<Access>)>,
    pub number: Option<u8>,
}

#[derive(Clone, Debug)]
pub struct ModelCall {
    pub tool: u8,
    pub effect: Effect,
    pub agent: u8,
    pub state: TddState,
    pub files: Vec<(u8, Access)>,
    pub number: Option<u8>,
}

pub fn any_rule() -> impl Strategy<Value = ModelRule> {
    let word = prop_oneof![
        3 => (0_u8..3).prop_map(ToolWord::Name),
        1 => select(&EFFECTS[..]).prop_map(ToolWord::Effect),
        1 => Just(ToolWord::Every),
    ];
    let access = select(vec![None, Some(Access::Read), Some(Access::Write), Some(Access::Delete)]);
    (
        select(vec![RuleEffect::Allow, RuleEffect::Ask, RuleEffect::Deny]),
        prop::collection::vec(word, 1..3),
        prop::option::weighted(0.2, 0_u8..2),
        prop::option::weighted(0.2, select(vec![TddState::Red, TddState::Green])),
        prop::option::weighted(0.4, (0_u8..3, access)),
        prop::option::weighted(0.2, 0_u8..3),
    )
        .prop_map(|(effect, tools, agent, state, directory, number)| ModelRule {
            effect,
            tools,
            agent,
            state,
            directory,
            number,
        })
}

pub fn any_call() -> impl Strategy<Value = ModelCall> {
    let access = select(vec![Access::Read, Access::Write, Access::Delete]);
    (
        0_u8..3,
        select(&EFFECTS[..]),
        0_u8..2,
        select(vec![TddState::Red, TddState::Green]),
        prop::collection::vec((0_u8..3, access), 0..3),
        prop::option::of(0_u8..3),
    )
        .prop_map(|(tool, effect, agent, state, files, number)| ModelCall {
            tool,
            effect,
            agent,
            state,
            files,
            number,
        })
}

impl ModelRule {
    pub fn yaml(&self, id: &str) -> String {
        let words: Vec<String> = self
            .tools
            .iter()
            .map(|word| match word {
                ToolWord::Name(name) => format!("tool_{name}"),
                ToolWord::Effect(effect) => format!("\"effect:{}\"", effect.as_str()),
                ToolWord::Every => "\"*\"".to_owned(),
            })
            .collect();
        let mut text = format!("  - {{id: {id}, effect: {}, tools: [{}]", self.effect, words.join(", "));
        if let Some(agent) = self.agent {
            write!(text, ", actor: \"agent:{agent}\"").unwrap();
        }
        if let Some(state) = self.state {
            write!(text, ", when: {{state: {}}}", state.as_str()).unwrap();
        }
        let mut conditions = Vec::new();
        if let Some((directory, access)) = self.directory {
            let access = access.map_or(String::new(), |access| {
                format!(", access: {}", serde_json::to_value(access).unwrap().as_str().unwrap())
            });
            conditions.push(format!("path: {{glob: \"d{directory}/**\"{access}}}"));
        }
        if let Some(number) = self.number {
            conditions.push(format!("arguments: {{number: {number}}}"));
        }
        if !conditions.is_empty() {
            write!(text, ", where: {{{}}}", conditions.join(", ")).unwrap();
        }
        text + "}\n"
    }

    /// The meaning, written a second time and as plainly as possible.
    pub fn matches(&self, call: &ModelCall) -> bool {
        let tool = self.tools.iter().any(|word| match word {
            ToolWord::Name(name) => *name == call.tool,
            ToolWord::Effect(effect) => *effect == call.effect,
            ToolWord::Every => true,
        });
        let files = match self.directory {
            None => true,
            Some((directory, access)) => {
                let fits =
                    |file: &(u8, Access)| file.0 == directory && access.is_none_or(|access| access == file.1);
                match self.effect {
                    RuleEffect::Allow => !call.files.is_empty() && call.files.iter().all(fits),
                    RuleEffect::Ask | RuleEffect::Deny => call.files.iter().any(fits),
                }
            }
        };
        let number = self.number.is_none_or(|number| call.number == Some(number));
        tool && files
            && number
            && self.agent.is_none_or(|agent| agent == call.agent)
            && self.state.is_none_or(|state| state == call.state)
    }
}

impl ModelCall {
    pub fn real(&self) -> PastCall {
        let files = self.files.iter().enumerate();
        let targets: Vec<Target> = files
            .map(|(index, (directory, access))| {
                file(Root::Project, &format!("d{directory}/f{index}"), *access)
            })
            .collect();
        PastCall {
            tool: format!("tool_{}", self.tool),
            aliases: Vec::new(),
            effect: self.effect,
            arguments: self.number.map_or(json!({}), |number| json!({ "number": number })),
            targets,
            actor: Actor::Agent(self.agent.to_string()),
            session: "model".to_owned(),
            mode: TddMode::Strict,
            state: self.state,
        }
    }

    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Read && self.files.iter().all(|(_, access)| *access == Access::Read)
    }
}

/// What the rules mean together.
pub fn expected(rules: &[ModelRule], call: &ModelCall) -> RuleEffect {
    let matching: Vec<RuleEffect> =
        rules.iter().filter(|rule| rule.matches(call)).map(|rule| rule.effect).collect();
    if matching.contains(&RuleEffect::Deny) {
        RuleEffect::Deny
    } else if matching.contains(&RuleEffect::Ask) {
        RuleEffect::Ask
    } else if matching.contains(&RuleEffect::Allow) || call.only_reads() {
        RuleEffect::Allow
    } else {
        RuleEffect::Ask
    }
}

/// The rules as files, `split` of them in the first one.
pub fn files(rules: &[(usize, &ModelRule)], split: usize) -> Vec<PolicySource> {
    let split = split.min(rules.len());
    let text = |rules: &[(usize, &ModelRule)]| {
        let rules: String = rules.iter().map(|(index, rule)| rule.yaml(&format!("rule-{index}"))).collect();
        if rules.is_empty() { "version: 1\n".to_owned() } else { format!("version: 1\nrules:\n{rules}") }
    };
    vec![source("a.yaml", &text(&rules[..split])), source("b.yaml", &text(&rules[split..]))]
}

pub fn load(rules: &[ModelRule]) -> Policy {
    let numbered: Vec<(usize, &ModelRule)> = rules.iter().enumerate().collect();
    Policy::load(&files(&numbered, rules.len()), &PolicySettings::default()).unwrap()
}

proptest! {
    /// Whatever is in files that may only tighten, no call is judged more freely than without them.
    #[test]
    fn rules_that_may_only_tighten_never_loosen(
        rules in prop::collection::vec(any_rule(), 0..12),
        calls in prop::collection::vec(any_call(), 1..12),
    ) {
        let numbered: Vec<(usize, &ModelRule)> = rules.iter().enumerate().collect();
        let mut sources = files(&numbered, rules.len() / 2);
        sources.iter_mut().for_each(|source| source.trust = SourceTrust::TightenOnly);
        let settings = PolicySettings::default();
        let (with, without) = (Policy::load(&sources, &settings).unwrap(), Policy::load(&[], &settings).unwrap());
        for call in calls {
            let real = call.real();
            let judged = with.preview(&real.as_question(), &SessionHistory::new(&with));
            let before = without.preview(&real.as_question(), &SessionHistory::new(&without));
            prop_assert!(judged.effect >= before.effect, "{:?} instead of {:?}", judged, before);
        }
    }

    #[test]
    fn the_policy_agrees_with_the_model(
        rules in prop::collection::vec(any_rule(), 0..12),
        calls in prop::collection::vec(any_call(), 1..12),
    ) {
        let policy = load(&rules);
        let history = SessionHistory::new(&policy);
        for call in calls {
            let real = call.real();
            let decision = policy.preview(&real.as_question(), &history);
            prop_assert_eq!(decision.effect, expected(&rules, &call), "{:?}", decision);
        }
    }
}
