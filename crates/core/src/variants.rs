//! Kernels of existing operators for other devices: what a device crate or a module adds to the registry.
//!
//! The CPU's kernel of an operator is in its entry and never looked up here.

use std::collections::HashMap;
use std::sync::RwLock;

use mxnet_tensor::DeviceKind;

use crate::cx::KernelCx;
use crate::error::{Error, Result};
use crate::opdef::OpDef;
use crate::{plan, registry};

/// A kernel that fills preallocated outputs on its device.
pub type DeviceKernel = fn(&KernelCx) -> Result<()>;

static KERNELS: RwLock<Option<HashMap<(&'static str, DeviceKind), DeviceKernel>>> =
    RwLock::new(None);

/// Adds (or replaces) the kernel of operator `op` for a kind of device.
///
/// # Errors
/// [`Error::Value`] if there is no such operator, or the kind is the CPU, whose kernels are in the operators' entries.
pub fn register(op: &str, kind: DeviceKind, kernel: DeviceKernel) -> Result<()> {
    let Some(found) = registry::find(op) else {
        return Err(Error::value(
            "register",
            format!("there is no operator `{op}`"),
        ));
    };
    if kind == DeviceKind::Cpu {
        return Err(Error::value(
            "register",
            format!("the CPU's kernel of `{op}` is in its entry"),
        ));
    }
    let mut kernels = KERNELS
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    kernels
        .get_or_insert_default()
        .insert((found.name, kind), kernel);
    drop(kernels);
    plan::invalidate();
    Ok(())
}

/// The kernel of `op` for a kind of device other than the CPU.
pub(crate) fn find(op: &'static OpDef, kind: DeviceKind) -> Option<DeviceKernel> {
    let kernels = KERNELS
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    kernels
        .as_ref()
        .and_then(|kernels| kernels.get(&(op.name, kind)).copied())
}
