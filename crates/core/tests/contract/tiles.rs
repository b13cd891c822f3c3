//! Chains of operators, tile by tile.

use mxnet_core::tiles::merged;
use mxnet_tensor::Strides;

#[test]
fn axes_that_are_contiguous_in_all_arrays_are_merged() {
    let strides = |s: &[isize]| Strides::from_slice(s);
    let dense = [strides(&[48, 16, 4]), strides(&[48, 16, 4])];
    let axes = merged(&[2, 3, 4], &dense);
    assert_eq!((axes.len(), axes[0].len), (1, 24));
    let with_row = [strides(&[48, 16, 4]), strides(&[0, 0, 4])];
    let axes = merged(&[2, 3, 4], &with_row);
    assert_eq!(axes.iter().map(|a| a.len).collect::<Vec<_>>(), [6, 4]);
}
