//! `review_plan` and `reconcile`: the Guardian as an agent may call it.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_builtins::refuse_hidden;
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, Plan, RelativePath, Root, Target, ToolError, chronicle_of,
};
use tgp_guardian::{Guardian, ReconcileEdit, Reconciled, Review, planned_files};
use tgp_router::{DynTool, Invocation, Tool, ToolOutcome, ToolSpec, typed};

/// Both tools, for one Guardian.
///
/// # Errors
/// Never in practice: the names are constants.
pub(super) fn plan_tools(
    guardian: &Arc<Guardian>,
    invariants: &str,
) -> Result<Vec<Arc<dyn DynTool>>, ToolError> {
    let reconcile = Reconcile { guardian: Arc::clone(guardian), invariants: invariants.to_owned() };
    Ok(vec![typed(ReviewPlan(Arc::clone(guardian)))?, typed(reconcile)?])
}

struct ReviewPlan(Arc<Guardian>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReviewPlanArgs {
    plan: Plan,
}

#[async_trait]
impl Tool for ReviewPlan {
    type Args = ReviewPlanArgs;
    type Output = Review;

    const INFO: ToolSpec = ToolSpec {
        name: "review_plan",
        aliases: &["guardian.review"],
        description: "Check a plan against the code graph, the chronicle and the invariants before you start. Nothing is executed. Step types: CREATE_FILE and WRITE_FILE {filePath, content}, EDIT_FILE {filePath, oldText, newText}, DELETE_FILE {filePath}, RENAME_FILE {filePath, to}, RUN_COMMAND {command}, RUN_TESTS, CALL_TOOL {tool, arguments}.",
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    /// Every file that a plan names is read by its review, whatever a step would do to it; what a step writes is judged
    /// when it is carried out.
    fn targets(&self, args: &ReviewPlanArgs) -> Result<Vec<Target>, ToolError> {
        let read = |path| Target::File { root: Root::Project, path, access: Access::Read };
        Ok(planned_files(&args.plan).into_iter().map(read).collect())
    }

    async fn run(
        &self,
        args: ReviewPlanArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<Review>, ToolError> {
        let visible = invocation.visibility().await;
        Ok(self.0.review_plan(&args.plan, &visible).await?.into())
    }
}

struct Reconcile {
    guardian: Arc<Guardian>,
    /// The file of the invariants, from the project.
    invariants: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReconcileArgs {
    /// The file, such as src/a.ts.
    #[schemars(length(min = 1))]
    path: String,
    /// The hash of the change that is accepted.
    #[serde(default = "worktree")]
    #[schemars(length(min = 1))]
    diff_ref: String,
    /// The invariant whose violations are accepted as they are now.
    #[schemars(length(min = 1))]
    invariant: Option<String>,
    #[schemars(length(min = 1))]
    reason: Option<String>,
}

fn worktree() -> String {
    "worktree".to_owned()
}

#[async_trait]
impl Tool for Reconcile {
    type Args = ReconcileArgs;
    type Output = Reconciled;

    const INFO: ToolSpec = ToolSpec {
        name: "reconcile",
        aliases: &["guardian.reconcile"],
        description: "Accept the current state where chronicle and code disagree about a file, or where an invariant is broken, so that halted work can resume.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: false,
    };

    fn targets(&self, args: &ReconcileArgs) -> Result<Vec<Target>, ToolError> {
        let path = chronicle_of(&RelativePath::new(&args.path)?)?;
        Ok(vec![Target::File { root: Root::Project, path, access: Access::Append }])
    }

    async fn run(
        &self,
        args: ReconcileArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<Reconciled>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        // Whether a file is there, and what its chronicle has of it, is a matter of who may see it.
        let visible = invocation.visibility().await;
        refuse_hidden(&visible, &path)?;
        let edit = ReconcileEdit {
            file_path: path.to_string(),
            diff_ref: args.diff_ref,
            invariant: args.invariant,
            reason: args.reason,
        };
        invocation.point_of_no_return().commit()?;
        let may_read = RelativePath::new(&self.invariants)
            .is_ok_and(|invariants| visible.shows(Root::Project, &invariants));
        let mut reconciled = self.guardian.reconcile(&edit).await.map_err(|error| match error.code {
            // Which invariants there are is a matter of who may read their file.
            Code::NotFound if !may_read => {
                error.help("name an invariant that you know, or the query that halted")
            }
            _ => error,
        })?;
        if let Some(error) = reconciled.still_broken.take() {
            reconciled.still_broken = Some(self.guardian.concealed_halt(error, &visible).await);
        }
        Ok(reconciled.into())
    }
}
