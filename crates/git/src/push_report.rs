//! What `git push --porcelain` says of each reference.

use crate::command::Finished;

/// What a push says of one reference.
pub(crate) fn lines_of<'a>(answer: &'a Finished, target: &'a str) -> impl Iterator<Item = &'a str> {
    answer.stdout.lines().filter(move |line| {
        let names = line.split('\t').nth(1).unwrap_or_default();
        names.split_once(':').is_some_and(|(_, to)| to == target)
    })
}

pub(crate) fn has_taken(answer: &Finished, target: &str) -> bool {
    lines_of(answer, target).any(|line| line.starts_with([' ', '+', '*', '=']))
}
