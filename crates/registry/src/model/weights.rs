//! The embedded weights: where each matrix lies in the asset. Nothing large is copied.

/// The file that `assets/export.py` writes.
static ASSET: &[u8] = include_bytes!("../../assets/minilm-l6-v2-int8.bin");
const MAGIC: &[u8] = b"TGPMLM01";

/// Rows of int8 with one scale each. A row is an output channel, or a word.
pub(super) struct Matrix {
    pub(super) rows: &'static [u8],
    pub(super) scales: Vec<f32>,
    pub(super) width: usize,
}

impl Matrix {
    /// One row as floats; nothing when there is no such row.
    pub(super) fn row(&self, index: usize) -> Option<impl Iterator<Item = f32> + use<>> {
        let scale = *self.scales.get(index)?;
        let row = self.rows.chunks_exact(self.width).nth(index)?;
        Some(row.iter().map(move |byte| f32::from(byte.cast_signed()) * scale))
    }
}

pub(super) struct Linear {
    pub(super) matrix: Matrix,
    pub(super) bias: Vec<f32>,
}

pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

pub(super) struct Layer {
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    pub(super) attention_norm: Norm,
    pub(super) inner: Linear,
    pub(super) outer: Linear,
    pub(super) output_norm: Norm,
}

pub(super) struct Weights {
    pub(super) vocabulary: &'static str,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) words: Matrix,
    pub(super) positions: Matrix,
    /// Mean of all words; word vectors mean something only relative to it.
    pub(super) word_mean: Vec<f32>,
    /// Added to every token: the vector of "first sentence".
    pub(super) kind: Vec<f32>,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
}

impl Weights {
    /// Finds its way through the asset. Nothing when it is not what `export.py` wrote.
    pub(super) fn load() -> Option<Self> {
        let mut reader = Reader(ASSET);
        if reader.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let mut sizes = [0_usize; 8];
        for size in &mut sizes {
            *size = usize::try_from(u32::from_le_bytes(reader.take(4)?.try_into().ok()?)).ok()?;
        }
        let [words, positions, hidden, layers, heads, inner, vocabulary_bytes, _] = sizes;
        if heads == 0 || hidden == 0 || inner == 0 || hidden % heads != 0 {
            return None;
        }
        let weights = Self {
            vocabulary: std::str::from_utf8(reader.take(vocabulary_bytes)?).ok()?,
            hidden,
            heads,
            words: reader.matrix(words, hidden)?,
            positions: reader.matrix(positions, hidden)?,
            word_mean: reader.floats(hidden)?,
            kind: reader.floats(hidden)?,
            norm: reader.norm(hidden)?,
            layers: (0..layers).map(|_| reader.layer(hidden, inner)).collect::<Option<_>>()?,
        };
        reader.0.is_empty().then_some(weights)
    }
}

struct Reader(&'static [u8]);

impl Reader {
    fn take(&mut self, length: usize) -> Option<&'static [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn floats(&mut self, count: usize) -> Option<Vec<f32>> {
        let (chunks, _) = self.take(count.checked_mul(4)?)?.as_chunks::<4>();
        Some(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    fn matrix(&mut self, rows: usize, width: usize) -> Option<Matrix> {
        let scales = self.floats(rows)?;
        Some(Matrix { rows: self.take(rows.checked_mul(width)?)?, scales, width })
    }

    fn linear(&mut self, rows: usize, width: usize) -> Option<Linear> {
        Some(Linear { matrix: self.matrix(rows, width)?, bias: self.floats(rows)? })
    }

    fn norm(&mut self, width: usize) -> Option<Norm> {
        Some(Norm { weight: self.floats(width)?, bias: self.floats(width)? })
    }

    fn layer(&mut self, hidden: usize, inner: usize) -> Option<Layer> {
        Some(Layer {
            query: self.linear(hidden, hidden)?,
            key: self.linear(hidden, hidden)?,
            value: self.linear(hidden, hidden)?,
            output: self.linear(hidden, hidden)?,
            attention_norm: self.norm(hidden)?,
            inner: self.linear(inner, hidden)?,
            outer: self.linear(hidden, inner)?,
            output_norm: self.norm(hidden)?,
        })
    }
}
