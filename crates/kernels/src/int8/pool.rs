//! Pooling of 8-bit integers with the channels last: maxima, and means rounded to the nearest integer, ties to even.

use crate::Threads;
use crate::conv::run;
use crate::pool::{Kind, Pool};
use crate::real::Shared;
use crate::reduce::by_isa;

/// Channels that are reduced together.
const LANES: usize = 64;
/// Elements read by a task, at least.
const TASK_READS: usize = 1 << 16;

/// Pools `planes` images (`p.planes` counts images, not channels) of `channels` channels, which are the last axis of data and results.
///
/// # Panics
/// If the kind is neither a maximum nor a mean.
///
/// # Safety
/// `x` and `y` are dense, of the sizes that the geometry says, `i8` if `is_signed` and `u8` otherwise, and do not overlap.
pub unsafe fn forward(
    threads: &dyn Threads,
    p: &Pool,
    channels: usize,
    is_signed: bool,
    x: *const u8,
    y: *mut u8,
) {
    assert!(
        !matches!(p.kind, Kind::Sum | Kind::Lp(_)),
        "sums and norms of 8-bit integers do not fit 8 bits"
    );
    let [od, oh, ow] = p.output;
    let rows = p.planes * od * oh;
    let taps: usize = p.kernel.iter().product();
    let per_row = (ow * channels * taps).max(1);
    let in_task = TASK_READS.div_ceil(per_row).max(1);
    let (x, y) = (Shared(x.cast_mut()), Shared(y));
    run(threads, rows.div_ceil(in_task), &|task| {
        for row in task * in_task..rows.min((task + 1) * in_task) {
            let at = [row / (od * oh), row / oh % od, row % oh];
            // SAFETY: a row of results, which belongs to this task.
            unsafe {
                let y = y.at(row * ow * channels);
                match is_signed {
                    true => pool_row::<i8>(p, channels, at, x.at(0).cast_const().cast(), y.cast()),
                    false => pool_row::<u8>(p, channels, at, x.at(0), y),
                }
            }
        }
    });
}

by_isa! {
    /// One row of results, `at` image, depth and height.
    ///
    /// # Safety
    /// `x` has all data, `y` the row.
    unsafe fn pool_row [T: Byte] [T] (p: &Pool, channels: usize, at: [usize; 3], x: *const T, y: *mut T) {
        let [image, z, r] = at;
        let [id, ih, iw] = p.input;
        let covered = |axis: usize, i: usize| {
            let (start, end) = p.span(axis, i);
            (start..end, p.count(axis, i))
        };
        let ((planes, deep), (rows, high)) = (covered(0, z), covered(1, r));
        for column in 0..p.output[2] {
            let (columns, wide) = covered(2, column);
            let inside = planes.len() * rows.len() * columns.len();
            let count = deep * high * wide;
            for c in (0..channels).step_by(LANES) {
                let len = LANES.min(channels - c);
                let mut acc = [if p.kind == Kind::Max { T::LEAST } else { 0 }; LANES];
                for i in planes.clone() {
                    for j in rows.clone() {
                        for k in columns.clone() {
                            let position = ((image * id + i) * ih + j) * iw + k;
                            // SAFETY: a position of the data.
                            let x = unsafe { std::slice::from_raw_parts(x.add(position * channels + c), len) };
                            match (p.kind, <&[T; LANES]>::try_from(x)) {
                                (Kind::Max, Ok(x)) => for l in 0..LANES { acc[l] = acc[l].max(x[l].into()) },
                                (_, Ok(x)) => for l in 0..LANES { acc[l] += x[l].into() },
                                (Kind::Max, _) => for l in 0..len { acc[l] = acc[l].max(x[l].into()) },
                                _ => for l in 0..len { acc[l] += x[l].into() },
                            }
                        }
                    }
                }
                // A window that covers no element has 0.
                if inside == 0 {
                    acc = [0; LANES];
                } else if p.kind != Kind::Max {
                    for a in &mut acc {
                        *a = (*a as f32 / count as f32).round_ties_even() as i32;
                    }
                }
                // SAFETY: the channels of a result.
                let y = unsafe { std::slice::from_raw_parts_mut(y.add(column * channels + c), len) };
                for (y, &a) in y.iter_mut().zip(&acc) {
                    *y = T::of(a);
                }
            }
        }
    }
}

/// The two types of 8-bit integers.
trait Byte: Copy + Into<i32> {
    /// The smallest number.
    const LEAST: i32;
    /// A number that fits.
    fn of(x: i32) -> Self;
}

impl Byte for i8 {
    const LEAST: i32 = i8::MIN as i32;
    #[inline(always)]
    fn of(x: i32) -> i8 {
        x as i8
    }
}

impl Byte for u8 {
    const LEAST: i32 = 0;
    #[inline(always)]
    fn of(x: i32) -> u8 {
        x as u8
    }
}
