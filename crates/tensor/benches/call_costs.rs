//! Costs of this crate's part in an eager operator call: nanoseconds of layout operations and of allocation, compared with the system's allocator.
//! Run with `cargo bench -p mxnet-tensor`.

use std::hint::black_box;
use std::time::Instant;

use mxnet_tensor::{DType, Device, IndexItem, Layout, Promotion, Storage, Tensor, memory, promote};

/// Median over rounds of the mean time of a call.
fn time<R>(name: &str, calls: u32, mut call: impl FnMut() -> R) {
    let mut rounds: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| drop(black_box(call())));
            start.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:44} {:12.1} ns", rounds[rounds.len() / 2]);
}

fn main() {
    let calls = 200_000;
    let x = Layout::contiguous(black_box(&[8, 16, 32]));
    time("Layout::contiguous, 3 axes", calls, || {
        Layout::contiguous(black_box(&[8, 16, 32]))
    });
    time("Layout::clone", calls, || black_box(&x).clone());
    time("transpose(None)", calls, || black_box(&x).transpose(None));
    time("transpose(axes)", calls, || {
        black_box(&x).transpose(Some(&[1, 0, 2]))
    });
    time("slice", calls, || {
        black_box(&x).slice(1, Some(2), Some(9), None)
    });
    time("select", calls, || black_box(&x).select(0, 3));
    time("reshape", calls, || black_box(&x).reshape(&[-1, 32]));
    time("broadcast_to", calls, || {
        black_box(&x).broadcast_to(&[4, 8, 16, 32])
    });
    time("is_contiguous", calls, || black_box(&x).is_contiguous());
    let items = [IndexItem::Int(3), IndexItem::Ellipsis];
    time("index x[3, ...]", calls, || black_box(&x).index(&items));
    time("promote", calls, || {
        promote(black_box(DType::I32), black_box(DType::F32), Promotion::Mx)
    });
    for len in [16, 1024, 65536] {
        time(&format!("memory::allocate + free, {len} B"), calls, || {
            let block = memory::allocate(black_box(len)).expect("small");
            // SAFETY: the block was allocated with this length.
            unsafe { memory::free(block, len) }
        });
        time(&format!("Storage::allocate + drop, {len} B"), calls, || {
            Storage::allocate(black_box(len), Device::CPU)
        });
    }
    time("Tensor::empty + drop, (4,) float32", calls, || {
        Tensor::empty(black_box(&[4]), DType::F32, Device::CPU)
    });
    time("Vec<u8> of 1024 B, for comparison", calls, || {
        Vec::<u8>::with_capacity(black_box(1024))
    });

    for len in [1 << 20, 40_000_000] {
        let fill = |block: *mut u8| {
            // SAFETY: the block has `len` bytes.
            unsafe { black_box(block).write_bytes(1, len) };
            black_box(block);
        };
        time(&format!("fill a pooled block of {len} B"), 8, || {
            let storage = Storage::allocate(len, Device::CPU).expect("enough memory");
            fill(storage.ptr());
        });
        time(&format!("fill a fresh block of {len} B"), 8, || {
            memory::trim();
            let storage = Storage::allocate(len, Device::CPU).expect("enough memory");
            fill(storage.ptr());
        });
        time(&format!("fill a system block of {len} B"), 8, || {
            fill(Vec::<u8>::with_capacity(len).as_mut_ptr())
        });
    }
}
