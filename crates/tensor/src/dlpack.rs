//! DLPack: exchanges tensors with other libraries of the process without a copy. Supports version 1.x and the legacy structure.
//!
//! The owner of a structure must call its deleter once, on any thread. The caller is responsible for waiting for pending writes before an export, for
//! the order of streams, and for Python capsules.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::slice;

use crate::error::{TensorError, Unsupported};
use crate::{DType, Device, DeviceKind, Dims, Layout, Storage, Strides, Tensor, checked_len};

/// The version of exported structures.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

/// Flag: the memory must not be written.
pub const FLAG_READ_ONLY: u64 = 1;
/// Flag: the memory is a copy made for this export.
pub const FLAG_IS_COPIED: u64 = 2;

/// `kDLCPU`.
pub const DEVICE_CPU: i32 = 1;
/// `kDLExtDev`: a device without a type in DLPack.
pub const DEVICE_EXTENSION: i32 = 12;
/// `kDLCUDA`.
pub const DEVICE_CUDA: i32 = 2;
/// `kDLCUDAHost`: pinned main memory.
pub const DEVICE_CUDA_HOST: i32 = 3;

/// Kind and number of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// `DLDeviceType`.
    pub device_type: i32,
    /// Number of the device.
    pub device_id: i32,
}

/// Type of an element.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool.
    pub code: u8,
    /// Bits of a lane.
    pub bits: u8,
    /// Number of lanes; 1 except for vector types.
    pub lanes: u16,
}

/// A view of memory as an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Start of the memory.
    pub data: *mut c_void,
    /// Device.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DLDataType,
    /// `ndim` sizes.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null for C order.
    pub strides: *mut i64,
    /// Offset in bytes from `data` to element `(0, 0, …)`.
    pub byte_offset: u64,
}

/// The legacy structure.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The array.
    pub dl_tensor: DLTensor,
    /// Data of the producer.
    pub manager_ctx: *mut c_void,
    /// Frees the structure and everything it refers to.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// Version of the structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Structures with different major versions are incompatible.
    pub major: u32,
    /// Counts compatible additions.
    pub minor: u32,
}

/// The structure of version 1.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// Comes first in every version.
    pub version: DLPackVersion,
    /// Data of the producer.
    pub manager_ctx: *mut c_void,
    /// Frees the structure and everything it refers to.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Flags: `FLAG_…`.
    pub flags: u64,
    /// The array.
    pub dl_tensor: DLTensor,
}

/// Whether exported memory is the array's or a copy made for the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exported {
    /// Both sides use the same memory. The storage is shared from now on.
    View,
    /// Only the consumer uses the memory.
    Copy,
}

/// DLPack's form of a device. Memory shared between processes becomes plain main memory.
pub fn dl_device(device: Device) -> DLDevice {
    let device_type = match device.kind() {
        DeviceKind::Cpu | DeviceKind::CpuShared => DEVICE_CPU,
        DeviceKind::CpuPinned => DEVICE_CUDA_HOST,
        DeviceKind::Gpu => DEVICE_CUDA,
        // Kinds that were added at run time.
        _ => DEVICE_EXTENSION,
    };
    // Consumers compare the number of the CPU with 0.
    let device_id = if device_type == DEVICE_CPU {
        0
    } else {
        device.id() as i32
    };
    DLDevice {
        device_type,
        device_id,
    }
}

/// The device of a DLPack structure.
///
/// # Errors
///
/// `Unsupported` for device types that do not exist here.
pub fn device(dl: DLDevice) -> Result<Device, TensorError> {
    let unsupported = || Unsupported::DLPackDevice {
        device_type: dl.device_type,
        device_id: dl.device_id,
    };
    let kind = match dl.device_type {
        DEVICE_CPU => DeviceKind::Cpu,
        DEVICE_CUDA => DeviceKind::Gpu,
        DEVICE_CUDA_HOST => DeviceKind::CpuPinned,
        _ => return Err(unsupported().into()),
    };
    let id = u32::try_from(dl.device_id).map_err(|_| unsupported())?;
    Ok(Device::new(kind, id))
}

/// DLPack's form of a data type.
pub fn dl_dtype(dtype: DType) -> DLDataType {
    let code = match dtype {
        DType::Bool => 6,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::C64 | DType::C128 => 5,
    };
    DLDataType {
        code,
        bits: (dtype.size() * 8) as u8,
        lanes: 1,
    }
}

/// The data type of a DLPack structure.
///
/// # Errors
///
/// `Unsupported` for types that do not exist here.
pub fn dtype(dl: DLDataType) -> Result<DType, TensorError> {
    let found = DType::ALL.into_iter().find(|dtype| dl_dtype(*dtype) == dl);
    found.ok_or_else(|| {
        Unsupported::DLPackType {
            code: dl.code,
            bits: dl.bits,
            lanes: dl.lanes,
        }
        .into()
    })
}

/// An exported structure. Its deleter is called when this is dropped, unless [`Export::into_raw`] has handed the structure on.
#[derive(Debug)]
pub struct Export(NonNull<DLManagedTensorVersioned>);

// SAFETY: DLPack allows any thread to call the deleter, and the description is only read.
unsafe impl Send for Export {}
// SAFETY: as above.
unsafe impl Sync for Export {}

impl Export {
    /// As [`export`].
    pub fn new(tensor: Tensor, exported: Exported) -> Export {
        Export(export(tensor, exported))
    }

    /// The structure, for a consumer, who must call its deleter once.
    pub fn into_raw(self) -> NonNull<DLManagedTensorVersioned> {
        ManuallyDrop::new(self).0
    }

    /// The description of the array. Its pointers are valid while the structure lives.
    pub fn dl_tensor(&self) -> DLTensor {
        // SAFETY: the structure is valid until it is dropped.
        unsafe { self.0.as_ref().dl_tensor }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // SAFETY: the structure is from `export` and was not handed on.
        unsafe { delete(self.0.as_ptr()) }
    }
}

/// Data of an exported structure: the tensor and the arrays that the structure points to.
struct Context {
    tensor: Tensor,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

impl Context {
    fn new(tensor: Tensor) -> Context {
        let shape = tensor.shape().iter().map(|&size| size as i64).collect();
        let strides = tensor
            .layout()
            .strides()
            .iter()
            .map(|&stride| stride as i64)
            .collect();
        Context {
            tensor,
            shape,
            strides,
        }
    }

    fn dl_tensor(&mut self) -> DLTensor {
        // Without elements consumers expect a null pointer or ignore it. The offset is added to `data`, because some consumers ignore `byte_offset`.
        let data = if self.tensor.is_empty() {
            ptr::null_mut()
        } else {
            self.tensor.data_ptr().cast()
        };
        DLTensor {
            data,
            device: dl_device(self.tensor.device()),
            ndim: self.tensor.ndim() as i32,
            dtype: dl_dtype(self.tensor.dtype()),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

/// A structure of version 1 for a tensor. Its deleter drops the tensor.
pub fn export(tensor: Tensor, exported: Exported) -> NonNull<DLManagedTensorVersioned> {
    let mut flags = if tensor.is_read_only() {
        FLAG_READ_ONLY
    } else {
        0
    };
    match exported {
        Exported::View => tensor.storage().mark_shared(),
        Exported::Copy => flags |= FLAG_IS_COPIED,
    }
    let mut context = Box::new(Context::new(tensor));
    let dl_tensor = context.dl_tensor();
    let managed = DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx: Box::into_raw(context).cast(),
        deleter: Some(delete),
        flags,
        dl_tensor,
    };
    NonNull::from(Box::leak(Box::new(managed)))
}

/// A legacy structure for a tensor. Its deleter drops the tensor.
///
/// # Errors
///
/// `Unsupported` for read-only memory, which the structure cannot express.
pub fn export_legacy(
    tensor: Tensor,
    exported: Exported,
) -> Result<NonNull<DLManagedTensor>, TensorError> {
    if tensor.is_read_only() {
        return Err(Unsupported::ReadOnlyLegacy.into());
    }
    if exported == Exported::View {
        tensor.storage().mark_shared();
    }
    let mut context = Box::new(Context::new(tensor));
    let dl_tensor = context.dl_tensor();
    let managed = DLManagedTensor {
        dl_tensor,
        manager_ctx: Box::into_raw(context).cast(),
        deleter: Some(delete_legacy),
    };
    Ok(NonNull::from(Box::leak(Box::new(managed))))
}

/// # Safety
///
/// `managed` must be from [`export`], and is not used afterwards.
unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: `export` leaked both boxes, and the owner of the structure calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.manager_ctx.cast::<Context>()));
    }
}

/// # Safety
///
/// `managed` must be from [`export_legacy`], and is not used afterwards.
unsafe extern "C" fn delete_legacy(managed: *mut DLManagedTensor) {
    // SAFETY: `export_legacy` leaked both boxes, and the owner of the structure calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.manager_ctx.cast::<Context>()));
    }
}

/// A structure of version 1 that another library made. Its deleter is called when this is dropped, or with the storage of the tensor.
#[derive(Debug)]
pub struct Import(NonNull<DLManagedTensorVersioned>);

// SAFETY: DLPack allows any thread to call the deleter, and nothing else is done with the structure through a shared reference.
unsafe impl Send for Import {}
// SAFETY: as above.
unsafe impl Sync for Import {}

impl Import {
    /// Takes over a structure.
    ///
    /// # Safety
    ///
    /// 1. `managed` must point to a valid structure that the caller owns, whose memory is not freed before its deleter is called. Of
    ///    another major version, only `version` and `deleter` are used.
    /// 2. While a tensor over the memory is used, other owners of the memory must not write what it reads, or read what it writes, at the same time.
    pub unsafe fn from_raw(managed: NonNull<DLManagedTensorVersioned>) -> Import {
        Import(managed)
    }

    /// Gives the structure back.
    pub fn into_raw(self) -> NonNull<DLManagedTensorVersioned> {
        ManuallyDrop::new(self).0
    }

    /// The device of the memory; `None` for a structure of another major version.
    ///
    /// # Errors
    ///
    /// `Unsupported` for device types that do not exist here.
    pub fn device(&self) -> Result<Option<Device>, TensorError> {
        // SAFETY: the promise of `from_raw`; the version comes first in every version.
        let version = unsafe { (&raw const (*self.0.as_ptr()).version).read() };
        if version.major != VERSION.major {
            return Ok(None);
        }
        // SAFETY: the promise of `from_raw`, for our version.
        let known = unsafe { self.0.as_ref().dl_tensor.device };
        device(known).map(Some)
    }

    /// A tensor over the memory, as [`import`] makes it.
    ///
    /// # Errors
    ///
    /// As [`import`], together with the structure.
    pub fn into_tensor(self) -> Result<Tensor, (TensorError, Import)> {
        let managed = self.into_raw();
        // SAFETY: the promise of `from_raw`. After an error the structure is ours again.
        unsafe { import(managed).map_err(|error| (error, Import(managed))) }
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        // SAFETY: `from_raw` or `import` took ownership of the structure, and only this function deletes it. Every version has its deleter in the same place.
        unsafe {
            if let Some(deleter) = (&raw const (*self.0.as_ptr()).deleter).read() {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// An imported legacy structure.
struct Legacy(NonNull<DLManagedTensor>);

// SAFETY: as for `Import`.
unsafe impl Send for Legacy {}
// SAFETY: as for `Import`.
unsafe impl Sync for Legacy {}

impl Drop for Legacy {
    fn drop(&mut self) {
        // SAFETY: `import_legacy` took ownership of the structure, and only this function deletes it.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// A tensor over the memory of a structure of version 1. The tensor's storage owns the structure: the deleter runs when the storage is dropped, on
/// any thread. The storage is shared, and read-only if the flag says so.
///
/// # Errors
///
/// `Unsupported` for other major versions, unknown types and devices, inconsistent structures, and memory that is not aligned for its type; `Shape`
/// for impossible shapes. On an error the structure still belongs to the caller.
///
/// # Safety
///
/// `managed` must point to a valid structure that the caller owns, whose memory is not freed before its deleter is called. If it has another major
/// version, only `version` is read.
pub unsafe fn import(managed: NonNull<DLManagedTensorVersioned>) -> Result<Tensor, TensorError> {
    // SAFETY: `version` comes first in every version.
    let version = unsafe { (&raw const (*managed.as_ptr()).version).read() };
    if version.major != VERSION.major {
        return Err(Unsupported::DLPackVersion {
            major: version.major,
            minor: version.minor,
        }
        .into());
    }
    // SAFETY: the caller promises a valid structure, and its version is the one we know.
    let (flags, parts) = unsafe {
        (
            managed.as_ref().flags,
            Parts::read(&managed.as_ref().dl_tensor)?,
        )
    };
    // SAFETY: `parts` describes the memory of the structure, which lives until the owner is dropped.
    Ok(unsafe { parts.into_tensor(Box::new(Import(managed)), flags & FLAG_READ_ONLY != 0) })
}

/// Whether imported memory may be written, if its structure does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Yes, its owner expects that.
    Allowed,
    /// No, it may belong to an immutable array.
    Refused,
}

/// As [`import`], for the legacy structure, which does not say whether its memory may be written.
///
/// # Errors
///
/// As [`import`].
///
/// # Safety
///
/// As [`import`].
pub unsafe fn import_legacy(
    managed: NonNull<DLManagedTensor>,
    writes: Writes,
) -> Result<Tensor, TensorError> {
    // SAFETY: the caller promises a valid structure.
    let parts = unsafe { Parts::read(&managed.as_ref().dl_tensor)? };
    // SAFETY: `parts` describes the memory of the structure, which lives until the owner is dropped.
    Ok(unsafe { parts.into_tensor(Box::new(Legacy(managed)), writes == Writes::Refused) })
}

/// A checked description of an imported tensor.
struct Parts {
    /// Lowest address.
    start: *mut u8,
    len_bytes: usize,
    device: Device,
    layout: Layout,
    dtype: DType,
}

impl Parts {
    /// # Safety
    ///
    /// `shape` and, if not null, `strides` must point to `ndim` numbers.
    unsafe fn read(dl: &DLTensor) -> Result<Parts, TensorError> {
        let malformed =
            |field, value| TensorError::from(Unsupported::DLPackMalformed { field, value });
        let (device, dtype) = (device(dl.device)?, dtype(dl.dtype)?);
        // Checked before so many numbers are read or stored.
        let ndim = usize::try_from(dl.ndim)
            .ok()
            .filter(|&ndim| ndim <= crate::MAX_NDIM)
            .ok_or_else(|| malformed("ndim", dl.ndim.into()))?;
        // SAFETY: the caller's promise.
        let sizes = unsafe { numbers(dl.shape, ndim) }.ok_or_else(|| malformed("shape", 0))?;
        let mut shape = Dims::with_capacity(ndim);
        for &size in sizes {
            shape.push(usize::try_from(size).map_err(|_| malformed("shape", size))?);
        }
        let len = checked_len(&shape)?;
        // SAFETY: the caller's promise.
        let layout = match unsafe { numbers(dl.strides, ndim) } {
            Some(_) if len == 0 => Layout::contiguous(&shape),
            Some(strides) => Layout::from_parts(
                shape,
                strides.iter().map(|&stride| stride as isize).collect(),
                0,
            ),
            None => Layout::contiguous(&shape),
        };
        if len == 0 {
            return Ok(Parts {
                start: ptr::null_mut(),
                len_bytes: 0,
                device,
                layout,
                dtype,
            });
        }
        if dl.data.is_null() {
            return Err(malformed("data", 0));
        }
        let first = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
        let address = first as usize;
        if !address.is_multiple_of(dtype.alignment()) {
            return Err(Unsupported::Unaligned {
                address,
                alignment: dtype.alignment(),
                dtype,
            }
            .into());
        }
        // With negative strides elements lie below the first one; the storage starts at the lowest address.
        let (lowest, highest) = layout.wide_span();
        let size = dtype.size() as i128;
        if (highest - lowest).saturating_mul(size) > isize::MAX as i128 {
            return Err(malformed(
                "strides",
                layout.strides().first().map_or(0, |&stride| stride as i64),
            ));
        }
        let below = (-lowest) as usize;
        let strides = Strides::from_slice(layout.strides());
        Ok(Parts {
            start: first.wrapping_sub(below * dtype.size()),
            len_bytes: (highest - lowest + 1) as usize * dtype.size(),
            device,
            layout: Layout::from_parts(Dims::from_slice(layout.shape()), strides, below),
            dtype,
        })
    }

    /// # Safety
    ///
    /// The memory must live until `owner` is dropped.
    unsafe fn into_tensor(
        self,
        owner: Box<dyn std::any::Any + Send + Sync>,
        read_only: bool,
    ) -> Tensor {
        // SAFETY: the range is what the layout touches of the foreign memory.
        let storage = unsafe {
            Storage::from_foreign(self.start, self.len_bytes, self.device, owner, read_only)
        };
        Tensor::from_parts(storage, self.layout, self.dtype)
    }
}

/// The numbers at `start`; `None` for a null pointer.
///
/// # Safety
///
/// `start` must be null or point to `len` numbers that live as long as the result is used.
unsafe fn numbers<'a>(start: *const i64, len: usize) -> Option<&'a [i64]> {
    if len == 0 {
        return Some(&[]);
    }
    // SAFETY: the caller's promise.
    (!start.is_null()).then(|| unsafe { slice::from_raw_parts(start, len) })
}
