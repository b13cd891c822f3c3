//! Cache of packed forms of a storage's elements, such as weights in the layout of a kernel. A form is valid until the elements change.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::Storage;
use crate::error::TensorError;

/// Largest number of forms that are cached for a storage.
const MAX_FORMS: usize = 8;

/// The forms of one storage.
#[derive(Default)]
pub struct PackedForms(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    forms: Vec<Form>,
    companions: Vec<Arc<Storage>>,
}

/// One form.
struct Form {
    /// What the bytes depend on besides the elements: the kernel, its layout, the view of the storage.
    key: Vec<u64>,
    /// The number of writes to the storage, see [`mxnet_engine::Var::writes_if_read`], when the form was last asked for.
    writes: u32,
    /// `None` after the first request: many weights change after each use.
    bytes: Option<Arc<Storage>>,
}

impl PackedForms {
    /// The form `key` of elements that have been written `writes` times. The caller holds the storage for reading.
    ///
    /// `make` is called if the same elements are asked for a second time. `None` at the first request, and while another thread makes a form.
    ///
    /// # Errors
    /// What `make` reports.
    pub fn get<E: From<TensorError>>(
        &self,
        key: &[u64],
        writes: u32,
        make: impl FnOnce() -> Result<Arc<Storage>, E>,
    ) -> Result<Option<Arc<Storage>>, E> {
        let Some(mut kept) = self.try_lock() else {
            return Ok(None);
        };
        let forms = &mut kept.forms;
        let Some(form) = forms.iter_mut().find(|form| form.key == key) else {
            if forms.len() >= MAX_FORMS {
                forms.remove(0);
            }
            if forms.try_reserve(1).is_ok() {
                forms.push(Form {
                    key: key.to_vec(),
                    writes,
                    bytes: None,
                });
            }
            return Ok(None);
        };
        if form.writes != writes {
            (form.writes, form.bytes) = (writes, None);
            return Ok(None);
        }
        if form.bytes.is_none() {
            form.bytes = Some(make()?);
        }
        Ok(form.bytes.clone())
    }

    /// Keeps another storage alive until this one is freed. Each call adds one, so call it only for new storage. Returns `false`, and adds nothing, while
    /// another thread uses the forms.
    #[must_use]
    pub fn keep(&self, other: Arc<Storage>) -> bool {
        let Some(mut kept) = self.try_lock() else {
            return false;
        };
        kept.companions.push(other);
        true
    }

    /// `None` if another thread holds the lock. After a fork, the child may find it held by a thread that no longer exists, so nobody waits for it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Contents>> {
        match self.0.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::error::MemoryError;

    #[test]
    fn a_form_is_made_at_the_second_request_and_dropped_after_a_write() -> Result<(), TensorError> {
        let forms = PackedForms::default();
        let make = || Storage::allocate(64, Device::CPU);
        let never = || -> Result<Arc<Storage>, TensorError> { panic!("made again") };
        assert!(forms.get(&[1], 7, never)?.is_none());
        assert!(forms.get(&[2], 7, never)?.is_none());
        let first = forms.get(&[1], 7, make)?;
        assert!(first.is_some());
        let again = forms.get(&[1], 7, never)?;
        assert_eq!(
            first.as_ref().map(Arc::as_ptr),
            again.as_ref().map(Arc::as_ptr)
        );
        assert!(forms.get(&[1], 8, never)?.is_none());
        assert!(forms.get(&[1], 8, make)?.is_some());
        Ok(())
    }

    #[test]
    fn an_error_keeps_nothing() -> Result<(), TensorError> {
        let forms = PackedForms::default();
        let fail = || {
            Err(TensorError::Memory(MemoryError::OutOfMemory {
                device: Device::CPU,
                requested_bytes: 1,
                in_use_bytes: 0,
            }))
        };
        assert!(forms.get(&[1], 0, fail)?.is_none());
        assert!(forms.get(&[1], 0, fail).is_err());
        assert!(
            forms
                .get(&[1], 0, || Storage::allocate(64, Device::CPU))?
                .is_some()
        );
        Ok(())
    }

    #[test]
    fn a_bounded_number_of_forms_is_kept() -> Result<(), TensorError> {
        let forms = PackedForms::default();
        for key in 0..100 {
            forms.get(&[key], 0, || Storage::allocate(64, Device::CPU))?;
        }
        assert_eq!(forms.0.lock().map_or(0, |kept| kept.forms.len()), MAX_FORMS);
        Ok(())
    }
}
