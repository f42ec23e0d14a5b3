//! all-MiniLM-L6-v2 in int8, inside the binary: text to a vector of meaning, without a framework.

mod forward;
mod kernel;
mod tokenizer;
mod weights;

use std::sync::OnceLock;

use tokenizer::Tokenizer;
use weights::Weights;

/// Dimensions of the model's vectors.
pub(crate) const DIMENSIONS: usize = 384;

pub(crate) struct Model {
    weights: Weights,
    tokenizer: Tokenizer,
}

static MODEL: OnceLock<Option<Model>> = OnceLock::new();

impl Model {
    /// The model, read on first use: until then none of its pages is in memory.
    pub(crate) fn get() -> Option<&'static Self> {
        MODEL.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        let weights = Weights::load()?;
        let tokenizer = Tokenizer::new(weights.vocabulary)?;
        Some(Self { weights, tokenizer })
    }

    pub(crate) fn embed(&self, text: &str) -> Vec<f32> {
        forward::embed(&self.weights, &self.tokenizer.encode(text))
    }

    pub(crate) fn token_ids(&self, text: &str) -> Vec<usize> {
        self.tokenizer.encode(text)
    }

    pub(crate) fn knows_word(&self, word: &str) -> bool {
        self.tokenizer.knows(word)
    }

    /// The vector of a single word outside any sentence, relative to the mean word, of length one. Cheap: a lookup.
    pub(crate) fn word(&self, word: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.weights.hidden];
        for id in self.tokenizer.encode_word(word) {
            if let Some(row) = self.weights.words.row(id) {
                for (sum, (value, mean)) in sum.iter_mut().zip(row.zip(&self.weights.word_mean)) {
                    *sum += value - mean;
                }
            }
        }
        forward::normalise(&mut sum);
        sum
    }
}
