//! Eigenvalues and eigenvectors of square matrices.

use faer::MatRef;
use num_complex::Complex;

use crate::batch::{
    AnyBitPattern, Elem, Failure, Fault, Parts, Run, by_elem, each, elements, elements_mut,
    to_columns,
};
use crate::lu::none;
use crate::memory::filled;
use crate::number::{MatrixElement, RealElement};
use crate::scale;

/// Solves a v = v diag(w) for `a` (count, n, n). `w` (count, n) and `v` (count, n, n) have the complex type. The columns of `v` have norm 1 and a
/// real largest element; `v` is computed unless it is `None`.
///
/// # Errors
/// [`Fault::NotFinite`], [`Fault::NoConvergence`].
pub fn eig(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    a: &[u8],
    w: &mut [u8],
    v: Option<&mut [u8]>,
) -> Result<(), Failure> {
    by_elem!(elem, T => {
        let w = elements_mut::<Complex<<T as MatrixElement>::Re>>(w);
        typed::<T>(run, count, n, elements(a), w, v.map(elements_mut))
    })
}

fn typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    n: usize,
    a: &[T],
    w: &mut [Complex<T::Re>],
    v: Option<&mut [Complex<T::Re>]>,
) -> Result<(), Failure> {
    let with = v.is_some();
    let vectors = v.map_or_else(none, |v| Parts::new(v, n * n));
    let outputs = (Parts::new(w, n), vectors, none::<T>());
    let zero = <T::Re as MatrixElement>::ZERO;
    let make = || filled(if with { n * n } else { 0 }, Complex { re: zero, im: zero });
    each(
        run,
        count,
        25 * n * n * n,
        outputs,
        make,
        |columns, i, w, v, _| {
            let a = &a[i * n * n..(i + 1) * n * n];
            if !a.iter().all(|x| x.is_number()) {
                return Err(Fault::NotFinite);
            }
            if n == 0 {
                return Ok(());
            }
            let exponent = scale::exponent(a);
            let scaled = scale::multiplied(a, exponent);
            let a = scaled.as_deref().unwrap_or(a);
            let wanted = with.then_some(&mut columns[..]);
            T::eigen(MatRef::from_row_major_slice(a, n, n), w, wanted)
                .map_err(|_| Fault::NoConvergence)?;
            for x in w.iter_mut() {
                let mut parts = [x.re, x.im];
                scale::multiply(&mut parts, -exponent);
                [x.re, x.im] = parts;
            }
            if with {
                columns.chunks_exact_mut(n).for_each(normalise);
                to_columns(columns, v, n, n);
            }
            Ok(())
        },
    )
}

/// Scales a vector to norm 1. If it is complex, also makes its largest element real.
fn normalise<R: RealElement>(v: &mut [Complex<R>]) {
    let zero = <R as MatrixElement>::ZERO;
    let size = |x: &Complex<R>| x.re.hypotenuse(x.im);
    let length = v.iter().fold(zero, |sum, x| sum.hypotenuse(size(x)));
    if length == zero {
        return;
    }
    let mut turn = Complex {
        re: <R as MatrixElement>::ONE / length,
        im: zero,
    };
    if v.iter().any(|x| x.im != zero) {
        let largest = v
            .iter()
            .fold(v[0], |a, x| if size(x) > size(&a) { *x } else { a });
        let scale = <R as MatrixElement>::ONE / (size(&largest) * length);
        turn = Complex {
            re: largest.re * scale,
            im: -largest.im * scale,
        };
    }
    for x in v {
        *x = Complex {
            re: x.re * turn.re - x.im * turn.im,
            im: x.re * turn.im + x.im * turn.re,
        };
    }
}
