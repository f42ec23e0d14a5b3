//! The word that a misspelt one was probably meant to be.

/// The candidate that differs from `wanted` by the fewest letters, when these are few; capitals do not count.
pub(super) fn nearest<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let most = (wanted.chars().count() / 3).clamp(1, 4);
    let wanted = wanted.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= most)
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut next = vec![line + 1];
        let mut left = line + 1;
        for (opposite, pair) in other.iter().zip(row.windows(2)) {
            let (diagonal, above) = match pair {
                [diagonal, above] => (*diagonal, *above),
                _ => (usize::MAX - 1, usize::MAX - 1),
            };
            left = (diagonal + usize::from(letter != *opposite)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
