//! The searcher: keeps the tools, embeds what is new, and answers questions.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tgp_contract::{Code, RelativePath, ToolError, ToolMetadata};

use crate::calibration::Calibration;
use crate::document::{self, Document};
use crate::embed::Embedder;
use crate::features::{Features, QueryFeatures};
use crate::found::{Hit, ReuseVerdict, SearchOutcome};
use crate::library::Library;
use crate::rank::{self, Scale};
use crate::vectors::{MAX_VECTORS, PackedVector, QueryVector, VectorStore};
use crate::{spelling, words};

/// Most hits of one search: a list that an agent can read.
pub const MAX_LIMIT: usize = 50;
/// Texts embedded before their vectors are put to use: about a tenth of a second of work.
const BATCH: usize = 16;
/// Characters of a question that are read. What the caller wants is at the beginning.
const MAX_QUERY_CHARACTERS: usize = 2000;

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    pub tools: usize,
    /// Texts that had no vector yet and got one.
    pub embedded: usize,
}

/// Whether the tool at a path may be found.
pub type Shown<'a> = dyn Fn(&RelativePath) -> bool + Sync + 'a;

/// The tools that may be found.
enum VisibleTools<'s> {
    All(RwLockReadGuard<'s, Library>),
    Some(Box<Library>),
}

impl VisibleTools<'_> {
    fn get(&self) -> &Library {
        match self {
            Self::All(library) => library,
            Self::Some(library) => library,
        }
    }
}

/// The question as it is compared: words that no tool has are taken for the nearest ones that tools have.
fn question(query: &str, library: &Library) -> QueryFeatures {
    let text: String = query.chars().take(MAX_QUERY_CHARACTERS).collect();
    let mut words = words::split(without_path(text.trim()));
    let repairs = spelling::repair(&mut words, library.words());
    let text = if repairs.is_empty() { text } else { words.join(" ") };
    QueryFeatures::new(text, words, repairs)
}

/// Finds tools by what they do. Shared behind an `Arc`; searches continue while an update embeds.
pub struct Searcher {
    embedder: Option<Arc<dyn Embedder>>,
    calibration: Calibration,
    cache_directory: Option<PathBuf>,
    /// Opened by the first update: a kernel that never searches reads no vectors.
    store: tokio::sync::OnceCell<Arc<VectorStore>>,
    library: RwLock<Library>,
    updating: tokio::sync::Mutex<()>,
}

impl Searcher {
    /// Without an embedder the search is by words alone. `cache_directory` is where vectors are kept between runs.
    #[must_use]
    pub fn new(
        embedder: Option<Arc<dyn Embedder>>,
        calibration: Calibration,
        cache_directory: Option<PathBuf>,
    ) -> Self {
        Self {
            embedder,
            calibration,
            cache_directory,
            store: tokio::sync::OnceCell::new(),
            library: RwLock::default(),
            updating: tokio::sync::Mutex::new(()),
        }
    }

    /// Takes `tools` for all there are, and embeds the texts that are new. The tools can be found by words at once,
    /// and by meaning as their vectors come; dropping the future loses only what was not saved yet.
    ///
    /// # Errors
    /// What the embedder fails with; the tools stay findable by words.
    pub async fn update(&self, tools: impl IntoIterator<Item = ToolMetadata>) -> Result<Updated, ToolError> {
        let tools: Vec<Arc<ToolMetadata>> = tools.into_iter().take(MAX_VECTORS).map(Arc::new).collect();
        let _one_at_a_time = self.updating.lock().await;
        let count = tools.len();
        let mut library = Library::default();
        let mut texts = self.add(&mut library, tools);
        let Some(embedder) = self.embedder.as_ref() else {
            *self.write() = library;
            return Ok(Updated { tools: count, embedded: 0 });
        };
        let store = self.store(embedder.fingerprint()).await?;
        library.set_vectors(&known(&store, &mut texts));
        *self.write() = library;
        let embedded = texts.len();
        let result = self.embed(embedder.as_ref(), &store, texts).await;
        self.save(&store).await?;
        result.map(|()| Updated { tools: count, embedded })
    }

    /// Adds tools to those there are, each in the place of the one with its path, and embeds the texts that are new.
    /// The others are not touched, so that one more tool costs one embedding. An update that still embeds goes first.
    ///
    /// # Errors
    /// `EVALIDATION` when there would be more than a search can hold, with nothing added; else as
    /// [`Searcher::update`].
    pub async fn insert(&self, tools: impl IntoIterator<Item = ToolMetadata>) -> Result<Updated, ToolError> {
        let tools: Vec<Arc<ToolMetadata>> = tools.into_iter().take(MAX_VECTORS + 1).map(Arc::new).collect();
        let _one_at_a_time = self.updating.lock().await;
        let count = tools.len();
        let mut texts = {
            let mut library = self.write();
            if library.len_with(&tools) > MAX_VECTORS {
                return Err(ToolError::new(
                    Code::Validation,
                    format!("a registry holds at most {MAX_VECTORS} tools"),
                )
                .help("remove unused tools"));
            }
            self.add(&mut library, tools)
        };
        let Some(embedder) = self.embedder.as_ref() else {
            return Ok(Updated { tools: count, embedded: 0 });
        };
        let store = self.store(embedder.fingerprint()).await?;
        let known = known(&store, &mut texts);
        self.write().set_vectors(&known);
        let embedded = texts.len();
        let result = self.embed(embedder.as_ref(), &store, texts).await;
        if store.is_behind() {
            self.save(&store).await?;
        }
        result.map(|()| Updated { tools: count, embedded })
    }

    /// Forgets the tool at `path`; says whether there was one. Its vector stays in the cache, as it may come back.
    pub async fn remove(&self, path: &RelativePath) -> bool {
        let _one_at_a_time = self.updating.lock().await;
        self.write().remove(path)
    }

    /// Puts tools into a library. Returns the texts to embed, by the keys of their vectors.
    fn add(&self, library: &mut Library, tools: Vec<Arc<ToolMetadata>>) -> HashMap<String, String> {
        let fingerprint = self.embedder.as_ref().map_or("", |embedder| embedder.fingerprint());
        let mut texts = HashMap::new();
        for tool in tools {
            let document = Document::new(&tool);
            let key = document::vector_key(fingerprint, &document.text);
            library.insert(tool, &document, key.clone());
            texts.insert(key, document.text);
        }
        texts
    }

    /// The best `limit` tools for `query`.
    ///
    /// # Errors
    /// `EVALIDATION` when there is no question, or the limit is not between 1 and [`MAX_LIMIT`].
    pub async fn search(&self, query: &str, limit: usize) -> Result<SearchOutcome, ToolError> {
        self.search_among(query, limit, &|_| true).await
    }

    /// The same among the tools that `shows` takes. The others are left out before anything is compared, so that
    /// neither the order nor a score depends on them.
    ///
    /// # Errors
    /// As [`Searcher::search`].
    pub async fn search_among(
        &self,
        query: &str,
        limit: usize,
        shows: &Shown<'_>,
    ) -> Result<SearchOutcome, ToolError> {
        check(query, limit)?;
        let question = question(query, self.seen(shows).get());
        let (probe, warning) = self.probe(&question.text).await;
        let seen = self.seen(shows);
        let library = seen.get();
        let candidates = rank::candidates(library, &question, probe.as_ref(), None);
        let unique = candidates.iter().filter(|candidate| candidate.is_named()).count() == 1;
        let scale = self.scale();
        let hits = candidates.iter().map(|candidate| candidate.hit(&question, &scale, unique)).collect();
        Ok(found(hits, limit, self.pending(library), warning))
    }

    /// The tools that do what `tool` does, without itself: what a newly written one might repeat.
    ///
    /// # Errors
    /// `EVALIDATION` when the limit is not between 1 and [`MAX_LIMIT`].
    pub async fn similar(&self, tool: &ToolMetadata, limit: usize) -> Result<SearchOutcome, ToolError> {
        self.similar_among(tool, limit, &|_| true).await
    }

    /// The same among the tools that `shows` takes, see [`Searcher::search_among`].
    ///
    /// # Errors
    /// As [`Searcher::similar`].
    pub async fn similar_among(
        &self,
        tool: &ToolMetadata,
        limit: usize,
        shows: &Shown<'_>,
    ) -> Result<SearchOutcome, ToolError> {
        check(&tool.name, limit)?;
        let document = Document::new(tool);
        let described: String = tool.description.chars().take(MAX_QUERY_CHARACTERS).collect();
        let words = words::split(&described);
        let question = if words.is_empty() {
            QueryFeatures::new(document.text, document.told, Vec::new())
        } else {
            QueryFeatures::new(format!("{}: {described}", document.name), words, Vec::new())
        };
        let (probe, warning) = self.probe(&question.text).await;
        let seen = self.seen(shows);
        let library = seen.get();
        let scale = self.scale();
        let mut hits = rank::copies(library, tool);
        let copied: HashSet<RelativePath> = hits.iter().map(|hit| hit.path.clone()).collect();
        let candidates = rank::candidates(library, &question, probe.as_ref(), Some(&tool.path));
        let others = candidates.iter().filter(|candidate| !copied.contains(&candidate.entry.tool.path));
        hits.extend(others.map(|candidate| candidate.hit(&question, &scale, false)));
        Ok(found(hits, limit, self.pending(library), warning))
    }

    /// The best tool for a question with its evidence, for fitting.
    ///
    /// # Errors
    /// What the embedder fails with.
    pub async fn best_evidence(&self, query: &str) -> Result<Option<(RelativePath, Features)>, ToolError> {
        let question = question(query, &self.read());
        let (probe, warning) = self.probe(&question.text).await;
        if let Some(warning) = warning {
            return Err(ToolError::new(Code::Provider, warning));
        }
        let library = self.read();
        let candidates = rank::candidates(&library, &question, probe.as_ref(), None);
        Ok(candidates.first().map(|best| (best.entry.tool.path.clone(), best.features())))
    }

    /// The tools that `shows` takes.
    fn seen(&self, shows: &Shown<'_>) -> VisibleTools<'_> {
        let library = self.read();
        let is_shown = |entry: &crate::library::Entry| shows(&entry.tool.path);
        if library.entries().iter().all(is_shown) {
            return VisibleTools::All(library);
        }
        VisibleTools::Some(Box::new(library.only(is_shown)))
    }

    /// The question's vector. A service that fails must not stop the search: it then goes by words, and says so.
    async fn probe(&self, text: &str) -> (Option<QueryVector>, Option<String>) {
        let Some(embedder) = &self.embedder else { return (None, None) };
        match embedder.embed(&[text.to_owned()]).await {
            Ok(vectors) => (vectors.first().and_then(|vector| QueryVector::new(vector)), None),
            Err(error) => (None, Some(format!("searched by words only: {}", error.message))),
        }
    }

    async fn embed(
        &self,
        embedder: &dyn Embedder,
        store: &Arc<VectorStore>,
        texts: HashMap<String, String>,
    ) -> Result<(), ToolError> {
        let mut texts: Vec<(String, String)> = texts.into_iter().collect();
        texts.sort();
        for batch in texts.chunks(BATCH) {
            let wanted: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            let vectors = embedder.embed(&wanted).await?;
            let mut packed = HashMap::new();
            for ((key, _), vector) in batch.iter().zip(&vectors) {
                if let Some(vector) = PackedVector::new(vector) {
                    store.put(key.clone(), vector.clone());
                    packed.insert(key.clone(), vector);
                }
            }
            self.write().set_vectors(&packed);
            if store.wants_saving() {
                self.save(store).await?;
            }
        }
        Ok(())
    }

    async fn save(&self, store: &Arc<VectorStore>) -> Result<(), ToolError> {
        let used: HashSet<String> = self.read().entries().iter().map(|entry| entry.key.clone()).collect();
        let store = Arc::clone(store);
        // A cache that cannot be written costs time at the next start, and nothing else.
        let _ = tokio::task::spawn_blocking(move || store.save(&used))
            .await
            .map_err(|error| ToolError::new(Code::Internal, format!("vectors were not saved: {error}")))?;
        Ok(())
    }

    async fn store(&self, fingerprint: &str) -> Result<Arc<VectorStore>, ToolError> {
        let opened = self.store.get_or_try_init(|| async {
            let (directory, fingerprint) = (self.cache_directory.clone(), fingerprint.to_owned());
            tokio::task::spawn_blocking(move || {
                Arc::new(VectorStore::open(directory.as_deref(), &fingerprint))
            })
            .await
        });
        opened
            .await
            .cloned()
            .map_err(|error| ToolError::new(Code::Internal, format!("vectors were not read: {error}")))
    }

    fn scale(&self) -> Scale<'_> {
        let fingerprint = self.embedder.as_ref().map(|embedder| embedder.fingerprint());
        Scale { calibration: &self.calibration, fingerprint }
    }

    fn pending(&self, library: &Library) -> usize {
        if self.embedder.is_some() { library.pending() } else { 0 }
    }

    fn read(&self) -> RwLockReadGuard<'_, Library> {
        self.library.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Library> {
        self.library.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The vectors that the store has, and whose texts need not be embedded.
fn known(store: &VectorStore, texts: &mut HashMap<String, String>) -> HashMap<String, PackedVector> {
    let known: HashMap<String, PackedVector> =
        texts.keys().filter_map(|key| Some((key.clone(), store.get(key)?))).collect();
    texts.retain(|key, _| !known.contains_key(key));
    known
}

fn check(query: &str, limit: usize) -> Result<(), ToolError> {
    if query.trim().is_empty() {
        return Err(ToolError::new(Code::Validation, "the query is empty")
            .detail("field", "query")
            .help("say what the tool should do, such as `convert csv to json`"));
    }
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError::new(
            Code::Validation,
            format!("limit {limit} is not between 1 and {MAX_LIMIT}"),
        )
        .detail("field", "limit"));
    }
    Ok(())
}

/// The name in `tools/math/fib.ts`; any other text as it is.
fn without_path(query: &str) -> &str {
    let is_path = query.starts_with("tools/") && !query.contains(char::is_whitespace);
    let name = if is_path { query.rsplit('/').next().unwrap_or(query) } else { query };
    if is_path { name.split('.').next().unwrap_or(name) } else { name }
}

/// Hits come best first by rank, which orders better than the score does. No score may be above a better one.
fn found(mut hits: Vec<Hit>, limit: usize, pending: usize, warning: Option<String>) -> SearchOutcome {
    hits.truncate(limit);
    let mut ceiling = 1.0_f32;
    for hit in &mut hits {
        ceiling = ceiling.min(hit.score);
        hit.score = ceiling;
        hit.verdict = ReuseVerdict::of(ceiling);
    }
    let verdict = hits.first().map_or(ReuseVerdict::Forge, |hit| hit.verdict);
    SearchOutcome { results: hits, verdict, pending, warning }
}
