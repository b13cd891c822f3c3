//! Convolutions and matrix products of 8-bit integers with exact 32-bit sums, which may be scaled and rounded to 8 bits while they are in the cache.
//!
//! A matrix product is a convolution with a kernel of 1. The data are read with the channels last, weights are packed in panels of output channels, as
//! in the convolutions of floats ([`crate::conv`]). The instruction for four products of unsigned and signed bytes takes the data as unsigned: 128 is
//! added to signed data, and 128 times the sum of the weights is taken from the results. Without that instruction, bytes are widened to 16 bits. The
//! sums are the same bits on every processor.

mod micro;
pub mod pool;
mod store;

#[cfg(test)]
mod tests;

use crate::conv::padded::Padded;
use crate::conv::{Conv, run};
use crate::panels::MAX_ROWS;
use crate::real::Shared;
use crate::reduce::by_isa;
use crate::{Threads, scratch};
use micro::{MAX_LANES, Micro, Segment};
pub use store::{Epilogue, Output};
use store::{Results, finish};

/// Steps of a panel that are used for all positions of a chunk before the next ones: with 32 lanes, as much as a first-level cache holds.
const SLAB: usize = 256;
/// Largest number of positions whose sums are in memory at once, a multiple of every number of rows.
const CHUNK: usize = 120;
/// Products that take one core about 20 us.
const TASK_WORK: usize = 1 << 22;
/// Bytes behind the copied data that a step may read.
const SLACK_BYTES: usize = 2 * MAX_LANES;
/// What is added to signed data.
const SHIFT: i32 = 128;

/// The data of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// The first element.
    pub ptr: *const u8,
    /// Elements from one image, channel, and position on each spatial axis to the next.
    pub strides: [usize; 5],
    /// Whether the elements are `i8`, not `u8`.
    pub is_signed: bool,
}

/// The weights of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// The first element.
    pub ptr: *const i8,
    /// Elements from one output channel, input channel of the group, and tap on each spatial axis to the next.
    pub strides: [usize; 5],
}

/// Whether every channel is convolved by itself.
fn is_depthwise(g: &Conv) -> bool {
    g.groups > 1 && g.in_channels == g.groups && g.out_channels == g.groups
}

/// The geometry with which data of depthwise convolutions are copied: all channels of a position side by side.
fn ungrouped(g: &Conv) -> Conv {
    match is_depthwise(g) {
        true => Conv { groups: 1, ..*g },
        false => *g,
    }
}

/// Runs of contiguous elements that the taps read: how many along the last axis, and the elements of one.
fn runs(g: &Conv) -> (usize, usize) {
    let ic = g.group().0;
    match g.dilation[2] {
        1 => (1, g.kernel[2] * ic),
        _ => (g.kernel[2], ic),
    }
}

/// Form of the packed weights of a geometry.
struct Packing {
    /// Panels of a group.
    panels: usize,
    /// Words of a lane in a panel, without the correction.
    steps: usize,
    /// Words in all panels.
    words: usize,
}

impl Packing {
    fn of(g: &Conv, micro: &Micro) -> Packing {
        let lanes = micro.lanes;
        if is_depthwise(g) {
            let panels = g.out_channels.div_ceil(lanes);
            let steps = g.taps();
            // 16 bits for each weight.
            let words = (panels * steps * lanes).div_ceil(2);
            return Packing {
                panels,
                steps,
                words,
            };
        }
        let (runs, run_len) = runs(g);
        let steps = g.kernel[0] * g.kernel[1] * runs * run_len.div_ceil(micro.in_word());
        let panels = g.group().1.div_ceil(lanes);
        let words = g.groups * panels * (steps + 1) * lanes;
        Packing {
            panels,
            steps,
            words,
        }
    }
}

/// What the form of the packed weights depends on: weights of one shape have one form for each key.
pub fn packed_key(g: &Conv) -> [usize; 4] {
    let micro = micro::kernels();
    [
        g.groups,
        usize::from(g.dilation[2] == 1),
        micro.lanes,
        micro.in_word(),
    ]
}

/// Size of the packed weights in bytes.
pub fn packed_bytes(g: &Conv) -> usize {
    Packing::of(g, &micro::kernels()).words * size_of::<u32>()
}

/// Packs weights.
///
/// # Safety
/// The weights are those of `g`; `to` has [`packed_bytes`], aligned to 4 bytes.
pub unsafe fn pack(threads: &dyn Threads, g: &Conv, w: &Weights, to: *mut u8) {
    // SAFETY: forwarded.
    unsafe { pack_for(&micro::kernels(), threads, g, w, to) }
}

/// # Safety
/// As [`pack`]'s, for these micro-kernels.
unsafe fn pack_for(micro: &Micro, threads: &dyn Threads, g: &Conv, w: &Weights, to: *mut u8) {
    let packing = Packing::of(g, micro);
    let source = Shared(w.ptr.cast_mut());
    let [o, i, taps @ ..] = w.strides;
    let ((ic, oc), lanes, to) = (g.group(), micro.lanes, Shared(to.cast::<u32>()));
    let [_, kh, kw] = g.kernel;
    let tap_at =
        |tap: usize| tap / (kh * kw) * taps[0] + tap / kw % kh * taps[1] + tap % kw * taps[2];
    if is_depthwise(g) {
        let to = Shared(to.at(0).cast::<i16>());
        return run(threads, packing.panels, &|panel| {
            for step in 0..packing.steps {
                for lane in 0..lanes {
                    let channel = panel * lanes + lane;
                    // SAFETY: a channel and a tap of the weights; the panel is this task's own.
                    unsafe {
                        let x = match channel < g.out_channels {
                            true => i16::from(*source.at(channel * o + tap_at(step))),
                            false => 0,
                        };
                        *to.at((panel * packing.steps + step) * lanes + lane) = x;
                    }
                }
            }
        });
    }
    let ((per_tap_row, run_len), in_word) = (runs(g), micro.in_word());
    let words = run_len.div_ceil(in_word);
    run(threads, g.groups * packing.panels, &|task| {
        let (group, panel) = (task / packing.panels, task % packing.panels);
        let to = to.at(task * (packing.steps + 1) * lanes);
        for lane in 0..lanes {
            let channel = panel * lanes + lane;
            let from = source.at((group * oc + channel.min(oc - 1)) * o);
            let mut sum = 0;
            for step in 0..packing.steps {
                let (row, word) = (step / words, step % words);
                let mut elements = [0; 4];
                for (e, to) in elements[..in_word].iter_mut().enumerate() {
                    let at = word * in_word + e;
                    if at < run_len && channel < oc {
                        let (tap, c) = match per_tap_row {
                            1 => (row * kw + at / ic, at % ic),
                            _ => (row, at),
                        };
                        // SAFETY: a tap and an input channel of an output channel.
                        *to = unsafe { *from.wrapping_add(c * i + tap_at(tap)) };
                        sum += i32::from(*to);
                    }
                }
                // SAFETY: a word of this task's panel.
                unsafe { *to.wrapping_add(step * lanes + lane) = micro.word(elements) };
            }
            // SAFETY: the word behind the steps of the panel.
            unsafe {
                let at = to.wrapping_add(packing.steps * lanes + lane);
                *at = (SHIFT * sum).cast_unsigned();
            }
        }
    });
}

/// Convolution. Positions outside the input read 0.
///
/// # Safety
/// 1. `x` has the data of `g` at its strides, and `packed` weights packed by [`pack`] for `g`.
/// 2. `y` has the results, aligned to their type, and overlaps no operand.
/// 3. The vectors of the epilogue have an element for each output channel, and the addend the elements of the results in the same order.
pub unsafe fn forward(
    threads: &dyn Threads,
    g: &Conv,
    x: &Data,
    packed: *const u8,
    y: &Output,
    epilogue: &Epilogue,
) {
    // SAFETY: forwarded.
    unsafe { forward_with(&micro::kernels(), threads, g, x, packed, y, epilogue) }
}

/// The data in the form that the micro-kernels read.
struct Source {
    /// The copy, if there is one.
    _copy: Vec<u64>,
    ptr: Shared<u8>,
    padded: Padded,
    /// Geometry of the data: see [`ungrouped`].
    g: Conv,
    /// Size of an element in bytes.
    size: usize,
    /// Whether 128 was added to the elements.
    is_shifted: bool,
}

impl Source {
    /// # Safety
    /// `x` has the data of `g`.
    unsafe fn of(micro: &Micro, threads: &dyn Threads, g: &Conv, x: &Data) -> Source {
        let depthwise = is_depthwise(g);
        let inner = ungrouped(g);
        let padded = Padded::of(&inner);
        let (size, is_shifted) = match depthwise {
            true => (1, false),
            false => (micro.elem_bytes, micro.elem_bytes == 1 && x.is_signed),
        };
        let [_, h, w] = g.input;
        let c = g.in_channels;
        let is_dense = x.strides == [c * g.in_len(), 1, h * w * c, w * c, c];
        let fits = size == 1 && !is_shifted && is_dense && g.groups == 1 && g.pad == [0; 3];
        if fits && !depthwise && runs(g).1.is_multiple_of(micro.in_word()) && reads_inside(g) {
            let padded = Padded {
                extent: g.input,
                step: [1; 3],
                stride: g.stride,
            };
            return Source {
                _copy: Vec::new(),
                ptr: Shared(x.ptr.cast_mut()),
                padded,
                g: inner,
                size,
                is_shifted,
            };
        }
        let len = inner.groups * padded.group_len(&inner);
        let mut bytes = copied(len + SLACK_BYTES, len, padded.is_padded(&inner));
        // SAFETY: the data have these strides; the copy has their size.
        unsafe { padded.copy(threads, &inner, x.ptr, x.strides, ptr_of(&mut bytes)) };
        if size == 2 {
            let mut wide = copied(2 * (len + SLACK_BYTES), 2 * len, false);
            let (from, to) = (Shared(ptr_of(&mut bytes)), Shared(ptr_of(&mut wide)));
            let is_signed = x.is_signed;
            in_pieces(threads, len, &|at, n| {
                let to = to.at(2 * at).cast::<i16>();
                // SAFETY: elements of both; each is written by one task. The memory is aligned to words.
                unsafe {
                    match is_signed {
                        true => widen::<i8>(from.at(at).cast(), to, n),
                        false => widen::<u8>(from.at(at), to, n),
                    }
                }
            });
            bytes = wide;
        } else if is_shifted {
            let ptr = Shared(ptr_of(&mut bytes));
            in_pieces(threads, len, &|at, n| {
                // SAFETY: elements of the copy; each belongs to one task.
                unsafe { shift(ptr.at(at), n) };
            });
        }
        Source {
            ptr: Shared(ptr_of(&mut bytes)),
            _copy: bytes,
            padded,
            g: inner,
            size,
            is_shifted,
        }
    }

    /// The parts of a sum, by slab: offset in bytes in the data, first step of the panel, number of steps.
    fn parts(&self, in_word: usize) -> Vec<Vec<(usize, usize, usize)>> {
        let g = &self.g;
        let (ic, [kd, kh, _]) = (g.group().0, g.kernel);
        let [_, h, w] = self.padded.extent;
        let (runs, run_len) = runs(g);
        let words = run_len.div_ceil(in_word);
        let mut all: Vec<Vec<_>> = Vec::new();
        let (mut step, mut left_in_slab) = (0, 0);
        for tap in 0..kd * kh * runs {
            let k = [tap / (kh * runs), tap / runs % kh, tap % runs];
            let at: [usize; 3] = std::array::from_fn(|a| k[a] * g.dilation[a]);
            let mut at = ((at[0] * h + at[1]) * w + at[2]) * ic * self.size;
            let mut left = words;
            while left > 0 {
                if left_in_slab == 0 {
                    all.push(Vec::new());
                    left_in_slab = SLAB;
                }
                let steps = left.min(left_in_slab);
                if let Some(slab) = all.last_mut() {
                    slab.push((at, step, steps));
                }
                (at, step) = (at + steps * size_of::<u32>(), step + steps);
                (left, left_in_slab) = (left - steps, left_in_slab - steps);
            }
        }
        all
    }

    /// Offsets in bytes of the taps of a depthwise convolution.
    fn taps(&self) -> Vec<usize> {
        let g = &self.g;
        let [_, h, w] = self.padded.extent;
        let [_, kh, kw] = g.kernel;
        let at = |tap: usize| {
            let k = [tap / (kh * kw), tap / kw % kh, tap % kw];
            let at: [usize; 3] = std::array::from_fn(|a| k[a] * g.dilation[a]);
            ((at[0] * h + at[1]) * w + at[2]) * g.in_channels
        };
        scratch::collected(g.taps(), (0..g.taps()).map(at))
    }
}

/// Whether no window ends behind the input.
fn reads_inside(g: &Conv) -> bool {
    (0..3).all(|a| (g.output[a] - 1) * g.stride[a] + (g.kernel[a] - 1) * g.dilation[a] < g.input[a])
}

/// Memory for a copy of `len` bytes, aligned to words. The bytes from `first_unwritten` on are 0, and all of them if some of the others are never
/// written.
fn copied(len: usize, first_unwritten: usize, has_padding: bool) -> Vec<u64> {
    let mut words = Vec::new();
    let count = len.div_ceil(size_of::<u64>());
    scratch::reserve(&mut words, count);
    scratch::count_bytes(len);
    let first = match has_padding {
        true => 0,
        false => first_unwritten / size_of::<u64>(),
    };
    words.spare_capacity_mut()[first..count].fill(std::mem::MaybeUninit::new(0));
    words
}

/// The first byte of the memory.
fn ptr_of(words: &mut Vec<u64>) -> *mut u8 {
    words.as_mut_ptr().cast()
}

/// Calls `task(first, count)` for pieces of `len` elements.
fn in_pieces(threads: &dyn Threads, len: usize, task: &(dyn Fn(usize, usize) + Sync)) {
    /// Elements of a piece.
    const PIECE: usize = 1 << 16;
    run(threads, len.div_ceil(PIECE), &|i| {
        task(i * PIECE, PIECE.min(len - i * PIECE));
    });
}

by_isa! {
    /// Adds 128 to signed bytes: the upper bit changes.
    ///
    /// # Safety
    /// `n` bytes.
    unsafe fn shift [] [] (bytes: *mut u8, n: usize) {
        // SAFETY: the caller's promise.
        for x in unsafe { std::slice::from_raw_parts_mut(bytes, n) } {
            *x ^= 0x80;
        }
    }
}

by_isa! {
    /// Converts bytes to 16 bits.
    ///
    /// # Safety
    /// `n` elements on both sides, which do not overlap.
    unsafe fn widen [T: Copy + Into<i16>] [T] (from: *const T, to: *mut i16, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { *to.add(i) = (*from.add(i)).into() };
        }
    }
}

impl Micro {
    /// [`depthwise`] for the lanes of these micro-kernels.
    ///
    /// # Safety
    /// As there, for signed or unsigned data.
    unsafe fn depthwise(
        &self,
        x: *const u8,
        is_signed: bool,
        rows: &[usize],
        taps: &[usize],
        w: *const i16,
        sums: *mut i32,
    ) {
        // SAFETY: forwarded.
        unsafe {
            match (self.lanes, is_signed) {
                (32, true) => depthwise::<i8, 32>(x.cast(), rows, taps, w, sums),
                (32, false) => depthwise::<u8, 32>(x, rows, taps, w, sums),
                (16, true) => depthwise::<i8, 16>(x.cast(), rows, taps, w, sums),
                (16, false) => depthwise::<u8, 16>(x, rows, taps, w, sums),
                (_, true) => depthwise::<i8, 8>(x.cast(), rows, taps, w, sums),
                (_, false) => depthwise::<u8, 8>(x, rows, taps, w, sums),
            }
        }
    }
}

by_isa! {
    /// Sums of a depthwise convolution: `rows.len()` positions of `L` channels.
    ///
    /// # Safety
    /// `L` channels from `x` on at each row and tap; as many weights for each tap; `rows.len() * L` sums.
    unsafe fn depthwise [T: Copy + Into<i16>, const L: usize] [T, L] (
        x: *const T, rows: &[usize], taps: &[usize], w: *const i16, sums: *mut i32,
    ) {
        for (r, &row) in rows.iter().enumerate() {
            let mut acc = [0; L];
            for (tap, &at) in taps.iter().enumerate() {
                // SAFETY: the caller's promise.
                let (x, w) = unsafe { (&*x.add(row + at).cast::<[T; L]>(), &*w.add(tap * L).cast::<[i16; L]>()) };
                for l in 0..L {
                    // A product of a byte and a signed byte fits 16 bits.
                    let x: i16 = x[l].into();
                    acc[l] += i32::from(x * w[l]);
                }
            }
            // SAFETY: the caller's promise.
            unsafe { *sums.add(r * L).cast::<[i32; L]>() = acc };
        }
    }
}

/// # Safety
/// As [`forward`]'s, for these micro-kernels.
unsafe fn forward_with(
    micro: &Micro,
    threads: &dyn Threads,
    g: &Conv,
    x: &Data,
    packed: *const u8,
    y: &Output,
    epilogue: &Epilogue,
) {
    let positions = g.n * g.out_len();
    if positions * g.out_channels == 0 {
        return;
    }
    let packing = Packing::of(g, micro);
    let (by_channel, lanes) = (is_depthwise(g), micro.lanes);
    // SAFETY: the caller's promise.
    let source = unsafe { Source::of(micro, threads, g, x) };
    let parts = source.parts(micro.in_word());
    let taps = source.taps();
    let (groups, oc) = match by_channel {
        true => (1, g.out_channels),
        false => (g.groups, g.group().1),
    };
    let per_position = packing.steps.max(1) * lanes * micro.in_word();
    let most = (TASK_WORK / per_position).clamp(CHUNK, 16 * CHUNK);
    let in_task = positions.div_ceil(positions.div_ceil(most));
    let tasks = positions.div_ceil(in_task);
    let packed = Shared(packed.cast_mut());
    let results = Results::new(g, y, epilogue);
    let is_signed = x.is_signed;
    run(threads, groups * packing.panels * tasks, &|task| {
        let (part, panel_of) = (task % tasks, task / tasks);
        let (group, o) = (panel_of / packing.panels, panel_of % packing.panels * lanes);
        let (start, end) = (part * in_task, positions.min((part + 1) * in_task));
        let (channel, channels) = (group * oc + o, lanes.min(oc - o));
        for first in (start..end).step_by(CHUNK) {
            let len = CHUNK.min(end - first);
            let mut rows = [0; CHUNK];
            source.padded.offsets(&source.g, first, &mut rows[..len]);
            scratch::with::<f32, _>(Results::memory(len, lanes), |memory| {
                let sums = memory.cast::<i32>();
                // SAFETY: 1. the panel has all steps, and the data the elements of all taps of each position; the memory holds the sums. 2. The
                // results of these channels and positions are this task's own.
                unsafe {
                    if by_channel {
                        let w = packed.at(panel_of * packing.steps * lanes * size_of::<i16>());
                        let x = source.ptr.at(o).cast_const();
                        micro.depthwise(x, is_signed, &rows[..len], &taps, w.cast(), sums);
                        finish(&results, lanes, sums, None, first, len, channel, channels);
                    } else {
                        let words = (packing.steps + 1) * lanes;
                        let panel = packed.at(panel_of * words * size_of::<u32>()).cast::<u32>();
                        let group_bytes = source.padded.group_len(&source.g) * source.size;
                        let x = source.ptr.at(group * group_bytes).cast_const();
                        for row in &mut rows[..len] {
                            *row *= source.size;
                        }
                        multiply(micro, &parts, x, panel, &rows[..len], sums);
                        let shift = panel.wrapping_add(packing.steps * lanes).cast::<i32>();
                        let shift = source.is_shifted.then_some(shift.cast_const());
                        finish(&results, lanes, sums, shift, first, len, channel, channels);
                    }
                }
            });
        }
    });
}

/// All parts of the sums for some rows, a slab of the panel after the other.
///
/// # Safety
/// The rows of `source` and the panel have the parts; `sums` has `rows.len()` rows of `lanes` elements.
unsafe fn multiply(
    micro: &Micro,
    parts: &[Vec<(usize, usize, usize)>],
    source: *const u8,
    panel: *const u32,
    rows: &[usize],
    sums: *mut i32,
) {
    let tiles = rows.len().div_ceil(micro.rows());
    let per_tile = rows.len().div_ceil(tiles);
    let mut segments = Vec::new();
    scratch::reserve(&mut segments, SLAB);
    // Without elements the sums are 0.
    let none = [Vec::new()];
    let parts = if parts.is_empty() { &none } else { parts };
    for (slab, parts) in parts.iter().enumerate() {
        segments.clear();
        segments.extend(parts.iter().map(|&(at, step, steps)| Segment {
            a: source.wrapping_add(at),
            b: panel.wrapping_add(step * micro.lanes),
            steps,
        }));
        for (tile, of) in rows.chunks(per_tile).enumerate() {
            let mut offsets = [0; MAX_ROWS];
            offsets[..of.len()].copy_from_slice(of);
            let sums = sums.wrapping_add(tile * per_tile * micro.lanes);
            // SAFETY: the caller's promise.
            unsafe { micro.run(of.len(), &segments, &offsets, sums, micro.lanes, slab > 0) };
        }
    }
}
