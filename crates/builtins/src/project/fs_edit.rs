//! `fs_edit`: some pieces of a file's text for others, all of them or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tgp_contract::{Access, Code, Effect, ExecutionPath, FsError, RelativePath, Target, ToolError};

use super::change::{ExpectedContent, FileChangeResult, answer, change};
use super::{BlockingPool, project_file};
use tgp_router::files::{Replacement, patch};
use tgp_router::{Invocation, Tool, ToolOutcome, ToolSpec};

/// Edits of one call; with more, the whole file is written sooner.
const MAX_EDITS: usize = 100;

pub(super) struct FsEdit(pub(super) Arc<BlockingPool>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FsEditArgs {
    /// Such as `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// Literal text that occurs exactly once, unless `all` is true. Add lines to make it unique.
    #[schemars(length(min = 1))]
    search: Option<String>,
    /// The literal replacement.
    replace: Option<String>,
    /// Replace every occurrence.
    all: Option<bool>,
    /// Several replacements in turn, instead of one.
    #[schemars(length(min = 1, max = MAX_EDITS))]
    edits: Option<Vec<Edit>>,
    /// Refuse with ECONFLICT unless the file has this SHA-256.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    expected_sha256: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Literal text that occurs exactly once, unless `all` is true. Add lines to make it unique.
    #[schemars(length(min = 1))]
    search: String,
    /// The literal replacement.
    replace: String,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
}

impl FsEditArgs {
    fn replacements(&mut self) -> Vec<Replacement> {
        let alone = self.search.take().zip(self.replace.take());
        let alone =
            alone.map(|(search, replace)| Edit { search, replace, all: self.all.unwrap_or_default() });
        let edits = self.edits.take().into_iter().flatten().chain(alone);
        edits.map(|Edit { search, replace, all }| Replacement { search, replace, all }).collect()
    }

    /// Either `search` and `replace`, or `edits`. Providers of models refuse a schema that says so at its top.
    fn check_form(&self) -> Result<(), ToolError> {
        let problem = match (self.edits.is_some(), self.search.is_some(), self.replace.is_some()) {
            (true, false, false) if self.all.is_none() => return Ok(()),
            (false, true, true) => return Ok(()),
            (true, ..) => "`search`, `replace` and `all` belong into each of the `edits`, not beside them",
            (false, true, false) => "`replace` is missing",
            (false, false, true) => "`search` is missing",
            (false, false, false) => "`search` and `replace`, or `edits`, are missing",
        };
        Err(ToolError::new(Code::Validation, format!("the arguments of `fs_edit` do not fit: {problem}"))
            .help("give {path, search, replace}, or {path, edits: [{search, replace}, …]}"))
    }
}

#[async_trait]
impl Tool for FsEdit {
    type Args = FsEditArgs;
    type Output = FileChangeResult;

    const INFO: ToolSpec = ToolSpec {
        name: "fs_edit",
        aliases: &["fs.edit", "Edit"],
        description: "Replace text in a file of the project: one {search, replace}, or several as `edits`, applied in order. All edits are applied, or none.",
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: true,
    };

    fn targets(&self, args: &FsEditArgs) -> Result<Vec<Target>, ToolError> {
        args.check_form()?;
        project_file(&args.path, Access::Write)
    }

    async fn run(
        &self,
        mut args: FsEditArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<FileChangeResult>, ToolError> {
        let path = RelativePath::new(&args.path)?;
        let replacements = args.replacements();
        let expected = ExpectedContent::new(&path, args.expected_sha256);
        let count = Arc::new(AtomicUsize::new(0));
        let (meant, counted) = (path.clone(), Arc::clone(&count));
        let changed = change(&self.0, invocation, &path, move |before| {
            expected.check(before)?;
            let before = before.ok_or_else(|| FsError::NotFound(meant.clone()))?;
            let mut text = std::str::from_utf8(before)
                .map_err(|error| FsError::NotText { path: meant.clone(), offset: error.valid_up_to() })?
                .to_owned();
            let mut places = 0;
            for (index, replacement) in replacements.iter().enumerate() {
                let (patched, more) =
                    patch(&meant, &text, replacement).map_err(|error| error.detail("edit", index))?;
                text = patched;
                places += more;
            }
            counted.store(places, Ordering::Relaxed);
            Ok(Some(text.into_bytes()))
        })
        .await?;
        let replacements = Some(count.load(Ordering::Relaxed));
        let result = FileChangeResult { replacements, ..FileChangeResult::of(&path) };
        Ok(answer(invocation, &changed, result))
    }
}
