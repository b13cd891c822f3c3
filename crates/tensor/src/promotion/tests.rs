//! Tests against tables generated with NumPy 2.4.

use super::*;

/// NumPy's type characters, in the order of the tables.
const CODES: &str = "?bhiqBHIQefdFD";

/// Row: first operand, column: second; from `numpy.promote_types`.
const PAIRS: [&str; 14] = [
    "?bhiqBHIQefdFD",
    "bbhiqhiqdefdFD",
    "hhhiqhiqdffdFD",
    "iiiiqiiqddddDD",
    "qqqqqqqqddddDD",
    "BhhiqBHIQefdFD",
    "HiiiqHHIQffdFD",
    "IqqqqIIIQdddDD",
    "QddddQQQQdddDD",
    "eefddefddefdFD",
    "fffddffddffdFD",
    "ddddddddddddDD",
    "FFFDDFFDDFFDFD",
    "DDDDDDDDDDDDDD",
];

/// `numpy.result_type(array, scalar)` for a Python bool, int, float, complex.
const WEAK: [(Kind, &str); 4] = [
    (Kind::Bool, "?bhiqBHIQefdFD"),
    (Kind::Integer, "qbhiqBHIQefdFD"),
    (Kind::Float, "dddddddddefdFD"),
    (Kind::Complex, "DDDDDDDDDFFDFD"),
];

/// Triples (sorted as in `CODES`) whose result depends on the order of pairwise promotion, and NumPy's result.
const TRIPLES: &str = "bBee bHef bHff bHFF hHef hHff hHFF";

/// `numpy.can_cast(row, column, "safe")`.
const SAFE: [&str; 14] = [
    "xxxxxxxxxxxxxx",
    ".xxxx....xxxxx",
    "..xxx.....xxxx",
    "...xx......x.x",
    "....x......x.x",
    "..xxxxxxxxxxxx",
    "...xx.xxx.xxxx",
    "....x..xx..x.x",
    "........x..x.x",
    ".........xxxxx",
    "..........xxxx",
    "...........x.x",
    "............xx",
    ".............x",
];

/// `numpy.can_cast(row, column, "same_kind")`.
const SAME_KIND: [&str; 14] = [
    "xxxxxxxxxxxxxx",
    ".xxxx....xxxxx",
    ".xxxx....xxxxx",
    ".xxxx....xxxxx",
    ".xxxx....xxxxx",
    ".xxxxxxxxxxxxx",
    ".xxxxxxxxxxxxx",
    ".xxxxxxxxxxxxx",
    ".xxxxxxxxxxxxx",
    ".........xxxxx",
    ".........xxxxx",
    ".........xxxxx",
    "............xx",
    "............xx",
];

fn types(codes: &str) -> Vec<DType> {
    codes
        .chars()
        .map(|c| DType::from_name(&c.to_string()).expect("a code"))
        .collect()
}

fn of(dtypes: &[DType], mode: Promotion) -> DType {
    result_type(
        &dtypes
            .iter()
            .map(|&d| Operand::Array(d))
            .collect::<Vec<_>>(),
        mode,
    )
}

#[test]
fn pairs_are_numpys() {
    for (a, row) in types(CODES).into_iter().zip(PAIRS) {
        for (b, expected) in types(CODES).into_iter().zip(types(row)) {
            assert_eq!(promote(a, b, Promotion::NumPy), expected, "{a} {b}");
            assert_eq!(of(&[a, b], Promotion::NumPy), expected, "{a} {b}");
        }
    }
}

#[test]
fn weak_scalars_are_numpys() {
    for (kind, row) in WEAK {
        for (dtype, expected) in types(CODES).into_iter().zip(types(row)) {
            for operands in [
                [Operand::Array(dtype), Operand::Weak(kind)],
                [Operand::Weak(kind), Operand::Array(dtype)],
            ] {
                assert_eq!(
                    result_type(&operands, Promotion::NumPy),
                    expected,
                    "{dtype} {kind:?}"
                );
            }
        }
    }
}

#[test]
fn triples_are_numpys_in_every_order() {
    let all = types(CODES);
    let special: Vec<Vec<DType>> = TRIPLES.split(' ').map(types).collect();
    let mut found = 0;
    for (i, &a) in all.iter().enumerate() {
        for (j, &b) in all.iter().enumerate().skip(i + 1) {
            for &c in all.iter().skip(j + 1) {
                let mode = Promotion::NumPy;
                let expected = match special.iter().find(|t| t[..3] == [a, b, c]) {
                    Some(triple) => triple[3],
                    None => promote(promote(a, b, mode), c, mode),
                };
                found += usize::from(special.iter().any(|t| t[..3] == [a, b, c]));
                for order in [
                    [a, b, c],
                    [a, c, b],
                    [b, a, c],
                    [b, c, a],
                    [c, a, b],
                    [c, b, a],
                ] {
                    assert_eq!(of(&order, mode), expected, "{order:?}");
                }
            }
        }
    }
    assert_eq!(found, special.len());
}

#[test]
fn casting_rules_are_numpys() {
    for (a, (safe, same_kind)) in types(CODES)
        .into_iter()
        .zip(SAFE.into_iter().zip(SAME_KIND))
    {
        for (b, (safe, same_kind)) in types(CODES)
            .into_iter()
            .zip(safe.chars().zip(same_kind.chars()))
        {
            assert_eq!(can_cast(a, b, Casting::Safe), safe == 'x', "{a} {b}");
            assert_eq!(
                can_cast(a, b, Casting::SameKind),
                same_kind == 'x',
                "{a} {b}"
            );
            assert_eq!(can_cast(a, b, Casting::No), a == b);
            assert!(can_cast(a, b, Casting::Unsafe));
        }
    }
}

#[test]
fn mx_mode_never_widens_a_float_for_an_integer() {
    for a in DType::ALL {
        for b in DType::ALL {
            let both = promote(a, b, Promotion::Mx);
            assert_eq!(both, promote(b, a, Promotion::Mx));
            if a.kind() <= Kind::Integer && b.is_inexact() {
                assert_eq!(both, b);
            } else if a.kind() <= Kind::Integer && b.kind() <= Kind::Integer {
                let numpy = promote(a, b, Promotion::NumPy);
                assert_eq!(
                    both,
                    if numpy.is_float() { DType::F32 } else { numpy },
                    "{a} {b}"
                );
            } else if a.is_inexact() && b.is_inexact() {
                assert_eq!(both, promote(a, b, Promotion::NumPy), "{a} {b}");
            }
        }
    }
}

#[test]
fn bfloat16_promotes_by_its_digits() {
    for mode in [Promotion::Mx, Promotion::NumPy] {
        assert_eq!(promote(DType::BF16, DType::F16, mode), DType::F32);
        assert_eq!(promote(DType::BF16, DType::F32, mode), DType::F32);
        assert_eq!(promote(DType::BF16, DType::U8, mode), DType::BF16);
        assert_eq!(promote(DType::BF16, DType::C64, mode), DType::C64);
        assert_eq!(with_weak(DType::BF16, Kind::Float, mode), DType::BF16);
        assert_eq!(with_weak(DType::BF16, Kind::Complex, mode), DType::C64);
    }
    assert_eq!(
        promote(DType::BF16, DType::I16, Promotion::NumPy),
        DType::F32
    );
    assert_eq!(
        promote(DType::BF16, DType::I32, Promotion::NumPy),
        DType::F64
    );
    assert_eq!(promote(DType::BF16, DType::I64, Promotion::Mx), DType::BF16);
    assert!(!can_cast(DType::F16, DType::BF16, Casting::Safe));
    assert!(can_cast(DType::F16, DType::BF16, Casting::SameKind));
}

#[test]
fn scalars_alone_have_the_default_types() {
    let weak = |kind, mode| result_type(&[Operand::Weak(Kind::Bool), Operand::Weak(kind)], mode);
    assert_eq!(weak(Kind::Bool, Promotion::Mx), DType::Bool);
    assert_eq!(weak(Kind::Integer, Promotion::Mx), DType::I64);
    assert_eq!(weak(Kind::Float, Promotion::Mx), DType::F32);
    assert_eq!(weak(Kind::Complex, Promotion::Mx), DType::C64);
    assert_eq!(weak(Kind::Float, Promotion::NumPy), DType::F64);
    assert_eq!(weak(Kind::Complex, Promotion::NumPy), DType::C128);
    assert_eq!(
        with_weak(DType::I64, Kind::Float, Promotion::Mx),
        DType::F32
    );
    assert_eq!(
        with_weak(DType::I8, Kind::Complex, Promotion::Mx),
        DType::C64
    );
}
