//! When the search claims that a tool does it, and when it must not.

#[cfg(feature = "embedded-model")]
use tgp_contract::ToolMetadata;
use tgp_registry::{Features, REUSE, ReuseVerdict};

use crate::support::{searcher, shop, tool};

#[tokio::test]
async fn a_tool_that_does_not_compile_is_never_the_answer() {
    for embedder in [None, tgp_registry::embedded()] {
        let mut tools = shop();
        tools[0].problem = Some("unexpected token".to_owned());
        tools[0].identifiers = vec!["parse".to_owned(), "indent".to_owned(), "anchors".to_owned()];
        let broken = tools[0].clone();
        let searcher = searcher(embedder, tools.clone()).await;
        for query in ["yaml_to_json", "tools/convert/yaml_to_json.ts", "Convert a YAML document to JSON."] {
            let found = searcher.search(query, 3).await.unwrap();
            assert_eq!(found.results[0].path, broken.path, "{query}: {found:?}");
            assert_eq!(found.verdict, ReuseVerdict::Review, "{query}: {found:?}");
            assert!(found.results[0].why.starts_with("it does not compile; "), "{query}: {found:?}");
        }
        // Not even a copy of it is a duplicate of something that works.
        let mut copy = broken.clone();
        copy.path = tgp_contract::RelativePath::new("tools/new/yaml_to_json.ts").unwrap();
        copy.problem = None;
        let found = searcher.similar(&copy, 3).await.unwrap();
        assert_eq!(
            (found.verdict, &found.results[0].path),
            (ReuseVerdict::Review, &broken.path),
            "{found:?}"
        );
        // A working tool of that name is the answer, and the broken one takes nothing from it.
        searcher.insert([copy.clone()]).await.unwrap();
        let found = searcher.search("yaml_to_json", 3).await.unwrap();
        assert_eq!((found.verdict, &found.results[0].path), (ReuseVerdict::Reuse, &copy.path), "{found:?}");
    }
}

#[tokio::test]
async fn numbers_that_say_what_is_done_must_agree() {
    // What the tool says, what is asked, and the contradiction that must be named.
    let cases = [
        ("Adds one to a number.", "Adds two to a number.", Some("query says two, tool says one")),
        ("Increase a value by one.", "increase a value by 2", Some("query says 2, tool says one")),
        ("Triples a value.", "double a value", Some("query says double, tool says triples")),
        (
            "First five primes as a list.",
            "first ten primes",
            None, // They share the first.
        ),
        (
            "Second largest number of a list.",
            "third largest number",
            Some("query says third, tool says second"),
        ),
        ("Half of an amount.", "hundred times an amount", Some("query says hundred, tool says half")),
        ("Budget 2023 as a table.", "budget 2024", Some("query says 2024, tool says 2023")),
        // One text alone names a number: a value, or nothing to compare.
        ("Add a number to a counter.", "add 7 to a counter", None),
        ("Holidays of a country.", "holidays 2024", None),
        ("Next two holidays of a country.", "holidays 2024", None),
        ("Adds one to a number.", "increment a number", None),
        // The values are as many as the tool takes.
        ("Adds two numbers.", "add 5 and 7", None),
        ("Adds two numbers.", "add 2 numbers", None),
        // No numbers, though they look like some.
        ("Adds two numbers.", "pick one of the numbers to add", None),
        ("Adds two numbers.", "add numbers one by one", None),
        ("Two requests a time.", "requests per second", None),
        ("Two frames a time.", "a second frame", None),
        // Of what it is done is not what is done.
        ("Distance between two coordinates.", "distance between 48 and 16", None),
    ];
    for (description, query, expected) in cases {
        let found =
            searcher(None, vec![tool("tools/a/thing.ts", description)]).await.search(query, 1).await.unwrap();
        let why = found.results.first().map_or("", |hit| hit.why.as_str());
        match expected {
            Some(expected) => assert!(why.contains(expected), "{description} / {query}: {why}"),
            None => assert!(!why.contains("query says"), "{description} / {query}: {why}"),
        }
    }
}

#[cfg(feature = "embedded-model")]
#[tokio::test]
async fn a_tool_with_another_number_is_no_duplicate() {
    let searcher =
        searcher(tgp_registry::embedded(), vec![tool("tools/math/add_one.ts", "Adds one to a number.")])
            .await;
    let similar = async |tool: ToolMetadata| searcher.similar(&tool, 1).await.unwrap();
    let other = similar(tool("tools/math/add_two.ts", "Adds two to a number.")).await;
    assert!(other.verdict < ReuseVerdict::Reuse, "{other:?}");
    let same = similar(tool("tools/math/plus_one.ts", "Adds one to a given number.")).await;
    assert_eq!(same.verdict, ReuseVerdict::Reuse, "{same:?}");
}

#[cfg(feature = "embedded-model")]
#[tokio::test]
async fn a_word_that_is_another_word_is_not_repaired() {
    let tools = vec![
        tool("tools/files/read_lines.ts", "Read the lines of a file."),
        tool("tools/text/color.ts", "Name of a color."),
    ];
    let searcher = searcher(tgp_registry::embedded(), tools).await;
    // What is asked, and the repair, where it is one.
    for (query, repair) in [
        ("write a readme", None),
        ("reader of a file", None),
        ("colour of a wall", None),
        ("nmae of a color", Some("read `nmae` as `name`")),
        ("linnes of a file", Some("read `linnes` as `lines`")),
    ] {
        let found = searcher.search(query, 1).await.unwrap();
        let why = &found.results[0].why;
        assert_eq!(why.contains("read `"), repair.is_some(), "{query}: {why}");
        assert!(repair.is_none_or(|repair| why.contains(repair)), "{query}: {why}");
    }
}

#[test]
fn neither_a_distant_meaning_nor_a_missing_word_is_outweighed() {
    let coefficients = *tgp_registry::Calibration::builtin().get(tgp_registry::EMBEDDED_FINGERPRINT).unwrap();
    let best = Features { similarity: 1.0, lead: 0.1, contradictions: 0.0, weakest: 1.0 };
    assert!(coefficients.score(&best) > 0.95);
    for features in [
        Features { similarity: 0.49, ..best },
        Features { weakest: 0.6, ..best },
        Features { contradictions: 1.0, ..best },
    ] {
        let score = coefficients.score(&features);
        assert!(score < REUSE && score > 0.3, "{features:?}: {score}");
    }
}
