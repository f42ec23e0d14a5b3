//! `exec_sql`: one statement on the configured database.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Effect, ExecutionPath, SqlClass, SqlParams, SqlStatement, Target, ToolDefinition, ToolError,
};

use super::Definition;
use crate::Workspace;
use crate::database::{StatementEnd, answer_value};
use crate::router::{Invocation, Outcome, Preview, Tool};

/// Longer statements are data in disguise, and belong into parameters.
const MAX_SQL_BYTES: usize = 1024 * 1024;

/// Statements whose dry run fails only where they would. Some databases cannot undo others, such as definitions.
const DATA_VERBS: [&str; 6] = ["select", "values", "with", "insert", "update", "delete"];

pub(super) struct ExecSql(ToolDefinition);

#[derive(Deserialize)]
struct Arguments {
    sql: String,
    #[serde(default)]
    params: Value,
}

impl ExecSql {
    pub(super) fn new() -> Result<Self, ToolError> {
        let definition = Definition {
            name: "exec_sql",
            aliases: &["db.query", "db_query"],
            description: "Execute one SQL statement on the configured database, in a transaction of its own. Answers {rows, columns, changed, truncated}; integers beyond 2^53 and decimals are strings.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "sql": { "type": "string", "minLength": 1, "maxLength": MAX_SQL_BYTES, "description": "One statement. Values belong into params." },
                    "params": {
                        "type": ["array", "object", "null"],
                        "items": {},
                        "description": "A list for ? or $1, or an object for :name."
                    }
                },
                "required": ["sql"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self(definition.build()?))
    }
}

#[async_trait]
impl Tool for ExecSql {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let sql = arguments.get("sql").and_then(Value::as_str).unwrap_or_default();
        let kinds = tgp_sql::statement_kinds(sql);
        Ok(vec![Target::Statement { sql: sql.to_owned(), kinds, reads: false }])
    }

    /// The text alone says too much or too little of a statement; the database compiles it, or reads it as its own.
    async fn targets_in(&self, arguments: &Value, workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        let sql = arguments.get("sql").and_then(Value::as_str).unwrap_or_default();
        match workspace.sql.inspect(sql).await {
            Some(SqlClass { kinds, reads }) => {
                Ok(vec![Target::Statement { sql: sql.to_owned(), kinds, reads }])
            }
            None => self.targets(arguments),
        }
    }

    /// How many rows would change. Not which: two runs of one statement may give other keys, times or orders, and the
    /// statement says all the rest.
    async fn preview(&self, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        if invocation.workspace.sql.run().is_some() {
            return Ok(Preview::missing("a statement of a running tool cannot be tried alone"));
        }
        let tried = match self.run(invocation).await {
            Ok(tried) => tried,
            Err(error) => {
                let sql = invocation.call.arguments.get("sql").and_then(Value::as_str).unwrap_or_default();
                let kinds = tgp_sql::statement_kinds(sql);
                if kinds.iter().all(|kind| DATA_VERBS.contains(&kind.as_str())) {
                    return Err(error);
                }
                return Ok(Preview::missing(format!("its dry run failed: {}", error.message)));
            }
        };
        let rows = tried.data.get("rows").and_then(Value::as_array).map_or(0, Vec::len);
        let field = |name: &str| tried.data.get(name).cloned().unwrap_or_default();
        let data = json!({
            "dry_run": true,
            "changed": field("changed"),
            "columns": field("columns"),
            "rows": rows,
        });
        Ok(Preview { data: Some(data), ..Preview::default() })
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let judged = judged(invocation.targets);
        let params = SqlParams::from_value(arguments.params)?;
        let statement = SqlStatement { sql: arguments.sql, params, judged };
        let dry_run = invocation.context.dry_run;
        let end =
            if dry_run { StatementEnd::Undo } else { StatementEnd::Commit(invocation.point_of_no_return()) };
        let answer = invocation.workspace.sql.execute(&statement, &end).await?;
        let mut data = answer_value(&answer);
        if dry_run && let Some(fields) = data.as_object_mut() {
            fields.insert("dry_run".to_owned(), json!(true));
        }
        let rows_changed = Some(answer.changed).filter(|_| !dry_run);
        Ok(Outcome { data, rows_changed, ..Outcome::default() })
    }
}

/// What the gates were shown of the statement.
fn judged(targets: &[Target]) -> Option<SqlClass> {
    targets.iter().find_map(|target| match target {
        Target::Statement { kinds, reads, .. } => Some(SqlClass { kinds: kinds.clone(), reads: *reads }),
        _ => None,
    })
}
