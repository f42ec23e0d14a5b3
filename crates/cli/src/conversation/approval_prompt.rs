//! Asking: the question is shown, and asked until it is answered.

use super::layout::{MIN_COLUMNS, broken};
use super::{ApprovalView, Keyboard, Output, TextStyle};
use crate::text::{count, short_line, single_line};

/// Rows of the screen that are not the body: title, facts, choices and the prompt.
const ROWS_AROUND: usize = 14;
/// The same below a further page.
const ROWS_BELOW: usize = 5;
/// Rows of a page of the body: enough to judge a small change on the smallest terminal, and one glance on the largest.
const LEAST_ROWS: usize = 8;
const MOST_ROWS: usize = 40;
/// How often more can be shown or explained before the question counts as refused: a stuck key must not ask forever.
const MAX_ROUNDS: usize = 10_000;
/// Columns of a wrong answer that are said back.
const ECHO_COLUMNS: usize = 20;
/// Before what `always` would agree to.
const ALWAYS: &str = "  always    ";

const EXPLAINED: &str = "  \
  y   it happens once, exactly as shown; if it changes, you are asked again
  n   it does not happen, nothing is touched, and the caller learns of it;
      Enter and Ctrl-D mean the same. Add a message for the caller:
      n use the other file
";
const EXPLAINED_ALWAYS: &str = "  \
  a   it happens, and this session does not ask again for what `always` shows
";
const EXPLAINED_MORE: &str = "  \
  m   shows more: what was too long, arguments and sources in full
";

/// Columns of the words after a no: they are passed to the caller, which needs no long text.
const MAX_WORDS: usize = 1000;

/// Why something was refused at the terminal. Each of these implies that a user could be asked.
const SAID_NO: &str = "the answer at the terminal was no";
const INPUT_ENDED: &str = "the input at the terminal has ended";
const NOT_ANSWERED: &str = "the question was not answered";
pub const STOPPING: &str = "the session is being stopped";

/// Whether a refusal was given at the terminal.
pub fn is_answer(refusal: &str) -> bool {
    [SAID_NO, INPUT_ENDED, NOT_ANSWERED, STOPPING].iter().any(|reason| refusal.contains(reason))
}

/// Whether the question was left without an answer.
pub fn is_unanswered(refusal: &str) -> bool {
    refusal == INPUT_ENDED || refusal == NOT_ANSWERED
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    /// Yes, and to everything that the offered pattern covers.
    Always,
    No {
        reason: String,
    },
}

impl Answer {
    pub fn no(reason: &str) -> Self {
        Self::No { reason: reason.to_owned() }
    }
}

/// Whether `always` can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// With what it would agree to, and what should be known before.
    Always {
        pattern: String,
        caution: Option<&'static str>,
    },
    Once,
    /// One answer agrees to so many of the same call.
    Times(u32),
}

/// Shows the question and waits for its answer. Nothing that was typed before it was shown counts.
pub async fn interview(
    board: &impl Output,
    keyboard: &mut impl Keyboard,
    sheet: &ApprovalView,
    offer: &Offer,
) -> Answer {
    let manner = board.manner();
    let page = manner.rows.saturating_sub(ROWS_AROUND).clamp(LEAST_ROWS, MOST_ROWS);
    let next = manner.rows.saturating_sub(ROWS_BELOW).clamp(LEAST_ROWS, MOST_ROWS);
    let body = sheet.body_rows(manner);
    let mut rest: Vec<String> = body.iter().skip(page).cloned().collect();
    let left_of_body = rest.len();
    rest.extend(sheet.more_rows(manner));
    let mut rest = rest.into_iter();

    let mut text = format!("\n{}\n", sheet.title());
    body.iter().take(page).for_each(|row| push(&mut text, row));
    if left_of_body > 0 {
        let left = format!("  {} {}: m shows them", manner.charset.dots(), count(left_of_body, "more row"));
        push(&mut text, &left);
    }
    sheet.fact_rows(manner).iter().for_each(|row| push(&mut text, row));
    for _ in 0..MAX_ROUNDS {
        text.push_str(&choices(rest.len(), offer, manner));
        if let Err(error) = keyboard.forget() {
            board.write(&text);
            return Answer::No { reason: format!("the terminal could not be read: {error}") };
        }
        board.write(&text);
        let line = match keyboard.line().await {
            Ok(Some(line)) => line,
            Ok(None) => {
                board.write("\n");
                return Answer::no(INPUT_ENDED);
            }
            Err(error) => {
                board.write("\n");
                return Answer::No { reason: format!("the terminal could not be read: {error}") };
            }
        };
        text = String::from("\n");
        match (line.trim().to_ascii_lowercase().as_str(), offer) {
            ("y" | "yes", _) => return Answer::Yes,
            ("n" | "no" | "", _) => return Answer::no(SAID_NO),
            ("a" | "always", Offer::Always { .. }) => return Answer::Always,
            ("m" | "more", _) if rest.len() == 0 => text.push_str("  That was all of it.\n"),
            ("m" | "more", _) => rest.by_ref().take(next).for_each(|row| push(&mut text, &row)),
            ("?" | "h" | "help", _) => text.push_str(&explanation(offer)),
            (other, _) => {
                match words_after_no(&line) {
                    Some(words) if words.is_empty() => return Answer::no(SAID_NO),
                    Some(words) => return Answer::No { reason: format!("{SAID_NO}: {words}") },
                    None => {}
                }
                let other = short_line(other, ECHO_COLUMNS, manner.charset.dots());
                text.push_str(&format!("  `{other}` is none of the answers.\n"));
            }
        }
    }
    Answer::no(NOT_ANSWERED)
}

fn push(text: &mut String, row: &str) {
    text.push_str(row);
    text.push('\n');
}

/// What can be answered, and what `always` would mean.
fn choices(left: usize, offer: &Offer, manner: TextStyle) -> String {
    let mut words = vec!["y yes".to_owned(), "n no".to_owned()];
    if let Offer::Always { .. } = offer {
        words.push("a always".to_owned());
    }
    if left > 0 {
        words.push(format!("m more ({})", count(left, "row")));
    }
    words.push("? explain".to_owned());
    let always = match offer {
        // A row of the pattern must not begin where our own words do.
        Offer::Always { pattern, .. } => {
            let width = manner.columns.saturating_sub(ALWAYS.len()).max(MIN_COLUMNS);
            let indent = format!("\n{}", " ".repeat(ALWAYS.len()));
            format!("{ALWAYS}{}\n", broken(&single_line(pattern), width).join(&indent))
        }
        Offer::Once | Offer::Times(_) => String::new(),
    };
    format!("{always}  {}\nAllow it? [y/N] ", words.join("   "))
}

/// What the caller should know of a no: `n use the other file`.
fn words_after_no(line: &str) -> Option<String> {
    let is_between =
        |character: char| character.is_whitespace() || matches!(character, ',' | ':' | ';' | '.');
    let (answer, words) = line.trim().split_once(is_between)?;
    let words = words.trim_start_matches(is_between);
    let is_no = answer.eq_ignore_ascii_case("n") || answer.eq_ignore_ascii_case("no");
    is_no.then(|| short_line(words, MAX_WORDS, "..."))
}

fn explanation(offer: &Offer) -> String {
    let always = match offer {
        Offer::Always { caution, .. } => format!("{EXPLAINED_ALWAYS}{}", caution.unwrap_or_default()),
        Offer::Once | Offer::Times(_) => String::new(),
    };
    let explained = match offer {
        Offer::Times(times) => {
            let often =
                if *times == 1 { "once".to_owned() } else { format!("up to {times} times in this run") };
            EXPLAINED
                .replace("it happens once", &format!("it happens {often}"))
                .replace("Enter and Ctrl-D mean the same.", "Enter means the same, Ctrl-D leaves it open.")
        }
        Offer::Always { .. } | Offer::Once => EXPLAINED.to_owned(),
    };
    format!("{explained}{always}{EXPLAINED_MORE}")
}
