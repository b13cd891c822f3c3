// Incomplete gamma and beta functions, computed in f64 by the methods of the CPU's `map/incomplete`, where their sources are named.

namespace mx { namespace incomplete {

constexpr f64 LOG_SQRT_TAU = 0.9189385332046727; // ln(2 pi) / 2
constexpr f64 ASYMPTOTIC = 16;                    // from here on the asymptotic series of gamma functions are accurate
constexpr int MAX_TERMS = 100000;

MX_FN f64 smaller(f64 a, f64 b) { return a < b ? a : b; }
MX_FN f64 larger(f64 a, f64 b) { return a < b ? b : a; }
MX_FN f64 polynomial(const f64 *coefficients, int n, f64 z) {
    f64 value = 0;
    for (int k = n - 1; k >= 0; k--) value = value * z + coefficients[k];
    return value;
}
// ln(1 + w) - w.
MX_FN f64 log1p_minus(f64 w) {
    if (!(abs_of(w) <= 0.5)) return log1p_of(w) - w;
    f64 v = w / (2 + w), square = v * v, term = v * square, value = 0, k = 3;
    while (true) {
        f64 next = value + term / k;
        if (next == value) return 2 * value - w * v;
        value = next;
        term *= square;
        k += 2;
    }
}
// exp(s) - 1 - s.
MX_FN f64 expm1_minus(f64 s) {
    if (abs_of(s) > 0.5) return expm1_of(s) - s;
    f64 value = 1;
    for (int k = 15; k >= 3; k--) value = 1 + value * s / k;
    return 0.5 * s * s * value;
}
// c ln(c / mean) + mean - c, with gap = (mean - c) / c.
MX_FN f64 deviance(f64 c, f64 mean, f64 gap) {
    return gap < -0.9 ? c * log_of(c / mean) + (mean - c) : -c * log1p_minus(gap);
}
// ln gamma(1 + a).
MX_FN f64 log_gamma_1p(f64 a) {
    if (a >= 0.125) return ::lgamma(1 + a);
    // Minus Euler's constant, then (-1)^k zeta(k) / k.
    const f64 series[17] = {-0.5772156649015329,  0.8224670334241132,   -0.40068563438653143, 0.27058080842778455,  -0.20738555102867398, 0.1695571769974082,
                            -0.14404989676884612, 0.12550966952474305,  -0.11133426586956469, 0.10009945751278181,  -0.09095401714582904,
                            0.083353840546109,    -0.07693251641135219, 0.07143294629536134,  -0.06666870588242046, 0.06250095514121304,  -0.05882397865868458};
    return a * polynomial(series, 17, a);
}
MX_FN f64 stirling_error(f64 a) {
    if (a < ASYMPTOTIC) return log_gamma_1p(a) - (a + 0.5) * log_of(a) + a - LOG_SQRT_TAU;
    const f64 series[7] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
    return polynomial(series, 7, 1 / (a * a)) / a;
}
MX_FN f64 digamma_minus_log(f64 a) {
    if (a < ASYMPTOTIC) return digamma_of(a) - log_of(a);
    const f64 series[6] = {-1.0 / 12, 1.0 / 120, -1.0 / 252, 1.0 / 240, -1.0 / 132, 691.0 / 32760};
    f64 z = 1 / (a * a);
    return -0.5 / a + polynomial(series, 6, z) * z;
}
MX_FN f64 rough_normal_quantile(f64 p) {
    f64 t = sqrt_of(-2 * log_of(p));
    return (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
}

// A number with its derivatives with respect to two parameters.
struct Dual {
    f64 v, da, db;
};
MX_FN Dual constant(f64 v) { return {v, 0, 0}; }
MX_FN Dual plus(Dual x, Dual y) { return {x.v + y.v, x.da + y.da, x.db + y.db}; }
MX_FN Dual shifted(Dual x, f64 by) { return {x.v + by, x.da, x.db}; }
MX_FN Dual scaled(Dual x, f64 by) { return {x.v * by, x.da * by, x.db * by}; }
MX_FN Dual times(Dual x, Dual y) { return {x.v * y.v, x.da * y.v + x.v * y.da, x.db * y.v + x.v * y.db}; }
MX_FN Dual over(Dual x, Dual y) {
    f64 q = x.v / y.v;
    return {q, (x.da - q * y.da) / y.v, (x.db - q * y.db) / y.v};
}

// Terms of the fraction of the upper gamma function.
struct GammaTerms {
    f64 a, x;
    MX_FN void at(f64 k, Dual &above, Dual &below) const {
        above = {k * (a - k), k, 0};
        below = {x + 2 * k + 1 - a, -1, 0};
    }
};
// Terms of the fraction of the lower beta function.
struct BetaTerms {
    Dual a, b, drift;
    f64 x, y;
    MX_FN void at(f64 m, Dual &above, Dual &below) const {
        Dual odd = shifted(a, 2 * m - 1), step = over(scaled(shifted(b, -m), m * x), odd);
        above = times(times(over(shifted(a, m - 1), odd), scaled(shifted(plus(a, b), m - 1), x)), step);
        Dual rest = times(over(shifted(a, m), shifted(a, 2 * m + 1)), shifted(drift, 1 + m * (1 + y)));
        below = shifted(plus(step, rest), m);
    }
};
// Lentz' algorithm.
template <class Terms> MX_FN Dual fraction(Dual first, const Terms &terms) {
    Dual value = first, c = first, d = constant(0), above, below;
    for (int k = 1; k < MAX_TERMS; k++) {
        terms.at(k, above, below);
        d = over(constant(1), plus(below, times(above, d)));
        c = plus(below, over(above, c));
        Dual factor = times(c, d);
        value = times(value, factor);
        f64 size = abs_of(value.v) * 1e-3;
        bool settled = abs_of(value.v * factor.da) <= 1e-16 * larger(abs_of(value.da), size)
            && abs_of(value.v * factor.db) <= 1e-16 * larger(abs_of(value.db), size);
        if ((settled && abs_of(factor.v - 1) < 2e-16) || is_nan_of(value.v)) break;
    }
    return value;
}
// Node k of the double exponential rule, from -37 to 38.
MX_FN void node(int k, f64 &s, f64 &weight) {
    f64 v = 0.1 * k, decay = exp_of(-v);
    s = exp_of(v - decay);
    weight = 0.1 * s * (1 + decay);
}

// The smaller tail: ratio to the weight, and derivatives over the weight.
struct Tail {
    bool lower;
    f64 ratio, da, db;
};
struct Pair {
    f64 lower, upper;
};

// ---- Gamma.

MX_FN f64 gamma_log_weight(f64 a, f64 x) {
    if (a < 1) return a * log_of(x) - x - log_gamma_1p(a);
    return -deviance(a, x, (x - a) / a) - stirling_error(a) - 0.5 * log_of(a) - LOG_SQRT_TAU;
}
MX_FN f64 gamma_log_ratio(f64 a, f64 x, f64 log_x) {
    if (a < 300) return log_x - digamma_of(a);
    return (x < 0.5 * a ? log_of(x / a) : log1p_of((x - a) / a)) - digamma_minus_log(a);
}
MX_FN Tail gamma_tail(f64 a, f64 x, f64 log_x) {
    bool lower = x <= larger(a, 1);
    if (a >= 300) {
        f64 sign = lower ? -1 : 1, drift = abs_of(x - a), scale = 1 / (drift + sqrt_of(x)), ratio = 0, moment = 0;
        for (int k = -37; k <= 38; k++) {
            f64 s, w;
            node(k, s, w);
            s *= scale;
            f64 part = w * exp_of(-drift * s - x * expm1_minus(sign * s));
            ratio += part;
            moment += part * sign * s;
        }
        ratio *= scale;
        moment *= scale;
        return {lower, a * ratio, a * (ratio * gamma_log_ratio(a, x, log_x) + moment), 0};
    }
    if (lower) {
        f64 term = 1, value = 1, harmonic = 0, slope = 0;
        for (int n = 1; n < MAX_TERMS; n++) {
            term *= x / (a + n);
            harmonic += 1 / (a + n);
            value += term;
            slope -= term * harmonic;
            if (term * larger(harmonic, 1) < 1e-17 * value) break;
        }
        return {lower, value, value * (log_x - digamma_of(a + 1)) + slope, 0};
    }
    GammaTerms terms = {a, x};
    Dual h = over(constant(1), fraction(Dual{x + 1 - a, -1, 0}, terms));
    return {lower, a * h.v, a * (h.v * gamma_log_ratio(a, x, log_x) + h.da), 0};
}
// Whether a or x is 0, infinite or invalid; `value` is then the lower function.
MX_FN bool gamma_limit(f64 a, f64 x, f64 &value) {
    f64 inf = infinity<f64>();
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (a == inf && x == inf)) value = not_a_number<f64>();
    else if (a == 0 || x == inf) value = 1;
    else if (x == 0 || a == inf) value = 0;
    else return false;
    return true;
}
MX_FN Pair gamma_near_zero(f64 a, f64 x) {
    f64 term = a, value = 0;
    for (int n = 1; n < MAX_TERMS; n++) {
        term *= -x / n;
        f64 next = value + term / (a + n);
        if (next == value) break;
        value = next;
    }
    f64 log_power = a * log_of(x) - log_gamma_1p(a), power = exp_of(log_power);
    return {power * (1 + value), -expm1_of(log_power) - power * value};
}
MX_FN Pair gamma_both(f64 a, f64 x) {
    f64 limit;
    if (gamma_limit(a, x, limit)) return {limit, 1 - limit};
    if (a < 1 && x <= 1) return gamma_near_zero(a, x);
    Tail tail = gamma_tail(a, x, log_of(x));
    f64 part = smaller(exp_of(gamma_log_weight(a, x)) * tail.ratio, 1);
    return tail.lower ? Pair{part, 1 - part} : Pair{1 - part, part};
}
MX_FN f64 gamma_slope(f64 a, f64 x) {
    f64 limit;
    if (gamma_limit(a, x, limit)) return is_nan_of(limit) || a == 0 ? not_a_number<f64>() : 0.0;
    Tail tail = gamma_tail(a, x, log_of(x));
    f64 slope = exp_of(gamma_log_weight(a, x)) * tail.da;
    return tail.lower ? slope : -slope;
}
MX_FN f64 gamma_density(f64 a, f64 x) {
    f64 limit;
    if (!gamma_limit(a, x, limit)) return exp_of(gamma_log_weight(a, x)) * a / x;
    if (is_nan_of(limit)) return limit;
    return x == 0 && a <= 1 ? (a == 1 ? 1.0 : infinity<f64>()) : 0.0;
}
MX_FN f64 gamma_quantile_slope(f64 a, f64 x, bool is_log) {
    if ((x == infinity<f64>() || (x == 0 && !is_log)) && a >= 0) return 0;
    if (!(a > 0) || is_nan_of(x) || (x < 0 && !is_log)) return not_a_number<f64>();
    f64 log_x = is_log ? x : log_of(x);
    if (is_log) x = exp_of(x);
    Tail tail = gamma_tail(a, x, log_x);
    f64 slope = tail.lower ? -tail.da / a : tail.da / a;
    return is_log ? slope : x * slope;
}
// The logarithm of a tail, and its derivative with respect to ln x.
MX_FN void gamma_log_tail(f64 a, f64 x, bool lower, f64 &log_tail, f64 &slope) {
    f64 log_weight = gamma_log_weight(a, x), sign = lower ? 1 : -1;
    if (a >= 1 || x > 1) {
        Tail tail = gamma_tail(a, x, log_of(x));
        if (tail.lower == lower) {
            log_tail = log_weight + log_of(tail.ratio);
            slope = sign * a / tail.ratio;
            return;
        }
    }
    Pair both = gamma_both(a, x);
    f64 part = lower ? both.lower : both.upper;
    log_tail = log_of(part);
    slope = sign * a * exp_of(log_weight) / part;
}
MX_FN f64 gamma_inverse(f64 a, f64 p, f64 q) {
    if (!(a >= 0) || !(p >= 0 && p <= 1 && q >= 0 && q <= 1)) return not_a_number<f64>();
    if (p == 0 || q == 0) return p == 0 ? 0.0 : infinity<f64>();
    if (a == 0 || a == infinity<f64>()) return not_a_number<f64>();
    bool lower = p <= q;
    f64 goal = log_of(smaller(p, q)), log_least = ((lower ? goal : log1p_of(-q)) + log_gamma_1p(a)) / a, x;
    if (log_least < -745.2) return 0;
    if (a < 1) x = lower ? exp_of(log_least) : -goal;
    else {
        f64 z = rough_normal_quantile(smaller(p, q)), root = 1 - 1 / (9 * a) + (lower ? z : -z) / (3 * sqrt_of(a));
        x = larger(a * root * root * root, exp_of(log_least));
    }
    for (int k = 0; k < 100; k++) {
        f64 log_tail, slope;
        gamma_log_tail(a, x, lower, log_tail, slope);
        f64 step = (goal - log_tail) / slope;
        if (is_nan_of(step)) return x;
        x *= exp_of(smaller(larger(step, -700), 700));
        if (abs_of(step) <= (lower ? 1e-14 * (1 + 1 / a) : 1e-14)) return x;
    }
    return x;
}

// ---- Beta. `y` is 1 - x.

MX_FN f64 log_of_part(f64 x, f64 y) { return y < 0.5 ? log1p_of(-y) : log_of(x); }
MX_FN f64 log_ways(f64 a, f64 b) {
    f64 small = smaller(a, b), large = larger(a, b), value = -log_gamma_1p(small);
    while (large < ASYMPTOTIC) {
        large += 1;
        value -= log1p_of(small / large);
    }
    f64 n = large + small, middle = large + 0.5 * small;
    f64 change = small < 1e-4 ? small * (digamma_minus_log(middle) + 0.5 / middle) : stirling_error(n) - stirling_error(large);
    return value + change + ((large + 0.5) * log1p_of(small / large) - small) + small * log_of(n);
}
MX_FN f64 beta_log_weight(f64 a, f64 b, f64 x, f64 y) {
    f64 log_ratio = log_of(a) - log1p_of(a / b), gap = b * x - a * y;
    if (smaller(a, b) < 1) return log_ratio + log_ways(a, b) + a * log_of_part(x, y) + b * log_of_part(y, x);
    return stirling_error(a + b) - stirling_error(a) - stirling_error(b) - deviance(a, (a + b) * x, gap / a)
        - deviance(b, (a + b) * y, -gap / b) + 0.5 * log_ratio - LOG_SQRT_TAU;
}
MX_FN bool beta_is_lower(f64 a, f64 b, f64 x, f64 y) {
    return smaller(a, b) >= 200 ? b * x <= a * y : x * (b + 1) <= (a + 1) * y;
}
// ln z - digamma(c) + digamma(c + other).
MX_FN f64 beta_log_ratio(f64 c, f64 z, f64 other, f64 z_other) {
    f64 gap = (other * z - c * z_other) / c, n = c + other;
    f64 log = gap < -0.5 ? log_of(z) + log_of(n / c) : log1p_of(gap);
    return log - digamma_minus_log(c) + digamma_minus_log(n);
}
MX_FN Tail beta_lower(f64 a, f64 b, f64 x, f64 y) {
    Dual ratio = constant(0);
    if (smaller(a, b) >= 200) {
        f64 drift = larger(a * y - b * x, 0), scale = 1 / (drift + sqrt_of((a + b) * x * y));
        bool left = x <= 0.5;
        for (int k = -37; k <= 38; k++) {
            f64 s, w;
            node(k, s, w);
            s *= scale;
            f64 z = left ? x : y, t = left ? -s : s, u = z * expm1_of(t), log = -log1p_of(u);
            f64 part = w * exp_of(-drift * s + (a + b) * (-z * expm1_minus(t) - log1p_minus(u)));
            ratio.v += part;
            ratio.da += part * (left ? log - s : log);
            ratio.db += part * (left ? log : log + s);
        }
        ratio = scaled(ratio, scale);
    } else {
        Dual p = {a, 1, 0}, q = {b, 0, 1}, drift = plus(scaled(p, y), scaled(q, -x));
        BetaTerms terms = {p, q, drift, x, y};
        ratio = over(constant(1), fraction(times(over(p, shifted(p, 1)), shifted(drift, 1)), terms));
    }
    f64 by_a = beta_log_ratio(a, x, b, y), by_b = beta_log_ratio(b, y, a, x);
    return {true, ratio.v, ratio.v * by_a + ratio.da, ratio.v * by_b + ratio.db};
}
MX_FN Tail beta_tail(f64 a, f64 b, f64 x, f64 y) {
    if (beta_is_lower(a, b, x, y)) return beta_lower(a, b, x, y);
    Tail tail = beta_lower(b, a, y, x);
    return {false, tail.ratio, tail.db, tail.da};
}
// Whether a, b or x is at an end of its range, or invalid.
MX_FN bool beta_limit(f64 a, f64 b, f64 x, f64 &value) {
    f64 inf = infinity<f64>();
    if (!(a >= 0) || !(b >= 0) || !(x >= 0 && x <= 1) || (a == 0 && b == 0) || (a == inf && b == inf)) value = not_a_number<f64>();
    else if (a == 0 || b == inf) value = x > 0 ? 1 : 0;
    else if (b == 0 || a == inf) value = x < 1 ? 0 : 1;
    else if (x == 0 || x == 1) value = x;
    else return false;
    return true;
}
MX_FN Pair beta_near_zero(f64 a, f64 b, f64 x, f64 y) {
    f64 term = a, value = 0;
    for (int n = 1; n < MAX_TERMS; n++) {
        term *= (n - b) / n * x;
        f64 next = value + term / (a + n);
        if (next == value) break;
        value = next;
    }
    f64 log_power = a * log_of_part(x, y) + log_ways(a, b) - log1p_of(a / b), power = exp_of(log_power);
    return {power * (1 + value), -expm1_of(log_power) - power * value};
}
MX_FN Pair beta_both(f64 a, f64 b, f64 x, f64 y) {
    bool lower = beta_is_lower(a, b, x, y);
    Pair pair;
    if ((lower ? a : b) < 1) pair = lower ? beta_near_zero(a, b, x, y) : beta_near_zero(b, a, y, x);
    else {
        f64 part = smaller(exp_of(beta_log_weight(a, b, x, y)) * beta_tail(a, b, x, y).ratio, 1);
        pair = {part, 1 - part};
    }
    return lower ? pair : Pair{pair.upper, pair.lower};
}
MX_FN Pair beta_values(f64 a, f64 b, f64 x) {
    f64 limit;
    if (beta_limit(a, b, x, limit)) return {limit, 1 - limit};
    return beta_both(a, b, x, 1 - x);
}
// The derivative with respect to a, or b.
MX_FN f64 beta_slope(f64 a, f64 b, f64 x, bool by_a) {
    f64 limit;
    if (beta_limit(a, b, x, limit)) return is_nan_of(limit) || a == 0 || b == 0 ? not_a_number<f64>() : 0.0;
    Tail tail = beta_tail(a, b, x, 1 - x);
    f64 slope = exp_of(beta_log_weight(a, b, x, 1 - x)) * (by_a ? tail.da : tail.db);
    return tail.lower ? slope : -slope;
}
MX_FN f64 beta_density(f64 a, f64 b, f64 x) {
    f64 limit, inf = infinity<f64>();
    if (!beta_limit(a, b, x, limit)) return exp_of(beta_log_weight(a, b, x, 1 - x)) / x / (1 - x);
    if (is_nan_of(limit) || a == 0 || b == 0 || a == inf || b == inf) return not_a_number<f64>();
    f64 power = x == 0 ? a : b;
    return power == 1 ? (x == 0 ? b : a) : power < 1 ? inf : 0.0;
}
// The x with I(x; a, b) = p, for p up to 1/2, or 1 - x if `rest`.
MX_FN f64 beta_lower_inverse(f64 a, f64 b, f64 p, bool rest) {
    f64 goal = log_of(p), log_start = (goal + log1p_of(a / b) - log_ways(a, b)) / a, odds;
    if (log_start < -745.2) return rest ? 1 : 0;
    if (a >= 1 && b >= 1) {
        f64 z = rough_normal_quantile(p), u = 1 / (2 * a - 1), v = 1 / (2 * b - 1), h = 2 / (u + v), l = (z * z - 3) / 6;
        f64 w = -z * sqrt_of(larger(h + l, 0)) / h - (v - u) * (l + 5.0 / 6 - 2 / (3 * h));
        odds = (a / b) * exp_of(smaller(larger(-2 * w, -700), 700));
    } else odds = log_start < 0 ? smaller(exp_of(log_start) / -expm1_of(log_start), a / b) : a / b;
    for (int k = 0; k < 100; k++) {
        odds = smaller(larger(odds, 1e-307), 1e307);
        f64 x = odds / (1 + odds), y = 1 / (1 + odds), log_weight = beta_log_weight(a, b, x, y), log_tail, slope;
        Tail tail = beta_tail(a, b, x, y);
        if (tail.lower) {
            log_tail = log_weight + log_of(tail.ratio);
            slope = 1 / tail.ratio;
        } else {
            f64 part = beta_both(a, b, x, y).lower;
            log_tail = log_of(part);
            slope = exp_of(log_weight) / part;
        }
        f64 step = (goal - log_tail) / slope;
        if (is_nan_of(step)) break;
        odds *= exp_of(smaller(larger(step, -700), 700));
        if (abs_of(step) <= 1e-14 * (1 + 1 / a)) break;
    }
    if (odds <= 1e-307) return rest ? 1 : 0;
    if (odds >= 1e307) return rest ? 0 : 1;
    return (rest ? 1 : odds) / (1 + odds);
}
MX_FN f64 beta_inverse(f64 a, f64 b, f64 p, f64 q) {
    f64 inf = infinity<f64>();
    if (!(a > 0 && b > 0 && smaller(a, b) < inf) || !(p >= 0 && p <= 1 && q >= 0 && q <= 1)) return not_a_number<f64>();
    if (p == 0 || q == 0) return p == 0 ? 0 : 1;
    if (a == inf || b == inf) return a == inf ? 1 : 0;
    return p <= q ? beta_lower_inverse(a, b, p, false) : beta_lower_inverse(b, a, q, true);
}

}} // namespace mx::incomplete
