//! What the kernel asks the compile worker, and the worker's answer. This runs on both sides of the process line.

use serde::{Deserialize, Serialize};
use tgp_compiler::{
    CheckOptions, CompileError, CompiledModule, ModuleFormat, SourceRole, Unit, check, compile, describe,
    tool_errors,
};
use tgp_contract::{Finding, RelativePath, ToolMetadata};
use tgp_sandbox::{EmitRequest, Frontend, FrontendReply, ModuleKind};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FrontendRequest {
    Compile {
        unit: Unit,
    },
    Check {
        unit: Unit,
        options: CheckOptions,
    },
    /// Path and source of each.
    Describe {
        tools: Vec<(RelativePath, String)>,
    },
    /// JavaScript that needs no front end.
    Script {
        id: String,
        common_js: bool,
        code: String,
        keep_debug_info: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FrontendAnswer {
    Compiled(Box<CompiledModule>),
    Refused(CompileError),
    Checked(Vec<Finding>),
    Described(Vec<ToolMetadata>),
    Emitted,
    NotUnderstood,
}

/// The compiler, plugged into the compile worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgeFrontend;

impl Frontend for ForgeFrontend {
    fn handle(&self, request: &[u8]) -> FrontendReply {
        let (answer, emit) = match serde_json::from_slice(request) {
            Ok(FrontendRequest::Compile { unit }) => match compile(&unit) {
                Ok(mut compiled) => {
                    compiled.errors = tool_errors(&unit, &compiled);
                    let emit = EmitRequest {
                        id: compiled.id.clone(),
                        kind: kind(compiled.format),
                        code: compiled.code.clone(),
                        keep_debug_info: unit.role != SourceRole::Library,
                    };
                    (FrontendAnswer::Compiled(Box::new(compiled)), Some(emit))
                }
                Err(error) => (FrontendAnswer::Refused(error), None),
            },
            Ok(FrontendRequest::Check { unit, options }) => {
                (FrontendAnswer::Checked(check(&unit, &options)), None)
            }
            Ok(FrontendRequest::Describe { tools }) => {
                let described = tools.iter().map(|(path, source)| describe(path, source)).collect();
                (FrontendAnswer::Described(described), None)
            }
            Ok(FrontendRequest::Script { id, common_js, code, keep_debug_info }) => {
                let kind = if common_js { ModuleKind::CommonJs } else { ModuleKind::Module };
                (FrontendAnswer::Emitted, Some(EmitRequest { id, kind, code, keep_debug_info }))
            }
            Err(_) => (FrontendAnswer::NotUnderstood, None),
        };
        FrontendReply { answer: serde_json::to_vec(&answer).unwrap_or_default(), emit }
    }
}

pub(super) fn kind(format: ModuleFormat) -> ModuleKind {
    match format {
        ModuleFormat::Module => ModuleKind::Module,
        ModuleFormat::CommonJs => ModuleKind::CommonJs,
    }
}
