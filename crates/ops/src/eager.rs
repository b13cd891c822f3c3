//! Eager execution: infer, allocate, then run inline or push to the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mxnet_engine::{Access, Failure, Op, Resource, engine};
use mxnet_kernels::map::Rows;
use mxnet_kernels::{Elem, Threads};
use mxnet_tensor::{
    Casting, DType, DeviceKind, Dims, Layout, Scalar, Tensor, broadcast_shapes, can_cast,
};
use smallvec::SmallVec;

use crate::args::{Args, Attrs, ParamKind};
use crate::cx::{CallCx, KernelCx, RngState, ViewCx};
use crate::elementwise::comparison::{self, Beyond};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::opdef::{Cost, Cpu, Inferred, OpDef, Rng, Viewed};
use crate::types::{self, Types};
use crate::{Array, Outputs, cpu, laid, quick, random, shape, variants};

/// The engine's pool, as kernels see it.
pub struct Pool;

impl Threads for Pool {
    fn count(&self) -> usize {
        engine().num_threads()
    }

    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        engine().run_tasks(n, task);
    }
}

/// Executes a call at once.
#[inline]
pub(crate) fn run(call: &Call) -> Result<Outputs> {
    if let Cpu::Map(_) = call.op.cpu
        && let Some(done) = quick::call(call)?
    {
        return Ok(SmallVec::from_buf([done]));
    }
    if let Some(done) = quick::convert(call)? {
        return Ok(SmallVec::from_buf([done]));
    }
    run_general(call)
}

fn run_general(call: &Call) -> Result<Outputs> {
    let device = call.device()?;
    if device.kind() != DeviceKind::Cpu && !matches!(call.op.cpu, Cpu::View(_) | Cpu::Composite(_))
    {
        let Some(kernel) = variants::find(call.op, device.kind()) else {
            return Err(
                Error::device(call.op.name, format!("no kernel for {device}"))
                    .with_hint("copy the arrays with `.to_device(mx.cpu())`"),
            );
        };
        return match call.op.cpu {
            Cpu::Map(_) => elementwise(call, Kernel::Fn(kernel)),
            _ => filled(call, kernel),
        };
    }
    match call.op.cpu {
        Cpu::Map(rows) => {
            if let Some(found) = comparison::of_both_signs(call)? {
                return into_outs(call, SmallVec::from_buf([found]));
            }
            let (compute, _) = types::resolve_call(call)?;
            let params = call.attrs.values().iter().map(cpu::row_param).collect();
            elementwise(
                call,
                Kernel::Map {
                    rows,
                    compute: cpu::row_elem(rows, compute),
                    params,
                },
            )
        }
        Cpu::Kernel(kernel) => filled(call, kernel),
        Cpu::View(view) => viewed(call, view),
        Cpu::Eager(body) => {
            for x in call.inputs.iter().flatten() {
                x.wait_to_read()?;
            }
            into_outs(call, body(&call.cx())?)
        }
        Cpu::Composite(body) => into_outs(call, body(&call.cx())?),
    }
}

/// Outputs that `outs` already holds are copied there, unless they were computed there.
fn into_outs(call: &Call, results: Outputs) -> Result<Outputs> {
    if call.outs.is_empty() {
        return Ok(results);
    }
    results
        .into_iter()
        .enumerate()
        .map(|(i, result)| match call.outs.get(i).copied().flatten() {
            Some(out)
                if out.dtype() == result.dtype()
                    && cpu::same_elements(out.tensor(), result.tensor()) =>
            {
                Ok(result)
            }
            Some(out) => {
                let spreads = call.op.out_spreads
                    && result.shape() != out.shape()
                    && broadcast_shapes(&[result.shape(), out.shape()])
                        .is_ok_and(|both| both.as_slice() == out.shape());
                let result = match spreads {
                    true => result.broadcast_to(out.shape())?,
                    false => result,
                };
                check_out(call, i, out, result.shape(), result.dtype())?;
                match out.shares_elements() {
                    true => copy_into_shared(&result, out)?,
                    false => copy_into(&result, out)?,
                }
                let (entry, seen) = (
                    result.entry().cloned(),
                    Array::from_tensor(out.tensor().clone()),
                );
                Ok(match entry {
                    Some((node, index)) => seen.with_entry(node, index),
                    None => seen,
                })
            }
            None => Ok(result),
        })
        .collect()
}

/// Outputs of the shape all operands broadcast to, filled by `kernel`.
fn elementwise(call: &Call, kernel: Kernel) -> Result<Outputs> {
    let (compute, returned) = types::resolve_call(call)?;
    if let Err(overflow) = check_weak(call, compute) {
        let answer = match comparison::beyond(call, compute) {
            Some(Beyond::Answer(answer)) => answer,
            Some(Beyond::True) => {
                let truth = Array::weak_scalar(Scalar::Bool(true))?;
                let inputs: SmallVec<[Option<&Array>; 2]> = call
                    .inputs
                    .iter()
                    .map(|x| x.map(|x| if x.is_weak() { &truth } else { x }))
                    .collect();
                return elementwise(
                    &Call {
                        inputs: &inputs,
                        ..*call
                    },
                    kernel,
                );
            }
            None => return Err(overflow),
        };
        let shapes: SmallVec<[&[usize]; 4]> =
            call.inputs.iter().flatten().map(|x| x.shape()).collect();
        let (shape, value) = (broadcast_shapes(&shapes)?, Scalar::Bool(answer));
        let result = crate::creation::full(&shape, value, DType::Bool, call.device()?)?;
        return into_outs(call, SmallVec::from_buf([result]));
    }
    if let Some(rounded) = rounded_to_half(call, compute)? {
        let inputs: SmallVec<[Option<&Array>; 2]> = call
            .inputs
            .iter()
            .zip(&rounded)
            .map(|(x, rounded)| rounded.as_ref().or(*x))
            .collect();
        return elementwise(
            &Call {
                inputs: &inputs,
                ..*call
            },
            kernel,
        );
    }
    let num_outs = if let Cpu::Map(rows) = call.op.cpu {
        rows.outs as usize
    } else {
        1
    };
    let shapes: SmallVec<[&[usize]; 4]> = call.inputs.iter().flatten().map(|x| x.shape()).collect();
    let mut shape = broadcast_shapes(&shapes)?;
    // Outputs may have more axes and be longer than what the operands broadcast to.
    if let Some(out) = call.outs.iter().flatten().next()
        && out.shape() != shape.as_slice()
        && broadcast_shapes(&[&shape, out.shape()]).is_ok_and(|both| both.as_slice() == out.shape())
    {
        shape = Dims::from_slice(out.shape());
    }

    // Overlap that would let an element be written before it is read: compute aside, then copy. Halves are rounded before they go into wider elements.
    let aside = call.outs.iter().flatten().any(|out| {
        matches!(returned, DType::F16 | DType::BF16) && out.dtype() != returned
            || out.shares_elements()
            || call.inputs.iter().flatten().any(|x| {
                cpu::overlaps(out.tensor(), x.tensor())
                    && !cpu::same_elements(out.tensor(), x.tensor())
            })
    });
    let mut outputs = Outputs::new();
    let mut fresh = 0_u32;
    for i in 0..num_outs {
        match call.outs.get(i).copied().flatten() {
            Some(out) => {
                check_out(call, i, out, &shape, returned)?;
                if aside {
                    fresh |= 1 << i;
                    outputs.push(Array::uninitialised(&shape, returned, out.device())?);
                } else {
                    outputs.push(Array::from_tensor(out.tensor().clone()));
                }
            }
            None => {
                fresh |= 1 << i;
                outputs.push(allocate_like(call, &shape, returned)?);
            }
        }
    }
    launch(call, kernel, &outputs, fresh)?;
    if aside {
        return into_outs(call, outputs);
    }
    Ok(outputs)
}

/// An output of `shape` whose axes lie in memory as those of the inputs do, whatever their directions, if these agree; C order otherwise.
fn allocate_like(call: &Call, shape: &Dims, dtype: DType) -> Result<Array> {
    let device = call.device()?;
    let mut full = call
        .inputs
        .iter()
        .flatten()
        .filter(|x| x.shape() == shape.as_slice());
    if let Some(first) = full.next() {
        let dense = shape::dense_like(first.layout());
        if let Some(layout) = dense.filter(|_| !first.layout().is_contiguous())
            && full.all(|x| x.layout().strides() == first.layout().strides())
        {
            let storage = mxnet_tensor::Storage::allocate(layout.len() * dtype.size(), device)?;
            return Ok(Array::from_tensor(Tensor::new(storage, layout, dtype)?));
        }
    }
    let inputs = call.inputs.iter().flatten();
    let inputs = inputs.filter(|x| x.ndim() > 0 && !x.is_weak());
    if inputs.clone().any(|x| !x.layout().is_contiguous()) {
        // Axes along which elements are repeated have step 0, and tell nothing.
        let layouts = inputs.map(|x| x.layout().broadcast_to(shape));
        let layouts: SmallVec<[Layout; 3]> = layouts.collect::<Result<_, _>>()?;
        let layouts: SmallVec<[&Layout; 3]> = layouts.iter().collect();
        if let Some(order) = laid::axes_as(&layouts, shape.len()) {
            return laid::allocate(&order, shape, dtype, device);
        }
    }
    Array::uninitialised(shape, dtype, device)
}

/// Python numbers among halves, rounded to halves: rows compute in float32, where they would not be. `None`: there are none.
fn rounded_to_half(call: &Call, compute: DType) -> Result<Option<SmallVec<[Option<Array>; 2]>>> {
    let is_number = |x: &&Array| x.is_weak() && x.kind() != mxnet_tensor::Kind::Bool;
    let promotes = matches!(call.op.types, Types::Promote { .. });
    if !matches!(compute, DType::F16 | DType::BF16)
        || !promotes
        || !call.inputs.iter().flatten().any(is_number)
        || call.inputs.iter().flatten().all(|x| x.is_weak())
    {
        return Ok(None);
    }
    let rounded = call.inputs.iter().map(|x| {
        x.filter(is_number)
            .map(|x| Array::scalar(cpu::read_scalar(x.tensor()), compute))
            .transpose()
    });
    rounded.collect::<Result<_>>().map(Some)
}

/// A Python integer must fit the dtype it takes on.
fn check_weak(call: &Call, compute: DType) -> Result<()> {
    let counted = matches!(call.op.types, Types::Counted { .. });
    // A condition is only asked whether it is 0.
    let asked = usize::from(matches!(call.op.types, Types::Choose));
    for (i, x) in call.inputs.iter().enumerate().skip(asked) {
        let Some(value) = x.and_then(Array::number) else {
            continue;
        };
        let dtype = if counted && i == 1 {
            DType::I32
        } else {
            compute
        };
        if !value.fits(dtype) {
            return Err(types::out_of_bounds(call.op.name, value, dtype));
        }
    }
    Ok(())
}

fn filled(call: &Call, kernel: fn(&KernelCx) -> Result<()>) -> Result<Outputs> {
    let cx = call.cx();
    let specs = (call.op.infer)(&cx)?;
    let dtypes = output_dtypes(call, &specs)?;
    let device = match call.op.params.iter().any(|p| p.name == "device") {
        true => cx.device("device").map_or_else(|| call.device(), Ok)?,
        false => call.device()?,
    };
    let is_plain = || {
        call.inputs
            .iter()
            .flatten()
            .all(|x| x.layout().is_contiguous())
    };
    let order = call
        .op
        .order
        .filter(|_| !is_plain())
        .and_then(|order| order(&cx));
    let mut outputs = Outputs::new();
    let mut aside = false;
    let mut fresh = 0_u32;
    for (i, (spec, &dtype)) in specs.iter().zip(&dtypes).enumerate() {
        if let Some(out) = call.outs.get(i).copied().flatten() {
            check_out(call, i, out, &spec.shape, dtype)?;
            let direct = out.dtype() == dtype
                && out.layout().is_contiguous()
                && !call
                    .inputs
                    .iter()
                    .flatten()
                    .any(|x| cpu::overlaps(out.tensor(), x.tensor()));
            if direct {
                outputs.push(Array::from_tensor(out.tensor().clone()));
                continue;
            }
            aside = true;
        }
        fresh |= 1 << i;
        outputs.push(match order.as_deref() {
            Some(order) if order.len() == spec.shape.len() => {
                laid::allocate(order, &spec.shape, dtype, device)?
            }
            _ => Array::uninitialised(&spec.shape, dtype, device)?,
        });
    }
    launch(call, Kernel::Fn(kernel), &outputs, fresh)?;
    if call.op.waits {
        for y in &outputs {
            y.wait_to_read()?;
        }
    }
    if aside {
        return into_outs(call, outputs);
    }
    Ok(outputs)
}

fn output_dtypes(call: &Call, specs: &Inferred) -> Result<SmallVec<[DType; 2]>> {
    specs
        .iter()
        .map(|spec| match (spec.dtype, call.op.types) {
            (Some(dtype), _) => Ok(dtype),
            (None, Types::First) => Ok(call.cx().dtype_of(0)),
            (None, Types::Promote { .. } | Types::Choose | Types::Counted { .. }) => {
                types::resolve_call(call).map(|(_, returned)| returned)
            }
            (None, Types::Infer) => Err(Error::internal(call.op.name, "inference gave no dtype")),
        })
        .collect()
}

fn viewed(call: &Call, view: fn(&ViewCx) -> Result<Viewed>) -> Result<Outputs> {
    let cx = call.cx();
    let x = cx.input(0);
    let result = match view(&ViewCx {
        op: call.op,
        layout: x.layout(),
        args: cx.args,
    })? {
        Viewed::Shared(layout) => x.seen_as(layout),
        Viewed::Checked { layout, writable } => {
            // Checks that the layout lies within the storage.
            Tensor::new(x.tensor().storage().clone(), layout.clone(), x.dtype())?;
            let locked = x.tensor().is_read_only() || !writable;
            Array::from_tensor(x.tensor().with_layout(layout).locked(locked))
        }
        Viewed::Locked(layout) => Array::from_tensor(x.tensor().with_layout(layout).locked(true)),
        Viewed::RealParts => Array::from_tensor(x.tensor().real()),
        Viewed::ImaginaryParts => Array::from_tensor(x.tensor().imag()?),
        Viewed::Copied(shape) => copied(x)?.seen_as(Layout::contiguous(&shape)),
        Viewed::CopiedFortran(shape) => {
            let turned = x.seen_as(x.layout().transpose(None)?);
            copied(&turned)?.seen_as(Layout::fortran(&shape))
        }
    };
    into_outs(call, SmallVec::from_buf([result]))
}

/// The elements in C order in memory of their own, outside any recording.
fn copied(x: &Array) -> Result<Array> {
    let call = Call {
        op: &shape::COPY,
        inputs: &[Some(x)],
        attrs: &Attrs::none(),
        outs: &[],
        dtype: None,
    };
    crate::invoke::only(call.op, run(&call)?)
}

/// Copies elements, converting their dtype; `to` may overlap `from`.
pub(crate) fn copy_into(from: &Array, to: &Array) -> Result<()> {
    copy_by(Kernel::Fn(shape::copy_kernel), from, to)
}

/// The same where elements of `to` may be the same memory: one thread writes it, so that no two write a place at once.
pub(crate) fn copy_into_shared(from: &Array, to: &Array) -> Result<()> {
    copy_by(Kernel::Fn(shape::copy_alone), from, to)
}

fn copy_by(kernel: Kernel, from: &Array, to: &Array) -> Result<()> {
    let call = Call {
        op: &shape::COPY,
        inputs: &[Some(from)],
        attrs: &Attrs::none(),
        outs: &[Some(to)],
        dtype: Some(to.dtype()),
    };
    let outputs = SmallVec::<[Array; 1]>::from_buf([Array::from_tensor(to.tensor().clone())]);
    launch(&call, kernel, &outputs, 0)
}

/// Which conversions from the result's dtype to that of `out` the call allows. Functions that join arrays do what their argument `casting` says;
/// their `out` has a dtype, beside which none can be asked for.
fn out_casting(call: &Call) -> Result<Casting> {
    let joins = (call.op.params.first()).is_some_and(|param| param.kind == ParamKind::Arrays);
    if !joins || !call.op.params.iter().any(|param| param.name == "casting") {
        return Ok(call.op.out_casting);
    }
    let cx = call.cx();
    if cx.dtype("dtype").is_some() {
        return Err(cx.dtype_error("takes `out` or `dtype`, not both: `out` has a dtype"));
    }
    Ok(cx.str("casting").parse().unwrap_or(call.op.out_casting))
}

fn check_out(call: &Call, i: usize, out: &Array, shape: &[usize], dtype: DType) -> Result<()> {
    if out.shape() != shape {
        let problem = format!(
            "non-broadcastable output operand: `out` has wrong shape {}, the result has shape {}",
            Tuple(out.shape()),
            Tuple(shape)
        );
        return Err(Error::shape(call.op.name, problem));
    }
    if call.op.out_held && !can_cast(out.dtype(), dtype, Casting::Safe) {
        let problem = format!(
            "cannot cast `out` from {} to {}, the dtype of the elements, under casting rule 'safe'",
            out.dtype().name(),
            dtype.name()
        );
        return Err(Error::dtype(call.op.name, problem));
    }
    let casting = out_casting(call)?;
    if !can_cast(dtype, out.dtype(), casting) {
        let problem = format!(
            "cannot cast output {i} from {} to {} under casting rule '{}'",
            dtype.name(),
            out.dtype().name(),
            casting.name()
        );
        return Err(Error::dtype(call.op.name, problem));
    }
    // Elements that share memory are computed aside, and written one after the other.
    match out.tensor().is_read_only() {
        true => out.check_writable(call.op.name, "output array"),
        false => Ok(()),
    }
}

/// What an operation runs.
#[derive(Clone)]
pub(crate) enum Kernel {
    /// Rows over broadcast operands.
    Map {
        /// The rows.
        rows: &'static Rows,
        /// What they compute in.
        compute: Elem,
        /// The operator's numeric attributes.
        params: SmallVec<[f64; 4]>,
    },
    /// A function of the call.
    Fn(fn(&KernelCx) -> Result<()>),
}

/// Everything `execute` needs, owned: what the engine keeps while an operation is queued.
struct Queued {
    op: &'static OpDef,
    kernel: Kernel,
    inputs: SmallVec<[Option<Tensor>; 4]>,
    outputs: SmallVec<[Tensor; 2]>,
    attrs: Attrs,
    training: bool,
    rng: RngState,
}

/// Runs the kernel inline if it is cheap and its variables are free, else pushes it. Bit `i` of `fresh`: nobody else knows output `i` yet.
pub(crate) fn launch(call: &Call, kernel: Kernel, outputs: &[Array], fresh: u32) -> Result<()> {
    let cx = call.cx();
    let rng = match call.op.rng {
        Rng::No | Rng::Derived => RngState { seed: 0, offset: 0 },
        Rng::Blocks(blocks) => {
            random::reserve(blocks(outputs.first().map_or(0, |x| x.len() as u64)))
        }
    };
    // What the caller waits for anyway runs on the caller, if its operands are there.
    let cost_ns = if call.op.waits {
        0
    } else {
        cost_ns(&cx, outputs)
    };
    let mut writes = SmallVec::<[(&Tensor, Access); 4]>::new();
    for (i, out) in outputs
        .iter()
        .enumerate()
        .filter(|(i, _)| fresh >> i & 1 == 0)
    {
        let _ = i;
        let whole = out.len() * out.dtype().size() == out.tensor().storage().len_bytes();
        writes.push((
            out.tensor(),
            if whole {
                Access::Overwrite
            } else {
                Access::Write
            },
        ));
    }
    writes.extend(
        call.op
            .mutates
            .iter()
            .filter_map(|&i| cx.opt(i))
            .map(|x| (x.tensor(), Access::Write)),
    );
    for (tensor, _) in &writes {
        tensor.storage().bump_version();
    }
    {
        // Pushed one by one: collecting into these costs several times as much.
        let mut reads = SmallVec::<[&mxnet_engine::Var; 8]>::new();
        for x in call.inputs.iter().flatten() {
            reads.push(x.tensor().storage().var());
        }
        let mut changed = SmallVec::<[_; 4]>::new();
        for (t, access) in &writes {
            changed.push((t.storage().var(), *access));
        }
        if let Some(guard) = engine().try_acquire(&reads, &changed, cost_ns)
            && guard.poison().is_none()
        {
            let mut inputs = SmallVec::<[Option<&Tensor>; 8]>::new();
            for x in call.inputs {
                inputs.push(x.map(Array::tensor));
            }
            let mut tensors = SmallVec::<[&Tensor; 2]>::new();
            for out in outputs {
                tensors.push(out.tensor());
            }
            let outputs = tensors;
            let work = KernelCx {
                op: call.op,
                inputs: &inputs,
                outputs: &outputs,
                args: cx.args,
                training: cx.training,
                rng,
                threads: &Pool,
            };
            return match catch_unwind(AssertUnwindSafe(|| execute(&kernel, &work))) {
                Ok(result) => result,
                Err(panic) => Err(Error::internal(call.op.name, panic_text(&*panic))),
            };
        }
    }
    push(call, &cx, kernel, outputs, &writes, fresh, rng, cost_ns)
}

/// What an operation counts for beside the bytes that it writes.
const LEAST_BYTES: usize = 4096;

#[expect(
    clippy::too_many_arguments,
    reason = "the cold half of `launch`, which has them all at hand"
)]
fn push(
    call: &Call,
    cx: &CallCx,
    kernel: Kernel,
    outputs: &[Array],
    writes: &[(&Tensor, Access)],
    fresh: u32,
    rng: RngState,
    cost_ns: u64,
) -> Result<()> {
    let mut uses = SmallVec::<[(Arc<dyn Resource>, Access); 4]>::new();
    for x in call.inputs.iter().flatten() {
        uses.push((x.tensor().storage().clone(), Access::Read));
    }
    // Nobody runs ahead without bound by what is written in place either, or by many small operations, which take memory themselves.
    let mut bytes = LEAST_BYTES;
    for (tensor, access) in writes {
        uses.push((tensor.storage().clone(), *access));
        bytes += tensor.len_bytes();
    }
    for out in outputs
        .iter()
        .enumerate()
        .filter(|(i, _)| fresh >> i & 1 == 1)
        .map(|(_, x)| x)
    {
        uses.push((out.tensor().storage().clone(), Access::Overwrite));
        bytes += out.tensor().storage().len_bytes();
    }
    let queued = Queued {
        op: call.op,
        kernel,
        inputs: call
            .inputs
            .iter()
            .map(|x| x.map(|x| x.tensor().clone()))
            .collect(),
        outputs: outputs.iter().map(|x| x.tensor().clone()).collect(),
        attrs: call.attrs.clone(),
        training: cx.training,
        rng,
    };
    let facts = cx.facts();
    let origin = crate::origin::current();
    let issued_by = origin.clone();
    engine().push(Op {
        name: call.op.name,
        run: Box::new(move || {
            queued.run().map_err(|e| {
                Failure::new(
                    Box::new(e.with_operands(|| facts)),
                    issued_by.as_deref().unwrap_or(""),
                )
            })
        }),
        uses,
        priority: 0,
        cost_ns,
        bytes,
        origin,
    });
    // Foreign code can see these bytes at any time: it must never find a half-written or stale value.
    let shared = |x: &&Array| x.tensor().storage().is_shared();
    if call.inputs.iter().flatten().any(&shared) || outputs.iter().any(|x| shared(&x)) {
        for x in outputs {
            x.wait_to_read()?;
        }
    }
    Ok(())
}

impl Queued {
    fn run(&self) -> Result<()> {
        let inputs: SmallVec<[Option<&Tensor>; 8]> =
            self.inputs.iter().map(Option::as_ref).collect();
        let outputs: SmallVec<[&Tensor; 2]> = self.outputs.iter().collect();
        let args = Args {
            params: self.op.params,
            attrs: &self.attrs,
        };
        let work = KernelCx {
            op: self.op,
            inputs: &inputs,
            outputs: &outputs,
            args,
            training: self.training,
            rng: self.rng,
            threads: &Pool,
        };
        execute(&self.kernel, &work).map_err(|e| e.in_op(self.op.name))
    }
}

fn execute(kernel: &Kernel, work: &KernelCx) -> Result<()> {
    match kernel {
        Kernel::Map {
            rows,
            compute,
            params,
        } => {
            if let Some(refuses) = work.op.refuses {
                refuses(work, DType::ALL[*compute as usize])?;
            }
            cpu::map_rows(work, rows, *compute, params)
        }
        Kernel::Fn(body) => body(work),
    }
}

fn cost_ns(cx: &CallCx, outputs: &[Array]) -> u64 {
    match cx.op.cost {
        Cost::PerKiB(ns) => {
            let bytes = |x: &Array| x.len() * x.dtype().size();
            let total: usize = cx
                .inputs
                .iter()
                .flatten()
                .map(|x| bytes(x))
                .chain(outputs.iter().map(bytes))
                .sum();
            total as u64 * u64::from(ns) / 1024
        }
        Cost::Of(cost) => cost(cx),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("kernel panicked: {}", text.unwrap_or("no message"))
}

/// The kernels' name of a dtype.
#[inline]
pub(crate) fn elem(dtype: DType) -> Elem {
    Elem::ALL[dtype as usize]
}
