//! Positions of non-zero elements.
#![allow(unsafe_code)]

use mxnet_kernels::index::{Destinations, nonzero as kernel};
use mxnet_kernels::reduce::Source;
use mxnet_tensor::{DType, Layout, Source as ArraySource};

use crate::args::{Attrs, Param};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::opdef::{Bundle, Cpu, Grad, Known, OpDef, Probe, Surface};
use crate::{Array, Outputs};

/// Positions of the non-zero elements, one row for each axis.
pub static NONZERO_MATRIX: OpDef = OpDef {
    name: "nonzero_matrix",
    params: &[Param::array("a")],
    doc: "int64 array of shape (ndim, count): column j has the position of the j-th element of `a` that is not zero, in C order.",
    cpu: Cpu::Eager(
        |context| {
            let x = context.input(0);
            let mut outputs = Outputs::new();
            find(x, |count| {
                let out = Array::uninitialised(&[x.ndim(), count], DType::I64, x.device())?;
                let base: *mut i64 = out.tensor().data_ptr().cast();
                outputs.push(out);
                Ok((0..x.ndim())
                    .map(|i| base.wrapping_add(i * count))
                    .collect())
            })?;
            Ok(outputs)
        },
        Known::FromValues,
    ),
    grad: Grad::Stop("positions are integers"),
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f((2, 0))", "i((2, 3, 2), 2).T"])
        .against("lambda a: numpy.stack(numpy.nonzero(a))"),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// Positions of the non-zero elements, one array for each axis.
pub static NONZERO: OpDef = OpDef {
    name: "nonzero",
    surface: &[Surface::Np("nonzero"), Surface::Method("nonzero")],
    params: &[Param::array("a")],
    doc: "The positions of the elements that are not zero: a tuple with one int64 array for each axis, so that `a[nonzero(a)]` has these \
          elements, in C order.",
    returns: &[("tuple of ndarray", "int64, one array for each axis.")],
    raises: &[("ValueError", "If `a` is 0-d.")],
    example: "
        >>> x = np.array([[3, 0], [0, 5]])
        >>> np.nonzero(x)
        (array([0, 1]), array([0, 1]))
        >>> x[np.nonzero(x)]
        array([3, 5])
    ",
    cpu: Cpu::Eager(
        |context| {
            let x = context.input(0);
            if x.ndim() == 0 {
                return Err(context
                    .value_error("a 0-d array has no indices")
                    .with_hint("use `np.atleast_1d(a)`"));
            }
            let mut outputs = Outputs::new();
            find(x, |count| {
                let mut destinations = Destinations::new();
                for _ in x.shape() {
                    let elements = ArraySource::fresh(count, DType::I64, x.device())?;
                    destinations.push(elements.storage().ptr().cast());
                    Array::push_dense(&mut outputs, elements, &Layout::contiguous(&[count]));
                }
                Ok(destinations)
            })?;
            Ok(outputs)
        },
        Known::FromValues,
    ),
    grad: Grad::Stop("positions are integers"),
    bundle: |_| Bundle::Tuple,
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f((2, 0))"]),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// Positions of the non-zero elements, one row for each element.
pub static ARGWHERE: OpDef = OpDef {
    name: "argwhere",
    surface: &[Surface::Np("argwhere"), Surface::Npx("nonzero")],
    params: &[Param::array("a")],
    doc: "The positions of the elements that are not zero, as the rows of an int64 array of shape (count, ndim).",
    returns: &[("ndarray", "int64, of shape (count, ndim).")],
    example: "
        >>> np.argwhere([[3, 0], [0, 5]])
        array([[0, 0],
               [1, 1]])
    ",
    cpu: Cpu::Composite(|context| {
        context.done(positions(context.input(0))?.transpose(None)?.contiguous()?)
    }),
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f(())"]),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// Flat positions of the non-zero elements.
pub static FLATNONZERO: OpDef = OpDef {
    name: "flatnonzero",
    surface: &[Surface::Np("flatnonzero")],
    params: &[Param::array("a")],
    doc: "The positions, in the flattened array, of the elements that are not zero.",
    returns: &[("ndarray", "int64, one axis.")],
    example: "
        >>> np.flatnonzero([[3, 0], [0, 5]])
        array([0, 3])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        let destinations = positions(&x.reshape(&[x.len()])?)?;
        // (1, n) -> (n,)
        context.done(destinations.reshape(&destinations.shape()[1..])?)
    }),
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f(())"]),
    positions: &[0],
    ..OpDef::COMPOSITE
};

/// The (ndim, count) matrix of positions of the non-zero elements.
pub(super) fn positions(x: &Array) -> Result<Array> {
    invoke1(&NONZERO_MATRIX, &[x], &Attrs::none())
}

/// Writes the positions of the non-zero elements to the memory that `destinations` returns for a given count.
fn find(x: &Array, destinations: impl FnOnce(usize) -> Result<Destinations>) -> Result<()> {
    let tensor = x.tensor();
    let source = Source {
        ptr: tensor.data_ptr(),
        elem: elem(x.dtype()),
        shape: x.shape(),
        strides: &tensor.byte_strides(),
    };
    // SAFETY: 1. the layout lies within its storage, and the elements are complete (the operator waited for them). 2. both callers allocate `count`
    // integers for each axis, in memory that is not shared.
    unsafe { kernel(&Pool, &source, destinations) }.map(drop)
}
