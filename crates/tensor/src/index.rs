//! Index expressions: `x[…]` is split into a view and the remaining index arrays, for gather or scatter, by NumPy's rules.

use smallvec::SmallVec;

use crate::error::{IndexError, ShapeError, TensorError};
use crate::layout::{Dims, Layout, MAX_NDIM, Strides, broadcast_shapes, checked_len};

/// One entry of an index expression `x[...]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexItem {
    /// An integer.
    Int(isize),
    /// `start:stop:step`.
    Slice {
        /// First element.
        start: Option<isize>,
        /// End, exclusive.
        stop: Option<isize>,
        /// Step; not 0.
        step: Option<isize>,
    },
    /// `None`: a new axis of length 1.
    NewAxis,
    /// `...`: stands for as many full slices as are missing.
    Ellipsis,
    /// An integer array (or list) of this shape; also a 0-d one.
    Array {
        /// Its shape.
        shape: Dims,
    },
    /// A boolean array of this shape. It indexes as many axes as it has (a 0-d mask none), and is equivalent to its nonzero indices: one array of
    /// shape `(count,)` per axis.
    Mask {
        /// Its shape.
        shape: Dims,
    },
}

impl IndexItem {
    /// `:`.
    pub const ALL: IndexItem = IndexItem::Slice {
        start: None,
        stop: None,
        step: None,
    };

    /// Number of axes of the array that the entry consumes; 0 for the ellipsis.
    pub fn num_axes(&self) -> usize {
        match self {
            IndexItem::Int(_) | IndexItem::Slice { .. } | IndexItem::Array { .. } => 1,
            IndexItem::Mask { shape } => shape.len(),
            IndexItem::NewAxis | IndexItem::Ellipsis => 0,
        }
    }
}

/// An index expression after its basic part has been applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The view by integers, slices, new axes and the ellipsis. Axes indexed by arrays are still whole.
    pub view: Layout,
    /// The index arrays to be applied to the view; `None` if the view is the result.
    pub advanced: Option<Advanced>,
}

/// The index arrays of an expression, to be applied by gather or scatter.
///
/// The result's axes are the view's axes that no array indexes, in order, with the axes of `shape` inserted before number `axis` of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The view's axes that are indexed, from first to last.
    pub indices: SmallVec<[AxisIndex; 4]>,
    /// The common shape of all index arrays after broadcasting; a mask counts as shape `(count,)`.
    pub shape: Dims,
    /// Position of the index arrays' axes in the result: that of the first one if the advanced entries (integers included) are adjacent, otherwise 0.
    pub axis: usize,
}

/// An indexed axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisIndex {
    /// Axis of the view.
    pub axis: usize,
    /// Number of the entry in the index expression.
    pub item: usize,
    /// For a mask, which of its nonzero arrays; 0 for integer arrays. For a 0-d mask the view has an axis of length 1, which is indexed by one 0 if
    /// the mask is true and by nothing if it is false.
    pub part: usize,
}

impl Indexed {
    /// Shape of the result.
    pub fn shape(&self) -> Dims {
        let Some(advanced) = &self.advanced else {
            return Dims::from_slice(self.view.shape());
        };
        let mut shape: Dims = advanced
            .kept_axes(self.view.ndim())
            .map(|axis| self.view.shape()[axis])
            .collect();
        shape.insert_from_slice(advanced.axis, &advanced.shape);
        shape
    }
}

impl Advanced {
    /// The view's axes that no array indexes, in order.
    pub fn kept_axes(&self, ndim: usize) -> impl Iterator<Item = usize> + '_ {
        (0..ndim).filter(|axis| self.indices.iter().all(|index| index.axis != *axis))
    }
}

impl Layout {
    /// Applies an index expression without masks, or whose masks were replaced by their nonzero arrays.
    ///
    /// # Errors
    ///
    /// As [`Layout::index_counted`].
    pub fn index(&self, items: &[IndexItem]) -> Result<Indexed, TensorError> {
        self.index_counted(items, &[])
    }

    /// Checks an index expression before masks are counted: its structure, and that masks have the sizes of the axes they index. Then count the masks
    /// and call [`Layout::index_counted`].
    ///
    /// # Errors
    ///
    /// `Index` for too many entries, two ellipses, or a mask of another size.
    pub fn check_masks(&self, items: &[IndexItem]) -> Result<(), TensorError> {
        let skipped = self.count_entries(items)?.skipped;
        let mut axis = 0;
        for item in items {
            match item {
                IndexItem::Mask { shape } => {
                    for (axis, (&size, &mask_size)) in self.shape()[axis..]
                        .iter()
                        .zip(shape)
                        .enumerate()
                        .map(|(i, sizes)| (axis + i, sizes))
                    {
                        if size != mask_size {
                            return Err(IndexError::MaskShape {
                                axis,
                                size,
                                mask_size,
                            }
                            .into());
                        }
                    }
                    axis += shape.len();
                }
                IndexItem::Ellipsis => axis += skipped,
                other => axis += other.num_axes(),
            }
        }
        Ok(())
    }

    /// Applies an index expression. `mask_counts` has the number of true elements of each mask, in order.
    ///
    /// The values of index arrays are not known here; gather and scatter check them against the view's sizes.
    ///
    /// # Errors
    ///
    /// `Index` for too many entries, two ellipses, an integer out of bounds, a zero step, a mask of another size than its axes, a wrong number of
    /// counts, or index arrays that do not broadcast; `Shape` if the result has too many axes or elements.
    pub fn index_counted(
        &self,
        items: &[IndexItem],
        mask_counts: &[usize],
    ) -> Result<Indexed, TensorError> {
        let counts = self.count_entries(items)?;
        if counts.masks > 0 {
            self.check_masks(items)?;
        }
        if counts.masks != mask_counts.len() {
            return Err(IndexError::MaskCounts {
                found: mask_counts.len(),
                required: counts.masks,
            }
            .into());
        }
        let has_arrays = counts.arrays + counts.masks > 0;

        let mut view = Builder {
            source: self,
            shape: Dims::new(),
            strides: Strides::new(),
            offset: self.offset(),
            axis: 0,
        };
        let mut indices = SmallVec::new();
        let mut run = AdvancedRun::Before;
        for (item, entry) in items.iter().enumerate() {
            if has_arrays {
                let kept = view.shape.len() - indices.len();
                let is_basic = matches!(
                    entry,
                    IndexItem::Slice { .. } | IndexItem::NewAxis | IndexItem::Ellipsis
                );
                run = run.after(!is_basic, kept);
            }
            let mut indexed =
                |axis: usize, part: usize| indices.push(AxisIndex { axis, item, part });
            match entry {
                IndexItem::Int(index) => view.select(*index)?,
                IndexItem::Slice { start, stop, step } => view.slice(*start, *stop, *step)?,
                IndexItem::NewAxis => view.new_axis(),
                IndexItem::Ellipsis => view.keep(counts.skipped),
                IndexItem::Array { .. } => {
                    indexed(view.shape.len(), 0);
                    view.keep(1);
                }
                IndexItem::Mask { shape } if shape.is_empty() => {
                    indexed(view.shape.len(), 0);
                    view.new_axis();
                }
                IndexItem::Mask { shape } => {
                    (0..shape.len()).for_each(|part| indexed(view.shape.len() + part, part));
                    view.keep(shape.len());
                }
            }
        }
        view.keep(self.ndim() - view.axis);
        if view.shape.len() > MAX_NDIM {
            return Err(IndexError::TooManyAxes {
                ndim: view.shape.len(),
            }
            .into());
        }
        let view = Layout::from_parts(view.shape, view.strides, view.offset);
        if !has_arrays {
            return Ok(Indexed {
                view,
                advanced: None,
            });
        }
        let axis = if let AdvancedRun::Inside(axis) | AdvancedRun::After(axis) = run {
            axis
        } else {
            0
        };
        let advanced = Advanced {
            indices,
            shape: index_shape(items, mask_counts)?,
            axis,
        };
        let indexed = Indexed {
            view,
            advanced: Some(advanced),
        };
        checked_len(&indexed.shape())?;
        Ok(indexed)
    }

    fn count_entries(&self, items: &[IndexItem]) -> Result<EntryCounts, TensorError> {
        let (mut axes, mut ellipses, mut arrays, mut masks) = (0, 0, 0, 0);
        for item in items {
            match item {
                IndexItem::Int(_) | IndexItem::Slice { .. } => axes += 1,
                IndexItem::NewAxis => {}
                IndexItem::Ellipsis => ellipses += 1,
                IndexItem::Array { .. } => (axes, arrays) = (axes + 1, arrays + 1),
                IndexItem::Mask { shape } => (axes, masks) = (axes + shape.len(), masks + 1),
            }
        }
        if ellipses > 1 {
            return Err(IndexError::Ellipses.into());
        }
        let Some(skipped) = self.ndim().checked_sub(axes) else {
            return Err(IndexError::TooMany {
                ndim: self.ndim(),
                found: axes,
            }
            .into());
        };
        Ok(EntryCounts {
            arrays,
            masks,
            skipped,
        })
    }
}

/// Counts of the entries of an index expression.
struct EntryCounts {
    arrays: usize,
    masks: usize,
    /// Number of axes that the ellipsis stands for; without an ellipsis, the number of missing entries.
    skipped: usize,
}

/// Position relative to the advanced entries, while walking along the entries. The number is the result axis where they begin. Any entry between two
/// advanced ones separates them, even an ellipsis that stands for no axis.
#[derive(Clone, Copy)]
enum AdvancedRun {
    Before,
    Inside(usize),
    After(usize),
    Separated,
}

impl AdvancedRun {
    fn after(self, is_advanced: bool, kept: usize) -> AdvancedRun {
        match (self, is_advanced) {
            (AdvancedRun::Before, true) => AdvancedRun::Inside(kept),
            (AdvancedRun::Inside(axis), false) => AdvancedRun::After(axis),
            (AdvancedRun::After(_), true) => AdvancedRun::Separated,
            (run, _) => run,
        }
    }
}

/// The view under construction. Axes of the source before `axis` are done.
struct Builder<'a> {
    source: &'a Layout,
    shape: Dims,
    strides: Strides,
    offset: usize,
    axis: usize,
}

impl Builder<'_> {
    fn keep(&mut self, count: usize) {
        let axes = self.axis..self.axis + count;
        self.shape
            .extend_from_slice(&self.source.shape()[axes.clone()]);
        self.strides.extend_from_slice(&self.source.strides()[axes]);
        self.axis += count;
    }

    fn new_axis(&mut self) {
        self.shape.push(1);
        self.strides.push(0);
    }

    fn select(&mut self, index: isize) -> Result<(), TensorError> {
        let axis = self.axis;
        let element = crate::layout::element(axis, index, self.source.shape()[axis])?;
        self.offset = self
            .offset
            .wrapping_add_signed((element as isize).wrapping_mul(self.source.strides()[axis]));
        self.axis += 1;
        Ok(())
    }

    fn slice(
        &mut self,
        start: Option<isize>,
        stop: Option<isize>,
        step: Option<isize>,
    ) -> Result<(), TensorError> {
        let axis = self.axis;
        let mut row = crate::layout::AxisView {
            size: self.source.shape()[axis],
            stride: self.source.strides()[axis],
            offset: self.offset,
        };
        row.slice(axis, start, stop, step)?;
        self.shape.push(row.size);
        self.strides.push(row.stride);
        self.offset = row.offset;
        self.axis += 1;
        Ok(())
    }
}

/// The common shape of all index arrays after broadcasting.
fn index_shape(items: &[IndexItem], mask_counts: &[usize]) -> Result<Dims, TensorError> {
    let mut counts = mask_counts.iter();
    let shapes: SmallVec<[Dims; 2]> = items
        .iter()
        .flat_map(|item| {
            // A mask of k axes is k arrays of one shape; only the error message needs to know the number.
            let (shape, times) = match item {
                IndexItem::Array { shape } => (shape.clone(), 1),
                IndexItem::Mask { shape } => (
                    counts.by_ref().take(1).copied().collect(),
                    shape.len().max(1),
                ),
                _ => (Dims::new(), 0),
            };
            std::iter::repeat_n(shape, times)
        })
        .collect();
    let borrowed: SmallVec<[&[usize]; 2]> = shapes.iter().map(|shape| &shape[..]).collect();
    broadcast_shapes(&borrowed).map_err(|error| match error {
        TensorError::Shape(ShapeError::Broadcast { shapes, .. }) => {
            IndexError::Broadcast { shapes }.into()
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    fn slice(start: isize, stop: isize, step: isize) -> IndexItem {
        IndexItem::Slice {
            start: Some(start),
            stop: Some(stop),
            step: Some(step),
        }
    }

    fn array(shape: &[usize]) -> IndexItem {
        IndexItem::Array {
            shape: Dims::from_slice(shape),
        }
    }

    fn mask(shape: &[usize]) -> IndexItem {
        IndexItem::Mask {
            shape: Dims::from_slice(shape),
        }
    }

    fn x() -> Layout {
        Layout::contiguous(&[2, 3, 4])
    }

    #[test]
    fn basic_entries_make_a_view() {
        let items = [
            IndexItem::Int(-1),
            IndexItem::NewAxis,
            IndexItem::Ellipsis,
            slice(-1, -9, -2),
        ];
        let indexed = x().index(&items).expect("a view");
        assert_eq!(indexed.advanced, None);
        assert_eq!(indexed.shape()[..], [1, 3, 2]);
        assert!(indexed.view.offsets().eq([15, 13, 19, 17, 23, 21]));
        assert_eq!(x().index(&[]).expect("all of it").view, x());
    }

    #[test]
    fn result_axes_follow_numpy() {
        // Shapes as NumPy gives them for an array of shape (2, 3, 4).
        use IndexItem::{Ellipsis, Int, NewAxis};
        const ALL: IndexItem = IndexItem::ALL;
        let cases: [(&[IndexItem], &[usize], &[usize]); 12] = [
            (&[array(&[1]), Ellipsis, array(&[1]), ALL], &[], &[1, 4]),
            (&[ALL, array(&[1]), Ellipsis, array(&[1])], &[], &[1, 2]),
            (&[array(&[2]), NewAxis, array(&[2])], &[], &[2, 1, 4]),
            (&[Int(0), ALL, array(&[2])], &[], &[2, 3]),
            (&[ALL, Int(0), array(&[2])], &[], &[2, 2]),
            (&[array(&[2]), ALL, Int(0)], &[], &[2, 3]),
            (&[ALL, mask(&[])], &[1], &[2, 1, 3, 4]),
            (&[mask(&[]), array(&[2])], &[1], &[2, 3, 4]),
            (&[array(&[2]), ALL, mask(&[])], &[1], &[2, 3, 4]),
            (&[mask(&[]), mask(&[])], &[1, 0], &[0, 2, 3, 4]),
            (&[ALL, NewAxis, array(&[2]), Int(0)], &[], &[2, 1, 2]),
            (&[ALL, mask(&[3, 4])], &[5], &[2, 5]),
        ];
        for (items, counts, shape) in cases {
            let indexed = x().index_counted(items, counts).expect("fits");
            assert_eq!(indexed.shape()[..], *shape, "{items:?}");
        }
    }

    #[test]
    fn masks_index_each_of_their_axes() {
        let items = [IndexItem::Int(1), mask(&[3, 4])];
        assert_eq!(x().check_masks(&items), Ok(()));
        let indexed = x().index_counted(&items, &[7]).expect("fits");
        let advanced = indexed.advanced.expect("a mask");
        let axes: Vec<_> = advanced
            .indices
            .iter()
            .map(|index| (index.axis, index.item, index.part))
            .collect();
        assert_eq!(axes, [(0, 1, 0), (1, 1, 1)]);
        assert_eq!((advanced.shape, advanced.axis), (smallvec![7], 0));
        assert_eq!(indexed.view.offset(), 12);
    }

    #[test]
    fn errors_name_axes_and_sizes() {
        use IndexItem::{Ellipsis, Int};
        const ALL: IndexItem = IndexItem::ALL;
        let cases: [(&[IndexItem], &[usize], IndexError); 9] = [
            (
                &[Int(0), Int(3)],
                &[],
                IndexError::OutOfBounds {
                    axis: 1,
                    index: 3,
                    size: 3,
                },
            ),
            (
                &[Ellipsis, Int(-5)],
                &[],
                IndexError::OutOfBounds {
                    axis: 2,
                    index: -5,
                    size: 4,
                },
            ),
            (
                &[Int(9), ALL, ALL, Ellipsis, ALL],
                &[],
                IndexError::TooMany { ndim: 3, found: 4 },
            ),
            (
                &[ALL, ALL, mask(&[4, 1])],
                &[1],
                IndexError::TooMany { ndim: 3, found: 4 },
            ),
            (&[Ellipsis, Ellipsis], &[], IndexError::Ellipses),
            (
                &[Ellipsis, slice(0, 1, 0)],
                &[],
                IndexError::ZeroStep { axis: 2 },
            ),
            (
                &[Ellipsis, mask(&[3, 5])],
                &[1],
                IndexError::MaskShape {
                    axis: 2,
                    size: 4,
                    mask_size: 5,
                },
            ),
            (
                &[mask(&[2])],
                &[],
                IndexError::MaskCounts {
                    found: 0,
                    required: 1,
                },
            ),
            (
                &[mask(&[2, 3]), array(&[3])],
                &[2],
                IndexError::Broadcast {
                    shapes: vec![[2].into(), [2].into(), [3].into()],
                },
            ),
        ];
        for (items, counts, error) in cases {
            assert_eq!(
                x().index_counted(items, counts),
                Err(error.into()),
                "{items:?}"
            );
        }
        let message = x()
            .check_masks(&[mask(&[3])])
            .expect_err("2 is not 3")
            .to_string();
        assert_eq!(
            message,
            "boolean index did not match indexed array along axis 0; size of axis is 2 but size of corresponding boolean axis is 3"
        );
        let error = x()
            .index(&vec![IndexItem::NewAxis; 62])
            .expect_err("65 axes");
        assert_eq!(error, IndexError::TooManyAxes { ndim: 65 }.into());
    }
}
