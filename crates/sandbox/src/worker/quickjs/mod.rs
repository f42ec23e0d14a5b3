//! QuickJS-NG as engine: a runtime under a counting allocator, a context that cannot compile text, and the prelude.

mod allocator;
mod call_names;
mod code;
mod csv;
mod encoding;
mod engine_buffer;
mod intl;
mod modules;
mod natives;
mod prelude;
mod rejections;
mod runner;
mod samples;
mod subtle;
mod timers;
mod value_kinds;
mod values;

use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::intrinsic;
use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{
    Context, Ctx, Error, Exception, Function, Module, Object, Persistent, Result, Runtime, TypedArray, Value,
    qjs,
};

use crate::protocol::{ModuleCode, RunOutcome, RunRequest};
use crate::worker::engine::Engine;
use crate::worker::host::Host;
use allocator::CountingAllocator;
pub(super) use allocator::HeapMeter;
pub(in crate::worker) use code::CodeWithSource;
use modules::Readiness;
use rejections::Rejections;
use samples::{Sampler, SamplerGuard};
use timers::Timers;

/// Everything but `Eval`: code arrives as bytecode only, so every route from text to code is a dead end.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::Performance,
    intrinsic::WeakRef,
    intrinsic::DOMException,
);

/// The version of QuickJS-NG.
#[must_use]
pub fn engine_version() -> String {
    // SAFETY: the engine gives a constant text.
    unsafe { std::ffi::CStr::from_ptr(qjs::JS_GetVersion()) }.to_string_lossy().into_owned()
}

/// CPU time that all warm-up modules together may take.
const WARM_UP_CPU: Duration = Duration::from_millis(250);

/// What the prelude hands back to the worker.
struct Prelude {
    start: Persistent<Function<'static>>,
    settle: Persistent<Function<'static>>,
    fire_timer: Persistent<Function<'static>>,
    describe: Persistent<Function<'static>>,
    waiting_stack: Persistent<Function<'static>>,
}

pub(super) struct QuickJs {
    // Fields drop in this order: what holds JavaScript values goes before what owns them.
    prelude: Prelude,
    _sampler_guard: SamplerGuard,
    sampler: Rc<Sampler>,
    rejections: Rejections,
    timers: Rc<Timers>,
    context: Context,
    runtime: Runtime,
}

/// What the prelude gives to modules that no source may name.
struct PreludeExports {
    require_from: Persistent<Function<'static>>,
    load: Persistent<Function<'static>>,
    call_upstream: Persistent<Function<'static>>,
    call_host: Persistent<Function<'static>>,
}

// SAFETY: the type holds no `'js` lifetime, only persistent handles.
unsafe impl rquickjs::JsLifetime<'_> for PreludeExports {
    type Changed<'to> = PreludeExports;
}

/// `tgp:foreign`, which only the modules of other programs can import.
struct ForeignModule;

impl ModuleDef for ForeignModule {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare("callUpstream")?;
        declarations.declare("callHost")?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let Some(functions) = ctx.userdata::<PreludeExports>() else {
            return Err(Exception::throw_message(ctx, "the prelude is not loaded"));
        };
        exports.export("callUpstream", functions.call_upstream.clone().restore(ctx)?)?;
        exports.export("callHost", functions.call_host.clone().restore(ctx)?)?;
        Ok(())
    }
}

/// `tgp:require`, which only emitted code can import because no source may name it.
struct RequireModule;

impl ModuleDef for RequireModule {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare("requireFrom")?;
        declarations.declare("load")?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let Some(functions) = ctx.userdata::<PreludeExports>() else {
            return Err(Exception::throw_message(ctx, "the prelude is not loaded"));
        };
        exports.export("requireFrom", functions.require_from.clone().restore(ctx)?)?;
        exports.export("load", functions.load.clone().restore(ctx)?)?;
        Ok(())
    }
}

impl QuickJs {
    /// Makes the engine and runs the core of the prelude.
    pub(super) fn new(host: &Rc<Host>, heap: &Rc<HeapMeter>) -> Result<Self> {
        let runtime = Runtime::new_with_alloc(CountingAllocator(Rc::clone(heap)))?;
        let watched = Rc::clone(host);
        let sampler = Rc::new(Sampler::default());
        let asked = Rc::clone(&sampler);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let stops = watched.must_stop();
            if stops {
                asked.stopping();
            } else {
                asked.tick(watched.last_cpu_used());
            }
            stops
        })));
        let rejections = Rejections::default();
        rejections.watch(&runtime);
        let context = Context::custom::<Intrinsics>(&runtime)?;
        let timers = Rc::new(Timers::default());
        let sampler_guard = context.with(|ctx| sampler.install(&ctx))?;
        let prelude = context.with(|ctx| {
            // SAFETY: the context is alive.
            unsafe { qjs::JS_AddIntrinsicAToB(ctx.as_raw().as_ptr()) };
            modules::install(&ctx);
            let make = modules::run_script(&ctx, prelude::part("core").ok_or(Error::Unknown)?)?;
            let make = make.into_function().ok_or(Error::Unknown)?;
            let natives = natives::object(&ctx)?;
            install_natives(&ctx, &natives, host, &timers, &rejections)?;
            natives::install(&ctx, &natives)?;
            encoding::install(&ctx, &natives)?;
            values::install(&ctx, &natives, host)?;
            install_parts(&ctx, &natives, host)?;
            let made: Object = make.call((natives,))?;
            let keep = |name: &str| -> Result<Persistent<Function<'static>>> {
                Ok(Persistent::save(&ctx, made.get::<_, Function>(name)?))
            };
            let functions = PreludeExports {
                require_from: keep("requireFrom")?,
                load: keep("load")?,
                call_upstream: keep("callUpstream")?,
                call_host: keep("callHost")?,
            };
            ctx.store_userdata(functions).map_err(|_| Error::Unknown)?;
            Module::declare_def::<RequireModule, _>(ctx.clone(), "tgp:require")?;
            Module::declare_def::<ForeignModule, _>(ctx.clone(), "tgp:foreign")?;
            csv::declare(&ctx, host)?;
            Ok::<_, Error>(Prelude {
                start: keep("start")?,
                settle: keep("settle")?,
                fire_timer: keep("fireTimer")?,
                describe: keep("describe")?,
                waiting_stack: keep("waitingStack")?,
            })
        })?;
        Ok(Self { prelude, _sampler_guard: sampler_guard, sampler, rejections, timers, context, runtime })
    }

    fn set_stack_bytes(&self, bytes: usize) {
        self.runtime.set_max_stack_size(bytes);
    }
}

impl Engine for QuickJs {
    fn warm_up(&self, host: &Host, libraries: Vec<ModuleCode>) -> bool {
        let ids: Vec<String> = libraries.iter().map(|module| module.id.clone()).collect();
        modules::register(libraries);
        host.begin_warm_up(WARM_UP_CPU);
        self.context.with(|ctx| {
            for id in &ids {
                if modules::kind_of(id) == Some(crate::protocol::ModuleKind::Module)
                    && modules::evaluate(&ctx, id).is_err()
                {
                    return false;
                }
            }
            while ctx.execute_pending_job() {
                if host.must_stop() {
                    return false;
                }
            }
            // A module that failed has left its promise rejected.
            !host.must_stop() && self.rejections.is_empty()
        })
    }

    fn collect_garbage(&self) {
        self.runtime.run_gc();
    }

    fn run(&self, host: &Rc<Host>, request: RunRequest) -> RunOutcome {
        runner::run(self, host, request)
    }
}

/// The natives that need the host: logs, bridge calls, timers, modules.
fn install_natives<'js>(
    ctx: &Ctx<'js>,
    natives: &Object<'js>,
    host: &Rc<Host>,
    timers: &Rc<Timers>,
    rejections: &Rejections,
) -> Result<()> {
    use crate::protocol::{FromWorker, LogLevel, ModuleKind};

    let owner = Rc::clone(host);
    natives.set(
        "log",
        Function::new(ctx.clone(), move |level: String, text: String| {
            let level = match level.as_str() {
                "debug" => LogLevel::Debug,
                "warn" => LogLevel::Warn,
                "error" => LogLevel::Error,
                _ => LogLevel::Info,
            };
            owner.log(level, text);
        })?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "call",
        Function::new(
            ctx.clone(),
            move |name: String, arguments: String, bytes: Option<TypedArray<'js, u8>>| {
                owner.call(name, arguments, bytes.as_ref().map(natives::copy_of))
            },
        )?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "cancelCall",
        Function::new(ctx.clone(), move |call: u32| {
            owner.close_call(call);
            owner.send_or_die(&FromWorker::Cancel { call });
        })?,
    )?;
    let owner = Rc::clone(host);
    natives.set("job", Function::new(ctx.clone(), move || owner.job())?)?;
    let owner = Rc::clone(host);
    natives.set("releaseLookups", Function::new(ctx.clone(), move |job: u32| owner.release_lookups(job))?)?;

    let armed = Rc::clone(timers);
    natives
        .set("armTimer", Function::new(ctx.clone(), move |id: f64, wait: f64| armed.arm(id as u64, wait))?)?;
    let armed = Rc::clone(timers);
    natives.set("disarmTimer", Function::new(ctx.clone(), move |id: f64| armed.disarm(id as u64))?)?;

    natives.set(
        "resolve",
        Function::new(ctx.clone(), |requirer: String, specifier: String| {
            modules::resolve_required(&requirer, &specifier)
        })?,
    )?;
    natives.set(
        "isCommonJs",
        Function::new(ctx.clone(), |id: String| modules::kind_of(&id) == Some(ModuleKind::CommonJs))?,
    )?;
    natives.set(
        "commonJs",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, id: String| modules::common_js(&ctx, &id))?,
    )?;
    natives.set(
        "evaluate",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, id: String| modules::evaluate(&ctx, &id))?,
    )?;
    natives.set(
        "namespace",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, id: String| modules::namespace(&ctx, &id))?,
    )?;
    let rejections = rejections.clone();
    natives.set(
        "requireModule",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, requirer: String, id: String| {
            require_module(&ctx, &rejections, &requirer, &id)
        })?,
    )?;
    Ok(())
}

/// The native that gives the core another part of the prelude.
fn install_parts<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, host: &Rc<Host>) -> Result<()> {
    let owner = Rc::clone(host);
    // The core hands its natives back: a closure that held them would be a cycle the collector cannot see.
    let load = move |ctx: Ctx<'js>, name: String, natives: Object<'js>| {
        match name.as_str() {
            "intl" => intl::install(&ctx, &natives)?,
            "subtle" => subtle::install(&ctx, &natives, &owner)?,
            _ => {}
        }
        match prelude::part(&name) {
            Some(bytecode) => modules::run_script(&ctx, bytecode),
            None => Err(Exception::throw_message(&ctx, &format!("the prelude has no part `{name}`"))),
        }
    };
    natives.set("part", Function::new(ctx.clone(), load)?)
}

/// The namespace of an ES module for a synchronous `require`.
fn require_module<'js>(
    ctx: &Ctx<'js>,
    rejections: &Rejections,
    requirer: &str,
    id: &str,
) -> Result<Value<'js>> {
    match modules::readiness(requirer, id) {
        Readiness::InProgress => {}
        Readiness::Circular => {
            let text =
                format!("`require` of `{id}` from `{requirer}` is circular; use `import` in one of the two");
            return Err(Exception::throw_message(ctx, &text));
        }
        Readiness::Evaluate => {
            let promise = modules::evaluate(ctx, id)?;
            // Its failure is thrown to whoever requires it.
            rejections.forgive(&promise);
            if let Some(promise) = promise.into_promise() {
                match promise.result::<Value>() {
                    Some(done) => {
                        done?;
                    }
                    None => {
                        let text = format!(
                            "`{id}` uses top-level await; load it with `import` instead of `require`"
                        );
                        return Err(Exception::throw_message(ctx, &text));
                    }
                }
            }
        }
    }
    modules::namespace(ctx, id)
}
