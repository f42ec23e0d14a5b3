//! The name that was probably meant.

/// Longer names are not compared: the table grows with the square of it.
const LONGEST: usize = 64;

/// How many names a list in a message has. More would not be read.
const MOST_LISTED: usize = 12;

/// Of `names` the one that is so near to `wanted` that it was probably meant.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = folded(wanted);
    let limit = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let distance = distance(&wanted, &folded(name));
        if distance <= limit && distance < name.len() && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Names for a message: `` `a`, `b` and `c` ``.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> =
        names.into_iter().take(MOST_LISTED + 1).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST_LISTED {
        names.truncate(MOST_LISTED);
        return format!("{}, …", names.join(", "));
    }
    match names.pop() {
        None => "none".to_owned(),
        Some(only) if names.is_empty() => only,
        Some(last) => format!("{} and {last}", names.join(", ")),
    }
}

/// `did you mean …?`, or which names there are.
pub(crate) fn hint<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(near) = nearest(wanted, names.clone()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let count = names.clone().into_iter().take(2).count();
    match count {
        0 => None,
        1 => Some(format!("there is {}", listed(names))),
        _ => Some(format!("there are {}", listed(names))),
    }
}

/// Case and separators are not what tells names apart.
fn folded(name: &str) -> Vec<char> {
    let letters = name.chars().map(|letter| if letter == '.' || letter == '-' { '_' } else { letter });
    letters.flat_map(char::to_lowercase).take(LONGEST + 1).collect()
}

/// How many letters are missing, added, changed, or changed places with the next.
fn distance(one: &[char], other: &[char]) -> usize {
    if one.len().max(other.len()) > LONGEST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row_number, letter) in one.iter().enumerate() {
        let mut row = vec![row_number + 1];
        for (column, against) in other.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let changed = get(&above, column) + usize::from(letter != against);
            let mut least = changed.min(get(&above, column + 1) + 1).min(get(&row, column) + 1);
            let swapped = row_number > 0
                && column > 0
                && one.get(row_number - 1) == Some(against)
                && other.get(column - 1) == Some(letter);
            if swapped {
                least = least.min(get(&before, column - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(usize::MAX)
}
