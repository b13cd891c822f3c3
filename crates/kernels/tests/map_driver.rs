//! The N-d driver, casts and copies on random layouts, compared with element-by-element loops.

use mxnet_kernels::map::{self, InnerLoops, Operand};
use mxnet_kernels::{Elem, Scoped, Serial, copy};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
}

/// A buffer with one strided view into it.
struct View {
    bytes: Vec<u64>,
    offset: isize,
    strides: Vec<isize>,
    elem: Elem,
}

impl View {
    /// A random view of `shape`: any axis order, gaps, negative strides; for inputs also broadcast axes.
    fn random(rng: &mut Rng, shape: &[usize], elem: Elem, is_out: bool) -> View {
        let size = elem.size() as isize;
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if rng.below(3) == 0 {
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i + 1));
            }
        }
        let gaps = rng.below(3) == 0;
        let mut strides = vec![0; shape.len()];
        let (mut step, mut offset) = (size, 0);
        for &axis in order.iter().rev() {
            if !is_out && rng.below(5) == 0 {
                continue;
            }
            let gap = if gaps { 1 + rng.below(2) as isize } else { 1 };
            strides[axis] = step * gap;
            step *= gap * shape[axis].max(1) as isize;
            if rng.below(6) == 0 {
                offset += strides[axis] * (shape[axis].max(1) as isize - 1);
                strides[axis] = -strides[axis];
            }
        }
        View {
            bytes: vec![0; step as usize / 8 + 3],
            offset,
            strides,
            elem,
        }
    }
    fn ptr(&mut self) -> *mut u8 {
        // SAFETY: the offset lies inside the buffer.
        unsafe { self.bytes.as_mut_ptr().cast::<u8>().offset(self.offset) }
    }
    fn at(&mut self, index: &[usize]) -> *mut u8 {
        let at: isize = index
            .iter()
            .zip(&self.strides)
            .map(|(&i, &s)| i as isize * s)
            .sum();
        // SAFETY: an index inside the shape.
        unsafe { self.ptr().offset(at) }
    }
    fn operand(&mut self) -> Operand<'_> {
        Operand {
            ptr: self.ptr(),
            elem: self.elem,
            strides: &self.strides,
        }
    }
    fn get(&mut self, index: &[usize]) -> f64 {
        let p = self.at(index);
        // SAFETY: `p` points at an element of this type.
        unsafe {
            match self.elem {
                Elem::Bool | Elem::U8 => f64::from(*p),
                Elem::I8 => f64::from(*p.cast::<i8>()),
                Elem::I16 => f64::from(*p.cast::<i16>()),
                Elem::U16 => f64::from(*p.cast::<u16>()),
                Elem::I32 => f64::from(*p.cast::<i32>()),
                Elem::U32 => f64::from(*p.cast::<u32>()),
                Elem::I64 => *p.cast::<i64>() as f64,
                Elem::U64 => *p.cast::<u64>() as f64,
                Elem::F16 => half::f16::from_bits(*p.cast()).to_f64(),
                Elem::BF16 => half::bf16::from_bits(*p.cast()).to_f64(),
                Elem::F32 | Elem::C64 => f64::from(*p.cast::<f32>()),
                Elem::F64 | Elem::C128 => *p.cast::<f64>(),
            }
        }
    }
    fn set(&mut self, index: &[usize], value: f64) {
        let p = self.at(index);
        // SAFETY: `p` points at an element of this type.
        unsafe {
            match self.elem {
                Elem::Bool => *p = u8::from(value != 0.0),
                Elem::U8 => *p = value as u8,
                Elem::I8 => *p.cast::<i8>() = value as i8,
                Elem::I16 => *p.cast::<i16>() = value as i16,
                Elem::U16 => *p.cast::<u16>() = value as u16,
                Elem::I32 => *p.cast::<i32>() = value as i32,
                Elem::U32 => *p.cast::<u32>() = value as u32,
                Elem::I64 => *p.cast::<i64>() = value as i64,
                Elem::U64 => *p.cast::<u64>() = value as u64,
                Elem::F16 => *p.cast() = half::f16::from_f64(value).to_bits(),
                Elem::BF16 => *p.cast() = half::bf16::from_f64(value).to_bits(),
                Elem::F32 => *p.cast() = value as f32,
                Elem::F64 => *p.cast() = value,
                Elem::C64 => *p.cast() = [value as f32, 0.0],
                Elem::C128 => *p.cast() = [value, 0.0],
            }
        }
    }
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let len: usize = shape.iter().product();
    (0..len)
        .map(|mut flat| {
            let mut index = vec![0; shape.len()];
            for (slot, &n) in index.iter_mut().zip(shape).rev() {
                *slot = flat % n;
                flat /= n;
            }
            index
        })
        .collect()
}

fn random_shape(rng: &mut Rng, big: bool) -> Vec<usize> {
    let ndim = rng.below(5);
    let choices: &[usize] = if big {
        &[1, 2, 3, 7, 70, 130, 1100]
    } else {
        &[0, 1, 2, 3, 5, 9, 17, 40]
    };
    let mut len = 1;
    (0..ndim)
        .map(|_| {
            let n = choices[rng.below(choices.len())];
            let n = if len * n > 150_000 { 2 } else { n };
            len *= n.max(1);
            n
        })
        .collect()
}

fn check_binary(
    rng: &mut Rng,
    rows: &'static InnerLoops,
    compute: Elem,
    elems: [Elem; 3],
    shape: &[usize],
    f: fn(f64, f64) -> f64,
) {
    let mut y = View::random(rng, shape, elems[0], true);
    let mut a = View::random(rng, shape, elems[1], false);
    let mut b = View::random(rng, shape, elems[2], false);
    let all = indices(shape);
    for index in &all {
        // Small integers are exact in every element type, and so are their sums and products.
        a.set(index, rng.below(6) as f64);
        b.set(index, rng.below(6) as f64);
    }
    let threads = Scoped(1 + rng.below(2));
    let (out, ins) = ([y.operand()], [a.operand(), b.operand()]);
    // SAFETY: views of `shape` into live buffers, the output's elements distinct.
    unsafe { map::run(&threads, rows, compute, shape, &out, &ins, &[]) };
    for index in &all {
        let want = f(a.get(index), b.get(index));
        let want = if elems[0] == Elem::Bool {
            f64::from(u8::from(want != 0.0))
        } else {
            want
        };
        assert_eq!(
            y.get(index),
            want,
            "{} {elems:?} computed in {compute:?} at {index:?} of {shape:?}",
            rows.name
        );
    }
}

#[test]
fn layouts_and_element_types_do_not_change_results() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let computes = [
        Elem::I32,
        Elem::I64,
        Elem::F32,
        Elem::F64,
        Elem::C64,
        Elem::C128,
        Elem::U8,
    ];
    for round in 0..900 {
        let shape = random_shape(&mut rng, round % 30 == 0);
        let compute = computes[rng.below(computes.len())];
        let mut elems = [compute; 3];
        for e in &mut elems {
            if rng.below(3) == 0 {
                *e = Elem::ALL[rng.below(Elem::COUNT)];
            }
        }
        check_binary(&mut rng, &map::ADD, compute, elems, &shape, |a, b| a + b);
        check_binary(&mut rng, &map::MULTIPLY, compute, elems, &shape, |a, b| {
            a * b
        });
    }
}

/// A view with its axes in memory order `order`, the last one innermost; the axis `backwards` has a negative stride.
fn laid_out(shape: &[usize], order: &[usize], backwards: Option<usize>, elem: Elem) -> View {
    let mut strides = vec![0; shape.len()];
    let mut step = elem.size() as isize;
    for &axis in order.iter().rev() {
        strides[axis] = step;
        step *= shape[axis] as isize;
    }
    let mut offset = 0;
    if let Some(axis) = backwards {
        offset = strides[axis] * (shape[axis] as isize - 1);
        strides[axis] = -strides[axis];
    }
    View {
        bytes: vec![0; step as usize / 8 + 3],
        offset,
        strides,
        elem,
    }
}

#[test]
fn operands_in_transposed_order_are_tiled() {
    let (shape, along, across) = ([3, 37, 301], [0, 1, 2], [0, 2, 1]);
    for elem in [Elem::U8, Elem::I16, Elem::F32, Elem::F64, Elem::C128] {
        for (first, second, backwards) in [
            (across, along, None),
            (along, across, Some(1)),
            (across, across, Some(1)),
            (across, across, Some(2)),
            ([2, 1, 0], along, None),
        ] {
            for threads in [1, 3] {
                let mut y = laid_out(&shape, &along, None, elem);
                let mut a = laid_out(&shape, &first, backwards, elem);
                let mut b = laid_out(&shape, &second, None, elem);
                for index in &indices(&shape) {
                    a.set(
                        index,
                        ((index[0] + 3 * index[1] + 5 * index[2]) % 101) as f64,
                    );
                    b.set(
                        index,
                        ((index[0] + 7 * index[1] + 2 * index[2]) % 97) as f64,
                    );
                }
                let (out, ins) = ([y.operand()], [a.operand(), b.operand()]);
                // SAFETY: views of `shape` into live buffers, the output's elements distinct.
                unsafe { map::run(&Scoped(threads), &map::ADD, elem, &shape, &out, &ins, &[]) };
                for index in &indices(&shape) {
                    let want = a.get(index) + b.get(index);
                    assert_eq!(
                        y.get(index),
                        want,
                        "{elem:?} {first:?} {second:?} at {index:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_output_may_be_its_input() {
    for n in [1usize, 5, 100, 5000] {
        let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let y: Vec<f32> = (0..n).map(|i| 2.0 * i as f32).collect();
        let p = x.as_mut_ptr().cast::<u8>();
        // SAFETY: n elements each; the output is the first input.
        unsafe {
            map::run_row(
                &map::ADD,
                Elem::F32,
                n,
                &[p, p, y.as_ptr() as *mut u8],
                &[4, 4, 4],
                &[],
            )
        };
        assert!(x.iter().enumerate().all(|(i, &v)| v == 3.0 * i as f32));
        let strides = [4isize];
        let x_op = Operand {
            ptr: p,
            elem: Elem::F32,
            strides: &strides,
        };
        // SAFETY: as above.
        unsafe {
            map::run(
                &Serial,
                &map::ADD,
                Elem::F32,
                &[n],
                &[x_op],
                &[x_op, x_op],
                &[],
            )
        };
        assert!(x.iter().enumerate().all(|(i, &v)| v == 6.0 * i as f32));
    }
}

/// Runs an inner loop with output and inputs at these addresses.
///
/// # Safety
/// Same as for [`map::run_row`].
unsafe fn row_at(
    rows: &'static map::InnerLoops,
    elem: Elem,
    n: usize,
    ptrs: &[*mut u8],
    one: &[bool],
) {
    let size = elem.size() as isize;
    let strides: Vec<isize> = std::iter::once(size)
        .chain(one.iter().map(|&one| if one { 0 } else { size }))
        .collect();
    // SAFETY: guaranteed by the caller.
    unsafe { map::run_row(rows, elem, n, ptrs, &strides, &[]) };
}

#[test]
fn in_place_rows_match_out_of_place_rows() {
    let operators = [
        &map::ADD,
        &map::SUBTRACT,
        &map::MULTIPLY,
        &map::DIVIDE,
        &map::MINIMUM,
        &map::BITWISE_XOR,
        &map::NEGATIVE,
        &map::SQRT,
        &map::CLIP,
    ];
    let mut rng = Rng(5);
    for rows in operators {
        let ins = rows.ins as usize;
        assert!(rows.in_place > 0, "{} has loops for it", rows.name);
        for elem in Elem::ALL.into_iter().filter(|&elem| rows.supports(elem)) {
            for n in [1_usize, 17, 300, 1037] {
                // Which inputs are the output, and which of the others are single values.
                for (own, one) in
                    (1_usize..8).flat_map(|own| (0_usize..8).map(move |one| (own, one)))
                {
                    let taken = (1 << rows.in_place) - 1;
                    if own & !taken != 0 || own & one != 0 || one >> ins != 0 {
                        continue;
                    }
                    let shape = [n];
                    let mut views: Vec<View> = (0..=ins)
                        .map(|_| View {
                            bytes: vec![0; n * elem.size() / 8 + 2],
                            offset: 0,
                            strides: vec![elem.size() as isize],
                            elem,
                        })
                        .collect();
                    for index in indices(&shape) {
                        for view in &mut views {
                            view.set(&index, (1 + rng.below(7)) as f64);
                        }
                    }
                    let mut wanted = vec![0_u64; views[0].bytes.len()];
                    let at = |k: usize| own >> k & 1 == 1;
                    let one: Vec<bool> = (0..ins).map(|k| one >> k & 1 == 1).collect();
                    let mut ptrs = vec![wanted.as_mut_ptr().cast::<u8>()];
                    let owned = views[0].ptr();
                    for k in 0..ins {
                        ptrs.push(if at(k) { owned } else { views[k + 1].ptr() });
                    }
                    // SAFETY: buffers of n elements; first the output is separate, then it is the inputs that may alias it.
                    unsafe {
                        row_at(rows, elem, n, &ptrs, &one);
                        ptrs[0] = owned;
                        row_at(rows, elem, n, &ptrs, &one);
                    }
                    let len = n * elem.size() / 8;
                    assert_eq!(
                        views[0].bytes[..len],
                        wanted[..len],
                        "{} of {elem:?}, {n} elements, inputs {own:b} written, {one:?} one value",
                        rows.name
                    );
                }
            }
        }
    }
}

#[test]
fn one_value_of_another_type_fills_an_array() {
    let mut rng = Rng(11);
    for (from, to) in [
        (Elem::I64, Elem::F32),
        (Elem::F64, Elem::Bool),
        (Elem::I8, Elem::C128),
    ] {
        for _ in 0..20 {
            let shape = random_shape(&mut rng, false);
            let mut dst = View::random(&mut rng, &shape, to, true);
            let mut value = [3.0_f64, 0.0].map(f64::to_bits);
            if from != Elem::F64 {
                value = [3, 0];
            }
            // SAFETY: a view of `shape` into a live buffer; one value.
            unsafe {
                mxnet_kernels::cast::cast_nd(
                    &Serial,
                    &shape,
                    dst.ptr(),
                    to,
                    &dst.strides.clone(),
                    value.as_mut_ptr().cast(),
                    from,
                    &vec![0; shape.len()],
                );
            }
            let wanted = if to == Elem::Bool { 1.0 } else { 3.0 };
            assert!(indices(&shape).iter().all(|index| dst.get(index) == wanted));
        }
    }
}

#[test]
fn casts_agree_with_elementwise_casts() {
    let mut rng = Rng(77);
    for from in Elem::ALL {
        for to in Elem::ALL {
            for _ in 0..6 {
                let shape = random_shape(&mut rng, false);
                let mut dst = View::random(&mut rng, &shape, to, true);
                let mut src = View::random(&mut rng, &shape, from, false);
                let all = indices(&shape);
                for index in &all {
                    src.set(index, rng.below(100) as f64);
                }
                // SAFETY: views of `shape` into live buffers.
                unsafe {
                    mxnet_kernels::cast::cast_nd(
                        &Serial,
                        &shape,
                        dst.ptr(),
                        to,
                        &dst.strides.clone(),
                        src.ptr(),
                        from,
                        &src.strides.clone(),
                    );
                }
                for index in &all {
                    let want = src.get(index);
                    let want = if to == Elem::Bool {
                        f64::from(u8::from(want != 0.0))
                    } else {
                        want
                    };
                    assert_eq!(
                        dst.get(index),
                        want,
                        "{from:?} to {to:?} at {index:?} of {shape:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn copies_move_every_item_of_every_size() {
    let mut rng = Rng(5);
    for round in 0..600 {
        let shape = random_shape(&mut rng, round % 30 == 0);
        let elem = [Elem::U8, Elem::U16, Elem::U32, Elem::U64, Elem::C128][rng.below(5)];
        let mut dst = View::random(&mut rng, &shape, elem, true);
        let mut src = View::random(&mut rng, &shape, elem, false);
        let all = indices(&shape);
        for index in &all {
            src.set(index, rng.below(200) as f64);
        }
        let (size, threads) = (elem.size(), Scoped(2));
        // SAFETY: views of `shape` into live buffers.
        unsafe {
            copy::copy_nd(
                &threads,
                size,
                &shape,
                dst.ptr(),
                &dst.strides.clone(),
                src.ptr(),
                &src.strides.clone(),
            )
        };
        for index in &all {
            assert_eq!(
                dst.get(index),
                src.get(index),
                "{elem:?} at {index:?} of {shape:?}"
            );
        }
    }
}

#[test]
fn fill_and_zero_write_everything_and_no_more() {
    let mut x = vec![1u32; 3 * 700_000 + 2];
    let value = 9u32;
    let n = 3 * 700_000;
    // SAFETY: the middle of the buffer.
    unsafe {
        copy::fill_nd(
            &Scoped(2),
            4,
            &[3, 700_000],
            x.as_mut_ptr().add(1).cast(),
            &[2_800_000, 4],
            (&raw const value).cast(),
        );
    }
    assert!(x[1..=n].iter().all(|&v| v == 9) && x[0] == 1 && x[n + 1] == 1);
    // SAFETY: the middle of the buffer.
    unsafe { copy::zero(&Scoped(2), x.as_mut_ptr().add(1).cast(), 4 * n) };
    assert!(x[1..=n].iter().all(|&v| v == 0) && x[0] == 1 && x[n + 1] == 1);
}
