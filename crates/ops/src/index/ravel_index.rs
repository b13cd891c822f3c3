//! Conversion between flat and multi-dimensional indices.
#![allow(unsafe_code)]

use mxnet_tensor::{DType, Dims, Scalar, broadcast_shapes};
use smallvec::SmallVec;

use crate::args::{Default, Param, ParamKind};
use crate::context::CompositeContext;
use crate::creation::dims;
use crate::error::{Result, Tuple};
use crate::opdef::{Bundle, Cost, Cpu, Grad, Known, OpDef, OutSpec, Probe, Surface, one_of};
use crate::{Array, Outputs};

/// Flat to multi-dimensional indices.
pub static UNRAVEL_INDEX: OpDef = OpDef {
    name: "unravel_index",
    surface: &[Surface::Np("unravel_index")],
    params: &[
        Param::array("indices"),
        Param::required("shape", ParamKind::Ints),
        Param::choice("order", &["C", "F"], "C"),
    ],
    doc: "Converts flat indices to one index array for each axis, in C order (last axis fastest) or Fortran order.",
    about: &[
        ("indices", "Flat indices, integers."),
        ("shape", "Shape of the indexed array."),
        (
            "order",
            "Whether the last or the first axis varies fastest.",
        ),
    ],
    returns: &[(
        "tuple of ndarray",
        "int64, one array of the shape of `indices` for each axis.",
    )],
    raises: &[
        ("ValueError", "If an index is out of bounds."),
        ("TypeError", "If `indices` are not integers."),
    ],
    example: "
        >>> np.unravel_index(np.array([5, 2]), (2, 3))
        (array([1, 0]), array([2, 2]))
    ",
    infer: |context| {
        let axes = dims(context.op.name, context.ints("shape"))?;
        let spec = || OutSpec {
            shape: Dims::from_slice(context.shape(0)),
            dtype: Some(DType::I64),
        };
        Ok(axes.iter().map(|_| spec()).collect())
    },
    cpu: Cpu::Eager(
        |context| {
            let shape = dims(context.op.name, context.ints("shape"))?;
            let size = addressable(context, &shape)?;
            let x = whole(context, 0)?;
            let numbers = integers(&x);
            if let Some(bad) = numbers.iter().find(|&&i| i < 0 || i as usize >= size) {
                return Err(context.value_error(format!(
                    "index {bad} is out of bounds for array with size {size}"
                )));
            }
            if shape.is_empty() && x.ndim() > 0 {
                return Err(context.value_error(format!(
                    "multiple indices are not supported for a 0d array, found {} axes in `indices`",
                    x.ndim()
                )));
            }
            let mut outputs = Outputs::new();
            for _ in 0..shape.len() {
                outputs.push(Array::uninitialised(x.shape(), DType::I64, x.device())?);
            }
            let mut rest =
                mxnet_kernels::scratch::collected(numbers.len(), numbers.iter().map(|&i| i as u64));
            for axis in slowest_first(context, shape.len()).into_iter().rev() {
                let (n, out) = (
                    shape[axis] as u64,
                    outputs[axis].tensor().data_ptr().cast::<i64>(),
                );
                // 32-bit divisions are faster than 64-bit ones.
                let fits_u32 = size <= u32::MAX as usize;
                for (i, r) in rest.iter_mut().enumerate() {
                    let (quotient, position) = match fits_u32 {
                        true => (
                            u64::from(*r as u32 / n as u32),
                            u64::from(*r as u32 % n as u32),
                        ),
                        false => (*r / n, *r % n),
                    };
                    // SAFETY: the output is new and dense, with one int64 for each number.
                    unsafe { *out.add(i) = position as i64 };
                    *r = quotient;
                }
            }
            Ok(outputs)
        },
        Known::ByRule,
    ),
    bundle: |_| Bundle::Tuple,
    cost: Cost::PerKiB(1000),
    grad: Grad::Stop("positions are integers"),
    probe: Probe::calls(&[
        "i((4,), 6), (2, 3)",
        "i((2, 2), 24), (2, 3, 4), 'F'",
        "i((0,), 6), (2, 3)",
    ]),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// Multi-dimensional to flat indices.
pub static RAVEL_POSITIONS: OpDef = OpDef {
    name: "ravel_multi_index",
    surface: &[Surface::Np("ravel_multi_index")],
    params: &[
        Param::arrays("multi_index"),
        Param::required("dims", ParamKind::Ints),
        Param::required("mode", ParamKind::Words).or(Default::Str("raise")),
        Param::choice("order", &["C", "F"], "C"),
    ],
    doc: "Converts one index array for each axis to flat indices.",
    about: &[
        ("multi_index", "Integers, an array for each axis; they broadcast."),
        ("dims", "Shape of the array."),
        ("mode", "How indices out of bounds are treated, for all axes or for each: an error ('raise'), modulo the length ('wrap'), or the nearest \
            index ('clip')."),
        ("order", "Whether the last ('C') or the first axis ('F') runs fastest."),
    ],
    returns: &[("ndarray", "int64, of the shape that the positions broadcast to.")],
    raises: &[("ValueError", "If a position is out of bounds and its mode is 'raise'.")],
    example: "
        >>> np.ravel_multi_index(([1, 0], [2, 2]), (2, 3))
        array([5, 2])
    ",
    infer: |context| {
        let shapes: SmallVec<[&[usize]; 4]> = (0..context.inputs.len()).map(|i| context.shape(i)).collect();
        one_of(broadcast_shapes(&shapes)?, DType::I64)
    },
    cpu: Cpu::Eager(|context| {
        let shape = dims(context.op.name, context.ints("dims"))?;
        let size = addressable(context, &shape)?;
        if context.inputs.len() != shape.len() {
            return Err(context.value_error(format!(
                "{} index arrays for {} axes: need one for each axis",
                context.inputs.len(),
                shape.len()
            )));
        }
        if shape.is_empty() {
            // A 0-d array has one element, with flat index 0.
            return Ok(SmallVec::from_iter([Array::scalar(Scalar::I64(0), DType::I64)?]));
        }
        let modes: SmallVec<[&str; 4]> = context.str("mode").split(',').collect();
        let mode = |axis: usize| if modes.len() == 1 { modes[0] } else { modes[axis] };
        if modes.len() > 1 && modes.len() != shape.len() {
            return Err(context.value_error(format!("{} modes for {} axes", modes.len(), shape.len())));
        }
        if let Some(bad) = modes.iter().find(|m| !["raise", "wrap", "clip"].contains(m)) {
            return Err(context.value_error(format!("`mode` must be raise, wrap or clip, found '{bad}'")));
        }
        let parts = (0..shape.len()).map(|i| whole(context, i)).collect::<Result<SmallVec<[Array; 4]>>>()?;
        let shapes: SmallVec<[&[usize]; 4]> = parts.iter().map(Array::shape).collect();
        let whole_shape = broadcast_shapes(&shapes)?;
        let n: usize = whole_shape.iter().product();
        if size == 0 && n > 0 {
            return Err(context.value_error(format!(
                "cannot unravel if shape has zero entries, found {}",
                Tuple(&shape)
            )));
        }
        let result = Array::uninitialised(&whole_shape, DType::I64, context.input(0).device())?;
        let out = result.tensor().data_ptr().cast::<i64>();
        for (turn, axis) in slowest_first(context, shape.len()).into_iter().enumerate() {
            let repeated;
            let part = match parts[axis].shape() == whole_shape.as_slice() {
                true => &parts[axis],
                false => {
                    repeated = parts[axis].broadcast_to(&whole_shape)?.copy()?;
                    repeated.wait_to_read()?;
                    &repeated
                }
            };
            let (positions, len) = (integers(part), shape[axis] as i64);
            let how = mode(axis);
            if how == "raise" && positions.iter().any(|&p| p as u64 >= len as u64) {
                return Err(context.value_error(format!(
                    "invalid entry in coordinates array: axis {axis} has size {len}"
                )));
            }
            for (i, &p) in positions.iter().enumerate() {
                let p = match how {
                    "wrap" => p.rem_euclid(len),
                    "clip" => p.clamp(0, len - 1),
                    _ => p,
                };
                // SAFETY: the result is new and dense, with `n` int64 that the first axis initialises.
                unsafe { *out.add(i) = if turn == 0 { p } else { *out.add(i) * len + p } };
            }
        }
        Ok(Outputs::from_iter([result]))
    }, Known::ByRule),
    cost: Cost::PerKiB(1000),
    grad: Grad::Stop("numbers of elements are integers"),
    probe: Probe::calls(&[
        "[i((4,), 2), i((4,), 3)], (2, 3), 'raise'",
        "[i((3, 1), 9), i((4,), 9)], (2, 3), 'wrap,clip', 'F'",
    ])
    .against("lambda at, dims, mode, order='C': numpy.ravel_multi_index(tuple(at), dims, tuple(mode.split(',')) if ',' in mode else mode, order)"),
    positions: &[0],
    ..OpDef::DEFAULT
};

/// Number of elements of a shape; an error if it does not fit in 63 bits.
fn addressable(context: &CompositeContext, shape: &[usize]) -> Result<usize> {
    let size = shape
        .iter()
        .try_fold(1_usize, |size, &n| size.checked_mul(n));
    size.filter(|&size| i64::try_from(size).is_ok())
        .ok_or_else(|| {
            context.value_error(format!(
                "dimensions are too large, found shape {}",
                Tuple(shape)
            ))
        })
}

/// Input `i` as dense int64. Waits for its elements.
fn whole(context: &CompositeContext, i: usize) -> Result<Array> {
    let x = context.input(i);
    if !x.dtype().is_integer() && x.dtype() != DType::Bool {
        let dtype = x.dtype().name();
        return Err(context.dtype_error(match x.is_empty() {
            true => format!(
                "only int indices permitted: indices must be integral: the provided empty sequence was of {dtype}"
            ),
            false => format!("only int indices permitted: they must be integers, found {dtype}"),
        }));
    }
    let is_whole = x.dtype() == DType::I64 && !x.is_weak() && x.layout().is_contiguous();
    let x = match is_whole {
        true => x.clone(),
        false => x.astype(DType::I64)?.contiguous()?,
    };
    x.wait_to_read()?;
    Ok(x)
}

/// The elements of a dense int64 array whose elements are complete.
fn integers(x: &Array) -> &[i64] {
    debug_assert!(x.dtype() == DType::I64 && x.layout().is_contiguous());
    // SAFETY: dense int64, complete, and held by `x` as long as the slice lives.
    unsafe { std::slice::from_raw_parts(x.tensor().data_ptr().cast_const().cast(), x.len()) }
}

/// Axes from the slowest to the fastest varying.
fn slowest_first(context: &CompositeContext, ndim: usize) -> Dims {
    match context.str("order") {
        "F" => (0..ndim).rev().collect(),
        _ => (0..ndim).collect(),
    }
}
