//! What a person has the Guardian do. Each act is recorded like a call.

use std::sync::Arc;

use serde_json::json;
use tgp_builtins::chronicle_path;
use tgp_chronicle::{Migration, MigrationReport};
use tgp_contract::{
    CallContext, Code, Plan, RelativePath, ToolCall, ToolError, Visibility, background, canonical,
};
use tgp_fs::committed_file;
use tgp_guardian::{Assertion, Delegator, GuardianFinding, InvariantCheck, PlanReport, Review};

use super::chronicle_audit::{self, AuditComparison, MAX_COMMITTED_BYTES};
use super::inspect;
use crate::Kernel;

/// The tool that reviews plans.
const REVIEW: &str = "review_plan";

impl Kernel {
    /// Has a plan reviewed, and carries it out step by step through the router if no objections.
    ///
    /// # Errors
    /// When the plan could not be judged; everything else is in the report.
    pub async fn carry_out(&self, plan: &Plan, context: CallContext) -> Result<PlanReport, ToolError> {
        let delegator = Delegator::new(Arc::clone(self.knowledge().guardian()), self.tool_caller());
        let visible = self.plan_visibility(plan, &context).await?;
        let never = Box::pin(std::future::pending());
        let report = delegator.execute(plan, context, &visible, never).await;
        let whole = serde_json::to_value(plan).unwrap_or_default();
        let arguments = json!({ "plan": plan.id, "planHash": canonical::hash(&whole).ok() });
        let told = match &report {
            Ok(report) => match &report.error {
                Some(error) => Err(error.clone()),
                None => Ok(json!({ "outcome": report.outcome })),
            },
            Err(error) => Err(error.clone()),
        };
        self.record_act("guardian_run", arguments, told.into()).await?;
        report
    }

    /// Has a plan reviewed with the caller's view of the project; nothing is executed.
    ///
    /// # Errors
    /// When the plan could not be judged, or names a file that the caller may not read.
    pub async fn review_plan(&self, plan: &Plan, context: &CallContext) -> Result<Review, ToolError> {
        let visible = self.plan_visibility(plan, context).await?;
        self.knowledge().guardian().review_plan(plan, &visible).await
    }

    /// What the review of a plan may see: the same as that of the tool `review_plan`.
    async fn plan_visibility(&self, plan: &Plan, context: &CallContext) -> Result<Visibility, ToolError> {
        let arguments = json!({ "plan": plan });
        let call = ToolCall { id: plan.id.clone(), tool: REVIEW.to_owned(), arguments };
        self.session_parts().0.visibility(&call, context).await
    }

    /// Checks the invariants, the chronicle against the graph, and these assertions. Returns those that are undecided.
    ///
    /// # Errors
    /// `EHALT` with what is broken; then no tool but those that read works until it is reconciled.
    pub async fn assert_invariants(&self, assertions: &[Assertion]) -> Result<InvariantCheck, ToolError> {
        let checked = self.knowledge().guardian().bullet_wound_check(assertions).await;
        let queries: Vec<&str> = assertions.iter().map(|assertion| assertion.cypher.as_str()).collect();
        let told = checked.clone().map(|check| json!(check));
        self.record_act("guardian_assert", json!({ "assertions": queries }), told.into()).await?;
        checked
    }

    /// Moves the chronicles of the other layout to where the configuration has them. Only a person can start this: it
    /// is not a tool, because a caller who can write such a file beside a source could use it to forge events.
    ///
    /// # Errors
    /// When the project cannot be read or written; what is wrong with one file is in the report.
    pub async fn migrate_chronicles(&self, extent: Migration) -> Result<MigrationReport, ToolError> {
        let chronicle = Arc::clone(&self.knowledge().chronicle);
        let migrated = tokio::task::spawn_blocking(move || chronicle.migrate(extent)).await;
        let migrated = migrated.unwrap_or_else(|error| {
            Err(ToolError::new(Code::Internal, format!("the migration was interrupted: {error}"))
                .help("run `tgp chronicle migrate` again; it continues where it was"))
        });
        if extent == Migration::Apply {
            let told = match &migrated {
                Ok(report) => Ok(json!({ "moved": report.moved.len(), "refused": report.refused.len() })),
                Err(error) => Err(error.clone()),
            };
            self.record_act("chronicle_migrate", json!({}), told.into()).await?;
        }
        migrated
    }

    /// Compares the chronicles, or the one that `path` names, with the audit, which is verified first.
    ///
    /// # Errors
    /// `EINTEGRITY` for an audit that is not intact, `EBUDGET` for one that names too many events, and when a file cannot be
    /// read. What contradicts the audit is in the result.
    pub async fn compare_chronicles(&self, path: Option<&str>) -> Result<AuditComparison, ToolError> {
        let only = path.map(chronicle_path).transpose()?;
        let (_, audit) = self.inquiry_parts();
        audit.flush().await?;
        let state = self.state_directory().clone();
        let knowledge = self.knowledge();
        let (chronicle, project) = (Arc::clone(&knowledge.chronicle), knowledge.project.clone());
        let repository = self.config().repository.clone();
        background::run(move || {
            let Some(reader) = state.audit_reader_if_any()? else {
                return Ok(AuditComparison::without_audit("this project has no audit"));
            };
            reader.verify()?;
            let committed =
                |file: &RelativePath| committed_file(&project, &repository, file, MAX_COMMITTED_BYTES);
            chronicle_audit::compare(&chronicle, &reader, &committed, only.as_ref())
        })
        .await
    }

    /// Compares graph, chronicle, registry, audit and work tree with each other.
    ///
    /// # Errors
    /// When an inquiry could not be made at all.
    pub async fn inquire(&self) -> Result<Vec<GuardianFinding>, ToolError> {
        let (library, audit) = self.inquiry_parts();
        let sources = inspect::sources(
            library,
            audit,
            &self.knowledge().chronicle,
            self.root(),
            self.state_directory(),
        );
        self.knowledge().guardian().self_inquiry(&sources).await
    }
}
