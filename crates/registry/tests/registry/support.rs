//! Tools and embedders for the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tgp_contract::{Code, RelativePath, ToolError, ToolMetadata, canonical};
use tgp_registry::{Calibration, Embedder, Searcher};

pub fn tool(path: &str, description: &str) -> ToolMetadata {
    let path = RelativePath::new(path).unwrap();
    let name = path.name().unwrap().split('.').next().unwrap().to_owned();
    ToolMetadata {
        hash: canonical::sha256_hex(path.as_str().as_bytes()),
        name,
        path,
        description: description.to_owned(),
        signature: "(args: { value: string }) => string".to_owned(),
        parameters: json!({ "type": "object", "properties": { "value": { "type": "string" } } }),
        result: json!({ "type": "string" }),
        declared: None,
        imports: Vec::new(),
        exports: vec!["default".to_owned()],
        identifiers: Vec::new(),
        problem: None,
    }
}

/// A small shop of tools with neighbours that are easy to confuse.
pub fn shop() -> Vec<ToolMetadata> {
    vec![
        tool("tools/convert/yaml_to_json.ts", "Convert a YAML document to JSON."),
        tool("tools/sales/monthly_revenue.ts", "Total revenue for each month of a year."),
        tool("tools/text/word_count.ts", "Count the words of a text."),
        tool("tools/marketing/coupon_codes.ts", "Generate unique discount codes with a prefix."),
        tool("tools/security/encrypt_note.ts", "Encrypt a text with a passphrase."),
        tool("tools/geo/distance.ts", "Great-circle distance between two coordinates."),
    ]
}

/// Counts the texts it embeds. Its vectors are sums of one direction for each word, so shared words are near.
pub struct Counting {
    pub texts: AtomicUsize,
    /// Fails from this many texts on.
    pub fails_after: usize,
    pub fingerprint: String,
}

impl Counting {
    pub fn new() -> Arc<Self> {
        Self::failing_after(usize::MAX)
    }

    pub fn failing_after(fails_after: usize) -> Arc<Self> {
        Arc::new(Self { texts: AtomicUsize::new(0), fails_after, fingerprint: "counting-1".to_owned() })
    }

    pub fn count(&self) -> usize {
        self.texts.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Embedder for Counting {
    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> Option<usize> {
        Some(64)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ToolError> {
        if self.texts.fetch_add(texts.len(), Ordering::SeqCst) + texts.len() > self.fails_after {
            return Err(ToolError::new(Code::Provider, "the service is tired"));
        }
        Ok(texts.iter().map(|text| bag_of_words(text)).collect())
    }
}

pub fn bag_of_words(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; 64];
    for word in text.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        let digest = canonical::sha256_hex(word.as_bytes());
        for (value, digit) in vector.iter_mut().zip(digest.chars()) {
            *value += digit.to_digit(16).unwrap() as f32 - 7.5;
        }
    }
    vector
}

pub async fn searcher(embedder: Option<Arc<dyn Embedder>>, tools: Vec<ToolMetadata>) -> Searcher {
    let searcher = Searcher::new(embedder, Calibration::builtin(), None);
    searcher.update(tools).await.unwrap();
    searcher
}
