//! JavaScript to bytecode of the engine. Nothing is run.
//!
//! The build script compiles the prelude with this same file, so it uses the engine and the standard library alone.

use std::ffi::{CString, c_char, c_int, c_void};

use rquickjs::{Context, Ctx, Runtime, qjs};

/// Bytes of stack the engine's parser may use; the main stack of a compile worker is far larger.
pub(crate) const PARSER_STACK_BYTES: usize = 16 * 1024 * 1024;

/// What to compile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The name that its frames carry in a stack.
    pub(crate) name: &'a str,
    pub(crate) code: &'a str,
    /// An ES module; otherwise a script.
    pub(crate) is_module: bool,
    pub(crate) keep_debug_info: bool,
}

/// Bytecode of one source. Each has a fresh runtime: nothing of one can stay for the next.
pub(crate) fn bytecode(source: Source<'_>, stack_bytes: usize) -> Result<Vec<u8>, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_max_stack_size(stack_bytes);
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
        compile(&ctx, source)
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

fn compile(ctx: &Ctx<'_>, source: Source<'_>) -> Result<Vec<u8>, String> {
    let name = CString::new(source.name).map_err(|_| "the module id contains NUL".to_owned())?;
    let code = CString::new(source.code).map_err(|_| "the source contains NUL".to_owned())?;
    let kind = if source.is_module { qjs::JS_EVAL_TYPE_MODULE } else { qjs::JS_EVAL_TYPE_GLOBAL };
    let mut write_flags = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE;
    if !source.keep_debug_info {
        write_flags |= qjs::JS_WRITE_OBJ_STRIP_DEBUG;
    }
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the strings are terminated and outlive the calls; with COMPILE_ONLY nothing is run; the written
    // buffer belongs to us until js_free.
    unsafe {
        let flags = (kind | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as i32;
        let value = qjs::JS_Eval(raw, code.as_ptr(), code.as_bytes().len() as _, name.as_ptr(), flags);
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
