//! Loop axes of several strided operands: axes of length 1 are dropped, the others are sorted, reversed where strides are negative, and merged.

use smallvec::SmallVec;

/// Maximum number of operands of a loop: two outputs and four inputs.
pub(crate) const MAX_OPERANDS: usize = 6;

/// One axis: its length and every operand's byte stride along it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub len: usize,
    pub strides: [isize; MAX_OPERANDS],
}

/// The axes of a loop, outermost first. No axis has length 0 or 1, and none can be merged with its neighbour.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    pub axes: SmallVec<[Axis; 4]>,
    /// Bytes to add to each operand's pointer, because axes with a negative stride of the first operand are reversed.
    pub shift: [isize; MAX_OPERANDS],
    /// Number of elements; 0 if some axis is empty.
    pub len: usize,
}

impl Axes {
    /// Simplifies a loop over `shape` with the byte strides `strides` (one slice per operand, each `shape.len()` long).
    ///
    /// Axes are ordered by the first operand's strides; where those tie or are 0, by the next operand's.
    pub(crate) fn new(shape: &[usize], strides: &[&[isize]]) -> Axes {
        debug_assert!(
            strides.len() <= MAX_OPERANDS,
            "{} operands, at most {MAX_OPERANDS}",
            strides.len()
        );
        let count = strides.len();
        let mut out = Axes {
            axes: SmallVec::new(),
            shift: [0; MAX_OPERANDS],
            len: 1,
        };
        for (i, &len) in shape.iter().enumerate() {
            out.len *= len;
            if len == 1 {
                continue;
            }
            let mut axis = Axis {
                len,
                strides: [0; MAX_OPERANDS],
            };
            for (k, s) in strides.iter().enumerate() {
                axis.strides[k] = s[i];
            }
            if len > 0 && axis.strides[0] < 0 {
                for k in 0..count {
                    out.shift[k] += axis.strides[k] * (len as isize - 1);
                    axis.strides[k] = -axis.strides[k];
                }
            }
            out.axes.push(axis);
        }
        if out.len == 0 {
            out.axes.clear();
            return out;
        }
        sort(&mut out.axes, count);
        merge(&mut out.axes, count);
        out
    }
}

/// Whether `outer` must be nested inside `inner`. The first operand with different nonzero strides along the two decides.
fn belongs_inside(outer: &Axis, inner: &Axis, count: usize) -> bool {
    for k in 0..count {
        let (a, b) = (
            outer.strides[k].unsigned_abs(),
            inner.strides[k].unsigned_abs(),
        );
        if a != 0 && b != 0 && a != b {
            return a < b;
        }
    }
    false
}

/// Stable insertion sort, because arrays have few axes and those in C order need no moves.
fn sort(axes: &mut [Axis], count: usize) {
    for i in 1..axes.len() {
        let mut j = i;
        while j > 0 && belongs_inside(&axes[j - 1], &axes[j], count) {
            axes.swap(j - 1, j);
            j -= 1;
        }
    }
}

fn merge(axes: &mut SmallVec<[Axis; 4]>, count: usize) {
    if axes.len() < 2 {
        return;
    }
    let mut kept = 0;
    for i in 1..axes.len() {
        let inner = axes[i];
        let outer = axes[kept];
        if (0..count).all(|k| outer.strides[k] == inner.strides[k] * inner.len as isize) {
            axes[kept] = Axis {
                len: outer.len * inner.len,
                strides: inner.strides,
            };
        } else {
            kept += 1;
            axes[kept] = inner;
        }
    }
    axes.truncate(kept + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_operands_become_one_axis() {
        let a = Axes::new(&[2, 1, 3, 4], &[&[48, 48, 16, 4], &[24, 8, 8, 2]]);
        assert_eq!(a.axes.len(), 1);
        assert_eq!(
            (a.axes[0].len, a.axes[0].strides[0], a.axes[0].strides[1]),
            (24, 4, 2)
        );
    }

    #[test]
    fn fortran_order_is_walked_along_memory() {
        let a = Axes::new(&[3, 5], &[&[4, 12], &[4, 12]]);
        assert_eq!(a.axes.len(), 1);
        assert_eq!(a.axes[0].strides[0], 4);
    }

    #[test]
    fn broadcast_axes_are_not_merged() {
        let a = Axes::new(&[3, 5], &[&[20, 4], &[4, 0]]);
        assert_eq!(a.axes.len(), 2);
        assert_eq!((a.axes[1].len, a.axes[1].strides[1]), (5, 0));
    }

    #[test]
    fn negative_output_strides_are_reversed() {
        let a = Axes::new(&[4], &[&[-8], &[4]]);
        assert_eq!(a.shift[..2], [-24, 12]);
        assert_eq!(a.axes[0].strides[..2], [8, -4]);
    }

    #[test]
    fn empty_shapes_have_no_axes() {
        let a = Axes::new(&[4, 0, 3], &[&[0, 12, 4]]);
        assert_eq!((a.len, a.axes.len()), (0, 0));
    }
}
