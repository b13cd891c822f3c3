//! `searchsorted`, `digitize`, `bincount`, `count_nonzero`.
#![allow(unsafe_code)]

use std::cmp::Ordering;

use mxnet_kernels::sort::{Side, extremes, occurrences, search_sorted, weighted};
use mxnet_tensor::{DType, Dims, Kind, Promotion, Scalar, Tensor, promotion};
use smallvec::SmallVec;

use crate::args::{Attrs, Default, Param, Value};
use crate::batching::Batch;
use crate::error::{Error, Result};
use crate::index::{dense, resolved, take};
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::opdef::{Cost, Cpu, Grad, Keep, Known, OpDef, Probe, Surface, one_of};
use crate::shape::flip;
use crate::{Array, Element, Tuple, promoted};

/// Insertion positions of values in a sorted array of the same dtype.
pub static SEARCH_ROWS: OpDef = OpDef {
    name: "search_sorted",
    params: &[
        Param::array("sorted"),
        Param::array("values"),
        Param::bool("right", false),
    ],
    doc: "For each value the int64 position in the array `sorted` (one axis, the values' dtype) where it would be inserted: before equal elements, \
        after them if `right`.",
    infer: |context| {
        if context.shape(0).len() != 1 || context.dtype_of(0) != context.dtype_of(1) {
            return Err(context.shape_error("`sorted` must have 1 axis and the dtype of `values`"));
        }
        one_of(Dims::from_slice(context.shape(1)), DType::I64)
    },
    cpu: Cpu::Kernel(|context| {
        let (sorted, values) = (
            dense(context.input(0), context.threads)?,
            dense(context.input(1), context.threads)?,
        );
        let side = if context.bool("right") {
            Side::Right
        } else {
            Side::Left
        };
        // SAFETY: both inputs are dense and of one dtype; the output is dense int64 of the values' shape, allocated for this call.
        unsafe {
            search_sorted(
                context.threads,
                side,
                elem(sorted.dtype()),
                sorted.data_ptr(),
                sorted.len(),
                values.data_ptr(),
                values.len(),
                context.output(0).data_ptr().cast(),
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("positions are integers"),
    cost: Cost::PerKiB(1500),
    probe: Probe::calls(&[
        "np.arange(5.0) - 2, f((3, 2))",
        "np.arange(5), i((7,), 9), True",
    ])
    .against("lambda a, v, right=False: numpy.searchsorted(a, v, 'right' if right else 'left')"),
    batch: Batch::Rule(|context| match context.is_batched(0) {
        true => Err(context.refused()),
        false => context.call_with_first(1),
    }),
    ..OpDef::DEFAULT
};

/// NumPy's `searchsorted`.
pub static SEARCHSORTED: OpDef = OpDef {
    name: "searchsorted",
    surface: &[Surface::Np("searchsorted"), Surface::Method("searchsorted")],
    params: &[
        Param::array("a"),
        Param::array("v"),
        Param::choice("side", &["left", "right"], "left"),
        Param::optional_array("sorter"),
    ],
    doc: "For each of the values `v` the int64 position in the ascending array `a` (one axis) where it would be inserted, before (`left`) or after \
        (`right`) equal elements. If `a` is not sorted, `sorter` has the positions that sort it.",
    about: &[
        ("a", "Ascending values, one axis."),
        ("v", "The values to place."),
        ("side", "Whether to insert before or after equal elements."),
        ("sorter", "Positions that sort `a`."),
    ],
    returns: &[("ndarray", "int64, of the shape of `v`.")],
    raises: &[(
        "ValueError",
        "If `a` does not have one axis, or `sorter` has another shape.",
    )],
    example: "
        >>> np.searchsorted([1, 3, 5], [0, 3, 9])
        array([0, 1, 3])
        >>> np.searchsorted([1, 3, 5], 3, side='right')
        array(2)
    ",
    cpu: Cpu::Composite(|context| {
        let (a, v) = (context.input(0), context.input(1));
        if a.ndim() != 1 {
            return Err(context.shape_error(format!(
                "`a` must have 1 axis, found shape {}",
                Tuple(a.shape())
            )));
        }
        let sorted;
        let a = match context.opt(2) {
            None => a,
            Some(sorter) if sorter.shape() != a.shape() => {
                return Err(context.shape_error("`sorter` must have the shape of `a`"));
            }
            Some(sorter) => {
                // NumPy raises ValueError here, not IndexError.
                sorted = take(a, sorter, 0, "raise").map_err(|error| match error {
                    Error::Index(fault) => Error::Value(fault),
                    error => error,
                })?;
                &sorted
            }
        };
        let side = match context.str("side") {
            "right" => Side::Right,
            _ => Side::Left,
        };
        context.done(insertion_points(a, v, side)?)
    }),
    probe: Probe::calls(&[
        "np.arange(5.0) - 2, f((3, 2))",
        "np.arange(5), i((7,), 9), 'right'",
        "np.arange(5), 2.5",
        "np.arange(4)[::-1], i((3,), 5), 'left', np.arange(4)[::-1]",
    ]),
    positions: &[2],
    ..OpDef::COMPOSITE
};

/// Insertion positions of values in the sorted array `a`, for any dtypes.
fn insertion_points(a: &Array, v: &Array, side: Side) -> Result<Array> {
    let search = |a: &Array, v: &Array, side: Side| {
        let attrs: Attrs = [Value::Bool(matches!(side, Side::Right))]
            .into_iter()
            .collect();
        invoke1(&SEARCH_ROWS, &[a, v], &attrs)
    };
    if let Some(number) = v.number().filter(|number| number.kind() < Kind::Complex)
        && !a.dtype().is_complex()
    {
        // Booleans are searched as the integers 0 and 1.
        let a = &match a.dtype() {
            DType::Bool => a.astype(DType::U8)?,
            _ => a.clone(),
        };
        let (near, side) = nearby(number, a.dtype(), side);
        return search(a, &Array::constant(near, a.dtype())?, side);
    }
    if a.dtype() == v.dtype() && !a.is_weak() && !v.is_weak() {
        return search(a, v, side);
    }
    let dtype = promoted(&[Some(a), Some(v)]);
    search(&a.astype(dtype)?, &v.astype(dtype)?, side)
}

/// An element of `dtype` (integer or float) and a side that together give the insertion position of `number` in an array of that dtype. So the array
/// need not be converted to a dtype that holds the number exactly.
fn nearby(number: Scalar, dtype: DType, side: Side) -> (Scalar, Side) {
    if dtype.is_float() {
        // SAFETY: 16 bytes hold an element of any dtype, and it is written before it is read.
        let near = unsafe {
            let mut bytes = [0_u64; 2];
            number.write(dtype, bytes.as_mut_ptr().cast());
            Scalar::read(dtype, bytes.as_ptr().cast())
        };
        let side = match near.as_f64().partial_cmp(&number.as_f64()) {
            // The number is less than the element it is rounded to, so it goes before all equal elements.
            Some(Ordering::Greater) => Side::Left,
            Some(Ordering::Less) => Side::Right,
            _ => side,
        };
        return (near, side);
    }
    let bits = dtype.size() * 8;
    let (low, high) = match dtype.is_signed() {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    let (whole, side) = match number {
        Scalar::U64(x) => (i128::from(x), side),
        Scalar::F64(x) | Scalar::Wide(x) => match x.floor() {
            // NaN sorts after everything.
            _ if x.is_nan() => (high, Side::Right),
            // The cast to 128 bits saturates, which is far out of range of any dtype.
            below if below == x => (x as i128, side),
            below => (below as i128, Side::Right),
        },
        other => (i128::from(other.as_i64()), side),
    };
    let (whole, side) = match whole {
        x if x < low => (low, Side::Left),
        x if x > high => (high, Side::Right),
        x => (x, side),
    };
    match i64::try_from(whole) {
        Ok(x) => (Scalar::I64(x), side),
        Err(_) => (Scalar::U64(whole as u64), side),
    }
}

/// NumPy's `digitize`.
pub static DIGITIZE: OpDef = OpDef {
    name: "digitize",
    surface: &[Surface::Np("digitize")],
    params: &[
        Param::array("x"),
        Param::array("bins"),
        Param::bool("right", false),
    ],
    doc: "Number of the bin that each element lies in: 0 before the first edge, n after the last one. Waits for the edges.",
    about: &[
        ("x", "Real numbers."),
        ("bins", "Edges, shape (n,), ascending or descending."),
        (
            "right",
            "Whether a bin includes its right edge instead of its left one.",
        ),
    ],
    returns: &[("ndarray", "int64, of the shape of `x`.")],
    raises: &[
        ("ValueError", "If the edges are not monotonic."),
        ("TypeError", "If an argument is complex."),
    ],
    example: "
        >>> np.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0, 10.0])
        array([1, 4, 3])
    ",
    cpu: Cpu::Composite(|context| {
        let (x, bins) = (context.input(0).detach(), context.input(1).detach());
        for (x, name) in [(&x, "x"), (&bins, "bins")] {
            if x.dtype().is_complex() {
                return Err(context.dtype_error(format!("{name} may not be complex")));
            }
        }
        if bins.ndim() != 1 {
            return Err(
                context.shape_error(format!("`bins` must have 1 axis, found {}", bins.ndim()))
            );
        }
        // A bin that includes its right edge excludes its left one.
        let insertion_points = |edges: &Array| {
            let side = match context.bool("right") {
                true => Side::Left,
                false => Side::Right,
            };
            insertion_points(edges, &x, side)
        };
        match direction(&bins)? {
            Some(Direction::Up) => context.done(insertion_points(&bins)?),
            // Descending bins are reversed, and the result is counted from the end.
            Some(Direction::Down) => {
                let n = Array::weak_scalar(Scalar::I64(bins.len() as i64))?;
                context.done(n.sub(&insertion_points(&flip(&bins, &[0])?)?)?)
            }
            None => Err(context.value_error("bins must be monotonically increasing or decreasing")),
        }
    }),
    probe: Probe::calls(&[
        "f((3, 4)), np.arange(5.0) - 2",
        "f((7,)), np.array([1.0, 0.0, -1.0]), True",
        "i((6,), 9), np.array([2, 2, 5])",
        "f(()), np.array([0.5])",
    ]),
    ..OpDef::COMPOSITE
};

/// Whether a sequence ascends or descends.
enum Direction {
    Up,
    Down,
}

/// The direction of a monotonic sequence; `None` if it is not monotonic. Waits for the elements.
fn direction(x: &Array) -> Result<Option<Direction>> {
    fn of<T: Element + PartialOrd>(x: &Array) -> Result<Option<Direction>> {
        let x: Vec<T> = x.to_vec()?;
        let (mut rises, mut falls) = (true, true);
        for pair in x.windows(2) {
            rises &= pair[0] <= pair[1];
            falls &= pair[0] >= pair[1];
        }
        Ok(match (rises, falls) {
            (true, _) => Some(Direction::Up),
            (_, true) => Some(Direction::Down),
            _ => None,
        })
    }
    match x.dtype() {
        DType::F32 => of::<f32>(x),
        DType::I64 => of::<i64>(x),
        DType::U64 => of::<u64>(x),
        dtype if dtype.is_float() => of::<f64>(&x.astype(DType::F64)?),
        _ => of::<i64>(&x.astype(DType::I64)?),
    }
}

/// NumPy's `bincount`.
pub static BINCOUNT: OpDef = OpDef {
    name: "bincount",
    surface: &[Surface::Np("bincount")],
    params: &[
        Param::array("x"),
        Param::optional_array("weights"),
        Param {
            default: Default::Int(0),
            ..Param::int("minlength", 0)
        },
    ],
    doc: "Number of occurrences in `x` (one axis) of each integer from 0 to its largest element, and at least to `minlength - 1`; or the sums of the \
        `weights` of these occurrences, in their dtype if that is a float, else in the default float.",
    about: &[
        ("x", "Integers from 0 on, one axis."),
        ("weights", "Weight of each element, of the shape of `x`."),
        ("minlength", "Least length of the result."),
    ],
    returns: &[("ndarray", "One axis; int64 without `weights`.")],
    raises: &[
        ("TypeError", "If `x` does not hold integers."),
        ("ValueError", "If `weights` does not have the shape of `x`."),
        ("ValueError", "If `x` has a negative element."),
    ],
    example: "
        >>> np.bincount([0, 1, 1, 3])
        array([1, 2, 0, 1])
        >>> np.bincount([0, 1, 1], weights=[0.5, 1.0, 2.0])
        array([0.5, 3. ])
    ",
    cpu: Cpu::Eager(
        |context| {
            let x = context.input(0);
            if !matches!(x.dtype().kind(), Kind::Integer | Kind::Bool) && !x.is_empty() {
                return Err(context
                    .dtype_error(format!("`x` must be integers, found {}", x.dtype().name())));
            }
            if x.ndim() != 1 {
                return Err(context.shape_error(format!(
                    "`x` must have 1 axis, found shape {}",
                    Tuple(x.shape())
                )));
            }
            let minlength = context.int("minlength");
            if minlength < 0 {
                return Err(context.value_error(format!(
                    "`minlength` must not be negative, found {minlength}"
                )));
            }
            let converted;
            let x64 = match x.dtype() == DType::I64 && x.layout().is_contiguous() {
                true => x,
                false => {
                    converted = x.astype(DType::I64)?.contiguous()?;
                    converted.wait_to_read()?;
                    &converted
                }
            };
            let values: *const i64 = x64.tensor().data_ptr().cast_const().cast();
            // SAFETY: dense int64, complete, and held by `x64` throughout.
            let (least, largest) = unsafe { extremes(&Pool, values, x.len()) };
            if !x.is_empty() && least < 0 {
                return Err(context.value_error(format!("`x` must not be negative, found {least}")));
            }
            let n = if x.is_empty() {
                0
            } else {
                largest as usize + 1
            }
            .max(minlength as usize);
            let Some(weights) = context.opt(1) else {
                let counts = Tensor::zeros(&[n], DType::I64, x.device())?;
                // SAFETY: 1. as above; no element is negative or above the largest. 2. the counts are new, dense and not shared.
                unsafe {
                    let counts = std::slice::from_raw_parts_mut(counts.data_ptr().cast(), n);
                    occurrences(&Pool, values, x.len(), 0, counts);
                }
                return context.done(Array::from_tensor(counts));
            };
            if weights.shape() != x.shape() {
                return Err(context.shape_error("`weights` must have the shape of `x`"));
            }
            let dtype = match weights.dtype() {
                dtype if dtype.is_float() && promotion() != Promotion::NumPy => dtype,
                dtype if dtype.is_complex() => {
                    return Err(context
                        .dtype_error(format!("`weights` must be real, found {}", dtype.name())));
                }
                // NumPy's rules: sums are float64 whatever the weights are.
                _ => mxnet_tensor::default_float(),
            };
            // Sums in float64, rounded once.
            let weights = weights.astype(DType::F64)?.contiguous()?;
            weights.wait_to_read()?;
            let sums = Tensor::zeros(&[n], DType::F64, x.device())?;
            // SAFETY: 1. both are dense, of these types, complete, as long as `x`, and held throughout. 2. the sums are new, dense and not shared.
            unsafe {
                let weights: *const f64 = weights.tensor().data_ptr().cast_const().cast();
                weighted(
                    std::slice::from_raw_parts(values, x.len()),
                    std::slice::from_raw_parts(weights, x.len()),
                    std::slice::from_raw_parts_mut(sums.data_ptr().cast(), n),
                );
            }
            context.done(Array::from_tensor(sums).astype(dtype)?)
        },
        Known::FromValues,
    ),
    // Each element may access a counter that is not in the cache.
    cost: Cost::PerKiB(1500),
    grad: Grad::Rule(Keep::inputs(1), |g| {
        let mut grads = SmallVec::from_iter([None, None]);
        if g.wants(1) {
            let at = resolved(&g.input(0).astype(DType::I64)?, g.dy(0).len(), 0, "raise")?;
            grads[1] = Some(take(g.dy(0), &at, 0, "raise")?.astype(g.dtype_of(1))?);
        }
        Ok(grads)
    }),
    probe: Probe::calls(&["i((9,), 5)", "i((9,), 5), f((9,))", "i((4,), 3), None, 7"]),
    positions: &[0],
    ..OpDef::DEFAULT
};
