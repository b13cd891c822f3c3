//! Unary functions of 16-bit floats by lookup table: there are 65,536 values, and for large arrays a lookup is faster than the function.

use super::driver::{Operand, run};
use super::row::InnerLoops;
use crate::isa::{Isa, isa};
use crate::nd::Axes;
use crate::real::Shared;
use crate::threads::split;
use crate::{Elem, Threads};

/// Number of values of a 16-bit type.
const NUM_VALUES: usize = 1 << 16;
/// Number of elements from which on building a table for the call pays.
const MIN_LEN: usize = 8 * NUM_VALUES;
/// Minimum cost of an inner loop for a lookup to be faster: a lookup is two dependent loads per element and does not vectorise.
fn min_cost() -> u8 {
    match isa() {
        Isa::Baseline => 4,
        Isa::Avx2 => 6,
        Isa::Avx512 => 10,
    }
}
/// Elements per task.
const CHUNK: usize = 64 * 1024;

/// The number of elements if the call should use a table: an expensive function of very many contiguous 16-bit floats with 16-bit float results.
/// 0 for all other calls.
pub(super) fn table_len(
    rows: &InnerLoops,
    shape: &[usize],
    out: &Operand,
    input: &Operand,
) -> usize {
    let is_half = |elem: Elem| matches!(elem, Elem::F16 | Elem::BF16);
    if rows.cost < min_cost() || !is_half(input.elem) || !is_half(out.elem) {
        return 0;
    }
    let n: usize = shape.iter().product();
    if n < MIN_LEN {
        return 0;
    }
    let axes = Axes::new(shape, &[out.strides, input.strides]);
    let is_dense = axes.axes.len() == 1 && axes.axes[0].strides[..2] == [2, 2];
    if is_dense { n } else { 0 }
}

/// Computes the function of all 65,536 values, then looks up `n` contiguous elements. An operand is its address and element type.
///
/// # Safety
/// Same as for [`run`]; [`table_len`] returned `n`, which is not 0.
pub(super) unsafe fn run_by_lookup(
    threads: &dyn Threads,
    rows: &'static InnerLoops,
    compute: Elem,
    n: usize,
    (out, out_elem): (*mut u8, Elem),
    (input, in_elem): (*mut u8, Elem),
    params: &[f64],
) {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let mut table = vec![0_u16; NUM_VALUES];
    let all_values = |ptr: *mut u8, elem: Elem| Operand {
        ptr,
        elem,
        strides: &[2],
    };
    // SAFETY: both sides have 65,536 elements and do not overlap; the caller guarantees the operator and its parameters.
    unsafe {
        let to = all_values(table.as_mut_ptr().cast(), out_elem);
        let from = all_values(halves.as_ptr().cast_mut().cast(), in_elem);
        run(
            threads,
            rows,
            compute,
            &[NUM_VALUES],
            &[to],
            &[from],
            params,
        );
    }
    let to = Shared(out.cast::<u16>());
    let from = Shared(input.cast::<u16>());
    split(threads, n.div_ceil(CHUNK), 2 * n, &|chunk| {
        for i in chunk * CHUNK..n.min((chunk + 1) * CHUNK) {
            // SAFETY: both have `n` contiguous elements (the caller guarantees it); every 16-bit value is an index of the table.
            unsafe { *to.at(i) = *table.get_unchecked(*from.at(i) as usize) };
        }
    });
}
