//! Patterns: identities, triangles, positions.
#![allow(unsafe_code)]

use mxnet_tensor::{
    DType, Dims, Operand, Promotion, Scalar, default_float, default_int, promotion, result_type,
};

use super::dims;
use crate::args::{Args, Attrs, Param, ParamKind, Value};
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::mode::current_device;
use crate::nn::operand::Staged;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, Surface, one_of};
use crate::reduce::running_product;
use crate::shape::{flip, narrow, pad_with};

/// Default fields for patterns.
const PATTERN: OpDef = OpDef {
    about: &[
        ("N", "Number of rows."),
        ("n", "Number of rows and of columns."),
        ("M", "Number of columns; `N` for None."),
        ("k", "Diagonal: 0 the main one, positive ones above it."),
    ],
    returns: &[("ndarray", "A matrix.")],
    infer: matrix,
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(100),
    ..OpDef::DEFAULT
};

/// Powers of the elements, one column for each power.
pub static VANDER: OpDef = OpDef {
    name: "vander",
    surface: &[Surface::Np("vander")],
    params: &[
        Param::array("x"),
        Param::optional("N", ParamKind::Int),
        Param::bool("increasing", false),
    ],
    doc: "Vandermonde matrix: row i holds the powers 0 to N - 1 of `x[i]`, highest first unless `increasing`.",
    about: &[
        ("x", "Numbers, of one axis."),
        ("N", "Number of columns; as many as rows for None."),
        ("increasing", "Whether powers rise from left to right."),
    ],
    returns: &[(
        "ndarray",
        "Of shape (n, N); integers and booleans become int64, float32 and uint64 by NumPy's rules float64.",
    )],
    raises: &[(
        "ValueError",
        "If `x` does not have one axis, or `N` is negative.",
    )],
    example: "
        >>> np.vander(np.array([1, 2, 3]), 3)
        array([[1, 1, 1],
               [4, 2, 1],
               [9, 3, 1]])
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if x.ndim() != 1 {
            return Err(context.value_error(format!(
                "x must be a one-dimensional array or sequence, found {} axes",
                x.ndim()
            )));
        }
        let (n, given) = (x.len(), context.opt_int("N").unwrap_or(x.len() as i64));
        let columns = usize::try_from(given).map_err(|_| {
            context.value_error(format!(
                "negative dimensions are not allowed, found N = {given}"
            ))
        })?;
        // NumPy's promotion with int64 exponents: float32 and uint64 become float64, other unsigned integers stay integers.
        let x = match (x.dtype(), promotion()) {
            (DType::U64, Promotion::Mx) => x.clone(),
            (dtype, mode) => x.astype(result_type(
                &[Operand::Array(dtype), Operand::Array(DType::I64)],
                mode,
            ))?,
        };
        let column = x.reshape(&[n, 1])?;
        if columns == 0 {
            return context.done(narrow(&column, 1, 0, 0)?);
        }
        let repeated = column.broadcast_to(&[n, columns - 1])?;
        let factors = pad_with(&repeated, &[0, 0, 1, 0], Scalar::I64(1))?;
        let powers = running_product(&factors, 1)?;
        context.done(match context.bool("increasing") {
            true => powers,
            false => flip(&powers, &[1])?.contiguous()?,
        })
    }),
    probe: Probe::calls(&[
        "f((4,))",
        "f((4,)), 3",
        "f((3,)), 5, True",
        "i((3,), 5), 4",
        "c((3,)), 3",
        "f((3,)), 0",
        "f((0,))",
    ])
    .ulp(8),
    ..OpDef::COMPOSITE
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
    ],
    full_signature: Some(&EYE_WITH_ORDER),
    doc: "Matrix of shape (N, M) with ones on diagonal `k` (above the main one if positive), zeros elsewhere. `M` defaults to `N`.",
    returns: &[(
        "ndarray",
        "Of shape (N, M) and `dtype`, the default float for None.",
    )],
    raises: &[("ValueError", "If a size is negative.")],
    example: "
        >>> np.eye(2)
        array([[1., 0.],
               [0., 1.]])
        >>> np.eye(2, 3, k=1)
        array([[0., 1., 0.],
               [0., 0., 1.]])
    ",
    infer: counted,
    cpu: Cpu::Kernel(|context| diagonal(context, context.int("k"))),
    probe: Probe::calls(&["3", "2, 4", "3, 3, 1", "3, 4, -2", "0", "2, dtype='int32'"]),
    ..PATTERN
};

/// `eye` with a memory order or a device.
pub static EYE_WITH_ORDER: OpDef = OpDef {
    name: "eye_with_order",
    old_names: &["eye_in_order"],
    params: &[
        Param::required("N", ParamKind::Int),
        Param::optional("M", ParamKind::Int),
        Param::int("k", 0),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C", "F"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: EYE.doc,
    cpu: Cpu::Composite(|context| {
        let (rows, k) = (context.int("N"), context.int("k"));
        let columns = context.opt_int("M").unwrap_or(rows);
        let device = context.device("device").unwrap_or_else(current_device);
        let made = |n: i64, m: i64, k: i64| {
            let dtype = context.dtype("dtype").unwrap_or_else(default_float);
            let attrs: Attrs = [
                Value::Int(n),
                Value::Int(m),
                Value::Int(k),
                Value::DType(dtype),
            ]
            .into_iter()
            .collect();
            invoke1(&EYE, &[], &attrs)?.to_device(device)
        };
        context.done(match context.str("order") {
            "F" => made(columns, rows, -k)?.transpose(None)?,
            _ => made(rows, columns, k)?,
        })
    }),
    probe: Probe::calls(&[
        "3, order='F'",
        "2, 4, 1, None, 'F'",
        "3, 2, -1, 'int32', 'C'",
    ])
    .against("numpy.eye"),
    ..OpDef::COMPOSITE
};

/// The positions of all elements.
pub static GRID_POSITIONS: OpDef = OpDef {
    name: "grid_positions",
    reports_as: Some("indices"),
    params: &[
        Param::required("dimensions", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device),
    ],
    doc: "For each axis of an array of shape `dimensions` the position of every element along it: shape `(len(dimensions), *dimensions)`, the default integer unless `dtype` is given.",
    about: &[],
    infer: |context| {
        let sizes = context.ints("dimensions");
        let mut shape = Dims::from_slice(&[sizes.len()]);
        shape.extend(dims(context.op.name, sizes)?);
        one_of(shape, context.dtype("dtype").unwrap_or_else(default_int))
    },
    cpu: Cpu::Kernel(|context| {
        let out = Staged::new(context.output(0), DType::I64)?;
        let shape = &out.tensor().shape()[1..];
        let total: usize = shape.iter().product();
        let parts = total.div_ceil(PART);
        let planes = Shared(out.ptr().cast::<i64>());
        shared_out(context, total, shape.len() * parts, &|task| {
            let (axis, from) = (task / parts, task % parts * PART);
            let run = shape[axis + 1..].iter().product();
            // SAFETY: the staged output is dense int64 with `total` elements for each axis; every task writes a disjoint part.
            let part = unsafe {
                std::slice::from_raw_parts_mut(
                    planes.at(axis * total + from),
                    PART.min(total - from),
                )
            };
            fill_positions(part, from, shape[axis], run);
        });
        out.finish(context.threads)
    }),
    probe: Probe::calls(&[
        "(2, 3)",
        "(4,), 'float32'",
        "(2, 0, 3)",
        "()",
        "(41, 7, 130)",
    ])
    .against("lambda dimensions, dtype=int: numpy.indices(dimensions, dtype)"),
    ..PATTERN
};

/// Elements that one task writes.
const PART: usize = 32 * 1024;

/// A pointer that tasks share; each writes a disjoint part.
struct Shared(*mut i64);
// SAFETY: no two tasks write the same element (see above).
unsafe impl Sync for Shared {}

impl Shared {
    fn at(&self, i: usize) -> *mut i64 {
        self.0.wrapping_add(i)
    }
}

/// Runs `tasks` tasks that together write `len` elements, on several threads if there is enough work.
fn shared_out(context: &KernelContext, len: usize, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
    if len <= PART {
        (0..tasks).for_each(task);
    } else {
        context.threads.run(tasks, task);
    }
}

/// Fills `part`, which begins at element `from`, with positions along an axis of length `len`. Each position repeats `run` times.
fn fill_positions(part: &mut [i64], from: usize, len: usize, run: usize) {
    let mut done = 0;
    while done < part.len() {
        let at = from + done;
        let position = at / run % len;
        let rest = &mut part[done..];
        // The last axis (`run` 1) counts up; other axes repeat the position to the end of the run.
        let n = if run == 1 {
            len - position
        } else {
            run - at % run
        }
        .min(rest.len());
        if run == 1 {
            for (i, x) in rest[..n].iter_mut().enumerate() {
                *x = (position + i) as i64;
            }
        } else {
            rest[..n].fill(position as i64);
        }
        done += n;
    }
}

/// The row and column indices of a triangle of a matrix.
pub static TRIANGLE_POSITIONS: OpDef = OpDef {
    name: "triangle_positions",
    reports_as: Some(""),
    params: &[
        Param::required("n", ParamKind::Int),
        Param::optional("m", ParamKind::Int),
        Param::int("k", 0),
        Param::bool("upper", false),
    ],
    doc: "Rows and columns, in C order, of the elements of a matrix of shape (n, m) at and below diagonal `k`, or at and above it if `upper`: int64, shape (2, count).",
    about: &[],
    infer: |context| one_of(Dims::from_slice(&[2, Triangle::of(context).count()]), DType::I64),
    cpu: Cpu::Kernel(|context| {
        let triangle = Triangle::of(context);
        let out = context.output(0);
        let count = triangle.count();
        // First row and first output element of each task; tasks have about equally many elements.
        let filled = triangle.filled();
        let mut tasks = vec![(filled.start, 0)];
        let (mut done, mut begun) = (0, 0);
        for row in filled.clone() {
            if done - begun >= PART {
                tasks.push((row, done));
                begun = done;
            }
            done += triangle.columns(row).len();
        }
        let planes = Shared(out.data_ptr().cast());
        shared_out(context, count, tasks.len(), &|task| {
            let (first, mut at) = tasks[task];
            let behind = tasks.get(task + 1).map_or(filled.end, |next| next.0);
            for row in first..behind {
                let columns = triangle.columns(row);
                // SAFETY: the output is dense int64 (2, count). In either plane, the elements of a row follow those of the rows before it;
                // `count` is the total.
                let (rows, numbers) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(planes.at(at), columns.len()),
                        std::slice::from_raw_parts_mut(planes.at(count + at), columns.len()),
                    )
                };
                at += columns.len();
                rows.fill(row as i64);
                for (x, column) in numbers.iter_mut().zip(columns) {
                    *x = column as i64;
                }
            }
        });
        Ok(())
    }),
    probe: Probe::calls(&[
        "3",
        "2, 4, 1",
        "4, 3, -1, True",
        "3, 5, 9, True",
        "3, 5, -9",
        "0",
        "400, 300, 2",
        "400, 300, 2, True",
    ])
    .against("lambda n, m=None, k=0, upper=False: numpy.stack((numpy.triu_indices if upper else numpy.tril_indices)(n, k, m))"),
    ..PATTERN
};

/// Which columns of each row belong to a triangle.
struct Triangle {
    rows: usize,
    columns: usize,
    diagonal: i64,
    is_upper: bool,
}

impl Triangle {
    fn of(args: &Args) -> Triangle {
        let n = args.int("n");
        let size = |x: i64| x.max(0) as usize;
        Triangle {
            rows: size(n),
            columns: size(args.opt_int("m").unwrap_or(n)),
            diagonal: args.int("k"),
            is_upper: args.bool("upper"),
        }
    }

    fn columns(&self, row: usize) -> std::ops::Range<usize> {
        let on = (row as i64).saturating_add(self.diagonal);
        let up_to = |end: i64| end.clamp(0, self.columns as i64) as usize;
        if self.is_upper {
            up_to(on)..self.columns
        } else {
            0..up_to(on.saturating_add(1))
        }
    }

    /// The rows that have elements.
    fn filled(&self) -> std::ops::Range<usize> {
        let row = |at: i128| at.clamp(0, self.rows as i128) as usize;
        let diagonal = i128::from(self.diagonal);
        match (self.columns, self.is_upper) {
            (0, _) => 0..0,
            (columns, true) => 0..row(columns as i128 - diagonal),
            (_, false) => row(-diagonal)..self.rows,
        }
    }

    /// The number of elements, in a closed form: `usize::MAX` if they are more.
    fn count(&self) -> usize {
        let (rows, columns) = (self.rows as i128, self.columns as i128);
        // Elements at and below diagonal k: rows with 1, 2, ... elements, then full ones.
        let up_to = |k: i128| {
            let first = (-k).clamp(0, rows);
            let full = (columns - k - 1).clamp(first, rows);
            let (least, most) = (first + k + 1, full + k);
            (least + most) * (full - first) / 2 + (rows - full) * columns
        };
        let diagonal = i128::from(self.diagonal);
        let count = match self.is_upper {
            true => rows * columns - up_to(diagonal - 1),
            false => up_to(diagonal),
        };
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

/// The identity matrix.
pub static IDENTITY: OpDef = OpDef {
    name: "identity",
    surface: &[Surface::Np("identity")],
    params: &[
        Param::required("n", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Matrix of shape (n, n) with ones on the main diagonal, zeros elsewhere.",
    returns: &[(
        "ndarray",
        "Of shape (n, n) and `dtype`, the default float for None.",
    )],
    raises: &[("ValueError", "If `n` is negative.")],
    example: "
        >>> np.identity(2)
        array([[1., 0.],
               [0., 1.]])
    ",
    infer: counted,
    cpu: Cpu::Kernel(|context| diagonal(context, 0)),
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
    returns: &[(
        "ndarray",
        "Of shape (N, M) and `dtype`, the default float for None.",
    )],
    example: "
        >>> np.tri(3, dtype='int64')
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
        >>> np.tri(2, 3, k=1)
        array([[1., 1., 0.],
               [1., 1., 1.]])
    ",
    cpu: Cpu::Kernel(|context| ones_up_to(context, context.int("k"))),
    probe: Probe::calls(&["3", "2, 4", "3, 3, -1", "3, 4, 1"]),
    ..PATTERN
};

/// Numbers of rows and columns.
fn sizes(context: &CallContext) -> [i64; 2] {
    // `identity` has `n` instead.
    let n = context.int(context.params[0].name);
    match context.params.iter().any(|p| p.name == "M") {
        true => [n, context.opt_int("M").unwrap_or(n)],
        false => [n, n],
    }
}

/// Shape of a matrix; an error if a size is negative.
fn counted(context: &CallContext) -> Result<Inferred> {
    let [n, m] = sizes(context);
    if n < 0 || m < 0 {
        return Err(context.shape_error(format!(
            "negative dimensions are not allowed, found ({n}, {m})"
        )));
    }
    matrix(context)
}

/// Shape of a matrix; negative sizes give an empty one.
fn matrix(context: &CallContext) -> Result<Inferred> {
    let [n, m] = sizes(context);
    let shape: Dims = [n, m].iter().map(|&d| d.max(0) as usize).collect();
    one_of(shape, context.dtype("dtype").unwrap_or_else(default_float))
}

/// Ones on diagonal k, zeros elsewhere.
fn diagonal(context: &KernelContext, k: i64) -> Result<()> {
    let out = context.output(0);
    cpu::fill(out, Scalar::I64(0), context.threads);
    cpu::fill_diagonal(out, Scalar::I64(1), k);
    Ok(())
}

/// Ones up to column r + k of row r, zeros after it.
fn ones_up_to(context: &KernelContext, k: i64) -> Result<()> {
    let out = context.output(0);
    let row = |row: usize| 0..(row as i64).saturating_add(k).saturating_add(1).max(0) as usize;
    cpu::fill(out, Scalar::I64(0), context.threads);
    cpu::fill_stretches(out, Scalar::I64(1), row, context.threads);
    Ok(())
}
