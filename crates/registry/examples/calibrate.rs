//! Fits the coefficients of `src/calibration.rs` on the calibration set and cross-validates them.
//!
//! `cargo run --release -p tgp-registry --example calibrate [-- --lexical] [-- SET.json]`
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a command for the person who tunes"
)]

use std::sync::Arc;

use tgp_registry::{Calibration, Coefficients, Embedder, LabelledSet, Observation, REUSE, Searcher};

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
    let embedder: Option<Arc<dyn Embedder>> = if lexical { None } else { tgp_registry::embedded() };
    runtime.block_on(report(embedder, &set, verbose));
}

async fn report(embedder: Option<Arc<dyn Embedder>>, set: &LabelledSet, verbose: bool) {
    let observations = Calibration::observe(embedder.clone(), set).await.expect("observations");
    println!("{:#?}", Coefficients::fit(&observations));
    cross_validate(&observations, set.queries.iter().filter(|query| !query.answers.is_empty()).count());
    recall(embedder, set, verbose).await;
}

fn cross_validate(observations: &[Observation], answered: usize) {
    let (mut right, mut wrong, mut wrong_unseen, mut loss) = (0.0, 0.0, 0.0, 0.0);
    for cut in 0..CUTS {
        for fold in 0..FOLDS {
            let is_held = |observation: &Observation| spread(observation.query, cut) % FOLDS == fold;
            let train: Vec<Observation> = observations.iter().copied().filter(|row| !is_held(row)).collect();
            let coefficients = Coefficients::fit(&train);
            for row in observations.iter().filter(|row| is_held(row)) {
                let score = coefficients.probability(&row.features);
                let mut unseen = row.features;
                unseen.contradictions = 0.0;
                let reuse = |score: f32| f64::from(u8::from(score >= REUSE));
                loss -= f64::from(if row.correct { score } else { 1.0 - score }.max(1e-6).ln());
                if row.correct {
                    right += reuse(score);
                } else {
                    wrong += reuse(score);
                    wrong_unseen += f64::midpoint(reuse(score), reuse(coefficients.probability(&unseen)));
                }
            }
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
}

/// A fixed shuffle.
fn spread(query: usize, cut: usize) -> usize {
    let mixed = (query as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ (cut as u64 * 0x1234_5678_9ABC_DEF1));
    (mixed >> 33) as usize
}

async fn recall(embedder: Option<Arc<dyn Embedder>>, set: &LabelledSet, verbose: bool) {
    let searcher = Searcher::new(embedder, Calibration::builtin(), None);
    searcher.update(set.metadata().expect("tools")).await.expect("vectors");
    let (mut first, mut five, mut answered) = (0_usize, 0_usize, 0_usize);
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
            let mark = if place == Some(0) { "right" } else { "WRONG" };
            lines.push(format!(
                "{:.3} {mark} {:9} {} => {} ({})",
                hit.score, query.kind, query.query, hit.path, hit.why
            ));
        }
    }
    let share = |count: usize| count as f64 / answered as f64;
    println!("recall@1 {:.3}, recall@5 {:.3}", share(first), share(five));
    lines.sort_by(|left, right| right.cmp(left));
    lines.iter().filter(|_| verbose).for_each(|line| println!("{line}"));
}
