//! Reductions of expressions: generated kernels that compute a value from one element of each input and combine the values over some axes.
//!
//! If the reduced axes are contiguous in memory, a block of threads reduces the elements of an output; otherwise each thread reduces those of one
//! output. Long reductions are split into parts, whose results are combined by a second launch. All of this depends only on shapes and strides, and the
//! order of combination is fixed: results are the same at every run.

use std::fmt::Write;

use mxnet_core::{KernelContext, Result};
use mxnet_tensor::DType;
use smallvec::SmallVec;

use super::axes::{Axes, MAX_AXES, Visit};
use super::map::DTypes;
use super::operand::Operand;
use crate::launch::{Arg, Grid, launch};
use crate::text::{MATH, type_name};

/// A reduction.
#[derive(Clone, Debug)]
pub(super) struct Fold<'a> {
    /// Name of the reduction in kernel keys.
    pub name: &'a str,
    /// Compute type, `T` in the kernel. It is also the type `Acc` of the combined values, unless `define` defines that.
    pub compute: DType,
    /// Definitions of types and functions.
    pub define: &'a str,
    /// The neutral element, an `Acc`.
    pub neutral: &'a str,
    /// The value of one element, an `Acc`, from the inputs `a`, `b`, ..., the numbers `p0`, `p1`, ... and `i`, the index of the element in its
    /// reduction.
    pub lift: &'a str,
    /// Combination of two values `s` and `t`, an `Acc`; `s` comes first.
    pub combine: &'a str,
    /// One expression per output, of `s`, the number of elements `n` (f64), and `p0`, `p1`, ...
    pub results: &'a [&'a str],
    /// Types of the inputs in the expressions.
    pub natives: DTypes,
    /// Types of the results.
    pub out_natives: DTypes,
    /// Upper bound of the size of an `Acc` in bytes.
    pub acc_bytes: usize,
    /// Whether `lift` uses `i`; the index counts the reduced axes in C order.
    pub counts: bool,
}

/// Number of elements that are folded into one value before it is combined with others, which keeps the rounding errors of sums small.
const CHUNK: u64 = 64;

/// Whether a block or a thread reduces the elements of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Block,
    Thread,
}

/// How a reduction is split.
struct Plan {
    by: By,
    num_outs: u64,
    len: u64,
    /// Number of parts of each reduction, and elements per part (the last may be shorter).
    parts: u64,
    part_len: u64,
}

impl Plan {
    fn new(kept: &Axes, folded: &Axes, first_input: usize) -> Plan {
        let (num_outs, len) = (kept.len() as u64, folded.len() as u64);
        let step = |axes: &Axes| {
            axes.0
                .last()
                .map_or(isize::MAX, |axis| match axis.strides[first_input] {
                    0 => isize::MAX,
                    stride => stride.abs(),
                })
        };
        let by = match step(folded) <= step(kept) || num_outs < 32 {
            true if len > 32 || num_outs < 32 => By::Block,
            true => By::Thread,
            false => By::Thread,
        };
        // A block takes 64 elements per thread, unless there are enough blocks without more splitting.
        let longest = match by {
            By::Block if num_outs >= 2048 => 1 << 20,
            By::Block => 256 * CHUNK,
            By::Thread if num_outs >= 1 << 14 => 1 << 13,
            By::Thread => 512,
        };
        let parts = len.div_ceil(longest).clamp(1, 1 << 14);
        let part_len = len.div_ceil(parts).max(1);
        Plan {
            by,
            num_outs,
            len,
            parts: len.div_ceil(part_len).max(1),
            part_len,
        }
    }

    fn grid(&self) -> Grid {
        let threads = match self.by {
            By::Block => self.part_len.next_multiple_of(32).clamp(32, 256),
            By::Thread => self.num_outs.next_multiple_of(32).clamp(32, 256),
        };
        let blocks = match self.by {
            By::Block => self.num_outs,
            By::Thread => self.num_outs.div_ceil(threads),
        };
        Grid {
            blocks: [blocks.clamp(1, 1 << 16) as u32, self.parts as u32, 1],
            threads: [threads as u32, 1, 1],
            shared_bytes: 0,
        }
    }
}

/// Reduces inputs of `shape` over the marked axes into `outs`, which have an element for each position along the other axes. Strides of all
/// operands are along the axes of `shape`; those of outputs along reduced axes are ignored.
pub(super) fn run(
    context: &KernelContext,
    fold: &Fold,
    shape: &[usize],
    folded: &[bool],
    outs: &[Operand],
    ins: &[Operand],
    params: &[f64],
) -> Result<()> {
    let pick = |is_folded: bool, values: &[isize]| -> SmallVec<[isize; 8]> {
        (values.iter().zip(folded))
            .filter(|&(_, &folded)| folded == is_folded)
            .map(|(&value, _)| value)
            .collect()
    };
    let sizes: SmallVec<[isize; 8]> = shape.iter().map(|&n| n as isize).collect();
    let axes = |is_folded: bool, visit: Visit| {
        let shape: SmallVec<[usize; 8]> = pick(is_folded, &sizes)
            .iter()
            .map(|&n| n as usize)
            .collect();
        // Inputs first: they are larger, so their memory order decides.
        let strides: SmallVec<[SmallVec<[isize; 8]>; 8]> = (ins.iter())
            .chain(if is_folded { &[] } else { outs })
            .map(|x| pick(is_folded, &x.strides))
            .collect();
        Axes::new(&shape, strides.iter().map(|strides| &strides[..]), visit)
    };
    let kept = axes(false, Visit::MemoryOrder);
    let over = axes(
        true,
        if fold.counts {
            Visit::COrder
        } else {
            Visit::MemoryOrder
        },
    );
    if kept.0.iter().any(|axis| axis.len == 0) {
        return Ok(());
    }
    let starts: SmallVec<[u64; 8]> = ins.iter().chain(outs).map(|x| x.ptr).collect();
    let call = Launch {
        context,
        fold,
        params,
        outs: outs.iter().map(|y| y.dtype).collect(),
        ins: ins.iter().map(|x| x.dtype).collect(),
    };
    call.over(kept, &over, starts)
}

struct Launch<'a> {
    context: &'a KernelContext<'a>,
    fold: &'a Fold<'a>,
    params: &'a [f64],
    outs: DTypes,
    ins: DTypes,
}

impl Launch<'_> {
    /// Launches over these axes; `starts` are the addresses of the operands, inputs first. Outer kept axes beyond the kernel's limit are looped over
    /// here.
    fn over(&self, mut kept: Axes, folded: &Axes, starts: SmallVec<[u64; 8]>) -> Result<()> {
        if folded.0.len() > MAX_AXES {
            return Err(mxnet_core::Error::value(
                self.context.op.name,
                format!(
                    "{} axes that do not follow one another in memory are folded, at most {MAX_AXES} are on {}",
                    folded.0.len(),
                    self.context.device
                ),
            )
            .with_hint("fold some of the axes first"));
        }
        if kept.0.len() <= MAX_AXES {
            return self.launch(&kept, folded, &starts);
        }
        let leading = kept.0.remove(0);
        for i in 0..leading.len as isize {
            let sizes = self
                .ins
                .iter()
                .chain(&self.outs)
                .map(|dtype| dtype.size() as isize);
            let starts = (starts.iter().zip(leading.strides.iter().zip(sizes)))
                .map(|(&start, (&stride, size))| {
                    start.wrapping_add_signed((i * stride * size) as i64)
                })
                .collect();
            self.over(kept.clone(), folded, starts)?;
        }
        Ok(())
    }

    fn launch(&self, kept: &Axes, folded: &Axes, starts: &[u64]) -> Result<()> {
        let plan = Plan::new(kept, folded, 0);
        let num_ins = self.ins.len();
        let (over_kept, over_folded) = (kept.bytes(0..starts.len()), folded.bytes(0..num_ins));
        let partial = match plan.parts > 1 {
            true => Some(
                self.context
                    .workspace((plan.num_outs * plan.parts) as usize * self.fold.acc_bytes)?,
            ),
            false => None,
        };
        let mut args: SmallVec<[Arg; 16]> =
            starts.iter().map(|&start| Arg::Pointer(start)).collect();
        args.push(Arg::Pointer(
            partial.as_ref().map_or(0, |memory| memory.ptr() as u64),
        ));
        args.extend(self.params.iter().map(|&p| Arg::F64(p)));
        args.push(Arg::Bytes(&over_kept));
        args.push(Arg::Bytes(&over_folded));
        args.extend([plan.num_outs, plan.len, plan.part_len].map(Arg::U64));
        let (num_params, by) = (self.params.len(), plan.by);
        let key = |part: &str| {
            let mut key = format!(
                "fold:{}:{}:{part}",
                self.fold.name,
                self.fold.compute.name()
            );
            for dtype in self.ins.iter().chain(&self.outs) {
                let _ = write!(key, ":{}", dtype.name());
            }
            key
        };
        let by_name = match by {
            By::Block => "block",
            By::Thread => "thread",
        };
        launch(
            self.context,
            &key(by_name),
            || text(self.fold, by, &self.ins, &self.outs, num_params),
            plan.grid(),
            &args,
        )?;
        let Some(partial) = &partial else {
            return Ok(());
        };
        // The partial values of an output, one per part, are contiguous.
        let over_outs = kept.bytes(num_ins..starts.len());
        let mut args: SmallVec<[Arg; 12]> = starts[num_ins..]
            .iter()
            .map(|&start| Arg::Pointer(start))
            .collect();
        args.push(Arg::Pointer(partial.ptr() as u64));
        args.extend(self.params.iter().map(|&p| Arg::F64(p)));
        args.push(Arg::Bytes(&over_outs));
        args.extend([plan.num_outs, plan.len, plan.parts].map(Arg::U64));
        let grid = Grid {
            blocks: [plan.num_outs.clamp(1, 1 << 16) as u32, 1, 1],
            threads: [plan.parts.next_multiple_of(32).clamp(32, 256) as u32, 1, 1],
            shared_bytes: 0,
        };
        launch(
            self.context,
            &key("parts"),
            || parts_text(self.fold, &self.ins, &self.outs, num_params),
            grid,
            &args,
        )
    }
}

/// The names of the inputs in expressions.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Writes the functions `neutral`, `lift`, `Combine` and `finish`.
fn write_functions(text: &mut String, fold: &Fold, num_params: usize) -> std::fmt::Result {
    writeln!(
        text,
        "\nnamespace mx {{\ntypedef {} T;",
        type_name(fold.compute)
    )?;
    match fold.define.is_empty() {
        true => writeln!(text, "typedef T Acc;")?,
        false => writeln!(text, "{}", fold.define)?,
    }
    writeln!(
        text,
        "static_assert(sizeof(Acc) <= {}, \"the host reserves less\");",
        fold.acc_bytes
    )?;
    writeln!(text, "MX_FN Acc neutral() {{ return {}; }}", fold.neutral)?;
    write!(text, "MX_FN Acc lift(u64 i")?;
    for (name, native) in NAMES.iter().zip(&fold.natives) {
        write!(text, ", {} {name}", type_name(*native))?;
    }
    for p in 0..num_params {
        write!(text, ", f64 p{p}")?;
    }
    writeln!(text, ") {{ return {}; }}", fold.lift)?;
    writeln!(
        text,
        "struct Combine {{ __device__ Acc operator()(Acc s, Acc t) const {{ return {}; }} }};",
        fold.combine
    )?;
    write!(text, "MX_FN void finish(Acc s, f64 n")?;
    for (k, native) in fold.out_natives.iter().enumerate() {
        write!(text, ", {} &r{k}", type_name(*native))?;
    }
    for p in 0..num_params {
        write!(text, ", f64 p{p}")?;
    }
    writeln!(text, ") {{")?;
    for (k, result) in fold.results.iter().enumerate() {
        writeln!(text, "    r{k} = {result};")?;
    }
    writeln!(text, "}}\n}}")
}

/// Statements that store the results of `acc` at `at[first + k]`.
fn store(fold: &Fold, outs: &DTypes, num_params: usize, first: usize, margin: &str) -> String {
    let mut text = String::new();
    for (k, native) in fold.out_natives.iter().enumerate() {
        let _ = writeln!(text, "{margin}{} r{k};", type_name(*native));
    }
    let _ = write!(text, "{margin}finish(acc, (f64)len");
    for k in 0..outs.len() {
        let _ = write!(text, ", r{k}");
    }
    for p in 0..num_params {
        let _ = write!(text, ", p{p}");
    }
    let _ = writeln!(text, ");");
    for (k, out) in outs.iter().enumerate() {
        let at = first + k;
        let _ = writeln!(
            text,
            "{margin}y{k}[at[{at}]] = convert<{}>(r{k});",
            type_name(*out)
        );
    }
    text
}

fn parameters(num_params: usize) -> String {
    (0..num_params).map(|p| format!("double p{p}, ")).collect()
}

/// Source of the first launch.
fn text(fold: &Fold, by: By, ins: &DTypes, outs: &DTypes, num_params: usize) -> String {
    let mut text = String::from(MATH);
    let _ = write_functions(&mut text, fold, num_params);
    let _ = write_text(&mut text, fold, by, ins, outs, num_params);
    text
}

fn write_text(
    text: &mut String,
    fold: &Fold,
    by: By,
    ins: &DTypes,
    outs: &DTypes,
    num_params: usize,
) -> std::fmt::Result {
    let (num_ins, num_all) = (ins.len(), ins.len() + outs.len());
    write!(text, "extern \"C\" __global__ void kernel(")?;
    for (k, dtype) in ins.iter().enumerate() {
        write!(text, "const mx::{} *x{k}, ", type_name(*dtype))?;
    }
    for (k, dtype) in outs.iter().enumerate() {
        write!(text, "mx::{} *y{k}, ", type_name(*dtype))?;
    }
    writeln!(
        text,
        "mx::Acc *partial, {}mx::Strided<{num_all}> kept, mx::Strided<{num_ins}> folded, mx::u64 num_outs, mx::u64 len, mx::u64 part_len) {{
    using namespace mx;
    const u64 first = blockIdx.y * part_len;
    const u64 end = first + part_len < len ? first + part_len : len;
    const Combine combine;",
        parameters(num_params)
    )?;
    let (start, step) = match by {
        By::Block => ("blockIdx.x", "gridDim.x"),
        By::Thread => ("thread_index()", "(u64)gridDim.x * blockDim.x"),
    };
    let (begin, stride) = match by {
        By::Block => ("first + threadIdx.x", "blockDim.x"),
        By::Thread => ("first", "1"),
    };
    writeln!(
        text,
        "    for (u64 o = {start}; o < num_outs; o += {step}) {{
        i64 at[{num_all}], in[{num_ins}];
        offsets_of<u64>(kept, o, at);
        Acc acc = neutral();
        for (u64 stretch = {begin}; stretch < end; stretch += (u64){stride} * {CHUNK}) {{
            Acc some = neutral();
            for (u64 i = stretch, k = 0; i < end && k < {CHUNK}; i += {stride}, k++) {{
                offsets_of<u64>(folded, i, in);"
    )?;
    write!(text, "                some = combine(some, lift(i")?;
    for (k, native) in fold.natives.iter().enumerate() {
        write!(
            text,
            ", convert<{}>(x{k}[at[{k}] + in[{k}]])",
            type_name(*native)
        )?;
    }
    for p in 0..num_params {
        write!(text, ", p{p}")?;
    }
    writeln!(
        text,
        "));\n            }}\n            acc = combine(acc, some);\n        }}"
    )?;
    if by == By::Block {
        writeln!(text, "        acc = fold_block(acc, neutral(), combine);")?;
        writeln!(text, "        if (threadIdx.x != 0) continue;")?;
    }
    writeln!(
        text,
        "        if (gridDim.y > 1) {{ partial[o * gridDim.y + blockIdx.y] = acc; continue; }}"
    )?;
    write!(
        text,
        "{}",
        store(fold, outs, num_params, num_ins, "        ")
    )?;
    writeln!(text, "    }}\n}}")
}

/// Source of the second launch, which combines the parts.
fn parts_text(fold: &Fold, _ins: &DTypes, outs: &DTypes, num_params: usize) -> String {
    let mut text = String::from(MATH);
    let _ = write_functions(&mut text, fold, num_params);
    let _ = write!(text, "extern \"C\" __global__ void kernel(");
    for (k, dtype) in outs.iter().enumerate() {
        let _ = write!(text, "mx::{} *y{k}, ", type_name(*dtype));
    }
    let num_outs = outs.len();
    let _ = writeln!(
        text,
        "const mx::Acc *partial, {}mx::Strided<{num_outs}> kept, mx::u64 num_outs, mx::u64 len, mx::u64 parts) {{
    using namespace mx;
    const Combine combine;
    for (u64 o = blockIdx.x; o < num_outs; o += gridDim.x) {{
        i64 at[{num_outs}];
        offsets_of<u64>(kept, o, at);
        Acc acc = neutral();
        for (u64 part = threadIdx.x; part < parts; part += blockDim.x) acc = combine(acc, partial[o * parts + part]);
        acc = fold_block(acc, neutral(), combine);
        if (threadIdx.x != 0) continue;
{}    }}
}}",
        parameters(num_params),
        store(fold, outs, num_params, 0, "        ")
    );
    text
}

/// Sources for tests, with operands in the compute types.
pub(super) fn texts(fold: &Fold, num_params: usize, all: &mut Vec<(String, String)>) {
    let (ins, outs) = (&fold.natives, &fold.out_natives);
    let key = |part: &str| format!("fold:{}:{}:{part}", fold.name, fold.compute.name());
    all.push((key("block"), text(fold, By::Block, ins, outs, num_params)));
    all.push((key("thread"), text(fold, By::Thread, ins, outs, num_params)));
    all.push((key("parts"), parts_text(fold, ins, outs, num_params)));
}
