//! The fields of texts, without the engine.

use std::cell::Cell;

use super::{ScanStop, Scanner, Watch};

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// The rows as text: `|` between fields, `/` behind each row; or why there are none.
fn shown(text: &str, separator: &str) -> Result<String, ScanStop> {
    let (text, separator) = (units(text), units(separator));
    let mut scanner = Scanner::new(&text, &separator, Watch::new(&|| false));
    let mut shown = String::new();
    while let Some(field) = scanner.next_field()? {
        let whole: Vec<u16> = field.pieces().flatten().copied().collect();
        assert_eq!(field.is_empty(), whole.is_empty());
        shown.push_str(&String::from_utf16_lossy(&whole));
        shown.push(if field.ends_row { '/' } else { '|' });
    }
    Ok(shown)
}

#[test]
fn fields_and_rows_are_found() {
    for (text, expected) in [
        ("", ""),
        ("\n", "/"),
        ("\r\n\r\n", "//"),
        ("\n\r", "//"),
        ("a,b\nc,d\n", "a|b/c|d/"),
        ("a\rb\r\nc", "a/b/c/"),
        ("a,\n,b", "a|/|b/"),
        ("a,", "a|/"),
        ("\"\"", "/"),
        ("\"\",", "|/"),
        ("\"a,b\"\"c\nd\",e", "a,b\"c\nd|e/"),
        ("\"\"\"\"", "\"/"),
        ("\"\"\"a\"\"\"\"\"", "\"a\"\"/"),
        ("a\"b\",c", "a\"b\"|c/"),
        (" \"a\"", " \"a\"/"),
        ("\"a\"b\"c\",d", "ab\"c\"|d/"),
        ("\"a\" \r\n\"b\"c", "a /bc/"),
        ("é€😀,\"€\"", "é€😀|€/"),
    ] {
        assert_eq!(shown(text, ","), Ok(expected.to_owned()), "{text:?}");
    }
    for text in ["\"", "a,\"", "\"a\"\"", "\"\"\"", "a\n\"b\n"] {
        assert_eq!(shown(text, ","), Err(ScanStop::Unclosed), "{text:?}");
    }
}

#[test]
fn only_a_single_character_separates() {
    let text = "a,b;x\"c\nd";
    for (separator, expected) in [
        (";", "a,b|x\"c/d/"),
        ("", "a,b;x\"c/d/"),
        (";x", "a,b;x\"c/d/"),
        ("\n", "a,b;x\"c/d/"),
        ("\r", "a,b;x\"c/d/"),
        ("\"", "a,b;x|c/d/"),
        ("b", "a,|;x\"c/d/"),
    ] {
        assert_eq!(shown(text, separator), Ok(expected.to_owned()), "{separator:?}");
    }
}

#[test]
fn a_run_that_must_stop_is_stopped_within_one_field_and_between_many() {
    for text in ["x".repeat(1_000_000), format!("\"{}", "x".repeat(1_000_000)), ",".repeat(1_000_000)] {
        let asked = Cell::new(0_u32);
        let must_stop = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let (text, separator) = (units(&text), units(","));
        let mut scanner = Scanner::new(&text, &separator, Watch::new(&must_stop));
        let stopped = loop {
            match scanner.next_field() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(stop) => break Some(stop),
            }
        };
        assert_eq!(stopped, Some(ScanStop::Limit));
        assert_eq!(asked.get(), 3);
        assert!(scanner.place < 250_000, "{}", scanner.place);
    }
}
