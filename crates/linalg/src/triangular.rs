//! Triangular systems.

use faer::linalg::triangular_solve as tri;
use faer::{MatMut, MatRef, Par};

use crate::batch::{
    AnyBitPattern, Elem, Failure, Fault, Parts, Run, by_elem, each, elements, elements_mut,
};
use crate::eigh::Triangle;
use crate::lu::none;
use crate::memory::ensure_panels;
use crate::number::MatrixElement;

/// Solves x = a^-1 b with one triangle of `a` (count, n, n), `b` and `x` (count, n, k). The other triangle is not read.
///
/// # Errors
/// [`Fault::Singular`] if an element of the diagonal is zero.
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one product"
)]
pub fn solve_triangular(
    elem: Elem,
    run: Run,
    triangle: Triangle,
    count: usize,
    n: usize,
    k: usize,
    a: &[u8],
    b: &[u8],
    x: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => typed::<T>(run, triangle, count, (n, k), elements(a), elements(b), elements_mut(x)))
}

fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    triangle: Triangle,
    count: usize,
    (n, k): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
) -> Result<(), Failure> {
    let outputs = (Parts::new(x, n * k), none::<T>(), none::<T>());
    let body = |_: &mut (), i: usize, x: &mut [T], _: &mut [T], _: &mut [T]| {
        let a = &a[i * n * n..(i + 1) * n * n];
        if let Some(at) = (0..n).find(|&i| a[i * n + i] == T::ZERO) {
            return Err(Fault::Singular(at));
        }
        x.copy_from_slice(&b[i * n * k..(i + 1) * n * k]);
        let a = MatRef::from_row_major_slice(a, n, n);
        let x = MatMut::from_row_major_slice_mut(x, n, k);
        match triangle {
            Triangle::Lower => tri::solve_lower_triangular_in_place(a, x, Par::Seq),
            Triangle::Upper => tri::solve_upper_triangular_in_place(a, x, Par::Seq),
        }
        Ok(())
    };
    each(run, count, n * n * k, outputs, ensure_panels, body)
}
