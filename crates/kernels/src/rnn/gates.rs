//! The cells' elementwise arithmetic on one row of hidden units, compiled per instruction set.
//!
//! `gates` points to the row of the first gate; the row of the next gate is `apart` elements further.

use crate::real::{Real, per_isa};

per_isa! {
    /// LSTM step. `gates` holds the four pre-activations and receives the activations; a null `c_prev` means 0.
    ///
    /// # Safety
    /// `n` elements in each gate and at `c_prev` (unless null), `c` and `h`.
    pub(super) unsafe fn lstm<T>(gates: *mut T, apart: usize, n: usize, c_prev: *const T, c: *mut T, h: *mut T) = lstm_body
}

#[inline(always)]
unsafe fn lstm_body<T: Real, const FMA: bool>(
    gates: *mut T,
    apart: usize,
    n: usize,
    c_prev: *const T,
    c: *mut T,
    h: *mut T,
) {
    // SAFETY: guaranteed by the caller. Slices tell the compiler that the operands do not overlap.
    unsafe {
        let gate = |k: usize| std::slice::from_raw_parts_mut(gates.add(k * apart), n);
        let (i_row, f_row, g_row, o_row) = (gate(0), gate(1), gate(2), gate(3));
        let (c_row, h_row) = (
            std::slice::from_raw_parts_mut(c, n),
            std::slice::from_raw_parts_mut(h, n),
        );
        if c_prev.is_null() {
            c_row.fill(T::ZERO);
        } else {
            c_row.copy_from_slice(std::slice::from_raw_parts(c_prev, n));
        }
        for u in 0..n {
            let (i, f, g, o) = (
                i_row[u].sigmoid::<FMA>(),
                f_row[u].sigmoid::<FMA>(),
                g_row[u].tanh::<FMA>(),
                o_row[u].sigmoid::<FMA>(),
            );
            let c = f.fma::<FMA>(c_row[u], i * g);
            (i_row[u], f_row[u], g_row[u], o_row[u]) = (i, f, g, o);
            c_row[u] = c;
            h_row[u] = o * c.tanh::<FMA>();
        }
    }
}

per_isa! {
    /// Gradient of [`lstm`]. `gates` holds the activations and receives the cotangents of the pre-activations; `dh` is the hidden state's cotangent;
    /// `dc` holds the new cell state's cotangent and receives the old one's.
    ///
    /// # Safety
    /// Same as for [`lstm`], with `n` elements at `dh` and `dc`.
    pub(super) unsafe fn lstm_slope<T>(gates: *mut T, apart: usize, n: usize, c_prev: *const T, c: *const T, dh: *const T, dc: *mut T) = lstm_slope_body
}

#[inline(always)]
unsafe fn lstm_slope_body<T: Real, const FMA: bool>(
    gates: *mut T,
    apart: usize,
    n: usize,
    c_prev: *const T,
    c: *const T,
    dh: *const T,
    dc: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let gate = |k: usize| std::slice::from_raw_parts_mut(gates.add(k * apart), n);
        let (i_row, f_row, g_row, o_row) = (gate(0), gate(1), gate(2), gate(3));
        let dc_row = std::slice::from_raw_parts_mut(dc, n);
        let first = c_prev.is_null();
        for u in 0..n {
            let (i, f, g, o) = (i_row[u], f_row[u], g_row[u], o_row[u]);
            let (dh, t) = (*dh.add(u), (*c.add(u)).tanh::<FMA>());
            let before = if first { T::ZERO } else { *c_prev.add(u) };
            let dc = dc_row[u] + dh * o * (T::ONE - t * t);
            i_row[u] = dc * g * i * (T::ONE - i);
            f_row[u] = dc * before * f * (T::ONE - f);
            g_row[u] = dc * i * (T::ONE - g * g);
            o_row[u] = dh * t * o * (T::ONE - o);
            dc_row[u] = dc * f;
        }
    }
}

per_isa! {
    /// GRU step. `gates` holds the pre-activations of r and z and the input product of n, and receives the activations; `hidden` is the hidden
    /// product of n.
    ///
    /// # Safety
    /// `n` elements in each gate and at `hidden`, `h_prev` (unless null, meaning 0) and `h`.
    pub(super) unsafe fn gru<T>(gates: *mut T, apart: usize, n: usize, hidden: *const T, h_prev: *const T, h: *mut T) = gru_body
}

#[inline(always)]
unsafe fn gru_body<T: Real, const FMA: bool>(
    gates: *mut T,
    apart: usize,
    n: usize,
    hidden: *const T,
    h_prev: *const T,
    h: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let gate = |k: usize| std::slice::from_raw_parts_mut(gates.add(k * apart), n);
        let (r_row, z_row, n_row) = (gate(0), gate(1), gate(2));
        let h_row = std::slice::from_raw_parts_mut(h, n);
        let first = h_prev.is_null();
        for u in 0..n {
            let (r, z) = (r_row[u].sigmoid::<FMA>(), z_row[u].sigmoid::<FMA>());
            let new = r.fma::<FMA>(*hidden.add(u), n_row[u]).tanh::<FMA>();
            let before = if first { T::ZERO } else { *h_prev.add(u) };
            (r_row[u], z_row[u], n_row[u]) = (r, z, new);
            h_row[u] = z.fma::<FMA>(before - new, new);
        }
    }
}

per_isa! {
    /// Gradient of [`gru`]. `gates` receives the cotangents of the pre-activations, `hidden` that of the hidden product of n. `dh` holds the new
    /// hidden state's cotangent and receives `z dh`, the part of the old state's cotangent that does not flow through the gates.
    ///
    /// # Safety
    /// Same as for [`gru`], with `n` elements at `dh`.
    pub(super) unsafe fn gru_slope<T>(gates: *mut T, apart: usize, n: usize, hidden: *mut T, h_prev: *const T, dh: *mut T) = gru_slope_body
}

#[inline(always)]
unsafe fn gru_slope_body<T: Real, const FMA: bool>(
    gates: *mut T,
    apart: usize,
    n: usize,
    hidden: *mut T,
    h_prev: *const T,
    dh: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let gate = |k: usize| std::slice::from_raw_parts_mut(gates.add(k * apart), n);
        let (r_row, z_row, n_row) = (gate(0), gate(1), gate(2));
        let (hidden, dh_row) = (
            std::slice::from_raw_parts_mut(hidden, n),
            std::slice::from_raw_parts_mut(dh, n),
        );
        let first = h_prev.is_null();
        for u in 0..n {
            let (r, z, new, dh) = (r_row[u], z_row[u], n_row[u], dh_row[u]);
            let before = if first { T::ZERO } else { *h_prev.add(u) };
            let dn = dh * (T::ONE - z) * (T::ONE - new * new);
            r_row[u] = dn * hidden[u] * r * (T::ONE - r);
            z_row[u] = dh * (before - new) * z * (T::ONE - z);
            n_row[u] = dn;
            hidden[u] = dn * r;
            dh_row[u] = dh * z;
        }
    }
}

per_isa! {
    /// `h = tanh(sums)`.
    ///
    /// # Safety
    /// `n` elements at both, which do not overlap.
    pub(super) unsafe fn tanh<T>(sums: *const T, n: usize, h: *mut T) = tanh_body
}

#[inline(always)]
unsafe fn tanh_body<T: Real, const FMA: bool>(sums: *const T, n: usize, h: *mut T) {
    for u in 0..n {
        // SAFETY: u < n.
        unsafe { *h.add(u) = (*sums.add(u)).tanh::<FMA>() }
    }
}
