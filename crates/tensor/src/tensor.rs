//! Tensors: a storage, a layout and a data type.

use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::error::{DTypeError, ShapeError, TensorError, ViewObstacle};
use crate::{DType, Device, Layout, Storage, Strides, checked_len};

/// Elements of one type, anywhere in a storage. Cloning shares the elements.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Layout,
    dtype: DType,
    /// Whether it was made as another way to see a tensor.
    is_view: bool,
    /// Whether it must not be written, although its storage may be; views of it inherit this.
    is_locked: bool,
}

/// All that a view is made of but its layout. It holds the storage, so that the view can be made later, whatever becomes of the tensor meanwhile.
#[derive(Clone)]
pub struct Source {
    storage: Arc<Storage>,
    dtype: DType,
    is_view: bool,
    is_locked: bool,
}

impl Source {
    /// The storage.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// A source of `len` uninitialised elements with a storage of its own.
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

    /// A source of `len` zeros with a storage of its own.
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

    /// A read-only source of `len` zeros in memory that all such sources share. `None` if `len` exceeds that memory.
    ///
    /// # Errors
    ///
    /// As [`Storage::allocate`], the first time.
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

    /// All elements of the storage as an array of this shape in C order.
    ///
    /// # Panics
    ///
    /// If the shape has another number of them.
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

    /// The view through a layout.
    ///
    /// # Errors
    ///
    /// `Shape` when an element would lie outside of the storage.
    pub fn seen(self, layout: Layout) -> Result<Tensor, TensorError> {
        let tensor = Tensor::new(self.storage, layout, self.dtype)?;
        Ok(Tensor {
            is_view: self.is_view,
            is_locked: self.is_locked,
            ..tensor
        })
    }

    /// Writes the view through the layout that `layout` writes to its place, if it does and says yes, to the place where it shall stay: everywhere else
    /// that it passed through would cost. Answers whether it did.
    ///
    /// # Safety
    ///
    /// `layout` has written one if it says yes, which lies inside the storage, in elements of the view's dtype. `to` is valid for writing a tensor; what
    /// it holds is not dropped.
    #[inline]
    pub unsafe fn write(
        self,
        layout: impl FnOnce(&mut MaybeUninit<Layout>) -> bool,
        to: *mut Tensor,
    ) -> bool {
        // SAFETY: the caller's; a layout that may not be initialised can be referred to as one.
        unsafe {
            let place = (&raw mut (*to).layout).cast::<MaybeUninit<Layout>>();
            if !layout(&mut *place) {
                return false;
            }
            let layout = (*place).assume_init_ref();
            debug_assert_eq!(check_inside(&self.storage, layout, self.dtype), Ok(()));
            (&raw mut (*to).storage).write(self.storage);
            (&raw mut (*to).dtype).write(self.dtype);
            (&raw mut (*to).is_view).write(self.is_view);
            (&raw mut (*to).is_locked).write(self.is_locked);
        }
        true
    }
}

impl Tensor {
    /// Sees a storage through a layout.
    ///
    /// # Errors
    ///
    /// `Shape` when an element would lie outside of the storage.
    pub fn new(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Result<Tensor, TensorError> {
        check_inside(&storage, &layout, dtype)?;
        Ok(Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// From parts that are known to fit.
    pub(crate) fn from_parts(storage: Arc<Storage>, layout: Layout, dtype: DType) -> Tensor {
        debug_assert_eq!(check_inside(&storage, &layout, dtype), Ok(()));
        Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        }
    }

    /// A new contiguous tensor, uninitialised.
    ///
    /// # Errors
    ///
    /// `Shape` for impossible shapes; `Memory` and `Device` as [`Storage::allocate`].
    #[inline]
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let len_bytes = checked_len(shape)? * dtype.size();
        let storage = Storage::allocate(len_bytes, device)?;
        Ok(Tensor {
            storage,
            layout: Layout::contiguous(shape),
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// Undefined elements of a dense layout (C or Fortran order, or any order without gaps or overlap), whose offset is not looked at. The
    /// way for callers that have such a layout at hand: nothing is checked.
    ///
    /// # Errors
    ///
    /// `Memory`; `Device` when there is no such device.
    #[inline]
    pub fn empty_dense(
        layout: &Layout,
        dtype: DType,
        device: Device,
    ) -> Result<Tensor, TensorError> {
        let storage = Storage::allocate(layout.len() * dtype.size(), device)?;
        let layout = if layout.offset() == 0 {
            layout.clone()
        } else {
            layout.with_offset(0)
        };
        debug_assert_eq!(check_inside(&storage, &layout, dtype), Ok(()));
        Ok(Tensor {
            storage,
            layout,
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// As [`Tensor::empty_dense`], under that very layout, which begins at 0.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn empty_as(layout: Layout, dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let storage = Storage::allocate(layout.len() * dtype.size(), device)?;
        Ok(Tensor::from_parts(storage, layout, dtype))
    }

    /// The one element of a storage that holds no more.
    #[inline]
    pub fn of_element(storage: Arc<Storage>, dtype: DType) -> Tensor {
        debug_assert_eq!(storage.len_bytes(), dtype.size());
        Tensor {
            storage,
            layout: Layout::of_element(),
            dtype,
            is_view: false,
            is_locked: false,
        }
    }

    /// A new contiguous tensor of zeros.
    ///
    /// # Errors
    ///
    /// As [`Tensor::empty`].
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor, TensorError> {
        let len_bytes = checked_len(shape)? * dtype.size();
        let storage = Storage::zeroed(len_bytes, device)?;
        Ok(Tensor {
            storage,
            layout: Layout::contiguous(shape),
            dtype,
            is_view: false,
            is_locked: false,
        })
    }

    /// The storage.
    #[inline]
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The layout of the elements in the storage.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Their type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether it was made as another way to see a tensor: it may be a part of what its storage holds.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.is_view
    }

    /// The same, taken for all that its storage holds: what was made to be seen through this layout is no view.
    #[must_use]
    pub fn as_own(mut self) -> Tensor {
        self.is_view = false;
        self
    }

    /// Whether its elements must not be written through it: it, or a tensor it is a view of, is locked, or its storage is read-only.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_locked || self.storage.is_read_only()
    }

    /// The same elements, not to be written through the result and its views (or to be written again, if the storage may be).
    #[must_use]
    pub fn locked(self, is_locked: bool) -> Tensor {
        Tensor { is_locked, ..self }
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Where the storage lies.
    #[inline]
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Bytes of all elements together; a broadcast view counts repeated ones again.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len() * self.dtype.size()
    }

    /// Address of element `(0, 0, …)`; not to be touched if there are no elements.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        // Wrapping, for the offset of an empty view may lie outside of the storage.
        self.storage
            .ptr()
            .wrapping_add(self.layout.offset().wrapping_mul(self.dtype.size()))
    }

    /// Strides in bytes.
    #[inline]
    pub fn byte_strides(&self) -> Strides {
        let size = self.dtype.size() as isize;
        self.layout
            .strides()
            .iter()
            .map(|stride| stride.wrapping_mul(size))
            .collect()
    }

    /// The same storage through another layout, which must be a view of this one or otherwise lie within the storage:
    /// checked in debug builds only. [`Tensor::new`] always checks.
    #[inline]
    pub fn with_layout(&self, layout: Layout) -> Tensor {
        debug_assert_eq!(check_inside(&self.storage, &layout, self.dtype), Ok(()));
        Tensor {
            storage: self.storage.clone(),
            layout,
            dtype: self.dtype,
            is_view: true,
            is_locked: self.is_locked,
        }
    }

    /// Storage, dtype and lock of views of the tensor as elements of `dtype`. The view is locked if the tensor is, or if `locks`.
    #[inline]
    pub fn source(&self, dtype: DType, locks: bool) -> Source {
        Source {
            storage: self.storage.clone(),
            dtype,
            is_view: true,
            is_locked: self.is_locked || locks,
        }
    }

    /// Storage, dtype and lock, from which a view with another layout is built.
    #[inline]
    pub fn into_source(self) -> Source {
        Source {
            storage: self.storage,
            dtype: self.dtype,
            is_view: self.is_view,
            is_locked: self.is_locked,
        }
    }

    /// The same bytes as another type, by NumPy's rule: if items change size, the last axis must be contiguous, and its
    /// length in bytes stays.
    ///
    /// # Errors
    ///
    /// `DType` when the last axis, its length, a stride or the offset does not allow it.
    pub fn with_dtype_view(&self, dtype: DType) -> Result<Tensor, TensorError> {
        let (old, new) = (self.dtype.size(), dtype.size());
        let mut layout = self.layout.clone();
        if old != new {
            layout = self
                .resized(old, new)
                .map_err(|why| self.view_error(dtype, why))?;
        }
        Ok(Tensor {
            storage: self.storage.clone(),
            layout,
            dtype,
            is_view: true,
            is_locked: self.is_locked,
        })
    }

    fn resized(&self, old: usize, new: usize) -> Result<Layout, ViewObstacle> {
        let last = self.ndim().checked_sub(1).ok_or(ViewObstacle::NoAxis)?;
        let mut shape = crate::Dims::from_slice(self.shape());
        let mut strides = Strides::from_slice(self.layout.strides());
        if strides[last] != 1 && shape[last] != 1 && !self.is_empty() {
            return Err(ViewObstacle::LastAxis);
        }
        let row_bytes = shape[last] * old;
        if !row_bytes.is_multiple_of(new) {
            return Err(ViewObstacle::Length);
        }
        shape[last] = row_bytes / new;
        strides[last] = 1;
        let rescale = |bytes: isize| (bytes % new as isize == 0).then(|| bytes / new as isize);
        for (stride, size) in strides.iter_mut().zip(&shape).take(last) {
            // Nobody steps along an axis of length 1 or of an empty array.
            *stride = match rescale(stride.wrapping_mul(old as isize)) {
                Some(stride) => stride,
                None if *size <= 1 || self.is_empty() => 0,
                None => return Err(ViewObstacle::Stride),
            };
        }
        let offset = match rescale(self.layout.offset().wrapping_mul(old) as isize) {
            Some(offset) => offset as usize,
            None if self.is_empty() => 0,
            None => return Err(ViewObstacle::Stride),
        };
        Ok(Layout::from_parts(shape, strides, offset))
    }

    /// The real parts, as a view; a tensor that is not complex is its own real part.
    pub fn real(&self) -> Tensor {
        if self.dtype.is_complex() {
            self.component(0)
        } else {
            self.clone()
        }
    }

    /// The imaginary parts, as a view.
    ///
    /// # Errors
    ///
    /// `DType` when the tensor is not complex.
    pub fn imag(&self) -> Result<Tensor, TensorError> {
        if self.dtype.is_complex() {
            Ok(self.component(1))
        } else {
            Err(self.view_error(self.dtype.real(), ViewObstacle::NotComplex))
        }
    }

    /// A complex element is two real ones side by side.
    fn component(&self, part: usize) -> Tensor {
        Tensor {
            storage: self.storage.clone(),
            layout: self.layout.component(part),
            dtype: self.dtype.real(),
            is_view: true,
            is_locked: self.is_locked,
        }
    }

    /// Whether the two may share a byte; `false` is certain. Also sees foreign storages over the same memory.
    pub fn may_overlap(&self, other: &Tensor) -> bool {
        if Arc::ptr_eq(&self.storage, &other.storage) && self.dtype.size() == other.dtype.size() {
            return self.layout.may_overlap(&other.layout);
        }
        let (Some(a), Some(b)) = (self.addresses(), other.addresses()) else {
            return false;
        };
        // Main memory has one address space, whatever the device is called.
        let same_space = self.device() == other.device()
            || (self.device().is_host() && other.device().is_host());
        same_space && a.0 < b.1 && b.0 < a.1
    }

    /// Lowest address touched and one past the highest.
    fn addresses(&self) -> Option<(usize, usize)> {
        let (lowest, highest) = self.layout.span()?;
        let (start, size) = (self.storage.ptr() as usize, self.dtype.size());
        Some((start + lowest * size, start + (highest + 1) * size))
    }

    #[cold]
    fn view_error(&self, to: DType, why: ViewObstacle) -> TensorError {
        DTypeError::View {
            from: self.dtype,
            to,
            shape: self.shape().into(),
            why,
        }
        .into()
    }
}

fn check_inside(storage: &Storage, layout: &Layout, dtype: DType) -> Result<(), TensorError> {
    if layout.is_empty() {
        return Ok(());
    }
    let (lowest, highest) = layout.wide_span();
    let size = dtype.size() as i128;
    let (lowest, end) = (
        lowest.saturating_mul(size),
        highest.saturating_add(1).saturating_mul(size),
    );
    if lowest < 0 || end > storage.len_bytes() as i128 {
        return Err(ShapeError::OutsideStorage {
            lowest,
            end,
            len_bytes: storage.len_bytes(),
        }
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], dtype: DType) -> Tensor {
        Tensor::zeros(shape, dtype, Device::CPU).expect("small")
    }

    #[test]
    fn layouts_must_lie_in_the_storage() {
        let storage = Storage::allocate(24, Device::CPU).expect("small");
        let of =
            |shape: &[usize], dtype| Tensor::new(storage.clone(), Layout::contiguous(shape), dtype);
        assert!(of(&[2, 3], DType::F32).is_ok());
        assert!(of(&[0, 1 << 40], DType::F32).is_ok());
        let error = of(&[2, 3], DType::F64).expect_err("48 bytes");
        assert_eq!(
            error,
            ShapeError::OutsideStorage {
                lowest: 0,
                end: 48,
                len_bytes: 24
            }
            .into()
        );
    }

    #[test]
    fn views_as_other_types() {
        let x = tensor(&[4, 6], DType::F32);
        let shape = |tensor: Result<Tensor, TensorError>| tensor.map(|t| t.shape().to_vec());
        assert_eq!(shape(x.with_dtype_view(DType::I32)), Ok(vec![4, 6]));
        assert_eq!(shape(x.with_dtype_view(DType::U8)), Ok(vec![4, 24]));
        let wide = x.with_dtype_view(DType::F64).expect("even rows");
        assert_eq!(
            (wide.shape(), wide.layout().strides()),
            (&[4, 3][..], &[3, 1][..])
        );
        let why = |tensor: &Tensor, dtype| match tensor.with_dtype_view(dtype) {
            Err(TensorError::DType(DTypeError::View { why, .. })) => Some(why),
            _ => None,
        };
        assert_eq!(why(&x, DType::C128), Some(ViewObstacle::Length));
        let turned = x.with_layout(x.layout().transpose(None).expect("all axes"));
        assert_eq!(why(&turned, DType::F64), Some(ViewObstacle::LastAxis));
        assert_eq!(why(&turned, DType::I32), None);
        let odd = x.with_layout(
            x.layout()
                .slice(1, Some(1), Some(5), None)
                .expect("columns"),
        );
        assert_eq!(why(&odd, DType::F64), Some(ViewObstacle::Stride));
        assert_eq!(
            why(&tensor(&[], DType::F32), DType::U8),
            Some(ViewObstacle::NoAxis)
        );
    }

    #[test]
    fn complex_parts_are_views() {
        let z = tensor(&[2, 3], DType::C64);
        let z = z.with_layout(z.layout().slice(1, Some(1), None, None).expect("columns"));
        let (re, im) = (z.real(), z.imag().expect("complex"));
        assert!(re.layout().offsets().eq([2, 4, 8, 10]) && im.layout().offsets().eq([3, 5, 9, 11]));
        assert_eq!(
            (re.dtype(), im.data_ptr()),
            (DType::F32, z.data_ptr().wrapping_add(4))
        );
        assert!(!re.may_overlap(&im) && re.may_overlap(&z) && im.may_overlap(&z));
        assert!(re.imag().is_err() && Arc::ptr_eq(re.real().storage(), z.storage()));
    }
}
