//! Boolean masks to index arrays (`nonzero`) and to selected elements, and indices to one-hot rows.

use smallvec::SmallVec;

use super::with_size;
use crate::reduce::Source;
use crate::reduce::count_bytes;
use crate::reduce::kernel::truth_of;
use crate::reduce::plan::{Axes, Axis, Walk, count, join};
use crate::threads::split;
use crate::{Elem, Threads};

/// Elements per task.
const CHUNK: usize = 16 * 1024;
/// Elements whose truth values are loaded together.
const PIECE: usize = 1024;
/// Arrays with at most this many elements are read only once; longer ones are counted first, then read again.
const SINGLE_PASS_LEN: usize = 256;

/// Destinations of the results, one pointer per axis.
pub type Destinations = SmallVec<[*mut i64; 4]>;

/// Finds the nonzero elements of `src` in C order and returns their number. Calls `allocate` with that number; it returns the destinations: one per
/// axis, for the index along that axis; one only, with a `shape` of one axis, for flat positions; or none, to only count.
///
/// # Errors
/// The error that `allocate` returns.
///
/// # Safety
/// Every element of `src` can be read; each destination has room for as many `i64` as there are results.
pub unsafe fn nonzero<E>(
    threads: &dyn Threads,
    src: &Source,
    allocate: impl FnOnce(usize) -> Result<Destinations, E>,
) -> Result<usize, E> {
    let mut axes: Axes = src
        .shape
        .iter()
        .zip(src.strides)
        .map(|(&len, &src)| Axis { len, src, dst: 0 })
        .collect();
    let n = count(&axes);
    join(&mut axes);
    let load = truth_of(src.elem);
    let stride = axes.last().map_or(src.elem.size() as isize, |a| a.src);
    let from = src.ptr as usize;
    // Calls `each` with the truth values of elements `start..end`, in pieces of the length of `truths`.
    let pieces =
        |(mut at, end): (usize, usize), truths: &mut [u8], each: &mut dyn FnMut(usize, &[u8])| {
            let mut walk = Walk::new(&axes, at);
            while at < end {
                let mut filled = 0;
                while filled < truths.len().min(end - at) {
                    let (offset, left) = walk.run();
                    let m = left.min(truths.len().min(end - at) - filled);
                    // SAFETY: the run lies inside the source, and `m` values fit.
                    unsafe {
                        load(
                            (from as *const u8).offset(offset),
                            stride,
                            m,
                            truths.as_mut_ptr().add(filled),
                        )
                    };
                    walk.advance(m);
                    filled += m;
                }
                each(at, &truths[..filled]);
                at += filled;
            }
        };
    if n <= SINGLE_PASS_LEN {
        // One pass finds all, without allocating.
        let (mut found, mut total) = ([0_u16; SINGLE_PASS_LEN + 8], 0);
        let mut truths = [0; SINGLE_PASS_LEN];
        if axes.len() < 2 {
            // SAFETY: the elements of one axis; `truths` has room for all of their truth values.
            unsafe { load(src.ptr, stride, n, truths.as_mut_ptr()) };
            total = true_positions(&truths[..n], &mut found);
        } else {
            pieces((0, n), &mut truths, &mut |_, truths| {
                total = true_positions(truths, &mut found)
            });
        }
        // SAFETY: the caller's destinations have room for this number.
        unsafe { write_positions(&allocate(total)?, src.shape, 0, 0, &found[..total]) };
        return Ok(total);
    }
    let chunks = n.div_ceil(CHUNK);
    let ends = |chunk: usize| (chunk * CHUNK, n.min((chunk + 1) * CHUNK));
    let mut starts = crate::scratch::filled(chunks, 0_usize);
    let base = starts.as_mut_ptr() as usize;
    split(threads, chunks, n, &|chunk| {
        let mut found = 0;
        pieces(ends(chunk), &mut [0; PIECE], &mut |_, truths| {
            found += truths.iter().map(|&t| t as u32).sum::<u32>() as usize
        });
        // SAFETY: every task writes its own entry.
        unsafe { *(base as *mut usize).add(chunk) = found };
    });
    let mut total = 0;
    for start in &mut starts {
        total += std::mem::replace(start, total);
    }
    let destinations = SharedDestinations(allocate(total)?);
    if destinations.0.is_empty() || total == 0 {
        return Ok(total);
    }
    split(threads, chunks, n, &|chunk| {
        let destinations = &destinations;
        let mut to = starts[chunk];
        let mut found = [0_u16; PIECE + 8];
        pieces(ends(chunk), &mut [0; PIECE], &mut |at, truths| {
            let count = true_positions(truths, &mut found);
            // SAFETY: results `to..to + count` are this piece's; the destinations have room for all.
            unsafe { write_positions(&destinations.0, src.shape, to, at, &found[..count]) };
            to += count;
        });
    });
    Ok(total)
}

/// Destinations shared by several threads; each writes its own results.
struct SharedDestinations(Destinations);

// SAFETY: no two tasks write one result.
unsafe impl Sync for SharedDestinations {}

/// For every byte, the positions of its one bits, lowest first, padded with zeros.
const BITS: [[u16; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Writes the positions of the ones in `truths` (0 or 1 each) to the start of `found` and returns their number.
fn true_positions(truths: &[u8], found: &mut [u16]) -> usize {
    assert!(truths.len() + 8 <= found.len());
    let (words, rest) = truths.as_chunks::<8>();
    let mut count = 0;
    for (k, word) in words.iter().enumerate() {
        // The product collects the lowest bits of eight bytes in its highest byte. Always writes eight positions, however many are valid.
        let byte = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let bits = &BITS[byte as usize];
        // SAFETY: at most `8 * k` were found before, and `found` is eight longer than a piece.
        let to = unsafe { found.get_unchecked_mut(count..count + 8) };
        for (to, bit) in to.iter_mut().zip(bits) {
            *to = 8 * k as u16 + bit;
        }
        count += byte.count_ones() as usize;
    }
    for (i, &truth) in rest.iter().enumerate() {
        found[count] = (8 * words.len() + i) as u16;
        count += truth as usize;
    }
    count
}

/// Writes the multi-dimensional indices of the flat positions `at + found[0]`, `at + found[1]`, ... in `shape`, one target per axis, from result `to`
/// on.
///
/// # Safety
/// Every target has room for these results; the elements exist.
unsafe fn write_positions(
    targets: &[*mut i64],
    shape: &[usize],
    to: usize,
    at: usize,
    found: &[u16],
) {
    let (Some((&last, targets)), Some((&len, shape))) = (targets.split_last(), shape.split_last())
    else {
        return;
    };
    if targets.is_empty() {
        for (i, &step) in found.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { *last.add(to + i) = (at + step as usize) as i64 };
        }
        return;
    }
    // The row along the last axis that contains `position`, and its start. Positions ascend, so the row only moves forward.
    let (mut row, mut start) = (at / len.max(1), at / len.max(1) * len);
    for (i, &step) in found.iter().enumerate() {
        let position = at + step as usize;
        if position - start >= len {
            row = position / len;
            start = row * len;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { *last.add(to + i) = (position - start) as i64 };
        let mut rest = row;
        for (k, (&target, &len)) in targets.iter().zip(shape).enumerate().rev() {
            // The first axis takes the remaining quotient.
            let index = if k == 0 { rest } else { rest % len };
            // SAFETY: as above.
            unsafe { *target.add(to + i) = index as i64 };
            rest /= if k == 0 { 1 } else { len };
        }
    }
}

/// Number of true elements before each chunk of a dense mask, and in the whole mask.
///
/// # Safety
/// `mask` has `n` bytes.
pub unsafe fn mask_starts(threads: &dyn Threads, mask: *const u8, n: usize) -> (Vec<usize>, usize) {
    let mut starts = crate::scratch::filled(n.div_ceil(CHUNK), 0_usize);
    let (mask, base) = (mask as usize, starts.as_mut_ptr() as usize);
    split(threads, starts.len(), n / 4, &|chunk| {
        let at = chunk * CHUNK;
        // SAFETY: the chunk lies inside the mask; every task writes its own entry.
        unsafe {
            *(base as *mut usize).add(chunk) =
                count_bytes((mask as *const u8).add(at), CHUNK.min(n - at))
        };
    });
    let mut total = 0;
    for start in &mut starts {
        total += std::mem::replace(start, total);
    }
    (starts, total)
}

/// Copies the elements of `x` where a dense mask is true, in order. `starts` is the result of [`mask_starts`] for the mask.
///
/// # Safety
/// `mask` has `n` bytes and `x` has `n` elements of `size` bytes; `out` has room for one element per true one and overlaps neither.
pub unsafe fn select(
    threads: &dyn Threads,
    size: usize,
    n: usize,
    mask: *const u8,
    starts: &[usize],
    x: *const u8,
    out: *mut u8,
) {
    let (mask, x, out) = (mask as usize, x as usize, out as usize);
    split(threads, starts.len(), n, &|chunk| {
        let (at, end) = (chunk * CHUNK, n.min((chunk + 1) * CHUNK));
        with_size!(size, T => {
            let mut to = starts[chunk];
            let mut tile = [std::mem::MaybeUninit::<T>::uninit(); PIECE];
            for at in (at..end).step_by(PIECE) {
                // SAFETY: the piece lies inside the mask and `x`; its true elements fit in the tile and in their part of `out`.
                unsafe {
                    let mask = std::slice::from_raw_parts((mask as *const u8).add(at), PIECE.min(end - at));
                    let x = (x as *const T).add(at);
                    // Branch-free: every element is written, but the position advances only after a true one.
                    let mut count = 0;
                    for (i, &truth) in mask.iter().enumerate() {
                        tile.get_unchecked_mut(count).write(*x.add(i));
                        count += (truth != 0) as usize;
                    }
                    std::ptr::copy_nonoverlapping(tile.as_ptr().cast::<T>(), (out as *mut T).add(to), count);
                    to += count;
                }
            }
        });
    });
}

/// Writes `n` contiguous rows of `depth` elements: `on` at the row's index, if that is in `0..depth`, and `off` elsewhere.
///
/// # Safety
/// `indices` holds `n` integers; `on` and `off` hold one element of type `elem`; `out` has room for `n * depth` elements.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn one_hot(
    threads: &dyn Threads,
    elem: Elem,
    indices: *const i64,
    n: usize,
    depth: usize,
    on: *const u8,
    off: *const u8,
    out: *mut u8,
) {
    let (indices, on, off, out) = (indices as usize, on as usize, off as usize, out as usize);
    split(threads, n, n * depth, &|row| {
        with_size!(elem.size(), T => {
            // SAFETY: row `row` is inside the output, and tasks write disjoint rows.
            unsafe {
                let line = std::slice::from_raw_parts_mut((out as *mut T).add(row * depth), depth);
                line.fill(*(off as *const T));
                let index = *(indices as *const i64).add(row);
                if (index as u64) < depth as u64 {
                    line[index as usize] = *(on as *const T);
                }
            }
        });
    });
}
