//! Unary functions of float16 by table: there are 65,536 values, and for large arrays a lookup is faster than the function.

use super::driver::{Operand, run};
use super::row::InnerLoops;
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

/// How many elements a call has if it is a costly function of very many dense halves whose results are as wide: those are looked up. 0 for all
/// other calls.
pub(super) fn table_len(
    rows: &InnerLoops,
    shape: &[usize],
    out: &Operand,
    input: &Operand,
) -> usize {
    let is_half = |elem: Elem| matches!(elem, Elem::F16 | Elem::BF16);
    if rows.cost < costly() || !is_half(input.elem) || !is_half(out.elem) {
        return 0;
    }
    let n: usize = shape.iter().product();
    if n < MANY {
        return 0;
    }
    let axes = Axes::new(shape, &[out.strides, input.strides]);
    let is_dense = axes.axes.len() == 1 && axes.axes[0].strides[..2] == [2, 2];
    if is_dense { n } else { 0 }
}

/// Computes the results of all halves, then looks up those of `n` dense ones. Operands are their first address in memory and their element.
///
/// # Safety
/// As for [`run`]; [`table_len`] has said that there are `n` elements.
pub(super) unsafe fn looked_up(
    threads: &dyn Threads,
    rows: &'static InnerLoops,
    compute: Elem,
    n: usize,
    (out, out_elem): (*mut u8, Elem),
    (input, in_elem): (*mut u8, Elem),
    params: &[f64],
) {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let mut table = vec![0_u16; ALL];
    let whole = |ptr: *mut u8, elem: Elem| Operand {
        ptr,
        elem,
        strides: &[2],
    };
    // SAFETY: as many halves on both sides, apart from each other; the operator and its numbers are the caller's.
    unsafe {
        let to = whole(table.as_mut_ptr().cast(), out_elem);
        let from = whole(halves.as_ptr().cast_mut().cast(), in_elem);
        run(threads, rows, compute, &[ALL], &[to], &[from], params);
    }
    let to = Shared(out.cast::<u16>());
    let from = Shared(input.cast::<u16>());
    split(threads, n.div_ceil(CHUNK), 2 * n, &|chunk| {
        for i in chunk * CHUNK..n.min((chunk + 1) * CHUNK) {
            // SAFETY: both have `n` dense elements (the caller's); every number of 16 bits has its place in the table.
            unsafe { *to.at(i) = *table.get_unchecked(*from.at(i) as usize) };
        }
    });
}
