//! Storage with foreign owners and backends, and DLPack.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use mxnet_engine::{Access, Engine, Event, Op, Resource, Stream};
use mxnet_tensor::dlpack::{
    self, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Exported,
    Writes,
};
use mxnet_tensor::error::{DeviceError, Unsupported};
use mxnet_tensor::{
    Allocation, Backend, DType, Device, DeviceKind, Layout, MemoryInfo, Storage, Tensor,
    TensorError, Transfer, num_devices, register_backend,
};
use proptest::prelude::*;

/// An owner that reports the thread that drops it.
struct Owner(std::sync::mpsc::Sender<ThreadId>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.send(thread::current().id()).expect("the test waits");
    }
}

#[test]
fn foreign_owners_are_dropped_with_the_storage_on_any_thread() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut bytes = vec![1u8; 100];
    // SAFETY: `bytes` outlives the storage, which is gone before the end.
    let storage = unsafe {
        Storage::from_foreign(
            bytes.as_mut_ptr(),
            100,
            Device::CPU,
            Box::new(Owner(sender)),
            true,
        )
    };
    assert!(storage.is_read_only() && storage.is_shared() && storage.is_foreign());
    assert_eq!(
        (storage.ptr(), storage.len_bytes()),
        (bytes.as_mut_ptr(), 100)
    );
    let tensor = Tensor::new(storage, Layout::contiguous(&[100]), DType::U8).expect("fits");
    let view = tensor.clone();
    drop(tensor);
    assert!(receiver.try_recv().is_err());
    let dropper = thread::spawn(move || drop(view));
    let id = dropper.thread().id();
    dropper.join().expect("no panic");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [id]);
}

#[test]
fn an_operation_keeps_its_storage() {
    let (sender, receiver) = std::sync::mpsc::channel();
    // SAFETY: nothing is read or written.
    let storage = unsafe {
        Storage::from_foreign(
            ptr::null_mut(),
            0,
            Device::CPU,
            Box::new(Owner(sender)),
            false,
        )
    };
    let engine: &Engine = mxnet_engine::engine();
    let resource: Arc<dyn Resource> = storage;
    engine.push(Op {
        name: "test",
        run: Box::new(|| Ok(())),
        uses: [(resource, Access::Write)].into_iter().collect(),
        priority: 0,
        cost_ns: 1_000_000_000,
        bytes: 0,
        origin: None,
    });
    engine.wait_all(&mut || false).expect("nothing fails");
    assert!(
        receiver
            .recv_timeout(std::time::Duration::from_secs(10))
            .is_ok()
    );
}

#[test]
fn versions_change_with_writes() {
    let storage = Storage::zeroed(40, Device::cpu(3)).expect("small");
    assert_eq!((storage.version(), storage.device()), (0, Device::cpu(3)));
    for after in 1..3 {
        storage.bump_version();
        storage.bump_version();
        assert_eq!((storage.version(), storage.version()), (after, after));
    }
    assert!(!storage.is_read_only() && !storage.is_shared() && storage.var().is_free());
    storage.mark_shared();
    assert!(storage.is_shared());
    let error = Storage::allocate(1, Device::gpu(0)).expect_err("no GPU backend here");
    assert_eq!(
        error,
        DeviceError::NoBackend {
            device: Device::gpu(0)
        }
        .into()
    );
    assert_eq!(
        error.to_string(),
        "device gpu(0) is not available: no backend for `gpu` is loaded"
    );
}

/// A backend for main memory under another name that counts calls.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

impl Backend for Counting {
    fn kind(&self) -> DeviceKind {
        DeviceKind::CpuShared
    }

    fn count(&self) -> usize {
        2
    }

    fn allocate(&self, id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
        ALLOCATED.fetch_add(len_bytes << (16 * id), Ordering::Relaxed);
        mxnet_tensor::memory::allocate(len_bytes).map(Allocation::from)
    }

    fn allocate_zeroed(&self, id: u32, len_bytes: usize) -> Result<Allocation, TensorError> {
        ALLOCATED.fetch_add(len_bytes << (16 * id), Ordering::Relaxed);
        mxnet_tensor::memory::allocate_zeroed(len_bytes).map(Allocation::from)
    }

    unsafe fn free(
        &self,
        id: u32,
        block: NonNull<u8>,
        len_bytes: usize,
        _in_flight: &[Arc<dyn Event>],
    ) {
        FREED.fetch_add(len_bytes << (16 * id), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { mxnet_tensor::memory::free(block, len_bytes) }
    }

    unsafe fn copy(
        &self,
        transfer: Transfer,
        _stream: Option<&dyn Stream>,
    ) -> Result<(), TensorError> {
        Err(Unsupported::Copy {
            from: transfer.src_device,
            to: transfer.dst_device,
        }
        .into())
    }

    fn stream(&self, _id: u32) -> Result<Option<Arc<dyn Stream>>, TensorError> {
        Ok(None)
    }

    fn memory(&self, _id: u32) -> MemoryInfo {
        MemoryInfo { free: 1, total: 2 }
    }
}

#[test]
fn backends_allocate_and_free_their_own() {
    assert_eq!(num_devices(DeviceKind::CpuShared), 0);
    register_backend(Box::new(Counting)).expect("the first");
    let error = register_backend(Box::new(Counting)).expect_err("the second");
    assert_eq!(
        error,
        DeviceError::Registered {
            kind: DeviceKind::CpuShared
        }
        .into()
    );
    let device = |id| Device::new(DeviceKind::CpuShared, id);
    let error = Storage::allocate(1, device(2)).expect_err("there are two");
    assert_eq!(
        error,
        DeviceError::OutOfRange {
            device: device(2),
            count: 2
        }
        .into()
    );
    let storages = [
        Storage::allocate(5, device(0)),
        Storage::zeroed(7, device(1)),
        Storage::allocate(0, device(1)),
    ];
    assert!(storages.iter().all(Result::is_ok));
    assert_eq!(ALLOCATED.load(Ordering::Relaxed), 5 + (7 << 16));
    drop(storages);
    assert_eq!(FREED.load(Ordering::Relaxed), 5 + (7 << 16));
}

#[test]
fn the_cpu_backend_copies_and_reports_its_memory() {
    let cpu = mxnet_tensor::backend(DeviceKind::Cpu).expect("always there");
    let (src, mut dst) = ([1u8, 2, 3], [0u8; 3]);
    let mut transfer = Transfer {
        dst: dst.as_mut_ptr(),
        dst_device: Device::CPU,
        src: src.as_ptr(),
        src_device: Device::CPU,
        len_bytes: 3,
    };
    // SAFETY: two arrays of three bytes.
    unsafe { cpu.copy(transfer, None) }.expect("main memory");
    assert_eq!(dst, src);
    transfer.src_device = Device::gpu(0);
    // SAFETY: refused before anything is touched.
    assert!(unsafe { cpu.copy(transfer, None) }.is_err());
    let memory = cpu.memory(0);
    assert!(memory.free > 0 && memory.free <= memory.total);
}

#[test]
fn structures_have_the_layout_of_dlpack() {
    assert_eq!(
        (
            size_of::<DLTensor>(),
            size_of::<DLManagedTensor>(),
            size_of::<DLManagedTensorVersioned>()
        ),
        (48, 64, 80)
    );
    assert_eq!(std::mem::offset_of!(DLTensor, device), 8);
    assert_eq!(std::mem::offset_of!(DLTensor, ndim), 16);
    assert_eq!(std::mem::offset_of!(DLTensor, dtype), 20);
    assert_eq!(std::mem::offset_of!(DLTensor, shape), 24);
    assert_eq!(std::mem::offset_of!(DLTensor, strides), 32);
    assert_eq!(std::mem::offset_of!(DLTensor, byte_offset), 40);
    assert_eq!(std::mem::offset_of!(DLManagedTensor, manager_ctx), 48);
    assert_eq!(std::mem::offset_of!(DLManagedTensor, deleter), 56);
    assert_eq!(
        std::mem::offset_of!(DLManagedTensorVersioned, manager_ctx),
        8
    );
    assert_eq!(std::mem::offset_of!(DLManagedTensorVersioned, deleter), 16);
    assert_eq!(std::mem::offset_of!(DLManagedTensorVersioned, flags), 24);
    assert_eq!(
        std::mem::offset_of!(DLManagedTensorVersioned, dl_tensor),
        32
    );
}

#[test]
fn devices_and_types_have_dlpacks_names() {
    for dtype in DType::ALL {
        assert_eq!(dlpack::dtype(dlpack::dl_dtype(dtype)), Ok(dtype));
    }
    assert_eq!(
        dlpack::dl_dtype(DType::BF16),
        DLDataType {
            code: 4,
            bits: 16,
            lanes: 1
        }
    );
    assert_eq!(
        dlpack::dl_dtype(DType::C64),
        DLDataType {
            code: 5,
            bits: 64,
            lanes: 1
        }
    );
    let lanes = DLDataType {
        code: 2,
        bits: 32,
        lanes: 4,
    };
    assert_eq!(
        dlpack::dtype(lanes),
        Err(Unsupported::DLPackType {
            code: 2,
            bits: 32,
            lanes: 4
        }
        .into())
    );
    assert_eq!(
        dlpack::device(dlpack::dl_device(Device::gpu(3))),
        Ok(Device::gpu(3))
    );
    assert_eq!(
        dlpack::dl_device(Device::cpu(3)),
        DLDevice {
            device_type: 1,
            device_id: 0
        }
    );
    assert!(
        dlpack::device(DLDevice {
            device_type: 10,
            device_id: 0
        })
        .is_err()
    );
    assert!(
        dlpack::device(DLDevice {
            device_type: 2,
            device_id: -1
        })
        .is_err()
    );
}

fn with_counter(bytes: &mut [u64], read_only: bool) -> (Tensor, Arc<()>) {
    let counter = Arc::new(());
    let owner: Box<dyn Any + Send + Sync> = Box::new(counter.clone());
    // SAFETY: the callers keep `bytes` until the tensor and its exports are gone.
    let storage = unsafe {
        Storage::from_foreign(
            bytes.as_mut_ptr().cast(),
            size_of_val(bytes),
            Device::CPU,
            owner,
            read_only,
        )
    };
    (
        Tensor::new(storage, Layout::contiguous(&[bytes.len()]), DType::U64).expect("fits"),
        counter,
    )
}

#[test]
fn read_only_memory_stays_so() {
    let mut bytes = [7u64; 4];
    let (tensor, counter) = with_counter(&mut bytes, true);
    assert_eq!(
        dlpack::export_legacy(tensor.clone(), Exported::View).expect_err("cannot say"),
        Unsupported::ReadOnlyLegacy.into()
    );
    let managed = dlpack::export(tensor.clone(), Exported::View);
    drop(tensor);
    // SAFETY: the structure is fresh from the export, and ours.
    let back = unsafe {
        assert_eq!(managed.as_ref().flags, dlpack::FLAG_READ_ONLY);
        assert_eq!(managed.as_ref().version, dlpack::VERSION);
        dlpack::import(managed)
    }
    .expect("our own");
    assert!(back.storage().is_read_only());
    assert_eq!(Arc::strong_count(&counter), 2);
    drop(back);
    assert_eq!(Arc::strong_count(&counter), 1);
}

#[test]
fn exports_share_and_copies_do_not() {
    let tensor = Tensor::zeros(&[2, 3], DType::F32, Device::CPU).expect("small");
    let copy = dlpack::export(tensor.clone(), Exported::Copy);
    assert!(!tensor.storage().is_shared());
    let legacy = dlpack::export_legacy(tensor.clone(), Exported::View).expect("writable");
    assert!(tensor.storage().is_shared());
    // SAFETY: both are ours, and deleted once.
    unsafe {
        assert_eq!(copy.as_ref().flags, dlpack::FLAG_IS_COPIED);
        (copy.as_ref().deleter.expect("one"))(copy.as_ptr());
        (legacy.as_ref().deleter.expect("one"))(legacy.as_ptr());
    }
    assert_eq!(Arc::strong_count(tensor.storage()), 1);
}

/// A DLPack structure of another library, on the stack; `manager_ctx` counts calls of the deleter.
struct Foreign {
    shape: Vec<i64>,
    strides: Vec<i64>,
    managed: DLManagedTensorVersioned,
}

unsafe extern "C" fn count(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the tests store a pointer to a counter there.
    unsafe { (*(*managed).manager_ctx.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}

fn foreign(
    data: *mut c_void,
    shape: &[i64],
    strides: Option<&[i64]>,
    deleted: &AtomicUsize,
) -> Box<Foreign> {
    let mut foreign = Box::new(Foreign {
        shape: shape.to_vec(),
        strides: strides.unwrap_or_default().to_vec(),
        managed: DLManagedTensorVersioned {
            version: dlpack::VERSION,
            manager_ctx: ptr::from_ref(deleted).cast_mut().cast(),
            deleter: Some(count),
            flags: 0,
            dl_tensor: DLTensor {
                data,
                device: DLDevice {
                    device_type: dlpack::DEVICE_CPU,
                    device_id: 0,
                },
                ndim: shape.len() as i32,
                dtype: dlpack::dl_dtype(DType::I32),
                shape: ptr::null_mut(),
                strides: ptr::null_mut(),
                byte_offset: 0,
            },
        },
    });
    foreign.managed.dl_tensor.shape = foreign.shape.as_mut_ptr();
    if strides.is_some() {
        foreign.managed.dl_tensor.strides = foreign.strides.as_mut_ptr();
    }
    foreign
}

#[test]
fn foreign_structures_are_deleted_once() {
    let deleted = AtomicUsize::new(0);
    let mut data: Vec<i32> = (0..12).collect();
    let mut f = foreign(data.as_mut_ptr().cast(), &[2, 3], Some(&[-6, 2]), &deleted);
    f.managed.dl_tensor.byte_offset = 7 * 4;
    // SAFETY: the structure and its memory outlive the tensors.
    let tensor = unsafe { dlpack::import(NonNull::from(&mut f.managed)) }.expect("valid");
    assert_eq!(
        (tensor.shape(), tensor.layout().strides()),
        (&[2, 3][..], &[-6, 2][..])
    );
    assert_eq!(tensor.data_ptr().cast(), &raw mut data[7]);
    assert_eq!(tensor.storage().ptr().cast(), &raw mut data[1]);
    assert_eq!(tensor.storage().len_bytes(), 44);
    assert!(!tensor.storage().is_read_only() && tensor.storage().is_shared());
    let view = tensor.clone();
    drop(tensor);
    assert_eq!(deleted.load(Ordering::Relaxed), 0);
    thread::spawn(move || drop(view)).join().expect("no panic");
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
}

#[test]
fn null_strides_mean_c_order_and_no_elements_need_no_data() {
    let deleted = AtomicUsize::new(0);
    let mut data = [0i32; 6];
    let mut f = foreign(data.as_mut_ptr().cast(), &[2, 3], None, &deleted);
    // SAFETY: the structure and its memory outlive the tensor.
    let tensor = unsafe { dlpack::import(NonNull::from(&mut f.managed)) }.expect("valid");
    assert_eq!(tensor.layout(), &Layout::contiguous(&[2, 3]));
    drop(tensor);
    let mut f = foreign(ptr::null_mut(), &[2, 0], Some(&[1, 1]), &deleted);
    // SAFETY: as above.
    let tensor = unsafe { dlpack::import(NonNull::from(&mut f.managed)) }.expect("empty");
    assert_eq!(tensor.shape(), [2, 0]);
    drop(tensor);
    assert_eq!(deleted.load(Ordering::Relaxed), 2);
}

#[test]
fn refused_structures_still_belong_to_the_caller() {
    let deleted = AtomicUsize::new(0);
    let mut data = [0i32; 8];
    let data = data.as_mut_ptr().cast::<c_void>();
    let refuse = |change: &dyn Fn(&mut Foreign)| {
        let mut f = foreign(data, &[2, 3], Some(&[3, 1]), &deleted);
        change(&mut f);
        // SAFETY: the structure is valid as far as its version allows it to be read.
        unsafe { dlpack::import(NonNull::from(&mut f.managed)) }.expect_err("malformed")
    };
    let version = dlpack::DLPackVersion { major: 2, minor: 0 };
    assert_eq!(
        refuse(&|f| f.managed.version = version),
        Unsupported::DLPackVersion { major: 2, minor: 0 }.into()
    );
    assert!(matches!(
        refuse(&|f| f.managed.dl_tensor.byte_offset = 2),
        TensorError::Unsupported(Unsupported::Unaligned { alignment: 4, .. })
    ));
    let malformed = |field, value| TensorError::from(Unsupported::DLPackMalformed { field, value });
    assert_eq!(
        refuse(&|f| f.managed.dl_tensor.data = ptr::null_mut()),
        malformed("data", 0)
    );
    assert_eq!(refuse(&|f| f.shape[1] = -3), malformed("shape", -3));
    assert_eq!(
        refuse(&|f| f.managed.dl_tensor.ndim = -1),
        malformed("ndim", -1)
    );
    assert_eq!(
        refuse(&|f| f.managed.dl_tensor.shape = ptr::null_mut()),
        malformed("shape", 0)
    );
    assert_eq!(
        refuse(&|f| f.strides[0] = i64::MAX),
        malformed("strides", i64::MAX)
    );
    assert!(matches!(
        refuse(&|f| f.shape[1] = i64::MAX),
        TensorError::Shape(_)
    ));
    assert!(matches!(
        refuse(&|f| f.managed.dl_tensor.device.device_type = 14),
        TensorError::Unsupported(_)
    ));
    assert_eq!(deleted.load(Ordering::Relaxed), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn views_survive_the_round_trip(
        shape in prop::collection::vec(0..4usize, 0..6),
        steps in prop::collection::vec((0..6isize, prop::sample::select(vec![-2, -1, 1, 2])), 0..4),
        number in 0..DType::COUNT,
        legacy in any::<bool>(),
    ) {
        let base = Tensor::zeros(&shape, DType::ALL[number], Device::CPU).expect("small");
        let layout = steps.iter().filter(|_| !shape.is_empty()).fold(base.layout().clone(), |layout, (axis, step)| {
            let axis = axis % shape.len() as isize;
            layout.slice(axis, None, None, Some(*step)).expect("a slice").swap_axes(axis, 0).expect("axes")
        });
        let tensor = base.with_layout(layout);
        drop(base);
        // SAFETY: the structures are fresh from the export, and imported once.
        let back = unsafe {
            if legacy {
                dlpack::import_legacy(dlpack::export_legacy(tensor.clone(), Exported::View).expect("writable"), Writes::Allowed)
            } else {
                dlpack::import(dlpack::export(tensor.clone(), Exported::View))
            }
        }.expect("our own");
        prop_assert_eq!(back.shape(), tensor.shape());
        prop_assert_eq!(back.dtype(), tensor.dtype());
        if !tensor.is_empty() {
            prop_assert_eq!(back.layout().strides(), tensor.layout().strides());
            prop_assert_eq!(back.data_ptr(), tensor.data_ptr());
            prop_assert!(back.may_overlap(&tensor));
        }
        prop_assert_eq!(Arc::strong_count(tensor.storage()), 2);
        drop(back);
        prop_assert_eq!(Arc::strong_count(tensor.storage()), 1);
    }
}
