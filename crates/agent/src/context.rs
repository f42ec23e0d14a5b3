//! How much of the conversation the model can read at once, and what is shortened when it is too much.
//!
//! First the oldest results are shortened, then the oldest arguments, then the oldest exchanges become a line a call.
//! Only when that is not enough are the last turns shortened: their arguments but for those that are being answered,
//! and at last their results. The task, what the user said and the system prompt stay as they are.

use tgp_contract::Usage;

use crate::conversation::{Conversation, Part};
use crate::render::MAX_ANSWER_BYTES;

/// Text and code take about four bytes a token; what a provider reports corrects it.
const BYTES_A_TOKEN: u64 = 4;
/// Turns that are shortened last: what the model is working on right now.
const KEPT_TURNS: usize = 4;
/// Calls that are being answered go back as the model made them: providers compare a turn with its signed thoughts.
const ANSWERED_TURNS: usize = 1;
/// Above this share of the context something is shortened; the rest is for the answer and for errors of the
/// estimate.
const FULL_PERCENT: u64 = 75;
/// And it is shortened to this share, so that not every turn rewrites what a provider has cached.
const ROOMY_PERCENT: u64 = 60;
/// All results of one turn together take at most this part of the context, so that the last turns always fit.
const TURN_SHARE: u64 = 10;
/// One result takes at most this part.
const RESULT_SHARE: u64 = 16;
/// The lines about earlier steps take at most this part.
const PAST_SHARE: u64 = 16;
/// However small the context is, so much of a result can be read.
const MIN_RESULT_BYTES: u64 = 400;
/// The estimate is corrected within these bounds, in thousandths: beyond them a provider counts something else.
const SCALE: std::ops::RangeInclusive<u64> = 500..=3000;

/// The room there is, and how well it is known.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    tokens: u64,
    /// What is left for an answer, where that was bounded.
    max_output_tokens: u64,
    /// The system prompt and the tools, which every request has.
    fixed_bytes: u64,
    /// Tokens a provider counts for a thousand estimated ones.
    scale: u64,
    /// The estimate for the last request, before it was scaled.
    asked: u64,
}

/// What had to be shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextFit {
    pub(crate) shortened: u64,
    pub(crate) summarised: u64,
    /// Whether the rest can be read at once.
    pub(crate) fits: bool,
    pub(crate) tokens: u64,
    pub(crate) limit: u64,
}

impl Context {
    pub(crate) fn new(tokens: u64, max_output_tokens: Option<u64>, fixed_bytes: usize) -> Self {
        Self {
            tokens,
            max_output_tokens: max_output_tokens.unwrap_or(0),
            fixed_bytes: fixed_bytes as u64,
            scale: 1000,
            asked: 0,
        }
    }

    /// Bytes that the model reads of one result in a turn with so many calls.
    pub(crate) fn result_bytes(&self, calls: usize) -> usize {
        let bytes = self.tokens.saturating_mul(BYTES_A_TOKEN).saturating_mul(1000) / self.scale;
        let shared = bytes / TURN_SHARE / (calls.max(1) as u64);
        let most = shared.min(bytes / RESULT_SHARE).max(MIN_RESULT_BYTES);
        usize::try_from(most).unwrap_or(usize::MAX).min(MAX_ANSWER_BYTES)
    }

    /// Another room, after the user has corrected it. How well a provider counts is still known.
    pub(crate) fn resize(&mut self, tokens: u64, max_output_tokens: Option<u64>) {
        (self.tokens, self.max_output_tokens) = (tokens, max_output_tokens.unwrap_or(0));
    }

    /// Bytes of the lines about earlier steps.
    pub(crate) fn past_bytes(tokens: u64) -> usize {
        usize::try_from(tokens.saturating_mul(BYTES_A_TOKEN) / PAST_SHARE).unwrap_or(usize::MAX)
    }

    /// Makes the conversation fit. Doing it twice changes nothing more.
    pub(crate) fn fit(&mut self, conversation: &mut Conversation) -> ContextFit {
        let limit = (self.tokens / 100 * FULL_PERCENT)
            .min(self.tokens.saturating_sub(self.max_output_tokens))
            .max(self.tokens / 4);
        let roomy = limit / FULL_PERCENT * ROOMY_PERCENT;
        let (mut shortened, mut summarised) = (0, 0);
        if self.estimate(conversation) > limit {
            for part in [Part::Results, Part::Arguments] {
                shortened += self.shorten(conversation, part, KEPT_TURNS, roomy);
            }
            while self.estimate(conversation) > roomy && conversation.summarise_oldest(KEPT_TURNS) {
                summarised += 1;
            }
            // The last resort takes no more than it must.
            shortened += self.shorten(conversation, Part::Arguments, ANSWERED_TURNS, limit);
            shortened += self.shorten(conversation, Part::Results, 0, limit);
        }
        self.asked = self.raw(conversation);
        let tokens = self.scaled(self.asked);
        ContextFit { shortened, summarised, fits: tokens <= limit, tokens, limit }
    }

    /// Shortens a part of the oldest exchanges until no more than `most` is left; answers how much that was.
    fn shorten(&self, conversation: &mut Conversation, part: Part, kept: usize, most: u64) -> u64 {
        let mut shortened = 0;
        while self.estimate(conversation) > most {
            let Some(count) = conversation.shorten_oldest(part, kept) else { break };
            shortened += count;
        }
        shortened
    }

    /// What a turn has cost, where the provider does not say: the request as it was estimated, and what was
    /// received.
    pub(crate) fn estimated_usage(&self, heard_bytes: usize) -> Usage {
        Usage {
            input_tokens: self.scaled(self.asked),
            output_tokens: (heard_bytes as u64).div_ceil(BYTES_A_TOKEN),
            ..Usage::default()
        }
    }

    /// Learns from what a provider has counted for the last request.
    pub(crate) fn learn(&mut self, input_tokens: u64) {
        if input_tokens > 0 && self.asked > 0 {
            let scale = input_tokens.saturating_mul(1000) / self.asked;
            self.scale = scale.clamp(*SCALE.start(), *SCALE.end());
        }
    }

    fn raw(&self, conversation: &Conversation) -> u64 {
        (self.fixed_bytes + conversation.bytes() as u64).div_ceil(BYTES_A_TOKEN)
    }

    fn scaled(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.scale) / 1000
    }

    fn estimate(&self, conversation: &Conversation) -> u64 {
        self.scaled(self.raw(conversation))
    }
}
