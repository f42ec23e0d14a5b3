//! Tools that come and go one by one: the same as all at once, at the cost of one.

use std::sync::Arc;

use proptest::prelude::*;
use tgp_contract::{RelativePath, ToolMetadata};
use tgp_registry::{Calibration, Embedder, SearchOutcome, Searcher};

use crate::support::{Counting, searcher, shop, tool};

const VERBS: [&str; 4] = ["count", "sort", "merge", "print"];
const THINGS: [&str; 4] = ["words", "invoices", "orders", "photos"];
const PLACES: usize = 6;

fn some_tool(place: usize, verb: usize, thing: usize) -> ToolMetadata {
    let (verb, thing) = (VERBS[verb], THINGS[thing]);
    tool(&format!("tools/a/t{place}.ts"), &format!("{verb} the {thing} of a shop"))
}

async fn answers(searcher: &Searcher) -> Vec<SearchOutcome> {
    let mut answers = Vec::new();
    for query in ["count words", "sort the invoices of a shop", "prnt photos", "t3", "merge"] {
        answers.push(searcher.search(query, 10).await.unwrap());
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn inserts_and_removals_equal_an_update_with_all(
        with_model in any::<bool>(),
        first in prop::collection::vec((0..PLACES, 0..4_usize, 0..4_usize), 0..5),
        steps in prop::collection::vec((any::<bool>(), 0..PLACES, 0..4_usize, 0..4_usize), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let embedder = || with_model.then(|| Counting::new() as Arc<dyn Embedder>);
            let mut expected = std::collections::BTreeMap::new();
            for (place, verb, thing) in first {
                let tool = some_tool(place, verb, thing);
                expected.insert(tool.path.clone(), tool);
            }
            let grown = searcher(embedder(), expected.values().cloned().collect()).await;
            for (inserts, place, verb, thing) in steps {
                let tool = some_tool(place, verb, thing);
                if inserts {
                    grown.insert([tool.clone()]).await.unwrap();
                    expected.insert(tool.path.clone(), tool);
                } else {
                    assert_eq!(grown.remove(&tool.path).await, expected.remove(&tool.path).is_some());
                }
            }
            let whole = searcher(embedder(), expected.into_values().collect()).await;
            assert_eq!(answers(&grown).await, answers(&whole).await);
        });
    }
}

#[tokio::test]
async fn only_the_new_tool_is_embedded_and_it_is_found_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let embedder = Counting::new();
    let state = Some(directory.path().to_owned());
    let searcher = Searcher::new(Some(embedder.clone()), Calibration::builtin(), state.clone());
    searcher.update(shop()).await.unwrap();
    let before = embedder.count();
    let new = tool("tools/new/one.ts", "Something new.");
    assert_eq!(searcher.insert([new.clone()]).await.unwrap().embedded, 1);
    assert_eq!(embedder.count(), before + 1);
    // The same text again, and one that comes back, have their vectors.
    assert_eq!(searcher.insert([new.clone()]).await.unwrap().embedded, 0);
    assert!(searcher.remove(&new.path).await);
    assert!(!searcher.remove(&new.path).await);
    assert_eq!(searcher.insert([new.clone()]).await.unwrap().embedded, 0);
    assert_eq!(searcher.search("something new", 1).await.unwrap().results[0].path, new.path);
    let again = Searcher::new(Some(Counting::new()), Calibration::builtin(), state);
    assert_eq!(again.update([new]).await.unwrap().embedded, 0, "an insert into a small registry is saved");
}

#[tokio::test]
async fn an_insert_that_cannot_be_embedded_is_found_by_words() {
    let searcher = searcher(None, Vec::new()).await;
    searcher.insert(shop()).await.unwrap();
    let gone = RelativePath::new("tools/geo/distance.ts").unwrap();
    assert!(searcher.remove(&gone).await);
    let found = searcher.search("great-circle distance", 5).await.unwrap();
    assert!(found.results.iter().all(|hit| hit.path != gone), "{found:?}");
    let tired = Searcher::new(Some(Counting::failing_after(0)), Calibration::builtin(), None);
    assert!(tired.insert(shop()).await.is_err());
    let found = tired.search("count the words of a text", 1).await.unwrap();
    assert_eq!((found.results[0].path.as_str(), found.pending), ("tools/text/word_count.ts", shop().len()));
}
