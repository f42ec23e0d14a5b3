//! Bitbucket Cloud: pull requests of the REST API, version 2.0.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiError, Call, Draft, Existing, Requests, fitting};

fn pull_requests(requests: &Requests, behind: &[&str]) -> Result<url::Url, ApiError> {
    let mut segments = vec!["repositories"];
    segments.extend(requests.repo.split('/'));
    segments.push("pullrequests");
    segments.extend(behind);
    requests.url(&segments)
}

pub(super) fn find(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let mut url = pull_requests(requests, &[])?;
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let filter = format!(
        "source.branch.name = {} AND destination.branch.name = {} AND state = \"OPEN\"",
        quoted(&draft.branch),
        quoted(&draft.base)
    );
    url.query_pairs_mut().append_pair("q", &filter);
    Ok(Call { method: Method::GET, url, body: None })
}

pub(super) fn create(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({
        "title": draft.title,
        "description": draft.body,
        "source": { "branch": { "name": draft.branch } },
        "destination": { "branch": { "name": draft.base } },
    });
    Ok(Call { method: Method::POST, url: pull_requests(requests, &[])?, body: Some(body) })
}

pub(super) fn update(requests: &Requests, existing: &Existing, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({ "title": draft.title, "description": draft.body });
    let url = pull_requests(requests, &[&existing.number.to_string()])?;
    Ok(Call { method: Method::PUT, url, body: Some(body) })
}

pub(super) fn found(answer: &Value, draft: &Draft) -> Option<Existing> {
    let values = answer.get("values")?;
    request(fitting(values, draft, "/source/branch/name", "/destination/branch/name")?)
}

pub(super) fn request(answer: &Value) -> Option<Existing> {
    let url = answer.pointer("/links/html/href")?.as_str()?.to_owned();
    Some(Existing { number: answer.get("id")?.as_u64()?, url })
}
