//! The bound on working memory.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What a call may need beside what it returns: twice its input, and a mebibyte.
fn most(input: usize) -> usize {
    2 * input + (1 << 20)
}

/// Runs a call, and holds the memory that it needs beside what it leaves behind to the bound.
#[track_caller]
pub fn bounded<T>(input: usize, call: impl FnOnce() -> T) -> T {
    bounded_with(most(input), call)
}

/// The same for a call that fails after it has built something in vain: as much as it could have returned. The smallest parts
/// of a message are two bytes in a file and three in a transcript; in memory each takes about a hundred.
#[track_caller]
pub fn bounded_but_in_vain<T>(input: usize, call: impl FnOnce() -> T) -> T {
    bounded_with(most(input) + 100 * input, call)
}

#[track_caller]
fn bounded_with<T>(most: usize, call: impl FnOnce() -> T) -> T {
    ALLOCATOR.reset_peak_usage();
    let result = call();
    // What it returned and what it remembers is alive here.
    let beside = ALLOCATOR.peak_usage().saturating_sub(ALLOCATOR.current_usage());
    assert!(beside <= most, "{beside} bytes of memory beside the result, of {most}");
    result
}
