//! Reductions over axes, `argmax` and `argmin`, by generated kernels (`fold.rs`).

use mxnet_core::{KernelContext, Result, device_kernels};
use mxnet_tensor::{DType, DeviceKind, Dims, Strides};
use smallvec::{SmallVec, smallvec};

use super::fold::{self, Fold};
use super::operand::Operand;

/// Accumulation of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Sums and products: small integers accumulate in 64 bits, f16 and bf16 in f32.
    Arithmetic,
    /// Like `Arithmetic`, with a real result.
    Squares,
    /// Truth values.
    Truth,
    /// The number of true values.
    Count,
    /// Comparisons.
    Order,
}

/// A reduction by name: kind, neutral element, value of an element, combination, result.
struct Reduction {
    op: &'static str,
    kind: Kind,
    define: &'static str,
    neutral: &'static str,
    lift: &'static str,
    combine: &'static str,
    results: &'static [&'static str],
}

const ADD: Reduction = Reduction {
    op: "sum",
    kind: Kind::Arithmetic,
    define: "",
    neutral: "convert<T>(0)",
    lift: "a",
    combine: "add(s, t)",
    results: &["s"],
};

const REDUCTIONS: &[Reduction] = &[
    ADD,
    Reduction {
        op: "prod",
        neutral: "convert<T>(1)",
        combine: "multiply(s, t)",
        ..ADD
    },
    Reduction {
        op: "mean",
        results: &["over(s, n)"],
        ..ADD
    },
    Reduction {
        op: "nansum",
        lift: "isnan(a) ? convert<T>(0) : a",
        ..ADD
    },
    Reduction {
        op: "sum_squares",
        kind: Kind::Squares,
        define: "typedef real<T> Acc;",
        neutral: "(Acc)0",
        lift: "squared_size(a)",
        ..ADD
    },
    Reduction {
        op: "any",
        kind: Kind::Truth,
        neutral: "T(false)",
        combine: "T((bool)s || (bool)t)",
        ..ADD
    },
    Reduction {
        op: "all",
        kind: Kind::Truth,
        neutral: "T(true)",
        combine: "T((bool)s && (bool)t)",
        ..ADD
    },
    Reduction {
        op: "count_nonzero",
        kind: Kind::Count,
        define: "typedef i64 Acc;",
        neutral: "0",
        lift: "(bool)a ? 1 : 0",
        combine: "s + t",
        ..ADD
    },
    Reduction {
        op: "max",
        kind: Kind::Order,
        neutral: "lowest<T>()",
        combine: "maximum(s, t)",
        ..ADD
    },
    Reduction {
        op: "min",
        kind: Kind::Order,
        neutral: "highest<T>()",
        combine: "minimum(s, t)",
        ..ADD
    },
    // If all elements are NaN, the result is NaN.
    Reduction {
        op: "nanmax",
        kind: Kind::Order,
        neutral: "nothing<T>(lowest<T>())",
        combine: "fmax(s, t)",
        ..ADD
    },
    Reduction {
        op: "nanmin",
        kind: Kind::Order,
        neutral: "nothing<T>(highest<T>())",
        combine: "fmin(s, t)",
        ..ADD
    },
];

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    for reduction in REDUCTIONS {
        device_kernels::register(reduction.op, kind, 0, reduce)?;
    }
    device_kernels::register("var", kind, 0, |context| moments(context, false))?;
    device_kernels::register("std", kind, 0, |context| moments(context, true))?;
    device_kernels::register("argmax", kind, 0, |context| position(context, true))?;
    device_kernels::register("argmin", kind, 0, |context| position(context, false))
}

/// The accumulator type for elements of `from` and a result of `to`.
pub(super) fn accumulator(kind: Kind, op: &str, from: DType, to: DType) -> DType {
    use DType::{BF16, Bool, C64, C128, F16, F32, F64, I64, U64};
    let is_wide = matches!(to, F64 | C128);
    match (kind, from) {
        (Kind::Truth | Kind::Count, _) => Bool,
        (Kind::Order, F16 | BF16) => F32,
        (Kind::Order, _) if from.is_integer() && to != from && !matches!(from, I64 | U64) => I64,
        (Kind::Order, _) => from,
        (_, C64) if !is_wide => C64,
        (_, C64 | C128) => C128,
        (_, F16 | BF16 | F32) if !is_wide => F32,
        (_, F16 | BF16 | F32 | F64) => F64,
        _ if to.is_inexact() || op == "mean" => F64,
        _ => I64,
    }
}

impl Reduction {
    fn fold(&self, from: DType, to: DType) -> Fold<'static> {
        let compute = accumulator(self.kind, self.op, from, to);
        let result = match self.kind {
            Kind::Squares => compute.real(),
            Kind::Count => DType::I64,
            _ => compute,
        };
        Fold {
            name: self.op,
            compute,
            define: self.define,
            neutral: self.neutral,
            lift: self.lift,
            combine: self.combine,
            results: self.results,
            natives: smallvec![compute],
            out_natives: smallvec![result],
            acc_bytes: 16,
            counts: false,
        }
    }
}

/// Which axes of input 0 a call reduces.
fn folded_axes(context: &KernelContext) -> Result<SmallVec<[bool; 8]>> {
    let axes = context.axes("axis", 0)?;
    let ndim = context.input(0).layout().ndim();
    Ok((0..ndim).map(|i| axes.contains(&i)).collect())
}

/// Strides of a result along the axes of the input; 0 along reduced ones.
pub(super) fn result_strides(strides: &[isize], folded: &[bool]) -> Strides {
    if strides.len() == folded.len() {
        return Strides::from_slice(strides);
    }
    let mut kept = strides.iter();
    let along = |&is_folded: &bool| match is_folded {
        true => 0,
        false => kept.next().copied().unwrap_or(0),
    };
    folded.iter().map(along).collect()
}

/// Output `i` with strides along the axes of the input.
fn result<'a>(
    context: &KernelContext<'a>,
    i: usize,
    shape: &[usize],
    folded: &[bool],
) -> Operand<'a> {
    let y = Operand::of(context.output(i));
    let strides = result_strides(&y.strides, folded);
    y.with(shape, &strides)
}

fn reduce(context: &KernelContext) -> Result<()> {
    let reduction = (REDUCTIONS.iter().find(|r| r.op == context.op.name))
        .ok_or_else(|| mxnet_core::Error::internal(context.op.name, "not a reduction"))?;
    let to = context.output(0).dtype();
    let mut x = Operand::input(context, 0)?;
    // With an integer result dtype, floats are converted to integers before the reduction, as in NumPy.
    if reduction.kind == Kind::Arithmetic
        && reduction.op != "nansum"
        && x.dtype.is_inexact()
        && !to.is_inexact()
    {
        x = x.into_typed(context, to)?;
    }
    let folded = folded_axes(context)?;
    let shape = x.shape.clone();
    let y = result(context, 0, &shape, &folded);
    let fold = reduction.fold(x.dtype, to);
    fold::run(context, &fold, &shape, &folded, &[y], &[x], &[])
}

/// Mean in f64, for [`moments`].
fn mean_fold(compute: DType) -> Fold<'static> {
    Fold {
        name: "mean_of_moments",
        compute,
        define: "",
        neutral: "convert<T>(0)",
        lift: "a",
        combine: "add(s, t)",
        results: &["over(s, n)"],
        natives: smallvec![compute],
        out_natives: smallvec![compute],
        acc_bytes: 16,
        counts: false,
    }
}

/// Squared deviations from the mean `b`. Numbers: `ddof`, and whether deviations are from the real part of the mean.
fn distance_fold(compute: DType, root: bool) -> Fold<'static> {
    let is_complex = compute.is_complex();
    Fold {
        name: match root {
            true => "deviation",
            false => "variance",
        },
        compute,
        define: "typedef real<T> Acc;",
        neutral: "(Acc)0",
        lift: match is_complex {
            true => "squared_size(a - T(b.re, p1 != 0 ? 0 : b.im))",
            false => "(a - b) * (a - b)",
        },
        combine: "s + t",
        results: match root {
            true => &["sqrt_of(s / (n > p0 ? n - p0 : 0))"],
            false => &["s / (n > p0 ? n - p0 : 0)"],
        },
        natives: smallvec![compute, compute],
        out_natives: smallvec![compute.real()],
        acc_bytes: 16,
        counts: false,
    }
}

/// Variance or standard deviation: first the mean, then squared deviations from it, both in f64.
fn moments(context: &KernelContext, root: bool) -> Result<()> {
    let x = Operand::input(context, 0)?;
    let folded = folded_axes(context)?;
    let shape = x.shape.clone();
    let compute = match x.dtype.is_complex() {
        true => DType::C128,
        false => DType::F64,
    };
    let kept: Dims = (shape.iter().zip(&folded))
        .map(|(&n, &is_folded)| if is_folded { 1 } else { n })
        .collect();
    let mean = Operand::new(context, &kept, compute)?;
    // Broadcast along the reduced axes.
    let strides: Strides = (mean.strides.iter().zip(&folded))
        .map(|(&stride, &is_folded)| if is_folded { 0 } else { stride })
        .collect();
    let mean = mean.with(&shape, &strides);
    let target = Operand::at(mean.ptr, &shape, &strides, compute);
    let x_again = Operand::at(x.ptr, &shape, &x.strides, x.dtype);
    fold::run(
        context,
        &mean_fold(compute),
        &shape,
        &folded,
        &[target],
        &[x_again],
        &[],
    )?;
    let about_real = context
        .dtype("dtype")
        .is_some_and(|dtype| !dtype.is_complex());
    let y = result(context, 0, &shape, &folded);
    let params = [context.float("ddof"), f64::from(u8::from(about_real))];
    fold::run(
        context,
        &distance_fold(compute, root),
        &shape,
        &folded,
        &[y],
        &[x, mean],
        &params,
    )
}

/// Position of the first maximum or minimum. NaN counts as either.
fn position_fold(from: DType, of_largest: bool) -> Fold<'static> {
    let compute = match from {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    };
    Fold {
        name: match of_largest {
            true => "argmax",
            false => "argmin",
        },
        compute,
        define: "struct Acc { T value; i64 at; };
MX_FN bool comes_before(Acc s, Acc t, bool is_better) {
    if (t.at < 0 || s.at < 0) return t.at < 0;
    bool s_nan = is_nan_element(s.value), t_nan = is_nan_element(t.value);
    if (s_nan || t_nan) return s_nan && t_nan ? s.at < t.at : s_nan;
    return is_better || (!(less(s.value, t.value) || less(t.value, s.value)) && s.at < t.at);
}",
        neutral: "Acc{convert<T>(0), -1}",
        lift: "Acc{a, (i64)i}",
        combine: match of_largest {
            true => "comes_before(s, t, less(t.value, s.value)) ? s : t",
            false => "comes_before(s, t, less(s.value, t.value)) ? s : t",
        },
        results: &["s.at"],
        natives: smallvec![compute],
        out_natives: smallvec![DType::I64],
        acc_bytes: 32,
        counts: true,
    }
}

fn position(context: &KernelContext, of_largest: bool) -> Result<()> {
    let x = Operand::input(context, 0)?;
    let shape = x.shape.clone();
    let axis = match context.opt_int("axis") {
        Some(_) if !shape.is_empty() => Some(context.axis("axis", 0)?),
        _ => None,
    };
    let folded: SmallVec<[bool; 8]> = (0..shape.len())
        .map(|i| axis.is_none_or(|axis| axis == i))
        .collect();
    let y = result(context, 0, &shape, &folded);
    let fold = position_fold(x.dtype, of_largest);
    fold::run(context, &fold, &shape, &folded, &[y], &[x], &[])
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for reduction in REDUCTIONS {
        for from in DType::ALL {
            let is_refused = from.is_complex() && reduction.op.starts_with("nan_m");
            if !is_refused {
                fold::texts(&reduction.fold(from, from), 0, all);
            }
        }
    }
    for compute in [DType::F64, DType::C128] {
        fold::texts(&mean_fold(compute), 0, all);
        fold::texts(&distance_fold(compute, false), 2, all);
        fold::texts(&distance_fold(compute, true), 2, all);
    }
    for from in DType::ALL {
        fold::texts(&position_fold(from, true), 0, all);
        fold::texts(&position_fold(from, false), 0, all);
    }
}
