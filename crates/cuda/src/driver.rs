//! Bindings of the CUDA driver: a function table that is filled from `libcuda` when a device is first used.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use mxnet_tensor::TensorError;

use crate::error::{check, refused};
use crate::library::{self, Library};

/// `CUresult`; 0 is success.
pub type Status = c_int;
/// An address on a device.
pub type Address = u64;
/// `CUstream`, `CUevent`, `CUcontext`, `CUmodule`, `CUfunction`, `CUmemoryPool`, `CUgraph`, `CUgraphExec`.
pub type Handle = *mut c_void;

/// `CUmemAccessDesc`: access of a device to the memory of a pool.
#[repr(C)]
pub struct PoolAccess {
    /// 1 (`CU_MEM_LOCATION_TYPE_DEVICE`).
    location_type: c_int,
    device: c_int,
    /// 3 (`CU_MEM_ACCESS_FLAGS_PROT_READWRITE`).
    access: c_int,
}

impl PoolAccess {
    /// Read and write access for a device.
    pub fn of(device: c_int) -> PoolAccess {
        PoolAccess {
            location_type: 1,
            device,
            access: 3,
        }
    }
}

/// Defines the table. The symbol of a function has its name, or the one after `=`. Those under `optional` may be missing: they are newer than CUDA
/// 11.0, or the crate can work without them.
macro_rules! functions {
    (required { $($name:ident $(= $symbol:literal)? : fn($($arg:ty),*);)* } optional { $($other:ident $(= $other_symbol:literal)? : fn($($other_arg:ty),*);)* }) => {
        /// The function table of the driver.
        #[allow(non_snake_case, reason = "the driver's names")]
        pub struct Driver {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> Status,)*
            $(pub $other: Option<unsafe extern "C" fn($($other_arg),*) -> Status>,)*
            version: c_int,
        }

        /// Resolves the symbols of all functions.
        ///
        /// # Safety
        /// The library is NVIDIA's driver.
        unsafe fn look_up(library: &libloading::Library) -> Result<Driver, String> {
            Ok(Driver {
                // SAFETY: the driver's functions have these types (cuda.h).
                $($name: unsafe { *library.get(symbol(stringify!($name), &[$($symbol)?]).as_bytes()).map_err(|e| e.to_string())? },)*
                // SAFETY: as above.
                $($other: unsafe { library.get(symbol(stringify!($other), &[$($other_symbol)?]).as_bytes()).ok().map(|f| *f) },)*
                version: 0,
            })
        }
    };
}

/// The symbol of a function: the explicit one if given, otherwise its name.
fn symbol(name: &'static str, written: &[&'static str]) -> &'static str {
    written.first().copied().unwrap_or(name)
}

functions! {
    required {
        cuInit: fn(c_uint);
        cuDriverGetVersion: fn(*mut c_int);
        cuGetErrorName: fn(Status, *mut *const c_char);
        cuGetErrorString: fn(Status, *mut *const c_char);
        cuDeviceGetCount: fn(*mut c_int);
        cuDeviceGet: fn(*mut c_int, c_int);
        cuDeviceGetName: fn(*mut c_char, c_int, c_int);
        cuDeviceGetAttribute: fn(*mut c_int, c_int, c_int);
        cuDevicePrimaryCtxRetain: fn(*mut Handle, c_int);
        cuCtxSetCurrent: fn(Handle);
        cuCtxGetCurrent: fn(*mut Handle);
        cuMemGetInfo = "cuMemGetInfo_v2": fn(*mut usize, *mut usize);
        cuMemAlloc = "cuMemAlloc_v2": fn(*mut Address, usize);
        cuMemFree = "cuMemFree_v2": fn(Address);
        cuMemHostAlloc: fn(*mut *mut c_void, usize, c_uint);
        cuMemHostGetDevicePointer = "cuMemHostGetDevicePointer_v2": fn(*mut Address, *mut c_void, c_uint);
        cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2": fn(Address, *const c_void, usize, Handle);
        cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, Address, usize, Handle);
        cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2": fn(Address, Address, usize, Handle);
        cuMemcpyPeerAsync: fn(Address, Handle, Address, Handle, usize, Handle);
        cuMemsetD8Async: fn(Address, u8, usize, Handle);
        cuDeviceCanAccessPeer: fn(*mut c_int, c_int, c_int);
        cuCtxEnablePeerAccess: fn(Handle, c_uint);
        cuStreamCreate: fn(*mut Handle, c_uint);
        cuStreamSynchronize: fn(Handle);
        cuStreamWaitEvent: fn(Handle, Handle, c_uint);
        cuEventCreate: fn(*mut Handle, c_uint);
        cuEventRecord: fn(Handle, Handle);
        cuEventQuery: fn(Handle);
        cuEventSynchronize: fn(Handle);
        cuModuleLoadData: fn(*mut Handle, *const c_void);
        cuModuleGetFunction: fn(*mut Handle, Handle, *const c_char);
        cuFuncSetAttribute: fn(Handle, c_int, c_int);
        cuLaunchKernel: fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
    }
    optional {
        cuDeviceGetDefaultMemPool: fn(*mut Handle, c_int);
        cuMemAllocFromPoolAsync: fn(*mut Address, usize, Handle, Handle);
        cuMemFreeAsync: fn(Address, Handle);
        cuMemPoolSetAttribute: fn(Handle, c_int, *mut c_void);
        cuMemPoolTrimTo: fn(Handle, usize);
        cuMemPoolSetAccess: fn(Handle, *const PoolAccess, usize);
    }
}

/// Set in a process that was forked after the driver was initialised: the driver does not work there.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process was forked after its parent had initialised the driver.
#[inline]
pub fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Fails in a forked process.
///
/// # Errors
/// `Device` in a forked process.
#[inline]
pub fn check_process(id: u32) -> Result<(), TensorError> {
    match is_forked() {
        false => Ok(()),
        true => Err(refused(
            id,
            "use in a forked process",
            "CUDA does not work in a process forked from one that uses it: start processes with the method 'spawn', or before a GPU is first used",
        )),
    }
}

impl Driver {
    /// `CUDA_VERSION` of the driver: 1000 times the major version plus 10 times the minor one.
    pub fn version(&self) -> i32 {
        self.version
    }

    fn words(
        &self,
        status: Status,
        ask: unsafe extern "C" fn(Status, *mut *const c_char) -> Status,
    ) -> String {
        let mut text = ptr::null();
        // SAFETY: the driver stores a pointer to a constant string, or leaves null.
        let words = unsafe {
            ask(status, &raw mut text);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        words.unwrap_or_else(|| format!("CUDA error {status}"))
    }

    /// Name of a status, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub fn error_name(&self, status: Status) -> String {
        self.words(status, self.cuGetErrorName)
    }

    /// Description of a status.
    pub fn error_text(&self, status: Status) -> String {
        self.words(status, self.cuGetErrorString)
    }
}

/// The driver, loaded at the first call.
///
/// # Errors
/// Why there is no driver, and what is needed.
pub fn get() -> Result<&'static Driver, &'static str> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let names: &[&str] = match cfg!(windows) {
            true => &["nvcuda.dll"],
            false => &["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"],
        };
        let loaded = library::open(names, &[])
            .map_err(|problem| {
                format!("NVIDIA's driver was not found ({problem}); it comes with the system's package of the driver, not with pip")
            })
            .and_then(|(handle, path)| Ok((start(handle)?, path)));
        let version = |driver: &Driver| (driver.version / 1000, driver.version % 1000 / 10);
        library::report(Library {
            name: "driver",
            path: loaded.as_ref().ok().map(|(_, path)| path.clone()),
            version: loaded.as_ref().ok().map(|(driver, _)| version(driver)),
            reason: loaded.as_ref().err().cloned().unwrap_or_default(),
        });
        loaded.map(|(driver, _)| driver)
    });
    driver.as_ref().map_err(String::as_str)
}

/// Initialises the driver. The library is never unloaded.
fn start(library: libloading::Library) -> Result<Driver, String> {
    // The library stays loaded, so the functions in the table are valid for the rest of the process.
    let library = ManuallyDrop::new(library);
    // SAFETY: the names are those of NVIDIA's driver.
    let mut driver = unsafe { look_up(&library) }
        .map_err(|problem| format!("NVIDIA's driver is too old: {problem}"))?;
    let mut version = 0;
    // SAFETY: `version` is writable.
    let status = unsafe {
        match (driver.cuInit)(0) {
            0 => (driver.cuDriverGetVersion)(&raw mut version),
            status => status,
        }
    };
    if status != 0 {
        let (name, text) = (driver.error_name(status), driver.error_text(status));
        return Err(format!("NVIDIA's driver does not start: {name} ({text})"));
    }
    driver.version = version;
    #[cfg(unix)]
    // SAFETY: the handler only stores to an atomic.
    unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    }
    Ok(driver)
}

/// A device in use, with its primary context, which all libraries of the process share.
pub struct Context {
    /// Index of the device.
    pub id: u32,
    /// `CUdevice`.
    pub device: c_int,
    /// `CUcontext`.
    pub handle: Handle,
    /// Compute capability: 10 times the major version plus the minor one, 90 for `sm_90`.
    pub arch: i32,
    /// Maximum dynamic shared memory of a block, in bytes.
    pub max_shared_bytes: u32,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Upper limit of the number of devices.
const MAX_DEVICES: usize = 64;

/// Number of devices; 0 without a driver.
pub fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let Ok(driver) = get() else { return 0 };
        let mut count = 0;
        // SAFETY: `count` is writable.
        let status = unsafe { (driver.cuDeviceGetCount)(&raw mut count) };
        match status {
            0 => (count.max(0) as usize).min(MAX_DEVICES),
            _ => 0,
        }
    })
}

impl Context {
    /// The context of device `id`, created at the first call. It is current on the calling thread when this returns.
    ///
    /// # Errors
    /// `Device` if there is no such device, if it cannot be used, or in a forked process.
    #[inline]
    pub fn enter(id: u32) -> Result<(&'static Driver, &'static Context), TensorError> {
        static CONTEXTS: [OnceLock<Context>; MAX_DEVICES] =
            [const { OnceLock::new() }; MAX_DEVICES];
        check_process(id)?;
        let driver = get().map_err(|problem| refused(id, "start", problem))?;
        let slot = CONTEXTS
            .get(id as usize)
            .ok_or_else(|| refused(id, "start", "there is no such device"))?;
        let context = match slot.get() {
            Some(context) => context,
            None => {
                let made = Context::new(driver, id)?;
                slot.get_or_init(|| made)
            }
        };
        let mut current = ptr::null_mut();
        // SAFETY: `current` is writable; the context is valid for the rest of the process. Other libraries may have made theirs current.
        let status = unsafe {
            (driver.cuCtxGetCurrent)(&raw mut current);
            match current == context.handle {
                true => 0,
                false => (driver.cuCtxSetCurrent)(context.handle),
            }
        };
        check(id, "entering its context", status)?;
        Ok((driver, context))
    }

    #[cold]
    fn new(driver: &Driver, id: u32) -> Result<Context, TensorError> {
        let (mut device, mut handle) = (0, ptr::null_mut());
        // SAFETY: both are writable; the primary context is retained for the rest of the process.
        let status = unsafe {
            match (driver.cuDeviceGet)(&raw mut device, id as c_int) {
                0 => (driver.cuDevicePrimaryCtxRetain)(&raw mut handle, device),
                status => status,
            }
        };
        check(id, "making its context", status)?;
        let attribute = |number| attribute(driver, id, device, number);
        Ok(Context {
            id,
            device,
            handle,
            // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
            arch: attribute(75)? * 10 + attribute(76)?,
            // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN; older devices have 48 KiB.
            max_shared_bytes: attribute(97).unwrap_or(49152).max(0) as u32,
        })
    }
}

/// An attribute of a device, by its number in `cuda.h`.
fn attribute(driver: &Driver, id: u32, device: c_int, number: c_int) -> Result<i32, TensorError> {
    let mut value = 0;
    // SAFETY: `value` is writable.
    let status = unsafe { (driver.cuDeviceGetAttribute)(&raw mut value, number, device) };
    check(id, "asking for an attribute", status)?;
    Ok(value)
}

/// The name of a device, such as `NVIDIA H100 80GB HBM3`.
///
/// # Errors
/// `Device` if there is no such device.
pub fn device_name(id: u32) -> Result<String, TensorError> {
    let (driver, context) = Context::enter(id)?;
    let mut name = [0; 128];
    // SAFETY: the buffer has the given length; the driver ends the string with a zero byte.
    let status = unsafe {
        (driver.cuDeviceGetName)(name.as_mut_ptr(), name.len() as c_int - 1, context.device)
    };
    check(id, "asking for its name", status)?;
    // SAFETY: the last byte is zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}
