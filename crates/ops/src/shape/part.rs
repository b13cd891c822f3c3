//! Slices and splits along one axis, and their gradients.

use mxnet_tensor::{Dims, IndexItem, Storage, normalize_axis};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::batching::Batch;
use crate::context::{CompositeContext, KernelContext};
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::mode::Flags;
use crate::opdef::{Bundle, Cost, Cpu, Grad, Keep, OpDef, Probe, Sparse, Surface, Viewed, one_of};
use crate::{Outputs, cpu, memory, sum_to};

/// A slice along one axis.
pub static SLICE_AXIS: OpDef = OpDef {
    name: "slice_axis",
    surface: &[Surface::Npx("slice_axis")],
    params: &[
        Param::array("data"),
        Param::required("axis", ParamKind::Int),
        Param::int("begin", 0),
        Param::optional("end", ParamKind::Int),
    ],
    doc: "View of the elements `begin` to `end` (exclusive; None is the end) along `axis`. Negative positions count from the end.",
    about: &[("begin", "First position."), ("end", "Position after the last one.")],
    returns: &[("ndarray", "View, shorter along the axis.")],
    example: "
        >>> npx.slice_axis(np.array([[1, 2, 3], [4, 5, 6]]), axis=1, begin=1, end=None)
        array([[2, 3],
               [5, 6]])
    ",
    cpu: Cpu::View(|context| {
        let end = context.opt_int("end").map(|e| e as isize);
        Ok(Viewed::Shared(context.layout.slice(
            context.int("axis") as isize,
            Some(context.int("begin") as isize),
            end,
            Some(1),
        )?))
    }),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [
            g.get("axis").clone(),
            g.get("begin").clone(),
            g.get("end").clone(),
            Value::from(g.shape(0)),
        ]
        .into_iter()
        .collect();
        g.one(invoke1(&UNSLICE, &[g.dy(0)], &attrs)?)
    }),
    sparse: Sparse::KeepsZero,
    probe: Probe::calls(&[
        "f((3, 4)), 0, 1",
        "f((3, 4)), 1, 1, 3",
        "f((3, 4)), -1, -2",
        "f((3, 4)), 0, 2, 2",
    ])
    .against("lambda x, axis, begin=0, end=None: np.moveaxis(np.moveaxis(x, axis, 0)[begin:end], 0, axis)"),
    ..OpDef::VIEW
};

/// Zeros with a slice inserted: the gradient of [`SLICE_AXIS`].
pub static UNSLICE: OpDef = OpDef {
    name: "unslice",
    params: &[
        Param::array("data"),
        Param::required("axis", ParamKind::Int),
        Param::int("begin", 0),
        Param::optional("end", ParamKind::Int),
        Param::required("shape", ParamKind::Ints),
    ],
    doc: "Zeros of shape `shape` with `data` at the elements `begin` to `end` along `axis`.",
    infer: |context| {
        one_of(
            context.ints("shape")
                .iter()
                .map(|&d| d as usize)
                .collect::<Dims>(),
            context.dtype_of(0),
        )
    },
    cpu: Cpu::Kernel(put_back),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let attrs: Attrs = [
            g.get("axis").clone(),
            g.get("begin").clone(),
            g.get("end").clone(),
        ]
        .into_iter()
        .collect();
        g.one(sum_to(&invoke1(&SLICE_AXIS, &[g.dy(0)], &attrs)?, g.shape(0))?)
    }),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["f((2, 4)), 0, 1, 3, (3, 4)"]).against(
        "lambda x, axis, begin, end, shape: np.insert(np.zeros(shape[:0] + (shape[0] - x.shape[0],) + shape[1:]), [begin] * x.shape[0], x, axis)",
    ),
    batch: Batch::Rule(|context| context.call_with(&["axis"], &["shape"])),
    ..OpDef::DEFAULT
};

fn put_back(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    cpu::fill(out, mxnet_tensor::Scalar::I64(0), context.threads);
    let end = context.opt_int("end").map(|e| e as isize);
    let target = out.layout().slice(
        context.int("axis") as isize,
        Some(context.int("begin") as isize),
        end,
        Some(1),
    )?;
    cpu::copy(context.input(0), &out.with_layout(target), context.threads)
}

/// Splits into equal parts along one axis.
pub static SPLIT: OpDef = OpDef {
    name: "split",
    surface: &[Surface::Np("split")],
    params: &[
        Param::array("ary"),
        Param::required("indices_or_sections", ParamKind::Sections),
        Param::int("axis", 0),
    ],
    doc: "Views of consecutive parts along `axis`: a number of equal parts, or the positions at which to cut (a tuple or list).",
    about: &[
        ("ary", "The array."),
        (
            "indices_or_sections",
            "The number of parts, or the positions at which to split.",
        ),
    ],
    returns: &[("list of ndarray", "Views of the parts.")],
    raises: &[
        (
            "ValueError",
            "If the number of parts does not divide the length.",
        ),
        ("ZeroDivisionError", "If it is 0."),
    ],
    example: "
        >>> np.split(np.arange(6), 3)
        [array([0, 1]), array([2, 3]), array([4, 5])]
        >>> np.split(np.arange(6), [1, 4])
        [array([0]), array([1, 2, 3]), array([4, 5])]
    ",
    cpu: Cpu::Composite(|context| parts(context, true)),
    bundle: |_| Bundle::List,
    probe: Probe::calls(&[
        "f((4, 3)), 2",
        "f((4, 3)), (1, 3)",
        "f((2, 6)), 3, 1",
        "f((5,)), (2, 2, 9)",
    ]),
    ..OpDef::COMPOSITE
};

/// Splits into nearly equal parts along one axis.
pub static ARRAY_SPLIT: OpDef = OpDef {
    name: "array_split",
    surface: &[Surface::Np("array_split")],
    params: SPLIT.params,
    doc: "As `split`, but the number of parts need not divide the axis: the first parts are one longer.",
    about: &[
        ("ary", "The array."),
        (
            "indices_or_sections",
            "The number of parts, or the positions at which to split.",
        ),
    ],
    returns: &[("list of ndarray", "Views of the parts.")],
    example: "
        >>> np.array_split(np.arange(5), 2)
        [array([0, 1, 2]), array([3, 4])]
    ",
    cpu: Cpu::Composite(|context| parts(context, false)),
    bundle: |_| Bundle::List,
    probe: Probe::calls(&["f((5, 3)), 2", "f((7,)), 3", "f((2, 3)), 5"]),
    ..OpDef::COMPOSITE
};

/// The slices along one axis, without that axis.
pub static UNSTACK: OpDef = OpDef {
    name: "unstack",
    surface: &[Surface::Np("unstack")],
    params: &[Param::array("x"), Param::int("axis", 0).keyword()],
    doc: "The slices of an array along an axis, as views without it.",
    about: &[
        ("x", "The array."),
        ("axis", "The axis along which the slices are taken."),
    ],
    returns: &[(
        "tuple of ndarray",
        "Views, as many as the axis has elements; copies of the elements of a row.",
    )],
    raises: &[("ValueError", "If `x` has no axes.")],
    example: "
        >>> np.unstack(np.arange(4).reshape(2, 2), axis=1)
        (array([0, 2]), array([1, 3]))
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if x.ndim() == 0 {
            return Err(context.value_error("the array must have at least 1 axis"));
        }
        let axis = context.axis("axis", 0)?;
        let slices = 0..x.shape()[axis] as isize;
        // The elements of a 1-d array correspond to NumPy scalars, so they are copies.
        let alone = |view: Array| match x.ndim() {
            1 => view.copy(),
            _ => Ok(view),
        };
        if Flags::current().allows_copies() {
            // Nothing is recorded or intercepted: build the views directly from layouts.
            return several(context, slices, |i| {
                alone(x.seen_as(x.layout().select(axis as isize, i)?))
            });
        }
        let mut key = vec![IndexItem::ALL; axis];
        key.push(IndexItem::Int(0));
        several(context, slices, |i| {
            key[axis] = IndexItem::Int(i);
            alone(x.index(key.iter().cloned().collect())?)
        })
    }),
    bundle: |_| Bundle::Tuple,
    probe: Probe::calls(&[
        "f((4, 3))",
        "f((4,))",
        "f((2, 3, 4)), axis=1",
        "f((2, 3)), axis=-1",
        "f((1, 2))",
    ]),
    ..OpDef::COMPOSITE
};

fn parts(context: &CompositeContext, equal: bool) -> Result<Outputs> {
    let x = context.input(0);
    let axis = context.axis("axis", 0)?;
    let n = x.shape()[axis];
    let cuts = context.ints("indices_or_sections");
    let bounds: SmallVec<[(usize, usize); 8]> = if context.is_single("indices_or_sections") {
        let sections = usize::try_from(cuts[0]).ok().filter(|&s| s > 0);
        let Some(sections) = sections else {
            let problem = format!(
                "number of sections must be larger than 0, found {}",
                cuts[0]
            );
            return Err(match equal && cuts[0] == 0 {
                true => Error::zero_division(context.op.name, problem),
                false => context.value_error(problem),
            });
        };
        if equal && !n.is_multiple_of(sections) {
            let problem =
                format!("{sections} sections do not divide axis {axis} of size {n} equally");
            return Err(context
                .shape_error(problem)
                .with_hint("np.array_split allows parts of different size"));
        }
        let (each, longer) = (n / sections, n % sections);
        let start = |i: usize| i * each + i.min(longer);
        let mut bounds = SmallVec::new();
        check_memory(context, sections)?;
        bounds.extend((0..sections).map(|i| (start(i), start(i + 1))));
        bounds
    } else {
        let clip =
            |cut: i64| (if cut < 0 { cut + n as i64 } else { cut }).clamp(0, n as i64) as usize;
        check_memory(context, cuts.len())?;
        let mut starts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, 1);
        starts.extend(cuts.iter().map(|&cut| clip(cut)));
        let stops = starts[1..].iter().copied().chain([n]);
        starts
            .iter()
            .copied()
            .zip(stops)
            .map(|(a, b)| (a, b.max(a)))
            .collect()
    };
    several(context, bounds.into_iter(), |(start, stop)| {
        narrow(x, axis, start, stop)
    })
}

/// Estimated bytes per array: the array, its storage, and as much again for objects that a call holds until it ends.
const ARRAY_BYTES: usize = size_of::<Array>() + 2 * size_of::<Storage>();

/// Checks that `count` arrays fit into memory, before the first is created: a failed small allocation aborts the process.
fn check_memory(context: &CompositeContext, count: usize) -> Result<()> {
    memory::check_available(context.op.name, count.saturating_mul(ARRAY_BYTES))
}

/// The outputs that `make` returns for each of `items`.
fn several<T>(
    context: &CompositeContext,
    items: impl ExactSizeIterator<Item = T>,
    mut make: impl FnMut(T) -> Result<Array>,
) -> Result<Outputs> {
    // Fewer arrays take less than 1 MiB.
    const MANY: usize = 1024;
    let count = items.len();
    if count >= MANY {
        check_memory(context, count)?;
    }
    let mut outputs = Outputs::new();
    if outputs.try_reserve_exact(count).is_err() {
        return Err(Error::memory(
            context.op.name,
            format!("there is no memory for {count} arrays"),
        ));
    }
    for item in items {
        outputs.push(make(item)?);
    }
    Ok(outputs)
}

/// The elements `start` to `stop` along `axis`, as a view.
///
/// # Errors
/// [`crate::Error::Axis`] if the axis does not exist.
pub fn narrow(x: &Array, axis: usize, start: usize, stop: usize) -> Result<Array> {
    let axis = normalize_axis(axis as isize, x.ndim())?;
    let attrs: Attrs = [
        Value::Int(axis as i64),
        Value::Int(start as i64),
        Value::Int(stop as i64),
    ]
    .into_iter()
    .collect();
    invoke1(&SLICE_AXIS, &[x], &attrs)
}
