//! Ones in a pattern: identities and triangles.

use std::ops::Range;

use mxnet_tensor::{Dims, Scalar, default_float};

use crate::args::{Param, ParamKind};
use crate::cpu;
use crate::cx::{CallCx, KernelCx};
use crate::error::Result;
use crate::opdef::{Cost, Cpu, Grad, Inferred, Onnx, OpDef, Probe, Surface, one_of};

/// What patterns have in common.
const PATTERN: OpDef = OpDef {
    about: &[
        ("N", "Number of rows."),
        ("M", "Number of columns; `N` for None."),
        ("k", "Diagonal: 0 the main one, positive ones above it."),
    ],
    returns: &[("ndarray", "A matrix.")],
    infer: matrix,
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(100),
    ..OpDef::DEFAULT
};

/// Ones on a diagonal.
pub static EYE: OpDef = OpDef {
    name: "eye",
    surface: &[Surface::Np("eye")],
    params: &[
        Param::required("N", ParamKind::Int),
        Param::optional("M", ParamKind::Int),
        Param::int("k", 0),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Matrix of shape (N, M) with ones on diagonal `k` (above the main one if positive), zeros elsewhere. `M` defaults to `N`.",
    example: "
        >>> np.eye(2)
        array([[1., 0.],
               [0., 1.]])
        >>> np.eye(2, 3, k=1)
        array([[0., 1., 0.],
               [0., 0., 1.]])
    ",
    cpu: Cpu::Kernel(|cx| ones(cx, cx.int("k"), at)),
    onnx: Onnx::Node {
        ty: "EyeLike",
        since: 9,
    },
    probe: Probe::calls(&["3", "2, 4", "3, 3, 1", "3, 4, -2", "0", "2, dtype='int32'"]),
    ..PATTERN
};

/// The identity matrix.
pub static IDENTITY: OpDef = OpDef {
    name: "identity",
    surface: &[Surface::Np("identity")],
    params: &[
        Param::required("N", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Matrix of shape (N, N) with ones on the main diagonal, zeros elsewhere.",
    example: "
        >>> np.identity(2)
        array([[1., 0.],
               [0., 1.]])
    ",
    cpu: Cpu::Kernel(|cx| ones(cx, 0, at)),
    probe: Probe::calls(&["3", "2, 'int64'"]),
    ..PATTERN
};

/// Ones at and below a diagonal.
pub static TRI: OpDef = OpDef {
    name: "tri",
    surface: &[Surface::Np("tri")],
    params: &[
        Param::required("N", ParamKind::Int),
        Param::optional("M", ParamKind::Int),
        Param::int("k", 0),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Matrix of shape (N, M) with ones at and below diagonal `k`, zeros above.",
    example: "
        >>> np.tri(3, dtype='int64')
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
        >>> np.tri(2, 3, k=1)
        array([[1., 1., 0.],
               [1., 1., 1.]])
    ",
    cpu: Cpu::Kernel(|cx| ones(cx, cx.int("k"), up_to)),
    probe: Probe::calls(&["3", "2, 4", "3, 3, -1", "3, 4, 1"]),
    ..PATTERN
};

fn matrix(cx: &CallCx) -> Result<Inferred> {
    let n = cx.int("N");
    let m = if cx.params.iter().any(|p| p.name == "M") {
        cx.opt_int("M").unwrap_or(n)
    } else {
        n
    };
    let shape: Dims = [n, m].iter().map(|&d| d.max(0) as usize).collect();
    one_of(shape, cx.dtype("dtype").unwrap_or_else(default_float))
}

/// Ones at the columns of row r that `stretch(r + k)` has, zeros elsewhere.
fn ones(cx: &KernelCx, k: i64, stretch: fn(i64) -> Range<i64>) -> Result<()> {
    let out = cx.output(0);
    let row = |row: usize| {
        let Range { start, end } = stretch((row as i64).saturating_add(k));
        start.max(0) as usize..end.max(0) as usize
    };
    cpu::fill(out, Scalar::I64(0), cx.threads);
    cpu::fill_stretches(out, Scalar::I64(1), row, cx.threads);
    Ok(())
}

/// The diagonal itself.
fn at(diagonal: i64) -> Range<i64> {
    diagonal..diagonal.saturating_add(1)
}

/// Up to the diagonal.
fn up_to(diagonal: i64) -> Range<i64> {
    0..diagonal.saturating_add(1)
}
