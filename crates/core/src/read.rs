//! Reads on the host: guards that keep writers away, and copies taken under a guard.
#![allow(unsafe_code)]

use mxnet_engine::{Access, ReadGuard, Var, engine};
use mxnet_kernels::{Serial, Threads};
use mxnet_tensor::{Device, DeviceKind, Layout, Scalar, Storage, Tensor};
use smallvec::SmallVec;

use crate::array::{Element, count_host_read};
use crate::error::{Error, Result};
use crate::launch::Pool;
use crate::mode::{Scope, is_training};
use crate::{Array, cpu, interrupt, mode, profiler};

/// Bytes copied between two checks for interrupts, which take about 10 ms.
const TILE_BYTES: usize = 32 << 20;

/// The elements of an array. Nobody writes them while this guard lives.
///
/// See [`ReadGuard`] for what its thread must not do meanwhile: it must not wait for anything that another thread may hold, and must not take a lock
/// that such a thread may need, Python's included.
pub struct ArrayReadGuard<'a> {
    array: &'a Array,
    _held: ReadGuard<'a>,
}

impl Array {
    /// The array in main memory: itself, or a copy if it is on another device. It is not recorded.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn on_host(&self) -> Result<Array> {
        match self.device().is_host() {
            true => Ok(self.clone()),
            false => {
                let _scope = Scope::enter(false, is_training());
                self.to_device(Device::cpu(0))
            }
        }
    }

    /// Holds the array for reading, after the writes pushed before are done.
    ///
    /// # Errors
    /// The failure of the operation that should have written it; [`crate::Error::Device`] if it is not in main memory ([`Array::on_host`]
    /// copies it there); [`crate::Error::Interrupted`].
    pub fn read(&self) -> Result<ArrayReadGuard<'_>> {
        Ok(ArrayReadGuard {
            array: self,
            _held: read_all([self])?,
        })
    }

    /// A copy on the CPU in C order, complete, that nobody else uses.
    ///
    /// # Errors
    /// As [`Array::read`]; [`crate::Error::Memory`].
    pub fn snapshot(&self) -> Result<Array> {
        let here = self.on_host()?;
        let copy = Array::uninitialised(here.shape(), here.dtype(), here.device())?;
        here.read_to(&copy)?;
        Ok(copy)
    }

    /// Copies the elements to `to`, which has the same shape and dtype and which nobody else uses.
    ///
    /// # Errors
    /// As [`Array::read`].
    pub fn read_to(&self, to: &Array) -> Result<()> {
        debug_assert!(self.shape() == to.shape() && self.dtype() == to.dtype());
        /// Up to this size, waking a second thread takes longer than it saves.
        const SERIAL_BYTES: usize = 1 << 20;
        let threads: &dyn Threads = match self.len() * self.dtype().size() {
            0..=SERIAL_BYTES => &Serial,
            _ => &Pool,
        };
        let here = self.on_host()?;
        if self.len() * self.dtype().size() > TILE_BYTES {
            drop(here.read()?);
            return interrupt::run_interruptibly(|| copy_in_tiles(&here, to, threads))?;
        }
        let held = here.read()?;
        cpu::copy(held.tensor(), to.tensor(), threads)
    }

    /// An array of the same shape and dtype with the first and the last `edge` elements along each axis; the elements between them are undefined. It
    /// allocates memory for all elements, but touches only the pages that it writes.
    ///
    /// # Errors
    /// As [`Array::snapshot`].
    pub fn snapshot_of_corners(&self, edge: usize) -> Result<Array> {
        if !self.device().is_host() {
            return self.on_host();
        }
        let Some((low, high)) = self.layout().span() else {
            return self.snapshot();
        };
        // The same strides over new memory: elements that share memory in `self`, as in a broadcast view, also share it in the copy.
        let layout = self.layout().with_offset(self.layout().offset() - low);
        let len_bytes = (high - low + 1) * self.dtype().size();
        let storage = Storage::allocate(len_bytes, self.device())?;
        let copy = Array::from_tensor(Tensor::new(storage, layout, self.dtype())?);
        let held = self.read()?;
        for (from, to) in corners(self.layout(), edge)?
            .iter()
            .zip(corners(copy.layout(), edge)?)
        {
            let (from, to) = (
                held.tensor().with_layout(from.clone()),
                copy.tensor().with_layout(to),
            );
            // On one thread: several elements may share memory.
            cpu::copy(&from, &to, &Serial)?;
        }
        drop(held);
        Ok(copy)
    }
}

/// The parts of a layout that are within `edge` elements of an end of each axis.
fn corners(layout: &Layout, edge: usize) -> Result<Vec<Layout>> {
    let mut found = vec![layout.clone()];
    for (axis, &n) in layout.shape().iter().enumerate() {
        if n <= 2 * edge {
            continue;
        }
        let ends = [(0, edge), (n - edge, n)];
        let parts = found.iter().flat_map(|part| {
            ends.map(|(from, to)| {
                part.slice(axis as isize, Some(from as isize), Some(to as isize), None)
            })
        });
        found = parts.collect::<std::result::Result<_, _>>()?;
    }
    Ok(found)
}

impl ArrayReadGuard<'_> {
    /// The tensor. Its elements may be read while the guard lives.
    pub fn tensor(&self) -> &Tensor {
        self.array.tensor()
    }

    /// The elements; the array must be contiguous.
    ///
    /// # Panics
    /// If the array is of another dtype, not contiguous or not in main memory.
    pub fn elements<T: Element>(&self) -> &[T] {
        assert!(
            T::DTYPE == self.array.dtype(),
            "elements of another dtype: {}",
            self.array.dtype().name()
        );
        let bytes = self.bytes();
        debug_assert!(bytes.is_empty() || bytes.as_ptr().cast::<T>().is_aligned());
        match self.array.len() {
            0 => &[],
            // SAFETY: 1. `len` elements of type `T` lie here (`bytes`). 2. storages are aligned for their dtype, also those of imported memory.
            // 3. every bit pattern our kernels write is valid for `T`.
            len => unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) },
        }
    }

    /// The bytes of the elements; the array must be contiguous.
    ///
    /// # Panics
    /// If the array is not contiguous or not in main memory.
    pub fn bytes(&self) -> &[u8] {
        assert!(
            self.array.layout().is_contiguous() && self.array.device().kind() == DeviceKind::Cpu,
            "bytes of an array that is not dense in main memory"
        );
        match self.array.len() * self.array.dtype().size() {
            0 => &[],
            // SAFETY: 1. a dense layout's elements are these bytes of its storage, which the array keeps. 2. nobody writes them as long
            // as the guard lives, which the slice borrows from.
            len => unsafe { std::slice::from_raw_parts(self.tensor().data_ptr(), len) },
        }
    }

    /// The first element; there must be one.
    pub fn first(&self) -> Scalar {
        cpu::read_scalar(self.tensor())
    }
}

/// Copies the elements of a small array in main memory, if that is possible without waiting: no operation on it is pending, and nobody writes it.
/// Returns whether it did.
///
/// # Safety
/// The memory from `to` on holds the elements at these strides (in elements); it does not overlap them, and nobody else uses it.
pub unsafe fn copy_if_ready(x: &Array, to: *mut u8, strides: &[isize]) -> bool {
    let is_stacked = mode::Flags::current().is_stacked();
    if is_stacked
        || x.len() > cpu::MAX_ONE_BY_ONE_LEN
        || x.device().kind() != DeviceKind::Cpu
        || strides.len() != x.ndim()
    {
        return false;
    }
    count_host_read();
    let var = x.tensor().storage().var();
    let Some(hold) = engine().try_hold(var, Access::Read, x.len() as u64 + 1) else {
        return false;
    };
    let (layout, size) = (x.layout(), x.dtype().size());
    let from = (x.tensor().data_ptr().cast_const(), layout.strides());
    // SAFETY: 1. the layout lies within its storage, and `hold` grants the read. 2. the caller's promise about `to`.
    unsafe { cpu::copy_one_by_one(layout.shape(), size, from, (to, strides)) };
    drop(hold);
    true
}

/// Copies tile by tile along the first axis, and stops between two of them if the user asked to.
fn copy_in_tiles(from: &Array, to: &Array, threads: &dyn Threads) -> Result<()> {
    let held = from.read()?;
    let (from, to) = (held.tensor(), to.tensor());
    let Some(&rows) = from.shape().first() else {
        return cpu::copy(from, to, threads);
    };
    let row_bytes = (from.len_bytes() / rows.max(1)).max(1);
    let step = (TILE_BYTES / row_bytes).max(1);
    for start in (0..rows).step_by(step) {
        interrupt::check()?;
        let end = (start + step).min(rows);
        let tile = |x: &Tensor| {
            let layout =
                (x.layout()).slice(0, Some(start as isize), Some(end as isize), Some(1))?;
            Ok::<_, Error>(x.with_layout(layout))
        };
        cpu::copy(&tile(from)?, &tile(to)?, threads)?;
    }
    Ok(())
}

/// Holds several arrays for reading, all at once, once the writes pushed before are done.
///
/// # Errors
/// The failure of an operation that should have written one of them; [`crate::Error::Interrupted`].
pub fn read_all<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<ReadGuard<'a>> {
    count_host_read();
    let mut vars = SmallVec::<[&Var; 4]>::new();
    let is_stacked = mode::Flags::current().is_stacked();
    for x in arrays {
        x.check_values()?;
        if is_stacked {
            mode::before_host_read(x)?;
        }
        if !x.device().is_host() {
            let problem = format!(
                "the values of an array on {} are not in main memory",
                x.device()
            );
            return Err(Error::device("", problem).with_hint("copy it with `.to_device(mx.cpu())`"));
        }
        vars.push(x.tensor().storage().var());
    }
    let waited = profiler::wait_began();
    let held = engine().read(&vars, &mut crate::interrupt::is_requested);
    if let Some(waited) = waited {
        profiler::wait_ended(waited, "wait");
    }
    Ok(held?)
}
