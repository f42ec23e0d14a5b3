//! Makes inputs out of seeds: the same number gives the same inputs on every machine.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::{MAX_INPUT_BYTES, Target};

/// Changes that are made to one input, at most: with more, little of the seed is left.
const MOST_CHANGES: u32 = 6;
/// The longest piece that is repeated or cut out, before repetition.
const LONGEST_PIECE: usize = 64;
/// How often a piece is repeated, at most: enough to pass the small bounds of readers.
const MOST_REPEATS: usize = 40;
/// Bytes that begin, end or escape something in one of the formats.
const SPECIAL: &[u8] = b"\0\n\r\t \"'`\\/*-#$%&()[]{}<>.,:;?@=|+_~^!01\x7f\x80\xc3\xef\xff";

/// The inputs of a target.
#[derive(Debug)]
pub struct Inputs<'a> {
    random: SmallRng,
    target: &'a Target,
    seeds: &'a [(String, Vec<u8>)],
}

impl<'a> Inputs<'a> {
    #[must_use]
    pub fn new(target: &'a Target, seeds: &'a [(String, Vec<u8>)], seed: u64) -> Self {
        // Targets that run with the same number do not need the same random numbers, but each its own always.
        let own = target.name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self { random: SmallRng::seed_from_u64(own), target, seeds }
    }

    /// One more input. There is always one.
    pub fn make(&mut self) -> Vec<u8> {
        let kind = self.random.random_range(0..10_u32);
        let mut input = match (kind, self.target.generate) {
            (0..=3, Some(generate)) => generate(&mut self.random),
            (4, _) => soup(&mut self.random, self.target.dictionary),
            _ => self.seed(),
        };
        // Some generated inputs stay whole: they reach what a changed one does not.
        if kind > 1 {
            for _ in 0..self.random.random_range(0..=MOST_CHANGES) {
                self.change(&mut input);
            }
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn seed(&mut self) -> Vec<u8> {
        pick(&mut self.random, self.seeds).map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.random_range(0..=input.len());
        match self.random.random_range(0..9_u32) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.random_range(0..8_u32);
                }
            }
            1 => {
                let byte = self.byte();
                if let Some(place) = input.get_mut(at) {
                    *place = byte;
                }
            }
            2 => {
                let byte = self.byte();
                input.insert(at, byte);
            }
            3 => {
                let end = at + self.piece(input.len() - at);
                input.drain(at..end);
            }
            4 => {
                let end = at + self.piece(input.len() - at);
                let times = self.random.random_range(1..=MOST_REPEATS);
                let piece = input.get(at..end).unwrap_or_default().repeat(times);
                input.splice(at..at, piece);
            }
            5 => input.truncate(at),
            6 => {
                let other = self.seed();
                let from = self.random.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(other.get(from..).unwrap_or_default());
            }
            _ => {
                let word = pick(&mut self.random, self.target.dictionary).copied().unwrap_or_default();
                input.splice(at..at, word.bytes());
            }
        }
        input.truncate(MAX_INPUT_BYTES);
    }

    fn byte(&mut self) -> u8 {
        if self.random.random_bool(0.7) {
            pick(&mut self.random, SPECIAL).copied().unwrap_or_default()
        } else {
            self.random.random()
        }
    }

    fn piece(&mut self, rest: usize) -> usize {
        self.random.random_range(0..=rest.min(LONGEST_PIECE))
    }
}

/// One of them.
pub fn pick<'a, T>(random: &mut SmallRng, items: &'a [T]) -> Option<&'a T> {
    let last = items.len().checked_sub(1)?;
    items.get(random.random_range(0..=last))
}

/// Some words of a dictionary, with blanks between most of them.
pub fn soup(random: &mut SmallRng, dictionary: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..random.random_range(1..40_u32) {
        text.push_str(pick(random, dictionary).copied().unwrap_or_default());
        if random.random_bool(0.6) {
            text.push(' ');
        }
    }
    text.into_bytes()
}

/// A text of a grammar: `<name>` in a rule is replaced by one of the alternatives of that name. Below the depth the first one is
/// taken, which therefore must not contain itself.
pub fn sentence(random: &mut SmallRng, grammar: &[(&str, &[&str])], name: &str, depth: u32) -> String {
    let Some((_, alternatives)) = grammar.iter().find(|(known, _)| *known == name) else {
        return String::new();
    };
    let first = alternatives.first().copied().unwrap_or_default();
    let rule = if depth == 0 { first } else { pick(random, alternatives).copied().unwrap_or_default() };
    let mut pieces = rule.split('<');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('>').filter(|(name, _)| grammar.iter().any(|(known, _)| known == name)) {
            Some((name, after)) => {
                text.push_str(&sentence(random, grammar, name, depth.saturating_sub(1)));
                text.push_str(after);
            }
            None => {
                text.push('<');
                text.push_str(piece);
            }
        }
        // Rules double; an input ends at its largest size anyway.
        if text.len() > MAX_INPUT_BYTES {
            break;
        }
    }
    text
}
