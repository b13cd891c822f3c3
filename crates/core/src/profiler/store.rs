//! The buffers of all threads, and the statistics of their events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::profiler::buffer::{BACKWARD, CHUNK_BYTES, Chunk, Event, Kind, QUEUED, events};
use crate::profiler::settings;

/// A buffer, and the progress of the statistics and the trace in it.
struct StoredChunk {
    chunk: Arc<Chunk>,
    /// Number of words that the statistics contain.
    counted: usize,
    /// Number of words before the begin of the trace.
    start: usize,
}

/// Times of all events of one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    pub count: u64,
    pub total: u128,
    pub min: u64,
    pub max: u64,
}

impl Stat {
    const NONE: Stat = Stat {
        count: 0,
        total: 0,
        min: u64::MAX,
        max: 0,
    };

    fn add(&mut self, value: u64) {
        self.count += 1;
        self.total += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

/// Values of counters have a sign. In events and statistics they are shifted by this, so that they sort like times.
pub(super) const COUNTER_ZERO: u64 = 1 << 62;

/// The value of a counter, from the word of an event.
pub(super) fn of_counter(word: u64) -> i64 {
    word as i64 - COUNTER_ZERO as i64
}

/// The word of an event for the value of a counter, which lies within ± 2^62.
pub(super) fn to_counter(value: i64) -> u64 {
    let limit = COUNTER_ZERO as i64 - 1;
    (value.clamp(-limit, limit) + COUNTER_ZERO as i64) as u64
}

/// What a row of the statistics is about: kind, flags, domain and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub kind: Kind,
    pub flags: u8,
    pub domain: u32,
    pub name: u32,
}

/// The statistics.
#[derive(Clone)]
pub(super) struct Statistics {
    pub rows: HashMap<Row, Stat>,
    /// Bytes in use.
    pub memory: Stat,
    /// Largest number of bytes in use.
    pub peak: u64,
}

impl Statistics {
    fn new() -> Statistics {
        Statistics {
            rows: HashMap::new(),
            memory: Stat::NONE,
            peak: 0,
        }
    }

    fn add(&mut self, event: &Event) {
        let kind = event.kind();
        let is_own = matches!(
            kind,
            Kind::Task | Kind::Frame | Kind::Event | Kind::Counter | Kind::Marker
        );
        let row = Row {
            kind,
            flags: event.flags() & BACKWARD,
            domain: if is_own { event.extra() as u32 } else { 0 },
            name: event.name(),
        };
        let stats = &mut self.rows;
        stats.entry(row).or_insert(Stat::NONE).add(event.duration());
        if !is_own && event.flags() & QUEUED != 0 {
            let row = Row {
                flags: QUEUED,
                ..row
            };
            stats.entry(row).or_insert(Stat::NONE).add(event.extra());
        }
        if let Some((now, peak)) = event.memory() {
            self.memory.add(now);
            self.peak = self.peak.max(peak);
        }
    }
}

struct Store {
    chunks: Vec<StoredChunk>,
    statistics: Option<Statistics>,
    /// Events that the trace lacks because the buffers are full.
    num_dropped: u64,
    thread_names: Vec<String>,
    /// A finished dump has written the trace.
    is_ended: bool,
}

static STORE: Mutex<Store> = Mutex::new(Store {
    chunks: Vec::new(),
    statistics: None,
    num_dropped: 0,
    thread_names: Vec::new(),
    is_ended: false,
});

/// Incremented when all buffers are discarded: threads then take new ones.
static GENERATION: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The thread's number and the generation in which it got it.
    static THREAD: std::cell::Cell<(u32, u32)> = const { std::cell::Cell::new((0, 0)) };
}

#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Runs `body` with the store locked. No fork happens meanwhile.
fn with<R>(body: impl FnOnce(&mut Store) -> R) -> R {
    let _gate = mxnet_engine::hold_off_fork();
    let mut store: MutexGuard<Store> = STORE.lock();
    body(&mut store)
}

impl Store {
    /// Adds new events to the statistics.
    fn count(&mut self) {
        for held in &mut self.chunks {
            let len = held.chunk.len();
            if held.counted < len {
                let words = held.chunk.read(held.counted, len);
                let statistics = self.statistics.get_or_insert_with(Statistics::new);
                events(&words).for_each(|event| statistics.add(&event));
                held.counted = len;
            }
        }
    }

    /// Drops the newest buffer of a thread that has ended, if there is one.
    fn drop_ended_chunk(&mut self) {
        self.count();
        let mut held = self.chunks.iter();
        if let Some(at) = held.rposition(|held| Arc::strong_count(&held.chunk) == 1) {
            let held = self.chunks.remove(at);
            let words = held.chunk.read(held.start, held.chunk.len());
            self.num_dropped += events(&words).count() as u64;
        }
    }

    fn number_of_thread(&mut self) -> u32 {
        let now = generation();
        let (number, since) = THREAD.get();
        if since == now {
            return number;
        }
        let number = self.thread_names.len() as u32;
        let name = std::thread::current().name().map(str::to_owned);
        self.thread_names
            .push(name.unwrap_or_else(|| format!("thread {number}")));
        THREAD.set((number, now));
        number
    }
}

/// A buffer with free space for the calling thread, whose own one, of the generation `since`, is full or was discarded.
#[cold]
pub(super) fn next_chunk(full: Option<Arc<Chunk>>, since: u32) -> (Arc<Chunk>, u32) {
    let limit = settings::buffer_bytes() / CHUNK_BYTES;
    with(|store| {
        let now = generation();
        let full = full.filter(|_| since == now);
        let at = full.and_then(|full| {
            let mut held = store.chunks.iter();
            held.position(|held| Arc::ptr_eq(&held.chunk, &full))
        });
        if let Some(at) = at {
            store.count();
            if store.chunks.len() >= limit.max(1) {
                // The trace keeps its older events; the statistics have all.
                let held = &mut store.chunks[at];
                let words = held.chunk.read(held.start, held.chunk.len());
                store.num_dropped += events(&words).count() as u64;
                held.chunk.reset();
                (held.counted, held.start) = (0, 0);
                return (held.chunk.clone(), now);
            }
        }
        if store.chunks.len() >= limit {
            store.drop_ended_chunk();
        }
        let chunk = Arc::new(Chunk::new(store.number_of_thread()));
        store.chunks.push(StoredChunk {
            chunk: chunk.clone(),
            counted: 0,
            start: 0,
        });
        (chunk, now)
    })
}

/// A recording begins: after a finished dump with a new trace.
pub(super) fn begin() {
    with(|store| {
        if !std::mem::take(&mut store.is_ended) {
            return;
        }
        store.count();
        store.num_dropped = 0;
        // Buffers that no thread writes to any more.
        store
            .chunks
            .retain(|held| Arc::strong_count(&held.chunk) > 1);
        for held in &mut store.chunks {
            held.start = held.chunk.len();
            held.counted = held.start;
        }
    });
}

/// A dump has written the whole trace: the next recording begins a new one.
pub(super) fn end() {
    with(|store| store.is_ended = true);
}

/// Forgets all events and statistics.
pub(super) fn clear() {
    with(|store| {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        store.chunks.clear();
        store.thread_names.clear();
        store.statistics = None;
        store.num_dropped = 0;
        store.is_ended = false;
    });
}

/// The events of the trace: for each buffer the thread's number and the words; and what is known about them.
pub(super) struct Snapshot {
    pub buffers: Vec<(u32, Vec<u64>)>,
    pub num_dropped: u64,
    pub thread_names: Vec<String>,
}

pub(super) fn snapshot() -> Snapshot {
    with(|store| Snapshot {
        buffers: (store.chunks.iter())
            .map(|held| {
                let words = held
                    .chunk
                    .read(held.start.min(held.chunk.len()), held.chunk.len());
                (held.chunk.thread, words)
            })
            .collect(),
        num_dropped: store.num_dropped,
        thread_names: store.thread_names.clone(),
    })
}

/// The statistics, and the number of events that the trace lacks. `reset` begins new ones.
pub(super) fn statistics(reset: bool) -> (Statistics, u64) {
    with(|store| {
        store.count();
        let found = match reset {
            true => store.statistics.take(),
            false => store.statistics.clone(),
        };
        (found.unwrap_or_else(Statistics::new), store.num_dropped)
    })
}

/// Form of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Tables for people.
    #[default]
    Table,
    /// JSON.
    Json,
}

impl Format {
    /// The form of this name: "table" or "json".
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn of(name: &str) -> Result<Format> {
        match name {
            "table" => Ok(Format::Table),
            "json" => Ok(Format::Json),
            _ => {
                let problem = format!("`format` must be 'table' or 'json', not '{name}'");
                Err(Error::value("dumps", problem))
            }
        }
    }
}

impl SortBy {
    /// The column of this name: "total", "avg", "min", "max" or "count".
    ///
    /// # Errors
    /// [`Error::Value`] for another name.
    pub fn of(name: &str) -> Result<SortBy> {
        match name {
            "total" => Ok(SortBy::Total),
            "avg" => Ok(SortBy::Average),
            "min" => Ok(SortBy::Min),
            "max" => Ok(SortBy::Max),
            "count" => Ok(SortBy::Count),
            _ => {
                let problem = format!(
                    "`sort_by` must be 'total', 'avg', 'min', 'max' or 'count', not '{name}'"
                );
                Err(Error::value("dumps", problem))
            }
        }
    }
}

/// Column by which the rows of a summary are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Time of all events together.
    #[default]
    Total,
    /// Mean time.
    Average,
    /// Shortest time.
    Min,
    /// Longest time.
    Max,
    /// Number of events.
    Count,
}

/// How a summary is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryOptions {
    /// Form of the text.
    pub format: Format,
    /// Column by which rows are sorted.
    pub sort_by: SortBy,
    /// Whether the smallest comes first.
    pub ascending: bool,
    /// Whether new statistics begin.
    pub reset: bool,
}
