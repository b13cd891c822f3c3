//! Loads modules. A module's library is opened and describes what it adds. Nothing is registered until all descriptions have been checked.

use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};

use mxnet_core::{Error, OpDef, Result, registry};
use mxnet_graph::{Provider, set_provider};
use parking_lot::Mutex;

use crate::abi::{
    MX_MODULE_ABI, MX_MODULE_FAILED, MX_MODULE_OK, mx_device, mx_host, mx_kernel_entry, mx_module,
    mx_operator, mx_partitioner, mx_pass,
};
use crate::text::{self, MESSAGE_BYTES};
use crate::{device, kernel, operator, partitioner, pass};

/// Oldest supported version of the ABI. The first was 1.
const OLDEST: u32 = if MX_MODULE_ABI > 3 {
    MX_MODULE_ABI - 2
} else {
    1
};

/// A module that was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Operators that it added.
    pub operators: Vec<&'static str>,
    /// Kinds of devices that it added.
    pub devices: Vec<&'static str>,
    /// Graph passes and partitioners that it added.
    pub passes: Vec<&'static str>,
}

static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// The loaded modules.
pub fn loaded() -> Vec<Loaded> {
    LOADED.lock().clone()
}

/// Descriptions that a module has given so far, and the first error in them.
#[derive(Default)]
struct Pending {
    operators: Vec<operator::Description>,
    kernels: Vec<kernel::Description>,
    devices: Vec<device::Description>,
    passes: Vec<pass::Description>,
    partitioners: Vec<partitioner::Description>,
    wrong: Option<Error>,
}

impl Pending {
    /// Adds a description, or stores its error.
    fn take<T>(&mut self, described: Result<T>, into: impl FnOnce(&mut Pending, T)) -> i32 {
        match described {
            Ok(described) => {
                into(self, described);
                MX_MODULE_OK
            }
            Err(error) => {
                self.wrong.get_or_insert(error);
                MX_MODULE_FAILED
            }
        }
    }
}

/// # Safety
/// `context` is the [`Pending`] of [`load`]; `given` is null or valid.
unsafe extern "C" fn add_operator(context: *mut c_void, given: *const mx_operator) -> i32 {
    // SAFETY: the caller's promise; the module calls this on the thread of its `init`.
    unsafe {
        let pending = &mut *context.cast::<Pending>();
        let described = operator::describe(given).and_then(|described| {
            let name = described.op.name;
            match pending.operators.iter().any(|other| other.op.name == name) {
                true => Err(Error::value("load", format!("it adds `{name}` twice"))),
                false => Ok(described),
            }
        });
        pending.take(described, |pending, x| pending.operators.push(x))
    }
}

/// # Safety
/// As [`add_operator`].
unsafe extern "C" fn add_kernel(context: *mut c_void, given: *const mx_kernel_entry) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        let pending = &mut *context.cast::<Pending>();
        let devices: Vec<&str> = pending.devices.iter().map(|device| device.name).collect();
        let operators: Vec<&OpDef> = pending.operators.iter().map(|added| &added.op).collect();
        let described = kernel::describe(given, &devices, &operators);
        pending.take(described, |pending, x| pending.kernels.push(x))
    }
}

/// # Safety
/// As [`add_operator`].
unsafe extern "C" fn add_device(context: *mut c_void, given: *const mx_device) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        let pending = &mut *context.cast::<Pending>();
        let described = device::describe(given);
        pending.take(described, |pending, x| pending.devices.push(x))
    }
}

impl Pending {
    /// Checks that no pass or partitioner of this module has the name.
    fn new_pass(&self, name: &'static str) -> Result<()> {
        let passes = self.passes.iter().map(|pass| pass.name);
        let mut names = passes.chain(self.partitioners.iter().map(|known| known.name));
        match names.any(|known| known == name) {
            true => Err(Error::value(
                "load",
                format!("it adds the pass `{name}` twice"),
            )),
            false => Ok(()),
        }
    }
}

/// # Safety
/// As [`add_operator`].
unsafe extern "C" fn add_pass(context: *mut c_void, given: *const mx_pass) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        let pending = &mut *context.cast::<Pending>();
        let described = pass::describe(given)
            .and_then(|described| pending.new_pass(described.name).map(|()| described));
        pending.take(described, |pending, x| pending.passes.push(x))
    }
}

/// # Safety
/// As [`add_operator`].
unsafe extern "C" fn add_partitioner(context: *mut c_void, given: *const mx_partitioner) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        let pending = &mut *context.cast::<Pending>();
        let described = partitioner::describe(given)
            .and_then(|described| pending.new_pass(described.name).map(|()| described));
        pending.take(described, |pending, x| pending.partitioners.push(x))
    }
}

/// Loads the module at `path`. If it is loaded already, returns it.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened or is not a module; [`Error::Unsupported`] for another version of the ABI and for errors that the
/// module reports; [`Error::Value`] for an invalid description. Nothing is registered then.
pub fn load(path: &Path) -> Result<Loaded> {
    let path = path
        .canonicalize()
        .map_err(|error| Error::io("load", format!("{}: {error}", path.display())))?;
    let mut all = LOADED.lock();
    if let Some(known) = all.iter().find(|known| known.path == path) {
        return Ok(known.clone());
    }
    let at = path.display();
    let io = |problem: String| Error::io("load", problem);
    // SAFETY: loading runs the library's initialisers, which the caller asked for.
    let library = unsafe { libloading::Library::new(&path) };
    let library = library.map_err(|error| {
        // The system's message, such as the name of a library that is missing, is in the cause.
        let cause = std::error::Error::source(&error);
        let problem = cause.map_or_else(|| error.to_string(), ToString::to_string);
        io(format!("{at} cannot be opened: {problem}"))
    })?;
    // A module is never unloaded, even if it is refused: its initialisers may have stored pointers to it.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    type Entry = unsafe extern "C" fn() -> *const mx_module;
    // SAFETY: a symbol of this name has this type according to the ABI.
    let entry = unsafe { library.get::<Entry>(b"mx_module_entry\0") };
    let entry = entry.map_err(|_| {
        let error = io(format!(
            "{at} is not a module: it has no function `mx_module_entry`"
        ));
        error.with_hint("modules of MXNet 1 have another ABI and must be rebuilt")
    })?;
    // SAFETY: as above.
    let module = unsafe { entry() };
    // SAFETY: the entry's structure is constant; its size and version are checked before its other fields are read.
    let (name, version, module) = unsafe { read_entry(module, &at.to_string())? };
    let mut pending = Pending::default();
    let host = mx_host {
        size: size_of::<mx_host>(),
        abi: MX_MODULE_ABI,
        reserved: 0,
        context: (&raw mut pending).cast(),
        add_operator: Some(add_operator),
        add_kernel: Some(add_kernel),
        add_device: Some(add_device),
        add_pass: Some(add_pass),
        add_partitioner: Some(add_partitioner),
    };
    let mut written = [0 as c_char; MESSAGE_BYTES];
    let Some(init) = module.init else {
        return Err(io(format!("the module {at} has no `init`")));
    };
    // SAFETY: the module promises a function of this type; `host` and what it points to live until it returns.
    let status = unsafe { init(&raw const host, written.as_mut_ptr(), MESSAGE_BYTES) };
    if let Some(wrong) = pending.wrong.take() {
        return Err(wrong);
    }
    if status != MX_MODULE_OK {
        let reason = text::message(&written);
        return Err(Error::unsupported(
            "load",
            format!("the module `{name}` refuses: {reason}"),
        ));
    }
    for described in &pending.operators {
        if let Some(gradient) = described.gradient {
            let is_there = registry::find(gradient).is_some()
                || pending
                    .operators
                    .iter()
                    .any(|other| other.op.name == gradient);
            if !is_there {
                let op = described.op.name;
                let problem =
                    format!("the gradient of `{op}` is `{gradient}`, which is not an operator");
                return Err(Error::value("load", problem));
            }
        }
    }
    let loaded = register(pending, name, version, &path)?;
    all.push(loaded.clone());
    Ok(loaded)
}

fn register(
    pending: Pending,
    name: &'static str,
    version: &'static str,
    path: &Path,
) -> Result<Loaded> {
    let devices: Vec<&'static str> = pending.devices.iter().map(|device| device.name).collect();
    for device in pending.devices {
        device::add(device)?;
    }
    let mut operators = Vec::new();
    for described in pending.operators {
        let op = registry::add(described.op)?;
        set_provider(op.name, Provider::Module(name.to_owned()));
        operators.push(op.name);
    }
    kernel::add(name, &pending.kernels)?;
    let mut passes = Vec::new();
    for described in pending.passes {
        passes.push(described.name);
        pass::add(name, described)?;
    }
    for described in pending.partitioners {
        passes.push(described.name);
        partitioner::add(name, described)?;
    }
    Ok(Loaded {
        name,
        version,
        path: path.to_owned(),
        operators,
        devices,
        passes,
    })
}

/// Checks the entry of a module. Returns its name, its version and a copy.
///
/// # Safety
/// `module` is null or the structure of a module.
unsafe fn read_entry(
    module: *const mx_module,
    at: &str,
) -> Result<(&'static str, &'static str, mx_module)> {
    let io = |problem: String| Error::io("load", problem);
    if module.is_null() || !module.is_aligned() {
        return Err(io(format!("the module {at} has no entry")));
    }
    // SAFETY: not null, and the caller's promise: every version of the ABI has these two fields.
    let (size, abi) = unsafe {
        (
            (&raw const (*module).size).read(),
            (&raw const (*module).abi).read(),
        )
    };
    if !(OLDEST..=MX_MODULE_ABI).contains(&abi) {
        let problem = format!(
            "the module {at} was built for version {abi} of the ABI, supported are versions {OLDEST} to {MX_MODULE_ABI}"
        );
        return Err(Error::unsupported("load", problem)
            .with_hint("build it with the header of this release"));
    }
    if size < size_of::<mx_module>() {
        let needed = size_of::<mx_module>();
        return Err(io(format!(
            "the entry of {at} has {size} bytes, at least {needed} are needed"
        )));
    }
    // SAFETY: the structure has at least the size that is read; the caller's promise.
    unsafe {
        let module = module.read();
        let name = text::copied(module.name, "name of the module")?;
        Ok((
            name,
            text::copied(module.version, "version of the module")?,
            module,
        ))
    }
}
