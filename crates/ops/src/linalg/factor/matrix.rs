//! Matrix algebra for gradient rules: transposes, triangles, symmetric parts.

use mxnet_tensor::{DType, Dims, Scalar};

use crate::Array;
use crate::args::{Attrs, Value};
use crate::creation;
use crate::elementwise::arithmetic::MULTIPLY;
use crate::elementwise::comparison::{EQUAL, GREATER_EQUAL};
use crate::elementwise::parts::IMAG;
use crate::elementwise::select::choose;
use crate::error::Result;
use crate::index::DIAGONAL;
use crate::invoke::invoke1;

/// Conjugate transpose.
pub(super) fn adjoint(x: &Array) -> Result<Array> {
    x.swap_last()?.conj()
}

/// (…, n) as a row of each matrix: (…, 1, n).
pub(super) fn as_row(x: &Array) -> Result<Array> {
    let mut shape = Dims::from_slice(x.shape());
    shape.insert(shape.len().saturating_sub(1), 1);
    x.reshape(&shape)
}

/// (…, n) as a column of each matrix: (…, n, 1).
pub(super) fn as_column(x: &Array) -> Result<Array> {
    let mut shape = Dims::from_slice(x.shape());
    shape.push(1);
    x.reshape(&shape)
}

/// (…) as one element of each matrix: (…, 1, 1).
pub(super) fn as_element(x: &Array) -> Result<Array> {
    let mut shape = Dims::from_slice(x.shape());
    shape.extend([1, 1]);
    x.reshape(&shape)
}

/// The diagonals of matrices: (…, n).
pub(super) fn diagonal(x: &Array) -> Result<Array> {
    let attrs: Attrs = [0, -2, -1].map(Value::Int).into_iter().collect();
    invoke1(&DIAGONAL, &[x], &attrs)
}

/// A part of an n x n matrix.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The diagonal.
    Diagonal,
    /// On and below the diagonal.
    Lower,
}

/// True in a part of an n x n matrix, false elsewhere.
pub(super) fn mask(n: usize, part: Part) -> Result<Array> {
    let along = creation::arange(n, DType::I64)?;
    let rows = along.reshape(&[n, 1])?;
    match part {
        Part::Diagonal => rows.binary(&EQUAL, &along),
        Part::Lower => rows.binary(&GREATER_EQUAL, &along),
    }
}

/// `x` in a part of the matrices; zero elsewhere, even where `x` is NaN.
pub(super) fn only(x: &Array, part: Part) -> Result<Array> {
    let n = x.shape()[x.ndim() - 1];
    choose(&mask(n, part)?, x, &number(0.0)?)
}

/// Diagonal matrices with diagonals `x`: (…, n) -> (…, n, n).
pub(super) fn diagonal_matrix(x: &Array) -> Result<Array> {
    only_of(&as_row(x)?, x.shape()[x.ndim() - 1])
}

fn only_of(row: &Array, n: usize) -> Result<Array> {
    choose(&mask(n, Part::Diagonal)?, row, &number(0.0)?)
}

/// A weak scalar.
pub(super) fn number(x: f64) -> Result<Array> {
    Array::weak_scalar(Scalar::F64(x))
}

/// Times the imaginary unit.
pub(super) fn times_i(x: &Array) -> Result<Array> {
    let i = Array::weak_scalar(Scalar::C128(num_complex::Complex::new(0.0, 1.0)))?;
    invoke1(&MULTIPLY, &[x, &i], &Attrs::none())
}

/// The imaginary parts.
pub(super) fn imaginary(x: &Array) -> Result<Array> {
    x.unary(&IMAG)
}

/// Hermitian part, (x + x^H) / 2.
pub(super) fn hermitian(x: &Array) -> Result<Array> {
    x.add(&adjoint(x)?)?.scale(0.5)
}

/// 1 / (x_j - x_i) off the diagonal, 0 on it: (…, n) -> (…, n, n).
pub(super) fn inverse_gaps(x: &Array) -> Result<Array> {
    let n = x.shape()[x.ndim() - 1];
    let gaps = as_row(x)?.sub(&as_column(x)?)?;
    let on = mask(n, Part::Diagonal)?;
    let safe = choose(&on, &number(1.0)?, &gaps)?;
    choose(&on, &number(0.0)?, &safe.reciprocal()?)
}
