//! Normalisation of rows and over batches, and the gradients of both.
//!
//! Row normalisation has its own kernels, `norm.cuh`. Batch normalisation is composed of reductions (`fold`) and elementwise maps.

use mxnet_core::{KernelContext, Result, device_kernels};
use mxnet_tensor::{DType, DeviceKind, Scalar};
use smallvec::{SmallVec, smallvec};

use super::fold::{self, Fold};
use super::map::{self, Function, Input};
use super::operand::Operand;
use super::softmax::Staged;
use crate::launch::{Arg, Grid, launch};
use crate::text::{MATH, type_name};

const NORM: &str = include_str!("../text/norm.cuh");

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    device_kernels::register("row_norm", kind, 0, row_norm)?;
    device_kernels::register("row_norm_gradient", kind, 0, row_norm_gradient)?;
    device_kernels::register("batch_norm_training", kind, 0, batch_norm_training)?;
    device_kernels::register("batch_norm_inference", kind, 0, batch_norm_inference)?;
    device_kernels::register("batch_norm_gradient", kind, 0, batch_norm_gradient)
}

/// The compute type of a dtype.
fn compute(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// The dtype in which data are read: their own for floats, otherwise the compute type.
fn read_as(dtype: DType, compute: DType) -> DType {
    if dtype.is_float() { dtype } else { compute }
}

const ROW_NORM: &str = "extern \"C\" __global__ void kernel(const mx::X *x, const mx::T *gamma, const mx::T *beta, mx::Y *y, mx::T *mean, mx::T *inverse, mx::i64 rows, mx::i64 len, mx::i64 groups, mx::i64 inner, mx::i64 is_centred, double epsilon) {
    mx::row_norm(x, gamma, beta, y, mean, inverse, rows, len, groups, inner, is_centred != 0, epsilon);
}";

const ROW_NORM_GRADIENT: &str = "extern \"C\" __global__ void kernel(const mx::X *x, const mx::X *dy, const mx::T *gamma, const mx::T *mean, const mx::T *inverse, mx::Y *dx, mx::i64 rows, mx::i64 len, mx::i64 groups, mx::i64 inner, mx::i64 is_centred) {
    mx::row_norm_gradient(x, dy, gamma, mean, inverse, dx, rows, len, groups, inner, is_centred != 0);
}";

fn text(function: &str, [x, y, compute]: [DType; 3]) -> String {
    let [x, y, compute] = [x, y, compute].map(type_name);
    format!(
        "{MATH}\nnamespace mx {{\ntypedef {x} X;\ntypedef {y} Y;\ntypedef {compute} T;\n}}\n{NORM}\n{function}\n"
    )
}

fn key(function: &str, types: [DType; 3]) -> String {
    let [x, y, compute] = types.map(DType::name);
    format!("{function}:{x}:{y}:{compute}")
}

/// Sizes of a row normalisation.
struct RowSizes {
    rows: usize,
    len: usize,
    groups: usize,
    inner: usize,
    is_centred: bool,
}

impl RowSizes {
    fn of(context: &KernelContext) -> RowSizes {
        let size = |name: &str| context.int(name).max(0) as usize;
        let (len, groups) = (size("len"), size("groups"));
        RowSizes {
            rows: context.input(0).len().checked_div(len).unwrap_or(0),
            len,
            groups,
            inner: size("inner").max(1),
            is_centred: context.bool("centred"),
        }
    }

    fn args(&self) -> SmallVec<[Arg<'static>; 5]> {
        let sizes = [
            self.rows,
            self.len,
            self.groups,
            self.inner,
            usize::from(self.is_centred),
        ];
        sizes.iter().map(|&n| Arg::I64(n as i64)).collect()
    }

    fn grid(&self) -> Grid {
        let threads = self.len.next_multiple_of(32).clamp(32, 256);
        Grid::of_blocks(self.rows.clamp(1, 1 << 16) as u32, threads as u32)
    }
}

/// The address of an optional operand; 0 if it is absent.
fn address(x: Option<&Operand>) -> Arg<'static> {
    Arg::Pointer(x.map_or(0, |x| x.ptr))
}

fn row_norm(context: &KernelContext) -> Result<()> {
    let sizes = RowSizes::of(context);
    if sizes.rows == 0 {
        return Ok(());
    }
    let to = context.output(0).dtype();
    let compute = compute(to);
    let from = read_as(context.input(0).dtype(), compute);
    let x = Operand::dense(context, 0, from)?;
    let gamma = Operand::dense_or_none(context, 1, compute)?;
    let beta = Operand::dense_or_none(context, 2, compute)?;
    let (y, mean, inverse) = (
        Staged::new(context, 0)?,
        Staged::new(context, 1)?,
        Staged::new(context, 2)?,
    );
    let mut args: SmallVec<[Arg; 12]> = SmallVec::from_iter([
        Arg::Pointer(x.ptr),
        address(gamma.as_ref()),
        address(beta.as_ref()),
        Arg::Pointer(y.ptr()),
        Arg::Pointer(mean.ptr()),
        Arg::Pointer(inverse.ptr()),
    ]);
    args.extend(sizes.args());
    args.push(Arg::F64(context.float("eps")));
    let types = [from, to, compute];
    launch(
        context,
        &key("row_norm", types),
        || text(ROW_NORM, types),
        sizes.grid(),
        &args,
    )?;
    y.finish(context)?;
    mean.finish(context)?;
    inverse.finish(context)
}

/// Gradients of scale and shift in one reduction: with `b` = dy, the sums of `b` (`a` - `c`) `d`, where (`a` - `c`) `d` = (x - mean) inverse, and of
/// `b`.
fn affine_fold(compute: DType) -> Fold<'static> {
    Fold {
        name: "affine_gradients",
        compute,
        define: "struct Acc { T scale, shift; };",
        neutral: "Acc{(T)0, (T)0}",
        lift: "Acc{b * ((a - c) * d), b}",
        combine: "Acc{s.scale + t.scale, s.shift + t.shift}",
        results: &["s.scale", "s.shift"],
        natives: SmallVec::from_elem(compute, 4),
        out_natives: smallvec![compute, compute],
        acc_bytes: 16,
        counts: false,
    }
}

fn row_norm_gradient(context: &KernelContext) -> Result<()> {
    let sizes = RowSizes::of(context);
    let to = context.output(0).dtype();
    let compute = compute(to);
    let from = read_as(context.input(0).dtype(), compute);
    let x = Operand::dense(context, 0, from)?;
    let dy = Operand::dense(context, 1, from)?;
    let gamma = Operand::dense_or_none(context, 2, compute)?;
    let (mean, inverse) = (
        Operand::dense(context, 3, compute)?,
        Operand::dense(context, 4, compute)?,
    );
    let dx = Staged::new(context, 0)?;
    if sizes.rows > 0 {
        let mut args: SmallVec<[Arg; 12]> = SmallVec::from_iter([
            Arg::Pointer(x.ptr),
            Arg::Pointer(dy.ptr),
            address(gamma.as_ref()),
            Arg::Pointer(mean.ptr),
            Arg::Pointer(inverse.ptr),
            Arg::Pointer(dx.ptr()),
        ]);
        args.extend(sizes.args());
        let types = [from, to, compute];
        let source = || text(ROW_NORM_GRADIENT, types);
        launch(
            context,
            &key("row_norm_gradient", types),
            source,
            sizes.grid(),
            &args,
        )?;
    }
    // (sample, group, channel of the group, element); a row is one (sample, group).
    let groups = sizes.groups.max(1);
    let inner = if sizes.groups == 0 { 1 } else { sizes.inner };
    let channels = sizes.len / inner.max(1);
    let shape = [sizes.rows / groups, groups, channels, inner];
    let (row, len, inner) = (
        sizes.len as isize,
        (groups * sizes.len) as isize,
        inner as isize,
    );
    let data = [len, row, inner, 1];
    let of_rows = [groups as isize, 1, 0, 0];
    let parameters = [0, channels as isize, 1, 0];
    let centred = if sizes.is_centred { of_rows } else { [0; 4] };
    let zero;
    let mean = match sizes.is_centred {
        true => mean,
        false => {
            zero = Operand::filled(context, &[1], compute, Scalar::I64(0))?;
            Operand::at(zero.ptr, &[1], &[0], compute)
        }
    };
    let ins = [
        x.with(&shape, &data),
        dy.with(&shape, &data),
        mean.with(&shape, &centred),
        inverse.with(&shape, &of_rows),
    ];
    let (dgamma, dbeta) = (context.output(1), context.output(2));
    let outs = [dgamma, dbeta].map(|y| {
        let y = Operand::of(y);
        let step = y.strides.first().copied().unwrap_or(1);
        y.with(&shape, &parameters.map(|s| s * step))
    });
    let folded = [true, false, false, true];
    fold::run(
        context,
        &affine_fold(compute),
        &shape,
        &folded,
        &outs,
        &ins,
        &[],
    )?;
    dx.finish(context)
}

/// Data with channels: (n, c, inner).
struct Channels {
    shape: [usize; 3],
    compute: DType,
    from: DType,
}

/// Strides of an array with one number per channel, along the axes of the data.
const PER_CHANNEL: [isize; 3] = [0, 1, 0];
/// The axes over which statistics are computed.
const ALL_BUT_CHANNELS: [bool; 3] = [true, false, true];

impl Channels {
    fn of(context: &KernelContext) -> Result<Channels> {
        let axis = context.axis("axis", 0)?;
        let shape = context.input(0).shape();
        let compute = compute(context.output(0).dtype());
        Ok(Channels {
            shape: [
                shape[..axis].iter().product(),
                shape[axis],
                shape[axis + 1..].iter().product(),
            ],
            compute,
            from: read_as(context.input(0).dtype(), compute),
        })
    }

    fn count(&self) -> f64 {
        (self.shape[0] * self.shape[2]) as f64
    }

    /// Input `i` as dense (n, c, inner) data.
    fn data<'a>(&self, context: &KernelContext<'a>, i: usize) -> Result<Operand<'a>> {
        Ok(self.dense(Operand::dense(context, i, self.from)?))
    }

    fn dense<'a>(&self, x: Operand<'a>) -> Operand<'a> {
        let [_, c, inner] = self.shape.map(|n| n as isize);
        x.with(&self.shape, &[c * inner, inner, 1])
    }

    /// An array with one number per channel, broadcast along the axes of the data. It shares the memory of `x`.
    fn spread<'a>(&self, x: &Operand) -> Operand<'a> {
        Operand::at(x.ptr, &self.shape, &PER_CHANNEL, x.dtype)
    }

    fn channels(&self) -> [usize; 1] {
        [self.shape[1]]
    }

    /// An output with one number per channel: in place, or in a buffer that is copied there later.
    fn output<'a>(&self, x: &Staged, dtype: DType) -> Operand<'a> {
        Operand::at(x.ptr(), &self.channels(), &[1], dtype)
    }

    /// Argument `i` per channel, dense; the number `otherwise` if it is absent.
    fn vector<'a>(
        &self,
        context: &KernelContext<'a>,
        i: usize,
        otherwise: f64,
    ) -> Result<Input<'a>> {
        Ok(match Operand::dense_or_none(context, i, self.compute)? {
            Some(x) => Input::Array(x),
            None => Input::Number(Scalar::F64(otherwise)),
        })
    }
}

/// Elementwise functions of this family: name, number of inputs, expressions.
const MAPS: &[(&str, usize, &[&str])] = &[
    // Inverse standard deviation and scale of each channel, from variance and gamma; number: epsilon.
    (
        "batch_scale",
        2,
        &[
            "(T)(1 / ::sqrt((f64)a + p0))",
            "(T)((f64)b / ::sqrt((f64)a + p0))",
        ],
    ),
    // From x, mean, scale, beta.
    ("batch_normalise", 4, &["(a - b) * c + d"]),
    // From running and new statistics; number: momentum.
    (
        "batch_running",
        2,
        &["(T)(p0 * (f64)a + (1 - p0) * (f64)b)"],
    ),
    // From inverse standard deviation and gradients of gamma and beta: what is subtracted from dy, and the factor of x - mean. Number: number of
    // elements.
    (
        "batch_parts",
        3,
        &["(T)((f64)c / p0)", "(T)((f64)b * (f64)a / p0)"],
    ),
    // From x, dy, mean, scale and the two results above.
    ("batch_slope", 6, &["d * (b - e - (a - c) * f)"]),
    // From dy and scale.
    ("batch_fixed_slope", 2, &["a * b"]),
];

fn function(name: &'static str, compute: DType) -> Function<'static> {
    let (_, count, results) = MAPS
        .iter()
        .find(|m| m.0 == name)
        .copied()
        .unwrap_or((name, 0, &[]));
    Function {
        name,
        results,
        compute,
        natives: SmallVec::from_elem(compute, count),
        out_natives: SmallVec::from_elem(compute, results.len()),
        counts: false,
    }
}

/// Mean of each channel; 0 if there are no elements.
fn mean_fold(compute: DType) -> Fold<'static> {
    Fold {
        name: "batch_mean",
        compute,
        define: "",
        neutral: "(T)0",
        lift: "a",
        combine: "s + t",
        results: &["n > 0 ? (T)((f64)s / n) : (T)0"],
        natives: smallvec![compute],
        out_natives: smallvec![compute],
        acc_bytes: 16,
        counts: false,
    }
}

/// Mean squared deviation from the mean `b` of each channel.
fn variance_fold(compute: DType) -> Fold<'static> {
    Fold {
        name: "batch_variance",
        lift: "(a - b) * (a - b)",
        natives: smallvec![compute, compute],
        ..mean_fold(compute)
    }
}

/// `y = (x - mean) * scale + beta`; `scale` is a temporary of the call.
fn normalise<'a>(
    context: &KernelContext<'a>,
    channels: &Channels,
    mean: &Operand,
    scale: &Operand,
    beta: Input<'a>,
) -> Result<()> {
    let y = Staged::new(context, 0)?;
    let target = channels.dense(Operand::at(y.ptr(), &[], &[], context.output(0).dtype()));
    let held;
    let beta = match beta {
        Input::Array(x) => {
            held = x;
            Input::Array(channels.spread(&held))
        }
        number => number,
    };
    let ins = [
        Input::Array(channels.data(context, 0)?),
        Input::Array(channels.spread(mean)),
        Input::Array(channels.spread(scale)),
        beta,
    ];
    let function = function("batch_normalise", channels.compute);
    map::run(context, &function, &channels.shape, &[target], &ins, &[])?;
    y.finish(context)
}

/// Computes the inverse standard deviation, written to `inverse`, and the scale of each channel.
fn scales<'a>(
    context: &KernelContext<'a>,
    channels: &Channels,
    variance: Operand<'a>,
    gamma: usize,
    inverse: Operand,
) -> Result<Operand<'a>> {
    let scale = Operand::new(context, &channels.channels(), channels.compute)?;
    let target = Operand::at(scale.ptr, &channels.channels(), &[1], channels.compute);
    let ins = [
        Input::Array(variance),
        channels.vector(context, gamma, 1.0)?,
    ];
    let function = function("batch_scale", channels.compute);
    let epsilon = context.float("eps");
    map::run(
        context,
        &function,
        &channels.channels(),
        &[inverse, target],
        &ins,
        &[epsilon],
    )?;
    Ok(scale)
}

fn batch_norm_training(context: &KernelContext) -> Result<()> {
    let channels = Channels::of(context)?;
    let compute = channels.compute;
    let [mean, variance, inverse] = [1, 2, 3].map(|i| Staged::new(context, i));
    let (mean, variance, inverse) = (mean?, variance?, inverse?);
    let statistic = |x: &Staged| channels.output(x, compute);
    let shape = &channels.shape;
    fold::run(
        context,
        &mean_fold(compute),
        shape,
        &ALL_BUT_CHANNELS,
        &[channels.spread(&statistic(&mean))],
        &[channels.data(context, 0)?],
        &[],
    )?;
    fold::run(
        context,
        &variance_fold(compute),
        shape,
        &ALL_BUT_CHANNELS,
        &[channels.spread(&statistic(&variance))],
        &[
            channels.data(context, 0)?,
            channels.spread(&statistic(&mean)),
        ],
        &[],
    )?;
    let scale = scales(
        context,
        &channels,
        statistic(&variance),
        1,
        statistic(&inverse),
    )?;
    let running = function("batch_running", DType::F64);
    for (i, batch) in [(3, &mean), (4, &variance)] {
        let moved = Operand::of(context.input(i));
        let ins = [
            Input::Array(Operand::of(context.input(i))),
            Input::Array(statistic(batch)),
        ];
        map::run(
            context,
            &running,
            &channels.channels(),
            &[moved],
            &ins,
            &[context.float("momentum")],
        )?;
    }
    normalise(
        context,
        &channels,
        &statistic(&mean),
        &scale,
        channels.vector(context, 2, 0.0)?,
    )?;
    mean.finish(context)?;
    variance.finish(context)?;
    inverse.finish(context)
}

fn batch_norm_inference(context: &KernelContext) -> Result<()> {
    let channels = Channels::of(context)?;
    let mean = Operand::dense(context, 3, channels.compute)?;
    let variance = Operand::dense(context, 4, channels.compute)?;
    let inverse = Staged::new(context, 1)?;
    let target = channels.output(&inverse, channels.compute);
    let scale = scales(context, &channels, variance, 1, target)?;
    normalise(
        context,
        &channels,
        &mean,
        &scale,
        channels.vector(context, 2, 0.0)?,
    )?;
    inverse.finish(context)
}

fn batch_norm_gradient(context: &KernelContext) -> Result<()> {
    let channels = Channels::of(context)?;
    let (compute, sizes) = (channels.compute, channels.channels());
    let mean = Operand::dense(context, 3, compute)?;
    let variance = Operand::dense(context, 4, compute)?;
    let inverse = Operand::new(context, &sizes, compute)?;
    let own = |x: &Operand| Operand::at(x.ptr, &sizes, &[1], compute);
    let scale = scales(context, &channels, variance, 2, own(&inverse))?;
    let [dx, dgamma, dbeta] = [0, 1, 2].map(|i| Staged::new(context, i));
    let (dx, dgamma, dbeta) = (dx?, dgamma?, dbeta?);
    let [of_gamma, of_beta] = [&dgamma, &dbeta].map(|x| channels.output(x, compute));
    fold::run(
        context,
        &affine_fold(compute),
        &channels.shape,
        &ALL_BUT_CHANNELS,
        &[channels.spread(&of_gamma), channels.spread(&of_beta)],
        &[
            channels.data(context, 0)?,
            channels.data(context, 1)?,
            channels.spread(&mean),
            channels.spread(&inverse),
        ],
        &[],
    )?;
    let target = channels.dense(Operand::at(dx.ptr(), &[], &[], context.output(0).dtype()));
    if context.bool("fixed") {
        let ins = [
            Input::Array(channels.data(context, 1)?),
            Input::Array(channels.spread(&scale)),
        ];
        let function = function("batch_fixed_slope", compute);
        map::run(context, &function, &channels.shape, &[target], &ins, &[])?;
    } else {
        let lost = Operand::new(context, &sizes, compute)?;
        let along = Operand::new(context, &sizes, compute)?;
        let ins = [
            Input::Array(own(&inverse)),
            Input::Array(of_gamma),
            Input::Array(of_beta),
        ];
        let count = channels.count().max(1.0);
        let parts = function("batch_parts", compute);
        map::run(
            context,
            &parts,
            &sizes,
            &[own(&lost), own(&along)],
            &ins,
            &[count],
        )?;
        let ins = [
            Input::Array(channels.data(context, 0)?),
            Input::Array(channels.data(context, 1)?),
            Input::Array(channels.spread(&mean)),
            Input::Array(channels.spread(&scale)),
            Input::Array(channels.spread(&lost)),
            Input::Array(channels.spread(&along)),
        ];
        map::run(
            context,
            &function("batch_slope", compute),
            &channels.shape,
            &[target],
            &ins,
            &[],
        )?;
    }
    dx.finish(context)?;
    dgamma.finish(context)?;
    dbeta.finish(context)
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let types = [dtype, dtype, compute(dtype)];
        all.push((key("row_norm", types), text(ROW_NORM, types)));
        all.push((
            key("row_norm_gradient", types),
            text(ROW_NORM_GRADIENT, types),
        ));
    }
    for compute in [DType::F32, DType::F64] {
        for &(name, ..) in MAPS {
            map::texts(&function(name, compute), 1, true, all);
        }
        fold::texts(&affine_fold(compute), 0, all);
        fold::texts(&mean_fold(compute), 0, all);
        fold::texts(&variance_fold(compute), 0, all);
    }
}
