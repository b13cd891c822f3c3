//! Fourier transforms of lines: gathered from any strides in blocks, transformed by `rustfft`, spread to any strides.
//!
//! Several axes are the caller's: one call an axis. Plans are in `fft/plan.rs`, real lines through complex ones in `fft/real.rs`.

mod plan;
mod real;
mod three;

use rustfft::num_complex::Complex;
use smallvec::SmallVec;

use self::plan::{Plan, Sample, plan};
use self::real::Factors;
use crate::reduce::plan::split;
use crate::{Threads, scratch};

/// Kinds of the input and output of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spectrum {
    /// `n` complex numbers to `n` complex numbers.
    Complex,
    /// `n` real numbers to `n` complex numbers.
    RealToFull,
    /// `n` real numbers to the first `n / 2 + 1` of the complex ones; the others are conjugates of these.
    RealToHalf,
    /// The first `n / 2 + 1` of `n` complex numbers with that symmetry to `n` real ones. The imaginary parts of those that are
    /// their own conjugates, the first and for an even `n` the last, are not looked at.
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

/// Width of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32 and c64.
    Single,
    /// f64 and c128.
    Double,
}

/// One transform along one axis: `scale` times the sum of numbers times exponentials.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// Kinds of input and output.
    pub spectrum: Spectrum,
    /// Sign of the exponent.
    pub direction: Direction,
    /// Width of the numbers.
    pub precision: Precision,
    /// Length, at least 1.
    pub n: usize,
    /// Factor of every result.
    pub scale: f64,
    /// Factor of the numbers of a half spectrum that stand for two, on whichever side it is. A gradient needs one other than 1.
    pub middle: f64,
}

/// One side of a transform. Strides are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The first element of the first line.
    pub ptr: *mut u8,
    /// Elements of a line: a source's is cut or continued with zeros to what the transform takes; a target's is what it makes.
    pub len: usize,
    /// From one element of a line to the next.
    pub stride: isize,
    /// From one line to the next, along each of the other axes.
    pub outer: &'a [isize],
}

impl Transform {
    /// Numbers that a half spectrum has.
    pub fn half_len(&self) -> usize {
        self.n / 2 + 1
    }

    /// Elements that go in and come out.
    fn lens(&self) -> (usize, usize) {
        match self.spectrum {
            Spectrum::Complex | Spectrum::RealToFull => (self.n, self.n),
            Spectrum::RealToHalf => (self.n, self.half_len()),
            Spectrum::HalfToReal => (self.half_len(), self.n),
        }
    }

    /// Bytes of an element that goes in and one that comes out.
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

/// Transforms every line of `src` to the line of `dst` at the same place; `shape` is that of the other axes.
///
/// # Safety
/// 1. Every element of `src` can be read and every element of `dst` written, aligned for their type; lines of `dst` overlap neither each
///    other nor `src`. 2. `outer` has an entry for each axis of `shape` on both sides.
///
/// # Panics
/// If there is no memory for the work on a line.
pub unsafe fn transform(
    threads: &dyn Threads,
    what: &Transform,
    shape: &[usize],
    src: &Lines,
    dst: &Lines,
) {
    debug_assert_eq!(dst.len, what.lens().1);
    match what.precision {
        // SAFETY: the caller's premises.
        Precision::Single => unsafe { lines::<f32>(threads, what, shape, src, dst) },
        // SAFETY: the caller's premises.
        Precision::Double => unsafe { lines::<f64>(threads, what, shape, src, dst) },
    }
}

/// Bytes of complex numbers in a block of lines: as many as share a core's cache.
const BLOCK_BYTES: usize = 64 * 1024;
/// Working memory up to which a thread keeps it.
const KEPT_BYTES: usize = 1024 * 1024;
/// Lines that a block has at least where the elements of one lie apart: a cache line of neighbours is then used whole.
const APART: usize = 8;

/// # Safety
/// As [`transform`].
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
    let least = if dense { 1 } else { APART };
    let width = (BLOCK_BYTES / line_bytes).clamp(least, 256).min(count);
    let blocks = count.div_ceil(width);
    let (from, to) = (src.ptr as usize, dst.ptr as usize);
    let (outer, src_stride, dst_stride) = ([src.outer, dst.outer], src.stride, dst.stride);
    let take = src.len.min(what.lens().0);
    // Measured: a complex element costs as much as log2(n) / 2 additions.
    let work = count * what.n * (what.n.ilog2() as usize / 2 + 1);
    split(threads, blocks, work, &|block| {
        let first = block * width;
        let size = width.min(count - first);
        let (mut src_at, mut dst_at) = (Places::new(), Places::new());
        places(shape, &outer, first, size, |at| {
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
        if len * size_of::<T>() <= KEPT_BYTES {
            // SAFETY: the caller's premises; the workspace has the length asked for.
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

type Places = SmallVec<[isize; 64]>;

/// Calls `each` with the byte offsets of the lines `first..first + size` on both sides, in C order.
fn places(
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

/// Lines of one side: where they start and how their elements follow.
struct Side<'a> {
    ptr: *const u8,
    stride: isize,
    at: &'a [isize],
}

impl Side<'_> {
    /// Line `i`.
    fn line(&self, i: usize) -> *mut u8 {
        self.ptr.wrapping_offset(self.at[i]).cast_mut()
    }

    /// Copies `len` elements of every line to rows that are `pitch` elements apart.
    ///
    /// # Safety
    /// The lines can be read, the rows written; the two are apart.
    unsafe fn gather<E: Copy>(&self, len: usize, rows: *mut E, pitch: usize) {
        if self.stride == size_of::<E>() as isize {
            for i in 0..self.at.len() {
                // SAFETY: the caller's; elements of a line are neighbours.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.line(i).cast(), rows.add(i * pitch), len)
                };
            }
            return;
        }
        for j in 0..len {
            let step = j as isize * self.stride;
            for (i, &at) in self.at.iter().enumerate() {
                // SAFETY: the caller's.
                unsafe {
                    *rows.add(i * pitch + j) = *self.ptr.wrapping_offset(at + step).cast::<E>()
                };
            }
        }
    }

    /// Copies rows that are `pitch` elements apart to the `len` elements of every line.
    ///
    /// # Safety
    /// The rows can be read, the lines written; the two are apart.
    unsafe fn spread<E: Copy>(&self, len: usize, rows: *const E, pitch: usize) {
        for j in 0..len {
            let step = j as isize * self.stride;
            for (i, &at) in self.at.iter().enumerate() {
                // SAFETY: the caller's.
                unsafe {
                    *self.ptr.wrapping_offset(at + step).cast_mut().cast::<E>() =
                        *rows.add(i * pitch + j)
                };
            }
        }
    }
}

/// Some lines and what is done to them.
struct Block<'a, T: Sample> {
    what: &'a Transform,
    plan: &'a Plan<T>,
    /// Elements that the source has of what the transform takes.
    take: usize,
    src: Side<'a>,
    dst: Side<'a>,
}

impl<T: Sample> Block<'_, T> {
    /// Elements of `T` from one row of the buffer to the next: room for `n` complex numbers, or for the two sides of a real transform.
    ///
    /// Rows whose distance is a large power of two would all lie in the same few sets of the cache, so they are moved apart.
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

    /// Whether elements of a line of the target are neighbours: it is then worked on in place.
    fn direct(&self) -> bool {
        self.dst.stride == self.what.sizes().1
    }

    /// Lines that are in the buffer at one time: none where complex ones are transformed in the target, one after the other where nothing
    /// is gained by reading several together.
    fn rows(&self) -> usize {
        match (self.direct(), self.what.spectrum) {
            (true, Spectrum::Complex) => 0,
            (true, _) if self.src.stride == self.what.sizes().0 => 1,
            _ => self.src.at.len(),
        }
    }

    /// Elements of `T` that [`Block::run`] works in.
    fn workspace(&self) -> usize {
        self.rows() * self.pitch() + 2 * self.plan.scratch_len()
    }

    /// # Safety
    /// The premises of [`transform`]; `memory` has [`Block::workspace`] initialised elements.
    unsafe fn run(&self, memory: *mut T) {
        let (rows, pitch) = (self.rows(), self.pitch());
        // SAFETY: the scratch lies behind the rows, within the workspace; a complex number is two elements and no more aligned.
        let scratch = unsafe {
            std::slice::from_raw_parts_mut(
                memory.add(rows * pitch).cast::<Complex<T>>(),
                self.plan.scratch_len(),
            )
        };
        if rows == 0 {
            // SAFETY: the caller's premises.
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
            // SAFETY: the caller's premises; the rows lie within the workspace.
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

    /// What a real transform multiplies by.
    fn factors(&self, conjugate: bool) -> Factors<T> {
        Factors {
            scale: T::of(self.what.scale),
            middle: T::of(self.what.middle),
            sign: T::of(if conjugate { -1.0 } else { 1.0 }),
        }
    }

    /// # Safety
    /// As [`Block::run`]; elements of the target's lines are neighbours.
    unsafe fn complex_in_place(&self, scratch: &mut [Complex<T>]) {
        let Plan::Complex(fft) = self.plan else {
            return;
        };
        let (n, count) = (self.what.n, self.dst.at.len());
        let bytes = (n * size_of::<Complex<T>>()) as isize;
        let mut first = 0;
        while first < count {
            // Lines that follow one another are one call: short ones would be mostly calls.
            let next = (first + 1..count).find(|&i| self.dst.at[i] != self.dst.at[i - 1] + bytes);
            let next = next.unwrap_or(count);
            let lines = self.dst.line(first).cast::<Complex<T>>();
            let part = Side {
                at: &self.src.at[first..next],
                ..self.src
            };
            // SAFETY: the caller's premises; every element of these lines is written before they are a slice.
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
    /// As [`Block::run`], for rows that the buffer holds all at once.
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
        // SAFETY: the caller's.
        unsafe { self.dst.spread(n, rows, pitch) };
    }

    /// # Safety
    /// As [`Block::complex`].
    unsafe fn real_lines(&self, rows: *mut T, pitch: usize, scratch: &mut [Complex<T>]) {
        let Plan::ToHalf(plan) = self.plan else {
            return;
        };
        let (n, half) = (self.what.n, self.what.half_len());
        let full = self.what.spectrum == Spectrum::RealToFull;
        let made = if full { n } else { half };
        let direct = self.direct();
        let conjugate = self.what.direction == Direction::Inverse;
        // A row: the half spectrum, then the real numbers. A full spectrum needs the room of both.
        // SAFETY: rows have room for both.
        unsafe { self.src.gather(self.take, rows.add(2 * half), pitch) };
        for i in 0..self.src.at.len() {
            let row = rows.wrapping_add(i * pitch);
            let line = if direct {
                self.dst.line(i).cast::<Complex<T>>()
            } else {
                row.cast()
            };
            // SAFETY: the real part of the row has `n` elements and does not overlap the spectrum, which is in front of it or elsewhere.
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
                // SAFETY: a line of the target, or a row, has room for `n` complex numbers; the real ones are not needed any more.
                let line = unsafe { std::slice::from_raw_parts_mut(line, n) };
                for k in half..n {
                    line[k] = line[n - k].conj();
                }
            }
        }
        if !direct {
            // SAFETY: the caller's.
            unsafe { self.dst.spread(made, rows.cast::<Complex<T>>(), pitch / 2) };
        }
    }

    /// # Safety
    /// As [`Block::complex`].
    unsafe fn half_lines(&self, rows: *mut T, pitch: usize, scratch: &mut [Complex<T>]) {
        let Plan::ToReal(plan) = self.plan else {
            return;
        };
        let (n, half) = (self.what.n, self.what.half_len());
        let direct = self.direct();
        let conjugate = self.what.direction == Direction::Forward;
        // SAFETY: rows have room for the half spectrum, then the real numbers.
        unsafe {
            self.src
                .gather(self.take, rows.cast::<Complex<T>>(), pitch / 2)
        };
        for i in 0..self.src.at.len() {
            let row = rows.wrapping_add(i * pitch);
            let line = if direct {
                self.dst.line(i).cast::<T>()
            } else {
                row.wrapping_add(2 * half)
            };
            // SAFETY: the spectrum is the front of the row; the real numbers lie behind it or elsewhere.
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
        if !direct {
            // SAFETY: the caller's.
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
