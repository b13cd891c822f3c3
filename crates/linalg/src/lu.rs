//! LU factorisation, and solutions, inverses, determinants and cofactors from it.

use crate::batch::{
    AnyBitPattern, Elem, Failure, Fault, Parts, Run, by_elem, each, elements, elements_mut,
    to_columns,
};
use crate::memory::filled;
use crate::number::{MatrixElement, RealElement};
use crate::unblocked::{self, Factored, MAX_UNBLOCKED};
use crate::{parallel, scale, svd};

/// The runners for the matrices of a batch and for the tasks within one matrix. Large matrices are factored one after another, each in parallel;
/// small ones in parallel, each on one thread.
pub(crate) fn runners(run: Run, n: usize) -> (Run, Run) {
    if n < parallel::MIN_PARALLEL {
        (run, SERIAL)
    } else {
        (SERIAL, run)
    }
}

/// Runs tasks in order on the calling thread.
const SERIAL: Run<'static> = &|n, task| (0..n).for_each(task);

/// Workspace of LU: the factors, the row permutation, a column-major right side.
struct Work<T> {
    lu: Vec<T>,
    rows: Vec<usize>,
    side: Vec<T>,
    /// The factors are those of the matrix times 2 to the power of `exponent`.
    exponent: i32,
}

impl<T: MatrixElement> Work<T> {
    fn new(n: usize, side_len: usize) -> Work<T> {
        Work {
            lu: filled(n * n, T::ZERO),
            rows: filled(n, 0),
            side: filled(if n > MAX_UNBLOCKED { side_len } else { 0 }, T::ZERO),
            exponent: 0,
        }
    }

    /// Factors a row-major matrix. The factors are row-major for sizes up to [`MAX_UNBLOCKED`], column-major above.
    fn factor(&mut self, run: Run, a: &[T], n: usize) -> Factored {
        self.exponent = scale::exponent_for_elimination(a);
        if n <= MAX_UNBLOCKED {
            self.lu.copy_from_slice(a);
            scale::multiply(&mut self.lu, self.exponent);
            return unblocked::lu(&mut self.lu, n, &mut self.rows);
        }
        to_columns(a, &mut self.lu, n, n);
        scale::multiply(&mut self.lu, self.exponent);
        parallel::lu(run, &mut self.lu, n, &mut self.rows)
    }
}

fn checked(factored: &Factored) -> Result<(), Fault> {
    factored.zero.map_or(Ok(()), |i| Err(Fault::Singular(i)))
}

/// x = a^-1 b with `a` (count, n, n), `b` and `x` (count, n, k).
///
/// # Errors
/// [`Fault::Singular`] if a pivot is exactly zero.
#[expect(
    clippy::too_many_arguments,
    reason = "sizes and operands of one product"
)]
pub fn solve(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    k: usize,
    a: &[u8],
    b: &[u8],
    x: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => solve_typed::<T>(run, count, (n, k), elements(a), elements(b), elements_mut(x)))
}

fn solve_typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    (n, k): (usize, usize),
    a: &[T],
    b: &[T],
    x: &mut [T],
) -> Result<(), Failure> {
    let (outer, run) = runners(run, n);
    let outputs = (Parts::new(x, n * k), none::<T>(), none::<T>());
    each(
        outer,
        count,
        n * n * (n + 2 * k),
        outputs,
        || Work::<T>::new(n, n * k),
        |work, i, x, _, _| {
            let found = work.factor(run, &a[i * n * n..(i + 1) * n * n], n);
            checked(&found)?;
            let b = &b[i * n * k..(i + 1) * n * k];
            if n <= MAX_UNBLOCKED {
                for (x, &row) in x.chunks_exact_mut(k.max(1)).zip(&work.rows) {
                    x.copy_from_slice(&b[row * k..(row + 1) * k]);
                }
                unblocked::solve_factored(&work.lu, n, k, x);
                scale::multiply(x, work.exponent);
                return Ok(());
            }
            for (i, &row) in work.rows.iter().enumerate() {
                for j in 0..k {
                    work.side[j * n + i] = b[row * k + j];
                }
            }
            parallel::solve_factored(run, &work.lu, n, &mut work.side);
            to_columns(&work.side, x, k, n);
            scale::multiply(x, work.exponent);
            Ok(())
        },
    )
}

/// x = a^-1, both (count, n, n). Unless `strict`, the inverse of a singular matrix is NaN; with `strict` it is an error.
///
/// # Errors
/// [`Fault::Singular`] if a pivot is exactly zero.
pub fn inverse(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    strict: bool,
    a: &[u8],
    x: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => inverse_typed::<T>(run, count, n, strict, elements(a), elements_mut(x)))
}

fn inverse_typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    n: usize,
    strict: bool,
    a: &[T],
    x: &mut [T],
) -> Result<(), Failure> {
    let (outer, run) = runners(run, n);
    let outputs = (Parts::new(x, n * n), none::<T>(), none::<T>());
    each(
        outer,
        count,
        2 * n * n * n,
        outputs,
        || Work::<T>::new(n, n * n),
        |work, i, x, _, _| {
            let found = work.factor(run, &a[i * n * n..(i + 1) * n * n], n);
            match checked(&found) {
                Ok(()) => {
                    invert(run, work, n, x);
                    scale::multiply(x, work.exponent);
                }
                Err(fault) if strict => return Err(fault),
                Err(_) => x.fill(T::of(T::Re::NOT_A_NUMBER, T::Re::NOT_A_NUMBER)),
            }
            Ok(())
        },
    )
}

fn invert<T: MatrixElement>(run: Run, work: &mut Work<T>, n: usize, x: &mut [T]) {
    if n <= MAX_UNBLOCKED {
        return unblocked::invert_factored(&work.lu, n, &work.rows, x);
    }
    parallel::invert_factored(run, &work.lu, n, &mut work.side);
    // Undoes the permutation (column i becomes column `rows[i]`) and transposes to row-major.
    for (j, &row) in work.rows.iter().enumerate() {
        for i in 0..n {
            x[i * n + row] = work.side[j * n + i];
        }
    }
}

/// Signs and logarithms of the absolute value of determinants: `a` (count, n, n), `sign` (count) of its type, `log` (count) of its real type. Singular
/// matrices have sign 0 and logarithm -inf.
pub fn slogdet(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    a: &[u8],
    sign: &mut [u8],
    log: &mut [u8],
) {
    by_elem!(elem, T => {
        let (sign, log) = (elements_mut::<T>(sign), elements_mut::<<T as MatrixElement>::Re>(log));
        determinants::<T>(run, count, n, elements(a), Parts::new(sign, 1), Parts::new(log, 1), none());
    });
}

/// Determinants: `a` (count, n, n), `y` (count).
pub fn det(elem: Elem, run: Run, count: usize, n: usize, a: &[u8], y: &mut [u8]) {
    by_elem!(elem, T => {
        let y = elements_mut::<T>(y);
        determinants::<T>(run, count, n, elements(a), none(), none(), Parts::new(y, 1));
    });
}

/// An absent output: parts of length 0.
pub(crate) fn none<'a, T>() -> Parts<'a, T> {
    Parts::new(&mut [], 0)
}

fn determinants<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    n: usize,
    a: &[T],
    sign: Parts<T>,
    log: Parts<T::Re>,
    det: Parts<T>,
) {
    let (outer, run) = runners(run, n);
    let done = each(
        outer,
        count,
        n * n * n,
        (sign, log, det),
        || Work::<T>::new(n, 0),
        |work, i, sign, log, det| {
            let found = work.factor(run, &a[i * n * n..(i + 1) * n * n], n);
            if let ([sign], [log]) = (sign, log) {
                (*sign, *log) = logarithm(work, n, &found);
            }
            if let [det] = det {
                *det = product(work, n, &found);
            }
            Ok(())
        },
    );
    debug_assert!(done.is_ok(), "determinants always exist");
}

fn logarithm<T: MatrixElement>(work: &Work<T>, n: usize, found: &Factored) -> (T, T::Re) {
    if found.zero.is_some() {
        return (T::ZERO, T::Re::MINUS_INFINITY);
    }
    let mut sign = if found.odd { -T::ONE } else { T::ONE };
    let mut log = <T::Re as MatrixElement>::ZERO;
    for i in 0..n {
        let pivot = work.lu[i * n + i];
        let size = pivot.modulus();
        sign *= match T::IS_COMPLEX {
            true => pivot.times(<T::Re as MatrixElement>::ONE / size),
            // Also for infinities and NaNs.
            false if pivot.re() < <T::Re as MatrixElement>::ZERO => -T::ONE,
            false => T::ONE,
        };
        log += size.log();
    }
    // Subtracts n ln(2) for each power of two that the matrix was multiplied by.
    let factor = T::Re::from_integer(work.exponent) * T::Re::from_integer(n as i32);
    (sign, log - factor * T::Re::from_integer(2).log())
}

/// The product of the pivots. Computed with logarithms if an intermediate product leaves the range.
fn product<T: MatrixElement>(work: &Work<T>, n: usize, found: &Factored) -> T {
    if found.zero.is_some() {
        return T::ZERO;
    }
    let mut det = if found.odd { -T::ONE } else { T::ONE };
    for i in 0..n {
        det *= work.lu[i * n + i];
    }
    if det.is_number() && det != T::ZERO {
        let power = i64::from(work.exponent) * n as i64;
        let mut det = [det];
        scale::multiply(&mut det, (-power).clamp(-10_000, 10_000) as i32);
        return det[0];
    }
    let (sign, log) = logarithm(work, n, found);
    sign.times(log.exponential())
}

/// Derivatives of determinants with respect to the elements. They exist for singular matrices, too. `a` and `c` (count, n, n).
///
/// # Errors
/// [`Fault::NotFinite`] and [`Fault::NoConvergence`] for nearly singular matrices, whose cofactors are computed from singular values.
pub fn cofactors(
    elem: Elem,
    run: Run,
    count: usize,
    n: usize,
    a: &[u8],
    c: &mut [u8],
) -> Result<(), Failure> {
    by_elem!(elem, T => cofactors_typed::<T>(run, count, n, elements(a), elements_mut(c)))
}

fn cofactors_typed<T: MatrixElement + AnyBitPattern>(
    run: Run,
    count: usize,
    n: usize,
    a: &[T],
    c: &mut [T],
) -> Result<(), Failure> {
    let (outer, run) = runners(run, n);
    let outputs = (Parts::new(c, n * n), none::<T>(), none::<T>());
    each(
        outer,
        count,
        4 * n * n * n,
        outputs,
        || (Work::<T>::new(n, n * n), filled(n * n, T::ZERO)),
        |(work, inverse), i, c, _, _| {
            let a = &a[i * n * n..(i + 1) * n * n];
            let found = work.factor(run, a, n);
            if !is_near_singular(work, n) {
                invert(run, work, n, inverse);
                let det = product(work, n, &found);
                to_columns(inverse, c, n, n);
                c.iter_mut().for_each(|c| *c *= det);
                scale::multiply(c, work.exponent);
                return Ok(());
            }
            from_singular_values(run, work, a, n, c)
        },
    )
}

fn is_near_singular<T: MatrixElement>(work: &Work<T>, n: usize) -> bool {
    let sizes = || (0..n).map(|i| work.lu[i * n + i].modulus());
    let largest = sizes().fold(
        <T::Re as MatrixElement>::ZERO,
        |a, b| if b > a { b } else { a },
    );
    // Above this distance from singularity, at least half of the inverse's digits are correct.
    let least = largest * T::Re::EPSILON.root();
    sizes().any(|size| size <= least)
}

/// With A = U S V^H: cofactors = det(U) det(V^H) conj(U) diag(products of all singular values but one) conj(V^H).
fn from_singular_values<T: MatrixElement + AnyBitPattern>(
    run: Run,
    work: &mut Work<T>,
    a: &[T],
    n: usize,
    c: &mut [T],
) -> Result<(), Fault> {
    let mut values = filled(n, <T::Re as MatrixElement>::ZERO);
    let (mut u, mut vh) = (filled(n * n, T::ZERO), filled(n * n, T::ZERO));
    svd::square(a, n, &mut values, &mut u, &mut vh)?;
    let mut phase = T::ONE;
    for unitary in [&u, &vh] {
        let found = work.factor(run, unitary, n);
        phase *= logarithm(work, n, &found).0;
    }
    c.fill(T::ZERO);
    for j in 0..n {
        let mut others = <T::Re as MatrixElement>::ONE;
        for (i, &value) in values.iter().enumerate() {
            if i != j {
                others *= value;
            }
        }
        for row in 0..n {
            let factor = (u[row * n + j].conjugate() * phase).times(others);
            for column in 0..n {
                c[row * n + column] += factor * vh[j * n + column].conjugate();
            }
        }
    }
    Ok(())
}
