//! What holds for every set of rules and every call.

use proptest::prelude::*;
use tgp_policy::{
    ExtensionVerdict, Policy, PolicyDecision, PolicySettings, RuleEffect, RuleFinding, SessionHistory,
};

use crate::model::{ModelRule, any_call, any_rule, files, load};

fn decided(policy: &Policy, call: &crate::model::ModelCall) -> PolicyDecision {
    policy.preview(&call.real().as_question(), &SessionHistory::new(policy))
}

proptest! {
    // Every case compiles a policy or two; with the default number of cases this would be most of the suite's time.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn one_matching_deny_is_enough(
        rules in prop::collection::vec(any_rule(), 1..20),
        call in any_call(),
        place in any::<prop::sample::Index>(),
    ) {
        let mut rules = rules;
        let index = place.index(rules.len());
        rules[index].effect = RuleEffect::Deny;
        let decision = decided(&load(&rules), &call);
        if rules[index].matches(&call) {
            prop_assert_eq!(decision.effect, RuleEffect::Deny);
        }
    }

    #[test]
    fn a_further_rule_never_loosens_but_an_allow_over_the_default(
        rules in prop::collection::vec(any_rule(), 0..12),
        further in any_rule(),
        call in any_call(),
    ) {
        let before = decided(&load(&rules), &call);
        let more: Vec<ModelRule> = rules.into_iter().chain([further.clone()]).collect();
        let after = decided(&load(&more), &call);
        if after.effect < before.effect {
            prop_assert!(before.rule.starts_with("default/"), "{:?} became {:?}", before, after);
            prop_assert_eq!(further.effect, RuleEffect::Allow);
            prop_assert!(further.matches(&call));
        }
    }

    #[test]
    fn the_order_of_rules_and_files_never_matters(
        (rules, shuffled) in prop::collection::vec(any_rule(), 0..12).prop_flat_map(|rules| {
            let order: Vec<usize> = (0..rules.len()).collect();
            (Just(rules), Just(order).prop_shuffle())
        }),
        split in 0_usize..12,
        call in any_call(),
    ) {
        let settings = PolicySettings::default();
        let in_order: Vec<(usize, &ModelRule)> = rules.iter().enumerate().collect();
        let other: Vec<(usize, &ModelRule)> = shuffled.iter().map(|index| (*index, &rules[*index])).collect();
        let mut sources = files(&other, split);
        sources.reverse();
        let one = decided(&Policy::load(&files(&in_order, rules.len()), &settings).unwrap(), &call);
        let other = decided(&Policy::load(&sources, &settings).unwrap(), &call);
        prop_assert_eq!((one.effect, one.rule, one.reason), (other.effect, other.rule, other.reason));
    }

    #[test]
    fn an_explanation_tells_the_truth(
        rules in prop::collection::vec(any_rule(), 0..12),
        call in any_call(),
    ) {
        let policy = load(&rules);
        let real = call.real();
        let explanation = policy.explain(&real.as_question(), &SessionHistory::new(&policy));
        prop_assert_eq!(&explanation.decision, &decided(&policy, &call));
        for (index, rule) in rules.iter().enumerate() {
            let id = format!("rule-{index}");
            let report = explanation.rules.iter().find(|report| report.rule == id).unwrap();
            prop_assert_eq!(report.finding == RuleFinding::Idle, !rule.matches(&call), "{:?}", report);
            prop_assert!(!report.why.is_empty());
            // What matched without deciding was not stricter than what decided.
            prop_assert!(report.finding != RuleFinding::Matched || report.effect <= explanation.decision.effect);
        }
        let deciding: Vec<&str> = explanation
            .rules
            .iter()
            .filter(|report| report.finding == RuleFinding::Decided)
            .map(|report| report.rule.as_str())
            .collect();
        prop_assert_eq!(deciding, [explanation.decision.rule.as_str()]);
    }

    #[test]
    fn an_extension_only_tightens(rules in prop::collection::vec(any_rule(), 0..8), call in any_call()) {
        let decision = decided(&load(&rules), &call);
        let reason = || "because".to_owned();
        for (verdict, least) in [
            (ExtensionVerdict::Pass, RuleEffect::Allow),
            (ExtensionVerdict::Ask { reason: reason() }, RuleEffect::Ask),
            (ExtensionVerdict::Deny { reason: reason() }, RuleEffect::Deny),
            (ExtensionVerdict::Failed { reason: reason() }, RuleEffect::Deny),
        ] {
            let after = decision.clone().with_extension("mine", verdict);
            prop_assert_eq!(after.effect, decision.effect.max(least));
            prop_assert!(after == decision || after.rule == "extension/mine");
        }
    }
}
