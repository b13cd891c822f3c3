//! Kernels that are added to existing operators at run time: for other devices, or faster ones for the CPU.
//!
//! The kernel in the operator's definition is the CPU's and has priority 0. For each kind of device the added kernel of highest priority is used.
//! Calls find their kernel in their plan. Preparing a plan reads the thread's copy of the table, so that no call takes a lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use mxnet_tensor::DeviceKind;

use crate::context::KernelContext;
use crate::error::{Error, Result};
use crate::opdef::{Cpu, OpDef};
use crate::{plan, registry};

/// A kernel that fills preallocated outputs on its device.
pub type DeviceKernel = fn(&KernelContext) -> Result<()>;

/// Added kernels.
#[derive(Clone, Default)]
struct Table {
    /// Kernels by operator and kind of device, in descending order of priority.
    kernels: HashMap<(&'static str, DeviceKind), Vec<(i32, DeviceKernel)>>,
    /// Kernel for all operators without one of their own on this kind of device.
    others: HashMap<DeviceKind, DeviceKernel>,
}

static TABLE: RwLock<Option<Arc<Table>>> = RwLock::new(None);

/// Incremented when the table changes.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// This thread's copy of the table, and the value of [`CHANGES`] when it was copied.
    static KNOWN: RefCell<(u64, Option<Arc<Table>>)> = const { RefCell::new((0, None)) };
}

fn change_kernels(op: &str, change_of: impl FnOnce(&mut Table, &'static OpDef)) -> Result<()> {
    let Some(found) = registry::find(op) else {
        let problem = format!("there is no operator `{op}`");
        return Err(Error::value("register", problem));
    };
    if !matches!(found.cpu, Cpu::Map(_) | Cpu::Kernel(_)) {
        let problem = format!("`{op}` has no kernel: it is a view, or made of other operators");
        return Err(Error::value("register", problem));
    }
    change(|table| change_of(table, found));
    Ok(())
}

fn change(change: impl FnOnce(&mut Table)) {
    let mut shared = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let mut table = shared.as_deref().cloned().unwrap_or_default();
    change(&mut table);
    *shared = Some(Arc::new(table));
    CHANGES.fetch_add(1, Ordering::Release);
    drop(shared);
    plan::invalidate();
}

/// Adds a kernel for a kind of device that runs all operators without one of their own there. Its argument names the operator.
pub fn register_for_all(kind: DeviceKind, kernel: DeviceKernel) {
    change(|table| {
        table.others.insert(kind, kernel);
    });
}

/// Adds a kernel of operator `op` for a kind of device; it replaces one of the same priority. The CPU kernel in the operator's definition has
/// priority 0 and is used unless an added kernel has a higher priority.
///
/// # Errors
/// [`Error::Value`] if there is no such operator, or if its definition has no kernel: views and composites.
pub fn register(op: &str, kind: DeviceKind, priority: i32, kernel: DeviceKernel) -> Result<()> {
    change_kernels(op, |table, op| {
        let kernels = table.kernels.entry((op.name, kind)).or_default();
        kernels.retain(|(known, _)| *known != priority);
        let position = kernels.partition_point(|(known, _)| *known > priority);
        kernels.insert(position, (priority, kernel));
    })
}

/// Removes the added kernel of this priority.
///
/// # Errors
/// As [`register`].
pub fn remove(op: &str, kind: DeviceKind, priority: i32) -> Result<()> {
    change_kernels(op, |table, op| {
        if let Some(kernels) = table.kernels.get_mut(&(op.name, kind)) {
            kernels.retain(|(known, _)| *known != priority);
        }
    })
}

/// The added kernel of `op` for a kind of device; `None` if the kernel of the definition is used.
pub(crate) fn find(op: &'static OpDef, kind: DeviceKind) -> Option<DeviceKernel> {
    in_table(|table| {
        let best = table
            .kernels
            .get(&(op.name, kind))
            .and_then(|kernels| kernels.first());
        match best {
            Some(&(priority, kernel)) if kind != DeviceKind::Cpu || priority > 0 => Some(kernel),
            _ => table.others.get(&kind).copied(),
        }
    })
}

/// The kernel of priority 0 of `op` for a kind of device, or the one for all operators there.
pub fn base(op: &'static OpDef, kind: DeviceKind) -> Option<DeviceKernel> {
    in_table(|table| {
        let added = table.kernels.get(&(op.name, kind));
        let found = added.and_then(|all| all.iter().find(|(priority, _)| *priority == 0));
        let found = found.map(|&(_, kernel)| kernel);
        found.or_else(|| table.others.get(&kind).copied())
    })
}

/// Reads this thread's copy of the table.
fn in_table<R>(read: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
    let changes = CHANGES.load(Ordering::Acquire);
    if changes == 0 {
        return None;
    }
    KNOWN.with_borrow_mut(|(known, table)| {
        if *known != changes {
            *table = TABLE.read().unwrap_or_else(PoisonError::into_inner).clone();
            *known = changes;
        }
        table.as_deref().and_then(read)
    })
}
