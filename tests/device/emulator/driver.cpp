// A CUDA driver for tests: `libcuda.so.1` that computes on the processor of this machine.
//
// Memory of a device is an arena that faults when the host touches it, and is opened while a kernel or a copy runs. A stream is a thread with a
// queue. The blocks of a grid run one after the other; the threads of a block are fibers, which change only where they wait for each other. A
// kernel that writes behind its block of memory, or whose threads wait for each other forever, ends the process with a message.
//
// Environment: MXNET_EMULATOR_DEVICES (2), MXNET_EMULATOR_MEMORY in MiB (1024), MXNET_EMULATOR_DELAY in microseconds before each piece of work (0).

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#define EXPORT extern "C" __attribute__((visibility("default")))

typedef int Result;
typedef unsigned long long Address;
enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    STREAM_CAPTURE_UNSUPPORTED = 900,
};

namespace {

// Never destroyed: streams run until the process ends.
template <class T>
T& forever() {
    static T* value = new T();
    return *value;
}

int setting(const char* name, int otherwise) {
    const char* text = getenv(name);
    return text ? atoi(text) : otherwise;
}

void die(const char* problem) {
    fprintf(stderr, "emulator: %s\n", problem);
    fflush(stderr);
    abort();
}

// ---- Memory ----

const size_t PAGE = 4096, GAP = 256;
const unsigned char CANARY = 0xA5, NEW = 0xCB;

class Arena {
  public:
    explicit Arena(size_t capacity) : capacity_(capacity) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* map = mmap(nullptr, capacity, PROT_NONE, flags, -1, 0);
        if (map == MAP_FAILED) die("no address space for a device");
        start_ = (char*)map;
        free_[0] = capacity;
    }

    bool holds(Address address) const {
        return address >= (Address)start_ && address < (Address)(start_ + capacity_);
    }

    void open() {
        std::lock_guard<std::mutex> guard(lock_);
        if (opened_++ == 0) protect(PROT_READ | PROT_WRITE);
    }

    void close() {
        std::lock_guard<std::mutex> guard(lock_);
        if (--opened_ == 0) protect(PROT_NONE);
    }

    // A block, filled with a pattern that is no sensible number of any kind.
    Address allocate(size_t bytes) {
        open();
        Address found = 0;
        {
            std::lock_guard<std::mutex> guard(lock_);
            size_t size = (bytes + GAP + 255) / 256 * 256;
            for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
                if (hole->second < size) continue;
                size_t at = hole->first, left = hole->second - size;
                free_.erase(hole);
                if (left) free_[at + size] = left;
                used_[at] = {bytes, size};
                in_use_ += size;
                memset(start_ + at, NEW, bytes);
                memset(start_ + at + bytes, CANARY, size - bytes);
                found = (Address)(start_ + at);
                break;
            }
        }
        close();
        return found;
    }

    bool free(Address address) {
        check(address);
        std::lock_guard<std::mutex> guard(lock_);
        size_t at = address - (Address)start_;
        auto block = used_.find(at);
        if (block == used_.end()) return false;
        size_t size = block->second.size;
        used_.erase(block);
        in_use_ -= size;
        auto next = free_.lower_bound(at);
        if (next != free_.end() && at + size == next->first) {
            size += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == at) {
                before->second += size;
                return true;
            }
        }
        free_[at] = size;
        return true;
    }

    size_t capacity() const { return capacity_; }
    size_t left() {
        std::lock_guard<std::mutex> guard(lock_);
        return capacity_ - in_use_;
    }

  private:
    struct Block {
        size_t bytes, size;
    };

    void protect(int how) {
        if (mprotect(start_, capacity_, how)) die("mprotect failed");
    }

    void check(Address address) {
        open();
        {
            std::lock_guard<std::mutex> guard(lock_);
            auto block = used_.find(address - (Address)start_);
            if (block != used_.end()) {
                const char* end = start_ + block->first;
                for (size_t i = block->second.bytes; i < block->second.size; ++i) {
                    if ((unsigned char)end[i] != CANARY) {
                        char text[160];
                        snprintf(text, sizeof text, "something was written %zu bytes behind a block of %zu bytes",
                                 i - block->second.bytes, block->second.bytes);
                        die(text);
                    }
                }
            }
        }
        close();
    }

    char* start_;
    size_t capacity_, in_use_ = 0;
    int opened_ = 0;
    std::map<size_t, size_t> free_;
    std::map<size_t, Block> used_;
    std::mutex lock_;
};

struct Device {
    Arena arena{(size_t)setting("MXNET_EMULATOR_MEMORY", 1024) << 20};
    int id;
};

struct Driver {
    std::vector<Device*> devices;
    pid_t process = 0;
};

Driver& driver() { return forever<Driver>(); }

Arena* arena_of(Address address) {
    for (Device* device : driver().devices) {
        if (device->arena.holds(address)) return &device->arena;
    }
    return nullptr;
}

// Memory of devices is open while this lives.
class Opened {
  public:
    Opened() {
        for (Device* device : driver().devices) device->arena.open();
    }
    ~Opened() {
        for (Device* device : driver().devices) device->arena.close();
    }
};

// ---- Contexts ----

struct Context {
    int device;
};
thread_local Context* current = nullptr;

Context* context_of(int device) {
    static std::map<int, Context*>* all = new std::map<int, Context*>();
    static std::mutex* lock = new std::mutex();
    std::lock_guard<std::mutex> guard(*lock);
    Context*& found = (*all)[device];
    if (!found) found = new Context{device};
    return found;
}

bool usable() { return driver().process == getpid(); }

#define CHECK_CONTEXT()                       \
    if (!usable()) return NOT_INITIALIZED;    \
    if (!current) return INVALID_CONTEXT;

// ---- Streams and events ----

typedef std::function<void()> Work;

struct Flag {
    std::atomic<bool> done{false};
    double time_ms = 0;
    std::mutex lock;
    std::condition_variable changed;

    void set() {
        auto now = std::chrono::steady_clock::now().time_since_epoch();
        time_ms = std::chrono::duration<double, std::milli>(now).count();
        std::lock_guard<std::mutex> guard(lock);
        done = true;
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] { return done.load(); });
    }
};

struct Graph {
    std::vector<Work> work;
};

struct Stream {
    int device = 0;
    std::deque<Work> queue;
    std::mutex lock;
    std::condition_variable changed, idle;
    bool busy = false, closed = false;
    std::shared_ptr<Graph> capture;
    std::thread thread;

    void run() {
        const int delay = setting("MXNET_EMULATOR_DELAY", 0);
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            changed.wait(guard, [&] { return closed || !queue.empty(); });
            if (queue.empty()) return;
            Work work = std::move(queue.front());
            queue.pop_front();
            busy = true;
            guard.unlock();
            if (delay) usleep(delay);
            work();
            work = nullptr;
            guard.lock();
            busy = false;
            if (queue.empty()) idle.notify_all();
        }
    }

    void push(Work work) {
        std::lock_guard<std::mutex> guard(lock);
        if (capture) {
            capture->work.push_back(std::move(work));
            return;
        }
        queue.push_back(std::move(work));
        changed.notify_one();
    }

    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        idle.wait(guard, [&] { return queue.empty() && !busy; });
    }

    bool is_idle() {
        std::lock_guard<std::mutex> guard(lock);
        return queue.empty() && !busy;
    }
};

struct Streams {
    std::mutex lock;
    std::vector<Stream*> all;
};
Streams& streams() { return forever<Streams>(); }

Stream* new_stream(int device) {
    Stream* stream = new Stream();
    stream->device = device;
    stream->thread = std::thread([stream] { stream->run(); });
    std::lock_guard<std::mutex> guard(streams().lock);
    streams().all.push_back(stream);
    return stream;
}

void wait_for_all(int device) {
    std::vector<Stream*> all;
    {
        std::lock_guard<std::mutex> guard(streams().lock);
        all = streams().all;
    }
    for (Stream* stream : all) {
        if (stream->device == device) stream->wait();
    }
}

// The default stream waits for all others, and all others for it.
Result enqueue(Stream* stream, Work work) {
    if (stream && (size_t)stream > 2) {
        stream->push(std::move(work));
    } else {
        wait_for_all(current->device);
        work();
    }
    return SUCCESS;
}

struct Event {
    std::shared_ptr<Flag> flag;
    std::mutex lock;
    std::shared_ptr<Flag> now() {
        std::lock_guard<std::mutex> guard(lock);
        return flag;
    }
};

// ---- Fibers: the threads of a block ----

const size_t STACK = 256 << 10;

struct Fiber {
    enum State { READY, AT_BLOCK, AT_WARP, FINISHED } state = FINISHED;
    emulator::Thread thread;
    jmp_buf place;
    ucontext_t start;
    void* stack = nullptr;
    int flag = 0;
    // The number of the thread in the block.
    unsigned int number = 0;
    unsigned int mask = 0, turn = 0;
};

struct Warp {
    // What each lane gave, for this exchange and the one before it, which slow lanes still read.
    unsigned char given[2][32][16];
    int flags[2][32];
};

class Block {
  public:
    // Calls `kernel` for each thread of one block.
    void run(dim3 size, std::function<void()>* kernel);

    emulator::Host host;

  private:
    friend void fiber_main();
    static Block* running;

    static int sync_block(int flag) { return running->wait_for_block(flag); }
    static void exchange(unsigned int mask, unsigned int from, const void* given, void* taken);
    static unsigned int ballot(unsigned int mask, int flag);

    bool start_next(Fiber* fiber);
    void yield() {
        Fiber* self = current_;
        if (!_setjmp(self->place)) _longjmp(scheduler_, 1);
    }
    int wait_for_block(int flag);
    unsigned int meet(unsigned int mask, int flag, const void* given);
    bool release();
    void resume(Fiber* fiber);

    dim3 size_;
    unsigned int count_ = 0, next_ = 0;
    std::function<void()>* kernel_ = nullptr;
    // Each fiber runs one thread after the other; `of_thread_` has the fibers of the threads that run or wait.
    std::vector<Fiber*> fibers_, of_thread_;
    std::vector<Warp> warps_;
    Fiber* current_ = nullptr;
    jmp_buf scheduler_;
    int total_ = 0;

  public:
    Block() {
        host.sync_block = sync_block;
        host.exchange = exchange;
        host.ballot = ballot;
        host.fail = die;
    }
};

Block* Block::running = nullptr;

// Gives the fiber the next thread of the block, if there is one.
bool Block::start_next(Fiber* fiber) {
    if (next_ == count_) return false;
    unsigned int i = next_++;
    fiber->thread.index = {i % size_.x, i / size_.x % size_.y, i / (size_.x * size_.y)};
    fiber->thread.lane = i % 32;
    fiber->number = i;
    fiber->state = Fiber::READY;
    fiber->turn = 0;
    of_thread_[i] = fiber;
    host.thread = &fiber->thread;
    return true;
}

void fiber_main() {
    Block& block = *Block::running;
    for (;;) {
        Fiber* self = block.current_;
        (*block.kernel_)();
        self->state = Fiber::FINISHED;
        block.of_thread_[self->number] = nullptr;
        if (!block.start_next(self)) block.yield();
    }
}

void Block::resume(Fiber* fiber) {
    current_ = fiber;
    host.thread = &fiber->thread;
    if (_setjmp(scheduler_)) return;
    if (fiber->stack) _longjmp(fiber->place, 1);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    fiber->stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (fiber->stack == MAP_FAILED) die("no memory for the stack of a thread");
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = STACK;
    fiber->start.uc_link = nullptr;
    makecontext(&fiber->start, fiber_main, 0);
    setcontext(&fiber->start);
}

// Lets those go on that wait for each other and are all here.
bool Block::release() {
    bool any = false, live = false, all_at_block = true;
    int total = 0;
    for (unsigned int i = 0; i < count_; ++i) {
        Fiber* fiber = of_thread_[i];
        if (!fiber) continue;
        live = true;
        if (fiber->state == Fiber::AT_BLOCK) {
            total += fiber->flag;
        } else {
            all_at_block = false;
        }
    }
    if (!live) return false;
    if (all_at_block) {
        total_ = total;
        for (Fiber* fiber : of_thread_) {
            if (fiber && fiber->state == Fiber::AT_BLOCK) fiber->state = Fiber::READY;
        }
        return true;
    }
    for (unsigned int start = 0; start < count_; start += 32) {
        for (unsigned int lane = 0; lane < 32 && start + lane < count_; ++lane) {
            Fiber* fiber = of_thread_[start + lane];
            if (!fiber || fiber->state != Fiber::AT_WARP) continue;
            bool all = true;
            for (unsigned int other = 0; other < 32 && start + other < count_; ++other) {
                if (!(fiber->mask >> other & 1)) continue;
                Fiber* peer = of_thread_[start + other];
                if (!peer || peer->state != Fiber::AT_WARP || peer->mask != fiber->mask) all = false;
            }
            if (!all) continue;
            unsigned int mask = fiber->mask;
            for (unsigned int other = 0; other < 32 && start + other < count_; ++other) {
                if (mask >> other & 1) of_thread_[start + other]->state = Fiber::READY;
            }
            any = true;
        }
    }
    if (!any) die("threads of a kernel wait for each other forever: a barrier or warp function that not all of them reach");
    return any;
}

void Block::run(dim3 size, std::function<void()>* kernel) {
    running = this;
    size_ = size;
    count_ = size.x * size.y * size.z;
    next_ = 0;
    kernel_ = kernel;
    of_thread_.assign(count_, nullptr);
    warps_.resize((count_ + 31) / 32);
    size_t used = 0;
    while (next_ < count_) {
        // A fiber takes one thread after the other until one of them has to wait.
        if (used == fibers_.size()) fibers_.push_back(new Fiber());
        Fiber* fiber = fibers_[used++];
        start_next(fiber);
        resume(fiber);
    }
    while (release()) {
        for (size_t i = 0; i < used; ++i) {
            if (fibers_[i]->state == Fiber::READY) resume(fibers_[i]);
        }
    }
}

int Block::wait_for_block(int flag) {
    Fiber* self = current_;
    self->state = Fiber::AT_BLOCK;
    self->flag = flag;
    yield();
    return total_;
}

// Waits for the lanes of the mask, and returns which half of the warp's memory holds what they gave.
unsigned int Block::meet(unsigned int mask, int flag, const void* given) {
    Fiber* self = current_;
    Warp& warp = warps_[self->number / 32];
    unsigned int half = self->turn++ & 1;
    if (!(mask >> self->thread.lane & 1)) die("a lane calls a warp function whose mask lacks it");
    if (given) memcpy(warp.given[half][self->thread.lane], given, 16);
    warp.flags[half][self->thread.lane] = flag;
    self->state = Fiber::AT_WARP;
    self->mask = mask;
    yield();
    return half;
}

void Block::exchange(unsigned int mask, unsigned int from, const void* given, void* taken) {
    Block& block = *running;
    unsigned int half = block.meet(mask, 0, given);
    Fiber* self = block.current_;
    unsigned int i = self->number, thread = i / 32 * 32 + from;
    if (from < 32 && (mask >> from & 1) && thread < block.count_) {
        memcpy(taken, block.warps_[i / 32].given[half][from], 16);
    } else {
        // A lane that is not there has no sensible value.
        memset(taken, NEW, 16);
    }
}

unsigned int Block::ballot(unsigned int mask, int flag) {
    Block& block = *running;
    unsigned int half = block.meet(mask, flag, nullptr);
    Fiber* self = block.current_;
    unsigned int i = self->number, start = i / 32 * 32, result = 0;
    for (unsigned int lane = 0; lane < 32 && start + lane < block.count_; ++lane) {
        if ((mask >> lane & 1) && block.warps_[i / 32].flags[half][lane]) result |= 1u << lane;
    }
    return result;
}

// ---- Modules and kernels ----

struct Function {
    std::string name;
    void (*run)(void**);
    unsigned int count;
    const unsigned long* sizes;
    int dynamic_limit = 48 << 10;
    emulator::Host** host;
};

struct Module {
    void* library;
    std::map<std::string, Function*> functions;
};

struct Launch {
    dim3 grid, block;
    unsigned int shared;
    std::vector<std::vector<char>> values;
};

// One kernel runs at a time: its shared memory is static.
std::mutex& kernels_lock() { return forever<std::mutex>(); }

void run_kernel(Function* function, const Launch& launch) {
    std::lock_guard<std::mutex> guard(kernels_lock());
    Opened opened;
    static Block* block = new Block();
    static std::vector<char>* shared = new std::vector<char>();
    shared->assign(launch.shared + 64, (char)NEW);
    emulator::Host& host = block->host;
    host.dynamic_shared = (void*)(((size_t)shared->data() + 63) / 64 * 64);
    host.block_size = launch.block;
    host.grid_size = launch.grid;
    *function->host = &host;
    std::vector<void*> values;
    for (const auto& value : launch.values) values.push_back((void*)value.data());
    std::function<void()> kernel = [&] {
        // A kernel may change its parameters: each thread has its own.
        alignas(16) char copies[4608];
        void* mine[64];
        size_t at = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            memcpy(copies + at, values[i], launch.values[i].size());
            mine[i] = copies + at;
            at = (at + launch.values[i].size() + 15) / 16 * 16;
        }
        function->run(mine);
    };
    for (unsigned int z = 0; z < launch.grid.z; ++z) {
        for (unsigned int y = 0; y < launch.grid.y; ++y) {
            for (unsigned int x = 0; x < launch.grid.x; ++x) {
                host.block = {x, y, z};
                block->run(launch.block, &kernel);
            }
        }
    }
}

}  // namespace

// ---- The driver's functions ----

EXPORT Result cuInit(unsigned int) {
    static std::once_flag once;
    std::call_once(once, [] {
        int count = setting("MXNET_EMULATOR_DEVICES", 2);
        for (int i = 0; i < count; ++i) {
            Device* device = new Device();
            device->id = i;
            driver().devices.push_back(device);
        }
        driver().process = getpid();
    });
    return usable() ? SUCCESS : NOT_INITIALIZED;
}

EXPORT Result cuDriverGetVersion(int* version) {
    *version = 13000;
    return SUCCESS;
}

EXPORT Result cuDeviceGetCount(int* count) {
    if (!usable()) return NOT_INITIALIZED;
    *count = (int)driver().devices.size();
    return SUCCESS;
}

EXPORT Result cuDeviceGet(int* device, int ordinal) {
    if (!usable()) return NOT_INITIALIZED;
    if (ordinal < 0 || (size_t)ordinal >= driver().devices.size()) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

EXPORT Result cuDeviceGetName(char* name, int length, int) {
    snprintf(name, length, "Emulated GPU");
    return SUCCESS;
}

EXPORT Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    memset(uuid, device, 16);
    return SUCCESS;
}

EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
    *bytes = driver().devices[device]->arena.capacity();
    return SUCCESS;
}

EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int) {
    static const std::map<int, int> known = {
        {1, 1024},   {2, 1024},      {3, 1024},  {4, 64},     {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
        {10, 32},    {12, 65536},    {13, 1000}, {14, 512},   {16, 4},         {31, 1},    {33, 0},    {39, 2048},
        {40, 2},     {41, 1},        {75, 8},    {76, 0},     {78, 1},         {79, 1},    {81, 65536 + 102400},
        {82, 65536}, {97, 166912 - 1024}, {106, 32}, {115, 1}, {116, 0},
    };
    auto found = known.find(attribute);
    *value = found == known.end() ? 0 : found->second;
    return SUCCESS;
}

EXPORT Result cuDeviceCanAccessPeer(int* can, int from, int to) {
    *can = from != to;
    return SUCCESS;
}

EXPORT Result cuDevicePrimaryCtxRetain(Context** context, int device) {
    if (!usable()) return NOT_INITIALIZED;
    if (device < 0 || (size_t)device >= driver().devices.size()) return INVALID_DEVICE;
    *context = context_of(device);
    return SUCCESS;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
EXPORT Result cuDevicePrimaryCtxGetState(int, unsigned int* flags, int* active) {
    *flags = 0;
    *active = 1;
    return SUCCESS;
}
EXPORT Result cuCtxSetCurrent(Context* context) {
    if (!usable()) return NOT_INITIALIZED;
    current = context;
    return SUCCESS;
}
EXPORT Result cuCtxGetCurrent(Context** context) {
    if (!usable()) return NOT_INITIALIZED;
    *context = current;
    return SUCCESS;
}
EXPORT Result cuCtxGetDevice(int* device) {
    CHECK_CONTEXT();
    *device = current->device;
    return SUCCESS;
}
EXPORT Result cuCtxPushCurrent_v2(Context* context) { return cuCtxSetCurrent(context); }
EXPORT Result cuCtxSynchronize() {
    CHECK_CONTEXT();
    wait_for_all(current->device);
    return SUCCESS;
}
EXPORT Result cuCtxEnablePeerAccess(Context*, unsigned int) {
    CHECK_CONTEXT();
    return SUCCESS;
}

static const char* name_of(Result result) {
    switch (result) {
        case SUCCESS: return "CUDA_SUCCESS";
        case INVALID_VALUE: return "CUDA_ERROR_INVALID_VALUE";
        case OUT_OF_MEMORY: return "CUDA_ERROR_OUT_OF_MEMORY";
        case NOT_INITIALIZED: return "CUDA_ERROR_NOT_INITIALIZED";
        case INVALID_DEVICE: return "CUDA_ERROR_INVALID_DEVICE";
        case INVALID_IMAGE: return "CUDA_ERROR_INVALID_IMAGE";
        case INVALID_CONTEXT: return "CUDA_ERROR_INVALID_CONTEXT";
        case INVALID_HANDLE: return "CUDA_ERROR_INVALID_HANDLE";
        case NOT_FOUND: return "CUDA_ERROR_NOT_FOUND";
        case NOT_READY: return "CUDA_ERROR_NOT_READY";
        case STREAM_CAPTURE_UNSUPPORTED: return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
        default: return nullptr;
    }
}
EXPORT Result cuGetErrorName(Result result, const char** text) {
    *text = name_of(result);
    return *text ? SUCCESS : INVALID_VALUE;
}
EXPORT Result cuGetErrorString(Result result, const char** text) { return cuGetErrorName(result, text); }

// Memory.

EXPORT Result cuMemAlloc_v2(Address* address, size_t bytes) {
    CHECK_CONTEXT();
    if (!bytes) return INVALID_VALUE;
    *address = driver().devices[current->device]->arena.allocate(bytes);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
EXPORT Result cuMemFree_v2(Address address) {
    CHECK_CONTEXT();
    Arena* arena = arena_of(address);
    if (!arena) return INVALID_VALUE;
    wait_for_all(current->device);
    return arena->free(address) ? SUCCESS : INVALID_VALUE;
}
EXPORT Result cuMemAllocAsync(Address* address, size_t bytes, Stream*) { return cuMemAlloc_v2(address, bytes); }
EXPORT Result cuMemAllocFromPoolAsync(Address* address, size_t bytes, void*, Stream*) {
    return cuMemAlloc_v2(address, bytes);
}
EXPORT Result cuMemFreeAsync(Address address, Stream* stream) {
    CHECK_CONTEXT();
    Arena* arena = arena_of(address);
    if (!arena) return INVALID_VALUE;
    return enqueue(stream, [=] {
        if (!arena->free(address)) die("a block is freed twice");
    });
}
EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
    CHECK_CONTEXT();
    Arena& arena = driver().devices[current->device]->arena;
    *free = arena.left();
    *total = arena.capacity();
    return SUCCESS;
}
EXPORT Result cuDeviceGetDefaultMemPool(void** pool, int device) {
    *pool = driver().devices[device];
    return SUCCESS;
}
EXPORT Result cuDeviceGetMemPool(void** pool, int device) { return cuDeviceGetDefaultMemPool(pool, device); }
EXPORT Result cuMemPoolTrimTo(void*, size_t) { return SUCCESS; }
EXPORT Result cuMemPoolSetAttribute(void*, int, void*) { return SUCCESS; }
EXPORT Result cuMemPoolSetAccess(void*, const void*, size_t) { return SUCCESS; }
EXPORT Result cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
    Arena& arena = ((Device*)pool)->arena;
    unsigned long long used = arena.capacity() - arena.left();
    // Reserved and used memory, now and at most; thresholds and flags are 0.
    *(unsigned long long*)value = attribute >= 5 && attribute <= 8 ? used : 0;
    return SUCCESS;
}
EXPORT Result cuMemAllocHost_v2(void** address, size_t bytes) {
    CHECK_CONTEXT();
    *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
EXPORT Result cuMemHostAlloc(void** address, size_t bytes, unsigned int) {
    return cuMemAllocHost_v2(address, bytes);
}
EXPORT Result cuMemFreeHost(void* address) {
    free(address);
    return SUCCESS;
}
EXPORT Result cuMemHostGetDevicePointer_v2(Address* device, void* host, unsigned int) {
    *device = (Address)host;
    return SUCCESS;
}
EXPORT Result cuMemHostRegister_v2(void*, size_t, unsigned int) { return SUCCESS; }
EXPORT Result cuMemHostUnregister(void*) { return SUCCESS; }
EXPORT Result cuPointerGetAttribute(void* value, int attribute, Address address) {
    Arena* arena = arena_of(address);
    if (attribute == 2) {  // The type of memory: 1 host, 2 device.
        if (!arena) return INVALID_VALUE;
        *(unsigned int*)value = 2;
        return SUCCESS;
    }
    if (attribute == 9) {  // The device's number.
        if (!arena) return INVALID_VALUE;
        for (Device* device : driver().devices) {
            if (&device->arena == arena) *(int*)value = device->id;
        }
        return SUCCESS;
    }
    return INVALID_VALUE;
}

// A copy whose ends are checked where it is made.
static Result copy(Address to, Address from, size_t bytes, Stream* stream, bool to_device, bool from_device) {
    CHECK_CONTEXT();
    if (!bytes) return SUCCESS;
    if ((arena_of(to) != nullptr) != to_device || (arena_of(from) != nullptr) != from_device) return INVALID_VALUE;
    return enqueue(stream, [=] {
        Opened opened;
        memcpy((void*)to, (const void*)from, bytes);
    });
}
EXPORT Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
    return copy(to, (Address)from, bytes, stream, true, false);
}
EXPORT Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
    return copy((Address)to, from, bytes, stream, false, true);
}
EXPORT Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
    return copy(to, from, bytes, stream, true, true);
}
EXPORT Result cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
    return copy(to, (Address)from, bytes, nullptr, true, false);
}
EXPORT Result cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
    return copy((Address)to, from, bytes, nullptr, false, true);
}
EXPORT Result cuMemcpyDtoD_v2(Address to, Address from, size_t bytes) {
    return copy(to, from, bytes, nullptr, true, true);
}
EXPORT Result cuMemcpyAsync(Address to, Address from, size_t bytes, Stream* stream) {
    return copy(to, from, bytes, stream, arena_of(to) != nullptr, arena_of(from) != nullptr);
}
EXPORT Result cuMemcpyPeerAsync(Address to, Context*, Address from, Context*, size_t bytes, Stream* stream) {
    return copy(to, from, bytes, stream, true, true);
}
template <class T>
static Result fill(Address to, T value, size_t count, Stream* stream) {
    CHECK_CONTEXT();
    if (!count) return SUCCESS;
    if (!arena_of(to)) return INVALID_VALUE;
    return enqueue(stream, [=] {
        Opened opened;
        for (size_t i = 0; i < count; ++i) ((T*)to)[i] = value;
    });
}
EXPORT Result cuMemsetD8Async(Address to, unsigned char value, size_t count, Stream* stream) {
    return fill(to, value, count, stream);
}
EXPORT Result cuMemsetD16Async(Address to, unsigned short value, size_t count, Stream* stream) {
    return fill(to, value, count, stream);
}
EXPORT Result cuMemsetD32Async(Address to, unsigned int value, size_t count, Stream* stream) {
    return fill(to, value, count, stream);
}
EXPORT Result cuMemsetD8_v2(Address to, unsigned char value, size_t count) { return fill(to, value, count, nullptr); }
EXPORT Result cuMemsetD32_v2(Address to, unsigned int value, size_t count) { return fill(to, value, count, nullptr); }

// Streams and events.

EXPORT Result cuStreamCreate(Stream** stream, unsigned int) {
    CHECK_CONTEXT();
    *stream = new_stream(current->device);
    return SUCCESS;
}
EXPORT Result cuStreamCreateWithPriority(Stream** stream, unsigned int flags, int) {
    return cuStreamCreate(stream, flags);
}
EXPORT Result cuStreamDestroy_v2(Stream* stream) {
    CHECK_CONTEXT();
    {
        std::lock_guard<std::mutex> guard(streams().lock);
        auto& all = streams().all;
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i] == stream) {
                all.erase(all.begin() + i);
                break;
            }
        }
    }
    stream->wait();
    {
        std::lock_guard<std::mutex> guard(stream->lock);
        stream->closed = true;
        stream->changed.notify_one();
    }
    stream->thread.join();
    delete stream;
    return SUCCESS;
}
EXPORT Result cuStreamSynchronize(Stream* stream) {
    CHECK_CONTEXT();
    if ((size_t)stream > 2) {
        stream->wait();
    } else {
        wait_for_all(current->device);
    }
    return SUCCESS;
}
EXPORT Result cuStreamQuery(Stream* stream) {
    CHECK_CONTEXT();
    return (size_t)stream <= 2 || stream->is_idle() ? SUCCESS : NOT_READY;
}
EXPORT Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned int) {
    CHECK_CONTEXT();
    auto flag = event->now();
    if (!flag) return SUCCESS;
    return enqueue(stream, [flag] { flag->wait(); });
}
EXPORT Result cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* data) {
    CHECK_CONTEXT();
    return enqueue(stream, [=] { function(data); });
}
EXPORT Result cuEventCreate(Event** event, unsigned int) {
    CHECK_CONTEXT();
    *event = new Event();
    return SUCCESS;
}
EXPORT Result cuEventDestroy_v2(Event* event) {
    delete event;
    return SUCCESS;
}
EXPORT Result cuEventRecord(Event* event, Stream* stream) {
    CHECK_CONTEXT();
    auto flag = std::make_shared<Flag>();
    {
        std::lock_guard<std::mutex> guard(event->lock);
        event->flag = flag;
    }
    return enqueue(stream, [flag] { flag->set(); });
}
EXPORT Result cuEventRecordWithFlags(Event* event, Stream* stream, unsigned int) { return cuEventRecord(event, stream); }
EXPORT Result cuEventQuery(Event* event) {
    if (!usable()) return NOT_INITIALIZED;
    auto flag = event->now();
    return !flag || flag->done ? SUCCESS : NOT_READY;
}
EXPORT Result cuEventSynchronize(Event* event) {
    if (!usable()) return NOT_INITIALIZED;
    if (auto flag = event->now()) flag->wait();
    return SUCCESS;
}
EXPORT Result cuEventElapsedTime_v2(float* milliseconds, Event* start, Event* end) {
    auto first = start->now(), last = end->now();
    if (!first || !last) return INVALID_HANDLE;
    if (!first->done || !last->done) return NOT_READY;
    *milliseconds = (float)(last->time_ms - first->time_ms);
    return SUCCESS;
}
EXPORT Result cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

// Graphs: what one stream was given while it captured.

EXPORT Result cuStreamBeginCapture_v2(Stream* stream, int) {
    CHECK_CONTEXT();
    if ((size_t)stream <= 2) return STREAM_CAPTURE_UNSUPPORTED;
    std::lock_guard<std::mutex> guard(stream->lock);
    stream->capture = std::make_shared<Graph>();
    return SUCCESS;
}
EXPORT Result cuStreamIsCapturing(Stream* stream, int* status) {
    *status = (size_t)stream > 2 && stream->capture ? 1 : 0;
    return SUCCESS;
}
EXPORT Result cuStreamEndCapture(Stream* stream, std::shared_ptr<Graph>** graph) {
    CHECK_CONTEXT();
    std::lock_guard<std::mutex> guard(stream->lock);
    if (!stream->capture) return INVALID_VALUE;
    *graph = new std::shared_ptr<Graph>(std::move(stream->capture));
    stream->capture = nullptr;
    return SUCCESS;
}
EXPORT Result cuGraphInstantiateWithFlags(std::shared_ptr<Graph>** exec, std::shared_ptr<Graph>* graph,
                                          unsigned long long) {
    *exec = new std::shared_ptr<Graph>(*graph);
    return SUCCESS;
}
EXPORT Result cuGraphLaunch(std::shared_ptr<Graph>* exec, Stream* stream) {
    CHECK_CONTEXT();
    auto graph = *exec;
    return enqueue(stream, [graph] {
        for (const Work& work : graph->work) work();
    });
}
EXPORT Result cuGraphExecDestroy(std::shared_ptr<Graph>* exec) {
    delete exec;
    return SUCCESS;
}
EXPORT Result cuGraphDestroy(std::shared_ptr<Graph>* graph) {
    delete graph;
    return SUCCESS;
}

// Modules: shared libraries that the emulator's NVRTC made, behind a mark and their length.

EXPORT Result cuModuleLoadData(Module** module, const void* image) {
    CHECK_CONTEXT();
    if (memcmp(image, "MXEMU001", 8)) return INVALID_IMAGE;
    unsigned long long length;
    memcpy(&length, (const char*)image + 8, 8);
    // A file with a name of its own: a name that is loaded already would give the library of that name.
    char path[] = "/tmp/emulator-module-XXXXXX";
    int file = mkstemp(path);
    const char* from = (const char*)image + 16;
    for (size_t done = 0; done < length;) {
        ssize_t n = write(file, from + done, length - done);
        if (n <= 0) die("the image of a module cannot be written");
        done += n;
    }
    close(file);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (!library) {
        fprintf(stderr, "emulator: %s\n", dlerror());
        return INVALID_IMAGE;
    }
    *module = new Module{library, {}};
    return SUCCESS;
}
EXPORT Result cuModuleLoadDataEx(Module** module, const void* image, unsigned int, int*, void**) {
    return cuModuleLoadData(module, image);
}
EXPORT Result cuModuleUnload(Module*) { return SUCCESS; }
EXPORT Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
    CHECK_CONTEXT();
    Function*& found = module->functions[name];
    if (!found) {
        std::string key = name;
        auto run = (void (*)(void**))dlsym(module->library, ("emulator_run_" + key).c_str());
        auto sizes = (unsigned int (*)(const unsigned long**))dlsym(module->library, ("emulator_sizes_" + key).c_str());
        auto host = (emulator::Host**)dlsym(module->library, "emulator_host");
        if (!run || !sizes || !host) return NOT_FOUND;
        found = new Function{key, run, 0, nullptr, 48 << 10, host};
        found->count = sizes(&found->sizes);
    }
    *function = found;
    return SUCCESS;
}
EXPORT Result cuFuncGetAttribute(int* value, int attribute, Function*) {
    *value = attribute == 0 ? 1024 : 0;
    return SUCCESS;
}
EXPORT Result cuFuncSetAttribute(Function* function, int attribute, int value) {
    if (attribute == 8) {
        if (value > 166912 - 1024) return INVALID_VALUE;
        function->dynamic_limit = value;
    }
    return SUCCESS;
}
EXPORT Result cuFuncSetCacheConfig(Function*, int) { return SUCCESS; }
EXPORT Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, Function*, int threads, size_t) {
    *count = 2048 / threads;
    return SUCCESS;
}
EXPORT Result cuLaunchKernel(Function* function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                             unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                             Stream* stream, void** params, void** extra) {
    CHECK_CONTEXT();
    if (extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z) return INVALID_VALUE;
    if (grid_x > 2147483647u || grid_y > 65535 || grid_z > 65535) return INVALID_VALUE;
    if (block_x > 1024 || block_y > 1024 || block_z > 64 || block_x * block_y * block_z > 1024) return INVALID_VALUE;
    if ((int)shared > function->dynamic_limit) return INVALID_VALUE;
    auto launch = std::make_shared<Launch>();
    launch->grid = {grid_x, grid_y, grid_z};
    launch->block = {block_x, block_y, block_z};
    launch->shared = shared;
    size_t total = 0;
    for (unsigned int i = 0; i < function->count; ++i) {
        const char* value = (const char*)params[i];
        launch->values.emplace_back(value, value + function->sizes[i]);
        total += function->sizes[i];
    }
    if (total > 4096 || function->count > 64) return INVALID_VALUE;
    return enqueue(stream, [=] { run_kernel(function, *launch); });
}

// The entry that gives the address of any function of the driver by name.
EXPORT Result cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int* status) {
    std::string name = symbol;
    *function = nullptr;
    for (const char* end : {"_v2", ""}) {
        if (void* found = dlsym(RTLD_DEFAULT, (name + end).c_str())) {
            *function = found;
            break;
        }
    }
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}
