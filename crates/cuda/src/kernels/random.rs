//! Random numbers: the CPU's Philox stream (`random.cuh`), so that a seed gives the same samples on every device.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::{DType, DeviceKind, Scalar};

use super::index;
use super::operand::{self, Operand, WALK, bytes, c_type, for_each, report, source};
use crate::launch::{Arg, launch};

const RANDOM: &str = include_str!("../text/random.cuh");
const DRAW: &str = include_str!("../text/draw.cuh");

/// Distributions of `random_fill`, and the mask of dropout.
const DISTRIBUTIONS: [&str; 9] = [
    "uniform",
    "normal",
    "bernoulli",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "triangular",
    "mask",
];

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("random_fill", kind, 0, |context| {
        let numbers = [context.float("a"), context.float("b"), context.float("c")];
        fill(context, context.str("distribution"), numbers)
    })?;
    for name in ["uniform", "random", "random_sample", "rand"] {
        add_standard(name, kind, |context| fill(context, "uniform", STANDARD))?;
    }
    for name in ["randn", "standard_normal"] {
        add_standard(name, kind, |context| fill(context, "normal", STANDARD))?;
    }
    add_standard("standard_exponential", kind, |context| {
        fill(context, "exponential", STANDARD)
    })?;
    add("dropout_mask", kind, 0, |context| {
        let p = context.float("p");
        if p >= 1.0 {
            return operand::fill(context, &Operand::of(context.output(0)), Scalar::F64(0.0));
        }
        fill(context, "mask", [1.0 - p, 1.0 / (1.0 - p), 0.0])
    })?;
    add("random_integers", kind, 0, integers)?;
    add("checked_parameter", kind, 0, checked)?;
    add("wald_path", kind, 0, |context| {
        operand::copy(
            context,
            &Operand::input(context, 0)?,
            &Operand::of(context.output(0)),
        )
    })?;
    add("random_integers_between", kind, 0, between)?;
    add("random_order", kind, 0, |context| {
        let out = context.output(0);
        let n = out.shape().last().copied().unwrap_or(1);
        permutations(context, out.data_ptr() as u64, out.len(), n)
    })?;
    add("random_reordered", kind, 0, |context| {
        let (x, out) = (Operand::input(context, 0)?, Operand::of(context.output(0)));
        if out.is_empty() {
            return Ok(());
        }
        let order = Operand::new(context, &out.shape[..1], DType::I64)?;
        permutations(context, order.ptr, order.len(), order.len())?;
        index::take_first(context, &x, &order, &out)
    })?;
    add("random_different", kind, 0, |context| {
        let (n, out) = (context.int("n") as usize, context.output(0));
        if out.is_empty() {
            return Ok(());
        }
        let all = Operand::new(context, &[n], DType::I64)?;
        count_up(context, all.ptr, n, n)?;
        exchange(context, all.ptr, [1, n, out.len()], out.data_ptr() as u64)
    })
}

/// `a`, `b`, `c` of the standard distributions.
const STANDARD: [f64; 3] = [0.0, 1.0, 0.5];

/// Registers a sampler, unless it is composed of others and needs no kernel.
fn add_standard(
    name: &str,
    kind: DeviceKind,
    kernel: fn(&KernelContext) -> Result<()>,
) -> Result<()> {
    let has_kernel = mxnet_core::registry::find(name)
        .is_some_and(|op| matches!(op.cpu, mxnet_core::Cpu::Kernel(_)));
    if has_kernel {
        add(name, kind, 0, kernel)
    } else {
        Ok(())
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Stream {
    seed: u64,
    offset: u64,
}

fn stream(context: &KernelContext) -> Stream {
    Stream {
        seed: context.rng.seed,
        offset: context.rng.offset,
    }
}

/// Fills the output with samples.
fn fill(context: &KernelContext, distribution: &str, numbers: [f64; 3]) -> Result<()> {
    let out = context.output(0);
    if out.is_empty() {
        return Ok(());
    }
    let draws = stream(context);
    let args = [
        Arg::Output(0),
        Arg::I64(out.len() as i64),
        Arg::Bytes(bytes(&draws)),
        Arg::Bytes(bytes(&numbers)),
    ];
    let blocks = out
        .len()
        .div_ceil(if out.dtype() == DType::F64 { 2 } else { 4 });
    let dtype = out.dtype();
    launch(
        context,
        &fill_key(distribution, dtype),
        || fill_text(distribution, dtype),
        for_each(blocks),
        &args,
    )
}

fn fill_key(distribution: &str, dtype: DType) -> String {
    format!("random_{distribution}:{}", c_type(dtype))
}

fn fill_text(distribution: &str, dtype: DType) -> String {
    let computed = if dtype == DType::F64 { "f64" } else { "f32" };
    let pairs = if distribution == "normal" {
        "#define PAIRS\n"
    } else {
        ""
    };
    let head = format!(
        "typedef {} T;\ntypedef {computed} R;\n#define DISTRIBUTION {distribution}\n{pairs}",
        c_type(dtype)
    );
    source(&[WALK, operand::FAULT, &head, RANDOM, DRAW])
}

/// An integer attribute of any sign and up to 64 bits.
fn to_i128(x: Option<Scalar>) -> i128 {
    match x {
        Some(Scalar::U64(x)) => x.into(),
        Some(Scalar::Wide(x)) => x as i128,
        Some(other) => other.as_i64().into(),
        None => 0,
    }
}

/// Valid ranges of parameters, in the operator's words: minimum and maximum, whether these are excluded, whether the parameter is an integer.
const RULES: [(&str, [f64; 2], [bool; 3]); 9] = [
    ("at least 0", [0.0, f64::INFINITY], [false, false, false]),
    (
        "from 0 to 9.2233720064847708e18",
        [0.0, 9.223_372_006_484_771e18],
        [false, false, false],
    ),
    ("above 0", [0.0, f64::INFINITY], [true, false, false]),
    ("above 1", [1.0, f64::INFINITY], [true, false, false]),
    ("in [0, 1]", [0.0, 1.0], [false, false, false]),
    ("in (0, 1]", [0.0, 1.0], [true, false, false]),
    ("in [0, 1)", [0.0, 1.0], [false, true, false]),
    (
        "a whole number of at least 0",
        [0.0, f64::MAX],
        [false, false, true],
    ),
    (
        "a whole number from 0 to 10**9",
        [0.0, 1e9],
        [false, false, true],
    ),
];

/// Copies a parameter, and reports an element that violates the rule of the call.
fn checked(context: &KernelContext) -> Result<()> {
    operand::copy(
        context,
        &Operand::input(context, 0)?,
        &Operand::of(context.output(0)),
    )?;
    let rule = context.str("rule").to_owned();
    let found = RULES.iter().find(|(name, ..)| *name == rule);
    let Some((_, [low, high], [above, below, whole])) = found else {
        let problem = format!("the rule `{rule}` is not known");
        return Err(Error::internal(context.op.name, problem));
    };
    let x = Operand::dense(context, 0, DType::F64)?;
    let name = context.str("parameter").to_owned();
    // The error names the function that the user called.
    let of = mxnet_core::registry::find(context.str("of")).map_or(context.op.name, |op| op.name);
    let faults = report(context, move |[at, value, _]| {
        let value = f64::from_bits(value as u64);
        let problem = format!("`{name}` must be {rule}, found {value} at element {at}");
        Error::value(of, problem)
    })?;
    let args = [
        Arg::Pointer(x.ptr),
        Arg::I64(x.len() as i64),
        Arg::F64(*low),
        Arg::F64(*high),
        Arg::I64(i64::from(*above)),
        Arg::I64(i64::from(*below)),
        Arg::I64(i64::from(*whole)),
        faults,
    ];
    run(context, "CHECK", &["f64"], x.len(), &args)
}

fn integers(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let (low, last) = (
        to_i128(context.scalar("low")),
        to_i128(context.scalar("last")),
    );
    // 0 represents 2^64; integers above the range of i64 are drawn as bit patterns.
    let range = (last - low + 1) as u64;
    let draws = stream(context);
    let args = [
        Arg::Output(0),
        Arg::I64(out.len() as i64),
        Arg::Bytes(bytes(&draws)),
        Arg::I64(low as i64),
        Arg::U64(range),
    ];
    run(
        context,
        "INTEGERS",
        &[c_type(out.dtype())],
        out.len(),
        &args,
    )
}

fn between(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let of = |i: usize| {
        if context.input(i).dtype() == DType::U64 {
            DType::U64
        } else {
            DType::I64
        }
    };
    let (low, high) = (
        Operand::dense(context, 0, of(0))?,
        Operand::dense(context, 1, of(1))?,
    );
    let endpoint = context.bool("endpoint");
    let (least, most) = bounds(out.dtype());
    let (signs, name) = (
        [of(0), of(1)].map(|dtype| dtype == DType::U64),
        out.dtype().name(),
    );
    let value = move |bits: i64, is_unsigned: bool| {
        if is_unsigned {
            i128::from(bits as u64)
        } else {
            i128::from(bits)
        }
    };
    let faults = report(context, move |[at, low, last]| {
        let (i, low, last) = (at / 4, value(low, signs[0]), value(last, signs[1]));
        let problem = match at % 4 {
            0 => format!(
                "low {} high at element {i}: {low} and {last}",
                if endpoint { ">" } else { ">=" }
            ),
            which => format!(
                "{} is out of bounds for {name} at element {i}: the integers would be {low} to {last}",
                if which == 1 { "low" } else { "high" }
            ),
        };
        Error::value("randint", problem)
    })?;
    let draws = stream(context);
    let args = [
        Arg::Pointer(low.ptr),
        Arg::Pointer(high.ptr),
        Arg::Output(0),
        Arg::I64(out.len() as i64),
        Arg::Bytes(bytes(&draws)),
        Arg::I64(i64::from(endpoint)),
        Arg::I64(least),
        Arg::U64(most),
        faults,
    ];
    let names = [c_type(out.dtype()), c_type(of(0)), c_type(of(1))];
    run(context, "BETWEEN", &names, out.len(), &args)
}

/// Minimum and maximum of a dtype; the range of 64-bit integers for floats.
fn bounds(dtype: DType) -> (i64, u64) {
    match dtype {
        DType::Bool => (0, 1),
        DType::I8 => (i8::MIN.into(), i8::MAX as u64),
        DType::I16 => (i16::MIN.into(), i16::MAX as u64),
        DType::I32 => (i32::MIN.into(), i32::MAX as u64),
        DType::I64 => (i64::MIN, i64::MAX as u64),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::U64 => (0, u64::MAX),
        _ => (i64::MIN, u64::MAX),
    }
}

/// A random permutation of `0..n` in each row of `len` integers.
fn permutations(context: &KernelContext, to: u64, len: usize, n: usize) -> Result<()> {
    if len == 0 {
        return Ok(());
    }
    count_up(context, to, len, n)?;
    exchange(context, to, [len / n, n, n], 0)
}

fn count_up(context: &KernelContext, to: u64, len: usize, n: usize) -> Result<()> {
    let args = [Arg::Pointer(to), Arg::I64(len as i64), Arg::I64(n as i64)];
    run(context, "COUNT_UP", &["i64"], len, &args)
}

fn exchange(
    context: &KernelContext,
    all: u64,
    [rows, n, count]: [usize; 3],
    taken: u64,
) -> Result<()> {
    let draws = stream(context);
    let args = [
        Arg::Pointer(all),
        Arg::I64(rows as i64),
        Arg::I64(n as i64),
        Arg::I64(count as i64),
        Arg::Bytes(bytes(&draws)),
        Arg::Pointer(taken),
    ];
    run(context, "EXCHANGE", &["i64"], rows, &args)
}

fn run(
    context: &KernelContext,
    function: &str,
    types: &[&str],
    n: usize,
    args: &[Arg],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    launch(
        context,
        &key(function, types),
        || text(function, types),
        for_each(n),
        args,
    )
}

fn key(function: &str, types: &[&str]) -> String {
    format!("random_{}:{}", function.to_lowercase(), types.join(":"))
}

fn text(function: &str, types: &[&str]) -> String {
    let mut head = format!("#define {function}\n");
    for (name, own) in ["T", "L", "H"].iter().zip(types) {
        head.push_str(&format!("typedef {own} {name};\n"));
    }
    source(&[WALK, operand::FAULT, &head, RANDOM, DRAW])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in DType::ALL {
        for distribution in DISTRIBUTIONS {
            all.push((
                fill_key(distribution, dtype),
                fill_text(distribution, dtype),
            ));
        }
    }
    let mut push =
        |function: &str, types: &[&str]| all.push((key(function, types), text(function, types)));
    for dtype in DType::ALL {
        push("INTEGERS", &[c_type(dtype)]);
        for (low, high) in [
            ("i64", "i64"),
            ("i64", "u64"),
            ("u64", "i64"),
            ("u64", "u64"),
        ] {
            push("BETWEEN", &[c_type(dtype), low, high]);
        }
    }
    push("COUNT_UP", &["i64"]);
    push("EXCHANGE", &["i64"]);
    push("CHECK", &["f64"]);
}
