//! Instruction sets: detects them, compiles code for each, and chooses one.
//!
//! One build must run on many CPUs, so each kernel is compiled for several instruction sets, and
//! the process chooses one at run time. Calling code whose features the CPU lacks is undefined
//! behavior. `Avx2`, `Avx512` and `Neon` are therefore proof tokens. Their field is private, so
//! only this file can make a token, and it does so only after it has detected every feature of the
//! instruction set. Each safe function that calls code compiled for these features takes the token:
//!
//! * kernels, which [`implement`] compiles and calls;
//! * vector operations, which [`intrinsics`] turns into safe functions.
//!
//! A safe function therefore cannot be called on a CPU without the features, and no call checks
//! them at run time. Apart from these two macros, only the pointer accesses in
//! [`vectors`](super::vectors) and one call in [`dictionaries`](super::dictionaries) use `unsafe`.

/// Invokes macro `$then` with the features of an instruction set and with `$rest`, if the target
/// has that instruction set.
///
/// A token is made only if the CPU has all of these features. Code compiled for the token enables
/// exactly these features.
macro_rules! with_features {
    (Avx2, [$($then:tt)*] $rest:tt) => {
        #[cfg(target_arch = "x86_64")]
        $($then)*! { ["avx2", "bmi1", "bmi2", "lzcnt", "popcnt"] $rest }
    };
    (Avx512, [$($then:tt)*] $rest:tt) => {
        #[cfg(target_arch = "x86_64")]
        $($then)*! {
            [
                "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vbmi", "avx512vbmi2",
                "gfni", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"
            ]
            $rest
        }
    };
    (Neon, [$($then:tt)*] $rest:tt) => {
        #[cfg(target_arch = "aarch64")]
        $($then)*! { ["neon"] $rest }
    };
}

// ---- tokens

/// The token of code that needs only the features that the target guarantees.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

/// Defines a token that proves that the CPU has some features. Miri supports few vector
/// instructions, so no features are detected under Miri.
macro_rules! token {
    ([$($feature:tt),*] { $(#[$doc:meta])* $Token:ident, $is_detected:ident }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Token(());

        impl $Token {
            /// Returns the token if this CPU has the features.
            pub(super) fn detect() -> Option<&'static Self> {
                (!cfg!(miri) $(&& std::arch::$is_detected!($feature))*).then_some(&Self(()))
            }
        }
    };
}

with_features!(Avx2, [token] {
    /// Proves that this CPU has AVX2, and the bit manipulation instructions that came with it.
    Avx2, is_x86_feature_detected
});

with_features!(Avx512, [token] {
    /// Proves that this CPU has AVX-512 with VBMI, VBMI2 and GFNI (Ice Lake, Zen 4 or later).
    Avx512, is_x86_feature_detected
});

#[cfg(target_arch = "x86_64")]
impl From<Avx512> for Avx2 {
    /// Returns the token of AVX2. AVX-512 includes its features.
    #[inline(always)]
    fn from(_: Avx512) -> Self {
        Self(())
    }
}

with_features!(Neon, [token] {
    /// Proves that this CPU has NEON.
    Neon, is_aarch64_feature_detected
});

// ---- code compiled for an instruction set

/// Implements the trait of a family for the tokens of some instruction sets.
///
/// ```text
/// implement!([Avx2, Neon] Kernel {
///     fn rotate(data: &mut [u8]) => { rotate }
///     fn split(width: Width, data: &mut [u8]) => { for W in width => split::<_, { W::BYTES }> }
/// });
/// ```
///
/// The body of a method names one function, or a function for each width or for each value of an
/// argument. The function takes the token, followed by the arguments. It is compiled for the
/// instruction set if it is inlined (`#[inline(always)]`) or enables the features itself. Functions
/// for different widths are compiled separately, because the compiler generates slower code for
/// several loops in one function.
macro_rules! implement {
    ([$($Token:ident),*] $Trait:ident $methods:tt) => {
        $($crate::kernel::dispatch::with_features!(
            $Token, [$crate::kernel::dispatch::implement_with] { $Token $Trait $methods }
        );)*
    };
}

macro_rules! implement_with {
    ($features:tt {
        $Token:ident $Trait:ident { $(fn $name:ident $args:tt $(-> $output:ty)? => $body:tt)* }
    }) => {
        impl $Trait for $crate::kernel::dispatch::$Token {
            $($crate::kernel::dispatch::method! {
                fn $name $args [$($output)?] [$features $Token $args [$($output)?]] $body
            })*
        }
    };
}

/// Defines a method of a token.
macro_rules! method {
    (
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?] $entry:tt
        { for $Word:ident in $width:ident => $function:expr }
    ) => {
        fn $name(&self, $($arg: $type),*) $(-> $output)? {
            $crate::kernel::for_width!(
                $width, $Word => $crate::kernel::dispatch::enter!($entry *self, $function)
            )
        }
    };
    (
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?] $entry:tt
        { match $value:ident { $($case:pat => $function:expr),* $(,)? } }
    ) => {
        fn $name(&self, $($arg: $type),*) $(-> $output)? {
            match $value {
                $($case => $crate::kernel::dispatch::enter!($entry *self, $function),)*
            }
        }
    };
    (
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?] $entry:tt
        { $function:expr }
    ) => {
        fn $name(&self, $($arg: $type),*) $(-> $output)? {
            $crate::kernel::dispatch::enter!($entry *self, $function)
        }
    };
}

/// Calls `$function` with the token and the arguments, compiled for the instruction set. Used only
/// by [`implement`], which pairs a token with its features.
macro_rules! enter {
    (
        [[$($feature:tt),*] $Token:ident ($($arg:ident: $type:ty),* $(,)?) [$($output:ty)?]]
        $token:expr, $function:expr
    ) => {{
        $(#[target_feature(enable = $feature)])*
        fn compiled(token: $crate::kernel::dispatch::$Token, $($arg: $type),*) $(-> $output)? {
            $function(token, $($arg),*)
        }
        // SAFETY: `compiled` needs the features that `with_features` lists for `$Token`. A value of
        // that type proves that this CPU has them.
        unsafe { compiled($token, $($arg),*) }
    }};
}

/// Makes safe functions from code that is safe wherever an instruction set is enabled. They are the
/// methods of a trait, or functions whose first parameter is the token.
///
/// ```text
/// intrinsics! {
///     [Avx2]
///     impl Vectors for Avx2 {
///         type Vector = __m256i;
///         fn or(v: Avx2, a: __m256i, b: __m256i) -> __m256i {
///             _mm256_or_si256(a, b)
///         }
///     }
/// }
/// ```
///
/// Methods name their receiver (`v: Avx2` instead of `self`). The implementing type is the token,
/// or can be converted to it.
///
/// All these functions are inlined. The compiler can decline to inline a function that enables
/// features, and a vector operation that is not inlined takes about ten times as long. Each body is
/// therefore compiled twice. The first copy is in an unsafe block of an inlined function that
/// enables no features. The second copy is in a function that enables the features and is never
/// called. It compiles only if the features are the only reason for `unsafe`.
macro_rules! intrinsics {
    ([$Token:ident] $($items:tt)*) => {
        $crate::kernel::dispatch::with_features!(
            $Token, [$crate::kernel::dispatch::intrinsics_with] { $Token $($items)* }
        );
    };
}

macro_rules! intrinsics_with {
    ($features:tt {
        $Token:ident
        impl $Trait:ident for $Type:ident {
            $(type $Assoc:ident = $assoc:ty;)*
            $(const $CONST:ident: $const:ty = $value:expr;)*
            $(
                $(#[$meta:meta])*
                fn $name:ident $(<$($generic:ident)+: $bound:ident>)?
                    ($v:ident: $Receiver:ident $(, $($args:tt)*)?) $(-> $output:ty)? $body:block
            )*
        }
    }) => {
        impl $Trait for $Type {
            $(type $Assoc = $assoc;)*
            $(const $CONST: $const = $value;)*
            $($crate::kernel::dispatch::operation! {
                [$(#[$meta])*] [$(<$($generic)+: $bound>)?] [self, $($($args)*)?]
                [$v: $Receiver, $($($args)*)?] [$(-> $output)?] $features
                fn $name {
                    let $v = self;
                    let _proof: $crate::kernel::dispatch::$Token = $v.into();
                } $body
            })*
        }
    };
    ($features:tt {
        $Token:ident
        $(
            $(#[$meta:meta])*
            $vis:vis fn $name:ident $(<$($generic:ident)+: $bound:ident>)?
                ($token:tt: $Receiver:ident $(, $($args:tt)*)?) $(-> $output:ty)? $body:block
        )*
    }) => {
        $($crate::kernel::dispatch::operation! {
            [$(#[$meta])* $vis] [$(<$($generic)+: $bound>)?]
            [$token: $crate::kernel::dispatch::$Token, $($($args)*)?]
            [$token: $crate::kernel::dispatch::$Token, $($($args)*)?] [$(-> $output)?] $features
            fn $name {} $body
        })*
    };
}

/// Defines a function of [`intrinsics`].
macro_rules! operation {
    (
        [$($start:tt)*] [$($generics:tt)*] [$($params:tt)*] [$($checked:tt)*] [$($output:tt)*]
        [$($feature:tt),*] fn $name:ident { $($receiver:tt)* } $body:block
    ) => {
        #[inline(always)]
        #[allow(unused_variables, reason = "few operations use the token")]
        $($start)* fn $name $($generics)* ($($params)*) $($output)* {
            #[allow(dead_code, reason = "checks that the body is safe where the features are enabled")]
            $(#[target_feature(enable = $feature)])*
            fn checked $($generics)* ($($checked)*) $($output)* $body

            $($receiver)*
            // SAFETY: `$body` is unsafe only because it needs the features of the token; otherwise
            // `checked` would not compile. The first parameter or `_proof` is the token.
            #[allow(unused_unsafe, reason = "some bodies only call other operations")]
            unsafe { $body }
        }
    };
}

pub(super) use {enter, implement, implement_with, intrinsics, intrinsics_with, method, operation, with_features};

// ---- the implementations of a family

/// One implementation of a family of kernels. `K` is the trait of the family.
///
/// The kernel is a token: if the value exists, this CPU can run the implementation.
pub struct Implementation<K: ?Sized + 'static> {
    pub(super) name: &'static str,
    pub(super) kernel: &'static K,
}

impl<K: ?Sized> Implementation<K> {
    /// Returns the name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    #[allow(dead_code, reason = "only tests and benchmarks name implementations")]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// Defines `available` and `best` for the family whose trait is `$Kernel`.
macro_rules! implementations {
    ($Kernel:ident) => {
        /// Returns the implementations that this CPU can run, slowest (`scalar`) first.
        pub fn available() -> &'static [Implementation<dyn $Kernel>] {
            use $crate::kernel::dispatch;
            type List = Vec<Implementation<dyn $Kernel>>;
            static AVAILABLE: std::sync::LazyLock<List> = std::sync::LazyLock::new(|| {
                let mut list: List = vec![Implementation { name: "scalar", kernel: &dispatch::Scalar }];
                #[cfg(target_arch = "x86_64")]
                if let Some(kernel) = dispatch::Avx2::detect() {
                    list.push(Implementation { name: "avx2", kernel });
                }
                #[cfg(target_arch = "x86_64")]
                if let Some(kernel) = dispatch::Avx512::detect() {
                    list.push(Implementation { name: "avx512", kernel });
                }
                #[cfg(target_arch = "aarch64")]
                if let Some(kernel) = dispatch::Neon::detect() {
                    list.push(Implementation { name: "neon", kernel });
                }
                list
            });
            &AVAILABLE
        }

        /// Returns the implementation that the environment requests, if this CPU can run it, and
        /// otherwise the fastest. It is chosen once per process.
        pub fn best() -> &'static Implementation<dyn $Kernel> {
            use $crate::kernel::dispatch;
            static SCALAR: Implementation<dyn $Kernel> = Implementation { name: "scalar", kernel: &dispatch::Scalar };
            static BEST: std::sync::LazyLock<&'static Implementation<dyn $Kernel>> = std::sync::LazyLock::new(|| {
                let found = dispatch::choose(available(), dispatch::requested().as_deref());
                found.unwrap_or(&SCALAR) // the list is never empty
            });
            *BEST
        }
    };
}
pub(super) use implementations;

/// Returns the instruction set that the environment variable `TENSILO_KERNELS` names. The variable
/// allows measuring, on one machine, the kernels that other machines would choose. Unknown or
/// unsupported names are ignored.
pub fn requested() -> Option<String> {
    std::env::var("TENSILO_KERNELS").ok()
}

/// Returns the implementation with the requested name. If there is none, returns the fastest, which
/// is the last.
pub(super) fn choose<'a, K: ?Sized>(
    available: &'a [Implementation<K>],
    requested: Option<&str>,
) -> Option<&'a Implementation<K>> {
    let found = requested.and_then(|requested| available.iter().find(|known| known.name == requested));
    found.or(available.last())
}
