//! Where elements are not zero.
#![allow(unsafe_code)]

use mxnet_engine::{Access, engine};
use mxnet_kernels::Elem;
use mxnet_kernels::cast::Cast;
use mxnet_kernels::index::nonzero as kernel;
use mxnet_kernels::reduce::Source;
use mxnet_tensor::{DType, DeviceKind};
use smallvec::SmallVec;

use crate::args::{Attrs, Param};
use crate::array::count_look;
use crate::error::Result;
use crate::interp::Flags;
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::opdef::{Bundle, Cpu, Cuda, Grad, Known, Onnx, OpDef, Probe, Short, Surface};
use crate::{Array, Outputs, cpu};

/// Positions of the elements that are not zero, one row an axis.
pub static NONZERO_MATRIX: OpDef = OpDef {
    name: "nonzero_matrix",
    params: &[Param::array("a")],
    doc: "int64 array of shape (ndim, count): column j has the position of the j-th element of `a`, in C order, that is not zero.",
    cpu: Cpu::Eager(
        |cx| {
            let x = cx.input(0);
            let tensor = x.tensor();
            let source = Source {
                ptr: tensor.data_ptr(),
                elem: elem(x.dtype()),
                shape: x.shape(),
                strides: &tensor.byte_strides(),
            };
            // SAFETY: the layout lies within its storage, and the elements are complete (the operator waited for them).
            let count = unsafe { kernel(&Pool, &source, &[]) };
            let out = Array::uninitialised(&[x.ndim(), count], DType::I64, x.device())?;
            let base: *mut i64 = out.tensor().data_ptr().cast();
            let rows: SmallVec<[*mut i64; 4]> = (0..x.ndim())
                .map(|i| base.wrapping_add(i * count))
                .collect();
            if !rows.is_empty() && count > 0 {
                // SAFETY: as above; every row has room for `count` integers, and `out` is known to nobody else.
                unsafe { kernel(&Pool, &source, &rows) };
            }
            Ok(Outputs::from_iter([out]))
        },
        Known::FromValues,
    ),
    cuda: Cuda::HostOnly,
    grad: Grad::Stop("positions are integers"),
    onnx: Onnx::Node {
        ty: "NonZero",
        since: 9,
    },
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f((2, 0))", "i((2, 3, 2), 2).T"])
        .against("lambda a: numpy.stack(numpy.nonzero(a))"),
    ..OpDef::DEFAULT
};

/// Positions of the elements that are not zero.
pub static NONZERO: OpDef = OpDef {
    name: "nonzero",
    surface: &[Surface::Np("nonzero"), Surface::Method("nonzero")],
    params: &[Param::array("a")],
    doc: "The positions of the elements that are not zero: a tuple with one int64 array for each axis, so that `a[nonzero(a)]` has these \
          elements, in C order.",
    returns: &[("tuple of ndarray", "int64, one array for each axis.")],
    example: "
        >>> x = np.array([[3, 0], [0, 5]])
        >>> np.nonzero(x)
        (array([0, 1]), array([0, 1]))
        >>> x[np.nonzero(x)]
        array([3, 5])
    ",
    cpu: Cpu::Composite(|cx| {
        let x = cx.input(0);
        if x.ndim() == 0 {
            return Err(cx
                .value_error("an array of 0 axes has no positions")
                .with_hint("use `np.atleast_1d(a)`"));
        }
        let matrix = positions(x)?;
        (0..x.ndim())
            .map(|i| {
                // Positions are recorded by nobody.
                let row = matrix.layout().select(0, i as isize)?;
                Ok(matrix.seen_as(row))
            })
            .collect()
    }),
    short: Short::Several(few),
    bundle: |_| Bundle::Tuple,
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f((2, 0))"]),
    ..OpDef::COMPOSITE
};

/// Positions, one row an element.
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
    cpu: Cpu::Composite(|cx| cx.done(positions(cx.input(0))?.transpose(None)?.contiguous()?)),
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f(())"]),
    ..OpDef::COMPOSITE
};

/// Flat positions.
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
    cpu: Cpu::Composite(|cx| {
        let x = cx.input(0);
        let places = positions(&x.reshape(&[x.len()])?)?;
        // Of shape (1, n).
        cx.done(places.reshape(&places.shape()[1..])?)
    }),
    probe: Probe::calls(&["i((2, 3), 2)", "b((4,))", "f(())"]),
    ..OpDef::COMPOSITE
};

/// The (ndim, count) matrix of positions of elements that are not zero.
pub(super) fn positions(x: &Array) -> Result<Array> {
    invoke1(&NONZERO_MATRIX, &[x], &Attrs::none())
}

/// The positions in a small array that is at hand. `None`: take the general way.
fn few(x: &Array) -> Result<Option<Outputs>> {
    if x.ndim() == 0
        || x.len() > cpu::FEW
        || x.is_weak()
        || x.device().kind() != DeviceKind::Cpu
        || !x.layout().is_contiguous()
        || !Flags::current().may_move()
    {
        return Ok(None);
    }
    count_look();
    let var = x.tensor().storage().var();
    let Some(hold) = engine().try_hold(var, Access::Read, x.len() as u64 + 1) else {
        return Ok(None);
    };
    let mut truths = [0_u8; cpu::FEW];
    let (first, n) = (x.tensor().data_ptr(), x.len());
    // SAFETY: so many dense elements, which `hold` grants to read, and room for as many truth values.
    unsafe { Cast::new(elem(x.dtype()), Elem::Bool).row(first, truths.as_mut_ptr(), n) };
    let truths = &truths[..n];
    let count = truths.iter().map(|&truth| usize::from(truth)).sum();
    if x.ndim() == 1 {
        let row = Array::uninitialised(&[count], DType::I64, x.device())?;
        let place = row.tensor().data_ptr().cast::<i64>();
        let true_ones = truths.iter().zip(0..).filter(|&(&truth, _)| truth != 0);
        for (next, (_, at)) in true_ones.enumerate() {
            // SAFETY: the row has room for `count` integers, as many as there are true values, and is known to nobody else.
            unsafe { place.add(next).write(at) };
        }
        drop(hold);
        return Ok(Some(Outputs::from_iter([row])));
    }
    let rows = (0..x.ndim()).map(|_| Array::uninitialised(&[count], DType::I64, x.device()));
    let rows: Outputs = rows.collect::<Result<_>>()?;
    let places = rows.iter().map(|row| row.tensor().data_ptr().cast());
    let places: SmallVec<[*mut i64; 4]> = places.collect();
    let mut at: SmallVec<[i64; 4]> = SmallVec::from_elem(0, x.ndim());
    let mut next = 0;
    for &truth in truths {
        if truth != 0 {
            for (place, &at) in places.iter().zip(&at) {
                // SAFETY: every row has room for `count` integers, as many as there are true values, and is known to nobody else.
                unsafe { place.add(next).write(at) };
            }
            next += 1;
        }
        for (at, &len) in at.iter_mut().zip(x.shape()).rev() {
            *at += 1;
            if *at < len as i64 {
                break;
            }
            *at = 0;
        }
    }
    drop(hold);
    Ok(Some(rows))
}
