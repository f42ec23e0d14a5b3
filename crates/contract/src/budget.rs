//! How much a piece of work may use, shared by all that do a part of it at the same time.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;

use crate::{ChatOptions, Code, EventStream, ModelInfo, ModelProvider, StreamEvent, ToolError, Usage};

/// Calls and tokens that may be used; `None` without a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    pub calls: Option<u64>,
    pub tokens: Option<u64>,
}

/// Calls and tokens that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUsage {
    pub calls: u64,
    pub tokens: u64,
}

/// Something that was asked for and not given.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetExceeded {
    /// Whose bound it was: 0 for that of the allowance that was asked, 1 for the one that it is a part of, and so on.
    pub levels_up: usize,
    pub error: ToolError,
}

/// What may be used, and what was. Clones are the same allowance, and so are two that are equal.
#[derive(Clone, Debug)]
pub struct SharedBudget(Arc<State>);

#[derive(Debug)]
struct State {
    /// Whose it is, for people.
    owner: String,
    bounds: BudgetLimits,
    calls: AtomicU64,
    tokens: AtomicU64,
    refusal: OnceLock<BudgetExceeded>,
    outer: Option<SharedBudget>,
    /// One lock for the whole hierarchy: no call is taken between another's check and its taking.
    turn: Arc<Mutex<()>>,
}

impl PartialEq for SharedBudget {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl SharedBudget {
    /// `spent` was used before, by work that is resumed.
    #[must_use]
    pub fn new(owner: &str, bounds: BudgetLimits, spent: BudgetUsage) -> Self {
        Self::with(owner, bounds, spent, None)
    }

    /// A part of this one: what is used of it is used of both, and both bounds hold.
    #[must_use]
    pub fn part(&self, owner: &str, bounds: BudgetLimits, spent: BudgetUsage) -> Self {
        Self::with(owner, bounds, spent, Some(self.clone()))
    }

    fn with(owner: &str, bounds: BudgetLimits, spent: BudgetUsage, outer: Option<Self>) -> Self {
        let turn = outer.as_ref().map_or_else(Arc::default, |outer| Arc::clone(&outer.0.turn));
        Self(Arc::new(State {
            owner: owner.to_owned(),
            bounds,
            calls: AtomicU64::new(spent.calls),
            tokens: AtomicU64::new(spent.tokens),
            refusal: OnceLock::new(),
            outer,
            turn,
        }))
    }

    fn chain(&self) -> impl Iterator<Item = &State> {
        std::iter::successors(Some(&*self.0), |state| state.outer.as_ref().map(|outer| &*outer.0))
    }

    /// Counts a call that is about to be made.
    ///
    /// # Errors
    /// `EBUDGET` when none is left here or in what this is a part of; then it must not be made.
    pub fn take_call(&self) -> Result<(), ToolError> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(State::out_of_calls)?;
        self.add(BudgetUsage { calls: 1, tokens: 0 });
        Ok(())
    }

    /// Looks whether a turn of a model may begin. What it reads is not known before, so those that run may go over the
    /// bound by as much.
    ///
    /// # Errors
    /// `EBUDGET` when no tokens are left here or in what this is a part of.
    pub fn begin_turn(&self) -> Result<(), ToolError> {
        self.ask(State::out_of_tokens)
    }

    fn ask(&self, against: fn(&State) -> Option<ToolError>) -> Result<(), ToolError> {
        let mut levels = self.chain().enumerate();
        let refused = levels.find_map(|(levels_up, state)| Some((levels_up, against(state)?)));
        let Some((levels_up, error)) = refused else { return Ok(()) };
        // The first one explains why the work has failed.
        let _ = self.0.refusal.set(BudgetExceeded { levels_up, error: error.clone() });
        Err(error)
    }

    /// The least that is left here and in what this is a part of; `None` without a bound.
    #[must_use]
    pub fn tokens_left(&self) -> Option<u64> {
        let left = |state: &State| Some(state.bounds.tokens?.saturating_sub(state.spent().tokens));
        self.chain().filter_map(left).min()
    }

    pub fn add_tokens(&self, tokens: u64) {
        self.add(BudgetUsage { calls: 0, tokens });
    }

    /// Counts what was used without being asked for.
    pub fn add(&self, spent: BudgetUsage) {
        let more = |counter: &AtomicU64, more: u64| {
            let added = |known: u64| Some(known.saturating_add(more));
            // It always adds, so there is no other answer.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        };
        for state in self.chain() {
            more(&state.calls, spent.calls);
            more(&state.tokens, spent.tokens);
        }
    }

    /// What was used of this one.
    #[must_use]
    pub fn spent(&self) -> BudgetUsage {
        self.0.spent()
    }

    /// Whether something was refused that was asked of this very one, not of a part of it.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.0.refusal.get().is_some()
    }

    /// The first thing that was refused.
    #[must_use]
    pub fn refusal(&self) -> Option<BudgetExceeded> {
        self.0.refusal.get().cloned()
    }

    /// The same provider, whose turns are counted, and of which none begins when something was refused or no tokens are
    /// left.
    #[must_use]
    pub fn ration(&self, provider: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        Arc::new(MeteredProvider { provider, allowance: self.clone() })
    }
}

impl State {
    fn spent(&self) -> BudgetUsage {
        BudgetUsage { calls: self.calls.load(Ordering::Relaxed), tokens: self.tokens.load(Ordering::Relaxed) }
    }

    fn out_of_calls(&self) -> Option<ToolError> {
        self.out_of("calls", self.spent().calls, self.bounds.calls)
    }

    fn out_of_tokens(&self) -> Option<ToolError> {
        self.out_of("tokens", self.spent().tokens, self.bounds.tokens)
    }

    fn out_of(&self, what: &str, used: u64, most: Option<u64>) -> Option<ToolError> {
        let most = most.filter(|most| used >= *most)?;
        let message = format!("the budget of `{}` is used up: {used} of {most} {what}", self.owner);
        Some(
            ToolError::new(Code::Budget, message)
                .detail("budget", what)
                .detail("limit", most)
                .detail("used", used)
                .help(format!("begin a new run with a larger `budget({what}: …)`, or let it do less")),
        )
    }
}

struct MeteredProvider {
    provider: Arc<dyn ModelProvider>,
    allowance: SharedBudget,
}

#[async_trait]
impl ModelProvider for MeteredProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        // Whatever the model would say after a call was refused, its work has failed.
        if let Some(refusal) = self.allowance.refusal() {
            return Err(refusal.error);
        }
        self.allowance.begin_turn()?;
        let stream = self.provider.chat(options).await?;
        Ok(Box::pin(MeteredStream { stream, allowance: self.allowance.clone(), last: None }))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        self.provider.models().await
    }
}

/// A turn whose tokens are counted when it ends, or when its reader is gone.
struct MeteredStream {
    stream: EventStream,
    allowance: SharedBudget,
    /// A provider may say several times what it has used so far; the last number counts.
    last: Option<Usage>,
}

impl MeteredStream {
    fn count(&mut self) {
        if let Some(usage) = self.last.take() {
            self.allowance.add_tokens(usage.input_tokens.saturating_add(usage.output_tokens));
        }
    }
}

impl Stream for MeteredStream {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let polled = self.stream.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(StreamEvent::Usage(usage))) => self.last = Some(*usage),
            Poll::Ready(Some(StreamEvent::End { .. } | StreamEvent::Error { .. }) | None) => self.count(),
            _ => {}
        }
        polled
    }
}

impl Drop for MeteredStream {
    fn drop(&mut self) {
        self.count();
    }
}
