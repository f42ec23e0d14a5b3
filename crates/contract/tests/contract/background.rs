//! Blocking work: where it runs, and what is reported of one that panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tgp_contract::{Code, ToolError, background};

fn on_both(work: impl AsyncFn()) {
    let single = tokio::runtime::Builder::new_current_thread().build().unwrap();
    single.block_on(work());
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    many.block_on(work());
}

#[test]
fn a_panic_is_an_internal_error_with_its_message() {
    on_both(async || {
        let number = 7;
        let panicked = background::run::<()>(move || panic!("seven is {number}")).await.unwrap_err();
        assert_eq!(panicked.code, Code::Internal);
        assert_eq!(panicked.message, "internal error: background task panicked: seven is 7");
        let plain = background::run_bounded::<()>(|| panic!("plain")).await.unwrap_err();
        assert_eq!(plain.message, "internal error: background task panicked: plain");
        let failed = background::run::<()>(|| Err(ToolError::new(Code::Sql, "no"))).await.unwrap_err();
        assert_eq!(failed.code, Code::Sql);
    });
}

#[test]
fn work_runs_in_place_on_every_kind_of_thread() {
    assert_eq!(background::in_place(|| 1), 1);
    on_both(async || {
        assert_eq!(background::in_place(|| 2), 2);
        assert_eq!(tokio::spawn(async { background::in_place(|| 3) }).await.unwrap(), 3);
        assert_eq!(background::run(|| Ok(background::in_place(|| 4))).await.unwrap(), 4);
    });
}

#[test]
fn the_work_at_a_time_is_bounded_and_all_of_it_is_done() {
    on_both(async || {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = || {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            tokio::spawn(background::run(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }))
        };
        let all: Vec<_> = (0..500).map(|_| work()).collect();
        for one in all {
            one.await.unwrap().unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= 64, "{most:?}");
    });
}
