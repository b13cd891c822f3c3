//! Random numbers of graphs: from the stream of the caller and from generators that a traced function uses.
//!
//! The stream of the caller is the process's, or the generator that the caller draws from at the time of a run. A generator from outside the function
//! continues from run to run, as it does from call to call. A generator that the function made from a seed restarts in each run.

use std::cell::RefCell;
use std::sync::Arc;

use mxnet_core::rng::{self, Generator};
use mxnet_core::{Error, Result, Rng, RngState};
use smallvec::SmallVec;

use crate::ir::{Graph, Node};

/// A generator that nodes of a graph draw from.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The generator; `None` in graphs that were read from text.
    pub generator: Option<Arc<Generator>>,
    /// Start position of each run; `None` if a run continues where the last one ended.
    pub start: Option<RngState>,
    /// Number of blocks that a run draws.
    pub num_blocks: u64,
    /// Position of the generator before the trace.
    before: RngState,
}

/// Stream positions of a run's random numbers: of the caller's stream, then of those of the graph.
pub type Drawn = SmallVec<[RngState; 1]>;

thread_local! {
    /// The generator of the current call, while it is traced.
    static CURRENT: RefCell<Option<Arc<Generator>>> = const { RefCell::new(None) };
}

/// As [`rng::with_generator`], for calls that may be traced.
pub fn with_generator<R>(generator: &Arc<Generator>, body: impl FnOnce() -> R) -> R {
    /// Restores the previous generator, also if `body` panics.
    struct Restore(Option<Arc<Generator>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(Some(generator.clone())));
    rng::with_generator(generator, body)
}

impl Stream {
    fn new(generator: &Arc<Generator>) -> Stream {
        let (seed, offset, _) = generator.state();
        Stream {
            generator: Some(generator.clone()),
            start: None,
            num_blocks: 0,
            before: RngState { seed, offset },
        }
    }

    /// A stream of a graph that was read from text. It cannot run.
    pub(crate) fn unbound(num_blocks: u64) -> Stream {
        Stream {
            generator: None,
            start: None,
            num_blocks,
            before: RngState { seed: 0, offset: 0 },
        }
    }

    /// A generator that nobody else holds was made by the function: each run restarts at its initial position.
    pub(crate) fn end_trace(&mut self) {
        let is_own = |generator: &Arc<Generator>| Arc::strong_count(generator) == 1;
        if self.generator.as_ref().is_some_and(is_own) {
            self.start = Some(self.before);
        }
    }

    /// Draws the blocks of a run. Returns their position.
    fn reserve(&self) -> Result<RngState> {
        if let Some(start) = self.start {
            return Ok(start);
        }
        let generator = self.generator.as_ref().ok_or_else(unbound_stream)?;
        Ok(rng::with_generator(generator, || {
            rng::reserve(self.num_blocks)
        }))
    }

    /// Whether both streams have the same numbers in each run.
    pub(crate) fn is_same(&self, other: &Stream) -> bool {
        let is_one = match (&self.generator, &other.generator) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        match (self.start, other.start) {
            (Some(a), Some(b)) => a.seed == b.seed && a.offset == b.offset,
            (None, None) => is_one,
            _ => false,
        }
    }
}

#[cold]
pub(crate) fn unbound_stream() -> Error {
    let problem = "the graph draws random numbers from a generator that its file does not have";
    Error::unsupported("graph", problem)
}

impl Graph {
    /// The number of the stream that the current traced call draws from.
    ///
    /// A generator that was chosen before the trace began belongs to the caller: another run may have another one.
    pub(crate) fn stream(&mut self) -> usize {
        let Some(current) = CURRENT.with_borrow(Clone::clone) else {
            return 0;
        };
        let is_it =
            |stream: &Stream| (stream.generator.as_ref()).is_some_and(|x| Arc::ptr_eq(x, &current));
        if let Some(i) = self.streams.iter().position(is_it) {
            return i + 1;
        }
        self.streams.push(Stream::new(&current));
        self.streams.len()
    }

    /// Assigns the next blocks of its stream to a node that draws random numbers.
    pub(crate) fn reserve(&mut self, node: &mut Node) {
        let Rng::Blocks(blocks) = node.op.rng else {
            return;
        };
        let len = node.outputs.first().map_or(0, |y| y.layout.len());
        let next = match node.rng_stream.checked_sub(1) {
            None => &mut self.num_rng_blocks,
            Some(i) => &mut self.streams[i].num_blocks,
        };
        node.rng_block = *next;
        *next += blocks(len as u64);
    }

    /// Draws the blocks of a run from all streams.
    pub(crate) fn draw(&self) -> Result<Drawn> {
        let of_caller = match self.num_rng_blocks {
            0 => RngState { seed: 0, offset: 0 },
            blocks => rng::reserve(blocks),
        };
        let mut drawn: Drawn = SmallVec::new();
        drawn.push(of_caller);
        for stream in &self.streams {
            drawn.push(stream.reserve()?);
        }
        Ok(drawn)
    }
}
