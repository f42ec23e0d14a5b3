//! A call can be rolled back until it takes effect; from then on it is carried out, and its record is true.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_builtins::project_tools;
use tgp_contract::{
    Actor, CallContext, CallRecord, Cancellation, Code, Consent, Effect, ExecutionPath, FileEffect, Recorder,
    RelativePath, Root, Target, ToolCall, ToolDefinition, ToolError, ToolName,
};
use tgp_router::files::ToolDirectories;
use tgp_router::{DenyAll, DynTool, Invocation, PointOfNoReturn, Router, ToolOutcome, Workspace};
use tokio::sync::{Semaphore, oneshot};

/// Long enough for any machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Settled,
    Cancelled,
}

/// Keeps records by the way they came, and waits before it does where it is set to.
struct Book {
    records: Mutex<Vec<(Kept, CallRecord)>>,
    asked: Semaphore,
    may_write: Semaphore,
}

impl Book {
    fn new() -> Arc<Self> {
        let (asked, may_write) = (Semaphore::new(0), Semaphore::new(Semaphore::MAX_PERMITS));
        Arc::new(Self { records: Mutex::default(), asked, may_write })
    }

    fn take(&self) -> Vec<(Kept, CallRecord)> {
        std::mem::take(&mut self.records.lock().unwrap())
    }
}

#[async_trait]
impl Recorder for Book {
    async fn record(&self, record: CallRecord) -> Result<(), ToolError> {
        self.asked.add_permits(1);
        self.may_write.acquire().await.unwrap().forget();
        self.records.lock().unwrap().push((Kept::Settled, record));
        Ok(())
    }

    fn record_cancelled(&self, record: CallRecord) {
        self.records.lock().unwrap().push((Kept::Cancelled, record));
    }
}

/// Stops before its effect and in the middle of it, until it is let on.
struct Stepwise {
    definition: ToolDefinition,
    steps: Arc<Steps>,
}

struct Steps {
    reached: Semaphore,
    go: Semaphore,
    effects: AtomicUsize,
    point: Mutex<Option<PointOfNoReturn>>,
}

impl Steps {
    async fn stop(&self) {
        self.reached.add_permits(1);
        self.go.acquire().await.unwrap().forget();
    }
}

fn changed() -> FileEffect {
    let path = RelativePath::new("a.txt").unwrap();
    FileEffect::new(Root::Project, path, None, Some("0".repeat(64)))
}

#[async_trait]
impl DynTool for Stepwise {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, _arguments: &Value) -> Result<Vec<Target>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<ToolOutcome, ToolError> {
        let point = invocation.point_of_no_return();
        *self.steps.point.lock().unwrap() = Some(point.clone());
        self.steps.stop().await;
        point.commit()?;
        self.steps.effects.fetch_add(1, Ordering::SeqCst);
        self.steps.stop().await;
        Ok(ToolOutcome { data: json!("done"), files: vec![changed()], ..ToolOutcome::default() })
    }
}

struct House {
    router: Arc<Router>,
    book: Arc<Book>,
    steps: Arc<Steps>,
    folder: tempfile::TempDir,
}

fn house() -> House {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".tgp")).unwrap();
    let project = folder.path().canonicalize().unwrap();
    let workspace =
        Workspace::open(&project, &project.join(".tgp"), ToolDirectories::default(), &[]).unwrap();
    let steps = Arc::new(Steps {
        reached: Semaphore::new(0),
        go: Semaphore::new(0),
        effects: AtomicUsize::new(0),
        point: Mutex::default(),
    });
    let definition = ToolDefinition {
        name: ToolName::new("stepwise").unwrap(),
        aliases: Vec::new(),
        description: "a probe".to_owned(),
        input_schema: json!({ "type": "object" }),
        effect: Effect::Write,
        path: ExecutionPath::Fast,
        dry_run: false,
    };
    let mut tools = project_tools().unwrap();
    tools.push(Arc::new(Stepwise { definition, steps: Arc::clone(&steps) }));
    let book = Book::new();
    let router = Router::new(tools, vec![], Arc::new(DenyAll), Arc::clone(&book) as _, workspace);
    House { router: Arc::new(router.unwrap()), book, steps, folder }
}

impl House {
    async fn call(&self, tool: &str, arguments: Value, cancelled: Cancellation<'_>) -> CallRecord {
        let call = ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "s".to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        self.router.call_cancellable(call, context, cancelled, None).await
    }

    async fn step(&self, cancelled: Cancellation<'_>) -> CallRecord {
        self.call("stepwise", json!({}), cancelled).await
    }

    /// Waits until the tool is blocked.
    async fn reached(&self) {
        self.steps.reached.acquire().await.unwrap().forget();
    }
}

fn never() -> Cancellation<'static> {
    Box::pin(std::future::pending())
}

/// A wish to cancel, and how to make it.
fn wish() -> (oneshot::Sender<()>, Cancellation<'static>) {
    let (sender, receiver) = oneshot::channel::<()>();
    let wished = async move {
        if receiver.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    (sender, Box::pin(wished))
}

fn is_cancelled(error: Option<&ToolError>) -> bool {
    error.is_some_and(|error| {
        error.code == Code::Runtime && error.details.get("cancelled") == Some(&json!(true))
    })
}

#[tokio::test]
async fn a_call_is_taken_back_before_it_takes_effect() {
    let house = house();
    let (cancel, cancelled) = wish();
    let (record, ()) = tokio::join!(house.step(cancelled), async {
        house.reached().await;
        cancel.send(()).unwrap();
    });
    assert!(is_cancelled(record.result.error()) && record.files.is_empty(), "{record:?}");
    let kept = house.book.take();
    assert_eq!(
        (kept.len(), kept[0].0, &kept[0].1),
        (1, Kept::Cancelled, &record),
        "one record, and the same"
    );
    // Work that still runs somewhere finds the way closed.
    let point = house.steps.point.lock().unwrap().clone().unwrap();
    assert!(is_cancelled(point.commit().as_ref().err()));
    // A call that is dropped is rolled back as well, and at once.
    tokio::select! {
        biased;
        record = house.step(never()) => panic!("{record:?}"),
        () = house.reached() => {}
    }
    let kept = house.book.take();
    assert_eq!((kept.len(), kept[0].0), (1, Kept::Cancelled), "{kept:?}");
    assert!(is_cancelled(kept[0].1.result.error()));
    house.steps.go.add_permits(8);
    assert!(house.router.wait_for_detached(PATIENCE).await);
    assert_eq!(house.steps.effects.load(Ordering::SeqCst), 0);
    assert!(house.book.take().is_empty());
}

#[tokio::test]
async fn a_call_that_takes_effect_is_waited_for_and_told_as_it_was() {
    let house = house();
    let (cancel, cancelled) = wish();
    let (record, ()) = tokio::join!(house.step(cancelled), async {
        house.reached().await;
        house.steps.go.add_permits(1);
        house.reached().await;
        cancel.send(()).unwrap();
        // The cancellation arrives before the effect ends.
        tokio::task::yield_now().await;
        house.steps.go.add_permits(1);
    });
    assert_eq!((record.result.data(), &record.files), (Some(&json!("done")), &vec![changed()]));
    assert_eq!(house.book.take(), [(Kept::Settled, record)]);
    assert_eq!(house.steps.effects.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_takes_effect_outlives_its_caller_and_is_recorded() {
    let house = house();
    house.steps.go.add_permits(1);
    tokio::select! {
        biased;
        record = house.step(never()) => panic!("{record:?}"),
        () = async { house.reached().await; house.reached().await } => {}
    }
    assert!(house.book.take().is_empty(), "it has not ended");
    assert!(
        !house.router.wait_for_detached(Duration::from_millis(1)).await,
        "it is waited for, and not for ever"
    );
    house.steps.go.add_permits(1);
    assert!(house.router.wait_for_detached(PATIENCE).await);
    let kept = house.book.take();
    assert_eq!((kept.len(), kept[0].0), (1, Kept::Settled), "{kept:?}");
    assert_eq!((kept[0].1.result.data(), &kept[0].1.files), (Some(&json!("done")), &vec![changed()]));
}

#[tokio::test]
async fn a_caller_that_leaves_while_the_record_is_written_does_not_take_it_along() {
    let house = house();
    house.book.may_write.forget_permits(Semaphore::MAX_PERMITS);
    std::fs::write(house.folder.path().join("a.txt"), "text").unwrap();
    let call = house.call("fs_exists", json!({ "path": "a.txt" }), never());
    tokio::select! {
        biased;
        record = call => panic!("{record:?}"),
        asked = house.book.asked.acquire() => asked.unwrap().forget(),
    }
    assert!(house.book.take().is_empty());
    house.book.may_write.add_permits(1);
    assert!(house.router.wait_for_detached(PATIENCE).await);
    let kept = house.book.take();
    assert_eq!((kept.len(), kept[0].0), (1, Kept::Settled), "{kept:?}");
}

/// A runtime that ends takes everything with it; what is not known then is not called undone.
#[test]
fn a_call_that_ends_with_its_runtime_does_not_say_that_it_was_taken_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let house = house();
    house.steps.go.add_permits(1);
    runtime.block_on(async {
        tokio::select! {
            biased;
            record = house.step(never()) => panic!("{record:?}"),
            () = async { house.reached().await; house.reached().await } => {}
        }
    });
    assert!(house.book.take().is_empty());
    drop(runtime);
    let kept = house.book.take();
    assert_eq!((kept.len(), kept[0].0), (1, Kept::Cancelled), "{kept:?}");
    let error = kept[0].1.result.error().unwrap();
    assert!(!is_cancelled(Some(error)) && error.details["outcome"] == "unknown", "{error:?}");
}

/// Whether the call has ended by now.
async fn poll_once(call: &mut (impl Future<Output = CallRecord> + Unpin)) -> bool {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *call).poll(context).is_ready())).await
}

/// Whenever its caller goes away, a file tool has changed its file exactly when the record says so.
#[test]
fn a_file_is_changed_exactly_when_the_record_says_so() {
    // One thread for file work: when it has done something new, it has done everything before.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let house = house();
        let file = house.folder.path().join("a.txt");
        for round in 0..120_u64 {
            let (tool, arguments) = match round % 3 {
                0 => ("fs_write", json!({ "path": "a.txt", "content": "new" })),
                1 => ("fs_edit", json!({ "path": "a.txt", "search": "old", "replace": "new" })),
                _ => ("fs_delete", json!({ "path": "a.txt" })),
            };
            std::fs::write(&file, "old").unwrap();
            let pause = Duration::from_micros(round / 3 * 20);
            let mut call = Box::pin(house.call(tool, arguments, never()));
            for _ in 0..1 + round % 2 {
                // The file work continues meanwhile, and is somewhere else each time.
                if poll_once(&mut call).await {
                    break;
                }
                std::thread::sleep(pause);
            }
            drop(call);
            assert!(house.router.wait_for_detached(PATIENCE).await);
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            let kept = house.book.take();
            let [(kept, record)] = &kept[..] else { panic!("{kept:?}") };
            let is_changed = std::fs::read_to_string(&file).ok().as_deref() != Some("old");
            assert_eq!(record.files.len(), usize::from(is_changed), "{tool} after {pause:?}: {record:?}");
            assert_eq!(*kept == Kept::Settled, is_changed, "{tool} after {pause:?}: {record:?}");
        }
    });
}
