//! DLPack between this crate and another library, which these tests play.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mxnet::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, Import,
    import_or_return,
};
use mxnet::{Array, DType, Error, Result};

/// What the other library keeps for one structure.
struct Owner {
    elements: Vec<f32>,
    shape: [i64; 2],
    strides: [i64; 2],
    num_deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: `foreign` leaked both boxes, and the owner of the structure calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        let owner = Box::from_raw(managed.manager_ctx.cast::<Owner>());
        owner.num_deleted.fetch_add(1, Ordering::SeqCst);
    }
}

/// The matrix `[[0, 2, 4], [1, 3, 5]]`, stored by columns, in a structure of this version.
fn foreign(major: u32, num_deleted: &Arc<AtomicUsize>) -> Import {
    let mut owner = Box::new(Owner {
        elements: (0..6_u8).map(f32::from).collect(),
        shape: [2, 3],
        strides: [1, 2],
        num_deleted: num_deleted.clone(),
    });
    let dl_tensor = DLTensor {
        data: owner.elements.as_mut_ptr().cast::<c_void>(),
        device: DLDevice {
            device_type: 1,
            device_id: 0,
        },
        ndim: 2,
        dtype: DLDataType {
            code: 2,
            bits: 32,
            lanes: 1,
        },
        shape: owner.shape.as_mut_ptr(),
        strides: owner.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major, minor: 0 },
        manager_ctx: Box::into_raw(owner).cast(),
        deleter: Some(delete),
        flags: 0,
        dl_tensor,
    };
    // SAFETY: the structure is valid and nobody else has it.
    unsafe { Import::from_raw(NonNull::from(Box::leak(Box::new(managed)))) }
}

#[test]
fn an_imported_array_uses_the_memory_and_frees_it_with_its_last_view() -> Result<()> {
    let num_deleted = Arc::new(AtomicUsize::new(0));
    let x = Array::from_dlpack(foreign(1, &num_deleted))?;
    assert_eq!(x.shape(), [2, 3]);
    assert_eq!(x.to_vec::<f32>()?, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    let row = x.at(1)?;
    row.assign(&Array::full(&[3], 9.0, DType::F32)?)?;
    assert_eq!(x.to_vec::<f32>()?, [0.0, 2.0, 4.0, 9.0, 9.0, 9.0]);
    drop(x);
    assert_eq!(num_deleted.load(Ordering::SeqCst), 0);
    assert_eq!(row.sum()?.item()?, 27.0);
    drop(row);
    assert_eq!(num_deleted.load(Ordering::SeqCst), 1);
    Ok(())
}

#[test]
fn a_rejected_structure_is_returned_or_deleted_once() {
    let num_deleted = Arc::new(AtomicUsize::new(0));
    let Err((error, import)) = import_or_return(foreign(2, &num_deleted)) else {
        panic!("another major version");
    };
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
    assert!(error.to_string().starts_with("from_dlpack: "), "{error}");
    assert_eq!(num_deleted.load(Ordering::SeqCst), 0);
    drop(import);
    assert_eq!(num_deleted.load(Ordering::SeqCst), 1);
    assert!(Array::from_dlpack(foreign(2, &num_deleted)).is_err());
    assert_eq!(num_deleted.load(Ordering::SeqCst), 2);
}

#[test]
fn an_export_describes_the_memory_of_the_array() -> Result<()> {
    let x = Array::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let export = x.t()?.to_dlpack()?;
    let seen = export.dl_tensor();
    // SAFETY: the pointers are valid while `export` lives, and nobody writes the elements.
    let (shape, strides, second) = unsafe {
        (
            std::slice::from_raw_parts(seen.shape, 2),
            std::slice::from_raw_parts(seen.strides, 2),
            seen.data.cast::<f32>().add(1).read(),
        )
    };
    assert_eq!((shape, strides, second), (&[3, 2][..], &[1, 3][..], 2.0));
    drop(x);
    let managed = export.into_raw();
    // SAFETY: the structure is valid, and nobody else has it.
    let back = Array::from_dlpack(unsafe { Import::from_raw(managed) })?;
    assert_eq!(back.to_vec::<f32>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let empty = Array::zeros(&[0, 4], DType::I64)?.to_dlpack()?;
    assert_eq!(empty.dl_tensor().data, ptr::null_mut());
    Ok(())
}
