//! `choose`: elements of several arrays, selected by an array of numbers.

use smallvec::SmallVec;

use super::with_size;
use crate::threads::split;
use crate::{Elem, Threads};

/// One of the arrays to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The element with index 0 on every axis.
    pub ptr: *const u8,
    /// Byte strides; 0 on broadcast axes.
    pub strides: &'a [isize],
}

// SAFETY: a choice is only read, and the caller of the kernel keeps its memory alive and unchanged.
unsafe impl Sync for Choice<'_> {}

/// `out[i] = choices[numbers[i]][i]` for every index `i` of `shape`; `out` and `numbers` are contiguous.
///
/// # Safety
/// `numbers` holds as many integers as `shape` has elements, all below the number of choices; every choice can be read with its strides
/// at every index of `shape`, in elements of the size of `elem`; `out` overlaps none of them.
pub unsafe fn choose(
    threads: &dyn Threads,
    elem: Elem,
    shape: &[usize],
    numbers: *const i64,
    choices: &[Choice],
    out: *mut u8,
) {
    let run = with_size!(elem.size(), T => choose_of::<T> as Run);
    // SAFETY: guaranteed by the caller.
    unsafe { run(threads, shape, numbers, choices, out) }
}

type Run = unsafe fn(&dyn Threads, &[usize], *const i64, &[Choice], *mut u8);

unsafe fn choose_of<T: Copy>(
    threads: &dyn Threads,
    shape: &[usize],
    numbers: *const i64,
    choices: &[Choice],
    out: *mut u8,
) {
    let (outer, n) = match shape.split_last() {
        Some((&n, outer)) => (outer, n),
        None => (shape, 1),
    };
    let rows = outer.iter().product::<usize>();
    let last = outer.len();
    let (numbers, out) = (numbers as usize, out as usize);
    split(threads, rows, rows * n, &|row| {
        // Address of the row in each choice, and the stride along it.
        let lines: SmallVec<[(usize, isize); 8]> = choices
            .iter()
            .map(|choice| {
                let (mut at, mut rest) = (0, row);
                for (&n, &stride) in outer.iter().zip(choice.strides).rev() {
                    at += (rest % n) as isize * stride;
                    rest /= n;
                }
                let step = choice.strides.get(last).copied().unwrap_or(0);
                (choice.ptr.wrapping_offset(at) as usize, step)
            })
            .collect();
        for i in row * n..(row + 1) * n {
            // SAFETY: `i` is below the number of elements of `shape`; numbers are below the number of choices, which can be read at every index.
            unsafe {
                let number = *(numbers as *const i64).add(i);
                let (line, step) = lines[number as usize];
                let from = (line as *const u8).offset((i - row * n) as isize * step);
                *(out as *mut T).add(i) = from.cast::<T>().read();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Serial;

    #[test]
    fn choose_selects_by_number() {
        let (full, row, one) = ([0_i32, 1, 2, 3, 4, 5], [10_i32, 11, 12], [100_i32]);
        let choices = [
            Choice {
                ptr: full.as_ptr().cast(),
                strides: &[12, 4],
            },
            Choice {
                ptr: row.as_ptr().cast(),
                strides: &[0, 4],
            },
            Choice {
                ptr: one.as_ptr().cast(),
                strides: &[0, 0],
            },
        ];
        let (numbers, mut out) = ([0_i64, 1, 2, 2, 1, 0], [0_i32; 6]);
        // SAFETY: two rows of three; the strides stay inside the arrays.
        unsafe {
            choose(
                &Serial,
                Elem::I32,
                &[2, 3],
                numbers.as_ptr(),
                &choices,
                out.as_mut_ptr().cast(),
            );
        }
        assert_eq!(out, [0, 11, 100, 100, 11, 5]);
    }
}
