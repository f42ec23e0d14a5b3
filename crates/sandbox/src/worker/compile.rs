//! The compile worker: source to bytecode, and never a line of tool code run.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::net::UnixStream;

use rquickjs::{Context, Ctx, Runtime, qjs};

use super::quickjs::{CodeWithSource, PRELUDE_ID, prelude_parts};
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

/// Bytes of stack the engine's parser may use; the worker's main stack is far larger.
const PARSER_STACK_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn serve(connection: &mut UnixStream, frontend: &dyn Frontend) -> Result<(), FrameError> {
    loop {
        let job: CompileJob = read_blocking(connection)?;
        let reply = frontend.handle(&job.request);
        let bytecode = reply.emit.as_ref().map(bytecode);
        write_blocking(connection, &CompileAnswer { answer: reply.answer, bytecode })?;
    }
}

/// What the engine makes of a request: the prelude is several scripts, everything else is one module.
fn bytecode(request: &EmitRequest) -> Result<Vec<u8>, String> {
    if request.id != PRELUDE_ID {
        return module_bytecode(request).map(|bytecode| CodeWithSource::write(bytecode, request));
    }
    let mut parts = Vec::new();
    for (name, code) in prelude_parts(&request.code) {
        let part = EmitRequest { code: code.to_owned(), ..request.clone() };
        parts.push((name, module_bytecode(&part).map_err(|text| format!("{name}: {text}"))?));
    }
    postcard::to_allocvec(&parts).map_err(|error| error.to_string())
}

/// A fresh runtime for each source: nothing of one can stay for the next.
fn module_bytecode(request: &EmitRequest) -> Result<Vec<u8>, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_max_stack_size(PARSER_STACK_BYTES);
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| {
        // SAFETY: the runtime is alive and the callbacks have the signatures the engine expects.
        unsafe {
            let raw = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
            qjs::JS_SetModuleLoaderFunc2(
                raw,
                Some(same_name),
                Some(empty_module),
                None,
                std::ptr::null_mut(),
            );
        }
        compile(&ctx, request)
    })
}

/// Specifiers are resolved when the program is linked, so here every name stands for itself.
unsafe extern "C" fn same_name(
    ctx: *mut qjs::JSContext,
    _base: *const c_char,
    name: *const c_char,
    _opaque: *mut c_void,
) -> *mut c_char {
    // SAFETY: the engine passes a terminated string and frees the copy.
    unsafe { qjs::js_strdup(ctx, name) }
}

/// The engine wants every import to exist while it compiles; an empty module satisfies it and is not written out.
unsafe extern "C" fn empty_module(
    ctx: *mut qjs::JSContext,
    name: *const c_char,
    _opaque: *mut c_void,
    _attributes: qjs::JSValue,
) -> *mut qjs::JSModuleDef {
    unsafe extern "C" fn nothing(_ctx: *mut qjs::JSContext, _module: *mut qjs::JSModuleDef) -> c_int {
        0
    }
    // SAFETY: the engine passes a live context and a terminated string.
    unsafe { qjs::JS_NewCModule(ctx, name, Some(nothing)) }
}

fn compile(ctx: &Ctx<'_>, request: &EmitRequest) -> Result<Vec<u8>, String> {
    let name = CString::new(request.id.as_str()).map_err(|_| "the module id contains NUL".to_owned())?;
    let source = CString::new(request.code.as_str()).map_err(|_| "the source contains NUL".to_owned())?;
    let kind = match request.kind {
        ModuleKind::Module => qjs::JS_EVAL_TYPE_MODULE,
        ModuleKind::CommonJs => qjs::JS_EVAL_TYPE_GLOBAL,
    };
    let mut write_flags = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE;
    if !request.keep_debug_info {
        write_flags |= qjs::JS_WRITE_OBJ_STRIP_DEBUG;
    }
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the strings are terminated and outlive the calls; with COMPILE_ONLY nothing is run; the written
    // buffer belongs to us until js_free.
    unsafe {
        let flags = (kind | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as i32;
        let value = qjs::JS_Eval(raw, source.as_ptr(), source.as_bytes().len() as _, name.as_ptr(), flags);
        if qjs::JS_IsException(value) {
            return Err(exception_text(ctx));
        }
        let mut size = 0;
        let buffer = qjs::JS_WriteObject(raw, &raw mut size, value, write_flags as i32);
        qjs::JS_FreeValue(raw, value);
        if buffer.is_null() {
            return Err(exception_text(ctx));
        }
        let bytes = std::slice::from_raw_parts(buffer, size as usize).to_vec();
        qjs::js_free(raw, buffer.cast());
        Ok(bytes)
    }
}

fn exception_text(ctx: &Ctx<'_>) -> String {
    let value = ctx.catch();
    value
        .as_exception()
        .and_then(rquickjs::Exception::message)
        .unwrap_or_else(|| "the engine refused the code".to_owned())
}
