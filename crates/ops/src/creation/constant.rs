//! Constant and uninitialised arrays.

use mxnet_tensor::{DType, Device, Dims, Kind, Scalar, default_float};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::memory_order::{axes_in_order, inverse};
use crate::mode::{Flags, current_device};
use crate::opdef::{Cost, Cpu, FpErrors, Grad, OpDef, Probe, Surface, ZeroDimResult, one_of};
use crate::types::{dtype_of_number, out_of_bounds};
use crate::{Array, Outputs, cpu};

/// Order of the axes in memory: C order, Fortran order, or that of the prototype array ("A": only if it is Fortran-contiguous).
const ORDERS: &[&str] = &["C", "F", "A", "K"];

/// Default fields for constants.
const CONSTANT: OpDef = OpDef {
    zero_dim: ZeroDimResult::Array,
    about: &[("shape", "Lengths of the axes.")],
    returns: &[("ndarray", "Of shape `shape`.")],
    raises: &[("ValueError", "If a length is negative.")],
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C", "F"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
        Param::optional_array("like").keyword(),
    ],
    infer: |context| {
        let like = context.opt(context.op.array_params().count() - 1);
        if like.is_some_and(Array::is_weak) {
            return Err(context.dtype_error("`like` must be an array, not a number"));
        }
        one_of(
            dims(context.op.name, context.ints("shape"))?,
            context.dtype("dtype").unwrap_or_else(default_float),
        )
    },
    order: Some(|context| {
        let ndim = context.ints("shape").len();
        (context.str("order") == "F").then(|| (0..ndim).rev().collect())
    }),
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(30),
    probe: Probe::calls(&[
        "(2, 3)",
        "()",
        "(0, 4)",
        "5",
        "(2,), 'int32'",
        "(2,), dtype='complex64'",
        "(2, 3), order='F'",
    ]),
    ..OpDef::DEFAULT
};

/// Zeros.
pub static ZEROS: OpDef = OpDef {
    name: "zeros",
    surface: &[Surface::Np("zeros")],
    doc: "Array of zeros. `dtype` defaults to the default float; `order='F'` means Fortran order. The array is made on `device`, else on \
          that of the array `like`.",
    example: "
        >>> np.zeros((2, 3))
        array([[0., 0., 0.],
               [0., 0., 0.]])
        >>> np.zeros(2, dtype='int64')
        array([0, 0])
    ",
    cpu: Cpu::Kernel(|_| Ok(())),
    zeroed: true,
    cost: Cost::PerKiB(0),
    ..CONSTANT
};

/// Ones.
pub static ONES: OpDef = OpDef {
    name: "ones",
    surface: &[Surface::Np("ones")],
    doc: "Array of ones. `dtype` defaults to the default float; `order='F'` means Fortran order. The array is made on `device`, else on \
          that of the array `like`.",
    example: "
        >>> np.ones((2, 2))
        array([[1., 1.],
               [1., 1.]])
        >>> np.ones(3, dtype=bool)
        array([ True,  True,  True])
    ",
    cpu: Cpu::Kernel(|context| {
        cpu::fill(context.output(0), Scalar::I64(1), context.threads);
        Ok(())
    }),
    ..CONSTANT
};

/// Undefined elements.
pub static EMPTY: OpDef = OpDef {
    name: "empty",
    surface: &[Surface::Np("empty")],
    doc: "Array with uninitialised elements. `dtype` defaults to the default float; `order='F'` means Fortran order. The array is made on `device`, else on that of the array `like`.",
    example: "
        >>> x = np.empty((2, 3))
        >>> x.shape
        (2, 3)
    ",
    cpu: Cpu::Kernel(|_| Ok(())),
    cost: Cost::PerKiB(0),
    ..CONSTANT
};

/// One value in every element.
pub static FULL: OpDef = OpDef {
    name: "full",
    surface: &[Surface::Np("full")],
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::array("fill_value").or_none(),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C", "F"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
        Param::optional_array("like").keyword(),
    ],
    doc: "Array filled with `fill_value`, a number or an array that broadcasts to `shape`. `dtype` defaults to that of the value; `order='F'` means Fortran order. The array is made on `device`, else on that of the array `like`.",
    about: &[
        (
            "fill_value",
            "The value, which broadcasts to `shape`; NaN for None.",
        ),
        ("shape", "Lengths of the axes."),
    ],
    raises: &[
        (
            "ValueError",
            "If a length is negative, or `fill_value` does not broadcast to `shape`.",
        ),
        (
            "TypeError",
            "If `fill_value` is None and `dtype` an integer.",
        ),
    ],
    example: "
        >>> np.full((2, 2), 7)
        array([[7, 7],
               [7, 7]])
        >>> np.full((2, 3), [1.5, 2.5, 3.5])
        array([[1.5, 2.5, 3.5],
               [1.5, 2.5, 3.5]])
    ",
    fp_errors: FpErrors::named("cast"),
    cpu: Cpu::Composite(|context| {
        let Some(value) = context.opt(0) else {
            return new(
                context,
                DType::F64,
                missing(context, context.dtype("dtype"))?,
            );
        };
        let natural = match value.number() {
            Some(number) => dtype_of_number(number),
            None => value.dtype(),
        };
        new(context, natural, Content::of(value))
    }),
    grad: Grad::Derived,
    cost: OpDef::COMPOSITE.cost,
    probe: Probe::calls(&[
        "(2, 3), 1.5",
        "(), 7",
        "(0, 4), 1",
        "3, True",
        "(2, 3), f((3,))",
        "(2, 3), 2, order='F'",
    ]),
    ..CONSTANT
};

/// Default fields for constants like another array.
const LIKE: OpDef = OpDef {
    zero_dim: ZeroDimResult::Array,
    about: &[
        (
            "a",
            "The array whose shape, dtype and memory order are used.",
        ),
        (
            "prototype",
            "The array whose shape, dtype and memory order are used.",
        ),
        (
            "fill_value",
            "The value, which broadcasts to the shape; NaN for None.",
        ),
        ("shape", "Another shape."),
    ],
    returns: &[(
        "ndarray",
        "Of `shape`; by default of the shape of the array.",
    )],
    raises: &[("ValueError", "If a length in `shape` is negative.")],
    params: &[
        Param::array("a"),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", ORDERS, "K"),
        Param::bool("subok", true),
        Param::optional("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    grad: Grad::Stop("it depends on the shape only"),
    probe: Probe::calls(&[
        "f((2, 3))",
        "i((2,), 5)",
        "f((2,)), 'int8'",
        "f((2, 3)), shape=(4,)",
        "f((2, 3)).T",
        "f((2, 3)), order='F'",
    ]),
    ..OpDef::COMPOSITE
};

/// Zeros like another array.
pub static ZEROS_LIKE: OpDef = OpDef {
    name: "zeros_like",
    surface: &[Surface::Np("zeros_like")],
    doc: "Zeros with the shape, dtype, device and memory order of `a`, unless others are given.",
    example: "
        >>> np.zeros_like(np.array([[1, 2], [3, 4]]))
        array([[0, 0],
               [0, 0]])
    ",
    cpu: Cpu::Composite(|context| constant_like(context, Content::Zeros)),
    ..LIKE
};

/// Ones like another array.
pub static ONES_LIKE: OpDef = OpDef {
    name: "ones_like",
    surface: &[Surface::Np("ones_like")],
    doc: "Ones with the shape, dtype, device and memory order of `a`, unless others are given.",
    example: "
        >>> np.ones_like(np.array([1.5, 2.5]))
        array([1., 1.])
    ",
    cpu: Cpu::Composite(|context| constant_like(context, Content::Number(Scalar::I64(1)))),
    ..LIKE
};

/// Undefined elements like another array.
pub static EMPTY_LIKE: OpDef = OpDef {
    name: "empty_like",
    surface: &[Surface::Np("empty_like")],
    params: &[
        Param::array("prototype"),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", ORDERS, "K"),
        Param::bool("subok", true),
        Param::optional("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Undefined elements with the shape, dtype, device and memory order of `prototype`, unless others are given.",
    about: &[
        (
            "prototype",
            "The array whose shape, dtype and memory order are used.",
        ),
        ("shape", "Another shape."),
    ],
    example: "
        >>> np.empty_like(np.zeros((2, 3))).shape
        (2, 3)
    ",
    cpu: Cpu::Composite(|context| constant_like(context, Content::Nothing)),
    ..LIKE
};

/// One value, like another array.
pub static FULL_LIKE: OpDef = OpDef {
    name: "full_like",
    surface: &[Surface::Np("full_like")],
    params: &[
        Param::array("a"),
        Param::array("fill_value").or_none(),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", ORDERS, "K"),
        Param::bool("subok", true),
        Param::optional("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "`fill_value`, a number or an array that broadcasts, with the shape, dtype, device and memory order of `a`, unless others are given.",
    about: &[
        (
            "fill_value",
            "The value, which broadcasts to the shape; NaN for None.",
        ),
        (
            "a",
            "The array whose shape, dtype and memory order are used.",
        ),
        ("shape", "Another shape."),
    ],
    raises: &[(
        "ValueError",
        "If a length in `shape` is negative, or `fill_value` does not broadcast.",
    )],
    example: "
        >>> np.full_like(np.array([1, 2, 3]), 9)
        array([9, 9, 9])
    ",
    fp_errors: FpErrors::named("cast"),
    cpu: Cpu::Composite(|context| match context.opt(1) {
        Some(value) => constant_like(context, Content::of(value)),
        None => {
            let dtype = context.dtype("dtype").unwrap_or(context.dtype_of(0));
            constant_like(context, missing(context, Some(dtype))?)
        }
    }),
    grad: Grad::Derived,
    probe: Probe::calls(&[
        "f((2, 3)), 2",
        "i((2,), 5), 3.7",
        "f((2,)), 1, shape=(2, 2)",
        "f((2, 3)), f((3,))",
    ]),
    ..LIKE
};

/// Zeros in C order. The public creation functions call it.
pub static ZEROED: OpDef = OpDef {
    name: "zeroed",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("dtype", ParamKind::DType),
        Param::required("device", ParamKind::Device),
    ],
    doc: "Zeros in C order.",
    cpu: Cpu::Kernel(|_| Ok(())),
    zeroed: true,
    cost: Cost::PerKiB(0),
    probe: Probe::calls(&[
        "(2, 3), 'float32', 'cpu(0)'",
        "(), 'int8', 'cpu(0)'",
        "(0, 4), 'float64', 'cpu(0)'",
    ])
    .against("lambda shape, dtype, device: np.zeros(shape, dtype)"),
    ..MADE
};

/// One value, or undefined elements, in C order. The public creation functions call it.
pub static FILLED: OpDef = OpDef {
    name: "filled",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("value", ParamKind::Scalar).or_none(),
        Param::required("dtype", ParamKind::DType),
        Param::required("device", ParamKind::Device),
    ],
    doc: "`value` everywhere, in C order; undefined elements for None.",
    cpu: Cpu::Kernel(|context| {
        if let Some(value) = context.scalar("value") {
            cpu::fill(context.output(0), value, context.threads);
        }
        Ok(())
    }),
    probe: Probe::calls(&[
        "(2, 3), 1.5, 'float32', 'cpu(0)'",
        "(), 7, 'int32', 'cpu(0)'",
        "(0, 4), 1, 'float64', 'cpu(0)'",
    ])
    .against("lambda shape, value, dtype, device: np.full(shape, value, dtype)"),
    ..MADE
};

/// Default fields for the operators that allocate.
const MADE: OpDef = OpDef {
    zero_dim: ZeroDimResult::Array,
    infer: |context| {
        one_of(
            dims(context.op.name, context.ints("shape"))?,
            context.dtype("dtype").unwrap_or_else(default_float),
        )
    },
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(30),
    ..OpDef::DEFAULT
};

/// Axes in memory order, slowest first.
pub(crate) type Axes = SmallVec<[usize; 4]>;

/// Dtype and device of a new array.
#[derive(Clone, Copy)]
struct ArraySpec {
    dtype: DType,
    device: Device,
}

/// Initial contents of a new array.
enum Content<'a> {
    Nothing,
    Zeros,
    Number(Scalar),
    /// The elements of an array that broadcasts to the shape.
    Elements(&'a Array),
}

impl Content<'_> {
    /// The contents given by `value`. A Python number is passed by value, so that the result needs no second pass.
    fn of(value: &Array) -> Content<'_> {
        match value.number() {
            Some(number) => Content::Number(number),
            None => Content::Elements(value),
        }
    }

    /// An array of `shape` whose axes have this memory order, slowest first; C order for `None`.
    fn make(
        &self,
        op: &'static str,
        shape: &[usize],
        axes: Option<Axes>,
        kind: ArraySpec,
    ) -> Result<Array> {
        let ArraySpec { dtype, device } = kind;
        let Some(axes) = axes else {
            return self.make_c(op, shape, kind);
        };
        let order: SmallVec<[i64; 4]> = axes.iter().map(|&axis| axis as i64).collect();
        let made = match self {
            // These elements have their own memory order, so the copy is made in the requested order.
            Content::Elements(value) => {
                let value = drop_leading_axes(value, shape.len())?
                    .astype(dtype)?
                    .to_device(device)?;
                value.broadcast_to(shape)?.transpose(Some(&order))?.copy()?
            }
            _ => {
                let permuted: Dims = axes.iter().map(|&axis| shape[axis]).collect();
                self.make_c(op, &permuted, kind)?
            }
        };
        Ok(made.transpose(Some(&inverse(&axes)))?.as_owner())
    }

    /// An array in C order.
    fn make_c(&self, op: &'static str, shape: &[usize], kind: ArraySpec) -> Result<Array> {
        let ArraySpec { dtype, device } = kind;
        match *self {
            Content::Zeros => {
                let attrs = [
                    Value::from(shape),
                    Value::DType(dtype),
                    Value::Device(device),
                ];
                invoke1(&ZEROED, &[], &attrs.into_iter().collect())
            }
            Content::Number(value) => {
                // Floats are truncated as in C, as NumPy does.
                let whole = value.kind() == Kind::Integer && dtype != DType::Bool;
                let wide = matches!(value, Scalar::Wide(_));
                if (whole || wide) && !value.fits(dtype) {
                    return Err(out_of_bounds(op, value, dtype));
                }
                super::full(shape, value, dtype, device)
            }
            // Nothing records the call and no element is written: allocate without an operator call.
            Content::Nothing if Flags::current().allows_copies() => {
                Array::uninitialised(shape, dtype, device)
            }
            Content::Nothing => {
                let attrs = [
                    Value::from(shape),
                    Value::None,
                    Value::DType(dtype),
                    Value::Device(device),
                ];
                invoke1(&FILLED, &[], &attrs.into_iter().collect())
            }
            Content::Elements(value) => {
                let value = drop_leading_axes(value, shape.len())?
                    .astype(dtype)?
                    .to_device(device)?;
                value.broadcast_to(shape)?.copy()
            }
        }
    }
}

/// Removes leading axes of length 1 beyond `ndim`, as NumPy does on assignment.
fn drop_leading_axes(value: &Array, ndim: usize) -> Result<Array> {
    let extra = value.ndim().saturating_sub(ndim);
    match value.shape()[..extra].iter().all(|&n| n == 1) {
        true if extra > 0 => value.reshape(&value.shape()[extra..]),
        _ => Ok(value.clone()),
    }
}

/// A constant with the shape, dtype and order of the call.
fn new(context: &CompositeContext, natural: DType, content: Content) -> Result<Outputs> {
    let shape = dims(context.op.name, context.ints("shape"))?;
    let dtype = context.dtype("dtype").unwrap_or(natural);
    let like = context.opt(context.op.array_params().count() - 1);
    if like.is_some_and(Array::is_weak) {
        return Err(context.dtype_error("`like` must be an array, not a number"));
    }
    let device = context.device("device").or(like.map(Array::device));
    let device = device.unwrap_or_else(current_device);
    let axes = match context.str("order") {
        "F" => Some((0..shape.len()).rev().collect()),
        _ => None,
    };
    let made = content.make(context.op.name, &shape, axes, ArraySpec { dtype, device });
    context.done(made?)
}

/// The element for `None`: NaN for floats, false for booleans.
fn missing(context: &CompositeContext, dtype: Option<DType>) -> Result<Content<'static>> {
    match dtype.map(DType::kind) {
        Some(Kind::Float | Kind::Complex) => Ok(Content::Number(Scalar::F64(f64::NAN))),
        Some(Kind::Bool) => Ok(Content::Number(Scalar::Bool(false))),
        Some(Kind::Integer) => Err(context.dtype_error("None cannot be converted to an integer")),
        None => Err(context.dtype_error("None is a valid element (NaN) only with a float `dtype`")),
    }
}

/// A constant like the first input.
fn constant_like(context: &CompositeContext, content: Content) -> Result<Outputs> {
    let a = context.input(0);
    let shape = match context.opt_ints("shape") {
        Some(shape) => dims(context.op.name, shape)?,
        None => Dims::from_slice(a.shape()),
    };
    let dtype = context.dtype("dtype").unwrap_or(a.dtype());
    let device = context.device("device").unwrap_or(a.device());
    let axes = match axes_in_order(context.str("order"), a.layout()) {
        // `a`'s memory order does not apply to another number of axes, but "F" and "A" still do.
        Some(_) if shape.len() != a.ndim() && context.str("order") != "K" => {
            Some((0..shape.len()).rev().collect())
        }
        axes => axes.filter(|axes| axes.len() == shape.len()),
    };
    let made = content.make(context.op.name, &shape, axes, ArraySpec { dtype, device });
    context.done(made?)
}

/// A shape from Python integers.
pub(crate) fn dims(op: &'static str, shape: &[i64]) -> Result<Dims> {
    shape
        .iter()
        .map(|&d| {
            usize::try_from(d).map_err(|_| {
                crate::Error::shape(
                    op,
                    format!("negative dimension {d} in shape {}", crate::Tuple(shape)),
                )
            })
        })
        .collect()
}
