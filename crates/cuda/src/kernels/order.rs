//! Sorting, selecting, searching and counting of rows along the last axis, in NumPy's order (`sort.cuh`).

use mxnet_core::Result;
use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_tensor::{DType, DeviceKind, Operand as Of, Scalar, promotion, result_type};

use super::operand::{self, Operand, WALK, c_type, for_each, report, source};
use crate::launch::{Arg, Grid, launch};

const SORT: &str = include_str!("../text/sort.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("sort_rows", kind, 0, |context| {
        let x = Operand::dense(context, 0, context.input(0).dtype())?;
        sort(
            context,
            &x,
            row_len(&x),
            direction(context),
            context.output(0).data_ptr() as u64,
            0,
        )
    })?;
    add("partition_rows", kind, 0, |context| {
        // A sorted row is partitioned at every position.
        let x = Operand::dense(context, 0, context.input(0).dtype())?;
        sort(
            context,
            &x,
            row_len(&x),
            Direction::Ascending,
            context.output(0).data_ptr() as u64,
            0,
        )
    })?;
    add("argsort_rows", kind, 0, |context| {
        let x = Operand::dense(context, 0, context.input(0).dtype())?;
        sort(
            context,
            &x,
            row_len(&x),
            direction(context),
            0,
            context.output(0).data_ptr() as u64,
        )
    })?;
    add("argpartition_rows", kind, 0, |context| {
        let x = Operand::dense(context, 0, context.input(0).dtype())?;
        sort(
            context,
            &x,
            row_len(&x),
            Direction::Ascending,
            0,
            context.output(0).data_ptr() as u64,
        )
    })?;
    add("topk_rows", kind, 0, |context| {
        let x = Operand::dense(context, 0, context.input(0).dtype())?;
        if context.output(0).is_empty() {
            return Ok(());
        }
        let (n, k) = (row_len(&x), context.int("k") as usize);
        let order = argsorted(context, &x, n, direction(context))?;
        let rows = x.len() / n;
        let first = Operand::at(order.ptr, &[rows, k], &[n as isize, 1], DType::I64);
        operand::copy(
            context,
            &first,
            &Operand::of(context.output(0)).with(&[rows, k], &[k as isize, 1]),
        )
    })?;
    add("topk_mask", kind, 0, |context| {
        let (x, out) = (
            Operand::dense(context, 0, context.input(0).dtype())?,
            Operand::of(context.output(0)),
        );
        operand::fill(context, &out, Scalar::Bool(false))?;
        let (n, k) = (row_len(&x), context.int("k") as usize);
        if x.is_empty() || k == 0 {
            return Ok(());
        }
        let order = argsorted(context, &x, n, direction(context))?;
        let rows = x.len() / n;
        let args = [
            Arg::Pointer(order.ptr),
            Arg::Pointer(out.ptr),
            Arg::I64(rows as i64),
            Arg::I64(n as i64),
            Arg::I64(k as i64),
        ];
        run(context, Function::Mask, DType::Bool, rows * k, &args)
    })?;
    add("lexsort_rows", kind, 0, lexsort)?;
    add("select_rows", kind, 0, |context| select(context, false))?;
    add("argselect_rows", kind, 0, |context| select(context, true))?;
    add("select_each", kind, 0, |context| select(context, false))?;
    add("argselect_each", kind, 0, |context| select(context, true))?;
    add("search_sorted", kind, 0, |context| {
        let dtype = context.input(0).dtype();
        let (sorted, values) = (
            Operand::dense(context, 0, dtype)?,
            Operand::dense(context, 1, dtype)?,
        );
        let args = [
            Arg::Pointer(sorted.ptr),
            Arg::I64(sorted.len() as i64),
            Arg::Pointer(values.ptr),
            Arg::Output(0),
            Arg::I64(values.len() as i64),
            Arg::I64(i64::from(context.bool("right"))),
        ];
        run(context, Function::Search, dtype, values.len(), &args)
    })?;
    add("contains", kind, 0, |context| {
        let dtype = context.input(0).dtype();
        let (members, values) = (
            Operand::dense(context, 0, dtype)?,
            Operand::dense(context, 1, dtype)?,
        );
        let n = members.len();
        let sorted = Operand::new(context, &[n], dtype)?;
        sort(context, &members, n, Direction::Ascending, sorted.ptr, 0)?;
        let args = [
            Arg::Pointer(sorted.ptr),
            Arg::I64(n as i64),
            Arg::Pointer(values.ptr),
            Arg::Output(0),
            Arg::I64(values.len() as i64),
        ];
        run(context, Function::Contains, dtype, values.len(), &args)
    })?;
    add("bin_numbers", kind, 0, |context| bins(context, false))?;
    add("bin_counts", kind, 0, |context| bins(context, true))
}

/// Sort direction. NaN counts as the largest value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

fn direction(context: &KernelContext) -> Direction {
    if context.bool("descending") {
        Direction::Descending
    } else {
        Direction::Ascending
    }
}

fn row_len(x: &Operand) -> usize {
    x.shape.last().copied().unwrap_or(1)
}

/// The int64 positions that sort the dense rows of `n` elements.
pub(super) fn argsorted<'a>(
    context: &KernelContext<'a>,
    x: &Operand,
    n: usize,
    direction: Direction,
) -> Result<Operand<'a>> {
    let order = Operand::new(context, &x.shape, DType::I64)?;
    sort(context, x, n, direction, 0, order.ptr)?;
    Ok(order)
}

/// Sorts dense rows of `n` elements: writes elements to address `keys` and positions to `positions`, unless these are 0.
fn sort(
    context: &KernelContext,
    x: &Operand,
    n: usize,
    direction: Direction,
    keys: u64,
    positions: u64,
) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let (rows, len) = (x.len() / n, x.len());
    let tile = TILES
        .into_iter()
        .find(|&tile| tile >= n)
        .unwrap_or(LARGEST_TILE);
    let merges = n.div_ceil(tile).next_power_of_two().ilog2();
    // Runs alternate between two buffers; the last merge writes to the caller's.
    let allocate = |is_there: bool| -> Result<Option<Operand>> {
        is_there
            .then(|| Operand::new(context, &[len], x.dtype))
            .transpose()
    };
    let other = |is_there: bool| -> Result<Option<Operand>> {
        is_there
            .then(|| Operand::new(context, &[len], DType::I64))
            .transpose()
    };
    let moves = positions != 0;
    let key_places = [allocate(merges > 0)?, allocate(merges > 1)?];
    let position_places = [other(merges > 0 && moves)?, other(merges > 1 && moves)?];
    let at = |operands_there: &[Option<Operand>; 2], step: u32| {
        operands_there[step as usize % 2]
            .as_ref()
            .map_or(0, |x| x.ptr)
    };
    let target = |step: u32| match step == merges {
        true => (keys, positions),
        false => (at(&key_places, step), at(&position_places, step)),
    };
    let (to_keys, to_positions) = target(0);
    let tiles = rows * n.div_ceil(tile);
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(to_keys),
        Arg::Pointer(to_positions),
        Arg::I64(rows as i64),
        Arg::I64(n as i64),
    ];
    let grid = Grid {
        blocks: [tiles.clamp(1, 1 << 20) as u32, 1, 1],
        threads: [tile as u32 / 2, 1, 1],
        shared_bytes: 0,
    };
    let sorts = Function::Tile(tile, direction);
    launch(
        context,
        &sorts.key(x.dtype),
        || sorts.text(x.dtype),
        grid,
        &args,
    )?;
    let mut width = tile;
    for step in 1..=merges {
        let (from_keys, from_positions) = target(step - 1);
        let (to_keys, to_positions) = target(step);
        let args = [
            Arg::Pointer(from_keys),
            Arg::Pointer(from_positions),
            Arg::Pointer(to_keys),
            Arg::Pointer(to_positions),
            Arg::I64(rows as i64),
            Arg::I64(n as i64),
            Arg::I64(width as i64),
        ];
        run(context, Function::Merge(direction), x.dtype, len, &args)?;
        width *= 2;
    }
    Ok(())
}

/// Number of elements that one block sorts in shared memory.
const TILES: [usize; 3] = [32, 256, LARGEST_TILE];
const LARGEST_TILE: usize = 1024;

/// Sorts by each key in turn, with the primary key last.
fn lexsort(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    if out.is_empty() {
        return Ok(());
    }
    let mut order: Option<Operand> = None;
    for i in 0..context.inputs.len() {
        let key = Operand::dense(context, i, context.input(i).dtype())?;
        let n = row_len(&key);
        order = Some(match order {
            None => argsorted(context, &key, n, Direction::Ascending)?,
            Some(order) => {
                let ordered = picked(context, &key, &order)?;
                let again = argsorted(context, &ordered, n, Direction::Ascending)?;
                picked(context, &order, &again)?
            }
        });
    }
    match order {
        Some(order) => operand::copy(context, &order, &Operand::of(out)),
        None => Ok(()),
    }
}

/// Elements of dense rows at separate positions for each row.
pub(super) fn picked<'a>(
    context: &KernelContext<'a>,
    x: &Operand,
    at: &Operand,
) -> Result<Operand<'a>> {
    let to = Operand::new(context, &at.shape, x.dtype)?;
    pick(
        context,
        x,
        at,
        to.ptr,
        Ranks {
            count: row_len(at),
            is_each: true,
            spreads_nan: false,
        },
    )?;
    Ok(to)
}

struct Ranks {
    count: usize,
    is_each: bool,
    spreads_nan: bool,
}

fn pick(
    context: &KernelContext,
    sorted: &Operand,
    ranks: &Operand,
    out: u64,
    how: Ranks,
) -> Result<()> {
    let n = row_len(sorted);
    let rows = sorted.len() / n.max(1);
    let op = context.op.name;
    let faults = report(context, move |[size, at, _]| {
        super::index::outside(op, at, size)
    })?;
    let args = [
        Arg::Pointer(sorted.ptr),
        Arg::Pointer(ranks.ptr),
        Arg::Pointer(out),
        Arg::I64(rows as i64),
        Arg::I64(n as i64),
        Arg::I64(how.count as i64),
        Arg::I64(i64::from(how.is_each)),
        Arg::I64(i64::from(how.spreads_nan)),
        faults,
    ];
    run(
        context,
        Function::Pick,
        sorted.dtype,
        rows * how.count,
        &args,
    )
}

/// Elements of sorted rows, or their positions, at ranks, which are the same for all rows or separate for each.
fn select(context: &KernelContext, positions: bool) -> Result<()> {
    let out = context.output(0);
    if out.is_empty() {
        return Ok(());
    }
    let x = Operand::dense(context, 0, context.input(0).dtype())?;
    let n = row_len(&x);
    let sorted = match positions {
        true => argsorted(context, &x, n, Direction::Ascending)?,
        false => {
            let sorted = Operand::new(context, &x.shape, x.dtype)?;
            sort(context, &x, n, Direction::Ascending, sorted.ptr, 0)?;
            sorted
        }
    };
    let to = out.data_ptr() as u64;
    if context.inputs.len() > 1 {
        let ranks = Operand::dense(context, 1, DType::I64)?;
        let how = Ranks {
            count: row_len(&ranks),
            is_each: true,
            spreads_nan: false,
        };
        return pick(context, &sorted, &ranks, to, how);
    }
    let count = context.ints("ranks").len();
    let ranks = Operand::new(context, &[count], DType::I64)?;
    for (i, &rank) in context.ints("ranks").iter().enumerate() {
        let allocate = Operand::at(ranks.ptr + 8 * i as u64, &[1], &[1], DType::I64);
        operand::fill(context, &allocate, Scalar::I64(rank))?;
    }
    pick(
        context,
        &sorted,
        &ranks,
        to,
        Ranks {
            count,
            is_each: false,
            spreads_nan: !positions,
        },
    )
}

/// Bin numbers, or the number of elements in each bin.
fn bins(context: &KernelContext, counts: bool) -> Result<()> {
    let dtypes = [context.input(0).dtype(), context.input(1).dtype()].map(Of::Array);
    let dtype = result_type(&dtypes, promotion());
    let (x, edges) = (
        Operand::dense(context, 0, dtype)?,
        Operand::dense(context, 1, dtype)?,
    );
    let out = Operand::of(context.output(0));
    if counts {
        operand::fill(context, &out, Scalar::I64(0))?;
    }
    let (numbers, counters) = if counts { (0, out.ptr) } else { (out.ptr, 0) };
    let args = [
        Arg::Pointer(x.ptr),
        Arg::I64(x.len() as i64),
        Arg::Pointer(edges.ptr),
        Arg::I64(edges.len() as i64),
        Arg::Pointer(numbers),
        Arg::Pointer(counters),
    ];
    run(context, Function::Bins, dtype, x.len(), &args)
}

/// A kernel of `sort.cuh`.
#[derive(Clone, Copy)]
enum Function {
    Tile(usize, Direction),
    Merge(Direction),
    Pick,
    Search,
    Contains,
    Bins,
    Mask,
}

impl Function {
    fn name(self) -> String {
        let of = |direction| {
            if direction == Direction::Descending {
                "falling"
            } else {
                "rising"
            }
        };
        match self {
            Function::Tile(tile, direction) => format!("tile{tile}_{}", of(direction)),
            Function::Merge(direction) => format!("merge_{}", of(direction)),
            Function::Pick => "pick".into(),
            Function::Search => "search".into(),
            Function::Contains => "contains".into(),
            Function::Bins => "bins".into(),
            Function::Mask => "mask".into(),
        }
    }

    fn key(self, dtype: DType) -> String {
        format!("sort_{}:{}", self.name(), c_type(dtype))
    }

    fn text(self, dtype: DType) -> String {
        let (define, falls) = match self {
            Function::Tile(tile, direction) => {
                (format!("TILE {tile}"), direction == Direction::Descending)
            }
            Function::Merge(direction) => ("MERGE".into(), direction == Direction::Descending),
            other => (other.name().to_uppercase(), false),
        };
        let head = format!(
            "typedef {} T;\n#define {define}\n#define DESCENDING {falls}",
            c_type(dtype)
        );
        source(&[WALK, operand::FAULT, &head, SORT])
    }
}

fn run(
    context: &KernelContext,
    function: Function,
    dtype: DType,
    n: usize,
    args: &[Arg],
) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    launch(
        context,
        &function.key(dtype),
        || function.text(dtype),
        for_each(n),
        args,
    )
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for dtype in DType::ALL {
        let mut push = |function: Function| all.push((function.key(dtype), function.text(dtype)));
        for direction in [Direction::Ascending, Direction::Descending] {
            TILES
                .iter()
                .for_each(|&tile| push(Function::Tile(tile, direction)));
            push(Function::Merge(direction));
        }
        push(Function::Pick);
        push(Function::Search);
        push(Function::Contains);
        if !dtype.is_complex() {
            push(Function::Bins);
        }
    }
    all.push((
        Function::Mask.key(DType::Bool),
        Function::Mask.text(DType::Bool),
    ));
}
