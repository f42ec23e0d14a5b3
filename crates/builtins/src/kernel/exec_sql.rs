//! `exec_sql`: one statement on the configured database.

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tgp_contract::{
    Code, Effect, ExecutionPath, SqlClass, SqlParams, SqlRows, SqlStatement, Target, ToolError,
};

use tgp_router::Workspace;
use tgp_router::database::StatementEnd;
use tgp_router::{Invocation, Preview, Tool, ToolOutcome, ToolSpec};

/// Longer statements are data in disguise, and belong into parameters.
const MAX_SQL_BYTES: usize = 1024 * 1024;

/// Statements whose dry run fails only where they would. Some databases cannot undo others, such as definitions.
const DATA_VERBS: [&str; 6] = ["select", "values", "with", "insert", "update", "delete"];

pub(super) struct ExecSql;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecSqlArgs {
    /// One statement. Pass values in `params`.
    #[schemars(length(min = 1, max = MAX_SQL_BYTES))]
    sql: String,
    #[serde(default)]
    #[schemars(schema_with = "params_schema")]
    params: Value,
}

fn params_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "object", "null"],
        "items": {},
        "description": "A list for ? or $1, or an object for :name."
    })
}

/// What a statement returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlResult {
    /// One object a row, by column name. Integers beyond 2^53 and decimals are texts.
    pub rows: Vec<Map<String, Value>>,
    pub columns: Vec<String>,
    /// Rows that were inserted, updated or deleted.
    pub changed: u64,
    /// True when there were more rows than the caps allow; the rest was not read.
    pub truncated: bool,
    /// True when it was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[async_trait]
impl Tool for ExecSql {
    type Args = ExecSqlArgs;
    type Output = SqlResult;

    const INFO: ToolSpec = ToolSpec {
        name: "exec_sql",
        aliases: &["db.query", "db_query"],
        description: "Execute one SQL statement on the configured database, in its own transaction. Integers beyond 2^53 and decimals are returned as strings.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &ExecSqlArgs) -> Result<Vec<Target>, ToolError> {
        let kinds = tgp_sql::statement_kinds(&args.sql);
        Ok(vec![Target::Statement { sql: args.sql.clone(), kinds, reads: false }])
    }

    /// The text alone says too much or too little of a statement; the database compiles it, or reads it as its own.
    async fn targets_in(&self, args: &ExecSqlArgs, workspace: &Workspace) -> Result<Vec<Target>, ToolError> {
        match workspace.sql.inspect(&args.sql).await {
            Some(SqlClass { kinds, reads }) => {
                Ok(vec![Target::Statement { sql: args.sql.clone(), kinds, reads }])
            }
            None => self.targets(args),
        }
    }

    /// How many rows would change. Not which: two runs of one statement may give other keys, times or orders, and the
    /// statement says all the rest.
    async fn preview(&self, args: ExecSqlArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        if invocation.workspace.sql.run().is_some() {
            return Ok(Preview::missing("a statement of a running tool cannot be tried alone"));
        }
        let kinds = tgp_sql::statement_kinds(&args.sql);
        let tried = match self.run(args, invocation).await {
            Ok(tried) => tried.data,
            Err(error) if kinds.iter().all(|kind| DATA_VERBS.contains(&kind.as_str())) => return Err(error),
            Err(error) => return Ok(Preview::missing(format!("its dry run failed: {}", error.message))),
        };
        let data = json!({
            "dry_run": true,
            "changed": tried.changed,
            "columns": tried.columns,
            "rows": tried.rows.len(),
        });
        Ok(Preview { data: Some(data), ..Preview::default() })
    }

    async fn run(
        &self,
        args: ExecSqlArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<SqlResult>, ToolError> {
        let judged = judged(invocation.targets);
        let params = SqlParams::from_value(args.params)?;
        let reads = judged.as_ref().is_some_and(|judged| judged.reads);
        if invocation.context.dry_run && !reads && !invocation.workspace.sql.has_transactions() {
            let message =
                "a dry run changes nothing, and this database has no transaction to undo the statement with";
            return Err(ToolError::new(Code::Permission, message).help("run it without --dry-run"));
        }
        let statement = SqlStatement { sql: args.sql, params, judged };
        let dry_run = invocation.context.dry_run;
        let end =
            if dry_run { StatementEnd::Undo } else { StatementEnd::Commit(invocation.point_of_no_return()) };
        let SqlRows { columns, rows, changed, truncated } =
            invocation.workspace.sql.execute(&statement, &end).await?;
        let rows_changed = Some(changed).filter(|_| !dry_run);
        let result = SqlResult { rows, columns, changed, truncated, dry_run };
        Ok(ToolOutcome { rows_changed, ..result.into() })
    }
}

/// What the gates were shown of the statement.
fn judged(targets: &[Target]) -> Option<SqlClass> {
    targets.iter().find_map(|target| match target {
        Target::Statement { kinds, reads, .. } => Some(SqlClass { kinds: kinds.clone(), reads: *reads }),
        _ => None,
    })
}
