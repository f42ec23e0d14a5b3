//! The coefficients are those that the fit gives, and a fit makes an embedder trusted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use tgp_bench::training::{LabelledSet, Observation, fit, fit_set};
use tgp_contract::{ToolError, canonical};
use tgp_registry::{Calibration, Embedder, Features, ReuseVerdict, Searcher};

/// An embedder that counts words. It has no fitted coefficients.
struct WordBag;

#[async_trait::async_trait]
impl Embedder for WordBag {
    fn fingerprint(&self) -> &str {
        "counting-1"
    }

    fn dimensions(&self) -> Option<usize> {
        Some(64)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        Ok(texts.iter().map(|text| bag_of_words(text)).collect())
    }
}

fn bag_of_words(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; 64];
    for word in text.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        let digest = canonical::sha256_hex(word.as_bytes());
        for (value, digit) in vector.iter_mut().zip(digest.chars()) {
            *value += digit.to_digit(16).unwrap() as f32 - 7.5;
        }
    }
    vector
}

fn observation(query: usize, similarity: f32, contradictions: f32, correct: bool) -> Observation {
    Observation {
        query,
        features: Features { similarity, lead: 0.05, contradictions, weakest: 0.5 },
        correct,
    }
}

#[test]
fn a_fit_learns_what_the_observations_say() {
    let rows: Vec<Observation> = (0..200)
        .map(|query| {
            let similarity = query as f32 / 200.0;
            let contradictions = f32::from(u8::from(query % 4 == 0));
            observation(query, similarity, contradictions, similarity > 0.5 && contradictions == 0.0)
        })
        .collect();
    let fitted = fit(&rows);
    assert_eq!(fitted, fit(&rows), "the same observations give the same coefficients");
    assert!(fitted.similarity > 1.0 && fitted.contradictions < -1.0, "{fitted:?}");
    let score = |similarity, contradictions| {
        fitted.probability(&observation(0, similarity, contradictions, true).features)
    };
    assert!(score(0.95, 0.0) > 0.8 && score(0.1, 0.0) < 0.2 && score(0.95, 1.0) < 0.5, "{fitted:?}");
    // Nothing to learn from must not become a score that is not a number.
    for rows in [&[][..], &rows[..1]] {
        assert!(
            fit(rows).probability(&rows.first().map_or(Features::default(), |row| row.features)).is_finite()
        );
    }
}

#[tokio::test]
async fn the_built_in_coefficients_are_those_of_the_calibration_set() {
    let set = LabelledSet::calibration().unwrap();
    assert_eq!((set.tools.len(), set.queries.len()), (69, 175));
    let fitted = fit_set(tgp_registry::embedded(), &set).await.unwrap();
    let builtin = *Calibration::builtin().get(tgp_registry::EMBEDDED_FINGERPRINT).unwrap();
    let pairs = [
        (fitted.intercept, builtin.intercept),
        (fitted.similarity, builtin.similarity),
        (fitted.lead, builtin.lead),
        (fitted.contradictions, builtin.contradictions),
        (fitted.weakest, builtin.weakest),
    ];
    // A machine with other vector units rounds the last digits otherwise.
    assert!(pairs.iter().all(|(fitted, builtin)| (fitted - builtin).abs() < 0.1), "fit again: {fitted:?}");
}

#[tokio::test]
async fn an_external_embedder_says_reuse_once_it_was_fitted() {
    let set = LabelledSet::calibration().unwrap();
    let embedder: Arc<dyn Embedder> = Arc::new(WordBag);
    let coefficients = fit_set(Some(embedder.clone()), &set).await.unwrap();
    let calibration = Calibration::builtin().with("counting-1", coefficients);
    let stored = serde_json::to_string(&calibration).unwrap();
    assert_eq!(
        serde_json::from_str::<Calibration>(&stored).unwrap().get("counting-1"),
        calibration.get("counting-1")
    );
    let searcher = Searcher::new(Some(embedder), calibration, None);
    searcher.update(set.metadata().unwrap()).await.unwrap();
    let found =
        searcher.search("inventory turnover: Inventory turnover ratio and days on hand.", 3).await.unwrap();
    assert_eq!(
        (found.verdict, found.results[0].path.as_str()),
        (ReuseVerdict::Reuse, "tools/inventory/turnover.ts"),
        "{found:?}"
    );
    let rejected = LabelledSet::parse(
        br#"{"tools": [], "queries": [{"query": "x", "kind": "para", "match": ["gone"]}]}"#,
    );
    assert!(rejected.unwrap_err().message.contains("`gone`"));
}
