//! Kernels of modules for operators. One function is registered for all of them. It tries the kernels in order of priority.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use mxnet_core::{Cpu, Error, KernelContext, OpDef, Result, device_kernels, registry};
use mxnet_tensor::DeviceKind;
use parking_lot::Mutex;

use crate::abi::{mx_kernel, mx_kernel_entry};
use crate::call::{Attributes, State, run_kernel};
use crate::text;

/// A checked copy of a module's description of a kernel.
#[derive(Clone)]
pub struct Description {
    op: &'static str,
    device: &'static str,
    priority: i32,
    kernel: mx_kernel,
    state: State,
}

/// A kernel of a module that is registered for an operator.
#[derive(Clone, Debug)]
pub struct Served {
    /// The operator.
    pub op: &'static str,
    /// The kind of device.
    pub device: &'static str,
    /// The priority of the kernel.
    pub priority: i32,
    /// The module.
    pub module: &'static str,
}

#[derive(Clone)]
struct Entry {
    priority: i32,
    module: &'static str,
    kernel: mx_kernel,
    state: State,
}

type Table = HashMap<(&'static str, DeviceKind), Vec<Entry>>;

/// The table, read by calls without a lock. Replaced tables are never freed, because a call may still be reading one.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static CHANGES: Mutex<()> = Mutex::new(());

fn table() -> Option<&'static Table> {
    // SAFETY: null, or a table that was leaked and never changes.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// Checks and copies the description of a kernel. `devices` and `operators` are those that the same module adds.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(
    given: *const mx_kernel_entry,
    devices: &[&str],
    operators: &[&OpDef],
) -> Result<Description> {
    let wrong = |problem: String| Error::value("load", problem);
    if given.is_null() || !given.is_aligned() {
        return Err(wrong("the kernel is null".to_owned()));
    }
    // SAFETY: not null, and the caller's promise. The first word is the size.
    let size = unsafe { given.cast::<usize>().read() };
    if size < size_of::<mx_kernel_entry>() {
        let needed = size_of::<mx_kernel_entry>();
        return Err(wrong(format!(
            "the kernel's structure has {size} bytes, at least {needed} are needed"
        )));
    }
    // SAFETY: the structure has at least the size that is read; the caller's promise.
    let (given, name, device) = unsafe {
        let given = given.read();
        (
            given,
            text::copied(given.op, "op")?,
            text::copied(given.device, "device")?,
        )
    };
    let added = operators.iter().copied().find(|op| op.name == name);
    let Some(op) = added.or_else(|| registry::find(name)) else {
        return Err(wrong(format!(
            "a kernel is for `{name}`, which is not an operator"
        )));
    };
    if DeviceKind::find(device).is_none() && !devices.contains(&device) {
        return Err(wrong(format!(
            "a kernel of `{name}` is for `{device}`, which is not a device"
        )));
    }
    if given.kernel.is_none() {
        return Err(wrong(format!("the kernel of `{name}` is null")));
    }
    // On the CPU the engine's kernel handles calls that the module declines.
    let is_kernel = matches!(op.cpu, Cpu::Kernel(_));
    if !is_kernel && (device == "cpu" || !matches!(op.cpu, Cpu::Map(_))) {
        return Err(wrong(format!(
            "`{name}` has no kernel of its own that a module could replace"
        )));
    }
    if given.priority <= 0 && (device == "cpu" || device == "gpu" && added.is_none()) {
        let problem = format!("the priority of a kernel of `{name}` is {}", given.priority);
        return Err(wrong(format!(
            "{problem}: the engine's own has 0, so it would never run"
        )));
    }
    Ok(Description {
        op: op.name,
        device,
        priority: given.priority,
        kernel: given.kernel,
        state: State(given.state),
    })
}

/// Adds kernels to the table.
pub fn add(module: &'static str, described: &[Description]) -> Result<()> {
    let _changes = CHANGES.lock();
    let mut next = table().cloned().unwrap_or_default();
    for kernel in described {
        let kind = DeviceKind::find(kernel.device)
            .ok_or_else(|| Error::device("load", format!("`{}` is not a device", kernel.device)))?;
        let entries = next.entry((kernel.op, kind)).or_default();
        entries.push(Entry {
            priority: kernel.priority,
            module,
            kernel: kernel.kernel,
            state: kernel.state,
        });
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
    }
    TABLE.store(Box::into_raw(Box::new(next)), Ordering::Release);
    for kernel in described {
        let kind = DeviceKind::find(kernel.device).unwrap_or(DeviceKind::Cpu);
        device_kernels::register(kernel.op, kind, kernel.priority, run)?;
    }
    Ok(())
}

/// All registered kernels of modules.
pub fn served() -> Vec<Served> {
    let all = table().into_iter().flatten();
    let mut found: Vec<Served> = all
        .flat_map(|(&(op, kind), entries)| {
            entries.iter().map(move |entry| Served {
                op,
                device: kind.name(),
                priority: entry.priority,
                module: entry.module,
            })
        })
        .collect();
    found.sort_by_key(|served| (served.op, served.device, std::cmp::Reverse(served.priority)));
    found
}

/// The kernel that is registered for operators with kernels of modules.
fn run(context: &KernelContext) -> Result<()> {
    let kind = context.device.kind();
    let found = table().and_then(|table| table.get(&(context.op.name, kind)));
    let attributes = Attributes::new(context.args);
    for entry in found.into_iter().flatten() {
        if run_kernel(context, entry.kernel, entry.state, &attributes.list)? {
            return Ok(());
        }
    }
    let own = match context.op.cpu {
        Cpu::Kernel(own) if kind == DeviceKind::Cpu => Some(own),
        // The kernel of priority 0 is a module's: this function.
        _ if found.is_some_and(|all| all.iter().any(|entry| entry.priority == 0)) => None,
        _ => device_kernels::base(context.op, kind),
    };
    match own {
        Some(own) => own(context),
        None => {
            let problem = format!("no kernel on {} accepts this call", context.device);
            Err(Error::device(context.op.name, problem))
        }
    }
}
