//! Eigenvalues and eigenvectors of Hermitian matrices.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::{MatMut, MatRef, Par};

use crate::batch::{
    AnyBitPattern, Elem, Failure, Fault, Parts, Run, by_elem, each, elements, elements_mut,
    to_columns,
};
use crate::lu::none;
use crate::memory::{buffer, filled};
use crate::number::{MatrixElement, RealElement};
use crate::scale;

/// The triangle of a matrix that is read. The other one is taken as its mirror image, or as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above it.
    Upper,
}

/// Solves a v = v diag(w) for Hermitian `a` (count, n, n): `w` (count, n), ascending, of the real type; `v` (count, n, n), orthonormal columns, or
/// empty if not asked for.
///
/// # Errors
/// [`Fault::NotFinite`], [`Fault::NoConvergence`].
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one factorisation"
)]
pub fn eigh(
    elem: Elem,
    run: Run,
    triangle: Triangle,
    count: usize,
    n: usize,
    a: &[u8],
    w: &mut [u8],
    v: Option<&mut [u8]>,
) -> Result<(), Failure> {
    by_elem!(elem, T => {
        let w = elements_mut::<<T as MatrixElement>::Re>(w);
        typed::<T>(run, triangle, count, n, elements(a), w, v.map(elements_mut::<T>))
    })
}

/// Workspace for matrices of one size.
struct Work<T> {
    memory: MemBuffer,
    lower: Vec<T>,
    values: Vec<T>,
    vectors: Vec<T>,
}

fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    triangle: Triangle,
    count: usize,
    n: usize,
    a: &[T],
    w: &mut [T::Re],
    v: Option<&mut [T]>,
) -> Result<(), Failure> {
    let with = v.is_some();
    let wanted = if with {
        ComputeEigenvectors::Yes
    } else {
        ComputeEigenvectors::No
    };
    let vectors = v.map_or_else(none, |v| Parts::new(v, n * n));
    let outputs = (Parts::new(w, n), vectors, none::<T>());
    let make = || Work {
        memory: buffer(if n == 0 {
            faer::dyn_stack::StackReq::EMPTY
        } else {
            evd::self_adjoint_evd_scratch::<T>(n, wanted, Par::Seq, Default::default())
        }),
        lower: filled(n * n, T::ZERO),
        values: filled(n, T::ZERO),
        vectors: filled(if with { n * n } else { 0 }, T::ZERO),
    };
    each(
        run,
        count,
        4 * n * n * n,
        outputs,
        make,
        |work, i, w, v, _| {
            let a = &a[i * n * n..(i + 1) * n * n];
            let mut is_finite = true;
            for j in 0..n {
                for i in j..n {
                    work.lower[j * n + i] = match triangle {
                        _ if i == j => a[i * n + i].without_imaginary(),
                        Triangle::Lower => a[i * n + j],
                        Triangle::Upper => a[j * n + i].conjugate(),
                    };
                }
                is_finite &= work.lower[j * n + j..(j + 1) * n]
                    .iter()
                    .all(|x| x.is_number());
            }
            if !is_finite {
                return non_finite_result(&work.lower, w, v);
            }
            let exponent = scale::exponent(&work.lower);
            scale::multiply(&mut work.lower, exponent);
            let columns =
                with.then(|| MatMut::from_column_major_slice_mut(&mut work.vectors, n, n));
            evd::self_adjoint_evd(
                MatRef::from_column_major_slice(&work.lower, n, n),
                DiagMut::from_slice_mut(&mut work.values),
                columns,
                Par::Seq,
                MemStack::new(&mut work.memory),
                Default::default(),
            )
            .map_err(|_| Fault::NoConvergence)?;
            for (w, value) in w.iter_mut().zip(&work.values) {
                *w = value.re();
            }
            scale::multiply(w, -exponent);
            if with {
                to_columns(&work.vectors, v, n, n);
            }
            Ok(())
        },
    )
}

/// The result for a matrix with infinities or NaNs, as in NumPy. The eigenvalue of a 1 x 1 matrix is its element. The result is NaN where LAPACK's
/// algorithm terminates: for 2 x 2 matrices, and for eigenvectors of matrices of more than 25 rows (divide and conquer). Otherwise it is
/// [`Fault::NotFinite`].
fn non_finite_result<T: MatrixElement>(
    lower: &[T],
    w: &mut [T::Re],
    v: &mut [T],
) -> Result<(), Fault> {
    let nan = <T::Re as RealElement>::NOT_A_NUMBER;
    match w.len() {
        1 => {
            w[0] = lower[0].re();
            v.fill(T::ONE);
        }
        n if n == 2 || n > 25 && !v.is_empty() => {
            w.fill(nan);
            v.fill(T::of(nan, nan));
        }
        _ => return Err(Fault::NotFinite),
    }
    Ok(())
}
