//! Terms that exclude each other, and verbs that a tool must know: two plain tables, `lexicon.txt` and `verbs.txt`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use crate::words;

static FAMILIES: &str = include_str!("lexicon.txt");
static VERBS: &str = include_str!("verbs.txt");

/// Before one of these a word that could be a noun is a verb: "record the call".
const DETERMINERS: [&str; 16] = [
    "a", "an", "the", "my", "our", "your", "his", "her", "their", "this", "that", "these", "those", "all",
    "every", "two",
];

type Family = usize;
type Group = usize;

pub(crate) struct Lexicon {
    /// Stem, or two stems with a blank between, to its places.
    terms: HashMap<String, Vec<(Family, Group)>>,
    /// Stem to the name of its first group, so that "km" and "kilometre" are one.
    names: HashMap<String, String>,
    verbs: HashMap<String, Vec<Verb>>,
}

struct Verb {
    group: usize,
    asks: VerbPosition,
}

/// When a verb at the beginning of a question counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VerbPosition {
    Always,
    /// It is a noun as often.
    BeforeDeterminer,
    Never,
}

/// Which groups of each family a text names, with the words it used.
#[derive(Debug, Default)]
pub(crate) struct Mentions(BTreeMap<Family, BTreeMap<Group, String>>);

/// "query says yearly, tool says monthly".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    pub(crate) asked: String,
    pub(crate) offered: String,
}

impl Lexicon {
    pub(crate) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut terms: HashMap<String, Vec<(Family, Group)>> = HashMap::new();
        let mut names = HashMap::new();
        for (family, line) in lines(FAMILIES).enumerate() {
            let groups = line.split_once(':').map_or("", |(_, groups)| groups);
            for (group, members) in groups.split('|').enumerate() {
                let name = members.split_whitespace().next().map(words::stem).unwrap_or_default();
                for member in members.split_whitespace() {
                    let stems: Vec<String> = member.split('_').map(words::stem).collect();
                    let key = stems.join(" ");
                    names.entry(key.clone()).or_insert_with(|| name.clone());
                    terms.entry(key).or_default().push((family, group));
                }
            }
        }
        let mut verbs: HashMap<String, Vec<Verb>> = HashMap::new();
        for (group, line) in lines(VERBS).enumerate() {
            for verb in line.split_whitespace() {
                let asks = match verb {
                    _ if verb.starts_with('~') => VerbPosition::Never,
                    _ if verb.ends_with('?') => VerbPosition::BeforeDeterminer,
                    _ => VerbPosition::Always,
                };
                verbs
                    .entry(words::stem(verb.trim_matches(['~', '?'])))
                    .or_default()
                    .push(Verb { group, asks });
            }
        }
        Self { terms, names, verbs }
    }

    pub(crate) fn mentions(&self, words: &[String]) -> Mentions {
        let stems: Vec<String> = words.iter().map(|word| words::stem(word)).collect();
        let mut mentions = Mentions::default();
        let mut note = |key: &str, said: &str| {
            for (family, group) in self.terms.get(key).into_iter().flatten() {
                mentions.0.entry(*family).or_default().entry(*group).or_insert_with(|| said.to_owned());
            }
        };
        for (stem, word) in stems.iter().zip(words) {
            note(stem, word);
        }
        for (pair, said) in stems.windows(2).zip(words.windows(2)) {
            note(&pair.join(" "), &said.join(" "));
        }
        mentions
    }

    /// The name that represents all words of a group.
    pub(crate) fn canonical(&self, stem: &str) -> String {
        self.names.get(stem).cloned().unwrap_or_else(|| stem.to_owned())
    }

    /// Whether the tables give two stems one meaning: "number" and "count", "average" and "mean".
    pub(crate) fn same(&self, left: &str, right: &str) -> bool {
        let name = |stem: &str| self.names.get(stem);
        let groups = |stem: &str| self.verbs.get(stem).into_iter().flatten().map(|verb| verb.group);
        name(left).is_some_and(|left| name(right) == Some(left))
            || groups(left).any(|left| groups(right).any(|right| left == right))
    }

    /// The verb that `query` begins with, when it asks for something that no word of the tool names.
    pub(crate) fn missing_verb<'a>(&self, query: &'a [String], tool: &[String]) -> Option<&'a str> {
        let first = query.first()?;
        let next = query.get(1).map_or("", String::as_str);
        let imperative = DETERMINERS.contains(&next) || words::is_number(next) && !next.is_empty();
        let asked: HashSet<usize> = self
            .verbs
            .get(&words::stem(first))?
            .iter()
            .filter(|verb| {
                verb.asks == VerbPosition::Always || verb.asks == VerbPosition::BeforeDeterminer && imperative
            })
            .map(|verb| verb.group)
            .collect();
        if asked.is_empty() {
            return None;
        }
        let named = tool.iter().filter_map(|word| self.verbs.get(&words::stem(word))).flatten();
        let known = named.map(|verb| verb.group).any(|group| asked.contains(&group));
        (!known).then_some(first)
    }
}

impl Mentions {
    /// Families in which both name something and nothing in common. `aside` is what the tool says elsewhere (its
    /// parameters): it can take a contradiction away, but makes none.
    pub(crate) fn contradictions(&self, tool: &Mentions, aside: &Mentions) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (family, asked) in &self.0 {
            let Some(offered) = tool.0.get(family) else { continue };
            let also = aside.0.get(family);
            let agrees = |group: &Group| {
                offered.contains_key(group) || also.is_some_and(|also| also.contains_key(group))
            };
            if asked.keys().any(agrees) {
                continue;
            }
            if let (Some(asked), Some(offered)) = (asked.values().next(), offered.values().next())
                && seen.insert(asked.clone())
            {
                found.push(Contradiction { asked: asked.clone(), offered: offered.clone() });
            }
        }
        found
    }
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
