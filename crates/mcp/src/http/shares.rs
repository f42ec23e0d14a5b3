//! Places that the families of tokens share: none of them can take all while another one needs one.

use std::collections::BTreeMap;
use std::time::Instant;

/// A bounded number of places, each of one family.
pub(super) struct Shares<T> {
    capacity: usize,
    places: BTreeMap<String, Place<T>>,
}

struct Place<T> {
    family: String,
    used: Instant,
    value: T,
}

/// The way to give a family another place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// The place with this key is taken back.
    From(String),
    /// All places of the family are in use, and no other family has more.
    Full,
}

impl<T> Shares<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, places: BTreeMap::new() }
    }

    /// Returns the value of a place and its family, and marks the place as used now.
    pub(super) fn used(&mut self, key: &str) -> Option<(&str, &mut T)> {
        let place = self.places.get_mut(key)?;
        place.used = Instant::now();
        Some((place.family.as_str(), &mut place.value))
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        self.places.remove(key).map(|place| place.value)
    }

    /// Takes a place, and takes back another one where that is needed.
    pub(super) fn take(&mut self, key: &str, family: &str, value: T, is_busy: impl Fn(&T) -> bool) -> Room {
        let room = self.room(family, is_busy);
        match &room {
            Room::Full => return room,
            Room::From(other) => drop(self.places.remove(other)),
            Room::Free => {}
        }
        let place = Place { family: family.to_owned(), used: Instant::now(), value };
        self.places.insert(key.to_owned(), place);
        room
    }

    /// A family gets places from the largest one until both have as many; beyond that it gives up its own oldest idle
    /// place.
    fn room(&self, family: &str, is_busy: impl Fn(&T) -> bool) -> Room {
        if self.places.len() < self.capacity {
            return Room::Free;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for place in self.places.values() {
            *counts.entry(&place.family).or_default() += 1;
        }
        let own = counts.get(family).copied().unwrap_or_default();
        let largest = counts.iter().max_by_key(|(_, count)| **count);
        let oldest = |family: &str, idle: bool| {
            let of_family = self.places.iter().filter(|(_, place)| place.family == family);
            let free = of_family.filter(|(_, place)| !idle || !is_busy(&place.value));
            free.min_by_key(|(_, place)| place.used).map(|(key, _)| key.clone())
        };
        let found = match largest {
            Some((other, count)) if *count > own + 1 => oldest(other, true).or_else(|| oldest(other, false)),
            _ => oldest(family, true),
        };
        found.map_or(Room::Full, Room::From)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str, &str, Instant, &T) -> bool) {
        self.places.retain(|key, place| keep(key, &place.family, place.used, &place.value));
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.places.keys().cloned().collect()
    }

    /// Whether a family has a place.
    pub(super) fn has(&self, family: &str) -> bool {
        self.places.values().any(|place| place.family == family)
    }
}

#[cfg(test)]
mod tests {
    use super::{Room, Shares};

    /// Four places, all of the family `a`; the first of them was used last.
    fn full() -> Shares<bool> {
        let mut shares = Shares::new(4);
        for number in 0..4 {
            assert_eq!(shares.take(&format!("a{number}"), "a", false, |busy| *busy), Room::Free);
        }
        assert!(shares.used("a0").is_some());
        shares
    }

    #[test]
    fn bug_one_token_filled_all_places() {
        let mut shares = full();
        // The oldest idle places of the largest family go first, and each family keeps a half.
        assert_eq!(shares.take("b0", "b", false, |busy| *busy), Room::From("a1".to_owned()));
        assert_eq!(shares.take("b1", "b", false, |busy| *busy), Room::From("a2".to_owned()));
        assert_eq!(shares.take("b2", "b", false, |busy| *busy), Room::From("b0".to_owned()));
        assert!(shares.has("a") && shares.has("b"));
        assert_eq!(shares.keys(), ["a0", "a3", "b1", "b2"]);
    }

    #[test]
    fn busy_places_are_taken_for_another_family_only() {
        let mut shares = full();
        for key in shares.keys() {
            *shares.used(&key).unwrap().1 = true;
        }
        assert_eq!(shares.take("a4", "a", false, |busy| *busy), Room::Full);
        assert_eq!(shares.take("b0", "b", false, |busy| *busy), Room::From("a0".to_owned()));
        // An idle place of the largest family goes before an older busy one.
        *shares.used("a3").unwrap().1 = false;
        assert_eq!(shares.take("b1", "b", false, |busy| *busy), Room::From("a3".to_owned()));
    }

    #[test]
    fn a_crowd_of_families_is_full() {
        let mut shares = Shares::new(2);
        for family in ["a", "b"] {
            assert_eq!(shares.take(family, family, false, |busy| *busy), Room::Free);
        }
        assert_eq!(shares.take("c", "c", false, |busy| *busy), Room::Full);
        assert_eq!(shares.remove("a"), Some(false));
        assert_eq!(shares.take("c", "c", false, |busy| *busy), Room::Free);
        shares.retain(|key, _, _, _| key == "c");
        assert_eq!(shares.keys(), ["c"]);
    }
}
