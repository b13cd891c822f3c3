//! Events as words, and the buffers that threads write them to.
//!
//! An event is [`HEAD`] words and the operands:
//!
//! | word | content |
//! |---|---|
//! | 0 | label of the name, kind (8 bits), flags (8 bits), number of operands (16 bits) |
//! | 1 | begin, in nanoseconds since the start of the process |
//! | 2 | duration in nanoseconds; for counters the value |
//! | 3 | nanoseconds in the queue; for user's events the label of the domain |
//! | 4 | bytes allocated |
//! | 5 | label of the scope, label of the source line |
//! | 6 | bytes in use at the end, [`NO_MEMORY`] if not recorded |
//! | 7 | largest number of bytes in use so far |
//!
//! An operand is a word with its dtype, number of axes and role, then one word for each axis.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use smallvec::SmallVec;

use crate::profiler::names::{Label, label};
use crate::profiler::store;
use crate::{Array, OpDef};

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Operator,
    View,
    Composite,
    Copy,
    Graph,
    Node,
    Call,
    Task,
    Frame,
    Event,
    Counter,
    Marker,
}

impl Kind {
    const ALL: [Kind; 12] = [
        Kind::Operator,
        Kind::View,
        Kind::Composite,
        Kind::Copy,
        Kind::Graph,
        Kind::Node,
        Kind::Call,
        Kind::Task,
        Kind::Frame,
        Kind::Event,
        Kind::Counter,
        Kind::Marker,
    ];
}

/// The operator belongs to a backward pass.
pub(super) const BACKWARD: u8 = 1;
/// It ran inside another operator.
pub(super) const NESTED: u8 = 2;
/// It was pushed to the engine.
pub(super) const QUEUED: u8 = 4;

pub(super) const HEAD: usize = 8;
pub(super) const NO_MEMORY: u64 = u64::MAX;
const MAX_OPERANDS: usize = 12;
const MAX_AXES: usize = 8;
const MAX_LEN: usize = HEAD + MAX_OPERANDS * (1 + MAX_AXES);

/// The words of one event.
pub(super) type Words = SmallVec<[u64; 24]>;

/// Words of a buffer: some 500 events.
const CHUNK_LEN: usize = 1 << 13;
pub(super) const CHUNK_BYTES: usize = CHUNK_LEN * 8;

/// A buffer. Its thread writes it; other threads read the words before `len`.
pub(super) struct Chunk {
    words: Box<[AtomicU64]>,
    len: AtomicUsize,
    /// The thread's number.
    pub thread: u32,
}

impl Chunk {
    pub fn new(thread: u32) -> Chunk {
        Chunk {
            words: (0..CHUNK_LEN).map(|_| AtomicU64::new(0)).collect(),
            len: AtomicUsize::new(0),
            thread,
        }
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Copies words that were written.
    pub fn read(&self, from: usize, to: usize) -> Vec<u64> {
        let words = &self.words[from..to];
        words
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect()
    }

    /// Empties the buffer. For its thread, while it holds the store.
    pub fn reset(&self) {
        self.len.store(0, Ordering::Release);
    }

    /// Appends an event. Returns false if the buffer is full.
    fn push(&self, words: &[u64]) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        let Some(space) = self.words.get(len..len + words.len()) else {
            return false;
        };
        for (to, &word) in space.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.len.store(len + words.len(), Ordering::Release);
        true
    }
}

/// Hash of addresses of operators.
#[derive(Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

type Labels = HashMap<usize, Label, BuildHasherDefault<ByAddress>>;

/// Size of the cache of labels by operator.
const NUM_RECENT: usize = 128;

struct Local {
    chunk: Option<Arc<Chunk>>,
    /// The store that the chunk belongs to.
    generation: u32,
    labels: Labels,
    /// Direct-mapped cache: addresses of operators, and their labels.
    recent: [(usize, Label); NUM_RECENT],
}

thread_local! {
    static LOCAL: RefCell<Local> = const {
        RefCell::new(Local {
            chunk: None,
            generation: 0,
            labels: HashMap::with_hasher(BuildHasherDefault::new()),
            recent: [(0, Label(0)); NUM_RECENT],
        })
    };
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds since the first call.
#[inline]
pub(super) fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

/// The label of an operator's name.
#[inline]
pub(super) fn label_of(op: &'static OpDef) -> Label {
    let known = LOCAL.try_with(|local| {
        let local = &mut *local.borrow_mut();
        let address = std::ptr::from_ref(op) as usize;
        let recent = &mut local.recent[(address / align_of::<OpDef>()) % NUM_RECENT];
        if recent.0 != address {
            let known = local.labels.entry(address);
            *recent = (address, *known.or_insert_with(|| label(op.name)));
        }
        recent.1
    });
    known.unwrap_or_default()
}

/// Writes an event to the thread's buffer. A thread that is ending writes none.
#[inline]
pub(super) fn write(words: &[u64]) {
    let _ = LOCAL.try_with(|local| {
        let local = &mut *local.borrow_mut();
        if local.generation == store::generation()
            && local.chunk.as_ref().is_some_and(|chunk| chunk.push(words))
        {
            return;
        }
        let (chunk, generation) = store::next_chunk(local.chunk.take(), local.generation);
        chunk.push(words);
        local.chunk = Some(chunk);
        local.generation = generation;
    });
}

/// The first words of an event.
#[inline]
pub(super) fn head(kind: Kind, flags: u8, name: Label) -> Words {
    let mut words = Words::new();
    words.push(u64::from(name.0) | (kind as u64) << 32 | u64::from(flags) << 40);
    words.extend_from_slice(&[0, 0, 0, 0, 0, NO_MEMORY, 0]);
    words
}

/// Role of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    Output,
}

/// Appends an operand. Beyond [`MAX_OPERANDS`] operands and [`MAX_AXES`] axes nothing is stored.
#[inline]
pub(super) fn push_operand(words: &mut Words, dtype: u8, shape: &[usize], role: Role) {
    let count = (words[0] >> 48) as usize;
    words[0] += 1 << 48;
    if count >= MAX_OPERANDS || words.len() + 1 + MAX_AXES > MAX_LEN {
        return;
    }
    let ndim = shape.len().min(MAX_AXES);
    words.push(u64::from(dtype) | (ndim as u64) << 8 | u64::from(role == Role::Output) << 16);
    for &n in &shape[..ndim] {
        words.push(n as u64);
    }
}

/// Appends an array.
#[inline]
pub(super) fn push_array(words: &mut Words, x: &Array, role: Role) {
    push_operand(words, x.dtype() as u8, x.shape(), role);
}

/// An operand of an event.
pub(super) struct Operand<'a> {
    pub dtype: u8,
    pub role: Role,
    pub shape: &'a [u64],
}

/// View of a recorded event.
pub(super) struct Event<'a> {
    words: &'a [u64],
}

impl<'a> Event<'a> {
    pub fn kind(&self) -> Kind {
        Kind::ALL[(self.words[0] >> 32 & 0xFF) as usize % Kind::ALL.len()]
    }

    pub fn flags(&self) -> u8 {
        (self.words[0] >> 40) as u8
    }

    pub fn name(&self) -> u32 {
        self.words[0] as u32
    }

    pub fn begin(&self) -> u64 {
        self.words[1]
    }

    pub fn duration(&self) -> u64 {
        self.words[2]
    }

    /// Time in the queue, or label of the domain.
    pub fn extra(&self) -> u64 {
        self.words[3]
    }

    pub fn bytes(&self) -> u64 {
        self.words[4]
    }

    pub fn scope(&self) -> u32 {
        self.words[5] as u32
    }

    pub fn line(&self) -> u32 {
        (self.words[5] >> 32) as u32
    }

    /// Bytes in use and the largest number so far.
    pub fn memory(&self) -> Option<(u64, u64)> {
        (self.words[6] != NO_MEMORY).then(|| (self.words[6], self.words[7]))
    }

    pub fn num_operands(&self) -> usize {
        (self.words[0] >> 48) as usize
    }

    pub fn operands(&self) -> impl Iterator<Item = Operand<'a>> + use<'a> {
        let mut rest = &self.words[HEAD..];
        std::iter::from_fn(move || {
            let (&first, tail) = rest.split_first()?;
            let (shape, tail) = tail.split_at_checked((first >> 8 & 0xFF) as usize)?;
            rest = tail;
            let role = if first >> 16 & 1 == 1 {
                Role::Output
            } else {
                Role::Input
            };
            Some(Operand {
                dtype: first as u8,
                role,
                shape,
            })
        })
    }
}

/// The events in words of a buffer.
pub(super) fn events(mut words: &[u64]) -> impl Iterator<Item = Event<'_>> {
    std::iter::from_fn(move || {
        let first = *words.first()?;
        let mut len = HEAD;
        for _ in 0..((first >> 48) as usize).min(MAX_OPERANDS) {
            len += 1 + (words.get(len)? >> 8 & 0xFF) as usize;
        }
        let (event, rest) = words.split_at_checked(len)?;
        words = rest;
        Some(Event { words: event })
    })
}
