//! The public functions of the crate, by tables and by properties.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use tgp_text::{
    LineCol, LineEnds, LineIndex, edit_distance, head, nearest, nearest_names, now_ms, one_line,
    parse_rfc3339_ms, parse_rfc3339_ns, rfc3339, rfc3339_seconds, tail, truncate, truncate_bytes,
};

#[test]
fn a_slip_is_recognised_and_another_word_is_not() {
    let names = ["fs_read", "fs_write", "shell_exec", "query", "type", "import", "a", "i"];
    let cases = [
        ("fs_raed", Some("fs_read")),
        ("FS_READ", Some("fs_read")),
        ("fs.write", Some("fs_write")),
        ("fs-wirte", Some("fs_write")),
        ("shelexec", Some("shell_exec")),
        ("qurey", Some("query")),
        ("typ", Some("type")),
        ("imports", Some("import")),
        // Nothing of the one letter would remain.
        ("x", None),
        ("", None),
        ("tape_recorder", None),
        ("export", Some("import")),
        ("git_log", None),
    ];
    for (wanted, expected) in cases {
        assert_eq!(nearest(wanted, names), expected, "{wanted}");
    }
}

#[test]
fn the_order_of_the_candidates_does_not_matter() {
    assert_eq!(nearest("nod", ["node", "nods", "mod"]), Some("mod"));
    assert_eq!(nearest("nod", ["nods", "mod", "node"]), Some("mod"));
    assert_eq!(nearest_names("nod", ["nods", "mod", "node", "mod"], 2), ["mod", "node"]);
    assert_eq!(nearest_names("node", ["mod", "node", "nodes"], 3), ["node", "nodes"]);
}

#[test]
fn a_very_long_name_is_not_compared() {
    let long = "a".repeat(1_000_000);
    assert_eq!(nearest(&long, [long.as_str()]), None);
    assert_eq!(nearest(&"a".repeat(64), [&*"a".repeat(63)]), Some(&*"a".repeat(63)));
    assert_eq!(nearest(&"a".repeat(65), [&*"a".repeat(64)]), None);
    assert_eq!(nearest("a", [long.as_str(), "ab"]), Some("ab"));
}

#[test]
fn a_swap_of_neighbours_is_one_edit() {
    for (one, other, edits) in [("ab", "ba", 1), ("abc", "abc", 0), ("", "ab", 2), ("ä", "a", 1)] {
        assert_eq!(edit_distance(one, other), edits);
    }
}

#[test]
fn locations_count_lines_and_characters_from_1() {
    let text = "ab\nä😀c\r\n\nd";
    let cases = [
        (0, (1, 1)),
        (2, (1, 3)),
        (3, (2, 1)),
        (4, (2, 1)),
        (5, (2, 2)),
        (8, (2, 2)),
        (9, (2, 3)),
        (10, (2, 4)),
        (12, (3, 1)),
        (13, (4, 1)),
        (14, (4, 2)),
        (15, (4, 2)),
        (usize::MAX, (4, 2)),
    ];
    let index = LineIndex::new(text, LineEnds::Newline);
    for (offset, (line, column)) in cases {
        assert_eq!(LineCol::of(text, offset), LineCol { line, column }, "{offset}");
        assert_eq!(index.line_col(text, offset), LineCol { line, column }, "{offset}");
    }
    assert_eq!(LineCol::of("", 0), LineCol::START);
    assert_eq!(LineIndex::new("", LineEnds::Newline).line_col("", 7), LineCol::START);
}

#[test]
fn ecmascript_ends_lines_at_more_characters() {
    let text = "a\rb\r\nc\u{2028}d\u{2029}e\nf\r";
    let index = LineIndex::new(text, LineEnds::EcmaScript);
    for (line, letter) in (1..).zip(['a', 'b', 'c', 'd', 'e', 'f']) {
        assert_eq!(index.line_col(text, text.find(letter).unwrap()), LineCol { line, column: 1 });
    }
    assert_eq!(index.line_col(text, text.len()), LineCol { line: 7, column: 1 });
    // `\r\n` is one end, and its `\n` is on the line that it ends.
    assert_eq!(index.line_col(text, 4), LineCol { line: 2, column: 3 });
    assert_eq!(index.line_start(2), Some(5));
    assert_eq!(index.line_start(7), None);
}

#[test]
fn a_location_behind_its_line_or_text_is_the_end_of_it() {
    let text = "ab\ncd\n";
    for (line, column, offset) in
        [(1, 9, 2), (2, 3, 5), (3, 1, 6), (4, 5, 6), (0, 0, 0), (u32::MAX, u32::MAX, 6)]
    {
        assert_eq!(LineCol { line, column }.offset_in(text), offset, "{line}:{column}");
    }
}

#[test]
fn numbers_of_a_parser_are_made_to_fit() {
    assert_eq!(LineCol::from_parser(0, 0), LineCol::START);
    assert_eq!(LineCol::from_parser(u64::MAX, 2), LineCol { line: u32::MAX, column: 2 });
    let place = LineCol::from_parser(3, 4).in_file("a.yml");
    assert_eq!((place.file.as_str(), place.line, place.column), ("a.yml", 3, 4));
    assert_eq!(LineCol::from_parser(3, 4).to_string(), "3:4");
}

#[test]
fn what_is_cut_says_so() {
    for (text, max, expected) in [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("äöüß", 3, "äö…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("", 0, ""),
    ] {
        assert_eq!(truncate(text, max), expected);
    }
    for (text, max, expected) in
        [("abc", 3, "abc"), ("abcd", 3, "…"), ("äöü", 5, "ä…"), ("abc", 2, "ab"), ("ä", 1, "")]
    {
        assert_eq!(truncate_bytes(text, max), expected);
    }
    assert_eq!((head("aä", 2), tail("äa", 2)), ("a", "a"));
}

#[test]
fn one_line_has_no_control_characters() {
    for (text, max, expected) in [
        ("  a\n\tb\u{7}c  ", 9, "a b c"),
        ("one two", 5, "one…"),
        ("one", 3, "one"),
        ("one  ", 3, "one"),
        ("\n\n", 3, ""),
        ("one", 0, ""),
    ] {
        assert_eq!(one_line(text, max), expected, "{text:?}");
    }
}

#[test]
fn times_are_written_and_read() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (1_794_744_181_250, "2026-11-15T12:03:01.25Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(rfc3339(ms), text);
        assert_eq!(parse_rfc3339_ms(text), Some(ms));
    }
    assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    assert_eq!(rfc3339_seconds(-1).as_deref(), Some("1969-12-31T23:59:59Z"));
    assert_eq!(rfc3339_seconds(i64::MAX), None);
    assert_eq!(rfc3339_seconds(i64::MIN), None);
    assert_eq!(parse_rfc3339_ns("1969-12-31T23:59:59.5Z"), Some(-500_000_000));
    assert_eq!(parse_rfc3339_ms("1970-01-01T01:00:00.0019+01:00"), Some(1));
    for wrong in
        ["", "now", "2026-01-31", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.9999Z", "2026-13-01T00:00:00Z"]
    {
        assert_eq!(parse_rfc3339_ms(wrong), None, "{wrong}");
    }
    // 2026-01-01: the clock of a machine that builds this is not before it.
    assert!(now_ms() > 1_767_225_600_000);
}

proptest! {
    #[test]
    fn a_suggestion_is_near(wanted in "[a-zA-Z_.-]{0,12}", names in prop::collection::vec("[a-zA-Z_.-]{0,12}", 0..8)) {
        let all = || names.iter().map(String::as_str);
        let few = nearest_names(&wanted, all(), 3);
        prop_assert_eq!(nearest(&wanted, all()), few.first().copied());
        for name in few {
            prop_assert!(names.iter().any(|one| one == name));
            let fold = |name: &str| name.to_lowercase().replace(['.', '-'], "_");
            let edits = edit_distance(&fold(&wanted), &fold(name));
            prop_assert!(edits <= (wanted.len() / 3).max(1) && edits < name.len());
        }
    }

    #[test]
    fn every_offset_has_one_location(text in "[a-cäß😀\n\r\u{2028}]{0,300}", at in 0..1000_usize) {
        let index = LineIndex::new(&text, LineEnds::Newline);
        let (mut line, mut column) = (1, 1);
        for (offset, letter) in text.char_indices().chain([(text.len(), '\0')]) {
            let expected = LineCol { line, column };
            prop_assert_eq!(LineCol::of(&text, offset), expected);
            prop_assert_eq!(index.line_col(&text, offset), expected);
            prop_assert_eq!(expected.offset_in(&text), offset);
            (line, column) = if letter == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        prop_assert_eq!(LineCol::of(&text, at), index.line_col(&text, at));
    }

    #[test]
    fn truncation_keeps_the_limit_and_whole_characters(text in "[aä€😀 \n\t]{0,40}", max in 0..50_usize) {
        let short = truncate(&text, max);
        prop_assert!(short.chars().count() <= max);
        prop_assert!(short == text || max == 0 || text.starts_with(short.strip_suffix('…').unwrap()));
        let short = truncate_bytes(&text, max);
        prop_assert!(short.len() <= max);
        prop_assert!(short == text || text.starts_with(short.strip_suffix('…').unwrap_or(&short)));
        prop_assert!(head(&text, max).len() <= max && text.starts_with(head(&text, max)));
        prop_assert!(tail(&text, max).len() <= max && text.ends_with(tail(&text, max)));
        let line = one_line(&text, max);
        prop_assert!(line.chars().count() <= max && !line.contains(['\n', '\t']));
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(line, truncate(&whole, max));
    }

    #[test]
    fn a_time_survives_its_text(ms in 0..=253_402_300_799_999_u64) {
        prop_assert_eq!(parse_rfc3339_ms(&rfc3339(ms)), Some(ms));
    }
}
