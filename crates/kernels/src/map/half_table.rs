//! Functions of one half applied to many: there are 65,536 halves, and from some number of elements on it is faster to look results up.

use super::driver::{Operand, run};
use super::row::Rows;
use crate::isa::{Isa, isa};
use crate::nd::Axes;
use crate::real::Shared;
use crate::reduce::plan::split;
use crate::{Elem, Threads};

/// How many halves there are.
const ALL: usize = 1 << 16;
/// Elements from which on a table, made for the call, pays.
const MANY: usize = 8 * ALL;
/// A row that costs less is no slower than looking up, which is a load after a load for one element at a time.
fn costly() -> u8 {
    match isa() {
        Isa::Baseline => 4,
        Isa::Avx2 => 6,
        Isa::Avx512 => 10,
    }
}
/// Elements of one task.
const CHUNK: usize = 64 * 1024;

/// What [`run`] is asked to, if it is a costly function of very many dense halves whose results are as wide; returns whether it was.
///
/// # Safety
/// As for [`run`].
pub(super) unsafe fn looked_up(
    threads: &dyn Threads,
    rows: &Rows,
    compute: Elem,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Operand],
    params: &[f64],
) -> bool {
    let ([out], [input]) = (outs, ins) else {
        return false;
    };
    let is_half = |elem: Elem| matches!(elem, Elem::F16 | Elem::BF16);
    if rows.cost < costly() || !is_half(input.elem) || !is_half(out.elem) {
        return false;
    }
    let n: usize = shape.iter().product();
    if n < MANY {
        return false;
    }
    let axes = Axes::new(shape, &[out.strides, input.strides]);
    let is_dense = axes.axes.len() == 1 && axes.axes[0].strides[..2] == [2, 2];
    if !is_dense {
        return false;
    }
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let mut table = vec![0_u16; ALL];
    let whole = |ptr: *mut u8, elem: Elem| Operand {
        ptr,
        elem,
        strides: &[2],
    };
    // SAFETY: as many halves on both sides, apart from each other; the operator and its numbers are the caller's.
    unsafe {
        let to = whole(table.as_mut_ptr().cast(), out.elem);
        let from = whole(halves.as_ptr().cast_mut().cast(), input.elem);
        run(threads, rows, compute, &[ALL], &[to], &[from], params);
    }
    // An input may run backwards along with its output: then both are walked from their other ends.
    let to = Shared(out.ptr.wrapping_offset(axes.shift[0]).cast::<u16>());
    let from = Shared(input.ptr.wrapping_offset(axes.shift[1]).cast::<u16>());
    split(threads, n.div_ceil(CHUNK), 2 * n, &|chunk| {
        for i in chunk * CHUNK..n.min((chunk + 1) * CHUNK) {
            // SAFETY: both have `n` dense elements (the caller's); every number of 16 bits has its place in the table.
            unsafe { *to.at(i) = *table.get_unchecked(*from.at(i) as usize) };
        }
    });
    true
}
