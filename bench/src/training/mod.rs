//! Fits the coefficients of the search: on a labelled set of tools and questions, by logistic regression.

mod labelled;

use std::sync::Arc;

use tgp_contract::ToolError;
use tgp_registry::{Calibration, Coefficients, Embedder, Features, Searcher};

pub use labelled::{LabelledQuery, LabelledSet, LabelledTool};

/// Steps of the descent; the fit moves no digit that is kept long before.
const FIT_STEPS: usize = 20_000;
/// Pull of every coefficient of a standardised feature towards zero, in observations.
const FIT_PULL: f64 = 1.0;
/// The lexicon knows the contradictions of the calibration set better than those of the world. So each wrong tool
/// that it caught also counts, with this weight, as one that it did not: out there it may miss every second one.
const UNSEEN_CONTRADICTIONS: f64 = 0.5;
/// How many features there are.
const WIDTH: usize = 4;

/// One tool that was found for one labelled question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Place of the question in its set.
    pub query: usize,
    pub features: Features,
    pub correct: bool,
}

/// Logistic regression by plain gradient descent on standardised features: the same observations give the same
/// coefficients on every machine.
#[must_use]
pub fn fit(observations: &[Observation]) -> Coefficients {
    let rows = weighted(observations);
    let total: f64 = rows.iter().map(|row| row.weight).sum::<f64>().max(1.0);
    let mut means = [0.0; WIDTH];
    let mut spreads = [0.0; WIDTH];
    for row in &rows {
        means.iter_mut().zip(row.values).for_each(|(mean, value)| *mean += row.weight * value / total);
    }
    for row in &rows {
        let centred = row.values.iter().zip(means).map(|(value, mean)| value - mean);
        spreads
            .iter_mut()
            .zip(centred)
            .for_each(|(spread, value)| *spread += row.weight * value * value / total);
    }
    let spreads = spreads.map(|spread: f64| if spread > 1e-12 { spread.sqrt() } else { 1.0 });
    let (weights, intercept) = descend(&rows, total, means, spreads);
    let mut plain = [0.0; WIDTH];
    let mut shift = intercept;
    for (plain, (weight, (mean, spread))) in
        plain.iter_mut().zip(weights.iter().zip(means.iter().zip(spreads)))
    {
        *plain = weight / spread;
        shift -= weight * mean / spread;
    }
    let [similarity, lead, contradictions, weakest] = plain;
    Coefficients { intercept: shift, similarity, lead, contradictions, weakest }
}

/// Fits coefficients for `embedder` on a labelled set. Embeds every tool and question of it once.
///
/// # Errors
/// What the embedder fails with, and `EVALIDATION` when the set has no usable tool or question.
pub async fn fit_set(
    embedder: Option<Arc<dyn Embedder>>,
    set: &LabelledSet,
) -> Result<Coefficients, ToolError> {
    Ok(fit(&observe(embedder, set).await?))
}

/// The best tool for each question of the set, with its evidence and whether it is right.
///
/// # Errors
/// As [`fit_set`].
pub async fn observe(
    embedder: Option<Arc<dyn Embedder>>,
    set: &LabelledSet,
) -> Result<Vec<Observation>, ToolError> {
    let searcher = Searcher::new(embedder, Calibration::builtin(), None);
    searcher.update(set.metadata()?).await?;
    let mut observations = Vec::new();
    for (query, labelled) in set.queries.iter().enumerate() {
        if let Some((path, features)) = searcher.best_evidence(&labelled.query).await? {
            observations.push(Observation { query, features, correct: set.answers(labelled, &path) });
        }
    }
    Ok(observations)
}

struct Row {
    values: [f64; WIDTH],
    weight: f64,
    correct: bool,
}

fn weighted(observations: &[Observation]) -> Vec<Row> {
    let mut rows = Vec::with_capacity(observations.len());
    for observation in observations {
        let values = observation.features.values();
        let caught = !observation.correct && observation.features.contradictions > 0.0;
        let weight = if caught { 1.0 - UNSEEN_CONTRADICTIONS } else { 1.0 };
        rows.push(Row { values, weight, correct: observation.correct });
        if caught {
            let unseen = Features { contradictions: 0.0, ..observation.features }.values();
            rows.push(Row { values: unseen, weight: UNSEEN_CONTRADICTIONS, correct: false });
        }
    }
    rows
}

fn descend(rows: &[Row], total: f64, means: [f64; WIDTH], spreads: [f64; WIDTH]) -> ([f64; WIDTH], f64) {
    let standard = |row: &Row| {
        let mut values = row.values;
        let standards = means.iter().zip(spreads);
        values
            .iter_mut()
            .zip(standards)
            .for_each(|(value, (mean, spread))| *value = (*value - mean) / spread);
        values
    };
    let rows: Vec<([f64; WIDTH], f64, f64)> = rows
        .iter()
        .map(|row| (standard(row), row.weight / total, f64::from(u8::from(row.correct))))
        .collect();
    // A logistic loss bends at most by a quarter of the sum of squares, which is one for a standard feature.
    #[expect(clippy::cast_precision_loss, reason = "five")]
    let step = 1.0 / (0.25 * (WIDTH + 1) as f64 + FIT_PULL / total);
    let mut weights = [0.0; WIDTH];
    let mut intercept = 0.0;
    for _ in 0..FIT_STEPS {
        let mut slope = weights.map(|weight| weight * FIT_PULL / total);
        let mut intercept_slope = 0.0;
        for (values, weight, correct) in &rows {
            let sum: f64 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
            let error = weight * (logistic(sum + intercept) - correct);
            slope.iter_mut().zip(values).for_each(|(slope, value)| *slope += error * value);
            intercept_slope += error;
        }
        weights.iter_mut().zip(slope).for_each(|(weight, slope)| *weight -= step * slope);
        intercept -= step * intercept_slope;
    }
    (weights, intercept)
}

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}
