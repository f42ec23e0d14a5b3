//! How well the search finds a tool that is there, and says so when none is: on a labelled set it was not tuned on.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tgp_bench::training::LabelledSet;
use tgp_contract::{RelativePath, ToolError, ToolMetadata, canonical};
use tgp_registry::{Calibration, Embedder, REUSE, Searcher};

use crate::report::{Budget, Row, Section, Side, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;
use crate::trades::TradeTool;

const SET: &[u8] = include_bytes!("../fixtures/reuse.json");
const LARGE: usize = 10_000;
/// Questions, and added tools, of a smoke test.
const SMOKE_QUERIES: usize = 10;
const SHOWN: usize = 5;
const BUDGET_MS: f64 = 15.0;

/// What each number must reach, from the issue.
const PRECISION: f64 = 0.95;
const RECALL_SMALL: f64 = 0.95;
const RECALL_LARGE: f64 = 0.87;

/// Where vectors are kept between runs: beside the build that is measured, so that only the first run embeds.
fn cache() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.ancestors().nth(2)?.join("tgp-bench-reuse"))
}

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let mut set = LabelledSet::parse(SET).context("the labelled set")?;
    if settings.is_smoke() {
        set.queries.truncate(SMOKE_QUERIES);
    }
    let embedder = tgp_registry::embedded().context("this build has no embedded model")?;
    let remembering: Arc<Remembering> = Arc::new(Remembering { inner: embedder, known: Mutex::default() });
    let searcher = Searcher::new(Some(remembering.clone()), Calibration::builtin(), cache());
    let mut tools = set.metadata().context("the set's tools")?;
    searcher.update(tools.clone()).await.context("the set's vectors")?;
    let small = evaluate(&searcher, &set).await?;
    small.note(section, tools.len(), RECALL_SMALL);

    let large = settings.or_smoke(LARGE, tools.len() + SMOKE_QUERIES);
    tools.extend(distractors(large.saturating_sub(tools.len()))?);
    let started = Instant::now();
    let updated = searcher.update(tools.clone()).await.context("the vectors of the large registry")?;
    let took = started.elapsed();
    let large = evaluate(&searcher, &set).await?;
    large.note(section, tools.len(), RECALL_LARGE);
    section.note(format!(
        "{} texts were embedded in {:.1} s; the others were cached",
        updated.embedded,
        took.as_secs_f64()
    ));

    let row = |what: &str| Row::new(what, Unit::Milliseconds);
    let whole = times(&searcher, &set, Some(&remembering)).await?;
    // The first pass fills the memory of the embedder, so that the second one is without it.
    times(&searcher, &set, None).await?;
    let bare = times(&searcher, &set, None).await?;
    let what = format!("search in {} tools, embedding of the query included, p50", tools.len());
    section.row(row(&what).ours(whole.median()).budget(Budget::Below(BUDGET_MS)));
    section.row(row("the same, p95").ours(whole.percentile(95)));
    section.row(row("scan, evidence and score without the embedding, p50").ours(bare.median()));
    section.contender("search", Side::Ours, &format!("{} tools, with the embedding", tools.len()), &whole);
    section.contender("search", Side::Ours, "without the embedding", &bare);
    Ok(())
}

/// Time of every question of the set. With `forget` each is embedded again.
async fn times(searcher: &Searcher, set: &LabelledSet, forget: Option<&Remembering>) -> Result<Samples> {
    let mut times: Vec<Duration> = Vec::with_capacity(set.queries.len());
    for query in &set.queries {
        if let Some(embedder) = forget {
            embedder.forget();
        }
        let started = Instant::now();
        searcher.search(&query.query, SHOWN).await?;
        times.push(started.elapsed());
    }
    Ok(times.into_iter().collect())
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    queries: usize,
    answered: usize,
    first: usize,
    shown: usize,
    reuse: usize,
    right: usize,
}

#[derive(Debug, Default)]
struct Quality {
    kinds: BTreeMap<String, Count>,
    wrong: Vec<String>,
}

async fn evaluate(searcher: &Searcher, set: &LabelledSet) -> Result<Quality> {
    let mut quality = Quality::default();
    for query in &set.queries {
        let found = searcher.search(&query.query, SHOWN).await?;
        let place = found.results.iter().position(|hit| set.answers(query, &hit.path));
        let count = quality.kinds.entry(query.kind.clone()).or_default();
        count.queries += 1;
        count.answered += usize::from(!query.answers.is_empty());
        count.first += usize::from(place == Some(0));
        count.shown += usize::from(place.is_some());
        if let Some(best) = found.results.first().filter(|best| best.score >= REUSE) {
            count.reuse += 1;
            count.right += usize::from(place == Some(0));
            if place != Some(0) {
                quality
                    .wrong
                    .push(format!("`{}` => {} ({:.2}: {})", query.query, best.path, best.score, best.why));
            }
        }
    }
    Ok(quality)
}

impl Quality {
    fn total(&self, wanted: impl Fn(&Count) -> bool) -> Count {
        self.kinds.values().filter(|count| wanted(count)).fold(Count::default(), |sum, count| Count {
            queries: sum.queries + count.queries,
            answered: sum.answered + count.answered,
            first: sum.first + count.first,
            shown: sum.shown + count.shown,
            reuse: sum.reuse + count.reuse,
            right: sum.right + count.right,
        })
    }

    fn note(&self, section: &mut Section, tools: usize, recall: f64) {
        let all = self.total(|_| true);
        let none = self.total(|count| count.answered == 0);
        let holds = |value: f64, least: f64| if value >= least { "holds" } else { "misses" };
        let precision = share(all.right, all.reuse);
        let shown = share(all.shown, all.answered);
        section.note(format!(
            "{tools} tools, {} queries with an answer, {} without",
            all.answered, none.queries
        ));
        section.note(format!("  recall@1                 {:.3}", share(all.first, all.answered)));
        section.note(format!("  recall@5                 {shown:.3}  >= {recall}  {}", holds(shown, recall)));
        section.note(format!(
            "  precision at {REUSE}        {precision:.3}  >= {PRECISION}  {}  ({} of {})",
            holds(precision, PRECISION),
            all.right,
            all.reuse
        ));
        section.note(format!("  coverage at {REUSE}         {:.3}", share(all.right, all.answered)));
        section.note(format!("  wrong reuse without one  {:.3}", share(none.reuse, none.queries)));
        for (kind, count) in &self.kinds {
            let recalls = if count.answered > 0 {
                let (first, shown) = (share(count.first, count.answered), share(count.shown, count.answered));
                format!("recall@1 {first:.3}  recall@5 {shown:.3}  ")
            } else {
                String::new()
            };
            let wrong = count.reuse - count.right;
            section.note(format!(
                "    {kind:9} {:3}  {recalls}reuse right {} wrong {wrong}",
                count.queries, count.right
            ));
        }
        self.wrong.iter().for_each(|line| section.note(format!("    wrong: {line}")));
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Tools of other trades, the same on every machine.
fn distractors(count: usize) -> Result<Vec<ToolMetadata>> {
    let tools = (0..count.min(TradeTool::COUNT)).map(|number| {
        let tool = TradeTool::new(number);
        let path = RelativePath::new(&tool.path()).map_err(ToolError::from)?;
        Ok(ToolMetadata {
            declared: None,
            hash: canonical::sha256_hex(path.as_str().as_bytes()),
            path,
            name: tool.name(),
            description: tool.description(),
            signature: "(args: { id: string }) => any".to_owned(),
            parameters: serde_json::json!({ "type": "object", "properties": { "id": { "type": "string" } } }),
            result: serde_json::json!(true),
            imports: Vec::new(),
            exports: Vec::new(),
            identifiers: Vec::new(),
            problem: None,
        })
    });
    tools.collect()
}

/// The embedded model with a memory, so that the time of a search can be distinguished from that of the
/// embedding.
struct Remembering {
    inner: Arc<dyn Embedder>,
    known: Mutex<HashMap<String, Vec<f32>>>,
}

impl Remembering {
    fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn recall(&self, texts: &[String]) -> Option<Vec<Vec<f32>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().map(|text| known.get(text).cloned()).collect()
    }
}

#[async_trait::async_trait]
impl Embedder for Remembering {
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }

    fn dimensions(&self) -> Option<usize> {
        self.inner.dimensions()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        if let Some(vectors) = self.recall(texts) {
            return Ok(vectors);
        }
        let vectors = self.inner.embed(texts).await?;
        // Only questions come one by one; the tools are in the cache of the searcher.
        if let ([text], [vector]) = (texts, vectors.as_slice()) {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone(), vector.clone());
        }
        Ok(vectors)
    }
}
