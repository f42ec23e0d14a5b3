//! What a tool asks for, and whether it may ask for that.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tgp_contract::ToolError;

use super::FetchLimits;
use super::failure::{invalid_request, too_large};

/// One request of a tool.
#[derive(Clone, PartialEq, Eq)]
pub struct FetchRequest {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub redirect: Redirects,
    /// The name of a secret that the kernel inserts.
    pub secret: Option<String>,
}

/// What to do when the server answers with a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redirects {
    /// Follow it, as long as every stop is on the list.
    #[default]
    Follow,
    /// Fail.
    Error,
    /// Hand the redirect itself to the tool.
    Manual,
}

impl JsonSchema for Redirects {
    fn schema_name() -> Cow<'static, str> {
        "Redirects".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["follow", "manual", "error"] })
    }
}

/// How a body is written as a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BodyEncoding {
    #[default]
    Utf8,
    Base64,
}

/// One request as the bridge hands it over. Fields that are not known are refused, because an option that is silently
/// ignored is a trap.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FetchArgs {
    /// An absolute http or https URL.
    #[schemars(length(min = 1))]
    pub url: String,
    pub method: Option<String>,
    pub headers: Option<HeaderArgs>,
    pub body: Option<String>,
    #[serde(default)]
    pub body_encoding: BodyEncoding,
    #[serde(default)]
    #[schemars(default)]
    pub redirect: Redirects,
    // Every word of a description is a token of every prompt: the page about secrets explains it.
    pub secret: Option<String>,
}

/// Headers in either of their forms.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`headers` has to be an object of strings or a list of pairs of strings")]
pub enum HeaderArgs {
    Pairs(Vec<[String; 2]>),
    Object(BTreeMap<String, String>),
}

impl TryFrom<FetchArgs> for FetchRequest {
    type Error = ToolError;

    /// What does not fit is `EFETCH`.
    fn try_from(args: FetchArgs) -> Result<Self, ToolError> {
        let body = match (args.body, args.body_encoding) {
            (None, _) => None,
            (Some(text), BodyEncoding::Utf8) => Some(text.into_bytes()),
            (Some(text), BodyEncoding::Base64) => Some(STANDARD.decode(&text).map_err(|_| {
                invalid_request("`body` is not base64 (padded, without blanks)").help(HOW_TO_CALL)
            })?),
        };
        let headers = match args.headers {
            None => Vec::new(),
            Some(HeaderArgs::Pairs(pairs)) => pairs.into_iter().map(|[name, value]| (name, value)).collect(),
            Some(HeaderArgs::Object(object)) => object.into_iter().collect(),
        };
        let method = args.method.unwrap_or_else(|| "GET".to_owned());
        let (redirect, secret) = (args.redirect, args.secret);
        Ok(Self { url: args.url, method, headers, body, redirect, secret })
    }
}

const HOW_TO_CALL: &str =
    "call tgp.fetch(url, { method, headers, body }) with a string as URL and strings as headers";

// Written by hand: header values and bodies hold secrets, and debug output ends in logs.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("FetchRequest")
            .field("method", &self.method)
            .field("url", &super::failure::shown(&self.url))
            .field("headers", &names)
            .field("body_bytes", &self.body.as_ref().map(Vec::len))
            .field("redirect", &self.redirect)
            .field("secret", &self.secret)
            .finish()
    }
}

/// A request whose parts are checked; only its URL is not.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// Methods that ask and change nothing, as far as a client can know.
const SAFE_METHODS: [&str; 2] = ["GET", "HEAD"];

impl Prepared {
    /// Whether it only asks.
    pub(super) fn is_safe(&self) -> bool {
        SAFE_METHODS.iter().any(|method| method.eq_ignore_ascii_case(self.method.as_str()))
    }
}

impl FetchRequest {
    /// Whether it only asks, as far as its method says.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        SAFE_METHODS.iter().any(|method| method.eq_ignore_ascii_case(self.method.as_str()))
    }

    /// A plain `GET`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        let method = "GET".to_owned();
        let redirect = Redirects::Follow;
        Self { url: url.into(), method, headers: Vec::new(), body: None, redirect, secret: None }
    }

    /// Reads the request from the JSON of the bridge; what does not fit is `EFETCH`.
    pub fn from_json(value: serde_json::Value) -> Result<Self, ToolError> {
        serde_json::from_value::<FetchArgs>(value)
            .map_err(|error| invalid_request(&error.to_string()).help(HOW_TO_CALL))?
            .try_into()
    }

    pub(super) fn prepare(self, limits: &FetchLimits) -> Result<Prepared, ToolError> {
        let method = method(&self.method)?;
        let headers = headers(&self.headers, limits)?;
        if let Some(body) = &self.body {
            if matches!(method, Method::GET | Method::HEAD) {
                return Err(invalid_request(&format!("a {method} request has no body"))
                    .help("leave `body` out, or use POST, PUT or PATCH"));
            }
            if body.len() > limits.max_request_bytes {
                return Err(too_large("request body", limits.max_request_bytes, "bytes"));
            }
        }
        Ok(Prepared { method, headers, body: self.body })
    }
}

pub(super) fn method(name: &str) -> Result<Method, ToolError> {
    const ALLOWED: [Method; 7] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    let wanted = ALLOWED.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name));
    wanted.ok_or_else(|| {
        invalid_request(&format!("the method `{}` cannot be used", super::failure::excerpt(name)))
            .help("use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")
    })
}

fn headers(pairs: &[(String, String)], limits: &FetchLimits) -> Result<HeaderMap, ToolError> {
    if pairs.len() > limits.max_headers {
        return Err(too_large("list of request headers", limits.max_headers, "headers"));
    }
    let bytes: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits.max_header_bytes {
        return Err(too_large("sum of the request headers", limits.max_header_bytes, "bytes"));
    }
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        let shown = super::failure::excerpt(name);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            invalid_request(&format!("`{shown}` is not the name of a header"))
                .help("a header name is made of ASCII letters, digits and hyphens")
        })?;
        if is_reserved(name.as_str()) {
            return Err(invalid_request(&format!("the header `{shown}` is set by the kernel"))
                .help("leave it out; it belongs to the connection or follows from URL and body"));
        }
        let value = value.trim_matches([' ', '\t']);
        // Beyond ASCII the library would send UTF-8, which servers read in three different ways.
        let value = HeaderValue::from_str(value).ok().filter(|_| value.is_ascii()).ok_or_else(|| {
            invalid_request(&format!(
                "the value of the header `{shown}` has a letter that no header may have"
            ))
            .help("use ASCII without line breaks and control characters; encode everything else")
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Headers that decide where a message goes or where it ends. Two opinions on that are request smuggling.
pub(super) fn is_reserved(name: &str) -> bool {
    const RESERVED: &[&str] = &[
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    RESERVED.contains(&name) || name.starts_with("proxy-")
}
