//! Launching a kernel: on the calling thread if it is cheap and its variables are free, else through the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mxnet_engine::{Access, Failure, Op, Resource, engine};
use mxnet_kernels::map::Loops;
use mxnet_kernels::{Elem, Threads};
use mxnet_tensor::{DType, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Args, Attrs};
use crate::cpu;
use crate::cx::{CallCx, KernelCx, RngState};
use crate::error::{Error, Result};
use crate::invoke::Call;
use crate::opdef::{Cost, OpDef, Rng};
use crate::rng::reserve;

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

/// What an operation runs.
#[derive(Clone)]
pub enum Kernel {
    /// Loops over broadcast operands.
    Map {
        /// The loops, prepared for the operands.
        loops: Arc<Loops>,
        /// What they compute in.
        compute: Elem,
        /// The operator's numeric attributes.
        params: SmallVec<[f64; 4]>,
    },
    /// A function of the call; of an elementwise operator also what it computes in.
    Fn(fn(&KernelCx) -> Result<()>, Option<DType>),
}

impl Kernel {
    /// What an elementwise operator computes in.
    #[inline]
    fn compute(&self) -> Option<DType> {
        match self {
            Kernel::Map { compute, .. } => Some(DType::ALL[*compute as usize]),
            Kernel::Fn(_, compute) => *compute,
        }
    }
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

/// Runs the kernel inline if it is cheap and its variables are free, else pushes it. Bit `i` of `fresh`: nobody else knows output `i` yet; outputs
/// from 32 on are always fresh.
#[inline]
pub fn launch(
    call: &Call,
    kernel: &Kernel,
    outputs: &[Array],
    fresh: u32,
    cost_ns: u64,
) -> Result<()> {
    let rng = match call.op.rng {
        Rng::No | Rng::Derived => RngState { seed: 0, offset: 0 },
        Rng::Blocks(blocks) => reserve(blocks(outputs.first().map_or(0, |x| x.len() as u64))),
    };
    let mut writes = SmallVec::<[(&Tensor, Access); 4]>::new();
    if fresh != u32::MAX || !call.op.mutates.is_empty() {
        list_writes(call, outputs, fresh, &mut writes);
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
            let run = || match kernel {
                // Loops need addresses only.
                Kernel::Map { loops, params, .. } if call.op.refuses.is_none() => {
                    cpu::run_loops(
                        loops,
                        outputs.iter().map(Array::tensor),
                        call.inputs.iter().flatten().map(|x| x.tensor()),
                        params,
                    );
                    Ok(())
                }
                kernel => run_inline(call, kernel, outputs, rng),
            };
            return match catch_unwind(AssertUnwindSafe(run)) {
                Ok(result) => result,
                Err(panic) => Err(Error::internal(call.op.name, panic_text(&*panic))),
            };
        }
    }
    push(
        call,
        &call.cx(),
        kernel,
        outputs,
        &writes,
        fresh,
        rng,
        cost_ns,
    )
}

/// Whether nobody else knows output `i` yet.
fn is_fresh(fresh: u32, i: usize) -> bool {
    i >= 32 || fresh >> i & 1 == 1
}

/// Lists what a call writes that others may know, and counts their versions.
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
        call.cx()
            .mutated()
            .map(|(_, x)| (x.tensor(), Access::Write)),
    );
    for (tensor, _) in &*writes {
        tensor.storage().bump_version();
    }
}

/// Runs a kernel on the calling thread, which holds its variables.
#[inline]
fn run_inline(call: &Call, kernel: &Kernel, outputs: &[Array], rng: RngState) -> Result<()> {
    let mut inputs = SmallVec::<[Option<&Tensor>; 8]>::new();
    for x in call.inputs {
        inputs.push(x.map(Array::tensor));
    }
    let mut tensors = SmallVec::<[&Tensor; 4]>::new();
    for out in outputs {
        tensors.push(out.tensor());
    }
    let cx = call.cx();
    let work = KernelCx {
        op: call.op,
        inputs: &inputs,
        outputs: &tensors,
        args: cx.args,
        compute: kernel.compute(),
        training: cx.training,
        rng,
        threads: &Pool,
    };
    execute(kernel, &work)
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
    kernel: &Kernel,
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
        .filter(|(i, _)| is_fresh(fresh, *i))
        .map(|(_, x)| x)
    {
        uses.push((out.tensor().storage().clone(), Access::Overwrite));
        bytes += out.tensor().storage().len_bytes();
    }
    let queued = Queued {
        op: call.op,
        kernel: kernel.clone(),
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
            compute: self.kernel.compute(),
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
            if let (Some(refuses), Some(compute)) = (work.op.refuses, *compute) {
                refuses(work, compute)?;
            }
            body(work)
        }
    }
}

/// What a call costs on one core that writes so many bytes. What the caller waits for costs nothing: it runs on the caller, if its operands are
/// there.
pub fn cost_ns(cx: &CallCx, bytes_written: usize) -> u64 {
    if cx.op.waits {
        return 0;
    }
    match cx.op.cost {
        Cost::PerKiB(ns) => {
            let bytes_read: usize = cx
                .inputs
                .iter()
                .flatten()
                .map(|x| x.len() * x.dtype().size())
                .sum();
            (bytes_read + bytes_written) as u64 * u64::from(ns) / 1024
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
pub fn elem(dtype: DType) -> Elem {
    Elem::ALL[dtype as usize]
}
