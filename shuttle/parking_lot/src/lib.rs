//! `Mutex` and `Condvar` with the interface of parking_lot, on those of shuttle.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Instant;

use shuttle::sync;

#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// A panic of another holder is not passed on.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: &self.0, held: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)) }
    }
}

pub struct MutexGuard<'a, T> {
    mutex: &'a sync::Mutex<T>,
    /// `None` only while a `Condvar` waits.
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().unwrap()
    }
}

#[derive(Debug)]
pub struct Condvar(sync::Condvar);

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    pub fn new() -> Self {
        Self(sync::Condvar::new())
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().unwrap();
        guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Wakes for no reason, which is allowed: the scheduler knows no time.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _: Instant) {
        guard.held = None;
        shuttle::thread::yield_now();
        guard.held = Some(guard.mutex.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
