// One optimizer step of many weights. R: compute type, f64 for f64 weights and f32 for all others. MAX_WEIGHTS: maximum number of weights per launch.

enum { SGD, MOMENTUM, NAG, ADAM, ADAMW, RMSPROP, RMSPROP_CENTERED, ADAGRAD };

// Elements of any floating-point type; `type` is the number of the dtype.
struct Buffer {
    void* at;
    i64 type;
    __device__ R load(i64 i) const {
        switch (type) {
        case 0: return convert<R>(((const f16*)at)[i]);
        case 1: return convert<R>(((const bf16*)at)[i]);
        case 2: return convert<R>(((const f32*)at)[i]);
        default: return convert<R>(((const f64*)at)[i]);
        }
    }
    __device__ void store(i64 i, R x) const {
        switch (type) {
        case 0: ((f16*)at)[i] = convert<f16>(x); break;
        case 1: ((bf16*)at)[i] = convert<bf16>(x); break;
        case 2: ((f32*)at)[i] = convert<f32>(x); break;
        default: ((f64*)at)[i] = convert<f64>(x);
        }
    }
};

struct Weight {
    Buffer weight, master, grad, states[3];
    i64 len, number;
};

// Weights of one launch.
struct Weights { Weight weights[MAX_WEIGHTS]; };

// f64 numbers: one per weight, or one for all.
struct Rates {
    const f64* at;
    i64 is_single;
    __device__ f64 of(i64 i) const { return at[is_single ? 0 : i]; }
};

struct Step {
    i64 rule, num_weights, has_clip, has_clip_weights;
    f64 first, second, epsilon, clip, clip_weights;
    Rates rates, decays, rescale, counts;
};

MX_FN R clipped(R x, R limit) {
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

// Blocks along y are weights.
extern "C" __global__ void kernel(Step step, Weights all) {
    const Weight& of = all.weights[blockIdx.y];
    f64 exact_rate = step.rates.of(of.number);
    if (step.counts.at) {
        const f64 count = step.counts.of(of.number);
        exact_rate *= ::sqrt(1.0 - ::pow(step.second, count)) / (1.0 - ::pow(step.first, count));
    }
    const bool is_coupled = step.rule != ADAMW;
    const R rate = (R)exact_rate, rescale = (R)step.rescale.of(of.number), decay = (R)(is_coupled ? step.decays.of(of.number) : 0.0);
    const R decoupled = (R)(is_coupled ? 0.0 : step.decays.of(of.number)), limit = step.has_clip ? (R)step.clip : infinity<R>();
    const R first = (R)step.first, second = (R)step.second, epsilon = (R)step.epsilon;
    const R rest1 = (R)(1.0 - step.first), rest2 = (R)(1.0 - step.second);
    const Buffer& source = of.master.at ? of.master : of.weight;
    EACH(i, of.len) {
        R w = source.load(i), a, b, c;
        const R g = clipped(rescale * of.grad.load(i), limit) + decay * w;
        switch (step.rule) {
        case SGD: w = w - rate * g; break;
        case MOMENTUM:
            a = first * of.states[0].load(i) - rate * g;
            of.states[0].store(i, a);
            w = w + a;
            break;
        case NAG: {
            const R s = rate * g;
            a = first * of.states[0].load(i) - s;
            of.states[0].store(i, a);
            w = w + (first * a - s);
            break;
        }
        case ADAM:
        case ADAMW:
            a = first * of.states[0].load(i) + rest1 * g;
            b = second * of.states[1].load(i) + rest2 * g * g;
            of.states[0].store(i, a);
            of.states[1].store(i, b);
            w = w - (rate * a / (sqrt_of(b) + epsilon) + decoupled * w);
            break;
        case RMSPROP:
            a = first * of.states[0].load(i) + rest1 * g * g;
            of.states[0].store(i, a);
            w = w - rate * g / (sqrt_of(a) + epsilon);
            break;
        case RMSPROP_CENTERED:
            a = first * of.states[0].load(i) + rest1 * g * g;
            b = first * of.states[1].load(i) + rest1 * g;
            c = second * of.states[2].load(i) - rate * g / sqrt_of(a - b * b + epsilon);
            of.states[0].store(i, a);
            of.states[1].store(i, b);
            of.states[2].store(i, c);
            w = w + c;
            break;
        default:
            a = of.states[0].load(i) + g * g;
            of.states[0].store(i, a);
            w = w - rate * g / (sqrt_of(a) + epsilon);
        }
        if (step.has_clip_weights) w = clipped(w, (R)step.clip_weights);
        source.store(i, w);
        if (of.master.at) of.weight.store(i, w);
    }
}
