//! A service with the `/embeddings` call that many providers share.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, ToolError, canonical};
use tgp_net::{
    BodyError, Secret, SecretScrubber, Transport, build_client, client_builder, is_loopback, read_plain_body,
    root_cause,
};
use tokio::sync::OnceCell;
use url::Url;

use super::{Embedder, MAX_DIMENSIONS};

/// A batch of short texts is answered in a second or two; a hung service must not hold a search longer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Texts in one request: below the cap of every provider known.
const BATCH: usize = 64;
/// A batch of the largest vectors as JSON text stays below this.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Characters of one text that are sent: services refuse long inputs, and the rest of a tool's text says little.
const MAX_TEXT_CHARACTERS: usize = 8000;
/// How much of a service's own error message is passed on.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// `POST {base_url}/embeddings` with a model name and a bearer key.
#[derive(Debug)]
pub struct OpenAiCompatible {
    endpoint: Url,
    model: String,
    api_key: Option<Secret>,
    scrubber: SecretScrubber,
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
    /// `ECONFIG` when it is not an http or https URL, carries credentials, or would send the key unencrypted.
    pub fn new(base_url: &str, model: impl Into<String>, api_key: Option<Secret>) -> Result<Self, ToolError> {
        let wrong = |why: &str| {
            ToolError::new(Code::Config, format!("the base URL of the embeddings service {why}"))
                .help("write a URL such as `http://localhost:11434/v1`, and the key in its own setting")
        };
        let mut endpoint = Url::parse(base_url).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(wrong("carries a user or a password"));
        }
        if endpoint.scheme() == "http" && api_key.is_some() && !is_loopback(&endpoint) {
            return Err(wrong("is plain http to another machine, and the key would be readable on the way")
                .help("use https, or a tunnel to `127.0.0.1`, or configure the service without a key"));
        }
        endpoint.path_segments_mut().map_err(|()| wrong("has no path"))?.pop_if_empty().push("embeddings");
        let model = model.into();
        let fingerprint = fingerprint_of(&endpoint, &model);
        let mut scrubber = SecretScrubber::default();
        if let Some(key) = &api_key {
            scrubber.add_key(key.expose());
        }
        Ok(Self {
            endpoint,
            model,
            api_key,
            scrubber,
            fingerprint,
            dimensions: OnceLock::new(),
            client: OnceCell::new(),
        })
    }

    async fn client(&self) -> Result<&reqwest::Client, ToolError> {
        let builder = client_builder(Transport::of(&self.endpoint)).timeout(TIMEOUT);
        self.client
            .get_or_try_init(|| build_client(builder, Vec::new()))
            .await
            .map_err(|error| self.failed(&error.to_string()))
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
            .body(body);
        if let Some(key) = &self.api_key {
            outgoing = outgoing.bearer_auth(key.expose());
        }
        let mut response = outgoing.send().await.map_err(|error| self.failed(&root_cause(&error)))?;
        let status = response.status();
        let body = match read_plain_body(&mut response, MAX_ANSWER_BYTES).await {
            Ok(body) => body,
            // The status says more than a body that cannot be read.
            Err(_) if !status.is_success() => Vec::new(),
            Err(BodyError::Transport(error)) => return Err(self.failed(&root_cause(&error))),
            Err(error) => return Err(self.failed(&error.to_string())),
        };
        if !status.is_success() {
            return Err(self.refused(status.as_u16(), &body));
        }
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|error| self.failed(&format!("its answer is not understood: {error}")))?;
        self.in_order(answer.data, texts.len())
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
        // Without the query, which can hold a key.
        let server = format!("{}{}", self.endpoint.origin().ascii_serialization(), self.endpoint.path());
        ToolError::new(Code::Provider, format!("the embeddings service at `{server}` failed: {why}"))
            .help("check `registry.embeddings`, or remove it to use the embedded model")
    }

    fn refused(&self, status: u16, body: &[u8]) -> ToolError {
        let said =
            serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error.message).unwrap_or_default();
        // Some services repeat the key they refuse. It is removed before the text is cut, which could leave a part of it.
        let said = tgp_text::one_line(&self.scrubber.clean(&said), MAX_MESSAGE_CHARACTERS);
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
