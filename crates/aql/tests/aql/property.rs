//! Whatever is thrown at it: no panic, places that exist, and a format that keeps meaning and comments.

use std::sync::LazyLock;

use proptest::prelude::*;
use tgp_aql::{QueryProblems, compile, explain, format};

use crate::golden::{Places, plan_text};
use crate::support::{QueryHost, compiled, golden, rendered};

/// Every source of the golden folders.
static SOURCES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut sources = Vec::new();
    for folder in ["syntax", "recover", "check", "plan", "format", "explain", "shared"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(golden().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let inputs =
            paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "aql"));
        sources.extend(inputs.map(|path| std::fs::read_to_string(path).unwrap()));
    }
    // One with a hundred and fifty problems says nothing that the others do not, slowly.
    sources.retain(|source| source.len() < 3_000);
    sources
});

/// Those that can be parsed, and whose lines can be broken anywhere outside of quotes.
static RIGHT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let right =
        SOURCES.iter().filter(|source| !source.contains("\"\"\"") && format("main.aql", source).is_ok());
    right.cloned().collect()
});

const WORDS: [&str; 68] = [
    "query",
    "type",
    "import",
    "budget",
    "return",
    "else",
    "as",
    "in",
    "and",
    "or",
    "not",
    "true",
    "false",
    "null",
    "agent",
    "tool",
    "exec",
    "graph",
    "sql",
    "merge",
    "map",
    "when",
    "X",
    "a",
    "b",
    "item",
    "fs_read",
    "prompt",
    "path",
    "model",
    "how",
    "after",
    "on_error",
    "default",
    "skip",
    "String",
    "Int",
    "Any",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ".",
    "?",
    "??",
    "|",
    "=",
    "==",
    "<",
    ">=",
    "$a",
    "$",
    "1",
    "-2.5",
    "30s",
    "\"x\"",
    "\"{{a}}\"",
    "\"\"\"",
    "\"",
    "{{",
    "}}",
    "# note\n",
    "\n",
    "\\",
];

/// What long texts are made of: lines of blanks, indentations, and ends of lines of all sorts.
const LINES: [&str; 14] = [
    "\n",
    "\r\n",
    "\r",
    " ",
    "    ",
    "\t",
    "a",
    "\"",
    "\\n",
    "\\u{20}",
    "{{$a}}",
    "{{ $a\n }}",
    "\n      \n",
    "\n  b\n",
];

/// What has to hold for any text.
fn holds(text: &str) -> Result<(), TestCaseError> {
    let first = compile("main.aql", text, &QueryHost::default());
    if let Err(problems) = &first {
        places_exist(problems)?;
    }
    if let Ok(compiled) = &first {
        for plan in &compiled.queries {
            let explanation = explain(plan);
            prop_assert!(explanation.text().contains(&plan.name));
            crate::diagrams::check_mermaid(&explanation.mermaid());
            crate::diagrams::check_dot(&explanation.dot());
        }
    }
    match format("main.aql", text) {
        Err(problems) => {
            places_exist(&problems)?;
            prop_assert!(first.is_err(), "what cannot be parsed was compiled");
        }
        Ok(formatted) => {
            let again = format("main.aql", &formatted);
            let again = again
                .map_err(|problems| TestCaseError::fail(format!("{formatted}\n{}", rendered(&problems))))?;
            prop_assert_eq!(&again, &formatted, "formatting twice is another thing than once:\n{}", text);
            same_meaning(first, compile("main.aql", &formatted, &QueryHost::default()), &formatted)?;
        }
    }
    Ok(())
}

type Outcome = Result<tgp_aql::CompiledQuery, QueryProblems>;

fn same_meaning(one: Outcome, other: Outcome, formatted: &str) -> Result<(), TestCaseError> {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let plans = |compiled: &tgp_aql::CompiledQuery| -> String {
                compiled.queries.iter().map(|plan| plan_text(plan, Places::Hidden)).collect()
            };
            prop_assert_eq!(plans(&one), plans(&other), "{}", formatted);
        }
        (Err(one), Err(other)) if one.problems.len() < 100 => {
            let kinds = |problems: &QueryProblems| {
                let mut kinds: Vec<&str> = problems.problems.iter().map(|problem| problem.kind).collect();
                kinds.sort_unstable();
                kinds.into_iter().map(str::to_owned).collect::<Vec<_>>()
            };
            prop_assert_eq!(kinds(&one), kinds(&other), "{}", formatted);
        }
        (Err(_), Err(_)) => {}
        (Ok(_), Err(problems)) => prop_assert!(false, "{formatted}\n{}", rendered(&problems)),
        (Err(problems), Ok(_)) => prop_assert!(false, "{formatted}\n{}", rendered(&problems)),
    }
    Ok(())
}

fn places_exist(problems: &QueryProblems) -> Result<(), TestCaseError> {
    prop_assert!(!problems.problems.is_empty() && problems.problems.len() <= 100);
    let mut last = None;
    for problem in &problems.problems {
        let spots = problem.labels.iter().map(|(place, end, _)| (place, *end));
        for (place, end) in std::iter::once((&problem.place, problem.end_column)).chain(spots) {
            let source = problems.sources.iter().find(|source| source.path == place.file).unwrap();
            let lines: Vec<&str> = source.text.split('\n').collect();
            prop_assert!((1..=lines.len()).contains(&(place.line as usize)), "{} of {}", place, lines.len());
            let width = lines[place.line as usize - 1].chars().count();
            prop_assert!(
                (1..=width + 1).contains(&(place.column as usize)),
                "{} in {} columns",
                place,
                width
            );
            prop_assert!(
                end > place.column && end as usize <= width + 2,
                "{} to {} in {}",
                place,
                end,
                width
            );
        }
        let file = problems.sources.iter().position(|source| source.path == problem.place.file).unwrap();
        let here = Some((file, problem.place.line, problem.place.column));
        prop_assert!(last <= here, "problems are not sorted");
        last = here;
        prop_assert!(!problem.message.is_empty() && !problem.message.chars().any(char::is_control));
    }
    let error = problems.to_error();
    prop_assert_eq!(error.code, tgp_contract::Code::Validation);
    prop_assert_eq!(error.place_of(), Some(problems.problems[0].place.clone()));
    Ok(())
}

#[derive(Clone, Debug)]
enum Edit {
    Delete(usize, usize),
    Copy(usize, usize, usize),
    Insert(usize, usize),
}

fn edited(source: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = source.chars().collect();
    for edit in edits {
        let length = letters.len().max(1);
        match *edit {
            Edit::Delete(at, count) => {
                let at = at % length;
                letters.drain(at..(at + count).min(letters.len()));
            }
            Edit::Copy(from, count, to) => {
                let from = from % length;
                let piece: Vec<char> = letters.iter().skip(from).take(count).copied().collect();
                let to = to % length;
                letters.splice(to..to, piece);
            }
            Edit::Insert(at, word) => {
                let at = at % length;
                letters.splice(at..at, WORDS[word % WORDS.len()].chars());
            }
        }
    }
    letters.into_iter().collect()
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..4_000_usize, 1..12_usize).prop_map(|(at, count)| Edit::Delete(at, count)),
        (0..4_000_usize, 1..30_usize, 0..4_000_usize)
            .prop_map(|(from, count, to)| Edit::Copy(from, count, to)),
        (0..4_000_usize, 0..WORDS.len()).prop_map(|(at, word)| Edit::Insert(at, word)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        holds(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn words(words in prop::collection::vec((0..WORDS.len(), any::<bool>()), 0..60)) {
        let text: String = words.iter().map(|(word, blank)| format!("{}{}", WORDS[*word], if *blank { " " } else { "" })).collect();
        holds(&text)?;
        holds(&format!("query X($a: String) {{\n {text}\n}}"))?;
        holds(&format!("query X {{ s: merge(x: {text}) }}"))?;
    }

    #[test]
    fn good_sources_with_mistakes(at in any::<prop::sample::Index>(), edits in prop::collection::vec(edit(), 0..4)) {
        let source = &SOURCES[at.index(SOURCES.len())];
        holds(&edited(source, &edits))?;
    }

    #[test]
    fn a_query_is_checked_whatever_stands_before_it(at in any::<prop::sample::Index>(), edits in prop::collection::vec(edit(), 1..3)) {
        let source = edited(&SOURCES[at.index(SOURCES.len())], &edits);
        prop_assume!(format("main.aql", &source).is_err());
        let problems = compiled(&format!("{source}\nquery Whole {{ a: merge(nowhere) }}")).unwrap_err();
        // A text without an end continues into it, and a list of a hundred problems is full.
        let texts = problems.problems.iter().any(|problem| problem.kind.starts_with("unclosed"));
        prop_assume!(!texts && problems.problems.len() < 100);
        let told = problems.problems.iter().any(|problem| problem.message.contains("no step `nowhere`"));
        prop_assert!(told, "{}\n{}", source, rendered(&problems));
    }

    #[test]
    fn long_texts_keep_what_they_say(
        pieces in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..12),
        level in 0..3_usize,
    ) {
        let blanks = "  ".repeat(level);
        let text: String = pieces.concat();
        holds(&format!("query X($a: String) {{\n{blanks}return [1, \"\"\"{text}\"\"\"]\n}}"))?;
        holds(&format!("query X($a: String) {{ a: merge(x: [\n{blanks}\"\"\"\n{text}\n{blanks}\"\"\"\n]) }}"))?;
    }

    #[test]
    fn comments_survive(at in any::<prop::sample::Index>(), places in prop::collection::vec(any::<prop::sample::Index>(), 1..6)) {
        let source = &RIGHT[at.index(RIGHT.len())];
        let blanks: Vec<usize> = blanks_outside_of_texts(source);
        prop_assume!(!blanks.is_empty());
        let mut chosen: Vec<usize> = places.iter().map(|place| blanks[place.index(blanks.len())]).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let mut text = source.clone();
        for (number, at) in chosen.iter().enumerate().rev() {
            text.insert_str(*at, &format!(" #note{number}.\n"));
        }
        // A line break can take a bracket away from what it belongs to; then it is another source.
        prop_assume!(format("main.aql", &text).is_ok());
        let formatted = format("main.aql", &text).unwrap();
        for number in 0..chosen.len() {
            prop_assert_eq!(formatted.matches(&format!("#note{number}.")).count(), 1, "{}\n---\n{}", text, formatted);
        }
        holds(&text)?;
    }
}

fn blanks_outside_of_texts(source: &str) -> Vec<usize> {
    let (mut inside, mut comment, mut blanks) = (false, false, Vec::new());
    let mut escaped = false;
    for (at, letter) in source.char_indices() {
        match letter {
            '\n' => (inside, comment) = (false, false),
            '#' if !inside => comment = true,
            '"' if !comment && !escaped => inside = !inside,
            ' ' if !inside && !comment => blanks.push(at),
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    blanks
}

#[test]
fn every_source_of_the_golden_folders_holds() {
    for source in SOURCES.iter() {
        holds(source).unwrap_or_else(|error| panic!("{source}\n{error}"));
    }
    assert!(SOURCES.iter().filter(|source| compiled(source).is_ok()).count() >= 8);
}
