//! One page of a long answer.

use super::MAX_PAGE_BYTES;

/// Rows of a page when nothing is said.
pub(super) const DEFAULT_LIMIT: usize = 500;
/// Rows of a page at most.
pub(super) const MAX_LIMIT: usize = 5_000;
/// What a row costs in addition to its texts: names of fields, numbers and marks.
const ROW_BYTES: usize = 64;

/// Whether a list has nothing to say about names that it leaves out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_none_left_out(unnamed: &u64) -> bool {
    *unnamed == 0
}

/// Rows that fit, and where the next page begins.
pub(super) struct Page<T> {
    pub(super) rows: Vec<T>,
    pub(super) next: Option<usize>,
}

impl<T> Page<T> {
    /// The rows from `offset` on, each with the bytes of its texts. At least one row is on a page, or no caller would
    /// get past it.
    pub(super) fn of(rows: impl Iterator<Item = (T, usize)>, offset: usize, limit: usize) -> Self {
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
}
