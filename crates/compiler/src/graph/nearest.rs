//! The names a misspelt one was probably meant to be.

/// At most this many names are worth reading.
const MOST: usize = 3;

/// The candidates that differ from `wanted` by a few letters, nearest first.
pub(super) fn nearest<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Vec<String> {
    let most = (wanted.chars().count() / 4).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= most * 4)
        .map(|candidate| (distance(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Letters to insert, remove, replace or swap with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.iter().enumerate() {
        let mut next = vec![line + 1];
        for (column, opposite) in other.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&row, column) + usize::from(letter != opposite);
            let mut best = replaced.min(at(&row, column + 1) + 1).min(at(&next, column) + 1);
            let swapped = line > 0
                && column > 0
                && one.get(line - 1) == Some(opposite)
                && other.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}
