//! Values that each process makes for itself.

use std::process;
use std::sync::OnceLock;

/// A value that is made when it is first asked for, and made again in a process that was forked
/// since: threads and connections stay behind in its parent.
///
/// The values of all ancestors are kept, and never dropped in a child: dropping threads that do not
/// exist would wait for them.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<Made<T>>>,
}

#[derive(Debug)]
struct Made<T> {
    process: u32,
    value: T,
    /// The value of a child. Only processes that have no value yet set it, so no other thread was
    /// at it when the child was forked.
    of_child: OnceLock<Box<Made<T>>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the value of this process, which `make` makes if there is none. If two threads make
    /// one at the same time, one of the values is dropped.
    pub(crate) fn get_or_try_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let process = process::id();
        let mut slot = &self.first;
        let mut make = Some(make);
        loop {
            match slot.get() {
                Some(made) if made.process == process => return Ok(&made.value),
                Some(made) => slot = &made.of_child,
                None => {
                    let Some(make) = make.take() else { continue }; // set by another thread since
                    let made = Made { process, value: make()?, of_child: OnceLock::new() };
                    drop(slot.set(Box::new(made)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn made(values: &PerProcess<u32>, value: u32) -> u32 {
        let found: Result<_, Infallible> = values.get_or_try_make(|| Ok(value));
        *found.unwrap()
    }

    #[test]
    fn a_value_is_made_once() {
        let values = PerProcess::new();
        assert_eq!(values.get_or_try_make(|| Err::<u32, _>("no")), Err("no"));
        assert_eq!(made(&values, 1), 1);
        assert_eq!(made(&values, 2), 1);
    }

    #[test]
    fn a_child_makes_its_own_value() {
        let parent = Made { process: process::id().wrapping_add(1), value: 1, of_child: OnceLock::new() };
        let values = PerProcess { first: OnceLock::from(Box::new(parent)) };
        assert_eq!(made(&values, 2), 2);
        assert_eq!(made(&values, 3), 2);
    }
}
