//! Orders of axes in memory.

use mxnet_core::memory_order::axes_as;
use mxnet_tensor::{Dims, Layout};

fn order(layouts: &[&Layout]) -> Option<Dims> {
    axes_as(layouts, layouts[0].ndim())
}

#[test]
fn the_slowest_axis_comes_first() {
    let c = Layout::contiguous(&[2, 3, 4]);
    let f = Layout::fortran(&[2, 3, 4]);
    assert_eq!(order(&[&c]), None);
    assert_eq!(order(&[&f]).as_deref(), Some(&[2, 1, 0][..]));
    assert_eq!(order(&[&f, &f]).as_deref(), Some(&[2, 1, 0][..]));
    // An operand in C order decides.
    assert_eq!(order(&[&f, &c]), None);
}

#[test]
fn axes_of_length_one_keep_their_position() {
    let first = Layout::fortran(&[1, 3, 4]);
    assert_eq!(order(&[&first]).as_deref(), Some(&[0, 2, 1][..]));
    let middle = Layout::fortran(&[3, 1, 4]);
    assert_eq!(order(&[&middle]).as_deref(), Some(&[2, 0, 1][..]));
    let last = Layout::fortran(&[3, 4, 1]);
    assert_eq!(order(&[&last]).as_deref(), Some(&[1, 0, 2][..]));
}
