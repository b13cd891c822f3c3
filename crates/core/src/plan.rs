//! Plans: what a call does that depends on its operator, its attributes and the form of its operands, but not on values.
//!
//! A plan is prepared by the general rules of the operator, once, and kept in a cache of the thread. The key of the cache is all that the rules can
//! see: operator, attributes, promotion mode, training mode, device, and of each operand dtype, shape and strides. Python numbers enter by their
//! kind, and for operators with shape inference also by their value. A call with the same key runs the plan without asking the rules again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mxnet_tensor::{DType, Device, IndexItem, Layout, Promotion, Scalar, Source, promotion};
use smallvec::SmallVec;

use crate::args::{Value, bits_of};
use crate::error::Result;
use crate::interp::{Flags, current_device};
use crate::invoke::Call;
use crate::launch::Kernel;
use crate::opdef::Cpu;
use crate::{Array, Outputs};

/// How calls with one key are carried out.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all plans launch, and the entry around a plan is boxed already"
)]
pub enum Plan {
    /// One kernel fills the outputs.
    Launch(Launch),
    /// The call is carried out by calls of other operators.
    Expand(fn(&Call) -> Result<Outputs>),
}

/// A kernel, and the outputs that it fills.
pub struct Launch {
    /// What runs.
    pub kernel: Kernel,
    /// What to allocate, one entry for each output.
    pub outputs: SmallVec<[OutputPlan; 1]>,
    /// Where the outputs are allocated.
    pub device: Device,
    /// Where the kernel runs: where the outputs are, but for copies from a device to main memory.
    pub runs_on: Device,
    /// Estimated time on one core.
    pub cost_ns: u64,
    /// Operands that are Python numbers, and the dtypes that must be able to hold them.
    pub numbers: SmallVec<[(usize, DType); 2]>,
}

/// An output that the call allocates.
pub struct OutputPlan {
    /// Shape and strides, without gaps, at offset 0.
    pub layout: Layout,
    /// Data type.
    pub dtype: DType,
}

impl OutputPlan {
    /// Pushes a new array, its elements undefined unless they are to be zeros.
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

/// Words of the longest key. Calls with longer ones (many operands, long attributes) are prepared each time.
const MAX_WORDS: usize = 64;

/// Sets of the cache, of two plans each: 1024 plans at most.
const NUM_SETS: usize = 512;

/// The form of a call, as words.
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

    /// Mixes the words, every other one apart: each step waits for the one before.
    #[inline]
    fn mix(&mut self) {
        // The multiplier is the 64-bit golden ratio; the rotation brings the high bits, which mix best, to where the next word meets them.
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

    /// An operand, present or not. The header tells how many words follow.
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

    /// A number. Its variant is part of the key: the same bits may be an integer with or without a sign.
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
            // Where it stands is as good as what it says: an equal word elsewhere makes a plan of its own.
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

    /// Becomes the key of a call. Returns whether it is short enough.
    #[inline]
    fn describe(&mut self, call: &Call) -> bool {
        self.len = 0;
        self.push(std::ptr::from_ref(call.op) as u64);
        // Rules of elementwise operators do not look at values: what a number must fit is checked at each call.
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
        let is_short = self.len <= MAX_WORDS;
        if is_short {
            self.mix();
        }
        is_short
    }

    /// Given outputs, and which operands are the same elements: those are written through tiles or not.
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

/// A plan under its key.
struct Entry {
    words: SmallVec<[u64; 16]>,
    generation: u64,
    plan: Plan,
}

/// How often the thread found a plan in its cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that ran a plan of the cache.
    pub hits: u64,
    /// Calls that were prepared.
    pub misses: u64,
}

/// The plans of a thread.
struct Cache {
    sets: Vec<[Option<Box<Entry>>; 2]>,
    /// The generation that the plans are of.
    generation: u64,
    /// The key of the call that is looked up.
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

/// Counts what makes the plans of all threads out of date.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Makes all threads prepare their calls again: a kernel was added or replaced.
pub(crate) fn invalidate() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Switches the cache of plans for all threads; returns what it was. Without it every call is prepared.
pub fn set_enabled(is_enabled: bool) -> bool {
    IS_ENABLED.swap(is_enabled, Ordering::Relaxed)
}

/// Whether calls look for their plan in the cache.
pub fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// How often this thread found a plan in its cache so far.
pub fn counters() -> Counters {
    CACHE.with_borrow(|cache| cache.counters)
}

/// What the cache answers for a call.
enum Found {
    /// Its plan, which is out of the cache until it is put back into this set.
    Hit(usize, Box<Entry>),
    /// No plan, but the set, the key and the generation of one.
    Miss(usize, SmallVec<[u64; 16]>, u64),
    /// The call has no key.
    Unkeyed,
}

/// Runs `body` with the plan of a call: the one in the cache, else a new one. The plan is out of the cache meanwhile, so that `body` may call
/// operators, too.
///
/// # Errors
/// What `prepare` or `body` reports; nothing is kept of a call that cannot be prepared.
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
    // The destructor of a plan that makes room runs after the cache is released.
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

    /// Puts an entry into its set, as the one used last. Returns the other one if both ways are taken, or the entry if it is out of date.
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
