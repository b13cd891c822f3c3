//! Singular values and vectors.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{self as lib, ComputeSvdVectors};
use faer::{MatMut, MatRef, Par};

use crate::batch::{
    AnyBitPattern, Elem, Failure, Fault, Parts, Run, by_elem, each, elements, elements_mut,
    to_columns,
};
use crate::memory::{buffer, filled};
use crate::number::{MatrixElement, RealElement};
use crate::scale;

/// Which singular vectors are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    No,
    /// The first min(m, n) of each side.
    Reduced,
    /// All of them.
    Full,
}

/// Decomposes a = u diag(s) vh for `a` (count, m, n): `s` (count, min(m, n)), descending, of the real type; `u` (count, m, ·) and `vh` (count, ·, n)
/// as [`Vectors`] says, empty without vectors.
///
/// # Errors
/// [`Fault::NotFinite`], [`Fault::NoConvergence`].
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one factorisation"
)]
pub fn svd(
    elem: Elem,
    run: Run,
    vectors: Vectors,
    count: usize,
    m: usize,
    n: usize,
    a: &[u8],
    u: &mut [u8],
    s: &mut [u8],
    vh: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => {
        let (u, vh) = (elements_mut::<T>(u), elements_mut::<T>(vh));
        typed::<T>(run, vectors, count, (m, n), elements(a), u, elements_mut::<<T as MatrixElement>::Re>(s), vh)
    })
}

#[expect(clippy::too_many_arguments, reason = "as `svd`")]
fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    vectors: Vectors,
    count: usize,
    (m, n): (usize, usize),
    a: &[T],
    u: &mut [T],
    s: &mut [T::Re],
    vh: &mut [T],
) -> Result<(), Failure> {
    let k = m.min(n);
    let (left, right) = match vectors {
        Vectors::No => (0, 0),
        Vectors::Reduced => (k, k),
        Vectors::Full => (m, n),
    };
    let outputs = (
        Parts::new(u, m * left),
        Parts::new(s, k),
        Parts::new(vh, right * n),
    );
    each(
        run,
        count,
        8 * m * n * k,
        outputs,
        || Work::<T>::new(vectors, m, n, left),
        |work, i, u, s, vh| work.factor(&a[i * m * n..(i + 1) * m * n], u, s, vh),
    )
}

/// Workspace for matrices of one shape.
struct Work<T> {
    shape: (usize, usize),
    vectors: Vectors,
    memory: MemBuffer,
    values: Vec<T>,
    columns: Vec<T>,
}

impl<T: MatrixElement> Work<T> {
    fn new(vectors: Vectors, m: usize, n: usize, left: usize) -> Work<T> {
        let wanted = match vectors {
            Vectors::No => ComputeSvdVectors::No,
            Vectors::Reduced => ComputeSvdVectors::Thin,
            Vectors::Full => ComputeSvdVectors::Full,
        };
        let needed = lib::svd_scratch::<T>(m, n, wanted, wanted, Par::Seq, Default::default());
        Work {
            shape: (m, n),
            vectors,
            memory: buffer(needed),
            values: filled(m.min(n), T::ZERO),
            columns: filled(m * left, T::ZERO),
        }
    }

    fn factor(&mut self, a: &[T], u: &mut [T], s: &mut [T::Re], vh: &mut [T]) -> Result<(), Fault> {
        let (m, n) = self.shape;
        if !a.iter().all(|x| x.is_number()) {
            return non_finite_result(a, (self.vectors, m.min(n)), u, s, vh);
        }
        let with = self.vectors != Vectors::No;
        let (left, right) = if with {
            (u.len() / m.max(1), vh.len() / n.max(1))
        } else {
            (0, 0)
        };
        if m == 0 || n == 0 {
            identity(u, left);
            identity(vh, n);
            return Ok(());
        }
        let exponent = scale::exponent(a);
        let scaled = scale::multiplied(a, exponent);
        let a = scaled.as_deref().unwrap_or(a);
        // The library leaves elements of the QR factorisation that must be zero unset.
        self.columns.fill(T::ZERO);
        vh.fill(T::ZERO);
        // The column-major V has the bytes of the row-major V^T; only the conjugate is missing.
        let (u_columns, v) = if with {
            (
                Some(MatMut::from_column_major_slice_mut(
                    &mut self.columns,
                    m,
                    left,
                )),
                Some(MatMut::from_column_major_slice_mut(&mut *vh, n, right)),
            )
        } else {
            (None, None)
        };
        lib::svd(
            MatRef::from_row_major_slice(a, m, n),
            DiagMut::from_slice_mut(&mut self.values),
            u_columns,
            v,
            Par::Seq,
            MemStack::new(&mut self.memory),
            Default::default(),
        )
        .map_err(|_| Fault::NoConvergence)?;
        for (s, value) in s.iter_mut().zip(&self.values) {
            *s = value.re();
        }
        scale::multiply(s, -exponent);
        if with {
            to_columns(&self.columns, u, left, m);
            vh.iter_mut().for_each(|x| *x = x.conjugate());
        }
        Ok(())
    }
}

/// Sets the diagonal of a row-major matrix of `n` columns to ones.
fn identity<T: MatrixElement>(x: &mut [T], n: usize) {
    x.fill(T::ZERO);
    x.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
}

/// The decomposition of one square matrix.
pub(crate) fn square<T: MatrixElement>(
    a: &[T],
    n: usize,
    s: &mut [T::Re],
    u: &mut [T],
    vh: &mut [T],
) -> Result<(), Fault> {
    Work::<T>::new(Vectors::Full, n, n, n).factor(a, u, s, vh)
}

/// The result for a matrix with infinities or NaNs, as in NumPy. It is NaN where LAPACK's algorithm terminates: for infinities without NaNs, if there
/// are at most two singular values or no vectors are computed. Otherwise it is [`Fault::NotFinite`].
fn non_finite_result<T: MatrixElement>(
    a: &[T],
    (vectors, values): (Vectors, usize),
    u: &mut [T],
    s: &mut [T::Re],
    vh: &mut [T],
) -> Result<(), Fault> {
    let is_nan = |x: T::Re| x.partial_cmp(&x).is_none();
    let holds_nan = a.iter().any(|x| is_nan(x.re()) || is_nan(x.im()));
    if holds_nan || vectors != Vectors::No && values > 2 {
        return Err(Fault::NotFinite);
    }
    let nan = <T::Re as RealElement>::NOT_A_NUMBER;
    s.fill(nan);
    u.fill(T::of(nan, nan));
    vh.fill(T::of(nan, nan));
    Ok(())
}
