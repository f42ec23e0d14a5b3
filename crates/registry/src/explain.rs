//! The sentence beside a score that says where it comes from.

use crate::features::{Evidence, NEAR_MEANING, QueryFeatures};

/// Shared words that are named; more would be a list, not a reason.
const MAX_SHARED: usize = 4;
/// Below this cover a word of the question counts as one the tool says nothing about.
const NEARLY_COVERED: f32 = 0.35;

/// How the similarity was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    Meaning,
    /// There is no model, or the tool has no vector yet.
    Words,
    /// An embedder without fitted coefficients: its numbers are not probabilities.
    Unfitted,
}

pub(crate) fn why(question: &QueryFeatures, evidence: &Evidence, basis: Basis) -> String {
    let mut parts = Vec::new();
    if evidence.same_name {
        parts.push("same name".to_owned());
    }
    if evidence.reversed {
        parts.push("direction reversed: the tool goes the other way".to_owned());
    }
    parts.extend(
        evidence
            .contradictions
            .iter()
            .map(|pair| format!("query says {}, tool says {}", pair.asked, pair.offered)),
    );
    if let Some(verb) = &evidence.missing_verb {
        parts.push(format!("query asks to {verb}, which the tool does not mention"));
    }
    parts.push(meaning(evidence.features.similarity, basis));
    if !evidence.shared.is_empty() {
        let shown: Vec<&str> = evidence.shared.iter().take(MAX_SHARED).map(String::as_str).collect();
        parts.push(format!("shares: {}", shown.join(", ")));
    }
    if let Some(word) = evidence.uncovered.as_ref().filter(|_| !evidence.features.covers_head()) {
        let absent = evidence.features.weakest < NEARLY_COVERED;
        let said = if absent { "nothing in it about" } else { "only something near" };
        parts.push(format!("{said} `{word}`"));
    }
    parts.extend(
        question.repairs.iter().map(|repair| format!("read `{}` as `{}`", repair.written, repair.read)),
    );
    parts.join("; ")
}

fn meaning(similarity: f32, basis: Basis) -> String {
    let degree = match similarity {
        _ if basis == Basis::Words => return format!("by words only ({similarity:.2})"),
        0.75.. => "same meaning",
        NEAR_MEANING.. => "near meaning",
        0.3.. => "related meaning",
        _ => "another purpose",
    };
    let note = if basis == Basis::Unfitted { ", embedder not calibrated" } else { "" };
    format!("{degree} ({similarity:.2}{note})")
}
