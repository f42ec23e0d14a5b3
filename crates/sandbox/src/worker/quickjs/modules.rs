//! Modules by id: bytecode in, engine modules out, each made once.
//!
//! The engine asks by callbacks that must not panic (an unwinding callback aborts the process), so everything here
//! answers with a thrown JavaScript error instead.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;

use rquickjs::{Ctx, Error, Exception, Result, Value, qjs};

use super::code::CodeWithSource;
use crate::protocol::{ModuleCode, ModuleKind};

struct Entry {
    kind: ModuleKind,
    code: CodeWithSource,
    links: BTreeMap<String, String>,
    module: Option<NonNull<qjs::JSModuleDef>>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<String, Entry>,
    /// Modules whose evaluation was started by `evaluate` and has not returned yet.
    evaluating: Vec<String>,
    /// What each module imports, as the engine has asked for it. What is only required is not among it.
    imports: BTreeMap<String, BTreeSet<String>>,
    /// Modules that the engine has linked. It reads memory that is not there when it is asked for the names of another.
    linked: BTreeSet<String>,
}

impl Table {
    /// `start` and every module it reaches by imports.
    fn imported(&self, start: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::from([start.to_owned()]);
        let mut queue = vec![start.to_owned()];
        while let Some(id) = queue.pop() {
            for target in self.imports.get(&id).into_iter().flatten() {
                if seen.insert(target.clone()) {
                    queue.push(target.clone());
                }
            }
        }
        seen
    }
}

thread_local! {
    // The engine's callbacks carry no borrowable state, and a worker has one engine for its whole life.
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Makes `modules` known. Nothing is loaded yet.
pub(super) fn register(modules: Vec<ModuleCode>) {
    TABLE.with_borrow_mut(|table| {
        for module in modules {
            // The engine reads bytecode in place, and a worker lives for one run: the bytes may stay for good.
            let code = CodeWithSource::read(module.bytecode.leak());
            let links = module.links.into_iter().collect();
            table.entries.insert(module.id, Entry { kind: module.kind, code, links, module: None });
        }
    });
}

pub(super) fn kind_of(id: &str) -> Option<ModuleKind> {
    TABLE.with_borrow(|table| table.entries.get(id).map(|entry| entry.kind))
}

/// The JavaScript that a module's bytecode was made from; empty for libraries.
pub(super) fn source_of(id: &str) -> &'static str {
    TABLE.with_borrow(|table| table.entries.get(id).map_or("", |entry| entry.code.source))
}

pub(super) fn resolve(base: &str, specifier: &str) -> Option<String> {
    TABLE.with_borrow(|table| table.entries.get(base).and_then(|entry| entry.links.get(specifier).cloned()))
}

/// What a `require` of `specifier` means: a module that also imports it may mean another form of the package there.
pub(super) fn resolve_required(base: &str, specifier: &str) -> Option<String> {
    resolve(base, &format!("require:{specifier}")).or_else(|| resolve(base, specifier))
}

/// Installs the resolver and the loader.
pub(super) fn install(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive, and the callbacks have the signatures the engine expects.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        qjs::JS_SetModuleLoaderFunc2(runtime, None, Some(load_callback), None, std::ptr::null_mut());
        qjs::JS_SetModuleNormalizeFunc2(runtime, Some(normalize_callback));
    }
}

/// Evaluates a script's bytecode and gives its value.
pub(super) fn run_script<'js>(ctx: &Ctx<'js>, bytecode: &'static [u8]) -> Result<Value<'js>> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: bytecode comes from the build script, or from the compile worker of this same build by way of the kernel; the read value is
    // consumed by JS_EvalFunction, and the result is owned by the returned Value.
    unsafe {
        let function = read_object(raw, bytecode);
        if qjs::JS_IsException(function) {
            return Err(Error::Exception);
        }
        let value = qjs::JS_EvalFunction(raw, function);
        if qjs::JS_IsException(value) {
            Err(Error::Exception)
        } else {
            Ok(Value::from_raw(ctx.clone(), value))
        }
    }
}

/// The CommonJS wrapper function of a module.
pub(super) fn common_js<'js>(ctx: &Ctx<'js>, id: &str) -> Result<Value<'js>> {
    let bytecode = TABLE.with_borrow(|table| {
        table
            .entries
            .get(id)
            .filter(|entry| entry.kind == ModuleKind::CommonJs)
            .map(|entry| entry.code.bytecode)
    });
    match bytecode {
        Some(bytecode) => run_script(ctx, bytecode),
        None => Err(Exception::throw_message(ctx, &format!("module `{id}` is not part of this program"))),
    }
}

/// Starts the evaluation of an ES module and gives its promise.
pub(super) fn evaluate<'js>(ctx: &Ctx<'js>, id: &str) -> Result<Value<'js>> {
    let module = load(ctx, id)?;
    // The engine asserts that a module is not evaluated inside its own evaluation.
    if TABLE.with_borrow(|table| table.evaluating.iter().any(|running| running == id)) {
        return Err(Exception::throw_message(ctx, &format!("module `{id}` is being evaluated")));
    }
    let raw = ctx.as_raw().as_ptr();
    let value = qjs::JS_MKPTR(qjs::JS_TAG_MODULE, module.as_ptr().cast());
    // Bytecode comes without its imports; this loads them by way of the callbacks below.
    // SAFETY: the module pointer stays valid as long as the context.
    if unsafe { qjs::JS_ResolveModule(raw, value) } < 0 {
        return Err(Error::Exception);
    }
    // The engine links before it evaluates, so what runs meanwhile may use these modules.
    let newly_linked = TABLE.with_borrow_mut(|table| {
        table.evaluating.push(id.to_owned());
        let newly: Vec<String> = table.imported(id).difference(&table.linked).cloned().collect();
        table.linked.extend(newly.iter().cloned());
        newly
    });
    // SAFETY: as above; JS_EvalFunction frees the duplicate.
    let promise = unsafe { qjs::JS_EvalFunction(raw, qjs::JS_DupValue(raw, value)) };
    TABLE.with_borrow_mut(|table| table.evaluating.pop());
    // SAFETY: the result is owned by the returned Value.
    unsafe {
        if qjs::JS_IsException(promise) {
            // A module that throws gives a rejected promise: these could not be linked.
            TABLE.with_borrow_mut(|table| table.linked.retain(|id| !newly_linked.contains(id)));
            Err(Error::Exception)
        } else {
            Ok(Value::from_raw(ctx.clone(), promise))
        }
    }
}

/// The namespace object of an ES module.
pub(super) fn namespace<'js>(ctx: &Ctx<'js>, id: &str) -> Result<Value<'js>> {
    let module = load(ctx, id)?;
    if !TABLE.with_borrow(|table| table.linked.contains(id)) {
        let text =
            format!("module `{id}` is not loaded yet; import it, or require it where no cycle leads back");
        return Err(Exception::throw_message(ctx, &text));
    }
    // SAFETY: the module pointer stays valid as long as the context, and the module is linked.
    let value = unsafe { qjs::JS_GetModuleNamespace(ctx.as_raw().as_ptr(), module.as_ptr()) };
    // SAFETY: the result is owned by the returned Value.
    unsafe {
        if qjs::JS_IsException(value) {
            Err(Error::Exception)
        } else {
            Ok(Value::from_raw(ctx.clone(), value))
        }
    }
}

/// What a `require` of an ES module may do right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Evaluate it.
    Evaluate,
    /// It is being evaluated further up: its namespace can be handed out, its bindings fill in later.
    InProgress,
    /// Evaluating it would need a module that is itself half evaluated; the engine cannot do that.
    Circular,
}

/// Decides how `requirer` may load the ES module `id`.
///
/// While modules are being evaluated, those that can still be half done are the ones that lead by static imports
/// from a started evaluation to the requirer. The engine asserts when it meets such a module in a second
/// evaluation, so that case is found here first.
pub(super) fn readiness(requirer: &str, id: &str) -> Readiness {
    TABLE.with_borrow(|table| {
        let mut half_done = BTreeSet::new();
        for root in &table.evaluating {
            for module in closure(table, root) {
                if closure(table, &module).contains(requirer) {
                    half_done.insert(module);
                }
            }
        }
        if half_done.contains(id) {
            Readiness::InProgress
        } else if closure(table, id).iter().any(|module| half_done.contains(module)) {
            Readiness::Circular
        } else {
            Readiness::Evaluate
        }
    })
}

/// `start` and every ES module it reaches by links. Links made by `require` count too, which errs on the safe side.
fn closure(table: &Table, start: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::from([start.to_owned()]);
    let mut queue = vec![start.to_owned()];
    while let Some(id) = queue.pop() {
        let Some(entry) = table.entries.get(&id) else { continue };
        if entry.kind == ModuleKind::CommonJs {
            continue;
        }
        for target in entry.links.values() {
            if seen.insert(target.clone()) {
                queue.push(target.clone());
            }
        }
    }
    seen
}

/// The engine's module for `id`, read from bytecode the first time.
fn load(ctx: &Ctx<'_>, id: &str) -> Result<NonNull<qjs::JSModuleDef>> {
    let known = TABLE.with_borrow(|table| {
        table
            .entries
            .get(id)
            .filter(|entry| entry.kind == ModuleKind::Module)
            .map(|entry| (entry.module, entry.code.bytecode))
    });
    let Some((module, bytecode)) = known else {
        return Err(Exception::throw_message(ctx, &format!("module `{id}` is not part of this program")));
    };
    if let Some(module) = module {
        return Ok(module);
    }
    // SAFETY: as in `run_script`; a module value's pointer is the module itself.
    let module = unsafe {
        let value = read_object(ctx.as_raw().as_ptr(), bytecode);
        if qjs::JS_IsException(value) {
            return Err(Error::Exception);
        }
        NonNull::new(qjs::JS_VALUE_GET_PTR(value).cast::<qjs::JSModuleDef>())
    };
    let Some(module) = module else {
        return Err(Exception::throw_message(ctx, &format!("module `{id}` cannot be read")));
    };
    TABLE.with_borrow_mut(|table| {
        if let Some(entry) = table.entries.get_mut(id) {
            entry.module = Some(module);
        }
    });
    Ok(module)
}

/// # Safety
/// `bytecode` must have been written by this build's engine.
unsafe fn read_object(ctx: *mut qjs::JSContext, bytecode: &'static [u8]) -> qjs::JSValue {
    let flags = (qjs::JS_READ_OBJ_BYTECODE | qjs::JS_READ_OBJ_ROM_DATA) as i32;
    // SAFETY: the caller vouches for the bytes, and they live for the rest of the process.
    unsafe { qjs::JS_ReadObject(ctx, bytecode.as_ptr(), bytecode.len() as _, flags) }
}

unsafe extern "C" fn normalize_callback(
    ctx: *mut qjs::JSContext,
    base: *const c_char,
    name: *const c_char,
    _attributes: qjs::JSValue,
    _opaque: *mut c_void,
) -> *mut c_char {
    // SAFETY: the engine passes valid, terminated strings and a live context.
    unsafe {
        let base = CStr::from_ptr(base).to_string_lossy();
        let name = CStr::from_ptr(name).to_string_lossy();
        let Some(target) = resolve(&base, &name) else {
            throw(ctx, &format!("cannot import `{name}` here: it is not part of this program"));
            return std::ptr::null_mut();
        };
        let text = qjs::js_strndup(ctx, target.as_ptr().cast(), target.len() as _);
        TABLE.with_borrow_mut(|table| table.imports.entry(base.into_owned()).or_default().insert(target));
        text
    }
}

unsafe extern "C" fn load_callback(
    ctx: *mut qjs::JSContext,
    name: *const c_char,
    _opaque: *mut c_void,
    _attributes: qjs::JSValue,
) -> *mut qjs::JSModuleDef {
    // SAFETY: the engine passes a valid, terminated string and a live context.
    unsafe {
        let Some(context) = NonNull::new(ctx) else { return std::ptr::null_mut() };
        let context = Ctx::from_raw(context);
        let name = CStr::from_ptr(name).to_string_lossy();
        load(&context, &name).map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }
}

/// # Safety
/// `ctx` must be alive.
unsafe fn throw(ctx: *mut qjs::JSContext, message: &str) {
    let text = CString::new(message.replace('\0', "")).unwrap_or_default();
    // SAFETY: the format takes one string, which is terminated.
    unsafe { qjs::JS_ThrowReferenceError(ctx, c"%s".as_ptr(), text.as_ptr()) };
}
