//! Axes of a reduction: dropped, flipped, ordered and joined, and walked in linear order.

use smallvec::SmallVec;

use crate::Threads;

/// One loop: its length and the bytes one step moves in the source and in the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub len: usize,
    pub src: isize,
    pub dst: isize,
}

pub(crate) type Axes = SmallVec<[Axis; 6]>;

/// Axes longer than 1 with non-negative source strides (the pointers move to the new first elements), longest stride first,
/// neighbours joined where one stride continues the other. For loops whose order does not matter.
pub(crate) fn normalise(axes: &mut Axes, src: &mut *const u8, dst: &mut *mut u8) {
    axes.retain(|a| a.len != 1);
    for a in axes.iter_mut() {
        if a.src < 0 && a.len > 0 {
            let last = a.len as isize - 1;
            *src = src.wrapping_offset(a.src * last);
            *dst = dst.wrapping_offset(a.dst * last);
            (a.src, a.dst) = (-a.src, -a.dst);
        }
    }
    axes.sort_by_key(|a| std::cmp::Reverse(a.src));
    join(axes);
}

/// Joins neighbours where one stride continues the other, keeping the order.
pub(crate) fn join(axes: &mut Axes) {
    if matches!(axes[..], [] | [Axis { len: 2.., .. }]) {
        return;
    }
    let mut kept: Axes = SmallVec::new();
    for &a in axes.iter().filter(|a| a.len != 1) {
        match kept.last_mut() {
            Some(k) if k.src == a.src * a.len as isize && k.dst == a.dst * a.len as isize => {
                *k = Axis {
                    len: k.len * a.len,
                    ..a
                }
            }
            _ => kept.push(a),
        }
    }
    *axes = kept;
}

/// Number of index combinations.
pub(crate) fn count(axes: &[Axis]) -> usize {
    axes.iter().map(|a| a.len).product()
}

/// Byte offsets (source, target) of the combination with linear number `at`.
pub(crate) fn offsets(axes: &[Axis], mut at: usize) -> (isize, isize) {
    let (mut src, mut dst) = (0, 0);
    for a in axes.iter().rev() {
        if at == 0 {
            break;
        }
        let i = (at % a.len) as isize;
        at /= a.len;
        src += i * a.src;
        dst += i * a.dst;
    }
    (src, dst)
}

/// Walks the combinations of some axes in linear order, in runs along the last axis.
pub(crate) struct Walk<'a> {
    axes: &'a [Axis],
    index: SmallVec<[usize; 6]>,
    offset: isize,
}

impl<'a> Walk<'a> {
    pub fn new(axes: &'a [Axis], mut at: usize) -> Self {
        let mut index = SmallVec::from_elem(0, axes.len());
        let mut offset = 0;
        for (i, a) in index.iter_mut().zip(axes).rev() {
            if at == 0 {
                break;
            }
            *i = at % a.len;
            at /= a.len;
            offset += *i as isize * a.src;
        }
        Walk {
            axes,
            index,
            offset,
        }
    }

    /// Source offset of the present element and how many elements its run still has.
    #[inline]
    pub fn run(&self) -> (isize, usize) {
        match (self.axes.last(), self.index.last()) {
            (Some(a), Some(i)) => (self.offset, a.len - i),
            _ => (self.offset, 1),
        }
    }

    /// Moves on by `n`, at most to the end of the present run.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        let mut step = n;
        for (i, a) in self.index.iter_mut().zip(self.axes).rev() {
            *i += step;
            self.offset += step as isize * a.src;
            if *i < a.len {
                return;
            }
            self.offset -= *i as isize * a.src;
            *i = 0;
            step = 1;
        }
    }
}

/// Runs `task(i)` for `i < n`, in groups of neighbours, on as many threads as `work` (elements in all) is worth.
///
/// Which thread runs what never changes a result: tasks are fixed by the caller.
pub(crate) fn split(threads: &dyn Threads, n: usize, work: usize, task: &(dyn Fn(usize) + Sync)) {
    // About 10 µs of work: less is not worth waking anyone.
    const WORTH: usize = 32 * 1024;
    let groups = (work / WORTH).min(8 * threads.count()).min(n);
    if groups < 2 || threads.count() < 2 {
        return (0..n).for_each(task);
    }
    threads.run(groups, &|g| {
        (n * g / groups..n * (g + 1) / groups).for_each(task)
    });
}
