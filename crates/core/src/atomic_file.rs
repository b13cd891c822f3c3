//! Files that are replaced in one step: the content is written to a temporary file in the folder of the target, which is then renamed.
//!
//! The temporary files of `a` are `.a.0.mxnet-tmp`, `.a.1.mxnet-tmp`, ... The writer of one holds a file lock on it, which the system
//! releases when the process ends, however it ends. The next save of the same target removes the temporary files that nobody holds, so
//! what killed processes leave does not accumulate.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::FileError;

/// Checks that `path` leads to a regular file: opening a pipe waits for its other end, and a device has no end.
///
/// # Errors
/// What the system reports; [`Error::Io`] that says what is there.
pub fn check_is_file(op: &'static str, path: &Path) -> Result<(), FileError> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        // `EISDIR`: Python chooses the exception class by this number.
        return Err(io::Error::from_raw_os_error(21).into());
    }
    let problem = format!("'{}' is {}, not a file", path.display(), kind_name(kind));
    Err(Error::io(op, problem)
        .with_hint("open it, and pass the open file to functions that take one")
        .into())
}

#[cfg(unix)]
fn kind_name(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}

#[cfg(not(unix))]
fn kind_name(_kind: fs::FileType) -> &'static str {
    "something else"
}

/// Follows symbolic links, also to a file that does not exist yet: the path that `open` would create.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    /// Linux has the same limit.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    // `ELOOP`.
    Err(io::Error::from_raw_os_error(40))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A temporary file that will replace its target.
pub struct AtomicFile {
    /// Handle for writing the temporary file.
    pub file: File,
    /// Path of the temporary file.
    pub path: PathBuf,
    /// The file that will be replaced.
    pub target: PathBuf,
    /// The process that created it. A process forked from that one neither commits nor removes it.
    process: u32,
    is_committed: bool,
}

impl AtomicFile {
    /// Creates an empty temporary file in the folder of the target, and removes those that killed processes have left there.
    ///
    /// # Errors
    /// What the system reports; [`Error::Io`] if the target exists and is not a file.
    pub fn create(path: &Path) -> Result<AtomicFile, FileError> {
        let target = resolve_links(path)?;
        match check_is_file("save", &target) {
            Err(FileError::System(error)) if error.kind() == ErrorKind::NotFound => {}
            other => other?,
        }
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        let temporary = |number: usize| {
            let mut own = std::ffi::OsString::from(".");
            own.push(name);
            own.push(format!(".{number}.mxnet-tmp"));
            folder_of(&target).join(own)
        };
        let mut number = 0;
        let file = loop {
            let path = temporary(number);
            match create_locked(&path)? {
                Some(file) => break file,
                None if remove_abandoned(&path) => {}
                None => number += 1,
            }
        };
        let path = temporary(number);
        let file = AtomicFile {
            file,
            path,
            target: target.clone(),
            process: std::process::id(),
            is_committed: false,
        };
        loop {
            number += 1;
            let other = temporary(number);
            if !remove_abandoned(&other) && fs::symlink_metadata(&other).is_err() {
                return Ok(file);
            }
        }
    }

    /// Whether this process created it, not a parent that forked.
    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Writes the file to the disk and renames it to the target, so that a crash leaves the old file or the new one.
    ///
    /// # Errors
    /// What the system reports; the target is untouched then.
    pub fn commit(mut self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.target) {
            self.file.set_permissions(old.permissions())?;
        }
        // The data must be on the disk before the name is: otherwise a power cut can leave an empty file of that name.
        self.file.sync_all()?;
        fs::rename(&self.path, &self.target)?;
        self.is_committed = true;
        // Makes the new name itself durable; not every system can do that to a folder.
        if let Ok(folder) = File::open(folder_of(&self.target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_committed && self.is_own() {
            // If it cannot be removed, the next save of this file removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a file that does not exist and locks it. `None` if the name is taken, also by another process between the two steps.
fn create_locked(path: &Path) -> io::Result<Option<File>> {
    // `create_new` follows no link: in a folder of several users, a link here could lead to a file of somebody else.
    let file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        // A process that saw it without a lock has removed it as abandoned.
        Ok(()) if !has_name(&file, path)? => Ok(None),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        // On a file system without locks no file counts as abandoned.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Removes a temporary file whose writer has ended. Returns whether it did.
fn remove_abandoned(path: &Path) -> bool {
    let is_file = |path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_file(path) {
        return false;
    }
    let Ok(file) = OpenOptions::new().write(true).open(path) else {
        return false;
    };
    // Its writer may have renamed it since it was opened: then another file has this name, or none.
    file.try_lock().is_ok()
        && has_name(&file, path).unwrap_or(false)
        && fs::remove_file(path).is_ok()
}

/// Whether the open file has this name.
#[cfg(unix)]
fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((own.dev(), own.ino()) == (found.dev(), found.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// On systems other than Unix an open file keeps its name.
#[cfg(not(unix))]
fn has_name(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}
