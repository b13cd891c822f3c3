//! Eager execution: runs a call by its plan, or by the body of its operator.

use mxnet_tensor::{DType, Device, DeviceKind, Layout, Scalar, Tensor};
use smallvec::SmallVec;

use crate::args::{Args, Attrs};
use crate::builtins::builtins;
use crate::context::{CallContext, ViewContext, with_own_positions};
use crate::error::{Error, Result, Tuple};
use crate::interrupt::MIN_THREAD_NS;
use crate::invoke::{Call, dispatch};
use crate::launch::{Pool, caught, cost_ns, launch, own_copy};
use crate::opdef::{Cpu, EagerBody, Known, Rng, Viewed};
use crate::plan::{self, Launch, Plan};
use crate::read::read_all;
use crate::{Array, Outputs, caller, interrupt, memory, mode, profiler};

pub use crate::copying::{copy_into, copy_into_shared, kernel_on};
pub use crate::out_arrays::into_outs;
use crate::out_arrays::{check_writable, takes_result};
pub use crate::prepare::prepare;
use crate::prepare::{handle_overflow, inferred, missing_kernel};

/// Executes a call without recording and below all interpreters. Prepared calls and replayed graphs use it: they were checked when they were
/// prepared.
///
/// # Errors
/// As [`crate::invoke()`].
#[inline]
pub fn run(call: &Call) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    run_into(call, &mut outputs)?;
    Ok(outputs)
}

/// Executes a call without recording and appends its outputs to `outputs`, which must be empty. Appending in place avoids moving `Outputs`, which is
/// large.
#[inline]
pub(crate) fn run_into(call: &Call, outputs: &mut Outputs) -> Result<()> {
    match call.op.cpu {
        Cpu::Map(_) | Cpu::Kernel(_) | Cpu::AnyDevice(_) => compute(call, outputs),
        _ => {
            *outputs = run_body(call)?;
            Ok(())
        }
    }
}

/// Executes a call of an operator that has no kernel.
fn run_body(call: &Call) -> Result<Outputs> {
    let watch = profiler::watch_body(call);
    let result = caught(call.op.name, || run_body_unwatched(call));
    if let (Some(watch), Ok(outputs)) = (watch, &result) {
        watch.ran(call, outputs);
    }
    result
}

fn run_body_unwatched(call: &Call) -> Result<Outputs> {
    let is_shared = |x: &&Array| x.tensor().storage().is_shared_while_held();
    if !call.op.positions.is_empty()
        && matches!(call.op.cpu, Cpu::Composite(_))
        && call.inputs.iter().flatten().any(is_shared)
        && let Some(outputs) = composite_with_own_positions(call)?
    {
        return Ok(outputs);
    }
    run_body_on(call)
}

/// A composite with copies of its positions, if code outside the library can write to them: its operations then see the same positions. `None`: there is
/// nothing to copy.
///
/// Each operation also copies its own positions if needed, so memory that another thread exports after this check does no harm.
fn composite_with_own_positions(call: &Call) -> Result<Option<Outputs>> {
    let tensors: SmallVec<[Option<&Tensor>; 8]> =
        call.inputs.iter().map(|x| x.map(Array::tensor)).collect();
    let copy = |x: &Tensor| {
        let given = Array::from_tensor(x.clone());
        let held = given.read()?;
        own_copy(held.tensor(), &Pool)
    };
    with_own_positions(call.op, &tensors, copy, |own| {
        let own = arrays_of(own);
        let inputs: SmallVec<[Option<&Array>; 8]> = (own.iter().zip(call.inputs))
            .map(|(own, &given)| match given {
                // The operations record themselves, so they must see the caller's array.
                Some(x) if x.entry().is_some() => given,
                _ => own.as_ref().or(given),
            })
            .collect();
        run_body_on(&Call {
            inputs: &inputs,
            ..*call
        })
    })
}

fn arrays_of(tensors: &[Option<Tensor>]) -> SmallVec<[Option<Array>; 4]> {
    let array = |x: &Option<Tensor>| x.clone().map(Array::from_tensor);
    tensors.iter().map(array).collect()
}

/// The results of a body, which reads its inputs on the host.
///
/// Whether code outside the library can write to the positions is checked while the inputs are held for reading: an export waits for the holders.
fn results_of_body(context: &CallContext, body: EagerBody) -> Result<Outputs> {
    // Released before the outputs are written, which may be inputs.
    let _held = read_all(context.inputs.iter().copied().flatten())?;
    let tensors: SmallVec<[Option<&Tensor>; 4]> = context
        .inputs
        .iter()
        .map(|x| x.map(Array::tensor))
        .collect();
    let copy = |x: &Tensor| own_copy(x, &Pool);
    let done = with_own_positions(context.op, &tensors, copy, |own| {
        let own = arrays_of(own);
        let inputs: SmallVec<[Option<&Array>; 4]> = (own.iter().zip(context.inputs))
            .map(|(own, &given)| own.as_ref().or(given))
            .collect();
        body(&CallContext {
            inputs: &inputs,
            ..*context
        })
    })?;
    match done {
        Some(results) => Ok(results),
        None => body(context),
    }
}

fn run_body_on(call: &Call) -> Result<Outputs> {
    match call.op.cpu {
        Cpu::Map(_) | Cpu::Kernel(_) | Cpu::AnyDevice(_) => run(call),
        Cpu::View(view) => viewed(call, view),
        Cpu::Eager(body, _) => {
            let device = call.device()?;
            if device.kind() != DeviceKind::Cpu {
                return Err(missing_kernel(call.op, device));
            }
            if is_abstract(call) {
                return inferred_abstract(call, device);
            }
            let cost = cost_ns(&call.context(), 0);
            let results = caller::within(Some(call.op), || match cost > MIN_THREAD_NS {
                true => compute_on_new_thread(call, body, cost),
                false => results_of_body(&call.context(), body),
            })?;
            into_outs(call, results)
        }
        Cpu::Composite(body) => {
            call.device()?;
            caller::within(Some(call.op), || {
                mode::in_body(|| into_outs(call, body(&call.context())?))
            })
        }
    }
}

/// Runs a long body on a new thread. The body sees no interpreters, as on this thread, and neither the current device nor the modes of this thread.
#[inline(never)]
fn compute_on_new_thread(call: &Call, body: EagerBody, cost_ns: u64) -> Result<Outputs> {
    // This thread waits for the operations that were pushed before.
    drop(read_all(call.inputs.iter().copied().flatten())?);
    let op = call.op;
    let inputs: SmallVec<[Option<Array>; 4]> = call.inputs.iter().map(|x| x.cloned()).collect();
    let (attrs, training) = (call.attrs.clone(), call.context().training);
    let caller = caller::current();
    interrupt::run_on_new_thread(cost_ns, move || {
        let refs: SmallVec<[Option<&Array>; 4]> = inputs.iter().map(Option::as_ref).collect();
        let context = CallContext {
            op,
            inputs: &refs,
            args: Args {
                params: op.params,
                attrs: &attrs,
            },
            training,
            outs: &[],
        };
        caller::within(caller, || results_of_body(&context, body))
    })?
}

/// Whether shape inference goes over millions of integers, which takes as long as a kernel. Such calls are not cached.
fn has_long_index_lists(call: &Call) -> bool {
    const LEN: usize = 1 << 20;
    call.attrs.longest_list() > LEN
        && interrupt::can_check()
        && call.outs.is_empty()
        && call.op.mutates.is_empty()
        && matches!(call.op.rng, Rng::No)
        && !is_abstract(call)
}

/// Prepares and launches a call on a new thread.
fn call_on_new_thread(call: &Call) -> Result<Outputs> {
    // Lists are copied by `SmallVec`, which ends the process if there is no memory: here, in the inference and in the kernel, each time with room
    // for up to twice as many.
    const COPIES: usize = 8;
    let list_bytes = call.attrs.longest_list() * size_of::<i64>();
    memory::check_available(call.op.name, COPIES * list_bytes)?;
    let (op, attrs, dtype) = (call.op, call.attrs.clone(), call.dtype);
    let inputs: SmallVec<[Option<Array>; 4]> = call.inputs.iter().map(|x| x.cloned()).collect();
    let caller = caller::current();
    interrupt::run_on_new_thread(u64::MAX, move || {
        let refs: SmallVec<[Option<&Array>; 4]> = inputs.iter().map(Option::as_ref).collect();
        let call = Call {
            op,
            inputs: &refs,
            attrs: &attrs,
            outs: &[],
            dtype,
        };
        caller::within(caller, || run(&call))
    })?
}

/// The outputs of a call with abstract operands of an operator that runs at the call. Its inference rule determines them, if it has one.
#[cold]
fn inferred_abstract(call: &Call, device: Device) -> Result<Outputs> {
    let Cpu::Eager(_, Known::ByRule) = call.op.cpu else {
        let abstracts = call.context().facts();
        return Err(Error::without_values(
            call.op.name,
            "the shape of the result depends on values, which an abstract operand does not have",
        )
        .with_operands(|| abstracts)
        .with_hint(
            "call it outside the function that is traced, or give it arrays that have values",
        ));
    };
    let plan = inferred(call, |_| Ok(()), device, device)?;
    let mut outputs = Outputs::new();
    if let Plan::Launch(plan) = &plan {
        fill_abstract(call, plan, &mut outputs)?;
    }
    Ok(outputs)
}

/// Executes a call by its plan.
#[inline]
fn compute(call: &Call, outputs: &mut Outputs) -> Result<()> {
    plan::with_plan(
        call,
        || match has_long_index_lists(call) {
            true => Ok(Plan::Expand(call_on_new_thread)),
            false => prepare(call),
        },
        |plan| match plan {
            Plan::Launch(plan) if is_abstract(call) => fill_abstract(call, plan, outputs),
            Plan::Launch(plan) => fill(call, plan, outputs),
            Plan::Expand(body) => {
                *outputs = body(call)?;
                Ok(())
            }
        },
    )
}

/// Abstract outputs of a call, by the operator's rules: nothing is computed, recorded or written. `call.outs` must be empty.
///
/// # Errors
/// Errors of the rules; [`Error::Abstract`] if the shape of the result depends on values; [`Error::Internal`] for views and composites.
pub fn without_values(call: &Call) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    match call.op.cpu {
        Cpu::Eager(..) => return inferred_abstract(call, call.device()?),
        _ => plan::with_plan(
            call,
            || prepare(call),
            |plan| match plan {
                Plan::Launch(plan) => fill_abstract(call, plan, &mut outputs),
                Plan::Expand(body) => {
                    outputs = body(call)?;
                    Ok(())
                }
            },
        )?,
    }
    // An eager operator without array operands computes its result through other calls.
    let is_known = |y: Array| match y.is_abstract() {
        true => Ok(y),
        false => Array::without_values_in(y.layout().with_offset(0), y.dtype(), y.device()),
    };
    outputs.into_iter().map(is_known).collect()
}

/// The first Python number of a call that the dtype it is converted to cannot hold.
#[inline]
fn overflowing_number(call: &Call, plan: &Launch) -> Option<(Scalar, DType)> {
    plan.numbers.iter().find_map(|&(i, dtype)| {
        let value = call.inputs[i].and_then(Array::number)?;
        (!value.fits(dtype)).then_some((value, dtype))
    })
}

/// Whether an operand has no values, so that nothing can be computed.
#[inline]
fn is_abstract(call: &Call) -> bool {
    call.inputs.iter().flatten().any(|x| x.is_abstract())
        || call.outs.iter().flatten().any(|x| x.is_abstract())
}

/// Appends abstract outputs of a call with abstract operands.
#[cold]
fn fill_abstract(call: &Call, plan: &Launch, outputs: &mut Outputs) -> Result<()> {
    if let Some((value, dtype)) = overflowing_number(call, plan) {
        *outputs = handle_overflow(call, value, dtype)?;
        return Ok(());
    }
    call.context().check_mutated()?;
    for (_, x) in call.context().mutated() {
        check_abstract(call, x)?;
        x.tensor().storage().bump_version();
    }
    for (i, planned) in plan.outputs.iter().enumerate() {
        outputs.push(match call.outs.get(i).copied().flatten() {
            Some(out) => {
                check_writable(call, out)?;
                check_abstract(call, out)?;
                out.tensor().storage().bump_version();
                Array::from_tensor(out.tensor().clone())
            }
            None => {
                let layout = planned.layout.with_offset(0);
                Array::without_values_in(layout, planned.dtype, plan.device)?
            }
        });
    }
    Ok(())
}

/// Refuses to write unknown values to an array that has values.
fn check_abstract(call: &Call, out: &Array) -> Result<()> {
    match out.is_abstract() {
        true => Ok(()),
        false => {
            let problem = format!(
                "cannot write to an array of shape {} that has values: an operand is abstract and has none",
                Tuple(out.shape())
            );
            Err(Error::without_values(call.op.name, problem)
                .with_hint("write to an array that was made from abstract ones"))
        }
    }
}

/// Allocates the outputs and launches the kernel.
#[inline]
fn fill(call: &Call, plan: &Launch, outputs: &mut Outputs) -> Result<()> {
    if let Some((value, dtype)) = overflowing_number(call, plan) {
        *outputs = handle_overflow(call, value, dtype)?;
        return Ok(());
    }
    if !call.op.mutates.is_empty() {
        call.context().check_mutated()?;
    }
    if !call.outs.is_empty() {
        return fill_given(call, plan, outputs);
    }
    for planned in &plan.outputs {
        planned.allocate(plan.device, call.op.zeroed, outputs)?;
    }
    launch(
        call,
        &plan.kernel,
        outputs,
        u32::MAX,
        plan.cost_ns,
        plan.runs_on,
    )?;
    wait_if_needed(call, outputs)
}

/// As [`fill`], for a call with `outs`.
fn fill_given(call: &Call, plan: &Launch, outputs: &mut Outputs) -> Result<()> {
    let (mut fresh, mut needs_copy) = (0_u32, false);
    for (i, planned) in plan.outputs.iter().enumerate() {
        if let Some(out) = call.outs.get(i).copied().flatten() {
            check_writable(call, out)?;
            if takes_result(call, out, planned.dtype) {
                outputs.push(Array::from_tensor(out.tensor().clone()));
                continue;
            }
            needs_copy = true;
        }
        fresh |= 1 << i;
        planned.allocate(plan.device, call.op.zeroed, outputs)?;
    }
    if needs_copy && matches!(call.op.cpu, Cpu::Map(_)) {
        // The loops depend on the addresses of these outputs: compute into new arrays and copy.
        *outputs = into_outs(call, run(&Call { outs: &[], ..*call })?)?;
        return Ok(());
    }
    launch(
        call,
        &plan.kernel,
        outputs,
        fresh,
        plan.cost_ns,
        plan.runs_on,
    )?;
    wait_if_needed(call, outputs)?;
    if needs_copy {
        *outputs = into_outs(call, std::mem::take(outputs))?;
    }
    Ok(())
}

/// Waits for the outputs if the operator's kernel may refuse values.
#[inline]
fn wait_if_needed(call: &Call, outputs: &Outputs) -> Result<()> {
    if call.op.waits {
        for y in outputs {
            y.wait_to_read()?;
        }
    }
    Ok(())
}

fn viewed(call: &Call, view: fn(&ViewContext) -> Result<Viewed>) -> Result<Outputs> {
    let context = call.context();
    let x = context.input(0);
    let result = match view(&ViewContext {
        op: call.op,
        layout: x.layout(),
        dtype: x.dtype(),
        args: context.args,
    })? {
        Viewed::Itself => x.detach(),
        Viewed::Computed(op) => {
            let _paused = mode::Scope::enter(false, mode::is_training());
            return mode::in_body(|| dispatch(&Call { op, ..*call }));
        }
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

/// A copy of the elements in C order, outside any recording.
fn copied(x: &Array) -> Result<Array> {
    let call = Call {
        op: builtins().copy,
        inputs: &[Some(x)],
        attrs: &Attrs::none(),
        outs: &[],
        dtype: None,
    };
    let _paused = mode::Scope::enter(false, mode::is_training());
    crate::invoke::only(call.op, mode::in_body(|| dispatch(&call))?)
}
