//! Differences of texts that are too long for a list of their lines, and of the right to execute.

use super::{MAX_DIFF_BYTES, MAX_LISTED_BYTES, difference, difference_with_mode};

fn lines(from: usize, to: usize) -> String {
    (from..to).map(|number| format!("line {number:06}\n")).collect()
}

#[test]
fn a_long_text_is_compared_without_a_list_of_its_lines() {
    let count = MAX_LISTED_BYTES / 12;
    let old = lines(0, count);
    let new = old.replace("line 000500\n", "line five hundred\nand one more\n");
    let shown = difference("a.txt", Some(old.as_bytes()), Some(new.as_bytes()));
    assert!(shown.complete);
    let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -498,7 +498,8 @@\n line 000497\n line 000498\n line 000499\n-line 000500\n\
                    +line five hundred\n+and one more\n line 000501\n line 000502\n line 000503\n";
    // The first line of the end that both have in common may begin otherwise, so it is shown as changed.
    assert!(
        shown.text.contains("-line 000500\n") && shown.text.contains("+and one more\n"),
        "{}",
        shown.text
    );
    assert!(shown.text.len() <= expected.len() + 60, "{}", shown.text);
    // The ends of a text, and a text that is new or gone.
    for (before, after) in [("", new.as_str()), (old.as_str(), ""), (old.as_str(), &new[..new.len() - 1])] {
        let shown = difference("a.txt", Some(before.as_bytes()), Some(after.as_bytes()));
        assert!(
            shown.text.len() <= MAX_DIFF_BYTES && shown.text.starts_with("--- a/a.txt\n+++ b/a.txt\n@@ -")
        );
    }
    let last = difference("a.txt", Some(old.as_bytes()), Some(format!("{old}end").as_bytes()));
    assert!(last.text.ends_with("+end\n\\ No newline at end of file\n"), "{}", last.text);
    assert!(last.text.contains(&format!("@@ -{},3 +{},4 @@", count - 2, count - 2)), "{}", last.text);
}

#[test]
fn one_endless_line_is_not_copied_as_a_whole() {
    let long = "x".repeat(MAX_LISTED_BYTES * 2);
    let shown = difference("a.txt", None, Some(long.as_bytes()));
    assert!(!shown.complete && shown.text.len() <= MAX_DIFF_BYTES);
}

#[test]
fn the_right_to_execute_is_part_of_a_difference() {
    let text = |before: Option<&str>, after: Option<&str>, executable| {
        let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
        let leak = |text: Option<&str>| text.map(|text| &*text.to_owned().leak());
        difference_with_mode("a.sh", bytes(leak(before)), bytes(leak(after)), executable).text
    };
    assert_eq!(text(Some("x\n"), Some("x\n"), None), "");
    assert_eq!(
        text(Some("x\n"), Some("x\n"), Some(true)),
        "--- a/a.sh\n+++ b/a.sh\nold mode 100644\nnew mode 100755\n"
    );
    assert_eq!(
        text(None, Some("x\n"), Some(true)),
        "--- /dev/null\n+++ b/a.sh\nnew file mode 100755\n@@ -0,0 +1 @@\n+x\n"
    );
    assert!(text(Some("x\n"), Some("y\n"), Some(false)).contains("old mode 100755\nnew mode 100644\n@@"));
}
