//! Calls of operators: through the interpreter stack, then eager execution.

use mxnet_tensor::{DType, Device};
use smallvec::SmallVec;

use crate::args::{Args, Attrs};
use crate::context::CallContext;
use crate::error::{Error, Result};
use crate::mode::{self, Flags};
use crate::opdef::{Cpu, OpDef};
use crate::{Array, Outputs, autocast, autograd, eager, fp_errors, profiler, registry};

/// One call of an operator.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The operator.
    pub op: &'static OpDef,
    /// The array arguments, lists flattened, absent ones `None`.
    pub inputs: &'a [Option<&'a Array>],
    /// Attributes, in order.
    pub attrs: &'a Attrs,
    /// Arrays to write the outputs to; empty when none are given.
    pub outs: &'a [Option<&'a Array>],
    /// Dtype to compute in, if the caller sets one.
    pub dtype: Option<DType>,
}

impl<'a> Call<'a> {
    /// The argument of the functions of the operator's definition.
    #[inline]
    pub fn context(&self) -> CallContext<'a> {
        CallContext {
            op: self.op,
            inputs: self.inputs,
            args: Args {
                params: self.op.params,
                attrs: self.attrs,
            },
            training: Flags::current().is_training(),
            outs: self.outs,
        }
    }

    /// Adds the operator's name and the operands to an error. Errors of the operators that its body calls name this operator. See
    /// [`Error::called_by`] for errors that surface later.
    #[cold]
    pub fn explain(&self, error: Error) -> Error {
        let facts = || self.context().facts();
        let is_of_part = match self.op.cpu {
            Cpu::Composite(_) => true,
            Cpu::Eager(..) => (error.fault())
                .is_some_and(|fault| !fault.op.is_empty() && fault.op != self.op.name),
            _ => false,
        };
        let error = match error {
            // This message is NumPy's, which names the operator at its end.
            Error::FloatingPoint(_) => error.with_operands(facts),
            _ if is_of_part => error.for_op(registry::base_form(self.op).name, facts),
            _ => error.in_op(self.op.name).with_operands(facts),
        };
        error.reported_as(self.op)
    }

    /// The device of the arguments. Numbers do not count.
    pub(crate) fn device(&self) -> Result<Device> {
        let mut found: Option<Device> = None;
        let mut meet = |x: &Array| -> Result<()> {
            if x.is_launch_argument() {
                return Ok(());
            }
            match found {
                Some(device) if device != x.device() => {
                    let problem = format!(
                        "operands are on different devices: {device} and {}",
                        x.device()
                    );
                    Err(Error::device(self.op.name, problem))
                }
                _ => {
                    found = Some(x.device());
                    Ok(())
                }
            }
        };
        for x in self.inputs.iter().flatten() {
            meet(x)?;
        }
        for x in self.outs.iter().flatten() {
            meet(x)?;
        }
        Ok(found.unwrap_or_else(mode::current_device))
    }
}

/// Calls `op` on arrays.
///
/// # Errors
/// Errors of the operator's checks, before anything is allocated or changed.
pub fn invoke(op: &'static OpDef, inputs: &[&Array], attrs: &Attrs) -> Result<Outputs> {
    let mut given = SmallVec::<[Option<&Array>; 8]>::new();
    for &x in inputs {
        given.push(Some(x));
    }
    dispatch(&Call {
        op,
        inputs: &given,
        attrs,
        outs: &[],
        dtype: None,
    })
}

/// Calls `op` with array arguments that may be absent.
///
/// # Errors
/// As [`invoke`].
pub fn invoke_with(
    op: &'static OpDef,
    inputs: &[Option<&Array>],
    attrs: &Attrs,
) -> Result<Outputs> {
    dispatch(&Call {
        op,
        inputs,
        attrs,
        outs: &[],
        dtype: None,
    })
}

/// Calls `op` and returns its only output.
///
/// # Errors
/// As [`invoke`].
pub fn invoke1(op: &'static OpDef, inputs: &[&Array], attrs: &Attrs) -> Result<Array> {
    only(op, invoke(op, inputs, attrs)?)
}

/// The first output.
#[inline]
pub fn only(op: &'static OpDef, mut outputs: Outputs) -> Result<Array> {
    outputs.truncate(1);
    outputs
        .pop()
        .ok_or_else(|| Error::internal(op.name, "the operator returned no output"))
}

/// Executes a call: all calls come through here. Passes it to the thread's interpreters, if there are any.
///
/// # Errors
/// As [`invoke`].
#[inline]
pub fn dispatch(call: &Call) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    dispatch_into(call, &mut outputs)?;
    Ok(outputs)
}

/// As [`dispatch`], but appends the outputs to `outputs`, which must be empty. Avoids moving `Outputs`, which is large.
///
/// # Errors
/// As [`invoke`].
#[inline]
pub fn dispatch_into(call: &Call, outputs: &mut Outputs) -> Result<()> {
    let flags = Flags::current();
    let result = if flags.runs_at_once() {
        eager::run_into(call, outputs)
    } else {
        intercepted(call, flags, outputs)
    };
    result.map_err(|error| call.explain(error))
}

/// Executes a call that is recorded, watched, cast or intercepted.
#[inline(never)]
fn intercepted(call: &Call, flags: Flags, outputs: &mut Outputs) -> Result<()> {
    if flags.profiles_calls()
        && let Some(watch) = profiler::watch_call()
    {
        let result = unwatched(call, flags, outputs);
        watch.ended(call);
        return result;
    }
    unwatched(call, flags, outputs)
}

fn unwatched(call: &Call, flags: Flags, outputs: &mut Outputs) -> Result<()> {
    if flags.is_watching() {
        *outputs = fp_errors::watched(call)?;
    } else if let Some(dtype) = flags.autocast() {
        *outputs = autocast::cast_and_call(call, dtype)?;
    } else if flags.is_stacked() {
        *outputs = mode::call_top(call)?;
    } else if flags.is_recording() {
        autograd::record(call, outputs)?;
    } else {
        eager::run_into(call, outputs)?;
    }
    Ok(())
}
