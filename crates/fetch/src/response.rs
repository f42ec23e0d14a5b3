//! What a tool gets back.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use tgp_net::SecretRedaction;

use super::request::BodyEncoding;

/// The answer to a fetch, complete and within its caps.
///
/// On the wire it is `{url, status, statusText, headers, body, bodyEncoding, redirected}`; `body` is text when the
/// bytes are UTF-8 and base64 otherwise. Nothing is decompressed: by default the server is asked not to compress, and
/// a tool that asks for a compressed body gets the compressed bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// Where the answer came from, after redirects.
    pub url: String,
    pub status: u16,
    /// The usual phrase for the status; what the server wrote there means nothing and is dropped.
    pub status_text: String,
    /// In the order of arrival; names are lower case, a name can occur more than once. Bytes are read as Latin-1.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub redirected: bool,
}

impl FetchResponse {
    /// The same without secrets, wherever the server has sent them back; `None` when one is hidden in it. The address of a
    /// request that was not redirected is the caller's own.
    pub(super) fn without(mut self, secrets: &[Arc<SecretRedaction>]) -> Option<Self> {
        for secret in secrets {
            if let Some(clean) = secret.clean(&self.body) {
                self.body = clean;
            }
            let mut is_hidden = secret.hides_in(&self.body);
            let url = self.redirected.then_some(&mut self.url);
            let texts = self.headers.iter_mut().flat_map(|(name, value)| [name, value]);
            for text in texts.chain(url) {
                // The letters of a header are its bytes, which may be those of longer letters.
                let bytes: Vec<u8> =
                    text.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
                if let Some(clean) = secret.clean(&bytes) {
                    *text = clean.iter().map(|byte| char::from(*byte)).collect();
                } else {
                    is_hidden |= secret.hides_in(&bytes);
                }
            }
            if is_hidden {
                return None;
            }
        }
        Some(self)
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WireResponse<'response> {
    url: &'response str,
    status: u16,
    status_text: &'response str,
    headers: &'response [(String, String)],
    body: Cow<'response, str>,
    body_encoding: BodyEncoding,
    redirected: bool,
}

impl JsonSchema for FetchResponse {
    fn schema_name() -> Cow<'static, str> {
        "FetchResponse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WireResponse::json_schema(generator)
    }
}

impl Serialize for FetchResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (body, body_encoding) = match std::str::from_utf8(&self.body) {
            Ok(text) => (Cow::Borrowed(text), BodyEncoding::Utf8),
            Err(_) => (Cow::Owned(STANDARD.encode(&self.body)), BodyEncoding::Base64),
        };
        WireResponse {
            url: &self.url,
            status: self.status,
            status_text: &self.status_text,
            headers: &self.headers,
            body,
            body_encoding,
            redirected: self.redirected,
        }
        .serialize(serializer)
    }
}

// Written by hand: header values and bodies hold secrets, and debug output ends in logs.
impl fmt::Debug for FetchResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("FetchResponse")
            .field("url", &super::failure::shown(&self.url))
            .field("status", &self.status)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("redirected", &self.redirected)
            .finish()
    }
}
