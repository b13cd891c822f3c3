//! The shortest decimal digits that identify a floating-point number among those of its type.

use mxnet::core::Array;
use mxnet::tensor::{DType, Scalar};
use pyo3::prelude::*;

use crate::array::{Get, PyArray};
use crate::numbers;

/// The shortest digits of a Python number or of a float32 or float64 element, as NumPy's `format_float_positional` and
/// `format_float_scientific` (if `is_scientific`) write them by default. None for any other object, and for long powers of two, which need more care.
#[pyfunction]
#[pyo3(signature = (x, is_scientific, /))]
pub fn shortest_digits(x: &Bound<'_, PyAny>, is_scientific: bool) -> PyResult<Option<String>> {
    let number = match x.cast::<PyArray>() {
        Ok(x) => match x.get().with(x.py(), |x| x.ndim() == 0 && x.is_ready()) {
            true => Number::of_element(&x.get().array(x.py())),
            false => None,
        },
        Err(_) => match numbers::number(x)? {
            Some(Scalar::F64(x)) => Some(Number::F64(x)),
            Some(Scalar::I64(x)) => Some(Number::F64(x as f64)),
            _ => None,
        },
    };
    let number = number.filter(|number| !number.is_uneven());
    Ok(number.map(|number| match is_scientific {
        true => number.scientific(),
        false => number.positional(),
    }))
}

#[derive(Clone, Copy)]
enum Number {
    F32(f32),
    F64(f64),
}

impl Number {
    fn of_element(x: &Array) -> Option<Number> {
        let Ok(Scalar::F64(value)) = x.item() else {
            return None;
        };
        match x.dtype() {
            DType::F32 => Some(Number::F32(value as f32)),
            DType::F64 => Some(Number::F64(value)),
            _ => None,
        }
    }

    /// Whether the distances to both neighbours differ, as for powers of two: the shortest digits need not be the nearest then. Powers with few
    /// digits
    /// are their own shortest form.
    fn is_uneven(self) -> bool {
        match self {
            Number::F32(x) => {
                x.to_bits() & 0x007f_ffff == 0 && x != 0.0 && !(0.03..1e6).contains(&x.abs())
            }
            Number::F64(x) => {
                x.to_bits() & 0x000f_ffff_ffff_ffff == 0
                    && x != 0.0
                    && !(0.001..1e15).contains(&x.abs())
            }
        }
    }

    /// `nan`, `inf` or `-inf`.
    fn special(self) -> Option<String> {
        let x = match self {
            Number::F32(x) => f64::from(x),
            Number::F64(x) => x,
        };
        match x {
            _ if x.is_finite() => None,
            _ if x.is_nan() => Some("nan".to_owned()),
            _ => Some(if x > 0.0 { "inf" } else { "-inf" }.to_owned()),
        }
    }

    /// `0.1`, `1500.`
    fn positional(self) -> String {
        if let Some(text) = self.special() {
            return text;
        }
        let text = self.nearest();
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", digits),
        };
        let (first, rest) = digits.split_once('.').unwrap_or((digits, ""));
        match exponent.strip_prefix('-') {
            Some(exponent) => {
                let zeros = exponent.parse::<usize>().unwrap_or(1) - 1;
                format!("{sign}0.{:0<zeros$}{first}{rest}", "")
            }
            None => {
                let decimals = exponent.parse::<usize>().unwrap_or(0);
                match rest.split_at_checked(decimals) {
                    Some((whole, fraction)) => format!("{sign}{first}{whole}.{fraction}"),
                    None => format!("{sign}{first}{rest:0<decimals$}."),
                }
            }
        }
    }

    /// `1.e-01`, `1.5e+03`
    fn scientific(self) -> String {
        if let Some(text) = self.special() {
            return text;
        }
        let text = self.nearest();
        // Rust writes 1.5e3, without sign and leading zero.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let point = if digits.contains('.') { "" } else { "." };
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{digits}{point}e{sign}{exponent:0>2}")
    }

    /// The shortest digits with an exponent. If two are equally near, Rust takes the larger one; this takes the even one, as NumPy does.
    fn nearest(self) -> String {
        let text = match self {
            Number::F32(x) => format!("{x:e}"),
            Number::F64(x) => format!("{x:e}"),
        };
        let decimals = match text.split_once('.') {
            Some((_, rest)) => rest.split('e').next().map_or(0, str::len),
            None => 0,
        };
        match self {
            Number::F32(x) => format!("{x:.decimals$e}"),
            Number::F64(x) => format!("{x:.decimals$e}"),
        }
    }
}
