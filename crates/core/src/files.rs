//! Named arrays in safetensors files. Files are replaced in one step, and validated when they are read.
//!
//! A file is the header's length (8 bytes, little endian), the header (JSON: name -> dtype, shape, byte range), then the bytes of all arrays in C
//! order without gaps. Reading executes nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use mxnet_tensor::{DType, Device};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::array::Array;
use crate::atomic_file::{AtomicFile, check_is_file};
use crate::error::Error;
use crate::interrupt;
use crate::read::{ArrayReadGuard, read_all};

/// The format's names of dtypes; it has none for complex128.
const DTYPES: [(DType, Dtype); 14] = [
    (DType::Bool, Dtype::BOOL),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::U8, Dtype::U8),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::C64, Dtype::C64),
];

/// Longer headers are refused. A header of this size describes about a million arrays.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Chunk size of reads and writes.
const CHUNK_BYTES: usize = 1 << 20;

/// What reading or writing a file can report.
#[derive(Debug)]
pub enum FileError {
    /// The system's own error.
    System(io::Error),
    /// Anything else.
    Content(Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::System(error)
    }
}

impl From<Error> for FileError {
    fn from(error: Error) -> FileError {
        FileError::Content(error)
    }
}

impl FileError {
    /// Converts to an error of an operator; errors of the system get the file's name.
    pub fn at(self, path: &Path) -> Error {
        match self {
            FileError::Content(error) => error,
            FileError::System(error) => Error::io("", format!("{}: {error}", path.display())),
        }
    }
}

/// Writes named arrays to a file. An older file is replaced in one step. Waits for the values. Arrays are stored by descending size of their
/// elements, so that each is aligned.
///
/// # Errors
/// What the system reports; an older file stays untouched. [`Error::DType`] for complex128, which the format does not have.
pub fn save(
    path: &Path,
    named: Vec<(String, Array)>,
    metadata: Option<BTreeMap<String, String>>,
) -> Result<(), FileError> {
    let (header, arrays) = prepared(named, metadata)?;
    interrupt::run_interruptibly(|| {
        let mut temporary = AtomicFile::create(path)?;
        write(&mut temporary.file, &header, &arrays)?;
        Ok(temporary.commit()?)
    })?
}

/// The bytes of a file with named arrays, see [`save`].
///
/// # Errors
/// [`Error::DType`] for complex128, which the format does not have; [`Error::Memory`].
pub fn to_bytes(named: Vec<(String, Array)>) -> Result<Vec<u8>, Error> {
    let bytes = || -> Result<Vec<u8>, FileError> {
        let (header, arrays) = prepared(named, None)?;
        let data = arrays.iter().map(|x| x.len() * x.dtype().size());
        let len = 8 + header.len() + data.sum::<usize>();
        crate::memory::check_available("save_safetensors", len)?;
        interrupt::run_interruptibly(|| {
            let mut bytes = Vec::with_capacity(len);
            write(&mut bytes, &header, &arrays)?;
            Ok(bytes)
        })?
    };
    bytes().map_err(|error| error.at(Path::new("the bytes")))
}

/// The header of a file, and its arrays in the order of the file; their values are known.
fn prepared(
    mut named: Vec<(String, Array)>,
    metadata: Option<BTreeMap<String, String>>,
) -> Result<(Vec<u8>, Vec<Array>), FileError> {
    named.sort_by_key(|(_, array)| std::cmp::Reverse(array.dtype().size()));
    let mut entries = Vec::with_capacity(named.len());
    let mut start = 0;
    for (name, array) in &mut named {
        let Some((_, dtype)) = DTYPES.iter().find(|(ours, _)| *ours == array.dtype()) else {
            let problem = format!(
                "`{name}` has dtype {}, which a safetensors file cannot hold",
                array.dtype().name()
            );
            return Err(Error::dtype("save_safetensors", problem).into());
        };
        if name == "__metadata__" {
            let problem = "the name `__metadata__` is reserved by the format";
            return Err(Error::value("save_safetensors", problem).into());
        }
        *array = array.detach().contiguous()?;
        let end = start + array.len() * array.dtype().size();
        entries.push((
            name.clone(),
            TensorInfo {
                dtype: *dtype,
                shape: array.shape().to_vec(),
                data_offsets: (start, end),
            },
        ));
        start = end;
    }
    let internal = |error: String| FileError::Content(Error::internal("save_safetensors", error));
    let header = Metadata::new(None, entries).map_err(|error| internal(error.to_string()))?;
    let mut header = serde_json::to_vec(&header).map_err(|error| internal(error.to_string()))?;
    if let Some(metadata) = metadata {
        // `Metadata` would write them in the random order of its hash map: equal files would differ in their bytes.
        let text = serde_json::to_string(&metadata).map_err(|error| internal(error.to_string()))?;
        let comma = if header == b"{}" { "" } else { "," };
        header.splice(1..1, format!("\"__metadata__\":{text}{comma}").into_bytes());
    }
    // Spaces at the end of the header align the arrays.
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > MAX_HEADER_BYTES {
        let problem = format!(
            "the names and shapes take {} bytes, at most {MAX_HEADER_BYTES} are allowed",
            header.len()
        );
        return Err(Error::value("save_safetensors", problem).into());
    }
    let arrays: Vec<Array> = named.into_iter().map(|(_, array)| array).collect();
    // Waits for the values, and fails early if a computation failed.
    drop(read_all(&arrays)?);
    Ok((header, arrays))
}

/// Writes the whole file.
fn write(to: &mut impl Write, header: &[u8], arrays: &[Array]) -> Result<(), FileError> {
    // Holds all arrays for reading, acquired together: writes that are issued meanwhile wait until the file is written.
    let _all = read_all(arrays)?;
    let held = arrays.iter().map(Array::read);
    let held: Vec<ArrayReadGuard<'_>> = held.collect::<Result<_, _>>()?;
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(header)?;
    for array in &held {
        for chunk in array.bytes().chunks(CHUNK_BYTES) {
            interrupt::check()?;
            to.write_all(chunk)?;
        }
    }
    Ok(())
}

/// Arrays in the order in which they are stored, and the metadata.
pub type Loaded = (Vec<(String, Array)>, BTreeMap<String, String>);

/// Reads a file.
///
/// # Errors
/// What the system reports; [`Error::Io`] for a file that is truncated, damaged, or of another kind.
pub fn load(path: &Path) -> Result<Loaded, FileError> {
    check_is_file("load_safetensors", path)?;
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    read(&mut file, size, &format!("'{}'", path.display()))
}

/// Reads the bytes of a file, see [`load`].
///
/// # Errors
/// [`Error::Io`] for bytes that are truncated, damaged, or of another kind of file; [`Error::Memory`].
pub fn from_bytes(bytes: &[u8]) -> Result<Loaded, Error> {
    let loaded = read(&mut Cursor::new(bytes), bytes.len() as u64, "the data");
    loaded.map_err(|error| error.at(Path::new("the data")))
}

/// Reads a file of `size` bytes from its beginning. `name` is what errors call it.
fn read(file: &mut (impl Read + Seek), size: u64, name: &str) -> Result<Loaded, FileError> {
    let damaged = |problem: String| {
        FileError::Content(Error::io("load_safetensors", format!("{name} {problem}")))
    };
    let mut first = [0; 8];
    let known = read_up_to(file, &mut first)?;
    if known < 8 {
        return Err(damaged(format!(
            "is not a safetensors file: it has {size} bytes, at least 8 are needed"
        )));
    }
    // The header begins with `{`. Other formats may begin with bytes that look like a length.
    let mut ninth = [0];
    let is_header = read_up_to(file, &mut ninth)? == 1 && ninth == *b"{";
    if !is_header && let Some(kind) = foreign(&first) {
        return Err(damaged(format!("is not a safetensors file but {kind}")));
    }
    file.seek(SeekFrom::Start(8))?;
    let length = u64::from_le_bytes(first);
    if length > MAX_HEADER_BYTES.min(size.saturating_sub(8)) {
        return Err(damaged(format!(
            "is truncated or not a safetensors file: its header should have {length} bytes, but {} follow",
            size - 8
        )));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let header: Metadata = serde_json::from_slice(&header).map_err(|error| {
        damaged(format!(
            "is damaged or not a safetensors file: its header is invalid: {error}"
        ))
    })?;
    let (needed, there) = (header.data_len() as u64, size - 8 - length);
    if needed != there {
        let what = if needed > there {
            "truncated"
        } else {
            "damaged"
        };
        return Err(damaged(format!(
            "is {what}: its arrays take {needed} bytes, but {there} follow the header"
        )));
    }
    let mut named = Vec::new();
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else {
            continue;
        };
        let Some((dtype, _)) = DTYPES.iter().find(|(_, theirs)| *theirs == info.dtype) else {
            return Err(damaged(format!(
                "holds `{name}` of dtype {}, which is not supported",
                info.dtype
            )));
        };
        let array = Array::uninitialised(&info.shape, *dtype, Device::cpu(0))?;
        fill(file, &array)?;
        if *dtype == DType::Bool && array.read()?.bytes().iter().any(|b| *b > 1) {
            return Err(damaged(format!(
                "is damaged: `{name}` holds boolean values other than 0 and 1"
            )));
        }
        named.push((name, array));
    }
    let metadata = header.metadata().clone().unwrap_or_default();
    Ok((named, metadata.into_iter().collect()))
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut known = 0;
    while known < buffer.len() {
        match file.read(&mut buffer[known..]) {
            Ok(0) => break,
            Ok(n) => known += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(known)
}

/// Reads the elements of a new dense array.
#[allow(unsafe_code, reason = "writes the bytes of a new array")]
fn fill(file: &mut impl Read, array: &Array) -> Result<(), FileError> {
    let len = array.len() * array.dtype().size();
    let start = array.tensor().data_ptr();
    let mut chunk = vec![0; CHUNK_BYTES.min(len)];
    let mut at = 0;
    while at < len {
        interrupt::check()?;
        let n = chunk.len().min(len - at);
        file.read_exact(&mut chunk[..n])?;
        // SAFETY: 1. the array is dense and new: nobody else knows its `len` bytes, of which `at..at + n` are written. 2. the chunk is our own.
        unsafe { std::ptr::copy_nonoverlapping(chunk.as_ptr(), start.add(at), n) };
        at += n;
    }
    Ok(())
}

/// Name of another format that begins with these bytes.
fn foreign(first: &[u8; 8]) -> Option<&'static str> {
    match first {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some("a zip archive, as npz and PyTorch files are"),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some("an npy file: np.load reads it"),
        [0x80, 2..=5, ..] => Some("a pickle, which could run code and is not read"),
        [0x12, 1, 0, 0, 0, 0, 0, 0] => {
            Some("a parameter file of MXNet 1 or 2 in the old binary format")
        }
        [0x89, b'H', b'D', b'F', ..] => Some("an HDF5 file"),
        _ => None,
    }
}
