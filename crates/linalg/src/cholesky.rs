//! Cholesky factors.

use crate::batch::{
    AnyBitPattern, Elem, Failure, Parts, Run, by_elem, each, elements, elements_mut, to_columns,
};
use crate::lu::{none, runners};
use crate::memory::filled;
use crate::number::MatrixElement;
use crate::parallel;
use crate::unblocked::{self, MAX_UNBLOCKED};

/// Lower triangular `l` with l l^H = a, both (count, n, n); reads the lower triangle of `a` only.
///
/// # Errors
/// [`crate::Fault::NotPositiveDefinite`] with the order of the first leading minor that is not.
pub fn cholesky(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    a: &[u8],
    l: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => typed::<T>(run, count, n, elements(a), elements_mut(l)))
}

fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    n: usize,
    a: &[T],
    l: &mut [T],
) -> Result<(), Failure> {
    let (outer, run) = runners(run, n);
    let outputs = (Parts::new(l, n * n), none::<T>(), none::<T>());
    each(
        outer,
        count,
        n * n * n / 2,
        outputs,
        || filled(if n > MAX_UNBLOCKED { n * n } else { 0 }, T::ZERO),
        |columns, i, l, _, _| {
            let a = &a[i * n * n..(i + 1) * n * n];
            if n <= MAX_UNBLOCKED {
                l.copy_from_slice(a);
                return unblocked::cholesky(l, n);
            }
            to_columns(a, columns, n, n);
            for i in 0..n {
                columns[i * n + i] = columns[i * n + i].without_imaginary();
            }
            // The blocked factorisation stops at the first pivot that is not positive; the unblocked one continues with NaNs.
            if let Err(fault) = parallel::cholesky(run, columns, n) {
                if a.iter().all(|x| x.is_number()) {
                    return Err(fault);
                }
                l.copy_from_slice(a);
                return unblocked::cholesky(l, n);
            }
            to_columns(columns, l, n, n);
            for i in 0..n {
                l[i * n + i] = l[i * n + i].without_imaginary();
                l[i * n + i + 1..(i + 1) * n].fill(T::ZERO);
            }
            Ok(())
        },
    )
}
