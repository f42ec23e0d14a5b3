//! The name that a misspelt one was probably meant to be.

/// Longer names are not compared: the comparison is quadratic, and names of this length are not typed by hand.
const MAX_NAME_CHARS: usize = 64;

/// The most edits between a misspelt name and the one it was meant to be, however long they are.
const MAX_EDITS: usize = 4;

/// The candidate that `wanted` was probably meant to be.
///
/// One edit is accepted for every three letters of `wanted`, at least one and at most four, and at least one letter must
/// remain. Case and the separators `_`, `-` and `.` do not count. Of equally near candidates the first in the alphabet is
/// returned, so the answer does not depend on their order.
pub fn nearest<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let wanted = Wanted::new(wanted)?;
    candidates.into_iter().filter_map(|name| wanted.near(name)).min().map(|(_, name)| name)
}

/// ``did you mean `name`?`` where a candidate is near enough.
pub fn did_you_mean<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(wanted, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// The `most` nearest candidates by the rule of [`nearest`], nearest first.
pub fn nearest_names<'c>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    most: usize,
) -> Vec<&'c str> {
    let Some(wanted) = Wanted::new(wanted) else { return Vec::new() };
    let mut near: Vec<(usize, &str)> = candidates.into_iter().filter_map(|name| wanted.near(name)).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

/// The characters to insert, remove, replace or swap with their neighbour that turn one text into the other.
///
/// The cost is the product of both lengths: limit the lengths of untrusted texts first.
pub fn edit_distance(one: &str, other: &str) -> usize {
    strsim::osa_distance(one, other)
}

/// A misspelt name, prepared for comparisons.
struct Wanted {
    name: String,
    chars: usize,
    max_edits: usize,
}

impl Wanted {
    fn new(name: &str) -> Option<Self> {
        let (name, chars) = folded(name)?;
        Some(Self { name, chars, max_edits: (chars / 3).clamp(1, MAX_EDITS) })
    }

    fn near<'c>(&self, candidate: &'c str) -> Option<(usize, &'c str)> {
        let (name, chars) = folded(candidate)?;
        if chars.abs_diff(self.chars) > self.max_edits {
            return None;
        }
        let edits = edit_distance(&self.name, &name);
        (edits <= self.max_edits && edits < chars).then_some((edits, candidate))
    }
}

/// The name without case and separators, and its length in characters; `None` when it is too long to be compared.
fn folded(name: &str) -> Option<(String, usize)> {
    // No character has more than four bytes: a longer name need not be folded to see that it is too long.
    if name.len() > MAX_NAME_CHARS * 4 {
        return None;
    }
    let letters = name.chars().map(|letter| if matches!(letter, '.' | '-') { '_' } else { letter });
    let folded: String = letters.flat_map(char::to_lowercase).collect();
    let chars = folded.chars().count();
    (chars <= MAX_NAME_CHARS).then_some((folded, chars))
}
