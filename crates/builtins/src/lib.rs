//! The tools that every project has: those of the tool library, of the project's files, of processes, and of what is
//! known about the project.
#![forbid(unsafe_code)]

mod kernel;
mod knowledge;
mod process;
mod project;

pub use kernel::kernel_tools;
pub use knowledge::{chronicle_path, knowledge_tools, refuse_hidden};
pub use process::{ProcessCaps, ProcessOptions, process_tools};
pub use project::{project_tools, testing};

pub use process::PACKAGE_STAGING;

/// The results of the built-in tools, as every caller gets them.
pub mod results {
    pub use crate::kernel::{
        DryRunChange, ExecToolResult, HostResult, SearchResult, SqlResult, TestFile, TestNotRun,
        TestToolResult, ToolHit, ToolWrite, ToolWritePreview, UpstreamResult,
    };
    pub use crate::knowledge::{ChronicleAppendResult, ChroniclePage, GraphIngestResult, GraphQueryResult};
    pub use crate::process::{
        CommandChange, CommandEnd, CommandOutput, CommandResult, PackageInstallResult, RunnerResult,
        StreamBytes, TestRunResult,
    };
    pub use crate::project::{
        ChangedFile, CommitFile, CommitInfo, CommitList, CommitResult, CutLine, DiffFile, DiffPage,
        ExistsResult, FileChangeResult, FileList, FilePage, GlobResult, GrepMatch, GrepResult, LeftOutFile,
        ListedFile, RepositoryState, SkippedFiles,
    };
    pub use tgp_registry::ReuseVerdict as SearchVerdict;
    pub use tgp_router::database::{SqlNote, SqlNotes};
    pub use tgp_sandbox::{LogLevel, LogLine, RunStats};
    pub use tgp_tool_runtime::forge::{TestFailure, TestReport, TestResult};
    pub use tgp_tool_runtime::memory::{SimilarTool, SyncResult, ToolLog, ToolVersion, ToolWriteResult};
}
