//! Macros that declare operators: a name, a cost and an expression for each type.

/// Declares unary operators: `NAME "name" -> out, cost, params, chooser { [types] |x| -> Type { expression } ... }`.
/// In the expressions `T` is the element type and `L` the CPU [`Level`].
macro_rules! unary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, $out:expr, cost $cost:literal, params $np:literal, $pick:ident {
        $([$($t:ident)*] |$x:ident, $p:pat_param| -> $r:ty $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(const _: () = {
                #[allow(dead_code, reason = "not every expression names its element type")]
                type T = $t;
                impl $crate::map::row::Unary<T> for Op {
                    type Out = $r;
                    const PARAMS: usize = $np;
                    const IN_PLACE: bool = $crate::map::row::is_light($cost, $out);
                    #[inline(always)]
                    fn apply<L: $crate::map::row::Level>($x: T, $p: $crate::map::row::Params) -> $r {
                        $e
                    }
                }
            };)*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::$pick::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 1, out: $out, in_elems: [None; 3], params: $np, cost: $cost,
                in_place: $crate::map::row::is_light($cost, $out) as u8, get,
            }
        };
    )* };
}

/// Declares binary operators like [`unary_rows`], with `heavy true` for expensive functions (see [`Binary::HEAVY`]).
macro_rules! binary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, $out:expr, cost $cost:literal, params $np:literal, heavy $heavy:literal,
        $pick:ident {
        $([$($t:ident)*] |$a:ident, $b:ident, $p:pat_param| -> $r:ty $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(const _: () = {
                #[allow(dead_code, reason = "not every expression names its element type")]
                type T = $t;
                impl $crate::map::row::Binary<T> for Op {
                    type Rhs = T;
                    type Out = $r;
                    const PARAMS: usize = $np;
                    const HEAVY: bool = $heavy;
                    const IN_PLACE: bool = !$heavy && $crate::map::row::is_light($cost, $out);
                    #[inline(always)]
                    fn apply<L: $crate::map::row::Level>($a: T, $b: T, $p: $crate::map::row::Params) -> $r {
                        $e
                    }
                }
            };)*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::$pick::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 2, out: $out, in_elems: [None; 3], params: $np, cost: $cost,
                in_place: if $heavy { 0 } else { 2 * $crate::map::row::is_light($cost, $out) as u8 }, get,
            }
        };
    )* };
}

/// Declares operators on three elements of one type.
macro_rules! ternary_rows {
    ($($(#[$doc:meta])* $name:ident $text:literal, cost $cost:literal {
        $([$($t:ident)*] |$a:ident, $b:ident, $c:ident| $e:block)*
    })*) => { $(
        $(#[$doc])*
        pub static $name: $crate::map::InnerLoops = {
            struct Op;
            $($(impl $crate::map::row::Ternary<$t> for Op {
                type First = $t;
                type Out = $t;
                const IN_PLACE: bool = true;
                #[inline(always)]
                fn apply<L: $crate::map::row::Level>($a: $t, $b: $t, $c: $t) -> $t $e
            })*)*
            fn get(isa: $crate::isa::Isa, elem: $crate::Elem) -> Option<$crate::map::InnerLoop> {
                $($(if elem == <$t as $crate::map::row::Stored>::ELEM {
                    return Some($crate::map::row::ternary::<$t, Op>(isa));
                })*)*
                None
            }
            $crate::map::InnerLoops {
                name: $text, outs: 1, ins: 3, out: $crate::map::OutElem::Same, in_elems: [None; 3], params: 0, cost: $cost,
                in_place: 1, get,
            }
        };
    )* };
}

pub(crate) use {binary_rows, ternary_rows, unary_rows};
