//! `review_plan` and `reconcile`: the Guardian as an agent may call it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_agent::{Edit, Guardian, planned_files};
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, Plan, RelativePath, Root, Target, ToolDefinition, ToolError,
    ToolName, chronicle_of,
};
use tgp_tools::{Invocation, Outcome, Tool, refuse_hidden};

/// Both tools, for one Guardian.
///
/// # Errors
/// Never in practice: the names are constants.
pub(super) fn plan_tools(guardian: &Arc<Guardian>) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    Ok(vec![
        Arc::new(ReviewPlan { definition: review_definition()?, guardian: Arc::clone(guardian) }),
        Arc::new(Reconcile { definition: reconcile_definition()?, guardian: Arc::clone(guardian) }),
    ])
}

fn name(text: &str) -> Result<ToolName, ToolError> {
    ToolName::new(text).map_err(|error| ToolError::new(Code::Internal, error.to_string()))
}

fn review_definition() -> Result<ToolDefinition, ToolError> {
    Ok(ToolDefinition {
        name: name("review_plan")?,
        aliases: vec!["guardian.review".to_owned()],
        description: "Have a plan held against the code graph, the chronicle and the invariants of this repository before you begin with it. Step types: CREATE_FILE and WRITE_FILE {filePath, content}, EDIT_FILE {filePath, oldText, newText}, DELETE_FILE {filePath}, RENAME_FILE {filePath, to}, RUN_COMMAND {command}, RUN_TESTS, CALL_TOOL {tool, arguments}. Nothing is carried out. Answers {decision: {type, justification or reason}, findings: [{step, file, fact, reason}]}.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "plan": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "string", "minLength": 1 },
                        "steps": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "type": { "type": "string", "minLength": 1 },
                                    "filePath": { "type": "string" }
                                },
                                "required": ["type"]
                            }
                        }
                    },
                    "required": ["id", "steps"],
                    "additionalProperties": false
                }
            },
            "required": ["plan"],
            "additionalProperties": false
        }),
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    })
}

fn reconcile_definition() -> Result<ToolDefinition, ToolError> {
    Ok(ToolDefinition {
        name: name("reconcile")?,
        aliases: vec!["guardian.reconcile".to_owned()],
        description: "Accept things as they are where the chronicle and the code disagree about a file, or where an invariant is broken, so that halted work can go on. Appends one RECONCILIATION event, however often it is called. Answers {eventId, appended, settled, lifted, chronicle, stillBroken}.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "description": "The file, such as src/a.ts." },
                "diff_ref": { "type": "string", "minLength": 1, "default": "worktree", "description": "The hash of the change that is accepted." },
                "invariant": { "type": "string", "minLength": 1, "description": "The invariant whose violations are accepted as they are now." },
                "reason": { "type": "string", "minLength": 1 }
            },
            "required": ["path"],
            "additionalProperties": false
        }),
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: false,
    })
}

struct ReviewPlan {
    definition: ToolDefinition,
    guardian: Arc<Guardian>,
}

#[derive(Deserialize)]
struct ReviewArguments {
    plan: Plan,
}

#[async_trait]
impl Tool for ReviewPlan {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Every file that a plan names is read by its review, whatever a step would do to it; what a step writes is judged
    /// when it is carried out.
    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let ReviewArguments { plan } = ReviewArguments::deserialize(arguments)
            .map_err(|error| ToolError::new(Code::Validation, error.to_string()))?;
        let read = |path| Target::File { root: Root::Project, path, access: Access::Read };
        Ok(planned_files(&plan).into_iter().map(read).collect())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: ReviewArguments = invocation.parse()?;
        let visible = invocation.visibility().await;
        let review = self.guardian.review_plan(&arguments.plan, &visible).await?;
        Ok(serde_json::to_value(review).unwrap_or_default().into())
    }
}

struct Reconcile {
    definition: ToolDefinition,
    guardian: Arc<Guardian>,
}

#[derive(Deserialize)]
struct ReconcileArguments {
    path: String,
    diff_ref: Option<String>,
    invariant: Option<String>,
    reason: Option<String>,
}

#[async_trait]
impl Tool for Reconcile {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let text = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let path = chronicle_of(&RelativePath::new(text)?)?;
        Ok(vec![Target::File { root: Root::Project, path, access: Access::Append }])
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: ReconcileArguments = invocation.parse()?;
        // Whether a file is there, and what its chronicle says of it, is a matter of who may see it.
        let visible = invocation.visibility().await;
        refuse_hidden(&visible, &RelativePath::new(&arguments.path)?)?;
        let edit = Edit {
            file_path: RelativePath::new(&arguments.path)?.to_string(),
            diff_ref: arguments.diff_ref.unwrap_or_else(|| "worktree".to_owned()),
            invariant: arguments.invariant,
            reason: arguments.reason,
        };
        invocation.point_of_no_return().pass()?;
        let mut reconciled = self.guardian.reconcile(&edit).await?;
        if let Some(error) = reconciled.still_broken.take() {
            reconciled.still_broken = Some(self.guardian.concealed_halt(error, &visible).await);
        }
        Ok(serde_json::to_value(reconciled).unwrap_or_default().into())
    }
}
