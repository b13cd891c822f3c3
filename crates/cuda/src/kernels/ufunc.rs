//! Folds by any binary elementwise function, which an attribute names: `reduce`, `accumulate` and `reduceat` of functions that have no kernels
//! of their own. The order may matter, so one thread folds the elements of a result sequentially.

use mxnet_core::{Error, KernelContext, Result, device_kernels, registry};
use mxnet_tensor::{DType, DeviceKind, Layout, Scalar, Strides};
use smallvec::SmallVec;

use super::axes::{Axes, MAX_AXES, Visit};
use super::functions;
use super::map::{self, Function};
use super::operand::{Operand, pattern};
use crate::launch::{Arg, Grid, launch};
use crate::text::{MATH, type_name};

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    device_kernels::register("fold", kind, 0, fold)?;
    device_kernels::register("fold_steps", kind, 0, steps)?;
    device_kernels::register("fold_segments", kind, 0, segments)
}

/// Source after the function: `X` is the type of the elements, `Y` that of the results, `T` the compute type.
const KERNEL: &str = "
extern \"C\" __global__ void kernel(const mx::X *x, const mx::boolean *mask, mx::Y *y, mx::Number initial, mx::i64 has_initial, mx::Strided<3> kept, mx::Strided<2> folded, mx::u64 num_outs, mx::u64 len, mx::i64 step) {
    using namespace mx;
    for (u64 o = thread_index(); o < num_outs; o += num_threads()) {
        i64 at[3], in[2];
        offsets_of<u64>(kept, o, at);
        bool begun = has_initial != 0;
        T value = begun ? initial.as<T>() : convert<T>(0);
        for (u64 i = 0; i < len; i++) {
            offsets_of<u64>(folded, i, in);
            if (mask == nullptr || (bool)mask[at[1] + in[1]]) {
                const T next = convert<T>(x[at[0] + in[0]]), before = value;
                if (begun) apply(i, value, before, next);
                else value = next;
                begun = true;
            }
            // Each step is stored (`accumulate`).
            if (step != 0) y[at[2] + (i64)i * step] = convert<Y>(value);
        }
        if (step == 0) y[at[2]] = convert<Y>(value);
    }
}
";

/// The function that a call names, for results of `dtype`.
fn function(context: &KernelContext, dtype: DType) -> Result<Function<'static>> {
    let name = context.str("function");
    let found = registry::find(name).map(|op| functions::function(op, dtype));
    let function = found
        .ok_or_else(|| Error::value(context.op.name, format!("there is no function `{name}`")))??;
    if function.out_natives[..] != [function.compute] || function.natives.len() != 2 {
        let problem = format!("`{name}` does not fold elements of {}", dtype.name());
        return Err(Error::dtype(context.op.name, problem));
    }
    Ok(function)
}

fn text(function: &Function, from: DType, to: DType) -> String {
    let [x, y] = [from, to].map(type_name);
    let mut text = format!("{MATH}\nnamespace mx {{\ntypedef {x} X;\ntypedef {y} Y;\n}}\n");
    // Writing to a string never fails.
    let _ = map::write_function(&mut text, function, 0);
    text.push_str(KERNEL);
    text
}

fn key(function: &Function, from: DType, to: DType) -> String {
    let [compute, from, to] = [function.compute, from, to].map(DType::name);
    format!("fold_function:{}:{compute}:{from}:{to}", function.name)
}

/// A fold of one call: input, mask, result along the axes of the input, and which of these are reduced.
struct Fold<'a> {
    x: Operand<'a>,
    mask: Option<Operand<'a>>,
    y: Operand<'a>,
    folded: SmallVec<[bool; 8]>,
    initial: Option<Scalar>,
    /// Stride between the results of all steps; 0 if there is one result.
    step: isize,
}

impl Fold<'_> {
    fn run(&self, context: &KernelContext, function: &Function) -> Result<()> {
        let zeros = Strides::from_elem(0, self.folded.len());
        let masked = self.mask.as_ref().map_or(&zeros, |mask| &mask.strides);
        let pick = |is_folded: bool, values: &[isize]| -> SmallVec<[isize; 8]> {
            (values.iter().zip(&self.folded))
                .filter(|&(_, &folded)| folded == is_folded)
                .map(|(&value, _)| value)
                .collect()
        };
        let axes = |is_folded: bool, visit: Visit| {
            let shape: SmallVec<[usize; 8]> = (self.x.shape.iter().zip(&self.folded))
                .filter(|&(_, &folded)| folded == is_folded)
                .map(|(&n, _)| n)
                .collect();
            let all = [&self.x.strides, masked, &self.y.strides];
            let count = if is_folded { 2 } else { 3 };
            let strides: SmallVec<[SmallVec<[isize; 8]>; 3]> = all[..count]
                .iter()
                .map(|strides| pick(is_folded, strides))
                .collect();
            Axes::new(&shape, strides.iter().map(|s| &s[..]), visit)
        };
        let (kept, folded) = (axes(false, Visit::MemoryOrder), axes(true, Visit::COrder));
        if kept.0.len() > MAX_AXES || folded.0.len() > MAX_AXES {
            let problem =
                format!("more than {MAX_AXES} axes that do not follow one another in memory");
            return Err(
                Error::value(context.op.name, problem).with_hint("make a contiguous copy first")
            );
        }
        if kept.len() == 0 {
            return Ok(());
        }
        let initial = pattern(self.initial.unwrap_or(Scalar::I64(0)), function.compute);
        let (over_kept, over_folded) = (kept.bytes(0..3), folded.bytes(0..2));
        let (from, to) = (self.x.dtype, self.y.dtype);
        launch(
            context,
            &key(function, from, to),
            || text(function, from, to),
            Grid::of_len(kept.len()),
            &[
                Arg::Pointer(self.x.ptr),
                Arg::Pointer(self.mask.as_ref().map_or(0, |mask| mask.ptr)),
                Arg::Pointer(self.y.ptr),
                Arg::Bytes(&initial),
                Arg::I64(i64::from(self.initial.is_some())),
                Arg::Bytes(&over_kept),
                Arg::Bytes(&over_folded),
                Arg::U64(kept.len() as u64),
                Arg::U64(folded.len() as u64),
                Arg::I64(self.step as i64),
            ],
        )
    }
}

fn fold(context: &KernelContext) -> Result<()> {
    let function = function(context, context.output(0).dtype())?;
    let x = Operand::input(context, 0)?;
    let axes = context.axes("axis", 0)?;
    let folded: SmallVec<[bool; 8]> = (0..x.shape.len()).map(|i| axes.contains(&i)).collect();
    let mask = match context.opt(1) {
        Some(mask) => {
            // Converted in its own shape before it is broadcast, because it has fewer elements then.
            let dense = Operand::dense(context, 1, DType::Bool)?;
            let layout = Layout::contiguous(mask.shape()).broadcast_to(&x.shape)?;
            Some(dense.with(layout.shape(), layout.strides()))
        }
        None => None,
    };
    let y = Operand::of(context.output(0));
    let strides = super::reduce::result_strides(&y.strides, &folded);
    let shape = x.shape.clone();
    let y = y.with(&shape, &strides);
    let initial = context.scalar("initial");
    let fold = Fold {
        x,
        mask,
        y,
        folded,
        initial,
        step: 0,
    };
    fold.run(context, &function)
}

fn steps(context: &KernelContext) -> Result<()> {
    let function = function(context, context.output(0).dtype())?;
    let x = Operand::input(context, 0)?;
    let axis = context.axis("axis", 0)?;
    let y = Operand::of(context.output(0));
    let folded = (0..x.shape.len()).map(|i| i == axis).collect();
    let step = y.strides[axis];
    if x.shape[axis] == 0 {
        return Ok(());
    }
    let fold = Fold {
        x,
        mask: None,
        y,
        folded,
        initial: None,
        step,
    };
    fold.run(context, &function)
}

fn segments(context: &KernelContext) -> Result<()> {
    let function = function(context, context.output(0).dtype())?;
    let x = Operand::input(context, 0)?;
    let axis = context.axis("axis", 0)?;
    let y = Operand::of(context.output(0));
    let starts = context.ints("starts");
    let (len, x_step, y_step) = (x.shape[axis] as i64, x.strides[axis], y.strides[axis]);
    for (j, &start) in starts.iter().enumerate() {
        let end = starts.get(j + 1).copied().unwrap_or(len).max(start + 1);
        let mut shape = x.shape.clone();
        shape[axis] = (end - start) as usize;
        let moved = |ptr: u64, by: i64, step: isize, dtype: DType| {
            ptr.wrapping_add_signed(by * step as i64 * dtype.size() as i64)
        };
        let mut strides = Strides::from_slice(&y.strides);
        strides[axis] = 0;
        let fold = Fold {
            x: Operand::at(
                moved(x.ptr, start, x_step, x.dtype),
                &shape,
                &x.strides,
                x.dtype,
            ),
            mask: None,
            y: Operand::at(
                moved(y.ptr, j as i64, y_step, y.dtype),
                &shape,
                &strides,
                y.dtype,
            ),
            folded: (0..shape.len()).map(|i| i == axis).collect(),
            initial: None,
            step: 0,
        };
        fold.run(context, &function)?;
    }
    Ok(())
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for op in functions::binary() {
        for dtype in functions::dtypes(op) {
            if let Ok(function) = functions::function(op, dtype)
                && function.out_natives[..] == [function.compute]
                && function.natives[..] == [function.compute, function.compute]
                && function.results.iter().all(|result| !result.contains("p0"))
            {
                all.push((key(&function, dtype, dtype), text(&function, dtype, dtype)));
            }
        }
    }
}
