//! Text of arrays, in the layout of NumPy's `str`: columns of one width, lines of at most 75 characters, and of more than 1,000 elements only the
//! corners.

use std::fmt;

use mxnet_core::Result;
use mxnet_tensor::{DType, Layout, Scalar, Tensor};

use crate::Array;

/// Larger arrays are summarised.
const MAX_PRINTED_LEN: usize = 1000;

/// Number of elements that a summary shows at each end of an axis.
const EDGE: usize = 3;

const LINE_WIDTH: usize = 75;

/// Largest number of digits after the point, if the caller gives none.
const MAX_DIGITS: usize = 8;

/// The elements as NumPy prints them: as many digits as distinguish each element from its neighbours, at most eight after the point. A precision, as in
/// `{:.3}`, is the exact number of digits after the point. An array whose values cannot be read shows the error instead.
///
/// ```
/// use mxnet::Array;
///
/// # fn main() -> mxnet::Result<()> {
/// let x = Array::from_slice(&[1.0_f32, -0.5, 12.25, 3.0], &[2, 2])?;
/// assert_eq!(x.to_string(), "[[ 1.   -0.5 ]\n [12.25  3.  ]]");
/// assert_eq!(format!("{x:.1}"), "[[ 1.0 -0.5]\n [12.2  3.0]]");
/// assert_eq!(mxnet::call("arange", &[2000_i64.into()], &[])?[0].to_string(), "[   0    1    2 ... 1997 1998 1999]");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = self.as_ref();
        let text = match Printed::read(array) {
            // `to_string` panics if this returns an error.
            Err(error) => format!("{array:?}: {error}"),
            Ok(printed) => printed.text(f.precision()),
        };
        f.write_str(&text)
    }
}

/// The elements that are printed.
struct Printed {
    shape: Vec<usize>,
    dtype: DType,
    is_summarised: bool,
    /// In C order, without those that a summary leaves out.
    elements: Vec<Scalar>,
}

impl Printed {
    fn read(array: &mxnet_core::Array) -> Result<Printed> {
        let mut printed = Printed {
            shape: array.shape().to_vec(),
            dtype: array.dtype(),
            is_summarised: array.len() > MAX_PRINTED_LEN,
            elements: Vec::new(),
        };
        let copy = match printed.is_summarised {
            true => array.snapshot_of_corners(EDGE)?,
            false => array.snapshot()?,
        };
        let mut offsets = vec![copy.layout().offset() as isize];
        for (&len, &stride) in printed.shape.iter().zip(copy.layout().strides()) {
            let along: Vec<usize> = (0..len)
                .take(printed.leading(len))
                .chain(len - printed.trailing(len)..len)
                .collect();
            offsets = (offsets.iter())
                .flat_map(|&first| along.iter().map(move |&i| first + i as isize * stride))
                .collect();
        }
        for offset in offsets {
            let layout = Layout::contiguous(&[]).with_offset(offset.unsigned_abs());
            let element = Tensor::new(copy.tensor().storage().clone(), layout, printed.dtype)?;
            let element = mxnet_core::Array::from_tensor(element);
            printed.elements.push(element.item()?);
        }
        Ok(printed)
    }

    /// Whether a summary leaves out elements of an axis of this length.
    fn is_cut(&self, len: usize) -> bool {
        self.is_summarised && len > 2 * EDGE
    }

    /// Number of elements that are printed before the gap of an axis.
    fn leading(&self, len: usize) -> usize {
        if self.is_cut(len) { EDGE } else { 0 }
    }

    /// Number of elements that are printed after the gap; all of them if there is none.
    fn trailing(&self, len: usize) -> usize {
        if self.is_cut(len) { EDGE } else { len }
    }

    fn text(&self, precision: Option<usize>) -> String {
        if self.elements.is_empty() {
            return "[]".to_owned();
        }
        if self.shape.is_empty() {
            return single(self.elements[0], self.dtype, precision);
        }
        let words = self.words(precision);
        self.nested(&mut words.iter().map(String::as_str), 0, LINE_WIDTH)
    }

    /// The text of each element, all of one width.
    fn words(&self, precision: Option<usize>) -> Vec<String> {
        let elements = self.elements.iter();
        match self.dtype {
            DType::Bool => elements
                .map(|x| if x.as_f64() != 0.0 { " True" } else { "False" }.to_owned())
                .collect(),
            dtype if dtype.is_complex() => {
                let (re, im): (Vec<f64>, Vec<f64>) = elements
                    .map(|x| match *x {
                        Scalar::C128(z) => (z.re, z.im),
                        other => (other.as_f64(), 0.0),
                    })
                    .unzip();
                let part = dtype.real();
                let re_column = Column::of(&re, part, precision, false);
                let im_column = Column::of(&im, part, precision, true);
                let word = |(&re, &im)| {
                    let im = im_column.word(im);
                    let digits = im.trim_end();
                    format!("{}{digits}j{}", re_column.word(re), &im[digits.len()..])
                };
                re.iter().zip(&im).map(word).collect()
            }
            dtype if dtype.is_inexact() => {
                let values: Vec<f64> = elements.map(Scalar::as_f64).collect();
                let column = Column::of(&values, dtype, precision, false);
                values.iter().map(|&x| column.word(x)).collect()
            }
            _ => {
                let texts: Vec<String> = elements.map(integer).collect();
                let width = texts.iter().map(String::len).max().unwrap_or(0);
                texts.iter().map(|text| format!("{text:>width$}")).collect()
            }
        }
    }

    /// The text of the part at this depth, which takes its words from `words`. `width` is the room for a line with its closing brackets.
    fn nested<'a>(
        &self,
        words: &mut impl Iterator<Item = &'a str>,
        axis: usize,
        width: usize,
    ) -> String {
        let len = self.shape[axis];
        let count = self.leading(len) + self.trailing(len);
        let gap = self.is_cut(len).then_some(EDGE);
        let indent = " ".repeat(axis + 1);
        let is_last_axis = axis + 1 == self.shape.len();
        let mut parts: Vec<String> = Vec::new();
        for i in 0..count {
            if gap == Some(i) {
                parts.push("...".to_owned());
            }
            parts.push(match is_last_axis {
                true => words.next().unwrap_or_default().to_owned(),
                false => self.nested(words, axis + 1, width - 1),
            });
        }
        if !is_last_axis {
            let between = "\n".repeat(self.shape.len() - axis - 1) + &indent;
            return format!("[{}]", parts.join(&between));
        }
        let (mut text, mut line) = (String::new(), String::new());
        for (i, part) in parts.iter().enumerate() {
            // Also if the line is empty, its first word is not moved to another one.
            if !line.is_empty() && indent.len() + line.len() + part.len() > width - 1 {
                text += line.trim_end();
                text += "\n";
                text += &indent;
                line.clear();
            }
            line += part;
            if i + 1 < parts.len() {
                line += " ";
            }
        }
        format!("[{text}{line}]")
    }
}

fn integer(x: &Scalar) -> String {
    match x {
        Scalar::I64(x) => x.to_string(),
        Scalar::U64(x) => x.to_string(),
        other => other.as_f64().to_string(),
    }
}

/// The text of a 0-d array, as of a NumPy scalar.
fn single(x: Scalar, dtype: DType, precision: Option<usize>) -> String {
    match x {
        Scalar::Bool(x) => if x { "True" } else { "False" }.to_owned(),
        Scalar::C128(z) => {
            let part = |x: f64| float(x, dtype.real(), precision, "");
            match z.re == 0.0 && z.re.is_sign_positive() {
                true => format!("{}j", part(z.im)),
                false => {
                    let sign = if z.im.is_sign_negative() && !z.im.is_nan() {
                        ""
                    } else {
                        "+"
                    };
                    format!("({}{sign}{}j)", part(z.re), part(z.im))
                }
            }
        }
        Scalar::F64(x) => float(x, dtype, precision, ".0"),
        integral => integer(&integral),
    }
}

/// The text of one number; `whole` follows the digits of one without a fraction.
fn float(x: f64, dtype: DType, precision: Option<usize>, whole: &str) -> String {
    if !x.is_finite() {
        return non_finite(x, false);
    }
    if let Some(precision) = precision {
        return format!("{x:.precision$}");
    }
    // NumPy's limits for scalars.
    if x != 0.0 && !(1e-4..largest_without_exponent(dtype)).contains(&x.abs()) {
        return with_exponent(&shortest(x, dtype), 2);
    }
    let text = positional(&shortest(x, dtype));
    match text.strip_suffix('.') {
        Some(digits) => format!("{digits}{whole}"),
        None => text,
    }
}

/// Numbers of this size are written with an exponent: their digits before the point would say more than the dtype distinguishes.
fn largest_without_exponent(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e16,
        DType::F32 => 1e6,
        _ => 1e3,
    }
}

fn non_finite(x: f64, is_signed: bool) -> String {
    let sign = match x {
        x if x == f64::NEG_INFINITY => "-",
        _ if is_signed => "+",
        _ => "",
    };
    format!("{sign}{}", if x.is_nan() { "nan" } else { "inf" })
}

/// How the numbers of a column are written, all of one width.
struct Column {
    /// Digits after the point, at most.
    precision: usize,
    /// Whether all numbers have that many.
    is_fixed: bool,
    has_exponent: bool,
    /// Digits of the exponent.
    exponent_len: usize,
    is_signed: bool,
    dtype: DType,
    /// Characters before and after the point.
    before: usize,
    after: usize,
}

impl Column {
    fn of(values: &[f64], dtype: DType, precision: Option<usize>, is_signed: bool) -> Column {
        let finite = || values.iter().copied().filter(|x| x.is_finite());
        let sizes = || finite().map(f64::abs).filter(|&x| x != 0.0);
        let (largest, least) = (
            sizes().fold(0.0, f64::max),
            sizes().fold(f64::INFINITY, f64::min),
        );
        // NumPy's limits for columns.
        let limit = largest_without_exponent(dtype).min(1e8);
        let has_exponent =
            largest >= limit || largest > 0.0 && (least < 1e-4 || largest / least > 1000.0);
        let mut column = Column {
            precision: precision.unwrap_or(MAX_DIGITS),
            is_fixed: precision.is_some(),
            has_exponent,
            exponent_len: 0,
            is_signed,
            dtype,
            before: 0,
            after: 0,
        };
        for x in finite() {
            let text = column.digits(x);
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, ""));
            let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            column.before = column.before.max(before.len());
            column.after = column.after.max(after.len());
            column.exponent_len = column.exponent_len.max(exponent.len().saturating_sub(1));
        }
        if column.has_exponent {
            // All numbers have the digits of the longest one.
            (column.is_fixed, column.precision) = (true, column.after);
            column.after += column.exponent_len + 2;
        }
        for x in values.iter().filter(|x| !x.is_finite()) {
            let width = non_finite(*x, is_signed).len();
            column.before = column.before.max(width.saturating_sub(column.after + 1));
        }
        column
    }

    /// The digits of a finite number, not yet padded.
    fn digits(&self, x: f64) -> String {
        let precision = self.precision;
        let sign = if self.is_signed && x.is_sign_positive() {
            "+"
        } else {
            ""
        };
        let shortest = shortest(x, self.dtype);
        let text = match self.has_exponent {
            true => {
                let is_exact = self.is_fixed || fraction_len(&shortest) > precision;
                let rounded = is_exact.then(|| format!("{x:.precision$e}"));
                with_exponent_and_point(&rounded.unwrap_or(shortest), self.exponent_len.max(2))
            }
            false => {
                let text = positional(&shortest);
                let fraction = text
                    .split_once('.')
                    .map_or(0, |(_, fraction)| fraction.len());
                match self.is_fixed || fraction > precision {
                    true => with_point(format!("{x:.precision$}")),
                    false => text,
                }
            }
        };
        let text = match self.is_fixed || !text.contains('.') {
            true => text,
            false => without_zeros(&text),
        };
        format!("{sign}{text}")
    }

    fn word(&self, x: f64) -> String {
        let width = self.before + 1 + self.after;
        if !x.is_finite() {
            return format!("{:>width$}", non_finite(x, self.is_signed));
        }
        let text = self.digits(x);
        let before = text.find('.').unwrap_or(text.len());
        let padding = self.before.saturating_sub(before);
        format!("{:<width$}", " ".repeat(padding) + &text)
    }
}

/// The shortest digits that identify a number of this dtype, as `d.ddde-5`.
fn shortest(x: f64, dtype: DType) -> String {
    let with_digits = |rounded: fn(f64) -> f64| {
        let candidates = (0..MAX_DIGITS).map(|digits| format!("{x:.digits$e}"));
        let mut found = candidates.filter(|text| text.parse().map(rounded) == Ok(x));
        found.next().unwrap_or_else(|| format!("{x:e}"))
    };
    match dtype {
        DType::F16 => with_digits(|x| half::f16::from_f64(x).to_f64()),
        DType::BF16 => with_digits(|x| half::bf16::from_f64(x).to_f64()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the number is an element of this dtype"
        )]
        DType::F32 => format!("{:e}", x as f32),
        _ => format!("{x:e}"),
    }
}

/// Number of digits after the point of `d.ddde-5`.
fn fraction_len(text: &str) -> usize {
    let mantissa = text.split('e').next().unwrap_or_default();
    mantissa
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len())
}

/// Without an exponent, with a point.
fn positional(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let exponent: isize = exponent.parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as isize + exponent;
    let (before, after) = match point {
        ..=0 => ("0".to_owned(), "0".repeat(point.unsigned_abs()) + &digits),
        _ => {
            let point = point.unsigned_abs();
            let padded = format!("{digits:0<point$}");
            (padded[..point].to_owned(), padded[point..].to_owned())
        }
    };
    without_zeros(&format!("{sign}{before}.{after}"))
}

/// With an exponent that has a sign and at least `len` digits.
fn with_exponent(text: &str, len: usize) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>len$}")
}

fn with_exponent_and_point(text: &str, len: usize) -> String {
    let text = with_exponent(text, len);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, ""));
    format!("{}e{exponent}", with_point(mantissa.to_owned()))
}

fn with_point(mut text: String) -> String {
    if !text.contains('.') {
        text.push('.');
    }
    text
}

/// Without zeros at the end of the fraction.
fn without_zeros(text: &str) -> String {
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", mantissa.trim_end_matches('0')),
        None => text.trim_end_matches('0').to_owned(),
    }
}
