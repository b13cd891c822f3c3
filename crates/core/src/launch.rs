//! Launches a kernel: on the calling thread if it is cheap and its variables are free, otherwise through the engine.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use mxnet_engine::{Access, Failure, Op, Resource, Stream, Var, engine};
use mxnet_kernels::map::Loops;
use mxnet_kernels::{Elem, Threads};
use mxnet_tensor::{DType, Device, DeviceKind, Storage, Tensor, backend_of};
use smallvec::SmallVec;

use crate::context::{
    CallContext, KernelContext, OwnedKernelContext, RngState, with_own_positions,
};
use crate::cpu;
use crate::error::{Error, Result};
use crate::invoke::Call;
use crate::opdef::{Cost, Cpu, OpDef, Rng};
use crate::profiler::{self, Pending};
use crate::rng::reserve;
use crate::{Array, caller};

/// The engine's thread pool as the [`Threads`](mxnet_kernels::Threads) of kernels.
pub struct Pool;

impl Threads for Pool {
    fn count(&self) -> usize {
        engine().num_threads()
    }

    fn run(&self, n: usize, task: &(dyn Fn(usize) + Sync)) {
        engine().run_tasks(n, task);
    }
}

/// The code of an operation.
#[derive(Clone)]
pub enum Kernel {
    /// Loops over broadcast operands.
    Map {
        /// The loops, prepared for the operands.
        loops: Arc<Loops>,
        /// The dtype that they compute in.
        compute: Elem,
        /// The operator's numeric attributes.
        params: SmallVec<[f64; 4]>,
    },
    /// A function of the call, and for an elementwise operator the dtype that it computes in.
    Fn(fn(&KernelContext) -> Result<()>, Option<DType>),
}

impl Kernel {
    /// The dtype that an elementwise operator computes in; `None` for other operators.
    #[inline]
    pub fn compute(&self) -> Option<DType> {
        match self {
            Kernel::Map { compute, .. } => Some(DType::ALL[*compute as usize]),
            Kernel::Fn(_, compute) => *compute,
        }
    }
}

/// Runs the kernel on the calling thread if it is cheap and its variables are free, otherwise pushes it to the engine. Bit `i` of `fresh` says that
/// output `i` is new and nobody else uses it; outputs from 32 on are always new.
#[inline]
pub fn launch(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    fresh: u32,
    cost_ns: u64,
    device: Device,
) -> Result<()> {
    match profiler::records_operators() {
        false => launch_as::<false>(call, kernel, outputs, fresh, cost_ns, device),
        true => launch_watched(call, kernel, outputs, fresh, cost_ns, device),
    }
}

#[inline(never)]
fn launch_watched(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    fresh: u32,
    cost_ns: u64,
    device: Device,
) -> Result<()> {
    launch_as::<true>(call, kernel, outputs, fresh, cost_ns, device)
}

/// [`launch`], timed if `WATCHED`. A const parameter, so that calls that are not timed have no code for it.
#[inline(always)]
fn launch_as<const WATCHED: bool>(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    fresh: u32,
    cost_ns: u64,
    device: Device,
) -> Result<()> {
    let begin = || if WATCHED { profiler::watch() } else { None };
    let rng = match call.op.rng {
        Rng::No | Rng::Derived => RngState { seed: 0, offset: 0 },
        Rng::Blocks(blocks) => reserve(blocks(outputs.first().map_or(0, |x| x.len() as u64))),
    };
    if device.kind() != DeviceKind::Cpu
        && let Some(stream) = stream_for(call.op, device)?
    {
        return launch_on(&*stream, call, kernel, outputs, fresh, rng, device);
    }
    let mut writes = SmallVec::<[(&Tensor, Access); 4]>::new();
    if fresh != u32::MAX || !call.op.mutates.is_empty() {
        list_writes(call, outputs, fresh, &mut writes);
    }
    {
        // A loop over `push`: collecting into these costs several times as much.
        let mut reads = SmallVec::<[&mxnet_engine::Var; 8]>::new();
        for x in call.inputs.iter().flatten() {
            reads.push(x.tensor().storage().var());
        }
        let mut changed = SmallVec::<[_; 4]>::new();
        for (t, access) in &writes {
            changed.push((t.storage().var(), *access));
        }
        let granted = if call.op.parallel || matches!(kernel, Kernel::Map { .. }) {
            engine().try_acquire_parallel(&reads, &changed, cost_ns)
        } else {
            engine().try_acquire(&reads, &changed, cost_ns)
        };
        if let Some(guard) = granted
            && guard.poison().is_none()
        {
            let watch = begin();
            let run = || match kernel {
                // Loops need only the addresses, not a `KernelContext`.
                Kernel::Map { loops, params, .. } if call.op.refuses.is_none() => {
                    cpu::run_loops(
                        loops,
                        outputs.iter().map(Array::tensor),
                        call.inputs.iter().flatten().map(|x| x.tensor()),
                        params,
                    );
                    Ok(())
                }
                kernel => run_inline(call, kernel, outputs, rng, device, None),
            };
            let result = caught(call.op.name, run);
            if let Some(watch) = watch {
                watch.ran(call, outputs, fresh);
            }
            return result;
        }
    }
    let queued = owned(call, kernel, outputs, rng, device);
    let kernel = kernel.clone();
    let pending = begin().map(|watch| watch.pending(call, outputs, fresh));
    let run = move || {
        Pending::run(pending, || {
            queued.run(&Pool, None, |work| {
                catch_error_of_kernel(work.op.name, || execute(&kernel, work))
            })
        })
    };
    let (uses, bytes) = uses_of(call, outputs, &writes, fresh);
    let (op, is_shared) = queued_op(call, outputs, uses, bytes, cost_ns, run);
    engine().push_checked(op, &mut crate::interrupt::is_requested)?;
    // Code outside the library can see these bytes at any time (DLPack, buffer protocol): wait, so that it never finds an incomplete result.
    if is_shared {
        let changed = call.context();
        for x in outputs.iter().chain(changed.mutated().map(|(_, x)| x)) {
            x.wait_to_read()?;
        }
    }
    Ok(())
}

/// Runs `run`. A panic by which a kernel raises an error becomes that error; other panics continue.
fn catch_error_of_kernel(op: &'static str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(Error::of_kernel(op, panic).unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Runs `run`. A panic becomes an error of the operator `name`.
///
/// # Errors
/// What `run` reports; the error of a kernel if it panics with one ([`Error::Memory`], [`Error::DType`]); [`Error::Internal`] if it panics otherwise.
#[inline]
pub fn caught<R>(name: &'static str, run: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => Err(Error::from_panic(name, panic)),
    }
}

/// The calling thread's stream for an operator. Copies between devices have their own stream, so that they overlap with kernels.
fn stream_for(op: &OpDef, device: Device) -> Result<Option<Arc<dyn Stream>>> {
    let backend = backend_of(device)?;
    Ok(match op.cpu {
        Cpu::AnyDevice(_) => backend.copy_stream(device.id())?,
        _ => backend.stream(device.id())?,
    })
}

/// Launches a kernel that enqueues its work on a stream. The stream first waits for the events of the variables that the kernel uses; afterwards an
/// event of the new work is stored in them. The variables are held only while the kernel enqueues.
#[inline(never)]
fn launch_on(
    stream: &dyn Stream,
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    fresh: u32,
    rng: RngState,
    device: Device,
) -> Result<()> {
    let mut written = SmallVec::<[(&Tensor, Access); 4]>::new();
    list_writes(call, outputs, fresh, &mut written);
    // Numbers are passed as launch arguments, so their memory is not read.
    let reads: SmallVec<[&Var; 4]> = (call.inputs.iter().flatten())
        .filter(|x| !x.is_launch_argument())
        .map(|x| x.tensor().storage().var())
        .collect();
    let mut writes: SmallVec<[(&Var, Access); 4]> = (written.iter())
        .map(|(tensor, access)| (tensor.storage().var(), *access))
        .collect();
    for (i, out) in outputs.iter().enumerate() {
        if is_fresh(fresh, i) {
            writes.push((out.tensor().storage().var(), Access::Overwrite));
        }
    }
    if let Some(guard) = engine().try_acquire_launch(&reads, &writes)
        && guard.poison().is_none()
    {
        let reads = reads.iter().map(|&var| (var, Access::Read));
        let uses: SmallVec<[(&Var, Access); 8]> = reads.chain(writes.iter().copied()).collect();
        let run = || run_inline(call, kernel, outputs, rng, device, Some(stream));
        let watch = profiler::watch();
        let result = on_stream(stream, &uses, || caught(call.op.name, run));
        if let Some(watch) = watch {
            await_stream(stream);
            watch.ran(call, outputs, fresh);
        }
        return result;
    }
    let queued = owned(call, kernel, outputs, rng, device);
    let kernel = kernel.clone();
    let pending = profiler::watch().map(|watch| watch.pending(call, outputs, fresh));
    let (uses, bytes) = uses_of(call, outputs, &written, fresh);
    let used = uses.clone();
    let run = move || {
        // The worker has its own stream. Events order its work with that of other streams.
        let stream = stream_for(queued.op, device)?
            .ok_or_else(|| Error::device(queued.op.name, "its stream is gone"))?;
        let uses: SmallVec<[(&Var, Access); 8]> =
            used.iter().map(|(x, access)| (x.var(), *access)).collect();
        let is_watched = pending.is_some();
        Pending::run(pending, || {
            let result = on_stream(&*stream, &uses, || {
                queued.run(&Pool, Some(&*stream), |work| execute(&kernel, work))
            });
            if is_watched {
                await_stream(&*stream);
            }
            result
        })
    };
    let (op, _) = queued_op(call, outputs, uses, bytes, 0, run);
    engine().push_launch(op);
    Ok(())
}

/// Makes a stream wait for the pending work on variables, calls `enqueue`, and stores an event in the variables.
fn on_stream(
    stream: &dyn Stream,
    uses: &[(&Var, Access)],
    enqueue: impl FnOnce() -> Result<()>,
) -> Result<()> {
    stream.begin();
    for (var, access) in uses {
        for (event, uses_result) in var.events(*access) {
            stream.wait(&event, uses_result);
        }
    }
    let result = enqueue();
    // Also after an error: some work may have been enqueued before it.
    let event = stream.record();
    for (var, access) in uses {
        var.record_event(event.clone(), *access);
    }
    result
}

/// Waits until a stream has done its work, so that the profiler sees how long it takes. A failure stays stored in the variables for their readers.
#[cold]
fn await_stream(stream: &dyn Stream) {
    let _ = stream.record().wait();
}

/// Whether output `i` is new and nobody else uses it.
fn is_fresh(fresh: u32, i: usize) -> bool {
    i >= 32 || fresh >> i & 1 == 1
}

/// Lists the variables of existing arrays that a call writes, and increments their versions.
#[inline(never)]
fn list_writes<'a>(
    call: &Call<'a>,
    outputs: &'a [Array],
    fresh: u32,
    writes: &mut SmallVec<[(&'a Tensor, Access); 4]>,
) {
    for (i, out) in outputs.iter().enumerate() {
        if is_fresh(fresh, i) {
            continue;
        }
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
        call.context()
            .mutated()
            .map(|(_, x)| (x.tensor(), Access::Write)),
    );
    for (tensor, _) in &*writes {
        tensor.storage().bump_version();
    }
}

/// Runs a kernel on the calling thread, which holds its variables.
#[inline]
fn run_inline(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    rng: RngState,
    device: Device,
    stream: Option<&dyn Stream>,
) -> Result<()> {
    let mut inputs = SmallVec::<[Option<&Tensor>; 8]>::new();
    for x in call.inputs {
        inputs.push(x.map(Array::tensor));
    }
    let mut tensors = SmallVec::<[&Tensor; 4]>::new();
    for out in outputs {
        tensors.push(out.tensor());
    }
    let context = call.context();
    let work = KernelContext {
        op: call.op,
        inputs: &inputs,
        outputs: &tensors,
        args: context.args,
        compute: kernel.compute(),
        training: context.training,
        rng,
        threads: &Pool,
        device,
        stream,
        numbers: number_inputs(call, device),
        last_reads: 0,
    };
    execute(kernel, &work)
}

/// Bit mask of the inputs that are numbers, for devices other than the CPU.
#[inline]
fn number_inputs(call: &Call, device: Device) -> u64 {
    if device.kind() == DeviceKind::Cpu {
        return 0;
    }
    let inputs = call.inputs.iter().enumerate().take(64);
    inputs
        .filter(|(_, x)| x.is_some_and(Array::is_launch_argument))
        .fold(0, |numbers, (i, _)| numbers | 1 << i)
}

/// Charged for each queued operation in addition to the bytes that it writes.
const MIN_CHARGED_BYTES: usize = 4096;

/// The variables of a queued operation.
type Uses = SmallVec<[(Arc<dyn Resource>, Access); 4]>;

/// Arguments of the kernel of a queued operation.
fn owned(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    rng: RngState,
    device: Device,
) -> OwnedKernelContext {
    OwnedKernelContext {
        op: call.op,
        inputs: (call.inputs.iter())
            .map(|x| x.map(|x| x.tensor().clone()))
            .collect(),
        outputs: outputs.iter().map(|x| x.tensor().clone()).collect(),
        attrs: call.attrs.clone(),
        compute: kernel.compute(),
        training: call.context().training,
        rng,
        device,
        numbers: number_inputs(call, device),
    }
}

/// The variables that an operation uses, and the bytes that it counts for. `writes` are outputs that other code may use already, and arrays written in
/// place.
fn uses_of(
    call: &Call,
    outputs: &[Array],
    writes: &[(&Tensor, Access)],
    fresh: u32,
) -> (Uses, usize) {
    let mut uses = Uses::new();
    for x in call.inputs.iter().flatten() {
        uses.push((x.tensor().storage().clone(), Access::Read));
    }
    // The charge limits how far the caller runs ahead. It also counts writes in place and small operations, which take memory themselves.
    let mut bytes = MIN_CHARGED_BYTES;
    for (tensor, access) in writes {
        uses.push((tensor.storage().clone(), *access));
        bytes += tensor.len_bytes();
    }
    for (i, out) in outputs.iter().enumerate() {
        if is_fresh(fresh, i) {
            uses.push((out.tensor().storage().clone(), Access::Overwrite));
            bytes += out.tensor().storage().len_bytes();
        }
    }
    (uses, bytes)
}

/// An operation for the engine, and whether foreign code can see bytes that it uses.
fn queued_op(
    call: &Call,
    outputs: &[Array],
    uses: Uses,
    bytes: usize,
    cost_ns: u64,
    run: impl FnOnce() -> Result<()> + Send + 'static,
) -> (Op, bool) {
    let origin = crate::call_site::current();
    let (issued_by, caller, op) = (origin.clone(), caller::current(), call.op);
    let op = Op {
        name: call.op.name,
        run: Box::new(move || {
            run().map_err(|error| {
                let error = error.reported_as(op).called_by(caller);
                Failure::new(Box::new(error), issued_by.as_deref().unwrap_or(""))
            })
        }),
        uses,
        priority: 0,
        cost_ns,
        bytes,
        origin,
    };
    let shared = |x: &&Array| x.tensor().storage().is_shared();
    let is_shared = call.inputs.iter().flatten().any(&shared) || outputs.iter().any(|x| shared(&x));
    (op, is_shared)
}

/// A view of a tensor with a new variable: its accesses are not ordered with those through the tensor's storage. For callers that hold the storage's
/// variable and call operators. The view keeps the storage alive.
#[expect(unsafe_code, reason = "the bytes of one storage seen as another one")]
pub fn unordered(tensor: &Tensor) -> Result<Array> {
    let storage = tensor.storage();
    let (ptr, len_bytes) = (storage.ptr(), storage.len_bytes());
    let owner = Box::new(storage.clone());
    // SAFETY: the owner keeps the storage alive, and its bytes do not move.
    let same = unsafe {
        Storage::from_foreign(
            ptr,
            len_bytes,
            tensor.device(),
            owner,
            storage.is_read_only(),
        )
    };
    let same = Tensor::new(same, tensor.layout().clone(), tensor.dtype())?;
    Ok(Array::from_tensor(same.locked(tensor.is_read_only())))
}

/// Runs a kernel over tensors that the caller may read and write.
///
/// # Errors
/// Errors of the kernel, and of the operator's check of values.
pub fn execute(kernel: &Kernel, work: &KernelContext) -> Result<()> {
    match kernel {
        Kernel::Map {
            loops,
            compute,
            params,
        } => {
            if let Some(refuses) = work.op.refuses {
                refuses(work, DType::ALL[*compute as usize])?;
            }
            let inputs = work.inputs.iter().copied().flatten();
            cpu::run_loops(loops, work.outputs.iter().copied(), inputs, params);
            Ok(())
        }
        Kernel::Fn(body, compute) => {
            // The check reads values on the host. Kernels of other devices check themselves.
            if let (Some(refuses), Some(compute), DeviceKind::Cpu) =
                (work.op.refuses, *compute, work.device.kind())
            {
                refuses(work, compute)?;
            }
            if !work.op.positions.is_empty() && work.device.kind() == DeviceKind::Cpu {
                return with_checked_positions(*body, work);
            }
            body(work)
        }
    }
}

/// Runs a kernel that checks positions and then uses them.
#[inline]
fn with_checked_positions(
    body: fn(&KernelContext) -> Result<()>,
    work: &KernelContext,
) -> Result<()> {
    let copy = |x: &Tensor| own_copy(x, work.threads);
    let done = with_own_positions(work.op, work.inputs, copy, |own| {
        let inputs: SmallVec<[Option<&Tensor>; 8]> = (own.iter().zip(work.inputs))
            .map(|(own, &given)| own.as_ref().or(given))
            .collect();
        body(&KernelContext {
            inputs: &inputs,
            ..*work
        })
    })?;
    match done {
        Some(()) => Ok(()),
        None => body(work),
    }
}

/// A dense copy of a tensor in main memory that the caller may read.
pub(crate) fn own_copy(x: &Tensor, threads: &dyn Threads) -> Result<Tensor> {
    let copy = Tensor::empty(x.shape(), x.dtype(), x.device())?;
    cpu::copy(x, &copy, threads)?;
    Ok(copy)
}

/// Estimated cost above which an operation that the caller waits for runs on a worker, so that the wait can be interrupted.
const MAX_WAITED_NS: u64 = 5_000_000;

/// Estimated time of a call on one core that writes `bytes_written` bytes. Zero for a short operation that the caller waits for anyway: it then runs
/// on the caller if its operands are ready.
pub fn cost_ns(context: &CallContext, bytes_written: usize) -> u64 {
    let cost = match context.op.cost {
        Cost::PerKiB(ns) => {
            let bytes_read: usize = context
                .inputs
                .iter()
                .flatten()
                .map(|x| x.len() * x.dtype().size())
                .sum();
            (bytes_read + bytes_written) as u64 * u64::from(ns) / 1024
        }
        Cost::Of(cost) => cost(context),
    };
    match context.op.waits && cost <= MAX_WAITED_NS {
        true => 0,
        false => cost,
    }
}

/// The kernel crate's name of a dtype.
#[inline]
pub fn elem(dtype: DType) -> Elem {
    Elem::ALL[dtype as usize]
}
