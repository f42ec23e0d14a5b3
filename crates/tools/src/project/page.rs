//! One page of a long answer.

use serde_json::{Value, json};

use super::MAX_PAGE_BYTES;

/// Rows of a page when nothing is said.
pub(super) const DEFAULT_LIMIT: usize = 500;
/// Rows of a page at most.
pub(super) const MAX_LIMIT: usize = 5_000;
/// What a row costs besides its texts: names of fields, numbers and marks.
const ROW_BYTES: usize = 64;

/// Rows that fit, and where the next page begins.
pub(super) struct Page {
    rows: Vec<Value>,
    next: Option<usize>,
}

impl Page {
    /// The rows from `offset` on, each with the bytes of its texts. At least one row is on a page, or no caller would
    /// get past it.
    pub(super) fn of(rows: impl Iterator<Item = (Value, usize)>, offset: usize, limit: usize) -> Self {
        let mut page = Self { rows: Vec::new(), next: None };
        let mut bytes = 0;
        for (row, size) in rows.skip(offset) {
            bytes += size + ROW_BYTES;
            if page.rows.len() >= limit || (bytes > MAX_PAGE_BYTES && !page.rows.is_empty()) {
                page.next = Some(offset + page.rows.len());
                break;
            }
            page.rows.push(row);
        }
        page
    }

    /// Puts the rows into an answer, and says whether there are more.
    pub(super) fn fill(self, data: &mut Value, name: &str, complete: bool) {
        let Some(fields) = data.as_object_mut() else { return };
        fields.insert("truncated".to_owned(), json!(self.next.is_some() || !complete));
        if let Some(next) = self.next {
            fields.insert("nextOffset".to_owned(), json!(next));
        }
        fields.insert(name.to_owned(), Value::Array(self.rows));
    }
}
