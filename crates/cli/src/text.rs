//! Text on its way to a person's terminal.

use tgp::gates::{RuleListing, RuleSource};
pub use tgp_text::{is_unseen, visible_json as json_on_terminal};

/// What is shown is what is there: characters that move the cursor, hide or reorder text become visible escapes.
pub fn visible(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// The same on one line: ends of lines are visible escapes, too.
pub fn single_line(text: &str) -> String {
    escaped(text, |_| false)
}

/// What a terminal is given: our own colours pass, and whatever else a terminal would act on becomes a visible escape,
/// wherever it came from. Ends of lines and tabs stay.
pub fn screened(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        shown.push_str(&visible(before));
        match colour(after) {
            Some((code, behind)) => {
                shown.push('\u{1b}');
                shown.push_str(code);
                rest = behind;
            }
            None => {
                push_escaped(&mut shown, '\u{1b}', |_| false);
                rest = after;
            }
        }
    }
    shown.push_str(&visible(rest));
    shown
}

/// The same on one line.
pub fn screened_line(text: &str) -> String {
    screened(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Longer sequences are not ours.
const MAX_COLOUR_BYTES: usize = 16;

/// What follows an escape character, when it is a colour or a weight that our screens use: nothing that hides text,
/// turns it round or makes it blink.
fn colour(after: &str) -> Option<(&str, &str)> {
    let end = after.find('m').filter(|end| *end < MAX_COLOUR_BYTES)?;
    let (code, behind) = (after.get(..=end)?, after.get(end + 1..)?);
    let numbers = code.strip_prefix('[')?.strip_suffix('m')?;
    let parsed: Vec<u8> = numbers
        .split(';')
        .map(|number| if number.is_empty() { Ok(0) } else { number.parse() })
        .collect::<Result<_, _>>()
        .ok()?;
    let is_ours = match parsed.as_slice() {
        [38, 5, _] => true,
        numbers => numbers.iter().all(|number| matches!(number, 0..=4 | 22..=24 | 30..=37 | 39 | 90..=97)),
    };
    is_ours.then_some((code, behind))
}

/// What a model says, for a terminal. Characters that only shape their neighbours, as in emoji and in some scripts, stay:
/// the user approves nothing by this text. Each character is checked alone, so a text may come in pieces.
pub fn spoken(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe0f}'))
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|character| push_escaped(&mut shown, character, &stays));
    shown
}

fn push_escaped(shown: &mut String, character: char, stays: impl Fn(char) -> bool) {
    match character {
        _ if stays(character) => shown.push(character),
        '\n' => shown.push_str("\\n"),
        '\t' => shown.push_str("\\t"),
        _ if is_unseen(character) => shown.extend(character.escape_unicode()),
        _ => shown.push(character),
    }
}

/// Characters considered for each column of a short line: marks without a width must not make it endless.
const MAX_MARKS: usize = 8;

/// A text on one line of at most so many columns, with nothing hidden; `mark` is put where it was cut.
pub fn short_line(text: &str, columns: usize, mark: &str) -> String {
    let room = columns.saturating_sub(console::measure_text_width(mark));
    let (mut shown, mut width, mut kept) = (String::new(), 0, 0);
    for (number, character) in text.chars().enumerate() {
        let before = shown.len();
        push_escaped(&mut shown, character, |_| false);
        width += console::measure_text_width(shown.get(before..).unwrap_or_default());
        if width > columns || number >= columns.saturating_mul(MAX_MARKS) {
            shown.truncate(kept);
            shown.push_str(mark);
            return shown;
        }
        if width <= room {
            kept = shown.len();
        }
    }
    shown
}

/// One line of text as rows of at most so many columns.
pub fn rows(line: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut row, mut width) = (Vec::new(), String::new(), 0);
    for (number, character) in line.chars().enumerate() {
        let own = console::measure_text_width(character.encode_utf8(&mut [0; 4]));
        let is_full = width + own > columns || row.len() >= columns.saturating_mul(MAX_MARKS * 4);
        if is_full && number > 0 {
            rows.push(std::mem::take(&mut row));
            width = 0;
        }
        row.push(character);
        width += own;
    }
    rows.push(row);
    rows
}

/// Breaks lines between words, so that none is wider than `width` unless it is one word. No width, no breaks.
pub fn wrap(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut wrapped = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            wrapped.push('\n');
        }
        let mut column = 0;
        for (number, word) in line.split(' ').enumerate() {
            let length = console::measure_text_width(word);
            if number > 0 {
                let fits = column + 1 + length <= width;
                wrapped.push(if fits { ' ' } else { '\n' });
                column = if fits { column + 1 } else { 0 };
            }
            wrapped.push_str(word);
            column += length;
        }
    }
    wrapped
}

/// Every line but the first moved to the right.
pub fn hang(text: &str, indent: usize) -> String {
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}

/// A number with its noun: `1 error`, `2 errors`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Widest column of a table; longer cells push the rest of their line to the right.
const MAX_COLUMN: usize = 60;

/// Rows under their column names, each column as wide as its widest cell.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index)).chain(columns.get(index));
        cells.map(|cell| console::measure_text_width(cell)).max().unwrap_or_default().min(MAX_COLUMN)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| {
                let missing = width.saturating_sub(console::measure_text_width(cell));
                format!("{cell}{}", " ".repeat(missing))
            })
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = line(columns);
    text.push_str(&line(&rule));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

/// Returns where the rules in force come from: `3 rules from tgp.policy.yaml, 1 extension`, or `no rules`.
pub fn shown_sources(listing: &RuleListing) -> String {
    let source = |source: &RuleSource| match source.rules {
        0 => format!("no rules in {}", source.file),
        rules => format!("{} from {}", count(rules, "rule"), source.file),
    };
    let mut parts: Vec<String> = listing.sources.iter().map(source).collect();
    parts.extend(listing.extensions.iter().map(|name| format!("extension {name}")));
    if parts.is_empty() { "no rules".to_owned() } else { parts.join(", ") }
}

/// Returns how many invariants a file has.
pub fn shown_invariants(number: usize, file: &str) -> String {
    match number {
        0 => "no invariants are defined".to_owned(),
        number => format!("{} from {file}", count(number, "invariant")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_aligns_its_columns() {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let text = table(&words(["id", "name"]), &[words(["1", "Ann"]), words(["12345", "漢"])]);
        assert_eq!(text, "id     name\n-----  ----\n1      Ann\n12345  漢\n");
    }

    #[test]
    fn text_that_could_deceive_becomes_visible() {
        assert_eq!(visible("a\tb\nc é 漢"), "a\tb\nc é 漢");
        assert_eq!(visible("\u{1b}[2J\u{7}\r"), "\\u{1b}[2J\\u{7}\\u{d}");
        assert_eq!(visible("\u{9b}x\u{202e}y\u{200b}z"), "\\u{9b}x\\u{202e}y\\u{200b}z");
    }

    #[test]
    fn only_our_own_colours_pass_to_a_terminal() {
        assert_eq!(
            screened("\u{1b}[33;1mwarning:\u{1b}[0m a\nb\tc"),
            "\u{1b}[33;1mwarning:\u{1b}[0m a\nb\tc"
        );
        assert_eq!(screened("\u{1b}[38;5;12mx\u{1b}[m"), "\u{1b}[38;5;12mx\u{1b}[m");
        for hostile in [
            "\u{1b}[2J",
            "\u{1b}[8mx",
            "\u{1b}]0;t\u{7}",
            "\u{1b}",
            "\u{1b}[31",
            "\u{1b}[1;7m",
            "\u{9b}31m",
            "\r",
            "\u{202e}",
        ] {
            let shown = screened(hostile);
            assert!(!shown.chars().any(is_unseen), "{shown:?}");
        }
        assert_eq!(screened_line("a\nb"), "a\\nb");
        assert_eq!(
            json_on_terminal("{\"a\":\"\u{9b}\u{202e}\u{e0041}\"}"),
            "{\"a\":\"\\u009b\\u202e\\udb40\\udc41\"}"
        );
    }

    #[test]
    fn what_a_model_says_keeps_its_shapes() {
        assert_eq!(spoken("⚠\u{fe0f} 👩\u{200d}💻\n"), "⚠\u{fe0f} 👩\u{200d}💻\n");
        assert_eq!(spoken("\u{1b}[2J\u{202e}\u{200b}\u{e0041}"), "\\u{1b}[2J\\u{202e}\\u{200b}\\u{e0041}");
        assert_eq!(visible("a\u{fe0f}\u{3164}"), "a\\u{fe0f}\\u{3164}");
    }

    #[test]
    fn a_short_line_fits_its_columns() {
        for (text, columns, expected) in [
            ("src/a.ts", 8, "src/a.ts"),
            ("src/a.ts", 7, "src/a.…"),
            ("漢字漢字", 8, "漢字漢字"),
            ("漢字漢字", 7, "漢字漢…"),
            ("a\nb\tc", 9, "a\\nb\\tc"),
            ("\u{1b}[2J", 6, "…"),
            ("", 3, ""),
            ("abc", 0, "…"),
        ] {
            assert_eq!(short_line(text, columns, "…"), expected);
        }
        let heavy = short_line(&"\u{301}".repeat(1_000_000), 10, "…");
        assert!(heavy.chars().count() <= 10 * MAX_MARKS + 1, "{}", heavy.len());
    }

    #[test]
    fn rows_hold_all_of_a_line() {
        assert_eq!(rows("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(rows("漢字漢", 3), ["漢", "字", "漢"]);
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("漢", 1), ["漢"]);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", Some(8)), "one two\nthree");
        assert_eq!(wrap("one two\nthree four", Some(9)), "one two\nthree\nfour");
        assert_eq!(wrap("unbreakable on", Some(4)), "unbreakable\non");
        assert_eq!(wrap("  two  spaces", Some(40)), "  two  spaces");
        assert_eq!(wrap("one two three", None), "one two three");
    }

    #[test]
    fn a_number_agrees_with_its_noun() {
        assert_eq!([0, 1, 2].map(|number| count(number, "error")), ["0 errors", "1 error", "2 errors"]);
    }
}
