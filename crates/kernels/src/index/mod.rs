//! Gather and scatter: reading and writing at positions given by index arrays.
//!
//! Index arrays have any integer type and any strides. [`resolve`] checks them once and converts them to contiguous `i64` in range, the only form
//! that the other kernels accept. A boolean mask becomes index arrays by [`nonzero`]. Slices are views and need no kernel.

mod along;
mod choose;
mod mask;
mod resolve;
mod transfer;

pub use along::{Along, gather_along, scatter_along};
pub use choose::{Choice, choose};
pub use mask::{Destinations, mask_starts, nonzero, one_hot, select};
pub use resolve::{BadIndex, Mode, all_below, resolve};
pub use transfer::{IndexAxis, Picked, gather, scatter};

use crate::Elem;
use crate::reduce::{Number, with_elem};

/// What a scatter does with a value: overwrite, or add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Overwrite; if several values go to one element, the last one in C order wins.
    Set,
    /// Add in C order, in the element's own type (bool: or; f16 and bf16 round after every addition).
    Add,
}

/// Moves or adds `n` strided items: `(src, src stride, dst, dst stride, n)`.
type Move = unsafe fn(*const u8, isize, *mut u8, isize, usize);

unsafe fn copy<T: Copy>(src: *const u8, ss: isize, dst: *mut u8, ds: isize, n: usize) {
    // SAFETY: the caller gives `n` readable and `n` writable items, which do not overlap.
    unsafe {
        if ss == size_of::<T>() as isize && ds == ss {
            return crate::copy::copy_row(src, dst, n * size_of::<T>());
        }
        for i in 0..n as isize {
            *dst.offset(i * ds).cast::<T>() = *src.offset(i * ss).cast::<T>();
        }
    }
}

unsafe fn add<T: Sum>(src: *const u8, ss: isize, dst: *mut u8, ds: isize, n: usize) {
    // SAFETY: the caller gives `n` readable and `n` writable elements, which do not overlap.
    unsafe {
        if ss == size_of::<T>() as isize && ds == ss {
            let (src, dst) = (
                std::slice::from_raw_parts(src.cast::<T>(), n),
                std::slice::from_raw_parts_mut(dst.cast::<T>(), n),
            );
            return dst.iter_mut().zip(src).for_each(|(d, &s)| *d = d.plus(s));
        }
        for i in 0..n as isize {
            let d = &mut *dst.offset(i * ds).cast::<T>();
            *d = d.plus(*src.offset(i * ss).cast::<T>());
        }
    }
}

/// An element that can be accumulated in place.
trait Sum: Number {
    fn plus(self, other: Self) -> Self;
}

macro_rules! sums {
    ($($t:ty, |$a:ident, $b:ident| $sum:expr);*) => { $(impl Sum for $t {
        #[inline(always)]
        fn plus(self, $b: Self) -> Self { let $a = self; $sum }
    })* };
}
use crate::reduce::number::{Bit, Complex};
sums!(
    Bit, |a, b| Bit(a.0 | b.0);
    i8, |a, b| a.wrapping_add(b); i16, |a, b| a.wrapping_add(b); i32, |a, b| a.wrapping_add(b); i64, |a, b| a.wrapping_add(b);
    u8, |a, b| a.wrapping_add(b); u16, |a, b| a.wrapping_add(b); u32, |a, b| a.wrapping_add(b); u64, |a, b| a.wrapping_add(b);
    half::f16, |a, b| half::f16::from_f32(a.to_f32() + b.to_f32()); half::bf16, |a, b| half::bf16::from_f32(a.to_f32() + b.to_f32());
    f32, |a, b| a + b; f64, |a, b| a + b;
    Complex<f32>, |a, b| Complex { re: a.re + b.re, im: a.im + b.im }; Complex<f64>, |a, b| Complex { re: a.re + b.re, im: a.im + b.im }
);

/// Runs `$body` with `$T` as a plain type of `$size` bytes.
macro_rules! with_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => {
                type $T = [u64; 2];
                $body
            }
        }
    };
}
use with_size;

fn move_of(elem: Elem, write: Write) -> Move {
    match write {
        Write::Set => with_size!(elem.size(), T => copy::<T>),
        Write::Add => with_elem!(elem, T => add::<T>),
    }
}

#[cfg(test)]
mod tests;
