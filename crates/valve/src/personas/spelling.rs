//! The word that a misspelt one was probably meant to be.

/// The candidate that differs from `wanted` by few letters, when there is one.
pub(super) fn nearest<'c>(wanted: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let wanted = wanted.to_lowercase();
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    let near = candidates.iter().map(|candidate| (distance(&wanted, candidate), *candidate));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (number, letter) in one.chars().enumerate() {
        let mut diagonal = number;
        let mut left = number + 1;
        let mut next = Vec::with_capacity(row.len());
        next.push(left);
        for (opposite, above) in other.chars().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(letter != opposite)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
