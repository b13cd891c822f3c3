//! Numbers of a graph that depend on sizes: fitted to two traces, checked with the third.

use smallvec::SmallVec;

/// Values of a number, or of a symbol, in three traces.
pub type Three<T> = [T; 3];

/// A sum of products of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Polynomial {
    /// Factors, and the symbols that are multiplied with each.
    pub terms: Vec<(i64, SmallVec<[u32; 4]>)>,
}

/// Largest number of symbols in a product.
pub(super) const MAX_DEGREE: usize = 4;

/// With more symbols than this, only products of two are tried.
const MAX_SYMBOLS_OF_PRODUCTS: usize = 6;

impl Polynomial {
    fn new(constant: i64, factor: i64, products: &[(i64, &[u32])]) -> Polynomial {
        let mut terms: Vec<(i64, SmallVec<[u32; 4]>)> = Vec::new();
        if constant != 0 {
            terms.push((constant, SmallVec::new()));
        }
        terms.extend(
            products
                .iter()
                .map(|(sign, symbols)| (sign * factor, SmallVec::from_slice(symbols))),
        );
        Polynomial { terms }
    }

    /// The number 1.
    pub(super) fn one() -> Polynomial {
        Polynomial::new(1, 0, &[])
    }

    /// The value; `None` if a size in it is not known or the value exceeds 64 bits.
    pub fn at(&self, sizes: &[Option<i64>]) -> Option<i64> {
        self.terms.iter().try_fold(0_i64, |sum, (factor, symbols)| {
            let product = symbols.iter().try_fold(*factor, |product, &symbol| {
                product.checked_mul((*sizes.get(symbol as usize)?)?)
            })?;
            sum.checked_add(product)
        })
    }
}

/// A number that depends on sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Whole(Polynomial),
    /// An integer as a real number.
    Real(Polynomial),
    /// A constant divided by an integer.
    Quotient(f64, Polynomial),
}

impl Number {
    /// The value as a real number; `None` if a size in it is not known.
    pub(super) fn real_at(&self, sizes: &[Option<i64>]) -> Option<f64> {
        match self {
            Number::Whole(x) | Number::Real(x) => x.at(sizes).map(|x| x as f64),
            Number::Quotient(constant, x) => x.at(sizes).map(|x| constant / x as f64),
        }
    }
}

/// Calls `f` with each candidate and its values: products of symbols and sums of two, simple ones first. Stops when `f` returns a result.
fn candidates<R>(
    symbols: &[Three<i64>],
    mut f: impl FnMut(&[(i64, &[u32])], Three<i64>) -> Option<R>,
) -> Option<R> {
    let value = |product: &[u32]| -> Option<Three<i64>> {
        let mut values = [1_i64; 3];
        for &symbol in product {
            for (value, size) in values.iter_mut().zip(symbols[symbol as usize]) {
                *value = value.checked_mul(size)?;
            }
        }
        Some(values)
    };
    let count = symbols.len() as u32;
    for i in 0..count {
        if let Some(found) = f(&[(1, &[i])], symbols[i as usize]) {
            return Some(found);
        }
    }
    for i in 0..count {
        for k in i + 1..count {
            let (a, b) = (symbols[i as usize], symbols[k as usize]);
            for sign in [1, -1] {
                let values = [0, 1, 2].map(|at| a[at] + sign * b[at]);
                if let Some(found) = f(&[(1, &[i]), (sign, &[k])], values) {
                    return Some(found);
                }
            }
        }
    }
    let degree = match symbols.len() > MAX_SYMBOLS_OF_PRODUCTS {
        true => 2,
        false => MAX_DEGREE,
    };
    let mut products: Vec<SmallVec<[u32; 4]>> =
        (0..count).map(|i| SmallVec::from_slice(&[i])).collect();
    for _ in 1..degree {
        let mut longer = Vec::new();
        for product in &products {
            let last = product.last().copied().unwrap_or(0);
            for next in last..count {
                let mut product = product.clone();
                product.push(next);
                if let Some(values) = value(&product)
                    && let Some(found) = f(&[(1, &product)], values)
                {
                    return Some(found);
                }
                longer.push(product);
            }
        }
        products = longer;
    }
    None
}

/// The polynomial with these values.
pub fn fit_whole(values: Three<i64>, symbols: &[Three<i64>]) -> Option<Polynomial> {
    if values[0] == values[1] && values[1] == values[2] {
        return Some(Polynomial::new(values[0], 0, &[]));
    }
    let fitted = |may_add: fn(i64) -> bool| {
        candidates(symbols, |products, sizes| {
            let step = sizes[1].checked_sub(sizes[0])?;
            let difference = values[1].checked_sub(values[0])?;
            if step == 0 || difference == 0 || difference % step != 0 {
                return None;
            }
            let factor = difference / step;
            if products.len() > 1 && factor != 1 {
                return None;
            }
            let constant = values[0].checked_sub(factor.checked_mul(sizes[0])?)?;
            let third = constant.checked_add(factor.checked_mul(sizes[2])?)?;
            (third == values[2] && may_add(constant))
                .then(|| Polynomial::new(constant, factor, products))
        })
    };
    // Multiples first: three values of a product may lie on a line by chance, as a function of one of its sizes.
    fitted(|constant| constant == 0).or_else(|| fitted(|_| true))
}

/// Whether the values are a multiple of one symbol plus a constant.
pub(super) fn follows_one(values: Three<i64>, symbols: &[Three<i64>]) -> bool {
    let mut symbols = symbols.chunks(1);
    symbols.any(|symbol| {
        fit_whole(values, symbol).is_some_and(|x| x.terms.iter().all(|(_, s)| s.len() < 2))
    }) || values[0] == values[1] && values[1] == values[2]
}

/// The number with exactly these real values, bit for bit.
pub fn fit_real(values: Three<f64>, symbols: &[Three<i64>]) -> Option<Number> {
    /// Above this, not all integers are exact as float64.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if values
        .iter()
        .all(|x| x.fract() == 0.0 && x.abs() < MAX_EXACT)
    {
        let whole = values.map(|x| x as i64);
        if let Some(found) = fit_whole(whole, symbols) {
            return Some(Number::Real(found));
        }
    }
    candidates(symbols, |products, sizes| {
        let is_same = |constant: f64, factor: i64| {
            let quotients = sizes.map(|size| constant / size.wrapping_mul(factor) as f64);
            quotients
                .iter()
                .zip(&values)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        };
        let constant = values[0] * sizes[0] as f64;
        let quotient =
            |constant, factor| Number::Quotient(constant, Polynomial::new(0, factor, products));
        if is_same(constant.round(), 1) {
            return Some(quotient(constant.round(), 1));
        }
        // A quotient with an integer divisor is tried first: `1 / (3 * n)` is rounded once, a third divided by `n` twice.
        let factor = (1.0 / constant).round();
        if factor.abs() >= 1.0 && factor.abs() < MAX_EXACT && is_same(1.0, factor as i64) {
            return Some(quotient(1.0, factor as i64));
        }
        is_same(constant, 1).then(|| quotient(constant, 1))
    })
}
