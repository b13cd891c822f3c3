//! Finds NVIDIA's libraries and opens them: by their names where the system looks, then in the folders of pip's packages, then where a toolkit is.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};

use libloading::Library as Handle;
use parking_lot::Mutex;

/// Folders of Python packages that may have NVIDIA's packages in them.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What was looked for, in the order of looking.
static LOOKED_FOR: Mutex<Vec<Library>> = Mutex::new(Vec::new());

/// A library of NVIDIA's: whether it was found, where, and which version it has.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its name: `driver`, `nvrtc`.
    pub name: &'static str,
    /// The file, or its name where the system has found it; `None` if nothing was found.
    pub path: Option<String>,
    /// Major and minor number.
    pub version: Option<(i32, i32)>,
    /// Why it is not there, and how to get it.
    pub reason: String,
}

/// Names folders that may hold pip's packages of NVIDIA: those in which Python looks for packages.
pub fn add_folders(folders: impl IntoIterator<Item = PathBuf>) {
    let mut known = FOLDERS.lock();
    for folder in folders {
        if !known.contains(&folder) {
            known.push(folder);
        }
    }
}

/// The libraries that are used, each looked for if nobody has yet.
pub fn libraries() -> Vec<Library> {
    // Both are looked for at their first use; what is wrong with them is in the list.
    let _ = crate::driver::get();
    let _ = crate::compile::compiler();
    let mut found = LOOKED_FOR.lock().clone();
    found.sort_by_key(|library| library.name);
    found
}

/// Keeps what became of a library.
pub fn report(library: Library) {
    let mut known = LOOKED_FOR.lock();
    known.retain(|other| other.name != library.name);
    known.push(library);
}

/// The first of the files that can be opened, and its path.
///
/// # Errors
/// What the system says of the last one that exists, else of the last name.
pub fn open(names: &[&str], packages: &[&str]) -> Result<(Handle, String), String> {
    let mut problem = String::new();
    let mut try_to_open = |file: &str| {
        // SAFETY: NVIDIA's libraries have initialisers that any program may run.
        match unsafe { Handle::new(file) } {
            Ok(handle) => Some((handle, file.to_owned())),
            Err(error) => {
                let cause = std::error::Error::source(&error);
                problem = cause.map_or_else(|| error.to_string(), ToString::to_string);
                None
            }
        }
    };
    if let Some(found) = names.iter().find_map(|name| try_to_open(name)) {
        return Ok(found);
    }
    for folder in candidate_folders(packages) {
        for name in names {
            let file = folder.join(name);
            if file.exists()
                && let Some(found) = file.to_str().and_then(&mut try_to_open)
            {
                return Ok(found);
            }
        }
    }
    Err(problem)
}

/// Where a library may lie: in the packages `nvidia/<package>/lib` of Python's folders, and in toolkits.
fn candidate_folders(packages: &[&str]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in FOLDERS.lock().iter() {
        for package in packages {
            folders.push(folder.join("nvidia").join(package).join("lib"));
        }
    }
    let toolkit = ["CUDA_HOME", "CUDA_PATH"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let standard = Some(Path::new("/usr/local/cuda").to_path_buf());
    for root in toolkit.into_iter().chain([standard]).flatten() {
        folders.push(root.join("lib64"));
        folders.push(root.join("lib"));
    }
    folders
}
