//! One budget for many: no taker gets more than there is, and turns of a model are counted once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_core::Stream;
use tgp_contract::{
    BudgetLimits, BudgetUsage, ChatOptions, Code, EventStream, ModelInfo, ModelProvider, SharedBudget,
    StreamEvent, ToolError, Usage,
};

fn calls(most: u64) -> BudgetLimits {
    BudgetLimits { calls: Some(most), tokens: None }
}

#[test]
fn threads_together_take_as_many_calls_as_there_are() {
    let outer = SharedBudget::new("Outer", calls(100), BudgetUsage::default());
    let inner = outer.part("Inner", calls(30), BudgetUsage { calls: 5, tokens: 0 });
    let taken: usize = std::thread::scope(|scope| {
        let take =
            |from: SharedBudget| scope.spawn(move || (0..60).filter(|_| from.take_call().is_ok()).count());
        let threads: Vec<_> =
            (0..4).map(|index| take(if index < 2 { inner.clone() } else { outer.clone() })).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((taken, outer.spent().calls), (100, 100));
    assert!(inner.spent().calls <= 30, "{inner:?}");
}

#[test]
fn a_refusal_says_whose_bound_it_was_and_takes_nothing() {
    let outer = SharedBudget::new("Outer", calls(1), BudgetUsage::default());
    let inner = outer.part("Inner", calls(5), BudgetUsage::default());
    let part = inner.part("step", BudgetLimits::default(), BudgetUsage::default());
    part.take_call().unwrap();
    let error = part.take_call().unwrap_err();
    assert_eq!((error.code, error.details["limit"].as_u64()), (Code::Budget, Some(1)));
    assert!(error.message.contains("`Outer`") && error.help_of().is_some());
    assert_eq!(part.refusal().unwrap().levels_up, 2);
    assert_eq!((part.refused(), inner.refused(), outer.refused()), (true, false, false));
    assert_eq!((part.spent().calls, inner.spent().calls, outer.spent().calls), (1, 1, 1));
    assert!(part == part.clone() && part != inner);
}

/// Says twice what it has used so far, and then that it is done.
struct Wordy;

struct Told(Vec<StreamEvent>);

impl Stream for Told {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        Poll::Ready(self.0.pop())
    }
}

#[async_trait]
impl ModelProvider for Wordy {
    fn name(&self) -> &str {
        "wordy"
    }

    async fn chat(&self, _: ChatOptions) -> Result<EventStream, ToolError> {
        let used =
            |tokens| StreamEvent::Usage(Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() });
        Ok(Box::pin(Told(vec![StreamEvent::End { reason: None }, used(20), used(10)])))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        Ok(Vec::new())
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn hear(stream: &mut EventStream, events: usize) {
    for _ in 0..events {
        let _ = stream.as_mut().poll_next(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn a_turn_counts_once_with_its_last_word_and_none_begins_without_tokens() {
    let allowance =
        SharedBudget::new("Q", BudgetLimits { calls: None, tokens: Some(30) }, BudgetUsage::default());
    let provider = allowance.ration(Arc::new(Wordy));
    let ask = || {
        let options = serde_json::json!({
            "model": "m", "system": "", "messages": [], "tools": [], "turn": 0,
        });
        now(provider.chat(serde_json::from_value(options).unwrap()))
    };
    let mut whole = ask().unwrap();
    hear(&mut whole, 4);
    assert_eq!(allowance.spent().tokens, 21);
    drop(whole);
    assert_eq!((allowance.spent().tokens, allowance.tokens_left()), (21, Some(9)));
    // One that is not read to its end has cost what it said until then.
    let mut cut = ask().unwrap();
    hear(&mut cut, 1);
    drop(cut);
    assert_eq!((allowance.spent().tokens, allowance.tokens_left()), (32, Some(0)));
    assert_eq!(ask().err().unwrap().code, Code::Budget);
    assert!(allowance.refused());
}
