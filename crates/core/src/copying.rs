//! Copies between arrays on any device. Interpreters see them as calls.

use mxnet_tensor::{Device, DeviceKind};
use smallvec::SmallVec;

use crate::args::{Attrs, Value};
use crate::builtins::builtins;
use crate::error::Result;
use crate::invoke::{Call, dispatch};
use crate::launch::{Kernel, cost_ns, launch};
use crate::opdef::OpDef;
use crate::prepare::missing_kernel;
use crate::{Array, cpu, device_kernels, mode};

/// Copies elements, converting their dtype; `to` may overlap `from`.
pub fn copy_into(from: &Array, to: &Array) -> Result<()> {
    copy_by(Kernel::Fn(cpu::copy_kernel, None), from, to)
}

/// As [`copy_into`], for a `to` whose elements may share memory: one thread writes, so that no two threads write the same memory.
pub fn copy_into_shared(from: &Array, to: &Array) -> Result<()> {
    copy_by(Kernel::Fn(cpu::copy_serial, None), from, to)
}

/// The kernel of an operator on a device; `own` on the CPU.
///
/// # Errors
/// [`Error::Device`] if there is none.
pub fn kernel_on(device: Device, op: &'static OpDef, own: Kernel) -> Result<Kernel> {
    match device.kind() {
        DeviceKind::Cpu => Ok(own),
        kind => match device_kernels::find(op, kind) {
            Some(found) => Ok(Kernel::Fn(found, None)),
            None => Err(missing_kernel(op, device)),
        },
    }
}

fn copy_by(kernel: Kernel, from: &Array, to: &Array) -> Result<()> {
    if mode::Flags::current().is_stacked() {
        return match from.device() == to.device() {
            true => copy_as_call(from, to),
            false => copy_as_call(&on_device_of(from, to)?, to),
        };
    }
    if from.is_abstract() || to.is_abstract() {
        return match to.is_abstract() {
            true => Ok(()),
            false => from.check_values(),
        };
    }
    let device = to.device();
    if from.device() != device {
        return copy_by(kernel, &on_device_of(from, to)?, to);
    }
    if to.tensor().is_read_only() {
        to.check_writable(builtins().copy.name, "output array")?;
    }
    let kernel = kernel_on(device, builtins().copy, kernel)?;
    let call = Call {
        op: builtins().copy,
        inputs: &[Some(from)],
        attrs: &Attrs::none(),
        outs: &[Some(to)],
        dtype: Some(to.dtype()),
    };
    let outputs = SmallVec::<[Array; 1]>::from_buf([Array::from_tensor(to.tensor().clone())]);
    let cost_ns = cost_ns(&call.context(), to.tensor().len_bytes());
    launch(&call, &kernel, &outputs, 0, cost_ns, device)
}

/// `from` on the device of `to`, if it is a Python number or on another device.
#[cold]
fn on_device_of(from: &Array, to: &Array) -> Result<Array> {
    match from.number() {
        Some(value) => Array::scalar(value, to.dtype())?.to_device(to.device()),
        None => from.detach().to_device(to.device()),
    }
}

/// Copies by a call that interpreters see: `duplicate`, or `cast` with `out=to`.
#[cold]
#[inline(never)]
fn copy_as_call(from: &Array, to: &Array) -> Result<()> {
    // The caller has recorded the write already, or does not want it recorded.
    let _scope = mode::Scope::enter(false, mode::is_training());
    let (from, to) = (from.detach().broadcast_to(to.shape())?, to.detach());
    let converts = from.is_weak() || from.dtype() != to.dtype();
    let (op, attrs) = match converts {
        true => {
            let dtype = Value::DType(to.dtype());
            (builtins().cast, [dtype].into_iter().collect())
        }
        false => (builtins().copy, Attrs::none()),
    };
    dispatch(&Call {
        op,
        inputs: &[Some(&from)],
        attrs: &attrs,
        outs: &[Some(&to)],
        dtype: None,
    })
    .map(drop)
}
