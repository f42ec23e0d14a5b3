//! Where a run spends its CPU time: the stack at regular steps of it, and where a limit stopped the run.
//!
//! The engine calls back between two operations, and there a stack can be made. Its first line may be that of an earlier
//! operation of the same function, because the engine notes a place only before what can throw. The stack of the error
//! that stops the run is exact, so it corrects those samples whose first line is the same as in the last one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::function::This;
use rquickjs::{Array, Ctx, Function, Object, Persistent, Result, Undefined, Value, qjs};

use super::natives;
use crate::protocol::{StackSample, StopReport};

/// Samples of a run that uses all of its CPU time.
const SAMPLES: u32 = 100;
/// Making a stack takes some microseconds, so that it is not done more often than this.
const LEAST_STEP: Duration = Duration::from_millis(1);
/// Different stacks that are kept.
const MAX_STACKS: usize = 256;
/// Bytes of a stack.
const MAX_STACK_BYTES: usize = 2048;
/// Frames of the stack where the run was stopped.
const MAX_FRAMES: usize = 10;

/// Functions of the engine, as they were before a tool could replace them.
struct StackFunctions {
    error: Persistent<Object<'static>>,
    capture: Persistent<Function<'static>>,
    stack_limit: Persistent<Function<'static>>,
    get_prepare: Persistent<Function<'static>>,
    set_prepare: Persistent<Function<'static>>,
    /// Keeps the stack of the error that stops the run.
    keep_stop: Persistent<Function<'static>>,
}

#[derive(Default)]
pub(super) struct Sampler {
    context: Cell<Option<NonNull<qjs::JSContext>>>,
    functions: RefCell<Option<StackFunctions>>,
    /// Nothing before the run begins.
    step: Cell<Option<Duration>>,
    next: Cell<Duration>,
    stacks: RefCell<BTreeMap<String, u32>>,
    /// The sample that was taken when the run was stopped.
    last: RefCell<Option<String>>,
    stop: Rc<RefCell<Option<String>>>,
    is_waiting: Cell<bool>,
}

/// Drops what the sampler keeps of an engine before the engine itself.
pub(super) struct SamplerGuard(Rc<Sampler>);

impl Drop for SamplerGuard {
    fn drop(&mut self) {
        self.0.context.set(None);
        self.0.functions.take();
    }
}

impl Sampler {
    /// Keeps the functions that it needs. Call it before anything else runs in the context.
    pub(super) fn install(self: &Rc<Self>, ctx: &Ctx<'_>) -> Result<SamplerGuard> {
        let error: Object = ctx.globals().get("Error")?;
        let object: Object = ctx.globals().get("Object")?;
        let describe: Function = object.get("getOwnPropertyDescriptor")?;
        let accessor = |name: &str, part: &str| -> Result<Persistent<Function<'static>>> {
            let descriptor: Object = describe.call((error.clone(), name))?;
            Ok(Persistent::save(ctx, descriptor.get::<_, Function>(part)?))
        };
        let stop = Rc::clone(&self.stop);
        let keep_stop = Function::new(ctx.clone(), move |_: Value<'_>, sites: Array<'_>| {
            let text = stack_of(&sites);
            if !text.is_empty() {
                stop.borrow_mut().get_or_insert_with(|| text.clone());
            }
            text
        })?;
        let functions = StackFunctions {
            capture: Persistent::save(ctx, error.get::<_, Function>("captureStackTrace")?),
            stack_limit: accessor("stackTraceLimit", "get")?,
            get_prepare: accessor("prepareStackTrace", "get")?,
            set_prepare: accessor("prepareStackTrace", "set")?,
            keep_stop: Persistent::save(ctx, keep_stop),
            error: Persistent::save(ctx, error),
        };
        self.functions.replace(Some(functions));
        self.context.set(Some(ctx.as_raw()));
        Ok(SamplerGuard(Rc::clone(self)))
    }

    /// A run with this much CPU time begins.
    pub(super) fn begin(&self, cpu: Duration) {
        let step = (cpu / SAMPLES).max(LEAST_STEP);
        self.step.set(Some(step));
        self.next.set(step);
    }

    /// Takes a sample when it is time. The engine calls this while it runs code.
    pub(super) fn tick(&self, cpu_used: Duration) {
        let Some(step) = self.step.get() else { return };
        if cpu_used < self.next.get() {
            return;
        }
        self.next.set(cpu_used + step);
        if let Some(stack) = self.on_engine(current_stack) {
            self.note(stack);
        }
    }

    /// The run is about to be stopped at this place.
    pub(super) fn stopping(&self) {
        if self.step.get().is_none() || self.last.borrow().is_some() {
            return;
        }
        let stack = self.on_engine(current_stack).unwrap_or_default();
        self.last.replace(Some(stack));
        self.on_engine(|ctx, functions| {
            let error = functions.error.clone().restore(ctx)?;
            let keep = functions.keep_stop.clone().restore(ctx)?;
            functions.set_prepare.clone().restore(ctx)?.call::<_, ()>((This(error), keep)).map(Some)
        });
    }

    /// The run is about to be stopped while it waits for a call that was made here.
    pub(super) fn waits_at(&self, stack: String) {
        self.is_waiting.set(!stack.is_empty());
        self.stop.replace(Some(stack));
    }

    /// The stack where the run was stopped, empty when that is not known, and what else is known of it.
    pub(super) fn take(&self) -> (String, StopReport) {
        let stop = self.stop.take().unwrap_or_default();
        let last = self.last.take().unwrap_or_default();
        let stacks = self.stacks.take().into_iter();
        let samples =
            stacks.map(|(stack, count)| StackSample { stack: corrected(stack, &last, &stop), count });
        let samples = samples.collect();
        (stop, StopReport { samples, is_waiting: self.is_waiting.get() })
    }

    fn note(&self, stack: String) {
        let mut stacks = self.stacks.borrow_mut();
        if stacks.len() < MAX_STACKS || stacks.contains_key(&stack) {
            let count = stacks.entry(stack).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Does something with the engine from within its callback. Nothing of a tool runs in it.
    fn on_engine<T>(&self, work: impl Fn(&Ctx<'_>, &StackFunctions) -> Result<Option<T>>) -> Option<T> {
        // An engine that calls back while it serves this call is left alone.
        let functions = self.functions.try_borrow_mut().ok()?;
        let (functions, context) = (functions.as_ref()?, self.context.get()?);
        // SAFETY: the engine that calls back is locked by the thread that runs it, and its context is alive until the
        // guard has taken the pointer away.
        let ctx = unsafe { Ctx::from_raw(context) };
        work(&ctx, functions).unwrap_or_else(|_| {
            ctx.catch();
            None
        })
    }
}

/// The stack as the engine knows it now; nothing when a tool has made its length something that has to be computed.
fn current_stack(ctx: &Ctx<'_>, functions: &StackFunctions) -> Result<Option<String>> {
    let error = functions.error.clone().restore(ctx)?;
    let limit: Value = functions.stack_limit.clone().restore(ctx)?.call((This(error.clone()),))?;
    if !limit.is_number() {
        return Ok(None);
    }
    // A function that a tool has set would run in here, between two operations of its own code.
    let prepare: Value = functions.get_prepare.clone().restore(ctx)?.call((This(error.clone()),))?;
    let set = functions.set_prepare.clone().restore(ctx)?;
    let is_set = !prepare.is_undefined();
    if is_set {
        set.call::<_, ()>((This(error.clone()), Undefined))?;
    }
    let stack = capture(ctx, functions);
    if is_set {
        set.call::<_, ()>((This(error), prepare))?;
    }
    Ok(Some(tgp_text::head(&stack?, MAX_STACK_BYTES).to_owned()))
}

fn capture(ctx: &Ctx<'_>, functions: &StackFunctions) -> Result<String> {
    // It inherits nothing: while a tool's own code makes a stack the engine makes no other, and then a getter of the tool
    // would be asked, in the middle of an operation of the engine.
    let holder = natives::object(ctx)?;
    functions.capture.clone().restore(ctx)?.call::<_, ()>((holder.clone(),))?;
    holder.get("stack")
}

/// The frames of an error in the form in which the engine writes them.
fn stack_of(sites: &Array<'_>) -> String {
    let mut text = String::new();
    for site in sites.iter::<Object>().take(MAX_FRAMES).flatten() {
        fn read<'js, T: rquickjs::FromJs<'js>>(site: &Object<'js>, name: &str) -> Option<T> {
            let method: Function = site.get(name).ok()?;
            method.call((This(site.clone()),)).ok()
        }
        let name = read::<String>(&site, "getFunctionName").filter(|name| !name.is_empty());
        let name = name.as_deref().unwrap_or("<anonymous>");
        let file = read::<String>(&site, "getFileName");
        let (line, column) = (read::<i32>(&site, "getLineNumber"), read::<i32>(&site, "getColumnNumber"));
        let place = match (file, line, column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            _ => "native".to_owned(),
        };
        text.push_str(&format!("    at {name} ({place})\n"));
    }
    tgp_text::head(&text, MAX_STACK_BYTES).to_owned()
}

/// The sample with the exact first line, when its own is the one that was seen where the run was stopped.
fn corrected(stack: String, last: &str, stop: &str) -> String {
    let (Some((first, rest)), Some((seen, _))) = (stack.split_once('\n'), last.split_once('\n')) else {
        return stack;
    };
    match stop.split_once('\n') {
        Some((exact, _)) if first == seen => format!("{exact}\n{rest}"),
        _ => stack,
    }
}
