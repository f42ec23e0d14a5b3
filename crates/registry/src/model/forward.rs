//! The forward pass of the six layers, over int8 weights and activations quantised on the way.

use super::kernel;
use super::weights::{Layer, Linear, Norm, Weights};

const EPSILON: f32 = 1e-12;
/// Partial sums of one dot product: as many as a vector register holds, so that the order of addition is fixed.
const LANES: usize = 8;

/// The embedding of some token ids: the mean of the last layer, of length one.
pub(super) fn embed(weights: &Weights, ids: &[usize]) -> Vec<f32> {
    let mut values = embed_tokens(weights, ids);
    for layer in &weights.layers {
        apply(layer, weights.heads, weights.hidden, &mut values);
    }
    let mut mean = vec![0.0; weights.hidden];
    for row in values.chunks_exact(weights.hidden) {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    normalise(&mut mean);
    mean
}

/// Scales `vector` to length one; a vector of nothing stays.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
}

fn embed_tokens(weights: &Weights, ids: &[usize]) -> Vec<f32> {
    let mut values = Vec::with_capacity(ids.len() * weights.hidden);
    for (position, id) in ids.iter().enumerate() {
        let (Some(word), Some(place)) = (weights.words.row(*id), weights.positions.row(position)) else {
            break;
        };
        values.extend(word.zip(place).zip(&weights.kind).map(|((word, place), kind)| word + place + kind));
    }
    norm(&mut values, &weights.norm);
    values
}

fn apply(layer: &Layer, heads: usize, hidden: usize, values: &mut [f32]) {
    let input = Quantised::new(values, hidden);
    let (query, key, value) =
        (input.through(&layer.query), input.through(&layer.key), input.through(&layer.value));
    let mixed = attend(&query, &key, &value, heads, hidden);
    add(values, &Quantised::new(&mixed, hidden).through(&layer.output));
    norm(values, &layer.attention_norm);
    let mut inner = Quantised::new(values, hidden).through(&layer.inner);
    kernel::gelu(&mut inner);
    add(values, &Quantised::new(&inner, layer.outer.matrix.width).through(&layer.outer));
    norm(values, &layer.output_norm);
}

/// Every head: each token takes the values of the tokens its query fits, in proportion.
fn attend(query: &[f32], key: &[f32], value: &[f32], heads: usize, hidden: usize) -> Vec<f32> {
    let size = hidden / heads;
    let mut mixed = vec![0.0; query.len()];
    let mut shares: Vec<f32> = Vec::new();
    for (query, mixed) in query.chunks_exact(hidden).zip(mixed.chunks_exact_mut(hidden)) {
        for (head, (query, mixed)) in query.chunks_exact(size).zip(mixed.chunks_exact_mut(size)).enumerate() {
            shares.clear();
            shares.extend(rows_of(key, hidden, head, size).map(|key| dot(query, key)));
            soften(&mut shares, size);
            for (share, value) in shares.iter().zip(rows_of(value, hidden, head, size)) {
                mixed.iter_mut().zip(value).for_each(|(sum, value)| *sum += share * value);
            }
        }
    }
    mixed
}

/// The part of each token's row that belongs to one head.
fn rows_of(rows: &[f32], hidden: usize, head: usize, size: usize) -> impl Iterator<Item = &[f32]> {
    rows.chunks_exact(hidden).filter_map(move |row| row.chunks_exact(size).nth(head))
}

/// Softmax of scaled scores, in place.
fn soften(scores: &mut [f32], size: usize) {
    #[expect(clippy::cast_precision_loss, reason = "the size of a head is 32")]
    let scale = 1.0 / (size as f32).sqrt();
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = ((*score - largest) * scale).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

fn add(values: &mut [f32], others: &[f32]) {
    values.iter_mut().zip(others).for_each(|(value, other)| *value += other);
}

/// Layer normalisation of every row, in place.
fn norm(values: &mut [f32], norm: &Norm) {
    #[expect(clippy::cast_precision_loss, reason = "the width of a row is 384")]
    let width = norm.weight.len() as f32;
    for row in values.chunks_exact_mut(norm.weight.len()) {
        let mean = row.iter().sum::<f32>() / width;
        row.iter_mut().for_each(|value| *value -= mean);
        let spread = (dot(row, row) / width + EPSILON).sqrt();
        for (value, (weight, bias)) in row.iter_mut().zip(norm.weight.iter().zip(&norm.bias)) {
            *value = *value / spread * weight + bias;
        }
    }
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (left, right) in left_chunks.iter().zip(right_chunks) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    sums.iter().sum::<f32>() + left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum::<f32>()
}

/// Rows of activations as 14-bit integers with one scale each. The products with int8 weights then are exact, and
/// the loss is that of the weights alone.
struct Quantised {
    rows: Vec<i16>,
    scales: Vec<f32>,
    width: usize,
}

impl Quantised {
    fn new(values: &[f32], width: usize) -> Self {
        let mut rows = Vec::with_capacity(values.len());
        let mut scales = Vec::with_capacity(values.len() / width.max(1));
        for row in values.chunks_exact(width) {
            let largest = row.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let scale = if largest > 0.0 { largest / kernel::ACTIVATION_LIMIT } else { 1.0 };
            let inverse = 1.0 / scale;
            #[expect(clippy::cast_possible_truncation, reason = "the limit is 8191")]
            rows.extend(row.iter().map(|value| kernel::rounded(value * inverse) as i16));
            scales.push(scale);
        }
        Self { rows, scales, width }
    }

    fn through(&self, linear: &Linear) -> Vec<f32> {
        let (tokens, outputs) = (self.scales.len(), linear.bias.len());
        let mut sums = vec![0_i32; tokens * outputs];
        kernel::multiply(&self.rows, linear.matrix.rows, self.width, &mut sums);
        let mut result = vec![0.0; tokens * outputs];
        let channels = sums.chunks_exact(tokens.max(1)).zip(linear.matrix.scales.iter().zip(&linear.bias));
        for (output, (sums, (weight_scale, bias))) in channels.enumerate() {
            let places = result.iter_mut().skip(output).step_by(outputs.max(1));
            for (place, (sum, scale)) in places.zip(sums.iter().zip(&self.scales)) {
                #[expect(clippy::cast_precision_loss, reason = "seven digits of a sum are enough")]
                let sum = *sum as f32;
                *place = sum * (scale * weight_scale) + bias;
            }
        }
        result
    }
}
