//! What the links of one change have looked up. Many files ask for the same names of the same files: the next one takes the
//! answer over, with the keys that it stands on.

use std::collections::HashMap;
use std::rc::Rc;

use super::lookup::Found;

/// Answers that are kept; beyond them all are forgotten.
const MAX_ANSWERS: usize = 200_000;
/// Keys that all answers have together.
const MAX_KEYS: usize = 4_000_000;
/// Paths whose existence is known.
const MAX_PATHS: usize = 500_000;

/// What was found, and the keys of what was read for it.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) found: Option<Found>,
    pub(super) keys: Rc<[i64]>,
}

/// A name that was asked for: of which file, and whether from inside of it.
pub(super) type Question = (String, String, bool);

#[derive(Default)]
pub(crate) struct Memo {
    answers: HashMap<Question, Answer>,
    keys: usize,
    /// The key of a path's existence, and whether it is there.
    paths: HashMap<String, (i64, bool)>,
}

impl Memo {
    pub(super) fn answer(&self, question: &Question) -> Option<Answer> {
        self.answers.get(question).cloned()
    }

    pub(super) fn keep(&mut self, question: Question, answer: Answer) {
        if self.answers.len() >= MAX_ANSWERS || self.keys >= MAX_KEYS {
            self.answers.clear();
            self.keys = 0;
        }
        self.keys += answer.keys.len();
        self.answers.insert(question, answer);
    }

    /// The key of a path's existence, and whether it is there; `look` finds it out.
    pub(super) fn path(&mut self, path: &str, look: impl FnOnce() -> (i64, bool)) -> (i64, bool) {
        if let Some(known) = self.paths.get(path) {
            return *known;
        }
        if self.paths.len() >= MAX_PATHS {
            self.paths.clear();
        }
        let known = look();
        self.paths.insert(path.to_owned(), known);
        known
    }
}
