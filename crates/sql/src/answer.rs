//! Collecting rows into an answer, up to the caps.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use tgp_contract::{SqlRows, ToolError};

use crate::failure::esql;
use crate::options::Limits;

/// What an object key, its quotes and separators cost in addition to the text itself.
const FIELD_OVERHEAD: usize = 4;

/// An answer that is being read.
pub(crate) struct RowCollector {
    answer: SqlRows,
    room: usize,
    max_rows: usize,
}

/// Whether the caps leave room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    Left,
    Full,
}

impl RowCollector {
    pub fn new(columns: impl IntoIterator<Item = String>, limits: Limits) -> Self {
        let answer = SqlRows { columns: distinct(columns), ..SqlRows::default() };
        Self { answer, room: limits.max_bytes, max_rows: limits.max_rows }
    }

    /// Takes a row if it fits; if not, the answer is truncated here.
    pub fn push(&mut self, values: Vec<Value>) -> Capacity {
        match self.offer(values) {
            Ok(()) => Capacity::Left,
            Err(_) => Capacity::Full,
        }
    }

    /// Takes a row if it fits; if not, it gives the row back, and there are more rows than the answer has.
    pub fn offer(&mut self, values: Vec<Value>) -> Result<(), Vec<Value>> {
        let size: usize = values
            .iter()
            .zip(&self.answer.columns)
            .map(|(value, name)| weight(value) + name.len() + FIELD_OVERHEAD)
            .sum();
        if self.answer.rows.len() >= self.max_rows || size > self.room {
            self.answer.truncated = true;
            return Err(values);
        }
        self.room -= size;
        self.answer.rows.push(self.answer.columns.iter().cloned().zip(values).collect::<Map<_, _>>());
        Ok(())
    }

    /// Applies `change` to every value of one column.
    pub fn change(&mut self, column: usize, change: impl Fn(Value) -> Value) {
        let Some(name) = self.answer.columns.get(column) else { return };
        for row in &mut self.answer.rows {
            if let Some(value) = row.get_mut(name) {
                *value = change(value.take());
            }
        }
    }

    pub fn finish(mut self, changed: u64) -> SqlRows {
        self.answer.changed = changed;
        self.answer
    }
}

/// The rows of a cursor between the database and the batches that a caller asks for.
pub(crate) struct Batches {
    columns: Vec<String>,
    limits: Limits,
    /// Rows that were read and did not fit in the last batch.
    waiting: VecDeque<Vec<Value>>,
}

/// A batch that is being filled.
pub(crate) struct Batch<'a> {
    collector: RowCollector,
    waiting: &'a mut VecDeque<Vec<Value>>,
}

impl Batches {
    pub fn new(columns: Vec<String>, limits: Limits) -> Self {
        Self { columns, limits, waiting: VecDeque::new() }
    }

    /// A batch of at most `rows`, with what has waited for it.
    pub fn next(&mut self, rows: usize) -> Batch<'_> {
        let limits = Limits { max_rows: rows.clamp(1, self.limits.max_rows.max(1)), ..self.limits };
        let mut batch = Batch {
            collector: RowCollector::new(self.columns.iter().cloned(), limits),
            waiting: &mut self.waiting,
        };
        while let Some(row) = batch.waiting.pop_front() {
            if let Err(row) = batch.collector.offer(row) {
                batch.waiting.push_front(row);
                break;
            }
        }
        batch
    }
}

impl Batch<'_> {
    pub fn capacity(&self) -> Capacity {
        if self.waiting.is_empty() { Capacity::Left } else { Capacity::Full }
    }

    /// Takes a row, or keeps it for the next batch.
    pub fn push(&mut self, row: Vec<Value>) -> Capacity {
        if self.capacity() == Capacity::Full {
            self.waiting.push_back(row);
        } else if let Err(row) = self.collector.offer(row) {
            self.waiting.push_back(row);
        }
        self.capacity()
    }

    /// The rows, with `truncated` where more follow.
    pub fn finish(self) -> Result<SqlRows, ToolError> {
        let answer = self.collector.finish(0);
        if answer.rows.is_empty() && !self.waiting.is_empty() {
            return Err(esql("a row is larger than the bytes that one batch may have")
                .help("select fewer columns or parts of them, or raise `db.maxBytes` in tgp.config.ts"));
        }
        Ok(SqlRows { truncated: !self.waiting.is_empty(), ..answer })
    }
}

/// A row is an object, so a second `id` becomes `id_2`, and no column is lost.
fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let mut candidate = name.clone();
        let mut number = 2;
        while taken.contains(&candidate) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        taken.push(candidate);
    }
    taken
}

/// About how many bytes a value is as JSON; the depth was bounded by the parser.
fn weight(value: &Value) -> usize {
    const SCALAR: usize = 8;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => 2 + values.iter().map(|value| weight(value) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + FIELD_OVERHEAD + weight(value)).sum::<usize>()
        }
    }
}
