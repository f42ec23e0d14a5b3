//! The name that somebody may have meant.

/// Names that are longer are not compared: nobody mistypes them by a letter, and the comparison is quadratic.
const LONGEST: usize = 64;

/// The nearest of `names` to `wanted`, when it is near enough to be a slip of the hand.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower: Vec<char> = wanted.to_lowercase().chars().take(LONGEST + 1).collect();
    let limit = (lower.len() / 3).max(1);
    names
        .map(|name| {
            (distance(&lower, &name.to_lowercase().chars().take(LONGEST + 1).collect::<Vec<_>>()), name)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters are missing, added, changed, or changed places with the next.
fn distance(one: &[char], other: &[char]) -> usize {
    if one.len().max(other.len()) > LONGEST {
        return usize::MAX;
    }
    // Rows of the table: two before, one before, this one.
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, against) in other.iter().enumerate() {
            let get = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut best = get(&last, column) + usize::from(letter != against);
            best = best.min(get(&last, column + 1) + 1).min(get(&row, column) + 1);
            let swapped = at > 0
                && column > 0
                && one.get(at - 1) == Some(against)
                && other.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(get(&older, column - 1) + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}
