//! `fs_delete`: a file of the project is gone, or a directory that is empty.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Code, Effect, EntryKind, ExecutionPath, FsError, RelativePath, Root, Target, ToolDefinition,
    ToolError,
};

use super::change::{Expected, answer, change};
use super::{Desk, project_file};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

pub(super) struct FsDelete {
    definition: ToolDefinition,
    desk: Arc<Desk>,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    expected_sha256: Option<String>,
}

impl FsDelete {
    pub(super) fn new(desk: Arc<Desk>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "fs_delete",
            aliases: &["fs.delete"],
            description: "Delete a file of the project, or a directory that is empty. Answers {path, kind}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "minLength": 1, "description": "File or empty directory below the project." },
                    "expected_sha256": Expected::schema()
                },
                "required": ["path"],
                "additionalProperties": false
            }),
            effect: Effect::Write,
            path: ExecutionPath::Fast,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, desk })
    }

    /// Removes a directory, or says what would come of it.
    async fn directory(&self, invocation: Invocation<'_>, path: &RelativePath) -> Result<Outcome, ToolError> {
        let files = invocation.filtered_workspace().await.project_files();
        let (meant, dry_run) = (path.clone(), invocation.context.dry_run);
        if let Some(agreement) = invocation.agreement() {
            agreement.check_no_file(path)?;
        }
        if invocation.router.may_hide_below(invocation, Root::Project, path).await {
            // Whether it is empty would tell what is hidden in it.
            let message =
                format!("a rule may hide files in `{path}`, so it cannot be told whether it is empty");
            return Err(ToolError::new(Code::Policy, message)
                .detail("path", path.as_str())
                .help("leave the directory, or ask a person to delete it"));
        }
        let point = invocation.point_of_no_return();
        let work = move || {
            // What is out of reach is in there all the same, so the disk has the last word on what is empty.
            let removed = if dry_run {
                files.is_empty_directory(&meant)?
            } else {
                point.pass()?;
                files.remove_empty_directory(&meant)?
            };
            if removed {
                return Ok(());
            }
            Err(ToolError::new(Code::Validation, format!("`{meant}` is not empty"))
                .help("delete what is in it first"))
        };
        self.desk.work(work).await?;
        let mut data = json!({ "path": path, "kind": EntryKind::Directory });
        if dry_run && let Some(fields) = data.as_object_mut() {
            fields.insert("dry_run".to_owned(), json!(true));
        }
        Ok(data.into())
    }
}

#[async_trait]
impl Tool for FsDelete {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        project_file(arguments, Access::Delete)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        let path = RelativePath::new(&arguments.path)?;
        let files = invocation.filtered_workspace().await.project_files();
        let looked_at = path.clone();
        let entry = self.desk.work(move || Ok(files.entry(&looked_at)?)).await?;
        if entry.is_some_and(|entry| entry.kind == EntryKind::Directory) {
            return self.directory(invocation, &path).await;
        }
        let expected = Expected::new(&path, arguments.expected_sha256);
        let meant = path.clone();
        let changed = change(&self.desk, invocation, &path, move |before| {
            expected.check(before)?;
            if before.is_none() {
                return Err(FsError::NotFound(meant.clone()).into());
            }
            Ok(None)
        })
        .await?;
        Ok(answer(invocation, &path, &changed, json!({ "kind": EntryKind::File })))
    }
}
