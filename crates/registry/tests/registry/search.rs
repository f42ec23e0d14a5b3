//! Questions and answers.

use std::sync::Arc;

use tgp_contract::Code;
use tgp_registry::{MAX_LIMIT, REUSE, ReuseVerdict};

use crate::support::{Counting, searcher, shop, tool};

#[cfg(feature = "embedded-model")]
#[tokio::test]
async fn a_paraphrase_is_found_and_a_near_miss_is_not_taken_for_it() {
    let searcher = searcher(tgp_registry::embedded(), shop()).await;
    // Question, best tool, verdict, and what the reason must name.
    let cases = [
        ("convert yaml to json", "tools/convert/yaml_to_json.ts", ReuseVerdict::Reuse, "same"),
        ("yaml_to_json", "tools/convert/yaml_to_json.ts", ReuseVerdict::Reuse, "same name"),
        ("tools/convert/yaml_to_json.ts", "tools/convert/yaml_to_json.ts", ReuseVerdict::Reuse, "same name"),
        ("revenue per month", "tools/sales/monthly_revenue.ts", ReuseVerdict::Reuse, "shares: revenue"),
        (
            "distnce between two cordinates",
            "tools/geo/distance.ts",
            ReuseVerdict::Reuse,
            "read `distnce` as `distance`",
        ),
        // At 0.48 the meaning is only related: a claim would be luck.
        (
            "how many words are in this essay",
            "tools/text/word_count.ts",
            ReuseVerdict::Review,
            "related meaning",
        ),
        ("number of words in a text", "tools/text/word_count.ts", ReuseVerdict::Reuse, "meaning"),
        ("JSON to YAML", "tools/convert/yaml_to_json.ts", ReuseVerdict::Forge, "direction reversed"),
        (
            "yearly revenue",
            "tools/sales/monthly_revenue.ts",
            ReuseVerdict::Forge,
            "query says yearly, tool says",
        ),
        (
            "redeem a discount code",
            "tools/marketing/coupon_codes.ts",
            ReuseVerdict::Forge,
            "query asks to redeem",
        ),
        (
            "decrypt a text",
            "tools/security/encrypt_note.ts",
            ReuseVerdict::Forge,
            "query says decrypt, tool says encrypt",
        ),
    ];
    for (query, path, verdict, reason) in cases {
        let found = searcher.search(query, 3).await.unwrap();
        let best = found.results.first().unwrap();
        assert!(best.why.contains(reason), "{query}: {best:?}");
        assert_eq!(best.path.as_str(), path, "{query}: {best:?}");
        // A contradicted tool may still be shown, as long as it is never called the answer.
        let refused = verdict == ReuseVerdict::Forge && found.verdict < ReuseVerdict::Reuse;
        assert!(refused || found.verdict == verdict, "{query}: {best:?}");
        assert!(found.results.is_sorted_by(|left, right| left.score >= right.score));
        assert!((0.0..=1.0).contains(&best.score) && found.pending == 0 && found.warning.is_none());
    }
    let far = searcher.search("book a hotel in Vienna", 3).await.unwrap();
    assert_eq!(far.verdict, ReuseVerdict::Forge, "{far:?}");
}

#[tokio::test]
async fn without_a_model_only_an_exact_name_is_reused() {
    let searcher = searcher(None, shop()).await;
    let named = searcher.search("word count", 5).await.unwrap();
    assert_eq!(
        (named.verdict, named.results[0].path.as_str()),
        (ReuseVerdict::Reuse, "tools/text/word_count.ts")
    );
    for query in [
        "total revenue for each month of a year",
        "count the words of a text",
        "encrypt a text with a passphrase",
    ] {
        let found = searcher.search(query, 5).await.unwrap();
        assert_eq!(found.verdict, ReuseVerdict::Review, "{query}: {found:?}");
        assert!(found.results[0].why.contains("by words only"), "{found:?}");
    }
    assert_eq!(searcher.search("xyzzy", 5).await.unwrap().verdict, ReuseVerdict::Forge);
}

#[tokio::test]
async fn a_name_that_two_tools_have_is_no_answer_by_itself() {
    let tools = vec![
        tool("tools/list/rotate.ts", "Rotate a list."),
        tool("tools/image/rotate.ts", "Rotate a picture."),
    ];
    let found = searcher(None, tools).await.search("rotate", 5).await.unwrap();
    assert_eq!(found.results.len(), 2);
    assert!(found.results.iter().all(|hit| hit.score < REUSE), "{found:?}");
}

#[tokio::test]
async fn an_embedder_that_was_not_fitted_never_says_reuse() {
    let searcher = searcher(Some(Counting::new()), shop()).await;
    for tool in shop() {
        let found = searcher.search(&tool.description, 3).await.unwrap();
        assert_eq!(found.results[0].path, tool.path);
        assert!(found.verdict < ReuseVerdict::Reuse, "{found:?}");
        assert!(found.results[0].why.contains("not calibrated"), "{found:?}");
    }
}

#[tokio::test]
async fn a_copy_is_recognised_and_a_tool_is_not_similar_to_itself() {
    let mut tools = shop();
    tools[0].identifiers = vec!["parse".to_owned(), "indent".to_owned(), "anchors".to_owned()];
    let searcher = searcher(None, tools.clone()).await;
    let mut copy = tools[0].clone();
    copy.path = tgp_contract::RelativePath::new("tools/new/yaml.ts").unwrap();
    let found = searcher.similar(&copy, 3).await.unwrap();
    assert_eq!(
        (found.results[0].path.as_str(), found.results[0].score),
        ("tools/convert/yaml_to_json.ts", 1.0)
    );
    copy.hash = "another".to_owned();
    let found = searcher.similar(&copy, 3).await.unwrap();
    assert_eq!(found.verdict, ReuseVerdict::Reuse, "{found:?}");
    let own = searcher.similar(&tools[0], MAX_LIMIT).await.unwrap();
    assert!(own.results.iter().all(|hit| hit.path != tools[0].path), "{own:?}");
    // Nothing is known of these two, which does not make them equal.
    let (left, right) = (tool("tools/a/x.ts", ""), tool("tools/b/y.ts", ""));
    let found = self::searcher(None, vec![left]).await.similar(&right, 3).await.unwrap();
    assert!(found.verdict < ReuseVerdict::Reuse, "{found:?}");
}

#[tokio::test]
async fn wrong_arguments_are_named_and_hostile_questions_are_answered() {
    let searcher = searcher(tgp_registry::embedded(), shop()).await;
    for (query, limit, field) in
        [("", 5, "query"), (" \n\t", 5, "query"), ("x", 0, "limit"), ("x", MAX_LIMIT + 1, "limit")]
    {
        let error = searcher.search(query, limit).await.unwrap_err();
        assert_eq!((error.code, error.details["field"].as_str()), (Code::Validation, Some(field)));
    }
    let hostile = [
        "a".repeat(100_000),
        "convert csv to json ".repeat(6000),
        "to ".repeat(30_000),
        "\u{1f680}".repeat(5000),
        "\0\u{1b}[31m\u{7f}\r\n".to_owned(),
        "'; DROP TABLE tools; --".to_owned(),
        "\u{202e}nosj".to_owned(),
        "a\u{300}".repeat(20_000),
        "日本語のツール".to_owned(),
        "?!.,;:".to_owned(),
        "12 34 56".to_owned(),
    ];
    for query in hostile {
        let found = searcher.search(&query, MAX_LIMIT).await.unwrap();
        let shown: String = query.chars().take(20).collect();
        assert!(
            found.results.len() <= shop().len() && found.verdict < ReuseVerdict::Reuse,
            "{shown:?}: {found:?}"
        );
        assert!(found.results.iter().all(|hit| hit.score.is_finite()), "{shown:?}");
    }
    let empty =
        self::searcher(tgp_registry::embedded(), Vec::new()).await.search("anything", 5).await.unwrap();
    assert_eq!((empty.results.len(), empty.verdict), (0, ReuseVerdict::Forge));
}

#[tokio::test]
async fn a_failing_embedder_leaves_the_search_by_words() {
    let embedder = Counting::failing_after(0);
    let searcher =
        Arc::new(tgp_registry::Searcher::new(Some(embedder), tgp_registry::Calibration::builtin(), None));
    assert_eq!(searcher.update(shop()).await.unwrap_err().code, Code::Provider);
    let found = searcher.search("count the words of a text", 2).await.unwrap();
    assert_eq!(found.results[0].path.as_str(), "tools/text/word_count.ts");
    assert_eq!(found.pending, shop().len());
    assert!(found.warning.unwrap().contains("the service is tired"));
}
