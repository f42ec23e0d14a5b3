//! One writer a file: what is written last is committed last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError, Weak};

use tgp_contract::RelativePath;
use tokio::sync::{Mutex, OwnedMutexGuard};

#[derive(Default)]
pub(super) struct PathLocks(BlockingMutex<BTreeMap<RelativePath, Weak<Mutex<()>>>>);

impl PathLocks {
    pub(super) async fn lock(&self, path: &RelativePath) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            match locks.get(path).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(Mutex::new(()));
                    locks.insert(path.clone(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        lock.lock_owned().await
    }
}
