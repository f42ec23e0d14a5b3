//! Of a cancellation and the point of no return one comes first.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::{Course, PointOfNoReturn};

#[test]
fn whichever_comes_first_decides() {
    let cancelled = Arc::new(Course::default());
    assert!(cancelled.cancel() && cancelled.cancel());
    assert!(PointOfNoReturn(Arc::clone(&cancelled)).pass().is_err());
    cancelled.end();
    assert!(cancelled.cancel(), "it stays so");
    let committed = Arc::new(Course::default());
    let point = PointOfNoReturn(Arc::clone(&committed));
    assert!(point.pass().is_ok() && point.pass().is_ok(), "an effect may have parts");
    assert!(!committed.cancel());
    assert!(point.pass().is_ok());
}

#[tokio::test]
async fn a_wish_that_came_too_late_counts_when_nothing_happened_after_all() {
    let course = Arc::new(Course::default());
    let point = PointOfNoReturn(Arc::clone(&course));
    point.pass().unwrap();
    course.reopen();
    point.pass().unwrap();
    assert!(!course.cancel());
    course.reopen();
    course.cancelled().await;
    assert!(point.pass().is_err());
}

#[test]
fn of_many_threads_all_hear_the_same() {
    for _ in 0..200 {
        let course = Arc::new(Course::default());
        let point = PointOfNoReturn(Arc::clone(&course));
        let (passed, cancelled) = std::thread::scope(|scope| {
            let passing = scope.spawn(|| point.pass().is_ok());
            let cancelling = scope.spawn(|| course.cancel());
            (passing.join().unwrap(), cancelling.join().unwrap())
        });
        assert_ne!(passed, cancelled);
    }
}
