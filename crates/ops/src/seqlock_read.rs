//! Reads of small arrays by a sequence lock: the bytes are copied, and the copy is discarded if a writer came in between. Acquiring the variable takes
//! two locked instructions, which cost more than a copy of some words.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_engine::engine;
use mxnet_tensor::DeviceKind;

use crate::Array;
use crate::mode::Flags;

/// Copies bytes that another thread may write meanwhile; the caller then discards the copy.
///
/// # Safety
/// `from` is valid for reading `len` bytes and `to` for writing them.
#[inline(always)]
pub(crate) unsafe fn copy_bits(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! copy {
        ($word:ty, $at:expr) => {
            // `to` may be unaligned.
            to.add($at)
                .cast::<$word>()
                .write_unaligned(from.add($at).cast::<$word>().read_volatile())
        };
    }
    let is_aligned = |to: usize| from.addr().is_multiple_of(to);
    // SAFETY: 1. the caller's promise. 2. words are read only where they are aligned.
    unsafe {
        match len {
            8 if is_aligned(8) => copy!(u64, 0),
            4 if is_aligned(4) => copy!(u32, 0),
            _ => {
                let mut at = 0;
                if is_aligned(8) {
                    while at + 8 <= len {
                        copy!(u64, at);
                        at += 8;
                    }
                }
                if is_aligned(4) {
                    while at + 4 <= len {
                        copy!(u32, at);
                        at += 4;
                    }
                }
                while at < len {
                    copy!(u8, at);
                    at += 1;
                }
            }
        }
    }
}

/// Copies `len` bytes of the storage of `x`, starting at `from`. Returns whether no writer came in between; if one did, the copy is meaningless.
///
/// # Safety
/// As [`copy_bits`]; the bytes are elements of `x`, which is on the CPU.
#[inline]
pub(crate) unsafe fn seqlock_read(x: &Array, from: *const u8, to: *mut u8, len: usize) -> bool {
    debug_assert_eq!(x.device().kind(), DeviceKind::Cpu);
    // Interpreters must see reads, so these take the general path.
    if Flags::current().is_stacked() {
        return false;
    }
    // SAFETY: the caller's promise. Any bits are valid values of these words.
    let copied = engine().seqlock_read(x.tensor().storage().var(), || unsafe {
        copy_bits(from, to, len);
    });
    copied.is_some()
}

/// A buffer on the stack for the bytes of a small array.
pub(crate) struct StackBuffer([MaybeUninit<u64>; 16]);

impl StackBuffer {
    #[inline]
    pub(crate) fn new() -> StackBuffer {
        StackBuffer([MaybeUninit::uninit(); 16])
    }

    /// Copies the elements of a dense array, if they fit and no writer holds or awaits them. Returns the address of the copy.
    #[inline]
    pub(crate) fn copy(&mut self, x: &Array) -> Option<*const u8> {
        let len = x.len() * x.dtype().size();
        if len > size_of::<StackBuffer>()
            || !x.layout().is_contiguous()
            || x.device().kind() != DeviceKind::Cpu
        {
            return None;
        }
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: `len` is the size of the dense elements, which fits the buffer.
        unsafe { seqlock_read(x, x.tensor().data_ptr(), to, len) }.then_some(to.cast_const())
    }
}
