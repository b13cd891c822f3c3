//! What follows the sums while they are in the cache: scales, a bias, an addend, relu, rounding, and the order of the results.

use crate::conv::Conv;
use crate::copy::copy_elements as copy;
use crate::int8::micro::MAX_LANES;
use crate::real::Shared;
use crate::reduce::by_isa;
use crate::{Elem, Serial};

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The first result.
    pub ptr: *mut u8,
    /// `I32`: the sums. `F32`, `I8`, `U8`: what the epilogue makes of them; 8 bits are rounded to the nearest integer, ties to even, and saturate at
    /// -127 and 127, or 0 and 255.
    pub elem: Elem,
    /// Whether results are dense with the channels last; otherwise with the channels behind the images.
    pub channels_last: bool,
}

/// What becomes of a sum: `sum * scale * data_scale + bias + addend * addend_scale`. Not for results that are sums.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// A factor for each output channel.
    pub scale: *const f32,
    /// A factor for all.
    pub data_scale: f32,
    /// An addend for each output channel, or null.
    pub bias: *const f32,
    /// An addend for each result: `F32`, `I8` or `U8`.
    pub addend: Option<(*const u8, Elem)>,
    /// The factor of the addend.
    pub addend_scale: f32,
    /// Whether negative results become 0.
    pub relu: bool,
}

/// [`Output`] and [`Epilogue`] of a convolution, shared by its tasks.
pub(super) struct Results {
    y: Shared<u8>,
    elem: Elem,
    channels_last: bool,
    scale: Shared<f32>,
    data_scale: f32,
    bias: Shared<f32>,
    addend: Option<(Shared<u8>, Elem)>,
    addend_scale: f32,
    relu: bool,
    /// Positions of an image.
    sp: usize,
    channels: usize,
}

impl Results {
    pub fn new(g: &Conv, y: &Output, epilogue: &Epilogue) -> Results {
        Results {
            y: Shared(y.ptr),
            elem: y.elem,
            channels_last: y.channels_last,
            scale: Shared(epilogue.scale.cast_mut()),
            data_scale: epilogue.data_scale,
            bias: Shared(epilogue.bias.cast_mut()),
            addend: epilogue
                .addend
                .map(|(x, elem)| (Shared(x.cast_mut()), elem)),
            addend_scale: epilogue.addend_scale,
            relu: epilogue.relu,
            sp: g.out_len(),
            channels: g.out_channels,
        }
    }

    /// Elements of 4 bytes that [`finish`] needs for `len` rows: the sums, then the results and the addends in the order of the sums.
    pub fn memory(len: usize, lanes: usize) -> usize {
        3 * len * lanes
    }
}

/// Vectors of a panel, with an element for each lane.
struct Lanes {
    shift: [i32; MAX_LANES],
    scale: [f32; MAX_LANES],
    bias: [f32; MAX_LANES],
}

/// Stores the results of `channels` channels from `channel` on at `len` positions from `first` on. `shift` is taken from the sums.
///
/// # Safety
/// `sums` begins memory of [`Results::memory`] with the sums; the results exist and belong to the caller; `shift` has an element for each lane.
#[expect(
    clippy::too_many_arguments,
    reason = "a block of results: two ranges and the sums"
)]
pub(super) unsafe fn finish(
    results: &Results,
    lanes: usize,
    sums: *mut i32,
    shift: Option<*const i32>,
    first: usize,
    len: usize,
    channel: usize,
    channels: usize,
) {
    let mut of = Lanes {
        shift: [0; MAX_LANES],
        scale: [0.0; MAX_LANES],
        bias: [0.0; MAX_LANES],
    };
    // SAFETY: the caller's promise; vectors have an element for each channel.
    unsafe {
        if let Some(shift) = shift {
            std::ptr::copy_nonoverlapping(shift, of.shift.as_mut_ptr(), lanes);
        }
        if results.elem != Elem::I32 {
            for l in 0..channels {
                of.scale[l] = *results.scale.at(channel + l) * results.data_scale;
                if !results.bias.is_null() {
                    of.bias[l] = *results.bias.at(channel + l);
                }
            }
        }
        let low = if results.relu { 0.0 } else { f32::NEG_INFINITY };
        let store = |addend: *const f32, y: *mut u8, stride: usize| {
            let block = Block {
                sums,
                addend,
                addend_scale: results.addend_scale,
                len,
                lanes,
                channels,
                low,
                stride,
            };
            match results.elem {
                Elem::I32 => rows_of_sums(&of, &block, y.cast()),
                Elem::I8 => rows_of::<i8>(&of, &block, y.cast()),
                Elem::U8 => rows_of::<u8>(&of, &block, y),
                _ => rows_of::<f32>(&of, &block, y.cast()),
            }
        };
        let at = |x: Shared<u8>, elem: Elem, i: usize| x.at(i * size(elem));
        // A block with the lanes side by side, transposed when it is complete.
        let block = sums.wrapping_add(len * lanes).cast::<u8>();
        let addend = sums.wrapping_add(2 * len * lanes).cast::<f32>();
        // Pieces of an image, for results with the channels behind the images: first row, first element, number of rows.
        let pieces = |each: &dyn Fn(usize, usize, usize)| {
            let mut p = 0;
            while p < len {
                let (image, at) = ((first + p) / results.sp, (first + p) % results.sp);
                let count = (results.sp - at).min(len - p);
                let start = (image * results.channels + channel) * results.sp + at;
                each(p, start, count);
                p += count;
            }
        };
        let start = first * results.channels + channel;
        let addend = match results.addend {
            None => std::ptr::null(),
            Some((x, elem)) if results.channels_last => {
                to_floats(
                    elem,
                    at(x, elem, start),
                    [results.channels, 1],
                    addend,
                    [len, channels],
                    lanes,
                );
                addend
            }
            Some((x, elem)) => {
                pieces(&|p, start, count| {
                    let to = addend.wrapping_add(p * lanes);
                    to_floats(
                        elem,
                        at(x, elem, start),
                        [1, results.sp],
                        to,
                        [count, channels],
                        lanes,
                    );
                });
                addend
            }
        };
        if results.channels_last {
            return store(addend, at(results.y, results.elem, start), results.channels);
        }
        store(addend, block, lanes);
        pieces(&|p, start, count| {
            let (elem, sp) = (results.elem, results.sp);
            let from = block.wrapping_add(p * lanes * size(elem));
            let to = at(results.y, elem, start);
            transpose(elem, [channels, count], to, [sp, 1], from, [1, lanes]);
        });
    }
}

/// A block of sums and what is done with them.
struct Block {
    sums: *const i32,
    /// Null, or an addend for each sum.
    addend: *const f32,
    addend_scale: f32,
    len: usize,
    lanes: usize,
    /// Lanes in use.
    channels: usize,
    /// The smallest result.
    low: f32,
    /// Elements from one row of results to the next.
    stride: usize,
}

/// Size of an element: 1 or 4.
fn size(elem: Elem) -> usize {
    match elem {
        Elem::I8 | Elem::U8 => 1,
        _ => 4,
    }
}

/// Copies a block; strides count elements.
///
/// # Safety
/// Both sides have the elements.
unsafe fn transpose(
    elem: Elem,
    shape: [usize; 2],
    to: *mut u8,
    to_strides: [usize; 2],
    from: *const u8,
    from_strides: [usize; 2],
) {
    // SAFETY: forwarded.
    unsafe {
        match size(elem) {
            1 => copy(&Serial, shape, to, to_strides, from, from_strides),
            _ => copy::<u32, 2>(
                &Serial,
                shape,
                to.cast(),
                to_strides,
                from.cast(),
                from_strides,
            ),
        }
    }
}

/// Types of results that are no sums.
trait Stored: Copy + Default {
    /// The number not below `low`; rounded to the nearest integer, ties to even, and saturated in types of 8 bits, where NaN becomes the lower bound.
    fn of(v: f32, low: f32) -> Self;
}

/// `v` rounded to the nearest integer, ties to even, within the bounds; NaN becomes the lower bound.
#[inline(always)]
fn rounded(v: f32, low: f32, high: f32) -> i32 {
    let v = if v > low { v } else { low };
    let v = if v < high { v } else { high };
    // SAFETY: a number within the bounds, which fit 32 bits.
    unsafe { v.round_ties_even().to_int_unchecked() }
}

impl Stored for i8 {
    #[inline(always)]
    fn of(v: f32, low: f32) -> i8 {
        rounded(v, low.max(-127.0), 127.0) as i8
    }
}

impl Stored for u8 {
    #[inline(always)]
    fn of(v: f32, _: f32) -> u8 {
        rounded(v, 0.0, 255.0) as u8
    }
}

impl Stored for f32 {
    #[inline(always)]
    fn of(v: f32, low: f32) -> f32 {
        if v < low { low } else { v }
    }
}

/// Stores the sums without what is taken from them.
///
/// # Safety
/// The rows of the block exist, and as many results.
unsafe fn rows_of_sums(of: &Lanes, block: &Block, y: *mut i32) {
    for r in 0..block.len {
        for l in 0..block.channels {
            // SAFETY: a sum and its result.
            unsafe {
                let sum = *block.sums.add(r * block.lanes + l);
                *y.add(r * block.stride + l) = sum.wrapping_sub(of.shift[l]);
            }
        }
    }
}

/// [`rows`] for the lanes and the addend of the block.
///
/// # Safety
/// As there.
unsafe fn rows_of<O: Stored>(of: &Lanes, block: &Block, y: *mut O) {
    // SAFETY: forwarded.
    unsafe {
        match (block.lanes, block.addend.is_null()) {
            (32, true) => rows::<O, false, 32>(of, block, y),
            (32, false) => rows::<O, true, 32>(of, block, y),
            (16, true) => rows::<O, false, 16>(of, block, y),
            (16, false) => rows::<O, true, 16>(of, block, y),
            (_, true) => rows::<O, false, 8>(of, block, y),
            (_, false) => rows::<O, true, 8>(of, block, y),
        }
    }
}

by_isa! {
    /// Stores the rows of a block of `L` lanes.
    ///
    /// # Safety
    /// The rows of sums and addends exist, and as many results.
    unsafe fn rows [O: Stored, const ADD: bool, const L: usize] [O, ADD, L] (of: &Lanes, block: &Block, y: *mut O) {
        for r in 0..block.len {
            let at = r * L;
            // Whole rows are written where they belong: a copy of a row would wait for its stores.
            let mut part = [O::default(); L];
            // SAFETY: row r of sums, addends and results.
            let (sums, addend, out) = unsafe {
                let y = y.add(r * block.stride).cast::<[O; L]>();
                (
                    &*block.sums.add(at).cast::<[i32; L]>(),
                    if ADD { &*block.addend.add(at).cast::<[f32; L]>() } else { &[0.0; L] },
                    if block.channels == L { &mut *y } else { &mut part },
                )
            };
            for l in 0..L {
                let mut v = sums[l].wrapping_sub(of.shift[l]) as f32 * of.scale[l] + of.bias[l];
                if ADD {
                    v += addend[l] * block.addend_scale;
                }
                out[l] = O::of(v, block.low);
            }
            if block.channels < L {
                // SAFETY: the results of row r.
                unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), y.add(r * block.stride), block.channels) };
            }
        }
    }
}

/// Copies addends, with these distances between rows and between lanes, to rows of `lanes` floats.
///
/// # Safety
/// Both sides have the elements.
unsafe fn to_floats(
    elem: Elem,
    x: *const u8,
    strides: [usize; 2],
    to: *mut f32,
    [rows, channels]: [usize; 2],
    lanes: usize,
) {
    // SAFETY: forwarded.
    unsafe {
        match elem {
            Elem::I8 => floats::<i8>(x.cast(), strides, to, rows, channels, lanes),
            Elem::U8 => floats::<u8>(x, strides, to, rows, channels, lanes),
            _ => floats::<f32>(x.cast(), strides, to, rows, channels, lanes),
        }
    }
}

by_isa! {
    /// [`to_floats`] of one type.
    ///
    /// # Safety
    /// As there.
    unsafe fn floats [T: Copy + Into<f32>] [T] (
        x: *const T, strides: [usize; 2], to: *mut f32, rows: usize, channels: usize, lanes: usize,
    ) {
        let [row_stride, lane_stride] = strides;
        for r in 0..rows {
            // SAFETY: row r of both sides.
            unsafe {
                let (x, to) = (x.add(r * row_stride), to.add(r * lanes));
                match lane_stride {
                    1 => for l in 0..channels { *to.add(l) = (*x.add(l)).into() },
                    _ => for l in 0..channels { *to.add(l) = (*x.add(l * lane_stride)).into() },
                }
            }
        }
    }
}
