//! Memory order of new arrays, which follows that of the operands as in NumPy (`order='K'`).

use mxnet_tensor::{Dims, Layout, Strides};
use smallvec::SmallVec;

use crate::context::CallContext;
use crate::error::Result;

/// A permutation of axes.
pub type Axes = SmallVec<[usize; 4]>;

/// The axes from the slowest to the fastest, as the layouts of `ndim` axes have them. Where layouts disagree or have no preference, the earlier axis
/// is the slower one. `None` for C order.
pub fn axes_as(layouts: &[&Layout], ndim: usize) -> Option<Dims> {
    let step = |layout: &Layout, axis: usize| match layout.shape()[axis] {
        1 => 0,
        _ => layout.strides()[axis].unsigned_abs(),
    };
    let mut order = Dims::new();
    for axis in 0..ndim {
        let mut position = order.len();
        for (at, &other) in order.iter().enumerate().rev() {
            let mut pairs = layouts
                .iter()
                .map(|layout| (step(layout, other), step(layout, axis)))
                .filter(|&(a, b)| a != 0 && b != 0)
                .peekable();
            if pairs.peek().is_none() {
                continue;
            }
            if !pairs.all(|(a, b)| a < b) {
                break;
            }
            position = at;
        }
        order.insert(position, axis);
    }
    (!order.iter().enumerate().all(|(i, &axis)| i == axis)).then_some(order)
}

/// The common memory order of the operands, which all have the same number of axes.
pub fn as_inputs(context: &CallContext) -> Option<Dims> {
    let layouts: SmallVec<[&Layout; 8]> = context
        .inputs
        .iter()
        .flatten()
        .map(|x| x.layout())
        .collect();
    let ndim = layouts.first()?.ndim();
    match layouts.iter().all(|layout| layout.ndim() == ndim) {
        true => axes_as(&layouts, ndim),
        false => None,
    }
}

/// The dense layout with this order of axes, slowest first.
pub(crate) fn dense(order: &[usize], shape: &[usize]) -> Result<Layout> {
    let sizes: Dims = order.iter().map(|&axis| shape[axis]).collect();
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, shape.len());
    for (&axis, &stride) in order.iter().zip(Layout::contiguous(&sizes).strides()) {
        strides[axis] = stride;
    }
    Ok(Layout::strided(shape, &strides, 0)?)
}

/// The dense layout with the shape of `layout` and its order of axes.
#[inline]
pub fn contiguous_like(layout: &Layout) -> Result<Layout> {
    if layout.is_contiguous() {
        return Ok(Layout::contiguous(layout.shape()));
    }
    match axes_as(&[layout], layout.ndim()) {
        Some(order) => dense(&order, layout.shape()),
        None => Ok(Layout::contiguous(layout.shape())),
    }
}

/// The axes of a new array made from `layout` with `order=`, slowest first; `None` for C order.
pub fn axes_in_order(order: &str, layout: &Layout) -> Option<Axes> {
    let fortran = match order {
        "F" => true,
        "A" => layout.is_fortran() && !layout.is_contiguous(),
        "K" => {
            if layout.is_contiguous() {
                return None;
            }
            let mut axes: Axes = (0..layout.ndim()).collect();
            axes.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis].unsigned_abs()));
            return Some(axes);
        }
        _ => false,
    };
    fortran.then(|| (0..layout.ndim()).rev().collect())
}

/// The inverse permutation.
pub fn inverse(axes: &[usize]) -> SmallVec<[i64; 4]> {
    let mut inverse = SmallVec::from_elem(0, axes.len());
    for (to, &from) in axes.iter().enumerate() {
        inverse[from] = to as i64;
    }
    inverse
}

/// The dense layout with the same order of axes as `layout`; `None` if axes of `layout` overlap or are reversed.
pub(crate) fn dense_like(layout: &Layout) -> Option<Layout> {
    let mut axes: SmallVec<[usize; 4]> = (0..layout.ndim()).collect();
    axes.sort_by_key(|&a| std::cmp::Reverse(layout.strides()[a]));
    let mut strides = Strides::from_elem(0, layout.ndim());
    let mut step = 1_isize;
    for &axis in axes.iter().rev() {
        if layout.strides()[axis] <= 0 && layout.shape()[axis] > 1 {
            return None;
        }
        strides[axis] = step;
        step *= layout.shape()[axis].max(1) as isize;
    }
    Layout::strided(layout.shape(), &strides, 0).ok()
}

/// Whether the layout has this order; names as in [`Array::copy_in`].
pub fn has_order(layout: &Layout, order: &str) -> bool {
    match order {
        "C" => layout.is_contiguous(),
        "F" => layout.is_fortran(),
        "A" => layout.is_contiguous() || layout.is_fortran(),
        _ => true,
    }
}
