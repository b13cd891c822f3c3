//! Plans: the part of a call's work that depends on its operator, attributes and operand layouts, but not on values.
//!
//! The rules of the operator prepare a plan once; a cache of the thread stores it. The cache key has all that the rules can read: operator,
//! attributes, promotion mode, training mode, device, and the dtype, shape and strides of each operand. Python numbers enter by their kind, and for
//! operators with shape inference also by their value. A call with the same key runs the plan without calling the rules.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mxnet_tensor::{DType, Device, IndexItem, Layout, Promotion, Scalar, Source, promotion};
use smallvec::SmallVec;

use crate::args::{Value, bits_of};
use crate::error::Result;
use crate::invoke::Call;
use crate::launch::Kernel;
use crate::mode::{Flags, current_device};
use crate::opdef::Cpu;
use crate::{Array, Outputs};

/// How calls with one key are executed.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all plans launch, and the entry around a plan is boxed already"
)]
pub enum Plan {
    /// A kernel fills the outputs.
    Launch(Launch),
    /// Calls of other operators execute the call.
    Expand(fn(&Call) -> Result<Outputs>),
}

/// A kernel and its outputs.
pub struct Launch {
    /// The code to run.
    pub kernel: Kernel,
    /// Outputs to allocate.
    pub outputs: SmallVec<[OutputPlan; 1]>,
    /// Device of the outputs.
    pub device: Device,
    /// Device that runs the kernel. It differs from `device` only for copies from a device to main memory.
    pub runs_on: Device,
    /// Estimated time on one core.
    pub cost_ns: u64,
    /// Positions of the operands that are Python numbers, and the dtypes that must hold them.
    pub numbers: SmallVec<[(usize, DType); 2]>,
}

/// An output to allocate.
pub struct OutputPlan {
    /// Shape and strides: dense, offset 0.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
}

impl OutputPlan {
    /// Appends a new array. Its elements are zeros if `zeroed`, otherwise undefined.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    #[inline]
    pub fn allocate(&self, device: Device, zeroed: bool, outputs: &mut Outputs) -> Result<()> {
        let len = self.layout.len();
        let elements = match zeroed {
            false => Source::fresh(len, self.dtype, device)?,
            true => Source::zeroed(len, self.dtype, device)?,
        };
        Array::push_dense(outputs, elements, &self.layout);
        Ok(())
    }
}

/// Length of the longest key in words. Calls with longer keys (many operands, long attributes) are prepared each time.
const MAX_WORDS: usize = 64;

/// Sets of the cache, of two plans each: 1024 plans at most.
const NUM_SETS: usize = 512;

/// The cache key of a call, as words.
struct Key {
    words: [u64; MAX_WORDS],
    /// More than `MAX_WORDS` if the key is too long.
    len: usize,
    hash: u64,
}

impl Key {
    const fn new() -> Key {
        Key {
            words: [0; MAX_WORDS],
            len: 0,
            hash: 0,
        }
    }

    #[inline]
    fn push(&mut self, word: u64) {
        if let Some(slot) = self.words.get_mut(self.len) {
            *slot = word;
        }
        self.len += 1;
    }

    /// Computes the hash. Two independent accumulators take alternate words, because each step depends on the one before.
    #[inline]
    fn mix(&mut self) {
        // The multiplier is 2^64 divided by the golden ratio. The rotation moves the high bits, which are mixed best, to where the next word is
        // added.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
        let (mut even, mut odd) = (0, 1);
        let mut pairs = self.words[..self.len].chunks_exact(2);
        for pair in &mut pairs {
            (even, odd) = (step(even, pair[0]), step(odd, pair[1]));
        }
        for &word in pairs.remainder() {
            even = step(even, word);
        }
        self.hash = step(even, odd);
    }

    #[inline]
    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.push(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.push(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn push_layout(&mut self, layout: &Layout) {
        for &size in layout.shape() {
            self.push(size as u64);
        }
        for &stride in layout.strides() {
            self.push(stride as u64);
        }
    }

    /// Appends an operand, present or absent. Its first word determines the number of words that follow.
    #[inline]
    fn push_operand(&mut self, operand: Option<&Array>, with_value: bool) {
        let Some(x) = operand else {
            return self.push(0);
        };
        let device = x.device();
        let header = 1
            | (x.dtype() as u64) << 8
            | (device.kind().index() as u64) << 16
            | (x.ndim() as u64) << 24
            | u64::from(device.id()) << 32;
        if !x.is_weak() {
            self.push(header);
            return self.push_layout(x.layout());
        }
        self.push(header | 2 | (x.kind() as u64) << 4);
        if with_value && let Some(value) = x.number() {
            self.push_scalar(&value);
        }
    }

    /// Appends a number. Its variant is part of the key: the same bits may be a signed or an unsigned integer.
    fn push_scalar(&mut self, value: &Scalar) {
        let (variant, bits, more) = bits_of(value);
        self.push(u64::from(variant));
        self.push(bits);
        if let Scalar::C128(_) = value {
            self.push(more);
        }
    }

    fn push_value(&mut self, value: &Value) {
        self.push(value.tag());
        match value {
            Value::None => {}
            Value::Bool(x) => self.push(u64::from(*x)),
            Value::Int(x) => self.push(*x as u64),
            Value::Float(x) => self.push(x.to_bits()),
            Value::Scalar(x) => self.push_scalar(x),
            Value::Ints(x) => {
                self.push(x.len() as u64);
                x.iter().for_each(|&x| self.push(x as u64));
            }
            Value::Floats(x) => {
                self.push(x.len() as u64);
                x.iter().for_each(|&x| self.push(x.to_bits()));
            }
            Value::Str(x) => self.push_bytes(x.as_bytes()),
            // The address of the word suffices: an equal word at another address only leads to a second plan.
            Value::Word(x) => {
                self.push(x.as_ptr() as u64);
                self.push(x.len() as u64);
            }
            Value::DType(x) => self.push(*x as u64),
            Value::Device(x) => self.push((x.kind().index() as u64) << 32 | u64::from(x.id())),
            Value::Index(items) => {
                self.push(items.len() as u64);
                items.iter().for_each(|item| self.push_item(item));
            }
        }
    }

    fn push_item(&mut self, item: &IndexItem) {
        match item {
            IndexItem::Int(i) => {
                self.push(1);
                self.push(*i as u64);
            }
            IndexItem::Slice { start, stop, step } => {
                let bounds = [start, stop, step];
                let given = bounds.map(|bound| u64::from(bound.is_some()));
                self.push(2 | given[0] << 8 | given[1] << 9 | given[2] << 10);
                for bound in bounds.into_iter().flatten() {
                    self.push(*bound as u64);
                }
            }
            IndexItem::NewAxis => self.push(3),
            IndexItem::Ellipsis => self.push(4),
            IndexItem::Array { shape } | IndexItem::Mask { shape } => {
                let is_mask = matches!(item, IndexItem::Mask { .. });
                self.push(5 | u64::from(is_mask) << 8 | (shape.len() as u64) << 16);
                shape.iter().for_each(|&size| self.push(size as u64));
            }
        }
    }

    /// Computes the key of a call. Returns whether it is short enough.
    #[inline]
    fn describe(&mut self, call: &Call) -> bool {
        self.len = 0;
        self.push(std::ptr::from_ref(call.op) as u64);
        // Rules of elementwise operators do not read values: whether a number fits its dtype is checked at each call.
        let with_values = !matches!(call.op.cpu, Cpu::Map(_));
        let device = current_device();
        self.push(
            u64::from(promotion() == Promotion::NumPy)
                | u64::from(Flags::current().is_training()) << 1
                | (call.inputs.len() as u64) << 8
                | (call.outs.len() as u64) << 24
                | call.dtype.map_or(0, |dtype| 1 + dtype as u64) << 32
                | (device.kind().index() as u64) << 40
                | u64::from(device.id()) << 48,
        );
        for x in call.inputs {
            self.push_operand(*x, with_values);
        }
        if !call.outs.is_empty() {
            self.push_outs(call);
        }
        for value in call.attrs.values() {
            self.push_value(value);
        }
        let fits = self.len <= MAX_WORDS;
        if fits {
            self.mix();
        }
        fits
    }

    /// Appends given outputs and which operands alias: both affect how elements are written.
    fn push_outs(&mut self, call: &Call) {
        for out in call.outs {
            self.push_operand(*out, false);
            let Some(out) = out else { continue };
            let mut same = 0;
            for (i, x) in call.inputs.iter().enumerate() {
                if let Some(x) = x
                    && x.tensor().data_ptr() == out.tensor().data_ptr()
                {
                    same |= 1 << i.min(63);
                }
            }
            self.push(same);
        }
    }
}

/// A plan with its key.
struct Entry {
    words: SmallVec<[u64; 16]>,
    generation: u64,
    plan: Plan,
}

/// Hits and misses of a thread's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls whose plan was in the cache.
    pub hits: u64,
    /// Calls whose plan was prepared.
    pub misses: u64,
}

/// The cache of a thread.
struct Cache {
    sets: Vec<[Option<Box<Entry>>; 2]>,
    /// The generation of its plans.
    generation: u64,
    /// The key of the call in progress, reused.
    key: Key,
    counters: Counters,
}

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache {
        sets: Vec::new(),
        generation: 0,
        key: Key::new(),
        counters: Counters { hits: 0, misses: 0 },
    }) };
}

static IS_ENABLED: AtomicBool = AtomicBool::new(true);

/// Incremented when the plans of all threads become invalid.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Invalidates the plans of all threads: a kernel was added or replaced.
pub(crate) fn invalidate() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Switches the cache on or off for all threads. Returns the previous value. Without it every call is prepared.
pub fn set_enabled(is_enabled: bool) -> bool {
    IS_ENABLED.swap(is_enabled, Ordering::Relaxed)
}

/// Whether the cache is on.
pub fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// Hits and misses of this thread's cache so far.
pub fn counters() -> Counters {
    CACHE.with_borrow(|cache| cache.counters)
}

/// Result of a lookup.
enum Found {
    /// The plan, taken out of the cache, and the set to put it back into.
    Hit(usize, Box<Entry>),
    /// No plan; the set, the key and the generation for a new one.
    Miss(usize, SmallVec<[u64; 16]>, u64),
    /// The call has no key, because it would be too long.
    Unkeyed,
}

/// Runs `body` with the plan of a call: from the cache, or a new one. The plan is taken out of the cache meanwhile, so that `body` may call
/// operators.
///
/// # Errors
/// Errors of `prepare` and `body`. Nothing is cached if a call cannot be prepared.
#[inline]
pub(crate) fn with_plan<R>(
    call: &Call,
    prepare: impl FnOnce() -> Result<Plan>,
    body: impl FnOnce(&Plan) -> Result<R>,
) -> Result<R> {
    let (set, entry) = match CACHE.with_borrow_mut(|cache| cache.take(call)) {
        Found::Hit(set, entry) => (set, entry),
        Found::Miss(set, words, generation) => {
            let plan = prepare()?;
            let entry = Entry {
                words,
                generation,
                plan,
            };
            (set, Box::new(entry))
        }
        Found::Unkeyed => return body(&prepare()?),
    };
    let result = body(&entry.plan);
    // The evicted plan is dropped after the cache is released.
    drop(CACHE.with_borrow_mut(|cache| cache.put(set, entry)));
    result
}

impl Cache {
    /// Takes the plan of a call out of its set.
    #[inline]
    fn take(&mut self, call: &Call) -> Found {
        let generation = GENERATION.load(Ordering::Acquire);
        if generation != self.generation {
            self.sets.clear();
            self.generation = generation;
        }
        if !is_enabled() || !self.key.describe(call) {
            self.counters.misses += 1;
            return Found::Unkeyed;
        }
        let (set, words) = (self.key.hash as usize % NUM_SETS, self.key.words());
        for way in self.sets.get_mut(set).into_iter().flatten() {
            if let Some(entry) = way.take_if(|entry| *entry.words == *words) {
                self.counters.hits += 1;
                return Found::Hit(set, entry);
            }
        }
        self.counters.misses += 1;
        Found::Miss(set, SmallVec::from_slice(words), generation)
    }

    /// Puts an entry into its set as the most recently used one. Returns the evicted entry if both ways are taken, or this entry if it is out of
    /// date.
    #[inline]
    fn put(&mut self, set: usize, entry: Box<Entry>) -> Option<Box<Entry>> {
        if entry.generation != self.generation {
            return Some(entry);
        }
        if self.sets.is_empty() {
            self.sets.resize_with(NUM_SETS, || [None, None]);
        }
        let ways = &mut self.sets[set];
        if ways[0].is_none() {
            ways[0] = Some(entry);
            return None;
        }
        ways.swap(0, 1);
        ways[0].replace(entry)
    }
}
