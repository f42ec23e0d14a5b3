//! Which lines of two texts belong together, in a time that does not grow with the product of their lengths.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp};

/// Lines on both sides that are compared one by one. The time for that grows with their product, so a longer part is first
/// divided at the lines that both sides have once; where there are none, all old lines go and all new ones come.
const MAX_COMPARED_LINES: usize = 5_000;

/// The steps from the old lines to the new ones.
pub(super) fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    if old.len() + new.len() - 2 * (head + tail) <= MAX_COMPARED_LINES {
        return similar::capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mut steps = Steps { old, new, done: Vec::new() };
    steps.equal(0, 0, head);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let (mut old_from, mut new_from) = (head, head);
    for (old_at, new_at) in anchors(old, new, &(head..old_end), &(head..new_end)) {
        steps.between(old_from..old_at, new_from..new_at);
        steps.equal(old_at, new_at, 1);
        (old_from, new_from) = (old_at + 1, new_at + 1);
    }
    steps.between(old_from..old_end, new_from..new_end);
    steps.equal(old_end, new_end, tail);
    steps.done
}

struct Steps<'t> {
    old: &'t [&'t str],
    new: &'t [&'t str],
    done: Vec<DiffOp>,
}

impl Steps<'_> {
    fn equal(&mut self, old_index: usize, new_index: usize, len: usize) {
        if len == 0 {
            return;
        }
        // Neighbours are one step: a group of changes with their surroundings is made from the lengths of the steps.
        if let Some(DiffOp::Equal { len: before, .. }) = self.done.last_mut() {
            *before += len;
        } else {
            self.done.push(DiffOp::Equal { old_index, new_index, len });
        }
    }

    /// The steps of a part between two lines that belong together.
    fn between(&mut self, old: Range<usize>, new: Range<usize>) {
        let (old_from, new_from) = (old.start, new.start);
        if old.len() + new.len() > MAX_COMPARED_LINES {
            self.done.push(DiffOp::Replace {
                old_index: old_from,
                old_len: old.len(),
                new_index: new_from,
                new_len: new.len(),
            });
            return;
        }
        let old_lines = self.old.get(old).unwrap_or_default();
        let new_lines = self.new.get(new).unwrap_or_default();
        for step in similar::capture_diff_slices(Algorithm::Myers, old_lines, new_lines) {
            match step {
                DiffOp::Equal { old_index, new_index, len } => {
                    self.equal(old_from + old_index, new_from + new_index, len);
                }
                DiffOp::Delete { old_index, old_len, new_index } => self.done.push(DiffOp::Delete {
                    old_index: old_from + old_index,
                    old_len,
                    new_index: new_from + new_index,
                }),
                DiffOp::Insert { old_index, new_index, new_len } => self.done.push(DiffOp::Insert {
                    old_index: old_from + old_index,
                    new_index: new_from + new_index,
                    new_len,
                }),
                DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                    self.done.push(DiffOp::Replace {
                        old_index: old_from + old_index,
                        old_len,
                        new_index: new_from + new_index,
                        new_len,
                    });
                }
            }
        }
    }
}

/// How often a line is on each side, and where.
#[derive(Default)]
struct Seen {
    old: usize,
    new: usize,
    new_at: usize,
}

/// The lines that both sides have exactly once, as far as they are in the same order: the longest such chain.
fn anchors(
    old: &[&str],
    new: &[&str],
    old_part: &Range<usize>,
    new_part: &Range<usize>,
) -> Vec<(usize, usize)> {
    let part = |range: &Range<usize>| range.clone();
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for line in old.get(part(old_part)).unwrap_or_default() {
        seen.entry(line).or_default().old += 1;
    }
    for (at, line) in (new_part.start..).zip(new.get(part(new_part)).unwrap_or_default()) {
        let seen = seen.entry(line).or_default();
        seen.new += 1;
        seen.new_at = at;
    }
    let pairs =
        (old_part.start..).zip(old.get(part(old_part)).unwrap_or_default()).filter_map(|(at, line)| {
            seen.get(line).filter(|seen| seen.old == 1 && seen.new == 1).map(|seen| (at, seen.new_at))
        });
    longest_chain(&pairs.collect::<Vec<_>>())
}

/// The longest part of pairs, ordered by their first number, in which the second one grows too: by the lowest possible end of
/// a chain of each length.
fn longest_chain(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // Of each length: the pair with the lowest end. Of each pair: the one before it in its chain.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let end_of = |at: usize| pairs.get(at).map_or(0, |(_, new)| *new);
    for (at, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| end_of(*end) < *new);
        before.push(length.checked_sub(1).and_then(|shorter| ends.get(shorter).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chain.extend(pairs.get(at).copied());
        next = before.get(at).copied().flatten();
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::DiffTag;

    use super::*;

    /// Goes through the steps: they have to cover both sides, and equal steps have to be equal.
    fn replay(old: &[&str], new: &[&str], steps: &[DiffOp]) -> usize {
        let (mut old_at, mut new_at, mut changed) = (0, 0, 0);
        for step in steps {
            let (old_range, new_range) = (step.old_range(), step.new_range());
            assert_eq!((old_range.start, new_range.start), (old_at, new_at), "{steps:?}");
            if step.tag() == DiffTag::Equal {
                assert_eq!(old[old_range.clone()], new[new_range.clone()]);
            } else {
                changed += old_range.len() + new_range.len();
            }
            (old_at, new_at) = (old_range.end, new_range.end);
        }
        assert_eq!((old_at, new_at), (old.len(), new.len()));
        changed
    }

    #[test]
    fn bug_two_changed_lines_far_apart_were_shown_as_the_whole_file() {
        let lines: Vec<String> = (0..20_000).map(|number| format!("line {number}\n")).collect();
        let old: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut new = old.clone();
        new[10] = "first change\n";
        new[19_990] = "second change\n";
        assert_eq!(replay(&old, &new, &operations(&old, &new)), 4);
    }

    #[test]
    fn lines_without_anything_in_common_are_one_change() {
        let [old, new] = ["a", "b"].map(|side| vec![side; 4_000]);
        let steps = operations(&old, &new);
        assert_eq!(replay(&old, &new, &steps), 8_000);
        assert_eq!(steps.len(), 1);
    }

    #[test]
    fn a_moved_block_is_a_change_and_the_rest_stays() {
        let lines: Vec<String> = (0..8_000).map(|number| format!("line {number}\n")).collect();
        let old: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut new = old.clone();
        new.rotate_left(100);
        assert_eq!(replay(&old, &new, &operations(&old, &new)), 200);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn steps_lead_from_the_old_lines_to_the_new_ones(
            edits in prop::collection::vec((0_usize..6_000, prop::bool::ANY, 0_u8..4), 0..60),
        ) {
            let lines: Vec<String> = (0..6_000).map(|number| format!("{}", number % 5_000)).collect();
            let old: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut new = old.clone();
            for (at, insert, text) in edits {
                let text = ["x", "y", "7", "4999"][usize::from(text)];
                if insert { new.insert(at, text) } else { new[at] = text }
            }
            replay(&old, &new, &operations(&old, &new));
        }
    }
}
