//! Coalesces the axes of strided operands for a launch, and passes them to kernels as a struct.

use smallvec::SmallVec;

/// Maximum number of axes in a launch: `MAX_AXES` of the prelude.
pub(super) const MAX_AXES: usize = 8;

/// Strides of the operands along one axis, in elements.
pub(super) type AxisStrides = SmallVec<[isize; 6]>;

/// One axis: its length, and its stride in every operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub len: usize,
    pub strides: AxisStrides,
}

/// Axes of a launch, outermost first. None has length 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axes(pub SmallVec<[Axis; 6]>);

/// Order in which elements are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    /// C order of the shape, for kernels that use the index of an element.
    COrder,
    /// Memory order of the first operands.
    MemoryOrder,
}

impl Axes {
    /// Axes with these lengths, and the strides of every operand.
    pub fn new<'a>(
        shape: &[usize],
        strides: impl Iterator<Item = &'a [isize]> + Clone,
        visit: Visit,
    ) -> Axes {
        let mut axes: SmallVec<[Axis; 6]> = (shape.iter().enumerate())
            .filter(|&(_, &len)| len != 1)
            .map(|(i, &len)| Axis {
                len,
                strides: strides.clone().map(|strides| strides[i]).collect(),
            })
            .collect();
        if visit == Visit::MemoryOrder {
            sort(&mut axes);
        }
        merge(&mut axes);
        Axes(axes)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.iter().map(|axis| axis.len).product()
    }

    /// Stride of operand `k` if there is only one axis; 0 for a single element.
    pub fn only_stride(&self, k: usize) -> Option<isize> {
        match &self.0[..] {
            [] => Some(0),
            [axis] => Some(axis.strides[k]),
            _ => None,
        }
    }

    /// The bytes of `Strided<N>` of the prelude, for operands `from..from + N`.
    ///
    /// # Panics
    /// If there are more than [`MAX_AXES`] axes.
    pub fn bytes(&self, operands: std::ops::Range<usize>) -> SmallVec<[u8; 512]> {
        assert!(
            self.0.len() <= MAX_AXES,
            "leading axes are walked on the host"
        );
        let padded = |f: &dyn Fn(&Axis) -> i64| -> [i64; MAX_AXES] {
            std::array::from_fn(|i| self.0.get(i).map_or(0, f))
        };
        let mut words: SmallVec<[i64; 64]> = SmallVec::new();
        words.extend(padded(&|axis| axis.len as i64));
        for k in operands {
            words.extend(padded(&|axis| axis.strides[k] as i64));
        }
        words.push(self.0.len() as i64);
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// Whether `outer` must be nested inside `inner`. The first operand with different nonzero strides along the two decides.
fn belongs_inside(outer: &Axis, inner: &Axis) -> bool {
    for (a, b) in outer.strides.iter().zip(&inner.strides) {
        let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
        if a != 0 && b != 0 && a != b {
            return a < b;
        }
    }
    false
}

/// Stable insertion sort, because arrays have few axes and those in C order need no moves.
fn sort(axes: &mut [Axis]) {
    for i in 1..axes.len() {
        let mut j = i;
        while j > 0 && belongs_inside(&axes[j - 1], &axes[j]) {
            axes.swap(j - 1, j);
            j -= 1;
        }
    }
}

/// Merges neighbouring axes that are contiguous in all operands.
fn merge(axes: &mut SmallVec<[Axis; 6]>) {
    let mut merged: SmallVec<[Axis; 6]> = SmallVec::new();
    for axis in axes.drain(..) {
        if let Some(outer) = merged.last_mut() {
            let mut pairs = outer.strides.iter().zip(&axis.strides);
            if pairs.all(|(a, b)| *a == *b * axis.len as isize) {
                outer.len *= axis.len;
                outer.strides = axis.strides;
                continue;
            }
        }
        merged.push(axis);
    }
    *axes = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(shape: &[usize], strides: &[&[isize]], visit: Visit) -> Vec<(usize, Vec<isize>)> {
        let axes = Axes::new(shape, strides.iter().copied(), visit);
        axes.0
            .iter()
            .map(|axis| (axis.len, axis.strides.to_vec()))
            .collect()
    }

    #[test]
    fn dense_operands_have_one_axis() {
        assert_eq!(
            axes(&[2, 3, 4], &[&[12, 4, 1], &[12, 4, 1]], Visit::COrder),
            [(24, vec![1, 1])]
        );
        // Fortran order is also contiguous.
        assert_eq!(
            axes(&[2, 3, 4], &[&[1, 2, 6], &[1, 2, 6]], Visit::MemoryOrder),
            [(24, vec![1, 1])]
        );
        assert_eq!(axes(&[1, 1], &[&[5, 7]], Visit::COrder), []);
    }

    #[test]
    fn broadcast_axes_are_not_merged() {
        assert_eq!(
            axes(&[2, 3, 4], &[&[12, 4, 1], &[0, 0, 1]], Visit::MemoryOrder),
            [(6, vec![4, 0]), (4, vec![1, 1])]
        );
    }

    #[test]
    fn structs_hold_lengths_then_strides_then_the_number_of_axes() {
        let axes = Axes::new(
            &[2, 4],
            [&[4_isize, 1][..], &[0, 1]].into_iter(),
            Visit::COrder,
        );
        let bytes = axes.bytes(1..2);
        let words: Vec<i64> = (bytes.chunks(8))
            .map(|word| i64::from_ne_bytes(word.try_into().expect("8 bytes")))
            .collect();
        assert_eq!(words, [2, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2]);
    }
}
