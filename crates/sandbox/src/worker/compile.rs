//! The compile worker: source to bytecode, and never a line of tool code run.

use std::os::unix::net::UnixStream;

use super::bytecode::{self, PARSER_STACK_BYTES, Source};
use super::quickjs::CodeWithSource;
use crate::protocol::{
    CompileAnswer, CompileJob, EmitRequest, FrameError, ModuleKind, read_blocking, write_blocking,
};

/// What turns a request into an answer and, perhaps, into code for the engine. The kernel plugs its compiler in
/// here, so that a source that crashes the compiler only takes this process with it.
pub trait Frontend {
    fn handle(&self, request: &[u8]) -> FrontendReply;
}

/// What a front end gives back.
#[derive(Debug, Default)]
pub struct FrontendReply {
    pub answer: Vec<u8>,
    pub emit: Option<EmitRequest>,
}

pub(super) fn serve(connection: &mut UnixStream, frontend: &dyn Frontend) -> Result<(), FrameError> {
    loop {
        let job: CompileJob = read_blocking(connection)?;
        let reply = frontend.handle(&job.request);
        let bytecode = reply.emit.as_ref().map(emit);
        write_blocking(connection, &CompileAnswer { answer: reply.answer, bytecode })?;
    }
}

fn emit(request: &EmitRequest) -> Result<Vec<u8>, String> {
    let source = Source {
        name: &request.id,
        code: &request.code,
        is_module: request.kind == ModuleKind::Module,
        keep_debug_info: request.keep_debug_info,
    };
    let bytecode = bytecode::bytecode(source, PARSER_STACK_BYTES)?;
    Ok(CodeWithSource::write(bytecode, request))
}
