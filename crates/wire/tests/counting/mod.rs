//! An allocator that counts what a thread allocates, so that tests can bound it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// What a piece of work allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Number of allocations.
    pub allocations: usize,
    /// Most bytes that were allocated at once, beyond those from before.
    pub peak_bytes: usize,
}

/// Runs `work` and says what it allocated on this thread.
pub fn cost<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    LIVE.set(0);
    PEAK.set(0);
    CALLS.set(0);
    let value = work();
    let cost = Cost { allocations: CALLS.get(), peak_bytes: PEAK.get().unsigned_abs() };
    (value, cost)
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: every call goes to the system's allocator unchanged. Counting beside it touches only thread-local cells that need
// neither an allocation nor a destructor, so it cannot come back here and works until the thread is gone.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `place` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(place, layout) }
    }

    // `realloc` is left to its default, which calls `alloc`, copies, and calls `dealloc`: the old and the new piece count
    // at the same time, as they do when memory has to move.
}
