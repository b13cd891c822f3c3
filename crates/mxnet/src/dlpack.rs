//! DLPack: arrays of other libraries of the process, and arrays for them, without a copy.
//!
//! [`Array::to_dlpack`] returns an [`Export`], whose structure a consumer takes over. [`Array::from_dlpack`] makes an array of an [`Import`]. Only
//! taking over a pointer needs `unsafe`, because nothing can check what it points to.
//!
//! ```
//! use mxnet::dlpack::Import;
//! use mxnet::{Array, DType};
//!
//! # fn main() -> mxnet::Result<()> {
//! let x = Array::zeros(&[2, 3], DType::F32)?;
//! let managed = x.to_dlpack()?.into_raw();
//! // SAFETY: the structure is valid and nobody else has it; one thread uses both arrays.
//! let import = unsafe { Import::from_raw(managed) };
//! let y = Array::from_dlpack(import)?;
//! y.at(0)?.assign(&Array::ones(&[3], DType::F32)?)?;
//! assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use mxnet_core::{Error, Result};
use mxnet_engine::{Access, Event};
use mxnet_tensor::DeviceKind;
use mxnet_tensor::dlpack::Exported;
pub use mxnet_tensor::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, Export, Import,
};

use crate::Array;
use crate::runtime::register_devices;

/// The function that errors name.
const OP: &str = "from_dlpack";

impl Array {
    /// An array over the memory of another library. Its deleter is called when the last array over the memory is dropped. On a GPU the other library
    /// has finished its work, or has queued it on the legacy default stream.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another major version, unknown types and devices, inconsistent structures, and memory that is not aligned for its
    /// type; [`Error::Shape`] for impossible shapes; [`Error::Device`] if the device is not available. Then the deleter has been called.
    pub fn from_dlpack(import: Import) -> Result<Array> {
        import_or_return(import).map_err(|(error, _)| error)
    }

    /// The array for another library, over the same memory. Waits for pending work. From then on, calls that read or write the array return when they
    /// are done.
    ///
    /// # Errors
    /// The failure of the operation that should have computed the elements.
    pub fn to_dlpack(&self) -> Result<Export> {
        let array: &mxnet_core::Array = self.as_ref();
        array.check_values()?;
        array.tensor().storage().mark_shared();
        array.wait_to_write()?;
        Ok(Export::new(array.tensor().clone(), Exported::View))
    }
}

/// As [`Array::from_dlpack`], but returns the structure with the error.
///
/// # Errors
/// As [`Array::from_dlpack`].
pub fn import_or_return(import: Import) -> std::result::Result<Array, (Error, Import)> {
    let written = match work_before(&import) {
        Ok(written) => written,
        Err(error) => return Err((error.in_op(OP), import)),
    };
    let tensor = import
        .into_tensor()
        .map_err(|(error, import)| (Error::from(error).in_op(OP), import))?;
    if let Some(written) = written {
        let var = tensor.storage().var();
        var.record_event(written, Access::Write);
    }
    Ok(mxnet_core::Array::from_tensor(tensor).into())
}

/// An event after the work of the other library on the memory; `None` if that is finished.
fn work_before(import: &Import) -> Result<Option<Arc<dyn Event>>> {
    register_devices()?;
    let device = import.device()?;
    let Some(device) = device.filter(|device| device.kind() == DeviceKind::Gpu) else {
        return Ok(None);
    };
    mxnet_tensor::backend_of(device)?;
    #[cfg(feature = "cuda")]
    {
        /// DLPack's number of the legacy default stream.
        const DEFAULT_STREAM: u64 = 1;
        let event = mxnet_cuda::order_after(device.id(), Some(DEFAULT_STREAM))?;
        Ok(Some(event))
    }
    #[cfg(not(feature = "cuda"))]
    Ok(None)
}
