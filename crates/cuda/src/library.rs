//! Finds and opens NVIDIA's libraries: by name in the system's search path, then in the folders of pip packages, then in CUDA toolkits.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};

use libloading::Library as Handle;
use parking_lot::Mutex;

/// Folders of Python packages that may contain NVIDIA's pip packages.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Results of all searches, in their order.
static SEARCHES: Mutex<Vec<Library>> = Mutex::new(Vec::new());

/// Result of the search for a library of NVIDIA: whether it was found, its path and version.
#[derive(Clone, Debug)]
pub struct Library {
    /// `driver` or `nvrtc`.
    pub name: &'static str,
    /// The file, or its name if the system found it; `None` if it was not found.
    pub path: Option<String>,
    /// Major and minor version.
    pub version: Option<(i32, i32)>,
    /// Why it was not found, and how to get it.
    pub reason: String,
}

/// Adds folders that may contain NVIDIA's pip packages: Python's package folders.
pub fn add_folders(folders: impl IntoIterator<Item = PathBuf>) {
    let mut known = FOLDERS.lock();
    for folder in folders {
        if !known.contains(&folder) {
            known.push(folder);
        }
    }
}

/// The libraries that this crate uses. Searches for those that were not needed so far.
pub fn libraries() -> Vec<Library> {
    // The first use searches for them; errors are in the list.
    let _ = crate::driver::get();
    let _ = crate::compile::compiler();
    let mut found = SEARCHES.lock().clone();
    found.sort_by_key(|library| library.name);
    found
}

/// Stores the result of a search.
pub fn report(library: Library) {
    let mut known = SEARCHES.lock();
    known.retain(|other| other.name != library.name);
    known.push(library);
}

/// Opens the first file that can be opened; returns its handle and path.
///
/// # Errors
/// The system's message for the last file that exists, otherwise for the last name.
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

/// Folders that may contain a library: the packages `nvidia/<package>/lib` in Python's folders, and toolkits.
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
