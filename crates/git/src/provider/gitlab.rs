//! GitLab: merge requests of the REST API, version 4.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiError, Call, Draft, Existing, Requests, fitting};

/// The project's path is one segment: its slashes are escaped.
fn merge_requests(requests: &Requests, behind: &[&str]) -> Result<url::Url, ApiError> {
    let mut segments = vec!["projects", requests.repo.as_str(), "merge_requests"];
    segments.extend(behind);
    requests.url(&segments)
}

pub(super) fn find(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let mut url = merge_requests(requests, &[])?;
    url.query_pairs_mut()
        .append_pair("source_branch", &draft.branch)
        .append_pair("target_branch", &draft.base)
        .append_pair("state", "opened");
    Ok(Call { method: Method::GET, url, body: None })
}

pub(super) fn create(requests: &Requests, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({
        "source_branch": draft.branch,
        "target_branch": draft.base,
        "title": draft.title,
        "description": draft.body,
    });
    Ok(Call { method: Method::POST, url: merge_requests(requests, &[])?, body: Some(body) })
}

pub(super) fn update(requests: &Requests, existing: &Existing, draft: &Draft) -> Result<Call, ApiError> {
    let body = json!({ "title": draft.title, "description": draft.body });
    let url = merge_requests(requests, &[&existing.number.to_string()])?;
    Ok(Call { method: Method::PUT, url, body: Some(body) })
}

pub(super) fn found(answer: &Value, draft: &Draft) -> Option<Existing> {
    request(fitting(answer, draft, "/source_branch", "/target_branch")?)
}

/// The number that people see is the one within the project (`iid`).
pub(super) fn request(answer: &Value) -> Option<Existing> {
    let url = answer.get("web_url")?.as_str()?.to_owned();
    Some(Existing { number: answer.get("iid")?.as_u64()?, url })
}
