//! Promises that were rejected and that nobody has handled yet.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rquickjs::{Ctx, Persistent, Runtime, Value};

/// By address, which stays theirs because they are held; each with its place in the order of rejections.
#[derive(Default)]
struct PendingRejections {
    promises: BTreeMap<usize, (u64, Persistent<Value<'static>>)>,
    next: u64,
}

#[derive(Clone, Default)]
pub(super) struct Rejections(Rc<RefCell<PendingRejections>>);

impl Rejections {
    /// Has the engine tell of every rejection without a handler, and of every handler that comes late.
    pub(super) fn watch(&self, runtime: &Runtime) {
        let book = self.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, _, handled| {
            if handled {
                book.forgive(&promise);
            } else {
                book.note(&ctx, promise);
            }
        })));
    }

    fn note<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>) {
        let mut book = self.0.borrow_mut();
        let order = book.next;
        book.next += 1;
        book.promises.insert(address(&promise), (order, Persistent::save(ctx, promise)));
    }

    /// This promise's rejection is taken care of.
    pub(super) fn forgive(&self, promise: &Value<'_>) {
        let held = self.0.borrow_mut().promises.remove(&address(promise));
        // Outside the borrow: what the engine frees with it may call back.
        drop(held);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().promises.is_empty()
    }

    /// What the first of them was rejected with.
    pub(super) fn first<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let first = self.0.borrow().promises.values().min_by_key(|(order, _)| *order)?.1.clone();
        let promise = first.restore(ctx).ok()?.into_promise()?;
        match promise.result::<Value>() {
            Some(Err(_)) => Some(ctx.catch()),
            _ => None,
        }
    }
}

fn address(promise: &Value<'_>) -> usize {
    promise.as_object().map_or(0, |object| {
        // SAFETY: the value is an object, and only its address is taken.
        unsafe { rquickjs::qjs::JS_VALUE_GET_PTR(object.as_raw()) as usize }
    })
}
