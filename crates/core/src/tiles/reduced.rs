//! A chain whose last result is reduced: elements are computed in the order in which the reduction reads them, and are still in the cache then.

use mxnet_kernels::cast::Cast;
use mxnet_kernels::map::{InnerLoop, InnerLoops, Loops};
use mxnet_kernels::reduce::{
    ComputeRow, Computed, Reduce, Target, num_tasks_computed, reduce_computed,
};
use mxnet_kernels::{Elem, Threads, isa};
use mxnet_tensor::{DType, Dims, Strides, Tensor};
use smallvec::SmallVec;

use super::{Addresses, ArrayForm, Axis, BLOCK_LEN, Link, SERIAL_WORK, Slot, merged};
use crate::error::{Error, Result};
use crate::launch::{Pool, elem};

/// A reduction of the elements that a chain computes.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// What is computed of the elements.
    pub op: Reduce,
    /// For each axis of the chain's shape, whether it is reduced.
    pub axes: SmallVec<[bool; 8]>,
    /// Byte strides of the result along these axes; those along reduced ones are ignored.
    pub strides: SmallVec<[isize; 8]>,
    /// Element type of the result.
    pub out: Elem,
}

/// Byte strides of the result of a reduction along the axes of its operand, of which `reduced` are missing in the result (stride 0) or have length 1.
pub fn result_strides(reduced: &[bool], result: &[isize]) -> SmallVec<[isize; 8]> {
    let keeps_dims = result.len() == reduced.len();
    let mut left = result.iter().copied();
    let mut strides = SmallVec::new();
    for &is_reduced in reduced {
        strides.push(match (keeps_dims, is_reduced) {
            (false, true) => 0,
            _ => left.next().unwrap_or(0),
        });
    }
    strides
}

/// Whether a reduction converts its operand to the dtype of the result before it computes, as NumPy does.
pub fn converts_first(op: Reduce, operand: DType, result: DType) -> bool {
    matches!(op, Reduce::Sum | Reduce::Prod | Reduce::Mean)
        && operand.is_inexact()
        && !result.is_inexact()
}

/// Where an operand of a link is, while a run of elements along the innermost axis is computed.
#[derive(Clone, Copy, Debug)]
enum Position {
    /// In array `i`.
    Array(usize),
    /// In the scratch memory of the task, from this byte on.
    Scratch(usize),
    /// At the elements that are reduced.
    Reduced,
    /// A single value, number `i` of those that were converted before the run.
    Single(usize),
}

/// One operator of the chain, with its inner loop.
#[derive(Clone, Debug)]
struct RowLink {
    row: InnerLoop,
    params: SmallVec<[f64; 4]>,
    /// Results, then operands.
    operands: SmallVec<[Position; 4]>,
    strides: [isize; Loops::MAX_OPERANDS],
}

/// A single value of another type than its operator reads: the array, and the conversion.
type Single = (usize, Cast);

/// A chain and the reduction of its last result, prepared for arrays of known layouts and dtypes.
#[derive(Clone, Debug)]
pub struct ReducedTiles {
    links: Vec<RowLink>,
    singles: SmallVec<[Single; 4]>,
    num_arrays: usize,
    /// The axes, neighbours merged; the last one is innermost.
    axes: SmallVec<[Axis; 4]>,
    /// Number of elements that are computed by one call of each inner loop.
    block_len: usize,
    /// The array that gets the elements that are reduced, if they are results.
    stored: Option<usize>,
    elem: Elem,
    shape: Dims,
    cost: usize,
    reduction: Reduction,
}

/// Shortest innermost axis, for each run of which every inner loop is called.
const MIN_ROW: usize = 512;

/// Space for a converted number.
type Number = [u64; 2];

impl ReducedTiles {
    /// Prepares a chain over arrays of `shape` and the reduction of the result in `last`. `None` if the parts have to run one after the other: the
    /// loops need conversions or strides, the runs of elements are short, or the reduction has too few tasks for the threads.
    ///
    /// # Errors
    /// [`Error::Shape`] if an array does not broadcast to `shape`.
    pub fn new(
        shape: &[usize],
        arrays: &[ArrayForm],
        links: &[Link],
        last: Slot,
        reduction: Reduction,
    ) -> Result<Option<ReducedTiles>> {
        let mut strides: SmallVec<[Strides; 8]> = SmallVec::new();
        for array in arrays {
            let size = array.dtype.size() as isize;
            let layout = array.layout.broadcast_to(shape)?;
            strides.push(layout.strides().iter().map(|s| s * size).collect());
        }
        let axes = merged(shape, &strides);
        let Some(inner) = axes.last() else {
            return Ok(None);
        };
        if axes.len() > 1 && inner.len < MIN_ROW {
            return Ok(None);
        }
        let (stored, dtype) = match last {
            Slot::Array(i) => (Some(i), arrays[i].dtype),
            Slot::Block(_, dtype) => (None, dtype),
        };
        let mut widths: SmallVec<[usize; 8]> = SmallVec::new();
        for slot in (links.iter()).flat_map(|link| link.outputs.iter().chain(&link.inputs)) {
            if let Slot::Block(i, dtype) = *slot {
                widths.resize(widths.len().max(i + 1), 0);
                widths[i] = widths[i].max(dtype.size());
            }
        }
        let width: usize = widths.iter().sum();
        let block_len = (Computed::SCRATCH_BYTES / width.max(1)).min(BLOCK_LEN) / 64 * 64;
        if block_len == 0 {
            return Ok(None);
        }
        let mut starts: SmallVec<[usize; 8]> = SmallVec::new();
        let mut end = 0;
        for width in widths {
            starts.push(end);
            end += block_len * width;
        }
        let mut singles = SmallVec::new();
        let mut rows = Vec::with_capacity(links.len());
        for link in links {
            let locate = |slot: &Slot, native: Elem, singles: &mut SmallVec<[Single; 4]>| {
                let size = native.size() as isize;
                Some(match *slot {
                    slot if slot == last => {
                        (elem(dtype) == native).then_some((Position::Reduced, size))?
                    }
                    Slot::Block(i, dtype) => {
                        (elem(dtype) == native).then_some((Position::Scratch(starts[i]), size))?
                    }
                    Slot::Array(i) => {
                        let is_single = axes.iter().all(|axis| axis.strides[i] == 0);
                        let along = inner.strides[i];
                        match elem(arrays[i].dtype) == native {
                            true if along == 0 || along == size => (Position::Array(i), along),
                            false if is_single => {
                                singles.push((i, Cast::new(elem(arrays[i].dtype), native)));
                                (Position::Single(singles.len() - 1), 0)
                            }
                            _ => return None,
                        }
                    }
                })
            };
            match row_link(link, |slot, native| locate(slot, native, &mut singles)) {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        let tiles = ReducedTiles {
            links: rows,
            singles,
            num_arrays: arrays.len(),
            axes,
            block_len,
            stored,
            elem: elem(dtype),
            shape: shape.into(),
            cost: links.iter().map(|link| link.rows.cost as usize).sum(),
            reduction,
        };
        Ok(tiles.pays().then_some(tiles))
    }

    /// Whether the reduction takes computed elements, and has a task for each thread where more than one is useful.
    fn pays(&self) -> bool {
        let unused = |_, _, to: *mut u8, _: *mut u8| to.cast_const();
        let target = self.target(std::ptr::null_mut());
        let num_tasks = num_tasks_computed(
            self.reduction.op,
            &self.computed(&unused),
            &self.reduction.axes,
            &target,
        );
        let work = self.shape.iter().product::<usize>() * self.cost;
        match num_tasks {
            0 => false,
            _ => work < SERIAL_WORK || num_tasks >= Pool.count(),
        }
    }

    fn computed<'a>(&'a self, row: &'a ComputeRow<'a>) -> Computed<'a> {
        Computed {
            elem: self.elem,
            shape: &self.shape,
            cost: self.cost,
            row,
        }
    }

    fn target(&self, ptr: *mut u8) -> Target<'_> {
        Target {
            ptr,
            elem: self.reduction.out,
            strides: &self.reduction.strides,
        }
    }

    /// Runs the chain and the reduction over tensors with the layouts and dtypes they were prepared for: the result of the reduction, then the arrays
    /// of the chain. The caller must have access to them.
    ///
    /// # Errors
    /// [`Error::Internal`] if the number of tensors is not the one it was prepared for.
    pub fn run(&self, tensors: &[&Tensor]) -> Result<()> {
        let Some((result, arrays)) = tensors.split_first() else {
            return Err(wrong_number());
        };
        if arrays.len() != self.num_arrays {
            return Err(wrong_number());
        }
        let ptrs: SmallVec<[*mut u8; 8]> = arrays.iter().map(|x| x.data_ptr()).collect();
        let mut values: SmallVec<[Number; 4]> = SmallVec::from_elem([0; 2], self.singles.len());
        for (value, (i, cast)) in values.iter_mut().zip(&self.singles) {
            // SAFETY: the array has an element, since the chain has; `value` has room for one of any type.
            unsafe { cast.row(arrays[*i].data_ptr(), value.as_mut_ptr().cast(), 1) };
        }
        let addresses = Addresses(&ptrs);
        let values = &values;
        let row = |first: usize, n: usize, to: *mut u8, scratch: *mut u8| {
            let addresses = &addresses;
            // SAFETY: the reduction asks for elements of its shape; the tensors have the forms that the loops were prepared for, and the caller may
            // access them.
            unsafe { self.compute(first, n, [to, scratch], addresses.0, values) }
        };
        let target = self.target(result.data_ptr());
        let (op, axes) = (self.reduction.op, &self.reduction.axes);
        // SAFETY: 1. `num_tasks_computed` was asked when this was prepared. 2. the memory plan gives the result memory of its own.
        unsafe { reduce_computed(&Pool, op, &self.computed(&row), axes, &target) };
        Ok(())
    }

    /// Computes elements `first..first + n` in C order. Returns their address: in the array that stores them, or `to`.
    ///
    /// # Safety
    /// The elements exist, and `to` has room for them; `scratch` is the task's scratch memory; `ptrs` are the addresses of the arrays, `values` the
    /// converted single values.
    unsafe fn compute(
        &self,
        first: usize,
        n: usize,
        [to, scratch]: [*mut u8; 2],
        ptrs: &[*mut u8],
        values: &[Number],
    ) -> *const u8 {
        let size = self.elem.size();
        let reduced = match self.stored {
            Some(i) => ptrs[i].wrapping_add(first * size),
            None => to,
        };
        let (inner, outer) = match self.axes.split_last() {
            Some((inner, outer)) => (inner, outer),
            None => return reduced,
        };
        let mut bases: SmallVec<[*mut u8; 8]> = SmallVec::new();
        let (mut done, mut row, mut along) = (0, first / inner.len, first % inner.len);
        while done < n {
            bases.clear();
            bases.extend_from_slice(ptrs);
            let mut index = row;
            for axis in outer.iter().rev() {
                let at = index % axis.len;
                index /= axis.len;
                if at > 0 {
                    for (base, stride) in bases.iter_mut().zip(&axis.strides) {
                        *base = base.wrapping_offset(at as isize * stride);
                    }
                }
            }
            let end = (inner.len - along).min(n - done) + done;
            while done < end {
                let m = self.block_len.min(end - done);
                for link in &self.links {
                    let mut at = [std::ptr::null_mut(); Loops::MAX_OPERANDS];
                    for (ptr, position) in at.iter_mut().zip(&link.operands) {
                        *ptr = match *position {
                            Position::Array(i) => {
                                bases[i].wrapping_offset(along as isize * inner.strides[i])
                            }
                            Position::Scratch(start) => scratch.wrapping_add(start),
                            Position::Reduced => reduced.wrapping_add(done * size),
                            Position::Single(i) => values[i].as_ptr().cast::<u8>().cast_mut(),
                        };
                    }
                    // SAFETY: every operand is contiguous or a single value of the loop's type over `m` elements; scratch memory holds `block_len`.
                    unsafe {
                        (link.row)(at.as_ptr(), link.strides.as_ptr(), m, link.params.as_ptr());
                    }
                }
                done += m;
                along += m;
            }
            (row, along) = (row + 1, 0);
        }
        reduced
    }
}

/// The inner loop of a link, if `locate` finds each of its operands as the loop reads them.
fn row_link(
    link: &Link,
    mut locate: impl FnMut(&Slot, Elem) -> Option<(Position, isize)>,
) -> Option<RowLink> {
    let rows: &InnerLoops = link.rows;
    let mut found = RowLink {
        row: (rows.get)(isa::isa(), link.compute)?,
        params: link.params.clone(),
        operands: SmallVec::new(),
        strides: [0; Loops::MAX_OPERANDS],
    };
    let outputs = (link.outputs.iter()).map(|slot| (slot, rows.out_elem(link.compute)));
    let inputs =
        (link.inputs.iter().enumerate()).map(|(i, slot)| (slot, rows.in_elem(i, link.compute)));
    for (k, (slot, native)) in outputs.chain(inputs).enumerate() {
        let (position, stride) = locate(slot, native)?;
        found.operands.push(position);
        found.strides[k] = stride;
    }
    Some(found)
}

#[cold]
fn wrong_number() -> Error {
    Error::internal(
        "graph",
        "a chain with a reduction was given a wrong number of arrays",
    )
}
