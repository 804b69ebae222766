//! One implementation of a family, and the list of all of them.

use std::fmt;

/// One implementation of a family of kernels. `K` is the trait of the family.
///
/// The kernel is a token of [`cpu`](super::cpu). If the value exists, this CPU can run the
/// implementation.
pub struct Implementation<K: ?Sized + 'static> {
    pub(super) name: &'static str,
    pub(super) kernel: &'static K,
}

impl<K: ?Sized> Implementation<K> {
    /// Returns the name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    #[allow(dead_code, reason = "only tests and benchmarks tell implementations apart")]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<K: ?Sized> fmt::Debug for Implementation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Implementation").field(&self.name).finish()
    }
}

/// Returns the implementation of that name or, if there is none, the fastest, which is the last.
pub(super) fn choose<'a, K: ?Sized>(
    available: &'a [Implementation<K>],
    asked: Option<&str>,
) -> Option<&'a Implementation<K>> {
    let found = asked.and_then(|asked| available.iter().find(|known| known.name == asked));
    found.or(available.last())
}

/// Defines `available` and `best` of the family whose trait is `$Kernel`.
macro_rules! implementations {
    ($Kernel:ident) => {
        /// Returns the implementations that this CPU can run, slowest (`scalar`) first.
        pub fn available() -> &'static [Implementation<dyn $Kernel>] {
            use $crate::kernel::cpu::{Token, tokens};
            type List = Vec<Implementation<dyn $Kernel>>;
            static AVAILABLE: std::sync::LazyLock<List> = std::sync::LazyLock::new(|| {
                let implementation = |token: Token| {
                    let kernel: &'static dyn $Kernel = match token {
                        Token::Scalar(token) => token,
                        #[cfg(target_arch = "x86_64")]
                        Token::Avx2(token) => token,
                        #[cfg(target_arch = "x86_64")]
                        Token::Avx512(token) => token,
                        #[cfg(target_arch = "aarch64")]
                        Token::Neon(token) => token,
                    };
                    Implementation { name: token.name(), kernel }
                };
                tokens().map(implementation).collect()
            });
            &AVAILABLE
        }

        /// Returns the fastest implementation that this CPU can run, or the one that the
        /// environment asks for. It is chosen once for each process.
        pub fn best() -> &'static Implementation<dyn $Kernel> {
            static SCALAR: Implementation<dyn $Kernel> =
                Implementation { name: "scalar", kernel: &$crate::kernel::cpu::Scalar };
            type Chosen = &'static Implementation<dyn $Kernel>;
            static BEST: std::sync::LazyLock<Chosen> = std::sync::LazyLock::new(|| {
                use $crate::kernel::{cpu, implementation};
                let found = implementation::choose(available(), cpu::asked().as_deref());
                found.unwrap_or(&SCALAR) // the list is never empty
            });
            *BEST
        }
    };
}
pub(super) use implementations;
