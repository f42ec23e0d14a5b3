//! Numbers as people read them.

/// `1 file`, `2 files`, `1,000 files`.
pub(super) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{} {thing}s", thousands(number)),
    }
}

/// `1,000`
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (left, digit) in (0..digits.len()).rev().zip(digits.chars()) {
        text.push(digit);
        if left > 0 && left % 3 == 0 {
            text.push(',');
        }
    }
    text
}
