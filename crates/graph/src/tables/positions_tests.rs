//! Positions in the form in which they are stored.

use proptest::prelude::*;

use super::{Position, Positions, find, place};

/// Many alike, so that they are packed.
fn many() -> impl Strategy<Value = Vec<Position>> {
    prop_oneof![prop::collection::vec(position(), 0..40), prop::collection::vec(position(), 600..900)]
}

fn position() -> impl Strategy<Value = Position> {
    prop_oneof![
        any::<u32>().prop_map(Position::Line),
        (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(line, column, end_line)| Position::Span {
            line,
            column,
            end_line
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_put_into_a_slot_is_found_there(
        kept in prop::collection::btree_map(0u32..60, position(), 0..40),
        added in many(),
    ) {
        let mut positions = Positions::default();
        for (slot, position) in &kept {
            positions.keep(*slot, *position);
        }
        let slots: Vec<u32> = added.iter().map(|position| positions.add(*position).unwrap()).collect();
        let data = positions.encode().unwrap();
        for (slot, position) in &kept {
            prop_assert_eq!(find(&data, place(7, *slot)), Some(*position));
        }
        for (slot, position) in slots.iter().zip(&added) {
            prop_assert!(!kept.contains_key(slot));
            prop_assert_eq!(find(&data, place(7, *slot)), Some(*position));
        }
        let slots: std::collections::HashSet<u32> = slots.into_iter().collect();
        for slot in (0..1000).filter(|slot| !kept.contains_key(slot) && !slots.contains(slot)) {
            prop_assert_eq!(find(&data, place(7, slot)), None);
        }
    }

    #[test]
    fn damaged_bytes_are_no_position_and_no_panic(data in prop::collection::vec(any::<u8>(), 0..200), is_packed: bool, slot in 0u32..300) {
        let data: Vec<u8> = std::iter::once(u8::from(is_packed)).chain(data).collect();
        let _ = find(&data, place(1, slot));
    }

    #[test]
    fn a_file_that_moves_is_not_taken_for_what_it_was(lines in prop::collection::vec(any::<u32>(), 2000), file in 1i64..3) {
        let mut positions = Positions::default();
        for line in &lines {
            positions.add(Position::Line(*line)).unwrap();
        }
        let data = positions.encode().unwrap();
        for (slot, line) in (0u32..).zip(&lines) {
            prop_assert_eq!(find(&data, place(file, slot)), Some(Position::Line(*line)));
        }
    }
}

#[test]
fn a_symbol_and_a_call_take_few_bytes() {
    let mut positions = Positions::default();
    for number in 0..100 {
        positions
            .add(Position::Span { line: 10 * number + 1, column: 5, end_line: 10 * number + 8 })
            .unwrap();
    }
    for number in 0..100 {
        positions.add(Position::Line(10 * number + 3)).unwrap();
    }
    let bytes = positions.encode().unwrap().len();
    assert!(bytes <= 411, "{bytes} bytes");
    // A list of constants that a machine wrote, which one line has moved.
    let mut positions = Positions::default();
    for number in 0..5_000 {
        positions.add(Position::Span { line: number + 2, column: 1, end_line: number + 2 }).unwrap();
    }
    let bytes = positions.encode().unwrap().len();
    assert!(bytes <= 100, "{bytes} bytes");
}
