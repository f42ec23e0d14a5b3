//! When the next attempt is made.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::limits::{LONGEST_RETRY_AFTER, LONGEST_WISH};
use crate::options::{Jitter, Retries};

/// Why a pause is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseCause {
    /// The server asks for it.
    RetryAfter(Duration),
    /// The server allows no more requests for now, and does not say for how long.
    RateLimit,
    Other,
}

impl Retries {
    /// The pause after attempt number `attempt` (from 1), or `None` when the server asks for more than can be waited.
    pub(crate) fn pause(&self, attempt: u32, cause: PauseCause) -> Option<Duration> {
        let retry_after = if let PauseCause::RetryAfter(asked) = cause { Some(asked) } else { None };
        if retry_after.is_some_and(|asked| asked > LONGEST_RETRY_AFTER) {
            return None;
        }
        let factor = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        if cause == PauseCause::RateLimit {
            let least = self.rate_limit_delay.saturating_mul(factor).min(LONGEST_RETRY_AFTER);
            // Less than the whole pause would not outlast the limit, so the jitter comes on top of it here, too.
            return Some(least + (least / 10).mul_f64(self.jitter.fraction()));
        }
        let whole = self.first_delay.saturating_mul(factor).min(self.longest_delay);
        let own = whole.mul_f64(self.jitter.fraction());
        // The server's delay is a lower bound; the jitter comes on top of it, so that not all clients return at
        // once.
        Some(retry_after.map_or(own, |asked| asked + own.min(self.first_delay)))
    }
}

impl Jitter {
    fn fraction(self) -> f64 {
        match self {
            Jitter::Fixed(fraction) if fraction.is_finite() => fraction.clamp(0.0, 1.0),
            Jitter::Fixed(_) => 1.0,
            // Without randomness the whole pause is the safe one.
            Jitter::Random => getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX)),
        }
    }
}

/// The delay that the server asks for.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: &HeaderValue| value.to_str().ok().map(|text| text.trim().to_owned());
    if let Some(milliseconds) = headers.get("retry-after-ms").and_then(text).as_deref().and_then(number) {
        return Some((milliseconds / 1000).min(LONGEST_WISH));
    }
    let wish = headers.get(RETRY_AFTER).and_then(text)?;
    if let Some(seconds) = number(&wish) {
        return Some(seconds.min(LONGEST_WISH));
    }
    let until = OffsetDateTime::parse(&wish, &Rfc2822).ok()?;
    // The server's own clock is the one it means; ours may be wrong.
    let now = headers
        .get(DATE)
        .and_then(text)
        .and_then(|date| OffsetDateTime::parse(&date, &Rfc2822).ok())
        .unwrap_or_else(|| SystemTime::now().into());
    Some(Duration::try_from(until - now).unwrap_or_default().min(LONGEST_WISH))
}

/// A number that no duration can hold is a long one, and not none.
fn number(text: &str) -> Option<Duration> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
    Some(Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX))
}

/// A duration for a reader, as exact as it matters.
pub(crate) fn in_words(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = duration.as_secs();
    if duration >= LONGEST_WISH {
        return "more than a year".to_owned();
    }
    match seconds {
        0..10 => format!("{} s", (duration.as_secs_f64() * 10.0).round() / 10.0),
        10..MINUTE => format!("{seconds} s"),
        // Who comes back too early is refused again.
        MINUTE..HOUR => format!("{} min", seconds.div_ceil(MINUTE)),
        HOUR..DAY => format!("{} h", seconds.div_ceil(HOUR)),
        _ => format!("{} days", seconds.div_ceil(DAY)),
    }
}

/// Some servers say outright that another attempt makes no sense.
pub(crate) fn is_final(headers: &HeaderMap) -> bool {
    headers.get("x-should-retry").is_some_and(|value| value == "false")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::PauseCause;
    use crate::limits::{LONGEST_RETRY_AFTER, MAX_ATTEMPTS};
    use crate::options::{Jitter, Retries};

    #[test]
    fn the_usual_attempts_outlast_a_limit_per_minute() {
        let retries = Retries { jitter: Jitter::Fixed(0.0), ..Retries::default() };
        let pauses =
            |attempts: u32| (1..attempts).filter_map(|attempt| retries.pause(attempt, PauseCause::RateLimit));
        assert!(pauses(retries.attempts).sum::<Duration>() >= Duration::from_secs(60));
        let most = LONGEST_RETRY_AFTER + LONGEST_RETRY_AFTER / 10;
        assert!(pauses(MAX_ATTEMPTS).all(|pause| pause <= most));
    }
}
