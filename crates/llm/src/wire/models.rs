//! Lists of models.

use serde_json::Value;
use tgp_contract::ModelInfo;

use super::some_text;
use crate::failure::Failure;
use crate::options::Wire;

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ModelPage {
    pub(crate) models: Vec<ModelInfo>,
    /// What the next page follows, where there is one.
    pub(crate) after: Option<String>,
}

/// Reads one page. A list that is missing or `null` is empty, as some servers write it.
pub(crate) fn page(wire: Wire, body: &[u8]) -> Result<ModelPage, Failure> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::Unreadable(format!("its list of models is not JSON ({error})")))?;
    let is_list = value.is_object() && value.get("data").is_none_or(|data| data.is_array() || data.is_null());
    if !is_list {
        return Err(Failure::Unreadable("its list of models has no `data`".to_owned()));
    }
    let items = value.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let models: Vec<ModelInfo> = items
        .iter()
        .filter_map(|item| some_text(item, "/id"))
        .map(|name| ModelInfo { name: name.to_owned() })
        .collect();
    let has_more = wire == Wire::Anthropic && value.get("has_more").and_then(Value::as_bool) == Some(true);
    let after = some_text(&value, "/last_id").filter(|_| has_more).map(str::to_owned);
    Ok(ModelPage { models, after })
}
