//! The name that somebody may have meant.

/// The nearest of `names` to `wanted`, when it is near enough to be a slip of the hand.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wanted.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    names
        .map(|name| (distance(&lower, &name.to_lowercase(), limit), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters have to be changed, at most `limit + 1`.
fn distance(one: &str, other: &str, limit: usize) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, against) in row.iter_mut().skip(1).zip(&other) {
            let replaced = diagonal + usize::from(letter != against);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(limit + 1)
}
