//! Sources of tensors: storage, dtype and lock, from which tensors and views are constructed in place.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{Tensor, check_inside};
use crate::error::TensorError;
use crate::{DType, Device, Layout, Storage};

/// Storage, dtype and lock of a view: everything except its layout. It keeps the storage alive, so that the view can be constructed later.
#[derive(Clone)]
pub struct Source {
    pub(super) storage: Arc<Storage>,
    pub(super) dtype: DType,
    pub(super) is_view: bool,
    pub(super) is_locked: bool,
}

impl Source {
    /// The storage.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// A new storage for `len` uninitialised elements.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`].
    #[inline]
    pub fn fresh(len: usize, dtype: DType, device: Device) -> Result<Source, TensorError> {
        Ok(Source {
            storage: Storage::allocate(len * dtype.size(), device)?,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// A new storage for `len` zeros.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`].
    #[inline]
    pub fn zeroed(len: usize, dtype: DType, device: Device) -> Result<Source, TensorError> {
        Ok(Source {
            storage: Storage::zeroed(len * dtype.size(), device)?,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// A read-only block of `len` zeros that all such sources share. `None` if `len` exceeds that block.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`], at the first call.
    #[inline]
    pub fn zeros(len: usize, dtype: DType, device: Device) -> Result<Option<Source>, TensorError> {
        let storage = Storage::zeros()?;
        let fits = device == storage.device() && len * dtype.size() <= storage.len_bytes();
        Ok(fits.then(|| Source {
            storage: Arc::clone(storage),
            dtype,
            is_view: false,
            is_locked: true,
        }))
    }

    /// All elements of the storage as a tensor of this shape in C order.
    ///
    /// # Panics
    ///
    /// If the shape has another number of elements.
    #[inline]
    pub fn dense(self, shape: &[usize]) -> Tensor {
        let len: usize = shape.iter().product();
        assert!(len * self.dtype.size() == self.storage.len_bytes());
        Tensor {
            storage: self.storage,
            layout: Layout::contiguous(shape),
            dtype: self.dtype,
            is_view: self.is_view,
            is_locked: self.is_locked,
        }
    }

    /// The view with this layout.
    ///
    /// # Errors
    ///
    /// `Shape` if an element would lie outside the storage.
    pub fn seen(self, layout: Layout) -> Result<Tensor, TensorError> {
        let tensor = Tensor::new(self.storage, layout, self.dtype)?;
        Ok(Tensor {
            is_view: self.is_view,
            is_locked: self.is_locked,
            ..tensor
        })
    }

    /// Constructs the view in `to`. `layout` initialises its layout in place and returns whether it did. Returns whether the tensor was constructed.
    /// In-place construction avoids copies of the tensor.
    ///
    /// # Safety
    ///
    /// If `layout` returns true, it has initialised a layout that lies inside the storage, in elements of the view's dtype. `to` is valid for writing
    /// a tensor; its old content is not dropped.
    #[inline]
    pub unsafe fn write(
        self,
        layout: impl FnOnce(&mut MaybeUninit<Layout>) -> bool,
        to: *mut Tensor,
    ) -> bool {
        // SAFETY: the caller's promise; the reference is to a `MaybeUninit`.
        unsafe {
            let target = (&raw mut (*to).layout).cast::<MaybeUninit<Layout>>();
            if !layout(&mut *target) {
                return false;
            }
            let layout = (*target).assume_init_ref();
            debug_assert_eq!(check_inside(&self.storage, layout, self.dtype), Ok(()));
            (&raw mut (*to).storage).write(self.storage);
            (&raw mut (*to).dtype).write(self.dtype);
            (&raw mut (*to).is_view).write(self.is_view);
            (&raw mut (*to).is_locked).write(self.is_locked);
        }
        true
    }
}
