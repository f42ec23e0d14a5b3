//! Ids that are named by their beginning, as people do.

use tgp_contract::{Code, ToolError};

/// The id that is meant: this one, or the only one that begins so. `what` they are of, and the command that lists them.
///
/// # Errors
/// `ENOTFOUND`, or `EVALIDATION` when several begin so.
pub(crate) fn find(ids: Vec<String>, wanted: &str, what: &str, listing: &str) -> Result<String, ToolError> {
    if ids.iter().any(|id| id == wanted) {
        return Ok(wanted.to_owned());
    }
    let mut alike = ids.into_iter().filter(|id| !wanted.is_empty() && id.starts_with(wanted));
    match (alike.next(), alike.next()) {
        (Some(id), None) => Ok(id),
        (Some(_), Some(_)) => {
            Err(ToolError::new(Code::Validation, format!("several {what}s begin with `{wanted}`"))
                .help(format!("give more of the id; `{listing}` shows them")))
        }
        (None, _) => Err(ToolError::new(Code::NotFound, format!("there is no {what} `{wanted}`"))
            .help(format!("`{listing}` shows them"))),
    }
}
