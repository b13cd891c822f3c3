//! Numbers of graphs that depend on sizes.

use mxnet_graph::dynamic::number::{Number, fit_real, fit_whole};

#[test]
fn values_are_fitted_at_two_sizes_and_checked_at_the_third() {
    let symbols = [[4, 5, 9], [7, 9, 12]];
    for (values, sizes, expected) in [
        ([9, 11, 19], [100, 0], Some(201)),
        ([28, 45, 108], [2, 3], Some(6)),
        ([11, 14, 21], [2, 3], Some(5)),
        ([16, 25, 81], [3, 0], Some(9)),
        ([2, 2, 4], [3, 0], None),
    ] {
        let found = fit_whole(values, &symbols);
        let found = found.and_then(|x| x.at(&sizes.map(Some)));
        assert_eq!(found, expected, "{values:?}");
    }
}

#[test]
fn products_are_preferred_to_lines_through_their_values() {
    // 9 * 2, 8 * 3, 7 * 6; also 6 w + 6.
    let found = fit_whole([18, 24, 42], &[[9, 8, 7], [2, 3, 6]]);
    let found = found.and_then(|x| x.at(&[Some(10), Some(4)]));
    assert_eq!(found, Some(40));
}

#[test]
fn quotients_are_exact() {
    let symbols = [[4, 5, 9]];
    let values = symbols[0].map(|n| 1.0 / (3 * n) as f64);
    let Some(Number::Quotient(constant, below)) = fit_real(values, &symbols) else {
        panic!("no quotient was found");
    };
    assert_eq!((constant, below.at(&[Some(7)])), (1.0, Some(21)));
    assert_eq!(fit_real([0.5, 0.25, 0.7], &symbols), None);
}
