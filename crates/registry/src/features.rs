//! The evidence for and against "this tool does it", none of which depends on how many tools there are.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::direction::Conversion;
use crate::document::Document;
use crate::lexicon::{Contradiction, Lexicon, Mentions};
use crate::numbers::Numbers;
use crate::spelling::Repair;
use crate::words;

/// Beyond this a lead says nothing more: it is then only the emptiness of the registry around the tool.
const MAX_LEAD: f32 = 0.1;
/// Two contradictions are as final as three.
const MAX_CONTRADICTIONS: f32 = 2.0;
/// The cosine from which on a meaning is near and not only related.
pub(crate) const NEAR_MEANING: f32 = 0.5;
/// Cover from which on a word counts as said by the tool: the same word, or a synonym. On the calibration set near
/// misses reach 0.62, but for a reversed direction. A dozen right tools lie below too: the price of the claim.
const COVERED_HEAD: f32 = 0.65;
/// A stem that begins another word covers it when it is at least this long.
const PREFIX_CHARACTERS: usize = 4;
/// A head of nothing but empty words is neither covered nor uncovered.
const COVER_OF_NOTHING: f32 = 0.5;

/// What the calibrated score is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Cosine of the meanings, or the share of common words where there is no meaning.
    pub similarity: f32,
    /// Similarity above the best other tool; negative for all but the best.
    pub lead: f32,
    /// Terms and numbers that exclude each other, a reversed direction (counts twice), a verb the tool does not know.
    pub contradictions: f32,
    /// How well the tool covers the word it covers worst, of those that say what is wanted.
    pub weakest: f32,
}

impl Features {
    /// The numbers that a score weighs, in the order of the coefficients.
    #[must_use]
    pub fn values(&self) -> [f64; 4] {
        [self.similarity, self.lead, self.contradictions, self.weakest].map(f64::from)
    }

    /// Whether there is enough to claim that the tool does it. A near miss lacks the one word that matters, and a tool
    /// whose meaning is only related shares words by chance; no sum of other evidence makes up for either.
    #[must_use]
    pub fn carries_reuse(&self) -> bool {
        self.similarity >= NEAR_MEANING && self.covers_head()
    }

    /// Whether every word that says what is wanted is in the tool, or one that means the same.
    pub(crate) fn covers_head(&self) -> bool {
        self.weakest >= COVERED_HEAD
    }
}

/// A question, taken apart once.
pub(crate) struct QueryFeatures {
    /// The text that is embedded.
    pub(crate) text: String,
    pub(crate) words: Vec<String>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) trigrams: BTreeSet<[char; 3]>,
    /// All words joined by blanks.
    joined: String,
    mentions: Mentions,
    numbers: Numbers,
    conversions: Vec<Conversion>,
}

impl QueryFeatures {
    pub(crate) fn new(text: String, words: Vec<String>, repairs: Vec<Repair>) -> Self {
        let mentions = Lexicon::get().mentions(&words);
        let numbers = Numbers::of(&words);
        let conversions = Conversion::all(&words);
        let trigrams = words::trigrams(&words);
        let joined = words.join(" ");
        Self { text, words, repairs, trigrams, joined, mentions, numbers, conversions }
    }

    /// Whether the question is a tool's name and nothing else.
    pub(crate) fn names(&self, name: &str) -> bool {
        !name.is_empty() && self.joined == name
    }
}

/// What speaks for and against one tool.
pub(crate) struct Evidence {
    pub(crate) features: Features,
    pub(crate) dice: f32,
    pub(crate) same_name: bool,
    pub(crate) reversed: bool,
    pub(crate) contradictions: Vec<Contradiction>,
    pub(crate) missing_verb: Option<String>,
    pub(crate) shared: Vec<String>,
    pub(crate) uncovered: Option<String>,
}

impl Evidence {
    pub(crate) fn new(
        question: &QueryFeatures,
        document: &Document,
        similarity: f32,
        space: &mut WordSpace,
    ) -> Self {
        let lexicon = Lexicon::get();
        let (told, aside) = (&document.told, &document.aside);
        let mut contradictions =
            question.mentions.contradictions(&lexicon.mentions(told), &lexicon.mentions(aside));
        let numbers = Numbers::of(&document.title).also(Numbers::of(&document.said));
        contradictions.extend(question.numbers.contradiction(&numbers));
        // A name and a description are two sentences: read as one, "csv to json" runs on into what follows.
        let conversions: Vec<Conversion> =
            [&document.title, &document.said].into_iter().flat_map(|words| Conversion::all(words)).collect();
        let reversed = question
            .conversions
            .iter()
            .any(|asked| conversions.iter().any(|offered| asked.reverses(offered)));
        let all = [told.as_slice(), aside.as_slice()].concat();
        let missing_verb = lexicon.missing_verb(&question.words, &all).map(str::to_owned);
        let (weakest, uncovered) = weakest(question, &all, space);
        let weight = |counted: bool, weight: f32| if counted { weight } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let against =
            contradictions.len() as f32 + weight(reversed, 2.0) + weight(missing_verb.is_some(), 1.0);
        Self {
            features: Features {
                similarity,
                lead: 0.0,
                contradictions: against.min(MAX_CONTRADICTIONS),
                weakest,
            },
            dice: words::dice(&question.trigrams, &words::trigrams(told)),
            same_name: question.names(&document.name),
            reversed,
            contradictions,
            missing_verb,
            shared: shared(question, told),
            uncovered,
        }
    }

    pub(crate) fn set_lead(&mut self, lead: f32) {
        self.features.lead = lead.clamp(-MAX_LEAD, MAX_LEAD);
    }
}

/// Words of the question that the tool uses too, as the question writes them.
fn shared(question: &QueryFeatures, told: &[String]) -> Vec<String> {
    let stems: BTreeSet<String> = told.iter().map(|word| words::stem(word)).collect();
    let mut shared: Vec<String> = Vec::new();
    for word in question.words.iter().filter(|word| words::has_content(word)) {
        if stems.contains(&words::stem(word)) && !shared.contains(word) {
            shared.push(word.clone());
        }
    }
    shared
}

/// The cover of the worst covered word of the head, and that word.
fn weakest(question: &QueryFeatures, tool: &[String], space: &mut WordSpace) -> (f32, Option<String>) {
    let stems: BTreeSet<String> = tool.iter().map(|word| words::stem(word)).collect();
    let lexicon = Lexicon::get();
    let covers = words::head(&question.words).into_iter().map(|word| {
        let stem = words::stem(word);
        let covers = |other: &String| {
            stem == *other || begins(&stem, other) || begins(other, &stem) || lexicon.same(&stem, other)
        };
        let same = stems.iter().any(covers);
        (if same { 1.0 } else { space.nearest(word, tool) }, word)
    });
    let worst = covers.min_by(|left, right| left.0.total_cmp(&right.0));
    worst.map_or((COVER_OF_NOTHING, None), |(cover, word)| (cover, Some(word.to_owned())))
}

fn begins(start: &str, word: &str) -> bool {
    start.chars().count() >= PREFIX_CHARACTERS && word.starts_with(start)
}

/// Vectors of single words, each looked up once for a question.
#[derive(Default)]
pub(crate) struct WordSpace {
    #[cfg_attr(
        not(feature = "embedded-model"),
        expect(dead_code, reason = "words have vectors only with the model")
    )]
    vectors: HashMap<String, Vec<f32>>,
}

impl WordSpace {
    /// Similarity of `word` with the nearest of `others`; 0 where the build has no vectors.
    #[cfg(feature = "embedded-model")]
    fn nearest(&mut self, word: &str, others: &[String]) -> f32 {
        let Some(model) = crate::model::Model::get() else { return 0.0 };
        let vector = self.vectors.entry(word.to_owned()).or_insert_with(|| model.word(word)).clone();
        let mut nearest = 0.0_f32;
        for other in others.iter().filter(|other| words::has_content(other)) {
            let other = self.vectors.entry(other.clone()).or_insert_with(|| model.word(other));
            nearest = nearest.max(vector.iter().zip(other.iter()).map(|(left, right)| left * right).sum());
        }
        nearest.min(1.0)
    }

    #[cfg(not(feature = "embedded-model"))]
    fn nearest(&mut self, _word: &str, _others: &[String]) -> f32 {
        0.0
    }
}
