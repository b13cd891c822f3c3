//! Kernels of existing operators that are added while the program runs: for other devices, or better ones for the CPU.
//!
//! The kernel of the operator's entry is the CPU's, with priority 0. Of those that were added for a kind of device the one of highest priority
//! runs. A call finds its kernel in its plan; where a plan is prepared, the thread's copy of the table is asked, so that no call takes a lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use mxnet_tensor::DeviceKind;

use crate::cx::KernelCx;
use crate::error::{Error, Result};
use crate::opdef::{Cpu, OpDef};
use crate::{plan, registry};

/// A kernel that fills preallocated outputs on its device.
pub type DeviceKernel = fn(&KernelCx) -> Result<()>;

/// What was added.
#[derive(Clone, Default)]
struct Table {
    /// Kernels by the name of their operator and the kind of device, by falling priority.
    kernels: HashMap<(&'static str, DeviceKind), Vec<(i32, DeviceKernel)>>,
    /// What runs on a kind of device where it has no kernel of the operator.
    others: HashMap<DeviceKind, DeviceKernel>,
}

static TABLE: RwLock<Option<Arc<Table>>> = RwLock::new(None);

/// Counts the changes of the table.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The table that this thread knows, and the number of changes it has.
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

/// Adds a kernel for a kind of device that runs every operator which has no other kernel there: its argument says which one it is called for.
pub fn register_for_all(kind: DeviceKind, kernel: DeviceKernel) {
    change(|table| {
        table.others.insert(kind, kernel);
    });
}

/// Adds a kernel of operator `op` for a kind of device, in place of one of the same priority. The kernel of the operator's entry, for the CPU, has
/// priority 0 and runs where no added one has a higher priority.
///
/// # Errors
/// [`Error::Value`] if there is no such operator, or it has no kernel in its entry: a view, or an operator that is made of others.
pub fn register(op: &str, kind: DeviceKind, priority: i32, kernel: DeviceKernel) -> Result<()> {
    change_kernels(op, |table, op| {
        let kernels = table.kernels.entry((op.name, kind)).or_default();
        kernels.retain(|(known, _)| *known != priority);
        let place = kernels.partition_point(|(known, _)| *known > priority);
        kernels.insert(place, (priority, kernel));
    })
}

/// Takes away the kernel of this priority that was added.
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

/// The added kernel of `op` that runs on a kind of device; `None` for that of the entry.
pub(crate) fn find(op: &'static OpDef, kind: DeviceKind) -> Option<DeviceKernel> {
    let changes = CHANGES.load(Ordering::Acquire);
    if changes == 0 {
        return None;
    }
    KNOWN.with_borrow_mut(|(known, table)| {
        if *known != changes {
            *table = TABLE.read().unwrap_or_else(PoisonError::into_inner).clone();
            *known = changes;
        }
        let table = table.as_ref()?;
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
