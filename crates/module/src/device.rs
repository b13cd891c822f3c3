//! Kinds of devices of modules: memory and copies. Their streams are in `stream.rs`.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet_core::{Error, Result};
use mxnet_engine::{Event, Failure, Stream};
use mxnet_tensor::error::DeviceError;
use mxnet_tensor::{
    Allocation, Backend, Device, DeviceKind, MemoryInfo, TensorError, Transfer, register_backend,
};
use parking_lot::Mutex;

use crate::abi::mx_device;
use crate::call::State;
use crate::stream::{self, Queue, Streams};
use crate::text;

type CopyFn = unsafe extern "C" fn(*mut c_void, u32, *mut c_void, *const c_void, usize) -> i32;

/// A checked copy of a module's description of a kind of device.
#[derive(Clone, Copy)]
pub struct Description {
    /// The name of the kind.
    pub name: &'static str,
    count: usize,
    allocate: unsafe extern "C" fn(*mut c_void, u32, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, u32, *mut c_void, usize),
    upload: CopyFn,
    download: CopyFn,
    copy: CopyFn,
    state: State,
    streams: Option<stream::Functions>,
}

/// Checks and copies the description of a kind of device.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(given: *const mx_device) -> Result<Description> {
    let wrong = |problem: String| Error::value("load", problem);
    if given.is_null() || !given.is_aligned() {
        return Err(wrong("the device is null".to_owned()));
    }
    // SAFETY: not null, and the caller's promise. The first word is the size.
    let size = unsafe { given.cast::<usize>().read() };
    // The structure of version 1, which ends before the functions of streams.
    let needed = offset_of!(mx_device, make_stream);
    if size < needed {
        return Err(wrong(format!(
            "the device's structure has {size} bytes, at least {needed} are needed"
        )));
    }
    let mut whole = MaybeUninit::<mx_device>::zeroed();
    // SAFETY: 1. the caller's structure has `size` bytes, and so has ours at least as many as are copied. 2. a structure of numbers, pointers and
    // optional functions may be zero where nothing was copied. 3. the caller's promise.
    let (given, name) = unsafe {
        let len = size.min(size_of::<mx_device>());
        std::ptr::copy_nonoverlapping(given.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), len);
        let given = whole.assume_init();
        (given, text::copied(given.name, "name of a device")?)
    };
    if name.is_empty() || DeviceKind::find(name).is_some() {
        return Err(wrong(format!(
            "the name of the device is empty, or a device `{name}` exists already"
        )));
    }
    if !(1..=1024).contains(&given.count) {
        return Err(wrong(format!(
            "`{name}` has {} devices, 1 to 1024 can be",
            given.count
        )));
    }
    let (Some(allocate), Some(free), Some(upload), Some(download), Some(copy)) = (
        given.allocate,
        given.free,
        given.upload,
        given.download,
        given.copy,
    ) else {
        return Err(wrong(format!("a function of the device `{name}` is null")));
    };
    Ok(Description {
        name,
        count: given.count,
        allocate,
        free,
        upload,
        download,
        copy,
        state: State(given.state),
        streams: stream::describe(&given, name)?,
    })
}

/// Registers the kind of device.
pub fn add(described: Description) -> Result<()> {
    let kind = DeviceKind::add(described.name, false)?;
    let functions = described.streams;
    register_backend(Box::new(Module {
        kind,
        described,
        streams: functions.map(|functions| Streams::new(kind, functions, described.state)),
        in_use_bytes: AtomicUsize::new(0),
        leaving: Mutex::default(),
    }))?;
    Ok(())
}

struct Module {
    kind: DeviceKind,
    described: Description,
    streams: Option<&'static Streams>,
    in_use_bytes: AtomicUsize,
    /// Freed blocks on which work was pending, in the order in which they were freed.
    leaving: Mutex<VecDeque<Leaving>>,
}

/// A freed block on which work is pending.
struct Leaving {
    id: u32,
    block: NonNull<u8>,
    len_bytes: usize,
    in_flight: Vec<Arc<dyn Event>>,
}

// SAFETY: the module's functions may be called on any thread, and nobody else uses the block.
unsafe impl Send for Leaving {}

impl Leaving {
    fn is_done(&self) -> bool {
        self.in_flight.iter().all(|event| event.query())
    }
}

impl Module {
    fn no_memory(&self, id: u32, len_bytes: usize) -> TensorError {
        mxnet_tensor::error::MemoryError::OutOfMemory {
            device: Device::new(self.kind, id),
            requested_bytes: len_bytes,
            in_use_bytes: self.in_use_bytes.load(Ordering::Relaxed),
        }
        .into()
    }

    /// Fails in a process that was forked from one that uses the device, if its work goes on in threads that are not there.
    fn enter(&self, id: u32) -> std::result::Result<(), TensorError> {
        self.streams.map_or(Ok(()), |streams| streams.enter(id))
    }

    fn free_now(&self, freed: impl IntoIterator<Item = Leaving>) {
        for freed in freed {
            let (block, len_bytes) = (freed.block.as_ptr().cast(), freed.len_bytes);
            self.in_use_bytes.fetch_sub(len_bytes, Ordering::Relaxed);
            // SAFETY: the block came from `allocate` with this length, its owner gave it back, and no work on it is pending.
            unsafe { (self.described.free)(self.described.state.0, freed.id, block, len_bytes) }
        }
    }

    /// Frees the blocks on which no work is pending any more, up to the first with pending work: so a sweep takes no longer if much is pending.
    fn sweep(&self) {
        let mut done = Vec::new();
        let mut leaving = self.leaving.lock();
        while leaving.front().is_some_and(Leaving::is_done) {
            done.extend(leaving.pop_front());
        }
        drop(leaving);
        self.free_now(done);
    }

    fn allocate_block(&self, id: u32, len_bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the module promises a function of this type.
        let block = unsafe { (self.described.allocate)(self.described.state.0, id, len_bytes) };
        NonNull::new(block.cast::<u8>()).filter(|block| block.as_ptr().addr() % 64 == 0)
    }
}

impl Backend for Module {
    fn kind(&self) -> DeviceKind {
        self.kind
    }

    fn count(&self) -> usize {
        self.described.count
    }

    fn allocate(&self, id: u32, len_bytes: usize) -> std::result::Result<Allocation, TensorError> {
        self.enter(id)?;
        self.sweep();
        let block = loop {
            if let Some(block) = self.allocate_block(id, len_bytes) {
                break Some(block);
            }
            let Some(next) = self.leaving.lock().pop_front() else {
                break None;
            };
            // The failure of that work is the matter of those who read its results.
            next.in_flight.iter().for_each(|event| drop(event.wait()));
            self.free_now([next]);
        };
        let block = block.ok_or_else(|| self.no_memory(id, len_bytes))?;
        self.in_use_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        Ok(block.into())
    }

    fn allocate_zeroed(
        &self,
        id: u32,
        len_bytes: usize,
    ) -> std::result::Result<Allocation, TensorError> {
        let block = self.allocate(id, len_bytes)?.ptr;
        let zeros = vec![0_u8; len_bytes];
        let (to, from) = (block.as_ptr().cast(), zeros.as_ptr().cast());
        // SAFETY: the block and the zeros have this size.
        let status =
            unsafe { (self.described.upload)(self.described.state.0, id, to, from, len_bytes) };
        match status {
            0 => Ok(block.into()),
            _ => {
                // SAFETY: nobody else uses the block.
                unsafe { self.free(id, block, len_bytes, &[]) };
                Err(self.no_memory(id, len_bytes))
            }
        }
    }

    unsafe fn free(
        &self,
        id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        in_flight: &[Arc<dyn Event>],
    ) {
        if self.streams.is_some_and(Streams::is_forked) {
            return;
        }
        let freed = Leaving {
            id,
            block,
            len_bytes,
            in_flight: in_flight.to_vec(),
        };
        match freed.is_done() {
            true => self.free_now([freed]),
            false => self.leaving.lock().push_back(freed),
        }
    }

    /// The table's copies have one device.
    fn copies_between_devices(&self) -> bool {
        false
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        stream: Option<&dyn Stream>,
    ) -> std::result::Result<(), TensorError> {
        let (to, from) = (transfer.dst_device, transfer.src_device);
        let is_ours = |device: Device| device.kind() == self.kind;
        let all = &self.described;
        let in_stream = self.streams.map(|streams| &streams.functions);
        let (function, enqueue, id) = match (is_ours(to), is_ours(from)) {
            (true, true) if to.id() == from.id() => {
                (all.copy, in_stream.map(|all| all.enqueue_copy), to.id())
            }
            (true, false) if from.is_host() => {
                (all.upload, in_stream.map(|all| all.enqueue_upload), to.id())
            }
            (false, true) if to.is_host() => (
                all.download,
                in_stream.map(|all| all.enqueue_download),
                from.id(),
            ),
            _ => return Err(mxnet_tensor::error::Unsupported::Copy { from, to }.into()),
        };
        self.enter(id)?;
        let queue = stream.and_then(|stream| stream.as_any().downcast_ref::<Queue>());
        let (state, dst, src) = (all.state.0, transfer.dst.cast(), transfer.src.cast());
        // SAFETY: as the caller promises.
        let status = unsafe {
            match (enqueue, queue) {
                (Some(enqueue), Some(queue)) => {
                    enqueue(state, queue.handle(), dst, src, transfer.len_bytes)
                }
                _ => function(state, id, dst, src, transfer.len_bytes),
            }
        };
        match status {
            0 => Ok(()),
            _ => Err(DeviceError::Failed {
                device: Device::new(self.kind, id),
                action: if is_ours(to) {
                    "copying to it"
                } else {
                    "copying from it"
                },
                message: format!("its module returned status {status}").into(),
            }
            .into()),
        }
    }

    fn stream(&self, id: u32) -> std::result::Result<Option<Arc<dyn Stream>>, TensorError> {
        match self.streams {
            Some(streams) => Ok(Some(streams.of_thread(id)?)),
            None => Ok(None),
        }
    }

    fn wait_all(&self) -> std::result::Result<(), Failure> {
        let ended = self.streams.map_or(Ok(()), Streams::wait_all);
        if !self.streams.is_some_and(Streams::is_forked) {
            self.sweep();
        }
        ended
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        // The ABI has no function for this.
        MemoryInfo { free: 0, total: 0 }
    }
}
