//! What a server has said about one model, so that it is not asked in vain with every turn.

use std::sync::{Mutex, PoisonError};

use crate::failure::{Failure, ProviderMessage};
use crate::options::Wire;
use crate::wire::Dialect;

/// What is asked for when a server refuses our limit and names none: every model of the last years can write as much.
const MODEST_LIMIT: u64 = 8192;
/// Smaller numbers in a message are parts of names and versions; no model's limit is that low.
const LOWEST_LIMIT: u64 = 256;

/// The lessons of the last model that was asked: a session has one.
#[derive(Debug, Default)]
pub(crate) struct LearnedQuirks(Mutex<(String, Dialect)>);

impl LearnedQuirks {
    pub(crate) fn of(&self, model: &str) -> Dialect {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 == model { known.1 } else { Dialect::default() }
    }

    /// True when the failure says how the same turn can be asked for with success, and that is news.
    pub(crate) fn learn(&self, wire: Wire, model: &str, failure: &Failure) -> bool {
        // Servers that check requests against a schema answer with 422.
        let Failure::Refused { status: 400 | 422, said, .. } = failure else { return false };
        let known = self.of(model);
        let better = match wire {
            Wire::OpenAiResponses if said.parameter.as_deref() == Some("include") => {
                Dialect { has_encrypted_thoughts: false, ..known }
            }
            Wire::Anthropic => Dialect { default_limit: lower_limit(said, known.default_limit), ..known },
            Wire::OpenAiChat if mentions_stream_options(said) => {
                Dialect { has_stream_options: false, ..known }
            }
            Wire::OpenAiResponses | Wire::OpenAiChat => known,
        };
        if better == known {
            return false;
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (model.to_owned(), better);
        true
    }
}

/// Some servers name the field, some what is in it.
fn mentions_stream_options(said: &ProviderMessage) -> bool {
    const NAMES: [&str; 2] = ["stream_options", "include_usage"];
    let parameter = said.parameter.as_deref().unwrap_or_default();
    NAMES.iter().any(|name| parameter.contains(name) || said.message.contains(name))
}

/// The limit that a refusal of `asked` names, such as 8192 in "max_tokens: 32000 > 8192, which is the maximum allowed".
fn lower_limit(said: &ProviderMessage, asked: u64) -> u64 {
    let message = said.message.to_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_too_large = mentions(&["max_tokens", "maximum tokens"])
        && mentions(&[" > ", "maximum", "exceed", "at most", "less than", "too large"]);
    if !is_too_large {
        return asked;
    }
    let numbers = message.split(|character: char| !character.is_ascii_digit());
    let named = numbers.filter_map(|number| number.parse::<u64>().ok());
    let named = named.filter(|number| (LOWEST_LIMIT..asked).contains(number)).max();
    named.unwrap_or(MODEST_LIMIT).min(asked)
}
