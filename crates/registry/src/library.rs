//! The tools as the search holds them: vectors in one block, stems as numbers, and how often each word is used.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tgp_contract::{RelativePath, ToolMetadata};

use crate::document::Document;
use crate::features::QueryFeatures;
use crate::vectors::{PackedVector, QueryVector};
use crate::words;

/// Share of the similarity by words that comes from whole words; the rest is trigrams, which forgive an ending.
const WHOLE_WORDS: f32 = 0.7;
/// Tools whose trigrams are compared: the best by whole words.
const MAX_COMPARED: usize = 64;

pub(crate) struct Entry {
    pub(crate) tool: Arc<ToolMetadata>,
    /// The name as words.
    pub(crate) name: String,
    /// Key of the vector of the document's text.
    pub(crate) key: String,
    /// Numbers of the stems it uses, sorted.
    stems: Box<[u32]>,
    scale: Option<f32>,
}

impl Entry {
    pub(crate) fn has_vector(&self) -> bool {
        self.scale.is_some()
    }
}

/// A stem's number, and in how many tools it occurs.
struct Stem {
    number: u32,
    uses: usize,
}

#[derive(Default)]
pub(crate) struct Library {
    entries: Vec<Entry>,
    places: HashMap<RelativePath, usize>,
    /// One row for each entry, `dimensions` long; meaningless where the entry has no scale.
    block: Vec<u8>,
    dimensions: usize,
    /// In how many tools each word occurs.
    words: HashMap<String, usize>,
    stems: HashMap<String, Stem>,
    /// The number of the next new stem. Numbers are not given twice: an entry may still hold an old one.
    next_stem: u32,
}

impl Library {
    /// Adds a tool, in the place of the one that has its path.
    pub(crate) fn insert(&mut self, tool: Arc<ToolMetadata>, document: &Document, key: String) {
        self.remove(&tool.path);
        let (vocabulary, unique) = vocabulary(document);
        for word in vocabulary {
            *self.words.entry(word).or_default() += 1;
        }
        let mut numbers: Vec<u32> = unique.into_iter().map(|stem| self.number(stem)).collect();
        numbers.sort_unstable();
        self.places.insert(tool.path.clone(), self.entries.len());
        self.entries.push(Entry {
            tool,
            name: document.name.clone(),
            key,
            stems: numbers.into(),
            scale: None,
        });
        self.block.resize(self.entries.len() * self.dimensions, 0);
    }

    /// Takes a tool out; the last one moves to its place. Says whether it was there.
    pub(crate) fn remove(&mut self, path: &RelativePath) -> bool {
        let Some(place) = self.places.remove(path).filter(|place| *place < self.entries.len()) else {
            return false;
        };
        let gone = self.entries.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(moved.tool.path.clone(), place);
        }
        let last = self.entries.len() * self.dimensions;
        if place < self.entries.len() {
            self.block.copy_within(last..last + self.dimensions, place * self.dimensions);
        }
        self.block.truncate(last);
        let (vocabulary, unique) = vocabulary(&Document::new(&gone.tool));
        for word in vocabulary {
            if let Some(uses) = self.words.get_mut(&word) {
                *uses -= 1;
                if *uses == 0 {
                    self.words.remove(&word);
                }
            }
        }
        for stem in unique {
            if let Some(known) = self.stems.get_mut(&stem) {
                known.uses -= 1;
                if known.uses == 0 {
                    self.stems.remove(&stem);
                }
            }
        }
        true
    }

    fn number(&mut self, stem: String) -> u32 {
        let entry = self.stems.entry(stem).or_insert_with(|| {
            let number = self.next_stem;
            self.next_stem = number.saturating_add(1);
            Stem { number, uses: 0 }
        });
        entry.uses += 1;
        entry.number
    }

    /// Gives every entry with one of these keys its vector. All have one length; a vector of another is not taken.
    pub(crate) fn set_vectors(&mut self, vectors: &HashMap<String, PackedVector>) {
        let length = vectors.values().next().map_or(0, |vector| vector.values.len());
        if length == 0 {
            return;
        }
        if self.dimensions == 0 {
            self.dimensions = length;
            self.block.resize(self.entries.len() * length, 0);
        }
        for (entry, row) in self.entries.iter_mut().zip(self.block.chunks_exact_mut(self.dimensions)) {
            if let Some(vector) = vectors.get(&entry.key).filter(|vector| vector.values.len() == row.len()) {
                row.copy_from_slice(&vector.values);
                entry.scale = Some(vector.scale);
            }
        }
    }

    /// A library of the entries that `keep` takes, as if it had never held another: how rare a word is, which words are
    /// known and which name is unique follow from these alone.
    pub(crate) fn only(&self, keep: impl Fn(&Entry) -> bool) -> Self {
        let mut library = Self { dimensions: self.dimensions, ..Self::default() };
        for (place, entry) in self.entries.iter().enumerate().filter(|(_, entry)| keep(entry)) {
            library.insert(Arc::clone(&entry.tool), &Document::new(&entry.tool), entry.key.clone());
            let start = place * self.dimensions;
            let row = self.block.get(start..start + self.dimensions);
            let end = library.block.len();
            let copy = library.block.get_mut(end.saturating_sub(self.dimensions)..end);
            if let (Some(row), Some(copy), Some(kept)) = (row, copy, library.entries.last_mut())
                && row.len() == copy.len()
            {
                copy.copy_from_slice(row);
                kept.scale = entry.scale;
            }
        }
        library
    }

    /// How many there would be with `tools`.
    pub(crate) fn len_with(&self, tools: &[Arc<ToolMetadata>]) -> usize {
        let new: HashSet<&RelativePath> =
            tools.iter().map(|tool| &tool.path).filter(|path| !self.places.contains_key(*path)).collect();
        self.entries.len() + new.len()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn words(&self) -> &HashMap<String, usize> {
        &self.words
    }

    /// Tools that have no vector yet.
    pub(crate) fn pending(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.has_vector()).count()
    }

    /// The cosine of every tool that has a vector, with the tool's place.
    pub(crate) fn cosines(&self, probe: &QueryVector) -> Vec<(usize, f32)> {
        if self.dimensions == 0 || probe.dimensions() != self.dimensions {
            return Vec::new();
        }
        let rows = self.entries.iter().zip(self.block.chunks_exact(self.dimensions)).enumerate();
        rows.filter_map(|(place, (entry, row))| Some((place, probe.cosine(row, entry.scale?)))).collect()
    }

    /// The similarity by words of the tools that `wanted` takes: rare words count more than common ones.
    pub(crate) fn overlaps(
        &self,
        question: &QueryFeatures,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Vec<(usize, f32)> {
        // In a fixed order, so that a sum has the same last digit every time.
        let asked: BTreeSet<String> = question
            .words
            .iter()
            .filter(|word| words::has_content(word))
            .map(|word| words::stem(word))
            .collect();
        let total: f32 = asked.iter().map(|stem| self.rarity(stem)).sum();
        let known: Vec<(u32, f32)> =
            asked.iter().filter_map(|stem| Some((self.stems.get(stem)?.number, self.rarity(stem)))).collect();
        let share = |entry: &Entry| {
            let shared = known.iter().filter(|(number, _)| entry.stems.binary_search(number).is_ok());
            shared.map(|(_, weight)| weight).sum::<f32>() / total.max(f32::EPSILON)
        };
        let entries = self.entries.iter().enumerate().filter(|(_, entry)| wanted(entry));
        let mut shares: Vec<(usize, f32)> =
            entries.map(|(place, entry)| (place, share(entry))).filter(|(_, share)| *share > 0.0).collect();
        shares.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        shares.truncate(MAX_COMPARED);
        shares.iter_mut().for_each(|(place, share)| *share = self.with_trigrams(*place, *share, question));
        shares
    }

    fn with_trigrams(&self, place: usize, share: f32, question: &QueryFeatures) -> f32 {
        let told = self.entries.get(place).map(|entry| Document::new(&entry.tool).told).unwrap_or_default();
        WHOLE_WORDS * share + (1.0 - WHOLE_WORDS) * words::dice(&question.trigrams, &words::trigrams(&told))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of tools")]
    fn rarity(&self, stem: &str) -> f32 {
        let uses = self.stems.get(stem).map_or(0, |stem| stem.uses) as f32;
        (1.0 + self.entries.len() as f32 / (1.0 + uses)).ln()
    }
}

/// The words of a tool that carry meaning, and their stems, each once.
fn vocabulary(document: &Document) -> (HashSet<String>, HashSet<String>) {
    let all = document.told.iter().chain(&document.aside);
    let words: HashSet<String> = all.filter(|word| words::has_content(word)).cloned().collect();
    let stems = words.iter().map(|word| words::stem(word)).collect();
    (words, stems)
}
