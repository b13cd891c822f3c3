//! Fourier transforms along one axis: lines of any stride are gathered in blocks, transformed by `rustfft`, and scattered to any stride.
//!
//! For several axes the caller calls once per axis. Plans are in `plan.rs`, real transforms in `real.rs`. A crate of its own,
//! because `rustfft` is generic: compiling its functions takes a fifth as long as compiling all kernels.

#![warn(missing_docs)]

mod plan;
mod real;
mod three;

use rustfft::num_complex::Complex;
use smallvec::SmallVec;

use self::plan::{Plan, Sample, plan};
use self::real::Factors;
use mxnet_kernels::threads::split;
use mxnet_kernels::{Threads, scratch};

/// Kinds of the input and output of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spectrum {
    /// `n` complex numbers to `n` complex numbers.
    Complex,
    /// `n` real numbers to `n` complex numbers.
    RealToFull,
    /// `n` real numbers to the first `n / 2 + 1` complex ones; the others are their conjugates.
    RealToHalf,
    /// The first `n / 2 + 1` of `n` complex numbers with that symmetry, to `n` real ones. Element 0 and, for even `n`, the last element are their own
    /// conjugates: their imaginary parts are ignored.
    HalfToReal,
}

/// Sign of the exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `exp(-2 pi i j k / n)`
    Forward,
    /// `exp(+2 pi i j k / n)`
    Inverse,
}

/// Precision of input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32 and c64.
    Single,
    /// f64 and c128.
    Double,
}

/// One transform along one axis: `scale * sum_k x[k] exp(-+2 pi i j k / n)`.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// Kinds of the input and output.
    pub spectrum: Spectrum,
    /// Sign of the exponent.
    pub direction: Direction,
    /// Precision of input and output.
    pub precision: Precision,
    /// Length, at least 1.
    pub n: usize,
    /// Factor of every result.
    pub scale: f64,
    /// Factor of the elements of a half spectrum that stand for two of the full one, be it input or output. Gradients need one other than 1.
    pub middle: f64,
}

/// One side of a transform. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The first element of the first line.
    pub ptr: *mut u8,
    /// Elements of a line. A source line is truncated or zero-padded to the transform's input length; a destination line has the output length.
    pub len: usize,
    /// Bytes from one element of a line to the next.
    pub stride: isize,
    /// Bytes from one line to the next, along each of the other axes.
    pub outer: &'a [isize],
}

impl Transform {
    /// Number of elements of a half spectrum.
    pub fn half_len(&self) -> usize {
        self.n / 2 + 1
    }

    /// Number of input and output elements of a line.
    fn lens(&self) -> (usize, usize) {
        match self.spectrum {
            Spectrum::Complex | Spectrum::RealToFull => (self.n, self.n),
            Spectrum::RealToHalf => (self.n, self.half_len()),
            Spectrum::HalfToReal => (self.half_len(), self.n),
        }
    }

    /// Bytes of an input and of an output element.
    fn sizes(&self) -> (isize, isize) {
        let real = match self.precision {
            Precision::Single => 4,
            Precision::Double => 8,
        };
        match self.spectrum {
            Spectrum::Complex => (2 * real, 2 * real),
            Spectrum::RealToFull | Spectrum::RealToHalf => (real, 2 * real),
            Spectrum::HalfToReal => (2 * real, real),
        }
    }
}

/// Transforms every line of `src` into the corresponding line of `dst`; `shape` is the shape of the other axes.
///
/// # Safety
/// 1. Every element of `src` can be read and every element of `dst` written, aligned for their type; lines of `dst` overlap neither each
///    other nor `src`. 2. `outer` has an entry for each axis of `shape` on both sides.
///
/// # Panics
/// If the working memory of a line cannot be allocated.
pub unsafe fn transform(
    threads: &dyn Threads,
    what: &Transform,
    shape: &[usize],
    src: &Lines,
    dst: &Lines,
) {
    debug_assert_eq!(dst.len, what.lens().1);
    match what.precision {
        // SAFETY: guaranteed by the caller.
        Precision::Single => unsafe { lines::<f32>(threads, what, shape, src, dst) },
        // SAFETY: guaranteed by the caller.
        Precision::Double => unsafe { lines::<f64>(threads, what, shape, src, dst) },
    }
}

/// Bytes of complex numbers in a block of lines: what fits in a core's private cache.
const BLOCK_BYTES: usize = 64 * 1024;
/// A thread keeps its working memory up to this size.
const MAX_CACHED_BYTES: usize = 1024 * 1024;
/// Minimum number of lines per block if the elements of a line are not adjacent: every fetched cache line is then used completely.
const MIN_STRIDED_LINES: usize = 8;

/// # Safety
/// Same as for [`transform`].
unsafe fn lines<T: Sample>(
    threads: &dyn Threads,
    what: &Transform,
    shape: &[usize],
    src: &Lines,
    dst: &Lines,
) {
    let count: usize = shape.iter().product();
    if count == 0 {
        return;
    }
    let plan = plan::<T>(what.spectrum, what.direction, what.n);
    let (src_size, dst_size) = what.sizes();
    let dense = src.stride == src_size && dst.stride == dst_size;
    let line_bytes = what.n * size_of::<Complex<T>>();
    let least = if dense { 1 } else { MIN_STRIDED_LINES };
    let width = (BLOCK_BYTES / line_bytes).clamp(least, 256).min(count);
    let blocks = count.div_ceil(width);
    let (from, to) = (src.ptr as usize, dst.ptr as usize);
    let (outer, src_stride, dst_stride) = ([src.outer, dst.outer], src.stride, dst.stride);
    let take = src.len.min(what.lens().0);
    // A complex element costs about as much as log2(n) / 2 additions.
    let work = count * what.n * (what.n.ilog2() as usize / 2 + 1);
    split(threads, blocks, work, &|block| {
        let first = block * width;
        let size = width.min(count - first);
        let (mut src_at, mut dst_at) = (Offsets::new(), Offsets::new());
        line_offsets(shape, &outer, first, size, |at| {
            src_at.push(at[0]);
            dst_at.push(at[1]);
        });
        let block = Block {
            what,
            plan: &plan,
            take,
            src: Side {
                ptr: (from as *mut u8).cast_const(),
                stride: src_stride,
                at: &src_at,
            },
            dst: Side {
                ptr: (to as *mut u8).cast_const(),
                stride: dst_stride,
                at: &dst_at,
            },
        };
        let len = block.workspace();
        if len * size_of::<T>() <= MAX_CACHED_BYTES {
            // SAFETY: guaranteed by the caller; the workspace has the requested length.
            scratch::with::<T, _>(len, |memory| unsafe { block.run(memory) });
            return;
        }
        let mut memory: Vec<T> = Vec::new();
        scratch::reserve(&mut memory, len);
        memory.resize(len, T::default());
        // SAFETY: as above.
        unsafe { block.run(memory.as_mut_ptr()) };
    });
}

type Offsets = SmallVec<[isize; 64]>;

/// Calls `each` with the byte offsets of the lines `first..first + size` on both sides, in C order.
fn line_offsets(
    shape: &[usize],
    strides: &[&[isize]; 2],
    first: usize,
    size: usize,
    mut each: impl FnMut([isize; 2]),
) {
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, shape.len());
    let mut rest = first;
    let mut at = [0_isize; 2];
    for axis in (0..shape.len()).rev() {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
        for (at, strides) in at.iter_mut().zip(strides) {
            *at += index[axis] as isize * strides[axis];
        }
    }
    for _ in 0..size {
        each(at);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            for (at, strides) in at.iter_mut().zip(strides) {
                *at += strides[axis];
            }
            if index[axis] < shape[axis] {
                break;
            }
            for (at, strides) in at.iter_mut().zip(strides) {
                *at -= shape[axis] as isize * strides[axis];
            }
            index[axis] = 0;
        }
    }
}

/// Lines of one side: their start addresses and the stride of their elements.
struct Side<'a> {
    ptr: *const u8,
    stride: isize,
    at: &'a [isize],
}

impl Side<'_> {
    /// Address of line `i`.
    fn line(&self, i: usize) -> *mut u8 {
        self.ptr.wrapping_offset(self.at[i]).cast_mut()
    }

    /// Copies `len` elements of every line to rows that are `pitch` elements apart.
    ///
    /// # Safety
    /// The lines can be read and the rows written; the two do not overlap.
    unsafe fn gather<E: Copy>(&self, len: usize, rows: *mut E, pitch: usize) {
        if self.stride == size_of::<E>() as isize {
            for i in 0..self.at.len() {
                // SAFETY: guaranteed by the caller; elements of a line are adjacent.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.line(i).cast(), rows.add(i * pitch), len)
                };
            }
            return;
        }
        for j in 0..len {
            let step = j as isize * self.stride;
            for (i, &at) in self.at.iter().enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    *rows.add(i * pitch + j) = *self.ptr.wrapping_offset(at + step).cast::<E>()
                };
            }
        }
    }

    /// Copies rows that are `pitch` elements apart to the `len` elements of every line.
    ///
    /// # Safety
    /// The rows can be read and the lines written; the two do not overlap.
    unsafe fn spread<E: Copy>(&self, len: usize, rows: *const E, pitch: usize) {
        for j in 0..len {
            let step = j as isize * self.stride;
            for (i, &at) in self.at.iter().enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    *self.ptr.wrapping_offset(at + step).cast_mut().cast::<E>() =
                        *rows.add(i * pitch + j)
                };
            }
        }
    }
}

/// A block of lines and the transform that is applied to them.
struct Block<'a, T: Sample> {
    what: &'a Transform,
    plan: &'a Plan<T>,
    /// Number of source elements that the transform reads.
    take: usize,
    src: Side<'a>,
    dst: Side<'a>,
}

impl<T: Sample> Block<'_, T> {
    /// Elements of `T` between rows of the buffer: `n` complex numbers, or the input and output of a real transform, plus padding.
    ///
    /// Without the padding, rows whose distance is a large power of two would map to the same cache sets.
    fn pitch(&self) -> usize {
        let n = self.what.n;
        let len = match self.what.spectrum {
            Spectrum::Complex => 2 * n,
            _ => 2 * self.what.half_len() + n.next_multiple_of(2),
        };
        if (len * size_of::<T>()).is_multiple_of(512) {
            len + 128 / size_of::<T>()
        } else {
            len
        }
    }

    /// Whether the elements of a destination line are adjacent, so that the transform can run in place there.
    fn writes_adjacent(&self) -> bool {
        self.dst.stride == self.what.sizes().1
    }

    /// Number of lines in the buffer at a time. 0 if complex lines are transformed in the destination; 1 if reading several lines together gains
    /// nothing.
    fn rows(&self) -> usize {
        match (self.writes_adjacent(), self.what.spectrum) {
            (true, Spectrum::Complex) => 0,
            (true, _) if self.src.stride == self.what.sizes().0 => 1,
            _ => self.src.at.len(),
        }
    }

    /// Number of elements of `T` in the workspace of [`Block::run`].
    fn workspace(&self) -> usize {
        self.rows() * self.pitch() + 2 * self.plan.scratch_len()
    }

    /// # Safety
    /// Same as for [`transform`]; `memory` has [`Block::workspace`] initialised elements.
    unsafe fn run(&self, memory: *mut T) {
        let (rows, pitch) = (self.rows(), self.pitch());
        // SAFETY: the scratch follows the rows inside the workspace; a complex number is two elements with the same alignment.
        let scratch = unsafe {
            std::slice::from_raw_parts_mut(
                memory.add(rows * pitch).cast::<Complex<T>>(),
                self.plan.scratch_len(),
            )
        };
        if rows == 0 {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.complex_in_place(scratch) };
        }
        let all = self.src.at.len();
        for first in (0..all).step_by(rows) {
            let part = first..(first + rows).min(all);
            let part = Block {
                src: Side {
                    at: &self.src.at[part.clone()],
                    ..self.src
                },
                dst: Side {
                    at: &self.dst.at[part],
                    ..self.dst
                },
                ..*self
            };
            // SAFETY: guaranteed by the caller; the rows lie within the workspace.
            unsafe {
                match self.what.spectrum {
                    Spectrum::Complex => part.complex(memory, pitch, scratch),
                    Spectrum::HalfToReal => part.half_lines(memory, pitch, scratch),
                    Spectrum::RealToHalf | Spectrum::RealToFull => {
                        part.real_lines(memory, pitch, scratch)
                    }
                }
            }
        }
    }

    /// Factors of a real transform.
    fn factors(&self, conjugate: bool) -> Factors<T> {
        Factors {
            scale: T::of(self.what.scale),
            middle: T::of(self.what.middle),
            sign: T::of(if conjugate { -1.0 } else { 1.0 }),
        }
    }

    /// # Safety
    /// Same as for [`Block::run`]; elements of the destination's lines are adjacent.
    unsafe fn complex_in_place(&self, scratch: &mut [Complex<T>]) {
        let Plan::Complex(fft) = self.plan else {
            return;
        };
        let (n, count) = (self.what.n, self.dst.at.len());
        let bytes = (n * size_of::<Complex<T>>()) as isize;
        let mut first = 0;
        while first < count {
            // Consecutive lines that are contiguous are transformed by one call, because a call costs more than a short line.
            let next = (first + 1..count).find(|&i| self.dst.at[i] != self.dst.at[i - 1] + bytes);
            let next = next.unwrap_or(count);
            let lines = self.dst.line(first).cast::<Complex<T>>();
            let part = Side {
                at: &self.src.at[first..next],
                ..self.src
            };
            // SAFETY: guaranteed by the caller; every element of these lines is initialised before the slice is made.
            let lines = unsafe {
                part.gather(self.take, lines, n);
                if self.take < n {
                    for i in 0..next - first {
                        lines.add(i * n + self.take).write_bytes(0, n - self.take);
                    }
                }
                std::slice::from_raw_parts_mut(lines, (next - first) * n)
            };
            fft.process_with_scratch(lines, scratch);
            scaled(lines, T::of(self.what.scale));
            first = next;
        }
    }

    /// # Safety
    /// Same as for [`Block::run`]; the buffer holds all rows at once.
    unsafe fn complex(&self, rows: *mut T, pitch: usize, scratch: &mut [Complex<T>]) {
        let Plan::Complex(fft) = self.plan else {
            return;
        };
        let (n, rows, pitch) = (self.what.n, rows.cast::<Complex<T>>(), pitch / 2);
        // SAFETY: the rows have `pitch >= n` elements each.
        unsafe { self.src.gather(self.take, rows, pitch) };
        for i in 0..self.src.at.len() {
            // SAFETY: a row of the buffer, whose elements are initialised.
            let line = unsafe { std::slice::from_raw_parts_mut(rows.add(i * pitch), n) };
            line[self.take..].fill(Complex::default());
            fft.process_with_scratch(line, scratch);
            scaled(line, T::of(self.what.scale));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.dst.spread(n, rows, pitch) };
    }

    /// # Safety
    /// Same as for [`Block::complex`].
    unsafe fn real_lines(&self, rows: *mut T, pitch: usize, scratch: &mut [Complex<T>]) {
        let Plan::ToHalf(plan) = self.plan else {
            return;
        };
        let (n, half) = (self.what.n, self.what.half_len());
        let full = self.what.spectrum == Spectrum::RealToFull;
        let made = if full { n } else { half };
        let writes_adjacent = self.writes_adjacent();
        let conjugate = self.what.direction == Direction::Inverse;
        // A row holds the half spectrum, then the real numbers. A full spectrum needs the space of both.
        // SAFETY: rows have space for both.
        unsafe { self.src.gather(self.take, rows.add(2 * half), pitch) };
        for i in 0..self.src.at.len() {
            let row = rows.wrapping_add(i * pitch);
            let line = if writes_adjacent {
                self.dst.line(i).cast::<Complex<T>>()
            } else {
                row.cast()
            };
            // SAFETY: the real part of the row has `n` elements and does not overlap the spectrum, which precedes it or lies in the destination.
            let (real, line_half) = unsafe {
                let real = row.add(2 * half);
                real.add(self.take).write_bytes(0, n - self.take);
                (
                    std::slice::from_raw_parts_mut(real, n),
                    std::slice::from_raw_parts_mut(line, half),
                )
            };
            plan.to_half(real, line_half, self.factors(conjugate), scratch);
            if full {
                // SAFETY: a destination line, or a row, has space for `n` complex numbers; the real ones are not needed any more.
                let line = unsafe { std::slice::from_raw_parts_mut(line, n) };
                for k in half..n {
                    line[k] = line[n - k].conj();
                }
            }
        }
        if !writes_adjacent {
            // SAFETY: guaranteed by the caller.
            unsafe { self.dst.spread(made, rows.cast::<Complex<T>>(), pitch / 2) };
        }
    }

    /// # Safety
    /// Same as for [`Block::complex`].
    unsafe fn half_lines(&self, rows: *mut T, pitch: usize, scratch: &mut [Complex<T>]) {
        let Plan::ToReal(plan) = self.plan else {
            return;
        };
        let (n, half) = (self.what.n, self.what.half_len());
        let writes_adjacent = self.writes_adjacent();
        let conjugate = self.what.direction == Direction::Forward;
        // SAFETY: rows have space for the half spectrum, then the real numbers.
        unsafe {
            self.src
                .gather(self.take, rows.cast::<Complex<T>>(), pitch / 2)
        };
        for i in 0..self.src.at.len() {
            let row = rows.wrapping_add(i * pitch);
            let line = if writes_adjacent {
                self.dst.line(i).cast::<T>()
            } else {
                row.wrapping_add(2 * half)
            };
            // SAFETY: the spectrum is the front of the row; the real numbers follow it or lie in the destination.
            let (spectrum, line) = unsafe {
                let spectrum = row.cast::<Complex<T>>();
                spectrum.add(self.take).write_bytes(0, half - self.take);
                (
                    std::slice::from_raw_parts_mut(spectrum, half),
                    std::slice::from_raw_parts_mut(line, n),
                )
            };
            plan.to_real(spectrum, line, self.factors(conjugate), scratch);
        }
        if !writes_adjacent {
            // SAFETY: guaranteed by the caller.
            unsafe { self.dst.spread(n, rows.add(2 * half), pitch) };
        }
    }
}

fn scaled<T: Sample>(line: &mut [Complex<T>], scale: T) {
    if scale != T::of(1.0) {
        line.iter_mut().for_each(|x| *x = x.scale(scale));
    }
}

#[cfg(test)]
mod tests;
