//! Text on its way to a person's terminal.

/// What is shown is what is there: characters that move the cursor, hide or reorder text become visible escapes.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            _ if character.is_control() || is_invisible(character) => {
                shown.extend(character.escape_unicode());
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Characters without a shape of their own that change how their neighbours look.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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
