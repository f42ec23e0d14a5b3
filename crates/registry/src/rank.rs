//! From similarities to hits: rerank the best, weigh the evidence, say why.

use tgp_contract::{RelativePath, ToolMetadata};

use crate::calibration::{BELOW_REUSE, Calibration, Coefficients};
use crate::document::Document;
use crate::explain::{self, Basis};
use crate::features::{Evidence, Features, QueryFeatures, WordSpace};
use crate::found::{Hit, ReuseVerdict};
use crate::library::{Entry, Library};
use crate::vectors::QueryVector;

/// Tools whose evidence is computed. What is right and not among the best by meaning would not be believed anyway.
const MAX_CANDIDATES: usize = 24;
/// How much shared trigrams lift a tool among the candidates, fitted on the calibration set.
const TRIGRAM_LIFT: f32 = 0.1;
/// How much each contradiction lowers it.
const CONTRADICTION_DROP: f32 = 0.1;
/// How much lower a tool ranks that does not compile, so that a working twin comes first and keeps its lead.
const BROKEN_DROP: f32 = 0.1;
/// A unique exact name is as good as a sure answer, but never one above a better founded score.
const SAME_NAME: f32 = 0.95;
/// The same source under another path.
const SAME_SOURCE: f32 = 1.0;
/// The same description, signature and declared names: a copy with another layout.
const SAME_SHAPE: f32 = 0.97;
/// Declared names from which on their equality is not an accident.
const TELLING_IDENTIFIERS: usize = 3;

/// What the scores are computed with.
pub(crate) struct Scale<'a> {
    pub(crate) calibration: &'a Calibration,
    /// Fingerprint of the embedder that made the probe.
    pub(crate) fingerprint: Option<&'a str>,
}

/// One tool with its evidence.
pub(crate) struct Candidate<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) evidence: Evidence,
    basis: Basis,
    rank: f32,
}

/// The best tools for a question, best first. With a probe by meaning, and by words where a tool has no vector yet.
pub(crate) fn candidates<'a>(
    library: &'a Library,
    question: &QueryFeatures,
    probe: Option<&QueryVector>,
    excluded: Option<&RelativePath>,
) -> Vec<Candidate<'a>> {
    let by_meaning = probe.map(|probe| library.cosines(probe)).unwrap_or_default();
    let has_meaning = !by_meaning.is_empty();
    let by_words = library.overlaps(question, |entry| !has_meaning || !entry.has_vector());
    let mut space = WordSpace::default();
    let mut found: Vec<Candidate<'a>> = Vec::new();
    let same_name = library.entries().iter().enumerate().filter(|(_, entry)| question.names(&entry.name));
    let named: Vec<usize> = same_name.map(|(place, _)| place).take(MAX_CANDIDATES).collect();
    for (similarities, basis) in [(by_meaning, Basis::Meaning), (by_words, Basis::Words)] {
        for (place, similarity) in best(similarities, &named) {
            let Some(entry) = library.entries().get(place) else { continue };
            if excluded.is_some_and(|path| *path == entry.tool.path) {
                continue;
            }
            let evidence = Evidence::new(question, &Document::new(&entry.tool), similarity, &mut space);
            let against = CONTRADICTION_DROP * evidence.features.contradictions;
            let broken = if is_broken(&entry.tool) { BROKEN_DROP } else { 0.0 };
            let rank = similarity + TRIGRAM_LIFT * evidence.dice - against - broken;
            found.push(Candidate { entry, evidence, basis, rank });
        }
    }
    found.sort_by(|left, right| {
        let by_name = right.is_named().cmp(&left.is_named());
        by_name
            .then(right.rank.total_cmp(&left.rank))
            .then_with(|| left.entry.tool.path.cmp(&right.entry.tool.path))
    });
    lead(&mut found);
    found
}

/// The highest similarities, and those of the tools that the question names.
fn best(mut similarities: Vec<(usize, f32)>, named: &[usize]) -> Vec<(usize, f32)> {
    let by_similarity =
        |left: &(usize, f32), right: &(usize, f32)| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0));
    let also: Vec<(usize, f32)> =
        similarities.iter().filter(|(place, _)| named.contains(place)).copied().collect();
    if similarities.len() > MAX_CANDIDATES {
        similarities.select_nth_unstable_by(MAX_CANDIDATES, by_similarity);
        similarities.truncate(MAX_CANDIDATES);
    }
    similarities.extend(also);
    similarities.sort_by(by_similarity);
    similarities.dedup_by_key(|(place, _)| *place);
    similarities
}

fn lead(candidates: &mut [Candidate<'_>]) {
    let ranks: Vec<f32> = candidates.iter().map(|candidate| candidate.rank).collect();
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let others = ranks.iter().enumerate().filter(|(other, _)| *other != place);
        let best = others.map(|(_, rank)| *rank).fold(0.0, f32::max);
        candidate.evidence.set_lead(candidate.rank - best);
    }
}

impl Candidate<'_> {
    /// Whether the question is the name of this tool, and it works.
    pub(crate) fn is_named(&self) -> bool {
        self.evidence.same_name && !is_broken(&self.entry.tool)
    }

    pub(crate) fn features(&self) -> Features {
        self.evidence.features
    }

    /// The hit as the caller sees it. `name_is_unique` says that no other tool has this name.
    pub(crate) fn hit(&self, question: &QueryFeatures, scale: &Scale<'_>, name_is_unique: bool) -> Hit {
        let (coefficients, basis) = self.coefficients(scale);
        let mut score = coefficients.score(&self.evidence.features);
        if basis != Basis::Meaning || question.words.is_empty() {
            score = score.min(BELOW_REUSE);
        }
        if self.evidence.same_name && name_is_unique && self.evidence.features.contradictions <= 0.0 {
            score = score.max(SAME_NAME);
        }
        hit(&self.entry.tool, score, explain::why(question, &self.evidence, basis))
    }

    fn coefficients<'a>(&self, scale: &Scale<'a>) -> (&'a Coefficients, Basis) {
        match scale.fingerprint.filter(|_| self.basis == Basis::Meaning) {
            None => (scale.calibration.lexical(), Basis::Words),
            Some(fingerprint) => match scale.calibration.get(fingerprint) {
                Some(fitted) => (fitted, Basis::Meaning),
                None => (scale.calibration.fallback(), Basis::Unfitted),
            },
        }
    }
}

/// Hits for a copy of `tool`: what needs no model to be recognised. One that does not compile is weighed as any other.
pub(crate) fn copies(library: &Library, tool: &ToolMetadata) -> Vec<Hit> {
    let others =
        library.entries().iter().filter(|entry| entry.tool.path != tool.path && !is_broken(&entry.tool));
    let copies = others.filter_map(|entry| {
        if entry.tool.hash == tool.hash {
            return Some(hit(&entry.tool, SAME_SOURCE, "the same source".to_owned()));
        }
        has_same_shape(&entry.tool, tool)
            .then(|| hit(&entry.tool, SAME_SHAPE, "the same description, signature and names".to_owned()))
    });
    copies.take(MAX_CANDIDATES).collect()
}

fn has_same_shape(left: &ToolMetadata, right: &ToolMetadata) -> bool {
    let tells = left.identifiers.len() >= TELLING_IDENTIFIERS;
    tells
        && left.description == right.description
        && left.signature == right.signature
        && left.identifiers == right.identifiers
        && left.imports == right.imports
}

fn is_broken(tool: &ToolMetadata) -> bool {
    tool.problem.is_some()
}

/// A tool that cannot run is never the answer, whatever else speaks for it.
fn hit(tool: &ToolMetadata, score: f32, why: String) -> Hit {
    let (score, why) = if is_broken(tool) {
        (score.min(BELOW_REUSE), format!("it does not compile; {why}"))
    } else {
        (score, why)
    };
    Hit {
        path: tool.path.clone(),
        score,
        description: tool.description.clone(),
        signature: tool.signature.clone(),
        why,
        verdict: ReuseVerdict::of(score),
    }
}
