//! Compiles kernels for an instruction set, and enters them with its token.

/// Invokes macro `$then` with the features of an instruction set and with `$rest`.
///
/// [`cpu`](super::cpu) makes a token only if the CPU has all of them, and [`implement`] enables no
/// others.
macro_rules! with_features {
    (Avx2, [$($then:tt)*] $rest:tt) => {
        $($then)*! { ["avx2", "bmi1", "bmi2", "lzcnt", "popcnt"] $rest }
    };
    (Avx512, [$($then:tt)*] $rest:tt) => {
        $($then)*! {
            [
                "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vbmi", "avx512vbmi2",
                "gfni", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"
            ]
            $rest
        }
    };
    (Neon, [$($then:tt)*] $rest:tt) => {
        $($then)*! { ["neon"] $rest }
    };
}

/// Implements a trait for a token.
///
/// ```text
/// implement!(Avx2: Kernel {
///     fn rotate(data: &mut [u8]) => { generic::rotate }
///     fn shuffle(width: Width, data: &mut [u8]) => { match width {
///         Width::W1 => generic::shuffle::<_, 1>,
///         Width::W2 => generic::shuffle::<_, 2>,
///     } }
/// });
/// ```
///
/// The body of a method names a function, or one for each value of an argument. The function takes
/// the token and then the arguments. It is compiled for the instruction set as far as it is inlined
/// (`#[inline(always)]`) or enables the features itself. Several functions are compiled apart,
/// because the compiler makes slower code of loops that share one.
macro_rules! implement {
    ($Token:ident: $($rest:tt)*) => {
        $crate::kernel::compile::with_features!($Token, [$crate::kernel::compile::implement_with] { $Token: $($rest)* });
    };
}

macro_rules! implement_with {
    ($features:tt { $Token:ident: $Trait:ident { $(fn $name:ident $args:tt $(-> $output:ty)? => $body:tt)* } }) => {
        impl $Trait for $Token {
            $($crate::kernel::compile::method! { fn $name $args [$($output)?] [$features $Token $args [$($output)?]] $body })*
        }
    };
}

/// Defines a method of a token.
macro_rules! method {
    (
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?] $entry:tt
        { match $value:ident { $($case:pat => $function:expr),* $(,)? } }
    ) => {
        fn $name(&self, $($arg: $type),*) $(-> $output)? {
            match $value {
                $($case => $crate::kernel::compile::enter!($entry *self, $function),)*
            }
        }
    };
    (
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?] $entry:tt
        { $function:expr }
    ) => {
        fn $name(&self, $($arg: $type),*) $(-> $output)? {
            $crate::kernel::compile::enter!($entry *self, $function)
        }
    };
}

/// Calls `$function` with the token and the arguments, compiled for the instruction set. Used only
/// by [`implement`], which pairs the token with its features.
macro_rules! enter {
    (
        [[$($feature:tt),*] $Token:ident ($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?]]
        $token:expr, $function:expr
    ) => {{
        $(#[target_feature(enable = $feature)])*
        fn compiled(token: $Token, $($arg: $type),*) $(-> $output)? {
            $function(token, $($arg),*)
        }
        // SAFETY: `compiled` needs the features that `with_features` lists for `$Token`. A value of
        // that type proves that this CPU has exactly these.
        unsafe { compiled($token, $($arg),*) }
    }};
}

pub(super) use {enter, implement, implement_with, method, with_features};
