//! Fits the coefficients of `crates/registry/src/calibration.rs` on the calibration set and cross-validates them.
//!
//! `cargo run --release -p tgp-bench --bin calibrate [-- --lexical] [--builtin] [--verbose] [SET.json]`
//! With `--builtin` nothing is fitted: it only says how the coefficients that are there do on the set.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a command for the person who tunes"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use tgp_bench::training::{LabelledQuery, LabelledSet, Observation, fit, observe};
use tgp_contract::ToolError;
use tgp_registry::{Calibration, Embedder, REUSE, Searcher};

/// Folds of the cross-validation.
const FOLDS: usize = 10;
/// Different ways to cut the folds; the numbers are means over them.
const CUTS: usize = 7;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let lexical = arguments.iter().any(|argument| argument == "--lexical");
    let verbose = arguments.iter().any(|argument| argument == "--verbose");
    let set = match arguments.iter().find(|argument| !argument.starts_with("--")) {
        Some(path) => LabelledSet::parse(&std::fs::read(path).expect("a readable set")),
        None => LabelledSet::calibration(),
    }
    .expect("a labelled set");
    let embedder = tgp_registry::embedded().filter(|_| !lexical);
    let embedder = embedder
        .map(|inner| -> Arc<dyn Embedder> { Arc::new(Remembering { inner, known: Mutex::default() }) });
    let builtin = arguments.iter().any(|argument| argument == "--builtin");
    runtime.block_on(async {
        if !builtin {
            fit_and_validate(embedder.clone(), &set).await;
        }
        quality(embedder, &set, verbose).await;
    });
}

async fn fit_and_validate(embedder: Option<Arc<dyn Embedder>>, set: &LabelledSet) {
    let observations = observe(embedder.clone(), set).await.expect("observations");
    println!("{:#?}", fit(&observations));
    let absent = absent(embedder.clone(), set).await;
    cross_validate(
        &observations,
        &absent,
        set.queries.iter().filter(|query| !query.answers.is_empty()).count(),
    );
}

/// Each answered question once more in a registry without its answers: whatever is found then is wrong, and neither the
/// lexicon nor the author of the set chose it.
async fn absent(embedder: Option<Arc<dyn Embedder>>, set: &LabelledSet) -> Vec<Observation> {
    let mut observations = Vec::new();
    for (place, query) in set.queries.iter().enumerate().filter(|(_, query)| !query.answers.is_empty()) {
        let tools = set.tools.iter().filter(|tool| !query.answers.contains(&tool.id)).cloned().collect();
        let question = LabelledQuery { answers: Vec::new(), ..query.clone() };
        let without = LabelledSet { tools, queries: vec![question] };
        let found = observe(embedder.clone(), &without).await.expect("observations");
        observations.extend(found.into_iter().map(|found| Observation { query: place, ..found }));
    }
    observations
}

/// An embedder that embeds no text twice.
struct Remembering {
    inner: Arc<dyn Embedder>,
    known: Mutex<HashMap<String, Vec<f32>>>,
}

#[async_trait::async_trait]
impl Embedder for Remembering {
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }

    fn dimensions(&self) -> Option<usize> {
        self.inner.dimensions()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        let recalled = {
            let known = self.known.lock().expect("no panic before");
            texts.iter().map(|text| known.get(text).cloned()).collect::<Option<Vec<_>>>()
        };
        if let Some(vectors) = recalled {
            return Ok(vectors);
        }
        let vectors = self.inner.embed(texts).await?;
        let pairs = texts.iter().cloned().zip(vectors.iter().cloned());
        self.known.lock().expect("no panic before").extend(pairs);
        Ok(vectors)
    }
}

fn cross_validate(observations: &[Observation], absent: &[Observation], answered: usize) {
    let (mut right, mut wrong, mut wrong_unseen, mut wrong_absent, mut loss) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let reuse = |score: f32| f64::from(u8::from(score >= REUSE));
    for cut in 0..CUTS {
        for fold in 0..FOLDS {
            let is_held = |observation: &Observation| spread(observation.query, cut) % FOLDS == fold;
            let train: Vec<Observation> = observations.iter().copied().filter(|row| !is_held(row)).collect();
            let coefficients = fit(&train);
            for row in observations.iter().filter(|row| is_held(row)) {
                let score = coefficients.score(&row.features);
                let probability = coefficients.probability(&row.features);
                let mut unseen = row.features;
                unseen.contradictions = 0.0;
                loss -= f64::from(if row.correct { probability } else { 1.0 - probability }.max(1e-6).ln());
                if row.correct {
                    right += reuse(score);
                } else {
                    wrong += reuse(score);
                    wrong_unseen += f64::midpoint(reuse(score), reuse(coefficients.score(&unseen)));
                }
            }
            wrong_absent += absent
                .iter()
                .filter(|row| is_held(row))
                .map(|row| reuse(coefficients.score(&row.features)))
                .sum::<f64>();
        }
    }
    let cuts = CUTS as f64;
    println!("cross-validated, {FOLDS} folds, mean of {CUTS} cuts:");
    println!("  log loss {:.3}", loss / cuts / observations.len() as f64);
    println!("  right reuse {:.1} of {answered}, wrong reuse {:.1}", right / cuts, wrong / cuts);
    println!("  precision at {REUSE} {:.3}", right / (right + wrong));
    println!(
        "  precision if the lexicon missed half of the contradictions {:.3}",
        right / (right + wrong_unseen)
    );
    println!("  wrong reuse when the answers are taken away {:.1} of {answered}", wrong_absent / cuts);
}

/// A fixed shuffle.
fn spread(query: usize, cut: usize) -> usize {
    let mixed = (query as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ (cut as u64 * 0x1234_5678_9ABC_DEF1));
    (mixed >> 33) as usize
}

async fn quality(embedder: Option<Arc<dyn Embedder>>, set: &LabelledSet, verbose: bool) {
    let searcher = Searcher::new(embedder, Calibration::builtin(), None);
    searcher.update(set.metadata().expect("tools")).await.expect("vectors");
    let (mut first, mut five, mut answered) = (0_usize, 0_usize, 0_usize);
    let mut reuse: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut lines = Vec::new();
    for query in &set.queries {
        let found = searcher.search(&query.query, 5).await.expect("an answer");
        let place = found.results.iter().position(|hit| set.answers(query, &hit.path));
        if !query.answers.is_empty() {
            answered += 1;
            first += usize::from(place == Some(0));
            five += usize::from(place.is_some());
        }
        if let Some(hit) = found.results.first() {
            let [asked, right, wrong] = reuse.entry(&query.kind).or_default();
            *asked += 1;
            *right += usize::from(hit.score >= REUSE && place == Some(0));
            *wrong += usize::from(hit.score >= REUSE && place != Some(0));
            let mark = if place == Some(0) { "right" } else { "WRONG" };
            lines.push(format!(
                "{:.3} {mark} {:9} {} => {} ({})",
                hit.score, query.kind, query.query, hit.path, hit.why
            ));
        }
    }
    let share = |count: usize| count as f64 / answered as f64;
    println!("recall@1 {:.3}, recall@5 {:.3}", share(first), share(five));
    for (kind, [asked, right, wrong]) in &reuse {
        println!("  {kind:9} {asked:3}  reuse right {right} wrong {wrong}");
    }
    let sum = |at: usize| reuse.values().filter_map(|counts| counts.get(at)).sum::<usize>();
    println!(
        "reuse with the built-in coefficients: right {} wrong {}, coverage {:.3}",
        sum(1),
        sum(2),
        share(sum(1))
    );
    lines.sort_by(|left, right| right.cmp(left));
    lines.iter().filter(|_| verbose).for_each(|line| println!("{line}"));
}
