//! Copies and conversions.

use mxnet_tensor::{Casting, DType, Device, Dims, Scalar, backend, can_cast};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::CallContext;
use crate::error::Result;
use crate::memory_order::{axes_in_order, has_order};
use crate::opdef::{
    Cost, Cpu, FpErrors, Grad, Keep, OpDef, Probe, Sparse, Surface, Viewed, ZeroDimResult, one_of,
};
use crate::types::{Types, check_element};
use crate::{Array, cpu, invoke1};

/// A copy of the elements.
pub static COPY: OpDef = OpDef {
    name: "duplicate",
    params: &[Param::array("a")],
    doc: "A copy of the elements, in C order.",
    types: Types::First,
    infer: |context| context.same_as(0),
    cpu: Cpu::Kernel(cpu::copy_kernel),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).clone())),
    sparse: Sparse::KeepsZero,
    cost: Cost::PerKiB(60),
    parallel: true,
    probe: Probe::calls(&["f((2, 3))", "f((4, 5))[::-1, ::2]", "i((3,), 9)"]).against("np.copy"),
    batch: Batch::Leading(&[0]),
    ..OpDef::DEFAULT
};

/// Default fields for copies with an `order`.
const ORDERED: OpDef = OpDef {
    types: COPY.types,
    infer: COPY.infer,
    order: Some(order_asked_for),
    cpu: COPY.cpu,
    grad: COPY.grad,
    cost: COPY.cost,
    parallel: COPY.parallel,
    zero_dim: ZeroDimResult::Array,
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((2, 3))",
        "f((4, 5))[::-1, ::2]",
        "i((3,), 9)",
        "f((2, 3)), 'F'",
        "f((2, 3, 4)).transpose((1, 0, 2)), order='K'",
    ])
    .against("np.copy"),
    ..OpDef::DEFAULT
};

/// The memory order of the axes of a copy; `None` for C order.
fn order_asked_for(context: &CallContext) -> Option<Dims> {
    axes_in_order(context.str("order"), context.input(0).layout())
}

/// `np.copy`, whose default order is "K".
pub static COPY_IN_ORDER: OpDef = OpDef {
    name: "copy_in_order",
    old_names: &["copy_of"],
    surface: &[Surface::Np("copy")],
    params: &[
        Param::array("a"),
        Param::choice("order", &["K", "A", "C", "F"], "K"),
        Param::bool("subok", false),
    ],
    doc: "A copy of the elements, by default with the axes in the order of `a`. `subok` keeps the class of `a`.",
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    example: "
        >>> x = np.array([1, 2])
        >>> y = np.copy(x)
        >>> y[0] = 9
        >>> x
        array([1, 2])
    ",
    ..ORDERED
};

/// `ndarray.copy`, whose default order is "C".
pub static COPIED: OpDef = OpDef {
    name: "copy",
    surface: &[Surface::Method("copy")],
    params: &[
        Param::array("a"),
        Param::choice("order", &["C", "F", "A", "K"], "C"),
    ],
    doc: "A copy of the elements, by default in C order.",
    returns: &[("ndarray", "Of the shape and dtype of `a`.")],
    example: "
        >>> x = np.array([1, 2])
        >>> y = x.copy()
        >>> y[0] = 9
        >>> x
        array([1, 2])
    ",
    zero_dim: ZeroDimResult::AsOperand,
    ..ORDERED
};

/// The elements in another dtype.
pub static CAST: OpDef = OpDef {
    name: "cast",
    params: &[
        Param::array("a"),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "The elements converted to `dtype`. Floats are truncated towards zero for integers, complex numbers lose their imaginary part.",
    infer: |context| {
        one_of(
            Dims::from_slice(context.shape(0)),
            context.dtype("dtype").unwrap_or(DType::F32),
        )
    },
    fp_errors: FpErrors {
        shrinks: true,
        converts: true,
        ..FpErrors::DEFAULT
    },
    cpu: Cpu::Kernel(cpu::copy_kernel),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        if g.dtype_of(0).is_inexact() {
            g.one(g.dy(0).astype(g.dtype_of(0))?)
        } else {
            Ok(SmallVec::from_iter([None]))
        }
    }),
    sparse: Sparse::KeepsZero,
    cost: Cost::PerKiB(80),
    parallel: true,
    probe: Probe::calls(&["f((2, 3)), 'float64'", "f((2, 3)), 'int32'"]).against("numpy.astype"),
    batch: Batch::Leading(&[0]),
    ..OpDef::DEFAULT
};

/// Default fields for both spellings of a conversion.
const CONVERSION: OpDef = OpDef {
    probe: Probe::calls(&[
        "f((2, 3)), 'float64'",
        "f((2, 3)), 'int32'",
        "i((4,), 9), 'float32'",
    ])
    .against("numpy.astype"),
    ..OpDef::COMPOSITE
};

/// The elements in another dtype: `ndarray.astype`.
pub static ASTYPE: OpDef = OpDef {
    name: "astype",
    surface: &[Surface::Method("astype")],
    params: &[
        Param::array("a"),
        Param::required("dtype", ParamKind::DType),
        Param::choice("order", &["K", "A", "C", "F"], "K"),
        Param::choice(
            "casting",
            &["no", "equiv", "safe", "same_kind", "unsafe"],
            "unsafe",
        ),
        Param::bool("subok", true),
    ],
    doc: "The elements converted to `dtype`, if `casting` allows it. `copy=False` returns the array itself if the dtype is the same.",
    about: &[("copy", "Whether to copy even if nothing is converted.")],
    returns: &[("ndarray", "Of the shape of the array and this dtype.")],
    raises: &[("TypeError", "If `casting` does not allow the conversion.")],
    example: "
        >>> np.array([1.7, -1.7]).astype('int64')
        array([ 1, -1])
    ",
    zero_dim: ZeroDimResult::AsOperand,
    fp_errors: FpErrors {
        shrinks: true,
        converts: true,
        name: "cast",
        ..FpErrors::DEFAULT
    },
    parallel: true,
    full_signature: Some(&ASTYPE_SHARING),
    infer: |context| {
        let (from, to) = (
            context.dtype_of(0),
            context.dtype("dtype").unwrap_or(DType::F32),
        );
        if let Some(value @ Scalar::Wide(_)) = context.input(0).number() {
            check_element(context.op.name, &value, to)?;
        }
        let casting = context.str("casting").parse().unwrap_or(Casting::Unsafe);
        if !can_cast(from, to, casting) {
            let problem = format!(
                "cannot cast from {} to {} under casting rule '{}'",
                from.name(),
                to.name(),
                casting.name()
            );
            return Err(context.dtype_error(problem));
        }
        one_of(Dims::from_slice(context.shape(0)), to)
    },
    order: Some(order_asked_for),
    cpu: CAST.cpu,
    grad: CAST.grad,
    sparse: CAST.sparse,
    cost: CAST.cost,
    probe: CONVERSION.probe,
    batch: Batch::Leading(&[0]),
    ..OpDef::DEFAULT
};

/// The elements in another dtype; without a copy if the dtype is the same.
pub static ASTYPE_SHARING: OpDef = OpDef {
    name: "astype_sharing",
    params: &[
        Param::array("a"),
        Param::required("dtype", ParamKind::DType),
        Param::choice("order", &["K", "A", "C", "F"], "K"),
        Param::choice(
            "casting",
            &["no", "equiv", "safe", "same_kind", "unsafe"],
            "unsafe",
        ),
        Param::bool("subok", true),
        Param::bool("copy", true),
    ],
    doc: "As `astype`, but returns the array itself if `copy` is false and the dtype is the same.",
    zero_dim: ZeroDimResult::AsOperand,
    cpu: Cpu::View(|context| {
        let is_same = context.dtype("dtype") == Some(context.dtype)
            && has_order(context.layout, context.str("order"));
        Ok(match is_same && !context.bool("copy") {
            true => Viewed::Itself,
            false => Viewed::Computed(&ASTYPE),
        })
    }),
    grad: CAST.grad,
    probe: Probe::calls(&[
        "f((2, 3)), 'float64', copy=False",
        "f((2, 3)), 'float64', copy=True",
        "i((4,), 9), 'int64', copy=False",
    ])
    .against("numpy.astype"),
    batch: Batch::Leading(&[0]),
    ..OpDef::VIEW
};

/// The elements in another dtype: `astype` of the array API.
pub static ASTYPE_OF: OpDef = OpDef {
    name: "astype_of",
    surface: &[Surface::Np("astype")],
    params: &[
        Param::array("x"),
        Param::required("dtype", ParamKind::DType),
        Param::bool("copy", true).keyword(),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "The elements of `x` converted to `dtype`. `copy=False` returns the array itself if the dtype is the same.",
    about: &[("copy", "Whether to copy even if nothing is converted.")],
    returns: &[("ndarray", "Of the shape of `x` and this dtype.")],
    example: "
        >>> np.astype(np.array([1.7, -1.7]), np.int64)
        array([ 1, -1])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, dtype) = (
            context.input(0),
            context.dtype("dtype").unwrap_or(context.dtype_of(0)),
        );
        let y = converted(x, dtype, context.bool("copy"))?;
        context.done(match context.device("device") {
            Some(device) => y.to_device(device)?,
            None => y,
        })
    }),
    batch: Batch::Leading(&[0]),
    ..CONVERSION
};

fn converted(x: &Array, dtype: DType, copy: bool) -> Result<Array> {
    if x.dtype() == dtype && copy {
        x.copy()
    } else {
        x.astype(dtype)
    }
}

/// The elements on another device.
pub static TO_DEVICE: OpDef = OpDef {
    name: "to_device",
    params: &[
        Param::array("a"),
        Param::required("device", ParamKind::Device),
    ],
    doc: "The elements copied to `device`.",
    infer: |context| match context.device("device") {
        Some(device) => {
            mxnet_tensor::backend_of(device)?;
            context.same_as(0)
        }
        None => context.same_as(0),
    },
    cpu: Cpu::Composite(|context| {
        let (x, device) = (context.input(0), context.device("device"));
        if let Some(device) = device {
            mxnet_tensor::backend_of(device).map_err(|error| {
                crate::Error::device(context.op.name, error.to_string())
                    .with_hint("arrays can be on mx.cpu()")
            })?;
        }
        let x = x.contiguous()?;
        // A backend copies between main memory and its own devices, some also between these; otherwise the copy goes through main memory.
        let from = x.device();
        let is_among_own = |to: Device| {
            to.kind() == from.kind()
                && (to == from || backend(to.kind()).is_some_and(|b| b.copies_between_devices()))
        };
        let is_direct = device.is_none_or(|to| to.is_host() || from.is_host() || is_among_own(to));
        let x = if is_direct {
            x
        } else {
            x.to_device(Device::cpu(0))?
        };
        let attrs: Attrs = device.map(Value::Device).into_iter().collect();
        context.done(invoke1(&TRANSFER, &[&x], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&["f((2, 3)), 'cpu(1)'"]),
    ..OpDef::COMPOSITE
};

/// `to_device` of contiguous elements: a backend copies their bytes.
pub static TRANSFER: OpDef = OpDef {
    name: "transfer",
    params: TO_DEVICE.params,
    doc: "The dense elements copied to `device`.",
    infer: TO_DEVICE.infer,
    cpu: Cpu::AnyDevice(cpu::transfer_kernel),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(g.dy(0).to_device(g.device_of(0))?)),
    cost: Cost::PerKiB(60),
    parallel: true,
    probe: Probe::calls(&["f((2, 3)), 'cpu(1)'"]),
    batch: Batch::Leading(&[0]),
    ..OpDef::DEFAULT
};

/// Writes `value`, broadcast and converted, to the elements of `target`, and increments the version of its storage.
///
/// # Errors
/// [`crate::Error::Shape`] if `value` does not broadcast to the target's shape, [`crate::Error::Value`] if the target is read-only.
pub fn assign(target: &Array, value: &Array) -> Result<()> {
    let shared = target.shares_elements() && !target.tensor().is_read_only();
    if !shared {
        target.check_writable("assignment", "assignment destination")?;
    }
    // NumPy drops leading axes of length 1.
    let extra = value.ndim().saturating_sub(target.ndim());
    let value = match extra > 0 && value.shape()[..extra].iter().all(|&n| n == 1) {
        true => value.reshape(&value.shape()[extra..])?,
        false => value.clone(),
    };
    value.layout().broadcast_to(target.shape())?;
    let overlapping = cpu::overlaps(target.tensor(), value.tensor())
        && !cpu::same_elements(target.tensor(), value.tensor());
    let value = if overlapping { value.copy()? } else { value };
    match shared {
        true => crate::eager::copy_into_shared(&value, target),
        false => crate::eager::copy_into(&value, target),
    }
}
