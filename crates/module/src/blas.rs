//! Libraries that multiply matrices, opened when the setting `blas` names them: OpenBLAS of the package `scipy-openblas32`, oneDNN of
//! `onednn-cpu-gomp`. Each call runs on the calling thread only: the engine splits products into tiles and runs these on its own threads.
//!
//! A library is opened for this crate only (`RTLD_LOCAL`), and its functions are looked up in its handle. So it does not interfere with the copies that
//! NumPy, SciPy or PyTorch load. An open library is never closed, because a product may be running in it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library as Handle;
use linkme::distributed_slice;
use mxnet_core::blas::OPENERS;
use mxnet_core::{Error, Result};
use mxnet_kernels::gemm::{Library, Product, current_library, set_library};
use num_complex::Complex;
use parking_lot::Mutex;

#[distributed_slice(OPENERS)]
static OPENER: fn(&'static str) -> Result<()> = choose;

/// Folders of Python packages that may have the libraries in them.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// State of a library that can multiply matrices: whether it was found, whether it is open.
#[derive(Clone, Debug)]
pub struct BlasLibrary {
    /// Its name in the setting `blas`.
    pub name: &'static str,
    /// The file, if it was found.
    pub path: Option<String>,
    /// Its version; empty before it is opened.
    pub version: String,
    /// Whether it is open and has all required functions.
    pub is_loaded: bool,
    /// Whether the setting `blas` selects it now.
    pub is_selected: bool,
    /// Why it is not open, and how to get it.
    pub reason: String,
}

/// A library that is open.
struct Opened {
    functions: Library,
    path: String,
    version: String,
}

/// A supported library: where it is searched for.
struct Kind {
    name: &'static str,
    /// The package of PyPI.
    package: &'static str,
    /// Names of the file.
    files: &'static [&'static str],
    /// Folder of the file, relative to a folder of Python packages.
    folder: &'static str,
    read: fn(&Handle) -> std::result::Result<(Library, String), String>,
    opened: OnceLock<Opened>,
    /// Why the last attempt failed.
    failure: Mutex<String>,
}

static OPENBLAS: Kind = Kind {
    name: "openblas",
    package: "scipy-openblas32",
    files: &[
        "libscipy_openblas.so",
        "libscipy_openblas.dylib",
        "libscipy_openblas.dll",
    ],
    folder: "scipy_openblas32/lib",
    read: read_openblas,
    opened: OnceLock::new(),
    failure: Mutex::new(String::new()),
};

static ONEDNN: Kind = Kind {
    name: "onednn",
    package: "onednn-cpu-gomp",
    files: &["libdnnl.so.3", "libdnnl.3.dylib", "dnnl.dll"],
    // The package has the library in `lib` of the environment, two folders above `lib/python3.x/site-packages`.
    folder: "../..",
    read: read_onednn,
    opened: OnceLock::new(),
    failure: Mutex::new(String::new()),
};

/// Adds folders in which the packages are searched for: those of Python's module search path.
pub fn add_folders(folders: impl IntoIterator<Item = PathBuf>) {
    let mut known = FOLDERS.lock();
    for folder in folders {
        if !known.contains(&folder) {
            known.push(folder);
        }
    }
}

/// The libraries that the setting `blas` can name. Nothing is opened.
pub fn blas_libraries() -> Vec<BlasLibrary> {
    [&OPENBLAS, &ONEDNN].map(Kind::describe).into()
}

/// Selects the implementation of all following products: a library, or the built-in kernels.
fn choose(choice: &'static str) -> Result<()> {
    let kind = match choice {
        "openblas" => &OPENBLAS,
        "onednn" => &ONEDNN,
        "auto" => {
            set_library(OPENBLAS.open().ok().map(|opened| &opened.functions));
            return Ok(());
        }
        _ => {
            set_library(None);
            return Ok(());
        }
    };
    let opened = kind.open().map_err(|reason| {
        let problem = format!("`blas` cannot be '{choice}': {reason}");
        let package = kind.package;
        Error::unsupported("config", problem).with_hint(format!("pip install {package}"))
    })?;
    set_library(Some(&opened.functions));
    Ok(())
}

impl Kind {
    fn open(&'static self) -> std::result::Result<&'static Opened, String> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = self.try_to_open();
        *self.failure.lock() = opened.as_ref().err().cloned().unwrap_or_default();
        opened.map(|opened| self.opened.get_or_init(|| opened))
    }

    /// Files that may be the library: those in Python's folders, then the names, for the system's search.
    fn candidates(&self) -> Vec<PathBuf> {
        let folders = FOLDERS.lock().clone();
        let inside = folders.iter().flat_map(|folder| {
            let names = self.files.iter();
            names.map(move |name| folder.join(self.folder).join(name))
        });
        let found = inside.filter(|file| file.exists());
        let found = found.map(|file| file.canonicalize().unwrap_or(file));
        found.chain(self.files.iter().map(PathBuf::from)).collect()
    }

    fn try_to_open(&self) -> std::result::Result<Opened, String> {
        let mut problem = format!("the library of {} was not found", self.package);
        for file in self.candidates() {
            let is_name = file.parent() == Some(Path::new(""));
            // SAFETY: the libraries have initialisers that any program may run.
            let handle = match unsafe { Handle::new(&file) } {
                Ok(handle) => handle,
                // The system reports for each name that it is missing.
                Err(_) if is_name => continue,
                Err(error) => {
                    let cause = std::error::Error::source(&error);
                    problem = cause.map_or_else(|| error.to_string(), ToString::to_string);
                    continue;
                }
            };
            // A library is never closed: it may have threads.
            let handle: &'static Handle = Box::leak(Box::new(handle));
            match (self.read)(handle) {
                Ok((functions, version)) => {
                    let path = file.to_string_lossy().into_owned();
                    return Ok(Opened {
                        functions,
                        path,
                        version,
                    });
                }
                Err(missing) => problem = format!("{}: {missing}", file.display()),
            }
        }
        Err(problem)
    }

    fn describe(&'static self) -> BlasLibrary {
        if let Some(opened) = self.opened.get() {
            return BlasLibrary {
                name: self.name,
                path: Some(opened.path.clone()),
                version: opened.version.clone(),
                is_loaded: true,
                is_selected: current_library()
                    .is_some_and(|it| ptr::eq(it, &raw const opened.functions)),
                reason: String::new(),
            };
        }
        let file = self
            .candidates()
            .into_iter()
            .find(|file| file.is_absolute());
        let (name, package) = (self.name, self.package);
        let failure = self.failure.lock().clone();
        let reason = match &file {
            _ if !failure.is_empty() => format!("{failure}: pip install {package}"),
            Some(_) => format!("it is opened when `mx.config.blas` is '{name}'"),
            None => format!("it was not found: pip install {package}"),
        };
        BlasLibrary {
            name,
            path: file.map(|file| file.to_string_lossy().into_owned()),
            version: String::new(),
            is_loaded: false,
            is_selected: false,
            reason,
        }
    }
}

/// A function of a library.
///
/// # Safety
/// `T` is the type of the function of this name.
unsafe fn find<T: Copy>(library: &Handle, name: &str) -> std::result::Result<T, String> {
    // SAFETY: the caller's promise.
    let found = unsafe { library.get::<T>(name) };
    found
        .map(|symbol| *symbol)
        .map_err(|_| format!("it has no function `{name}`"))
}

// OpenBLAS: CBLAS with 32-bit sizes. Every symbol of the package begins with `scipy_`.

const ROW_MAJOR: c_int = 101;
const NO_TRANSPOSE: c_int = 111;
const TRANSPOSE: c_int = 112;

/// `cblas_?gemm` with a factor passed as `F`: a number for real types, a pointer to one for complex types.
type Cblas<F> = unsafe extern "C" fn(
    order: c_int,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: F,
    a: *const c_void,
    a_stride: c_int,
    b: *const c_void,
    b_stride: c_int,
    beta: F,
    c: *mut c_void,
    c_stride: c_int,
);

static SGEMM: OnceLock<Cblas<f32>> = OnceLock::new();
static DGEMM: OnceLock<Cblas<f64>> = OnceLock::new();
static CGEMM: OnceLock<Cblas<*const c_void>> = OnceLock::new();
static ZGEMM: OnceLock<Cblas<*const c_void>> = OnceLock::new();

/// # Safety
/// The product's elements are in bounds, and `F` is the type of the factors of `gemm`.
unsafe fn call_cblas<T, F>(gemm: &OnceLock<Cblas<F>>, p: &Product<T>, factors: (F, F)) -> bool {
    let Some(gemm) = gemm.get() else {
        return false;
    };
    let form = |is_transposed: bool| {
        if is_transposed {
            TRANSPOSE
        } else {
            NO_TRANSPOSE
        }
    };
    // SAFETY: the function is CBLAS's of this type, and the caller's promise.
    unsafe {
        gemm(
            ROW_MAJOR,
            form(p.a_is_transposed),
            form(p.b_is_transposed),
            p.m,
            p.n,
            p.k,
            factors.0,
            p.a.cast(),
            p.a_stride,
            p.b.cast(),
            p.b_stride,
            factors.1,
            p.c.cast(),
            p.c_stride,
        );
    }
    true
}

fn read_openblas(library: &Handle) -> std::result::Result<(Library, String), String> {
    // SAFETY: functions of these names have these types in CBLAS and in OpenBLAS's own header.
    let version = unsafe {
        let set_num_threads: unsafe extern "C" fn(c_int) =
            find(library, "scipy_openblas_set_num_threads")?;
        let config: unsafe extern "C" fn() -> *const c_char =
            find(library, "scipy_openblas_get_config")?;
        let (s, d) = (
            find(library, "scipy_cblas_sgemm")?,
            find(library, "scipy_cblas_dgemm")?,
        );
        let (c, z) = (
            find(library, "scipy_cblas_cgemm")?,
            find(library, "scipy_cblas_zgemm")?,
        );
        SGEMM.get_or_init(|| s);
        DGEMM.get_or_init(|| d);
        CGEMM.get_or_init(|| c);
        ZGEMM.get_or_init(|| z);
        set_num_threads(1);
        text(config())
    };
    // "OpenBLAS 0.3.30  USE64BITINT ...": the second word.
    let version = version.split_whitespace().nth(1).unwrap_or("").to_owned();
    let functions = Library {
        // SAFETY: the caller's promise about the product; the factors are as the function has them, here and below.
        f32: Some(|p| unsafe { call_cblas(&SGEMM, p, (p.alpha, p.beta)) }),
        // SAFETY: as above.
        f64: Some(|p| unsafe { call_cblas(&DGEMM, p, (p.alpha, p.beta)) }),
        // SAFETY: as above.
        c64: Some(|p| unsafe { call_cblas(&CGEMM, p, pointers::<f32>(p)) }),
        // SAFETY: as above.
        c128: Some(|p| unsafe { call_cblas(&ZGEMM, p, pointers::<f64>(p)) }),
    };
    Ok((functions, version))
}

fn pointers<T>(p: &Product<Complex<T>>) -> (*const c_void, *const c_void) {
    (
        (&raw const p.alpha).cast::<c_void>(),
        (&raw const p.beta).cast::<c_void>(),
    )
}

/// # Safety
/// Null, or text that ends with a zero byte.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

// oneDNN: products of f32, row-major. It uses OpenMP's threads. Their number is a setting of the calling thread, which is set to 1 for the call.

type Dnnl = unsafe extern "C" fn(
    transpose_a: c_char,
    transpose_b: c_char,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const f32,
    a_stride: i64,
    b: *const f32,
    b_stride: i64,
    beta: f32,
    c: *mut f32,
    c_stride: i64,
) -> c_int;

/// The beginning of `dnnl_version_t`.
#[repr(C)]
struct DnnlVersion {
    major: c_int,
    minor: c_int,
    patch: c_int,
}

#[derive(Clone, Copy)]
struct Onednn {
    sgemm: Dnnl,
    num_threads: unsafe extern "C" fn() -> c_int,
    set_num_threads: unsafe extern "C" fn(c_int),
}

static DNNL: OnceLock<Onednn> = OnceLock::new();

/// # Safety
/// The product's elements are in bounds.
unsafe fn call_onednn(p: &Product<f32>) -> bool {
    let Some(library) = DNNL.get() else {
        return false;
    };
    let form = |is_transposed: bool| if is_transposed { b'T' } else { b'N' } as c_char;
    // SAFETY: the functions are oneDNN's and OpenMP's, and the caller's promise. The thread's previous number of OpenMP threads is restored.
    unsafe {
        let before = (library.num_threads)();
        if before != 1 {
            (library.set_num_threads)(1);
        }
        let status = (library.sgemm)(
            form(p.a_is_transposed),
            form(p.b_is_transposed),
            i64::from(p.m),
            i64::from(p.n),
            i64::from(p.k),
            p.alpha,
            p.a,
            i64::from(p.a_stride),
            p.b,
            i64::from(p.b_stride),
            p.beta,
            p.c,
            i64::from(p.c_stride),
        );
        if before != 1 {
            (library.set_num_threads)(before);
        }
        status == 0
    }
}

fn read_onednn(library: &Handle) -> std::result::Result<(Library, String), String> {
    // SAFETY: functions of these names have these types in oneDNN's header and in OpenMP's, which oneDNN brings along.
    let version = unsafe {
        let version: unsafe extern "C" fn() -> *const DnnlVersion = find(library, "dnnl_version")?;
        let onednn = Onednn {
            sgemm: find(library, "dnnl_sgemm")?,
            num_threads: find(library, "omp_get_max_threads")?,
            set_num_threads: find(library, "omp_set_num_threads")?,
        };
        DNNL.get_or_init(|| onednn);
        ptr::NonNull::new(version().cast_mut()).map(|version| version.read())
    };
    let version = version.map_or_else(String::new, |v| {
        format!("{}.{}.{}", v.major, v.minor, v.patch)
    });
    let functions = Library {
        f32: Some(call_onednn),
        ..Library::default()
    };
    Ok((functions, version))
}
