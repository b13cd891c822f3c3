//! Streams of random numbers: the stream of the process, and generators that a thread can use for a call.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use mxnet_kernels::random::philox;

use crate::context::RngState;

/// A stream of random numbers: a key, the next counter block, and the number of generators spawned from it.
///
/// Calls on several threads get disjoint blocks.
#[derive(Debug)]
pub struct Generator {
    key: AtomicU64,
    next: AtomicU64,
    spawned: AtomicU64,
}

static GLOBAL: Generator = Generator {
    key: AtomicU64::new(0),
    next: AtomicU64::new(0),
    spawned: AtomicU64::new(0),
};

thread_local! {
    /// The generator of the innermost running `with_generator`, or null.
    static CURRENT: Cell<*const Generator> = const { Cell::new(ptr::null()) };
}

/// Upper half of the counters that derive keys. Samples use far smaller counters.
const KEYS: u64 = u64::MAX;

impl Generator {
    /// A stream that starts at the block `next` of `key`.
    pub fn new(key: u64, next: u64, spawned: u64) -> Generator {
        Generator {
            key: AtomicU64::new(key),
            next: AtomicU64::new(next),
            spawned: AtomicU64::new(spawned),
        }
    }

    /// A stream whose key is derived from words of entropy. Inputs that differ in length or in any bit give unrelated keys.
    pub fn from_entropy(words: &[u32]) -> Generator {
        let pair = |x: &[u32]| u64::from(x[0]) | u64::from(x.get(1).copied().unwrap_or(0)) << 32;
        let start = first_half(philox([words.len() as u64, KEYS], 0));
        let key = words
            .chunks(2)
            .fold(start, |key, x| first_half(philox([pair(x), KEYS], key)));
        Generator::new(key, 0, 0)
    }

    /// The key, the next block, and the number of generators spawned.
    pub fn state(&self) -> (u64, u64, u64) {
        (
            self.key.load(Ordering::Relaxed),
            self.next.load(Ordering::Relaxed),
            self.spawned.load(Ordering::Relaxed),
        )
    }

    /// Continues from a state.
    pub fn set_state(&self, (key, next, spawned): (u64, u64, u64)) {
        self.key.store(key, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
        self.spawned.store(spawned, Ordering::Relaxed);
    }

    /// A generator with another key. Each call returns another one, the same sequence in every run.
    pub fn spawn(&self) -> Generator {
        let child = self.spawned.fetch_add(1, Ordering::Relaxed);
        let key = philox([child, KEYS - 1], self.key.load(Ordering::Relaxed));
        Generator::new(first_half(key), 0, 0)
    }

    fn reserve(&self, blocks: u64) -> RngState {
        RngState {
            offset: self.next.fetch_add(blocks, Ordering::Relaxed),
            seed: self.key.load(Ordering::Relaxed),
        }
    }
}

fn first_half(block: [u32; 4]) -> u64 {
    u64::from(block[0]) | u64::from(block[1]) << 32
}

/// Runs `body`. Its calls on this thread draw from `generator`.
pub fn with_generator<R>(generator: &Generator, body: impl FnOnce() -> R) -> R {
    /// Restores the previous generator, also if `body` panics.
    struct Restore(*const Generator);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(generator));
    body()
}

/// Restarts the process's stream.
pub fn seed(seed: u64) {
    GLOBAL.set_state((seed, 0, 0));
}

/// The position of the process's stream: the next call draws from here.
pub fn state() -> RngState {
    let (seed, offset, _) = GLOBAL.state();
    RngState { seed, offset }
}

/// Continues the process's stream from `state`.
pub fn set_state(state: RngState) {
    GLOBAL.set_state((state.seed, state.offset, 0));
}

/// Logs or replays the draws of a thread.
enum Frame {
    /// Logs draws.
    Log(Vec<RngState>),
    /// Replays logged draws, from this index on.
    Replay(Rc<[RngState]>, usize),
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static HAS_FRAMES: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` with a frame on the stack. Pops the frame also if `body` panics.
fn with_frame<R>(frame: Frame, body: impl FnOnce() -> R) -> (R, Option<Frame>) {
    struct Truncate(usize);
    impl Drop for Truncate {
        fn drop(&mut self) {
            FRAMES.with_borrow_mut(|frames| frames.truncate(self.0));
            HAS_FRAMES.set(self.0 > 0);
        }
    }
    let truncate = Truncate(FRAMES.with_borrow_mut(|frames| {
        frames.push(frame);
        frames.len() - 1
    }));
    HAS_FRAMES.set(true);
    let result = body();
    let frame = FRAMES.with_borrow_mut(|frames| {
        frames.truncate(truncate.0 + 1);
        frames.pop()
    });
    (result, frame)
}

/// Runs `body` and logs the stream positions that its calls on this thread draw from.
pub fn logged<R>(body: impl FnOnce() -> R) -> (R, Rc<[RngState]>) {
    match with_frame(Frame::Log(Vec::new()), body) {
        (result, Some(Frame::Log(draws))) => (result, draws.into()),
        (result, _) => (result, Rc::new([])),
    }
}

/// Runs `body`. Its calls on this thread draw from the logged positions and leave the streams unchanged. Returns the number of draws that were made,
/// which exceeds the length of the log if `body` draws more often than before.
pub fn replayed<R>(draws: Rc<[RngState]>, body: impl FnOnce() -> R) -> (R, usize) {
    match with_frame(Frame::Replay(draws, 0), body) {
        (result, Some(Frame::Replay(_, count))) => (result, count),
        (result, _) => (result, 0),
    }
}

/// Runs `body`, whose draws are neither logged nor replayed.
pub(crate) fn without_frames<R>(body: impl FnOnce() -> R) -> R {
    /// Restores the frames, also if `body` panics.
    struct Restore(Vec<Frame>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HAS_FRAMES.set(!self.0.is_empty());
            FRAMES.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(FRAMES.take());
    HAS_FRAMES.set(false);
    body()
}

/// Draws while there are frames.
#[cold]
fn reserve_in_frames(blocks: u64) -> RngState {
    FRAMES.with_borrow_mut(|frames| {
        let mut given = None;
        let mut inner = frames.len();
        while inner > 0 {
            inner -= 1;
            if let Frame::Replay(draws, count) = &mut frames[inner] {
                given = draws.get(*count).copied();
                *count += 1;
                break;
            }
        }
        let state = given.unwrap_or_else(|| reserve_new(blocks));
        for frame in &mut frames[inner..] {
            if let Frame::Log(draws) = frame {
                draws.push(state);
            }
        }
        state
    })
}

/// Draws `blocks` counter blocks from the thread's generator, or from the process's stream.
pub fn reserve(blocks: u64) -> RngState {
    match HAS_FRAMES.get() {
        true => reserve_in_frames(blocks),
        false => reserve_new(blocks),
    }
}

fn reserve_new(blocks: u64) -> RngState {
    // SAFETY: only `with_generator` sets it, and borrows the generator until it has restored the previous value.
    let current = unsafe { CURRENT.get().as_ref() };
    current.unwrap_or(&GLOBAL).reserve(blocks)
}
