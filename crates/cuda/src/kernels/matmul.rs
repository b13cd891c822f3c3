//! Matrix products: `matmul`, `conjugated_dot` and fully connected layers, with a tiled kernel for every dtype (`tile.cuh`).
//!
//! A product with few tiles and many terms (k) is split along k; the partial sums are added in order. The splits depend only on the sizes, and so
//! does the result.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result, Tuple};
use mxnet_tensor::{DType, DeviceKind, Dims, Strides, broadcast_shapes};
use smallvec::SmallVec;

use super::operand::{Operand, bytes, c_type, for_each, source};
use crate::launch::{Arg, Grid, launch};

pub(super) const SUMS: &str = include_str!("../text/sums.cuh");
pub(super) const TILE: &str = include_str!("../text/tile.cuh");
const MATMUL: &str = include_str!("../text/matmul.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("matmul", kind, 0, |context| {
        let dtype = context.output(0).dtype();
        let (a, b) = (as_matrix(context, 0, dtype)?, as_matrix(context, 1, dtype)?);
        multiply(
            context,
            a,
            b,
            &Operand::of(context.output(0)),
            &Epilogue::default(),
        )
    })?;
    add("conjugated_dot", kind, 0, |context| {
        let dtype = context.output(0).dtype();
        let (a, b) = (as_matrix(context, 0, dtype)?, as_matrix(context, 1, dtype)?);
        let conjugated = Epilogue {
            conjugates_left: true,
            ..Epilogue::default()
        };
        multiply(context, a, b, &Operand::of(context.output(0)), &conjugated)
    })?;
    add("fully_connected", kind, 0, |context| affine(context, false))?;
    add("fully_connected_relu", kind, 0, |context| {
        affine(context, true)
    })
}

/// Operations on a product besides the sum.
#[derive(Default)]
pub(super) struct Epilogue {
    /// Address of dense elements, one per column, or 0.
    pub bias: u64,
    /// Whether ReLU is applied.
    pub relu: bool,
    /// Whether the left operand is conjugated.
    pub conjugates_left: bool,
}

/// Input `i` as `dtype`; a vector becomes a matrix with one row (input 0) or one column (input 1).
fn as_matrix<'a>(context: &KernelContext<'a>, i: usize, dtype: DType) -> Result<Operand<'a>> {
    let x = Operand::typed(context, i, dtype)?;
    let (&[n], &[stride]) = (&x.shape[..], &x.strides[..]) else {
        return Ok(x);
    };
    Ok(match i {
        0 => x.with(&[1, n], &[0, stride]),
        _ => x.with(&[n, 1], &[stride, 0]),
    })
}

fn affine(context: &KernelContext, relu: bool) -> Result<()> {
    let y = context.output(0);
    let dtype = y.dtype();
    let weight = Operand::typed(context, 1, dtype)?;
    let (hidden, k) = (weight.shape[0], weight.shape[1]);
    let rows = y.len().checked_div(hidden).unwrap_or(0);
    let x = Operand::typed(context, 0, dtype)?;
    let x = match x.layout()?.reshape(&[rows as isize, k as isize])? {
        Some(layout) => x.with(layout.shape(), layout.strides()),
        None => x
            .into_dense(context, dtype)?
            .with(&[rows, k], &[k as isize, 1]),
    };
    let bias = Operand::dense_or_none(context, 2, dtype)?;
    let epilogue = Epilogue {
        bias: bias.as_ref().map_or(0, |bias| bias.ptr),
        relu,
        conjugates_left: false,
    };
    let (down, along) = (weight.strides[0], weight.strides[1]);
    multiply(
        context,
        x,
        weight.with(&[k, hidden], &[along, down]),
        &Operand::of(y),
        &epilogue,
    )
}

/// Maximum number of batch axes after merging.
const BATCH: usize = 8;

#[repr(C)]
#[derive(Clone, Copy)]
struct Problem {
    m: i64,
    n: i64,
    k: i64,
    batches: i64,
    splits: i64,
    depth: i64,
    left_row: i64,
    left_term: i64,
    right_term: i64,
    right_column: i64,
    shape: [i64; BATCH],
    left_batch: [i64; BATCH],
    right_batch: [i64; BATCH],
    a: u64,
    b: u64,
    bias: u64,
    c: u64,
    axes: i64,
    c_row: i64,
    epilogue: i64,
}

/// `c = a @ b` for `a` (..., m, k) and `b` (..., k, n) with any strides; `c` is dense in C order. All have the same dtype.
pub(super) fn multiply<'a>(
    context: &KernelContext<'a>,
    a: Operand<'a>,
    b: Operand<'a>,
    c: &Operand<'a>,
    epilogue: &Epilogue,
) -> Result<()> {
    if c.is_empty() {
        return Ok(());
    }
    let (mut a, mut b) = (a, b);
    let (k, n) = (b.shape[b.shape.len() - 2], b.shape[b.shape.len() - 1]);
    // If one `b` serves the whole batch and the batch of `a` has a single stride, the batch is merged into the rows.
    if a.shape.len() > 2 && b.shape[..b.shape.len() - 2].iter().all(|&len| len == 1) {
        let rows = a.layout()?.reshape(&[(c.len() / n) as isize, k as isize])?;
        if let Some(rows) = rows {
            a = a.with(rows.shape(), rows.strides());
            let strides = Strides::from_slice(&b.strides[b.strides.len() - 2..]);
            b = b.with(&[k, n], &strides);
        }
    }
    let m = a.shape[a.shape.len() - 2];
    let batch = broadcast_shapes(&[&a.shape[..a.shape.len() - 2], &b.shape[..b.shape.len() - 2]])?;
    let batches: usize = batch.iter().product();
    if batches * m * n != c.len() {
        let problem = format!(
            "result of shape {} for {batches} products of shape {}",
            Tuple(&c.shape),
            Tuple(&[m, n])
        );
        return Err(Error::internal("matmul", problem));
    }
    let spread = |x: Operand<'a>| -> Result<Operand<'a>> {
        let shape: Dims = batch
            .iter()
            .chain(&x.shape[x.shape.len() - 2..])
            .copied()
            .collect();
        let layout = x.layout()?.broadcast_to(&shape)?;
        Ok(x.with(layout.shape(), layout.strides()))
    };
    (a, b) = (spread(a)?, spread(b)?);
    let axes = batch.len();
    let mut joined = joined(&batch, &a.strides[..axes], &b.strides[..axes]);
    if joined.len() > BATCH {
        let dtype = c.dtype;
        (a, b) = (a.into_dense(context, dtype)?, b.into_dense(context, dtype)?);
        joined = self::joined(&batch, &a.strides[..axes], &b.strides[..axes]);
    }
    let mut problem = Problem {
        m: m as i64,
        n: n as i64,
        k: k as i64,
        batches: batches as i64,
        splits: 1,
        depth: 0,
        left_row: a.strides[axes] as i64,
        left_term: a.strides[axes + 1] as i64,
        right_term: b.strides[axes] as i64,
        right_column: b.strides[axes + 1] as i64,
        shape: [1; BATCH],
        left_batch: [0; BATCH],
        right_batch: [0; BATCH],
        a: a.ptr,
        b: b.ptr,
        bias: epilogue.bias,
        c: c.ptr,
        axes: joined.len() as i64,
        c_row: n as i64,
        epilogue: i64::from(epilogue.bias != 0) | i64::from(epilogue.relu) << 1,
    };
    for (i, &(len, left, right)) in joined.iter().enumerate() {
        (
            problem.shape[i],
            problem.left_batch[i],
            problem.right_batch[i],
        ) = (len, left, right);
    }
    start(
        context,
        c.dtype,
        &mut problem,
        epilogue.conjugates_left && c.dtype.is_complex(),
    )
}

/// Chooses the tiles and splits of a product, and launches it.
fn start(
    context: &KernelContext,
    dtype: DType,
    problem: &mut Problem,
    conjugates: bool,
) -> Result<()> {
    let sizes = [problem.batches, problem.m, problem.n, problem.k].map(|x| x as usize);
    let tiles = Tiles::of(dtype, sizes);
    (problem.splits, problem.depth) = (tiles.splits as i64, tiles.depth as i64);
    let size = tiles.size;
    let name = if conjugates { "conjugated" } else { "matmul" };
    let key = |part| key(name, dtype, size, part);
    run(context, &tiles, dtype, bytes(problem), &key, &|part| {
        text(dtype, size, conjugates, part)
    })
}

/// An operand of [`product`]: its address, and the strides of rows and columns in elements.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub at: u64,
    pub row: usize,
    pub column: usize,
}

/// `c = a @ b`, or `c += a @ b` if `adds`, for kernels that are composed of products. The columns of `c` are contiguous.
pub(super) fn product(
    context: &KernelContext,
    dtype: DType,
    [m, n, k]: [usize; 3],
    [a, b, c]: [Matrix; 3],
    adds: bool,
) -> Result<()> {
    if m * n == 0 {
        return Ok(());
    }
    let mut problem = Problem {
        m: m as i64,
        n: n as i64,
        k: k as i64,
        batches: 1,
        splits: 1,
        depth: 0,
        left_row: a.row as i64,
        left_term: a.column as i64,
        right_term: b.row as i64,
        right_column: b.column as i64,
        shape: [1; BATCH],
        left_batch: [0; BATCH],
        right_batch: [0; BATCH],
        a: a.at,
        b: b.at,
        bias: 0,
        c: c.at,
        axes: 0,
        c_row: c.row as i64,
        epilogue: i64::from(adds) << 2,
    };
    start(context, dtype, &mut problem, false)
}

/// Batch axes after dropping those of length 1 and merging contiguous ones: length and strides of the two operands.
fn joined(shape: &[usize], left: &[isize], right: &[isize]) -> SmallVec<[(i64, i64, i64); 8]> {
    let mut axes = SmallVec::<[(i64, i64, i64); 8]>::new();
    for (i, &len) in shape.iter().enumerate() {
        let (len, left, right) = (len as i64, left[i] as i64, right[i] as i64);
        match axes.last_mut() {
            _ if len == 1 => {}
            Some(last) if last.1 == len * left && last.2 == len * right => {
                *last = (last.0 * len, left, right);
            }
            _ => axes.push((len, left, right)),
        }
    }
    axes
}

/// Tiling of a product.
pub(super) struct Tiles {
    /// Rows and columns of a tile, and terms read at once.
    pub size: [usize; 3],
    /// Terms per split.
    pub depth: usize,
    pub splits: usize,
    tiles: usize,
    elements: usize,
}

/// Rows, columns and terms of the tile sizes for the sums of a dtype: small, medium and large.
pub(super) fn sizes(dtype: DType) -> &'static [[usize; 3]] {
    match dtype {
        DType::C128 => &[[16, 16, 16], [64, 64, 8]],
        DType::F64 | DType::C64 | DType::I64 | DType::U64 => &[[16, 16, 16], [64, 64, 16]],
        _ => &[[16, 16, 16], [64, 64, 16], [128, 128, 16]],
    }
}

impl Tiles {
    /// The tiling of `batches` products with these numbers of rows, columns and terms.
    pub fn of(dtype: DType, [batches, m, n, k]: [usize; 4]) -> Tiles {
        let count = |size: [usize; 3]| batches * m.div_ceil(size[0]) * n.div_ceil(size[1]);
        // The largest tiles that are mostly filled and numerous enough for all multiprocessors of a large GPU.
        let fits = |size: &&[usize; 3]| {
            size[0] == 16 || (2 * m > size[0] && 2 * n > size[1] && count(**size) >= 128)
        };
        let size = *sizes(dtype)
            .iter()
            .rev()
            .find(fits)
            .unwrap_or(&[16, 16, 16]);
        let tiles = count(size);
        // As many splits as fill a GPU, with at least 256 terms each.
        let splits = (256 / tiles.max(1)).min(k / 256).max(1);
        let depth = k.div_ceil(splits).next_multiple_of(size[2]).max(size[2]);
        let splits = k.div_ceil(depth).max(1);
        Tiles {
            size,
            depth,
            splits,
            tiles,
            elements: batches * m * n,
        }
    }
}

/// Which kernel of a product's source.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Tiles,
    Finish,
}

/// Launches the tiles of a product and, if it is split, the addition of the partial sums.
pub(super) fn run(
    context: &KernelContext,
    tiles: &Tiles,
    dtype: DType,
    problem: &[u8],
    key: &dyn Fn(Part) -> String,
    text: &dyn Fn(Part) -> String,
) -> Result<()> {
    let sum_bytes = match dtype {
        DType::F64 | DType::C64 | DType::I64 | DType::U64 => 8,
        DType::C128 => 16,
        _ => 4,
    };
    let partial = match tiles.splits {
        1 => None,
        splits => {
            let bytes = splits * tiles.elements * sum_bytes;
            Some(Operand::new(context, &[bytes], DType::U8)?)
        }
    };
    let args = [
        Arg::Bytes(problem),
        Arg::Pointer(partial.as_ref().map_or(0, |partial| partial.ptr)),
    ];
    let blocks = (tiles.tiles * tiles.splits).clamp(1, 1 << 30);
    let grid = Grid {
        blocks: [blocks as u32, 1, 1],
        threads: [256, 1, 1],
        shared_bytes: 0,
    };
    launch(
        context,
        &key(Part::Tiles),
        || text(Part::Tiles),
        grid,
        &args,
    )?;
    if partial.is_some() {
        let grid = for_each(tiles.elements);
        launch(
            context,
            &key(Part::Finish),
            || text(Part::Finish),
            grid,
            &args,
        )?;
    }
    Ok(())
}

fn key(name: &str, dtype: DType, size: [usize; 3], part: Part) -> String {
    match part {
        Part::Tiles => format!("{name}:{}:{}x{}", c_type(dtype), size[0], size[1]),
        Part::Finish => format!("{name}:{}:finish", c_type(dtype)),
    }
}

/// Definitions that precede a product's source.
pub(super) fn definitions(dtype: DType, size: [usize; 3], part: Part) -> String {
    let finish = if part == Part::Finish {
        "#define FINISH\n"
    } else {
        ""
    };
    let [rows, columns, terms] = size;
    let name = c_type(dtype);
    format!(
        "typedef {name} T;\n#define TILE_M {rows}\n#define TILE_N {columns}\n#define DEPTH {terms}\n{finish}"
    )
}

fn text(dtype: DType, size: [usize; 3], conjugates: bool, part: Part) -> String {
    let left = if conjugates { "conjugate(x)" } else { "x" };
    let left = format!("MX_FN A left_of(A x) {{ return {left}; }}");
    source(&[&definitions(dtype, size, part), SUMS, &left, MATMUL, TILE])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in DType::ALL {
        for (name, conjugates) in [("matmul", false), ("conjugated", true)] {
            if conjugates && !dtype.is_complex() {
                continue;
            }
            for &size in sizes(dtype) {
                all.push((
                    key(name, dtype, size, Part::Tiles),
                    text(dtype, size, conjugates, Part::Tiles),
                ));
            }
            let part = Part::Finish;
            all.push((
                key(name, dtype, [16; 3], part),
                text(dtype, [16; 3], conjugates, part),
            ));
        }
    }
}
