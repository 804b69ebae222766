//! Detects the instruction sets of this CPU.
//!
//! `Avx2`, `Avx512` and `Neon` are proof tokens. Their field is private to this file, which makes a
//! token only after it has found every feature of the instruction set in this CPU. Every safe
//! function that enters code with these features takes the token:
//!
//! * kernels, which `compile` compiles and enters;
//! * the vector operations that the generic kernels call.
//!
//! No safe function is therefore unsound on a CPU without the features.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::compile::with_features;

/// The token of code that needs no more than what the target guarantees.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

/// Defines the token that proves some features. Miri interprets few vector instructions, so that it
/// detects none.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! token {
    ([$($feature:tt),*] { $(#[$doc:meta])* $Token:ident, $is_detected:ident }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Token(());

        impl $Token {
            fn detect() -> Option<&'static Self> {
                (!cfg!(miri) $(&& std::arch::$is_detected!($feature))*).then_some(&Self(()))
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
with_features!(Avx2, [token] {
    /// Proves that this CPU has AVX2 and the bit manipulation instructions that came with it.
    Avx2, is_x86_feature_detected
});

#[cfg(target_arch = "x86_64")]
with_features!(Avx512, [token] {
    /// Proves that this CPU has AVX-512 with VBMI, VBMI2 and GFNI, as of Ice Lake and Zen 4.
    Avx512, is_x86_feature_detected
});

#[cfg(target_arch = "x86_64")]
impl From<Avx512> for Avx2 {
    /// Returns the token of AVX2, whose features are among those of the other.
    fn from(_: Avx512) -> Self {
        Self(())
    }
}

#[cfg(target_arch = "aarch64")]
with_features!(Neon, [token] {
    /// Proves that this CPU has NEON.
    Neon, is_aarch64_feature_detected
});

/// The token of one instruction set.
#[derive(Clone, Copy, Debug)]
pub enum Token {
    Scalar(&'static Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(&'static Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(&'static Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(&'static Neon),
}

impl Token {
    /// Returns the name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }
}

/// Returns the instruction set that `TENSILO_KERNELS` names, so that one machine can measure what
/// others will see. A name that this CPU has not, or nobody, is ignored.
pub fn asked() -> Option<String> {
    std::env::var("TENSILO_KERNELS").ok()
}

/// Detects the instruction sets of this CPU. Returns their tokens, slowest (`scalar`) first.
///
/// All families list their implementations by this function. What it leaves out is not used.
pub fn tokens() -> impl Iterator<Item = Token> {
    let tokens = [
        Some(Token::Scalar(&Scalar)),
        #[cfg(target_arch = "x86_64")]
        Avx2::detect().map(Token::Avx2),
        #[cfg(target_arch = "x86_64")]
        Avx512::detect().map(Token::Avx512),
        #[cfg(target_arch = "aarch64")]
        Neon::detect().map(Token::Neon),
    ];
    tokens.into_iter().flatten()
}
