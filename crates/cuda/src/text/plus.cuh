// The sum of two elements, rounded to their type: f16 and bf16 add in f32, integers wrap, booleans are or-ed.
template <class T> MX_FN T plus(T a, T b) {
    if constexpr (is_half<T>) return T((f32)a + (f32)b);
    else if constexpr (is_boolean<T>) return T((bool)a || (bool)b);
    else if constexpr (is_integer<T>) return (T)((wrapping<T>)a + (wrapping<T>)b);
    else return a + b;
}
