//! Few elements, copied out of an array instead of held: two atomic instructions that lock the processor's caches cost more than a copy of some
//! words, so short ways copy what they read and hold only what they write.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_engine::engine;
use mxnet_tensor::DeviceKind;

use crate::Array;
use crate::interp::Flags;

/// Copies bytes that may change meanwhile, in which case nobody uses the copy.
///
/// # Safety
/// `from` is valid for reading so many bytes, `to` for writing them.
#[inline(always)]
pub(crate) unsafe fn copy_bits(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! copy {
        ($word:ty, $at:expr) => {
            // The copy lies as it comes.
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

/// Copies so many bytes of the storage of `x`, from `from` on. Answers whether nobody wrote to the storage meanwhile; if not, the copy means nothing.
///
/// # Safety
/// As [`copy_bits`], and the bytes are those of elements of `x`, in main memory.
#[inline]
pub(crate) unsafe fn peek(x: &Array, from: *const u8, to: *mut u8, len: usize) -> bool {
    debug_assert_eq!(x.device().kind(), DeviceKind::Cpu);
    // Interpreters are told of reads, by the general way.
    if Flags::current().is_stacked() {
        return false;
    }
    // SAFETY: the caller's promise. Values that only exist as bits may be any.
    let copied = engine().peek(x.tensor().storage().var(), || unsafe {
        copy_bits(from, to, len);
    });
    copied.is_some()
}

/// Room for the bytes of few elements.
pub(crate) struct Few([MaybeUninit<u64>; 16]);

impl Few {
    #[inline]
    pub(crate) fn new() -> Few {
        Few([MaybeUninit::uninit(); 16])
    }

    /// Copies the elements of a dense array, if there is room for them and they are at hand.
    #[inline]
    pub(crate) fn copy(&mut self, x: &Array) -> Option<*const u8> {
        let len = x.len() * x.dtype().size();
        if len > size_of::<Few>()
            || !x.layout().is_contiguous()
            || x.device().kind() != DeviceKind::Cpu
        {
            return None;
        }
        let to = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: so many bytes are those of the elements, and there is room for them.
        unsafe { peek(x, x.tensor().data_ptr(), to, len) }.then_some(to.cast_const())
    }
}
