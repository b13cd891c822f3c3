//! Running sums within segments.

use super::{Segments, run};
use crate::real::Shared;
use crate::{Elem, Threads, scratch};

/// Element types of running sums.
trait Sum: Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! sum {
    ($($t:ty: $zero:literal, $plus:expr);*) => { $(
        impl Sum for $t {
            const ZERO: Self = $zero;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    )* };
}
sum! {
    f32: 0.0, |a, b| a + b;
    f64: 0.0, |a, b| a + b;
    i64: 0, i64::wrapping_add;
    u64: 0, u64::wrapping_add
}

/// `out[r]` is the sum of the rows of the segment of `r` up to `r`; from `r` on if `reverse`.
///
/// # Panics
/// If `elem` is none of `F32`, `F64`, `I64`, `U64`.
///
/// # Safety
/// The offsets passed [`super::check`]; `x` and `out` have `rows * inner` elements, dense, aligned and not overlapping.
pub unsafe fn cumsum(
    threads: &dyn Threads,
    g: &Segments,
    elem: Elem,
    reverse: bool,
    x: *const u8,
    out: *mut u8,
) {
    // SAFETY: same contract.
    unsafe {
        match elem {
            Elem::F32 => typed::<f32>(threads, g, reverse, x.cast(), out.cast()),
            Elem::F64 => typed::<f64>(threads, g, reverse, x.cast(), out.cast()),
            Elem::I64 => typed::<i64>(threads, g, reverse, x.cast(), out.cast()),
            Elem::U64 => typed::<u64>(threads, g, reverse, x.cast(), out.cast()),
            other => panic!("segments of {other:?} have no running sums"),
        }
    }
}

/// Each task sums its own rows. Then a task whose first rows continue a segment adds the total of the segment so far to them.
///
/// # Safety
/// Same as for [`cumsum`].
unsafe fn typed<T: Sum>(
    threads: &dyn Threads,
    g: &Segments,
    reverse: bool,
    x: *const T,
    out: *mut T,
) {
    let inner = g.inner;
    if inner == 0 {
        return;
    }
    let (x, out) = (Shared(x.cast_mut()), Shared(out));
    g.each_task(threads, &|_, rows| {
        g.pieces(rows, |_, piece| {
            let (start, n) = (piece.start * inner, piece.len() * inner);
            // SAFETY: rows of this task, of both arrays.
            let (x, out) = unsafe {
                (
                    std::slice::from_raw_parts(x.at(start).cast_const(), n),
                    std::slice::from_raw_parts_mut(out.at(start), n),
                )
            };
            within(x, inner, reverse, out);
        });
    });
    let (rows, step) = (g.rows(), g.task_rows());
    let tasks = rows.div_ceil(step);
    let range = |t: usize| t * step..((t + 1) * step).min(rows);
    // The rows of task `t` that continue a segment of the task summed before it.
    let continued = |t: usize| {
        let own = range(t);
        if reverse {
            let segment = g.range(g.of_row(own.end - 1));
            match segment.end > own.end {
                true => own.start.max(segment.start)..own.end,
                false => own.end..own.end,
            }
        } else {
            let segment = g.range(g.of_row(own.start));
            match segment.start < own.start {
                true => own.start..own.end.min(segment.end),
                false => own.start..own.start,
            }
        }
    };
    let mut carries = scratch::filled(tasks * inner, T::ZERO);
    for k in 1..tasks {
        let (t, before) = match reverse {
            true => (tasks - 1 - k, tasks - k),
            false => (k, k - 1),
        };
        if continued(t).is_empty() {
            continue;
        }
        let last = match reverse {
            true => range(before).start,
            false => range(before).end - 1,
        };
        let is_continued = continued(before).contains(&last);
        for j in 0..inner {
            // SAFETY: an element of the result, which no task writes now.
            let total = unsafe { *out.at(last * inner + j) };
            carries[t * inner + j] = match is_continued {
                true => total.plus(carries[before * inner + j]),
                false => total,
            };
        }
    }
    run(threads, tasks, &|t| {
        let more = continued(t);
        let carry = &carries[t * inner..(t + 1) * inner];
        for r in more {
            // SAFETY: a row of this task.
            let row = unsafe { std::slice::from_raw_parts_mut(out.at(r * inner), inner) };
            for (y, &c) in row.iter_mut().zip(carry) {
                *y = y.plus(c);
            }
        }
    });
}

/// Running sums of dense rows.
fn within<T: Sum>(x: &[T], inner: usize, reverse: bool, out: &mut [T]) {
    out.copy_from_slice(x);
    let n = out.len() / inner;
    for k in 1..n {
        // Row `r` is added to the sum of the one before it.
        let (r, before) = match reverse {
            true => (n - 1 - k, n - k),
            false => (k, k - 1),
        };
        for j in 0..inner {
            out[r * inner + j] = out[before * inner + j].plus(out[r * inner + j]);
        }
    }
}
