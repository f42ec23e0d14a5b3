//! GitHub: pull requests of the REST API, version 2022-11-28.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiError, Call, Draft, Existing, Requests, fitting};

fn pulls(requests: &Requests, behind: &[&str]) -> Result<url::Url, ApiError> {
    let mut segments = vec!["repos"];
    segments.extend(requests.repo.split('/'));
    segments.push("pulls");
    segments.extend(behind);
    requests.url(&segments)
}

pub(super) fn find(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let mut url = pulls(requests, &[])?;
    let owner = requests.repo.split('/').next().unwrap_or_default();
    url.query_pairs_mut()
        .append_pair("head", &format!("{owner}:{}", draft.branch))
        .append_pair("base", &draft.base)
        .append_pair("state", "open");
    Ok(Call { method: Method::GET, url, body: None })
}

pub(super) fn create(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({ "title": draft.title, "head": draft.branch, "base": draft.base, "body": draft.body });
    Ok(Call { method: Method::POST, url: pulls(requests, &[])?, body: Some(body) })
}

pub(super) fn update(requests: &Requests, existing: &Existing, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({ "title": draft.title, "body": draft.body });
    Ok(Call {
        method: Method::PATCH,
        url: pulls(requests, &[&existing.number.to_string()])?,
        body: Some(body),
    })
}

pub(super) fn found(answer: &Value, draft: &Draft) -> Option<Existing> {
    request(fitting(answer, draft, "/head/ref", "/base/ref")?)
}

pub(super) fn request(answer: &Value) -> Option<Existing> {
    let url = answer.get("html_url")?.as_str()?.to_owned();
    Some(Existing { number: answer.get("number")?.as_u64()?, url })
}
