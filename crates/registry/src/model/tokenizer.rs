//! Text to token ids as the model learned them: BERT's uncased basic tokenizer, then WordPiece.

use std::collections::HashMap;

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_normalization::UnicodeNormalization as _;

/// The export keeps this many positions. A tool's text and a question are far shorter; what is beyond says little.
pub(super) const MAX_TOKENS: usize = 128;
/// Characters beyond this are not read: even at one character a token the rest could not count.
const MAX_CHARACTERS: usize = 4096;
/// As in the original: a longer word is unknown.
const MAX_WORD_CHARACTERS: usize = 100;

pub(super) struct Tokenizer {
    beginnings: HashMap<&'static str, usize>,
    continuations: HashMap<&'static str, usize>,
    first: usize,
    last: usize,
    unknown: usize,
}

impl Tokenizer {
    /// Reads the vocabulary, one piece a line. Nothing when a special token is missing.
    pub(super) fn new(vocabulary: &'static str) -> Option<Self> {
        let mut beginnings = HashMap::new();
        let mut continuations = HashMap::new();
        for (id, piece) in vocabulary.lines().enumerate() {
            match piece.strip_prefix("##").filter(|rest| !rest.is_empty()) {
                Some(rest) => continuations.insert(rest, id),
                None => beginnings.insert(piece, id),
            };
        }
        let special = |name| beginnings.get(name).copied();
        let (first, last, unknown) = (special("[CLS]")?, special("[SEP]")?, special("[UNK]")?);
        Some(Self { beginnings, continuations, first, last, unknown })
    }

    /// The ids of `text` between the two marks, at most [`MAX_TOKENS`].
    pub(super) fn encode(&self, text: &str) -> Vec<usize> {
        let mut ids = vec![self.first];
        for word in split(text) {
            self.pieces(&word, &mut ids);
            if ids.len() >= MAX_TOKENS {
                break;
            }
        }
        ids.truncate(MAX_TOKENS - 1);
        ids.push(self.last);
        ids
    }

    /// The ids of one word, without marks.
    pub(super) fn encode_word(&self, word: &str) -> Vec<usize> {
        let mut ids = Vec::new();
        split(word).iter().for_each(|part| self.pieces(part, &mut ids));
        ids.retain(|id| *id != self.unknown);
        ids.truncate(MAX_TOKENS);
        ids
    }

    /// Whether the model knows `word` as a whole: a common word of its language.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.beginnings.contains_key(word)
    }

    /// Greedy, longest piece first; one unknown piece makes the whole word unknown.
    fn pieces(&self, word: &str, ids: &mut Vec<usize>) {
        if word.chars().count() > MAX_WORD_CHARACTERS {
            ids.push(self.unknown);
            return;
        }
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let table = if rest.len() == word.len() { &self.beginnings } else { &self.continuations };
            let ends = rest.char_indices().rev().map(|(at, character)| at + character.len_utf8());
            let found = ends
                .filter_map(|end| rest.split_at_checked(end))
                .find_map(|(piece, after)| table.get(piece).map(|id| (*id, after)));
            let Some((id, after)) = found else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            rest = after;
        }
    }
}

/// Cleans, lower-cases, strips accents, and cuts at white space, around punctuation and around ideographs.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let cleaned = text.chars().take(MAX_CHARACTERS).filter(|character| !is_dropped(*character));
    let plain =
        cleaned.nfd().filter(|character| get_general_category(*character) != Category::NonspacingMark);
    for character in plain.flat_map(char::to_lowercase) {
        let alone = is_punctuation(character) || is_ideograph(character);
        if (alone || character.is_whitespace()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if alone {
            words.push(character.to_string());
        } else if !character.is_whitespace() {
            word.push(character);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn is_dropped(character: char) -> bool {
    let control = matches!(
        get_general_category(character),
        Category::Control | Category::Format | Category::PrivateUse | Category::Unassigned
    );
    character == '\u{fffd}' || (control && !matches!(character, '\t' | '\n' | '\r'))
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || matches!(
            get_general_category(character),
            Category::ConnectorPunctuation
                | Category::DashPunctuation
                | Category::OpenPunctuation
                | Category::ClosePunctuation
                | Category::InitialPunctuation
                | Category::FinalPunctuation
                | Category::OtherPunctuation
        )
}

/// The ranges that the original spaces out.
fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
