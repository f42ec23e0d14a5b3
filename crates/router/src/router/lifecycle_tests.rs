//! Of a cancellation and the point of no return one comes first.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use tgp_contract::Execution;

use super::{CallLifecycle, PointOfNoReturn};

#[test]
fn whichever_comes_first_decides() {
    let cancelled = Arc::new(CallLifecycle::default());
    assert!(cancelled.cancel() && cancelled.cancel());
    assert!(PointOfNoReturn(Arc::clone(&cancelled)).commit().is_err());
    cancelled.end();
    assert!(cancelled.cancel(), "it stays so");
    let committed = Arc::new(CallLifecycle::default());
    let point = PointOfNoReturn(Arc::clone(&committed));
    assert!(point.commit().is_ok() && point.commit().is_ok(), "an effect may have parts");
    assert!(!committed.cancel());
    assert!(point.commit().is_ok());
}

#[test]
fn what_was_sent_before_a_cancellation_is_not_rolled_back() {
    let lifecycle = CallLifecycle::default();
    lifecycle.start();
    assert_eq!(lifecycle.broken_off().1, Execution::RolledBack);
    lifecycle.expose().unwrap();
    assert!(lifecycle.cancel());
    let (error, execution) = lifecycle.broken_off();
    assert_eq!(execution, Execution::Unknown);
    assert!(error.is_of_unknown_outcome(), "{error:?}");
}

#[tokio::test]
async fn a_wish_that_came_too_late_counts_when_nothing_happened_after_all() {
    let lifecycle = Arc::new(CallLifecycle::default());
    let point = PointOfNoReturn(Arc::clone(&lifecycle));
    point.commit().unwrap();
    lifecycle.reopen();
    point.commit().unwrap();
    assert!(!lifecycle.cancel());
    lifecycle.reopen();
    lifecycle.cancelled().await;
    assert!(point.commit().is_err());
}

#[test]
fn of_many_threads_all_hear_the_same() {
    for _ in 0..200 {
        let lifecycle = Arc::new(CallLifecycle::default());
        let point = PointOfNoReturn(Arc::clone(&lifecycle));
        let (passed, cancelled) = std::thread::scope(|scope| {
            let passing = scope.spawn(|| point.commit().is_ok());
            let cancelling = scope.spawn(|| lifecycle.cancel());
            (passing.join().unwrap(), cancelling.join().unwrap())
        });
        assert_ne!(passed, cancelled);
    }
}
