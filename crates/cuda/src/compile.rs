//! Compiles kernel sources with NVRTC for the architecture of the device, and caches the result on disk for other processes.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library as Opened;
use mxnet_core::atomic_file::AtomicFile;
use mxnet_core::{Error, Result, config};
use parking_lot::Mutex;

use crate::driver::{self, Context, Handle, Status};
use crate::error::check;
use crate::launch::Function;
use crate::library::{self, Library};
use crate::text::PRELUDE;

type Program = Handle;

/// The functions of NVRTC.
struct Table {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_text: unsafe extern "C" fn(Status) -> *const c_char,
    num_archs: unsafe extern "C" fn(*mut c_int) -> Status,
    archs: unsafe extern "C" fn(*mut c_int) -> Status,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Status,
}

/// NVRTC, after loading.
pub struct Compiler {
    table: Table,
    version: (i32, i32),
    /// Supported architectures, ascending.
    archs: Vec<i32>,
}

/// The compiler, loaded at the first call.
///
/// # Errors
/// Why NVRTC is missing, and how to get it.
pub fn compiler() -> std::result::Result<&'static Compiler, &'static str> {
    static COMPILER: OnceLock<std::result::Result<Compiler, String>> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| {
        // A driver accepts the output of compilers of its own or an older major version.
        let newest = driver::get().map_or(13, |driver| driver.version() / 1000);
        let names: &[&str] = match newest {
            ..13 => &["libnvrtc.so.12", "libnvrtc.so"],
            _ => &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        };
        let loaded = library::open(names, &["cu13", "cuda_nvrtc"])
            .map_err(|problem| {
                let package = match newest {
                    ..13 => "nvidia-cuda-nvrtc-cu12",
                    _ => "nvidia-cuda-nvrtc",
                };
                format!("NVIDIA's run-time compiler NVRTC was not found ({problem}): `pip install {package}`")
            })
            .and_then(|(library, path)| Ok((Compiler::new(library)?, path)));
        library::report(Library {
            name: "nvrtc",
            path: loaded.as_ref().ok().map(|(_, path)| path.clone()),
            version: loaded.as_ref().ok().map(|(compiler, _)| compiler.version),
            reason: loaded.as_ref().err().cloned().unwrap_or_default(),
        });
        loaded.map(|(compiler, _)| compiler)
    });
    compiler.as_ref().map_err(String::as_str)
}

impl Compiler {
    fn new(library: Opened) -> std::result::Result<Compiler, String> {
        // The library is never closed, so its functions stay valid.
        let library = ManuallyDrop::new(library);
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: NVRTC's functions have the types of the table (nvrtc.h).
                unsafe { *library.get($name).map_err(|error| error.to_string())? }
            };
        }
        let table = Table {
            version: symbol!(b"nvrtcVersion"),
            error_text: symbol!(b"nvrtcGetErrorString"),
            num_archs: symbol!(b"nvrtcGetNumSupportedArchs"),
            archs: symbol!(b"nvrtcGetSupportedArchs"),
            create: symbol!(b"nvrtcCreateProgram"),
            compile: symbol!(b"nvrtcCompileProgram"),
            destroy: symbol!(b"nvrtcDestroyProgram"),
            log_size: symbol!(b"nvrtcGetProgramLogSize"),
            log: symbol!(b"nvrtcGetProgramLog"),
            cubin_size: symbol!(b"nvrtcGetCUBINSize"),
            cubin: symbol!(b"nvrtcGetCUBIN"),
            ptx_size: symbol!(b"nvrtcGetPTXSize"),
            ptx: symbol!(b"nvrtcGetPTX"),
        };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        let mut archs = Vec::new();
        // SAFETY: all are writable; the list has the length that the compiler returned.
        unsafe {
            (table.version)(&raw mut major, &raw mut minor);
            if (table.num_archs)(&raw mut count) == 0 && count > 0 {
                archs.resize(count as usize, 0);
                (table.archs)(archs.as_mut_ptr());
            }
        }
        archs.sort_unstable();
        Ok(Compiler {
            table,
            version: (major, minor),
            archs,
        })
    }

    /// The option that selects the architecture, and whether the result is machine code. For an architecture that is newer than the compiler, the
    /// result is PTX for the newest supported one, which the driver compiles.
    fn target(&self, arch: i32) -> (String, bool) {
        match self.archs.last() {
            Some(&newest) if newest < arch => {
                (format!("--gpu-architecture=compute_{newest}"), false)
            }
            _ => (format!("--gpu-architecture=sm_{arch}"), true),
        }
    }

    /// Compiles a source.
    ///
    /// # Errors
    /// The messages of the compiler.
    fn compile(
        &self,
        text: &str,
        target: &str,
        is_machine_code: bool,
    ) -> std::result::Result<Vec<u8>, String> {
        let text = CString::new(text).map_err(|_| "the text has a zero byte".to_owned())?;
        let options = [target, "--std=c++17"];
        let options: Vec<CString> = options.into_iter().flat_map(CString::new).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let table = &self.table;
        let mut program = ptr::null_mut();
        // SAFETY: the strings end with a zero byte; `program` is writable.
        let status = unsafe {
            (table.create)(
                &raw mut program,
                text.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if status != 0 {
            return Err(self.words(status));
        }
        // SAFETY: the program is valid until it is destroyed below; the options end with a zero byte.
        let status = unsafe { (table.compile)(program, options.len() as c_int, options.as_ptr()) };
        let result = match (status, is_machine_code) {
            (0, true) => self.output(program, table.cubin_size, table.cubin),
            (0, false) => self.output(program, table.ptx_size, table.ptx),
            (status, _) => {
                let log = self
                    .output(program, table.log_size, table.log)
                    .unwrap_or_default();
                let log = String::from_utf8_lossy(&log);
                Err(format!(
                    "{}\n{}",
                    self.words(status),
                    log.trim_end_matches('\0').trim_end()
                ))
            }
        };
        // SAFETY: nobody uses the program any more.
        unsafe { (table.destroy)(&raw mut program) };
        result
    }

    /// The output (code or messages) of the compiler for a program.
    fn output(
        &self,
        program: Program,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> std::result::Result<Vec<u8>, String> {
        let mut len = 0;
        // SAFETY: the program is valid; `len` is writable.
        let mut status = unsafe { size(program, &raw mut len) };
        let mut bytes = vec![0_u8; len];
        if status == 0 {
            // SAFETY: the program is valid; the buffer has the length that the compiler returned.
            status = unsafe { get(program, bytes.as_mut_ptr().cast()) };
        }
        match status {
            0 => Ok(bytes),
            status => Err(self.words(status)),
        }
    }

    fn words(&self, status: Status) -> String {
        // SAFETY: the compiler returns a constant string.
        let text = unsafe { (self.table.error_text)(status) };
        if text.is_null() {
            return format!("NVRTC error {status}");
        }
        // SAFETY: the string ends with a zero byte.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

/// A function that is loaded on a device.
struct Loaded(Handle);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Loaded {}

/// Loaded functions by device and key.
static LOADED: Mutex<Option<HashMap<(u32, String), Loaded>>> = Mutex::new(None);

/// The function `kernel` of a source on the device of `context`, which is current.
///
/// # Errors
/// [`Error::Device`] if the compiler is missing or the device refuses the code; [`Error::Internal`] if the source does not compile.
pub fn function(
    op: &'static str,
    context: &Context,
    key: &str,
    source: impl FnOnce() -> String,
) -> Result<Function> {
    let of_key = (context.id, key.to_owned());
    let loaded = |handle| Function {
        handle,
        shared_bytes: 48 << 10,
    };
    if let Some(found) = LOADED.lock().get_or_insert_default().get(&of_key) {
        return Ok(loaded(found.0));
    }
    // The lock is not held, so that threads compile at the same time. If two compile the same source, the second result is dropped.
    let text = format!("{PRELUDE}\n{}", source());
    let compiler = compiler().map_err(|problem| Error::device(op, problem))?;
    if let Some(&oldest) = compiler.archs.first()
        && context.arch < oldest
    {
        let ((major, minor), arch) = (compiler.version, context.arch);
        let problem = format!(
            "NVRTC {major}.{minor} compiles for devices of compute capability {}.{} and later, this one has {}.{}",
            oldest / 10,
            oldest % 10,
            arch / 10,
            arch % 10
        );
        return Err(Error::device(op, problem)
            .with_hint("an older version of it compiles for older devices: `pip install nvidia-cuda-nvrtc-cu12`"));
    }
    let (target, is_machine_code) = compiler.target(context.arch);
    let name = CacheName {
        version: compiler.version,
        target: &target,
        text: &text,
    };
    let load_kept = || load(context, &name.read()?).ok();
    let handle = match load_kept() {
        Some(handle) => handle,
        None => {
            let code = compiler
                .compile(&text, &target, is_machine_code)
                .map_err(|problem| {
                    let problem = format!("the kernel `{key}` does not compile: {problem}");
                    Error::internal(op, problem)
                })?;
            name.write(&code);
            load(context, &code)?
        }
    };
    let mut table = LOADED.lock();
    let entry = table.get_or_insert_default().entry(of_key);
    Ok(loaded(entry.or_insert(Loaded(handle)).0))
}

/// Loads code on the device of `context`, which is current, and returns its function `kernel`.
fn load(context: &Context, code: &[u8]) -> Result<Handle> {
    let (driver, _) = Context::enter(context.id)?;
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    // PTX is text and must end with a zero byte.
    let mut image = code.to_vec();
    image.push(0);
    // SAFETY: the image is output of the compiler (verified if it came from disk); both handles are writable. The module is never unloaded.
    let status = unsafe {
        match (driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()) {
            0 => (driver.cuModuleGetFunction)(&raw mut function, module, c"kernel".as_ptr()),
            status => status,
        }
    };
    check(context.id, "loading a kernel", status)?;
    Ok(function)
}

/// The inputs of a compilation; they identify its file in the cache, which contains all of them.
struct CacheName<'a> {
    version: (i32, i32),
    target: &'a str,
    text: &'a str,
}

/// First bytes of every cache file; the last ones are the version of the format.
const MAGIC: &[u8; 8] = b"mxkern\x00\x01";

/// FNV-1a, 64 bits: for file names and as a checksum. A match is decided by the text in the file, not by the hash.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl CacheName<'_> {
    /// All inputs of the compilation as text.
    fn describe(&self) -> String {
        let (major, minor) = self.version;
        format!("nvrtc {major}.{minor} {}\n{}", self.target, self.text)
    }

    fn file(&self) -> Option<PathBuf> {
        if !config::kernel_cache_is_on() {
            return None;
        }
        let name = format!("{:016x}.kernel", hash(&[self.describe().as_bytes()]));
        Some(folder()?.join(name))
    }

    /// The code from the cache, if the file is intact and was compiled from the same inputs.
    fn read(&self) -> Option<Vec<u8>> {
        unpack(&fs::read(self.file()?).ok()?, &self.describe())
    }

    /// Writes the code to the cache. Errors are ignored: the next process compiles again.
    fn write(&self, code: &[u8]) {
        let Some(path) = self.file() else { return };
        let written = || -> std::result::Result<(), Box<dyn std::error::Error>> {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let mut file = AtomicFile::create(&path).map_err(|_| "no file")?;
            file.file.write_all(&pack(code, &self.describe()))?;
            Ok(file.commit()?)
        };
        let _ = written();
    }
}

/// `mxnet/kernels` in the user's cache folder; `None` if there is no such folder.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("mxnet").join("kernels"))
}

/// A cache file: magic, checksum of what follows, length of the description, description, code.
fn pack(code: &[u8], description: &str) -> Vec<u8> {
    let len = (description.len() as u64).to_le_bytes();
    let parts = [&len[..], description.as_bytes(), code];
    let sum = hash(&parts).to_le_bytes();
    [&[MAGIC, &sum[..]], &parts[..]].concat().concat()
}

/// The code in a cache file, if the file is intact and has this description.
fn unpack(file: &[u8], description: &str) -> Option<Vec<u8>> {
    let rest = file.strip_prefix(MAGIC)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    if hash(&[rest]) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (described, code) = rest.split_at_checked(len)?;
    (described == description.as_bytes()).then(|| code.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_or_foreign_cache_files_are_ignored() {
        let file = pack(b"code", "text");
        assert_eq!(unpack(&file, "text").as_deref(), Some(&b"code"[..]));
        assert_eq!(unpack(&file, "texT"), None);
        for end in 0..file.len() {
            assert_eq!(unpack(&file[..end], "text"), None, "{end}");
        }
        for i in 0..file.len() {
            let mut damaged = file.clone();
            damaged[i] ^= 4;
            assert_eq!(unpack(&damaged, "text"), None, "{i}");
        }
    }
}
