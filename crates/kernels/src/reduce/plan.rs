//! Axes of a reduction: length-1 axes dropped, negative strides reversed, sorted, merged, and iterated in linear order.

use smallvec::SmallVec;

/// One loop: its length and its byte strides in source and target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub len: usize,
    pub src: isize,
    pub dst: isize,
}

pub(crate) type Axes = SmallVec<[Axis; 6]>;

/// Drops axes of length 1, makes source strides non-negative (the pointers move to the new first elements), sorts by descending stride and merges
/// contiguous neighbours. For loops whose order does not matter.
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

/// Merges contiguous neighbours, preserving the order.
pub(crate) fn join(axes: &mut Axes) {
    if matches!(axes[..], [] | [Axis { len: 2.., .. }]) {
        return;
    }
    let mut joined: Axes = SmallVec::new();
    for &a in axes.iter().filter(|a| a.len != 1) {
        match joined.last_mut() {
            Some(k) if k.src == a.src * a.len as isize && k.dst == a.dst * a.len as isize => {
                *k = Axis {
                    len: k.len * a.len,
                    ..a
                }
            }
            _ => joined.push(a),
        }
    }
    *axes = joined;
}

/// Number of iterations.
pub(crate) fn count(axes: &[Axis]) -> usize {
    axes.iter().map(|a| a.len).product()
}

/// Byte offsets (source, target) of iteration number `at`.
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

/// The outputs of a reduction, divided into units: parts of the innermost kept axis, of at most `width` outputs each.
pub(crate) struct Units<'a> {
    outer: &'a [Axis],
    inner: Axis,
    width: usize,
    pieces: usize,
}

impl<'a> Units<'a> {
    pub fn new(outer: &'a [Axis], inner: Axis, width: usize) -> Units<'a> {
        Units {
            outer,
            inner,
            width,
            pieces: inner.len.div_ceil(width),
        }
    }

    /// Number of units.
    pub fn count(&self) -> usize {
        count(self.outer) * self.pieces
    }

    /// Offsets of the first element and of the first output of a unit, and its number of outputs.
    pub fn locate(&self, unit: usize) -> (isize, isize, usize) {
        let (src, dst) = offsets(self.outer, unit / self.pieces);
        let first = unit % self.pieces * self.width;
        (
            src + first as isize * self.inner.src,
            dst + first as isize * self.inner.dst,
            self.width.min(self.inner.len - first),
        )
    }
}

/// Iterates over some axes in linear order, in runs along the last axis.
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

    /// Source offset of the current element, and the number of elements left in its run.
    #[inline]
    pub fn run(&self) -> (isize, usize) {
        match (self.axes.last(), self.index.last()) {
            (Some(a), Some(i)) => (self.offset, a.len - i),
            _ => (self.offset, 1),
        }
    }

    /// Advances by `n`, at most to the end of the current run.
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
