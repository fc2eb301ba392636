//! The locks.

use std::future::Future;

/// A mutex around a number, a semaphore, and a place where tasks wait for word.
pub trait Locks: Send + Sync + 'static {
    /// Their name.
    const NAME: &'static str;

    /// Creates free locks, and this number of permits.
    fn new(permits: usize) -> Self;

    /// Calls `f` with the number.
    fn with<R: Send>(&self, f: impl FnOnce(&mut u64) -> R + Send)
    -> impl Future<Output = R> + Send;

    /// Calls `f` with a permit; not when the semaphore is closed.
    fn permitted(&self, f: impl FnOnce() + Send) -> impl Future<Output = ()> + Send;

    /// Closes the semaphore.
    fn close(&self);

    /// Waits for word.
    fn notified(&self) -> impl Future<Output = ()> + Send;

    /// Notifies all waiters.
    fn notify_all(&self);
}

/// Ganger's.
pub struct Ganger {
    mutex: ganger_lock::Mutex<u64>,
    semaphore: ganger_lock::Semaphore,
    notify: ganger_lock::Notify,
}

impl Locks for Ganger {
    const NAME: &'static str = "Ganger";

    fn new(permits: usize) -> Self {
        Self {
            mutex: ganger_lock::Mutex::new(0),
            semaphore: ganger_lock::Semaphore::new(permits),
            notify: ganger_lock::Notify::new(),
        }
    }

    async fn with<R: Send>(&self, f: impl FnOnce(&mut u64) -> R + Send) -> R {
        f(&mut self.mutex.lock().await.expect("no task fails"))
    }

    async fn permitted(&self, f: impl FnOnce() + Send) {
        if let Ok(_permit) = self.semaphore.acquire(1).await {
            f();
        }
    }

    fn close(&self) {
        self.semaphore.close();
    }

    fn notified(&self) -> impl Future<Output = ()> + Send {
        self.notify.notified()
    }

    fn notify_all(&self) {
        self.notify.notify_all();
    }
}

/// Tokio's.
pub struct Tokio {
    mutex: tokio::sync::Mutex<u64>,
    semaphore: tokio::sync::Semaphore,
    notify: tokio::sync::Notify,
}

impl Locks for Tokio {
    const NAME: &'static str = "tokio";

    fn new(permits: usize) -> Self {
        Self {
            mutex: tokio::sync::Mutex::new(0),
            semaphore: tokio::sync::Semaphore::new(permits),
            notify: tokio::sync::Notify::new(),
        }
    }

    async fn with<R: Send>(&self, f: impl FnOnce(&mut u64) -> R + Send) -> R {
        f(&mut *self.mutex.lock().await)
    }

    async fn permitted(&self, f: impl FnOnce() + Send) {
        if let Ok(_permit) = self.semaphore.acquire().await {
            f();
        }
    }

    fn close(&self) {
        self.semaphore.close();
    }

    fn notified(&self) -> impl Future<Output = ()> + Send {
        self.notify.notified()
    }

    fn notify_all(&self) {
        self.notify.notify_waiters();
    }
}
