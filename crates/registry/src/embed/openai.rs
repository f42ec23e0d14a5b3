//! A service with the `/embeddings` call that many providers share.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, ToolError, canonical};
use tokio::sync::OnceCell;
use url::Url;

use super::{Embedder, MAX_DIMENSIONS};

/// A batch of short texts is answered in a second or two; a hung service must not hold a search longer.
const TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Texts in one request: below the cap of every provider known.
const BATCH: usize = 64;
/// A batch of the largest vectors as JSON text stays below this.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Characters of one text that are sent: services refuse long inputs, and the rest of a tool's text says little.
const MAX_TEXT_CHARACTERS: usize = 8000;
/// How much of a service's own error message is passed on.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// A secret that shows itself nowhere.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(..)")
    }
}

/// `POST {base_url}/embeddings` with a model name and a bearer key.
#[derive(Debug)]
pub struct OpenAiCompatible {
    endpoint: Url,
    model: String,
    api_key: Option<ApiKey>,
    fingerprint: String,
    dimensions: OnceLock<usize>,
    client: OnceCell<reqwest::Client>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: Vec<String>,
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalDetail,
}

#[derive(Deserialize)]
struct RefusalDetail {
    message: String,
}

impl OpenAiCompatible {
    /// `base_url` is what the provider documents, such as `http://localhost:11434/v1`.
    ///
    /// # Errors
    /// `ECONFIG` when it is no http or https URL, or carries credentials.
    pub fn new(base_url: &str, model: impl Into<String>, api_key: Option<ApiKey>) -> Result<Self, ToolError> {
        let wrong = |why: &str| {
            ToolError::new(Code::Config, format!("the base URL of the embeddings service {why}"))
                .help("write a URL such as `http://localhost:11434/v1`, and the key in its own setting")
        };
        let mut endpoint = Url::parse(base_url).map_err(|error| wrong(&format!("is no URL: {error}")))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(wrong("carries a user or a password"));
        }
        endpoint.path_segments_mut().map_err(|()| wrong("has no path"))?.pop_if_empty().push("embeddings");
        let model = model.into();
        let fingerprint = fingerprint_of(&endpoint, &model);
        Ok(Self {
            endpoint,
            model,
            api_key,
            fingerprint,
            dimensions: OnceLock::new(),
            client: OnceCell::new(),
        })
    }

    async fn client(&self) -> Result<&reqwest::Client, ToolError> {
        self.client
            .get_or_try_init(|| async {
                // The library panics without a process-wide provider; a second call loses the race.
                if rustls::crypto::CryptoProvider::get_default().is_none() {
                    let _ = rustls::crypto::ring::default_provider().install_default();
                }
                let plain = self.endpoint.scheme() == "http";
                // The root certificates of the system are read from many files.
                tokio::task::spawn_blocking(move || {
                    let builder = reqwest::Client::builder()
                        .tls_backend_rustls()
                        .no_proxy()
                        .redirect(reqwest::redirect::Policy::none())
                        .user_agent(concat!("tgp/", env!("CARGO_PKG_VERSION")))
                        .connect_timeout(CONNECT_TIMEOUT)
                        .timeout(TIMEOUT);
                    if plain { builder.tls_certs_only([]) } else { builder.https_only(true) }.build()
                })
                .await
                .map_err(|error| self.failed(&error.to_string()))?
                .map_err(|error| self.failed(&root_cause(&error)))
            })
            .await
    }

    async fn embed_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        let shortened = |text: &String| text.chars().take(MAX_TEXT_CHARACTERS).collect::<String>();
        let request = Request {
            model: &self.model,
            input: texts.iter().map(shortened).collect(),
            encoding_format: "float",
        };
        let body = serde_json::to_vec(&request).map_err(|error| self.failed(&error.to_string()))?;
        let mut outgoing = self
            .client()
            .await?
            .post(self.endpoint.clone())
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .header(reqwest::header::ACCEPT_ENCODING, "identity")
            .body(body);
        if let Some(ApiKey(key)) = &self.api_key {
            outgoing = outgoing.bearer_auth(key);
        }
        let response = outgoing.send().await.map_err(|error| self.failed(&root_cause(&error)))?;
        let status = response.status();
        let body = self.receive(response).await?;
        if !status.is_success() {
            return Err(self.refused(status.as_u16(), &body));
        }
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|error| self.failed(&format!("its answer is not understood: {error}")))?;
        self.in_order(answer.data, texts.len())
    }

    async fn receive(&self, mut response: reqwest::Response) -> Result<Vec<u8>, ToolError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&root_cause(&error)))? {
            if chunk.len() > MAX_ANSWER_BYTES.saturating_sub(body.len()) {
                return Err(self.failed(&format!("its answer is larger than {MAX_ANSWER_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Checks that there is one sound vector for each text, and sorts them.
    fn in_order(&self, mut items: Vec<Item>, count: usize) -> Result<Vec<Vec<f32>>, ToolError> {
        items.sort_by_key(|item| item.index);
        if items.len() != count || items.iter().enumerate().any(|(index, item)| item.index != index) {
            return Err(self.failed("it did not answer with one vector for each text"));
        }
        let length = items.first().map_or(0, |item| item.embedding.len());
        let expected = *self.dimensions.get_or_init(|| length);
        let sound = |item: &Item| {
            item.embedding.len() == expected
                && (1..=MAX_DIMENSIONS).contains(&expected)
                && item.embedding.iter().all(|value| value.is_finite())
        };
        if !items.iter().all(sound) {
            return Err(self.failed("its vectors have no length or value that can be used"));
        }
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }

    fn failed(&self, why: &str) -> ToolError {
        ToolError::new(Code::Provider, format!("the embeddings service at `{}` failed: {why}", self.endpoint))
            .help("check `registry.embeddings`, or remove it to use the embedded model")
    }

    fn refused(&self, status: u16, body: &[u8]) -> ToolError {
        let said =
            serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error.message).unwrap_or_default();
        let mut said: String =
            said.chars().filter(|character| !character.is_control()).take(MAX_MESSAGE_CHARACTERS).collect();
        // Some services repeat the key they refuse.
        if let Some(ApiKey(key)) = self.api_key.as_ref().filter(|ApiKey(key)| !key.is_empty()) {
            said = said.replace(key.as_str(), "[key]");
        }
        let separator = if said.is_empty() { "" } else { ": " };
        self.failed(&format!("it answered with status {status}{separator}{said}")).detail("status", status)
    }
}

#[async_trait]
impl Embedder for OpenAiCompatible {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.get().copied()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            vectors.extend(self.embed_batch(batch).await?);
        }
        Ok(vectors)
    }
}

/// A readable part and a short hash: the same model at another address may be another model.
fn fingerprint_of(endpoint: &Url, model: &str) -> String {
    let readable: String = model
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    let digest = canonical::hash(&serde_json::json!([endpoint.as_str(), model])).unwrap_or_default();
    let short: String = digest.chars().take(12).collect();
    format!("openai-{readable}-{short}")
}

/// The innermost cause: the outer layers only repeat the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
