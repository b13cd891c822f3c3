//! The Rust API from the view of a user's program.

use mxnet::optimizer::{Optimizer, Sgd};
use mxnet::{
    Array, DType, Device, Ellipsis, Error, Given, NewAxis, Result, call, grad, load, random,
    record, save, stack, step, where_,
};

fn array(values: &[f32], shape: &[usize]) -> Array {
    Array::from_slice(values, shape).expect("the shape fits")
}

#[test]
fn operators_take_references_numbers_and_results() -> Result<()> {
    let (a, b) = (array(&[1.0, 2.0], &[2]), array(&[3.0, 5.0], &[2]));
    let cases: [(Result<Array>, [f32; 2]); 9] = [
        (&a + &b, [4.0, 7.0]),
        (&a - 1.0, [0.0, 1.0]),
        (1.0 - &a, [0.0, -1.0]),
        (2.0 / &a, [2.0, 1.0]),
        (&a * &b + &a, [4.0, 12.0]),
        (&a + &a * &b, [4.0, 12.0]),
        (-&a, [-1.0, -2.0]),
        (&b / &a, [3.0, 2.5]),
        (&a * 2.0 - &b, [-1.0, -1.0]),
    ];
    for (i, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found?.to_vec::<f32>()?, expected, "case {i}");
    }
    let wrong = &a + &array(&[1.0, 2.0, 3.0], &[3]);
    assert!(matches!(wrong, Err(Error::Shape(_))));
    let carried = wrong + &a;
    assert!(matches!(carried, Err(Error::Shape(_))));
    Ok(())
}

#[test]
fn indices_are_views_that_can_be_assigned() -> Result<()> {
    let x = array(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    assert_eq!(x.at((0, -1))?.item()?, 3.0);
    assert_eq!(x.at((.., NewAxis, 1..))?.shape(), [2, 1, 2]);
    x.at((.., ..1))?.assign(&array(&[9.0], &[1]))?;
    assert_eq!(x.to_vec::<f32>()?, [9.0, 2.0, 3.0, 9.0, 5.0, 6.0]);
    assert!(matches!(x.at(2), Err(Error::Index(_))));
    Ok(())
}

#[test]
fn gradients_have_gradients() -> Result<()> {
    let mut x = array(&[1.0, -2.0], &[2]);
    x.attach_grad()?;
    let second = record(|| {
        let first = grad(&[&x.powf(3.0)?.sum()?], &[&x])?;
        grad(&[&first[0].sum()?], &[&x])
    })?;
    assert_eq!(second[0].to_vec::<f32>()?, [6.0, -12.0]);
    let unrecorded = x.sum()?;
    assert!(matches!(unrecorded.backward(), Err(Error::Autograd(_))));
    Ok(())
}

#[test]
fn a_step_of_descent_is_what_the_formula_says() -> Result<()> {
    let mut x = array(&[1.0, 2.0], &[2]);
    x.attach_grad()?;
    let mut optimizer = Sgd::with_momentum(0.5, 0.5);
    for expected in [[0.0, 0.0], [-0.5, -1.0]] {
        record(|| (&x * &x)?.sum())?.backward()?;
        optimizer.step(&[&x])?;
        assert_eq!(x.to_vec::<f32>()?, expected);
    }
    let mut other = array(&[1.0], &[1]);
    other.attach_grad()?;
    assert!(matches!(optimizer.step(&[&other]), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn calls_by_name_report_what_is_wrong() {
    let x = array(&[1.0], &[1]);
    for (name, named, message) in [
        ("no_such", vec![], "there is no operator `no_such`"),
        ("add", vec![], "add() missing required argument: 'x2'"),
        (
            "exp",
            vec![("speed", 1_i64.into())],
            "exp() got an unexpected keyword argument 'speed'",
        ),
        (
            "sum",
            vec![("axis", "one".into())],
            "argument `axis` must be an integer",
        ),
    ] {
        let error = call(name, &[x.arg()], &named).expect_err(name);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn statistics_are_operators() -> Result<()> {
    let x = array(&[1.0, 2.0, 4.0, 8.0], &[4]);
    let holed = array(&[1.0, f32::NAN, 4.0, 7.0], &[4]);
    let weights = array(&[1.0, 1.0, 1.0, 5.0], &[4]);
    let first = |name: &str, x: &Array, named: &[(&str, Given)]| -> Result<Vec<f32>> {
        call(name, &[x.arg()], named)?[0].to_vec()
    };
    let halves = Given::Floats(&[0.0, 0.5]);
    for (name, operand, named, expected) in [
        (
            "average",
            &x,
            vec![("weights", weights.arg())],
            vec![47.0 / 8.0],
        ),
        ("cov", &x, vec![], vec![28.75 / 3.0]),
        ("corrcoef", &x, vec![], vec![1.0]),
        ("median", &x, vec![], vec![3.0]),
        ("quantile", &x, vec![("q", halves)], vec![1.0, 3.0]),
        ("trapezoid", &x, vec![], vec![10.5]),
        ("nanmean", &holed, vec![], vec![4.0]),
        ("nanvar", &holed, vec![], vec![6.0]),
        ("nanmedian", &holed, vec![], vec![4.0]),
        ("nanquantile", &holed, vec![("q", halves)], vec![1.0, 4.0]),
    ] {
        let found = first(name, operand, &named)?;
        let fits = found.len() == expected.len()
            && (found.iter().zip(&expected)).all(|(a, b)| (a - b).abs() <= 8.0 * f32::EPSILON);
        assert!(fits, "{name}: {found:?} instead of {expected:?}");
    }
    let histogram = call("histogram", &[x.arg()], &[("bins", 2_i64.into())])?;
    assert_eq!(histogram[0].to_vec::<i64>()?, [3, 1]);
    assert_eq!(histogram[1].to_vec::<f32>()?, [1.0, 4.5, 8.0]);
    let wrong = call(
        "average",
        &[x.arg()],
        &[("weights", array(&[1.0], &[1]).arg())],
    );
    assert!(matches!(wrong, Err(Error::DType(_))));
    Ok(())
}

#[test]
fn files_and_seeds_reproduce_arrays() -> Result<()> {
    random::seed(7);
    let x = random::uniform(-1.0, 1.0, &[3, 4], DType::F64)?;
    let path = std::env::temp_dir().join(format!("mxnet-{}.safetensors", std::process::id()));
    save(&path, [("x", &x)])?;
    let back = load(&path)?;
    std::fs::remove_file(&path).expect("it was written");
    assert_eq!(back[0].0, "x");
    assert_eq!(back[0].1.to_vec::<f64>()?, x.to_vec::<f64>()?);
    random::seed(7);
    let again = random::uniform(-1.0, 1.0, &[3, 4], DType::F64)?;
    assert_eq!(again.to_vec::<f64>()?, x.to_vec::<f64>()?);
    assert!(matches!(load("/no/such/file"), Err(Error::Io(_))));
    Ok(())
}

#[test]
fn operators_take_values_and_integers() -> Result<()> {
    let (a, b) = (array(&[1.0, 2.0], &[2]), array(&[3.0, 5.0], &[2]));
    let owned = a.copy()?;
    let cases: [(Result<Array>, [f32; 2]); 7] = [
        (a.exp()?.log()? * 2.0, [2.0, 4.0]),
        (a.copy()? + b.copy()?, [4.0, 7.0]),
        (&a - b.copy()?, [-2.0, -3.0]),
        (&a * 3, [3.0, 6.0]),
        (2 - a.copy()?, [1.0, 0.0]),
        ((&a * &b) + b.copy()?, [6.0, 15.0]),
        (-owned, [-1.0, -2.0]),
    ];
    for (i, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found?.to_vec::<f32>()?, expected, "case {i}");
    }
    Ok(())
}

#[test]
#[expect(
    clippy::reversed_empty_ranges,
    reason = "negative positions count from the end"
)]
fn every_form_of_range_is_an_index() -> Result<()> {
    let x = Array::arange(0.0, 6.0, 1.0, DType::I64)?;
    let cases: [(Result<Array>, &[i64]); 12] = [
        (x.at(1..3), &[1, 2]),
        (x.at(1..=3), &[1, 2, 3]),
        (x.at(..=-2), &[0, 1, 2, 3, 4]),
        (x.at(3..=-1), &[3, 4, 5]),
        (x.at(4_usize..), &[4, 5]),
        (x.at(..2_i64), &[0, 1]),
        (x.at(step(1..5, 2)), &[1, 3]),
        (x.at(step(.., -2)), &[5, 3, 1]),
        (x.at(step(4..1, -1)), &[4, 3, 2]),
        (x.at((Ellipsis, 5)), &[5]),
        (x.at(4..usize::MAX), &[4, 5]),
        (x.at(9..), &[]),
    ];
    for (i, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found?.to_vec::<i64>()?, expected, "case {i}");
    }
    let deep = Array::arange(0.0, 64.0, 1.0, DType::I64)?.reshape(&[2; 6])?;
    assert_eq!(deep.at((1, 0, 1, 0, 1, 1))?.to_scalar::<i64>()?, 0b10_1011);
    assert!(matches!(x.at(usize::MAX), Err(Error::Index(_))));
    assert!(matches!(x.to_scalar::<i64>(), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn reductions_and_orders_are_those_of_small_examples() -> Result<()> {
    let x = array(&[3.0, 1.0, 2.0, 6.0, 4.0, 5.0], &[2, 3]);
    assert_eq!(x.prod_over(&[1])?.to_vec::<f32>()?, [6.0, 120.0]);
    assert_eq!(x.var_over(&[0])?.to_vec::<f32>()?, [2.25, 2.25, 2.25]);
    assert_eq!(x.std()?.item()?, f64::from((17.5_f32 / 6.0).sqrt()));
    assert_eq!(x.sort(1)?.at(0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    assert_eq!(x.argsort(1)?.at(0)?.to_vec::<i64>()?, [1, 2, 0]);
    assert_eq!(x.argmin(0)?.to_vec::<i64>()?, [0, 0, 0]);
    assert_eq!(x.cumsum(1)?.at(0)?.to_vec::<f32>()?, [3.0, 4.0, 6.0]);
    let centred = (&x - x.mean_over(&[1])?.expand_dims(1)?)?;
    assert_eq!(centred.at(1)?.to_vec::<f32>()?, [1.0, -1.0, 0.0]);
    assert!(x.greater(0.5)?.all()?.to_scalar::<bool>()?);
    assert!(!x.greater(6.0)?.any()?.to_scalar::<bool>()?);
    assert!(matches!(x.sum_over(&[2]), Err(Error::Axis(_))));
    Ok(())
}

#[test]
fn arrays_are_made_of_numbers_and_of_arrays() -> Result<()> {
    assert_eq!(
        Array::full(&[2], 2.5, DType::F64)?.to_vec::<f64>()?,
        [2.5; 2]
    );
    let quarters = Array::linspace(0.0, 1.0, 5, DType::F32)?;
    assert_eq!(quarters.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    assert_eq!(Array::eye(2, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1]);
    let x = array(&[1.0, -2.0], &[2]);
    assert_eq!(
        (x.zeros_like()? + x.ones_like()?)?.to_vec::<f32>()?,
        [1.0; 2]
    );
    assert_eq!(
        stack(&[&x, &x], 1)?.to_vec::<f32>()?,
        [1.0, 1.0, -2.0, -2.0]
    );
    assert_eq!(x.broadcast_to(&[3, 2])?.at((2, 1))?.item()?, -2.0);
    assert_eq!(where_(&x.less(0.0)?, 0.0, &x)?.to_vec::<f32>()?, [1.0, 0.0]);
    assert_eq!(x.clip(-1.0, 0.5)?.to_vec::<f32>()?, [0.5, -1.0]);
    assert!(matches!(stack(&[], 0), Err(Error::Value(_))));
    assert!(matches!(
        x.masked(&Array::ones(&[3], DType::Bool)?),
        Err(Error::Shape(_))
    ));
    Ok(())
}

/// The texts are NumPy's (2.4): `str(x)`, and with a precision those of `floatmode="fixed"`.
#[test]
fn arrays_are_printed_as_numpy_prints_them() -> Result<()> {
    let floats = |values: &[f64]| Array::from_slice(values, &[values.len()]);
    let integers = |len: i64, shape: &[usize]| -> Result<Array> {
        call("arange", &[len.into()], &[])?[0].reshape(shape)
    };
    let thousands = (integers(30, &[30])? * 1000_i64)?;
    let single = |x: f64| Array::from_slice(&[x], &[]);
    let cases = [
        (
            array(&[1.0, 2.5, -0.125, 1e3, 0.0, 3.0], &[2, 3]),
            "[[ 1.00e+00  2.50e+00 -1.25e-01]\n [ 1.00e+03  0.00e+00  3.00e+00]]",
        ),
        (array(&[1e-5, 1.0, 1e3], &[3]), "[1.e-05 1.e+00 1.e+03]"),
        (array(&[0.1, 1e6], &[2]), "[1.e-01 1.e+06]"),
        (
            array(&[1.0 / 3.0, 2.0 / 3.0], &[2]),
            "[0.33333334 0.6666667 ]",
        ),
        (
            floats(&[1.0 / 3.0, 2.0 / 3.0, 123.0])?,
            "[  0.33333333   0.66666667 123.        ]",
        ),
        (
            floats(&[1.5, f64::NAN, f64::NEG_INFINITY])?,
            "[ 1.5  nan -inf]",
        ),
        (floats(&[f64::NAN, f64::NAN])?, "[nan nan]"),
        (Array::from_slice(&[-5_i64, 100, 7], &[3])?, "[ -5 100   7]"),
        (Array::from_slice(&[true, false], &[2])?, "[ True False]"),
        (
            array(&[1.5, -2.0], &[2]).astype(DType::C64)?,
            "[ 1.5+0.j -2. +0.j]",
        ),
        (
            integers(24, &[2, 3, 4])?,
            "[[[ 0  1  2  3]\n  [ 4  5  6  7]\n  [ 8  9 10 11]]\n\n [[12 13 14 15]\n  [16 17 18 19]\n  [20 21 22 23]]]",
        ),
        (
            thousands,
            "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n \
             12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n \
             24000 25000 26000 27000 28000 29000]",
        ),
        (
            integers(2400, &[4, 600])?,
            "[[   0    1    2 ...  597  598  599]\n [ 600  601  602 ... 1197 1198 1199]\n \
             [1200 1201 1202 ... 1797 1798 1799]\n [1800 1801 1802 ... 2397 2398 2399]]",
        ),
        (Array::zeros(&[0, 3], DType::F32)?, "[]"),
        (single(1.0)?, "1.0"),
        (single(1e16)?, "1e+16"),
        (single(-1.5e-5)?, "-1.5e-05"),
        (single(2000.0)?.astype(DType::F16)?, "2e+03"),
        (single(0.1)?.astype(DType::F16)?, "0.1"),
        (single(1.5)?.astype(DType::C128)?, "(1.5+0j)"),
    ];
    for (x, text) in cases {
        assert_eq!(x.to_string(), text);
    }
    let x = floats(&[1.0 / 3.0, 20.0])?;
    assert_eq!(format!("{x:.2}"), "[ 0.33 20.00]");
    assert_eq!(
        format!("{:.3}", floats(&[1.5e9, 1.0])?),
        "[1.500e+09 1.000e+00]"
    );
    assert_eq!(format!("{:.3}", single(0.5)?), "0.500");
    Ok(())
}

#[test]
fn an_array_without_values_prints_why() -> Result<()> {
    let traced = mxnet::core::Array::without_values(&[2], DType::F32, Device::cpu(0))?;
    let text = Array::from(traced).to_string();
    assert!(
        text.starts_with("Array(shape (2,), float32, cpu(0)): an array of shape (2,)"),
        "{text}"
    );
    Ok(())
}
